"""Grow symmetric (oblivious) trees, in which all nodes of a level share one split.

With G and H the sums of gradients and hessians of a node's rows on either side, the
split of a level maximises the gain of all its nodes,

    sum over nodes of G_L^2 / (H_L + l2) + G_R^2 / (H_R + l2) - G^2 / (H + l2).

All rows of a level choose the level's split. So, unlike a tree grown best first, a tree
of ``max_depth`` levels has few parameters [1]_.

.. [1] L. Prokhorenkova et al. (2018), CatBoost: unbiased boosting with categorical
   features. Advances in Neural Information Processing Systems 31.
"""

from cython.parallel import prange
from cpython.time cimport perf_counter
from libc.math cimport INFINITY
from libc.stdint cimport uint8_t
from libc.string cimport memset

import numpy as np

from .._arrays cimport hist_struct, omp_get_thread_num

from .candidates.orders cimport order_categories, set_left_categories
from .nodes cimport feature_split, tree_node
from .partition cimport set_left_bins
from .records cimport TreeRecords, add_leaf, split_leaf
from .rows cimport MAX_BINS
from .threads cimport threads_for

cdef enum:
    MAX_LEVELS = 8

cdef double LEAST = 1e-15  # so that nothing is divided by 0, as in scikit-learn

cdef struct bin_sums:
    double g
    double h

# The memory that a thread needs to find the split of a feature.
cdef struct scratch:
    bin_sums[(1 << (MAX_LEVELS - 1)) * MAX_BINS] sums  # by node and bin
    double[2 * MAX_BINS] gains                         # missing values right, then left
    uint8_t[MAX_BINS] order                            # of categories


