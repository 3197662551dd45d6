# "invariant": the gain minus a multiple of the spread of a split's statistic between
# eras. Liao et al. (2024), Invariant Random Forest.

from .criterion cimport InvarianceStatistic, criterion_struct, split_rank
from .formulas cimport (
    LARGEST, N_VALUES, SMALLEST, era_contrast, era_sums, eras_struct, node_value,
    variance,
)


cdef inline double era_effect(
    era_sums left, era_sums right, double l2_regularization
) noexcept nogil:
    """Return v_Lj - v_Rj: the difference of the sides' values in an era. It replaces
    equation 20 of Liao et al. (2024), which ignores the right side.
    """
    return era_contrast(left, right, l2_regularization) / (
        (left.hessians + l2_regularization) * (right.hessians + l2_regularization)
    )


cdef inline double era_changing_rate(
    era_sums left, era_sums right, double l2_regularization
) noexcept nogil:
    """Return v_Lj - v_j: the left side's value less the era's own value. Equation 20 of
    Liao et al. (2024), Invariant Random Forest.
    """
    return node_value(left.gradients, left.hessians, l2_regularization) - node_value(
        left.gradients + right.gradients, left.hessians + right.hessians,
        l2_regularization,
    )


cdef inline double era_ratio(era_sums left, era_sums right) noexcept nogil:
    """Return I_j: how many times likelier positive rows go left than negative rows.

    I_j = [(pos_Lj + 1/2) / (pos_j + 1)] / [(neg_Lj + 1/2) / (neg_j + 1)], equations 16
    to 19 of Liao et al. (2024), Invariant Random Forest. Here `gradients` are sums over
    positive rows, and `hessians` sums over all rows.
    """
    cdef:
        double negatives_left = left.hessians - left.gradients
        double negatives = negatives_left + (right.hessians - right.gradients)
        double positives = left.gradients + right.gradients
    return (left.gradients + 0.5) / (positives + 1.0) / (
        (negatives_left + 0.5) / (negatives + 1.0)
    )


cdef inline double spread_of_ratios(const double * moments) noexcept nogil:
    """Return max_j I_j / min_j I_j - 1 of ratios I_j > 0; 0 for fewer than two ratios.
    Equation 16 of Liao et al. (2024), Invariant Random Forest.
    """
    if moments[N_VALUES] < 2.0:
        return 0.0
    return moments[LARGEST] / moments[SMALLEST] - 1.0


cdef inline bint rank_invariant(
    const criterion_struct * criterion, const eras_struct * eras,
    const double * moments,  # of the statistic over informative eras
    split_rank * rank,
) noexcept nogil:
    """Set a split's key to gain - lambda H penalty; return whether the split is valid.

    Equation 15 of Liao et al. (2024), times H, the node's sum of hessians. lambda is
    `invariance_penalty`. The penalty is equation 16 for a ratio, 22 for a difference. A
    negative key does not exclude a split.
    """
    cdef double penalty
    if criterion.invariance_statistic == InvarianceStatistic.RATIO:
        penalty = eras.sum_hessians * spread_of_ratios(moments)
    else:
        penalty = eras.sum_hessians * variance(moments)
    rank.primary = rank.gain
    if penalty > 0.0:
        rank.primary -= criterion.invariance_penalty * penalty
    return rank.gain > 0.0
