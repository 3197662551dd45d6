"""The growth of one tree of a forest: large nodes by scikit-learn's grower.

Small ones, of few rows, are grown apart, each with all that is below it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from .._hist_gradient_boosting.grower import TreeGrower
from .._splitting.sorted_rows.grower import SubtreeGrower
from .._splitting.sorted_rows.small_nodes import (
    MAX_ROWS,
    MIN_SUPPORT,
    is_pure_node,
    root_value,
)
from .._splitting.splitter import EraSplitter


class TreeBins(NamedTuple):
    """The bins of a tree's columns, as scikit-learn's `_BinMapper` has them."""

    n_bins: int  # of a feature, the last one for missing values
    n_bins_non_missing: NDArray[np.uint32]  # (n_features,), those in use
    has_missing_values: NDArray[np.uint8]  # (n_features,), in training
    is_categorical: NDArray[np.uint8]  # (n_features,)
    bin_thresholds: list[NDArray[np.float64]]  # of a feature, or its categories


class TreeLimits(NamedTuple):
    """The limits to the growth of a tree."""

    max_depth: int | None  # edges from the root to the deepest leaf
    max_leaf_nodes: int | None  # made best first, and no node is small
    min_samples_leaf: int
    min_gain_to_split: float  # the pooled gain has to exceed it
    l2_regularization: float  # added to the weight of a node, in its unit
    max_features: int | None  # drawn for each node; None for all


class TopGrower(TreeGrower):
    """scikit-learn's grower, which leaves small nodes to `SubtreeGrower`. Its root has
    a value, which a tree without a split predicts, and a pure node is a leaf: rounding
    errors of its sums can pass for a gain.
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
        # The most rows of a node that compiled code grows, on one thread without the
        # GIL; 0 for no such node. It changes trees only where splits tie up to
        # rounding, or features are drawn.
        small_node_rows: int = MAX_ROWS,
    ):
        if not 0 <= small_node_rows <= MAX_ROWS:
            raise ValueError(
                f"small_node_rows is {small_node_rows}; a small node has from 0 to "
                f"{MAX_ROWS} rows."
            )
        self._n_drawn = limits.max_features or X_binned.shape[1]
        self._rng = rng
        self._seed = int(rng.integers(2**63))  # of small nodes
        self._gradients = gradients
        self._hessians = hessians
        # Leaves that are counted best first are so over the whole tree.
        is_limited = limits.max_leaf_nodes is not None
        self._small_node_rows = 0 if is_limited else small_node_rows
        self._small_nodes: list[Any] = []
        super().__init__(
            X_binned,
            gradients,
            hessians,
            n_bins=bins.n_bins,
            n_bins_non_missing=bins.n_bins_non_missing,
            has_missing_values=bins.has_missing_values,
            is_categorical=bins.is_categorical,
            max_leaf_nodes=limits.max_leaf_nodes,
            max_depth=limits.max_depth,
            min_samples_leaf=limits.min_samples_leaf,
            min_gain_to_split=limits.min_gain_to_split,
            min_hessian_to_split=_least_weight(hessians),
            l2_regularization=limits.l2_regularization,
            n_threads=n_threads,
            era_splitter=era_splitter,
        )

    def _compute_best_split_and_push(self, node: Any) -> None:
        if node.depth == 0:
            node.value = self._value_of(node)
        if node.n_samples <= self._small_node_rows:
            self._small_nodes.append(node)
            self._finalize_leaf(node)
        elif is_pure_node(self._gradients, self._hessians, node.sample_indices):
            self._finalize_leaf(node)
        else:
            if self._n_drawn < self.X_binned.shape[1]:
                node.allowed_features = self._draw_features(node)
            super()._compute_best_split_and_push(node)

    def _draw_features(self, node: Any) -> NDArray[np.uint32]:
        """Draw the features of a node, and on until one can split it, as scikit-learn's
        forests do, whose trees would else end early on columns of few values.
        """
        features = self._rng.permutation(self.X_binned.shape[1])
        n_drawn = self._n_drawn
        for i, feature in enumerate(features):
            if self._can_split(feature, node):
                n_drawn = max(n_drawn, i + 1)
                break
        return np.sort(features[:n_drawn]).astype(np.uint32)

    def _can_split(self, feature: int, node: Any) -> bool:
        """Whether a feature has two values in a node, or categories with support."""
        column = self.X_binned[:, feature]
        rows = np.asarray(node.sample_indices)
        if self.splitter.is_categorical[feature]:
            weights = self._hessians[rows] if self._hessians.size > 1 else None
            supports = np.bincount(column[rows], weights)
            least = MIN_SUPPORT * node.sum_hessians / rows.size
            return bool((supports >= least).sum() >= 2)
        first = column[rows[0]]  # mostly the first few tell
        return any((column[some] != first).any() for some in (rows[:64], rows[64:]))

    def _finalize_leaf(self, node: Any) -> None:
        if node.depth == 0:
            node.value = self._value_of(node)
        super()._finalize_leaf(node)

    def _value_of(self, node: Any) -> float:
        l2 = self.splitter.l2_regularization
        return root_value(node.sum_gradients, node.sum_hessians, l2)

    def grow(self) -> None:
        """Grow the large nodes, and then the subtrees of the small ones."""
        super().grow()
        if not self._small_nodes:
            return
        nodes = sorted(self._small_nodes, key=lambda node: node.partition_start)
        grower = SubtreeGrower(
            self.splitter,
            self._gradients,
            self._hessians,
            max_depth=self.max_depth,
            max_features=self._n_drawn,
            seed=self._seed,
            max_rows=self._small_node_rows,
            era_splitter=self.era_splitter,
        )
        subtrees = grower.grow(np.asarray(self.splitter.partition), nodes)
        for node, subtree in zip(nodes, subtrees, strict=True):
            node.subtree = subtree

    def make_predictor(self, binning_thresholds: Any) -> TreePredictor:
        """Make the predictor of the tree, from the root down, left before right."""
        pieces, bitsets = [], []
        n_nodes = 0
        waiting: list[Any] = [(self.root, {}, "root")]
        while waiting:
            node, parent, side = waiting.pop()
            parent[side] = n_nodes
            records, left_categories = getattr(node, "subtree", None) or _record(node)
            is_inner = records["is_leaf"] == 0
            for child in ("left", "right"):
                records[child][is_inner] += np.uint32(n_nodes)
            if not node.is_leaf:
                waiting.append((node.right_child, records[0], "right"))
                waiting.append((node.left_child, records[0], "left"))
            pieces.append(records)
            bitsets.append(left_categories)
            n_nodes += records.size
        nodes = np.concatenate(pieces)
        binned_bitsets = np.concatenate(bitsets)
        set_thresholds(nodes, binning_thresholds, self.n_bins_non_missing)
        is_categorical = nodes["is_categorical"] != 0
        nodes["bitset_idx"][is_categorical] = np.arange(len(binned_bitsets))
        raw_bitsets = make_raw_bitsets(
            nodes["feature_idx"][is_categorical], binned_bitsets, binning_thresholds
        )
        return TreePredictor(nodes, binned_bitsets, raw_bitsets)


