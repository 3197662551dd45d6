from sklearn.ensemble._hist_gradient_boosting.common cimport (
    X_BINNED_DTYPE_C,
    hist_struct,
)
from sklearn.utils._bitset cimport BITSET_DTYPE_C
from sklearn.utils._typedefs cimport uint8_t

from .._criteria.criterion cimport criterion_struct
from .histograms.sums cimport bin_sums
from .lanes.table cimport era_table
from .bundles cimport FeatureBundles, bundle_struct
from .lanes.functions cimport lane_functions, scan_order, touched_splits
from .._criteria.ranking cimport compare_ranks, split_rank
from .._criteria.split_sums cimport eras_struct, split_sums


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


cdef struct feature_scan:
    # A feature to scan: its candidate splits are in at most two orders.
    int feature_idx
    int first_bin               # of the feature, among the bins of its bundle
    bint is_wanted
    bint is_pooled              # before the scan, not in its course
    int n_orders
    scan_order[2] orders


cdef struct bundle_scan:
    # The features of a bundle: what of them the eras thus far have said.
    int n_splits
    bint sums_differences       # a split's sums are differences from the split before
    feature_scan[8] features
    hist_struct * pooled        # (n_bins,), sums over eras by bin
    split_sums * splits         # (n_splits,)


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
        criterion_struct criterion
        const lane_functions * lanes

        # Of the tree being grown, from scikit-learn's splitter.
        const unsigned int [::1] n_bins_non_missing
        const uint8_t [::1] has_missing_values
        const uint8_t [::1] is_categorical
        const signed char [::1] monotonic_cst
        uint8_t missing_values_bin_idx
        unsigned int min_samples_leaf
        double min_hessian_to_split

        # Of the bundles of features that the tree uses.
        FeatureBundles bundles
        bundle_scan * scans      # (n_bundles,)
        hist_struct * pooled     # (n_bins,) of all features
        split_sums * splits      # of all bundles

    cdef void _free(self)
    cdef int most_splits(self, const bundle_struct * bundle) noexcept nogil
    cdef bint needs_pooling(self, int bundle_idx) noexcept nogil
    cdef bint start_bundle(
        self, int bundle_idx, const uint8_t * is_wanted, bint is_pooled, bint is_touched
    ) noexcept nogil
    cdef void order_bins(
        self, int bundle_idx, const node_struct * node
    ) noexcept nogil
    cdef void set_order(
        self,
        bundle_scan * scan,
        feature_scan * feature,
        int n_bins,
        int first,
        int stop,
        bint missing_go_to_left,
    ) noexcept nogil
    cdef void start_lanes(self, int bundle_idx, era_table * table) noexcept nogil
    cdef void end_lanes(
        self, int bundle_idx, const era_table * table, bint pools
    ) noexcept nogil
    cdef void scan_eras(
        self, int bundle_idx, const eras_struct * eras, era_table * table
    ) noexcept nogil
    cdef void scan_touched_bins(
        self,
        int bundle_idx,
        const eras_struct * eras,
        const bin_sums * sums,
        double unit,
        const unsigned char * touched,
        int n_touched,
        touched_splits * splits,
    ) noexcept nogil
    cdef void find_best(
        self,
        int bundle_idx,
        const node_struct * node,
        int n_absent,
        feature_split * best,
    ) noexcept nogil
    cdef void rank_order(
        self,
        const bundle_scan * scan,
        const feature_scan * feature,
        const scan_order * order,
        const node_struct * node,
        feature_split * best,
    ) noexcept nogil
    cdef void store_categories(
        self, const X_BINNED_DTYPE_C * bins, int n_left, feature_split * split
    ) noexcept nogil
    cdef double child_value(
        self, const node_struct * node, double sum_gradients, double sum_hessians
    ) noexcept nogil
