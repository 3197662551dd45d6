"""Callbacks that record, stop or fail, and the fits that they follow."""

import functools

import numpy as np

from sklearn_era.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

N_SAMPLES = 300
MAX_ITER = 6
WRITE_TARGET = {
    "regressor": lambda score: score,
    "binary": lambda score: np.where(score > 0, "up", "down"),
    "multiclass": lambda score: np.digitize(score, [-1, 1]) + 5,
}
KINDS = list(WRITE_TARGET)
SMALL = {"max_iter": MAX_ITER, "max_leaf_nodes": 5}


class Recorder:
    """Keep what every hook gets; subclasses ask to stop, fail, or ask for less."""

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(
        self, estimator, context, *, X, y, metadata, fitted_estimator
    ):
        self.events.append(("begin", context, X, y, metadata, fitted_estimator))

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.events.append(("end", context, X, y, metadata, fitted_estimator))

    def of(self, event, task_name):
        """The arguments of the hooks of one sort: context, X, y, metadata, fitted."""
        return [
            arguments
            for kind, *arguments in (e for e in self.events if isinstance(e, tuple))
            if kind == event and arguments[0].task_name == task_name
        ]

    @property
    def fitted(self):
        return [arguments[-1] for arguments in self.of("end", "iteration")]


class Propagated(Recorder):
    max_propagation_depth = None


class Hook:
    """Do something at the end of each iteration, and ask for nothing."""

    def __init__(self, hook):
        self.hook = hook
        self.torn_down = False

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.torn_down = True

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "iteration":
            return self.hook(estimator)


@functools.cache
def make_data(kind="regressor"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_SAMPLES, 4))
    eras = rng.integers(0, 3, N_SAMPLES)
    score = X[:, 0] + X[:, 1] * (eras - 1) + 0.3 * rng.normal(size=N_SAMPLES)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, WRITE_TARGET[kind](score), eras


def make_estimator(kind="regressor", **parameters):
    estimator = (
        HistGradientBoostingRegressor
        if kind == "regressor"
        else HistGradientBoostingClassifier
    )
    return estimator(**{**SMALL, "random_state": 0, **parameters})


def assert_same_trees(one, other):
    assert one.n_iter_ == other.n_iter_
    for trees, other_trees in zip(one._predictors, other._predictors, strict=True):
        for tree, other_tree in zip(trees, other_trees, strict=True):
            assert np.array_equal(tree.nodes, other_tree.nodes)


def logged(monitor, name, task_name="iteration"):
    data = monitor.get_logs().data
    return [row[name] for row in data if row["task_name"] == task_name]
