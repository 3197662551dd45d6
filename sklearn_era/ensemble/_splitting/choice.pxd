# The choice among the splits of a node: by its gain, or by what the eras say.

from .candidates.best cimport best_by_gain, find_gains, rank_splits
from .candidates.splits cimport CandidateSplits
from .comparison cimport compare_splits
from .lanes.functions cimport node_struct
from .nodes cimport cost_of_feature, feature_split
from .._criteria.criterion cimport criterion_struct
from .._criteria.dispatch cimport GAIN
from .._criteria.ranking cimport (
    gain_alone, gain_beyond_rounding, penalty_unit, with_share_of,
)


cdef struct chosen_split:
    feature_split best   # if there is one
    bint is_splittable   # by its gain, at least
    bint is_uncovered    # is so, and no split covers enough eras


cdef inline chosen_split choose_split(
    CandidateSplits splits, const criterion_struct * criterion, const node_struct * node
) except *:
    """Choose among the splits of a node.

    With a `min_gain_share` that is the best of the splits that have this share of the
    largest gain; if the criterion admits none of them, the largest gain decides. Nodes
    wait in the queue by their gains, which is what the two have in common. Where
    features have penalties, it is the largest gain that is left of any, and so are
    these.
    """
    cdef:
        criterion_struct sharing
        chosen_split chosen
        feature_split largest
        double least = criterion.min_gain
        double unit
    chosen.is_splittable = chosen.is_uncovered = False
    if criterion.name == GAIN:
        least = gain_beyond_rounding(criterion, node.pooled.loss)
        chosen.best = largest_gain(splits, node, least, &unit)
        return chosen
    if criterion.min_gain_share == 0.0:
        chosen.best = best_by_eras(splits, criterion, node)
        chosen.is_splittable = chosen.best.found
        if not chosen.best.found:
            find_gains(splits, node)
            largest = best_by_gain(splits, node, least, 0.0)
            chosen.is_splittable = largest.found
            chosen.is_uncovered = largest.found and covers_too_few(
                splits, criterion, node
            )
        return chosen
    largest = largest_gain(splits, node, least, &unit)
    chosen.best = largest
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
    chosen.best.rank.expansion = chosen.best.rank.gain - cost_of_feature(
        splits.tree, chosen.best.feature_idx, unit
    )
    chosen.best.rank.secondary = 0.0
    return chosen


cdef inline feature_split largest_gain(
    CandidateSplits splits,
    const node_struct * node,
    double least,           # that a gain has to exceed
    double * unit,          # OUT, of what features cost: the largest gain of all
) noexcept:
    """The largest gain that is left when features have been paid for."""
    cdef feature_split largest
    find_gains(splits, node)
    largest = best_by_gain(splits, node, least, 0.0)
    if largest.found:
        unit[0] = largest.rank.gain
        if splits.tree.penalties != NULL:
            largest = best_by_gain(splits, node, least, unit[0])
    return largest


cdef inline feature_split best_by_eras(
    CandidateSplits splits, const criterion_struct * criterion, const node_struct * node
) except *:
    """The best of the splits whose gain suffices, when features have been paid for."""
    cdef:
        criterion_struct unit
        feature_split largest
    compare_splits(splits, criterion, node)
    if splits.tree.penalties == NULL:
        return rank_splits(splits, criterion, node)
    unit = penalty_unit(criterion)
    largest = rank_splits(splits, &unit, node)
    if not largest.found:
        return largest
    return rank_splits(splits, criterion, node, largest.rank.primary)


cdef inline bint covers_too_few(
    CandidateSplits splits, const criterion_struct * criterion, const node_struct * node
) noexcept:
    """Whether no split that is listed covers enough eras."""
    cdef criterion_struct covering = gain_alone(criterion, criterion.min_covered_eras)
    return not rank_splits(splits, &covering, node).found
