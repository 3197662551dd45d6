"""Compute a fitted model's gradients over rows, and their sums by split and era."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.common import G_H_DTYPE, Y_DTYPE
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._era_columns import take_era_column
from .._era_labels import find
from .._eras import EncodedEras, is_fixed, read_eras, weigh_eras
from .._scikit_learn import check_sample_weight
from .._tables.columns import columns_of_fit
from .._tables.target import check_y
from .._threads import openmp_threads
from .._trees.traversal import leaf_indices, sum_up_tree
from .._typing import Eras, Estimator
from ..ensemble._boosters.era_weights import weights_by_label
from ..ensemble._criteria.objects import sum_leaves
from ..ensemble._forests.fit import ForestFitMixin
from ..ensemble._prediction.blocks import BLOCK_VALUES
from ..ensemble._splitting.lanes.instruction_sets import lane_module

Array = NDArray[np.float64]
Gradients = tuple[NDArray[np.float32], NDArray[np.float32]]  # of rows and outputs
# Gradients and hessians of an iteration at the raw predictions of all earlier trees.
Compute = Callable[[int, Array], Gradients]


class ReplayData(NamedTuple):
    """Rows to compute a model's gradients for, checked and encoded as in its `fit`."""

    X: Array  # categories encoded, categorical features first
    y: Array  # classes as 0..n_classes-1
    sample_weight: Array | None  # with class weights
    eras: EncodedEras


class TreeSums(NamedTuple):
    """Sums of gradients, hessians and rows by era, on each side of a tree's splits."""

    iteration: int  # or the number of the forest's tree
    output: int  # the class, where each has a tree; else 0
    predictor: TreePredictor
    splits: NDArray[np.intp]  # (n_splits,), indices into the tree's nodes
    left: Array  # (n_splits, n_eras, 3): gradients, hessians, rows
    right: Array  # as `left`


def check_hist_gradient_boosting(estimator: Estimator) -> None:
    """Raise an error unless `estimator` is a fitted model of histogram trees."""
    if not isinstance(estimator, BaseHistGradientBoosting):
        raise ValueError(
            "estimator must be a HistGradientBoostingRegressor or "
            "HistGradientBoostingClassifier, of sklearn_era or of scikit-learn, or an "
            f"EraForestRegressor or EraForestClassifier; got {estimator!r}. Of a "
            "pipeline, pass the last step, and X as it reaches that; of EraSearchCV "
            "its best_estimator_, and of AutoEra one of its members_."
        )
    check_is_fitted(estimator)


def check_replay_data(
    estimator: BaseEstimator, X: Any, y: Any, eras: Eras | None, sample_weight: Any
) -> ReplayData:
    """Check and encode rows as in `fit`, to compute a model's gradients for them."""
    check_hist_gradient_boosting(estimator)
    X, eras = take_era_column(X, eras)
    preprocessed = estimator._preprocess_X(columns_of_fit(estimator, X), reset=False)
    y = check_y(y, estimator)
    n_samples = _num_samples(preprocessed)
    if y.shape[0] != n_samples:
        raise ValueError(
            f"y has {y.shape[0]} values, but X has {n_samples} rows; pass one value a "
            "row."
        )
    encoded_eras = read_eras(eras, X)
    if sample_weight is not None:
        sample_weight = check_sample_weight(sample_weight, X, dtype=np.float64)
    encoded_y = estimator._encode_y_val(y)
    weights = estimator._finalize_sample_weight(sample_weight, encoded_y)
    if is_fixed(weighting := getattr(estimator, "era_weighting", "rows")):
        weights, _ = weigh_eras(encoded_eras, weights, weighting)
    return ReplayData(preprocessed, encoded_y, weights, encoded_eras)


