"""The candidate splits of a node, and what the eras say of them.

A table holds, for each bundle of features, the orders in which bins move to the left
side, the sums of the node by bin over all eras, and for each candidate split the sums
over eras that its criterion needs (`split_sums`). It is started for a node, its eras
are accumulated, the sums of other processes, which hold other eras, are merged with
them, and then it is ranked.
"""

from libc.limits cimport UINT_MAX
from libc.stdlib cimport calloc, free
from libc.string cimport memset

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common cimport hist_struct

from .categories cimport n_moved_from_end, order_categories, reverse_order
from ..bundles cimport FeatureBundles, bundle_struct
from ..lanes.table cimport at_cache_line
from ..._criteria.exchanged_sums cimport (
    MAX_EXTREMES, MAX_SUMS, count_from_extremes, exchange_fields, write_extremes,
)
from ..._criteria.split_sums cimport clear_sums, split_sums


cdef unsigned int to_count(double n_rows) except? 0:
    """Return a number of rows that processes have summed up, if it can be one."""
    if not 0.0 <= n_rows <= UINT_MAX:  # no C compiler says what becomes of others
        raise ValueError(
            f"The workers of the fit count {n_rows:g} rows in a bin: a stranger has "
            "joined them, or one of them is damaged."
        )
    return <unsigned int> n_rows


