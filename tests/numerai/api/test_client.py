"""The client: failures told apart, nothing half submitted, nothing given away."""

import datetime
import hashlib
import logging
import pickle
import socket
import time

import pytest

from helpers.numerai.server import (
    PUBLIC_ID,
    SECRET_KEY,
    NumeraiServer,
    assert_discreet,
    everything_said,
    make_client,
)
from sklearn_era.numerai.api.client import NumeraiClient
from sklearn_era.numerai.api.credentials import SITE, Keys, Secret, read_keys
from sklearn_era.numerai.errors import (
    ApiError,
    ConfigError,
    DataError,
    NumeraiError,
    UploadError,
)

numerapi = pytest.importorskip("numerapi")
MODEL = "11111111-aaaa"
CSV = b"id,prediction\na,0.25\nb,0.75\n"


@pytest.fixture
def server(caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with NumeraiServer({"v5.3/notes.txt": b"some notes" * 100}) as server:
        yield server
    told = [record.getMessage() for record in caplog.get_records("call")]
    assert_discreet(server, *told, *capfd.readouterr())


@pytest.fixture
def client(server):
    return make_client(server)


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_bytes(CSV)
    return path


def refused(server, error, call):
    """Fail with an error, which gives nothing away; return what it says."""
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error or error is ApiError
    assert_discreet(server, everything_said(caught.value))
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


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
    made = theirs.upload_predictions(str(csv), model_id=MODEL)
    of_theirs = [(r.operation, r.variables.keys()) for r in server.requests]
    bodies = [r.body for r in server.requests if r.method == "PUT"]
    server.requests.clear()
    ours.upload_submission(csv, MODEL, known=[])
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
    current = client.current_round()
    assert (current.number, current.is_open) == (1401, False)
    assert current.close_time < now


def test_between_two_rounds_the_last_that_opened_is_the_current(server, client):
    server.between_rounds = True
    server.is_open = False
    assert client.current_round().number == 1401
    assert not client.current_round().is_open


def test_an_unknown_model_is_answered_by_the_known_ones(server, client):
    message = refused(server, ApiError, lambda: client.model_id("mymodel"))
    assert message == "No Classic model named 'mymodel'. Your models: my_model, other."
    # One of another tournament is none.
    assert "No Classic model" in refused(
        server, ApiError, lambda: client.model_id("signals_model")
    )


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_called_so(server, client, status):
    server.fail("models", status)
    message = refused(server, ApiError, lambda: client.model_id("my_model"))
    assert (
        f"Numerai's API answered HTTP {status}: check NUMERAI_PUBLIC_ID and "
        "NUMERAI_SECRET_KEY" in message
    )
    assert server.operations == ["models"], "a refused key is not sent again"


def test_another_key_is_refused_by_name_only(server):
    other = NumeraiClient(
        Keys(Secret("a"), Secret("ANOTHERSECRET")), api_url=server.url
    )
    with pytest.raises(ApiError, match="HTTP 401: check NUMERAI_PUBLIC_ID") as caught:
        other.model_id("my_model")
    assert "ANOTHERSECRET" not in everything_said(caught.value)


def test_a_call_without_key_gives_no_advice_on_keys(server, client):
    server.fail("listDatasets", 403)
    message = refused(server, ApiError, client.list_datasets)
    assert "HTTP 403" in message
    assert "NUMERAI_SECRET_KEY" not in message


def test_all_errors_of_graphql_are_passed_on_with_the_step(server, client):
    server.fail("submissions", "errors", message=f"no scope for {SECRET_KEY}\nhere")
    message = refused(server, ApiError, lambda: client.submission_ids(MODEL))
    assert message == (
        "Listing the submissions: Numerai's API refused: no scope for *** here; and "
        "another."
    )
    assert len(server.requests) == 1


def test_a_signed_address_in_an_error_is_left_out(server, client):
    server.fail("models", "errors", message=f"see {server.sign('/data/x')} for more")
    assert "see <address> for more" in refused(
        server, ApiError, lambda: client.model_id("my_model")
    )


@pytest.mark.parametrize("kind", [500, 502, 429, "drop", "lost"])
def test_a_failure_that_may_pass_is_tried_again(server, client, kind):
    server.fail("models", kind, times=2)
    assert client.model_id("my_model") == MODEL
    assert server.operations == ["models"] * 3
    server.fail("models", kind, times=3)
    message = refused(server, ApiError, lambda: client.model_id("my_model"))
    assert ("HTTP" in message) == isinstance(kind, int)


@pytest.mark.parametrize("kind", [400, 404, "errors", "garbage"])
def test_another_failure_is_final(server, client, kind):
    server.fail("listDatasets", kind)
    refused(server, ApiError, client.list_datasets)
    assert len(server.requests) == 1


def test_an_answer_that_does_not_come_is_given_up(server):
    client = make_client(server, timeout=0.1, retries=1)
    server.fail("rounds", "hang", times=2)
    start = time.monotonic()
    message = refused(server, ApiError, client.current_round)
    assert "did not answer within 0.1 seconds" in message
    assert time.monotonic() - start < 3
    assert server.operations == ["rounds"] * 2
    assert client.current_round().number == 1401


def test_attempts_wait_twice_as_long_each_time(server, monkeypatch):
    waits = []
    monkeypatch.setattr(
        "sklearn_era.numerai.api.transport.time.sleep", lambda s: waits.append(s)
    )
    client = make_client(server, retries=3, backoff=0.5)
    server.fail("rounds", 500, times=3)
    client.current_round()
    assert waits == [0.5, 1.0, 2.0]


def test_no_server_is_called_unreachable(server):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    client = NumeraiClient(api_url=f"http://127.0.0.1:{port}", retries=0)
    message = refused(server, ApiError, client.current_round)
    assert "could not be reached" in message
    assert str(port) not in message


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
    monkeypatch.setattr(
        server, f"_{operation}", lambda *_: {field: value}, raising=True
    )
    if operation == "listDatasets" and value == [3]:
        assert call(client) == ["3"]
    else:
        refused(server, ApiError, lambda: call(client))


def test_an_upload_stores_first_and_then_submits(server, client, csv):
    stored = []
    made = client.upload_submission(csv, MODEL, on_stored=stored.append)
    assert server.operations == [
        "submissions",
        "submission_upload_auth",
        "PUT",
        "create_submission",
    ]
    (listed,) = client.submission_ids(MODEL)
    assert (listed.submission_id, listed.filename) == (made, stored[0])
    assert client.download_submission(made) == CSV
    put = server.requests[2]
    assert "x_compute_id" not in put.headers


def test_numerais_cluster_is_told_which_run_it_was(server, client, csv, monkeypatch):
    monkeypatch.setenv("NUMERAI_COMPUTE_ID", "compute-1")
    monkeypatch.setenv("TRIGGER_ID", "trigger-1")
    client.upload_submission(csv, MODEL, known=[])
    _auth, put, create = server.requests
    assert put.headers["x_compute_id"] == "compute-1"
    assert create.variables["triggerId"] == "trigger-1"


@pytest.mark.parametrize("status", [403, 500])
def test_a_file_that_the_storage_refuses_is_not_submitted(server, client, csv, status):
    server.fail("PUT", status, times=9)
    message = refused(server, UploadError, lambda: client.upload_submission(csv, MODEL))
    assert f"the storage refused the file (HTTP {status}); nothing was sub" in message
    assert "create_submission" not in server.operations
    assert server.submissions == []


@pytest.mark.parametrize("kind", [403, 503, "drop"])
def test_a_second_attempt_at_storing_asks_for_another_address(
    server, client, csv, kind
):
    server.fail("PUT", kind)
    client.upload_submission(csv, MODEL, known=[])
    assert server.operations == [
        *["submission_upload_auth", "PUT"] * 2,
        "create_submission",
    ]
    first, second = (r.path for r in server.requests if r.method == "PUT")
    assert first != second
    assert len(server.submissions) == 1


def test_a_storage_that_does_not_answer_is_tried_again(server, csv):
    client = make_client(server, timeout=0.1)
    server.fail("PUT", "hang")
    client.upload_submission(csv, MODEL)
    assert [entry["content"] for entry in server.submissions] == [CSV]


def test_an_upload_that_is_not_allowed_says_why(server, client, csv):
    server.fail("submission_upload_auth", "errors", message="no upload scope")
    message = refused(server, ApiError, lambda: client.upload_submission(csv, MODEL))
    assert "Uploading: Numerai's API refused: no upload scope" in message
    assert "PUT" not in server.operations


@pytest.mark.parametrize("kind", ["lost", "drop", 500, "garbage"])
def test_a_submission_with_a_lost_answer_is_not_made_twice(server, client, csv, kind):
    server.fail("create_submission", kind)
    made = client.upload_submission(csv, MODEL)
    assert [entry["id"] for entry in server.submissions] == [made]
    assert server.operations.count("create_submission") == (1 if kind == "lost" else 2)


def test_a_submission_made_meanwhile_is_not_taken_for_ours(server, client, csv):
    def someone_else(_):
        server.add_submission(MODEL, b"id,prediction\n", "another.csv")

    server.fail("create_submission", "drop")
    made = client.upload_submission(csv, MODEL, on_stored=someone_else)
    assert [entry["content"] for entry in server.submissions][1:] == [CSV]
    assert server.submissions[1]["id"] == made


def test_a_submission_that_cannot_be_told_from_none_is_called_unclear(
    server, client, csv
):
    server.fail("create_submission", 500, times=9)
    message = refused(server, UploadError, lambda: client.upload_submission(csv, MODEL))
    assert "whether it was made is unclear" in message
    assert server.operations.count("create_submission") == 3

    server.faults.clear()
    server.fail("create_submission", "lost")
    server.requests.clear()
    server.fail("submissions", 500, times=99)
    message = refused(
        server, UploadError, lambda: client.upload_submission(csv, MODEL, known=[])
    )
    assert "whether it was made is unclear" in message
    assert server.operations.count("create_submission") == 1


@pytest.mark.parametrize("kind", ["errors", 400, 401])
def test_a_refused_submission_is_final(server, client, csv, kind):
    server.fail("create_submission", kind)
    message = refused(server, UploadError, lambda: client.upload_submission(csv, MODEL))
    assert message.endswith("nothing was submitted.")
    assert server.operations.count("create_submission") == 1
    assert server.submissions == []


def test_a_file_that_changed_since_its_check_stays_here(server, client, csv):
    sha256 = hashlib.sha256(CSV).hexdigest()
    csv.write_bytes(CSV + b"c,0.5\n")
    message = refused(
        server,
        UploadError,
        lambda: client.upload_submission(csv, MODEL, expected_sha256=sha256),
    )
    assert "has changed since it was checked" in message
    assert server.requests == []
    with pytest.raises(DataError, match="No such file"):
        client.upload_submission(csv.with_name("none.csv"), MODEL)


def test_a_submission_is_found_by_its_name_or_its_content(server, client):
    sha256 = hashlib.sha256(CSV).hexdigest()
    before = server.add_submission(MODEL, CSV, "a.csv")
    other = server.add_submission(MODEL, b"other", "b.csv")

    def find(known, filename):
        return client.find_submission(
            MODEL, known=known, filename=filename, sha256=sha256
        )

    assert find([before], None) is None
    assert find([], None) == before
    assert find([], "b.csv") == other
    server.fail("submissionDownloadAuth", "errors", times=2)
    assert find([], None) is None


def test_submissions_are_listed_newest_first(server, client):
    made = [server.add_submission(MODEL, CSV, f"{i}.csv") for i in range(3)]
    server.submissions.reverse()
    listed = client.submission_ids(MODEL)
    assert [entry.submission_id for entry in listed] == made[::-1]
    assert client.submission_ids("22222222") == []


def test_a_missing_submission_is_an_error(server, client):
    message = refused(server, ApiError, lambda: client.download_submission("nope"))
    assert "no such submission" in message


def test_keys_are_asked_for_when_they_are_needed(server):
    client = NumeraiClient(api_url=server.url)
    assert client.list_datasets() == ["v5.3/notes.txt"]
    with pytest.raises(ConfigError, match="NUMERAI_PUBLIC_ID and NUMERAI_SECRET_KEY"):
        client.model_id("my_model")
    assert server.operations == ["listDatasets"]


def test_a_missing_half_of_the_key_is_named(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMERAI_PUBLIC_ID", "PUB")
    monkeypatch.delenv("NUMERAI_SECRET_KEY", raising=False)
    with pytest.raises(ConfigError) as caught:
        NumeraiClient.from_environment().check_keys()
    assert str(caught.value) == (
        "NUMERAI_SECRET_KEY is not set (NUMERAI_PUBLIC_ID is). Create a key at "
        f"{SITE}/account with upload_submission scope."
    )
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("key", ["two words", '"quoted"', "new\nline", "Müller"])
def test_a_key_that_cannot_be_one_is_not_shown(monkeypatch, tmp_path, key):
    """An HTTP library would put it into its complaint."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMERAI_PUBLIC_ID", "PUB")
    monkeypatch.setenv("NUMERAI_SECRET_KEY", key)
    with pytest.raises(ConfigError, match="NUMERAI_SECRET_KEY holds") as caught:
        NumeraiClient.from_environment().check_keys()
    assert key not in everything_said(caught.value)


@pytest.fixture
def no_keys(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("NUMERAI_PUBLIC_ID", "NUMERAI_SECRET_KEY"):
        monkeypatch.delenv(name, raising=False)


def write_env(path):
    text = f"NUMERAI_PUBLIC_ID={PUBLIC_ID}\nNUMERAI_SECRET_KEY='{SECRET_KEY}'\n"
    path.write_text(text)
    return path


def test_keys_are_read_from_a_file_of_settings(no_keys, tmp_path, monkeypatch, server):
    pytest.importorskip("dotenv")
    write_env(tmp_path / "named.env")
    client = NumeraiClient.from_environment(tmp_path / "named.env", server.url)
    assert client.model_id("my_model") == MODEL
    write_env(tmp_path / ".env")
    keys = read_keys()
    assert keys.secret_key.reveal() == SECRET_KEY
    # The environment comes first, and is left as it is.
    monkeypatch.setenv("NUMERAI_SECRET_KEY", "FROMTHEENVIRONMENT")
    assert read_keys().secret_key.reveal() == "FROMTHEENVIRONMENT"
    assert read_keys().public_id.reveal() == PUBLIC_ID
    (tmp_path / ".env").write_bytes(b"NUMERAI_PUBLIC_ID=\xff\xfe" + SECRET_KEY.encode())
    with pytest.raises(ConfigError, match="cannot be read as a file of set") as caught:
        read_keys()
    assert SECRET_KEY not in everything_said(caught.value)


def test_settings_without_python_dotenv_are_pointed_at(no_keys, tmp_path, monkeypatch):
    write_env(tmp_path / ".env")
    monkeypatch.setitem(__import__("sys").modules, "dotenv", None)
    with pytest.raises(ConfigError, match="pip install python-dotenv"):
        NumeraiClient.from_environment().check_keys()


def test_neither_keys_nor_a_client_show_or_pickle_the_secret(server, client):
    keys = Keys(Secret(PUBLIC_ID), Secret(SECRET_KEY))
    told = [repr(keys), str(keys), repr(client), str(client), repr(keys.token())]
    assert_discreet(server, *told)
    for holder in (keys, client):
        with pytest.raises(TypeError, match="secret is not pickled"):
            pickle.dumps(holder)


@pytest.mark.parametrize(
    "url",
    ["http://example.org", "ftp://127.0.0.1", "http://127.0.0.1.example.org", "x", ""],
)
def test_a_key_is_sent_by_https_or_to_this_machine(url):
    with pytest.raises(ConfigError, match="is refused: a key is sent by https only"):
        NumeraiClient(api_url=url)


def test_the_address_of_numerapi_is_used_and_checked(server, monkeypatch):
    monkeypatch.setattr("numerapi.base_api.API_TOURNAMENT_URL", server.url)
    assert NumeraiClient().current_round().number == 1401
    monkeypatch.setattr("numerapi.base_api.API_TOURNAMENT_URL", "http://example.org")
    with pytest.raises(ConfigError, match=r"example\.org is refused"):
        NumeraiClient().current_round()


def test_the_environment_names_a_stand_in(server, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    assert NumeraiClient.from_environment().model_id("my_model") == MODEL


def test_a_netrc_file_does_not_replace_the_key(server, client, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("default login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert client.model_id("my_model") == MODEL


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"timeout": 0}, "timeout"),
        ({"retries": -1}, "retries"),
        ({"backoff": -1.0}, "b"),
    ],
)
def test_numbers_out_of_range_are_refused(options, named):
    with pytest.raises(ConfigError, match=named):
        NumeraiClient(**options)


def test_the_logging_of_the_program_is_left_alone(server, client, monkeypatch):
    monkeypatch.setattr(logging, "basicConfig", None)
    filters = list(logging.getLogger("urllib3.connectionpool").filters)
    client.model_id("my_model")
    assert logging.getLogger("urllib3.connectionpool").filters == filters


def test_every_error_has_an_exit_code_of_its_own():
    codes = {kind: kind.exit_code for kind in NumeraiError.__subclasses__()}
    assert len(set(codes.values())) == len(codes)
    assert not {0, 1} & set(codes.values())
