"""Compute Newton steps of eras' intercepts, and the variances of the steps."""

import numpy as np
from numpy.typing import NDArray
from sklearn._loss.loss import (
    BaseLoss,
    HalfBinomialLoss,
    HalfGammaLoss,
    HalfMultinomialLoss,
    HalfPoissonLoss,
)
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from ..._eras import Array, EncodedEras
from .._exchange import ALONE, Exchange
from .empirical_bayes import cell_values
from .line_search import constants_of_eras

# Losses whose gradients have the variance of their hessians.
_OF_KNOWN_VARIANCE = (HalfBinomialLoss, HalfMultinomialLoss, HalfPoissonLoss)
# Degrees of freedom that the noise of earlier rows counts for at most. Trees fit their
# own rows, which makes it too small for others, once these are enough to tell theirs.
_MOST_BEFORE = 10.0
# Newton steps nearer to 1, in eras far above their predictions, are 1 by rounding.
_LARGEST_OF_GAMMA = 1 - 2.0**-40


def values_of_eras(
    loss: BaseLoss, eras: EncodedEras, y: Array, raw: Array,
    sample_weight: Array | None, intercepts: Array, exchange: Exchange = ALONE,
    largest_step: float = 1.0, noise_before: Array | None = None,
    factors: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return two arrays. The first, of shape (2, n_eras, n_outputs), has the intercepts
    after a Newton step, ``b_j - G_j / H_j``, then their variances ``s2 / H_j``, NaN for
    eras without weight. The second, of shape (2, n_outputs), has s2 of a row of mean
    weight, then its degrees of freedom d: the number of rows less the number of eras.

    s2 is the variance of rows within eras (see `cell_values`), or infinite if d = 0.
    Given `noise_before`, s20 and d0 of earlier rows, it is ``(m s20 + d s2) / (m + d)``
    [1]_, with m the smaller of d0 and `_MOST_BEFORE`. For a loss without a useful
    hessian, the step is a line search by residuals, and s2 is the variance of the
    asymmetric Laplace law whose likelihood is the loss: ``l^2 / mean(g^2)``, with l the
    mean loss and g the gradients. For log and Poisson losses, s2 has a known value, a
    row's mean weight. It is this value if d = 0, and never less, as trees fit their own
    rows, which makes s2 too small. Steps for these losses are at most `largest_step`,
    as the optimum of an era with a single class is infinite. For the gamma loss, whose
    Newton step v has no bound below, the step is the exact one, ``-log(1 - v)``, and
    H_j is that at the new intercept, the sum of the era's weights.

    If rows have `factors` f_i, which do not make them more precise, the step uses ``f_i
    g_i`` and ``f_i h_i``; its variance is ``s2 sum_i f_i^2 h_i / (sum_i f_i h_i)^2``.

    .. [1] G. K. Smyth (2004), Linear models and empirical Bayes methods for assessing
       differential expression in microarray experiments. Statistical Applications in
       Genetics and Molecular Biology 3(1), 3.
    """
    is_known = isinstance(loss, _OF_KNOWN_VARIANCE)
    mean_weight = 1.0
    if sample_weight is not None:
        weights = np.count_nonzero(sample_weight), np.sum(sample_weight)
        n_rows, total = exchange.sum_of(*weights)
        mean_weight = total / n_rows
    n_eras = eras.labels.size
    found = loss.gradient_hessian(
        y, raw, sample_weight, n_threads=_openmp_effective_n_threads()
    )
    g, h = (np.reshape(x, raw.shape) for x in found)
    series, noise = np.empty((2, *intercepts.shape)), np.zeros((2, raw.shape[1]))
    if noise_before is not None:
        noise[:] = noise_before
    for k in range(raw.shape[1]):
        step, H, s2 = cell_values(eras.codes, n_eras, g[:, k], h[:, k], exchange)
        # Both are 0 for eras of other processes.
        step, H = exchange.sum(np.stack([step, H]))
        (n_rows,) = exchange.sum_of(np.count_nonzero(h[:, k]))
        freedom = n_rows - np.count_nonzero(H > 0)
        step_weight = sample_weight
        if isinstance(loss, HalfGammaLoss):
            s2 *= np.sum(H) / (np.sum(H - H * step) or 1.0)
        if factors is not None:
            step, H = _by_factors(eras, g[:, k], h[:, k], factors)
            step_weight = factors if sample_weight is None else sample_weight * factors
        if not loss.differentiable:
            step = constants_of_eras(loss, eras, y - raw[:, k], step_weight)
            at = raw[:, k] + step[eras.codes]
            slope = loss.gradient(y, at)
            mean_loss = loss(y, at, sample_weight=sample_weight)
            s2 = mean_loss**2 / np.average(slope**2, weights=sample_weight)
            s2 *= mean_weight
        elif is_known:
            step = np.clip(step, -largest_step, largest_step)
        elif isinstance(loss, HalfGammaLoss):
            step = np.minimum(step, _LARGEST_OF_GAMMA)
            step, H = -np.log1p(-step), H - H * step
        if freedom > 0:
            before, m = noise[0, k], min(noise[1, k], _MOST_BEFORE)
            pooled = (m * before + freedom * s2 / mean_weight) / (m + freedom)
            noise[:, k] = pooled, m + freedom
            s2 = pooled * mean_weight if m else s2
        else:
            s2 = np.inf  # one row per era: the variance within eras is unknown
        if is_known:
            s2 = mean_weight if freedom == 0 else max(s2, mean_weight)
        series[0, :, k] = intercepts[:, k] + step
        series[1, :, k] = np.divide(s2, H, out=np.full(n_eras, np.nan), where=H > 0)
    return series, noise


def _by_factors(
    eras: EncodedEras, g: Array, h: Array, factors: Array
) -> tuple[Array, Array]:
    """Return each era's step by rows with `factors`, and H of its variance s2 / H."""
    rows, n_eras = (factors * g, factors * h, factors**2 * h), eras.labels.size
    G, H, squares = (np.bincount(eras.codes, x, n_eras) for x in rows)
    step = np.divide(-G, H, out=np.zeros(n_eras), where=H > 0)
    return step, np.divide(H**2, squares, out=np.zeros(n_eras), where=squares > 0)


def unknown_series(intercepts: Array) -> Array:
    """Return a series for eras without weight: `intercepts`, with variances of NaN."""
    return np.stack([intercepts, np.full(intercepts.shape, np.nan)])


def eras_with_weight(series: Array) -> NDArray[np.bool_]:
    """Return a mask of the eras that have weight, by the variances in `series`."""
    return ~np.isnan(series[1]).all(axis=1)
