"""The best split of a node by a criterion that compares eras, or by the gain.

Everything that a split needs to know of eras stays behind this module: patched upstream
code hands over a node and takes a `SplitInfo` back, and asks for a node's histograms,
of which it reads the sums over all rows of a root. How they are made and scanned is
thus free to change.

A node's histograms are

- nothing (`NodeHistograms` without memory), and then its rows are summed up and scanned
  an era after the other, so that the sums of one era need to be kept at a time; or
- kept for all eras, which makes those of one child a difference.

The steps, for one node:

1. plan: `EraRows` finds the eras among its rows, and the bundles of features to look at
   are chosen;
2. pool and accumulate: the `Accumulator` adds up the rows of all eras by bin, if the
   gain is to choose which splits the eras are asked of; then those of each era, and
   what the era says of each candidate split to its sums, in the `CandidateTable`;
3. merge: what lanes and chunks have added up is merged in the table, and what
   processes have added up that hold other eras (`Exchange`);
4. rank: `rank_bundle` ranks each bundle's candidates, and the best one becomes an
   `EraSplitInfo`. Where features have penalties, they are ranked once without, to know
   the largest key, which penalties are shares of.
"""

from cython.parallel import prange
from libc.math cimport ceil
from libc.string cimport memset

import numpy as np

from sklearn.ensemble._hist_gradient_boosting.common cimport G_H_DTYPE_C

