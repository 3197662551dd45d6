"""The columns of tables, and what their values are taken for, in CSV and Parquet."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.cli import N_ROWS, fail, invoke, read, run, write
from helpers.grids import slow
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_files import load_model, read_metadata, save_model


def fit(path, *options, max_iter=1):
    """Fit to column y; return the output."""
    given = ["--target", "y", "--max-iter", max_iter, "--out", "m"]
    return run("fit", path, *given, *options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--features c,a", ["c", "a"]),
        ("--features c --features a", ["c", "a"]),
        ("--features [a-d]", ["a", "b", "c", "d"]),
        ("--features * --exclude row,y,up,cl*,week,sec*", [*"abcd", "grade"]),
        ("--features a,? --exclude b,y", ["a", "c", "d"]),
    ],
)
def test_choice_of_features(frame, options, expected):
    fit(write(frame, "d.parquet"), *options.split())
    assert read_metadata("m").feature_names == expected


@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
def test_column_with_a_comma_in_its_name(frame, path):
    write(frame[["a", "b", "y"]].set_axis(["a, b", "x.y[0]", "y"], axis=1), path)
    fit(path, "--features", "a, b", "--features", "x.y[0]")
    assert read_metadata("m").feature_names == ["a, b", "x.y[0]"]
    run("predict", "m", path, "--out", "p.csv")


def test_saved_index_is_a_column_if_named_and_none_if_not(frame):
    data = frame[["a", "b", "y", "row"]]
    named, unnamed = data.set_index("row"), data.drop(columns="row").sample(frac=1)
    for index, options in ((unnamed, []), (named, ["--exclude", "ro?"])):
        index.to_parquet("d.parquet")
        index.to_csv("d.csv")
        for path in ("d.csv", "d.parquet"):
            fit(path, *options)
            assert read_metadata("m").feature_names == ["a", "b"]
    run("predict", "m", "d.parquet", "--id", "row", "--out", "p.csv")
    assert pd.read_csv("p.csv", dtype=str)["row"].tolist() == list(named.index)


@pytest.mark.parametrize(
    "eras",
    [
        pd.date_range("2024-01-05", periods=5, freq="W"),
        pd.date_range("2024-01-05", periods=5, freq="W", tz="Europe/Zurich"),
        pd.date_range("2024-01-05", periods=5, freq="W").date,
        np.array(["era1", "era2", "era3", "era4", "era5"]),
        pd.Categorical(["e", "d", "c", "b", "a"]), np.arange(5.0),
    ],
    ids=["datetime", "timezone", "date", "text", "categories", "float"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
def test_eras_of_any_kind(frame, eras, path):
    data = frame[["a", "b", "y"]]
    write(data.assign(when=pd.Series(eras).take(frame["week"] - 1).array), path)
    options = ["--era", "when", "--split-criterion", "directional"]
    assert "5 eras" in fit(path, *options, max_iter=3)
    expected = Regressor(max_iter=3, split_criterion="directional")
    expected.fit(data[["a", "b"]], data["y"], eras=frame["week"])
    predictions = load_model("m")[0].predict(data[["a", "b"]])
    assert np.array_equal(predictions, expected.predict(data[["a", "b"]]))


def test_columns_of_odd_types_are_numbers(frame):
    flags = [None if index % 3 == 0 else index % 2 == 0 for index in range(N_ROWS)]
    decimals = pa.array(np.arange(N_ROWS), pa.int32()).cast(pa.decimal128(12, 2))
    columns = {
        "flag": pa.array(flags, pa.bool_()), "price": decimals,
        "small": pa.array(np.arange(N_ROWS) % 7, pa.uint8()),
        "y": pa.array(frame["y"].to_numpy()),
    }  # fmt: skip
    pq.write_table(pa.table(columns), "d.parquet")
    write(pd.read_parquet("d.parquet"), "d.csv")
    for suffix in ("csv", "parquet"):
        fit(f"d.{suffix}", max_iter=3)
        run("predict", "m", f"d.{suffix}", "--out", f"{suffix}.csv")
    assert read("csv.csv").equals(read("parquet.csv"))
    # Nothing at all is a type of its own in Parquet.
    pq.write_table(pa.table({**columns, "price": pa.nulls(N_ROWS)}), "d.parquet")
    run("predict", "m", "d.parquet", "--out", "p.csv")
    X = pd.read_parquet("d.parquet")[["flag", "price", "small"]]
    expected = load_model("m")[0].predict(X.astype(float))
    assert np.array_equal(read("p.csv")["prediction"], expected)
    # Categories of Parquet need no declaration.
    data = frame[["a", "sector", "y"]].astype({"sector": "category"})
    fit(write(data, "d.parquet"))
    assert read_metadata("m").categorical_features == ["sector"]


def read_predictions(path):
    return read(path)["prediction"]


@pytest.fixture
def coded(frame):
    """A table with whole numbers, on which the target depends."""
    table = frame[["a", "y"]].copy()
    table["c"] = np.random.RandomState(0).choice([-1, 0, 2, 30], table.shape[0])
    return table.assign(y=table["y"] + table["c"])


BASE = ["--target", "y", "--categorical", "c", "--max-iter", 5, "--out", "m.skops"]
OF_A_NUMBER = ["--features", "a", "--max-iter", 1, "--out", "m.skops"]


@pytest.mark.parametrize("fitted_on", ["1.0.csv", "text.parquet", slow("1.csv")])
def test_a_whole_number_is_one_category_however_it_is_spelled(coded, fitted_on):
    decimal = coded.astype({"c": float})
    for suffix in ("csv", "parquet"):
        write(coded, f"1.{suffix}")
        write(decimal, f"1.0.{suffix}")
    write(decimal.astype({"c": str}), "text.parquet")
    run("fit", fitted_on, *BASE)
    estimator = Regressor(max_iter=5)
    X = coded[["a", "c"]].astype({"c": "category"})
    expected = estimator.fit(X, coded["y"]).predict(X)
    for name in ("1.csv", "1.0.csv", "1.parquet", "1.0.parquet", "text.parquet"):
        result = invoke("predict", "m.skops", name, "--out", "p.parquet")
        assert (result.exit_code, result.stderr) == (0, "")
        assert np.array_equal(pd.read_parquet("p.parquet")["prediction"], expected)


@pytest.mark.parametrize("text", ["01", "01.0", "1.5", "1.0.0", "1.", "v1.0", "1e3"])
def test_other_categories_stay_as_they_are_spelled(coded, text):
    coded = coded.assign(c=np.where(coded["c"] == 2, text, "1"))
    run("fit", write(coded, "d.csv"), *BASE)
    encoder = load_model("m.skops")[0]._preprocessor.named_transformers_["encoder"]
    assert set(encoder.categories_[0]) == {text, "1"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predict_warns_of_categories_that_the_model_never_saw(coded, suffix):
    run("fit", write(coded, "d.csv"), *BASE)
    model = load_model("m.skops")[0]
    n_rows = coded.shape[0]

    def predict(c):
        path = write(coded.assign(c=c), f"new.{suffix}")
        result = invoke("predict", "m.skops", path, "--out", "p.csv")
        assert result.exit_code == 0
        return result.stderr, read_predictions("p.csv")

    message, predictions = predict([f"x{value}" for value in coded["c"]])
    assert message == (
        f"Warning: DATA: column 'c': {n_rows:,} of {n_rows:,} values were not in the "
        "training data, and are taken for missing.\n"
    )
    X = coded[["a"]].assign(c=pd.Categorical([None] * n_rows, ["0"]))
    assert np.array_equal(predictions, model.predict(X))
    # A missing value is not one that the model never saw.
    c = coded["c"].astype(float).where(coded.index != 5).where(coded.index != 6, 4)
    message, _ = predict(c)
    assert message == (
        f"Warning: DATA: column 'c': 1 of {n_rows - 1:,} values was not in the "
        "training data, and is taken for missing.\n"
    )


def test_model_whose_categories_are_numbers(coded):
    X = coded[["a", "c"]]
    model = Regressor(max_iter=5, categorical_features=["c"])
    model.fit(X, coded["y"])
    save_model(model, "m.skops")
    for path in ("d.csv", "d.parquet"):
        result = invoke("predict", "m.skops", write(coded, path), "--out", "p.csv")
        assert (result.exit_code, result.stderr) == (0, "")
        assert np.array_equal(read_predictions("p.csv"), model.predict(X))


def test_missing_category_is_not_the_text_of_its_name(coded):
    X = coded[["a", "c"]].astype({"c": object})
    X.loc[X["c"] == 2, "c"] = None
    model = Regressor(max_iter=5, categorical_features=["c"])
    save_model(model.fit(X, coded["y"]), "m.skops")
    write(coded.assign(c=[str(value) for value in X["c"]]), "d.parquet")
    n_none = int(X["c"].isna().sum())
    stderr = invoke("predict", "m.skops", "d.parquet", "--out", "p.csv").stderr
    assert f"column 'c': {n_none:,} of 600 values were not in" in stderr
    assert np.array_equal(read_predictions("p.csv"), model.predict(X))


def test_names_of_nothing_are_categories_in_csv_too(coded):
    names = np.array(["NA", "null", "None", ""])
    coded["c"] = names[np.searchsorted([-1, 0, 2, 30], coded["c"])]
    write(coded, "d.csv")
    write(coded.assign(c=coded["c"].where(coded["c"] != "")), "d.parquet")
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


def test_flags_with_missing_values_are_the_same_categories(coded):
    flags = [None if index == 3 else index % 2 == 0 for index in coded.index]
    columns = {name: pa.array(coded[name].to_numpy()) for name in ("a", "y")}
    pq.write_table(pa.table({**columns, "c": pa.array(flags)}), "some.parquet")
    flags[3] = True
    pq.write_table(pa.table({**columns, "c": pa.array(flags)}), "all.parquet")
    run("fit", "all.parquet", *BASE)
    write(pd.read_parquet("some.parquet"), "some.csv")
    for name in ("some.parquet", "some.csv"):
        assert invoke("predict", "m.skops", name, "--out", "p.csv").stderr == ""


def test_names_of_nothing_are_eras_classes_and_missing_numbers_in_csv(coded):
    coded["region"] = np.where(coded["c"] == 2, "NA", "EU")
    coded["label"] = np.where(coded["c"] == 2, "None", "some")
    named = ["--target", "label", "--era", "region"]
    assert "of 2 eras" in run("fit", write(coded, "d.csv"), *named, *OF_A_NUMBER)
    assert load_model("m.skops")[0].classes_.tolist() == ["None", "some"]
    write(coded.assign(label=coded["label"].where(coded.index != 4, "")), "d.csv")
    told = fail("fit", "d.csv", "--target", "label", *OF_A_NUMBER)
    assert told.startswith("--target: column 'label' has 1 missing value;")
    text = coded.astype({"a": str, "y": str})
    text.loc[4, "a"] = text.loc[7, "y"] = "NA"
    write(text, "d.csv")
    told = fail("fit", "d.csv", "--target", "y", *OF_A_NUMBER)
    assert told.startswith("--target: column 'y' has 1 missing value;")
    run("fit", "d.csv", "--target", "c", *OF_A_NUMBER)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_classes_are_spelled_alike_everywhere(coded, suffix):
    coded["y"] = (coded["y"] > coded["y"].median()).astype(float)
    run("fit", write(coded, "d.csv"), *BASE)
    of_api = Classifier(max_iter=5).fit(coded[["a"]], coded["y"])
    save_model(of_api, "api.skops")
    for model in ("m.skops", "api.skops"):
        run("predict", model, "d.csv", "--out", f"p.{suffix}")
        if suffix == "csv":
            table = pd.read_csv("p.csv", dtype=str)
        else:
            table = pd.read_parquet("p.parquet").astype({"prediction": str})
        assert list(table) == ["prediction", "probability_0", "probability_1"]
        assert set(table["prediction"]) == {"0", "1"}
