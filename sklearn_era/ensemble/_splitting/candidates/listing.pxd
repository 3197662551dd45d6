# The splits that the eras are asked of, each of which gets a lane.

from cython.parallel cimport prange
from libc.math cimport INFINITY
from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport X_BINNED_DTYPE_C

from .best cimport gains_of_order
from .orders cimport set_orders
from .splits cimport CandidateSplits, feature_bins, lanes_for, split_order
from ..lanes.functions cimport lane_column, node_struct, order_sides
from ..rows cimport MAX_BINS, EraRows, row_block
from ..tree_data cimport tree_data
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.ranking cimport suffices


cdef inline int list_splits(
    CandidateSplits splits,
    const criterion_struct * criterion,
    const node_struct * node,
    EraRows rows,                    # of the node; None: do not look at them
    int n_threads,
) noexcept:
    """List the splits whose gain suffices, without anything said of them yet.

    Return the number of columns that have some.
    """
    cdef:
        feature_bins * feature
        lane_column * column
        int i, k
    for i in range(splits.n_columns):
        splits.columns[i].n_splits = 0
        splits.columns[i].largest_gain = -INFINITY
    for i in prange(
        splits.n_features, schedule="static", nogil=True, num_threads=n_threads
    ):
        list_feature(splits, criterion, node, rows, &splits.features[i])
    for i in range(splits.n_features):
        feature = &splits.features[i]
        if not feature.is_listed:
            continue
        for k in range(feature.n_orders):
            column = &splits.columns[feature.orders[k].column]
            column.largest_gain = max(column.largest_gain, feature.largest_gain)
            if column.bundle != NULL:
                column.n_splits = column.bundle.n_splits
                column.by_era = NULL
                if node.by_era != NULL:
                    column.by_era = (
                        node.by_era + column.bundle.first_lane * node.n_by_era
                    )
    splits.count_listed()
    return splits.n_listed


cdef inline void list_feature(
    CandidateSplits splits,
    const criterion_struct * criterion,
    const node_struct * node,
    EraRows rows,             # or None
    feature_bins * feature,   # IN and OUT
) noexcept nogil:
    """List the splits of a feature whose gain suffices."""
    cdef:
        lane_column * column = &splits.columns[feature.orders[0].column]
        int[MAX_BINS] n_covering
        order_sides sides
        double largest_gain = -INFINITY
        double * gains
        int k, i
    feature.is_listed = (
        feature.is_wanted
        and feature.largest_gain > -INFINITY
        and suffices(criterion, feature.largest_gain)
    )
    if not feature.is_listed:
        if column.bundle != NULL:  # with a lane each, whether they are listed or not
            gains = splits.gains + feature.orders[0].first_lane
            for i in range(n_splits_of(feature)):
                gains[i] = -INFINITY
        return
    if feature.largest_gain == INFINITY:
        set_orders(splits, node, feature)
    sides.wants_right = criterion.traits.sees_all_eras
    for k in range(feature.n_orders):
        feature.orders[k].n_lanes = 0
        if column.bundle == NULL and rows is not None and not count_covering_eras(
            splits, criterion, rows, feature, &feature.orders[k], n_covering
        ):
            continue
        largest_gain = max(
            largest_gain,
            gains_of_order(splits, node, feature, k, &sides),
        )
        if column.bundle != NULL:
            list_with_masks(splits, criterion, &sides, &feature.orders[k])
        else:
            list_order(
                splits, criterion, &sides, NULL if rows is None else n_covering,
                feature, &feature.orders[k],
            )
    if feature.largest_gain == INFINITY:
        feature.largest_gain = largest_gain


cdef inline int n_splits_of(const feature_bins * feature) noexcept nogil:
    """The splits of a numeric feature, of both orders."""
    if feature.has_missing:
        return feature.n_codes - 1 + max(feature.n_codes - 2, 0)
    return feature.n_codes - 1


cdef inline void list_with_masks(
    CandidateSplits splits,
    const criterion_struct * criterion,
    const order_sides * sides,
    split_order * order,      # IN and OUT
) noexcept nogil:
    """Give each split its lane."""
    cdef int i
    order.n_lanes = order.order.n_splits
    for i in range(order.n_lanes):
        set_lane(splits, sides, i, order.first_lane + i)
        if not suffices(criterion, sides.gains[i]):
            splits.gains[order.first_lane + i] = -INFINITY


