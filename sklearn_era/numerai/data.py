"""The files of Numerai's data: what they hold, and whether they are whole."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from sklearn_era._optional import import_optional
from sklearn_era.numerai.errors import ConfigError, DataError, alternatives
from sklearn_era.numerai.files import Record

if TYPE_CHECKING:
    import pandas as pd

# The column with the predictions in the file meta_model.
META_MODEL_COLUMN = "numerai_meta_model"
# What to do about a damaged file.
ADVICE = "Delete it and download it again."

_ERA = "[0-9]{4}"


class FeatureMetadata(Record):
    """What ``features.json`` says: the columns of each feature set, and the targets."""

    feature_sets: Annotated[dict[str, list[str]], Field(min_length=1)]
    targets: list[str]

    def features(self, name: str) -> list[str]:
        """The columns of a feature set."""
        if name not in self.feature_sets:
            hint = alternatives(name, self.feature_sets)
            raise ConfigError(f"features.json has no feature set {name!r}; {hint}")
        return list(self.feature_sets[name])


def read_features(path: Path) -> FeatureMetadata:
    """Read ``features.json``."""
    metadata = FeatureMetadata.read(path, advice=ADVICE)
    if metadata is None:
        raise DataError(f"{path} does not exist: download it.")
    return metadata


def era_number(label: str) -> int | None:
    """The number of an era, None for one without, such as the live era "X"."""
    return int(label) if re.fullmatch(_ERA, label) else None


def check_parquet(
    path: Path, *, live: bool = False, needs_era: bool = True
) -> list[str]:
    """Check that a file is whole, with rows, distinct ids and eras; return its columns.

    Of a live file, which is small, all columns are decoded, and else ids and eras.
    """
    names = read_column_names(path)
    has_era = ["era"] if "era" in names else []
    if needs_era and not has_era:
        raise DataError(f"{path} has no column 'era'.")
    key, table = _read(path, None if live else has_era)
    if not table.num_rows:
        raise DataError(f"{path} has no rows. {ADVICE}")
    with decoding(path):
        counts = table.column(key).cast("large_string").value_counts()
        eras = table.column("era").unique().to_pylist() if has_era else []
    if n_more := table.num_rows - len(counts):
        twice = counts.field("values")[int(np.argmax(counts.field("counts")))]
        told = f"{n_more:,} duplicate ids (first: {twice})"
        raise DataError(f"{path} has {told}. {ADVICE}")
    if live and len(eras) > 1:
        raise DataError(f"{path} has {len(eras):,} eras, but a live file has one.")
    check_eras(eras, path, numbered=not live)
    return names


def check_eras(eras: Iterable[Any], path: Path, *, numbered: bool) -> None:
    """Check that eras are text, and where they are `numbered`, of four digits."""
    form = " of four digits, like '0575'" if numbered else ""
    for era in sorted(eras, key=repr):
        if not (isinstance(era, str) and re.fullmatch(_ERA if numbered else ".+", era)):
            raise DataError(f"{path} has the era {era!r}; eras must be text{form}.")


def check_has(path: Path, wanted: Sequence[str], names: Sequence[str]) -> None:
    """Check that the columns that are wanted are among those of a file."""
    known = set(names)
    missing = [name for name in wanted if name not in known]
    if missing:
        raise DataError(
            f"{path} lacks {len(missing):,} of {len(wanted):,} columns (first: "
            f"{missing[0]}): is it from another version of the data?"
        )


def read_column_names(path: Path) -> list[str]:
    """The columns of a file, in its order."""
    with _opened(path) as file:
        return file.schema_arrow.names


def read_ids(path: Path) -> list[str]:
    """The ids of a file, its column ``id`` or its index, in the order of its rows."""
    return read_columns(path, []).index.tolist()


def read_columns(path: Path, columns: Sequence[str] | None) -> "pd.DataFrame":
    """Columns of a file in the order given, or all, as stored; the index is ``id``."""
    key, table = _read(path, columns)
    with decoding(path):
        frame = table.to_pandas(ignore_metadata=True).set_index(key)
    frame.index = frame.index.astype(str).rename("id")
    return frame if columns is None else frame[list(columns)]


@contextmanager
def decoding(
    shown: object, told: str = "{shown} is damaged ({reason}). " + ADVICE
) -> Iterator[None]:
    """Raise what pyarrow and its callers raise about a file as a `DataError`."""
    arrow = import_optional("pyarrow", extra="numerai")
    try:
        yield
    except (arrow.ArrowException, OSError, ValueError) as error:
        # A ValueError: names of columns that are not UTF-8.
        reason = " ".join(str(error).split())[:500].rstrip(".")
        if isinstance(error, OSError) and error.errno is not None:
            told, reason = "{shown} cannot be read: {reason}.", os.strerror(error.errno)
        raise DataError(told.format(shown=shown, reason=reason)) from error


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    parquet = import_optional("pyarrow.parquet", extra="numerai")
    options = {"page_checksum_verification": True}
    with decoding(path), parquet.ParquetFile(path, **options) as file:
        yield file


def _read(path: Path, columns: Sequence[str] | None) -> tuple[str, Any]:
    """The name of the ids, a column or an index, and a table of it and of columns."""
    with _opened(path) as file:
        schema = file.schema_arrow
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        key = next((name for name in ("id", *index) if name in schema.names), None)
        if key is None:
            raise DataError(f"{path} has no ids: add a column 'id' or an index.")
        check_has(path, columns or [], schema.names)
        table = file.read(columns=None if columns is None else [key, *columns])
        table.validate(full=True)
        if n_null := table.column(key).null_count:
            raise DataError(f"{path} has {n_null:,} rows without an id. {ADVICE}")
        return key, table
