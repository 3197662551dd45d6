"""Standard errors of a mean over test eras, where eras of a fold share a model."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics._mean_errors import error_of_neighbours, mean_and_error


def mean_and_safe_error(
    differences: NDArray[np.float64], are_ordered: bool
) -> tuple[Any, Any]:
    """Return means over eras of `differences`, of shape (..., n_folds, n_eras) with NaN
    in eras that a fold does not test, and the larger of two standard errors: for
    related neighbours (of ordered eras), and for eras of a fold, which share a model.
    """
    by_era = mean_over_folds(differences)
    mean, error = mean_and_error(by_era)
    if are_ordered:
        rows = by_era.reshape(error.size, by_era.shape[-1])
        error = np.reshape([error_of_neighbours(row)[0] for row in rows], error.shape)
    return mean, np.fmax(error, _error_of_folds(differences))


def mean_over_folds(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each era's score, the mean over folds that test the era (mostly one)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an era without a score
        return np.nanmean(scores, axis=-2)


def _error_of_folds(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard error of a mean of terms that depend on each other only
    within folds (for folds of equal size, of the mean of fold means); NaN for one fold.
    """
    is_known = np.isfinite(differences)
    n_known = np.maximum(is_known.sum(axis=(-2, -1)), 1)
    total = np.where(is_known, differences, 0.0).sum(axis=(-2, -1))
    residuals = differences - (total / n_known)[..., np.newaxis, np.newaxis]
    of_folds = np.where(is_known, residuals, 0.0).sum(axis=-1)
    n_folds = is_known.any(axis=-1).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(n_folds > 1, n_folds / (n_folds - 1), np.nan)
    return np.sqrt(scale * (of_folds**2).sum(axis=-1)) / n_known
