"""The program's commands, run as a person would, and what they make."""

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.base import clone
from sklearn.metrics import get_scorer, log_loss, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from typer.testing import CliRunner

import sklearn_era
from helpers.cli import fail, fit, invoke, params, read, run, shops_by_week, write
from helpers.criteria import NAMES
from helpers.grids import slow
from sklearn_era import cli
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.cli._commands import app
from sklearn_era.cli._scores import promise, range_of
from sklearn_era.cli._ui import parse_value
from sklearn_era.effects import Intercepts
from sklearn_era.ensemble import EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.metrics import EraScoreForecast, era_scores
from sklearn_era.model_files import load_model, read_metadata, save_model
from sklearn_era.model_selection import EraSearchCV
from sklearn_era.numerai.metrics import numerai_corr

CHOICE = ["--exclude", "row,y,up,class", "--categorical", "sector,grade", "--no-score"]
FAST = [*params(max_iter=3), "--no-score", "--out", "m.era"]


@pytest.mark.filterwarnings("ignore")
def test_info_tells_what_a_model_card_needs(frame, features):
    """Each kind of model tells what it keeps, in the numbers that it has itself."""
    write(frame, "d.csv")
    base = ["--target", "up", "--era", "week", "--features", "a,b,sector"]
    base += ["--categorical", "sector", "--no-score", "--random-state", "0"]
    run("fit", "d.csv", *base, "--estimator", "auto", "--out", "a.era")
    model, metadata = load_model("a.era")
    told = run("info", "a.era")
    lines = told.splitlines()
    assert lines[0] == "AutoEraClassifier of 'up'"
    assert lines[1].startswith(f"  written by: sklearn_era {sklearn_era.__version__}, ")
    assert metadata.versions["numpy"] in lines[1]
    assert lines[2] == "  columns: 3: a, b, sector (categories)"
    weights = {name: x for name, x in model.weights_.items() if x}
    for line in (
        "  classes: " + ", ".join(map(str, model.classes_)),
        f"  eras: {model._known_eras.size} of column 'week', ",
        f"  parameters: {' '.join(repr(model).split())}",
        *(f"{name} {weight:.2f}" for name, weight in weights.items()),
        f"  loss in eras left out, of {model._left_out['y'].size} rows: plain, average",
    ):
        assert line in told
    for label, plain, average in zip(
        model.era_labels_, -model.era_scores_[0], -model.era_scores_[-1], strict=True
    ):
        assert f"    {label}: {plain:.4g}, {average:.4g}" in lines
    if model.era_labels_.size > 2:
        forecast = EraScoreForecast(bounds=(None, 0)).fit(model)
        assert f"its loss in the next era: {-forecast.mean_:.4g}, with 80 % " in told
    eras = np.asarray(frame["week"])
    drawn = {"bootstrap": "within_eras", "random_state": 0}
    forest = EraForestRegressor(5, oob_score=True, **drawn)
    search = EraSearchCV(Regressor(max_iter=2), {"max_depth": [1, 2]}, cv=2)
    for model, kind in ((forest, "score out of bag"), (search, "score of the chosen")):
        save_model(model.fit(features, frame["y"], eras=eras), "m.era", era="week")
        told = run("info", "m.era")
        assert told.startswith(f"{type(model).__name__}\n")
        assert f"  {kind}" in told
        scores = getattr(model, "oob_era_scores_", None)
        if model is search:
            scores = model.era_scores_[model.best_index_]
        for label, score in zip(model.era_labels_, scores, strict=True):
            assert f"    {label}: {score:.4g}\n" in told
    save_model(Regressor(max_iter=3).fit(features, frame["y"]), "m.era", era="week")
    told = run("info", "m.era")
    assert "  rows in the first tree: 600\n" in told
    assert "  eras: of column 'week'; the model keeps no labels\n" in told
    assert "  HistGradientBoostingRegressor: 3 iterations\n" in told
    (Path() / "no.era").write_text("no")
    assert "MODEL: no.era is not a model file" in invoke("info", "no.era").stderr


