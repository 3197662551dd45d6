from sklearn.utils._typedefs cimport uint8_t

from .sums cimport bin_sums, histogram_scratch
from ..rows cimport MAX_BINS, EraRows
from ..candidates.table cimport CandidateTable, node_struct
from ..lanes.functions cimport lane_functions, masked_table, occupied_splits
from ..lanes.table cimport era_table, first_look
from ..bundles cimport FeatureBundles
from ..._criteria.criterion cimport criterion_struct
from .stored cimport NodeHistograms
from ..tree_data cimport tree_data


cdef enum purpose:
    # What a node's rows are summed up for.
    KEEP     # the histograms of its eras
    POOL     # those over all eras
    COMPARE  # the eras, at each candidate split


cdef struct thread_scratch:
    # Each begins a cache line.
    histogram_scratch histogram
    era_table table
    occupied_splits splits
    masked_table masked
    first_look look
    unsigned char[MAX_BINS] occupied


cdef class Accumulator:
    cdef:
        EraRows rows
        CandidateTable candidates
        const lane_functions * lanes
        object exchange                # an `Exchange`
        bint is_alone                  # in it
        bint compares_targets

        # Of the tree being grown.
        const tree_data * tree
        FeatureBundles bundles
        void * memory                  # of the scratch
        thread_scratch * scratch       # (n_threads,)
        int n_threads

        # Of the node: what to look at, and how.
        const uint8_t [::1] is_wanted  # (n_features,); None for all
        int [::1] tasks                # (n_tasks,), bundles to look at
        uint8_t [::1] is_sparse        # (n_bundles,)
        int n_tasks
        bint looks_first               # see `add_first_look`

    cdef void plan(self, const uint8_t [::1] is_wanted) noexcept
    cdef double rows_per_era(self) noexcept
    cdef int threads_for_node(self) noexcept nogil
    cdef void fill(self, NodeHistograms histograms) noexcept
    cdef void visit_rows(
        self, purpose what, const node_struct * node, NodeHistograms histograms
    ) noexcept
    cdef void fill_chunk(
        self,
        thread_scratch * scratch,
        int bundle_idx,
        int chunk,
        EraRows rows,
        NodeHistograms histograms,
    ) noexcept nogil
    cdef pool(self, const node_struct * node, NodeHistograms histograms)
    cdef void pool_chunk(
        self,
        thread_scratch * scratch,
        int bundle_idx,
        int chunk,
        EraRows rows,
        NodeHistograms histograms,
    ) noexcept nogil
    cdef bint estimates_gains(self, const criterion_struct * criterion) noexcept
    cdef void shortlist(self, double least) noexcept
    cdef void start_again(self) noexcept
    cdef accumulate(self, const node_struct * node, NodeHistograms histograms)
    cdef void add_absent(self, int bundle_idx) noexcept nogil
    cdef void add_chunk(
        self,
        thread_scratch * scratch,
        int bundle_idx,
        int chunk,
        EraRows rows,
        NodeHistograms histograms,
        const node_struct * node,
    ) noexcept nogil
    cdef int fill_lanes(
        self,
        thread_scratch * scratch,
        int bundle_idx,
        int first,
        int last,
        EraRows rows,
        NodeHistograms histograms,
    ) noexcept nogil
    cdef void add_occupied_bins(
        self,
        thread_scratch * scratch,
        int bundle_idx,
        int first,
        int last,
        EraRows rows,
        const node_struct * node,
    ) noexcept nogil
