# The nodes of a tree, as scikit-learn's predictor has them.

from libc.string cimport memcpy, memset

from sklearn.ensemble._hist_gradient_boosting.common cimport node_struct as node_record
from sklearn.utils._bitset cimport BITSET_DTYPE_C

from .node cimport small_node
from ..candidates.split cimport feature_split


cdef struct tree_records:
    # With room for all of them.
    node_record * nodes
    Py_ssize_t n_nodes
    BITSET_DTYPE_C * bitsets   # left categories, by `bitset_idx`
    Py_ssize_t n_bitsets


cdef inline int add_leaf(
    tree_records * records, const small_node * node
) noexcept nogil:
    """Add a node, as a leaf for now; return its number."""
    cdef:
        int number = records.n_nodes
        node_record * record = &records.nodes[number]
    memset(record, 0, sizeof(node_record))
    record.value = node.value
    record.count = node.stop - node.start
    record.gain = -1.0
    record.depth = node.depth
    record.is_leaf = True
    records.n_nodes += 1
    if node.parent >= 0 and node.is_right:
        records.nodes[node.parent].right = number
    elif node.parent >= 0:
        records.nodes[node.parent].left = number
    return number


cdef inline void split_leaf(
    tree_records * records, int number, const feature_split * split
) noexcept nogil:
    """Make an inner node of a leaf."""
    cdef node_record * record = &records.nodes[number]
    record.is_leaf = False
    record.gain = split.rank.gain
    record.feature_idx = split.feature_idx
    record.bin_threshold = split.bin_idx
    record.missing_go_to_left = split.missing_go_to_left
    if split.is_categorical:
        record.is_categorical = True
        record.bitset_idx = records.n_bitsets
        memcpy(
            records.bitsets[records.n_bitsets],
            split.left_cat_bitset,
            sizeof(BITSET_DTYPE_C),
        )
        records.n_bitsets += 1
