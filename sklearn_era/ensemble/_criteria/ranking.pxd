# How each criterion ranks a candidate split, by what all eras have said of it.
#
# A criterion is one function, which fills a `split_rank` and says whether the split is
# valid.

from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from .aggregation cimport (
    boltzmann, direction_agreement, kind_of_alpha, mean_less_deviation,
    spread_of_ratios, variance,
)
from .criterion cimport InvarianceStatistic, SplitCriterion, criterion_struct
from .split_sums cimport era_terms, eras_struct, gain_unit, split_sums


cdef struct split_rank:
    # What decides between two admissible splits, compared in the order of the fields.
    double primary    # the criterion's key
    double secondary  # a second key, for criteria that compare pairs; else 0
    double gain       # pooled gain: what breaks ties of the keys
    # In place of `primary` where splits of different nodes are compared.
    double expansion


cdef inline double aggregated_gain(
    const criterion_struct * criterion, int n_eras, const split_sums * sums
) noexcept nogil:
    """B_alpha(gain_1, ..., gain_M)."""
    return boltzmann(kind_of_alpha(criterion.boltzmann_alpha), sums.gains, n_eras)


cdef inline double invariance_penalty(
    const criterion_struct * criterion, const split_sums * sums
) noexcept nogil:
    """How much a statistic differs between the eras that are informative.

    Liao et al. (2024), Invariant Random Forest: equation 16 for a ratio, equation 22
    for a difference.
    """
    if criterion.invariance_statistic == InvarianceStatistic.RATIO:
        return spread_of_ratios(&sums.statistics)
    return variance(&sums.statistics)


cdef inline bint rank_era(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_sums * sums,
    split_rank * rank,
) noexcept nogil:
    """B_alpha(gain_1, ..., gain_M). DeLise (2023), definition 6, equation 36."""
    rank.primary = aggregated_gain(criterion, eras.n_eras, sums)
    return rank.primary > 0.0


cdef inline bint rank_directional(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_sums * sums,
    split_rank * rank,
) noexcept nogil:
    """D = |sum_j sign(v_Lj - v_Rj)| / M. DeLise (2023), definition 7, equation 39.

    About n_eras / 2 distinct agreements exist, so ties are the rule; the smoothed gain
    settles them.
    """
    rank.primary = direction_agreement(sums.directions, eras.n_eras)
    if rank.primary == 0.0 or rank.primary < criterion.min_direction_agreement:
        return False
    if not criterion.traits.aggregates_gains:
        return True  # see `directions_alone`
    rank.secondary = aggregated_gain(criterion, eras.n_eras, sums)
    return rank.secondary > 0.0


cdef inline bint rank_time_robust(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_sums * sums,
    split_rank * rank,
) noexcept nogil:
    """-max_j L_j or -mean_j L_j. Moneda (2021), equations 5.1 and 5.2.

    Valid by the decrease ID = agg_j (n_j / N_j) (L_before,j - L_j), equation 5.4, which
    also orders the nodes, as impurities of different nodes say little. An era that is
    not informative has its impurity before the split in the mean, and no part in the
    maximum. Gradients that overflow have no finite gain, and may pass for a decrease.
    """
    if criterion.takes_worst_era:
        rank.primary = -sums.impurities.worst
        rank.expansion = sums.impurities.least
    else:
        rank.primary = -sums.impurities.impurities / eras.n_eras
        rank.expansion = sums.impurities.decreases / eras.n_eras
    if criterion.ranks_by_decrease:
        rank.primary = rank.expansion
    return (
        sums.impurities.n_informative > 0.0
        and rank.expansion > criterion.min_impurity_decrease
        and rank.gain < INFINITY
    )


cdef inline bint rank_invariant(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_sums * sums,
    split_rank * rank,
) noexcept nogil:
    """gain - lambda H penalty. Liao et al. (2024), equation 15, times the node's H.

    Their objective is an average over the node's rows, the gain a sum. The penalty
    ranks splits and forbids none, and so the key may be negative.
    """
    cdef double penalty = eras.sum_hessians * invariance_penalty(criterion, sums)
    rank.primary = rank.gain
    if penalty > 0.0:
        rank.primary -= criterion.invariance_penalty * penalty
    return rank.gain > 0.0


cdef inline bint rank_vrex(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_sums * sums,
    split_rank * rank,
) noexcept nogil:
    """mean_j gain_j - lambda std_j gain_j; see `mean_less_deviation`."""
    rank.primary = mean_less_deviation(
        &sums.gain_moments, criterion.invariance_penalty
    )
    return rank.primary > 0.0


cdef inline bint rank_held_out(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_sums * sums,
    split_rank * rank,
) noexcept nogil:
    """sum_j of what the split saves in era j by values of the others: `held_out_gain`.

    As eras become many and alike it tends to the pooled gain. Normalised gains are
    shares, and so their mean stands in for their sum.
    """
    rank.primary = sums.held_out
    if criterion.normalize_era_gain:
        rank.primary /= eras.n_eras
    return rank.primary > 0.0


