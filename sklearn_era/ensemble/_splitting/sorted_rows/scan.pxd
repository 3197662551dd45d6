# The active features of a small node, and the best split by one of them: rows move to
# the left side in the order of the feature, with a candidate after each code.

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from libc.stdint cimport uint64_t
from ..._arrays cimport X_BINNED_DTYPE_C, hist_struct

from .eras cimport sum_eras, move_rows, small_eras, start_order
from .node cimport MAX_ROWS, code_of, keys_of, row_of, small_rows
from ..candidates.orders cimport (
    MIN_CATEGORY_SUPPORT, n_moved_from_end, order_categories, reverse_order,
    set_left_categories,
)
from ..nodes cimport (
    feature_split, gain_of_sides, pooled_node, tree_data, tree_node, values_of_sides,
)
from ..rows cimport MAX_BINS
from ..ties cimport is_better
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.dispatch cimport MAX_SUMS
from ..._criteria.penalties cimport penalise
from ..._criteria.ranking cimport may_outrank, rank_split, suffices


cdef struct scan_context:
    # Inputs of the scans of all features of a node.
    const tree_data * tree
    const tree_node * node
    const small_rows * rows
    small_eras * eras
    const criterion_struct * criterion   # NULL: scikit-learn's gain
    bint compares_eras           # else the criterion needs the gain only
    unsigned int[MAX_ROWS] scratch   # for keys in another order


cdef struct sorted_feature:
    int feature_idx
    bint is_categorical
    int n_bins                  # without that of missing values
    int missing_code            # of missing values; -1 without any
    bint is_drawn
    # In the node.
    unsigned int * keys         # (n_rows,), sorted
    bint varies
    double largest_gain         # over its splits; INFINITY if not known
    double penalty              # see `penalty_of_feature`


cdef inline void scan_numbers(
    scan_context * context, sorted_feature * feature,
    feature_split * best,            # IN and OUT
) noexcept nogil:
    """Replace `best` by a numeric feature's best split, if this split ranks higher."""
    cdef:
        const unsigned int * keys = feature.keys
        int n_rows = context.node.pooled.n_samples
        int n_known = n_rows
    while n_known > 0 and code_of(keys[n_known - 1]) == feature.missing_code:
        n_known -= 1
    scan_order(context, feature, keys, n_rows, 0, best)
    if n_known < n_rows:
        # Again with missing values on the left side.
        memcpy(
            context.scratch, keys + n_known, (n_rows - n_known) * sizeof(unsigned int)
        )
        memcpy(context.scratch + n_rows - n_known, keys, n_known * sizeof(unsigned int))
        scan_order(context, feature, context.scratch, n_rows, n_rows - n_known, best)


cdef inline bint scan_order(
    scan_context * context, sorted_feature * feature,
    const unsigned int * keys,   # (n_rows,), in the order of moves
    int n_moved,                 # rows that move
    int n_missing,               # missing values, which move first
    feature_split * best,        # IN and OUT
) noexcept nogil:
    """Rank the split after each distinct code; return whether any replaced `best`."""
    cdef:
        const tree_data * tree = context.tree
        const pooled_node * node = &context.node.pooled
        const small_rows * rows = context.rows
        bint is_by_gain = context.criterion == NULL
        double gradients = 0.0  # of one category, summed up first if ranked by gain,
        double hessians = 0.0   # as in scikit-learn: so ties are the same
        double min_hessians = tree.min_hessian_to_split
        feature_split split
        bint is_same_code, is_best = False
        int i
    memset(&split, 0, sizeof(split))
    split.found = True
    split.is_categorical = feature.is_categorical
    split.feature_idx = feature.feature_idx
    split.missing_go_to_left = n_missing > 0
    context.eras.n_moved = 0
    for i in range(min(n_moved, <int> node.n_samples - tree.min_samples_leaf)):
        gradients += rows.gradients[row_of(keys[i])]
        hessians += rows.hessians[row_of(keys[i])]
        is_same_code = code_of(keys[i]) == code_of(keys[i + 1])
        if is_same_code and is_by_gain and feature.is_categorical:
            continue
        split.sum_gradients_left += gradients
        split.sum_hessians_left += hessians
        gradients = hessians = 0.0
        # Missing values alone on the left repeat a split of the other order.
        if is_same_code or i < n_missing and (is_by_gain or code_of(keys[i + 1]) == 0):
            continue
        if i + 1 < tree.min_samples_leaf or split.sum_hessians_left < min_hessians:
            continue
        if node.sum_hessians - split.sum_hessians_left < min_hessians:
            break
        split.n_samples_left = i + 1
        split.rank.gain = gain_of_sides(
            node, split.sum_gradients_left,
            values_of_sides(
                tree, node, split.sum_gradients_left, split.sum_hessians_left
            ),
        )
        feature.largest_gain = max(feature.largest_gain, split.rank.gain)
        split.bin_idx = code_of(keys[i])
        if i < n_missing or feature.is_categorical:
            split.bin_idx = 0
        elif is_by_gain and n_missing > 0:
            # scikit-learn's choice among the bins that separate the same rows.
            split.bin_idx = code_of(keys[i + 1]) - 1
        if ranks_above(context, feature.penalty, keys, &split, best):
            best[0] = split
            is_best = True
    return is_best


cdef inline bint gains_more(
    const feature_split * split, const feature_split * best
) noexcept nogil:
    """Return whether a split replaces `best` by the gain, as in scikit-learn. Among
    equal gains the first split stays. But with missing values on the left side, a
    feature's last split replaces the first, as scikit-learn scans from the right.
    """
    if split.rank.gain != best.rank.gain:
        return split.rank.gain > best.rank.gain
    return (
        best.found
        and split.feature_idx == best.feature_idx
        and split.missing_go_to_left
        and best.missing_go_to_left
    )


