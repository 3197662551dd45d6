"""Bad arguments to the program: a sentence on stderr that names them, exit code 2."""

import sys

import pytest
import typer

from helpers.cli import fail, fit, predict, write
from sklearn_era import cli
from sklearn_era._optional import MissingPackageError
from sklearn_era.cli import _tables
from sklearn_era.cli._app import _PlainErrors
from sklearn_era.cli._errors import InputError

pytestmark = pytest.mark.usefixtures("small")
SUFFIX = "does not tell a table; use '.csv', '.csv.gz' or '.parquet'."
FEATURE = (
    "which cannot be a feature; if a pattern picks it up, leave it out with --exclude."
)
NOT_NUMERIC = "column 'sector' is not numeric ('energy' in row 1 of the data)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (fit(data="none.csv"), "DATA: there is no file 'none.csv'."),
        (fit(data="d.txt"), f"DATA: the suffix of 'd.txt' {SUFFIX}"),
        (fit(data="d"), f"DATA: the suffix of 'd' {SUFFIX}"),
        (fit(target="Y"), "--target: there is no column 'Y'; did you mean 'y'?"),
        (
            fit(target="price"),
            "--target: there is no column 'price'; there are 'alpha', 'beta', "
            "'sector', 'week' and 'y'.",
        ),
        (
            [*fit(), "--era", "weak"],
            "--era: there is no column 'weak'; did you mean 'week'?",
        ),
        ([*fit(), "--era", "y"], "--era: column 'y' is the --target column too."),
        (
            fit(features=["alpha,bela"]),
            "--features: there is no column 'bela'; did you mean 'beta'?",
        ),
        (fit(features=["x_*"]), "--features: no column's name fits 'x_*'."),
        (
            [*fit(features=[]), "--exclude", "sektor"],
            "--exclude: there is no column 'sektor'; did you mean 'sector'?",
        ),
        (
            fit(features=["alpha,y"]),
            f"--features: column 'y' is the --target column, {FEATURE}",
        ),
        (
            [*fit(features=["*"]), "--exclude", "y", "--era", "week"],
            f"--features: column 'week' is the --era column, {FEATURE}",
        ),
        (
            [*fit(features=[]), "--exclude", "*"],
            "--features: no column is left to be a feature.",
        ),
        (
            [*fit(), "--categorical", "sector"],
            "--categorical: 'sector' cannot be categorical, not being among the "
            "features.",
        ),
        (
            fit(features=[]),
            f"DATA: {NOT_NUMERIC}; declare categories with --categorical, or leave "
            "columns out with --exclude.",
        ),
        (
            [*fit(target="sector"), "--task", "regression"],
            f"--target: {NOT_NUMERIC}, which --task regression needs.",
        ),
        (
            [*fit(), "--task", "classification"],
            "--target: column 'y' has values that are not whole, and --task "
            "classification needs classes.",
        ),
        *[
            (
                [*fit(), option, value],
                f"{option} must be a float in the range {limits}, got {value} instead.",
            )
            for option, value, limits in (
                ("--learning-rate", "0.0", "(0.0, inf)"),
                ("--learning-rate", "nan", "(0.0, inf)"),
                ("--max-features", "1.5", "(0.0, 1.0]"),
                ("--colsample-bytree", "0.0", "(0.0, 1.0]"),
            )
        ],
        (
            fit(out="none/new.skops"),
            "--out: there is no folder 'none' to write to.",
        ),
        (fit(out="."), "--out: '.' is a folder, not a file."),
        (fit(out="d.csv"), "--out: 'd.csv' is an input, and would be overwritten."),
        (predict(model="none.skops"), "MODEL: there is no file 'none.skops'."),
        (predict(model="d.csv"), "MODEL: d.csv is not a model file of sklearn_era."),
        (predict(data="none.csv"), "DATA: there is no file 'none.csv'."),
        (predict(data="d.xlsx"), f"DATA: the suffix of 'd.xlsx' {SUFFIX}"),
        (predict(out="p.txt"), f"--out: the suffix of 'p.txt' {SUFFIX}"),
        (predict(out="none/p.csv"), "--out: there is no folder 'none' to write to."),
        (predict(out="d.csv"), "--out: 'd.csv' is an input, and would be overwritten."),
        (
            [*predict(), "--id", "weeks"],
            "--id: there is no column 'weeks'; did you mean 'week'?",
        ),
        (
            ["demo", "--out", "figure.txt"],
            "--out: the suffix of 'figure.txt' does not tell a figure; use '.png', "
            "'.pdf' or '.svg'.",
        ),
        (
            ["demo", "--out", "none/figure.png"],
            "--out: there is no folder 'none' to write to.",
        ),
        (["fit"], "Missing argument 'DATA'; see 'sklearn-era fit --help'."),
        (fit()[:2], "Missing option '--target'; see 'sklearn-era fit --help'."),
        (fit()[:4], "Missing option '--out' / '-o'; see 'sklearn-era fit --help'."),
        (["train"], "No such command 'train'; see 'sklearn-era --help'."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments(arguments, message, tmp_path):
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert fail(*arguments) == message
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--max-iter", "many"], "'--max-iter'"),
        (["--max-depth", "deep"], "'deep' is neither a whole number nor 'none'"),
        (["--task", "ranking"], "'--task'"),
        (["--early-stopping", "yes"], "'--early-stopping'"),
        (["--no-such-option"], "No such option"),
        (["--max-iter", "0"], "'--max-iter'"),
        (["--max-depth", "0"], "'--max-depth': 0 is not in the range x>=1"),
        (["--max-leaf-nodes", "1"], "'--max-leaf-nodes': 1 is not in the range x>=2"),
        (["--min-samples-leaf", "0"], "'--min-samples-leaf'"),
        (["--max-bins", "256"], "'--max-bins'"),
        (["--random-state", "-1"], "'--random-state'"),
        (["--random-state", "5000000000"], "'--random-state'"),
        (["--verbose", "-1"], "'--verbose'"),
        (["--boltzmann-alpha", "nan"], "'--boltzmann-alpha': nan is not a number"),
        (["--l2-regularization", "-1"], "'--l2-regularization'"),
        (["--min-direction-agreement", "2"], "'--min-direction-agreement'"),
        (["--min-direction-agreement", "nan"], "'--min-direction-agreement'"),
    ],
)
def test_options_that_cannot_be_parsed_are_named(options, name):
    message = fail(*fit(), *options)
    assert name in message
    assert message.endswith("; see 'sklearn-era fit --help'.")


@pytest.mark.parametrize(
    ("option", "value"), [("--boltzmann-alpha", "nan"), ("--random-state", 5 * 10**9)]
)
def test_options_of_the_demo_are_named(option, value):
    message = fail("demo", option, value)
    assert message.startswith(f"Invalid value for '{option}': ")
    assert message.endswith("; see 'sklearn-era demo --help'.")


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
        ("pandas", fit()),
        ("pandas", predict()),
        ("skops", fit()),
        ("skops", predict()),
        ("pyarrow", fit(data="d.parquet")),
        ("pyarrow", predict(out="p.parquet")),
        ("matplotlib", ["demo"]),
    ],
)
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
