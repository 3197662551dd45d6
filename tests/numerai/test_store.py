"""A fit and its record, written both or neither, and read back together."""

import errno
import hashlib
import json
import os
import stat
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from unittest.mock import Mock, patch

import numpy as np
import pytest

from helpers.numerai import refusal
from helpers.numerai.training import stopping_at
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.numerai import store
from sklearn_era.numerai.errors import BusyError, DataError, NoModelError
from sklearn_era.numerai.files import Record, lock, replacing, write_json, write_whole
from sklearn_era.numerai.out_of_date import differences
from sklearn_era.numerai.store import load_fit, read_record, save_fit

X = np.random.default_rng(1).integers(0, 5, size=(50, 2))
RECORD = store.ModelRecord(
    model_name="someone", version="v5.3", feature_set="all", features=["a", "b"],
    target="target_amber_20", n_rows=1800, sha256="",
    parameters={"split_criterion": {"era": 0.5, "vrex": 0.5}, "max_iter": 3},
)  # fmt: skip


def fit(seed=0, **parameters):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, size=(200, 2), dtype=np.int8)
    return Regressor(**{"max_iter": 3, **parameters}).fit(X, X @ [1.0, 1.0])


def test_a_fit_is_read_back_with_its_record(tmp_path):
    model, folder = fit(), tmp_path / "new" / "folder"
    saved = save_fit(folder, "ender", model, RECORD)
    read, record = load_fit(folder, "ender")
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    assert record == saved == read_record(folder, "ender")
    content = (folder / "ender.era").read_bytes()
    assert record.sha256 == hashlib.sha256(content).hexdigest()
    age = datetime.now(UTC) - datetime.fromisoformat(record.created)
    assert 0 <= age.total_seconds() < 60
    assert {"python", "sklearn_era", "scikit-learn", "numpy"} <= set(record.versions)
    told = {"n_trees", "n_trees_with_splits", "last_tree_with_splits"}
    told |= {"sha256", "created", "versions"}
    assert record.model_dump(exclude=told) == RECORD.model_dump(exclude=told)


def test_trees_that_do_not_grow_are_told(tmp_path):
    """One of two features is constant: a tree that draws it alone has no split."""
    X = np.arange(200)[:, None] * [1, 0]
    drawn = Regressor(max_iter=9, colsample_bytree=0.5, random_state=0)
    record = save_fit(tmp_path, "model", drawn.fit(X, X[:, 0]), RECORD)
    splits = [tree.get_n_leaf_nodes() > 1 for (tree,) in drawn._predictors]
    assert 0 < record.n_trees_with_splits == sum(splits) < record.n_trees == 9
    assert splits[record.last_tree_with_splits - 1]
    assert not any(splits[record.last_tree_with_splits :])
    none = save_fit(tmp_path, "none", fit(min_samples_leaf=101), RECORD)
    assert (none.n_trees_with_splits, none.last_tree_with_splits) == (0, 0)


def test_numpys_numbers_in_parameters_are_numbers():
    parameters = {"max_iter": np.int64(3), "monotonic_cst": np.array([1, 0])}
    record = store.ModelRecord(**{**RECORD.model_dump(), "parameters": parameters})
    assert record.parameters == {"max_iter": 3, "monotonic_cst": [1, 0]}
    assert type(record.parameters["max_iter"]) is int


@pytest.mark.parametrize("second", range(5))
@pytest.mark.parametrize("first", range(4))
def test_stopped_twice_it_is_the_old_fit_or_the_new(tmp_path, first, second):
    """A save replaces three files, and one of those before it if that was stopped."""
    models = [fit(seed) for seed in range(4)]
    records = [RECORD.model_copy(update={"version": f"v{i}"}) for i in range(4)]
    save_fit(tmp_path, "model", models[0], records[0])
    there = 0
    for number, n_done in ((1, first), (2, second)):
        goes_on = there == 1 and (tmp_path / "model.new.era").exists()
        with stopping_at(n_done + 1), suppress(KeyboardInterrupt):
            save_fit(tmp_path, "model", models[number], records[number])
        there = number if n_done >= 2 + goes_on else there
        model, record = load_fit(tmp_path, "model")
        assert record.version == f"v{there}"
        np.testing.assert_array_equal(model.predict(X), models[there].predict(X))
    save_fit(tmp_path, "model", models[3], records[3])
    assert load_fit(tmp_path, "model")[1].version == "v3"
    assert sorted(os.listdir(tmp_path)) == ["model.era", "model.json"]


