"""A submission, from file to confirmed: in order, once, and safe to repeat."""

import functools
import hashlib
import io
import json
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from helpers.numerai.live import make_frame
from sklearn_era.numerai import submit as submitting
from sklearn_era.numerai.api import Round
from sklearn_era.numerai.download import NotPublishedError
from sklearn_era.numerai.errors import (
    ApiError,
    BusyError,
    DataError,
    SubmissionError,
    UploadError,
)
from sklearn_era.numerai.files import lock
from sklearn_era.numerai.queries import Listed
from sklearn_era.numerai.submission import make_submission, write_submission
from sklearn_era.numerai.submit import read_submission_record, submit

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
MODELS = {"my_model": "id-1", "other": "id-2"}
# The calls of a submission that meets with no trouble.
IN_ORDER = [
    "check_keys", "model_id", "current_round", "download", "submissions", "store",
    "create", "submissions", "fetch",
]  # fmt: skip


class Killed(BaseException):
    """The end of a process."""


def call(method):
    """Note a call, and end the process before or after it where that is wanted."""

    @functools.wraps(method)
    def noted(self, *arguments, **options):
        here = len(self.calls)
        self.calls.append(method.__name__)
        if self.kill == (here, "before"):
            raise Killed
        answer = method(self, *arguments, **options)
        if self.kill == (here, "after"):
            raise Killed
        return answer

    return noted


class Numerai:
    """A client of a Numerai in memory, with the methods that a submission calls."""

    def __init__(self, live: bytes) -> None:
        self.live = live
        self.round = Round(
            1401, NOW - timedelta(hours=1), NOW + timedelta(hours=1), True
        )
        self.made: list[dict] = []
        self.stored: dict[str, bytes] = {}
        self.hold = bytes  # what is made of a submission's content
        self.lag = 0  # how many lists lack the newest submission
        self.listed: dict = {}  # what the list says besides
        self.kill = (-1, "")
        self.calls: list[str] = []
        self.waits = 0
        self.http = SimpleNamespace(retries=2, wait=self.wait, now=lambda: NOW)

    def wait(self, attempt):
        assert attempt in (0, 1)
        self.waits += 1

    @call
    def check_keys(self):
        return None

    @call
    def model_id(self, name):
        return MODELS[name]

    @call
    def current_round(self):
        return self.round

    @call
    def download(self, filename, path, *, round_number, check):
        assert (filename, round_number) == ("v5.3/live.parquet", 1401)
        path.write_bytes(self.live)
        check(path)

    @call
    def submissions(self, model_id):
        return self._list(model_id)

    def _list(self, model_id):
        made = self.made[: len(self.made) - (self.lag > 0)]
        self.lag -= 1
        return [
            Listed(id=x["id"], filename=x["name"], **{"inserted": NOW, **self.listed})
            for x in reversed(made)
            if x["model"] == model_id
        ]

    @call
    def store(self, content, name, model_id):
        assert name == "predictions.csv"
        server_name = f"stored-{len(self.stored)}.csv"
        self.stored[server_name] = content
        return server_name

    @call
    def create(self, filename, model_id, known_ids, sha256):
        content = self.stored[filename]
        assert hashlib.sha256(content).hexdigest() == sha256
        assert {x["id"] for x in self.made if x["model"] == model_id} == set(known_ids)
        new = {"id": f"submission-{len(self.made) + 1}", "name": filename}
        self.made.append(new | {"model": model_id, "content": content})
        return new["id"]

    @call
    def find(self, model_id, known_ids, filename, sha256):
        found = [x.id for x in self._list(model_id) if x.filename == filename]
        return next((x for x in found if x not in known_ids), None)

    @call
    def fetch(self, submission_id):
        (content,) = [x["content"] for x in self.made if x["id"] == submission_id]
        return self.hold(content)


def parquet(frame):
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


LIVE = make_frame(30)


def write_predictions(folder, seed=0, ids=LIVE.index):
    values = np.random.default_rng(seed).uniform(size=len(ids))
    return write_submission(make_submission(ids, values), folder / "predictions.csv")


@pytest.fixture
def client():
    return Numerai(parquet(LIVE))


@pytest.fixture
def folder(tmp_path):
    data = tmp_path / "data" / "v5.3"
    data.mkdir(parents=True)
    (data / "live_1401.parquet").write_bytes(parquet(LIVE))
    write_predictions(tmp_path)
    return tmp_path


@pytest.fixture
def said():
    return []


