# What processes that hold other eras tell each other of a candidate split.
#
# It is what `merge_sums` does, for what can only add up numbers and find the largest
# one. Sums are counted from a value that all processes know, and so there are two
# steps: the extremes of all of them, and then the sums of what was counted from these.

from libc.math cimport INFINITY

from .aggregation cimport (
    boltzmann_kind, boltzmann_sums, counted_from_extreme, counted_from_origin,
    kind_of_alpha, moment_sums,
)
from .criterion cimport criterion_struct
from .split_sums cimport split_sums


cdef enum:
    MAX_EXTREMES = 9  # numbers, of a split
    MAX_SUMS = 14


cdef inline int write_extremes(
    const criterion_struct * criterion,
    const split_sums * sums,
    double * extremes,  # OUT
) noexcept nogil:
    """What the largest is to be found of; return how many numbers that are."""
    cdef int n = 0
    if shifts_gains(criterion):
        extremes[n] = -INFINITY
        if sums.gains.weights > 0.0:
            extremes[n] = sign_of(criterion.boltzmann_alpha) * sums.gains.extreme
        n += 1
    if criterion.traits.keeps_moments:
        n += write_range(&sums.gain_moments, extremes + n)
    if criterion.traits.keeps_statistics:
        n += write_range(&sums.statistics, extremes + n)
    if criterion.traits.keeps_impurities:
        extremes[n] = extremes[n + 1] = -INFINITY
        if sums.impurities.n_informative > 0.0:
            extremes[n] = sums.impurities.worst
            extremes[n + 1] = -sums.impurities.least
        n += 2
    return n


cdef inline int write_range(
    const moment_sums * sums, double * extremes  # OUT
) noexcept nogil:
    cdef bint is_known = sums.n_values > 0.0
    extremes[0] = sums.origin if is_known else -INFINITY
    extremes[1] = -sums.smallest if is_known else -INFINITY
    extremes[2] = sums.largest if is_known else -INFINITY
    return 3


cdef inline void count_from_extremes(
    const criterion_struct * criterion,
    const double * extremes,  # of all processes
    split_sums * sums,        # IN and OUT
) noexcept nogil:
    """Take over the extremes, and count what is added up from them."""
    cdef:
        int n = 0
        double alpha = criterion.boltzmann_alpha
    if shifts_gains(criterion):
        if extremes[n] > -INFINITY:
            shift_gains(alpha, sign_of(alpha) * extremes[n], &sums.gains)
        n += 1
    if criterion.traits.keeps_moments:
        n += shift_moments(extremes + n, &sums.gain_moments)
    if criterion.traits.keeps_statistics:
        n += shift_moments(extremes + n, &sums.statistics)
    if criterion.traits.keeps_impurities and extremes[n] > -INFINITY:
        sums.impurities.worst = extremes[n]
        sums.impurities.least = -extremes[n + 1]


cdef inline void shift_gains(
    double alpha, double extreme, boltzmann_sums * gains  # IN and OUT
) noexcept nogil:
    """Count gains from an extreme that none of them exceeds."""
    if kind_of_alpha(alpha) == boltzmann_kind.SMOOTHED and gains.weights > 0.0:
        gains[0] = counted_from_extreme(alpha, gains[0], extreme)
    gains.extreme = extreme


cdef inline int shift_moments(
    const double * extremes, moment_sums * sums  # IN and OUT
) noexcept nogil:
    """Count values from another origin, and take over their range."""
    if extremes[0] > -INFINITY:
        sums[0] = counted_from_origin(sums[0], extremes[0])
        sums.smallest = -extremes[1]
        sums.largest = extremes[2]
    return 3


cdef inline int exchange_fields(
    const criterion_struct * criterion,
    bint reads,         # or else writes
    split_sums * sums,  # IN, or OUT
    double * numbers,   # OUT, or IN
) noexcept nogil:
    """Write the fields that are added up as numbers, or read them back.

    Return how many they are.
    """
    cdef:
        double * fields[MAX_SUMS]
        int n = 0
        int i
    fields[n] = &sums.n_covered
    fields[n + 1] = &sums.directions
    n += 2
    if criterion.traits.aggregates_gains:
        fields[n] = &sums.gains.offsets
        n += 1
    if shifts_gains(criterion):
        fields[n] = &sums.gains.weights
        n += 1
    if criterion.traits.keeps_moments:
        n += point_at_moments(&sums.gain_moments, fields + n)
    if criterion.traits.keeps_statistics:
        n += point_at_moments(&sums.statistics, fields + n)
    if criterion.traits.keeps_impurities:
        fields[n] = &sums.impurities.n_informative
        fields[n + 1] = &sums.impurities.impurities
        fields[n + 2] = &sums.impurities.decreases
        n += 3
    if criterion.traits.sees_all_eras:
        fields[n] = &sums.held_out
        n += 1
    for i in range(n):
        if reads:
            fields[i][0] = numbers[i]
        else:
            numbers[i] = fields[i][0]
    return n


cdef inline int point_at_moments(
    moment_sums * sums, double ** fields  # OUT
) noexcept nogil:
    fields[0] = &sums.n_values
    fields[1] = &sums.offsets
    fields[2] = &sums.squares
    return 3


cdef inline bint shifts_gains(const criterion_struct * criterion) noexcept nogil:
    """Whether gains are counted from the one with the largest weight."""
    return criterion.traits.aggregates_gains and criterion.boltzmann_alpha != 0.0


cdef inline double sign_of(double alpha) noexcept nogil:
    return 1.0 if alpha > 0.0 else -1.0
