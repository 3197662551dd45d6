# The best split of a feature and of a node, by gain and by the criterion's key.

from libc.math cimport INFINITY

from .orders cimport set_left_categories, set_orders
from .splits cimport CandidateSplits, feature_bins, split_order, sums_of_column
from ..lanes.functions cimport lane_column, order_sides
from ..nodes cimport feature_split
from ..threads cimport first_of, stop_of, thread_team, wait_for_team
from ..ties cimport compare_ranks, is_better
from ..._criteria.criterion cimport criterion_struct, split_rank
from ..._criteria.dispatch cimport MAX_SUMS
from ..._criteria.formulas cimport eras_struct
from ..._criteria.penalties cimport penalise, penalty_of_feature
from ..._criteria.ranking cimport rank_split
from ..._criteria.split_sums cimport add_absent_eras, take_lane


cdef inline void find_gains(
    CandidateSplits splits, thread_team team
) noexcept nogil:
    """Set the largest gain of each active feature, by all threads of the team."""
    cdef:
        feature_bins * feature
        order_sides sides
        double largest
        int i, k
    for i in range(
        first_of(team, splits.n_features), stop_of(team, splits.n_features)
    ):
        feature = &splits.features[i]
        if not feature.is_active:
            continue
        set_orders(splits, feature)
        largest = -INFINITY
        for k in range(feature.n_orders):
            largest = max(largest, gains_of_order(splits, feature, k, &sides))
        feature.largest_gain = largest
    wait_for_team(team)


cdef inline feature_split best_by_gain(
    CandidateSplits splits,
    double min_gain,                 # exclusive
    double unit_of_penalties,        # see `penalty_of_feature`
) noexcept nogil:
    """Return the split whose gain, less the penalty of its feature, is the largest."""
    cdef:
        feature_bins * best = NULL
        feature_bins * feature
        double largest = 0.0, net
        feature_split split
        int i
    split.found = False
    for i in range(splits.n_features):
        feature = &splits.features[i]
        if not (feature.is_active and feature.largest_gain > min_gain):
            continue
        net = feature.largest_gain - penalty_of_feature(
            splits.tree.penalties, feature.feature_idx, unit_of_penalties
        )
        if net > largest or (
            best != NULL
            and net == largest
            and feature.largest_gain > best.largest_gain
        ):
            best = feature
            largest = net
    if best != NULL:
        split = find_best_split(splits, best)
        split.rank.primary = split.rank.priority = largest
    return split


cdef inline feature_split rank_splits(
    CandidateSplits splits, const criterion_struct * criterion, thread_team team,
    double unit_of_penalties=0.0,
    bint of_first=False,             # only the columns compared first
) noexcept nogil:
    """Wait for all threads to compare their splits; return the best listed split."""
    cdef:
        feature_bins * feature
        feature_split best
        int i
    wait_for_team(team)  # until all are compared
    for i in range(
        first_of(team, splits.n_features), stop_of(team, splits.n_features)
    ):
        rank_feature(
            splits, criterion, unit_of_penalties, of_first, &splits.features[i]
        )
    wait_for_team(team)
    best.found = False
    for i in range(splits.n_features):
        feature = &splits.features[i]
        if is_better(&feature.best, &best):
            best = feature.best
    return best


cdef inline double gains_of_order(
    CandidateSplits splits, const feature_bins * feature,
    int k,                    # order
    order_sides * sides,      # OUT
) noexcept nogil:
    """Set the gains of the splits in one order; return the largest gain."""
    return splits.functions.find_gains(
        feature.first_bin, feature.n_codes, &feature.orders[k].order,
        splits.tree.monotonic_cst[feature.feature_idx], splits.tree, splits.node,
        sides,
    )


cdef inline feature_split find_best_split(
    CandidateSplits splits, const feature_bins * feature
) noexcept nogil:
    """Return a feature's split with the largest gain."""
    cdef:
        order_sides sides
        feature_split best, split
        int i, k
    best.found = False
    for k in range(feature.n_orders):
        gains_of_order(splits, feature, k, &sides)
        for i in range(sides.n_splits):
            if sides.gains[i] != feature.largest_gain:
                continue
            split = make_split(
                splits, feature, k, sides.places[i], sides.gains[i],
                sides.counts[i], sides.gradients[i], sides.hessians[i],
            )
            if is_better(&split, &best):
                best = split
            break
    return best


cdef inline feature_split make_split(
    CandidateSplits splits, const feature_bins * feature,
    int k,                    # order
    int place,                # among its splits
    double gain, double n_left, double sum_gradients_left, double sum_hessians_left,
) noexcept nogil:
    """Return the split at `place` in the `k`-th order, with its gain as the key."""
    cdef:
        feature_split split
        const split_order * order = &feature.orders[k]
        int feature_idx = feature.feature_idx
    split.found = True
    split.rank.primary = split.rank.gain = split.rank.priority = gain
    split.rank.secondary = 0.0
    split.feature_idx = feature_idx
    split.bin_idx = place
    split.missing_go_to_left = order.order.missing_go_to_left
    split.is_categorical = feature.is_categorical
    split.n_samples_left = <unsigned int> n_left
    split.sum_gradients_left = sum_gradients_left
    split.sum_hessians_left = sum_hessians_left
    if feature.is_categorical:
        split.bin_idx = 0
        split.missing_go_to_left = set_left_categories(
            split.left_cat_bitset, order.order.codes, place + 1,
            splits.tree.n_bins_non_missing[feature_idx],
            splits.tree.missing_values_bin_idx if feature.has_missing else -1,
        )
    return split


cdef inline void rank_feature(
    CandidateSplits splits, const criterion_struct * criterion,
    double unit_of_penalties, bint of_first,
    feature_bins * feature,   # IN; OUT: its best split
) noexcept nogil:
    """Set `feature.best` to the best of the feature's listed splits, if it has any."""
    cdef:
        double penalty = penalty_of_feature(
            splits.tree.penalties, feature.feature_idx, unit_of_penalties
        )
        const eras_struct * eras = &splits.node.eras
        const split_order * order
        const lane_column * column
        const double * side
        feature_split split
        split_rank rank
        double[MAX_SUMS] sums
        Py_ssize_t lane
        int n_lanes, k
    feature.best.found = False
    for k in range(feature.n_orders if feature.is_listed else 0):
        order = &feature.orders[k]
        column = &splits.columns[order.column]
        if of_first and not column.is_first:
            continue
        n_lanes = order.order.n_splits if column.bundle != NULL else column.n_splits
        for lane in range(order.first_lane, order.first_lane + n_lanes):
            if splits.gains[lane] == -INFINITY:
                continue
            take_lane(
                criterion, sums_of_column(splits, column), column.n_lanes,
                lane - column.first_lane, sums,
            )
            add_absent_eras(criterion, splits.n_absent, sums)
            assert 0.0 <= sums[0] <= eras.n_eras, "eras that a split covers"
            if not rank_split(criterion, eras, sums, splits.gains[lane], &rank):
                continue
            if penalty > 0.0 and not penalise(criterion, penalty, &rank):
                continue
            if feature.best.found and compare_ranks(&rank, &feature.best.rank) < 0:
                continue
            side = splits.sides + lane
            split = make_split(
                splits, feature, k, splits.places[lane], rank.gain,
                side[2 * splits.n_lanes], side[0], side[splits.n_lanes],
            )
            split.rank = rank
            if is_better(&split, &feature.best):
                feature.best = split
