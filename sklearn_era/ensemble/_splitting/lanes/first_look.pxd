# A first look at eras, one in each lane of a vector, by words that stay packed.
#
# It finds directions, or estimates of gains; the splits that may be the best by these
# are compared once more, by the criterion's own formulas. Of a word, the low bits are a
# number of rows and those above it a sum of gradients. So where a left side has the
# word l and n rows, and the era L and N,
#
#     d = n L / N - l
#
# is the contrast of both sides but for a factor of the era. With l2 it is the same with
# other constants. And d^2 N / (n (N - n)) is the gain, without l2.

from libc.math cimport copysign, fabs, sqrt

from sklearn.ensemble._hist_gradient_boosting.common cimport hist_struct

from .functions cimport DIRECTIONS, MEAN_GAINS, bin_order, kept_kind
from .table cimport first_look
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.era_statistics cimport LIKENESS, era_sums
from ..._criteria.split_sums cimport LANES, compare_counted_sides, era_comparison


cdef extern from *:
    """
    #if defined(__AVX512DQ__) || !defined(__GNUC__)
    #define word_as_double(word) ((double)(word))
    #define count_as_double(count) ((double)(count))
    #else
    /* Vectors have no such conversion: by bits, of a double of a size that is known. */
    static inline double double_of_bits(unsigned long long bits) {
        double value;
        __builtin_memcpy(&value, &bits, sizeof(value));
        return value;
    }
    static inline double count_as_double(long long count) {  /* below 2^52 */
        return double_of_bits(count | 0x4330000000000000ULL) - 0x1p52;
    }
    static inline double word_as_double(long long word) {
        unsigned long long bits = (unsigned long long)word ^ (1ULL << 63);
        double high = double_of_bits((bits >> 32) | 0x4530000000000000ULL);
        double low = double_of_bits((bits & 0xffffffffULL) | 0x4330000000000000ULL);
        return (high - (0x1p84 + 0x1p63 + 0x1p52)) + low;
    }
    #endif
    """
    double word_as_double(long long word) noexcept nogil
    double count_as_double(long long count) noexcept nogil


cdef inline void look_first(
    const criterion_struct * criterion,
    const bin_order * order,
    int first_bin,
    first_look * table,  # IN and OUT
) noexcept nogil:
    """Add what the eras in the lanes say of an order's splits, as far as is looked at.

    Directions are those of `compare_counted_sides`; gains are estimates.
    """
    if criterion.traits.aggregates_gains:
        look_at_order(MEAN_GAINS, criterion, order, first_bin, table)
    else:
        look_at_order(DIRECTIONS, criterion, order, first_bin, table)


cdef inline void look_at_order(
    kept_kind kind,      # a constant
    const criterion_struct * criterion,
    const bin_order * order,
    int first_bin,
    first_look * table,  # IN and OUT
) noexcept nogil:
    cdef:
        long long[LANES] left
        # Of each era: d = count * slope + start - left, and whether it is of a size
        # that leaves no doubt about the direction.
        double[LANES] slope, start, margin, most, counts, scale
        double[LANES] too_few_left, n_covered, n_decided  # splits
        long long one = 1
        long long mask = (one << table.count_bits) - 1
        double l2 = criterion.l2_regularization
        double least = criterion.min_samples_per_era
        double count, weight, d, n, said, product
        bint is_covered, is_decided
        Py_ssize_t i, lane, row, place

    for lane in range(LANES):
        count = <double> (table.totals[lane] & mask)
        weight = count + 2.0 * l2 if count > 0.0 else 1.0
        counts[lane] = count
        most[lane] = count - least
        slope[lane] = <double> (
            table.totals[lane] - (table.totals[lane] & mask)
        ) / weight
        start[lane] = l2 * slope[lane]
        slope[lane] += 1.0
        margin[lane] = 0.5 * LIKENESS * table.largest_word * weight
        scale[lane] = sqrt(count) / table.largest_word
        left[lane] = 0
        too_few_left[lane] = 0.0
        n_covered[lane] = 0.0
        n_decided[lane] = 0.0
    for i in range(order.stop):
        row = (first_bin + order.bins[i]) * LANES
        if i < order.first:
            for lane in range(LANES):
                left[lane] += table.words[row + lane]
            continue
        place = (order.first_split + i - order.first) * LANES
        for lane in range(LANES):
            left[lane] += table.words[row + lane]
            count = count_as_double(left[lane] & mask)
            d = count * slope[lane] + start[lane] - word_as_double(left[lane])
            is_covered = (count >= least) & (count <= most[lane])
            d = d if is_covered else 0.0
            n = too_few_left[lane]
            too_few_left[lane] = n + 1.0 if count < least else n
            n = n_covered[lane]
            n_covered[lane] = n + 1.0 if is_covered else n
            said = table.said[place + lane]
            if kind == DIRECTIONS:
                is_decided = fabs(d) > margin[lane]
                table.said[place + lane] = (
                    said + copysign(1.0, d) if is_decided else said
                )
                n = n_decided[lane]
                n_decided[lane] = n + 1.0 if is_decided else n
            else:
                d *= scale[lane]
                product = count * (counts[lane] - count)
                product = product if is_covered else 1.0
                table.said[place + lane] = said + d * (d / product)
    n = 0.0
    for lane in range(LANES):
        n += n_covered[lane] - n_decided[lane]
        # Of an era, the splits that cover it are neighbours.
        i = order.first_split + <int> too_few_left[lane]
        table.covered[i] += n_covered[lane] > 0.0
        i += <int> n_covered[lane]
        table.covered[i] -= n_covered[lane] > 0.0
    if kind == DIRECTIONS and n > 0.0:
        settle_directions(criterion, order, first_bin, slope, start, margin, table)


