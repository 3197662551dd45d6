# "era": the gains of eras, aggregated by the Boltzmann operator. DeLise (2023), Era
# Splitting.

from libc.math cimport INFINITY, fabs

from .criterion cimport criterion_struct, split_rank
from .formulas cimport eras_struct


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* exp(x) for x <= 0, to about the last digit; 0 if the result is subnormal.
     * Inline and branch-free, so that loops over it vectorise.
     *
     * x = n log(2) + r, with log(2) in two parts, so that its multiples by n are exact;
     * exp(x) = 2^n exp(r), with exp(r) by its Taylor series, as |r| <= log(2) / 2. */
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
    # The Boltzmann operator B_alpha(x) = sum_j x_j exp(alpha x_j) / sum_j exp(alpha
    # x_j), by kinds of alpha. DeLise (2023), definition 5.
    MEAN      # alpha = 0
    SMOOTHED  # any other finite alpha
    EXTREME   # alpha = -inf is the minimum, and inf the maximum


cdef inline boltzmann_kind kind_of_alpha(double alpha) noexcept nogil:
    if alpha == 0.0:
        return boltzmann_kind.MEAN
    if -INFINITY < alpha < INFINITY:
        return boltzmann_kind.SMOOTHED
    return boltzmann_kind.EXTREME


# Sums of gains. The largest exponent is subtracted from all, so that no weight
# overflows and the largest is 1. The operator is an offset from the value with that
# weight: offsets have one sign, so nothing cancels. A MEAN has OFFSETS only, from 0.
cdef enum:
    OFFSETS  # sum_j (x_j - extreme) exp(alpha (x_j - extreme))
    WEIGHTS  # sum_j exp(alpha (x_j - extreme)); 0 without values
    EXTREME_GAIN  # the value with the largest weight so far
    N_GAIN_FIELDS


cdef inline void add_gain(
    boltzmann_kind kind,  # a constant
    double alpha, double gain, double count, double * sums,  # IN and OUT
    Py_ssize_t stride,
) noexcept nogil:
    cdef double is_extreme
    if kind == boltzmann_kind.MEAN:
        sums[0] += count * gain
    elif kind == boltzmann_kind.SMOOTHED:
        add_smoothed(alpha, gain, count, sums, stride)
    else:
        is_extreme = 1.0 if sums[WEIGHTS * stride] == 0.0 else 0.0
        is_extreme = (
            1.0 if alpha * (gain - sums[EXTREME_GAIN * stride]) > 0.0 else is_extreme
        )
        sums[EXTREME_GAIN * stride] = (
            gain if count * is_extreme > 0.0 else sums[EXTREME_GAIN * stride]
        )
        sums[WEIGHTS * stride] += count


cdef inline void add_smoothed(
    double alpha, double gain, double count, double * sums, Py_ssize_t stride
) noexcept nogil:
    """Add a gain `count` times to SMOOTHED sums, without a branch, and with one
    exponential: the weight of the gain or, if the gain is a new extreme, the factor of
    all earlier weights.
    """
    cdef:
        double offsets = sums[0]
        double weights = sums[WEIGHTS * stride]
        double former = sums[EXTREME_GAIN * stride]
        double is_first = 1.0 if weights == 0.0 else 0.0
        double extreme = former + is_first * (gain - former)
        double offset = gain - extreme
        double is_extreme = count * (1.0 if alpha * offset > 0.0 else 0.0)
        double shrunk = exp_of_negative(-fabs(alpha * offset))
        double new_offsets = (offsets - weights * offset) * shrunk
        double new_weights = weights * shrunk + count
    extreme = extreme if count > 0.0 else former
    sums[0] = new_offsets if is_extreme > 0.0 else offsets + count * offset * shrunk
    sums[WEIGHTS * stride] = (
        new_weights if is_extreme > 0.0 else weights + count * shrunk
    )
    sums[EXTREME_GAIN * stride] = gain if is_extreme > 0.0 else extreme


cdef inline void merge_gains(
    double alpha, double * sums, const double * others
) noexcept nogil:
    """Add `others`, the sums of other eras' gains, to `sums`; alpha is not 0 (MEAN)."""
    cdef:
        double offset = others[EXTREME_GAIN] - sums[EXTREME_GAIN]
        double shrunk
        int i
    if others[WEIGHTS] == 0.0:
        return
    if sums[WEIGHTS] == 0.0:
        for i in range(N_GAIN_FIELDS):
            sums[i] = others[i]
    elif kind_of_alpha(alpha) == boltzmann_kind.EXTREME:
        sums[WEIGHTS] += others[WEIGHTS]
        if alpha * offset > 0.0:
            sums[EXTREME_GAIN] = others[EXTREME_GAIN]
    elif alpha * offset > 0.0:
        shrunk = exp_of_negative(-alpha * offset)
        sums[OFFSETS] = (sums[OFFSETS] - sums[WEIGHTS] * offset) * shrunk
        sums[OFFSETS] += others[OFFSETS]
        sums[WEIGHTS] = sums[WEIGHTS] * shrunk + others[WEIGHTS]
        sums[EXTREME_GAIN] = others[EXTREME_GAIN]
    else:
        shrunk = exp_of_negative(alpha * offset)
        sums[OFFSETS] += (others[OFFSETS] + others[WEIGHTS] * offset) * shrunk
        sums[WEIGHTS] += others[WEIGHTS] * shrunk


cdef inline double smoothed_mean(const double * sums) noexcept nogil:
    """Return the Boltzmann mean B_alpha of values, from the values' SMOOTHED sums."""
    return sums[EXTREME_GAIN] + sums[OFFSETS] / sums[WEIGHTS]


cdef inline double boltzmann(
    double alpha, const double * sums, double n_values
) noexcept nogil:
    """Return the Boltzmann mean B_alpha of the values that were added to `sums`."""
    cdef boltzmann_kind kind = kind_of_alpha(alpha)
    if kind == boltzmann_kind.MEAN:
        return sums[OFFSETS] / n_values
    if kind == boltzmann_kind.EXTREME:
        return sums[EXTREME_GAIN]
    return smoothed_mean(sums)


cdef inline bint rank_era(
    const criterion_struct * criterion, const eras_struct * eras,
    const double * gains, split_rank * rank,
) noexcept nogil:
    """Set a split's key to the Boltzmann mean of eras' gains; return whether it is > 0.
    DeLise (2023), definition 6, equation 36.
    """
    rank.primary = boltzmann(criterion.boltzmann_alpha, gains, eras.n_eras)
    return rank.primary > 0.0
