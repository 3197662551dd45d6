"""Compute empirical Bayes estimates of the values of leaves and of eras.

True values are assumed to vary about 0 with variance A, estimated from all values
given. The best estimate of a value is ``A / (A + variance)`` times the value: the
empirical Bayes factor [1]_.

.. [1] B. Efron, C. Morris (1975), Data analysis using Stein's estimator and its
   generalizations. Journal of the American Statistical Association 70, 311-319.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._eras import Array
from .._exchange import ALONE, Exchange


def cell_values(
    cells: NDArray[np.integer], n_cells: int, gradients: NDArray[np.floating],
    hessians: NDArray[np.floating], exchange: Exchange = ALONE,
) -> tuple[Array, Array, float]:  # fmt: skip
    """Return (v, H, s2). A cell is a set of rows, with sums G of gradients and H of
    hessians, and has the value ``v = -G / H``, whose variance is ``s2 / H``. With n
    rows in c cells, and row i in cell j,

        s2 = sum_i (g_i + h_i v_j)^2 / H n / (n - c),

    in which a row with a hessian of almost 0 counts for no more than other rows.
    """
    G = np.bincount(cells, gradients, n_cells)
    H: Any = np.bincount(cells, hessians, n_cells)
    is_filled = H > 0
    # Of rows that are all fitted exactly, neither values nor variances overflow.
    np.maximum(H, np.finfo(np.float32).tiny, out=H, where=is_filled)
    values = np.divide(-G, H, out=np.zeros(n_cells), where=is_filled)
    # No product by BLAS: its threads would spin beside OpenMP's until the next tree,
    # and their number would change the last digit.
    squares = np.sum((gradients + hessians * values[cells]) ** 2)
    n_rows, n_filled, total, squares = exchange.sum_of(
        np.count_nonzero(hessians > 0), np.count_nonzero(is_filled), H.sum(), squares
    )
    mean = total / n_rows if n_rows else 1.0
    return values, H, squares / (max(n_rows - n_filled, 1) * (mean or 1.0))


def empirical_bayes_factors(
    values: Array, variances: Array, weights: Array | None = None
) -> Array:
    """Return ``A / (A + variance)`` for each value, where ``A = max(0, mean(v^2 -
    variance))`` is the (weighted) variance of values about 0, less their noise.
    """
    prior = max(0.0, np.average(values**2 - variances, weights=weights))
    total = prior + variances
    return np.divide(prior, total, out=np.ones(total.shape), where=total > 0)


def shrink(series: Array) -> Array:
    """Return the values of eras, multiplied by their empirical Bayes factors. `series`
    has the values, then their variances; values without a finite variance become 0.
    """
    values, variances = series
    shrunk = np.zeros(values.shape)
    is_known = np.isfinite(variances)
    for k in np.flatnonzero(is_known.any(axis=0)):  # none in a fit that diverges
        known = is_known[:, k]
        factors = empirical_bayes_factors(values[known, k], variances[known, k])
        shrunk[known, k] = factors * values[known, k]
    return shrunk
