"""The columns of tables, and what their values are taken for, in CSV and Parquet."""

import csv
import gzip
from datetime import date, datetime, time
from decimal import Decimal
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.cli import N_ROWS, fail, invoke, params, read, run, write
from helpers.grids import slow
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.calibration import EraConformalRegressor
from sklearn_era.cli._categories import find_known, spell
from sklearn_era.cli._table_files import TableFile, make_features
from sklearn_era.ensemble import EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_files import load_model, read_metadata, save_model

FLAGS = [False, True], ["false", "true"], ["FALSE", "True"]
BASE = ["--no-score", "--out", "m.era"]


def fit(path, *options, max_iter=1):
    base = ["--target", "y", *BASE, *params(max_iter=max_iter)]
    return run("fit", path, *base, *options)


def predict(path, *options):
    """Predict from a table, without a warning."""
    result = invoke("predict", "m.era", path, "--out", "p.csv", *options)
    assert (result.exit_code, result.stderr) == (0, "")
    return read("p.csv")["prediction"]


@pytest.mark.parametrize(("options", "expected"), [
    ("--features c,a", ["c", "a"]), ("--features c --features a", ["c", "a"]),
    ("--features [a-d]", ["a", "b", "c", "d"]),
    ("--features * --exclude row,y,up,cl*,week,sec*", [*"abcd", "grade"]),
    ("--features a,? --exclude b,y", ["a", "c", "d"]),
])  # fmt: skip
def test_choice_of_features(frame, options, expected):
    fit(write(frame, "d.parquet"), *options.split())
    assert read_metadata("m.era").feature_names == expected


@pytest.mark.parametrize("path", ["d.csv", "d.parquet", "d.feather"])
def test_columns_with_odd_names(frame, path):
    write(frame[["a", "b", "y"]].set_axis(["a, b", "x.y[0]", "[red]y"], axis=1), path)
    names = ["--features", "a, b", "--features", "x.y[0]", "--target", "[red]y"]
    assert "of '[red]y' to" in fit(path, *names)
    assert read_metadata("m.era").feature_names == ["a, b", "x.y[0]"]
    predict(path)


@pytest.mark.parametrize("options", [
    ["--features", " b", "--features", "a"], ["--features", " b, a"],
    ["--features", " b,a"], ["--features", " b*,a"], ["--exclude", "y , b"],
])  # fmt: skip
def test_names_may_begin_with_a_space(frame, options):
    """As behind a header's commas; where both names are columns, that without one."""
    columns = frame[["a", "b", "y"]].set_axis(["a", " b", "y"], axis=1)
    if "--exclude" in options:
        columns = columns[[" b", "a", "y"]].assign(b=1.0)
    fit(write(columns, "d.csv"), *options)
    assert read_metadata("m.era").feature_names == [" b", "a"]


def test_saved_index_is_a_column_if_named_and_none_if_not(frame):
    data = frame[["a", "b", "y", "row"]]
    named, unnamed = data.set_index("row"), data.drop(columns="row").sample(frac=1)
    for index, options in ((unnamed, []), (named, ["--exclude", "ro?"])):
        index.to_parquet("d.parquet")
        index.to_csv("d.csv")
        for path in ("d.csv", "d.parquet"):
            fit(path, *options)
            assert read_metadata("m.era").feature_names == ["a", "b"]
    # A number, too; other programs keep the columns, but not what they were.
    numbered = unnamed.set_index([unnamed.index, pd.Index(unnamed["a"] * 2, name="no")])
    numbered.to_parquet("d.parquet")
    fit("d.parquet")
    assert read_metadata("m.era").feature_names == ["a", "b"]
    pq.write_table(pq.read_table("d.parquet").replace_schema_metadata(), "d.parquet")
    fit("d.parquet")
    assert read_metadata("m.era").feature_names == ["a", "b", "no"]
    named.to_parquet("d.parquet")
    fit("d.parquet")
    predict("d.parquet", "--id", "row")
    assert read("p.csv", dtype=str)["row"].tolist() == list(named.index)


