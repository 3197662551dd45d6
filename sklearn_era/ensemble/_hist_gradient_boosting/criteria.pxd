# The split criteria: how each of them ranks the candidate splits of a node.
#
# A criterion is one function, which fills a `split_rank` and says whether the split is
# valid. What it may look at is in `split_struct`, of the candidate, and `eras_struct`,
# of the node. The statistics of one era are in era_statistics.pxd, the ways to sum
# them up over eras in aggregation.pxd.

from sklearn.ensemble._hist_gradient_boosting.common cimport hist_struct

from sklearn_era.ensemble._hist_gradient_boosting.aggregation cimport (
    boltzmann,
    direction_agreement,
    mean_less_deviation,
    spread_of_ratios,
    variance,
)
from sklearn_era.ensemble._hist_gradient_boosting.era_statistics cimport (
    compare_era,
    era_changing_rate,
    era_effect,
    era_ratio,
    impurity_decrease,
    is_covered,
    is_informative,
)
from sklearn_era.ensemble._hist_gradient_boosting.node_formulas cimport node_value


# How a split criterion ranks its candidates. The names are those of the estimators'
# `split_criterion`, in lower case; "gain" is missing because it is scikit-learn's own
# splitter that serves it. BLEND is what a mapping of names to weights stands for.
cpdef enum SplitCriterion:
    ERA = 0
    DIRECTIONAL = 1
    TIME_ROBUST = 2
    INVARIANT = 3
    VREX = 4
    BLEND = 5


# The names, in lower case, are those of the estimators' `invariance_statistic`.
cpdef enum InvarianceStatistic:
    EFFECT = 0
    CHANGING_RATE = 1
    RATIO = 2


cdef struct criterion_struct:
    # A criterion with its parameters, as the estimators call them.
    SplitCriterion name
    double boltzmann_alpha
    double min_direction_agreement
    unsigned int min_samples_per_era
    int min_covered_eras          # `min_era_coverage`, as a number of eras
    bint normalize_era_gain
    bint takes_worst_era          # `period_aggregation`: "max", or else "mean"
    double invariance_penalty
    InvarianceStatistic invariance_statistic
    double min_impurity_decrease  # of TIME_ROBUST; for others it is `min_gain`
    # Of BLEND, the weight of each key.
    double weight_gain
    double weight_era
    double weight_directional
    double weight_invariant
    double weight_vrex
    # Of the tree, and set when one is started.
    double l2_regularization
    double min_gain               # a pooled gain has to exceed it, if it is not 0


cdef struct eras_struct:
    # The eras of a node; arrays have shape (n_eras,).
    int n_eras
    const double * impurities   # of each era in the node; used by TIME_ROBUST only
    const double * era_sizes    # rows of each era in the training set; same
    double sum_hessians         # of the node, over all eras
    double gradient_variance    # at the root of the tree; see `root_variance`


cdef struct split_struct:
    # A candidate split, era by era; arrays have shape (n_eras,).
    const hist_struct * left   # sums over the rows of the left side
    const hist_struct * right  # and over those of the right side. With the statistic
    #                            RATIO, positive weight and weight, not G and H.
    double gain                # the pooled gain
    double * values            # scratch


cdef struct split_rank:
    # What decides between two admissible splits, compared in the order of the fields.
    double primary    # the criterion's key
    double secondary  # a second key, for criteria that compare pairs; else 0
    double gain       # pooled gain: what breaks ties of the keys
    # In place of `primary` where splits of different nodes are compared.
    double expansion


cdef inline bint is_admissible(
    const criterion_struct * criterion, int n_eras, const split_struct * split
) noexcept nogil:
    """Whether enough eras have enough rows on both sides, and the pooled gain suffices.

    Asked of every criterion.
    """
    cdef:
        int n_missing = 0
        int most_missing = n_eras - criterion.min_covered_eras
        int era

    if criterion.min_gain > 0.0 and not split.gain > criterion.min_gain:
        return False
    for era in range(n_eras):
        if not is_covered(
            &split.left[era], &split.right[era], criterion.min_samples_per_era
        ):
            n_missing += 1
            if n_missing > most_missing:
                return False
    return True


