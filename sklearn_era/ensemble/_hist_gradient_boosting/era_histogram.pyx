"""Histograms of a node's gradients and hessians by bin and by era.

One feature at a time, from the node's rows, into a table that the caller lends. This is
the layer to replace for speed: what the scan needs of it is `start_node` and `fill`.
"""

from libc.string cimport memset

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common import G_H_DTYPE

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    G_H_DTYPE_C,
    X_BINNED_DTYPE_C,
    hist_struct,
)

from sklearn_era.ensemble._hist_gradient_boosting.criteria cimport (
    Criterion,
    SplitCriterion,
)
from sklearn_era.ensemble._hist_gradient_boosting.era_statistics cimport impurity


cdef class EraHistogramBuilder:
    """Builds the (bin, era) histograms of one node after another.

    Parameters
    ----------
    era_codes : ndarray of shape (n_samples,), dtype=int32
        The era of each training row, as 0..n_eras-1.
    n_eras : int
        Number of eras in training.
    criterion : Criterion
        What the histograms are made for, which decides about the statistics needed.
    positive_weights, weights : ndarray of shape (n_samples,), dtype=float32
        For the statistic RATIO, whose eras are summed by them: the weight of a row, or
        0 if its target is 0, and the weight. Else None.
    """

    def __init__(
        self,
        const int [::1] era_codes,
        int n_eras,
        Criterion criterion,
        const G_H_DTYPE_C [::1] positive_weights=None,
        const G_H_DTYPE_C [::1] weights=None,
    ):
        n_samples = era_codes.shape[0]
        self.era_codes = era_codes
        self.n_eras = n_eras
        self.min_samples_per_era = criterion.params.min_samples_per_era
        self.min_covered_eras = criterion.params.min_covered_eras
        self.needs_impurities = criterion.params.name == SplitCriterion.TIME_ROBUST
        self.needs_variance = criterion.params.normalize_era_gain
        self.sums_targets = weights is not None
        self.positive_weights = positive_weights
        self.weights = weights
        self.era_sizes = np.bincount(era_codes, minlength=n_eras).astype(np.float64)
        self.counts = np.empty(n_eras, dtype=np.int32)
        self.sums = np.zeros((n_eras, 3))
        self.impurities = np.zeros(n_eras)
        self.ordered_gradients = np.empty(n_samples, dtype=G_H_DTYPE)
        self.ordered_hessians = np.empty(n_samples, dtype=G_H_DTYPE)
        self.ordered_codes = np.empty(n_samples, dtype=np.int32)

    def start_tree(self, splitter, histogram_builder):
        """Take over the data and the gradients of a tree about to be grown.

        Parameters
        ----------
        splitter : Splitter
            scikit-learn's splitter of the tree, which knows the bins in use.
        histogram_builder : HistogramBuilder
            scikit-learn's histogram builder of the tree.
        """
        self.X_binned = histogram_builder.X_binned
        self.gradients = histogram_builder.gradients
        self.hessians = histogram_builder.hessians
        self.hessians_are_constant = histogram_builder.hessians_are_constant
        self.n_bins_non_missing = splitter.n_bins_non_missing
        self.missing_values_bin_idx = splitter.missing_values_bin_idx
        self.gradient_variance = self.root_variance() if self.needs_variance else 1.0

    cdef double root_variance(self) noexcept:
        """Variance over all rows of g / h, weighted by h: of the gradients, if h is 1.

        In units of the raw prediction, squared, and so it does not depend on the unit
        of the sample weights.
        """
        cdef:
            double sum_squares = 0.0
            double sum_gradients = 0.0
            double sum_hessians = 0.0
            G_H_DTYPE_C hessian = 1.0
            int i
        for i in range(self.gradients.shape[0]):
            if not self.hessians_are_constant:
                hessian = self.hessians[i]
            sum_gradients += self.gradients[i]
            sum_hessians += hessian
            sum_squares += square_over(self.gradients[i], hessian)
        return impurity(sum_squares, sum_gradients, sum_hessians)

    cdef bint start_node(self, const unsigned int [::1] sample_indices) noexcept:
        """Bring the statistics of the node's rows into the rows' order.

        Returns whether enough eras have the rows that a split of them takes.
        """
        cdef:
            int n_samples = sample_indices.shape[0]
            int * counts = &self.counts[0]
            unsigned int sample_idx
            int n_coverable = 0
            int code
            int i
            G_H_DTYPE_C hessian = 1.0  # where hessians are constant, it is to this

        self.sample_indices = sample_indices
        with nogil:
            memset(counts, 0, self.n_eras * sizeof(int))
            for i in range(n_samples):
                sample_idx = sample_indices[i]
                code = self.era_codes[sample_idx]
                self.ordered_codes[i] = code
                counts[code] += 1
                if self.sums_targets:
                    self.ordered_gradients[i] = self.positive_weights[sample_idx]
                    self.ordered_hessians[i] = self.weights[sample_idx]
                    continue
                if not self.hessians_are_constant:
                    hessian = self.hessians[sample_idx]
                self.ordered_gradients[i] = self.gradients[sample_idx]
                self.ordered_hessians[i] = hessian
            for i in range(self.n_eras):
                n_coverable += (
                    counts[i] >= 2 * <long long> self.min_samples_per_era
                )
            if self.needs_impurities:
                self.sum_impurities()
        return n_coverable >= self.min_covered_eras

    cdef void sum_impurities(self) noexcept nogil:
        """Impurity of each era of the node, before any split."""
        cdef:
            double * sums
            int i
        memset(&self.sums[0, 0], 0, 3 * self.n_eras * sizeof(double))
        for i in range(self.sample_indices.shape[0]):
            sums = &self.sums[self.ordered_codes[i], 0]
            sums[0] += square_over(self.ordered_gradients[i], self.ordered_hessians[i])
            sums[1] += self.ordered_gradients[i]
            sums[2] += self.ordered_hessians[i]
        for i in range(self.n_eras):
            sums = &self.sums[i, 0]
            self.impurities[i] = impurity(sums[0], sums[1], sums[2])

    cdef void fill(
        self,
        int feature_idx,
        hist_struct * histogram,  # OUT
    ) noexcept nogil:
        """Sum the node's gradients and hessians by bin and era of one feature.

        `histogram` has shape (n_bins, n_eras): a scan moves one bin over, for all eras
        at once, and finds these adjacent.
        """
        cdef:
            const X_BINNED_DTYPE_C * X_binned = &self.X_binned[0, feature_idx]
            const unsigned int * sample_indices = &self.sample_indices[0]
            const int * codes = &self.ordered_codes[0]
            const G_H_DTYPE_C * gradients = &self.ordered_gradients[0]
            const G_H_DTYPE_C * hessians = &self.ordered_hessians[0]
            hist_struct * cell
            Py_ssize_t n_eras = self.n_eras
            int n_samples = self.sample_indices.shape[0]
            int i

        # Bins that the feature does not use are neither cleared nor read.
        memset(
            histogram, 0,
            self.n_bins_non_missing[feature_idx] * n_eras * sizeof(hist_struct),
        )
        memset(
            histogram + self.missing_values_bin_idx * n_eras, 0,
            n_eras * sizeof(hist_struct),
        )
        for i in range(n_samples):
            cell = histogram + X_binned[sample_indices[i]] * n_eras + codes[i]
            cell.sum_gradients += gradients[i]
            cell.sum_hessians += hessians[i]
            cell.count += 1


cdef inline double square_over(
    double gradient, double hessian
) noexcept nogil:
    """g^2 / h of a row, and 0 of one without weight."""
    return gradient * (gradient / hessian) if hessian > 0.0 else 0.0
