"""Compute the qualities of all refinements of a rule, from histograms of all columns.

A refinement adds to a rule a condition on one column: the value is in a range of bins,
or is not. So the sums over the rows that meet the condition are differences of prefix
sums. A column's histogram takes one pass over rows: for *and*, over the rows that a
refinement can remove from the rule; for *or*, over all rows that it can add.
"""

from cython.parallel import prange, threadid
from libc.math cimport INFINITY, exp, pow
from libc.stdint cimport uint8_t
from libc.string cimport memset

import numpy as np


cdef struct sums_struct:
    double positive   # weight of the rows of the class
    double negative   # and of the other rows
    double curvature
    double n_rows


cdef inline void add(sums_struct * to, const sums_struct * more) noexcept nogil:
    to.positive += more.positive
    to.negative += more.negative
    to.curvature += more.curvature
    to.n_rows += more.n_rows


cdef inline sums_struct difference(
    const sums_struct * whole, const sums_struct * part
) noexcept nogil:
    """Return `whole` minus `part` for each sum, or 0 where rounding leads below 0."""
    cdef sums_struct rest
    rest.positive = max(whole.positive - part.positive, 0.0)
    rest.negative = max(whole.negative - part.negative, 0.0)
    rest.curvature = max(whole.curvature - part.curvature, 0.0)
    rest.n_rows = whole.n_rows - part.n_rows
    return rest


# The quality of a rule whose loss or score overflows.
OVERFLOW = -1e290
cdef double _OVERFLOW = OVERFLOW

# The first step of a rule that covers a single class. Longer steps come from vanishing
# curvature, where all rows are far off.
cdef double MAX_STEP = 2.0


cpdef double newton_step(
    double sum_residuals, double sum_curvatures,
    double learning_rate, double l2_regularization,
) noexcept nogil:
    """Return `learning_rate` times Newton's step for the log loss, up to `MAX_STEP`."""
    cdef double total = sum_curvatures + l2_regularization
    if total <= 0.0:
        return 0.0
    return learning_rate * max(-MAX_STEP, min(MAX_STEP, sum_residuals / total))


cdef inline double variance_after(
    const double * totals,  # weight, sum of losses or scores, sum of their squares
    double first,           # of the rows covered: the sum of losses or scores
    double second,          # and the sum of squares of losses, or the weight
    double inside,          # the step of the rows covered
    double outside,         # and of all others
    bint is_of_loss,
    bint is_positive,
) noexcept nogil:
    """Return a group's variance after adding a rule: Du et al. (2025), (5) and (6)."""
    cdef double mean, mean_square
    if is_of_loss:
        inside = exp(-inside if is_positive else inside)
        outside = exp(-outside if is_positive else outside)
        mean = inside * first + outside * (totals[1] - first)
        mean_square = (
            inside * inside * second + outside * outside * (totals[2] - second)
        )
    else:
        mean = totals[1] + inside * second + outside * (totals[0] - second)
        mean_square = (
            totals[2]
            + 2.0 * (inside * first + outside * (totals[1] - first))
            + inside * inside * second
            + outside * outside * (totals[0] - second)
        )
    mean = mean / totals[0]
    return mean_square / totals[0] - mean * mean