cdef inline double gain_unit(
    const criterion_struct * criterion, double sum_hessians, double gradient_variance
) noexcept nogil:
    """What gains are multiplied by: 1, or 1 / (H V) with `normalize_era_gain`.

    With V the variance of the gradients at the root, by unit of hessian, the result is
    the share of it that the split explains: a number without a unit. A tree whose
    gradients do not vary has nothing to explain, and no gain.
    """
    cdef double unit = sum_hessians * gradient_variance
    if not criterion.normalize_era_gain:
        return 1.0
    return 1.0 / unit if unit > 0.0 else 0.0


cdef inline double era_values(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_struct * split,
    double * gains,  # OUT, (n_eras,)
) noexcept nogil:
    """The gain of each era, and as the result the agreement of their directions.

    An era that is not informative has gain 0 and direction 0.
    """
    cdef:
        const hist_struct * left
        const hist_struct * right
        long sum_directions = 0
        int direction
        int era

    for era in range(eras.n_eras):
        left = &split.left[era]
        right = &split.right[era]
        gains[era] = compare_era(
            left, right,
            criterion.min_samples_per_era, criterion.l2_regularization,
            &direction,
        )
        sum_directions += direction
        if criterion.normalize_era_gain:
            gains[era] *= gain_unit(
                criterion,
                left.sum_hessians + right.sum_hessians,
                eras.gradient_variance,
            )
    return direction_agreement(sum_directions, eras.n_eras)


cdef inline bint rank_era(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_struct * split,
    split_rank * rank,
) noexcept nogil:
    """B_alpha(gain_1, ..., gain_M). DeLise (2023), definition 6, equation 36."""
    era_values(criterion, eras, split, split.values)
    rank.primary = boltzmann(split.values, eras.n_eras, criterion.boltzmann_alpha)
    return rank.primary > 0.0


cdef inline bint rank_directional(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_struct * split,
    split_rank * rank,
) noexcept nogil:
    """D = |sum_j sign(v_Lj - v_Rj)| / M. DeLise (2023), definition 7, equation 39.

    About n_eras / 2 distinct agreements exist, so ties are the rule; the smoothed gain
    settles them.
    """
    rank.primary = era_values(criterion, eras, split, split.values)
    rank.secondary = boltzmann(split.values, eras.n_eras, criterion.boltzmann_alpha)
    return (
        rank.primary > 0.0
        and rank.primary >= criterion.min_direction_agreement
        and rank.secondary > 0.0
    )


cdef inline bint rank_time_robust(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_struct * split,
    split_rank * rank,
) noexcept nogil:
    """-max_j L_j or -mean_j L_j. Moneda (2021), equations 5.1 and 5.2.

    Valid by the decrease ID = agg_j (n_j / N_j) (L_before,j - L_j), equation 5.4, which
    also orders the nodes, as impurities of different nodes say little. An era that is
    not informative has its impurity before the split in the mean, and no part in the
    maximum.
    """
    cdef:
        const hist_struct * left
        const hist_struct * right
        double before, decrease, share
        double worst = 0.0
        double total = 0.0
        double least_decrease = 0.0
        double total_decrease = 0.0
        int n_informative = 0
        int era

    for era in range(eras.n_eras):
        left = &split.left[era]
        right = &split.right[era]
        before = eras.impurities[era]
        if not is_informative(left, right, criterion.min_samples_per_era):
            total += before
            continue
        decrease = impurity_decrease(left, right)
        total += max(before - decrease, 0.0)  # rounding may go below
        worst = max(worst, before - decrease)
        share = (<double> left.count + right.count) / eras.era_sizes[era]
        total_decrease += share * decrease
        if n_informative == 0 or share * decrease < least_decrease:
            least_decrease = share * decrease
        n_informative += 1

    if criterion.takes_worst_era:
        rank.primary = -worst
        rank.expansion = least_decrease
    else:
        rank.primary = -total / eras.n_eras
        rank.expansion = total_decrease / eras.n_eras
    return n_informative > 0 and rank.expansion > criterion.min_impurity_decrease


