"""Define exceptions with exit codes. Messages state a problem and its remedy."""

import warnings
from collections.abc import Callable, Collection
from difflib import get_close_matches


class NumeraiError(Exception):
    """Base class of this module's exceptions, with the program's `exit_code`."""

    exit_code = 1

    def __init_subclass__(cls, exit_code: int | None = None) -> None:
        cls.exit_code = exit_code or cls.exit_code


class ConfigError(NumeraiError, exit_code=2):
    """The configuration, an argument or the environment is wrong."""


class DataError(NumeraiError, exit_code=3):
    """A file is missing, damaged, or has other contents than expected."""


class NoModelError(DataError):
    """The model has not been trained yet."""


class BusyError(DataError):
    """Another run holds the lock file that this run needs."""


class ApiError(NumeraiError, exit_code=4):
    """Numerai's API refused a call, or could not be reached."""


class SubmissionError(NumeraiError, exit_code=5):
    """Predictions break a rule for submissions. Nothing was sent."""


class UploadError(NumeraiError, exit_code=6):
    """An upload was refused or could not be confirmed."""


class ExportError(NumeraiError, exit_code=7):
    """A model cannot be exported, or its export failed the check."""


def warn(text: str) -> None:
    """Issue a UserWarning, which the command line prints on one line."""
    warnings.warn(text, UserWarning, stacklevel=3)


def alternatives(
    name: str, known: Collection[str], spell: Callable[[list[str]], str] = ", ".join
) -> str:
    """Return a hint on an unknown `name`: similar names, or else all known names."""
    # Compared in lower case: wrong case is the commonest slip.
    lower = {one.lower(): one for one in known}
    close = [repr(lower[one]) for one in get_close_matches(name.lower(), lower)]
    return f"did you mean {' or '.join(close)}?" if close else f"use {spell([*known])}."
