# Equations that the criteria share: the value and loss of a node, both sides of a split
# in an era, and moments over eras.
#
# G and H are sums of gradients and hessians of a node, G_L and G_R of the sides of a
# split, G_Lj of those in era j; l2 is `l2_regularization`. Monotonic constraints bound
# the values of pooled sides only. The functions of an era are branch-free, as they run
# for several splits at a time, one in each lane.

from libc.math cimport fabs, sqrt

from .criterion cimport criterion_struct


cdef inline double node_value(
    double sum_gradients, double sum_hessians, double l2_regularization
) noexcept nogil:
    """Return v = -G / (H + l2), the Newton value of a node; 0 if no row has weight.

    Equation 5 of Chen & Guestrin (2016), XGBoost. Scikit-learn adds 1e-15 to the
    denominator, which could give a direction to a split of equal rows.
    """
    cdef double mass = sum_hessians + l2_regularization
    return -sum_gradients / mass if mass > 0.0 else 0.0


cdef inline double bounded(double value, double lower, double upper) noexcept nogil:
    """Return a value, clipped to the bounds of monotonic constraints."""
    if value < lower:
        return lower
    if value > upper:
        return upper
    return value


cdef inline double node_loss(double sum_gradients, double value) noexcept nogil:
    """Return G v, twice the loss of a node of value v, which is -G² / (H + l2) unless v
    is clipped. Equation 6 of Chen & Guestrin (2016), XGBoost, without the factor 1/2.
    """
    return sum_gradients * value


cdef extern from *:
    """
    #define REL_TOL 4.76837158203125e-07  /* 2^-21, relative to the larger value */
    """
    const double REL_TOL  # values this close are equal, but for rounding


cdef enum:
    LANES = 8  # doubles in the widest vector register


cdef struct eras_struct:
    # The eras of a node; arrays have shape (n_eras,).
    int n_eras
    const double * impurities   # of each era in the node, if `reads_impurities`
    const double * era_sizes    # rows of each era in the training set, likewise
    const double * min_samples  # rows of each era on both sides that cover it
    double sum_hessians         # of the node, over all eras
    double gradient_variance    # at the root of the tree; see `root_variance`


cdef struct era_sums:
    # Sums over the rows of one era on one side of a candidate split.
    double gradients
    double hessians
    double count


cdef struct era_facts:
    # An era in a node, independent of the split.
    era_sums all_rows
    double unit_of_gains  # see `gain_unit`
    double min_samples    # on both sides of a split that covers the era
    # These three only for TIME_ROBUST.
    double share          # of the era's rows that are in the node
    double impurity       # before the split
    double least_impurity  # a smaller one is rounding


cdef inline double deviation(era_sums side, const era_facts * era) noexcept nogil:
    """Return n std = (n SS - G^2)^(1/2) of a side's n rows; 0 for a rounding error. The
    sum of squares SS is in the field `hessians`.
    """
    cdef:
        double least = era.least_impurity * era.least_impurity * era.all_rows.count
        double squared = side.count * side.hessians - side.gradients * side.gradients
    return sqrt(squared if squared > side.count * least else 0.0)


cdef inline era_facts facts_of_era(
    const criterion_struct * criterion, const eras_struct * eras, int code,
    era_sums all_rows,
) noexcept nogil:
    cdef:
        era_facts era
        double value
    era.all_rows = all_rows
    era.unit_of_gains = gain_unit(criterion, all_rows.hessians, eras.gradient_variance)
    era.min_samples = eras.min_samples[code]
    if not (criterion.traits.reads_impurities or criterion.takes_deviation):
        return era
    era.share = all_rows.count / eras.era_sizes[code]
    era.impurity = eras.impurities[code]
    value = node_value(all_rows.gradients, all_rows.hessians, 0.0)
    # Of values that differ by REL_TOL: the impurity and value^2 add up to mean squares.
    era.least_impurity = REL_TOL * REL_TOL * (era.impurity + value * value)
    if criterion.takes_deviation and all_rows.count > 0.0:
        era.least_impurity = sqrt(
            criterion.least_variance
            + REL_TOL * REL_TOL * all_rows.hessians / all_rows.count
        )
        era.impurity = deviation(all_rows, &era) / all_rows.count
    return era


