# The orders in which the bins of a feature move to the left side.

from sklearn.ensemble._hist_gradient_boosting.common cimport hist_struct

from .categories cimport n_moved_from_end, order_categories, reverse_order
from .splits cimport CandidateSplits, feature_bins, split_order
from ..fixed_points cimport gradient_of_sums, hessian_of_sums
from ..lanes.functions cimport bin_order, node_struct
from ..rows cimport MAX_BINS


cdef inline void set_orders(
    CandidateSplits splits,
    const node_struct * node,
    feature_bins * feature,   # IN and OUT
) noexcept nogil:
    """Settle the orders in which bins move to the left side.

    Of numbers, from the lowest one on, with missing values on the right side; and in a
    second order with these on the left. The last bin stays on the right, unless missing
    values keep that from being empty. To the left they go along with one bin at least:
    they alone on one side is what the last split of the first order is.
    """
    cdef bin_order * order = &feature.orders[0].order
    if feature.is_categorical:
        set_categorical_orders(node, feature)
        return
    order.codes = splits.in_turn
    order.n_splits = feature.n_codes - 1
    order.missing_go_to_left = False
    order.is_in_turn = True
    feature.n_orders = 1
    if feature.has_missing:
        feature.orders[1].order.codes = splits.in_turn
        feature.orders[1].order.n_splits = max(feature.n_codes - 2, 0)
        feature.orders[1].order.missing_go_to_left = True
        feature.orders[1].order.is_in_turn = True
        feature.n_orders = 2


cdef inline void set_categorical_orders(
    const node_struct * node, feature_bins * feature  # IN and OUT
) noexcept nogil:
    """From both ends of the categories' order towards the middle."""
    cdef:
        hist_struct[MAX_BINS] pooled
        const long long * of_bin
        split_order * orders = feature.orders
        int n_used, i
    for i in range(feature.n_codes):
        of_bin = node.bins + feature.first_bin + i
        pooled[i].sum_gradients = gradient_of_sums(node.values, of_bin, node.n_bins)
        pooled[i].sum_hessians = hessian_of_sums(node.values, of_bin, node.n_bins)
    n_used = order_categories(
        pooled, feature.n_codes - feature.has_missing, feature.has_missing,
        node.n_samples / node.sum_hessians, orders[0].categories,
    )
    feature.n_orders = 0 if n_used <= 1 else 2
    orders[1].categories = orders[0].categories
    reverse_order(orders[1].categories, n_used)
    for i in range(2):
        orders[i].order.codes = orders[i].categories
        orders[i].order.n_splits = max(n_moved_from_end(n_used, i == 1), 0)
        orders[i].order.missing_go_to_left = False
        orders[i].order.is_in_turn = False
