"""The arrays of scikit-learn's predictor, filled by the growers of trees."""

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from .._arrays cimport BITSET_DTYPE_C, node_struct as node_record
from ..._scikit_learn import set_raw_bitset_from_binned_bitset

from .rows cimport BITSET_SIZE


cdef class BinThresholds:
    """The thresholds of features, by bin; infinity separates missing values."""

    def __init__(self, bin_thresholds):
        tables = [np.append(thresholds, np.inf) for thresholds in bin_thresholds]
        self.tables = bin_thresholds
        self.values = np.concatenate(tables)
        self.first = np.cumsum([0, *map(len, tables)], dtype=np.intp)


cdef class TreeRecords:
    """Memory for the nodes of a tree of at most `n_leaves`."""

    def __init__(self, Py_ssize_t n_leaves, BinThresholds thresholds):
        cdef node_record [::1] nodes
        cdef unsigned int [:, ::1] bitsets
        self.nodes = np.empty(2 * n_leaves, dtype=PREDICTOR_RECORD_DTYPE)
        self.bitsets = np.empty((n_leaves, BITSET_SIZE), dtype=np.uint32)
        self.thresholds = thresholds
        nodes, bitsets = self.nodes, self.bitsets
        self.records.nodes = &nodes[0]
        self.records.bitsets = <BITSET_DTYPE_C *> &bitsets[0, 0]
        self.records.thresholds = &thresholds.values[0]
        self.records.first_threshold = &thresholds.first[0]

    def predictor(self):
        """Return the predictor of the nodes, in the order in which they were added."""
        nodes = self.nodes[: self.records.n_nodes].copy()
        bitsets = self.bitsets[: self.records.n_bitsets].copy()
        raw_bitsets = np.zeros_like(bitsets)
        if self.records.n_bitsets > 0:
            features = nodes["feature_idx"][nodes["is_categorical"] != 0]
            for feature, raw, binned in zip(features, raw_bitsets, bitsets, strict=True):
                set_raw_bitset_from_binned_bitset(
                    raw, binned, self.thresholds.tables[feature]
                )
        return TreePredictor(nodes, bitsets, raw_bitsets)
