"""The files of the data: what is fetched, kept and read, and what is refused."""

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from helpers import numerai
from helpers.numerai.program import shuffled_ids
from helpers.numerai.server import discreet_server, make_client, refused
from helpers.numerai.training import FEATURES, TARGET, make_frame, write_frame
from sklearn_era.numerai import data, errors
from sklearn_era.numerai.config import DataSection, TrainSection, Workspace
from sklearn_era.numerai.data import EraFile, check_parquet, select_eras
from sklearn_era.numerai.download import NotPublishedError, download, latest_version
from sklearn_era.numerai.download import wanted as wanted_files
from sklearn_era.numerai.errors import ConfigError, DataError
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
        own, fetch.reporter = DataSection(files=[*names], refresh=[*refresh]), Mock()
        download(make_client(server), workspace, own, round_number, fetch.reporter)
        told = [call.args[0] for call in fetch.reporter.step.call_args_list]
        return [x.removeprefix("Downloaded ").rstrip(".") for x in told if x[0] == "D"]

    return fetch


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


@pytest.mark.parametrize(("twice", "read"), [
    *((name, data.read_predictions) for name in ("id", "prediction")),
    *((name, check_parquet) for name in ("id", "era")),
    ("prediction", lambda path: EraFile(path).read_numbers("prediction")),
])  # fmt: skip
def test_two_columns_of_one_name_are_refused(tmp_path, twice, read):
    table = pa.table({"id": ["a", "b"], "era": ["0001"] * 2, "prediction": [0.1, 0.2]})
    table = table.append_column(twice, table[twice])
    pq.write_table(table, path := tmp_path / "own.parquet")
    said = f"own.* has several columns '{twice}': leave one"
    with pytest.raises((DataError, errors.SubmissionError), match=said):
        read(path)
    if read is data.read_predictions:
        table.to_pandas().to_csv(path := tmp_path / "own.csv", index=False)
        with pytest.raises(errors.SubmissionError, match=said):
            read(path)


def test_a_target_in_a_feature_set_is_refused():
    sets = {"good": ["a"], "bad": ["a", "target_x_20"]}
    metadata = data.FeatureMetadata(feature_sets=sets, targets=["target_x_20"])
    assert metadata.features("good") == ["a"]
    with pytest.raises(ConfigError, match="set 'bad' has the target 'target_x_20'"):
        metadata.features("bad")


def test_others_predictions_are_refreshed_with_the_validation_file(workspace):
    files, workspace.data_dir = DataSection().files, workspace.root
    for name in files:
        workspace.data_file(name, 1401).touch()
    own = DataSection(refresh=["validation"])
    old = {x for x in wanted_files(workspace, own, 1402) if x[:4] != "live"}
    assert old == {
        "validation", "meta_model", "validation_benchmark_models",
        "validation_example_preds",
    }  # fmt: skip


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


def test_an_old_live_file_is_known_by_submissions_too(fetch, server, workspace):
    """Where live files are not kept: of the last round, and of no other folder."""
    fetch(["live"])
    path = workspace.newest("live")
    sent = pd.DataFrame({"id": sorted(data.read_ids(path)), "prediction": 0.5})
    path.unlink()
    for number, rows in (("1400", sent[1:]), ("1401", sent), ("copy", sent[1:])):
        folder = workspace.root / "rounds" / number / "my_model"
        folder.mkdir(parents=True)
        rows.to_csv(folder / "predictions.csv", index=False)
    message = refused(server, NotPublishedError, fetch, ["live"], round_number=1402)
    assert "still serves those of round 1401" in message
    # One of fewer or of further rows is another file.
    for rows in (sent[1:], pd.concat([sent, sent.assign(id="n" + sent["id"])])):
        rows.to_csv(folder.parents[1] / "1401/my_model/predictions.csv", index=False)
        assert fetch(["live"], round_number=1402) == ["live_1402.parquet"]


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
        message = refused(server, errors.BusyError, fetch)
        assert fetch(["features", "live"]) == ["live_1401.parquet"]
    with lock(workspace.lock_file("live"), "at it"):
        refused(server, errors.BusyError, fetch)
    said = f"Another run is downloading to {workspace.data_dir}: wait for it to finish."
    assert message == said


