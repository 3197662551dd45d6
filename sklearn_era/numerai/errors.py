"""What can go wrong, told in a sentence or two: what happened, and what to do."""

import warnings
from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches


class NumeraiError(Exception):
    """The base of the errors here; `exit_code` is what the program exits with."""

    exit_code = 1

    def __init_subclass__(cls, exit_code: int | None = None) -> None:
        cls.exit_code = exit_code or cls.exit_code


class ConfigError(NumeraiError, exit_code=2):
    """The configuration, an argument or the environment has to be changed."""


class DataError(NumeraiError, exit_code=3):
    """A file is missing, damaged, or does not hold what it should."""


class NoModelError(DataError):
    """A model that is asked for has not been trained yet."""


class BusyError(DataError):
    """Another run has the lock."""


class ApiError(NumeraiError, exit_code=4):
    """Numerai's API refused a call, or could not be reached."""


class SubmissionError(NumeraiError, exit_code=5):
    """Predictions break a rule for submissions. Nothing was sent."""


class UploadError(NumeraiError, exit_code=6):
    """An upload was refused or could not be confirmed."""


class ExportError(NumeraiError, exit_code=7):
    """A model cannot be exported, or its export failed the check."""


def warn(text: str) -> None:
    """Warn of what is no error; the command line prints it on one line, too."""
    warnings.warn(text, UserWarning, stacklevel=3)


def first_names(names: Sequence[str]) -> str:
    """The first five names, for a message."""
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def alternatives(
    name: str, known: Collection[str], spell: Callable[[list[str]], str] = ", ".join
) -> str:
    """What may be meant by a name that is not known, for the end of a message."""
    # Compared in lower case: the wrong case is the commonest slip of all.
    lower = {one.lower(): one for one in known}
    close = [repr(lower[one]) for one in get_close_matches(name.lower(), lower)]
    return f"did you mean {' or '.join(close)}?" if close else f"use {spell([*known])}."
