"""The best split of a node by a criterion that compares eras, or by the gain.

`EraTreeGrower` passes one node after another; `EraSplitter.find_split` is the pipeline:

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

import numpy as np

from libc.stdint cimport uint8_t
from .._arrays cimport G_H_DTYPE_C

from ..._eras import min_rows_of_side
from .._exchange import ALONE
from .bundles cimport FeatureBundles
from .candidates.splits cimport (
    PACKED_SUMS, SUMS_BY_ERA, CandidateSplits, threads_for,
)
from .choice cimport choose_split, chosen_split
from .fixed_points cimport n_words_of
from .histograms cimport fill, fill_by_era
from .lanes.functions cimport node_struct
from .nodes cimport describe_tree, grown_node
from .rows cimport EraRows
from .store cimport HistogramStore, NodeHistograms
from .._criteria.dispatch cimport DIRECTIONAL, GAIN
from .._criteria.formulas cimport eras_struct


cdef enum:
    ROWS_OF_ERA = 24  # from here on, sums by era are cheaper than a pass over rows
    ROWS_OF_DIRECTION = 64  # the same for directions

WAYS = (
    "packed sums", "sums by era", "rows looked at", "shares of the gain",
    "first columns", "directions first", "contrasts", "columns of masks",
    "columns of groups", "threads",
)


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
        self.rows = EraRows(
            era_codes, n_eras, row_order, positive_weights, weights, has_weights,
            exchange,
        )
        self.n_eras_of_all = int(*exchange.sum_of(n_eras))
        self.criterion = criterion.params
        self.splits = CandidateSplits(self.rows, exchange)
        self.splits.tree = &self.tree
        self.spare = HistogramStore(2**62)  # for nodes beyond the budget
        self.store = HistogramStore(store_budget)
        self.of_all = HistogramStore(store_budget)
        self.partition = np.empty(self.rows.n_samples, dtype=np.uint32)
        self.scratch = np.empty(self.rows.n_samples, dtype=np.uint32)
        self.impurities = np.zeros(self.rows.n_eras)
        self.era_sizes = np.asarray(self.rows.era_counts, dtype=np.float64)
        self.min_samples = min_rows_of_side(
            self.criterion.min_samples_per_era, np.asarray(self.era_sizes)
        )
        self.criterion.min_samples_per_era = np.max(self.min_samples)

    @property
    def ways(self):
        """Return how often the fit took each way of the kernel."""
        return dict(zip(WAYS, self.splits.n_taken, strict=True))

    def start_tree(self, tree, gradients, hessians, int n_threads):
        """Take over the data and limits of a tree, attributes of `tree`, its owner."""
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
        if order is None:
            order = np.arange(self.rows.n_samples, dtype=np.uint32)
        np.asarray(self.partition)[:] = order

    def usable_features(self, features):
        """Return those of some features that have a penalty below 1."""
        if self.penalties is None:
            return features
        return features[np.asarray(self.penalties)[features] < 1.0]

    def bundle_features(self, tree, features):
        """Bundle the features that a tree uses; if these are all, once a fit."""
        all_of_fit = self.usable_features(np.arange(self.tree.n_features))
        are_all = features.size == all_of_fit.size
        self.bundles = self.all_features if are_all else None
        if self.bundles is None:
            self.bundles = FeatureBundles(tree, np.sort(features), self.n_threads)
        if are_all:
            self.all_features = self.bundles
        self.splits.use_bundles(self.bundles, self.criterion.n_fields)
        self.splits.use_threads(self.n_threads)

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

    cdef int release(self, grown_node * node) except -1:
        """Return the memory of a node's sums to the stores."""
        give_back(self.store, &node.slot)
        give_back(self.of_all, &node.slot_of_all)
        return 0

    cdef bint find_split(self, grown_node * node, const uint8_t * is_active) except -1:
        """Find the best admissible split of a node; return whether there is one."""
        cdef:
            NodeHistograms histograms
            node_struct c_node
            chosen_split chosen
            NodeHistograms of_all
        self.n_searched += 1
        self.n_kept += node.slot >= 0
        if not self.splits.start_node(is_active):
            return False
        if not self.is_alone and node.slot_of_all < 0:
            of_all = self.merge(self.of_all, node, node)
            if of_all is None:  # beyond the budget
                of_all = self.merge(self.spare, node, node)
            else:
                node.slot_of_all = of_all.number
        if not start_node(self, node, &c_node):
            return False
        histograms = histograms_of(self, node)
        c_node.values = &self.rows.of_gradients
        c_node.bins = histograms.sums
        if not self.is_alone:
            if node.slot_of_all >= 0:
                of_all = self.of_all.slots[node.slot_of_all]
            c_node.bins = of_all.sums
        c_node.n_bins = histograms.n_bins
        c_node.count_bits = histograms.count_bits
        c_node.by_era = histograms.by_era
        c_node.n_by_era = histograms.n_planes * <Py_ssize_t> self.rows.n_eras
        chosen = choose_split(self.splits, &self.criterion, &c_node)
        self.n_splittable += chosen.is_splittable
        self.n_uncovered += chosen.is_uncovered
        self.n_the_gains += chosen.is_the_gains
        node.split = chosen.best
        if node.slot < 0:  # beyond the budget
            self.spare.take_back(histograms)
        if not self.is_alone and node.slot_of_all < 0:
            self.spare.take_back(of_all)
        return chosen.best.found


