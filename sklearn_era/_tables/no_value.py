"""Warn of columns without a value, once for many fits."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._warnings import warn_user
from .columns import list_columns


class NoValueWarning(UserWarning):
    """Columns have no value in the training rows; `columns` has their names."""

    columns: Sequence[Any] = ()


def warn_of_no_value(columns: Sequence[Any], rows: str) -> None:
    """Warn of columns, if any, that have no value in the rows described by `rows`."""
    if columns:
        columns = list(dict.fromkeys(columns))
        warning = NoValueWarning(
            f"X: column(s) {list_columns(columns)} have no value in {rows}; a model "
            "takes all values of such a column for the same."
        )
        warning.columns = columns
        warn_user(warning)


@contextmanager
def no_value_noted() -> Iterator[list[Any]]:
    """Yield a list, to which the block's NoValueWarnings add the names of their columns
    in place of being shown.
    """
    noted: list[Any] = []
    show = warnings.showwarning

    def note(message: Warning | str, *args: Any, **options: Any) -> None:
        if isinstance(message, NoValueWarning):
            noted.extend(message.columns)
        else:
            show(message, *args, **options)

    with warnings.catch_warnings():
        warnings.simplefilter("always", NoValueWarning)
        warnings.showwarning = note
        yield noted
