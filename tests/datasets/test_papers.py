"""The data of papers: what they are made of.

Moneda (2021), Domain Generalization, Invariance and the Time Robust Forest (thesis).
"""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from sklearn_era.datasets import (
    make_liao_classification,
    make_liao_regression,
    make_moneda_drift,
    make_moneda_motivating_example,
    make_moneda_support,
    make_shifted_sine_wave,
)

PARTS = ("train", "test")


@pytest.mark.parametrize(
    ("make", "name", "value", "match"),
    [
        (make_liao_classification, "shortcut_flip_probabilities", (0.1, 1.2),
         r"shortcut_flip_probabilities\[1\] is 1\.2; give .* from 0 to 1 for each era"),
        (make_liao_classification, "shortcut_flip_probabilities", (),
         r"shortcut_flip_probabilities=\(\) has numbers for 0 eras; .* at least 1 of"),
        (make_liao_classification, "shortcut_flip_probabilities_test", (np.nan,),
         r"shortcut_flip_probabilities_test\[0\] is nan"),
        (make_liao_regression, "shortcut_noise", 0.1,
         r"shortcut_noise=0\.1 has 0 dimensions, not one; give a sequence"),
        (make_liao_regression, "shortcut_noise_test", ("much",),
         r"shortcut_noise_test=\('much',\) are no numbers; give .* of at least 0"),
        (make_liao_regression, "shortcut_noise_test", (1.0, -2.0),
         r"shortcut_noise_test\[1\] is -2; give"),
        (make_liao_regression, "shortcut_noise", (np.inf,), r"\[0\] is inf; give"),
        (make_moneda_support, "variances", (1.0,),
         r"variances=\(1\.0,\) has numbers for 1 periods; give one for each of the"),
        (make_moneda_support, "variances_test", (-1.0,), r"variances_test\[0\] is -1"),
    ],
)  # fmt: skip
def test_numbers_by_era_are_checked(make, name, value, match):
    with pytest.raises(ValueError, match=match):
        make(**{name: value})


def test_sine_wave_is_signal_shift_and_noise():
    data = make_shifted_sine_wave(
        n_eras=300, n_samples_per_era=200, n_test_eras=2, noise_std=0.5, shift_std=2.0,
        random_state=0,
    )  # fmt: skip
    x = data.X_train[:, 0]
    assert 0 <= x.min() < 0.01
    assert 2 * np.pi - 0.01 < x.max() <= 2 * np.pi
    assert x.mean() == pytest.approx(np.pi, abs=0.03)
    for part in PARTS:
        assert np.array_equal(data[f"signal_{part}"], np.sin(data[f"X_{part}"][:, 0]))
    noise = data.y_train - data.signal_train - data.shifts_train[data.eras_train]
    assert noise.mean() == pytest.approx(0, abs=0.01)
    assert noise.std() == pytest.approx(0.5, abs=0.01)
    assert np.corrcoef(noise, x)[0, 1] == pytest.approx(0, abs=0.02)
    assert data.shifts_train.shape == (300,)
    assert data.shifts_train.std() == pytest.approx(2.0, abs=0.25)
    assert data.shifts_test.shape == (2,)
    pure = make_shifted_sine_wave(noise_std=0, shift_std=0, random_state=0)
    for part in PARTS:
        assert np.array_equal(pure[f"y_{part}"], pure[f"signal_{part}"])


@pytest.mark.slow
def test_error_of_one_who_knows_the_sine():
    errors = []
    for seed in range(2000):
        data = make_shifted_sine_wave(n_samples_per_era=8, random_state=seed)
        height = data.shifts_train.mean()
        errors.append(np.mean((data.y_test - data.signal_test - height) ** 2))
    assert np.mean(errors) == pytest.approx(2.125, abs=0.15)


# --- Liao et al., equation 23


def shares_of_right_copies(block, y):
    """How often a feature without noise is its row's label, in each column."""
    return np.mean(block == y[:, np.newaxis], axis=0)


def test_equation_23_without_noise_is_copies_of_the_label():
    data = make_liao_classification(
        n_features=3, n_samples_per_era=20_000, noise_std=0, random_state=0
    )
    assert data.X_train.shape == (40_000, 6)
    assert data.feature_names == [
        "invariant_0", "invariant_1", "invariant_2",
        "shortcut_0", "shortcut_1", "shortcut_2",
    ]  # fmt: skip
    for era, flips in ((1, 0.1), (2, 0.4), (3, 0.7)):
        part = "test" if era == 3 else "train"
        rows = data[f"eras_{part}"] == era
        X, y = data[f"X_{part}"][rows], data[f"y_{part}"][rows]
        assert set(np.unique(X)) == {0, 1}
        assert y.mean() == pytest.approx(0.5, abs=0.02)
        shares = [1 - flip for flip in [0.3] * 3 + [flips] * 3]
        assert shares_of_right_copies(X, y) == pytest.approx(shares, abs=0.015)
        # Each copy is flipped by itself.
        wrong = y[:, np.newaxis] != X
        assert np.corrcoef(wrong.T) == pytest.approx(np.eye(6), abs=0.04)


