# Eras of a bundle of few candidate splits, which are the lanes of vectors.
#
# For each combination of the bundle's bins, a mask says which splits send it to the
# left. So a row is added to the left sides of all splits at once, and an era's sums are
# what the criterion compares: there is no histogram, nor a sum over its bins. That is
# what many eras of few rows are fast with. Of an era with more rows than combinations,
# rows are summed up by these, and the sums are what is added under masks.

from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport X_BINNED_DTYPE_C

from ..bundles cimport MAX_BUNDLE_CELLS, MAX_SPLIT_LANES, bundle_struct
from ..rows cimport packed_rows, row_block


cdef extern from *:
    """
    #if defined(__GNUC__)
    #if defined(__AVX512F__)
    #define VECTOR_BYTES 64
    #elif defined(__AVX2__)
    #define VECTOR_BYTES 32
    #else
    #define VECTOR_BYTES 16
    #endif
    typedef long long word_vector
        __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
    #else
    #define VECTOR_BYTES 8
    typedef long long word_vector;
    #endif

    /* N_LANES is a constant, so that the sums stay in registers, and VARY is whether
       rows have plain words. */
    #define SUM_MASKED(NAME, N_LANES, VARY)                                            \
    static void NAME##_##N_LANES(                                                      \
        const unsigned char *codes, const unsigned int *rows, const long long *words,  \
        const long long *plain_words, Py_ssize_t start, Py_ssize_t stop,               \
        const long long *masks, int count_bits, long long *restrict integers,          \
        long long *restrict counts, long long *restrict plain)                         \
    {                                                                                  \
        enum {N = (N_LANES) * 8 / VECTOR_BYTES};                                       \
        word_vector total[N] = {0};                                                    \
        word_vector total_plain[N] = {0};                                              \
        long long sums[N_LANES];                                                       \
        Py_ssize_t i;                                                                  \
        int v;                                                                         \
        for (i = start; i < stop; i++) {                                               \
            Py_ssize_t row = rows ? rows[i] : i;                                       \
            const word_vector *mask = (const word_vector *)(                           \
                masks + (N_LANES) * (codes ? (Py_ssize_t)codes[row] : row));           \
            word_vector word = words[i] - (word_vector){0};                            \
            for (v = 0; v < N; v++) total[v] += word & mask[v];                        \
            if (VARY) {                                                                \
                word = plain_words[i] - (word_vector){0};                              \
                for (v = 0; v < N; v++) total_plain[v] += word & mask[v];              \
            }                                                                          \
        }                                                                              \
        for (v = 0; v < N; v++) ((word_vector *)sums)[v] = total[v];                   \
        for (v = 0; v < (N_LANES); v++) {                                              \
            integers[v] += sums[v] >> count_bits;                                      \
            counts[v] += sums[v] & ((1LL << count_bits) - 1);                          \
        }                                                                              \
        if (VARY)                                                                      \
            for (v = 0; v < N; v++) ((word_vector *)plain)[v] += total_plain[v];       \
    }

    #define SUM_MASKED_BY_LANES(NAME, VARY)                                            \
    SUM_MASKED(NAME, 8, VARY)                                                          \
    SUM_MASKED(NAME, 16, VARY)                                                         \
    SUM_MASKED(NAME, 24, VARY)                                                         \
    SUM_MASKED(NAME, 32, VARY)                                                         \
    static inline void NAME(                                                           \
        int n_lanes, const unsigned char *codes, const unsigned int *rows,             \
        const long long *words, const long long *plain_words, Py_ssize_t start,        \
        Py_ssize_t stop, const long long *masks, int count_bits, long long *integers,  \
        long long *counts, long long *plain)                                           \
    {                                                                                  \
        (n_lanes == 8 ? NAME##_8 : n_lanes == 16 ? NAME##_16                           \
         : n_lanes == 24 ? NAME##_24 : NAME##_32)(                                     \
            codes, rows, words, plain_words, start, stop, masks, count_bits, integers, \
            counts, plain);                                                            \
    }
    SUM_MASKED_BY_LANES(sum_masked, 0)
    SUM_MASKED_BY_LANES(sum_masked_and_plain, 1)
    #undef SUM_MASKED
    #undef SUM_MASKED_BY_LANES
    """
    void sum_masked(
        int n_lanes,
        const X_BINNED_DTYPE_C * codes,  # NULL: a row for each
        const unsigned int * rows,       # NULL: all, as they are
        const long long * words,     # the count in the low bits, the integer above
        const long long * plain_words,
        Py_ssize_t start,
        Py_ssize_t stop,
        const long long * masks,     # (n_cells, n_lanes)
        int count_bits,
        long long * integers,        # IN and OUT, (n_lanes,)
        long long * counts,          # IN and OUT
        long long * plain,           # IN and OUT, if rows have plain words
    ) noexcept nogil
    void sum_masked_and_plain(
        int n_lanes,
        const X_BINNED_DTYPE_C * codes,
        const unsigned int * rows,
        const long long * words,
        const long long * plain_words,
        Py_ssize_t start,
        Py_ssize_t stop,
        const long long * masks,
        int count_bits,
        long long * integers,
        long long * counts,
        long long * plain,
    ) noexcept nogil


