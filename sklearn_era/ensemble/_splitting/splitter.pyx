"""The best split of a node by a criterion that compares eras, or by the gain.

`EraTreeGrower` passes one node after another, or the children of several at once;
`EraSplitter.find_split` is the pipeline:

    rows of the node
      -> pooled histograms           the smaller child's from its rows, the other's by
         (`histograms`)              subtraction
      -> gains                       of all candidates
         (`candidates`, `lanes`)
      -> list of splits              with a share of the largest gain (`choice`)
      -> sums over eras              of each listed split: left sides by era, compared
         (`choice`, `lanes`)         with the right ones
      -> ranks                       by the criterion's key
"""

from functools import partial

from cython.parallel import parallel

import numpy as np

from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset

from .._arrays cimport G_H_DTYPE_C, omp_get_num_threads, omp_get_thread_num

from ..._eras import min_rows_of_side
from .._exchange import ALONE
from .bundles cimport FeatureBundles
from .candidates.listing cimport mark_features
from .candidates.splits cimport (
    PACKED_SUMS, SUMS_BY_ERA, THREADS, CandidateSplits, first_of, note_way, stop_of,
    take_next, thread_team, threads_for, wait_for_team,
)
from .choice cimport (
    ERAS_ALONE, GAINS_ALONE, WHOLE_SEARCH, choose_split, look_at_rows, search_node,
    wants_to_look_at_rows,
)
from .fixed_points cimport n_words_of
from .histograms cimport describe_child, fill, fill_by_era
from .lanes.functions cimport node_struct
from .nodes cimport chosen_split, describe_tree, grown_node
from .rows cimport EraRows
from .store cimport HistogramStore, NodeHistograms
from .._criteria.criterion cimport criterion_struct
from .._criteria.dispatch cimport DIRECTIONAL, GAIN
from .._criteria.formulas cimport LANES
from .._criteria.ranking cimport with_share_of


cdef enum:
    ROWS_OF_ERA = 24  # from here on, sums by era are cheaper than a pass over rows
    ROWS_OF_DIRECTION = 64  # the same for directions

WAYS = (
    "packed sums", "sums by era", "rows looked at", "shares of the gain",
    "first columns", "directions first", "contrasts", "columns of masks",
    "columns of groups", "threads",
)


cdef class NodeSearch:
    """The search for the split of a node. Parameters are those of `EraRows`."""

    def __init__(
        self, era_codes, int n_eras, row_order, positive_weights, weights, has_weights,
        exchange=ALONE,
    ):
        self.rows = EraRows(
            era_codes, n_eras, row_order, positive_weights, weights, has_weights,
            exchange,
        )
        self.splits = CandidateSplits(self.rows, exchange)
        self.impurities = np.zeros(n_eras)


