"""Importances of the features of a forest, from its trees alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def mean_decrease_in_impurity(
    forest: Any, columns: NDArray[np.intp]
) -> NDArray[np.float64]:
    """The share of each feature in the gains of the splits, averaged over trees.

    A loss counts as no gain.

    Parameters
    ----------
    forest : EraForestRegressor or EraForestClassifier
        A fitted forest.
    columns : ndarray of shape (n_features,), dtype=intp
        The column of X that each feature of the trees is.

    Returns
    -------
    importances : ndarray of shape (n_features,), dtype=float64
        From 0 to 1; they add up to 1, or are all 0 where no tree has a split.
    """
    importances = np.zeros(columns.size)
    for predictors in forest._predictors:
        gains = np.zeros(columns.size)
        for predictor in predictors:
            splits = predictor.nodes[predictor.nodes["is_leaf"] == 0]
            # Eras may want a split that loses over all rows, once leaves are shrunk.
            gained = np.maximum(splits["gain"], 0.0)
            np.add.at(gains, columns[splits["feature_idx"]], gained)
        total = gains.sum()
        if total > 0:
            importances += gains / total
    total = importances.sum()
    return importances / total if total > 0 else importances


__all__ = ["mean_decrease_in_impurity"]
