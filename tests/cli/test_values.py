"""What the values of a table are taken for, whichever file they come from."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.cli import fail, invoke, make_frame, read, run, write
from sklearn_era.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_era.model_files import load_model, save_model


@pytest.fixture
def frame():
    rng = np.random.RandomState(0)
    frame = make_frame()[["a", "y"]]
    frame["c"] = rng.choice([-1, 0, 2, 30], frame.shape[0])
    frame["y"] += frame["c"]
    return frame


BASE = ["--target", "y", "--categorical", "c", "--max-iter", 5, "--out", "m.skops"]


@pytest.mark.parametrize(
    "fitted_on",
    ["1.0.csv", "text.parquet", pytest.param("1.csv", marks=pytest.mark.slow)],
)
def test_a_whole_number_is_one_category_however_it_is_spelled(frame, fitted_on):
    decimal = frame.astype({"c": float})
    for suffix in ("csv", "parquet"):
        write(frame, f"1.{suffix}")
        write(decimal, f"1.0.{suffix}")
    write(decimal.astype({"c": str}), "text.parquet")
    run("fit", fitted_on, *BASE)
    estimator = HistGradientBoostingRegressor(max_iter=5)
    X = frame[["a", "c"]].astype({"c": "category"})
    expected = estimator.fit(X, frame["y"]).predict(X)
    for name in ("1.csv", "1.0.csv", "1.parquet", "1.0.parquet", "text.parquet"):
        result = invoke("predict", "m.skops", name, "--out", "p.parquet")
        assert (result.exit_code, result.stderr) == (0, "")
        assert np.array_equal(pd.read_parquet("p.parquet")["prediction"], expected)


@pytest.mark.parametrize("text", ["01", "01.0", "1.5", "1.0.0", "1.", "v1.0", "1e3"])
def test_other_categories_stay_as_they_are_spelled(frame, text):
    frame = frame.assign(c=np.where(frame["c"] == 2, text, "1"))
    run("fit", write(frame, "d.csv"), *BASE)
    encoder = load_model("m.skops")[0]._preprocessor.named_transformers_["encoder"]
    assert set(encoder.categories_[0]) == {text, "1"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predict_warns_of_categories_that_the_model_never_saw(frame, suffix):
    run("fit", write(frame, "d.csv"), *BASE)
    model = load_model("m.skops")[0]
    n_rows = frame.shape[0]

    def predict(c):
        path = write(frame.assign(c=c), f"new.{suffix}")
        result = invoke("predict", "m.skops", path, "--out", "p.csv")
        assert result.exit_code == 0
        return result.stderr, read_predictions("p.csv")

    message, predictions = predict([f"x{value}" for value in frame["c"]])
    assert message == (
        f"Warning: DATA: column 'c': {n_rows:,} of {n_rows:,} values were not in the "
        "training data, and are taken for missing.\n"
    )
    X = frame[["a"]].assign(c=pd.Categorical([None] * n_rows, ["0"]))
    assert np.array_equal(predictions, model.predict(X))
    # A missing value is not one that the model never saw.
    c = frame["c"].astype(float).where(frame.index != 5).where(frame.index != 6, 4)
    message, _ = predict(c)
    assert message == (
        f"Warning: DATA: column 'c': 1 of {n_rows - 1:,} values was not in the "
        "training data, and is taken for missing.\n"
    )


def test_model_whose_categories_are_numbers(frame):
    X = frame[["a", "c"]]
    model = HistGradientBoostingRegressor(max_iter=5, categorical_features=["c"])
    model.fit(X, frame["y"])
    save_model(model, "m.skops")
    for path in ("d.csv", "d.parquet"):
        result = invoke("predict", "m.skops", write(frame, path), "--out", "p.csv")
        assert (result.exit_code, result.stderr) == (0, "")
        assert np.array_equal(read_predictions("p.csv"), model.predict(X))


def test_missing_category_is_not_the_text_of_its_name(frame):
    X = frame[["a", "c"]].astype({"c": object})
    X.loc[X["c"] == 2, "c"] = None
    model = HistGradientBoostingRegressor(max_iter=5, categorical_features=["c"])
    save_model(model.fit(X, frame["y"]), "m.skops")
    write(frame.assign(c=[str(value) for value in X["c"]]), "d.parquet")
    n_none = int(X["c"].isna().sum())
    stderr = invoke("predict", "m.skops", "d.parquet", "--out", "p.csv").stderr
    assert f"column 'c': {n_none:,} of 600 values were not in" in stderr
    assert np.array_equal(read_predictions("p.csv"), model.predict(X))


def test_names_of_nothing_are_categories_in_csv_too(frame):
    names = np.array(["NA", "null", "None", ""])
    frame["c"] = names[np.searchsorted([-1, 0, 2, 30], frame["c"])]
    write(frame, "d.csv")
    write(frame.assign(c=frame["c"].where(frame["c"] != "")), "d.parquet")
    run("fit", "d.parquet", *BASE)
    for name in ("d.csv", "d.parquet"):
        run("predict", "m.skops", name, "--out", f"p-{name}", "--id", "c")
    table = pd.read_csv("p-d.csv", dtype=str, keep_default_na=False)
    assert set(table["c"]) == set(names)
    other = pd.read_parquet("p-d.parquet")
    assert np.array_equal(read_predictions("p-d.csv"), other["prediction"])
    run("fit", "d.csv", *BASE)
    run("predict", "m.skops", "d.csv", "--out", "p.parquet")
    again = pd.read_parquet("p.parquet")
    assert np.array_equal(again["prediction"], other["prediction"])


def test_flags_with_missing_values_are_the_same_categories(frame):
    flags = [None if index == 3 else index % 2 == 0 for index in frame.index]
    columns = {name: pa.array(frame[name].to_numpy()) for name in ("a", "y")}
    pq.write_table(pa.table({**columns, "c": pa.array(flags)}), "some.parquet")
    flags[3] = True
    pq.write_table(pa.table({**columns, "c": pa.array(flags)}), "all.parquet")
    run("fit", "all.parquet", *BASE)
    write(pd.read_parquet("some.parquet"), "some.csv")
    for name in ("some.parquet", "some.csv"):
        assert invoke("predict", "m.skops", name, "--out", "p.csv").stderr == ""


def test_names_of_nothing_are_eras_and_classes_in_csv(frame):
    frame["region"] = np.where(frame["c"] == 2, "NA", "EU")
    frame["label"] = np.where(frame["c"] == 2, "None", "some")
    options = ["--features", "a", "--max-iter", 1, "--out", "m.skops"]
    output = run(
        "fit", write(frame, "d.csv"), "--target", "label", "--era", "region", *options
    )
    assert "of 2 eras" in output
    assert load_model("m.skops")[0].classes_.tolist() == ["None", "some"]
    write(frame.assign(label=frame["label"].where(frame.index != 4, "")), "d.csv")
    assert fail("fit", "d.csv", "--target", "label", *options) == (
        "--target: column 'label' has 1 missing value; fill them in or drop their rows."
    )


def test_names_of_nothing_are_missing_numbers_in_csv(frame):
    text = frame.astype({"a": str, "y": str})
    text.loc[4, "a"] = text.loc[7, "y"] = "NA"
    write(text, "d.csv")
    options = ["--features", "a", "--max-iter", 1, "--out", "m.skops"]
    assert fail("fit", "d.csv", "--target", "y", *options) == (
        "--target: column 'y' has 1 missing value; fill them in or drop their rows."
    )
    run("fit", "d.csv", "--target", "c", *options)


def test_two_values_that_are_not_whole_are_no_classes(frame):
    write(frame.assign(y=np.where(frame["y"] > 0, 0.25, 0.75)), "d.csv")
    assert "a regression of 'y'" in run("fit", "d.csv", *BASE)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_classes_are_spelled_alike_everywhere(frame, suffix):
    frame["y"] = (frame["y"] > 0).astype(float)
    run("fit", write(frame, "d.csv"), *BASE)
    run("predict", "m.skops", "d.csv", "--out", f"p.{suffix}")
    if suffix == "csv":
        table = pd.read_csv("p.csv", dtype=str)
    else:
        table = pd.read_parquet("p.parquet").astype({"prediction": str})
    assert list(table) == ["prediction", "probability_0", "probability_1"]
    assert set(table["prediction"]) == {"0", "1"}


def test_float_classes_of_the_api_are_spelled_alike_too(frame):
    model = HistGradientBoostingClassifier(max_iter=1)
    model.fit(frame[["a"]], (frame["y"] > 0).astype(float))
    save_model(model, "m.skops")
    run("predict", "m.skops", write(frame, "d.csv"), "--out", "p.csv")
    table = pd.read_csv("p.csv", dtype=str)
    assert set(table["prediction"]) <= {"0", "1"}
    assert "probability_1" in table


def read_predictions(path):
    return read(path)["prediction"]
