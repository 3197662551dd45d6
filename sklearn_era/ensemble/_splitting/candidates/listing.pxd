# The splits of a node that are listed, to be compared by era. Each has a lane until it
# can no longer become the best.

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t
from libc.string cimport memset

from ..._arrays cimport X_BINNED_DTYPE_C

from .best cimport gains_of_order, rank_splits
from .orders cimport set_orders
from .splits cimport (
    COLUMNS, CandidateSplits, feature_bins, lanes_for, split_order, sums_of_column,
)
from ..lanes.functions cimport lane_column, node_struct, order_sides
from ..nodes cimport feature_split
from ..rows cimport MAX_BINS, EraRows, row_block
from ..threads cimport first_of, stop_of, thread_team, wait_for_team
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.dispatch cimport can_reach
from ..._criteria.ranking cimport suffices


cdef extern from *:
    """
    #if defined(__GNUC__)
    typedef unsigned char code_vector
        __attribute__((vector_size(16), aligned(1), may_alias));
    #define CODES_IF(condition) (code_vector)(condition)
    #else
    typedef unsigned char code_vector;
    #define CODES_IF(condition) -(condition)
    #endif
    static inline void span_codes(
        const code_vector *codes, code_vector *lowest, code_vector *highest)
    {
        for (size_t i = 0; i < 32 / sizeof(code_vector); i++) {
            lowest[i] ^= (lowest[i] ^ codes[i]) & CODES_IF(codes[i] < lowest[i]);
            highest[i] ^= (highest[i] ^ codes[i]) & CODES_IF(codes[i] > highest[i]);
        }
    }
    """
    void span_codes(
        const X_BINNED_DTYPE_C * codes,  # (COLUMNS,), of a row
        X_BINNED_DTYPE_C * lowest, X_BINNED_DTYPE_C * highest,  # IN and OUT
    ) noexcept nogil


cdef inline void list_splits(
    CandidateSplits splits, const criterion_struct * criterion,
    bint prunes,          # by the key
    thread_team team,
) noexcept nogil:
    """List splits of enough gain (see `suffices`); set their sums over eras to 0."""
    cdef:
        lane_column * column
        int n = 0, i, j
    if team.rank == 0:
        splits.n_to_cover = criterion.min_covered_eras
        if splits.looks_at_rows:
            splits.n_to_cover *= criterion.min_samples_per_era > 1
        splits.n_absent = splits.rows.n_eras - splits.rows.n_listed
        for i in range(splits.n_columns):
            column = &splits.columns[i]
            column.n_splits = 0
            column.largest_gain = -INFINITY
            for j in range(column.n_lanes if column.bundle != NULL else 0):
                splits.gains[column.first_lane + j] = -INFINITY
    if splits.looks_at_rows:
        n = splits.n_features // COLUMNS + 1
    for i in range(first_of(team, n), stop_of(team, n)):
        count_covering_eras(
            splits.rows, splits.row_codes + i * splits.tree.n_samples * COLUMNS,
            splits.changes + i * COLUMNS * MAX_BINS,
        )
    wait_for_team(team)
    n = splits.n_features
    for i in range(first_of(team, n), stop_of(team, n)):
        list_feature(splits, criterion, i)
    wait_for_team(team)
    if team.rank == 0:
        for i in range(splits.n_features):
            take_listed(splits, &splits.features[i])
        splits.list_columns(team.size if prunes else 0)
    wait_for_team(team)


cdef inline void take_listed(
    CandidateSplits splits, const feature_bins * feature
) noexcept nogil:
    """Raise the `largest_gain` of each column of a listed feature to at least the
    feature's. If the column is a bundle's, also set its number of splits and its sums
    by era.
    """
    cdef:
        const node_struct * node = splits.node
        lane_column * column
        int k
    for k in range(feature.n_orders if feature.is_listed else 0):
        column = &splits.columns[feature.orders[k].column]
        column.largest_gain = max(column.largest_gain, feature.largest_gain)
        if column.bundle != NULL:
            column.n_splits = column.bundle.n_splits
            column.by_era = NULL
            if node.by_era != NULL:
                column.by_era = node.by_era + column.bundle.first_lane * node.n_by_era


cdef inline bint has_listed_splits(
    const criterion_struct * criterion, const feature_bins * feature
) noexcept nogil:
    return (
        feature.is_active
        and feature.largest_gain > -INFINITY
        and suffices(criterion, feature.largest_gain)
    )


cdef inline void mark_features(
    CandidateSplits splits, const criterion_struct * criterion,
    uint8_t * is_listed,      # OUT, by `feature_idx`
) noexcept nogil:
    """Set `is_listed` for the features that have splits of enough gain."""
    cdef int i
    memset(is_listed, 0, splits.tree.n_features)
    for i in range(splits.n_features):
        is_listed[splits.features[i].feature_idx] = has_listed_splits(
            criterion, &splits.features[i]
        )


