"""A submission, from file to confirmed: in order, once, and safe to repeat."""

import fcntl
import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
import time
from datetime import datetime

import numpy as np
import pytest

from sklearn_era.numerai.api.client import NumeraiClient
from sklearn_era.numerai.api.transport import Transport
from sklearn_era.numerai.errors import (
    ApiError,
    ConfigError,
    DataError,
    SubmissionError,
    UploadError,
)
from sklearn_era.numerai.submission.record import read_record
from sklearn_era.numerai.submission.submission_file import (
    make_submission,
    write_submission,
)
from sklearn_era.numerai.submission.upload import submit

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("numerapi")
pytest.importorskip("numerai_tools")
numerai_server = pytest.importorskip("helpers.numerai.server")

MODEL = "11111111-aaaa"
LIVE = "v5.3/live.parquet"
IN_ORDER = numerai_server.SUBMISSION_IN_ORDER


@pytest.fixture
def server(tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with numerai_server.NumeraiServer({LIVE: numerai_server.live_parquet()}) as server:
        yield server
    told = [record.getMessage() for record in caplog.get_records("call")]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    texts = [path.read_bytes().decode("latin-1") for path in files]
    numerai_server.assert_discreet(server, *told, *capfd.readouterr(), *texts)
    assert not [path for path in files if path.name.endswith(".partial")]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "live_1401.parquet").write_bytes(numerai_server.live_parquet())
    write_predictions(tmp_path)
    return tmp_path


def write_predictions(folder, seed=0):
    values = np.random.default_rng(seed).uniform(size=30)
    frame = make_submission(numerai_server.live_ids(), values)
    return write_submission(frame, folder / "predictions.csv")


@pytest.fixture
def run(server, folder):
    """Submit; return the record."""
    server.said = []

    def run(**options):
        client = numerai_server.make_client(server, **options.pop("client", {}))
        arguments = {
            "model_name": "my_model",
            "submission": folder / "predictions.csv",
            "live": folder / "live_1401.parquet",
            "record": folder / "submission.json",
            "round_number": 1401,
            "version": "v5.3",
            "model_hash": "ab" * 32,
            "on_step": server.said.append,
        }
        return submit(client, **{**arguments, **options})

    return run


def refused(server, error, call):
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error or error is ApiError
    numerai_server.assert_discreet(
        server, numerai_server.everything_said(caught.value), *server.said
    )
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def assert_submitted_once(server, record):
    (made,) = server.submissions
    assert record.submission_id == made["id"]
    assert record.sha256 == hashlib.sha256(made["content"]).hexdigest()
    assert record.state == "submitted"


def test_a_submission_goes_in_order_and_is_recorded(server, run, folder):
    record = run()
    assert server.operations == IN_ORDER
    assert_submitted_once(server, record)
    sent = (folder / "predictions.csv").read_bytes()
    assert server.submissions[0]["content"] == sent
    assert record == read_record(folder / "submission.json")
    document = json.loads((folder / "submission.json").read_text())
    assert document["format"] == 1
    assert {
        "round_number": 1401,
        "round_open": True,
        "version": "v5.3",
        "model_name": "my_model",
        "model_hash": "ab" * 32,
        "file": "predictions.csv",
        "n_rows": 30,
        "submission_id": "submission-1",
        "content_confirmed": True,
        "submissions_before": [],
    }.items() <= document.items()
    assert {"python", "numpy", "numerapi", "sklearn-era"} <= set(document["versions"])
    for name in ("started", "submitted"):
        assert datetime.fromisoformat(document[name]).utcoffset().total_seconds() == 0
    assert [*map(type, server.said)] == [str] * 5


def test_the_record_is_written_before_a_byte_is_sent(server, run, folder):
    server.fail("PUT", 403, times=99)
    refused(server, UploadError, run)
    record = read_record(folder / "submission.json")
    assert (record.state, record.submission_id) == ("uploading", None)
    assert record.submitted is None


def test_what_was_submitted_is_not_uploaded_again(server, run):
    first = run()
    server.requests.clear()
    assert run() == first
    assert server.operations == ["models", "submissions", "submissions"]
    assert "nothing is uploaded again" in server.said[-1]
    # In the next round as well: the question is whether this file was submitted.
    server.round_number = 1402
    assert run() == first
    assert len(server.submissions) == 1


def test_again_uploads_again(server, run):
    run()
    record = run(again=True)
    assert [entry["id"] for entry in server.submissions] == [
        "submission-1",
        "submission-2",
    ]
    assert record.submission_id == "submission-2"


def test_other_predictions_are_another_submission(server, run, folder):
    run()
    sha256 = write_predictions(folder, seed=1)
    record = run()
    assert len(server.submissions) == 2
    assert (record.sha256, record.submission_id) == (sha256, "submission-2")


