"""The client reads Numerai's answers; nothing is half submitted or half fetched."""

import hashlib
import os
import re
from datetime import timedelta
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

from helpers.numerai import server as helper
from helpers.numerai.server import MODEL_ID, NOTES, PUBLIC_ID, SECRET_KEY, refused
from sklearn_era.numerai import api, export, report
from sklearn_era.numerai.api import KEY_NAMES, Numerai
from sklearn_era.numerai.download import Fetch
from sklearn_era.numerai.errors import ApiError, ConfigError, DataError, UploadError
from sklearn_era.numerai.http import HttpFailure

CSV = b"id,prediction\na,0.25\nb,0.75\n"
SHA256 = hashlib.sha256(CSV).hexdigest()
((NAME, CONTENT),) = NOTES.items()


def test_the_account_and_the_data(server, client):
    assert client.datasets() == [NAME]
    assert client.models() == {"my_model": MODEL_ID, "other": "22222222"}
    said = "Your account has no Classic model 'mymodel'. Your models: my_model, other."
    assert refused(server, ApiError, client.model_id, "mymodel") == said
    assert client.model_id("mine", {"mine": "id"}) == "id"
    server.models.clear()
    message = refused(server, ApiError, client.model_id, "signals_model")
    assert "no Classic model 'signals_model'. Create it at" in message


@pytest.mark.parametrize("offset", [-1000, 0, 5, 90_000])
def test_rounds_are_by_numerais_clock(server, client, offset):
    server.clock_offset = timedelta(hours=offset)
    current = client.current_round()
    assert (current.number, current.is_open) == (1401, True)
    left = current.closes - server.now()
    assert timedelta(minutes=59) < left < timedelta(minutes=61)
    assert abs(client.http.now() - server.now()) < timedelta(seconds=5)


def test_the_current_round_is_the_last_that_opened(server, client, monkeypatch):
    server.is_open = False
    for server.between_rounds in (False, True):
        current = client.current_round()
        assert (current.number, current.is_open) == (1401, False)
        assert current.closes < server.now()
    server.between_rounds, server.opens_in = False, 5 / 60
    current = client.current_round()
    assert (current.number, current.is_open) == (1401, False)
    # Where it is the only one that Numerai names.
    alone = {"number": 7, "openTime": "2999-01-01T00:00:00", "closeStakingTime": None}
    monkeypatch.setattr(server, "_rounds", lambda **_: [alone, None])
    current = client.current_round()
    assert (current.number, current.is_open) == (7, False)
    assert current.opens.isoformat() == "2999-01-01T00:00:00+00:00"
    server.fail("rounds", "shape", 2, value=[])
    assert refused(server, ApiError, client.current_round).endswith("returned none.")


ASKED = [x for module in (api, export, report) for x in vars(module).values()]
ASKED = [x for x in ASKED if isinstance(x, api.Query) and x.shape is not Any]


@pytest.mark.parametrize(
    "value", [5, "text", {}, [3], {"id": 3, "url": None}, [{"models": 3}], [[]], True]
)
@pytest.mark.parametrize("query", ASKED)
def test_an_answer_of_another_shape_is_one_error(query, value):
    if (query, value) == (api.DATASET, "text"):
        assert query.read({"dataset": value}) == value
        return
    said = f"^{query.step}: .* answered in an unknown format .*: upgrade sklearn-era"
    with pytest.raises(HttpFailure, match=said) as caught:
        query.read({query.call.partition("(")[0]: value})
    assert caught.value.unclear


@pytest.mark.parametrize("shape", ["id", [], {"models": [{"id": MODEL_ID}]}, None])
def test_what_becomes_of_submissions_is_told_where_numerai_does(server, client, shape):
    first = server.add_submission(MODEL_ID, CSV, "a.csv")
    server.is_open = False
    late = server.add_submission(MODEL_ID, b"other", "b.csv")
    server.submissions.reverse()
    listed = client.submissions(MODEL_ID)
    assert [x[-2:] for x in listed] == [(1402, "queued"), (1401, "on-time")]
    assert listed[0].inserted.isoformat() == "2026-11-21T12:02:00+00:00"
    assert client.submissions("22222222") == []
    for kind in ("errors", 500, "shape"):
        server.fail("latestSubmissions", kind, value=shape)
        told = [(x.id, *x[-2:]) for x in client.submissions(MODEL_ID)]
        assert told == [(late, None, None), (first, None, None)]


