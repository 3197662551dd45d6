"""Estimate errors of a mean over eras, for independent eras and for neighbours."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mean_and_error(differences: NDArray[np.float64]) -> tuple[Any, Any]:
    """Return (means, errors): the means over the last axis, without NaN, and their
    standard errors for independent eras, which are NaN for fewer than two eras.
    """
    n_known = np.isfinite(differences).sum(axis=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of no era, or one
        mean = np.nanmean(differences, axis=-1)
        deviation = np.nanstd(differences, axis=-1, ddof=1)
    return mean, deviation / np.sqrt(np.maximum(n_known, 1))


def error_of_neighbours(differences: NDArray[np.float64]) -> tuple[float, float]:
    """Return the standard error of the mean of `differences`, taken for successive
    values of an AR(1) process, and how many independent values would have this error.

    If neighbours have the correlation r, the mean of M values has v times the variance
    of one value, ``v = (1 + 2 sum_h (1 - h / M) r^h) / M``, and the mean square around
    the mean is 1 - v times this variance. An estimate of r from few eras is too small
    by about (1 + 3 r) / M (Kendall 1954), which is added.
    """
    values = differences[np.isfinite(differences)]
    n = values.size
    if n < 2:
        return np.nan, n
    values = values - values.mean()
    square = values @ values
    if square == 0:
        return 0.0, n
    r = values[1:] @ values[:-1] / square
    r = np.clip(r + (1 + 3 * max(r, 0.0)) / n, 0.0, 0.95)
    lags = np.arange(1, n)
    v = (1 + 2 * (1 - lags / n) @ r**lags) / n
    return float(np.sqrt(square / n * v / (1 - v))), float(1 / v)
