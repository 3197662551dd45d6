# The trees of a call, packed for `trees` and `shapley`.

from libc.math cimport isnan
from libc.stdint cimport uint32_t, uint64_t, uint8_t

from .._arrays cimport in_bitset, node_struct

cdef enum:
    MAX_LEAVES = 64  # of a small tree: each leaf is a bit of a word
    # A set of categories: a bit for each of 256, and the next for missing values.
    CATEGORY_WORDS = 9
    MISSING_CATEGORY = 256


cdef struct split_struct:
    # A split of a small tree.
    double threshold
    uint64_t leaves_if_right  # all except those on the left side
    uint32_t feature
    uint32_t bitset_idx
    bint missing_go_to_left
    bint is_categorical


cdef struct packed_node:
    # A node of a larger tree.
    double threshold          # or a bitset's index; infinite for a leaf
    uint32_t feature          # below the bits of `node_flag`
    uint32_t left             # left child; the right is next; a leaf's is itself


cdef enum node_flag:
    MISSING_LEFT = 1 << 29
    CATEGORICAL = 1 << 30


cdef struct tree_limits:
    # Bounds for the indices in a tree's nodes: valid indices are smaller.
    uint32_t n_nodes
    uint32_t n_features
    uint32_t n_bitsets        # left categories of the tree, 8 words each
    uint32_t n_known          # known categories, likewise
    const uint32_t * f_idx_map
    const uint32_t * known    # 8 words for each categorical feature
    char * is_category        # of features; set where a tree is packed


cdef inline bint is_valid_split(
    const node_struct * node, uint32_t node_idx, const tree_limits * limits
) noexcept nogil:
    """Return whether a split's indices are valid, and children come after the split."""
    return (
        node_idx < node.left < limits.n_nodes
        and node_idx < node.right < limits.n_nodes
        and 0 <= node.feature_idx < limits.n_features
        and (
            not node.is_categorical
            or (
                node.bitset_idx < limits.n_bitsets
                and limits.f_idx_map[node.feature_idx] < limits.n_known
            )
        )
    )


cdef struct tree_struct:
    Py_ssize_t output                 # column of the raw predictions
    const uint32_t * left_categories  # 8 words for each categorical split
    uint32_t * goes_left              # `CATEGORY_WORDS` for each, as packed
    uint32_t n_categorical            # splits, as packed
    packed_node * nodes               # of a larger tree; else NULL
    split_struct * splits
    int n_splits
    int n_leaves
    double * values                   # of nodes; of leaves, each at its `place`
    bint has_categories               # in its nodes


cdef struct edge_struct:
    # The way from a split to one of its children.
    const edge_struct * above
    const node_struct * split
    const node_struct * child
    double cover          # z of the feature, by this edge and those above
    double cover_before   # z by those above; 1 if there are none
    double reach          # share of the training rows that come to the child
    int level             # 0 of the first edge, to the root; no split leads there
    int previous          # level of the last edge above by the feature, or 0
    int place             # of the feature among those of the path
    int n_features        # of the path
    bint is_left


cdef struct paths_struct:
    # The edges of a tree: each before the edges below it, left edges first.
    tree_struct tree
    edge_struct * edges
    Py_ssize_t n_edges
    int depth             # most edges of a path
    int n_features        # most features of a path
    int n_points
    const double * points  # of the quadrature; then their weights


cdef class PackedTrees:
    cdef:
        const uint32_t[:, ::1] known_categories
        const uint32_t[::1] f_idx_map
        Py_ssize_t n_outputs
        list node_arrays         # of the trees, as of construction
        list left_categories     # likewise, if there are any; trees point to them
        Py_ssize_t size          # of all node arrays
        Py_ssize_t n_trees, n_small, n_splits, n_nodes
        tree_struct * trees
        split_struct * splits    # of small trees, one after another
        double * values          # MAX_LEAVES for each small tree
        packed_node * nodes      # of larger trees
        double * node_values
        uint32_t * categories    # that go left, of all trees
        int * columns            # of X, to be read
        char * is_category       # of columns of X
        int n_columns
        paths_struct * paths
        edge_struct * edges      # of all paths
        double[::1] base         # of each output: the expectation by covers
        dict points              # by their number, of which paths point to some
        int n_path_features      # most features of a path

    cdef const node_struct[::1] open_tree(
        self, Py_ssize_t i, tree_struct * tree, tree_limits * limits
    )
    cdef int pack(self) except -1
    cdef int pack_paths(self) except -1
    cdef int list_edges(self, Py_ssize_t i, paths_struct * paths) except -1
    cdef void list_columns(self, char * is_read) noexcept


cdef inline int place(uint64_t leaves) noexcept nogil:
    """Return a number below 64 that stands for the lowest set bit of `leaves`: by a de
    Bruijn sequence, a different number for each bit.
    """
    return <int> (((leaves & -leaves) * <uint64_t> 0x03F79D71B4CB0A89) >> 58)


cdef inline double category_code(double value) noexcept nogil:
    """Return the number of the bit that stands for a category in `goes_left`."""
    if isnan(value) or value < 0:
        return MISSING_CATEGORY
    return <uint8_t> value


cdef inline uint64_t is_in(const uint32_t * words, uint32_t code) noexcept nogil:
    return (words[code >> 5] >> (code & 31)) & 1


cdef inline bint category_goes_left(
    PackedTrees trees, const tree_struct * tree, Py_ssize_t feature,
    Py_ssize_t bitset_idx, bint missing_go_to_left, double value,
) noexcept nogil:
    """Return whether a category goes left; unknown categories count as missing."""
    if isnan(value) or value < 0:
        return missing_go_to_left
    if in_bitset(&tree.left_categories[bitset_idx * 8], <uint8_t> value):
        return True
    return missing_go_to_left and not in_bitset(
        &trees.known_categories[trees.f_idx_map[feature], 0], <uint8_t> value
    )
