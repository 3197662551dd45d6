"""The synthetic data of the papers: their moments and their parts."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from experiments import _paper_data as paper

UNIT_TESTS = [paper.make_small_invariant_margin, paper.make_cows_versus_camels]
GENERATORS = [
    *UNIT_TESTS, paper.make_colored_digits, paper.make_moneda_drift,
    paper.make_liao_classification, paper.make_liao_regression,
    paper.make_shifted_sine_wave, paper.make_shortcut_classification]  # fmt: skip


def rows_of_era(data, era, parts=("train", "test")):
    """Features and target of one era, from whichever of the parts has it."""
    for part in parts:
        rows = data[f"eras_{part}"] == era
        if rows.any():
            return data[f"X_{part}"][rows], data[f"y_{part}"][rows]
    raise AssertionError(f"no era {era}")


@pytest.mark.parametrize("make", GENERATORS)
def test_parts_have_names_shapes_and_the_same_rows_again(make):
    data, again, other = make(3), make(3), make(4)
    parts = ["train", "test", *(["ood"] if make in UNIT_TESTS else [])]
    for part in parts:
        X, y, eras = (data[f"{key}_{part}"] for key in ("X", "y", "eras"))
        assert X.shape == (y.size, len(set(data.feature_names)))
        assert eras.shape == y.shape
        assert (X.dtype, eras.dtype) == (np.float64, np.int64)
        assert np.all(np.diff(eras) >= 0)
        assert y.dtype != np.int64 or set(y) == {0, 1}
        assert np.array_equal(X, again[f"X_{part}"])
        assert not np.array_equal(X, other[f"X_{part}"])
    assert not np.isin(data[f"eras_{parts[-1]}"], data.eras_train).any()


def test_sine_wave_is_signal_shift_and_noise():
    """DeLise, section 5.1."""
    data = paper.make_shifted_sine_wave(0, n_eras=300, n_samples_per_era=200)
    x = data.X_train[:, 0]
    assert 0 <= x.min() < 0.01
    assert 2 * np.pi - 0.01 < x.max() <= 2 * np.pi
    assert np.array_equal(data.signal_train, np.sin(x))
    rest = (data.y_train - np.sin(x)).reshape(300, 200)
    shifts = rest.mean(axis=1)
    assert [shifts.mean(), shifts.std()] == pytest.approx([0, 1], abs=0.15)
    noise = rest - shifts[:, np.newaxis]
    assert noise.std() == pytest.approx(1, abs=0.01)
    assert np.corrcoef(noise.ravel(), x)[0, 1] == pytest.approx(0, abs=0.02)
    options = {"n_test_eras": 200, "shift_range": 2.0, "noise_std": 2.0}
    data = paper.make_shifted_sine_wave(0, n_samples_per_era=200, **options)
    rest = (data.y_test - data.signal_test).reshape(200, 200)
    shifts = rest.mean(axis=1)
    assert [shifts.mean(), shifts.var()] == pytest.approx([1, 1 / 3], abs=0.1)
    assert (rest - shifts[:, np.newaxis]).std() == pytest.approx(2, abs=0.02)


def test_equation_23_of_liao_is_noisy_copies_of_the_label():
    data = paper.make_liao_classification(0, n_features=3, n_samples_per_era=20_000)
    assert data.feature_names[2:4] == ["invariant_2", "shortcut_0"]
    for era, flip in enumerate(paper.LIAO_FLIPS, start=1):
        X, y = rows_of_era(data, era)
        assert y.mean() == pytest.approx(0.5, abs=0.02)
        # A copy that is wrong with probability q has the mean q or 1 - q by class, and
        # the variance q (1 - q) beside that of the noise; copies are independent.
        q = np.array([0.3] * 3 + [flip] * 3)
        for label, mean in ((0, q), (1, 1 - q)):
            assert X[y == label].mean(axis=0) == pytest.approx(mean, abs=0.04)
            expected = np.diag(1 + q * (1 - q))
            assert np.cov(X[y == label].T) == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("n_features", [2, 10])
def test_moments_of_equation_24_of_liao(n_features):
    sizes = {"n_features": n_features, "n_samples_per_era": 20_000}
    data = paper.make_liao_regression(0, **sizes)
    for era, sigma in enumerate(paper.LIAO_NOISE, start=1):
        X, y = rows_of_era(data, era)
        causes, effect = X[:, :n_features], X[:, n_features]
        assert np.cov(causes.T) == pytest.approx(np.eye(n_features), abs=0.05)
        residual = y - causes.sum(axis=1)
        assert residual.var() / n_features == pytest.approx(1, abs=0.05)
        noise = effect - y
        assert noise.var() / n_features == pytest.approx(sigma**2, rel=0.05)
        # Both noises are independent of each other and of the causes.
        seen = np.corrcoef(np.column_stack([causes, residual, noise]).T)
        assert seen == pytest.approx(np.eye(len(seen)), abs=0.04)


def test_equations_5_5_and_5_6_of_moneda():
    data = paper.make_moneda_drift(0, n_samples_per_era=20_000)
    for period in (1, 2, 3, 4):
        X, y = rows_of_era(data, period)
        x1, x2 = X.T
        assert y.mean() == pytest.approx(0.362, abs=0.01)
        assert [x1.mean(), x1.var()] == pytest.approx([0, 1], abs=0.05)
        assert roc_auc_score(y, x1) == pytest.approx(0.836, abs=0.01)
        if period == 1:  # X_2 is the target
            assert np.array_equal(y, x2 > 0.5)
            assert [x2.var(), np.cov(x1, x2)[0, 1]] == pytest.approx([2, 1], abs=0.05)
        else:
            assert x2.var() == pytest.approx(1, abs=0.04)
            assert roc_auc_score(y, x2) == pytest.approx(0.5, abs=0.02)


def test_without_shift_moneda_s_second_feature_stays_what_it_is():
    exact = paper.make_moneda_drift(0, has_shift=False)
    noise = {"shortcut_noise_std": 1.0, "n_samples_per_era": 5000}
    noisy = paper.make_moneda_drift(0, has_shift=False, **noise)
    limits = {"max_depth": 30, "min_samples_split": 20, "min_impurity_decrease": 0.01}
    tree = DecisionTreeClassifier(**limits, random_state=0)
    tree.fit(noisy.X_train, noisy.y_train)
    for part in ("train", "test"):
        assert np.array_equal(exact[f"y_{part}"], exact[f"X_{part}"][:, 1] > 0.5)
        X, y = noisy[f"X_{part}"], noisy[f"y_{part}"]
        # Y given both features is normal about half of their sum.
        assert roc_auc_score(y, X.sum(axis=1)) == pytest.approx(0.922, abs=0.01)
        # Section 5.3.5 has 0.87 in training and in the holdout.
        scores = tree.predict_proba(X)[:, 1]
        assert roc_auc_score(y, scores) == pytest.approx(0.87, abs=0.01)


def test_moments_of_the_small_invariant_margin():
    """This and the next one are unit tests of Aubin et al."""
    sizes = {"n_eras": 2, "n_ood_eras": 3, "n_samples_per_era": 5000}
    data = paper.make_small_invariant_margin(0, **sizes, n_invariant=2)
    assert data.is_invariant.tolist() == [True] * 2 + [False] * 5
    for part, eras in (("train", (0, 1)), ("test", (0, 1)), ("ood", (2, 3, 4))):
        assert tuple(np.unique(data[f"eras_{part}"])) == eras
        for era in eras:
            X, y = rows_of_era(data, era, [part])
            assert y.size == 5000
            assert y.mean() == pytest.approx(0.5, abs=0.03)
            center = np.array([0.1, 0.1, *data.means[era]])
            noise = X - np.where(y == 0, 1, -1)[:, np.newaxis] * center
            assert noise.mean(axis=0) == pytest.approx(np.zeros(7), abs=0.01)
            assert np.cov(noise.T) == pytest.approx(0.01 * np.eye(7), abs=0.002)
    assert not np.array_equal(data.X_train, data.X_test)
    means = paper.make_small_invariant_margin(1, n_eras=2000, n_samples_per_era=1).means
    assert np.cov(means.T) == pytest.approx(np.eye(5), abs=0.1)


def test_shares_of_cows_and_of_their_backgrounds():
    sizes = {"n_eras": 5, "n_samples_per_era": 5000, "n_invariant": 3}
    data = paper.make_cows_versus_camels(0, **sizes)
    assert data.background_shares[:3].tolist() == [0.95, 0.97, 0.99]
    assert data.cow_shares[:3].tolist() == [0.3, 0.5, 0.7]
    assert np.all((data.background_shares >= 0.9) & (data.background_shares <= 1))
    assert np.all((data.cow_shares >= 0.3) & (data.cow_shares <= 0.7))
    for part in ("train", "test", "ood"):
        foreground, background = np.split(data[f"X_{part}"], [3], axis=1)
        cow, grass = foreground.sum(axis=1) > 0, background.sum(axis=1) > 0
        assert np.array_equal(cow, data[f"y_{part}"] == 1)
        noise = foreground / 0.01 - np.where(cow, 1, -1)[:, np.newaxis]
        assert np.cov(noise.T) == pytest.approx(0.1 * np.eye(3), abs=0.01)
        noise = background - np.where(grass, 1, -1)[:, np.newaxis]
        assert np.cov(noise.T) == pytest.approx(0.1 * np.eye(5), abs=0.01)
        eras = data[f"eras_{part}"]
        assert np.array_equal(np.unique(eras), np.arange(5) + 5 * (part == "ood"))
        for era in range(5):
            rows = eras % 5 == era
            p, s = data.background_shares[era], data.cow_shares[era]
            assert cow[rows].mean() == pytest.approx(s, abs=0.03)
            both = np.cov(cow[rows], grass[rows])[0, 1]
            # (P(cow, grass) - P(cow) P(grass)) of the equations.
            expected = p * s - s * (p * s + (1 - p) * (1 - s))
            assert both == pytest.approx(0 if part == "ood" else expected, abs=0.02)


@pytest.mark.parametrize("make", UNIT_TESTS)
def test_scrambled_rows_are_the_same_ones_rotated(make):
    plain, data = (make(0, n_samples_per_era=99, scramble=s) for s in (False, True))
    assert data.feature_names == [f"mixed_{index}" for index in range(10)]
    assert not data.is_invariant.any()
    assert np.array_equal(plain.rotation, np.eye(10))
    assert data.rotation @ data.rotation.T == pytest.approx(np.eye(10), abs=1e-12)
    assert np.linalg.det(data.rotation) == pytest.approx(1)
    for part in ("train", "test", "ood"):
        assert np.array_equal(data[f"y_{part}"], plain[f"y_{part}"])
        unscrambled = data[f"X_{part}"] @ data.rotation.T
        assert unscrambled == pytest.approx(plain[f"X_{part}"], abs=1e-12)


@pytest.mark.parametrize("make", UNIT_TESTS)
def test_a_majority_takes_its_share_of_the_training_rows(make):
    data = make(0, n_eras=4, n_samples_per_era=100, majority_share=0.9)
    assert np.bincount(data.eras_train).tolist() == [360, 14, 13, 13]
    assert np.bincount(data.eras_test).tolist() == [100] * 4


def test_colored_digits_are_digits_in_color():
    data = paper.make_colored_digits(0)
    known, digits = load_digits(return_X_y=True)
    digit_of = {tuple(image): digit for image, digit in zip(known, digits, strict=True)}
    seen = []
    for part, n_rows in (("train", 1198), ("test", 599)):
        channels = data[f"X_{part}"].reshape(n_rows, 2, 64) * 16
        color, rows = data[f"color_{part}"], np.arange(n_rows)
        assert not channels[rows, color].any()  # channel 0 is that of color 1
        images = channels[rows, 1 - color]
        found = [digit_of[tuple(image)] for image in images]
        assert np.array_equal(data[f"digit_{part}"], found)
        wrong = (data[f"digit_{part}"] >= 5) != data[f"y_{part}"]
        assert wrong.mean() == pytest.approx(0.25, abs=0.05)
        for era in np.unique(data[f"eras_{part}"]):
            of_era = data[f"eras_{part}"] == era
            misleads = color[of_era] != data[f"y_{part}"][of_era]
            assert misleads.mean() == pytest.approx(paper.COLOR_FLIPS[era], abs=0.05)
        seen += map(tuple, images)
    assert sorted(seen) == sorted(map(tuple, known))  # each of them once


def test_components_are_coordinates_of_the_same_pixels():
    pixels = paper.make_colored_digits(0)
    data = paper.make_colored_digits(0, n_components=20)
    assert data.feature_names[19:] == ["component_19"]
    assert np.array_equal(data.y_train, pixels.y_train)
    centred = pixels.X_train - pixels.X_train.mean(axis=0)
    singular = np.linalg.svd(centred, compute_uv=False)[:20]
    assert np.linalg.norm(data.X_train, axis=0) == pytest.approx(singular)
    whole = paper.make_colored_digits(0, n_components=128)
    for one, other in ((0, 1), (5, 900)):
        apart = (x.X_test[one] - x.X_train[other] for x in (whole, pixels))
        found, expected = map(np.linalg.norm, apart)
        assert found == pytest.approx(expected)


def test_an_intervention_turns_the_features_behind_the_mediator_round():
    """Du et al., example 1."""
    sizes = {"n_samples": 40_000, "n_samples_test": 40_000}
    data = paper.make_anticausal_intervention(0, **sizes, invariant_strength=1.5)
    assert np.bincount(data.eras_train).tolist() == [36_000, 4000]
    assert np.bincount(data.eras_test).tolist() == [20_000, 20_000]
    # One mediator: its noise is common to the variant features.
    covariance = np.eye(10)
    covariance[5:, 5:] = 0.5**2 + 0.5**2 * np.eye(5)
    for part in ("train", "test"):
        for era, turned in ((0, 1), (1, -1)):
            X, y = rows_of_era(data, era, [part])
            means = np.array([0.75] * 5 + [2.0 * turned] * 5)
            noise = X - (2 * y - 1)[:, np.newaxis] * means
            assert noise.mean(axis=0) == pytest.approx(np.zeros(10), abs=0.08)
            assert np.cov(noise.T) == pytest.approx(covariance, abs=0.12)
    guess = data.X_test[:, data.is_invariant].sum(axis=1) > 0
    accuracy = np.mean(guess == data.y_test)
    assert accuracy == pytest.approx(data.invariant_accuracy, abs=0.01)


def test_the_shortcut_follows_the_strengths_and_shifts_of_the_eras():
    data = paper.make_shortcut_classification(0, n_samples_per_era=3000)
    assert np.bincount(data.shortcut_shifts).tolist() == [14, 2]
    assert np.sum(data.shortcut_strengths == 0) == 4
    strengths = np.append(data.shortcut_strengths, [3.0] * 4)
    strengths *= 1 - 2 * np.append(data.shortcut_shifts, [1] * 4)
    for era, strength in enumerate(strengths):
        X, y = rows_of_era(data, era)
        shown = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
        expected = [-1.0] * 3 + [1.0] * 3 + [-strength, strength]
        assert shown == pytest.approx(np.array(expected), abs=0.2)
    sums = data.X_test[:, :6].reshape(-1, 2, 3).sum(axis=2)
    accuracy = np.mean(sums.argmax(axis=1) == data.y_test)
    assert accuracy == pytest.approx(data.invariant_accuracy, abs=0.01)