cdef class CandidateTable:
    """The candidate splits of one node after another, for the trees of a fit."""

    def __dealloc__(self):
        self._free()

    cdef void _free(self):
        free(self.candidates)
        free(self.pooled)
        free(self.splits)
        self.candidates = NULL
        self.pooled = NULL
        self.splits = NULL

    def use_bundles(self, FeatureBundles bundles):
        """Make room for the candidate splits of some bundles of features."""
        cdef:
            Py_ssize_t n_splits = 0
            hist_struct * pooled
            split_sums * splits
            int i
        if bundles is self.bundles:
            return
        self._free()
        self.bundles = bundles
        for i in range(bundles.n_bundles):
            n_splits += self.most_splits(&bundles.bundles[i])
        self.candidates = <bundle_candidates *> calloc(
            max(bundles.n_bundles, 1), sizeof(bundle_candidates)
        )
        self.pooled = <hist_struct *> calloc(
            max(bundles.n_bins, 1), sizeof(hist_struct)
        )
        self.splits = <split_sums *> calloc(n_splits + 1, sizeof(split_sums))
        if self.candidates == NULL or self.pooled == NULL or self.splits == NULL:
            self.bundles = None
            raise MemoryError(
                f"cannot allocate {n_splits * sizeof(split_sums)} bytes for the "
                f"candidate splits of {len(bundles.features)} features"
            )
        pooled = self.pooled
        # The sums of a split that need to be fast are a cache line, if they begin one.
        splits = <split_sums *> at_cache_line(self.splits)
        for i in range(bundles.n_bundles):
            self.candidates[i].pooled = pooled
            self.candidates[i].splits = splits
            pooled += bundles.bundles[i].n_bins
            splits += self.most_splits(&bundles.bundles[i])

    cdef int most_splits(self, const bundle_struct * bundle) noexcept nogil:
        """Room for the candidate splits of a bundle, be they in one order or in two.
        """
        cdef:
            int n_splits = 0
            int feature_idx, j
        for j in range(bundle.n_members):
            feature_idx = bundle.members[j]
            n_splits += bundle.n_codes[j] * (
                1 + (
                    self.tree.is_categorical[feature_idx]
                    or self.tree.has_missing_values[feature_idx]
                )
            )
        return n_splits

    cdef bint start_bundle(
        self,
        int bundle_idx,
        const uint8_t * is_wanted,  # IN, shape (n_features,)
        bint is_pooled,             # all features, before the eras are compared
    ) noexcept nogil:
        """Begin a node for the features of a bundle that are wanted.

        Returns whether any of them is to be pooled before the eras are compared.
        """
        cdef:
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            bundle_candidates * candidates = &self.candidates[bundle_idx]
            feature_candidates * feature
            int first_bin = 0
            int j

        candidates.n_splits = 0
        memset(candidates.pooled, 0, bundle.n_bins * sizeof(hist_struct))
        for j in range(bundle.n_members):
            feature = &candidates.features[j]
            feature.feature_idx = bundle.members[j]
            feature.first_bin = first_bin
            feature.is_wanted = is_wanted[feature.feature_idx]
            feature.is_pooled = (
                is_pooled or self.tree.is_categorical[feature.feature_idx]
            )
            feature.n_orders = 0
            first_bin += bundle.n_codes[j]
        return self.needs_pooling(bundle_idx)

    cdef bint needs_pooling(self, int bundle_idx) noexcept nogil:
        """Whether a feature of a bundle is pooled before the eras are compared."""
        cdef:
            const bundle_candidates * candidates = &self.candidates[bundle_idx]
            int j
        for j in range(self.bundles.bundles[bundle_idx].n_members):
            if candidates.features[j].is_wanted and candidates.features[j].is_pooled:
                return True
        return False

    cdef void order_bins(
        self, int bundle_idx, const node_struct * node
    ) noexcept nogil:
        """Settle which bins move to the left in which order, and clear the sums."""
        cdef:
            const bundle_struct * bundle = &self.bundles.bundles[bundle_idx]
            bundle_candidates * candidates = &self.candidates[bundle_idx]
            feature_candidates * feature
            int j
        for j in range(bundle.n_members):
            feature = &candidates.features[j]
            if not feature.is_wanted and bundle.masks == NULL:
                continue  # with masks, each split has its lane
            if self.tree.is_categorical[feature.feature_idx]:
                self.add_categorical_orders(
                    candidates, feature, bundle.n_codes[j], node
                )
            else:
                self.add_numeric_orders(candidates, feature, bundle.n_codes[j])
        clear_sums(self.criterion, candidates.splits, candidates.n_splits)

    cdef void start_again(self, int bundle_idx) noexcept nogil:
        """Forget what the eras have said of a bundle's candidates, but not its sums."""
        cdef:
            bundle_candidates * candidates = &self.candidates[bundle_idx]
            int j
        for j in range(self.bundles.bundles[bundle_idx].n_members):
            candidates.features[j].is_pooled = True
        clear_sums(self.criterion, candidates.splits, candidates.n_splits)

    cdef void add_numeric_orders(
        self, bundle_candidates * bundle, feature_candidates * feature, int n_codes
    ) noexcept nogil:
        """Missing values to the right, and in a second order to the left.

        The last bin stays on the right side, unless the missing values are there to
        keep it from being empty. To the left they go along with one bin at least: they
        alone on one side is what the last candidate of the first order is.
        """
        cdef:
            bint has_missing = (
                n_codes > <int> self.tree.n_bins_non_missing[feature.feature_idx]
            )
            int i
        for i in range(n_codes):
            feature.orders[0].bins[i] = i
        add_order(bundle, feature, n_codes, 0, n_codes - 1, False)
        if has_missing:
            feature.orders[1].bins[0] = n_codes - 1
            for i in range(n_codes - 1):
                feature.orders[1].bins[i + 1] = i
            add_order(bundle, feature, n_codes, 1, n_codes - 1, True)

    cdef void add_categorical_orders(
        self,
        bundle_candidates * bundle,
        feature_candidates * feature,
        int n_codes,
        const node_struct * node,
    ) noexcept nogil:
        """From both ends of the categories' order towards the middle."""
        cdef:
            int n_bins = self.tree.n_bins_non_missing[feature.feature_idx]
            bin_order * order = &feature.orders[0]
            int n_used = order_categories(
                bundle.pooled + feature.first_bin,
                n_bins,
                n_codes > n_bins,
                node.n_samples / node.sum_hessians,
                order.bins,
            )
        if n_used <= 1:
            return
        add_order(bundle, feature, n_codes, 0, n_moved_from_end(n_used, False), False)
        feature.orders[1] = order[0]
        reverse_order(feature.orders[1].bins, n_used)
        add_order(bundle, feature, n_codes, 0, n_moved_from_end(n_used, True), False)

    cdef merge_pooled(
        self, const int [::1] tasks, int n_tasks, bint are_pooled_before, exchange
    ):
        """Add the sums by bin of other processes, of the features that are wanted.

        Of those that are pooled before the eras are compared, and along with them the
        number of eras that can be covered, or of the others.
        """
        cdef:
            const bundle_struct * bundle
            const feature_candidates * feature
            hist_struct * pooled
            double [::1] numbers = np.empty(3 * self.bundles.n_bins + 1)
            Py_ssize_t n = 0
            int i, j, k
            bint reads
        for reads in (False, True):
            if reads:
                numbers = exchange.sum(np.asarray(numbers[:n]))
            n = 0
            for i in range(n_tasks):
                bundle = &self.bundles.bundles[tasks[i]]
                for j in range(bundle.n_members):
                    feature = &self.candidates[tasks[i]].features[j]
                    if not feature.is_wanted or feature.is_pooled != are_pooled_before:
                        continue
                    pooled = self.candidates[tasks[i]].pooled + feature.first_bin
                    for k in range(bundle.n_codes[j]):
                        if reads:
                            pooled[k].sum_gradients = numbers[n]
                            pooled[k].sum_hessians = numbers[n + 1]
                            pooled[k].count = to_count(numbers[n + 2])
                        else:
                            numbers[n] = pooled[k].sum_gradients
                            numbers[n + 1] = pooled[k].sum_hessians
                            numbers[n + 2] = pooled[k].count
                        n += 3
            if n == 0:
                return
            if are_pooled_before:
                if reads:
                    self.n_coverable = numbers[n]
                else:
                    numbers[n] = self.n_coverable
                n += 1

    cdef merge_splits(self, const int [::1] tasks, int n_tasks, exchange):
        """Merge what the eras of other processes say of the candidate splits."""
        cdef:
            const bundle_candidates * candidates
            Py_ssize_t n_splits = 0
            Py_ssize_t n = 0
            double [::1] extremes, numbers
            int n_extremes = 0
            int n_numbers = 0
            int i, j
        for i in range(n_tasks):
            n_splits += self.candidates[tasks[i]].n_splits
        if n_splits == 0:
            return
        extremes = np.empty(MAX_EXTREMES * n_splits)
        for i in range(n_tasks):
            candidates = &self.candidates[tasks[i]]
            for j in range(candidates.n_splits):
                n_extremes = write_extremes(
                    self.criterion, &candidates.splits[j], &extremes[n]
                )
                n += n_extremes
        if n_extremes > 0:
            extremes = exchange.max(np.asarray(extremes[:n]))
        numbers = np.empty(MAX_SUMS * n_splits)
        n = 0
        for i in range(n_tasks):
            candidates = &self.candidates[tasks[i]]
            for j in range(candidates.n_splits):
                count_from_extremes(
                    self.criterion, &extremes[n * n_extremes], &candidates.splits[j]
                )
                n_numbers = exchange_fields(
                    self.criterion, False, &candidates.splits[j],
                    &numbers[n * n_numbers],
                )
                n += 1
        numbers = exchange.sum(np.asarray(numbers[: n_numbers * n_splits]))
        n = 0
        for i in range(n_tasks):
            candidates = &self.candidates[tasks[i]]
            for j in range(candidates.n_splits):
                exchange_fields(
                    self.criterion, True, &candidates.splits[j],
                    &numbers[n * n_numbers],
                )
                n += 1


cdef inline void add_order(
    bundle_candidates * bundle,
    feature_candidates * feature,
    int n_bins,
    int first,
    int stop,
    bint missing_go_to_left,
) noexcept nogil:
    cdef bin_order * order = &feature.orders[feature.n_orders]
    order.n_bins = n_bins
    order.first = first
    order.stop = stop
    order.first_split = bundle.n_splits
    order.missing_go_to_left = missing_go_to_left
    feature.n_orders += 1
    bundle.n_splits += max(stop - first, 0)