SUNDAYS = pd.date_range("2024-01-05", periods=5, freq="W")


@pytest.mark.parametrize("path", ["d.csv", "d.tsv", "d.parquet"])
def test_columns_without_a_name_are_left_out_with_a_warning(frame, path):
    data, places = frame[["a", "b", "c", "y"]].set_axis([*"a", "", *"cy"], axis=1), "2"
    if path == "d.parquet":  # in which names are distinct
        write(data, path)
    else:
        data.insert(4, "", frame["d"], allow_duplicates=True)
        data.to_csv(path, sep="\t" if ".tsv" in path else ",")  # with its index
        places = "3, 6"
    told = f"Warning: DATA: column(s) {places} of '{path}' have no name, and are left"
    result = invoke("fit", path, "--target", "y", *BASE, *params(max_iter=1))
    assert result.stderr == f"{told} out: name them in its header.\n"
    assert read_metadata("m.era").feature_names == ["a", "c"]


@pytest.mark.parametrize("eras", [
    SUNDAYS, SUNDAYS.tz_localize("Europe/Zurich"), SUNDAYS.date, np.arange(5.0),
    np.array(["era1", "era2", "era3", "era4", "era5"]),
    pd.Categorical(["e", "d", "c", "b", "a"]), [time(hour) for hour in range(5)],
], ids=range(7))  # fmt: skip
@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
def test_eras_of_any_kind(frame, eras, path):
    data = frame[["a", "b", "y"]]
    write(data.assign(when=pd.Series(eras).take(frame["week"] - 1).array), path)
    # Intercepts of eras are in the model file, which takes few types of labels.
    parameters = {"max_iter": 3, "era_effects": "intercept"}
    parameters |= {"era_effects__forecast": "mean"}
    assert "5 eras" in fit(path, "--era", "when", *params(**parameters)[2:], max_iter=3)
    expected = Regressor().set_params(**parameters)
    expected.fit(data[["a", "b"]], data["y"], eras=frame["week"])
    predictions = load_model("m.era")[0].predict(data[["a", "b"]])
    assert np.allclose(predictions, expected.predict(data[["a", "b"]]))


def test_columns_of_odd_types_are_numbers(frame):
    flags = [None if index % 3 == 0 else index % 2 == 0 for index in range(N_ROWS)]
    whole = np.arange(N_ROWS)
    columns = {
        "flag": pa.array(flags, pa.bool_()), "small": pa.array(whole % 7, pa.uint8()),
        "price": pa.array(whole, pa.int32()).cast(pa.decimal128(12, 2)),
        "y": pa.array(frame["y"].to_numpy()),
    }  # fmt: skip
    pq.write_table(pa.table(columns), "d.parquet")
    write(pd.read_parquet("d.parquet"), "d.csv")
    fit("d.csv", max_iter=3)
    from_csv = predict("d.csv")
    fit("d.parquet", max_iter=3)
    assert predict("d.parquet").equals(from_csv)
    # Nothing at all is a type of its own in Parquet.
    pq.write_table(pa.table({**columns, "price": pa.nulls(N_ROWS)}), "d.parquet")
    X = pd.read_parquet("d.parquet")[["flag", "small", "price"]].astype(float)
    assert np.array_equal(predict("d.parquet"), load_model("m.era")[0].predict(X))


@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
def test_text_that_recurs_is_categories(frame, path):
    base = ["fit", write(frame[["a", "sector", "y"]], path), "--target", "y", *BASE]
    told = invoke(*base)
    assert told.stderr == "Categories, as they are text: 'sector'.\n"
    alone = load_model("m.era")[0].predict(frame[["a", "sector"]])
    assert read_metadata("m.era").categorical_features == ["sector"]
    run("predict", "m.era", path, "--out", "p.csv")
    np.testing.assert_array_equal(pd.read_csv("p.csv").prediction, alone)
    assert not invoke(*base, "--categorical", "sector").stderr
    declared = load_model("m.era")[0].predict(frame[["a", "sector"]])
    np.testing.assert_array_equal(declared, alone)


