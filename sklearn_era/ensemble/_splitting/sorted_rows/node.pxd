# A node of the subtree of a small node.

from libc.math cimport INFINITY

from ..admission cimport (
    ADMITTED, admission, admit, gain_of_sides, side_values, values_of_sides,
)
from ..candidates.split cimport feature_split
from ..tree_data cimport tree_limits
from ..._criteria.node_formulas cimport node_loss


cdef struct small_node:
    # Sums are those that scikit-learn's grower hands down: a right child's is what the
    # left one left of its parent's.
    int start           # among the rows of the small node
    int stop
    int depth
    double sum_gradients
    double sum_hessians
    double value
    int parent          # its record; -1 of a root
    bint is_right       # of the parent's children


cdef inline side_values child_values(
    const small_node * node, const feature_split * split, const tree_limits * limits
) noexcept nogil:
    return values_of_sides(
        node.sum_gradients, node.sum_hessians,
        split.sum_gradients_left, split.sum_hessians_left,
        limits.l2_regularization, -INFINITY, INFINITY,
    )


cdef inline admission find_gain(
    const small_node * node,
    const tree_limits * limits,
    feature_split * split,        # IN, its left side, and OUT, if it is admitted
) noexcept nogil:
    """Find the pooled gain of a split; return whether it is admitted."""
    cdef admission admitted = admit(
        split.n_samples_left, split.sum_hessians_left,
        node.stop - node.start, node.sum_hessians,
        limits.min_samples_leaf, limits.min_hessian_to_split,
    )
    if admitted == ADMITTED:
        split.rank.gain = gain_of_sides(
            node_loss(node.sum_gradients, node.value),
            node.sum_gradients,
            split.sum_gradients_left,
            child_values(node, split, limits),
        )
    return admitted


cdef inline void make_children(
    const small_node * node,
    const feature_split * split,
    int number,                   # of the node's record
    const tree_limits * limits,
    small_node * left,            # OUT
    small_node * right,           # OUT
) noexcept nogil:
    cdef side_values values = child_values(node, split, limits)
    left[0] = node[0]
    left.depth += 1
    left.parent = number
    right[0] = left[0]
    left.is_right = False
    left.stop = node.start + <int> split.n_samples_left
    left.sum_gradients = split.sum_gradients_left
    left.sum_hessians = split.sum_hessians_left
    left.value = values.left
    right.is_right = True
    right.start = left.stop
    right.sum_gradients = node.sum_gradients - split.sum_gradients_left
    right.sum_hessians = node.sum_hessians - split.sum_hessians_left
    right.value = values.right
