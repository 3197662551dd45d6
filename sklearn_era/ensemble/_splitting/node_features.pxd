from libc.stdint cimport uint8_t

from .nodes cimport grown_node


cdef class NodeFeatures:
    cdef:
        readonly list allowed   # features, with the interaction sets that allow them
        dict numbers            # their place in that list, by sets
        bint are_drawn          # for each node
        object usable, interaction_cst, rng, draw, partition
        bint sorts
        double share            # of the allowed features that a node draws
        uint8_t [::1] is_active  # (n_features,), a mask of the features last asked for
        int masked              # their place in the list, -1 if they were drawn

    cdef const uint8_t * active(self, const grown_node * node) except NULL
    cdef int allowed_below(self, const grown_node * node) except -1
