"""Loop over columns of small integers, to count values and to map values to bins.

A column is given by its address and stride, so one loop serves arrays of any layout and
data frames of separate columns. Values are read as unsigned integers of 8 or 16 bits,
called *codes*. A table, made for the dtype of a column, has an entry for each code.
"""

from cython.parallel import prange
from libc.stdint cimport uint16_t, uint32_t, uint8_t

from .._arrays cimport intp_t

# 64 adjacent columns of 8 bits share a cache line; with so few rows, the cells that a
# tile reads and writes stay in the L1 cache.
cdef enum:
    TILE_ROWS = 128
    TILE_COLUMNS = 64
    # For columns with adjacent rows: enough for a task, and few enough to split a
    # column among threads.
    RUN_ROWS = 65536


def count_codes(
    const intp_t[::1] addresses,
    const intp_t[::1] strides,  # bytes
    const int itemsize,
    const intp_t[::1] rows,  # None for the first n_rows
    const intp_t n_rows,
    uint32_t[:, ::1] counts,  # OUT, (n_columns, 2 ** (8 * itemsize)); zero at first
    const int n_threads,
):
    """Write into `counts` how often each code occurs in `rows` of each column. A row
    that `rows` repeats counts each time.

    The caller must keep the memory at the addresses alive and the rows within bounds.
    """
    cdef:
        intp_t n_columns = addresses.shape[0]
        const intp_t* row_index = NULL
        intp_t width, n_tiles, tile
    if n_columns == 0 or n_rows == 0:
        return
    if rows is not None:
        row_index = &rows[0]
    width = 1 if _are_runs(strides, itemsize) else TILE_COLUMNS // itemsize
    n_tiles = (n_columns + width - 1) // width
    for tile in prange(n_tiles, schedule="static", nogil=True, num_threads=n_threads):
        _count_tile(
            &addresses[0], &strides[0], itemsize, row_index, n_rows,
            tile * width, min(n_columns, (tile + 1) * width), counts,
        )


cdef void _count_tile(
    const intp_t* addresses, const intp_t* strides, const int itemsize,
    const intp_t* rows, const intp_t n_rows, const intp_t first_column,
    const intp_t end_column, uint32_t[:, ::1] counts,
) noexcept nogil:
    cdef:
        intp_t i, row, j
        const char* value
    for i in range(n_rows):
        row = i if rows == NULL else rows[i]
        for j in range(first_column, end_column):
            value = <const char*> addresses[j] + row * strides[j]
            if itemsize == 1:
                counts[j, (<const uint8_t*> value)[0]] += 1
            else:
                counts[j, (<const uint16_t*> value)[0]] += 1


def map_codes(
    const intp_t[::1] addresses,
    const intp_t[::1] strides,  # bytes
    const int itemsize,
    const intp_t[::1] rows,  # None for the first n_rows
    const intp_t[::1] columns_out,  # column in `binned` of each
    const uint8_t[:, ::1] tables,  # (n_columns, 2 ** (8 * itemsize))
    uint8_t[:, :] binned,  # OUT, (n_rows, n_features)
    const int n_threads,
):
    """Write the bin of each row of each column into `binned`: the entry of the column's
    table for the row's code. As in `count_codes`, the caller must keep the memory alive
    and the rows and columns within bounds.
    """
    cdef:
        intp_t n_columns = addresses.shape[0]
        intp_t n_rows = binned.shape[0]
        const intp_t* row_index = NULL
        intp_t width, height, n_tiles, n_tiles_down, tile
    if n_columns == 0 or n_rows == 0:
        return
    if rows is not None:
        row_index = &rows[0]
    if _are_runs(strides, itemsize) and binned.strides[0] == 1:
        width, height = 1, RUN_ROWS
    else:
        width, height = TILE_COLUMNS, TILE_ROWS
    n_tiles_down = (n_rows + height - 1) // height
    n_tiles = n_tiles_down * ((n_columns + width - 1) // width)
    for tile in prange(n_tiles, schedule="static", nogil=True, num_threads=n_threads):
        _map_tile(
            &addresses[0], &strides[0], itemsize, row_index,
            (tile % n_tiles_down) * height,
            min(n_rows, (tile % n_tiles_down + 1) * height),
            (tile // n_tiles_down) * width,
            min(n_columns, (tile // n_tiles_down + 1) * width),
            &columns_out[0], tables, &binned[0, 0],
            binned.strides[0], binned.strides[1],
        )


cdef void _map_tile(
    const intp_t* addresses, const intp_t* strides, const int itemsize,
    const intp_t* rows, const intp_t first_row, const intp_t end_row,
    const intp_t first_column, const intp_t end_column, const intp_t* columns_out,
    const uint8_t[:, ::1] tables, uint8_t* binned, const intp_t row_stride_out,
    const intp_t column_stride_out,
) noexcept nogil:
    cdef:
        intp_t i, row, j, stride
        uint16_t code
        const char* column
        const uint8_t* table
        uint8_t* out
    for j in range(first_column, end_column):
        column = <const char*> addresses[j]
        stride = strides[j]
        table = &tables[j, 0]
        out = binned + columns_out[j] * column_stride_out
        for i in range(first_row, end_row):
            row = i if rows == NULL else rows[i]
            if itemsize == 1:
                code = (<const uint8_t*> (column + row * stride))[0]
            else:
                code = (<const uint16_t*> (column + row * stride))[0]
            out[i * row_stride_out] = table[code]


cdef bint _are_runs(const intp_t[::1] strides, const int itemsize) noexcept:
    """Return whether the rows of each column are adjacent in memory."""
    cdef intp_t j
    for j in range(strides.shape[0]):
        if strides[j] != itemsize:
            return False
    return True
