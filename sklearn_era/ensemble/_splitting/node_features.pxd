from libc.stdint cimport uint8_t

from .nodes cimport grown_node


cdef class NodeFeatures:
    cdef:
        readonly list allowed   # features by number, with the sets that allow them
        readonly bint are_drawn  # for each node
        dict numbers
        object usable, interaction_cst, rng, draw
        bint sorts
        double share
        uint8_t [::1] is_active
        int number_of_active

    cdef const uint8_t * active(
        self, const grown_node * node, partition
    ) except NULL
    cdef int allowed_below(self, const grown_node * node) except -1