def replay_trees(estimator: BaseEstimator, data: ReplayData) -> Iterator[TreeSums]:
    """Yield a `TreeSums` over `data` for each tree. A booster's gradients are taken at
    the predictions of all earlier trees; a forest's gradients are taken at the mean
    target of the rows that the tree drew.
    """
    if hasattr(estimator, "_era_intercepts"):
        raise ValueError(
            "era_effects: the trees were grown beside intercepts of eras that moved "
            "with each iteration, and their gradients cannot be found again. Fit with "
            "era_effects=None to look into splits."
        )
    with openmp_threads(getattr(estimator, "n_jobs", None), type(estimator).__name__):
        n_threads = _openmp_effective_n_threads()
    is_forest = isinstance(estimator, ForestFitMixin)
    make_gradients = _forest_gradients if is_forest else _boosting_gradients
    compute = make_gradients(estimator, data, n_threads)
    shape = (data.y.shape[0], estimator.n_trees_per_iteration_)
    raw_predictions = np.zeros(shape, dtype=Y_DTYPE, order="F")
    raw_predictions += estimator._baseline_prediction
    leaves = _leaves_by_tree(estimator, data.X, n_threads)
    for iteration, predictors in enumerate(estimator._predictors):
        gradients, hessians = compute(iteration, raw_predictions)
        for output, predictor in enumerate(predictors):
            nodes, leaf_of_row = predictor.nodes, next(leaves)
            sums = sum_leaves(
                leaf_of_row, data.eras.codes, gradients[:, output],
                hessians[:, output], nodes.shape[0], data.eras.labels.size,
            )  # fmt: skip
            values = np.ascontiguousarray(nodes["value"])
            raw_predictions[:, output] += values[leaf_of_row.astype(np.intp)]
            splits = sum_up_tree(nodes, sums)
            left, right = sums[nodes["left"][splits]], sums[nodes["right"][splits]]
            yield TreeSums(iteration, output, predictor, splits, left, right)


def _leaves_by_tree(
    estimator: BaseEstimator, X: Array, n_threads: int
) -> Iterator[Array]:
    """Yield for each tree the index of each row's leaf. Several trees are predicted at
    once, as outputs of one model whose values are the indices of nodes.
    """
    known = estimator._bin_mapper.make_known_categories_bitsets()
    add_trees = lane_module("sklearn_era.ensemble._prediction.trees").add_trees
    trees = [leaf_indices(tree) for trees in estimator._predictors for tree in trees]
    n_trees = max(1, BLOCK_VALUES // max(1, X.shape[0]))
    for start in range(0, len(trees), n_trees):
        some = trees[start : start + n_trees]
        leaves = np.zeros((X.shape[0], len(some)), order="F")
        add_trees(X, [some], *known, leaves, n_threads)
        yield from leaves.T


def _boosting_gradients(
    estimator: BaseEstimator, data: ReplayData, n_threads: int
) -> Compute:
    """Return a function that computes gradients of a booster's loss."""
    factors = None
    if hasattr(estimator, "_era_log_weights"):
        # As recorded: a warm start may have changed the step. Other eras count 1.
        known = np.stack([*weights_by_label(estimator).values()])
        at = find(estimator._weighted_eras, data.eras.labels)
        of_eras = np.where(at[:, np.newaxis] < 0, 1.0, known[at])
        factors = np.nan_to_num(of_eras, nan=1.0)
    shape = (data.y.shape[0], estimator.n_trees_per_iteration_)
    gradients = np.empty(shape, dtype=G_H_DTYPE, order="F")
    hessians = np.empty(shape, dtype=G_H_DTYPE, order="F")
    columns = 0 if shape[1] == 1 else slice(None)

    def compute(iteration: int, raw_predictions: Array) -> Gradients:
        weights = data.sample_weight
        if factors is not None:
            of_rows = factors[data.eras.codes, iteration]
            weights = of_rows * (1.0 if weights is None else weights)
        # Hessians are always filled in: if those of the loss are constant, it is by the
        # weights of the fit, and not by those given.
        estimator._loss.gradient_hessian(
            y_true=data.y, raw_prediction=raw_predictions, sample_weight=weights,
            gradient_out=gradients[:, columns], hessian_out=hessians[:, columns],
            n_threads=n_threads,
        )  # fmt: skip
        return gradients, hessians

    return compute


def _forest_gradients(
    estimator: BaseEstimator, data: ReplayData, n_threads: int
) -> Compute:
    """Return a function that computes gradients of the squared error. Gradients are
    taken at the mean target of the rows that a tree drew, as no tree of a forest builds
    on another one.
    """
    targets = estimator._make_targets(data.y)
    weights = 1.0 if data.sample_weight is None else data.sample_weight
    weights = np.broadcast_to(weights, data.y.shape[:1])[:, np.newaxis]
    hessians = np.empty(targets.shape, dtype=G_H_DTYPE, order="F")
    hessians[:] = weights

    def compute(iteration: int, raw_predictions: Array) -> Gradients:
        # A root has its tree's mean, divided like all values by the number of trees.
        trees = estimator._predictors[iteration]
        roots = np.array([tree.nodes["value"][0] for tree in trees])
        gradients = weights * (estimator.n_iter_ * roots - targets)
        return gradients.astype(G_H_DTYPE), hessians

    return compute
