# What eras say of a bundle of few candidate splits, which are the lanes of vectors.
#
# `masked_rows` has summed them up; every criterion has a loop of its own here, or else
# goes from split to split.

from .functions cimport (
    ANYTHING, DIRECTIONS, MEAN_GAINS, SMOOTHED_GAINS, EXTREME_GAINS,
    GAINS_AND_DIRECTIONS, GAIN_MOMENTS, EFFECTS, CHANGING_RATES, IMPURITIES,
    HELD_OUT_GAINS, gains_of_lane, impurities_of_lane, keep_gains, keep_impurities,
    keep_moments, kept_kind, kept_lanes, kind_of_criterion, masked_sums, masked_table,
    moments_of_lane, side_lanes,
)
from ..bundles cimport bundle_struct
from ..fixed_points cimport summed_values
from ..._criteria.aggregation cimport (
    add_impurity, add_to_boltzmann, add_to_moments, boltzmann_kind, boltzmann_sums,
    impurity_totals, moment_sums,
)
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.era_statistics cimport (
    era_changing_rate, era_effect, era_sums, held_out_gain, impurity_decrease,
    is_covered, is_informative, neutral_unless, side_sums,
)
from ..._criteria.split_sums cimport (
    LANES, add_beside_all, add_era, compare_if, era_comparison, eras_struct,
    gain_unit, split_sums,
)


cdef inline void compare_masked_eras(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const bundle_struct * bundle,
    const summed_values * values,
    masked_table * table,  # IN and OUT
    split_sums * splits,   # IN and OUT, of what has no lanes
) noexcept nogil:
    """Add what the eras that were summed up last say of each split.

    By a loop for each kind, which the compiler makes of one.
    """
    if kind_of_criterion(criterion) == ANYTHING:
        add_in_turn(criterion, eras, bundle.n_splits, values, table, splits)
    elif table.n_eras > 0 and table.sums[0].plain != NULL:
        compare_by_kind(True, criterion, eras, bundle, values, table)
    else:
        compare_by_kind(False, criterion, eras, bundle, values, table)


cdef inline void compare_by_kind(
    bint are_plain,        # gradients, as hessians vary; a constant
    const criterion_struct * criterion,
    const eras_struct * eras,
    const bundle_struct * bundle,
    const summed_values * values,
    masked_table * table,  # IN and OUT
) noexcept nogil:
    cdef kept_kind kind = kind_of_criterion(criterion)
    if kind == DIRECTIONS:
        compare_lanes(DIRECTIONS, are_plain, criterion, eras, bundle, values, table)
    elif kind == MEAN_GAINS:
        compare_lanes(MEAN_GAINS, are_plain, criterion, eras, bundle, values, table)
    elif kind == SMOOTHED_GAINS:
        compare_lanes(SMOOTHED_GAINS, are_plain, criterion, eras, bundle, values, table)
    elif kind == EXTREME_GAINS:
        compare_lanes(EXTREME_GAINS, are_plain, criterion, eras, bundle, values, table)
    elif kind == GAINS_AND_DIRECTIONS:
        compare_lanes(
            GAINS_AND_DIRECTIONS, are_plain, criterion, eras, bundle, values, table
        )
    elif kind == GAIN_MOMENTS:
        compare_lanes(GAIN_MOMENTS, are_plain, criterion, eras, bundle, values, table)
    elif kind == EFFECTS:
        compare_lanes(EFFECTS, are_plain, criterion, eras, bundle, values, table)
    elif kind == CHANGING_RATES:
        compare_lanes(CHANGING_RATES, are_plain, criterion, eras, bundle, values, table)
    elif kind == IMPURITIES:
        compare_lanes(IMPURITIES, are_plain, criterion, eras, bundle, values, table)
    elif kind == HELD_OUT_GAINS:
        compare_lanes(HELD_OUT_GAINS, are_plain, criterion, eras, bundle, values, table)


