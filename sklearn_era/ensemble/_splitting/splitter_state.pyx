"""Define the state that all searches of a fit share, and the state of each search."""

import os
from functools import partial

import numpy as np

from .._arrays cimport G_H_DTYPE_C

from ..._eras import min_rows_of_side
from .._exchange import ALONE
from .bundles cimport FeatureBundles
from .candidates.splits cimport CandidateSplits
from .nodes cimport describe_tree
from .rows cimport EraRows
from .store cimport HistogramStore
from .threads cimport PATIENCE


WAYS = (
    "packed sums", "sums by era", "rows looked at", "shares of the gain",
    "first columns", "directions first", "contrasts", "columns of masks",
    "columns of groups", "threads",
)


cdef class NodeSearch:
    """The state of the search for one node's split, in one thread."""

    def __init__(self, EraRows rows):
        self.rows = rows
        self.splits = CandidateSplits(rows)
        self.splits.node = &self.node
        self.impurities = np.zeros(rows.n_eras)
        self.next_child = 2


cdef class SplitterState:
    """State that searches share: rows, criterion, memory, and the tree being grown.

    `start_tree` puts the rows in the order of eras. All trees use the same memory.

    Parameters are the parameters of `EraRows`, the criterion, and `store_budget`, the
    number of bytes for nodes' histograms. `penalties` are in the order of the tree's
    columns; None means zeros. A feature whose penalty is 1 or more is excluded.
    """

    def __init__(
        self, era_codes, int n_eras, row_order, criterion,
        const G_H_DTYPE_C [::1] positive_weights=None,
        const G_H_DTYPE_C [::1] weights=None, bint has_weights=True, store_budget=None,
        exchange=ALONE, const double [::1] penalties=None,
    ):
        self.exchange = exchange
        self.is_alone = exchange.is_alone
        # As OpenMP's threads, those without work sleep at once by this policy.
        sleeps = os.environ.get("OMP_WAIT_POLICY", "").upper() == "PASSIVE"
        self.patience = 0 if sleeps else PATIENCE
        self.penalties = penalties
        self.make_rows = partial(
            EraRows, era_codes, n_eras, row_order, positive_weights, weights,
            has_weights, exchange,
        )
        self.search = NodeSearch(self.make_rows())
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
        """Return whether a criterion in Python computes the keys of splits."""
        return self.splits.custom is not None

    @property
    def ways(self):
        """Return a dict from each path through the code to how often it was taken."""
        cdef NodeSearch search = self.search
        n_taken = np.zeros(len(WAYS), dtype=np.intp)
        while search is not None:
            n_taken += search.splits.n_taken
            search = search.next
        return dict(zip(WAYS, n_taken.tolist(), strict=True))

    def start_tree(self, tree, gradients, hessians, int n_threads):
        """Start a tree: take its data and limits from the attributes of `tree`."""
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
        """Return the given features without those that have a penalty of 1 or more."""
        if self.penalties is None:
            return features
        return features[np.asarray(self.penalties)[features] < 1.0]

    def bundle_features(self, tree, features):
        """Bundle a tree's features, once per fit if trees use all; set up searches."""
        cdef NodeSearch search = self.search
        all_of_fit = self.usable_features(np.arange(self.tree.n_features))
        are_all = features.size == all_of_fit.size
        self.bundles = self.all_features if are_all else None
        if self.bundles is None:
            self.bundles = FeatureBundles(tree, np.sort(features), self.n_threads)
        if are_all:
            self.all_features = self.bundles
        n_searches = 1
        if self.is_alone and not self.is_in_python:
            n_searches = min(self.n_threads, 2 * MAX_AT_ONCE)
        for i in range(n_searches):
            if i > 0:
                if search.next is None:
                    search.next = NodeSearch(self.make_rows())
                    search.next.splits.tree = &self.tree
                search = search.next
                search.rows.take_values(self.rows)
            search.is_active = np.empty(self.tree.n_features, dtype=np.uint8)
            search.splits.use_bundles(self.bundles, self.criterion.n_fields)
            search.splits.use_threads(self.n_threads if i == 0 else 1)
