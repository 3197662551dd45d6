"""Read features, thresholds, gains and leaves of trees; add up sums to the root."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor


def column_of_feature(estimator: BaseEstimator) -> NDArray[np.intp]:
    """Return each feature's column in X; trees number categorical features first."""
    is_categorical = estimator.is_categorical_
    if is_categorical is None:
        return np.arange(estimator.n_features_in_)
    return np.argsort(~is_categorical, kind="stable")


def threshold_text(number: float, others: Iterable[float] | None = None) -> str:
    """Return a threshold as text with all digits that it needs to be the same number:
    many rows may have this value, and must not change sides. If `others`, thresholds of
    the same column, are given, return only the digits that tell it apart from them.
    """
    texts: set[str] | None = None
    for digits in range(6 if abs(number) < 1e6 else 15, 18):  # timestamps: no exponent
        text = f"{number:.{digits}g}"
        if others is not None:
            texts = {f"{x:.{digits}g}" for x in others if x != number}
        if float(text) == number if texts is None else text not in texts:
            break
    return text


def gains_by_column(
    estimator: BaseEstimator, predictors: Iterable[TreePredictor]
) -> NDArray[np.float64]:
    """Return, for each column of X, the sum of the gains of splits. Negative gains, of
    splits that raise the pooled loss of shrunk leaves, count as 0.
    """
    columns = column_of_feature(estimator)
    gains = np.zeros(columns.size)
    for predictor in predictors:
        splits = predictor.nodes[predictor.nodes["is_leaf"] == 0]
        np.add.at(
            gains, columns[splits["feature_idx"]], np.maximum(splits["gain"], 0.0)
        )
    return gains


def is_sent_left(
    predictor: TreePredictor, node: Any, codes: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Return a mask of the bins in `codes` whose categories a split sends left."""
    words = predictor.raw_left_cat_bitsets[node["bitset_idx"]]
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
    return bits[codes] == 1


def leaf_indices(predictor: TreePredictor) -> TreePredictor:
    """Return a copy of a tree that predicts the node index of each row's leaf."""
    nodes = predictor.nodes.copy()
    nodes["value"] = np.arange(nodes.shape[0])
    return TreePredictor(
        nodes, predictor.binned_left_cat_bitsets, predictor.raw_left_cat_bitsets
    )


def sum_up_tree(nodes: NDArray[np.void], sums: NDArray[np.float64]) -> NDArray[np.intp]:
    """Set `sums` of each split node to the sum over its leaves; return split nodes."""
    splits = np.flatnonzero(nodes["is_leaf"] == 0)
    depths = nodes["depth"][splits]
    for depth in np.unique(depths)[::-1]:
        parents = splits[depths == depth]
        sums[parents] = sums[nodes["left"][parents]] + sums[nodes["right"][parents]]
    return splits