cdef int give_back(HistogramStore store, int * slot) except -1:
    """Return a slot to its store, if there is one."""
    if slot[0] >= 0:
        store.free.append(store.slots[slot[0]])
        slot[0] = -1
    return 0


cdef void take_slot(grown_node * node, NodeHistograms histograms) noexcept:
    node.slot = -1 if histograms is None else histograms.number


cdef NodeHistograms sum_up(
    EraSplitter self, HistogramStore store, const grown_node * node,
    NodeHistograms parent, bint keeps
):
    """Sum up a node's rows and subtract them from its parent's; None without memory."""
    cdef:
        NodeHistograms histograms
        Py_ssize_t n_rows = node.n_rows  # later the larger child's
        Py_ssize_t min_rows, n_by_era = 0
        int n_threads
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
    if parent is not None and histograms.by_era == NULL:
        parent.by_era = NULL
    self.rows.start_node(&self.partition[0] + node.node.start, node.n_rows)
    n_threads = threads_for(
        self.n_threads, <double> self.rows.n_rows * self.bundles.n_bundles
    )
    if histograms.by_era != NULL:
        self.splits.n_taken[SUMS_BY_ERA] += 1
        fill_by_era(
            histograms, parent, self.rows, self.bundles, self.splits.functions,
            n_threads,
        )
    else:
        fill(
            histograms, parent, self.rows, &self.tree, self.bundles, self.is_alone,
            n_threads,
        )
    self.splits.n_taken[PACKED_SUMS] += histograms.count_bits > 0
    return histograms


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
    self.rows.list_eras(self.criterion.traits.sees_all_eras, &self.min_samples[0])
    return self.rows.n_coverable


cdef bint start_node(
    EraSplitter self, const grown_node * node, node_struct * c_node
) except -1:
    """Describe a node and list its eras; return whether it may be split."""
    cdef:
        EraRows rows = self.rows
        const criterion_struct * criterion = &self.criterion
    rows.start_node(&self.partition[0] + node.node.start, node.n_rows)
    if criterion.name != GAIN:
        rows.list_eras(criterion.traits.sees_all_eras, &self.min_samples[0])
        c_node.n_coverable = rows.n_coverable
        if not self.is_alone:
            c_node.n_coverable = node.n_coverable
        if criterion.min_gain_share == 0.0 and (
            c_node.n_coverable < criterion.min_covered_eras
        ):
            self.n_splittable += 1
            self.n_uncovered += 1
            return False
    if criterion.traits.reads_impurities:
        rows.measure_impurities(self.impurities)
    c_node.pooled = node.node.pooled
    c_node.eras = eras_struct(
        n_eras=self.n_eras_of_all, impurities=&self.impurities[0],
        era_sizes=&self.era_sizes[0], min_samples=&self.min_samples[0],
        sum_hessians=node.node.pooled.sum_hessians,
        gradient_variance=self.gradient_variance,
    )
    return True


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
