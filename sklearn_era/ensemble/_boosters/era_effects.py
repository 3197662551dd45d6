"""Estimate an intercept for each era along with the trees, and forecast it."""

from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..._era_labels import find
from ..._eras import Array, EncodedEras
from ..._fit_attributes import drop_attributes
from ...effects import Intercepts, intercepts_of
from .._exchange import ALONE, Exchange
from .empirical_bayes import shrink
from .era_values import eras_with_weight, unknown_series, values_of_eras
from .group_intercepts import GroupIntercepts
from .level_forecast import follow_levels, forecast_levels

# Attributes of a fit with intercepts: the labels, the intercept of each era and output,
# the forecast, which is part of `_baseline_prediction`, and their inputs: values and
# variances of eras, the noise of rows, the columns that are constant within them with
# their bins, and the paths of levels. `_before_held_out` is a dict of them all, without
# the held-out eras.
FITTED_INTERCEPTS = (
    "_era_labels", "_era_intercepts", "_era_forecast", "_era_series", "_era_columns",
    "_era_patterns", "_era_level", "_group_labels", "_group_intercepts",
    "_group_series", "_era_noise", "_group_noise", "_era_effects", "_before_held_out",
)  # fmt: skip
# Columns with more values, such as a day's temperature, have wider bins.
_MOST_CONSTANTS = 64
# Numbers of trees after which levels are estimated.
_ESTIMATED_AT = frozenset([0, *(4**k for k in range(1, 16))])


class EraIntercepts:
    """The intercepts of all eras during a fit; they are equal in all processes. Raw
    predictions of training rows include the intercept of the row's era, and raw
    predictions of other rows include the forecast.
    """

    def __init__(
        self, estimator: BaseEstimator, eras: EncodedEras, is_warm: bool,
        exchange: Exchange,
    ):  # fmt: skip
        effects = intercepts_of(estimator)
        assert effects is not None
        self._effects, self._eras, self._exchange = effects, eras, exchange
        estimator._era_effects = copy(effects)  # which a user may set to others
        self._groups = GroupIntercepts(estimator, eras) if eras.groups else None
        shape = (eras.labels.size, estimator.n_trees_per_iteration_)
        self._in_raw = np.zeros(shape)  # the part of the training rows' raw predictions
        if is_warm and hasattr(estimator, "_era_labels"):
            self._in_raw += estimator._era_forecast
        else:
            estimator._era_labels = eras.labels
            estimator._era_intercepts = self._in_raw
            estimator._era_forecast = np.zeros(shape[1])
            estimator._era_series = unknown_series(self._in_raw)
        if effects._estimates:
            patterns = estimator._fit_state.era_patterns
            estimator._era_columns, estimator._era_patterns = patterns
        else:
            of_levels = ("_era_columns", "_era_patterns", "_era_level")
            drop_attributes(estimator, of_levels)

    def update(
        self, estimator: BaseEstimator, y: Array, raw: Array,
        sample_weight: Array | None, raw_val: Array | None,
    ) -> None:  # fmt: skip
        """Update the estimator's intercepts, and add the changes in place to the raw
        predictions of training rows, `raw`, and of validation rows, `raw_val`.
        """
        self._move(raw, estimator._era_intercepts)  # those of a warm start
        if self._groups is not None:
            self._groups.update(estimator, y, raw, sample_weight, raw_val)
        if self._eras.labels.size == 1:
            return
        series, estimator._era_noise = values_of_eras(
            estimator._loss, self._eras, y, raw, sample_weight, self._in_raw,
            self._exchange,
        )  # fmt: skip
        is_estimated = len(estimator._predictors) in _ESTIMATED_AT
        step = settle_intercepts(estimator, self._effects, series, is_estimated)
        self._move(raw, estimator._era_intercepts)
        if raw_val is not None:
            raw_val += step

    @property
    def n_first_trees(self) -> int:
        """Number of trees before groups get intercepts; 0 if eras have no groups."""
        return 0 if self._groups is None else self._groups.n_first_trees

    def _move(self, raw: Array, intercepts: Array) -> None:
        step = intercepts - self._in_raw
        if step.any():
            raw += step[self._eras.codes]
        self._in_raw = intercepts


def settle_intercepts(
    estimator: BaseEstimator, effects: Intercepts, series: Array, is_estimated: bool
) -> Array:
    """Set an estimator's intercepts and forecast from `series`, the first result of
    `values_of_eras`; return the change of the forecast. If `is_estimated`, estimate the
    level anew. Eras without weight (or, unless levels are estimated, with an infinite
    variance) get the forecast as their intercept, and do not count as steps in time.
    """
    has_weight = eras_with_weight(series)
    if not effects._estimates:  # else an undetermined value would shrink all to 0
        has_weight = np.isfinite(series[1]).any(axis=1)
    known = series[:, has_weight]
    if effects._estimates:
        patterns = estimator._era_patterns[has_weight].astype(np.uint8)
        groups = _groups_of(patterns.tobytes(), patterns.shape)
        paths = None if is_estimated else getattr(estimator, "_era_level", None)
        of_known, paths = follow_levels(known[0], known[1], groups, paths)
        estimator._era_level = paths
        forecast = forecast_levels(paths, np.array([effects.horizon]))[0]
    else:
        of_known = shrink(known)
        forecast = effects._forecast_weights(len(of_known)) @ of_known
    intercepts = np.full((has_weight.size, forecast.size), forecast)
    intercepts[has_weight] = of_known
    step = forecast - estimator._era_forecast
    estimator._era_series, estimator._era_intercepts = series, intercepts
    estimator._era_forecast = forecast
    # Not in place: a callback may have kept the earlier state.
    estimator._baseline_prediction = estimator._baseline_prediction + step
    return step


