"""The client: failures told apart, nothing half submitted, nothing given away."""

import datetime
import hashlib
import logging
import pickle
import socket
import sys
import time

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
from sklearn_era.numerai.errors import (
    ApiError,
    ConfigError,
    DataError,
    NumeraiError,
    UploadError,
)

KEY_NAMES = ("NUMERAI_PUBLIC_ID", "NUMERAI_SECRET_KEY")
KEYS = (PUBLIC_ID, SECRET_KEY)
TIMEOUTS = [0.0, -1.0, 1e300, float("inf"), float("nan")]
CSV = b"id,prediction\na,0.25\nb,0.75\n"


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
    def upload(**options):
        return client.upload_submission(csv, MODEL_ID, **options)

    return upload


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
    of_theirs = [(r.operation, r.variables.keys()) for r in server.requests]
    bodies = [r.body for r in server.requests if r.method == "PUT"]
    server.requests.clear()
    ours.upload_submission(csv, MODEL_ID, known=[])
    of_ours = [(r.operation, r.variables.keys()) for r in server.requests]
    bodies += [r.body for r in server.requests if r.method == "PUT"]
    assert of_ours == of_theirs
    assert bodies == [CSV, CSV]
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


@pytest.mark.parametrize("kind", [500, 502, 429, "drop", "lost"])
def test_a_failure_that_may_pass_is_tried_again(server, client, kind):
    server.fail("models", kind, times=2)
    assert client.model_id("my_model") == MODEL_ID
    assert server.operations == ["models"] * 3
    server.fail("models", kind, times=3)
    message = refused(server, ApiError, client.model_id, "my_model")
    assert ("HTTP" in message) == isinstance(kind, int)


@pytest.mark.parametrize("kind", [400, 404, "errors", "garbage"])
def test_another_failure_is_final(server, client, kind):
    server.fail("listDatasets", kind)
    refused(server, ApiError, client.list_datasets)
    assert len(server.requests) == 1


def test_an_answer_that_does_not_come_is_given_up(server):
    client = make_client(server, timeout=0.1, retries=1)
    server.fail("rounds", "hang", times=2)
    message = refused(server, ApiError, client.current_round)
    assert "did not answer within 0.1 seconds" in message
    assert server.operations == ["rounds"] * 2
    assert client.current_round().number == 1401


def test_attempts_wait_twice_as_long_each_time_up_to_a_minute(server, monkeypatch):
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)
    server.fail("rounds", 500, times=3)
    make_client(server, retries=3, backoff=0.5).current_round()
    assert waits == [0.5, 1.0, 2.0]
    waits.clear()
    transport = Transport(timeout=1.0, retries=2000, backoff=1.0)
    for attempt in (0, 1, 6, 7, 2000):
        transport.wait(attempt)
    assert waits == [1, 2, 64, 64, 64]


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


@pytest.mark.parametrize(
    ("operation", "field", "call"),
    [
        ("models", "account", lambda c: c.model_id("my_model")),
        ("listDatasets", "listDatasets", lambda c: c.list_datasets()),
        ("rounds", "rounds", lambda c: c.current_round()),
    ],
)
@pytest.mark.parametrize("value", [None, [3]])
def test_data_of_another_form_are_an_error_of_ours(
    server, client, monkeypatch, operation, field, call, value
):
    monkeypatch.setattr(server, f"_{operation}", lambda *_: {field: value})
    if operation == "listDatasets" and value == [3]:
        assert call(client) == ["3"]
    else:
        refused(server, ApiError, lambda: call(client))


def test_an_upload_stores_first_and_then_submits(server, upload, client):
    stored = []
    made = upload(on_stored=stored.append)
    called = ["submissions", "submission_upload_auth", "PUT", "create_submission"]
    assert server.operations == called
    (listed,) = client.submission_ids(MODEL_ID)
    assert (listed.submission_id, listed.filename) == (made, stored[0])
    assert client.download_submission(made) == CSV


def test_numerais_cluster_is_told_which_run_it_was(server, upload, monkeypatch):
    upload(known=[])
    monkeypatch.setenv("NUMERAI_COMPUTE_ID", "compute-1")
    monkeypatch.setenv("TRIGGER_ID", "trigger-1")
    upload(known=[])
    _, before, _, _, put, create = server.requests
    assert "x_compute_id" not in before.headers
    assert put.headers["x_compute_id"] == "compute-1"
    assert create.variables["triggerId"] == "trigger-1"


@pytest.mark.parametrize("status", [403, 500])
def test_a_file_that_the_storage_refuses_is_not_submitted(server, upload, status):
    server.fail("PUT", status, times=9)
    message = refused(server, UploadError, upload)
    assert f"the storage refused the file (HTTP {status}); nothing was sub" in message
    assert "create_submission" not in server.operations
    assert server.submissions == []


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


def test_an_upload_that_is_not_allowed_says_why(server, upload):
    server.fail("submission_upload_auth", "errors", message="no upload scope")
    said = "Uploading: Numerai's API refused: no upload scope"
    assert said in refused(server, ApiError, upload)
    assert "PUT" not in server.operations


@pytest.mark.parametrize("kind", ["lost", "drop", 500, "garbage"])
def test_a_submission_with_a_lost_answer_is_not_made_twice(server, upload, kind):
    server.fail("create_submission", kind)
    made = upload()
    assert [entry["id"] for entry in server.submissions] == [made]
    assert server.operations.count("create_submission") == (1 if kind == "lost" else 2)