cdef inline double invariance_penalty(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_struct * split,
    double * values,  # scratch
) noexcept nogil:
    """How much a statistic differs between the eras that are informative.

    Liao et al. (2024), Invariant Random Forest: equation 16 for a ratio, equation 22
    for a difference.
    """
    cdef:
        double l2 = criterion.l2_regularization
        const hist_struct * left
        const hist_struct * right
        double value_left
        int n_values = 0
        int era

    for era in range(eras.n_eras):
        left = &split.left[era]
        right = &split.right[era]
        if not is_informative(left, right, criterion.min_samples_per_era):
            continue
        if criterion.invariance_statistic == InvarianceStatistic.RATIO:
            values[n_values] = era_ratio(
                left.sum_gradients, left.sum_hessians,
                right.sum_gradients, right.sum_hessians,
            )
        else:
            value_left = node_value(left.sum_gradients, left.sum_hessians, l2)
            if criterion.invariance_statistic == InvarianceStatistic.EFFECT:
                values[n_values] = era_effect(
                    value_left,
                    node_value(right.sum_gradients, right.sum_hessians, l2),
                )
            else:
                values[n_values] = era_changing_rate(left, right, value_left, l2)
        n_values += 1
    if criterion.invariance_statistic == InvarianceStatistic.RATIO:
        return spread_of_ratios(values, n_values)
    return variance(values, n_values)


cdef inline bint rank_invariant(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_struct * split,
    split_rank * rank,
) noexcept nogil:
    """gain - lambda H penalty. Liao et al. (2024), equation 15, times the node's H.

    Their objective is an average over the node's rows, the gain a sum. The penalty
    ranks splits and forbids none, and so the key may be negative.
    """
    cdef double penalty = eras.sum_hessians * invariance_penalty(
        criterion, eras, split, split.values
    )
    rank.primary = split.gain
    if penalty > 0.0:
        rank.primary -= criterion.invariance_penalty * penalty
    return split.gain > 0.0


cdef inline bint rank_vrex(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_struct * split,
    split_rank * rank,
) noexcept nogil:
    """mean_j gain_j - lambda std_j gain_j; see `mean_less_deviation`."""
    era_values(criterion, eras, split, split.values)
    rank.primary = mean_less_deviation(
        split.values, eras.n_eras, criterion.invariance_penalty
    )
    return rank.primary > 0.0


cdef inline bint rank_blend(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_struct * split,
    split_rank * rank,
) noexcept nogil:
    """The weighted sum of keys; an agreement that is asked for stays asked for."""
    cdef:
        split_rank part
        double agreement
        double unit = gain_unit(
            criterion, eras.sum_hessians, eras.gradient_variance
        )

    rank.primary = criterion.weight_gain * unit * split.gain
    if criterion.weight_invariant > 0.0:
        rank_invariant(criterion, eras, split, &part)
        rank.primary += criterion.weight_invariant * unit * part.primary
    # The other keys are made of the same gains. (Scratch of the invariant one before.)
    if (
        criterion.weight_vrex > 0.0
        or criterion.weight_era > 0.0
        or criterion.weight_directional > 0.0
    ):
        agreement = era_values(criterion, eras, split, split.values)
        if (
            criterion.weight_directional > 0.0
            and agreement < criterion.min_direction_agreement
        ):
            return False
        if criterion.weight_vrex > 0.0:
            rank.primary += criterion.weight_vrex * mean_less_deviation(
                split.values, eras.n_eras, criterion.invariance_penalty
            )
        if criterion.weight_era > 0.0:
            rank.primary += criterion.weight_era * boltzmann(
                split.values, eras.n_eras, criterion.boltzmann_alpha
            )
        rank.primary += criterion.weight_directional * agreement
    return rank.primary > 0.0


cdef inline bint rank_split(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const split_struct * split,
    split_rank * rank,  # OUT, filled where the result is True
) noexcept nogil:
    """Rank a candidate split; False where it is not admissible or not valid."""
    cdef bint is_valid

    if not is_admissible(criterion, eras.n_eras, split):
        return False
    rank.secondary = 0.0
    rank.gain = split.gain
    if criterion.name == SplitCriterion.ERA:
        is_valid = rank_era(criterion, eras, split, rank)
    elif criterion.name == SplitCriterion.DIRECTIONAL:
        is_valid = rank_directional(criterion, eras, split, rank)
    elif criterion.name == SplitCriterion.TIME_ROBUST:
        return rank_time_robust(criterion, eras, split, rank)
    elif criterion.name == SplitCriterion.INVARIANT:
        is_valid = rank_invariant(criterion, eras, split, rank)
    elif criterion.name == SplitCriterion.VREX:
        is_valid = rank_vrex(criterion, eras, split, rank)
    else:
        is_valid = rank_blend(criterion, eras, split, rank)
    rank.expansion = rank.primary
    return is_valid


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


cdef class Criterion:
    cdef criterion_struct params
