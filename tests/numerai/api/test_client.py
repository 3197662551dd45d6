"""The client: failures told apart, nothing half submitted, nothing given away."""

import datetime
import hashlib
import logging
import pickle
import socket
import sys
import time
from functools import partial

import numerapi
import pytest

from helpers.numerai.server import (
    MODEL_ID,
    PUBLIC_ID,
    SECRET_KEY,
    assert_discreet,
    discreet_server,
    everything_said,
    make_client,
    refused,
)
from sklearn_era.numerai.api.client import NumeraiClient
from sklearn_era.numerai.api.credentials import SITE, Keys, Secret, read_keys
from sklearn_era.numerai.api.transport import Transport
from sklearn_era.numerai.errors import ApiError, ConfigError, DataError, UploadError

KEY_NAMES = ("NUMERAI_PUBLIC_ID", "NUMERAI_SECRET_KEY")
KEYS = (PUBLIC_ID, SECRET_KEY)

CSV = b"id,prediction\na,0.25\nb,0.75\n"
SHA256 = hashlib.sha256(CSV).hexdigest()


@pytest.fixture
def server(caplog, capfd):
    files = {"v5.3/notes.txt": b"some notes" * 100}
    with discreet_server(files, None, caplog, capfd) as server:
        yield server


@pytest.fixture
def client(server):
    return make_client(server)


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_bytes(CSV)
    return path


@pytest.fixture
def upload(client, csv):
    return partial(client.upload_submission, csv, MODEL_ID)


def test_numerapi_itself_is_served_the_same(server, csv, tmp_path, monkeypatch):
    """The stand-in speaks what numerapi expects, so our calls are those of it."""
    monkeypatch.setattr("numerapi.base_api.API_TOURNAMENT_URL", server.url)
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    theirs = numerapi.NumerAPI(show_progress_bars=False)
    ours = make_client(server)
    assert theirs.get_current_round() == ours.current_round().number == 1401
    assert theirs.check_round_open() is ours.current_round().is_open is True
    assert theirs.get_models()["my_model"] == ours.model_id("my_model")
    assert theirs.list_datasets() == ours.list_datasets()

    server.requests.clear()
    made = theirs.upload_predictions(str(csv), model_id=MODEL_ID)
    of_theirs, server.requests = server.requests, []
    ours.upload_submission(csv, MODEL_ID, known=[])
    of_theirs, of_ours = (
        [(r.operation, r.variables.keys(), r.body == CSV) for r in requests]
        for requests in (of_theirs, server.requests)
    )
    assert of_ours == of_theirs
    assert [name for name, _, is_csv in of_ours if is_csv] == ["PUT"]
    theirs.download_submission(made, dest_path=str(tmp_path / "back.csv"))
    assert ours.download_submission(made) == (tmp_path / "back.csv").read_bytes() == CSV
    server.signatures.clear()  # numerapi's calls have them logged


def test_the_round_says_whether_and_until_when_it_is_open(server, client):
    now = datetime.datetime.now(datetime.UTC)
    current = client.current_round()
    assert current.is_open
    assert datetime.timedelta(minutes=59) < current.close_time - now
    server.is_open = False
    # Between two rounds, the last that opened is the current one.
    for server.between_rounds in (False, True):
        current = client.current_round()
        assert (current.number, current.is_open) == (1401, False)
        assert current.close_time < now


def test_an_unknown_model_is_answered_by_the_known_ones(server, client, monkeypatch):
    message = refused(server, ApiError, client.model_id, "mymodel")
    assert message == "No Classic model named 'mymodel'. Your models: my_model, other."
    # One of another tournament is none.
    message = refused(server, ApiError, client.model_id, "signals_model")
    assert "No Classic model" in message
    monkeypatch.setattr(server, "_models", lambda *_: {"account": {"models": []}})
    message = refused(server, ApiError, client.model_id, "my_model")
    assert "The account has none: add one at" in message


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_called_so(server, client, status):
    said = f"API answered HTTP {status}: check NUMERAI_PUBLIC_ID and NUMERAI_SECRET_KEY"
    server.fail("models", status)
    assert said in refused(server, ApiError, client.model_id, "my_model")
    assert server.operations == ["models"], "a refused key is not sent again"
    # Where no key was sent, there is no advice on keys.
    server.fail("listDatasets", status)
    message = refused(server, ApiError, client.list_datasets)
    assert message.endswith(f"HTTP {status}.")


