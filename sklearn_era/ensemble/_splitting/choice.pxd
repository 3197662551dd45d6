# The split of a node, by its gain or by the criterion's key. For the key, a thread adds
# the node's eras to the sums of a column, and drops splits that cannot become the best.

from cython.parallel cimport parallel
from libc.math cimport INFINITY, ldexp

from .._arrays cimport omp_get_num_threads, omp_get_thread_num

from .candidates.best cimport best_by_gain, find_gains, rank_splits
from .candidates.listing cimport keep_best, list_splits, prune_column
from .candidates.splits cimport (
    CONTRASTS, DIRECTIONS_FIRST, FIRST_COLUMNS, ROWS_LOOKED_AT, SHARES_OF_GAIN, THREADS,
    CandidateSplits, first_of, note_way, stop_of, sums_of_column,
    thread_team, wait_for_team,
)
from .lanes.functions cimport (
    batch_size, era_batch, era_visit, lane_column, node_struct,
)
from .nodes cimport chosen_split, feature_split, penalty_of_feature
from .rows cimport EraRows, row_block
from .._criteria.criterion cimport criterion_struct
from .._criteria.dispatch cimport DIRECTIONAL, GAIN
from .._criteria.ranking cimport (
    directions_alone, gain_alone, gain_beyond_rounding, keeps_directions_alone,
    penalty_unit, with_share_of,
)


cdef enum python_step:
    MAKE_ROOM, ASK_CRITERION, MERGE_SPLITS


cdef enum search_step:
    WHOLE_SEARCH
    GAINS_ALONE    # enough to queue a node, whose turn may never come
    ERAS_ALONE     # of the splits with a share of the largest gain


cdef inline int choose_split(
    CandidateSplits splits, const criterion_struct * criterion,
    const node_struct * node, search_step step, int n_threads,
    chosen_split * chosen  # OUT; see `search_node`
) except -1:
    """Set `chosen` to the split of a node; penalties of features are subtracted."""
    splits.n_taken[THREADS] += n_threads > 1
    if n_threads == 1:
        with nogil:
            search_node(splits, criterion, node, step, thread_team(0, 1), chosen)
    else:
        with nogil, parallel(num_threads=n_threads):
            search_node(
                splits, criterion, node, step,
                thread_team(omp_get_thread_num(), omp_get_num_threads()), chosen,
            )
    if splits.error is not None:
        error, splits.error = splits.error, None
        raise error
    return 0


cdef inline bint wants_to_look_at_rows(
    CandidateSplits splits, const criterion_struct * criterion, int n_rows, int n_listed
) noexcept nogil:
    """Return whether it pays to look at the rows, to prune splits that too few eras can
    cover: not if eras have so many rows that they span most splits.
    """
    return (
        splits.is_alone
        and criterion.name != GAIN
        and 2 * criterion.min_covered_eras > splits.rows.n_eras
        and n_rows < 256 * n_listed
        and not splits.bundles.all_have_masks
    )


cdef inline void look_at_rows(
    CandidateSplits splits, const criterion_struct * criterion
) noexcept nogil:
    """Set whether the search of a node looks at its rows."""
    splits.looks_at_rows = wants_to_look_at_rows(
        splits, criterion, splits.rows.n_rows, splits.rows.n_listed
    )
    note_way(splits, ROWS_LOOKED_AT, splits.looks_at_rows)


cdef inline void search_node(
    CandidateSplits splits, const criterion_struct * criterion,
    const node_struct * node, search_step step, thread_team team,
    chosen_split * result,  # OUT, and IN after GAINS_ALONE
) noexcept nogil:
    """Find the split of a node, and set `result`; all threads of the team call this.

    With a `min_gain_share`, nodes are split in the order of their gains, and a node
    without an admissible split of that share takes the split of the largest gain. So no
    priority is above the largest gain: GAINS_ALONE finds that, and ERAS_ALONE compares
    eras once the node may be the next.
    """
    cdef:
        chosen_split chosen
        feature_split largest
        double min_gain = criterion.min_gain
        double unit = 0.0
    chosen.is_splittable = chosen.is_uncovered = chosen.is_the_gains = False
    chosen.is_deferred = False
    if step == ERAS_ALONE:
        chosen.best = result.best
        chosen.is_splittable = True
        chosen.largest_gain = chosen.best.rank.gain
        wait_for_team(team)
        choose_by_share(splits, criterion, node, unit, team, &chosen)
    elif criterion.name == GAIN:
        min_gain = gain_beyond_rounding(criterion, node.pooled.loss)
        chosen.best = largest_gain(splits, node, min_gain, team, &unit)
    elif criterion.min_gain_share == 0.0:
        chosen.best = best_by_eras(splits, criterion, node, team)
        chosen.is_splittable = chosen.best.found
        if not chosen.best.found:
            find_gains(splits, node, team)
            largest = best_by_gain(splits, node, min_gain, 0.0)
            chosen.is_splittable = largest.found
            chosen.is_uncovered = largest.found and covers_too_few(
                splits, criterion, node, team
            )
    else:
        chosen.best = largest_gain(splits, node, min_gain, team, &unit)
        chosen.is_splittable = chosen.best.found
        chosen.is_deferred = chosen.best.found and step == GAINS_ALONE
        chosen.largest_gain = chosen.best.rank.gain
        if chosen.best.found and step == WHOLE_SEARCH:
            choose_by_share(splits, criterion, node, unit, team, &chosen)
    if criterion.name == GAIN or criterion.min_gain_share == 0.0:
        chosen.largest_gain = chosen.best.rank.gain
    if team.rank == 0:
        result[0] = chosen


