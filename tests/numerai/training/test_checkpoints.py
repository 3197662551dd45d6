"""A training that was killed goes on, and makes the model of one that was not."""

import json
import shutil
import subprocess
import sys
import textwrap
from collections import defaultdict
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sklearn_era
from helpers.grids import slow
from helpers.numerai.training import (
    FEATURES,
    TARGET,
    assert_same_model,
    train_on,
    write_frame,
)
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.training import checkpoints
from sklearn_era.numerai.training.fit_identity import FitDescription, differences
from sklearn_era.numerai.training.model_store import load_trained

GAIN = {"split_criterion": "gain", "max_features": 0.5, "colsample_bytree": 0.7}
WITH_GAIN = {"compare_with_gain": True}


@pytest.fixture(scope="module")
def interrupted(path, tmp_path_factory):
    """The folder of a training that ended after 7 trees."""
    folder = tmp_path_factory.mktemp("interrupted")
    train_interrupted(path, folder, 7)
    return folder


def train_killed(path, model_dir, how="", at_tree=None, **changes):
    """Train in a process that SIGKILL ends, which nothing can tidy up after."""
    code = """
    import json, os, signal, sys
    sys.path[:0] = json.loads(sys.argv[1])
    from helpers.numerai.training import train_on

    def kill():
        os.kill(os.getpid(), signal.SIGKILL)

    def on_progress(stage, done, total):
        if (stage, done) == AT:
            kill()

    HOW
    path, folder, changes = sys.argv[2:]
    train_on(path, folder, on_progress=on_progress, **json.loads(changes))
    """
    code = textwrap.dedent(code).replace("AT", repr(at_tree))
    code = code.replace("HOW", textwrap.dedent(how))
    folders = json.dumps([x for x in sys.path if x.endswith("tests")])
    changed = json.dumps(changes)
    command = [sys.executable, "-c", code, folders, str(path), str(model_dir), changed]
    # Not in the folder of the sources, which are not compiled.
    finished = subprocess.run(command, cwd=path.parent, capture_output=True, text=True)
    assert finished.returncode == -9, finished.stderr


def at_writing(name, times=1):
    """How to be killed when a file of that name is about to be replaced."""
    return f"""
    replace = os.replace
    def replace_or_die(source, target):
        global n_left
        if str(target).endswith({name!r}):
            n_left -= 1
            if n_left == 0:
                kill()
        replace(source, target)
    n_left = {times}
    os.replace = replace_or_die
    """


def train_interrupted(path, model_dir, n_trees, stage="model", **changes):
    def interrupt(*told):
        if told[:2] == (stage, n_trees):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_on(path, model_dir, on_progress=interrupt, **changes)


def train_and_tell(path, model_dir, **changes):
    """Train; return the numbers of trees told of, by stage."""
    told = defaultdict(list)
    train_on(path, model_dir, on_progress=lambda x, n, _: told[x].append(n), **changes)
    return told


def assert_as_in_one_go(path, model_dir, whole, names=("model",), **changes):
    """Compare the models of a folder with those of a training without a stop."""
    records = train_on(path, whole, **changes)
    for name in names:
        one, record = load_trained(model_dir, name)
        other, _ = load_trained(whole, name)
        assert_same_model(one, other)
        assert record.data_fingerprint == records[name].data_fingerprint


def files_of(folder):
    files = (file for file in folder.rglob("*") if file.is_file())
    return sorted(file.relative_to(folder).as_posix() for file in files)


@pytest.mark.parametrize("parameters", [{"colsample_bytree": 0.3}, slow(GAIN)])
def test_a_killed_training_makes_the_same_model(tmp_path, path, parameters):
    killed = tmp_path / "killed"
    train_killed(path, killed, at_tree=("model", 13), parameters=parameters)
    assert files_of(killed) == [
        "checkpoint-model/checkpoint.json",
        "checkpoint-model/trees-000010.skops",
    ]
    told = train_and_tell(path, killed, parameters=parameters, resume=True)
    assert told["model"] == list(range(10, 24))
    assert files_of(killed) == ["model.json", "model.skops"]
    assert_as_in_one_go(path, killed, tmp_path / "whole", parameters=parameters)