cdef class RefinementCounter:
    """Measures refinements of rules, each with one more condition, round by round.

    Conditions cover the bins `lower` to `upper` or, with `is_complement`, all others.
    Column j has conditions ``first_condition[j]`` to ``first_condition[j + 1] - 1``.
    """

    cdef:
        const uint8_t [::1, :] X_binned     # (n_samples, n_features)
        const int [::1] first_condition     # (n_features + 1,)
        const int [::1] lower               # (n_conditions,)
        const int [::1] upper
        const uint8_t [::1] is_complement
        int n_bins
        int n_threads
        # State of a round: the rows,
        const double [::1] weights          # (n_samples,)
        const uint8_t [::1] is_positive
        const double [::1] curvatures
        bint compares_rates
        double positive_scale
        double negative_scale
        # the variance term, without groups if there is none,
        const int [::1] groups              # (n_samples,)
        const double [:, ::1] row_moments   # (n_samples, 2)
        const double [:, ::1] group_totals  # (n_groups, 3)
        const uint8_t [::1] is_group_positive
        Py_ssize_t n_groups                 # times bins, more than an int may hold
        bint is_of_loss
        double variance_penalty
        double variance_power
        # the parameters of steps,
        double unit                         # the ratio of weights to residuals
        double sum_residuals
        double sum_curvatures
        double learning_rate
        double l2_regularization
        # and buffers, a row per thread. Some bins may be empty.
        sums_struct [:, ::1] bins
        double [:, :, ::1] moments          # (n_threads, n_bins * n_groups, 2)

    def __init__(self, X_binned, conditions, int n_threads):
        self.X_binned = X_binned
        self.first_condition = conditions.first
        self.lower = conditions.lower
        self.upper = conditions.upper
        self.is_complement = conditions.is_complement
        self.n_bins = conditions.missing_bin + 1
        self.n_threads = n_threads
        names = ("positive", "negative", "curvature", "n_rows")
        self.bins = np.zeros(
            (n_threads, self.n_bins + 1), dtype=[(name, "f8") for name in names]
        )

    def start_round(
        self, weights, is_positive, curvatures, totals,
        bint compares_rates, double positive_scale, double negative_scale,
    ):
        """Set the rows' weights and the parameters of `quality`; return the quality of
        the rule that covers all rows. `totals` are this rule's weights by class.
        """
        cdef sums_struct whole
        self.weights = weights
        self.is_positive = is_positive
        self.curvatures = curvatures
        self.compares_rates = compares_rates
        self.positive_scale = positive_scale
        self.negative_scale = negative_scale
        self.n_groups = 0
        whole.positive, whole.negative = totals
        return self.quality(&whole)

    def penalize_variance(
        self, term, row_moments, group_totals, double unit, double sum_residuals,
        double learning_rate, double l2_regularization,
    ):
        """Set the `VarianceTerm` of a round, its sums, and the parameters of steps."""
        self.groups = term.groups
        self.is_group_positive = term.is_positive
        self.is_of_loss = term.of == "loss"
        self.variance_penalty = term.penalty
        self.variance_power = term.power
        self.row_moments = row_moments
        self.group_totals = group_totals
        self.unit = unit
        self.sum_residuals = sum_residuals
        self.sum_curvatures = np.sum(self.curvatures)
        self.learning_rate = learning_rate
        self.l2_regularization = l2_regularization
        self.n_groups = group_totals.shape[0]
        shape = self.n_threads, (self.n_bins + 1) * self.n_groups, 2
        if self.moments is None or self.moments.shape[1] != shape[1]:
            self.moments = np.zeros(shape)

    def measure(
        self, const int [::1] rows, bint is_union, covered,
        const double [:, ::1] covered_moments, const double [::1] penalties,
        int min_samples_rule,
    ):
        """Return each refinement's quality, -inf if the refinement is not admissible.
        A refinement can add `rows` to the rule (if `is_union`), or remove them from it;
        `covered` has the sums over the rows that stay covered in any case.
        """
        cdef:
            sums_struct stays
            int n_features = self.X_binned.shape[1]
            # An additional thread costs as much as adding some 10,000 values.
            int n_threads = <int> min(
                self.n_threads, 1 + rows.shape[0] * n_features // 40_000
            )
            double [::1] qualities = np.full(self.lower.shape[0], -np.inf)
            int j
        stays.positive, stays.negative, stays.curvature, stays.n_rows = covered
        for j in prange(
            n_features, schedule="static", nogil=True, num_threads=n_threads
        ):
            self.measure_column(
                j, threadid(), rows, is_union, &stays, covered_moments, penalties[j],
                min_samples_rule, qualities,
            )
        return np.asarray(qualities)

    cdef void measure_column(
        self, int column, int thread, const int [::1] rows, bint is_union,
        const sums_struct * stays, const double [:, ::1] stays_moments, double penalty,
        int min_samples_rule, double [::1] qualities,  # OUT
    ) noexcept nogil:
        """Set the qualities of the refinements by all conditions on one column."""
        cdef:
            const uint8_t * values = &self.X_binned[0, column]
            const uint8_t * is_positive = &self.is_positive[0]
            const double * weights = &self.weights[0]
            const double * curvatures = &self.curvatures[0]
            sums_struct * bins = &self.bins[thread, 0]
            sums_struct * of_bin
            sums_struct inside
            double quality
            int i, row, condition

        memset(bins, 0, (self.n_bins + 1) * sizeof(sums_struct))
        for i in range(rows.shape[0]):
            row = rows[i]
            of_bin = &bins[values[row] + 1]
            if is_positive[row]:
                of_bin.positive += weights[row]
            else:
                of_bin.negative += weights[row]
            of_bin.curvature += curvatures[row]
            of_bin.n_rows += 1.0
        for i in range(1, self.n_bins + 1):
            add(&bins[i], &bins[i - 1])
        if self.n_groups > 0:
            self.add_moments(values, thread, rows)
        for condition in range(
            self.first_condition[column], self.first_condition[column + 1]
        ):
            # From prefix sums.
            inside = difference(
                &bins[self.upper[condition] + 1], &bins[self.lower[condition]]
            )
            if self.is_complement[condition]:
                inside = difference(&bins[self.n_bins], &inside)
            if inside.n_rows == (0 if is_union else rows.shape[0]):
                continue  # it does not change the rule
            add(&inside, stays)
            if inside.n_rows < min_samples_rule:
                continue
            quality = self.quality(&inside) - penalty
            if self.n_groups > 0:
                # Not -inf, which means inadmissible: `BeamSearch` raises on overflow.
                quality = max(_OVERFLOW, quality - self.variance_penalty * (
                    self.variance_term(condition, thread, &inside, stays_moments)
                ))
            qualities[condition] = quality

    cdef double quality(self, const sums_struct * covered) noexcept nogil:
        """Return a rule's quality: if `compares_rates`, the true positive rate less the
        false positive rate of `covered` rows, else their precision with a prior. The
        scales of rates are the weights of all positive and of all negative rows; the
        scales of the precision are the prior's weights.
        """
        if self.compares_rates:
            return (
                covered.positive / self.positive_scale
                - covered.negative / self.negative_scale
            )
        return (covered.positive + self.positive_scale) / (
            covered.positive + covered.negative
            + self.positive_scale + self.negative_scale
        )

    cdef void add_moments(
        self, const uint8_t * values, int thread, const int [::1] rows
    ) noexcept nogil:
        """Set cumulative sums of `row_moments` over a column's bins, for each group."""
        cdef:
            Py_ssize_t n_groups = self.n_groups
            double * moments = &self.moments[thread, 0, 0]
            double * of_cell
            Py_ssize_t i
            int row
        memset(moments, 0, 2 * (self.n_bins + 1) * n_groups * sizeof(double))
        for i in range(rows.shape[0]):
            row = rows[i]
            of_cell = &moments[2 * ((values[row] + 1) * n_groups + self.groups[row])]
            of_cell[0] += self.row_moments[row, 0]
            of_cell[1] += self.row_moments[row, 1]
        for i in range(2 * n_groups, 2 * (self.n_bins + 1) * n_groups):
            moments[i] += moments[i - 2 * n_groups]

    cdef double variance_term(
        self, int condition, int thread,
        const sums_struct * covered, const double [:, ::1] stays_moments,
    ) noexcept nogil:
        """Return the mean over groups of ``variance ** power`` after adding a rule."""
        cdef:
            Py_ssize_t n_groups = self.n_groups
            const double * moments = &self.moments[thread, 0, 0]
            const double * below = moments + 2 * n_groups * self.lower[condition]
            const double * above = moments + 2 * n_groups * (self.upper[condition] + 1)
            const double * total = moments + 2 * n_groups * self.n_bins
            double residuals = (covered.positive - covered.negative) / self.unit
            double rate = self.learning_rate
            double l2 = self.l2_regularization
            double inside = newton_step(residuals, covered.curvature, rate, l2)
            double outside = newton_step(
                self.sum_residuals - residuals,
                self.sum_curvatures - covered.curvature,
                rate, l2,
            )
            double first, second, variance
            double sum_powers = 0.0
            Py_ssize_t g
        for g in range(n_groups):
            first = above[2 * g] - below[2 * g]
            second = above[2 * g + 1] - below[2 * g + 1]
            if self.is_complement[condition]:
                first = total[2 * g] - first
                second = total[2 * g + 1] - second
            variance = variance_after(
                &self.group_totals[g, 0],
                first + stays_moments[g, 0],
                second + stays_moments[g, 1],
                inside, outside, self.is_of_loss, self.is_group_positive[g],
            )
            if variance != variance:
                return INFINITY
            if variance > 0.0:
                sum_powers += (
                    variance if self.variance_power == 1.0
                    else pow(variance, self.variance_power)
                )
        return sum_powers / n_groups
