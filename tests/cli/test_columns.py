"""The columns of tables: how they are chosen, and their many types."""

import numpy as np
import pytest

from helpers.cli import N_ROWS, make_features, make_frame, pa, pd, read, run
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.model_files import load_model, read_metadata

pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def frame():
    return make_frame()


@pytest.fixture(scope="module")
def features(frame):
    return make_features(frame)


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
def test_choice_of_features(frame, tmp_path, options, expected):
    frame.to_parquet(tmp_path / "d.parquet")
    model = tmp_path / "m.skops"
    arguments = ["--target", "y", *options, "--max-iter", 1, "--out", model]
    run("fit", tmp_path / "d.parquet", *arguments)
    assert read_metadata(model).feature_names == expected


def test_column_with_a_comma_in_its_name(frame, tmp_path):
    data = frame[["a", "b", "y"]].rename(columns={"a": "a, b", "b": "x.y[0]"})
    for path in (tmp_path / "d.parquet", tmp_path / "d.csv"):
        data.to_csv(path, index=False) if path.suffix == ".csv" else data.to_parquet(
            path
        )
        options = ["--features", "a, b", "--features", "x.y[0]", "--max-iter", 1]
        run("fit", path, "--target", "y", *options, "--out", tmp_path / "m")
        assert read_metadata(tmp_path / "m").feature_names == ["a, b", "x.y[0]"]
        run("predict", tmp_path / "m", path, "--out", tmp_path / "p.csv")


def test_saved_index_is_a_column_if_named_and_none_if_not(frame, tmp_path):
    data = frame[["a", "b", "y", "row"]]
    named, unnamed = data.set_index("row"), data.drop(columns="row").sample(frac=1)
    for index, feature_names in ((named, ["a", "b"]), (unnamed, ["a", "b"])):
        index.to_parquet(tmp_path / "d.parquet")
        index.to_csv(tmp_path / "d.csv")
        for path in (tmp_path / "d.parquet", tmp_path / "d.csv"):
            options = ["--exclude", "ro?"] if index is named else []
            base = ["--target", "y", "--max-iter", 1, "--out", tmp_path / "m"]
            run("fit", path, *base, *options)
            assert read_metadata(tmp_path / "m").feature_names == feature_names
    named.to_parquet(tmp_path / "d.parquet")
    run(
        *["predict", tmp_path / "m", tmp_path / "d.parquet"],
        *["--id", "row", "--out", tmp_path / "p.csv"],
    )
    assert pd.read_csv(tmp_path / "p.csv", dtype=str)["row"].tolist() == list(
        named.index
    )


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
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_eras_of_any_kind(frame, tmp_path, eras, suffix):
    data = frame[["a", "b", "y"]].copy()
    data["when"] = pd.Series(eras).take(frame["week"] - 1).to_numpy()
    if suffix == "csv":
        data.to_csv(tmp_path / "d.csv", index=False)
    else:
        data["when"] = pd.Series(eras).take(frame["week"] - 1).array
        data.to_parquet(tmp_path / "d.parquet")
    options = ["--target", "y", "--era", "when", "--split-criterion", "directional"]
    output = run(
        *["fit", tmp_path / f"d.{suffix}", *options],
        *["--max-iter", 3, "--out", tmp_path / "m"],
    )
    assert "5 eras" in output
    expected = HistGradientBoostingRegressor(max_iter=3, split_criterion="directional")
    expected.fit(data[["a", "b"]], data["y"], eras=frame["week"])
    fitted = load_model(tmp_path / "m")[0]
    assert np.array_equal(
        fitted.predict(data[["a", "b"]]), expected.predict(data[["a", "b"]])
    )


def test_categories_are_the_same_in_csv_and_parquet(frame, features, tmp_path):
    # Numbers in one file, numbers with a missing value (and so decimal) in the other.
    data = frame[["a", "grade", "y"]].copy()
    with_missing = data.assign(grade=data["grade"].where(data["grade"] != 2))
    data.to_csv(tmp_path / "d.csv", index=False)
    with_missing.to_parquet(tmp_path / "d.parquet")
    base = ["--target", "y", "--categorical", "grade", "--max-iter", 5]
    run("fit", tmp_path / "d.csv", *base, "--out", tmp_path / "m")
    run("predict", tmp_path / "m", tmp_path / "d.parquet", "-o", tmp_path / "p.csv")
    X = features[["a", "grade"]].copy()
    estimator = HistGradientBoostingRegressor(max_iter=5).fit(X, frame["y"])
    X["grade"] = X["grade"].where(X["grade"] != "2")
    assert np.array_equal(read(tmp_path / "p.csv")["prediction"], estimator.predict(X))


def test_columns_of_odd_types_are_numbers(frame, tmp_path):
    flags = [None if index % 3 == 0 else index % 2 == 0 for index in range(N_ROWS)]
    decimals = pa.array(np.arange(N_ROWS), pa.int32()).cast(pa.decimal128(12, 2))
    columns = {
        "flag": pa.array(flags, pa.bool_()),
        "price": decimals,
        "small": pa.array(np.arange(N_ROWS) % 7, pa.uint8()),
        "y": pa.array(frame["y"].to_numpy()),
    }
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    pd.read_parquet(tmp_path / "d.parquet").to_csv(tmp_path / "d.csv", index=False)
    for suffix in ("csv", "parquet"):
        options = ["--target", "y", "--max-iter", 3, "--out", tmp_path / "m"]
        run("fit", tmp_path / f"d.{suffix}", *options)
        run(
            *["predict", tmp_path / "m", tmp_path / f"d.{suffix}"],
            *["--out", tmp_path / f"{suffix}.csv"],
        )
    assert read(tmp_path / "csv.csv").equals(read(tmp_path / "parquet.csv"))
    # Nothing at all is a type of its own in Parquet.
    columns["price"] = pa.nulls(N_ROWS)
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    run(
        *["predict", tmp_path / "m", tmp_path / "d.parquet"],
        *["--out", tmp_path / "p.csv"],
    )
    estimator, _ = load_model(tmp_path / "m")
    X = pd.read_parquet(tmp_path / "d.parquet")[["flag", "price", "small"]]
    expected = estimator.predict(X.astype(float))
    assert np.array_equal(read(tmp_path / "p.csv")["prediction"], expected)


def test_categorical_column_of_parquet_needs_no_declaration(frame, tmp_path):
    data = frame[["a", "sector", "y"]].astype({"sector": "category"})
    data.to_parquet(tmp_path / "d.parquet")
    options = ["--target", "y", "--max-iter", 1, "--out", tmp_path / "m"]
    run("fit", tmp_path / "d.parquet", *options)
    assert read_metadata(tmp_path / "m").categorical_features == ["sector"]
