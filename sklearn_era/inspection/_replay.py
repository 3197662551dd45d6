"""A fit, run again over given rows: what its splits see of each era."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import _check_y, _num_samples, check_is_fitted

from sklearn_era._eras import EncodedEras, is_fixed, read_eras, weigh_eras
from sklearn_era._scikit_learn import check_sample_weight
from sklearn_era._threads import openmp_threads
from sklearn_era._trees.traversal import leaf_indices, sum_up_tree
from sklearn_era.ensemble._criteria.objects import sum_leaves
from sklearn_era.ensemble._prediction.blocks import BLOCK_VALUES
from sklearn_era.ensemble._splitting.lanes.instruction_sets import lane_module
from sklearn_era.inspection._fit_gradients import gradients_of_fit


class ReplayData(NamedTuple):
    """Rows to run a fit over, checked and encoded as the fit takes them."""

    X: NDArray[np.float64]  # categories encoded, categorical features first
    y: NDArray[np.float64]  # classes as 0..n_classes-1
    sample_weight: NDArray[np.float64] | None  # with class weights
    eras: EncodedEras


class TreeSums(NamedTuple):
    """Sums on either side of the splits of one tree, by era."""

    iteration: int  # or the number of the forest's tree
    output: int  # the class, where each has a tree; else 0
    predictor: TreePredictor
    splits: NDArray[np.intp]  # (n_splits,), indices into the tree's nodes
    left: NDArray[np.float64]  # (n_splits, n_eras, 3): gradients, hessians, rows
    right: NDArray[np.float64]  # as `left`


def check_hist_gradient_boosting(estimator: Any) -> None:
    """Check that `estimator` is a fitted booster or forest of histogram trees."""
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
    estimator: Any, X: Any, y: Any, eras: Any, sample_weight: Any
) -> ReplayData:
    """Check and encode the rows that a fitted model is to be run over."""
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {shape[1]} columns, but {type(estimator).__name__} was fitted to "
            f"{estimator.n_features_in_}; pass the columns of the fit."
        )
    preprocessed = estimator._preprocess_X(X, reset=False)
    y = _check_y(y, estimator=estimator)
    n_samples = _num_samples(preprocessed)
    if y.shape[0] != n_samples:
        raise ValueError(
            f"y has {y.shape[0]} values, but X has {n_samples} rows; pass one value a "
            "row."
        )
    if eras is None:
        raise ValueError("eras is None; pass one label a row of X.")
    encoded_eras = read_eras(eras, X)
    if sample_weight is not None:
        sample_weight = check_sample_weight(sample_weight, X, dtype=np.float64)
    encoded_y = _encode_targets(estimator, y)
    weights = estimator._finalize_sample_weight(sample_weight, encoded_y)
    if is_fixed(weighting := getattr(estimator, "era_weighting", "rows")):
        weights, _ = weigh_eras(encoded_eras, weights, weighting)
    return ReplayData(preprocessed, encoded_y, weights, encoded_eras)


def _encode_targets(estimator: Any, y: NDArray[Any]) -> NDArray[np.float64]:
    if is_classifier(estimator):
        classes = estimator.classes_
        unknown = sorted(set(y.tolist()) - set(classes.tolist()), key=str)
        if unknown:
            raise ValueError(
                f"y has {len(unknown)} class(es) that were not in the fit, the first "
                f"is {unknown[0]!r}; the model knows {classes.tolist()}. Drop these "
                "rows."
            )
    return estimator._encode_y_val(y)


def replay_trees(estimator: Any, data: ReplayData) -> Iterator[TreeSums]:
    """Run a fit over `data` with its trees, and sum by node and era. A booster's
    gradients are taken at the sum of the trees before, a forest's at the mean of the
    rows that the tree has drawn: those of the fit, on its rows. See `gradients_of_fit`.
    """
    with openmp_threads(getattr(estimator, "n_jobs", None), type(estimator).__name__):
        n_threads = _openmp_effective_n_threads()
    fit_gradients = gradients_of_fit(
        estimator, data.y, data.sample_weight, data.eras, n_threads
    )
    leaves = _leaves_by_tree(estimator, data.X, n_threads)
    for iteration, predictors in enumerate(estimator._predictors):
        gradients, hessians = fit_gradients.of_iteration(predictors)
        for output, predictor in enumerate(predictors):
            nodes, leaf_of_row = predictor.nodes, next(leaves)
            sums = sum_leaves(
                leaf_of_row, data.eras.codes, gradients[:, output],
                hessians[:, output], nodes.shape[0], data.eras.labels.size,
            )  # fmt: skip
            values = np.ascontiguousarray(nodes["value"])
            fit_gradients.add_tree(output, values[leaf_of_row.astype(np.intp)])
            splits = sum_up_tree(nodes, sums)
            left, right = sums[nodes["left"][splits]], sums[nodes["right"][splits]]
            yield TreeSums(iteration, output, predictor, splits, left, right)


def _leaves_by_tree(
    estimator: Any, X: NDArray[np.float64], n_threads: int
) -> Iterator[NDArray[np.float64]]:
    """Return the leaf of each row, tree by tree: a prediction of some trees at once,
    each for an output of its own, whose values are the indices of nodes.
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
