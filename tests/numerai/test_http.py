"""One exchange: kinds of failures, bounds on time and size, nothing given away."""

import logging
import re
import socket
import threading
import time
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from helpers.grids import slow
from helpers.numerai import server as helper
from helpers.numerai.server import MODEL_ID, make_client, refused
from sklearn_era.numerai import http
from sklearn_era.numerai.api import Numerai
from sklearn_era.numerai.download import Fetch
from sklearn_era.numerai.errors import ApiError, ConfigError, UploadError
from sklearn_era.numerai.http import Http, HttpFailure

CSV = b"id,prediction\na,0.25\nb,0.75\n"
FINAL = (400, 404, "errors", "garbage", "deep", "bomb")
PASSING = (500, 502, 408, 429, "drop", "lost", "truncated")
((NAME, CONTENT),) = helper.NOTES.items()


def fetch(server, path, **options):
    began, client = time.monotonic(), make_client(server, **options)
    Fetch(client, NAME, path, 1401)()
    return time.monotonic() - began


@pytest.mark.parametrize("kind", [*PASSING, *FINAL])
def test_only_a_failure_that_may_pass_is_tried_again(server, client, kind):
    n_attempts = 3 if kind in PASSING else 1
    server.fail("models", kind, times=n_attempts)
    message = refused(server, ApiError, client.models)
    assert ("HTTP" in message) == isinstance(kind, int)
    assert server.operations == ["models"] * n_attempts
    server.fail("models", kind, times=n_attempts - 1)
    assert client.model_id("my_model") == MODEL_ID


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_called_so(server, client, status):
    said = f"API answered HTTP {status}: check NUMERAI_PUBLIC_ID and NUMERAI_SECRET_KEY"
    server.fail("models", status)
    assert said in refused(server, ApiError, client.models)
    # Where no key was sent, there is no advice on keys.
    server.fail("listDatasets", status)
    assert refused(server, ApiError, client.datasets).endswith(f"HTTP {status}.")


def test_errors_of_graphql_are_passed_on_without_secrets_and_controls(server, client):
    address, keys = server.sign("/data/x"), f"{helper.SECRET_KEY}, {helper.PUBLIC_ID}"
    said = f"no scope for {keys}\nat {address} \x1b[2J\x07"
    server.fail("submissions", "errors", message=said)
    assert refused(server, ApiError, client.submissions, MODEL_ID) == (
        "Listing the submissions: Numerai's API refused: no scope for ***, *** at "
        "<address> ?[2J?; and another."
    )


@pytest.fixture
def waits(monkeypatch):
    waits = []
    monkeypatch.setattr(http.random, "uniform", lambda low, high: high)
    monkeypatch.setattr(time, "sleep", waits.append)
    return waits


def test_attempts_wait_twice_as_long_each_time_up_to_a_minute(server, waits):
    server.fail("rounds", 500, times=3)
    make_client(server, retries=3, backoff=0.5).current_round()
    assert waits == [0.5, 1, 2]
    transport = Http(1.0, 2000)
    for attempt in (0, 1, 6, 7, 2000):
        transport.wait(attempt)
    assert waits[3:] == [1, 2, 64, 64, 64]


@pytest.mark.parametrize(
    ("asked", "waited"), [("7", 7), ("900", 900), ("soon", 0), ("-3", 0), ("0.5", 0)]
)
@pytest.mark.parametrize("operation", ["rounds", "GET"])
def test_retry_after(server, tmp_path, waits, operation, asked, waited):
    server.fail(operation, 429, headers={"Retry-After": asked})
    make_client(server).current_round()
    fetch(server, tmp_path / "notes")
    assert waits == [waited]


def test_retry_after_too_long(server, client, tmp_path, waits):
    calls = client.current_round, partial(fetch, server, tmp_path / "notes")
    for operation, call in zip(("rounds", "GET"), calls, strict=True):
        server.fail(operation, 503, headers={"Retry-After": "901"})
        told = "HTTP 503 and asks to wait 901 seconds: run this command again then."
        assert refused(server, ApiError, call).endswith(told)
    for status, said in ((429, "nothing was submitted"), (503, "it is unclear")):
        server.fail("create_submission", status, headers={"Retry-After": "86400"})
        call = partial(client.create, "a.csv", MODEL_ID, [], "0" * 64)
        message = refused(server, UploadError, call)
        assert f"wait 86,400 seconds: run this command again then; {said}" in message
    assert waits == []
    assert server.operations == ["rounds", "dataset", "GET", *["create_submission"] * 2]


def test_a_date_to_come_back_at_is_by_the_servers_clock(server, waits):
    server.clock_offset = timedelta(days=-3)
    at = server.now() + timedelta(seconds=20)
    stamp = at.strftime("%a, %d %b %Y %H:%M:%S GMT")
    server.fail("rounds", 503, headers={"Retry-After": stamp})
    make_client(server).current_round()
    assert 15 < waits[0] < 25


