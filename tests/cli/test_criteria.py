"""The options that choose a split criterion: all that there are, and refusals."""

import inspect
from typing import get_args

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor as UpstreamRegressor

from helpers.cli import fail, fit, read, run, to_options, write
from helpers.criteria import BLENDS, CRITERIA, NAMES, OTHER_VALUES
from sklearn_era._criterion_table import CRITERIA as TABLE
from sklearn_era._criterion_table import ERA_EFFECT_NAMES, parameters_read
from sklearn_era.cli import _criterion_options
from sklearn_era.cli._fit import fit as fit_command
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._criteria.parameters import INVARIANCE_STATISTICS
from sklearn_era.model_files import load_model, read_metadata

pytestmark = pytest.mark.usefixtures("small")

# What the table of criteria leaves out: numbers of 0, and as many options as can be.
MORE_CRITERIA = {
    "vrex, free": {"split_criterion": "vrex", "invariance_penalty": 0.0},
    "blend, all options": {
        "split_criterion": {"era": 0.5, "directional": 0.5, "invariant": 0.5},
        "boltzmann_alpha": -0.1, "min_direction_agreement": 0.5,
        "min_samples_per_era": 2, "min_era_coverage": 0.5, "invariance_penalty": 0.1,
        "invariance_statistic": "changing_rate", "normalize_era_gain": True,
        "min_impurity_decrease": 0.001,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "parameters", [*CRITERIA.values(), *MORE_CRITERIA.values()], ids=str
)
def test_estimator_gets_the_options_of_its_criterion(small, parameters):
    base = {"max_iter": 3, "min_samples_leaf": 3}
    run(*fit(), "--era", "week", *to_options({**base, **parameters}))
    run("predict", "new.skops", "d.csv", "--out", "p.csv")
    expected = Regressor(**base, **parameters)
    X = small[["alpha", "beta"]]
    expected.fit(X, small["y"], eras=small["week"])
    model, metadata = load_model("new.skops")
    assert {name: model.get_params()[name] for name in parameters} == parameters
    assert metadata.split_criterion == parameters["split_criterion"]
    assert np.array_equal(read("p.csv")["prediction"], expected.predict(X))


@pytest.mark.parametrize(
    ("text", "weights", "options"),
    [
        (" era = 1 , gain = 2e-1 ", {"era": 1.0, "gain": 0.2}, ["--era", "week"]),
        ("vrex=1", {"vrex": 1.0}, ["--era", "week"]),
        ("invariant=1,vrex=0", {"invariant": 1.0, "vrex": 0.0}, ["--era", "week"]),
        # Only the gain weighs anything, which needs no eras.
        ("gain=2,era=0", {"gain": 2.0, "era": 0.0}, []),
    ],
)
def test_blend_is_spelled_with_weights(text, weights, options):
    output = run(*fit(), *options, "--max-iter", 2, "--split-criterion", text)
    assert f"({text.replace(' ', '').replace('2e-1', '0.2')})" in output
    assert read_metadata("new.skops").split_criterion == weights


@pytest.mark.parametrize(
    ("name", "value"), [("last", "last"), ("random", "random"), ("rows", None)]
)
def test_validation_eras(small, name, value):
    base = ["--era", "week", "--early-stopping", "true", "--random-state", 0]
    run(*fit(), *base, "--validation-eras", name, "--min-samples-leaf", 3)
    model, _ = load_model("new.skops")
    assert model.validation_eras == value
    expected = Regressor(
        early_stopping=True, validation_eras=value, random_state=0, min_samples_leaf=3
    ).fit(small[["alpha", "beta"]], small["y"], eras=small["week"])
    assert np.array_equal(model.validation_score_, expected.validation_score_)


EFFECTS = {"era_effects": "intercept", "n_forecast_eras": 2, "leaf_shrinkage": "eras"}


@pytest.mark.parametrize("half_life", [3, 0.5])
def test_era_effects(small, half_life):
    weighting = {"era_weighting": "recency", "era_half_life": half_life}
    parameters = {"max_iter": 3, **EFFECTS, **weighting}
    run(*fit(), "--era", "week", *to_options(parameters))
    model, _ = load_model("new.skops")
    assert {name: model.get_params()[name] for name in parameters} == parameters
    assert type(model.era_half_life) is type(half_life)


def test_group_dro(small):
    parameters = {"era_weighting": "group_dro", "group_dro_step_size": 0.5}
    run(*fit(), "--era", "week", *to_options(parameters), "--max-iter", 3)
    model, _ = load_model("new.skops")
    assert {name: model.get_params()[name] for name in parameters} == parameters
    assert len(model.era_weights_) == small["week"].nunique()


ONE_OF = (
    f"use one of {', '.join(map(repr, NAMES[:-1]))} and {NAMES[-1]!r}, or a blend such "
    "as era=0.5,vrex=0.5"
)
BLENDABLE = ", ".join(repr(name) for name in NAMES if name != "time_robust")
NO_WEIGHT = "has no weight; a blend gives each criterion one, as in era=0.5,vrex=0.5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *[(text, f"'{text.removesuffix('=1')}' is no criterion; {ONE_OF}")
          for text in ("median", "Era", "", "median=1", "=1")],
        ("era=0.5,vrex", f"'vrex' in 'era=0.5,vrex' {NO_WEIGHT}"),
        ("era,vrex", f"'era' in 'era,vrex' {NO_WEIGHT}"),
        ("era=0.5,", f"'' in 'era=0.5,' {NO_WEIGHT}"),
        ("era=1,era=2", "'era=1,era=2' has two weights for 'era'"),
        ("era=x,", "the weight of 'era' in 'era=x,' is 'x', which is not a number"),
        ("era=", "the weight of 'era' in 'era=' is '', which is not a number"),
        ("era=1=2", "the weight of 'era' in 'era=1=2' is '1=2', which is not a number"),
    ],
)  # fmt: skip
def test_criterion_that_cannot_be_parsed(text, message):
    assert fail(*fit(), "--era", "week", "--split-criterion", text) == (
        f"Invalid value for '--split-criterion': {message}; see 'sklearn-era fit "
        "--help'."
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--split-criterion era=0.5,time_robust=0.5",
         "--split-criterion: 'time_robust' cannot be part of a blend: its key is an "
         f"impurity, which cannot be added to gains. Use some of {BLENDABLE}."),
        *[(f"--split-criterion era={weight},vrex=1",
           f"--split-criterion: the weight of 'era' is {weight}; weights are finite "
           "numbers of 0 or more.") for weight in ("-1.0", "nan")],
        ("--split-criterion era=0",
         "--split-criterion={'era': 0.0} has no positive weight; give one to a "
         "criterion at least."),
        ("--split-criterion era=1,invariant=1 --invariance-statistic ratio",
         "--invariance-statistic='ratio' compares counts of the target and no "
         "gradients, and so cannot be part of a blend; use 'effect' or "
         "'changing_rate'."),
        ("--split-criterion era --min-era-coverage 0",
         "--min-era-coverage must be a float in the range (0.0, 1.0] or a str among "
         "{'auto'}, got 0.0 instead."),
        ("--split-criterion era --min-era-coverage all",
         "Invalid value for '--min-era-coverage': 'all' is neither a number nor "),
        ("--split-criterion vrex --invariance-penalty inf",
         "--invariance-penalty must be a float in the range [0.0, inf), got inf "
         "instead."),
        ("--early-stopping false --validation-eras last",
         "--validation-eras has no effect with --early-stopping false: leave one of "
         "them out."),
        *[(f"--n-forecast-eras 2 {more}",
           f"--n-forecast-eras has no effect {reason}: see what they do in "
           "'sklearn-era fit --help'.") for more, reason in (
               ("", "without --era-effects"),
               ("--era-effects intercept --era-forecast mean",
                "with --era-forecast mean"))],
        ("--era-half-life 3",
         "--era-half-life has no effect without --era-weighting: see what they do in "
         "'sklearn-era fit --help'."),
        ("--era-weighting equal --group-dro-step-size 1",
         "--group-dro-step-size has no effect with --era-weighting equal: see what "
         "they do in 'sklearn-era fit --help'."),
        ("--era-weighting recency --era-half-life x",
         "Invalid value for '--era-half-life': 'x' is neither a number of eras"),
        ("--era-weighting recency --era-half-life 0",
         "--era-half-life must be an int in the range [1, inf) or a float in the range "
         "(0.0, 1.0], got 0 instead."),
        ("--split-criterion invariant --invariance-statistic ratio",
         "The model cannot be fitted: invariance_statistic='ratio' needs a target "
         "of 0 and 1"),
    ],
)  # fmt: skip
def test_bad_options(options, message):
    told = fail(*fit(), "--era", "week", *options.split())
    assert told.startswith(message) if message[-1] != "." else told == message


