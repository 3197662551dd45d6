"""Which nodes of a tree are small, and what else its large ones have to be told."""

from sklearn.ensemble._hist_gradient_boosting.common cimport G_H_DTYPE_C

from .node_rows cimport is_pure
from ..candidates.categories cimport MIN_CATEGORY_SUPPORT
from ..._criteria.node_formulas cimport node_value

# Rows of a small node: as many as one block of `EraRows` has at least, so that an
# impurity is summed up in the same order here as there.
MAX_ROWS = 1024

# Of a category that takes part in splits, in units of the mean weight of a node's rows.
MIN_SUPPORT = MIN_CATEGORY_SUPPORT


def is_pure_node(
    const G_H_DTYPE_C [::1] gradients,
    const G_H_DTYPE_C [::1] hessians,
    const unsigned int [::1] sample_indices,
):
    """Whether the rows of a node have one value, so that no split gains anything."""
    cdef const G_H_DTYPE_C * varying_hessians = NULL
    if hessians.shape[0] > 1:
        varying_hessians = &hessians[0]
    return is_pure(
        &gradients[0], varying_hessians, &sample_indices[0], sample_indices.shape[0]
    )


def root_value(double sum_gradients, double sum_hessians, double l2_regularization):
    """The Newton value of a tree's root."""
    return node_value(sum_gradients, sum_hessians, l2_regularization)
