"""The basis of all benchmarks: tasks, learners, and the timing of several in turns.

asv takes every function here for a benchmark whose name starts like one (`time_`,
`track_`, ...), so none does.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.util import find_spec
from time import perf_counter
from timeit import timeit
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier as StockClassifier
from sklearn.ensemble import HistGradientBoostingRegressor as StockRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from threadpoolctl import threadpool_limits

from sklearn_era._optional import import_optional
from sklearn_era.criteria import Gain
from sklearn_era.criteria._criteria import SplitCriterion
from sklearn_era.ensemble import (
    EraForestRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)


@dataclass(frozen=True)
class Task:
    """Training rows, and the number of trees to train. Integers have the shape of
    Numerai's; floats are for trees with default parameters.
    """

    n_rows: int = 1_000_000
    n_eras: int = 100
    n_bins: int | None = 5  # values of a feature; None: normal floats
    n_features: int = 100
    n_trees: int = 50
    dtype: str | None = None  # of X; by default the smallest integer type that fits
    kind: str | None = None  # "weights", or "classes": two, for log-loss

    def __str__(self) -> str:
        values = "floats" if self.n_bins is None else f"{self.n_bins} bins"
        parts = [f"{self.n_rows:,} x {self.n_features}", values]
        if self.n_eras > 1:
            parts.append(f"{self.n_eras:,} eras")
        if self.n_trees != Task.n_trees:
            parts.append(f"{self.n_trees} trees")
        parts += [part for part in (self.dtype, self.kind) if part is not None]
        return ", ".join(parts)

    def resized(self, scale: float, n_trees: int | None = None) -> "Task":
        """Return the task with a share of the rows, and at least 50 rows per era."""
        if scale == 1 and n_trees is None:
            return self
        n_rows = max(2_000, round(self.n_rows * scale))
        return replace(
            self,
            n_rows=n_rows,
            n_eras=min(self.n_eras, n_rows // 50),
            n_trees=n_trees or self.n_trees,
        )


class Data(NamedTuple):
    """Training rows: integers in columns, as in a Parquet file; eras in order."""

    X: np.ndarray
    y: np.ndarray
    eras: np.ndarray
    sample_weight: np.ndarray | None
    trees: dict[str, Any]  # their parameters: `TREES`, or `DEFAULT_TREES`

    @property
    def is_classified(self) -> bool:
        return self.y.dtype == bool


# One at a time: the largest takes more than a gigabyte.
@lru_cache(maxsize=1)
def make_data(task: Task) -> Data:
    """Return the rows of a task."""
    n_rows, n_eras, n_bins = task.n_rows, task.n_eras, task.n_bins
    n_features = task.n_features
    rng = np.random.default_rng(0)
    eras = np.arange(n_rows) * n_eras // n_rows
    # One feature in ten has an effect in all eras, and another one in ten has an effect
    # drawn anew for each era: together 2% of the target's variance, 30% with floats.
    n_signals = max(1, n_features // 10)
    if n_bins is None:
        X = rng.standard_normal((n_rows, n_features))
        centre, deviation, variance = 0.0, 1.0, 0.3 / 0.7
    else:
        default = np.int8 if n_bins <= 128 else np.uint8
        X = np.empty((n_rows, n_features), dtype=task.dtype or default, order="F")
        centre, deviation = (n_bins - 1) / 2, np.sqrt((n_bins**2 - 1) / 12)
        variance = 0.02
    size = np.sqrt(variance / (2 * n_signals))
    y = rng.standard_normal(n_rows)
    for j in range(n_features):
        if n_bins is not None:
            X[:, j] = rng.integers(0, n_bins, size=n_rows, dtype=np.uint8)
        if j >= 2 * n_signals:
            continue
        effects = rng.choice([-size, size], size=1 if j < n_signals else n_eras)
        y += (X[:, j] - centre) / deviation * np.resize(effects, n_eras)[eras]
    weights = rng.uniform(0.5, 2.0, size=n_rows) if task.kind == "weights" else None
    trees = DEFAULT_TREES if n_bins is None else TREES
    return Data(X, y > 0 if task.kind == "classes" else y, eras, weights, trees)


# scikit-learn's defaults, without early stopping, which ends fits at different trees.
DEFAULT_TREES: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_depth": None,
    "max_leaf_nodes": 31,
    "min_samples_leaf": 20,
    "early_stopping": False,
}
# Shallow trees, as Numerai's participants train them.
TREES: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_depth": 5,
    "max_leaf_nodes": 32,
    "min_samples_leaf": 20,
    "early_stopping": False,
}
# In the papers, a split needs rows of every era on both sides. With hundreds of eras
# this would end trees early, which is fast and makes the comparison unfair. With this
# coverage, the eras of all candidates are summed; by default, those of a few.
COVERAGE: dict[str, Any] = {"min_era_coverage": 0.2, "min_gain_share": 0.0}


@dataclass(frozen=True)
class Learner:
    """A learner to be timed: from raw values to trees."""

    name: str
    fit: Callable[[Data, int], Any]
    package: str | None = None  # required, and possibly missing

    @property
    def is_installed(self) -> bool:
        return self.package is None or find_spec(self.package) is not None


def compares_eras(split_criterion: str | SplitCriterion) -> bool:
    return split_criterion != "gain" and not isinstance(split_criterion, Gain)


def era_booster(
    data: Data, split_criterion: str | SplitCriterion, n_trees: int, **parameters: Any
) -> Any:
    if compares_eras(split_criterion) and data.trees is TREES:
        parameters = COVERAGE | parameters
    make = (
        HistGradientBoostingClassifier
        if data.is_classified
        else HistGradientBoostingRegressor
    )
    return make(
        split_criterion=split_criterion,
        max_iter=n_trees,
        random_state=0,
        **data.trees,
        **parameters,
    )


def era_learner(split_criterion: str | SplitCriterion, **parameters: Any) -> Learner:
    """Return a learner with one of the package's criteria and further parameters."""

    def fit(data: Data, n_trees: int) -> Any:
        model = era_booster(data, split_criterion, n_trees, **parameters)
        # Without eras, as users train who do not compare them.
        eras = data.eras if compares_eras(split_criterion) else None
        return model.fit(data.X, data.y, data.sample_weight, eras=eras)

    name = f"`{split_criterion}`"
    for parameter, value in parameters.items():
        name += f", `{parameter}={value!r}`"
    return Learner(name, fit)


