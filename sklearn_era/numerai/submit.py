"""A submission from file to confirmed, so that it can be repeated at any point.

The record is on disk before the first byte is sent, and again after each step. A run
may be killed at any moment: the next one asks Numerai before it uploads.
"""

import hashlib
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import AliasChoices, Field

from sklearn_era.numerai.api import Numerai, Round
from sklearn_era.numerai.config import Workspace
from sklearn_era.numerai.data import check_parquet, read_ids
from sklearn_era.numerai.download import check_is_published, served_name
from sklearn_era.numerai.errors import ApiError, DataError, SubmissionError, UploadError
from sklearn_era.numerai.files import Record, file_sha256, lock, utc_now
from sklearn_era.numerai.http import SITE
from sklearn_era.numerai.queries import Listed
from sklearn_era.numerai.submission import (
    check_submission,
    parse_predictions,
    read_predictions,
    submission_csv,
)

Step = Callable[[str], None]

# Seconds to wait for the end of another run.
LOCK_WAIT = 600.0

_AGAIN = "run download and predict again"
# Older records call it the model's hash.
_MODEL = AliasChoices("model_sha256", "model_hash")


class SubmissionRecord(Record):
    """A submission, as the file beside it says.

    It is "uploading" from before the first byte is sent until Numerai lists it. What a
    killed run has made is not among `submissions_before`. `status` and `numerai_round`
    are what Numerai says of it, if anything; else the status is by the times.
    """

    state: Literal["uploading", "submitted"]
    round_number: int
    round_open: bool
    version: str
    model_name: str
    model_sha256: str = Field("", validation_alias=_MODEL)
    file: str
    sha256: str
    n_rows: int
    started: str
    submission_id: str | None = None
    server_filename: str | None = None
    submissions_before: tuple[str, ...] = ()
    content_confirmed: bool = False
    submitted: str | None = None
    numerai_round: int | None = None
    status: str | None = None


def submit(
    client: Numerai,
    *,
    model_name: str,
    submission: Path,
    live: Path | None,
    record: Path,
    round_number: int,
    version: str,
    model_sha256: str = "",
    require_open: bool = False,
    force: bool = False,
    on_step: Step = lambda text: None,
) -> SubmissionRecord:
    """Check a submission, upload it, and see that Numerai has it.

    `submission` is the file of any model, and `live` what it was predicted from;
    without it, Numerai's live file alone decides. `record` is where the record goes. A
    closed round is warned of, or an error if `require_open`. `force` uploads a file
    that was submitted already.
    """
    client.check_keys()
    frame = read_predictions(submission)
    if live is not None:
        check_submission(frame, read_ids(live))
        n = len(frame)
        on_step(f"{submission.name} passed Numerai's checks ({n:,} predictions).")
    content = submission_csv(frame)
    wanted = SubmissionRecord(
        state="uploading",
        round_number=round_number,
        round_open=False,
        version=version,
        model_name=model_name,
        model_sha256=model_sha256,
        file=submission.name,
        sha256=hashlib.sha256(content).hexdigest(),
        n_rows=len(frame),
        started=utc_now(),
    )
    where = f"submitting from {record.parent}"
    with lock(record.with_suffix(".lock"), where, wait=LOCK_WAIT):
        previous = read_submission_record(record)
        model_id = client.model_id(model_name)
        start = partial(_Upload, client, model_id, record, content, on_step)
        if previous is not None and not force and _of(previous) == _of(wanted):
            earlier = start(previous)
            found = earlier.find()
            if found is not None:
                on_step(
                    f"{submission.name} is already submitted ({found}): nothing to "
                    "upload."
                )
                return earlier.finish(found)
        upload = start(wanted)
        upload.check_round(client.current_round(), require_open)
        upload.check_live(live, frame)
        return upload.run()


def _of(record: SubmissionRecord) -> tuple[str, int, str]:
    """What a submission is of: the same is not uploaded twice."""
    return record.sha256, record.round_number, record.model_name


