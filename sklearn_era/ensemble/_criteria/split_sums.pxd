# What the eras say of a candidate split, added up era by era.
#
# The eras of a node come one after the other, and what is kept of them is a few running
# sums: the memory for a split does not grow with the number of eras. The statistics of
# one era are in era_statistics.pxd, the ways to sum them up in aggregation.pxd.
#
# The commonest criteria add several eras at a time, each to the sums of a lane of a
# vector. What is done for a lane is free of branches but for those on the criterion.

from libc.math cimport INFINITY
from libc.string cimport memset

from .aggregation cimport (
    add_to_boltzmann,
    add_to_moments,
    boltzmann_sums,
    merge_boltzmann,
    moment_sums,
)
from .criterion cimport InvarianceStatistic, criterion_struct
from .era_statistics cimport (
    era_changing_rate,
    era_contrast,
    era_effect,
    era_gain,
    era_ratio,
    era_sums,
    impurity_decrease,
    is_covered,
    is_informative,
    neutral_unless,
    split_direction,
)


cdef enum:
    LANES = 8  # doubles in the widest of vectors


cdef struct eras_struct:
    # The eras of a node; arrays have shape (n_eras,).
    int n_eras
    const double * impurities   # of each era in the node; used by TIME_ROBUST only
    const double * era_sizes    # rows of each era in the training set; same
    double sum_hessians         # of the node, over all eras
    double gradient_variance    # at the root of the tree; see `root_variance`


cdef struct split_sums:
    # What the eras added thus far have said of a candidate split; zeros stand for none.
    # A criterion keeps what it needs.
    double n_covered
    double directions           # sum of directions
    double gains                # sum of gains; at alpha = -inf or inf, the extreme one
    double n_gains              # eras added; or, where sums are differences, those with
    #                             a gain other than 0
    boltzmann_sums boltzmann    # of gains
    moment_sums gain_moments
    moment_sums effect_moments
    double n_informative
    double smallest             # RATIO: of the ratios. TIME_ROBUST: of the decreases.
    #                             VREX: of the gains
    double largest              # RATIO: of the ratios. TIME_ROBUST: of the impurities
    double impurities           # sum of impurities after the split
    double decreases            # and of their decreases


cdef struct lane_sums:
    # Some fields of `split_sums`, for the eras of each lane on their own: what ERA and
    # DIRECTIONAL need.
    double[8] n_covered
    double[8] directions
    double[8] gains       # at a finite alpha other than 0: the extreme of `boltzmann`
    double[8] weights     # at any alpha but 0, and above 0 where an era was added
    double[8] offsets


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


cdef inline bint uses_boltzmann(const criterion_struct * criterion) noexcept nogil:
    """Whether gains are averaged with weights: not at alpha = 0, -inf or inf."""
    return (
        criterion.boltzmann_alpha != 0.0
        and -INFINITY < criterion.boltzmann_alpha < INFINITY
    )


cdef inline bint sums_up(const criterion_struct * criterion) noexcept nogil:
    """Whether all that a criterion keeps of eras are sums of one number an era each."""
    return criterion.traits.keeps_lane_sums and criterion.boltzmann_alpha == 0.0


cdef struct era_comparison:
    # What an era says of a split. If it is not informative: gain and direction 0.
    double gain
    double direction
    double covered    # 0 or 1


cdef inline era_comparison compare_sides(
    era_sums left, era_sums right, double min_samples, double l2_regularization
) noexcept nogil:
    """Compare both sides of a split in an era, by a gain that is not normalised."""
    cdef:
        double informative = is_informative(left, right, min_samples)
        double contrast
        era_comparison result
    result.covered = is_covered(left, right, min_samples)
    left = neutral_unless(informative, left)
    right = neutral_unless(informative, right)
    contrast = era_contrast(left, right, l2_regularization)
    result.gain = era_gain(left, right, contrast, l2_regularization)
    result.direction = split_direction(contrast)
    return result


cdef inline void add_lanes(
    const criterion_struct * criterion, const lane_sums * lanes, split_sums * sums
) noexcept nogil:
    """Add up the lanes."""
    cdef:
        boltzmann_sums of_lane
        int i
    for i in range(LANES):
        sums.n_covered += lanes.n_covered[i]
        sums.directions += lanes.directions[i]
        if criterion.boltzmann_alpha == 0.0:
            sums.gains += lanes.gains[i]
        elif lanes.weights[i] > 0.0:
            if uses_boltzmann(criterion):
                of_lane.extreme = lanes.gains[i]
                of_lane.weights = lanes.weights[i]
                of_lane.offsets = lanes.offsets[i]
                sums.boltzmann = merge_boltzmann(
                    sums.boltzmann, of_lane, criterion.boltzmann_alpha
                )
            else:
                add_extreme(criterion, lanes.gains[i], sums)


cdef inline void add_extreme(
    const criterion_struct * criterion, double gain, split_sums * sums
) noexcept nogil:
    """Add a gain at alpha = -inf, the minimum, or inf, the maximum."""
    if sums.n_gains == 0.0 or (gain - sums.gains) * criterion.boltzmann_alpha > 0.0:
        sums.gains = gain
    sums.n_gains += 1.0


cdef inline void add_gain(
    const criterion_struct * criterion, double gain, double count, split_sums * sums
) noexcept nogil:
    """Add the gain of an era, or of `count` that have the same."""
    cdef double alpha = criterion.boltzmann_alpha
    if criterion.traits.keeps_moments:
        if sums.n_gains == 0.0 or gain < sums.smallest:
            sums.smallest = gain
        add_to_moments(&sums.gain_moments, sums.n_gains == 0.0, gain, count)
    if not criterion.traits.aggregates_gains:
        sums.n_gains += count
    elif uses_boltzmann(criterion):
        sums.boltzmann = add_to_boltzmann(sums.boltzmann, gain, count, alpha)
        sums.n_gains += count
    elif alpha == 0.0:
        sums.gains += count * gain
        sums.n_gains += count
    else:
        add_extreme(criterion, gain, sums)


