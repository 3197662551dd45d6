"""Histograms of an era's rows by the bins of a bundle of features.

Of the kernel of histograms, this alone looks at the rows and at the columns of the
binned data.
"""

from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    G_H_DTYPE_C, X_BINNED_DTYPE_C,
)

from ..._criteria.split_sums cimport LANES

cdef enum:
    WORDS_OF_BINS = 4  # of 64 bits, one for each of MAX_BINS


cdef void sum_era(
    const tree_data * tree,
    const bundle_struct * bundle,
    EraRows rows,
    const row_block * blocks,
    int n_blocks,
    histogram_scratch * scratch,
    bin_sums * sums,          # OUT
) noexcept nogil:
    """Sum up the blocks of an era by bin, for all features of a bundle."""
    cdef int i
    clear_bins(bundle, sums)
    for i in range(n_blocks):
        add_block(tree, bundle, rows, &blocks[i], scratch, sums)


cdef void clear_bins(
    const bundle_struct * bundle,
    bin_sums * sums,  # OUT
) noexcept nogil:
    """No rows."""
    memset(sums.counts, 0, bundle.n_bins * sizeof(int))
    if sums.integers != NULL:
        memset(sums.integers, 0, bundle.n_bins * sizeof(long long))
    else:
        memset(sums.gradients, 0, bundle.n_bins * sizeof(double))
        memset(sums.hessians, 0, bundle.n_bins * sizeof(double))
    if sums.plain != NULL:
        memset(sums.plain, 0, bundle.n_bins * sizeof(long long))


cdef void add_bins(
    const bundle_struct * bundle,
    const bin_sums * others,
    bin_sums * sums,  # IN and OUT
) noexcept nogil:
    """Add sums of integers to others."""
    cdef int i
    for i in range(bundle.n_bins):
        sums.integers[i] += others.integers[i]
        sums.counts[i] += others.counts[i]
    if sums.plain != NULL:
        for i in range(bundle.n_bins):
            sums.plain[i] += others.plain[i]


cdef void add_block(
    const tree_data * tree,
    const bundle_struct * bundle,
    EraRows rows,
    const row_block * block,
    histogram_scratch * scratch,
    bin_sums * sums,          # IN and OUT
) noexcept nogil:
    """Add a block feature by feature."""
    cdef:
        int missing = tree.missing_values_bin_idx
        const X_BINNED_DTYPE_C * column
        int first_bin = 0
        int n_bins, i, j
    for j in range(bundle.n_members):
        column = tree.X_binned + bundle.members[j] * tree.n_samples
        n_bins = tree.n_bins_non_missing[bundle.members[j]]
        if sums.integers != NULL:
            add_words_by_code(
                column, rows, block, words_of(rows, block), n_bins, missing,
                bundle.n_codes[j], scratch.words,
            )
            unpack_words(
                scratch.words, bundle.n_codes[j], rows.count_bits,
                sums.integers + first_bin, sums.counts + first_bin,
            )
            if sums.plain != NULL:
                add_words_by_code(
                    column, rows, block, plain_words_of(rows, block), n_bins, missing,
                    bundle.n_codes[j], scratch.words,
                )
                for i in range(bundle.n_codes[j]):
                    sums.plain[first_bin + i] += scratch.words[i]
        else:
            memset(scratch.cells, 0, n_bins * sizeof(cell_sums))
            memset(&scratch.cells[missing], 0, sizeof(cell_sums))
            add_pairs(column, rows, block, scratch.cells)
            if bundle.n_codes[j] > n_bins:
                scratch.cells[n_bins] = scratch.cells[missing]
            add_cells(scratch.cells, bundle.n_codes[j], first_bin, sums)
        first_bin += bundle.n_codes[j]