cdef class EraSplitter:
    """Finds the best splits of a fit's nodes by a criterion that compares eras.

    `start_tree` puts the rows in the order of eras. Each tree has the same memory.

    Parameters are those of `EraRows`, the criterion, and the bytes for the histograms
    of nodes (`store_budget`). `penalties` are in the order of the tree's columns, None
    for zeros; features with 1 or more are excluded.
    """

    def __init__(
        self, era_codes, int n_eras, row_order, criterion,
        const G_H_DTYPE_C [::1] positive_weights=None,
        const G_H_DTYPE_C [::1] weights=None, bint has_weights=True, store_budget=None,
        exchange=ALONE, const double [::1] penalties=None,
    ):
        self.exchange = exchange
        self.is_alone = exchange.is_alone
        self.penalties = penalties
        self.search = NodeSearch(
            era_codes, n_eras, row_order, positive_weights, weights, has_weights,
            exchange,
        )
        self.make_search = partial(
            NodeSearch, era_codes, n_eras, row_order, positive_weights, weights,
            has_weights,
        )
        self.rows = self.search.rows
        self.splits = self.search.splits
        self.n_eras_of_all = int(*exchange.sum_of(n_eras))
        self.criterion = criterion.params
        self.splits.tree = &self.tree
        self.spare = HistogramStore(2**62)  # for nodes beyond the budget
        self.store = HistogramStore(store_budget)
        self.of_all = HistogramStore(store_budget)
        self.partition = np.empty(self.rows.n_samples, dtype=np.uint32)
        self.scratch = np.empty(self.rows.n_samples, dtype=np.uint32)
        self.era_sizes = np.asarray(self.rows.era_counts, dtype=np.float64)
        self.min_samples = min_rows_of_side(
            self.criterion.min_samples_per_era, np.asarray(self.era_sizes)
        )
        self.criterion.min_samples_per_era = np.max(self.min_samples)
        self.splits.custom = criterion.custom
        self.splits.era_labels = criterion.era_labels
        self.splits.era_sizes = self.era_sizes
        self.splits.min_samples = self.min_samples

    @property
    def is_in_python(self):
        """Return whether keys come from a criterion in Python."""
        return self.splits.custom is not None

    @property
    def ways(self):
        """Return how often the fit took each way of the kernel."""
        cdef NodeSearch search = self.search
        n_taken = np.zeros(len(WAYS), dtype=np.intp)
        while search is not None:
            n_taken += search.splits.n_taken
            search = search.next
        return dict(zip(WAYS, n_taken.tolist(), strict=True))

    def start_tree(self, tree, gradients, hessians, int n_threads):
        """Take over the data and limits of a tree, attributes of `tree`, its owner."""
        cdef const unsigned int [::1] order
        cdef int i
        self.n_threads = n_threads
        self.store.take_all_back()
        self.spare.take_all_back()
        self.of_all.take_all_back()
        self.sum_gradients, self.sum_hessians = self.rows.start_tree(
            gradients, hessians, n_threads
        )
        if self.criterion.takes_deviation:
            self.criterion.least_variance = self.rows.compare_squares()
        self.gradient_variance = 1.0
        if self.criterion.normalize_era_gain:
            self.gradient_variance = self.rows.root_variance()
        self.criterion.l2_regularization = tree.l2_regularization
        self.criterion.min_gain = tree.min_gain_to_split
        describe_tree(tree, gradients, hessians, self.penalties, &self.tree)
        order = self.rows.order
        for i in range(self.rows.n_samples):
            self.partition[i] = i if order is None else order[i]

    def usable_features(self, features):
        """Return those of some features that have a penalty below 1."""
        if self.penalties is None:
            return features
        return features[np.asarray(self.penalties)[features] < 1.0]

    def bundle_features(self, tree, features):
        """Bundle the features that a tree uses; if these are all, once a fit."""
        cdef NodeSearch search = self.search
        all_of_fit = self.usable_features(np.arange(self.tree.n_features))
        are_all = features.size == all_of_fit.size
        self.bundles = self.all_features if are_all else None
        if self.bundles is None:
            self.bundles = FeatureBundles(tree, np.sort(features), self.n_threads)
        if are_all:
            self.all_features = self.bundles
        self.splits.use_bundles(self.bundles, self.criterion.n_fields)
        self.splits.use_threads(self.n_threads)
        self.search.is_active = np.empty(self.tree.n_features, dtype=np.uint8)
        n_searches = min(self.n_threads, 2 * MAX_AT_ONCE) if self.is_alone else 1
        for _ in range(1, 1 if self.is_in_python else n_searches):
            if search.next is None:
                search.next = self.make_search()
                search.next.splits.tree = &self.tree
            search = search.next
            search.is_active = np.empty(self.tree.n_features, dtype=np.uint8)
            search.rows.take_values(self.rows)
            search.splits.use_bundles(self.bundles, self.criterion.n_fields)
            search.splits.use_threads(1)

    cdef void defer(self, bint wants_to) noexcept:
        """Let nodes wait until eras are compared, if their gain bounds their priority.
        """
        self.defers = (
            wants_to and self.criterion.min_gain_share > 0.0
            and self.criterion.name != GAIN and self.penalties is None
        )

    cdef int sum_up_root(self, grown_node * root) except -1:
        """Sum up the rows of a root, if there is memory."""
        take_slot(root, sum_up(self, self.store, root, None, keeps_eras(self)))
        return 0

    cdef int sum_up_children(
        self, grown_node * parent, grown_node * smaller, grown_node * larger
    ) except -1:
        """Sum up the smaller child; subtract it from the parent, whose sums become the
        larger one's. Without memory, both are summed up later.
        """
        cdef NodeHistograms of_parent
        if parent.slot < 0:
            return 0
        of_parent = self.store.slots[parent.slot]
        take_slot(
            smaller,
            sum_up(self, self.store, smaller, of_parent, of_parent.by_era != NULL),
        )
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
        """Exchange the left child's sums with other processes; subtract them from the
        parent's, which become the right one's. Without memory, each child's later.
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
        """Return a node's sums over all processes; None without memory. Count its
        coverable eras, and a sibling's in the same exchange.
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

    cdef void count_search(self, const grown_node * node) noexcept:
        self.n_searched += node.is_searched
        self.n_kept += node.is_kept

    cdef void count_choice(self, const grown_node * node) noexcept:
        """Count what the search of a node found."""
        self.n_splittable += node.is_splittable
        self.n_uncovered += node.is_uncovered
        self.n_the_gains += node.is_the_gains

    cdef int release(self, grown_node * node) except -1:
        """Return the memory of a node's sums to the stores."""
        give_back(self.store, &node.slot)
        give_back(self.of_all, &node.slot_of_all)
        return 0

    cdef int find_split(self, grown_node * node, const uint8_t * is_active) except -1:
        """Find the best admissible split of a node, by all threads; or compare the eras
        of one that was deferred.
        """
        cdef:
            NodeSearch search = self.search
            NodeHistograms histograms = None
            NodeHistograms of_all = None
            double n_additions
        begin(self, search, node)
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
        if start_node(self, search, self.rows, node):
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
                self.splits, &self.criterion, &search.node, search.step,
                threads_for(self.n_threads, n_additions), &search.chosen,
            )
        take_chosen(self, search, node, histograms)
        if node.slot < 0 and histograms is not None:  # beyond the budget
            self.spare.take_back(histograms)
        if node.slot_of_all < 0 and of_all is not None:
            self.spare.take_back(of_all)
        return 0

    cdef bint lend_children(
        self, int place, grown_node * node, grown_node * smaller, grown_node * larger,
        const uint8_t * is_active,
    ) except -1:
        """Lend the memory of both children's sums to a search, the one at some place of
        the list; return whether there is some.
        """
        cdef NodeSearch search = self.search
        if node.slot < 0:
            return False
        for _ in range(place):
            search = search.next
        search.of_larger = self.store.slots[node.slot]
        search.of_smaller = lend(
            self, self.store, smaller, search.of_larger,
            search.of_larger.by_era != NULL,
        )
        if search.of_smaller is None:
            return False
        smaller.slot = search.of_smaller.number
        larger.slot, node.slot = node.slot, -1
        search.smaller, search.larger = smaller, larger
        memcpy(&search.is_active[0], is_active, self.tree.n_features)
        if not self.defers:
            code_rows(self, smaller.n_rows)
        return True

    cdef int search_children(self, int n, bint shares_sums) except -1:
        """Sum up and search the children of `n` nodes. A thread searches one child
        after another: it waits for others twice, and few data pass between them.
        """
        cdef int n_threads = threads_for(
            min(self.n_threads, 2 * n), n * self.bundles.n_bins
            + <double> self.search.larger.n_rows * self.splits.n_features
        )
        self.shares_sums = shares_sums
        search_side_by_side(self, 2 * n, n, n_threads)
        return 0

    cdef int lend_deferred(self, int place, grown_node * node) except -1:
        """Tell the search at some place of the list to compare a node's eras."""
        cdef NodeSearch search = self.search
        for _ in range(place):
            search = search.next
        search.larger = node
        search.of_larger = self.store.slots[node.slot]
        code_rows(self, node.n_rows)
        return 0

    cdef int search_deferred(self, int n) except -1:
        """Compare the eras of `n` nodes, a thread those of one after another."""
        # A register of an era's sums takes as long as some rows.
        cdef double n_rows = self.search.larger.n_rows + LANES * self.rows.n_eras
        search_side_by_side(self, n, 0, threads_for(
            min(self.n_threads, n), n * n_rows * self.splits.n_features
        ))
        return 0


