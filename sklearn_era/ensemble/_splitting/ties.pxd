# Which of two splits is better by a criterion, and what decides ties: its second
# key, the gain, then the first feature and bin.

from .._criteria.criterion cimport split_rank
from .nodes cimport feature_split


cdef inline int compare_ranks(
    const split_rank * a, const split_rank * b
) noexcept nogil:
    """Return 1 if `a` ranks above `b`, -1 if below, 0 if they are equal."""
    if a.primary != b.primary:
        return 1 if a.primary > b.primary else -1
    if a.secondary != b.secondary:
        return 1 if a.secondary > b.secondary else -1
    if a.gain != b.gain:
        return 1 if a.gain > b.gain else -1
    return 0


cdef inline bint is_better(
    const feature_split * challenger, const feature_split * best
) noexcept nogil:
    """Return whether `challenger` replaces `best`: by rank, then feature, then bin."""
    cdef int comparison
    if not challenger.found:
        return False
    if not best.found:
        return True
    comparison = compare_ranks(&challenger.rank, &best.rank)
    if comparison != 0:
        return comparison > 0
    if challenger.feature_idx != best.feature_idx:
        return challenger.feature_idx < best.feature_idx
    return challenger.bin_idx < best.bin_idx
