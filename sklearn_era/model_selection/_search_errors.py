"""Standard errors of a mean over eras: of independent ones, and of related ones."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mean_and_error(differences: NDArray[np.float64]) -> tuple[Any, Any]:
    """Return means over the last axis, without NaN, and their errors as if eras were
    independent, NaN of fewer than two.
    """
    n_known = np.isfinite(differences).sum(axis=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of no era, or one
        mean = np.nanmean(differences, axis=-1)
        deviation = np.nanstd(differences, axis=-1, ddof=1)
    return mean, deviation / np.sqrt(np.maximum(n_known, 1))


def mean_and_safe_error(
    differences: NDArray[np.float64], are_ordered: bool
) -> tuple[Any, Any]:
    """Return means over eras of differences of shape (..., n_folds, n_eras), NaN where
    a fold does not test an era, and the larger of two standard errors. One takes
    neighbouring eras for related, where eras are ordered; the other one those of a
    fold, which share a model.
    """
    by_era = mean_over_folds(differences)
    mean, error = mean_and_error(by_era)
    if are_ordered:
        rows = by_era.reshape(error.size, by_era.shape[-1])
        error = np.reshape([_error_of_neighbours(row) for row in rows], error.shape)
    return mean, np.fmax(error, _error_of_folds(differences))


def mean_over_folds(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores of eras, most of which a single fold tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an era without a score
        return np.nanmean(scores, axis=-2)


def _error_of_neighbours(differences: NDArray[np.float64]) -> float:
    """Return the standard error of the mean of an AR(1) process.

    With the correlation r of neighbours, the variance of a mean of M values is v times
    theirs, ``v = (1 + 2 sum_h (1 - h / M) r^h) / M``, and the mean square around the
    mean is 1 - v times theirs. r is estimated from few eras, too small by about
    (1 + 3 r) / M (Kendall 1954), which is added.
    """
    values = differences[np.isfinite(differences)]
    n = values.size
    if n < 2:
        return np.nan
    values = values - values.mean()
    square = values @ values
    if square == 0:
        return 0.0
    r = values[1:] @ values[:-1] / square
    r = np.clip(r + (1 + 3 * max(r, 0.0)) / n, 0.0, 0.95)
    lags = np.arange(1, n)
    v = (1 + 2 * (1 - lags / n) @ r**lags) / n
    return float(np.sqrt(square / n * v / (1 - v)))


def _error_of_folds(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard error of a mean whose terms are independent between folds
    alone, NaN of a single fold: that of the folds' means where folds have as many eras.
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