@pytest.mark.parametrize("criterion", sorted({*NAMES, "gain=1,vrex=2"} - {"gain"}))
def test_criteria_that_compare_eras_ask_for_them(criterion):
    assert fail(*fit(), "--split-criterion", criterion) == (
        f"--split-criterion {criterion} compares eras: name the column that holds "
        "them with --era."
    )


def test_era_effects_ask_for_eras():
    assert fail(*fit(), "--leaf-shrinkage", "eras") == (
        "--leaf-shrinkage has no effect without eras: name the column that holds them "
        "with --era, or leave it out."
    )


@pytest.mark.parametrize("criterion", ["invariant", "invariant=2,era=0"])
@pytest.mark.parametrize(
    "option", [["--min-era-coverage", 0.5], ["--invariance-statistic", "effect"]]
)
def test_invariant_without_a_penalty_takes_no_other_option(criterion, option):
    """It is the gain, which does not look at eras."""
    chosen = ["--era", "week", "--split-criterion", criterion, "--max-iter", 1]
    free = ["--invariance-penalty", 0]
    assert fail(*fit(), *chosen, *free, *option) == (
        f"{option[0]} has no effect with --split-criterion {criterion} "
        "--invariance-penalty 0: leave one of them out."
    )
    run(*fit(), *chosen, *free)
    run(*fit(), *chosen, "--invariance-penalty", 0.5, *option)


