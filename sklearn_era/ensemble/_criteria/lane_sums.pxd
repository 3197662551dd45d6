# What the eras say of some splits, each of which is a lane of a vector.
#
# A field of all splits of a column lies in one piece, so that a loop over splits is
# one over vectors:
#
#     covered                  0 1 2 3 4 5 6 7 | 8 9 ...     n_lanes
#     of the first statistic   0 1 2 3 4 5 6 7 | 8 9 ...  a row for each field
#     of the second ...
#
# Each statistic has a loop of its own, made of one by the compiler. All that is done
# for a lane is free of branches but for those on constants.

from libc.math cimport INFINITY, fabs

from .aggregation cimport (
    add_impurity, add_to_boltzmann, add_to_moments, boltzmann_kind, boltzmann_sums,
    impurity_totals, kind_of_alpha, moment_sums,
)
from .criterion cimport (
    CHANGING_RATES, DIRECTIONS, DIRECTIONS_AND_GAINS, EFFECTS, EXTREME_GAINS,
    GAIN_MOMENTS, HELD_OUT_GAINS, IMPURITIES, MEAN_GAINS, RATIOS, SMOOTHED_GAINS,
    InvarianceStatistic, SplitCriterion, criterion_struct, statistic,
)
from .era_statistics cimport (
    era_changing_rate, era_contrast, era_effect, era_gain, era_ratio, era_sums,
    held_out_gain, impurity_decrease, is_covered, is_informative, neutral_unless,
    side_sums, split_direction,
)
from .split_sums cimport LANES, eras_struct, gain_unit, split_sums


cdef enum:
    MAX_FIELDS = 6  # of a statistic


cdef struct side_arrays:
    # One side of splits.
    const double * gradients
    const double * hessians
    const double * counts


cdef struct left_sides:
    # The left sides of splits in some eras; arrays are (n_eras, n_lanes). The right
    # side is what is left of all rows, but for gradients with more digits than these.
    const double * gradients
    const double * hessians
    const double * counts
    const double * right_gradients  # NULL: hessians are counts, and no more digits


cdef struct era_facts:
    # Of an era in a node, whatever the split.
    double gradients      # of all its rows
    double hessians
    double count
    double unit_of_gains  # see `gain_unit`
    double share          # of the era's rows, in the node
    double impurity


cdef inline void list_statistics(criterion_struct * criterion) noexcept nogil:
    """Set the statistics that a criterion keeps."""
    cdef:
        boltzmann_kind kind = kind_of_alpha(criterion.boltzmann_alpha)
        statistic * kept = criterion.statistics
        int n = 0
        int i
        bint has_directions = (
            criterion.name == SplitCriterion.DIRECTIONAL
            or criterion.weights[<int> SplitCriterion.DIRECTIONAL] > 0.0
        )
        bint has_gains = criterion.traits.aggregates_gains
        bint has_both = has_directions and has_gains and kind == boltzmann_kind.MEAN
    if has_directions:
        kept[n] = DIRECTIONS_AND_GAINS if has_both else DIRECTIONS
        n += 1
    if has_gains and not has_both:
        kept[n] = SMOOTHED_GAINS
        if kind == boltzmann_kind.MEAN:
            kept[n] = MEAN_GAINS
        elif kind == boltzmann_kind.EXTREME:
            kept[n] = EXTREME_GAINS
        n += 1
    if criterion.traits.keeps_moments:
        kept[n] = GAIN_MOMENTS
        n += 1
    if criterion.traits.keeps_statistics:
        kept[n] = CHANGING_RATES
        if criterion.invariance_statistic == InvarianceStatistic.EFFECT:
            kept[n] = EFFECTS
        elif criterion.invariance_statistic == InvarianceStatistic.RATIO:
            kept[n] = RATIOS
        n += 1
    if criterion.traits.keeps_impurities:
        kept[n] = IMPURITIES
        n += 1
    if criterion.traits.sees_all_eras:
        kept[n] = HELD_OUT_GAINS
        n += 1
    criterion.n_statistics = n
    criterion.n_fields = 1  # the eras that are covered
    for i in range(n):
        criterion.n_fields += n_fields_of(kept[i])


cdef inline int n_fields_of(statistic what) noexcept nogil:
    """The numbers that a statistic keeps of a split."""
    if what == DIRECTIONS or what == MEAN_GAINS or what == HELD_OUT_GAINS:
        return 1
    if what == DIRECTIONS_AND_GAINS:
        return 2
    if what == SMOOTHED_GAINS or what == EXTREME_GAINS:
        return 3
    return 5 if what == IMPURITIES else 6


