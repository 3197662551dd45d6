"""Grow a tree best first, with splits that an `EraSplitter` finds.

`EraTreeGrower` takes the parameters of scikit-learn's `TreeGrower`, and grows nodes in
the same order, even when nodes of the queue tie. Nodes are structs; a node's rows are a
range of the partition, and splits keep the order of rows.
"""

from cpython.time cimport perf_counter
from libc.math cimport INFINITY
from libc.string cimport memset

from types import SimpleNamespace

import numpy as np

from .grown_tree cimport ROWS_OF_ADDITION, GrownTree
from .monotonic cimport set_bounds
from .node_features cimport NodeFeatures
from .nodes cimport grown_node, make_children, set_sums
from .node_queue cimport is_before, move_down, pop, push, take_next
from .partition cimport part_rows
from .sorted_rows.node cimport is_pure
from .splitter cimport EraSplitter
from .splitter_state cimport MAX_AT_ONCE
from .threads cimport threads_for
from .._criteria.formulas cimport node_value

cdef enum:
    SHARED_ADDITIONS = 100_000  # to a node, from where on threads share them well

cdef double LARGEST_SHARE = 2.0  # of a thread's even share of rows


cdef class EraTreeGrower(GrownTree):
    """Grows a tree, by the parameters of scikit-learn's grower and four others.

    `era_splitter` finds splits. `sort_features` sorts the features that
    `interaction_cst` allows. `small_node_rows` is None except in a forest, where pure
    nodes and nodes of at most `small_node_rows` rows are leaves, and
    `draw_features(rows, sum_hessians)` returns the features that a node may use.
    """

    cdef:
        readonly object monotonic_cst
        readonly double shrinkage, total_find_split_time, total_compute_hist_time
        readonly double total_apply_split_time
        int max_leaf_nodes      # -1: without limit
        int max_depth
        unsigned int least_rows  # of a node to be split
        bint is_of_forest
        readonly NodeFeatures features
        int n_waiting, n_popped

    def __init__(
        self, EraSplitter era_splitter, X_binned, gradients, hessians, *, n_bins,
        is_categorical=None, monotonic_cst=None, interaction_cst=None,
        max_leaf_nodes=None, max_depth=None, min_samples_leaf=20,
        feature_fraction_per_split=1.0, rng=None, shrinkage=1.0, n_threads=1,
        sort_features=False, small_node_rows=None, draw_features=None, **limits,
    ):
        none = np.zeros(X_binned.shape[1], dtype=np.uint8)
        is_categorical = none if is_categorical is None else is_categorical
        self.monotonic_cst = none if monotonic_cst is None else monotonic_cst
        self.data = SimpleNamespace(
            X_binned=X_binned, missing_values_bin_idx=n_bins - 1,
            is_categorical=np.asarray(is_categorical, dtype=np.uint8),
            monotonic_cst=np.asarray(self.monotonic_cst, dtype=np.int8),
            min_samples_leaf=min(min_samples_leaf, 2**30 - 1),
            partition=np.asarray(era_splitter.partition), **limits,
        )
        super().__init__(era_splitter, n_threads)
        self.shrinkage = shrinkage
        self.max_leaf_nodes = -1 if max_leaf_nodes is None else max_leaf_nodes
        self.max_depth = -1 if max_depth is None else max_depth
        self.is_of_forest = small_node_rows is not None
        self.least_rows = 1 + (small_node_rows or 0)
        self.least_rows = max(self.least_rows, 2 * <int> self.data.min_samples_leaf)
        self.features = NodeFeatures(
            X_binned.shape[1], era_splitter.usable_features, interaction_cst,
            sort_features, feature_fraction_per_split, rng, draw_features,
            self.data.partition,
        )
        era_splitter.start_tree(self.data, gradients, hessians, n_threads)

    def grow(self):
        """Grow the tree, and multiply the leaves' values by `shrinkage`."""
        cdef int i
        cdef double tic = perf_counter()
        self.splitter.defer(False)
        self.add_root()
        # Without a limit, all nodes with a split have their turn.
        self.splitter.defer(self.max_leaf_nodes >= 0)
        while self.n_waiting > 0:
            if self.splitter.defers and not self.is_first_sure():
                continue
            if not self.nodes[self.nodes[0].waiting].is_split:
                self.split_nodes()
            self.splitter.count_choice(&self.nodes[self.nodes[0].waiting])
            self.nodes[self.n_popped].popped = self.nodes[0].waiting
            self.n_popped += 1
            self.add_children(pop(self.nodes, &self.n_waiting))
        for i in range(self.n_leaves):
            self.nodes[self.nodes[i].leaf].node.value *= self.shrinkage
            if self.nodes[self.nodes[i].leaf].is_split:
                self.undo_split(&self.nodes[self.nodes[i].leaf])
        self.total_find_split_time = perf_counter() - tic - (
            self.total_compute_hist_time + self.total_apply_split_time
        )

    cdef int add_root(self) except -1:
        """Add the root, and find its split."""
        cdef:
            EraSplitter splitter = self.splitter
            double value = 0.0
            double tic = perf_counter()
            grown_node * root
        self.reserve(1)
        root = &self.nodes[0]
        self.n_nodes = 1
        memset(root, 0, sizeof(grown_node))
        root.slot = root.slot_of_all = -1
        root.n_rows = self.tree.n_samples
        root.node.parent = -1
        root.node.pooled.lower_bound = -INFINITY
        root.node.pooled.upper_bound = INFINITY
        if self.is_of_forest:
            value = node_value(
                splitter.sum_gradients, splitter.sum_hessians,
                self.tree.l2_regularization,
            )
        set_sums(
            &root.node, <int> splitter.rows.n_samples_of_all, splitter.sum_gradients,
            splitter.sum_hessians, value,
        )
        if (
            root.node.pooled.n_samples < self.least_rows
            or splitter.sum_hessians < self.tree.min_hessian_to_split
            or not splitter.rows.of_gradients.are_finite
        ):
            self.finalize(0)
            return 0
        splitter.bundle_features(self.data, self.features.of_root)
        splitter.sum_up_root(root)
        self.total_compute_hist_time += perf_counter() - tic
        self.find_split(root)
        self.add(0)
        return 0

    cdef int split_nodes(self) except -1:
        """Split the first node of the queue and, to employ all threads, likely next
        nodes. Search all children; they join the queue when their parent is taken out
        of it.
        """
        cdef:
            int[MAX_AT_ONCE] numbers
            double n_rows = 0.0, largest = 0.0
            bint looks_ahead = self.looks_ahead(), are_shared, is_lent
            bint is_alone = self.splitter.is_alone
            int n = self.take_first(numbers, looks_ahead), n_lent = 0, i
            grown_node * node
            grown_node * left
            grown_node * right
        self.reserve(2 * n)
        for i in range(n):
            node = &self.nodes[numbers[i]]
            self.describe_children(node, numbers[i])
            if not is_alone:  # `n_rows` still counts the rows of all processes
                self.part_node(node)
            n_rows += node.n_rows
            for number in range(node.left, node.right + 1):
                largest = max(largest, <double> self.nodes[number].n_rows)
        # All threads share a large child that one would be busy with for longest.
        are_shared = largest * self.tree.n_features >= SHARED_ADDITIONS
        looks_ahead &= (
            largest * self.n_threads < LARGEST_SHARE * n_rows or not are_shared
        )
        are_shared |= n == 1
        for i in range(n):
            node = &self.nodes[numbers[i]]
            left, right = &self.nodes[node.left], &self.nodes[node.right]
            is_lent = (
                looks_ahead and not (left.is_leaf and right.is_leaf)
                and self.splitter.lend_children(
                    n_lent, node, left if left.n_rows < right.n_rows else right,
                    right if left.n_rows < right.n_rows else left,
                    self.features.active(left), i == 0,
                )
            )
            if is_alone and (are_shared or not is_lent):
                self.part_node(node)
            if is_lent:
                n_lent += 1
            elif left.is_leaf and right.is_leaf:
                self.splitter.release(node)
            else:
                self.search_children(node, left, right)
        if n_lent > 0:
            self.splitter.search_children(n_lent, are_shared)
        for i in range(n):
            node = &self.nodes[numbers[i]]
            for number in range(node.left, node.right + 1):
                node = &self.nodes[number]
                if node.is_leaf or not node.choice.split.found:
                    self.splitter.release(node)
        return 0

    cdef bint looks_ahead(self) noexcept:
        """Return whether threads search several nodes at once, ahead of the queue."""
        return self.splitter.is_alone and self.n_threads > 1 and not (
            self.is_of_forest or self.features.are_drawn or self.splitter.is_in_python
        )

    cdef int take_first(self, int * numbers, bint looks_ahead) noexcept:
        """Set `numbers` to the nodes to split together; return how many there are."""
        cdef:
            # Splits that are left. New nodes overtake those far behind, and the last
            # split needs no search for its children's splits.
            int n_left = self.max_leaf_nodes - self.n_leaves - self.n_waiting
            int n = 1, most = 1
        numbers[0] = self.nodes[0].waiting
        if looks_ahead:
            most = min(self.n_threads, <int> MAX_AT_ONCE)
            if self.max_leaf_nodes >= 0:
                most = min(most, n_left // 2)
        return take_next(self.nodes, self.n_waiting, numbers, n, most, False)

    cdef void describe_children(self, grown_node * node, int number) noexcept:
        """Add the children of a split node; mark those that have to be leaves."""
        cdef:
            grown_node * left = &self.nodes[self.n_nodes]
            grown_node * right = left + 1
        node.left, node.right = self.n_nodes, self.n_nodes + 1
        node.is_split = True
        self.n_nodes += 2
        memset(left, 0, 2 * sizeof(grown_node))
        make_children(
            self.tree, &node.node, &node.choice.split, number, &left.node, &right.node
        )
        left.slot = right.slot = -1
        left.slot_of_all = right.slot_of_all = -1
        left.n_rows = left.node.pooled.n_samples
        right.n_rows = right.node.pooled.n_samples
        left.allowed = right.allowed = self.features.allowed_below(node)
        left.is_leaf = self.has_to_be_leaf(left)
        right.is_leaf = self.has_to_be_leaf(right)
        set_bounds(self.tree, node, left, right)

    cdef void part_node(self, grown_node * node) noexcept:
        """Part the rows of a node between its children, by all threads."""
        cdef:
            double tic = perf_counter()
            grown_node * left = &self.nodes[node.left]
            grown_node * right = &self.nodes[node.right]
        left.n_rows = part_rows(
            self.tree, node, &self.splitter.partition[0], &self.splitter.scratch[0],
            threads_for(self.n_threads, node.n_rows // ROWS_OF_ADDITION),
        )
        right.n_rows = node.n_rows - left.n_rows
        right.node.start = node.node.start + left.n_rows
        self.total_apply_split_time += perf_counter() - tic

    cdef bint has_to_be_leaf(self, const grown_node * child) noexcept:
        return (
            self.n_leaves + self.n_waiting + 1 == self.max_leaf_nodes
            or child.node.pooled.n_samples < self.least_rows
            or child.node.depth == self.max_depth
        )

    cdef int search_children(
        self, grown_node * node, grown_node * left, grown_node * right
    ) except -1:
        """Find the splits of a node's two children, one child after the other."""
        cdef double tic = perf_counter()
        if left.n_rows < right.n_rows:
            self.splitter.sum_up_children(node, left, right)
        else:
            self.splitter.sum_up_children(node, right, left)
        if not (self.splitter.is_alone or self.features.are_drawn):
            self.splitter.merge_children(node, left, right, self.features.active(left))
        self.total_compute_hist_time += perf_counter() - tic
        self.splitter.release(node)
        self.find_split(left)
        self.find_split(right)
        return 0

    cdef int find_split(self, grown_node * node) except -1:
        """Find the split of a node, unless it is a leaf, or pure in a forest."""
        if not (node.is_leaf or self.is_of_forest and is_pure(
            self.tree.gradients, self.tree.hessians,
            &self.splitter.partition[0] + node.node.start, node.n_rows,
        )):
            self.splitter.find_split(node, self.features.active(node))
        return 0

    cdef int add_children(self, int number) except -1:
        """Put the children of a split node in the queue, or make them leaves."""
        cdef:
            grown_node * node = &self.nodes[number]
            bint are_last = self.n_leaves + self.n_waiting + 2 == self.max_leaf_nodes
            int child
        for child in range(node.left, node.right + 1):
            if are_last:
                self.nodes[child].choice.split.found = False
            if are_last or self.nodes[child].is_leaf:
                self.finalize(child)
        for child in range(node.left, node.right + 1):
            if not self.nodes[child].is_leaf:
                self.add(child)
        if self.n_leaves + self.n_waiting == self.max_leaf_nodes:
            while self.n_waiting > 0:
                self.n_waiting -= 1
                self.finalize(self.nodes[self.n_waiting].waiting)
        return 0

    cdef int add(self, int number) except -1:
        """Put a node in the queue if its search found a split; else make it a leaf."""
        self.splitter.n_searched += self.nodes[number].is_searched
        self.splitter.n_kept += self.nodes[number].is_kept
        if self.nodes[number].choice.is_deferred and not self.splitter.defers:
            self.splitter.find_split(&self.nodes[number], NULL)  # searched ahead
        if self.nodes[number].choice.split.found:
            push(self.nodes, &self.n_waiting, number)
        else:
            self.splitter.count_choice(&self.nodes[number])
            self.finalize(number)
        return 0

    cdef bint is_first_sure(self) except -1:
        """Return whether the first node of the queue is certainly the next to split. If
        deferred nodes leave this open, compare the eras of some of them.
        """
        cdef:
            int first = self.nodes[0].waiting
            int i, number
        if self.nodes[first].choice.is_deferred:
            self.compare_deferred(0)
            return False
        # If another one is equal, one of the two behind the first is.
        for i in range(1, min(self.n_waiting, 3)):
            number = self.nodes[i].waiting
            if is_before(self.nodes, first, number):
                continue
            if self.nodes[number].choice.is_deferred:
                self.compare_deferred(i)
                return False
            self.repeat_queue()
        return True

    cdef int compare_deferred(self, int place) except -1:
        """Compare the eras of the node at `place` of the queue. If the node is the
        first, and small, other threads compare the eras of deferred nodes behind it.
        """
        cdef:
            int[MAX_AT_ONCE] numbers
            int number = self.nodes[place].waiting
            int n = 1, i
            bint are_side_by_side = self.looks_ahead() and (
                <double> self.nodes[number].n_rows * self.tree.n_features
                < SHARED_ADDITIONS
            )
        numbers[0] = number
        if are_side_by_side and place == 0:
            n = take_next(
                self.nodes, self.n_waiting, numbers, n,
                min(self.n_threads, <int> MAX_AT_ONCE), True,
            )
        if n == 1:
            self.splitter.find_split(&self.nodes[number], NULL)
        else:
            for i in range(n):
                self.splitter.lend_deferred(i, &self.nodes[numbers[i]])
            self.splitter.search_deferred(n)
        # Their priorities are known now, and no higher. A heap below each one that
        # moves down: so the last places come first.
        for place in range(self.n_waiting - 1, -1, -1):
            for i in range(n):
                if self.nodes[place].waiting == numbers[i]:
                    move_down(self.nodes, self.n_waiting, place)
                    break
        return 0

    cdef int repeat_queue(self) except -1:
        """Rebuild the queue as if no node had been deferred, so that ties are decided
        alike: compare all waiting nodes by era; add and take out all nodes again.
        """
        cdef int n_popped = self.n_popped, i, number, child
        for i in range(self.n_waiting):
            number = self.nodes[i].waiting
            if self.nodes[number].choice.is_deferred:
                self.splitter.find_split(&self.nodes[number], NULL)
        self.splitter.defer(False)
        self.n_waiting = 0
        push(self.nodes, &self.n_waiting, 0)
        for i in range(n_popped):
            number = pop(self.nodes, &self.n_waiting)
            assert number == self.nodes[i].popped, "nodes taken out of the queue"
            for child in range(self.nodes[number].left, self.nodes[number].right + 1):
                if not self.nodes[child].is_leaf:
                    push(self.nodes, &self.n_waiting, child)
        return 0
