# The interface to the code compiled for several instruction sets: loops over the
# candidates of a node, one in each lane.

from ..._arrays cimport X_BINNED_DTYPE_C

from ..bundles cimport MAX_BUNDLE_CELLS, bundle_struct
from ..fixed_points cimport MAX_PLANES, n_words_of, summed_values
from ..nodes cimport pooled_node, tree_data
from ..rows cimport CACHE_LINE, MAX_BINS, packed_rows, row_block
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.formulas cimport eras_struct, lane_eras


cdef enum:
    BATCH_CELLS = 4 * MAX_BINS  # lanes of the eras that are compared at a time


cdef struct node_struct:
    # A node and its pooled sums by bin.
    pooled_node pooled
    eras_struct eras
    double n_coverable        # eras with enough rows for both sides
    const summed_values * values
    const long long * bins    # (n_planes, n_bins)
    Py_ssize_t n_bins         # of all features
    int count_bits            # below the first sums, if these have one plane; else 0
    const long long * by_era  # sums of splits with masks, if the node keeps them
    Py_ssize_t n_by_era       # planes of all eras, for a lane


cdef struct era_visit:
    # Inputs of the comparison of splits by era, the same for all eras.
    const criterion_struct * criterion
    const eras_struct * eras
    const summed_values * values
    packed_rows packed         # of a chunk
    bint eras_are_blocks       # each one is one block
    double unit_of_words       # of gradients above row counts
    int contrast_bits          # of row counts, below contrasts; or 0
    double * kept              # sides of the listed eras, if the criterion keeps them


cdef struct lane_column:
    # Candidates that share a pass over rows: all of a bundle with masks, or all of one
    # order in which a feature's bins move to the left side. Candidates have the first
    # lanes; the lane after them has all rows.
    #
    # Without masks, a code's group is the first split that has it on its left side; so
    # running sums over groups are the left sides, and the mask of a group is 0 in the
    # lanes before its split and -1 from there on.
    #
    #     order of codes   3 0 4 1 2 5
    #     splits                ^   ^                after 0 and after 2
    #     groups           0 0 1 1 1 2
    int n_splits
    int n_lanes
    Py_ssize_t first_lane                  # in the node
    Py_ssize_t first_kept                  # of its `era_visit.kept`
    double largest_gain                    # of its features
    bint is_first                          # compared before other columns
    const X_BINNED_DTYPE_C * codes         # of the rows
    const bundle_struct * bundle           # with masks; else NULL
    const long long * by_era               # its sums, or NULL
    X_BINNED_DTYPE_C[MAX_BINS] groups      # of codes


cdef struct bin_order:
    # An order in which the bins of a feature move to the left side, one by one, with a
    # candidate after each move.
    int n_splits
    bint missing_go_to_left                # before the others; not for categories
    bint is_in_turn                        # codes are 0, 1, 2, ...
    const X_BINNED_DTYPE_C * codes         # (n_splits,), in that order


cdef struct era_batch:
    # Sums of some eras on the left side of a column's splits: (n_eras, n_lanes).
    # Aligned to a cache line.
    double[BATCH_CELLS] gradients
    double[BATCH_CELLS] hessians
    double[BATCH_CELLS] counts
    double[BATCH_CELLS] right_gradients         # if hessians vary
    long long[MAX_PLANES * MAX_BINS] sums       # of one era, plane after plane
    long long[4 * MAX_BUNDLE_CELLS] cells       # of the rows of one block
    lane_eras lanes                             # views of the first four


cdef inline size_t batch_size() noexcept nogil:
    """Return the size of a batch in bytes, in whole cache lines."""
    return (sizeof(era_batch) + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE


cdef struct order_sides:
    # The pooled left sides of the admissible splits of an order. Splits that repeat the
    # one before are left out, unless most bins of the node have rows.
    int n_splits
    X_BINNED_DTYPE_C[MAX_BINS] places   # of the splits, in the order
    double[MAX_BINS] gradients
    double[MAX_BINS] hessians
    double[MAX_BINS] counts
    double[MAX_BINS] gains    # -INFINITY if a side's weight or value does not do


cdef extern from *:
    """
    #if defined(__AVX2__)
    #include <immintrin.h>
    #endif

    static inline void run_up(
        const long long *sums, long long total, int n, long long *running)
    {
        int i = 0;
    #if defined(__AVX2__)  /* few additions wait for other ones */
        __m256i zero = _mm256_setzero_si256(), before = _mm256_set1_epi64x(total);
        for (; i + 4 <= n; i += 4) {
            __m256i x = _mm256_loadu_si256((const __m256i *)(sums + i)), low;
            x = _mm256_add_epi64(x, _mm256_slli_si256(x, 8));  /* a, a+b, c, c+d */
            low = _mm256_blend_epi32(zero, _mm256_permute4x64_epi64(x, 0x55), 0xf0);
            x = _mm256_add_epi64(x, low);
            _mm256_storeu_si256(
                (__m256i *)(running + i), _mm256_add_epi64(x, before));
            before = _mm256_add_epi64(before, _mm256_permute4x64_epi64(x, 0xff));
        }
        total = _mm_cvtsi128_si64(_mm256_castsi256_si128(before));
    #endif
        for (; i < n; i++)
            running[i] = total += sums[i];
    }
    """
    # Sets `running`, perhaps `sums` itself, to the prefix sums, plus `total`.
    void run_up(
        const long long * sums, long long total, int n, long long * running  # OUT
    ) noexcept nogil


cdef inline void take_planes(
    const node_struct * node, const long long * sums,  # of the node or like them
    Py_ssize_t stride,        # from one plane of them to the next
    int n, long long * planes,  # OUT, (n_planes, MAX_BINS)
) noexcept nogil:
    """Unpack sums into planes: the row counts, then the sums of each word."""
    cdef:
        long long one = 1
        long long mask = (one << node.count_bits) - 1
        int n_words = n_words_of(node.values)
        int bits = node.count_bits
        int plane, i
    for plane in range(1 if bits > 0 else 0, n_words + 1):
        for i in range(n):
            planes[plane * MAX_BINS + i] = sums[(plane - (bits > 0)) * stride + i]
    for i in range(n if bits > 0 else 0):
        planes[i] = sums[i] & mask
        planes[MAX_BINS + i] >>= bits


cdef struct lane_functions:
    # See kernels.pyx.
    double (*find_gains)(
        Py_ssize_t first_bin, int n_codes, const bin_order * order,
        signed char monotonic_cst, const tree_data * tree, const node_struct * node,
        order_sides * sides,
    ) noexcept nogil
    void (*compare_eras)(
        const era_visit * visit, const lane_column * column, const row_block * blocks,
        int n_blocks, double * sums, era_batch * batch,
    ) noexcept nogil
    void (*sum_bundle)(
        const bundle_struct * bundle, const packed_rows * packed,
        const row_block * blocks, int n_blocks, long long * by_era,
    ) noexcept nogil
