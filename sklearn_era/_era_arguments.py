"""How eras are passed: by keyword, as labels or as the name of a column."""

from collections.abc import Callable
from functools import wraps
from inspect import signature, unwrap
from typing import Any, ParamSpec, TypeVar

import narwhals
import numpy as np

from ._warnings import warn_user

_P = ParamSpec("_P")
_T = TypeVar("_T")


def blame_weights(sample_weight: Any, error: Exception) -> None:
    """Raise an error that asks for `eras=` if their labels may have been passed as
    weights, the third argument of ``fit``.
    """
    if sample_weight is None:
        return
    reason, are_labels = None, True
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
        distinct = np.unique(weights[np.isfinite(weights)])
        are_labels = 1 < distinct.size < weights.size and not (distinct % 1).any()
    except (TypeError, ValueError) as failure:
        reason = str(failure)
    if reason == str(error):
        raise ValueError(
            f"sample_weight is not numeric: {error}. If it holds the labels of eras, "
            "pass them by name, as fit(X, y, eras=...)."
        ) from error
    if are_labels and "needs eras: " in str(error):
        raise ValueError(
            f"{error} If sample_weight, the third argument, holds these labels, pass "
            "it as eras=."
        ) from error


def take_era_column(X: Any, eras: Any) -> tuple[Any, Any]:
    """Return X without the column that `eras` names, and that column; both unchanged if
    `eras` holds labels.
    """
    if not isinstance(eras, str):
        return X, eras
    try:
        frame = narwhals.from_native(X, eager_only=True, pass_through=True)
    except narwhals.exceptions.DuplicateError as error:
        raise ValueError(
            f"eras={eras!r} names a column, but columns of X have the same name: "
            "rename them, or pass one label a row."
        ) from error
    if not isinstance(frame, narwhals.DataFrame):
        raise ValueError(
            f"eras={eras!r} names a column, but X is {type(X).__name__}, which is no "
            "data frame: pass one label a row."
        )
    if eras not in frame.columns:
        raise ValueError(
            f"eras={eras!r} names no column of X, whose columns are "
            f"{', '.join(map(repr, frame.columns[:10]))}"
            f"{', ...' if len(frame.columns) > 10 else ''}."
        )
    return frame.drop(eras).to_native(), frame[eras].to_native()


def without_eras(model: Any, X: Any, eras: str | None) -> Any:
    """Return X without its column of eras, which predictions ignore."""
    if eras is not None and not isinstance(eras, str):
        raise ValueError(
            f"The predictions of {type(model).__name__} know no eras: leave them out, "
            "or name the column of X that holds them."
        )
    return take_era_column(X, eras)[0]


def eras_by_name(fit: Callable[_P, _T]) -> Callable[_P, _T]:
    """Refuse labels of eras by position if `fit` takes none; else warn of integers
    passed as `sample_weight`, which may be labels.
    """
    unwrap(fit).__qualname__ = "fit"  # for Python's errors about arguments
    takes_weights = [*signature(fit).parameters.values()][3].kind.value < 2

    @wraps(fit)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        if len(args) > 3 and not takes_weights:
            raise TypeError(
                f"{type(args[0]).__name__}.fit takes X and y by position: pass labels "
                "by name, as fit(X, y, eras=...)."
            )
        if len(args) > 3 and kwargs.get("eras") is None:
            weights = np.asarray(args[3])
            # Whole-numbered floats are more often weights than labels.
            are_labels = weights.ndim == 1 and weights.dtype.kind in "iuUSO"
            if are_labels and 2 < len({*weights.tolist()}) < weights.size:
                warn_user(
                    "The third argument of fit is sample_weight, and holds whole "
                    "numbers: "
                    "pass labels of eras by name, as eras=..., and weights as "
                    "sample_weight=...."
                )
        return fit(*args, **kwargs)

    return call


def warn_of_row_order(eras: Any, X: Any, name: str = "eras", X_name: str = "X") -> None:
    """Warn if labels and rows have the same index in two orders, as it is ignored."""
    index: Any = getattr(eras, "index", None)
    rows: Any = getattr(X, "index", None)
    if not hasattr(index, "equals") or not hasattr(rows, "get_indexer"):
        return
    if (
        index.equals(rows)
        or len(index) != len(rows)
        or index.dtype != rows.dtype
        or not (index.is_unique and rows.is_unique)
    ):
        return
    step = max(1, len(index) // 1000)  # a lookup of millions would take seconds
    some = index[::step]
    if (rows.get_indexer(some) >= 0).all():
        warn_user(
            f"{name} has the index of {X_name} in another order, and labels belong to "
            f"rows by their place, as those of y do: pass {name}.loc[{X_name}.index]."
        )
