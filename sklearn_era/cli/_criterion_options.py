"""The options of ``sklearn-era fit`` that choose how eras are compared."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer

from sklearn_era._criterion_table import CRITERIA, parameters_read, unread_era_effects
from sklearn_era.cli._errors import InputError, list_names, not_nan

_PANEL = "Comparing eras"

_NAMES = list(CRITERIA)
_BLEND = "era=0.5,vrex=0.5"

_VALIDATION_ERAS: dict[str, str | None] = {
    "last": "last",
    "random": "random",
    "rows": None,
}


def parse_criterion(text: str) -> str | dict[str, float]:
    """Parse the name of a criterion, or the names and weights of a blend.

    Parameters
    ----------
    text : str
        ``"era"`` for one, or ``"era=0.5,directional=0.5"``.

    Returns
    -------
    split_criterion : str or dict of str to float
        What the estimators take for it. Whether the criteria can be blended, and by
        these weights, is theirs to say.

    Raises
    ------
    typer.BadParameter
        If a name is no criterion's, or a part of a blend has no weight.
    """
    if "=" not in text and "," not in text:
        return _check_name(text.strip())
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, equals, weight = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise typer.BadParameter(
                f"'{part.strip()}' in '{text}' has no weight; a blend gives each "
                f"criterion one, as in {_BLEND}."
            )
        if _check_name(name) in weights:
            raise typer.BadParameter(f"'{text}' has two weights for '{name}'.")
        try:
            weights[name] = float(weight)
        except ValueError:
            raise typer.BadParameter(
                f"the weight of '{name}' in '{text}' is '{weight}', which is not a "
                "number."
            ) from None
    return weights


def _parse_coverage(text: str) -> float | str:
    """A number, or "auto"."""
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is neither a number nor 'auto'.") from None


def _check_name(name: str) -> str:
    if name not in _NAMES:
        raise typer.BadParameter(
            f"'{name}' is no criterion; use one of "
            f"{list_names(_NAMES, most=len(_NAMES))}, or a blend such as {_BLEND}."
        )
    return name


def spell_criterion(split_criterion: str | Mapping[str, float]) -> str:
    """Spell a criterion as `parse_criterion` takes it."""
    if isinstance(split_criterion, str):
        return split_criterion
    return ",".join(f"{name}={weight:g}" for name, weight in split_criterion.items())


def make_era_parameters(
    split_criterion: str | Mapping[str, float],
    *,
    era: str | None,
    early_stopping: str,
    min_impurity_decrease: float | None,
    validation_eras: str | None,
    era_effects: Mapping[str, Any],
    **criterion_options: Any,
) -> dict[str, Any]:
    """Make the estimators' era parameters of the options that were given.

    Parameters
    ----------
    split_criterion : str or mapping of str to float
        What `parse_criterion` made of the option.

    era : str or None
        The column of eras.

    early_stopping : {'auto', 'true', 'false'}
        The option.

    min_impurity_decrease : float or None
        The option, which every criterion makes use of.

    validation_eras : {'last', 'random', 'rows'} or None
        The option.

    era_effects : mapping of str to object
        What eras weigh, shrink and add, by name; None if an option was not given.

    **criterion_options : float, int, bool, str or None
        The options that only some criteria make use of. Like the two before, one that
        was not given is None.

    Returns
    -------
    parameters : dict of str to object
        By name; the estimator has a default for those that are not among them.

    Raises
    ------
    InputError
        If the criterion lacks eras, or an option has no effect.
    """
    criterion = f"--split-criterion {spell_criterion(split_criterion)}"
    compares_eras = split_criterion != "gain"
    if not isinstance(split_criterion, str):
        compares_eras = any(w for name, w in split_criterion.items() if name != "gain")
    if compares_eras and era is None:
        raise InputError(
            f"{criterion} compares eras: name the column that holds them with --era."
        )
    given = {
        name: value for name, value in criterion_options.items() if value is not None
    }
    penalty = given.get("invariance_penalty")
    read = parameters_read(split_criterion, penalty)
    if read == {"invariance_penalty"}:
        criterion += f" --invariance-penalty {penalty:g}"
    for name in given:
        if name not in read:
            raise InputError(
                f"{_option(name)} has no effect with {criterion}: leave one "
                "of them out."
            )
    parameters: dict[str, Any] = {"split_criterion": split_criterion, **given}
    if min_impurity_decrease is not None:
        parameters["min_impurity_decrease"] = min_impurity_decrease
    parameters |= _check_era_effects(era_effects, era)
    if validation_eras is not None:
        if era is None:
            raise InputError(
                "--validation-eras has no effect without eras: name the column that "
                "holds them with --era, or leave it out."
            )
        if early_stopping == "false":
            raise InputError(
                "--validation-eras has no effect with --early-stopping false: leave "
                "one of them out."
            )
        parameters["validation_eras"] = _VALIDATION_ERAS[validation_eras]
    return parameters


def _check_era_effects(options: Mapping[str, Any], era: str | None) -> dict[str, Any]:
    """Those that were given; InputError for one that lacks eras or has no effect."""
    given = {name: value for name, value in options.items() if value is not None}
    for reader, names in unread_era_effects(**given).items():
        for name in given.keys() & names:
            where = f"without {_option(reader)}"
            if reader in given:
                where = f"with {_option(reader)} {given[reader]}"
            raise InputError(
                f"{_option(name)} has no effect {where}: see what they do in "
                "'sklearn-era fit --help'."
            )
    for name in given:
        if era is None:
            raise InputError(
                f"{_option(name)} has no effect without eras: name the column that "
                "holds them with --era, or leave it out."
            )
    return given


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def parse_half_life(text: str) -> float | int:
    """Parse a number of eras, which is whole, or a share of them."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise typer.BadParameter(
            f"'{text}' is neither a number of eras, such as 4, nor a share of them, "
            "such as 0.25."
        ) from None


