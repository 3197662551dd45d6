"""From the scores of many eras to one number."""

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.exceptions import ComplexWarning
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from sklearn_era._eras import warn_of_text_order
from sklearn_era._warnings import warn_user
from sklearn_era.metrics._era_scores import (
    EraScores,
    era_scores,
    is_number,
    metric_name,
)

# How many eras a message names before it only counts them.
_MAX_NAMED = 5

# Of the largest score, or of 1: a spread below is rounding. R² of a constant, 1 - a/a,
# is 0 in one era and 2e-16 in the next.
_NO_SPREAD = 16 * np.finfo(np.float64).eps

# Read as: the larger, the worse, whatever the metric.
LOWER_IS_BETTER = frozenset({"std", "max_drawdown"})
# Of errors, these two would reward a larger spread, and add up all eras but the first.
_ONLY_OF_SCORES = frozenset({"sharpe", "max_drawdown"})

AGGREGATION_CONSTRAINT: list[Any] = [
    StrOptions({"mean", "std", "sharpe", "worst", "max_drawdown"}),
    callable,
]
UNDEFINED_CONSTRAINT: list[Any] = [
    StrOptions({"raise", "omit"}),
    Interval(Real, None, None, closed="neither"),
]


@validate_params(
    {
        "scores": ["array-like", EraScores],
        "aggregation": AGGREGATION_CONSTRAINT,
        "greater_is_better": ["boolean"],
        "undefined": UNDEFINED_CONSTRAINT,
    },
    prefer_skip_nested_validation=True,
)
def aggregate_era_scores(
    scores: EraScores | ArrayLike,
    aggregation: str | Callable[[NDArray[np.float64]], float] = "mean",
    *,
    greater_is_better: bool = True,
    undefined: str | float = "raise",
) -> float:
    """Aggregate the scores of eras to one number.

    With the scores s_1, …, s_M of the eras in the order of their labels:

    ================ ============================================== =============
    aggregation      value                                          of M = 1 era
    ================ ============================================== =============
    "mean"           (s_1 + … + s_M) / M                            s_1
    "std"            population standard deviation (``ddof=0``)     0
    "sharpe"         mean / std, not annualised                     undefined
    "worst"          the smallest score, or the largest error       s_1
    "max_drawdown"   max_j (max_{i <= j} c_i - c_j), where          0
                     c_j = s_1 + … + s_j
    ================ ============================================== =============

    A standard deviation of at most ``16 * eps * max(1, max_j |s_j|)``, where eps is
    2.2e-16, is taken for rounding: "std" is then 0, and "sharpe" undefined.

    The drawdown is how far the running sum of scores ever fell below its highest
    value: non-negative, and 0 where no era but the first has a negative score. The sum
    starts with the first era and not at 0, so a loss in the first era is not counted.

    Parameters
    ----------
    scores : EraScores or array-like of shape (n_eras,)
        One score an era, in the order of the eras, as :func:`era_scores` returns them.
        With `EraScores`, messages name eras by their labels, and else by position.
        The drawdown depends on the order: labels that are numbered texts (``"week10"``
        comes before ``"week9"``) are warned of.

    aggregation : {"mean", "std", "sharpe", "worst", "max_drawdown"} or callable, \
default="mean"
        One of the rows above, or a function from an ndarray of shape (n_eras,) to a
        finite number, such as `np.median`.

    greater_is_better : bool, default=True
        Whether `scores` are scores (True) or errors. It decides which era is the
        "worst"; "sharpe" and "max_drawdown" are refused for errors.

    undefined : {"raise", "omit"} or float, default="raise"
        What to do with eras whose score is NaN or infinite. "raise": a `ValueError`
        that names them. "omit": they are left out, and a warning names them. A number
        stands in for their scores, for a Sharpe ratio without spread, and for a NaN or
        infinity that a callable `aggregation` returns.

    Returns
    -------
    value : float
        In the unit of the scores; the Sharpe ratio has none.

    Raises
    ------
    ValueError
        If there are no scores; if eras are undefined and `undefined="raise"`, or all
        are and `undefined="omit"`; if all scores are equal, a single one included, and
        `aggregation="sharpe"` (unless `undefined` is a number); if a callable
        `aggregation` does not return a number, or NaN or infinity (unless `undefined`
        is a number); or if errors are aggregated by "sharpe" or "max_drawdown".

    Warns
    -----
    UndefinedMetricWarning
        If eras are left out.
    UserWarning
        If a drawdown is of eras whose labels are numbered texts out of their order.

    Examples
    --------
    >>> from sklearn_era.metrics import aggregate_era_scores
    >>> scores = [0.03, -0.01, -0.02, 0.04]
    >>> aggregate_era_scores(scores, "worst")
    -0.02
    >>> round(aggregate_era_scores(scores, "max_drawdown"), 6)
    0.03
    >>> round(aggregate_era_scores(scores, "sharpe"), 3)
    0.392
    """
    check_direction(aggregation, greater_is_better)
    check_undefined(undefined)
    values, names = _values_and_names(scores)
    values = _resolve_undefined(values, names, undefined)
    if callable(aggregation):
        return _call(aggregation, values, undefined)
    if aggregation == "mean":
        return float(np.mean(values))
    if aggregation == "std":
        return _std(values)
    if aggregation == "worst":
        return float(np.min(values) if greater_is_better else np.max(values))
    if aggregation == "max_drawdown":
        if names is not None:
            warn_of_text_order(names, "aggregation='max_drawdown'")
        running_sum = np.cumsum(values)
        return float(np.max(np.maximum.accumulate(running_sum) - running_sum))
    return _sharpe(values, undefined)


