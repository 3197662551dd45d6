"""The options of the program that choose a split criterion, and what they refuse."""

import numpy as np
import pytest

from helpers.cli import fail, fit, read, run, to_options
from helpers.criteria import CRITERIA
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.ensemble._hist_gradient_boosting.era_criterion import SPLIT_CRITERIA
from sklearn_era.model_files import load_model, read_metadata

pytestmark = pytest.mark.usefixtures("small")

# What the table of criteria leaves out: numbers of 0, and as many options as can be.
MORE_CRITERIA = {
    "vrex, free": {"split_criterion": "vrex", "invariance_penalty": 0.0},
    "blend, all options": {
        "split_criterion": {"era": 0.5, "directional": 0.5, "invariant": 0.5},
        "boltzmann_alpha": -0.1,
        "min_direction_agreement": 0.5,
        "min_samples_per_era": 2,
        "min_era_coverage": 0.5,
        "invariance_penalty": 0.1,
        "invariance_statistic": "changing_rate",
        "normalize_era_gain": True,
        "min_impurity_decrease": 0.001,
    },
}


@pytest.mark.parametrize(
    "parameters", [*CRITERIA.values(), *MORE_CRITERIA.values()], ids=str
)
def test_estimator_gets_the_options_of_its_criterion(small, parameters):
    base = {"max_iter": 3, "min_samples_leaf": 3}
    run(*fit(), "--era", "week", *to_options({**base, **parameters}))
    run("predict", "new.skops", "d.csv", "--out", "p.csv")
    expected = HistGradientBoostingRegressor(**base, **parameters)
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
    expected = HistGradientBoostingRegressor(
        early_stopping=True, validation_eras=value, random_state=0, min_samples_leaf=3
    ).fit(small[["alpha", "beta"]], small["y"], eras=small["week"])
    assert np.array_equal(model.validation_score_, expected.validation_score_)


ONE_OF = (
    "use one of 'gain', 'era', 'directional', 'time_robust', 'invariant' and 'vrex', "
    "or a blend such as era=0.5,vrex=0.5"
)
NO_WEIGHT = "has no weight; a blend gives each criterion one, as in era=0.5,vrex=0.5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("median", f"'median' is no criterion; {ONE_OF}"),
        ("Era", f"'Era' is no criterion; {ONE_OF}"),
        ("", f"'' is no criterion; {ONE_OF}"),
        ("median=1", f"'median' is no criterion; {ONE_OF}"),
        ("=1", f"'' is no criterion; {ONE_OF}"),
        ("era=0.5,vrex", f"'vrex' in 'era=0.5,vrex' {NO_WEIGHT}"),
        ("era,vrex", f"'era' in 'era,vrex' {NO_WEIGHT}"),
        ("era=0.5,", f"'' in 'era=0.5,' {NO_WEIGHT}"),
        ("era=1,era=2", "'era=1,era=2' has two weights for 'era'"),
        ("era=x,", "the weight of 'era' in 'era=x,' is 'x', which is not a number"),
        ("era=", "the weight of 'era' in 'era=' is '', which is not a number"),
        ("era=1=2", "the weight of 'era' in 'era=1=2' is '1=2', which is not a number"),
    ],
)
def test_criterion_that_cannot_be_parsed(text, message):
    assert fail(*fit(), "--era", "week", "--split-criterion", text) == (
        f"Invalid value for '--split-criterion': {message}; see 'sklearn-era fit "
        "--help'."
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--split-criterion era=0.5,time_robust=0.5",
            "--split-criterion: 'time_robust' cannot be part of a blend: its key is an "
            "impurity, which cannot be added to gains. Use some of 'gain', 'era', "
            "'directional', 'invariant', 'vrex'.",
        ),
        (
            "--split-criterion era=-1,vrex=1",
            "--split-criterion: the weight of 'era' is -1.0; weights are finite "
            "numbers of 0 or more.",
        ),
        (
            "--split-criterion era=nan",
            "--split-criterion: the weight of 'era' is nan; weights are finite numbers "
            "of 0 or more.",
        ),
        (
            "--split-criterion era=0",
            "--split-criterion={'era': 0.0} has no positive weight; give one to a "
            "criterion at least.",
        ),
        (
            "--split-criterion era=1,invariant=1 --invariance-statistic ratio",
            "--invariance-statistic='ratio' compares counts of the target and no "
            "gradients, and so cannot be part of a blend; use 'effect' or "
            "'changing_rate'.",
        ),
        (
            "--split-criterion era --min-era-coverage 0",
            "--min-era-coverage must be a float in the range (0.0, 1.0], got 0.0 "
            "instead.",
        ),
        (
            "--split-criterion vrex --invariance-penalty inf",
            "--invariance-penalty must be a float in the range [0.0, inf), got inf "
            "instead.",
        ),
        (
            "--early-stopping false --validation-eras last",
            "--validation-eras has no effect with --early-stopping false: leave one of "
            "them out.",
        ),
        (
            "--split-criterion invariant --invariance-statistic ratio",
            "The model cannot be fitted: invariance_statistic='ratio' needs a target "
            "of 0 and 1",
        ),
    ],
)
def test_bad_options(options, message):
    told = fail(*fit(), "--era", "week", *options.split())
    assert told.startswith(message) if message[-1] != "." else told == message


@pytest.mark.parametrize(
    "criterion", sorted({*SPLIT_CRITERIA, "gain=1,vrex=2"} - {"gain"})
)
def test_criteria_that_compare_eras_ask_for_them(criterion):
    assert fail(*fit(), "--split-criterion", criterion) == (
        f"--split-criterion {criterion} compares eras: name the column that holds "
        "them with --era."
    )


def test_validation_eras_ask_for_eras():
    assert fail(*fit(), "--validation-eras", "random") == (
        "--validation-eras has no effect without eras: name the column that holds them "
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
