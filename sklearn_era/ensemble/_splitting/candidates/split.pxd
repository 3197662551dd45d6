# A candidate split, and which of two is the better one.

from sklearn.utils._bitset cimport BITSET_DTYPE_C
from sklearn.utils._typedefs cimport uint8_t

from ..._criteria.criterion cimport split_rank
from ..._criteria.ranking cimport compare_ranks


cdef struct feature_split:
    # A candidate split, and at the end of a scan the best one of its feature.
    bint found
    split_rank rank
    int feature_idx
    unsigned int bin_idx
    uint8_t missing_go_to_left
    uint8_t is_categorical
    BITSET_DTYPE_C left_cat_bitset
    unsigned int n_samples_left
    double sum_gradients_left
    double sum_hessians_left


cdef inline bint is_better(
    const feature_split * challenger, const feature_split * best
) noexcept nogil:
    """Whether `challenger` replaces `best`, which came before it.

    Ties of rank: the lower feature index, then the lower bin, which can come later,
    with missing values on the left side.
    """
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
