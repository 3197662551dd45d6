"""A submission, from file to confirmed: in order, once, and safe to repeat."""

import hashlib
import json
from contextlib import nullcontext
from datetime import datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numerai_tools import submissions as tools

from helpers.grids import slow
from helpers.numerai import refusal
from helpers.numerai.live import make_frame
from helpers.numerai.server import MODEL_ID, make_client
from sklearn_era.numerai import data, errors, submit
from sklearn_era.numerai.api import TournamentRound
from sklearn_era.numerai.config import Workspace
from sklearn_era.numerai.download import NotPublishedError
from sklearn_era.numerai.errors import DataError, SubmissionError, UploadError
from sklearn_era.numerai.files import file_sha256, lock, write_whole
from sklearn_era.numerai.http import Http
from sklearn_era.numerai.submit import check_submission, submission_csv

# The requests of a submission that meets with no trouble.
LISTING = ["submissions", "latestSubmissions"]
IN_ORDER = [
    "models", "rounds", "dataset", "GET", *LISTING, "submission_upload_auth", "PUT",
    "create_submission", *LISTING, "submissionDownloadAuth", "GET",
]  # fmt: skip
LIVE, OTHER = make_frame(30), "22222222"
LIVE_FILE = "v5.3/live.parquet"
AGAIN = "run download and predict again; nothing was submitted."


class Killed(BaseException):
    """The end of a process."""


class Desk:
    """A folder in which round 1401 was predicted, and what `submit` takes."""

    def __init__(self, root, server) -> None:
        self.server, self.workspace = server, Workspace(root, "v5.3")
        self.client, self.said = make_client(server), list[str]()
        self.reporter = SimpleNamespace(step=self.said.append)
        self.config = SimpleNamespace(submit=SimpleNamespace(require_open=False))
        self.folder = root / "rounds" / "1401" / "my_model"
        self.predictions = self.folder / "predictions.csv"
        self.record = self.folder / "submission.json"
        server.files[LIVE_FILE] = LIVE.to_parquet()
        self.write_live(1401, LIVE)
        self.predict()

    def write_live(self, number, frame):
        path = self.workspace.data_file("live", number)
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.to_parquet(path)
        return path

    def predict(self, seed=0, name="my_model"):
        values = np.random.default_rng(seed).uniform(size=len(LIVE))
        path = self.workspace.round_dir(1401, name) / "predictions.csv"
        frame = data.make_submission(pd.Series(values, LIVE.index))
        write_whole(path, submission_csv(frame))
        sha256 = file_sha256(path)
        record = {"predictions_sha256": sha256, "model_sha256": "ab" * 32}
        submit.PredictionRecord(**record).write(path.with_suffix(".json"))
        return sha256

    def submit(self, name="my_model", file=None, **options):
        return submit.submit(self, name, 1401, file, **options)

    def refusal(self, error, **options):
        return refusal(error, self.submit, **options)

    def assert_submits_once(self, *arguments):
        record = self.submit(*arguments)
        (made,) = self.server.submissions
        assert (record.state, record.submission_id) == ("submitted", made["id"])
        assert record.sha256 == hashlib.sha256(made["content"]).hexdigest()
        return record

    def kill(self, number, when="after"):
        """Submit, and be killed at a request."""
        left, send = iter(range(number)), Http._open

        def killed(*arguments, **options):
            is_last = next(left, None) is None
            if is_last and when == "before":
                raise Killed
            response = send(*arguments, **options)
            if is_last:
                response.close()
                raise Killed
            return response

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Http, "_open", killed)
            with pytest.raises(Killed):
                self.submit()


@pytest.fixture
def desk(tmp_path, server):
    return Desk(tmp_path, server)