cdef inline void list_feature(
    CandidateSplits splits, const criterion_struct * criterion,
    int place,                # of the feature, among all
) noexcept nogil:
    """List a feature's splits of enough gain: give each a lane (a place in vectors)."""
    cdef:
        feature_bins * feature = &splits.features[place]  # IN and OUT
        bint has_masks = splits.columns[feature.orders[0].column].bundle != NULL
        int[MAX_BINS] n_covering
        order_sides sides
        split_order * order
        double largest_gain = -INFINITY
        bint looks_at_rows = splits.looks_at_rows
        int can_cover, n, k, i
    feature.is_listed = has_listed_splits(criterion, feature)
    if not feature.is_listed:
        return
    if feature.largest_gain == INFINITY:
        set_orders(splits, feature)
    for k in range(feature.n_orders):
        order = &feature.orders[k]
        looks_at_rows &= not (has_masks or feature.is_categorical or k > 0)
        can_cover = not looks_at_rows
        n = 0
        for i in range(order.order.n_splits if looks_at_rows else 0):
            n += splits.changes[place * MAX_BINS + i]
            n_covering[i] = n
            can_cover |= n >= criterion.min_covered_eras
        if not can_cover:
            continue
        largest_gain = max(largest_gain, gains_of_order(splits, feature, k, &sides))
        if has_masks:  # all splits have a lane, listed or not
            for i in range(sides.n_splits):
                if suffices(criterion, sides.gains[i]):
                    set_lane(splits, &sides, i, order.first_lane + sides.places[i])
        else:
            list_order(
                splits, criterion, &sides, n_covering if looks_at_rows else NULL,
                feature, order,
            )
    if feature.largest_gain == INFINITY:
        feature.largest_gain = largest_gain


cdef inline void list_order(
    CandidateSplits splits, const criterion_struct * criterion,
    const order_sides * sides,
    const int * n_covering,   # eras that may cover each split; NULL: not counted
    const feature_bins * feature, const split_order * order,
) noexcept nogil:
    """Give a lane (a place in vectors) to each listed split of an order of bins, and a
    group (see `group_codes`) to each code.
    """
    cdef:
        lane_column * column = &splits.columns[order.column]
        # As `suffices`, with one comparison a split, which the loop below waits for.
        double least = criterion.min_gain if criterion.min_gain > 0.0 else -INFINITY
        int n_splits = 0, i
    for i in range(sides.n_splits):
        if not sides.gains[i] > least:
            continue
        if i > 0 and sides.counts[i] == sides.counts[i - 1]:
            continue  # an empty bin repeats the split before
        if (
            n_covering == NULL
            or n_covering[sides.places[i]] >= criterion.min_covered_eras
        ):
            set_lane(splits, sides, i, order.first_lane + n_splits)
            n_splits += 1
    column.n_splits = n_splits
    column.n_lanes = lanes_for(n_splits)
    group_codes(
        splits, feature, order, splits.places + order.first_lane, n_splits,
        column.groups,
    )


cdef inline void count_covering_eras(
    EraRows rows,
    const X_BINNED_DTYPE_C * codes,  # (n_samples, COLUMNS), of some features
    int * changes,                   # OUT, (COLUMNS, MAX_BINS)
) noexcept nogil:
    """Set `changes` to how many more eras have rows on both sides of each split than on
    both sides of the split before. An era has rows on both sides of the splits between
    its lowest and highest code.
    """
    cdef:
        X_BINNED_DTYPE_C[COLUMNS] lowest, highest
        const row_block * block
        Py_ssize_t row
        int i, j
    memset(changes, 0, COLUMNS * MAX_BINS * sizeof(int))
    for i in range(rows.n_blocks):
        block = &rows.blocks[i]
        if i == 0 or block.era != rows.blocks[i - 1].era:
            memset(lowest, MAX_BINS - 1, COLUMNS)
            memset(highest, 0, COLUMNS)
        for j in range(block.start, block.stop):
            row = j if rows.sample_indices == NULL else rows.sample_indices[j]
            span_codes(codes + COLUMNS * row, lowest, highest)
        if i == rows.n_blocks - 1 or block.era != rows.blocks[i + 1].era:
            for j in range(COLUMNS):
                changes[j * MAX_BINS + lowest[j]] += 1
                changes[j * MAX_BINS + highest[j]] -= 1