# Without the GIL a variable cannot refer to one search of the list after another:
# functions call themselves with the next one.

cdef void search_side_by_side(
    EraSplitter self,
    int n,                  # nodes to search
    int n_parents,          # whose children these are, to be summed up; or 0
    int n_threads,
) noexcept:
    self.n_to_search = n
    self.n_taken = 0
    self.splits.n_taken[THREADS] += n_threads > 1
    with nogil:
        if n_threads == 1:
            search_some(self, self.search, n_parents, thread_team(0, 1), 0)
        else:
            with parallel(num_threads=n_threads):
                search_some(
                    self, self.search, n_parents,
                    thread_team(omp_get_thread_num(), omp_get_num_threads()),
                    omp_get_thread_num(),
                )


cdef void search_some(
    EraSplitter self, NodeSearch own, int n_parents, thread_team team,
    int place,              # of the thread's own search, in the list from `own`
) noexcept nogil:
    """Sum up the children of nodes, then search the next one until all are taken."""
    cdef int n = self.n_to_search - n_parents
    cdef int i
    if place > 0:
        search_some(self, own.next, n_parents, team, place - 1)
        return
    if n_parents == 1 or self.shares_sums:
        for i in range(n_parents):
            sum_place(self, self.search, i, team)
    else:
        for i in range(first_of(team, n_parents), stop_of(team, n_parents)):
            sum_place(self, self.search, i, thread_team(0, 1))
    if n_parents > 0:
        wait_for_team(team)
    i = take_next(&self.n_taken)
    while i < self.n_to_search:  # the larger child of each node, then the smaller ones
        search_place(self, own, self.search, i % n, i < n)
        i = take_next(&self.n_taken)


