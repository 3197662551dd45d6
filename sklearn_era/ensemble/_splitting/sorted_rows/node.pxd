# The rows of a small node, sorted by each feature, throughout its subtree.
#
# A row is a number within the small node, in the order of eras. Each feature has the
# rows as sorted keys, code << ROW_BITS | row. A split partitions them stably, so a node
# of the subtree is the same range of the rows and of the keys of all features.

from libc.string cimport memcpy, memset

from ..._arrays cimport G_H_DTYPE_C, X_BINNED_DTYPE_C

from ..fixed_points cimport fixed_point
from ..nodes cimport tree_data
from ..rows cimport MAX_BINS
from ..._criteria.formulas cimport era_contrast, era_sums


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
    """Return the address of a feature's keys (codes and rows) from `start` on."""
    return rows.keys + feature * <Py_ssize_t> MAX_ROWS + start


cdef inline void gather_rows(small_rows * rows, const tree_data * tree) noexcept nogil:
    """Copy the gradients and hessians of the rows in `samples`; sort the rows by each
    feature. The key of a row, for a feature, is the row's code and number.
    """
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
    """Set `keys` to the rows with their codes in a column, stably sorted by code."""
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
    """Move the rows in `keys` that go to the left child before all other rows, without
    a branch. Both parts keep their order.
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
    """Return whether g / h is equal in all rows with weight, so no split has a gain."""
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