def test_a_submission_goes_in_order_and_is_recorded(desk, server, monkeypatch):
    content, store = desk.predictions.read_bytes(), desk.client.store

    def store_late(*arguments):
        desk.predictions.write_text("another")
        return store(*arguments)

    monkeypatch.setattr(desk.client, "store", store_late)
    record = desk.assert_submits_once()
    assert server.operations == IN_ORDER
    assert server.submissions[0]["content"] == content, "what is sent was checked"
    assert record == submit.read_submission_record(desk.record)
    document = json.loads(desk.record.read_text())
    expected = {
        "format": 1, "round_number": 1401, "round_open": True, "model_name": "my_model",
        "model_sha256": "ab" * 32, "file": "predictions.csv", "n_rows": 30,
        "submission_id": "submission-1", "content_confirmed": True, "version": "v5.3",
        "submissions_before": [], "status": "on-time", "numerai_round": 1401,
    }  # fmt: skip
    assert expected.items() <= document.items()
    for name in ("started", "submitted"):
        assert datetime.fromisoformat(document[name]).utcoffset() == timedelta(0)
    told = f"Submitted: submission-1 (on-time). Record: {desk.record}"
    assert (len(desk.said), desk.said[-1]) == (5, told)


def test_what_was_submitted_is_not_uploaded_again(desk, server):
    first = desk.submit()
    server.requests.clear()
    assert desk.submit() == first
    assert server.operations == ["models", "rounds", *LISTING]
    assert "nothing to upload" in desk.said[-1]
    server.add_submission(MODEL_ID, b"", "new")
    with pytest.warns(UserWarning, match="newer one, submission-2: use --force"):
        assert desk.submit() == first


def test_what_makes_another_submission(desk, server):
    desk.submit()
    assert desk.submit(force=True).submission_id == "submission-2"
    sha256 = desk.predict(seed=1)
    record = desk.submit()
    assert (record.sha256, record.submission_id) == (sha256, "submission-3")
    desk.predict(name="other")
    assert desk.submit("other").submission_id == "submission-4"
    assert server.submissions[-1]["modelId"] == OTHER
    server.submissions.clear()  # Numerai has it no more
    desk.assert_submits_once("other")


@pytest.mark.parametrize("when", [slow("before"), "after"])
@pytest.mark.parametrize("number", range(len(IN_ORDER)))
def test_a_run_killed_at_any_request_can_be_repeated(desk, number, when):
    desk.kill(number, when)
    for _ in range(2):
        desk.assert_submits_once()


@pytest.mark.parametrize("number", range(4))
def test_a_run_killed_at_any_write_can_be_repeated(desk, number, monkeypatch):
    """Before and after the storage has the file; once it is made; once it is listed."""
    write, left = submit.SubmissionRecord.write, iter(range(number))

    def written(self, path):
        if next(left, None) is None:
            raise DataError(f"{path} cannot be written: No space left on device.")
        write(self, path)

    made = "Nothing was submitted"
    if number >= 2:
        made = "Numerai has submission submission-1 anyway"
    with monkeypatch.context() as patch:
        patch.setattr(submit.SubmissionRecord, "write", written)
        message = desk.refusal(DataError)
    assert message.endswith(f" device. {made}: fix that and run this command again.")
    assert len(desk.server.submissions) == (number >= 2)
    desk.assert_submits_once()


def test_a_list_that_lags_is_asked_again_before_an_upload(desk, server, monkeypatch):
    """An earlier run's submission is looked for a few times, by its file or its id."""
    desk.kill(IN_ORDER.index("create_submission"))
    for _ in range(2):
        server.unlisted, waits = {"submission-1"}, []

        def wait(*arguments, waits=waits):
            waits.append(arguments)
            server.unlisted -= {"submission-1"} if len(waits) == 2 else set()

        monkeypatch.setattr(Http, "wait", wait)
        desk.assert_submits_once()
        assert len(waits) == 2


def test_another_run_is_waited_for(desk, monkeypatch):
    assert submit.LOCK_WAIT > 300
    monkeypatch.setattr(submit, "LOCK_WAIT", 0.05)
    with lock(desk.folder / "submission.lock", "submitting"):
        said = f"Another run is submitting from {desk.folder}: wait for it to finish."
        assert desk.refusal(errors.BusyError) == said
    assert desk.server.operations == ["models"]
    desk.assert_submits_once()


