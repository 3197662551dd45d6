"""Read and check files of data and of predictions, and yield their rows by era."""

import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet
from numpy.typing import NDArray
from pydantic import Field

from sklearn_era._tables.columns import list_columns
from sklearn_era._tables.parquet import ParquetColumns
from sklearn_era.numerai import errors
from sklearn_era.numerai.config import TrainSection
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.files import Record

META_MODEL_COLUMN = "numerai_meta_model"  # of the file meta_model
_COLUMNS = ("prediction", "probability")  # of a submission
ADVICE = "Delete it and download it again."


class FeatureMetadata(Record):
    """The contents of ``features.json``: columns of each feature set, and targets."""

    feature_sets: Annotated[dict[str, list[str]], Field(min_length=1)]
    targets: list[str]

    def features(self, name: str) -> list[str]:
        """Return a feature set's columns; raise ConfigError if it is unknown or bad."""
        if name not in self.feature_sets:
            hint = errors.alternatives(name, self.feature_sets)
            raise ConfigError(f"features.json has no feature set {name!r}; {hint}")
        found = self.feature_sets[name]
        if leaks := [x for x in found if x in self.targets]:
            text = f"the feature set {name!r} has the target {leaks[0]!r}"
            raise ConfigError(f"features.json: {text}. Live data lack it: remove it.")
        return list(found)


class EraRun(NamedTuple):
    """The adjacent rows of an era in a file: from `start` to before `stop`."""

    label: str
    start: int
    stop: int


def read_features(path: Path) -> FeatureMetadata:
    metadata = FeatureMetadata.read(path, advice=ADVICE)
    if metadata is None:
        raise DataError(f"{path} does not exist: download it.")
    return metadata


def check_parquet(path: Path, live: bool = False, needs_era: bool = True) -> None:
    """Raise DataError for invalid ids or eras and, in a live file, damaged columns."""
    names = read_column_names(path)
    if needs_era:
        check_has(path, ["era"], names)
    has_era = ["era"] if "era" in names else []
    key, table = _read(path, None if live else has_era)
    if not table.num_rows:
        raise DataError(f"{path} has no rows. {ADVICE}")
    with decoding(path):
        counts = table.column(key).cast("large_string").value_counts()
        eras = table.column("era").unique().to_pylist() if has_era else []
    if n := table.num_rows - len(counts):
        twice = counts.field("values")[int(np.argmax(counts.field("counts")))]
        raise DataError(f"{path} has {n:,} duplicate ids (first: {twice}). {ADVICE}")
    if live and len(eras) > 1:
        raise DataError(f"{path} has {len(eras):,} eras, but a live file has one.")
    _check_eras(eras, path, numbered=not live)


def _check_eras(eras: Iterable[Any], path: Path, *, numbered: bool) -> None:
    """Raise DataError unless all eras are text and, if `numbered`, have four digits."""
    form = " of four digits, like '0575'" if numbered else ""
    pattern = "[0-9]{4}" if numbered else ".+"
    for era in sorted(eras, key=repr):
        if not (isinstance(era, str) and re.fullmatch(pattern, era)):
            raise DataError(f"{path} has the era {era!r}; eras must be text{form}.")


def check_has(path: Path, wanted: Sequence[str], names: Sequence[str]) -> None:
    """Raise DataError unless a file's columns `names` have each of `wanted` once."""
    counts = Counter(names)
    if twice := [name for name in wanted if counts[name] > 1]:
        raise DataError(f"{path} has several columns {twice[0]!r}: leave one.")
    if missing := [name for name in wanted if not counts[name]]:
        raise DataError(
            f"{path} lacks {len(missing):,} of {len(wanted):,} columns (first: "
            f"{missing[0]}): is it from another version of the data?"
        )


def read_column_names(path: Path) -> list[str]:
    with _opened(path) as file:
        return file.schema_arrow.names


def read_ids(path: Path) -> list[str]:
    """Return the ids of a file's rows, in its column ``id`` or its index."""
    return read_columns(path, []).index.tolist()


