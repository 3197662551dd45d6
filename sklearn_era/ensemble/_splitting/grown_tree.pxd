from .nodes cimport grown_node, tree_data
from .splitter cimport EraSplitter


cdef enum:
    ROWS_OF_ADDITION = 4  # moved rows that take as long as an addition of rows


cdef class GrownTree:
    cdef:
        EraSplitter splitter
        const tree_data * tree
        readonly object data    # and limits of the tree, by scikit-learn's names
        int n_threads
        object memory           # of the nodes
        grown_node * nodes
        int n_nodes, n_leaves

    cdef int reserve(self, int n) except -1
    cdef void finalize(self, int number) noexcept
    cdef int undo_split(self, grown_node * node) except -1
