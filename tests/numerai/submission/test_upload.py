"""A submission, from file to confirmed: in order, once, and safe to repeat."""

import errno
import fcntl
import hashlib
import json
import os
from datetime import datetime

import numpy as np
import pytest

from helpers.grids import slow
from helpers.numerai.server import (
    MODEL_ID,
    SUBMISSION_IN_ORDER,
    assert_discreet,
    discreet_server,
    live_ids,
    live_parquet,
    make_client,
    refused,
)
from sklearn_era.numerai.api.client import NumeraiClient
from sklearn_era.numerai.api.transport import Transport
from sklearn_era.numerai.errors import (
    ConfigError,
    DataError,
    SubmissionError,
    UploadError,
)
from sklearn_era.numerai.submission import record as records
from sklearn_era.numerai.submission import submission_file
from sklearn_era.numerai.submission.record import read_record
from sklearn_era.numerai.submission.upload import submit

LIVE = "v5.3/live.parquet"
DETAILS = {"model_name": "my_model", "round_number": 1401, "version": "v5.3"}
DETAILS["model_hash"] = "ab" * 32


@pytest.fixture
def server(folder, caplog, capfd):
    with discreet_server({LIVE: live_parquet()}, folder, caplog, capfd) as server:
        server.said = []
        yield server
        assert_discreet(server, *server.said)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "live_1401.parquet").write_bytes(live_parquet())
    write_predictions(tmp_path)
    return tmp_path


def write_predictions(folder, seed=0):
    values = np.random.default_rng(seed).uniform(size=30)
    frame = submission_file.make_submission(live_ids(), values)
    return submission_file.write_submission(frame, folder / "predictions.csv")


@pytest.fixture
def run(server, folder):
    """Submit; return the record."""
    usual = {
        "submission": folder / "predictions.csv",
        "live": folder / "live_1401.parquet",
        "record": folder / "submission.json",
        "on_step": server.said.append,
        **DETAILS,
    }

    def run(client=None, **options):
        return submit(client or make_client(server), **{**usual, **options})

    return run


def assert_submitted_once(server, record):
    (made,) = server.submissions
    assert record.submission_id == made["id"]
    assert record.sha256 == hashlib.sha256(made["content"]).hexdigest()
    assert record.state == "submitted"


def test_a_submission_goes_in_order_and_is_recorded(server, run, folder):
    record = run()
    assert server.operations == SUBMISSION_IN_ORDER
    assert_submitted_once(server, record)
    sent = (folder / "predictions.csv").read_bytes()
    assert server.submissions[0]["content"] == sent
    assert record == read_record(folder / "submission.json")
    document = json.loads((folder / "submission.json").read_text())
    assert document["format"] == 1
    expected = {
        **DETAILS,
        "round_open": True,
        "file": "predictions.csv",
        "n_rows": 30,
        "submission_id": "submission-1",
        "content_confirmed": True,
        "submissions_before": [],
    }
    assert expected.items() <= document.items()
    assert {"python", "numpy", "numerapi", "sklearn-era"} <= set(document["versions"])
    for name in ("started", "submitted"):
        assert datetime.fromisoformat(document[name]).utcoffset().total_seconds() == 0
    assert [*map(type, server.said)] == [str] * 5


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
    server.add_submission(MODEL_ID, b"", "from elsewhere.csv")
    with pytest.warns(UserWarning, match="a newer one, submission-2"):
        assert run() == first


def test_what_makes_another_submission(server, run, folder):
    run()
    assert run(again=True).submission_id == "submission-2"
    sha256 = write_predictions(folder, seed=1)
    record = run()
    assert (record.sha256, record.submission_id) == (sha256, "submission-3")
    assert run(model_name="other").model_name == "other"
    models = [entry["modelId"] for entry in server.submissions]
    assert models == [*[MODEL_ID] * 3, "22222222"]
    # Numerai has it no more.
    server.submissions.clear()
    assert_submitted_once(server, run())


@pytest.mark.parametrize("after", [slow(False), True])
@pytest.mark.parametrize("call", range(11), ids=SUBMISSION_IN_ORDER)
def test_a_run_killed_at_any_point_can_be_repeated(
    server, run, monkeypatch, call, after
):
    exchange = Transport._exchange
    calls = iter(range(11))

    def killed(*arguments, **options):
        kill = next(calls) == call
        if after or not kill:
            answer = exchange(*arguments, **options)
        if kill:
            raise KeyboardInterrupt
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(Transport, "_exchange", killed)
        with pytest.raises(KeyboardInterrupt):
            run()
    assert_submitted_once(server, run())
    assert_submitted_once(server, run())


