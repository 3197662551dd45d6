# Which candidate splits a node may have, and what they gain, by sums over all eras.
#
# The rules are scikit-learn's. Sums of the right side are the node's less the left's.

from .._criteria.node_formulas cimport bounded, node_value, pooled_gain


cdef enum admission:
    ADMITTED
    TOO_SMALL_LEFT
    TOO_SMALL_RIGHT   # and only smaller, as more rows move to the left


cdef inline admission admit(
    int n_left,
    double sum_hessians_left,
    int n_rows,                   # of the node
    double sum_hessians,
    int min_samples_leaf,
    double min_hessian_to_split,
) noexcept nogil:
    """Whether both sides of a split have the rows and the weight that they must."""
    if n_left < min_samples_leaf or sum_hessians_left < min_hessian_to_split:
        return TOO_SMALL_LEFT
    if (
        n_rows - n_left < min_samples_leaf
        or sum_hessians - sum_hessians_left < min_hessian_to_split
    ):
        return TOO_SMALL_RIGHT
    return ADMITTED


cdef struct side_values:
    double left
    double right


cdef inline side_values values_of_sides(
    double sum_gradients,         # of the node
    double sum_hessians,
    double sum_gradients_left,
    double sum_hessians_left,
    double l2_regularization,
    double lower_bound,
    double upper_bound,
) noexcept nogil:
    """The Newton values of both sides, within the bounds of monotonic constraints."""
    cdef side_values values
    values.left = bounded(
        node_value(sum_gradients_left, sum_hessians_left, l2_regularization),
        lower_bound,
        upper_bound,
    )
    values.right = bounded(
        node_value(
            sum_gradients - sum_gradients_left,
            sum_hessians - sum_hessians_left,
            l2_regularization,
        ),
        lower_bound,
        upper_bound,
    )
    return values


cdef inline double gain_of_sides(
    double loss,                  # of the node at its own value
    double sum_gradients,
    double sum_gradients_left,
    side_values values,
) noexcept nogil:
    """The pooled gain of a split."""
    return pooled_gain(
        loss,
        sum_gradients_left, values.left,
        sum_gradients - sum_gradients_left, values.right,
    )