# Full-grown trees, and shallow ones with several rows per leaf.
_FULL: dict[str, Any] = {"min_samples_leaf": 1}
FORESTS: dict[str, dict[str, Any]] = {
    "full": _FULL,
    "full, default coverage": _FULL | {"min_era_coverage": 0.1, "min_gain_share": 0.5},
    "shallow": {"max_depth": 5, "min_samples_leaf": 20},
    # Lopsided with some criteria, and as deep as without eras.
    "full, any era": _FULL | {"min_era_coverage": 1e-6},
    "full, categories": _FULL | {"categorical_features": [0, 1]},
}


def forest_learner(split_criterion: str, trees: str) -> Learner:
    """Return a forest with one of the package's criteria, and trees as in `FORESTS`."""

    def fit(data: Data, n_trees: int) -> Any:
        gains = split_criterion == "gain"
        forest = EraForestRegressor(
            n_trees,
            split_criterion=split_criterion,
            bootstrap="rows" if gains else "within_eras",
            random_state=0,
            **COVERAGE | FORESTS[trees],
        )
        return forest.fit(data.X, data.y, eras=None if gains else data.eras)

    return Learner(f"forest by `{split_criterion}`, {trees}", fit)


def _fit_sklearn(data: Data, n_trees: int) -> Any:
    make = StockClassifier if data.is_classified else StockRegressor
    model = make(max_iter=n_trees, **data.trees)
    return model.fit(data.X, data.y, data.sample_weight)


