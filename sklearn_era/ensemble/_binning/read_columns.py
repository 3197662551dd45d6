"""Convert columns of X to numbers, with errors that name the column."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting
from sklearn.utils import _safe_indexing
from sklearn.utils._missing import is_pandas_na, is_scalar_nan

from ..._tables.checks import check_table, is_data_frame, names_of_columns
from ..._tables.columns import (
    as_categories,
    as_frame,
    dtypes_of,
    holds_dates,
    may_mislead,
    rows_as_in_fit,
)
from ..._trees.traversal import column_of_feature
from ..._typing import Table
from .rare_categories import codes_of_categories, encoder_of, take_none_for_missing

# Dates and times that NumPy takes for objects of Python, and no integers.
_EXACT = {"M": "M8[us]", "m": "m8[us]"}


def encode(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """Preprocess X as scikit-learn does; `reset` is True in a fit. In predictions, call
    `read_by_column` if scikit-learn fails on X or may misread X (see `must_be_read`).
    """
    X = checked_table(X)
    preprocess: Any = gradient_boosting.BaseHistGradientBoosting._preprocess_X
    if not reset and must_be_read(estimator, X):
        return read_by_column(estimator, X)
    try:
        # Encoders whose only category is NaN cast it to an integer on the way.
        with np.errstate(invalid="ignore"):
            found = preprocess(estimator, X, reset=reset)
    except Exception as error:  # those of polars, too
        if not reset:
            return read_by_column(estimator, X, error=error)
        if isinstance(error, TypeError | ValueError):
            check_numbers(estimator, X, error)
        raise
    if reset:
        check_numbers(estimator, X)
        if estimator.is_categorical_ is not None:
            take_none_for_missing(estimator, found[0])
    elif estimator._preprocessor is not None:
        known = encoder_of(estimator).categories_
        is_unknown = np.isnan(found[:, : len(known)]).any(axis=1)
        are_floats = isinstance(X, np.ndarray) and X.dtype == np.float64
        are_alike = are_floats and all(x.dtype == np.float64 for x in known)
        if is_unknown.any() and not are_alike:  # perhaps read as another type
            rows = np.flatnonzero(is_unknown)
            read = read_by_column(estimator, X, rows)
            found[rows] = np.where(np.isnan(found[rows]), read, found[rows])
    return found


def checked_table(X: Any) -> Any:
    """Check a table; return it, converted if NumPy or scikit-learn would misread it."""
    check_table(X)
    is_misread = any(map(_misleads_numpy, {*dtypes_of(X)}))
    return _with_nan(as_frame(X) if is_misread or isinstance(X, list | tuple) else X)


def _with_nan(X: Any) -> Any:
    """Replace pandas' NA by NaN in a pandas frame's columns of objects or text, or of
    categories of these, as scikit-learn cannot sort NA. Return any other X unchanged.
    """
    found = {}
    for j, dtype in enumerate(X.dtypes if hasattr(type(X), "isetitem") else ()):
        categories: Any = getattr(dtype, "categories", None)
        inner = getattr(categories, "dtype", dtype)
        if getattr(inner, "kind", "O") in "biufc":
            continue
        values = X.iloc[:, j]
        # Of dates, NumPy mostly makes its own, with NaT.
        read_as = None if holds_dates(inner) else object
        if not any(map(is_pandas_na, np.asarray(values[values.isna()], read_as))):
            continue
        if str(dtype) == "category":
            found[j] = values.cat.rename_categories(categories.astype(object))
        else:
            cells = [np.nan if is_pandas_na(x) else x for x in values]
            made = "category" if str(dtype).startswith("dictionary") else object
            found[j] = type(values)(cells, index=X.index, dtype=made)
    X = X.copy(deep=False) if found else X
    for j, values in found.items():
        X.isetitem(j, values)
    return X


def _misleads_numpy(dtype: object) -> bool:
    """Return whether NumPy misreads columns of an Arrow type: nulls of categories as
    the last category, dates without their time zone, and periods as integers.
    """
    text = str(dtype)
    return text.startswith(("dictionary", "extension")) or "tz=" in text


def must_be_read(estimator: BaseEstimator, X: Table) -> bool:
    """Return whether columns that are not categorical may hold values that NumPy would
    wrongly convert to numbers: dates, also in columns of objects, or complex numbers.
    """
    dtypes, mask = dtypes_of(X), estimator.is_categorical_
    names = [*names_of_columns(X)]
    if mask is not None and names:
        known = [*getattr(estimator, "feature_names_in_", names)]
        ignored = {
            x for x, is_category in zip(known, mask, strict=False) if is_category
        }
        pairs = zip(names, dtypes, strict=True)
        dtypes = [dtype for name, dtype in pairs if name not in ignored]
    return any(map(may_mislead, {*dtypes}))


def read_by_column(
    estimator: BaseEstimator, X: Table, rows: NDArray[Any] | None = None,
    error: Exception | None = None,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the `rows` of X (None for all) as numbers, read as in the fit, with codes
    of categories in the first columns. If X is not a table, raise `error` if given.
    """
    table = as_frame(X)
    shape = () if hasattr(type(X), "toarray") else getattr(table, "shape", ())
    if error is not None and (len(shape) != 2 or 0 in shape):
        raise error
    known: list[Any] = []
    if estimator._preprocessor is not None:
        encoder = encoder_of(estimator)
        exact = [
            x.astype(_EXACT.get(x.dtype.kind, x.dtype)) for x in encoder.categories_
        ]
        known = [as_categories(x, None) for x in exact]
    table = table if rows is None else _safe_indexing(table, rows)
    columns = rows_as_in_fit(estimator, table, known)
    found = [x.values for x in columns if x.is_categorical]
    for i, (values, categories) in enumerate(zip(found, known, strict=True)):
        codes = codes_of_categories(encoder, i).tolist()
        code_of = dict(zip(categories, codes, strict=False))
        # scikit-learn takes None and, among objects, NaT for categories, and NaN for
        # missing. It lists NumPy's NaT as a category, but takes it for missing.
        of_fit = encoder.categories_[i]
        if of_fit.dtype.kind in "mM" or any(map(is_scalar_nan, of_fit.tolist())):
            code_of[None] = np.nan
        found[i] = np.array([code_of.get(x, np.nan) for x in values], dtype=np.float64)
    numbers = [x.values for x in columns if not x.is_categorical]
    return np.column_stack([*found, *numbers])