@pytest.mark.parametrize(("table", "out"), [
    ("d.csv", "p.parquet"), ("d.csv.gz", "p.tsv"), ("d.tsv", "p.feather"),
    ("d.parquet", "p.csv.gz"), ("d.feather", "p.csv"), ("D.CSV", "p.tsv.gz"),
    ("D.CSV.GZ", "P.CSV.GZ"),
])  # fmt: skip
def test_regression_round_trip(frame, features, table, out):
    parameters = {"max_iter": 8, "split_criterion__min_agreement": 0.6}
    base = ["--target", "y", "--era", "week", "--split-criterion", "directional"]
    write(frame, table)
    output = run("fit", table, *base, *CHOICE, *params(**parameters), "-o", "m.era")
    told = "Fitted a regressor of 'y' to 600 rows of 5 eras and 6 features: 8 iterat"
    assert output.startswith(told)
    assert output.endswith("Wrote m.era.\n")
    output = run("predict", "m.era", table, "--out", out, "--id", "row")
    assert output == f"Wrote 600 predictions to {out}.\n"
    estimator = Regressor(split_criterion="directional").set_params(**parameters)
    estimator.fit(features, frame["y"], eras=frame["week"])
    predictions = read(out)
    assert list(predictions.columns) == ["row", "prediction"]
    assert np.array_equal(predictions["prediction"], estimator.predict(features))
    metadata = read_metadata("m.era")
    assert metadata.feature_names == list(features.columns)
    assert metadata.categorical_features == ["sector", "grade"]
    assert (metadata.target, metadata.era) == ("y", "week")
    assert {path.name for path in Path().iterdir()} == {table, "m.era", out}
    # Those of text are kept as they are spelled, and numbers to the last bit.
    run("predict", "m.era", table, "-o", "p.csv", "--id", "row")
    assert read("p.csv", dtype=str)["row"].tolist() == frame["row"].tolist()
    run("predict", "m.era", table, "-o", "p.csv", "--id", "a")
    assert read("p.csv")["a"].equals(frame["a"])


@pytest.mark.parametrize("target", ["class", "up"])
@pytest.mark.parametrize("table", ["d.csv", "d.parquet"])
def test_classification_round_trip(frame, features, table, target):
    write(frame.astype({"up": float}), table)
    options = ["--target", target, *CHOICE, "--exclude", "week", *params(max_iter=5)]
    output = run("fit", table, *options, "--out", "m.era")
    assert f"a classifier of '{target}'" in output
    run("predict", "m.era", table, "--out", "p.parquet")
    estimator = Classifier(max_iter=5)
    estimator.fit(features, np.array(frame[target].tolist()))
    predictions = read("p.parquet")
    # Those of numbers are whole, whatever holds them.
    probabilities = [f"probability_{label}" for label in estimator.classes_]
    assert list(predictions.columns) == ["prediction", *probabilities]
    assert np.array_equal(predictions["prediction"], estimator.predict(features))
    expected = estimator.predict_proba(features)
    assert np.array_equal(predictions[probabilities], expected)


@pytest.mark.parametrize(("task", "target", "expected"), [
    ("auto", "y", "regressor"), ("auto", "up", "classifier"),
    ("auto", "grade", "regressor"), ("auto", "sector", "classifier"),
    ("auto", "halves", "regressor"), ("regression", "up", "regressor"),
    ("auto", "flag", "classifier"), ("regression", "flag", "regressor"),
    ("auto", "digits", "regressor"), ("classification", "grade", "classifier"),
    ("classification", "digits", "classifier"),
    ("classification", "name", "classifier"),
])  # fmt: skip
def test_task(frame, task, target, expected):
    flag, digits = frame["y"] > 0, frame["grade"].astype(str)
    halves, names = np.where(flag, 0.25, 0.75), [f"n{i % 21}" for i in range(600)]
    frame = frame.assign(halves=halves, flag=flag, digits=digits, name=names)
    options = ["--target", target, "--task", task, "--features", "a,b", *FAST]
    output = run("fit", write(frame, "d.parquet"), *options)
    assert f"a {expected} of '{target}'" in output


