"""The files of Numerai's data: what they hold, and whether they are whole."""

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from sklearn_era._optional import import_optional
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.files import Record

if TYPE_CHECKING:
    import pandas as pd

# The column with the predictions in the file meta_model.
META_MODEL_COLUMN = "numerai_meta_model"

_ADVICE = "remove it, and download it again."
_ERA = "[0-9]{4}"


class FeatureMetadata(Record):
    """What ``features.json`` says: the columns of each feature set, and the targets."""

    feature_sets: Annotated[dict[str, list[str]], Field(min_length=1)]
    targets: list[str]

    def features(self, name: str) -> list[str]:
        """The columns of a feature set."""
        sets = self.feature_sets
        if name not in sets:
            close = difflib.get_close_matches(name, sets, n=1)
            meant = f"; did you mean {close[0]!r}?" if close else "."
            sizes = ", ".join(f"{known} ({len(of):,})" for known, of in sets.items())
            raise DataError(
                f"features.json has no feature set {name!r}{meant} It has {sizes}."
            )
        return list(sets[name])


def read_features(path: Path) -> FeatureMetadata:
    """Read ``features.json``."""
    metadata = FeatureMetadata.read(path, advice=_ADVICE.capitalize())
    if metadata is None:
        raise DataError(f"{path} does not exist: download it.")
    return metadata


def era_number(label: str) -> int | None:
    """The number of an era, None for one without, such as the live era "X"."""
    return int(label) if re.fullmatch(_ERA, label) else None


def check_parquet(
    path: Path, *, live: bool = False, needs_era: bool = True, shown_as: object = None
) -> list[str]:
    """Check that a file is whole, with rows, distinct ids and eras; return its columns.

    Of a live file, which is small, all columns are decoded, and else ids and eras.
    Errors call the file `shown_as`.
    """
    shown = shown_as or path
    arrow = import_optional("pyarrow", extra="numerai")
    ids, eras = [], set[Any]()
    with _opened(path, shown) as file:
        names, key = file.schema_arrow.names, _id_column(file, shown)
        if needs_era and "era" not in names:
            raise DataError(f"{shown} has no column 'era'.")
        wanted = None if live else [name for name in names if name in (key, "era")]
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=wanted)
            table.validate(full=True)
            ids += table.column(key).cast(arrow.large_string()).chunks
            if "era" in names:
                eras.update(table.column("era").unique().to_pylist())
    n_rows = sum(map(len, ids))
    if not n_rows:
        raise DataError(f"{shown} has no rows: {_ADVICE}")
    all_ids = arrow.chunked_array(ids)
    _check_null(all_ids, shown)
    counts = all_ids.value_counts()
    if len(counts) < n_rows:
        twice = counts.field("values")[int(np.argmax(counts.field("counts")))]
        raise DataError(
            f"{shown} has {n_rows - len(counts):,} ids more than once (first: "
            f"{twice}): {_ADVICE}"
        )
    if live and len(eras) > 1:
        raise DataError(f"{shown} has {len(eras):,} eras, not one: is it a live file?")
    check_eras(eras, shown, numbered=not live)
    return names


def check_eras(eras: Iterable[Any], shown: object, *, numbered: bool) -> None:
    """Check that eras are text, and where they are `numbered`, of four digits."""
    form = " of four digits, such as '0575'" if numbered else ""
    for era in sorted(eras, key=repr):
        if not (isinstance(era, str) and re.fullmatch(_ERA if numbered else ".+", era)):
            raise DataError(f"{shown} has the era {era!r}; an era is text{form}.")


def check_has(path: Path, wanted: Sequence[str], names: Iterable[str]) -> None:
    """Check that the columns that are wanted are among those of a file."""
    known = set(names)
    missing = [name for name in wanted if name not in known]
    if missing:
        raise DataError(
            f"{path} lacks {len(missing):,} of {len(wanted):,} columns (first: "
            f"{missing[0]}): is it of another version of the data?"
        )


def read_column_names(path: Path) -> list[str]:
    """The columns of a file, in its order."""
    with _opened(path, path) as file:
        return file.schema_arrow.names


def read_ids(path: Path) -> list[str]:
    """The ids of a file, its column ``id`` or its index, in the order of its rows."""
    return read_columns(path, []).index.tolist()


def read_columns(path: Path, columns: Sequence[str] | None) -> "pd.DataFrame":
    """Columns of a file in the order given, or all, as stored; the index is ``id``."""
    with _opened(path, path) as file:
        names, key = file.schema_arrow.names, _id_column(file, path)
        wanted = [x for x in names if x != key] if columns is None else list(columns)
        check_has(path, wanted, names)
        table = file.read(columns=[key, *wanted])
        table.validate(full=True)
        _check_null(table.column(key), path)
        frame = table.to_pandas(ignore_metadata=True).set_index(key)
    frame.index = frame.index.astype(str).rename("id")
    return frame[wanted]


@contextmanager
def decoding(
    shown: object, told: str = "{shown} is damaged ({reason}): " + _ADVICE
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
def _opened(path: Path, shown: object) -> Iterator[Any]:
    parquet = import_optional("pyarrow.parquet", extra="numerai")
    options = {"page_checksum_verification": True}
    with decoding(shown), parquet.ParquetFile(path, **options) as file:
        yield file


def _id_column(file: Any, shown: object) -> str:
    """The column of the ids: "id", or the index of the frame that was written."""
    schema = file.schema_arrow
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    for name in ("id", *index):
        if name in schema.names:
            return name
    raise DataError(f"{shown} has no ids: neither a column 'id' nor an index.")


def _check_null(ids: Any, shown: object) -> None:
    if ids.null_count:
        raise DataError(f"{shown} has {ids.null_count:,} rows without an id: {_ADVICE}")
