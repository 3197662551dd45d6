from .sums cimport bin_sums
from ..bundles cimport bundle_struct


cdef class HistogramStore:
    cdef:
        readonly Py_ssize_t budget     # bytes
        readonly Py_ssize_t allocated  # bytes
        list free_buffers
        list lent                      # weak references to what has a buffer

    cpdef bint has_room_for(self, Py_ssize_t n_cells, bint has_plain=*)


cdef class NodeHistograms:
    cdef:
        object __weakref__
        HistogramStore store
        readonly bint is_stored
        readonly bint is_worth_storing  # were there room
        object buffer          # ndarray of bytes, or None
        int n_eras
        long long * integers   # (n_sums, n_eras) of each bundle, era by era
        long long * plain      # of gradients, where hessians vary; else NULL
        int * counts
        double sum_gradients   # over all rows; of a root only
        double sum_hessians
        int n_rows
        const unsigned int [::1] sample_indices

    cdef void clear(self, const bundle_struct * bundle) noexcept nogil
    cdef void point_at(
        self, const bundle_struct * bundle, int era, bin_sums * sums
    ) noexcept nogil


cdef void subtract(
    NodeHistograms parent, NodeHistograms child, const bundle_struct * bundle
) noexcept nogil
