# The features that a small node looks at, and the best split by one of them.
#
# Rows move to the left side in the order of the feature, categories being put in an
# order first, and where a code ends there is a candidate split. It is judged by its
# gain, as scikit-learn's splitter does, or by the eras.

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from libc.stdint cimport uint64_t
from ..._arrays cimport X_BINNED_DTYPE_C, hist_struct

from .eras cimport ask_eras, move_rows, small_eras, start_order
from .node cimport MAX_ROWS, code_of, keys_of, row_of, small_node, small_rows
from ..candidates.orders cimport (
    MIN_CATEGORY_SUPPORT, n_moved_from_end, order_categories, reverse_order,
    set_left_categories,
)
from ..nodes cimport (
    feature_split, gain_of_sides, is_better, pooled_node, tree_data, values_of_sides,
)
from ..rows cimport MAX_BINS
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.dispatch cimport MAX_SUMS
from ..._criteria.ranking cimport may_outrank, penalise, rank_split, suffices


cdef struct scan_context:
    # What the scans of a node's features have in common.
    const tree_data * tree
    const small_node * node
    const small_rows * rows
    small_eras * eras
    const criterion_struct * criterion   # NULL: by the gain, as scikit-learn
    bint asks_eras           # or else the criterion is the gain alone
    unsigned int[MAX_ROWS] scratch   # for keys in another order


cdef struct sorted_feature:
    int feature_idx
    bint is_categorical
    int n_bins                  # of values that are not missing
    int missing_code            # of missing values; -1 where the feature has none
    bint is_drawn
    # Of the node.
    unsigned int * keys         # (n_rows,), sorted
    bint varies
    double largest_gain         # of the splits; INFINITY where it is not known
    double cost                 # see `cost_of_feature`


cdef inline void scan_numbers(
    scan_context * context,
    sorted_feature * feature,
    feature_split * best,            # IN and OUT
) noexcept nogil:
    """Replace `best` by the feature's best split, if that ranks above it."""
    cdef:
        const unsigned int * keys = feature.keys
        int n_rows = context.node.pooled.n_samples
        int n_known = n_rows
    while n_known > 0 and code_of(keys[n_known - 1]) == feature.missing_code:
        n_known -= 1
    scan_order(context, feature, keys, n_rows, 0, best)
    if n_known < n_rows:
        # Once more, with missing values on the left side.
        memcpy(
            context.scratch, keys + n_known, (n_rows - n_known) * sizeof(unsigned int)
        )
        memcpy(context.scratch + n_rows - n_known, keys, n_known * sizeof(unsigned int))
        scan_order(context, feature, context.scratch, n_rows, n_rows - n_known, best)


cdef inline bint scan_order(
    scan_context * context,
    sorted_feature * feature,
    const unsigned int * keys,   # (n_rows,), as they move to the left
    int n_moved,                 # that do
    int n_missing,               # missing values that move first
    feature_split * best,        # IN and OUT
) noexcept nogil:
    """Judge the split where a code ends; return whether one has replaced `best`."""
    cdef:
        const tree_data * tree = context.tree
        const pooled_node * node = &context.node.pooled
        const small_rows * rows = context.rows
        bint is_by_gain = context.criterion == NULL
        double gradients = 0.0  # of categories, each is summed up first by the gain
        double hessians = 0.0   # as in scikit-learn, for ties to be the same
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
        gradients = 0.0
        hessians = 0.0
        # Missing values alone are the right side of another split.
        if is_same_code or i < n_missing and (is_by_gain or code_of(keys[i + 1]) == 0):
            continue
        if i + 1 < tree.min_samples_leaf or split.sum_hessians_left < min_hessians:
            continue
        if node.sum_hessians - split.sum_hessians_left < min_hessians:
            break
        split.n_samples_left = i + 1
        split.rank.gain = gain_of_split(tree, node, &split)
        feature.largest_gain = max(feature.largest_gain, split.rank.gain)
        split.bin_idx = code_of(keys[i])
        if i < n_missing or feature.is_categorical:
            split.bin_idx = 0
        elif is_by_gain and n_missing > 0:
            # Of the bins that separate the same rows, the one that scikit-learn takes.
            split.bin_idx = code_of(keys[i + 1]) - 1
        if ranks_above(context, feature.cost, keys, &split, best):
            best[0] = split
            is_best = True
    return is_best


cdef inline double gain_of_split(
    const tree_data * tree, const pooled_node * node, const feature_split * split
) noexcept nogil:
    return gain_of_sides(
        node, split.sum_gradients_left,
        values_of_sides(tree, node, split.sum_gradients_left, split.sum_hessians_left),
    )


cdef inline bint gains_more(
    const feature_split * split, const feature_split * best
) noexcept nogil:
    """Whether a split replaces `best` by the gain, as scikit-learn compares them.

    Of equal gains the first stays, but the last among a feature's splits with missing
    values on the left side, which scikit-learn scans from the right.
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
    double cost,                    # of the feature
    const unsigned int * keys,
    feature_split * split,          # IN, its gain, and OUT, its rank
    const feature_split * best,
) noexcept nogil:
    """Whether a split replaces `best`."""
    cdef:
        const criterion_struct * criterion = context.criterion
        double gain = split.rank.gain
        small_eras * eras = context.eras
        double[MAX_SUMS] sums
        double least = -INFINITY
    if criterion == NULL:
        return gains_more(split, best)
    if not suffices(criterion, gain) or (
        best.found and not may_outrank(criterion, gain - cost, &best.rank)
    ):
        return False
    memset(sums, 0, sizeof(sums))
    if context.asks_eras:
        if eras.n_moved == 0:
            start_order(eras, keys, context.node.pooled.n_samples)
        move_rows(eras, keys, split.n_samples_left, criterion.min_samples_per_era)
        if best.found and cost == 0.0:
            least = best.rank.primary
        if eras.n_covered < criterion.min_covered_eras or not ask_eras(
            eras, criterion, gain, least, sums
        ):
            return False
    return (
        rank_split(criterion, &eras.pooled, sums, gain, &split.rank)
        and (cost == 0.0 or penalise(criterion, cost, &split.rank))
        and is_better(split, best)
    )


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


cdef struct feature_draw:
    int n_features
    int n_drawn
    uint64_t random_state
    int * deck              # (n_features,), in a random order


cdef inline bint find_varying(
    sorted_feature * features,   # (n_features,), IN and OUT
    int n_features,
    const small_rows * rows,
    const small_node * node,
) noexcept nogil:
    """Find the features that are not constant in a node; return False if all are."""
    cdef:
        int n_rows = node.pooled.n_samples
        # Weights are counted in units of their mean: all together, they are as many.
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
    """Draw features for a node without replacement, by the first steps of a shuffle.

    Where none of them can split the node, draw on until one does: as scikit-learn's
    trees, which else would end early on columns of few values.
    """
    cdef:
        int n = draw.n_features
        bint can_split = False
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
            not feature.is_categorical or can_split_categories(context, feature)
        )


cdef inline uint64_t next_random(uint64_t * state) noexcept nogil:
    """Return the next number of the generator SplitMix64: Steele, Lea & Flood (2014).
    """
    cdef uint64_t mixed
    state[0] += <uint64_t> 0x9E3779B97F4A7C15
    mixed = state[0]
    mixed = (mixed ^ (mixed >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    mixed = (mixed ^ (mixed >> 27)) * <uint64_t> 0x94D049BB133111EB
    return mixed ^ (mixed >> 31)
