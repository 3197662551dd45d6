"""Fit and predict of the histogram gradient boosting regressor."""

import os
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn import ensemble as sklearn_ensemble

from sklearn_era.criteria import Gain
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.inspection import shap_values

from .common import (
    LAYOUTS,
    LIGHTGBM,
    SKLEARN,
    Task,
    era_learner,
    fastest,
    interleave,
    interleave_predictions,
    make_data,
    mean_leaves,
)

# Numbers of rows, separated by commas. The whole grid is "100_000,1_000_000".
ROWS = os.environ.get("SKLEARN_ERA_BENCHMARK_ROWS", "100_000")
REPEATS = 3
OTHER_DATA = {
    "classes": {"kind": "classes"},
    "weights": {"kind": "weights", "n_bins": None},  # bins by weighted quantiles
    "wide": {"n_features": 1_000},
}


class EraBenchmark:
    """The grid, and the task at each of its points."""

    param_names = ("split_criterion", "n_eras", "n_bins", "n_rows")
    params = (
        ["gain", "era", "directional", "time_robust", "invariant", "vrex"],
        [1, 5, 100, 1000],
        [None, 5, 64, 255],  # None: floats, fitted with default parameters
        [int(n_rows) for n_rows in ROWS.split(",")],
    )
    timeout = 3600
    # A fit takes long enough to be timed once per sample.
    number = 1
    rounds = 1
    repeat = (1, 3, 60.0)
    warmup_time = 0

    def setup(self, split_criterion, n_eras, n_bins, n_rows):
        # The gain ignores eras, and the other criteria have nothing to compare in one.
        if (split_criterion == "gain") != (n_eras == 1):
            raise NotImplementedError
        self.task = Task(n_rows, n_eras, n_bins)
        self.data = make_data(self.task)
        self.learner = era_learner(split_criterion)

    def fit(self):
        return self.learner.fit(self.data, self.task.n_trees)


class Fit(EraBenchmark):
    """Seconds, and the peak of the process's memory, including data."""

    def time_fit(self, *point):
        self.fit()

    def peakmem_fit(self, *point):
        self.fit()


class FitFastGain(Fit):
    """The gain, by the kernel of the other criteria."""

    params = (["gain"], [1], *EraBenchmark.params[2:])

    def setup(self, *point):
        super().setup(*point)
        self.learner = era_learner(Gain(splitter="era"))


class FitOtherData(Fit):
    """Two classes, weights, and ten times the features with a tenth of the rows."""

    param_names = ("split_criterion", "data", "n_rows")
    params = (["gain", "directional"], list(OTHER_DATA), EraBenchmark.params[-1])

    def setup(self, split_criterion, data, n_rows):
        self.task = replace(Task(n_rows), **OTHER_DATA[data])
        if data == "wide":
            self.task = replace(self.task, n_rows=n_rows // 10)
        self.data = make_data(self.task)
        self.learner = era_learner(split_criterion)


class Predict:
    """Predictions for the training rows, in each type and layout."""

    param_names = ("dtype", "layout", "n_rows")
    params = (
        ["uint8", "int8", "float32", "float64"],
        list(LAYOUTS),
        EraBenchmark.params[-1],
    )
    timeout = 3600

    def setup(self, dtype, layout, n_rows):
        self.task = Task(n_rows, n_eras=1, n_bins=100, n_trees=200, dtype=dtype)

    def ratio(self, reference, layout):
        ours, other = interleave_predictions(
            [era_learner("gain"), reference], self.task, layout, REPEATS
        )
        return ours.seconds / other.seconds

    def track_ratio_to_sklearn(self, dtype, layout, n_rows):
        return self.ratio(SKLEARN, layout)

    def track_ratio_to_lightgbm(self, dtype, layout, n_rows):
        return self.ratio(LIGHTGBM, layout) if LIGHTGBM.is_installed else None

    track_ratio_to_sklearn.unit = "prediction time / scikit-learn's"
    track_ratio_to_lightgbm.unit = "prediction time / LightGBM's"


class Categories:
    """Fits to a column of categories beside numbers, and predictions."""

    param_names = ("n_categories",)
    params = ([200, 300, 5_000],)
    timeout = 3600

    def setup(self, n_categories):
        rng = np.random.default_rng(0)
        self.numbers, noise = rng.normal(size=(50_000, 5)), rng.normal(size=50_000)
        self.rows = {}
        for n in {200, n_categories}:
            code, effects = rng.integers(0, n, noise.size), rng.normal(size=n)
            X = np.column_stack([code, self.numbers])
            self.rows[n] = X, effects[code] + self.numbers[:, 0] + noise

    def fit(self, n_categories, estimator=HistGradientBoostingRegressor):
        model = estimator(categorical_features=[0], early_stopping=False)
        return model.fit(*self.rows[n_categories])

    def track_fit_ratio_to_200(self, n_categories):
        return best_ratio(lambda: self.fit(n_categories), lambda: self.fit(200))

    def track_predict_ratio_to_sklearn(self, n_categories):
        X, _ = self.rows[200]
        models = (
            self.fit(200),
            self.fit(200, sklearn_ensemble.HistGradientBoostingRegressor),
        )
        return best_ratio(*(partial(model.predict, X) for model in models))

    track_fit_ratio_to_200.unit = "fit time / that with 200 categories"
    track_predict_ratio_to_sklearn.unit = "prediction time / scikit-learn's"


def best_ratio(*calls):
    """Return the ratio of the best times of two calls, in turn."""
    first, second = fastest(calls, REPEATS)
    return first / second


class ShapValues:
    """Exact Shapley values of a hundred trees, by paths and by background rows."""

    param_names = ("n_background", "n_rows")
    params = ([0, 100], [10_000])
    timeout = 3600

    def setup(self, n_background, n_rows):
        task = Task(n_rows, 1, None, n_features=50, n_trees=100)
        self.X = make_data(task).X
        self.model = era_learner("gain").fit(make_data(task), task.n_trees)
        self.background = self.X[:n_background] if n_background else None

    def time_shap_values(self, *point):
        shap_values(self.model, self.X, background=self.background)


class Ratio(EraBenchmark):
    """Our fits relative to plain fits on the same data, with trees of equal size."""

    def ratio(self, reference):
        if not reference.is_installed:
            return None
        ours, other = interleave([self.learner, reference], self.task, REPEATS)
        return ours.seconds / other.seconds

    def track_ratio_to_sklearn(self, *point):
        return self.ratio(SKLEARN)

    def track_ratio_to_lightgbm(self, *point):
        return self.ratio(LIGHTGBM)

    def track_n_leaves(self, *point):
        return mean_leaves(self.fit())

    def track_n_leaves_of_sklearn(self, *point):
        return mean_leaves(SKLEARN.fit(self.data, self.task.n_trees))

    track_ratio_to_sklearn.unit = "fit time / scikit-learn's"
    track_ratio_to_lightgbm.unit = "fit time / LightGBM's"
    track_n_leaves.unit = track_n_leaves_of_sklearn.unit = "leaves a tree"
