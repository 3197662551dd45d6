"""Warn of columns without a value, once for many fits."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._warnings import warn_user
from .columns import list_columns


class NoValueWarning(UserWarning):
    """Warns of columns without a value in the training rows; `columns` names them."""

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
    """Yield a list. A NoValueWarning in the block is not shown; the names of its
    columns are added to the list instead.
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