def run(client, folder, said=None, **options):
    """Submit; return the record."""
    usual = {
        "model_name": "my_model",
        "submission": folder / "predictions.csv",
        "live": folder / "data" / "v5.3" / "live_1401.parquet",
        "record": folder / "submission.json",
        "round_number": 1401,
        "version": "v5.3",
        "model_sha256": "ab" * 32,
        "on_step": (said if said is not None else []).append,
    }
    return submit(client, **{**usual, **options})


def refusal(error, *arguments, **options):
    with pytest.raises(error) as caught:
        run(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def assert_submitted_once(client, record):
    (made,) = client.made
    assert record.submission_id == made["id"]
    assert record.sha256 == hashlib.sha256(made["content"]).hexdigest()
    assert record.state == "submitted"


def test_a_submission_goes_in_order_and_is_recorded(client, folder, said):
    record = run(client, folder, said)
    assert client.calls == IN_ORDER
    assert_submitted_once(client, record)
    assert client.made[0]["content"] == (folder / "predictions.csv").read_bytes()
    path = folder / "submission.json"
    assert record == read_submission_record(path)
    document = json.loads(path.read_text())
    expected = {
        "format": 1, "round_number": 1401, "round_open": True, "model_name": "my_model",
        "model_sha256": "ab" * 32, "file": "predictions.csv", "n_rows": 30,
        "submission_id": "submission-1", "content_confirmed": True, "version": "v5.3",
        "submissions_before": [], "status": "on time", "numerai_round": None,
    }  # fmt: skip
    assert expected.items() <= document.items()
    for name in ("started", "submitted"):
        assert datetime.fromisoformat(document[name]).utcoffset() == timedelta(0)
    assert len(said) == 5
    assert said[-1] == (f"Submitted: submission-1 (on time). Record: {path}")


def test_what_was_submitted_is_not_uploaded_again(client, folder, said):
    first = run(client, folder)
    client.calls.clear()
    assert run(client, folder, said) == first
    assert client.calls == ["check_keys", "model_id", "submissions"]
    assert "nothing to upload" in said[-1]
    # In the next round as well: the question is whether this file was submitted.
    client.round = client.round._replace(number=1402)
    assert run(client, folder) == first
    client.made.append({"id": "new", "name": "x", "model": "id-1", "content": b""})
    with pytest.warns(UserWarning, match="a newer one, new, and Numerai takes the n"):
        assert run(client, folder) == first


def test_what_makes_another_submission(client, folder):
    run(client, folder)
    assert run(client, folder, force=True).submission_id == "submission-2"
    sha256 = write_predictions(folder, seed=1)
    record = run(client, folder)
    assert (record.sha256, record.submission_id) == (sha256, "submission-3")
    assert run(client, folder, model_name="other").submission_id == "submission-4"
    assert client.made[-1]["model"] == "id-2"
    # Numerai has it no more.
    client.made.clear()
    assert_submitted_once(client, run(client, folder, model_name="other"))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(len(IN_ORDER)))
def test_a_run_killed_at_any_call_can_be_repeated(client, folder, number, when):
    client.kill = (number, when)
    with pytest.raises(Killed):
        run(client, folder)
    client.kill = (-1, "")
    for _ in range(2):
        assert_submitted_once(client, run(client, folder))


@pytest.mark.parametrize("number", range(4))
def test_a_run_killed_at_any_write_can_be_repeated(client, folder, number, monkeypatch):
    """Before and after the storage has the file; once it is made; once it is listed."""
    write = submitting.SubmissionRecord.write
    left = iter(range(number))

    def written(self, path):
        if next(left, None) is None:
            raise DataError(f"{path} cannot be written: No space left on device.")
        write(self, path)

    monkeypatch.setattr(submitting.SubmissionRecord, "write", written)
    made = "Nothing was submitted"
    if number >= 2:
        made = "Numerai has submission submission-1 all the same"
    message = refusal(DataError, client, folder)
    assert message.endswith(f" device. {made}: mend that, and repeat this command.")
    assert len(client.made) == (number >= 2)
    monkeypatch.undo()
    assert_submitted_once(client, run(client, folder))


def test_a_list_that_lags_is_asked_again_before_an_upload(client, folder):
    """B16: what an earlier run made is looked for a few times."""
    client.kill = (IN_ORDER.index("create"), "after")
    with pytest.raises(Killed):
        run(client, folder)
    client.kill = (-1, "")
    client.lag = 2
    assert_submitted_once(client, run(client, folder))
    assert client.waits == 2
    # Known by its id, as well.
    client.lag = 2
    assert_submitted_once(client, run(client, folder))


def test_a_submission_that_is_not_listed_is_an_error(client, folder):
    whole = client._list
    client._list = lambda model_id: []
    said = "Numerai accepted the call but does not list submission submission-1"
    assert said in refusal(UploadError, client, folder)
    # It may be listed later, and is then found.
    client._list = whole
    assert_submitted_once(client, run(client, folder))