def test_another_model_is_another_submission(server, run):
    run()
    assert run(model_name="other").model_name == "other"
    assert [entry["modelId"] for entry in server.submissions] == [MODEL, "22222222"]


def test_a_submission_that_numerai_has_no_more_is_uploaded(server, run):
    run()
    server.submissions.clear()
    assert_submitted_once(server, run())


class Killed(BaseException):
    """The end of a run, at any point."""


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", range(len(IN_ORDER)), ids=IN_ORDER)
def test_a_run_killed_at_any_point_can_be_repeated(
    server, run, monkeypatch, call, after
):
    exchange = Transport._exchange
    count = 0

    def killed(self, *arguments, **options):
        nonlocal count
        count += 1
        if count == call + 1:
            if after:
                exchange(self, *arguments, **options)
            raise Killed
        return exchange(self, *arguments, **options)

    monkeypatch.setattr(Transport, "_exchange", killed)
    with pytest.raises(Killed):
        run()
    monkeypatch.undo()
    assert_submitted_once(server, run())
    assert_submitted_once(server, run())


def test_a_killed_process_leaves_a_run_that_can_be_repeated(server, run, folder):
    program = f"""
from pathlib import Path
from sklearn_era.numerai.api.client import NumeraiClient
from sklearn_era.numerai.submission.upload import submit
submit(NumeraiClient.from_environment(), model_name="my_model",
       submission=Path("predictions.csv"), live=Path("live_1401.parquet"),
       record=Path("submission.json"), round_number=1401, version="v5.3",
       model_hash="{"ab" * 32}")
"""
    server.fail("submissionDownloadAuth", "hang")
    environment = {**os.environ, **server.environment}
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=folder, env=environment
    )
    deadline = time.monotonic() + 60
    while "submissionDownloadAuth" not in server.operations:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    message = refused(server, UploadError, run)
    assert message == f"Another run is submitting from {folder}: wait for its end."
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert read_record(folder / "submission.json").state == "uploading"
    assert_submitted_once(server, run())


def test_two_runs_do_not_submit_at_once(server, run, folder):
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert "Another run is submitting" in refused(server, UploadError, run)
    assert server.requests == []
    os.close(descriptor)
    run()


@pytest.mark.parametrize("kind", [403, 500, "drop"])
def test_nothing_is_submitted_that_the_storage_refused(server, run, kind):
    server.fail("PUT", kind, times=99)
    message = refused(server, UploadError, run)
    assert message.endswith("nothing was submitted.")
    assert "create_submission" not in server.operations
    server.faults.clear()
    assert_submitted_once(server, run())


@pytest.mark.parametrize("kind", ["lost", "drop", 500])
def test_a_lost_answer_does_not_submit_twice(server, run, kind):
    server.fail("create_submission", kind)
    assert_submitted_once(server, run())


def test_a_submission_unknown_to_the_run_that_made_it_is_found(server, run, folder):
    server.fail("create_submission", "lost")

    # The list fails only once the submission is made.
    def lose_the_list(text):
        if "stored" in text:
            server.fail("submissions", 500)

    once = {"retries": 0}
    message = refused(
        server, UploadError, lambda: run(client=once, on_step=lose_the_list)
    )
    assert "whether it was made is unclear" in message
    assert read_record(folder / "submission.json").submission_id is None
    assert_submitted_once(server, run())
    assert server.operations.count("PUT") == 1


def test_ids_that_changed_stop_the_submission(server, run, folder):
    server.files[LIVE] = numerai_server.live_parquet(ids_seed=5)
    message = refused(server, SubmissionError, run)
    assert message == (
        "The ids changed since live_1401 was downloaded (30 new, 30 gone): run "
        "download and predict again; nothing was submitted."
    )
    assert server.operations == IN_ORDER[:4]
    assert not (folder / "submission.json").exists()


def test_features_that_changed_are_warned_of(server, run):
    server.files[LIVE] = numerai_server.live_parquet(seed=1)
    with pytest.warns(UserWarning, match="changed its live file since live_1401"):
        record = run()
    assert_submitted_once(server, record)


def test_a_live_file_that_breaks_off_is_fetched_again(server, run):
    server.fail("GET", "truncated")
    server.fail("GET", "corrupt")
    assert_submitted_once(server, run())


def test_another_round_stops_the_submission(server, run):
    server.round_number = 1402
    assert refused(server, SubmissionError, run) == (
        "live_1401.parquet is of round 1401, and the current round is 1402: run "
        "download and predict again; nothing was submitted."
    )
    assert server.operations == IN_ORDER[:2]


def test_a_closed_round_is_warned_of_or_stops(server, run):
    server.is_open = False
    message = refused(server, SubmissionError, lambda: run(require_open=True))
    assert message.startswith("Round 1401 closed at 20")
    assert "UTC; nothing was submitted. Use --allow-closed" in message
    assert server.operations == IN_ORDER[:2]
    with pytest.warns(
        UserWarning,
        match=r"Round 1401 closed at .* UTC; this upload will be queued for the next "
        r"round\. Use --require-open to stop instead\.",
    ):
        record = run()
    assert_submitted_once(server, record)
    assert not record.round_open


