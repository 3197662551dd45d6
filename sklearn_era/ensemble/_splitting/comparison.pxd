from .candidates.splits cimport CandidateSplits
from .lanes.functions cimport node_struct
from .rows cimport EraRows
from .._criteria.criterion cimport criterion_struct


cdef enum:
    FEW_ADDITIONS = 4_000


cdef inline int threads_for(int n_threads, double n_additions) noexcept nogil:
    """Threads that have enough to do, for what it takes to wake them up."""
    return n_threads if n_additions > FEW_ADDITIONS else 1


cdef class EraComparison:
    cdef:
        object exchange
        EraRows rows
        CandidateSplits splits
        bint prunes             # splits that too few eras can still cover
        bint prunes_by_key      # and those that cannot become the best one
        bint compares_targets
        int n_absent            # eras of the node that nothing was added of
        int n_threads
        void * memory           # of a batch of eras for each thread
        int n_batches

    cdef compare(self, const criterion_struct * criterion, const node_struct * node)
