"""The candidate splits of a feature, compared in some eras at once.

Eras are lanes of vectors here. The module is compiled once for each instruction set
(`instruction_sets`), by other names; all of them give the same bits, as no operation is
contracted or reordered.
"""

from cpython.pycapsule cimport PyCapsule_New

from ..._criteria.aggregation cimport add_to_boltzmann, boltzmann_sums
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.era_statistics cimport era_sums
from .table cimport era_table
from .functions cimport lane_functions, scan_order, touched_splits
from ..._criteria.split_sums cimport (
    LANES,
    add_era,
    compare_sides,
    era_comparison,
    eras_struct,
    gain_unit,
    split_sums,
    sums_up,
    uses_boltzmann,
)


cdef void scan_order_of_bins(
    const criterion_struct * criterion,
    const scan_order * order,
    int first_bin,
    const eras_struct * eras,
    era_table * table,
    split_sums * splits,     # IN and OUT, of the bundle
) noexcept nogil:
    """Move bins to the left side in order, and add what the eras say on the way."""
    cdef:
        double[8] gradients, hessians, counts
        era_sums left, right
        era_comparison comparison
        Py_ssize_t split_idx = order.first_split
        Py_ssize_t row, lane
        int i

    if table.counts_rows and sums_up(criterion) and not criterion.normalize_era_gain:
        sum_counted_eras(criterion, order, first_bin, table)
        return
    sum_from_far_end(order, first_bin, table)
    for lane in range(LANES):
        gradients[lane] = 0.0
        hessians[lane] = 0.0
        counts[lane] = 0.0
    for i in range(order.stop):
        row = (first_bin + order.bins[i]) * LANES
        for lane in range(LANES):
            gradients[lane] += table.gradients[row + lane]
            counts[lane] += table.counts[row + lane]
            hessians[lane] += table.hessians[row + lane]
        if i < order.first:
            continue
        row = i * LANES
        if not criterion.traits.keeps_lane_sums:
            for lane in range(table.n_eras):
                left.gradients = gradients[lane]
                left.hessians = hessians[lane]
                left.count = counts[lane]
                right.gradients = table.gradients_right[row + lane]
                right.hessians = table.hessians_right[row + lane]
                right.count = table.counts_right[row + lane]
                add_era(
                    criterion, eras, table.eras[lane], left, right, &splits[split_idx]
                )
            split_idx += 1
            continue
        for lane in range(LANES):
            left.gradients = gradients[lane]
            left.hessians = hessians[lane]
            left.count = counts[lane]
            right.gradients = table.gradients_right[row + lane]
            right.hessians = table.hessians_right[row + lane]
            right.count = table.counts_right[row + lane]
            comparison = compare_sides(
                left, right, criterion.min_samples_per_era, criterion.l2_regularization
            )
            table.lanes[split_idx].n_covered[lane] += comparison.covered
            table.lanes[split_idx].directions[lane] += comparison.direction
            table.gains[lane] = comparison.gain
        if criterion.normalize_era_gain:
            for lane in range(LANES):
                table.gains[lane] *= gain_unit(
                    criterion,
                    hessians[lane] + table.hessians_right[row + lane],
                    eras.gradient_variance,
                )
        add_gains_to_lanes(criterion, table, split_idx)
        split_idx += 1


cdef inline void add_gains_to_lanes(
    const criterion_struct * criterion, era_table * table, Py_ssize_t split_idx
) noexcept nogil:
    """Add the gain of each lane's era."""
    cdef:
        double alpha = criterion.boltzmann_alpha
        double is_extreme
        boltzmann_sums sums
        Py_ssize_t lane
    if alpha == 0.0:
        for lane in range(LANES):
            table.lanes[split_idx].gains[lane] += table.gains[lane]
    elif uses_boltzmann(criterion):
        for lane in range(LANES):
            sums.extreme = table.lanes[split_idx].gains[lane]
            sums.weights = table.lanes[split_idx].weights[lane]
            sums.offsets = table.lanes[split_idx].offsets[lane]
            sums = add_to_boltzmann(
                sums, table.gains[lane], table.is_era[lane], alpha
            )
            table.lanes[split_idx].gains[lane] = sums.extreme
            table.lanes[split_idx].weights[lane] = sums.weights
            table.lanes[split_idx].offsets[lane] = sums.offsets
    else:
        for lane in range(table.n_eras):
            is_extreme = alpha * (
                table.gains[lane] - table.lanes[split_idx].gains[lane]
            )
            if table.lanes[split_idx].weights[lane] == 0.0 or is_extreme > 0.0:
                table.lanes[split_idx].gains[lane] = table.gains[lane]
            table.lanes[split_idx].weights[lane] += 1.0


