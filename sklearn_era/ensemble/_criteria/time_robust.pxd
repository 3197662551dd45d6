# "time_robust": the impurity of the worst era, the mean of all, or between them. Moneda
# (2021), Domain Generalization, Invariance and the Time Robust Forest, chapter 5.

from libc.math cimport INFINITY

from .criterion cimport criterion_struct, split_rank
from .era cimport N_GAIN_FIELDS, WEIGHTS, add_smoothed, merge_gains, smoothed_mean
from .formulas cimport (
    deviation, era_contrast, era_facts, era_gain, era_sums, eras_struct,
)


cdef inline double impurity(
    double sum_squares, double sum_gradients, double sum_hessians
) noexcept nogil:
    """Return L = (SS - G^2 / H) / H, with SS = sum g^2 / h: the variance of g / h.

    The loss L of chapter 5 of Moneda (2021), in terms of gradients.
    """
    cdef double result
    if not sum_hessians > 0.0:
        return 0.0
    result = (sum_squares - sum_gradients * (sum_gradients / sum_hessians))
    return max(result / sum_hessians, 0.0)  # against rounding


cdef inline double impurity_decrease(era_sums left, era_sums right) noexcept nogil:
    """Return L_before,j - L_j: the decrease of an era's impurity by a split.

    It is the unregularised gain of an informative era, divided by the era's weight.
    Equation 5.4 of Moneda (2021) sums the decreases over eras.
    """
    return (
        era_gain(left, right, era_contrast(left, right, 0.0), 0.0)
        / (left.hessians + right.hessians)
    )


cdef inline double deviation_decrease(
    era_sums left, era_sums right, const era_facts * era
) noexcept nogil:
    """Return std - (n_L std_L + n_R std_R) / n: the decrease of an era's deviation.

    Section 5.3 of Moneda (2021). 0 if both sides have the same mean and deviation.
    """
    cdef:
        double after = deviation(left, era) + deviation(right, era)
        double decrease = era.impurity - after / era.all_rows.count
        double least = era.least_impurity * era.least_impurity
    return decrease if decrease * era.impurity > least else 0.0


cdef inline double impurity_after(
    const era_facts * era, double decrease
) noexcept nogil:
    """Return L_j, an era's impurity after a split; 0 if it may be a rounding error."""
    cdef double left = era.impurity - decrease
    return 0.0 if left < era.least_impurity else left


# Impurities of eras after a split, and decreases, each times the era's share of rows.
# Eras that are not informative contribute to IMPURITIES_AFTER only.
cdef enum:
    N_INFORMATIVE
    IMPURITIES_AFTER  # sum
    WORST             # largest
    DECREASES         # sum
    LEAST_DECREASE
    N_IMPURITY_FIELDS


cdef inline void add_impurity(
    const era_facts * era,
    double informative,  # 0 or 1
    double decrease,     # of an informative era, else 0
    double * sums,       # IN and OUT
    Py_ssize_t stride,
) noexcept nogil:
    """Add an era's impurity after a split, and its decrease, to `sums`, branch-free."""
    cdef:
        double after = impurity_after(era, decrease)
        double share = era.share * decrease
        double worst = sums[WORST * stride]
        double least = sums[LEAST_DECREASE * stride]
        double is_worst = 1.0 if after > worst else 0.0
        double is_first = 1.0 if sums[0] == 0.0 else 0.0
        double is_least = 1.0 if share < least else is_first
    sums[0] += informative
    sums[IMPURITIES_AFTER * stride] += after
    sums[WORST * stride] = after if informative * is_worst > 0.0 else worst
    sums[DECREASES * stride] += share
    sums[LEAST_DECREASE * stride] = share if informative * is_least > 0.0 else least


cdef inline void merge_impurities(double * sums, const double * others) noexcept nogil:
    sums[IMPURITIES_AFTER] += others[IMPURITIES_AFTER]
    if others[N_INFORMATIVE] == 0.0:
        return
    sums[WORST] = max(sums[WORST], others[WORST])
    sums[DECREASES] += others[DECREASES]
    if sums[N_INFORMATIVE] == 0.0 or others[LEAST_DECREASE] < sums[LEAST_DECREASE]:
        sums[LEAST_DECREASE] = others[LEAST_DECREASE]
    sums[N_INFORMATIVE] += others[N_INFORMATIVE]


# With a finite `boltzmann_alpha` above 0: B_alpha of the impurities of informative
# eras after a split, and B_-alpha of their decreases.
cdef inline void add_smoothed_impurity(
    double alpha, const era_facts * era, double informative, double decrease,
    double * sums,       # IN and OUT
    Py_ssize_t stride,
) noexcept nogil:
    cdef double after = impurity_after(era, decrease)
    add_smoothed(alpha, after, informative, sums, stride)
    add_smoothed(
        -alpha, era.share * decrease, informative, sums + N_GAIN_FIELDS * stride, stride
    )


cdef inline void merge_smoothed_impurities(
    double alpha, double * sums, const double * others
) noexcept nogil:
    merge_gains(alpha, sums, others)
    merge_gains(-alpha, sums + N_GAIN_FIELDS, others + N_GAIN_FIELDS)


cdef inline bint rank_time_robust(
    const criterion_struct * criterion, const eras_struct * eras,
    const double * sums, split_rank * rank,
) noexcept nogil:
    """Set a split's key to -max_j L_j, -mean_j L_j or -B_alpha(L_j); return whether the
    split is valid. Moneda (2021), equations 5.1 and 5.2.

    L_j is the impurity of era j after the split. A split is valid if its gain is finite
    and ID > `min_impurity_decrease`. Equation 5.4 defines the decrease ID = agg_j (n_j
    / N_j) (L_before,j - L_j), with n_j of the era's N_j training rows in the node; ID
    is also the split's priority. An era that is not informative (see `is_informative`)
    counts only in the mean over eras, with its impurity before the split.
    """
    # The number of informative eras, or their weights, of which the largest is 1.
    cdef double n_informative = sums[N_INFORMATIVE]
    if criterion.boltzmann_alpha > 0.0:
        n_informative = sums[WEIGHTS]
    if not n_informative > 0.0:
        return False
    if criterion.takes_worst_era:
        rank.primary = -sums[WORST]
        rank.priority = sums[LEAST_DECREASE]
    elif criterion.boltzmann_alpha > 0.0:
        rank.primary = -smoothed_mean(sums)
        rank.priority = smoothed_mean(sums + N_GAIN_FIELDS)
    else:
        rank.primary = -sums[IMPURITIES_AFTER] / eras.n_eras
        rank.priority = sums[DECREASES] / eras.n_eras
    if criterion.ranks_by_decrease:
        rank.primary = rank.priority
    return rank.priority > criterion.min_impurity_decrease and rank.gain < INFINITY