cdef inline void settle_directions(
    const criterion_struct * criterion,
    const bin_order * order,
    int first_bin,
    const double * slope,
    const double * start,
    const double * margin,
    first_look * table,  # IN and OUT
) noexcept nogil:
    """Add the directions that are left in doubt, by their own formula."""
    cdef:
        long long[LANES] words
        double[LANES] gradients, counts  # of the era
        long long one = 1
        long long mask = (one << table.count_bits) - 1
        double l2 = criterion.l2_regularization
        double d, said
        era_sums left, right
        era_comparison era
        Py_ssize_t i, lane, row, place
    for lane in range(LANES):
        words[lane] = 0
        gradients[lane] = <double> (table.totals[lane] >> table.count_bits)
        counts[lane] = <double> (table.totals[lane] & mask)
    for i in range(order.stop):
        row = (first_bin + order.bins[i]) * LANES
        if i < order.first:
            for lane in range(LANES):
                words[lane] += table.words[row + lane]
            continue
        place = (order.first_split + i - order.first) * LANES
        for lane in range(LANES):
            words[lane] += table.words[row + lane]
            left.count = count_as_double(words[lane] & mask)
            left.hessians = left.count
            left.gradients = word_as_double(words[lane] >> table.count_bits)
            right.count = counts[lane] - left.count
            right.hessians = right.count
            right.gradients = gradients[lane] - left.gradients
            era = compare_counted_sides(left, right, criterion.min_samples_per_era, l2)
            d = left.count * slope[lane] + start[lane] - word_as_double(words[lane])
            said = table.said[place + lane]
            table.said[place + lane] = (
                said if fabs(d) > margin[lane] else said + era.direction
            )


cdef inline void sum_bins(
    int n_codes,         # of the bundle's first feature
    int n_bins,          # of all of them, to be pooled
    first_look * table,  # IN and OUT
) noexcept nogil:
    """The sum of each lane, and the sums over eras."""
    cdef:
        long long[LANES] totals
        Py_ssize_t i, lane
    for lane in range(LANES):
        totals[lane] = 0
    for i in range(n_codes):
        for lane in range(LANES):
            totals[lane] += table.words[i * LANES + lane]
    for lane in range(LANES):
        table.totals[lane] = totals[lane]
    for i in range(n_bins * LANES):
        table.pooled[i] += table.words[i]


cdef inline void pool_words(
    const first_look * table,
    int first_bin,
    int n_codes,
    double unit,
    hist_struct * pooled,  # IN and OUT
) noexcept nogil:
    """Add the sums over eras of a feature to those of the node."""
    cdef:
        long long one = 1
        long long mask = (one << table.count_bits) - 1
        long long gradients, count
        Py_ssize_t i, lane
    for i in range(first_bin, first_bin + n_codes):
        gradients = 0
        count = 0
        for lane in range(LANES):
            gradients += table.pooled[i * LANES + lane] >> table.count_bits
            count += table.pooled[i * LANES + lane] & mask
        pooled[i].sum_gradients += unit * <double> gradients
        pooled[i].sum_hessians += <double> count
        pooled[i].count += <unsigned int> count
