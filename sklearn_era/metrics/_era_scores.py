"""Any metric, computed era by era."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import validate_params
from sklearn.utils.validation import _num_samples

from sklearn_era._eras import check_eras, encode_eras


class EraScores(NamedTuple):
    """Scores of eras, in the order of their labels.

    Attributes
    ----------
    eras : ndarray of shape (n_eras,)
        The distinct era labels, sorted.
    scores : ndarray of shape (n_eras,), dtype=float64
        The metric in each era, in the metric's unit; NaN where it is undefined.
    n_samples : ndarray of shape (n_eras,), dtype=intp
        Rows in each era.
    """

    eras: NDArray[Any]
    scores: NDArray[np.float64]
    n_samples: NDArray[np.intp]


@validate_params(
    {
        "y_true": ["array-like"],
        "y_pred": ["array-like"],
        "eras": ["array-like"],
        "metric": [callable],
        "sample_weight": ["array-like", None],
    },
    prefer_skip_nested_validation=True,
)
def era_scores(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    eras: ArrayLike,
    metric: Callable[..., float],
    sample_weight: ArrayLike | None = None,
    **metric_params: Any,
) -> EraScores:
    """Compute a metric in each era by itself.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        True targets.

    y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
        What `metric` compares with them: predictions, decisions or probabilities.

    eras : array-like of shape (n_samples,)
        Era of each row: any label that `np.unique` sorts (int, str, datetime64). Rows
        need not be in order.

    metric : callable
        ``metric(y_true, y_pred, **metric_params) -> float``, such as
        :func:`sklearn.metrics.r2_score`. It is called once an era, on that era's rows
        in the order in which they were passed.

    sample_weight : array-like of shape (n_samples,), default=None
        Weights, handed to `metric` era by era. Only their ratios within an era
        matter to most metrics: no weight is put on whole eras.

    **metric_params : dict
        Further arguments of `metric`, the same for each era.

    Returns
    -------
    scores : EraScores
        Named tuple of `eras`, `scores` and `n_samples`, in the order of the labels.
        A metric that is undefined in an era has NaN there, as `metric` returned it,
        and so has an era whose weights are all 0, without a call of `metric`.

    Raises
    ------
    ValueError
        If lengths differ, there are no rows, an era label is missing, `metric` is a
        scorer, has a parameter `eras` itself or does not return a real number, or
        `metric` raises a `ValueError`, in which case the message names the era.

    See Also
    --------
    aggregate_era_scores : One number from the scores of all eras.
    era_score : Both in one call.

    Examples
    --------
    >>> from sklearn.metrics import mean_absolute_error
    >>> from sklearn_era.metrics import era_scores
    >>> result = era_scores([1, 2, 3, 4], [1, 3, 3, 6], eras=["b", "a", "b", "a"],
    ...                     metric=mean_absolute_error)
    >>> result.eras.tolist(), result.scores.tolist(), result.n_samples.tolist()
    (['a', 'b'], [1.5, 0.0], [2, 2])
    """
    check_metric(metric)
    n_samples = _num_samples(y_true)
    arrays = {"y_pred": y_pred, "sample_weight": sample_weight}
    for name, array in arrays.items():
        if array is not None and _num_samples(array) != n_samples:
            raise ValueError(
                f"{name} has {_num_samples(array)} rows, but y_true has {n_samples}; "
                "pass the same rows in both."
            )
    labels = check_eras(eras, y_true, X_name="y_true")
    if n_samples == 0:
        raise ValueError("y_true has no rows; there is no era to score.")
    encoded = encode_eras(labels)
    weights = None if sample_weight is None else np.asarray(sample_weight)
    scores = np.empty(encoded.labels.size)
    for code, rows in enumerate(_rows_by_era(encoded.codes, encoded.counts)):
        params = dict(metric_params)
        if weights is not None:
            params["sample_weight"] = weights[rows]
            if not np.any(params["sample_weight"]):
                scores[code] = np.nan
                continue
        try:
            score = metric(
                _safe_indexing(y_true, rows), _safe_indexing(y_pred, rows), **params
            )
        except ValueError as error:
            raise ValueError(
                f"metric {metric_name(metric)} failed in era "
                f"{encoded.labels[code]!s}, of {rows.size} rows: {error}"
            ) from error
        if not is_number(score):
            raise ValueError(
                f"metric must return one number; {metric_name(metric)} returned "
                f"{score!r} in era {encoded.labels[code]!s}."
            )
        scores[code] = score
    return EraScores(encoded.labels, scores, encoded.counts)


def _rows_by_era(
    codes: NDArray[np.int32], counts: NDArray[np.intp]
) -> Iterator[NDArray[np.intp]]:
    """Yield the rows of each era, ascending."""
    yield from np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])


def is_number(value: Any) -> bool:
    """Whether a metric's result is one real number, NaN and infinity included."""
    return np.ndim(value) == 0 and np.asarray(value).dtype.kind in "iuf"


def check_metric(metric: Any) -> None:
    """Refuse scorers, and callables that take eras: neither is a metric of an era."""
    if isinstance(metric, _BaseScorer):
        raise ValueError(
            f"metric is the scorer {metric!r}, which takes an estimator. Pass a "
            "function of y_true and y_pred, such as sklearn.metrics.r2_score."
        )
    if any(parameter.name == "eras" for parameter in parameters_of(metric)):
        raise ValueError(
            f"metric {metric_name(metric)} has a parameter eras, but a metric is "
            "called era by era, with the rows of one. Leave the parameter out; to "
            "score all eras at once, make a scorer of the function with "
            "sklearn.metrics.make_scorer."
        )


def parameters_of(metric: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a metric: y_true and y_pred, if it does not tell."""
    try:
        return list(inspect.signature(metric).parameters.values())
    except (TypeError, ValueError):
        kind = inspect.Parameter.POSITIONAL_ONLY
        return [inspect.Parameter(name, kind) for name in ("y_true", "y_pred")]


def metric_name(metric: Any) -> str:
    """Return the name of a function, or the repr of another callable."""
    return getattr(metric, "__name__", None) or repr(metric)
