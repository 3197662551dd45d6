"""Bad arguments, tables and models: a sentence that names them, exit code 2."""

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from helpers.cli import fail, fit, predict, write
from sklearn_era import cli
from sklearn_era._optional import MissingPackageError
from sklearn_era.cli import _tables
from sklearn_era.cli._app import _PlainErrors
from sklearn_era.cli._errors import InputError
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.model_files import save_model

pytestmark = pytest.mark.usefixtures("small")
SUFFIX = "does not tell a table; use '.csv', '.csv.gz' or '.parquet'."
FEATURE = (
    "which cannot be a feature; if a pattern picks it up, leave it out with --exclude."
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (fit(data="none.csv"), "DATA: there is no file 'none.csv'."),
        (fit(data="d.txt"), f"DATA: the suffix of 'd.txt' {SUFFIX}"),
        (fit(data="d"), f"DATA: the suffix of 'd' {SUFFIX}"),
        (fit(target="Y"), "--target: there is no column 'Y'; did you mean 'y'?"),
        (fit(target="price"),
         "--target: there is no column 'price'; there are 'alpha', 'beta', "
         "'sector', 'week' and 'y'."),
        ([*fit(), "--era", "weak"],
         "--era: there is no column 'weak'; did you mean 'week'?"),
        ([*fit(), "--era", "y"], "--era: column 'y' is the --target column too."),
        (fit(features=["alpha,bela"]),
         "--features: there is no column 'bela'; did you mean 'beta'?"),
        (fit(features=["x_*"]), "--features: no column's name fits 'x_*'."),
        ([*fit(features=[]), "--exclude", "sektor"],
         "--exclude: there is no column 'sektor'; did you mean 'sector'?"),
        (fit(features=["alpha,y"]),
         f"--features: column 'y' is the --target column, {FEATURE}"),
        ([*fit(features=["*"]), "--exclude", "y", "--era", "week"],
         f"--features: column 'week' is the --era column, {FEATURE}"),
        ([*fit(features=[]), "--exclude", "*"],
         "--features: no column is left to be a feature."),
        ([*fit(), "--categorical", "sector"],
         "--categorical: 'sector' cannot be categorical, not being among the "
         "features."),
        ([*fit(), "--task", "classification"],
         "--target: column 'y' has values that are not whole, and --task "
         "classification needs classes."),
        *[
            ([*fit(), option, value],
             f"{option} must be a float in the range {limits}, got {value} instead.")
            for option, value, limits in (
                ("--learning-rate", "0.0", "(0.0, inf)"),
                ("--learning-rate", "nan", "(0.0, inf)"),
                ("--max-features", "1.5", "(0.0, 1.0]"),
                ("--colsample-bytree", "0.0", "(0.0, 1.0]"),
            )
        ],
        (fit(out="none/new.skops"), "--out: there is no folder 'none' to write to."),
        (fit(out="."), "--out: '.' is a folder, not a file."),
        (fit(out="d.csv"), "--out: 'd.csv' is an input, and would be overwritten."),
        (predict(model="none.skops"), "MODEL: there is no file 'none.skops'."),
        (predict(model="d.csv"), "MODEL: d.csv is not a model file of sklearn_era."),
        (predict(data="none.csv"), "DATA: there is no file 'none.csv'."),
        (predict(data="d.xlsx"), f"DATA: the suffix of 'd.xlsx' {SUFFIX}"),
        (predict(out="p.txt"), f"--out: the suffix of 'p.txt' {SUFFIX}"),
        (predict(out="none/p.csv"), "--out: there is no folder 'none' to write to."),
        (predict(out="d.csv"), "--out: 'd.csv' is an input, and would be overwritten."),
        ([*predict(), "--id", "weeks"],
         "--id: there is no column 'weeks'; did you mean 'week'?"),
        (["demo", "--out", "figure.txt"],
         "--out: the suffix of 'figure.txt' does not tell a figure; use '.png', "
         "'.pdf' or '.svg'."),
        (["demo", "--out", "none/figure.png"],
         "--out: there is no folder 'none' to write to."),
        ([*fit(), "--validation-eras", "random"],
         "--validation-eras has no effect without eras: name the column that holds "
         "them with --era, or leave it out."),
        (["fit"], "Missing argument 'DATA'; see 'sklearn-era fit --help'."),
        (fit()[:2], "Missing option '--target'; see 'sklearn-era fit --help'."),
        (fit()[:4], "Missing option '--out' / '-o'; see 'sklearn-era fit --help'."),
        (["train"], "No such command 'train'; see 'sklearn-era --help'."),
        ([*fit(), "--no-such-option"],
         "No such option: --no-such-option; see 'sklearn-era fit --help'."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_bad_arguments(arguments, message, tmp_path):
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert fail(*arguments) == message
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--max-iter", "many", ""), ("--task", "ranking", ""), ("--max-iter", "0", ""),
        ("--early-stopping", "yes", ""), ("--min-samples-leaf", "0", ""),
        ("--max-bins", "256", ""), ("--random-state", "-1", ""),
        ("--random-state", "5000000000", ""), ("--l2-regularization", "-1", ""),
        ("--verbose", "-1", ""), ("--min-direction-agreement", "2", ""),
        ("--min-direction-agreement", "nan", ""),
        ("--max-depth", "deep", ": 'deep' is neither a whole number nor 'none'"),
        ("--max-depth", "0", ": 0 is not in the range x>=1"),
        ("--max-leaf-nodes", "1", ": 1 is not in the range x>=2"),
        ("--boltzmann-alpha", "nan", ": nan is not a number"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_parsed_are_named(option, value, told):
    message = fail(*fit(), option, value)
    assert f"'{option}'{told}" in message
    assert message.endswith("; see 'sklearn-era fit --help'.")
    if option in ("--boltzmann-alpha", "--random-state"):
        assert fail("demo", option, value) == message.replace(" fit -", " demo -")


def test_errors_in_a_group_of_commands_are_told_alike():
    group = typer.Typer()

    @group.command()
    def upload():
        raise InputError("--file: there is none.")

    @group.command()
    def download(round_number: int):
        raise MissingPackageError("numerapi is not installed.")

    program = typer.Typer(cls=_PlainErrors, pretty_exceptions_enable=False)
    program.add_typer(group, name="group")
    program.command()(lambda: None)
    assert fail("group", "upload", app=program) == "--file: there is none."
    assert fail("group", "download", "x", app=program).startswith("Invalid value for")
    sentence = fail("group", "download", "3", app=program, exit_code=1)
    assert sentence == "numerapi is not installed."


@pytest.mark.parametrize(
    ("arguments", "path"),
    [(fit(), "new.skops"), (predict(), "p.csv"), (["demo"], "sklearn-era-demo.png")],
)
def test_folder_that_cannot_be_written(monkeypatch, arguments, path):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(_tables.tempfile, "TemporaryFile", refuse)
    assert fail(*arguments) == f"--out: cannot write '{path}': Permission denied."


def test_disk_that_fills_up_while_writing(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    before = set(tmp_path.iterdir())
    for command, path in ((fit, "new.skops"), (predict, "p.csv")):
        told = fail(*command())
        assert told.startswith(f"--out: cannot write '{path}': [Errno 28] No space")
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("pandas", fit()), ("pandas", predict()), ("skops", fit()),
        ("skops", predict()), ("pyarrow", fit(data="d.parquet")),
        ("pyarrow", predict(out="p.parquet")), ("matplotlib", ["demo"]),
    ],
)  # fmt: skip
def test_missing_package_names_the_extra(small, monkeypatch, package, arguments):
    write(small, "d.parquet")
    monkeypatch.setitem(sys.modules, package, None)
    extra = "plot" if package == "matplotlib" else "cli"
    assert fail(*arguments, exit_code=1) == (
        f"{package} is not installed, and this needs it: "
        f"pip install 'sklearn-era[{extra}]'"
    )


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_program_without_its_own_packages(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as raised:
        cli.main()
    assert raised.value.code == (
        f"Error: {package} is not installed, and this needs it: "
        "pip install 'sklearn-era[cli]'"
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "cannot be read as CSV: No columns to parse from file."),
        ("ragged.csv", b"alpha,beta,y\n1,2,3\n1,2,3,4,5\n", "cannot be read as CSV: "),
        ("shifted.csv", b"alpha,beta,y\n1,2,3,4\n1,2,3,4\n",
         "cannot be read as CSV: a row has more values than the header has names."),
        ("binary.csv", b"alpha,beta,y\n\xff\xfe,2,3\n", "cannot be read as CSV: "),
        ("plain.csv.gz", b"alpha,beta,y\n1,2,3\n", "cannot be read as CSV: "),
        ("text.parquet", b"alpha,beta,y\n1,2,3\n", "cannot be read as Parquet: "),
        ("rows.csv", b"alpha,beta,y\n", "has no rows."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", [fit, predict])
def test_unreadable_table(tmp_path, name, content, message, command):
    (tmp_path / name).write_bytes(content)
    assert fail(*command(data=name)).startswith(f"DATA: '{name}' {message}")


def test_a_folder_and_a_parquet_file_without_rows(small, tmp_path):
    (tmp_path / "a.parquet").mkdir()
    assert fail(*fit(data="a.parquet")) == "DATA: 'a.parquet' is a folder, not a file."
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
            (blank("week", 3), [*fit(), *ERA, "--split-criterion", criterion],
             f"--era: column 'week' has 3 missing values; {MEND}")
            for criterion in ("gain", "directional")
        ],
        *[
            (blank("y", 1, np.inf), [*fit(), "--task", task], INFINITE)
            for task in ("auto", "regression", "classification")
        ],
        ({"y": "up"}, fit(),
         "--target: column 'y' has the single class up, and --task classification "
         "needs two or more."),
        (dict.fromkeys(["t0", "t1", "t2", "t3", "t4", "t5"], "x"), fit(features=[]),
         "DATA: columns 'sector', 't0', 't1', 't2', 't3' and 2 more are not "
         "numeric; declare categories with --categorical, or leave columns out with "
         "--exclude."),
        ({"beta": np.nan}, fit(),
         "DATA: there is nothing to learn from in 'beta', all values being missing; "
         "leave it out with --exclude."),
        ({"prediction": 1}, [*predict(), "--id", "prediction"],
         "--id: 'prediction' is a column of the predictions too."),
        # Those that begin a sentence.
        (blank("week", 1, 99),
         [*fit(), *ERA, "--split-criterion", "era", "--min-era-coverage", 1],
         "The model cannot be fitted: eras: a split has to leave "
         "min_samples_per_era=1 rows of every era on both sides "
         "(min_era_coverage=1.0), but 1 of 5 eras have fewer than 2 rows; the "
         "smallest, era 99, has 1. "),
        ({"name": [f"n{n}" for n in range(60)]},
         [*fit(features=["name"]), "--categorical", "name", "--max-bins", 20],
         "The model cannot be fitted: Categorical feature 'name'"),
        *[
            ({"sector": when}, fit(features=[]), "DATA: column 'sector' is not numeric")
            for when in (pd.date_range("2024", periods=60),
                         pd.timedelta_range("1h", periods=60))
        ],
    ],
)  # fmt: skip
def test_values_that_cannot_be_used(small, columns, arguments, message):
    changed = columns(small) if callable(columns) else columns
    # Of CSV and Parquet, the second keeps what is infinite, and types.
    arguments = ["d.parquet" if x == "d.csv" else x for x in arguments]
    write(small.assign(**changed), "d.parquet")
    told = fail(*arguments)
    assert told == message if message.endswith(".") else told.startswith(message)


def test_predict_lacking_features(small):
    write(small[["beta", "y"]].rename(columns={"beta": "Beta"}), "d.csv")
    told = fail(*predict())
    assert told == "DATA: 'd.csv' lacks the feature columns 'alpha' and 'beta'."
    write(small.rename(columns={"beta": "Beta"}), "d.csv")
    assert fail(*predict()) == (
        "DATA: 'd.csv' lacks the feature column 'beta'; did you mean 'Beta'?"
    )
    # A model without names of columns.
    estimator = HistGradientBoostingRegressor(max_iter=1)
    estimator.fit(small[["alpha", "beta"]].to_numpy(), small["y"])
    save_model(estimator, "m.skops")
    assert fail(*predict()) == (
        "MODEL: m.skops was fitted without column names, and so the columns of DATA "
        "cannot be told apart."
    )


@pytest.mark.parametrize("path", ["e.csv", "e.parquet"])
def test_a_value_that_is_no_number(small, path):
    beta = small["beta"].astype(str).where(small.index != 7, "high")
    write(small.assign(beta=beta.where(small.index != 2)), path)
    subject = "column 'beta' is not numeric ('high' in row 8 of the data)"
    told = fail(*predict(data=path))
    assert told == f"DATA: {subject}; the model was fitted on numbers."
    assert fail(*fit(data=path)) == (
        f"DATA: {subject}; declare categories with --categorical, or leave columns out "
        "with --exclude."
    )
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
