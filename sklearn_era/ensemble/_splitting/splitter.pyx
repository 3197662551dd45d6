"""Find the best split of a node, by a criterion that compares eras or by the gain.

`EraTreeGrower` passes one node after another, or the children of several at once;
`EraSplitter.find_split` is the pipeline:

    rows of the node
      -> pooled histograms           the smaller child's from its rows, the other's by
         (`histograms`)              subtraction
      -> gains                       of all candidates
         (`candidates`, `lanes`)
      -> list of splits              with a share of the largest gain (`choice`)
      -> sums over eras              of each listed split: left sides by era, compared
         (`visits`, `lanes`)         with the right ones
      -> ranks                       by the criterion's key
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from .choice cimport ERAS_ALONE, GAINS_ALONE, choose_split
from .node_search cimport (
    begin, code_rows, count_coverable, describe_sums, mark_if_deferred, start_node,
)
from .node_sums cimport (
    give_back, histograms_of, keeps_eras, lend, sum_up, take_slot,
)
from .nodes cimport grown_node
from .side_by_side cimport search_side_by_side
from .splitter_state cimport NodeSearch, SplitterState
from .store cimport HistogramStore, NodeHistograms
from .threads cimport set_count, threads_for

cdef enum:
    ROWS_AN_ERA_COSTS = 8  # additions that take as long as one for each split


cdef class EraSplitter(SplitterState):
    """Finds the best splits of a fit's nodes by a criterion that compares eras."""

    cdef void defer(self, bint is_asked) noexcept:
        """Queue nodes by gain and compare eras later, if `is_asked` and possible."""
        self.defers = (
            is_asked and self.criterion.min_gain_share > 0.0
            and self.penalties is None
        )

    cdef int sum_up_root(self, grown_node * root) except -1:
        """Sum up the rows of the root by bin, if there is memory for the sums."""
        take_slot(root, sum_up(self, self.store, root, None, keeps_eras(self)))
        return 0

    cdef int sum_up_children(
        self, grown_node * parent, grown_node * smaller, grown_node * larger
    ) except -1:
        """Sum up the smaller child; turn the parent's sums into the larger child's by
        subtraction. If there is no memory, both children are summed up later.
        """
        cdef NodeHistograms of_parent
        if parent.slot < 0:
            return 0
        of_parent = self.store.slots[parent.slot]
        take_slot(smaller, sum_up(self, self.store, smaller, of_parent))
        if smaller.slot < 0:
            give_back(self.store, &parent.slot)
            return 0
        of_parent.n_rows = larger.n_rows
        larger.slot, parent.slot = parent.slot, -1
        return 0

    cdef int merge_children(
        self, grown_node * parent, grown_node * left, grown_node * right,
        const uint8_t * is_active,
    ) except -1:
        """Sum the left child's sums over processes; turn the parent's sums into the
        right child's by subtraction. If there is no memory, `find_split` sums later.
        """
        cdef NodeHistograms of_left, of_parent
        if parent.slot_of_all < 0 or not self.splits.start_node(is_active):
            return 0
        of_left = self.merge(self.of_all, left, right)
        if of_left is None:
            return 0
        of_parent = self.of_all.slots[parent.slot_of_all]
        of_parent.subtract(of_left)
        left.slot_of_all = of_left.number
        right.slot_of_all, parent.slot_of_all = parent.slot_of_all, -1
        return 0

    cdef NodeHistograms merge(
        self, HistogramStore store, grown_node * node, grown_node * sibling
    ):
        """Return a node's sums over all processes; None if there is no memory. In the
        same exchange, count the eras that have enough rows for both sides of a split,
        in the node and in its sibling.
        """
        cdef NodeHistograms own, of_all
        own = histograms_of(self, node)
        of_all = store.allocate(own.n_bins, 0, own.n_planes)
        if of_all is not None:
            node.n_coverable, sibling.n_coverable = own.sum_over_processes(
                self.exchange, self.splits.active_bins(), of_all,
                count_coverable(self, node), count_coverable(self, sibling),
            )
        if node.slot < 0:
            self.spare.take_back(own)
        return of_all

    cdef void count_choice(self, const grown_node * node) noexcept:
        """Count a node in the fit's `n_splittable`, `n_uncovered`, `n_the_gains`."""
        self.n_splittable += node.choice.is_splittable
        self.n_uncovered += node.choice.is_uncovered
        self.n_the_gains += node.choice.is_the_gains

    cdef int release(self, grown_node * node) except -1:
        """Give the memory of a node's sums back to the stores that lent it."""
        give_back(self.store, &node.slot)
        give_back(self.of_all, &node.slot_of_all)
        return 0

    cdef int find_split(self, grown_node * node, const uint8_t * is_active) except -1:
        """Set a node's choice to its best admissible split, by all threads; if the node
        was deferred (queued by its largest gain), only compare the eras.
        """
        cdef:
            NodeSearch search = self.search
            NodeHistograms histograms = None
            NodeHistograms of_all = None
            double n_additions
        begin(self, search, node, self.defers)
        if search.step == ERAS_ALONE:
            histograms = self.store.slots[node.slot]
            is_active = &histograms.is_listed[0]
        if not self.splits.start_node(is_active):
            return 0
        if not self.is_alone and node.slot_of_all < 0:
            of_all = self.merge(self.of_all, node, node)
            if of_all is None:  # beyond the budget
                of_all = self.merge(self.spare, node, node)
            else:
                node.slot_of_all = of_all.number
        if search.step != GAINS_ALONE:
            code_rows(self, node.n_rows)
        if start_node(self, search, node):
            histograms = histograms_of(self, node)
            describe_sums(search, histograms)
            if node.slot_of_all >= 0:
                of_all = self.of_all.slots[node.slot_of_all]
            if not self.is_alone:
                search.node.bins = of_all.sums
            n_additions = histograms.n_bins
            if search.step != GAINS_ALONE:
                n_additions += <double> self.rows.n_rows * self.splits.n_features
            choose_split(
                self.splits, &self.criterion, search.step,
                threads_for(self.n_threads, n_additions), &node.choice,
            )
        mark_if_deferred(self, search, node, histograms)
        if node.slot < 0 and histograms is not None:  # beyond the budget
            self.spare.take_back(histograms)
        if node.slot_of_all < 0 and of_all is not None:
            self.spare.take_back(of_all)
        return 0

    cdef bint lend_children(
        self, int place, grown_node * node, grown_node * smaller, grown_node * larger,
        const uint8_t * is_active, bint is_first,
    ) except -1:
        """Lend memory for the sums of a node's children to the search at `place` in the
        list of searches (`NodeSearch.next`). Return whether there is enough memory. The
        children of the queue's first node are not deferred, as they may soon be split.
        """
        cdef NodeSearch search = self.search
        if node.slot < 0:
            return False
        for _ in range(place):
            search = search.next
        search.of_larger = self.store.slots[node.slot]
        search.of_smaller = lend(self, self.store, smaller, search.of_larger)
        if search.of_smaller is None:
            return False
        smaller.slot = search.of_smaller.number
        larger.slot, node.slot = node.slot, -1
        search.parent, search.smaller, search.larger = node, smaller, larger
        set_count(&search.n_claims, 0)
        memcpy(&search.is_active[0], is_active, self.tree.n_features)
        search.defers = self.defers and not is_first
        if not search.defers:
            code_rows(self, smaller.n_rows)
        return True

    cdef int search_children(self, int n, bint shares_sums) except -1:
        """Sum up and search the children of `n` nodes. If `shares_sums`, all threads
        first sum up the children, whose rows are parted already. Else each thread parts
        a node's rows, sums up and searches its children, so that few data pass between
        threads, and then helps others.
        """
        cdef int n_threads = threads_for(
            min(self.n_threads, 2 * n), n * self.bundles.n_bins
            + <double> self.search.larger.n_rows * self.splits.n_features
        )
        self.shares_sums = shares_sums
        search_side_by_side(self, n, True, n_threads)
        return 0

    cdef int lend_deferred(self, int place, grown_node * node) except -1:
        """Pass a deferred node to search number `place`, to compare the node's eras."""
        cdef NodeSearch search = self.search
        for _ in range(place):
            search = search.next
        search.smaller = node
        search.of_smaller = self.store.slots[node.slot]
        search.next_child = 1
        set_count(&search.n_claims, 0)
        code_rows(self, node.n_rows)
        return 0

    cdef int search_deferred(self, int n) except -1:
        """Compare the eras of `n` deferred nodes, which were queued by gain. A thread
        takes one node after another, and then helps the others.
        """
        # A node's eras take time beside its rows, of which each has one at least.
        cdef:
            double n_rows = self.search.smaller.n_rows
            double n_eras = min(n_rows, <double> self.rows.n_eras)
        search_side_by_side(self, n, False, threads_for(
            min(self.n_threads, 2 * n),
            n * (n_rows + ROWS_AN_ERA_COSTS * n_eras) * self.splits.n_features,
        ))
        return 0
