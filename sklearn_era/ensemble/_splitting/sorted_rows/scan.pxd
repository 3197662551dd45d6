# The best split of a small node by a feature, found between neighbours among the rows.
#
# Rows move to the left side in the order of the feature, and where a code ends there is
# a candidate split. It is judged by its gain, as scikit-learn's splitter does, or by
# what the eras say of it. One loop for both has 13 to 20 % more instructions by the
# gain.

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from .keys cimport code_of, count_code, has_same_code, row_of
from .moving_eras cimport (
    is_ruled_out, move_row, moving_era, moving_eras, settle, start_moves,
    sum_eras,
)
from .node cimport admit_split, hessian_of, row_sums, small_node, split_gain
from ..admission cimport TOO_SMALL_LEFT, TOO_SMALL_RIGHT, admission
from ..tree_data cimport tree_limits
from ..candidates.split cimport feature_split, is_better
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.ranking cimport may_outrank, penalise, rank_split, suffices
from ..._criteria.dispatch cimport MAX_SUMS
from ..._criteria.split_sums cimport add_absent_eras


cdef struct scan_context:
    # What the scans of a node's features have in common.
    const small_node * node
    const tree_limits * limits
    const row_sums * sums
    moving_eras * eras       # NULL: by the gain, as scikit-learn
    bint asks_eras           # or else `eras.criterion` is the gain alone
    unsigned int * scratch   # (n_rows,), for keys in another order


cdef struct sorted_feature:
    int feature_idx
    bint is_categorical
    int n_bins                  # of values that are not missing
    int missing_code            # of missing values; -1 where the feature has none
    # Of the node.
    const unsigned int * keys   # (n_rows,), sorted
    double largest_gain         # of the splits; INFINITY where it is not known
    double cost                 # see `cost_of_feature`


cdef inline void scan_numbers(
    const scan_context * context,
    sorted_feature * feature,
    feature_split * best,            # IN and OUT
) noexcept nogil:
    """Replace `best` by the feature's best split, if that ranks above it."""
    cdef:
        const unsigned int * keys = feature.keys
        int n_rows = context.node.stop - context.node.start
        int n_missing = 0
        int n_known
    if feature.missing_code >= 0:
        n_missing = count_code(keys, n_rows, feature.missing_code)
    n_known = n_rows - n_missing
    if context.eras == NULL:
        scan_gains(context, feature, 0, best)
        if n_missing > 0:
            scan_gains(context, feature, n_missing, best)
        return
    scan_eras(context, feature, keys, n_rows, 0, best)
    if n_missing > 0:
        # Once more, with missing values on the left side.
        memcpy(context.scratch, keys + n_known, n_missing * sizeof(unsigned int))
        memcpy(context.scratch + n_missing, keys, n_known * sizeof(unsigned int))
        scan_eras(context, feature, context.scratch, n_rows, n_missing, best)


cdef inline void start_split(
    const sorted_feature * feature, bint missing_go_to_left, feature_split * split
) noexcept nogil:
    split.found = True
    split.is_categorical = feature.is_categorical
    split.feature_idx = feature.feature_idx
    split.missing_go_to_left = missing_go_to_left


cdef inline bint gains_more(
    double gain,
    int feature_idx,
    bint missing_go_to_left,
    const feature_split * best,
) noexcept nogil:
    """Whether a split replaces `best` by the gain.

    Of equal gains the first stays, but the last among a feature's splits with missing
    values on the left side, which scikit-learn scans from the right.
    """
    if gain <= best.rank.gain:
        return (
            gain == best.rank.gain
            and missing_go_to_left
            and best.found
            and best.feature_idx == feature_idx
            and best.missing_go_to_left
        )
    return True