def test_equation_23_has_standard_normal_noise():
    # The same draws with and without: the noise is drawn last.
    params = {"n_features": 2, "n_samples_per_era": 20_000, "random_state": 1,
              "shortcut_flip_probabilities_test": ()}  # fmt: skip
    noise = (
        make_liao_classification(**params).X_train
        - make_liao_classification(noise_std=0, **params).X_train
    )
    assert noise.mean(axis=0) == pytest.approx(np.zeros(4), abs=0.02)
    assert np.cov(noise.T) == pytest.approx(np.eye(4), abs=0.03)


def test_eras_of_liao_are_as_many_as_their_parameters():
    data = make_liao_classification(
        shortcut_flip_probabilities=(0.0, 0.2, 1.0),
        shortcut_flip_probabilities_test=[0.5, 0.6],
        n_samples_per_era=4, n_features=1,
    )  # fmt: skip
    assert np.array_equal(data.eras_train, np.repeat([1, 2, 3], 4))
    assert np.array_equal(data.eras_test, np.repeat([4, 5], 4))
    assert data.shortcut_flip_probabilities_train.tolist() == [0.0, 0.2, 1.0]
    assert data.shortcut_flip_probabilities_test.tolist() == [0.5, 0.6]


# --- Liao et al., equation 24


@pytest.mark.parametrize(("n_features", "n_shortcut"), [(2, 1), (10, 1), (5, 5)])
def test_moments_of_equation_24(n_features, n_shortcut):
    data = make_liao_regression(
        n_features=n_features, n_shortcut_features=n_shortcut,
        n_samples_per_era=20_000, random_state=0,
    )  # fmt: skip
    for era, sigma in ((1, 0.1), (2, 2.0), (3, 5.0)):
        part = "test" if era == 3 else "train"
        rows = data[f"eras_{part}"] == era
        X, y = data[f"X_{part}"][rows], data[f"y_{part}"][rows]
        X1, X2 = X[:, :n_features], X[:, n_features:]
        assert X2.shape == (20_000, n_shortcut)
        assert np.cov(X1.T) == pytest.approx(np.eye(n_features), abs=0.05)
        residual = y - X1.sum(axis=1)
        assert residual.var() / n_features == pytest.approx(1, abs=0.05)
        noise = (X2 - y[:, np.newaxis]) / np.sqrt(n_features)
        assert noise.var(axis=0) == pytest.approx(
            np.full(n_shortcut, sigma**2), rel=0.05
        )
        # All noises are independent of each other and of the causes.
        seen = np.corrcoef(np.column_stack([X1, residual, noise]).T)
        assert seen == pytest.approx(np.eye(len(seen)), abs=0.04)


# --- Moneda, sections 5.3.3 and 5.3.5


def test_equations_5_5_and_5_6_of_moneda():
    data = make_moneda_drift(n_samples_per_era=20_000, n_test_eras=1, random_state=0)
    first = data.eras_train == 1
    assert np.array_equal(data.X_train[first, 1], data.latent_train[first])
    for X, latent, y in (
        (data.X_train[first], data.latent_train[first], data.y_train[first]),
        (data.X_train[~first], data.latent_train[~first], data.y_train[~first]),
        (data.X_test, data.latent_test, data.y_test),
    ):
        assert np.array_equal(y, latent > 0.5)
        assert y.mean() == pytest.approx(0.362, abs=0.01)
        x1 = X[:, 0]
        assert [x1.mean(), x1.var(), latent.mean(), latent.var()] == pytest.approx(
            [0, 1, 0, 2], abs=0.05
        )
        assert np.cov(x1, latent)[0, 1] == pytest.approx(1, abs=0.05)
        assert roc_auc_score(y, x1) == pytest.approx(0.836, abs=0.01)
    for X, y in (
        (data.X_train[~first], data.y_train[~first]),
        (data.X_test, data.y_test),
    ):
        assert X[:, 1].var() == pytest.approx(1, abs=0.04)
        assert roc_auc_score(y, X[:, 1]) == pytest.approx(0.5, abs=0.02)


