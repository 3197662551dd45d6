from libc.stdint cimport uint64_t
from ..._arrays cimport G_H_DTYPE_C

from .eras cimport small_eras
from .node cimport MAX_ROWS, small_rows
from .scan cimport feature_draw, scan_context, sorted_feature
from ..fixed_points cimport summed_values
from ..nodes cimport tree_data, tree_node
from ..records cimport TreeRecords, tree_records
from ..splitter cimport EraSplitter
from ..._criteria.criterion cimport criterion_struct


cdef class SubtreeGrower:
    cdef:
        list owners              # of memory that pointers refer to
        tree_data tree
        const unsigned int [::1] partition   # rows of the tree, by node
        int max_depth            # of the tree; -1: without limit
        int max_rows             # of a small node
        const criterion_struct * criterion   # if it compares eras; else NULL
        criterion_struct by_gain             # its counterpart for the largest gain
        const int * era_codes                # (n_samples,)
        const G_H_DTYPE_C * positive_weights  # NULL if gradients are compared
        const G_H_DTYPE_C * weights
        const summed_values * squares         # NULL unless they are compared
        TreeRecords arrays
        tree_records * records
        feature_draw draw
        # The small node.
        small_rows rows
        small_eras eras
        scan_context context
        sorted_feature * columns  # (n_features,)
        tree_node[MAX_ROWS + 1] waiting   # a stack
        int n_waiting

    cdef _make_columns(self)
    cdef _compare_eras(self, EraSplitter splitter)
    cdef void grow_subtree(self, const tree_node * root) noexcept nogil
