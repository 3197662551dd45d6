"""Read the columns of a table in memory, as numbers or as categories."""

import datetime
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils._missing import is_pandas_na
from sklearn.utils.validation import _check_feature_names_in, validate_data

from .._typing import ColumnChoice, Table
from .checks import check_table, has_named_columns, is_arrow_table, is_data_frame

# Stands for infinity: bins need finite edges.
INFINITE = 1e300
# Dtypes with so few values that a lookup table of all of them is small.
SMALL_DTYPES = tuple(map(np.dtype, ("int8", "uint8", "int16", "bool")))
# The types of objects that NumPy converts as `_as_number` does, but faster.
_PLAIN = {int, float, bool, type(None)}
_OF_NUMPY = np.datetime64, np.timedelta64
_DATES = *_OF_NUMPY, datetime.date, datetime.timedelta, datetime.time
_MOST_NAMED = 5  # columns in a message
# The remedy for a column that is not numeric, in a fit and in a prediction.
_IN_FIT = (
    "Make numbers of it, leave it out, or, if it holds categories and the function "
    "takes them, name it in categorical_features."
)
_AS_IN_FIT = (
    "The fit had numbers in it: pass numbers, and None or NaN for missing ones."
)


class Column(NamedTuple):
    """A column of a table: its name, and its values as numbers or as categories."""

    name: Any  # x0, x1, ... in a table without names
    values: NDArray[Any]  # float64 with NaN, or categories: objects with None
    is_categorical: bool


def read_columns(
    X: Table, *, categorical_features: ColumnChoice = "from_dtype", name: str = "X",
    remedy: str = _IN_FIT, names: Sequence[Any] | None = None,
) -> list[Column]:  # fmt: skip
    """Return a `Column` for each column of a table, with numbers or with categories."""
    if hasattr(type(X), "toarray"):  # not of X, as a column may have such a name
        raise ValueError(
            f"{name} is a sparse matrix, and a dense table is needed; pass "
            f"{name}.toarray()."
        )
    check_table(X, name)
    is_frame = has_named_columns(X)
    table: Any = as_frame(X) if is_frame else _as_array(X, name)
    n_samples, n_features = table.shape
    if n_samples == 0 or n_features == 0:
        raise ValueError(
            f"{name} is empty, of shape {(n_samples, n_features)}; pass at least one "
            "row and one column."
        )
    if names is None:
        numbered = [f"x{j}" for j in range(n_features)]
        names = list(table.columns) if is_frame else numbered
    given = categorical_features
    mask = [False] * n_features
    if isinstance(given, str) and given == "from_dtype":
        if is_frame:
            mask = [*map(holds_text, table.dtypes)]
    elif given is not None:
        options = {"name": "categorical_features", "also": "'from_dtype', None, or "}
        mask = choose_columns(given, names, is_frame, **options).tolist()
    columns = []
    for j, (column_name, is_categorical) in enumerate(zip(names, mask, strict=True)):
        values = _safe_indexing(table, j, axis=1)
        if is_categorical:
            values = as_categories(values, column_name, name)
        else:
            values = as_numbers(values, column_name, name, remedy)
        columns.append(Column(column_name, values, is_categorical))
    return columns


def dtypes_of(X: Table) -> list[Any]:
    """Return the dtypes of a table's columns; for an array, a list with its dtype."""
    if hasattr(X, "dtypes"):
        return [*X.dtypes]
    return [*getattr(getattr(X, "schema", None), "types", [getattr(X, "dtype", "")])]


def as_numeric(X: Any) -> Any:
    """Return X itself if all of its columns have numeric dtypes, else an array of its
    numbers. Raise ValueError or TypeError if a column has text, dates or the like.
    """
    check_table(X, by_column=True)
    table = as_frame(X)
    shape = () if hasattr(type(X), "toarray") else getattr(table, "shape", ())
    kinds = {getattr(dtype, "kind", "O") for dtype in dtypes_of(table)}
    if len(shape) != 2 or 0 in shape or kinds <= {*"biuf"}:
        return X
    remedy = "Make numbers of it, or leave it out."
    try:
        columns = read_columns(table, categorical_features=None, remedy=remedy)
    except ValueError as error:
        if isinstance(error.__cause__, TypeError):  # what scikit-learn raises
            raise TypeError(str(error)) from error
        raise
    return np.column_stack([column.values for column in columns])


def as_frame(X: Any) -> Any:
    """Convert an Arrow table to a pandas frame, and lists to an array. Return lists of
    different lengths, and anything else, unchanged.
    """
    if isinstance(X, list | tuple):
        try:
            array = np.asarray(X)
        except ValueError:
            return X
        # Of text and numbers, None and NaN among them, NumPy would make text.
        return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array
    if is_arrow_table(X):
        return X.to_pandas(date_as_object=False, ignore_metadata=True)
    return X


