"""The best split of a node by a criterion that compares eras, or by the gain.

Everything that a split needs to know of eras stays behind this module: patched upstream
code hands over a node and takes a `SplitInfo` back, and asks for a node's histograms,
of which it reads the sums over all rows of a root. How they are made and scanned is
thus free to change.

`EraSplitter.find_node_split` is the pipeline:

    rows of the node
      -> histograms over all eras    the smaller child's from its rows, the other's by
         (`histograms`)              subtraction
      -> gains                       of every candidate split
         (`candidates`, `lanes`)
      -> a list of splits            those with a share of the largest gain
      -> sums over eras              of each split that is listed: rows are summed up
         (`comparison`, `lanes`)     by era on its left side, and sides compared
      -> ranks                       by the criterion's key
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport ceil
from libc.string cimport memset

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common cimport G_H_DTYPE_C

from .._exchange import ALONE
from .lanes.instruction_sets import lane_module
from .bundles cimport FeatureBundles
from .candidates.best cimport best_by_gain, find_gains, rank_splits
from .candidates.split cimport feature_split
from .candidates.split_info cimport make_split_info
from .candidates.splits cimport CandidateSplits
from .comparison cimport EraComparison, threads_for
from .fixed_points cimport n_words_of
from .histograms cimport are_sums_of, are_sums_of_eras, fill, fill_by_era
from .lanes.functions cimport lane_functions
from .rows cimport EraRows
from .store cimport HistogramStore, NodeHistograms
from .tree_data cimport cost_of_feature, describe_tree
from .._criteria.dispatch cimport GAIN
from .._criteria.node_formulas cimport node_loss
from .._criteria.objects cimport Criterion
from .._criteria.ranking cimport (
    gain_alone, gain_beyond_rounding, penalty_unit, with_share_of,
)


cdef enum:
    ROWS_OF_ERA = 24  # from which on a node's sums by era are less work than its rows


cdef class EraSplitter:
    """Finds the best split of a node by a criterion that compares eras.

    One splitter serves a whole fit. For each tree, scikit-learn's grower first has it
    make the histogram builder (`start_tree`) and shows it the plain splitter
    (`use_splitter`), whose partition of the rows it brings into the order of eras. Then
    it asks for the histograms of each node and its split.

    The parameters are those of `EraRows`, the criterion that ranks the splits, and the
    bytes for the histograms that nodes keep (`store_budget`, None for the default).
    `penalties` are those of features, in the order of the tree's columns; None stands
    for zeros. Features of 1 or more are not looked at.
    `n_samples` is the number of rows to the grower: those of all processes.
    `hessians` and `hessians_are_constant` are what the grower looks for in a histogram
    builder; `store` is the memory of the histograms.
    """

    def __init__(
        self,
        era_codes,
        int n_eras,
        row_order,
        Criterion criterion,
        const G_H_DTYPE_C [::1] positive_weights=None,
        const G_H_DTYPE_C [::1] weights=None,
        bint has_weights=True,
        store_budget=None,
        exchange=ALONE,
        const double [::1] penalties=None,
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
        self.splits = CandidateSplits()
        self.splits.tree = &self.tree
        self.splits.limits = &self.limits
        self.splits.functions = <const lane_functions *> PyCapsule_GetPointer(
            lane_module().functions, "lane_functions"
        )
        self.comparison = EraComparison(self.rows, self.splits, exchange)
        self.spare = HistogramStore(2**62)  # for a node that finds no room
        self.store = (
            HistogramStore() if store_budget is None else HistogramStore(store_budget)
        )
        self.impurities = np.zeros(self.rows.n_eras)
        self.era_sizes = np.asarray(self.rows.era_counts, dtype=np.float64)

    @property
    def n_samples(self):
        return int(self.rows.n_samples_of_all)

    def start_tree(
        self, X_binned, n_bins, gradients, hessians, hessians_are_constant, n_threads
    ):
        """Take over the data and the gradients of a tree about to be grown.

        The parameters are those of scikit-learn's `HistogramBuilder`, whose place it
        takes: the grower asks what is returned, the splitter itself, for histograms.
        """
        self.splitter = None  # with 12 bytes a row, before there is the next one
        self.gradients = gradients
        self.hessians = hessians
        self.hessians_are_constant = hessians_are_constant
        self.n_threads = n_threads
        self.store.take_all_back()
        self.spare.take_all_back()
        self.totals = self.rows.start_tree(gradients, hessians, n_threads)
        self.gradient_variance = 1.0
        if self.criterion.normalize_era_gain:
            self.gradient_variance = self.rows.root_variance()
        return self

    def use_splitter(self, splitter):
        """Take over the constraints of a tree, from scikit-learn's splitter of it."""
        if self.rows.order is not None:
            np.asarray(splitter.partition)[:] = self.rows.order
        self.splitter = splitter
        self.bundles = None
        self.all_features_wanted = np.ones(splitter.n_features, dtype=np.uint8)
        self.criterion.l2_regularization = splitter.l2_regularization
        self.criterion.min_gain = splitter.min_gain_to_split
        describe_tree(
            splitter, self.gradients, self.hessians, self.penalties,
            &self.tree, &self.limits,
        )

    def compute_histograms_brute(
        self, const unsigned int [::1] sample_indices, allowed_features=None
    ):
        """Histograms of a node by the allowed features (None for all), or a promise.

        Those of a root are made; those of a child when its sibling's are asked for, in
        `compute_histograms_subtraction`, or when it is to be split.
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
        self,
        NodeHistograms parent_histograms,
        NodeHistograms sibling_histograms,
        allowed_features=None,
    ):
        """Histograms of the larger child: its parent's less its sibling's."""
        cdef NodeHistograms histograms = NodeHistograms(
            self.store,
            sibling_histograms.sample_indices[:0],
            parent_histograms.n_rows - sibling_histograms.n_rows,
        )
        if parent_histograms.is_stored:
            keeps = parent_histograms.by_era != NULL
            if sum_up(self, sibling_histograms, parent_histograms, keeps) is not None:
                parent_histograms.hand_over(histograms)
        return histograms

    def _bundle_features(self, allowed_features):
        """Bundle the features of the tree; all of them, once a fit."""
        features = usable_features(self, allowed_features)
        if features.size < usable_features(self, None).size:
            self.bundles = self._make_bundles(np.sort(features))
        else:
            if self.all_features is None:
                self.all_features = self._make_bundles(np.sort(features))
            self.bundles = self.all_features
        self.splits.use_bundles(self.bundles, self.criterion.n_fields)
        self.comparison.use_threads(self.n_threads)

    def _make_bundles(self, features):
        return FeatureBundles(
            self.splitter.X_binned,
            features,
            self.splitter.n_bins_non_missing,
            self.splitter.has_missing_values,
            self.splitter.is_categorical,
            self.n_threads,
        )

    def find_node_split(self, node):
        """The best admissible split of a node over its features; None without one."""
        cdef:
            NodeHistograms histograms
            node_struct c_node
            feature_split best
        if not start_node(self, node, &c_node):
            return None
        c_node.values = &self.rows.of_gradients
        histograms = histograms_of(self, node)
        c_node.bins = bins_of_all(self, histograms)
        c_node.n_bins = histograms.n_bins
        c_node.by_era = histograms.by_era
        c_node.n_by_era = histograms.n_planes * <Py_ssize_t> self.rows.n_eras
        if self.criterion.name == GAIN:
            best = largest_gain(self, &c_node)
        elif self.criterion.min_gain_share > 0.0:
            best = best_with_share(self, &c_node)
        else:
            best = best_of_all(self, &c_node)
        if not best.found:
            return None
        return make_split_info(&self.tree, &self.limits, &best, &c_node)

    cdef tree_eras eras_of_tree(self) noexcept:
        """What small nodes have to know of the tree; the splitter keeps the memory."""
        cdef tree_eras eras
        memset(&eras, 0, sizeof(eras))
        eras.criterion = &self.criterion
        eras.pooled.n_eras = self.rows.n_eras
        eras.pooled.era_sizes = &self.era_sizes[0]
        eras.pooled.gradient_variance = self.gradient_variance
        eras.codes = &self.rows.era_codes[0]
        if self.hessians_are_constant and not self.rows.of_gradients.has_low_words:
            eras.gradient_unit = self.rows.of_gradients.unit
            eras.gradient_scale = self.rows.of_gradients.scale
        if self.comparison.compares_targets:
            eras.positive_weights = &self.rows.positive_weights[0]
            eras.weights = &self.rows.weights[0]
        return eras


cdef NodeHistograms sum_up(
    EraSplitter self, NodeHistograms histograms, NodeHistograms parent, bint keeps
):
    """Sum up a node's rows, and subtract them from its parent's, if there is room."""
    cdef:
        Py_ssize_t n_rows = histograms.n_rows  # of the node, or the larger child
        Py_ssize_t n_by_era = 0
        int n_threads
    if parent is not None:
        n_rows = parent.n_rows - n_rows
    if keeps and n_rows >= ROWS_OF_ERA * self.rows.n_eras:
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
        fill(histograms, parent, self.rows, &self.tree, self.bundles, n_threads)
    return histograms


cdef bint keeps_eras(EraSplitter self) noexcept:
    """Whether nodes keep the sums of single eras: where all splits are compared, and
    have masks.
    """
    return (
        self.criterion.name != GAIN
        and self.criterion.min_gain_share == 0.0
        and self.bundles.all_have_masks
        and not self.comparison.compares_targets
        and not self.rows.of_gradients.has_low_words
    )


cdef bint start_node(EraSplitter self, node, node_struct * c_node) except -1:
    """Find the eras of a node; return whether it can be split at all."""
    cdef:
        criterion_struct * criterion = &self.criterion
        long long n_needed = 2 * <long long> criterion.min_samples_per_era
    if not self.rows.of_gradients.are_finite:
        return False
    if not self.splits.start_node(draw_features(self, node.allowed_features)):
        return False
    self.rows.start_node(node.sample_indices)
    self.n_coverable = 0.0
    if criterion.name != GAIN:
        self.rows.list_eras(1 if criterion.traits.sees_all_eras else n_needed, n_needed)
        self.n_coverable = over_processes(self, self.rows.n_coverable)
        if criterion.min_gain_share == 0.0 and (
            self.n_coverable < criterion.min_covered_eras
        ):
            self.n_splittable += 1
            self.n_uncovered += 1
            return False
    describe(self, node, c_node)
    return True


cdef NodeHistograms histograms_of(EraSplitter self, node):
    """The node's histograms over all eras."""
    cdef NodeHistograms histograms = node.histograms
    if not histograms.is_stored:
        histograms.sample_indices = node.sample_indices
        # Its eras are listed, as those that it would keep are not: it keeps none.
        if sum_up(self, histograms, None, False) is None:  # there is no room
            histograms = NodeHistograms(self.spare, node.sample_indices, node.n_samples)
            sum_up(self, histograms, None, False)
    assert are_sums_of(histograms, self.bundles, self.rows), "sums of a node"
    assert histograms.by_era == NULL or are_sums_of_eras(
        histograms, self.bundles, self.rows.n_eras
    ), "sums of a node's eras"
    return histograms


