# The best split of a small node by the categories of a feature.
#
# Categories are put in an order, and then move to the left side one by one, as bins of
# numbers do.

from libc.string cimport memcpy, memset

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    X_BINNED_DTYPE_C, hist_struct,
)

from .keys cimport code_of, row_of
from .node cimport admit_split, hessian_of, row_sums, small_node, split_gain
from .scan cimport gains_more, scan_context, scan_eras, sorted_feature, start_split
from ..admission cimport TOO_SMALL_LEFT, TOO_SMALL_RIGHT, admission
from ..candidates.split cimport feature_split
from ..candidates.categories cimport (
    MIN_CATEGORY_SUPPORT, has_support, n_moved_from_end, order_categories,
    reverse_order, set_left_categories,
)
from ..rows cimport MAX_BINS


cdef struct category_sums:
    # Categories are numbered by their bins, the missing one coming after the others.
    int n_all
    hist_struct[MAX_BINS] pooled
    int[MAX_BINS] first       # place of the first of a category's keys
    X_BINNED_DTYPE_C[MAX_BINS] order


cdef inline bint may_split_categories(int n_rows) noexcept nogil:
    """Whether there are the rows for two categories that take part in a split.

    Weights are counted in units of their mean: all together, they are as many. Nodes
    of fewer rows do not list categorical features, and so do not scan them.
    """
    return n_rows >= 2 * MIN_CATEGORY_SUPPORT


cdef inline bint can_split_categories(
    const unsigned int * keys,   # sorted by the feature
    const small_node * node,
    const row_sums * sums,
) noexcept nogil:
    """Whether two categories of a feature take part in splits of a node."""
    cdef:
        int n_rows = node.stop - node.start
        double sum_hessians = 0.0
        int n_used = 0
        int i
    for i in range(n_rows):
        sum_hessians += hessian_of(sums, row_of(keys[i]))
        if i == n_rows - 1 or code_of(keys[i]) != code_of(keys[i + 1]):
            n_used += has_support(sum_hessians, n_rows / node.sum_hessians)
            sum_hessians = 0.0
    return n_used >= 2


cdef inline void scan_categories(
    const scan_context * context,
    sorted_feature * feature,
    feature_split * best,            # IN and OUT
) noexcept nogil:
    """Replace `best` by the feature's best split, if that ranks above it."""
    cdef:
        category_sums categories
        int n_rows = context.node.stop - context.node.start
        int n_used

    sum_categories(feature, n_rows, context.sums, &categories)
    n_used = order_categories(
        categories.pooled, feature.n_bins, feature.missing_code >= 0,
        n_rows / context.node.sum_hessians, categories.order,
    )
    if n_used <= 1:
        return
    scan_category_order(
        context, feature, &categories, n_moved_from_end(n_used, False), best
    )
    reverse_order(categories.order, n_used)
    scan_category_order(
        context, feature, &categories, n_moved_from_end(n_used, True), best
    )


cdef inline void sum_categories(
    const sorted_feature * feature,
    int n_rows,
    const row_sums * sums,
    category_sums * categories,   # OUT
) noexcept nogil:
    cdef:
        hist_struct * category
        int row, place, i
    categories.n_all = feature.n_bins + (feature.missing_code >= 0)
    memset(categories.pooled, 0, categories.n_all * sizeof(hist_struct))
    for i in range(n_rows):
        place = code_of(feature.keys[i])
        if place == feature.missing_code:
            place = feature.n_bins
        row = row_of(feature.keys[i])
        category = &categories.pooled[place]
        if category.count == 0:
            categories.first[place] = i
        category.sum_gradients += sums.gradients[row]
        category.sum_hessians += hessian_of(sums, row)
        category.count += 1


cdef inline void scan_category_order(
    const scan_context * context,
    sorted_feature * feature,
    const category_sums * categories,
    int n_moved,                      # categories that move to the left
    feature_split * best,
) noexcept nogil:
    """Move categories to the left side in their order, and judge each split."""
    cdef:
        int n_left = 0
        int n_rows = 0
        int n_rows_moved
        bint is_best
    if context.eras == NULL:
        is_best = scan_gains_of_order(context, feature, categories, n_moved, best)
    else:
        n_rows_moved = copy_keys(feature, categories, n_moved, context.scratch)
        is_best = scan_eras(context, feature, context.scratch, n_rows_moved, 0, best)
    if not is_best:
        return
    while n_rows < <int> best.n_samples_left:
        n_rows += categories.pooled[categories.order[n_left]].count
        n_left += 1
    best.bin_idx = 0
    best.missing_go_to_left = set_left_categories(
        best.left_cat_bitset, categories.order, n_left, feature.n_bins,
        feature.missing_code,
    )


cdef inline int copy_keys(
    const sorted_feature * feature,
    const category_sums * categories,
    int n_moved,
    unsigned int * keys,              # OUT, of all rows
) noexcept nogil:
    """Put a node's rows into the order of categories.

    Returns how many of them are of the first `n_moved` categories.
    """
    cdef:
        const hist_struct * category
        int n_rows = 0
        int n_left = 0
        int i
    for i in range(categories.n_all):
        category = &categories.pooled[categories.order[i]]
        if category.count > 0:
            memcpy(
                keys + n_rows,
                feature.keys + categories.first[categories.order[i]],
                category.count * sizeof(unsigned int),
            )
            n_rows += category.count
        if i < n_moved:
            n_left = n_rows
    return n_left


cdef inline bint scan_gains_of_order(
    const scan_context * context,
    const sorted_feature * feature,
    const category_sums * categories,
    int n_moved,
    feature_split * best,
) noexcept nogil:
    """Judge the splits by the gain; return whether one has replaced `best`.

    A category's rows are summed up first, as in scikit-learn, for ties to be the same.
    """
    cdef:
        const hist_struct * category
        int n_left = 0
        double gradients = 0.0
        double hessians = 0.0
        double gain
        admission admitted
        bint is_best = False
        int i
    for i in range(n_moved):
        category = &categories.pooled[categories.order[i]]
        n_left += category.count
        gradients += category.sum_gradients
        hessians += category.sum_hessians
        admitted = admit_split(context.node, n_left, hessians, context.limits)
        if admitted == TOO_SMALL_RIGHT:
            break
        if admitted == TOO_SMALL_LEFT:
            continue
        gain = split_gain(context.node, gradients, hessians, context.limits)
        if gains_more(gain, feature.feature_idx, False, best):
            start_split(feature, False, best)
            best.rank.gain = gain
            best.n_samples_left = n_left
            best.sum_gradients_left = gradients
            best.sum_hessians_left = hessians
            is_best = True
    return is_best
