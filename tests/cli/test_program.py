"""The program's commands, run as a person would, and what they make."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sklearn_era
from helpers.cli import invoke, read, run, to_options, write
from sklearn_era import cli
from sklearn_era.cli import _demo, _demo_figure
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_files import load_model, read_metadata

CHOICE = ["--exclude", "row,y,up,class", "--categorical", "sector,grade"]


@pytest.mark.parametrize(
    ("table", "out"),
    [("d.csv", "p.parquet"), ("d.csv.gz", "p.csv"), ("d.parquet", "p.csv")],
)
def test_regression_round_trip(frame, features, table, out):
    parameters = {"split_criterion": "directional", "min_direction_agreement": 0.6}
    base = ["--target", "y", "--era", "week", "--max-iter", 8, "--out", "m.skops"]
    write(frame, table)
    output = run("fit", table, *base, *CHOICE, *to_options(parameters))
    assert "a regression of 'y'" in output
    assert "600 rows of 5 eras, 6 features" in output
    assert "m.skops" in output
    output = run("predict", "m.skops", table, "--out", out, "--id", "row")
    assert output == f"Wrote 600 predictions to {out}.\n"
    estimator = Regressor(max_iter=8, **parameters)
    estimator.fit(features, frame["y"], eras=frame["week"])
    predictions = read(out)
    assert list(predictions.columns) == ["row", "prediction"]
    assert np.array_equal(predictions["prediction"], estimator.predict(features))
    metadata = read_metadata("m.skops")
    assert metadata.feature_names == list(features.columns)
    assert metadata.categorical_features == ["sector", "grade"]
    assert (metadata.target, metadata.era) == ("y", "week")


@pytest.mark.parametrize("table", ["d.csv", "d.parquet"])
def test_ids_are_kept_as_they_are_spelled(frame, table):
    options = ["--target", "y", "--features", "a", "--max-iter", 1, "-o", "m"]
    run("fit", write(frame, table), *options)
    run("predict", "m", table, "-o", "p.csv", "--id", "row")
    assert pd.read_csv("p.csv", dtype=str)["row"].tolist() == frame["row"].tolist()
    run("predict", "m", table, "-o", "p.csv", "--id", "a")
    assert read("p.csv")["a"].equals(frame["a"])


@pytest.mark.parametrize("target", ["class", "up"])
@pytest.mark.parametrize("table", ["d.csv", "d.parquet"])
def test_classification_round_trip(frame, features, table, target):
    options = ["--target", target, "--max-iter", 5, *CHOICE, "--exclude", "week"]
    output = run("fit", write(frame, table), *options, "--out", "m.skops")
    assert f"a classification of '{target}'" in output
    run("predict", "m.skops", table, "--out", "p.parquet")
    estimator = Classifier(max_iter=5)
    estimator.fit(features, np.array(frame[target].tolist()))
    predictions = read("p.parquet")
    probabilities = [f"probability_{label}" for label in estimator.classes_]
    assert list(predictions.columns) == ["prediction", *probabilities]
    assert np.array_equal(predictions["prediction"], estimator.predict(features))
    expected = estimator.predict_proba(features)
    assert np.array_equal(predictions[probabilities], expected)


@pytest.mark.parametrize(
    ("task", "target", "expected"),
    [
        ("auto", "y", "regression"), ("auto", "up", "classification"),
        ("auto", "grade", "regression"), ("auto", "sector", "classification"),
        ("auto", "halves", "regression"), ("regression", "up", "regression"),
        ("classification", "grade", "classification"),
    ],
)  # fmt: skip
def test_task(frame, task, target, expected):
    frame = frame.assign(halves=np.where(frame["y"] > 0, 0.25, 0.75))
    options = ["--target", target, "--task", task, "--features", "a,b"]
    output = run("fit", write(frame, "d.csv"), *options, "--max-iter", 2, "-o", "m")
    assert f"a {expected} of '{target}'" in output


def test_estimator_gets_every_option(frame):
    given = {
        "max_iter": 7, "learning_rate": 0.3, "max_leaf_nodes": None, "max_depth": 3,
        "min_samples_leaf": 5, "max_bins": 17, "l2_regularization": 0.5,
        "max_features": 0.5, "colsample_bytree": 0.7, "random_state": 11, "verbose": 2,
        "fast_gain": True,
    }  # fmt: skip
    options = ["--early-stopping", "false", *to_options(given)]
    base = ["--target", "y", "--features", "a,b,c", "--out", "m"]
    assert "[7/7]" in run("fit", write(frame, "d.csv"), *base, *options)
    parameters = load_model("m")[0].get_params()
    assert {name: parameters[name] for name in given} == given
    assert parameters["early_stopping"] is False


def test_fit_passes_warnings_on(frame):
    write(frame.assign(week=1), "d.csv")
    options = ["--target", "y", "--era", "week", "--features", "a", "--max-iter", 1]
    criterion = ["--split-criterion", "era"]
    result = invoke("fit", "d.csv", *options, *criterion, "--out", "m")
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: eras holds the single era 1")
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("out", "begins"), [("figure.png", b"\x89PNG\r"), ("figure.svg", b"<?xml")]
)
def test_demo(tmp_path, out, begins, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(_demo_figure, "_RESOLUTION", 80)  # which takes less time
    # Three trees follow the spiral as well as the fifty of the default, in less time.
    output = run("demo", "--out", out, "--max-iter", 3, "--boltzmann-alpha", -2)
    content = (tmp_path / out).read_bytes()
    assert content.startswith(begins)
    assert len(content) > 10_000
    rows = {
        cells[1].strip(): cells
        for cells in (line.split("│") for line in output.splitlines())
        if len(cells) == 8
    }
    assert tuple(rows) == _demo._CRITERIA
    train, test = (float(rows["gain"][column].strip(" %")) for column in (2, 3))
    assert train == 100
    assert test == pytest.approx(50, abs=5)
    assert float(rows["directional"][3].strip(" %")) >= 98
    assert float(rows["invariant"][3].strip(" %")) >= 90
    assert rows["gain"][6].strip() == "1.0"
    assert "era has boltzmann_alpha=-2;" in output
    assert output.endswith(f"Decision surfaces: {out}\n")


def test_demo_hands_its_options_over(monkeypatch):
    handed = []

    def fit_criteria(data, criteria, parameters):
        handed.extend([criteria, parameters])
        raise KeyboardInterrupt

    monkeypatch.setattr(_demo, "_fit_criteria", fit_criteria)
    invoke("demo", "--max-iter", 3, "--boltzmann-alpha", -5, "--random-state", 7)
    criteria, parameters = handed
    assert criteria["era"] == {"boltzmann_alpha": -5, "min_era_coverage": 1.0}
    assert (parameters["max_iter"], parameters["random_state"]) == (3, 7)


def test_names_with_brackets_are_printed_as_they_are(frame):
    write(frame[["a", "y"]].rename(columns={"y": "[red]y"}), "d.csv")
    options = ["--target", "[red]y", "--max-iter", 1, "--out", "[bold]m.skops"]
    output = run("fit", "d.csv", *options)
    assert "'[red]y'" in output
    assert "[bold]m.skops" in output


def test_version_and_help():
    assert run("--version").startswith(f"sklearn-era {sklearn_era.__version__} (scikit")
    output = run("--help")
    assert all(command in output for command in ("demo", "fit", "predict"))


@pytest.mark.slow
def test_console_script(frame):
    # Beside the interpreter, whether or not the environment is activated.
    script = shutil.which("sklearn-era", path=Path(sys.executable).parent)
    assert script is not None
    write(frame[["a", "b", "y"]], "d.csv")
    options = ["--target", "y", "--max-iter", "2", "--out", "m"]
    command = [script, "fit", "d.csv", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert load_model("m")[0].n_iter_ == 2


def test_a_failure_is_a_sentence_and_an_exit_status(frame, monkeypatch, capsys):
    write(frame[["a", "b", "y"]], "d.csv")
    arguments = ["sklearn-era", "fit", "d.csv", "--target", "z", "--out", "m"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as raised:
        cli.main()
    assert raised.value.code == 2
    assert tuple(capsys.readouterr()) == (
        "", "Error: --target: there is no column 'z'; there are 'a', 'b' and 'y'.\n",
    )  # fmt: skip
