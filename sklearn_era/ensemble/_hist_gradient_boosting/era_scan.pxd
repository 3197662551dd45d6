from sklearn.ensemble._hist_gradient_boosting.common cimport (
    X_BINNED_DTYPE_C,
    hist_struct,
)
from sklearn.utils._bitset cimport BITSET_DTYPE_C
from sklearn.utils._typedefs cimport uint8_t

from sklearn_era.ensemble._hist_gradient_boosting.criteria cimport (
    compare_ranks,
    criterion_struct,
    eras_struct,
    split_rank,
)
from sklearn_era.ensemble._hist_gradient_boosting.era_histogram cimport (
    EraHistogramBuilder,
)


cdef struct node_struct:
    # What the scan needs to know of the node, pooled over eras.
    unsigned int n_samples
    double sum_gradients
    double sum_hessians
    double loss         # of the node at its own (bounded) value
    double lower_bound  # of the children's values
    double upper_bound
    eras_struct eras


cdef struct feature_split:
    # A candidate split, and at the end of a scan the best one of its feature.
    bint found
    split_rank rank
    int feature_idx
    unsigned int bin_idx
    uint8_t missing_go_to_left
    uint8_t is_categorical
    BITSET_DTYPE_C left_cat_bitset
    unsigned int n_samples_left
    double sum_gradients_left
    double sum_hessians_left


cdef inline bint is_better(
    const feature_split * challenger, const feature_split * best
) noexcept nogil:
    """Whether `challenger` replaces `best`, which came before it.

    Ties of rank: the lower feature index, then the lower bin. Features come in
    ascending order; a lower bin can come later, with missing values on the left side.
    """
    cdef int comparison
    if not challenger.found:
        return False
    if not best.found:
        return True
    comparison = compare_ranks(&challenger.rank, &best.rank)
    if comparison != 0:
        return comparison > 0
    return (
        challenger.feature_idx == best.feature_idx
        and challenger.bin_idx < best.bin_idx
    )


cdef class EraScanner:
    cdef:
        EraHistogramBuilder histogram_builder
        int n_eras
        criterion_struct criterion

        # Of the tree being grown, from scikit-learn's splitter.
        const unsigned int [::1] n_bins_non_missing
        const uint8_t [::1] has_missing_values
        const uint8_t [::1] is_categorical
        const signed char [::1] monotonic_cst
        uint8_t missing_values_bin_idx
        bint hessians_are_constant
        unsigned int min_samples_leaf
        double min_hessian_to_split

        # Scratch, a row a thread, so that features can be scanned in parallel.
        int n_bins
        int n_threads
        hist_struct [:, ::1] histograms  # (n_threads, n_bins * n_eras)
        hist_struct [:, ::1] right       # same, sums of what has not moved left yet
        hist_struct [:, ::1] left        # (n_threads, n_eras), sums of what has
        double [:, ::1] values           # (n_threads, n_eras), of the criterion
        X_BINNED_DTYPE_C [:, ::1] order  # (n_threads, n_bins), bins as they move left

    cdef void scan_feature(
        self,
        int thread_idx,
        int feature_idx,
        const hist_struct [:, ::1] pooled,
        const node_struct * node,
        feature_split * best,
    ) noexcept nogil
    cdef void scan_order(
        self,
        int thread_idx,
        const hist_struct [:, ::1] pooled,
        int n_bins,
        int first,
        int stop,
        const node_struct * node,
        feature_split * proto,
        feature_split * best,
    ) noexcept nogil
    cdef double child_value(
        self, const node_struct * node, double sum_gradients, double sum_hessians
    ) noexcept nogil
    cdef void store_categories(
        self, const X_BINNED_DTYPE_C * order, int n_left, feature_split * split
    ) noexcept nogil
