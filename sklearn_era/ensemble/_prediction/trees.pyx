"""The sum of trees' predictions, for a tile of rows after the other.

It is scikit-learn's, bit for bit: a row goes to the same side of each split, and its
leaves' values are added in the order of the trees. Only the way to a leaf is another.

- Of a tree with few leaves, *all* splits are looked at, as in QuickScorer (Lucchese et
  al., SIGIR 2015). A bit stands for each leaf, from left to right. A row that goes right
  loses the bits of the leaves on the left, and ends in the lowest that remains. All
  rows of a tile pass a split in a loop without branches, which compilers vectorise.
- Down a larger tree several rows go side by side, and so wait for memory together.

The module is compiled once for each instruction set (`instruction_sets`).
"""

from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from cython.parallel import prange
from libc.math cimport INFINITY, isnan
from libc.stdint cimport int16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common cimport node_struct
from sklearn.utils._typedefs cimport int8_t, uint8_t

cdef enum:
    MAX_LEAVES = 64      # bits of a word
    TILE_ROWS = 64
    TILES_PER_PASS = 16  # of a large tree, which is read from memory anew with each
    ROWS_ABREAST = 16
    # Packing a tree of so many nodes takes no longer than scikit-learn's call, and of so
    # many for each row no longer than its walk.
    NODES_PER_CALL = 256
    NODES_PER_ROW = 8
    VISITS_PER_THREAD = 16_384  # of rows to trees, that are worth starting a thread

# NumPy's codes of the types of X that are read as they are.
READABLE = "?bBhfd"

ctypedef fused number:
    int8_t
    uint8_t
    int16_t
    float
    double


cdef struct split_struct:
    # A split of a tree with few leaves.
    double threshold
    uint64_t leaves_if_right  # all but those on the left side
    uint32_t feature
    uint32_t bitset_idx
    bint missing_go_to_left
    bint is_categorical


cdef struct packed_node:
    # A node of a larger tree.
    double threshold          # or number of the bitset; infinite for a leaf
    uint32_t feature          # and the flags of `node_flag` in the bits above
    uint32_t left             # the right child comes next; a leaf is its own


cdef enum node_flag:
    MISSING_LEFT = 1 << 29
    CATEGORICAL = 1 << 30


cdef struct tree_struct:
    Py_ssize_t output                 # column of the raw predictions
    const uint32_t * left_categories  # 8 words for each categorical split
    packed_node * nodes               # NULL if the tree has few leaves; otherwise
    split_struct * splits
    int n_splits
    int n_leaves
    double * values                   # of the nodes, or of leaves, each at its `place`
    bint has_categories               # among its nodes


cdef struct matrix:
    const char * values
    Py_ssize_t n_rows
    Py_ssize_t n_columns
    Py_ssize_t row_stride        # in bytes
    Py_ssize_t column_stride
    int n_abreast                # rows to read side by side
    char code                    # of NumPy, for the type


cdef inline int place(uint64_t leaves) noexcept nogil:
    """The place of the lowest leaf in a table of 64 values, by a de Bruijn sequence."""
    return <int> (((leaves & -leaves) * <uint64_t> 0x03F79D71B4CB0A89) >> 58)


cdef inline bint has_category(const uint32_t * bitset, uint8_t category) noexcept nogil:
    return (bitset[category >> 5] >> (category & 31)) & 1


