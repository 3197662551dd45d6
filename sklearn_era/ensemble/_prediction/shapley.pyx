"""Shapley values of trees' predictions: exact, a chunk of rows after the other.

A leaf adds its value v where a row passes all splits on its way. Splits by one feature
are merged, so that the way has m features: o_i is 1 where the row passes those of
feature i, else 0. In place of a feature that is left out stands z_i:

- the share of the training rows that pass, of those that come there ("path-dependent",
  Lundberg et al., Nature Machine Intelligence 2, 2020); or
- 1 or 0, as a background row passes or does not ("interventional"), and the values are
  averaged over background rows.

With t the chance of a feature to be present, the leaf's Shapley value of feature i is
an integral (Owen, Management Science 18, 1972):

    v (o_i - z_i) int_0^1 prod_{j != i} ((1 - t) z_j + t o_j) dt

- Path-dependent: a polynomial of degree m - 1 in t, which Gauss and Legendre's
  quadrature integrates exactly by m / 2 points. Products grow on the way down, and sums
  over leaves on the way back, for a tile of rows side by side. Where a feature comes
  again, its factor is exchanged, and its share is corrected.
- Interventional: with a features that only the row passes and b that only the
  background row passes, and none that neither does, the integral is
  (a - 1)! b! / (a + b)!, or with a and b exchanged. A row's values depend on the *set*
  of features that it fails alone, so they are worked out once for each set and leaf.

The module is compiled once for each instruction set (`instruction_sets`).
"""

from cython.parallel import prange
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

import numpy as np
from scipy.special import binom

from .._arrays cimport node_struct

from .packed_trees import UNSOUND, damaged

from .packed_trees cimport (
    PackedTrees, category_goes_left, is_sound, tree_limits, tree_struct,
)

cdef enum:
    TILE_ROWS = 64      # side by side, path-dependent
    CHUNK_ROWS = 2048   # that pass all trees before the next ones
    TABLE = 5           # numbers of an edge and point
    MEMO_FEATURES = 12  # of which all sets are remembered
    MOST_FEATURES = 64  # bits of a set


cdef struct edge_struct:
    # The way from a node to one of its children.
    double cover          # z of the feature, by this edge and those above
    double cover_before   # z by those above; 1 if there are none
    double value          # of the leaf
    double threshold
    uint32_t feature
    uint32_t bitset_idx
    int level             # from 1 on
    int previous          # level of the last edge above by the feature, or 0
    int place             # of the feature among those of the path
    int n_features        # of the path
    bint is_left
    bint is_leaf
    bint missing_go_to_left
    bint is_categorical


cdef struct paths_struct:
    # The edges of a tree, each before those below it.
    tree_struct tree
    edge_struct * edges
    Py_ssize_t n_edges
    int depth             # most edges of a path
    int n_features        # most features of a path
    int n_points
    const double * points  # of the quadrature; then their weights


cdef struct way_struct:
    # A child to visit.
    uint32_t node
    uint32_t parent
    int level