cdef inline criterion_struct directions_alone(
    const criterion_struct * criterion
) noexcept nogil:
    """The criterion DIRECTIONAL without gains, which it needs for ties only."""
    cdef:
        criterion_struct by_direction = criterion[0]
        int n_fields = criterion.n_fields
    by_direction.traits.aggregates_gains = False
    list_statistics(&by_direction)
    by_direction.n_fields = n_fields  # of the same lanes
    return by_direction


cdef inline void add_eras(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const int * codes,               # (n_eras,), of some eras
    int n_eras,
    int n_splits,                    # the next lane is of all rows
    int n_lanes,
    const left_sides * left,
    const side_arrays * all_left,    # (n_lanes,), where `sees_all_eras`
    const side_arrays * all_right,
    double * sums,                   # IN and OUT, (n_fields, n_lanes)
) noexcept nogil:
    """Add what some eras say of each split."""
    cdef:
        era_facts[LANES] facts
        int first_field = 1
        double counts = 1.0
        era_sums all_rows
        statistic what
        int i, j
    for i in range(n_eras):
        j = i * n_lanes + n_splits
        all_rows.gradients = left.gradients[j]
        all_rows.hessians = left.hessians[j]
        all_rows.count = left.counts[j]
        facts[i] = facts_of_era(criterion, eras, codes[i], all_rows)
    for i in range(criterion.n_statistics):
        what = criterion.statistics[i]
        if left.right_gradients == NULL:
            add_by_statistic(
                True, what, criterion, facts, n_eras, n_lanes, left, all_left,
                all_right, counts, first_field, sums,
            )
        else:
            add_by_statistic(
                False, what, criterion, facts, n_eras, n_lanes, left, all_left,
                all_right, counts, first_field, sums,
            )
        first_field += n_fields_of(what)
        counts = 0.0


cdef inline era_facts facts_of_era(
    const criterion_struct * criterion,
    const eras_struct * eras,
    int code,
    era_sums all_rows,
) noexcept nogil:
    cdef era_facts era
    era.gradients = all_rows.gradients
    era.hessians = all_rows.hessians
    era.count = all_rows.count
    era.unit_of_gains = gain_unit(criterion, era.hessians, eras.gradient_variance)
    era.share = era.count / eras.era_sizes[code]
    era.impurity = eras.impurities[code]
    return era


cdef inline void add_by_statistic(
    bint are_counts,                 # hessians; a constant
    statistic what,
    const criterion_struct * criterion,
    const era_facts * facts,
    int n_eras,
    int n_lanes,
    const left_sides * left,
    const side_arrays * all_left,
    const side_arrays * all_right,
    double counts,                   # eras that are covered; or else 0
    int first_field,
    double * sums,
) noexcept nogil:
    if what == DIRECTIONS:
        add_statistic(
            DIRECTIONS, are_counts, criterion, facts, n_eras, n_lanes, left,
            all_left, all_right, counts, first_field, sums,
        )
    elif what == DIRECTIONS_AND_GAINS:
        add_statistic(
            DIRECTIONS_AND_GAINS, are_counts, criterion, facts, n_eras, n_lanes, left,
            all_left, all_right, counts, first_field, sums,
        )
    elif what == MEAN_GAINS:
        add_statistic(
            MEAN_GAINS, are_counts, criterion, facts, n_eras, n_lanes, left,
            all_left, all_right, counts, first_field, sums,
        )
    elif what == SMOOTHED_GAINS:
        add_statistic(
            SMOOTHED_GAINS, are_counts, criterion, facts, n_eras, n_lanes, left,
            all_left, all_right, counts, first_field, sums,
        )
    elif what == EXTREME_GAINS:
        add_statistic(
            EXTREME_GAINS, are_counts, criterion, facts, n_eras, n_lanes, left,
            all_left, all_right, counts, first_field, sums,
        )
    elif what == GAIN_MOMENTS:
        add_statistic(
            GAIN_MOMENTS, are_counts, criterion, facts, n_eras, n_lanes, left,
            all_left, all_right, counts, first_field, sums,
        )
    elif what == EFFECTS:
        add_statistic(
            EFFECTS, are_counts, criterion, facts, n_eras, n_lanes, left,
            all_left, all_right, counts, first_field, sums,
        )
    elif what == CHANGING_RATES:
        add_statistic(
            CHANGING_RATES, are_counts, criterion, facts, n_eras, n_lanes, left,
            all_left, all_right, counts, first_field, sums,
        )
    elif what == RATIOS:
        add_statistic(
            RATIOS, are_counts, criterion, facts, n_eras, n_lanes, left,
            all_left, all_right, counts, first_field, sums,
        )
    elif what == IMPURITIES:
        add_statistic(
            IMPURITIES, are_counts, criterion, facts, n_eras, n_lanes, left,
            all_left, all_right, counts, first_field, sums,
        )
    elif what == HELD_OUT_GAINS:
        add_statistic(
            HELD_OUT_GAINS, are_counts, criterion, facts, n_eras, n_lanes, left,
            all_left, all_right, counts, first_field, sums,
        )


