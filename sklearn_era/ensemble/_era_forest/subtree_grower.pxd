from sklearn.ensemble._hist_gradient_boosting.common cimport (
    G_H_DTYPE_C,
    X_BINNED_DTYPE_C,
)
from sklearn.utils._typedefs cimport uint8_t

from sklearn_era.ensemble._era_forest.feature_lists cimport feature_lists
from sklearn_era.ensemble._era_forest.moving_eras cimport moving_eras
from sklearn_era.ensemble._era_forest.small_node cimport (
    row_sums,
    small_node,
    split_limits,
)
from sklearn_era.ensemble._era_forest.tree_records cimport tree_records
from sklearn_era.ensemble._hist_gradient_boosting.era_scan cimport feature_split
from sklearn_era.ensemble._hist_gradient_boosting.era_splitting cimport EraSplitter


cdef class SubtreeGrower:
    cdef:
        # Of the tree.
        const X_BINNED_DTYPE_C [::1, :] X_binned
        const G_H_DTYPE_C [::1] gradients
        const G_H_DTYPE_C [::1] hessians
        bint hessians_are_constant
        int n_features
        const unsigned int [::1] n_bins_non_missing
        const uint8_t [::1] has_missing_values
        int missing_values_bin_idx
        int max_depth                    # -1: without limit
        split_limits limits
        EraSplitter era_splitter         # None: by the gain
        const int [::1] era_codes        # (n_rows,) of the tree
        const G_H_DTYPE_C [::1] positive_weights
        const G_H_DTYPE_C [::1] weights
        bint compares_eras
        bint compares_targets
        double gradient_unit             # 0: gradients are summed as they are
        double gradient_scale
        double [::1] impurities          # (n_eras,)

        feature_lists features
        object feature_memory            # ndarrays behind `features`

        # Of the small node: of its rows, in ascending order.
        int max_rows
        int n_rows
        const unsigned int * samples     # rows of the tree
        unsigned int [::1] rows          # (max_rows,), parted as keys are
        unsigned int [:, ::1] keys       # (n_features, max_rows)
        unsigned int [::1] scratch
        uint8_t [::1] goes_left
        double [::1] row_gradients
        double [::1] row_hessians
        double [::1] target_gradients    # of RATIO: what eras are compared by
        double [::1] target_hessians
        row_sums sums
        moving_eras eras
        object era_memory                # ndarrays behind `eras`
        small_node * waiting             # a stack
        int n_waiting

        tree_records records             # of all small nodes

    cdef void start_small_node(
        self, const unsigned int * samples, int n_rows
    ) noexcept nogil
    cdef void grow_subtree(self, const small_node * root) noexcept nogil
    cdef bint is_alike(self, const small_node * node) noexcept nogil
    cdef bint find_split(self, small_node * node, feature_split * split) noexcept nogil
    cdef bint start_eras(self, const small_node * node) noexcept nogil
    cdef void measure_impurities(self, const small_node * node) noexcept nogil
    cdef void part(
        self, const small_node * node, const feature_split * split
    ) noexcept nogil
    cdef void push_children(
        self, const small_node * node, const feature_split * split, int number
    ) noexcept nogil
