"""The growth of one tree of a forest, on its own rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from .._splitting.sorted_rows.grower import MAX_ROWS
from .._splitting.splitter import EraSplitter
from .top_grower import TopGrower


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
    min_samples_leaf : int
    min_gain_to_split : float
        What the pooled gain of a split has to exceed.
    l2_regularization : float
    max_features : int or None
        How many features to draw for each node; None for all.
    """

    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_leaf: int
    min_gain_to_split: float
    l2_regularization: float
    max_features: int | None


# The most rows of a node that is grown by compiled code, with all that is below it: few
# enough for sorting them to be cheaper than histograms of 255 bins, for any criterion.
SMALL_NODE_ROWS = MAX_ROWS


def grow_tree(
    X_binned: NDArray[np.uint8],
    gradients: NDArray[np.float32],
    hessians: NDArray[np.float32],
    *,
    bins: TreeBins,
    limits: TreeLimits,
    rng: np.random.Generator,
    n_threads: int,
    era_splitter: EraSplitter | None,
    small_node_rows: int = SMALL_NODE_ROWS,
) -> TreePredictor:
    """Grow a tree.

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
        How the columns are binned.
    limits : TreeLimits
        What ends the growth.
    rng : numpy.random.Generator
        Draws the features of each node, where `limits.max_features` is not all.
    n_threads : int
        Threads to grow the tree with.
    era_splitter : EraSplitter or None
        Finds the splits by a criterion that compares eras, those of the tree's rows;
        None for the gain.
    small_node_rows : int
        The most rows of a small node, `MAX_ROWS` at most: compiled code grows it, and
        all below it, on one thread and without the GIL. 0 for no such node. It makes a
        difference to time alone, but where splits tie up to rounding, or features are
        drawn. With a limit to the number of leaves, which are counted best first over
        the whole tree, no node is small.

    Returns
    -------
    predictor : TreePredictor
        scikit-learn's record of the tree.

    Raises
    ------
    ValueError
        If `small_node_rows` is out of range.
    """
    if not 0 <= small_node_rows <= MAX_ROWS:
        raise ValueError(
            f"small_node_rows is {small_node_rows}; a small node has from 0 to "
            f"{MAX_ROWS} rows."
        )
    if limits.max_leaf_nodes is not None:
        small_node_rows = 0
    grower = TopGrower(
        X_binned,
        gradients,
        hessians,
        small_node_rows=small_node_rows,
        max_leaf_nodes=limits.max_leaf_nodes,
        max_depth=limits.max_depth,
        min_samples_leaf=limits.min_samples_leaf,
        min_gain_to_split=limits.min_gain_to_split,
        min_hessian_to_split=_least_weight(hessians),
        n_bins=bins.n_bins,
        n_bins_non_missing=bins.n_bins_non_missing,
        has_missing_values=bins.has_missing_values,
        is_categorical=bins.is_categorical,
        l2_regularization=limits.l2_regularization,
        max_features=limits.max_features,
        rng=rng,
        n_threads=n_threads,
        era_splitter=era_splitter,
    )
    grower.grow()
    return grower.make_predictor(bins.bin_thresholds)


def _least_weight(hessians: NDArray[np.float32]) -> float:
    """The weight that each side of a split has to have: any row's with a weight.

    Half of the smallest, so that rounding does not matter. A fixed limit, such as
    scikit-learn's 0.001, would depend on the unit of the sample weights.
    """
    weights = hessians[hessians > 0]
    return 0.5 * float(weights.min()) if weights.size else 0.0
