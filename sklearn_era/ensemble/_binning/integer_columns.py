"""Read matrices and data frames of small integers by columns, without a copy."""

import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from mmap import mmap
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from ..._scikit_learn import is_pandas_df, is_polars_df
from ..._tables.columns import SMALL_DTYPES
from ..._typing import Table

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
# Values, or a function that loads them, and their dtype.
Column = tuple[NDArray[Any] | Callable[[], NDArray[Any]], np.dtype[Any]]

# By the names of types in pyarrow, and in polars without capitals.
_BY_NAME = {dtype.name: dtype for dtype in SMALL_DTYPES} | {"boolean": np.dtype(bool)}

# Columns of a batch: at least those that share cache lines. Tables and counts of a
# batch take 64 KiB (8 bits) or 20 MiB (16 bits).
_BATCH = 64
# Columns that must be copied to be read: fewer at a time.
_BATCH_OF_COPIES = 4


class ColumnBatch(NamedTuple):
    """Columns with values of equal size in bytes, for the loops of `integer_bins`."""

    features: Rows  # column numbers in X
    arrays: list[NDArray[Any]]  # (n_rows,) each; keep the addresses valid
    memory: tuple[Any, Any, int]  # addresses and strides of `arrays`, bytes of a value


class UnbinnedRows:
    """Stands in for X in ``fit`` until rows are binned; selects rows without a copy."""

    ndim = 2
    rows: Rows | None = None  # taken so far; None for all

    def __init__(self, n_rows: int, n_features: int):
        self._n_rows = n_rows
        self._n_features = n_features

    @property
    def shape(self) -> tuple[int, int]:
        n_rows = self._n_rows if self.rows is None else self.rows.size
        return n_rows, self._n_features

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: object) -> Self:
        """Select rows by their indices, for ``X[indices]`` and ``X[indices, ...]``."""
        taken = np.asarray(key[0] if isinstance(key, tuple) else key)
        rows = np.arange(self._n_rows) if self.rows is None else self.rows
        some = copy.copy(self)
        some.rows = rows[taken].astype(np.intp)
        return some

    def forget(self) -> None:
        """Release the data after binning, as ``fit`` keeps the object until it ends."""
        self.rows = None


class IntegerColumns(UnbinnedRows):
    """Stands in for X whose columns hold small integers. Reads columns in place where
    possible, and copies others in batches.
    """

    def __init__(self, columns: Sequence[Column], n_rows: int):
        super().__init__(n_rows, len(columns))
        self._columns = [values for values, _ in columns]
        self.dtypes = [dtype for _, dtype in columns]

    @property
    def nbytes(self) -> int:
        return self.shape[0] * sum(dtype.itemsize for dtype in self.dtypes)

    def forget(self) -> None:
        super().forget()
        self._columns = []

    def column(self, feature: int) -> NDArray[Any]:
        """Return the values of a column, copied only if some rows are selected."""
        column = self._load(feature)
        return column if self.rows is None else column[self.rows]

    def batches(self) -> Iterator[ColumnBatch]:
        """Yield all columns in batches. In a batch, all values have the same size."""
        kinds: dict[tuple[bool, int], list[int]] = {}
        for feature, column in enumerate(self._columns):
            kind = (callable(column), self.dtypes[feature].itemsize)
            kinds.setdefault(kind, []).append(feature)
        for (is_copy, itemsize), features in kinds.items():
            size = _BATCH_OF_COPIES if is_copy else _BATCH
            for start in range(0, len(features), size):
                batch = features[start : start + size]
                arrays = [self._load(feature) for feature in batch]
                memory = *addresses_of(arrays), itemsize
                yield ColumnBatch(np.array(batch, dtype=np.intp), arrays, memory)

    def as_one_matrix(self) -> Bytes | None:
        """Return all columns as a read-only Fortran-ordered matrix of bytes. Return
        None for a memory map, which other processes may change, or if a copy is needed.
        """
        n_rows = self._n_rows
        if self.rows is not None or any(dtype.itemsize != 1 for dtype in self.dtypes):
            return None
        arrays = [column for column in self._columns if not callable(column)]
        if len(arrays) < len(self._columns):
            return None
        owner = _owner(arrays[0])
        if isinstance(owner, mmap):
            return None
        first = arrays[0].__array_interface__["data"][0]
        for feature, array in enumerate(arrays):
            if (
                array.strides[0] != 1
                or array.__array_interface__["data"][0] != first + feature * n_rows
                # Memory adjacent by chance would not keep its neighbours alive.
                or _owner(array) is not owner
            ):
                return None
        return np.lib.stride_tricks.as_strided(
            arrays[0].view(np.uint8), self.shape, (1, n_rows), writeable=False
        )

    def _load(self, feature: int) -> NDArray[Any]:
        column = self._columns[feature]
        return column() if callable(column) else column


