# The rank of a candidate by the sums over all eras: admissible splits, and blends.

from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from .criterion cimport criterion_struct, split_rank
from .dispatch cimport (
    BLEND, CUSTOM, DIRECTIONAL, DIRECTIONS, GAIN, INVARIANT, TIME_ROBUST,
    list_statistics, rank_by,
)
from .formulas cimport eras_struct, gain_unit


cdef inline bint rank_blend(
    const criterion_struct * criterion, const eras_struct * eras,
    const double * sums, split_rank * rank,
) noexcept nogil:
    """Set a split's key to the sum of the weighted keys of a blend's parts; return
    whether the split is valid. `min_direction_agreement` still excludes splits if
    DIRECTIONAL is a part.
    """
    cdef:
        split_rank part
        double weight
        int name
    part.gain = rank.gain
    rank.primary = 0.0
    for name in range(BLEND):
        weight = criterion.weights[name]
        if weight == 0.0:
            continue
        rank_by(criterion, name, eras, sums, &part)
        if name == DIRECTIONAL and part.primary < criterion.min_direction_agreement:
            return False
        if name == GAIN or name == INVARIANT:
            weight *= gain_unit(criterion, eras.sum_hessians, eras.gradient_variance)
        rank.primary += weight * part.primary
    return rank.primary > 0.0


cdef inline bint suffices(
    const criterion_struct * criterion, double gain
) noexcept nogil:
    """Return whether a pooled gain exceeds `min_gain`; True if `min_gain` is 0."""
    return criterion.min_gain <= 0.0 or gain > criterion.min_gain


cdef inline bint rank_split(
    const criterion_struct * criterion, const eras_struct * eras, const double * sums,
    double gain,        # pooled
    split_rank * rank,  # OUT, complete if the result is True
) noexcept nogil:
    """Set a split's rank; return False if the split is not admissible or not valid."""
    cdef bint is_valid
    if sums[0] < criterion.min_covered_eras or not suffices(criterion, gain):
        return False
    rank.secondary = 0.0
    rank.gain = gain
    if criterion.name == BLEND:
        is_valid = rank_blend(criterion, eras, sums, rank)
    else:
        is_valid = rank_by(criterion, criterion.name, eras, sums, rank)
    if criterion.name != TIME_ROBUST and criterion.name != CUSTOM:
        rank.priority = rank.primary
    return is_valid


cdef inline double gain_beyond_rounding(
    const criterion_struct * criterion, double loss  # of the node
) noexcept nogil:
    """Return the bound above which a pooled gain is more than rounding. Splits between
    equal rows have a negative gain, as scikit-learn adds 1e-15 to each sum of hessians.
    """
    return max(criterion.min_gain, 1e-14 * fabs(loss))


cdef inline criterion_struct gain_alone(
    const criterion_struct * criterion, int min_covered_eras
) noexcept nogil:
    """Return a copy of the criterion that ranks splits by the pooled gain only."""
    cdef criterion_struct by_gain = criterion[0]
    by_gain.name = GAIN
    memset(&by_gain.traits, 0, sizeof(by_gain.traits))
    by_gain.traits.is_at_most_gain = True
    by_gain.min_covered_eras = min_covered_eras
    return by_gain


cdef inline criterion_struct directions_alone(
    const criterion_struct * criterion
) noexcept nogil:
    """Return a copy of the criterion DIRECTIONAL that does not break ties by gains."""
    cdef:
        criterion_struct by_direction = criterion[0]
        int n_fields = criterion.n_fields
    by_direction.breaks_ties = False
    list_statistics(&by_direction)
    by_direction.n_fields = n_fields  # the same layout of lanes
    return by_direction


cdef inline bint keeps_directions_alone(
    const criterion_struct * criterion
) noexcept nogil:
    """Return whether the sums over eras are sums of directions only, and a single row
    on each side is enough for an era to count.
    """
    return (
        criterion.n_statistics == 1
        and criterion.statistics[0] == DIRECTIONS
        and criterion.min_samples_per_era == 1
        and criterion.l2_regularization == 0.0
    )


cdef inline criterion_struct with_share_of(
    const criterion_struct * criterion, double largest_gain  # of a node's splits
) noexcept nogil:
    """Return a copy of the criterion whose `min_gain` is at least `min_gain_share`
    times `largest_gain`.
    """
    cdef:
        criterion_struct sharing = criterion[0]
        # Reaching the share suffices, but `min_gain` is exceeded: 1e-12 for rounding.
        double share = criterion.min_gain_share * largest_gain * (1.0 - 1e-12)
    if share > sharing.min_gain:
        sharing.min_gain = share
    return sharing


cdef inline bint may_outrank(
    const criterion_struct * criterion,
    double gain,       # less the penalty of the split's feature
    const split_rank * best,
) noexcept nogil:
    """Return whether a split with this gain may rank above, or equal to, `best`."""
    return not criterion.traits.is_at_most_gain or gain >= best.primary
