from .eras cimport small_eras
from .features cimport feature_draw
from .node cimport small_node
from .records cimport tree_records
from .keys cimport MAX_ROWS, small_rows
from .scan cimport scan_context, sorted_feature
from ..candidates.split cimport feature_split
from ..splitter cimport EraSplitter, tree_eras
from ..tree_data cimport tree_data, tree_limits
from ..._criteria.criterion cimport criterion_struct


cdef class SubtreeGrower:
    cdef:
        list owners              # of all the memory that is pointed to
        tree_data data
        tree_limits limits
        const unsigned int [::1] partition   # rows of the tree, by node
        int max_depth            # of the tree; -1: without limit
        int max_rows             # of a small node
        tree_eras tree_eras      # where eras are compared; without criterion, if not
        criterion_struct by_gain  # in place of the criterion, for the largest gain
        tree_records records
        feature_draw draw
        # Of the small node.
        small_rows rows
        small_eras eras
        scan_context context
        sorted_feature * columns  # (n_features,)
        small_node[MAX_ROWS + 1] waiting   # a stack
        int n_waiting

    cdef _make_columns(self)
    cdef _compare_eras(self, EraSplitter splitter)
    cdef void * room(self, Py_ssize_t n_bytes) except NULL
    cdef void start_small_node(self, small_node * root) noexcept nogil
    cdef void grow_subtree(self, const small_node * root) noexcept nogil
    cdef bint may_split(self, const small_node * node) noexcept nogil
    cdef void partition_node(
        self, const small_node * node, feature_split * split
    ) noexcept nogil
    cdef bint find_split(
        self, const small_node * node, feature_split * split
    ) noexcept nogil
    cdef bint find_share(self, feature_split * split, bint is_coverable) noexcept nogil
    cdef bint find_best(
        self, const criterion_struct * criterion, feature_split * split
    ) noexcept nogil
    cdef bint scan_features(
        self,
        const criterion_struct * criterion,
        double unit_of_costs,
        feature_split * split,
    ) noexcept nogil
