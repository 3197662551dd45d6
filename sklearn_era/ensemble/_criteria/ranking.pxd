# The rank of a candidate split, by the sums of all eras: which splits are admissible,
# blends, what features cost, and which of two splits is the better one.

from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from .criterion cimport criterion_struct, split_rank
from .dispatch cimport (
    BLEND, DIRECTIONAL, DIRECTIONS, GAIN, INVARIANT, TIME_ROBUST, list_statistics,
    rank_by,
)
from .formulas cimport eras_struct, gain_unit


cdef inline bint rank_blend(
    const criterion_struct * criterion, const eras_struct * eras,
    const double * sums, split_rank * rank,
) noexcept nogil:
    """The weighted sum of keys; an agreement that is asked for stays asked for."""
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
    """Whether the pooled gain of a split is enough."""
    return criterion.min_gain <= 0.0 or gain > criterion.min_gain


cdef inline bint rank_split(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const double * sums,
    double gain,        # the pooled one
    split_rank * rank,  # OUT, filled where the result is True
) noexcept nogil:
    """Rank a candidate split; False where it is not admissible or not valid.

    Of every criterion it is asked that enough eras have enough rows on both sides, and
    that the pooled gain suffices.
    """
    cdef bint is_valid
    if sums[0] < criterion.min_covered_eras or not suffices(criterion, gain):
        return False
    rank.secondary = 0.0
    rank.gain = gain
    if criterion.name == BLEND:
        is_valid = rank_blend(criterion, eras, sums, rank)
    else:
        is_valid = rank_by(criterion, criterion.name, eras, sums, rank)
    if criterion.name != TIME_ROBUST:
        rank.expansion = rank.primary
    return is_valid


cdef inline bint penalise(
    const criterion_struct * criterion,
    double cost,         # share of the largest key, of a `penalty_unit`
    split_rank * rank,   # IN, of a valid split, and OUT
) noexcept nogil:
    """Have a split pay for its feature; False where it is not valid any more."""
    rank.primary -= cost
    rank.expansion -= cost
    if criterion.name == TIME_ROBUST:
        return rank.expansion > criterion.min_impurity_decrease
    if criterion.name == INVARIANT:
        return rank.gain - cost > 0.0
    return rank.primary > 0.0


cdef inline criterion_struct penalty_unit(
    const criterion_struct * criterion
) noexcept nogil:
    """The criterion whose largest key, among the same splits, penalties are shares of.

    That is the key itself, where it has to be positive. Of INVARIANT it is the pooled
    gain, and of TIME_ROBUST the decrease of impurity.
    """
    cdef criterion_struct unit
    if criterion.name == INVARIANT:
        return gain_alone(criterion, criterion.min_covered_eras)
    unit = criterion[0]
    if criterion.name == TIME_ROBUST:
        unit.ranks_by_decrease = True
    return unit


cdef inline double gain_beyond_rounding(
    const criterion_struct * criterion, double loss  # of the node
) noexcept nogil:
    """What a pooled gain has to exceed, not to be what rounding leaves of the loss.

    scikit-learn adds 1e-15 to each sum of hessians, for which rows that are all alike
    lose more than they gain.
    """
    return max(criterion.min_gain, 1e-14 * fabs(loss))


cdef inline criterion_struct gain_alone(
    const criterion_struct * criterion, int min_covered_eras
) noexcept nogil:
    """The criterion that ranks splits by their pooled gain, whatever eras say."""
    cdef criterion_struct by_gain = criterion[0]
    by_gain.name = GAIN
    memset(&by_gain.traits, 0, sizeof(by_gain.traits))
    by_gain.traits.is_at_most_gain = True
    by_gain.min_covered_eras = min_covered_eras
    return by_gain


cdef inline criterion_struct directions_alone(
    const criterion_struct * criterion
) noexcept nogil:
    """The criterion DIRECTIONAL without gains, which it needs for ties only."""
    cdef:
        criterion_struct by_direction = criterion[0]
        int n_fields = criterion.n_fields
    by_direction.breaks_ties = False
    list_statistics(&by_direction)
    by_direction.n_fields = n_fields  # of the same lanes
    return by_direction


cdef inline bint keeps_directions_alone(
    const criterion_struct * criterion
) noexcept nogil:
    """Whether there is nothing to add up but the directions of eras with a row a side.
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
    """The criterion among the splits of a node that have their share of its gain."""
    cdef:
        criterion_struct sharing = criterion[0]
        # The share suffices, where the least gain has to be exceeded; but for the last
        # digits of sums.
        double share = criterion.min_gain_share * largest_gain * (1.0 - 1e-12)
    if share > sharing.min_gain:
        sharing.min_gain = share
    return sharing


cdef inline bint may_outrank(
    const criterion_struct * criterion,
    double gain,       # less what the split's feature costs
    const split_rank * best,
) noexcept nogil:
    """Whether a split of a pooled gain can rank above or beside another of its node.

    By its gain alone, before anything is known of the eras: penalties only take away.
    """
    return not criterion.traits.is_at_most_gain or gain >= best.primary


cdef inline int compare_ranks(
    const split_rank * a, const split_rank * b
) noexcept nogil:
    """1 if a ranks above b, -1 if below, 0 where only the split's place can decide.

    Of two splits of one node.
    """
    if a.primary != b.primary:
        return 1 if a.primary > b.primary else -1
    if a.secondary != b.secondary:
        return 1 if a.secondary > b.secondary else -1
    if a.gain != b.gain:
        return 1 if a.gain > b.gain else -1
    return 0