def era_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    eras: ArrayLike,
    metric: Callable[..., float],
    aggregation: str | Callable[[NDArray[np.float64]], float] = "mean",
    greater_is_better: bool = True,
    undefined: str | float = "raise",
    sample_weight: ArrayLike | None = None,
    **metric_params: Any,
) -> float:
    """Compute a metric in each era by itself, and aggregate to one number.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        True targets.

    y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
        What `metric` compares with them: predictions, decisions or probabilities.

    eras : array-like of shape (n_samples,)
        Era of each row.

    metric : callable
        ``metric(y_true, y_pred, **metric_params) -> float``.

    aggregation : {"mean", "std", "sharpe", "worst", "max_drawdown"} or callable, \
default="mean"
        See :func:`aggregate_era_scores`.

    greater_is_better : bool, default=True
        Whether `metric` is a score (True) or an error.

    undefined : {"raise", "omit"} or float, default="raise"
        What to do with eras in which the metric is undefined; see
        :func:`aggregate_era_scores`.

    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows within their era. Each era counts once, whatever its weight.

    **metric_params : dict
        Further arguments of `metric`.

    Returns
    -------
    value : float
        As the aggregation is defined: an error stays an error, and a standard deviation
        positive. Signs are for :func:`make_era_scorer` to set.

    Raises
    ------
    ValueError
        As :func:`era_scores` and :func:`aggregate_era_scores` do.

    Warns
    -----
    UndefinedMetricWarning
        If `undefined="omit"` leaves eras out.

    Examples
    --------
    >>> from sklearn.metrics import mean_absolute_error
    >>> from sklearn_era.metrics import era_score
    >>> era_score([1, 2, 3, 4], [1, 3, 3, 6], eras=[0, 1, 0, 1],
    ...           metric=mean_absolute_error, aggregation="worst",
    ...           greater_is_better=False)
    1.5
    """
    check_direction(aggregation, greater_is_better)  # before the work
    scores = era_scores(
        y_true,
        y_pred,
        eras=eras,
        metric=metric,
        sample_weight=sample_weight,
        **metric_params,
    )
    return aggregate_era_scores(
        scores, aggregation, greater_is_better=greater_is_better, undefined=undefined
    )


