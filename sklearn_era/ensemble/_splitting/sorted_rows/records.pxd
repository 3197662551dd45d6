# The nodes of subtrees, as scikit-learn's predictor has them.

from libc.stdlib cimport realloc
from libc.string cimport memcpy, memset

from sklearn.ensemble._hist_gradient_boosting.common cimport node_struct as node_record

from .node cimport small_node
from ..candidates cimport feature_split


cdef struct tree_records:
    node_record * nodes
    Py_ssize_t n_nodes
    Py_ssize_t capacity
    Py_ssize_t first      # node of the present subtree, from which children count
    unsigned int * bitsets        # (n_bitsets, 8), left categories
    Py_ssize_t n_bitsets
    Py_ssize_t bitset_capacity


cdef inline bint reserve(tree_records * records, Py_ssize_t n_more) noexcept nogil:
    """Make room for more nodes; False where there is no memory."""
    cdef:
        Py_ssize_t capacity = max(2 * records.capacity, records.n_nodes + n_more)
        node_record * nodes
    if records.n_nodes + n_more <= records.capacity:
        return True
    nodes = <node_record *> realloc(records.nodes, capacity * sizeof(node_record))
    if nodes == NULL:
        return False
    records.nodes = nodes
    records.capacity = capacity
    return True


cdef inline bint reserve_bitsets(
    tree_records * records, Py_ssize_t n_more
) noexcept nogil:
    """Make room for more splits by categories; False where there is no memory."""
    cdef:
        Py_ssize_t capacity = max(
            2 * records.bitset_capacity, records.n_bitsets + n_more
        )
        unsigned int * bitsets
    if records.n_bitsets + n_more <= records.bitset_capacity:
        return True
    bitsets = <unsigned int *> realloc(
        records.bitsets, 8 * capacity * sizeof(unsigned int)
    )
    if bitsets == NULL:
        return False
    records.bitsets = bitsets
    records.bitset_capacity = capacity
    return True


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
            records.bitsets + 8 * records.n_bitsets,
            split.left_cat_bitset,
            8 * sizeof(unsigned int),
        )
        records.n_bitsets += 1
    if not has_missing_values:
        # Of values that are missing in rows to predict only: to the larger child.
        record.missing_go_to_left = 2 * split.n_samples_left > record.count
