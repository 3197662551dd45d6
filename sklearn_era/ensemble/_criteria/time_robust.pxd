# "time_robust": the impurity of the worst era, or the mean of all. Moneda (2021),
# Domain Generalization, Invariance and the Time Robust Forest, chapter 5.

from libc.math cimport INFINITY

from .criterion cimport criterion_struct, split_rank
from .formulas cimport era_contrast, era_facts, era_gain, era_sums, eras_struct


cdef inline double impurity(
    double sum_squares, double sum_gradients, double sum_hessians
) noexcept nogil:
    """L = (SS - G^2 / H) / H, with SS = sum g^2 / h: the variance of g / h.

    The loss L of chapter 5 of Moneda (2021), in terms of gradients.
    """
    cdef double result
    if not sum_hessians > 0.0:
        return 0.0
    result = (sum_squares - sum_gradients * (sum_gradients / sum_hessians))
    return max(result / sum_hessians, 0.0)  # against rounding


cdef inline double impurity_decrease(era_sums left, era_sums right) noexcept nogil:
    """L_before,j - L_j: the decrease of an era's impurity by a split.

    The unregularised gain of an informative era by unit of its weight, which equation
    5.4 of Moneda (2021) sums over eras.
    """
    return (
        era_gain(left, right, era_contrast(left, right, 0.0), 0.0)
        / (left.hessians + right.hessians)
    )


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
    """Add the impurity of an era after the split, and its decrease. Branch-free.

    What a difference leaves of a pure era is 0, or rounding in the unit of the target.
    """
    cdef:
        double left = era.impurity - decrease
        double after = 0.0 if left < era.least_impurity else left
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


cdef inline bint rank_time_robust(
    const criterion_struct * criterion, const eras_struct * eras,
    const double * sums, split_rank * rank,
) noexcept nogil:
    """-max_j L_j or -mean_j L_j. Moneda (2021), equations 5.1 and 5.2.

    Valid by the decrease ID = agg_j (n_j / N_j) (L_before,j - L_j), equation 5.4, which
    is the priority too. An era that is not informative enters the mean with its
    impurity before the split, and not the maximum. Infinite gains are not valid.
    """
    if criterion.takes_worst_era:
        rank.primary = -sums[WORST]
        rank.priority = sums[LEAST_DECREASE]
    else:
        rank.primary = -sums[IMPURITIES_AFTER] / eras.n_eras
        rank.priority = sums[DECREASES] / eras.n_eras
    if criterion.ranks_by_decrease:
        rank.primary = rank.priority
    return (
        sums[N_INFORMATIVE] > 0.0
        and rank.priority > criterion.min_impurity_decrease
        and rank.gain < INFINITY
    )
