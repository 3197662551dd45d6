# What a node is worth, and a split of it, pooled over eras: scikit-learn's own terms.
#
# Notation of the sources: a node has the sum of gradients G and the sum of hessians H
# of its rows; L and R are the sides of a candidate split; l2 is the estimator's
# `l2_regularization`.


cdef inline double node_value(
    double sum_gradients, double sum_hessians, double l2_regularization
) noexcept nogil:
    """v = -G / (H + l2), the Newton value of a node; 0 where no row has a weight.

    Equation 5 of Chen & Guestrin (2016), XGBoost. Scikit-learn adds 1e-15 to the
    denominator against 0 / 0, and then two sides with equal rows can differ in the last
    digit: no matter to a gain, but a vote to a direction.
    """
    cdef double mass = sum_hessians + l2_regularization
    return -sum_gradients / mass if mass > 0.0 else 0.0


cdef inline double bounded(double value, double lower, double upper) noexcept nogil:
    """`value` clipped to the bounds that monotonic constraints put on a node."""
    if value < lower:
        return lower
    if value > upper:
        return upper
    return value


cdef inline double node_loss(double sum_gradients, double value) noexcept nogil:
    """G v, twice the loss of a node at its Newton value; -G² / (H + l2) if unclipped.

    Equation 6 of Chen & Guestrin (2016), XGBoost, without the factor 1/2.
    """
    return sum_gradients * value


cdef inline double pooled_gain(
    double loss_node,
    double sum_gradients_left, double value_left,
    double sum_gradients_right, double value_right,
) noexcept nogil:
    """G v - G_L v_L - G_R v_R, the gain of a split whose values may be bounded.

    Equation 7 of Chen & Guestrin (2016), XGBoost, in scikit-learn's units: without its
    factor 1/2, and without a cost of the split.
    """
    return (
        loss_node
        - node_loss(sum_gradients_left, value_left)
        - node_loss(sum_gradients_right, value_right)
    )
