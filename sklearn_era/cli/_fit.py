"""``sklearn-era fit``: fit an estimator on the rows of a table."""

import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from sklearn_era.cli._criterion_options import (
    BoltzmannAlphaOption,
    EraEffectsOption,
    EraForecastOption,
    EraHalfLifeOption,
    EraWeightingOption,
    GroupDroStepSizeOption,
    InvariancePenaltyOption,
    InvarianceStatisticOption,
    LeafShrinkageOption,
    MinDirectionAgreementOption,
    MinEraCoverageOption,
    MinGainShareOption,
    MinImpurityDecreaseOption,
    MinSamplesPerEraOption,
    NForecastErasOption,
    NormalizeEraGainOption,
    PeriodAggregationOption,
    SplitCriterionOption,
    ValidationErasOption,
    make_era_parameters,
    spell_criterion,
)
from sklearn_era.cli._errors import (
    InputError,
    check_parameters,
    list_names,
    one_sentence,
)

_EARLY_STOPPING: dict[str, str | bool] = {"auto": "auto", "true": True, "false": False}


def _int_or_none(smallest: int) -> Callable[[str], int | None]:
    """Make a parser of whole numbers, none too small, and of 'none'."""

    def parse(text: str) -> int | None:
        if text.lower() == "none":
            return None
        try:
            value = int(text)
        except ValueError:
            raise typer.BadParameter(
                f"'{text}' is neither a whole number nor 'none'."
            ) from None
        if value < smallest:
            raise typer.BadParameter(f"{value} is not in the range x>={smallest}.")
        return value

    return parse


