cdef class HistogramStore:
    cdef:
        readonly Py_ssize_t budget     # bytes
        readonly Py_ssize_t allocated  # bytes
        list free_buffers
        list lent                      # weak references to owners of buffers


cdef class NodeHistograms:
    cdef:
        object __weakref__
        HistogramStore store
        object buffer          # ndarray of int64, or None
        readonly bint is_stored
        long long * sums       # (n_planes, n_bins): row counts, and a sum for each word
        long long * by_era     # see `sum_bundle`; or NULL
        Py_ssize_t n_bins      # of all features of the tree
        int n_planes
        int count_bits         # below the first sums, if these have one plane; else 0
        double sum_gradients   # over all rows; root only
        double sum_hessians
        const unsigned int [::1] sample_indices
        Py_ssize_t n_rows
