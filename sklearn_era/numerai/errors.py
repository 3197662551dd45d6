"""What can go wrong between a download and a submission.

Each message is a sentence or two that say what happened and what to do. The command
line prints it, and exits with the error's code.
"""


class NumeraiError(Exception):
    """The base of the errors here.

    Attributes
    ----------
    exit_code : int
        What the command line program exits with.
    """

    exit_code = 1


class ConfigError(NumeraiError):
    """The configuration, an argument or the environment has to be changed."""

    exit_code = 2


class CheckpointError(ConfigError):
    """A checkpoint is of another training than the one that is to go on from it."""


class DataError(NumeraiError):
    """A file is missing, damaged, or does not hold what it should."""

    exit_code = 3


class NothingToValidateError(DataError):
    """No era with known targets follows those that a model was trained on."""


class ApiError(NumeraiError):
    """Numerai's API refused a call, or could not be reached."""

    exit_code = 4


class SubmissionError(NumeraiError):
    """Predictions break a rule for submissions. Nothing was sent."""

    exit_code = 5


class UploadError(NumeraiError):
    """An upload was refused or could not be confirmed."""

    exit_code = 6


class PortableModelError(NumeraiError):
    """A model cannot be exported, or its export failed the check."""

    exit_code = 7


__all__ = [
    "ApiError",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "NothingToValidateError",
    "NumeraiError",
    "PortableModelError",
    "SubmissionError",
    "UploadError",
]
