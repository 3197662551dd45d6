"""Several labels per row: the columns of `eras`, in any kind of table."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._eras import EncodedEras, encode_eras, read_eras


class LabelColumn(NamedTuple):
    """A column of labels."""

    key: Any  # its name or number; None if `eras` is one column
    text: str  # its name in error messages
    labels: Any


def label_columns(eras: Any) -> list[LabelColumn]:
    """Return the columns of a table; else one column, checked by `check_eras` later."""
    # Columns of a data frame (pandas or polars) may differ in type; a pyarrow table's
    # `columns` are not names.
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
    """Return for each column its label in each group, and the group of each row: one
    group for each combination of labels that has rows.
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
    """Return labels in rows and columns, masked or not; None if it is no such table."""
    if hasattr(eras, "dtype"):
        return np.asanyarray(eras) if np.ndim(eras) == 2 else None
    try:
        table = np.asarray(eras)
    except ValueError:  # rows differ in length
        return None
    if table.ndim != 2:
        return None
    # NumPy turns all values of a list with strings into strings, None too.
    return np.asarray(eras, dtype=object) if table.dtype.kind in "USO" else table
