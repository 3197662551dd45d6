"""Gains, and comparisons of eras, for many candidates at once, one in each lane.

The module is compiled anew for each of the `instruction_sets`; all results agree.
"""

from cpython.pycapsule cimport PyCapsule_New
from libc.math cimport INFINITY, ldexp
from libc.string cimport memcpy, memmove

from ..._arrays cimport NO_CST, X_BINNED_DTYPE_C

from .eras cimport add_directions, add_masked_directions, sum_eras
from .functions cimport (
    bin_order, era_batch, era_visit, lane_column, lane_functions, node_struct,
    order_sides, run_up, take_planes,
)
from .masked_rows cimport add_masked_block
from ..bundles cimport MAX_BUNDLE_CELLS, MAX_SPLIT_LANES, bundle_struct
from ..fixed_points cimport (
    MAX_PLANES, n_words_of, sums_as_doubles, words_as_doubles,
)
from ..nodes cimport (
    gain_of_sides, pooled_node, side_values, tree_data, values_of_sides,
)
from ..rows cimport MAX_BINS, packed_rows, row_block
from ..._criteria.formulas cimport LANES, lane_eras
from ..._criteria.split_sums cimport add_eras


cdef double find_gains(
    Py_ssize_t first_bin,           # of the feature
    int n_codes, const bin_order * order, signed char monotonic_cst,
    const tree_data * tree, const node_struct * node, order_sides * sides,  # OUT
) noexcept nogil:
    """Set the left side and the gain of each split; return the largest gain."""
    cdef pooled_node pooled = node.pooled
    set_sides(tree, node, node.bins + first_bin, n_codes, order, sides)
    if monotonic_cst != NO_CST:
        return gains_of_sides(True, monotonic_cst, tree, &pooled, sides)
    if pooled.lower_bound > -INFINITY or pooled.upper_bound < INFINITY:
        return gains_of_sides(False, 0, tree, &pooled, sides)
    pooled.lower_bound, pooled.upper_bound = -INFINITY, INFINITY  # as constants
    return gains_of_sides(False, 0, tree, &pooled, sides)


cdef void set_sides(
    const tree_data * tree, const node_struct * node,
    const long long * bins,         # of the feature, plane after plane
    int n_codes, const bin_order * order, order_sides * sides,  # OUT
) noexcept nogil:
    """Set the left side after each move of a bin, if enough rows are on each side."""
    cdef:
        long long[MAX_PLANES * MAX_BINS] sums
        long long[MAX_BINS] moves
        const long long * of_plane
        long long * running
        long long moved
        bint has_places = node.pooled.n_samples < 2 * n_codes
        int n_planes = n_words_of(node.values) + (node.count_bits == 0)
        int first = 0, plane, i
    sides.n_splits = order.n_splits
    for plane in range(n_planes):
        of_plane = bins + plane * node.n_bins
        moved = of_plane[n_codes - 1] if order.missing_go_to_left else 0
        running = sums + plane * MAX_BINS
        if has_places:
            running = moves
        if plane == 0 and has_places:
            sum_distinct(of_plane, moved, order, sides, sums)
        elif order.is_in_turn:
            run_up(of_plane, moved, order.n_splits, running)
        else:
            for i in range(order.n_splits):
                moved += of_plane[order.codes[i]]
                running[i] = moved
        if plane == 0:
            first = keep_large_sides(tree, node, sides, sums)
        for i in range(sides.n_splits if plane > 0 and has_places else 0):
            sums[plane * MAX_BINS + first + i] = moves[sides.places[first + i]]
    if has_places and first > 0:
        memmove(sides.places, sides.places + first, sides.n_splits)
    for i in range(0 if has_places else sides.n_splits):
        sides.places[i] = first + i
    take_sides(node, sums + first, sides)


cdef inline void sum_distinct(
    const long long * bins, long long moved, const bin_order * order,
    order_sides * sides,            # OUT: places
    long long * sums,               # OUT, of these
) noexcept nogil:
    """Set the left side after each move of a bin with rows; skip empty bins."""
    cdef:
        const X_BINNED_DTYPE_C * codes = order.codes
        X_BINNED_DTYPE_C * places = sides.places
        Py_ssize_t n_splits = order.n_splits
        Py_ssize_t n = n_splits > 0
        Py_ssize_t i
        long long added
        bint is_in_turn = order.is_in_turn
    places[0] = 0
    sums[0] = moved + bins[codes[0]]
    moved = sums[0]
    for i in range(1, n_splits):
        added = bins[i if is_in_turn else codes[i]]
        moved += added
        sums[n] = moved
        places[n] = i
        n += added != 0
    sides.n_splits = n


cdef inline int keep_large_sides(
    const tree_data * tree, const node_struct * node,
    order_sides * sides,            # IN and OUT: the number of splits
    const long long * sums,
) noexcept nogil:
    """Keep splits with enough rows on both sides; return the index of the first one."""
    cdef:
        long long least = tree.min_samples_leaf
        long long most = node.pooled.n_samples - least
        int first = n_below(sums, sides.n_splits, least, node.count_bits)
        int stop = n_below(sums, sides.n_splits, most + 1, node.count_bits)
    sides.n_splits = max(stop - first, 0)
    return first


cdef inline int n_below(
    const long long * sums, int n, long long least, int count_bits
) noexcept nogil:
    """Return how many counts (the low bits of `sums`, ascending) are below `least`."""
    cdef:
        long long one = 1
        long long mask = (one << count_bits) - 1 if count_bits > 0 else -1
        int low = 0, middle
    while low < n:
        middle = (low + n) // 2
        if sums[middle] & mask < least:
            low = middle + 1
        else:
            n = middle
    return low


