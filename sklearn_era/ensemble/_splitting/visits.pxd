# The sums over eras of the splits of listed columns, which threads take one by one.

from libc.math cimport ldexp

from .candidates.listing cimport prune_column
from .candidates.splits cimport (
    CONTRASTS, CandidateSplits, column_queue, note_way, sums_of_column,
)
from .lanes.functions cimport (
    batch_size, era_batch, era_visit, lane_column, node_struct,
)
from .rows cimport EraRows, row_block
from .threads cimport (
    count_one, counter, first_of, pause, read_count, set_count, stop_of,
    thread_team, wait_for_team,
)
from .._criteria.criterion cimport criterion_struct
from .._criteria.dispatch cimport DIRECTIONAL
from .._criteria.ranking cimport keeps_directions_alone


cdef inline void visit_columns(
    CandidateSplits splits, EraRows rows, const criterion_struct * criterion,
    int first,        # among the listed columns
    int stop, double min_key, thread_team team,
) noexcept nogil:
    """Add the node's eras to the sums over eras of the splits in some listed columns,
    one chunk of rows after another.
    """
    cdef:
        const node_struct * node = splits.node
        era_visit visit
        era_batch * batch = <era_batch *> (splits.batches + team.rank * batch_size())
        row_block * block
        bint by_contrast
        bint packs  # else words are those of the columns before
        int n_bits, chunk, n_blocks, i
        int n_pauses
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
        if team.rank == 0:
            splits.queue.visit = &visit
            splits.queue.chunk = chunk
            splits.queue.min_key = min_key
            set_count(&splits.queue.n_compared, 0)
            set_count(&splits.queue.next, (<counter> stop << 32) + first)
        wait_for_team(team)
        compare_next(splits, batch)
        n_pauses = 0
        while team.rank == 0 and read_count(&splits.queue.n_compared) < stop - first:
            pause(n_pauses)
            n_pauses += 1
        if rows.n_chunks > 1:
            wait_for_team(team)


cdef inline bint compare_next(
    CandidateSplits splits,
    era_batch * batch,      # scratch of the calling thread
) noexcept nogil:
    """Take columns from the queue of `splits`, which may be another thread's, and
    compare their splits by era, until no column is left; return whether any was taken.
    """
    cdef:
        column_queue * queue = &splits.queue
        counter ends = (<counter> 1 << 32) - 1
        counter next = read_count(&queue.next)
        bint were_any = False
    while next & ends < next >> 32:
        next = count_one(&queue.next)
        if next & ends >= next >> 32:
            break
        were_any = True
        compare_column(
            splits, queue.visit, queue.chunk, queue.min_key,
            &splits.columns[splits.listed[next & ends]], batch,
        )
        count_one(&queue.n_compared)
    return were_any


cdef inline void compare_column(
    CandidateSplits splits, const era_visit * visit, int chunk, double min_key,
    lane_column * column,   # IN and OUT
    era_batch * batch,      # scratch
) noexcept nogil:
    """Add a chunk's eras to a column's sums; drop splits that can no longer win."""
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
                prune_column(splits, visit.criterion, n_left, min_key, column)
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
    """Return how many eras to compare before pruning splits again, which costs time."""
    cdef:
        double n_lanes = column.n_lanes
        double rows_of_era = <double> rows.n_rows / rows.n_listed
    # Roughly, in nanoseconds: pruning all lanes, over a third of an era's sums.
    return 1 + n_before // 8 + <int> (
        6.0 * (100.0 + 2.5 * n_lanes) / (rows_of_era + 1.5 * n_lanes)
    )
