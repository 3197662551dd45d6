"""Hold the arrays of scikit-learn's predictor, which the growers of trees fill."""

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from libc.math cimport INFINITY
from .._arrays cimport BITSET_DTYPE_C, node_struct as node_record
from ..._scikit_learn import set_raw_bitset_from_binned_bitset

from .rows cimport BITSET_SIZE


cdef class TreeRecords:
    """Memory for the nodes of a tree that has at most `n_leaves` leaves."""

    def __init__(self, Py_ssize_t n_leaves):
        cdef node_record [::1] nodes
        cdef unsigned int [:, ::1] bitsets
        self.nodes = np.empty(2 * n_leaves, dtype=PREDICTOR_RECORD_DTYPE)
        self.bitsets = np.empty((n_leaves, BITSET_SIZE), dtype=np.uint32)
        nodes, bitsets = self.nodes, self.bitsets
        self.records.nodes = &nodes[0]
        self.records.bitsets = <BITSET_DTYPE_C *> &bitsets[0, 0]

    def predictor(self, list bin_thresholds):
        """Return the tree as scikit-learn's predictor; `bin_thresholds` has, for each
        feature, the thresholds between bins or the categories.
        """
        cdef node_record * node
        cdef int i, bin_idx
        bitsets = self.bitsets[: self.records.n_bitsets].copy()
        raw_bitsets = np.zeros_like(bitsets)
        for i in range(self.records.n_nodes):
            node = &self.records.nodes[i]
            if node.is_leaf:
                continue
            values = bin_thresholds[node.feature_idx]
            bin_idx = node.bin_threshold
            if node.is_categorical:
                set_raw_bitset_from_binned_bitset(
                    raw_bitsets[node.bitset_idx], bitsets[node.bitset_idx], values
                )
            else:  # the last bin ends where missing values begin
                node.num_threshold = (
                    values[bin_idx] if bin_idx < len(values) else INFINITY
                )
        nodes = self.nodes[: self.records.n_nodes].copy()
        return TreePredictor(nodes, bitsets, raw_bitsets)
