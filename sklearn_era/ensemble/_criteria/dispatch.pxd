# The criteria at compile time: the statistics of each, and the functions for its key.
#
# A split has a few running sums, all 0 at first: the number of covered eras, then the
# fields of each statistic. Splits in lanes have a row of lanes for each field.
#
# The compiler specialises one loop over lanes for each statistic: `what` is a constant
# there, and all else is branch-free.

from libc.math cimport INFINITY, fabs

from .criterion cimport (
    N_KEY_FIELDS, PRIMARY, PRIORITY, SECONDARY, criterion_struct, split_rank,
)
from .directional cimport rank_directional, split_direction
from .era cimport N_GAIN_FIELDS, add_gain, boltzmann_kind, kind_of_alpha, rank_era
from .formulas cimport (
    LANES, N_CENTRAL_FIELDS, N_MOMENT_FIELDS, add_to_moments, era_contrast, era_facts,
    era_gain, era_sums, eras_struct, is_covered, is_informative, lane_eras,
    neutral_unless, set_sides_of_lane,
)
from .invariant cimport era_changing_rate, era_effect, era_ratio, rank_invariant
from .time_robust cimport (
    N_IMPURITY_FIELDS, WORST, add_impurity, add_smoothed_impurity, deviation_decrease,
    impurity_decrease, rank_time_robust,
)
from .vrex cimport rank_vrex


# In the order of `KERNEL_NAMES` in objects.pyx. A BLEND sums the keys of others.
cdef enum:
    GAIN
    ERA
    DIRECTIONAL
    TIME_ROBUST
    INVARIANT
    VREX
    CUSTOM  # in Python, with all eras of a split at once
    BLEND


cdef enum statistic:
    DIRECTIONS
    DIRECTIONS_AND_GAINS  # with alpha = 0
    MEAN_GAINS            # these three by the kind of alpha
    SMOOTHED_GAINS
    EXTREME_GAINS
    GAIN_MOMENTS
    EFFECTS               # moments, as the next two
    CHANGING_RATES
    RATIOS
    IMPURITIES
    DEVIATIONS            # in place of impurities; the same for the smoothed ones
    SMOOTHED_IMPURITIES
    SMOOTHED_DEVIATIONS
    CUSTOM_KEYS           # nothing of an era, but for the coverage


cdef enum:
    MAX_FIELDS = 6  # of a statistic
    MAX_SUMS = 24   # of a split


cdef inline bint is_sum(statistic what) noexcept nogil:
    """Return whether a statistic over eras is the sum of each era's own statistic."""
    return what in (DIRECTIONS, DIRECTIONS_AND_GAINS, MEAN_GAINS)


cdef inline bint has_extremes(statistic what) noexcept nogil:
    return what == GAIN_MOMENTS or what == RATIOS  # of those with moments


cdef inline int n_fields_of(statistic what) noexcept nogil:
    """Return how many running sums (fields) a statistic has."""
    if is_sum(what):
        return 2 if what == DIRECTIONS_AND_GAINS else 1
    if what == SMOOTHED_GAINS or what == EXTREME_GAINS:
        return N_GAIN_FIELDS
    if what == SMOOTHED_IMPURITIES or what == SMOOTHED_DEVIATIONS:
        return 2 * N_GAIN_FIELDS
    if what == IMPURITIES or what == DEVIATIONS:
        return N_IMPURITY_FIELDS
    if what == CUSTOM_KEYS:
        return N_KEY_FIELDS
    return N_MOMENT_FIELDS if has_extremes(what) else N_CENTRAL_FIELDS


cdef inline statistic statistic_of(
    const criterion_struct * criterion, int name
) noexcept nogil:
    """Return the statistic from which the criterion `name` computes its key."""
    cdef boltzmann_kind kind = kind_of_alpha(criterion.boltzmann_alpha)
    if name == ERA:
        if kind == boltzmann_kind.MEAN:
            return MEAN_GAINS
        return SMOOTHED_GAINS if kind == boltzmann_kind.SMOOTHED else EXTREME_GAINS
    if name == INVARIANT:  # in the order of `InvarianceStatistic`
        return <statistic> (EFFECTS + <int> criterion.invariance_statistic)
    if name == DIRECTIONAL:
        return DIRECTIONS
    if name == VREX:
        return GAIN_MOMENTS
    if name == TIME_ROBUST:
        return <statistic> (
            (SMOOTHED_IMPURITIES if criterion.boltzmann_alpha > 0.0 else IMPURITIES)
            + criterion.takes_deviation
        )
    return CUSTOM_KEYS


