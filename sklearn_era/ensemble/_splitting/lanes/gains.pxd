# The pooled gains of the splits of one order of bins.

from libc.math cimport INFINITY
from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    MonotonicConstraint, X_BINNED_DTYPE_C,
)

from .functions cimport bin_order, node_struct, order_sides, run_up
from ..admission cimport gain_of_sides, side_values, values_of_sides
from ..fixed_points cimport (
    MAX_PLANES, gradient_of_sums, hessian_of_sums, n_words_of, summed_values,
    word_as_double,
)
from ..rows cimport MAX_BINS
from ..tree_data cimport tree_limits
from ..._criteria.sides cimport LANES


cdef inline double find_gains(
    Py_ssize_t first_bin,           # of the feature
    int n_codes,
    const bin_order * order,
    signed char monotonic_cst,
    const tree_limits * limits,
    const node_struct * node,
    order_sides * sides,            # OUT
) noexcept nogil:
    """Find the left side of each split and its gain; return the largest gain."""
    set_left_sides(node, node.bins + first_bin, n_codes, order, sides)
    if monotonic_cst == MonotonicConstraint.NO_CST:
        return gains_of_sides(False, 0, order.n_splits, limits, node, sides)
    return gains_of_sides(True, monotonic_cst, order.n_splits, limits, node, sides)


cdef inline void set_left_sides(
    const node_struct * node,
    const long long * bins,         # sums of the feature, plane after plane
    int n_codes,
    const bin_order * order,
    order_sides * sides,            # OUT
) noexcept nogil:
    """The left side of the split after each move."""
    cdef:
        const summed_values * values = node.values
        long long[MAX_PLANES * MAX_BINS] left
        const long long * of_plane
        long long moved
        int n_planes = n_words_of(values) + 1
        bint vary = values.hessians != NULL
        int plane, i
    for plane in range(n_planes):
        of_plane = bins + plane * node.n_bins
        moved = of_plane[n_codes - 1] if order.missing_go_to_left else 0
        if order.is_in_turn:
            run_up(of_plane, moved, order.n_splits, &left[plane * MAX_BINS])
            continue
        for i in range(order.n_splits):
            moved += of_plane[order.codes[i]]
            left[plane * MAX_BINS + i] = moved
    if sides.wants_right:
        set_right_sides(node, bins, n_codes, left, order.n_splits, sides)
    for i in range(order.n_splits):
        sides.left_counts[i] = word_as_double(left[i])
    if values.has_low_words or vary:  # as many digits as a double has, or more
        for i in range(order.n_splits):
            sides.left_gradients[i] = gradient_of_sums(values, &left[i], MAX_BINS)
            sides.left_hessians[i] = hessian_of_sums(values, &left[i], MAX_BINS)
        return
    for i in range(order.n_splits):
        sides.left_gradients[i] = values.unit * word_as_double(left[MAX_BINS + i])
        sides.left_hessians[i] = sides.left_counts[i]


cdef inline void set_right_sides(
    const node_struct * node,
    const long long * bins,
    int n_codes,
    const long long * left,         # (n_planes, MAX_BINS)
    int n_splits,
    order_sides * sides,            # OUT
) noexcept nogil:
    """The right side of each split: what is left of the integers of all rows."""
    cdef:
        const summed_values * values = node.values
        long long[MAX_PLANES] total, right
        int n_planes = n_words_of(values) + 1
        int plane, i
    for plane in range(n_planes):
        total[plane] = 0
        for i in range(n_codes):
            total[plane] += bins[plane * node.n_bins + i]
    for i in range(n_splits):
        for plane in range(n_planes):
            right[plane] = total[plane] - left[plane * MAX_BINS + i]
        sides.right_counts[i] = <double> right[0]
        sides.right_gradients[i] = gradient_of_sums(values, right, 1)
        sides.right_hessians[i] = hessian_of_sums(values, right, 1)


cdef inline double gains_of_sides(
    bint is_monotonic,              # a constant
    signed char monotonic_cst,
    int n_splits,
    const tree_limits * limits,
    const node_struct * node,
    order_sides * sides,            # IN, and OUT their gains
) noexcept nogil:
    """Find the gains, by scikit-learn's own rules; return the largest one.

    Sums of the right side are the node's less the left's.
    """
    cdef:
        double[LANES] largest
        double min_rows = limits.min_samples_leaf
        double min_weight = limits.min_hessian_to_split
        double n_samples = node.n_samples
        double gain, best, lighter, fewer, weight
        side_values leaf
        int i, lane
    for i in range(n_splits):
        weight = node.sum_hessians - sides.left_hessians[i]
        lighter = weight if weight < sides.left_hessians[i] else sides.left_hessians[i]
        fewer = n_samples - sides.left_counts[i]
        fewer = fewer if fewer < sides.left_counts[i] else sides.left_counts[i]
        leaf = values_of_sides(
            node.sum_gradients, node.sum_hessians,
            sides.left_gradients[i], sides.left_hessians[i],
            limits.l2_regularization, node.lower_bound, node.upper_bound,
        )
        gain = gain_of_sides(
            node.loss, node.sum_gradients, sides.left_gradients[i], leaf
        )
        gain = gain if fewer >= min_rows else -INFINITY
        gain = gain if lighter >= min_weight else -INFINITY
        if is_monotonic:
            gain = -INFINITY if monotonic_cst * (leaf.right - leaf.left) < 0.0 else gain
        sides.gains[i] = gain
    best = -INFINITY
    if n_splits >= LANES:
        for lane in range(LANES):
            largest[lane] = sides.gains[lane]
        for i in range(1, n_splits // LANES):
            for lane in range(LANES):
                gain = sides.gains[i * LANES + lane]
                largest[lane] = gain if gain > largest[lane] else largest[lane]
        for lane in range(LANES):
            best = largest[lane] if largest[lane] > best else best
    for i in range(n_splits - n_splits % LANES, n_splits):
        best = sides.gains[i] if sides.gains[i] > best else best
    return best
