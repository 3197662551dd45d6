"""Trees packed for one call, in the two forms that `trees` adds up.

They are packed anew for each call, in a fraction of its time: so whatever was done to
an estimator's trees, these are the ones it has.
"""

from libc.math cimport INFINITY, isnan
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common cimport node_struct


cdef class PackedTrees:
    """Trees of 64 leaves at most as splits, and larger ones as nodes.

    `known_cat_bitsets` and `f_idx_map` are scikit-learn's, of the bin mapper; `n_nodes`
    is the sum over the `n_trees`.
    """

    def __cinit__(
        self, Py_ssize_t n_nodes, Py_ssize_t n_trees, known_cat_bitsets, f_idx_map
    ):
        self.known_categories = known_cat_bitsets
        self.f_idx_map = f_idx_map
        self.left_categories = []
        # Pages that are never written to take no memory.
        n_trees += 1
        n_nodes += 1
        self.trees = <tree_struct *> calloc(n_trees, sizeof(tree_struct))
        self.splits = <split_struct *> malloc(
            n_trees * MAX_LEAVES * sizeof(split_struct)
        )
        self.values = <double *> malloc(n_trees * MAX_LEAVES * sizeof(double))
        self.nodes = <packed_node *> malloc(n_nodes * sizeof(packed_node))
        self.node_values = <double *> malloc(n_nodes * sizeof(double))
        self.columns = <int *> malloc((self.f_idx_map.shape[0] + 1) * sizeof(int))
        if not (self.trees and self.splits and self.values and self.nodes):
            raise MemoryError
        if not (self.node_values and self.columns):
            raise MemoryError

    def __dealloc__(self):
        free(self.trees)
        free(self.splits)
        free(self.values)
        free(self.nodes)
        free(self.node_values)
        free(self.columns)

    cdef bint pack(self, list predictors) except -1:
        """Pack all trees; False if one has more nodes than its array."""
        cdef:
            const node_struct[::1] nodes
            const uint32_t[:, ::1] bitsets
            tree_struct * tree
            Py_ssize_t n_packed
        for trees_of_iteration in predictors:
            for output, predictor in enumerate(trees_of_iteration):
                nodes = np.ascontiguousarray(predictor.nodes)
                tree = &self.trees[self.n_trees]
                self.n_trees += 1
                tree.output = output
                if self.known_categories.shape[0]:
                    bitsets = predictor.raw_left_cat_bitsets
                    self.left_categories.append(bitsets)
                    if bitsets.shape[0]:
                        tree.left_categories = &bitsets[0, 0]
                tree.splits = self.splits + self.n_splits
                tree.values = self.values + self.n_small * MAX_LEAVES
                if pack_splits(&nodes[0], 0, tree):
                    self.n_splits += tree.n_splits
                    self.n_small += 1
                    continue
                tree.nodes = self.nodes + self.n_nodes
                tree.values = self.node_values + self.n_nodes
                n_packed = pack_nodes(&nodes[0], nodes.shape[0], tree)
                if not n_packed:
                    return False
                self.n_nodes += n_packed
        self.list_columns(bytearray(self.f_idx_map.shape[0] + 1))
        return True

    cdef void list_columns(self, char * is_read) noexcept:
        """List the columns that are split on; all, if a tree is large."""
        cdef:
            Py_ssize_t i
            int column
        for i in range(self.n_splits):
            is_read[self.splits[i].feature] = True
        for column in range(<int> self.f_idx_map.shape[0]):
            if self.n_small < self.n_trees or is_read[column]:
                self.columns[self.n_columns] = column
                self.n_columns += 1


cdef uint64_t pack_splits(
    const node_struct * nodes, uint32_t node_idx, tree_struct * tree
) noexcept nogil:
    """Pack what is below a node; return its leaves, or 0 if it is not for words.

    As there are too many, or a threshold is not a number, as between -inf and inf.
    """
    cdef:
        const node_struct * node = &nodes[node_idx]
        uint64_t left, right
        split_struct * split
    if node.is_leaf:
        if tree.n_leaves == MAX_LEAVES:
            return 0
        left = <uint64_t> 1 << tree.n_leaves
        tree.n_leaves += 1
        tree.values[place(left)] = node.value
        return left
    if tree.n_splits == MAX_LEAVES - 1 or isnan(node.num_threshold):
        return 0
    split = &tree.splits[tree.n_splits]
    tree.n_splits += 1
    split.threshold = node.num_threshold
    split.feature = <uint32_t> node.feature_idx
    split.bitset_idx = node.bitset_idx
    split.missing_go_to_left = node.missing_go_to_left
    split.is_categorical = node.is_categorical
    left = pack_splits(nodes, node.left, tree)
    right = pack_splits(nodes, node.right, tree) if left else 0
    split.leaves_if_right = ~left
    return left | right if right else 0


cdef Py_ssize_t pack_nodes(
    const node_struct * nodes, Py_ssize_t n_nodes, tree_struct * tree
) noexcept nogil:
    """Pack a tree level by level; return the number of nodes, or 0 if it is no tree."""
    cdef:
        const node_struct * node
        packed_node * packed = tree.nodes
        Py_ssize_t n_packed = 1
        Py_ssize_t i = 0
    packed[0].left = 0           # of a node to come, its number among `nodes`
    while i < n_packed:
        node = &nodes[packed[i].left]
        tree.values[i] = node.value
        if node.is_leaf:
            # So a row that has come here always goes "left", and stays.
            packed[i].threshold = INFINITY
            packed[i].feature = MISSING_LEFT
            packed[i].left = <uint32_t> i
        elif n_packed + 2 > n_nodes:
            return 0
        else:
            packed[n_packed].left = node.left
            packed[n_packed + 1].left = node.right
            packed[i].threshold = node.num_threshold
            packed[i].feature = <uint32_t> node.feature_idx
            packed[i].left = <uint32_t> n_packed
            if node.missing_go_to_left:
                packed[i].feature |= MISSING_LEFT
            if node.is_categorical:
                packed[i].feature |= CATEGORICAL
                packed[i].threshold = node.bitset_idx
                tree.has_categories = True
            n_packed += 2
        i += 1
    return n_packed
