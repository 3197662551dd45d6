"""Update a fitted booster's intercepts by rows that arrive after the fit."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..._era_columns import take_era_column
from ..._era_labels import as_objects, find, join
from ..._eras import EncodedEras
from ..._scikit_learn import check_sample_weight
from ..._tables.target import check_y
from ..._typing import Eras
from ...effects import fitted_intercepts, intercepts_of
from .._exchange import ALONE, Exchange
from .._fit_state import HeldOut
from .era_effects import constant_columns, keep_before_held_out, settle_intercepts
from .era_values import unknown_series, values_of_eras
from .era_weights import base_weights
from .group_intercepts import group_steps, take_in_groups
from .known_eras import read_as_fitted

# Newton steps for a loss that is not quadratic.
_N_STEPS = 8


class InterceptUpdatesMixin(gradient_boosting.BaseHistGradientBoosting):
    """Keep the intercepts of a fitted booster, and update them by further rows."""

    # For a single process; a distributed fit has another.
    _exchange: Exchange = ALONE
    _era_labels: Any
    _era_columns: Any
    _era_patterns: Any

    @property
    def era_intercepts_(self) -> dict[Any, Any]:
        """Dict from the label of each training era to the era's intercept. After a fit
        to times and groups, a dict ``{"times": ..., "groups": ...}`` of two such dicts.
        Raise AttributeError after a fit without `era_effects`.
        """
        if not hasattr(self, "_era_intercepts"):
            raise AttributeError(
                f"{type(self).__name__} has era_intercepts_ after a fit with "
                "era_effects only."
            )
        times = _by_label(self._era_labels, self._era_intercepts)
        if not hasattr(self, "_group_labels"):
            return times
        groups = _by_label(self._group_labels, self._group_intercepts)
        return {"times": times, "groups": groups}

    def _keep_held_out(self, eras: EncodedEras, y: Any, weights: Any = None) -> None:
        """If the last eras are held out, and intercepts depend on the order of eras,
        keep the held-out rows. They update the intercepts after the last tree.
        """
        effects, state = intercepts_of(self), self._fit_state
        is_last = state.validation_eras == "last" and hasattr(self, "validation_eras_")
        if effects is not None and effects._is_ordered and is_last:
            state.held_out = HeldOut(eras, y, base_weights(self, eras, weights))
            state.finish = self._take_in_held_out

    def _take_in_held_out(self) -> None:
        held_out = self._fit_state.held_out
        self._in_fit = True  # so that rows are taken for bins
        raw = self._raw_predict(held_out.X)
        del self._in_fit
        keep_before_held_out(self)
        self._take_in(held_out, raw)

    def _update_intercepts(
        self, X: Any, y: Any, eras: Eras, sample_weight: ArrayLike | None = None
    ) -> None:
        """Update the intercepts by further rows, of old or new eras; trees do not
        change. New eras come after all known eras. Raise ValueError if the model was
        fitted without `era_effects`.
        """
        check_is_fitted(self)
        if not hasattr(self, "_era_labels"):
            raise ValueError(
                "updating intercepts needs those of a fit with era_effects='intercept'."
            )
        X, eras = take_era_column(X, eras, model=self)
        encoded = read_as_fitted(self, eras, X)
        y = check_y(y, self)
        check_consistent_length(X, y)
        y = self._encode_y_val(y)
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, X, dtype=np.float64)
        weights = self._finalize_sample_weight(sample_weight, y)
        bins = self._bin_mapper.transform(self._preprocess_X(X, reset=False))
        self._take_in(HeldOut(encoded, y, weights, bins), self._raw_predict(X))

    def _take_in(self, rows: HeldOut, raw: NDArray[np.float64]) -> None:
        """Update the intercepts from further rows, whose raw predictions, `raw`, are
        overwritten.
        """
        effects = fitted_intercepts(self)
        assert rows.X is not None
        if rows.eras.groups is not None:
            raw += group_steps(self, rows.eras.groups)
        n_known, labels = self._era_labels.size, rows.eras.labels
        at = find(self._era_labels, labels)
        is_new = at < 0
        n_eras = n_known + np.count_nonzero(is_new)
        at[is_new] = np.arange(n_known, n_eras)
        self._era_labels = join(self._era_labels, labels[is_new])
        if effects._estimates:
            columns, bins = constant_columns(
                rows.X[:, self._era_columns], rows.eras, self._exchange, least_rows=1
            )
            before = self._era_patterns[at[~is_new]][:, columns]
            is_same = (before == bins[~is_new]).all(axis=0)
            columns, bins = columns[is_same], bins[:, is_same]
            patterns = np.zeros((n_eras, columns.size), dtype=np.uint8)
            patterns[:n_known], patterns[at] = self._era_patterns[:, columns], bins
            self._era_columns = self._era_columns[columns]
            self._era_patterns = patterns
        forecasts = np.tile(self._era_forecast, (n_eras, 1))
        series = unknown_series(forecasts)
        series[:, :n_known] = self._era_series
        in_raw = forecasts[at]
        intercepts = np.concatenate([self._era_intercepts, forecasts[n_known:]])
        noise = getattr(self, "_era_noise", None)  # files of before lack it
        n_steps = 1 if self._loss.constant_hessian else _N_STEPS
        for i in range(n_steps):
            raw += (intercepts[at] - in_raw)[rows.eras.codes]
            in_raw = intercepts[at]
            series = series.copy()
            series[:, at], self._era_noise = values_of_eras(
                self._loss, rows.eras, rows.y, raw, rows.sample_weight, in_raw,
                self._exchange, noise_before=noise,
            )  # fmt: skip
            settle_intercepts(self, effects, series, i == n_steps - 1)
            intercepts = self._era_intercepts
        if rows.eras.groups is not None:
            raw += (intercepts[at] - in_raw)[rows.eras.codes]
            take_in_groups(self, rows, raw, n_steps)


def _by_label(labels: NDArray[Any], intercepts: Any) -> dict[Any, Any]:
    values = intercepts[:, 0].tolist() if intercepts.shape[1] == 1 else intercepts
    return dict(zip(as_objects(labels), values, strict=True))