def test_a_download_goes_on_with_what_an_earlier_round_left(fetch, server, workspace):
    content = server.files["v5.3/train.parquet"]
    fetch()
    path = workspace.newest("train")
    path.unlink()
    server.fail("GET", "truncated", 99)
    refused(server, errors.ApiError, fetch, ["train"])
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
    old, section = Workspace(tmp_path, "v5.2"), DataSection(files=["live"])
    given = make_client(server), old, section, 1401, Mock()
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


FRAME = make_frame(n_eras=6, rows_per_era=5)
LIVE = FRAME[:30].assign(era="X")


@pytest.fixture
def write(tmp_path):
    def write(frame=FRAME, change=lambda frame: frame, **options):
        path = tmp_path / "file.parquet"
        change(frame).to_parquet(path, **options)
        return path

    return write


def refusal(path, **options):
    message = numerai.refusal(DataError, check_parquet, path, **options)
    assert message.startswith(str(path))
    return message


@pytest.mark.parametrize(("change", "options"), [
    (lambda frame: frame.reset_index(), {"index": False}),
    (lambda frame: frame.rename_axis(None), {}), (lambda frame: frame[::-1], {}),
    (lambda frame: frame.astype({"era": "category"}), {"row_group_size": 7}),
])  # fmt: skip
def test_ids_may_be_a_column_or_an_index_in_any_order(write, change, options):
    path, rows = write(change=change, **options), change(FRAME)
    rows = rows.set_index("id") if "id" in rows else rows.rename_axis("id")
    assert data.read_ids(path) == rows.index.tolist()
    check_parquet(path)
    names = ["feature_b", "feature_a"]
    pd.testing.assert_frame_equal(data.read_columns(path, names), rows[names])
    assert sorted(data.read_columns(path, None)) == sorted(FRAME.columns)


def test_a_file_without_ids_rows_or_eras_is_refused(write):
    none = write(change=lambda frame: frame.reset_index(drop=True))
    assert "has no ids: add a column 'id' or an index" in refusal(none)
    with pytest.raises(DataError, match="has no ids"):
        data.read_ids(none)
    assert "has no rows" in refusal(write(FRAME[:0]))
    path = write(FRAME[["feature_a"]])
    assert "lacks 1 of 1 columns (first: era): is it from" in refusal(path)
    check_parquet(path, needs_era=False)


@pytest.mark.parametrize("n_groups", [1, 4])
@pytest.mark.parametrize(
    ("last", "said"), [(FRAME.index[0], "1 duplicate ids (fi"), (None, "1 rows with")]
)
def test_ids_twice_or_missing_are_refused(write, n_groups, last, said):
    index = pd.Index([*FRAME.index[:-1], last], name="id")
    path = write(FRAME.set_index(index), row_group_size=len(index) // n_groups)
    assert said in refusal(path)
    if last is None:
        with pytest.raises(DataError, match="has 1 rows without an id"):
            data.read_ids(path)


@pytest.mark.parametrize("size", [0, 3, 4, 8, 200, -1])
def test_a_file_that_is_cut_off_is_refused(write, size):
    path = write()
    path.write_bytes(path.read_bytes()[:size])
    assert refusal(path).endswith("). Delete it and download it again.")


@example(position=2369, value=128)  # a name that is not UTF-8
@given(position=st.integers(4, 60_000), value=st.integers(0, 255))
def test_a_damaged_byte(path, tmp_path_factory, position, value):
    damaged = tmp_path_factory.mktemp("damaged") / "x.parquet"
    read_columns = partial(data.read_columns, columns=None)
    live = partial(check_parquet, live=True), data.read_ids, read_columns
    eras = (lambda x: select_eras([x], settings())), read_all
    for whole, reads in ((LIVE.to_parquet(), live), (path.read_bytes(), eras)):
        content = bytearray(whole)
        content[position % len(content)] = value
        damaged.write_bytes(content)
        for read in reads:
            with suppress(DataError):
                read(damaged)


def test_a_checksum_is_verified_where_there_is_one(write):
    path, plain = write(LIVE), {"write_page_checksum": True, "compression": None}
    pq.write_table(pq.read_table(path), path, **plain)
    content = bytearray(path.read_bytes())
    content[content.index(LIVE.index[0].encode()) + 3] ^= 1
    path.write_bytes(content)
    assert "is damaged" in refusal(path, live=True)


def test_an_era_is_four_digits_and_live_data_are_of_one(write):
    for era in ("575", "X", "00001", None, 1):
        others = [1 if era == 1 else "0001"] * 29
        message = refusal(write(FRAME.assign(era=[*others, era])))
        assert f"has the era {era!r}; eras must be text of four digits" in message
    assert "has 6 eras, but a live file has one." in refusal(write(), live=True)
    check_parquet(write(LIVE.assign(era="1210")), live=True)
    path = write(LIVE.assign(era=None))
    assert "has the era None; eras must be text." in refusal(path, live=True)


def test_a_missing_file_is_named(tmp_path):
    for read in (check_parquet, data.read_ids, data.read_column_names):
        with pytest.raises(DataError, match="none cannot be read: No such file"):
            read(tmp_path / "none")
    with pytest.raises(DataError, match="none does not exist: download it"):
        data.read_features(tmp_path / "none")


def test_feature_sets_are_read_and_named(tmp_path):
    path = tmp_path / "features.json"
    sets = {"small": ["feature_a"], "medium": ["feature_a", "feature_b"]}
    path.write_text(json.dumps({"feature_sets": sets, "targets": ["target"], "x": 1}))
    metadata = data.read_features(path)
    assert (metadata.feature_sets, metadata.targets) == (sets, ["target"])
    assert metadata.features("medium") == ["feature_a", "feature_b"]
    metadata.features("small").clear()
    assert metadata.features("small") == ["feature_a"]
    said = "features.json has no feature set 'medum'; did you mean 'medium'?"
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}$"):
        metadata.features("medum")