def test_another_key_is_refused_by_name_only(server):
    keys = Keys(Secret("a"), Secret("ANOTHERSECRET"))
    other = NumeraiClient(keys, api_url=server.url)
    with pytest.raises(ApiError, match="HTTP 401: check NUMERAI_PUBLIC_ID") as caught:
        other.model_id("my_model")
    assert "ANOTHERSECRET" not in everything_said(caught.value)


def test_errors_of_graphql_are_passed_on_without_secrets_and_controls(server, client):
    address = server.sign("/data/x")
    said = f"no scope for {SECRET_KEY}\nat {address} \x1b[2J\x07"
    server.fail("submissions", "errors", message=said)
    assert refused(server, ApiError, client.submission_ids, MODEL_ID) == (
        "Listing the submissions: Numerai's API refused: no scope for *** at <address> "
        "?[2J?; and another."
    )
    assert len(server.requests) == 1


FINAL = (400, 404, "errors", "garbage")


@pytest.mark.parametrize("kind", [500, 502, 429, "drop", "lost", *FINAL])
def test_only_a_failure_that_may_pass_is_tried_again(server, client, kind):
    n_attempts = 1 if kind in FINAL else 3
    server.fail("models", kind, times=n_attempts)
    message = refused(server, ApiError, client.model_id, "my_model")
    assert ("HTTP" in message) == isinstance(kind, int)
    assert server.operations == ["models"] * n_attempts
    server.fail("models", kind, times=n_attempts - 1)
    assert client.model_id("my_model") == MODEL_ID


def test_attempts_wait_twice_as_long_each_time_up_to_a_minute(server, monkeypatch):
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)
    server.fail("rounds", 500, times=3)
    make_client(server, retries=3, backoff=0.5).current_round()
    transport = Transport(timeout=1.0, retries=2000, backoff=1.0)
    for attempt in (0, 1, 6, 7, 2000):
        transport.wait(attempt)
    assert waits == [0.5, 1.0, 2.0, 1, 2, 64, 64, 64]