cdef class Work:
    """The edges of all trees, and the arrays of a call."""
    cdef:
        PackedTrees trees
        const double[:, ::1] X, background
        const Py_ssize_t[::1] columns
        double[:, :, ::1] values
        double[:, ::1] factors  # of features that the row and the background fail
        double[::1] base        # of each output: the expectation by covers
        dict points             # by their number, of which `paths` point to some
        Py_ssize_t n_trees
        int n_features          # most features of a path
        paths_struct * paths
        edge_struct * edges

    def __cinit__(self, PackedTrees trees, X, background, columns, values):
        cdef Py_ssize_t i, n_edges = 0
        self.trees, self.points = trees, {}
        self.X, self.background, self.columns, self.values = (
            X, background, columns, values
        )
        self.n_trees = len(trees.node_arrays)
        self.base = np.zeros(trees.n_outputs)
        self.paths = <paths_struct *> calloc(self.n_trees + 1, sizeof(paths_struct))
        self.edges = <edge_struct *> calloc(trees.size + 1, sizeof(edge_struct))
        if not (self.paths and self.edges):
            raise MemoryError
        for i in range(self.n_trees):
            self.paths[i].edges = self.edges + n_edges
            self.pack(i, &self.paths[i])
            n_edges += self.paths[i].n_edges
            self.n_features = max(self.n_features, self.paths[i].n_features)
        # (a - 1)! b! / (a + b)!, of a at least 1; the first row is not in use.
        b = np.arange(self.n_features + 1)
        a = b[1:, np.newaxis]
        self.factors = np.vstack([np.zeros((1, b.size)), 1.0 / (a * binom(a + b, a))])

    def __dealloc__(self):
        free(self.paths)
        free(self.edges)

    cdef int pack(self, Py_ssize_t i, paths_struct * paths) except -1:
        """List the edges of a tree; ValueError if it reaches beyond its arrays."""
        cdef:
            tree_limits limits
            const node_struct[::1] nodes = self.trees.open_tree(
                i, &paths.tree, &limits
            )
            way_struct * stack = <way_struct *> malloc(
                (limits.n_nodes + 1) * sizeof(way_struct)
            )
            edge_struct ** open = <edge_struct **> malloc(
                (limits.n_nodes + 1) * sizeof(edge_struct *)
            )
            double * reach = <double *> malloc((limits.n_nodes + 1) * sizeof(double))
            double base = -1.0
        try:
            if not (stack and open and reach):
                raise MemoryError
            if not list_edges(&nodes[0], &limits, paths, stack, open, reach, &base):
                raise damaged(UNSOUND)
        finally:
            free(stack)
            free(open)
            free(reach)
        self.base[paths.tree.output] += base
        paths.n_points = max(1, (paths.n_features + 1) // 2)
        if paths.n_points not in self.points:
            at, weights = np.polynomial.legendre.leggauss(paths.n_points)
            self.points[paths.n_points] = np.concatenate([(at + 1) / 2, weights / 2])
        cdef const double[::1] points = self.points[paths.n_points]
        paths.points = &points[0]
        return 0


cdef bint list_edges(
    const node_struct * nodes,
    const tree_limits * limits,
    paths_struct * paths,        # OUT, as the next four
    way_struct * stack,
    edge_struct ** open,         # at each level the edge of the path
    double * reach,              # share of the training rows that come there
    double * base,
) noexcept nogil:
    """List a tree's edges as a walk to the left passes them; False if damaged."""
    cdef:
        const node_struct * parent
        const node_struct * child
        edge_struct * edge
        way_struct way
        uint32_t node_idx = 0
        int n_stacked = 0
        int level = 0
        int above
    base[0] = 0.0
    reach[0] = 1.0
    while True:
        if nodes[node_idx].is_leaf:
            base[0] += nodes[node_idx].value * reach[level]
        elif n_stacked + 2 > <int> limits.n_nodes or not is_sound(
            &nodes[node_idx], node_idx, limits
        ):
            return False
        else:
            stack[n_stacked] = way_struct(nodes[node_idx].right, node_idx, level + 1)
            stack[n_stacked + 1] = way_struct(nodes[node_idx].left, node_idx, level + 1)
            n_stacked += 2
        if not n_stacked:
            return True
        n_stacked -= 1
        way = stack[n_stacked]
        node_idx, level = way.node, way.level
        if paths.n_edges + 1 >= limits.n_nodes:
            return False
        edge = &paths.edges[paths.n_edges]
        paths.n_edges += 1
        parent, child = &nodes[way.parent], &nodes[node_idx]
        edge.level, edge.value, edge.is_leaf = level, child.value, child.is_leaf
        edge.is_left = way.node == parent.left
        edge.threshold = parent.num_threshold
        edge.feature = <uint32_t> parent.feature_idx
        edge.bitset_idx, edge.is_categorical = parent.bitset_idx, parent.is_categorical
        edge.missing_go_to_left = parent.missing_go_to_left
        open[level] = edge
        edge.n_features = open[level - 1].n_features if level > 1 else 0
        edge.previous, edge.cover_before = 0, 1.0
        for above in range(level - 1, 0, -1):
            if open[above].feature == edge.feature:
                edge.previous, edge.place = above, open[above].place
                edge.cover_before = open[above].cover
                break
        if not edge.previous:
            edge.place = edge.n_features
            edge.n_features += 1
        edge.cover = <double> child.count / parent.count if parent.count else 0.0
        reach[level] = reach[level - 1] * edge.cover
        edge.cover *= edge.cover_before
        paths.depth = max(paths.depth, level)
        paths.n_features = max(paths.n_features, edge.n_features)


def add_shapley_values(
    const double[:, ::1] X, const double[:, ::1] background, predictors,
    known_cat_bitsets, f_idx_map, const Py_ssize_t[::1] columns,
    double[:, :, ::1] values, int n_threads,
):
    """Add the Shapley values of trees, and return their base of each output, by paths.

    X and background are transposed, of shapes (n_features, n_rows): without background
    rows, values are path-dependent. `columns` are those of `values` for each feature;
    `values` of shape (n_outputs, n_features, n_rows) is added to. All else is as in
    `trees.add_trees`. ValueError if a tree reaches beyond its arrays, or has more than
    64 features on a path, for values by a background.
    """
    cdef:
        Work work
        Py_ssize_t n_rows = X.shape[1]
        Py_ssize_t n_parts = max(1, min(n_threads, n_rows // TILE_ROWS))
        Py_ssize_t part, i
        Py_ssize_t size = 0
        double * memory
    trees = PackedTrees(
        predictors, (n_rows, X.shape[0]), (n_rows, values.shape[0]),
        known_cat_bitsets, f_idx_map,
    )
    work = Work(trees, X, background, columns, values)
    if background.shape[1] and work.n_features > MOST_FEATURES:
        raise ValueError(
            f"A path of the model's trees has {work.n_features} features, and values "
            f"by a background take at most {MOST_FEATURES}; pass background=None."
        )
    for i in range(work.n_trees):
        if background.shape[1]:
            size = max(size, intervention_size(&work.paths[i], background.shape[1]))
        else:
            size = max(size, tile_size(&work.paths[i]))
    memory = <double *> calloc(n_parts * size + 1, sizeof(double))
    if not memory:
        raise MemoryError
    for part in prange(n_parts, schedule="static", nogil=True, num_threads=n_parts):
        add_part(
            work, n_rows * part // n_parts, n_rows * (part + 1) // n_parts,
            memory + part * size,
        )
    free(memory)
    return np.asarray(work.base)


cdef void add_part(
    Work work, Py_ssize_t start, Py_ssize_t stop, double * memory
) noexcept nogil:
    """Add the values of a thread's rows, all trees for one chunk after the other."""
    cdef:
        Py_ssize_t end, row, i
        paths_struct * tree
    while start < stop:
        end = min(start + CHUNK_ROWS, stop)
        for i in range(work.n_trees):
            tree = &work.paths[i]
            if work.background.shape[1]:
                intervene(work, tree, start, end, memory)
                continue
            fill_table(tree, memory)
            row = start
            while row < end:
                add_tile(work, tree, row, <int> min(TILE_ROWS, end - row), memory)
                row += TILE_ROWS
        start = end


cdef inline void test_rows(
    Work work, const paths_struct * paths, const edge_struct * edge, const double * x,
    Py_ssize_t n_rows, double * passes,
) noexcept nogil:
    """Set `passes` to 1 for rows that take an edge, else 0."""
    cdef:
        Py_ssize_t row
        double threshold = edge.threshold
        double if_left = 1.0 if edge.is_left else 0.0
        double if_right = 1.0 - if_left
        double if_missing = if_left if edge.missing_go_to_left else if_right
    if edge.is_categorical:
        for row in range(n_rows):
            passes[row] = if_left if category_goes_left(
                work.trees, &paths.tree, edge.feature, edge.bitset_idx,
                edge.missing_go_to_left, x[row],
            ) else if_right
        return
    for row in range(n_rows):
        passes[row] = if_left if x[row] <= threshold else if_right
        passes[row] = if_missing if x[row] != x[row] else passes[row]


cdef inline Py_ssize_t tile_size(const paths_struct * paths) noexcept nogil:
    """Doubles that `add_tile` works with: of edges, and of each level of a path."""
    return (
        TABLE * paths.n_edges * paths.n_points
        + (paths.depth + 1) * (2 * paths.n_points + 1) * TILE_ROWS
        + paths.depth + 1
    )


cdef void fill_table(const paths_struct * paths, double * table) noexcept nogil:
    """Work out what `add_tile` multiplies with, for each edge and point.

    With o and z of the feature, o' and z' before the edge and f = (1 - t) z + t o,
    these are the values of f / f' and of w ((o - z) / f - (o' - z') / f').
    """
    cdef:
        const edge_struct * edge
        Py_ssize_t i
        double t, s, w, z, z_before, f_before
        int q
    for i in range(paths.n_edges):
        edge = &paths.edges[i]
        z, z_before = edge.cover, edge.cover_before
        for q in range(paths.n_points):
            t, w = paths.points[q], paths.points[paths.n_points + q]
            s = 1.0 - t
            f_before = s * z_before + t
            table[0] = z / z_before if z_before > 0.0 else 0.0  # o' = 0
            table[1] = s * z / f_before                         # o' = 1, o = 0
            table[2] = t / f_before                             # more if o = 1
            table[3] = -w / s - w * (1.0 - z_before) / f_before  # o' = 1; else 0
            table[4] = w * (1.0 - z) / (s * z + t) + w / s       # more if o = 1
            table += TABLE


cdef void add_tile(
    Work work, const paths_struct * paths, Py_ssize_t first, int n_rows, double * memory
) noexcept nogil:
    """Add the path-dependent values of a tree, for a tile of rows."""
    cdef:
        int n_points = paths.n_points
        int step = n_points * TILE_ROWS
        int level = 0            # how many edges are open
        const edge_struct * edge
        const double * table = memory
        double * passes = memory + TABLE * paths.n_edges * n_points
        double * products = passes + (paths.depth + 1) * TILE_ROWS
        double * sums = products + (paths.depth + 1) * step
        Py_ssize_t * open = <Py_ssize_t *> (sums + (paths.depth + 1) * step)
        Py_ssize_t i, row
    for row in range(TILE_ROWS):
        passes[row] = 1.0
    for row in range(step):
        products[row] = 1.0
    for i in range(paths.n_edges + 1):
        while level and (i == paths.n_edges or level >= paths.edges[i].level):
            edge = &paths.edges[open[level]]
            close_edge(
                edge, n_points, table + open[level] * n_points * TABLE, passes, sums,
                &work.values[paths.tree.output, work.columns[edge.feature], first],
                n_rows,
            )
            level -= 1
        if i < paths.n_edges:
            edge = &paths.edges[i]
            level = edge.level
            open[level] = i
            test_rows(
                work, paths, edge, &work.X[edge.feature, first], n_rows,
                passes + level * TILE_ROWS,
            )
            open_edge(
                edge, n_points, table + i * n_points * TABLE, passes,
                products + (level - 1) * step, products + level * step,
                sums + level * step,
            )


cdef inline void open_edge(
    const edge_struct * edge, int n_points, const double * table, double * passes,
    const double * above, double * below, double * sums,
) noexcept nogil:
    """Multiply products above by the factors of an edge, by point and row."""
    cdef:
        double * o = passes + edge.level * TILE_ROWS
        const double * o_before = passes + edge.previous * TILE_ROWS
        double value = edge.value
        double if_failed, low, more
        int row
    if edge.previous:
        for row in range(TILE_ROWS):
            o[row] *= o_before[row]
    for _ in range(n_points):
        if_failed, low, more = table[0], table[1] - table[0], table[2]
        if edge.previous:
            for row in range(TILE_ROWS):
                below[row] = above[row] * (
                    if_failed + low * o_before[row] + more * o[row]
                )
        else:
            low = table[1]
            for row in range(TILE_ROWS):
                below[row] = above[row] * (low + more * o[row])
        if edge.is_leaf:
            for row in range(TILE_ROWS):
                sums[row] = value * below[row]
        else:
            memset(sums, 0, TILE_ROWS * sizeof(double))
        table += TABLE
        above += TILE_ROWS
        below += TILE_ROWS
        sums += TILE_ROWS


cdef inline void close_edge(
    const edge_struct * edge, int n_points, const double * table, const double * passes,
    double * sums, double * values, int n_rows,
) noexcept nogil:
    """Add what all leaves below an edge are worth to its feature."""
    cdef:
        const double * o = passes + edge.level * TILE_ROWS
        const double * o_before = passes + edge.previous * TILE_ROWS
        const double * below = sums + edge.level * n_points * TILE_ROWS
        double * above = sums + (edge.level - 1) * n_points * TILE_ROWS
        double[TILE_ROWS] total
        double low, more
        int row
    memset(total, 0, sizeof(total))
    for _ in range(n_points):
        low, more = table[3], table[4]
        if edge.previous:
            for row in range(TILE_ROWS):
                total[row] += below[row] * (low * o_before[row] + more * o[row])
                above[row] += below[row]
        else:
            for row in range(TILE_ROWS):
                total[row] += below[row] * (low + more * o[row])
                above[row] += below[row]
        table += TABLE
        below += TILE_ROWS
        above += TILE_ROWS
    for row in range(n_rows):
        values[row] += total[row]


cdef struct background_struct:
    # Of the background rows at a leaf, the sets of features that they fail.
    uint64_t * fails
    int * sizes                  # features in each
    double * weights             # share of the rows, times the value of the leaf
    Py_ssize_t n_sets


cdef inline Py_ssize_t intervention_size(
    const paths_struct * paths, Py_ssize_t n_background
) noexcept nogil:
    """Doubles that `intervene` works with."""
    cdef Py_ssize_t n_sets = <Py_ssize_t> 1 << min(paths.n_features, MEMO_FEATURES)
    return (
        (paths.depth + 2) * (CHUNK_ROWS + n_background)   # passes, and sets by level
        + 3 * n_background                                # sets of the background
        + n_sets * (max(paths.n_features, 1) + 1)         # what is remembered
        + paths.n_features                                # columns of the path
    )


cdef void intervene(
    Work work, const paths_struct * paths, Py_ssize_t start, Py_ssize_t stop,
    double * memory,
) noexcept nogil:
    """Add the values of a tree by a background, for a chunk of rows."""
    cdef:
        Py_ssize_t n_rows = stop - start
        Py_ssize_t n_others = work.background.shape[1]
        Py_ssize_t n_all = n_rows + n_others
        double * passes = memory
        uint64_t * fails = <uint64_t *> (memory + n_all)
        uint64_t * parents
        uint64_t * children
        background_struct rows
        double * memo
        Py_ssize_t * path
        const edge_struct * edge
        uint64_t bit
        Py_ssize_t i, row
    rows.fails = fails + (paths.depth + 1) * n_all
    rows.sizes = <int *> (rows.fails + n_others)
    rows.weights = <double *> (rows.fails + 2 * n_others)
    path = <Py_ssize_t *> (rows.weights + n_others)
    memo = <double *> (path + paths.n_features)
    memset(fails, 0, n_all * sizeof(uint64_t))
    for i in range(paths.n_edges):
        edge = &paths.edges[i]
        test_rows(work, paths, edge, &work.X[edge.feature, start], n_rows, passes)
        test_rows(
            work, paths, edge, &work.background[edge.feature, 0], n_others,
            passes + n_rows,
        )
        path[edge.place] = work.columns[edge.feature]
        bit = <uint64_t> 1 << edge.place
        parents = fails + (edge.level - 1) * n_all
        children = parents + n_all
        for row in range(n_all):
            children[row] = parents[row] | (0 if passes[row] != 0.0 else bit)
        if edge.is_leaf:
            count_sets(edge, children + n_rows, n_others, &rows, memo)
            add_leaf(
                work, edge, children, n_rows, &rows, memo, path,
                &work.values[paths.tree.output, 0, start],
            )


cdef inline int size_of(uint64_t features) noexcept nogil:
    cdef int size = 0
    while features:
        features &= features - 1
        size += 1
    return size


cdef void count_sets(
    const edge_struct * leaf, const uint64_t * fails, Py_ssize_t n_rows,
    background_struct * background, double * memo,
) noexcept nogil:
    """Find the distinct sets that background rows fail, where these are not many."""
    cdef:
        double weight = leaf.value / n_rows
        bint is_small = leaf.n_features <= MEMO_FEATURES
        Py_ssize_t row, i, n_sets = 0
    if is_small:
        memset(memo, 0, (<Py_ssize_t> 1 << leaf.n_features) * sizeof(double))
    for row in range(n_rows):
        i = n_sets
        if is_small and memo[fails[row]] != 0.0:
            i = <Py_ssize_t> memo[fails[row]] - 1
        else:
            background.fails[i] = fails[row]
            background.sizes[i] = size_of(fails[row])
            background.weights[i] = 0.0
            n_sets += 1
            if is_small:
                memo[fails[row]] = n_sets
        background.weights[i] += weight
    background.n_sets = n_sets


cdef void add_leaf(
    Work work,
    const edge_struct * leaf,
    const uint64_t * fails,      # the set of each row
    Py_ssize_t n_rows,
    const background_struct * background,
    double * memo,               # of each set whether it is known, and its values
    const Py_ssize_t * path,     # columns of the features
    double * values,             # IN and OUT: of the chunk's first row and column 0
) noexcept nogil:
    """Add the values of a leaf."""
    cdef:
        bint is_small = leaf.n_features <= MEMO_FEATURES
        Py_ssize_t n_sets = <Py_ssize_t> 1 << min(leaf.n_features, MEMO_FEATURES)
        double * of_set
        uint64_t slot
        Py_ssize_t stride = work.X.shape[1]  # from a column's values to the next
        Py_ssize_t row
        int i
    memset(memo, 0, n_sets * sizeof(double))
    for row in range(n_rows):
        slot = fails[row] if is_small else 0
        of_set = memo + n_sets + slot * leaf.n_features
        if not is_small or memo[slot] == 0.0:
            # 1: all values are 0, as no background row passes what the row fails.
            memo[slot] = 1.0 + value_set(
                work, fails[row], leaf.n_features, background, of_set
            )
        if memo[slot] == 2.0:
            for i in range(leaf.n_features):
                values[path[i] * stride + row] += of_set[i]


cdef bint value_set(
    Work work, uint64_t fails, int n_features, const background_struct * background,
    double * values,
) noexcept nogil:
    """Work out the values of features for a set that is failed; False if all are 0."""
    cdef:
        double total = 0.0       # that each of the failed features takes away
        double share
        uint64_t other
        bint is_any = False
        Py_ssize_t j
        int n_failed = size_of(fails)
        int i
    memset(values, 0, n_features * sizeof(double))
    for j in range(background.n_sets):
        other = background.fails[j]
        if other & fails:
            continue             # a feature that neither passes: nobody gets there
        is_any = True
        total += background.weights[j] * work.factors[n_failed, background.sizes[j]]
        share = background.weights[j] * work.factors[background.sizes[j], n_failed]
        for i in range(n_features):
            values[i] += share * <double> ((other >> i) & 1)
    for i in range(n_features):
        values[i] -= total * <double> ((fails >> i) & 1)
    return is_any
