# Splits that cannot become the best one any more, with some eras still to be asked.

from libc.math cimport INFINITY

from sklearn.ensemble._hist_gradient_boosting.common cimport X_BINNED_DTYPE_C

from .best cimport rank_splits
from .split cimport feature_split
from .splits cimport CandidateSplits, lanes_for
from ..lanes.functions cimport lane_column, node_struct
from ..rows cimport MAX_BINS
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.dispatch cimport can_reach


cdef inline int keep_best(
    CandidateSplits splits,
    const criterion_struct * criterion,
    const node_struct * node,
    int n_absent,
    int n_threads,
) noexcept:
    """Keep the splits with the largest key; return the columns that have some."""
    cdef:
        feature_split best = rank_splits(
            splits, criterion, node, n_absent, 0.0, n_threads
        )
        int i
    for i in range(splits.n_listed):
        if best.found:
            prune_column(
                splits, criterion, node.eras.n_eras, 0, best.rank.primary,
                &splits.columns[splits.listed[i]],
            )
    splits.count_listed()
    return splits.n_listed


cdef inline void prune_column(
    CandidateSplits splits,
    const criterion_struct * criterion,
    int n_eras,             # of the criterion's key
    int n_left,             # eras that are still to be asked
    double least,           # key that a split has to reach
    lane_column * column,   # IN and OUT
) noexcept nogil:
    """Drop the splits whose key cannot reach another one's, or with too few eras.

    As long as they are few, to move the others costs more than they do.
    """
    cdef:
        const double * sums = splits.sums_of_column(column)
        const double * gains = splits.gains + column.first_lane
        X_BINNED_DTYPE_C[MAX_BINS] groups  # of splits, among those that are kept
        bint[MAX_BINS] can_win
        criterion_struct own = criterion[0]  # which no other memory is, to a compiler
        int n_splits = column.n_splits
        int n_lanes = column.n_lanes
        int n_kept = 0
        int i
    for i in range(n_splits):
        can_win[i] = gains[i] > -INFINITY and can_reach(
            &own, sums + i, n_lanes, gains[i], n_eras, n_left, least
        )
        n_kept += can_win[i]
    if n_kept == 0:
        end_column(splits, column)
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
    move_fields(splits, column, lanes_for(n_kept))


cdef inline void end_column(
    CandidateSplits splits, lane_column * column  # IN and OUT
) noexcept nogil:
    """Drop all splits of a column."""
    cdef int i
    for i in range(column.n_splits):
        splits.gains[column.first_lane + i] = -INFINITY
    column.n_splits = 0


cdef inline void move_lane(
    CandidateSplits splits, const lane_column * column, int source, int target
) noexcept nogil:
    """Move a split to another lane."""
    cdef:
        double * sums = splits.sums_of_column(column)
        Py_ssize_t a = column.first_lane + source
        Py_ssize_t b = column.first_lane + target
        int i
    splits.gains[b] = splits.gains[a]
    splits.places[b] = splits.places[a]
    for i in range(6):
        splits.sides[i * splits.n_lanes + b] = splits.sides[i * splits.n_lanes + a]
    for i in range(splits.n_fields):
        sums[i * column.n_lanes + target] = sums[i * column.n_lanes + source]


cdef inline void move_fields(
    CandidateSplits splits, lane_column * column, int n_lanes
) noexcept nogil:
    """Let fields have fewer lanes, one after the other."""
    cdef:
        double * sums = splits.sums_of_column(column)
        int i, lane
    for i in range(1, splits.n_fields):
        for lane in range(n_lanes):
            sums[i * n_lanes + lane] = sums[i * column.n_lanes + lane]
    column.n_lanes = n_lanes
