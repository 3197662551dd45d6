"""Which nodes of a tree are small, and what else its large ones have to be told."""

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common cimport G_H_DTYPE_C

from .keys cimport ROW_BITS
from .node_rows cimport is_pure
from ..candidates.categories cimport MIN_CATEGORY_SUPPORT
from ..rows cimport EraRows
from ..splitter cimport EraSplitter
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.node_formulas cimport node_value

# Rows of a small node: as many as one block of `EraRows` has at least, so that an
# impurity is summed up in the same order here as there.
MAX_ROWS = 1024

# The most keys, of 4 bytes, for which more rows are taken.
MAX_KEYS = 2**22

# Of a category that takes part in splits, in units of the mean weight of a node's rows.
MIN_SUPPORT = MIN_CATEGORY_SUPPORT


def rows_worth_sorting(EraSplitter era_splitter, n_bins, int n_threads):
    """The most rows of a small node, by the numbers of bins of a tree's features.

    Beyond `MAX_ROWS` a node has to be cheaper in sorted rows than in histograms, which
    have a cell for each era and bin, with a row or without: so the scan has to pass
    over most splits before it asks all eras. And for the same bits, sums have to be
    exact, and an era's impurity has to be summed up in one block.
    """
    cdef:
        EraRows rows = era_splitter.rows
        const criterion_struct * criterion = &era_splitter.criterion
    if (
        era_splitter.compares_targets
        or not era_splitter.hessians_are_constant
        or rows.of_gradients.has_low_words
        or not rows.eras_fit_blocks
        or criterion.min_gain_share == 0.0 and not criterion.traits.worst_era_decides
    ):
        return MAX_ROWS
    n_cells = rows.n_eras * int(np.mean(n_bins))
    most = min(n_cells // n_threads, MAX_KEYS // len(n_bins), 1 << ROW_BITS)
    return max(MAX_ROWS, min(most, rows.n_samples))


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
