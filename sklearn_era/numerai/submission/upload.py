"""A submission from file to confirmed, so that it can be repeated at any point."""

import hashlib
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from sklearn_era.numerai.api.client import NumeraiClient, Round
from sklearn_era.numerai.api.credentials import SITE
from sklearn_era.numerai.data.dataset import check_parquet, read_ids
from sklearn_era.numerai.data.download import served_name
from sklearn_era.numerai.data.locking import alone_in
from sklearn_era.numerai.errors import (
    ApiError,
    DataError,
    SubmissionError,
    UploadError,
)
from sklearn_era.numerai.files import file_sha256
from sklearn_era.numerai.submission.record import (
    SubmissionRecord,
    package_versions,
    read_record,
    utc_now,
    write_record,
)
from sklearn_era.numerai.submission.submission_file import (
    check_submission,
    parse_submission,
)

Step = Callable[[str], None]


def submit(
    client: NumeraiClient,
    *,
    model_name: str,
    submission: Path,
    live: Path,
    record: Path,
    round_number: int,
    version: str,
    model_hash: str,
    require_open: bool = False,
    again: bool = False,
    on_step: Step | None = None,
) -> SubmissionRecord:
    """Check a submission, upload it, and see that Numerai has it.

    In this order: the key, the file against the live file that was predicted, the
    model's id, whether it was submitted already, the round, the live ids as Numerai
    has them now, the upload, the submission, Numerai's list of them, and the file
    fetched back. The record is on disk before the first byte is sent, and again after
    each step. A run may be killed at any point and repeated: it asks Numerai first.

    Parameters
    ----------
    client : NumeraiClient
        The API.

    model_name : str
        The name of a Classic model of the account.

    submission : Path
        The CSV file.

    live : Path
        The live file that it was predicted from.

    record : Path
        Where the record goes, a JSON file.

    round_number : int
        The round of the live file.

    version : str
        The version of the data.

    model_hash : str
        The digest of the model that predicted, for the record.

    require_open : bool, default=False
        Whether to stop if the round has closed. Otherwise Numerai queues the
        submission for the next round.

    again : bool, default=False
        Whether to upload although the same file was submitted.

    on_step : callable, default=None
        Called with a sentence after each step.

    Returns
    -------
    record : SubmissionRecord
        What was written to `record`, in state "submitted".

    Raises
    ------
    ConfigError
        If there is no key.
    DataError
        If a file cannot be read.
    SubmissionError
        If the file breaks a rule, or is not of the current round; nothing was sent.
    ApiError
        If Numerai cannot be asked; nothing was submitted.
    UploadError
        If the upload is refused or cannot be confirmed, or another run is at it.

    Warns
    -----
    UserWarning
        If the round has closed, Numerai's live file has changed but for its ids, or a
        newer submission takes precedence.
    """
    submission, live, record = Path(submission), Path(live), Path(record)
    tell = on_step or _say_nothing
    client.check_keys()
    try:
        content = submission.read_bytes()
    except OSError as error:
        raise DataError(f"{submission} cannot be read: {error.strerror}.") from error
    sha256 = hashlib.sha256(content).hexdigest()
    frame = parse_submission(content, str(submission))
    check_submission(frame, read_ids(live))
    tell(f"{submission.name}: {len(frame):,} predictions, as Numerai wants them.")

    busy = UploadError(
        f"Another run is submitting from {record.parent}: wait for its end."
    )
    with alone_in(record.parent, busy):
        previous = read_record(record)
        model_id = client.model_id(model_name)
        if previous is not None and not again:
            same = (sha256, round_number, model_name)
            if (previous.sha256, previous.round_number, previous.model_name) == same:
                found = _submitted_before(client, model_id, previous)
                if found is not None:
                    tell(
                        f"Submission {found} of this very file is at Numerai already; "
                        "nothing is uploaded again."
                    )
                    return _finish(
                        client, model_id, record, previous, found, content, tell
                    )
        current = client.current_round()
        _check_round(current, round_number, live, require_open, tell)
        _check_live(client, live, version, tell)

        started = SubmissionRecord(
            state="uploading",
            round_number=round_number,
            round_open=current.is_open,
            version=version,
            model_name=model_name,
            model_hash=model_hash,
            file=submission.name,
            sha256=sha256,
            n_rows=len(frame),
            started=utc_now(),
            submissions_before=[
                entry.submission_id for entry in client.submission_ids(model_id)
            ],
            versions=package_versions(),
        )
        write_record(record, started)

        def note_stored(filename: str) -> None:
            nonlocal started
            started = replace(started, server_filename=filename)
            write_record(record, started)
            tell("The file is stored; making the submission.")

        made = client.upload_submission(
            submission,
            model_id,
            known=started.submissions_before,
            expected_sha256=sha256,
            on_stored=note_stored,
        )
        started = replace(started, submission_id=made)
        write_record(record, started)
        return _finish(client, model_id, record, started, made, content, tell)


def _say_nothing(_: str) -> None:
    return