def addresses_of(arrays: list[NDArray[Any]]) -> tuple[Rows, Rows]:
    """Return two arrays: the addresses of 1-d arrays, and their strides in bytes."""
    both = [(x.__array_interface__["data"][0], x.strides[0]) for x in arrays]
    addresses, strides = np.array(both, dtype=np.intp).reshape(-1, 2).T.copy()
    return addresses, strides


def values_of_codes(dtype: np.dtype[Any]) -> Floats:
    """Return the number that each bit pattern of a dtype stands for, as float64."""
    if dtype == np.bool_:
        return (np.arange(256) != 0).astype(np.float64)
    codes = np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}")
    return codes.view(dtype).astype(np.float64)


def as_integer_columns(X: Any) -> IntegerColumns | None:
    """Return X as `IntegerColumns` if all its values are small integers, else None."""
    if get_config()["array_api_dispatch"]:
        return None
    if type(X) in (np.ndarray, np.memmap):
        columns = _columns_of_array(X)
    elif is_pandas_df(X):
        columns = _columns_of_pandas(X)
    elif is_polars_df(X):
        columns = _columns_of_arrow(X.get_columns(), X.dtypes)
    elif is_pyarrow_table(X):
        columns = _columns_of_arrow(X.columns, X.schema.types)
    else:
        return None
    if not columns or X.shape[0] == 0:
        return None
    return IntegerColumns(columns, X.shape[0])


def is_pyarrow_table(X: Table) -> bool:
    """Return whether `X` is a pyarrow table, without importing pyarrow."""
    pyarrow = sys.modules.get("pyarrow")
    return pyarrow is not None and isinstance(X, pyarrow.Table)


def _columns_of_array(X: NDArray[Any]) -> list[Column]:
    is_readable = X.dtype in SMALL_DTYPES and X.flags.aligned and X.ndim == 2
    return [(column, X.dtype) for column in np.asarray(X).T] if is_readable else []


def _columns_of_pandas(X: Any) -> list[Column]:
    # Nullable and Arrow-backed dtypes have the NumPy dtype of their values.
    dtypes = [getattr(dtype, "numpy_dtype", dtype) for dtype in X.dtypes]
    if not all(isinstance(x, np.dtype) and x in SMALL_DTYPES for x in dtypes):
        return []
    columns: list[Column] = []
    for feature, (given, dtype) in enumerate(zip(X.dtypes, dtypes, strict=True)):
        series = X.iloc[:, feature]
        if isinstance(given, np.dtype):
            columns.append((series.to_numpy(), dtype))
        elif series.hasnans:
            return []
        else:
            columns.append((partial(series.to_numpy, dtype=dtype), dtype))
    return columns


def _columns_of_arrow(given: list[Any], types: list[Any]) -> list[Column]:
    """Return the columns of a polars frame or pyarrow table, or [] if any of them has
    missing values, or types other than small integers and bools.
    """
    names = [str(each).lower() for each in types]
    if not {*names} <= _BY_NAME.keys():
        return []
    columns: list[Column] = []
    for column, name in zip(given, names, strict=True):
        is_polars = hasattr(column, "n_chunks")
        if column.null_count() if is_polars else column.null_count:
            return []
        n_chunks = column.n_chunks() if is_polars else column.num_chunks
        values = column.to_numpy
        if _BY_NAME[name] != np.bool_ and n_chunks == 1:  # a view
            values = values() if is_polars else column.chunk(0).to_numpy()
        columns.append((values, _BY_NAME[name]))
    return columns


def _owner(array: NDArray[Any]) -> Any:
    """Follow an array's chain of bases; return the last one, which owns the memory."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array