cdef inline bint reads(const criterion_struct * criterion, int name) noexcept nogil:
    """Return whether a criterion needs the statistic of the criterion `name`."""
    return (
        criterion.name == name
        or criterion.name == BLEND and criterion.weights[name] > 0.0
        or criterion.name == DIRECTIONAL and name == ERA and criterion.breaks_ties
    )


cdef inline void list_statistics(criterion_struct * criterion) noexcept nogil:
    """Set a criterion's statistics, and the first field of each in a split's sums."""
    cdef:
        int n_fields = 1  # after the covered eras
        int name
    criterion.n_statistics = 0
    criterion.keeps_sides = reads(criterion, CUSTOM)
    for name in range(ERA, BLEND):
        if not reads(criterion, name):
            continue
        if (
            name == DIRECTIONAL
            and reads(criterion, ERA)
            and statistic_of(criterion, ERA) == MEAN_GAINS
        ):
            criterion.statistics[criterion.n_statistics - 1] = DIRECTIONS_AND_GAINS
        else:
            criterion.statistics[criterion.n_statistics] = statistic_of(criterion, name)
            criterion.n_statistics += 1
        criterion.first_field[name] = n_fields
        n_fields += n_fields_of(statistic_of(criterion, name))
    criterion.n_fields = n_fields


cdef struct era_terms:
    # The contribution of an era to the sums of a split.
    double covered      # 0 or 1
    double informative  # same
    double value        # a gain, a decrease, or the statistic of INVARIANT
    double direction


cdef inline era_terms compare_sides(
    statistic what,          # a constant
    bint are_counts,         # the hessians are; a constant
    double l2,               # `l2_regularization`; perhaps a constant 0
    era_sums left, era_sums right, const era_facts * era,
) noexcept nogil:
    """Return an era's terms for a statistic; `value` is neutral if a side of the split
    has fewer than `min_samples` rows of the era, or only rows without weight.
    """
    cdef:
        bint is_neutral = what in (
            CHANGING_RATES, RATIOS, IMPURITIES, SMOOTHED_IMPURITIES
        )  # unless it is informative
        double contrast
        era_terms terms
    terms.covered = is_covered(left, right, era.min_samples)
    terms.informative = terms.covered
    if not (are_counts or what in (DEVIATIONS, SMOOTHED_DEVIATIONS)):
        terms.informative = is_informative(left, right, era.min_samples)
    if what == CUSTOM_KEYS:
        return terms
    if what == DEVIATIONS or what == SMOOTHED_DEVIATIONS:
        terms.value = deviation_decrease(left, right, era)
        terms.value = terms.value if terms.informative > 0.0 else 0.0
        return terms
    if is_neutral:
        left = neutral_unless(terms.informative, left)
        right = neutral_unless(terms.informative, right)
    terms.direction = 0.0
    if what == EFFECTS:
        terms.value = era_effect(left, right, l2)
    elif what == CHANGING_RATES:
        terms.value = era_changing_rate(left, right, l2)
    elif what == RATIOS:
        terms.value = era_ratio(left, right)
    elif what == IMPURITIES or what == SMOOTHED_IMPURITIES:
        terms.value = impurity_decrease(left, right)
    else:
        contrast = era_contrast(left, right, l2)
        if what == DIRECTIONS or what == DIRECTIONS_AND_GAINS:
            terms.direction = split_direction(contrast)
        if what != DIRECTIONS:
            terms.value = era_gain(left, right, contrast, l2) * era.unit_of_gains
    if not is_neutral:  # and its value may be no number
        terms.value = terms.value if terms.informative > 0.0 else 0.0
        terms.direction = terms.direction if terms.informative > 0.0 else 0.0
    return terms