def test_two_runs_do_not_submit_at_once(server, run, folder):
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    said = f"Another run is submitting from {folder}: wait for its end."
    assert refused(server, UploadError, run) == said
    assert server.requests == []
    os.close(descriptor)
    run()


# A call that hangs takes its time: by default those that matter most.
HANGING = ("GET", "PUT", "create_submission")
OPERATIONS = sorted({*SUBMISSION_IN_ORDER})


@pytest.mark.parametrize(
    ("operation", "kinds"),
    [
        ("GET", ("truncated", "corrupt")),
        *((operation, (503, "drop")) for operation in OPERATIONS),
        *((operation, ("hang",)) for operation in HANGING),
        *(slow(operation, (503, "drop", "hang")) for operation in OPERATIONS),
    ],
)
def test_a_failure_that_passes_is_not_seen(server, run, operation, kinds):
    for kind in kinds:
        server.fail(operation, kind)
    client = make_client(server, timeout=0.5, retries=3)
    record = run(client=client)
    assert_submitted_once(server, record)
    assert record.content_confirmed
    assert not [fault for fault in server.faults if fault.times]


@pytest.mark.parametrize("n_writes", range(4))
def test_a_record_that_cannot_be_written_says_what_numerai_has(
    server, run, folder, monkeypatch, n_writes
):
    # Before and after the storage has the file; and once the submission is made.
    said = "nothing was submitted"
    if n_writes >= 2:
        said = "Numerai has submission submission-1 all the same"
    write_atomically = records.write_atomically
    left = iter(range(n_writes))

    def fill_up(path, content):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_atomically(path, content)

    monkeypatch.setattr(records, "write_atomically", fill_up)
    assert refused(server, DataError, run) == (
        f"{folder / 'submission.json'} cannot be written (No space left on device), "
        f"and {said}: mend that, and repeat this command."
    )
    assert len(server.submissions) == (n_writes >= 2)
    monkeypatch.undo()
    assert_submitted_once(server, run())


@pytest.mark.parametrize("kind", [403, 500, "drop"])
def test_nothing_is_submitted_that_the_storage_refused(server, run, folder, kind):
    server.fail("PUT", kind, times=99)
    message = refused(server, UploadError, run)
    said = "" if kind == "drop" else f"the storage refused the file (HTTP {kind})"
    assert f"{said}; nothing was submitted." in message
    assert "create_submission" not in server.operations
    assert server.submissions == []
    # Its record is written before a byte is sent.
    record = read_record(folder / "submission.json")
    assert (record.state, record.submission_id) == ("uploading", None)
    assert record.submitted is None
    server.faults.clear()
    assert_submitted_once(server, run())


@pytest.mark.parametrize(
    ("kind", "n_times", "n_calls"),
    # HTTP 429 says that nothing was done, and that it may be tried again.
    [("lost", 1, 1), ("drop", 1, 2), ("garbage", 1, 2), (500, 1, 2), (429, 2, 3)],
)
def test_a_lost_answer_does_not_submit_twice(server, run, kind, n_times, n_calls):
    server.fail("create_submission", kind, n_times)
    assert_submitted_once(server, run())
    assert server.operations.count("create_submission") == n_calls


def test_a_submission_unknown_to_the_run_that_made_it_is_found(server, run, folder):
    server.fail("create_submission", "lost")

    # The list fails only once the submission is made.
    def lose_the_list(text):
        if "stored" in text:
            server.fail("submissions", 500)

    once = make_client(server, retries=0)
    message = refused(server, UploadError, run, client=once, on_step=lose_the_list)
    assert "whether it was made is unclear" in message
    assert read_record(folder / "submission.json").submission_id is None
    assert_submitted_once(server, run())
    assert server.operations.count("PUT") == 1


