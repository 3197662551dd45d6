"""The candidate splits of a feature, compared in some eras at once.

Eras are lanes of vectors here. The module is compiled once for each instruction set
(`instruction_sets`), by other names; all of them give the same bits, as no operation is
contracted or reordered.
"""

from cpython.pycapsule cimport PyCapsule_New
from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport hist_struct

from ..._criteria.aggregation cimport boltzmann_kind, kind_of_alpha
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.era_statistics cimport added, era_sums, side_sums
from ..fixed_points cimport summed_values
from .first_look cimport look_first, pool_words, sum_bins
from .table cimport era_table, pool_eras, sums_of_bin
from .functions cimport bin_order, lane_functions, occupied_splits
from .masked_rows cimport pool_masked_eras, sum_masked_eras
from .masked_splits cimport compare_masked_eras
from ..._criteria.split_sums cimport (
    LANES, add_beside_all, add_era, add_gain_to_lane, compare_counted_sides,
    compare_sides, era_comparison, eras_struct, gain_unit, lane_sums, split_sums,
    sums_up,
)


cdef void scan_bins(
    const criterion_struct * criterion,
    const bin_order * order,
    int first_bin,
    const eras_struct * eras,
    const hist_struct * pooled,  # of the bundle; where `sees_all_eras`
    era_table * table,
    split_sums * splits,         # IN and OUT, of the bundle
) noexcept nogil:
    """Move bins to the left side in order, and add what the eras say on the way."""
    if not criterion.traits.keeps_lane_sums:
        scan_in_turn(criterion, order, first_bin, eras, pooled, table, splits)
    elif (
        table.counts_rows and sums_up(criterion) and not criterion.normalize_era_gain
    ):
        scan_counted_eras(criterion, order, first_bin, table)
    else:
        scan_lanes(criterion, order, first_bin, eras, table)


cdef inline void scan_in_turn(
    const criterion_struct * criterion,
    const bin_order * order,
    int first_bin,
    const eras_struct * eras,
    const hist_struct * pooled,
    era_table * table,
    split_sums * splits,         # IN and OUT
) noexcept nogil:
    """Add the eras in the lanes to the sums of a split, one after the other."""
    cdef:
        double[LANES] gradients, hessians, counts
        side_sums of_all
        era_sums left, right
        Py_ssize_t split_idx, row, lane
        int i, bin_idx

    sum_from_far_end(order, first_bin, table)
    if criterion.traits.sees_all_eras:
        pool_from_far_end(order, pooled + first_bin, table)
    memset(&of_all, 0, sizeof(of_all))
    for lane in range(LANES):
        gradients[lane] = 0.0
        hessians[lane] = 0.0
        counts[lane] = 0.0
    for i in range(order.stop):
        bin_idx = first_bin + order.bins[i]
        row = bin_idx * LANES
        for lane in range(LANES):
            gradients[lane] += table.eras.gradients[row + lane]
            counts[lane] += table.eras.counts[row + lane]
            hessians[lane] += table.eras.hessians[row + lane]
        if criterion.traits.sees_all_eras:
            of_all.left = added(of_all.left, sums_of_bin(pooled, bin_idx))
            of_all.right = table.pooled_right[i]
        if i < order.first:
            continue
        split_idx = order.first_split + i - order.first
        for lane in range(table.n_eras):
            set_sides(
                table, gradients[lane], hessians[lane], counts[lane], i * LANES + lane,
                &left, &right,
            )
            add_era(
                criterion, eras, table.codes[lane], left, right, &splits[split_idx]
            )
            if criterion.traits.sees_all_eras:
                add_beside_all(
                    criterion, eras, left, right, &of_all, &splits[split_idx]
                )


cdef inline void pool_from_far_end(
    const bin_order * order, const hist_struct * pooled, era_table * table
) noexcept nogil:
    """As `sum_from_far_end`, over all eras."""
    cdef:
        era_sums right
        int i
    memset(&right, 0, sizeof(right))
    for i in range(order.n_bins - 1, -1, -1):
        table.pooled_right[i] = right
        right = added(right, sums_of_bin(pooled, order.bins[i]))


