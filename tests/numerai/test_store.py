"""A fit and its record, written both or neither, and read back together."""

import hashlib
import json
import os
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import sklearn_era
from helpers.numerai.training import copy_version_before
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_files import save_model
from sklearn_era.numerai import store
from sklearn_era.numerai.data import read_columns
from sklearn_era.numerai.errors import DataError, NoModelError
from sklearn_era.numerai.store import (
    ModelRecord,
    differences,
    load_fit,
    read_record,
    save_fit,
)

X = np.random.default_rng(1).integers(0, 5, size=(50, 2))
RECORD = ModelRecord(
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
    content = (folder / "ender.skops").read_bytes()
    assert record.sha256 == hashlib.sha256(content).hexdigest()
    age = datetime.now(UTC) - datetime.fromisoformat(record.created)
    assert 0 <= age.total_seconds() < 60
    assert {"python", "sklearn_era", "scikit-learn", "numpy"} <= set(record.versions)
    told = {"n_trees", "n_trees_with_splits", "last_tree_with_splits"}
    told |= {"sha256", "created", "versions"}
    assert record.model_dump(exclude=told) == RECORD.model_dump(exclude=told)


def test_trees_that_do_not_grow_are_told(tmp_path):
    """Of two features, one is constant: a tree that draws it alone has no split."""
    X = np.arange(200)[:, None] * [1, 0]
    drawn = Regressor(max_iter=9, colsample_bytree=0.5, random_state=0)
    record = save_fit(tmp_path, "model", drawn.fit(X, X[:, 0]), RECORD)
    splits = [tree.get_n_leaf_nodes() > 1 for (tree,) in drawn._predictors]
    assert 0 < record.n_trees_with_splits == sum(splits) < record.n_trees == 9
    assert splits[record.last_tree_with_splits - 1]
    assert not any(splits[record.last_tree_with_splits :])
    none = save_fit(tmp_path, "none", fit(min_samples_leaf=101), RECORD)
    assert (none.n_trees_with_splits, none.last_tree_with_splits) == (0, 0)


def test_numpys_numbers_in_parameters_are_numbers(tmp_path):
    parameters = {"max_iter": np.int64(3), "monotonic_cst": np.array([1, 0])}
    fields = {**RECORD.model_dump(), "parameters": parameters}
    save_fit(tmp_path, "model", fit(), ModelRecord(**fields))
    read = read_record(tmp_path, "model").parameters
    assert read == {"max_iter": 3, "monotonic_cst": [1, 0]}


@pytest.mark.parametrize("n_done", range(4))
def test_stopped_at_any_step_it_is_the_old_fit_or_the_new(
    tmp_path, monkeypatch, n_done
):
    """Model file, record, and the model file's name: three replacements."""
    save_fit(tmp_path, "model", fit(0), RECORD)
    new = RECORD.model_copy(update={"version": "v6.0"})
    replace_file, left = os.replace, iter(range(n_done))

    def replace_or_stop(source, target):
        if next(left, None) is None:
            raise KeyboardInterrupt
        replace_file(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_or_stop)
        with pytest.raises(KeyboardInterrupt) if n_done < 3 else nullcontext():
            save_fit(tmp_path, "model", fit(1), new)
    model, record = load_fit(tmp_path, "model")
    is_new = n_done >= 2
    assert record.version == ("v6.0" if is_new else "v5.3")
    np.testing.assert_array_equal(model.predict(X), fit(int(is_new)).predict(X))
    save_fit(tmp_path, "model", fit(1), new)
    assert sorted(os.listdir(tmp_path)) == ["model.json", "model.skops"]


def test_the_model_file_is_on_disk_before_its_name(tmp_path, monkeypatch):
    """So that a power cut leaves no record of a file that is not there."""
    done, sync, replace_file = [], os.fsync, os.replace

    def note_sync(number):
        done.append(Path(os.readlink(f"/proc/self/fd/{number}")).name)
        sync(number)

    def note_replace(source, target):
        assert Path(source).name in done
        replace_file(source, target)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("reads /proc")
    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    save_model(fit(), tmp_path / "model.skops")
    assert done == ["model.skops"]


def test_what_a_killed_save_left_is_swept(tmp_path):
    left = tmp_path / ".sklearn-era-abc"
    left.mkdir()
    (left / "model.skops").touch()
    save_fit(tmp_path, "model", fit(), RECORD)
    assert sorted(os.listdir(tmp_path)) == ["model.json", "model.skops"]


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "save_model", fail)
    with pytest.raises(DataError, match=r"/model\.skops cannot be written: No space"):
        save_fit(tmp_path, "model", fit(), RECORD)