cdef void sum_place(
    EraSplitter self, NodeSearch search, int place, thread_team team
) noexcept nogil:
    """Sum up the children at some place of the list."""
    if place > 0:
        sum_place(self, search.next, place - 1, team)
        return
    if team.rank == 0:
        search.rows.start_node(
            &self.partition[0] + search.smaller.node.start, search.smaller.n_rows
        )
        begin_sums(self, search, search.of_smaller, search.of_larger)
        search.of_larger.n_rows = search.larger.n_rows
    wait_for_team(team)
    add_sums(self, search, search.of_smaller, search.of_larger, team)


cdef void search_place(
    EraSplitter self, NodeSearch own, NodeSearch search, int place, bint is_larger
) noexcept nogil:
    """Search a child at some place of the list by a thread's own search."""
    if place > 0:
        search_place(self, own, search.next, place - 1, is_larger)
    elif is_larger:
        search_child(
            self, own, search.larger, search.of_larger, &search.is_active[0]
        )
    else:
        search_child(
            self, own, search.smaller, search.of_smaller, &search.is_active[0]
        )


cdef void search_child(
    EraSplitter self, NodeSearch search, grown_node * node, NodeHistograms histograms,
    const uint8_t * is_active,
) noexcept nogil:
    if node.is_leaf:
        return
    begin(self, search, node)
    if search.step == ERAS_ALONE:
        is_active = &histograms.is_listed[0]
    if search.splits.start_node(is_active) and start_node(
        self, search, search.rows, node
    ):
        describe_sums(search, histograms)
        search_node(
            search.splits, &self.criterion, &search.node, search.step,
            thread_team(0, 1), &search.chosen,
        )
    take_chosen(self, search, node, histograms)


cdef int give_back(HistogramStore store, int * slot) except -1:
    """Return a slot to its store, if there is one."""
    if slot[0] >= 0:
        store.free.append(store.slots[slot[0]])
        slot[0] = -1
    return 0


cdef void take_slot(grown_node * node, NodeHistograms histograms) noexcept:
    node.slot = -1 if histograms is None else histograms.number