cdef inline double gain_unit(
    const criterion_struct * criterion, double sum_hessians, double gradient_variance
) noexcept nogil:
    """Return the factor by which gains are multiplied: 1, or 1 / (H V) to normalise
    them (0 if H V is 0). H is `sum_hessians`, and V is the variance of gradients at the
    root, per unit of hessian.
    """
    cdef double unit = sum_hessians * gradient_variance
    if not criterion.normalize_era_gain:
        return 1.0
    return 1.0 / unit if unit > 0.0 else 0.0


cdef inline double is_covered(
    era_sums left, era_sums right, double min_samples
) noexcept nogil:
    """Return 1 if an era has `min_samples` rows on both sides of a split, else 0."""
    cdef double fewer = left.count if left.count < right.count else right.count
    return 1.0 if fewer >= min_samples else 0.0


cdef inline double is_informative(
    era_sums left, era_sums right, double min_samples
) noexcept nogil:
    """Return 1 if an era has `min_samples` rows, and weight, on both sides, else 0."""
    cdef double lighter = (
        left.hessians if left.hessians < right.hessians else right.hessians
    )
    return is_covered(left, right, min_samples) * (1.0 if lighter > 0.0 else 0.0)


cdef inline era_sums neutral_unless(double informative, era_sums sums) noexcept nogil:
    """Return a side's sums; unless `informative`, set gradients to 0, hessians to 1."""
    cdef era_sums result
    result.gradients = sums.gradients if informative > 0.0 else 0.0
    result.hessians = sums.hessians if informative > 0.0 else 1.0
    result.count = sums.count
    return result


cdef inline double era_contrast(
    era_sums left, era_sums right, double l2_regularization
) noexcept nogil:
    """Return (v_Lj - v_Rj) (H_Lj + l2) (H_Rj + l2), which has the sign of v_Lj - v_Rj.
    It is 0 if rounding alone could make the values differ: with sample weights, g and h
    are rounded to float32, by up to 2^-24 of their size.
    """
    cdef:
        double a = right.gradients * (left.hessians + l2_regularization)
        double b = left.gradients * (right.hessians + l2_regularization)
        double contrast = a - b
        double size = fabs(a) if fabs(a) > fabs(b) else fabs(b)
    # Keeps NaN: sides that overflow have no contrast.
    return contrast if fabs(contrast) > REL_TOL * size else contrast - contrast


cdef inline double era_gain(
    era_sums left, era_sums right, double contrast, double l2_regularization
) noexcept nogil:
    """Return gain_j = G_L²/(H_L+l2) + G_R²/(H_R+l2) - G²/(H+l2), with unclipped values.

    Equation 28 of DeLise (2023), Era Splitting, without its factor 1/2, as in
    scikit-learn. With a = H_L + l2, b = H_R + l2 and c = a b (v_L - v_R), it is

        c² / (a b (a + b)) - l2 G² / ((a + b) (H + l2)),

    exactly 0 if l2 = 0 and both sides have the same value.
    """
    cdef:
        double a = left.hessians + l2_regularization
        double b = right.hessians + l2_regularization
        double sum_gradients = left.gradients + right.gradients
        double gain = contrast * (contrast / (a * b * (a + b)))
    if l2_regularization > 0.0:
        gain -= l2_regularization * sum_gradients * (
            sum_gradients / ((a + b) * (a + b - l2_regularization))
        )
    return gain


cdef struct left_sides:
    # The left sides of splits in some eras; arrays are (n_eras, n_lanes). Right sides
    # are differences from all rows, except gradients in more digits than these have.
    const double * gradients
    const double * hessians
    const double * counts
    const double * right_gradients  # NULL: hessians are counts, and differences do


cdef struct lane_eras:
    # Some eras of splits, one split in each lane.
    int n_eras
    int[LANES] codes                # of the eras
    era_facts[LANES] facts
    int n_splits                    # the lane after them has all rows
    int n_lanes
    left_sides left


