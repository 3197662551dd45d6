"""Histograms of an era's rows by the bins of a bundle of features.

This is the layer to replace for other machines: it alone looks at the rows and at the
columns of the binned data, by the functions that the declarations list.
"""

from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    G_H_DTYPE_C,
    X_BINNED_DTYPE_C,
)


cdef void sum_era(
    const columns_struct * columns,
    const bundle_struct * bundle,
    bint is_joint,
    EraRows rows,
    int first_row,            # of the chunk
    const row_block * blocks,
    int n_blocks,
    histogram_scratch * scratch,
    bin_sums * sums,          # OUT
) noexcept nogil:
    """Sum up the blocks of an era by bin, for all features of a bundle."""
    cdef:
        const row_block * block
        const X_BINNED_DTYPE_C * column
        bint are_integers = rows.packs_integers()
        int n_bins
        int first_bin
        int i, j

    memset(sums.counts, 0, bundle.n_bins * sizeof(int))
    if are_integers:
        memset(sums.integers, 0, bundle.n_bins * sizeof(long long))
    else:
        memset(sums.gradients, 0, bundle.n_bins * sizeof(double))
        memset(sums.hessians, 0, bundle.n_bins * sizeof(double))

    for i in range(n_blocks):
        block = &blocks[i]
        if is_joint:
            if are_integers:
                memset(scratch.words, 0, bundle.n_cells * sizeof(long long))
                add_words(bundle.codes, rows, block, first_row, scratch.words)
                split_words(bundle, rows.count_bits, scratch.words, sums)
            else:
                memset(scratch.cells, 0, bundle.n_cells * sizeof(cell_sums))
                add_pairs(bundle.codes, rows, block, first_row, scratch.cells)
                split_cells(bundle, scratch.cells, sums)
            continue
        first_bin = 0
        for j in range(bundle.n_members):
            column = columns.X_binned + bundle.members[j] * columns.n_samples
            n_bins = columns.n_bins_non_missing[bundle.members[j]]
            if are_integers:
                memset(scratch.words, 0, n_bins * sizeof(long long))
                scratch.words[columns.missing_values_bin_idx] = 0
                add_words(column, rows, block, first_row, scratch.words)
                if bundle.n_codes[j] > n_bins:
                    scratch.words[n_bins] = (
                        scratch.words[columns.missing_values_bin_idx]
                    )
                take_words(
                    scratch.words, bundle.n_codes[j], rows.count_bits,
                    sums.integers + first_bin, sums.counts + first_bin,
                )
            else:
                memset(scratch.cells, 0, n_bins * sizeof(cell_sums))
                memset(
                    &scratch.cells[columns.missing_values_bin_idx],
                    0, sizeof(cell_sums),
                )
                add_pairs(column, rows, block, first_row, scratch.cells)
                if bundle.n_codes[j] > n_bins:
                    scratch.cells[n_bins] = (
                        scratch.cells[columns.missing_values_bin_idx]
                    )
                take_cells(scratch.cells, bundle.n_codes[j], first_bin, sums)
            first_bin += bundle.n_codes[j]


cdef void add_to_lanes(
    const columns_struct * columns,
    const bundle_struct * bundle,
    EraRows rows,
    int first_row,       # of the chunk
    int start,
    int stop,
    long long * words,   # IN and OUT, shape (n_bins, n_lanes)
    int n_lanes,
) noexcept nogil:
    """Add the words of rows, each to the lane of its era, for all features of a bundle.

    What `sum_era` does for one era after another. Eras of few rows are done sooner
    without an end of a loop for each of them.
    """
    cdef:
        const unsigned int * indices = rows.sample_indices
        const long long * of_rows = &rows.words[0] - first_row
        const unsigned char * lanes = &rows.lanes[0] - first_row
        const X_BINNED_DTYPE_C * column
        int last_code
        int i, j, code
    for j in range(bundle.n_members):
        column = columns.X_binned + bundle.members[j] * columns.n_samples
        last_code = bundle.n_codes[j] - 1
        if bundle.n_codes[j] > <int> columns.n_bins_non_missing[bundle.members[j]]:
            for i in range(start, stop):  # missing values are the last of the codes
                code = column[i if indices == NULL else indices[i]]
                code = min(code, last_code)
                words[code * n_lanes + lanes[i]] += of_rows[i]
        elif indices == NULL:
            for i in range(start, stop):
                words[column[i] * n_lanes + lanes[i]] += of_rows[i]
        else:
            for i in range(start, stop):
                words[column[indices[i]] * n_lanes + lanes[i]] += of_rows[i]
        words += bundle.n_codes[j] * n_lanes


cdef inline void add_words(
    const X_BINNED_DTYPE_C * codes,
    EraRows rows,
    const row_block * block,
    int first_row,
    long long * cells,  # IN and OUT
) noexcept nogil:
    """Add each row of a block to its code's cell: where a fit spends its time."""
    cdef:
        const unsigned int * indices = rows.sample_indices
        const long long * words = &rows.words[0] - first_row
        int start = block.start
        int stop = block.stop
        int i
    if indices == NULL:
        for i in range(start, stop):
            cells[codes[i]] += words[i]
    else:
        for i in range(start, stop):
            cells[codes[indices[i]]] += words[i]


