"""The best split of a node by a criterion that compares eras, or by the gain.

The patched upstream code passes a node and gets a `SplitInfo`; it reads from histograms
only the sums over all rows of a root. `EraSplitter.find_node_split` is the pipeline:

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

from libc.math cimport ceil

import numpy as np

from .._arrays cimport G_H_DTYPE_C
from sklearn.ensemble._hist_gradient_boosting.splitting import SplitInfo

from ..._eras import min_rows_of_side
from .._exchange import ALONE
from .bundles cimport FeatureBundles
from .candidates.splits cimport CandidateSplits, threads_for
from .choice cimport choose_split, chosen_split
from .fixed_points cimport n_words_of
from .histograms cimport fill, fill_by_era
from .lanes.functions cimport node_struct
from .nodes cimport (
    describe_tree, feature_split, pooled_node, side_values, tree_data, values_of_sides,
)
from .rows cimport BITSET_SIZE, EraRows
from .store cimport HistogramStore, NodeHistograms
from .._criteria.dispatch cimport DIRECTIONAL, GAIN
from .._criteria.formulas cimport eras_struct, node_loss


cdef enum:
    ROWS_OF_ERA = 24  # from here on, sums by era are cheaper than a pass over rows
    ROWS_OF_DIRECTION = 64  # the same for directions


cdef class EraSplitter:
    """Finds the best splits of a fit's nodes by a criterion that compares eras.

    For each tree, scikit-learn's grower first calls `start_tree` for a histogram
    builder (hence `hessians` and `hessians_are_constant`), then `use_splitter` with the
    plain splitter, whose partition becomes the rows in the order of eras.

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
        self.impurities = np.zeros(self.rows.n_eras)
        self.era_sizes = np.asarray(self.rows.era_counts, dtype=np.float64)
        self.min_samples = min_rows_of_side(
            self.criterion.min_samples_per_era, np.asarray(self.era_sizes)
        )
        self.criterion.min_samples_per_era = np.max(self.min_samples)

    @property
    def n_samples(self):
        return int(self.rows.n_samples_of_all)

    def start_tree(
        self, X_binned, n_bins, gradients, hessians, hessians_are_constant, n_threads
    ):
        """Start a tree, by the parameters of `HistogramBuilder`; return self."""
        self.splitter = None  # frees 12 bytes a row before the next one exists
        self.gradients = gradients
        self.hessians = hessians
        self.hessians_are_constant = hessians_are_constant
        self.n_threads = n_threads
        self.store.take_all_back()
        self.spare.take_all_back()
        self.totals = self.rows.start_tree(gradients, hessians, n_threads)
        if self.criterion.takes_deviation:
            self.criterion.least_variance = self.rows.compare_squares()
        self.gradient_variance = 1.0
        if self.criterion.normalize_era_gain:
            self.gradient_variance = self.rows.root_variance()
        return self

    def use_splitter(self, splitter):
        """Take over the limits of a tree from scikit-learn's splitter."""
        if self.rows.order is not None:
            np.asarray(splitter.partition)[:] = self.rows.order
        self.splitter = splitter
        self.bundles = None
        self.all_features_active = np.ones(splitter.n_features, dtype=np.uint8)
        self.criterion.l2_regularization = splitter.l2_regularization
        self.criterion.min_gain = splitter.min_gain_to_split
        describe_tree(
            splitter, self.gradients, self.hessians, self.penalties, &self.tree
        )

    def compute_histograms_brute(
        self, const unsigned int [::1] sample_indices, allowed_features=None
    ):
        """Return the histograms of a node: made now for a root, for a child at its
        split or by `compute_histograms_subtraction`.
        """
        cdef NodeHistograms histograms = NodeHistograms(
            self.store, sample_indices, sample_indices.shape[0]
        )
        if self.bundles is None:  # a root
            histograms.sum_gradients, histograms.sum_hessians = self.totals
            self._bundle_features(allowed_features)
            if self.rows.of_gradients.are_finite:
                sum_up(self, histograms, None, keeps_eras(self))
        return histograms

    def compute_histograms_subtraction(
        self, NodeHistograms parent_histograms, NodeHistograms sibling_histograms,
        allowed_features=None,
    ):
        """Return the histograms of the larger child: its parent's less its sibling's.
        """
        cdef NodeHistograms histograms = NodeHistograms(
            self.store, sibling_histograms.sample_indices[:0],
            parent_histograms.n_rows - sibling_histograms.n_rows,
        )
        if parent_histograms.is_stored:
            keeps = parent_histograms.by_era != NULL
            if sum_up(self, sibling_histograms, parent_histograms, keeps) is not None:
                parent_histograms.hand_over(histograms)
        return histograms

    def _bundle_features(self, allowed_features):
        """Bundle the features of the tree; if these are all, once a fit."""
        features = np.sort(usable_features(self, allowed_features))
        are_all = features.size == usable_features(self, None).size
        self.bundles = self.all_features if are_all else None
        if self.bundles is None:
            self.bundles = FeatureBundles(self.splitter, features, self.n_threads)
        if are_all:
            self.all_features = self.bundles
        self.splits.use_bundles(self.bundles, self.criterion.n_fields)
        self.splits.use_threads(self.n_threads)

    def find_node_split(self, node):
        """Return the best admissible split of a node; None without one."""
        cdef:
            NodeHistograms histograms
            node_struct c_node
            chosen_split chosen
            const long long [::1] merged  # bins of all processes
        if not start_node(self, node, &c_node):
            return None
        histograms = histograms_of(self, node)
        c_node.values = &self.rows.of_gradients
        c_node.bins = histograms.sums
        if not self.is_alone:
            merged = histograms.over_processes(self.exchange, self.splits.active_bins())
            c_node.bins = &merged[0]
        c_node.n_bins = histograms.n_bins
        c_node.count_bits = histograms.count_bits
        c_node.by_era = histograms.by_era
        c_node.n_by_era = histograms.n_planes * <Py_ssize_t> self.rows.n_eras
        chosen = choose_split(self.splits, &self.criterion, &c_node)
        self.n_splittable += chosen.is_splittable
        self.n_uncovered += chosen.is_uncovered
        self.n_the_gains += chosen.is_the_gains
        if not chosen.best.found:
            return None
        return make_split_info(&self.tree, &chosen.best, &c_node)