cdef inline void add_terms(
    statistic what,          # a constant
    const criterion_struct * criterion, era_terms terms, const era_facts * era,
    double * kept,           # IN and OUT, of the statistic
    Py_ssize_t stride,       # from field to field
) noexcept nogil:
    cdef double alpha = criterion.boltzmann_alpha
    if what == DIRECTIONS:
        kept[0] += terms.direction
    elif what == MEAN_GAINS:
        kept[0] += terms.value
    elif what == DIRECTIONS_AND_GAINS:
        kept[0] += terms.value
        kept[stride] += terms.direction
    elif what == SMOOTHED_GAINS:
        add_gain(boltzmann_kind.SMOOTHED, alpha, terms.value, 1.0, kept, stride)
    elif what == EXTREME_GAINS:
        add_gain(boltzmann_kind.EXTREME, alpha, terms.value, 1.0, kept, stride)
    elif what == GAIN_MOMENTS:
        add_to_moments(True, terms.value, 1.0, kept, stride)
    elif what == IMPURITIES or what == DEVIATIONS:
        add_impurity(era, terms.informative, terms.value, kept, stride)
    elif what == SMOOTHED_IMPURITIES or what == SMOOTHED_DEVIATIONS:
        add_smoothed_impurity(
            alpha, era, terms.informative, terms.value, kept, stride
        )
    elif what != CUSTOM_KEYS:
        add_to_moments(
            has_extremes(what), terms.value, terms.informative, kept, stride
        )


cdef inline void add_by_statistic(
    statistic what,
    bint are_counts,          # the hessians are; a constant
    const criterion_struct * criterion, const lane_eras * lanes,
    int field,                # the statistic's first
    double * sums,            # IN and OUT, (n_fields, n_lanes)
) noexcept nogil:
    """Call `add_statistic` with `what` as a constant for the compiler and, for mean
    gains, also the default `l2` of 0, which saves a division.
    """
    cdef double l2 = criterion.l2_regularization
    if what == DIRECTIONS:
        add_statistic(DIRECTIONS, are_counts, l2, criterion, lanes, field, sums)
    elif what == DIRECTIONS_AND_GAINS and l2 == 0.0:
        add_statistic(
            DIRECTIONS_AND_GAINS, are_counts, 0.0, criterion, lanes, field, sums
        )
    elif what == DIRECTIONS_AND_GAINS:
        add_statistic(
            DIRECTIONS_AND_GAINS, are_counts, l2, criterion, lanes, field, sums
        )
    elif what == MEAN_GAINS and l2 == 0.0:
        add_statistic(MEAN_GAINS, are_counts, 0.0, criterion, lanes, field, sums)
    elif what == MEAN_GAINS:
        add_statistic(MEAN_GAINS, are_counts, l2, criterion, lanes, field, sums)
    elif what == SMOOTHED_GAINS:
        add_statistic(SMOOTHED_GAINS, are_counts, l2, criterion, lanes, field, sums)
    elif what == EXTREME_GAINS:
        add_statistic(EXTREME_GAINS, are_counts, l2, criterion, lanes, field, sums)
    elif what == GAIN_MOMENTS:
        add_statistic(GAIN_MOMENTS, are_counts, l2, criterion, lanes, field, sums)
    elif what == EFFECTS:
        add_statistic(EFFECTS, are_counts, l2, criterion, lanes, field, sums)
    elif what == CHANGING_RATES:
        add_statistic(CHANGING_RATES, are_counts, l2, criterion, lanes, field, sums)
    elif what == RATIOS:
        add_statistic(RATIOS, are_counts, l2, criterion, lanes, field, sums)
    elif what == IMPURITIES:
        add_statistic(IMPURITIES, are_counts, l2, criterion, lanes, field, sums)
    elif what == DEVIATIONS:
        add_statistic(DEVIATIONS, False, l2, criterion, lanes, field, sums)
    elif what == SMOOTHED_IMPURITIES:
        add_statistic(
            SMOOTHED_IMPURITIES, are_counts, l2, criterion, lanes, field, sums
        )
    elif what == SMOOTHED_DEVIATIONS:
        add_statistic(SMOOTHED_DEVIATIONS, False, l2, criterion, lanes, field, sums)
    elif what == CUSTOM_KEYS:
        add_statistic(CUSTOM_KEYS, are_counts, l2, criterion, lanes, field, sums)


