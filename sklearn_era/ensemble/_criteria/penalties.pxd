# Feature penalties: shares of the largest key of a node, taken off the keys of splits.

from .criterion cimport criterion_struct, split_rank
from .dispatch cimport INVARIANT, TIME_ROBUST
from .ranking cimport gain_alone


cdef inline double penalty_of_feature(
    const double * penalties,   # (n_features,); NULL: all 0
    int feature_idx, double unit
) noexcept nogil:
    """Return a feature's entry in `penalties` times `unit`; 0 if the entry is 0."""
    if penalties == NULL or penalties[feature_idx] == 0.0:
        return 0.0
    return penalties[feature_idx] * unit


cdef inline bint penalise(
    const criterion_struct * criterion,
    double penalty,         # a share of the largest key by `criterion_of_unit`
    split_rank * rank,   # IN, of a valid split, and OUT
) noexcept nogil:
    """Subtract a feature's penalty from a rank; return whether the rank is valid."""
    rank.primary -= penalty
    rank.priority -= penalty
    if criterion.name == TIME_ROBUST:
        return rank.priority > criterion.min_impurity_decrease
    if criterion.name == INVARIANT:
        return rank.gain - penalty > 0.0
    return rank.primary > 0.0


cdef inline criterion_struct criterion_of_unit(
    const criterion_struct * criterion
) noexcept nogil:
    """Return the criterion whose largest key in the node is the unit of penalties. As
    keys of INVARIANT and TIME_ROBUST may be negative, it ranks by the gain in place of
    INVARIANT, and by the decrease of impurity in place of TIME_ROBUST.
    """
    cdef criterion_struct of_unit
    if criterion.name == INVARIANT:
        return gain_alone(criterion, criterion.min_covered_eras)
    of_unit = criterion[0]
    if criterion.name == TIME_ROBUST:
        of_unit.ranks_by_decrease = True
    return of_unit
