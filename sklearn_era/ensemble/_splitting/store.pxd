from libc.stdint cimport uint8_t


cdef class HistogramStore:
    cdef:
        readonly Py_ssize_t budget     # bytes
        readonly Py_ssize_t allocated  # bytes
        list slots                     # `NodeHistograms` by number
        list free                      # those that no node uses

    cpdef NodeHistograms lend(self, Py_ssize_t n_integers)
    cdef NodeHistograms allocate(
        self, Py_ssize_t n_bins, Py_ssize_t n_by_era, int n_planes
    )


cdef class NodeHistograms:
    cdef:
        int number             # in the store
        readonly object buffer  # ndarray of int64
        long long * memory     # of the buffer
        Py_ssize_t capacity    # integers
        long long * sums       # (n_planes, n_bins): row counts, and a sum for each word
        long long * by_era     # see `sum_bundle`; or NULL
        Py_ssize_t n_bins      # of all features of the tree
        int n_planes
        int count_bits         # below the first sums, if these have one plane; else 0
        Py_ssize_t n_rows      # of the node
        uint8_t [::1] is_listed  # features to compare by era later; see `search_node`

    cdef int make_list(self, int n_features) except -1


cdef struct child_sums:
    # A child's sums, to be subtracted from its parent's.
    const long long * sums     # (n_planes, n_bins)
    long long * of_parent      # likewise; or NULL
    Py_ssize_t n_bins
    int n_planes               # of the child
    int count_bits             # of its words, if the parent has a plane for counts
    bint joins                 # counts into words: the other child has few rows, too