cdef inline void sum_counted_eras(
    const criterion_struct * criterion,
    const scan_order * order,
    int first_bin,
    era_table * table,
) noexcept nogil:
    """As `scan_order_of_bins`, where hessians are counts, and sums of gains are kept.

    The loop that many eras and bins are spent in: all of it is done for a lane before
    the next one, and so a vector stays in registers. Sums are exact, and the right side
    is what is left of the total.
    """
    cdef:
        double[8] total_gradients, total_counts, gradients, counts
        double min_samples = criterion.min_samples_per_era
        double l2 = criterion.l2_regularization
        Py_ssize_t split_idx = order.first_split
        Py_ssize_t row, lane
        era_sums left, right
        era_comparison comparison
        int i

    for lane in range(LANES):
        total_gradients[lane] = 0.0
        total_counts[lane] = 0.0
        gradients[lane] = 0.0
        counts[lane] = 0.0
    for i in range(order.n_bins):
        row = (first_bin + order.bins[i]) * LANES
        for lane in range(LANES):
            total_gradients[lane] += table.gradients[row + lane]
            total_counts[lane] += table.counts[row + lane]
    for i in range(order.stop):
        row = (first_bin + order.bins[i]) * LANES
        for lane in range(LANES):
            gradients[lane] += table.gradients[row + lane]
            counts[lane] += table.counts[row + lane]
        if i < order.first:
            continue
        for lane in range(LANES):
            left.gradients = gradients[lane]
            left.hessians = counts[lane]
            left.count = counts[lane]
            right.gradients = total_gradients[lane] - gradients[lane]
            right.hessians = total_counts[lane] - counts[lane]
            right.count = total_counts[lane] - counts[lane]
            comparison = compare_sides(left, right, min_samples, l2)
            table.lanes[split_idx].n_covered[lane] += comparison.covered
            table.lanes[split_idx].directions[lane] += comparison.direction
            table.lanes[split_idx].gains[lane] += comparison.gain
        split_idx += 1


cdef inline void sum_from_far_end(
    const scan_order * order, int first_bin, era_table * table
) noexcept nogil:
    """What is to the right of the split after each move.

    Taken from a total, a side whose rows have no weight would be left with the rounding
    of the other side's sum, and with a value.
    """
    cdef:
        double[8] gradients, hessians, counts
        int i, lane, row
    for lane in range(LANES):
        gradients[lane] = 0.0
        hessians[lane] = 0.0
        counts[lane] = 0.0
    for i in range(order.n_bins - 1, -1, -1):
        row = (first_bin + order.bins[i]) * LANES
        for lane in range(LANES):
            table.gradients_right[i * LANES + lane] = gradients[lane]
            table.hessians_right[i * LANES + lane] = hessians[lane]
            table.counts_right[i * LANES + lane] = counts[lane]
            gradients[lane] += table.gradients[row + lane]
            hessians[lane] += table.hessians[row + lane]
            counts[lane] += table.counts[row + lane]


cdef void compare(
    const criterion_struct * criterion,
    const eras_struct * eras,
    touched_splits * splits,   # IN and OUT
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


cdef void take_apart(
    era_table * table, int n_bins, int count_bits, double unit
) noexcept nogil:
    """From sums of words, which are cleared, to sums and to sums over eras.

    The count is in a word's low bits.
    """
    cdef:
        long long one = 1
        long long mask = (one << count_bits) - 1
        Py_ssize_t i
    for i in range(<Py_ssize_t> n_bins * LANES):
        table.gradients[i] = unit * <double> (table.words[i] >> count_bits)
        table.counts[i] = <double> (table.words[i] & mask)
        table.words[i] = 0
    for i in range(<Py_ssize_t> n_bins * LANES):
        table.hessians[i] = table.counts[i]
        table.pooled_gradients[i] += table.gradients[i]
        table.pooled_counts[i] += table.counts[i]


cdef lane_functions _functions
_functions.scan_order = scan_order_of_bins
_functions.compare = compare
_functions.take_apart = take_apart

functions = PyCapsule_New(&_functions, "lane_functions", NULL)
