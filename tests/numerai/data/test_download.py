"""Downloads: what is fetched, what is kept, and what never gets its name."""

import errno
import fcntl
import io
import json
import os
import re
import shutil
from unittest.mock import Mock

import pandas as pd
import pytest

from helpers.numerai.server import (
    discreet_server,
    live_parquet,
    make_client,
    numerai_files,
    refused,
)
from sklearn_era.numerai.data.download import download
from sklearn_era.numerai.errors import ApiError, ConfigError, DataError
from sklearn_era.numerai.workspace import Workspace

NAMES = ["features", "train", "validation", "live"]
FILES = numerai_files()
LIVE = FILES["v5.3/live.parquet"]


@pytest.fixture
def server(tmp_path, caplog, capfd):
    with discreet_server(FILES, tmp_path, caplog, capfd) as server:
        yield server


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path, "v5.3", "my_model")


@pytest.fixture
def fetch(server, workspace):
    def fetch(names=NAMES, **options):
        """Download; return which files were fetched."""
        told = {}
        options["on_file"] = lambda name, *done: told.update({name: done})
        paths = download(make_client(server), workspace, names, **options)
        assert {name: path for name, (path, _) in told.items()} == paths
        assert all(path.is_file() for path in paths.values())
        return [name for name, (_, what) in told.items() if what == "downloaded"]

    return fetch


def test_files_are_named_by_the_round(fetch, server, workspace):
    assert fetch([*NAMES, "live"]) == NAMES
    assert server.operations.count("GET") == len(NAMES), "one was fetched twice"
    here = {path.name: path.read_bytes() for path in workspace.data_dir.iterdir()}
    named = {name[5:].replace(".", "_1401."): x for name, x in FILES.items()}
    assert here == named


def test_a_refreshed_file_is_fetched_once_a_round_and_live_ones_always(
    fetch, server, workspace
):
    fetch()
    assert fetch() == fetch(refresh=["validation"]) == ["live"]
    server.round_number = 1402
    assert fetch(refresh=["validation"]) == ["validation", "live"]
    assert fetch(refresh=["validation"]) == ["live"]
    # A round may be named.
    server.requests.clear()
    fetch(round_number=1399)
    assert "rounds" not in server.operations
    rounds = [workspace.rounds_of(name) for name in ("train", "validation", "live")]
    assert rounds == [[1401], [1401, 1402], [1399, 1401, 1402]]
    # A name is refreshed among those to download, or it would be passed over.
    message = refused(server, ConfigError, fetch, refresh=["meta_model"])
    assert "refresh names 'meta_model'" in message


def test_a_damaged_or_old_file_is_not_kept(fetch, server, workspace):
    fetch()
    path = workspace.newest("train")
    path.write_bytes(path.read_bytes()[:-9])
    workspace.newest("features").write_text("{")
    assert fetch() == ["features", "train", "live"]
    assert path.read_bytes() == FILES["v5.3/train.parquet"]

    # An old live file of the same size is replaced.
    other = live_parquet(seed=1)
    server.files["v5.3/live.parquet"] = other
    assert len(other) == workspace.newest("live").stat().st_size
    fetch(["live"])
    assert workspace.newest("live").read_bytes() == other


def test_leftovers_of_killed_runs_are_removed_and_never_gone_on_with(
    fetch, server, workspace
):
    workspace.data_dir.mkdir(parents=True)
    for name in (
        "live.parquet.temp", "live_1401.parquet.temp", "train_1401.parquet.notes",
        "live_1401.parquet.0123abcd.partial", "live_1399.parquet.89abcdef.partial",
    ):  # fmt: skip
        (workspace.data_dir / name).write_bytes(b"PAR1 the head of an old file")
    fetch(["live"])
    here = sorted(path.name for path in workspace.data_dir.iterdir())
    assert here == ["live_1401.parquet", "train_1401.parquet.notes"]
    assert workspace.newest("live").read_bytes() == LIVE
    assert all("range" not in request.headers for request in server.requests)