@pytest.mark.parametrize(("text", "said"), [
    ('{"targets": [], "x": ' + "[" * 5000 + "]" * 5000 + "}", "recursion limit"),
    ('{"feature_sets": {}, "targets": []}', r"\(feature_sets: Dictionary should"),
    ('{"feature_sets": {"a": "b"}, "targets": []}', r"\(feature_sets.a: "),
])  # fmt: skip
def test_another_features_file_is_refused(tmp_path, text, said):
    path = tmp_path / "features_1401.json"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"^{path} .*{said}.*\. Delete it and downl"):
        data.read_features(path)


LONG = make_frame(rows_per_era=10)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_frame(LONG, tmp_path_factory.mktemp("data") / "train_7.parquet", 40)


def settings(**changes):
    return TrainSection(**{"target": TARGET, "files": ["train"], **changes})


def read_all(path):
    file = EraFile(path)
    return list(file.blocks(FEATURES, file.runs()))


@given(
    first=st.integers(1, 30), n_eras=st.integers(1, 30), every=st.integers(1, 7),
    offset=st.integers(0, 6), groups=st.integers(0, 6),
)  # fmt: skip
def test_chosen_eras(path, first, n_eras, every, offset, groups):
    last, offset = min(30, first + n_eras - 1), offset % every
    numbers = list(range(first, last + 1))[offset::every]
    of = {"every_nth_era": every, "era_offset": offset, "era_groups": groups}
    chosen = settings(first_era=f"{first:04}", last_era=f"{last:04}", **of)
    if groups > len(numbers) or not numbers:
        with pytest.raises(ConfigError, match=r"era_groups = |No era is left"):
            select_eras([path], chosen)
        return
    labels, _ = select_eras([path], chosen)
    assert list(labels) == [f"{number:04}" for number in numbers]
    new = list(labels.values())
    if groups:
        assert new == sorted(new)
        assert set(new) == set(range(groups))
        assert np.ptp(np.bincount(new)) <= 1
    else:
        assert new == numbers


@pytest.mark.parametrize(("changes", "error", "message"), [
    ({"first_era": "0031"}, ConfigError, r"No era is left: .* 0030, but \[tra"),
    ({"first_era": "0030", "every_nth_era": 2, "era_offset": 1}, ConfigError,
     "era_offset = 1"),
    ({"era_groups": 31}, ConfigError, r"\[train\] era_groups = 31 exceeds t"),
    ({"target": "target_late_60", "first_era": "0029"}, DataError,
     "no values in the 2 eras 0029 to 0030"),
    ({"target": "target_no_20"}, DataError, r"1 of 1 columns .first: target_no_20"),
])  # fmt: skip
def test_what_leaves_no_era_is_refused(path, changes, error, message):
    with pytest.raises(error, match=message):
        select_eras([path], settings(**changes))