def as_matrix(
    columns: Sequence[Column],
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return (matrix, n_categories): the columns side by side, with codes for
    categories, and the number of categories of each column, which is 0 for numbers.
    """
    parts, n_categories = [], np.zeros(len(columns), dtype=np.intp)
    for j, (_, values, is_categorical) in enumerate(columns):
        if is_categorical:
            known = sorted_categories(values)
            n_categories[j] = len(known)
            codes = places_in(known, values)
            values = np.where(codes < len(known), codes, np.nan)
        parts.append(values)
    return np.column_stack(parts), n_categories


def places_in(known: Sequence[Any] | NDArray[Any], values: Any) -> NDArray[np.intp]:
    """Return each value's index in `known`; new categories get the index len(known)."""
    places = {_as_category(x): i for i, x in enumerate(known)}  # dates of old pickles
    return np.array([places.get(x, len(known)) for x in values], dtype=np.intp)


def sorted_categories(values: Iterable[Any]) -> list[Any]:
    """Return the categories of a column, sorted, without missing ones."""
    # Values of different types, like 1 and "1", can only be ordered by type.
    distinct = set(values) - {None}
    try:
        return sorted(distinct, key=lambda v: (type(v).__name__, v))
    except TypeError:  # such as dates with and without a time zone
        return sorted(distinct, key=lambda v: (type(v).__name__, repr(v)))


def rows_as_in_fit(
    estimator: BaseEstimator, X: Table, known: Sequence[Sequence[Any]]
) -> list[Column]:
    """Read rows to predict, each column as in the fit: as numbers of any dtype, or as
    categories of the kinds in `known`; raise ValueError if that is impossible.
    """
    is_categorical, X = estimator.is_categorical_, as_frame(X)
    if is_categorical is not None and is_categorical.any():  # as scikit-learn does then
        X = columns_of_fit(estimator, X)
    validate_data(estimator, X, reset=False, skip_check_array=True)
    names = _check_feature_names_in(estimator).tolist()
    columns = read_columns(
        X, categorical_features=is_categorical, remedy=_AS_IN_FIT, names=names
    )
    found = (column for column in columns if column.is_categorical)
    for column, categories in zip(found, known, strict=True):
        check_kinds(column.values, categories, repr(str(column.name)))
    return columns


def columns_of_fit(estimator: BaseEstimator, X: Any) -> Any:
    """Return only the fit's columns if X is a frame that has all of them, else X."""
    names = [*getattr(estimator, "feature_names_in_", ())]
    has_all = names and is_data_frame(X) and {*names} <= {*X.columns}
    return X[names] if has_all else X


def check_same_columns(
    columns: Sequence[Column], others: Sequence[Column], *, name: str, other_name: str
) -> None:
    """Raise ValueError unless two tables have the same columns, in the same order."""
    if len(columns) != len(others):
        raise ValueError(
            f"{other_name} has {len(others)} column(s), but {name} has {len(columns)}; "
            "pass the same columns in both."
        )
    for j, (column, other) in enumerate(zip(columns, others, strict=True)):
        if column.name != other.name:
            raise ValueError(
                f"column {j} of {other_name} is {other.name!r}, but that of {name} is "
                f"{column.name!r}; pass the same columns in the same order."
            )
        if column.is_categorical != other.is_categorical:
            kinds = {True: "categories", False: "numbers"}
            raise ValueError(
                f"column {column.name!r} holds {kinds[column.is_categorical]} in "
                f"{name}, but {kinds[other.is_categorical]} in {other_name}; give it "
                "one dtype in both."
            )


def list_columns(names: Sequence[Any]) -> str:
    """Join the names of columns for a message, at most the first five."""
    text, more = ", ".join(map(repr, names[:_MOST_NAMED])), len(names) - _MOST_NAMED
    return f"{text} and {more} more" if more > 0 else text


def _as_array(X: Table, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(as_frame(X))
    except ValueError as error:
        raise ValueError(f"{name} must be a table: {error}") from error
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions, rows and columns; got an array of shape "
            f"{array.shape}."
        )
    return array


def holds_text(dtype: object) -> bool:
    """Return whether a frame's column with this dtype is categorical by default."""
    if hasattr(dtype, "is_numeric"):  # polars
        text = str(dtype).partition("(")[0]
        return text in ("String", "Utf8", "Categorical", "Enum", "Object")
    if str(dtype).startswith("category"):
        return True
    return getattr(dtype, "kind", "O") in "OUST" and not holds_dates(dtype)


def holds_dates(dtype: object) -> bool:
    """Return whether a column with this dtype holds dates or times."""
    if getattr(dtype, "kind", "") in ("m", "M"):
        return True
    # Periods and Arrow's dates have the kind of objects, or none.
    names = ("date", "time", "duration", "period")
    return str(dtype).lower().startswith(names)


def choose_columns(
    given: Any, names: Sequence[Any], is_frame: bool, *, name: str, also: str = ""
) -> NDArray[np.bool_]:
    """Return a mask of the columns that `given` lists by names or indices, or marks by
    a mask. Raise ValueError for anything else; `name` and `also` are for its message.
    """
    if isinstance(given, str) or np.ndim(given) != 1:
        raise ValueError(
            f"{name} must be {also}a list of names, of indices or of one bool a "
            f"column; got {given!r}."
        )
    mask = np.zeros(len(names), dtype=bool)
    given = np.asarray(given, dtype=object).tolist()
    if given and all(isinstance(x, (bool, np.bool_)) for x in given):
        if len(given) != len(names):
            raise ValueError(
                f"{name} has {len(given)} bools, but X has {len(names)} columns; pass "
                "one a column."
            )
        return np.array(given, dtype=bool)
    for x in given:
        if isinstance(x, str):
            if not is_frame:
                raise ValueError(
                    f"{name} names column {x!r}, but X is no data frame, and its "
                    "columns have no names; pass indices."
                )
            if x not in names:
                raise ValueError(
                    f"{name}: X has no column {x!r}; its columns are "
                    f"{list_columns(names)}."
                )
            mask[[j for j, column in enumerate(names) if column == x]] = True
        elif isinstance(x, (int, np.integer)) and not isinstance(x, bool):
            if not 0 <= x < len(names):
                raise ValueError(
                    f"{name}: there is no column {x} among the {len(names)} of X, "
                    "which are counted from 0."
                )
            mask[x] = True
        else:
            raise ValueError(
                f"{name} must hold names, indices or bools; got {x!r} in it."
            )
    return mask


def as_numbers(
    values: Any, column: object, name: str, remedy: str
) -> NDArray[np.float64]:
    """Return a column's values as numbers; raise ValueError if they are not numbers."""
    try:
        numbers = to_numbers(values)
        if numbers.ndim != 1:
            raise ValueError("it holds several values a row")
        return numbers
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name}: column {column!r}, of dtype {values.dtype}, is not numeric: "
            f"{' '.join(str(error).split()).rstrip('.')}. {remedy}"
        ) from error