def test_no_model_is_another_error_than_a_damaged_one(tmp_path):
    with pytest.raises(NoModelError, match="has no trained model 'ender': run"):
        load_fit(tmp_path, "ender")
    save_fit(tmp_path, "model", fit(), RECORD)
    path = tmp_path / "model.json"
    document = json.loads(path.read_text())
    nested = "[" * 5000 + "]" * 5000
    for text, said in (
        (path.read_text()[:40], r"model.json is damaged \(Invalid JSON"),
        ("[]", "model.json is damaged"),
        (f'{{"features": {nested}}}', "recursion limit"),
        (json.dumps({**document, "features": None}), r"is damaged \(features: "),
        (json.dumps({**document, "features": [1]}), r"is damaged \(features.0: "),
        (json.dumps({**document, "features_with_missing": 3}), "features_with_missing"),
        (json.dumps({**document, "format": 9}), "has format 9, and this version"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=said) as caught:
            load_fit(tmp_path, "model")
        assert not isinstance(caught.value, NoModelError)


def test_records_of_other_versions_are_read(tmp_path):
    save_fit(tmp_path, "model", fit(), RECORD)
    path = tmp_path / "model.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "novelty": [1]}))
    assert read_record(tmp_path, "model").target == RECORD.target
    needed = {"features", "target", "parameters", "sha256"}
    path.write_text(json.dumps({key: document[key] for key in needed}))
    record = read_record(tmp_path, "model")
    assert (record.era_offset, record.n_trees, record.files) == (0, 0, [])
    load_fit(tmp_path, "model")


def test_another_model_file_is_refused(tmp_path):
    save_fit(tmp_path, "model", fit(), RECORD)
    model_path, path = tmp_path / "model.skops", tmp_path / "model.json"
    content, document = model_path.read_bytes(), json.loads(path.read_text())

    def refused(message):
        with pytest.raises(DataError, match=message):
            load_fit(tmp_path, "model")

    model_path.write_bytes(content + b"x")
    refused("model.skops was changed or damaged: .* Train again with --restart")
    model_path.unlink()
    refused("model.skops cannot be read: No such file or directory. Train again")
    model_path.write_bytes(b"nothing")
    sha256 = hashlib.sha256(b"nothing").hexdigest()
    path.write_text(json.dumps({**document, "sha256": sha256}))
    refused("is not a model file")


def test_differences_are_told_in_words():
    def record(**changes):
        return RECORD.model_copy(update=changes)

    assert differences(RECORD, record(model_name="other", feature_set="same")) == []
    was = record(parameters={"max_iter": 12, "n_jobs": 1}, features=["x", "y"])
    now = record(
        parameters={"max_iter": 7, "learning_rate": 0.1}, features=["y", "z", "w"],
        target="target_b", era_bounds=(None, "0030"), files=["train_7.parquet"],
    )  # fmt: skip
    assert differences(was, now) == [
        "max_iter was 12 and is 7",
        "target was 'target_amber_20' and is 'target_b'",
        "last_era was '' and is '0030'",
        "files was [] and is ['train']",
        "of the features, 1 are gone (first: x) and 2 are new (first: w)",
    ]
    other_set = record(feature_set="small", features=["y", "x"])
    assert differences(RECORD, other_set) == ["feature_set was 'all' and is 'small'"]
    (order,) = differences(record(features=["x", "y"]), record(features=["y", "x"]))
    assert order == "of the features, the order differs"
    # Once the data are read, it is their rows that count.
    was, now = (record(data_fingerprint=x, n_rows=9, files=[x]) for x in "fg")
    assert differences(was, was.model_copy(update={"files": []})) == []
    assert "other values in these rows" in differences(was, now)[0]
    now = now.model_copy(update={"n_rows": 8})
    assert differences(was, now) == ["n_rows was 9 and is 8"]


@pytest.mark.parametrize("version", [sklearn_era.__version__, "0.2.0"])
def test_fits_of_the_version_before_predict_what_they_did(
    tmp_path, monkeypatch, version
):
    folder = copy_version_before(tmp_path)
    monkeypatch.setattr(sklearn_era, "__version__", version)
    recorded = json.loads((folder / "recorded.json").read_text())
    for name, expected in recorded.items():
        model, record = load_fit(folder / "models" / "someone", name)
        live = read_columns(folder / "data/v5.3/live_1.parquet", record.features)
        assert model.predict(live).tolist() == expected
        assert (record.last_era, record.n_rows, record.n_trees) == ("0011", 220, 0)