@pytest.fixture
def download(server, tmp_path):
    path = tmp_path / "data" / "notes_1401.txt"

    def run(**options):
        client = helper.make_client(server, retries=options.pop("retries", 2))
        Fetch(client, NAME, path, **{"round_number": 1401, **options})()
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]
        return path.read_bytes()

    run.path = path
    return run


def break_off(server):
    """Let a download fail for good once half of it is here."""
    server.fail("GET", "truncated")
    server.fail("GET", 404)


def ranges(server):
    return [r.headers.get("range") for r in server.requests if r.method == "GET"]


def test_the_file_of_a_round_is_asked_for(server, download):
    for number in (1401, None):
        assert download(round_number=number) == CONTENT
    asked = [r.variables["round"] for r in server.requests if r.operation == "dataset"]
    assert asked == [1401, None]


@pytest.mark.parametrize("any_range", [False, True])
def test_a_download_is_resumed(server, download, any_range, monkeypatch):
    monkeypatch.setattr("sklearn_era.numerai.download._PROGRESS", 1)
    server.any_range = any_range  # as a storage that does not know If-Range
    seen = []
    break_off(server)
    with pytest.raises(ApiError, match="HTTP 404"):
        download(retries=0, on_bytes=lambda *done: seen.append(done))
    (partial,) = download.path.parent.iterdir()
    assert partial.read_bytes() == CONTENT[: len(CONTENT) // 2]
    # As long as more of it comes in, it takes what attempts it needs.
    server.fail("GET", "truncated", times=9)
    assert download(retries=0, on_bytes=lambda *done: seen.append(done)) == CONTENT
    asked = ["bytes=511999-", "bytes=511999-", "bytes=767998-"]
    assert (ranges(server)[:4], len(ranges(server))) == ([None, *asked], 12)
    assert max(seen) == (len(CONTENT), len(CONTENT))
    assert all(total == len(CONTENT) for _, total in seen)


def test_a_whole_file_is_not_fetched_again_to_be_checked(server, download):
    with pytest.raises(KeyboardInterrupt):
        download(check=Mock(side_effect=KeyboardInterrupt))
    assert download() == CONTENT
    assert ranges(server) == [None, f"bytes={len(CONTENT) - 1}-"]


@pytest.mark.parametrize("any_range", [False, True])
@pytest.mark.parametrize("change", ["etag", "shorter", "longer", "weak", "none"])
def test_no_byte_of_another_file_is_kept(server, download, change, any_range):
    server.any_range = any_range
    break_off(server)
    with pytest.raises(ApiError):
        download()
    content = {"shorter": b"short", "longer": CONTENT[::-1] * 2}.get(change, CONTENT)
    server.files[NAME] = content
    server.etag_salt = "another" if change == "etag" else ""
    server.etags = {"weak": "weak", "none": ""}.get(change, "strong")
    assert download() == content


@pytest.mark.parametrize("etags", ["weak", ""])
def test_a_file_of_no_known_version_begins_anew(server, download, etags):
    server.etags = etags
    break_off(server)
    with pytest.raises(ApiError):
        download()
    assert list(download.path.parent.iterdir()) == []
    server.fail("GET", "truncated")
    assert download() == CONTENT
    assert ranges(server) == [None, None, None, None]
    server.fail("GET", "part")
    with pytest.raises(ApiError, match="sent only part of the file"):
        download()
    # Nor is another part added to what is here.
    server.etags = "strong"
    server.fail("GET", "truncated")
    server.fail("GET", "part")
    assert download() == CONTENT


@pytest.mark.parametrize("kind", [403, 503, "drop", "truncated"])
def test_each_attempt_asks_for_another_address(server, download, kind):
    server.fail("GET", kind)
    assert download() == CONTENT
    assert server.operations == ["dataset", "GET"] * 2


def test_what_cannot_be_downloaded_or_written_is_told(server, download, monkeypatch):
    for value, said in ((None, "Numerai does not offer it"), ("text", "is not https")):
        server.fail("dataset", "shape", value=value)
        with pytest.raises(ApiError, match=said):
            download()
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 9}))
    with pytest.raises(DataError, match=r"it needs 1,024,000 bytes, but .* has 9 left"):
        download()
    assert server.operations.count("GET") == 1
    download.path.parent.rmdir()
    download.path.parent.write_text("a file")
    with pytest.raises(DataError, match="cannot be written: File exists"):
        download()


