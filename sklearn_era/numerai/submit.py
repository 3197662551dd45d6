"""Check, upload and confirm submissions, with a restart possible at any point.

The record is written before the first byte is sent, and after each step. After a crash,
the next run asks Numerai before it uploads.
"""

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numerai_tools import submissions
from pydantic import AliasChoices, Field

from sklearn_era.numerai import errors
from sklearn_era.numerai.api import Listed, Numerai, TournamentRound
from sklearn_era.numerai.config import Workspace
from sklearn_era.numerai.data import parse_predictions, read_ids, read_predictions
from sklearn_era.numerai.download import Fetch, check_new, served_name
from sklearn_era.numerai.errors import DataError, SubmissionError, UploadError, warn
from sklearn_era.numerai.files import Record, file_sha256, lock, utc_now
from sklearn_era.numerai.http import SITE

if TYPE_CHECKING:
    from sklearn_era.numerai.steps import Steps

_ROUNDING = 1e-8  # beyond 0 or 1, which Numerai accepts
LOCK_WAIT = 600.0  # seconds to wait for another run
_MODEL_SHA256 = AliasChoices("model_sha256", "model_hash")  # of version 0.1.0
_AGAIN = "run download and predict again; nothing was submitted."


class PredictionRecord(Record):
    """The record of ``predictions.csv``: its model and the version of the data."""

    predictions_sha256: str
    model_sha256: str
    version: str = ""
    neutralize_proportion: float = 0.0
    created: str = ""


class SubmissionRecord(Record):
    """A submission's record. Its `state` is "uploading", and in the end "submitted"."""

    state: Literal["uploading", "submitted"]
    round_number: int
    round_open: bool
    version: str
    model_name: str
    model_sha256: str = Field("", validation_alias=_MODEL_SHA256)
    file: str
    sha256: str
    n_rows: int
    started: str
    submission_id: str | None = None
    server_filename: str | None = None
    submissions_before: tuple[str, ...] = ()  # a newer one is a killed run's work
    content_confirmed: bool = False
    submitted: str | None = None
    numerai_round: int | None = None  # Numerai's, as the status
    status: str | None = None  # derived from times if Numerai has none


def read_submission_record(path: Path) -> SubmissionRecord | None:
    advice = f"Check at {SITE} if the round was submitted, then move the file away."
    return SubmissionRecord.read(path, advice=advice)


def round_state(current: TournamentRound, now: datetime) -> str:
    """Return text on a round: "is open until", "closed at" or "opens at" a time."""
    opens, closes = (x and f"{x:%Y-%m-%d %H:%M} UTC" for x in current[1:3])
    state = "is open" if current.is_open else "closed"
    if current.opens is not None and current.opens > now:
        state = f"opens at {opens}"
    elif closes:
        state += f" until {closes}" if current.is_open else f" at {closes}"
    return f"Round {current.number} {state}"


def submit(
    steps: "Steps", model_name: str, round_number: int, file: Path | None = None, *,
    require_open: bool | None = None, force: bool = False,
) -> SubmissionRecord:  # fmt: skip
    """Check, upload and confirm a round's predictions; return the record. The file is
    `file` or, if None, the file that ``predict`` wrote. If `require_open` (None means
    the configured value), raise SubmissionError for a closed round. If `force`, repeat
    a submission that was made before.
    """
    workspace, client, report = steps.workspace, steps.client, steps.reporter.step
    folder = workspace.round_dir(round_number, model_name)
    live = None if file else workspace.data_file("live", round_number)
    path = file or folder / "predictions.csv"
    model_sha256 = "" if file else _model_of(path)
    frame = read_predictions(path)
    if live is not None:
        check_submission(frame, read_ids(live))
        report(f"{path.name} passed Numerai's checks ({len(frame):,} predictions).")
    content = submission_csv(frame)
    model_id = client.model_id(model_name)  # before a folder gets its name
    with lock(folder / "submission.lock", f"submitting from {folder}", wait=LOCK_WAIT):
        current = client.current_round()
        if current.number != round_number:
            text = f"{path.name} is for round {round_number}, but the current round is"
            raise SubmissionError(f"{text} {current.number}: {_AGAIN}")
        place = folder / "submission.json"
        record = SubmissionRecord(
            state="uploading", started=utc_now(), version=workspace.version,
            round_number=round_number, round_open=current.is_open,
            model_name=model_name, model_sha256=model_sha256, file=path.name,
            sha256=hashlib.sha256(content).hexdigest(), n_rows=len(frame),
        )  # fmt: skip
        upload = _Upload(client, model_id, place, content, report, current, record)
        previous = read_submission_record(place)
        if previous is not None and not force and previous.sha256 == record.sha256:
            earlier = replace(upload, record=previous)
            if (listed := earlier.find()) is not None:
                text = f"{path.name} is already submitted ({listed.id})"
                report(f"{text}: nothing to upload.")
                return earlier.finish(listed)
        state = round_state(current, client.http.now())
        if current.is_open:
            report(f"{state}.")
        elif steps.config.submit.require_open if require_open is None else require_open:
            advice = "Use --allow-closed to queue it for the next round."
            raise SubmissionError(f"{state}; nothing was submitted. {advice}")
        else:
            queued = f"{state}; Numerai will queue this upload for the next round"
            warn(f"{queued}. Use --require-open to stop instead.")
        upload.check_live(frame, live, workspace)
        return upload.run()


