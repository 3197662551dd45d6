"""Fit and predict of the era forests."""

import os

from . import ensemble
from .common import FORESTS, Task, forest_learner, make_data, mean_leaves

# Numbers of rows, separated by commas. Full trees cost more than shallow ones.
ROWS = os.environ.get("SKLEARN_ERA_BENCHMARK_FOREST_ROWS", "20_000")


class ForestFit(ensemble.Fit):
    """Seconds, the peak of the process's memory, and the size of the trees."""

    param_names = ("split_criterion", "n_eras", "trees", "n_rows")
    params = (
        ["gain", "era", "directional", "time_robust", "invariant", "vrex"],
        [1, 2, 10, 100],
        list(FORESTS),
        [int(n_rows) for n_rows in ROWS.split(",")],
    )

    def setup(self, split_criterion, n_eras, trees, n_rows):
        # The gain ignores eras, and the other criteria have nothing to compare in one.
        if (split_criterion == "gain") != (n_eras == 1):
            raise NotImplementedError
        self.task = Task(n_rows, n_eras, n_bins=255, n_features=20, n_trees=10)
        self.data = make_data(self.task)
        self.learner = forest_learner(split_criterion, trees)

    def track_n_leaves(self, *point):
        return mean_leaves(self.fit())

    track_n_leaves.unit = "leaves a tree"


class ForestPredict:
    """Predictions for the training rows."""

    param_names = ForestFit.param_names
    params = ForestFit.params
    timeout = ForestFit.timeout

    def setup(self, *point):
        forest = ForestFit()
        forest.setup(*point)
        self.X = forest.data.X
        self.model = forest.fit()

    def time_predict(self, *point):
        self.model.predict(self.X)
