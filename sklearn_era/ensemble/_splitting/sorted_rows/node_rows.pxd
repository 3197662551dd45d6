# The rows of a small node, as its subtree is grown.
#
# Rows are numbers within the small node, in ascending order of the tree's own. A node
# of the subtree has a range of them, and the same range of the keys of each feature.

from libc.math cimport llrint
from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport (
    G_H_DTYPE_C,
    X_BINNED_DTYPE_C,
)
from sklearn.utils._bitset cimport in_bitset

from .node cimport hessian_of, is_like, row_sums, small_node
from .keys cimport code_of, part_rows, row_of, sort_rows
from ..candidates cimport feature_split
from ..._criteria.era_statistics cimport era_sums


cdef struct small_rows:
    int n_features
    int n_rows
    Py_ssize_t capacity
    const unsigned int * samples   # (n_rows,), rows of the tree
    unsigned int * rows            # (n_rows,), parted as keys are
    unsigned int * keys            # (n_features, capacity), see keys.pxd
    row_sums sums
    double gradient_unit           # 0: gradients are summed as they are
    double gradient_scale
    unsigned int * scratch         # (capacity,)
    unsigned char * goes_left      # (capacity,)


cdef inline unsigned int * keys_of(
    const small_rows * rows, int feature, int start
) noexcept nogil:
    """The keys of a feature, from a place on."""
    return rows.keys + feature * rows.capacity + start


cdef inline void gather_rows(
    small_rows * rows,
    const X_BINNED_DTYPE_C * X_binned,  # of the tree, column by column
    Py_ssize_t n_samples,
    const G_H_DTYPE_C * gradients,
    const G_H_DTYPE_C * hessians,       # NULL where they are 1
) noexcept nogil:
    """Take over what is to be known of the rows in `samples`, and sort them."""
    cdef:
        unsigned int sample
        int i
    for i in range(rows.n_rows):
        sample = rows.samples[i]
        rows.rows[i] = i
        if rows.gradient_unit > 0.0:
            rows.sums.gradients[i] = rows.gradient_unit * <double> llrint(
                gradients[sample] * rows.gradient_scale
            )
        else:
            rows.sums.gradients[i] = gradients[sample]
        if hessians != NULL:
            rows.sums.hessians[i] = hessians[sample]
    for i in range(rows.n_features):
        sort_rows(
            X_binned + i * n_samples, rows.samples, rows.n_rows, keys_of(rows, i, 0)
        )


cdef inline bint ask_alike(
    const small_rows * rows, const small_node * node
) noexcept nogil:
    """Whether all rows of a node ask for the same, so that there is none to part."""
    cdef:
        era_sums first, other
        int row, i
    memset(&first, 0, sizeof(first))
    memset(&other, 0, sizeof(other))
    for i in range(node.start, node.stop):
        row = rows.rows[i]
        other.gradients = rows.sums.gradients[row]
        other.hessians = hessian_of(&rows.sums, row)
        if not is_like(&first, &other):
            return False
    return True


cdef inline void part_node(
    small_rows * rows,
    const small_node * node,
    feature_split * split,
    const int * features,   # (n_features,), those that the children may look at
    int n_features,
    int missing_code,
) noexcept nogil:
    """Move the rows of the left child before those of the right one."""
    cdef:
        const unsigned int * keys = keys_of(rows, split.feature_idx, node.start)
        int n_rows = node.stop - node.start
        int code, i
    for i in range(n_rows):
        code = code_of(keys[i])
        if split.is_categorical:
            rows.goes_left[row_of(keys[i])] = in_bitset(split.left_cat_bitset, code)
        elif code == missing_code:
            rows.goes_left[row_of(keys[i])] = split.missing_go_to_left
        else:
            rows.goes_left[row_of(keys[i])] = code <= <int> split.bin_idx
    part_rows(rows.rows + node.start, n_rows, rows.goes_left, rows.scratch)
    for i in range(n_features):
        part_rows(
            keys_of(rows, features[i], node.start), n_rows,
            rows.goes_left, rows.scratch,
        )