def read_columns(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    """Return `columns` of a file, or all if None, as a frame with the index ``id``."""
    key, table = _read(path, columns)
    with decoding(path):
        frame = table.to_pandas(ignore_metadata=True).set_index(key)
    frame.index = frame.index.astype(str).rename("id")
    return frame if columns is None else frame[list(columns)]


@contextmanager
def decoding(
    shown: object, template: str = "{shown} is damaged ({reason}). " + ADVICE
) -> Iterator[None]:
    """Raise DataError for an ArrowException, OSError or ValueError in the block."""
    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        # ValueError: column names that are not UTF-8.
        reason = " ".join(str(error).split())[:500].rstrip(".")
        if isinstance(error, OSError) and error.errno is not None:
            template = "{shown} cannot be read: {reason}."
            reason = os.strerror(error.errno)
        raise DataError(template.format(shown=shown, reason=reason)) from error


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    options = {"page_checksum_verification": True}
    with decoding(path), pyarrow.parquet.ParquetFile(path, **options) as file:
        yield file


def _read(path: Path, columns: Sequence[str] | None) -> tuple[str, Any]:
    """Return the name of the column with ids, and a table with ids and `columns`."""
    with _opened(path) as file:
        schema = file.schema_arrow
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        key = next((name for name in ("id", *index) if name in schema.names), None)
        if key is None:
            raise DataError(f"{path} has no ids: add a column 'id' or an index.")
        for wanted in ([key], columns or []):
            check_has(path, wanted, schema.names)
        table = file.read(columns=None if columns is None else [key, *columns])
        table.validate(full=True)
        if n_null := table.column(key).null_count:
            raise DataError(f"{path} has {n_null:,} rows without an id. {ADVICE}")
        return key, table


class EraFile:
    """A Parquet file with the rows of each era together. Opening it reads no rows."""

    def __init__(self, path: Path) -> None:
        with decoding(path):
            self.columns = ParquetColumns(path)
        self.path = path

    def check_numeric(self, names: Sequence[str], argument: str = "features") -> None:
        """Raise DataError unless the columns `names` exist and are numeric."""
        check_has(self.path, names, self.columns.names)
        with decoding(self.path, "{reason}."):
            self.columns.check_numeric([*names], argument)

    def read_numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as floats, NaN if missing; raise DataError for infinities."""
        self.check_numeric([name], "the file")
        with decoding(self.path):
            values = self.columns.read_numbers(name, "the file")
        if n := np.isinf(values).sum():
            text = f"{self.path}: column {name!r} is infinite in {n:,} rows"
            raise DataError(f"{text}: download the file again.")
        return values

    def read_eras(self) -> tuple[list[str], NDArray[np.intp]]:
        """Return the distinct eras, and for each row the index of its era."""
        check_has(self.path, ["era"], self.columns.names)
        with decoding(self.path):
            distinct, index = self.columns.read_distinct("era")
        labels = distinct.tolist()
        missing = [None] if (index < 0).any() else []
        _check_eras([*labels, *missing], self.path, numbered=True)
        return labels, index

    def runs(self) -> list[EraRun]:
        """Return the range of each era's rows, in file order. Raise DataError if the
        rows of an era are not adjacent.
        """
        labels, index = self.read_eras()
        starts = np.flatnonzero(np.diff(index, prepend=-1)).tolist()
        in_order = [labels[i] for i in index[starts]]
        if len(in_order) > len(labels):
            twice = next(x for i, x in enumerate(in_order) if x in in_order[:i])
            text = f"{self.path}: the rows of era {twice!r} are not contiguous"
            raise DataError(f"{text}: sort the file by era, or download it again.")
        return list(map(EraRun, in_order, starts, [*starts[1:], index.size]))

    def blocks(
        self, features: Sequence[str], runs: Sequence[EraRun]
    ) -> Iterator[NDArray[Any]]:
        """Yield for each era an array of shape (n_rows_of_era, n_features) in Fortran
        order. The dtype is the common dtype of the features: int8, for example, if all
        features are int8, or float64 if a feature has missing values (NaN). `runs`, the
        ranges of rows of the eras, must be in file order.
        """
        names, columns = list(features), self.columns
        self.check_numeric(names)
        wanted = np.zeros(columns.n_rows, dtype=bool)
        for run in runs:
            wanted[run.start : run.stop] = True
        parts = []
        with decoding(self.path):
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


def read_rows(
    files: Sequence[Path], features: Sequence[str], target: str, eras: Mapping[str, Any]
) -> tuple[pd.DataFrame, NDArray[Any], NDArray[Any]]:
    """Return the features, the targets and the labels ``eras[era]`` of the rows in
    `eras` that have a target, sorted by era.
    """
    parts = dict[str, Any]()
    for path in files:
        file = EraFile(path)
        runs = [run for run in file.runs() if run.label in eras]
        targets = file.read_numbers(target)
        for run, block in zip(runs, file.blocks(features, runs), strict=True):
            y = targets[run.start : run.stop]
            has = ~np.isnan(y)
            parts[run.label] = block[has], y[has], np.full(has.sum(), eras[run.label])
    in_order = zip(*(parts[x] for x in sorted(parts)), strict=True)
    block, y, labels = map(np.concatenate, in_order)
    return pd.DataFrame(block, columns=[*features], copy=False), y, labels


def select_eras(files: Sequence[Path], fit: TrainSection) -> tuple[dict[str, int], int]:
    """Return a dict from each era to train on to its label, in order; and the number of
    rows without a target in all chosen eras, even in eras where no row has a target.
    """
    # By era, the numbers of rows without and with a target.
    counts: dict[str, tuple[int, int]] = {}
    for path in files:
        file = EraFile(path)
        has_target = ~np.isnan(file.read_numbers(fit.target))
        for label, start, stop in file.runs():
            if label in counts:
                raise DataError(
                    f"{path}: era {label!r} is also in another file, so its rows would "
                    "count twice: download both files again."
                )
            n_labelled = int(np.count_nonzero(has_target[start:stop]))
            counts[label] = stop - start - n_labelled, n_labelled
    shown = ", ".join(path.name for path in files)
    first, last = fit.first_era, fit.last_era
    # Labels of four digits sort as numbers.
    in_order = sorted(counts)
    within = [x for x in in_order if first <= x <= (last or "9999")]
    chosen = within[fit.era_offset :: fit.every_nth_era]
    if not chosen:
        raise ConfigError(
            f"No era is left: {shown} has eras {in_order[0]} to {in_order[-1]}, but "
            f"[train] sets first_era = {first!r}, last_era = {last!r}, era_offset = "
            f"{fit.era_offset}."
        )
    # The newest eras have no targets yet.
    taken = [label for label in chosen if counts[label][1]]
    if not taken:
        raise DataError(
            f"{shown}: column {fit.target!r} has no values in the {len(chosen)} "
            f"eras {chosen[0]} to {chosen[-1]}: choose other eras or another target."
        )
    if fit.era_groups > len(taken):
        raise ConfigError(
            f"[train] era_groups = {fit.era_groups} exceeds the "
            f"{len(taken)} eras that are left to train on: lower it."
        )
    labels = {label: int(label) for label in taken}
    if fit.era_groups:
        groups = np.array_split(taken, fit.era_groups)
        labels = {str(x): group for group, eras in enumerate(groups) for x in eras}
    return labels, sum(counts[label][0] for label in chosen)


def make_submission(predictions: "pd.Series[Any]", shown: str = "") -> pd.DataFrame:
    """Return a frame with columns ``id`` (text) and ``prediction`` (float64)."""
    try:
        values = predictions.astype(np.float64)
    except (TypeError, ValueError):
        text = f"{shown}: column {predictions.name!r} is not numeric."
        raise errors.SubmissionError(text) from None
    return values.rename(str).rename_axis("id").reset_index(name="prediction")


def read_predictions(path: Path) -> pd.DataFrame:
    """Return the predictions in a CSV or Parquet file with ids in a column or index."""
    with decoding(path):
        content = path.read_bytes()
        is_parquet = content.startswith(b"PAR1")
        if path.suffix == ".parquet" and not is_parquet:
            raise ValueError("Parquet magic bytes not found at its start")
    if not is_parquet:
        return parse_predictions(content, str(path))
    name = _only(read_column_names(path), _COLUMNS, str(path))
    return make_submission(read_columns(path, [name])[name], str(path))


def parse_predictions(content: bytes, shown: str) -> pd.DataFrame:
    """Return the predictions in a CSV file's bytes; `shown` names it in errors."""
    with decoding(shown, "{shown} cannot be read as CSV: {reason}."):
        # As text: ids stay as they are, and numbers keep every digit.
        frame = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    if not isinstance(frame.index, pd.RangeIndex):  # it took the first fields for one
        text = f"{shown} has more fields in its rows than names in its header"
        raise errors.SubmissionError(f"{text}: give each column a name.")
    if "id" not in frame:  # pandas' name of an index that was written
        frame = frame.rename(columns={"Unnamed: 0": "id"})
    frame = frame.set_index(_only([*frame], ["id"], shown))
    column = frame[_only([*frame], _COLUMNS, shown)]
    return make_submission(column.replace("", "nan"), shown)


def _only(names: Sequence[str], wanted: Sequence[str], shown: str) -> str:
    """Return the one of `wanted` that is in `names`; else raise SubmissionError."""
    found = [name for name in wanted if name in names]
    if found and (f"{found[0]}.1" in names or names.count(found[0]) > 1):  # of pandas
        text = f"{shown} has several columns {found[0]!r}: leave one."
        raise errors.SubmissionError(text)
    if len(found) != 1:
        has = "both" if found else list_columns(names)
        text = f"{shown} must have a column {' or '.join(map(repr, wanted))}, but has"
        raise errors.SubmissionError(f"{text} {has}.")
    return found[0]