@lru_cache(maxsize=32)  # the same after each tree
def _groups_of(bins: bytes, shape: tuple[int, ...]) -> NDArray[np.intp]:
    """Return the group of each era; eras with equal rows in the table of bins are one.
    While more than `_MOST_CONSTANTS` groups have several eras, merge neighbouring bins
    of the column with the most distinct bins.
    """
    patterns = np.frombuffer(bins, dtype=np.uint8).reshape(shape)
    while True:
        _, groups, sizes = np.unique(
            patterns, axis=0, return_inverse=True, return_counts=True
        )
        if np.count_nonzero(sizes > 1) <= _MOST_CONSTANTS:
            return groups.reshape(-1)
        widest = np.argmax([np.unique(bins).size for bins in patterns.T])
        patterns = patterns >> (np.arange(patterns.shape[1]) == widest)


def keep_before_held_out(estimator: BaseEstimator) -> None:
    """Keep the fitted intercepts as they are before the held-out eras update them."""
    names = ("_baseline_prediction", *FITTED_INTERCEPTS)
    fitted = {name: x for name, x in vars(estimator).items() if name in names}
    estimator._before_held_out = fitted


def drop_held_out(estimator: BaseEstimator, labels: NDArray[Any]) -> None:
    """For a warm start, undo the updates of intercepts by eras that the previous fit
    held out. Raise ValueError unless `labels`, the eras to train on, are the first of
    the known eras, and the previous fit held out all other known eras.
    """
    n_eras, known = labels.size, estimator._era_labels
    held_out = getattr(estimator, "validation_eras_", known[:0])
    is_same = np.array_equal(find(known, labels), np.arange(n_eras))
    if not (is_same and np.isin(known[n_eras:], held_out).all()):
        raise ValueError(
            f"eras has {n_eras} eras to train on that are not the {known.size} whose "
            "intercepts warm_start=True keeps; pass the same eras, or set "
            "warm_start=False."
        )
    before = vars(estimator).pop("_before_held_out", None)
    if n_eras == known.size:
        return
    if before is not None:
        drop_attributes(estimator, FITTED_INTERCEPTS)
        vars(estimator).update(before)
    n_new = n_eras - estimator._era_labels.size
    if n_new != 0:  # the level was estimated from other eras
        vars(estimator).pop("_era_level", None)
    # Eras that train from now on begin as unknown ones.
    new = np.tile(estimator._era_forecast, (max(0, n_new), 1))
    kept, series = estimator._era_intercepts[:n_eras], estimator._era_series[:, :n_eras]
    estimator._era_labels = known[:n_eras]
    estimator._era_intercepts = np.concatenate([kept, new])
    estimator._era_series = np.concatenate([series, unknown_series(new)], axis=1)


def begin_intercepts(
    estimator: BaseEstimator, eras: EncodedEras | None, is_warm: bool,
    exchange: Exchange,
) -> EraIntercepts | None:  # fmt: skip
    """Return the object that updates a fit's intercepts, or None without `era_effects`.
    Unless `is_warm`, first delete the intercepts of an earlier fit. Raise ValueError if
    this fit leaves out eras or groups, but the estimator still has intercepts of them.
    """
    if not is_warm:
        drop_attributes(estimator, FITTED_INTERCEPTS)
    if estimator.era_effects is not None:
        assert eras is not None  # by `_check_eras`
        if eras.groups is None and hasattr(estimator, "_group_labels"):
            raise ValueError(
                "eras leaves out the groups whose intercepts warm_start=True keeps; "
                "pass times and groups, or set warm_start=False."
            )
        return EraIntercepts(estimator, eras, is_warm, exchange)
    if hasattr(estimator, "_era_labels"):
        raise ValueError(
            "era_effects=None leaves out the intercepts of eras beside which the trees "
            "that warm_start=True keeps were grown; set era_effects='intercept', or "
            "warm_start=False."
        )
    return None


def constant_columns(
    X_binned: NDArray[np.uint8], eras: EncodedEras, exchange: Exchange = ALONE,
    least_rows: int = 2,
) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:  # fmt: skip
    """Return two arrays: the columns that are constant within each era, and their bins
    by era. If no era has `least_rows` rows, return none: single rows show nothing.
    """
    varies = np.zeros(X_binned.shape[1], dtype=np.uint8)
    for rows in eras.rows:
        if rows.size > 1 and (columns := np.flatnonzero(varies == 0)).size:
            bins = X_binned[np.ix_(rows, columns)]
            varies[columns] = (bins != bins[0]).any(axis=0)
    (largest,) = exchange.max_of(eras.counts.max(initial=0))
    is_constant = (exchange.max(varies) == 0) & (largest >= least_rows)
    columns = np.flatnonzero(is_constant)
    patterns = np.zeros((eras.labels.size, columns.size), dtype=np.uint8)
    first = [rows[0] for rows in eras.rows if rows.size]
    patterns[eras.counts > 0] = X_binned[np.ix_(first, columns)]
    return columns, exchange.max(patterns)