from .._exchange import ALONE
from .candidates.best_split cimport rank_bundle
from .candidates.split_info cimport make_split_info
from .bundles cimport FeatureBundles
from .candidates.table cimport (
    CandidateTable, bundle_candidates, feature_split, is_better, node_struct,
)
from .costs cimport compares_directions_first, stores_histograms
from .rows cimport EraRows
from .tree_data cimport cost_of_feature, describe_tree
from .histograms.accumulate cimport Accumulator
from .histograms.first_look cimport least_estimate
from .._criteria.criterion cimport Criterion, SplitCriterion
from .._criteria.node_formulas cimport node_loss
from .._criteria.ranking cimport (
    directions_alone, gain_alone, gain_beyond_rounding, penalty_unit, with_share_of,
)
from .histograms.stored cimport HistogramStore, NodeHistograms, subtract


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
        self.penalties = penalties
        self.rows = EraRows(
            era_codes, n_eras, row_order, positive_weights, weights, has_weights,
            exchange,
        )
        self.n_eras_of_all = int(*exchange.sum_of(n_eras))
        self.criterion = criterion.params
        self.candidates = CandidateTable()
        self.candidates.criterion = &self.criterion
        self.candidates.tree = &self.tree
        self.accumulator = Accumulator(
            self.rows, self.candidates, weights is not None, exchange
        )
        self.accumulator.tree = &self.tree
        self.store = (
            HistogramStore() if store_budget is None else HistogramStore(store_budget)
        )
        self.compares_targets = weights is not None
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

        Those of a root are made if they are worth keeping; those of a child when its
        sibling's are asked for, in `compute_histograms_subtraction`.
        """
        cdef NodeHistograms histograms
        is_root = self.bundles is None
        histograms = NodeHistograms(self.store, self.rows.n_eras)
        histograms.n_rows = sample_indices.shape[0]
        histograms.sample_indices = sample_indices
        if is_root:
            histograms.sum_gradients, histograms.sum_hessians = self.totals
            self._bundle_features(allowed_features)
            histograms.is_worth_storing = self._is_worth_storing(
                0.5 * histograms.n_rows
            )
            if histograms.is_worth_storing and self._has_room():
                histograms.allocate(
                    self.bundles.n_sums, not self.hessians_are_constant
                )
                self.accumulator.fill(histograms)
        return histograms

    def compute_histograms_subtraction(
        self,
        NodeHistograms parent_histograms,
        NodeHistograms sibling_histograms,
        allowed_features=None,
    ):
        """Histograms of the larger child: its parent's less its sibling's, if kept."""
        cdef:
            NodeHistograms histograms = NodeHistograms(self.store, self.rows.n_eras)
            int i
        histograms.n_rows = parent_histograms.n_rows - sibling_histograms.n_rows
        histograms.is_worth_storing = (
            parent_histograms.is_worth_storing
            and self._is_worth_storing(histograms.n_rows)
        )
        sibling_histograms.is_worth_storing = histograms.is_worth_storing
        if not (
            parent_histograms.is_stored
            and histograms.is_worth_storing
            and self._has_room()
        ):
            return histograms
        sibling_histograms.allocate(
            self.bundles.n_sums, not self.hessians_are_constant
        )
        self.accumulator.fill(sibling_histograms)
        parent_histograms.hand_over(histograms)
        for i in prange(
            self.bundles.n_bundles,
            schedule="static",
            nogil=True,
            num_threads=self.n_threads,
        ):
            subtract(histograms, sibling_histograms, &self.bundles.bundles[i])
        return histograms

    def _is_worth_storing(self, n_rows_saved):
        return (
            self.rows.of_gradients.are_integers
            and not self.compares_targets
            and stores_histograms(
                n_rows_saved,
                self.bundles.n_bundles,
                self.bundles.n_sums,
                self.rows.n_eras,
            )
        )

    def _has_room(self):
        return self.store.has_room_for(
            self.bundles.n_sums * self.rows.n_eras, not self.hessians_are_constant
        )

    def _bundle_features(self, allowed_features):
        """Bundle the features of the tree; all of them, once a fit."""
        features = self._usable_features(allowed_features)
        if features.size < self._usable_features(None).size:
            self.bundles = self._make_bundles(np.sort(features))
        else:
            if self.all_features is None:
                self.all_features = self._make_bundles(np.sort(features))
            self.bundles = self.all_features
        self.candidates.use_bundles(self.bundles)
        self.accumulator.start_tree(self.bundles, self.n_threads)

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
            feature_split best
            node_struct c_node
        is_wanted = self._draw_features(node.allowed_features)
        self.rows.start_node(node.sample_indices)
        self.candidates.n_coverable = self._count_coverable_eras()
        if self.criterion.min_gain_share == 0.0 and not self._has_enough_eras():
            self.n_splittable += 1
            self.n_uncovered += 1
            return None
        self.accumulator.plan(is_wanted)
        if self.accumulator.n_tasks == 0:
            return None
        self._describe(node, &c_node)
        self.accumulator.pool(&c_node, node.histograms)
        if self.criterion.is_gain:
            best = self._choose_by_gain(&c_node)
        elif self.criterion.min_gain_share > 0.0:
            best = self._choose_by_share(&c_node, node.histograms)
        else:
            best = self._choose(&c_node, node.histograms)
        if not best.found:
            return None
        return make_split_info(&self.tree, &self.limits, &best, &c_node)

    cdef feature_split _choose_by_gain(self, const node_struct * node) noexcept:
        """The largest gain, if rounding has not left it over from the node's loss."""
        cdef criterion_struct by_gain = self.criterion
        by_gain.min_gain = gain_beyond_rounding(&self.criterion, node.loss)
        return self._rank_penalised(&by_gain, node)

    cdef feature_split _choose(
        self, const node_struct * node, NodeHistograms histograms
    ) except *:
        """The best of all candidates by the criterion."""
        cdef:
            criterion_struct by_gain = gain_alone(&self.criterion, 0)
            feature_split best
        best = self._compare(&self.criterion, node, histograms)
        if best.found:
            self.n_splittable += 1
        elif self._rank(&by_gain, node).found:
            self.n_splittable += 1
            self._count_if_uncovered(&self.criterion, node)
        return best

    cdef feature_split _choose_by_share(
        self, const node_struct * node, NodeHistograms histograms
    ) except *:
        """The best of the candidates that have a share of the largest gain.

        If the criterion admits none of them, the largest gain decides. Nodes wait in
        the queue by their gains, which is what the two have in common. Where features
        have penalties, it is the largest gain that is left of any, and so are these.
        """
        cdef:
            criterion_struct by_gain = gain_alone(&self.criterion, 0)
            feature_split largest = self._rank(&by_gain, node)
            double unit = largest.rank.gain
            feature_split best
            criterion_struct sharing
        if not largest.found:
            return largest
        if self.tree.penalties != NULL:
            largest = self._rank(&by_gain, node, unit)
            self._rank(&by_gain, node)  # what `shortlist` reads
        self.n_splittable += 1
        best.found = False
        # Of all processes: the gains have been pooled.
        if self.candidates.n_coverable >= self.criterion.min_covered_eras:
            sharing = with_share_of(
                &self.criterion, self._gain_left(&largest, unit)
            )
            self.accumulator.shortlist(sharing.min_gain)
            best = self._compare(&sharing, node, histograms)
            if not best.found:
                self._count_if_uncovered(&sharing, node)
        else:
            self.n_uncovered += 1
        if not best.found:
            best = largest
        best.rank.expansion = self._gain_left(&best, unit)
        best.rank.secondary = 0.0
        return best

    cdef double _gain_left(
        self, const feature_split * split, double unit_of_costs
    ) noexcept:
        """The gain of a split less what its feature costs."""
        return split.rank.gain - cost_of_feature(
            &self.tree, split.feature_idx, unit_of_costs
        )

    cdef feature_split _compare(
        self,
        const criterion_struct * criterion,
        const node_struct * node,
        NodeHistograms histograms,
    ) except *:
        """Ask the eras of all candidates that are planned, and rank these.

        Of many eras, a first look leaves few bundles to compare by the criterion: those
        whose directions tie, or whose gains may be the largest ones. Where features
        have penalties, others may rank above these.
        """
        cdef:
            criterion_struct first = directions_alone(criterion)
            feature_split best
            double least
            bint by_direction = criterion.name == SplitCriterion.DIRECTIONAL
            int n_tasks = self.accumulator.n_tasks
        if n_tasks > 1 and self.tree.penalties == NULL and (
            by_direction and self._compares_directions_first()
            or self.accumulator.estimates_gains(criterion)
        ):
            if not by_direction:
                first = criterion[0]
            self.candidates.criterion = &first
            self.accumulator.looks_first = True
            try:  # processes that exchange sums may fail to
                self.accumulator.accumulate(node, histograms)
            finally:
                self.accumulator.looks_first = False
                self.candidates.criterion = &self.criterion
            best = self._rank(&first, node)
            if not best.found:
                return best
            least = best.rank.primary
            if not by_direction:
                least = least_estimate(self.rows, least)
            self.accumulator.shortlist(least)
            self.accumulator.start_again()
            self.accumulator.accumulate(node, histograms)
            best = self._rank(criterion, node)
            self.accumulator.n_tasks = n_tasks
            if best.found and best.rank.primary >= least:
                return best
            self.accumulator.start_again()
        self.accumulator.accumulate(node, histograms)
        return self._rank_penalised(criterion, node)

    cdef void _count_if_uncovered(
        self, const criterion_struct * criterion, const node_struct * node
    ) noexcept:
        """Count a node that the criterion refuses, if no split covers enough eras."""
        cdef criterion_struct covering = gain_alone(
            criterion, criterion.min_covered_eras
        )
        self.n_uncovered += not self._rank(&covering, node).found

    cdef feature_split _rank_penalised(
        self, const criterion_struct * criterion, const node_struct * node
    ) noexcept:
        """The best of all candidates by a criterion, when features have been paid for.
        """
        cdef:
            criterion_struct unit
            feature_split largest
        if self.tree.penalties == NULL:
            return self._rank(criterion, node)
        unit = penalty_unit(criterion)
        largest = self._rank(&unit, node)
        if not largest.found:
            return largest
        return self._rank(criterion, node, largest.rank.primary)

    cdef feature_split _rank(
        self,
        const criterion_struct * criterion,
        const node_struct * node,
        double unit_of_costs=0.0,
    ) noexcept:
        """The best of all candidates by a criterion, and by what their features cost.
        """
        cdef:
            bundle_candidates * candidates = self.candidates.candidates
            const int * tasks = &self.accumulator.tasks[0]
            int n_tasks = self.accumulator.n_tasks
            const feature_split * best
            int i
        for i in prange(
            n_tasks,
            schedule="static",
            nogil=True,
            num_threads=self.accumulator.threads_for_node(),
        ):
            rank_bundle(
                &self.tree, &self.limits, criterion,
                &self.bundles.bundles[tasks[i]], &candidates[tasks[i]], node,
                unit_of_costs,
            )
        best = &candidates[tasks[0]].best
        for i in range(1, n_tasks):
            if is_better(&candidates[tasks[i]].best, best):
                best = &candidates[tasks[i]].best
        return best[0]

    cdef void _describe(self, node, node_struct * c_node):
        if self.criterion.traits.keeps_impurities:
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

    cdef tree_eras eras_of_tree(self) noexcept:
        """What small nodes have to know of the tree; the splitter keeps the memory."""
        cdef tree_eras eras
        memset(&eras, 0, sizeof(eras))
        eras.criterion = &self.criterion
        eras.pooled.n_eras = self.rows.n_eras
        eras.pooled.era_sizes = &self.era_sizes[0]
        eras.pooled.gradient_variance = self.gradient_variance
        eras.codes = &self.rows.era_codes[0]
        if self.hessians_are_constant and self.rows.of_gradients.are_integers:
            eras.gradient_unit = self.rows.of_gradients.unit
            eras.gradient_scale = self.rows.of_gradients.scale
        if self.compares_targets:
            eras.positive_weights = &self.rows.positive_weights[0]
            eras.weights = &self.rows.weights[0]
        return eras

    cdef bint _compares_directions_first(self) except -1:
        """Whether the node has so many eras, of all processes."""
        cdef double n_present = self.rows.n_present
        if not self.accumulator.is_alone:
            (n_present,) = self.exchange.sum_of(n_present)
        return compares_directions_first(<int> n_present)

    cdef double _count_coverable_eras(self) noexcept:
        """How many eras of this process have rows for both sides of a split."""
        cdef:
            const int * offsets = &self.rows.node_offsets[0]
            long long n_needed = 2 * <long long> self.criterion.min_samples_per_era
            double n_coverable = 0.0
            int era
        for era in range(self.rows.n_eras):
            n_coverable += offsets[era + 1] - offsets[era] >= n_needed
        return n_coverable

    cdef bint _has_enough_eras(self) except -1:
        """Whether all processes have enough eras that can be covered."""
        cdef double n_coverable = self.candidates.n_coverable
        if not self.accumulator.is_alone:
            (n_coverable,) = self.exchange.sum_of(n_coverable)
        return n_coverable >= self.criterion.min_covered_eras

    cdef _draw_features(self, allowed_features):
        """Which features to look at: those allowed, less the ones drawn out.

        The draw is scikit-learn's own, so that `max_features` means the same and uses
        the generator in the same way.
        """
        fraction = self.splitter.feature_fraction_per_split
        features = self._usable_features(allowed_features)
        if fraction < 1.0:
            n_drawn = max(1, int(ceil(fraction * features.size)))
            mask = np.full(features.size, False)
            mask[:n_drawn] = True
            self.splitter.rng.shuffle(mask)
            features = features[mask]
        is_wanted = np.zeros(self.tree.n_features, dtype=np.uint8)
        is_wanted[features] = 1
        return is_wanted

    cdef _usable_features(self, allowed_features):
        """The features allowed (None for all), but for those that a penalty forbids."""
        if allowed_features is None:
            features = np.arange(self.tree.n_features)
        else:
            features = np.asarray(allowed_features, dtype=np.intp)
        if self.penalties is None:
            return features
        return features[np.asarray(self.penalties)[features] < 1.0]
