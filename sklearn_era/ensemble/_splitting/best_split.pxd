# The best of a bundle's candidate splits, when all eras have been added to them.

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    MonotonicConstraint,
    X_BINNED_DTYPE_C,
    hist_struct,
)
from sklearn.utils._bitset cimport in_bitset, init_bitset, set_bitset

from .bundles cimport bundle_struct
from .candidates cimport (
    bundle_candidates,
    feature_candidates,
    feature_split,
    is_better,
    node_struct,
)
from .lanes.functions cimport bin_order
from .tree_data cimport tree_data
from .._criteria.criterion cimport criterion_struct
from .._criteria.node_formulas cimport bounded, node_value, pooled_gain
from .._criteria.ranking cimport rank_split
from .._criteria.split_sums cimport add_absent_eras


cdef inline void rank_bundle(
    const tree_data * tree,
    const criterion_struct * criterion,
    const bundle_struct * bundle,
    bundle_candidates * candidates,  # IN and OUT
    const node_struct * node,
    int n_absent,                    # eras without a row in the node
) noexcept nogil:
    """Find the best of a bundle's candidate splits."""
    cdef int i, j
    candidates.best.found = False
    for i in range(candidates.n_splits):
        add_absent_eras(criterion, n_absent, &candidates.splits[i])
    for j in range(bundle.n_members):
        if candidates.features[j].is_wanted:
            for i in range(candidates.features[j].n_orders):
                rank_order(
                    tree, criterion, candidates, &candidates.features[j],
                    &candidates.features[j].orders[i], node,
                )


cdef inline void rank_order(
    const tree_data * tree,
    const criterion_struct * criterion,
    bundle_candidates * candidates,  # IN and OUT
    const feature_candidates * feature,
    const bin_order * order,
    const node_struct * node,
) noexcept nogil:
    """Rank the splits of an order of bins.

    Every candidate passes scikit-learn's own conditions on the pooled sides, a
    monotonic constraint among them, before its eras are looked at.
    """
    cdef:
        signed char monotonic_cst = tree.monotonic_cst[feature.feature_idx]
        const hist_struct * moved
        unsigned int n_samples_right
        double sum_gradients_right, sum_hessians_right
        double value_left, value_right, gain
        feature_split split
        int i

    split.found = True
    split.feature_idx = feature.feature_idx
    split.is_categorical = tree.is_categorical[feature.feature_idx]
    split.missing_go_to_left = order.missing_go_to_left
    init_bitset(split.left_cat_bitset)
    split.n_samples_left = 0
    split.sum_gradients_left = 0.0
    split.sum_hessians_left = 0.0

    for i in range(order.stop):
        moved = &candidates.pooled[feature.first_bin + order.bins[i]]
        split.n_samples_left += moved.count
        split.sum_gradients_left += moved.sum_gradients
        split.sum_hessians_left += moved.sum_hessians
        n_samples_right = node.n_samples - split.n_samples_left
        sum_gradients_right = node.sum_gradients - split.sum_gradients_left
        sum_hessians_right = node.sum_hessians - split.sum_hessians_left
        if (
            i < order.first
            or split.n_samples_left < tree.min_samples_leaf
            or split.sum_hessians_left < tree.min_hessian_to_split
        ):
            continue
        if (
            n_samples_right < tree.min_samples_leaf
            or sum_hessians_right < tree.min_hessian_to_split
        ):
            break  # the right side only loses rows from here on

        value_left = child_value(
            criterion, node, split.sum_gradients_left, split.sum_hessians_left
        )
        value_right = child_value(
            criterion, node, sum_gradients_right, sum_hessians_right
        )
        if (
            monotonic_cst == MonotonicConstraint.POS and value_left > value_right
            or monotonic_cst == MonotonicConstraint.NEG and value_left < value_right
        ):
            continue
        gain = pooled_gain(
            node.loss,
            split.sum_gradients_left, value_left,
            sum_gradients_right, value_right,
        )
        if not rank_split(
            criterion,
            &node.eras,
            &candidates.splits[order.first_split + i - order.first],
            gain,
            &split.rank,
        ):
            continue
        split.bin_idx = 0 if split.is_categorical else order.bins[i]
        if is_better(&split, &candidates.best):
            candidates.best = split
            if split.is_categorical:
                set_categories(tree, order.bins, i + 1, &candidates.best)


cdef inline double child_value(
    const criterion_struct * criterion,
    const node_struct * node,
    double sum_gradients,
    double sum_hessians,
) noexcept nogil:
    """Value of a child of `node`, within the bounds of monotonic constraints."""
    return bounded(
        node_value(sum_gradients, sum_hessians, criterion.l2_regularization),
        node.lower_bound,
        node.upper_bound,
    )


cdef inline void set_categories(
    const tree_data * tree,
    const X_BINNED_DTYPE_C * bins,
    int n_left,
    feature_split * split,  # IN and OUT
) noexcept nogil:
    """Send the first of some categories to the left side."""
    cdef:
        int n_bins = tree.n_bins_non_missing[split.feature_idx]
        int i
    init_bitset(split.left_cat_bitset)
    for i in range(n_left):
        set_bitset(
            split.left_cat_bitset,
            bins[i] if bins[i] < n_bins else tree.missing_values_bin_idx,
        )
    split.missing_go_to_left = (
        tree.has_missing_values[split.feature_idx]
        and in_bitset(split.left_cat_bitset, tree.missing_values_bin_idx)
    )
