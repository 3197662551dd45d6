"""Pack an estimator's trees into a few arrays, and unpack them with checks."""

from collections.abc import Mapping
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.common import (
    PREDICTOR_RECORD_DTYPE,
    X_BITSET_INNER_DTYPE,
)
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

_DTYPES = {
    "nodes": PREDICTOR_RECORD_DTYPE,
    "binned_left_cat_bitsets": np.dtype(X_BITSET_INNER_DTYPE),
    "raw_left_cat_bitsets": np.dtype(X_BITSET_INNER_DTYPE),
    "n_nodes": np.dtype(np.int64),
    "n_bitsets": np.dtype(np.int64),
}
_BITSET_WORDS = 8  # of 32 bits, for 256 bins


def pack_trees(predictors: list[list[TreePredictor]]) -> dict[str, NDArray]:
    """Return the arrays of all trees, joined, and two counts for each tree: of nodes
    and of bitsets.
    """
    if len({*map(len, predictors)}) != 1:
        raise ValueError("iterations of different numbers of trees")
    trees = list(chain.from_iterable(predictors))
    packed = {
        name: np.concatenate([getattr(tree, name) for tree in trees])
        for name in list(_DTYPES)[:3]
    }
    for name, of in (("n_nodes", "nodes"), ("n_bitsets", "raw_left_cat_bitsets")):
        counts = [[len(getattr(x, of)) for x in each] for each in predictors]
        packed[name] = np.array(counts, dtype=np.int64)
    return packed


def unpack_trees(
    packed: Mapping[str, NDArray], is_categorical: NDArray[np.bool_], n_outputs: int
) -> list[list[TreePredictor]]:
    """Return the trees of packed arrays, by iteration and output. Raise ValueError if
    arrays are malformed: scikit-learn does not check node indices, so that wrong ones
    could read any memory. `is_categorical` is in the trees' order of features.
    """
    if packed.keys() != _DTYPES.keys() or any(
        type(packed[name]) is not np.ndarray for name in _DTYPES
    ):
        raise ValueError("its trees lack arrays")
    # Feature indices have the pointer size of the machine that wrote them.
    arrays = {
        name: np.ascontiguousarray(packed[name].astype(dtype, "K", "same_kind", False))
        for name, dtype in _DTYPES.items()
    }
    nodes, n_nodes, n_bitsets = arrays["nodes"], arrays["n_nodes"], arrays["n_bitsets"]
    bitsets = [arrays["binned_left_cat_bitsets"], arrays["raw_left_cat_bitsets"]]
    n_words = len(bitsets[0])
    if not (
        nodes.ndim == 1
        and n_nodes.shape == n_bitsets.shape == (len(n_nodes), n_outputs)
        and n_nodes.size > 0
        # Within these bounds, sums of counts cannot overflow.
        and np.all((n_nodes > 0) & (n_nodes <= nodes.size))
        and np.all((n_bitsets >= 0) & (n_bitsets <= n_words))
        and n_nodes.sum() == nodes.size
        and n_bitsets.sum() == n_words
        and all(array.shape == (n_words, _BITSET_WORDS) for array in bitsets)
    ):
        raise ValueError("the arrays of its trees do not fit each other")
    _check_nodes(nodes, n_nodes.ravel(), n_bitsets.ravel(), is_categorical)

    cuts = np.cumsum(n_bitsets)[:-1]
    parts = np.split(nodes, np.cumsum(n_nodes)[:-1])
    trees = map(TreePredictor, parts, *(np.split(array, cuts) for array in bitsets))
    return [[next(trees) for _ in iteration] for iteration in n_nodes]


def _check_nodes(
    nodes: NDArray, n_nodes: NDArray[np.int64], n_bitsets: NDArray[np.int64],
    is_categorical: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Raise ValueError unless nodes form trees and all indices are within arrays."""
    roots = np.cumsum(n_nodes) - n_nodes
    for flag in ("is_leaf", "is_categorical", "missing_go_to_left"):
        if np.any(nodes[flag] > 1):
            raise ValueError(f"the flag {flag} of a node is neither 0 nor 1")
    splits = np.flatnonzero(nodes["is_leaf"] == 0)
    tree = np.repeat(np.arange(n_nodes.size), n_nodes)[splits]
    place = splits - roots[tree]
    children = np.stack([nodes["left"][splits], nodes["right"][splits]]).astype(int)
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
    children += roots[tree]
    n_parents = np.bincount(children.ravel(), minlength=nodes.size)
    n_parents[roots] += 1
    depths = nodes["depth"].astype(int)
    if not (
        np.all(n_parents == 1)
        and np.all(depths[roots] == 0)
        and np.all(depths[children] == depths[splits] + 1)
    ):
        raise ValueError("a node of a tree has several parents, none, or another depth")
