"""Grow the subtrees of a tree's small nodes without Python.

In a tree grown to full depth most nodes are small, too small for a histogram of 255
bins per feature. So small nodes are split here: rows are sorted by each feature once,
splits keep the order, and candidates lie between neighbours.

Formulas and sums are the same as in the histogram splitters. So trees are equal, to the
last bit, unless sums of weights or squares are rounded, features are drawn, or the gain
alone decides between gains that are equal up to rounding.
"""

from libc.math cimport INFINITY
from libc.string cimport memset
from libc.stdint cimport uint64_t
from ..._arrays cimport G_H_DTYPE_C, in_bitset

from .eras cimport find_eras, small_eras
from .node cimport (
    MAX_ROWS, code_of, gather_rows, is_pure, partition_rows, row_of, small_rows,
)
from .scan cimport (
    draw_features, feature_draw, find_varying, scan_categories, scan_context,
    scan_numbers, sorted_feature,
)
from ..candidates.orders cimport MIN_CATEGORY_SUPPORT
from ..fixed_points cimport fixed_point, summed_values
from ..nodes cimport (
    describe_tree, feature_split, make_children, set_sums, tree_data, tree_node,
)
from ..records cimport TreeRecords, add_leaf, split_leaf, tree_records
from ..rows cimport BITSET_SIZE, EraRows, alloc_zeros
from ..splitter cimport EraSplitter
from ..._criteria.criterion cimport criterion_struct
from ..._criteria.dispatch cimport GAIN
from ..._criteria.penalties cimport criterion_of_unit, penalty_of_feature
from ..._criteria.ranking cimport (
    gain_alone, gain_beyond_rounding, suffices, with_share_of,
)

MAX_SMALL_ROWS = MAX_ROWS  # of a small node
MIN_SUPPORT = MIN_CATEGORY_SUPPORT


cdef class SubtreeGrower:
    """Grows the subtrees of a tree's small nodes, which have at most `max_rows` rows.

    `splitter` has the tree's data and limits, by scikit-learn's names. Each node draws
    `max_features` features; `seed` starts the random numbers. `era_splitter` is the
    splitter of the tree, already started; None ranks by gain. All penalties are below
    1: forests drop columns with a higher penalty.
    """

    cdef:
        list owners              # of memory that pointers refer to
        tree_data tree
        const unsigned int [::1] partition   # rows of the tree, by node
        int max_depth            # of the tree; -1: without limit
        readonly int max_rows    # of a small node
        const criterion_struct * criterion   # if it compares eras; else NULL
        criterion_struct by_gain             # its counterpart for the largest gain
        const int * era_codes                # (n_samples,)
        const G_H_DTYPE_C * positive_weights  # NULL if gradients are compared
        const G_H_DTYPE_C * weights
        const summed_values * squares         # NULL unless they are compared
        TreeRecords arrays
        tree_records * records
        feature_draw draw
        # The small node.
        small_rows rows
        small_eras eras
        scan_context context
        sorted_feature * columns  # (n_features,)
        tree_node[MAX_ROWS + 1] waiting   # a stack
        int n_waiting

    def __init__(
        self, splitter, const G_H_DTYPE_C [::1] gradients,
        const G_H_DTYPE_C [::1] hessians, *, TreeRecords records, max_depth,
        int max_features, uint64_t seed, int max_rows, EraSplitter era_splitter,
    ):
        self.arrays = records
        self.records = &records.records
        self.owners = [splitter, gradients, hessians, era_splitter]
        self.partition = splitter.partition
        self.max_rows = max_rows
        self.max_depth = -1 if max_depth is None else max_depth
        self.draw.n_drawn = max_features
        self.draw.random_state = seed
        describe_tree(
            splitter, gradients, hessians,
            None if era_splitter is None else era_splitter.penalties, &self.tree,
        )
        self._make_columns()
        self.context.tree = &self.tree
        self.context.rows = &self.rows
        self.context.eras = &self.eras
        if era_splitter is not None:
            self._compare_eras(era_splitter)

    cdef _make_columns(self):
        """Set up the tree's features; all count as drawn until a node draws some."""
        cdef:
            Py_ssize_t n = self.tree.n_features
            sorted_feature * feature
            int i
        self.rows.keys = <unsigned int *> alloc_zeros(
            self.owners, n * MAX_ROWS * sizeof(int)
        )
        self.draw.n_features = n
        self.draw.deck = <int *> alloc_zeros(self.owners, n * sizeof(int))
        self.columns = <sorted_feature *> alloc_zeros(
            self.owners, n * sizeof(sorted_feature)
        )
        for i in range(n):
            self.draw.deck[i] = i
            feature = &self.columns[i]
            feature.feature_idx = i
            feature.is_drawn = True
            feature.is_categorical = self.tree.is_categorical[i]
            feature.largest_gain = INFINITY
            feature.n_bins = self.tree.n_bins_non_missing[i]
            feature.missing_code = -1
            if self.tree.has_missing_values[i]:
                feature.missing_code = self.tree.missing_values_bin_idx

    cdef _compare_eras(self, EraSplitter splitter):
        """Take over the criterion, units and eras of the tree's splitter."""
        cdef EraRows rows = splitter.rows
        self.criterion = &splitter.criterion
        self.by_gain = gain_alone(self.criterion, 0)
        self.era_codes = &rows.era_codes[0]
        if rows.of_others.has_squares:
            self.squares = &rows.of_others
        elif rows.compares_others:
            self.positive_weights = &rows.positive_weights[0]
            self.weights = &rows.weights[0]
        if self.tree.hessians == NULL and not rows.of_gradients.has_low_words:
            self.rows.gradient_unit = rows.of_gradients.unit
            self.rows.gradient_scale = rows.of_gradients.scale
        self.eras.impurities = <double *> alloc_zeros(
            self.owners, rows.n_eras * sizeof(double)
        )
        self.eras.of_node.n_eras = rows.n_eras
        self.eras.of_node.era_sizes = &splitter.era_sizes[0]
        self.eras.of_node.min_samples = &splitter.min_samples[0]
        self.eras.of_node.gradient_variance = splitter.gradient_variance
        self.eras.of_node.impurities = self.eras.impurities

    def grow(self, root):
        """Add a node of scikit-learn's grower and all nodes below it to the records, in
        the grower's order.
        """
        cdef:
            list waiting = [(root, -1, False)]
            tree_node node
            int number
        while waiting:
            top, node.parent, node.is_right = waiting.pop()
            node.start = top.partition_start
            node.depth = top.depth
            node.pooled.lower_bound = -INFINITY
            node.pooled.upper_bound = INFINITY
            set_sums(
                &node, top.n_samples, top.sum_gradients, top.sum_hessians, top.value
            )
            if top.is_leaf and top.n_samples <= self.max_rows:
                self.grow_small(node)
                continue
            number = add_leaf(self.records, &node)
            if top.split_info is not None:  # a leaf may have it too
                self.records.nodes[number].gain = top.split_info.gain
            if not top.is_leaf:
                split_large(self.records, number, top.split_info)
                waiting.append((top.right_child, number, True))
                waiting.append((top.left_child, number, False))

    def grow_small(self, tree_node root):
        """Add a small node and all nodes below it to the records, without the GIL."""
        with nogil:
            self.grow_subtree(&root)

    cdef void grow_subtree(self, const tree_node * root) noexcept nogil:
        cdef:
            tree_node node
            feature_split split
            int number
        self.waiting[0] = root[0]
        self.n_waiting = 1
        if may_split(self, root):
            start_small_node(self, &self.waiting[0])
        while self.n_waiting > 0:
            self.n_waiting -= 1
            node = self.waiting[self.n_waiting]
            number = add_leaf(self.records, &node)
            if not (may_split(self, &node) and find_split(self, &node, &split)):
                continue
            partition_node(self, &node, &split)
            split_leaf(
                self.records, number, &split,
                self.tree.has_missing_values[split.feature_idx],
            )
            # The left child comes first.
            make_children(
                &self.tree, &node, &split, number,
                &self.waiting[self.n_waiting + 1], &self.waiting[self.n_waiting],
            )
            self.n_waiting += 2