def test_other_ids_or_another_round_stop_the_submission(desk, server):
    other = LIVE.rename(index=lambda label: f"m{label}")
    server.files[LIVE_FILE] = other.to_parquet()
    said = "The ids changed since live_1401 was downloaded (30 new, 30 removed)"
    assert desk.refusal(SubmissionError) == f"{said}: {AGAIN}"
    server.round_number = 1402
    said = "predictions.csv is for round 1401, but the current round is 1402"
    assert desk.refusal(SubmissionError) == f"{said}: {AGAIN}"
    assert not desk.record.exists()
    assert server.stored == {}
    # Other features cause a warning.
    server.round_number = 1401
    server.files[LIVE_FILE] = LIVE.assign(feature_a=np.int8(0)).to_parquet()
    with pytest.warns(UserWarning, match="changed its live file since live_1401"):
        desk.assert_submits_once()
    # A round's submission is not taken for the next one's.
    server.round_number = 1402
    assert desk.refusal(SubmissionError).endswith(AGAIN)


def test_the_live_file_of_an_earlier_round_is_not_submitted(desk):
    """Numerai may serve the last round's file for a while."""
    desk.write_live(1399, LIVE.rename(index=str.upper))
    desk.workspace.data_file("live_example_preds", 1400).write_bytes(b"")
    older = desk.write_live(1400, LIVE)
    for file in (None, desk.predictions):
        message = desk.refusal(NotPublishedError, file=file)
        assert "1401 are not published yet" in message
    assert desk.server.stored == {}
    older.unlink()
    desk.assert_submits_once()


def test_a_closed_round_is_warned_of_or_stops(desk, server):
    server.is_open = False
    message = desk.refusal(SubmissionError, require_open=True)
    closed, _, rest = message.partition(";")
    then = datetime.strptime(closed, "Round 1401 closed at %Y-%m-%d %H:%M UTC")
    hours = (server.now().replace(tzinfo=None) - then).total_seconds() / 3600
    assert 1 <= hours < 1.1
    how = "Use --allow-closed to queue it for the next round."
    assert rest == f" nothing was submitted. {how}"
    desk.config.submit.require_open = True
    assert desk.refusal(SubmissionError).startswith("Round 1401 closed at ")
    with pytest.warns(UserWarning, match=r"UTC; Numerai will queue this"):
        record = desk.submit(require_open=False)
    assert (record.state, record.round_open) == ("submitted", False)
    assert (record.status, record.numerai_round) == ("queued", 1402)
    # One that has not opened yet did not close.
    now = datetime.fromisoformat("2026-11-21T12:30:00Z")
    coming = TournamentRound(1401, now + timedelta(minutes=5), None, False)
    state = submit.round_state(coming, now)
    assert state == "Round 1401 opens at 2026-11-21 12:35 UTC"


UNKNOWN = {"status": None, "roundNumber": None}


@pytest.mark.parametrize(("listed", "status", "warned"), [
    (UNKNOWN, "on time", ""), (UNKNOWN | {"insertedAt": None}, None, ""),
    (UNKNOWN | {"insertedAt": "2999-01-01T00:00:00Z"}, "late", "counts it as late"),
    ({"status": "late"}, "late", "counts it as late"),
    ({"status": "queued", "roundNumber": 1402}, "queued", "for round 1402"),
    ({"status": "on_time", "roundNumber": 1401}, "on_time", ""),
])  # fmt: skip
@pytest.mark.filterwarnings("default")
def test_the_status_at_numerai(desk, listed, status, warned, recwarn):
    desk.server.listed = listed
    record = desk.submit()
    assert record.status == status
    assert record.numerai_round == listed.get("roundNumber", 1401)
    assert (status or "submission-1.") in desk.said[-1]
    warnings = [str(one.message) for one in recwarn]
    assert len(warnings) == bool(warned)
    assert all(warned in text for text in warnings)


def test_a_queued_submission_may_have_other_ids(desk, server):
    server.hold = lambda content: content.replace(b"\nn", b"\nm")
    said = "Submission submission-1 at Numerai differs from predictions.csv: submit it"
    assert desk.refusal(UploadError) == f"{said} again with --force."
    # By Numerai's list, or by our own look at the round.
    server.listed = {"roundNumber": 1402}
    for is_open, warned in ((True, "counts it for round 1402"), (False, "1401 closed")):
        server.is_open = is_open
        with pytest.warns(UserWarning, match=warned):
            record = desk.submit(force=True)
        assert (record.state, record.content_confirmed) == ("submitted", False)
        server.listed = UNKNOWN


