"""What can go wrong between a download and a submission.

A message is a sentence or two: what happened, and what to do. The command line prints
it on one line, and exits with the code of its class.
"""

import difflib
from collections.abc import Collection, Sequence


class NumeraiError(Exception):
    """The base of the errors here; `exit_code` is what the program exits with."""

    exit_code = 1


class ConfigError(NumeraiError):
    """The configuration, an argument or the environment has to be changed."""

    exit_code = 2


class DataError(NumeraiError):
    """A file is missing, damaged, or does not hold what it should."""

    exit_code = 3


class NoModelError(DataError):
    """A model that is asked for has not been trained yet."""


class BusyError(DataError):
    """Another run has the lock."""


class ApiError(NumeraiError):
    """Numerai's API refused a call, or could not be reached."""

    exit_code = 4


class SubmissionError(NumeraiError):
    """Predictions break a rule for submissions. Nothing was sent."""

    exit_code = 5


class UploadError(NumeraiError):
    """An upload was refused or could not be confirmed."""

    exit_code = 6


class ExportError(NumeraiError):
    """A model cannot be exported, or its export failed the check."""

    exit_code = 7


def first_names(names: Sequence[str]) -> str:
    """The first five names, for a message."""
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def alternatives(name: str, known: Collection[str]) -> str:
    """What may be meant by a name that is not known, for the end of a message."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"use {', '.join(known)}."
