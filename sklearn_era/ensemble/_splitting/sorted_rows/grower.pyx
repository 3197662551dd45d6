"""The subtrees of a tree's small nodes, grown without Python.

To split a node, scikit-learn's grower sums up a histogram of 255 bins for each feature
and scans it, be there 20,000 rows in the node or two. Most nodes of a tree that is
grown to full depth are small. So those of some hundred rows are grown here, each with
all that is below it:

1. the rows are sorted by each feature, once (`small_rows`, `sorted_rows`), and splits
   keep the order;
2. neighbours among the sorted rows are the candidate splits of a node, ranked by the
   gain (`gain_scan`) or by what the eras say (`era_gain_scan`, `moving_eras`);
3. nodes are made depth first, a left child before the right one.

The formulas are those of the histogram splitters, and sums are in their order or exact.
So a tree by a criterion that compares eras is the same, to the last bit, as if no node
had been small, unless sums of weights are rounded or features drawn; and so is a tree
by the gain, but for gains that are equal up to rounding.
"""

import numpy as np

from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

from sklearn.ensemble._hist_gradient_boosting.common cimport node_struct as node_record
from sklearn.utils._typedefs cimport uint8_t, uint64_t

from .category_scan cimport can_part_categories, may_part_categories, scan_categories
from .era_scan cimport scan_eras
from .features cimport draw_features, list_all, list_varying, listed
from .gain_scan cimport scan_gains
from .moving_eras cimport measure_impurities, moving_era, start_node
from .node cimport is_like, make_children
from .node_rows cimport ask_alike, gather_rows, keys_of, part_node
from .records cimport add_leaf, reserve, reserve_bitsets, split_leaf
from ..categories cimport MIN_CATEGORY_SUPPORT
from ..costs cimport sums_occupied_bins
from ..._criteria.era_statistics cimport era_sums
from ..._criteria.split_sums cimport sums_up

# Rows of a small node: as many as one block of `EraRows` has at least, so that an
# impurity is summed up in the same order here as there.
MAX_ROWS = 1024

# Of a category that takes part in splits, in units of the mean weight of a node's rows.
MIN_SUPPORT = MIN_CATEGORY_SUPPORT


