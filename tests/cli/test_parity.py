"""The program knows the criteria and the parameters that the estimators have."""

import inspect
from typing import get_args

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor as UpstreamRegressor

from helpers.cli import fail, fit, run, to_options, write
from sklearn_era.cli import _criterion_options, _demo
from sklearn_era.cli._criterion_options import CRITERION_OPTIONS, used_options
from sklearn_era.cli._fit import fit as fit_command
from sklearn_era.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_era.ensemble._hist_gradient_boosting.era_criterion import (
    INVARIANCE_STATISTICS,
    SPLIT_CRITERIA,
)
from sklearn_era.model_files import load_model

ESTIMATORS = (HistGradientBoostingRegressor, HistGradientBoostingClassifier)

# Parameters that are no options: one is --categorical, and one says how to go on with
# a model in memory. Threads are limited by OMP_NUM_THREADS. The others are for Python.
NOT_OFFERED = {
    "categorical_features", "class_weight", "interaction_cst", "loss", "monotonic_cst",
    "n_iter_no_change", "n_jobs", "quantile", "scoring", "tol", "validation_fraction",
    "warm_start",
}  # fmt: skip

# Those of no estimator: what is read and written, and in which part.
OF_THE_PROGRAM = {
    "categorical", "data", "era", "exclude", "features", "out", "target", "task",
}  # fmt: skip

pytestmark = pytest.mark.usefixtures("small")


def parameters_of(function):
    return set(inspect.signature(function).parameters)


def choices(option):
    """The values that an option with a choice of them takes."""
    annotation = getattr(_criterion_options, option)
    return set(get_args(get_args(get_args(annotation)[0])[0]))


def test_program_knows_every_criterion():
    assert set(CRITERION_OPTIONS) == set(SPLIT_CRITERIA)
    assert set(_demo._CRITERIA) == set(SPLIT_CRITERIA)


def test_program_knows_every_parameter():
    known = parameters_of(fit_command)
    offered = known - OF_THE_PROGRAM
    assert known >= OF_THE_PROGRAM
    for estimator in ESTIMATORS:
        assert parameters_of(estimator) - NOT_OFFERED == offered
    # The parameters that are not scikit-learn's are those of eras, but for one.
    upstream = parameters_of(UpstreamRegressor)
    options = {option for used in CRITERION_OPTIONS.values() for option in used}
    of_any_criterion = {
        "split_criterion", "min_impurity_decrease", "validation_eras",
        "colsample_bytree",
    }  # fmt: skip
    ours = offered - upstream - of_any_criterion
    assert {option[2:].replace("-", "_") for option in options} == ours


def test_program_knows_every_value():
    constraints = HistGradientBoostingRegressor._parameter_constraints
    assert choices("InvarianceStatisticOption") == set(INVARIANCE_STATISTICS)
    aggregations = constraints["period_aggregation"][0].options
    assert choices("PeriodAggregationOption") == aggregations
    eras, none = constraints["validation_eras"]
    assert choices("ValidationErasOption") == eras.options | {"rows"}
    assert none is None


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_defaults_are_the_estimators(small, task):
    write(small.assign(y=np.arange(60) % 2), "d.csv")
    run(*fit(), "--era", "week", "--task", task)
    model, _ = load_model("new.skops")
    assert model.get_params() == type(model)().get_params()


# A value of each option that is not the default.
OTHER_VALUES = {
    "boltzmann_alpha": -0.2,
    "min_direction_agreement": 1.0,
    "min_samples_per_era": 30,
    "min_era_coverage": 0.5,
    "normalize_era_gain": True,
    "period_aggregation": "mean",
    "invariance_penalty": 5.0,
    "invariance_statistic": "changing_rate",
}
BLENDS = {
    "gain=1,invariant=1": {"gain": 1.0, "invariant": 1.0},
    "era=1,directional=50": {"era": 1.0, "directional": 50.0},
    "vrex=1,era=0": {"vrex": 1.0, "era": 0.0},
}
BY_DEFAULT = {"directional", "invariant", "gain=1,invariant=1"}


@pytest.mark.parametrize(
    "criterion",
    [
        pytest.param(text, marks=[] if text in BY_DEFAULT else pytest.mark.slow)
        for text in (*SPLIT_CRITERIA, *BLENDS)
    ],
)
def test_options_without_effect_are_refused_and_no_others(criterion):
    rng = np.random.default_rng(0)
    eras = np.repeat(np.arange(4), [300, 200, 100, 60])
    X = rng.standard_normal((eras.size, 5))
    X[eras == 3, 4] = 0
    slopes = rng.standard_normal((4, 2))[eras]
    y = X[:, 0] + X[:, 3] + 2 * X[:, 4] + (slopes * X[:, 1:3]).sum(axis=1)
    y += rng.standard_normal(eras.size)
    split_criterion = BLENDS.get(criterion, criterion)

    def predict_after(**changed):
        # In small trees the order of expansion matters; large ones come to nodes that
        # lack an era, or a split that all eras agree on.
        models = (
            HistGradientBoostingRegressor(
                split_criterion=split_criterion,
                max_iter=3,
                max_leaf_nodes=max_leaf_nodes,
                min_samples_leaf=5,
                **changed,
            )
            for max_leaf_nodes in (8, None)
        )
        return [model.fit(X, y, eras=eras).predict(X) for model in models]

    default = predict_after()
    effective = set()
    for name, value in OTHER_VALUES.items():
        option = f"--{name.replace('_', '-')}"
        if not np.array_equal(default, predict_after(**{name: value})):
            effective.add(option)
            continue
        chosen = ["--era", "week", "--split-criterion", criterion]
        assert fail(*fit(), *chosen, *to_options({name: value})) == (
            f"{option} has no effect with --split-criterion {criterion}: leave one of "
            "them out."
        )
    assert effective == used_options(split_criterion)