@pytest.fixture
def upload(client):
    def run(known=(), client=client):
        name = client.store(CSV, "predictions.csv", MODEL_ID)
        return client.create(name, MODEL_ID, known, SHA256)

    return run


def contents(server):
    return [entry["content"] for entry in server.submissions]


def test_a_submission_is_stored_and_made(server, client, upload, monkeypatch):
    made = upload()
    assert (contents(server), client.fetch(made)) == ([CSV], CSV)
    monkeypatch.setenv("NUMERAI_COMPUTE_ID", "compute-1")
    monkeypatch.setenv("TRIGGER_ID", "trigger-1")
    server.fail("create_submission", 429, times=2)
    upload(known=[made])
    assert contents(server) == [CSV, CSV]
    before, put = (r for r in server.requests if r.operation == "PUT")
    first, *_, create = (r for r in server.requests if "source" in r.variables)
    assert "x_compute_id" not in before.headers
    assert put.headers["x_compute_id"] == "compute-1"
    assert create.variables["triggerId"] == "trigger-1"
    assert {first.variables["source"], create.variables["source"]} == {"sklearn-era"}
    assert "numerapi" not in str(server.requests)


@pytest.mark.parametrize("kind", [403, 503, "drop", "hang"])
def test_a_second_attempt_at_storing_asks_for_another_address(server, upload, kind):
    server.fail("PUT", kind)
    upload(client=helper.make_client(server, timeout=0.3 if kind == "hang" else 5.0))
    called = [*["submission_upload_auth", "PUT"] * 2, "create_submission"]
    assert server.operations == called
    first, second = (r.path for r in server.requests if r.method == "PUT")
    assert first != second
    assert contents(server) == [CSV]


@pytest.mark.parametrize("kind", [500, "drop", "lost", "garbage", "shape", "truncated"])
@pytest.mark.parametrize("made", [False, True])
def test_what_is_unclear_is_settled_by_numerais_list(server, upload, kind, made):
    if made and isinstance(kind, int):
        server.add_submission(MODEL_ID, CSV, "predictions-00000001.csv")
    server.fail("create_submission", kind, value={"id": None})
    upload()
    assert contents(server) == [CSV]
    assert "submissions" in server.operations


@pytest.mark.parametrize(("kinds", "said"), [
    # A refusal does not settle the call before it.
    *((x, "it is unclear whether it was") for x in ([500] * 3, [500, 400], ["lost"])),
    ([429, 429, 429], "answered HTTP 429; nothing was submitted."),
    *(([kind], "; nothing was submitted.") for kind in ("errors", 400, 401)),
])  # fmt: skip
def test_a_submission_that_fails_is_refused_or_unclear(server, upload, kinds, said):
    for kind in kinds:
        server.fail("create_submission", kind)
    if kinds == ["lost"]:
        server.fail("submissions", 500, times=99)
    assert said in refused(server, UploadError, upload)
    assert server.operations.count("create_submission") == len(kinds)
    assert ("submissions" in server.operations) == ("unclear" in said)
    assert contents(server) == [CSV] * (kinds == ["lost"])