@pytest.mark.parametrize("path", ["d.parquet", "d.feather"])
@pytest.mark.parametrize("dtype", [int, float, bool, str])
def test_categories_of_a_typed_file_need_no_declaration(frame, path, dtype):
    data = frame[["a", "y"]].assign(c=pd.Categorical((frame["week"] > 2).astype(dtype)))
    fit(write(data, path), max_iter=3)
    model = load_model("m.era")[0]
    assert model.is_categorical_.tolist() == [False, True]
    names = {1.0: "1", 0.0: "0"} if dtype is float else str
    X = data[["a"]].assign(c=data["c"].cat.rename_categories(names))
    expected = Regressor(max_iter=3).fit(X, data["y"]).predict(X)
    assert np.array_equal(predict(path), expected)


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["b", "a", "c"])])
def test_categories_that_polars_writes(frame, kind):
    """Of Arrow's newest types, in which Arrow itself can hardly do anything."""
    labels = np.resize(["a", "b", "c", None], N_ROWS)
    data = frame[["a", "y"]].assign(c=labels, era=np.resize(["b", "a", "c"], N_ROWS))
    columns = [pl.col(name).cast(kind) for name in ("c", "era")]
    pl.from_pandas(data).with_columns(columns).write_ipc("d.feather")
    write(data, "d.parquet")
    predictions = []
    for path in ("d.feather", "d.parquet"):
        options = ["--target", "y", "--era", "era", *BASE, *params(max_iter=3)]
        assert "of 3 eras" in invoke("fit", path, *options).stdout
        for other in ("d.feather", "d.parquet"):
            predictions.append(predict(other, "--id", "c,era"))
            assert read("p.csv")["era"].tolist() == data["era"].tolist()
    assert all(x.equals(predictions[0]) for x in predictions)


MONTHS = [f"2024.{month}" for month in range(1, 13)]
DIGITS = [str(12345678901234567890 + k) for k in range(4)]


@pytest.mark.parametrize(("labels", "n_eras", "shown"), [
    (MONTHS, 12, "2024.10' is not 2024.1"), (MONTHS[9:], 3, "2024.10' is not 2024.1"),
    (DIGITS, 4, f"{DIGITS[0]}' is not 1.2345678901234567e+19"),
    (["1E5", "2E5"], 2, "1E5' is not 100000.0"), (["1", "01", "2"], 3, "01' is not 1"),
    (["0x10", "16"], 2, "0x10' is not 16"), (["true", "True"], 2, "true' is not True"),
    # Numbers of which each has one text, and texts.
    (["01", "02", "11"], 3, None), (["1.0", "1", "2.5"], 2, None),
    (["1", " 2", "+3"], 3, None), (["true", "false"], 2, None),
    (["w1", "w01"], 2, None), (["2024-01-05", "2024-01-12"], 2, None),
    (["-1.5", "0.1", "1e-07"], 3, None),
])  # fmt: skip
@pytest.mark.parametrize("suffix", ["csv", slow("tsv.gz")])
def test_eras_of_a_text_file_stay_distinct(frame, labels, n_eras, shown, suffix):
    data = frame[["a", "y"]].assign(era=np.resize(labels, N_ROWS))
    path = write(data, f"d.{suffix}")
    options = ["--target", "y", "--era", "era", *BASE, *params(max_iter=1)]
    result = invoke("fit", path, *options)
    assert f"600 rows of {n_eras} eras" in result.stdout
    told = f"Warning: --era: column 'era' is read as text: '{shown}, a number.\n"
    assert result.stderr == (told if shown else "")