cdef inline void add_masked_block(
    const bundle_struct * bundle,
    const packed_rows * packed,
    const row_block * block,
    long long * cells,      # scratch, (4 * MAX_BUNDLE_CELLS,)
    long long * sums,       # IN and OUT, (n_planes, stride), of the era
    Py_ssize_t stride,
) noexcept nogil:
    """Add the rows of a block, or their sums by combination of bins."""
    cdef:
        const X_BINNED_DTYPE_C * codes = bundle.codes
        const unsigned int * indices = packed.indices
        const long long * words = packed.words + block.first_word - block.start
        const long long * others = words + packed.n_packed
        Py_ssize_t start = block.start
        Py_ssize_t stop = block.stop
        bint sums_cells = sums_cells_first(
            stop - start, bundle.n_cells, bundle.n_lanes
        )
    if sums_cells:
        sum_cells(bundle, indices, words, block, cells)
        words = cells
        if packed.n_words > 1:
            sum_cells(bundle, indices, others, block, cells + 2 * MAX_BUNDLE_CELLS)
            others = cells + 2 * MAX_BUNDLE_CELLS
        codes = NULL
        indices = NULL
        start = 0
        stop = bundle.n_cells
    if packed.n_words == 1:
        sum_masked(
            bundle.n_lanes, codes, indices, words, NULL, start, stop, bundle.masks,
            packed.count_bits, sums + stride, sums, NULL,
        )
    else:
        sum_masked_and_plain(
            bundle.n_lanes, codes, indices, words, others, start, stop, bundle.masks,
            packed.count_bits, sums + stride, sums, sums + 2 * stride,
        )
    if packed.n_words > 2:
        add_low_words(bundle, packed, block, sums, stride)


cdef inline void add_low_words(
    const bundle_struct * bundle,
    const packed_rows * packed,
    const row_block * block,
    long long * sums,
    Py_ssize_t stride,
) noexcept nogil:
    """Add the last two words of rows."""
    cdef:
        long long[MAX_SPLIT_LANES] no_counts
        const long long * words = (
            packed.words + 2 * packed.n_packed + block.first_word - block.start
        )
    sum_masked_and_plain(
        bundle.n_lanes, bundle.codes, packed.indices, words, words + packed.n_packed,
        block.start, block.stop, bundle.masks, 0, sums + 3 * stride, no_counts,
        sums + 4 * stride,
    )


cdef inline bint sums_cells_first(
    Py_ssize_t n_rows, int n_cells, int n_lanes
) noexcept nogil:
    """Whether to sum up rows by the cells of a bundle, and then these by masks.

    With a mask a row costs as many additions as vectors hold its lanes. Eight of them
    are one vector, and no dearer than to find its cell.
    """
    return n_lanes > 8 and n_rows > 3 * n_cells


cdef inline void sum_cells(
    const bundle_struct * bundle,
    const unsigned int * rows,
    const long long * words,
    const row_block * block,
    long long * cells,      # OUT, (2 * n_cells,): of all rows in the first half
) noexcept nogil:
    """Sum up the rows of a block by combination of bins.

    Neighbours are added apart, so that one of the same combination does not wait for
    the other.
    """
    cdef:
        const X_BINNED_DTYPE_C * codes = bundle.codes
        Py_ssize_t i = block.start
        int cell
    memset(cells, 0, 2 * bundle.n_cells * sizeof(long long))
    if rows == NULL:
        while i + 1 < block.stop:
            cells[2 * codes[i]] += words[i]
            cells[2 * codes[i + 1] + 1] += words[i + 1]
            i += 2
    else:
        while i + 1 < block.stop:
            cells[2 * codes[rows[i]]] += words[i]
            cells[2 * codes[rows[i + 1]] + 1] += words[i + 1]
            i += 2
    if i < block.stop:
        cells[2 * codes[i if rows == NULL else rows[i]]] += words[i]
    for cell in range(bundle.n_cells):
        cells[cell] = cells[2 * cell] + cells[2 * cell + 1]
