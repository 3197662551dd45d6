# The search of one node: described, its eras listed, and what was chosen taken over.

from libc.stdint cimport uint8_t
from libc.string cimport memset

from .candidates.listing cimport mark_features
from .choice cimport (
    ERAS_ALONE, GAINS_ALONE, WHOLE_SEARCH, look_at_rows, search_node,
    wants_to_look_at_rows,
)
from .lanes.functions cimport node_struct
from .nodes cimport chosen_split, grown_node
from .rows cimport EraRows
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
    """Copy the codes of all rows, if searches of nodes may look at their rows."""
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
    SplitterState self, NodeSearch search, grown_node * node
) noexcept nogil:
    """Begin the search for a node's split or, if the node was deferred (queued by its
    largest gain), go on by comparing eras.
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


cdef inline void take_chosen(
    SplitterState self, NodeSearch search, grown_node * node, NodeHistograms histograms
) noexcept nogil:
    """Copy the result of a search to its node; if the comparison of eras has to wait,
    also the features to compare.
    """
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


cdef inline bint start_node(
    SplitterState self, NodeSearch search, EraRows rows, const grown_node * node
) noexcept nogil:
    """Tell a search its node, and list the node's eras; return whether it may split."""
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


cdef inline void describe_sums(
    NodeSearch search, NodeHistograms histograms
) noexcept nogil:
    """Let a search read the sums of its node in `histograms`."""
    search.node.bins = histograms.sums
    search.node.n_bins = histograms.n_bins
    search.node.count_bits = histograms.count_bits
    search.node.by_era = histograms.by_era
    search.node.n_by_era = histograms.n_planes * <Py_ssize_t> search.rows.n_eras


cdef inline void search_child(
    SplitterState self, NodeSearch search, grown_node * node, NodeHistograms histograms,
    const uint8_t * is_active,
) noexcept nogil:
    """Search for the split of a child whose sums are known, on the calling thread."""
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
