from ..rows cimport MAX_BINS, EraRows, row_block
from ..fixed_points cimport summed_values
from ..bundles cimport bundle_struct
from ..tree_data cimport tree_data


cdef struct cell_sums:
    double gradients
    double hessians
    long long count


cdef struct bin_sums:
    # Sums over the rows of an era by bin of a bundle's features, one feature after the
    # other; arrays have shape (n_bins,).
    long long * integers  # of hessians if there are plain ones, else of gradients
    long long * plain     # of gradients, if hessians vary
    int * counts
    double * gradients    # where there are no integers, which then are NULL
    double * hessians


cdef inline double bin_gradients(
    const bin_sums * sums, const summed_values * values, int bin
) noexcept nogil:
    if sums.integers == NULL:
        return sums.gradients[bin]
    if sums.plain == NULL:
        return values.unit * <double> sums.integers[bin]
    return values.unit * <double> sums.plain[bin]


cdef inline double bin_hessians(
    const bin_sums * sums, const summed_values * values, int bin
) noexcept nogil:
    if sums.integers == NULL:
        return sums.hessians[bin]
    if sums.plain == NULL:
        return sums.counts[bin]
    return values.hessian_unit * <double> sums.integers[bin]


cdef struct code_sums:
    # Sums by bin, of which some at a time are not 0.
    long long[MAX_BINS] words
    long long[MAX_BINS] integers
    long long[MAX_BINS] plain
    double[MAX_BINS] gradients
    double[MAX_BINS] hessians
    int[MAX_BINS] counts


cdef struct histogram_scratch:
    # What a thread needs to sum up one era of one bundle.
    long long[MAX_BINS] words
    cell_sums[MAX_BINS] cells
    long long[MAX_BINS] integers
    long long[MAX_BINS] plain
    double[MAX_BINS] gradients
    double[MAX_BINS] hessians
    int[MAX_BINS] counts
    code_sums by_code


cdef void sum_era(
    const tree_data * tree,
    const bundle_struct * bundle,
    EraRows rows,
    const row_block * blocks,
    int n_blocks,
    histogram_scratch * scratch,
    bin_sums * sums,
) noexcept nogil

cdef void clear_bins(const bundle_struct * bundle, bin_sums * sums) noexcept nogil

cdef void add_bins(
    const bundle_struct * bundle, const bin_sums * others, bin_sums * sums
) noexcept nogil

cdef void add_block(
    const tree_data * tree,
    const bundle_struct * bundle,
    EraRows rows,
    const row_block * block,
    histogram_scratch * scratch,
    bin_sums * sums,
) noexcept nogil

cdef int sum_occupied_bins(
    const tree_data * tree,
    const bundle_struct * bundle,
    EraRows rows,
    const row_block * blocks,
    int n_blocks,
    histogram_scratch * scratch,
    unsigned char * occupied,
) noexcept nogil

cdef void add_words_to_lanes(
    const tree_data * tree,
    const bundle_struct * bundle,
    EraRows rows,
    const row_block * first,
    int stop,
    long long * words,
    long long * plain,
) noexcept nogil
