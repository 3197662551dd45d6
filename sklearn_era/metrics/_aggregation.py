"""Aggregate the scores of many eras to one number."""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils._param_validation import Interval, StrOptions

from .._eras import warn_of_text_order
from .._warnings import listed, warn_user
from ._metric import is_number, metric_name

Values = NDArray[np.float64]
Aggregation = str | Callable[[Values], float]

# As a share of the largest value or, of scores, of 1: a smaller spread is rounding. R²
# of a constant, 1 - a/a, is 0 in one era and 2e-16 in the next.
_NO_SPREAD = 16 * np.finfo(np.float64).eps

_NAMES = {"mean", "std", "sharpe", "worst", "max_drawdown"}
_ANY_NUMBER = Interval(Real, None, None, closed="neither")
CONSTRAINTS: dict[str, list[Any]] = {
    "aggregation": [StrOptions(_NAMES), callable],
    "undefined": [StrOptions({"raise", "omit"}), _ANY_NUMBER],
}


def aggregate(
    values: Values, labels: NDArray[Any], aggregation: Aggregation = "mean", *,
    greater_is_better: bool | None = True, undefined: str | float = "raise",
    name: str = "the metric",
) -> float:  # fmt: skip
    """Return one number for the scores of all eras; see `EraScores.aggregate`."""
    check_direction(aggregation, greater_is_better, name)
    check_undefined(undefined)
    values = _resolve_undefined(values, labels, undefined, name)
    if callable(aggregation):
        result = aggregation(values)
        returned = f"{metric_name(aggregation)} returned {result!s}"
        if not is_number(result):
            raise ValueError(f"aggregation must return one number; {returned}.")
        if np.isfinite(result):
            return float(result)
        n_eras = f"of {values.size} era(s)."
        message = f"aggregation must return a finite number; {returned} {n_eras}"
        return _stand_in(undefined, message)
    if aggregation == "mean":
        return float(np.mean(values))
    if aggregation == "std":
        return _std(values, greater_is_better)
    if aggregation == "worst":
        return float(np.min(values) if greater_is_better else np.max(values))
    if aggregation == "max_drawdown":
        warn_of_text_order(labels, "aggregation='max_drawdown'")
        running_sum = np.cumsum(values)
        return float(np.max(np.maximum.accumulate(running_sum) - running_sum))
    if (std := _std(values, greater_is_better)) > 0.0:
        return float(np.mean(values)) / std
    return _stand_in(
        undefined,
        "aggregation='sharpe' divides by the standard deviation over eras, which is 0 "
        f"up to rounding: the score is {values[0]!s} in each of {values.size} era(s). "
        "Score eras that differ, or use aggregation='mean'.",
    )


def direction_of(aggregation: Aggregation, of_metric: bool | None) -> bool | None:
    """Return whether a greater aggregate is better. `of_metric` is whether a greater
    score is better, or None if that is not known.
    """
    if callable(aggregation) or aggregation in ("mean", "worst"):
        return of_metric
    return aggregation == "sharpe"


def check_direction(
    aggregation: Any, greater_is_better: bool | None, name: str, what: str = ""
) -> None:
    """Raise ValueError if `greater_is_better` is None (unknown) but needed, or if
    `aggregation` suits only scores and the metric is an error. "mean", "std" and a
    function do not need it by themselves: a caller that does passes `what`, a noun for
    the error's message.
    """
    if callable(aggregation) or aggregation in ("mean", "std"):
        needs_score = False
    else:
        needs_score, what = aggregation != "worst", f"aggregation={aggregation!r}"
    if what and greater_is_better is None:
        raise ValueError(
            f"{what} depends on whether greater values of {name} are better, which is "
            "known of names that end in _score, _corr, _error, _loss or _deviance: "
            "pass greater_is_better=True for a score, and False for an error."
        )
    if needs_score and not greater_is_better:
        raise ValueError(
            f"{what} is not meaningful with greater_is_better=False: of errors, such "
            f"as {name}, a Sharpe ratio would reward a larger spread, and a drawdown "
            "would add up all eras but the first. Use 'mean', 'std' or 'worst', or a "
            "metric of which greater is better."
        )


def check_undefined(undefined: Any) -> None:
    """Raise ValueError for True and False, which Python counts as numbers."""
    if isinstance(undefined, bool):
        raise ValueError(
            f"undefined must be 'raise', 'omit' or a number; got {undefined!r}."
        )


def _resolve_undefined(
    values: Values, labels: NDArray[Any], undefined: str | float, name: str
) -> Values:
    bad = ~np.isfinite(values)
    if not bad.any():
        return values
    if not isinstance(undefined, str):
        return np.where(bad, float(undefined), values)
    what = (
        f"{name[0].upper()}{name[1:]} is undefined (NaN or infinite) in {bad.sum()} of "
        f"{bad.size} eras ({listed(labels[bad])})"
    )
    if undefined == "omit" and not bad.all():
        warn_user(f"{what}, left out by undefined='omit'.", UndefinedMetricWarning)
        return values[~bad]
    none = ", and so undefined='omit' leaves none" if undefined == "omit" else ""
    raise ValueError(
        f"{what}{none}. Drop or merge these eras, choose another metric, or pass as "
        "undefined a number to score them with, or 'omit' to leave some out."
    )


def _std(values: Values, is_score: bool | None) -> float:
    std, least = float(np.std(values)), 1.0 if is_score else 0.0  # errors have a unit
    return 0.0 if std <= _NO_SPREAD * max(least, np.max(np.abs(values))) else std


def _stand_in(undefined: str | float, message: str) -> float:
    """Return `undefined` if it is a number; else raise ValueError with the message."""
    if isinstance(undefined, str):
        raise ValueError(f"{message} Or pass as undefined the number to return.")
    return float(undefined)