def test_what_cannot_be_called_is_named_without_its_address(server, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    client = NumeraiClient(api_url=f"http://127.0.0.1:{port}", retries=0)
    message = refused(server, ApiError, client.current_round)
    assert "could not be reached" in message
    assert str(port) not in message
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/no/such/bundle")
    client = NumeraiClient(api_url="https://numerai.invalid", retries=0)
    message = refused(server, ApiError, client.current_round)
    assert "could not be called" in message
    assert message.endswith("invalid path: /no/such/bundle).")


def test_data_of_another_form_are_an_error_of_ours(server, client, monkeypatch):
    for value in (None, [3]):
        answer = dict.fromkeys(["account", "listDatasets", "rounds"], value)
        for operation in ("models", "listDatasets", "rounds"):
            monkeypatch.setattr(server, f"_{operation}", lambda *_, a=answer: a)
        refused(server, ApiError, client.model_id, "my_model")
        refused(server, ApiError, client.current_round)
        if value is None:
            refused(server, ApiError, client.list_datasets)
    assert client.list_datasets() == ["3"]


def test_numerais_cluster_is_told_which_run_it_was(server, upload, monkeypatch):
    upload(known=[])
    monkeypatch.setenv("NUMERAI_COMPUTE_ID", "compute-1")
    monkeypatch.setenv("TRIGGER_ID", "trigger-1")
    upload(known=[])
    _, before, _, _, put, create = server.requests
    assert "x_compute_id" not in before.headers
    assert put.headers["x_compute_id"] == "compute-1"
    assert create.variables["triggerId"] == "trigger-1"


@pytest.mark.parametrize("kind", [403, 503, "drop", "hang"])
def test_a_second_attempt_at_storing_asks_for_another_address(server, csv, kind):
    server.fail("PUT", kind)
    timeout = 0.3 if kind == "hang" else 5.0
    make_client(server, timeout=timeout).upload_submission(csv, MODEL_ID, known=[])
    called = [*["submission_upload_auth", "PUT"] * 2, "create_submission"]
    assert server.operations == called
    first, second = (r.path for r in server.requests if r.method == "PUT")
    assert first != second
    assert [entry["content"] for entry in server.submissions] == [CSV]


def test_a_submission_made_meanwhile_is_not_taken_for_ours(server, upload):
    other = MODEL_ID, b"id,prediction\n", "another.csv"
    server.fail("create_submission", "drop")
    made = upload(on_stored=lambda _: server.add_submission(*other))
    assert [entry["content"] for entry in server.submissions][1:] == [CSV]
    assert server.submissions[1]["id"] == made


def test_a_submission_that_cannot_be_told_from_none_is_called_unclear(server, upload):
    said = "whether it was made is unclear"
    server.fail("create_submission", 500, times=3)
    assert said in refused(server, UploadError, upload)
    assert server.operations.count("create_submission") == 3

    server.fail("create_submission", "lost")
    server.fail("submissions", 500, times=99)
    assert said in refused(server, UploadError, upload, known=[])
    assert server.operations.count("create_submission") == 4


def test_a_refused_submission_is_final(server, upload):
    for n_calls, kind in enumerate(("errors", 400, 401), start=1):
        server.fail("create_submission", kind)
        assert refused(server, UploadError, upload).endswith("nothing was submitted.")
        assert server.operations.count("create_submission") == n_calls
    assert server.submissions == []


def test_a_file_that_changed_since_its_check_stays_here(server, upload, csv):
    csv.write_bytes(CSV + b"c,0.5\n")
    message = refused(server, UploadError, upload, expected_sha256=SHA256)
    assert "has changed since it was checked" in message
    assert server.requests == []
    csv.unlink()
    assert "No such file" in refused(server, DataError, upload)


def test_submissions_are_found_by_name_or_content_and_listed(server, client):
    before = server.add_submission(MODEL_ID, CSV, "a.csv")
    other = server.add_submission(MODEL_ID, b"other", "b.csv")

    find = partial(client.find_submission, MODEL_ID, sha256=SHA256)
    assert find(known=[before], filename=None) is None
    assert find(known=[], filename=None) == before
    assert find(known=[], filename="b.csv") == other
    server.fail("submissionDownloadAuth", "errors", times=2)
    assert find(known=[], filename=None) is None
    # They are listed newest first.
    server.submissions.reverse()
    listed = client.submission_ids(MODEL_ID)
    assert [entry.submission_id for entry in listed] == [other, before]
    assert client.submission_ids("22222222") == []
    message = refused(server, ApiError, client.download_submission, "nope")
    assert "no such submission" in message


def test_keys_are_asked_for_when_they_are_needed(server):
    client = NumeraiClient(api_url=server.url)
    assert client.list_datasets() == ["v5.3/notes.txt"]
    with pytest.raises(ConfigError, match="NUMERAI_PUBLIC_ID and NUMERAI_SECRET_KEY"):
        client.model_id("my_model")
    assert server.operations == ["listDatasets"]


@pytest.fixture
def no_keys(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in KEY_NAMES:
        monkeypatch.delenv(name, raising=False)


def no_key(secret=SECRET_KEY):
    """What is said where there is no key to send."""
    with pytest.raises(ConfigError) as caught:
        NumeraiClient.from_environment().check_keys()
    assert secret not in everything_said(caught.value)
    return str(caught.value)


def test_a_missing_half_of_the_key_is_named(no_keys, monkeypatch):
    advice = f"Create a key at {SITE}/account with upload_submission scope."
    assert no_key() == f"{' and '.join(KEY_NAMES)} are not set. {advice}"
    for there, lacking in (KEY_NAMES, KEY_NAMES[::-1]):
        with monkeypatch.context() as patch:
            patch.setenv(there, SECRET_KEY)
            assert no_key() == f"{lacking} is not set ({there} is). {advice}"


@pytest.mark.parametrize("key", ["two words", '"quoted"', "new\nline", "Müller"])
def test_a_key_that_cannot_be_one_is_not_shown(no_keys, monkeypatch, key):
    monkeypatch.setenv("NUMERAI_PUBLIC_ID", "PUB")
    monkeypatch.setenv("NUMERAI_SECRET_KEY", key)
    assert "NUMERAI_SECRET_KEY holds" in no_key(key)


def write_env(path, form="{}={}", encoding="utf-8"):
    lines = (form.format(*item) for item in zip(KEY_NAMES, KEYS, strict=True))
    path.write_bytes("\r\n".join(lines).encode(encoding))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("form", ["{}={}", "export {}='{}'  # mine", '{} = "{}"'])
def test_keys_may_be_in_a_file_of_settings(no_keys, tmp_path, form, encoding):
    write_env(tmp_path / ".env", form, encoding)
    keys = read_keys()
    assert (keys.public_id.reveal(), keys.secret_key.reveal()) == KEYS


def test_the_environment_comes_before_a_file(no_keys, tmp_path, monkeypatch, server):
    write_env(tmp_path / "named.env")
    client = NumeraiClient.from_environment(tmp_path / "named.env", server.url)
    assert client.model_id("my_model") == MODEL_ID
    write_env(tmp_path / ".env")
    monkeypatch.setenv("NUMERAI_SECRET_KEY", "FROMTHEENVIRONMENT")
    assert read_keys().secret_key.reveal() == "FROMTHEENVIRONMENT"
    assert read_keys().public_id.reveal() == PUBLIC_ID
    monkeypatch.setitem(sys.modules, "dotenv", None)
    assert "pip install python-dotenv" in no_key("FROMTHEENVIRONMENT")


def test_a_file_that_holds_no_settings_is_not_shown(no_keys, tmp_path, caplog):
    path = tmp_path / ".env"
    path.write_text(f"# keys\nNUMERAI_SECRET_KEY: {SECRET_KEY}\n= {PUBLIC_ID}\n")
    assert no_key().endswith(
        ".env was read as well, and is not of the form NAME=value in line 2."
    )
    assert not [entry for entry in caplog.records if entry.name.startswith("dotenv")]
    assert not logging.getLogger("dotenv.main").filters
    setting = f"NUMERAI_PUBLIC_ID={SECRET_KEY}"
    said = ".env cannot be read as a file of settings (it is not UTF-8): save it as pl"
    for content in (setting.encode("utf-16"), b"\xff\xfe" + setting.encode()):
        path.write_bytes(content)
        assert no_key().startswith(said)


def test_neither_keys_nor_a_client_show_or_pickle_the_secret(server, client):
    keys = Keys(Secret(PUBLIC_ID), Secret(SECRET_KEY))
    told = [repr(keys), str(keys), repr(client), str(client), repr(keys.token())]
    assert_discreet(server, *told)
    for holder in (keys, client):
        with pytest.raises(TypeError, match="secret is not pickled"):
            pickle.dumps(holder)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org", "ftp://127.0.0.1", "http://127.0.0.1.example.org", "x",
        "", "http://[::1", "127.0.0.1:80", "http://user:pass@numerai.invalid/x",
        "https://",
    ],
)  # fmt: skip
def test_a_key_is_sent_by_https_or_to_this_machine(url):
    with pytest.raises(ConfigError, match="is refused: a key is sent by https") as told:
        NumeraiClient(api_url=url)
    assert "it is that of SKLEARN_ERA_NUMERAI_API_URL" in str(told.value)
    assert "pass" not in str(told.value)


def test_the_address_of_numerapi_is_used_and_checked(server, monkeypatch):
    monkeypatch.setattr("numerapi.base_api.API_TOURNAMENT_URL", server.url)
    assert NumeraiClient().current_round().number == 1401
    monkeypatch.setattr("numerapi.base_api.API_TOURNAMENT_URL", "http://example.org")
    with pytest.raises(ConfigError, match=r"example\.org is refused"):
        NumeraiClient().current_round()


def test_neither_the_netrc_file_nor_the_logging_matters(client, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("default login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    # The program's logging is left alone.
    monkeypatch.setattr(logging, "basicConfig", None)
    filters = list(logging.getLogger("urllib3.connectionpool").filters)
    assert client.model_id("my_model") == MODEL_ID
    assert logging.getLogger("urllib3.connectionpool").filters == filters


def test_numbers_out_of_range_are_refused():
    for timeout in (0.0, -1.0, 1e300, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match=r"timeout must be .* 86400, got"):
            NumeraiClient(timeout=timeout)
    for name in ("retries", "backoff"):
        with pytest.raises(ConfigError, match=f"{name} must be 0 or more, got -1"):
            NumeraiClient(**{name: -1})