cdef void add_words_to_lanes(
    const tree_data * tree,
    const bundle_struct * bundle,
    EraRows rows,
    const row_block * first,  # block, of those of a chunk
    int stop,                 # after the last row
    long long * words,        # IN and OUT, shape (n_bins, LANES)
    long long * plain,        # same, if rows have plain words
) noexcept nogil:
    """Add the words of rows, each to the lane of its era, for all features of a bundle.

    What `sum_era` does for one era after another. Eras of few rows are done sooner
    without an end of a loop for each of them.
    """
    cdef:
        const unsigned int * indices = rows.sample_indices
        const long long * of_rows = words_of(rows, first)
        const long long * plain_of_rows = NULL
        const unsigned char * lanes = &rows.lanes[0] + first.first_word - first.start
        const X_BINNED_DTYPE_C * column
        int last_code
        int i, j, code
    if rows.has_plain_words():
        plain_of_rows = plain_words_of(rows, first)
    for j in range(bundle.n_members):
        column = tree.X_binned + bundle.members[j] * tree.n_samples
        last_code = bundle.n_codes[j] - 1
        if bundle.n_codes[j] > <int> tree.n_bins_non_missing[bundle.members[j]]:
            for i in range(first.start, stop):  # missing ones are the last of the codes
                code = column[i if indices == NULL else indices[i]]
                code = min(code, last_code)
                words[code * LANES + lanes[i]] += of_rows[i]
        elif indices == NULL:
            for i in range(first.start, stop):
                words[column[i] * LANES + lanes[i]] += of_rows[i]
        else:
            for i in range(first.start, stop):
                words[column[indices[i]] * LANES + lanes[i]] += of_rows[i]
        if plain_of_rows != NULL:
            for i in range(first.start, stop):
                code = column[i if indices == NULL else indices[i]]
                code = min(code, last_code)
                plain[code * LANES + lanes[i]] += plain_of_rows[i]
            plain += bundle.n_codes[j] * LANES
        words += bundle.n_codes[j] * LANES


cdef inline const long long * words_of(
    EraRows rows, const row_block * block
) noexcept nogil:
    """The word of each row, to be counted from the node's first one."""
    return &rows.words[0] + block.first_word - block.start


cdef inline const long long * plain_words_of(
    EraRows rows, const row_block * block
) noexcept nogil:
    return &rows.plain_words[0] + block.first_word - block.start


cdef inline void add_words_by_code(
    const X_BINNED_DTYPE_C * column,
    EraRows rows,
    const row_block * block,
    const long long * words,
    int n_bins,
    int missing,           # bin
    int n_codes,
    long long * cells,     # OUT, (n_codes,)
) noexcept nogil:
    """Sums of the words of a block by code; that of missing values is the last."""
    memset(cells, 0, n_bins * sizeof(long long))
    cells[missing] = 0
    add_words(column, rows, block, words, cells)
    if n_codes > n_bins:
        cells[n_bins] = cells[missing]


cdef inline void add_words(
    const X_BINNED_DTYPE_C * codes,
    EraRows rows,
    const row_block * block,
    const long long * words,
    long long * cells,  # IN and OUT
) noexcept nogil:
    """Add each row of a block to its code's cell: where a fit spends its time."""
    cdef:
        const unsigned int * indices = rows.sample_indices
        int start = block.start
        int stop = block.stop
        int i
    if indices == NULL:
        for i in range(start, stop):
            cells[codes[i]] += words[i]
    else:
        for i in range(start, stop):
            cells[codes[indices[i]]] += words[i]


cdef inline const G_H_DTYPE_C * pairs_of(
    EraRows rows, const row_block * block
) noexcept nogil:
    """Gradient and hessian of each row, to be counted from the node's first one."""
    return <const G_H_DTYPE_C *> words_of(rows, block)


cdef inline void add_pairs(
    const X_BINNED_DTYPE_C * codes,
    EraRows rows,
    const row_block * block,
    cell_sums * cells,  # IN and OUT
) noexcept nogil:
    """As `add_words`, for gradients and hessians."""
    cdef:
        const unsigned int * indices = rows.sample_indices
        const G_H_DTYPE_C * pairs = pairs_of(rows, block)
        cell_sums * cell
        Py_ssize_t i
    for i in range(block.start, block.stop):
        cell = &cells[codes[i if indices == NULL else indices[i]]]
        cell.gradients += pairs[2 * i]
        cell.hessians += pairs[2 * i + 1]
        cell.count += 1


cdef inline void unpack_words(
    const long long * words,
    int n_words,
    int count_bits,
    long long * integers,  # IN and OUT
    int * counts,          # IN and OUT
) noexcept nogil:
    """Add words, unpacked: the count is in the low bits, the sum of integers above."""
    cdef:
        long long one = 1
        long long mask = (one << count_bits) - 1
        int i
    for i in range(n_words):
        integers[i] += words[i] >> count_bits
        counts[i] += <int> (words[i] & mask)


