"""Pack trees for one call: in the two formats of `trees`, or as the paths of `shapley`.

Each call packs the trees anew, in a small part of its time. Therefore changes to the
trees always take effect, and each call checks all indices that the kernels rely on.
"""

from libc.math cimport INFINITY, isnan
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

import numpy as np

from .._arrays cimport node_struct

cdef object ndarray = np.ndarray, memmap = np.memmap  # read for each tree

UNSOUND = "a split names a node, column or category that it does not have"


def damaged_tree_error(how):
    """Return the ValueError for a tree that no fit can make; `how` describes it."""
    return ValueError(
        f"A tree of the model is damaged: {how}; fit the model again, or read it again "
        "from where it was saved."
    )


cdef class PackedTrees:
    """The trees of a call: trees of up to 64 leaves as splits, larger trees as nodes.

    `predictors` has a list of trees for each iteration, one tree for each output.
    `X_shape` and `out_shape` are the shapes of X and of the raw predictions.
    `known_cat_bitsets` and `f_idx_map` come from scikit-learn's bin mapper.
    `categories` is the name of a tree's attribute for the categories that go left.
    """

    def __cinit__(
        self, predictors, tuple X_shape, tuple out_shape, known_cat_bitsets, f_idx_map,
        str categories="raw_left_cat_bitsets",
    ):
        n_rows, n_outputs = out_shape
        if X_shape != (n_rows, len(f_idx_map)):
            raise ValueError(
                f"X is of shape {X_shape}, in place of {n_rows} rows and the "
                f"{len(f_idx_map)} columns that the model's trees were grown on; pass "
                "these, or fit the model again."
            )
        self.known_categories = known_cat_bitsets
        self.f_idx_map = f_idx_map
        self.n_outputs = n_outputs
        self.node_arrays = []
        self.left_categories = []
        has_categories = self.known_categories.shape[0] > 0
        # A copy, since a fit in another thread may add trees.
        for trees in list(predictors):
            if len(trees) != self.n_outputs:
                raise ValueError(
                    f"An iteration of the model has {len(trees)} trees in place of "
                    f"{n_outputs}, as while it is fitted, or where its trees were "
                    "changed; fit the model again."
                )
            for tree in trees:
                nodes = tree.nodes
                self.size += len(nodes)
                self.node_arrays.append(nodes)
                if has_categories:
                    self.left_categories.append(getattr(tree, categories))

    def __dealloc__(self):
        free(self.trees)
        free(self.splits)
        free(self.values)
        free(self.nodes)
        free(self.node_values)
        free(self.categories)
        free(self.columns)
        free(self.is_category)
        free(self.paths)
        free(self.edges)

    cdef const node_struct[::1] open_tree(
        self, Py_ssize_t i, tree_struct * tree, tree_limits * limits
    ):
        """Return the nodes of tree `i`, without a check of the indices in them. Set
        `limits`, the bounds of these indices, and the output and left categories of
        `tree`. Raise ValueError if the nodes are not an array of nodes.
        """
        cdef:
            const node_struct[::1] nodes
            const uint32_t[:, ::1] bitsets
        array = self.node_arrays[i]
        # Kernels would read the hidden values of a masked array.
        if type(array) is not ndarray and type(array) is not memmap:
            raise damaged_tree_error(f"its nodes are of type {type(array).__name__}")
        try:
            nodes = array
        except ValueError as error:
            raise damaged_tree_error(f"its nodes are no array of nodes ({error})")
        if not 0 < nodes.shape[0] < 2**32:
            raise damaged_tree_error(f"it has {nodes.shape[0]} nodes")
        limits.n_nodes = <uint32_t> nodes.shape[0]
        limits.n_features = <uint32_t> self.f_idx_map.shape[0]
        limits.n_known = <uint32_t> self.known_categories.shape[0]
        limits.f_idx_map = &self.f_idx_map[0] if limits.n_features else NULL
        limits.known = &self.known_categories[0, 0] if limits.n_known else NULL
        limits.is_category = self.is_category
        limits.n_bitsets = 0
        if limits.n_known:
            bitsets = self.left_categories[i]
            if bitsets.shape[1] != 8 or self.known_categories.shape[1] != 8:
                raise damaged_tree_error("its categories are not of 8 words")
            if bitsets.shape[0]:
                limits.n_bitsets = <uint32_t> bitsets.shape[0]
                tree.left_categories = &bitsets[0, 0]
        tree.output = i % self.n_outputs
        return nodes

    cdef int pack(self) except -1:
        """Pack all trees; raise ValueError if an index in a tree is out of bounds."""
        cdef:
            const node_struct[::1] nodes
            tree_struct * tree
            tree_limits limits
            Py_ssize_t i, n_packed
            Py_ssize_t n_categorical = 0  # splits
            # Unused pages take no memory.
            Py_ssize_t n_trees = len(self.node_arrays) + 1
            Py_ssize_t n_nodes = self.size + 1
        self.trees = <tree_struct *> calloc(n_trees, sizeof(tree_struct))
        self.splits = <split_struct *> malloc(
            n_trees * MAX_LEAVES * sizeof(split_struct)
        )
        self.values = <double *> malloc(n_trees * MAX_LEAVES * sizeof(double))
        self.nodes = <packed_node *> malloc(n_nodes * sizeof(packed_node))
        self.node_values = <double *> malloc(n_nodes * sizeof(double))
        self.columns = <int *> malloc((self.f_idx_map.shape[0] + 1) * sizeof(int))
        self.is_category = <char *> calloc(self.f_idx_map.shape[0] + 1, sizeof(char))
        self.categories = <uint32_t *> malloc(
            (self.size if self.left_categories else 1)
            * CATEGORY_WORDS * sizeof(uint32_t)
        )
        if not (
            self.trees and self.splits and self.values and self.nodes
            and self.node_values and self.columns and self.is_category
            and self.categories
        ):
            raise MemoryError
        for i in range(n_trees - 1):
            tree = &self.trees[i]
            nodes = self.open_tree(i, tree, &limits)
            self.n_trees += 1
            tree.goes_left = self.categories + n_categorical * CATEGORY_WORDS
            tree.splits = self.splits + self.n_splits
            tree.values = self.values + self.n_small * MAX_LEAVES
            if limits.n_nodes < 2 * MAX_LEAVES and pack_splits(
                &nodes[0], 0, &limits, tree
            ):
                self.n_splits += tree.n_splits
                self.n_small += 1
                n_categorical += tree.n_categorical
                continue
            tree.nodes = self.nodes + self.n_nodes
            tree.values = self.node_values + self.n_nodes
            n_packed = pack_nodes(&nodes[0], &limits, tree)
            if not n_packed:
                raise damaged_tree_error(UNSOUND)
            self.n_nodes += n_packed
            n_categorical += tree.n_categorical
        self.list_columns(bytearray(self.f_idx_map.shape[0] + 1))
        return 0

    cdef void list_columns(self, char * is_read) noexcept:
        """List columns of X to read: columns of splits, or all if any tree is large."""
        cdef:
            Py_ssize_t i
            int column
        for i in range(self.n_splits):
            is_read[self.splits[i].feature] = True
        for column in range(<int> self.f_idx_map.shape[0]):
            if self.n_small < self.n_trees or is_read[column]:
                self.columns[self.n_columns] = column
                self.n_columns += 1

    cdef int pack_paths(self) except -1:
        """Set the edges of all trees, which lead from a split to one of its children;
        raise ValueError if an index is out of bounds.
        """
        cdef:
            Py_ssize_t i
            edge_struct * edges
        self.n_trees = len(self.node_arrays)
        self.base, self.points = np.zeros(self.n_outputs), {}
        self.paths = <paths_struct *> calloc(self.n_trees + 1, sizeof(paths_struct))
        self.edges = edges = <edge_struct *> calloc(self.size + 1, sizeof(edge_struct))
        if not (self.paths and self.edges):
            raise MemoryError
        for i in range(self.n_trees):
            self.paths[i].edges = edges
            self.list_edges(i, &self.paths[i])
            edges += self.paths[i].n_edges
            self.n_path_features = max(self.n_path_features, self.paths[i].n_features)
        return 0

    cdef int list_edges(self, Py_ssize_t i, paths_struct * paths) except -1:
        """Set the edges of tree `i`; raise ValueError if an index is out of bounds."""
        cdef:
            tree_limits limits
            const node_struct[::1] nodes = self.open_tree(i, &paths.tree, &limits)
            edge_struct * edge = paths.edges
            const edge_struct * above
            const edge_struct * before
            const node_struct * split
            bint is_left
        edge.child, edge.cover, edge.reach = &nodes[0], 1.0, 1.0
        paths.n_edges = 1
        while True:
            above, split = edge, edge.child
            if split.is_leaf:    # to the right of the last split that is half done
                self.base[paths.tree.output] += split.value * edge.reach
                while above.level and not above.is_left:
                    above = above.above
                if not above.level:
                    break
                above, split = above.above, above.split
            if paths.n_edges == limits.n_nodes or not is_valid_split(
                split, split - &nodes[0], &limits
            ):
                raise damaged_tree_error(UNSOUND)
            is_left = not edge.child.is_leaf
            edge = &paths.edges[paths.n_edges]
            paths.n_edges += 1
            edge.above, edge.split, edge.is_left = above, split, is_left
            edge.child = &nodes[split.left if is_left else split.right]
            before = above
            while before.level and before.split.feature_idx != split.feature_idx:
                before = before.above
            edge.level, edge.previous = above.level + 1, before.level
            edge.place = before.place if before.level else above.n_features
            edge.n_features = max(above.n_features, edge.place + 1)
            edge.cover = <double> edge.child.count / split.count if split.count else 0.0
            edge.reach = above.reach * edge.cover
            edge.cover_before = before.cover
            edge.cover *= before.cover
            paths.depth = max(paths.depth, edge.level)
            paths.n_features = max(paths.n_features, edge.n_features)
        paths.n_points = max(1, (paths.n_features + 1) // 2)
        if paths.n_points not in self.points:
            at, weights = np.polynomial.legendre.leggauss(paths.n_points)
            self.points[paths.n_points] = np.concatenate([(at + 1) / 2, weights / 2])
        cdef const double[::1] points = self.points[paths.n_points]
        paths.points = &points[0]
        return 0


def check_trees(
    predictors, X_shape, out_shape, known_cat_bitsets, f_idx_map, categories
):
    """Raise ValueError if an index in any tree's nodes is out of bounds."""
    cdef:
        PackedTrees trees = PackedTrees(
            predictors, X_shape, out_shape, known_cat_bitsets, f_idx_map, categories
        )
        const node_struct[::1] nodes
        tree_struct tree
        tree_limits limits
        Py_ssize_t i
        uint32_t j
    for i in range(len(trees.node_arrays)):
        nodes = trees.open_tree(i, &tree, &limits)
        for j in range(limits.n_nodes):
            if not nodes[j].is_leaf and not is_valid_split(&nodes[j], j, &limits):
                raise damaged_tree_error(UNSOUND)


cdef inline uint32_t pack_categories(
    const node_struct * node, const tree_limits * limits, tree_struct * tree
) noexcept nogil:
    """Add the set of categories that go left at a split, and of unknown categories if
    missing values go left; return the index of the set. Splits cannot share sets by
    `bitset_idx`: that of a split by a column's only category belongs to another split.
    """
    cdef:
        uint32_t * goes_left = tree.goes_left + tree.n_categorical * CATEGORY_WORDS
        const uint32_t * left = tree.left_categories + node.bitset_idx * 8
        const uint32_t * known = limits.known + 8 * limits.f_idx_map[node.feature_idx]
        int i
    limits.is_category[node.feature_idx] = True
    for i in range(8):
        goes_left[i] = left[i] | (~known[i] if node.missing_go_to_left else 0)
    goes_left[8] = node.missing_go_to_left != 0
    tree.n_categorical += 1
    return tree.n_categorical - 1


cdef uint64_t pack_splits(
    const node_struct * nodes, uint32_t node_idx, const tree_limits * limits,
    tree_struct * tree,
) noexcept nogil:
    """Pack a node's subtree as splits; return the leaves below the node as bits of a
    word. Return 0 if there are too many leaves, if a threshold is NaN (as between -inf
    and inf), or if a node is damaged.
    """
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
    if tree.n_splits == MAX_LEAVES - 1 or isnan(node.num_threshold):
        return 0
    if not is_valid_split(node, node_idx, limits):
        return 0
    split = &tree.splits[tree.n_splits]
    tree.n_splits += 1
    split.threshold = node.num_threshold
    split.feature = <uint32_t> node.feature_idx
    split.missing_go_to_left = node.missing_go_to_left
    split.is_categorical = node.is_categorical
    if node.is_categorical:
        split.bitset_idx = pack_categories(node, limits, tree)
    left = pack_splits(nodes, node.left, limits, tree)
    right = pack_splits(nodes, node.right, limits, tree) if left else 0
    split.leaves_if_right = ~left
    return left | right if right else 0


cdef Py_ssize_t pack_nodes(
    const node_struct * nodes, const tree_limits * limits, tree_struct * tree
) noexcept nogil:
    """Pack a tree's nodes by levels; return their number, or 0 if a node is damaged."""
    cdef:
        const node_struct * node
        packed_node * packed = tree.nodes
        Py_ssize_t n_packed = 1
        Py_ssize_t i = 0
    tree.n_categorical = 0       # of an attempt as a small tree
    packed[0].left = 0           # index in `nodes`, until the node is packed
    while i < n_packed:
        node = &nodes[packed[i].left]
        tree.values[i] = node.value
        if node.is_leaf:
            # So that a row in a leaf always goes "left", and stays.
            packed[i].threshold = INFINITY
            packed[i].feature = MISSING_LEFT
            packed[i].left = <uint32_t> i
        elif n_packed + 2 > limits.n_nodes or not is_valid_split(
            node, packed[i].left, limits
        ):
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
                packed[i].threshold = pack_categories(node, limits, tree)
                tree.has_categories = True
            n_packed += 2
        i += 1
    return n_packed
