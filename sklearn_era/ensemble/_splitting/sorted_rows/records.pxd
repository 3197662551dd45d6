# The nodes of subtrees, as scikit-learn's predictor has them.

from libc.string cimport memcpy, memset

from sklearn.ensemble._hist_gradient_boosting.common cimport node_struct as node_record
from sklearn.utils._bitset cimport BITSET_DTYPE_C

from .node cimport small_node
from ..candidates.split cimport feature_split


cdef struct tree_records:
    # With room for all of them.
    node_record * nodes
    Py_ssize_t n_nodes
    Py_ssize_t first           # node of the present subtree, from which children count
    BITSET_DTYPE_C * bitsets   # left categories, by `bitset_idx`
    Py_ssize_t n_bitsets


cdef inline int add_leaf(
    tree_records * records, const small_node * node
) noexcept nogil:
    """Add a node, as a leaf for now; return its number in the subtree."""
    cdef:
        node_record * record = &records.nodes[records.n_nodes]
        int number = records.n_nodes - records.first
    memset(record, 0, sizeof(node_record))
    record.value = node.value
    record.count = node.stop - node.start
    record.gain = -1.0
    record.depth = node.depth
    record.is_leaf = True
    records.n_nodes += 1
    if node.parent >= 0:
        if node.is_right:
            records.nodes[records.first + node.parent].right = number
        else:
            records.nodes[records.first + node.parent].left = number
    return number


cdef inline void split_leaf(
    tree_records * records,
    int number,
    const feature_split * split,
    bint has_missing_values,     # whether the feature has, in the training data
) noexcept nogil:
    """Make an inner node of a leaf."""
    cdef node_record * record = &records.nodes[records.first + number]
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
    if not has_missing_values:
        # Of values that are missing in rows to predict only: to the larger child.
        record.missing_go_to_left = 2 * split.n_samples_left > record.count