cdef inline bint ranks_above(
    scan_context * context,
    double penalty,                 # of the feature
    const unsigned int * keys, feature_split * split,  # IN: its gain; OUT: its rank
    const feature_split * best,
) noexcept nogil:
    """Set the rank of a split; return whether the split replaces `best`."""
    cdef:
        const criterion_struct * criterion = context.criterion
        double gain = split.rank.gain
        small_eras * eras = context.eras
        double[MAX_SUMS] sums
        double min_key = -INFINITY
    if criterion == NULL:
        return gains_more(split, best)
    if not suffices(criterion, gain) or (
        best.found and not may_outrank(criterion, gain - penalty, &best.rank)
    ):
        return False
    memset(sums, 0, sizeof(sums))
    if context.compares_eras:
        if eras.n_moved == 0:
            start_order(eras, keys, context.node.pooled.n_samples)
        move_rows(eras, keys, split.n_samples_left)
        if best.found and penalty == 0.0:
            min_key = best.rank.primary
        if eras.n_covered < criterion.min_covered_eras or not sum_eras(
            eras, criterion, gain, min_key, sums
        ):
            return False
    return (
        rank_split(criterion, &eras.of_node, sums, gain, &split.rank)
        and (penalty == 0.0 or penalise(criterion, penalty, &split.rank))
        and is_better(split, best)
    )


cdef struct category_sums:
    # Sums of categories, by bin; missing values come after all bins.
    int n_all
    hist_struct[MAX_BINS] pooled
    int[MAX_BINS] first       # place of the first of a category's keys
    X_BINNED_DTYPE_C[MAX_BINS] order


cdef inline int sum_categories(
    const scan_context * context, const sorted_feature * feature,
    category_sums * categories,   # OUT
) noexcept nogil:
    """Sum up categories and sort them; return how many may take part in splits."""
    cdef:
        const small_rows * rows = context.rows
        int n_rows = context.node.pooled.n_samples
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
        n_rows / context.node.pooled.sum_hessians, categories.order,
    )


cdef inline void scan_categories(
    scan_context * context, sorted_feature * feature,
    feature_split * best,            # IN and OUT
) noexcept nogil:
    """Replace `best` by the best split of categories, if this split ranks higher."""
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
    const sorted_feature * feature, const category_sums * categories, int n_moved,
    unsigned int * keys,              # OUT, all rows of the node
) noexcept nogil:
    """Copy a node's rows in the order of categories; return how many rows go left."""
    cdef int n_rows = 0, n_left = 0, place, i
    for i in range(categories.n_all):
        place = categories.order[i]
        if categories.pooled[place].count > 0:
            memcpy(
                keys + n_rows, feature.keys + categories.first[place],
                categories.pooled[place].count * sizeof(unsigned int),
            )
            n_rows += categories.pooled[place].count
        if i < n_moved:
            n_left = n_rows
    return n_left


cdef struct feature_draw:
    int n_features
    int n_drawn
    uint64_t random_state
    int * deck              # (n_features,), in a random order


cdef inline bint find_varying(
    sorted_feature * features,   # (n_features,), IN and OUT
    int n_features, const small_rows * rows, const tree_node * node,
) noexcept nogil:
    """Set which features vary in a node; return False if none does."""
    cdef:
        int n_rows = node.pooled.n_samples
        # Hessians are in units of their mean, so those of all rows sum up to n_rows.
        bint may_split_categories = n_rows >= 2 * MIN_CATEGORY_SUPPORT
        sorted_feature * feature
        bint some_vary = False
        int i
    for i in range(n_features):
        feature = &features[i]
        feature.keys = keys_of(rows, i, node.start)
        feature.varies = (
            may_split_categories or not feature.is_categorical
        ) and code_of(feature.keys[0]) != code_of(feature.keys[n_rows - 1])
        some_vary |= feature.varies
    return some_vary


cdef inline void draw_features(
    feature_draw * draw,
    sorted_feature * features,   # (n_features,), IN and OUT
    const scan_context * context,
) noexcept nogil:
    """Draw features for a node, by the first steps of a shuffle; draw more until a
    drawn feature can split the node, as in scikit-learn's trees.
    """
    cdef:
        int n = draw.n_features
        bint can_split = False
        category_sums categories
        sorted_feature * feature
        int i, j
    if draw.n_drawn == n:
        return
    for i in range(n):
        features[i].is_drawn = False
    for i in range(n):
        if i >= draw.n_drawn and can_split:
            break
        j = i + <int> (next_random(&draw.random_state) % <uint64_t> (n - i))
        draw.deck[i], draw.deck[j] = draw.deck[j], draw.deck[i]
        feature = &features[draw.deck[i]]
        feature.is_drawn = True
        can_split = can_split or feature.varies and (
            not feature.is_categorical
            or sum_categories(context, feature, &categories) >= 2
        )


cdef inline uint64_t next_random(uint64_t * state) noexcept nogil:
    """Return the next random number by SplitMix64: Steele, Lea & Flood (2014)."""
    cdef uint64_t mixed
    state[0] += <uint64_t> 0x9E3779B97F4A7C15
    mixed = state[0]
    mixed = (mixed ^ (mixed >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    mixed = (mixed ^ (mixed >> 27)) * <uint64_t> 0x94D049BB133111EB
    return mixed ^ (mixed >> 31)
