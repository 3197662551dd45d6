# A node of the subtree of a small node, and what limits its splits.

from ..candidates cimport feature_split
from ..._criteria.era_statistics cimport era_contrast, era_sums
from ..._criteria.node_formulas cimport node_loss, node_value, pooled_gain


cdef struct split_limits:
    int min_samples_leaf
    double min_hessian_to_split   # of each side
    double min_gain_to_split      # the gain has to exceed it
    double l2_regularization


cdef struct small_node:
    # Sums are those that scikit-learn's grower hands down: a right child's is what the
    # left one left of its parent's.
    int start           # among the rows of the small node
    int stop
    int depth
    double sum_gradients
    double sum_hessians
    double value
    int parent          # its record; -1 of the small node itself
    bint is_right       # of the parent's children
    int level           # of its list of features


cdef struct row_sums:
    # Of the rows of a small node, each array of shape (n_rows,).
    double * gradients
    double * hessians   # NULL where they are 1


cdef inline double hessian_of(const row_sums * sums, int row) noexcept nogil:
    return 1.0 if sums.hessians == NULL else sums.hessians[row]


cdef inline double child_value(
    double sum_gradients, double sum_hessians, const split_limits * limits
) noexcept nogil:
    return node_value(sum_gradients, sum_hessians, limits.l2_regularization)


cdef inline void make_children(
    const small_node * node,
    const feature_split * split,
    int number,                   # of the node's record
    const split_limits * limits,
    small_node * left,            # OUT
    small_node * right,           # OUT
) noexcept nogil:
    cdef int middle = node.start + <int> split.n_samples_left
    right[0] = node[0]
    right.start = middle
    right.depth = node.depth + 1
    right.parent = number
    right.is_right = True
    right.sum_gradients = node.sum_gradients - split.sum_gradients_left
    right.sum_hessians = node.sum_hessians - split.sum_hessians_left
    right.value = child_value(right.sum_gradients, right.sum_hessians, limits)
    left[0] = right[0]
    left.start = node.start
    left.stop = middle
    left.is_right = False
    left.sum_gradients = split.sum_gradients_left
    left.sum_hessians = split.sum_hessians_left
    left.value = child_value(left.sum_gradients, left.sum_hessians, limits)


cdef inline double split_gain(
    const small_node * node,
    double gradients_left,
    double hessians_left,
    const split_limits * limits,
) noexcept nogil:
    """The pooled gain of a split by the sums of its left side."""
    cdef:
        double gradients_right = node.sum_gradients - gradients_left
        double hessians_right = node.sum_hessians - hessians_left
    return pooled_gain(
        node_loss(node.sum_gradients, node.value),
        gradients_left, child_value(gradients_left, hessians_left, limits),
        gradients_right, child_value(gradients_right, hessians_right, limits),
    )


cdef inline bint leaves_enough(
    int n_rows, double sum_hessians, const split_limits * limits
) noexcept nogil:
    """Whether a side of a split has the rows and the weight that it has to have."""
    return (
        n_rows >= limits.min_samples_leaf
        and sum_hessians >= limits.min_hessian_to_split
    )


cdef inline bint is_like(era_sums * first, const era_sums * other) noexcept nogil:
    """Whether a row asks for the same as the first one that has a weight.

    As far as can be told, where they have different ones.
    """
    if other.hessians <= 0.0:
        return True
    if first.hessians == 0.0:
        first[0] = other[0]
        return True
    if first.hessians == other.hessians:
        return first.gradients == other.gradients
    return era_contrast(first[0], other[0], 0.0) == 0.0
