"""Compute exact Shapley values of trees' predictions, one chunk of rows at a time.

A leaf adds its value v for the rows that pass all splits on the path to it. For each
feature i of the path, o_i is 1 if the row passes all splits on i, else 0. A feature
that is left out has z_i in place of o_i: the share of the training rows at the splits
on i that pass them ("path-dependent", Lundberg et al., Nature Machine Intelligence 2,
2020); or o_i of a background row, with the mean over these rows ("interventional"). The
leaf's Shapley value of feature i is (Owen, Management Science 18, 1972)

    v (o_i - z_i) int_0^1 prod_{j != i} ((1 - t) z_j + t o_j) dt

- Path-dependent: a polynomial in t, which Gauss and Legendre's quadrature integrates
  exactly. Products grow on the way down the tree, and sums over leaves on the way up.
- Interventional: let a be the number of features that only the row passes, and b the
  number that only the background row passes. Unless both fail a feature, the integral
  is (a - 1)! b! / (a + b)!, or with a and b exchanged. A row's values depend only on
  the *set* of features that the row fails: they are computed once for a set and leaf.

The module is compiled once for each instruction set (`instruction_sets`).
"""

from cython.parallel import prange
from libc.stdint cimport uint64_t
from libc.string cimport memset

import numpy as np
from scipy.special import binom

from .._arrays cimport node_struct
from .packed_trees cimport (
    PackedTrees, category_goes_left, edge_struct, paths_struct,
)

cdef enum:
    TILE_ROWS = 64      # side by side, path-dependent
    CHUNK_ROWS = 2048   # that pass all trees before the next ones
    TABLE = 5           # numbers of an edge and point
    MEMO_FEATURES = 12  # of which all sets are remembered
    MOST_FEATURES = 64  # bits of a set


cdef class Work:
    """The arrays of one call of `add_shapley_values`, which all its functions share."""
    cdef:
        PackedTrees trees
        const double[:, ::1] X, background
        const Py_ssize_t[::1] columns
        double[:, :, ::1] values
        double[:, ::1] factors  # of features that the row and the background fail

    def __cinit__(self, PackedTrees trees, X, background, columns, values):
        self.trees, self.columns, self.values = trees, columns, values
        self.X, self.background = X, background
        # (a - 1)! b! / (a + b)!, of a at least 1; the first row is not in use.
        b = np.arange(trees.n_path_features + 1)
        a = b[1:, np.newaxis]
        self.factors = np.vstack([np.zeros((1, b.size)), 1.0 / (a * binom(a + b, a))])


