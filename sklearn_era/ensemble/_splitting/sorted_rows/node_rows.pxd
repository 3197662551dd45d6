# The rows of a small node, as its subtree is grown.
#
# Rows are numbers within the small node, in ascending order of the tree's own. A node
# of the subtree has a range of them, and the same range of the keys of each feature.

from libc.string cimport memset

from sklearn.ensemble._hist_gradient_boosting.common cimport G_H_DTYPE_C
from sklearn.utils._bitset cimport in_bitset

from .node cimport row_sums, small_node
from ..tree_data cimport tree_data
from .keys cimport code_of, partition_rows, row_of, sort_rows
from ..candidates.split cimport feature_split
from ..fixed_points cimport fixed_point
from ..._criteria.sides cimport era_contrast, era_sums


cdef struct small_rows:
    int n_rows
    Py_ssize_t capacity
    const unsigned int * samples   # (n_rows,), rows of the tree
    unsigned int * rows            # (n_rows,), partitioned as keys are
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


cdef inline void gather_rows(small_rows * rows, const tree_data * data) noexcept nogil:
    """Take over what is to be known of the rows in `samples`, and sort them."""
    cdef:
        unsigned int sample
        int i
    for i in range(rows.n_rows):
        sample = rows.samples[i]
        rows.rows[i] = i
        rows.sums.gradients[i] = data.gradients[sample]
        if rows.gradient_unit > 0.0:
            rows.sums.gradients[i] = rows.gradient_unit * fixed_point(
                data.gradients[sample], rows.gradient_scale
            )
        if data.hessians != NULL:
            rows.sums.hessians[i] = data.hessians[sample]
    for i in range(data.n_features):
        sort_rows(
            data.X_binned + i * data.n_samples, rows.samples, rows.n_rows,
            keys_of(rows, i, 0),
        )


ctypedef fused number:
    G_H_DTYPE_C
    double


cdef inline bint is_pure(
    const number * gradients,
    const number * hessians,     # NULL where they are 1
    const unsigned int * rows,   # (n_rows,)
    int n_rows,
) noexcept nogil:
    """Whether no split of some rows gains anything: whether g / h is one value.

    As far as can be told, where rows have different weights. Those without one have no
    part in it.
    """
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


cdef inline void partition_node(
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
    partition_rows(rows.rows + node.start, n_rows, rows.goes_left, rows.scratch)
    for i in range(n_features):
        partition_rows(
            keys_of(rows, features[i], node.start), n_rows,
            rows.goes_left, rows.scratch,
        )
