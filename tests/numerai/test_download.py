"""Downloads: what is fetched, what is kept, and what is not published yet."""

import io
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pandas as pd
import pytest

from helpers.numerai.program import shuffled_ids
from helpers.numerai.server import discreet_server, make_client, refused
from sklearn_era.numerai.config import DataSection, Workspace
from sklearn_era.numerai.download import NotPublishedError, download, latest_version
from sklearn_era.numerai.errors import ApiError, BusyError, ConfigError, DataError
from sklearn_era.numerai.files import lock

NAMES = ["features", "train", "validation", "live"]


@pytest.fixture
def server(files, tmp_path, caplog, capfd):
    own = {x: files[x] for x in files if x[5:].partition(".")[0] in NAMES}
    with discreet_server(own, tmp_path, caplog, capfd) as server:
        yield server


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path, "v5.3")


@pytest.fixture
def fetch(server, workspace):
    def fetch(names=NAMES, round_number=1401, refresh=()):
        data, fetch.reporter = DataSection(files=[*names], refresh=[*refresh]), Mock()
        download(make_client(server), workspace, data, round_number, fetch.reporter)
        told = [call.args[0] for call in fetch.reporter.step.call_args_list]
        return [x.removeprefix("Downloaded ").rstrip(".") for x in told if x[0] == "D"]

    return fetch


def test_files_are_named_by_the_round(fetch, server, workspace):
    fetch([*NAMES, "live"])
    assert server.operations.count("GET") == len(NAMES), "one was fetched twice"
    here = {path.name: path.read_bytes() for path in workspace.data_dir.iterdir()}
    served = server.files.items()
    assert here == {name[5:].replace(".", "_1401."): x for name, x in served}


def test_a_refreshed_file_is_fetched_once_a_round_and_live_ones_always(fetch, server):
    assert "train_1401.parquet" in fetch()
    for _ in range(2):
        assert fetch(refresh=["validation"]) == ["live_1401.parquet"]
    live = server.files["v5.3/live.parquet"]
    server.files["v5.3/live.parquet"] = shuffled_ids(live)
    first = "validation_1402.parquet (the local file is from round 1401)"
    fetched = fetch(refresh=["validation"], round_number=1402)
    assert fetched == [first, "live_1402.parquet"]
    assert fetch(refresh=["validation"], round_number=1402) == ["live_1402.parquet"]


def test_a_damaged_or_old_file_is_not_kept(fetch, server, workspace):
    fetch()
    path = workspace.newest("train")
    path.write_bytes(path.read_bytes()[:-9])
    workspace.newest("features").write_text("{")
    why = " (the local file was damaged)"
    replaced = [f"features_1401.json{why}", f"train_1401.parquet{why}"]
    assert fetch() == ["live_1401.parquet", *replaced]
    assert path.read_bytes() == server.files["v5.3/train.parquet"]
    # An old live file of the same size is replaced.
    path = workspace.newest("live")
    path.write_bytes(bytes(path.stat().st_size))
    fetch(["live"])
    assert path.read_bytes() == server.files["v5.3/live.parquet"]


def test_an_old_live_file_is_not_taken(fetch, server, workspace):
    fetch()
    message = refused(server, NotPublishedError, fetch, round_number=1402)
    assert "round 1402 are not published yet" in message
    assert "those of round 1401" in message
    assert workspace.rounds_of("live") == [1401]
    # The same round's may be fetched again.
    fetch()


def test_two_runs_wait_for_each_other(fetch, server, workspace, monkeypatch):
    """A little while; and the files of a round do not wait for gigabytes of others."""
    held = threading.Event()

    def hold():
        with lock(workspace.lock_file("data"), "at it"):
            held.set()
            time.sleep(0.3)

    with ThreadPoolExecutor() as pool:
        other = pool.submit(hold)
        held.wait()
        assert len(fetch()) == len(NAMES)
        assert other.done()
    monkeypatch.setattr("sklearn_era.numerai.download._LOCK_WAIT", 0.1)
    with lock(workspace.lock_file("data"), "at it"):
        message = refused(server, BusyError, fetch)
        assert fetch(["features", "live"]) == ["live_1401.parquet"]
    with lock(workspace.lock_file("live"), "at it"):
        refused(server, BusyError, fetch)
    assert message == (
        f"Another run is downloading to {workspace.data_dir}: wait for it to finish."
    )