@pytest.mark.parametrize(("labels", "classes"), [
    (["01", "02"], ["01", "02"]), (["1.0", "2.0"], [1, 2]), (["1 ", "2"], [1, 2]),
    (["+1", "-1"], [-1, 1]), (["true", "false"], [False, True]),
    (["007", "7", "x1"], ["007", "7", "x1"]), (["007", "07", "7"], ["007", "07", "7"]),
    (["007", "008", "10"], ["007", "008", "10"]),
    (["01", *map(str, range(2, 13))], sorted(["01", *map(str, range(2, 13))])),
])  # fmt: skip
@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
def test_classes_are_as_they_are_spelled(frame, labels, classes, path):
    write(frame[["a"]].assign(y=np.resize(labels, N_ROWS)), path)
    options = ["--target", "y", *BASE, *params(max_iter=1)]
    if labels == ["true", "false"] and path == "d.parquet":
        classes = ["false", "true"]
    assert invoke("fit", path, *options).exit_code == 0
    model = load_model("m.era")[0]
    assert model.classes_.tolist() == classes
    run("predict", "m.era", path, "--out", "p.parquet")
    expected = np.array(classes)[model.predict_proba(frame[["a"]]).argmax(1)]
    assert read("p.parquet")["prediction"].tolist() == expected.tolist()


@pytest.mark.parametrize("classes", FLAGS, ids=range(3))
def test_predictions_are_scored_on_flags_however_they_are_spelled(frame, classes):
    tables = [frame[["a"]].assign(y=np.array(x)[frame["up"]]) for x in FLAGS]
    fit(write(frame[["a"]].assign(y=np.array(classes)[frame["up"]]), "d.parquet"))
    for table, path in product(tables, ["d.csv", "d.parquet"]):
        scored = ["predict", "m.era", write(table, path), "--scoring", "accuracy"]
        told = invoke(*scored, "--out", "p.csv")
        assert (told.exit_code, told.stderr) == (0, "")
        assert "accuracy: 0.7" in told.stdout


@pytest.mark.parametrize(("labels", "options"), [
    (["0", "7", "10"], []), (["00.5", "01.5", "2.0"], []), (["-05", "-1", "3"], []),
    (["1.50", "1E5", "+2"], []), (["007", "008", "10"], ["--task", "regression"]),
])  # fmt: skip
@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
def test_targets_that_are_numbers_are_as_in_python(frame, labels, options, path):
    write(frame[["a"]].assign(y=np.resize(labels, N_ROWS)), path)
    options = ["--target", "y", *options, *BASE, *params(max_iter=1)]
    assert "Fitted a regressor of 'y'" in run("fit", path, *options)
    model, expected = load_model("m.era")[0], Regressor(max_iter=1, random_state=0)
    expected.fit(frame[["a"]], np.resize([*map(float, labels)], N_ROWS))
    assert np.array_equal(model.predict(frame[["a"]]), expected.predict(frame[["a"]]))


@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
def test_many_numbers_that_start_with_0_may_be_either(frame, path):
    labels = [f"{k:03}" for k in range(60)]
    write(frame[["a"]].assign(y=np.resize(labels, N_ROWS)), path)
    told = invoke("fit", path, "--target", "y", *BASE).stderr
    assert "column 'y' has 60 distinct numbers, some of which start with 0; " in told
    assert told.endswith(" if they are classes, else regression.\n")


@pytest.mark.parametrize("labels", [
    [f"{row:05}" for row in range(N_ROWS)], [f" {row} " for row in range(N_ROWS)],
    [str(12345678901234567890 + row) for row in range(N_ROWS)], ["NA", "", "1"],
    ["2024.10", "2024.1"], ["true", "false"], ["1E5", "1e5"], ["2024-01-05"],
])  # fmt: skip
@pytest.mark.parametrize("path", ["d.csv", slow("d.tsv"), slow("d.csv.gz")])
def test_ids_are_copied_as_they_are_spelled(frame, labels, path):
    write(frame[["a", "y"]].assign(id=np.resize(labels, N_ROWS)), path)
    # They are numbers and features, but for the dates.
    fit(path, *(["--exclude", "id"] if labels == ["2024-01-05"] else []))
    assert len(read_metadata("m.era").feature_names) == 1 + (labels != ["2024-01-05"])
    predict(path, "--id", "id", "--id", "a")
    copied = read("p.csv", dtype=str, keep_default_na=False)
    assert copied["id"].tolist() == np.resize(labels, N_ROWS).tolist()
    assert read("p.csv")["a"].equals(frame["a"])


