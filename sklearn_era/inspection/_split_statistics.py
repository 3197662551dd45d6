"""Compute gains and directions of a model's splits by era, and gains by feature."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch
from sklearn.utils._param_validation import validate_parameter_constraints

from .._era_labels import label_texts
from .._eras import min_rows_of_side
from .._optional import import_optional
from .._trees.traversal import column_of_feature
from .._typing import Eras, Estimator, Table
from ..ensemble._criteria.objects import EraComparison, compare_sides
from ..ensemble._parameter_table import CONSTRAINTS
from ._features import as_frames, feature_names, left_categories
from ._replay import ReplayData, TreeSums, check_replay_data, replay_trees

# The columns with a value a split, in the order of the data frame.
_COLUMNS: dict[str, Any] = {
    "iteration": np.int64, "tree": np.int64, "class_label": object, "node": np.int64,
    "depth": np.int64, "feature": np.int64, "feature_name": object,
    "threshold": np.float64, "left_categories": object, "missing_go_to_left": np.bool_,
    "count": np.int64, "gain": np.float64, "direction_agreement": np.float64,
    "n_eras_covered": np.int64, "count_in_fit": np.int64, "gain_in_fit": np.float64,
}  # fmt: skip
# Those with a value a split and era, and the names of columns of the data frame.
_ERA_COLUMNS: dict[str, tuple[Any, str]] = {
    "era_gains": (np.float64, "gain"),
    "era_directions": (np.int8, "direction"),
    "era_counts": (np.int64, "count"),
}


def split_statistics(
    estimator: BaseEstimator, X: Table, y: ArrayLike, *, eras: Eras,
    sample_weight: ArrayLike | None = None, min_samples_per_era: float | None = None,
    as_frame: bool = False,
) -> Any:  # fmt: skip
    """Tabulate the splits of a fitted model with their gain in every era.

    The rows of `X` go down the fitted trees; in a forest, all rows go down each tree.
    In a booster, gradients and hessians of an iteration are taken at the sum of all
    earlier trees; in a forest, at the mean target of the rows that the tree drew. Sums
    on both sides of a split give the split's gain and direction, over all rows and in
    each era. On the rows of the fit, these are the numbers that the fit used; on other
    rows, they show whether the split holds there.

    Parameters
    ----------
    estimator : HistGradientBoostingRegressor, HistGradientBoostingClassifier, \
            EraForestRegressor or EraForestClassifier
        A fitted model; a booster may be scikit-learn's.
    X : array-like of shape (n_samples, n_features)
        The rows: those of the fit or others.
    y : array-like of shape (n_samples,)
        Targets of the rows.
    eras : array-like of shape (n_samples,) or str
        Eras of the rows, known to the fit or not; or the name of a column of `X`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows. They are multiplied by the estimator's `class_weight`, as
        in ``fit``; "balanced" is computed from these rows.
    min_samples_per_era : int or float, default=None
        Rows that an era needs on each side of a split to be covered, that is, to have a
        gain and a direction. None takes the estimator's value, or 1 if it has none; a
        value below 1 is a share of the era's rows in `X`.
    as_frame : bool, default=False
        Whether to return a pandas DataFrame.

    Returns
    -------
    statistics : Bunch or DataFrame
        A row for each split, by iteration, tree and node. Arrays have the shape
        (n_splits,), unless another one is given:

        iteration, tree, node, depth : int64
            The boosting iteration, or the forest's tree; the tree, counted over all
            iterations and classes; the node; and its depth; all from 0.
        class_label, feature_name : object
            With more than two classes, the class of the tree, else None; and the name
            of the column that the split uses, or ``x0``, ``x1``, ... without names.
        feature, count, n_eras_covered : int64
            The index of this column; the number of rows in the node; and the number of
            eras with `min_samples_per_era` rows on each side.
        threshold, left_categories : float64, object
            The value up to which rows go left: inf if the split separates missing
            values from all others, NaN for a split by categories; and a tuple of the
            categories that go left, None for other splits.
        missing_go_to_left : bool
            Whether missing values, and categories new to the fit, go left.
        gain, era_gains : float64, the latter of shape (n_splits, n_eras)
            Gain over all rows, ``G_L^2 / (H_L + l2) + G_R^2 / (H_R + l2) - G^2 / (H +
            l2)``, and within each era; 0 where a side is empty, or the era not covered.
        era_directions : int8, of shape (n_splits, n_eras)
            1 where the left side predicts more in the era, -1 where the right side
            does, and 0 where neither does, or where a side lacks rows or weight.
        era_counts : int64, of shape (n_splits, n_eras)
            Rows of each era in the node.
        direction_agreement : float64
            ``|sum_j direction_j| / n_eras``, in [0, 1]; equation 39 of [1]_.
        count_in_fit, gain_in_fit : int64, float64
            The number of rows and the gain that the fit stored in the tree.

        The Bunch holds ``era_labels`` too, of shape (n_eras,). A data frame has a
        column for each era instead, such as ``gain[week 1]``.

    Raises
    ------
    ValueError
        If `estimator` is of another class, the columns of `X` are not those of the fit,
        lengths differ, a label is missing, `y` has a class that the fit has not seen,
        or `min_samples_per_era` is invalid.
    NotFittedError, MissingPackageError
        If `estimator` is not fitted, or pandas is not installed with ``as_frame=True``.

    Notes
    -----
    On the rows of a fit, `gain` equals `gain_in_fit` up to rounding, except for roots,
    whose stored gain leaves ``G^2 / (H + l2)`` out; monotonic constraints, under which
    the fit stores the gain of clipped values; rows held out for early stopping; warm
    starts with other rows; and the bootstraps of a forest. The arrays by era take 17
    bytes per split and era.

    References
    ----------
    .. [1] T. DeLise (2023), Era Splitting: Invariant Learning for Decision Trees.
       :arxiv:`2309.14496`

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import split_statistics
    >>> X, eras = np.arange(200.0)[:, np.newaxis], np.arange(200) % 4
    >>> y = X[:, 0] * np.where(eras == 3, -1, 1)
    >>> model = HistGradientBoostingRegressor(max_iter=1).fit(X, y)
    >>> split_statistics(model, X, y, eras=eras).era_directions[0].tolist()
    [-1, -1, -1, 1]
    """
    pandas = import_optional("pandas", extra="cli") if as_frame else None
    data = check_replay_data(estimator, X, y, eras, sample_weight)
    labels, n_eras = data.eras.labels, data.eras.labels.size
    trees = (tree for trees in estimator._predictors for tree in trees)
    n_splits = sum(int((tree.nodes["is_leaf"] == 0).sum()) for tree in trees)
    statistics = {name: np.empty(n_splits, dtype) for name, dtype in _COLUMNS.items()}
    for name, (dtype, _) in _ERA_COLUMNS.items():
        statistics[name] = np.empty((n_splits, n_eras), dtype)
    columns, names = column_of_feature(estimator), feature_names(estimator)
    n_outputs, stop = estimator.n_trees_per_iteration_, 0
    for sums, pooled, by_era in _compare_trees(estimator, data, min_samples_per_era):
        start, stop = stop, stop + sums.splits.size
        tree = sums.predictor
        nodes = tree.nodes[sums.splits]
        counts = (sums.left[..., 2] + sums.right[..., 2]).astype(np.int64)
        thresholds = np.where(nodes["is_categorical"], np.nan, nodes["num_threshold"])
        categories = (left_categories(estimator, tree, split) for split in sums.splits)
        features = columns[nodes["feature_idx"]]
        found = {
            "iteration": sums.iteration,
            "tree": sums.iteration * n_outputs + sums.output,
            "class_label": estimator.classes_[sums.output] if n_outputs > 1 else None,
            "node": sums.splits, "depth": nodes["depth"], "feature": features,
            "feature_name": names[features], "threshold": thresholds,
            "left_categories": np.fromiter(categories, dtype=object),
            "missing_go_to_left": nodes["missing_go_to_left"],
            "count": counts.sum(axis=1), "gain": pooled.gains[:, 0],
            "direction_agreement": np.abs(by_era.directions.mean(axis=1)),
            "n_eras_covered": by_era.covered.sum(axis=1),
            "count_in_fit": nodes["count"], "gain_in_fit": nodes["gain"],
            "era_gains": by_era.gains, "era_directions": by_era.directions,
            "era_counts": counts,
        }  # fmt: skip
        for name, values in found.items():
            statistics[name][start:stop] = values
    if pandas is None:
        return Bunch(era_labels=labels, **statistics)
    frame = {name: statistics[name] for name in _COLUMNS}
    for name, (_, prefix) in _ERA_COLUMNS.items():
        for era, label in enumerate(label_texts(labels)):
            frame[f"{prefix}[{label}]"] = statistics[name][:, era]
    return pandas.DataFrame(frame)


def era_feature_importances(
    estimator: Estimator, X: Table, y: ArrayLike, *, eras: Eras,
    sample_weight: ArrayLike | None = None, min_samples_per_era: float | None = None,
    normalize: bool = False, as_frame: bool = False,
) -> Bunch:  # fmt: skip
    """Sum the gains of a model's splits by feature, in every era.

    The importance of a feature in an era is the sum of the era's `era_gains` of
    `split_statistics` over all splits by the feature, in all trees of a booster or
    forest. A gain is for the best values within the era, whether or not eras agree on a
    direction: for directions see `era_directions` of `split_statistics`.

    Parameters
    ----------
    estimator, X, y, eras, sample_weight, min_samples_per_era :
        As `split_statistics` takes them.
    normalize : bool, default=False
        Whether to divide each era's importances, and the pooled ones, by the sum of
        their absolute values, unless this sum is 0.
    as_frame : bool, default=False
        Whether to return pandas objects in the Bunch.

    Returns
    -------
    result : Bunch
        With the fields

        importances, pooled : ndarray of shape (n_eras, n_features), (n_features,)
            The sums of gains in each era, and of gains over all rows.
        era_labels, feature_names : ndarray of shape (n_eras,), (n_features,)
            The sorted labels; and the names of columns, else ``x0``, ``x1``, ...

    Raises
    ------
    ValueError, NotFittedError, MissingPackageError
        As `split_statistics`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import era_feature_importances
    >>> X, eras = np.random.default_rng(0).normal(size=(400, 2)), np.arange(400) % 2
    >>> y = X[np.arange(400), eras]  # the first column in one era, then the second
    >>> model = HistGradientBoostingRegressor().fit(X, y)
    >>> result = era_feature_importances(model, X, y, eras=eras)
    >>> result.importances.argmax(axis=1).tolist()
    [0, 1]
    """
    pandas = import_optional("pandas", extra="cli") if as_frame else None
    data = check_replay_data(estimator, X, y, eras, sample_weight)
    labels, names = data.eras.labels, feature_names(estimator)
    columns = column_of_feature(estimator)
    # The last row is that of all rows.
    gains = np.zeros((names.size, labels.size + 1))
    for sums, pooled, by_era in _compare_trees(estimator, data, min_samples_per_era):
        features = columns[sums.predictor.nodes["feature_idx"][sums.splits]]
        np.add.at(gains, features, np.hstack([by_era.gains, pooled.gains]))
    if normalize:
        totals = np.abs(gains).sum(axis=0)
        gains /= np.where(totals > 0, totals, 1.0)
    *importances, pooled_gains = gains.T
    result = Bunch(
        importances=np.array(importances), pooled=pooled_gains, era_labels=labels,
        feature_names=names,
    )  # fmt: skip
    return result if pandas is None else as_frames(result, pandas)


def _compare_trees(
    estimator: BaseEstimator, data: ReplayData, minimum: float | None
) -> Iterator[tuple[TreeSums, EraComparison, EraComparison]]:
    """Yield three results for each tree: the sums by era on both sides of its splits; a
    comparison of the two sides over all rows; and a comparison in each era.
    """
    if minimum is None:
        minimum = getattr(estimator, "min_samples_per_era", 1)
    valid = CONSTRAINTS["min_samples_per_era"]
    validate_parameter_constraints(
        {"min_samples_per_era": valid}, {"min_samples_per_era": minimum},
        caller_name="the inspection of splits",
    )  # fmt: skip
    minima = min_rows_of_side(minimum, data.eras.counts)
    l2 = float(estimator.l2_regularization)
    for sums in replay_trees(estimator, data):
        sides = sums.left, sums.right
        totals = (side.sum(axis=1, keepdims=True) for side in sides)
        pooled = compare_sides(*totals, l2_regularization=l2)
        by_era = compare_sides(*sides, l2_regularization=l2, min_samples_per_era=minima)
        yield sums, pooled, by_era