cdef inline void add_statistic(
    statistic what,           # a constant
    bint are_counts,          # same
    double l2,                # perhaps a constant 0
    const criterion_struct * criterion, const lane_eras * lanes, int field,
    double * sums,
) noexcept nogil:
    """Add the eras of `lanes` to a statistic's sums, with the sums in registers."""
    cdef:
        double[LANES] covered_here
        double[MAX_FIELDS * LANES] kept_here
        int n_kept = n_fields_of(what)
        int n_lanes = lanes.n_lanes
        double * kept = sums + field * n_lanes
        double counts = 1.0 if field == 1 else 0.0  # once for all statistics
        era_facts era
        era_sums a, b
        era_terms terms
        int first, i, j
        Py_ssize_t lane, place
    for i in range(n_lanes // LANES):
        first = i * LANES
        for lane in range(LANES):
            covered_here[lane] = sums[first + lane]
        for j in range(n_kept):
            for lane in range(LANES):
                kept_here[j * LANES + lane] = kept[j * n_lanes + first + lane]
        for j in range(lanes.n_eras):
            era = lanes.facts[j]
            place = j * n_lanes + first
            for lane in range(LANES):
                set_sides_of_lane(are_counts, lanes, &era, place + lane, &a, &b)
                terms = compare_sides(what, are_counts, l2, a, b, &era)
                covered_here[lane] += terms.covered * counts
                add_terms(what, criterion, terms, &era, &kept_here[lane], LANES)
        for lane in range(LANES):
            sums[first + lane] = covered_here[lane]
        for j in range(n_kept):
            for lane in range(LANES):
                kept[j * n_lanes + first + lane] = kept_here[j * LANES + lane]


cdef inline void add_absent_terms(
    statistic what, const criterion_struct * criterion, double n_absent,
    double * kept,           # IN and OUT, of the statistic
) noexcept nogil:
    """Add `n_absent` eras without rows in the node, whose gain is 0, to a statistic."""
    cdef double alpha = criterion.boltzmann_alpha
    if what == SMOOTHED_GAINS or what == EXTREME_GAINS:
        add_gain(kind_of_alpha(alpha), alpha, 0.0, n_absent, kept, 1)
    elif what == GAIN_MOMENTS:
        add_to_moments(True, 0.0, n_absent, kept, 1)


cdef inline bint counts_uncovered(statistic what) noexcept nogil:
    """Return whether an era that lacks `min_samples` rows on one side of a split may
    change the statistic. True is always safe, but costs time if these eras add 0.
    """
    return what not in (
        DIRECTIONS, DIRECTIONS_AND_GAINS, MEAN_GAINS, EFFECTS, CHANGING_RATES, RATIOS,
        SMOOTHED_IMPURITIES, SMOOTHED_DEVIATIONS, CUSTOM_KEYS,
    )


cdef inline bint rank_by(
    const criterion_struct * criterion,
    int name,            # of the criterion, or of a part of a blend
    const eras_struct * eras, const double * sums,
    split_rank * rank,   # IN, its gain, and OUT
) noexcept nogil:
    """Set a split's key by the criterion `name`; return whether the split is valid."""
    cdef:
        const double * own = sums + criterion.first_field[name]
        const double * gains = NULL
    if name == ERA:
        return rank_era(criterion, eras, own, rank)
    if name == DIRECTIONAL:
        if criterion.name == DIRECTIONAL and criterion.breaks_ties:
            gains = sums + criterion.first_field[ERA]
        return rank_directional(criterion, eras, own[0], gains, rank)
    if name == TIME_ROBUST:
        return rank_time_robust(criterion, eras, own, rank)
    if name == INVARIANT:
        return rank_invariant(criterion, eras, own, rank)
    if name == VREX:
        return rank_vrex(criterion, own, rank)
    if name == CUSTOM:
        rank.primary, rank.secondary = own[PRIMARY], own[SECONDARY]
        rank.priority = own[PRIORITY]
        return rank.primary > -INFINITY
    rank.primary = rank.gain
    return rank.gain > 0.0


cdef inline bint can_reach(
    const criterion_struct * criterion, const double * sums, Py_ssize_t stride,
    double gain,         # pooled
    int n_eras,
    int n_left,          # eras not yet added
    double min_key,
) noexcept nogil:
    """Return whether a split can still reach `min_key`, and can cover
    `min_covered_eras` eras, once the last `n_left` eras are added.
    """
    cdef const double * own = sums + criterion.first_field[criterion.name] * stride
    if sums[0] + n_left < criterion.min_covered_eras:
        return False
    if criterion.name == DIRECTIONAL:
        return fabs(own[0]) + n_left + 0.5 > min_key * n_eras  # integers
    if criterion.name == INVARIANT:
        return gain >= min_key
    if criterion.traits.worst_era_decides and not criterion.ranks_by_decrease:
        return -own[WORST * stride] >= min_key
    return True