def check_numbers(
    estimator: BaseEstimator | None, X: Any, error: Exception | None = None
) -> None:
    """Raise ValueError for a column of dates, or for the column that caused `error`. If
    `estimator` is None, no column is categorical.
    """
    dtypes = {x for x in dtypes_of(X) if str(x) != "category"}
    if error is None and not any(map(may_mislead, dtypes)):
        return
    table = as_frame(X)
    is_category = getattr(estimator, "is_categorical_", None)
    is_frame = is_data_frame(table)
    names = table.columns if is_frame else []
    is_text = isinstance(table, np.ndarray) and table.dtype.kind in "OUSTmM"
    if is_text and table.ndim == 2 and not isinstance(error, TypeError):
        names = range(table.shape[1])
    is_mixed = "uniformly strings or numbers" in str(error)  # by the encoder
    for j, name in enumerate(names):
        values = _safe_indexing(table, j, axis=1)
        is_categorical = is_category is not None and is_category[j]
        if is_mixed and is_categorical:
            known = {*as_categories(values, name)} - {None}
            kinds = {isinstance(x, str) for x in known}
            if len(kinds) == 2:
                raise ValueError(
                    f"X: column {name!r} has categories of text and others of numbers: "
                    "make text of all of them."
                ) from error
        # Dates have no common type with numbers, which is a TypeError.
        may_be_dates = not is_categorical and not isinstance(error, ValueError)
        if dates := _type_of_dates(values) if may_be_dates else "":
            detail, remedy = f"it holds {dates}", "such as year, month and hour"
        elif error is not None and _fails_by(error, values):
            detail, remedy = str(error), "name it in categorical_features"
            remedy = "give it the dtype 'category'" if is_frame else remedy
        else:
            continue
        raise ValueError(
            f"X: column {name!r} is not numeric: {detail}. Encode it as numbers, "
            f"{remedy}, or drop it."
        ) from error


def _fails_by(error: Exception, values: Any) -> bool:
    """Return whether the conversion of a column to numbers raises the same error."""
    try:
        np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        return str(reason) == str(error)
    return False


def _type_of_dates(values: Any) -> str:
    """Return the type of a column's dates, or "" if it has none. In a column of
    objects, only NumPy's own dates count, since NumPy would convert them to numbers.
    """
    if holds_dates(values.dtype):
        return str(values.dtype)
    if getattr(values.dtype, "kind", "") == "O":
        for kind in {*map(type, np.asarray(values, dtype=object))}:
            if issubclass(kind, np.datetime64 | np.timedelta64):
                return kind.__name__
    return ""


def column_name(estimator: BaseEstimator, column: int) -> str:
    """Return a column's quoted name for messages, or its number if it has no name."""
    names = getattr(estimator, "feature_names_in_", None)
    return str(column) if names is None else repr(str(names[column]))


def feature_columns(estimator: BaseEstimator) -> list[Any]:
    """Return, for each feature of the trees, the name or number of its column in X."""
    columns = column_of_feature(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    return (columns if names is None else names[columns]).tolist()
