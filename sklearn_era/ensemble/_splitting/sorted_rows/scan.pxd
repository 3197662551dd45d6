# The best split of a small node by a feature, found between neighbours among the rows.
#
# Rows move to the left side in the order of the feature, and where a code ends there is
# a candidate split. It is judged by its gain, as scikit-learn's splitter does, or by
# the eras.

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from .eras cimport ask_eras, move_rows, small_eras, start_order
from .node cimport find_gain, small_node
from .keys cimport MAX_ROWS, code_of, row_of, small_rows
from ..admission cimport TOO_SMALL_LEFT, TOO_SMALL_RIGHT, admission
from ..candidates.split cimport feature_split, is_better
from ..tree_data cimport tree_limits
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.dispatch cimport MAX_SUMS
from ..._criteria.ranking cimport may_outrank, penalise, rank_split, suffices


cdef struct scan_context:
    # What the scans of a node's features have in common.
    const small_node * node
    const tree_limits * limits
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
        int n_rows = context.node.stop - context.node.start
        int n_known = n_rows
    while n_known > 0 and code_of(keys[n_known - 1]) == feature.missing_code:
        n_known -= 1
    scan_order(context, feature, keys, n_rows, 0, best)
    if n_known < n_rows:
        # Once more, with missing values on the left side.
        memcpy(
            context.scratch, keys + n_known, (n_rows - n_known) * sizeof(unsigned int)
        )
        memcpy(
            context.scratch + n_rows - n_known, keys, n_known * sizeof(unsigned int)
        )
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
        const small_node * node = context.node
        const small_rows * rows = context.rows
        int n_rows = node.stop - node.start
        bint is_by_gain = context.criterion == NULL
        double gradients = 0.0  # of categories, each is summed up first by the gain
        double hessians = 0.0   # as in scikit-learn, for ties to be the same
        feature_split split = start_split(feature, n_missing > 0)
        bint is_same_code, is_best = False
        admission admitted
        int i
    context.eras.n_moved = 0
    for i in range(min(n_moved, n_rows - 1)):
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
        split.n_samples_left = i + 1
        admitted = find_gain(node, context.limits, &split)
        if admitted == TOO_SMALL_RIGHT:
            break
        if admitted == TOO_SMALL_LEFT:
            continue
        feature.largest_gain = max(feature.largest_gain, split.rank.gain)
        split.bin_idx = code_of(keys[i])
        if i < n_missing or feature.is_categorical:
            split.bin_idx = 0
        elif is_by_gain and n_missing > 0:
            # Of the bins that separate the same rows, the one that scikit-learn takes.
            split.bin_idx = code_of(keys[i + 1]) - 1
        if (
            gains_more(&split, best)
            if is_by_gain
            else ranks_above(context, feature.cost, keys, &split, best)
        ):
            best[0] = split
            is_best = True
    return is_best


cdef inline feature_split start_split(
    const sorted_feature * feature, bint missing_go_to_left
) noexcept nogil:
    cdef feature_split split
    memset(&split, 0, sizeof(split))
    split.found = True
    split.is_categorical = feature.is_categorical
    split.feature_idx = feature.feature_idx
    split.missing_go_to_left = missing_go_to_left
    return split


cdef inline bint gains_more(
    const feature_split * split, const feature_split * best
) noexcept nogil:
    """Whether a split replaces `best` by the gain.

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
    """Whether a split replaces `best` by a criterion that compares eras."""
    cdef:
        const criterion_struct * criterion = context.criterion
        double gain = split.rank.gain
        small_eras * eras = context.eras
        double[MAX_SUMS] sums
        double least = -INFINITY
    if not suffices(criterion, gain) or (
        best.found and not may_outrank(criterion, gain - cost, &best.rank)
    ):
        return False
    memset(sums, 0, sizeof(sums))
    if context.asks_eras:
        if eras.n_moved == 0:
            start_order(eras, keys, context.node.stop - context.node.start)
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
