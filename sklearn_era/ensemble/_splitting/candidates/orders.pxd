# The orders in which the bins of a feature move to the left side. All criteria sort
# categories as scikit-learn does, by their pooled G / H: Fisher (1958), On Grouping for
# Maximum Homogeneity.

from libc.stdlib cimport qsort

from ..._arrays cimport (
    BITSET_DTYPE_C, X_BINNED_DTYPE_C, hist_struct, in_bitset, init_bitset, set_bitset,
)

from .splits cimport CandidateSplits, feature_bins, split_order
from ..fixed_points cimport MAX_PLANES, gradient_of_sums, hessian_of_sums
from ..lanes.functions cimport bin_order, node_struct, take_planes
from ..rows cimport MAX_BINS

# Minimum sum of hessians of a category, in units of the node's mean, to go left; and
# the smoothing term of its G / H. scikit-learn's value; LightGBM's cat_smooth.
cdef enum:
    MIN_CATEGORY_SUPPORT = 10


cdef struct category_struct:
    X_BINNED_DTYPE_C bin_idx
    double value


cdef inline int compare_categories(const void * a, const void * b) noexcept nogil:
    """Compare categories by value, then by bin, so that no two categories are equal."""
    cdef:
        const category_struct * x = <const category_struct *> a
        const category_struct * y = <const category_struct *> b
    if x.value != y.value:
        return -1 if x.value < y.value else 1
    return (x.bin_idx > y.bin_idx) - (x.bin_idx < y.bin_idx)


cdef inline int order_categories(
    const hist_struct * pooled,  # IN, shape (n_bins,), of the feature
    int n_bins_non_missing,
    bint has_missing,            # a category, the bin after the others
    double support_factor,       # the node's rows by its sum of hessians
    X_BINNED_DTYPE_C * order,    # OUT
) noexcept nogil:
    """Sort categories by value, rare ones last; return how many are not rare."""
    cdef:
        category_struct[MAX_BINS] categories
        double sum_hessians, value
        int n_used = 0
        int n_all = n_bins_non_missing + has_missing
        int n_unused = 0, i

    for i in range(n_all):
        sum_hessians = pooled[i].sum_hessians
        value = pooled[i].sum_gradients / (sum_hessians + MIN_CATEGORY_SUPPORT)
        # NaN has no order, with which qsort may read out of bounds.
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


# Categories move to the left from both ends of the order towards the middle, as in
# scikit-learn: those of too little support stay on the right, with at least half of the
# others.

cdef inline int n_moved_from_end(int n_used, bint is_reversed) noexcept nogil:
    """Return how many categories may go left, from the start or end of their order."""
    return (n_used + 1) // 2 - is_reversed


cdef inline void reverse_order(X_BINNED_DTYPE_C * order, int n_used) noexcept nogil:
    cdef int i
    for i in range(n_used // 2):
        order[i], order[n_used - 1 - i] = order[n_used - 1 - i], order[i]


cdef inline bint set_left_categories(
    BITSET_DTYPE_C left_cat_bitset,   # OUT
    const X_BINNED_DTYPE_C * order, int n_left, int n_bins_non_missing,
    int missing_code,                 # -1 if missing values are not a category
) noexcept nogil:
    """Set the bits of the left categories; return whether missing values go left."""
    cdef int i
    init_bitset(left_cat_bitset)
    for i in range(n_left):
        set_bitset(
            left_cat_bitset,
            order[i] if order[i] < n_bins_non_missing else missing_code,
        )
    return missing_code >= 0 and in_bitset(left_cat_bitset, missing_code)


cdef inline void set_orders(
    CandidateSplits splits, feature_bins * feature  # IN and OUT
) noexcept nogil:
    """Set the orders in which the bins of a feature move to the left side.

    Bins of numbers ascend; missing values stay on the right side or, in a second order,
    move first. The last bin moves only if missing values stay.

        codes 0 1 2, missing m    left sides
        first order               0 | 0 1 | 0 1 2
        second order              m 0 | m 0 1
    """
    cdef:
        bin_order * order
        int i
    if feature.is_categorical:
        set_categorical_orders(splits.node, feature)
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
    """Set the two orders of categories: from either end towards the middle."""
    cdef:
        hist_struct[MAX_BINS] pooled
        long long[MAX_PLANES * MAX_BINS] sums
        split_order * orders = feature.orders
        int n_used, i
    take_planes(
        node, node.bins + feature.first_bin, node.n_bins, feature.n_codes, sums
    )
    for i in range(feature.n_codes):
        pooled[i].sum_gradients = gradient_of_sums(node.values, sums + i, MAX_BINS)
        pooled[i].sum_hessians = hessian_of_sums(node.values, sums + i, MAX_BINS)
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
