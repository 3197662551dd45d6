"""The program's commands, run as a person would, and what they make."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sklearn_era
from helpers.cli import (
    N_ROWS,
    invoke,
    make_features,
    make_frame,
    pd,
    read,
    run,
    to_options,
)
from sklearn_era.cli import _demo
from sklearn_era.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_era.model_files import load_model, read_metadata


@pytest.fixture(scope="module")
def frame():
    return make_frame()


@pytest.fixture(scope="module")
def features(frame):
    return make_features(frame)


@pytest.fixture(params=["csv", "csv.gz", "parquet"])
def table(request, frame, tmp_path):
    """The data set in a file, in each of the formats."""
    path = tmp_path / f"data.{request.param}"
    if request.param == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


CHOICE = ["--exclude", "row,y,up,class", "--categorical", "sector,grade"]


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ([], {}),
        (
            ["--split-criterion", "era", "--boltzmann-alpha", "-1"],
            {"split_criterion": "era", "boltzmann_alpha": -1.0},
        ),
        (
            ["--split-criterion", "era", "--boltzmann-alpha", "-inf"],
            {"split_criterion": "era", "boltzmann_alpha": -np.inf},
        ),
        (
            ["--split-criterion", "directional", "--min-direction-agreement", "0.6"],
            {"split_criterion": "directional", "min_direction_agreement": 0.6},
        ),
    ],
    ids=["gain", "era", "era-min", "directional"],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_regression_round_trip(
    table, frame, features, tmp_path, options, parameters, suffix
):
    model, out = tmp_path / "m.skops", tmp_path / f"p.{suffix}"
    base = ["--target", "y", "--era", "week", "--max-iter", 8, "--out", model]
    output = run("fit", table, *base, *CHOICE, *options)
    assert "a regression of 'y'" in output
    assert "600 rows of 5 eras, 6 features" in output
    assert str(model) in output
    output = run("predict", model, table, "--out", out, "--id", "row")
    assert output == f"Wrote 600 predictions to {out}.\n"

    estimator = HistGradientBoostingRegressor(max_iter=8, **parameters)
    estimator.fit(features, frame["y"], eras=frame["week"])
    predictions = read(out)
    assert list(predictions.columns) == ["row", "prediction"]
    assert np.array_equal(predictions["prediction"], estimator.predict(features))
    metadata = read_metadata(model)
    assert metadata.feature_names == list(features.columns)
    assert metadata.categorical_features == ["sector", "grade"]
    assert (metadata.target, metadata.era) == ("y", "week")


def test_ids_are_kept_as_they_are_spelled(table, frame, tmp_path):
    model, out = tmp_path / "m.skops", tmp_path / "p.csv"
    run("fit", table, "--target", "y", "--features", "a", "--max-iter", 1, "-o", model)
    run("predict", model, table, "-o", out, "--id", "row")
    assert pd.read_csv(out, dtype=str)["row"].tolist() == frame["row"].tolist()
    run("predict", model, table, "-o", out, "--id", "a")
    assert read(out)["a"].equals(frame["a"])


@pytest.mark.parametrize("target", ["class", "up"])
def test_classification_round_trip(table, frame, features, tmp_path, target):
    model, out = tmp_path / "m.skops", tmp_path / "p.parquet"
    arguments = ["--target", target, "--max-iter", 5, *CHOICE, "--exclude", "week"]
    output = run("fit", table, *arguments, "--out", model)
    assert f"a classification of '{target}'" in output
    run("predict", model, table, "--out", out)
    estimator = HistGradientBoostingClassifier(max_iter=5)
    estimator.fit(features, np.array(frame[target].tolist()))
    predictions = read(out)
    assert list(predictions.columns) == [
        "prediction",
        *(f"probability_{label}" for label in estimator.classes_),
    ]
    assert np.array_equal(predictions["prediction"], estimator.predict(features))
    probabilities = predictions.drop(columns="prediction").to_numpy()
    assert np.array_equal(probabilities, estimator.predict_proba(features))


@pytest.mark.parametrize(
    ("task", "target", "expected"),
    [
        ("auto", "y", "regression"),
        ("auto", "grade", "regression"),
        ("auto", "up", "classification"),
        ("auto", "sector", "classification"),
        ("regression", "up", "regression"),
        ("classification", "grade", "classification"),
    ],
)
def test_task(frame, tmp_path, task, target, expected):
    frame.to_csv(tmp_path / "d.csv", index=False)
    arguments = ["--target", target, "--task", task, "--features", "a,b"]
    output = run(
        "fit", tmp_path / "d.csv", *arguments, "--max-iter", 2, "-o", tmp_path / "m"
    )
    assert f"a {expected} of '{target}'" in output


def test_estimator_gets_every_option(table, tmp_path):
    given = {
        "max_iter": 7,
        "learning_rate": 0.3,
        "max_leaf_nodes": None,
        "max_depth": 3,
        "min_samples_leaf": 5,
        "max_bins": 17,
        "l2_regularization": 0.5,
        "max_features": 0.5,
        "colsample_bytree": 0.7,
        "random_state": 11,
        "verbose": 2,
        "split_criterion": "directional",
        "boltzmann_alpha": 2.0,
        "min_direction_agreement": 0.25,
    }
    options = ["--early-stopping", "false", *to_options(given)]
    model = tmp_path / "m.skops"
    base = ["--target", "y", "--era", "week", "--features", "a,b,c"]
    output = run("fit", table, *base, *options, "--out", model)
    assert "[7/7]" in output
    parameters = load_model(model)[0].get_params()
    assert {name: parameters[name] for name in given} == given
    assert parameters["early_stopping"] is False


def test_fit_passes_warnings_on(frame, tmp_path):
    frame.assign(week=1).to_csv(tmp_path / "d.csv", index=False)
    arguments = ["--target", "y", "--era", "week", "--features", "a", "--max-iter", 1]
    result = invoke(
        *["fit", tmp_path / "d.csv", *arguments],
        *["--split-criterion", "era", "--out", tmp_path / "m"],
    )
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: eras holds the single era 1")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_demo(tmp_path, suffix, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("COLUMNS", "100")
    out = tmp_path / f"figure.{suffix}"
    output = run("demo", "--out", out, "--max-iter", 50, "--boltzmann-alpha", -2)
    assert out.stat().st_size > 10_000
    assert out.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")
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


def test_demo_hands_its_options_over(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    handed = []

    def fit_criteria(data, criteria, parameters):
        handed.extend([criteria, parameters])
        raise KeyboardInterrupt

    monkeypatch.setattr(_demo, "_fit_criteria", fit_criteria)
    arguments = ["--max-iter", "3", "--boltzmann-alpha", "-5", "--random-state", "7"]
    invoke("demo", "--out", tmp_path / "f.png", *arguments)
    criteria, parameters = handed
    assert criteria["era"] == {"boltzmann_alpha": -5}
    assert (parameters["max_iter"], parameters["random_state"]) == (3, 7)


def test_names_with_brackets_are_printed_as_they_are(frame, tmp_path):
    frame[["a", "y"]].rename(columns={"y": "[red]y"}).to_csv(tmp_path / "d.csv")
    model = tmp_path / "[bold]m.skops"
    arguments = ["--target", "[red]y", "--max-iter", 1, "--out", model]
    output = run("fit", tmp_path / "d.csv", *arguments)
    assert "'[red]y'" in output
    assert str(model) in output


def test_version():
    assert run("--version").startswith(f"sklearn-era {sklearn_era.__version__} (scikit")


def test_help_lists_the_commands():
    output = run("--help")
    assert all(command in output for command in ("demo", "fit", "predict"))


def test_console_script(frame, tmp_path):
    # Beside the interpreter, whether or not the environment is activated.
    script = shutil.which("sklearn-era", path=Path(sys.executable).parent)
    assert script is not None
    data, model, out = (tmp_path / name for name in ("d.csv", "m.skops", "p.csv"))
    frame[["a", "b", "y"]].to_csv(data, index=False)

    def call(*arguments):
        return subprocess.run(
            [script, *map(str, arguments)], capture_output=True, text=True, cwd=tmp_path
        )

    fitted = call("fit", data, "--target", "y", "--max-iter", 2, "--out", model)
    assert (fitted.returncode, fitted.stderr) == (0, "")
    predicted = call("predict", model, data, "--out", out)
    assert (predicted.returncode, predicted.stderr) == (0, "")
    assert len(read(out)) == N_ROWS
    failed = call("fit", data, "--target", "z", "--out", model)
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert failed.stderr == (
        "Error: --target: there is no column 'z'; there are 'a', 'b' and 'y'.\n"
    )
