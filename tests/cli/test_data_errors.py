"""Tables and models that the program refuses: a sentence that names what is wrong."""

import json
import zipfile

import numpy as np
import pytest
import sklearn

import sklearn_era
from helpers.cli import fail, fit, make_small_folder, pa, pd, predict
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.model_files import save_model


@pytest.fixture(autouse=True)
def frame(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return make_small_folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "empty.csv",
            b"",
            "DATA: 'empty.csv' cannot be read as CSV: No columns to parse from file.",
        ),
        (
            "ragged.csv",
            b"alpha,beta,y\n1,2,3\n1,2,3,4,5\n",
            "DATA: 'ragged.csv' cannot be read as CSV: ",
        ),
        (
            "shifted.csv",
            b"alpha,beta,y\n1,2,3,4\n1,2,3,4\n",
            "DATA: 'shifted.csv' cannot be read as CSV: a row has more values than the "
            "header has names.",
        ),
        (
            "binary.csv",
            b"alpha,beta,y\n\xff\xfe,2,3\n",
            "DATA: 'binary.csv' cannot be read as CSV: ",
        ),
        (
            "plain.csv.gz",
            b"alpha,beta,y\n1,2,3\n",
            "DATA: 'plain.csv.gz' cannot be read as CSV: ",
        ),
        (
            "text.parquet",
            b"alpha,beta,y\n1,2,3\n",
            "DATA: 'text.parquet' cannot be read as Parquet: ",
        ),
        ("rows.csv", b"alpha,beta,y\n", "DATA: 'rows.csv' has no rows."),
    ],
)
@pytest.mark.parametrize("command", [fit, predict])
def test_unreadable_table(tmp_path, name, content, message, command):
    (tmp_path / name).write_bytes(content)
    assert fail(*command(data=name)).startswith(message)


def test_empty_parquet(frame):
    frame.head(0).to_parquet("d.parquet")
    assert fail(*fit(data="d.parquet")) == "DATA: 'd.parquet' has no rows."


def test_folder_in_place_of_a_table(tmp_path):
    (tmp_path / "d.parquet").mkdir()
    message = "DATA: 'd.parquet' is a folder, not a file."
    assert fail(*fit(data="d.parquet")) == message


def test_missing_values_in_the_target(frame):
    frame.assign(y=frame["y"].where(frame.index != 5)).to_csv("d.csv", index=False)
    assert fail(*fit()) == (
        "--target: column 'y' has 1 missing value; fill them in or drop their rows."
    )


@pytest.mark.parametrize("criterion", ["gain", "directional"])
def test_missing_eras(frame, criterion):
    frame.assign(week=frame["week"].where(frame.index > 2)).to_parquet("d.parquet")
    options = ["--era", "week", "--split-criterion", criterion]
    assert fail(*fit(data="d.parquet"), *options) == (
        "--era: column 'week' has 3 missing values; fill them in or drop their rows."
    )


def test_target_of_a_single_class(frame):
    frame.assign(y="up").to_csv("d.csv", index=False)
    assert fail(*fit()) == (
        "--target: column 'y' has the single class up, and --task classification needs "
        "two or more."
    )


@pytest.mark.parametrize("task", ["auto", "regression", "classification"])
def test_infinite_target(frame, task):
    frame.assign(y=frame["y"].where(frame.index != 5, np.inf)).to_parquet("d.parquet")
    assert fail(*fit(data="d.parquet"), "--task", task) == (
        "--target: column 'y' has 1 infinite value; correct them or drop their rows."
    )


def test_era_of_a_single_row_is_the_estimators_to_refuse(frame):
    frame.assign(week=frame["week"].where(frame.index != 5, 99)).to_csv("d.csv")
    options = ["--era", "week", "--split-criterion", "era"]
    message = fail(*fit(), *options)
    assert message.startswith("The model cannot be fitted: ")
    assert "99" in message


def test_text_columns_are_all_named(frame):
    frame.assign(**{f"t{n}": "x" for n in range(6)}).to_csv("d.csv", index=False)
    assert fail(*fit(features=[])) == (
        "DATA: columns 'sector', 't0', 't1', 't2', 't3' and 2 more are not numeric; "
        "declare categories with --categorical, or leave columns out with --exclude."
    )


@pytest.mark.parametrize(
    "column",
    [
        pd.date_range("2024-01-01", periods=60),
        pd.timedelta_range("1h", periods=60),
    ],
)
def test_times_are_not_numeric(frame, column):
    frame.assign(when=column)[["alpha", "when", "y"]].to_parquet("d.parquet")
    message = fail(*fit(data="d.parquet", features=[]))
    assert message.startswith("DATA: column 'when' is not numeric")


