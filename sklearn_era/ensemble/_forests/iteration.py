"""Run an iteration of a forest's fit: draw rows, and grow a tree for each output."""

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from ..._eras import Array, EncodedEras
from ..._trees.traversal import leaf_indices, sum_up_tree
from .._binning.integers import find_missing_values, take_rows
from .._criterion_plan import CriterionPlan, choose_splitter, least_gain
from .._splitting.splitter import EraSplitter
from .._splitting.store import STORE_BUDGET
from .checks import number_of_features
from .sampling import TreeRows, draw_tree_rows, merge_into_segments
from .tree_grower import TreeBins, TreeLimits, grow_tree


class TrainingSet(NamedTuple):
    """The training data of all trees of a forest."""

    X_binned: NDArray[np.uint8]  # (n_samples, n_features), Fortran-ordered
    targets: Array  # (n_samples, n_outputs); 0 and 1 for classes
    sample_weight: Array | None
    era_columns: list[EncodedEras]  # one for each column of eras
    plan: CriterionPlan
    penalties: Array | None = None  # (n_features,)
    order: NDArray[np.uint32] | None = None  # of a `BinnedDataset`


class IterationMixin(gradient_boosting.BaseHistGradientBoosting):
    """The part of a forest's fit that runs in threads; the forest stays unchanged."""

    def _draw(
        self, training: TrainingSet, iteration: int
    ) -> tuple[np.random.Generator, TreeRows]:
        """Return an iteration's random generator and drawn rows. Both depend only on
        the seed and the number of the iteration.
        """
        rng = np.random.default_rng([self._forest_seed, iteration])
        eras = None
        if training.era_columns:
            eras = training.era_columns[rng.integers(len(training.era_columns))]
            if self.random_segments is not None:
                n_segments = rng.integers(2, self.random_segments, endpoint=True)
                eras = merge_into_segments(eras, int(n_segments))
        n_samples = training.X_binned.shape[0]
        return rng, draw_tree_rows(
            rng, n_samples, eras, self.bootstrap, self.max_samples
        )

    def _grow_iteration(
        self, training: TrainingSet, iteration: int, n_threads: int, n_workers: int
    ) -> list[TreePredictor]:
        """Return one tree for each output, all grown on the same drawn rows. Each of
        `n_workers` threads calls this method, and they share `n_threads`.
        """
        n_threads //= n_workers
        rng, drawn = self._draw(training, iteration)
        targets, sample_weight = training.targets, training.sample_weight
        rows = drawn.rows
        if rows is None:
            rows = np.arange(targets.shape[0])
        else:
            targets = targets[rows]
            if sample_weight is not None:
                sample_weight = sample_weight[rows]
        # Among equally good splits, the grower takes the first feature's, and nodes
        # with few rows have many. So each tree has its own order of features: with one
        # for all, the first of ten noise columns would have almost twice the importance
        # of the last.
        usable, penalties = _usable_columns(training)
        columns = usable[rng.permutation(usable.size)]
        X_binned = take_rows(training.X_binned, rows, columns, n_threads)
        bins = self._tree_bins(X_binned, columns)
        splitter = choose_splitter(
            self, training.plan, drawn.eras, targets[:, 0], sample_weight,
            partial(EraSplitter, store_budget=STORE_BUDGET // n_workers),
            penalties=None if penalties is None else penalties[columns],
        )  # fmt: skip
        total = rows.size if sample_weight is None else float(sample_weight.sum())
        limits = TreeLimits(
            self.max_depth, self.max_leaf_nodes, self.min_samples_leaf,
            least_gain(self, total), self.l2_regularization,
            number_of_features(self.max_features, columns.size),
        )  # fmt: skip
        has_weight = sample_weight is None or sample_weight.any()
        predictors = []
        for target, all_targets in zip(targets.T, training.targets.T, strict=True):
            if has_weight:
                mean = np.average(target, weights=sample_weight)
            else:
                mean = np.average(all_targets, weights=training.sample_weight)
            gradients = mean - target
            hessians = np.ones(1, dtype=np.float32)
            if sample_weight is not None:
                gradients *= sample_weight
                hessians = sample_weight.astype(np.float32)
            predictor = grow_tree(
                X_binned, gradients.astype(np.float32), hessians, bins=bins,
                limits=limits, rng=rng, n_threads=n_threads, era_splitter=splitter,
            )  # fmt: skip
            # The grower computes the values from gradients in single precision.
            predictor.nodes["value"] = _node_means(
                predictor, X_binned, bins.n_bins - 1, target, sample_weight, mean,
                self.l2_regularization, n_threads,
            )  # fmt: skip
            is_split = predictor.nodes["is_leaf"] == 0
            features = predictor.nodes["feature_idx"][is_split]
            predictor.nodes["feature_idx"][is_split] = columns[features]  # columns of X
            predictors.append(predictor)
        return predictors

    def _tree_bins(
        self, X_binned: NDArray[np.uint8], columns: NDArray[np.intp]
    ) -> TreeBins:
        """Return the `TreeBins` of the columns of a tree, for the tree's grower."""
        mapper = self._bin_mapper
        return TreeBins(
            n_bins=self.max_bins + 1,
            n_bins_non_missing=mapper.n_bins_non_missing_[columns],
            has_missing_values=find_missing_values(X_binned, mapper),
            is_categorical=mapper.is_categorical_[columns],
            bin_thresholds=[mapper.bin_thresholds_[j] for j in columns],
        )


def _usable_columns(training: TrainingSet) -> tuple[NDArray[np.intp], Array | None]:
    """Return the columns that no penalty excludes, and the penalties of all columns;
    return None in place of the penalties if they are 0 for the columns returned.
    """
    penalties = training.penalties
    if penalties is None:
        return np.arange(training.X_binned.shape[1]), None
    usable = np.flatnonzero(penalties < 1.0)
    return usable, penalties if penalties[usable].any() else None


def _node_means(
    predictor: TreePredictor, X_binned: NDArray[np.uint8], missing_values_bin_idx: int,
    target: Array, sample_weight: Array | None, mean: float, l2_regularization: float,
    n_threads: int,
) -> Array:  # fmt: skip
    """Return ``(sum(w y) + l2 mean) / (sum(w) + l2)`` of each node, or `mean` if a node
    has no weight. In double precision, proportions in pure leaves are exactly 0 or 1.
    """
    nodes = predictor.nodes
    leaves = leaf_indices(predictor).predict_binned(
        X_binned, missing_values_bin_idx, n_threads
    )
    n_nodes, leaf_of_row = nodes.shape[0], leaves.astype(np.intp)
    weighted = target if sample_weight is None else sample_weight * target
    sums = np.empty((n_nodes, 2))
    for j, values in enumerate((weighted, sample_weight)):
        sums[:, j] = np.bincount(leaf_of_row, values, minlength=n_nodes)
    sum_up_tree(nodes, sums)
    total, weight = (sums + np.array([mean, 1.0]) * l2_regularization).T
    return np.divide(total, weight, out=np.full(n_nodes, mean), where=weight > 0)