cdef const long long * bins_of_all(
    EraSplitter self, NodeHistograms histograms
) except NULL:
    """The sums by bin over all processes, of the features that are wanted."""
    cdef long long [::1] merged
    if self.is_alone:
        return histograms.sums
    sums = histograms.buffer[: histograms.n_planes * histograms.n_bins].copy()
    self.merged = merged = sums
    sums = sums.reshape(histograms.n_planes, -1)
    wanted = self.splits.wanted_bins()
    of_all = self.exchange.sum(sums[:, wanted].astype(np.float64).ravel())
    of_all = of_all.reshape(histograms.n_planes, -1)
    can_be = np.abs(of_all) < 2.0**63
    can_be[0] &= (of_all[0] >= 0) & (of_all[0] < 2.0**32)
    if not can_be.all():
        what = "count {:g} rows in a bin"
        if can_be[0].all():
            what = "have {:g} for a sum by bin"
        raise ValueError(
            f"The workers of the fit {what.format(of_all[~can_be][0])}: a stranger has "
            "joined them, or one of them is damaged."
        )
    sums[:, wanted] = of_all
    return &merged[0]


cdef double over_processes(EraSplitter self, double number) except? -1:
    """The sum of a number over all processes."""
    if not self.is_alone:
        (number,) = self.exchange.sum_of(number)
    return number


