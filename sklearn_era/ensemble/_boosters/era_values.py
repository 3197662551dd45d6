"""Compute Newton steps of eras' intercepts, and the variances of the steps."""

import numpy as np
from numpy.typing import NDArray
from sklearn._loss.loss import (
    BaseLoss,
    HalfBinomialLoss,
    HalfMultinomialLoss,
    HalfPoissonLoss,
)
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from ..._eras import Array, EncodedEras
from .._exchange import ALONE, Exchange
from .empirical_bayes import cell_values

# Losses whose gradients have the variance of their hessians.
_OF_KNOWN_VARIANCE = (HalfBinomialLoss, HalfMultinomialLoss, HalfPoissonLoss)


def values_of_eras(
    loss: BaseLoss, eras: EncodedEras, y: Array, raw: Array,
    sample_weight: Array | None, intercepts: Array, exchange: Exchange = ALONE,
    largest_step: float = 1.0,
) -> Array:  # fmt: skip
    """Return an array (2, n_eras, n_outputs): the intercepts after a Newton step,
    ``b_j - G_j / H_j``, and their variances ``s2 / H_j``, NaN for eras without weight.

    s2 is the variance of rows within eras; see `cell_values`. For a loss without a
    useful hessian, the step is a line search by residuals, and s2 is the variance of
    the asymmetric Laplace law whose likelihood is the loss: ``m^2 / mean(g^2)``, with m
    the mean loss and g the gradients. Trees fit their own rows, which makes s2 too
    small. For log and Poisson losses, s2 is therefore at least its known value, a row's
    mean weight. Steps for these losses are at most `largest_step`, as the optimum of an
    era with a single class is infinite.
    """
    is_known = isinstance(loss, _OF_KNOWN_VARIANCE)
    least_s2 = 1.0
    if sample_weight is not None:
        weights = np.count_nonzero(sample_weight), np.sum(sample_weight)
        n_rows, total = exchange.sum_of(*weights)
        least_s2 = total / n_rows
    n_eras = eras.labels.size
    found = loss.gradient_hessian(
        y, raw, sample_weight, n_threads=_openmp_effective_n_threads()
    )
    g, h = (np.reshape(x, raw.shape) for x in found)
    series = np.empty((2, *intercepts.shape))
    for k in range(raw.shape[1]):
        step, H, s2 = cell_values(eras.codes, n_eras, g[:, k], h[:, k], exchange)
        # Both are 0 for eras of other processes.
        step, H = exchange.sum(np.stack([step, H]))
        if is_known:
            s2, step = max(s2, least_s2), np.clip(step, -largest_step, largest_step)
        elif exchange.sum_of(np.count_nonzero(h[:, k])) == ((H > 0).sum(),):
            s2 = np.inf  # one row per era: the variance within eras is unknown
        if not loss.differentiable:
            step = _line_search(loss, eras, y - raw[:, k], sample_weight)
            at = raw[:, k] + step[eras.codes]
            slope = loss.gradient(y, at)
            mean_loss = loss(y, at, sample_weight=sample_weight)
            s2 = mean_loss**2 / np.average(slope**2, weights=sample_weight)
            s2 *= least_s2  # of a row of the mean weight
        series[0, :, k] = intercepts[:, k] + step
        series[1, :, k] = np.divide(s2, H, out=np.full(n_eras, np.nan), where=H > 0)
    return series


def eras_with_weight(series: Array) -> NDArray[np.bool_]:
    """Return a mask of the eras with weight; `values_of_eras` returns `series`."""
    return ~np.isnan(series[1]).all(axis=1)


def _line_search(
    loss: BaseLoss, eras: EncodedEras, residuals: Array, sample_weight: Array | None
) -> Array:
    """Return the best constant for each era's residuals; 0 for eras without weight."""
    steps = np.zeros(eras.labels.size)
    for j, rows in enumerate(eras.rows):
        weights = None if sample_weight is None else sample_weight[rows]
        if weights is None or weights.any():
            steps[j] = loss.fit_intercept_only(residuals[rows], weights).item()
    return steps
