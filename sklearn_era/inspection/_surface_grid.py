"""The grid of a decision surface: two columns of a table, and what fills the others."""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array

from sklearn_era.inspection._fixed_columns import is_categorical

_MARGIN = 0.05  # of the range of a feature, on either side of it


def check_table(X: Any) -> Any:
    """X as a data frame, or as an array of a dtype that takes any number."""
    if hasattr(X, "columns"):
        if X.shape[0] == 0:
            raise ValueError("X has no rows; pass one at least.")
        return X
    X = check_array(X, dtype=None, ensure_all_finite=False)
    return X.astype(np.float64) if X.dtype.kind in "iub" else X


def column_names(estimator: Any, X: Any) -> list[Any]:
    n_features = getattr(estimator, "n_features_in_", X.shape[1])
    if X.shape[1] != n_features:
        raise ValueError(
            f"X has {X.shape[1]} columns, but {type(estimator).__name__} was fitted to "
            f"{n_features}; pass the columns of the fit."
        )
    if hasattr(X, "columns"):
        return list(X.columns)
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{i}" for i in range(n_features)] if names is None else list(names)


def _resolve_column(argument: str, feature: Any, names: list[Any]) -> int:
    if isinstance(feature, Integral) and not isinstance(feature, bool):
        if 0 <= int(feature) < len(names):
            return int(feature)
        raise ValueError(
            f"{argument}: {feature} is not a column of X, which has columns 0 to "
            f"{len(names) - 1}."
        )
    if feature not in names:
        raise ValueError(
            f"{argument}: {feature!r} is not a column of X; they are {names}."
        )
    return names.index(feature)


def resolve_axes(features: Any, names: list[Any]) -> tuple[int, int]:
    if not _is_pair(features):
        raise ValueError(f"features must be a pair of columns; got {features!r}.")
    first, second = (_resolve_column("features", f, names) for f in features)
    if first == second:
        raise ValueError(f"features must be two different columns; got {features!r}.")
    return first, second


def resolve_fixed(
    fixed: Mapping[Any, Any] | None, columns: tuple[int, int], names: list[Any]
) -> dict[int, Any]:
    resolved: dict[int, Any] = {}
    for feature, value in (fixed or {}).items():
        column = _resolve_column("fixed", feature, names)
        if column in columns:
            raise ValueError(
                f"fixed: {feature!r} is on an axis; hold other features than those."
            )
        if column in resolved:
            raise ValueError(
                f"fixed: column {column} ({names[column]}) is in it twice."
            )
        resolved[column] = value
    return resolved


def axis_ranges(
    estimator: Any,
    X: Any,
    columns: tuple[int, int],
    names: list[Any],
    limits: Sequence[Sequence[float]] | None,
) -> list[tuple[float, float]]:
    """Where both axes begin and end."""
    observed = [_numbers(estimator, X, column, names) for column in columns]
    if limits is None:
        return [
            _padded_range(values, names[column])
            for column, values in zip(columns, observed, strict=True)
        ]
    if not _is_pair(limits) or not all(map(_is_range, limits)):
        raise ValueError(
            "limits must be a pair of ranges (low, high), one for each axis, of finite "
            f"numbers with low < high; got {limits!r}."
        )
    return [(float(low), float(high)) for low, high in limits]


def _is_pair(value: Any) -> bool:
    return (
        not isinstance(value, (str, dict))
        and hasattr(value, "__len__")
        and (len(value) == 2)
    )


def _is_range(limit: Any) -> bool:
    return (
        _is_pair(limit)
        and all(isinstance(end, Real) for end in limit)
        and bool(-np.inf < limit[0] < limit[1] < np.inf)
    )


def _numbers(
    estimator: Any, X: Any, column: int, names: list[Any]
) -> NDArray[np.float64]:
    values = _safe_indexing(X, column, axis=1)
    try:
        if is_categorical(estimator, X, column, names):
            raise ValueError("it is categorical")
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"features: column {names[column]!r} cannot be an axis, which takes "
            f"numbers: {error}. Choose another one, and put this one in fixed."
        ) from error


def _padded_range(values: NDArray[np.float64], name: Any) -> tuple[float, float]:
    values = values[np.isfinite(values)]
    if values.size == 0:
        raise ValueError(
            f"features: column {name!r} has no finite value in X; pass limits."
        )
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN * (high - low) or 0.5  # a constant has a range too
    return low - margin, high + margin


def _replace_column(
    X: Any, column: int, values: NDArray[np.float64], names: list[Any]
) -> Any:
    """X with other numbers in a column, which may change the column's dtype."""
    if hasattr(X, "with_columns"):  # polars
        import polars

        return X.with_columns(polars.Series(names[column], values))
    X = X.copy()
    if hasattr(X, "isetitem"):  # pandas
        X.isetitem(column, values)
        return X
    X[:, column] = values
    return X


def grid_tables(
    X: Any,
    columns: tuple[int, int],
    grid: tuple[NDArray[np.float64], NDArray[np.float64]],
    names: list[Any],
) -> Iterator[Any]:
    """For each row of X, the grid's points with the row's other columns."""
    for row in range(X.shape[0]):
        table = _safe_indexing(X, np.full(grid[0].size, row))
        for column, values in zip(columns, grid, strict=True):
            table = _replace_column(table, column, values, names)
        yield table
