"""Read the names, parameters, directions and results of functions that are metrics."""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sklearn import metrics as sk
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

Metric = Callable[..., float]

# scikit-learn's endings of the names of metrics, and whether greater values are better:
# https://scikit-learn.org/stable/modules/model_evaluation.html
_ENDINGS = {"_score": True, "_error": False, "_loss": False, "_deviance": False}
_ENDINGS |= {"_corr": True, "_contribution": True}  # Numerai's

# Metrics of the positive class, with scikit-learn's 0 where rows lack it.
_OF_POSITIVES = [sk.average_precision_score, sk.f1_score, sk.fbeta_score]
_OF_POSITIVES += [sk.jaccard_score, sk.precision_score, sk.recall_score]
# Metrics whose positive class is the larger label of the rows that they are passed.
_OF_LARGER = [sk.brier_score_loss, getattr(sk, "d2_brier_score", None)]  # from 1.8


def metrics_by_name(
    metric: Metric | Sequence[Metric] | Mapping[str, Metric],
) -> dict[str, Metric]:
    """Return one or several metrics as a dict by name; raise ValueError if invalid."""
    several: Any = [metric] if callable(metric) else metric
    by_name = dict(several) if isinstance(several, Mapping) else {}
    by_name = by_name or {metric_name(one): one for one in several}
    if not 0 < len(by_name) == len(several):
        raise ValueError(
            f"metric={metric!r} must hold at least one function, and functions of one "
            "name in a dict."
        )
    for one in by_name.values():
        check_metric(one)
    return by_name


def check_metric(metric: Any) -> None:
    """Raise ValueError for a scorer, or for a function that needs eras."""
    if isinstance(metric, _BaseScorer) or not callable(metric):
        raise ValueError(
            f"metric is {metric!r}: pass a function of y_true and y_pred, such as "
            "sklearn.metrics.r2_score, and no scorer and no name."
        )
    eras = [x for x in parameters_of(metric) if x.name == "eras"]
    if eras and eras[0].default is not None:
        raise ValueError(
            f"metric {metric_name(metric)} needs a parameter eras, but a metric is "
            "called era by era, with the rows of one. Leave the parameter out, or make "
            "it None by default; to score all eras at once, use "
            "sklearn.metrics.make_scorer."
        )


def parameters_of(metric: Metric) -> list[inspect.Parameter]:
    """Return a metric's parameters, or y_true and y_pred if it has no signature."""
    try:
        return list(inspect.signature(metric).parameters.values())
    except (TypeError, ValueError):
        kind = inspect.Parameter.POSITIONAL_ONLY
        return [inspect.Parameter(name, kind) for name in ("y_true", "y_pred")]


def metric_name(metric: Any) -> str:
    """Return the name of a function or of a partial's function, else the repr."""
    if isinstance(metric, partial):
        return metric_name(metric.func)
    return getattr(metric, "__name__", None) or repr(metric)


def find_direction(metric: Metric, greater_is_better: bool | None) -> bool | None:
    """Return `greater_is_better` or, if it is None, whether the metric's name shows
    that greater values are better; None if the name shows neither.
    """
    name = metric_name(metric)
    if greater_is_better is None and not name.startswith("neg_"):
        return next((_ENDINGS[x] for x in _ENDINGS if name.endswith(x)), None)
    return greater_is_better is not False


def is_defined(metric: Any, params: Mapping[str, Any], y: Any, is_binary: bool) -> bool:
    """Return whether a metric is defined, and warn if it is not. A metric of the
    positive class needs a row of this class, and Matthews' correlation rows of two
    classes. Average precision needs a row of the positive class, and the hinge loss
    rows of both, if the target `is_binary`; otherwise, they are always defined.
    """
    metric, params = bound(metric, params)
    if metric is sk.hinge_loss and is_binary and np.unique(y).size == 1:
        warnings.warn("rows of one class count as negative.", UndefinedMetricWarning, 2)
        return False
    if metric is not sk.average_precision_score:
        is_binary = params.get("average", "binary") == "binary"
    is_of_positives = is_binary and any(metric is x for x in _OF_POSITIVES)
    is_correlation = metric is sk.matthews_corrcoef
    if not (is_of_positives or is_correlation) or "zero_division" in params:
        return True
    labels = {*np.asarray(y).ravel().tolist()}
    if len(labels) > 1:
        return True
    why = "rows of one class."
    if not is_correlation:
        is_known = "pos_label" in params or not any(isinstance(x, str) for x in labels)
        if params.get("pos_label", 1) in labels or not is_known:
            return True
        why = "no row is of the positive class."
    warnings.warn(why, UndefinedMetricWarning, 2)
    return False


def positive_class(metric: Any, params: Mapping[str, Any], y: Any) -> dict[str, Any]:
    """Return ``{"pos_label": ...}`` with the larger of the two classes of all rows, for
    metrics that would take the larger class of an era, whose rows may be of one class.
    Return {} for other metrics, if `params` has a `pos_label`, or unless there are two
    classes and both are numbers.
    """
    metric, params = bound(metric, params)
    if not any(metric is x for x in _OF_LARGER) or params.get("pos_label") is not None:
        return {}
    labels = {*np.asarray(y).ravel().tolist()}
    is_known = len(labels) == 2 and all(isinstance(x, Real) for x in labels)
    return {"pos_label": max(labels)} if is_known else {}


def bound(metric: Any, params: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """Return (function, arguments). For a partial these are its function, and its
    arguments joined with `params`; for any other metric, the metric and `params`.
    """
    # Python joins a partial of a partial, but not if the inner one has a name.
    while isinstance(metric, partial) and not metric.args:
        metric, params = metric.func, {**metric.keywords, **params}
    return metric, params


def check_lengths(y_true: Any, by_row: Mapping[str, Any]) -> None:
    """Raise ValueError if an array in `by_row` and y_true differ in length."""
    n_samples = _num_samples(y_true)
    for name, array in by_row.items():
        if array is not None and _num_samples(array) != n_samples:
            raise ValueError(
                f"{name} has {_num_samples(array)} rows, but y_true has {n_samples}; "
                "pass the same rows in both."
            )


def take_by_row(row_params: Any, rows: Any) -> dict[str, Any]:
    """Return the arguments in `row_params`, which have a value per row, for `rows`."""
    return {x: _safe_indexing(y, rows) for x, y in (row_params or {}).items()}


def is_number(value: Any) -> bool:
    """Return whether a result is one real number; NaN and infinity are numbers."""
    return np.ndim(value) == 0 and np.asarray(value).dtype.kind in "iuf"
