"""Submissions at Numerai: stored, made, listed and fetched back.

A submission takes two calls with an upload in between. numerapi makes the second
whether or not the storage took the file, and reports a submission without one.
"""

import hashlib
import io
import os
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from sklearn_era.numerai.api.api_calls import CLASSIC, ApiCalls, unknown_answer
from sklearn_era.numerai.api.transport import HttpFailure
from sklearn_era.numerai.errors import ApiError, UploadError

_UPLOAD_AUTH = """
query($filename: String! $tournament: Int! $modelId: String) {
  submission_upload_auth(
    filename: $filename tournament: $tournament modelId: $modelId
  ) { filename url } }"""
_CREATE_SUBMISSION = """
mutation($filename: String! $tournament: Int! $modelId: String $triggerId: String
         $dataDatestamp: Int) {
  create_submission(
    filename: $filename tournament: $tournament modelId: $modelId
    triggerId: $triggerId source: "numerapi" dataDatestamp: $dataDatestamp
  ) { id } }"""
_DOWNLOAD_AUTH = """
query($id: String) { submissionDownloadAuth(id: $id) { filename url } }"""


@dataclass(frozen=True)
class ListedSubmission:
    """A submission as Numerai lists it.

    Attributes
    ----------
    submission_id : str
        Its id.
    filename : str
        The name that Numerai gave the file.
    inserted_at : datetime or None
        When it was made, in UTC.
    """

    submission_id: str
    filename: str
    inserted_at: datetime | None


def utc(text: str | None) -> datetime | None:
    """A time of the API's, in UTC, which it is in where it does not say."""
    if not text:
        return None
    time = datetime.fromisoformat(text)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def list_submissions(calls: ApiCalls, model_id: str) -> list[ListedSubmission]:
    """The submissions of a model, the newest first."""
    step = "Listing the submissions"
    listed = calls.numerapi(step, "submission_ids", model_id) or []
    oldest = datetime.min.replace(tzinfo=UTC)
    try:
        entries = [
            ListedSubmission(
                str(entry["id"]), str(entry["filename"]), utc(entry["insertedAt"])
            )
            for entry in listed
        ]
    except (KeyError, TypeError, ValueError) as error:
        reason = type(error).__name__
    else:
        return sorted(
            entries, key=lambda entry: entry.inserted_at or oldest, reverse=True
        )
    raise unknown_answer(step, reason)


def fetch_submission(calls: ApiCalls, submission_id: str) -> bytes:
    """The file of a submission, as Numerai has it."""
    step = "Downloading the submission"

    def attempt() -> bytes:
        variables = {"id": submission_id}
        data = calls.query(step, _DOWNLOAD_AUTH, variables, keys=True, retry=False)
        found = data.get("submissionDownloadAuth") or {}
        if not found.get("url"):
            raise ApiError(f"{step}: Numerai does not offer {submission_id}.")
        content = io.BytesIO()
        calls.transport.get(step, str(found["url"]), content)
        return content.getvalue()

    return calls.transport.retry(attempt)


def find_submission(
    calls: ApiCalls,
    model_id: str,
    *,
    known: Collection[str],
    filename: str | None,
    sha256: str,
) -> str | None:
    """The id of a submission of a file, if it is not among those known before.

    Parameters
    ----------
    calls : ApiCalls
        The API.
    model_id : str
        The model's id.
    known : collection of str
        The ids of the submissions from before the upload.
    filename : str or None
        The name that Numerai gave the file, if that is known.
    sha256 : str
        The file's digest, which decides where the name does not.
    """
    listed = list_submissions(calls, model_id)
    new = [entry for entry in listed if entry.submission_id not in known]
    for entry in new:
        if filename is not None and entry.filename == filename:
            return entry.submission_id
    for entry in new:
        try:
            content = fetch_submission(calls, entry.submission_id)
        except ApiError:
            continue
        if hashlib.sha256(content).hexdigest() == sha256:
            return entry.submission_id
    return None


def store(calls: ApiCalls, content: bytes, name: str, model_id: str) -> str:
    """Put a file into Numerai's storage; return the name that it has there.

    Raises
    ------
    UploadError
        If the storage refuses the file.
    """
    step = "Uploading"
    variables = {"filename": name, "tournament": CLASSIC, "modelId": model_id}
    # Numerai's own compute cluster knows its runs by this.
    compute_id = os.environ.get("NUMERAI_COMPUTE_ID")
    headers = {"x_compute_id": compute_id} if compute_id else {}
    granted: dict[str, str] = {}

    def attempt() -> str:
        # An address anew for each attempt, as they run out.
        granted.clear()
        data = calls.query(step, _UPLOAD_AUTH, variables, keys=True, retry=False)
        granted.update(data.get("submission_upload_auth") or {})
        if not granted.get("url") or not granted.get("filename"):
            raise ApiError(f"{step}: Numerai's API gave no address to upload to.")
        calls.transport.put(step, granted["url"], content, headers)
        return granted["filename"]

    try:
        return calls.transport.retry(attempt)
    except HttpFailure as failure:
        if not granted:
            raise
        message = str(failure).rstrip(".")
    raise UploadError(f"{message}; nothing was submitted.")


def create(
    calls: ApiCalls, filename: str, model_id: str, known: Collection[str], sha256: str
) -> str:
    """Make a submission of a stored file; return its id.

    If it is unclear whether it was made, Numerai's list decides before the call is
    repeated: a second submission would not be an error to Numerai.

    Raises
    ------
    UploadError
        If it is refused, or cannot be told from none.
    """
    step = "Making the submission"
    variables = {
        "filename": filename,
        "tournament": CLASSIC,
        "modelId": model_id,
        # As above: set by the cluster alone.
        "triggerId": os.environ.get("TRIGGER_ID"),
        "dataDatestamp": None,
    }
    message = ""
    for count in range(calls.transport.retries + 1):
        refused = False
        try:
            data = calls.query(
                step, _CREATE_SUBMISSION, variables, keys=True, retry=False
            )
            created = data.get("create_submission") or {}
            if created.get("id"):
                return str(created["id"])
            message = f"{step}: Numerai's API gave no id"
        except HttpFailure as failure:
            message = str(failure).rstrip(".")
            refused = not failure.unclear and not failure.transient
        if refused:
            raise UploadError(f"{message}; nothing was submitted.")
        calls.transport.wait(count)
        try:
            found = find_submission(
                calls, model_id, known=known, filename=filename, sha256=sha256
            )
        except ApiError:
            break
        if found is not None:
            return found
    raise UploadError(
        f"{message}; whether it was made is unclear, as Numerai does not list it yet: "
        "repeat this command, which asks before it uploads again."
    )


__all__ = [
    "ListedSubmission",
    "create",
    "fetch_submission",
    "find_submission",
    "list_submissions",
    "store",
    "utc",
]
