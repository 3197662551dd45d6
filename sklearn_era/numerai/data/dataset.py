"""The files of Numerai's data: what they hold, and whether they are whole."""

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn_era._optional import import_optional
from sklearn_era.numerai.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_ERA = re.compile(r"\d{4}")
_MAGIC = b"PAR1"

# Of the predictions in the file meta_model.
META_MODEL_COLUMN = "numerai_meta_model"


@dataclass(frozen=True)
class FeatureMetadata:
    """What ``features.json`` says.

    Attributes
    ----------
    feature_sets : dict of str to list of str
        The columns of each feature set, in the file's order.
    targets : list of str
        The columns that are targets.
    """

    feature_sets: dict[str, list[str]]
    targets: list[str]

    def features(self, name: str) -> list[str]:
        """The columns of a feature set.

        Raises
        ------
        DataError
            If there is none of that name.

        Examples
        --------
        >>> from sklearn_era.numerai.data import FeatureMetadata
        >>> FeatureMetadata({"small": ["feature_a"]}, []).features("small")
        ['feature_a']
        """
        if name not in self.feature_sets:
            close = difflib.get_close_matches(name, self.feature_sets, n=1)
            meant = f"; did you mean {close[0]!r}?" if close else "."
            sizes = ", ".join(
                f"{known} ({len(columns):,})"
                for known, columns in self.feature_sets.items()
            )
            raise DataError(
                f"The data have no feature set {name!r}{meant} Those of "
                f"features.json: {sizes}."
            )
        return list(self.feature_sets[name])


@dataclass(frozen=True)
class ParquetSummary:
    """What a checked file holds.

    Attributes
    ----------
    n_rows : int
        Its rows.
    columns : list of str
        Its columns, the one of the ids among them.
    id_column : str
        The column that holds the ids, which may be the index of a pandas frame.
    eras : list of str
        Its eras, sorted; none if it has no column ``era``.
    """

    n_rows: int
    columns: list[str]
    id_column: str
    eras: list[str]


def read_feature_metadata(path: Path) -> FeatureMetadata:
    """Read ``features.json``.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    metadata : FeatureMetadata
        The feature sets and the targets.

    Raises
    ------
    DataError
        If it is not there, damaged, or lacks one of the two.
    """
    path = Path(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise DataError(
            f"{path} is damaged, it is no JSON ({error}): remove it, and download it "
            "again."
        ) from error
    known = document if isinstance(document, dict) else {}
    sets, targets = known.get("feature_sets"), known.get("targets")
    if not isinstance(sets, dict) or not sets or not all(map(_is_names, sets.values())):
        raise DataError(f"{path} has no feature_sets, a list of column names each.")
    if not isinstance(targets, list) or not _is_names(targets):
        raise DataError(f"{path} has no targets, a list of column names.")
    for name, columns in sets.items():
        if len(set(columns)) < len(columns):
            twice = next(column for column in columns if columns.count(column) > 1)
            raise DataError(f"{path}: feature set {name!r} names {twice!r} twice.")
    return FeatureMetadata(sets, targets)


def era_number(label: str) -> int | None:
    """The number of an era, None for one that has none, as the live era.

    Examples
    --------
    >>> from sklearn_era.numerai.data import era_number
    >>> era_number("0575"), era_number("X")
    (575, None)
    """
    return int(label) if _ERA.fullmatch(label) else None


def check_parquet(
    path: Path,
    *,
    columns: Sequence[str] = (),
    live: bool = False,
    needs_era: bool = True,
    shown_as: str | None = None,
) -> ParquetSummary:
    """Check that a file of the data is whole, and holds what such a file should.

    Its ids and eras are decoded, row group by row group; of a live file, which is
    small, so are all columns.

    Parameters
    ----------
    path : Path
        A parquet file.

    columns : sequence of str, default=()
        Columns that it must have.

    live : bool, default=False
        Whether its rows must be of one single era. Those of other files have a number
        of four digits, as ``"0575"`` has.

    needs_era : bool, default=True
        Whether it must have eras at all.

    shown_as : str, default=None
        What errors call the file; None for its path.

    Returns
    -------
    summary : ParquetSummary
        What it holds.

    Raises
    ------
    DataError
        If the file is missing or damaged, or has no rows, no ids, ids twice or null,
        or other eras or columns.
    """
    path = Path(path)
    shown = shown_as or str(path)
    file = _open(path, shown)
    with file:
        id_column = _id_column(file, shown)
        names = list(file.schema_arrow.names)
        _check_columns(names, columns, shown)
        has_era = "era" in names
        if needs_era and not has_era:
            raise DataError(f"{shown} has no column 'era'.")
        pa = import_optional("pyarrow", extra="numerai")
        wanted = None if live else [id_column, *(["era"] if has_era else [])]
        ids, eras = [], set()
        try:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=wanted)
                table.validate(full=True)
                ids.append(table.column(id_column).cast(pa.large_string()))
                if has_era:
                    eras.update(table.column("era").unique().to_pylist())
        except (pa.ArrowException, OSError) as error:
            raise _damaged(shown, error) from error
        n_rows = file.metadata.num_rows
    if not n_rows:
        raise DataError(f"{shown} has no rows: remove it, and download it again.")
    _check_ids(ids, shown)
    if has_era:
        _check_eras(eras, live, shown)
    return ParquetSummary(n_rows, names, id_column, sorted(eras))