cdef inline bint rank_blend(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_sums * sums,
    split_rank * rank,
) noexcept nogil:
    """The weighted sum of keys; an agreement that is asked for stays asked for."""
    cdef:
        const double * weights = &criterion.weights[0]
        split_rank part
        double agreement
        double unit = gain_unit(
            criterion, eras.sum_hessians, eras.gradient_variance
        )

    rank.primary = criterion.weight_gain * unit * rank.gain
    if weights[<int> SplitCriterion.INVARIANT] > 0.0:
        part.gain = rank.gain
        rank_invariant(criterion, eras, sums, &part)
        rank.primary += weights[<int> SplitCriterion.INVARIANT] * unit * part.primary
    if weights[<int> SplitCriterion.VREX] > 0.0:
        rank_vrex(criterion, eras, sums, &part)
        rank.primary += weights[<int> SplitCriterion.VREX] * part.primary
    if weights[<int> SplitCriterion.HELD_OUT] > 0.0:
        rank_held_out(criterion, eras, sums, &part)
        rank.primary += weights[<int> SplitCriterion.HELD_OUT] * part.primary
    if weights[<int> SplitCriterion.ERA] > 0.0:
        rank.primary += weights[<int> SplitCriterion.ERA] * aggregated_gain(
            criterion, eras.n_eras, sums
        )
    if weights[<int> SplitCriterion.DIRECTIONAL] > 0.0:
        agreement = direction_agreement(sums.directions, eras.n_eras)
        if agreement < criterion.min_direction_agreement:
            return False
        rank.primary += weights[<int> SplitCriterion.DIRECTIONAL] * agreement
    return rank.primary > 0.0


cdef inline bint suffices(
    const criterion_struct * criterion, double gain
) noexcept nogil:
    """Whether the pooled gain of a split is enough."""
    return criterion.min_gain <= 0.0 or gain > criterion.min_gain


cdef inline bint rank_split(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_sums * sums,
    double gain,        # the pooled one
    split_rank * rank,  # OUT, filled where the result is True
) noexcept nogil:
    """Rank a candidate split; False where it is not admissible or not valid.

    Of every criterion it is asked that enough eras have enough rows on both sides, and
    that the pooled gain suffices.
    """
    cdef bint is_valid

    if sums.n_covered < criterion.min_covered_eras or not suffices(criterion, gain):
        return False
    rank.secondary = 0.0
    rank.gain = gain
    if criterion.name == SplitCriterion.ERA:
        is_valid = rank_era(criterion, eras, sums, rank)
    elif criterion.name == SplitCriterion.DIRECTIONAL:
        is_valid = rank_directional(criterion, eras, sums, rank)
    elif criterion.name == SplitCriterion.TIME_ROBUST:
        return rank_time_robust(criterion, eras, sums, rank)
    elif criterion.name == SplitCriterion.INVARIANT:
        is_valid = rank_invariant(criterion, eras, sums, rank)
    elif criterion.name == SplitCriterion.VREX:
        is_valid = rank_vrex(criterion, eras, sums, rank)
    elif criterion.name == SplitCriterion.HELD_OUT:
        is_valid = rank_held_out(criterion, eras, sums, rank)
    else:
        is_valid = rank_blend(criterion, eras, sums, rank)
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
    if criterion.name == SplitCriterion.TIME_ROBUST:
        return rank.expansion > criterion.min_impurity_decrease
    if criterion.name == SplitCriterion.INVARIANT:
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
    if criterion.name == SplitCriterion.INVARIANT:
        return gain_alone(criterion, criterion.min_covered_eras)
    unit = criterion[0]
    if criterion.name == SplitCriterion.TIME_ROBUST:
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
    by_gain.name = SplitCriterion.BLEND
    memset(&by_gain.traits, 0, sizeof(by_gain.traits))
    memset(by_gain.weights, 0, sizeof(by_gain.weights))
    by_gain.weight_gain = 1.0
    by_gain.min_direction_agreement = 0.0
    by_gain.traits.is_at_most_gain = True
    by_gain.min_covered_eras = min_covered_eras
    by_gain.normalize_era_gain = False
    return by_gain


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


cdef inline bint era_rules_out(
    const criterion_struct * criterion,
    const era_terms * terms,
    double impurity,    # of the era before the split
    double cost,        # of the split's feature
    const split_rank * best,
) noexcept nogil:
    """Whether an era is worse off than the worst of the best split thus far.

    For criteria whose worst era decides.
    """
    cdef double key = -(impurity - terms.decrease)
    if criterion.ranks_by_decrease:
        key = terms.share
    return terms.informative > 0.0 and key - cost < best.primary


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
