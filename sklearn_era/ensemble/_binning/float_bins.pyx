"""Bin floats by binary searches for many values at once.

Each step of a search is an addition, not a branch. A search by branches takes ten times
as long, as processors mispredict half of the branches, and values wait for each other.
"""

from cython.parallel import prange
from libc.math cimport INFINITY, isnan
from libc.stdint cimport uint8_t

import numpy as np

from .._arrays cimport intp_t

cdef enum:
    AT_ONCE = 64
    # Columns of a C-ordered matrix that share cache lines; rows whose lines fit the L1
    # cache along with the thresholds.
    TILE_COLUMNS = 8
    TILE_ROWS = 256


def search_bins(
    const double[:, :] X,
    list thresholds,                  # of each column, ascending
    const uint8_t[::1] is_categorical,
    uint8_t missing,                  # bin of missing values
    int n_threads,
    uint8_t[::1, :] binned,           # OUT, of the shape of X
):
    """Write each value's bin, the number of thresholds below the value, into `binned`.

    NaN and negative categories go to the bin `missing`.
    """
    cdef:
        intp_t n_rows = X.shape[0]
        intp_t n_columns = X.shape[1]
        intp_t n_tiles_down = (n_rows + TILE_ROWS - 1) // TILE_ROWS
        intp_t n_tiles = n_tiles_down * (
            (n_columns + TILE_COLUMNS - 1) // TILE_COLUMNS
        )
        int size = 1     # of a table, a power of two
        double[:, ::1] tables
        intp_t tile
    if n_tiles == 0:
        return
    while size <= max(map(len, thresholds)):
        size *= 2
    tables = np.full((n_columns, size), INFINITY)
    for j, column in enumerate(thresholds):
        np.asarray(tables[j])[: len(column)] = column
    for tile in prange(n_tiles, schedule="static", nogil=True, num_threads=n_threads):
        bin_tile(
            &X[0, 0], X.strides[0], X.strides[1], &tables[0, 0], size,
            &is_categorical[0], missing,
            tile % n_tiles_down * TILE_ROWS,
            min(n_rows, (tile % n_tiles_down + 1) * TILE_ROWS),
            tile // n_tiles_down * TILE_COLUMNS,
            min(n_columns, (tile // n_tiles_down + 1) * TILE_COLUMNS),
            &binned[0, 0], n_rows,
        )


cdef void bin_tile(
    const double* X, intp_t row_stride, intp_t column_stride, const double* tables,
    int size, const uint8_t* is_categorical, uint8_t missing, intp_t first_row,
    intp_t end_row, intp_t first_column, intp_t end_column, uint8_t* binned,
    intp_t n_rows,
) noexcept nogil:
    """Write the bins of a tile, which is some rows and columns of X. Strides are in
    bytes; `tables` has shape (n_columns, size).
    """
    cdef:
        double[AT_ONCE] values
        long long[AT_ONCE] places
        const char* first
        uint8_t* out
        intp_t start, j
        int n, i
    for j in range(first_column, end_column):
        start = first_row
        while start < end_row:
            n = <int> min(end_row - start, <intp_t> AT_ONCE)
            first = <const char*> X + start * row_stride + j * column_stride
            out = binned + j * n_rows + start
            for i in range(n):
                values[i] = (<const double*> (first + i * row_stride))[0]
            for i in range(n, AT_ONCE):
                values[i] = 0.0
            search(values, tables + j * size, size, places)
            for i in range(n):
                out[i] = <uint8_t> places[i]
                if isnan(values[i]) or (is_categorical[j] and values[i] < 0.0):
                    out[i] = missing
            start += AT_ONCE


cdef inline void search(
    const double* values, const double* thresholds, int size, long long* places
) noexcept nogil:
    """Write into `places` the number of thresholds below each of AT_ONCE values."""
    cdef:
        int step = size // 2
        int i
    for i in range(AT_ONCE):
        places[i] = 0
    while step > 0:
        for i in range(AT_ONCE):
            places[i] += step if values[i] > thresholds[places[i] + step - 1] else 0
        step //= 2