def test_a_submission_made_meanwhile_is_not_taken_for_ours(server, upload):
    def someone_else(_):
        server.add_submission(MODEL_ID, b"id,prediction\n", "another.csv")

    server.fail("create_submission", "drop")
    made = upload(on_stored=someone_else)
    assert [entry["content"] for entry in server.submissions][1:] == [CSV]
    assert server.submissions[1]["id"] == made


def test_a_submission_that_cannot_be_told_from_none_is_called_unclear(server, upload):
    server.fail("create_submission", 500, times=9)
    message = refused(server, UploadError, upload)
    assert "whether it was made is unclear" in message
    assert server.operations.count("create_submission") == 3

    server.faults.clear()
    server.fail("create_submission", "lost")
    server.requests.clear()
    server.fail("submissions", 500, times=99)
    message = refused(server, UploadError, upload, known=[])
    assert "whether it was made is unclear" in message
    assert server.operations.count("create_submission") == 1


@pytest.mark.parametrize("kind", ["errors", 400, 401])
def test_a_refused_submission_is_final(server, upload, kind):
    server.fail("create_submission", kind)
    message = refused(server, UploadError, upload)
    assert message.endswith("nothing was submitted.")
    assert server.operations.count("create_submission") == 1
    assert server.submissions == []


def test_a_file_that_changed_since_its_check_stays_here(server, upload, csv):
    sha256 = hashlib.sha256(CSV).hexdigest()
    csv.write_bytes(CSV + b"c,0.5\n")
    message = refused(server, UploadError, upload, expected_sha256=sha256)
    assert "has changed since it was checked" in message
    assert server.requests == []
    csv.unlink()
    assert "No such file" in refused(server, DataError, upload)


def test_a_submission_is_found_by_its_name_or_its_content(server, client):
    sha256 = hashlib.sha256(CSV).hexdigest()
    before = server.add_submission(MODEL_ID, CSV, "a.csv")
    other = server.add_submission(MODEL_ID, b"other", "b.csv")

    def find(known, filename):
        options = {"known": known, "filename": filename, "sha256": sha256}
        return client.find_submission(MODEL_ID, **options)

    assert find([before], None) is None
    assert find([], None) == before
    assert find([], "b.csv") == other
    server.fail("submissionDownloadAuth", "errors", times=2)
    assert find([], None) is None


def test_submissions_are_listed_newest_first(server, client):
    made = [server.add_submission(MODEL_ID, CSV, f"{i}.csv") for i in range(3)]
    server.submissions.reverse()
    listed = client.submission_ids(MODEL_ID)
    assert [entry.submission_id for entry in listed] == made[::-1]
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


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ("NUMERAI_PUBLIC_ID", "NUMERAI_SECRET_KEY is not set (NUMERAI_PUBLIC_ID is)"),
        ("NUMERAI_SECRET_KEY", "NUMERAI_PUBLIC_ID is not set (NUMERAI_SECRET_KEY is)"),
        ("OTHER", "NUMERAI_PUBLIC_ID and NUMERAI_SECRET_KEY are not set"),
    ],
)
def test_a_missing_half_of_the_key_is_named(no_keys, monkeypatch, there, said):
    monkeypatch.setenv(there, SECRET_KEY)
    advice = f"Create a key at {SITE}/account with upload_submission scope."
    assert no_key() == f"{said}. {advice}"


@pytest.mark.parametrize("key", ["two words", '"quoted"', "new\nline", "Müller"])
def test_a_key_that_cannot_be_one_is_not_shown(no_keys, monkeypatch, key):
    """An HTTP library would put it into its complaint."""
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


def test_a_file_that_holds_no_settings_is_not_shown(no_keys, tmp_path, caplog):
    path = tmp_path / ".env"
    path.write_text(f"# keys\nNUMERAI_SECRET_KEY: {SECRET_KEY}\n= {PUBLIC_ID}\n")
    assert no_key().endswith(
        ".env was read as well, and is not of the form NAME=value in line 2."
    )
    assert not [entry for entry in caplog.records if entry.name.startswith("dotenv")]
    assert not logging.getLogger("dotenv.main").filters
    setting = f"NUMERAI_PUBLIC_ID={SECRET_KEY}"
    for content in (setting.encode("utf-16"), b"\xff\xfe" + setting.encode()):
        path.write_bytes(content)
        assert no_key() == (
            ".env cannot be read as a file of settings (it is not UTF-8): save it as "
            "plain text in UTF-8."
        )


def test_settings_without_python_dotenv_are_pointed_at(no_keys, tmp_path, monkeypatch):
    write_env(tmp_path / ".env")
    monkeypatch.setitem(sys.modules, "dotenv", None)
    assert "pip install python-dotenv" in no_key()


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


def test_a_netrc_file_does_not_replace_the_key(server, client, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("default login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert client.model_id("my_model") == MODEL_ID


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *[({"timeout": t}, "timeout must be .* 86400, got") for t in TIMEOUTS],
        ({"retries": -1}, "retries must be 0 or more, got -1"),
        ({"backoff": -1.0}, "backoff must be 0 or more, got -1"),
    ],
)
def test_numbers_out_of_range_are_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        NumeraiClient(**options)


def test_the_logging_of_the_program_is_left_alone(server, client, monkeypatch):
    monkeypatch.setattr(logging, "basicConfig", None)
    filters = list(logging.getLogger("urllib3.connectionpool").filters)
    client.model_id("my_model")
    assert logging.getLogger("urllib3.connectionpool").filters == filters


def test_every_error_has_an_exit_code_of_its_own():
    codes = {kind.__name__: kind.exit_code for kind in NumeraiError.__subclasses__()}
    assert codes == {
        "ConfigError": 2, "DataError": 3, "ApiError": 4, "SubmissionError": 5,
        "UploadError": 6, "PortableModelError": 7,
    }  # fmt: skip
