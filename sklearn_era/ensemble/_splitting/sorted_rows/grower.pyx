"""The subtrees of a tree's small nodes, grown without Python.

To split a node, scikit-learn's grower sums up a histogram of 255 bins for each feature
and scans it, be there 20,000 rows in the node or two. Most nodes of a tree that is
grown to full depth are small. So those of some hundred rows are grown here, each with
all that is below it:

1. the rows are sorted by each feature, once (`node_rows`, `keys`), and splits keep the
   order;
2. neighbours among the sorted rows are the candidate splits of a node, ranked by the
   gain or by a criterion that compares eras (`scan`, `moving_eras`);
3. nodes are made depth first, a left child before the right one.

The formulas are those of the histogram splitters, and sums are in their order or exact.
So a tree by a criterion that compares eras is the same, to the last bit, as if no node
had been small, unless sums of weights are rounded or features drawn; and so is a tree
by the gain, but for gains that are equal up to rounding.
"""

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

from libc.math cimport INFINITY
from sklearn.ensemble._hist_gradient_boosting.common cimport (
    G_H_DTYPE_C, node_struct as node_record,
)
from sklearn.utils._bitset cimport BITSET_DTYPE_C
from sklearn.utils._typedefs cimport uint8_t, uint64_t

from .category_scan cimport can_split_categories, may_split_categories, scan_categories
from .features cimport draw_features, list_all, list_varying, listed
from .moving_eras cimport find_eras, find_impurities, moving_era
from .node cimport make_children, row_sums
from .node_rows cimport gather_rows, is_pure, keys_of, partition_node
from .records cimport add_leaf, split_leaf
from .scan cimport scan_numbers, sorted_feature
from ..rows cimport BITSET_SIZE
from ..tree_data cimport cost_of_feature, describe_tree
from ..._criteria.dispatch cimport GAIN
from ..._criteria.node_formulas cimport node_loss
from ..._criteria.ranking cimport (
    gain_alone, gain_beyond_rounding, penalty_unit, suffices, with_share_of,
)

