# What the eras say of a candidate split, added up era by era.
#
# The eras of a node come one after the other, and what is kept of them is a few running
# sums: the memory for a split does not grow with the number of eras. The statistics of
# one era are in era_statistics.pxd, the ways to sum them up in aggregation.pxd.
# For many splits at a time, lane_sums.pxd does the same in the lanes of vectors.

from libc.string cimport memset

from .aggregation cimport (
    add_impurity, add_to_boltzmann, add_to_moments, boltzmann_kind, boltzmann_sums,
    impurity_totals, kind_of_alpha, merge_boltzmann, merge_impurities, merge_moments,
    moment_sums,
)
from .criterion cimport InvarianceStatistic, criterion_struct
from .era_statistics cimport (
    era_changing_rate, era_contrast, era_effect, era_gain, era_ratio, era_sums,
    held_out_gain, impurity_decrease, is_covered, is_informative, neutral_unless,
    side_sums, split_direction,
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
    # What the eras added thus far have said of a candidate split: monoids, and zeros
    # where there were none. A criterion keeps what it needs.
    double n_covered
    double directions             # sum of directions
    boltzmann_sums gains
    moment_sums gain_moments
    moment_sums statistics        # of eras that are informative
    impurity_totals impurities
    double held_out               # sum of gains by the values of the other eras


cdef inline void merge_sums(
    const criterion_struct * criterion,
    split_sums * sums,          # IN and OUT
    const split_sums * others,  # of other eras
) noexcept nogil:
    """Add what other eras have said of the same split."""
    sums.n_covered += others.n_covered
    sums.directions += others.directions
    sums.gains = merge_boltzmann(
        kind_of_alpha(criterion.boltzmann_alpha),
        criterion.boltzmann_alpha,
        sums.gains,
        others.gains,
    )
    merge_moments(&sums.gain_moments, &others.gain_moments)
    merge_moments(&sums.statistics, &others.statistics)
    merge_impurities(&sums.impurities, &others.impurities)
    sums.held_out += others.held_out


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


cdef inline void add_gain(
    const criterion_struct * criterion, double gain, double count, split_sums * sums
) noexcept nogil:
    """Add the gain of an era, or of `count` that have the same."""
    cdef double alpha = criterion.boltzmann_alpha
    if criterion.traits.keeps_moments:
        add_to_moments(&sums.gain_moments, gain, count)
    if criterion.traits.aggregates_gains:
        sums.gains = add_to_boltzmann(
            kind_of_alpha(alpha), alpha, sums.gains, gain, count
        )


cdef struct era_terms:
    # What an era says of a split, whatever the others say; a criterion sets what it
    # needs.
    double covered      # 0 or 1
    double informative  # 0 or 1
    double gain         # normalised, if gains are to be
    double direction
    double statistic    # whose variation over eras is penalised; if informative
    double decrease     # of the impurity; 0 if not informative
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
    left = neutral_unless(terms.informative, left)
    right = neutral_unless(terms.informative, right)
    if criterion.traits.keeps_impurities:
        terms.decrease = impurity_decrease(left, right)
        terms.share = (
            (left.count + right.count) / eras.era_sizes[era] * terms.decrease
        )
    if criterion.traits.keeps_statistics:
        terms.statistic = invariance_statistic(criterion, left, right)
    return terms


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
        add_impurity(
            &sums.impurities,
            eras.impurities[era], terms.informative, terms.decrease, terms.share,
        )
    if criterion.traits.keeps_statistics:
        add_to_moments(&sums.statistics, terms.statistic, terms.informative)


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


cdef inline void add_beside_all(
    const criterion_struct * criterion,
    const eras_struct * eras,
    era_sums left,
    era_sums right,
    const side_sums * of_all,
    split_sums * sums,
) noexcept nogil:
    """Add what an era says beside the sums over all eras, where `sees_all_eras`."""
    sums.held_out += held_out_gain(
        left, right, of_all, criterion.l2_regularization
    ) * gain_unit(criterion, left.hessians + right.hessians, eras.gradient_variance)


cdef inline void add_absent_eras(
    const criterion_struct * criterion, int n_absent, split_sums * sums
) noexcept nogil:
    """Add the eras without a row in the node: gain and direction 0, no impurity."""
    if n_absent > 0 and criterion.traits.compares_gains:
        add_gain(criterion, 0.0, n_absent, sums)