def add_trees(
    X, predictors, known_cat_bitsets, f_idx_map, double[:, :] raw_predictions,
    int n_threads,
):
    """Add the predictions of trees, unless it takes longer to pack than to walk them.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Of one of the types in `READABLE`.
    predictors : list of list of TreePredictor
        The trees of each iteration, one for each column of `raw_predictions`.
    known_cat_bitsets : ndarray of shape (n_categorical_features, 8), dtype=uint32
    f_idx_map : ndarray of shape (n_features,), dtype=uint32
        The row of `known_cat_bitsets` for each categorical feature.
    raw_predictions : ndarray of shape (n_samples, n_trees_per_iteration)
        Is added to.
    n_threads : int

    Returns
    -------
    is_done : bool
        If not, `raw_predictions` is as it was.
    """
    cdef:
        Trees trees
        Py_buffer buffer
        matrix rows
        Py_ssize_t n_nodes = 0
    nodes = []
    for trees_of_iteration in predictors:
        for tree in trees_of_iteration:
            nodes.append(np.ascontiguousarray(tree.nodes))
            n_nodes += len(tree.nodes)
    if n_nodes > len(nodes) * (NODES_PER_CALL + NODES_PER_ROW * len(X)):
        return False
    trees = Trees(n_nodes, len(nodes), known_cat_bitsets, f_idx_map)
    if not trees.pack(predictors, nodes):
        return False

    rows.code = ord(X.dtype.char)
    PyObject_GetBuffer(X, &buffer, PyBUF_STRIDED_RO)
    try:
        rows.values = <const char *> buffer.buf
        rows.n_rows, rows.n_columns = buffer.shape[0], buffer.shape[1]
        rows.row_stride, rows.column_stride = buffer.strides[0], buffer.strides[1]
        # By rows, so many that they fill a line of the cache.
        by_row = abs(buffer.strides[1]) < abs(buffer.strides[0])
        rows.n_abreast = 8 if by_row else TILE_ROWS
        trees.add(&rows, raw_predictions, n_threads)
    finally:
        PyBuffer_Release(&buffer)
    return True


