# What is compiled for several instruction sets: loops over the lanes of vectors.

from sklearn.ensemble._hist_gradient_boosting.common cimport X_BINNED_DTYPE_C

from ..._criteria.criterion cimport criterion_struct
from .table cimport era_table
from ..._criteria.split_sums cimport eras_struct, split_sums


cdef struct scan_order:
    # An order in which the bins of a feature move to the left side. After each of the
    # moves `first`..`stop`-1 there is a candidate split.
    int n_bins                  # that move, or would as the next ones
    int first
    int stop
    int first_split             # of the order, among the candidates of the bundle
    bint missing_go_to_left
    X_BINNED_DTYPE_C[256] bins  # as they move; missing values come after the others


cdef struct touched_splits:
    # The splits after each touched bin of an era but the last: both sides, and what the
    # era says of them.
    double[256] left_gradients
    double[256] left_hessians
    double[256] left_counts
    double[256] right_gradients
    double[256] right_hessians
    double[256] right_counts
    double[256] gains
    double[256] directions
    double[256] covered


cdef struct lane_functions:
    # See scan.pyx.
    void (*scan_order)(
        const criterion_struct * criterion,
        const scan_order * order,
        int first_bin,
        const eras_struct * eras,
        era_table * table,
        split_sums * splits,
    ) noexcept nogil
    void (*compare)(
        const criterion_struct * criterion,
        const eras_struct * eras,
        touched_splits * splits,
        int n_splits,
    ) noexcept nogil
    void (*take_apart)(
        era_table * table, int n_bins, int count_bits, double unit
    ) noexcept nogil