cdef feature_split largest_gain(EraSplitter self, const node_struct * node) noexcept:
    """The largest gain, if rounding has not left it over from the node's loss."""
    cdef:
        double least = gain_beyond_rounding(&self.criterion, node.loss)
        feature_split largest
    find_all_gains(self, node)
    largest = best_by_gain(self.splits, node, least, 0.0)
    if largest.found and self.tree.penalties != NULL:
        return best_by_gain(self.splits, node, least, largest.rank.gain)
    return largest


cdef void find_all_gains(EraSplitter self, const node_struct * node) noexcept:
    find_gains(self.splits, node, threads_for(self.n_threads, node.n_bins))


cdef feature_split best_with_share(EraSplitter self, const node_struct * node) except *:
    """The best of the splits that have a share of the largest gain.

    If the criterion admits none of them, the largest gain decides. Nodes wait in
    the queue by their gains, which is what the two have in common. Where features
    have penalties, it is the largest gain that is left of any, and so are these.
    """
    cdef:
        double least = self.criterion.min_gain
        double unit
        feature_split largest, best
        criterion_struct sharing
    find_all_gains(self, node)
    largest = best_by_gain(self.splits, node, least, 0.0)
    if not largest.found:
        return largest
    unit = largest.rank.gain
    if self.tree.penalties != NULL:
        largest = best_by_gain(self.splits, node, least, unit)
    self.n_splittable += 1
    best.found = False
    if self.n_coverable >= self.criterion.min_covered_eras:
        sharing = with_share_of(&self.criterion, gain_left(self, &largest, unit))
        self.comparison.compare(&sharing, node)
        best = rank_penalised(self, &sharing, node)
        if not best.found:
            count_if_uncovered(self, &sharing, node)
    else:
        self.n_uncovered += 1
    if not best.found:
        best = largest
    best.rank.expansion = gain_left(self, &best, unit)
    best.rank.secondary = 0.0
    return best


