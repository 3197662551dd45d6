"""The scan of one feature of a node: every split, ranked by a criterion over eras.

Bins move to the left side one by one, in the feature's order. After each move the
criterion ranks the split by the per-era sums of both sides, and the best rank is kept.
"""

from libc.string cimport memset

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common import (
    HISTOGRAM_DTYPE,
    X_BINNED_DTYPE,
)

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    MonotonicConstraint,
    X_BINNED_DTYPE_C,
    hist_struct,
)
from sklearn.utils._bitset cimport in_bitset, init_bitset, set_bitset

from sklearn_era.ensemble._hist_gradient_boosting.category_order cimport (
    bin_hessians,
    order_categories,
)
from sklearn_era.ensemble._hist_gradient_boosting.criteria cimport (
    Criterion,
    rank_split,
    split_struct,
)
from sklearn_era.ensemble._hist_gradient_boosting.era_histogram cimport (
    EraHistogramBuilder,
)
from sklearn_era.ensemble._hist_gradient_boosting.node_formulas cimport (
    bounded,
    node_value,
    pooled_gain,
)


cdef class EraScanner:
    """Scans features of one node after another, for the trees of a fit.

    Parameters
    ----------
    histogram_builder : EraHistogramBuilder
        What fills the histograms to scan.
    criterion : Criterion
        What ranks the splits.
    """

    def __init__(self, EraHistogramBuilder histogram_builder, Criterion criterion):
        self.histogram_builder = histogram_builder
        self.n_eras = histogram_builder.n_eras
        self.criterion = criterion.params
        self.n_bins = 0
        self.n_threads = 0

    def start_tree(self, splitter, int n_bins):
        """Take over the constraints of a tree about to be grown.

        Parameters
        ----------
        splitter : Splitter
            scikit-learn's splitter of the tree.
        n_bins : int
            Bins of a feature, that of missing values included.
        """
        self.n_bins_non_missing = splitter.n_bins_non_missing
        self.has_missing_values = splitter.has_missing_values
        self.is_categorical = splitter.is_categorical
        self.monotonic_cst = splitter.monotonic_cst
        self.missing_values_bin_idx = splitter.missing_values_bin_idx
        self.hessians_are_constant = splitter.hessians_are_constant
        self.min_samples_leaf = splitter.min_samples_leaf
        self.min_hessian_to_split = splitter.min_hessian_to_split
        self.criterion.l2_regularization = splitter.l2_regularization
        self.criterion.min_gain = splitter.min_gain_to_split
        if self.n_bins != n_bins or self.n_threads != splitter.n_threads:
            self._allocate_scratch(n_bins, splitter.n_threads)

    def _allocate_scratch(self, n_bins, n_threads):
        self.n_bins = n_bins
        self.n_threads = n_threads
        n_eras = self.n_eras  # as a Python number: the product below may be a large one
        self.histograms = np.empty((n_threads, n_bins * n_eras), dtype=HISTOGRAM_DTYPE)
        self.right = np.empty_like(self.histograms)
        self.left = np.empty((n_threads, n_eras), dtype=HISTOGRAM_DTYPE)
        self.values = np.empty((n_threads, n_eras), dtype=np.float64)
        self.order = np.empty((n_threads, n_bins), dtype=X_BINNED_DTYPE)

    cdef void scan_feature(
        self,
        int thread_idx,
        int feature_idx,
        const hist_struct [:, ::1] pooled,  # IN, shape (n_features, n_bins)
        const node_struct * node,           # IN
        feature_split * best,                # OUT
    ) noexcept nogil:
        """Best split of one feature."""
        cdef:
            X_BINNED_DTYPE_C * order = &self.order[thread_idx, 0]
            int n_bins = self.n_bins_non_missing[feature_idx]
            int missing = self.missing_values_bin_idx
            bint has_missing = self.has_missing_values[feature_idx]
            int n_used
            int i
            feature_split proto

        best.found = False
        proto.found = True
        proto.feature_idx = feature_idx
        proto.is_categorical = self.is_categorical[feature_idx]
        proto.missing_go_to_left = False
        proto.bin_idx = 0
        init_bitset(proto.left_cat_bitset)

        self.histogram_builder.fill(feature_idx, &self.histograms[thread_idx, 0])

        if proto.is_categorical:
            # Categories are taken from both ends towards the middle, as in
            # scikit-learn: those with little support stay on the right side, which
            # always has at least half of the others.
            n_used = order_categories(
                &pooled[feature_idx, 0],
                n_bins,
                missing if has_missing else -1,
                self.hessians_are_constant,
                node.n_samples / node.sum_hessians,
                order,
            )
            if n_used <= 1:
                return
            n_bins += has_missing
            self.scan_order(
                thread_idx, pooled, n_bins, 0, (n_used + 1) // 2, node, &proto, best
            )
            for i in range(n_used // 2):
                order[i], order[n_used - 1 - i] = order[n_used - 1 - i], order[i]
            self.scan_order(
                thread_idx, pooled, n_bins, 0, (n_used + 1) // 2 - 1,
                node, &proto, best,
            )
            return

        # Missing values to the right. The last bin stays on the right side too, unless
        # the missing values are there to keep it from being empty.
        for i in range(n_bins):
            order[i] = i
        order[n_bins] = missing
        n_bins += has_missing
        self.scan_order(thread_idx, pooled, n_bins, 0, n_bins - 1, node, &proto, best)
        if has_missing:
            # Missing values to the left, along with one bin at least: they alone on
            # one side is what the last candidate above was.
            proto.missing_go_to_left = True
            order[0] = missing
            for i in range(n_bins - 1):
                order[i + 1] = i
            self.scan_order(
                thread_idx, pooled, n_bins, 1, n_bins - 1, node, &proto, best
            )

    cdef void scan_order(
        self,
        int thread_idx,
        const hist_struct [:, ::1] pooled,  # IN
        int n_bins,
        int first,
        int stop,
        const node_struct * node,           # IN
        feature_split * proto,              # IN, what the candidates have in common
        feature_split * best,               # IN and OUT
    ) noexcept nogil:
        """Move bins to the left side in order; rank the splits after `first`..`stop`-1.

        Every candidate passes scikit-learn's own conditions on the pooled sides, a
        monotonic constraint among them, before its eras are looked at.
        """
        cdef:
            const X_BINNED_DTYPE_C * order = &self.order[thread_idx, 0]
            hist_struct * left = &self.left[thread_idx, 0]
            hist_struct * right = &self.right[thread_idx, 0]
            const hist_struct * moved
            Py_ssize_t n_eras = self.n_eras
            signed char monotonic_cst = self.monotonic_cst[proto.feature_idx]
            unsigned int n_samples_right
            double sum_gradients_right, sum_hessians_right
            double value_left, value_right
            split_struct split
            int i
            int era

        # right[i] is what stays there once order[i] has moved. It is summed up from the
        # far end rather than taken from a total: a difference would leave a side whose
        # rows have no weight with the rounding of the other side's, and a value.
        memset(right + (n_bins - 1) * n_eras, 0, n_eras * sizeof(hist_struct))
        for i in range(n_bins - 1, first, -1):
            moved = &self.histograms[thread_idx, order[i] * n_eras]
            for era in range(n_eras):
                right[(i - 1) * n_eras + era] = _sum(
                    &right[i * n_eras + era], &moved[era]
                )

        split.left = left
        split.values = &self.values[thread_idx, 0]
        proto.n_samples_left = 0
        proto.sum_gradients_left = 0.0
        proto.sum_hessians_left = 0.0
        memset(left, 0, n_eras * sizeof(hist_struct))

        for i in range(stop):
            moved = &pooled[proto.feature_idx, order[i]]
            proto.n_samples_left += moved.count
            proto.sum_gradients_left += moved.sum_gradients
            proto.sum_hessians_left += bin_hessians(moved, self.hessians_are_constant)

            moved = &self.histograms[thread_idx, order[i] * n_eras]
            for era in range(n_eras):
                left[era] = _sum(&left[era], &moved[era])

            n_samples_right = node.n_samples - proto.n_samples_left
            sum_gradients_right = node.sum_gradients - proto.sum_gradients_left
            sum_hessians_right = node.sum_hessians - proto.sum_hessians_left
            if (
                i < first
                or proto.n_samples_left < self.min_samples_leaf
                or proto.sum_hessians_left < self.min_hessian_to_split
            ):
                continue
            if (
                n_samples_right < self.min_samples_leaf
                or sum_hessians_right < self.min_hessian_to_split
            ):
                break  # the right side only loses rows from here on

            value_left = self.child_value(
                node, proto.sum_gradients_left, proto.sum_hessians_left
            )
            value_right = self.child_value(
                node, sum_gradients_right, sum_hessians_right
            )
            if (
                monotonic_cst == MonotonicConstraint.POS and value_left > value_right
                or monotonic_cst == MonotonicConstraint.NEG and value_left < value_right
            ):
                continue
            split.right = right + i * n_eras
            split.gain = pooled_gain(
                node.loss,
                proto.sum_gradients_left, value_left,
                sum_gradients_right, value_right,
            )
            if not rank_split(&self.criterion, &node.eras, &split, &proto.rank):
                continue
            proto.bin_idx = 0 if proto.is_categorical else order[i]
            if is_better(proto, best):
                best[0] = proto[0]
                if proto.is_categorical:
                    self.store_categories(order, i + 1, best)

    cdef double child_value(
        self, const node_struct * node, double sum_gradients, double sum_hessians
    ) noexcept nogil:
        """Value of a child of `node`, within the bounds of monotonic constraints."""
        return bounded(
            node_value(sum_gradients, sum_hessians, self.criterion.l2_regularization),
            node.lower_bound,
            node.upper_bound,
        )

    cdef void store_categories(
        self, const X_BINNED_DTYPE_C * order, int n_left, feature_split * split
    ) noexcept nogil:
        cdef int i
        init_bitset(split.left_cat_bitset)
        for i in range(n_left):
            set_bitset(split.left_cat_bitset, order[i])
        split.missing_go_to_left = (
            self.has_missing_values[split.feature_idx]
            and in_bitset(split.left_cat_bitset, self.missing_values_bin_idx)
        )


cdef inline hist_struct _sum(
    const hist_struct * a, const hist_struct * b
) noexcept nogil:
    cdef hist_struct result
    result.sum_gradients = a.sum_gradients + b.sum_gradients
    result.sum_hessians = a.sum_hessians + b.sum_hessians
    result.count = a.count + b.count
    return result
