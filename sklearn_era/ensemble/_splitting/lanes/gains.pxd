# Gains of the splits of a feature, in lanes: sums on the left side of each, by
# scikit-learn's rules for limits of rows and weights and for monotonic constraints.

from libc.math cimport INFINITY, ldexp
from libc.string cimport memcpy, memmove

from ..._arrays cimport NO_CST, X_BINNED_DTYPE_C

from .functions cimport bin_order, node_struct, order_sides, run_up, take_planes
from ..fixed_points cimport (
    MAX_PLANES, n_words_of, sums_as_doubles, words_as_doubles,
)
from ..monotonic cimport breaks_order
from ..nodes cimport (
    gain_of_sides, pooled_node, side_values, tree_data, values_of_sides,
)
from ..rows cimport MAX_BINS
from ..._criteria.formulas cimport LANES


cdef inline double find_gains(
    Py_ssize_t first_bin,           # of the feature
    int n_codes, const bin_order * order, signed char monotonic_cst,
    const tree_data * tree, const node_struct * node, order_sides * sides,  # OUT
) noexcept nogil:
    """Set the left side's sums and the gain of each split; return the largest gain."""
    cdef pooled_node pooled = node.pooled
    set_sides(tree, node, node.bins + first_bin, n_codes, order, sides)
    if monotonic_cst != NO_CST:
        return gains_of_sides(True, monotonic_cst, tree, &pooled, sides)
    if pooled.lower_bound > -INFINITY or pooled.upper_bound < INFINITY:
        return gains_of_sides(False, 0, tree, &pooled, sides)
    pooled.lower_bound, pooled.upper_bound = -INFINITY, INFINITY  # as constants
    return gains_of_sides(False, 0, tree, &pooled, sides)


cdef inline void set_sides(
    const tree_data * tree, const node_struct * node,
    const long long * bins,         # of the feature, plane after plane
    int n_codes, const bin_order * order, order_sides * sides,  # OUT
) noexcept nogil:
    """Set the sums on the left side after each move of a bin, for the splits that leave
    enough rows on both sides.
    """
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
    """Set the sums on the left after each move of a bin with rows; skip empty bins."""
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
            if is_monotonic and breaks_order(monotonic_cst, leaf):
                gain = -INFINITY
            sides.gains[first + lane] = gain
            largest[lane] = gain if gain > largest[lane] else largest[lane]
    for i in range(min(n, <int> LANES)):
        best = largest[i] if largest[i] > best else best
    return best