cdef NodeHistograms lend(
    EraSplitter self, HistogramStore store, const grown_node * node,
    NodeHistograms parent, bint keeps
):
    """Return memory for a node's sums, by era where that pays; None without any."""
    cdef:
        NodeHistograms histograms
        Py_ssize_t n_rows = node.n_rows  # later the larger child's
        Py_ssize_t min_rows, n_by_era = 0
    min_rows = ROWS_OF_DIRECTION if self.criterion.name == DIRECTIONAL else ROWS_OF_ERA
    if parent is not None:
        n_rows = parent.n_rows - n_rows
    if keeps and n_rows >= min_rows * self.rows.n_eras:
        n_by_era = self.bundles.n_lanes * self.rows.n_eras
    histograms = store.allocate(
        self.bundles.n_bins, n_by_era, n_words_of(&self.rows.of_gradients) + 1
    )
    if histograms is None:
        return None
    histograms.n_rows = node.n_rows
    if histograms.is_listed.shape[0] < self.tree.n_features:
        histograms.is_listed = np.empty(self.tree.n_features, dtype=np.uint8)
    if parent is not None and histograms.by_era == NULL:
        parent.by_era = NULL
    return histograms


cdef NodeHistograms sum_up(
    EraSplitter self, HistogramStore store, const grown_node * node,
    NodeHistograms parent, bint keeps
):
    """Sum up a node's rows and subtract them from its parent's; None without memory."""
    cdef:
        NodeHistograms histograms = lend(self, store, node, parent, keeps)
        int n_threads
    if histograms is None:
        return None
    self.rows.start_node(&self.partition[0] + node.node.start, node.n_rows)
    n_threads = threads_for(
        self.n_threads, <double> self.rows.n_rows * self.bundles.n_bundles
    )
    begin_sums(self, self.search, histograms, parent)
    with nogil:
        if n_threads == 1:
            add_sums(self, self.search, histograms, parent, thread_team(0, 1))
        else:
            with parallel(num_threads=n_threads):
                add_sums(
                    self, self.search, histograms, parent,
                    thread_team(omp_get_thread_num(), omp_get_num_threads()),
                )
    return histograms


cdef void begin_sums(
    EraSplitter self, NodeSearch search, NodeHistograms histograms,
    NodeHistograms parent,
) noexcept nogil:
    """Describe the sums of a started node's rows, and its parent's or None."""
    search.child = describe_child(histograms, parent, search.rows, self.is_alone)
    note_way(search.splits, SUMS_BY_ERA, histograms.by_era != NULL)
    note_way(search.splits, PACKED_SUMS, histograms.count_bits > 0)


cdef void add_sums(
    EraSplitter self, NodeSearch search, NodeHistograms histograms,
    NodeHistograms parent, thread_team team,
) noexcept nogil:
    """Sum up the rows of a node, and subtract the sums from its parent's."""
    if histograms.by_era != NULL:
        fill_by_era(
            histograms, parent, &search.child, search.rows, self.bundles,
            search.splits.functions, team,
        )
    else:
        fill(histograms, &search.child, search.rows, &self.tree, self.bundles, team)


cdef bint keeps_eras(EraSplitter self) noexcept:
    """Return whether nodes keep sums by era: if all splits are compared and have masks.
    """
    return (
        self.criterion.name != GAIN
        and self.criterion.min_gain_share == 0.0
        and self.bundles.all_have_masks
        and not self.rows.compares_others
        and not self.rows.of_gradients.has_low_words
    )


cdef int count_coverable(EraSplitter self, const grown_node * node) except -1:
    """Count the eras of this process that splits of a node can cover."""
    if self.criterion.name == GAIN:
        return 0
    self.rows.start_node(&self.partition[0] + node.node.start, node.n_rows)
    self.rows.list_eras(self.criterion.keeps_sides, &self.min_samples[0])
    return self.rows.n_coverable


cdef int code_rows(EraSplitter self, int n_rows) except -1:
    """Copy the codes of all rows, if searches may look at those of a node."""
    cdef NodeSearch search = self.search
    if not wants_to_look_at_rows(
        self.splits, &self.criterion, n_rows, self.rows.n_eras
    ):
        return 0
    self.splits.code_rows()
    while search is not None:
        search.splits.row_codes = self.splits.row_codes
        search = search.next
    return 0


