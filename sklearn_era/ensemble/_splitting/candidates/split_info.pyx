"""The best split of a node, as scikit-learn's grower takes it."""

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.splitting import SplitInfo

from ..admission cimport side_values, values_of_sides
from ..rows cimport BITSET_SIZE


class EraSplitInfo(SplitInfo):
    """A `SplitInfo` whose node waits in the queue by the criterion's key.

    Attributes
    ----------
    priority : tuple of float
        `expansion`, `secondary` and `gain` of `split_rank`. The attribute `gain` stays
        the pooled gain, in scikit-learn's units.
    """

    def __init__(self, priority, **split_info):
        super().__init__(**split_info)
        self.priority = priority


cdef make_split_info(
    const tree_data * tree,
    const tree_limits * limits,
    const feature_split * split,
    const node_struct * node,
):
    """A node's best split as scikit-learn's grower takes it."""
    cdef:
        double sum_gradients_right = node.sum_gradients - split.sum_gradients_left
        double sum_hessians_right = node.sum_hessians - split.sum_hessians_left
        side_values values = values_of_sides(
            node.sum_gradients, node.sum_hessians,
            split.sum_gradients_left, split.sum_hessians_left,
            limits.l2_regularization, node.lower_bound, node.upper_bound,
        )
        unsigned int bin_idx = split.bin_idx
        int i
    bitset = None
    if split.is_categorical:
        bitset = np.empty(BITSET_SIZE, dtype=np.uint32)
        for i in range(BITSET_SIZE):
            bitset[i] = split.left_cat_bitset[i]
        # scikit-learn takes a split at the last bin for one that parts numbers from
        # missing values, and leaves its categories out. So the bin of a categorical
        # split, which nothing else reads, must not be the only one there is.
        bin_idx = tree.n_bins_non_missing[split.feature_idx] == 1
    return EraSplitInfo(
        priority=(split.rank.expansion, split.rank.secondary, split.rank.gain),
        gain=split.rank.gain,
        feature_idx=split.feature_idx,
        bin_idx=bin_idx,
        missing_go_to_left=split.missing_go_to_left,
        sum_gradient_left=split.sum_gradients_left,
        sum_hessian_left=split.sum_hessians_left,
        sum_gradient_right=sum_gradients_right,
        sum_hessian_right=sum_hessians_right,
        n_samples_left=split.n_samples_left,
        n_samples_right=node.n_samples - split.n_samples_left,
        value_left=values.left,
        value_right=values.right,
        is_categorical=split.is_categorical,
        left_cat_bitset=bitset,
    )
