"""Gains of splits summed by feature, era by era."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._optional import import_optional
from .._trees.traversal import column_of_feature
from ._features import as_frames, feature_names
from ._replay import check_hist_gradient_boosting, check_replay_data
from ._split_statistics import check_min_samples_per_era, compare_trees


def era_feature_importances(
    estimator: Any, X: Any, y: Any, *, eras: Any, sample_weight: Any = None,
    min_samples_per_era: int | None = None, normalize: bool = False,
    as_frame: bool = False,
) -> Bunch:  # fmt: skip
    """Sum the gains of a model's splits by feature, in every era.

    The importance of a feature in era j is the sum of ``gain_j`` of `split_statistics`
    over all splits by that feature, in all trees, also of a forest. A gain is that of
    the best values within the era: that eras agree on the direction is another matter,
    for which see `era_directions` of `split_statistics`.

    Parameters
    ----------
    estimator, X, y, eras, sample_weight, min_samples_per_era :
        As `split_statistics` takes them.
    normalize : bool, default=False
        Whether to divide each era's importances, and the pooled ones, by the sum of
        their absolute values, unless it is 0.
    as_frame : bool, default=False
        Whether to return pandas objects in the Bunch.

    Returns
    -------
    result : Bunch
        With the fields

        importances, pooled : ndarray of shape (n_eras, n_features), (n_features,)
            The sums of gains by era, and of those over all rows.
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
    check_hist_gradient_boosting(estimator)
    pandas = import_optional("pandas", extra="cli") if as_frame else None
    minimum = check_min_samples_per_era(estimator, min_samples_per_era)
    data = check_replay_data(estimator, X, y, eras, sample_weight)
    labels, names = data.eras.labels, feature_names(estimator)
    columns = column_of_feature(estimator)
    # The last row is that of all rows.
    gains = np.zeros((names.size, labels.size + 1))
    for sums, pooled, by_era in compare_trees(estimator, data, minimum):
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
