"""Shrink the value of a leaf, the more it differs between eras.

A leaf has a value ``v_j = -G_j / H_j`` in each of its eras, and ``v = -G / H`` over all
of them. The variance of ``v_j`` within eras is ``s2 / H_j``, where ``s2`` is pooled
over the n rows of the tree in c cells of leaves and eras,

    s2 = sum_i (g_i + h_i v_j)^2 / H n / (n - c),

in which no row with a hessian of almost 0 counts for more than others. The variance
between eras is estimated by moments [1]_,

    tau2 = max(0, (sum_j H_j (v_j - v)^2 - (m - 1) s2) / (H - sum_j H_j^2 / H)),

and the variance of ``v`` is ``sum_j (H_j / H)^2 tau2 + s2 / H``. True values
are assumed to vary about 0 with variance A, estimated from the tree's own leaves; their
best estimate is ``A / (A + variance)`` times ``v``: the empirical Bayes factor [2]_.

.. [1] R. DerSimonian, N. Laird (1986), Meta-analysis in clinical trials. Controlled
   Clinical Trials 7, 177-188; their weights w_j are our H_j / s2.
.. [2] B. Efron, C. Morris (1975), Data analysis using Stein's estimator and its
   generalizations. Journal of the American Statistical Association 70, 311-319.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..._eras import Array
from .._exchange import ALONE, Exchange


def cell_values(
    cells: NDArray[np.integer], n_cells: int, gradients: NDArray[np.floating],
    hessians: NDArray[np.floating], exchange: Exchange = ALONE,
) -> tuple[Array, Array, float]:  # fmt: skip
    """Return three results for cells, which are sets of rows: ``-G / H`` of each cell,
    H of each cell, and s2. The noise of a cell's rows gives its ``-G / H`` the variance
    ``s2 / H``.
    """
    has_weight = hessians > 0
    G, H = np.empty((2, n_cells))
    G[:] = np.bincount(cells, gradients, n_cells)
    H[:] = np.bincount(cells, hessians, n_cells)
    # Of rows that are all fitted exactly, neither values nor variances overflow.
    H[H > 0] = np.maximum(H[H > 0], np.finfo(np.float32).tiny)
    values = np.divide(-G, H, out=np.zeros(n_cells), where=H > 0)
    # No product by BLAS: its threads would spin beside OpenMP's until the next tree,
    # and their number would change the last digit.
    squares = np.sum((gradients + hessians * values[cells]) ** 2)
    n_rows, n_filled, total, squares = exchange.sum_of(
        has_weight.sum(), (H > 0).sum(), H.sum(), squares
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


def leaf_factors(
    values: Array, H: Array, s2: float, exchange: Exchange = ALONE
) -> Array:
    """Return each leaf's shrinkage factor; `values` and `H` are (n_leaves, n_eras)."""
    total = exchange.sum(H.sum(axis=1))
    share = np.divide(H, total[:, None], out=np.zeros(H.shape), where=H > 0)
    by_era = np.stack([share * values, H > 0, H * share, share**2])
    value, n_eras, shared, squared_share = exchange.sum(by_era.sum(axis=2))
    spread = exchange.sum((H * (values - value[:, None]) ** 2).sum(axis=1))
    excess, none = spread - (n_eras - 1) * s2, np.zeros(total.size)
    tau2 = np.divide(excess, total - shared, out=none, where=n_eras > 1)
    within = np.divide(s2, total, out=np.zeros(total.size), where=total > 0)
    variance = squared_share * np.maximum(tau2, 0.0) + within
    return empirical_bayes_factors(value, variance, weights=total)


def shrink_leaves(
    booster: BaseEstimator, grower: Any, gradients: NDArray[Any], hessians: NDArray[Any]
) -> None:
    """Multiply each leaf of a grown tree by its factor if `leaf_shrinkage` is set. With
    monotonic constraints, multiply all leaves by the mean factor, which keeps their
    order: the grower does not know all bounds, and a line search ignores them.
    """
    if booster.leaf_shrinkage is None:
        return
    eras, exchange = booster._fit_state.training_eras, booster._exchange
    leaves, n_eras = grower.finalized_leaves, eras.labels.size
    if n_eras == 1 or len(leaves) == 1:
        return
    cells = eras.codes.astype(np.intp)
    for i, leaf in enumerate(leaves):
        cells[leaf.sample_indices] += i * n_eras
    h = np.broadcast_to(hessians, gradients.shape).astype(np.float64)
    g = gradients.astype(np.float64)
    values, H, s2 = cell_values(cells, len(leaves) * n_eras, g, h, exchange)
    H = H.reshape(len(leaves), n_eras)
    factors = leaf_factors(values.reshape(H.shape), H, s2, exchange)
    if np.any(grower.monotonic_cst):
        factors[:] = np.average(factors, weights=exchange.sum(H.sum(axis=1)))
    for leaf, factor in zip(leaves, factors.tolist(), strict=True):
        leaf.value *= factor