def own_submission(
    steps: "Steps", model_name: str, round_number: int
) -> SubmissionRecord | None:
    """Return the record of the file that the user submitted for a round, or None if
    there is none. If its upload was interrupted, ask Numerai for the file, and raise
    UploadError if Numerai does not have it.
    """
    folder = steps.workspace.round_dir(round_number, model_name)
    place, client = folder / "submission.json", steps.client
    record = read_submission_record(place)
    if record is None or record.model_sha256:
        return None
    if record.state == "submitted":
        return record
    with lock(folder / "submission.lock", f"submitting from {folder}", wait=LOCK_WAIT):
        record = read_submission_record(place) or record
        of = client.model_id(model_name), place, b"", steps.reporter.step
        upload = _Upload(client, *of, client.current_round(), record)
        if (listed := upload.find()) is not None:
            return upload.finish(listed)
    raise UploadError(
        f"The upload of your file {record.file} for round {round_number} was "
        "interrupted, and Numerai does not have it: submit it again, or delete "
        f"{place} to submit the model's predictions."
    )


def submission_csv(frame: pd.DataFrame) -> bytes:
    """Return a submission as CSV, with all digits; equal frames give equal bytes."""
    return frame.to_csv(index=False, lineterminator="\n").encode()


def check_submission(frame: pd.DataFrame, live_ids: Sequence[str]) -> None:
    """Raise SubmissionError if a submission breaks a rule of Numerai or its tools."""
    live = pd.Series(list(live_ids), dtype=str)
    ids, values = frame["id"], frame["prediction"]
    low, high = values.min(), values.max()
    for labels, wrong, problem in (
        (ids, ids.isna() | (ids == ""), "rows have no id"),
        (ids, ids.duplicated(), "ids are duplicates"),
        (live, ~live.isin(ids), "live ids have no prediction: predict the live file of "
        "this round"),
        (ids, ~np.isfinite(values), "predictions are not finite"),
        (ids, ~values.between(-_ROUNDING, 1 + _ROUNDING), "predictions are not between "
        f"0 and 1 (they range from {low:g} to {high:g}): rank them, for example with "
        "predictions.rank(pct=True)"),
        (ids, (values == low) & (low == high), f"predictions are equal ({low:g}): the "
        "model learned nothing, or its features are constant"),
    ):  # fmt: skip
        if wrong.any():
            text = f"{wrong.sum():,} of {len(wrong):,} {problem}"
            raise SubmissionError(f"{text}. The first is {labels[wrong].iloc[0]!r}.")
    if others := int((~ids.isin(live)).sum()):
        warn(f"{others:,} ids of the submission are not live: Numerai ignores them.")
    try:
        submissions.validate_submission_numerai(live, frame)
    except AssertionError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise SubmissionError(f"numerai-tools rejects it: {reason}.") from None


def _model_of(path: Path) -> str:
    """Return the digest of the model that wrote a file; "" if this is not known."""
    if not path.exists():
        raise DataError(f"{path} is missing: run 'sklearn-era numerai predict' first.")
    with suppress(DataError):  # a damaged record
        origin = PredictionRecord.read(path.with_suffix(".json"), advice="")
        if origin and origin.predictions_sha256 == file_sha256(path):
            return origin.model_sha256
    warn(f"{path} is not what 'predict' wrote; submitting it as is.")
    return ""