cdef inline void add_cells(
    const cell_sums * cells, int n_cells, int first_bin, bin_sums * sums
) noexcept nogil:
    cdef int i
    for i in range(n_cells):
        sums.gradients[first_bin + i] += cells[i].gradients
        sums.hessians[first_bin + i] += cells[i].hessians
        sums.counts[first_bin + i] += <int> cells[i].count


cdef int sum_occupied_bins(
    const tree_data * tree,
    const bundle_struct * bundle,  # of one feature, without missing values
    EraRows rows,
    const row_block * blocks,
    int n_blocks,
    histogram_scratch * scratch,
    unsigned char * occupied,      # OUT, (n_occupied,)
) noexcept nogil:
    """Sum up the blocks of an era by bin, for the bins that have rows only.

    The sums of bin occupied[i] go to place i of the scratch arrays.
    """
    cdef:
        const X_BINNED_DTYPE_C * codes = (
            tree.X_binned + bundle.members[0] * tree.n_samples
        )
        const unsigned int * indices = rows.sample_indices
        const row_block * block
        const long long * words
        const G_H_DTYPE_C * pairs
        const long long * plain = NULL
        bint are_integers = rows.values.are_integers
        code_sums * sums = &scratch.by_code  # zeros, but for what is occupied here
        unsigned long long[WORDS_OF_BINS] is_occupied
        unsigned long long one = 1
        int n_occupied = 0
        int b, j
        Py_ssize_t i
        unsigned char code

    memset(is_occupied, 0, sizeof(is_occupied))
    for b in range(n_blocks):
        block = &blocks[b]
        words = words_of(rows, block)
        pairs = pairs_of(rows, block)
        if rows.has_plain_words():
            plain = plain_words_of(rows, block)
        for i in range(block.start, block.stop):
            code = codes[i if indices == NULL else indices[i]]
            is_occupied[code >> 6] |= one << (code & 63)
            if are_integers:
                sums.words[code] += words[i]
                if plain != NULL:
                    sums.plain[code] += plain[i]
            else:
                sums.gradients[code] += pairs[2 * i]
                sums.hessians[code] += pairs[2 * i + 1]
                sums.counts[code] += 1
        if are_integers:
            n_occupied = list_bits(is_occupied, occupied)
            for j in range(n_occupied):
                code = occupied[j]
                unpack_words(
                    &sums.words[code], 1, rows.count_bits,
                    &sums.integers[code], &sums.counts[code],
                )
                sums.words[code] = 0
    if not are_integers:
        n_occupied = list_bits(is_occupied, occupied)
    for j in range(n_occupied):
        take_bin(sums, occupied[j], scratch, j)
    return n_occupied


cdef inline void take_bin(
    code_sums * sums, int code, histogram_scratch * scratch, int place
) noexcept nogil:
    """Move the sums of a bin to a place of the scratch arrays; leave zeros."""
    scratch.integers[place] = sums.integers[code]
    scratch.plain[place] = sums.plain[code]
    scratch.gradients[place] = sums.gradients[code]
    scratch.hessians[place] = sums.hessians[code]
    scratch.counts[place] = sums.counts[code]
    sums.integers[code] = 0
    sums.plain[code] = 0
    sums.gradients[code] = 0.0
    sums.hessians[code] = 0.0
    sums.counts[code] = 0


cdef inline int list_bits(
    const unsigned long long * words, unsigned char * places  # OUT
) noexcept nogil:
    """The places of the bits that are 1, ascending; return how many there are."""
    cdef:
        unsigned long long bits
        int n_bits = 0
        int i
    for i in range(WORDS_OF_BINS):
        bits = words[i]
        while bits:
            places[n_bits] = 64 * i + count_trailing_zeros(bits)
            bits &= bits - 1
            n_bits += 1
    return n_bits


cdef extern from *:
    """
    #if defined(__GNUC__)
    #define count_trailing_zeros __builtin_ctzll
    #else
    static int count_trailing_zeros(unsigned long long bits) {
        int n = 0;
        while (!(bits & 1)) { bits >>= 1; n++; }
        return n;
    }
    #endif
    """
    int count_trailing_zeros(unsigned long long bits) nogil
