"""Errors about the values of X that name the column."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._trees.walk import column_of_feature


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


def blame_missing_values(
    estimator: Any, X: NDArray[np.float64], rows: NDArray[np.intp]
) -> None:
    """Raise an error with the name of the first column without a value in some rows.

    X has categorical features first, and bins are made from the rows. scikit-learn's
    own error names neither the column nor what is wrong.
    """
    is_categorical = estimator._is_categorical_remapped
    for feature in np.flatnonzero(np.isnan(X[rows]).all(axis=0)):
        if is_categorical is not None and is_categorical[feature]:
            continue
        name = column_name(estimator, column_of_feature(estimator)[feature])
        raise no_values(f"X: column {name}", rows.size)


def no_values(column: str, n_rows: int) -> ValueError:
    """The error about a column that no bins can be made of."""
    return ValueError(
        f"{column} has only missing values in the {n_rows} rows that its bins are made "
        "from; leave it out."
    )


def column_name(estimator: Any, column: int) -> str:
    """What messages call a column of X: its quoted name, or its number."""
    names = getattr(estimator, "feature_names_in_", None)
    return str(column) if names is None else repr(str(names[column]))


__all__ = ["blame_column", "blame_missing_values", "column_name", "no_values"]
