"""The trees of a fitted estimator as a handful of arrays, and back.

A model of some ten thousand trees holds three small arrays for each. Packed, they are
stored in one piece each, and checked in one go.
"""

from collections.abc import Mapping
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.common import (
    PREDICTOR_RECORD_DTYPE,
    X_BITSET_INNER_DTYPE,
)
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

_BITSET_WORDS = 8  # of 32 bits, for 256 bins


def pack_trees(predictors: list[list[TreePredictor]]) -> dict[str, NDArray]:
    """Concatenate the arrays of all trees.

    Parameters
    ----------
    predictors : list of list of TreePredictor
        The trees of each iteration: one, or one for each class.

    Returns
    -------
    packed : dict of str to ndarray
        ``nodes``, of shape (n_nodes,) and `PREDICTOR_RECORD_DTYPE`;
        ``binned_left_cat_bitsets`` and ``raw_left_cat_bitsets``, of shape
        (n_categorical_splits, 8) and dtype uint32; and what each tree has of them,
        ``n_nodes`` and ``n_bitsets``, of shape (n_iterations,
        n_trees_per_iteration) and dtype int64.
    """
    trees = list(chain.from_iterable(predictors))
    shape = (len(predictors), -1)
    return {
        "nodes": np.concatenate([tree.nodes for tree in trees]),
        "binned_left_cat_bitsets": np.concatenate(
            [tree.binned_left_cat_bitsets for tree in trees]
        ),
        "raw_left_cat_bitsets": np.concatenate(
            [tree.raw_left_cat_bitsets for tree in trees]
        ),
        "n_nodes": np.array([tree.nodes.shape[0] for tree in trees]).reshape(shape),
        "n_bitsets": np.array(
            [tree.raw_left_cat_bitsets.shape[0] for tree in trees]
        ).reshape(shape),
    }


def unpack_trees(
    packed: Mapping[str, NDArray], is_categorical: NDArray[np.bool_]
) -> list[list[TreePredictor]]:
    """Cut packed arrays into trees, having checked that these can be walked.

    scikit-learn follows the indices of a tree's nodes without a look at them: with
    those of a damaged or forged file it would read memory at will.

    Parameters
    ----------
    packed : mapping of str to ndarray
        What `pack_trees` returned.

    is_categorical : ndarray of shape (n_features,), dtype=bool
        The categorical features, in the order in which the trees index features.

    Returns
    -------
    predictors : list of list of TreePredictor
        The trees of each iteration. Their arrays are views of the packed ones.

    Raises
    ------
    ValueError
        If the arrays do not fit each other, or a node points outside its tree, its
        features or its bitsets, or back up the tree.
    """
    nodes = packed["nodes"].astype(
        # Its feature index is as wide as a pointer is on the machine that wrote it.
        PREDICTOR_RECORD_DTYPE,
        casting="same_kind",
        copy=False,
    )
    n_nodes, n_bitsets = packed["n_nodes"], packed["n_bitsets"]
    bitsets = [packed["binned_left_cat_bitsets"], packed["raw_left_cat_bitsets"]]
    bitset_shape = (n_bitsets.sum(), _BITSET_WORDS)
    if not (
        n_nodes.shape == n_bitsets.shape
        and n_nodes.ndim == 2
        and np.all(n_nodes > 0)
        and np.all(n_bitsets >= 0)
        and nodes.shape == (n_nodes.sum(),)
        and all(array.shape == bitset_shape for array in bitsets)
        and all(array.dtype == X_BITSET_INNER_DTYPE for array in bitsets)
    ):
        raise ValueError("the arrays of its trees do not fit each other")
    _check_nodes(nodes, n_nodes.ravel(), n_bitsets.ravel(), is_categorical)

    node_cuts = np.cumsum(n_nodes)[:-1]
    bitset_cuts = np.cumsum(n_bitsets)[:-1]
    trees = map(
        TreePredictor,
        np.split(nodes, node_cuts),
        *(np.split(array, bitset_cuts) for array in bitsets),
    )
    return [[next(trees) for _ in iteration] for iteration in n_nodes]


def _check_nodes(
    nodes: NDArray,
    n_nodes: NDArray[np.int64],
    n_bitsets: NDArray[np.int64],
    is_categorical: NDArray[np.bool_],
) -> None:
    """Raise a ValueError if a walk down a tree may leave its arrays, or never end."""
    splits = np.flatnonzero(nodes["is_leaf"] == 0)
    tree = np.repeat(np.arange(n_nodes.size), n_nodes)[splits]
    place = splits - (np.cumsum(n_nodes) - n_nodes)[tree]
    children = np.stack([nodes["left"][splits], nodes["right"][splits]])
    features = nodes["feature_idx"][splits]
    by_category = nodes["is_categorical"][splits] != 0
    if not (
        # The grower numbers children after their parents.
        np.all((children > place) & (children < n_nodes[tree]))
        and np.all((features >= 0) & (features < is_categorical.size))
        and np.all(is_categorical[features[by_category]])
        and np.all(
            nodes["bitset_idx"][splits][by_category] < n_bitsets[tree][by_category]
        )
    ):
        raise ValueError("a node of a tree points outside its arrays")