def fit(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="A table with a row for each sample: CSV or Parquet."
        ),
    ],
    target: Annotated[str, typer.Option(metavar="COL", help="The column to predict.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="MODEL", help="The model file to write, *.skops."
        ),
    ],
    era: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="The column of era labels: a week, a hospital, a region.",
        ),
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL,…",
            help="The features: names or patterns such as 'feature_*'; repeatable. "
            "By default all columns but the target and the era.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="COL,…", help="Columns that are no features; repeatable."),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL,…", help="Features whose values are categories; repeatable."
        ),
    ] = None,
    task: Annotated[
        Literal["auto", "regression", "classification"],
        typer.Option(
            help="What to learn. auto: classification if the target is text, boolean "
            "or has two distinct values, both whole, else regression."
        ),
    ] = "auto",
    split_criterion: SplitCriterionOption = "gain",
    boltzmann_alpha: BoltzmannAlphaOption = None,
    min_direction_agreement: MinDirectionAgreementOption = None,
    min_samples_per_era: MinSamplesPerEraOption = None,
    min_era_coverage: MinEraCoverageOption = None,
    min_gain_share: MinGainShareOption = None,
    normalize_era_gain: NormalizeEraGainOption = None,
    period_aggregation: PeriodAggregationOption = None,
    invariance_penalty: InvariancePenaltyOption = None,
    invariance_statistic: InvarianceStatisticOption = None,
    min_impurity_decrease: MinImpurityDecreaseOption = None,
    max_iter: Annotated[int, typer.Option(min=1, help="Boosting iterations.")] = 100,
    learning_rate: Annotated[float, typer.Option(help="Shrinkage.")] = 0.1,
    max_leaf_nodes: Annotated[
        Any,
        typer.Option(
            parser=_int_or_none(2), metavar="INT|none", help="Most leaves of a tree."
        ),
    ] = "31",
    max_depth: Annotated[
        Any,
        typer.Option(
            parser=_int_or_none(1), metavar="INT|none", help="Greatest depth of a tree."
        ),
    ] = "none",
    min_samples_leaf: Annotated[
        int, typer.Option(min=1, help="Fewest rows in a leaf.")
    ] = 20,
    max_bins: Annotated[
        int, typer.Option(min=2, max=255, help="Most bins of a feature.")
    ] = 255,
    l2_regularization: Annotated[
        float, typer.Option(min=0, help="L2 penalty on a leaf's value.")
    ] = 0.0,
    max_features: Annotated[
        float, typer.Option(help="Share of the features drawn at each split.")
    ] = 1.0,
    colsample_bytree: Annotated[
        float, typer.Option(help="Share of the features drawn for each tree.")
    ] = 1.0,
    fast_gain: Annotated[
        bool,
        typer.Option(
            "--fast-gain",
            help="Find the splits of --split-criterion gain several times as fast, as "
            "scikit-learn does but for the last digits.",
        ),
    ] = False,
    early_stopping: Annotated[
        Literal["auto", "true", "false"],
        typer.Option(
            help="Stop when the loss on held-out rows no longer falls. auto: with "
            "more than 10,000 rows."
        ),
    ] = "auto",
    validation_eras: ValidationErasOption = None,
    era_weighting: EraWeightingOption = None,
    era_half_life: EraHalfLifeOption = None,
    group_dro_step_size: GroupDroStepSizeOption = None,
    leaf_shrinkage: LeafShrinkageOption = None,
    era_effects: EraEffectsOption = None,
    era_forecast: EraForecastOption = None,
    n_forecast_eras: NForecastErasOption = None,
    random_state: Annotated[
        int | None,
        typer.Option(min=0, max=2**32 - 1, help="Seed, for reproducible models."),
    ] = None,
    verbose: Annotated[
        int, typer.Option(min=0, help="1 to sum the fit up, 2 to print each iteration.")
    ] = 0,
) -> None:
    """Fit a model on the rows of DATA, and write it to a model file."""
    era_parameters = make_era_parameters(
        split_criterion,
        era=era,
        boltzmann_alpha=boltzmann_alpha,
        min_direction_agreement=min_direction_agreement,
        min_samples_per_era=min_samples_per_era,
        min_era_coverage=min_era_coverage,
        min_gain_share=min_gain_share,
        normalize_era_gain=normalize_era_gain,
        period_aggregation=period_aggregation,
        invariance_penalty=invariance_penalty,
        invariance_statistic=invariance_statistic,
        min_impurity_decrease=min_impurity_decrease,
        early_stopping=early_stopping,
        validation_eras=validation_eras,
        era_effects={
            "era_weighting": era_weighting,
            "era_half_life": era_half_life,
            "group_dro_step_size": group_dro_step_size,
            "leaf_shrinkage": leaf_shrinkage,
            "era_effects": era_effects,
            "era_forecast": era_forecast,
            "n_forecast_eras": n_forecast_eras,
        },
    )

    from sklearn_era._optional import import_optional
    from sklearn_era.cli._columns import choose_features
    from sklearn_era.cli._frames import make_eras, make_features, make_target
    from sklearn_era.cli._tables import (
        check_output,
        check_table_input,
        column_names,
        read_columns,
    )
    from sklearn_era.ensemble import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )
    from sklearn_era.model_files import save_model

    parameters: dict[str, Any] = {
        "max_iter": max_iter,
        "learning_rate": learning_rate,
        "max_leaf_nodes": max_leaf_nodes,
        "max_depth": max_depth,
        "min_samples_leaf": min_samples_leaf,
        "max_bins": max_bins,
        "l2_regularization": l2_regularization,
        "max_features": max_features,
        "colsample_bytree": colsample_bytree,
        "fast_gain": fast_gain,
        "early_stopping": _EARLY_STOPPING[early_stopping],
        "random_state": random_state,
        "verbose": verbose,
        **era_parameters,
    }
    # Those that both tasks have in common have the same ranges in both.
    check_parameters(HistGradientBoostingRegressor(**parameters))
    # What the last step needs, before the work that leads there.
    import_optional("skops.io", extra="cli")
    check_table_input(data, "DATA")
    check_output(out, "--out", inputs=[data])
    chosen, declared = choose_features(
        column_names(data, "DATA"),
        target=target,
        era=era,
        features=features or [],
        exclude=exclude or [],
        categorical=categorical or [],
    )
    needed = [*chosen, target, *([] if era is None else [era])]
    labels = [name for name in (target, era) if name is not None]
    frame = read_columns(data, "DATA", needed, as_text=declared, labels=labels)
    # Where the file itself says that a column holds categories, that is declared too.
    declared += [
        name
        for name in chosen
        if frame[name].dtype.name == "category" and name not in declared
    ]
    X = make_features(
        frame,
        chosen,
        declared,
        remedy="declare categories with --categorical, or leave columns out with "
        "--exclude",
    )
    if empty := [name for name in chosen if X[name].isna().all()]:
        raise InputError(
            f"DATA: there is nothing to learn from in {list_names(empty)}, all values "
            "being missing; leave it out with --exclude."
        )
    y, learnt = make_target(frame[target], task)
    eras = None if era is None else make_eras(frame[era])
    del frame

    Estimator = (
        HistGradientBoostingClassifier
        if learnt == "classification"
        else HistGradientBoostingRegressor
    )
    estimator = Estimator(**parameters)
    rows, columns = X.shape
    subject = f"{rows:,} rows and {columns:,} features"
    if eras is not None:
        subject = (
            f"{rows:,} rows of {len(set(eras.tolist())):,} eras, {columns:,} features"
        )
    seconds = _fit_shown(estimator, X, y, eras, subject=subject)
    try:
        save_model(estimator, out, target=target, era=era)
    except OSError as error:
        raise InputError(
            f"--out: cannot write '{out}': {one_sentence(error)}."
        ) from error
    typer.echo(
        f"Learnt a {learnt} of '{target}' ({spell_criterion(split_criterion)}) from "
        f"{subject}: {estimator.n_iter_:,} iterations in {seconds:.1f} s."
    )
    typer.echo(f"Wrote {out} ({out.stat().st_size / 1e6:,.1f} MB).")


def _fit_shown(estimator: Any, X: Any, y: Any, eras: Any, *, subject: str) -> float:
    """Fit while showing on a terminal that it goes on; return the time in seconds.

    Raises
    ------
    InputError
        With what the estimator objects to.
    """
    console = Console(stderr=True)
    # The estimator's own lines would break into the status.
    status = (
        nullcontext() if estimator.verbose else console.status(f"Fitting {subject}")
    )
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            with status:
                estimator.fit(X, y, eras=eras)
        except ValueError as error:
            raise InputError(
                f"The model cannot be fitted: {one_sentence(error)}"
            ) from error
    for warning in caught:
        typer.echo(f"Warning: {one_sentence(str(warning.message))}", err=True)
    return time.perf_counter() - start