def test_other_ids_or_another_round_stop_the_submission(server, run, folder):
    again = "run download and predict again; nothing was submitted."
    server.files[LIVE] = live_parquet(ids_seed=5)
    said = "The ids changed since live_1401 was downloaded (30 new, 30 gone)"
    assert refused(server, SubmissionError, run) == f"{said}: {again}"
    assert server.operations == SUBMISSION_IN_ORDER[:4]
    server.requests.clear()
    server.round_number = 1402
    said = "live_1401.parquet is of round 1401, and the current round is 1402"
    assert refused(server, SubmissionError, run) == f"{said}: {again}"
    assert server.operations == SUBMISSION_IN_ORDER[:2]
    assert not (folder / "submission.json").exists()
    # Of other features there is a warning.
    server.round_number = 1401
    server.files[LIVE] = live_parquet(seed=1)
    with pytest.warns(UserWarning, match="changed its live file since live_1401"):
        assert_submitted_once(server, run())


def test_a_closed_round_is_warned_of_or_stops(server, run):
    server.is_open = False
    message = refused(server, SubmissionError, run, require_open=True)
    assert message.startswith("Round 1401 closed at 20")
    assert "UTC; nothing was submitted. Use --allow-closed" in message
    assert server.operations == SUBMISSION_IN_ORDER[:2]
    said = "will be queued for the next round. Use --require-open to stop instead."
    with pytest.warns(UserWarning, match=f"Round 1401 closed at .* UTC; .* {said}"):
        record = run()
    assert_submitted_once(server, record)
    assert not record.round_open


def test_a_queued_submission_may_have_other_ids(server, run):
    server.is_open = False
    server.hold = lambda content: content.replace(b"\nn", b"\nm")
    with pytest.warns(UserWarning, match="Round 1401 closed"):
        record = run()
    assert record.state == "submitted"
    assert not record.content_confirmed
    server.is_open = True
    message = refused(server, UploadError, run, again=True)
    assert "Numerai holds other predictions as submission submission-2" in message


def test_the_same_predictions_in_another_form_are_the_same(server, run):
    def rewritten(content):
        header, *lines = content.decode().split()
        rows = [line.split(",") for line in reversed(lines)]
        texts = [f"{label},{float(value):.9f}" for label, value in rows]
        return "\r\n".join([header, *texts]).encode()

    server.hold = rewritten
    assert run().content_confirmed


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"id,prediction\n", b"<html>"])
def test_another_content_at_numerai_is_an_error(server, run, content):
    server.hold = lambda _: content
    assert "Numerai holds other predictions" in refused(server, UploadError, run)


def test_a_file_that_cannot_be_fetched_back_is_not_confirmed(server, run):
    server.fail("submissionDownloadAuth", "errors", message="not ready")
    record = run()
    assert (record.state, record.content_confirmed) == ("submitted", False)
    assert any("was not compared" in text for text in server.said)


def test_a_submission_that_is_not_listed_is_an_error(server, run):
    server.fail("create_submission", "unlisted")
    said = "Numerai accepted the call but does not list submission submission-1"
    assert said in refused(server, UploadError, run)
    # It may be listed later, and is then found.
    server.unlisted.clear()
    assert_submitted_once(server, run())


def test_rules_are_checked_before_any_call(server, run, folder):
    path = folder / "predictions.csv"
    lines = path.read_text().splitlines()
    for content, error, said in [
        (lines[:-1], SubmissionError, "1 of 30 live ids have no prediction"),
        ([], DataError, "cannot be read as CSV"),
    ]:
        path.write_text("\n".join(content))
        assert said in refused(server, error, run)
    path.unlink()
    assert "No such file" in refused(server, DataError, run)
    with pytest.raises(ConfigError, match="are not set"):  # the key comes first
        run(client=NumeraiClient(api_url=server.url))
    write_predictions(folder)
    (folder / "live_1401.parquet").write_bytes(b"PAR1 and so on")
    assert "live_1401.parquet is cut off" in refused(server, DataError, run)
    assert server.requests == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *[(text, "") for text in ("", "{", "[]", "{}", "null", '{"format": 1}')],
        ('{"format": 2}', "its format is 2, not 1"),
        (None, "its state is 'lost'"),
    ],
)
def test_a_file_that_is_no_record_is_not_overwritten(server, run, folder, text, said):
    path = folder / "submission.json"
    if text is None:
        run()
        text = path.read_text().replace('"submitted",', '"lost",', 1)
        server.requests.clear()
    path.write_text(text)
    message = refused(server, DataError, run)
    assert "submission.json is no record of a submission" in message
    assert said in message
    assert path.read_text() == text
    assert server.requests == []
