from sklearn.ensemble._hist_gradient_boosting.common cimport hist_struct
from sklearn.utils._bitset cimport BITSET_DTYPE_C
from sklearn.utils._typedefs cimport uint8_t

from ..._criteria.criterion cimport criterion_struct
from ..bundles cimport MAX_MEMBERS, FeatureBundles, bundle_struct
from ..lanes.functions cimport bin_order
from ..._criteria.ranking cimport compare_ranks, split_rank
from ..._criteria.split_sums cimport eras_struct, split_sums
from ..tree_data cimport tree_data


cdef struct node_struct:
    # A node, pooled over eras.
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

    Ties of rank: the lower feature index, then the lower bin, which can come later,
    with missing values on the left side.
    """
    cdef int comparison
    if not challenger.found:
        return False
    if not best.found:
        return True
    comparison = compare_ranks(&challenger.rank, &best.rank)
    if comparison != 0:
        return comparison > 0
    if challenger.feature_idx != best.feature_idx:
        return challenger.feature_idx < best.feature_idx
    return challenger.bin_idx < best.bin_idx


cdef struct feature_candidates:
    # The candidate splits of a feature: its bins move in at most two orders.
    int feature_idx
    int first_bin               # of the feature, among the bins of its bundle
    bint is_wanted
    bint is_pooled              # before the eras are compared, not along with it
    int n_orders
    bin_order[2] orders


cdef struct bundle_candidates:
    # The candidate splits of a bundle of features.
    int n_splits
    feature_candidates[MAX_MEMBERS] features
    hist_struct * pooled        # (n_bins,), sums over eras by bin
    split_sums * splits         # (n_splits,), what the eras have said
    feature_split best          # when they are ranked


cdef class CandidateTable:
    cdef:
        const tree_data * tree
        double n_coverable          # eras with rows for both sides of a split
        const criterion_struct * criterion
        # Of the bundles of features that the tree uses.
        FeatureBundles bundles
        bundle_candidates * candidates  # (n_bundles,)
        hist_struct * pooled            # (n_bins,) of all features
        split_sums * splits             # the memory of all bundles'

    cdef void _free(self)
    cdef int most_splits(self, const bundle_struct * bundle) noexcept nogil
    cdef bint needs_pooling(self, int bundle_idx) noexcept nogil
    cdef bint start_bundle(
        self, int bundle_idx, const uint8_t * is_wanted, bint is_pooled
    ) noexcept nogil
    cdef void order_bins(
        self, int bundle_idx, const node_struct * node
    ) noexcept nogil
    cdef void start_again(self, int bundle_idx) noexcept nogil
    cdef void add_numeric_orders(
        self, bundle_candidates * bundle, feature_candidates * feature, int n_codes
    ) noexcept nogil
    cdef void add_categorical_orders(
        self,
        bundle_candidates * bundle,
        feature_candidates * feature,
        int n_codes,
        const node_struct * node,
    ) noexcept nogil
    cdef merge_pooled(
        self, const int [::1] tasks, int n_tasks, bint are_pooled_before, exchange
    )
    cdef merge_splits(self, const int [::1] tasks, int n_tasks, exchange)
