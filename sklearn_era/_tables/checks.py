"""Find the names of columns, and refuse data that are not a table in memory."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._typing import Table


def is_data_frame(X: Table) -> bool:
    """Return whether a table is a data frame."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def is_arrow_table(X: Any) -> bool:
    """Return whether X is a table or a batch of pyarrow."""
    return hasattr(type(X), "column_names")  # not of X, as a column may have the name


def has_named_columns(X: Table) -> bool:
    """Return whether a table is a data frame or an Arrow table."""
    return is_data_frame(X) or is_arrow_table(X)


def names_of_columns(X: Any) -> Any:
    """Return the names of a frame's or Arrow table's columns, or () for any other X."""
    return X.column_names if is_arrow_table(X) else getattr(X, "columns", ())


def check_collected(X: Any, name: str = "X", *, by_column: bool = False) -> None:
    """Raise ValueError for a lazy frame, which has neither rows nor a shape. If columns
    are read one by one (`by_column`), refuse Dask's frames, too.
    """
    method = "collect" if hasattr(type(X), "collect") else ""
    if by_column and hasattr(type(X), "compute") and is_data_frame(X):
        method = "compute" if X.ndim == 2 else ""  # NumPy reads a series
    if method:
        raise ValueError(
            f"{name} is a lazy frame, and its rows are needed; pass {name}.{method}()."
        )


def check_mask(values: Any, name: str) -> None:
    """Raise ValueError for masked values, which NumPy would read as valid ones."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} is masked: set the masked values to NaN, as does "
            f"{name}.astype(float).filled(np.nan), or drop these rows."
        )


def check_table(X: Any, name: str = "X", *, by_column: bool = False) -> None:
    """Raise ValueError unless X is a table whose columns have different names. Refuse
    lazy frames as `check_collected` does, masked values, frames without columns, lists
    of values, series, dicts and lists of dicts.
    """
    check_collected(X, name, by_column=by_column)
    check_mask(X, name)
    if hasattr(type(X), "toarray"):  # a sparse matrix, perhaps also a dict
        return
    if has_named_columns(X):
        check_names(X, name)
    if isinstance(X, Mapping):
        is_row = not any(map(np.ndim, X.values()))
        what, instead = "dict", f"pd.DataFrame({f'[{name}]' if is_row else name})"
    elif isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        what, instead = "list of dicts", f"pd.DataFrame({name})"
    elif isinstance(X, list | tuple) and X and np.ndim(X[0]) == 0:
        what, instead = f"list of {len(X)} values", f"[{name}] for a row"
    elif hasattr(type(X), "to_frame"):
        row = "df.iloc[[0]]" if hasattr(X, "iloc") else "df[[0]]"
        what = "series"
        instead = f"{row} for a row of a frame df, or df[['a']] for a column"
    else:
        return
    raise ValueError(f"{name} is a {what}, and a table is needed; pass {instead}.")


def check_names(frame: Any, name: str) -> None:
    """Raise ValueError for a frame without columns, or with two columns of one name."""
    names = [*names_of_columns(frame)]
    if not names:
        raise ValueError(f"{name} has no columns; its shape is {frame.shape}.")
    if len({*names}) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        raise ValueError(
            f"{name} has {names.count(twice)} columns {twice!r}; give each a name of "
            "its own."
        )
