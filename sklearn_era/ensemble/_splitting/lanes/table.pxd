# Histograms of some eras, one in each lane of a vector, and what is made of them.

from libc.stdint cimport uintptr_t
from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport hist_struct

from ..histograms.sums cimport bin_gradients, bin_hessians, bin_sums
from ..rows cimport MAX_BINS
from ..fixed_points cimport summed_values
from ..._criteria.era_statistics cimport era_sums
from ..._criteria.split_sums cimport LANES, lane_sums


cdef enum:
    CACHE_LINE = 64
    MAX_CELLS = MAX_BINS * LANES


cdef inline void * at_cache_line(void * memory) noexcept nogil:
    """The next place where a vector lies in one cache line."""
    return <void *> (
        (<uintptr_t> memory + CACHE_LINE - 1) & ~<uintptr_t> (CACHE_LINE - 1)
    )


cdef struct lane_histograms:
    # Of a bundle of features; arrays have shape (n_bins, LANES).
    double[MAX_CELLS] gradients
    double[MAX_CELLS] hessians
    double[MAX_CELLS] counts


cdef struct era_table:
    lane_histograms eras      # of the eras in the lanes
    lane_histograms pooled    # sums over all eras that were in a lane
    lane_histograms right     # sums over the bins to the right of a split
    long long[MAX_CELLS] words  # sums of words, before they are unpacked; else zeros
    long long[MAX_CELLS] plain  # the same of plain words
    double[LANES] is_era      # 1 or 0, of each lane
    era_sums[MAX_BINS] pooled_right  # over all eras; where `sees_all_eras`
    double[LANES] gains       # of a split, in each lane
    # For criteria that keep lane sums, what the lanes have said of each split of the
    # bundle: at most two for a bin.
    lane_sums[2 * MAX_BINS] splits
    int[LANES] codes          # of the eras in the lanes
    int n_eras                # in lanes
    bint counts_rows          # whether hessians are counts, and sums of integers
    int[6] padding            # to a cache line


cdef struct first_look:
    # What a first look at the eras in the lanes takes; zeros before and after a chunk.
    long long[MAX_CELLS] words    # sums of words by bin, of one era a lane
    long long[MAX_CELLS] pooled   # over all eras that were in a lane
    double[2 * MAX_CELLS] said     # of each split: directions, or estimates of gains
    int[2 * MAX_BINS + 16] covered  # eras: the difference from the split before
    long long[LANES] totals       # of each era, over all bins
    double largest_word           # no gradient is larger, in a word
    int count_bits
    int n_pooled                  # rows of a lane in `pooled`, at most
    int[12] padding               # to a cache line


cdef inline void set_lane(
    era_table * table,
    int lane,
    const bin_sums * sums,
    const summed_values * values,
    int n_bins,
) noexcept nogil:
    """Put the sums of an era into a lane."""
    cdef int i
    for i in range(n_bins):
        table.eras.gradients[i * LANES + lane] = bin_gradients(sums, values, i)
        table.eras.hessians[i * LANES + lane] = bin_hessians(sums, values, i)
        table.eras.counts[i * LANES + lane] = sums.counts[i]


cdef inline void empty_lanes(
    era_table * table, int first_lane, int n_bins
) noexcept nogil:
    """Leave lanes without an era without rows."""
    cdef int i, lane
    for i in range(n_bins):
        for lane in range(first_lane, LANES):
            table.eras.gradients[i * LANES + lane] = 0.0
            table.eras.hessians[i * LANES + lane] = 0.0
            table.eras.counts[i * LANES + lane] = 0.0


cdef inline void clear_table(
    era_table * table, int n_bins, int n_splits
) noexcept nogil:
    """Begin the sums over eras."""
    memset(table.pooled.gradients, 0, n_bins * LANES * sizeof(double))
    memset(table.pooled.hessians, 0, n_bins * LANES * sizeof(double))
    memset(table.pooled.counts, 0, n_bins * LANES * sizeof(double))
    memset(table.splits, 0, n_splits * sizeof(lane_sums))


cdef inline void pool_eras(era_table * table, int n_bins) noexcept nogil:
    """Add the eras in the lanes to the sums over eras."""
    cdef int i
    for i in range(n_bins * LANES):
        table.pooled.gradients[i] += table.eras.gradients[i]
        table.pooled.counts[i] += table.eras.counts[i]
    if not table.counts_rows:
        for i in range(n_bins * LANES):
            table.pooled.hessians[i] += table.eras.hessians[i]


cdef inline void add_pooled_bin(
    const era_table * table, int bin_idx, hist_struct * pooled
) noexcept nogil:
    """Add the sums over eras of a bin to those of a node."""
    cdef:
        double gradients = 0.0
        double hessians = 0.0
        double count = 0.0
        int i
    for i in range(bin_idx * LANES, (bin_idx + 1) * LANES):
        gradients += table.pooled.gradients[i]
        hessians += table.pooled.hessians[i]
        count += table.pooled.counts[i]
    pooled.sum_gradients += gradients
    pooled.sum_hessians += count if table.counts_rows else hessians
    pooled.count += <unsigned int> count


cdef inline era_sums sums_of_bin(const hist_struct * pooled, int bin) noexcept nogil:
    cdef era_sums sums
    sums.gradients = pooled[bin].sum_gradients
    sums.hessians = pooled[bin].sum_hessians
    sums.count = pooled[bin].count
    return sums
