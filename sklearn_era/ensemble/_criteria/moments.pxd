# The mean, the variance and the range of one number an era.

from libc.math cimport fabs


# Values are counted from one of them, which is as far from the mean as sqrt(n)
# deviations at most: so the difference of squares loses few digits, and values that are
# all alike have a variance of 0.
cdef enum:
    N_VALUES
    ORIGIN    # the first value
    SHIFTED   # sum_j (x_j - origin)
    SQUARES   # sum_j (x_j - origin)^2
    SMALLEST
    LARGEST
    N_MOMENT_FIELDS


cdef inline void add_to_moments(
    double value, double count, double * sums, Py_ssize_t stride
) noexcept nogil:
    """Add `count` times the value, be it 0 times. As selections, for a vector's lane.
    """
    cdef:
        double origin = sums[ORIGIN * stride]
        double smallest = sums[SMALLEST * stride]
        double largest = sums[LARGEST * stride]
        double is_first = 1.0 if sums[0] == 0.0 else 0.0
        double offset = 0.0 if is_first > 0.0 else value - origin
        double is_smaller = 1.0 if value < smallest else is_first
        double is_larger = 1.0 if value > largest else is_first
    sums[0] += count
    sums[ORIGIN * stride] = value if is_first > 0.0 else origin
    sums[SHIFTED * stride] += count * offset
    sums[SQUARES * stride] += count * offset * offset
    sums[SMALLEST * stride] = value if count * is_smaller > 0.0 else smallest
    sums[LARGEST * stride] = value if count * is_larger > 0.0 else largest


cdef inline void merge_moments(double * sums, const double * others) noexcept nogil:
    """Add the values of other eras, counted from the origin of `sums`."""
    cdef:
        double shift = others[ORIGIN] - sums[ORIGIN]
        double n_others = others[N_VALUES]
        int i
    if n_others == 0.0:
        return
    if sums[N_VALUES] == 0.0:
        for i in range(N_MOMENT_FIELDS):
            sums[i] = others[i]
        return
    sums[N_VALUES] += n_others
    sums[SQUARES] += others[SQUARES]
    sums[SQUARES] += shift * (2.0 * others[SHIFTED] + n_others * shift)
    sums[SHIFTED] += others[SHIFTED] + n_others * shift
    sums[SMALLEST] = min(sums[SMALLEST], others[SMALLEST])
    sums[LARGEST] = max(sums[LARGEST], others[LARGEST])


cdef inline double mean(const double * sums) noexcept nogil:
    return sums[ORIGIN] + sums[SHIFTED] / sums[N_VALUES]


cdef inline double variance(const double * sums) noexcept nogil:
    """Population variance (ddof=0), and 0 of no values as of one."""
    cdef double result
    if sums[N_VALUES] < 2.0:
        return 0.0
    result = sums[SQUARES] - sums[SHIFTED] * (sums[SHIFTED] / sums[N_VALUES])
    return max(result / sums[N_VALUES], 0.0)  # rounding may go below