cdef bint may_split(SubtreeGrower self, const tree_node * node) noexcept nogil:
    """Return whether the limits on depth and rows allow a node to have children."""
    return (
        node.depth != self.max_depth
        and <int> node.pooled.n_samples >= 2 * self.tree.min_samples_leaf
    )


cdef void start_small_node(SubtreeGrower self, tree_node * root) noexcept nogil:
    """Copy the values of a small node's rows, and sort the rows by each feature."""
    cdef:
        const unsigned int * samples = &self.partition[root.start]
        double value
        int i
    root.start = 0
    self.rows.samples = samples
    self.rows.n_rows = root.pooled.n_samples
    gather_rows(&self.rows, &self.tree)
    for i in range(0 if self.criterion == NULL else self.rows.n_rows):
        self.eras.codes[i] = self.era_codes[samples[i]]
        self.eras.gradients[i] = self.rows.gradients[i]
        self.eras.hessians[i] = self.rows.hessians[i]
        if self.weights != NULL:
            self.eras.gradients[i] = self.positive_weights[samples[i]]
            self.eras.hessians[i] = self.weights[samples[i]]
        if self.squares == NULL:
            continue
        value = self.squares.gradients[samples[i]]
        self.eras.gradients[i] = value
        self.eras.hessians[i] = value * value
        if not self.squares.has_low_words:  # rounded like the words of a row
            self.eras.gradients[i] = self.squares.unit * fixed_point(
                value, self.squares.scale
            )
            self.eras.hessians[i] = self.squares.hessian_unit * fixed_point(
                value * value, self.squares.hessian_scale
            )