@pytest.mark.slow
def test_a_kill_in_the_plain_model_leaves_the_first(tmp_path, path):
    killed = tmp_path / "killed"
    arguments = {**WITH_GAIN, "parameters": {"max_features": 0.5}}
    train_killed(path, killed, at_tree=("gain", 17), **arguments)
    written = (killed / "model.skops").read_bytes()
    # No tree depends on the purge.
    told = train_and_tell(path, killed, resume=True, purge=5, **arguments)
    assert told["model"] == [23]
    assert told["gain"] == list(range(15, 24))
    assert (killed / "model.skops").read_bytes() == written
    names = ["model", "gain"]
    assert [load_trained(killed, name)[1].purge for name in names] == [5, 5]
    assert_as_in_one_go(path, killed, tmp_path / "whole", names, **arguments)
    assert len(files_of(killed)) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "n_trees", "left"),
    [
        # The second checkpoint's trees are there, and its JSON file is not.
        (at_writing("checkpoint.json", 2), 5, ["trees-000005", "trees-000010"]),
        # The record of the model is there, and its file has yet to be renamed.
        (at_writing("model.skops"), 20, ["trees-000020"]),
    ],
)
def test_a_kill_between_two_files(tmp_path, path, how, n_trees, left):
    killed = tmp_path / "killed"
    train_killed(path, killed, how)
    folder = killed / "checkpoint-model"
    assert sorted(file.stem for file in folder.glob("*.skops")) == left
    assert checkpoints.read_checkpoint(folder).n_trees == n_trees
    if n_trees == 20:  # the new model counts from its record on
        assert_as_in_one_go(path, killed, tmp_path / "whole")
    train_on(path, killed, resume=True)
    assert_as_in_one_go(path, killed, tmp_path / "whole")
    assert files_of(killed) == ["model.json", "model.skops"]


@settings(max_examples=settings().max_examples // 10)
@given(
    stops=st.lists(st.integers(0, 14), min_size=1, max_size=3),
    every=st.integers(1, 16),
    parameters=st.builds(
        dict,
        split_criterion=st.sampled_from(["gain", "era", "time_robust", "vrex"]),
        loss=st.sampled_from(["squared_error", "absolute_error"]),
        colsample_bytree=st.sampled_from([0.3, 1.0]),
        max_features=st.sampled_from([0.5, 1.0]),
    ),
    seed=st.integers(0, 2**32 - 1),
)
@pytest.mark.filterwarnings("ignore:There is no checkpoint:UserWarning")
def test_it_does_not_matter_where_it_stops(
    path, tmp_path_factory, stops, every, parameters, seed
):
    folder = tmp_path_factory.mktemp("stops")
    arguments = {"random_state": seed, "checkpoint_every": every}
    arguments["parameters"] = {**parameters, "max_iter": 15}
    for i, stop in enumerate(sorted(stops)):
        # A training that goes on begins at its checkpoint, and may be past the stop.
        try:
            train_interrupted(path, folder, stop, resume=i > 0, **arguments)
        except pytest.fail.Exception:
            break
    train_on(path, folder, resume=True, **arguments)
    assert_as_in_one_go(path, folder, tmp_path_factory.mktemp("whole"), **arguments)


@pytest.mark.slow
def test_a_training_anew_leaves_the_checkpoint_until_it_has_its_own(tmp_path, path):
    """Both have a checkpoint of as many trees, and the second is killed in writing."""
    killed = tmp_path / "killed"
    train_interrupted(path, killed, 7)
    train_killed(path, killed, at_writing("checkpoint.json"))
    folder = killed / "checkpoint-model"
    assert len(list(folder.glob("trees-000005*.skops"))) == 2
    assert train_and_tell(path, killed, resume=True)["model"] == list(range(5, 24))
    assert_as_in_one_go(path, killed, tmp_path / "whole")
    assert files_of(killed) == ["model.json", "model.skops"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({**WITH_GAIN, "parameters": {"learning_rate": 0.2}}, {}),
        (WITH_GAIN, {**WITH_GAIN, "parameters": {"learning_rate": 0.2}}),
    ],
)
def test_the_plain_models_checkpoint_of_another_fit_does_not_stay(
    tmp_path, path, older, newer
):
    """Not even where the training in between makes no plain model."""
    train_interrupted(path, tmp_path, 7, "gain", **older)
    train_interrupted(path, tmp_path, 7, **newer)
    records = train_on(path, tmp_path, resume=True, **{**WITH_GAIN, **newer})
    assert list(records) == ["model", "gain"]
    rate = 0.2 if newer else 0.1
    assert load_trained(tmp_path, "gain")[0].learning_rate == rate
    assert records["gain"].parameters["learning_rate"] == rate