def read_column_names(path: Path) -> list[str]:
    """The columns of a file, in its order.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    path = Path(path)
    with _open(path, str(path)) as file:
        return list(file.schema_arrow.names)


def read_ids(path: Path) -> list[str]:
    """The ids of a file, in the order of its rows.

    Parameters
    ----------
    path : Path
        A parquet file, with the ids as the index of its pandas frame or as a column
        ``id``.

    Raises
    ------
    DataError
        If it cannot be read, or has no ids.
    """
    path = Path(path)
    with _open(path, str(path)) as file:
        name = _id_column(file, str(path))
        column = _read(file, [name], path)[name]
    if column.null_count:
        raise DataError(
            f"{path} has {column.null_count:,} rows without an id: remove it, and "
            "download it again."
        )
    return [str(label) for label in column.to_pylist()]


def read_columns(path: Path, columns: Sequence[str] | None) -> "pd.DataFrame":
    """Read columns of a file.

    Parameters
    ----------
    path : Path
        A parquet file.

    columns : sequence of str or None
        The columns, in the order in which they are wanted; None for all.

    Returns
    -------
    frame : DataFrame of shape (n_rows, n_columns)
        Its numbers as they are stored; the index, named ``id``, holds the ids.

    Raises
    ------
    DataError
        If the file cannot be read, or lacks a column.
    """
    path = Path(path)
    with _open(path, str(path)) as file:
        id_column = _id_column(file, str(path))
        names = list(file.schema_arrow.names)
        wanted = [n for n in names if n != id_column] if columns is None else columns
        _check_columns(names, wanted, str(path))
        table = _read(file, [id_column, *wanted], path)
    frame = table.to_pandas(ignore_metadata=True).set_index(id_column)
    frame.index.name = "id"
    frame.index = frame.index.astype(str)
    return frame[list(wanted)]


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _open(path: Path, shown: str) -> Any:
    pq = import_optional("pyarrow.parquet", extra="numerai")
    pa = import_optional("pyarrow", extra="numerai")
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
            file.seek(max(file.seek(0, 2) - len(_MAGIC), 0))
            tail = file.read()
    except OSError as error:
        raise DataError(f"{shown} cannot be read: {error.strerror}.") from error
    if head != _MAGIC:
        raise DataError(
            f"{shown} is no parquet file (it begins with {head!r}): remove it, and "
            "download it again."
        )
    if tail != _MAGIC:
        raise DataError(
            f"{shown} is cut off, as it lacks the end of a parquet file: remove it, "
            "and download it again."
        )
    try:
        return pq.ParquetFile(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(shown, error) from error


def _damaged(shown: str, error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:200]
    return DataError(
        f"{shown} is damaged ({reason}): remove it, and download it again."
    )


def _read(file: Any, columns: list[str], path: Path) -> Any:
    pa = import_optional("pyarrow", extra="numerai")
    try:
        table = file.read(columns=columns)
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(str(path), error) from error
    return table


def _id_column(file: Any, shown: str) -> str:
    """The column of the ids: "id", or the index of the frame that was written."""
    schema = file.schema_arrow
    if "id" in schema.names:
        return "id"
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    if len(index) == 1 and isinstance(index[0], str) and index[0] in schema.names:
        return index[0]
    raise DataError(f"{shown} has no ids: neither a column 'id' nor an index.")


def _check_columns(names: Sequence[str], wanted: Sequence[str], shown: str) -> None:
    known = set(names)
    missing = [name for name in wanted if name not in known]
    if missing:
        raise DataError(
            f"{shown} lacks {len(missing):,} of {len(wanted):,} columns (first: "
            f"{missing[0]}): is it of another version of the data?"
        )


def _check_ids(chunks: list[Any], shown: str) -> None:
    pa = import_optional("pyarrow", extra="numerai")
    compute = import_optional("pyarrow.compute", extra="numerai")
    ids = pa.chunked_array([part for chunk in chunks for part in chunk.chunks])
    advice = "remove it, and download it again."
    if ids.null_count:
        raise DataError(f"{shown} has {ids.null_count:,} rows without an id: {advice}")
    n_distinct = compute.count_distinct(ids).as_py()
    if n_distinct < len(ids):
        counts = compute.value_counts(ids)
        twice = counts.filter(compute.greater(counts.field("counts"), 1))
        raise DataError(
            f"{shown} has {len(ids) - n_distinct:,} ids more than once (first: "
            f"{twice.field('values')[0].as_py()}): {advice}"
        )


def _check_eras(eras: set[Any], live: bool, shown: str) -> None:
    if live:
        if len(eras) > 1:
            raise DataError(
                f"{shown} has {len(eras):,} eras, and live data have one: is it "
                "another file?"
            )
        wrong = [era for era in eras if not era or not isinstance(era, str)]
    else:
        wrong = [
            era for era in eras if not isinstance(era, str) or not _ERA.fullmatch(era)
        ]
    if wrong:
        first = min(wrong, key=repr)
        raise DataError(
            f"{shown} has an era {first!r}; eras are texts"
            + ("." if live else " of four digits, as '0575'.")
        )


__all__ = [
    "FeatureMetadata",
    "ParquetSummary",
    "check_parquet",
    "era_number",
    "read_column_names",
    "read_columns",
    "read_feature_metadata",
    "read_ids",
]
