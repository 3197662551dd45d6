# What is compiled for several instruction sets: loops over the lanes of vectors.

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    X_BINNED_DTYPE_C, hist_struct,
)

from ..rows cimport MAX_BINS
from ..._criteria.criterion cimport criterion_struct
from .table cimport era_table
from ..._criteria.split_sums cimport eras_struct, split_sums


cdef struct bin_order:
    # An order in which the bins of a feature move to the left side. After each of the
    # moves `first`..`stop`-1 there is a candidate split.
    int n_bins                       # that move, or would as the next ones
    int first
    int stop
    int first_split                  # of the order, among the candidates of the bundle
    bint missing_go_to_left
    X_BINNED_DTYPE_C[MAX_BINS] bins  # as they move; missing values after the others


cdef struct occupied_splits:
    # The splits after each occupied bin of an era but the last: both sides, and what
    # the era says of them.
    double[MAX_BINS] left_gradients
    double[MAX_BINS] left_hessians
    double[MAX_BINS] left_counts
    double[MAX_BINS] right_gradients
    double[MAX_BINS] right_hessians
    double[MAX_BINS] right_counts
    double[MAX_BINS] gains
    double[MAX_BINS] directions
    double[MAX_BINS] covered


cdef struct lane_functions:
    # See scan.pyx.
    void (*scan_bins)(
        const criterion_struct * criterion,
        const bin_order * order,
        int first_bin,
        const eras_struct * eras,
        const hist_struct * pooled,
        era_table * table,
        split_sums * splits,
    ) noexcept nogil
    void (*compare_occupied)(
        const criterion_struct * criterion,
        const eras_struct * eras,
        occupied_splits * splits,
        int n_splits,
    ) noexcept nogil
    void (*unpack_lanes)(
        era_table * table, int n_bins, int count_bits, double unit
    ) noexcept nogil
