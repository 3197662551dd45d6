"""Add up the trees' predictions, one tile of rows at a time.

The sums equal scikit-learn's, bit for bit: rows take the same side of each split, and
leaf values are added in the order of the trees. Only the search for a leaf differs.

- For a small tree (at most 64 leaves) *all* splits are evaluated, as in QuickScorer
  (Lucchese et al., SIGIR 2015). Each leaf is a bit, from left to right. A row on the
  right of a split loses the bits of the leaves on the left, and the row's leaf is the
  lowest bit that remains. A branch-free loop, which compilers vectorise, evaluates a
  split for all rows of a tile:

      leaves  a b c d      all splits' `leaves_if_right` combined by &
      root    0 0 1 1      if the row goes right
      left    0 1 1 1      if it goes right there

- In a larger tree several rows descend side by side, which overlaps their cache misses.
- Trees that take longer to pack than to walk are walked as they are, row by row.

The module is compiled once for each instruction set (`instruction_sets`).
"""

from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from cython.parallel import prange
from libc.math cimport isnan
from libc.stdint cimport int16_t, int8_t, uint32_t, uint64_t, uint8_t, uintptr_t
from libc.stdlib cimport calloc, free

import numpy as np

from .._arrays cimport node_struct
from .packed_trees import UNSOUND, damaged_tree_error
from .packed_trees cimport (
    CATEGORICAL, CATEGORY_WORDS, MISSING_LEFT, PackedTrees, category_code,
    category_goes_left, is_in, is_valid_split, packed_node, place, split_struct,
    tree_limits, tree_struct,
)

cdef enum:
    TILE_ROWS = 64
    TILES_PER_PASS = 16  # of a large tree, since each pass reads it from memory
    ROWS_SIDE_BY_SIDE = 16
    # Up to these sizes, packing a tree takes no longer than starting to walk it, and
    # for each row no longer than the row's walk.
    NODES_PER_CALL = 256
    NODES_PER_ROW = 8
    VISITS_PER_THREAD = 16_384  # pairs of row and tree that outweigh starting a thread
    ROWS_PER_THREAD = 16        # likewise, rows that walk one tree

# NumPy's type codes of X that need no conversion.
READABLE = "?bBhfd"

ctypedef fused number:
    int8_t
    uint8_t
    int16_t
    float
    double


cdef struct matrix:
    const char * values
    Py_ssize_t n_rows
    Py_ssize_t n_columns
    Py_ssize_t row_stride        # in bytes
    Py_ssize_t column_stride
    int n_abreast                # rows that are read side by side
    char code                    # NumPy's type code


def add_trees(
    X, predictors, known_cat_bitsets, f_idx_map, double[:, :] raw_predictions,
    int n_threads,
):
    """Add the predictions of trees to `raw_predictions`, which has a column for each
    tree of an iteration; raise ValueError if an index in a tree is out of bounds.

    The type of X is in `READABLE`. `known_cat_bitsets` has shape
    (n_categorical_features, 8) and dtype uint32; `f_idx_map` maps each categorical
    feature to its row of bitsets.
    """
    cdef:
        PackedTrees trees = PackedTrees(
            predictors, X.shape, (raw_predictions.shape[0], raw_predictions.shape[1]),
            known_cat_bitsets, f_idx_map,
        )
        Py_ssize_t n_trees = len(trees.node_arrays)
        Py_buffer buffer
        matrix rows
    if trees.size > n_trees * (NODES_PER_CALL + NODES_PER_ROW * len(X)):
        walk_trees(trees, np.asarray(X, dtype=np.float64), raw_predictions, n_threads)
        return
    trees.pack()

    rows.code = ord(X.dtype.char)
    PyObject_GetBuffer(X, &buffer, PyBUF_STRIDED_RO)
    try:
        rows.values = <const char *> buffer.buf
        rows.n_rows, rows.n_columns = buffer.shape[0], buffer.shape[1]
        rows.row_stride, rows.column_stride = buffer.strides[0], buffer.strides[1]
        # Row-major: as many rows as fill a cache line.
        by_row = abs(buffer.strides[1]) < abs(buffer.strides[0])
        rows.n_abreast = 8 if by_row else TILE_ROWS
        add_in_threads(trees, &rows, raw_predictions, n_threads)
    finally:
        PyBuffer_Release(&buffer)


