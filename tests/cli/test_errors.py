"""Bad arguments, tables and models: a sentence that names them, exit code 2."""

import re
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from typer.main import get_command

from helpers.cli import fail, fit, invoke, params, predict, run, write
from sklearn_era import cli
from sklearn_era.cli._commands import app
from sklearn_era.cli._ui import name_options, print_table
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.model_files import load_model, save_model
from sklearn_era.preprocessing import EraStandardScaler, EraTargetEncoder

pytestmark = pytest.mark.usefixtures("small")
SUFFIX = "must end in .csv, .csv.gz, .tsv, .tsv.gz, .parquet, .feather."
ABSENT = (
    "Invalid value for '{}': file '{}' does not exist; see 'sklearn-era {} --help'."
)
SEE, ERA = "; see 'sklearn-era fit --help'.", ["--era", "week"]
NONE = "{}: there is no column '{}'; did you mean '{}'?".format
USE = "there is no column '{}'; use 'alpha', 'beta', 'sector', 'week', 'y'.".format
AUTO = " is for --estimator auto, and a positive number of seconds."
BAD, ONE = "DATA: cannot read 'd.csv': ", "--sep: '{}' is not a single ASCII character."


@pytest.mark.parametrize(("arguments", "message"), [
    (fit(data="none.csv"), ABSENT.format("DATA", "none.csv", "fit")),
    (fit(data="m.era"), f"DATA: 'm.era' {SUFFIX}"),
    (fit(target="Y"), NONE("--target", "Y", "y")),
    (fit(target="price"), "--target: " + USE("price")),
    ([*fit(), "--era", "weak"], NONE("--era", "weak", "week")),
    ([*fit(), "--era", "y"], "--era: 'y' is the --target column."),
    (fit(features=["alpha,bela"]), NONE("--features", "bela", "beta")),
    ([*fit(), *ERA, "--time-budget", "60"], "--time-budget: 60" + AUTO),
    ([*fit(), *ERA, "--estimator", "auto", "--time-budget", "-1"],
     "--time-budget: -1" + AUTO),
    (fit(features=["alpha,y"]),
     "--features: 'y' is the --target column; leave it out with --exclude."),
    ([*fit(features=["*"]), "--exclude", "y", *ERA],
     "--features: 'week' is the --era column; leave it out with --exclude."),
    ([*fit(features=[]), "--exclude", "*"], "--features: no columns are left."),
    ([*fit(), "--categorical", "sector"],
     "--categorical: 'sector' is not a feature."),
    ([*fit(), *ERA, "--categorical", "week"],
     "--categorical: 'week' is the --era column, which is no feature."),
    (fit(out="new.pkl"), "--out: 'new.pkl' must end in .era."),
    (fit(out="none/new.era"),
     "--out: cannot write 'none/new.era': No such file or directory."),
    (fit(out="."), "Invalid value for '--out' / '-o': file '.' is a directory" + SEE),
    (predict(model="none.era"), ABSENT.format("MODEL", "none.era", "predict")),
    (predict(model="d.csv"), "MODEL: d.csv is not a model file of sklearn_era."),
    (predict(out="p.txt"), f"--out: 'p.txt' {SUFFIX}"),
    (predict(out="d.csv"), "--out: 'd.csv' is an input and would be overwritten."),
    (["demo", "--out", "f.txt"], "--out: 'f.txt' must end in .png, .pdf, .svg."),
    (fit()[:2], "Missing option '--target'" + SEE),
    (["train"], "No such command 'train'; see 'sklearn-era --help'."),
    (["numerai", "no"], "No such command 'no'; see 'sklearn-era numerai --help'."),
    ([*fit(), "--sep", "ab"], ONE.format("ab")),
    ([*predict(), "--sep", ""], ONE.format("")),
    ([*fit(), "--sep", "§"], ONE.format("§")),
    ([*fit(data="d.parquet"), "--sep", ";"],
     "--sep, --decimal, --encoding: 'd.parquet' is no text file."),
    ([*predict(data="d.parquet"), "--decimal", ","],
     "--sep, --decimal, --encoding: 'd.parquet' is no text file."),
    ([*fit(), "--encoding", "klingon"], BAD + "unknown encoding: klingon."),
    ([*predict(), "--encoding", ""], BAD + "unknown encoding:."),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")  # fmt: skip
def test_bad_arguments(small, arguments, message, tmp_path):
    write(small, "d.parquet")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    told = fail(*arguments)
    # Typer's message differs by version.
    assert told.replace(": File '", ": file '") == message
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


MUST = "Cannot fit: The '{}' parameter of HistGradientBoostingRegressor must be ".format
PARAMETER = "--param: HistGradientBoostingRegressor has no parameter "
TWICE = "--param: '{}' is given twice or has its own option.".format
CRITERION = "--split-criterion: there is no criterion "


@pytest.mark.parametrize(("options", "message"), [
    (["--param", "max_iter"], "--param: 'max_iter' is not NAME=VALUE."),
    (["--param", "=3"], "--param: '=3' is not NAME=VALUE."),
    (params(max_itr=3), PARAMETER + "'max_itr'; did you mean 'max_iter' or "),
    (params(random_state=3), TWICE("random_state")),
    ([*params(max_iter=3), "--param", "max-iter=4"], TWICE("max_iter")),
    (params(learning_rate="nan"), MUST("learning_rate")),
    (params(loss="quantile"), "Cannot fit: quantile must be an instance of float"),
    ([*params(loss="quantile"), *ERA, "--estimator", "auto"],
     "Cannot fit: quantile must be an instance of float"),
    (["--split-criterion", "directionl"],
     CRITERION + "'directionl'; did you mean 'directional'?"),
    (["--split-criterion", "[1]", *ERA], CRITERION + "'[1]'; use 'gain', 'era', "),
    (["--split-criterion", "era"], "--split-criterion: 'era' needs --era."),
    ([*ERA, "--split-criterion", '{"era": 1, "time_robust": 1}'],
     "Cannot fit: --split-criterion: 'time_robust' cannot be part of a blend"),
    (["--n-jobs", 0], "Cannot fit: The '--n-jobs' parameter of HistGradientBoostingR"),
    ([*ERA, "--era-order", "unordered", *params(era_effects="intercept")],
     "Cannot fit: era_effects=Intercepts() needs eras that follow each other, and "
     "with --era-order unordered these do not: use "),
    (params(boltzmann_alpha=1), "--param: boltzmann_alpha is no parameter of the "
     "estimators any more: use --param split_criterion__boltzmann_alpha=..., of "),
    (params(leaf_shrinkage="eras"), "Cannot fit: leaf_shrinkage='eras' needs eras: "
     "pass --era, or use leaf_shrinkage=None."),
    (["--random-state", -1], "Invalid value for '--random-state': "),
    (["--scoring", "roc_acu"],
     "--scoring: there is no score 'roc_acu'; did you mean 'roc_auc'"),
    (["--scoring", "roc_auc"],
     "--scoring: 'roc_auc' is for classes, and the target has none."),
    (["--scoring", "r2", "--no-score"],
     "--scoring: 'r2' is of no use with --no-score."),
    (["--cv", "3", "--no-score"], "--cv: '3' is of no use with --no-score."),
    (["--cv", "3"], "--cv: '3' needs --era."),
    (["--groups", "gain"], "--groups: 'gain' needs --era."),
    (params(scoring="roc_auc", early_stopping="true"),
     "Cannot fit: scoring: roc_auc_score is of classes, and HistGradientBoosting"),
    (["--zzzz"], "No such option"),
])  # fmt: skip
def test_bad_parameters(options, message):
    told = fail(*fit(), *options)
    assert told == message if message.endswith(".") else told.startswith(message)


# Arguments of the library that options of fit stand for, where they differ from
# `--some-name` of `some_name`; None are options of the program alone.
ARGUMENTS = {
    "--era": "eras", "--categorical": "categorical_features", "--target": "y",
    "DATA": "X", "--known-groups": "group='known'", "--score": None, "--out": None,
    "--features": None, "--exclude": None, "--task": None, "--param": None,
    "--cv": None, "--scoring": None, "--sep": None, "--decimal": None,
    "--encoding": None,
}  # fmt: skip


@pytest.mark.parametrize("option", [
    max(x.opts, key=len) for x in get_command(app).commands["fit"].params
])  # fmt: skip
def test_messages_of_estimators_name_each_option(option):
    command = get_command(app).commands["fit"]
    option = {"data": "DATA"}.get(option, option)
    name = ARGUMENTS.get(option, option.strip("-").replace("-", "_"))
    if name is None:
        return
    if option == "--known-groups":
        assert name_options(f"pass {name}, or x", command) == f"pass {option}, or x"
        assert name_options("group='new' is so", command) == "no --known-groups is so"
    elif len(name) == 1:
        for text in ("{} has 3", "Input {} contains", "column 'a' of {}", "{}: it is"):
            told = name_options(text.format(name), command)
            assert told == text.replace("Input ", "").format(option)
        alone = "fit(X, y, a=1)", "X_val, y_val", "era y", "'X' is", "of X, y and"
        for text in alone:
            assert name_options(text, command) == text
    else:
        assert name_options(f"pass {name}='a'", command) == f"pass {option} a"
        assert name_options(f"{name}: no", command) == f"{option}: no"
        told = name_options(f"The '{name}' parameter", command)
        assert told == f"The '{option}' parameter"


COMMANDS = [(fit(), "new.era"), (predict(), "p.csv")]
WRITES = [("os.replace", *command) for command in COMMANDS]
COMMANDS += [(["demo"], "sklearn-era-demo.png")]
WRITES += [("tempfile.TemporaryFile", *command) for command in COMMANDS]


@pytest.mark.parametrize(("function", "arguments", "path"), WRITES)
def test_file_that_cannot_be_written(tmp_path, monkeypatch, function, arguments, path):
    def refuse(*args, **kwargs):
        raise OSError(28, "No space left on device")

    (tmp_path / path).write_text("of an earlier run")
    monkeypatch.setattr(function, refuse)
    before = set(tmp_path.iterdir())
    told = fail(*arguments)
    assert told == f"--out: cannot write '{path}': No space left on device."
    assert set(tmp_path.iterdir()) == before
    assert (tmp_path / path).read_text() == "of an earlier run"


LACKS = "{0} is not installed, and this needs it: pip install 'sklearn-era[{1}]', or "
LACKS = f"{LACKS}'.[{{1}}]' in a clone".format
EXTRAS = {"matplotlib": ("plot", ["demo"]), "filelock": ("numerai", ["numerai", "run"])}


@pytest.mark.parametrize("package", ["pandas", "pyarrow", *EXTRAS])
def test_missing_package_names_the_extra(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    extra, *commands = EXTRAS.get(package, ("cli", fit(), predict()))
    for arguments in commands:
        assert fail(*arguments, exit_code=1) == LACKS(package, extra)


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_program_without_its_own_packages(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as raised:
        cli.main()
    assert raised.value.code == "Error: " + LACKS(package, "cli")


@pytest.mark.parametrize(("name", "content", "message"), [
    ("empty.csv", b"", "cannot read 'empty.csv': Empty CSV file."),
    ("ragged.csv", b"alpha,beta,y\n1,2,3\n1,2,3,4,5\n",
     "cannot read 'ragged.csv': CSV parse error: "),
    ("latin.csv", b"alpha,beta,y\n\xe9,2,3\n",
     "cannot read 'latin.csv': column 'alpha' is not UTF-8 text; pass its encoding "
     "with --encoding."),
    ("wide.csv", "alpha,beta,y\n1,2,3\n".encode("utf-16"), "cannot read 'wide.csv': "
     "CSV parse error: Expected 3 columns, got 1: ?; pass its encoding with "
     "--encoding."),
    ("odd.csv", b"alpha,beta,y\n1,2,3\n?x\n", "cannot read 'odd.csv': CSV parse error: "
     "Expected 3 columns, got 1: ?x."),
    ("head.csv", b"alpha,beta,y,\xe9\n1,2,3,4\n", "cannot read 'head.csv': "),
    ("plain.csv.gz", b"alpha,beta,y\n1,2,3\n", "cannot read 'plain.csv.gz': "),
    ("text.parquet", b"alpha,beta,y\n1,2,3\n", "cannot read 'text.parquet': "),
    ("text.feather", b"alpha,beta,y\n1,2,3\n", "cannot read 'text.feather': "),
    ("rows.csv", b"alpha,beta,y\n", "'rows.csv' has no rows."),
    ("twice.csv", b"alpha,beta,alpha,y\n1,2,3,4\n",
     "'twice.csv' has two columns named 'alpha'."),
])  # fmt: skip
@pytest.mark.parametrize("command", [fit, predict])
def test_unreadable_table(tmp_path, name, content, message, command):
    (tmp_path / name).write_bytes(content)
    told = re.sub(r"Row #\d+: ", "", fail(*command(data=name)))  # of one thread
    assert told.startswith(f"DATA: {message}")


@pytest.mark.parametrize("command", [fit, predict])
def test_odd_parquet_files(small, command):
    table = pa.Table.from_pandas(small)
    twice = table.rename_columns(["alpha", "beta", "alpha", "beta", "y"])
    bad = "cannot read 'd.parquet': "
    nested = table.set_column(0, "alpha", [[[value] for value in small["y"]]])
    binary = table.set_column(0, "alpha", [[b"\xe9"] * len(small)])
    for content, message in (
        (table[:0], "'d.parquet' has no rows."),
        (pa.table({}), "'d.parquet' has no named columns."),
        (twice, bad + "Can't unify schema with duplicate field names."),
        (nested, bad + "column 'alpha' holds list<"),
        (binary, bad + "column 'alpha' is not UTF-8 text."),
    ):
        pq.write_table(content, "d.parquet")
        told = fail(*command(data="d.parquet"))
        assert told.startswith(f"DATA: {message}")
    pairs = pa.DictionaryArray.from_arrays(np.zeros(60, int), pa.array([{"a": 1}]))
    feather.write_feather(table.set_column(0, "alpha", pairs), "d.feather")
    told = fail(*command(data="d.feather"))
    assert told.startswith("DATA: cannot read 'd.feather': Unsupported cast from ")


def blank(name, rows, value=np.nan):
    return lambda frame: {name: frame[name].where(frame.index >= rows, value)}


MEND = "fill them in or drop their rows."
FRACTIONS = "--target: column 'y' holds fractions or numbers of at least 2**63, not "
FRACTIONS += "classes; pass --task regression."


@pytest.mark.parametrize(("columns", "arguments", "message"), [
    (blank("y", 1), fit(), f"--target: column 'y' has 1 missing value: {MEND}"),
    (blank("week", 3), [*fit(), *ERA],
     f"--era: column 'week' has 3 missing values: {MEND}"),
    (blank("week", 1, np.inf), [*fit(), *ERA],
     "--era: column 'week' needs finite labels, and there are infinite ones, such as "),
    (blank("week", 1, -np.inf), [*fit(), "--era", "sector", "--groups", "week"],
     "--groups: column 'week' needs finite labels, and there are infinite ones, "),
    (blank("y", 1, np.inf), fit(), "Cannot fit: --target contains infinity "),
    ({}, [*fit(), "--task", "classification"], FRACTIONS),
    ({"y": 1e25}, [*fit(), "--task", "classification"], FRACTIONS),
    ({"y": "up"}, fit(), "--target: column 'y' has only one class, 'up'."),
    ({"y": [f"n{n % 21}" for n in range(60)]}, fit(),
     "--target: column 'y' is text with 21 distinct values; pass --task "
     "classification if they are classes."),
    ({"y": pd.date_range("2024", periods=60)}, [*fit(), "--task", "regression"],
     "--target: column 'y' is not numeric; correct such values, or "),
    ({"sector": [f"n° {n}" for n in range(60)]}, fit(features=[]),
     "DATA: column 'sector' is not numeric ('n° 0' in row 1); declare it with "
     "--categorical, or leave it out with --exclude."),
    ({"sector": np.resize(["2024-01-01", "2024-01-02 08:00"], 60)}, fit(features=[]),
     "DATA: column 'sector' is not numeric ('2024-01-01' in row 1); declare "),
    ({"beta": pd.date_range("2024", periods=60)}, fit(),
     "DATA: column 'beta' is not numeric; declare "),
    ({"prediction": 1}, [*predict(), "--id", "prediction"],
     "--id: 'prediction' is also a column of the predictions."),
    (blank("week", 1, 99),
     [*fit(), *ERA, "--split-criterion", "era", *params(min_era_coverage=1.0)],
     "Cannot fit: --era: a split has to leave min_samples_per_era=1 rows of every "
     "era on both sides (min_era_coverage=1.0), but 1 of 5 eras have fewer than 2 "
     "rows; the smallest, era 99, has 1. "),
])  # fmt: skip
def test_values_that_cannot_be_used(small, columns, arguments, message, tmp_path):
    changed = columns(small) if callable(columns) else columns
    # Parquet keeps infinite values and types, CSV does not.
    arguments = ["d.parquet" if x == "d.csv" else x for x in arguments]
    write(small.assign(**changed), "d.parquet")
    told = fail(*arguments)
    assert told == message if message.endswith(".") else told.startswith(message)
    assert not (tmp_path / "new.era").exists()


def test_predict_lacking_features(small, tmp_path):
    write(small[["beta", "y"]].rename(columns={"beta": "Beta"}), "d.csv")
    told = "DATA: the model was fitted to 'alpha', 'beta', which 'd.csv' lacks."
    assert fail(*predict()).startswith(told)
    write(small.rename(columns={"beta": "Beta"}), "d.csv")
    told = "DATA: the model was fitted to 'beta', which 'd.csv' lacks. Did you mean"
    assert fail(*predict()).startswith(told)
    estimator = HistGradientBoostingRegressor(max_iter=1)
    estimator.fit(small[["alpha", "beta"]].to_numpy(), small["y"])
    save_model(estimator, "m.era")
    assert fail(*predict()) == "MODEL: m.era was fitted without column names."
    content = (tmp_path / "m.era").read_bytes()
    (tmp_path / "m.era").write_bytes(content[: len(content) // 2])
    assert fail(*predict()) == "MODEL: m.era is not a model file of sklearn_era."


@pytest.mark.parametrize("transformer", [EraStandardScaler(), EraTargetEncoder()])
@pytest.mark.parametrize("options", [[], ["--scoring", "r2"]])
def test_a_transformer_predicts_nothing(small, transformer, options):
    X, y = small[["alpha", "beta"]], small["y"]
    save_model(transformer.fit(X, y, eras=small["week"]), "m.era", era="week")
    name = type(transformer).__name__
    told = fail(*predict(), *options)
    text = f"{name} is a transformer and predicts nothing."
    assert told == f"MODEL: m.era has no model: {text}"
    assert run("info", "m.era").startswith(f"{name}\n")


def test_scores_of_predictions_need_the_target(small):
    run(*fit(), "--no-score", *params(max_iter=1))
    scored = [*predict(model="new.era"), "--scoring", "r2"]
    write(small.drop(columns="y"), "d.csv")
    assert fail(*scored).startswith("--scoring: there is no column 'y'; use 'alpha', ")
    write(small.assign(**blank("y", 2)(small)), "d.csv")
    assert fail(*scored) == f"--scoring: column 'y' has 2 missing values: {MEND}"
    high = small["y"].astype(str).mask(small.index == 7, "high")
    write(small.assign(y=high), "d.csv")
    number = "column 'y' is not numeric ('high' in row 8)"
    assert fail(*scored) == f"DATA: {number}; the model was fitted to numbers."
    save_model(load_model("new.era")[0], "m.era")
    told = fail(*predict(), "--scoring", "r2")
    assert told == "--scoring: MODEL does not tell the name of its target."


def test_a_score_that_predictions_cannot_have_is_a_warning(small, tmp_path):
    run(*fit(), "--no-score", *params(max_iter=1))
    name = "neg_mean_poisson_deviance"  # of positive predictions
    told = fail(*predict(model="new.era"), "--scoring", name)
    assert told.startswith(f"--scoring: '{name}' cannot score this target: Mean Tweed")
    write(small.assign(y=1.0), "d.csv")
    result = invoke(*predict(model="new.era"), "--scoring", name)
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: cannot score: Mean Tweedie deviance")
    assert (tmp_path / "p.csv").exists()


@pytest.mark.parametrize("classes", [[0, 1], [False, True]])
def test_a_text_is_no_class_among_numbers_and_flags(small, classes):
    write(small.assign(y=np.resize(classes, 60)), "d.csv")
    run(*fit(), "--no-score", *params(max_iter=1))
    write(small.assign(y=np.resize([*map(str, classes), "x"], 60)), "d.csv")
    told = fail(*predict(model="new.era"), "--scoring", "accuracy")
    text = "column 'y' holds 'x', and the model's classes are numbers or flags"
    assert told == f"--scoring: {text}: correct it."


@pytest.mark.parametrize("path", ["e.csv", "e.parquet"])
def test_a_value_that_is_no_number(small, path):
    beta = small["beta"].astype(str).where(small.index != 7, "high")
    write(small.assign(beta=beta.where(small.index != 2)), path)
    subject = "column 'beta' is not numeric ('high' in row 8)"
    told = f"DATA: {subject}; the model was fitted to numbers."
    assert fail(*predict(data=path)) == told
    assert fail(*fit(data=path)).startswith(f"DATA: {subject}; declare it with ")
    # As a target, it is refused rather than learnt as a class.
    write(small.assign(beta=beta), path)
    target = fit(data=path, target="beta", features=["alpha"])
    write(small.assign(beta=beta.where(small.index != 3, "NA")), path)
    for task in ("auto", "regression"):
        told = fail(*target, "--task", task)
        hint = "correct such values, or pass --task classification."
        assert told == f"--target: {subject}; {hint}"
    run(*target, "--task", "classification", *params(max_iter=1), "--no-score")


@pytest.mark.parametrize(("separator", "given"), [(";", ","), ("|", "\\t"), (",", ";")])
def test_wrong_separator(small, separator, given):
    small.to_csv("d.csv", sep=separator, index=False)
    hint = f"the only one is {separator.join(small)!r}: pass its separator with --sep."
    told = fail(*fit(), "--sep", given)
    assert told == f"--target: there is no column 'y'; {hint}"
    told = fail(*predict(), "--sep", given)
    assert told == f"DATA: there is no column 'alpha'; {hint}"


def test_wrong_decimal_mark(small):
    small.round(3).to_csv("d.csv", sep=";", decimal=",", index=False)
    hint = "; pass its --sep, and --decimal ',' if numbers have commas."
    for command in (fit, predict):
        assert fail(*command()).endswith(hint)
        told = fail(*command(), "--sep", ";")
        assert told.startswith("DATA: column 'alpha' is not numeric ('1,764' in row 1)")
        assert "; if its comma is a decimal mark, pass --decimal ','; " in told
        run(*command(), "--sep", ";", "--decimal", ",")
    # Neither a hint that has been followed, nor one for another kind of file.
    text = small["alpha"].astype(str).str.replace(".", ",")
    small["alpha"] = text.mask(small.index == 3, "x")
    small.to_csv("d.csv", sep=";", decimal=",", index=False)
    told = "DATA: column 'alpha' is not numeric ('x' in row 4); declare"
    assert fail(*fit(), "--sep", ";", "--decimal", ",").startswith(told)
    told = fail(*fit(data=write(small, "d.parquet")))
    assert "('1,764052345967664' in row 1); declare" in told
    for value in ("", ";"):
        assert fail(*fit(), "--decimal", value).startswith("Invalid value for '--deci")


NOTATIONS = [
    "1,5 2,5", "1,234.5 2,000.0", "1.234,5 2", "1\N{NBSP}234 2", "1'234 2", "$1.5 $2",
    "1.5€ 2€", "US$1 US$2", "USD\N{NBSP}5 7", "12\N{NBSP}% 15%", "(1.5) 2.5",
    "1.5- 2.5", "\u22121.5 2.5", "12% none 3%", "0 1 ?", "0 1 unknown",
    "2024-01-05 2024-02-05", "12:30 13:30", "1,5E3 2,5E3",
]  # fmt: skip
NAMES = [
    "1a 1b 2a", "yes no", "18-25 26-35", "<5 >5", "10+ 5", "v1.0 v2.0", "1.2.3 1.2.4",
    "None some", "A B 10%", "1 2 3+", "BMW\N{NBSP}3 BMW\N{NBSP}5", "1/2 3/4", "- +",
]  # fmt: skip


@pytest.mark.parametrize("values", NOTATIONS)
@pytest.mark.parametrize("path", ["e.csv", "e.parquet"])
def test_a_number_in_another_notation_is_no_class(small, path, values):
    write(small.assign(y=np.resize(np.array(values.split(" "), object), 60)), path)
    told = fail(*fit(data=path))
    assert told.startswith("--target: column 'y' is not numeric")
    assert told.endswith("; correct such values, or pass --task classification.")
    assert ("--decimal" in told) == (path == "e.csv" and values[:3] == "1,5")


@pytest.mark.parametrize("values", NAMES)
def test_names_with_digits_are_classes(small, values):
    write(small.assign(y=np.resize(np.array(values.split(" "), object), 60)), "d.csv")
    run(*fit(), "--no-score", *params(max_iter=1))
    assert load_model("new.era")[0].classes_.tolist() == sorted(values.split(" "))


@pytest.mark.parametrize(("of", "message"), [("y", "--target"), ("week", "--era")])
def test_labels_that_differ_in_spaces_alone_are_refused(small, of, message):
    labels = np.resize(["yes", "no", "yes "], 60)
    told = fail(*fit(data=write(small.assign(**{of: labels}), "d.csv")), *ERA)
    ways = "spells 'yes' in 2 ways that differ in spaces; correct them."
    assert told == f"{message}: column '{of}' {ways}"


@pytest.mark.parametrize(("classes", "name", "message"), [
    ("a b", "f1", "pos_label=1 is not a valid label: It should be one of ['a' 'b']"),
    ("a b c", "roc_auc", "multi_class must be in ('ovo', 'ovr')"),
    ("a b", "r2", "could not convert string to float"),
])  # fmt: skip
def test_a_score_that_a_target_cannot_have_is_refused(small, classes, name, message):
    write(small.assign(y=np.resize(classes.split(), 60)), "d.csv")
    told = f"--scoring: '{name}' cannot score this target: {message}"
    assert fail(*fit(), "--scoring", name).startswith(told)


EVIL, SHOWN = "b\x1b]0;owned\x07\x1b[2J\u202e", "b?]0;owned??[2J?"


def test_names_in_files_do_not_command_the_terminal(small, capsys):
    named = small.rename(columns={"sector": EVIL})
    named.assign(**{EVIL: [f"n° {n}" for n in small.index]}).to_csv("d.csv")
    told = fail(*fit(features=[]))
    assert told.startswith(f"DATA: column '{SHOWN}' is not numeric ('n° 0' in row ")
    small.rename(columns={"y": EVIL}).to_csv("d.csv", index=False)
    assert f"of '{SHOWN}' to 60 rows" in run(*fit(target=EVIL))
    print_table("Scores", ["Model"], [[EVIL]])
    assert SHOWN in capsys.readouterr().out
