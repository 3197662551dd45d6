# The split of a node, by its gain or by the criterion's key.

from .candidates.best cimport best_by_gain, find_gains, rank_splits
from .candidates.splits cimport CandidateSplits
from .comparison cimport compare_splits
from .lanes.functions cimport node_struct
from .nodes cimport penalty_of_feature, feature_split
from .._criteria.criterion cimport criterion_struct
from .._criteria.dispatch cimport GAIN
from .._criteria.ranking cimport (
    gain_alone, gain_beyond_rounding, penalty_unit, with_share_of,
)


cdef struct chosen_split:
    feature_split best   # if there is one
    bint is_splittable   # by its gain
    bint is_uncovered    # splittable, but no split covers enough eras


cdef inline chosen_split choose_split(
    CandidateSplits splits, const criterion_struct * criterion, const node_struct * node
) except *:
    """Choose the split of a node; gains and keys are net of feature penalties.

    With a `min_gain_share`, the priority of nodes is the gain, and the split that of
    the largest gain if none with that share of it is admissible.
    """
    cdef:
        criterion_struct sharing
        chosen_split chosen
        feature_split largest
        double min_gain = criterion.min_gain
        double unit
    chosen.is_splittable = chosen.is_uncovered = False
    if criterion.name == GAIN:
        min_gain = gain_beyond_rounding(criterion, node.pooled.loss)
        chosen.best = largest_gain(splits, node, min_gain, &unit)
        return chosen
    if criterion.min_gain_share == 0.0:
        chosen.best = best_by_eras(splits, criterion, node)
        chosen.is_splittable = chosen.best.found
        if not chosen.best.found:
            find_gains(splits, node)
            largest = best_by_gain(splits, node, min_gain, 0.0)
            chosen.is_splittable = largest.found
            chosen.is_uncovered = largest.found and covers_too_few(
                splits, criterion, node
            )
        return chosen
    chosen.best = largest = largest_gain(splits, node, min_gain, &unit)
    chosen.is_splittable = largest.found
    if not largest.found:
        return chosen
    if node.n_coverable < criterion.min_covered_eras:
        chosen.is_uncovered = True
    else:
        sharing = with_share_of(criterion, largest.rank.primary)
        chosen.best = best_by_eras(splits, &sharing, node)
        if not chosen.best.found:
            chosen.best = largest
            chosen.is_uncovered = covers_too_few(splits, &sharing, node)
    chosen.best.rank.priority = chosen.best.rank.gain - penalty_of_feature(
        splits.tree, chosen.best.feature_idx, unit
    )
    chosen.best.rank.secondary = 0.0
    return chosen


cdef inline feature_split largest_gain(
    CandidateSplits splits, const node_struct * node,
    double min_gain,           # exclusive
    double * unit,          # OUT: largest gain before penalties, their unit
) noexcept:
    """Return the split of the largest gain after feature penalties."""
    cdef feature_split largest
    find_gains(splits, node)
    largest = best_by_gain(splits, node, min_gain, 0.0)
    if largest.found:
        unit[0] = largest.rank.gain
        if splits.tree.penalties != NULL:
            largest = best_by_gain(splits, node, min_gain, unit[0])
    return largest


cdef inline feature_split best_by_eras(
    CandidateSplits splits, const criterion_struct * criterion, const node_struct * node
) except *:
    """Return the best split by the key after penalties, among those of enough gain."""
    cdef:
        criterion_struct unit
        feature_split largest
    compare_splits(splits, criterion, node)
    if splits.tree.penalties == NULL:
        return rank_splits(splits, criterion, node)
    unit = penalty_unit(criterion)
    largest = rank_splits(splits, &unit, node)
    if largest.found:
        largest = rank_splits(splits, criterion, node, largest.rank.primary)
    return largest


cdef inline bint covers_too_few(
    CandidateSplits splits, const criterion_struct * criterion, const node_struct * node
) noexcept:
    """Return whether no listed split covers enough eras."""
    cdef criterion_struct covering = gain_alone(criterion, criterion.min_covered_eras)
    return not rank_splits(splits, &covering, node).found
