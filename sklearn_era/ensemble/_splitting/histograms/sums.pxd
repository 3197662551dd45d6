from ..rows cimport MAX_BINS, EraRows, row_block
from ..bundles cimport bundle_struct
from ..tree_data cimport tree_data


cdef struct cell_sums:
    double gradients
    double hessians
    long long count


cdef struct bin_sums:
    # Sums over the rows of an era by bin of a bundle's features, one feature after the
    # other; arrays have shape (n_bins,).
    long long * integers  # of gradients, in units of the tree; NULL if they are floats
    double * gradients
    double * hessians
    int * counts


cdef struct code_sums:
    # Sums by bin, of which some at a time are not 0.
    long long[MAX_BINS] words
    long long[MAX_BINS] integers
    double[MAX_BINS] gradients
    double[MAX_BINS] hessians
    int[MAX_BINS] counts


cdef struct histogram_scratch:
    # What a thread needs to sum up one era of one bundle.
    long long[MAX_BINS] words
    cell_sums[MAX_BINS] cells
    long long[MAX_BINS] integers
    double[MAX_BINS] gradients
    double[MAX_BINS] hessians
    int[MAX_BINS] counts
    code_sums by_code


cdef void sum_era(
    const tree_data * tree,
    const bundle_struct * bundle,
    bint is_joint,
    EraRows rows,
    const row_block * blocks,
    int n_blocks,
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
) noexcept nogil
