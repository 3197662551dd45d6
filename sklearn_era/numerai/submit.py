"""A submission from file to confirmed, so that it can be repeated at any point.

The record is on disk before the first byte is sent, and again after each step. A run
may be killed at any moment: the next one asks Numerai before it uploads.
"""

import hashlib
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from pydantic import AliasChoices, Field

from sklearn_era.numerai.api import Numerai, Round
from sklearn_era.numerai.config import Workspace
from sklearn_era.numerai.data import read_ids
from sklearn_era.numerai.download import check_is_published, check_sent, served_name
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

if TYPE_CHECKING:
    from sklearn_era.numerai.steps import Steps

_T = TypeVar("_T")

# Seconds to wait for the end of another run.
LOCK_WAIT = 600.0

_AGAIN = "run download and predict again"


class PredictionRecord(Record):
    """What made ``predictions.csv``, beside it."""

    predictions_sha256: str
    model_sha256: str
    version: str = ""
    neutralize_proportion: float = 0.0
    created: str = ""


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
    # Older records call it the model's hash.
    model_sha256: str = Field(
        "", validation_alias=AliasChoices("model_sha256", "model_hash")
    )
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


def read_submission_record(path: Path) -> SubmissionRecord | None:
    """Read the record of a submission; None if there is none."""
    advice = f"Check at {SITE} if the round was submitted, then move the file away."
    return SubmissionRecord.read(path, advice=advice)


def round_state(current: Round, now: datetime) -> str:
    """Whether a round is open, and from or until when."""
    opens, closes = (x and f"{x:%Y-%m-%d %H:%M} UTC" for x in current[1:3])
    state = "is open" if current.is_open else "closed"
    if current.opens is not None and current.opens > now:
        state = f"opens at {opens}"
    elif closes:
        state += f" until {closes}" if current.is_open else f" at {closes}"
    return f"Round {current.number} {state}"


def submit(
    steps: "Steps",
    model_name: str,
    round_number: int,
    file: Path | None = None,
    *,
    require_open: bool | None = None,
    force: bool = False,
) -> SubmissionRecord:
    """Check a round's predictions, upload them, and see that Numerai has them.

    They are what ``predict`` wrote, or a `file` of any model, which Numerai's live file
    alone is the measure of. A closed round is warned of, or an error if `require_open`;
    by default the configuration says. `force` uploads what was submitted already.
    """
    workspace, client, tell = steps.workspace, steps.client, steps.told.step
    folder = workspace.round_dir(round_number, model_name)
    live = None if file else workspace.data_file("live", round_number)
    path = file or folder / "predictions.csv"
    model_sha256 = "" if file else _model_of(path)
    frame = read_predictions(path)
    if live is not None:
        check_submission(frame, read_ids(live))
        tell(f"{path.name} passed Numerai's checks ({len(frame):,} predictions).")
    content = submission_csv(frame)
    model_id = client.model_id(model_name)  # before a folder is called by its name
    what = f"submitting from {folder}"
    with lock(folder / "submission.lock", what, wait=LOCK_WAIT):
        current = client.current_round()
        if current.number != round_number:
            raise SubmissionError(
                f"{path.name} is for round {round_number}, but the current round is "
                f"{current.number}: {_AGAIN}; nothing was submitted."
            )
        wanted = SubmissionRecord(
            state="uploading",
            round_number=round_number,
            round_open=current.is_open,
            version=workspace.version,
            model_name=model_name,
            model_sha256=model_sha256,
            file=path.name,
            sha256=hashlib.sha256(content).hexdigest(),
            n_rows=len(frame),
            started=utc_now(),
        )
        place = folder / "submission.json"
        upload = _Upload(client, model_id, place, content, tell, current, wanted)
        previous = read_submission_record(place)
        if previous is not None and not force and _of(previous) == _of(wanted):
            earlier = replace(upload, record=previous)
            if (listed := earlier.find()) is not None:
                told = f"{path.name} is already submitted ({listed.id})"
                tell(f"{told}: nothing to upload.")
                return earlier.finish(listed)
        if require_open is None:
            require_open = steps.config.submit.require_open
        upload.check_open(require_open)
        upload.check_live(frame, live, workspace)
        return upload.run()


def _model_of(path: Path) -> str:
    """The digest of the model that made a submission; "" if it was changed since."""
    if not path.exists():
        raise DataError(f"{path} is missing: run 'sklearn-era numerai predict' first.")
    try:
        origin = PredictionRecord.read(path.with_suffix(".json"), advice="")
    except DataError:
        origin = None
    if origin is not None and origin.predictions_sha256 == file_sha256(path):
        return origin.model_sha256
    _warn(f"{path} is not what 'predict' wrote; submitting it as is.")
    return ""


def _of(record: SubmissionRecord) -> tuple[str, int, str]:
    """What a submission is of: the same is not uploaded twice."""
    return record.sha256, record.round_number, record.model_name