cdef NodeHistograms sum_up(
    EraSplitter self, NodeHistograms histograms, NodeHistograms parent, bint keeps
):
    """Sum up a node's rows and subtract them from its parent's; None without memory."""
    cdef:
        Py_ssize_t n_rows = histograms.n_rows  # later the larger child's
        Py_ssize_t min_rows, n_by_era = 0
        int n_threads
    min_rows = ROWS_OF_DIRECTION if self.criterion.name == DIRECTIONAL else ROWS_OF_ERA
    if parent is not None:
        n_rows = parent.n_rows - n_rows
    if keeps and n_rows >= min_rows * self.rows.n_eras:
        n_by_era = self.bundles.n_lanes * self.rows.n_eras
    if not histograms.allocate(
        self.bundles.n_bins, n_by_era, n_words_of(&self.rows.of_gradients) + 1
    ):
        return None
    if parent is not None and histograms.by_era == NULL:
        parent.by_era = NULL
    self.rows.start_node(histograms.sample_indices)
    n_threads = threads_for(
        self.n_threads, <double> self.rows.n_rows * self.bundles.n_bundles
    )
    if histograms.by_era != NULL:
        fill_by_era(
            histograms, parent, self.rows, self.bundles, self.splits.functions,
            n_threads,
        )
    else:
        fill(
            histograms, parent, self.rows, &self.tree, self.bundles, self.is_alone,
            n_threads,
        )
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


cdef bint start_node(EraSplitter self, node, node_struct * c_node) except -1:
    """Describe a node and list its eras; return whether it may be split."""
    cdef:
        EraRows rows = self.rows
        const criterion_struct * criterion = &self.criterion
    if not rows.of_gradients.are_finite:
        return False
    if not self.splits.start_node(draw_features(self, node.allowed_features)):
        return False
    rows.start_node(node.sample_indices)
    if criterion.name != GAIN:
        rows.list_eras(criterion.traits.sees_all_eras, &self.min_samples[0])
        c_node.n_coverable = rows.n_coverable
        if not self.is_alone:
            (c_node.n_coverable,) = self.exchange.sum_of(c_node.n_coverable)
        if criterion.min_gain_share == 0.0 and (
            c_node.n_coverable < criterion.min_covered_eras
        ):
            self.n_splittable += 1
            self.n_uncovered += 1
            return False
    if criterion.traits.reads_impurities:
        rows.measure_impurities(self.impurities)
    c_node.pooled = pooled_node(
        n_samples=node.n_samples, sum_gradients=node.sum_gradients,
        sum_hessians=node.sum_hessians, loss=node_loss(node.sum_gradients, node.value),
        lower_bound=node.children_lower_bound, upper_bound=node.children_upper_bound,
    )
    c_node.eras = eras_struct(
        n_eras=self.n_eras_of_all, impurities=&self.impurities[0],
        era_sizes=&self.era_sizes[0], min_samples=&self.min_samples[0],
        sum_hessians=node.sum_hessians, gradient_variance=self.gradient_variance,
    )
    return True


