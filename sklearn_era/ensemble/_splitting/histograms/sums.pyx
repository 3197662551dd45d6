"""Histograms of an era's rows by the bins of a bundle of features.

Of the kernel of histograms, this alone looks at the rows and at the columns of the
binned data.
"""

from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    G_H_DTYPE_C, X_BINNED_DTYPE_C,
)

from ..rows cimport MAX_BINS
from ..._criteria.split_sums cimport LANES

cdef enum:
    WORDS_OF_BINS = 4  # of 64 bits, one for each of MAX_BINS


cdef void sum_era(
    const tree_data * tree,
    const bundle_struct * bundle,
    bint is_joint,
    EraRows rows,
    const row_block * blocks,
    int n_blocks,
    histogram_scratch * scratch,
    bin_sums * sums,          # OUT
) noexcept nogil:
    """Sum up the blocks of an era by bin, for all features of a bundle."""
    cdef int i
    memset(sums.counts, 0, bundle.n_bins * sizeof(int))
    if rows.packs_integers():
        memset(sums.integers, 0, bundle.n_bins * sizeof(long long))
    else:
        memset(sums.gradients, 0, bundle.n_bins * sizeof(double))
        memset(sums.hessians, 0, bundle.n_bins * sizeof(double))
    for i in range(n_blocks):
        if is_joint:
            add_jointly(bundle, rows, &blocks[i], scratch, sums)
        else:
            add_singly(tree, bundle, rows, &blocks[i], scratch, sums)


cdef inline void add_jointly(
    const bundle_struct * bundle,
    EraRows rows,
    const row_block * block,
    histogram_scratch * scratch,
    bin_sums * sums,          # IN and OUT
) noexcept nogil:
    """Add a block by way of the joint histogram of a bundle's features."""
    if rows.packs_integers():
        memset(scratch.words, 0, bundle.n_cells * sizeof(long long))
        add_words(bundle.codes, rows, block, scratch.words)
        add_marginal_words(bundle, rows.count_bits, scratch.words, sums)
    else:
        memset(scratch.cells, 0, bundle.n_cells * sizeof(cell_sums))
        add_pairs(bundle.codes, rows, block, scratch.cells)
        add_marginal_cells(bundle, scratch.cells, sums)


cdef inline void add_singly(
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
        int n_bins, j
    for j in range(bundle.n_members):
        column = tree.X_binned + bundle.members[j] * tree.n_samples
        n_bins = tree.n_bins_non_missing[bundle.members[j]]
        if rows.packs_integers():
            memset(scratch.words, 0, n_bins * sizeof(long long))
            scratch.words[missing] = 0
            add_words(column, rows, block, scratch.words)
            if bundle.n_codes[j] > n_bins:
                scratch.words[n_bins] = scratch.words[missing]
            unpack_words(
                scratch.words, bundle.n_codes[j], rows.count_bits,
                sums.integers + first_bin, sums.counts + first_bin,
            )
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
) noexcept nogil:
    """Add the words of rows, each to the lane of its era, for all features of a bundle.

    What `sum_era` does for one era after another. Eras of few rows are done sooner
    without an end of a loop for each of them.
    """
    cdef:
        const unsigned int * indices = rows.sample_indices
        const long long * of_rows = words_of(rows, first)
        const unsigned char * lanes = &rows.lanes[0] + first.first_word - first.start
        const X_BINNED_DTYPE_C * column
        int last_code
        int i, j, code
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
        words += bundle.n_codes[j] * LANES


cdef inline const long long * words_of(
    EraRows rows, const row_block * block
) noexcept nogil:
    """The word of each row, to be counted from the node's first one."""
    return &rows.words[0] + block.first_word - block.start


cdef inline void add_words(
    const X_BINNED_DTYPE_C * codes,
    EraRows rows,
    const row_block * block,
    long long * cells,  # IN and OUT
) noexcept nogil:
    """Add each row of a block to its code's cell: where a fit spends its time."""
    cdef:
        const unsigned int * indices = rows.sample_indices
        const long long * words = words_of(rows, block)
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


cdef inline void add_marginal_words(
    const bundle_struct * bundle,
    int count_bits,
    long long * words,  # IN and OUT, (n_cells,): used up
    bin_sums * sums,    # IN and OUT
) noexcept nogil:
    """Add the marginal sums of the joint histogram to the bins of each feature.

    From the last feature to the first: the cells with one of its bins are adjacent, and
    the sum over its bins is the joint histogram of the features before it.
    """
    cdef:
        long long[MAX_BINS] bins
        int first_bin = bundle.n_bins
        int n_cells = bundle.n_cells
        int n_codes
        int i, j, k
    for j in range(bundle.n_members - 1, -1, -1):
        n_codes = bundle.n_codes[j]
        first_bin -= n_codes
        n_cells = n_cells // n_codes
        for k in range(n_codes):
            bins[k] = 0
            for i in range(n_cells):
                bins[k] += words[k * n_cells + i]
        unpack_words(
            bins, n_codes, count_bits,
            sums.integers + first_bin, sums.counts + first_bin,
        )
        for k in range(1, n_codes):
            for i in range(n_cells):
                words[i] += words[k * n_cells + i]


cdef inline void add_marginal_cells(
    const bundle_struct * bundle,
    cell_sums * cells,  # IN and OUT, (n_cells,): used up
    bin_sums * sums,    # IN and OUT
) noexcept nogil:
    """As `add_marginal_words`."""
    cdef:
        cell_sums[MAX_BINS] bins
        int first_bin = bundle.n_bins
        int n_cells = bundle.n_cells
        int n_codes
        int i, j, k
    for j in range(bundle.n_members - 1, -1, -1):
        n_codes = bundle.n_codes[j]
        first_bin -= n_codes
        n_cells = n_cells // n_codes
        for k in range(n_codes):
            memset(&bins[k], 0, sizeof(cell_sums))
            for i in range(n_cells):
                add_cell(&bins[k], &cells[k * n_cells + i])
        add_cells(bins, n_codes, first_bin, sums)
        for k in range(1, n_codes):
            for i in range(n_cells):
                add_cell(&cells[i], &cells[k * n_cells + i])


cdef inline void add_cell(cell_sums * total, const cell_sums * cell) noexcept nogil:
    total.gradients += cell.gradients
    total.hessians += cell.hessians
    total.count += cell.count


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
        bint are_integers = rows.packs_integers()
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
        for i in range(block.start, block.stop):
            code = codes[i if indices == NULL else indices[i]]
            is_occupied[code >> 6] |= one << (code & 63)
            if are_integers:
                sums.words[code] += words[i]
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
    scratch.gradients[place] = sums.gradients[code]
    scratch.hessians[place] = sums.hessians[code]
    scratch.counts[place] = sums.counts[code]
    sums.integers[code] = 0
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
