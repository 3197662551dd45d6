"""How finely a tree divides rows into eras: one way for all trees, or one for each."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._eras import EncodedEras, check_eras, consecutive_blocks, encode_eras


def encode_granularities(
    eras: Any, X: Any, ordered_for: str | None = None
) -> list[EncodedEras]:
    """Check and encode the eras given to ``fit``, column by column; `ordered_for` is
    what depends on the order of the labels, if anything does.
    """
    if isinstance(eras, EncodedEras):  # of a `BinnedDataset`, checked long ago
        return [eras]
    return [
        encode_eras(check_eras(column, X, name=name, ordered_for=ordered_for))
        for name, column in _columns(eras)
    ]


def _columns(eras: Any) -> list[tuple[str, Any]]:
    """The columns of labels, by the name that an error message calls them."""
    # Data frames, whose columns may differ in type: of pandas or polars, or a table of
    # pyarrow, whose `columns` are not their names.
    names = getattr(eras, "column_names", getattr(eras, "columns", None))
    if names is not None:
        columns = [(f"eras[{name!r}]", eras[name]) for name in names]
    else:
        table = _as_table(eras)
        if table is None:
            return [("eras", eras)]  # `check_eras` says what is wrong, if anything is
        columns = [(f"eras[:, {j}]", column) for j, column in enumerate(table.T)]
    if not columns:
        raise ValueError("eras has no column of labels; pass one at least.")
    return columns


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


def merge_into_segments(eras: EncodedEras, n_segments: int) -> EncodedEras:
    """Merge consecutive eras into at most `n_segments` of about as many rows each."""
    segments = consecutive_blocks(eras.counts, n_segments).astype(np.int32)
    merged = EncodedEras(np.arange(n_segments), segments[eras.codes])
    merged.order = eras.order  # sorts them too, and is not looked for again
    return merged


__all__ = ["encode_granularities", "merge_into_segments"]
