"""The warning of columns without a value, which many fits may share."""

import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from .._warnings import warn_user
from .columns import list_columns


class NoValueWarning(UserWarning):
    """Columns have no value in rows to train on; `columns` are their names."""

    columns: Collection[Any] = ()


def warn_of_no_value(columns: Collection[Any], rows: str) -> None:
    """Warn of columns without a value in some rows, if there are any."""
    if columns:
        warning = NoValueWarning(
            f"X: column(s) {list_columns(list(columns))} have no value in {rows}; a "
            "model takes all values of such a column for the same."
        )
        warning.columns = columns
        warn_user(warning)


@contextmanager
def no_value_noted() -> Iterator[dict[Any, None]]:
    """Note the columns that fits would warn of, for one warning about many fits."""
    noted: dict[Any, None] = {}
    show = warnings.showwarning

    def note(message: Warning | str, *args: Any, **options: Any) -> None:
        if isinstance(message, NoValueWarning):
            noted.update(dict.fromkeys(message.columns))
        else:
            show(message, *args, **options)

    with warnings.catch_warnings():
        warnings.simplefilter("always", NoValueWarning)
        warnings.showwarning = note
        yield noted


__all__ = ["NoValueWarning", "no_value_noted", "warn_of_no_value"]
