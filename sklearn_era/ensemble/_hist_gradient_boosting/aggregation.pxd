# From one number an era to one number a split.
#
# Each function takes a contiguous array over eras.

from libc.math cimport INFINITY, exp, fabs, sqrt

from sklearn_era.ensemble._hist_gradient_boosting.node_formulas cimport bounded


cdef inline double direction_agreement(
    long sum_directions, int n_eras
) noexcept nogil:
    """D = |sum_j sign(v_Lj - v_Rj)| / M, in [0, 1]. DeLise (2023), eq. 39."""
    return fabs(<double> sum_directions) / n_eras


cdef inline double boltzmann(
    const double * values, int n_values, double alpha
) noexcept nogil:
    """B_alpha(x) = sum_j x_j exp(alpha x_j) / sum_j exp(alpha x_j).

    The Boltzmann operator (DeLise 2023, definition 5): the mean at alpha = 0, the
    minimum at -inf, the maximum at +inf. The exponents are shifted by their largest,
    so that the largest weight is 1 and none overflows, whatever the values' scale.
    The operator is evaluated as an offset from the value that carries that weight: the
    offsets have one sign, so nothing cancels, and the result cannot leave
    [min(x), max(x)].
    """
    cdef:
        double extreme
        double smallest = values[0]
        double largest = values[0]
        double weight
        double sum_weights = 0.0
        double sum_offsets = 0.0
        double result
        int j

    for j in range(1, n_values):
        if values[j] < smallest:
            smallest = values[j]
        if values[j] > largest:
            largest = values[j]
    if alpha == -INFINITY:
        return smallest
    if alpha == INFINITY:
        return largest

    extreme = smallest if alpha < 0 else largest
    for j in range(n_values):
        weight = 1.0
        if values[j] != extreme and alpha != 0.0:
            weight = exp(alpha * (values[j] - extreme))
        sum_weights += weight
        if weight > 0.0:
            sum_offsets += weight * (values[j] - extreme)
    result = extreme + sum_offsets / sum_weights
    # Rounding only.
    return bounded(result, smallest, largest)


cdef inline double mean(const double * values, int n_values) noexcept nogil:
    cdef double total = 0.0
    cdef int j
    for j in range(n_values):
        total += values[j]
    return total / n_values


cdef inline double variance(const double * values, int n_values) noexcept nogil:
    """Population variance (ddof=0), and 0 of no values as of one."""
    cdef:
        double center
        double total = 0.0
        int j
    if n_values < 2:
        return 0.0
    center = mean(values, n_values)
    for j in range(n_values):
        total += (values[j] - center) * (values[j] - center)
    return total / n_values


cdef inline double mean_less_deviation(
    const double * values, int n_values, double penalty
) noexcept nogil:
    """mean_j x_j - penalty std_j x_j, with ddof=0.

    The variance penalty of Krueger et al. (2021), Out-of-Distribution Generalization
    via Risk Extrapolation (V-REx), with a deviation in place of the variance, so that
    the penalty is a pure number.
    """
    return mean(values, n_values) - penalty * sqrt(variance(values, n_values))


cdef inline double spread_of_ratios(const double * values, int n_values) noexcept nogil:
    """max_j I_j / min_j I_j - 1 of positive values, and 0 of no values as of one.

    Equation 16 of Liao et al. (2024), Invariant Random Forest.
    """
    cdef:
        double smallest = INFINITY
        double largest = -INFINITY
        int j
    if n_values < 2:
        return 0.0
    for j in range(n_values):
        smallest = min(smallest, values[j])
        largest = max(largest, values[j])
    return largest / smallest - 1.0