cdef double gain_left(
    EraSplitter self, const feature_split * split, double unit_of_costs
) noexcept:
    """The gain of a split less what its feature costs."""
    return split.rank.gain - cost_of_feature(
        &self.tree, split.feature_idx, unit_of_costs
    )


cdef feature_split best_of_all(EraSplitter self, const node_struct * node) except *:
    """The best of all candidates by the criterion."""
    cdef feature_split best
    self.comparison.compare(&self.criterion, node)
    best = rank_penalised(self, &self.criterion, node)
    if best.found:
        self.n_splittable += 1
        return best
    find_all_gains(self, node)
    if best_by_gain(self.splits, node, self.criterion.min_gain, 0.0).found:
        self.n_splittable += 1
        count_if_uncovered(self, &self.criterion, node)
    return best


cdef void count_if_uncovered(
    EraSplitter self, const criterion_struct * criterion, const node_struct * node
) noexcept:
    """Count a node that the criterion refuses, if no split covers enough eras."""
    cdef criterion_struct covering = gain_alone(criterion, criterion.min_covered_eras)
    self.n_uncovered += not rank(self, &covering, node, 0.0).found


cdef feature_split rank_penalised(
    EraSplitter self, const criterion_struct * criterion, const node_struct * node
) noexcept:
    """The best of the splits that are listed, when features have been paid for."""
    cdef:
        criterion_struct unit
        feature_split largest
    if self.tree.penalties == NULL:
        return rank(self, criterion, node, 0.0)
    unit = penalty_unit(criterion)
    largest = rank(self, &unit, node, 0.0)
    if not largest.found:
        return largest
    return rank(self, criterion, node, largest.rank.primary)


cdef feature_split rank(
    EraSplitter self,
    const criterion_struct * criterion,
    const node_struct * node,
    double unit_of_costs,
) noexcept:
    return rank_splits(
        self.splits, criterion, node, self.comparison.n_absent, unit_of_costs,
        self.n_threads if self.splits.n_listed > 100 else 1,
    )


cdef void describe(EraSplitter self, node, node_struct * c_node):
    if self.criterion.traits.reads_impurities:
        self.rows.measure_impurities(self.impurities)
    c_node.n_samples = node.n_samples
    c_node.sum_gradients = node.sum_gradients
    c_node.sum_hessians = node.sum_hessians
    c_node.loss = node_loss(node.sum_gradients, node.value)
    c_node.lower_bound = node.children_lower_bound
    c_node.upper_bound = node.children_upper_bound
    c_node.eras.n_eras = self.n_eras_of_all
    c_node.eras.impurities = &self.impurities[0]
    c_node.eras.era_sizes = &self.era_sizes[0]
    c_node.eras.sum_hessians = node.sum_hessians
    c_node.eras.gradient_variance = self.gradient_variance


cdef draw_features(EraSplitter self, allowed_features):
    """Which features to look at: those allowed, less the ones drawn out.

    The draw is scikit-learn's own, so that `max_features` means the same and uses
    the generator in the same way.
    """
    fraction = self.splitter.feature_fraction_per_split
    if allowed_features is None and fraction >= 1.0 and self.penalties is None:
        return self.all_features_wanted
    features = usable_features(self, allowed_features)
    if fraction < 1.0:
        n_drawn = max(1, int(ceil(fraction * features.size)))
        mask = np.full(features.size, False)
        mask[:n_drawn] = True
        self.splitter.rng.shuffle(mask)
        features = features[mask]
    is_wanted = np.zeros(self.tree.n_features, dtype=np.uint8)
    is_wanted[features] = 1
    return is_wanted


cdef usable_features(EraSplitter self, allowed_features):
    """The features allowed (None for all), but for those that a penalty forbids."""
    if allowed_features is None:
        features = np.arange(self.tree.n_features)
    else:
        features = np.asarray(allowed_features, dtype=np.intp)
    if self.penalties is None:
        return features
    return features[np.asarray(self.penalties)[features] < 1.0]