@dataclass
class _Upload:
    """An upload to Numerai. Its `record` is written to `path` after each step. Its
    `content` is needed only to upload it, or to compare it with Numerai's file.
    """

    client: Numerai
    model_id: str
    path: Path
    content: bytes
    report: Callable[[str], object]
    current: TournamentRound
    record: SubmissionRecord

    def check_live(self, frame: Any, live: Path | None, workspace: Workspace) -> None:
        """Raise SubmissionError if ids differ from the ids in Numerai's live file."""
        name, number = served_name(workspace.version, "live"), self.record.round_number
        check = partial(check_new, workspace, "live", number)
        with tempfile.TemporaryDirectory(prefix="sklearn-era-") as folder:
            path = Path(folder) / "live.parquet"
            Fetch(self.client, name, path, number, check)()
            ids, digest = read_ids(path), file_sha256(path)
        if live is None:
            check_submission(frame, ids)
            return
        now, then = set(ids), set(frame["id"])
        since = f"since {live.stem} was downloaded"
        if then != now:
            counts = f"{len(now - then):,} new, {len(then - now):,} removed"
            raise SubmissionError(f"The ids changed {since} ({counts}): {_AGAIN}")
        if digest != file_sha256(live):
            changed = f"Numerai has changed its live file {since}, but not its ids"
            warn(f"{changed}: run download and predict again to use the new one.")
        self.report(f"All {len(now):,} live ids match Numerai's.")

    def run(self) -> SubmissionRecord:
        """Store the file, create the submission and confirm it; return the record."""
        client, record = self.client, self.record
        before = tuple(entry.id for entry in client.submissions(self.model_id))
        self.write(submissions_before=before)
        name = f"{Path(record.file).stem}.csv"
        filename = client.store(self.content, name, self.model_id)
        self.write(server_filename=filename)
        self.report("File uploaded; creating the submission.")
        made = client.create(filename, self.model_id, before, record.sha256)
        self.write(submission_id=made)
        if (listed := self.find()) is None:
            text = f"Numerai accepted the call but does not list submission {made}"
            raise UploadError(f"{text}: run this command again later, or check {SITE}.")
        return self.finish(listed)

    def find(self) -> Listed | None:
        """Return Numerai's entry for the recorded submission, or None; warn if Numerai
        has a newer submission.
        """
        record, made = self.record, self.record.submission_id
        if made is None and record.server_filename is None:
            return None
        known = record.submissions_before, record.server_filename, record.sha256
        # Several attempts, since Numerai's list may lag behind.
        for attempt in range(self.client.http.retries + 1):
            if attempt:
                self.client.http.wait(attempt - 1)
            made = made or self.client.find(self.model_id, *known)
            listed = self.client.submissions(self.model_id) if made else []
            for found in (entry for entry in listed if entry.id == made):
                if found != listed[0]:
                    text = f"submission {made}, but uses the newer one, {listed[0].id}"
                    warn(f"Numerai has {text}: use --force to submit this one again.")
                return found
        return None

    def finish(self, listed: Listed) -> SubmissionRecord:
        """Compare Numerai's file with the file sent; complete and return the record."""
        record, status = self.record, listed.status
        if record.state == "submitted":
            return record
        if status is None and not record.round_open:
            status = "queued"
        elif status is None and self.current.closes and listed.inserted:
            status = "on time" if listed.inserted <= self.current.closes else "late"
        self.write(
            state="submitted", submission_id=listed.id, submissions_before=(),
            content_confirmed=self.confirm(listed), submitted=utc_now(),
            numerai_round=listed.round_number, status=status,
        )  # fmt: skip
        text = f"{listed.id} ({status})" if status else listed.id
        self.report(f"Submitted: {text}. Record: {self.path}")
        # A warning about a closed round came before the upload.
        number, is_open = record.round_number, record.round_open
        what = f"Submission {listed.id} is for round {number}; Numerai counts it"
        if is_open and listed.round_number not in (None, number):
            warn(f"{what} for round {listed.round_number}.")
        elif is_open and "late" in (status or "").lower():
            warn(f"{what} as late: it is scored, but no stake depends on it.")
        return self.record

    def confirm(self, listed: Listed) -> bool:
        """Return whether Numerai has the file that was sent, False if this is unknown;
        raise UploadError if Numerai has another file for this round.
        """
        try:
            stored = self.client.fetch(listed.id)
        except errors.ApiError as error:
            text = "The submission could not be downloaded to compare it."
            self.report(f"{text} {error}")
            return False
        if hashlib.sha256(stored).hexdigest() == self.record.sha256:
            return True
        with suppress(DataError, SubmissionError, ValueError):
            # Compare values, in any order and format of rows.
            read = partial(parse_predictions, shown="the submission")
            frames = (read(x).set_index("id") for x in (stored, self.content))
            theirs, ours = (frame["prediction"] for frame in frames)
            close = np.allclose(theirs.reindex(ours.index), ours, rtol=0, atol=1e-6)
            if close and len(theirs) == len(ours):
                return True
        record = self.record
        if record.round_open and listed.round_number in (None, record.round_number):
            text = f"Submission {listed.id} at Numerai differs from {record.file}"
            raise UploadError(f"{text}: submit it again with --force.")
        self.report("A queued file may have other ids, so it was not compared.")
        return False

    def write(self, **changes: Any) -> None:
        """Change and write the record. If it cannot be written, the DataError names the
        submission that was made, if any.
        """
        self.record = self.record.model_copy(update=changes)
        try:
            self.record.write(self.path)
        except DataError as error:
            made = self.record.submission_id
            text = f"Numerai has submission {made} anyway"
            text = f"{text if made else 'Nothing was submitted'}: fix that and run"
            raise DataError(f"{error} {text} this command again.") from error
