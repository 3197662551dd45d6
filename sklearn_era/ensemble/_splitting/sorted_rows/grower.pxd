from sklearn.ensemble._hist_gradient_boosting.common cimport G_H_DTYPE_C
from sklearn.utils._typedefs cimport uint64_t

from .features cimport feature_lists
from .moving_eras cimport moving_eras
from .node cimport small_node
from ..tree_data cimport tree_data, tree_limits
from .node_rows cimport small_rows
from .records cimport tree_records
from .scan cimport scan_context, sorted_feature
from ..candidates.split cimport feature_split
from ..splitter cimport EraSplitter, tree_eras
from ..._criteria.criterion cimport criterion_struct


cdef class SubtreeGrower:
    cdef:
        list owners              # of all the memory that is pointed to
        tree_data data
        tree_limits limits
        int max_depth            # of the tree; -1: without limit
        tree_eras tree_eras      # where eras are compared
        int max_rows
        feature_lists features
        criterion_struct by_gain  # in place of the criterion, for the largest gain
        criterion_struct sharing  # the criterion, among splits that have their share
        criterion_struct unit     # of penalties
        tree_records records     # of all small nodes

        # Of the small node.
        small_rows rows
        moving_eras eras
        scan_context context
        sorted_feature * columns  # (n_features,)
        small_node * waiting     # a stack
        int n_waiting

    cdef _make_columns(self)
    cdef _make_rows(self)
    cdef _make_lists(self, int max_features, uint64_t seed)
    cdef _compare_eras(self, EraSplitter splitter)
    cdef void * room(self, Py_ssize_t n_bytes) except NULL
    cdef void start_small_node(
        self, const unsigned int * samples, int n_rows
    ) noexcept nogil
    cdef void grow_subtree(self, const small_node * root) noexcept nogil
    cdef bint find_split(self, small_node * node, feature_split * split) noexcept nogil
    cdef void choose_split(
        self, const small_node * node, bint is_coverable, feature_split * split
    ) noexcept nogil
    cdef bint rank_features(
        self,
        const criterion_struct * criterion,
        const small_node * node,
        feature_split * split,
    ) noexcept nogil
    cdef bint scan_features(
        self, const small_node * node, feature_split * split, double unit_of_costs=*
    ) noexcept nogil
    cdef void find_splitting(self, const small_node * node) noexcept nogil
    cdef bint start_eras(self, const small_node * node) noexcept nogil
