from sklearn.ensemble._hist_gradient_boosting.common cimport X_BINNED_DTYPE_C
from sklearn.utils._typedefs cimport uint8_t

from .sums cimport columns_struct, histogram_scratch
from ..rows cimport EraRows
from ..candidates cimport EraScanner, feature_split, node_struct
from ..lanes.table cimport era_table
from ..bundles cimport FeatureBundles
from ..lanes.functions cimport touched_splits
from .stored cimport NodeHistograms


cdef struct thread_scratch:
    histogram_scratch histogram
    era_table table
    touched_splits splits
    unsigned char[256] touched


cdef class EraVisitor:
    cdef:
        EraRows rows
        EraScanner scanner
        bint compares_targets

        # Of the tree being grown.
        const X_BINNED_DTYPE_C [::1, :] X_binned
        const unsigned int [::1] n_bins_non_missing
        columns_struct columns
        FeatureBundles bundles
        int n_threads
        thread_scratch * scratch   # (n_threads,)

        # Of the node: what to look at, and how.
        const uint8_t [::1] is_wanted  # (n_features,); None for all
        int [::1] tasks                # (n_tasks,), bundles to look at
        uint8_t [::1] is_joint         # (n_bundles,)
        uint8_t [::1] is_touched       # (n_bundles,)
        int n_tasks

    cdef void plan(self, const uint8_t [::1] is_wanted) noexcept
    cdef int threads_for_node(self) noexcept nogil
    cdef void fill(self, NodeHistograms histograms) noexcept
    cdef void fill_chunk(
        self,
        int thread_idx,
        int bundle_idx,
        int chunk,
        EraRows rows,
        NodeHistograms histograms,
    ) noexcept nogil
    cdef void scan(
        self,
        const node_struct * node,
        NodeHistograms histograms,
        feature_split * splits,
    ) noexcept
    cdef void visit_eras(
        self,
        const node_struct * node,
        NodeHistograms histograms,
        bint pools,
        int n_threads,
    ) noexcept
    cdef void visit_chunk(
        self,
        int thread_idx,
        int bundle_idx,
        int chunk,
        EraRows rows,
        EraScanner scanner,
        NodeHistograms histograms,
        const node_struct * node,
        bint pools,
    ) noexcept nogil
    cdef void visit_touched_bins(
        self,
        thread_scratch * scratch,
        int bundle_idx,
        int first,
        int last,
        int first_row,
        EraRows rows,
        EraScanner scanner,
        const node_struct * node,
    ) noexcept nogil