cdef class SubtreeGrower:
    """Grows the subtrees of a tree's small nodes.

    Parameters
    ----------
    X_binned : ndarray of shape (n_rows, n_features), dtype=uint8, F-ordered
    gradients : ndarray of shape (n_rows,), dtype=float32
    hessians : ndarray of shape (1,) or (n_rows,), dtype=float32
    n_bins_non_missing : ndarray of shape (n_features,), dtype=uint32
    has_missing_values : ndarray of shape (n_features,), dtype=uint8
    is_categorical : ndarray of shape (n_features,), dtype=uint8
    missing_values_bin_idx : int
        As for scikit-learn's `TreeGrower`.
    max_depth : int or None
        Of the tree.
    min_samples_leaf : int
    min_hessian_to_split, min_gain_to_split, l2_regularization : float
        As for scikit-learn's `TreeGrower`.
    max_features : int
        How many features to draw for each node.
    seed : int
        Of the draw of features.
    max_rows : int
        The most rows of a small node; `MAX_ROWS` at most.
    era_splitter : EraSplitter or None
        The splitter of the tree, which has been started; None for the gain.
    """

    def __init__(
        self,
        X_binned,
        gradients,
        hessians,
        *,
        n_bins_non_missing,
        has_missing_values,
        is_categorical,
        int missing_values_bin_idx,
        max_depth,
        int min_samples_leaf,
        double min_hessian_to_split,
        double min_gain_to_split,
        double l2_regularization,
        int max_features,
        uint64_t seed,
        int max_rows,
        EraSplitter era_splitter,
    ):
        if not 1 <= max_rows <= MAX_ROWS:
            raise ValueError(
                f"max_rows is {max_rows}; a small node has from 1 to {MAX_ROWS} rows."
            )
        self.X_binned = X_binned
        self.gradients = gradients
        self.hessians = hessians
        self.tree_gradients = &self.gradients[0]
        self.tree_hessians = NULL if hessians.shape[0] == 1 else &self.hessians[0]
        self.n_features = X_binned.shape[1]
        self.n_bins_non_missing = n_bins_non_missing
        self.has_missing_values = has_missing_values
        self.is_categorical = is_categorical
        self.has_categories = np.any(is_categorical)
        self.missing_values_bin_idx = missing_values_bin_idx
        self.max_depth = -1 if max_depth is None else max_depth
        self.limits.min_samples_leaf = min_samples_leaf
        self.limits.min_hessian_to_split = min_hessian_to_split
        self.limits.min_gain_to_split = min_gain_to_split
        self.limits.l2_regularization = l2_regularization
        self.max_rows = max_rows
        self._make_rows()
        self._make_lists(max_features, seed)
        self.waiting = <small_node *> calloc(max_rows + 1, sizeof(small_node))
        if self.waiting == NULL:
            raise MemoryError(f"cannot allocate a stack of {max_rows} nodes")
        self.compares_eras = era_splitter is not None
        if self.compares_eras:
            self._compare_eras(era_splitter)

    def __dealloc__(self):
        free(self.waiting)
        free(self.records.nodes)
        free(self.records.bitsets)
        free(self.eras.present)

    def _make_rows(self):
        """Make room for the rows of a small node."""
        cdef:
            unsigned int [::1] numbers = np.empty(self.max_rows, dtype=np.uint32)
            unsigned int [:, ::1] keys = np.empty(
                (self.n_features, self.max_rows), dtype=np.uint32
            )
            unsigned int [::1] scratch = np.empty(self.max_rows, dtype=np.uint32)
            uint8_t [::1] goes_left = np.empty(self.max_rows, dtype=np.uint8)
            double [:, ::1] sums = np.empty((2, self.max_rows))
        self.row_memory = (numbers, keys, scratch, goes_left, sums)
        self.rows.n_features = self.n_features
        self.rows.capacity = self.max_rows
        self.rows.rows = &numbers[0]
        self.rows.keys = &keys[0, 0]
        self.rows.scratch = &scratch[0]
        self.rows.goes_left = &goes_left[0]
        self.rows.sums.gradients = &sums[0, 0]
        self.rows.sums.hessians = NULL if self.tree_hessians == NULL else &sums[1, 0]
        self.rows.gradient_unit = 0.0

    def _make_lists(self, int max_features, uint64_t seed):
        """Make room for lists of features: no path is longer than the rows it parts."""
        cdef:
            int [:, ::1] lists = np.empty(
                (self.max_rows + 1, self.n_features), dtype=np.int32
            )
            int [::1] n_listed = np.zeros(self.max_rows + 1, dtype=np.int32)
            int [::1] deck = np.arange(self.n_features, dtype=np.int32)
            uint8_t [::1] is_drawn = np.ones(self.n_features, dtype=np.uint8)
            uint8_t [::1] can_part = np.ones(self.n_features, dtype=np.uint8)
        self.feature_memory = (lists, n_listed, deck, is_drawn, can_part)
        self.features.n_features = self.n_features
        self.features.is_categorical = &self.is_categorical[0]
        self.features.lists = &lists[0, 0]
        self.features.n_listed = &n_listed[0]
        self.features.n_drawn = max_features
        self.features.random_state = seed
        self.features.deck = &deck[0]
        self.features.is_drawn = &is_drawn[0]
        self.features.can_part = &can_part[0]

    def _compare_eras(self, EraSplitter splitter):
        """Take over from a splitter how it sums up rows and compares eras."""
        self.era_splitter = splitter  # whose memory is pointed to
        self.era_codes = splitter.rows.era_codes
        self.positive_weights = splitter.rows.positive_weights
        self.weights = splitter.rows.weights
        self.compares_targets = splitter.compares_targets
        if splitter.rows.uses_integers:
            self.rows.gradient_unit = splitter.rows.unit
            self.rows.gradient_scale = splitter.rows.scale
        self.impurities = np.zeros(splitter.rows.n_eras)

        self.eras.criterion = &splitter.criterion
        self.eras.pooled.n_eras = splitter.rows.n_eras
        self.eras.pooled.impurities = &self.impurities[0]
        self.eras.pooled.era_sizes = &splitter.era_sizes[0]
        self.eras.pooled.gradient_variance = splitter.gradient_variance
        self.eras.is_exact = splitter.rows.uses_integers and not self.compares_targets
        self.eras.sums = self.rows.sums
        cdef:
            double [:, ::1] targets = np.empty((2, self.max_rows))
            int [::1] codes = np.empty(self.max_rows, dtype=np.int32)
            int [::1] slots = np.empty(self.max_rows, dtype=np.int32)
            double [:, ::1] from_far_end = np.empty((2, self.max_rows))
        self.era_memory = (codes, slots, from_far_end, targets)
        if self.compares_targets:
            self.eras.sums.gradients = &targets[0, 0]
            self.eras.sums.hessians = &targets[1, 0]
        self.eras.codes = &codes[0]
        self.eras.slots = &slots[0]
        self.eras.gradients_right = &from_far_end[0, 0]
        self.eras.hessians_right = &from_far_end[1, 0]
        self.eras.present = <moving_era *> calloc(
            min(self.max_rows, splitter.rows.n_eras), sizeof(moving_era)
        )
        if self.eras.present == NULL:
            raise MemoryError(f"cannot allocate {splitter.rows.n_eras} eras")

    def grow(
        self,
        const unsigned int [::1] partition,
        const int [::1] starts,
        const int [::1] stops,
        const int [::1] depths,
        const double [::1] sum_gradients,
        const double [::1] sum_hessians,
        const double [::1] values,
    ):
        """Grow the subtrees of some small nodes.

        Parameters
        ----------
        partition : ndarray of shape (n_rows,), dtype=uint32
            The rows of the tree; those of a small node are a range of it, by era.
        starts, stops : ndarray of shape (n_nodes,), dtype=int32
            The range of each small node.
        depths : ndarray of shape (n_nodes,), dtype=int32
        sum_gradients, sum_hessians, values : ndarray of shape (n_nodes,), dtype=float64
            As in scikit-learn's `TreeNode`.

        Returns
        -------
        records : ndarray of shape (n_records,), dtype=PREDICTOR_RECORD_DTYPE
            The nodes of all subtrees, of each one in the order in which scikit-learn
            has them, a parent before its children. `left` and `right` count from the
            first node of the subtree, and `num_threshold` is not set.
        bitsets : ndarray of shape (n_categorical_splits, 8), dtype=uint32
            The categories on the left side of a split, by `bitset_idx`.
        sizes : ndarray of shape (n_nodes,), dtype=int64
            The nodes of each subtree.
        """
        cdef:
            int n_nodes = starts.shape[0]
            long long [::1] sizes = np.zeros(n_nodes, dtype=np.int64)
            small_node node
            bint has_memory = True
            int i

        with nogil:
            self.records.n_nodes = 0
            self.records.n_bitsets = 0
            memset(&node, 0, sizeof(node))
            node.parent = -1
            for i in range(n_nodes):
                self.records.first = self.records.n_nodes
                has_memory = reserve(
                    &self.records, 2 * (stops[i] - starts[i])
                ) and (
                    not self.has_categories
                    or reserve_bitsets(&self.records, stops[i] - starts[i])
                )
                if not has_memory:
                    break
                self.start_small_node(&partition[starts[i]], stops[i] - starts[i])
                node.stop = self.rows.n_rows
                node.depth = depths[i]
                node.sum_gradients = sum_gradients[i]
                node.sum_hessians = sum_hessians[i]
                node.value = values[i]
                self.grow_subtree(&node)
                sizes[i] = self.records.n_nodes - self.records.first
        if not has_memory:
            raise MemoryError(
                f"cannot allocate the nodes of a tree, more than {self.records.n_nodes}"
            )
        records = np.empty(self.records.n_nodes, dtype=PREDICTOR_RECORD_DTYPE)
        cdef node_record [::1] view = records
        if records.size > 0:
            memcpy(&view[0], self.records.nodes, records.nbytes)
        bitsets = np.empty((self.records.n_bitsets, 8), dtype=np.uint32)
        cdef unsigned int [:, ::1] bits = bitsets
        if bitsets.size > 0:
            memcpy(&bits[0, 0], self.records.bitsets, bitsets.nbytes)
        return records, bitsets, np.asarray(sizes)

    def is_pure(self, const unsigned int [::1] sample_indices):
        """Whether all rows of a node ask for the same, so that there is none to part.

        Parameters
        ----------
        sample_indices : ndarray of shape (n_rows,), dtype=uint32

        Returns
        -------
        is_pure : bool
        """
        cdef:
            era_sums first, other
            bint result = True
            Py_ssize_t i
        memset(&first, 0, sizeof(first))
        memset(&other, 0, sizeof(other))
        with nogil:
            for i in range(sample_indices.shape[0]):
                other.gradients = self.tree_gradients[sample_indices[i]]
                other.hessians = (
                    1.0 if self.tree_hessians == NULL
                    else self.tree_hessians[sample_indices[i]]
                )
                if not is_like(&first, &other):
                    result = False
                    break
        return result

    cdef void start_small_node(
        self, const unsigned int * samples, int n_rows
    ) noexcept nogil:
        """Gather what is to be known of a small node's rows, and sort them."""
        cdef int i
        self.rows.samples = samples
        self.rows.n_rows = n_rows
        gather_rows(
            &self.rows, &self.X_binned[0, 0], self.X_binned.shape[0],
            self.tree_gradients, self.tree_hessians,
        )
        if self.compares_eras:
            for i in range(n_rows):
                self.eras.codes[i] = self.era_codes[samples[i]]
        if self.compares_targets:
            for i in range(n_rows):
                self.eras.sums.gradients[i] = self.positive_weights[samples[i]]
                self.eras.sums.hessians[i] = self.weights[samples[i]]
        list_all(&self.features)

    cdef void grow_subtree(self, const small_node * root) noexcept nogil:
        cdef:
            small_node node
            feature_split split
            int number
        self.waiting[0] = root[0]
        self.n_waiting = 1
        while self.n_waiting > 0:
            self.n_waiting -= 1
            node = self.waiting[self.n_waiting]
            number = add_leaf(&self.records, &node)
            if (
                node.depth == self.max_depth
                or node.stop - node.start < 2 * self.limits.min_samples_leaf
                or ask_alike(&self.rows, &node)
                or not self.find_split(&node, &split)
            ):
                continue
            part_node(
                &self.rows, &node, &split,
                listed(&self.features, node.level),
                self.features.n_listed[node.level],
                self.missing_values_bin_idx,
            )
            split_leaf(
                &self.records,
                number,
                &split,
                self.has_missing_values[split.feature_idx],
            )
            # The left child is to be first.
            make_children(
                &node, &split, number, &self.limits,
                &self.waiting[self.n_waiting + 1], &self.waiting[self.n_waiting],
            )
            self.n_waiting += 2

    cdef bint find_split(self, small_node * node, feature_split * split) noexcept nogil:
        """Find the best split of a node; False where there is none."""
        cdef:
            const int * features
            const unsigned int * keys
            bint sums_are_kept = False
            double rows_per_era = 0.0
            int n_bins, missing_code, feature, i

        split.found = False
        split.is_categorical = False
        split.rank.gain = self.limits.min_gain_to_split
        if self.compares_eras:
            if not self.start_eras(node):
                return False
            sums_are_kept = sums_up(self.eras.criterion)
            rows_per_era = (
                <double> (node.stop - node.start) / self.eras.n_present
            )
        list_varying(
            &self.features, node.level, self.rows.keys, self.rows.capacity,
            node.start, node.stop,
            may_part_categories(node.stop - node.start),
        )
        node.level += 1  # whose list is of this node, and good for the children
        if self.features.n_drawn < self.n_features:
            self.find_parting(node)
            draw_features(&self.features, node.level)
        features = listed(&self.features, node.level)
        for i in range(self.features.n_listed[node.level]):
            feature = features[i]
            if not self.features.is_drawn[feature]:
                continue
            keys = keys_of(&self.rows, feature, node.start)
            n_bins = self.n_bins_non_missing[feature]
            missing_code = (
                self.missing_values_bin_idx if self.has_missing_values[feature] else -1
            )
            if self.is_categorical[feature]:
                scan_categories(
                    feature, keys, n_bins, missing_code >= 0, missing_code,
                    node, &self.rows.sums, &self.limits,
                    &self.eras if self.compares_eras else NULL,
                    self.rows.scratch, split,
                )
                continue
            if not self.compares_eras:
                scan_gains(
                    feature, keys, missing_code,
                    node, &self.rows.sums, &self.limits, split,
                )
                continue
            scan_eras(
                feature, keys, missing_code,
                sums_are_kept
                and missing_code < 0
                and sums_occupied_bins(n_bins, rows_per_era),
                node, &self.rows.sums, &self.limits,
                &self.eras, self.rows.scratch, split,
            )
        return split.found

    cdef void find_parting(self, const small_node * node) noexcept nogil:
        """Find which of the features listed can part a node's rows: all numbers can."""
        cdef:
            const int * features = listed(&self.features, node.level)
            int i
        for i in range(self.features.n_listed[node.level]):
            if self.is_categorical[features[i]]:
                self.features.can_part[features[i]] = can_part_categories(
                    keys_of(&self.rows, features[i], node.start), node, &self.rows.sums
                )

    cdef bint start_eras(self, const small_node * node) noexcept nogil:
        """Find the eras of a node; False where too few of them have enough rows."""
        cdef int n_coverable = start_node(
            &self.eras, self.rows.rows + node.start, node.stop - node.start
        )
        if n_coverable < self.eras.criterion.min_covered_eras:
            return False
        self.eras.pooled.sum_hessians = node.sum_hessians
        if self.eras.criterion.traits.keeps_impurities:
            measure_impurities(
                &self.eras, &self.rows, node.start,
                self.tree_gradients, self.tree_hessians, &self.impurities[0],
            )
        return True
