# Which of two ways to the same result is the cheaper one.
#
# The constants were measured on one core, in units of a row added to a histogram of one
# column (about half a nanosecond). They need not be exact: near the borders both ways
# cost about the same.

cpdef bint sums_occupied_bins(int n_bins, double rows_per_era) noexcept nogil
cpdef bint looks_at_all_bins(int n_bins, double rows_per_era) noexcept nogil
cpdef bint stores_histograms(
    double n_rows_saved, double n_columns, double n_sums, double n_eras
) noexcept
cpdef bint compares_directions_first(int n_eras) noexcept nogil
cpdef bint estimates_gains_first(int n_bins, double rows_per_era) noexcept nogil


cdef inline bint sums_cells_first(
    Py_ssize_t n_rows, int n_cells, int n_lanes
) noexcept nogil:
    """Whether to sum up rows by the cells of a bundle, and then these by masks.

    With a mask a row costs as many additions as vectors hold its lanes. Eight of them
    are one vector, and no dearer than to find its cell.
    """
    return n_lanes > 8 and n_rows > 3 * n_cells