def test_two_runs_do_not_download_at_once(fetch, server, workspace):
    workspace.data_dir.mkdir(parents=True)
    partial = workspace.data_dir / "live_1401.parquet.0123abcd.partial"
    partial.write_bytes(b"of the run that goes on")
    descriptor = os.open(workspace.data_dir, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    said = f"Another run is downloading to {workspace.data_dir}: wait for its end."
    assert refused(server, DataError, fetch) == said
    assert partial.exists()
    os.close(descriptor)
    fetch(["live"])
    assert not partial.exists()


@pytest.mark.parametrize(
    ("kind", "n_attempts"),
    # The bytes announced of a compressed file are those before it is unpacked.
    [("truncated", 3), ("compressed", 1)],
)
def test_a_file_that_breaks_off_is_fetched_again(
    fetch, server, workspace, kind, n_attempts
):
    server.fail("GET", kind, times=2)
    fetch(["live"])
    assert workspace.newest("live").read_bytes() == LIVE
    # A new address each time.
    asked = [entry for entry in server.operations if entry in ("dataset", "GET")]
    assert asked == ["dataset", "GET"] * n_attempts


@pytest.mark.parametrize("kind", ["truncated", "drop", 403, 500])
def test_a_file_that_does_not_come_leaves_nothing(fetch, server, workspace, kind):
    server.fail("GET", kind, times=99)
    said = "the storage could not be reached, or broke off."
    if isinstance(kind, int):
        said = f"the storage refused to send it (HTTP {kind})."
    message = refused(server, ApiError, fetch, ["live"])
    assert message == f"Downloading v5.3/live.parquet: {said}"
    assert list(workspace.data_dir.iterdir()) == []


def test_a_file_that_comes_damaged_is_fetched_once_more(fetch, server, workspace):
    server.fail("GET", "corrupt")
    assert fetch(["live"]) == ["live"]
    assert server.operations.count("GET") == 2

    before = workspace.newest("live").read_bytes()
    server.requests.clear()
    server.fail("GET", "corrupt", times=99)
    message = refused(server, DataError, fetch, ["live"])
    assert message.startswith(f"{workspace.newest('live')} is ")
    assert ".partial" not in message
    assert server.operations.count("GET") == 2
    assert workspace.newest("live").read_bytes() == before
    # Damaged features are named as they would be, too.
    server.faults.clear()
    server.files["v5.3/features.json"] = b"<html>"
    message = refused(server, DataError, fetch, ["features"])
    assert message.startswith(f"{workspace.data_file('features', 1401)} ")


def test_a_version_that_is_gone_or_an_unknown_file_is_told(server, fetch, tmp_path):
    server.files["v5.10/live.parquet"] = b""
    client = make_client(server)
    old = Workspace(tmp_path, "v5.2", "my_model")
    message = refused(server, DataError, download, client, old, ["live"])
    assert message == (
        "v5.2/live.parquet is no longer served; latest is v5.10. Retrain on it: set "
        "version = 'v5.10' in [data], and train again."
    )
    del server.files["v5.10/live.parquet"]
    assert refused(server, ConfigError, fetch, ["live", "valid"]) == (
        "Numerai serves no v5.3/valid.parquet; did you mean 'validation'? Those "
        "of v5.3: features, live, train, validation."
    )
    assert "dataset" not in server.operations, "known before anything is fetched"


def test_features_that_the_data_lack_are_refused(fetch, server, workspace):
    document = json.loads(FILES["v5.3/features.json"])
    document["feature_sets"]["all"] += ["feature_new", "feature_newer"]
    server.files["v5.3/features.json"] = json.dumps(document).encode()
    message = refused(server, DataError, fetch)
    said = "lacks 2 of the 8 features in features_1401.json (first: feature_new)"
    assert said in message
    assert message.endswith("Remove both files, and download them again.")
    for name in ("features", "train"):
        workspace.newest(name).unlink()
    del document["feature_sets"]["all"]
    server.files["v5.3/features.json"] = json.dumps(document).encode()
    fetch()


def test_files_without_eras_or_features_are_accepted(fetch, server):
    frame = pd.read_parquet(io.BytesIO(FILES["v5.3/validation.parquet"]))
    columns = {
        "meta_model": ["era", "feature_a"],
        "validation_example_preds": ["feature_a"],
        "live_benchmark_models": ["era", "feature_a"],
    }
    for name, chosen in columns.items():
        part = frame.assign(era="X") if name.startswith("live") else frame
        server.files[f"v5.3/{name}.parquet"] = part[chosen].to_parquet()
    assert fetch(columns) == [*columns]
    assert fetch(columns) == ["live_benchmark_models"]


def test_bytes_are_reported_as_they_come(fetch):
    told = []
    fetch(["live"], on_bytes=lambda *arguments: told.append(arguments))
    assert told[-1] == ("live", len(LIVE), len(LIVE))
    assert all(done <= total == len(LIVE) for _, done, total in told)


def test_a_file_that_cannot_be_written_is_named(fetch, server, workspace, monkeypatch):
    usage = shutil.disk_usage(workspace.root)._replace(free=10)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    said = r"live_1401.parquet cannot be written: it takes .* has 10 left"
    assert re.search(said, refused(server, DataError, fetch, ["live"]))
    assert server.operations.count("GET") == 1

    monkeypatch.undo()
    refusal = OSError(errno.EACCES, "Permission denied")
    monkeypatch.setattr("os.replace", Mock(side_effect=refusal))
    path = workspace.data_file("live", 1401)
    message = refused(server, DataError, fetch, ["live"])
    assert message == f"{path} cannot be written: Permission denied."
