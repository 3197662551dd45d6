# The rows of some eras, summed up on the left side of each split of a column.

from libc.math cimport ldexp
from libc.string cimport memset

from .functions cimport BATCH_CELLS, era_batch, lane_column, run_up
from .masked_rows cimport add_masked_block
from ..fixed_points cimport (
    MAX_PLANES, count_as_double, gradient_of_sums, hessian_of_sums, n_words_of,
    summed_values, unpack, word_as_double,
)
from ..rows cimport MAX_BINS, packed_rows, row_block
from ..._criteria.sides cimport LANES, lane_eras


cdef inline int sum_eras(
    const lane_column * column,
    const summed_values * values,
    const packed_rows * packed,
    const row_block * blocks,
    int first,              # block
    int stop,
    era_batch * batch,      # OUT
) noexcept nogil:
    """Sum up the next eras, as many as there is room for; return the block after."""
    cdef:
        lane_eras * lanes = &batch.lanes
        int most = min(LANES, BATCH_CELLS // column.n_lanes)
        int place = 0
        int last
    lanes.n_splits = column.n_splits
    lanes.n_lanes = column.n_lanes
    lanes.left.gradients = batch.gradients
    lanes.left.counts = batch.counts
    lanes.left.hessians = batch.counts
    lanes.left.right_gradients = NULL
    if values.hessians != NULL or values.has_low_words:
        lanes.left.hessians = batch.hessians
        lanes.left.right_gradients = batch.right_gradients
    lanes.n_eras = 0
    while first < stop and lanes.n_eras < most:
        last = first + 1
        while last < stop and blocks[last].era == blocks[first].era:
            last += 1
        lanes.codes[lanes.n_eras] = blocks[first].era
        if column.by_era != NULL:
            take_sums(
                values, column,
                column.by_era
                + blocks[first].era * (packed.n_words + 1) * column.n_lanes,
                column.n_lanes, place, batch,
            )
        elif column.bundle == NULL and packed.n_words == 1 and last == first + 1:
            sum_words(column, values, packed, &blocks[first], place, batch)
        else:
            sum_planes(column, packed, &blocks[first], last - first, batch)
            if values.has_low_words:
                take_low_sums(values, column, place, batch)
            else:
                take_sums(values, column, batch.sums, MAX_BINS, place, batch)
        assert batch.counts[place + column.n_splits] == (
            blocks[last - 1].stop - blocks[first].start
        ), "rows of an era's lanes"
        lanes.n_eras += 1
        place += column.n_lanes
        first = last
    return first


cdef inline void sum_words(
    const lane_column * column,
    const summed_values * values,
    const packed_rows * packed,
    const row_block * block,
    int place,              # of the era's lanes
    era_batch * batch,      # OUT
) noexcept nogil:
    """Sum up an era that is a block, of rows of one word, by groups of codes."""
    cdef:
        long long * cells = batch.cells
        double * counts = &batch.counts[place]
        double * gradients = &batch.gradients[place]
        long long one = 1
        long long mask = (one << packed.count_bits) - 1
        double unit = ldexp(values.unit, -packed.count_bits)
        int n_lanes = column.n_lanes
        int i
    memset(cells, 0, n_lanes * sizeof(long long))
    add_to_groups(column, packed, 0, block, cells)
    run_up(cells, 0, column.n_splits + 1, cells)
    assert cells[column.n_splits] == sum_of_words(packed, 0, block), "sum of an era"
    for i in range(n_lanes):
        counts[i] = count_as_double(cells[i] & mask)
        gradients[i] = unit * word_as_double(cells[i] & ~mask)


cdef inline void sum_planes(
    const lane_column * column,
    const packed_rows * packed,
    const row_block * blocks,  # of an era
    int n_blocks,
    era_batch * batch,         # OUT, its sums
) noexcept nogil:
    """Sum up an era by splits."""
    cdef:
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
            memset(cells, 0, n_groups * sizeof(long long))
            add_to_groups(column, packed, word, &blocks[block], cells)
            run_up(cells, 0, n_groups, cells)
            assert cells[column.n_splits] == sum_of_words(
                packed, word, &blocks[block]
            ), "sum of a block"
            unpack(
                cells, n_groups, word, packed.count_bits, batch.sums, MAX_BINS
            )


cdef inline long long sum_of_words(
    const packed_rows * packed, int word, const row_block * block
) noexcept nogil:
    """The sum of a word over the rows of a block."""
    cdef:
        const long long * words = packed.words + word * packed.n_packed
        long long total = 0
        Py_ssize_t i
    for i in range(block.stop - block.start):
        total += words[block.first_word + i]
    return total


cdef inline void add_to_groups(
    const lane_column * column,
    const packed_rows * packed,
    int word,
    const row_block * block,
    long long * cells,      # IN and OUT
) noexcept nogil:
    """Add a word of each row of a block to the group of its code."""
    cdef:
        const unsigned int * rows = packed.indices
        const long long * words = packed.words + word * packed.n_packed
        Py_ssize_t i
    words += block.first_word - block.start
    if rows == NULL:
        for i in range(block.start, block.stop):
            cells[column.groups[column.codes[i]]] += words[i]
    else:
        for i in range(block.start, block.stop):
            cells[column.groups[column.codes[rows[i]]]] += words[i]


cdef inline void take_sums(
    const summed_values * values,
    const lane_column * column,
    const long long * sums,  # of the era, (n_planes, stride)
    Py_ssize_t stride,
    int place,              # of the era's lanes
    era_batch * batch,      # OUT, an era on the left side
) noexcept nogil:
    """From integers to the left side of each split."""
    cdef:
        const long long * of_gradients = sums + stride
        const long long * of_hessians = of_gradients
        double * counts = &batch.counts[place]
        double * gradients = &batch.gradients[place]
        double * hessians = &batch.hessians[place]
        double * right = &batch.right_gradients[place]
        long long total
        int i
    for i in range(column.n_lanes):
        counts[i] = count_as_double(sums[i])
    if values.hessians == NULL:
        for i in range(column.n_lanes):
            gradients[i] = values.unit * word_as_double(of_gradients[i])
        return
    # Gradients may have more digits than a double: what cancels is integers.
    of_gradients += stride
    total = of_gradients[column.n_splits]
    for i in range(column.n_lanes):
        hessians[i] = values.hessian_unit * word_as_double(of_hessians[i])
        gradients[i] = values.unit * <double> of_gradients[i]
        right[i] = values.unit * <double> (total - of_gradients[i])


cdef inline void take_low_sums(
    const summed_values * values,
    const lane_column * column,
    int place,
    era_batch * batch,      # IN and OUT
) noexcept nogil:
    """As `take_sums`, where rows have low words."""
    cdef:
        long long[MAX_PLANES] right
        int n_planes = n_words_of(values) + 1
        int i, plane
    for i in range(column.n_lanes):
        for plane in range(n_planes):
            right[plane] = (
                batch.sums[plane * MAX_BINS + column.n_splits]
                - batch.sums[plane * MAX_BINS + i]
            )
        batch.counts[place + i] = <double> batch.sums[i]
        batch.hessians[place + i] = hessian_of_sums(values, &batch.sums[i], MAX_BINS)
        batch.gradients[place + i] = gradient_of_sums(values, &batch.sums[i], MAX_BINS)
        batch.right_gradients[place + i] = gradient_of_sums(values, right, 1)
