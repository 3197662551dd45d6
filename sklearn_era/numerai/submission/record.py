"""The record of a submission: what was sent, from what, and how far it came."""

import json
import platform
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from sklearn_era.numerai.api.credentials import SITE
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.files import write_atomically

_FORMAT = 1
_PACKAGES = ("sklearn-era", "scikit-learn", "numpy", "pandas", "numerapi")


@dataclass(frozen=True)
class SubmissionRecord:
    """A submission, as the file beside it says.

    Attributes
    ----------
    state : {"uploading", "submitted"}
        "uploading" from before the first byte is sent until Numerai lists it.
    round_number : int
        The round that was predicted.
    round_open : bool
        Whether it was open; Numerai queues a late submission for the next.
    version : str
        The version of the data.
    model_name : str
        The name of the model at Numerai.
    model_hash : str
        The digest of the model that predicted.
    file : str
        The name of the file that was sent.
    sha256 : str
        Its digest, 64 hexadecimal digits.
    n_rows : int
        Its rows.
    started : str
        When the upload began: UTC, ISO 8601.
    submission_id : str or None
        Numerai's id of it, once there is one.
    server_filename : str or None
        The name that Numerai gave the file, once it is stored.
    submissions_before : list of str
        The ids of the model's submissions before the upload. One made by a run that
        was killed is recognised by not being among them.
    content_confirmed : bool
        Whether the file was fetched back and is the same.
    submitted : str or None
        When Numerai listed it: UTC, ISO 8601.
    versions : dict of str to str
        The versions of Python and of packages.
    """

    state: Literal["uploading", "submitted"]
    round_number: int
    round_open: bool
    version: str
    model_name: str
    model_hash: str
    file: str
    sha256: str
    n_rows: int
    started: str
    submission_id: str | None = None
    server_filename: str | None = None
    submissions_before: list[str] = field(default_factory=list)
    content_confirmed: bool = False
    submitted: str | None = None
    versions: dict[str, str] = field(default_factory=dict)


def write_record(path: Path, record: SubmissionRecord) -> None:
    """Write a record, which appears complete or not at all.

    Raises
    ------
    DataError
        If it cannot be written; it says what there is at Numerai without it.
    """
    document = {"format": _FORMAT, **asdict(record)}
    try:
        write_atomically(path, (json.dumps(document, indent=2) + "\n").encode())
    except OSError as error:
        made = "nothing was submitted"
        if record.submission_id is not None:
            made = f"Numerai has submission {record.submission_id} all the same"
        raise DataError(
            f"{path} cannot be written ({error.strerror}), and {made}: mend that, and "
            "repeat this command."
        ) from error


def read_record(path: Path) -> SubmissionRecord | None:
    """Read a record; None if there is none.

    Raises
    ------
    DataError
        If the file is something else.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return _from_document(document)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{path} is no record of a submission ({type(error).__name__}: {error}): "
            f"see at {SITE} whether the round was submitted, and move the file away."
        ) from error


def _from_document(document: dict[str, Any]) -> SubmissionRecord:
    if document["format"] != _FORMAT:
        raise ValueError(f"its format is {document['format']!r}, not {_FORMAT}")
    names = {entry.name for entry in fields(SubmissionRecord)}
    record = SubmissionRecord(
        **{name: value for name, value in document.items() if name in names}
    )
    if record.state not in ("uploading", "submitted"):
        raise ValueError(f"its state is {record.state!r}")
    return record


def utc_now() -> str:
    """The time, to the second: UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def package_versions() -> dict[str, str]:
    """The versions of Python and of the packages that have a say in a submission."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


__all__ = [
    "SubmissionRecord",
    "package_versions",
    "read_record",
    "utc_now",
    "write_record",
]
