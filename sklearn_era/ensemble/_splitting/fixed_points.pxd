# The values of rows that are summed up, and their fixed points: values as integers.

from libc.math cimport llrint

from .._arrays cimport G_H_DTYPE_C


cdef extern from *:
    """
    #if defined(__AVX512DQ__) || !defined(__GNUC__)
    #define word_as_double(word) ((double)(word))
    #define count_as_double(count) ((double)(count))
    #else
    /* Narrower vectors lack this conversion: set the bits of doubles with a known
       exponent. Exact below 2^53. */
    static inline double double_of_bits(unsigned long long bits) {
        double value;
        __builtin_memcpy(&value, &bits, sizeof(value));
        return value;
    }
    static inline double word_as_double(long long word) {
        unsigned long long bits = (unsigned long long)word ^ (1ULL << 63);
        double high = double_of_bits((bits >> 32) | 0x4530000000000000ULL);
        double low = double_of_bits((bits & 0xffffffffULL) | 0x4330000000000000ULL);
        return (high - (0x1p84 + 0x1p63 + 0x1p52)) + low;
    }
    static inline double count_as_double(long long count) {  /* not negative */
        return double_of_bits(count | 0x4330000000000000ULL) - 0x1p52;
    }
    #endif
    """
    double word_as_double(long long word) noexcept nogil  # vectorises
    double count_as_double(long long count) noexcept nogil


cdef inline long long fixed_point(double value, double scale) noexcept nogil:
    """Return a gradient, hessian or square as a fixed point: a scaled integer."""
    return llrint(value * scale)


cdef enum:
    MAX_WORDS = 4                  # of a row
    MAX_PLANES = MAX_WORDS + 1     # of sums: the row count, and one for each word


cdef struct summed_values:
    # The values of rows: gradients and hessians of the tree; or in their place the
    # targets' weights, or gradients and their squares. Packed into one word a row, or
    # more for more bits:
    #
    #     hessians:  1, high words alone   [ gradient | 1 ]
    #                1, with low words     [ gradient | 1 ] [ low gradient ]
    #                vary                  [ hessian  | 1 ] [ gradient ]
    #                vary, with low words  [ hessian  | 1 ] [ gradient ] [ low ] [ low ]
    #
    # Sums have a plane for the row count, then one for each word.
    const G_H_DTYPE_C * gradients
    const G_H_DTYPE_C * hessians   # NULL if they are 1
    bint has_squares               # of `hessians`, which are the gradients
    bint are_finite                # else nothing is summed
    bint has_low_words             # high words alone have too few bits
    double scale                   # gradients to integers
    double unit                    # and back
    double hessian_scale
    double hessian_unit
    double low_scale               # remainders, in units, to integers


cdef inline int n_words_of(const summed_values * values) noexcept nogil:
    return (1 + (values.hessians != NULL)) * (1 + values.has_low_words)


cdef inline long long low_point(
    double value, double scale, double low_scale
) noexcept nogil:
    """Return a value's low word: the part that its fixed point omits, as an integer."""
    return llrint((value * scale - llrint(value * scale)) * low_scale)


cdef inline void unpack(
    const long long * cells,   # sums of one word over rows
    int n_cells,
    int word,                  # the first has the row count in its low bits
    int count_bits, long long * planes,  # IN and OUT
    Py_ssize_t stride,         # from plane to plane
) noexcept nogil:
    """Add the sums of a word to planes (arrays): word 0 to plane 1, and its row counts
    to plane 0; a later word to plane ``word + 1``.
    """
    cdef:
        long long one = 1
        long long mask = (one << count_bits) - 1
        int i
    if word > 0:
        for i in range(n_cells):
            planes[(word + 1) * stride + i] += cells[i]
        return
    for i in range(n_cells):
        planes[i] += cells[i] & mask
        planes[stride + i] += cells[i] >> count_bits


cdef inline void words_as_doubles(
    const long long * words,       # sums of gradients above row counts
    int n, int count_bits,
    double unit,                   # of gradients, above the counts
    double * gradients,            # OUT
    double * counts,               # OUT
) noexcept nogil:
    """Unpack words into `gradients` and `counts`, which are exact as doubles."""
    cdef:
        long long one = 1
        long long mask = (one << count_bits) - 1
        int i
    for i in range(n):
        counts[i] = count_as_double(words[i] & mask)
        gradients[i] = unit * word_as_double(words[i] & ~mask)


cdef inline double gradient_of_sums(
    const summed_values * values,
    const long long * planes,      # of the cell
    Py_ssize_t stride,             # from plane to plane
) noexcept nogil:
    cdef:
        Py_ssize_t i = stride if values.hessians == NULL else 2 * stride
        double total = <double> planes[i]
    if values.has_low_words:
        total += <double> planes[i + stride] / values.low_scale
    return values.unit * total


cdef inline double hessian_of_sums(
    const summed_values * values, const long long * planes, Py_ssize_t stride
) noexcept nogil:
    cdef double total
    if values.hessians == NULL:
        return <double> planes[0]
    total = <double> planes[stride]
    if values.has_low_words:
        total += <double> planes[4 * stride] / values.low_scale
    return values.hessian_unit * total


cdef inline void sums_as_doubles(
    const summed_values * values, const long long * planes,
    Py_ssize_t stride,             # from plane to plane
    int n,                         # cells
    double * gradients,            # OUT
    double * hessians,             # OUT; NULL: they are counts, without low words
    double * counts,               # OUT
) noexcept nogil:
    """Convert sums of integers to doubles, in loops that the compiler vectorises."""
    cdef:
        double unit = values.unit
        double hessian_unit = values.hessian_unit
        int i
    for i in range(n):
        counts[i] = count_as_double(planes[i])
    if values.has_low_words:
        for i in range(n):
            gradients[i] = gradient_of_sums(values, planes + i, stride)
            hessians[i] = hessian_of_sums(values, planes + i, stride)
    elif values.hessians != NULL:  # gradients may exceed the digits of a double
        for i in range(n):
            hessians[i] = hessian_unit * word_as_double(planes[stride + i])
        for i in range(n):
            gradients[i] = unit * <double> planes[2 * stride + i]
    else:
        for i in range(n):
            gradients[i] = unit * word_as_double(planes[stride + i])
        for i in range(n if hessians != NULL else 0):
            hessians[i] = counts[i]


cdef inline void take_right_gradients(
    const summed_values * values, const long long * planes, Py_ssize_t stride,
    int last,                      # cell: all rows
    int n, double * gradients,  # OUT
) noexcept nogil:
    """Set right sides' gradients, the exact differences of all rows and left sides."""
    cdef:
        const long long * high = planes + (1 + (values.hessians != NULL)) * stride
        const long long * low = high + stride
        long long total = high[last]
        double unit = values.unit
        int i
    for i in range(n):
        gradients[i] = unit * <double> (total - high[i])
    for i in range(n if values.has_low_words else 0):  # a unit is a power of 2
        gradients[i] += unit * (<double> (low[last] - low[i]) / values.low_scale)


cdef set_units(
    summed_values * values, int n_samples, int sum_bits, int packed_bits,
    int plain_bits, bint has_weights, int n_threads, exchange,
)
cdef double sum_all(
    const G_H_DTYPE_C * values, int n_samples, double scale, double low_scale,
    int n_threads,
) noexcept nogil