@pytest.mark.parametrize(("frame", "message"), [
    (LONG.assign(era=None), "has the era None; eras must be text"),
    (LONG.assign(era=LONG["era"].where(LONG["era"] > "0003")), "the era None;"),
    (LONG.assign(**{TARGET: "high"}), "'target_demo_20' of .* is not numeric"),
    (LONG.assign(**{TARGET: LONG[[TARGET]].to_numpy().tolist()}), "holds list"),
    (LONG.drop(columns="era"), "columns .first: era."),
    (LONG, r"era '0001' is also in another file.* twice"),
])  # fmt: skip
def test_files_that_cannot_be_trained_on(tmp_path, path, frame, message):
    other = write_frame(frame, tmp_path / "train_1.parquet")
    with pytest.raises(DataError, match=message):
        select_eras([path, other], settings())


@given(
    eras=st.sets(st.integers(0, 29), min_size=1), holes=st.booleans(),
    features=st.permutations(FEATURES).map(lambda names: names[:5]),
)  # fmt: skip
def test_blocks(path, tmp_path_factory, eras, features, holes):
    frame = LONG
    if holes:
        is_hole = np.arange(len(frame)) % 70 == 69
        frame = frame.assign(feature_a=frame["feature_a"].mask(is_hole))
        path = write_frame(frame, tmp_path_factory.mktemp("data") / "holes.parquet", 40)
    file = EraFile(path)
    runs = file.runs()
    assert runs == [data.EraRun(f"{i + 1:04}", 10 * i, 10 * i + 10) for i in range(30)]
    wanted = [runs[i] for i in sorted(eras)]
    blocks = list(file.blocks(features, wanted))
    assert len(blocks) == len(wanted)
    for run, block in zip(wanted, blocks, strict=True):
        rows = frame[features].iloc[run.start : run.stop]
        np.testing.assert_array_equal(block, rows)
        assert block.flags.f_contiguous
        is_holed = "feature_a" in features and holes
        assert block.dtype == (np.float64 if is_holed else "i1")


def test_blocks_that_cannot_be_read_are_refused(tmp_path, path):
    file = EraFile(path)
    runs = file.runs()
    for features, message in (
        (["feature_a", "feature_x"], r"lacks 1 of 2 columns \(first: feature_x\)"),
        (["data_type"], "column 'data_type' of .* is not numeric"),
    ):
        with pytest.raises(DataError, match=message):
            next(file.blocks(features, runs))
    apart = write_frame(LONG.iloc[[*range(5, 20), *range(5)]], tmp_path / "apart")
    with pytest.raises(DataError, match="rows of era '0001' are not contiguous"):
        EraFile(apart).runs()
    with pytest.raises(DataError, match="has no rows"):
        EraFile(write_frame(LONG[:0], tmp_path / "none"))


def test_a_column_of_fewer_rows_than_the_file_is_damaged(path, monkeypatch):
    file = EraFile(path)
    runs = file.runs()
    for name in ("read", "iter_batches"):
        read = getattr(pq.ParquetFile, name)

        def read_less(*arguments, read=read, name=name, **options):
            found = read(*arguments, **options)
            return found[:-1] if name == "read" else [*found][:-1]

        monkeypatch.setattr(pq.ParquetFile, name, read_less)
    for reading in (
        lambda: list(file.blocks(FEATURES, runs)),
        file.runs,
        lambda: select_eras([path], settings()),
    ):
        with pytest.raises(DataError, match="a column lacks rows"):
            reading()


TARGETS = [f"target_{x}" for x in ("amber_20", "birch_20", "amber_60", "birch_60")]
TARGETS.insert(0, "target")


@pytest.mark.parametrize("name", ["train", "validation", "live"])
def test_columns_dtypes_and_index(demo, name):
    frame = demo.frame(name)
    assert frame.index.name == "id"
    assert all(re.fullmatch("n[0-9a-f]{15}", one) for one in frame.index)
    assert list(frame.columns) == ["era", "data_type", *demo.features, *TARGETS]
    assert set(frame[demo.features].dtypes) == {np.dtype(np.int8)}
    assert set(frame[TARGETS].dtypes) == {np.dtype(np.float32)}
    assert np.unique(frame[demo.features]).tolist() == [0, 1, 2, 3, 4]
    check_parquet(demo.path(name), live=name == "live")