def test_without_shift_moneda_s_second_feature_stays_what_it_is():
    exact = make_moneda_drift(has_shift=False, random_state=0)
    for part in PARTS:
        assert np.array_equal(exact[f"X_{part}"][:, 1], exact[f"latent_{part}"])
    noisy = make_moneda_drift(
        has_shift=False, shortcut_noise_std=1.0, n_samples_per_era=20_000,
        random_state=0,
    )  # fmt: skip
    for part in PARTS:
        X, y = noisy[f"X_{part}"], noisy[f"y_{part}"]
        # Y given both features is normal about half of their sum.
        assert roc_auc_score(y, X.sum(axis=1)) == pytest.approx(0.922, abs=0.005)


def test_the_thesis_areas_without_shift_are_those_with_noise():
    """Section 5.3.5: 0.87 in training and in the holdout."""
    data = make_moneda_drift(
        has_shift=False, shortcut_noise_std=1.0, n_samples_per_era=5000, random_state=0
    )
    tree = DecisionTreeClassifier(
        max_depth=30, min_samples_split=20, min_impurity_decrease=0.01, random_state=0
    ).fit(data.X_train, data.y_train)
    for part in PARTS:
        scores = tree.predict_proba(data[f"X_{part}"])[:, 1]
        assert roc_auc_score(data[f"y_{part}"], scores) == pytest.approx(0.87, abs=0.01)


# --- Moneda, section 5.3.6


def test_equations_5_7_and_5_8_of_moneda():
    data = make_moneda_support(n_samples_per_era=20_000, random_state=0)
    for period, variance in ((1, 0.1), (2, 1.0), (3, 0.25), (4, 1.44)):
        part = "train" if period < 3 else "test"
        rows = data[f"eras_{part}"] == period
        (x1, x2), latent = data[f"X_{part}"][rows].T, data[f"latent_{part}"][rows]
        assert x1.var() == pytest.approx(variance, rel=0.05)
        assert (latent - x1).var() == pytest.approx(variance, rel=0.05)
        noise = x2 - latent if period == 1 else x2
        assert noise.var() == pytest.approx(period, rel=0.05)
        assert np.corrcoef(latent, noise)[0, 1] == pytest.approx(0, abs=0.03)
    assert data.variances_train.tolist() == [0.1, 1.0]
    assert data.variances_test.tolist() == [0.25, 1.44]


def test_a_third_of_period_2_lies_outside_of_period_1_unless_rescaled():
    plain = make_moneda_support(random_state=0)
    first, second = (plain.X_train[plain.eras_train == era, 0] for era in (1, 2))
    outside = (second < first.min()) | (second > first.max())
    assert np.mean(outside) == pytest.approx(1 / 3, abs=0.05)
    assert second.min() < first.min() < first.max() < second.max()
    scaled = make_moneda_support(rescale=True, random_state=0)
    for part in PARTS:
        assert np.array_equal(plain[f"latent_{part}"], scaled[f"latent_{part}"])
        for period in np.unique(plain[f"eras_{part}"]):
            rows = plain[f"eras_{part}"] == period
            X = scaled[f"X_{part}"][rows]
            assert X.min(axis=0) == pytest.approx([0, 0], abs=1e-12)
            assert X.max(axis=0) == pytest.approx([1, 1])
            before = plain[f"X_{part}"][rows]
            assert np.array_equal(X.argsort(axis=0), before.argsort(axis=0))


def test_motivating_example_of_moneda_has_the_thesis_areas():
    data = make_moneda_motivating_example()
    for part, areas in (("train", (2 / 3, 3 / 4)), ("test", (2 / 3, 1 / 2))):
        for feature, threshold, area in ((0, 4, areas[0]), (1, 1, areas[1])):
            score = data[f"X_{part}"][:, feature] > threshold
            assert roc_auc_score(data[f"y_{part}"], score) == pytest.approx(area)


def test_copies_of_the_motivating_example():
    once = make_moneda_motivating_example()
    data = make_moneda_motivating_example(n_copies=20)
    assert (data.X_train.shape, data.X_test.shape) == ((240, 2), (120, 2))
    for part in PARTS:
        rows, few = (
            np.column_stack([d[f"X_{part}"], d[f"y_{part}"], d[f"eras_{part}"]])
            for d in (data, once)
        )
        unique, counts = np.unique(rows, axis=0, return_counts=True)
        assert set(counts) == {20}
        assert np.array_equal(unique, np.unique(few, axis=0))
    once.X_train[:] = 0  # which changes it for no other
    assert make_moneda_motivating_example().X_train.min() == 1