SplitCriterionOption = Annotated[
    Any,
    typer.Option(
        rich_help_panel=_PANEL,
        parser=parse_criterion,
        metavar="NAME",
        help=f"What splits are ranked by: {', '.join(_NAMES)}; or a blend "
        f"of several, such as {_BLEND}. All but gain need --era.",
    ),
]

BoltzmannAlphaOption = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_PANEL,
        callback=not_nan,
        help="How era and directional average over eras, from -inf (the worst era) "
        "over 0 (the mean, and the default) to inf (the best).",
    ),
]

MinDirectionAgreementOption = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_PANEL,
        min=0,
        max=1,
        callback=not_nan,
        help="The directional agreement that directional demands of a split, from 0 "
        "(the default) to 1.",
    ),
]

MinSamplesPerEraOption = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=_PANEL,
        min=1,
        help="Fewest rows of an era on each side of a split that covers it. 1 by "
        "default; not for gain.",
    ),
]

MinEraCoverageOption = Annotated[
    Any,
    typer.Option(
        rich_help_panel=_PANEL,
        parser=_parse_coverage,
        metavar="SHARE",
        help="Share of the eras that a split has to cover: 1 in the papers; 'auto', "
        "the default, is a tenth, with half of the largest gain. Not for gain.",
    ),
]

MinGainShareOption = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_PANEL,
        help="Share of a node's largest gain that a split has to have. 0.5 by default "
        "with the coverage 'auto', else 0; not for gain.",
    ),
]

NormalizeEraGainOption = Annotated[
    # Not False if it is not given, as for the other options.
    bool | None,
    typer.Option(
        "--normalize-era-gain",
        rich_help_panel=_PANEL,
        help="Divide an era's gain by its size and by the variance at the tree's root; "
        "for era, directional, vrex and blends.",
    ),
]

PeriodAggregationOption = Annotated[
    Literal["max", "mean"] | None,
    typer.Option(
        rich_help_panel=_PANEL,
        help="Whether time_robust goes by the worst era (max, the default) or by the "
        "mean.",
    ),
]

InvariancePenaltyOption = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_PANEL,
        min=0,
        callback=not_nan,
        help="How much differences between eras cost, for invariant and vrex. 1 by "
        "default.",
    ),
]

InvarianceStatisticOption = Annotated[
    Literal["effect", "changing_rate", "ratio"] | None,
    typer.Option(
        rich_help_panel=_PANEL,
        help="What invariant compares between eras: effect (the default), "
        "changing_rate or, for targets of 0 and 1, ratio.",
    ),
]

MinImpurityDecreaseOption = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_PANEL,
        min=0,
        callback=not_nan,
        help="Least gain of a split by unit of hessian in training, which with a "
        "squared error is a row; for time_robust, least decrease of impurity within "
        "eras. 0 by default.",
    ),
]

ValidationErasOption = Annotated[
    Literal["last", "random", "rows"] | None,
    typer.Option(
        rich_help_panel=_PANEL,
        help="What early stopping holds out: the last eras (the default), random eras, "
        "or rows at random across eras.",
    ),
]

EraWeightingOption = Annotated[
    Literal["rows", "equal", "recency", "group_dro"] | None,
    typer.Option(
        rich_help_panel=_PANEL,
        help="What an era weighs: what its rows do (rows, the default), as much as any "
        "other (equal), less the older it is (recency), or more the more it loses "
        "(group_dro).",
    ),
]

EraHalfLifeOption = Annotated[
    Any,
    typer.Option(
        rich_help_panel=_PANEL,
        parser=parse_half_life,
        metavar="INT|FLOAT",
        help="With recency, the age at which an era weighs half as much: a number of "
        "eras, or a share of them. 0.25 by default.",
    ),
]

GroupDroStepSizeOption = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_PANEL,
        min=0,
        callback=not_nan,
        help="With group_dro, how fast weights follow losses: step size by unit of "
        "loss. 0.1 by default.",
    ),
]

LeafShrinkageOption = Annotated[
    Literal["eras"] | None,
    typer.Option(
        rich_help_panel=_PANEL,
        help="Shrink the values of leaves by how much they differ between eras.",
    ),
]

EraEffectsOption = Annotated[
    Literal["intercept"] | None,
    typer.Option(
        rich_help_panel=_PANEL,
        help="Fit an intercept of each era, and predict by that of the next.",
    ),
]

EraForecastOption = Annotated[
    Literal["last", "mean", "exponential"] | None,
    typer.Option(
        rich_help_panel=_PANEL,
        help="What the intercept of the next era is taken for: the mean of the last "
        "eras' (last, the default), of all, or one with weights that halve.",
    ),
]

NForecastErasOption = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=_PANEL,
        min=1,
        help="How many eras last takes, or after how many exponential halves. 3 by "
        "default.",
    ),
]
