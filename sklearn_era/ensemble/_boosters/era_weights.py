"""Weigh eras in each iteration. With `GroupDRO`, each iteration changes the weights by

    q_j <- q_j exp(eta loss_j) / sum_i q_i exp(eta loss_i),    q_j = 1 / M at first.

Here eta is the `step_size`, and loss_j the mean loss of era j, whose rows' weights are
multiplied by ``M q_j``. The mean of ``M q_j`` over the M eras is 1. The logarithm of
``M q_j`` is stored, so that an era can recover from a weight that underflows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn._loss.loss import BaseLoss
from sklearn.base import BaseEstimator
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from ..._era_labels import as_objects, find
from ..._eras import Array, EncodedEras, is_fixed, weigh_eras
from ..._fit_attributes import drop_attributes
from ...effects import GroupDRO
from .._exchange import ALONE, Exchange

# Attributes of a fit that weighs eras: their labels, a row of factors for each
# iteration, the last of which holds for all later ones, and the latest logarithms of
# Group DRO.
FITTED_WEIGHTS = ("_weighted_eras", "_era_weights", "_era_log_weights")


class MovingEraWeights:
    """The weights of eras, which change during a fit. An era whose rows all have weight
    0 keeps its weight.
    """

    def __init__(
        self, eras: EncodedEras, step_size: float, exchange: Exchange = ALONE,
        log_weights: Array | None = None,
    ):  # fmt: skip
        self._eras, self._step_size, self._exchange = eras, step_size, exchange
        n_eras = eras.labels.size
        # ``log(M q_j)``, never changed in place.
        self.log_weights = np.zeros(n_eras) if log_weights is None else log_weights
        # By era: the weight of its rows, and the sum of the constants that losses omit.
        self._totals: Array | None = None
        self._constants = np.zeros(n_eras)

    def update(
        self, estimator: BaseEstimator, y: Array, raw: Array, base: Array,
        sample_weight: Array,
    ) -> None:  # fmt: skip
        """Move the weights of eras by one step, and append them to the estimator's
        record. Overwrite `sample_weight` by `base`, the weights of rows, times the new
        weight of each row's era. Raise ValueError if a step overflows.
        """
        losses, has_weight = self._mean_losses(estimator._loss, y, raw, base)
        with np.errstate(over="ignore", invalid="ignore"):
            steps = self._step_size * losses
            moved = next_log_weights(self.log_weights, steps, has_weight)
        if not np.isfinite(moved).all():
            worst = np.argmax(np.where(np.isfinite(losses), np.abs(losses), np.inf))
            raise ValueError(
                f"GroupDRO(step_size={self._step_size!r}) times the mean loss of era "
                f"{self._eras.labels[worst]!s}, {losses[worst]:g}, is too large for a "
                "number: lower step_size, or scale y so that the loss is smaller."
            )
        self.log_weights = moved
        factors = np.exp(moved)
        np.multiply(base, factors[self._eras.codes], out=sample_weight)
        estimator._era_weights.append(factors)
        estimator._era_log_weights = self.log_weights

    def _mean_losses(
        self, loss: BaseLoss, y: Array, raw: Array, base: Array
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return each era's mean loss, 0 for an era without weight, and a mask of the
        eras with weight. Include the constants that scikit-learn's losses omit; without
        these, eras with large counts would seem to have the smallest losses.
        """
        if self._totals is None:
            constants = base * loss.constant_to_optimal_zero(y)
            self._totals, self._constants = self._sums(base, constants)
        n_threads = _openmp_effective_n_threads()
        with np.errstate(over="ignore", invalid="ignore"):
            (sums,) = self._sums(base * loss.loss(y, raw, None, None, n_threads))
            sums = sums + self._constants
        has_weight = self._totals > 0
        means = np.divide(sums, self._totals, out=np.zeros(sums.size), where=has_weight)
        return means, has_weight

    def _sums(self, *values: Array) -> Array:
        """Return each array's sums by era over all processes, as rows of one array."""
        codes, n_eras = self._eras.codes, self._eras.labels.size
        sums = [np.bincount(codes, each, n_eras) for each in values]
        return self._exchange.sum(np.stack(sums))


def next_log_weights(
    log_weights: Array, steps: Array, has_weight: NDArray[np.bool_]
) -> Array:
    """Return ``log(M q_j)`` after a step by ``eta loss_j``; the mean weight stays 1."""
    moved = log_weights.copy()
    of_eras = (log_weights + steps)[has_weight]
    of_eras -= of_eras.max()
    moved[has_weight] = of_eras - np.log(np.mean(np.exp(of_eras)))
    return moved


def is_reweighted(estimator: BaseEstimator) -> bool:
    """Return whether Group DRO multiplies rows by weights of eras. With a step size of
    0, all weights of eras are 1, unless a warm start continues with earlier weights.
    """
    weighting = estimator.era_weighting
    goes_on = estimator.warm_start and hasattr(estimator, "_era_log_weights")
    return isinstance(weighting, GroupDRO) and (weighting.step_size > 0 or goes_on)


