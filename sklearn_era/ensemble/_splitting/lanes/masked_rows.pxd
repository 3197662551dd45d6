# Eras of a bundle of few candidate splits, which are the lanes of vectors.
#
# For each combination of the bundle's bins, a mask says which splits send it to the
# left. So a row is added to the left sides of all splits at once, and an era's sums are
# what the criterion compares: there is no histogram, nor a sum over its bins. That is
# what many eras of few rows are fast with.

from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport X_BINNED_DTYPE_C

from .functions cimport (
    ANYTHING, DIRECTIONS, MEAN_GAINS, SMOOTHED_GAINS, EXTREME_GAINS,
    GAINS_AND_DIRECTIONS, GAIN_MOMENTS, EFFECTS, CHANGING_RATES, IMPURITIES,
    HELD_OUT_GAINS, gains_of_lane, impurities_of_lane, keep_gains, keep_impurities,
    keep_moments, kept_kind, kept_lanes, kind_of_criterion, masked_sums, masked_table,
    moments_of_lane, packed_rows, side_lanes,
)
from ..bundles cimport bundle_struct
from ..rows cimport row_block, summed_values
from ..._criteria.aggregation cimport (
    add_impurity, add_to_boltzmann, add_to_moments, boltzmann_kind, boltzmann_sums,
    impurity_totals, moment_sums,
)
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.era_statistics cimport (
    era_changing_rate, era_effect, era_sums, held_out_gain, impurity_decrease,
    is_covered, is_informative, neutral_unless, side_sums,
)
from ..._criteria.split_sums cimport (
    LANES, add_beside_all, add_era, compare_if, era_comparison, eras_struct,
    gain_unit, split_sums,
)


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
            const word_vector *mask = (const word_vector *)(                           \
                masks + (N_LANES) * (Py_ssize_t)codes[rows ? rows[i] : i]);            \
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
        const X_BINNED_DTYPE_C * codes,
        const unsigned int * rows,   # NULL: all, as they are
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


cdef inline int sum_masked_eras(
    const bundle_struct * bundle,
    const packed_rows * rows,
    int first,              # block
    int stop,
    masked_table * table,   # OUT
) noexcept nogil:
    """Sum up the next eras, in the lane of each split; return the block after them."""
    cdef:
        const row_block * block
        const long long * words
        Py_ssize_t place
        int i
    memset(table.integers, 0, LANES * bundle.n_lanes * sizeof(long long))
    memset(table.counts, 0, LANES * bundle.n_lanes * sizeof(long long))
    if rows.plain_words != NULL:
        memset(table.plain, 0, LANES * bundle.n_lanes * sizeof(long long))
    table.n_eras = 0
    while first < stop:
        block = &rows.blocks[first]
        i = table.n_eras
        if i == 0 or block.era != table.codes[i - 1]:
            if i == LANES:
                break
            place = i * bundle.n_lanes
            table.codes[i] = block.era
            table.sums[i].integers = &table.integers[place]
            table.sums[i].counts = &table.counts[place]
            table.sums[i].plain = NULL
            if rows.plain_words != NULL:
                table.sums[i].plain = &table.plain[place]
            table.n_eras += 1
        words = rows.words + block.first_word - block.start
        if rows.plain_words == NULL:
            sum_masked(
                bundle.n_lanes, bundle.codes, rows.indices, words, NULL,
                block.start, block.stop, bundle.masks, rows.count_bits,
                &table.integers[place], &table.counts[place], NULL,
            )
        else:
            sum_masked_and_plain(
                bundle.n_lanes, bundle.codes, rows.indices, words,
                rows.plain_words + block.first_word - block.start,
                block.start, block.stop, bundle.masks, rows.count_bits,
                &table.integers[place], &table.counts[place], &table.plain[place],
            )
        first += 1
    return first