cdef inline void add_statistic(
    statistic what,                  # a constant
    bint are_counts,                 # same
    const criterion_struct * criterion,
    const era_facts * facts,
    int n_eras,
    int n_lanes,
    const left_sides * left,
    const side_arrays * all_left,
    const side_arrays * all_right,
    double counts,
    int first_field,
    double * sums,                   # IN and OUT
) noexcept nogil:
    cdef:
        double[LANES] covered
        double[MAX_FIELDS * LANES] kept
        int n_kept = n_fields_of(what)
        double * of_statistic = sums + first_field * n_lanes
        era_facts era
        era_sums a, b
        side_sums of_all
        lane_terms terms
        int first, i, j
        Py_ssize_t lane, place
    for i in range(n_lanes // LANES):
        first = i * LANES
        for lane in range(LANES):
            covered[lane] = sums[first + lane]
        for j in range(n_kept):
            for lane in range(LANES):
                kept[j * LANES + lane] = of_statistic[j * n_lanes + first + lane]
        for j in range(n_eras):
            era = facts[j]
            place = j * n_lanes + first
            for lane in range(LANES):
                set_sides_of_lane(are_counts, left, &era, place + lane, &a, &b)
                if what == HELD_OUT_GAINS:
                    of_all.left.gradients = all_left.gradients[first + lane]
                    of_all.left.hessians = all_left.hessians[first + lane]
                    of_all.left.count = all_left.counts[first + lane]
                    of_all.right.gradients = all_right.gradients[first + lane]
                    of_all.right.hessians = all_right.hessians[first + lane]
                    of_all.right.count = all_right.counts[first + lane]
                terms = look_at_sides(
                    what, are_counts, criterion, a, b, &of_all, &era
                )
                covered[lane] += terms.covered * counts
                add_to_lane(what, criterion, terms, &era, kept, LANES, lane)
        for lane in range(LANES):
            sums[first + lane] = covered[lane]
        for j in range(n_kept):
            for lane in range(LANES):
                of_statistic[j * n_lanes + first + lane] = kept[j * LANES + lane]


cdef inline void set_sides_of_lane(
    bint are_counts,         # a constant
    const left_sides * left,
    const era_facts * era,
    Py_ssize_t place,
    era_sums * a,            # OUT
    era_sums * b,            # OUT
) noexcept nogil:
    """Both sides of a split in an era."""
    a.gradients = left.gradients[place]
    a.count = left.counts[place]
    b.count = era.count - a.count
    if are_counts:
        b.gradients = era.gradients - a.gradients
        a.hessians = a.count
        b.hessians = b.count
    else:
        b.gradients = left.right_gradients[place]
        a.hessians = left.hessians[place]
        b.hessians = era.hessians - a.hessians


cdef struct lane_terms:
    # What an era says of a split.
    double covered      # 0 or 1
    double informative  # same
    double value        # a gain, a statistic or a decrease
    double direction


cdef inline lane_terms look_at_sides(
    statistic what,          # a constant
    bint are_counts,         # same
    const criterion_struct * criterion,
    era_sums left,
    era_sums right,
    const side_sums * of_all,
    const era_facts * era,
) noexcept nogil:
    cdef:
        double l2 = criterion.l2_regularization
        double contrast
        lane_terms terms
    terms.covered = is_covered(left, right, criterion.min_samples_per_era)
    terms.informative = terms.covered
    if not are_counts:
        terms.informative = is_informative(left, right, criterion.min_samples_per_era)
    if what == HELD_OUT_GAINS:
        terms.value = held_out_gain(left, right, of_all, l2) * era.unit_of_gains
        return terms
    left = neutral_unless(terms.informative, left)
    right = neutral_unless(terms.informative, right)
    if what == EFFECTS:
        terms.value = era_effect(left, right, l2)
    elif what == CHANGING_RATES:
        terms.value = era_changing_rate(left, right, l2)
    elif what == RATIOS:
        terms.value = era_ratio(left, right)
    elif what == IMPURITIES:
        terms.value = impurity_decrease(left, right)
    else:
        contrast = era_contrast(left, right, l2)
        if what == DIRECTIONS or what == DIRECTIONS_AND_GAINS:
            terms.direction = split_direction(contrast)
        if what != DIRECTIONS:
            terms.value = era_gain(left, right, contrast, l2) * era.unit_of_gains
    return terms


cdef inline void add_to_lane(
    statistic what,          # a constant
    const criterion_struct * criterion,
    lane_terms terms,
    const era_facts * era,
    double * kept,           # IN and OUT, of the statistic
    Py_ssize_t n_lanes,      # from field to field
    Py_ssize_t lane,
) noexcept nogil:
    """Add what an era says of a split."""
    cdef:
        boltzmann_sums gains
        impurity_totals totals
    if what == DIRECTIONS:
        kept[lane] += terms.direction
    elif what == MEAN_GAINS or what == HELD_OUT_GAINS:
        kept[lane] += terms.value
    elif what == DIRECTIONS_AND_GAINS:
        kept[lane] += terms.value
        kept[n_lanes + lane] += terms.direction
    elif what == GAIN_MOMENTS:
        add_moment(kept, n_lanes, lane, terms.value, 1.0)
    elif what == EFFECTS or what == CHANGING_RATES or what == RATIOS:
        add_moment(kept, n_lanes, lane, terms.value, terms.informative)
    elif what == IMPURITIES:
        totals = impurities_of_lane(kept, n_lanes, lane)
        add_impurity(
            &totals, era.impurity, terms.informative, terms.value,
            era.share * terms.value,
        )
        keep_impurities(totals, kept, n_lanes, lane)
    elif what == SMOOTHED_GAINS:
        gains = add_to_boltzmann(
            boltzmann_kind.SMOOTHED, criterion.boltzmann_alpha,
            gains_of_lane(kept, n_lanes, lane), terms.value, 1.0,
        )
        keep_gains(gains, kept, n_lanes, lane)
    else:
        gains = add_to_boltzmann(
            boltzmann_kind.EXTREME, criterion.boltzmann_alpha,
            gains_of_lane(kept, n_lanes, lane), terms.value, 1.0,
        )
        keep_gains(gains, kept, n_lanes, lane)


cdef inline void add_moment(
    double * kept, Py_ssize_t n_lanes, Py_ssize_t lane, double value, double count
) noexcept nogil:
    cdef moment_sums moments = moments_of_lane(kept, n_lanes, lane)
    add_to_moments(&moments, value, count)
    keep_moments(moments, kept, n_lanes, lane)


cdef inline boltzmann_sums gains_of_lane(
    const double * kept, Py_ssize_t n_lanes, Py_ssize_t lane
) noexcept nogil:
    cdef boltzmann_sums gains
    gains.extreme = kept[lane]
    gains.weights = kept[n_lanes + lane]
    gains.offsets = kept[2 * n_lanes + lane]
    return gains


cdef inline void keep_gains(
    boltzmann_sums gains, double * kept, Py_ssize_t n_lanes, Py_ssize_t lane
) noexcept nogil:
    kept[lane] = gains.extreme
    kept[n_lanes + lane] = gains.weights
    kept[2 * n_lanes + lane] = gains.offsets


cdef inline moment_sums moments_of_lane(
    const double * kept, Py_ssize_t n_lanes, Py_ssize_t lane
) noexcept nogil:
    cdef moment_sums moments
    moments.n_values = kept[lane]
    moments.origin = kept[n_lanes + lane]
    moments.offsets = kept[2 * n_lanes + lane]
    moments.squares = kept[3 * n_lanes + lane]
    moments.smallest = kept[4 * n_lanes + lane]
    moments.largest = kept[5 * n_lanes + lane]
    return moments


cdef inline void keep_moments(
    moment_sums moments, double * kept, Py_ssize_t n_lanes, Py_ssize_t lane
) noexcept nogil:
    kept[lane] = moments.n_values
    kept[n_lanes + lane] = moments.origin
    kept[2 * n_lanes + lane] = moments.offsets
    kept[3 * n_lanes + lane] = moments.squares
    kept[4 * n_lanes + lane] = moments.smallest
    kept[5 * n_lanes + lane] = moments.largest


cdef inline impurity_totals impurities_of_lane(
    const double * kept, Py_ssize_t n_lanes, Py_ssize_t lane
) noexcept nogil:
    cdef impurity_totals totals
    totals.n_informative = kept[lane]
    totals.impurities = kept[n_lanes + lane]
    totals.worst = kept[2 * n_lanes + lane]
    totals.decreases = kept[3 * n_lanes + lane]
    totals.least = kept[4 * n_lanes + lane]
    return totals


cdef inline void keep_impurities(
    impurity_totals totals, double * kept, Py_ssize_t n_lanes, Py_ssize_t lane
) noexcept nogil:
    kept[lane] = totals.n_informative
    kept[n_lanes + lane] = totals.impurities
    kept[2 * n_lanes + lane] = totals.worst
    kept[3 * n_lanes + lane] = totals.decreases
    kept[4 * n_lanes + lane] = totals.least


cdef inline split_sums sums_of_lane(
    const criterion_struct * criterion,
    const double * sums,      # of all lanes of a column
    Py_ssize_t n_lanes,
    Py_ssize_t lane,
) noexcept nogil:
    """The sums of a split."""
    cdef split_sums split
    exchange_lane(criterion, True, <double *> sums, n_lanes, lane, &split)
    return split


cdef inline void exchange_lane(
    const criterion_struct * criterion,
    bint reads,               # or else writes
    double * sums,            # IN or OUT, of all lanes of a column
    Py_ssize_t n_lanes,
    Py_ssize_t lane,
    split_sums * split,       # OUT or IN
) noexcept nogil:
    """Read the sums of a split from its lane, or write them there."""
    cdef:
        double * kept = sums
        moment_sums * moments
        statistic what
        int i
    move_field(reads, kept, lane, &split.n_covered)
    kept += n_lanes
    for i in range(criterion.n_statistics):
        what = criterion.statistics[i]
        if what == DIRECTIONS:
            move_field(reads, kept, lane, &split.directions)
        elif what == MEAN_GAINS or what == DIRECTIONS_AND_GAINS:
            move_field(reads, kept, lane, &split.gains.offsets)
            if what == DIRECTIONS_AND_GAINS:
                move_field(reads, kept + n_lanes, lane, &split.directions)
        elif what == HELD_OUT_GAINS:
            move_field(reads, kept, lane, &split.held_out)
        elif what == SMOOTHED_GAINS or what == EXTREME_GAINS:
            if reads:
                split.gains = gains_of_lane(kept, n_lanes, lane)
            else:
                keep_gains(split.gains, kept, n_lanes, lane)
        elif what == IMPURITIES:
            if reads:
                split.impurities = impurities_of_lane(kept, n_lanes, lane)
            else:
                keep_impurities(split.impurities, kept, n_lanes, lane)
        else:
            moments = &split.statistics
            if what == GAIN_MOMENTS:
                moments = &split.gain_moments
            if reads:
                moments[0] = moments_of_lane(kept, n_lanes, lane)
            else:
                keep_moments(moments[0], kept, n_lanes, lane)
        kept += n_fields_of(what) * n_lanes


cdef inline void move_field(
    bint reads, double * kept, Py_ssize_t lane, double * field
) noexcept nogil:
    if reads:
        field[0] = kept[lane]
    else:
        kept[lane] = field[0]


cdef inline double largest_key_of_lane(
    const criterion_struct * criterion,
    const double * sums,      # of all lanes of a column
    Py_ssize_t n_lanes,
    Py_ssize_t lane,
    double gain,              # the pooled one
    int n_eras,
    int n_left,               # eras that are still to be asked
) noexcept nogil:
    """Return the largest key that the split can still get; -INFINITY without any."""
    cdef double directions
    if sums[lane] + n_left < criterion.min_covered_eras:
        return -INFINITY
    if criterion.name == SplitCriterion.DIRECTIONAL:
        directions = sums[n_lanes + lane]
        if criterion.statistics[0] == DIRECTIONS_AND_GAINS:
            directions = sums[2 * n_lanes + lane]
        return (fabs(directions) + n_left) / n_eras
    if criterion.name == SplitCriterion.INVARIANT:
        return gain
    if criterion.traits.worst_era_decides and not criterion.ranks_by_decrease:
        return -sums[3 * n_lanes + lane]  # the worst impurity thus far
    return INFINITY
