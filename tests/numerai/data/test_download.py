"""Downloads: what is fetched, what is kept, and what never gets its name."""

import errno
import json
import logging
import shutil

import pytest

from sklearn_era.numerai.data.download import download
from sklearn_era.numerai.errors import ApiError, ConfigError, DataError
from sklearn_era.numerai.workspace import Workspace

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("numerapi")
numerai_server = pytest.importorskip("helpers.numerai.server")

NAMES = ["features", "train", "validation", "live"]


@pytest.fixture(scope="module")
def files():
    return numerai_server.numerai_files()


@pytest.fixture
def server(files, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with numerai_server.NumeraiServer(files) as server:
        yield server
    told = [record.getMessage() for record in caplog.get_records("call")]
    numerai_server.assert_discreet(server, *told, *capfd.readouterr())
    # Nothing is left lying about, whatever went wrong.
    assert not list(tmp_path.rglob("*.partial"))


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path, "v5.3", "my_model")


@pytest.fixture
def fetch(server, workspace):
    def fetch(names=NAMES, **options):
        """Download; return which files were fetched."""
        told = {}
        client = numerai_server.make_client(server)
        paths = download(
            client,
            workspace,
            names,
            on_file=lambda name, path, what: told.update({name: (path, what)}),
            **options,
        )
        assert {name: path for name, (path, _) in told.items()} == paths
        assert all(path.is_file() for path in paths.values())
        return [name for name, (_, what) in told.items() if what == "downloaded"]

    return fetch


def refused(server, error, call):
    with pytest.raises(error) as caught:
        call()
    numerai_server.assert_discreet(server, numerai_server.everything_said(caught.value))
    return str(caught.value)


def test_files_are_named_by_the_round(fetch, workspace, files):
    assert fetch() == NAMES
    here = {path.name: path.read_bytes() for path in workspace.data_dir.iterdir()}
    assert here == {
        "features_1401.json": files["v5.3/features.json"],
        "train_1401.parquet": files["v5.3/train.parquet"],
        "validation_1401.parquet": files["v5.3/validation.parquet"],
        "live_1401.parquet": files["v5.3/live.parquet"],
    }


def test_only_live_files_are_fetched_each_time(fetch, server, workspace):
    fetch()
    assert fetch() == ["live"]
    server.round_number = 1402
    assert fetch() == ["live"]
    assert workspace.rounds_of("live") == [1401, 1402]
    assert workspace.rounds_of("train") == [1401]


def test_a_refreshed_file_is_fetched_once_a_round(fetch, server, workspace):
    fetch()
    assert fetch(refresh=["validation"]) == ["live"]
    server.round_number = 1402
    assert fetch(refresh=["validation"]) == ["validation", "live"]
    assert fetch(refresh=["validation"]) == ["live"]
    assert workspace.rounds_of("validation") == [1401, 1402]
    # A name is refreshed among those to download, or it would be passed over.
    message = refused(server, ConfigError, lambda: fetch(refresh=["meta_model"]))
    assert "refresh names 'meta_model'" in message


def test_a_damaged_file_is_not_kept(fetch, workspace, files):
    fetch()
    path = workspace.newest("train")
    path.write_bytes(path.read_bytes()[:-9])
    workspace.newest("features").write_text("{")
    assert fetch() == ["features", "train", "live"]
    assert path.read_bytes() == files["v5.3/train.parquet"]


def test_a_round_may_be_named(fetch, server, workspace):
    fetch(round_number=1399)
    assert workspace.rounds_of("live") == [1399]
    assert "rounds" not in server.operations


def test_an_old_live_file_of_the_same_size_is_replaced(fetch, server, workspace):
    fetch()
    other = numerai_server.live_parquet(seed=1)
    server.files["v5.3/live.parquet"] = other
    assert len(other) == workspace.newest("live").stat().st_size
    fetch(["live"])
    assert workspace.newest("live").read_bytes() == other


def test_leftovers_of_killed_runs_are_removed_and_never_gone_on_with(
    fetch, server, workspace, files
):
    workspace.data_dir.mkdir(parents=True)
    leftovers = [
        "live.parquet.temp",
        "live_1401.parquet.temp",
        "live_1401.parquet.0123abcd.partial",
        "live_1399.parquet.89abcdef.partial",
    ]
    for name in leftovers:
        (workspace.data_dir / name).write_bytes(b"PAR1 the head of an old file")
    ours = workspace.data_dir / "train_1401.parquet.notes"
    ours.write_text("kept")
    fetch(["live"])
    assert sorted(path.name for path in workspace.data_dir.iterdir()) == [
        "live_1401.parquet",
        ours.name,
    ]
    assert workspace.newest("live").read_bytes() == files["v5.3/live.parquet"]
    assert all("range" not in request.headers for request in server.requests)


def test_a_file_that_breaks_off_is_fetched_again(fetch, server, workspace, files):
    server.fail("GET", "truncated", times=2)
    fetch(["live"])
    assert workspace.newest("live").read_bytes() == files["v5.3/live.parquet"]
    # A new address each time.
    asked = [entry for entry in server.operations if entry in ("dataset", "GET")]
    assert asked == ["dataset", "GET"] * 3