cdef inline void group_codes(
    CandidateSplits splits, const feature_bins * feature, const split_order * order,
    const X_BINNED_DTYPE_C * places,  # (n_splits,), of some splits, ascending
    int n_splits, X_BINNED_DTYPE_C * groups,  # OUT, by code: see `lane_column`
) noexcept nogil:
    """Set each code's group, the index of the first split with the code on the left."""
    cdef:
        const X_BINNED_DTYPE_C * codes = order.order.codes
        int first = 0, i, j
    memset(groups, n_splits, MAX_BINS)  # on the right side of every split
    for i in range(n_splits):
        if order.order.is_in_turn:
            memset(groups + first, i, places[i] + 1 - first)
        else:
            for j in range(first, places[i] + 1):
                groups[codes[j]] = i
        first = places[i] + 1
    if feature.has_missing:  # the last of codes and of bins
        groups[splits.tree.missing_values_bin_idx] = groups[feature.n_codes - 1]
        if order.order.missing_go_to_left:
            groups[splits.tree.missing_values_bin_idx] = 0


cdef inline void set_lane(
    CandidateSplits splits, const order_sides * sides, int i, Py_ssize_t lane
) noexcept nogil:
    """Store the left side, gain and place of the i-th admissible split in a lane."""
    cdef:
        double * of_lane = splits.sides + lane
        Py_ssize_t n = splits.n_lanes
    of_lane[0] = sides.gradients[i]
    of_lane[n] = sides.hessians[i]
    of_lane[2 * n] = sides.counts[i]
    splits.gains[lane] = sides.gains[i]
    splits.places[lane] = sides.places[i]


cdef inline void keep_best(
    CandidateSplits splits, const criterion_struct * criterion, thread_team team
) noexcept nogil:
    """Prune all listed splits except those with the largest key."""
    cdef:
        feature_split best = rank_splits(splits, criterion, team)
        int n = splits.n_listed if best.found else 0
        int i
    for i in range(first_of(team, n), stop_of(team, n)):
        prune_column(
            splits, criterion, 0, best.rank.primary,
            &splits.columns[splits.listed[i]],
        )
    wait_for_team(team)
    if team.rank == 0:
        splits.list_columns(team.size)
    wait_for_team(team)


cdef inline void prune_column(
    CandidateSplits splits, const criterion_struct * criterion,
    int n_left,             # eras not yet added
    double min_key, lane_column * column,  # IN and OUT
) noexcept nogil:
    """Drop a column's splits for which `can_reach` is False. But drop none if they are
    fewer than a quarter of the splits, or if the column is a bundle's and any split can
    still win.
    """
    cdef:
        double * sums = sums_of_column(splits, column)
        const double * gains = splits.gains + column.first_lane
        X_BINNED_DTYPE_C[MAX_BINS] groups  # new ones, by former group
        bint[MAX_BINS] can_win
        criterion_struct own = criterion[0]  # a copy, so that compilers see no alias
        int n_splits = column.n_splits
        int n_lanes = column.n_lanes
        int n_eras = splits.node.eras.n_eras
        int n_kept = 0, i, lane
    for i in range(n_splits):
        can_win[i] = gains[i] > -INFINITY and can_reach(
            &own, sums + i, n_lanes, gains[i], n_eras, n_left, min_key
        )
        n_kept += can_win[i]
    if n_kept == 0:
        for i in range(n_splits):
            splits.gains[column.first_lane + i] = -INFINITY
        column.n_splits = 0
        return
    if column.bundle != NULL or n_kept > 3 * column.n_splits // 4:
        return
    n_kept = 0
    for i in range(column.n_splits):
        groups[i] = n_kept
        if can_win[i]:
            move_lane(splits, column, i, n_kept)
            n_kept += 1
    groups[column.n_splits] = n_kept
    for i in range(MAX_BINS):
        column.groups[i] = groups[min(<int> column.groups[i], column.n_splits)]
    assert 0 < n_kept < column.n_splits <= MAX_BINS, "splits of a column"
    column.n_splits = n_kept
    column.n_lanes = lanes_for(n_kept)
    for i in range(1, splits.n_fields):  # moves them together
        for lane in range(column.n_lanes):
            sums[i * column.n_lanes + lane] = sums[i * n_lanes + lane]


cdef inline void move_lane(
    CandidateSplits splits, const lane_column * column, int source, int target
) noexcept nogil:
    cdef:
        double * sums = sums_of_column(splits, column)
        Py_ssize_t a = column.first_lane + source
        Py_ssize_t b = column.first_lane + target
        int i
    splits.gains[b] = splits.gains[a]
    splits.places[b] = splits.places[a]
    for i in range(3):
        splits.sides[i * splits.n_lanes + b] = splits.sides[i * splits.n_lanes + a]
    for i in range(splits.n_fields):
        sums[i * column.n_lanes + target] = sums[i * column.n_lanes + source]
