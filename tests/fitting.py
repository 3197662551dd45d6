"""Data with eras, estimators for them, and what it means that two fits are the same."""

import numpy as np

N_SAMPLES = 400


def make_data(target: str = "real", n_samples: int = N_SAMPLES, seed: int = 0):
    """X with missing values and a categorical column 0, y, weights and eras."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 5))
    X[:, 0] = rng.integers(0, 6, n_samples)
    X[rng.random(X.shape) < 0.1] = np.nan
    eras = rng.integers(0, 4, n_samples)
    score = np.nan_to_num(X[:, 1]) + np.nan_to_num(X[:, 2]) * (eras - 1.5)
    score = score + (X[:, 0] == 2) + 0.3 * rng.normal(size=n_samples)
    y = {
        "real": lambda: score,
        "positive": lambda: np.exp(score),
        "count": lambda: rng.poisson(np.exp(score / 2)),
        "binary": lambda: np.where(score > 0, "up", "down"),
        "multiclass": lambda: np.digitize(score, [-1, 1]),
    }[target]()
    weights = rng.choice([0.0, 0.3, 1.0, 2.5], size=n_samples)
    return X, y, weights, eras


def make_only_category(n_samples: int = 600):
    """X with a category or a missing value, other categories and a number, and y.

    Each splits the target on its own; y is what trees can reach.
    """
    rng = np.random.default_rng(0)
    only = np.where(rng.random(n_samples) < 0.5, 0.0, np.nan)
    other = rng.integers(0, 4, n_samples).astype(float)
    number = rng.integers(0, 2, n_samples).astype(float)
    y = 3.0 * np.isnan(only) + 10.0 * np.isin(other, [0, 2]) + number
    return np.column_stack([only, other, number]), y, np.arange(n_samples) % 2


def two_features(effects, n_repeats=8):
    """Two features of values 0 and 1, in a full factorial design within each era.

    `effects` has shape (2, n_eras): half of what a feature adds to the target. With n
    rows an era, the gain of a feature within it is n times the effect squared.
    """
    effects = np.asarray(effects)
    X, y, eras = [], [], []
    for era, (first, second) in enumerate(effects.T):
        for a in (0, 1):
            for b in (0, 1):
                X += n_repeats * [(a, b)]
                y += n_repeats * [first * (2 * a - 1) + second * (2 * b - 1)]
                eras += n_repeats * [era]
    return np.array(X, dtype=float), np.array(y), np.array(eras)


def assert_same_model(ours, theirs, X) -> None:
    """Compare all that a fit leaves behind, bit for bit."""
    assert ours.n_iter_ == theirs.n_iter_
    np.testing.assert_array_equal(
        ours._baseline_prediction, theirs._baseline_prediction
    )
    for our_trees, their_trees in zip(
        ours._predictors, theirs._predictors, strict=True
    ):
        for our_tree, their_tree in zip(our_trees, their_trees, strict=True):
            for name in ("nodes", "binned_left_cat_bitsets", "raw_left_cat_bitsets"):
                assert np.array_equal(
                    getattr(our_tree, name), getattr(their_tree, name)
                ), name
    for name in ("train_score_", "validation_score_"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    for method in ("predict", "predict_proba", "decision_function", "_raw_predict"):
        if hasattr(theirs, method):
            assert np.array_equal(
                getattr(ours, method)(X), getattr(theirs, method)(X)
            ), method


def make_estimator(module, target: str, **params):
    """The estimator of a module for a target."""
    is_class = target in ("binary", "multiclass")
    name = f"HistGradientBoosting{'Classifier' if is_class else 'Regressor'}"
    params = {"max_iter": 5, "min_samples_leaf": 5, "random_state": 7} | params
    return getattr(module, name)(**params)


def assert_same_splits(a, b, rtol=1e-6) -> None:
    """Compare splits exactly and values up to rounding."""
    trees = [[t for ts in m._predictors for t in ts] for m in (a, b)]
    for one, other in zip(*trees, strict=True):
        for name in ("feature_idx", "bin_threshold", "missing_go_to_left", "count"):
            np.testing.assert_array_equal(one.nodes[name], other.nodes[name])
        np.testing.assert_array_equal(
            one.binned_left_cat_bitsets, other.binned_left_cat_bitsets
        )
        np.testing.assert_allclose(
            one.nodes["value"], other.nodes["value"], rtol=rtol, atol=1e-8
        )
