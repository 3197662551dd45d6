"""Which features carry the splits, era by era."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sklearn_era._optional import import_optional
from sklearn_era._trees.traversal import column_of_feature
from sklearn_era.inspection._features import as_frames, feature_names
from sklearn_era.inspection._replay import (
    check_hist_gradient_boosting,
    check_replay_data,
)
from sklearn_era.inspection._split_statistics import (
    check_min_samples_per_era,
    compare_trees,
)


def era_feature_importances(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    eras: Any,
    sample_weight: Any = None,
    min_samples_per_era: int | None = None,
    normalize: bool = False,
    as_frame: bool = False,
) -> Bunch:
    """Sum the gains of a model's splits by feature, in every era.

    The importance of a feature in era j is the sum of ``gain_j`` over all splits by
    that feature, in all trees; see `split_statistics` for ``gain_j``. A feature that
    matters in a few eras only has a column of few large values.

    A gain is that of the best values within the era, and tells how much the era has to
    tell about a split, not that it agrees with other eras on the direction: for that,
    see `era_directions` of `split_statistics`.

    Of a forest these are sums over trees too, not means: more trees have more of it.

    Parameters
    ----------
    estimator, X, y, eras, sample_weight, min_samples_per_era :
        As `split_statistics` takes them.
    normalize : bool, default=False
        Whether to divide each era's importances, and the pooled ones, by the sum of
        their absolute values, so that eras of different size compare. (A gain can only
        be negative with `l2_regularization`.) Eras without any gain keep their zeros.
    as_frame : bool, default=False
        Whether to return pandas objects in the Bunch.

    Returns
    -------
    result : Bunch
        With the fields

        importances : ndarray of shape (n_eras, n_features), or DataFrame
            Rows in the order of `era_labels`, columns in that of `X`.
        pooled : ndarray of shape (n_features,), or Series
            Sums of the gain over all rows, whatever their era.
        era_labels : ndarray of shape (n_eras,)
            The distinct labels, sorted.
        feature_names : ndarray of shape (n_features,)
            Names of the columns of X; ``x0``, ``x1``, ... where the fit saw none.

    Raises
    ------
    ValueError
        As `split_statistics`.
    NotFittedError
        If `estimator` is not fitted.
    MissingPackageError
        If pandas is not installed, with ``as_frame=True``.

    Examples
    --------
    >>> from sklearn_era.datasets import make_synthetic_memorization
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.inspection import era_feature_importances
    >>> data = make_synthetic_memorization(random_state=0)
    >>> model = HistGradientBoostingRegressor(
    ...     max_iter=5, early_stopping=False, split_criterion="directional"
    ... ).fit(data.X_train, data.y_train, eras=data.eras_train)
    >>> result = era_feature_importances(
    ...     model, data.X_train, data.y_train, eras=data.eras_train, normalize=True
    ... )
    >>> result.importances.shape == (16, data.X_train.shape[1])
    True
    """
    check_hist_gradient_boosting(estimator)
    pandas = import_optional("pandas", extra="cli") if as_frame else None
    minimum = check_min_samples_per_era(estimator, min_samples_per_era)
    data = check_replay_data(estimator, X, y, eras, sample_weight)
    labels, names = data.eras.labels, feature_names(estimator)
    columns = column_of_feature(estimator)
    by_feature = np.zeros((names.size, labels.size))
    pooled = np.zeros(names.size)
    for sums, over_all, by_era in compare_trees(estimator, data, minimum):
        features = columns[sums.predictor.nodes["feature_idx"][sums.splits]]
        np.add.at(by_feature, features, by_era.gains)
        np.add.at(pooled, features, over_all.gains[:, 0])
    importances = np.ascontiguousarray(by_feature.T)
    if normalize:
        importances, pooled = _normalized(importances), _normalized(pooled)
    result = Bunch(
        importances=importances, pooled=pooled, era_labels=labels, feature_names=names
    )
    return result if pandas is None else as_frames(result, pandas)


def _normalized(importances: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.abs(importances).sum(axis=-1, keepdims=True)
    return np.divide(
        importances, total, out=np.zeros_like(importances), where=total > 0
    )
