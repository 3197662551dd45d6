"""What goes wrong with a command's input, in one sentence for the person who typed."""

import difflib
import math
import re
from collections.abc import Collection, Sequence
from typing import Any

import typer

# scikit-learn's sentence about a bad parameter.
_PARAMETER = re.compile(r"The '(\w+)' parameter of \w+ (must be .*)\. Got (.*)")

# A parameter's name at the beginning of a sentence of ours.
_OWN_PARAMETER = re.compile(r"(\w+)(?=: |=)")


class InputError(Exception):
    """Bad input. The message is a sentence that names the argument or column."""


def one_sentence(message: BaseException | str) -> str:
    """Bring another library's message, often of many lines, onto one line."""
    return " ".join(str(message).split()) or type(message).__name__


def list_names(names: Sequence[str], *, most: int = 5) -> str:
    """Enumerate quoted names, the first few of many.

    Parameters
    ----------
    names : sequence of str
        The names, one at least.

    most : int, default=5
        How many to spell out.

    Returns
    -------
    text : str
        ``"'a', 'b' and 3 more"`` for one.
    """
    quoted = [repr(str(name)) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(quoted)} and {len(names) - most:,} more"
    if len(quoted) > 1:
        return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
    return quoted[0]


def suggest_separator(columns: Sequence[str]) -> str:
    """Say that a table's only column looks like several with another separator.

    Returns
    -------
    text : str
        A clause to end a sentence with, empty if nothing points to that.
    """
    if len(columns) != 1:
        return ""
    for separator, shown in ((";", "';'"), ("\t", "a tab"), ("|", "'|'")):
        if separator in columns[0]:
            return (
                f"; the file has a single column, so is its separator {shown}, not a "
                "comma?"
            )
    return ""


def suggest(name: str, known: Collection[str]) -> str:
    """Say which known names are much like an unknown one.

    Returns
    -------
    text : str
        A clause to end a sentence with, empty if nothing is alike.
    """
    # Compared in lower case: the wrong case is the commonest slip of all.
    originals = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), originals, n=3)
    if not close:
        return ""
    return f"; did you mean {' or '.join(repr(originals[match]) for match in close)}?"


def not_nan(value: float | None) -> float | None:
    """Refuse what parses as a float, and lies in no range."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number.")
    return value


def check_parameters(estimator: Any) -> None:
    """Check an estimator's parameters as its fit would, before there are data.

    Raises
    ------
    InputError
        Naming the option of a parameter's name, if one has a bad value.
    """
    from sklearn_era.ensemble._criteria.parameters import CriterionPlan

    try:
        estimator._validate_params()
        CriterionPlan.of(estimator)
    except ValueError as error:
        message = one_sentence(error)
        if match := _PARAMETER.fullmatch(message):
            name, demand, value = match.groups()
            message = f"--{name.replace('_', '-')} {demand}, got {value}"
        else:
            message = _OWN_PARAMETER.sub(_as_option, message, count=1)
        raise InputError(message) from error


def _as_option(match: re.Match[str]) -> str:
    return f"--{match[1].replace('_', '-')}"