cdef class SymmetricGrower:
    """Grows a tree in which all nodes of a level share a split. Takes the arguments of
    scikit-learn's grower, and ignores arguments that do not apply to these trees.
    """

    cdef:
        const uint8_t [::1, :] X_binned
        const float [::1] gradients, hessians
        const unsigned int [::1] n_bins_non_missing
        const uint8_t [::1] has_missing_values, is_categorical
        int missing_bin, n_levels, depth, n_threads
        double l2, least_gain
        readonly double shrinkage
        uint8_t [::1] node_of         # (n_rows,): bit d is set if it went right
        feature_split[MAX_LEVELS] splits
        readonly double total_find_split_time, total_compute_hist_time
        readonly double total_apply_split_time
        readonly object monotonic_cst
        double [::1] values           # of leaves, by their numbers in node_of
        object leaves
        # Sums of gradients, hessians and rows, by node. Level d starts at 2^d - 1.
        double [:, ::1] sums

    def __init__(
        self, X_binned, gradients, hessians, *, n_bins, n_bins_non_missing,
        has_missing_values, is_categorical, max_depth, l2_regularization,
        min_gain_to_split, shrinkage, n_threads, monotonic_cst, **_,
    ):
        self.X_binned = X_binned
        self.gradients = gradients
        self.hessians = hessians
        self.n_bins_non_missing = n_bins_non_missing
        self.has_missing_values = has_missing_values
        if is_categorical is None:
            is_categorical = np.zeros(X_binned.shape[1], dtype=np.uint8)
        self.is_categorical = is_categorical
        self.missing_bin = n_bins - 1
        self.n_levels = min(max_depth or MAX_LEVELS, MAX_LEVELS)
        self.l2 = l2_regularization + LEAST
        self.least_gain = min_gain_to_split
        self.shrinkage = shrinkage
        self.n_threads = n_threads
        self.monotonic_cst = monotonic_cst
        self.node_of = np.zeros(X_binned.shape[0], dtype=np.uint8)

    def grow(self):
        """Find the split of one level after another; then set the values of leaves."""
        tic = perf_counter()
        while self.depth < self.n_levels and self.split_level():
            self.depth += 1
        self.total_find_split_time = perf_counter() - tic
        sums = self.sums_of_nodes()
        self.values = self.shrinkage * -sums[0] / (sums[1] + self.l2)
        levels = [sums]
        for d in range(self.depth, 0, -1):
            sums = sums[:, : 1 << d - 1] + sums[:, 1 << d - 1 :]
            levels.append(sums)
        self.sums = np.hstack(levels[::-1])

    cdef bint split_level(self) except -1:
        """Find the best split of a level, and apply it; return whether there is one."""
        cdef:
            int n_features = self.X_binned.shape[1]
            int n_nodes = 1 << self.depth
            int n_threads = threads_for(
                self.n_threads, self.X_binned.shape[0] * <Py_ssize_t> n_features
            )
            scratch * own
            double [:, ::1] totals = self.sums_of_nodes()
            int j, best = -1
            double gain = self.least_gain
            uint8_t [::1] memory = np.empty(n_threads * sizeof(scratch), dtype=np.uint8)
            uint8_t [::1] found_memory
            feature_split * found
        found_memory = np.zeros(n_features * sizeof(feature_split), dtype=np.uint8)
        found = <feature_split *> &found_memory[0]
        for j in prange(
            n_features, schedule="static", nogil=True, num_threads=n_threads
        ):
            own = <scratch *> &memory[0] + omp_get_thread_num()
            sum_up(self, j, n_nodes, own)
            scan(self, j, n_nodes, &totals[0, 0], own, &found[j])
        for j in range(n_features):
            if found[j].found and found[j].rank.gain > gain:
                gain, best = found[j].rank.gain, j
        if best < 0:
            return False
        self.splits[self.depth] = found[best]
        move_rows(self, &found[best])
        return True

    cdef sums_of_nodes(self):
        """Return the sums of gradients, hessians and rows of the last level's nodes."""
        cdef:
            double [:, ::1] sums = np.zeros((3, 1 << self.depth))
            bint vary = self.hessians.shape[0] > 1
            Py_ssize_t i
            int node
        with nogil:
            for i in range(self.node_of.shape[0]):
                node = self.node_of[i]
                sums[0, node] += self.gradients[i]
                sums[1, node] += self.hessians[i] if vary else 0.0
                sums[2, node] += 1.0
            for node in range(0 if vary else sums.shape[1]):
                sums[1, node] = self.hessians[0] * sums[2, node]
        return np.asarray(sums)

    @property
    def finalized_leaves(self):
        """Return the leaves that have rows; changing their values changes the tree."""
        if self.leaves is None:
            nodes = np.asarray(self.node_of)
            order = np.argsort(nodes, kind="stable").astype(np.uint32)
            numbers, starts = np.unique(nodes[order], return_index=True)
            parts = np.split(order, starts[1:])
            self.leaves = [
                SymmetricLeaf(np.asarray(self.values), *pair)
                for pair in zip(numbers, parts, strict=True)
            ]
        return self.leaves

    def add_to(self, double [::1] raw_predictions):
        """Add each leaf's value to the raw predictions of the leaf's rows."""
        cdef Py_ssize_t i
        for i in range(raw_predictions.shape[0]):
            raw_predictions[i] += self.values[self.node_of[i]]

    def make_predictor(self, binning_thresholds):
        """Return the tree as scikit-learn's predictor. Nodes without rows are left out,
        as are splits that leave a side empty.
        """
        cdef TreeRecords records = TreeRecords(1 << self.depth)
        self.add_node(records, 0, 0, -1, False, 0)
        return records.predictor(binning_thresholds)

    cdef void add_node(
        self, TreeRecords records, int level, int number, int parent, bint is_right,
        int depth,
    ) noexcept:
        """Add a level's node and all nodes below it; skip splits with an empty side."""
        cdef:
            tree_node node
            feature_split split
            Py_ssize_t left, right, at
            int place
        while level < self.depth:
            left = (2 << level) - 1 + number
            right = left + (1 << level)
            if self.sums[2, left] > 0.0 and self.sums[2, right] > 0.0:
                break
            number += 0 if self.sums[2, left] > 0.0 else 1 << level
            level += 1
        at = (1 << level) - 1 + number
        memset(&node, 0, sizeof(tree_node))
        node.value = self.shrinkage * -self.sums[0, at] / (self.sums[1, at] + self.l2)
        if level == self.depth:
            node.value = self.values[number]
        node.pooled.n_samples = <int> self.sums[2, at]
        node.depth = depth
        node.parent = parent
        node.is_right = is_right
        place = add_leaf(&records.records, &node)
        if level == self.depth:
            return
        split = self.splits[level]
        split.rank.gain = self.gain_of(left) + self.gain_of(right) - self.gain_of(at)
        split.rank.gain = max(0.0, split.rank.gain)
        split.n_samples_left = <int> self.sums[2, left]
        split_leaf(
            &records.records, place, &split, self.has_missing_values[split.feature_idx]
        )
        right = number + (1 << level)
        self.add_node(records, level + 1, number, place, False, depth + 1)
        self.add_node(records, level + 1, right, place, True, depth + 1)

    cdef double gain_of(self, Py_ssize_t at) noexcept:
        return self.sums[0, at] * self.sums[0, at] / (self.sums[1, at] + self.l2)


class SymmetricLeaf:
    """A leaf with rows, whose value scikit-learn's losses may change."""

    def __init__(self, values, number, sample_indices):
        self._values, self._number = values, number
        self.sample_indices = sample_indices

    @property
    def value(self):
        return self._values[self._number]

    @value.setter
    def value(self, value):
        self._values[self._number] = value