def test_a_download_goes_on_with_what_an_earlier_round_left(fetch, server, workspace):
    content = server.files["v5.3/train.parquet"]
    fetch()
    path = workspace.newest("train")
    path.unlink()
    server.fail("GET", "truncated", 99)
    refused(server, ApiError, fetch, ["train"])
    (left,) = workspace.data_dir.glob("train_1401.parquet.*.partial")
    size = left.stat().st_size
    assert 0 < size < len(content)
    server.faults.clear()
    server.requests.clear()
    fetch(["train"], round_number=1402)
    assert workspace.newest("train").read_bytes() == content
    assert not list(workspace.data_dir.glob("*.partial"))
    ranges = [x.headers.get("range") for x in server.requests if x.operation == "GET"]
    assert ranges == [f"bytes={size - 1}-"]


def test_a_file_that_comes_damaged_is_fetched_once_more(fetch, server, workspace):
    server.fail("GET", "corrupt")
    assert fetch(["live"]) == ["live_1401.parquet"]
    assert server.operations.count("GET") == 2

    before = workspace.newest("live").read_bytes()
    server.fail("GET", "corrupt", times=99)
    # The good file is not what is to be removed.
    message = refused(server, DataError, fetch, ["live"])
    assert message.startswith("Numerai's v5.3/live.parquet is damaged (")
    assert message.endswith("). Run this command again.")
    assert workspace.newest("live").read_bytes() == before
    server.faults.clear()
    server.files["v5.3/features.json"] = b"<html>"
    message = refused(server, DataError, fetch, ["features"])
    assert message.startswith("Numerai's v5.3/features.json is damaged (")


def test_a_version_that_is_gone_or_an_unknown_file_is_told(server, fetch, tmp_path):
    server.files["v5.10/live.parquet"] = b""
    old, data = Workspace(tmp_path, "v5.2"), DataSection(files=["live"])
    given = make_client(server), old, data, 1401, Mock()
    message = refused(server, DataError, download, *given)
    assert message == (
        "Numerai no longer serves v5.2; the latest version is v5.10. Set version = "
        "'v5.10' in [data], and train again."
    )
    del server.files["v5.10/live.parquet"]
    said = "Numerai has no v5.3/prices.parquet; use features, live, train, validation."
    assert refused(server, ConfigError, fetch, ["live", "prices"]) == said
    assert "dataset" not in server.operations, "known before anything is fetched"
    assert latest_version(["v4.9/x", "v5.2/x", "v5.10/x", "signals/y"]) == "v5.10"


def test_files_without_eras_or_features_are_accepted(fetch, server):
    frame = pd.read_parquet(io.BytesIO(server.files["v5.3/validation.parquet"]))
    parts = {
        "meta_model": frame[["era", "data_type"]],
        "validation_example_preds": frame[["data_type"]],
        "live_benchmark_models": frame[["era", "data_type"]].assign(era="X"),
    }
    for name, part in parts.items():
        server.files[f"v5.3/{name}.parquet"] = part.to_parquet()
    assert len(fetch(parts)) == 3
    assert fetch(parts) == ["live_benchmark_models_1401.parquet"]


def test_bytes_are_reported_as_they_come(fetch, server):
    size = len(server.files["v5.3/live.parquet"])
    fetch(["live"])
    *before, last = (call.args for call in fetch.reporter.progress.call_args_list)
    assert last == ("live", size, size)
    assert all(done <= total == size for _, done, total in before)