cdef class SubtreeGrower:
    """Grows the subtrees of a tree's small nodes.

    `splitter` is scikit-learn's, which has the tree's data and limits; `max_features`
    is the number to draw for each node, by `seed`. A small node has `max_rows` at most.
    `era_splitter` is that of the tree, which has been started, or None for the gain.
    Its penalties are below 1: forests leave out the columns of others.
    """

    def __init__(
        self,
        splitter,
        const G_H_DTYPE_C [::1] gradients,
        const G_H_DTYPE_C [::1] hessians,
        *,
        max_depth,
        int max_features,
        uint64_t seed,
        int max_rows,
        EraSplitter era_splitter,
    ):
        self.owners = [splitter, gradients, hessians, era_splitter]
        self.max_rows = max_rows
        describe_tree(
            splitter, gradients, hessians,
            None if era_splitter is None else era_splitter.penalties,
            &self.data, &self.limits,
        )
        self._make_columns()
        self.max_depth = -1 if max_depth is None else max_depth
        self._make_rows()
        self._make_lists(max_features, seed)
        self.waiting = <small_node *> self.room((max_rows + 1) * sizeof(small_node))
        self.context.limits = &self.limits
        self.context.sums = &self.rows.sums
        self.context.scratch = self.rows.scratch
        if era_splitter is not None:
            self._compare_eras(era_splitter)

    cdef void * room(self, Py_ssize_t n_bytes) except NULL:
        """Memory of zeros, for as long as the grower lives."""
        cdef uint8_t [::1] memory = np.zeros(n_bytes, dtype=np.uint8)
        self.owners.append(memory)
        return &memory[0]

    cdef _make_columns(self):
        """Describe the features of the tree."""
        cdef int i
        self.columns = <sorted_feature *> self.room(
            self.data.n_features * sizeof(sorted_feature)
        )
        for i in range(self.data.n_features):
            self.columns[i].feature_idx = i
            self.columns[i].is_categorical = self.data.is_categorical[i]
            self.columns[i].largest_gain = INFINITY
            self.columns[i].n_bins = self.data.n_bins_non_missing[i]
            self.columns[i].missing_code = -1
            if self.data.has_missing_values[i]:
                self.columns[i].missing_code = self.data.missing_values_bin_idx

    cdef _make_rows(self):
        """Make room for the rows of a small node."""
        cdef Py_ssize_t n = self.max_rows
        self.rows.capacity = n
        self.rows.rows = <unsigned int *> self.room(n * sizeof(int))
        self.rows.keys = <unsigned int *> self.room(
            self.data.n_features * n * sizeof(int)
        )
        self.rows.scratch = <unsigned int *> self.room(n * sizeof(int))
        self.rows.goes_left = <uint8_t *> self.room(n)
        self.rows.sums.gradients = <double *> self.room(n * sizeof(double))
        if self.data.hessians != NULL:
            self.rows.sums.hessians = <double *> self.room(n * sizeof(double))

    cdef _make_lists(self, int max_features, uint64_t seed):
        """Make room for lists of features: no path is longer than the rows it has."""
        cdef:
            Py_ssize_t n = self.data.n_features
            Py_ssize_t n_levels = self.max_rows + 1
        self.features.n_features = n
        self.features.is_categorical = self.data.is_categorical
        self.features.lists = <int *> self.room(n_levels * n * sizeof(int))
        self.features.n_listed = <int *> self.room(n_levels * sizeof(int))
        self.features.n_drawn = max_features
        self.features.random_state = seed
        self.features.deck = <int *> self.room(n * sizeof(int))
        self.features.is_drawn = <uint8_t *> self.room(n)
        self.features.can_split = <uint8_t *> self.room(n)
        list_all(&self.features)

    cdef _compare_eras(self, EraSplitter splitter):
        """Compare eras, and sum up rows, as a splitter does."""
        cdef:
            Py_ssize_t n = self.max_rows
            moving_eras * eras = &self.eras
        self.tree_eras = splitter.eras_of_tree()
        self.rows.gradient_unit = self.tree_eras.gradient_unit
        self.rows.gradient_scale = self.tree_eras.gradient_scale
        self.context.eras = eras
        eras.criterion = self.tree_eras.criterion
        self.by_gain = gain_alone(eras.criterion, 0)
        eras.pooled = self.tree_eras.pooled
        eras.impurities = <double *> self.room(eras.pooled.n_eras * sizeof(double))
        eras.pooled.impurities = eras.impurities
        eras.sums = self.rows.sums
        eras.is_exact = self.rows.gradient_unit > 0.0
        if self.tree_eras.weights != NULL:
            eras.is_exact = False
            eras.sums.gradients = <double *> self.room(n * sizeof(double))
            eras.sums.hessians = <double *> self.room(n * sizeof(double))
        eras.codes = <int *> self.room(n * sizeof(int))
        eras.slots = <int *> self.room(n * sizeof(int))
        eras.moved = <int *> self.room((n + 1) * sizeof(int))
        eras.gradients_right = <double *> self.room(n * sizeof(double))
        eras.hessians_right = <double *> self.room(n * sizeof(double))
        eras.present = <moving_era *> self.room(
            min(n, eras.pooled.n_eras) * sizeof(moving_era)
        )

    def grow(self, const unsigned int [::1] partition, nodes):
        """Grow the subtrees of some small nodes, each a range of a tree's rows.

        Each is a pair of arrays: nodes of dtype PREDICTOR_RECORD_DTYPE, in the order in
        which scikit-learn has them, a parent before its children; and the left
        categories of its categorical splits, of shape (n_splits, 8), in the order of
        these. `left` and `right` count from the first node of the subtree, and neither
        `num_threshold` nor `bitset_idx` is set.
        """
        cdef:
            int n_nodes = len(nodes)
            small_node * roots = <small_node *> self.room(n_nodes * sizeof(small_node))
            small_node root
            Py_ssize_t [:, ::1] stops = np.empty((n_nodes, 2), dtype=np.intp)
            Py_ssize_t n_leaves = 0
            int i
        for i, node in enumerate(nodes):
            roots[i].start = node.partition_start
            roots[i].stop = node.partition_stop
            roots[i].depth = node.depth
            roots[i].sum_gradients = node.sum_gradients
            roots[i].sum_hessians = node.sum_hessians
            roots[i].value = node.value
            roots[i].parent = -1
            n_leaves += max(1, node.n_samples // self.limits.min_samples_leaf)
        all_records = np.empty(2 * n_leaves, dtype=PREDICTOR_RECORD_DTYPE)
        all_bitsets = np.empty((n_leaves, BITSET_SIZE), dtype=np.uint32)
        cdef:
            node_record [::1] records = all_records
            unsigned int [:, ::1] bitsets = all_bitsets
        self.records.nodes = &records[0]
        self.records.n_nodes = 0
        self.records.bitsets = <BITSET_DTYPE_C *> &bitsets[0, 0]
        self.records.n_bitsets = 0
        with nogil:
            for i in range(n_nodes):
                root = roots[i]
                self.start_small_node(&partition[root.start], root.stop - root.start)
                root.stop -= root.start
                root.start = 0
                self.grow_subtree(&root)
                stops[i, 0] = self.records.n_nodes
                stops[i, 1] = self.records.n_bitsets
        subtrees = zip(
            np.split(all_records, stops[:, 0]), np.split(all_bitsets, stops[:, 1])
        )
        return list(subtrees)[:n_nodes]  # the last one is room left over

    cdef void start_small_node(
        self, const unsigned int * samples, int n_rows
    ) noexcept nogil:
        """Gather what is to be known of a small node's rows, and sort them."""
        cdef:
            row_sums * sums = &self.eras.sums
            int i
        self.rows.samples = samples
        self.rows.n_rows = n_rows
        self.records.first = self.records.n_nodes
        gather_rows(&self.rows, &self.data)
        if self.context.eras == NULL:
            return
        for i in range(n_rows):
            self.eras.codes[i] = self.tree_eras.codes[samples[i]]
        if self.tree_eras.weights != NULL:
            for i in range(n_rows):
                sums.gradients[i] = self.tree_eras.positive_weights[samples[i]]
                sums.hessians[i] = self.tree_eras.weights[samples[i]]

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
                or is_pure(
                    self.rows.sums.gradients,
                    self.rows.sums.hessians,
                    self.rows.rows + node.start,
                    node.stop - node.start,
                )
                or not self.find_split(&node, &split)
            ):
                continue
            partition_node(
                &self.rows, &node, &split,
                listed(&self.features, node.level),
                self.features.n_listed[node.level],
                self.data.missing_values_bin_idx,
            )
            split_leaf(
                &self.records, number, &split,
                self.columns[split.feature_idx].missing_code >= 0,
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
            const criterion_struct * criterion = self.tree_eras.criterion
            bint has_choice = False  # of the criterion, by the gain of other splits
            bint is_coverable = True
        split.found = False
        self.context.node = node
        if self.context.eras != NULL:
            has_choice = criterion.min_gain_share > 0.0
            self.context.asks_eras = not (has_choice or criterion.name == GAIN)
            is_coverable = self.start_eras(node)
            if not (is_coverable or has_choice):
                return False
        list_varying(
            &self.features, &self.rows, node,
            may_split_categories(node.stop - node.start),
        )
        node.level += 1  # whose list is of this node, and good for the children
        if self.features.n_drawn < self.features.n_features:
            self.find_splitting(node)
            draw_features(&self.features, node.level)
        if self.context.eras == NULL:
            return self.scan_features(node, split)
        if has_choice:
            self.choose_split(node, is_coverable, split)
        elif criterion.name == GAIN:
            self.by_gain.min_gain = gain_beyond_rounding(
                criterion, node_loss(node.sum_gradients, node.value)
            )
            self.rank_features(&self.by_gain, node, split)
        else:
            self.rank_features(criterion, node, split)
        self.eras.criterion = criterion
        return split.found

    cdef void choose_split(
        self,
        const small_node * node,
        bint is_coverable,
        feature_split * split,  # OUT
    ) noexcept nogil:
        """Find the criterion's choice, or the split of the largest gain without one.

        That is the best of the splits that have a share of this gain, or of the largest
        that is left where features have penalties.
        """
        cdef:
            feature_split best
            double unit
        self.eras.criterion = &self.by_gain
        if not self.scan_features(node, split):
            return
        unit = split.rank.gain
        if self.data.penalties != NULL:
            self.scan_features(node, split, unit)
        if is_coverable:
            self.sharing = with_share_of(
                self.tree_eras.criterion,
                split.rank.gain
                - cost_of_feature(&self.data, split.feature_idx, unit),
            )
            self.context.asks_eras = True
            if self.rank_features(&self.sharing, node, &best):
                split[0] = best

    cdef bint rank_features(
        self,
        const criterion_struct * criterion,
        const small_node * node,
        feature_split * split,  # OUT
    ) noexcept nogil:
        """Find the best split by a criterion, when features have been paid for."""
        cdef double unit_of_costs = 0.0
        if self.data.penalties != NULL:
            self.unit = penalty_unit(criterion)
            self.eras.criterion = &self.unit
            if not self.scan_features(node, split):
                return False
            unit_of_costs = split.rank.primary
        self.eras.criterion = criterion
        return self.scan_features(node, split, unit_of_costs)

    cdef bint scan_features(
        self,
        const small_node * node,
        feature_split * split,  # OUT
        double unit_of_costs=0.0,
    ) noexcept nogil:
        """Find the best split by the features that are listed and drawn."""
        cdef:
            const int * features = listed(&self.features, node.level)
            sorted_feature * feature
            int i
        split.found = False
        split.is_categorical = False
        split.rank.gain = self.limits.min_gain_to_split
        for i in range(self.features.n_listed[node.level]):
            if not self.features.is_drawn[features[i]]:
                continue
            feature = &self.columns[features[i]]
            feature.cost = cost_of_feature(&self.data, features[i], unit_of_costs)
            if not self.context.asks_eras:
                feature.largest_gain = -INFINITY
            elif not suffices(self.eras.criterion, feature.largest_gain):
                continue
            feature.keys = keys_of(&self.rows, features[i], node.start)
            if feature.is_categorical:
                scan_categories(&self.context, feature, split)
            else:
                scan_numbers(&self.context, feature, split)
        return split.found

    cdef void find_splitting(self, const small_node * node) noexcept nogil:
        """Find which of the features listed can split a node: all numbers can."""
        cdef:
            const int * features = listed(&self.features, node.level)
            int i
        for i in range(self.features.n_listed[node.level]):
            if self.data.is_categorical[features[i]]:
                self.features.can_split[features[i]] = can_split_categories(
                    keys_of(&self.rows, features[i], node.start), node, &self.rows.sums
                )

    cdef bint start_eras(self, const small_node * node) noexcept nogil:
        """Find the eras of a node; False where too few of them have enough rows."""
        cdef int n_coverable = find_eras(
            &self.eras, self.rows.rows + node.start, node.stop - node.start
        )
        self.eras.pooled.sum_hessians = node.sum_hessians
        if n_coverable < self.eras.criterion.min_covered_eras:
            return False
        if self.eras.criterion.traits.reads_impurities:
            find_impurities(&self.eras, &self.rows, node, &self.data)
        return True