def test_without_a_checkpoint_it_says_so(tmp_path, path):
    train_interrupted(path, tmp_path, 12, "gain", **WITH_GAIN)
    # That of the plain model alone is none.
    checkpoints.remove_checkpoint(tmp_path / "checkpoint-model")
    with pytest.warns(UserWarning, match="There is no checkpoint in .* starts anew"):
        train_on(path, tmp_path, resume=True, **WITH_GAIN)
    assert len(files_of(tmp_path)) == 4
    # Nor is there one once a training has ended.
    with pytest.warns(UserWarning, match="There is no checkpoint in"):
        told = train_and_tell(path, tmp_path, resume=True)
    assert told["model"] == list(range(24))


@pytest.fixture
def model_dir(tmp_path, interrupted):
    """A folder of its own, of the training that ended after 7 trees."""
    return shutil.copytree(interrupted, tmp_path / "model")


def test_without_resume_it_starts_anew(path, model_dir):
    assert train_and_tell(path, model_dir)["model"] == list(range(24))
    assert files_of(model_dir) == ["model.json", "model.skops"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"learning_rate": 0.2}}, "learning_rate was 0.1 and is 0.2"),
        ({"parameters": {"max_depth": 3}}, "max_depth was None and is 3"),
        ({"random_state": 1}, "random_state was 0 and is 1"),
        ({"target": "target_late_60"}, f"target was '{TARGET}' and is 'target_late"),
        ({"features": FEATURES[1:]}, r"features, 1 are gone \(the first is 'feature_a"),
        ({"features": FEATURES[::-1]}, "the features are in another order"),
        ({"first_era": "0002"}, "first_era was '0001' and is '0002'; n_eras was 30"),
        ({"last_era": "0029"}, "last_era was '0030' .* n_rows was 1800 and is 1740"),
        ({"era_groups": 5}, "era_groups was 0 and is 5"),
        ({"every_nth_era": 2}, "every_nth_era was 1 and is 2"),
        ({"version": "v5.4"}, "version was 'v5.3' and is 'v5.4'"),
        ({"files": "other.parquet"}, r"other values in these rows .*fingerprint"),
    ],
)
def test_another_fit_is_refused(tmp_path, path, frame, model_dir, changes, message):
    if "files" in changes:
        other = frame.copy()
        other.iloc[100, other.columns.get_loc(FEATURES[4])] ^= 1
        changes = {"files": [write_frame(other, tmp_path / changes["files"])]}
    before = files_of(model_dir)
    with pytest.raises(ConfigError, match=message) as caught:
        train_on(path, model_dir, resume=True, **changes)
    assert "of another fit" in str(caught.value)
    assert "without resume to start anew" in str(caught.value)
    assert files_of(model_dir) == before
    train_on(path, model_dir, resume=True)  # with all as it was


