"""Define the criteria as Python objects, for the splitters and for tests."""

from collections import namedtuple
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from libc.string cimport memset

from ..._eras import min_rows_of_side
from ...criteria._criteria import KernelTraits
from ...criteria._criteria import CRITERIA
from ...criteria._custom import CustomCriterion
from .criterion cimport criterion_struct, split_rank
from .directional cimport split_direction
from .dispatch cimport BLEND, MAX_SUMS, list_statistics
from .era cimport N_GAIN_FIELDS, add_gain, boltzmann, kind_of_alpha
from .formulas cimport (
    bounded, era_contrast, era_facts, era_gain, era_sums, eras_struct,
    facts_of_era, is_covered, is_informative, neutral_unless, node_value,
)
from .invariant cimport era_effect
from .ranking cimport rank_split
from .split_sums cimport add_era, merge_sums

KERNEL_NAMES = CRITERIA | {CustomCriterion.name: CustomCriterion}
NUMBERS = {name: number for number, name in enumerate([*KERNEL_NAMES, "blend"])}
if NUMBERS["blend"] != BLEND:
    raise ImportError("_criteria/dispatch.pxd has other criteria than the table.")

# As the enum in criterion.pxd.
InvarianceStatistic = IntEnum(
    "InvarianceStatistic", "EFFECT CHANGING_RATE RATIO", start=0
)

SplitRank = namedtuple("SplitRank", "primary secondary gain priority")


cdef class Criterion:
    """The form in which compiled code uses a criterion of sklearn_era.criteria.

    Its parameters are limits of splits, and those that the criterion's
    `_kernel_parameters` returns. `min_covered_eras` is `min_era_coverage` as a number
    of eras. For the statistic RATIO, weights of positive rows stand in place of
    gradients, and weights of all rows in place of hessians. `custom` is the object that
    computes the keys of "custom".
    """

    cdef readonly criterion_struct params
    cdef readonly object custom
    cdef public object era_labels  # for it

    def __init__(
        self, str name, *, double l2_regularization=0.0, double boltzmann_alpha=0.0,
        double min_direction_agreement=0.0, double min_samples_per_era=1,
        int min_covered_eras=1, bint normalize_era_gain=False,
        bint takes_worst_era=True, double invariance_penalty=1.0,
        double vrex_penalty=1.0, str invariance_statistic="effect",
        double min_impurity_decrease=0.0, double min_gain_share=0.0, weights=None,
        str impurity="squared_error", custom=None,
    ):
        self.custom = custom
        traits = (KernelTraits() if weights else KERNEL_NAMES[name].traits)._asdict()
        traits["worst_era_decides"] &= takes_worst_era
        self.params.takes_deviation = impurity == "standard_deviation"
        traits["reads_impurities"] &= not self.params.takes_deviation
        self.params.name = NUMBERS[name]
        self.params.traits = traits
        for part, weight in (weights or {}).items():
            self.params.weights[<int> NUMBERS[part]] = weight
        self.params.l2_regularization = l2_regularization
        self.params.boltzmann_alpha = boltzmann_alpha
        self.params.min_direction_agreement = min_direction_agreement
        self.params.min_samples_per_era = min_samples_per_era
        self.params.min_covered_eras = min_covered_eras
        self.params.normalize_era_gain = normalize_era_gain
        self.params.takes_worst_era = takes_worst_era
        self.params.invariance_penalty = invariance_penalty
        self.params.vrex_penalty = vrex_penalty
        self.params.invariance_statistic = InvarianceStatistic[
            invariance_statistic.upper()
        ]
        self.params.min_impurity_decrease = min_impurity_decrease
        self.params.min_gain_share = min_gain_share
        self.params.breaks_ties = True
        list_statistics(&self.params)

    def rank(
        self, left, right, *, double gain, impurities=None, era_sizes=None,
        double gradient_variance=1.0, groups=None,
    ):
        """Return a split's rank (for tests); None for an inadmissible or invalid split.

        `left` and `right` have a row for each era: sum of gradients, sum of hessians,
        number of rows; `gain` is the pooled gain. `impurities` has the impurity of each
        era before the split, `era_sizes` its number of rows in training (by default in
        the node). `groups` has the group of each era: eras are summed up by group, and
        then the groups' sums are merged like sums of processes.
        """
        cdef:
            const double [:, ::1] left_sums = np.array(left, dtype=np.float64)
            const double [:, ::1] right_sums = np.array(right, dtype=np.float64)
            const double [::1] impurities_before, sizes, minima
            eras_struct eras
            era_facts facts
            era_sums a, b
            double [:, ::1] of_groups
            split_rank rank
            int era, group
        both = np.asarray(left_sums) + np.asarray(right_sums)
        sizes = np.array(both[:, 2] if era_sizes is None else era_sizes, np.float64)
        minima = min_rows_of_side(self.params.min_samples_per_era, np.asarray(sizes))
        impurities = np.zeros(len(both)) if impurities is None else impurities
        impurities_before = np.array(impurities, np.float64)
        eras = eras_struct(
            n_eras=len(both), impurities=&impurities_before[0], era_sizes=&sizes[0],
            min_samples=&minima[0],
            sum_hessians=both[:, 1].sum(), gradient_variance=gradient_variance,
        )
        groups = [0] * len(both) if groups is None else groups
        of_groups = np.zeros((max(groups) + 1, MAX_SUMS))
        for era, group in enumerate(groups):
            a = sums_of(left_sums[era])
            b = sums_of(right_sums[era])
            facts = facts_of_era(&self.params, &eras, era, sums_of(both[era]))
            add_era(&self.params, &facts, a, b, &of_groups[group, 0])
        for group in range(1, of_groups.shape[0]):
            merge_sums(&self.params, &of_groups[0, 0], &of_groups[group, 0])
        if not rank_split(&self.params, &eras, &of_groups[0, 0], gain, &rank):
            return None
        return SplitRank(**rank)