cdef class Trees:
    """The packed trees of a call.

    Made anew with each one, in a fraction of its time: so whatever was done to an
    estimator's trees, these are the ones it has.
    """

    cdef:
        const uint32_t[:, ::1] known_categories
        const uint32_t[::1] f_idx_map
        list left_categories     # that trees point to
        Py_ssize_t n_trees, n_small, n_splits, n_nodes
        tree_struct * trees
        split_struct * splits    # of small trees, one after the other
        double * values          # MAX_LEAVES for each of them
        packed_node * nodes      # of the other trees
        double * node_values
        int * columns            # of X that are read

    def __cinit__(self, Py_ssize_t n_nodes, Py_ssize_t n_trees, known, f_idx_map):
        self.known_categories = known
        self.f_idx_map = f_idx_map
        self.left_categories = []
        # Pages that are never written to take no memory.
        n_trees += 1
        self.trees = <tree_struct *> calloc(n_trees, sizeof(tree_struct))
        self.splits = <split_struct *> malloc(n_trees * MAX_LEAVES * sizeof(split_struct))
        self.values = <double *> malloc(n_trees * MAX_LEAVES * sizeof(double))
        self.nodes = <packed_node *> malloc((n_nodes + 1) * sizeof(packed_node))
        self.node_values = <double *> malloc((n_nodes + 1) * sizeof(double))
        self.columns = <int *> malloc((self.f_idx_map.shape[0] + 1) * sizeof(int))
        if not (self.trees and self.splits and self.values and self.nodes):
            raise MemoryError
        if not (self.node_values and self.columns):
            raise MemoryError

    def __dealloc__(self):
        free(self.trees)
        free(self.splits)
        free(self.values)
        free(self.nodes)
        free(self.node_values)
        free(self.columns)

    cdef bint pack(self, predictors, arrays) except -1:
        """Pack all trees; False if one has more nodes than its array."""
        cdef:
            const node_struct[::1] nodes
            const uint32_t[:, ::1] bitsets
            tree_struct * tree
            Py_ssize_t n_packed
        for trees_of_iteration in predictors:
            for output, predictor in enumerate(trees_of_iteration):
                nodes = arrays[self.n_trees]
                tree = &self.trees[self.n_trees]
                self.n_trees += 1
                tree.output = output
                if self.known_categories.shape[0]:
                    bitsets = predictor.raw_left_cat_bitsets
                    self.left_categories.append(bitsets)
                    if bitsets.shape[0]:
                        tree.left_categories = &bitsets[0, 0]
                tree.splits = self.splits + self.n_splits
                tree.values = self.values + self.n_small * MAX_LEAVES
                if pack_splits(&nodes[0], 0, tree):
                    self.n_splits += tree.n_splits
                    self.n_small += 1
                    continue
                tree.nodes = self.nodes + self.n_nodes
                tree.values = self.node_values + self.n_nodes
                n_packed = pack_nodes(&nodes[0], nodes.shape[0], tree)
                if not n_packed:
                    return False
                self.n_nodes += n_packed
        return True

    cdef int find_columns(self, Py_ssize_t n_columns) except -1:
        """List the columns that are split on; all, if a tree is large."""
        cdef:
            bint all_columns = self.n_small < self.n_trees
            Py_ssize_t i
            int column
            int n_found = 0
            char * is_read = <char *> calloc(n_columns + 1, 1)
        if not is_read:
            raise MemoryError
        for i in range(self.n_splits):
            is_read[self.splits[i].feature] = True
        for column in range(n_columns):
            if all_columns or is_read[column]:
                self.columns[n_found] = column
                n_found += 1
        free(is_read)
        return n_found

    cdef int add(
        self, const matrix * X, double[:, :] raw_predictions, Py_ssize_t n_threads
    ) except -1:
        """Add the trees' predictions for all rows."""
        cdef:
            int n_columns = self.find_columns(X.n_columns)
            Py_ssize_t n_tiles = (X.n_rows + TILE_ROWS - 1) // TILE_ROWS
            Py_ssize_t n_abreast = 1 if self.n_small == self.n_trees else TILES_PER_PASS
            Py_ssize_t n_parts = X.n_rows * self.n_trees // VISITS_PER_THREAD
            Py_ssize_t n_values, part
            char * memory
            double * values
        n_parts = max(1, min(n_parts, n_threads))
        n_abreast = max(1, min(n_abreast, n_tiles // n_parts))
        n_values = n_abreast * TILE_ROWS * X.n_columns
        memory = <char *> calloc(n_parts * n_values + 8, sizeof(double))
        if not memory:
            raise MemoryError
        # Vectors should not lie across two lines of the cache.
        values = <double *> ((<uintptr_t> memory + 63) // 64 * 64)
        for part in prange(n_parts, schedule="static", nogil=True, num_threads=n_parts):
            self.add_tiles(
                X, n_tiles * part // n_parts, n_tiles * (part + 1) // n_parts,
                n_abreast, n_columns, values + part * n_values, raw_predictions,
            )
        free(memory)
        return 0

    cdef void add_tiles(
        self,
        const matrix * X,
        Py_ssize_t start,
        Py_ssize_t stop,
        Py_ssize_t n_abreast,        # tiles that a tree passes before the next one
        int n_columns,
        double * values,             # of these tiles
        double[:, :] raw_predictions,
    ) noexcept nogil:
        """Add the trees' predictions for the tiles of a thread."""
        cdef:
            Py_ssize_t stride = raw_predictions.strides[0] // <Py_ssize_t> sizeof(double)
            Py_ssize_t n_values = TILE_ROWS * X.n_columns
            Py_ssize_t row, i, j
            int n_rows
            bint has_missing = False  # also in rows of a tile that was not filled up
        while start < stop:
            n_abreast = min(n_abreast, stop - start)
            for j in range(n_abreast):
                row = (start + j) * TILE_ROWS
                n_rows = min(TILE_ROWS, X.n_rows - row)
                has_missing |= fill_tile(
                    X, row, n_rows, self.columns, n_columns, values + j * n_values
                )
            for i in range(self.n_trees):
                for j in range(n_abreast):
                    row = (start + j) * TILE_ROWS
                    n_rows = min(TILE_ROWS, X.n_rows - row)
                    self.add_tree(
                        &self.trees[i], values + j * n_values, n_rows,
                        &raw_predictions[row, self.trees[i].output], stride,
                        has_missing,
                    )
            start += n_abreast

    cdef inline void add_tree(
        self,
        const tree_struct * tree,
        const double * tile,
        int n_rows,
        double * sums,               # IN and OUT
        Py_ssize_t stride,           # from a row's to the next
        bint has_missing,
    ) noexcept nogil:
        if not tree.nodes:
            self.add_small_tree(tree, tile, n_rows, sums, stride)
        elif has_missing or tree.has_categories:
            self.add_large_tree(tree, tile, n_rows, sums, stride, False)
        else:
            self.add_large_tree(tree, tile, n_rows, sums, stride, True)

    cdef inline void add_small_tree(
        self,
        const tree_struct * tree,
        const double * tile,
        int n_rows,
        double * sums,               # IN and OUT
        Py_ssize_t stride,
    ) noexcept nogil:
        """Take leaves away, split by split."""
        cdef:
            const split_struct * split
            const double * values
            uint64_t[TILE_ROWS] leaves
            uint64_t all_leaves = ~<uint64_t> 0
            uint64_t if_right
            double threshold
            int row, i
        for row in range(TILE_ROWS):
            leaves[row] = all_leaves
        # All rows of the tile, present or not: vectors are filled. A missing value is
        # neither above a threshold nor at most as large.
        for i in range(tree.n_splits):
            split = &tree.splits[i]
            values = tile + split.feature * TILE_ROWS
            threshold = split.threshold
            if_right = split.leaves_if_right
            if split.is_categorical:
                for row in range(n_rows):
                    if not self.category_goes_left(
                        tree, split.feature, split.bitset_idx,
                        split.missing_go_to_left, values[row],
                    ):
                        leaves[row] &= if_right
            elif split.missing_go_to_left:
                for row in range(TILE_ROWS):
                    leaves[row] &= if_right if values[row] > threshold else all_leaves
            else:
                for row in range(TILE_ROWS):
                    leaves[row] &= all_leaves if values[row] <= threshold else if_right
        for row in range(n_rows):
            sums[row * stride] += tree.values[place(leaves[row])]

    cdef inline void add_large_tree(
        self,
        const tree_struct * tree,
        const double * tile,
        int n_rows,
        double * sums,               # IN and OUT
        Py_ssize_t stride,
        bint is_plain,               # a constant, for a loop of its own
    ) noexcept nogil:
        """Go down to the leaves with some rows at a time.

        It `is_plain` if there is neither a missing value nor a category.
        """
        cdef:
            const packed_node * node
            const double * values
            uint32_t[ROWS_ABREAST] at
            uint32_t feature, child
            bint missing_go_to_left, goes_left, is_moving
            double value
            int i, j
        # All rows abreast, present or not: the loop is unrolled.
        for i in range(0, n_rows, 16):
            values = tile + i
            for j in range(ROWS_ABREAST):
                at[j] = 0
            is_moving = True
            while is_moving:
                is_moving = False
                for j in range(ROWS_ABREAST):
                    node = &tree.nodes[at[j]]
                    feature = node.feature & (MISSING_LEFT - 1)
                    value = values[<Py_ssize_t> feature * TILE_ROWS + j]
                    goes_left = value <= node.threshold
                    if not is_plain:
                        missing_go_to_left = (node.feature & MISSING_LEFT) != 0
                        if node.feature & CATEGORICAL:
                            goes_left = self.category_goes_left(
                                tree, feature, <Py_ssize_t> node.threshold,
                                missing_go_to_left, value,
                            )
                        else:
                            goes_left |= missing_go_to_left & (value != value)
                    child = node.left + (not goes_left)
                    is_moving |= child != at[j]
                    at[j] = child
            for j in range(min(<int> ROWS_ABREAST, n_rows - i)):
                sums[(i + j) * stride] += tree.values[at[j]]

    cdef inline bint category_goes_left(
        self,
        const tree_struct * tree,
        Py_ssize_t feature,
        Py_ssize_t bitset_idx,
        bint missing_go_to_left,
        double value,
    ) noexcept nogil:
        """Whether a category goes to the left; an unknown one goes where missing do."""
        if isnan(value) or value < 0:
            return missing_go_to_left
        if has_category(&tree.left_categories[bitset_idx * 8], <uint8_t> value):
            return True
        return missing_go_to_left and not has_category(
            &self.known_categories[self.f_idx_map[feature], 0], <uint8_t> value
        )


cdef uint64_t pack_splits(
    const node_struct * nodes, uint32_t node_idx, tree_struct * tree
) noexcept nogil:
    """Pack what is below a node; return its leaves, or 0 if there are too many."""
    cdef:
        const node_struct * node = &nodes[node_idx]
        uint64_t left, right
        split_struct * split
    if node.is_leaf:
        if tree.n_leaves == MAX_LEAVES:
            return 0
        left = <uint64_t> 1 << tree.n_leaves
        tree.n_leaves += 1
        tree.values[place(left)] = node.value
        return left
    if tree.n_splits == MAX_LEAVES - 1:
        return 0
    split = &tree.splits[tree.n_splits]
    tree.n_splits += 1
    split.threshold = node.num_threshold
    split.feature = <uint32_t> node.feature_idx
    split.bitset_idx = node.bitset_idx
    split.missing_go_to_left = node.missing_go_to_left
    split.is_categorical = node.is_categorical
    left = pack_splits(nodes, node.left, tree)
    right = pack_splits(nodes, node.right, tree) if left else 0
    split.leaves_if_right = ~left
    return left | right if right else 0


cdef Py_ssize_t pack_nodes(
    const node_struct * nodes, Py_ssize_t n_nodes, tree_struct * tree
) noexcept nogil:
    """Pack a tree level by level; return the number of nodes, or 0 if it is no tree."""
    cdef:
        const node_struct * node
        packed_node * packed = tree.nodes
        Py_ssize_t n_packed = 1
        Py_ssize_t i = 0
    packed[0].left = 0           # of a node to come, its number among `nodes`
    while i < n_packed:
        node = &nodes[packed[i].left]
        tree.values[i] = node.value
        if node.is_leaf:
            # So a row that has come here always goes "left", and stays.
            packed[i].threshold = INFINITY
            packed[i].feature = MISSING_LEFT
            packed[i].left = <uint32_t> i
        elif n_packed + 2 > n_nodes:
            return 0
        else:
            packed[n_packed].left = node.left
            packed[n_packed + 1].left = node.right
            packed[i].threshold = node.num_threshold
            packed[i].feature = <uint32_t> node.feature_idx
            packed[i].left = <uint32_t> n_packed
            if node.missing_go_to_left:
                packed[i].feature |= MISSING_LEFT
            if node.is_categorical:
                packed[i].feature |= CATEGORICAL
                packed[i].threshold = node.bitset_idx
                tree.has_categories = True
            n_packed += 2
        i += 1
    return n_packed


cdef bint fill_tile(
    const matrix * X,
    Py_ssize_t first,        # of the rows
    int n_rows,
    const int * columns,
    int n_columns,
    double * tile,           # OUT, a column after the other
) noexcept nogil:
    """Convert the columns that are read, of some rows; return if a value is missing."""
    cdef const char * row = X.values + first * X.row_stride
    if X.code == b"d":
        return fill_from(<const double *> row, X, n_rows, columns, n_columns, tile)
    if X.code == b"f":
        return fill_from(<const float *> row, X, n_rows, columns, n_columns, tile)
    if X.code == b"b":
        return fill_from(<const int8_t *> row, X, n_rows, columns, n_columns, tile)
    if X.code == b"B" or X.code == b"?":
        return fill_from(<const uint8_t *> row, X, n_rows, columns, n_columns, tile)
    return fill_from(<const int16_t *> row, X, n_rows, columns, n_columns, tile)


cdef inline bint fill_from(
    const number * values,
    const matrix * X,
    int n_rows,
    const int * columns,
    int n_columns,
    double * tile,           # OUT
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
        for i in range(n_columns):
            column = <const char *> values + columns[i] * X.column_stride
            out = tile + <Py_ssize_t> columns[i] * TILE_ROWS
            for row in range(first, stop):
                out[row] = (<const number *> (column + row * X.row_stride))[0]
                has_missing |= out[row] != out[row]
    return has_missing