def check_direction(aggregation: Any, greater_is_better: bool) -> None:
    """Refuse to aggregate errors by "sharpe" or "max_drawdown", which need scores."""
    if not greater_is_better and aggregation in _ONLY_OF_SCORES:
        raise ValueError(
            f"aggregation={aggregation!r} is not meaningful with "
            "greater_is_better=False: of errors, a Sharpe ratio would reward a larger "
            "spread, and a drawdown would add up all eras but the first. Use 'mean', "
            "'std' or 'worst', or a metric of which greater is better."
        )


def check_undefined(undefined: Any) -> None:
    """Refuse True and False, which are numbers to Python."""
    if isinstance(undefined, bool):
        raise ValueError(
            f"undefined must be 'raise', 'omit' or a number; got {undefined!r}."
        )


def _values_and_names(
    scores: EraScores | ArrayLike,
) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    # EraScores is a tuple of three arrays, which NumPy would make a table of.
    names = scores.eras if isinstance(scores, EraScores) else None
    values = scores.scores if isinstance(scores, EraScores) else scores
    try:
        with warnings.catch_warnings():
            # Of complex numbers NumPy would keep the real parts, and only warn.
            warnings.simplefilter("error", ComplexWarning)
            values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, ComplexWarning) as error:
        raise ValueError(
            f"scores must be numbers, one an era; got {values!r}."
        ) from error
    if values.ndim != 1 or values.size == 0:
        raise ValueError(
            "scores must hold one number an era, for one era at least; got an array of "
            f"shape {values.shape}."
        )
    return values, names


def _resolve_undefined(
    values: NDArray[np.float64], names: NDArray[Any] | None, undefined: str | float
) -> NDArray[np.float64]:
    bad = ~np.isfinite(values)
    if not bad.any():
        return values
    if not isinstance(undefined, str):
        return np.where(bad, float(undefined), values)
    what = f"The metric is undefined (NaN or infinite) in {_name_eras(bad, names)}"
    if undefined == "omit" and not bad.all():
        warn_user(f"{what}, left out by undefined='omit'.", UndefinedMetricWarning)
        return values[~bad]
    raise ValueError(
        f"{what}. Drop or merge these eras, choose another metric, or pass "
        "undefined='omit' to leave them out or a number to score them with."
        if undefined == "raise"
        else f"{what}, and so undefined='omit' leaves none. Choose another metric, or "
        "pass as undefined a number to score these eras with."
    )


def _name_eras(selected: NDArray[np.bool_], names: NDArray[Any] | None) -> str:
    positions = np.flatnonzero(selected)
    named = positions[:_MAX_NAMED].tolist()
    if names is not None:
        named = [names[i] for i in named]
    more = ", …" if positions.size > len(named) else ""
    which = "positions" if names is None else "eras"
    return (
        f"{positions.size} of {selected.size} eras ({which} "
        f"{', '.join(map(str, named))}{more})"
    )


def _call(
    aggregation: Callable[[NDArray[np.float64]], float],
    values: NDArray[np.float64],
    undefined: str | float,
) -> float:
    result = aggregation(values)
    if not is_number(result):
        raise ValueError(
            f"aggregation must return one number; {metric_name(aggregation)} returned "
            f"{result!r}."
        )
    if np.isfinite(result):
        return float(result)
    if not isinstance(undefined, str):
        return float(undefined)
    raise ValueError(
        f"aggregation must return a finite number; {metric_name(aggregation)} returned "
        f"{result!s} of {values.size} era(s). Pass as undefined the number to return "
        "instead."
    )


def _std(values: NDArray[np.float64]) -> float:
    std = float(np.std(values))
    return 0.0 if std <= _NO_SPREAD * max(1.0, np.max(np.abs(values))) else std


def _sharpe(values: NDArray[np.float64], undefined: str | float) -> float:
    std = _std(values)
    if std > 0.0:
        return float(np.mean(values)) / std
    if not isinstance(undefined, str):
        return float(undefined)
    raise ValueError(
        "aggregation='sharpe' divides by the standard deviation over eras, which is "
        f"0 up to rounding: the score is {values[0]!s} in each of {values.size} era(s)."
        " Score eras that differ, use aggregation='mean', or pass as undefined the "
        "number to return."
    )
