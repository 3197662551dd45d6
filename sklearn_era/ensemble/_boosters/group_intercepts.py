"""Estimate intercepts of groups, shrunk towards 0, the intercept of new groups."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..._era_labels import find, join
from ..._eras import Array, EncodedEras
from .._fit_state import HeldOut
from .empirical_bayes import shrink
from .era_values import unknown_series, values_of_eras
from .era_weights import fixed_factors

# Trees come first, until they have left this share of what they can explain, so that
# they learn columns that are constant within groups, on which new groups depend.
_LEFT_TO_TREES = 0.1
# Groups may have a few rows each, whose values are far apart: with steps of 1 at most,
# those of a log loss would seem to vary by chance alone.
_LARGEST_STEP = 3.0
# Its inverse times the largest target does not overflow.
_LEAST_VARIANCE = 1e-150


class GroupIntercepts:
    """The intercepts of all groups in a fit. Raw predictions of training and validation
    rows include the intercept of the row's group.
    """

    def __init__(self, estimator: BaseEstimator, eras: EncodedEras) -> None:
        groups = eras.groups
        assert groups is not None
        self._groups, self._held_out = groups, estimator._fit_state.held_out_groups
        # Times that count for more do so in values of groups, as in those of leaves.
        factors = fixed_factors(estimator, eras)
        self._factors = None if factors is None else factors[eras.codes]
        shape = groups.labels.size, estimator.n_trees_per_iteration_
        self._in_raw = intercepts = np.zeros(shape)
        series = unknown_series(intercepts)
        if hasattr(estimator, "_group_labels"):  # of a warm start
            known = estimator._group_labels, estimator._group_intercepts
            intercepts = _of_labels(groups.labels, *known)
            at = find(estimator._group_labels, groups.labels)
            series[:, at >= 0] = estimator._group_series[:, at[at >= 0]]
        estimator._group_labels, estimator._group_intercepts = groups.labels, intercepts
        estimator._group_series = series
        rate = min(estimator.learning_rate, 1 - _LEFT_TO_TREES)
        n_first = int(np.ceil(np.log(_LEFT_TO_TREES) / np.log1p(-rate)))
        self.n_first_trees = min(n_first, estimator.max_iter - 1)

    def update(
        self, estimator: BaseEstimator, y: Array, raw: Array, sample_weight: Any,
        raw_val: NDArray[Any] | None,
    ) -> None:  # fmt: skip
        """Update the estimator's intercepts of groups, and add the changes in place to
        the raw predictions of training rows, `raw`, and of validation rows, `raw_val`.
        """
        self._move(estimator._group_intercepts, raw, raw_val)
        if len(estimator._predictors) < self.n_first_trees:
            return
        series, estimator._group_noise = values_of_eras(
            estimator._loss, self._groups, y, raw, sample_weight, self._in_raw,
            largest_step=_LARGEST_STEP, factors=self._factors,
        )  # fmt: skip
        intercepts = shrink(series)
        self._move(intercepts, raw, raw_val)
        estimator._group_intercepts, estimator._group_series = intercepts, series

    def _move(self, intercepts: Array, raw: Array, raw_val: Array | None) -> None:
        step = intercepts - self._in_raw
        raw += step[self._groups.codes]
        if raw_val is not None and self._held_out is not None:
            steps = _of_labels(self._held_out.labels, self._groups.labels, step)
            raw_val += steps[self._held_out.codes]
        self._in_raw = intercepts


def group_steps(estimator: BaseEstimator, groups: EncodedEras) -> Array:
    """Return the intercept of each row's group, in shape (n_rows, n_outputs). Rows of
    new groups have 0.
    """
    known = estimator._group_labels, estimator._group_intercepts
    return _of_labels(groups.labels, *known)[groups.codes]


def _of_labels(labels: NDArray[Any], known: NDArray[Any], values: Array) -> Array:
    """Return each label's row of `values`, one per `known` label; 0 if not known."""
    at = find(known, labels)
    return np.where(at[:, np.newaxis] >= 0, values[at], 0.0)


def take_in_groups(
    estimator: BaseEstimator, rows: HeldOut, raw: Array, n_steps: int
) -> None:
    """Update the intercepts of groups from `rows` on which no tree is grown, in
    `n_steps` Newton steps. A group's intercept becomes the mean of its value in the fit
    and its value in `rows`, weighted by precision and then shrunk. Overwrite `raw`, the
    raw predictions of the rows, which include all intercepts.
    """
    groups = rows.eras.groups
    assert groups is not None
    before, noise = estimator._group_series, getattr(estimator, "_group_noise", None)
    known, own = estimator._group_labels, groups.labels
    labels = join(known, own[find(known, own) < 0])
    intercepts = _of_labels(labels, known, estimator._group_intercepts)
    at_known, at = find(labels, known), find(labels, own)
    for _ in range(n_steps):
        in_raw = intercepts[at]
        series, estimator._group_noise = values_of_eras(
            estimator._loss, groups, rows.y, raw, rows.sample_weight, in_raw,
            largest_step=_LARGEST_STEP, noise_before=noise,
        )  # fmt: skip
        sums = np.zeros((2, labels.size, raw.shape[1]))  # of precisions times values
        for places, (values, variances) in (at_known, before), (at, series):
            # Rows that are all fitted exactly have a variance of 0.
            precisions = np.nan_to_num(1 / np.maximum(variances, _LEAST_VARIANCE))
            sums[:, places] += precisions * values, precisions
        with np.errstate(divide="ignore", invalid="ignore"):
            merged = np.stack([sums[0] / sums[1], 1 / sums[1]])
        merged[:, sums[1] == 0] = [[0.0], [np.nan]]
        intercepts = shrink(merged)
        raw += (intercepts[at] - in_raw)[groups.codes]
    estimator._group_labels, estimator._group_series = labels, merged
    estimator._group_intercepts = intercepts