cdef inline const G_H_DTYPE_C * pairs_from(
    EraRows rows, int first_row
) noexcept nogil:
    """Gradient and hessian of each row, to be counted from the node's first one."""
    return <const G_H_DTYPE_C *> &rows.words[0] - 2 * <Py_ssize_t> first_row


cdef inline void add_pairs(
    const X_BINNED_DTYPE_C * codes,
    EraRows rows,
    const row_block * block,
    int first_row,
    cell_sums * cells,  # IN and OUT
) noexcept nogil:
    """As `add_words`, for gradients and hessians."""
    cdef:
        const unsigned int * indices = rows.sample_indices
        const G_H_DTYPE_C * pairs = pairs_from(rows, first_row)
        cell_sums * cell
        Py_ssize_t i
    for i in range(block.start, block.stop):
        cell = &cells[codes[i if indices == NULL else indices[i]]]
        cell.gradients += pairs[2 * i]
        cell.hessians += pairs[2 * i + 1]
        cell.count += 1


cdef inline void take_words(
    const long long * words,
    int n_words,
    int count_bits,
    long long * integers,  # IN and OUT
    int * counts,          # IN and OUT
) noexcept nogil:
    """Take words apart: the count is in the low bits, the sum of integers above."""
    cdef:
        long long one = 1
        long long mask = (one << count_bits) - 1
        int i
    for i in range(n_words):
        integers[i] += words[i] >> count_bits
        counts[i] += <int> (words[i] & mask)


cdef inline void take_cells(
    const cell_sums * cells, int n_cells, int first_bin, bin_sums * sums
) noexcept nogil:
    cdef int i
    for i in range(n_cells):
        sums.gradients[first_bin + i] += cells[i].gradients
        sums.hessians[first_bin + i] += cells[i].hessians
        sums.counts[first_bin + i] += <int> cells[i].count


cdef inline void split_words(
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
        long long[256] bins
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
        take_words(
            bins, n_codes, count_bits,
            sums.integers + first_bin, sums.counts + first_bin,
        )
        for k in range(1, n_codes):
            for i in range(n_cells):
                words[i] += words[k * n_cells + i]


cdef inline void split_cells(
    const bundle_struct * bundle,
    cell_sums * cells,  # IN and OUT, (n_cells,): used up
    bin_sums * sums,    # IN and OUT
) noexcept nogil:
    """As `split_words`."""
    cdef:
        cell_sums[256] bins
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
        take_cells(bins, n_codes, first_bin, sums)
        for k in range(1, n_codes):
            for i in range(n_cells):
                add_cell(&cells[i], &cells[k * n_cells + i])


cdef inline void add_cell(cell_sums * total, const cell_sums * cell) noexcept nogil:
    total.gradients += cell.gradients
    total.hessians += cell.hessians
    total.count += cell.count


cdef int sum_touched_bins(
    const columns_struct * columns,
    const bundle_struct * bundle,  # of one feature, without missing values
    EraRows rows,
    int first_row,                 # of the chunk
    const row_block * blocks,
    int n_blocks,
    histogram_scratch * scratch,
    unsigned char * touched,       # OUT, (n_touched,)
) noexcept nogil:
    """Sum up the blocks of an era by bin, for the bins that have rows only.

    The sums of bin touched[i] go to place i of the scratch arrays.
    """
    cdef:
        const X_BINNED_DTYPE_C * codes = (
            columns.X_binned + bundle.members[0] * columns.n_samples
        )
        const unsigned int * indices = rows.sample_indices
        const row_block * block
        const long long * words = &rows.words[0] - first_row
        const G_H_DTYPE_C * pairs = pairs_from(rows, first_row)
        bint are_integers = rows.packs_integers()
        code_sums * sums = &scratch.by_code  # zeros, but for what is touched here
        unsigned long long[4] is_touched
        unsigned long long one = 1
        unsigned long long bits
        int n_touched = 0
        int b
        Py_ssize_t i
        unsigned char code

    memset(is_touched, 0, sizeof(is_touched))
    for b in range(n_blocks):
        block = &blocks[b]
        for i in range(block.start, block.stop):
            code = codes[i if indices == NULL else indices[i]]
            is_touched[code >> 6] |= one << (code & 63)
            if are_integers:
                sums.words[code] += words[i]
            else:
                sums.gradients[code] += pairs[2 * i]
                sums.hessians[code] += pairs[2 * i + 1]
                sums.counts[code] += 1
        if are_integers:
            for i in range(4):
                bits = is_touched[i]
                while bits:
                    code = 64 * i + count_trailing_zeros(bits)
                    bits &= bits - 1
                    take_words(
                        &sums.words[code], 1, rows.count_bits,
                        &sums.integers[code], &sums.counts[code],
                    )
                    sums.words[code] = 0
    for i in range(4):
        bits = is_touched[i]
        while bits:
            code = 64 * i + count_trailing_zeros(bits)
            bits &= bits - 1
            touched[n_touched] = code
            scratch.integers[n_touched] = sums.integers[code]
            scratch.gradients[n_touched] = sums.gradients[code]
            scratch.hessians[n_touched] = sums.hessians[code]
            scratch.counts[n_touched] = sums.counts[code]
            sums.integers[code] = 0
            sums.gradients[code] = 0.0
            sums.hessians[code] = 0.0
            sums.counts[code] = 0
            n_touched += 1
    return n_touched


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
