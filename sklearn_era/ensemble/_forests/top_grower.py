"""scikit-learn's grower for the large nodes of a tree, joined to the small ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from .._hist_gradient_boosting.grower import TreeGrower
from .._splitting.sorted_rows.grower import MIN_SUPPORT, SubtreeGrower


class TopGrower(TreeGrower):
    """scikit-learn's grower, which leaves small nodes to `SubtreeGrower`.

    Its root has a value. A boosting iteration starts from a raw prediction, to which
    the root adds nothing; in a forest a tree without a split predicts what its rows
    say, and the gain of the first split is what it adds to that.

    A node whose rows all ask for the same is a leaf. The sums of its sides have
    rounding errors, which can pass for a gain.

    Parameters
    ----------
    X_binned, gradients, hessians : ndarray
    **params : Any
        As for scikit-learn's `TreeGrower`.
    max_features : int or None
        How many features to draw for each node; None for all.
    rng : numpy.random.Generator
        Draws them, where they are not all.
    small_node_rows : int
        The most rows of a small node; 0 for no such node.
    """

    def __init__(
        self,
        X_binned: NDArray[np.uint8],
        gradients: NDArray[np.float32],
        hessians: NDArray[np.float32],
        *,
        max_features: int | None,
        rng: np.random.Generator,
        small_node_rows: int,
        **params: Any,
    ):
        n_features = X_binned.shape[1]
        self._n_drawn = n_features if max_features is None else max_features
        self._rng = rng
        self._gradients = gradients
        self._hessians = hessians
        self._small_node_rows = small_node_rows
        self._small_nodes: list[Any] = []
        self._subtree_grower: SubtreeGrower | None = None
        super().__init__(X_binned, gradients, hessians, **params)

    def _compute_best_split_and_push(self, node: Any) -> None:
        if node.depth == 0:
            node.value = self._value_of(node)
        # Where histograms are kept, rows cost less than bins.
        if node.n_samples <= self._small_node_rows and not getattr(
            node.histograms, "is_stored", False
        ):
            self._small_nodes.append(node)
            self._finalize_leaf(node)
        elif self._subtrees().is_pure(node.sample_indices):
            self._finalize_leaf(node)
        else:
            if self._n_drawn < self.X_binned.shape[1]:
                node.allowed_features = self._draw_features(node)
            super()._compute_best_split_and_push(node)
            split = node.split_info
            if split is not None and split.is_categorical:
                # As in `EraSplitter`: nothing reads it but a test for the only bin.
                split.bin_idx = int(self.n_bins_non_missing[split.feature_idx] == 1)

    def _draw_features(self, node: Any) -> NDArray[np.uint32]:
        """Draw the features that a node looks at; on, until one can part its rows.

        So do scikit-learn's forests, whose trees would else end early on columns of few
        values; its boosters, who draw with the grower, do not.
        """
        features = self._rng.permutation(self.X_binned.shape[1])
        n_drawn = self._n_drawn
        for i, feature in enumerate(features):
            if self._can_part(feature, node):
                n_drawn = max(n_drawn, i + 1)
                break
        return np.sort(features[:n_drawn]).astype(np.uint32)

    def _can_part(self, feature: int, node: Any) -> bool:
        """Whether a feature has two values in a node, or categories to part."""
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
        # Of a root with constant hessians, their sum comes in single precision.
        mass = float(node.sum_hessians) + self.splitter.l2_regularization
        return -float(node.sum_gradients) / mass if mass > 0 else 0.0

    def _subtrees(self) -> SubtreeGrower:
        """The grower of small nodes; made late, for the era splitter to be ready."""
        if self._subtree_grower is None:
            splitter = self.splitter
            self._subtree_grower = SubtreeGrower(
                splitter.X_binned,
                self._gradients,
                self._hessians,
                n_bins_non_missing=splitter.n_bins_non_missing,
                has_missing_values=splitter.has_missing_values,
                is_categorical=splitter.is_categorical,
                missing_values_bin_idx=splitter.missing_values_bin_idx,
                max_depth=self.max_depth,
                min_samples_leaf=splitter.min_samples_leaf,
                min_hessian_to_split=splitter.min_hessian_to_split,
                min_gain_to_split=splitter.min_gain_to_split,
                l2_regularization=splitter.l2_regularization,
                max_features=self._n_drawn,
                seed=int(self._rng.integers(2**63)),
                max_rows=max(self._small_node_rows, 1),
                era_splitter=self.era_splitter,
            )
        return self._subtree_grower

    def make_predictor(self, binning_thresholds: Any) -> TreePredictor:
        """Make the predictor of the tree, and grow its small nodes before."""
        top = super().make_predictor(binning_thresholds)
        if not self._small_nodes:
            return top
        # Leaves are numbered in the order of their rows.
        nodes = sorted(self._small_nodes, key=lambda node: node.partition_start)
        subtrees, bitsets, sizes = self._subtrees().grow(
            np.asarray(self.splitter.partition),
            np.array([node.partition_start for node in nodes], dtype=np.int32),
            np.array([node.partition_stop for node in nodes], dtype=np.int32),
            np.array([node.depth for node in nodes], dtype=np.int32),
            np.array([node.sum_gradients for node in nodes], dtype=np.float64),
            np.array([node.sum_hessians for node in nodes], dtype=np.float64),
            np.array([node.value for node in nodes], dtype=np.float64),
        )
        set_thresholds(subtrees, binning_thresholds, self.n_bins_non_missing)
        small = {id(node) for node in nodes}
        leaves = sorted(self.finalized_leaves, key=lambda node: node.partition_start)
        is_small = np.array([id(leaf) in small for leaf in leaves])
        places = np.flatnonzero(top.nodes["is_leaf"])[is_small]
        raw_bitsets = make_raw_bitsets(subtrees, bitsets, binning_thresholds)
        subtrees["bitset_idx"] += len(top.binned_left_cat_bitsets)
        tree = insert_subtrees(top.nodes, places, subtrees, sizes)
        # Bitsets are in the order of their nodes.
        is_categorical = tree["is_categorical"].astype(bool)
        order = tree["bitset_idx"][is_categorical]
        tree["bitset_idx"] = np.where(is_categorical, np.cumsum(is_categorical) - 1, 0)
        return TreePredictor(
            tree,
            np.concatenate([top.binned_left_cat_bitsets, bitsets])[order],
            np.concatenate([top.raw_left_cat_bitsets, raw_bitsets])[order],
        )


def set_thresholds(
    nodes: NDArray[np.void],
    bin_thresholds: list[NDArray[np.float64]],
    n_bins_non_missing: NDArray[np.uint32],
) -> None:
    """Set the thresholds of splits by numbers, by their bins.

    Infinity after the last bin, which parts the missing values from all others.
    """
    inner = np.flatnonzero(~(nodes["is_leaf"] | nodes["is_categorical"]).astype(bool))
    features = nodes["feature_idx"][inner]
    bins = nodes["bin_threshold"][inner].astype(np.intp)
    first = np.cumsum([0, *(len(thresholds) for thresholds in bin_thresholds)])
    flat = np.concatenate([*bin_thresholds, [np.inf]])
    is_last = bins == n_bins_non_missing[features] - 1
    nodes["num_threshold"][inner] = flat[np.where(is_last, -1, first[features] + bins)]


def make_raw_bitsets(
    nodes: NDArray[np.void],
    bitsets: NDArray[np.uint32],
    categories: list[NDArray[np.float64]],
) -> NDArray[np.uint32]:
    """The left categories of splits, by their values in X instead of their bins.

    Parameters
    ----------
    nodes : ndarray of shape (n_nodes,), dtype=PREDICTOR_RECORD_DTYPE
    bitsets : ndarray of shape (n_categorical_splits, 8), dtype=uint32
        By `bitset_idx`.
    categories : list of ndarray
        For each categorical feature, the values of its bins, integers below 256.

    Returns
    -------
    raw_bitsets : ndarray of shape (n_categorical_splits, 8), dtype=uint32
    """
    splits = nodes[nodes["is_categorical"].astype(bool)]
    is_left = np.unpackbits(bitsets.view(np.uint8), axis=1, bitorder="little")
    is_left_raw = np.zeros_like(is_left)
    for feature in np.unique(splits["feature_idx"]):
        values = categories[feature].astype(np.intp)
        of_feature = splits["bitset_idx"][splits["feature_idx"] == feature]
        is_left_raw[np.ix_(of_feature, values)] = is_left[of_feature, : values.size]
    packed = np.packbits(is_left_raw, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view(np.uint32)


def insert_subtrees(
    top: NDArray[np.void],
    places: NDArray[np.intp],
    subtrees: NDArray[np.void],
    sizes: NDArray[np.int64],
) -> NDArray[np.void]:
    """Put subtrees in the places of leaves.

    Parameters
    ----------
    top : ndarray of shape (n_nodes,), dtype=PREDICTOR_RECORD_DTYPE
        A tree whose nodes are numbered from the root down, left before right.
    places : ndarray of shape (n_subtrees,)
        The leaves to replace, ascending.
    subtrees : ndarray of shape (n_subtree_nodes,), dtype=PREDICTOR_RECORD_DTYPE
        The nodes of all subtrees, one subtree after the other. Children count from the
        first node of the subtree.
    sizes : ndarray of shape (n_subtrees,)
        The nodes of each subtree.

    Returns
    -------
    nodes : ndarray of shape (n_nodes - n_subtrees + n_subtree_nodes,)
        The tree, numbered in the same way.
    """
    n_nodes = np.ones(top.size, dtype=np.intp)
    n_nodes[places] = sizes
    first = np.cumsum(n_nodes) - n_nodes
    nodes = np.empty(n_nodes.sum(), dtype=top.dtype)
    is_top = np.ones(nodes.size, dtype=bool)
    starts = np.repeat(first[places], sizes)
    within = np.arange(subtrees.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_top[starts + within] = False

    top = np.delete(top, places)
    is_inner = ~top["is_leaf"].astype(bool)
    for side in ("left", "right"):
        top[side][is_inner] = first[top[side][is_inner]]
    nodes[is_top] = top
    is_inner = ~subtrees["is_leaf"].astype(bool)
    for side in ("left", "right"):
        subtrees[side][is_inner] += starts[is_inner].astype(np.uint32)
    nodes[~is_top] = subtrees
    return nodes
