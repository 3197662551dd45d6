"""The options of ``sklearn-era fit`` that choose how eras are compared."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer

from sklearn_era._criterion_table import CRITERIA, parameters_read
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
                f"--{name.replace('_', '-')} has no effect with {criterion}: leave one "
                "of them out."
            )
    parameters: dict[str, Any] = {"split_criterion": split_criterion, **given}
    if min_impurity_decrease is not None:
        parameters["min_impurity_decrease"] = min_impurity_decrease
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
    float | None,
    typer.Option(
        rich_help_panel=_PANEL,
        help="Share of the eras that a split has to cover, 1 in the papers; not for gain.",
    ),
]

MinGainShareOption = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_PANEL,
        help="Share of a node's largest gain that a split has to have, 0 in the papers.",
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