cdef int walk_trees(
    PackedTrees trees, const double[:, :] X, double[:, :] raw_predictions,
    Py_ssize_t n_threads,
) except -1:
    """Add the predictions of unpacked trees; raise ValueError at a damaged node."""
    cdef:
        const node_struct[::1] nodes
        tree_struct tree
        tree_limits limits
        Py_ssize_t n_damaged = 0
        Py_ssize_t n_rows = X.shape[0]
        Py_ssize_t i, row
    n_threads = max(1, min(n_threads, n_rows // ROWS_PER_THREAD))
    for i in range(len(trees.node_arrays)):
        nodes = trees.open_tree(i, &tree, &limits)
        for row in prange(
            n_rows, schedule="static", nogil=True, num_threads=n_threads
        ):
            n_damaged += not walk_row(
                trees, &tree, &limits, &nodes[0], X, row,
                &raw_predictions[row, tree.output],
            )
        if n_damaged:
            raise damaged_tree_error(UNSOUND)
    return 0


cdef inline bint walk_row(
    PackedTrees trees, const tree_struct * tree, const tree_limits * limits,
    const node_struct * nodes, const double[:, :] X, Py_ssize_t row,
    double * sum_of_row,
) noexcept nogil:
    """Add the value of a row's leaf; return False if a node on the way is damaged."""
    cdef:
        const node_struct * node = nodes
        uint32_t at = 0
        double value
        bint goes_left
    while not node.is_leaf:
        if not is_valid_split(node, at, limits):
            return False
        value = X[row, node.feature_idx]
        if node.is_categorical:
            goes_left = category_goes_left(
                trees, tree, node.feature_idx, node.bitset_idx,
                node.missing_go_to_left, value,
            )
        else:
            goes_left = node.missing_go_to_left if isnan(value) else (
                value <= node.num_threshold
            )
        at = node.left if goes_left else node.right
        node = &nodes[at]
    sum_of_row[0] += node.value
    return True


cdef int add_in_threads(
    PackedTrees trees, const matrix * X, double[:, :] raw_predictions,
    Py_ssize_t n_threads,
) except -1:
    """Add the predictions of all packed trees to `raw_predictions`, by threads."""
    cdef:
        Py_ssize_t n_tiles = (X.n_rows + TILE_ROWS - 1) // TILE_ROWS
        Py_ssize_t n_abreast = 1 if trees.n_small == trees.n_trees else TILES_PER_PASS
        Py_ssize_t n_parts = X.n_rows * trees.n_trees // VISITS_PER_THREAD
        Py_ssize_t n_values, part
        char * memory
        double * values
    n_parts = max(1, min(n_parts, n_threads))
    n_abreast = max(1, min(n_abreast, n_tiles // n_parts))
    n_values = n_abreast * TILE_ROWS * X.n_columns
    memory = <char *> calloc(n_parts * n_values + 8, sizeof(double))
    if not memory:
        raise MemoryError
    # Vectors should not straddle two cache lines.
    values = <double *> ((<uintptr_t> memory + 63) // 64 * 64)
    for part in prange(n_parts, schedule="static", nogil=True, num_threads=n_parts):
        add_tiles(
            trees, X, n_tiles * part // n_parts, n_tiles * (part + 1) // n_parts,
            n_abreast, values + part * n_values, raw_predictions,
        )
    free(memory)
    return 0


cdef void add_tiles(
    PackedTrees trees, const matrix * X, Py_ssize_t start, Py_ssize_t stop,
    Py_ssize_t n_abreast, double * values, double[:, :] raw_predictions,
) noexcept nogil:
    """Add the trees' predictions for a thread's tiles. Each tree adds to `n_abreast`
    tiles in a pass; `values` is memory for a pass.
    """
    cdef:
        Py_ssize_t stride = raw_predictions.strides[0] // <Py_ssize_t> sizeof(double)
        Py_ssize_t n_values = TILE_ROWS * X.n_columns
        Py_ssize_t row, i, j
        int n_rows
        bint has_missing = False  # also set by earlier rows of a partial tile
    while start < stop:
        n_abreast = min(n_abreast, stop - start)
        for j in range(n_abreast):
            row = (start + j) * TILE_ROWS
            n_rows = min(TILE_ROWS, X.n_rows - row)
            has_missing |= fill_tile(trees, X, row, n_rows, values + j * n_values)
        for i in range(trees.n_trees):
            for j in range(n_abreast):
                row = (start + j) * TILE_ROWS
                n_rows = min(TILE_ROWS, X.n_rows - row)
                add_tree(
                    &trees.trees[i], values + j * n_values, n_rows,
                    &raw_predictions[row, trees.trees[i].output], stride, has_missing,
                )
        start += n_abreast


cdef inline void add_tree(
    const tree_struct * tree, const double * tile, int n_rows, double * sums,
    Py_ssize_t stride, bint has_missing,
) noexcept nogil:
    """Add a tree's values for the rows of a tile to `sums`, with steps of `stride`."""
    if not tree.nodes:
        add_small_tree(tree, tile, n_rows, sums, stride)
    elif has_missing or tree.has_categories:
        add_large_tree(tree, tile, n_rows, sums, stride, False)
    else:
        add_large_tree(tree, tile, n_rows, sums, stride, True)


cdef inline void add_small_tree(
    const tree_struct * tree, const double * tile, int n_rows, double * sums,
    Py_ssize_t stride,
) noexcept nogil:
    """Add a small tree's values: each split removes leaves that a row cannot reach."""
    cdef:
        const split_struct * split
        const double * values
        const uint32_t * goes_left
        uint64_t[TILE_ROWS] leaves
        uint64_t all_leaves = ~<uint64_t> 0
        uint64_t if_right
        double threshold
        int row, i
    for row in range(TILE_ROWS):
        leaves[row] = all_leaves
    # All rows of the tile, even unused ones, to fill vectors. NaN fails both
    # comparisons.
    for i in range(tree.n_splits):
        split = &tree.splits[i]
        values = tile + <Py_ssize_t> split.feature * TILE_ROWS
        threshold = split.threshold
        if_right = split.leaves_if_right
        if split.is_categorical:
            goes_left = tree.goes_left + split.bitset_idx * CATEGORY_WORDS
            for row in range(TILE_ROWS):
                leaves[row] &= if_right | -is_in(goes_left, <uint32_t> values[row])
        elif split.missing_go_to_left:
            for row in range(TILE_ROWS):
                leaves[row] &= if_right if values[row] > threshold else all_leaves
        else:
            for row in range(TILE_ROWS):
                leaves[row] &= all_leaves if values[row] <= threshold else if_right
    for row in range(n_rows):
        sums[row * stride] += tree.values[place(leaves[row])]


cdef inline void add_large_tree(
    const tree_struct * tree, const double * tile, int n_rows, double * sums,
    Py_ssize_t stride, bint is_plain,
) noexcept nogil:
    """Add a large tree's values; some rows descend side by side. `is_plain` is a
    constant: True if no value is missing and there are no categories.
    """
    cdef:
        const double * values
        uint32_t[ROWS_SIDE_BY_SIDE] at
        uint32_t child
        bint is_moving
        int i, j
    # All rows side by side, even unused ones, so that loops unroll.
    for i in range(0, n_rows, 16):
        values = tile + i
        for j in range(ROWS_SIDE_BY_SIDE):
            at[j] = 0
        is_moving = True
        while is_moving:
            # Two levels between checks whether a row still moves: leaves hold it.
            for j in range(ROWS_SIDE_BY_SIDE):
                at[j] = child_of(tree, at[j], values + j, is_plain)
            is_moving = False
            for j in range(ROWS_SIDE_BY_SIDE):
                child = child_of(tree, at[j], values + j, is_plain)
                is_moving |= child != at[j]
                at[j] = child
        for j in range(min(<int> ROWS_SIDE_BY_SIDE, n_rows - i)):
            sums[(i + j) * stride] += tree.values[at[j]]


cdef inline uint32_t child_of(
    const tree_struct * tree, uint32_t at, const double * row, bint is_plain,
) noexcept nogil:
    """Return the child of node `at` that a row goes to; `at` if the node is a leaf."""
    cdef:
        const packed_node * node = &tree.nodes[at]
        uint32_t feature = node.feature & (MISSING_LEFT - 1)
        double value = row[<Py_ssize_t> feature * TILE_ROWS]
        bint goes_left = value <= node.threshold
        bint missing_go_to_left
    if not is_plain:
        missing_go_to_left = (node.feature & MISSING_LEFT) != 0
        if node.feature & CATEGORICAL:
            goes_left = is_in(
                tree.goes_left + <Py_ssize_t> node.threshold * CATEGORY_WORDS,
                <uint32_t> value,
            )
        else:
            goes_left |= missing_go_to_left & (value != value)
    return node.left + (not goes_left)


cdef bint fill_tile(
    PackedTrees trees, const matrix * X, Py_ssize_t first, int n_rows, double * tile,
) noexcept nogil:
    """Copy the columns that trees read to a tile; return whether a value is missing."""
    cdef const char * row = X.values + first * X.row_stride
    if X.code == b"d":
        return fill_from(trees, <const double *> row, X, n_rows, tile)
    if X.code == b"f":
        return fill_from(trees, <const float *> row, X, n_rows, tile)
    if X.code == b"b":
        return fill_from(trees, <const int8_t *> row, X, n_rows, tile)
    if X.code == b"B" or X.code == b"?":
        return fill_from(trees, <const uint8_t *> row, X, n_rows, tile)
    return fill_from(trees, <const int16_t *> row, X, n_rows, tile)


cdef inline bint fill_from(
    PackedTrees trees, const number * values, const matrix * X, int n_rows,
    double * tile,
) noexcept nogil:
    cdef:
        const char * column
        double * out
        int first, row, i
        int stop = 0
        bint has_missing = False
    while stop < n_rows:
        first = stop
        stop = min(first + X.n_abreast, n_rows)
        for i in range(trees.n_columns):
            column = <const char *> values + trees.columns[i] * X.column_stride
            out = tile + <Py_ssize_t> trees.columns[i] * TILE_ROWS
            for row in range(first, stop):
                out[row] = (<const number *> (column + row * X.row_stride))[0]
                has_missing |= out[row] != out[row]
            if trees.is_category[trees.columns[i]]:
                for row in range(first, stop):
                    out[row] = category_code(out[row])
    return has_missing
