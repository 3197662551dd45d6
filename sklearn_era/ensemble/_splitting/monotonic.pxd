# Monotonic constraints: splits that break one, and the bounds that it sets to children.

from .._arrays cimport NO_CST

from .nodes cimport grown_node, side_values, tree_data


cdef inline bint breaks_order(
    signed char monotonic_cst, side_values leaf
) noexcept nogil:
    """Return whether the values of a split's sides break a monotonic constraint."""
    return monotonic_cst * (leaf.right - leaf.left) < 0.0


cdef inline void set_bounds(
    const tree_data * tree, const grown_node * node,
    grown_node * left, grown_node * right,  # OUT
) noexcept:
    """If a monotonic constraint orders two children, bound the values of nodes below
    the children by the mean of the children's values.
    """
    cdef:
        signed char order = tree.monotonic_cst[node.choice.split.feature_idx]
        double middle = (left.node.value + right.node.value) / 2
    if order > NO_CST:
        left.node.pooled.upper_bound = right.node.pooled.lower_bound = middle
    elif order < NO_CST:
        left.node.pooled.lower_bound = right.node.pooled.upper_bound = middle
