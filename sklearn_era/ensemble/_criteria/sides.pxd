# The two sides of a candidate split within one era, and what they have in common.
#
# Notation as in node_formulas.pxd, with an index j where the sums are over the rows of
# era j. Values are unclipped: the bounds of monotonic constraints act on the pooled
# sides only.
#
# All of this is done for several splits at a time, in the lanes of a vector. So it does
# without branches: what depends on a condition is selected, or multiplied by 1 or 0.

from libc.math cimport fabs

from .criterion cimport criterion_struct


cdef extern from *:
    """
    #define LIKENESS 4.76837158203125e-07  /* 2^-21, of their size */
    """
    const double LIKENESS  # values no further apart are one, with rounding errors


cdef enum:
    LANES = 8  # doubles in the widest of vectors


cdef struct eras_struct:
    # The eras of a node; arrays have shape (n_eras,).
    int n_eras
    const double * impurities   # of each era in the node, if the criterion needs them
    const double * era_sizes    # rows of each era in the training set; same
    double sum_hessians         # of the node, over all eras
    double gradient_variance    # at the root of the tree; see `root_variance`


cdef struct era_sums:
    # Sums over the rows of one era on one side of a candidate split.
    double gradients
    double hessians
    double count


cdef struct side_sums:
    # Both sides of a candidate split, over the rows of all eras.
    era_sums left
    era_sums right


cdef inline era_sums added(era_sums a, era_sums b) noexcept nogil:
    a.gradients += b.gradients
    a.hessians += b.hessians
    a.count += b.count
    return a


cdef inline era_sums less(era_sums a, era_sums b) noexcept nogil:
    a.gradients -= b.gradients
    a.hessians -= b.hessians
    a.count -= b.count
    return a


cdef struct era_facts:
    # Of an era in a node, whatever the split.
    era_sums all_rows
    double unit_of_gains  # see `gain_unit`
    double share          # of the era's rows, in the node
    double impurity       # before the split


cdef inline era_facts facts_of_era(
    const criterion_struct * criterion,
    const eras_struct * eras,
    int code,
    era_sums all_rows,
) noexcept nogil:
    cdef era_facts era
    era.all_rows = all_rows
    era.unit_of_gains = gain_unit(
        criterion, all_rows.hessians, eras.gradient_variance
    )
    era.share = all_rows.count / eras.era_sizes[code]
    era.impurity = eras.impurities[code]
    return era


cdef inline double gain_unit(
    const criterion_struct * criterion, double sum_hessians, double gradient_variance
) noexcept nogil:
    """Return the factor of gains: 1, or 1 / (H V) with `normalize_era_gain`.

    With V the variance of the gradients at the root, by unit of hessian, the result is
    the share of it that the split explains: a number without a unit. A tree whose
    gradients do not vary has nothing to explain, and no gain.
    """
    cdef double unit = sum_hessians * gradient_variance
    if not criterion.normalize_era_gain:
        return 1.0
    return 1.0 / unit if unit > 0.0 else 0.0


cdef inline double is_covered(
    era_sums left, era_sums right, double min_samples
) noexcept nogil:
    """Whether an era has `min_samples` rows on both sides, whatever their weights.

    As 1 or 0, of the type of all else, so that it fits a vector's lanes.
    """
    cdef double fewer = left.count if left.count < right.count else right.count
    return 1.0 if fewer >= min_samples else 0.0


cdef inline double is_informative(
    era_sums left, era_sums right, double min_samples
) noexcept nogil:
    """Whether an era is covered by a split and can say something about it, as 1 or 0.

    A side without weight predicts nothing, and so has nothing to compare.
    """
    cdef double lighter = (
        left.hessians if left.hessians < right.hessians else right.hessians
    )
    return is_covered(left, right, min_samples) * (1.0 if lighter > 0.0 else 0.0)


cdef inline era_sums neutral_unless(double informative, era_sums sums) noexcept nogil:
    """The sums of a side, or of one without gradients where the era is not informative.

    Two sides without gradients have no contrast and no gain, nor a division by 0.
    """
    cdef era_sums result
    result.gradients = sums.gradients if informative > 0.0 else 0.0
    result.hessians = sums.hessians if informative > 0.0 else 1.0
    result.count = sums.count
    return result


cdef inline double era_contrast(
    era_sums left, era_sums right, double l2_regularization
) noexcept nogil:
    """(v_Lj - v_Rj) (H_Lj + l2) (H_Rj + l2): the effect of a split, without a division.

    0 where the values differ by no more than rows that are all alike can make them:
    with sample weights, g and h are each rounded to float32, by up to 2^-24 of their
    size, and so two sides of equal rows have values that are apart by up to 4 times
    that. It would be a vote to a direction, and "more than nothing" to a gain.
    """
    cdef:
        double a = right.gradients * (left.hessians + l2_regularization)
        double b = left.gradients * (right.hessians + l2_regularization)
        double contrast = a - b
        double size = fabs(a) if fabs(a) > fabs(b) else fabs(b)
    # What is not a number stays so: sides that overflow have no contrast.
    return contrast if fabs(contrast) > LIKENESS * size else contrast - contrast


cdef inline double era_gain(
    era_sums left, era_sums right, double contrast, double l2_regularization
) noexcept nogil:
    """gain_j = G_L²/(H_L+l2) + G_R²/(H_R+l2) - G²/(H+l2), of unclipped values.

    Equation 28 of DeLise (2023), Era Splitting, which has a factor 1/2 that
    scikit-learn leaves out: all it does is to rescale `boltzmann_alpha`. The three
    terms are as large as their difference may be small, and the sign of the difference
    decides whether a split is valid. With a = H_L + l2, b = H_R + l2 and the era's
    contrast c = a b (v_L - v_R) it equals

        c² / (a b (a + b)) - l2 G² / ((a + b) (H + l2)),

    which is exactly 0, and not what rounding left over, where l2 = 0 and both sides
    predict the same.
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


cdef struct lane_eras:
    # Some eras on both sides of splits, each of which is a lane.
    int n_eras
    int[LANES] codes                # of the eras
    era_facts[LANES] facts
    int n_splits                    # the next lane is of all rows
    int n_lanes
    left_sides left
    side_arrays all_left            # (n_lanes,), over all eras, where `sees_all_eras`
    side_arrays all_right


cdef inline era_sums sums_over_eras(
    const side_arrays * side, Py_ssize_t lane
) noexcept nogil:
    cdef era_sums sums
    sums.gradients = side.gradients[lane]
    sums.hessians = side.hessians[lane]
    sums.count = side.counts[lane]
    return sums


cdef inline void set_sides_of_lane(
    bint are_counts,         # a constant
    const lane_eras * lanes,
    const era_facts * era,
    Py_ssize_t place,
    era_sums * a,            # OUT
    era_sums * b,            # OUT
) noexcept nogil:
    """Both sides of a split in an era."""
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