@pytest.mark.parametrize("kind", ["truncated", 403, 500, "drop"])
def test_a_file_that_does_not_come_leaves_nothing(fetch, server, workspace, kind):
    server.fail("GET", kind, times=99)
    message = refused(server, ApiError, lambda: fetch(["live"]))
    assert message.startswith("Downloading v5.3/live.parquet: ")
    assert list(workspace.data_dir.iterdir()) == []


def test_a_file_that_comes_damaged_is_fetched_once_more(fetch, server, workspace):
    server.fail("GET", "corrupt")
    assert fetch(["live"]) == ["live"]
    assert server.operations.count("GET") == 2

    before = workspace.newest("live").read_bytes()
    server.requests.clear()
    server.fail("GET", "corrupt", times=99)
    message = refused(server, DataError, lambda: fetch(["live"]))
    assert message.startswith(f"{workspace.newest('live')} is ")
    assert ".partial" not in message
    assert server.operations.count("GET") == 2
    assert workspace.newest("live").read_bytes() == before


def test_damaged_features_are_named_as_they_would_be(fetch, server, workspace):
    server.files["v5.3/features.json"] = b"<html>"
    message = refused(server, DataError, lambda: fetch(["features"]))
    assert message.startswith(str(workspace.data_file("features", 1401)))
    assert ".partial" not in message


def test_a_version_that_is_gone_is_told_with_the_latest(fetch, server, tmp_path):
    server.files["v5.10/live.parquet"] = b""
    client = numerai_server.make_client(server)
    old = Workspace(tmp_path, "v5.2", "my_model")
    message = refused(server, DataError, lambda: download(client, old, ["live"]))
    assert message == (
        "v5.2/live.parquet is no longer served; latest is v5.10. Retrain on it: set "
        "version = 'v5.10' in [data], and train again."
    )
    assert "dataset" not in server.operations


def test_an_unknown_file_is_told_with_the_known_ones(fetch, server, workspace):
    message = refused(server, ConfigError, lambda: fetch(["live", "valid"]))
    assert message == (
        "Numerai serves no v5.3/valid.parquet; did you mean 'validation'? Those "
        "of v5.3: features, live, train, validation."
    )
    assert not workspace.data_dir.exists(), "known before anything is fetched"


def test_features_that_the_data_lack_are_refused(fetch, server, files):
    document = json.loads(files["v5.3/features.json"])
    document["feature_sets"]["all"] += ["feature_new", "feature_newer"]
    server.files["v5.3/features.json"] = json.dumps(document).encode()
    message = refused(server, DataError, fetch)
    assert "lacks 2 of the 8 features in features_1401.json (first: feature_new)" in (
        message
    )
    del document["feature_sets"]["all"]
    server.files["v5.3/features.json"] = json.dumps(document).encode()
    server.round_number = 1402
    fetch(refresh=["features"])


def test_files_without_eras_or_features_are_accepted(fetch, server, files, tmp_path):
    frame = pd.read_parquet(_written(tmp_path, files["v5.3/validation.parquet"]))
    for name in ("meta_model", "validation_example_preds"):
        columns = ["feature_a"] if name != "meta_model" else ["era", "feature_a"]
        frame[columns].to_parquet(tmp_path / "table.parquet")
        content = (tmp_path / "table.parquet").read_bytes()
        server.files[f"v5.3/{name}.parquet"] = content
    frame.assign(era="X")[["era", "feature_a"]].to_parquet(tmp_path / "table.parquet")
    content = (tmp_path / "table.parquet").read_bytes()
    server.files["v5.3/live_benchmark_models.parquet"] = content
    names = ["meta_model", "validation_example_preds", "live_benchmark_models"]
    assert fetch(names) == names
    assert fetch(names) == names[2:]


def _written(folder, content):
    path = folder / "written.parquet"
    path.write_bytes(content)
    return path


def test_bytes_are_reported_as_they_come(fetch, files):
    told = []
    fetch(["live"], on_bytes=lambda *arguments: told.append(arguments))
    size = len(files["v5.3/live.parquet"])
    assert told[-1] == ("live", size, size)
    assert all(done <= total == size for _, done, total in told)


def test_a_full_disk_is_found_before_it_is_full(fetch, server, workspace, monkeypatch):
    usage = shutil.disk_usage(workspace.root)._replace(free=10)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    message = refused(server, DataError, lambda: fetch(["live"]))
    assert "live_1401.parquet cannot be written: it takes" in message
    assert "has 10 left" in message
    assert server.operations.count("GET") == 1


def test_a_file_that_cannot_be_written_is_named(fetch, server, workspace, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("os.replace", refuse)
    message = refused(server, DataError, lambda: fetch(["live"]))
    assert message == (
        f"{workspace.data_file('live', 1401)} cannot be written: Permission denied."
    )


def test_names_given_twice_are_fetched_once(fetch, server):
    assert fetch(["live", "live"]) == ["live"]
    assert server.operations.count("GET") == 1
