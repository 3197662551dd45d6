"""Keep the nodes and leaves of a tree that is being grown."""

from cython.parallel import prange

import numpy as np

from libc.stdint cimport uint8_t

from .nodes cimport grown_node
from .partition cimport unite_rows
from .records cimport TreeRecords, add_leaf, split_leaf, tree_records
from .rows cimport EraRows
from .splitter cimport EraSplitter
from .threads cimport threads_for


cdef class GrownTree:
    """The nodes and leaves of a growing tree, from which predictors are made."""

    def __init__(self, EraSplitter era_splitter, int n_threads):
        self.splitter = era_splitter
        self.tree = &era_splitter.tree
        self.n_threads = n_threads
        self.memory = np.empty(0, dtype=np.uint8)

    @property
    def finalized_leaves(self):
        """Return the leaves from left to right. Then sums over leaves have the same
        bits, whatever the order in which threads made the leaves.
        """
        cdef int number
        leaves, waiting = [], [0]
        while waiting:
            number = waiting.pop()
            if self.nodes[number].is_leaf:
                leaves.append(GrownNode(self, number))
            else:
                waiting += [self.nodes[number].right, self.nodes[number].left]
        return leaves

    cdef int reserve(self, int n) except -1:
        """Make room for `n` more nodes; this may move all nodes in memory."""
        cdef uint8_t [::1] memory
        if (self.n_nodes + n) * <Py_ssize_t> sizeof(grown_node) <= self.memory.size:
            return 0
        size = max(64 * sizeof(grown_node), 2 * self.memory.size)
        memory = np.concatenate([self.memory, np.empty(size, dtype=np.uint8)])
        self.memory = memory.base
        self.nodes = <grown_node *> &memory[0]
        return 0

    cdef int undo_split(self, grown_node * node) except -1:
        """Undo the split of a node: put its rows back into their former order."""
        cdef EraRows rows = self.splitter.rows
        unite_rows(
            &self.splitter.partition[0] + node.node.start, node.n_rows,
            self.nodes[node.left].n_rows,
            NULL if rows.order is None else &rows.era_codes[0],
            &self.splitter.scratch[0],
        )
        return 0

    cdef void finalize(self, int number) noexcept:
        self.nodes[number].is_leaf = True
        self.nodes[self.n_leaves].leaf = number
        self.n_leaves += 1

    def make_predictor(self, binning_thresholds):
        """Return the tree as a predictor of scikit-learn."""
        records = TreeRecords(self.n_leaves)
        self.add_records(records)
        return records.predictor(binning_thresholds)

    def add_records(self, TreeRecords tree, subtrees=None):
        """Add all nodes to `tree`, in scikit-learn's order. Let `subtrees`, if given,
        add small nodes and the nodes below them.
        """
        cdef:
            tree_records * records = &tree.records
            int n_waiting = 1, number
            grown_node * node
        self.nodes[0].waiting = 0
        while n_waiting > 0:
            n_waiting -= 1
            node = &self.nodes[self.nodes[n_waiting].waiting]
            if node.is_leaf and subtrees is not None and (
                <int> node.node.pooled.n_samples <= subtrees.max_rows
            ):
                subtrees.grow_small(node.node)
                continue
            number = add_leaf(records, &node.node)
            if node.choice.split.found:  # a leaf may have one too
                records.nodes[number].gain = node.choice.largest_gain
            if not node.is_leaf:
                split_leaf(
                    records, number, &node.choice.split,
                    self.tree.has_missing_values[node.choice.split.feature_idx],
                )
                self.nodes[node.left].node.parent = number
                self.nodes[node.right].node.parent = number
                self.nodes[n_waiting].waiting = node.right
                self.nodes[n_waiting + 1].waiting = node.left
                n_waiting += 2

    def add_to(self, double [::1] raw_predictions):
        """Add each leaf's value to the raw predictions of the leaf's rows."""
        cdef:
            const unsigned int * rows = &self.splitter.partition[0]
            double * raw = &raw_predictions[0]
            int n_threads = threads_for(
                self.n_threads, self.tree.n_samples // ROWS_OF_ADDITION
            )
            const grown_node * leaf
            int i, j
        for i in prange(
            self.n_leaves, schedule="static", nogil=True, num_threads=n_threads
        ):
            leaf = &self.nodes[self.nodes[i].leaf]
            for j in range(leaf.node.start, leaf.node.start + leaf.n_rows):
                raw[rows[j]] += leaf.node.value


cdef class GrownNode:
    """A node of a grown tree; setting its value changes the tree."""

    cdef:
        GrownTree grower
        grown_node * node

    def __cinit__(self, GrownTree grower, int number):
        self.grower = grower
        self.node = &grower.nodes[number]

    @property
    def value(self):
        return self.node.node.value

    @value.setter
    def value(self, double value):
        self.node.node.value = value

    @property
    def sample_indices(self):
        start = self.node.node.start
        return self.grower.data.partition[start : start + self.node.n_rows]
