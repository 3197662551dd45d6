# "vrex": the mean of the eras' gains minus a multiple of their standard deviation.

from libc.math cimport fabs, sqrt

from .criterion cimport criterion_struct, split_rank
from .formulas cimport N_VALUES, SHIFTED, SMALLEST, mean, variance


cdef inline double mean_less_deviation(
    const double * moments, double penalty
) noexcept nogil:
    """Return mean_j x_j - penalty std_j x_j, with ddof=0.

    The variance penalty of Krueger et al. (2021), Out-of-Distribution Generalization
    via Risk Extrapolation (V-REx), with the deviation in place of the variance. For two
    values and penalty=1 the result is the smaller value exactly, so ties stay ties.
    """
    if moments[N_VALUES] == 2.0:
        return moments[SMALLEST] + 0.5 * (1.0 - penalty) * fabs(moments[SHIFTED])
    return mean(moments) - penalty * sqrt(variance(moments))


cdef inline bint rank_vrex(
    const criterion_struct * criterion, const double * moments, split_rank * rank
) noexcept nogil:
    """Set a split's key to mean_j gain_j - lambda std_j gain_j, where lambda is the
    criterion's `vrex_penalty`; return whether the key is above 0.
    """
    rank.primary = mean_less_deviation(moments, criterion.vrex_penalty)
    return rank.primary > 0.0
