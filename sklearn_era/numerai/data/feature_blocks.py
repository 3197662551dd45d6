"""The features of a file an era at a time, as a model takes them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_era._optional import import_optional
from sklearn_era._tables.parquet import ParquetColumns
from sklearn_era.numerai.data.dataset import read_column_names
from sklearn_era.numerai.errors import DataError


class EraRun(NamedTuple):
    """The rows of an era, which lie together.

    Attributes
    ----------
    label : str
        The era.
    start, stop : int
        The first row, and the one after the last.
    """

    label: str
    start: int
    stop: int


def open_columns(path: Path) -> ParquetColumns:
    """Open a Parquet file, without reading its rows.

    Raises
    ------
    DataError
        If it is missing or damaged, or has no rows.
    """
    read_column_names(path)  # says what is wrong with the file
    try:
        return ParquetColumns(path)
    except ValueError as error:
        raise DataError(f"{path} has no rows: download it again.") from error


def era_runs(columns: ParquetColumns, path: Path) -> list[EraRun]:
    """Find where each era of a file begins and ends.

    Returns
    -------
    runs : list of EraRun
        In the order of the file.

    Raises
    ------
    DataError
        If the file is damaged, there is no column era, a row has no era, or the rows of
        an era do not lie together: a block at a time could then not be an era.
    """
    if "era" not in columns.names:
        raise DataError(f"{path} has no column 'era': download it again.")
    arrow = import_optional("pyarrow", extra="numerai")
    try:
        distinct, index = columns.read_distinct("era")
    except (arrow.ArrowException, OSError) as error:
        raise _damaged(path, error) from error
    if (index < 0).any():
        raise DataError(
            f"{path}: {np.count_nonzero(index < 0):,} rows have no era; download it "
            "again."
        )
    starts = np.flatnonzero(np.diff(index, prepend=-1))
    labels = [str(distinct[i]) for i in index[starts]]
    if len(set(labels)) < len(labels):
        twice = next(x for i, x in enumerate(labels) if x in labels[:i])
        raise DataError(
            f"{path}: the rows of era {twice!r} do not lie together: sort the file by "
            "era, or download it again."
        )
    stops = [*starts[1:].tolist(), index.size]
    return [EraRun(*run) for run in zip(labels, starts.tolist(), stops, strict=True)]


def read_blocks(
    columns: ParquetColumns,
    path: Path,
    features: Sequence[str],
    runs: Sequence[EraRun],
) -> Iterator[NDArray[Any]]:
    """Read features of eras, one era in memory at a time.

    Parameters
    ----------
    columns : ParquetColumns
        The file.
    path : Path
        Its path.
    features : sequence of str
        Its columns, in the order wanted.
    runs : sequence of EraRun
        Where the eras lie, in the order of the file.

    Yields
    ------
    block : ndarray of shape (n_rows_of_era, n_features)
        Fortran-ordered; int8 if all columns are, and float64, with NaN, if values are
        missing.

    Raises
    ------
    DataError
        If a column is no numbers, or the file is damaged.
    """
    names = list(features)
    try:
        columns.check_numeric(names)
    except ValueError as error:
        raise DataError(str(error).removeprefix("features: ")) from error
    dtype = np.result_type(*(columns.sample_dtype(name) for name in set(names)))
    wanted = np.zeros(columns.n_rows, dtype=bool)
    for run in runs:
        wanted[run.start : run.stop] = True
    batches = _undamaged(columns.iter_batches(names, wanted), path)
    first, batch = next(batches)
    for run in runs:
        block = np.empty((run.stop - run.start, len(names)), dtype=dtype, order="F")
        filled = run.start
        while filled < run.stop:
            while first + batch.num_rows <= filled:
                first, batch = next(batches)
            stop = min(run.stop, first + batch.num_rows)
            part = batch.slice(filled - first, stop - filled)
            for j, name in enumerate(names):
                values = columns.values(part, name)
                if not np.can_cast(values.dtype, block.dtype):
                    # Missing values: they need NaN, and so the whole block floats.
                    block = block.astype(np.float64, order="F")
                block[filled - run.start : stop - run.start, j] = values
            filled = stop
        yield block


def _undamaged(batches: Iterator[Any], path: Path) -> Iterator[Any]:
    arrow = import_optional("pyarrow", extra="numerai")
    try:
        yield from batches
    except (arrow.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:200]
    return DataError(f"{path} is damaged ({reason}): remove it, and download it again.")


def predict_block(
    estimator: Any, block: NDArray[Any], features: Sequence[str]
) -> NDArray[np.float64]:
    """Predict rows whose columns are the features of the model, in its order.

    A model that was fitted to named columns gets them by name, and so checks them.
    """
    if not hasattr(estimator, "feature_names_in_"):
        return np.asarray(estimator.predict(block), dtype=np.float64)
    pandas = import_optional("pandas", extra="numerai")
    frame = pandas.DataFrame(block, columns=list(features), copy=False)
    return np.asarray(estimator.predict(frame), dtype=np.float64)


def columns_missing_values(
    block: NDArray[Any], features: Sequence[str]
) -> dict[str, int]:
    """How many values are NaN in each column that has any."""
    if block.dtype.kind != "f":
        return {}
    counts = np.isnan(block).sum(axis=0)
    return {features[j]: int(counts[j]) for j in np.flatnonzero(counts).tolist()}


__all__ = [
    "EraRun",
    "columns_missing_values",
    "era_runs",
    "open_columns",
    "predict_block",
    "read_blocks",
]