cdef inline void list_order(
    CandidateSplits splits,
    const criterion_struct * criterion,
    const order_sides * sides,
    const int * n_covering,   # eras that may cover each split; NULL: not asked
    const feature_bins * feature,
    split_order * order,      # IN and OUT
) noexcept nogil:
    """Give the splits that are listed a lane each, and the codes their groups."""
    cdef:
        lane_column * column = &splits.columns[order.column]
        const X_BINNED_DTYPE_C * codes = order.order.codes
        int n_splits = 0
        int i
    memset(column.groups, 0, sizeof(column.groups))  # missing ones that go to the left
    for i in range(order.order.n_splits):
        column.groups[codes[i]] = n_splits
        if sides.gains[i] > -INFINITY and suffices(criterion, sides.gains[i]):
            if i > 0 and sides.left_counts[i] == sides.left_counts[i - 1]:
                continue  # the bin has no row: this is the split before once more
            if n_covering != NULL and n_covering[i] < criterion.min_covered_eras:
                continue
            set_lane(splits, sides, i, order.first_lane + n_splits)
            n_splits += 1
    order.n_lanes = n_splits
    column.n_splits = n_splits
    column.n_lanes = lanes_for(n_splits)
    group_others(splits.tree, feature, order, n_splits, column.groups)


cdef inline bint count_covering_eras(
    CandidateSplits splits,
    const criterion_struct * criterion,
    EraRows rows,
    const feature_bins * feature,
    const split_order * order,
    int * n_covering,         # OUT, of each split
) noexcept nogil:
    """Count the eras with a row on either side of each split.

    Return False where all eras are needed, and no split has them. An era covers what
    lies between the first and the last of its rows.
    """
    cdef:
        const X_BINNED_DTYPE_C * codes = splits.columns[order.column].codes
        const unsigned int * indices = rows.sample_indices
        const row_block * block
        X_BINNED_DTYPE_C[MAX_BINS] places
        int[MAX_BINS + 1] changes
        int n_splits = order.order.n_splits
        int first = 0
        int last = n_splits
        int place, lowest, highest, i, j
    for i in range(n_splits):
        places[order.order.codes[i]] = i
    group_others(splits.tree, feature, order, n_splits, places)
    memset(changes, 0, sizeof(changes))
    for i in range(rows.n_blocks):
        block = &rows.blocks[i]
        if i == 0 or block.era != rows.blocks[i - 1].era:
            lowest = MAX_BINS
            highest = 0
        for j in range(block.start, block.stop):
            place = places[codes[j if indices == NULL else indices[j]]]
            lowest = min(lowest, place)
            highest = max(highest, place)
        if i + 1 == rows.n_blocks or rows.blocks[i + 1].era != block.era:
            changes[lowest] += 1
            changes[highest] -= 1
            first = max(first, lowest)
            last = min(last, highest)
            if first >= last and criterion.min_covered_eras >= rows.n_listed:
                return False
    n_covering[0] = changes[0]
    for i in range(1, n_splits):
        n_covering[i] = n_covering[i - 1] + changes[i]
    return True


cdef inline void group_others(
    const tree_data * tree,
    const feature_bins * feature,
    const split_order * order,
    int n_splits,
    X_BINNED_DTYPE_C * groups,  # IN and OUT
) noexcept nogil:
    """Put the codes that stay on the right side of all splits into the last group."""
    cdef:
        bint[MAX_BINS] moves
        int missing = tree.missing_values_bin_idx
        int i
    memset(moves, 0, sizeof(moves))
    for i in range(order.order.n_splits):
        moves[order.order.codes[i]] = True
    for i in range(feature.n_codes):
        if not moves[i]:
            groups[i] = n_splits
    if feature.has_missing:  # the last of the codes, and of the bins
        groups[missing] = groups[feature.n_codes - 1]
        if order.order.missing_go_to_left:
            groups[missing] = 0


cdef inline void set_lane(
    CandidateSplits splits, const order_sides * sides, int place, Py_ssize_t lane
) noexcept nogil:
    """Keep both sides of a split, its gain and its place."""
    cdef:
        double * of_lane = splits.sides + lane
        Py_ssize_t n = splits.n_lanes
    of_lane[0] = sides.left_gradients[place]
    of_lane[n] = sides.left_hessians[place]
    of_lane[2 * n] = sides.left_counts[place]
    splits.gains[lane] = sides.gains[place]
    splits.places[lane] = place
    if not sides.wants_right:
        return
    of_lane[3 * n] = sides.right_gradients[place]
    of_lane[4 * n] = sides.right_hessians[place]
    of_lane[5 * n] = sides.right_counts[place]