cdef inline void pool_masked_eras(
    int n_lanes, masked_table * table  # IN and OUT
) noexcept nogil:
    """Add the eras that were summed up last to the sums over all of them."""
    cdef:
        long long[LANES] integers, counts
        const masked_sums * sums
        Py_ssize_t i, j, first, lane
    for j in range(n_lanes // LANES):
        first = j * LANES
        for lane in range(LANES):
            integers[lane] = table.pooled_integers[first + lane]
            counts[lane] = table.pooled_counts[first + lane]
        for i in range(table.n_eras):
            sums = &table.sums[i]
            for lane in range(LANES):
                integers[lane] += sums.integers[first + lane]
                counts[lane] += sums.counts[first + lane]
        for lane in range(LANES):
            table.pooled_integers[first + lane] = integers[lane]
            table.pooled_counts[first + lane] = counts[lane]
        for i in range(table.n_eras):
            sums = &table.sums[i]
            if sums.plain != NULL:
                for lane in range(LANES):
                    table.pooled_plain[first + lane] += sums.plain[first + lane]


cdef inline void compare_masked_eras(
    const criterion_struct * criterion,
    const eras_struct * eras,
    const bundle_struct * bundle,
    const summed_values * values,
    masked_table * table,  # IN and OUT
    split_sums * splits,   # IN and OUT, of what has no lanes
) noexcept nogil:
    """Add what the eras that were summed up last say of each split.

    By a loop for each kind, which the compiler makes of one.
    """
    if kind_of_criterion(criterion) == ANYTHING:
        add_in_turn(criterion, eras, bundle.n_splits, values, table, splits)
    elif table.n_eras > 0 and table.sums[0].plain != NULL:
        compare_by_kind(True, criterion, eras, bundle, values, table)
    else:
        compare_by_kind(False, criterion, eras, bundle, values, table)


cdef inline void compare_by_kind(
    bint are_plain,        # gradients, as hessians vary; a constant
    const criterion_struct * criterion,
    const eras_struct * eras,
    const bundle_struct * bundle,
    const summed_values * values,
    masked_table * table,  # IN and OUT
) noexcept nogil:
    cdef kept_kind kind = kind_of_criterion(criterion)
    if kind == DIRECTIONS:
        compare_lanes(DIRECTIONS, are_plain, criterion, eras, bundle, values, table)
    elif kind == MEAN_GAINS:
        compare_lanes(MEAN_GAINS, are_plain, criterion, eras, bundle, values, table)
    elif kind == SMOOTHED_GAINS:
        compare_lanes(SMOOTHED_GAINS, are_plain, criterion, eras, bundle, values, table)
    elif kind == EXTREME_GAINS:
        compare_lanes(EXTREME_GAINS, are_plain, criterion, eras, bundle, values, table)
    elif kind == GAINS_AND_DIRECTIONS:
        compare_lanes(
            GAINS_AND_DIRECTIONS, are_plain, criterion, eras, bundle, values, table
        )
    elif kind == GAIN_MOMENTS:
        compare_lanes(GAIN_MOMENTS, are_plain, criterion, eras, bundle, values, table)
    elif kind == EFFECTS:
        compare_lanes(EFFECTS, are_plain, criterion, eras, bundle, values, table)
    elif kind == CHANGING_RATES:
        compare_lanes(CHANGING_RATES, are_plain, criterion, eras, bundle, values, table)
    elif kind == IMPURITIES:
        compare_lanes(IMPURITIES, are_plain, criterion, eras, bundle, values, table)
    elif kind == HELD_OUT_GAINS:
        compare_lanes(HELD_OUT_GAINS, are_plain, criterion, eras, bundle, values, table)


cdef inline void compare_lanes(
    kept_kind kind,          # a constant
    bint are_plain,          # same
    const criterion_struct * criterion,
    const eras_struct * eras,
    const bundle_struct * bundle,
    const summed_values * values,
    masked_table * table,    # IN and OUT
) noexcept nogil:
    cdef:
        double min_samples = criterion.min_samples_per_era
        const long long * integers
        const long long * counts
        const long long * plain
        side_lanes all_left, all_right
        kept_lanes kept
        double gradients, rows, weight, unit_of_gains, share, impurity
        era_sums left, right
        Py_ssize_t i, j, first, lane
    for j in range(bundle.n_lanes // LANES):
        first = j * LANES
        kept = table.kept[j]
        all_left = table.left[j]
        all_right = table.right[j]
        for i in range(table.n_eras):
            integers = table.sums[i].integers
            counts = table.sums[i].counts
            plain = table.sums[i].plain
            rows = <double> counts[bundle.n_splits]
            gradients = values.unit * <double> integers[bundle.n_splits]
            weight = rows
            if are_plain:
                weight = values.hessian_unit * <double> integers[bundle.n_splits]
            if kind <= GAINS_AND_DIRECTIONS and rows < 2.0 * min_samples:
                continue  # no split covers it
            unit_of_gains = gain_unit(criterion, weight, eras.gradient_variance)
            share = rows / eras.era_sizes[table.codes[i]]
            impurity = eras.impurities[table.codes[i]]
            for lane in range(LANES):
                left.count = <double> counts[first + lane]
                if are_plain:
                    left.gradients = values.unit * <double> plain[first + lane]
                    left.hessians = (
                        values.hessian_unit * <double> integers[first + lane]
                    )
                    # More digits than a double has cancel here.
                    right.gradients = values.unit * <double> (
                        plain[bundle.n_splits] - plain[first + lane]
                    )
                else:
                    left.gradients = values.unit * <double> integers[first + lane]
                    left.hessians = left.count
                    right.gradients = gradients - left.gradients
                right.count = rows - left.count
                right.hessians = weight - left.hessians
                add_to_lane(
                    kind, are_plain, criterion, left, right, unit_of_gains, share,
                    impurity, &all_left, &all_right, &kept, lane,
                )
        table.kept[j] = kept


cdef inline void add_to_lane(
    kept_kind kind,
    bint are_plain,
    const criterion_struct * criterion,
    era_sums left,
    era_sums right,
    double unit_of_gains,
    double share,            # of the era's rows, in the node
    double impurity,         # of the era
    const side_lanes * all_left,
    const side_lanes * all_right,
    kept_lanes * kept,       # IN and OUT
    Py_ssize_t lane,
) noexcept nogil:
    """Add what an era says of a split; see `look_at_era` and `add_terms`."""
    cdef:
        double l2 = criterion.l2_regularization
        double covered = is_covered(left, right, criterion.min_samples_per_era)
        double informative = covered
        double decrease
        era_comparison era
        boltzmann_sums gains
        boltzmann_kind alpha_kind = (
            boltzmann_kind.SMOOTHED if kind == SMOOTHED_GAINS
            else boltzmann_kind.EXTREME
        )
        impurity_totals totals
        side_sums of_all
    if are_plain:
        informative = is_informative(left, right, criterion.min_samples_per_era)
    kept.n_covered[lane] += covered
    if kind == HELD_OUT_GAINS:
        of_all.left = side_of_lane(all_left, lane)
        of_all.right = side_of_lane(all_right, lane)
        kept.held_out[lane] += (
            held_out_gain(left, right, &of_all, l2) * unit_of_gains
        )
        return
    if kind == EFFECTS or kind == CHANGING_RATES or kind == IMPURITIES:
        left = neutral_unless(informative, left)
        right = neutral_unless(informative, right)
    if kind == EFFECTS:
        add_moment(kept, lane, era_effect(left, right, l2), informative)
    elif kind == CHANGING_RATES:
        add_moment(kept, lane, era_changing_rate(left, right, l2), informative)
    elif kind == IMPURITIES:
        totals = impurities_of_lane(kept, lane)
        decrease = impurity_decrease(left, right)
        add_impurity(&totals, impurity, informative, decrease, share * decrease)
        keep_impurities(kept, lane, totals)
    else:
        era = compare_if(informative, left, right, l2)
        if kind == DIRECTIONS or kind == GAINS_AND_DIRECTIONS:
            kept.directions[lane] += era.direction
        if kind == MEAN_GAINS or kind == GAINS_AND_DIRECTIONS:
            kept.gains[lane] += era.gain * unit_of_gains
        elif kind == GAIN_MOMENTS:
            add_moment(kept, lane, era.gain * unit_of_gains, 1.0)
        elif kind == SMOOTHED_GAINS or kind == EXTREME_GAINS:
            gains = add_to_boltzmann(
                alpha_kind, criterion.boltzmann_alpha, gains_of_lane(kept, lane),
                era.gain * unit_of_gains, 1.0,
            )
            keep_gains(kept, lane, gains)


cdef inline era_sums side_of_lane(
    const side_lanes * lanes, Py_ssize_t lane
) noexcept nogil:
    cdef era_sums side
    side.gradients = lanes.gradients[lane]
    side.hessians = lanes.hessians[lane]
    side.count = lanes.counts[lane]
    return side


cdef inline void add_moment(
    kept_lanes * kept,      # IN and OUT
    Py_ssize_t lane,
    double value,
    double count,
) noexcept nogil:
    cdef moment_sums moments = moments_of_lane(kept, lane)
    add_to_moments(&moments, value, count)
    keep_moments(kept, lane, moments)


cdef inline void add_in_turn(
    const criterion_struct * criterion,
    const eras_struct * eras,
    int n_splits,
    const summed_values * values,
    const masked_table * table,
    split_sums * splits,     # IN and OUT
) noexcept nogil:
    """One split after the other, for any criterion."""
    cdef:
        const masked_sums * sums
        era_sums left, right
        side_sums of_all
        int i, j
    for i in range(table.n_eras):
        sums = &table.sums[i]
        for j in range(n_splits):
            left.gradients = values.unit * <double> sums.integers[j]
            left.count = sums.counts[j]
            left.hessians = left.count
            right.gradients = values.unit * <double> (
                sums.integers[n_splits] - sums.integers[j]
            )
            right.count = sums.counts[n_splits] - sums.counts[j]
            right.hessians = right.count
            if sums.plain != NULL:
                left.hessians = values.hessian_unit * <double> sums.integers[j]
                right.hessians = values.hessian_unit * <double> (
                    sums.integers[n_splits] - sums.integers[j]
                )
                left.gradients = values.unit * <double> sums.plain[j]
                right.gradients = values.unit * <double> (
                    sums.plain[n_splits] - sums.plain[j]
                )
            add_era(criterion, eras, table.codes[i], left, right, &splits[j])
            if criterion.traits.sees_all_eras:
                of_all.left = side_of_lane(&table.left[j // LANES], j % LANES)
                of_all.right = side_of_lane(&table.right[j // LANES], j % LANES)
                add_beside_all(criterion, eras, left, right, &of_all, &splits[j])