def test_too_many_categories_are_the_estimators_to_refuse(frame):
    frame.assign(name=[f"n{n}" for n in range(60)]).to_csv("d.csv", index=False)
    options = ["--categorical", "name", "--max-bins", 20]
    message = fail(*fit(features=["name"]), *options)
    assert message.startswith("The model cannot be fitted: Categorical feature 'name'")


def test_column_without_a_value(frame):
    frame.assign(beta=np.nan).to_csv("d.csv", index=False)
    assert fail(*fit()) == (
        "DATA: there is nothing to learn from in 'beta', all values being missing; "
        "leave it out with --exclude."
    )


def test_predict_lacking_features(frame):
    frame[["beta", "y"]].rename(columns={"beta": "Beta"}).to_csv("d.csv", index=False)
    assert fail(*predict()) == (
        "DATA: 'd.csv' lacks the feature columns 'alpha' and 'beta'."
    )
    frame.rename(columns={"beta": "Beta"}).to_csv("d.csv", index=False)
    assert fail(*predict()) == (
        "DATA: 'd.csv' lacks the feature column 'beta'; did you mean 'Beta'?"
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_value_that_is_no_number(frame, suffix):
    beta = frame["beta"].astype(str).where(frame.index != 7, "high")
    data = frame.assign(beta=beta.where(frame.index != 2))
    path = f"e.{suffix}"
    data.to_csv(path, index=False) if suffix == "csv" else data.to_parquet(path)
    subject = "DATA: column 'beta' is not numeric ('high' in row 8 of the data); "
    assert fail(*predict(data=path)) == subject + "the model was fitted on numbers."
    assert fail(*fit(data=path)).startswith(subject + "declare categories with")
    assert fail(*fit(data=path, target="beta"), "--task", "regression").startswith(
        "--features: column 'beta'"
    )
    arguments = fit(data=path, target="beta", features=["alpha"])
    pandas_missing = data.assign(beta=beta)
    pandas_missing.to_csv(path, index=False) if suffix == "csv" else (
        pandas_missing.to_parquet(path)
    )
    assert fail(*arguments, "--task", "regression") == (
        "--target: column 'beta' is not numeric ('high' in row 8 of the data), which "
        "--task regression needs."
    )


@pytest.mark.parametrize(("separator", "shown"), [(";", "';'"), ("\t", "a tab")])
def test_wrong_separator(frame, separator, shown):
    frame.to_csv("d.csv", sep=separator, index=False)
    hint = f"the file has a single column, so is its separator {shown}, not a comma?"
    assert fail(*fit()) == f"--target: there is no column 'y'; {hint}"
    message = f"DATA: 'd.csv' lacks the feature columns 'alpha' and 'beta'; {hint}"
    assert fail(*predict()) == message


@pytest.mark.parametrize("command", [fit, predict])
def test_columns_of_the_same_name(frame, command):
    frame.rename(columns={"sector": "alpha"}).to_csv("d.csv", index=False)
    assert fail(*command()) == (
        "DATA: 'd.csv' has more than one column 'alpha'; give each a name of its own."
    )
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.Table.from_pandas(frame)
    table = table.rename_columns(["alpha", "beta", "alpha", "beta", "y"])
    pq.write_table(table, "d.parquet")
    assert fail(*command(data="d.parquet")) == (
        "DATA: 'd.parquet' has more than one column 'alpha'; give each a name of its "
        "own."
    )


def test_predict_with_an_id_of_the_name_of_a_result(frame):
    frame.assign(prediction=1).to_csv("d.csv", index=False)
    assert fail(*predict(), "--id", "prediction") == (
        "--id: 'prediction' is a column of the predictions too."
    )


def test_predict_with_a_model_of_another_version():
    with zipfile.ZipFile("m.skops") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members["sklearn_era.json"])
    document["versions"]["scikit-learn"] = "1.7.2"
    members["sklearn_era.json"] = json.dumps(document).encode()
    with zipfile.ZipFile("m.skops", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    version = sklearn_era.__version__
    assert fail(*predict()) == (
        f"MODEL: m.skops was written by sklearn_era {version} with scikit-learn 1.7.2, "
        f"and this is sklearn_era {version} with scikit-learn {sklearn.__version__}: "
        "fit the model again, or install the versions that wrote it."
    )


def test_predict_with_a_model_without_column_names(frame):
    estimator = HistGradientBoostingRegressor(max_iter=1)
    estimator.fit(frame[["alpha", "beta"]].to_numpy(), frame["y"])
    save_model(estimator, "m.skops")
    assert fail(*predict()) == (
        "MODEL: m.skops was fitted without column names, and so the columns of DATA "
        "cannot be told apart."
    )
