"""A training that was killed goes on, and makes the model of one that was not."""

import json
import os
import re
import shutil
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sklearn_era
from helpers.grids import slow
from helpers.numerai import training as helper
from helpers.numerai.training import (
    FEATURES,
    TARGET,
    make_frame,
    stopping_at,
    train_on,
    why,
)
from sklearn_era.numerai import training
from sklearn_era.numerai.config import load_config
from sklearn_era.numerai.data import read_columns, read_features
from sklearn_era.numerai.store import load_fit
from sklearn_era.numerai.training import FitPlan, gain_settings, read_checkpoint

GAIN = {"split_criterion": "gain", "max_features": 0.5, "colsample_bytree": 0.7}


@pytest.fixture(scope="module")
def trained(path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    train_on(path, folder)
    return folder


@pytest.fixture(scope="module")
def interrupted(path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupted")
    train_interrupted(path, folder, 7)
    return folder


@pytest.fixture
def folder(tmp_path, interrupted):
    return shutil.copytree(interrupted, tmp_path / "model")


def train_interrupted(path, folder, n_trees, **changes):
    def interrupt(*told):
        if told[:2] == ("model", n_trees):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_on(path, folder, on_progress=interrupt, **changes)


def train_and_tell(path, folder, **changes):
    """Train; return the reported numbers of trees."""
    told = []
    train_on(path, folder, on_progress=lambda *x: told.append(x), **changes)
    return [n_trees for stage, n_trees, _ in told if stage == "model"]


def assert_as_in_one_go(path, folder, whole, **changes):
    """Compare the model of a folder with that of a training without a stop."""
    train_on(path, whole, **changes)
    (one, record), (other, expected) = (load_fit(x, "model") for x in (folder, whole))
    helper.assert_same_model(one, other)
    assert record.data_fingerprint == expected.data_fingerprint


def files_of(folder):
    files = (file for file in folder.rglob("*") if file.is_file())
    return sorted(file.relative_to(folder).as_posix() for file in files)


@pytest.mark.parametrize(("stop", "parameters", "n_trees", "left"), [
    ([1, "/trees-000015.era"], {"colsample_bytree": 0.3}, 10, ["trees-000010"]),
    slow([1, "/trees-000015.era"], GAIN, 10, ["trees-000010"]),
    # The second checkpoint's trees are there, and its JSON file is not.
    ([2, "/checkpoint.json"], {}, 5, ["trees-000005", "trees-000010"]),
    # The record of the model is there, and its file has yet to be renamed.
    ([1, "/model.era"], {}, 20, ["trees-000020"]),
])  # fmt: skip
def test_a_training_that_was_killed(tmp_path, path, stop, parameters, n_trees, left):
    """At any moment, and by a signal, `test_faults` kills whole runs."""
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with stopping_at(*stop), pytest.raises(KeyboardInterrupt):
        train_on(path, killed, parameters=parameters)
    folder = killed / "checkpoint-model"
    assert sorted(file.stem for file in folder.glob("*.era")) == left
    assert read_checkpoint(folder).n_trees == n_trees
    said = f"interrupted training resumes after tree {n_trees}"
    assert why(path, killed, parameters=parameters) == said
    if n_trees == 20:  # the new model counts from its record on
        assert_as_in_one_go(path, killed, whole)
    told = train_and_tell(path, killed, parameters=parameters)
    assert told == list(range(n_trees, 24))
    assert files_of(killed) == ["model.era", "model.json"]
    assert why(path, killed, parameters=parameters) is None
    assert_as_in_one_go(path, killed, whole, parameters=parameters)


@settings(max_examples=settings().max_examples // 10)
@given(
    stops=st.lists(st.integers(0, 14), min_size=1, max_size=3),
    every=st.integers(1, 16), seed=st.integers(0, 2**32 - 1),
    parameters=st.builds(
        dict, loss=st.sampled_from(["squared_error", "absolute_error"]),
        split_criterion=st.sampled_from(["gain", "era", "time_robust", "vrex"]),
        colsample_bytree=st.sampled_from([0.3, 1.0]),
        max_features=st.sampled_from([0.5, 1.0]),
    ),
)  # fmt: skip
def test_stops_anywhere(path, tmp_path_factory, stops, every, parameters, seed):
    folder = tmp_path_factory.mktemp("stops")
    arguments = {"random_state": seed, "checkpoint_every": every}
    arguments["parameters"] = {**parameters, "max_iter": 15}
    for stop in sorted(stops):
        # A training that goes on begins at its checkpoint, and may be past the stop.
        try:
            train_interrupted(path, folder, stop, **arguments)
        except pytest.fail.Exception:
            break
    train_on(path, folder, **arguments)
    assert_as_in_one_go(path, folder, tmp_path_factory.mktemp("whole"), **arguments)


def test_it_is_resumed_unless_told_to_restart(path, folder):
    # Threads and checkpoints may change.
    changes = {"parameters": {"n_jobs": 1}, "checkpoint_every": 3}
    assert train_and_tell(path, folder, **changes)[0] == 5
    assert load_fit(folder, "model")[0].n_jobs == 1
    # Once it has ended, a training starts anew.
    train_interrupted(path, folder, 7)
    assert train_and_tell(path, folder, restart=True) == list(range(24))
    assert files_of(folder) == ["model.era", "model.json"]
    assert train_and_tell(path, folder)[0] == 0


def test_a_killed_restart_keeps_the_checkpoint(tmp_path, path, folder):
    """Both have a checkpoint of as many trees, and the second is killed in writing."""
    with stopping_at(1, "/checkpoint.json"), pytest.raises(KeyboardInterrupt):
        train_on(path, folder, restart=True)
    left = folder / "checkpoint-model"
    assert len(list(left.glob("trees-000005*.era"))) == 2
    assert train_and_tell(path, folder) == list(range(5, 24))
    assert_as_in_one_go(path, folder, tmp_path / "whole")
    assert files_of(folder) == ["model.era", "model.json"]


@pytest.mark.parametrize(("changes", "said", "said_of_rows"), [
    ({"parameters": {"max_iter": 17}}, "max_iter changed from 23 to 17", ""),
    ({"random_state": 1}, "random_state changed from 0 to 1", ""),
    ({"target": "target_late_60"}, f"target changed from '{TARGET}' to 'tar", ""),
    ({"first_era": "0002"}, "first_era changed from '' to '0002'",
     "first_era changed from '0001' to '0002'; n_eras changed from 30"),
    ({"last_era": "0029"}, "last_era changed from '' to '0029'",
     "last_era changed from '0030' .* n_rows changed from 1800 to 1740"),
    ({"era_groups": 5}, "era_groups changed from 0 to 5", ""),
    ({"every_nth_era": 2, "era_offset": 1},
     "every_nth_era changed from 1 to 2; era_offset changed from 0 to 1", ""),
    ({"version": "v6.0"}, "version changed from 'v5.3' to 'v6.0'", ""),
    ({"features": FEATURES[1:], "feature_set": "medium"},
     "feature_set changed from 'small' to 'medium'", ""),
    ({"features": [*FEATURES[1:], "target_late_60"]}, "features changed: 1 removed "
     "(first: feature_a), 1 added (first: target_late_60)", ""),
    ({"features": FEATURES[::-1]}, "features changed: their order differs", ""),
    ({"files": ["other.parquet"]}, "files changed from ['train'] to ['other']",
     "the values in these rows changed"),
])  # fmt: skip
def test_another_fit(path, trained, folder, tmp_path, changes, said, said_of_rows):
    if "files" in changes:
        other = make_frame()
        other.iloc[100, other.columns.get_loc(FEATURES[4])] ^= 1
        changes = {"files": [helper.write_frame(other, tmp_path / changes["files"][0])]}
    assert why(path, trained, **changes).startswith(said)
    anew = rf"Cannot resume .*another fit: .*{said_of_rows or re.escape(said)}.*\)\."
    with pytest.warns(UserWarning, match=anew):
        train_interrupted(path, folder, 12, **changes)
    assert files_of(folder / "checkpoint-model")[1:] == ["trees-000010.era"]


def test_the_fit_that_is_configured_needs_no_training(path, trained, tmp_path):
    assert why(path, tmp_path) == "not trained yet"
    assert why(path, trained) is None
    # Settings that trees do not depend on, and defaults.
    free = {"n_jobs": 2, "min_gain_share": 0.5, "max_depth": None}
    assert why(path, trained, parameters=free, checkpoint_every=3) is None
    for file in (path.with_name("train_8.parquet"), "train.parquet", "train"):
        assert why(path, trained, files=[file]) is None


def test_a_checkpoint_of_other_settings_is_no_reason_to_train(path, trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "model")
    changed = {"parameters": {"max_depth": 3}}
    train_interrupted(path, folder, 7, **changed)
    assert why(path, folder) is None
    assert why(path, folder, **changed) == "interrupted training resumes after tree 5"


@pytest.mark.parametrize(("name", "change", "said"), [
    ("trees-000005.era", lambda x: x[:-1], "was changed or damaged: sha256"),
    ("trees-000005.era", None, "cannot be read: No such file"),
    ("checkpoint.json", lambda x: x[:50], r"is damaged \(Invalid JSON.*\. Delete"),
    ("checkpoint.json", lambda x: b"{}", "Field required"),
])  # fmt: skip
def test_a_damaged_checkpoint_is_told_and_replaced(path, folder, name, change, said):
    file = folder / "checkpoint-model" / name
    content = file.read_bytes()
    file.unlink()
    if change is not None:
        file.write_bytes(change(content))
    with pytest.warns(UserWarning, match=f"Cannot resume .*{name} .*{said}"):
        assert train_and_tell(path, folder)[0] == 0
    assert files_of(folder) == ["model.era", "model.json"]


def test_what_a_killed_write_left_is_removed(path, folder):
    own = folder / "checkpoint-model"
    (own / ".sklearn-era-left").mkdir()
    (own / ".sklearn-era-left" / "trees-000010.era").touch()
    (own / "checkpoint.json.1.partial").touch()
    train_interrupted(path, folder, 12)
    assert sorted(os.listdir(own)) == ["checkpoint.json", "trees-000010.era"]


@pytest.mark.parametrize("name", ["save_model", "file_sha256"])
def test_a_full_disk_ends_no_training(tmp_path, path, trained, monkeypatch, name):
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(training, name, full)
    with pytest.warns(UserWarning, match="model could not be .*No space left"):
        assert train_and_tell(path, tmp_path) == list(range(24))
    assert full.call_count == 4  # of 5, 10, 15 and 20 trees
    assert files_of(tmp_path) == ["model.era", "model.json"]
    helper.assert_same_model(*(load_fit(x, "model")[0] for x in (tmp_path, trained)))


@pytest.mark.parametrize("version", [sklearn_era.__version__, "0.2.0"])
def test_fits_of_the_version_before(tmp_path, monkeypatch, version):
    monkeypatch.setattr(sklearn_era, "__version__", version)
    root = helper.copy_version_before(tmp_path)
    toml, folder = root / "numerai.toml", root / "models" / "someone"
    # The purge is nothing that a fit depends on.
    toml.write_text(toml.read_text().replace("purge = 3", "purge = 8"))
    config, workspace = load_config(toml)
    settings = config.models[0].members[0].train
    features = read_features(workspace.newest("features")).features("all")
    files = [workspace.newest("train")]

    def plan(settings, name="model"):
        of = {"name": name, "version": config.data.version}
        return FitPlan(settings, files, features, folder, **of)

    live = read_columns(workspace.newest("live"), features)
    recorded = json.loads((root / "recorded.json").read_text())
    for name, wanted in (("model", settings), ("gain", *gain_settings([settings]))):
        model, record = load_fit(folder, name)
        assert model.predict(live[record.features]).tolist() == recorded[name]
        assert (record.last_era, record.n_rows, record.n_trees) == ("0011", 220, 0)
        assert plan(wanted, name).why_train() is None
    told, expected = [], load_fit(folder, "model")[0]
    for suffix in ("json", "era"):
        (folder / f"model.{suffix}").rename(folder / f"before.{suffix}")
    training.train(plan(settings), on_progress=lambda *x: told.append(x))
    assert [n_trees for stage, n_trees, _ in told if stage == "model"] == [8, 9, 10]
    helper.assert_same_model(load_fit(folder, "model")[0], expected)
    # A parameter that this version added has its default in both.
    record = json.loads((folder / "before.json").read_text())
    del record["parameters"]["min_era_coverage"]
    (folder / "before.json").write_text(json.dumps(record))
    assert plan(settings, "before").why_train().endswith(" to 0.5")
    kept = {k: v for k, v in settings.parameters.items() if k != "min_era_coverage"}
    settings = settings.model_copy(update={"parameters": kept})
    assert plan(settings, "before").why_train() is None


def test_the_mark_of_a_complete_model_of_the_version_before_is_none(tmp_path):
    root = helper.copy_version_before(tmp_path)
    folder = root / "models" / "someone" / "checkpoint-model"
    path, document = folder / "checkpoint.json", read_checkpoint(folder).model_dump()
    assert document["n_trees"] == 8
    path.write_text(json.dumps({**document, "file": "../model.era"}))
    assert read_checkpoint(folder) is None
