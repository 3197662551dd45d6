# The stable partition of a node's rows, in blocks that threads part.

from cython.parallel cimport prange
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memmove

from .._arrays cimport X_BINNED_DTYPE_C, in_bitset

from .nodes cimport feature_split, grown_node, tree_data
from .rows cimport MAX_BINS

cdef enum:
    MAX_BLOCKS = 64


cdef inline void set_left_bins(
    const feature_split * split, int missing_bin, uint8_t * goes_left,  # OUT: by bin
) noexcept nogil:
    """Set which bins of the split's feature go to the left."""
    cdef int i
    for i in range(MAX_BINS):
        if split.is_categorical:
            goes_left[i] = in_bitset(split.left_cat_bitset, i)
        else:
            goes_left[i] = i <= <int> split.bin_idx
    if not split.is_categorical:
        goes_left[missing_bin] = split.missing_go_to_left


cdef inline int part_rows(
    const tree_data * tree, const grown_node * node,
    unsigned int * partition,  # IN and OUT: the rows of the left child come first
    unsigned int * scratch,    # (n_samples,); only the node's range is used
    int n_threads,
) noexcept nogil:
    """Part the rows of a node in place; return how many go to the left child."""
    cdef:
        const feature_split * split = &node.choice.split
        const X_BINNED_DTYPE_C * codes = (
            tree.X_binned + split.feature_idx * tree.n_samples
        )
        unsigned int * rows = partition + node.node.start
        uint8_t[MAX_BINS] goes_left
        int n_rows = node.n_rows
        int n_blocks = min(MAX_BLOCKS, n_threads)
        int[MAX_BLOCKS + 1] starts
        int[MAX_BLOCKS] n_left
        int total = 0, n_right = 0, i
    scratch += node.node.start
    set_left_bins(split, tree.missing_values_bin_idx, goes_left)
    if n_blocks == 1:  # perhaps within a thread of others
        total = part_block(rows, n_rows, codes, goes_left, scratch)
        memcpy(rows + total, scratch, (n_rows - total) * sizeof(int))
        return total
    for i in range(n_blocks + 1):
        starts[i] = <int> (<Py_ssize_t> n_rows * i // n_blocks)
    for i in prange(n_blocks, schedule="static", num_threads=n_blocks):
        n_left[i] = part_block(
            rows + starts[i], starts[i + 1] - starts[i], codes, goes_left,
            scratch + starts[i],
        )
    for i in range(n_blocks):
        memmove(rows + total, rows + starts[i], n_left[i] * sizeof(int))
        total += n_left[i]
    for i in range(n_blocks):
        memcpy(
            rows + total + n_right, scratch + starts[i],
            (starts[i + 1] - starts[i] - n_left[i]) * sizeof(int),
        )
        n_right += starts[i + 1] - starts[i] - n_left[i]
    return total


cdef inline int part_block(
    unsigned int * rows, int n_rows,  # IN and OUT: those of the left child come first
    const X_BINNED_DTYPE_C * codes, const uint8_t * goes_left,
    unsigned int * others,            # OUT
) noexcept nogil:
    """Move the rows of the left child to the front, and copy the other rows to
    `others`, without a branch; return how many rows go left.
    """
    cdef:
        Py_ssize_t n_left = 0, i
        unsigned int row
    for i in range(n_rows):
        row = rows[i]
        rows[n_left] = row
        others[i - n_left] = row
        n_left += goes_left[codes[row]]
    return <int> n_left


cdef inline void unite_rows(
    unsigned int * rows, int n_rows,  # IN and OUT
    int n_left,
    const int * era_codes,            # NULL: rows in order are in the order of eras
    unsigned int * scratch,           # (n_left,)
) noexcept nogil:
    """Put parted rows back into their order before the split: by era, then number."""
    cdef:
        int left = 0, right = n_left, i
        unsigned int a, b
    memcpy(scratch, rows, n_left * sizeof(int))
    for i in range(n_rows):
        if left == n_left:
            return
        a = scratch[left]
        b = rows[right] if right < n_rows else a
        if right == n_rows or (
            a < b if era_codes == NULL or era_codes[a] == era_codes[b]
            else era_codes[a] < era_codes[b]
        ):
            rows[i] = a
            left += 1
        else:
            rows[i] = b
            right += 1
