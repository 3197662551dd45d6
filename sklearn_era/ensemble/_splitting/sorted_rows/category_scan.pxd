# The best split of a small node by the categories of a feature.
#
# Categories are put in an order, and then move to the left side one by one, as bins of
# numbers do.

from libc.string cimport memcpy, memset

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    X_BINNED_DTYPE_C, hist_struct,
)

from .keys cimport code_of, row_of, small_rows
from .scan cimport scan_context, scan_order, sorted_feature
from ..candidates.categories cimport (
    n_moved_from_end, order_categories, reverse_order, set_left_categories,
)
from ..candidates.split cimport feature_split
from ..rows cimport MAX_BINS


cdef struct category_sums:
    # Categories are numbered by their bins, the missing one coming after the others.
    int n_all
    hist_struct[MAX_BINS] pooled
    int[MAX_BINS] first       # place of the first of a category's keys
    X_BINNED_DTYPE_C[MAX_BINS] order


cdef inline bint can_split_categories(
    const scan_context * context, const sorted_feature * feature
) noexcept nogil:
    """Whether two categories of a feature take part in splits of a node."""
    cdef category_sums categories
    return sum_categories(context, feature, &categories) >= 2


cdef inline int sum_categories(
    const scan_context * context,
    const sorted_feature * feature,
    category_sums * categories,   # OUT
) noexcept nogil:
    """Sum up categories, and order them; return how many take part in splits."""
    cdef:
        const small_rows * rows = context.rows
        int n_rows = context.node.stop - context.node.start
        hist_struct * category
        int place, i
    categories.n_all = feature.n_bins + (feature.missing_code >= 0)
    memset(categories.pooled, 0, categories.n_all * sizeof(hist_struct))
    for i in range(n_rows):
        place = code_of(feature.keys[i])
        if place == feature.missing_code:
            place = feature.n_bins
        category = &categories.pooled[place]
        if category.count == 0:
            categories.first[place] = i
        category.sum_gradients += rows.gradients[row_of(feature.keys[i])]
        category.sum_hessians += rows.hessians[row_of(feature.keys[i])]
        category.count += 1
    return order_categories(
        categories.pooled, feature.n_bins, feature.missing_code >= 0,
        n_rows / context.node.sum_hessians, categories.order,
    )


cdef inline void scan_categories(
    scan_context * context,
    sorted_feature * feature,
    feature_split * best,            # IN and OUT
) noexcept nogil:
    """Replace `best` by the feature's best split, if that ranks above it."""
    cdef:
        category_sums categories
        X_BINNED_DTYPE_C * order = categories.order
        int n_used = sum_categories(context, feature, &categories)
        int n_rows, n_left, k
    if n_used <= 1:
        return
    for k in range(2):
        if k == 1:
            reverse_order(order, n_used)
        n_rows = copy_keys(
            feature, &categories, n_moved_from_end(n_used, k == 1), context.scratch
        )
        if not scan_order(context, feature, context.scratch, n_rows, 0, best):
            continue
        n_left = 0
        n_rows = 0
        while n_rows < <int> best.n_samples_left:
            n_rows += categories.pooled[order[n_left]].count
            n_left += 1
        best.missing_go_to_left = set_left_categories(
            best.left_cat_bitset, order, n_left, feature.n_bins, feature.missing_code
        )


cdef inline int copy_keys(
    const sorted_feature * feature,
    const category_sums * categories,
    int n_moved,
    unsigned int * keys,              # OUT, of all rows
) noexcept nogil:
    """Put a node's rows into the order of categories; return how many of them move."""
    cdef:
        int n_rows = 0
        int n_left = 0
        int place, i
    for i in range(categories.n_all):
        place = categories.order[i]
        if categories.pooled[place].count > 0:
            memcpy(
                keys + n_rows,
                feature.keys + categories.first[place],
                categories.pooled[place].count * sizeof(unsigned int),
            )
            n_rows += categories.pooled[place].count
        if i < n_moved:
            n_left = n_rows
    return n_left
