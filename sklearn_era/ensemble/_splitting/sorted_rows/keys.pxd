# The rows of a small node, sorted by each feature, down its subtree.
#
# A row is a number within the small node, in the order of its eras. Of each feature the
# rows are kept as keys, sorted once: the bin's code above, the row below,
#
#     code << ROW_BITS | row
#
# so that a scan reads both at once, and rows of one bin are in the order of eras. A
# split partitions each feature's keys, and keeps their order: a node of the subtree has
# the same range [start, stop) of the keys of all features.

from libc.string cimport memcpy, memset

from sklearn.ensemble._hist_gradient_boosting.common cimport X_BINNED_DTYPE_C

from ..rows cimport MAX_BINS


cdef enum:
    ROW_BITS = 16
    ROW_MASK = 65535


cdef inline int code_of(unsigned int key) noexcept nogil:
    return key >> ROW_BITS


cdef inline bint has_same_code(unsigned int key, unsigned int other) noexcept nogil:
    return (key ^ other) >> ROW_BITS == 0


cdef inline int row_of(unsigned int key) noexcept nogil:
    return key & ROW_MASK


cdef inline void sort_rows(
    const X_BINNED_DTYPE_C * column,
    const unsigned int * samples,  # (n_rows,), rows of the column
    int n_rows,
    unsigned int * keys,           # OUT, (n_rows,)
) noexcept nogil:
    """Sort rows by their codes, and those of one code as they are."""
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
    unsigned int * keys,               # IN and OUT, (n_rows,); or rows without codes
    int n_rows,
    const unsigned char * goes_left,   # of each row, 0 or 1
    unsigned int * scratch,            # (n_rows,)
) noexcept nogil:
    """Move the rows of the left child before those of the right one.

    Without a branch, that no row could tell: each is written to both sides, and only
    one of them moves on.
    """
    cdef:
        unsigned int key
        int n_left = 0
        int n_right = 0
        int is_left, i
    for i in range(n_rows):
        key = keys[i]
        is_left = goes_left[key & ROW_MASK]
        keys[n_left] = key
        scratch[n_right] = key
        n_left += is_left
        n_right += 1 - is_left
    memcpy(keys + n_left, scratch, n_right * sizeof(unsigned int))


cdef inline int count_code(
    const unsigned int * keys, int n_rows, int code
) noexcept nogil:
    """How many rows have a code that no other one is larger than."""
    cdef int n = 0
    while n < n_rows and code_of(keys[n_rows - 1 - n]) == code:
        n += 1
    return n