def _submitted_before(
    client: NumeraiClient, model_id: str, previous: SubmissionRecord
) -> str | None:
    """The id of the submission that an earlier run made, if Numerai lists it."""
    if previous.submission_id is not None:
        listed = client.submission_ids(model_id)
        ids = {entry.submission_id for entry in listed}
        return previous.submission_id if previous.submission_id in ids else None
    return client.find_submission(
        model_id,
        known=previous.submissions_before,
        filename=previous.server_filename,
        sha256=previous.sha256,
    )


def _check_round(
    current: Round, round_number: int, live: Path, require_open: bool, tell: Step
) -> None:
    if current.number != round_number:
        raise SubmissionError(
            f"{live.name} is of round {round_number}, and the current round is "
            f"{current.number}: run download and predict again; nothing was submitted."
        )
    when = ""
    if current.close_time is not None:
        when = f"{current.close_time:%Y-%m-%d %H:%M} UTC"
    if current.is_open:
        tell(f"Round {round_number} is open{f' until {when}' if when else ''}.")
        return
    closed = f"Round {round_number} closed{f' at {when}' if when else ''};"
    if require_open:
        raise SubmissionError(
            f"{closed} nothing was submitted. Use --allow-closed to have it queued for "
            "the next round."
        )
    warnings.warn(
        f"{closed} this upload will be queued for the next round. Use --require-open "
        "to stop instead.",
        UserWarning,
        stacklevel=3,
    )


def _check_live(client: NumeraiClient, live: Path, version: str, tell: Step) -> None:
    """Compare the live file with the one that Numerai has now."""
    name = served_name(version, "live")

    def check(path: Path) -> None:
        check_parquet(path, live=True, shown_as=name)

    with tempfile.TemporaryDirectory(prefix="sklearn-era-") as folder:
        now = client.download(name, Path(folder) / "live.parquet", check=check)
        predicted, ids = set(read_ids(live)), set(read_ids(now))
        same_bytes = file_sha256(live) == file_sha256(now)
    if predicted != ids:
        raise SubmissionError(
            f"The ids changed since {live.stem} was downloaded "
            f"({len(ids - predicted):,} new, {len(predicted - ids):,} gone): run "
            "download and predict again; nothing was submitted."
        )
    if not same_bytes:
        warnings.warn(
            f"Numerai has changed its live file since {live.stem} was downloaded, "
            "though not its ids: run download and predict again to use the new one.",
            UserWarning,
            stacklevel=3,
        )
    tell(f"All {len(ids):,} live ids are those that Numerai has now.")


def _finish(
    client: NumeraiClient,
    model_id: str,
    path: Path,
    record: SubmissionRecord,
    submission_id: str,
    content: bytes,
    tell: Step,
) -> SubmissionRecord:
    """See that Numerai has the submission, and write so."""
    _check_listed(client, model_id, submission_id)
    if record.state == "submitted":
        return record
    confirmed = _same_content(client, submission_id, content, record, tell)
    record = replace(
        record,
        state="submitted",
        submission_id=submission_id,
        submissions_before=[],
        content_confirmed=confirmed,
        submitted=utc_now(),
    )
    write_record(path, record)
    tell(f"Numerai lists submission {submission_id}; {path} is its record.")
    return record


def _check_listed(client: NumeraiClient, model_id: str, submission_id: str) -> None:
    attempt = 0
    while True:
        listed = client.submission_ids(model_id)
        if any(entry.submission_id == submission_id for entry in listed):
            break
        if not client.wait(attempt):
            raise UploadError(
                "Numerai accepted the call but does not list submission "
                f"{submission_id}: repeat this command in a while, and see at {SITE}."
            )
        attempt += 1
    if listed[0].submission_id != submission_id:
        warnings.warn(
            f"Submission {submission_id} is at Numerai, but so is a newer one, "
            f"{listed[0].submission_id}, and Numerai takes the newest.",
            UserWarning,
            stacklevel=4,
        )


def _same_content(
    client: NumeraiClient,
    submission_id: str,
    content: bytes,
    record: SubmissionRecord,
    tell: Step,
) -> bool:
    """Whether Numerai has the file that was sent; False if that cannot be told."""
    try:
        stored = client.download_submission(submission_id)
    except ApiError as error:
        tell(f"The file cannot be fetched back, and was not compared. {error}")
        return False
    if stored == content or _same_predictions(stored, content):
        return True
    if not record.round_open:
        tell("Queued for the next round, the file has other ids, and is not compared.")
        return False
    raise UploadError(
        f"Numerai holds other predictions as submission {submission_id} than those of "
        f"{record.file}: submit once more, with --again."
    )


def _same_predictions(stored: bytes, content: bytes) -> bool:
    """Whether two files say the same, in whatever order and format."""
    try:
        theirs, ours = (
            parse_submission(text, "the submission").set_index("id").iloc[:, 0]
            for text in (stored, content)
        )
        theirs = theirs.reindex(ours.index) if len(theirs) == len(ours) else theirs[:0]
        same_shape = len(theirs) == len(ours)
        return same_shape and np.allclose(theirs, ours, rtol=0, atol=1e-6)
    except (DataError, KeyError, IndexError, TypeError, ValueError):
        return False


__all__ = ["SubmissionRecord", "submit"]
