"""The columns of tables: how they are chosen, and their many types."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.cli import N_ROWS, read, run, write
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.model_files import load_model, read_metadata


def fit(path, *options, max_iter=1):
    """Fit to column y; return the output."""
    given = ["--target", "y", "--max-iter", max_iter, "--out", "m"]
    return run("fit", path, *given, *options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--features", "c,a"], ["c", "a"]),
        (["--features", "c", "--features", "a"], ["c", "a"]),
        (["--features", "[a-d]"], ["a", "b", "c", "d"]),
        (
            ["--features", "*", "--exclude", "row,y,up,cl*,week,sec*"],
            [*"abcd", "grade"],
        ),
        (["--features", "a,?", "--exclude", "b,y"], ["a", "c", "d"]),
    ],
)
def test_choice_of_features(frame, options, expected):
    fit(write(frame, "d.parquet"), *options)
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
        pd.Categorical(["e", "d", "c", "b", "a"]),
        np.arange(5.0),
    ],
    ids=["datetime", "timezone", "date", "text", "categories", "float"],
)
@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
def test_eras_of_any_kind(frame, eras, path):
    data = frame[["a", "b", "y"]]
    write(data.assign(when=pd.Series(eras).take(frame["week"] - 1).array), path)
    options = ["--era", "when", "--split-criterion", "directional"]
    assert "5 eras" in fit(path, *options, max_iter=3)
    expected = HistGradientBoostingRegressor(max_iter=3, split_criterion="directional")
    expected.fit(data[["a", "b"]], data["y"], eras=frame["week"])
    predictions = load_model("m")[0].predict(data[["a", "b"]])
    assert np.array_equal(predictions, expected.predict(data[["a", "b"]]))


def test_columns_of_odd_types_are_numbers(frame):
    flags = [None if index % 3 == 0 else index % 2 == 0 for index in range(N_ROWS)]
    decimals = pa.array(np.arange(N_ROWS), pa.int32()).cast(pa.decimal128(12, 2))
    columns = {
        "flag": pa.array(flags, pa.bool_()),
        "price": decimals,
        "small": pa.array(np.arange(N_ROWS) % 7, pa.uint8()),
        "y": pa.array(frame["y"].to_numpy()),
    }
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


def test_categorical_column_of_parquet_needs_no_declaration(frame):
    data = frame[["a", "sector", "y"]].astype({"sector": "category"})
    fit(write(data, "d.parquet"))
    assert read_metadata("m").categorical_features == ["sector"]
