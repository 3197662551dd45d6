# The orders in which the bins of a feature move to the left side.
#
# That of categories is scikit-learn's: sorted by their pooled G / H, as for a squared
# error the best of all subsets is then a split between neighbours (Fisher 1958, On
# Grouping for Maximum Homogeneity). It is the same for every criterion, which then
# judges the splits.

from libc.stdlib cimport qsort

from ..._arrays cimport (
    BITSET_DTYPE_C, X_BINNED_DTYPE_C, hist_struct, in_bitset, init_bitset, set_bitset,
)

from .splits cimport CandidateSplits, feature_bins, split_order
from ..fixed_points cimport gradient_of_sums, hessian_of_sums
from ..lanes.functions cimport bin_order, node_struct
from ..rows cimport MAX_BINS

# A category with less hessian mass than this, in units of the node's mean hessian,
# stays on the right side; and the mass that smooths the statistic of the others. The
# value is scikit-learn's; LightGBM calls it cat_smooth.
cdef enum:
    MIN_CATEGORY_SUPPORT = 10


cdef struct category_struct:
    X_BINNED_DTYPE_C bin_idx
    double value


cdef inline int compare_categories(const void * a, const void * b) noexcept nogil:
    """By value, then by bin, so that equal categories have one order everywhere."""
    cdef:
        const category_struct * x = <const category_struct *> a
        const category_struct * y = <const category_struct *> b
    if x.value != y.value:
        return -1 if x.value < y.value else 1
    return (x.bin_idx > y.bin_idx) - (x.bin_idx < y.bin_idx)


cdef inline int order_categories(
    const hist_struct * pooled,  # IN, shape (n_bins,), of the feature
    int n_bins_non_missing,
    bint has_missing,            # as the bin after the others; else not a category
    double support_factor,       # rows of the node by its hessian mass
    X_BINNED_DTYPE_C * order,    # OUT
) noexcept nogil:
    """Write all categories to `order`; return how many of them take part in a split.

    Those come first, in ascending order, and the ones with too little support last.
    """
    cdef:
        category_struct[MAX_BINS] categories
        double sum_hessians, value
        int n_used = 0
        int n_all = n_bins_non_missing + has_missing
        int n_unused = 0
        int i

    for i in range(n_all):
        sum_hessians = pooled[i].sum_hessians
        value = pooled[i].sum_gradients / (sum_hessians + MIN_CATEGORY_SUPPORT)
        # With a NaN there would be no order, and qsort may then read beyond.
        if sum_hessians * support_factor >= MIN_CATEGORY_SUPPORT and value == value:
            categories[n_used].bin_idx = i
            categories[n_used].value = value
            n_used += 1
        else:
            n_unused += 1
            order[n_all - n_unused] = i
    qsort(categories, n_used, sizeof(category_struct), compare_categories)
    for i in range(n_used):
        order[i] = categories[i].bin_idx
    return n_used


# Categories move to the left side from both ends of the order, towards the middle: as
# in scikit-learn, so that those with little support stay on the right side, which has
# at least half of the others.

cdef inline int n_moved_from_end(int n_used, bint is_reversed) noexcept nogil:
    """How many categories move from the first end, or else from the last one."""
    return (n_used + 1) // 2 - is_reversed


cdef inline void reverse_order(X_BINNED_DTYPE_C * order, int n_used) noexcept nogil:
    """Turn round those categories of an order that take part in a split."""
    cdef int i
    for i in range(n_used // 2):
        order[i], order[n_used - 1 - i] = order[n_used - 1 - i], order[i]


cdef inline bint set_left_categories(
    BITSET_DTYPE_C left_cat_bitset,   # OUT
    const X_BINNED_DTYPE_C * order,
    int n_left,
    int n_bins_non_missing,
    int missing_code,                 # -1 where missing values are not a category
) noexcept nogil:
    """Note the categories on the left side; return whether the missing one is there."""
    cdef int i
    init_bitset(left_cat_bitset)
    for i in range(n_left):
        set_bitset(
            left_cat_bitset,
            order[i] if order[i] < n_bins_non_missing else missing_code,
        )
    return missing_code >= 0 and in_bitset(left_cat_bitset, missing_code)


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
    cdef:
        bin_order * order
        int i
    if feature.is_categorical:
        set_categorical_orders(node, feature)
        return
    feature.n_orders = 1 + feature.has_missing
    for i in range(feature.n_orders):
        order = &feature.orders[i].order
        order.codes = splits.in_turn
        order.n_splits = max(feature.n_codes - 1 - i, 0)
        order.missing_go_to_left = i == 1
        order.is_in_turn = True


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
        node.pooled.n_samples / node.pooled.sum_hessians, orders[0].categories,
    )
    feature.n_orders = 0 if n_used <= 1 else 2
    orders[1].categories = orders[0].categories
    reverse_order(orders[1].categories, n_used)
    for i in range(2):
        orders[i].order.codes = orders[i].categories
        orders[i].order.n_splits = max(n_moved_from_end(n_used, i == 1), 0)
        orders[i].order.missing_go_to_left = False
        orders[i].order.is_in_turn = False
