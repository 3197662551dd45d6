"""Find the best constants of leaves and of eras for losses without a useful hessian.

They are the quantiles of residuals that the loss's own `fit_intercept_only` finds, for
one leaf or era at a time; its checks would take longer than the rest of a small fit.
"""

from typing import Any

import numpy as np
from sklearn._loss.loss import AbsoluteError, BaseLoss
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    _update_leaves_values,
)
from sklearn.ensemble._hist_gradient_boosting.grower import TreeGrower

from ..._eras import Array, EncodedEras


def update_leaves_values(
    booster: BaseEstimator, *, loss: BaseLoss, grower: Any, y_true: Array,
    raw_prediction: Array, sample_weight: Array | None,
) -> None:  # fmt: skip
    """Set each leaf to the best constant of its rows' residuals, times the rate."""
    if isinstance(grower, TreeGrower):
        _update_leaves_values(loss, grower, y_true, raw_prediction, sample_weight)
        return
    residuals, leaves = y_true - raw_prediction, grower.finalized_leaves
    rows = [leaf.sample_indices for leaf in leaves]
    values, weights = [residuals[own] for own in rows], None
    if sample_weight is None:
        for own in values:
            own.sort()
    else:
        orders = [own.argsort(kind="stable") for own in values]
        values = [own[order] for own, order in zip(values, orders, strict=True)]
        pairs = zip(rows, orders, strict=True)
        weights = sample_weight[np.concatenate([own[order] for own, order in pairs])]
    counts = np.array([own.size for own in rows])
    steps = _best_constants(loss, np.concatenate(values), counts, weights)
    for leaf, step in zip(leaves, steps, strict=True):
        leaf.value = grower.shrinkage * step


def constants_of_eras(
    loss: BaseLoss, eras: EncodedEras, residuals: Array, sample_weight: Array | None
) -> Array:
    """Return the best constant for each era's residuals; 0 for eras without weight."""
    order = np.lexsort((residuals, eras.codes))
    weights = None if sample_weight is None else sample_weight[order]
    return _best_constants(loss, residuals[order], np.bincount(eras.codes), weights)


def _best_constants(
    loss: BaseLoss, values: Array, counts: Any, weights: Array | None
) -> Array:
    """Return the quantile of each group, of which `values` has one after the other,
    each in ascending order; 0 for groups without weight.
    """
    share = 100 * getattr(loss.closs, "quantile", 0.5) / 100  # as by percentiles
    starts = np.cumsum(counts) - counts
    if weights is None:
        places = np.maximum(counts - 1, 0) * share
        low = np.floor(places)
        t = places - low
        a, b = (values[starts + x.astype(np.intp)] for x in (low, np.ceil(places)))
        if isinstance(loss, AbsoluteError):
            return (a + b) / 2
        return np.where(t < 0.5, a + (b - a) * t, b - (b - a) * (1 - t))
    constants = np.zeros(counts.size)
    for j, own in enumerate(np.split(weights, starts[1:])):
        if own.any():
            sums = own.cumsum()
            place = min(sums.searchsorted(share * sums[-1]), sums.size - 1)
            constants[j] = values[starts[j] + place]
    return constants
