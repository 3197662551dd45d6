# Sums of eras on the left side of each split of a column, and directions of eras.

from libc.string cimport memset

from .functions cimport BATCH_CELLS, era_batch, era_visit, lane_column, run_up
from .masked_rows cimport add_masked_block, add_signs, sum_groups
from ..bundles cimport MAX_SPLIT_LANES
from ..fixed_points cimport (
    summed_values, take_right_gradients, sums_as_doubles, unpack, words_as_doubles,
)
from ..rows cimport MAX_BINS, packed_rows, row_block
from ..._criteria.formulas cimport LANES, lane_eras


cdef inline int sum_eras(
    const era_visit * visit, const lane_column * column, const row_block * blocks,
    int first,              # block
    int stop, era_batch * batch,  # OUT
) noexcept nogil:
    """Sum up as many eras as `batch` holds; return the first block after these eras."""
    cdef:
        lane_eras * lanes = &batch.lanes
        int most = min(LANES, BATCH_CELLS // column.n_lanes)
        int place = 0, last
        bint are_words = (
            visit.eras_are_blocks and visit.packed.n_words == 1
            and column.bundle == NULL
        )
    lanes.n_splits = column.n_splits
    lanes.n_lanes = column.n_lanes
    lanes.left.gradients = batch.gradients
    lanes.left.counts = batch.counts
    lanes.left.hessians = batch.counts
    lanes.left.right_gradients = NULL
    if visit.values.hessians != NULL or visit.values.has_low_words:
        lanes.left.hessians = batch.hessians
        lanes.left.right_gradients = batch.right_gradients
    lanes.n_eras = 0
    while first < stop and lanes.n_eras < most:
        last = first + 1
        while last < stop and blocks[last].era == blocks[first].era:
            last += 1
        lanes.codes[lanes.n_eras] = blocks[first].era
        if column.by_era != NULL:
            take_era(
                visit.values, column,
                column.by_era
                + blocks[first].era * (visit.packed.n_words + 1) * column.n_lanes,
                column.n_lanes, place, batch,
            )
        elif are_words:
            sum_left_sides(
                column, &visit.packed, visit.packed.words, &blocks[first],
                batch.cells + place,
            )
        else:
            sum_planes(visit, column, &blocks[first], last - first, batch)
            take_era(visit.values, column, batch.sums, MAX_BINS, place, batch)
        assert are_words or batch.counts[place + column.n_splits] == (
            blocks[last - 1].stop - blocks[first].start
        ), "rows of an era's lanes"
        lanes.n_eras += 1
        place += column.n_lanes
        first = last
    if are_words:
        words_as_doubles(
            batch.cells, place, visit.packed.count_bits, visit.unit_of_words,
            batch.gradients, batch.counts,
        )
    return first


cdef inline void sum_planes(
    const era_visit * visit, const lane_column * column,
    const row_block * blocks,  # of an era
    int n_blocks, era_batch * batch,  # OUT, its sums
) noexcept nogil:
    """Sum up an era on the left side of each split, one kind of sum after another."""
    cdef:
        const packed_rows * packed = &visit.packed
        long long * cells = batch.cells
        int n_groups = column.n_splits + 1
        int block, word, i
    for word in range(packed.n_words + 1):
        for i in range(column.n_lanes):
            batch.sums[word * MAX_BINS + i] = 0
    for block in range(n_blocks):
        if column.bundle != NULL:
            add_masked_block(
                column.bundle, packed, &blocks[block], cells, batch.sums, MAX_BINS
            )
            continue
        for word in range(packed.n_words):
            sum_left_sides(
                column, packed, packed.words + word * packed.n_packed, &blocks[block],
                cells,
            )
            unpack(cells, n_groups, word, packed.count_bits, batch.sums, MAX_BINS)


cdef inline long long sum_of_words(
    const long long * words, const row_block * block
) noexcept nogil:
    cdef:
        long long total = 0
        Py_ssize_t i
    for i in range(block.stop - block.start):
        total += words[block.first_word + i]
    return total


cdef inline void sum_left_sides(
    const lane_column * column, const packed_rows * packed,
    const long long * words,   # of a chunk
    const row_block * block,
    long long * left,          # OUT, (n_lanes,)
) noexcept nogil:
    """Sum up one word (packed values) of a block's rows on the left of each split."""
    cdef:
        const unsigned int * rows = packed.indices
        const long long * own = words + block.first_word - block.start
        Py_ssize_t i
    # By masks, left sides stay in registers. In memory, most rows would be added to one
    # of few groups, and wait for the row before.
    if column.n_lanes <= MAX_SPLIT_LANES:
        sum_groups(
            column.codes, rows, column.groups, own, block.start, block.stop,
            column.n_lanes, left,
        )
    else:
        memset(left, 0, column.n_lanes * sizeof(long long))
        for i in range(block.start, block.stop):
            left[column.groups[column.codes[i if rows == NULL else rows[i]]]] += own[i]
        run_up(left, 0, column.n_lanes, left)
    assert left[column.n_splits] == sum_of_words(words, block), "sum of a block"


cdef inline void take_era(
    const summed_values * values, const lane_column * column,
    const long long * sums,  # of the era, (n_planes, stride)
    Py_ssize_t stride,
    int place,               # of its lanes
    era_batch * batch,       # OUT, an era on the left side
) noexcept nogil:
    cdef bint are_counts = batch.lanes.left.right_gradients == NULL
    sums_as_doubles(
        values, sums, stride, column.n_lanes, &batch.gradients[place],
        NULL if are_counts else &batch.hessians[place], &batch.counts[place],
    )
    if not are_counts:
        take_right_gradients(
            values, sums, stride, column.n_splits, column.n_lanes,
            &batch.right_gradients[place],
        )


# If hessians are 1 and l2 is 0, one integer a row gives the directions of eras: v_L -
# v_R has the sign of G n_L - G_L n, which is the sum of G - n g over the rows of the
# left side. An era covers the splits from the group of its first row to that of its
# last; where there is room, a 1 below the integer counts the row, for masks.

cdef inline bint add_directions(
    const era_visit * visit, const lane_column * column,
    const row_block * block,   # an era
    long long * cells,         # scratch
    double * sums,             # IN and OUT, (2, n_lanes)
) noexcept nogil:
    """Add an era's direction for each split to `sums`, and return True. If a direction
    may be wrong by rounding, add nothing, and return False.
    """
    cdef:
        const unsigned int * rows = visit.packed.indices
        const long long * contrasts = (
            visit.packed.contrasts + block.first_word - block.start
        )
        long long doubt = block.doubt
        long long n_doubts = 0
        int lowest = MAX_BINS
        int highest = 0, group
        Py_ssize_t i
    memset(cells, 0, (column.n_splits + 1) * sizeof(long long))
    for i in range(block.start, block.stop):
        group = column.groups[column.codes[i if rows == NULL else rows[i]]]
        cells[group] += contrasts[i]
        lowest = min(lowest, group)
        highest = max(highest, group)
    run_up(cells + lowest, 0, highest - lowest, cells + lowest)
    assert highest <= column.n_splits, "groups of a column"
    assert highest == lowest or (
        cells[highest - 1] + cells[highest] >> visit.contrast_bits == 0
    ), "sum of an era"
    for i in range(lowest, highest):
        cells[i] >>= visit.contrast_bits
        n_doubts += (cells[i] != 0) & (cells[i] <= doubt) & (cells[i] >= -doubt)
    for i in range(lowest, highest if n_doubts == 0 else lowest):
        sums[i] += 1.0
        sums[column.n_lanes + i] += 1.0 if cells[i] > 0 else 0.0
        sums[column.n_lanes + i] -= 1.0 if cells[i] < 0 else 0.0
    return n_doubts == 0


cdef inline bint add_masked_directions(
    const era_visit * visit, const lane_column * column, const row_block * blocks,
    int n_eras, double * sums,  # IN and OUT, (2, n_lanes)
) noexcept nogil:
    """Add the directions of eras for each split to `sums`, by masks of the codes that
    go left, and return True. If a direction may be wrong by rounding, add nothing, and
    return False.
    """
    cdef:
        long long[3 * MAX_SPLIT_LANES] totals
        int n_lanes = column.n_lanes
        int i
    add_signs(
        column.codes if column.bundle == NULL else column.bundle.codes,
        visit.packed.indices, visit.packed.contrasts, blocks, n_eras,
        NULL if column.bundle == NULL else column.bundle.masks, column.groups,
        n_lanes, (1 << visit.contrast_bits) - 1, totals,
    )
    assert totals[column.n_splits] == totals[n_lanes + column.n_splits] == 0, "all rows"
    for i in range(column.n_splits):
        if totals[2 * n_lanes + i] != 0:
            return False
    for i in range(2 * n_lanes):
        sums[i] += totals[i]
    return True
