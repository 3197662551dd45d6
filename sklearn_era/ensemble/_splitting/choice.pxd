# The split of a node, by its gain or by the criterion's key.

from cython.parallel cimport parallel
from libc.math cimport INFINITY

from .._arrays cimport omp_get_num_threads, omp_get_thread_num

from .candidates.best cimport best_by_gain, find_gains, rank_splits
from .candidates.listing cimport keep_best, list_splits
from .candidates.splits cimport (
    DIRECTIONS_FIRST, FIRST_COLUMNS, SHARES_OF_GAIN, THREADS, CandidateSplits, note_way,
)
from .nodes cimport feature_split, node_choice
from .threads cimport thread_team, wait_for_team
from .visits cimport visit_columns
from .._criteria.criterion cimport criterion_struct
from .._criteria.dispatch cimport DIRECTIONAL, GAIN
from .._criteria.penalties cimport criterion_of_unit, penalty_of_feature
from .._criteria.ranking cimport (
    directions_alone, gain_alone, gain_beyond_rounding, with_share_of,
)


cdef enum python_step:
    MAKE_ROOM, ASK_CRITERION, MERGE_SPLITS


cdef enum search_step:
    WHOLE_SEARCH
    GAINS_ALONE    # enough to queue a node, whose turn may never come
    ERAS_ALONE     # of the splits with a share of the largest gain


cdef inline int choose_split(
    CandidateSplits splits, const criterion_struct * criterion, search_step step,
    int n_threads, node_choice * choice  # IN and OUT; see `search_node`
) except -1:
    """Choose a node's split, by all threads; raise the error of a Python criterion."""
    splits.n_taken[THREADS] += n_threads > 1
    if n_threads == 1:
        with nogil:
            search_node(splits, criterion, step, thread_team(0, 1), choice)
    else:
        with nogil, parallel(num_threads=n_threads):
            search_node(
                splits, criterion, step,
                thread_team(omp_get_thread_num(), omp_get_num_threads()), choice,
            )
    if splits.error is not None:
        error, splits.error = splits.error, None
        raise error
    return 0


cdef inline bint wants_to_look_at_rows(
    CandidateSplits splits, const criterion_struct * criterion, int n_rows, int n_listed
) noexcept nogil:
    """Return whether to look at the rows, to find and drop splits that too few eras can
    cover. This does not pay if eras have so many rows that their rows are on both sides
    of most splits.
    """
    return (
        splits.is_alone
        and criterion.name != GAIN
        and 2 * criterion.min_covered_eras > splits.rows.n_eras
        and n_rows < 256 * n_listed
        and not splits.bundles.all_have_masks
    )


cdef inline void search_node(
    CandidateSplits splits, const criterion_struct * criterion, search_step step,
    thread_team team,
    node_choice * result,  # OUT, and IN after GAINS_ALONE
) noexcept nogil:
    """Find the split of a node, and set `result`; all threads of the team call this.

    The step GAINS_ALONE finds the largest gain only; ERAS_ALONE compares eras, once the
    node may be the next to be split; WHOLE_SEARCH does both. With a `min_gain_share`,
    nodes are split in the order of their splits' gains. A node without an admissible
    split of this share takes the split of its largest gain, so the largest gain bounds
    the node's place in the queue.
    """
    cdef:
        node_choice choice
        bint has_share = criterion.min_gain_share > 0.0  # not with GAIN
        double min_gain = criterion.min_gain
        double unit = 0.0
    choice.is_uncovered = choice.is_the_gains = False
    if step == ERAS_ALONE:
        choice.split = result.split
        wait_for_team(team)
    elif has_share or criterion.name == GAIN:
        if not has_share:
            min_gain = gain_beyond_rounding(criterion, splits.node.pooled.loss)
        choice.split = split_of_largest_gain(splits, min_gain, team, &unit)
    else:
        choice.split = best_by_eras(splits, criterion, team)
    choice.is_splittable = choice.split.found and criterion.name != GAIN
    choice.is_deferred = choice.split.found and step == GAINS_ALONE
    choice.largest_gain = choice.split.rank.gain
    if choice.split.found:
        if has_share and step != GAINS_ALONE:
            choose_by_share(splits, criterion, unit, team, &choice)
    elif criterion.name != GAIN and not has_share:
        find_gains(splits, team)
        choice.is_splittable = best_by_gain(splits, min_gain, 0.0).found
        choice.is_uncovered = choice.is_splittable and covers_too_few(
            splits, criterion, team
        )
    if team.rank == 0:
        result[0] = choice


