"""Symmetric trees against their definition, and whatever takes boosters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn._loss.loss import HalfBinomialLoss
from threadpoolctl import threadpool_limits

from helpers.grids import on_grid
from sklearn_era.ensemble._boosters.estimators import (
    SymmetricClassifier,
    SymmetricRegressor,
)
from sklearn_era.inspection import shap_values
from sklearn_era.interop import to_sklearn

L2 = 2.0
PARAMS = {"max_depth": 4, "max_leaf_nodes": None, "l2_regularization": L2,
          "max_iter": 5, "learning_rate": 0.3, "early_stopping": False,
          "categorical_features": [3], "random_state": 0}  # fmt: skip


def make(seed, n=600):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 5)), 1)
    X[rng.random(n) < 0.2, 1] = np.nan
    X[:, 3] = rng.integers(0, 9, n)
    X[rng.random(n) < 0.1, 3] = np.nan
    X[:, 4] = 1.0
    y = X[:, 0] * np.nan_to_num(X[:, 1], nan=1.5) + (X[:, 3] % 3 == 1)
    return X, y + 0.1 * rng.normal(size=n), rng.integers(1, 4, n).astype(float)


def best_split(X, g, h, nodes):
    """The largest gain of a level, and the rows that such a split sends left."""
    best = (0.0, None)
    for j, x in enumerate(X.T):
        known = ~np.isnan(x)
        if j == 3:
            codes = np.where(known, x, 99)
            kinds = [c for c in np.unique(codes) if h[codes == c].sum() * len(x)
                     >= 10 * h.sum()]  # fmt: skip
            means = [g[codes == c].sum() / (h[codes == c].sum() + 10) for c in kinds]
            order = np.array(kinds)[np.argsort(means, kind="stable")]
            sides = [np.isin(codes, order[: i + 1]) for i in range(len(order))]
        else:
            sides = [x <= t for t in np.unique(x[known])]
            sides += [side | ~known for side in sides] if (~known).any() else []
        for left in sides:
            gain = sum(
                sign * g[part].sum() ** 2 / (h[part].sum() + L2)
                for node in np.unique(nodes)
                for part, sign in [
                    ((nodes == node) & left, 1), ((nodes == node) & ~left, 1),
                    (nodes == node, -1),
                ]
            )  # fmt: skip
            if gain > best[0] * (1 + 1e-9):
                best = gain, left
    return best


def grow(X, g, h):
    """The leaf of each row of a tree by the definition, and the gain of its levels."""
    nodes, total = np.zeros(len(g), dtype=int), 0.0
    for level in range(PARAMS["max_depth"]):
        gain, left = best_split(X, g, h, nodes)
        if left is None:
            break
        nodes, total = nodes + (~left << level), total + gain
    return nodes, total


@on_grid("seed weighted is_class", range(3), [False, True], [False, True], every=2)
def test_trees_are_those_of_the_definition(seed, weighted, is_class):
    X, y, weights = make(seed)
    weights = weights / weights.mean() if weighted else np.ones(len(y))
    kind, raw = SymmetricRegressor, np.full(len(y), np.average(y, weights=weights))
    if is_class:
        kind, y = SymmetricClassifier, (y > 0.3).astype(float)
        mean = np.average(y, weights=weights)
        raw[:] = np.log(mean / (1 - mean))
    model = kind(**PARAMS).fit(X, y, sample_weight=weights if weighted else None)
    for (tree,) in model._predictors:
        g, h = weights * (raw - y), weights
        if is_class:
            g, h = HalfBinomialLoss().gradient_hessian(y, raw, weights)
        nodes, gain = grow(X, g.astype(np.float32), h.astype(np.float32))
        assert tree.get_max_depth() <= 4
        # Splits that leave a side empty are none, and gains of nodes are cut off at 0.
        assert tree.nodes[tree.nodes["is_leaf"] == 0]["gain"].sum() >= gain * (1 - 1e-5)
        sums = np.array([np.bincount(nodes, x, 16) for x in (g, h)])
        raw = raw - 0.3 * (sums[0] / (sums[1] + L2))[nodes]
        got = model._raw_predict(X)[:, 0] if tree is model._predictors[-1][0] else None
        if got is not None:
            assert_allclose(got, raw, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("loss", ["absolute_error", "quantile", "poisson", "gamma"])
def test_losses_set_the_values_of_leaves(loss):
    X, y, _ = make(1)
    y = abs(y) + 0.1
    params = PARAMS | {"max_iter": 60, "quantile": 0.5 if loss == "quantile" else None}
    model = SymmetricRegressor(loss, **params).fit(X, y)
    assert np.mean(abs(model.predict(X) - y)) < 0.7 * np.mean(abs(np.median(y) - y))


def test_classes_threads_and_weights_without_rows():
    X, y, weights = make(2, 4_000)
    labels, fits = np.digitize(y, [0, 0.7]), []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "openmp"):
            fits.append(SymmetricClassifier(**PARAMS).fit(X, labels).predict_proba(X))
    assert_array_equal(*fits)
    zero = np.where(np.arange(len(y)) % 2, weights, 0.0)
    assert np.isfinite(SymmetricRegressor(**PARAMS).fit(X, y, zero).predict(X)).all()
    many = SymmetricRegressor(**PARAMS).fit(X, y, np.full(len(y), 1e-3))
    assert_allclose(many.predict(X), SymmetricRegressor(**PARAMS).fit(X, y).predict(X),
                    rtol=1e-4, atol=1e-4)  # fmt: skip


@pytest.mark.parametrize("categories", [[3], None])
def test_boosters_tools_take_them(categories):
    X, y, _ = make(3)
    model = SymmetricRegressor(**PARAMS | {"categorical_features": categories})
    model.fit(X, y)
    new = make(4)[0]
    explained = shap_values(model, new[:20])
    assert_allclose(explained.values.sum(axis=1) + explained.base_values,
                    model.predict(new[:20]))  # fmt: skip
    assert_array_equal(to_sklearn(model).predict(new), model.predict(new))
    assert model.feature_importances_[4] == 0
    assert model.feature_importances_.sum() == pytest.approx(1)