def test_submissions_are_found_by_name_or_content(server, client):
    before = server.add_submission(MODEL_ID, CSV, "a.csv")
    other = server.add_submission(MODEL_ID, b"other", "b.csv")
    find = partial(client.find, MODEL_ID, sha256=SHA256)
    assert find([before], filename=None) is None
    assert (find([], filename=None), find([], filename="b.csv")) == (before, other)
    # One that Numerai does not offer is none of ours; one that cannot be had may be.
    server.fail("submissionDownloadAuth", "errors", times=2)
    assert find([], filename=None) is None
    server.fail("GET", 503, times=3)
    assert "HTTP 503" in refused(server, ApiError, find, [], None)
    assert "no such submission" in refused(server, ApiError, client.fetch, "nope")


@pytest.fixture
def no_keys(monkeypatch):
    for name in KEY_NAMES:
        monkeypatch.delenv(name, raising=False)


def complaint(folder, secret=SECRET_KEY):
    with pytest.raises(ConfigError) as caught:
        Numerai.from_environment(folder).check_keys()
    assert secret not in helper.everything_said(caught.value)
    return str(caught.value)


def test_missing_or_odd_keys_are_named(no_keys, monkeypatch, tmp_path):
    told = complaint(tmp_path)
    assert told.startswith(f"{' and '.join(KEY_NAMES)} are not set")
    for scope in ("upload_submission", "read_submission_info", "read_user_info"):
        assert scope in told
    monkeypatch.setenv(KEY_NAMES[0], SECRET_KEY)
    assert complaint(tmp_path).startswith(f"{KEY_NAMES[1]} is not set")
    for key in ("two words", '"quoted"', "new\nline", "Müller"):
        monkeypatch.setenv(KEY_NAMES[1], key)
        assert "NUMERAI_SECRET_KEY contains" in complaint(tmp_path, key)


@pytest.fixture
def settings(no_keys, tmp_path):
    path = tmp_path / ".env"
    path.touch(0o600)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("form", ["{}={}", "export {}='{}'  # mine", '{} = "{}"'])
def test_keys_in_a_file(settings, monkeypatch, server, form, encoding):
    pairs = zip(KEY_NAMES, (PUBLIC_ID, SECRET_KEY), strict=True)
    text = "\r\n".join(form.format(*pair) for pair in pairs)
    settings.write_bytes(text.encode(encoding))
    monkeypatch.setenv("SKLEARN_ERA_NUMERAI_API_URL", server.url)
    folder = settings.parent
    assert Numerai.from_environment(folder).model_id("my_model") == MODEL_ID
    # The environment comes first.
    monkeypatch.setenv("NUMERAI_SECRET_KEY", "FROMTHEENVIRONMENT")
    with pytest.raises(ApiError, match="HTTP 401") as caught:
        Numerai.from_environment(folder).models()
    assert "FROMTHEENVIRONMENT" not in helper.everything_said(caught.value)


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_keys_that_others_can_read_are_warned_of(settings, monkeypatch, mode):
    settings.write_text("\n".join(f"{name}={SECRET_KEY}" for name in KEY_NAMES))
    settings.chmod(mode)
    told = f"Other users can read {settings}, which contains your key: run 'chmod 600 "
    with pytest.warns(UserWarning, match=rf"^{re.escape(told)}\S+\.$") as caught:
        Numerai.from_environment(settings.parent).check_keys()
    assert len(caught) == 1
    # Nor are they where the file has none, or is not read.
    text = settings.read_text()
    settings.write_text("OTHER=1")
    Numerai.from_environment(settings.parent)
    settings.write_text(text)
    for name in KEY_NAMES:
        monkeypatch.setenv(name, SECRET_KEY)
    Numerai.from_environment(settings.parent).check_keys()


def test_a_file_that_holds_no_settings_is_not_shown(settings, tmp_path):
    settings.write_text(f"# keys\nNUMERAI_SECRET_KEY: {SECRET_KEY}\n= {PUBLIC_ID}\n")
    assert complaint(tmp_path).startswith(" and ".join(KEY_NAMES))
    settings.write_bytes(f"NUMERAI_PUBLIC_ID={SECRET_KEY}".encode("utf-16"))
    assert "is not UTF-8" in complaint(tmp_path)