def test_what_a_killed_save_left_is_swept_and_a_full_disk_is_named(tmp_path):
    left = tmp_path / ".sklearn-era-abc"
    left.mkdir()
    (left / "model.era").touch()
    with replacing(tmp_path / "portable.pkl") as partial:  # by an export meanwhile
        partial.touch()
        save_fit(tmp_path, "model", fit(), RECORD)
    there = ["model.era", "model.json", "portable.pkl"]
    assert sorted(os.listdir(tmp_path)) == there
    full = patch.object(store, "save_model", side_effect=OSError(28, "No space left"))
    with full, pytest.raises(DataError, match=r"/model\.era cannot be written: No sp"):
        save_fit(tmp_path, "model", fit(), RECORD)


def test_no_model_is_another_error_than_a_damaged_one(tmp_path):
    with pytest.raises(NoModelError, match="has no fit 'ender': run"):
        load_fit(tmp_path, "ender")
    save_fit(tmp_path, "model", fit(), RECORD)
    path = tmp_path / "model.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "features": [1]}))
    said = r"model.json is damaged \(features.0: .* to train again"
    with pytest.raises(DataError, match=said) as caught:
        load_fit(tmp_path, "model")
    assert not isinstance(caught.value, NoModelError)
    needed = {"features", "target", "parameters", "sha256"}
    path.write_text(json.dumps({key: document[key] for key in needed}))
    assert load_fit(tmp_path, "model")[1].files == []


def test_another_model_file_is_refused(tmp_path):
    save_fit(tmp_path, "model", fit(), RECORD)
    path, document = tmp_path / "model.era", tmp_path / "model.json"
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    for content, said in (
        (b"nothing", "model.era was changed or damaged: .* Train again with --rest"),
        (None, "model.era cannot be read: No such file or directory. Train again"),
        (b"nothing", "is not a model file"),
    ):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(DataError, match=said):
            load_fit(tmp_path, "model")
        path.write_bytes(b"nothing")
        if content is None:
            other = hashlib.sha256(b"nothing").hexdigest()
            document.write_text(document.read_text().replace(sha256, other))


def test_the_rows_count_once_they_are_read():
    changes = ({"data_fingerprint": x, "n_rows": 9, "files": [x]} for x in "fg")
    was, now = (RECORD.model_copy(update=x) for x in changes)
    assert differences(was, was.model_copy(update={"files": []})) == []
    assert "the values in these rows changed" in differences(was, now)[0]
    now = now.model_copy(update={"n_rows": 8, "model_name": "other"})
    assert differences(was, now) == ["n_rows changed from 9 to 8"]
    # Before they are read, the files count, whatever their order and round.
    files = ["train_1401.parquet", "validation_1401.parquet"], ["validation.parquet"]
    was, fewer = (RECORD.model_copy(update={"files": x}) for x in files)
    for same in (["validation_1402.parquet", "train_1402.parquet"], files[0][::-1]):
        assert differences(was, RECORD.model_copy(update={"files": same})) == []
    said = "files changed from ['train', 'validation'] to ['validation']"
    assert differences(was, fewer) == [said]


class Example(Record):
    """A record whose second format has one key more, with a default."""

    format: int = 2
    name: str
    size: int = 0


def test_a_record_of_another_version_is_read(tmp_path):
    path = tmp_path / "example.json"
    for text in ('{"format": 1, "name": "a"}', '{"name": "a", "new": [1], "size": 0}'):
        path.write_text(text)
        record = Example.read(path, advice="Help.")
        assert (record.name, record.size) == ("a", 0)
    record.write(path)
    assert Example.read(path, advice="Help.") == record
    path.unlink()
    assert Example.read(path, advice="Help.") is None