cdef inline void compare_lanes(
    kept_kind kind,          # a constant
    bint are_plain,          # same
    const criterion_struct * criterion,
    const eras_struct * eras,
    const bundle_struct * bundle,
    const summed_values * values,
    masked_table * table,    # IN and OUT
) noexcept nogil:
    cdef:
        double min_samples = criterion.min_samples_per_era
        double unit = values.unit
        double hessian_unit = values.hessian_unit
        const long long * integers
        const long long * counts
        const long long * plain
        side_lanes all_left, all_right
        kept_lanes kept
        double gradients, rows, weight, unit_of_gains, share, impurity
        era_sums left, right
        Py_ssize_t i, j, first, lane
    for j in range(bundle.n_lanes // LANES):
        first = j * LANES
        kept = table.kept[j]
        all_left = table.left[j]
        all_right = table.right[j]
        for i in range(table.n_eras):
            integers = table.sums[i].integers
            counts = table.sums[i].counts
            plain = table.sums[i].plain
            rows = <double> counts[bundle.n_splits]
            gradients = unit * <double> integers[bundle.n_splits]
            weight = rows
            if are_plain:
                weight = hessian_unit * <double> integers[bundle.n_splits]
            if kind <= GAINS_AND_DIRECTIONS and rows < 2.0 * min_samples:
                continue  # no split covers it
            unit_of_gains = gain_unit(criterion, weight, eras.gradient_variance)
            share = rows / eras.era_sizes[table.codes[i]]
            impurity = eras.impurities[table.codes[i]]
            for lane in range(LANES):
                left.count = <double> counts[first + lane]
                if are_plain:
                    left.gradients = unit * <double> plain[first + lane]
                    left.hessians = (
                        hessian_unit * <double> integers[first + lane]
                    )
                    # More digits than a double has cancel here.
                    right.gradients = unit * <double> (
                        plain[bundle.n_splits] - plain[first + lane]
                    )
                else:
                    left.gradients = unit * <double> integers[first + lane]
                    left.hessians = left.count
                    right.gradients = gradients - left.gradients
                right.count = rows - left.count
                right.hessians = weight - left.hessians
                add_to_lane(
                    kind, are_plain, criterion, left, right, unit_of_gains, share,
                    impurity, &all_left, &all_right, &kept, lane,
                )
        table.kept[j] = kept


cdef inline void add_to_lane(
    kept_kind kind,
    bint are_plain,
    const criterion_struct * criterion,
    era_sums left,
    era_sums right,
    double unit_of_gains,
    double share,            # of the era's rows, in the node
    double impurity,         # of the era
    const side_lanes * all_left,
    const side_lanes * all_right,
    kept_lanes * kept,       # IN and OUT
    Py_ssize_t lane,
) noexcept nogil:
    """Add what an era says of a split; see `look_at_era` and `add_terms`."""
    cdef:
        double l2 = criterion.l2_regularization
        double covered = is_covered(left, right, criterion.min_samples_per_era)
        double informative = covered
        double decrease
        era_comparison era
        boltzmann_sums gains
        boltzmann_kind alpha_kind = (
            boltzmann_kind.SMOOTHED if kind == SMOOTHED_GAINS
            else boltzmann_kind.EXTREME
        )
        impurity_totals totals
        side_sums of_all
    if are_plain:
        informative = is_informative(left, right, criterion.min_samples_per_era)
    kept.n_covered[lane] += covered
    if kind == HELD_OUT_GAINS:
        of_all.left = side_of_lane(all_left, lane)
        of_all.right = side_of_lane(all_right, lane)
        kept.held_out[lane] += (
            held_out_gain(left, right, &of_all, l2) * unit_of_gains
        )
        return
    if kind == EFFECTS or kind == CHANGING_RATES or kind == IMPURITIES:
        left = neutral_unless(informative, left)
        right = neutral_unless(informative, right)
    if kind == EFFECTS:
        add_moment(kept, lane, era_effect(left, right, l2), informative)
    elif kind == CHANGING_RATES:
        add_moment(kept, lane, era_changing_rate(left, right, l2), informative)
    elif kind == IMPURITIES:
        totals = impurities_of_lane(kept, lane)
        decrease = impurity_decrease(left, right)
        add_impurity(&totals, impurity, informative, decrease, share * decrease)
        keep_impurities(kept, lane, totals)
    else:
        era = compare_if(informative, left, right, l2)
        if kind == DIRECTIONS or kind == GAINS_AND_DIRECTIONS:
            kept.directions[lane] += era.direction
        if kind == MEAN_GAINS or kind == GAINS_AND_DIRECTIONS:
            kept.gains[lane] += era.gain * unit_of_gains
        elif kind == GAIN_MOMENTS:
            add_moment(kept, lane, era.gain * unit_of_gains, 1.0)
        elif kind == SMOOTHED_GAINS or kind == EXTREME_GAINS:
            gains = add_to_boltzmann(
                alpha_kind, criterion.boltzmann_alpha, gains_of_lane(kept, lane),
                era.gain * unit_of_gains, 1.0,
            )
            keep_gains(kept, lane, gains)


cdef inline era_sums side_of_lane(
    const side_lanes * lanes, Py_ssize_t lane
) noexcept nogil:
    cdef era_sums side
    side.gradients = lanes.gradients[lane]
    side.hessians = lanes.hessians[lane]
    side.count = lanes.counts[lane]
    return side


cdef inline void add_moment(
    kept_lanes * kept,      # IN and OUT
    Py_ssize_t lane,
    double value,
    double count,
) noexcept nogil:
    cdef moment_sums moments = moments_of_lane(kept, lane)
    add_to_moments(&moments, value, count)
    keep_moments(kept, lane, moments)


cdef inline void add_in_turn(
    const criterion_struct * criterion,
    const eras_struct * eras,
    int n_splits,
    const summed_values * values,
    const masked_table * table,
    split_sums * splits,     # IN and OUT
) noexcept nogil:
    """One split after the other, for any criterion."""
    cdef:
        const masked_sums * sums
        era_sums left, right
        side_sums of_all
        int i, j
    for i in range(table.n_eras):
        sums = &table.sums[i]
        for j in range(n_splits):
            left.gradients = values.unit * <double> sums.integers[j]
            left.count = sums.counts[j]
            left.hessians = left.count
            right.gradients = values.unit * <double> (
                sums.integers[n_splits] - sums.integers[j]
            )
            right.count = sums.counts[n_splits] - sums.counts[j]
            right.hessians = right.count
            if sums.plain != NULL:
                left.hessians = values.hessian_unit * <double> sums.integers[j]
                right.hessians = values.hessian_unit * <double> (
                    sums.integers[n_splits] - sums.integers[j]
                )
                left.gradients = values.unit * <double> sums.plain[j]
                right.gradients = values.unit * <double> (
                    sums.plain[n_splits] - sums.plain[j]
                )
            add_era(criterion, eras, table.codes[i], left, right, &splits[j])
            if criterion.traits.sees_all_eras:
                of_all.left = side_of_lane(&table.left[j // LANES], j % LANES)
                of_all.right = side_of_lane(&table.right[j // LANES], j % LANES)
                add_beside_all(criterion, eras, left, right, &of_all, &splits[j])