cdef inline void choose_by_share(
    CandidateSplits splits, const criterion_struct * criterion,
    const node_struct * node, double unit, thread_team team,
    chosen_split * chosen,  # IN: the split of the largest gain; OUT
) noexcept nogil:
    """Choose the best split by the key among those with a share of the largest gain."""
    cdef:
        feature_split largest = chosen.best
        criterion_struct sharing = with_share_of(criterion, largest.rank.primary)
    if node.n_coverable < criterion.min_covered_eras:
        chosen.is_uncovered = True
    else:
        note_way(splits, SHARES_OF_GAIN, team.rank == 0)
        chosen.best = best_by_eras(splits, &sharing, node, team)
        if not chosen.best.found:
            chosen.best = largest
            chosen.is_uncovered = covers_too_few(splits, &sharing, node, team)
    chosen.is_the_gains = chosen.best.rank.gain == largest.rank.gain
    chosen.best.rank.priority = chosen.best.rank.gain - penalty_of_feature(
        splits.tree, chosen.best.feature_idx, unit
    )
    chosen.best.rank.secondary = 0.0


cdef inline feature_split largest_gain(
    CandidateSplits splits, const node_struct * node,
    double min_gain,           # exclusive
    thread_team team,
    double * unit,          # OUT: largest gain before penalties, their unit
) noexcept nogil:
    """Return the split with the largest gain after feature penalties."""
    cdef feature_split largest
    find_gains(splits, node, team)
    largest = best_by_gain(splits, node, min_gain, 0.0)
    if largest.found:
        unit[0] = largest.rank.gain
        if splits.tree.penalties != NULL:
            largest = best_by_gain(splits, node, min_gain, unit[0])
    return largest


cdef inline feature_split best_by_eras(
    CandidateSplits splits, const criterion_struct * criterion,
    const node_struct * node, thread_team team
) noexcept nogil:
    """Return the best split by the key after penalties, among splits of enough gain."""
    cdef:
        criterion_struct unit
        feature_split largest
    compare_splits(splits, criterion, node, team)
    if splits.tree.penalties == NULL:
        return rank_splits(splits, criterion, node, team)
    unit = penalty_unit(criterion)
    largest = rank_splits(splits, &unit, node, team)
    if largest.found:
        largest = rank_splits(splits, criterion, node, team, largest.rank.primary)
    return largest


cdef inline bint covers_too_few(
    CandidateSplits splits, const criterion_struct * criterion,
    const node_struct * node, thread_team team
) noexcept nogil:
    """Return whether all listed splits cover too few eras."""
    cdef criterion_struct covering = gain_alone(criterion, criterion.min_covered_eras)
    return not rank_splits(splits, &covering, node, team).found


cdef inline void compare_splits(
    CandidateSplits splits, const criterion_struct * criterion,
    const node_struct * node, thread_team team
) noexcept nogil:
    """List the splits of enough gain, and sum up the eras for each."""
    cdef:
        bint prunes = (
            splits.is_alone and splits.tree.penalties == NULL
            and not criterion.keeps_sides
        )
        criterion_struct by_direction
    list_splits(splits, criterion, node, prunes, team)
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
        compare_columns(splits, &by_direction, node, team)
        keep_best(splits, &by_direction, node, team)
    if criterion.keeps_sides:
        call_python(splits, MAKE_ROOM, criterion, node, team)
    compare_columns(splits, criterion, node, team)
    if criterion.keeps_sides:
        call_python(splits, ASK_CRITERION, criterion, node, team)
    if not splits.is_alone:
        call_python(splits, MERGE_SPLITS, criterion, node, team)