cdef inline void scan_lanes(
    const criterion_struct * criterion,
    const bin_order * order,
    int first_bin,
    const eras_struct * eras,
    era_table * table,
) noexcept nogil:
    """Add the gain of the eras in the lanes to the lanes' sums."""
    cdef:
        double[LANES] gradients, hessians, counts
        double min_samples = criterion.min_samples_per_era
        double l2 = criterion.l2_regularization
        era_sums left, right
        era_comparison era
        Py_ssize_t split_idx, row, lane
        int i

    sum_from_far_end(order, first_bin, table)
    for lane in range(LANES):
        gradients[lane] = 0.0
        hessians[lane] = 0.0
        counts[lane] = 0.0
    for i in range(order.stop):
        row = (first_bin + order.bins[i]) * LANES
        for lane in range(LANES):
            gradients[lane] += table.eras.gradients[row + lane]
            counts[lane] += table.eras.counts[row + lane]
            hessians[lane] += table.eras.hessians[row + lane]
        if i < order.first:
            continue
        row = i * LANES
        split_idx = order.first_split + i - order.first
        for lane in range(LANES):
            set_sides(
                table, gradients[lane], hessians[lane], counts[lane], row + lane,
                &left, &right,
            )
            era = compare_sides(left, right, min_samples, l2)
            table.splits[split_idx].n_covered[lane] += era.covered
            table.splits[split_idx].directions[lane] += era.direction
            table.gains[lane] = era.gain
        if criterion.normalize_era_gain:
            normalize_gains(criterion, eras, table, hessians, row)
        add_gains(criterion, table, &table.splits[split_idx])


cdef inline void set_sides(
    const era_table * table,
    double gradients,         # of the left side
    double hessians,
    double count,
    Py_ssize_t i,             # place of the right side
    era_sums * left,          # OUT
    era_sums * right,         # OUT
) noexcept nogil:
    left.gradients = gradients
    left.hessians = hessians
    left.count = count
    right.gradients = table.right.gradients[i]
    right.hessians = table.right.hessians[i]
    right.count = table.right.counts[i]


cdef inline void normalize_gains(
    const criterion_struct * criterion,
    const eras_struct * eras,
    era_table * table,           # IN and OUT
    const double * hessians,     # of the left side, in each lane
    Py_ssize_t row,              # of the right side
) noexcept nogil:
    cdef Py_ssize_t lane
    for lane in range(LANES):
        table.gains[lane] *= gain_unit(
            criterion,
            hessians[lane] + table.right.hessians[row + lane],
            eras.gradient_variance,
        )


cdef inline void add_gains(
    const criterion_struct * criterion,
    const era_table * table,
    lane_sums * lanes,     # IN and OUT, of a split, of the table
) noexcept nogil:
    """Add the gain of each lane's era, by a loop for each kind of aggregation."""
    cdef:
        double alpha = criterion.boltzmann_alpha
        boltzmann_kind kind = kind_of_alpha(alpha)
        Py_ssize_t lane
    if kind == boltzmann_kind.MEAN:
        for lane in range(LANES):
            add_gain_to_lane(
                boltzmann_kind.MEAN, alpha, lanes, lane, table.gains[lane], 1.0
            )
    elif kind == boltzmann_kind.SMOOTHED:
        for lane in range(LANES):
            add_gain_to_lane(
                boltzmann_kind.SMOOTHED, alpha, lanes, lane, table.gains[lane],
                table.is_era[lane],
            )
    else:
        for lane in range(table.n_eras):
            add_gain_to_lane(
                boltzmann_kind.EXTREME, alpha, lanes, lane, table.gains[lane], 1.0
            )


cdef inline void scan_counted_eras(
    const criterion_struct * criterion,
    const bin_order * order,
    int first_bin,
    era_table * table,
) noexcept nogil:
    """As `scan_bins`, where hessians are counts, and means of gains are asked for.

    The loop that many eras and bins are spent in: all of it is done for a lane before
    the next one, and so a vector stays in registers. Sums are exact, and the right side
    is what is left of the total.
    """
    cdef:
        double[LANES] total_gradients, total_counts, gradients, counts
        double min_samples = criterion.min_samples_per_era
        double l2 = criterion.l2_regularization
        Py_ssize_t split_idx = order.first_split
        Py_ssize_t row, lane
        era_sums left, right
        era_comparison era
        int i

    for lane in range(LANES):
        total_gradients[lane] = 0.0
        total_counts[lane] = 0.0
        gradients[lane] = 0.0
        counts[lane] = 0.0
    for i in range(order.n_bins):
        row = (first_bin + order.bins[i]) * LANES
        for lane in range(LANES):
            total_gradients[lane] += table.eras.gradients[row + lane]
            total_counts[lane] += table.eras.counts[row + lane]
    for i in range(order.stop):
        row = (first_bin + order.bins[i]) * LANES
        for lane in range(LANES):
            gradients[lane] += table.eras.gradients[row + lane]
            counts[lane] += table.eras.counts[row + lane]
        if i < order.first:
            continue
        for lane in range(LANES):
            left.gradients = gradients[lane]
            left.hessians = counts[lane]
            left.count = counts[lane]
            right.gradients = total_gradients[lane] - gradients[lane]
            right.hessians = total_counts[lane] - counts[lane]
            right.count = total_counts[lane] - counts[lane]
            era = compare_counted_sides(left, right, min_samples, l2)
            table.splits[split_idx].n_covered[lane] += era.covered
            table.splits[split_idx].directions[lane] += era.direction
            add_gain_to_lane(
                boltzmann_kind.MEAN, 0.0, &table.splits[split_idx], lane, era.gain, 1.0
            )
        split_idx += 1


