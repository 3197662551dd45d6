"""The subtrees of a tree's small nodes, grown without Python.

To split a node, scikit-learn's grower sums up a histogram of 255 bins for each feature
and scans it, be there 20,000 rows in the node or two. Most nodes of a tree that is
grown to full depth are small. So those of some hundred rows are grown here, each with
all that is below it:

1. the rows are sorted by each feature, once (`sorted_rows`), and splits keep the order;
2. neighbours among the sorted rows are the candidate splits of a node, ranked by the
   gain (`gain_scan`) or by what the eras say (`era_gain_scan`, `moving_eras`);
3. nodes are made depth first, a left child before the right one.

The formulas are those of the histogram splitters, and sums are in their order or exact.
So a tree by a criterion that compares eras is the same, to the last bit, as if no node
had been small, unless sums of weights are rounded or features drawn; and so is a tree
by the gain, but for gains that are equal up to rounding.
"""

import numpy as np

from libc.math cimport llrint
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

from sklearn.ensemble._hist_gradient_boosting.common cimport node_struct as node_record
from sklearn.utils._typedefs cimport uint8_t, uint64_t

from sklearn_era.ensemble._era_forest.era_gain_scan cimport scan_eras
from sklearn_era.ensemble._era_forest.feature_lists cimport (
    draw_features,
    list_all,
    list_varying,
    listed,
)
from sklearn_era.ensemble._era_forest.gain_scan cimport scan_gains
from sklearn_era.ensemble._era_forest.moving_eras cimport moving_era, start_node
from sklearn_era.ensemble._era_forest.small_node cimport child_value, is_like
from sklearn_era.ensemble._era_forest.sorted_rows cimport (
    code_of,
    part_rows,
    row_of,
    sort_rows,
)
from sklearn_era.ensemble._era_forest.tree_records cimport (
    add_leaf,
    reserve,
    split_leaf,
)
from sklearn_era.ensemble._hist_gradient_boosting.cost_rules cimport sums_touched_bins
from sklearn_era.ensemble._hist_gradient_boosting.criteria cimport SplitCriterion
from sklearn_era.ensemble._hist_gradient_boosting.era_rows cimport (
    add_squares,
    impurity_sums,
)
from sklearn_era.ensemble._hist_gradient_boosting.era_statistics cimport (
    era_sums,
    impurity,
)
from sklearn_era.ensemble._hist_gradient_boosting.split_sums cimport sums_up

# Rows of a small node: as many as one block of `EraRows` has at least, so that an
# impurity is summed up in the same order here as there.
MAX_ROWS = 1024


