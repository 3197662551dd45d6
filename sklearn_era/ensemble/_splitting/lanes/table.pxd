# Sums by bin of some eras, one in each lane of a vector.

from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport hist_struct

from ..histograms.sums cimport bin_sums
from ..._criteria.split_sums cimport LANES, lane_sums


cdef struct era_table:
    # Of a bundle of features; arrays have shape (n_bins, LANES).
    double[2048] gradients
    double[2048] hessians
    double[2048] counts
    long long[2048] words     # sums of words, not taken apart yet; else zeros
    # Sums over the eras that were in a lane.
    double[2048] pooled_gradients
    double[2048] pooled_hessians
    double[2048] pooled_counts
    # Sums over the bins to the right of a split.
    double[2048] gradients_right
    double[2048] hessians_right
    double[2048] counts_right
    int[8] eras
    int n_eras                # in lanes
    double[8] is_era          # 1 or 0, of each lane
    double[8] gains           # of a split, in each lane
    bint counts_rows          # whether hessians are counts, and all sums exact
    # For criteria that keep lane sums, what the lanes have said of each
    # split of the bundle: at most two for a bin.
    lane_sums[512] lanes


cdef inline void set_lane(
    era_table * table, int lane, const bin_sums * sums, double unit, int n_bins
) noexcept nogil:
    """Put the sums of an era into a lane."""
    cdef int i
    if sums.integers != NULL:
        for i in range(n_bins):
            table.gradients[i * LANES + lane] = unit * sums.integers[i]
            table.hessians[i * LANES + lane] = sums.counts[i]
            table.counts[i * LANES + lane] = sums.counts[i]
    else:
        for i in range(n_bins):
            table.gradients[i * LANES + lane] = sums.gradients[i]
            table.hessians[i * LANES + lane] = sums.hessians[i]
            table.counts[i * LANES + lane] = sums.counts[i]


cdef inline void empty_lanes(
    era_table * table, int first_lane, int n_bins
) noexcept nogil:
    """Leave lanes without an era without rows."""
    cdef int i, lane
    for i in range(n_bins):
        for lane in range(first_lane, LANES):
            table.gradients[i * LANES + lane] = 0.0
            table.hessians[i * LANES + lane] = 0.0
            table.counts[i * LANES + lane] = 0.0


cdef inline void clear_lanes(
    era_table * table, int n_bins, int n_splits
) noexcept nogil:
    """Begin the sums over eras."""
    memset(table.pooled_gradients, 0, n_bins * LANES * sizeof(double))
    memset(table.pooled_hessians, 0, n_bins * LANES * sizeof(double))
    memset(table.pooled_counts, 0, n_bins * LANES * sizeof(double))
    memset(table.lanes, 0, n_splits * sizeof(lane_sums))


cdef inline void pool_lanes(era_table * table, int n_bins) noexcept nogil:
    """Add the eras of a table to the sums over eras."""
    cdef int i
    for i in range(n_bins * LANES):
        table.pooled_gradients[i] += table.gradients[i]
        table.pooled_counts[i] += table.counts[i]
    if not table.counts_rows:
        for i in range(n_bins * LANES):
            table.pooled_hessians[i] += table.hessians[i]


cdef inline void add_pooled_lanes(
    const era_table * table, int bin_idx, hist_struct * pooled
) noexcept nogil:
    """Add the sums over eras of a bin to those of a node."""
    cdef:
        double gradients = 0.0
        double hessians = 0.0
        double count = 0.0
        int i
    for i in range(bin_idx * LANES, (bin_idx + 1) * LANES):
        gradients += table.pooled_gradients[i]
        hessians += table.pooled_hessians[i]
        count += table.pooled_counts[i]
    pooled.sum_gradients += gradients
    pooled.sum_hessians += count if table.counts_rows else hessians
    pooled.count += <unsigned int> count