def add_shapley_values(
    const double[:, ::1] X, const double[:, ::1] background, predictors,
    known_cat_bitsets, f_idx_map, const Py_ssize_t[::1] columns,
    double[:, :, ::1] values, int n_threads,
):
    """Add Shapley values to `values`; return each output's mean over training rows.

    `X` and `background` are transposed, of shape (n_features, n_rows); if `background`
    has no rows, values are path-dependent. `values` has the shape (n_outputs,
    n_features, n_rows); feature j is ``values[:, columns[j]]``. Other arguments are
    those of `trees.add_trees`. Raise ValueError if an index in a tree is out of
    bounds, or if a path has more than 64 features and there is a background.
    """
    cdef:
        Py_ssize_t n_rows = X.shape[1], n_others = background.shape[1]
        Py_ssize_t n_parts = max(1, min(n_threads, n_rows // TILE_ROWS))
        Py_ssize_t size = 1, i, part
        PackedTrees trees = PackedTrees(
            predictors, (n_rows, X.shape[0]), (n_rows, values.shape[0]),
            known_cat_bitsets, f_idx_map,
        )
        Work work
        double[:, ::1] memory
    trees.pack_paths()
    if n_others and trees.n_path_features > MOST_FEATURES:
        raise ValueError(
            f"A path of the model's trees has {trees.n_path_features} features, and "
            f"values by a background take at most {MOST_FEATURES}; pass "
            "background=None."
        )
    work = Work(trees, X, background, columns, values)
    for i in range(trees.n_trees):
        size = max(size, size_of_work(&trees.paths[i], n_others))
    memory = np.zeros((n_parts, size))
    for part in prange(n_parts, schedule="static", nogil=True, num_threads=n_parts):
        add_part(
            work, n_rows * part // n_parts, n_rows * (part + 1) // n_parts,
            &memory[part, 0],
        )
    return np.asarray(trees.base)


cdef Py_ssize_t size_of_work(const paths_struct * paths, Py_ssize_t n_others) noexcept:
    """Return how many doubles of memory `add_tile` or `intervene` needs for a tree."""
    if n_others == 0:
        return TABLE * paths.n_edges * paths.n_points + TILE_ROWS * (
            (paths.depth + 1) * (2 * paths.n_points + 1)
        )
    return (
        (paths.depth + 2) * (CHUNK_ROWS + n_others)  # passes, and sets by level
        + 3 * n_others                               # sets of the background
        + (<Py_ssize_t> 1 << min(paths.n_features, MEMO_FEATURES))
        * (paths.n_features + 1)                     # what is remembered
        + paths.n_features                           # columns of the path
    )


cdef void add_part(
    Work work, Py_ssize_t start, Py_ssize_t stop, double * memory
) noexcept nogil:
    """Add the values of all trees for a thread's rows, one chunk of rows at a time."""
    cdef:
        Py_ssize_t end, row, i
        const paths_struct * paths
    while start < stop:
        end = min(start + CHUNK_ROWS, stop)
        for i in range(work.trees.n_trees):
            paths = &work.trees.paths[i]
            if work.background.shape[1]:
                intervene(work, paths, start, end, memory)
                continue
            fill_table(paths, memory)
            for row in range(start, end, 64):  # TILE_ROWS
                add_tile(work, paths, row, min(TILE_ROWS, end - row), memory)
        start = end


cdef inline void test_rows(
    Work work, const paths_struct * paths, const edge_struct * edge, const double * x,
    Py_ssize_t n_rows, double * passes,
) noexcept nogil:
    """Set `passes` to 1 for rows that the edge's split sends along the edge, else 0."""
    cdef:
        Py_ssize_t row
        const node_struct * split = edge.split
        double threshold = split.num_threshold
        double if_left = 1.0 if edge.is_left else 0.0
        double if_right = 1.0 - if_left
        double if_missing = if_left if split.missing_go_to_left else if_right
    if split.is_categorical:
        for row in range(n_rows):
            passes[row] = if_left if category_goes_left(
                work.trees, &paths.tree, split.feature_idx, split.bitset_idx,
                split.missing_go_to_left, x[row],
            ) else if_right
        return
    for row in range(n_rows):
        passes[row] = if_left if x[row] <= threshold else if_right
        passes[row] = if_missing if x[row] != x[row] else passes[row]


cdef void fill_table(const paths_struct * paths, double * table) noexcept nogil:
    """Set the five numbers per edge and point t, of weight w, that `add_tile` reads.

    For the edge's feature, o and z include this edge and edges above, o' and z' edges
    above only (1 if none is on the feature). With f = (1 - t) z + t o, and f' the same
    of o' and z', ``table[0] + table[1] o' + table[2] o`` is f / f', and
    ``table[3] o' + table[4] o`` is w ((o - z) / f - (o' - z') / f').
    """
    cdef:
        Py_ssize_t i, q
        double t, s, w, z, z_before, f_before
    for i in range(paths.n_edges):
        z, z_before = paths.edges[i].cover, paths.edges[i].cover_before
        for q in range(paths.n_points):
            t, w = paths.points[q], paths.points[paths.n_points + q]
            s = 1.0 - t
            f_before = s * z_before + t
            table[0] = z / z_before if z_before > 0.0 else 0.0
            table[1] = s * z / f_before - table[0]
            table[2] = t / f_before
            table[3] = -w / s - w * (1.0 - z_before) / f_before
            table[4] = w * (1.0 - z) / (s * z + t) + w / s
            table += TABLE


cdef void add_tile(
    Work work, const paths_struct * paths, Py_ssize_t first, Py_ssize_t n_rows,
    double * memory,
) noexcept nogil:
    """Add the path-dependent values of a tree, for a tile of rows."""
    cdef:
        int width = paths.n_points * TABLE      # of an edge in the table
        # Of each level: the rows that pass, then products and sums by point.
        double * levels = memory + width * paths.n_edges
        const edge_struct * edge = paths.edges  # the last one that is open
        double * values = &work.values[paths.tree.output, 0, first]
        Py_ssize_t i, feature
    for i in range((paths.n_points + 1) * TILE_ROWS):
        levels[i] = 1.0
    for i in range(1, paths.n_edges + 1):
        while edge.level and (i == paths.n_edges or edge.level >= paths.edges[i].level):
            close_edge(
                edge, paths.n_points, memory + (edge - paths.edges) * width, levels,
                values + work.columns[edge.split.feature_idx] * work.X.shape[1], n_rows,
            )
            edge = edge.above
        if i < paths.n_edges:
            edge = &paths.edges[i]
            feature = edge.split.feature_idx
            test_rows(
                work, paths, edge, &work.X[feature, first], n_rows,
                rows_of(edge.level, paths.n_points, levels),
            )
            open_edge(edge, paths.n_points, memory + i * width, levels)


cdef inline double * rows_of(int level, int n_points, double * levels) noexcept nogil:
    """Return the address of a level: mask of passing rows, then products, then sums."""
    return levels + level * (2 * n_points + 1) * TILE_ROWS


cdef inline void open_edge(
    const edge_struct * edge, int n_points, const double * table, double * levels
) noexcept nogil:
    """Set an edge's products by point and row: its factors times the products above."""
    cdef:
        double * o = rows_of(edge.level, n_points, levels)
        const double * o_before = rows_of(edge.previous, n_points, levels)
        const double * above = rows_of(edge.above.level, n_points, levels) + TILE_ROWS
        double * below = o + TILE_ROWS
        double * sums = below + n_points * TILE_ROWS
        double value = edge.child.value if edge.child.is_leaf else 0.0
        double if_failed, low, more
        int row
    for row in range(TILE_ROWS):
        o[row] *= o_before[row]
    for _ in range(n_points):
        if_failed, low, more = table[0], table[1], table[2]
        if edge.previous:
            for row in range(TILE_ROWS):
                below[row] = above[row] * (
                    if_failed + low * o_before[row] + more * o[row]
                )
        else:
            for row in range(TILE_ROWS):
                below[row] = above[row] * (if_failed + low + more * o[row])
        for row in range(TILE_ROWS):
            sums[row] = value * below[row]
        table += TABLE
        above += TILE_ROWS
        below += TILE_ROWS
        sums += TILE_ROWS


cdef inline void close_edge(
    const edge_struct * edge, int n_points, const double * table, double * levels,
    double * values, Py_ssize_t n_rows,
) noexcept nogil:
    """Add the Shapley values due to all leaves below an edge to the edge's feature."""
    cdef:
        int to_sums = (n_points + 1) * TILE_ROWS
        const double * o = rows_of(edge.level, n_points, levels)
        const double * o_before = rows_of(edge.previous, n_points, levels)
        const double * below = o + to_sums
        double * above = rows_of(edge.above.level, n_points, levels) + to_sums
        double[TILE_ROWS] total
        double low, more
        int row
    memset(total, 0, sizeof(total))
    for _ in range(n_points):
        low, more = table[3], table[4]
        if edge.previous:
            for row in range(TILE_ROWS):
                total[row] += below[row] * (low * o_before[row] + more * o[row])
        else:
            for row in range(TILE_ROWS):
                total[row] += below[row] * (low + more * o[row])
        for row in range(TILE_ROWS):
            above[row] += below[row]
        table += TABLE
        below += TILE_ROWS
        above += TILE_ROWS
    for row in range(n_rows):
        values[row] += total[row]


cdef struct set_struct:
    # A set of features that some background rows fail on the way to a leaf.
    uint64_t fails
    double weight                # share of these rows, times the value of the leaf
    Py_ssize_t size


cdef void intervene(
    Work work, const paths_struct * paths, Py_ssize_t start, Py_ssize_t stop,
    double * memory,
) noexcept nogil:
    """Add a tree's SHAP values relative to the background rows, for a chunk of rows."""
    cdef:
        Py_ssize_t n_rows = stop - start, n_others = work.background.shape[1]
        Py_ssize_t n_all = n_rows + n_others, i, row, feature
        double * passes = memory
        uint64_t * fails = <uint64_t *> (memory + n_all)
        set_struct * sets = <set_struct *> (fails + (paths.depth + 1) * n_all)
        Py_ssize_t * path = <Py_ssize_t *> (sets + n_others)
        double * memo = <double *> (path + paths.n_features)
        uint64_t * children
        const edge_struct * edge
        uint64_t bit
    memset(fails, 0, n_all * sizeof(uint64_t))
    for i in range(1, paths.n_edges):
        edge = &paths.edges[i]
        feature = edge.split.feature_idx
        test_rows(work, paths, edge, &work.X[feature, start], n_rows, passes)
        test_rows(
            work, paths, edge, &work.background[feature, 0], n_others, passes + n_rows
        )
        path[edge.place] = work.columns[feature]
        bit = <uint64_t> 1 << edge.place
        children = fails + edge.level * n_all
        for row in range(n_all):
            children[row] = children[row - n_all] | (0 if passes[row] != 0.0 else bit)
        if edge.child.is_leaf:
            add_leaf(
                work, edge, children, n_rows, sets, memo, path,
                &work.values[paths.tree.output, 0, start],
            )


cdef inline int size_of(uint64_t features) noexcept nogil:
    cdef int size = 0
    while features:
        features &= features - 1
        size += 1
    return size


cdef void add_leaf(
    Work work, const edge_struct * leaf, const uint64_t * fails, Py_ssize_t n_rows,
    set_struct * sets, double * memo, const Py_ssize_t * path, double * values,
) noexcept nogil:
    """Add a leaf's Shapley values to `values`, the address of column 0. `fails` has the
    set of features that each row fails, then the set for each background row; `path`
    has the columns of the path's features.
    """
    cdef:
        bint is_small = leaf.n_features <= MEMO_FEATURES
        Py_ssize_t n_slots = <Py_ssize_t> 1 << min(leaf.n_features, MEMO_FEATURES)
        Py_ssize_t n_others = work.background.shape[1], n_sets = 0, i, row
        double weight = leaf.child.value / n_others
        double * of_set
        uint64_t slot
    # The place of each set among the distinct ones, from 1 on, if it is remembered.
    memset(memo, 0, n_slots * sizeof(double))
    for row in range(n_rows, n_rows + n_others):
        slot = fails[row] if is_small else 0
        i = <Py_ssize_t> memo[slot] - 1 if is_small else -1
        if i < 0:
            i = n_sets
            n_sets += 1
            sets[i] = set_struct(fails[row], 0.0, size_of(fails[row]))
            memo[slot] = n_sets
        sets[i].weight += weight
    # Then 0 if its values are not known, 1 if they are all 0, 2 if they follow.
    memset(memo, 0, n_slots * sizeof(double))
    for row in range(n_rows):
        slot = fails[row] if is_small else 0
        of_set = memo + n_slots + slot * leaf.n_features
        if not is_small or memo[slot] == 0.0:
            memo[slot] = 1.0 + value_set(
                work, fails[row], leaf.n_features, sets, n_sets, of_set
            )
        if memo[slot] == 2.0:
            for i in range(leaf.n_features):
                values[path[i] * work.X.shape[1] + row] += of_set[i]


cdef bint value_set(
    Work work, uint64_t fails, int n_features, const set_struct * sets,
    Py_ssize_t n_sets, double * values,
) noexcept nogil:
    """Set values of rows that fail the features `fails`; return False if all are 0."""
    cdef:
        double total = 0.0       # that each of the failed features takes away
        double share
        bint is_any = False
        Py_ssize_t j
        int i, n_failed = size_of(fails)
    memset(values, 0, n_features * sizeof(double))
    for j in range(n_sets):
        if sets[j].fails & fails:
            continue             # a feature that neither passes: nobody gets there
        is_any = True
        total += sets[j].weight * work.factors[n_failed, sets[j].size]
        share = sets[j].weight * work.factors[sets[j].size, n_failed]
        for i in range(n_features):
            values[i] += share * <double> ((sets[j].fails >> i) & 1)
    for i in range(n_features):
        values[i] -= total * <double> ((fails >> i) & 1)
    return is_any
