"""Grow a tree of a forest: large nodes first, then small ones."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.grower import TreeGrower
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from ..._eras import Array
from .._splitting.records import TreeRecords
from .._splitting.sorted_rows.grower import (
    MAX_SMALL_ROWS,
    MIN_SUPPORT,
    SubtreeGrower,
    is_pure_node,
)
from .._splitting.splitter import EraSplitter
from .._splitting.tree_grower import EraTreeGrower


class TreeBins(NamedTuple):
    """The part of scikit-learn's `_BinMapper` for the columns that a tree uses."""

    n_bins: int  # of a feature, the last one for missing values
    n_bins_non_missing: NDArray[np.uint32]  # (n_features,), those in use
    has_missing_values: NDArray[np.uint8]  # (n_features,), in training
    is_categorical: NDArray[np.uint8]  # (n_features,)
    bin_thresholds: list[Array]  # of a feature, or its categories


class TreeLimits(NamedTuple):
    """The limits to the growth of a tree."""

    max_depth: int | None  # edges from the root to the deepest leaf
    max_leaf_nodes: int | None  # grown best first, and no node is small
    min_samples_leaf: int
    min_gain_to_split: float  # the pooled gain must exceed it
    l2_regularization: float  # added to the weight of a node, in its unit
    max_features: int | None  # drawn for each node; None for all


def grow_tree(
    X_binned: NDArray[np.uint8],  # (n_rows, n_features), F-ordered, by era
    gradients: NDArray[np.float32],  # (n_rows,), weight * (prediction - target)
    hessians: NDArray[np.float32],  # (n_rows,), weights, or (1,)
    *,
    bins: TreeBins,
    limits: TreeLimits,
    rng: np.random.Generator,
    n_threads: int,
    era_splitter: EraSplitter | None,  # None for the gain, by scikit-learn's grower
    # Maximum number of rows of a node that compiled code grows, on one thread without
    # the GIL: up to `MAX_SMALL_ROWS`, or 0. It changes trees only where splits tie up
    # to rounding, or features are drawn.
    small_node_rows: int = MAX_SMALL_ROWS,
) -> TreePredictor:
    """Grow a tree and return it; `SubtreeGrower` grows the small nodes. A pure node is
    always a leaf, since rounding errors in its sums can look like a gain.
    """
    n_rows, n_features = X_binned.shape
    n_drawn = limits.max_features or n_features
    seed = int(rng.integers(2**63))  # for small nodes
    # Best first, over the whole tree; or with keys that the compiled code cannot know.
    if limits.max_leaf_nodes is not None or (
        era_splitter is not None and era_splitter.is_in_python
    ):
        small_node_rows = 0
    parameters = bins._asdict() | limits._asdict()
    del parameters["bin_thresholds"], parameters["max_features"]
    weights = hessians[hessians > 0]
    # Half of the smallest weight: a fixed limit would depend on their unit.
    parameters["min_hessian_to_split"] = (
        0.5 * float(weights.min()) if weights.size else 0.0
    )
    parameters["n_threads"] = n_threads
    parameters["small_node_rows"] = max_rows = min(small_node_rows, MAX_SMALL_ROWS)
    if n_drawn < n_features:
        draw = FeatureDraw(X_binned, hessians, bins.is_categorical, n_drawn, rng)
        parameters["draw_features"] = draw
    grower: Any
    if era_splitter is None:
        grower = ForestTreeGrower(X_binned, gradients, hessians, **parameters)
    else:
        grower = EraTreeGrower(
            era_splitter, X_binned, gradients, hessians, **parameters
        )
    grower.grow()
    records = TreeRecords(max(1, n_rows // limits.min_samples_leaf))
    subtrees = SubtreeGrower(
        grower.data if era_splitter else grower.splitter, gradients, hessians,
        records=records, max_depth=limits.max_depth, max_features=n_drawn, seed=seed,
        max_rows=max_rows, era_splitter=era_splitter,
    )  # fmt: skip
    if era_splitter is None:
        subtrees.grow(grower.root)
    else:
        grower.add_records(records, subtrees)
    return records.predictor(bins.bin_thresholds)


class FeatureDraw(NamedTuple):
    """Draws features for a node, and more until a drawn feature can split the node."""

    X_binned: NDArray[np.uint8]
    hessians: NDArray[np.float32]
    is_categorical: NDArray[np.uint8]
    n_drawn: int
    rng: np.random.Generator

    def __call__(
        self, rows: NDArray[np.uint32], sum_hessians: float
    ) -> NDArray[np.intp]:
        """Return the features drawn for a node, in ascending order."""
        features = self.rng.permutation(self.X_binned.shape[1])
        n_drawn = self.n_drawn
        for i, feature in enumerate(features):
            if self._can_split(feature, rows, sum_hessians):
                n_drawn = max(n_drawn, i + 1)
                break
        return np.sort(features[:n_drawn])

    def _can_split(
        self, feature: int, rows: NDArray[np.uint32], sum_hessians: float
    ) -> bool:
        """Return whether a node's rows have two values of a feature or, if the feature
        is categorical, two frequent categories.
        """
        column = self.X_binned[:, feature]
        if self.is_categorical[feature]:
            weights = self.hessians[rows] if self.hessians.size > 1 else None
            supports = np.bincount(column[rows], weights)
            least = MIN_SUPPORT * sum_hessians / rows.size
            return bool((supports >= least).sum() >= 2)
        first = column[rows[0]]  # the first few rows usually suffice
        return any((column[some] != first).any() for some in (rows[:64], rows[64:]))


class ForestTreeGrower(TreeGrower):
    """scikit-learn's grower, except that small and pure nodes become leaves."""

    def __init__(
        self, X_binned: NDArray[np.uint8], gradients: NDArray[np.float32],
        hessians: NDArray[np.float32], *, small_node_rows: int,
        draw_features: FeatureDraw | None = None, **parameters: Any,
    ):  # fmt: skip
        self._small_node_rows = small_node_rows
        self._draw_features = draw_features
        self._arrays = gradients, hessians
        super().__init__(X_binned, gradients, hessians, **parameters)

    def _compute_best_split_and_push(self, node: Any) -> None:
        if node.depth == 0:
            node.value = self._value_of(node)
        rows = np.asarray(node.sample_indices)
        if node.n_samples <= self._small_node_rows or is_pure_node(*self._arrays, rows):
            self._finalize_leaf(node)
            return
        if self._draw_features is not None:
            drawn = self._draw_features(rows, node.sum_hessians)
            node.allowed_features = drawn.astype(np.uint32)
        super()._compute_best_split_and_push(node)

    def _finalize_leaf(self, node: Any) -> None:
        if node.depth == 0:
            node.value = self._value_of(node)
        super()._finalize_leaf(node)

    def _value_of(self, node: Any) -> float:
        weight = node.sum_hessians + self.splitter.l2_regularization
        return -node.sum_gradients / weight if weight > 0 else 0.0