def _fit_lightgbm(data: Data, n_trees: int) -> Any:
    lightgbm = import_optional("lightgbm", extra="benchmark")
    parameters = {
        "objective": "binary" if data.is_classified else "regression",
        "learning_rate": data.trees["learning_rate"],
        "max_depth": data.trees["max_depth"] or -1,
        "num_leaves": data.trees["max_leaf_nodes"],
        "min_data_in_leaf": data.trees["min_samples_leaf"],
        "max_bin": 255,
        "feature_pre_filter": False,
        "num_threads": _openmp_effective_n_threads(),
        "verbosity": -1,
    }
    train = lightgbm.Dataset(
        data.X, data.y, weight=data.sample_weight, params=parameters
    )
    return lightgbm.train(parameters, train, num_boost_round=n_trees)


def _fit_random_forest(data: Data, n_trees: int) -> Any:
    n_jobs = _openmp_effective_n_threads()
    forest = RandomForestRegressor(n_trees, n_jobs=n_jobs, random_state=0)
    return forest.fit(data.X, data.y)


SKLEARN = Learner("scikit-learn", _fit_sklearn)
RANDOM_FOREST = Learner("`RandomForestRegressor`", _fit_random_forest)
LIGHTGBM = Learner("LightGBM", _fit_lightgbm, package="lightgbm")


# Layouts of X for predictions.
LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "data frame": pd.DataFrame,
}


def mean_leaves(model: Any) -> float:
    """Return the number of leaves per tree, on average over a model's trees."""
    if hasattr(model, "dump_model"):
        trees = model.dump_model()["tree_info"]
        return float(np.mean([tree["num_leaves"] for tree in trees]))
    if hasattr(model, "estimators_"):
        return float(np.mean([tree.get_n_leaves() for tree in model.estimators_]))
    return float(np.mean([tree.get_n_leaf_nodes() for (tree,) in model._predictors]))


def interleave_predictions(
    learners: Sequence[Learner],
    task: Task,
    layout: str,
    repeats: int,
    n_threads: int | None = None,
) -> "list[Timing]":
    """Time predictions for the training rows in turns, with a model of each learner."""
    data = make_data(task)
    X = LAYOUTS[layout](data.X)
    with limit_threads(n_threads):
        models = [learner.fit(data, task.n_trees) for learner in learners]
        seconds = fastest([partial(model.predict, X) for model in models], repeats)
    return [Timing(s, mean_leaves(x)) for s, x in zip(seconds, models, strict=True)]


def fastest(calls: Sequence[Callable[[], Any]], repeats: int) -> np.ndarray:
    """Return the seconds of the fastest of all repeats of each call, in turns."""
    seconds = [[timeit(call, number=1) for call in calls] for _ in range(repeats)]
    return np.min(seconds, axis=0)


class Timing(NamedTuple):
    seconds: float  # the fastest of all repeats
    leaves: float


def limit_threads(n_threads: int | None) -> Any:
    """Return a context in which OpenMP has that many threads; None changes nothing."""
    if n_threads is None:
        return nullcontext()
    return threadpool_limits(n_threads, user_api="openmp")


def interleave(
    learners: Sequence[Learner],
    task: Task,
    repeats: int,
    n_threads: int | None = None,
) -> list[Timing]:
    """Time learners in turns (A B A B ...), so that a slow minute slows each of them.
    The fastest fit of each learner counts.
    """
    for learner in learners:
        if learner.package is not None:  # not within the first fit's time
            import_optional(learner.package, extra="benchmark")
    data = make_data(task)
    timings = [Timing(np.inf, np.nan)] * len(learners)
    for _ in range(repeats):
        for i, learner in enumerate(learners):
            with limit_threads(n_threads):
                start = perf_counter()
                model = learner.fit(data, task.n_trees)
                seconds = perf_counter() - start
            timings[i] = Timing(min(timings[i].seconds, seconds), mean_leaves(model))
            del model
    return timings