cdef void begin(
    EraSplitter self, NodeSearch search, grown_node * node
) noexcept nogil:
    """Count a node as searched, for now without a split; or go on with a deferred one.
    """
    memset(&search.chosen, 0, sizeof(chosen_split))
    search.step = WHOLE_SEARCH
    if node.is_deferred:
        search.step = ERAS_ALONE
        search.chosen.best = node.split
        return
    if self.defers and node.slot >= 0 and (self.is_alone or node.slot_of_all >= 0):
        search.step = GAINS_ALONE
    node.is_searched = True
    node.is_kept = node.slot >= 0


cdef void take_chosen(
    EraSplitter self, NodeSearch search, grown_node * node, NodeHistograms histograms
) noexcept nogil:
    cdef criterion_struct sharing
    node.split = search.chosen.best
    node.largest_gain = search.chosen.largest_gain
    node.is_splittable = search.chosen.is_splittable
    node.is_uncovered = search.chosen.is_uncovered
    node.is_the_gains = search.chosen.is_the_gains
    node.is_deferred = search.chosen.is_deferred
    if node.is_deferred:
        sharing = with_share_of(&self.criterion, node.split.rank.primary)
        mark_features(search.splits, &sharing, &histograms.is_listed[0])


cdef bint start_node(
    EraSplitter self, NodeSearch search, EraRows rows, const grown_node * node
) noexcept nogil:
    """Describe a node and list its eras; return whether it may be split."""
    cdef:
        node_struct * c_node = &search.node
        const criterion_struct * criterion = &self.criterion
    rows.start_node(&self.partition[0] + node.node.start, node.n_rows)
    if criterion.name != GAIN and search.step != GAINS_ALONE:
        rows.list_eras(criterion.keeps_sides, &self.min_samples[0])
        c_node.n_coverable = rows.n_coverable
        if not self.is_alone:
            c_node.n_coverable = node.n_coverable
        if criterion.min_gain_share == 0.0 and (
            c_node.n_coverable < criterion.min_covered_eras
        ):
            search.chosen.is_splittable = search.chosen.is_uncovered = True
            return False
    if criterion.traits.reads_impurities and search.step != GAINS_ALONE:
        rows.measure_impurities(&search.impurities[0])
    if search.step != GAINS_ALONE:
        look_at_rows(search.splits, criterion)
    c_node.values = &rows.of_gradients
    c_node.pooled = node.node.pooled
    c_node.eras.n_eras = self.n_eras_of_all
    c_node.eras.impurities = &search.impurities[0]
    c_node.eras.era_sizes = &self.era_sizes[0]
    c_node.eras.min_samples = &self.min_samples[0]
    c_node.eras.sum_hessians = node.node.pooled.sum_hessians
    c_node.eras.gradient_variance = self.gradient_variance
    return True


cdef void describe_sums(NodeSearch search, NodeHistograms histograms) noexcept nogil:
    """Describe a node's own sums."""
    search.node.bins = histograms.sums
    search.node.n_bins = histograms.n_bins
    search.node.count_bits = histograms.count_bits
    search.node.by_era = histograms.by_era
    search.node.n_by_era = histograms.n_planes * <Py_ssize_t> search.rows.n_eras


cdef NodeHistograms histograms_of(EraSplitter self, grown_node * node):
    """Return the node's pooled histograms; sum up its rows if they are not stored."""
    cdef NodeHistograms histograms
    if node.slot < 0:
        # Without sums by era, which would list its eras anew.
        histograms = sum_up(self, self.store, node, None, False)
        take_slot(node, histograms)
        if histograms is None:  # beyond the budget
            histograms = sum_up(self, self.spare, node, None, False)
    else:
        histograms = self.store.slots[node.slot]
    assert histograms.are_sums_of(
        self.bundles, self.rows,
        self.partition[node.node.start : node.node.start + node.n_rows],
    ), "sums of a node and of its eras"
    return histograms