def test_another_run_is_waited_for(client, folder, monkeypatch):
    """B13: the second of two runs goes on once the first has ended."""
    with lock(folder / "submission.lock", "submitting"):
        monkeypatch.setattr(submitting, "LOCK_WAIT", 0.05)
        said = f"Another run is submitting from {folder}: wait for its end."
        assert refusal(BusyError, client, folder) == said
        assert client.calls == ["check_keys"]
    program = """
        import sys, time
        from pathlib import Path
        from sklearn_era.numerai.files import lock
        with lock(Path(sys.argv[1]), "submitting"):
            print("locked", flush=True)
            time.sleep(0.5)
    """
    command = [sys.executable, "-P", "-c", textwrap.dedent(program)]
    monkeypatch.setattr(submitting, "LOCK_WAIT", 60.0)
    with subprocess.Popen(
        [*command, folder / "submission.lock"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"locked\n"
        assert_submitted_once(client, run(client, folder))


def test_other_ids_or_another_round_stop_the_submission(client, folder):
    again = "run download and predict again; nothing was submitted."
    client.live = parquet(LIVE.rename(index=lambda label: f"m{label}"))
    said = "The ids changed since live_1401 was downloaded (30 new, 30 gone)"
    assert refusal(SubmissionError, client, folder) == f"{said}: {again}"
    client.round = client.round._replace(number=1402)
    said = "predictions.csv is of round 1401, and the current round is 1402"
    assert refusal(SubmissionError, client, folder) == f"{said}: {again}"
    assert not (folder / "submission.json").exists()
    assert client.stored == {}
    # Of other features there is a warning.
    client.round = client.round._replace(number=1401)
    client.live = parquet(LIVE.assign(feature_a=np.int8(0)))
    with pytest.warns(UserWarning, match="changed its live file since live_1401"):
        assert_submitted_once(client, run(client, folder))


def test_the_live_file_of_an_earlier_round_is_not_submitted(client, folder):
    """B12: Numerai may serve the last round's file for a while."""
    data = folder / "data" / "v5.3"
    (data / "live_1399.parquet").write_bytes(parquet(LIVE.rename(index=str.upper)))
    (data / "live_example_preds_1400.parquet").write_bytes(b"")
    (data / "live_1400.parquet").write_bytes(parquet(LIVE))
    message = refusal(NotPublishedError, client, folder)
    assert "1401 are not published yet" in message
    assert client.stored == {}
    (data / "live_1400.parquet").unlink()
    assert_submitted_once(client, run(client, folder))


def test_a_closed_round_is_warned_of_or_stops(client, folder):
    client.round = client.round._replace(is_open=False, closes=NOW - timedelta(hours=1))
    message = refusal(SubmissionError, client, folder, require_open=True)
    assert message == (
        "Round 1401 closed at 2026-11-21 11:30 UTC; nothing was submitted. Use "
        "--allow-closed to have it queued for the next round."
    )
    with pytest.warns(UserWarning, match="is queued for the next round"):
        record = run(client, folder)
    assert_submitted_once(client, record)
    assert (record.round_open, record.status) == (False, "queued")
    # One that has not opened yet did not close.
    client.round = client.round._replace(opens=NOW + timedelta(minutes=5))
    message = refusal(SubmissionError, client, folder, require_open=True, force=True)
    assert message.startswith("Round 1401 opens at 2026-11-21 12:35 UTC; nothing")


@pytest.mark.parametrize(
    ("listed", "status", "warned"),
    [
        ({}, "on time", ""),
        ({"inserted": None}, None, ""),
        ({"inserted": NOW + timedelta(hours=2)}, "late", "counts it as late"),
        ({"status": "late"}, "late", "counts it as late"),
        ({"status": "queued", "round_number": 1402}, "queued", "for round 1402"),
        ({"status": "on_time", "round_number": 1401}, "on_time", ""),
    ],
)
@pytest.mark.filterwarnings("default")
def test_the_status_at_numerai_is_recorded_and_told(
    client, folder, said, listed, status, warned, recwarn
):
    """B12: "it is listed" is less than a staker has to know."""
    client.listed = listed
    record = run(client, folder, said)
    assert record.status == status
    assert record.numerai_round == listed.get("round_number")
    assert (status or "submission-1.") in said[-1]
    warnings = [str(one.message) for one in recwarn]
    assert len(warnings) == bool(warned)
    assert all(warned in text for text in warnings)


def test_a_queued_submission_may_have_other_ids(client, folder):
    client.hold = lambda content: content.replace(b"\nn", b"\nm")
    message = refusal(UploadError, client, folder)
    assert message == (
        "Numerai holds other predictions as submission submission-1 than those of "
        "predictions.csv: submit once more, with --force."
    )
    # Either by our own look at the round, or as Numerai says.
    client.listed = {"round_number": 1402}
    with pytest.warns(UserWarning, match="Numerai counts it for round 1402"):
        record = run(client, folder, force=True)
    assert (record.state, record.content_confirmed) == ("submitted", False)
    client.listed = {}
    client.round = client.round._replace(is_open=False, closes=None)
    with pytest.warns(UserWarning, match="Round 1401 closed; "):
        record = run(client, folder, force=True)
    assert (record.state, record.content_confirmed) == ("submitted", False)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"id,prediction\n", b"<html>"])
