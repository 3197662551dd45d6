"""The columns of X as numbers, with errors that name the column."""

from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting
from sklearn.utils import _safe_indexing

from ..._tables.columns import (
    as_categories,
    as_frame,
    check_collected,
    check_kinds,
    columns_of_fit,
    holds_dates,
    is_data_frame,
)
from ..._trees.traversal import column_of_feature
from .rare_categories import encoder_of


def encode(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Preprocess X as scikit-learn does; name the column in errors. Refuse dates, which
    it may take for numbers, and categories of another type than the fit's.
    """
    check_collected(X)
    preprocess: Any = gradient_boosting.BaseHistGradientBoosting._preprocess_X
    error: Exception | None = None
    found: Any = np.nan  # of all rows
    try:
        # Encoders whose only category is NaN cast it to an integer on the way.
        with np.errstate(invalid="ignore"):
            found = preprocess(estimator, X, reset=reset)
    except (TypeError, ValueError) as failure:
        error = failure
    is_readable = not isinstance(error, ValueError) and not hasattr(type(X), "toarray")
    has_categories = not reset and estimator._preprocessor is not None
    if has_categories and is_readable and np.isnan(found).any():
        _check_categories(estimator, X, found)
        # Numbers, all of them missing, where the fit had text.
        with suppress(AttributeError, TypeError, ValueError):
            if error is not None:
                X = as_frame(X)
                X = X.cast(str) if hasattr(X, "cast") else X.astype(object)
                return preprocess(estimator, X, reset=False)
    check_numbers(estimator, X, error)
    if error is not None:
        raise error
    return found


def _check_categories(estimator: Any, X: Any, codes: Any) -> None:
    """Raise ValueError for categories unlike the fit's, in rows without a code."""
    table = as_frame(X if hasattr(X, "shape") else np.array(X, dtype=object))
    table = columns_of_fit(estimator, table)  # as scikit-learn takes them
    for i, j in enumerate(np.flatnonzero(estimator.is_categorical_).tolist()):
        rows = np.flatnonzero(np.isnan(codes[:, i])) if np.ndim(codes) else None
        if rows is None or rows.size:
            values, name = _safe_indexing(table, j, axis=1), column_name(estimator, j)
            values = as_categories(_safe_indexing(values, rows), name)
            known = as_categories(encoder_of(estimator).categories_[i], name)
            check_kinds(values, known, name)


def check_numbers(estimator: Any, X: Any, error: Exception | None = None) -> None:
    """Raise ValueError for a column of dates, or that `error` is about."""
    types = getattr(getattr(X, "schema", None), "types", [getattr(X, "dtype", None)])
    if error is None and not any(map(holds_dates, {*getattr(X, "dtypes", types)})):
        return
    table, is_category = as_frame(X), getattr(estimator, "is_categorical_", None)
    if is_data_frame(table) and X.shape[1] == 0:
        raise ValueError(f"X has no columns; its shape is {X.shape}.") from error
    names = [0] if error is None else []  # of an array
    for j, name in enumerate(table.columns if is_data_frame(table) else names):
        values = _safe_indexing(table, j, axis=1)
        is_date = holds_dates(values.dtype)
        # Dates have no common type with numbers, but each column does convert.
        to_blame = is_date and not isinstance(error, ValueError)
        to_blame = to_blame and (is_category is None or not is_category[j])
        try:
            np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as reason:
            to_blame = to_blame or str(reason) == str(error)
        if to_blame:
            detail = f"it holds {values.dtype}" if is_date else str(error)
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
