"""Which of two ways to the same result is the cheaper one."""


cpdef bint sums_occupied_bins(int n_bins, double rows_per_era) noexcept nogil:
    """Whether to look, era by era, at the bins that have rows rather than at all.

    A bin costs some three times as much if it has to be found.
    """
    return n_bins > 16 and 3.0 * rows_per_era < n_bins


cpdef bint looks_at_all_bins(int n_bins, double rows_per_era) noexcept nogil:
    """Whether a first look at all bins costs less than finding those that have rows."""
    return 15.0 * rows_per_era > n_bins


cpdef bint stores_histograms(
    double n_rows_saved, double n_columns, double n_sums, double n_eras
) noexcept:
    """Whether to keep a node's histograms, so that one child's is a difference.

    Kept, they spare the larger child its rows, in each of `n_columns`. But `n_sums` (of
    all features) x `n_eras` cells are written, read, and subtracted, out of a memory
    that is larger than the caches.
    """
    return n_rows_saved * n_columns > 6.0 * n_sums * n_eras


cpdef bint compares_directions_first(int n_eras) noexcept nogil:
    """Whether to ask for gains of eras only where splits tie by their directions.

    Few eras have few numbers of directions, and many ties. With ties, rows are summed
    up twice.
    """
    return n_eras >= 32


cpdef bint estimates_gains_first(int n_bins, double rows_per_era) noexcept nogil:
    """Whether to estimate the gains of `n_bins` candidates of all features first.

    What that saves is divisions, of all of them; what it costs is the rows of the few
    features whose gains may be the largest.
    """
    return n_bins > 2.0 * rows_per_era