def _record(node: Any) -> tuple[NDArray[np.void], NDArray[np.uint32]]:
    """A node as scikit-learn's predictor has it, and its left categories, if any."""
    record = np.zeros(1, dtype=PREDICTOR_RECORD_DTYPE)
    split = node.split_info
    record["value"] = node.value
    record["count"] = node.n_samples
    record["depth"] = node.depth
    record["gain"] = -1 if split is None else split.gain
    record["is_leaf"] = node.is_leaf
    bitsets = np.empty((0, 8), dtype=np.uint32)
    if not node.is_leaf:
        record["feature_idx"] = split.feature_idx
        record["missing_go_to_left"] = split.missing_go_to_left
        record["is_categorical"] = split.is_categorical
        if split.is_categorical:
            bitsets = np.array([split.left_cat_bitset], dtype=np.uint32)
        else:
            record["bin_threshold"] = split.bin_idx
    return record, bitsets


def set_thresholds(
    nodes: NDArray[np.void],
    bin_thresholds: list[NDArray[np.float64]],
    n_bins_non_missing: NDArray[np.uint32],
) -> None:
    """Set thresholds of numeric splits by bin; infinity parts missing values off."""
    inner = np.flatnonzero(~(nodes["is_leaf"] | nodes["is_categorical"]).astype(bool))
    features = nodes["feature_idx"][inner]
    bins = nodes["bin_threshold"][inner].astype(np.intp)
    first = np.cumsum([0, *(len(thresholds) for thresholds in bin_thresholds)])
    flat = np.concatenate([*bin_thresholds, [np.inf]])
    is_last = bins == n_bins_non_missing[features] - 1
    nodes["num_threshold"][inner] = flat[np.where(is_last, -1, first[features] + bins)]


def make_raw_bitsets(
    features: NDArray[np.intp],
    bitsets: NDArray[np.uint32],
    categories: list[NDArray[np.float64]],
) -> NDArray[np.uint32]:
    """Return the left categories of splits by their values in X: `categories` has the
    values of a feature's bins, integers below 256.
    """
    is_left = np.unpackbits(bitsets.view(np.uint8), axis=1, bitorder="little")
    is_left_raw = np.zeros_like(is_left)
    for feature in np.unique(features):
        values = categories[feature].astype(np.intp)
        of_feature = np.flatnonzero(features == feature)
        is_left_raw[np.ix_(of_feature, values)] = is_left[of_feature, : values.size]
    packed = np.packbits(is_left_raw, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view(np.uint32)


def _least_weight(hessians: NDArray[np.float32]) -> float:
    """Return half of the smallest weight, which each side of a split has to have: a
    fixed limit, as scikit-learn's 0.001, would depend on the unit of the weights.
    """
    weights = hessians[hessians > 0]
    return 0.5 * float(weights.min()) if weights.size else 0.0


__all__ = ["TopGrower", "TreeBins", "TreeLimits"]
