"""The growth of a forest's tree: large nodes by scikit-learn's grower, then small."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from ..._eras import Array
from ..._scikit_learn import set_raw_bitset_from_binned_bitset
from .._hist_gradient_boosting.grower import TreeGrower
from .._splitting.sorted_rows.grower import (
    MAX_SMALL_ROWS,
    MIN_SUPPORT,
    SubtreeGrower,
    is_pure_node,
)
from .._splitting.splitter import EraSplitter


class TreeBins(NamedTuple):
    """The bins of a tree's columns, as in scikit-learn's `_BinMapper`."""

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


class ForestTreeGrower(TreeGrower):
    """scikit-learn's grower, which leaves small nodes to `SubtreeGrower`. Pure nodes
    are leaves, since rounding errors of their sums can look like a gain.
    """

    def __init__(
        self,
        X_binned: NDArray[np.uint8],  # (n_rows, n_features), F-ordered, by era
        gradients: NDArray[np.float32],  # (n_rows,), weight * (prediction - target)
        hessians: NDArray[np.float32],  # (n_rows,), weights, or (1,)
        *,
        bins: TreeBins,
        limits: TreeLimits,
        rng: np.random.Generator,
        n_threads: int,
        era_splitter: EraSplitter | None,  # None for the gain
        # Maximum number of rows of a node that compiled code grows, on one thread
        # without the GIL: up to `MAX_SMALL_ROWS`, or 0. It changes trees only where
        # splits tie up to rounding, or features are drawn.
        small_node_rows: int = MAX_SMALL_ROWS,
    ):
        self._n_drawn = limits.max_features or X_binned.shape[1]
        self._rng = rng
        self._seed = int(rng.integers(2**63))  # for small nodes
        self._gradients = gradients
        self._hessians = hessians
        if limits.max_leaf_nodes is not None:  # best first, over the whole tree
            small_node_rows = 0
        self._small_node_rows = min(small_node_rows, MAX_SMALL_ROWS)
        parameters = bins._asdict() | limits._asdict()
        del parameters["bin_thresholds"], parameters["max_features"]
        weights = hessians[hessians > 0]
        # Half of the smallest weight: a fixed limit would depend on their unit.
        least_weight = 0.5 * float(weights.min()) if weights.size else 0.0
        super().__init__(
            X_binned, gradients, hessians, **parameters,
            min_hessian_to_split=least_weight, n_threads=n_threads,
            era_splitter=era_splitter,
        )  # fmt: skip

    def _compute_best_split_and_push(self, node: Any) -> None:
        if node.depth == 0:
            node.value = self._value_of(node)
        if node.n_samples <= self._small_node_rows or is_pure_node(
            self._gradients, self._hessians, node.sample_indices
        ):
            self._finalize_leaf(node)
        else:
            if self._n_drawn < self.X_binned.shape[1]:
                node.allowed_features = self._draw_features(node)
            super()._compute_best_split_and_push(node)

    def _draw_features(self, node: Any) -> NDArray[np.uint32]:
        """Draw the features of a node, and more until one can split it."""
        features = self._rng.permutation(self.X_binned.shape[1])
        n_drawn = self._n_drawn
        for i, feature in enumerate(features):
            if self._can_split(feature, node):
                n_drawn = max(n_drawn, i + 1)
                break
        return np.sort(features[:n_drawn]).astype(np.uint32)

    def _can_split(self, feature: int, node: Any) -> bool:
        """Return whether a node has two values or supported categories of a feature."""
        column = self.X_binned[:, feature]
        rows = np.asarray(node.sample_indices)
        if self.splitter.is_categorical[feature]:
            weights = self._hessians[rows] if self._hessians.size > 1 else None
            supports = np.bincount(column[rows], weights)
            least = MIN_SUPPORT * node.sum_hessians / rows.size
            return bool((supports >= least).sum() >= 2)
        first = column[rows[0]]  # the first few rows usually suffice
        return any((column[some] != first).any() for some in (rows[:64], rows[64:]))

    def _finalize_leaf(self, node: Any) -> None:
        if node.depth == 0:
            node.value = self._value_of(node)
        super()._finalize_leaf(node)

    def _value_of(self, node: Any) -> float:
        weight = node.sum_hessians + self.splitter.l2_regularization
        return -node.sum_gradients / weight if weight > 0 else 0.0

    def make_predictor(self, binning_thresholds: Any) -> TreePredictor:
        """Grow the subtrees of small nodes, and make the predictor of the tree."""
        grower = SubtreeGrower(
            self.splitter, self._gradients, self._hessians, max_depth=self.max_depth,
            max_features=self._n_drawn, seed=self._seed, max_rows=self._small_node_rows,
            era_splitter=self.era_splitter,
        )  # fmt: skip
        nodes, bitsets = grower.grow(self.root)
        _set_thresholds(nodes, binning_thresholds)
        raw_bitsets = np.zeros_like(bitsets)
        features = nodes["feature_idx"][nodes["is_categorical"] != 0]
        for feature, raw, binned in zip(features, raw_bitsets, bitsets, strict=True):
            set_raw_bitset_from_binned_bitset(raw, binned, binning_thresholds[feature])
        return TreePredictor(nodes, bitsets, raw_bitsets)


def _set_thresholds(nodes: NDArray[np.void], bin_thresholds: list[Array]) -> None:
    """Set thresholds of numeric splits by bin; infinity separates missing values."""
    inner = np.flatnonzero(~(nodes["is_leaf"] | nodes["is_categorical"]).astype(bool))
    tables = [np.append(thresholds, np.inf) for thresholds in bin_thresholds]
    first = np.cumsum([0, *map(len, tables)])[nodes["feature_idx"][inner]]
    places = first + nodes["bin_threshold"][inner]
    nodes["num_threshold"][inner] = np.concatenate(tables)[places]