cdef struct era_terms:
    # What an era says of a split, whatever the others say; a criterion sets what it
    # needs.
    double covered      # 0 or 1
    double informative  # 0 or 1
    double gain         # normalised, if gains are to be
    double direction
    double statistic    # whose variation over eras is penalised; if informative
    double decrease     # of the impurity; if informative
    double share        # the decrease, weighted by the era's share of rows


cdef inline double invariance_statistic(
    const criterion_struct * criterion, era_sums left, era_sums right
) noexcept nogil:
    """The statistic whose variation over eras is penalised, of an informative era."""
    cdef double l2 = criterion.l2_regularization
    if criterion.invariance_statistic == InvarianceStatistic.RATIO:
        return era_ratio(left, right)
    if criterion.invariance_statistic == InvarianceStatistic.EFFECT:
        return era_effect(left, right, l2)
    return era_changing_rate(left, right, l2)


cdef inline era_terms look_at_era(
    const criterion_struct * criterion,
    const eras_struct * eras,
    int era,
    era_sums left,
    era_sums right,
) noexcept nogil:
    """What an era says of a split, for any criterion."""
    cdef:
        double min_samples = criterion.min_samples_per_era
        era_comparison comparison
        era_terms terms

    memset(&terms, 0, sizeof(terms))
    terms.covered = is_covered(left, right, min_samples)
    terms.informative = is_informative(left, right, min_samples)
    if criterion.traits.compares_gains:
        comparison = compare_sides(
            left, right, min_samples, criterion.l2_regularization
        )
        terms.direction = comparison.direction
        terms.gain = comparison.gain * gain_unit(
            criterion, left.hessians + right.hessians, eras.gradient_variance
        )
    if terms.informative == 0.0:
        return terms
    if criterion.traits.keeps_impurities:
        terms.decrease = impurity_decrease(left, right)
        terms.share = (
            (left.count + right.count) / eras.era_sizes[era] * terms.decrease
        )
    if criterion.traits.keeps_statistics:
        terms.statistic = invariance_statistic(criterion, left, right)
    return terms


cdef inline void add_invariance(
    const criterion_struct * criterion, double statistic, split_sums * sums
) noexcept nogil:
    """Add the statistic of an informative era."""
    cdef bint is_first = sums.n_informative == 0.0
    sums.n_informative += 1.0
    if criterion.invariance_statistic == InvarianceStatistic.RATIO:
        if is_first or statistic < sums.smallest:
            sums.smallest = statistic
        if is_first or statistic > sums.largest:
            sums.largest = statistic
        return
    add_to_moments(&sums.effect_moments, is_first, statistic, 1.0)


cdef inline void add_impurity(
    const era_terms * terms,
    double before,        # impurity of the era before the split
    split_sums * sums,
) noexcept nogil:
    """Add the impurity of an era after the split, and its decrease."""
    if terms.informative == 0.0:
        sums.impurities += before
        return
    # Rounding may go below 0.
    sums.impurities += max(before - terms.decrease, 0.0)
    sums.largest = max(sums.largest, before - terms.decrease)
    sums.decreases += terms.share
    if sums.n_informative == 0.0 or terms.share < sums.smallest:
        sums.smallest = terms.share
    sums.n_informative += 1.0


cdef inline void add_terms(
    const criterion_struct * criterion,
    const eras_struct * eras,
    int era,
    const era_terms * terms,
    split_sums * sums,
) noexcept nogil:
    """Add what an era says to what the eras before it have said."""
    sums.n_covered += terms.covered
    if criterion.traits.compares_gains:
        sums.directions += terms.direction
        add_gain(criterion, terms.gain, 1.0, sums)
    if criterion.traits.keeps_impurities:
        add_impurity(terms, eras.impurities[era], sums)
    if terms.informative > 0.0 and criterion.traits.keeps_statistics:
        add_invariance(criterion, terms.statistic, sums)


cdef inline void add_era(
    const criterion_struct * criterion,
    const eras_struct * eras,
    int era,
    era_sums left,
    era_sums right,
    split_sums * sums,
) noexcept nogil:
    """Add an era, for any criterion."""
    cdef era_terms terms = look_at_era(criterion, eras, era, left, right)
    add_terms(criterion, eras, era, &terms, sums)


cdef inline void add_absent_eras(
    const criterion_struct * criterion, int n_absent, split_sums * sums
) noexcept nogil:
    """Add the eras without a row in the node: gain and direction 0, no impurity."""
    if n_absent > 0 and criterion.traits.compares_gains:
        add_gain(criterion, 0.0, n_absent, sums)


cdef inline void sum_differences(
    split_sums * splits, int n_splits  # IN and OUT
) noexcept nogil:
    """From differences between the sums of adjacent splits to the sums.

    For criteria of which `sums_up` is true. Counts are exact. A sum of gains that
    should be 0 is what rounding left over, unless no era has a gain: then it is 0.
    """
    cdef int i
    for i in range(1, n_splits):
        splits[i].gains += splits[i - 1].gains
        splits[i].directions += splits[i - 1].directions
        splits[i].n_covered += splits[i - 1].n_covered
        splits[i].n_gains += splits[i - 1].n_gains
        if splits[i].n_gains == 0.0:
            splits[i].gains = 0.0
