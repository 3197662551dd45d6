# The best split of a small node by the categories of a feature.
#
# Categories are put in an order, and then move to the left side one by one, as bins of
# numbers do: in scikit-learn's order, from both ends towards the middle, so that those
# with little support stay on the right side, which has at least half of the others.

from libc.string cimport memcpy, memset

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    X_BINNED_DTYPE_C,
    hist_struct,
)
from sklearn.utils._bitset cimport in_bitset, init_bitset, set_bitset

from .era_scan cimport scan_eras_in_order
from .moving_eras cimport moving_eras
from .node cimport (
    hessian_of,
    leaves_enough,
    row_sums,
    small_node,
    split_gain,
    split_limits,
)
from .keys cimport code_of, row_of
from ..categories cimport MIN_CATEGORY_SUPPORT, order_categories
from ..candidates cimport feature_split


cdef struct category_sums:
    # Categories are numbered by their bins, the missing one coming after the others.
    int n_bins                # of values that are not missing
    bint has_missing          # whether missing values are a category
    int missing_code
    hist_struct[256] pooled
    int[256] first            # place of the first of a category's keys
    X_BINNED_DTYPE_C[256] order


cdef inline bint may_part_categories(int n_rows) noexcept nogil:
    """Whether there are the rows for two categories that take part in a split.

    Weights are counted in units of their mean: all together, they are as many. Nodes
    of fewer rows do not list categorical features, and so do not scan them.
    """
    return n_rows >= 2 * MIN_CATEGORY_SUPPORT


cdef inline bint can_part_categories(
    const unsigned int * keys,   # sorted by the feature
    const small_node * node,
    const row_sums * sums,
) noexcept nogil:
    """Whether two categories of a feature take part in splits of a node."""
    cdef:
        int n_rows = node.stop - node.start
        double least = MIN_CATEGORY_SUPPORT * node.sum_hessians / n_rows
        double support = 0.0
        int n_used = 0
        int i
    for i in range(n_rows):
        support += hessian_of(sums, row_of(keys[i]))
        if i == n_rows - 1 or code_of(keys[i]) != code_of(keys[i + 1]):
            n_used += support >= least
            support = 0.0
    return n_used >= 2


cdef inline void scan_categories(
    int feature_idx,
    const unsigned int * keys,   # of the node's rows, sorted by the feature
    int n_bins,                  # of values that are not missing
    bint has_missing,            # whether the feature has missing values
    int missing_code,
    const small_node * node,
    const row_sums * sums,
    const split_limits * limits,
    moving_eras * eras,          # NULL: by the gain
    unsigned int * scratch,      # (n_rows,)
    feature_split * best,        # IN and OUT
) noexcept nogil:
    """Replace `best` by the feature's best split, if that ranks above it."""
    cdef:
        category_sums categories
        int n_rows = node.stop - node.start
        int n_used, i

    categories.n_bins = n_bins
    categories.has_missing = has_missing
    categories.missing_code = missing_code
    sum_categories(&categories, keys, n_rows, sums)
    n_used = order_categories(
        categories.pooled, n_bins, has_missing, n_rows / node.sum_hessians,
        categories.order,
    )
    if n_used <= 1:
        return
    scan_category_order(
        feature_idx, &categories, keys, (n_used + 1) // 2,
        node, sums, limits, eras, scratch, best,
    )
    for i in range(n_used // 2):
        categories.order[i], categories.order[n_used - 1 - i] = (
            categories.order[n_used - 1 - i], categories.order[i]
        )
    scan_category_order(
        feature_idx, &categories, keys, (n_used + 1) // 2 - 1,
        node, sums, limits, eras, scratch, best,
    )


cdef inline void sum_categories(
    category_sums * categories,
    const unsigned int * keys,
    int n_rows,
    const row_sums * sums,
) noexcept nogil:
    cdef:
        hist_struct * category
        int row, place, i
    memset(
        categories.pooled, 0,
        (categories.n_bins + categories.has_missing) * sizeof(hist_struct),
    )
    for i in range(n_rows):
        place = code_of(keys[i])
        if place == categories.missing_code:
            place = categories.n_bins
        row = row_of(keys[i])
        category = &categories.pooled[place]
        if category.count == 0:
            categories.first[place] = i
        category.sum_gradients += sums.gradients[row]
        category.sum_hessians += hessian_of(sums, row)
        category.count += 1


cdef inline void scan_category_order(
    int feature_idx,
    const category_sums * categories,
    const unsigned int * keys,
    int n_moved,                 # categories that move to the left
    const small_node * node,
    const row_sums * sums,
    const split_limits * limits,
    moving_eras * eras,
    unsigned int * scratch,
    feature_split * best,
) noexcept nogil:
    """Move categories to the left side in their order, and look at each split."""
    cdef:
        int n_all = categories.n_bins + categories.has_missing
        int n_rows_moved = 0
        int n_copied = 0
        const hist_struct * category
        bint is_best
        int i

    for i in range(n_all):
        category = &categories.pooled[categories.order[i]]
        if category.count > 0:
            memcpy(
                scratch + n_copied,
                keys + categories.first[categories.order[i]],
                category.count * sizeof(unsigned int),
            )
            n_copied += category.count
        if i < n_moved:
            n_rows_moved = n_copied
    if eras == NULL:
        is_best = scan_gains_of_order(
            feature_idx, categories, n_moved, node, limits, best
        )
    else:
        is_best = scan_eras_in_order(
            feature_idx, scratch, n_rows_moved, 0, True, False,
            node, sums, limits, eras, best,
        )
    if not is_best:
        return
    # As in a split that is found in histograms, see `EraSplitter`.
    best.bin_idx = categories.n_bins == 1
    init_bitset(best.left_cat_bitset)
    for i in range(<int> best.n_samples_left):
        set_bitset(best.left_cat_bitset, code_of(scratch[i]))
    best.missing_go_to_left = (
        categories.has_missing
        and in_bitset(best.left_cat_bitset, categories.missing_code)
    )


cdef inline bint scan_gains_of_order(
    int feature_idx,
    const category_sums * categories,
    int n_moved,
    const small_node * node,
    const split_limits * limits,
    feature_split * best,
) noexcept nogil:
    """The best split by the gain; return whether it has replaced `best`."""
    cdef:
        int n_rows = node.stop - node.start
        int n_left = 0
        double gradients = 0.0
        double hessians = 0.0
        const hist_struct * category
        bint is_best = False
        double gain
        int i
    for i in range(n_moved):
        category = &categories.pooled[categories.order[i]]
        n_left += category.count
        gradients += category.sum_gradients
        hessians += category.sum_hessians
        if not leaves_enough(n_left, hessians, limits):
            continue
        if not leaves_enough(n_rows - n_left, node.sum_hessians - hessians, limits):
            break
        gain = split_gain(node, gradients, hessians, limits)
        if gain > best.rank.gain:
            is_best = True
            best.found = True
            best.is_categorical = True
            best.rank.gain = gain
            best.feature_idx = feature_idx
            best.n_samples_left = n_left
            best.sum_gradients_left = gradients
            best.sum_hessians_left = hessians
    return is_best