@dataclass
class _Upload:
    """The steps of an upload, each of which `record` tells of, here and at `path`."""

    client: Numerai
    model_id: str
    path: Path
    content: bytes
    tell: Callable[[str], object]
    current: Round
    record: SubmissionRecord

    def check_open(self, needed: bool) -> None:
        """Tell whether the round is open, which may be needed."""
        state = round_state(self.current, self.client.http.now())
        if self.current.is_open:
            self.tell(f"{state}.")
        elif needed:
            advice = "Use --allow-closed to queue it for the next round."
            raise SubmissionError(f"{state}; nothing was submitted. {advice}")
        else:
            queued = f"{state}; Numerai will queue this upload for the next round"
            _warn(f"{queued}. Use --require-open to stop instead.")

    def check_live(self, frame: Any, live: Path | None, workspace: Workspace) -> None:
        """Check that the ids are those that Numerai has now."""
        name, number = served_name(workspace.version, "live"), self.record.round_number
        check = partial(check_sent, workspace.version, "live")
        with tempfile.TemporaryDirectory(prefix="sklearn-era-") as folder:
            path = Path(folder) / "live.parquet"
            self.client.download(name, path, round_number=number, check=check)
            ids, digest = read_ids(path), file_sha256(path)
        if live is None:
            check_submission(frame, ids)
            return
        check_is_published(workspace, number, ids)
        now, then = set(ids), set(frame["id"])
        since = f"since {live.stem} was downloaded"
        if then != now:
            raise SubmissionError(
                f"The ids changed {since} ({len(now - then):,} new, "
                f"{len(then - now):,} removed): {_AGAIN}; nothing was submitted."
            )
        if digest != file_sha256(live):
            _warn(
                f"Numerai has changed its live file {since}, but not its ids: "
                f"{_AGAIN} to use the new one."
            )
        self.tell(f"All {len(now):,} live ids match Numerai's.")

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
        if (listed := self.ask(lambda: self.look(made))) is not None:
            return self.finish(listed)
        raise UploadError(
            f"Numerai accepted the call but does not list submission {made}: run "
            f"this command again later, and check {SITE}."
        )

    def find(self) -> Listed | None:
        """The submission that an earlier run made, None if Numerai lists none."""
        record, made = self.record, self.record.submission_id
        if made is None and record.server_filename is not None:
            known = record.submissions_before, record.server_filename, record.sha256
            made = self.ask(lambda: self.client.find(self.model_id, *known))
        return self.ask(lambda: self.look(made)) if made else None

    def ask(self, question: Callable[[], _T | None]) -> _T | None:
        """Ask a few times, as Numerai's list may lag behind; None if it stays so."""
        for attempt in range(self.client.http.retries):
            if (answer := question()) is not None:
                return answer
            self.client.http.wait(attempt)
        return question()

    def look(self, submission_id: str) -> Listed | None:
        """The entry of Numerai's list; a newer one is warned of."""
        entries = self.client.submissions(self.model_id)
        found = next((entry for entry in entries if entry.id == submission_id), None)
        if found is not None and entries[0] != found:
            _warn(
                f"Numerai has submission {submission_id}, but uses the newer one, "
                f"{entries[0].id}: use --force to submit this one again."
            )
        return found

    def finish(self, listed: Listed) -> SubmissionRecord:
        """Compare what Numerai has with what was sent, and write so."""
        record, status = self.record, listed.status
        if record.state == "submitted":
            return record
        if status is None and not record.round_open:
            status = "queued"
        elif status is None and self.current.closes and listed.inserted:
            status = "on time" if listed.inserted <= self.current.closes else "late"
        self.write(
            state="submitted",
            submission_id=listed.id,
            submissions_before=(),
            content_confirmed=self.confirm(listed),
            submitted=utc_now(),
            numerai_round=listed.round_number,
            status=status,
        )
        told = f"{listed.id} ({status})" if status else listed.id
        self.tell(f"Submitted: {told}. Record: {self.path}")
        number = record.round_number
        what = f"Submission {listed.id} is for round {number}; Numerai counts it"
        if not record.round_open:
            pass  # which was warned of before the upload
        elif listed.round_number not in (None, number):
            _warn(f"{what} for round {listed.round_number}.")
        elif "late" in (status or "").lower():
            _warn(f"{what} as late: it is scored, but no stake depends on it.")
        return self.record

    def confirm(self, listed: Listed) -> bool:
        """Whether Numerai has the file that was sent; False if that cannot be told."""
        try:
            stored = self.client.fetch(listed.id)
        except ApiError as error:
            self.tell(f"The submission could not be downloaded to compare it. {error}")
            return False
        if stored == self.content or _same_predictions(stored, self.content):
            return True
        number = self.record.round_number
        if self.record.round_open and listed.round_number in (None, number):
            raise UploadError(
                f"Submission {listed.id} at Numerai differs from {self.record.file}: "
                "submit it again with --force."
            )
        self.tell("A queued file may have other ids, so it was not compared.")
        return False

    def write(self, **changes: Any) -> None:
        """Write the record with changes; an error says what Numerai has without it."""
        self.record = self.record.model_copy(update=changes)
        try:
            self.record.write(self.path)
        except DataError as error:
            told = "Nothing was submitted"
            if made := self.record.submission_id:
                told = f"Numerai has submission {made} anyway"
            advice = f"{told}: fix that and run this command again."
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
        close = np.allclose(theirs.reindex(ours.index), ours, rtol=0, atol=1e-6)
        return len(theirs) == len(ours) and close
    except (DataError, SubmissionError, ValueError):
        return False
