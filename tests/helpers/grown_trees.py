"""Trees of a forest, grown from made-up rows with small nodes and without."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from helpers.criteria import DEVIATIONS, ERA_CRITERIA, RATIO
from sklearn_era.ensemble import EraForestRegressor
from sklearn_era.ensemble._criteria.objects import Criterion
from sklearn_era.ensemble._criterion_plan import CriterionPlan, make_criterion
from sklearn_era.ensemble._forests.tree_grower import (
    TreeBins,
    TreeLimits,
    grow_tree,
)
from sklearn_era.ensemble._splitting.splitter import EraSplitter

MISSING = 255

# No limit to the growth.
FULL = TreeLimits(
    max_depth=None, max_leaf_nodes=None, min_samples_leaf=1, min_gain_to_split=0.0,
    l2_regularization=0.0, max_features=None,
)  # fmt: skip

# By parameters of estimators; the ratio wants rows that are binary, and deviations no
# weights.
CRITERIA = ERA_CRITERIA | {"invariant, ratio": RATIO} | DEVIATIONS


@dataclass(frozen=True)
class Rows:
    """The rows of a tree, sorted by era; bins are the integers of X, rounded down."""

    X_binned: np.ndarray
    target: np.ndarray
    hessians: np.ndarray
    eras: np.ndarray
    bins: TreeBins

    @property
    def gradients(self) -> np.ndarray:
        return (-self.target * self.hessians).astype(np.float32)

    @property
    def n_eras(self) -> int:
        return int(self.eras.max()) + 1

    @property
    def X(self) -> np.ndarray:
        return np.where(self.X_binned == MISSING, np.nan, self.X_binned.astype(float))


def make_rows(
    n_rows: int = 600, n_features: int = 5, n_bins: int = 255, n_eras: int = 3, *,
    missing: float = 0.0, is_binary: bool = False, has_weights: bool = False,
    seed: int = 0,
) -> Rows:  # fmt: skip
    """Rows whose sums are exact, weights and targets being multiples of 1/64. Eras
    agree on feature 0 and contradict each other on feature 1, of which the last feature
    is a copy. Every third feature has a quarter of the bins.
    """
    rng = np.random.default_rng(seed)
    eras = np.sort(rng.integers(0, n_eras, n_rows)).astype(np.int32)
    eras = np.unique(eras, return_inverse=True)[1].astype(np.int32)
    n_used = np.array(
        [n_bins if i % 3 else max(2, n_bins // 4) for i in range(n_features)]
    )
    n_used[-1] = n_used[min(1, n_features - 1)]
    X = rng.integers(0, n_used, size=(n_rows, n_features)).astype(np.uint8)
    share = X / n_used
    target = share[:, 0] + 0.3 * rng.normal(size=n_rows)
    target += (eras % 3 - 1) * share[:, min(1, n_features - 1)]
    target = np.round(64 * (target - target.mean())) / 64
    if is_binary:
        target = (target > 0) - 0.5
    is_missing = rng.random(X.shape) < missing
    is_missing[:, 1::2] = False
    X[is_missing] = MISSING
    X[:, -1] = X[:, min(1, n_features - 1)]
    hessians = np.ones(1, dtype=np.float32)
    if has_weights:
        weights = np.array([0, 0.25, 0.5, 1, 2, 4], dtype=np.float32)
        hessians = rng.choice(weights, size=n_rows)
    bins = TreeBins(
        n_bins=MISSING + 1, n_bins_non_missing=n_used.astype(np.uint32),
        has_missing_values=(X == MISSING).any(axis=0).astype(np.uint8),
        is_categorical=np.zeros(n_features, dtype=np.uint8),
        bin_thresholds=[np.arange(n - 1) + 0.5 for n in n_used],
    )  # fmt: skip
    return Rows(np.asfortranarray(X), target, hessians, eras, bins)


def with_categories(rows: Rows) -> Rows:
    """The same rows, every other feature taken for categorical. A bin stands for
    another category in X, which only the raw bitsets have.
    """
    n_bins = rows.bins.n_bins_non_missing
    is_categorical = (np.arange(n_bins.size) % 2 == 0).astype(np.uint8)
    values = list(rows.bins.bin_thresholds)
    values[::2] = [np.arange(float(n))[::-1] for n in n_bins[::2]]
    bins = rows.bins._replace(is_categorical=is_categorical, bin_thresholds=values)
    return replace(rows, bins=bins)


def grow(
    rows: Rows, criterion: str | None = None, limits: TreeLimits = FULL, *,
    small_node_rows: int = 1024, seed: int = 0, penalties: Any = None, **params: Any,
) -> Any:  # fmt: skip
    """Grow a tree by a criterion of `CRITERIA` with further `params` of an estimator,
    or by the gain; the `penalties` of features are below 1.
    """
    splitter = None
    if penalties is not None:
        penalties = np.asarray(penalties, dtype=np.float64)
    if criterion is None and penalties is not None:
        splitter = EraSplitter(
            np.zeros_like(rows.eras), 1, None, Criterion("gain", min_covered_eras=0),
            penalties=penalties,
        )  # fmt: skip
    elif criterion is not None:
        forest = EraForestRegressor(**CRITERIA[criterion] | params)
        plan = CriterionPlan.from_estimator(forest)
        weights: tuple[np.ndarray, ...] = ()
        if plan.criterion._needs_target:
            weight = np.broadcast_to(rows.hessians, rows.target.shape)
            weight = np.ascontiguousarray(weight, dtype=np.float32)
            weights = (np.where(rows.target > 0, weight, np.float32(0)), weight)
        splitter = EraSplitter(
            rows.eras, rows.n_eras, None, make_criterion(plan, rows.n_eras),
            *weights, penalties=penalties,
        )  # fmt: skip
    return grow_tree(
        rows.X_binned, rows.gradients, rows.hessians, bins=rows.bins, limits=limits,
        rng=np.random.default_rng(seed), n_threads=1, era_splitter=splitter,
        small_node_rows=small_node_rows,
    )  # fmt: skip


def assert_same_tree(one: Any, other: Any) -> None:
    assert one.nodes.size == other.nodes.size
    for name in one.nodes.dtype.names:
        np.testing.assert_array_equal(one.nodes[name], other.nodes[name], err_msg=name)
    for name in ("binned_left_cat_bitsets", "raw_left_cat_bitsets"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