ESTIMATORS = (Regressor, Classifier)

# Parameters that are no options: one is --categorical, and one says how to go on with
# a model in memory. Threads are limited by OMP_NUM_THREADS. The others are for Python.
NOT_OFFERED = {
    "categorical_features", "class_weight", "feature_penalty", "interaction_cst",
    "loss", "monotonic_cst", "n_iter_no_change", "n_jobs", "quantile", "scoring", "tol",
    "validation_fraction", "warm_start",
}  # fmt: skip

# Those of no estimator: what is read and written, and in which part.
OF_THE_PROGRAM = {
    "categorical", "data", "era", "exclude", "features", "out", "target", "task",
}  # fmt: skip


def parameters_of(function):
    return set(inspect.signature(function).parameters)


def choices(option):
    """The values that an option with a choice of them takes."""
    annotation = getattr(_criterion_options, option)
    return set(get_args(get_args(get_args(annotation)[0])[0]))


def test_program_knows_every_parameter():
    known = parameters_of(fit_command)
    offered = known - OF_THE_PROGRAM
    assert known >= OF_THE_PROGRAM
    for estimator in ESTIMATORS:
        assert parameters_of(estimator) - NOT_OFFERED == offered
    # The parameters that are not scikit-learn's are those of eras, but for one.
    upstream = parameters_of(UpstreamRegressor)
    of_some = {name for row in TABLE.values() for name in row.parameters}
    of_any_criterion = {
        "split_criterion", "min_impurity_decrease", "validation_eras",
        "colsample_bytree", "fast_gain", *ERA_EFFECT_NAMES,
    }  # fmt: skip
    assert offered - upstream - of_any_criterion == of_some


def test_program_knows_every_criterion_and_value():
    constraints = Regressor._parameter_constraints
    assert choices("InvarianceStatisticOption") == set(INVARIANCE_STATISTICS)
    aggregations = constraints["period_aggregation"][0].options
    assert choices("PeriodAggregationOption") == aggregations
    eras, none = constraints["validation_eras"]
    assert choices("ValidationErasOption") == eras.options | {"rows"}
    assert none is None
    for name in ("era_weighting", "leaf_shrinkage", "era_effects", "era_forecast"):
        option = name.title().replace("_", "") + "Option"
        assert choices(option) == constraints[name][0].options


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_defaults_are_the_estimators(small, task):
    write(small.assign(y=np.arange(60) % 2), "d.csv")
    run(*fit(), "--era", "week", "--task", task)
    model, _ = load_model("new.skops")
    assert model.get_params() == type(model)().get_params()


@pytest.mark.parametrize("criterion", [*NAMES, *BLENDS])
def test_options_without_effect_are_refused(criterion):
    """Those that the criterion does not read, as tests of the estimators hold."""
    read = {"min_impurity_decrease"} | parameters_read(BLENDS.get(criterion, criterion))
    assert read <= set(OTHER_VALUES)
    for name in set(OTHER_VALUES) - read:
        option = f"--{name.replace('_', '-')}"
        chosen = ["--era", "week", "--split-criterion", criterion]
        assert fail(*fit(), *chosen, *to_options({name: OTHER_VALUES[name]})) == (
            f"{option} has no effect with --split-criterion {criterion}: leave one of "
            "them out."
        )