def test_threads_and_checkpoints_may_change(tmp_path, path, model_dir):
    arguments = {"parameters": {"n_jobs": 1}, "checkpoint_every": 3}
    train_on(path, model_dir, resume=True, **arguments)
    assert_as_in_one_go(path, model_dir, tmp_path / "whole", **arguments)


def test_damage_is_told(path, model_dir, monkeypatch):
    folder = model_dir / "checkpoint-model"
    trees, document = folder / "trees-000005.skops", folder / "checkpoint.json"
    content, text = trees.read_bytes(), document.read_text()

    def refused(message):
        with pytest.raises(DataError, match=message) as caught:
            train_on(path, model_dir, resume=True)
        assert "without resume" in str(caught.value) or "remove it" in str(caught.value)

    trees.write_bytes(content[:-1])
    refused(r"trees-000005.skops was changed or damaged \(its sha256 differs")
    trees.unlink()
    refused("trees-000005.skops is missing")
    trees.write_bytes(content)
    for damaged, message in (
        (text[:50], "checkpoint.json is damaged, it is no JSON"),
        ("{}", "checkpoint.json is damaged, or is no checkpoint: KeyError"),
        (text.replace('"format": 1', '"format": 2'), "of another version of sklearn_"),
    ):
        document.write_text(damaged)
        refused(message)
    document.write_text(text)
    with monkeypatch.context() as patch:
        patch.setattr(sklearn_era, "__version__", "0.0.0")
        refused(r"cannot be resumed: .* was written by sklearn_era")
    train_on(path, model_dir, resume=True)


def test_what_a_killed_write_left_is_removed(path, model_dir):
    folder = model_dir / "checkpoint-model"
    (folder / ".sklearn-era-left").mkdir()
    (folder / ".sklearn-era-left" / "trees-000010.skops").touch()
    (folder / "checkpoint.json.1.partial").touch()
    train_interrupted(path, model_dir, 12, resume=True)
    assert files_of(folder) == ["checkpoint.json", "trees-000010.skops"]
    assert not (folder / ".sklearn-era-left").exists()


def test_a_folder_by_another_name(tmp_path, path, monkeypatch):
    folder = tmp_path / "model"
    (tmp_path / "other").mkdir()
    train_interrupted(path, folder, 12, "gain", **WITH_GAIN)
    written = (folder / "model.skops").read_bytes()
    monkeypatch.chdir(tmp_path / "other")
    train_interrupted(path, "../model", 17, "gain", resume=True, **WITH_GAIN)
    (tmp_path / "moved").symlink_to(folder)
    train_on(path, "../other/../moved", resume=True, **WITH_GAIN)
    assert (folder / "model.skops").read_bytes() == written
    assert len(files_of(folder)) == 4


def test_copies_are_asked_for_only_where_one_is_due(tmp_path):
    fit = FitDescription({}, TARGET, FEATURES)
    numbers = {"every": 4, "n_trees": 2, "max_iter": 8}
    writer = checkpoints.CheckpointWriter(tmp_path, fit, on_tree=str, **numbers)
    due = []
    for _ in range(6):
        writer.on_fit_task_begin(None, SimpleNamespace(task_name="iteration"))
        due.append(writer.on_fit_task_end.__name__ == "_end_and_save")
    assert due == [False, True, False, False, False, False]  # 4 trees; 8 are the model


def test_differences_are_told_in_words():
    one = FitDescription({"a": 1, "b": [1, 2]}, "t", ["x", "y"], {"n": 3}, "f")
    other = FitDescription({"a": 1}, "u", ["y", "z", "w"], {"n": 4}, "g")
    assert differences(one, one) == []
    assert differences(one, other) == [
        "b was [1, 2] and is None",
        "target was 't' and is 'u'",
        "of the features, 1 are gone (the first is 'x') and 2 are new (the first is "
        "'z')",
        "n was 3 and is 4",
    ]
