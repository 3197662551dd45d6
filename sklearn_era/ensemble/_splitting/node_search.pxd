# The search of one node: described, its eras listed, and deferred if they can wait.

from libc.stdint cimport uint8_t

from .candidates.listing cimport mark_features
from .candidates.splits cimport ROWS_LOOKED_AT, note_way
from .choice cimport (
    ERAS_ALONE, GAINS_ALONE, WHOLE_SEARCH, search_node, wants_to_look_at_rows,
)
from .nodes cimport grown_node
from .splitter_state cimport NodeSearch, SplitterState
from .store cimport NodeHistograms
from .threads cimport thread_team
from .._criteria.criterion cimport criterion_struct
from .._criteria.dispatch cimport GAIN
from .._criteria.ranking cimport with_share_of


cdef inline int count_coverable(SplitterState self, const grown_node * node) except -1:
    """Return how many eras of this process have enough rows in a node for both sides
    of a split; 0 for the gain criterion, which does not compare eras.
    """
    if self.criterion.name == GAIN:
        return 0
    self.rows.start_node(&self.partition[0] + node.node.start, node.n_rows)
    self.rows.list_eras(self.criterion.keeps_sides, &self.min_samples[0])
    return self.rows.n_coverable


cdef inline int code_rows(SplitterState self, int n_rows) except -1:
    """Copy the codes of all rows, if the search of a node may look at its rows."""
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


cdef inline void begin(
    SplitterState self, NodeSearch search, grown_node * node, bint defers
) noexcept nogil:
    """Set the step of a search: GAINS_ALONE if the node's eras are to be compared
    later (`defers`), ERAS_ALONE if they are compared now (`is_deferred`), else
    WHOLE_SEARCH.
    """
    search.step = WHOLE_SEARCH
    if node.choice.is_deferred:
        search.step = ERAS_ALONE
        return
    if defers and node.slot >= 0 and (self.is_alone or node.slot_of_all >= 0):
        search.step = GAINS_ALONE
    node.is_searched = True
    node.is_kept = node.slot >= 0


cdef inline void mark_if_deferred(
    SplitterState self, NodeSearch search, const grown_node * node,
    NodeHistograms histograms,
) noexcept nogil:
    """If a node was deferred, mark in `histograms` the features to compare by era."""
    cdef criterion_struct sharing
    if node.choice.is_deferred:
        sharing = with_share_of(&self.criterion, node.choice.split.rank.primary)
        mark_features(search.splits, &sharing, &histograms.is_listed[0])


cdef inline bint start_node(
    SplitterState self, NodeSearch search, grown_node * node
) noexcept nogil:
    """Set a search's node, and list its eras; return whether the node may split."""
    cdef const criterion_struct * criterion = &self.criterion
    search.rows.start_node(&self.partition[0] + node.node.start, node.n_rows)
    if criterion.name != GAIN and search.step != GAINS_ALONE:
        search.rows.list_eras(criterion.keeps_sides, &self.min_samples[0])
        search.node.n_coverable = search.rows.n_coverable
        if not self.is_alone:
            search.node.n_coverable = node.n_coverable
        if criterion.min_gain_share == 0.0 and (
            search.node.n_coverable < criterion.min_covered_eras
        ):
            node.choice.is_splittable = node.choice.is_uncovered = True
            return False
        if criterion.traits.reads_impurities:
            search.rows.measure_impurities(&search.impurities[0])
        search.splits.looks_at_rows = wants_to_look_at_rows(
            search.splits, criterion, node.n_rows, search.rows.n_listed
        )
        note_way(search.splits, ROWS_LOOKED_AT, search.splits.looks_at_rows)
    search.node.values = &search.rows.of_gradients
    search.node.pooled = node.node.pooled
    search.node.eras.n_eras = self.n_eras_of_all
    search.node.eras.impurities = &search.impurities[0]
    search.node.eras.era_sizes = &self.era_sizes[0]
    search.node.eras.min_samples = &self.min_samples[0]
    search.node.eras.sum_hessians = node.node.pooled.sum_hessians
    search.node.eras.gradient_variance = self.gradient_variance
    return True


cdef inline void describe_sums(
    NodeSearch search, NodeHistograms histograms
) noexcept nogil:
    """Set the addresses of the sums of a search's node, which `histograms` holds."""
    search.node.bins = histograms.sums
    search.node.n_bins = histograms.n_bins
    search.node.count_bits = histograms.count_bits
    search.node.by_era = histograms.by_era
    search.node.n_by_era = histograms.n_planes * <Py_ssize_t> search.rows.n_eras


cdef inline void search_child(
    SplitterState self, NodeSearch search, grown_node * node, NodeHistograms histograms,
    const uint8_t * is_active, bint defers,
) noexcept nogil:
    """Find the split of a child whose sums are known, on the calling thread."""
    if node.is_leaf:
        return
    begin(self, search, node, defers)
    if search.step == ERAS_ALONE:
        is_active = &histograms.is_listed[0]
    if search.splits.start_node(is_active) and start_node(self, search, node):
        describe_sums(search, histograms)
        search_node(
            search.splits, &self.criterion, search.step, thread_team(0, 1), &node.choice
        )
    mark_if_deferred(self, search, node, histograms)