cdef inline era_sums sums_of(const double [::1] row) noexcept:
    return era_sums(gradients=row[0], hessians=row[1], count=row[2])


class EraComparison(NamedTuple):
    """Effects of splits within each era; all arrays have shape (n_splits, n_eras).

    An era is covered if it has `min_samples_per_era` rows on both sides. Its gain and
    direction are 0 unless it is covered and has weight on both sides. A direction is 1
    if the left value is larger, -1 if the right value is, else 0. A side's value is the
    raw prediction by the era's rows alone; 0 without weight.
    """

    gains: np.ndarray
    directions: np.ndarray
    covered: np.ndarray
    values_left: np.ndarray
    values_right: np.ndarray


def compare_sides(
    left, right, *, double l2_regularization=0.0, min_samples_per_era=1
):
    """Return the `EraComparison` of both sides of splits.

    `left` and `right` have shape (n_splits, n_eras, 3): sums of gradients, sums of
    hessians, numbers of rows. `min_samples_per_era` is one number, or an array with a
    number for each era.
    """
    cdef:
        const double [:, ::1] left_sums = np.array(left, np.float64).reshape(-1, 3)
        const double [:, ::1] right_sums = np.array(right, np.float64).reshape(-1, 3)
        const double [::1] minima = np.broadcast_to(
            np.asarray(min_samples_per_era, np.float64), np.shape(left)[:2]
        ).ravel()
        double [:, ::1] result = np.zeros((5, left_sums.shape[0]))
        double l2 = l2_regularization
        double contrast
        era_sums a, b
        Py_ssize_t i
    for i in range(left_sums.shape[0]):
        a = sums_of(left_sums[i])
        b = sums_of(right_sums[i])
        if is_informative(a, b, minima[i]) > 0.0:
            contrast = era_contrast(a, b, l2)
            result[0, i] = era_gain(a, b, contrast, l2)
            result[1, i] = split_direction(contrast)
        result[2, i] = is_covered(a, b, minima[i])
        if a.hessians > 0.0:
            result[3, i] = node_value(a.gradients, a.hessians, l2)
        if b.hessians > 0.0:
            result[4, i] = node_value(b.gradients, b.hessians, l2)
    shape = (5, *np.shape(left)[:2])
    gains, directions, covered, *values = np.asarray(result).reshape(shape)
    return EraComparison(
        gains, directions.astype(np.int8), covered.astype(bool), *values
    )


def compare_listed(
    const double [:, :, :, ::1] sides, const double [::1] min_samples, double l2
):
    """Return gains and effects (v_L - v_R) of splits in each era, from the `sides` of a
    `ListedSplits`, as an array of shape (2, n_eras, n_splits).
    """
    cdef:
        Py_ssize_t of_hessians = sides.shape[1] - 1
        Py_ssize_t n_eras = sides.shape[2], n = sides.shape[3], era, i
        double [:, :, ::1] result = np.empty((2, n_eras, n))
        double informative, contrast
        era_sums a, b
    for era in range(n_eras):
        for i in range(n):
            a.gradients, b.gradients = sides[0, 0, era, i], sides[1, 0, era, i]
            a.count, b.count = sides[0, 1, era, i], sides[1, 1, era, i]
            a.hessians = sides[0, of_hessians, era, i]
            b.hessians = sides[1, of_hessians, era, i]
            informative = is_informative(a, b, min_samples[era])
            a, b = neutral_unless(informative, a), neutral_unless(informative, b)
            contrast = era_contrast(a, b, l2)
            result[0, era, i] = era_gain(a, b, contrast, l2)
            result[1, era, i] = era_effect(a, b, l2)
    return np.asarray(result)


def sum_leaves(leaves, codes, gradients, hessians, n_nodes, n_eras):
    """Return the sums of gradients, hessians and rows by leaf and era, of shape
    (n_nodes, n_eras, 3).
    """
    cells = leaves.astype(np.intp) * n_eras + codes
    sums = [
        np.bincount(cells, values, n_nodes * n_eras).reshape(n_nodes, n_eras)
        for values in (gradients, hessians, None)
    ]
    return np.stack(sums, axis=-1)


def boltzmann_mean(const double[::1] values, double alpha):
    """Return sum x exp(alpha x) / sum exp(alpha x). DeLise (2023), definition 5."""
    cdef:
        double smallest, largest
        double[N_GAIN_FIELDS] sums
        int i
    if values.shape[0] == 0:
        raise ValueError("values is empty; the Boltzmann operator needs one at least.")
    smallest = np.min(values)
    largest = np.max(values)
    memset(sums, 0, sizeof(sums))
    for i in range(values.shape[0]):
        add_gain(kind_of_alpha(alpha), alpha, values[i], 1.0, sums, 1)
    # Rounding may leave the range of the values.
    return bounded(boltzmann(alpha, sums, values.shape[0]), smallest, largest)