def test_a_queued_submission_may_have_other_ids(server, run, monkeypatch):
    server.is_open = False
    read = server.read

    def mapped(path):
        content = read(path)
        return content.replace(b"\nn", b"\nm") if "submissions" in path else content

    monkeypatch.setattr(server, "read", mapped)
    with pytest.warns(UserWarning, match="Round 1401 closed"):
        record = run()
    assert record.state == "submitted"
    assert not record.content_confirmed
    server.is_open = True
    message = refused(server, UploadError, lambda: run(again=True))
    assert "Numerai holds other predictions as submission submission-2" in message


def test_the_same_predictions_in_another_form_are_the_same(server, run, monkeypatch):
    read = server.read

    def rewritten(path):
        content = read(path)
        if "submissions" not in path:
            return content
        header, *lines = content.decode().split()
        rows = [line.split(",") for line in reversed(lines)]
        texts = [f"{label},{float(value):.9f}" for label, value in rows]
        return "\r\n".join([header, *texts]).encode()

    monkeypatch.setattr(server, "read", rewritten)
    assert run().content_confirmed


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"id,prediction\n", b"<html>"])
def test_another_content_at_numerai_is_an_error(server, run, monkeypatch, content):
    read = server.read
    monkeypatch.setattr(
        server, "read", lambda path: content if "submissions" in path else read(path)
    )
    assert "Numerai holds other predictions" in refused(server, UploadError, run)


def test_a_file_that_cannot_be_fetched_back_is_not_confirmed(server, run):
    server.fail("submissionDownloadAuth", "errors", message="not ready")
    record = run()
    assert (record.state, record.content_confirmed) == ("submitted", False)
    assert any("was not compared" in text for text in server.said)


def test_a_submission_that_is_not_listed_is_an_error(server, run):
    server.fail("create_submission", "unlisted")
    message = refused(server, UploadError, run)
    assert (
        "Numerai accepted the call but does not list submission submission-1" in message
    )
    # It may be listed later, and is then found.
    server.unlisted.clear()
    assert_submitted_once(server, run())


def test_a_newer_submission_is_pointed_out(server, run):
    run()
    server.add_submission(MODEL, b"", "from elsewhere.csv")
    with pytest.warns(UserWarning, match="a newer one, submission-2"):
        assert run().submission_id == "submission-1"


def test_rules_are_checked_before_any_call(server, run, folder):
    path = folder / "predictions.csv"
    lines = path.read_text().splitlines()
    for content, error, said in [
        (lines[:-1], SubmissionError, "1 of 30 live ids have no prediction"),
        ([*lines, lines[1]], SubmissionError, "1 ids are there more than once"),
        (["id,other", *lines[1:]], SubmissionError, "these are 'id', 'other'"),
        ([*lines[:-1], lines[-1].split(",")[0] + ",7"], SubmissionError, "between 0"),
        ([], DataError, "cannot be read as CSV"),
    ]:
        path.write_text("\n".join(content))
        assert said in refused(server, error, run)
    path.unlink()
    assert "No such file" in refused(server, DataError, run)
    assert server.requests == []


def test_a_damaged_live_file_is_named_before_any_call(server, run, folder):
    (folder / "live_1401.parquet").write_bytes(b"PAR1 and so on")
    message = refused(server, DataError, run)
    assert "live_1401.parquet is cut off" in message
    assert server.requests == []


def test_a_missing_key_is_found_first(server, run, folder):
    (folder / "predictions.csv").unlink()
    with pytest.raises(ConfigError, match="are not set"):
        submit(
            NumeraiClient(api_url=server.url),
            model_name="my_model",
            submission=folder / "predictions.csv",
            live=folder / "live_1401.parquet",
            record=folder / "submission.json",
            round_number=1401,
            version="v5.3",
            model_hash="",
        )
    assert server.requests == []


def test_an_unknown_model_stops_before_the_upload(server, run):
    message = refused(server, ApiError, lambda: run(model_name="nobody"))
    assert message == "No Classic model named 'nobody'. Your models: my_model, other."
    assert server.operations == ["models"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"format": 2}', '{"format": 1}', "null"],
)
def test_a_file_that_is_no_record_is_not_overwritten(server, run, folder, text):
    (folder / "submission.json").write_text(text)
    message = refused(server, DataError, run)
    assert "submission.json is no record of a submission" in message
    assert (folder / "submission.json").read_text() == text
    assert server.requests == []


def test_a_record_of_an_unknown_state_is_refused(server, run, folder):
    run()
    path = folder / "submission.json"
    path.write_text(path.read_text().replace('"submitted",', '"lost",', 1))
    assert "its state is 'lost'" in refused(server, DataError, run)