cdef void partition_node(
    SubtreeGrower self, const tree_node * node, feature_split * split
) noexcept nogil:
    """Partition a node's rows by a split, in their own order and in each feature's."""
    cdef:
        const unsigned int * keys = self.columns[split.feature_idx].keys
        int n_rows = node.pooled.n_samples
        bint is_left
        int code, i
    for i in range(n_rows):
        code = code_of(keys[i])
        if split.is_categorical:
            is_left = in_bitset(split.left_cat_bitset, code)
        elif code == self.tree.missing_values_bin_idx:
            is_left = split.missing_go_to_left
        else:
            is_left = code <= <int> split.bin_idx
        self.rows.goes_left[row_of(keys[i])] = is_left
    partition_rows(&self.rows, &self.rows.rows[node.start], n_rows)
    for i in range(self.tree.n_features):
        # Features constant in a node stay so below it, and are not read again.
        if self.columns[i].varies:
            partition_rows(&self.rows, self.columns[i].keys, n_rows)


cdef bint find_split(
    SubtreeGrower self, const tree_node * node, feature_split * split
) noexcept nogil:
    """Set `split` to the best split of a node; return whether there is one."""
    cdef:
        const criterion_struct * criterion = self.criterion
        bint is_coverable
    split.found = False
    self.context.node = node
    self.context.compares_eras = False
    if is_pure(
        self.rows.gradients, self.rows.hessians, &self.rows.rows[node.start],
        node.pooled.n_samples,
    ) or not find_varying(self.columns, self.tree.n_features, &self.rows, node):
        return False
    if criterion == NULL:
        draw_features(&self.draw, self.columns, &self.context)
        return scan_features(self, NULL, 0.0, split)
    is_coverable = criterion.min_covered_eras <= find_eras(
        &self.eras, criterion, &self.rows, &self.tree, node
    )
    if not is_coverable and criterion.min_gain_share == 0.0:
        return False
    self.eras.of_node.sum_hessians = node.pooled.sum_hessians
    draw_features(&self.draw, self.columns, &self.context)
    if criterion.name == GAIN:
        self.by_gain.min_gain = gain_beyond_rounding(criterion, node.pooled.loss)
        return find_best(self, &self.by_gain, split)
    if criterion.min_gain_share > 0.0:
        return find_share(self, split, is_coverable)
    self.context.compares_eras = True
    return find_best(self, criterion, split)


cdef bint find_share(
    SubtreeGrower self, feature_split * split, bint is_coverable
) noexcept nogil:
    """Set `split` to the best split by eras among splits with `min_gain_share` of the
    largest gain or, if none is admissible, to the split of the largest gain. Return
    whether there is a split.
    """
    cdef:
        criterion_struct sharing
        feature_split best
    if not find_best(self, &self.by_gain, split):
        return False
    if is_coverable:
        sharing = with_share_of(self.criterion, split.rank.primary)
        self.context.compares_eras = True
        if find_best(self, &sharing, &best):
            split[0] = best
    return True


cdef bint find_best(
    SubtreeGrower self, const criterion_struct * criterion, feature_split * split
) noexcept nogil:
    """Set `split` to the best split after penalties; return whether there is one."""
    cdef:
        criterion_struct of_unit
        double unit_of_penalties = 0.0
    if self.tree.penalties != NULL:
        of_unit = criterion_of_unit(criterion)
        if not scan_features(self, &of_unit, 0.0, split):
            return False
        unit_of_penalties = split.rank.primary
    return scan_features(self, criterion, unit_of_penalties, split)


cdef bint scan_features(
    SubtreeGrower self,
    const criterion_struct * criterion,   # NULL: scikit-learn's gain
    double unit_of_penalties, feature_split * split,  # OUT
) noexcept nogil:
    """Set `split` to the best split by features that vary in the node and are drawn;
    return whether there is one.
    """
    cdef:
        sorted_feature * feature
        int i
    self.context.criterion = criterion
    memset(split, 0, sizeof(feature_split))
    split.rank.gain = self.tree.min_gain_to_split
    for i in range(self.tree.n_features):
        feature = &self.columns[i]
        if not (feature.varies and feature.is_drawn):
            continue
        feature.penalty = penalty_of_feature(self.tree.penalties, i, unit_of_penalties)
        if not self.context.compares_eras:
            feature.largest_gain = -INFINITY
        elif not suffices(criterion, feature.largest_gain):
            continue
        if feature.is_categorical:
            scan_categories(&self.context, feature, split)
        else:
            scan_numbers(&self.context, feature, split)
    return split.found


cdef split_large(tree_records * records, int number, info):
    """Turn a leaf into an inner node, by the split in a `SplitInfo`."""
    cdef:
        feature_split split
        int i
    split.rank.gain = info.gain
    split.feature_idx = info.feature_idx
    split.bin_idx = info.bin_idx
    split.missing_go_to_left = info.missing_go_to_left
    split.is_categorical = info.is_categorical
    if split.is_categorical:
        for i in range(BITSET_SIZE):
            split.left_cat_bitset[i] = info.left_cat_bitset[i]
    split_leaf(records, number, &split, True)  # decided by scikit-learn


def is_pure_node(
    const G_H_DTYPE_C [::1] gradients, const G_H_DTYPE_C [::1] hessians,
    const unsigned int [::1] sample_indices,
):
    """Return whether g / h is equal for a node's rows, so that no split has a gain."""
    return is_pure(
        &gradients[0], &hessians[0] if hessians.shape[0] > 1 else NULL,
        &sample_indices[0], sample_indices.shape[0],
    )
