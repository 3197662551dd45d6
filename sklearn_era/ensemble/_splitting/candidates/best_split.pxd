# The best of a bundle's candidate splits, when all eras have been added to them.

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    MonotonicConstraint, hist_struct,
)
from sklearn.utils._bitset cimport init_bitset

from .admission cimport (
    ADMITTED, TOO_SMALL_RIGHT, admission, admit, gain_of_sides, side_values,
    values_of_sides,
)
from ..bundles cimport bundle_struct
from .table cimport (
    bundle_candidates, feature_candidates, feature_split, is_better, node_struct,
)
from .categories cimport set_left_categories
from ..lanes.functions cimport bin_order
from ..tree_data cimport cost_of_feature, tree_data, tree_limits
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.ranking cimport penalise, rank_split


cdef inline void rank_bundle(
    const tree_data * tree,
    const tree_limits * limits,
    const criterion_struct * criterion,
    const bundle_struct * bundle,
    bundle_candidates * candidates,  # IN and OUT
    const node_struct * node,
    double unit_of_costs,            # see `cost_of_feature`
) noexcept nogil:
    """Find the best of a bundle's candidate splits."""
    cdef:
        double cost
        int i, j
    candidates.best.found = False
    for j in range(bundle.n_members):
        if candidates.features[j].is_wanted:
            cost = cost_of_feature(
                tree, candidates.features[j].feature_idx, unit_of_costs
            )
            for i in range(candidates.features[j].n_orders):
                rank_order(
                    tree, limits, criterion, candidates, &candidates.features[j],
                    &candidates.features[j].orders[i], node, cost,
                )


cdef inline void rank_order(
    const tree_data * tree,
    const tree_limits * limits,
    const criterion_struct * criterion,
    bundle_candidates * candidates,  # IN and OUT
    const feature_candidates * feature,
    const bin_order * order,
    const node_struct * node,
    double cost,                     # of the feature
) noexcept nogil:
    """Rank the splits of an order of bins.

    Every candidate passes scikit-learn's own conditions on the pooled sides, a
    monotonic constraint among them, before its eras are looked at.
    """
    cdef:
        const hist_struct * moved
        admission admitted
        side_values values
        feature_split split = empty_split(tree, feature.feature_idx, order)
        double gain
        int i
    for i in range(order.stop):
        moved = &candidates.pooled[feature.first_bin + order.bins[i]]
        split.n_samples_left += moved.count
        split.sum_gradients_left += moved.sum_gradients
        split.sum_hessians_left += moved.sum_hessians
        if i < order.first:
            continue
        admitted = admit(
            split.n_samples_left, split.sum_hessians_left,
            node.n_samples, node.sum_hessians,
            limits.min_samples_leaf, limits.min_hessian_to_split,
        )
        if admitted == TOO_SMALL_RIGHT:
            break
        if admitted != ADMITTED:
            continue
        values = values_of_split(limits, node, &split)
        if is_against(tree.monotonic_cst[feature.feature_idx], values):
            continue
        gain = gain_of_sides(
            node.loss, node.sum_gradients, split.sum_gradients_left, values
        )
        if not rank_split(
            criterion,
            &node.eras,
            &candidates.splits[order.first_split + i - order.first],
            gain,
            &split.rank,
        ):
            continue
        if cost > 0.0 and not penalise(criterion, cost, &split.rank):
            continue
        split.bin_idx = 0 if split.is_categorical else order.bins[i]
        if is_better(&split, &candidates.best):
            candidates.best = split
            if split.is_categorical:
                set_categories(tree, order, i + 1, &candidates.best)


cdef inline feature_split empty_split(
    const tree_data * tree, int feature_idx, const bin_order * order
) noexcept nogil:
    """A split with nothing on its left side."""
    cdef feature_split split
    split.found = True
    split.feature_idx = feature_idx
    split.is_categorical = tree.is_categorical[feature_idx]
    split.missing_go_to_left = order.missing_go_to_left
    init_bitset(split.left_cat_bitset)
    split.n_samples_left = 0
    split.sum_gradients_left = 0.0
    split.sum_hessians_left = 0.0
    return split


cdef inline side_values values_of_split(
    const tree_limits * limits, const node_struct * node, const feature_split * split
) noexcept nogil:
    return values_of_sides(
        node.sum_gradients, node.sum_hessians,
        split.sum_gradients_left, split.sum_hessians_left,
        limits.l2_regularization, node.lower_bound, node.upper_bound,
    )


cdef inline bint is_against(
    signed char monotonic_cst, side_values values
) noexcept nogil:
    """Whether the values of both sides are against a monotonic constraint."""
    if monotonic_cst == MonotonicConstraint.POS:
        return values.left > values.right
    if monotonic_cst == MonotonicConstraint.NEG:
        return values.left < values.right
    return False


cdef inline void set_categories(
    const tree_data * tree,
    const bin_order * order,
    int n_left,
    feature_split * split,  # IN and OUT
) noexcept nogil:
    """Send the first of some categories to the left side."""
    split.missing_go_to_left = set_left_categories(
        split.left_cat_bitset,
        order.bins,
        n_left,
        tree.n_bins_non_missing[split.feature_idx],
        tree.missing_values_bin_idx if tree.has_missing_values[split.feature_idx]
        else -1,
    )
