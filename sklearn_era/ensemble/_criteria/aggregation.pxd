# From one number an era to one number a split.
#
# Eras come one by one, so that none of their numbers has to be kept. Each way to
# aggregate is a commutative monoid: running sums, neutral as zeros, a function that
# adds an era, one that merges the sums of some eras with those of others, and one that
# turns them into the result. Lanes of a vector, chunks of rows and small nodes may thus
# each have sums of their own.

from libc.math cimport INFINITY, fabs, sqrt


cdef inline double direction_agreement(
    double sum_directions, int n_eras
) noexcept nogil:
    """D = |sum_j sign(v_Lj - v_Rj)| / M, in [0, 1]. DeLise (2023), eq. 39."""
    return fabs(sum_directions) / n_eras


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* exp(x) for x <= 0, to about the last digit; 0 where it is below normal numbers.
     * In line and without a branch, so that a loop over it can be a vector's.
     *
     * x = n log(2) + r, with log(2) in two parts, n r's multiples being exact; then
     * exp(x) = 2^n exp(r), the latter by its Taylor series, as |r| <= log(2) / 2. */
    static inline double exp_of_negative(double x)
    {
        const double to_integer = 6755399441055744.0;  /* 1.5 * 2^52 */
        double bounded = x > -708.0 ? x : -708.0;
        double shifted = bounded * 1.4426950408889634074 + to_integer;
        double n = shifted - to_integer;
        double r = bounded - n * 6.93147180369123816490e-01;
        double sum, power;
        int64_t bits;
        r -= n * 1.90821492927058770002e-10;
        sum = 1.0 / 6227020800.0;
        sum = sum * r + 1.0 / 479001600.0;
        sum = sum * r + 1.0 / 39916800.0;
        sum = sum * r + 1.0 / 3628800.0;
        sum = sum * r + 1.0 / 362880.0;
        sum = sum * r + 1.0 / 40320.0;
        sum = sum * r + 1.0 / 5040.0;
        sum = sum * r + 1.0 / 720.0;
        sum = sum * r + 1.0 / 120.0;
        sum = sum * r + 1.0 / 24.0;
        sum = sum * r + 1.0 / 6.0;
        sum = sum * r + 0.5;
        sum = sum * r + 1.0;
        sum = sum * r + 1.0;
        /* The low bits of `shifted` are n in two's complement. */
        memcpy(&bits, &shifted, sizeof(bits));
        bits = (int64_t)((uint64_t)(bits + 1023) << 52);
        memcpy(&power, &bits, sizeof(power));
        return x > -708.0 ? sum * power : 0.0;
    }
    """
    double exp_of_negative(double x) noexcept nogil


cdef enum boltzmann_kind:
    # Of B_alpha(x) = sum_j x_j exp(alpha x_j) / sum_j exp(alpha x_j), the Boltzmann
    # operator. DeLise (2023), definition 5.
    MEAN      # alpha = 0
    SMOOTHED  # any other finite alpha
    EXTREME   # alpha = -inf is the minimum, and inf the maximum


cdef inline boltzmann_kind kind_of_alpha(double alpha) noexcept nogil:
    if alpha == 0.0:
        return boltzmann_kind.MEAN
    if -INFINITY < alpha < INFINITY:
        return boltzmann_kind.SMOOTHED
    return boltzmann_kind.EXTREME


cdef struct boltzmann_sums:
    # Exponents are shifted by the largest of them, so that the largest weight is 1 and
    # none overflows, whatever the values' scale. The operator is evaluated as an offset
    # from the value with that weight: the offsets have one sign, so nothing cancels.
    # A MEAN counts offsets from 0, and leaves the other two alone.
    double extreme  # the value with the largest weight, thus far
    double weights  # sum_j exp(alpha (x_j - extreme)); 0 as long as there is no value
    double offsets  # sum_j (x_j - extreme) exp(alpha (x_j - extreme))


cdef inline boltzmann_sums add_to_boltzmann(
    boltzmann_kind kind, double alpha, boltzmann_sums sums, double value, double count
) noexcept nogil:
    """The sums with `count` times the value."""
    cdef double is_extreme
    if kind == boltzmann_kind.MEAN:
        sums.offsets += count * value
        return sums
    if kind == boltzmann_kind.SMOOTHED:
        return add_smoothed(alpha, sums, value, count)
    is_extreme = 1.0 if sums.weights == 0.0 else 0.0
    is_extreme = 1.0 if alpha * (value - sums.extreme) > 0.0 else is_extreme
    sums.extreme = value if count * is_extreme > 0.0 else sums.extreme
    sums.weights += count
    return sums


cdef inline boltzmann_sums add_smoothed(
    double alpha, boltzmann_sums sums, double value, double count
) noexcept nogil:
    """As `add_to_boltzmann`.

    A new extreme moves the offsets and shrinks the former weights, by the exponential
    that would else be the new value's weight: there is one for each value. Written as
    selections, for a lane of a vector.
    """
    cdef:
        double is_first = 1.0 if sums.weights == 0.0 else 0.0
        double extreme = sums.extreme + is_first * (value - sums.extreme)
        double offset = value - extreme
        double is_extreme = count * (1.0 if alpha * offset > 0.0 else 0.0)
        double shrunk = exp_of_negative(-fabs(alpha * offset))
        double new_offsets = (sums.offsets - sums.weights * offset) * shrunk
        double new_weights = sums.weights * shrunk + count
        boltzmann_sums result
    extreme = extreme if count > 0.0 else sums.extreme
    result.extreme = value if is_extreme > 0.0 else extreme
    result.offsets = (
        new_offsets if is_extreme > 0.0 else sums.offsets + count * offset * shrunk
    )
    result.weights = (
        new_weights if is_extreme > 0.0 else sums.weights + count * shrunk
    )
    return result


cdef inline boltzmann_sums merge_boltzmann(
    boltzmann_kind kind, double alpha, boltzmann_sums a, boltzmann_sums b
) noexcept nogil:
    """The sums over the values of both."""
    if kind == boltzmann_kind.MEAN:
        a.offsets += b.offsets
        return a
    if a.weights == 0.0:
        return b
    if b.weights == 0.0:
        return a
    if alpha * (b.extreme - a.extreme) > 0.0:
        a, b = b, a
    if kind == boltzmann_kind.SMOOTHED:
        b = counted_from_extreme(alpha, b, a.extreme)
        a.offsets += b.offsets
    a.weights += b.weights
    return a


cdef inline boltzmann_sums counted_from_extreme(
    double alpha, boltzmann_sums sums, double extreme
) noexcept nogil:
    """SMOOTHED sums, counted from an extreme that none of their values exceeds."""
    cdef:
        double offset = sums.extreme - extreme
        double shrunk = exp_of_negative(alpha * offset)
    sums.offsets = (sums.offsets + sums.weights * offset) * shrunk
    sums.weights *= shrunk
    sums.extreme = extreme
    return sums


cdef inline double boltzmann(
    boltzmann_kind kind, boltzmann_sums sums, double n_values
) noexcept nogil:
    """B_alpha of the values."""
    if kind == boltzmann_kind.MEAN:
        return sums.offsets / n_values
    if kind == boltzmann_kind.EXTREME:
        return sums.extreme
    return sums.extreme + sums.offsets / sums.weights


cdef struct moment_sums:
    # Of the mean, the variance and the range of values. They are counted from one of
    # the values, which is as far from the mean as sqrt(n) deviations at most: so the
    # difference of squares loses few digits, and values that are all alike have a
    # variance of 0.
    double n_values
    double origin    # the first value
    double offsets   # sum_j (x_j - origin)
    double squares   # sum_j (x_j - origin)^2
    double smallest
    double largest


cdef inline void add_to_moments(
    moment_sums * sums, double value, double count
) noexcept nogil:
    """Add `count` times the value, be it 0 times. As selections, for a vector's lane.
    """
    cdef:
        double is_first = 1.0 if sums.n_values == 0.0 else 0.0
        double offset = 0.0 if is_first > 0.0 else value - sums.origin
        double is_smaller = 1.0 if value < sums.smallest else is_first
        double is_larger = 1.0 if value > sums.largest else is_first
    sums.origin = value if is_first > 0.0 else sums.origin
    sums.smallest = value if count * is_smaller > 0.0 else sums.smallest
    sums.largest = value if count * is_larger > 0.0 else sums.largest
    sums.n_values += count
    sums.offsets += count * offset
    sums.squares += count * offset * offset


cdef inline void merge_moments(
    moment_sums * sums, const moment_sums * others
) noexcept nogil:
    """Add the values of `others`, counted from the origin of `sums`."""
    cdef moment_sums moved
    if others.n_values == 0.0:
        return
    if sums.n_values == 0.0:
        sums[0] = others[0]
        return
    moved = counted_from_origin(others[0], sums.origin)
    sums.n_values += moved.n_values
    sums.offsets += moved.offsets
    sums.squares += moved.squares
    sums.smallest = min(sums.smallest, moved.smallest)
    sums.largest = max(sums.largest, moved.largest)


cdef inline moment_sums counted_from_origin(
    moment_sums sums, double origin
) noexcept nogil:
    cdef double shift = sums.origin - origin
    sums.squares += shift * (2.0 * sums.offsets + sums.n_values * shift)
    sums.offsets += sums.n_values * shift
    sums.origin = origin
    return sums


cdef inline double mean(const moment_sums * sums) noexcept nogil:
    return sums.origin + sums.offsets / sums.n_values


cdef inline double variance(const moment_sums * sums) noexcept nogil:
    """Population variance (ddof=0), and 0 of no values as of one."""
    cdef double result
    if sums.n_values < 2.0:
        return 0.0
    result = sums.squares - sums.offsets * (sums.offsets / sums.n_values)
    return max(result / sums.n_values, 0.0)  # rounding may go below


cdef inline double mean_less_deviation(
    const moment_sums * sums, double penalty
) noexcept nogil:
    """mean_j x_j - penalty std_j x_j, with ddof=0.

    Of two values it is the smaller one, and some share of their difference; at
    penalty=1 none. Many splits have the same smaller value then, and must tie: so it
    is taken as it is.

    The variance penalty of Krueger et al. (2021), Out-of-Distribution Generalization
    via Risk Extrapolation (V-REx), with a deviation in place of the variance, so that
    the penalty is a pure number.
    """
    if sums.n_values == 2.0:
        return sums.smallest + 0.5 * (1.0 - penalty) * fabs(sums.offsets)
    return mean(sums) - penalty * sqrt(variance(sums))


cdef inline double spread_of_ratios(const moment_sums * sums) noexcept nogil:
    """max_j I_j / min_j I_j - 1 of positive values, and 0 of no values as of one.

    Equation 16 of Liao et al. (2024), Invariant Random Forest.
    """
    return sums.largest / sums.smallest - 1.0 if sums.n_values >= 2.0 else 0.0


cdef struct impurity_totals:
    # Of the impurities of eras after a split, and of what each era's share of rows
    # makes of their decreases. Of eras that are not informative, the impurity only.
    double n_informative
    double impurities  # sum
    double worst       # largest
    double decreases   # sum
    double least       # smallest decrease


cdef inline void add_impurity(
    impurity_totals * totals,
    double before,       # the split; of the era
    double informative,  # 0 or 1
    double decrease,     # of an informative era, else 0
    double share,        # the decrease, weighted by the era's share of rows
) noexcept nogil:
    """Add the impurity of an era after the split, and its decrease. As selections."""
    cdef:
        double after = before - decrease
        double is_worst = 1.0 if after > totals.worst else 0.0
        double is_first = 1.0 if totals.n_informative == 0.0 else 0.0
        double is_least = 1.0 if share < totals.least else is_first
    totals.impurities += 0.0 if after < 0.0 else after  # rounding may go below
    totals.worst = after if informative * is_worst > 0.0 else totals.worst
    totals.decreases += share
    totals.least = share if informative * is_least > 0.0 else totals.least
    totals.n_informative += informative


cdef inline void merge_impurities(
    impurity_totals * totals, const impurity_totals * others
) noexcept nogil:
    totals.impurities += others.impurities
    if others.n_informative == 0.0:
        return
    totals.worst = max(totals.worst, others.worst)
    totals.decreases += others.decreases
    if totals.n_informative == 0.0 or others.least < totals.least:
        totals.least = others.least
    totals.n_informative += others.n_informative