def read_submission_record(path: Path) -> SubmissionRecord | None:
    """Read the record of a submission; None if there is none."""
    advice = f"See at {SITE} whether the round was submitted, and move the file away."
    return SubmissionRecord.read(path, advice=advice)


@dataclass
class _Upload:
    """The steps of an upload, each of which `record` tells of, here and at `path`."""

    client: Numerai
    model_id: str
    path: Path
    content: bytes
    tell: Step
    record: SubmissionRecord
    closes: datetime | None = None

    def check_round(self, current: Round, require_open: bool) -> None:
        """Check that the round is the current one, and tell whether it is open."""
        number = self.record.round_number
        if current.number != number:
            raise SubmissionError(
                f"{self.record.file} is of round {number}, and the current round is "
                f"{current.number}: {_AGAIN}; nothing was submitted."
            )
        self.closes = current.closes
        self.record = self.record.model_copy(update={"round_open": current.is_open})
        opens, closes = (x and f"{x:%Y-%m-%d %H:%M} UTC" for x in current[1:3])
        if current.is_open:
            self.tell(f"Round {number} is open{f' until {closes}' if closes else ''}.")
            return
        closed = f"Round {number} closed{f' at {closes}' if closes else ''}"
        if current.opens is not None and current.opens > self.client.http.now():
            closed = f"Round {number} opens at {opens}"
        queued = "queued for the next round"
        if require_open:
            told = f"{closed}; nothing was submitted. Use --allow-closed to have it"
            raise SubmissionError(f"{told} {queued}.")
        _warn(f"{closed}; this upload is {queued}. Use --require-open to stop instead.")

    def check_live(self, live: Path | None, frame: Any) -> None:
        """Check that the ids are those that Numerai has now."""
        version, number = self.record.version, self.record.round_number
        name = served_name(version, "live")
        check = partial(check_parquet, live=True, shown_as=name)
        with tempfile.TemporaryDirectory(prefix="sklearn-era-") as folder:
            path = Path(folder) / "live.parquet"
            self.client.download(name, path, round_number=number, check=check)
            ids, digest = read_ids(path), file_sha256(path)
        if live is None:
            check_submission(frame, ids)
            return
        check_is_published(Workspace(live.absolute().parents[2], version), number, ids)
        now, predicted = set(ids), set(read_ids(live))
        if predicted != now:
            raise SubmissionError(
                f"The ids changed since {live.stem} was downloaded "
                f"({len(now - predicted):,} new, {len(predicted - now):,} gone): "
                f"{_AGAIN}; nothing was submitted."
            )
        if digest != file_sha256(live):
            _warn(
                f"Numerai has changed its live file since {live.stem} was downloaded, "
                f"though not its ids: {_AGAIN} to use the new one."
            )
        self.tell(f"All {len(now):,} live ids are those that Numerai has now.")

    def run(self) -> SubmissionRecord:
        """Store the file, make the submission, and see that it is there."""
        client, sha256 = self.client, self.record.sha256
        before = tuple(entry.id for entry in client.submissions(self.model_id))
        self.write(submissions_before=before)
        name = f"{Path(self.record.file).stem}.csv"
        filename = client.store(self.content, name, self.model_id)
        self.write(server_filename=filename)
        self.tell("File uploaded; creating the submission.")
        made = client.create(filename, self.model_id, before, sha256)
        self.write(submission_id=made)
        return self.finish(made)

    def find(self) -> str | None:
        """The id of the submission that an earlier run made, None if there is none."""
        made, filename = self.record.submission_id, self.record.server_filename
        if made is not None:
            return made if self.ask(lambda: self.look(made)) else None
        if filename is None:
            return None  # that run ended before it could make one
        known = self.record.submissions_before, filename, self.record.sha256
        found: str | None = self.ask(lambda: self.client.find(self.model_id, *known))
        return found

    def ask(self, question: Callable[[], Any]) -> Any:
        """Ask a few times, as Numerai's list may lag behind; None if it stays so."""
        answer = question()
        for attempt in range(self.client.http.retries):
            if answer is not None:
                break
            self.client.http.wait(attempt)
            answer = question()
        return answer

    def look(self, submission_id: str) -> Listed | None:
        """The entry of Numerai's list; a newer one is warned of."""
        entries = self.client.submissions(self.model_id)
        found = next((entry for entry in entries if entry.id == submission_id), None)
        if found is not None and entries[0] != found:
            _warn(
                f"Submission {submission_id} is at Numerai, but so is a newer one, "
                f"{entries[0].id}, and Numerai takes the newest: use --force to submit "
                "this one again."
            )
        return found

    def finish(self, submission_id: str) -> SubmissionRecord:
        """See that Numerai has the submission, and write so."""
        if self.record.state == "submitted":
            return self.record
        listed: Listed | None = self.ask(lambda: self.look(submission_id))
        if listed is None:
            raise UploadError(
                "Numerai accepted the call but does not list submission "
                f"{submission_id}: repeat this command in a while, and see at {SITE}."
            )
        self.write(
            state="submitted",
            submission_id=submission_id,
            submissions_before=(),
            content_confirmed=self.confirm(listed),
            submitted=utc_now(),
            numerai_round=listed.round_number,
            status=self.status(listed),
        )
        number, status = self.record.round_number, self.record.status or ""
        told = f"{submission_id} ({status})" if status else submission_id
        self.tell(f"Submitted: {told}. Record: {self.path}")
        # That the round is closed was warned of before the upload.
        if self.record.round_open:
            what = f"Submission {submission_id} is of round {number}; Numerai counts it"
            if listed.round_number not in (None, number):
                _warn(f"{what} for round {listed.round_number}.")
            elif "late" in status.lower():
                _warn(f"{what} as late: it is scored, and no stake depends on it.")
        return self.record

    def status(self, listed: Listed) -> str | None:
        """What Numerai says of a submission, or the times; None if neither does."""
        if listed.status is not None or not self.record.round_open:
            return listed.status or "queued"
        if self.closes is None or listed.inserted is None:
            return None
        return "on time" if listed.inserted <= self.closes else "late"

    def confirm(self, listed: Listed) -> bool:
        """Whether Numerai has the file that was sent; False if that cannot be told."""
        try:
            stored = self.client.fetch(listed.id)
        except ApiError as error:
            self.tell(f"The file cannot be fetched back, and was not compared. {error}")
            return False
        if stored == self.content or _same_predictions(stored, self.content):
            return True
        other_round = listed.round_number not in (None, self.record.round_number)
        if other_round or not self.record.round_open:
            self.tell("Queued, the file may have other ids, and is not compared.")
            return False
        raise UploadError(
            f"Numerai holds other predictions as submission {listed.id} than those of "
            f"{self.record.file}: submit once more, with --force."
        )

    def write(self, **changes: Any) -> None:
        """Write the record with changes; an error says what Numerai has without it."""
        self.record = self.record.model_copy(update=changes)
        try:
            self.record.write(self.path)
        except DataError as error:
            made = self.record.submission_id
            has = f"Numerai has submission {made} all the same"
            told = has if made else "Nothing was submitted"
            advice = f"{told}: mend that, and repeat this command."
            raise DataError(f"{error} {advice}") from error


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=4)


def _same_predictions(stored: bytes, content: bytes) -> bool:
    """Whether two files say the same, in whatever order and format."""
    try:
        theirs, ours = (
            parse_predictions(text, "the submission").set_index("id")["prediction"]
            for text in (stored, content)
        )
        same_length = len(theirs) == len(ours)
        theirs = theirs.reindex(ours.index)
        return same_length and np.allclose(theirs, ours, rtol=0, atol=1e-6)
    except (DataError, SubmissionError, ValueError):
        return False
