"""Errors about the values of X, with the name of the column."""

from typing import Any

import numpy as np

from ..._trees.traversal import column_of_feature


def raise_column_error(X: Any, error: Exception) -> None:
    """Raise an error that names the column if `error` is about its values."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return
    if len(X.columns) == 0:
        raise ValueError(f"X has no columns; its shape is {X.shape}.") from error
    for name in X.columns:
        values = X[name]  # a data frame itself if two columns share the name
        # Dates have no common type with numbers, but each column does convert.
        dtype = getattr(values, "dtype", None)
        is_date = getattr(dtype, "kind", "") in ("m", "M")
        try:
            np.asarray(values, dtype=np.float64)
            to_blame = is_date and isinstance(error, TypeError)
        except (TypeError, ValueError) as reason:
            to_blame = str(reason) == str(error)
        if to_blame:
            detail = f"it holds {dtype}" if is_date else str(error)
            raise ValueError(
                f"X: column {name!r} is not numeric: {detail}. Encode it as numbers, "
                "give it the dtype 'category', or drop it."
            ) from error


def column_name(estimator: Any, column: int) -> str:
    """Return a column of X as shown in messages: its quoted name, or its number."""
    names = getattr(estimator, "feature_names_in_", None)
    return str(column) if names is None else repr(str(names[column]))


def feature_columns(estimator: Any) -> list[Any]:
    """Return the column of X of each feature of the trees, by name or number."""
    columns = column_of_feature(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    return (columns if names is None else names[columns]).tolist()
