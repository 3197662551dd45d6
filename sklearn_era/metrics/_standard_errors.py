"""Estimate standard errors of metrics, by the finitely many rows of an era."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.validation import _num_samples

from ._era_scores import EraScores, era_scores
from ._linearized import linearize, mean_of_rows, row_losses
from ._metric import (
    Metric,
    bound,
    check_metric,
    is_number,
    metric_name,
    positive_class,
    take_by_row,
)


class Rows(NamedTuple):
    """Rows to score, with the predictions of one model, or of two to be compared."""

    y: Any
    predictions: list[Any]
    params: dict[str, Any]  # of the metric, with a value a row, such as weights

    def take(self, rows: NDArray[np.intp]) -> Rows:
        y, *predictions = (_safe_indexing(x, rows) for x in (self.y, *self.predictions))
        return Rows(y, predictions, take_by_row(self.params, rows))

    def scores(self, metric: Metric, params: Any) -> list[Any]:
        return [metric(self.y, p, **params | self.params) for p in self.predictions]

    def order(self) -> NDArray[np.intp]:
        """Return indices that sort rows by all their values. Draws from sorted rows do
        not depend on the order in which rows are passed.
        """
        n = _num_samples(self.y)
        columns = [self.y, *self.predictions, *self.params.values()]
        tables = (np.asarray(x).reshape(n, -1).T for x in columns)
        keys = [np.unique(x, return_inverse=True)[1] for table in tables for x in table]
        return np.lexsort(keys)


def sampling_error(
    rows: Rows, metric: Metric, params: Any, n_resamples: int, random_state: Any
) -> Any:
    """Return the standard error of a score or, for two predictions, of the second score
    minus the first. Return NaN if there are too few rows, if a score is not finite, or,
    for one prediction, if all rows score alike. If the metric returns anything but a
    number, such as a dict, return it unchanged.
    """
    if (weights := rows.params.get("sample_weight")) is not None:
        rows = rows.take(np.flatnonzero(weights))  # rows of weight 0 are none
    n, found = _num_samples(rows.y), rows.scores(metric, params)
    if not all(map(is_number, found)):
        return found[0]
    if n < 2 or not np.isfinite(found).all():
        return np.nan
    added: list[Any] = [
        linearize(metric, score, rows.y, p, params | rows.params)
        for score, p in zip(found, rows.predictions, strict=True)
    ]
    if all(x is not None for x in added):
        error = float(np.linalg.norm(added[-1] - sum(added[:-1])))
    else:
        error = _resampled(rows, metric, params, n_resamples, random_state)
    return _unless_0(error, found, metric, rows.y, params)


def _resampled(
    rows: Rows, metric: Metric, params: Any, n_resamples: int, random_state: Any
) -> float:
    """Return the error by the bootstrap; NaN for fewer than two finite scores."""
    order, n = rows.order(), _num_samples(rows.y)
    draw, drawn = check_random_state(random_state), []
    for _ in range(n_resamples):
        try:
            found = rows.take(order[draw.randint(n, size=n)]).scores(metric, params)
        except (ValueError, ArithmeticError):  # as of a class that was not drawn
            continue
        drawn.append(found[-1] - sum(found[:-1]))
    known = np.array(drawn)[np.isfinite(drawn)]
    if known.size < 2:
        return np.nan
    return float(known.std(ddof=1) * np.sqrt(n / (n - 1)))


def _unless_0(
    error: float, found: list[Any], metric: Metric, y: Any, params: Any
) -> float:
    """Return the error, or NaN if a single score, such as an area of 1, has the error
    0: rows that all score alike do not show how much other rows would differ.
    """
    size = max(_size_of_terms(metric, y, params), abs(found[0]))
    return np.nan if len(found) == 1 and error <= 1e-12 * size else error


def _size_of_terms(metric: Metric, y: Any, params: Any) -> float:
    """Return the size of the terms whose difference is the score, such as 1 and a / b
    in 1 - a / b; rounding errors are relative to it, even if the score is near 0.
    Return 0 for losses that are differences of y and the prediction.
    """
    name, given = metric_name(metric), bound(metric, params)[1]
    if name.endswith("_score"):
        return 1.0
    powers = {"mean_poisson_deviance": 1, "mean_gamma_deviance": 2}
    power = powers.get(name, given.get("power", 0))
    return float(np.mean(np.abs(y)) ** (2 - power)) if power else 0.0


def errors_by_era(
    y_true: Any, predictions: list[Any], metric: Metric, params: Any, n_resamples: int,
    random_state: Any, **given: Any,
) -> EraScores:  # fmt: skip
    """Return the `sampling_error` of each era's score or, for two predictions, of the
    difference of scores. `given` has further arguments of `era_scores`.
    """
    params = params | positive_class(metric, params, y_true)
    # Of means of losses, thousands of eras would spend their time in the metric.
    moved = None
    if not given["row_params"]:
        both = given["sample_weight"], params
        losses: Any = [row_losses(metric, y_true, p, *both) for p in predictions]
        if all(x is not None for x in losses):
            moved = losses[-1] - sum(losses[:-1])

    def error(y: Any, rows: NDArray[np.intp], **by_row: Any) -> Any:
        if moved is not None:
            w = by_row.get("sample_weight", np.ones(rows.size))
            with np.errstate(all="ignore"):
                mean, added = mean_of_rows(moved[rows[w > 0]], w[w > 0])
            error = float(np.linalg.norm(added)) if np.isfinite(mean) else np.nan
            return _unless_0(error, [mean] * len(predictions), metric, y, params)
        own = [_safe_indexing(x, rows) for x in predictions]
        of_era = Rows(y, own, by_row)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an era that has a single class
            return sampling_error(of_era, metric, params, n_resamples, random_state)

    error.__name__ = f"standard error of {metric_name(metric)}"
    # In the place of predictions, it gets the rows.
    rows = np.arange(_num_samples(predictions[0]))
    return era_scores(y_true, rows, metric=error, greater_is_better=False, **given)


RESAMPLING = {
    "n_resamples": [Interval(Integral, 0, None, closed="left")],
    "random_state": ["random_state"],
}


@validate_params(
    {"y_pred": ["array-like"], "metric": [callable], "row_params": [dict, None]}
    | RESAMPLING,
    prefer_skip_nested_validation=True,
)
def era_standard_errors(
    y_true: ArrayLike, y_pred: ArrayLike, *, eras: Any, metric: Metric,
    sample_weight: ArrayLike | None = None,
    row_params: Mapping[str, Any] | None = None, n_resamples: int = 200,
    random_state: Any = 0, **metric_params: Any,
) -> EraScores:  # fmt: skip
    """Estimate the standard error of a metric in each era, by its finitely many rows.

    Rows have to be independent, and their order does not matter. These metrics of
    scikit-learn have closed forms, with weights of rows taken as given:

    - ``roc_auc_score`` of two classes: DeLong, DeLong, Clarke-Pearson (1988);
    - means of losses, ``std(losses, ddof=1) / sqrt(n)``: log loss, Brier score,
      accuracy, squared, absolute, relative, logarithmic and pinball errors, deviances;
    - roots of squared errors, R² and the explained variance: the delta method, from the
      means in them.

    For any other metric, or if parameters change one of these, the bootstrap (Efron
    1979) draws n of the n sorted rows `n_resamples` times; the standard deviation of
    scores, times ``sqrt(n / (n - 1))``, is itself uncertain by about
    ``1 / sqrt(2 * n_resamples)``, 5 % by default.

    Parameters
    ----------
    y_true, y_pred, eras, metric, sample_weight, row_params :
        As in :func:`era_scores`, with a single metric. Rows of weight 0 do not count.
    n_resamples : int, default=200
        Samples of the bootstrap; with 0, errors without a closed form are NaN.
    random_state : int, RandomState instance or None, default=0
        The seed of the bootstrap; with an int, the same rows always get the same error.
    **metric_params : dict
        Further arguments of the metric.

    Returns
    -------
    errors : EraScores
        A mapping of labels to errors; ``errors.scores`` is their array, in the order of
        :func:`era_scores`. Errors are NaN for a single row; for the area, if a class
        has a single row; for R² and the explained variance, if targets do not vary; if
        all rows score alike, as with an area or accuracy of 1; and if the metric is
        undefined: leave such an era out of a forecast.

    Raises
    ------
    ValueError
        As :func:`era_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics import mean_squared_error
    >>> from sklearn_era.metrics import era_standard_errors
    >>> y, eras = np.tile([1.0, 3.0], 20), np.repeat(["a", "b"], 20)
    >>> errors = era_standard_errors(
    ...     y, np.zeros(40), eras=eras, metric=mean_squared_error
    ... )
    >>> round(errors["a"], 4)
    0.9177
    """
    check_metric(metric)
    return errors_by_era(
        y_true, [y_pred], metric, metric_params, n_resamples, random_state, eras=eras,
        sample_weight=sample_weight, row_params=row_params,
    )  # fmt: skip
