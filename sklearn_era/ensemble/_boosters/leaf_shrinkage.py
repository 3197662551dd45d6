"""Shrink the value of a leaf, more so if the value differs more between eras.

With G and H the sums of gradients and hessians, a leaf has a value ``v_j = -G_j / H_j``
in each of its m eras, and ``v = -G / H`` over all of them. The variance of ``v_j``
within eras is ``f_j s2 / H_j``. Here f_j is the factor by which `era_weighting`
multiplies the weights of the era (1 without it), and s2 is the variance within cells
(see `cell_values`; a cell is the rows of an era in a leaf), computed without these
factors. The variance between eras is estimated by moments [1]_,

    tau2 = max(0, (sum_j H_j (v_j - v)^2 - s2 sum_j f_j (1 - H_j / H))
                  / (H - sum_j H_j^2 / H)),

and the variance of ``v`` is ``sum_j (H_j / H)^2 (tau2 + f_j s2 / H_j)``; without
factors, the sum of ``f_j (1 - H_j / H)`` is m - 1. The leaf is multiplied by its
empirical Bayes factor (see `empirical_bayes`), which all leaves of the tree determine.

.. [1] R. DerSimonian, N. Laird (1986), Meta-analysis in clinical trials. Controlled
   Clinical Trials 7, 177-188; their weights w_j are our H_j / s2, without factors.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..._eras import Array
from .._exchange import ALONE, Exchange
from .empirical_bayes import cell_values, empirical_bayes_factors
from .era_weights import current_factors, divide


def leaf_factors(
    values: Array, H: Array, s2: float, exchange: Exchange = ALONE,
    of_eras: Array | None = None,
) -> Array:  # fmt: skip
    """Return each leaf's shrinkage factor, from `values` and `H` of shape (n_leaves,
    n_eras). If eras are weighed, `of_eras` has the factors of their weights.
    """
    total = exchange.sum(H.sum(axis=1))
    share = np.divide(H, total[:, None], out=np.zeros(H.shape), where=H > 0)
    by_era = np.stack([share * values, H > 0, H * share, share**2])
    value, n_eras, shared, squared_share = exchange.sum(by_era.sum(axis=2))
    spread = exchange.sum((H * (values - value[:, None]) ** 2).sum(axis=1))
    free, of_value = n_eras - 1, 1.0
    if of_eras is not None:
        by_era = of_eras * np.stack([(H > 0) - share, share])
        free, of_value = exchange.sum(by_era.sum(axis=2))
    excess, none = spread - free * s2, np.zeros(total.size)
    # Not if an era weighs so much that it is all of a leaf, to rounding.
    tau2 = np.divide(excess, total - shared, out=none, where=total > shared)
    of_value = of_value * s2
    within = np.divide(of_value, total, out=np.zeros(total.size), where=total > 0)
    variance = squared_share * np.maximum(tau2, 0.0) + within
    return empirical_bayes_factors(value, variance, weights=total)


def shrink_leaves(
    booster: BaseEstimator, grower: Any, gradients: NDArray[Any], hessians: NDArray[Any]
) -> None:
    """Multiply each leaf of a grown tree by its factor if `leaf_shrinkage` is set. With
    monotonic constraints, multiply all leaves by the mean factor, to keep the order of
    their values: values cannot be clipped, as the grower does not know all of their
    bounds, and a line search ignores bounds.
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
    if (of_eras := current_factors(booster, eras)) is not None:
        # A factor tells how much an era is to count, not how precise its rows are.
        of_rows = of_eras[eras.codes]
        g, h = (divide(x, of_rows) for x in (g, h))
    values, H, s2 = cell_values(cells, len(leaves) * n_eras, g, h, exchange)
    H = H.reshape(len(leaves), n_eras)
    values, H = values.reshape(H.shape), H if of_eras is None else H * of_eras
    factors = leaf_factors(values, H, s2, exchange, of_eras)
    if np.any(grower.monotonic_cst):
        factors[:] = np.average(factors, weights=exchange.sum(H.sum(axis=1)))
    for leaf, factor in zip(leaves, factors.tolist(), strict=True):
        leaf.value *= factor