cdef inline void choose_by_share(
    CandidateSplits splits, const criterion_struct * criterion, double unit,
    thread_team team,
    node_choice * choice,  # IN: the split of the largest gain; OUT
) noexcept nogil:
    """Choose the best split by the criterion's key among splits with `min_gain_share`
    of the largest gain; if none is admissible, keep the split of the largest gain.
    """
    cdef:
        feature_split largest = choice.split
        criterion_struct sharing = with_share_of(criterion, largest.rank.primary)
    if splits.node.n_coverable < criterion.min_covered_eras:
        choice.is_uncovered = True
    else:
        note_way(splits, SHARES_OF_GAIN, team.rank == 0)
        choice.split = best_by_eras(splits, &sharing, team)
        if not choice.split.found:
            choice.split = largest
            choice.is_uncovered = covers_too_few(splits, &sharing, team)
    choice.is_the_gains = choice.split.rank.gain == largest.rank.gain
    choice.split.rank.priority = choice.split.rank.gain - penalty_of_feature(
        splits.tree.penalties, choice.split.feature_idx, unit
    )
    choice.split.rank.secondary = 0.0


cdef inline feature_split split_of_largest_gain(
    CandidateSplits splits,
    double min_gain,        # exclusive
    thread_team team,
    double * unit,          # OUT: largest gain before penalties, their unit
) noexcept nogil:
    """Return the split with the largest gain after feature penalties."""
    cdef feature_split largest
    find_gains(splits, team)
    largest = best_by_gain(splits, min_gain, 0.0)
    if largest.found:
        unit[0] = largest.rank.gain
        if splits.tree.penalties != NULL:
            largest = best_by_gain(splits, min_gain, unit[0])
    return largest


cdef inline feature_split best_by_eras(
    CandidateSplits splits, const criterion_struct * criterion, thread_team team
) noexcept nogil:
    """Return the split of the best key, less penalties, among splits of enough gain."""
    cdef:
        criterion_struct of_unit
        feature_split largest
    compare_splits(splits, criterion, team)
    if splits.tree.penalties == NULL:
        return rank_splits(splits, criterion, team)
    of_unit = criterion_of_unit(criterion)
    largest = rank_splits(splits, &of_unit, team)
    if largest.found:
        largest = rank_splits(splits, criterion, team, largest.rank.primary)
    return largest


cdef inline bint covers_too_few(
    CandidateSplits splits, const criterion_struct * criterion, thread_team team
) noexcept nogil:
    """Return whether no listed split has enough eras with enough rows on both sides."""
    cdef criterion_struct covering = gain_alone(criterion, criterion.min_covered_eras)
    return not rank_splits(splits, &covering, team).found


cdef inline void compare_splits(
    CandidateSplits splits, const criterion_struct * criterion, thread_team team
) noexcept nogil:
    """List the splits of enough gain, and sum up the eras for each listed split."""
    cdef:
        bint prunes = (
            splits.is_alone and splits.tree.penalties == NULL
            and not criterion.keeps_sides
        )
        criterion_struct by_direction
    list_splits(splits, criterion, prunes, team)
    # The eras' gains only break ties of directions: without l2, a split with a
    # direction in any era has a gain.
    if (
        splits.n_first > 0
        and criterion.name == DIRECTIONAL
        and criterion.boltzmann_alpha == 0.0
        and criterion.l2_regularization == 0.0
    ):
        note_way(splits, DIRECTIONS_FIRST, team.rank == 0)
        by_direction = directions_alone(criterion)
        compare_columns(splits, &by_direction, team)
        keep_best(splits, &by_direction, team)
    if criterion.keeps_sides:
        call_python(splits, MAKE_ROOM, criterion, team)
    compare_columns(splits, criterion, team)
    if criterion.keeps_sides:
        call_python(splits, ASK_CRITERION, criterion, team)
    if not splits.is_alone:
        call_python(splits, MERGE_SPLITS, criterion, team)


cdef inline void call_python(
    CandidateSplits splits, python_step step, const criterion_struct * criterion,
    thread_team team,
) noexcept nogil:
    """Let the first thread do a step that needs Python, while the others wait. Keep an
    error in `splits.error` until threads have ended.
    """
    wait_for_team(team)
    if team.rank == 0:
        with gil:
            try:
                if step == MAKE_ROOM:
                    splits.make_room()
                elif step == ASK_CRITERION:
                    splits.ask_criterion(criterion)
                else:
                    splits.merge_splits(criterion)
            except BaseException as error:
                splits.error = error
                splits.n_listed = 0  # no column has room
    wait_for_team(team)


cdef inline void compare_columns(
    CandidateSplits splits, const criterion_struct * criterion, thread_team team
) noexcept nogil:
    """Sum up the eras for the splits of listed columns; a column is splits that share a
    pass over rows. The best key in the first columns prunes splits of later columns.
    """
    cdef:
        feature_split best
        double min_key = -INFINITY
        int n_first = splits.n_first
    if n_first > 0:
        note_way(splits, FIRST_COLUMNS, team.rank == 0)
        visit_columns(splits, splits.rows, criterion, 0, n_first, min_key, team)
        best = rank_splits(splits, criterion, team, 0.0, True)
        if best.found:
            min_key = best.rank.primary
    visit_columns(
        splits, splits.rows, criterion, n_first, splits.n_listed, min_key, team
    )
