"""Read columns of Parquet files, which form one table, in batches."""

from collections.abc import Iterator
from itertools import accumulate, groupby
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._era_labels import categories_of, find, in_order_of
from .._optional import import_optional
from .columns import SMALL_DTYPES, list_columns

# The values of a batch, and its fewest rows. Arrow decodes each int8 to 4 bytes first.
_BATCH_VALUES = 2**21
_BATCH_ROWS = 4096

# Bytes read ahead per column; by default a column's whole part of a row group.
_BUFFER_SIZE = 2**16

_SMALL = {dtype.name: dtype for dtype in SMALL_DTYPES}
_FLOAT = np.dtype(np.float64)


class ParquetColumns:
    """One table on disk: Parquet files with the same columns, or a folder of them."""

    def __init__(self, path: Any):
        self._parquet = import_optional("pyarrow.parquet", extra="parquet")
        self._arrow = import_optional("pyarrow", extra="parquet")
        self._files = _list_files(path)
        self._schemas, self._metadata = [], []
        for file in self._files:
            try:
                with self._parquet.ParquetFile(file) as opened:
                    self._schemas.append(opened.schema_arrow)
                    self._metadata.append(opened.metadata)
            except self._arrow.ArrowInvalid as error:
                raise ValueError(f"path: {file} is no Parquet file: {error}") from error
        self.n_rows: int = sum(metadata.num_rows for metadata in self._metadata)
        self.names: list[str] = self._schemas[0].names
        if self.n_rows == 0:
            raise ValueError(f"path={path!r} has no rows.")
        self._sample_dtypes: dict[str, np.dtype[Any]] = {}
        self.index_names = {x for schema in self._schemas for x in index_names(schema)}

    def check_has(self, name: Any, argument: str) -> None:
        """Raise ValueError unless each file has the column once, with single values."""
        if not isinstance(name, str):
            raise ValueError(f"{argument}: {name!r} is not the name of a column.")
        for file, schema in zip(self._files, self._schemas, strict=True):
            count = len(schema.get_all_field_indices(name))
            if count != 1:
                raise ValueError(
                    f"{argument}: {file} has {count or 'no'} column(s) named {name!r}; "
                    f"its columns are {list_columns(schema.names)}."
                )
            arrow_type = schema.field(name).type
            if self._arrow.types.is_nested(arrow_type):
                raise ValueError(
                    f"{argument}: column {name!r} of {file} holds {arrow_type}; name a "
                    "column with a single value a row."
                )

    def check_same_names(self) -> None:
        """Raise ValueError unless all files have the columns of the first file."""
        for file, schema in zip(self._files, self._schemas, strict=True):
            different = (set(schema.names) ^ set(self.names)) - self.index_names
            if different:
                name = min(different)
                where = file if name in schema.names else self._files[0]
                raise ValueError(
                    f"path: of {self._files[0]} and {file}, only {where} has the "
                    f"column {name!r}. Name the columns that both have in features."
                )
        for name in self.names:
            if self.names.count(name) > 1:
                self.check_has(name, "path")

    def check_numeric(self, names: list[str], argument: str = "features") -> None:
        """Raise ValueError unless the columns are numeric in all files."""
        types = self._arrow.types
        kinds = [types.is_integer, types.is_floating, types.is_boolean, types.is_null]
        kinds.append(types.is_decimal)
        for file, schema in zip(self._files, self._schemas, strict=True):
            categories = categorical_names(schema)
            for name in names:
                arrow_type = schema.field(name).type
                is_number = any(is_kind(arrow_type) for is_kind in kinds)
                if not is_number or name in categories:
                    what = f"{'categories of ' if is_number else ''}{arrow_type}"
                    raise ValueError(
                        f"{argument}: column {name!r} of {file} is not numeric: it "
                        f"holds {what}. Encode it as numbers, or leave it out of "
                        f"{argument}."
                    )

    def sample_dtype(self, name: str) -> np.dtype[Any]:
        """Return the dtype that a column without missing values has once it is read."""
        if name not in self._sample_dtypes:
            types = {str(schema.field(name).type) for schema in self._schemas}
            only = types.pop() if len(types) == 1 else ""
            self._sample_dtypes[name] = _SMALL.get(only, _FLOAT)
        return self._sample_dtypes[name]

    def iter_batches(
        self, names: list[str], wanted: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield (first_row, batch) for each batch of the columns `names`: the number of
        the batch's first row in all files, and the batch. If `wanted`, a mask of rows,
        is given, read only row groups that have wanted rows.
        """
        n_rows = max(_BATCH_ROWS, _BATCH_VALUES // len(names))
        first = 0
        for file, metadata in zip(self._files, self._metadata, strict=True):
            runs = _runs_of_row_groups(metadata, first, wanted)
            first += metadata.num_rows
            if not runs:
                continue
            with self._parquet.ParquetFile(
                file, metadata=metadata, buffer_size=_BUFFER_SIZE
            ) as opened:
                for run_first, row_groups in runs:
                    groups = (metadata.row_group(i) for i in row_groups)
                    n_left = sum(group.num_rows for group in groups)
                    for batch in opened.iter_batches(
                        n_rows, row_groups=row_groups, columns=names
                    ):
                        yield run_first, batch
                        run_first += batch.num_rows
                        n_left -= batch.num_rows
                    _check_whole(n_left, file)

    def values(self, batch: Any, name: str) -> NDArray[Any]:
        """Return a batch's column in the dtype of `sample_dtype` if no value is
        missing, else as float64.
        """
        column = batch.column(batch.schema.get_field_index(name))
        if column.null_count == 0 and self.sample_dtype(name) != _FLOAT:
            return column.to_numpy(zero_copy_only=False)
        if self._arrow.types.is_boolean(column.type):
            column = column.cast(self._arrow.int8())
        elif self._arrow.types.is_decimal(column.type):
            # Arrow's numbers of decimals are not the nearest ones; those of text are.
            column = column.cast(self._arrow.string()).cast(self._arrow.float64())
        values = column.to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(values, dtype=np.float64)

    def read_known(
        self, name: str, rows: NDArray[np.intp]
    ) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Return (values, positions): the values of a column in those `rows` that have
        one, in NumPy's dtype, and the positions of these rows in `rows`.
        """
        column = self._read(name)
        if self._arrow.types.is_null(column.type):
            column = column.cast(self._arrow.float64())
        if self._arrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if rows.size < len(column):
            column = column.take(self._arrow.array(rows))
        is_known = column.is_null(nan_is_null=True).to_numpy() == 0
        if not is_known.all():  # with nulls, integers would be floats
            column = column.filter(self._arrow.array(is_known))
        return np.array(column.to_numpy()), np.flatnonzero(is_known)

    def read_numbers(self, name: str, argument: str) -> NDArray[np.float64]:
        """Return a numeric column; `argument` is for error messages."""
        self.check_numeric([name], argument)
        parts = [self.values(batch, name) for _, batch in self.iter_batches([name])]
        return np.concatenate(parts).astype(np.float64)

    def read_distinct(self, name: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Return a column's distinct values, and for each row the index of its value
        among the distinct values, or -1 for a missing value.
        """
        metadata = self._schemas[0].field(name).metadata or {}
        if metadata.get(b"ARROW:extension:name") == b"pandas.period":
            pd = import_optional("pandas", extra="cli")
            # pandas registers its type for Arrow with the first use of it.
            self._arrow.array(pd.period_range("2000", periods=0, freq="M"))
        column = self._read(name)
        extension = getattr(column.type, "storage_type", None) and column.type
        if extension:  # of periods
            column = column.cast(extension.storage_type)
        if not self._arrow.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        categories = categories_of(column)
        column = column.unify_dictionaries().combine_chunks()
        # Those of polars have no sign.
        index = column.indices.cast("int64").fill_null(-1).to_numpy().astype(np.intp)
        distinct = column.dictionary.to_numpy(zero_copy_only=False)
        order = None if categories is None else find(distinct, categories)
        if extension:
            values = extension.wrap_array(column.dictionary)
            distinct = np.asarray(values.to_pandas())
        elif getattr(column.type.value_type, "tz", None):
            distinct = np.array(column.dictionary.to_pylist(), dtype=object)
        # A dictionary may hold unused values.
        used, index_of_used = np.unique(index, return_inverse=True)
        is_null = used[:1] < 0
        if order is not None:
            distinct = in_order_of(distinct[order], distinct)
        return distinct[used[is_null.sum() :]], index_of_used - is_null.sum()

    def release(self) -> None:
        """Release Arrow's cached memory."""
        self._arrow.default_memory_pool().release_unused()

    def _read(self, name: str) -> Any:
        tables = []
        for file, metadata in zip(self._files, self._metadata, strict=True):
            with self._parquet.ParquetFile(file) as opened:
                tables.append(opened.read(columns=[name]).select([name]))
            _check_whole(metadata.num_rows - tables[-1].num_rows, file)
        try:
            table = self._arrow.concat_tables(tables, promote_options="permissive")
        except (self._arrow.ArrowInvalid, self._arrow.ArrowTypeError) as error:
            raise ValueError(
                f"path: the files differ in the type of column {name!r}: {error}"
            ) from error
        return table.column(0)


def index_names(schema: Any) -> list[str]:
    """Return the names of columns that were the index of a pandas frame."""
    known = (schema.pandas_metadata or {}).get("index_columns", [])
    # Those without a name are generated; other programs keep them, but no metadata.
    return [x for x in schema.names if x in known or x.startswith("__index_level_")]


def categorical_names(schema: Any) -> set[str]:
    """Return the names of columns that pandas or Arrow's types mark as categories."""
    of_pandas = (schema.pandas_metadata or {}).get("columns", [])
    names = {x["name"] for x in of_pandas if x["pandas_type"] == "categorical"}
    return names | {x.name for x in schema if str(x.type).startswith("dictionary")}


def _runs_of_row_groups(
    metadata: Any, first: int, wanted: NDArray[np.bool_] | None
) -> list[tuple[int, list[int]]]:
    """Return (first_row, row_groups) for each run of row groups with `wanted` rows.
    Rows are numbered from `first`, the number of the file's first row.
    """
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    starts = list(accumulate(sizes, initial=first))

    def is_wanted(i: int) -> bool:
        return wanted is None or bool(wanted[starts[i] : starts[i + 1]].any())

    runs = [(chosen, [*run]) for chosen, run in groupby(range(len(sizes)), is_wanted)]
    return [(starts[run[0]], run) for chosen, run in runs if chosen]


def _check_whole(n_rows_missing: int, file: str) -> None:
    if n_rows_missing:
        raise ValueError(f"path: {file} is damaged: a column lacks rows.")


def _list_files(path: Any) -> list[str]:
    if not isinstance(path, str | PathLike):
        files = [file for part in path for file in _list_files(part)]
        if not files:
            raise ValueError("path is an empty list; pass a Parquet file at least.")
        return files
    path = Path(fspath(path))
    if not path.is_dir():
        if not path.is_file():
            raise ValueError(f"path: there is no file or folder {str(path)!r}.")
        return [str(path)]
    found = sorted(str(file) for file in path.glob("*.parquet"))
    if not found:
        raise ValueError(f"path: the folder {str(path)!r} has no *.parquet files.")
    return found