cdef void sum_up(
    SymmetricGrower self, int feature, int n_nodes, scratch * own  # OUT
) noexcept nogil:
    """Sum up gradients and hessians by node and bin of a feature."""
    cdef:
        Py_ssize_t i, n_rows = self.X_binned.shape[0]
        const uint8_t * bins = &self.X_binned[0, feature]
        int n_bins = self.n_bins_non_missing[feature], node
        bint is_constant = self.hessians.shape[0] == 1
        bin_sums * sums
    for node in range(n_nodes):
        memset(&own.sums[node * MAX_BINS], 0, n_bins * sizeof(bin_sums))
        memset(&own.sums[node * MAX_BINS + self.missing_bin], 0, sizeof(bin_sums))
    for i in range(n_rows):
        sums = &own.sums[self.node_of[i] * MAX_BINS + bins[i]]
        sums.g += self.gradients[i]
        sums.h += self.hessians[0 if is_constant else i]


cdef inline double gain_of(
    double g, double h, double total_g, double total_h, double l2
) noexcept nogil:
    """Return G_L^2 / (H_L + l2) + G_R^2 / (H_R + l2), with a single division."""
    cdef double g_right = total_g - g, h_right = total_h - h + l2
    h = h + l2
    return (g * g * h_right + g_right * g_right * h) / (h * h_right)


cdef void scan(
    SymmetricGrower self, int feature, int n_nodes, const double * totals,
    scratch * own, feature_split * best,  # OUT
) noexcept nogil:
    """Set `best` to a feature's best split for all nodes of a level."""
    cdef:
        int n_bins = self.n_bins_non_missing[feature], n_ordered = n_bins
        int node, i, bin, side
        bint is_categorical = self.is_categorical[feature]
        bint has_missing = self.has_missing_values[feature] and not is_categorical
        double g, h, total_g, total_h, before = 0.0, largest = -INFINITY
        bin_sums * sums
        bin_sums missing
    for i in range(n_bins):
        own.order[i] = i
    if is_categorical:
        n_ordered = order_pooled_categories(self, feature, n_nodes, own)
    for i in range(2 * MAX_BINS):
        own.gains[i] = 0.0
    for node in range(n_nodes):
        total_g, total_h = totals[node], totals[n_nodes + node]
        before += total_g * total_g / (total_h + self.l2)
        sums = &own.sums[node * MAX_BINS]
        missing = sums[self.missing_bin]
        g = h = 0.0
        for i in range(n_ordered):
            bin = own.order[i] if own.order[i] < n_bins else self.missing_bin
            g, h = g + sums[bin].g, h + sums[bin].h
            own.gains[i] += gain_of(g, h, total_g, total_h, self.l2)
            if has_missing:
                own.gains[MAX_BINS + i] += gain_of(
                    g + missing.g, h + missing.h, total_g, total_h, self.l2
                )
    best.found = False
    for side in range(1 + has_missing):
        # The last bin is one side of missing values, or of rare categories.
        for i in range(n_ordered - (side == 1 or not (has_missing or is_categorical))):
            if own.gains[side * MAX_BINS + i] > largest:
                largest = own.gains[side * MAX_BINS + i]
                best.found = True
                best.bin_idx = i
                best.missing_go_to_left = side
    best.rank.gain = largest - before
    best.feature_idx = feature
    best.is_categorical = is_categorical
    if is_categorical and best.found:
        best.missing_go_to_left = set_left_categories(
            best.left_cat_bitset, own.order, best.bin_idx + 1, n_bins, self.missing_bin
        )
        best.bin_idx = 0


cdef int order_pooled_categories(
    SymmetricGrower self, int feature, int n_nodes, scratch * own,  # OUT
) noexcept nogil:
    """Order categories by their sums over all nodes; return how many may go left."""
    cdef:
        hist_struct[MAX_BINS] pooled
        int n_bins = self.n_bins_non_missing[feature], i, node, bin
        double total = 0.0
    memset(pooled, 0, sizeof(pooled))
    for i in range(n_bins + 1):
        bin = i if i < n_bins else self.missing_bin
        for node in range(n_nodes):
            pooled[i].sum_gradients += own.sums[node * MAX_BINS + bin].g
            pooled[i].sum_hessians += own.sums[node * MAX_BINS + bin].h
        total += pooled[i].sum_hessians
    return order_categories(
        pooled, n_bins, True, self.X_binned.shape[0] / max(total, LEAST), own.order
    )


cdef void move_rows(SymmetricGrower self, const feature_split * split) noexcept:
    """Mark in `node_of` the rows that a split sends to the right."""
    cdef:
        const uint8_t * bins = &self.X_binned[0, split.feature_idx]
        uint8_t[MAX_BINS] goes_left
        Py_ssize_t i
    set_left_bins(split, self.missing_bin, goes_left)
    for i in range(self.node_of.shape[0]):
        self.node_of[i] |= (not goes_left[bins[i]]) << self.depth