cdef inline void call_python(
    CandidateSplits splits, python_step step, const criterion_struct * criterion,
    const node_struct * node, thread_team team,
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
                    splits.ask_criterion(criterion, node)
                else:
                    splits.merge_splits(criterion)
            except BaseException as error:
                splits.error = error
                splits.n_listed = 0  # no column has room
    wait_for_team(team)


cdef inline void compare_columns(
    CandidateSplits splits, const criterion_struct * criterion,
    const node_struct * node, thread_team team
) noexcept nogil:
    """Sum up the eras for the listed columns; the best split of the first columns
    prunes the others.
    """
    cdef:
        feature_split best
        double min_key = -INFINITY
        int n_first = splits.n_first
    if n_first > 0:
        note_way(splits, FIRST_COLUMNS, team.rank == 0)
        visit_columns(splits, splits.rows, criterion, node, 0, n_first, min_key, team)
        best = rank_splits(splits, criterion, node, team, 0.0, True)
        if best.found:
            min_key = best.rank.primary
    visit_columns(
        splits, splits.rows, criterion, node, n_first, splits.n_listed, min_key, team
    )


cdef inline void visit_columns(
    CandidateSplits splits, EraRows rows, const criterion_struct * criterion,
    const node_struct * node,
    int first,        # among the listed columns
    int stop, double min_key, thread_team team,
) noexcept nogil:
    """Add the eras of the node to the sums of some columns, chunk by chunk."""
    cdef:
        era_visit visit
        era_batch * batch = <era_batch *> (splits.batches + team.rank * batch_size())
        row_block * block
        lane_column * column
        bint by_contrast
        bint packs  # else words are those of the columns before
        int n_bits, chunk, n_blocks, i
    visit.criterion = criterion
    visit.eras = &node.eras
    visit.values = rows.values_to_compare()
    n_bits = rows.count_bits_of_contrasts()
    visit.contrast_bits = n_bits
    visit.kept = &splits.kept[0] if criterion.keeps_sides else NULL
    visit.eras_are_blocks = rows.n_blocks == rows.n_listed
    by_contrast = (  # each row is one integer beside a count
        keeps_directions_alone(criterion)
        and visit.eras_are_blocks
        and visit.values.hessians == NULL
        and not visit.values.has_low_words
        and (n_bits > 0 or not splits.bundles.all_have_masks)
        and node.by_era == NULL
    )
    if by_contrast:
        note_way(splits, CONTRASTS, team.rank == 0)
    visit.packed = rows.packed(visit.values, by_contrast)
    visit.unit_of_words = ldexp(visit.values.unit, -visit.packed.count_bits)
    packs = node.by_era == NULL and (first == 0 or rows.n_chunks > 1)
    for chunk in range(rows.n_chunks):
        n_blocks = rows.chunks[chunk + packs] - rows.chunks[chunk]
        for i in range(first_of(team, n_blocks), stop_of(team, n_blocks)):
            block = &rows.blocks[rows.chunks[chunk] + i]
            rows.pack(visit.values, block.start, block.stop, block.first_word)
            if by_contrast:
                rows.pack_contrasts(visit.values, block, n_bits)
        if packs:
            wait_for_team(team)
        for i in range(first, stop):
            if i % team.size == team.rank:
                column = &splits.columns[splits.listed[i]]
                compare_column(splits, &visit, chunk, min_key, column, batch)
        if rows.n_chunks > 1:
            wait_for_team(team)


cdef inline void compare_column(
    CandidateSplits splits, const era_visit * visit, int chunk, double min_key,
    lane_column * column,   # IN and OUT
    era_batch * batch,      # scratch
) noexcept nogil:
    """Add the eras of a chunk to the sums of a column's splits; prune on the way."""
    cdef:
        const row_block * blocks = splits.rows.blocks
        int first = splits.rows.chunks[chunk]
        int last = splits.rows.chunks[chunk + 1]
        int stop, n_left
    while first < last and column.n_splits > 0:
        stop = last
        if splits.is_alone and visit.kept == NULL:
            n_left = splits.rows.n_listed - blocks[first].place
            if (
                visit.criterion.name != DIRECTIONAL
                or column.bundle != NULL
                or n_left + 0.5 <= max(min_key * visit.eras.n_eras, splits.n_to_cover)
            ):
                prune_column(
                    splits, visit.criterion, visit.eras.n_eras, n_left, min_key, column
                )
                if column.n_splits == 0:
                    return
            stop = min(last, first + eras_at_a_time(splits.rows, column, first))
            while stop < last and blocks[stop].era == blocks[stop - 1].era:
                stop += 1
        splits.functions.compare_eras(
            visit, column, &blocks[first], stop - first, sums_of_column(splits, column),
            batch,
        )
        first = stop


cdef inline int eras_at_a_time(
    EraRows rows, const lane_column * column, int n_before
) noexcept nogil:
    """Return how many eras to compare until pruning pays again."""
    cdef:
        double n_lanes = column.n_lanes
        double rows_of_era = <double> rows.n_rows / rows.n_listed
    # Roughly, in nanoseconds: pruning all lanes, over a third of an era's sums.
    return 1 + n_before // 8 + <int> (
        6.0 * (100.0 + 2.5 * n_lanes) / (rows_of_era + 1.5 * n_lanes)
    )