cdef inline void set_sides_of_lane(
    bint are_counts,         # a constant
    const lane_eras * lanes, const era_facts * era, Py_ssize_t place,
    era_sums * a,            # OUT
    era_sums * b,            # OUT
) noexcept nogil:
    """Set `a` and `b` to an era's sums on the left and right side of a split; `place`
    is the index of this era and split in the arrays of `lanes`.
    """
    a.gradients = lanes.left.gradients[place]
    a.count = lanes.left.counts[place]
    b.count = era.all_rows.count - a.count
    if are_counts:
        b.gradients = era.all_rows.gradients - a.gradients
        a.hessians = a.count
        b.hessians = b.count
    else:
        b.gradients = lanes.left.right_gradients[place]
        a.hessians = lanes.left.hessians[place]
        b.hessians = era.all_rows.hessians - a.hessians


# Moments relative to the first value, which is at most sqrt(n) deviations from the
# mean: so the difference of squares loses few digits, and equal values have variance 0.
cdef enum:
    N_VALUES
    ORIGIN    # the first value
    SHIFTED   # sum_j (x_j - origin)
    SQUARES   # sum_j (x_j - origin)^2
    N_CENTRAL_FIELDS
    SMALLEST = N_CENTRAL_FIELDS  # the rest only where statistics need it
    LARGEST
    N_MOMENT_FIELDS


cdef inline void add_to_moments(
    bint has_extremes,        # a constant
    double value, double count, double * sums, Py_ssize_t stride,
) noexcept nogil:
    """Add `value` to moments `count` times (perhaps 0), without a branch."""
    cdef:
        double origin = sums[ORIGIN * stride]
        double is_first = 1.0 if sums[0] == 0.0 else 0.0
        double offset = 0.0 if is_first > 0.0 else value - origin
        double smallest, largest, is_smaller, is_larger
    sums[0] += count
    sums[ORIGIN * stride] = value if is_first > 0.0 else origin
    sums[SHIFTED * stride] += count * offset
    sums[SQUARES * stride] += count * offset * offset
    if not has_extremes:
        return
    smallest, largest = sums[SMALLEST * stride], sums[LARGEST * stride]
    is_smaller = 1.0 if value < smallest else is_first
    is_larger = 1.0 if value > largest else is_first
    sums[SMALLEST * stride] = value if count * is_smaller > 0.0 else smallest
    sums[LARGEST * stride] = value if count * is_larger > 0.0 else largest


cdef inline void merge_moments(
    int n_fields, double * sums, const double * others
) noexcept nogil:
    """Add `others`, moments of other eras, to `sums`, and keep the origin of `sums`."""
    cdef:
        double shift = others[ORIGIN] - sums[ORIGIN]
        double n_others = others[N_VALUES]
        int i
    if n_others == 0.0:
        return
    if sums[N_VALUES] == 0.0:
        for i in range(n_fields):
            sums[i] = others[i]
        return
    sums[N_VALUES] += n_others
    sums[SQUARES] += others[SQUARES]
    sums[SQUARES] += shift * (2.0 * others[SHIFTED] + n_others * shift)
    sums[SHIFTED] += others[SHIFTED] + n_others * shift
    if n_fields > N_CENTRAL_FIELDS:
        sums[SMALLEST] = min(sums[SMALLEST], others[SMALLEST])
        sums[LARGEST] = max(sums[LARGEST], others[LARGEST])


cdef inline double mean(const double * sums) noexcept nogil:
    return sums[ORIGIN] + sums[SHIFTED] / sums[N_VALUES]


cdef inline double variance(const double * sums) noexcept nogil:
    """Return the population variance (ddof=0); 0 for fewer than two values."""
    cdef double result
    if sums[N_VALUES] < 2.0:
        return 0.0
    result = sums[SQUARES] - sums[SHIFTED] * (sums[SHIFTED] / sums[N_VALUES])
    return max(result / sums[N_VALUES], 0.0)  # against rounding