def test_what_cannot_be_called_is_named_without_its_address(server, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    client = Numerai(Http(5.0, 0), url=f"http://127.0.0.1:{port}")
    message = refused(server, ApiError, client.current_round)
    assert "could not be reached" in message
    assert str(port) not in message
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/no/such/bundle")
    client = Numerai(Http(5.0, 0), url="https://numerai.invalid")
    message = refused(server, ApiError, client.current_round)
    assert "could not be called" in message
    assert message.endswith("invalid path: /no/such/bundle).")


@pytest.mark.parametrize(("operation", "kind", "said"), [
    ("rounds", "hang", r"did not answer within 0\.2 seconds"),
    ("rounds", "drip", r"sent only \d+ bytes in 0\.\d+ seconds"),
    slow("rounds", "drip head", "did not finish answering within 2 seconds"),
    ("rounds", "drip size", r"did not answer within 0\.2 seconds"),
    ("PUT", "hang", r"did not answer within 0\.2 seconds; nothing was submitted"),
    slow("PUT", "drip head", "did not finish answering within 2 seconds; nothing was"),
])  # fmt: skip
def test_a_call_has_an_end_however_slow_the_peer(server, operation, kind, said):
    server.fail(operation, kind)
    client, began = make_client(server, timeout=0.2, retries=0), time.monotonic()
    if operation == "PUT":
        message = refused(server, UploadError, client.store, CSV, "a.csv", MODEL_ID)
    else:
        message = refused(server, ApiError, client.current_round)
    assert re.search(said, message), message
    assert time.monotonic() - began < 4


@pytest.mark.parametrize("kind", ["hang", "drip", slow("drip head"), "drip size"])
def test_a_download_that_stalls_is_given_up(server, tmp_path, kind):
    server.fail("GET", kind)
    with pytest.raises(ApiError):
        fetch(server, tmp_path / "notes", timeout=0.2, retries=0)
    server.drip_seconds = 0.01
    server.fail("GET", kind)
    assert fetch(server, tmp_path / "notes", timeout=0.2) < 6
    assert (tmp_path / "notes").read_bytes() == CONTENT


def test_ctrl_c_does_not_wait_for_a_read_that_stalls(client, monkeypatch):
    is_over = threading.Event()
    raw = SimpleNamespace(read1=lambda *_, **__: is_over.wait(), shutdown=is_over.set)
    monkeypatch.setattr(http.Future, "result", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        client.http._read(raw)
    assert is_over.is_set()


@pytest.mark.parametrize("kind", ["compressed", "bomb"])
def test_a_file_that_comes_compressed_is_refused(server, tmp_path, kind):
    server.fail("GET", kind)
    assert "compressed" in refused(server, ApiError, fetch, server, tmp_path / "notes")
    assert list(tmp_path.iterdir()) == []


def test_an_answer_may_be_compressed_and_is_not_endless(server, client, monkeypatch):
    server.fail("rounds", "compressed")
    assert client.current_round().number == 1401
    monkeypatch.setattr(http, "MOST_BYTES", 200)
    server.files["x" * 999] = b""
    server.fail("listDatasets", "compressed")
    for call in (client.datasets, client.models):
        message = refused(server, ApiError, call)
        assert message.endswith("sent more than 200 bytes.")
    server.add_submission(MODEL_ID, CSV * 100, "a.csv")
    message = refused(server, ApiError, client.fetch, "submission-1")
    assert message.endswith("sent more than 200 bytes.")


def test_a_redirect_is_followed_to_https_or_on_this_machine(server, tmp_path):
    strays = "http://example.org/x", "ftp://127.0.0.1/x", "http://[::1", "//example.org"
    for location in (*strays, "/elsewhere"):
        server.fail("GET", 302, headers={"Location": location})
        said = "not https" if location in strays else "the storage answered HTTP 403"
        with pytest.raises(HttpFailure, match=said):
            fetch(server, tmp_path / "notes", retries=0)
    there = server.sign(f"/data/{NAME}")
    server.fail("GET", 307, headers={"Location": there})
    fetch(server, tmp_path / "notes")
    # From elsewhere, nothing on this machine is requested.
    assert http._redirected("https://numerai.invalid/x", there) == ""
    server.fail("GET", 302, times=99, headers={"Location": "/round/and/round"})
    with pytest.raises(HttpFailure, match="HTTP 302"):
        fetch(server, tmp_path / "notes", retries=0)


def test_what_is_sent_is_not_redirected(server, client):
    """A redirected post becomes a get, which looks like success."""
    for operation, call in (
        ("create_submission", partial(client.create, "a.csv", MODEL_ID, [], "0" * 64)),
        ("PUT", partial(client.store, CSV, "a.csv", MODEL_ID)),
    ):
        server.fail(operation, 302, headers={"Location": "/"})
        message = refused(server, UploadError, call)
        assert message.endswith("HTTP 302; nothing was submitted.")
    assert server.submissions == []


def test_netrc_proxies_and_logging(server, client, tmp_path, monkeypatch, caplog):
    (tmp_path / "netrc").write_text("default login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    caplog.set_level(logging.DEBUG)
    assert client.model_id("my_model") == MODEL_ID
    fetch(server, tmp_path / "notes")
    assert "X-Amz-Signature" not in caplog.text
    # Others' requests are theirs to log.
    logging.getLogger("urllib3.connectionpool").debug("of others")
    assert "of others" in caplog.text
    helper.assert_discreet(server, repr(client), str(client), repr(vars(client)))


@pytest.mark.parametrize("url", [
    "http://example.org", "ftp://127.0.0.1", "http://127.0.0.1.example.org", "x",
    "http://[::1", "127.0.0.1:80", "http://user:pass@numerai.invalid/x", "https://",
    "//example.org",
])  # fmt: skip
def test_a_key_is_sent_by_https_or_to_this_machine(url, tmp_path, monkeypatch):
    monkeypatch.setenv("SKLEARN_ERA_NUMERAI_API_URL", url)
    with pytest.raises(ConfigError, match="keys only go over https") as told:
        Numerai.from_environment(tmp_path)
    assert "SKLEARN_ERA_NUMERAI_API_URL" in str(told.value)
    assert "pass" not in str(told.value)
