"""The value of each node of a tree: the mean target of its rows."""

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from ..._trees.walk import leaf_indices, sum_up_tree


def node_means(
    predictor: TreePredictor,
    X_binned: NDArray[np.uint8],
    missing_values_bin_idx: int,
    target: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    mean: float,
    l2_regularization: float,
    n_threads: int,
) -> NDArray[np.float64]:
    """Return ``(sum(w y) + l2 mean) / (sum(w) + l2)`` of each node, the Newton value of
    squared error at the baseline `mean`, summed in double precision: the proportion of
    a class in a pure leaf is exactly 0 or 1. Nodes without weight have the mean.
    """
    nodes = predictor.nodes
    leaves = leaf_indices(predictor).predict_binned(
        X_binned, missing_values_bin_idx, n_threads
    )
    leaf_of_row = leaves.astype(np.intp)
    weighted = target if sample_weight is None else sample_weight * target
    sums = np.empty((nodes.shape[0], 2))
    for j, values in enumerate((weighted, sample_weight)):
        sums[:, j] = np.bincount(leaf_of_row, values, minlength=nodes.shape[0])
    sum_up_tree(nodes, sums)
    total, weight = sums[:, 0], sums[:, 1] + l2_regularization
    return np.divide(
        total + l2_regularization * mean,
        weight,
        out=np.full(nodes.shape[0], mean),
        where=weight > 0,
    )


__all__ = ["node_means"]