cdef inline void take_sides(
    const node_struct * node, const long long * sums,
    order_sides * sides,  # IN: their number; OUT
) noexcept nogil:
    cdef long long[MAX_PLANES * MAX_BINS] planes
    cdef int n = sides.n_splits
    if node.count_bits > 0 and n_words_of(node.values) == 1:
        words_as_doubles(
            sums, n, node.count_bits, ldexp(node.values.unit, -node.count_bits),
            sides.gradients, sides.counts,
        )
        memcpy(sides.hessians, sides.counts, n * sizeof(double))
        return
    if node.count_bits > 0:
        take_planes(node, sums, MAX_BINS, n, planes)
        sums = planes
    sums_as_doubles(
        node.values, sums, MAX_BINS, n, sides.gradients, sides.hessians, sides.counts
    )


cdef inline double gains_of_sides(
    bint is_monotonic,              # a constant
    signed char monotonic_cst, const tree_data * tree, const pooled_node * node,
    order_sides * sides,            # IN; OUT: gains
) noexcept nogil:
    """Set the gains of splits by scikit-learn's rules: -INFINITY where a side weighs
    too little or a value breaks a monotonic constraint. Return the largest gain.
    """
    cdef:
        double[LANES] largest
        double min_weight = tree.min_hessian_to_split
        double best = -INFINITY
        double gain, lighter, weight, hessians
        side_values leaf
        int n = sides.n_splits
        int first, i
        Py_ssize_t lane
    for lane in range(LANES):
        largest[lane] = -INFINITY
    for i in range(n, LANES):  # lanes without a split
        sides.gradients[i] = sides.hessians[i] = 0.0
    for i in range((n + LANES - 1) // LANES):
        first = max(min(i * LANES, n - LANES), 0)  # some perhaps for a second time
        for lane in range(LANES):
            hessians = sides.hessians[first + lane]
            weight = node.sum_hessians - hessians
            lighter = weight if weight < hessians else hessians
            leaf = values_of_sides(
                tree, node, sides.gradients[first + lane], hessians
            )
            gain = gain_of_sides(node, sides.gradients[first + lane], leaf)
            gain = gain if lighter >= min_weight else -INFINITY
            if is_monotonic and monotonic_cst * (leaf.right - leaf.left) < 0.0:
                gain = -INFINITY
            sides.gains[first + lane] = gain
            largest[lane] = gain if gain > largest[lane] else largest[lane]
    for i in range(min(n, <int> LANES)):
        best = largest[i] if largest[i] > best else best
    return best


cdef void compare_eras(
    const era_visit * visit, const lane_column * column, const row_block * blocks,
    int n_blocks, double * sums,  # IN and OUT, of the column's splits
    era_batch * batch,    # scratch
) noexcept nogil:
    """Compare a column's splits in the eras of some blocks; add results to `sums`."""
    cdef:
        bint has_contrasts = visit.packed.contrasts != NULL
        int block = 0, stop = n_blocks
    if (
        visit.contrast_bits > 0
        and has_contrasts
        and column.n_lanes <= MAX_SPLIT_LANES
        and add_masked_directions(visit, column, blocks, n_blocks, sums)
    ):
        return
    while block < n_blocks:
        if has_contrasts and column.bundle == NULL:
            stop = block + 1
            block += add_directions(visit, column, &blocks[block], batch.cells, sums)
        while block < stop:
            block = sum_eras(visit, column, blocks, block, stop, batch)
            add_eras(visit.criterion, visit.eras, &batch.lanes, sums)
            if visit.kept != NULL:
                keep_sides(visit, column, &batch.lanes)


cdef void keep_sides(
    const era_visit * visit, const lane_column * column, const lane_eras * lanes
) noexcept nogil:
    """Copy the sums of eras to `visit.kept`: gradients, rows and hessians on the left
    side, gradients on the right side; one lane has the sums of all rows.
    """
    cdef:
        Py_ssize_t n = lanes.n_lanes, place, i, j
        Py_ssize_t plane = n * visit.eras.n_eras
        bint are_counts = lanes.left.right_gradients == NULL
        double * kept
        double all_gradients
    for i in range(lanes.n_eras):
        kept = visit.kept + column.first_kept + lanes.codes[i] * n
        place = i * n
        memcpy(kept, lanes.left.gradients + place, n * sizeof(double))
        memcpy(kept + plane, lanes.left.counts + place, n * sizeof(double))
        memcpy(kept + 2 * plane, lanes.left.hessians + place, n * sizeof(double))
        all_gradients = kept[lanes.n_splits]
        for j in range(n):
            kept[3 * plane + j] = (
                all_gradients - kept[j] if are_counts
                else lanes.left.right_gradients[place + j]
            )


cdef void sum_bundle(
    const bundle_struct * bundle, const packed_rows * packed, const row_block * blocks,
    int n_blocks, long long * by_era,  # IN and OUT, (n_eras, n_planes, n_lanes)
) noexcept nogil:
    """Add some blocks of rows to the left sides of a bundle's splits, era by era."""
    cdef:
        long long[4 * MAX_BUNDLE_CELLS] cells
        Py_ssize_t size = (packed.n_words + 1) * bundle.n_lanes
        int i
    for i in range(n_blocks):
        add_masked_block(
            bundle, packed, &blocks[i], cells, by_era + blocks[i].era * size,
            bundle.n_lanes,
        )


cdef lane_functions _functions
_functions.find_gains = find_gains
_functions.compare_eras = compare_eras
_functions.sum_bundle = sum_bundle

functions = PyCapsule_New(&_functions, "lane_functions", NULL)
