"""Bin small integers by scikit-learn's thresholds, but without its copy to float64. The
thresholds come from counts of the few distinct values, and the bins from a table.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

from .integer_bins import count_codes, map_codes
from .integer_columns import Bytes, Floats, IntegerColumns, Rows, values_of_codes
from .thresholds import draw_rows, find_thresholds, map_in_threads, set_thresholds


def fit_bin_mapper(
    mapper: _BinMapper, columns: IntegerColumns, sample_weight: Floats | None
) -> None:
    """Fit a bin mapper to small integers, with the thresholds of scikit-learn."""
    rows, sample_weight = draw_rows(mapper, len(columns), sample_weight)
    if rows is not None:
        rows.sort()  # for speed; counts do not depend on the order
    elif sample_weight is not None and not sample_weight.all():
        rows = np.flatnonzero(sample_weight)
    n_rows = len(columns) if rows is None else rows.size
    if columns.rows is not None:
        rows = columns.rows if rows is None else columns.rows[rows]

    def find(feature: int, counts: NDArray[np.uint32]) -> Floats | None:
        codes = np.flatnonzero(counts)
        values = values_of_codes(columns.dtypes[feature])[codes]
        max_bins = mapper.n_bins - 1
        if values.size > max_bins:
            if sample_weight is not None:
                # The last digit of a sum of weights depends on their order.
                values = columns.column(feature).astype(np.float64)
                return find_thresholds(values, max_bins, sample_weight)
            values = np.repeat(values, counts[codes])
        return find_thresholds(values, max_bins, None)

    thresholds: list[Any] = [None] * columns.shape[1]
    for batch in columns.batches():
        n_codes = 2 ** (8 * batch.arrays[0].itemsize)
        counts = np.zeros((batch.features.size, n_codes), dtype=np.uint32)
        count_codes(*batch.memory, rows, n_rows, counts, mapper.n_threads)
        found = map_in_threads(
            find, [batch.features, counts], mapper.n_threads, counts.size
        )
        for feature, values in zip(batch.features, found, strict=True):
            thresholds[feature] = values
    set_thresholds(mapper, thresholds)


def bin_columns(mapper: _BinMapper, columns: IntegerColumns, order: str = "F") -> Bytes:
    """Return the bins of small integers without categories, as ``transform`` does."""
    binned = allocate_binned(columns.shape, order)
    for batch in columns.batches():
        tables = make_tables(
            [mapper.bin_thresholds_[feature] for feature in batch.features],
            [columns.dtypes[feature] for feature in batch.features],
        )
        places = columns.rows, batch.features
        map_codes(*batch.memory, *places, tables, binned, mapper.n_threads)
    return binned


def make_tables(thresholds: list[Floats | None], dtypes: list[np.dtype[Any]]) -> Bytes:
    """Return an array that has a row for each column: the bin of each code of the
    column's dtype. All dtypes must have the same size. A value equal to a threshold is
    in the bin below the threshold, as in the bin mapper's ``transform``.
    """
    tables = np.empty((len(dtypes), 2 ** (8 * dtypes[0].itemsize)), dtype=np.uint8)
    for table, column, dtype in zip(tables, thresholds, dtypes, strict=True):
        edges = np.empty(0) if column is None else column
        table[:] = np.searchsorted(edges, values_of_codes(dtype))
    return tables


def matrix_of_own_bins(mapper: _BinMapper, columns: IntegerColumns) -> Bytes | None:
    """Return X itself as the binned matrix, read-only, if each column has exactly the
    values 0, 1, ..., k - 1, and X is Fortran-ordered and of bytes; else return None.
    """
    edges = mapper.bin_thresholds_
    if not all(np.array_equal(x, np.arange(x.size) + 0.5) for x in edges):
        return None
    matrix = columns.as_one_matrix()
    # As unsigned numbers, negative values are large.
    if matrix is None or (matrix.max(axis=0) >= mapper.n_bins_non_missing_).any():
        return None
    return matrix


def take_rows(
    X_binned: Bytes, rows: Rows, columns: Rows, n_threads: int, order: str = "F"
) -> Bytes:
    """Return a copy of some rows and columns of a binned matrix."""
    taken = allocate_binned((rows.size, columns.size), order)
    stride, column_stride = X_binned.strides
    addresses = X_binned.__array_interface__["data"][0] + column_stride * columns
    strides = np.full(columns.size, stride, dtype=np.intp)
    places = np.arange(columns.size, dtype=np.intp)
    tables = np.tile(np.arange(256, dtype=np.uint8), (columns.size, 1))
    map_codes(addresses, strides, 1, rows, places, tables, taken, n_threads)
    return taken


def find_missing_values(X_binned: Bytes, mapper: _BinMapper) -> Bytes:
    """Return whether each column has missing values; do not copy the whole matrix."""
    missing = mapper.missing_values_bin_idx_
    has_missing = [(column == missing).any() for column in X_binned.T]
    return np.array(has_missing, dtype=np.uint8)


def allocate_binned(shape: tuple[int, int], order: Any = "F") -> Bytes:
    """Return an uninitialised matrix for bins, or raise a MemoryError with its size."""
    try:
        return np.empty(shape, dtype=np.uint8, order=order)
    except MemoryError as error:
        raise MemoryError(
            f"cannot allocate {shape[0] * shape[1] / 2**30:,.1f} GiB for a binned "
            f"matrix of {shape[0]:,} rows x {shape[1]:,} features"
        ) from error
