"""Find the columns of X that hold eras by their names, and take them out of X."""

from collections.abc import Hashable
from typing import Any

import narwhals
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples

from ._tables.checks import (
    check_collected,
    check_table,
    has_named_columns,
    is_data_frame,
    names_of_columns,
)
from ._tables.columns import list_columns
from ._typing import Eras, Table
from ._warnings import did_you_mean, warn_user


def names_columns(eras: Any, X: Any, *, name: str = "eras", X_name: str = "X") -> bool:
    """Return whether `eras` names columns of X, by a string or a list of strings. Raise
    ValueError for names in another container, and for strings that are neither names of
    columns nor one label for each row.
    """
    check_collected(X, X_name)
    columns = [*names_of_columns(X)]
    if isinstance(eras, str) or not columns:
        return isinstance(eras, str)
    is_array = isinstance(eras, np.ndarray) or hasattr(eras, "get_indexer")
    if is_array and eras.ndim == 1 and len(eras) < len(columns):
        given = eras.tolist()
    elif isinstance(eras, list | tuple):
        given = [*eras]
    else:
        return False
    are_labels = len(given) == _num_samples(X)
    if not given or (are_labels and not isinstance(eras, list)):
        return False
    if not are_labels:
        _refuse_levels([eras, *given], columns, name)
    if not all(isinstance(x, str) for x in given):
        return False
    known = {*columns}.intersection(given)
    if are_labels:
        return len(known) == len(given)
    if not known:
        raise ValueError(
            f"{name} has {len(given)} labels, but {X_name} has {_num_samples(X)} rows, "
            f"and no column {given[0]!r} that they might name."
            f"{_hint(given[0], X, X_name)} Pass one label a row, or names of columns "
            "as a string or a list."
        )
    if not isinstance(eras, list):
        raise ValueError(
            f"{name}, of type {type(eras).__name__}, names columns: pass names as a "
            f"string or a list, {name}={given!r}."
        )
    return True


def _refuse_levels(given: list[Any], columns: list[Any], name: str) -> None:
    """Raise ValueError if `given` has a tuple that names a column of several levels."""
    levels = {x for x in columns if isinstance(x, tuple)}
    for x in given if levels else ():
        is_name = isinstance(x, tuple) and all(isinstance(y, Hashable) for y in x)
        if is_name and x in levels:
            raise ValueError(
                f"{name} names column {x!r} by a tuple, and only text names one: join "
                "the levels of names, as by X.columns.map('_'.join)."
            )


def _hint(name: str, X: Any, X_name: str) -> str:
    """Return a hint if `name`, which is no column of X, is a level of the index or is
    similar to the name of a column; otherwise return "".
    """
    if name in getattr(getattr(X, "index", None), "names", ()):
        return f" {name!r} is a level of the index: pass {X_name}.reset_index(...)."
    return did_you_mean(name, [x for x in names_of_columns(X) if isinstance(x, str)])


def take_era_column(
    X: Table, eras: Any, *, name: str = "eras", X_name: str = "X", model: Any = None
) -> tuple[Any, Any]:
    """Return X without the columns that `eras` names, and these columns; if `eras`
    holds labels, return both arguments unchanged. If the fit of `model` took eras from
    columns of the same names, return the columns in the order of this fit.
    """
    are_names = names_columns(eras, X, name=name, X_name=X_name)
    if isinstance(known := getattr(model, "_era_column", None), list):
        eras = _in_order_of(known, eras, are_names, name)
    if not are_names:
        return X, eras
    check_table(X, X_name, by_column=True)
    frame = narwhals.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, narwhals.DataFrame):
        raise ValueError(
            f"{name}={eras!r} names a column, but {X_name} is {type(X).__name__}, "
            "which is no data frame: pass one label a row."
        )
    columns, names = frame.columns, [eras] if isinstance(eras, str) else eras
    for x in names:
        if x not in columns:
            raise ValueError(
                f"{name}={eras!r}: {x!r} is no column of {X_name}, whose columns are "
                f"{list_columns(columns)}.{_hint(x, X, X_name)}"
            )
        if names.count(x) > 1:
            raise ValueError(f"{name}={eras!r} names column {x!r} twice; name it once.")
    return frame.drop(eras).to_native(), frame[eras].to_native()


def _in_order_of(known: list[str], eras: Any, are_names: bool, name: str) -> Any:
    """Sort `eras` as `known` if it is a list of the same names, or a table whose
    columns have these names. Return anything else unchanged.
    """
    if are_names:
        is_same = isinstance(eras, list) and len(eras) == len(known)
        return known if is_same and {*eras} == {*known} else eras
    check_collected(eras, name, by_column=True)
    names = [*names_of_columns(eras)] if has_named_columns(eras) else []
    if len(names) == len(known) and {*names} == {*known}:
        return eras[known] if is_data_frame(eras) else eras.select(known)
    return eras


def without_eras(model: BaseEstimator, X: Table, eras: Eras | None) -> Any:
    """Return X without the columns that `eras` names; raise ValueError for labels."""
    if eras is not None and not names_columns(eras, X):
        raise ValueError(
            f"The predictions of {type(model).__name__} take no eras: leave them out, "
            "or name the column of X that holds them."
        )
    return take_era_column(X, eras)[0]


def without_era_column(model: BaseEstimator, X: Table) -> Any:
    """Return X without the columns that held the eras in the fit, or X itself if none
    of these columns is in it. Raise ValueError if X has only some of them.
    """
    check_collected(X)
    return take_era_column(X, era_columns_in(model, X))[0]


def era_columns_in(model: BaseEstimator, X: Table, *, is_known: bool = False) -> Any:
    """Return the name or names of the columns that held the eras in the fit. If X lacks
    all of these columns, return None, and warn if the model is for known groups
    (`is_known`). Raise ValueError if X has only some of them.
    """
    name = getattr(model, "_era_column", None)
    names = [name] if isinstance(name, str) else list(name or [])
    columns = [*names_of_columns(X)] if names else []
    lacking = [x for x in names if x not in columns]
    if not lacking:
        return name
    if len(lacking) < len(names):
        raise ValueError(
            f"X lacks {list_columns(lacking)}, of the columns {list_columns(names)} "
            "that the fit took eras from: pass all of them, or none."
            f"{did_you_mean(lacking[0], columns)}"
        )
    if is_known and columns:
        warn_user(
            f"X lacks the columns {list_columns(names)} that the fit took eras from, "
            "and eras are not passed: all rows are taken for new groups."
        )
    return None