cdef class SubtreeGrower:
    """Grows the subtrees of a tree's small nodes.

    Parameters
    ----------
    X_binned : ndarray of shape (n_rows, n_features), dtype=uint8, F-ordered
    gradients : ndarray of shape (n_rows,), dtype=float32
    hessians : ndarray of shape (1,) or (n_rows,), dtype=float32
    n_bins_non_missing : ndarray of shape (n_features,), dtype=uint32
    has_missing_values : ndarray of shape (n_features,), dtype=uint8
    missing_values_bin_idx : int
        As for scikit-learn's `TreeGrower`. No feature is taken for categorical.
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
        self.hessians_are_constant = hessians.shape[0] == 1
        self.n_features = X_binned.shape[1]
        self.n_bins_non_missing = n_bins_non_missing
        self.has_missing_values = has_missing_values
        self.missing_values_bin_idx = missing_values_bin_idx
        self.max_depth = -1 if max_depth is None else max_depth
        self.limits.min_samples_leaf = min_samples_leaf
        self.limits.min_hessian_to_split = min_hessian_to_split
        self.limits.min_gain_to_split = min_gain_to_split
        self.limits.l2_regularization = l2_regularization
        self.max_rows = max_rows
        self.rows = np.empty(max_rows, dtype=np.uint32)
        self.keys = np.empty((self.n_features, max_rows), dtype=np.uint32)
        self.scratch = np.empty(max_rows, dtype=np.uint32)
        self.goes_left = np.empty(max_rows, dtype=np.uint8)
        self.row_gradients = np.empty(max_rows)
        self.sums.gradients = &self.row_gradients[0]
        self.sums.hessians = NULL
        if not self.hessians_are_constant:
            self.row_hessians = np.empty(max_rows)
            self.sums.hessians = &self.row_hessians[0]
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
        free(self.eras.present)

    def _make_lists(self, int max_features, uint64_t seed):
        """Make room for lists of features: no path is longer than the rows it parts."""
        cdef:
            int [:, ::1] lists = np.empty(
                (self.max_rows + 1, self.n_features), dtype=np.int32
            )
            int [::1] n_listed = np.zeros(self.max_rows + 1, dtype=np.int32)
            int [::1] deck = np.arange(self.n_features, dtype=np.int32)
            uint8_t [::1] is_drawn = np.ones(self.n_features, dtype=np.uint8)
        self.feature_memory = (lists, n_listed, deck, is_drawn)
        self.features.n_features = self.n_features
        self.features.lists = &lists[0, 0]
        self.features.n_listed = &n_listed[0]
        self.features.n_drawn = max_features
        self.features.random_state = seed
        self.features.deck = &deck[0]
        self.features.is_drawn = &is_drawn[0]

    def _compare_eras(self, EraSplitter splitter):
        """Take over from a splitter how it sums up rows and compares eras."""
        self.era_splitter = splitter  # whose memory is pointed to
        self.era_codes = splitter.rows.era_codes
        self.positive_weights = splitter.rows.positive_weights
        self.weights = splitter.rows.weights
        self.compares_targets = splitter.compares_targets
        self.gradient_unit = 0.0
        if splitter.rows.uses_integers:
            self.gradient_unit = splitter.rows.unit
            self.gradient_scale = splitter.rows.scale
        self.impurities = np.zeros(splitter.rows.n_eras)

        self.eras.criterion = &splitter.scanner.criterion
        self.eras.pooled.n_eras = splitter.rows.n_eras
        self.eras.pooled.impurities = &self.impurities[0]
        self.eras.pooled.era_sizes = &splitter.era_sizes[0]
        self.eras.pooled.gradient_variance = splitter.gradient_variance
        self.eras.is_exact = splitter.rows.uses_integers and not self.compares_targets
        self.eras.sums = self.sums
        if self.compares_targets:
            self.target_gradients = np.empty(self.max_rows)
            self.target_hessians = np.empty(self.max_rows)
            self.eras.sums.gradients = &self.target_gradients[0]
            self.eras.sums.hessians = &self.target_hessians[0]
        cdef:
            int [::1] codes = np.empty(self.max_rows, dtype=np.int32)
            int [::1] slots = np.empty(self.max_rows, dtype=np.int32)
            double [:, ::1] from_far_end = np.empty((2, self.max_rows))
        self.era_memory = (codes, slots, from_far_end)
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
            memset(&node, 0, sizeof(node))
            node.parent = -1
            for i in range(n_nodes):
                self.records.first = self.records.n_nodes
                has_memory = reserve(&self.records, 2 * (stops[i] - starts[i]))
                if not has_memory:
                    break
                self.start_small_node(&partition[starts[i]], stops[i] - starts[i])
                node.stop = self.n_rows
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
        return records, np.asarray(sizes)

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
                other.gradients = self.gradients[sample_indices[i]]
                other.hessians = (
                    1.0 if self.hessians_are_constant
                    else self.hessians[sample_indices[i]]
                )
                if not is_like(&first, &other):
                    result = False
                    break
        return result

    cdef void start_small_node(
        self, const unsigned int * samples, int n_rows
    ) noexcept nogil:
        """Gather what is to be known of a small node's rows, and sort them."""
        cdef:
            unsigned int sample
            int i
        self.samples = samples
        self.n_rows = n_rows
        for i in range(n_rows):
            sample = samples[i]
            self.rows[i] = i
            if self.gradient_unit > 0.0:
                self.row_gradients[i] = self.gradient_unit * <double> llrint(
                    self.gradients[sample] * self.gradient_scale
                )
            else:
                self.row_gradients[i] = self.gradients[sample]
            if not self.hessians_are_constant:
                self.row_hessians[i] = self.hessians[sample]
        if self.compares_eras:
            for i in range(n_rows):
                self.eras.codes[i] = self.era_codes[samples[i]]
        if self.compares_targets:
            for i in range(n_rows):
                self.target_gradients[i] = self.positive_weights[samples[i]]
                self.target_hessians[i] = self.weights[samples[i]]
        for i in range(self.n_features):
            sort_rows(&self.X_binned[0, i], samples, n_rows, &self.keys[i, 0])
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
                or self.is_alike(&node)
                or not self.find_split(&node, &split)
            ):
                continue
            self.part(&node, &split)
            split_leaf(
                &self.records,
                number,
                &split,
                self.has_missing_values[split.feature_idx],
            )
            self.push_children(&node, &split, number)

    cdef bint is_alike(self, const small_node * node) noexcept nogil:
        """As `is_pure`, of a node of the subtree."""
        cdef:
            era_sums first, other
            int row, i
        memset(&first, 0, sizeof(first))
        memset(&other, 0, sizeof(other))
        for i in range(node.start, node.stop):
            row = self.rows[i]
            other.gradients = self.row_gradients[row]
            other.hessians = (
                1.0 if self.hessians_are_constant else self.row_hessians[row]
            )
            if not is_like(&first, &other):
                return False
        return True

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
            &self.features, node.level, &self.keys[0, 0], self.max_rows,
            node.start, node.stop,
        )
        node.level += 1  # whose list is of this node, and good for the children
        draw_features(&self.features, node.level)
        features = listed(&self.features, node.level)
        for i in range(self.features.n_listed[node.level]):
            feature = features[i]
            if not self.features.is_drawn[feature]:
                continue
            keys = &self.keys[feature, node.start]
            missing_code = (
                self.missing_values_bin_idx if self.has_missing_values[feature] else -1
            )
            if not self.compares_eras:
                scan_gains(
                    feature, keys, missing_code, node, &self.sums, &self.limits, split
                )
                continue
            n_bins = self.n_bins_non_missing[feature]
            scan_eras(
                feature, keys, missing_code,
                sums_are_kept
                and missing_code < 0
                and sums_touched_bins(n_bins, rows_per_era),
                node, &self.sums, &self.limits, &self.eras, &self.scratch[0], split,
            )
        return split.found

    cdef bint start_eras(self, const small_node * node) noexcept nogil:
        """Find the eras of a node; False where too few of them have enough rows."""
        cdef int n_coverable = start_node(
            &self.eras, &self.rows[node.start], node.stop - node.start
        )
        if n_coverable < self.eras.criterion.min_covered_eras:
            return False
        self.eras.pooled.sum_hessians = node.sum_hessians
        if self.eras.criterion.name == SplitCriterion.TIME_ROBUST:
            self.measure_impurities(node)
        return True

    cdef void measure_impurities(self, const small_node * node) noexcept nogil:
        """Impurity of each era of the node, before any split."""
        cdef:
            impurity_sums total
            unsigned int sample
            int era, i
            int stop = node.start
        for era in range(self.eras.n_present):
            memset(&total, 0, sizeof(total))
            i = stop
            stop += <int> self.eras.present[era].total.count
            while i < stop:
                sample = self.samples[self.rows[i]]
                add_squares(
                    &total,
                    self.gradients[sample],
                    1.0 if self.hessians_are_constant else self.hessians[sample],
                )
                i += 1
            self.impurities[self.eras.present[era].era] = impurity(
                total.squares, total.gradients, total.hessians
            )

    cdef void part(
        self, const small_node * node, const feature_split * split
    ) noexcept nogil:
        """Move the rows of the left child before those of the right one."""
        cdef:
            const unsigned int * keys = &self.keys[split.feature_idx, 0]
            const int * features = listed(&self.features, node.level)
            int n_rows = node.stop - node.start
            int code, i
        for i in range(node.start, node.stop):
            code = code_of(keys[i])
            if code == self.missing_values_bin_idx:
                self.goes_left[row_of(keys[i])] = split.missing_go_to_left
            else:
                self.goes_left[row_of(keys[i])] = code <= <int> split.bin_idx
        part_rows(
            &self.rows[node.start], n_rows, &self.goes_left[0], &self.scratch[0]
        )
        for i in range(self.features.n_listed[node.level]):
            part_rows(
                &self.keys[features[i], node.start], n_rows,
                &self.goes_left[0], &self.scratch[0],
            )

    cdef void push_children(
        self, const small_node * node, const feature_split * split, int number
    ) noexcept nogil:
        """Have the children of a node wait, the left one to be first."""
        cdef:
            int middle = node.start + <int> split.n_samples_left
            small_node * right = &self.waiting[self.n_waiting]
            small_node * left = &self.waiting[self.n_waiting + 1]

        right[0] = node[0]
        right.start = middle
        right.depth = node.depth + 1
        right.parent = number
        right.is_right = True
        right.sum_gradients = node.sum_gradients - split.sum_gradients_left
        right.sum_hessians = node.sum_hessians - split.sum_hessians_left
        right.value = child_value(
            right.sum_gradients, right.sum_hessians, &self.limits
        )
        left[0] = right[0]
        left.start = node.start
        left.stop = middle
        left.is_right = False
        left.sum_gradients = split.sum_gradients_left
        left.sum_hessians = split.sum_hessians_left
        left.value = child_value(left.sum_gradients, left.sum_hessians, &self.limits)
        self.n_waiting += 2
