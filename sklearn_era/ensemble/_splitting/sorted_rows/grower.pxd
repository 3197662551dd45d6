from sklearn.ensemble._hist_gradient_boosting.common cimport (
    G_H_DTYPE_C,
    X_BINNED_DTYPE_C,
)
from sklearn.utils._typedefs cimport uint8_t

from .features cimport feature_lists
from .moving_eras cimport moving_eras
from .node cimport small_node, split_limits
from .node_rows cimport small_rows
from .records cimport tree_records
from ..candidates cimport feature_split
from ..splitter cimport EraSplitter


cdef class SubtreeGrower:
    cdef:
        # Of the tree.
        const X_BINNED_DTYPE_C [::1, :] X_binned
        const G_H_DTYPE_C [::1] gradients
        const G_H_DTYPE_C [::1] hessians
        const G_H_DTYPE_C * tree_gradients
        const G_H_DTYPE_C * tree_hessians    # NULL where they are 1
        int n_features
        const unsigned int [::1] n_bins_non_missing
        const uint8_t [::1] has_missing_values
        const uint8_t [::1] is_categorical
        bint has_categories
        int missing_values_bin_idx
        int max_depth                    # -1: without limit
        split_limits limits
        EraSplitter era_splitter         # None: by the gain
        const int [::1] era_codes        # (n_rows,) of the tree
        const G_H_DTYPE_C [::1] positive_weights
        const G_H_DTYPE_C [::1] weights
        bint compares_eras
        bint compares_targets
        double [::1] impurities          # (n_eras,)

        feature_lists features
        object feature_memory            # ndarrays behind `features`

        # Of the small node.
        int max_rows
        small_rows rows
        object row_memory                # ndarrays behind `rows`
        moving_eras eras
        object era_memory                # ndarrays behind `eras`
        small_node * waiting             # a stack
        int n_waiting

        tree_records records             # of all small nodes

    cdef void start_small_node(
        self, const unsigned int * samples, int n_rows
    ) noexcept nogil
    cdef void grow_subtree(self, const small_node * root) noexcept nogil
    cdef bint find_split(self, small_node * node, feature_split * split) noexcept nogil
    cdef void find_parting(self, const small_node * node) noexcept nogil
    cdef bint start_eras(self, const small_node * node) noexcept nogil
