"""Several labels a row: the columns of `eras`, of any kind of table."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._eras import EncodedEras, encode_eras, read_eras


class LabelColumn(NamedTuple):
    """A column of labels."""

    key: Any  # its name, or its number; None where `eras` is one column
    text: str  # what an error message calls it
    labels: Any


def label_columns(eras: Any) -> list[LabelColumn]:
    """The columns of labels; what is no table is one that `check_eras` may refuse."""
    # Data frames, whose columns may differ in type: of pandas or polars, or a table of
    # pyarrow, whose `columns` are not their names.
    names = getattr(eras, "column_names", getattr(eras, "columns", None))
    if isinstance(eras, Mapping):
        names = list(eras)
    if names is not None:
        columns = [LabelColumn(x, f"eras[{x!r}]", eras[x]) for x in names]
    else:
        table = _as_table(eras)
        if table is None:
            return [LabelColumn(None, "eras", eras)]
        columns = [
            LabelColumn(j, f"eras[:, {j}]", column) for j, column in enumerate(table.T)
        ]
    if not columns:
        raise ValueError("eras has no column of labels; pass one at least.")
    return columns


def encode_groups(
    eras: Any, X: Any, X_name: str
) -> tuple[dict[Any, EncodedEras], EncodedEras]:
    """Return the columns of labels of the groups, and the groups of the rows: every
    combination of labels that has rows is one.
    """
    columns = {}
    for key, text, labels in label_columns(eras):
        encoded = read_eras(labels, X, name=text, X_name=X_name)
        columns["era" if key is None else key] = encoded
    sizes = [max(1, column.labels.size) for column in columns.values()]
    codes = [column.codes for column in columns.values()]
    groups = encode_eras(np.ravel_multi_index(codes, sizes))
    places = np.unravel_index(groups.labels, sizes)
    names = zip(columns, places, strict=True)
    return {
        x: replace(columns[x], codes=own.astype(np.int32)) for x, own in names
    }, groups


def _as_table(eras: Any) -> NDArray[Any] | None:
    """Labels in rows and columns, masked ones too; None of what is no such table."""
    if hasattr(eras, "dtype"):
        return np.asanyarray(eras) if np.ndim(eras) == 2 else None
    try:
        table = np.asarray(eras)
    except ValueError:  # of rows that differ in length
        return None
    if table.ndim != 2:
        return None
    # NumPy makes strings of all that a list holds where some are, of None too.
    return np.asarray(eras, dtype=object) if table.dtype.kind in "USO" else table
