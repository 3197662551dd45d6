"""Compute each row's contribution to a score, for standard errors in closed form."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import kl_div
from sklearn import metrics
from sklearn.utils.validation import _num_samples

from ._metric import Metric, bound, is_number

Array = NDArray[np.float64]
# A score, and what rows add to it: the squares of these sum up to its variance.
Linearized = tuple[float, Array]

_LARGEST_GAP = 1e-5  # between a closed form and its metric, relative


def mean_of_rows(values: Array, weights: Array) -> Linearized:
    """Return a weighted mean, and each row's contribution: by how much the row moves
    the mean. The squares of contributions sum up to the variance of the mean.
    """
    shares, n = weights / weights.sum(), values.size
    mean = float(shares @ values)
    return mean, np.sqrt(n / (n - 1) if n > 1 else np.nan) * shares * (values - mean)


def _mean_of(losses: Callable[..., Array]) -> Callable[..., Linearized]:
    return lambda y, p, weights, **params: mean_of_rows(losses(y, p, **params), weights)


def _root_of(losses: Callable[..., Array]) -> Callable[..., Linearized]:
    def root(y: Any, p: Any, weights: Array, **params: Any) -> Linearized:
        mean, rows = mean_of_rows(losses(y, p, **params), weights)
        return np.sqrt(mean), rows / (2 * np.sqrt(mean) or 1.0)

    return root


def _of_vectors(form: Callable[..., Any]) -> Callable[..., Linearized | None]:
    """Return a function that calls `form`, but returns None if rows of y have several
    labels, for which no closed form is known.
    """
    return lambda y, *others, **params: (
        form(y, *others, **params) if y.ndim == 1 else None
    )


def _share_explained(
    y: Any, p: Any, weights: Array, *, is_centered: bool = False
) -> Linearized:
    """Return R², linearized by the delta method. If `is_centered`, subtract the mean of
    residuals first, which makes it the explained variance.
    """
    y, p = (np.asarray(x, np.float64).reshape(weights.size, -1) for x in (y, p))
    found = []
    for residuals, own in zip((y - p).T, y.T, strict=True):
        center = np.average(residuals, weights=weights) if is_centered else 0.0
        left, of_left = mean_of_rows((residuals - center) ** 2, weights)
        # The mean of equal targets may differ from them in its last digit.
        mean = np.average(own, weights=weights) if np.ptp(own) > 0 else own[0]
        total, of_total = mean_of_rows((own - mean) ** 2, weights)
        with np.errstate(all="ignore"):  # of targets that do not vary
            share = np.divide(left, total)
            found.append((1 - share, (share * of_total - of_left) / total))
    values, rows = zip(*found, strict=True)
    return float(np.mean(values)), np.mean(rows, axis=0)


def _area(y: Any, p: Any, weights: Array, **_: Any) -> Linearized | None:
    """Return the area under the ROC curve of two classes, linearized (DeLong, DeLong,
    Clarke-Pearson 1988) by midranks (Sun, Xu 2014): a positive row contributes the
    share of negative rows below it, and a negative row the share of positive rows above
    it. Ties count half. Return None if there are not two classes and one score per row.
    """
    classes, rows = np.unique(y), np.empty(weights.size)
    if classes.size != 2 or p.shape != y.shape:
        return None
    places = np.unique(p, return_inverse=True)[1]
    for label in classes:
        own = y == label
        masses = np.bincount(places, weights * ~own)
        below = (np.cumsum(masses) - masses / 2)[places[own]] / masses.sum()
        of_own = below if label == classes[1] else 1 - below
        area, rows[own] = mean_of_rows(of_own, weights[own])
    return area, rows


def _of_classes(y: Any, p: Any, labels: Any, positive: Any) -> tuple[Any, Any]:
    """Return two arrays with a column for each class: whether a row is of the class,
    and the probability of the class.
    """
    classes = np.unique(y if labels is None else labels)
    if p.ndim > 1:
        return y[:, np.newaxis] == classes, p
    if positive is None:
        positive = classes[1] if classes.size > 1 else 1
    is_own = (y == positive)[:, np.newaxis] == np.array([False, True])
    return is_own, np.column_stack([1 - p, p])


def _log_losses(y: Any, p: Any, *, labels: Any = None) -> Array:
    is_own, p = _of_classes(y, p, labels, None)
    eps = np.finfo(p.dtype if p.dtype.kind == "f" else np.float64).eps
    return -np.log(p[is_own].clip(eps, 1 - eps))


def _brier_losses(
    y: Any, p: Any, *, labels: Any = None, pos_label: Any = None
) -> Array:
    is_own, p = _of_classes(y, p, labels, pos_label)
    return ((is_own - p) ** 2).sum(axis=1) / (2 if p.shape[1] == 2 else 1)


def _misses(y: Any, p: Any) -> Array:
    is_wrong = (y != p).reshape(y.shape[0], -1)
    return is_wrong.any(axis=1).astype(np.float64)


def _deviances(y: Any, p: Any, *, power: float = 0) -> Array:
    """Return each row's unit deviance by Tweedie's distribution (Jørgensen 1987)."""
    y, p = (np.asarray(x, np.float64).ravel() for x in (y, p))
    if power == 0:
        return (y - p) ** 2
    if power == 1:
        return 2 * kl_div(y, p)
    if power == 2:
        return 2 * (np.log(p / y) + y / p - 1)
    one, two = 1 - power, 2 - power
    of_y = y.clip(0) ** two / (one * two)
    return 2 * (of_y - y * p**one / one + p**two / two)


def _losses_of(metric: Metric) -> Callable[..., Array]:
    """Return a function that computes the metric of each row by itself. It passes rows
    to the metric as if they were outputs of a single row.
    """

    def losses(y: Any, p: Any, **params: Any) -> Array:
        rows = [np.asarray(x, np.float64).reshape(1, -1) for x in (y, p)]
        found: Any = metric(*rows, multioutput="raw_values", **params)
        return found.reshape(_num_samples(y), -1).mean(axis=1)

    return losses


_FORMS: dict[Any, Callable[..., Linearized | None]] = {
    metrics.roc_auc_score: _of_vectors(_area),
    metrics.r2_score: _share_explained,
    metrics.explained_variance_score: partial(_share_explained, is_centered=True),
    metrics.log_loss: _of_vectors(_mean_of(_log_losses)),
    metrics.brier_score_loss: _of_vectors(_mean_of(_brier_losses)),
    metrics.zero_one_loss: _mean_of(_misses),
    metrics.accuracy_score: _mean_of(lambda y, p: 1 - _misses(y, p)),
}
# Losses of rows whose mean is a metric, of numbers alone.
_LOSSES: dict[Any, Callable[..., Array]] = {
    metrics.mean_tweedie_deviance: _deviances,
    metrics.mean_poisson_deviance: partial(_deviances, power=1),
    metrics.mean_gamma_deviance: partial(_deviances, power=2),
}
for _metric in (
    metrics.mean_squared_error, metrics.mean_squared_log_error,
    metrics.mean_absolute_error, metrics.mean_absolute_percentage_error,
    metrics.mean_pinball_loss,
):  # fmt: skip
    _LOSSES[_metric] = _losses_of(_metric)
_FORMS |= {_metric: _mean_of(losses) for _metric, losses in _LOSSES.items()}
for _root, _metric in (
    (metrics.root_mean_squared_error, metrics.mean_squared_error),
    (metrics.root_mean_squared_log_error, metrics.mean_squared_log_error),
):
    _FORMS[_root] = _root_of(_LOSSES[_metric])


def _form_in(table: Any, metric: Metric, params: Any) -> tuple[Any, Any]:
    """Look a metric up in a table from metrics to functions; return the function found
    (None if there is none) and the metric's parameters.
    """
    own, params = bound(metric, params)
    return next((table[x] for x in table if x is own), None), params


def row_losses(metric: Metric, y: Any, p: Any, weights: Any, params: Any) -> Any:
    """If the metric is known to be the mean of losses of rows, for numbers, return
    these losses; else return None.
    """
    form, of_form = _form_in(_LOSSES, metric, params)
    if form is None:
        return None
    try:
        score = metric(y, p, sample_weight=weights, **params)
        losses = form(y, p, **of_form)
        gap = abs(np.average(losses, weights=weights) - score)
    except (TypeError, ValueError, ArithmeticError):  # an era's own error names it
        return None
    is_near = is_number(score) and gap <= _LARGEST_GAP * abs(score)
    return losses if is_near else None


def linearize(
    metric: Metric, score: float, y: Any, p: Any, params: dict[str, Any]
) -> Array | None:
    """Return each row's contribution to a score. Return None if no closed form is
    known, or if the value of the closed form differs from `score`, as it may with some
    parameters of the metric. Weights are among the parameters.
    """
    form, params = _form_in(_FORMS, metric, {"sample_weight": None} | params)
    if form is None:
        return None
    weights = params.pop("sample_weight")
    weights = np.ones(_num_samples(y)) if weights is None else weights
    # A column and a vector together would be a table of all pairs of rows.
    y, p = (x.ravel() if x.shape[1:] == (1,) else x for x in map(np.asarray, (y, p)))
    try:
        found = form(y, p, weights, **params)
    except TypeError:  # of a parameter that the form does not have
        return None
    if found is None:
        return None
    gap, rows = abs(found[0] - score), found[1]
    is_near = gap <= _LARGEST_GAP * (abs(score) + np.linalg.norm(rows))
    # NaN of too few rows, for which the bootstrap would have an error too small.
    return rows if is_near or np.isnan(rows).any() else None