@pytest.mark.parametrize(("text", "said"), [
    *((x, "is damaged") for x in ("", "{", "[]", "[" * 10**5, '{"name": "\xff"}')),
    ('{"format": 2}', "name: Field required"), ('{"name": null}', "is damaged (name: "),
    ('{"name": "a", "size": "x"}', "is damaged (size: "),
    ('{"format": 3, "name": "a"}', "reads formats up to 2: upgrade sklearn-era."),
])  # fmt: skip
def test_a_damaged_record_is_one_sentence(tmp_path, text, said):
    path = tmp_path / "example.json"
    path.write_bytes(text.encode("latin-1"))
    message = refusal(DataError, Example.read, path, advice="Help.")
    assert message.startswith(f"{path} ")
    assert said in message
    assert message.endswith(("Help.", "sklearn-era."))


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "new" / "file"
    write_whole(path, b"old")
    with suppress(ZeroDivisionError), replacing(path) as partial:
        partial.write_bytes(b"ne")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    with pytest.raises(DataError, match=f"{path}/below cannot be written: "):
        write_whole(path / "below", b"")
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(DataError, match="file cannot be written: No space left"):
        write_json(path, {"a": 1})
    assert [one.name for one in path.parent.iterdir()] == ["file"]
    monkeypatch.undo()
    # The temporary folder may be in use, as by a scanner.
    monkeypatch.setattr("os.rmdir", Mock(side_effect=OSError(errno.EBUSY, "Busy")))
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.skipif(os.name != "posix", reason="Windows opens no folders")
def test_a_file_is_on_disk_before_its_name(tmp_path, monkeypatch):
    replace, done = os.replace, []

    def note_replace(source, target):
        done.append("replace")
        replace(source, target)

    monkeypatch.setattr("os.fsync", lambda x: done.append(os.fstat(x).st_ino))
    monkeypatch.setattr("os.replace", note_replace)
    path = tmp_path / "rounds" / "1401" / "file"
    write_whole(path, b"new")
    folders = [x.stat().st_ino for x in (tmp_path, path.parents[1], path.parent)]
    assert done == [*folders[:2], path.stat().st_ino, "replace", folders[2]]


def test_a_file_system_that_syncs_no_folders_will_do(tmp_path, monkeypatch):
    def refuse(file):
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr("os.fsync", refuse)
    write_whole(tmp_path / "new" / "file", b"new")
    assert (tmp_path / "new" / "file").read_bytes() == b"new"


def test_one_run_at_a_time_and_a_killed_one_holds_nothing(tmp_path):
    path = tmp_path / "locks" / "x.lock"
    program = (
        "import sys, time; from pathlib import Path\n"
        "from sklearn_era.numerai.files import lock\n"
        "with lock(Path(sys.argv[1]), 'at it'): print(flush=True); time.sleep(60)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(BusyError, match=r"^Another run is at it: wait"):
            lock(path, "at it").__enter__()
        other.kill()
    with lock(path, "at it", wait=10):
        pass


def test_a_file_system_without_locks_is_warned_of(tmp_path, monkeypatch):
    refuse = Mock(side_effect=OSError(errno.ENOLCK, "No locks available"))
    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    own = lock(tmp_path / "x.lock", "at it")
    with pytest.warns(UserWarning, match="is on a file system without locks"), own:
        pass


def test_help_and_a_command_import_no_more_than_they_need(tmp_path):
    program = (
        "import sys; from pathlib import Path; import sklearn_era.cli._commands\n"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'requests', 'scipy', 'sklearn'}\n"
        "print(heavy & sys.modules.keys())\n"
        "from sklearn_era.numerai.config import load_config, write_config\n"
        "from sklearn_era.cli._numerai import check_packages\n"
        "path = Path(sys.argv[1])\n"
        "write_config(path, name='m', target='target_x_20', version='v5.3')\n"
        "check_packages()\n"
        "load_config(path)\n"
        "print(sorted({'requests', 'pandas', 'pyarrow', 'numerai_tools', 'lightgbm'}"
        " & sys.modules.keys()))\n"
    )
    command = [sys.executable, "-P", "-c", program, tmp_path / "numerai.toml"]
    assert subprocess.check_output(command, text=True) == "set()\n[]\n"
