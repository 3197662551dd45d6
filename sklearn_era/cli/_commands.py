"""Define the program and its commands. Heavy imports wait until a command runs."""

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
import typer.core

from sklearn_era import __version__
from sklearn_era.cli import _ui
from sklearn_era.cli._demo import demo
from sklearn_era.cli._exit_codes import PlainErrors
from sklearn_era.cli._numerai import numerai
from sklearn_era.cli._ui import SEED, InputError, argument, check_known, count, option

_VERSION = typer.Option("--version", help="Print the version and exit.")
_Text = str | None
_Names = list[str] | None
_Mark = Annotated[Literal[",", "."] | None, option("CHAR", "Decimal mark, . or ,")]
_DATA = argument("DATA", "CSV, TSV, Parquet or Feather file.")
_MODEL_FILE = argument("MODEL", "Model file that fit wrote.")
_FEATURES = option("COL,…", "Features, by name or pattern ('price_*'); by default all.")
_TASK = option("TASK", "regression, classification or auto.")
_BLEND = option("NAME", "A criterion or a blend; all but gain need --era.")
_PARAM = option("NAME=VALUE", "Other parameter of the model: max_iter=300.")
_MODEL = option("NAME", "boosting; forest; or auto, an average of models.")
_BUDGET = option("SECONDS", "Time for a fit of auto; a score takes it --cv times.")
_ORDER = option("ORDER", "Whether eras are ordered, unordered or auto (by labels).")
_GROUPS = option("COL", "Groups, such as shops, beside --era; no feature.")
_HORIZON = option("SIZE", "How much later predicted rows are: eras, or 28D.")
_KNOWN = "The model is for --groups of DATA; by default for new ones."
_ID = option("COL,…", "Columns to copy.", "--id")
_CV = option("INT", "Models that score; by default 10 at most, of auto 3.", min=1)
_SCORING = option("NAME", "Score, as scikit-learn calls it, or numerai_corr.")
_SEP = option("CHAR", "DATA's separator, if not a comma.")
_ENCODING = option("NAME", "DATA's encoding, if not UTF-8.")
_N_JOBS = option("INT", "Most threads to use; by default all.")
_LINES = "Print a line per iteration, or per member of auto."
_VERBOSE = typer.Option("--verbose", "-v", help=_LINES)


app = typer.Typer(
    name="sklearn-era",
    cls=PlainErrors,
    no_args_is_help=True,
    # Plain help: nothing is cut off in a narrow terminal.
    rich_markup_mode=None,
    add_completion=False,
    # An unexpected exception is a bug, to be reported with its whole traceback.
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 success, 1 a package is missing, 2 bad input, 130 Ctrl-C.",
)


@app.callback(invoke_without_command=True)
def _program(version: Annotated[bool, _VERSION] = False) -> None:
    """Histogram gradient boosting with split criteria that compare eras."""
    if version:
        import sklearn

        typer.echo(f"sklearn-era {__version__} (scikit-learn {sklearn.__version__})")
        raise typer.Exit


