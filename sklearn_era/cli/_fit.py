"""``sklearn-era fit``: fit an estimator on the rows of a table."""

import time
import warnings
from pathlib import Path
from typing import Annotated, Literal

import typer

from sklearn_era._criterion_table import CRITERIA
from sklearn_era._optional import import_optional
from sklearn_era.cli import _errors
from sklearn_era.cli._errors import InputError, check_known, count, option

_Names = list[str] | None
_Task = Literal["auto", "regression", "classification"]
_FEATURES = option("COL,…", "Features, by name or pattern ('price_*'); by default all.")
_TASK = option("TASK", "regression, classification or auto.")
_CRITERION = option(
    "NAME", f"{', '.join(CRITERIA)} or a blend; all but gain need --era."
)
_PARAM = option("NAME=VALUE", "Other parameter of the model: max_iter=300.")
_N_JOBS = option("INT", "Most threads to use; by default all.")
_VERBOSE = typer.Option("--verbose", "-v", help="Print a line per iteration.")


def fit(
    data: _errors.DataArgument,
    target: Annotated[str, option("COL", "Column to predict.")],
    out: Annotated[Path, option("FILE", "Model file, *.skops.", "--out", "-o")],
    era: Annotated[str | None, option("COL", "Column of eras: weeks, regions.")] = None,
    features: Annotated[_Names, _FEATURES] = None,
    exclude: Annotated[_Names, option("COL,…", "Columns to leave out.")] = None,
    categorical: Annotated[_Names, option("COL,…", "Features with categories.")] = None,
    task: Annotated[_Task, _TASK] = "auto",
    split_criterion: Annotated[str, _CRITERION] = "gain",
    param: Annotated[_Names, _PARAM] = None,
    random_state: _errors.SeedOption = None,
    score: Annotated[bool, typer.Option(help="Score on held-out data.")] = True,
    sep: _errors.SepOption = None,
    encoding: _errors.EncodingOption = None,
    n_jobs: Annotated[int | None, _N_JOBS] = None,
    verbose: Annotated[bool, _VERBOSE] = False,
) -> None:
    """Fit a model to the rows of DATA and write it to a model file.

    The model is a HistGradientBoostingRegressor or HistGradientBoostingClassifier of
    sklearn_era.ensemble; the latter by default for text, booleans and two whole
    numbers. --param sets its parameters to numbers, text, true, false, none, lists or
    dicts. Repeat it, or any option that takes columns, as needed. A blend of split
    criteria is a dict like '{"era": 1, "vrex": 0.5}'.

    The score comes from a second model, fitted without the last fifth of the eras, in
    the order of their labels, or without a random fifth of the rows if there are none.

    Categories are compared as text, and 1.0 is the category 1. Empty fields are missing
    values.
    """
    # What the last step needs, before the work that leads there.
    for package in ("pandas", "pyarrow", "skops"):
        import_optional(package, extra="cli")
    from rich.console import Console

    from sklearn_era.cli import _estimator, _tables
    from sklearn_era.model_files import save_model

    _errors.check_output(out, (".skops",), data)
    criterion = _estimator.parse_value(split_criterion)
    if not isinstance(criterion, dict):
        subject = "--split-criterion: there is no criterion"
        check_known(str(criterion), CRITERIA, subject)
    if criterion != "gain" and era is None:
        raise InputError(f"--split-criterion: '{split_criterion}' needs --era.")
    table = _tables.TableFile(data, sep, encoding)
    given = {"--target": target, "--era": era}
    labels = {table.find(n, x): x for x, n in given.items() if n is not None}
    if era == target:
        raise InputError(f"--era: '{era}' is the --target column.")
    asked = table.select(features, "--features")
    excluded = {*table.select(exclude, "--exclude")}
    for name in asked:
        if name in labels and name not in excluded:
            told = f"'{name}' is the {labels[name]} column"
            raise InputError(f"--features: {told}; leave it out with --exclude.")
    excluded |= {*labels}
    names = [name for name in asked or table.columns if name not in excluded]
    if not names:
        raise InputError("--features: no columns are left.")
    declared = table.select(categorical, "--categorical")
    for name in declared:
        if name not in names:
            raise InputError(f"--categorical: '{name}' is not one of the features.")
    declared += [name for name in table.categories if name in names]
    frame = table.read([*names, *labels], declared)
    for name, argument in labels.items():
        if n_missing := int(frame[name].isna().sum()):
            told = f"column '{name}' has {count(n_missing, 'missing value')}"
            raise InputError(f"{argument}: {told}: fill them in or drop their rows.")
    remedy = "declare it with --categorical, or leave it out with --exclude"
    X = _tables.make_features(frame[names], declared, remedy)
    y, is_classes = _tables.make_target(frame[target], task)
    eras = None if era is None else _tables.make_eras(frame[era])
    options = {
        "n_jobs": n_jobs, "random_state": random_state, "split_criterion": criterion,
        "verbose": 2 * verbose, "categorical_features": "from_dtype",
    }  # fmt: skip
    estimator = _estimator.make_estimator(is_classes, param, options)

    # The estimator's own lines would break into the status.
    console = Console(stderr=True, quiet=verbose)
    start = time.perf_counter()
    with _errors.warnings_printed():
        try:
            with console.status("Fitting"):
                estimator.fit(X, y, eras=eras)
        except ValueError as error:
            raise InputError(f"Cannot fit: {_errors.one_sentence(error)}") from error
        seconds = time.perf_counter() - start
        with _errors.writable(out):
            save_model(estimator, out, target=target, era=era)
        of_eras = "" if eras is None else f" of {count(len(set(eras.tolist())), 'era')}"
        typer.echo(
            f"Fitted a {'classifier' if is_classes else 'regressor'} of '{target}' to "
            f"{count(len(y), 'row')}{of_eras} and {count(len(names), 'feature')}: "
            f"{count(estimator.n_iter_, 'iteration')} in {seconds:.1f} s."
        )
        trees = [tree for trees in estimator._predictors for tree in trees]
        n_split = sum(tree.get_n_leaf_nodes() > 1 for tree in trees)
        if n_split < len(trees):
            typer.echo(f"{n_split:,} of {len(trees):,} trees have splits.")
        typer.echo(f"Wrote {out}.")
        lines = _estimator.score_held_out(estimator, X, y, eras)
        try:
            with console.status("Scoring"):
                for line in lines if score else ():
                    typer.echo(line)
        except ValueError as error:
            warnings.warn(f"cannot score: {error}", stacklevel=1)