@pytest.mark.parametrize(("labels", "options"), [
    (["2024-01-01 00:00:00", "2024-02-01 00:00:00", "2024-03-01 00:00:00"], []),
    (["2024.10", "2024.11", "2024.12"], ["--era-order", "ordered"]),
    (["01", "02", "10"], ["--groups", "shop", "--known-groups"]),
])  # fmt: skip
@pytest.mark.parametrize("path", ["d.csv", slow("d.tsv")])
def test_ids_that_the_model_reads_are_copied_as_they_are(frame, labels, options, path):
    ids = frame[["a", "y"]].assign(when=np.resize(labels, N_ROWS))
    ids["shop"] = np.repeat(["001", "002"], N_ROWS // 2)
    eras = ["--target", "y", "--features", "a", "--era", "when", *options]
    eras += [*BASE, *params(era_effects="intercept", max_iter=1)]
    assert invoke("fit", write(ids, path), *eras).exit_code == 0
    run("predict", "m.era", path, "--out", "p.csv", "--id", "shop,when")
    for name in ("shop", "when"):
        assert read("p.csv", dtype=str)[name].tolist() == ids[name].tolist()


def test_ids_of_a_typed_file_keep_their_values(frame):
    ids = {
        "text": ["", "NA", None], "day": [date(2024, 1, 1), None, date(1, 1, 1)],
        "whole": [1, None, 2], "flag": [True, None, False],
        "price": pa.array([Decimal("1.50")] * 3),
        "at": pa.array([datetime(2024, 1, 1)] * 3, pa.timestamp("us", "Europe/Zurich")),
    }  # fmt: skip
    fit(write(frame[["a", "y"]], "d.parquet"))
    table = pa.table({"a": [1.0, 2.0, 3.0], **ids})
    pq.write_table(table, "d.parquet")
    run("predict", "m.era", "d.parquet", "--out", "p.parquet", "--id", ",".join(ids))
    copied = pq.read_table("p.parquet")
    assert copied.select([*ids]).to_pydict() == table.select([*ids]).to_pydict()


@pytest.mark.parametrize(("path", "sep", "encoding"), [
    ("d.csv", ";", None), ("d.csv.gz", ";", None), ("d.csv", "|", "latin-1"),
    ("d.csv", r"\t", "latin-1"),
])  # fmt: skip
def test_separator_decimal_mark_and_encoding(frame, path, sep, encoding):
    data = frame[["a", "b", "week"]].assign(stars=(frame["y"] * 2).round() / 2)
    data = data.rename(columns={"b": "é"})
    base = ["--target", "stars", "--features", "a,é", "--era", "week", *BASE]
    run("fit", write(data, "points.csv"), *base)
    expected = predict("points.csv")
    options = {"decimal": ",", "index": False, "quoting": csv.QUOTE_ALL}
    text = data.to_csv(sep=sep.replace(r"\t", "\t"), **options)
    with (gzip.open if path.endswith("gz") else open)(path, "wb") as file:
        file.write(text.encode(encoding or "utf-8-sig"))
    options = ["--sep", sep, "--decimal", ","]
    options += ["--encoding", encoding] if encoding else []
    assert "a regressor of 'stars'" in run("fit", path, *base, *options)
    assert predict(path, *options).equals(expected)


def test_values_of_a_column_are_of_one_type_throughout(frame):
    # Longer than what is read at a time.
    data = pd.DataFrame({"a": np.arange(40_000) % 7.0, "y": 0.0, "x": "x" * 600})
    data.loc[39_999, ["a", "y"]] = 0.5
    fit(write(data, "d.csv"), "--features", "a")
    assert "regressor" in fit("d.csv", "--features", "a")
    data["a"] = data["a"].astype(str).where(data.index < 39_999, "high")
    told = fail("fit", write(data, "d.csv"), "--target", "y", "--exclude", "x", *BASE)
    assert told.startswith("DATA: column 'a' is not numeric ('high' in row 40,000);")


# pandas writes a carriage return without quotes, which ends a row of CSV.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"))
TYPES = {"number": "Float64", "whole": "Int64", "flag": "boolean", "text": "object"}
COLUMNS = {
    "number": st.none() | st.floats(allow_nan=False),
    "whole": st.none() | st.integers(-(2**63), 2**63 - 1),
    "flag": st.none() | st.booleans(),
    "text": st.none() | TEXT,
}
ROWS = st.lists(st.fixed_dictionaries(COLUMNS), min_size=1)


@given(ROWS, st.sampled_from([*COLUMNS]))
def test_a_table_is_the_same_in_every_format(tmp_path_factory, rows, category):
    folder = tmp_path_factory.mktemp("tables")
    columns = {k: pd.array([row[k] for row in rows], TYPES[k]) for k in TYPES}
    frame, tables = pd.DataFrame(columns), []
    for suffix in ("csv", "tsv", "parquet", "feather"):
        path = write(frame, str(folder / f"d.{suffix}"))
        table, text = TableFile(Path(path), None, None, None), ["text", category]
        tables.append(make_features(table.read(list(COLUMNS), text), text, "", ""))
        exact = {"check_dtype": False, "check_exact": True}
        pd.testing.assert_frame_equal(tables[-1], tables[0], **exact)


@pytest.fixture
def coded(frame):
    table = frame[["a", "y"]].copy()
    table["c"] = np.random.RandomState(0).choice([-1, 0, 2, 30], table.shape[0])
    return table.assign(y=table["y"] + table["c"])


CATEGORY = ["--categorical", "c"]


WHOLES = [-1, 30], [-1.0, 30.0], ["-1", "30"], ["-1.0", "30.0"]
DAYS = (
    [date(2024, 1, 1), date(2024, 1, 2)],
    pd.to_datetime(["2024-01-01", "2024-01-02"]),
)
DAYS += (["2024-01-01", "2024-01-02"], ["2024-01-01T00:00", "2024-01-02 00:00:00.000"])
TIMES = pd.date_range("2024-01-01", periods=2, freq="90min"), [
    "2024-01-01 00:00:00", "2024-01-01T01:30:00.0"
]  # fmt: skip
AMOUNTS = [Decimal("1.00"), Decimal("2.50")], ["1", "2.50"], ["1.0", "2.50"]


@pytest.mark.parametrize(
    "spellings", [FLAGS, WHOLES, DAYS, TIMES, AMOUNTS], ids=range(5)
)
def test_categories_are_the_same_however_they_are_spelled(coded, spellings):
    paths, is_high = ["d.parquet", "d.csv"], (coded["c"] > 0).astype(int)
    X = coded[["a"]].assign(c=pd.Categorical(is_high))
    expected = Regressor(max_iter=5).fit(X, coded["y"]).predict(X)
    tables = [coded.assign(c=pd.Series(x).take(is_high).array) for x in spellings]
    for fitted in tables:
        fit(write(fitted, "d.parquet"), *CATEGORY, max_iter=5)
        for table, path in product(tables, paths):
            assert np.array_equal(predict(write(table, path)), expected)


def test_a_decimal_that_is_zero_is_zero():
    known = {spell(x): x for x in (Decimal("0E-8"), Decimal("1E+2"), Decimal("2.50"))}
    assert [*find_known(["0", "100", "2.50"], known).values()] == [*known.values()]


@pytest.mark.parametrize("given", [
    pd.Series(FLAGS[0]), pd.Categorical(FLAGS[0]), pd.Series([0, 1]),
    pd.Categorical([0, 1]), pd.Categorical(DAYS[1]),
], ids=range(5))  # fmt: skip
@pytest.mark.parametrize("model", [
    Regressor(max_iter=5, categorical_features=["c"]),
    EraForestRegressor(5, categorical_features=["c"], random_state=0),
], ids=["booster", "forest"])  # fmt: skip
def test_flags_and_dates_of_models_of_python(coded, given, model):
    is_high = (coded["c"] > 0).astype(int)
    X = coded[["a"]].assign(c=pd.Series(given).take(is_high).array)
    save_model(model.fit(X, coded["y"], eras=coded.index // 100), "m.era")
    expected = model.predict(X)
    assert np.unique(expected).size > 1
    spellings = DAYS if isinstance(given[0], pd.Timestamp) else FLAGS
    for values in (given, *spellings):
        table = X.assign(c=pd.Series(values).take(is_high).array)
        for path in ("d.csv", "d.parquet"):
            assert np.array_equal(predict(write(table, path)), expected)


def test_a_text_with_two_known_spellings_is_unknown(coded):
    kinds = np.searchsorted([-1, 0, 2, 30], coded["c"])
    for known in (["true", "True", "1", "1"], ["true", "True", "2024-01", "1"]):
        write(coded.assign(c=np.array(known)[kinds]), "d.csv")
        fit("d.csv", *CATEGORY)
        predict("d.csv")
        for text in ("TRUE", "0", "2024-01-01"):
            write(coded.assign(c=text), "d.csv")
            told = invoke("predict", "m.era", "d.csv", "--out", "p.csv").stderr
            assert "has not seen 600 of 600 values" in told


@pytest.mark.parametrize("text", ["01", "01.0", "1.5", "1.0.0", "1.", "v1.0", "1e3"])
def test_other_categories_stay_as_they_are_spelled(coded, text):
    coded = coded.assign(c=np.where(coded["c"] == 2, text, "1"))
    fit(write(coded, "d.csv"), *CATEGORY)
    encoder = load_model("m.era")[0]._preprocessor.named_transformers_["encoder"]
    assert set(encoder.categories_[0]) == {text, "1"}


@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
def test_predict_warns_of_categories_that_the_model_never_saw(coded, path):
    fit(write(coded, path), *CATEGORY, max_iter=5)
    # A missing value is not one that the model never saw.
    c = coded["c"].astype(float).where(coded.index != 5).where(coded.index != 6, 4)
    cases = {"1 of 599": c, "600 of 600": [f"x{value}" for value in coded["c"]]}
    for told, values in cases.items():
        write(coded.assign(c=values), path)
        result = invoke("predict", "m.era", path, "--out", "p.csv")
        assert result.exit_code == 0
        text = f"the model has not seen {told} values of column 'c', and treats them"
        assert result.stderr == f"Warning: DATA: {text} as missing.\n"
    X = coded[["a"]].assign(c=pd.Categorical([None] * N_ROWS, ["0"]))
    expected = load_model("m.era")[0].predict(X)
    assert np.array_equal(read("p.csv")["prediction"], expected)


@pytest.mark.parametrize("wrap", [
    lambda model: model, lambda model: EraConformalRegressor(model, cv=3),
], ids=["average", "intervals"])  # fmt: skip
def test_unknown_and_missing_categories_differ_to_encoders(wrap):
    rng = np.random.default_rng(0)
    codes, effects = rng.integers(0, 60, N_ROWS), 3 * rng.normal(size=60)
    texts = np.char.add("c", codes.astype(str)).astype(object)
    texts[::5] = None
    X = pd.DataFrame({"a": rng.normal(size=N_ROWS), "t": pd.Categorical(texts)})
    y = X["a"] + effects[codes] + 9 * X["t"].isna()
    given = {"members": ["leaves_4"], "cv": 3, "encode_categories": True}
    model = wrap(AutoEraRegressor(Regressor(max_iter=5), **given, random_state=0))
    save_model(model.fit(X, y, eras=np.arange(N_ROWS) // 50), "m.era")
    asked = X.astype({"t": object})
    asked.loc[:9, "t"] = "new"
    run("predict", "m.era", write(asked, "d.parquet"), "--out", "p.csv")
    expected = model.predict(asked.astype({"t": "category"}))
    assert np.array_equal(read("p.csv")["prediction"], expected)
    missing = asked.replace("new", None).astype({"t": "category"})
    assert not np.array_equal(model.predict(missing), expected)


@pytest.mark.parametrize("missing", [[], [2]])
@pytest.mark.parametrize("kind", ["int", "float", "object"])
def test_model_whose_categories_are_numbers(coded, kind, missing):
    X = coded[["a"]].assign(c=coded["c"].astype(kind).mask(coded["c"].isin(missing)))
    model = Regressor(max_iter=5, categorical_features=["c"]).fit(X, coded["y"])
    save_model(model, "m.era")
    for path in (write(X, "d.csv"), write(X.astype({"c": float}), "d.parquet")):
        assert np.array_equal(predict(path), model.predict(X))


def test_missing_category_is_not_the_text_of_its_name(coded):
    X = coded[["a", "c"]].astype({"c": object})
    X.loc[X["c"] == 2, "c"] = None
    model = Regressor(max_iter=5, categorical_features=["c"])
    save_model(model.fit(X, coded["y"]), "m.era")
    write(coded.assign(c=[str(value) for value in X["c"]]), "d.parquet")
    n_none = int(X["c"].isna().sum())
    stderr = invoke("predict", "m.era", "d.parquet", "--out", "p.csv").stderr
    assert f"has not seen {n_none:,} of 600 values of column 'c'" in stderr
    assert np.array_equal(read("p.csv")["prediction"], model.predict(X))


def test_names_of_nothing_are_categories_in_csv_too(coded):
    names = np.array(["NA", "null", "None", ""])
    coded["c"] = names[np.searchsorted([-1, 0, 2, 30], coded["c"])]
    write(coded, "d.csv")
    write(coded.assign(c=coded["c"].where(coded["c"] != "")), "d.parquet")
    predictions = []
    for path in ("d.parquet", "d.csv"):
        fit(path, *CATEGORY, max_iter=5)
        predictions += [predict("d.parquet"), predict("d.csv")]
    assert all(predicted.equals(predictions[0]) for predicted in predictions)


def test_flags_with_missing_values_are_the_same_categories(coded):
    coded["c"] = pd.array(coded.index % 2 == 0, "boolean")
    fit(write(coded, "all.parquet"), *CATEGORY)
    coded.loc[3, "c"] = None
    for path in ("some.parquet", "some.csv"):
        predict(write(coded, path))


def test_names_of_nothing_are_eras_classes_and_missing_numbers_in_csv(coded):
    is_two = coded["c"] == 2
    region, label = np.where(is_two, "NA", "EU"), np.where(is_two, "None", "some")
    coded = coded.assign(region=region, label=label)
    arguments = ["fit", "d.csv", "--features", "a", *BASE]
    write(coded, "d.csv")
    assert "of 2 eras" in run(*arguments, "--target", "label", "--era", "region")
    assert load_model("m.era")[0].classes_.tolist() == ["None", "some"]
    write(coded.assign(label=coded["label"].where(coded.index != 4, "")), "d.csv")
    told = fail(*arguments, "--target", "label")
    assert told.startswith("--target: column 'label' has 1 missing value:")
    text = coded.astype({"a": str, "y": str})
    text.loc[4, "a"] = text.loc[7, "y"] = "NA"
    write(text, "d.csv")
    told = fail(*arguments, "--target", "y")
    assert told.startswith("--target: column 'y' has 1 missing value:")
    run(*arguments, "--target", "c")


@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
def test_columns_without_a_value(frame, path):
    table = frame[["a", "b", "y"]].assign(never=np.nan, kind=None)
    write(table, path)
    arguments = ["fit", path, "--target", "y", *BASE, *params(max_iter=2)]
    result = invoke(*arguments, "--categorical", "kind")
    told = (
        "DATA: column(s) 'kind', 'never' have no value in the rows that bins are made"
    )
    assert (result.exit_code, result.stderr.count("Warning: ")) == (0, 1)
    assert result.stderr.startswith(f"Warning: {told}")
    expected = predict(path)
    write(table.assign(never=range(len(table))), path)
    np.testing.assert_array_equal(predict(path), expected)
    write(table.assign(kind="x"), path)
    result = invoke("predict", "m.era", path, "--out", "p.csv")
    assert "has not seen" in result.stderr
    np.testing.assert_array_equal(read("p.csv")["prediction"], expected)
