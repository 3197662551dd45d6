"""Trees of one split, and a split's keys, for the worked examples of the papers."""

import numpy as np
import pytest

from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._criteria.objects import Criterion, compare_sides

ESTIMATORS = pytest.mark.parametrize("estimator", [Regressor, Classifier])


def fit_tree(X, y, eras, estimator=Regressor, **params):
    """A model of one tree, by default with one split, that covers all eras."""
    params = {
        "max_leaf_nodes": 2, "min_samples_leaf": 1, "min_era_coverage": 1.0,
        "min_gain_share": 0.0,
    } | params  # fmt: skip
    return estimator(
        max_iter=1, learning_rate=1.0, early_stopping=False, **params
    ).fit(X, y, eras=eras)  # fmt: skip


def nodes_of(model):
    return model._predictors[0][0].nodes


def split_of(node):
    return node["feature_idx"], node["num_threshold"]


def sides(values, eras, goes_left):
    """(G, H, n) of each era on both sides of a split; values are the rows' optima.

    With a squared error, that is the target, or the target less any constant.
    """
    return [
        [
            (-values[rows].sum(), rows.sum(), rows.sum())
            for rows in (side & (eras == era) for era in np.unique(eras))
        ]
        for side in (goes_left, ~goes_left)
    ]


def pooled_gain(values, goes_left):
    left, right = sides(values, np.zeros(values.size), goes_left)
    return compare_sides([left], [right]).gains[0, 0]


def rank(name, values, eras, goes_left, **params):
    return Criterion(name.lower(), **params).rank(
        *sides(values, eras, goes_left), gain=pooled_gain(values, goes_left),
        impurities=[np.var(values[eras == era]) for era in np.unique(eras)],
    )  # fmt: skip