def in_another_form(content):
    header, *lines = content.decode().split()
    rows = [line.split(",") for line in reversed(lines)]
    texts = [f"{label},{float(value):.9f}" for label, value in rows]
    return "\r\n".join([header, *texts]).encode()


@pytest.mark.parametrize(("hold", "is_same"), [
    (in_another_form, True), (None, None),
    *((lambda _, x=x: x, False) for x in (b"", b"\xff\xfe", b"id,prediction\n")),
    (lambda content: content.partition(b"\n")[0] + b"\nn1,0.5\n", False),
    (lambda content: content + b"more,0.5\n", False),
])  # fmt: skip
def test_what_numerai_holds_is_compared(desk, server, hold, is_same):
    if hold is None:
        server.fail("submissionDownloadAuth", "errors", message="Not ready")
    server.hold = hold or bytes
    if is_same is False:
        assert "differs from" in desk.refusal(UploadError)
        return
    record = desk.submit()
    assert (record.state, record.content_confirmed) == ("submitted", bool(is_same))
    told = [x for x in desk.said if "to compare it. Downloading the file: Num" in x]
    assert len(told) == (is_same is None)


@pytest.mark.filterwarnings("ignore:.* is not what 'predict' wrote")
def test_rules_are_checked_before_any_call(desk, server):
    text = desk.predictions.read_text()
    desk.predictions.write_text("\n".join(text.splitlines()[:-1]))
    assert "1 of 30 live ids have no" in desk.refusal(SubmissionError)
    desk.predictions.unlink()
    assert "run 'sklearn-era numerai predict' first" in desk.refusal(DataError)
    assert server.operations == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "null", '{"format": 1}', '{"format": 2}', "lost"]
)
def test_a_file_that_is_no_record_is_not_overwritten(desk, server, text):
    if text in ("lost", '{"format": 2}'):
        desk.submit()
        old, new = {"lost": ('"submitted"', '"lost"')}.get(text, (": 1,", ": 2,"))
        text = desk.record.read_text().replace(old, new, 1)
    desk.record.write_text(text)
    message = desk.refusal(DataError)
    assert "move the file away" in message or "upgrade sklearn-era" in message
    assert str(desk.record) in message
    assert desk.record.read_text() == text
    assert len(server.submissions) <= 1


IDS = [f"n{number:015x}" for number in range(8)]
VALUES = np.linspace(0.1, 0.9, 8)
FRAME = data.make_submission(pd.Series(VALUES, IDS))


def test_a_good_submission_passes_with_no_word():
    for good in (FRAME, FRAME.sample(frac=1, random_state=0)):
        assert check_submission(good, IDS) is None
    for edge in (0.0, 1.0, 1 + 1e-9, -1e-9):
        check_submission(FRAME.assign(prediction=[edge, *VALUES[1:]]), IDS)
    with pytest.warns(UserWarning, match="3 ids of the submission are not live"):
        check_submission(FRAME, IDS[3:])


def first(**values):
    """A change of the id or the prediction in the first row."""
    ((column, value),) = values.items()
    return lambda frame: frame.assign(**{column: [value, *frame[column][1:]]})


@pytest.mark.parametrize(("change", "said"), [
    (lambda f: f[:-2], f"file of this round. The first is {IDS[6]!r}"),
    (lambda f: pd.concat([f, f[:1]]), "1 of 9 ids are duplicates. The"),
    (first(id=None), "1 of 8 rows have no id. The first is"),
    (first(id=""), "1 of 8 rows have no id"),
    (first(prediction=np.nan), "1 of 8 predictions are not"),
    (first(prediction=np.inf), "not finite. The first is 'n0000"),
    (first(prediction=1.5), "1 of 8 predictions are not between 0 and 1 (they"),
    (first(prediction=-2.0), "rank them, for example with predictions.rank(pct=T"),
    (lambda f: f.assign(prediction=0.5), "8 of 8 predictions are equal (0.5): the"),
    (lambda f: f.assign(prediction=0.5 + VALUES * 1e-12), "tools rejects it: inv"),
    (lambda f: f[:0], "8 of 8 live ids have no prediction"),
])  # fmt: skip
def test_a_broken_rule_is_named(change, said):
    broken = change(FRAME)
    assert said in refusal(SubmissionError, check_submission, broken, IDS)
    with pytest.raises((AssertionError, TypeError)):
        tools.validate_submission_numerai(pd.Series(IDS), broken)


