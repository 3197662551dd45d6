# From one number an era to one number a split.
#
# Eras come one by one, so that none of their numbers has to be kept: each way to
# aggregate is a function that adds an era to some running sums, and one that turns the
# sums into the result.

from libc.math cimport fabs, sqrt


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


cdef struct boltzmann_sums:
    # Of B_alpha(x) = sum_j x_j exp(alpha x_j) / sum_j exp(alpha x_j), the Boltzmann
    # operator (DeLise 2023, definition 5), for a finite alpha other than 0, at which it
    # is the mean. At -inf it is the minimum, and at +inf the maximum.
    #
    # Exponents are shifted by the largest of them, so that the largest weight is 1 and
    # none overflows, whatever the values' scale. The operator is evaluated as an offset
    # from the value with that weight: the offsets have one sign, so nothing cancels.
    double extreme  # the value with the largest weight, thus far
    double weights  # sum_j exp(alpha (x_j - extreme)); 0 as long as there is no value
    double offsets  # sum_j (x_j - extreme) exp(alpha (x_j - extreme))


cdef inline boltzmann_sums add_to_boltzmann(
    boltzmann_sums sums, double value, double count, double alpha
) noexcept nogil:
    """The sums with `count` times the value.

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
    boltzmann_sums a, boltzmann_sums b, double alpha
) noexcept nogil:
    """The sums over the values of both."""
    cdef double offset, shrunk
    if a.weights == 0.0:
        return b
    if b.weights == 0.0:
        return a
    if alpha * (b.extreme - a.extreme) > 0.0:
        a, b = b, a
    offset = b.extreme - a.extreme
    shrunk = exp_of_negative(alpha * offset)
    a.weights += b.weights * shrunk
    a.offsets += (b.offsets + b.weights * offset) * shrunk
    return a


cdef inline double boltzmann(boltzmann_sums sums) noexcept nogil:
    return sums.extreme + sums.offsets / sums.weights


cdef struct moment_sums:
    # Of the mean and the variance of values. They are counted from one of the values,
    # which is as far from the mean as sqrt(n) deviations at most: so the difference of
    # squares loses few digits, and values that are all alike have a variance of 0.
    double origin   # the first value
    double offsets  # sum_j (x_j - origin)
    double squares  # sum_j (x_j - origin)^2


cdef inline void add_to_moments(
    moment_sums * sums, bint is_first, double value, double count
) noexcept nogil:
    """Add `count` times the value."""
    cdef double offset
    if is_first:
        sums.origin = value
        sums.offsets = 0.0
        sums.squares = 0.0
        return
    offset = value - sums.origin
    sums.offsets += count * offset
    sums.squares += count * offset * offset


cdef inline double mean(const moment_sums * sums, double n_values) noexcept nogil:
    return sums.origin + sums.offsets / n_values


cdef inline double variance(const moment_sums * sums, double n_values) noexcept nogil:
    """Population variance (ddof=0), and 0 of no values as of one."""
    cdef double result
    if n_values < 2.0:
        return 0.0
    result = (sums.squares - sums.offsets * (sums.offsets / n_values)) / n_values
    return max(result, 0.0)  # rounding may go below


cdef inline double mean_less_deviation(
    const moment_sums * sums, double smallest, double n_values, double penalty
) noexcept nogil:
    """mean_j x_j - penalty std_j x_j, with ddof=0.

    Of two values it is the smaller one, and some share of their difference; at
    penalty=1 none. Many splits have the same smaller value then, and must tie: so it
    is taken as it is.

    The variance penalty of Krueger et al. (2021), Out-of-Distribution Generalization
    via Risk Extrapolation (V-REx), with a deviation in place of the variance, so that
    the penalty is a pure number.
    """
    if n_values == 2.0:
        return smallest + 0.5 * (1.0 - penalty) * fabs(sums.offsets)
    return mean(sums, n_values) - penalty * sqrt(variance(sums, n_values))


cdef inline double spread_of_ratios(
    double smallest, double largest, double n_values
) noexcept nogil:
    """max_j I_j / min_j I_j - 1 of positive values, and 0 of no values as of one.

    Equation 16 of Liao et al. (2024), Invariant Random Forest.
    """
    return largest / smallest - 1.0 if n_values >= 2.0 else 0.0