def to_numbers(values: Any) -> NDArray[np.float64]:
    """Convert values of any dtype to numbers, or raise ValueError or TypeError."""
    dtype = values.dtype
    if holds_dates(dtype):
        such = [f", such as {first}" for first in np.asarray(values[:1])]
        raise ValueError("it holds dates or times" + "".join(such))
    if getattr(dtype, "kind", "") == "c":
        raise ValueError("it holds complex numbers (Complex data not supported)")
    if hasattr(values, "iloc"):
        values = values.to_numpy() if str(dtype) == "category" else values
        if getattr(dtype, "kind", "O") != "O":
            return values.to_numpy(dtype=np.float64, na_value=np.nan)
    values = np.asarray(values)
    if values.dtype.kind in "OUST" and not {*map(type, values)} <= _PLAIN:
        values = np.array([_as_number(value) for value in values.tolist()])
    return np.asarray(values, dtype=np.float64)


def may_mislead(dtype: object) -> bool:
    """Return whether NumPy may turn values of this dtype into numbers by mistake."""
    return getattr(dtype, "kind", "") in ("O", "c") or holds_dates(dtype)


def _as_number(value: Any) -> float:
    """Return a value as float, NaN if missing; raise ValueError for dates and text."""
    if value is None or is_pandas_na(value):
        return np.nan
    if isinstance(value, _DATES) or hasattr(value, "asfreq"):  # a period of pandas
        raise ValueError(f"it holds dates or times, such as {value}")
    try:
        return float(value)
    except (OverflowError, ValueError) as error:
        raise ValueError(f"it holds {value!r}") from error
    except TypeError as error:
        raise TypeError(f"it holds {value!r}: {error}") from error


def as_categories(values: Any, column: object, name: str = "X") -> NDArray[Any]:
    """Return a column's values as objects, missing ones as None, dates as datetimes."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        values = [None if np.isnat(x) else x for x in values]  # NumPy makes integers
    is_polars = hasattr(values, "cast")
    raw = values.to_list() if is_polars else np.asarray(values, object).tolist()
    categories = np.empty(len(raw), dtype=object)
    try:
        read = {v: x for v in set(raw) if (x := _as_category(v)) is not v}
        categories[:] = [read.get(v, v) for v in raw]
    except TypeError as error:
        raise ValueError(
            f"{name}: column {column!r} holds what cannot be a category: {error}. Make "
            "text or numbers of it, or leave it out."
        ) from error
    return categories


def _as_category(value: Any) -> Any:
    """Convert a missing value to None, and any date or duration to Python's class."""
    is_text = isinstance(value, str)  # as most are
    if not is_text and (value is None or is_pandas_na(value) or value != value):
        return None
    if isinstance(value, _OF_NUMPY):
        exact = value.astype(f"{value.dtype.kind}8[us]")
        return exact.item() if exact.astype(value.dtype) == value else value
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime.combine(value, datetime.time())
    return value


def check_kinds(values: Any, known: Any, column: str) -> None:
    """Raise ValueError for a category of a kind (text, number, other) that no category
    of the fit has.
    """
    examples = {_kind_of(each): each for each in known if each is not None}
    for value in {*values} - {None} if examples else ():
        if _kind_of(value) not in examples:
            example = next(iter(examples.values()))
            raise ValueError(
                f"X: column {column} holds {value!r}, but its categories in the fit "
                f"are of another type, such as {example!r}: pass the categories as in "
                "the fit."
            )


def _kind_of(value: object) -> type:
    if isinstance(value, str):
        return str
    return float if isinstance(value, Number | np.bool_) else object
