from .bundles cimport FeatureBundles
from .fixed_points cimport summed_values
from .rows cimport EraRows
from .tree_data cimport tree_data


cdef class HistogramStore:
    cdef:
        readonly Py_ssize_t budget     # bytes
        readonly Py_ssize_t allocated  # bytes
        list free_buffers
        list lent                      # weak references to what has a buffer


cdef class NodeHistograms:
    cdef:
        object __weakref__
        HistogramStore store
        object buffer          # ndarray of int64, or None
        readonly bint is_stored
        long long * sums       # (n_planes, n_bins): rows, and sums of each word, by bin
        Py_ssize_t n_bins      # of all features of the tree
        int n_planes
        double sum_gradients   # over all rows; of a root only
        double sum_hessians
        const unsigned int [::1] sample_indices

    cdef _use(self, long long * sums, Py_ssize_t n_bins, int n_planes)


cdef void fill(
    NodeHistograms histograms,
    NodeHistograms parent,
    EraRows rows,
    const tree_data * tree,
    FeatureBundles bundles,
    int n_threads,
) noexcept
cdef bint are_sums_of(
    NodeHistograms histograms, FeatureBundles bundles, EraRows rows
) noexcept