cdef inline void scan_gains(
    const scan_context * context,
    const sorted_feature * feature,
    int n_missing,                   # missing values on the left side
    feature_split * best,            # IN and OUT
) noexcept nogil:
    """Judge the split where a code ends by the gain."""
    cdef:
        const small_node * node = context.node
        const tree_limits * limits = context.limits
        const row_sums * sums = context.sums
        int n_known = node.stop - node.start - n_missing
        double gradients = 0.0
        double hessians = 0.0
        unsigned int key
        unsigned int next_key = feature.keys[0]
        admission admitted
        double gain
        int row, i

    for i in range(n_known, n_known + n_missing):
        row = row_of(feature.keys[i])
        gradients += sums.gradients[row]
        hessians += hessian_of(sums, row)
    for i in range(n_known - 1):
        key = next_key
        next_key = feature.keys[i + 1]
        row = row_of(key)
        gradients += sums.gradients[row]
        hessians += hessian_of(sums, row)
        if has_same_code(key, next_key):
            continue
        admitted = admit_split(node, n_missing + i + 1, hessians, limits)
        if admitted == TOO_SMALL_RIGHT:
            break
        if admitted == TOO_SMALL_LEFT:
            continue
        gain = split_gain(node, gradients, hessians, limits)
        if gains_more(gain, feature.feature_idx, n_missing > 0, best):
            start_split(feature, n_missing > 0, best)
            best.rank.gain = gain
            # Of the bins that separate the same rows, the one that scikit-learn takes.
            best.bin_idx = code_of(next_key) - 1 if n_missing > 0 else code_of(key)
            best.n_samples_left = n_missing + i + 1
            best.sum_gradients_left = gradients
            best.sum_hessians_left = hessians


cdef inline bint scan_eras(
    const scan_context * context,
    sorted_feature * feature,
    const unsigned int * keys,   # (n_rows,), as they move to the left
    int n_moved,                 # that do
    int n_missing,               # missing values that move first
    feature_split * best,        # IN and OUT
) noexcept nogil:
    """By what the eras say; return whether one of the splits has replaced `best`."""
    if context.asks_eras:
        return scan_order(context, feature, keys, n_moved, n_missing, True, best)
    return scan_order(context, feature, keys, n_moved, n_missing, False, best)


cdef inline bint scan_order(
    const scan_context * context,
    sorted_feature * feature,
    const unsigned int * keys,
    int n_moved,
    int n_missing,
    bint asks_eras,              # a constant, for a loop each
    feature_split * best,
) noexcept nogil:
    cdef:
        const small_node * node = context.node
        const tree_limits * limits = context.limits
        const row_sums * sums = context.sums
        moving_eras * eras = context.eras
        const criterion_struct * criterion = eras.criterion
        int n_rows = node.stop - node.start
        double gradients = 0.0
        double hessians = 0.0
        unsigned int key
        unsigned int next_key = keys[0]
        feature_split split
        admission admitted
        double gain
        bint is_best = False
        int row, i

    start_split(feature, n_missing > 0, &split)
    if asks_eras:
        start_moves(eras, keys, n_rows)
    for i in range(min(n_moved, n_rows - 1)):
        key = next_key
        next_key = keys[i + 1]
        row = row_of(key)
        gradients += sums.gradients[row]
        hessians += hessian_of(sums, row)
        if asks_eras:
            move_row(eras, row, i)
        # Missing values alone are the right side of another split.
        if has_same_code(key, next_key) or i < n_missing and code_of(next_key) == 0:
            continue
        admitted = admit_split(node, i + 1, hessians, limits)
        if admitted == TOO_SMALL_RIGHT:
            break
        if admitted == TOO_SMALL_LEFT:
            continue
        gain = split_gain(node, gradients, hessians, limits)
        if not asks_eras and gain > feature.largest_gain:
            feature.largest_gain = gain
        if not suffices(criterion, gain) or (
            best.found
            and not may_outrank(criterion, gain - feature.cost, &best.rank)
        ):
            continue
        split.bin_idx = code_of(key)
        if i < n_missing or feature.is_categorical:
            split.bin_idx = 0
        split.rank.gain = gain
        if ranks_above(eras, asks_eras, feature.cost, &split, best):
            split.n_samples_left = i + 1
            split.sum_gradients_left = gradients
            split.sum_hessians_left = hessians
            best[0] = split
            is_best = True
    return is_best


cdef inline bint ranks_above(
    moving_eras * eras,
    bint asks_eras,
    double cost,                    # of the feature
    feature_split * split,          # IN, its gain, and OUT, its rank
    const feature_split * best,
) noexcept nogil:
    """Whether a split replaces `best` by a criterion that compares eras."""
    cdef:
        double gain = split.rank.gain
        double[MAX_SUMS] sums
    memset(sums, 0, sizeof(sums))
    if asks_eras:
        settle(eras)
        if eras.n_covered < eras.criterion.min_covered_eras or (
            best.found and is_ruled_out(eras, cost, &best.rank)
        ):
            return False
        sum_eras(eras, sums)
        add_absent_eras(eras.criterion, eras.pooled.n_eras - eras.n_present, sums)
    return (
        rank_split(eras.criterion, &eras.pooled, sums, gain, &split.rank)
        and (cost == 0.0 or penalise(eras.criterion, cost, &split.rank))
        and is_better(split, best)
    )
