# The nodes of a tree in the format of scikit-learn's predictor.

from libc.string cimport memcpy, memset

from .._arrays cimport BITSET_DTYPE_C, node_struct as node_record

from .nodes cimport feature_split, tree_node


cdef struct tree_records:
    # With space for all nodes of the tree.
    node_record * nodes
    Py_ssize_t n_nodes
    BITSET_DTYPE_C * bitsets   # left categories, by `bitset_idx`
    Py_ssize_t n_bitsets


cdef class TreeRecords:
    cdef:
        object nodes, bitsets
        tree_records records


cdef inline int add_leaf(
    tree_records * records, const tree_node * node
) noexcept nogil:
    """Add a node to the records, as a leaf for now; return its number."""
    cdef:
        int number = records.n_nodes
        node_record * record = &records.nodes[number]
    memset(record, 0, sizeof(node_record))
    record.value = node.value
    record.count = node.pooled.n_samples
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
    tree_records * records, int number, const feature_split * split, bint has_missing
) noexcept nogil:
    """Turn a leaf into an inner node with this split. Unless its feature has missing
    values in training (`has_missing`), missing values in rows to predict go to the
    larger child.
    """
    cdef node_record * record = &records.nodes[number]
    record.is_leaf = False
    record.gain = split.rank.gain
    record.feature_idx = split.feature_idx
    record.bin_threshold = split.bin_idx
    record.missing_go_to_left = split.missing_go_to_left
    if not has_missing:
        record.missing_go_to_left = 2 * split.n_samples_left > record.count
    if split.is_categorical:
        record.is_categorical = True
        record.bitset_idx = records.n_bitsets
        memcpy(
            records.bitsets[records.n_bitsets], split.left_cat_bitset,
            sizeof(BITSET_DTYPE_C),
        )
        records.n_bitsets += 1