@app.command()
def fit(
    data: Annotated[Path, _DATA],
    target: Annotated[str, option("COL", "Column to predict.")],
    out: Annotated[Path, option("FILE", "Model file, *.era.", "--out", "-o")],
    era: Annotated[_Text, option("COL", "Column of eras: weeks, regions.")] = None,
    groups: Annotated[_Text, _GROUPS] = None,
    known_groups: Annotated[bool, typer.Option("--known-groups", help=_KNOWN)] = False,
    horizon: Annotated[_Text, _HORIZON] = None,
    features: Annotated[_Names, _FEATURES] = None,
    exclude: Annotated[_Names, option("COL,…", "Columns to leave out.")] = None,
    categorical: Annotated[_Names, option("COL,…", "Features with categories.")] = None,
    task: Annotated[Literal["auto", "regression", "classification"], _TASK] = "auto",
    estimator: Annotated[Literal["boosting", "forest", "auto"], _MODEL] = "boosting",
    split_criterion: Annotated[str, _BLEND] = "gain",
    era_order: Annotated[Literal["auto", "ordered", "unordered"], _ORDER] = "auto",
    time_budget: Annotated[float | None, _BUDGET] = None,
    param: Annotated[_Names, _PARAM] = None,
    random_state: Annotated[int | None, SEED] = None,
    score: Annotated[bool, typer.Option(help="Score on held-out data.")] = True,
    cv: Annotated[int | None, _CV] = None,
    scoring: Annotated[_Text, _SCORING] = None,
    sep: Annotated[_Text, _SEP] = None,
    decimal: _Mark = None,
    encoding: Annotated[_Text, _ENCODING] = None,
    n_jobs: Annotated[int | None, _N_JOBS] = None,
    verbose: Annotated[bool, _VERBOSE] = False,
) -> None:
    """Fit a model to the rows of DATA and write it to a model file.

    The model is a regressor or a classifier of sklearn_era.ensemble: by default, a
    target of text, booleans, two whole numbers or codes such as 007 has classes.
    --param sets the model's parameters to numbers, text, true, false, none, lists or
    dicts; for --estimator auto, it sets the parameters of the plain model, a booster,
    which the members share. Set the criterion's as split_criterion__min_agreement=0.1.
    Repeat --param and options that take columns as needed. A blend of split criteria is
    a dict like '{"era": 1, "vrex": 0.5}'.

    The score is for the next era, or for eras --horizon ahead. Up to 10 more models (3
    for auto; --cv sets the number) share the last fifth of the eras: each is scored on
    its part of them, and fitted to eras that end --horizon before this part. Each takes
    about as long to fit as the model itself; --no-score leaves out these fits.
    With --groups, each is scored on another fifth of the groups, unseen in its fit;
    with --known-groups, on the groups in its fit. Without eras in order, one model is
    scored on a random fifth of the eras or rows. Scores are R² and the loss, or
    accuracy, log loss and ROC AUC, or the score of --scoring; sd is the standard
    deviation over eras.

    Categories are compared as text, and 1.0 is the category 1. Eras and classes stay
    text if numbers would change them, like 2024.10. Empty fields are missing values.
    """
    # Check the requirements of the last step first.
    _ui.check_packages("cli", "pandas", "pyarrow")
    from rich.console import Console

    from sklearn_era._era_axes import TIME_FIRST
    from sklearn_era.cli import _scores, _table_files
    from sklearn_era.cli._fit_input import check_times, make_estimator, read_training
    from sklearn_era.criteria._criteria import CRITERIA
    from sklearn_era.effects import Intercepts
    from sklearn_era.model_files import save_model

    _ui.check_output(out, (".era",), data)
    criterion = _ui.parse_value(split_criterion)
    if not isinstance(criterion, dict):
        subject = "--split-criterion: there is no criterion"
        check_known(str(criterion), CRITERIA, subject)
    needs_eras = {
        "--split-criterion": None if split_criterion == "gain" else split_criterion,
        "--estimator": "auto" if estimator == "auto" else None,
        "--groups": groups, "--horizon": horizon, "--cv": cv,
    }  # fmt: skip
    for name, given in (("--scoring", scoring), ("--cv", cv)):
        if given is not None and not score:
            raise InputError(f"{name}: '{given}' is of no use with --no-score.")
    for name, given in needs_eras.items():
        if era is None and given is not None:
            raise InputError(f"{name}: '{given}' needs --era.")
    if groups is not None and era_order != "auto":
        raise InputError(f"--era-order: '{era_order}' is for --era without --groups.")
    if known_groups and groups is None:
        raise InputError("--known-groups: it needs --groups.")
    if known_groups and estimator == "forest":
        text = f"a forest has no effects of '{groups}'"
        raise InputError(f"--known-groups: {text}: use --estimator auto or boosting.")
    if time_budget is not None and (estimator != "auto" or time_budget <= 0):
        text = "is for --estimator auto, and a positive number of seconds"
        raise InputError(f"--time-budget: {time_budget:g} {text}.")
    table = _table_files.TableFile(data, sep, encoding, decimal)
    X, y, is_classes, eras = read_training(
        table, target, era, groups, features, exclude, categorical, task
    )
    scorers = _scores.find_scorers(scoring, y, is_classes)
    options = {
        "n_jobs": n_jobs, "random_state": random_state, "split_criterion": criterion,
        "verbose": 2 * (verbose and estimator != "auto"),
        "era_order": era_order if groups is None else TIME_FIRST,
        "categorical_features": "from_dtype",
    }  # fmt: skip
    model = make_estimator(estimator, is_classes, param, options)
    question: dict[str, Any] = {"group": "known" if known_groups else "new"}
    question["horizon"] = 1 if horizon is None else _ui.parse_value(horizon)
    if groups or horizon is not None:
        steps = check_times(eras, [era, groups], era_order, question["horizon"])
        if known_groups and getattr(model, "era_effects", 0) is None:
            model.set_params(era_effects=Intercepts("auto", horizon=steps))
    if estimator == "auto":
        model.set_params(time_budget=time_budget, verbose=int(verbose), **question)

    # Quiet: the estimator's own lines would break the status.
    console = Console(stderr=True, quiet=verbose)
    start = time.perf_counter()
    with _ui.refused("Cannot fit: "), console.status("Fitting"):
        model.fit(X, y, eras=eras)
    seconds = time.perf_counter() - start
    if era is not None:  # for predictions in Python
        model._era_column = [era, groups] if groups else era
    asked: dict[str, Any] = {"target": target, "era": era, "groups": groups}
    if groups:
        asked["group"] = question["group"]
    if groups or horizon is not None:
        asked["horizon"] = question["horizon"]
    with _ui.writable(out):
        save_model(model, out, **asked)
    of_eras = ""
    if era is not None:
        times = eras if groups is None else eras.columns[0]
        of_eras = f" of {count(len(set(times.tolist())), 'era')}"
    _ui.echo(
        f"Fitted a {'classifier' if is_classes else 'regressor'} of '{target}' to "
        f"{count(len(y), 'row')}{of_eras} and {count(X.shape[1], 'feature')}: "
        f"{_ui.describe_fit(model)} in {seconds:.1f} s."
    )
    for line in _scores.describe_average(model, forecasts=not score):
        _ui.echo(line)
    _ui.echo(f"Wrote {out}.")
    lines = _scores.score_held_out(model, X, y, eras, scorers, **question, n_models=cv)
    with console.status("Scoring"):
        _ui.echo_scores(lines if score else ())


