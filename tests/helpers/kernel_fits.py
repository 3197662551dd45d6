"""Fits that show by which of its ways the era kernel made their histograms."""

from functools import partial
from unittest.mock import patch

import numpy as np

from helpers.criteria import ERA_CRITERIA
from helpers.trees import n_splits, trees_of
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.ensemble._boosters import hooks
from sklearn_era.ensemble._criterion_plan import choose_splitter
from sklearn_era.ensemble._exchange import ALONE, Exchange
from sklearn_era.ensemble._splitting.splitter import EraSplitter
from sklearn_era.ensemble._splitting.tree_grower import EraTreeGrower

CRITERIA = ERA_CRITERIA


class OneOfSeveral(Exchange):
    """One process on the path of several; counts what it sends."""

    is_alone = False

    def __init__(self):
        self.n_sums = self.n_bytes = 0

    def sum(self, values):
        self.n_sums += 1
        self.n_bytes += values.nbytes
        return values.copy()


def make_eras(n_eras, n_per_era, n_bins, n_features=4, seed=0, missing=0.0):
    """Integers to bin as they are, a target of integers, and eras in no order. Eras
    agree on feature 0 and contradict each other on feature 1. The mean of the target is
    the same in any order of the rows, and so are its gradients.
    """
    rng = np.random.default_rng(seed)
    n_samples = n_eras * n_per_era
    eras = rng.permutation(np.repeat(np.arange(n_eras), n_per_era))
    X = rng.integers(0, n_bins, size=(n_samples, n_features)).astype(float)
    score = X[:, 0] / n_bins + (eras % 3 - 1) * X[:, 1] / n_bins
    score += 0.5 * X[:, 2] / n_bins + 0.2 * rng.normal(size=n_samples)
    if missing:
        X[rng.random(X.shape) < missing] = np.nan
    return X, np.round(100 * score), eras


def hessians_that_vary(kind, y):
    """Parameters of `fit`, and a target, with which rows have two words each."""
    if kind == "poisson":
        return {"loss": "poisson"}, y - y.min()
    # Sums of these are the same in any order, and so is the mean of the target.
    weights = np.random.default_rng(1).choice([0.0, 0.25, 1.0, 3.5], size=len(y))
    return {"weights": weights}, y


def fit(
    data, criterion, *, weights=None, store_budget=None, grower=EraTreeGrower,
    exchange=ALONE, **params
):  # fmt: skip
    """Fit with `store_budget` bytes for histograms; the model and its splitter."""
    X, y, eras = data
    params = {
        "max_iter": 3, "learning_rate": 0.5, "min_samples_leaf": 5, "max_leaf_nodes": 8,
        "early_stopping": False, "random_state": 0, "min_gain_share": 0.0,
    } | criterion | params  # fmt: skip
    if params.get("min_era_coverage", 1.0) == 1.0:
        params["min_era_coverage"] = 0.3  # for trees of some size
    made = []

    class Model(HistGradientBoostingRegressor):
        def _make_era_splitter(self, eras, eras_val, y, sample_weight):
            super()._make_era_splitter(eras, eras_val, y, sample_weight)
            assert self._fit_state.era_splitter is not None
            make = partial(EraSplitter, store_budget=store_budget)
            plan = self._fit_state.plan
            more = {"penalties": self._fit_state.penalties, "exchange": exchange}
            given = eras, y, sample_weight, make
            made.append(choose_splitter(self, plan, *given, **more))
            self._fit_state.era_splitter = made[-1]

    model = Model(**params)
    with patch.object(hooks, "EraTreeGrower", grower):
        model.fit(X, y, weights, eras=eras)
    assert n_splits(model) > 2, "trees too small to tell ways apart"
    return model, made[0]


def assert_same_nodes(a, b, features=None) -> None:
    """Compare all trees bit for bit; features of `a` have other numbers in `b`."""
    for ours, theirs in zip(trees_of(a), trees_of(b), strict=True):
        expected = ours.nodes.copy()
        if features is not None:
            inner = expected["is_leaf"] == 0
            numbers = expected["feature_idx"][inner]
            expected["feature_idx"][inner] = np.asarray(features)[numbers]
        assert np.array_equal(expected, theirs.nodes)
