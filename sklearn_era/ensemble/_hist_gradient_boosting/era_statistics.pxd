# What a candidate split does within one era: one function for each statistic.
#
# Notation as in node_formulas.pxd, with an index j where the sums are over the rows of
# era j. Statistics are those of unclipped values: the bounds of monotonic constraints
# act on the pooled sides only.

from libc.math cimport fabs

from libc.math cimport NAN

from sklearn.ensemble._hist_gradient_boosting.common cimport hist_struct

from sklearn_era.ensemble._hist_gradient_boosting.node_formulas cimport node_value


cdef inline bint is_covered(
    const hist_struct * left, const hist_struct * right, unsigned int min_samples
) noexcept nogil:
    """Whether an era has `min_samples` rows on both sides, whatever their weights."""
    return left.count >= min_samples and right.count >= min_samples


cdef inline bint is_informative(
    const hist_struct * left, const hist_struct * right, unsigned int min_samples
) noexcept nogil:
    """Whether an era is covered by a split and can say something about it.

    A side without weight predicts nothing, and so has nothing to compare.
    """
    return (
        is_covered(left, right, min_samples)
        and left.sum_hessians > 0.0
        and right.sum_hessians > 0.0
    )


cdef inline double era_effect(double value_left, double value_right) noexcept nogil:
    """v_Lj - v_Rj: how much more the left side of an era predicts.

    0 where the values differ by no more than rows that are all alike can make them:
    with sample weights, g and h are each rounded to float32, by up to 2^-24 of their
    size, and so two sides of equal rows have values that are apart by up to 4 times
    that. It would be a vote to a direction, and "more than nothing" to a gain.

    As the statistic whose variance over eras the invariant criterion penalises it takes
    the place of equation 20 of Liao et al. (2024), Invariant Random Forest, which looks
    at the left side alone, where a split that sends nearly all rows left has nothing to
    pay.
    """
    cdef:
        double effect = value_left - value_right
        double size = max(fabs(value_left), fabs(value_right))
        double likeness = 4.76837158203125e-07  # 2^-21, with room for further rounding
    return effect if fabs(effect) > likeness * size else 0.0


cdef inline double era_gain(
    double sum_gradients_left, double sum_hessians_left,
    double sum_gradients_right, double sum_hessians_right,
    double effect, double l2_regularization,
) noexcept nogil:
    """gain_j = G_L²/(H_L+l2) + G_R²/(H_R+l2) - G²/(H+l2), of unclipped values.

    Equation 28 of DeLise (2023), Era Splitting, which has a factor 1/2 that
    scikit-learn leaves out: all it does is to rescale `boltzmann_alpha`. The three
    terms are as large as their difference may be small, and the sign of the difference
    decides whether a split is valid. With a = H_L + l2, b = H_R + l2 and the era's
    effect it equals

        a b / (a + b) effect² - l2 G² / ((a + b) (H + l2)),

    which is exactly 0, and not what rounding left over, where l2 = 0 and both sides
    predict the same.
    """
    cdef:
        double a = sum_hessians_left + l2_regularization
        double b = sum_hessians_right + l2_regularization
        double sum_gradients
        double gain

    if not a + b > 0.0:
        return 0.0
    gain = a / (a + b) * b * effect * effect
    if l2_regularization > 0.0:
        sum_gradients = sum_gradients_left + sum_gradients_right
        gain -= (
            l2_regularization / (a + b) * sum_gradients
            * (sum_gradients / (a + b - l2_regularization))
        )
    return gain


cdef inline int split_direction(double effect) noexcept nogil:
    """sign(v_L - v_R): which side of a split predicts more. DeLise (2023), eq. 38."""
    return (effect > 0.0) - (effect < 0.0)


cdef inline double compare_era(
    const hist_struct * left, const hist_struct * right,
    unsigned int min_samples, double l2_regularization,
    int * direction,  # OUT
) noexcept nogil:
    """Gain and direction of an era, both 0 if it is not informative."""
    cdef double effect
    if not is_informative(left, right, min_samples):
        direction[0] = 0
        return 0.0
    effect = era_effect(
        node_value(left.sum_gradients, left.sum_hessians, l2_regularization),
        node_value(right.sum_gradients, right.sum_hessians, l2_regularization),
    )
    direction[0] = split_direction(effect)
    return era_gain(
        left.sum_gradients, left.sum_hessians,
        right.sum_gradients, right.sum_hessians,
        effect, l2_regularization,
    )


cdef inline double era_changing_rate(
    const hist_struct * left, const hist_struct * right,
    double value_left, double l2_regularization,
) noexcept nogil:
    """v_Lj - v_j: how far the left side of an era moves from the era's own value.

    Equation 20 of Liao et al. (2024), Invariant Random Forest.
    """
    return value_left - node_value(
        left.sum_gradients + right.sum_gradients,
        left.sum_hessians + right.sum_hessians,
        l2_regularization,
    )


cdef inline double era_ratio(
    double positives_left, double total_left,
    double positives_right, double total_right,
) noexcept nogil:
    """I_j: the odds of passing to the left, of the positive rows to the negative ones.

    I_j = [(pos_Lj + 1/2) / (pos_j + 1)] / [(neg_Lj + 1/2) / (neg_j + 1)], equations 16
    to 19 of Liao et al. (2024), Invariant Random Forest. `total` is positive and
    negative rows together.
    """
    cdef:
        double negatives_left = total_left - positives_left
        double negatives = negatives_left + (total_right - positives_right)
        double positives = positives_left + positives_right
    return (positives_left + 0.5) / (positives + 1.0) / (
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


cdef inline double impurity_decrease(
    const hist_struct * left, const hist_struct * right
) noexcept nogil:
    """L_before,j - L_j, by how much a split lowers the impurity of an era.

    L_j = (SS_j - G_Lj^2 / H_Lj - G_Rj^2 / H_Rj) / H_j is the impurity after the split,
    and the difference the era's gain without regularization, by unit of its weight:
    what equation 5.4 of Moneda (2021) sums over eras. For informative eras only.
    """
    cdef int direction
    return (
        compare_era(left, right, 0, 0.0, &direction)
        / (left.sum_hessians + right.sum_hessians)
    )
