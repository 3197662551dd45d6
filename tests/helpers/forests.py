"""Data and helpers for the tests of forests."""

import numpy as np

from helpers.trees import rows_of_nodes
from sklearn_era.ensemble import EraForestClassifier, EraForestRegressor
from sklearn_era.ensemble._criterion_plan import CriterionPlan
from sklearn_era.ensemble._forests.fit import TrainingSet
from sklearn_era.ensemble._forests.sampling import encode_era_columns

N_SAMPLES = 240


def make_data(seed=0, *, n_values=5, missing=0.0, n_samples=N_SAMPLES):
    """Features of few values, so that a draw of rows has the same bins as all rows."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, size=(n_samples, 4)).astype(float)
    eras = rng.integers(0, 3, size=n_samples)
    y = X[:, 0] + (eras - 1) * X[:, 1] + rng.normal(size=n_samples) + 50
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, eras


def make_classes(y, n_classes=3):
    names = np.array(["high", "low", "mid"])[:n_classes]
    cuts = np.quantile(y, np.arange(1, n_classes) / n_classes)
    return names[np.digitize(y, cuts)]


# Leaves of 20 rows, as by default, would be most of the data.
FULL = {"n_estimators": 6, "min_samples_leaf": 1, "random_state": 0}


def regressor(**parameters):
    return EraForestRegressor(**FULL | parameters)


def classifier(**parameters):
    return EraForestClassifier(**FULL | parameters)


def drawn_rows(forest, X, eras=None):
    """The rows and eras of each tree, drawn again."""
    return [drawn for _, drawn in _draws(forest, X, eras)]


def drawn_columns(forest, X, eras=None):
    """The order in which each tree has the columns, drawn again."""
    return [rng.permutation(X.shape[1]) for rng, _ in _draws(forest, X, eras)]


def _draws(forest, X, eras):
    era_columns = [] if eras is None else encode_era_columns(eras, X)
    shape = np.empty(np.shape(X), dtype=np.uint8)
    targets, plan = np.empty((len(shape), 1)), CriterionPlan.from_estimator(forest)
    training = TrainingSet(shape, targets, None, era_columns, plan)
    return [forest._draw(training, i) for i in range(forest.n_iter_)]


def from_the_root(predictor):
    """The nodes of a tree in depth-first order, and the rows' way to each."""
    order, stack = [], [0]
    while stack:
        index = stack.pop()
        order.append(index)
        node = predictor.nodes[index]
        if not node["is_leaf"]:
            stack += [int(node["right"]), int(node["left"])]
    assert sorted(order) == list(range(predictor.nodes.size))
    return predictor.nodes[order]


def rows_of_leaves(predictor, X):
    """The rows in each leaf; X has no categories."""
    rows = rows_of_nodes(predictor, X)
    return [(i, rows[i]) for i in np.flatnonzero(predictor.nodes["is_leaf"])]