def test_another_content_at_numerai_is_an_error(client, folder, content):
    client.hold = lambda _: content
    assert "other predictions" in refusal(UploadError, client, folder)


def test_the_same_predictions_in_another_form_are_the_same(client, folder):
    def rewritten(content):
        header, *lines = content.decode().split()
        rows = [line.split(",") for line in reversed(lines)]
        texts = [f"{label},{float(value):.9f}" for label, value in rows]
        return "\r\n".join([header, *texts]).encode()

    client.hold = rewritten
    assert run(client, folder).content_confirmed


def test_a_file_that_cannot_be_fetched_back_is_not_confirmed(client, folder, said):
    def fail(_):
        raise ApiError("Not ready.")

    client.hold = fail
    record = run(client, folder, said)
    assert (record.state, record.content_confirmed) == ("submitted", False)
    assert any("was not compared. Not ready." in text for text in said)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_file_of_any_model_is_submitted(client, folder, suffix):
    """Without a live file of ours, that of Numerai decides."""
    path = folder / f"predictions.{suffix}"
    frame = pd.read_csv(folder / "predictions.csv", index_col="id")
    if suffix == "csv":
        frame.assign(era="X").to_csv(path)
    else:
        frame.to_parquet(path)
    record = run(client, folder, submission=path, live=None)
    assert_submitted_once(client, record)
    assert client.made[0]["content"].startswith(b"id,prediction\nn")
    assert run(client, folder, submission=path, live=None) == record
    # It is checked before anything is sent.
    (path.with_name("half.csv")).write_text(frame[:15].to_csv())
    half = {"submission": folder / "half.csv", "live": None}
    assert "15 of 30 live ids have no" in refusal(
        SubmissionError, client, folder, **half
    )
    assert len(client.stored) == 1


def test_rules_are_checked_before_any_call(client, folder):
    path = folder / "predictions.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    assert "1 of 30 live ids have no" in refusal(SubmissionError, client, folder)
    path.unlink()
    assert "No such file" in refusal(DataError, client, folder)
    assert set(client.calls) == {"check_keys"}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "null", '{"format": 1}', '{"format": 2}', "lost"]
)
def test_a_file_that_is_no_record_is_not_overwritten(client, folder, text):
    path = folder / "submission.json"
    if text in ("lost", '{"format": 2}'):
        run(client, folder)
        old, new = {"lost": ('"submitted"', '"lost"')}.get(text, (": 1,", ": 2,"))
        text = path.read_text().replace(old, new, 1)
    path.write_text(text)
    message = refusal(DataError, client, folder)
    assert "move the file away" in message or "upgrade sklearn-era" in message
    assert str(path) in message
    assert path.read_text() == text
    assert len(client.made) <= 1


def test_a_record_of_the_first_version_is_read(client, folder):
    record = run(client, folder)
    path = folder / "submission.json"
    document = json.loads(path.read_text())
    old = {name: document[name] for name in document if name not in ("status", "nu")}
    old["model_hash"] = old.pop("model_sha256")
    old["versions"] = {"python": "3.11.7", "numerapi": "3.1.1"}
    path.write_text(json.dumps(old))
    assert read_submission_record(path).model_sha256 == record.model_sha256
    assert run(client, folder).submission_id == record.submission_id
    assert len(client.made) == 1


def test_bytes_are_read_and_hashed_once(client, folder, monkeypatch):
    """B21: what is sent is what was checked, whatever becomes of the file."""
    reads = []
    read = Path.read_bytes

    def noted(self):
        reads.append(self.name)
        return read(self)

    monkeypatch.setattr(Path, "read_bytes", noted)
    expected = read(folder / "predictions.csv")
    run(client, folder)
    assert reads.count("predictions.csv") == 1
    assert client.made[0]["content"] == expected
