"""Errors about the values of X that name the column."""

from typing import Any

import numpy as np


def blame_column(X: Any, error: Exception) -> None:
    """Raise an error with the name of the column, if `error` is about its values."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return
    if len(X.columns) == 0:
        raise ValueError(f"X has no columns; its shape is {X.shape}.") from error
    for name in X.columns:
        values = X[name]  # a data frame itself, where two columns have one name
        # Columns of dates have no common type with numbers, but each does convert.
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


__all__ = ["blame_column"]
