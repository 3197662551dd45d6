"""Moneda's synthetic data: what they are made of.

Moneda (2021), Domain Generalization, Invariance and the Time Robust Forest (thesis).
"""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from sklearn_era.datasets import (
    make_moneda_drift,
    make_moneda_motivating_example,
    make_moneda_support,
)

PARTS = ("train", "test")


# --- sections 5.3.3 and 5.3.5


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


# --- section 5.3.6


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


def test_a_third_of_period_2_lies_outside_of_period_1():
    data = make_moneda_support(random_state=0)
    first, second = (data.X_train[data.eras_train == period, 0] for period in (1, 2))
    outside = (second < first.min()) | (second > first.max())
    assert np.mean(outside) == pytest.approx(1 / 3, abs=0.05)
    assert second.min() < first.min() < first.max() < second.max()


def test_rescaled_periods_have_one_support():
    plain = make_moneda_support(random_state=0)
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


# --- the motivating example


def test_motivating_example_of_moneda_has_the_thesis_areas():
    data = make_moneda_motivating_example()
    for part, areas in (("train", (2 / 3, 3 / 4)), ("test", (2 / 3, 1 / 2))):
        for feature, threshold, area in ((0, 4, areas[0]), (1, 1, areas[1])):
            score = data[f"X_{part}"][:, feature] > threshold
            assert roc_auc_score(data[f"y_{part}"], score) == pytest.approx(area)


def test_copies_of_the_motivating_example():
    once = make_moneda_motivating_example()
    data = make_moneda_motivating_example(n_copies=20)
    assert data.X_train.shape == (240, 2)
    assert data.X_test.shape == (120, 2)
    for part in PARTS:
        rows, few = (
            np.column_stack([d[f"X_{part}"], d[f"y_{part}"], d[f"eras_{part}"]])
            for d in (data, once)
        )
        unique, counts = np.unique(rows, axis=0, return_counts=True)
        assert set(counts) == {20}
        assert np.array_equal(unique, np.unique(few, axis=0))


def test_the_motivating_example_cannot_be_changed_for_others():
    make_moneda_motivating_example().X_train[:] = 0
    assert make_moneda_motivating_example().X_train.min() == 1