NUMBERS = st.floats(-0.5, 1.5, width=32) | st.just(np.nan)
SOME_IDS = st.lists(st.sampled_from([*IDS, "other"]), min_size=8, max_size=8)


@given(npst.arrays(np.float64, 8, elements=NUMBERS), SOME_IDS | st.just(IDS))
@pytest.mark.filterwarnings("ignore:.*ids of the submission are not live")
def test_what_passes_here_passes_at_numerai(values, ids):
    frame, refused = pd.DataFrame({"id": ids, "prediction": values}), nullcontext()
    try:
        check_submission(frame, IDS)
    except SubmissionError:
        refused = pytest.raises(AssertionError)
    with refused:
        tools.validate_submission_numerai(pd.Series(IDS), frame)


@given(values=npst.arrays(np.float64, 8, elements=st.floats(0, 1)))
def test_a_file_holds_every_digit(values, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "predictions.csv"
    frame = FRAME.assign(prediction=values)
    path.write_bytes(submission_csv(frame))
    read = data.read_predictions(path)
    pd.testing.assert_frame_equal(read, frame, check_exact=True, check_dtype=False)
    # Its bytes are those that are sent.
    assert submission_csv(read) == path.read_bytes()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("change", [
    lambda f: f, lambda f: f.rename(columns={"prediction": "probability"}),
    lambda f: f.set_index("id"), lambda f: f.set_index("id").rename_axis(None),
    lambda f: f.assign(era="X")[["era", "prediction", "id"]],
], ids=["usual", "probability", "index", "unnamed", "others"])  # fmt: skip
def test_the_file_of_any_model_is_read(change, suffix, tmp_path):
    path, frame = tmp_path / f"mine.{suffix}", change(FRAME)
    if suffix == "csv":
        frame.to_csv(path, index=not isinstance(frame.index, pd.RangeIndex))
    else:
        frame.to_parquet(path)
    pd.testing.assert_frame_equal(data.read_predictions(path), FRAME, check_dtype=False)


def test_ids_are_texts_whatever_they_say():
    content = b"id,prediction\nNA,0.1\n001,0.2\n1e5,0.3\nNone,nan\n"
    frame = data.parse_predictions(content, "mine.csv")
    assert frame["id"].tolist() == ["NA", "001", "1e5", "None"]
    message = refusal(SubmissionError, check_submission, frame, frame["id"])
    assert "not finite. The first is 'None'" in message


@pytest.mark.parametrize(("content", "error", "said"), [
    (b"", DataError, "mine.csv cannot be read as CSV: No columns to parse"),
    (b"id,prediction\n\xff,0.5\n", DataError, "read as CSV: 'utf-8' codec"),
    (b'id,prediction\n"a,0.5\n', DataError, "cannot be read as CSV"),
    (b"PAR1 and so on", DataError, "magic bytes not found"),
    (b"ID,prediction\na,0.5\n", SubmissionError, "column 'id', but has 'ID', 'p"),
    (b"id,x,y\na,1,2\n", SubmissionError, "on' or 'probability', but has 'x"),
    (b"id,prediction,probability\na,1,2\n", SubmissionError, "but has both"),
    (b"id,prediction\na,0.5,3\n", SubmissionError, "give each column a name"),
    (b"id,prediction\na,high\n", SubmissionError, "'prediction' is not numeric"),
    (None, DataError, "cannot be read: No such file"),
])  # fmt: skip
def test_a_damaged_file_is_told_in_a_sentence(content, error, said, tmp_path):
    path = tmp_path / "mine.csv"
    if content is not None:
        path.write_bytes(content)
    message = refusal(error, data.read_predictions, path)
    assert said in message
    assert str(path) in message


def test_a_parquet_file_without_its_magic_bytes_is_called_damaged(tmp_path):
    path = tmp_path / "mine.parquet"
    FRAME.to_parquet(path)
    content = path.read_bytes()
    for broken in (b"XXXX" + content[4:], content[:-4] + b"XXXX", b"\xff" * 9, b""):
        path.write_bytes(broken)
        message = refusal(DataError, data.read_predictions, path)
        assert message.startswith(f"{path} is damaged (Parquet ")