@pytest.mark.parametrize(("text", "value"), [
    ("-inf", -np.inf), ("TRUE", True), ("NONE", None), ("auto", "auto"), ("", ""),
    ("[1,", "[1,"), ("{[]: 1}", "{[]: 1}"),
])  # fmt: skip
def test_value_of_a_parameter(text, value):
    parsed = parse_value(text)
    assert parsed == value
    assert type(parsed) is type(value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_values_are_read_as_json_and_as_python(value):
    parsed = parse_value(json.dumps(value))
    assert parsed == value
    assert type(parsed) is type(value)
    if not str(value).count("inf"):
        assert parse_value(repr(value)) == value


def test_estimator_gets_every_option(small):
    given = {
        "max_iter": 7, "learning_rate": 0.3, "max_depth": None, "max_bins": 17,
        "early_stopping": False, "validation_eras": None,
        "monotonic_cst": {"alpha": 1}, "interaction_cst": [[0], [1]],
        "era_effects": "intercept", "era_effects__n_eras": 2,
        "split_criterion__normalize": False,
    }  # fmt: skip
    own = {"random_state": 11, "n_jobs": 1, "split_criterion": {"era": 1, "vrex": 0.5}}
    options = ["--split-criterion", json.dumps(own["split_criterion"]), "--era", "week"]
    options += ["--verbose", "--random-state", 11, "--n-jobs", 1, "--no-score"]
    assert "[7/7]" in run(*fit(), *options, *params(**given))
    model, metadata = load_model("new.era")
    expected = Regressor().set_params(**given, **own)
    assert model.get_params() == {**expected.get_params(), "verbose": 2}
    assert model.era_effects == Intercepts(n_eras=2)
    assert metadata.split_criterion == repr(expected.split_criterion)
    X = small[["alpha", "beta"]]
    expected.fit(X, small["y"], eras=small["week"])
    assert np.array_equal(model.predict(X), expected.predict(X))


@pytest.mark.usefixtures("small")
def test_defaults_are_the_estimators():
    assert run(*fit(), "--no-score").endswith("s.\nWrote new.era.\n")
    assert load_model("new.era")[0].get_params() == Regressor().get_params()
    # No split of 60 rows leaves 40.
    output = run(*fit(), *params(min_samples_leaf=40, max_iter=2), "--no-score")
    assert "(0 of 2 trees have splits)" in output


@pytest.mark.parametrize("with_eras", [False, True])
@pytest.mark.parametrize("Model", [Regressor, Classifier])
def test_score_is_that_of_rows_held_out(small, Model, with_eras):
    weeks = np.array([f"w{row % 12:02}" for row in range(60)])
    options, eras = [], None
    if Model is Classifier:
        small["y"] = np.where(small["y"] > 0.5, "up", "down")
    write(small.assign(week=weeks), "d.csv")
    X, y = small[["alpha", "beta"]], small["y"].to_numpy()
    if with_eras:
        options, eras = ["--era", "week", "--split-criterion", "era"], weeks
        options += ["--era-order", "ordered"]
        at = np.flatnonzero
        folds = [(at(weeks < x), at(weeks == x)) for x in ("w10", "w11")]
        what = "2 of 12 eras, from era w10 on; 2 models, each scored on the next era"
    else:
        by = y if Model is Classifier else None
        drawn = {"test_size": 12, "random_state": 0, "stratify": by}
        folds = [train_test_split(range(60), **drawn)]
        what = "12 of 60 rows, drawn at random; a model fitted to the rest"
    _, wrote, held_out, *lines = run(*fit(), *options).splitlines()
    assert (wrote, held_out) == ("Wrote new.era.", f"Score on held-out data ({what}):")
    model = Model(split_criterion="era" if with_eras else "gain")
    # The model is of all rows.
    whole = model.fit(X, y, eras=eras).predict(X)
    assert np.array_equal(load_model("new.era")[0].predict(X), whole)
    test, found = np.concatenate([own for _, own in folds]), np.zeros(60, y.dtype)
    p = np.zeros((60, 2))
    for train, own in folds:  # each by a model of the eras before it
        model.fit(X.iloc[train], y[train], eras=weeks[train] if with_eras else None)
        found[own] = model.predict(X.iloc[own])
        if Model is Classifier:
            p[own] = model.predict_proba(X.iloc[own])

    asked = {"R²": (r2_score, found)}
    if Model is Classifier:
        loss = partial(log_loss, labels=model.classes_)
        asked = {"accuracy": (metrics.accuracy_score, found), "log loss": (loss, p)}
        asked["ROC AUC"] = roc_auc_score, p[:, 1]
    for line, (name, (metric, values)) in zip(lines, asked.items(), strict=True):
        expected = f"  {name}: {metric(y[test], values[test]):.4f}"
        if with_eras:
            rows = {week: weeks == week for week in ("w10", "w11")}
            by_era = {week: metric(y[own], values[own]) for week, own in rows.items()}
            worst = (max if name == "log loss" else min)(by_era, key=by_era.get)
            values = list(by_era.values())
            expected += f"; by era {np.mean(values):.4f} (sd {np.std(values):.4f}), "
            expected += f"worst {by_era[worst]:.4f} in era {worst}"
        assert line == expected


@pytest.mark.parametrize("path", ["e.parquet", "e.feather"])
def test_eras_of_typed_files_are_printed_as_those_of_text(small, path):
    days = pd.Series(pd.date_range("2024-01-01", periods=6)[np.arange(60) % 6])
    write(small.assign(week=days.dt.strftime("%Y-%m-%d")), "d.csv")
    write(small.assign(week=days), path)
    told = []
    for data in ("d.csv", path):
        fitted = run(*fit(data), "--era", "week", *params(max_iter=3))
        scored = run("predict", "new.era", data, "--out", "p.csv", "--scoring", "r2")
        told.append(fitted.splitlines()[2:] + scored.splitlines()[1:])
    assert told[0] == told[1]
    assert "from era 2024-01-06 on" in told[0][0]
    assert " in era 2024-01-0" in told[0][-1]


def forward(model, X, y, weeks, asked, horizon=1, method="predict"):
    """Predictions of weeks, each by a model that ends so long before it."""
    found = {}
    for week in asked:
        train, test = weeks <= week - horizon, np.flatnonzero(weeks == week)
        model.fit(X[train], y[train], eras=weeks[train])
        found |= dict(zip(test, getattr(model, method)(X.iloc[test]), strict=True))
    return np.array([found.get(row, np.zeros_like(found[test[0]])) for row in X.index])


@pytest.mark.parametrize("estimator", ["boosting", "auto"])
def test_the_score_of_the_next_era_is_forecast(small, estimator):
    weeks = np.arange(60) % 15
    write(small.assign(week=weeks), "d.csv")
    options = ["--era", "week", "--estimator", estimator, *params(max_iter=3)]
    *_, last = lines = run(*fit(), *options).splitlines()
    model = load_model("new.era")[0]
    X, y = small[["alpha", "beta"]], small["y"].to_numpy()
    predicted, test = forward(clone(model), X, y, weeks, range(12, 15)), weeks > 11
    own = era_scores(y[test], predicted[test], eras=weeks[test], metric=r2_score)
    forecast = EraScoreForecast().fit(own)
    low, high = forecast.interval()
    told = f"{forecast.mean_:.4f}, with 80 % from {low:.4f} to {min(high, 1):.4f}"
    assert last == f"    in the next era: {told}"
    if estimator == "auto":
        model.fit(X, y, eras=weeks)
        forecast = EraScoreForecast(bounds=(None, 0)).fit(model)
        low, high = forecast.interval()
        told = f"{-forecast.mean_:.4g}, with 80 % from {-high:.4g} to {-low:.4g}"
        # One forecast: that of the folds, unless there are scores.
        assert "its loss in" not in "".join(lines)
        lines = run(*fit(), *options, "--no-score").splitlines()
        assert f"  its loss in the next era: {told}" in lines


SCORES = {
    "counts": ("poisson", "R², mean Poisson deviance"),
    "ups": (None, "accuracy, log loss, ROC AUC"),
    "kinds": (None, "accuracy, log loss, ROC AUC ovr"),
}  # fmt: skip


def counts_by_week(n_weeks=30, per_week=40):
    rng = np.random.default_rng(0)
    weeks, X = np.repeat(np.arange(n_weeks), per_week), rng.normal(size=(2, 1200))
    rate = np.exp(X[0] + rng.normal(size=n_weeks)[weeks])
    counts = rng.poisson(rate)
    kinds = np.array(["few", "more", "many"])[np.digitize(counts, [1, 3])]
    columns = {"week": weeks, "a": X[0], "b": X[1], "counts": counts}
    return pd.DataFrame(columns | {"kinds": kinds, "ups": counts > 1})


@pytest.mark.parametrize("target", SCORES)
def test_scores_are_those_of_the_loss_and_of_classes(target, empty_folder):
    rows, (loss, names) = counts_by_week(), SCORES[target]
    write(rows, "d.csv")
    base = ["fit", "d.csv", "--target", target, "--era", "week", "--out", "m.era"]
    base += ["--features", "a,b", *params(max_iter=5)]
    base += params(loss=loss) if loss else []
    lines = [x.strip() for x in run(*base).splitlines() if x.startswith("  ")]
    told = dict(x.split(": ", 1) for x in lines if not x.startswith("in the "))
    assert ", ".join(told) == names
    # As by models of the weeks before, fitted by hand.
    model, test = load_model("m.era")[0], rows.week >= 24
    method = "predict" if loss else "predict_proba"
    given = rows[["a", "b"]], rows[target], rows.week, range(24, 30)
    p = forward(clone(model), *given, method=method)[test]
    if loss:
        value = metrics.mean_poisson_deviance(rows[target][test], p)
    else:
        p = p[:, 1] if target == "ups" else p
        value = roc_auc_score(rows[target][test], p, multi_class="ovr")
    assert [*told.values()][-1].startswith(f"{value:.4f}; by era ")


@pytest.mark.parametrize("horizon", ["1", "4"])
def test_a_loss_to_come_is_positive_and_as_far_ahead_as_the_horizon(horizon):
    """Losses of a few eras spread by more than their mean."""
    rows = counts_by_week(20, 60)
    rows["counts"] *= np.where(rows.week == 18, 40, 1)
    write(rows, "d.csv")
    base = ["fit", "d.csv", "--target", "counts", "--era", "week", "--out", "m.era"]
    base += ["--scoring", "neg_mean_squared_error", "--horizon", horizon]
    *_, line, last = run(*base, "--features", "a,b", *params(max_iter=5)).splitlines()
    X, model, test = rows[["a", "b"]], Regressor(max_iter=5), rows[rows.week >= 16]
    if horizon == "4":  # the last four weeks are a step
        train = rows[rows.week <= 12]
        model.fit(train[["a", "b"]], train.counts, eras=train.week)
        predicted = model.predict(test[["a", "b"]])
    else:
        given = model, X, rows.counts, rows.week, range(16, 20)
        predicted = forward(*given)[rows.week >= 16]
    errors = (predicted - test.counts) ** 2
    assert line.startswith(f"  mean squared error: {errors.mean():.4f}; by era ")
    forecast = EraScoreForecast(bounds=(None, 0))
    forecast.fit(-errors.groupby(test.week).mean(), eras=range(4))
    low, high = forecast.interval(horizon=int(horizon))
    assert EraScoreForecast().fit(forecast.scores_, eras=range(4)).interval()[1] > 0
    when = {"1": "the next era", "4": "the era 4 eras after the last"}[horizon]
    assert last.startswith(f"    in {when}: ")
    assert last.endswith(f", with 80 % from {-high:.4f} to {-low:.4f}")


@pytest.mark.parametrize("extra", [[], ["--estimator", "auto", "--no-score"]])
def test_a_horizon_in_days_counts_months_of_all_years(extra):
    """Those of the scored eras alone might be any numbers."""
    rows = counts_by_week(24, 50)
    rows["month"] = 100 * (2023 + rows.week // 12) + rows.week % 12 + 1
    write(rows, "d.csv")
    base = ["fit", "d.csv", "--target", "ups", "--era", "month", "--out", "m.era"]
    base += ["--features", "a,b", "--horizon", "90D", *params(max_iter=5)]
    told = invoke(*base, *extra)
    assert (told.exit_code, told.stderr) == (0, "")
    n_forecasts = 1 if extra else 3
    assert told.stdout.count("in the era 90D after the last: ") == n_forecasts
    reason = promise([0.1, 0.2, 0.3], "9 pints", None, ends=ANY)
    assert reason.startswith("no forecast: horizon must be a number of eras")


ANY = -np.inf, np.inf


def test_nothing_beyond_the_ends_of_a_score_is_promised():
    told = promise([-1.0, 0.0, -0.1], 1, None, ends=(-np.inf, 0.0), sign=-1)
    assert " from 0.0000 to " in told
    told = promise([0.2, 0.999, 0.05], 1, None, ends=(0.0, 1.0))
    assert told.endswith(" from 0.0000 to 1.0000")
    *_, low, _, high = promise([0.2, 0.999, 0.05], 1, None, ends=ANY).split()
    assert float(low) < 0 < 1 < float(high)
    for name, ends in {
        "r2": (-np.inf, 1), "roc_auc_ovr": (0, 1), "mutual_info_score": ANY,
        "neg_log_loss": (-np.inf, 0), "neg_root_mean_squared_error": (-np.inf, 0),
        "neg_mean_poisson_deviance": (-np.inf, 0), "positive_likelihood_ratio": ANY,
    }.items():  # fmt: skip
        assert range_of(get_scorer(name)) == ends
    assert range_of(lambda *args: 3.0) == ANY


@pytest.mark.parametrize(("target", "name", "shown"), [
    ("counts", "neg_mean_absolute_error", "mean absolute error"), ("ups", "f1", "f1"),
    ("counts", "numerai_corr", "numerai corr"), ("kinds", "roc_auc_ovo", "ROC AUC ovo"),
])  # fmt: skip
def test_a_score_of_another_name(target, name, shown):
    rows = counts_by_week()
    write(rows, "d.csv")
    base = ["--target", target, "--features", "a,b", *params(max_iter=5), "-o", "m.era"]
    told = run("fit", "d.csv", *base, "--era", "week", "--scoring", name)
    assert told.count(f"\n  {shown}: ") == 1
    assert "R²" not in told
    assert "accuracy" not in told
    # Of a file's own target, by the model that is in it.
    model, X, y = load_model("m.era")[0], rows[["a", "b"]], rows[target]
    if name == "numerai_corr":
        expected = numerai_corr(y, model.predict(X))
    else:
        expected = abs(get_scorer(name)(model, X, y))
    told = run("predict", "m.era", "d.csv", "--out", "p.csv", "--scoring", name)
    assert f"\n  {shown}: {expected:.4f}; by era " in told
    write(rows.drop(columns="week"), "d.csv")
    told = run("predict", "m.era", "d.csv", "--out", "p.csv", "--scoring", name)
    assert told.endswith(f"\n  {shown}: {expected:.4f}\n")


def test_a_score_that_cannot_be_had_leaves_a_model(small):
    small["y"] = np.where(small["week"] == 3, "a", "b")
    write(small.assign(week=0), "d.csv")
    result = invoke(*fit(), "--era", "week")
    assert result.exit_code == 0
    assert "Warning: cannot score: " in result.stderr
    assert load_model("new.era")[0].classes_.tolist() == ["a", "b"]
    unordered = ["--era", "sector", "--era-order", "unordered", "--cv", "3"]
    told = invoke(*fit(), *unordered, *params(max_iter=1)).stderr
    assert "cannot score: --cv 3 is for eras that follow each other." in told


@pytest.mark.parametrize("others", [["b"], ["b", "c"]])
def test_a_class_of_the_last_era_counts_in_its_score(small, others):
    weeks, y = small["week"].to_numpy(), np.resize(others, 60)
    y[weeks == 3] = "a"
    write(small.assign(y=y), "d.csv")
    result = invoke(*fit(), "--era", "week", *params(max_iter=3))
    assert (result.exit_code, result.stderr) == (0, "")
    test, X = weeks == 3, small[["alpha", "beta"]]
    model = Classifier(max_iter=3).fit(X[~test], y[~test], eras=weeks[~test])
    p = np.zeros((test.sum(), 1 + len(others)))
    p[:, 1:] = model.predict_proba(X[test])[:, : len(others)]
    loss = log_loss(y[test], p, labels=["a", *others])
    assert result.stdout.endswith(f"  accuracy: 0.0000\n  log loss: {loss:.4f}\n")


def test_warnings_name_options_and_are_printed_once(small):
    write(small.assign(week=[f"w{x % 4}" for x in range(60)]), "d.csv")
    told = invoke(*fit(), "--era", "week").stderr
    assert "pass --era-order ordered if eras follow each other" in told
    assert "era_order" not in told
    # Once, a line each.
    write(small.assign(week=1), "d.csv")
    result = invoke(*fit(), "--era", "week", "--split-criterion", "era")
    assert result.exit_code == 0
    first, second = result.stderr.splitlines()
    assert first.startswith("Warning: eras holds the single era 1")
    assert second == "Warning: cannot score: there is only one era."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("out", "begins"), [("figure.png", b"\x89PNG\r"), ("figure.svg", b"<?xml")]
)
def test_demo(tmp_path, out, begins):
    # Three trees follow the spiral as well as the fifty of the default, in less time.
    output = run("demo", "--out", out, "--max-iter", 3, "--random-state", 1)
    content = (tmp_path / out).read_bytes()
    assert content.startswith(begins)
    assert len(content) > 10_000
    *rows, wrote = output.splitlines()[1:]
    assert wrote == f"Wrote {out}."
    cells = {name: texts for name, *texts in map(str.split, rows)}
    assert list(cells) == NAMES
    train, test = (float(text.rstrip("%")) for text in cells["gain"][:2])
    assert (train, test) == (100, pytest.approx(50, abs=5))
    assert float(cells["directional"][1].rstrip("%")) >= 98
    assert float(cells["invariant"][1].rstrip("%")) >= 90


def test_version():
    assert run("--version").startswith(f"sklearn-era {sklearn_era.__version__} (scikit")


@pytest.mark.parametrize("command", [[], ["fit"], ["predict"], ["demo"]])
def test_help_fits_in_a_terminal(command):
    # 80 columns, of which two stay free.
    text = CliRunner().invoke(app, [*command, "--help"], terminal_width=78).stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "..." not in text.partition("Options:")[2]
    assert "Exit codes: 0 " in text if not command else "Exit codes" not in text


# Beside the interpreter, whether or not the environment is activated.
SCRIPT = shutil.which("sklearn-era", path=Path(sys.executable).parent)


@pytest.mark.parametrize("program", [
    [SCRIPT], slow([sys.executable, "-m", "sklearn_era"])
])  # fmt: skip
def test_the_program_is_a_script_and_a_package(program, frame):
    write(frame[["a", "b", "y"]], "d.csv")
    command = [*program, "fit", "d.csv", "--target", "y", "--out", "m.era"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert load_model("m.era")[0].n_iter_ == 100


def test_a_failure_is_a_sentence_and_an_exit_status(frame, monkeypatch, capsys):
    write(frame[["a", "b", "y"]], "d.csv")
    arguments = ["sklearn-era", "fit", "d.csv", "--target", "z", "-o", "m.era"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as raised:
        cli.main()
    assert raised.value.code == 2
    told = "Error: --target: there is no column 'z'; use 'a', 'b', 'y'.\n"
    assert tuple(capsys.readouterr()) == ("", told)


def test_a_single_class_is_predicted(frame):
    save_model(Classifier().fit(frame[["a"]], np.repeat(7, len(frame))), "m.era")
    run("predict", "m.era", write(frame, "d.csv"), "-o", "p.csv")
    assert set(map(tuple, read("p.csv").round(9).to_numpy())) == {(7.0, 1.0)}


@pytest.mark.parametrize("estimator", ["forest", "auto"])
def test_other_estimators(frame, features, estimator):
    write(frame, "d.csv")
    base = ["--target", "y", "--era", "week", "--estimator", estimator, *CHOICE]
    size = {"n_estimators": 3} if estimator == "forest" else {"max_iter": 3}
    base += ["-o", "m.era", "--random-state", "0"]
    output = run("fit", "d.csv", *base, *params(**size))
    assert ("3 iterations" if estimator == "forest" else "an average of ") in output
    run("predict", "m.era", "d.csv", "-o", "p.csv")
    expected = load_model("m.era")[0].predict(features)
    assert np.array_equal(read("p.csv")["prediction"], expected)


@pytest.mark.parametrize(("given", "told"), [
    (["--verbose"], "AutoEra 1/22 fits: plain, loss "),
    (["--time-budget", "1e-9"], "leaves_4); the average is of the others"),
    (params(learning_rate=1e-300, loss="absolute_error"), "no more than its error"),
], ids=["verbose", "no time", "kept"])  # fmt: skip
def test_an_average_tells_of_its_members(frame, given, told):
    write(frame.assign(y=np.random.default_rng(0).poisson(2, len(frame))), "d.csv")
    base = ["--target", "y", "--era", "week", "--estimator", "auto", *CHOICE]
    result = invoke("fit", "d.csv", *base, *params(max_iter=4), *given, "-o", "m.era")
    output = result.stdout
    assert told in output + result.stderr
    model, metadata = load_model("m.era")
    assert (metadata.estimator, metadata.era) == ("AutoEraRegressor", "week")
    assert metadata.categorical_features == ["sector", "grade"]
    (of_weights,) = (x for x in output.splitlines() if x.startswith("  weights: "))
    for name, weight in model.weights_.items():
        assert (f" {name} {weight:.2f}" in of_weights) == (name in model.members_)
    if len(model.weights_) > 1:
        results = model.cv_results_
        gain, error = results["mean_difference"][-1], results["se_difference"][-1]
        assert f"loss of the average: {gain:.4g} (se {error:.2g}) less than" in output
        assert ("the plain model is kept" in output) == (gain <= error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["csv", slow("parquet")])
def test_times_and_groups_are_told_to_averages_and_intercepts(form, tmp_path):
    """As by hand: known groups have their intercepts, and files without them none."""
    data, rows = f"d.{form}", shops_by_week()[0]
    rows["shop"] = "s" + rows.shop
    write(rows, data)
    write(rows.drop(columns="shop"), "new.csv")
    base = ["fit", data, "--target", "y", "--era", "week", "--groups", "shop"]
    base += ["--out", "m.era", *params(max_iter=10)]
    eras = rows[["shop", "week"]]
    for extra, model in (
        (["--estimator", "auto", "--known-groups", "--horizon", "2"],
         AutoEraRegressor(Regressor(max_iter=10), group="known", horizon=2)),
        (["--estimator", "auto", "--horizon", "14D"],
         AutoEraRegressor(Regressor(max_iter=10), horizon="14D")),
        (params(era_effects="intercept"),
         Regressor(max_iter=10, era_effects="intercept")),
        (["--known-groups"], Regressor(max_iter=10, era_effects=Intercepts("auto"))),
    ):  # fmt: skip
        told = run(*base, *extra)
        known = "known" if "--known-groups" in extra else "new"
        held_out = "2 of 16 eras, from era 2024-04-08 on"
        if "--horizon" not in extra:
            held_out = "3 of 16 eras, from era 2024-04-01 on"
        assert f"{held_out}, of {known} groups" in told
        assert "768 rows of 16 eras" in told
        model.fit(rows[["a"]], rows.y, eras=eras)
        run("predict", "m.era", data, "--out", "p.csv")
        expected = model.predict(rows[["a"]], eras=eras)
        np.testing.assert_allclose(read("p.csv").prediction, expected, rtol=1e-6)
        if known == "known" or "--estimator" not in extra:  # by the names in the file
            loaded = load_model("m.era")[0]
            dates = pd.to_datetime(rows.week) if form == "csv" else rows.week
            named = rows[["a", "shop"]].assign(week=dates)
            np.testing.assert_allclose(loaded.predict(named), expected, rtol=1e-6)
            found = loaded.predict(named[:1], eras=["week", "shop"])
            np.testing.assert_allclose(found, expected[:1], rtol=1e-6)
        result = invoke("predict", "m.era", "new.csv", "--out", "p.csv")
        if known == "known":
            lacks = "the model was fitted to 'shop', which 'new.csv' lacks."
            assert lacks in result.stderr
            continue
        expected = model.predict(rows[["a"]])
        np.testing.assert_allclose(read("p.csv").prediction, expected, rtol=1e-6)
    write(rows.assign(week=rows.week.mask(rows.index == 3)), "gap.csv")
    result = invoke("predict", "m.era", "gap.csv", "--out", "p.csv")
    assert "DATA: column 'week' has 1 missing value: fill" in result.stderr
    texts = rows.week.str.split("-").str[::-1].str.join(".")
    write(rows.assign(week=texts), "texts.csv")
    result = invoke("fit", "texts.csv", *base[2:], "--groups", "shop")
    assert "--era: '01.01.2024' of column 'week' tells no order: write" in result.stderr
    length = " must be a number of eras or a duration above 0, such as '28D' or "
    length += "'4 weeks', in weeks, days, hours, minutes or seconds; got '"
    no_lengths = ("", "0", "-2", "1.5", "True", "14X", "0D")
    for extra, error in (
        (["--groups", "week"], "--groups: 'week' is the --era column."),
        (["--era-order", "unordered"], "--era-order: 'unordered' is for --era without"),
        (["--era", "shop", "--groups", "week"], "'week' is rather a time than 'shop'"),
        (["--horizon", "99"], "--horizon: 99 is as long as the 16 eras of 'week'"),
        (["--horizon", "9 pints"], "horizon must be a number of eras or a duration"),
        *((["--horizon", x], f"--horizon{length}{x}'.") for x in no_lengths),
    ):
        for estimator in ("auto", "boosting"):
            assert error in fail(*base, "--estimator", estimator, *extra)
    told = fail(*base, "--known-groups", "--estimator", "forest")
    assert "--known-groups: a forest has no effects of 'shop'" in told
    for extra in (["--groups", "shop"], ["--horizon", "2"]):
        base = "fit", data, "--target", "y", "--out", "m.era"
        assert "needs --era" in fail(*base, *extra)
