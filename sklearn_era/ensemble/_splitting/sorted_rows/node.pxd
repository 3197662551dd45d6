# The rows of a small node, sorted by each feature, throughout its subtree; the nodes of
# the subtree, and their records.
#
# A row is a number within the small node, in the order of eras. Each feature has the
# rows as sorted keys, code << ROW_BITS | row. A split partitions them stably, so a node
# of the subtree is the same range of the rows and of the keys of all features.

from libc.string cimport memcpy, memset

from ..._arrays cimport (
    BITSET_DTYPE_C, G_H_DTYPE_C, X_BINNED_DTYPE_C, node_struct as node_record,
)

from ..fixed_points cimport fixed_point
from ..nodes cimport (
    feature_split, pooled_node, side_values, tree_data, values_of_sides,
)
from ..rows cimport MAX_BINS
from ..._criteria.formulas cimport era_contrast, era_sums, node_loss


cdef enum:
    # At most a block of `EraRows`, so that impurities are summed up in the same order.
    MAX_ROWS = 1024
    ROW_BITS = 16
    ROW_MASK = 65535


cdef struct small_rows:
    int n_rows
    const unsigned int * samples   # (n_rows,), rows of the tree
    double gradient_unit           # 0: gradients are not rounded
    double gradient_scale
    double[MAX_ROWS] gradients
    double[MAX_ROWS] hessians
    unsigned int[MAX_ROWS] rows    # partitioned like the keys
    unsigned int * keys            # (n_features, MAX_ROWS)
    unsigned int[MAX_ROWS] scratch
    unsigned char[MAX_ROWS] goes_left   # 0 or 1


cdef inline int code_of(unsigned int key) noexcept nogil:
    return key >> ROW_BITS


cdef inline int row_of(unsigned int key) noexcept nogil:
    return key & ROW_MASK


cdef inline unsigned int * keys_of(
    const small_rows * rows, int feature, int start
) noexcept nogil:
    """Return the keys of a feature, from a place on."""
    return rows.keys + feature * <Py_ssize_t> MAX_ROWS + start


cdef inline void gather_rows(small_rows * rows, const tree_data * tree) noexcept nogil:
    """Copy the gradients and hessians of the rows in `samples`, and sort the rows."""
    cdef:
        unsigned int sample
        int i
    for i in range(rows.n_rows):
        sample = rows.samples[i]
        rows.rows[i] = i
        rows.gradients[i] = tree.gradients[sample]
        if rows.gradient_unit > 0.0:
            rows.gradients[i] = rows.gradient_unit * fixed_point(
                tree.gradients[sample], rows.gradient_scale
            )
        rows.hessians[i] = 1.0 if tree.hessians == NULL else tree.hessians[sample]
    for i in range(tree.n_features):
        sort_rows(
            tree.X_binned + i * tree.n_samples, rows.samples, rows.n_rows,
            keys_of(rows, i, 0),
        )


cdef inline void sort_rows(
    const X_BINNED_DTYPE_C * column,
    const unsigned int * samples,  # (n_rows,), rows of the column
    int n_rows, unsigned int * keys,  # OUT, (n_rows,)
) noexcept nogil:
    """Sort rows by code, stably."""
    cdef:
        int[MAX_BINS + 1] starts
        int code, i
    memset(starts, 0, sizeof(starts))
    for i in range(n_rows):
        starts[column[samples[i]] + 1] += 1
    for i in range(MAX_BINS):
        starts[i + 1] += starts[i]
    for i in range(n_rows):
        code = column[samples[i]]
        keys[starts[code]] = <unsigned int> code << ROW_BITS | <unsigned int> i
        starts[code] += 1


cdef inline void partition_rows(
    small_rows * rows, unsigned int * keys, int n_rows  # or plain row numbers
) noexcept nogil:
    """Move the rows of the left child before those of the right one, stably and without
    a branch.
    """
    cdef:
        unsigned int key
        int n_left = 0, n_right = 0, is_left, i
    for i in range(n_rows):
        key = keys[i]
        is_left = rows.goes_left[key & ROW_MASK]
        keys[n_left] = key
        rows.scratch[n_right] = key
        n_left += is_left
        n_right += 1 - is_left
    memcpy(keys + n_left, rows.scratch, n_right * sizeof(unsigned int))


ctypedef fused number:
    G_H_DTYPE_C
    double


cdef inline bint is_pure(
    const number * gradients,
    const number * hessians,     # NULL if they are 1
    const unsigned int * rows,   # (n_rows,)
    int n_rows,
) noexcept nogil:
    """Return whether g / h is equal for all rows of weight, so that no split gains."""
    cdef:
        era_sums first, other
        int i
    memset(&first, 0, sizeof(first))
    memset(&other, 0, sizeof(other))
    for i in range(n_rows):
        other.gradients = gradients[rows[i]]
        other.hessians = 1.0 if hessians == NULL else hessians[rows[i]]
        if other.hessians <= 0.0:
            continue
        if first.hessians == 0.0:
            first = other
        elif first.hessians == other.hessians:
            if first.gradients != other.gradients:
                return False
        elif era_contrast(first, other, 0.0) != 0.0:
            return False
    return True


cdef struct small_node:
    # Sums are those of scikit-learn's grower: a right child's are differences from its
    # parent's.
    pooled_node pooled
    int start           # in the rows of the small node
    int depth
    double value
    int parent          # its record; -1 for a root
    bint is_right       # of the parent's children


cdef inline void make_children(
    const tree_data * tree, const small_node * node, const feature_split * split,
    int number,                   # of the node's record
    small_node * left,            # OUT
    small_node * right,           # OUT
) noexcept nogil:
    cdef side_values values = values_of_sides(
        tree, &node.pooled, split.sum_gradients_left, split.sum_hessians_left
    )
    left[0] = node[0]
    left.depth += 1
    left.parent = number
    right[0] = left[0]
    left.is_right = False
    set_sums(
        left, split.n_samples_left, split.sum_gradients_left, split.sum_hessians_left,
        values.left,
    )
    right.is_right = True
    right.start += split.n_samples_left
    set_sums(
        right, node.pooled.n_samples - split.n_samples_left,
        node.pooled.sum_gradients - split.sum_gradients_left,
        node.pooled.sum_hessians - split.sum_hessians_left, values.right,
    )


cdef inline void set_sums(
    small_node * node,   # OUT
    int n_samples, double sum_gradients, double sum_hessians, double value,
) noexcept nogil:
    node.pooled.n_samples = n_samples
    node.pooled.sum_gradients = sum_gradients
    node.pooled.sum_hessians = sum_hessians
    node.pooled.loss = node_loss(sum_gradients, value)
    node.value = value


cdef struct tree_records:
    # The nodes of a tree in the format of scikit-learn's predictor, with space for all.
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
    tree_records * records, int number, const feature_split * split
) noexcept nogil:
    """Turn a leaf into an inner node."""
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
            records.bitsets[records.n_bitsets], split.left_cat_bitset,
            sizeof(BITSET_DTYPE_C),
        )
        records.n_bitsets += 1