cdef NodeHistograms histograms_of(EraSplitter self, node):
    """Return the node's pooled histograms; sum up its rows if they are not stored."""
    cdef NodeHistograms histograms = node.histograms
    if not histograms.is_stored:
        histograms.sample_indices = node.sample_indices
        # Without sums by era, which would list its eras anew.
        if sum_up(self, histograms, None, False) is None:  # beyond the budget
            histograms = NodeHistograms(self.spare, node.sample_indices, node.n_samples)
            sum_up(self, histograms, None, False)
    assert histograms.are_sums_of(
        self.bundles, self.rows, node.sample_indices
    ), "sums of a node and of its eras"
    return histograms


cdef draw_features(EraSplitter self, allowed_features):
    """Return the active features as a mask: allowed, and drawn as by scikit-learn."""
    fraction = self.splitter.feature_fraction_per_split
    if allowed_features is None and fraction >= 1.0 and self.penalties is None:
        return self.all_features_active
    features = usable_features(self, allowed_features)
    if fraction < 1.0:
        n_drawn = max(1, int(ceil(fraction * features.size)))
        mask = np.full(features.size, False)
        mask[:n_drawn] = True
        self.splitter.rng.shuffle(mask)
        features = features[mask]
    is_active = np.zeros(self.tree.n_features, dtype=np.uint8)
    is_active[features] = 1
    return is_active


cdef usable_features(EraSplitter self, allowed_features):
    """Return the allowed features (None for all) with a penalty below 1."""
    if allowed_features is None:
        features = np.arange(self.tree.n_features)
    else:
        features = np.asarray(allowed_features, dtype=np.intp)
    if self.penalties is None:
        return features
    return features[np.asarray(self.penalties)[features] < 1.0]


class EraSplitInfo(SplitInfo):
    """A `SplitInfo` with the `priority` of its node: a tuple of a `split_rank`."""

    def __init__(self, priority, **split_info):
        super().__init__(**split_info)
        self.priority = priority


cdef make_split_info(
    const tree_data * tree, const feature_split * split, const node_struct * node
):
    """Return a node's best split in the form of scikit-learn's grower."""
    cdef:
        side_values values = values_of_sides(
            tree, &node.pooled, split.sum_gradients_left, split.sum_hessians_left
        )
        unsigned int bin_idx = split.bin_idx
        int i
    bitset = None
    if split.is_categorical:
        bitset = np.empty(BITSET_SIZE, dtype=np.uint32)
        for i in range(BITSET_SIZE):
            bitset[i] = split.left_cat_bitset[i]
        # scikit-learn takes a split at the last bin for one between numbers and missing
        # values, and drops its categories. So `bin_idx`, otherwise unused here, must
        # not be the only bin.
        bin_idx = tree.n_bins_non_missing[split.feature_idx] == 1
    return EraSplitInfo(
        priority=(split.rank.priority, split.rank.secondary, split.rank.gain),
        gain=split.rank.gain, feature_idx=split.feature_idx, bin_idx=bin_idx,
        missing_go_to_left=split.missing_go_to_left,
        sum_gradient_left=split.sum_gradients_left,
        sum_hessian_left=split.sum_hessians_left,
        sum_gradient_right=node.pooled.sum_gradients - split.sum_gradients_left,
        sum_hessian_right=node.pooled.sum_hessians - split.sum_hessians_left,
        n_samples_left=split.n_samples_left,
        n_samples_right=node.pooled.n_samples - split.n_samples_left,
        value_left=values.left, value_right=values.right,
        is_categorical=split.is_categorical, left_cat_bitset=bitset,
    )
