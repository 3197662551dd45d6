from sklearn.ensemble._hist_gradient_boosting.common cimport X_BINNED_DTYPE_C

from ..rows cimport EraRows, row_block
from ..bundles cimport bundle_struct


# A bundle has 256 bins and 256 cells at most.

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
    long long[256] words
    long long[256] integers
    double[256] gradients
    double[256] hessians
    int[256] counts


cdef struct histogram_scratch:
    # What a thread needs to sum up one era of one bundle.
    long long[256] words
    cell_sums[256] cells
    long long[256] integers
    double[256] gradients
    double[256] hessians
    int[256] counts
    code_sums by_code


cdef struct columns_struct:
    # The binned features, column by column.
    const X_BINNED_DTYPE_C * X_binned
    Py_ssize_t n_samples
    int missing_values_bin_idx
    const unsigned int * n_bins_non_missing


cdef void sum_era(
    const columns_struct * columns,
    const bundle_struct * bundle,
    bint is_joint,
    EraRows rows,
    int first_row,
    const row_block * blocks,
    int n_blocks,
    histogram_scratch * scratch,
    bin_sums * sums,
) noexcept nogil

cdef int sum_touched_bins(
    const columns_struct * columns,
    const bundle_struct * bundle,
    EraRows rows,
    int first_row,
    const row_block * blocks,
    int n_blocks,
    histogram_scratch * scratch,
    unsigned char * touched,
) noexcept nogil

cdef void add_to_lanes(
    const columns_struct * columns,
    const bundle_struct * bundle,
    EraRows rows,
    int first_row,
    int start,
    int stop,
    long long * words,
    int n_lanes,
) noexcept nogil
