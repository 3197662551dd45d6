# Sums of eras for a bundle with masks, one candidate in each lane. One addition updates
# the left sides of all splits, which makes many eras of few rows fast:
#
#     row's word w     w  w  w  w  w ...
#     & mask          -1 -1  0  0 -1      of its combination
#     += left sides    w  w  0  0  w      a lane for each split
#
# A group of codes has a mask too, if splits are few: see `lane_column`.

from libc.string cimport memset

from ..._arrays cimport X_BINNED_DTYPE_C

from ..bundles cimport MAX_BUNDLE_CELLS, bundle_struct
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
    #define IF(condition) (condition)  /* -1 if true */
    #else
    #define IF(condition) (-(condition))
    #define VECTOR_BYTES 8
    typedef long long word_vector;
    #endif

    #define ADD(WORD, MASK, TOTAL)                                                     \
        for (v = 0; v < N; v++)                                                        \
            TOTAL[v] += ((WORD) - (word_vector){0}) & ((const word_vector *)(MASK))[v];

    /* N_LANES and PLAIN (a second word) are constants: sums stay in registers. */
    #define SUM_MASKED(N_LANES, PLAIN) case N_LANES: {                                 \
        enum {N = (N_LANES) * 8 / VECTOR_BYTES};                                       \
        word_vector total[N] = {0}, total_plain[N] = {0};                              \
        long long sums[N_LANES];                                                       \
        for (i = start; i < stop; i++) {                                               \
            Py_ssize_t row = rows ? rows[i] : i;                                       \
            const long long *mask = masks                                              \
                + (N_LANES) * (codes ? (Py_ssize_t)codes[row] : row);                  \
            ADD(words[i], mask, total)                                                 \
            if (PLAIN) ADD(plain_words[i], mask, total_plain)                          \
        }                                                                              \
        for (v = 0; v < N; v++) ((word_vector *)sums)[v] = total[v];                   \
        for (v = 0; v < (N_LANES); v++) {                                              \
            integers[v] += sums[v] >> count_bits;                                      \
            counts[v] += sums[v] & ((1LL << count_bits) - 1);                          \
        }                                                                              \
        if (PLAIN)                                                                     \
            for (v = 0; v < N; v++) ((word_vector *)plain)[v] += total_plain[v];       \
        break;                                                                         \
    }
    static inline void sum_masked(
        const unsigned char *codes, const unsigned int *rows, const long long *words,
        const long long *plain_words, Py_ssize_t start, Py_ssize_t stop,
        const long long *masks, int n_lanes, int count_bits,
        long long *restrict integers, long long *restrict counts,
        long long *restrict plain)
    {
        Py_ssize_t i;
        int v;
    #define OF_ONE(N_LANES) SUM_MASKED(N_LANES, 0)
    #define OF_TWO(N_LANES) SUM_MASKED(N_LANES, 1)
        if (plain_words)
            switch (n_lanes) { OF_TWO(8) OF_TWO(16) OF_TWO(24) OF_TWO(32) }
        else
            switch (n_lanes) { OF_ONE(8) OF_ONE(16) OF_ONE(24) OF_ONE(32) }
    }
    #undef SUM_MASKED

    #define ONES -1, -1, -1, -1, -1, -1, -1, -1
    /* From the place 32 - g on, the mask of a row of group g: set from lane g on. */
    static const long long MASKS_OF_GROUPS[64] = {[32] = ONES, ONES, ONES, ONES};
    #undef ONES

    #define ADD_SIGNS(N_LANES, MASK) case N_LANES: {                                   \
        enum {N = (N_LANES) * 8 / VECTOR_BYTES};                                       \
        word_vector sums[3 * N] = {0};                                                 \
        for (; block < last; block++) {                                                \
            const long long *words = contrasts + block->first_word - block->start;     \
            long long n_rows = block->stop - block->start;                             \
            long long doubt = (block->doubt + 1) * (low_bits + 1);                     \
            word_vector left[N] = {0};                                                 \
            for (i = block->start; i < block->stop; i++) {                             \
                Py_ssize_t code = codes[rows ? rows[i] : i];                           \
                ADD(words[i], MASK, left)                                              \
            }                                                                          \
            for (v = 0; v < N; v++) {                                                  \
                word_vector sum = left[v], count = sum & low_bits;                     \
                word_vector above = IF(sum > low_bits), below = IF(sum < 0);           \
                word_vector is_near = IF(sum < doubt) & IF(sum >= -doubt);             \
                sums[v] -= IF(count != 0) & IF(count != n_rows);                       \
                sums[N + v] += below - above;                                          \
                sums[2 * N + v] |= (above | below) & is_near;                          \
            }                                                                          \
        }                                                                              \
        for (v = 0; v < 3 * N; v++) ((word_vector *)totals)[v] = sums[v];              \
        break;                                                                         \
    }
    /* Sums up the eras that splits cover, their directions, and doubtful contrasts; a
       contrast has the row count in its low bits. */
    static inline void add_signs(
        const unsigned char *codes, const unsigned int *rows,
        const long long *contrasts, const row_block *block, int n_blocks,
        const long long *masks, const unsigned char *groups, int n_lanes,
        long long low_bits, long long *totals)
    {
        const row_block *last = block + n_blocks;
        Py_ssize_t i;
        int v;
    #define OF_CODE(N_LANES) ADD_SIGNS(N_LANES, masks + (N_LANES) * code)
    #define OF_GROUP(N_LANES) ADD_SIGNS(N_LANES, MASKS_OF_GROUPS + 32 - groups[code])
        if (masks)
            switch (n_lanes) { OF_CODE(8) OF_CODE(16) OF_CODE(24) OF_CODE(32) }
        else
            switch (n_lanes) { OF_GROUP(8) OF_GROUP(16) OF_GROUP(24) OF_GROUP(32) }
    }
    #undef ADD_SIGNS

    #define SUM_GROUPS(N_LANES) case N_LANES: {                                        \
        enum {N = (N_LANES) * 8 / VECTOR_BYTES};                                       \
        word_vector total[N] = {0};                                                    \
        for (i = start; i < stop; i++) {                                               \
            Py_ssize_t group = groups[codes[rows ? rows[i] : i]];                      \
            ADD(words[i], MASKS_OF_GROUPS + 32 - group, total)                         \
        }                                                                              \
        for (v = 0; v < N; v++) ((word_vector *)left)[v] = total[v];                   \
        break;                                                                         \
    }
    static inline void sum_groups(
        const unsigned char *codes, const unsigned int *rows,
        const unsigned char *groups, const long long *words, Py_ssize_t start,
        Py_ssize_t stop, int n_lanes, long long *restrict left)
    {
        Py_ssize_t i;
        int v;
        switch (n_lanes) { SUM_GROUPS(8) SUM_GROUPS(16) SUM_GROUPS(24) SUM_GROUPS(32) }
    }
    #undef SUM_GROUPS
    #undef ADD
    """
    void sum_masked(
        const X_BINNED_DTYPE_C * codes,  # NULL: row i has combination i
        const unsigned int * rows,       # NULL: all, in order
        const long long * words,         # integers, with row counts in the low bits
        const long long * plain_words,   # second words; or NULL
        Py_ssize_t start, Py_ssize_t stop,
        const long long * masks,         # (n_cells, n_lanes)
        int n_lanes, int count_bits,
        long long * integers,            # these three: IN and OUT, (n_lanes,)
        long long * counts, long long * plain,
    ) noexcept nogil
    void add_signs(
        const X_BINNED_DTYPE_C * codes, const unsigned int * rows,
        const long long * contrasts, const row_block * blocks, int n_blocks,
        const long long * masks,          # NULL: those of the codes' groups
        const X_BINNED_DTYPE_C * groups, int n_lanes, long long low_bits,
        long long * totals,  # OUT, (3, n_lanes)
    ) noexcept nogil
    void sum_groups(
        const X_BINNED_DTYPE_C * codes, const unsigned int * rows,
        const X_BINNED_DTYPE_C * groups,  # by code
        const long long * words, Py_ssize_t start, Py_ssize_t stop, int n_lanes,
        long long * left,    # OUT, (n_lanes,)
    ) noexcept nogil


cdef inline void add_masked_block(
    const bundle_struct * bundle, const packed_rows * packed, const row_block * block,
    long long * cells,      # scratch, (4 * MAX_BUNDLE_CELLS,)
    long long * sums,       # IN and OUT, (n_planes, stride), of the era
    Py_ssize_t stride,
) noexcept nogil:
    """Add a block's rows to the left sides of splits, up to two words of a row at a
    time; many rows are first summed up by combination of codes.
    """
    cdef:
        const long long * words = packed.words + block.first_word - block.start
        const long long * others = NULL
        long long * other_cells = NULL
        int count_bits = packed.count_bits
        long long * integers
        int word
    for word in range(0, packed.n_words, 2):
        if packed.n_words > 1:
            others = words + packed.n_packed
            other_cells = cells + 2 * MAX_BUNDLE_CELLS
        integers = sums + (word + 1) * stride
        # A masked row costs one addition for each register of lanes. With eight lanes
        # this is one register, no dearer than the sum by combination.
        if bundle.n_lanes > 8 and block.stop - block.start > 3 * bundle.n_cells:
            sum_cells(bundle, packed.indices, words, block, cells)
            if others != NULL:
                sum_cells(bundle, packed.indices, others, block, other_cells)
            sum_masked(
                NULL, NULL, cells, other_cells, 0, bundle.n_cells, bundle.masks,
                bundle.n_lanes, count_bits, integers, sums, integers + stride,
            )
        else:
            sum_masked(
                bundle.codes, packed.indices, words, others, block.start, block.stop,
                bundle.masks, bundle.n_lanes, count_bits, integers, sums,
                integers + stride,
            )
        words += 2 * packed.n_packed
        count_bits = 0


cdef inline void sum_cells(
    const bundle_struct * bundle, const unsigned int * rows, const long long * words,
    const row_block * block,
    long long * cells,      # OUT, (2 * n_cells,); the result is in the first half
) noexcept nogil:
    """Sum up the rows of a block by combination of codes. Even and odd rows are summed
    up apart, so that neighbours with one combination do not wait for each other.
    """
    cdef:
        const X_BINNED_DTYPE_C * codes = bundle.codes
        Py_ssize_t i = block.start
        int cell
    memset(cells, 0, 2 * bundle.n_cells * sizeof(long long))
    while i + 1 < block.stop:
        cells[2 * codes[i if rows == NULL else rows[i]]] += words[i]
        cells[2 * codes[i + 1 if rows == NULL else rows[i + 1]] + 1] += words[i + 1]
        i += 2
    if i < block.stop:
        cells[2 * codes[i if rows == NULL else rows[i]]] += words[i]
    for cell in range(bundle.n_cells):
        cells[cell] = cells[2 * cell] + cells[2 * cell + 1]
