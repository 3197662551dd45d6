# The sums of a node by bin: memory lent for them, filled from its rows, and subtracted
# from its parent's.

from cython.parallel cimport parallel

from .._arrays cimport omp_get_num_threads, omp_get_thread_num

from .candidates.splits cimport PACKED_SUMS, SUMS_BY_ERA, note_way
from .fixed_points cimport n_words_of
from .histograms cimport describe_child, fill, fill_by_era
from .nodes cimport grown_node
from .splitter_state cimport NodeSearch, SplitterState
from .store cimport HistogramStore, NodeHistograms
from .threads cimport thread_team, threads_for
from .._criteria.dispatch cimport DIRECTIONAL, GAIN


cdef enum:
    ROWS_OF_ERA = 24  # from here on, sums by era are cheaper than a pass over rows
    ROWS_OF_DIRECTION = 64  # the same for directions


cdef inline int give_back(HistogramStore store, int * slot) except -1:
    """Give the memory of number `slot` back to its store; set `slot` to -1 (none)."""
    if slot[0] >= 0:
        store.free.append(store.slots[slot[0]])
        slot[0] = -1
    return 0


cdef inline void take_slot(grown_node * node, NodeHistograms histograms) noexcept:
    node.slot = -1 if histograms is None else histograms.number


cdef inline NodeHistograms lend(
    SplitterState self, HistogramStore store, const grown_node * node,
    NodeHistograms parent, bint by_era=False
):
    """Return memory for a node's sums by bin, or None if memory runs out. Add room for
    sums by era if there are enough rows, and if `parent` has sums by era or, without a
    parent, `by_era` is True.
    """
    cdef:
        NodeHistograms histograms
        Py_ssize_t n_rows = node.n_rows  # later the larger child's
        Py_ssize_t min_rows, n_by_era = 0
    min_rows = ROWS_OF_DIRECTION if self.criterion.name == DIRECTIONAL else ROWS_OF_ERA
    if parent is not None:
        n_rows = parent.n_rows - n_rows
        by_era = parent.by_era != NULL
    if by_era and n_rows >= min_rows * self.rows.n_eras:
        n_by_era = self.bundles.n_lanes * self.rows.n_eras
    histograms = store.allocate(
        self.bundles.n_bins, n_by_era, n_words_of(&self.rows.of_gradients) + 1
    )
    if histograms is None:
        return None
    histograms.n_rows = node.n_rows
    histograms.make_list(self.tree.n_features)
    if parent is not None and histograms.by_era == NULL:
        parent.by_era = NULL
    return histograms


cdef inline NodeHistograms sum_up(
    SplitterState self, HistogramStore store, const grown_node * node,
    NodeHistograms parent, bint by_era=False  # see `lend`
):
    """Return the sums of a node's rows, and subtract them from the sums of `parent`,
    unless `parent` is None. Return None if too little memory is left.
    """
    cdef:
        NodeHistograms histograms = lend(self, store, node, parent, by_era)
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


cdef inline void begin_sums(
    SplitterState self, NodeSearch search, NodeHistograms histograms,
    NodeHistograms parent,
) noexcept nogil:
    """Prepare the memory for a node's sums, before `add_sums`; `parent` may be None."""
    search.child = describe_child(histograms, parent, search.rows, self.is_alone)
    note_way(search.splits, SUMS_BY_ERA, histograms.by_era != NULL)
    note_way(search.splits, PACKED_SUMS, histograms.count_bits > 0)


cdef inline void add_sums(
    SplitterState self, NodeSearch search, NodeHistograms histograms,
    NodeHistograms parent, thread_team team,
) noexcept nogil:
    """Sum up a node's rows; subtract the sums from `parent`, unless this is None."""
    if histograms.by_era != NULL:
        fill_by_era(
            histograms, parent, &search.child, search.rows, self.bundles,
            search.splits.functions, team,
        )
    else:
        fill(histograms, &search.child, search.rows, &self.tree, self.bundles, team)


cdef inline bint keeps_eras(SplitterState self) noexcept:
    """Return whether nodes keep sums by era: if a criterion compares the eras of all
    splits, by gradients without low words, and if all features have few bins, so that
    all bundles have masks.
    """
    return (
        self.criterion.name != GAIN
        and self.criterion.min_gain_share == 0.0
        and self.bundles.all_have_masks
        and not self.rows.compares_others
        and not self.rows.of_gradients.has_low_words
    )


cdef inline NodeHistograms histograms_of(SplitterState self, grown_node * node):
    """Return a node's sums by bin over all eras; sum up its rows if none are stored."""
    cdef NodeHistograms histograms
    if node.slot < 0:
        # Without sums by era, which would list its eras anew.
        histograms = sum_up(self, self.store, node, None)
        take_slot(node, histograms)
        if histograms is None:  # beyond the budget
            histograms = sum_up(self, self.spare, node, None)
    else:
        histograms = self.store.slots[node.slot]
    assert histograms.are_sums_of(
        self.bundles, self.rows,
        self.partition[node.node.start : node.node.start + node.n_rows],
    ), "sums of a node and of its eras"
    return histograms
