"""The eras of files: which ones a fit takes, and their rows, an era at a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_era._tables.parquet import ParquetColumns
from sklearn_era.numerai.config import TrainSection
from sklearn_era.numerai.data import check_eras, check_has, decoding, read_column_names
from sklearn_era.numerai.errors import ConfigError, DataError


class EraRun(NamedTuple):
    """The rows of an era, which lie together: from `start` to before `stop`."""

    label: str
    start: int
    stop: int


class EraSelection(NamedTuple):
    """The eras of a fit, in order, with the number in it of each, or of its group."""

    labels: dict[str, int]
    n_rows_without_target: int


def open_columns(path: Path) -> ParquetColumns:
    """Open a Parquet file, without reading its rows."""
    read_column_names(path)  # says what is wrong with the file
    with decoding(path, "{shown} has no rows: download it again."):
        return ParquetColumns(path)


def era_runs(columns: ParquetColumns, path: Path) -> list[EraRun]:
    """Where each era of a file begins and ends, in the order of the file."""
    labels, index = _read_eras(columns, path)
    starts = np.flatnonzero(np.diff(index, prepend=-1)).tolist()
    in_order = [labels[i] for i in index[starts]]
    if len(in_order) > len(labels):
        twice = next(x for i, x in enumerate(in_order) if x in in_order[:i])
        raise DataError(
            f"{path}: the rows of era {twice!r} are not contiguous: sort the file by "
            "era, or download it again."
        )
    stops = [*starts[1:], index.size]
    return [EraRun(*run) for run in zip(in_order, starts, stops, strict=True)]


def read_blocks(
    columns: ParquetColumns, path: Path, features: Sequence[str], runs: Sequence[EraRun]
) -> Iterator[NDArray[Any]]:
    """Features of eras, an ndarray (n_rows_of_era, n_features) in Fortran order each.

    int8 if all columns are, and float64, with NaN, if values are missing. `runs` are in
    the order of the file, of which a block is in memory at a time.
    """
    names = list(features)
    check_has(path, names, columns.names)
    with decoding(path, "{reason}."):
        columns.check_numeric(names)
    wanted = np.zeros(columns.n_rows, dtype=bool)
    for run in runs:
        wanted[run.start : run.stop] = True
    parts = []
    with decoding(path):
        for first, batch in columns.iter_batches(names, wanted):
            for run in runs:
                start = max(run.start, first)
                stop = min(run.stop, first + batch.num_rows)
                if start < stop:
                    part = batch.slice(start - first, stop - start)
                    parts.append(np.array([columns.values(part, x) for x in names]))
                    if stop == run.stop:
                        yield np.concatenate(parts, axis=1).T
                        parts = []


def columns_missing_values(block: NDArray[Any], names: Sequence[str]) -> dict[str, int]:
    """How many values are NaN in each column that has any."""
    counts = np.isnan(block).sum(axis=0)
    return {names[j]: int(counts[j]) for j in np.flatnonzero(counts).tolist()}


def select_eras(files: Sequence[Path], settings: TrainSection) -> EraSelection:
    """Choose the eras of a fit by their numbers and its settings, and group them."""
    counts: dict[str, tuple[int, int]] = {}
    for path in files:
        in_file = _count_rows(path, settings.target)
        for label in sorted(counts.keys() & in_file):
            raise DataError(
                f"{path}: era {label!r} is also in another file, so its rows would "
                "count twice: download both files again."
            )
        counts |= in_file
    shown = ", ".join(path.name for path in files)
    first, last = settings.first_era, settings.last_era
    # Labels of four digits are in the order of their numbers.
    in_order = sorted(counts)
    within = [x for x in in_order if first <= x <= (last or "9999")]
    chosen = within[settings.era_offset :: settings.every_nth_era]
    if not chosen:
        raise ConfigError(
            f"No era is left: {shown} has eras {in_order[0]} to {in_order[-1]}, but "
            f"[train] sets first_era = {first!r}, last_era = {last!r}, era_offset = "
            f"{settings.era_offset}."
        )
    # The newest eras wait for their targets.
    taken = [label for label in chosen if counts[label][1]]
    if not taken:
        raise DataError(
            f"{shown}: column {settings.target!r} has no values in the {len(chosen)} "
            f"eras {chosen[0]} to {chosen[-1]}: choose other eras or another target."
        )
    if settings.era_groups > len(taken):
        raise ConfigError(
            f"[train] era_groups = {settings.era_groups} exceeds the "
            f"{len(taken)} eras that are left to train on: lower it."
        )
    labels = {label: int(label) for label in taken}
    if settings.era_groups:
        groups = np.array_split(taken, settings.era_groups)
        labels = {str(x): group for group, eras in enumerate(groups) for x in eras}
    n_rows, n_labelled = np.sum([counts[label] for label in chosen], axis=0).tolist()
    return EraSelection(labels, n_rows - n_labelled)


def _count_rows(path: Path, target: str) -> dict[str, tuple[int, int]]:
    """By era, the number of rows, and of those that have a target."""
    columns = open_columns(path)
    check_has(path, [target], columns.names)
    with decoding(path, "{reason}."):
        columns.check_numeric([target], "target")
    with decoding(path):
        has_target = ~np.isnan(columns.read_labels(target))
    labels, index = _read_eras(columns, path, numbered=True)
    size = len(labels)
    n_rows = np.bincount(index, minlength=size).tolist()
    n_labelled = np.bincount(index[has_target], minlength=size).tolist()
    return dict(zip(labels, zip(n_rows, n_labelled, strict=True), strict=True))


def _read_eras(
    columns: ParquetColumns, path: Path, *, numbered: bool = False
) -> tuple[list[str], NDArray[np.intp]]:
    """The distinct eras of a file, and the index of each row's."""
    if "era" not in columns.names:
        raise DataError(f"{path} has no column 'era': download it again.")
    with decoding(path):
        distinct, index = columns.read_distinct("era")
    labels = distinct.tolist()
    found = [*labels, None] if (index < 0).any() else labels
    check_eras(found, path, numbered=numbered)
    return labels, index
