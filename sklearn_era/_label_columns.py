"""Split era labels, passed as a table, a tuple or one array, into columns."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from ._era_labels import Labels
from ._tables.checks import check_collected, check_names, names_of_columns
from ._typing import Eras


class EraColumns:
    """Columns of labels, each of its own type, which can be indexed by rows."""

    def __init__(
        self, columns: Iterable[Any], names: Iterable[Any] = (0, 1),
        calendar: Labels | None = None,
    ) -> None:  # fmt: skip
        self.columns, self.names = [*columns], names
        self.calendar = calendar  # all times of the rows of which these are some
        self.shape = len(self.columns[0]), len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: object) -> "EraColumns":
        rows = key[0] if isinstance(key, tuple) else key
        columns = (column[rows] for column in self.columns)
        return EraColumns(columns, self.names, self.calendar)


class LabelColumn(NamedTuple):
    """A column of labels of eras, with its name."""

    key: Any  # its name or number; None if `eras` is one column
    text: str  # its name in error messages
    labels: Any


def label_columns(eras: Eras, name: str = "eras") -> list[LabelColumn]:
    """Return the columns of a table or of a tuple of two arrays. Return anything else
    as one column, which `check_eras` checks later. Raise ValueError for a lazy frame, a
    sparse matrix, or a table without columns or with two columns of one name.
    """
    check_collected(eras, name, by_column=True)
    if issparse(eras):
        raise ValueError(
            f"{name} is a sparse matrix, and one label a row is needed: pass "
            f"{name}.toarray().ravel()."
        )
    if isinstance(eras, tuple) and [np.ndim(x) for x in eras] == [1, 1]:
        eras = EraColumns(eras)
    if isinstance(eras, EraColumns):
        pairs = zip(eras.names, eras.columns, strict=True)
        return [LabelColumn(key, f"{name}[{key!r}]", x) for key, x in pairs]
    # Columns of a data frame (pandas or polars) may differ in type; a pyarrow table's
    # `columns` are not names.
    is_frame = hasattr(type(eras), "column_names") or hasattr(eras, "columns")
    if is_frame or isinstance(eras, Mapping):
        if not isinstance(eras, Mapping):
            check_names(eras, name)
        names = eras if isinstance(eras, Mapping) else names_of_columns(eras)
        columns = [LabelColumn(x, f"{name}[{x!r}]", eras[x]) for x in names]
    elif (table := _as_table(eras)) is None:
        return [LabelColumn(None, name, eras)]
    else:
        columns = [LabelColumn(j, f"{name}[:, {j}]", x) for j, x in enumerate(table.T)]
    if not columns:
        raise ValueError(f"{name} has no column of labels; pass one at least.")
    return columns


def _as_table(eras: Any) -> Labels | None:
    """Return 2-d labels as an array, perhaps a masked one; None for other labels."""
    if hasattr(eras, "dtype"):
        if np.ndim(eras) != 2:
            return None
        # A column of NumPy's matrix would be a matrix again.
        return eras if np.ma.isMaskedArray(eras) else np.asarray(eras)
    try:
        table = np.asarray(eras)
    except ValueError:  # rows differ in length
        return None
    if table.ndim != 2:
        return None
    # NumPy turns all values of a list with strings into strings, None too.
    return np.asarray(eras, dtype=object) if table.dtype.kind in "USO" else table