def weigh_rows(
    estimator: BaseEstimator, eras: EncodedEras, sample_weight: Array | None
) -> Array | None:
    """Return the weights of rows, multiplied by fixed weights of their eras if there
    are any. If weights of eras change in each iteration, return a copy of the weights
    of rows instead, which is then updated in place.
    """
    state, is_moved = estimator._fit_state, is_reweighted(estimator)
    if not (is_moved or is_fixed(estimator.era_weighting)):
        return sample_weight
    estimator._fitted_with_sw = True  # scikit-learn's partial dependence needs it
    if is_moved:
        state.has_unit_weights = sample_weight is None
        # A copy, since the array may be the user's.
        return (
            np.ones(eras.codes.size) if sample_weight is None else sample_weight.copy()
        )
    weights, factors = weigh_eras(eras, sample_weight, estimator.era_weighting)
    state.era_factors = eras.labels, factors
    return weights


def base_weights(
    estimator: BaseEstimator, eras: EncodedEras, sample_weight: Array | None
) -> Array | None:
    """Return the weights of rows without the factors of their eras, for estimates of
    eras: a factor sets how much an era counts, not how precise its rows are.
    """
    factors = fixed_factors(estimator, eras)
    if sample_weight is None or factors is None:
        return sample_weight
    return divide(sample_weight, factors[eras.codes])


def divide(values: Array, factors: Array) -> Array:
    """Return ``values / factors``, or 0 where a factor has underflowed to 0."""
    out = np.zeros(values.shape)
    return np.divide(values, factors, out=out, where=factors > 0)


def fixed_factors(estimator: BaseEstimator, eras: EncodedEras) -> Array | None:
    """Return the factor of each era's weights if fixed for the whole fit, else None."""
    if (factors := estimator._fit_state.era_factors) is None:
        return None
    return factors[1][find(factors[0], eras.labels)]


def current_factors(estimator: BaseEstimator, eras: EncodedEras) -> Array | None:
    """Return the present factor of each era's weights, or None if there are none."""
    if (dro := estimator._fit_state.group_dro) is not None:
        return np.exp(dro.log_weights)
    return fixed_factors(estimator, eras)


def begin_era_weights(
    estimator: BaseEstimator, eras: EncodedEras | None, is_warm: bool,
    exchange: Exchange,
) -> MovingEraWeights | None:  # fmt: skip
    """Begin the estimator's record of the weights of eras. Return the object that
    updates the weights, or None if the weights are fixed. Raise ValueError if a warm
    start continues with the weights of other eras.
    """
    reached = estimator.__dict__.get("_era_log_weights") if is_warm else None
    known = estimator.__dict__.get("_weighted_eras")
    record: list[Array] = []
    moves = is_reweighted(estimator)
    if eras is not None and is_warm:
        is_same = known is not None and np.array_equal(
            find(known, eras.labels), np.arange(known.size)
        )
        if moves and reached is not None and not is_same:
            raise ValueError(
                f"eras has {eras.labels.size} eras to train on that are not the "
                f"{known.size} whose weights warm_start=True goes on with; pass the "
                "same eras, or set warm_start=False."
            )
        before = np.full((1, eras.labels.size), 1.0 if known is None else np.nan)
        if is_same:
            before = estimator._era_weights
        record = list(_by_iteration(before, len(estimator._predictors)))
    drop_attributes(estimator, FITTED_WEIGHTS)
    if estimator.era_weighting == "rows":
        return None
    assert eras is not None  # by `_check_eras`
    estimator._weighted_eras, estimator._era_weights = eras.labels, record
    if moves:
        step = float(estimator.era_weighting.step_size)
        dro = MovingEraWeights(eras, step, exchange, reached)
        estimator._era_log_weights = dro.log_weights
        return dro
    factors = np.ones(eras.labels.size)
    if (of_all := estimator._fit_state.era_factors) is not None:
        labels, factors = of_all
        factors = factors[np.isin(labels, eras.labels)]
    record.append(factors)
    return None


def _by_iteration(rows: Array, n_iter: int) -> Array:
    """Return `n_iter` rows, one for each iteration; repeat the last row if needed."""
    n_missing = max(0, n_iter - len(rows))
    return np.concatenate([rows[:n_iter], np.repeat(rows[-1:], n_missing, axis=0)])


def weights_by_label(estimator: BaseEstimator) -> dict[Any, Array]:
    """Return a dict from labels of eras to arrays of shape ``(n_iter_,)``, with the
    factor of the weights of the era's rows in each iteration. Raise AttributeError if
    the fit did not weigh eras.
    """
    if not hasattr(estimator, "_era_weights"):
        raise AttributeError(
            f"{type(estimator).__name__} has era_weights_ after a fit with "
            "another era_weighting than 'rows' only."
        )
    table = _by_iteration(np.asarray(estimator._era_weights), estimator.n_iter_)
    return dict(zip(as_objects(estimator._weighted_eras), table.T.copy(), strict=True))
