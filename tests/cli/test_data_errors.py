"""Tables and models that the program refuses: a sentence that names what is wrong."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.cli import fail, fit, predict, write
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.model_files import save_model

pytestmark = pytest.mark.usefixtures("small")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "cannot be read as CSV: No columns to parse from file."),
        ("ragged.csv", b"alpha,beta,y\n1,2,3\n1,2,3,4,5\n", "cannot be read as CSV: "),
        (
            "shifted.csv",
            b"alpha,beta,y\n1,2,3,4\n1,2,3,4\n",
            "cannot be read as CSV: a row has more values than the header has names.",
        ),
        ("binary.csv", b"alpha,beta,y\n\xff\xfe,2,3\n", "cannot be read as CSV: "),
        ("plain.csv.gz", b"alpha,beta,y\n1,2,3\n", "cannot be read as CSV: "),
        ("text.parquet", b"alpha,beta,y\n1,2,3\n", "cannot be read as Parquet: "),
        ("rows.csv", b"alpha,beta,y\n", "has no rows."),
    ],
)
@pytest.mark.parametrize("command", [fit, predict])
def test_unreadable_table(tmp_path, name, content, message, command):
    (tmp_path / name).write_bytes(content)
    assert fail(*command(data=name)).startswith(f"DATA: '{name}' {message}")


def test_folder_in_place_of_a_table(tmp_path):
    (tmp_path / "d.parquet").mkdir()
    message = "DATA: 'd.parquet' is a folder, not a file."
    assert fail(*fit(data="d.parquet")) == message


def test_parquet_without_rows(small):
    write(small.head(0), "d.parquet")
    assert fail(*fit(data="d.parquet")) == "DATA: 'd.parquet' has no rows."


ERA = ["--era", "week"]
MEND = "fill them in or drop their rows."
INFINITE = "--target: column 'y' has 1 infinite value; correct them or drop their rows."


def blank(name, rows, value=np.nan):
    """Replace the first values of a column."""
    return lambda frame: {name: frame[name].where(frame.index >= rows, value)}


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        (blank("y", 1), fit(), f"--target: column 'y' has 1 missing value; {MEND}"),
        *[
            (
                blank("week", 3),
                [*fit(), *ERA, "--split-criterion", criterion],
                f"--era: column 'week' has 3 missing values; {MEND}",
            )
            for criterion in ("gain", "directional")
        ],
        *[
            (blank("y", 1, np.inf), [*fit(), "--task", task], INFINITE)
            for task in ("auto", "regression", "classification")
        ],
        (
            {"y": "up"},
            fit(),
            "--target: column 'y' has the single class up, and --task classification "
            "needs two or more.",
        ),
        (
            dict.fromkeys(["t0", "t1", "t2", "t3", "t4", "t5"], "x"),
            fit(features=[]),
            "DATA: columns 'sector', 't0', 't1', 't2', 't3' and 2 more are not "
            "numeric; declare categories with --categorical, or leave columns out with "
            "--exclude.",
        ),
        (
            {"beta": np.nan},
            fit(),
            "DATA: there is nothing to learn from in 'beta', all values being missing; "
            "leave it out with --exclude.",
        ),
        (
            {"prediction": 1},
            [*predict(), "--id", "prediction"],
            "--id: 'prediction' is a column of the predictions too.",
        ),
        # Those that begin a sentence.
        (
            blank("week", 1, 99),
            [*fit(), *ERA, "--split-criterion", "era"],
            "The model cannot be fitted: eras: a split has to leave "
            "min_samples_per_era=1 rows of every era on both sides "
            "(min_era_coverage=1.0), but 1 of 5 eras have fewer than 2 rows; the "
            "smallest, era 99, has 1. ",
        ),
        (
            {"name": [f"n{n}" for n in range(60)]},
            [*fit(features=["name"]), "--categorical", "name", "--max-bins", 20],
            "The model cannot be fitted: Categorical feature 'name'",
        ),
        *[
            ({"sector": when}, fit(features=[]), "DATA: column 'sector' is not numeric")
            for when in (
                pd.date_range("2024-01-01", periods=60),
                pd.timedelta_range("1h", periods=60),
            )
        ],
    ],
)
def test_values_that_cannot_be_used(small, columns, arguments, message):
    changed = columns(small) if callable(columns) else columns
    # Of CSV and Parquet, the second keeps what is infinite, and types.
    arguments = ["d.parquet" if x == "d.csv" else x for x in arguments]
    write(small.assign(**changed), "d.parquet")
    told = fail(*arguments)
    assert told == message if message.endswith(".") else told.startswith(message)


def test_predict_lacking_features(small):
    write(small[["beta", "y"]].rename(columns={"beta": "Beta"}), "d.csv")
    assert fail(*predict()) == (
        "DATA: 'd.csv' lacks the feature columns 'alpha' and 'beta'."
    )
    write(small.rename(columns={"beta": "Beta"}), "d.csv")
    assert fail(*predict()) == (
        "DATA: 'd.csv' lacks the feature column 'beta'; did you mean 'Beta'?"
    )


@pytest.mark.parametrize("path", ["e.csv", "e.parquet"])
def test_a_value_that_is_no_number(small, path):
    beta = small["beta"].astype(str).where(small.index != 7, "high")
    write(small.assign(beta=beta.where(small.index != 2)), path)
    subject = "column 'beta' is not numeric ('high' in row 8 of the data)"
    told = fail(*predict(data=path))
    assert told == f"DATA: {subject}; the model was fitted on numbers."
    told = fail(*fit(data=path))
    assert told.startswith(f"DATA: {subject}; declare categories with")
    told = fail(*fit(data=path, target="beta"), "--task", "regression")
    assert told.startswith("--features: column 'beta'")
    write(small.assign(beta=beta), path)
    target = fit(data=path, target="beta", features=["alpha"])
    assert fail(*target, "--task", "regression") == (
        f"--target: {subject}, which --task regression needs."
    )


@pytest.mark.parametrize(("separator", "shown"), [(";", "';'"), ("\t", "a tab")])
def test_wrong_separator(small, separator, shown):
    small.to_csv("d.csv", sep=separator, index=False)
    hint = f"the file has a single column, so is its separator {shown}, not a comma?"
    assert fail(*fit()) == f"--target: there is no column 'y'; {hint}"
    message = f"DATA: 'd.csv' lacks the feature columns 'alpha' and 'beta'; {hint}"
    assert fail(*predict()) == message


@pytest.mark.parametrize("command", [fit, predict])
@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
def test_columns_of_the_same_name(small, command, path):
    if path == "d.csv":
        write(small.rename(columns={"sector": "alpha"}), path)
    else:
        names = ["alpha", "beta", "alpha", "beta", "y"]
        pq.write_table(pa.Table.from_pandas(small).rename_columns(names), path)
    assert fail(*command(data=path)) == (
        f"DATA: '{path}' has more than one column 'alpha'; give each a name of its own."
    )


def test_predict_with_a_model_without_column_names(small):
    estimator = HistGradientBoostingRegressor(max_iter=1)
    estimator.fit(small[["alpha", "beta"]].to_numpy(), small["y"])
    save_model(estimator, "m.skops")
    assert fail(*predict()) == (
        "MODEL: m.skops was fitted without column names, and so the columns of DATA "
        "cannot be told apart."
    )
