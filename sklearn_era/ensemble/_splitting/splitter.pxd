from libc.stdint cimport uint8_t
from .nodes cimport grown_node
from .splitter_state cimport SplitterState
from .store cimport HistogramStore, NodeHistograms


cdef class EraSplitter(SplitterState):
    cdef void defer(self, bint is_asked) noexcept
    cdef int sum_up_root(self, grown_node * root) except -1
    cdef int sum_up_children(
        self, grown_node * parent, grown_node * smaller, grown_node * larger
    ) except -1
    cdef int merge_children(
        self, grown_node * parent, grown_node * left, grown_node * right,
        const uint8_t * is_active,
    ) except -1
    cdef NodeHistograms merge(
        self, HistogramStore store, grown_node * node, grown_node * sibling
    )
    cdef int release(self, grown_node * node) except -1
    cdef int find_split(self, grown_node * node, const uint8_t * is_active) except -1
    cdef bint lend_children(
        self, int place, grown_node * node, grown_node * smaller, grown_node * larger,
        const uint8_t * is_active, bint is_first,
    ) except -1
    cdef int search_children(self, int n, bint shares_sums) except -1
    cdef int lend_deferred(self, int place, grown_node * node) except -1
    cdef int search_deferred(self, int n) except -1
    cdef void count_choice(self, const grown_node * node) noexcept
