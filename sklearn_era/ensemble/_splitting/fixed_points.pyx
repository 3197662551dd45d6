"""Round gradients and hessians to fixed points, which are scaled integers.

The largest value has as many bits as an exact sum over all rows allows: 33 for a
million rows, as a double has 53. So few bits do not suffice if values vary by many
orders of magnitude, or if rows have weights, as weighted rows must keep their ratio of
gradient to hessian as in float32. Then a second integer (a low word) has the remainder
of each value.
"""

from cython.parallel import prange
from libc.math cimport fabs, frexp, isfinite, ldexp
from libc.stdint cimport int32_t
from libc.string cimport memcpy

from .._arrays cimport G_H_DTYPE_C

cdef enum:
    # A fixed point of fewer bits is too coarse; one gradient in 1,000 may be.
    LEAST_BITS = 12
    # No hessian may have fewer, as a leaf may have such rows only.
    LEAST_HESSIAN_BITS = 16
    # One square in 1,000 may be: errors are as small as those of large squares.
    LEAST_SQUARE_BITS = 6
    # The same two for rows with weights.
    LEAST_WEIGHTED_BITS = 23
    LEAST_WEIGHT_BITS = 24


cdef set_units(
    summed_values * values,  # IN and OUT
    int n_samples,
    int sum_bits,            # of an integer whose sum is exact as a double
    int packed_bits,         # of an integer beside a row count
    int plain_bits,          # of one alone
    bint has_weights,        # of rows
    int n_threads,
    exchange,                # an `Exchange`
):
    """Set the units and `has_low_words` of `values`, equally in all processes."""
    cdef bint vary = values.hessians != NULL
    cdef int least_bits
    values.are_finite = True
    values.has_low_words = False
    fix_point(
        values, values.gradients, n_samples, plain_bits if vary else packed_bits,
        LEAST_WEIGHTED_BITS if vary and has_weights else LEAST_BITS, 0.001, n_threads,
        exchange, &values.scale, &values.unit,
    )
    if vary:
        least_bits = LEAST_WEIGHT_BITS if has_weights else LEAST_HESSIAN_BITS
        if values.has_squares:  # as many bits short as two gradients
            least_bits = (packed_bits + LEAST_SQUARE_BITS) // 2
        fix_point(
            values, values.hessians, n_samples, packed_bits, least_bits,
            0.001 if values.has_squares else 0.0, n_threads,
            exchange, &values.hessian_scale, &values.hessian_unit,
        )
    if values.has_squares:
        values.hessian_scale *= ldexp(values.hessian_scale, -packed_bits)
        values.hessian_unit = 1.0 / values.hessian_scale
    values.low_scale = ldexp(1.0, sum_bits)


cdef fix_point(
    summed_values * summed,  # OUT: flags
    const G_H_DTYPE_C * values, int n_samples, int n_bits, int least_bits, double share,
    int n_threads, exchange, double * scale,  # OUT
    double * unit,   # OUT
):
    """Set `scale` and `unit` so that the largest value is an integer of `n_bits` bits.
    Set `are_finite` to False if a value is not finite, and `has_low_words` to True if
    more than the given `share` of values have fewer than `least_bits` bits.
    """
    cdef:
        double limit
        int exponent = 0, n_small = 0, i
    (largest,) = exchange.max_of(largest_of(values, n_samples))
    if not isfinite(largest):
        summed.are_finite = False
        return
    frexp(largest, &exponent)
    scale[0] = ldexp(1.0, n_bits - exponent)
    unit[0] = ldexp(1.0, exponent - n_bits)
    limit = ldexp(unit[0], least_bits)
    for i in prange(n_samples, schedule="static", nogil=True, num_threads=n_threads):
        n_small += 0.0 < fabs(values[i]) < limit
    n_small_of_all, n_all = exchange.sum_of(n_small, n_samples)
    summed.has_low_words |= n_small_of_all > share * n_all


cdef float largest_of(const G_H_DTYPE_C * values, int n_samples) noexcept nogil:
    """Return the largest absolute value, or infinity if any value is not finite."""
    cdef:
        int32_t largest = 0, magnitude
        float value
        int i
    # Without their sign, floats are in the order of their bits: a loop over vectors.
    for i in range(n_samples):
        memcpy(&magnitude, &values[i], sizeof(magnitude))
        magnitude &= 0x7FFFFFFF
        largest = magnitude if magnitude > largest else largest
    largest = min(largest, 0x7F800000)  # infinity for NaN, which a maximum may lose
    memcpy(&value, &largest, sizeof(value))
    return value


cdef double sum_all(
    const G_H_DTYPE_C * values, int n_samples, double scale,
    double low_scale,      # 0: without remainders
    int n_threads,
) noexcept nogil:
    """Sum up all fixed points exactly; return the sum in their unit, rounded once."""
    cdef:
        long long total = 0, low_total = 0
        int i
    for i in prange(n_samples, schedule="static", num_threads=n_threads):
        total += fixed_point(values[i], scale)
    if low_scale == 0.0:
        return <double> total
    for i in prange(n_samples, schedule="static", num_threads=n_threads):
        low_total += low_point(values[i], scale, low_scale)
    return <double> total + <double> low_total / low_scale
