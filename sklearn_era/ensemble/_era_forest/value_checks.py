"""What a forest asks of the values of X, of the target and of the weights."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_era.ensemble._hist_gradient_boosting.integer_binning import draw_rows
from sklearn_era.ensemble._hist_gradient_boosting.tree_walk import column_of_feature


def check_known_columns(
    forest: Any, X: Any, sample_weight: NDArray[np.float64] | None
) -> None:
    """Check that each numeric column has a value to make bins from.

    Parameters
    ----------
    forest : EraForestRegressor or EraForestClassifier
        With a bin mapper that is about to be fitted.
    X : ndarray of shape (n_samples, n_features), dtype=float64
        Categorical features first. All else, small integers and rows that have been
        binned before, has values.
    sample_weight : ndarray of shape (n_samples,), dtype=float64, or None

    Raises
    ------
    ValueError
        If all values of a column are missing, or those that are not have no weight.
        scikit-learn's own error names neither the column nor what is wrong.
    """
    if not isinstance(X, np.ndarray):
        return
    rows = draw_rows(forest._bin_mapper, X.shape[0], sample_weight)
    if rows is None:
        rows = np.arange(X.shape[0])
        if sample_weight is not None:
            rows = rows[sample_weight > 0]
    columns = column_of_feature(forest)
    is_categorical = forest._is_categorical_remapped
    for feature in np.flatnonzero(np.isnan(X[rows[0]])):  # few, so that this is cheap
        if is_categorical is not None and is_categorical[feature]:
            continue
        if np.isnan(X[rows, feature]).all():
            column = int(columns[feature])
            names = getattr(forest, "feature_names_in_", None)
            name = column if names is None else repr(str(names[column]))
            raise ValueError(
                f"X: column {name} has only missing values in the {rows.size} rows "
                "that its bins are made from; leave it out."
            )


def check_single_precision(
    y: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
) -> None:
    """Check that what trees sum up, differences of y times weights, is in range.

    Out of it, splits would be lost without a word.

    Parameters
    ----------
    y : ndarray of shape (n_samples,), dtype=float64
        The target, encoded.
    sample_weight : ndarray of shape (n_samples,), dtype=float64, or None
        Not all 0.

    Raises
    ------
    ValueError
        If the largest is above what float32 holds, or below what it holds in full.
    """
    limits = np.finfo(np.float32)
    tiny, huge = float(limits.tiny), float(limits.max)
    largest = 1.0
    if sample_weight is not None:
        y = y[sample_weight > 0]
        largest = float(sample_weight.max())
        if not tiny <= largest <= huge:
            raise ValueError(
                f"sample_weight is up to {largest:.3g}, out of the range of single "
                f"precision ({tiny:.2g} to {huge:.2g}), in which trees are grown; "
                "divide the weights by their mean."
            )
    with np.errstate(over="ignore"):
        spread = float(np.ptp(y)) * largest
    if spread != 0.0 and not tiny <= spread <= huge:
        weighted = "" if sample_weight is None else " times the largest weight"
        raise ValueError(
            f"y: the largest difference of two targets{weighted} is {spread:.3g}, out "
            f"of the range of single precision ({tiny:.2g} to {huge:.2g}), in which "
            "trees are grown; divide y by a constant."
        )


__all__ = ["check_known_columns", "check_single_precision"]
