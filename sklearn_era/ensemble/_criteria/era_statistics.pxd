# What a candidate split does within one era: one function for each statistic.
#
# Notation as in node_formulas.pxd, with an index j where the sums are over the rows of
# era j. Statistics are those of unclipped values: the bounds of monotonic constraints
# act on the pooled sides only.
#
# The scan calls the functions up to `era_gain` for several eras at once, in the lanes
# of a vector. So they do without branches: what depends on a condition is selected, or
# multiplied by 1 or 0.

from libc.math cimport copysign, fabs

from .node_formulas cimport node_value


cdef extern from *:
    """
    #define LIKENESS 4.76837158203125e-07  /* 2^-21, of their size */
    """
    const double LIKENESS  # values no further apart are one, with rounding errors


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


cdef inline double era_effect(
    era_sums left, era_sums right, double l2_regularization
) noexcept nogil:
    """v_Lj - v_Rj: how much more the left side of an era predicts.

    As the statistic whose variance over eras the invariant criterion penalises it takes
    the place of equation 20 of Liao et al. (2024), Invariant Random Forest, which looks
    at the left side alone, where a split that sends nearly all rows left has nothing to
    pay.
    """
    return era_contrast(left, right, l2_regularization) / (
        (left.hessians + l2_regularization) * (right.hessians + l2_regularization)
    )


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


cdef inline double split_direction(double contrast) noexcept nogil:
    """sign(v_L - v_R): which side of a split predicts more. DeLise (2023), eq. 38."""
    return copysign(1.0, contrast) if fabs(contrast) > 0.0 else 0.0


cdef inline double era_changing_rate(
    era_sums left, era_sums right, double l2_regularization
) noexcept nogil:
    """v_Lj - v_j: how far the left side of an era moves from the era's own value.

    Equation 20 of Liao et al. (2024), Invariant Random Forest.
    """
    return node_value(left.gradients, left.hessians, l2_regularization) - node_value(
        left.gradients + right.gradients,
        left.hessians + right.hessians,
        l2_regularization,
    )


cdef inline double era_ratio(era_sums left, era_sums right) noexcept nogil:
    """I_j: the odds of passing to the left, of the positive rows to the negative ones.

    I_j = [(pos_Lj + 1/2) / (pos_j + 1)] / [(neg_Lj + 1/2) / (neg_j + 1)], equations 16
    to 19 of Liao et al. (2024), Invariant Random Forest. Of the sums, `gradients` are
    the positive rows here, and `hessians` positive and negative rows together.
    """
    cdef:
        double negatives_left = left.hessians - left.gradients
        double negatives = negatives_left + (right.hessians - right.gradients)
        double positives = left.gradients + right.gradients
    return (left.gradients + 0.5) / (positives + 1.0) / (
        (negatives_left + 0.5) / (negatives + 1.0)
    )


cdef inline double impurity(
    double sum_squares, double sum_gradients, double sum_hessians
) noexcept nogil:
    """L = (SS - G^2 / H) / H, with SS = sum g^2 / h: the weighted impurity of rows.

    The variance of what the rows ask for, g / h, weighted by h; with a squared error,
    the variance of the residuals, and for a target of 0 and 1 half its Gini impurity:
    the loss L of chapter 5 of Moneda (2021), Domain Generalization, Invariance and the
    Time Robust Forest, in terms of gradients.
    """
    cdef double result
    if not sum_hessians > 0.0:
        return 0.0
    result = (sum_squares - sum_gradients * (sum_gradients / sum_hessians))
    return max(result / sum_hessians, 0.0)  # rounding may go below


cdef inline double impurity_decrease(era_sums left, era_sums right) noexcept nogil:
    """L_before,j - L_j, by how much a split lowers the impurity of an era.

    L_j = (SS_j - G_Lj^2 / H_Lj - G_Rj^2 / H_Rj) / H_j is the impurity after the split,
    and the difference the era's gain without regularization, by unit of its weight:
    what equation 5.4 of Moneda (2021) sums over eras. For informative eras only.
    """
    return (
        era_gain(left, right, era_contrast(left, right, 0.0), 0.0)
        / (left.hessians + right.hessians)
    )


cdef inline double value_of_others(
    era_sums of_all, era_sums of_era, double fallback, double l2_regularization
) noexcept nogil:
    """v_(-j): what the rows of the other eras alone would predict, or a fallback.

    Without such rows, or where they have so little of the weight that rounding could
    have left it, there is no such value; and one that is like the fallback is it.
    """
    cdef:
        double hessians = of_all.hessians - of_era.hessians
        double has_others = 1.0 if of_all.count > of_era.count else 0.0
        double has_weight = 1.0 if hessians > LIKENESS * of_all.hessians else 0.0
        double weight = hessians if has_others * has_weight > 0.0 else 1.0
        double value = node_value(
            of_all.gradients - of_era.gradients, weight, l2_regularization
        )
        double size = fabs(value) if fabs(value) > fabs(fallback) else fabs(fallback)
        double differs = 0.0 if fabs(value - fallback) <= LIKENESS * size else 1.0
    return value if has_others * has_weight * differs > 0.0 else fallback


cdef inline double held_out_gain(
    era_sums left,
    era_sums right,
    const side_sums * of_all,
    double l2_regularization,
) noexcept nogil:
    """What a split saves in an era if its values are those of the other eras.

    q(G_j, H_j, v_(-j)) - q(G_Lj, H_Lj, v_L(-j)) - q(G_Rj, H_Rj, v_R(-j)) with
    q(G, H, v) = 2 G v + H v², the loss of rows that are predicted v, taken apart into
    what each side saves: a difference of squares, exactly 0 where v does not change,
    as it hardly does between sides of equal rows with weights (see `era_contrast`). A
    side without other eras predicts what the node does.
    """
    cdef:
        double value = value_of_others(
            added(of_all.left, of_all.right), added(left, right), 0.0, l2_regularization
        )
        double value_left = value_of_others(
            of_all.left, left, value, l2_regularization
        )
        double value_right = value_of_others(
            of_all.right, right, value, l2_regularization
        )
    return (value - value_left) * (
        2.0 * left.gradients + left.hessians * (value + value_left)
    ) + (value - value_right) * (
        2.0 * right.gradients + right.hessians * (value + value_right)
    )