@app.command()
def predict(
    model: Annotated[Path, _MODEL_FILE],
    data: Annotated[Path, _DATA],
    out: Annotated[Path, option("FILE", "Table, in the same formats.", "--out", "-o")],
    id_columns: Annotated[_Names, _ID] = None,
    scoring: Annotated[_Text, _SCORING] = None,
    sep: Annotated[_Text, _SEP] = None,
    decimal: _Mark = None,
    encoding: Annotated[_Text, _ENCODING] = None,
) -> None:
    """Predict the rows of DATA and write a table of predictions.

    The table has the rows of DATA, in the same order, and a column 'prediction'. For a
    classifier, this column has the class, and there is a column 'probability_CLASS' for
    each class.
    Categories that the model has not seen count as missing, with a warning.

    Averages and models with intercepts read the column of eras, if DATA has it: rows of
    an era in the fit get this era's level, other rows the level forecast for their era.

    With --scoring, DATA must also have the target column of fit. Predictions are scored
    on it, also era by era if DATA has the column of eras.
    """
    _ui.check_packages("cli", "pandas", "pyarrow")
    import pandas as pd

    from sklearn_era._era_routing import warn_of_new_groups, with_eras
    from sklearn_era._tables.columns import list_columns
    from sklearn_era.cli import _categories, _scores, _table_files
    from sklearn_era.ensemble._parameters import did_you_mean

    _ui.check_output(out, _table_files.SUFFIXES, model, data)
    table = _table_files.TableFile(data, sep, encoding, decimal)
    estimator, metadata = _load(model)
    names = metadata.feature_names
    if not hasattr(estimator, "predict"):
        text = f"{metadata.estimator} is a transformer and predicts nothing"
        raise InputError(f"MODEL: {model} has no model: {text}.")
    if names is None:
        raise InputError(f"MODEL: {model} was fitted without column names.")
    known, used = set(table.columns), _table_files.era_columns_of(estimator, metadata)
    vars(estimator).pop("_era_column", None)  # which are read here
    needed = [*names, *(used if metadata.group == "known" else ())]
    if missing := [name for name in needed if name not in known]:
        if len(known) == 1:  # perhaps another separator
            table.find(missing[0], "DATA")
        text = f"the model was fitted to {list_columns(missing)}, which '{data}' lacks."
        raise InputError(f"DATA: {text}{did_you_mean(missing[0], table.columns)}")
    classes = list(getattr(estimator, "classes_", []))
    headings = ["prediction", *(f"probability_{label}" for label in classes)]
    kept = table.select(id_columns, "--id")
    for name in {*kept}.intersection(headings):
        raise InputError(f"--id: '{name}' is also a column of the predictions.")

    categorical = [str(name) for name in metadata.categorical_features]
    if lacks := [name for name in used if name not in known]:
        text = f"'{data}' lacks '{lacks[0]}'"
        if lacks == [None]:
            text = "the model does not tell the name of its column of eras"
        new = "new groups" if hasattr(estimator, "_pair") else "a new era"
        _ui.echo(f"Warning: DATA: {text}: all rows are taken for {new}.", err=True)
        used = []
    frame = table.read([*names, *used], categorical)
    _table_files.refuse_missing(frame, dict.fromkeys(used, "DATA"))
    copied = [table.copy(kept)] if kept else []
    remedy = "the model was fitted to numbers"
    X = _table_files.make_features(frame[names], categorical, remedy, table.decimal)
    if categorical:
        _categories.match_categories(X, estimator)
    eras: Any = None
    if used:
        eras = _table_files.eras_as_fitted(frame, used, table, estimator)
    if len(used) > 1:
        with _ui.refused("Cannot predict: "):
            warn_of_new_groups(estimator, eras, metadata.group)
    estimator = with_eras(estimator, eras)
    lines: Any = ()
    if scoring is not None:
        y, encoded = _table_files.read_truth(table, metadata, classes)
        scorers = _scores.find_scorers(scoring, y, bool(classes))
        lines = _scores.score_lines(estimator, X, y, encoded, scorers)
    with _ui.refused("Cannot predict: "):
        results = [estimator.predict(X)]
        if classes:
            # Boosters of one class have two columns.
            results += [*estimator.predict_proba(X).T[: len(classes)]]
    predictions = pd.DataFrame(dict(zip(headings, results, strict=True)))
    _table_files.write_table(pd.concat([*copied, predictions], axis=1), out)
    _ui.echo(f"Wrote {count(len(X), 'prediction')} to {out}.")
    _ui.echo_scores(lines)


@app.command()
def info(model: Annotated[Path, _MODEL_FILE]) -> None:
    """Describe the model in a file, for a model card.

    The command prints the columns, rows, classes and eras of the fit if the model keeps
    them, its parameters, an average's members and their weights, scores by era with a
    forecast for the next era, and the versions that wrote the file.
    """
    _ui.check_packages("cli", "pandas", "pyarrow")
    from sklearn_era.cli._info import describe_model

    for line in describe_model(*_load(model)):
        _ui.echo(line)


def _load(path: Path) -> Any:
    from sklearn_era.model_files import ModelFileError, load_model

    try:
        return load_model(path)
    except (OSError, ModelFileError) as error:
        raise InputError(f"MODEL: {error}") from error


app.command()(demo)
app.add_typer(numerai)
