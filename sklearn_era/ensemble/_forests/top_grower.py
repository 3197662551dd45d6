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
    rows_worth_sorting,
)
from .._splitting.splitter import EraSplitter


class TreeBins(NamedTuple):
    """How the columns of a tree are binned: what scikit-learn's `_BinMapper` knows.

    Attributes
    ----------
    n_bins : int
        Bins of a feature, the last one for missing values.
    n_bins_non_missing : ndarray of shape (n_features,), dtype=uint32
        Bins of each feature that are in use, without the one for missing values.
    has_missing_values : ndarray of shape (n_features,), dtype=uint8
        Whether the training data have missing values of a feature.
    is_categorical : ndarray of shape (n_features,), dtype=uint8
        Whether a feature is categorical.
    bin_thresholds : list of ndarray, dtype=float64
        For each feature, the thresholds between bins, or the categories.
    """

    n_bins: int
    n_bins_non_missing: NDArray[np.uint32]
    has_missing_values: NDArray[np.uint8]
    is_categorical: NDArray[np.uint8]
    bin_thresholds: list[NDArray[np.float64]]


class TreeLimits(NamedTuple):
    """What limits the growth of a tree.

    Attributes
    ----------
    max_depth : int or None
        Edges from the root to the deepest leaf.
    max_leaf_nodes : int or None
        The most leaves, which are then made best first; and no node is small.
    min_samples_leaf : int
        The fewest rows of a leaf.
    min_gain_to_split : float
        What the pooled gain of a split has to exceed.
    l2_regularization : float
        Added to the weight of a node, of which it is in the unit.
    max_features : int or None
        How many features to draw for each node; None for all.
    """

    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_leaf: int
    min_gain_to_split: float
    l2_regularization: float
    max_features: int | None


class TopGrower(TreeGrower):
    """scikit-learn's grower, which leaves small nodes to `SubtreeGrower`.

    Its root has a value. A boosting iteration starts from a raw prediction, to which
    the root adds nothing; in a forest a tree without a split predicts what its rows
    say, and the gain of the first split is what it adds to that.

    A pure node is a leaf. The sums of its sides have rounding errors, which can pass
    for a gain.

    Parameters
    ----------
    X_binned : ndarray of shape (n_rows, n_features), dtype=uint8
        The tree's own rows, F-ordered, and sorted by era where eras are compared.
    gradients : ndarray of shape (n_rows,), dtype=float32
        Of a squared error, weight times (prediction - target): the value of a leaf is
        minus the mean of what its rows have.
    hessians : ndarray of shape (1,) or (n_rows,), dtype=float32
        The weights of the rows; a single 1 for rows that weigh alike.
    bins : TreeBins
    limits : TreeLimits
    rng : numpy.random.Generator
        Draws the features of each node, where `limits.max_features` is not all.
    n_threads : int
    era_splitter : EraSplitter or None
        Finds the splits by a criterion that compares eras; None for the gain.
    small_node_rows : int or None
        The most rows of a small node, `MAX_ROWS` at most: compiled code grows it, and
        all below it, on one thread and without the GIL. 0 for no such node. It makes a
        difference to time alone, but where splits tie up to rounding, or features are
        drawn. None for `MAX_ROWS`, or more where that makes no other difference.
    """

    def __init__(
        self,
        X_binned: NDArray[np.uint8],
        gradients: NDArray[np.float32],
        hessians: NDArray[np.float32],
        *,
        bins: TreeBins,
        limits: TreeLimits,
        rng: np.random.Generator,
        n_threads: int,
        era_splitter: EraSplitter | None,
        small_node_rows: int | None = None,
    ):
        if not 0 <= (small_node_rows or 0) <= MAX_ROWS:
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
        self._small_node_rows = 0 if is_limited else small_node_rows or 0
        self._chooses_rows = not is_limited and small_node_rows is None
        self._n_threads = n_threads
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
            if self._chooses_rows:
                self._small_node_rows = self._rows_of_small_nodes()
        # Where histograms are kept, rows cost less than bins. Whether there is room for
        # them says nothing: draws of features would depend on the number of workers.
        if node.n_samples <= self._small_node_rows and not getattr(
            node.histograms, "is_worth_storing", False
        ):
            self._small_nodes.append(node)
            self._finalize_leaf(node)
        elif is_pure_node(self._gradients, self._hessians, node.sample_indices):
            self._finalize_leaf(node)
        else:
            if self._n_drawn < self.X_binned.shape[1]:
                node.allowed_features = self._draw_features(node)
            super()._compute_best_split_and_push(node)

    def _rows_of_small_nodes(self) -> int:
        n_features = self.X_binned.shape[1]
        if self.era_splitter is None or self._n_drawn < n_features:
            return MAX_ROWS
        return rows_worth_sorting(
            self.era_splitter, self.n_bins_non_missing, self._n_threads
        )

    def _draw_features(self, node: Any) -> NDArray[np.uint32]:
        """Draw the features that a node looks at; on, until one can split it.

        So do scikit-learn's forests, whose trees would else end early on columns of few
        values; its boosters, who draw with the grower, do not.
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
    """Set the thresholds of splits by numbers, by their bins.

    Infinity after the last bin, which separates missing values from all others.
    """
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
    """The left categories of splits, by their values in X instead of their bins.

    `categories` has the values of a feature's bins, integers below 256.
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
    """The weight that each side of a split has to have: any row's with a weight.

    Half of the smallest, so that rounding does not matter. A fixed limit, such as
    scikit-learn's 0.001, would depend on the unit of the sample weights.
    """
    weights = hessians[hessians > 0]
    return 0.5 * float(weights.min()) if weights.size else 0.0


__all__ = ["TopGrower", "TreeBins", "TreeLimits"]