cdef inline void sum_from_far_end(
    const bin_order * order, int first_bin, era_table * table
) noexcept nogil:
    """What is to the right of the split after each move.

    Taken from a total, a side whose rows have no weight would be left with the rounding
    of the other side's sum, and with a value.
    """
    cdef:
        double[LANES] gradients, hessians, counts
        int i, lane, row
    for lane in range(LANES):
        gradients[lane] = 0.0
        hessians[lane] = 0.0
        counts[lane] = 0.0
    for i in range(order.n_bins - 1, -1, -1):
        row = (first_bin + order.bins[i]) * LANES
        for lane in range(LANES):
            table.right.gradients[i * LANES + lane] = gradients[lane]
            table.right.hessians[i * LANES + lane] = hessians[lane]
            table.right.counts[i * LANES + lane] = counts[lane]
            gradients[lane] += table.eras.gradients[row + lane]
            hessians[lane] += table.eras.hessians[row + lane]
            counts[lane] += table.eras.counts[row + lane]


cdef void compare_occupied(
    const criterion_struct * criterion,
    const eras_struct * eras,
    occupied_splits * splits,   # IN and OUT
    int n_splits,
) noexcept nogil:
    """Compare the sides of splits in one era."""
    cdef:
        double min_samples = criterion.min_samples_per_era
        double l2 = criterion.l2_regularization
        era_sums left, right
        era_comparison comparison
        Py_ssize_t i
    for i in range(n_splits):
        left.gradients = splits.left_gradients[i]
        left.hessians = splits.left_hessians[i]
        left.count = splits.left_counts[i]
        right.gradients = splits.right_gradients[i]
        right.hessians = splits.right_hessians[i]
        right.count = splits.right_counts[i]
        comparison = compare_sides(left, right, min_samples, l2)
        splits.gains[i] = comparison.gain
        splits.directions[i] = comparison.direction
        splits.covered[i] = comparison.covered
    if criterion.normalize_era_gain:
        for i in range(n_splits):
            splits.gains[i] *= gain_unit(
                criterion,
                splits.left_hessians[i] + splits.right_hessians[i],
                eras.gradient_variance,
            )


cdef void unpack_lanes(
    era_table * table, int n_bins, int count_bits, const summed_values * values
) noexcept nogil:
    """From sums of words, which are cleared, to sums; and add these to those over eras.

    The count is in a word's low bits.
    """
    cdef:
        long long one = 1
        long long mask = (one << count_bits) - 1
        Py_ssize_t n_cells = <Py_ssize_t> n_bins * LANES
        Py_ssize_t i
    for i in range(n_cells):
        table.eras.gradients[i] = values.unit * <double> (table.words[i] >> count_bits)
        table.eras.counts[i] = <double> (table.words[i] & mask)
        table.eras.hessians[i] = table.eras.counts[i]
    if not table.counts_rows:
        for i in range(n_cells):
            table.eras.gradients[i] = values.unit * <double> table.plain[i]
            table.eras.hessians[i] = (
                values.hessian_unit * <double> (table.words[i] >> count_bits)
            )
        memset(table.plain, 0, n_cells * sizeof(long long))
    memset(table.words, 0, n_cells * sizeof(long long))
    pool_eras(table, n_bins)


cdef lane_functions _functions
_functions.sum_masked_eras = sum_masked_eras
_functions.pool_masked_eras = pool_masked_eras
_functions.compare_masked_eras = compare_masked_eras
_functions.scan_bins = scan_bins
_functions.compare_occupied = compare_occupied
_functions.look_first = look_first
_functions.pool_words = pool_words
_functions.sum_bins = sum_bins
_functions.unpack_lanes = unpack_lanes

functions = PyCapsule_New(&_functions, "lane_functions", NULL)
