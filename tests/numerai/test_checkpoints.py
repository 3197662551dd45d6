"""A training that was killed goes on, and makes the model of one that was not."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
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
    copy_version_before,
    make_frame,
    train_on,
    why,
    write_frame,
)
from sklearn_era.numerai import checkpoints
from sklearn_era.numerai.config import load_config
from sklearn_era.numerai.data import read_features
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.store import ModelRecord, load_fit
from sklearn_era.numerai.training import train

GAIN = {"split_criterion": "gain", "max_features": 0.5, "colsample_bytree": 0.7}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_frame(
        make_frame(), tmp_path_factory.mktemp("data") / "train_7.parquet"
    )


@pytest.fixture(scope="module")
def interrupted(path, tmp_path_factory):
    """The folder of a training that ended after 7 trees."""
    folder = tmp_path_factory.mktemp("interrupted")
    train_interrupted(path, folder, 7)
    return folder


@pytest.fixture
def folder(tmp_path, interrupted):
    """A folder of its own, of the training that ended after 7 trees."""
    return shutil.copytree(interrupted, tmp_path / "model")


def train_killed(path, folder, how="", at_tree=None, **changes):
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
    code = textwrap.dedent(code).replace("AT", repr(at_tree and ("model", at_tree)))
    code = code.replace("HOW", textwrap.dedent(how))
    folders = json.dumps([x for x in sys.path if x.endswith("tests")])
    changed = json.dumps(changes)
    command = [sys.executable, "-c", code, folders, str(path), str(folder), changed]
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


def train_interrupted(path, folder, n_trees, **changes):
    def interrupt(*told):
        if told[:2] == ("model", n_trees):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_on(path, folder, on_progress=interrupt, **changes)


def train_and_tell(path, folder, **changes):
    """Train; return the numbers of trees told of."""
    told = []
    train_on(path, folder, on_progress=lambda *x: told.append(x), **changes)
    return [n_trees for stage, n_trees, _ in told if stage == "model"]


def assert_as_in_one_go(path, folder, whole, **changes):
    """Compare the model of a folder with that of a training without a stop."""
    train_on(path, whole, **changes)
    (one, record), (other, expected) = (
        load_fit(folder, "model"),
        load_fit(whole, "model"),
    )
    assert_same_model(one, other)
    assert record.data_fingerprint == expected.data_fingerprint


def files_of(folder):
    files = (file for file in folder.rglob("*") if file.is_file())
    return sorted(file.relative_to(folder).as_posix() for file in files)


@pytest.mark.parametrize("parameters", [{"colsample_bytree": 0.3}, slow(GAIN)])
def test_a_killed_training_makes_the_same_model(tmp_path, path, parameters):
    killed = tmp_path / "killed"
    train_killed(path, killed, at_tree=13, parameters=parameters)
    assert files_of(killed) == [
        "checkpoint-model/checkpoint.json",
        "checkpoint-model/trees-000010.skops",
    ]
    assert why(path, killed, parameters=parameters) == "a training was interrupted"
    told = train_and_tell(path, killed, parameters=parameters)
    assert told == list(range(10, 24))
    assert files_of(killed) == ["model.json", "model.skops"]
    assert why(path, killed, parameters=parameters) is None
    assert_as_in_one_go(path, killed, tmp_path / "whole", parameters=parameters)


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
    assert checkpoints.read(folder).n_trees == n_trees
    if n_trees == 20:  # the new model counts from its record on
        assert_as_in_one_go(path, killed, tmp_path / "whole")
    train_on(path, killed)
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
def test_it_does_not_matter_where_it_stops(
    path, tmp_path_factory, stops, every, parameters, seed
):
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
    assert train_and_tell(path, folder)[0] == 5
    # Once it has ended, a training starts anew.
    train_interrupted(path, folder, 7)
    assert train_and_tell(path, folder, restart=True) == list(range(24))
    assert files_of(folder) == ["model.json", "model.skops"]
    assert train_and_tell(path, folder)[0] == 0


@pytest.mark.slow
def test_a_training_anew_leaves_the_checkpoint_until_it_has_its_own(
    tmp_path, path, folder
):
    """Both have a checkpoint of as many trees, and the second is killed in writing."""
    train_killed(path, folder, at_writing("checkpoint.json"), restart=True)
    left = folder / "checkpoint-model"
    assert len(list(left.glob("trees-000005*.skops"))) == 2
    assert train_and_tell(path, folder) == list(range(5, 24))
    assert_as_in_one_go(path, folder, tmp_path / "whole")
    assert files_of(folder) == ["model.json", "model.skops"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"learning_rate": 0.2}}, "learning_rate was 0.1 and is 0.2"),
        ({"parameters": {"max_depth": 3}}, "max_depth was None and is 3"),
        ({"random_state": 1}, "random_state was 0 and is 1"),
        ({"target": "target_late_60"}, f"target was '{TARGET}' and is 'target_late"),
        ({"features": FEATURES[1:]}, r"features, 1 are gone \(first: feature_a\)"),
        ({"features": FEATURES[::-1]}, "of the features, the order differs"),
        ({"first_era": "0002"}, "first_era was '0001' and is '0002'; n_eras was 30"),
        ({"last_era": "0029"}, "last_era was '0030' .* n_rows was 1800 and is 1740"),
        ({"era_groups": 5}, "era_groups was 0 and is 5"),
        ({"every_nth_era": 2}, "every_nth_era was 1 and is 2"),
        ({"every_nth_era": 2, "era_offset": 1}, "era_offset was 0 and is 1"),
        ({"version": "v5.4"}, "version was 'v5.3' and is 'v5.4'"),
        ({"files": "other.parquet"}, "other values in these rows"),
    ],
)
def test_the_checkpoint_of_another_fit_is_replaced_after_a_warning(
    tmp_path, path, folder, changes, message
):
    if "files" in changes:
        other = make_frame()
        other.iloc[100, other.columns.get_loc(FEATURES[4])] ^= 1
        changes = {"files": [write_frame(other, tmp_path / changes["files"])]}
    said = rf"is not resumed; .* \(it is of another fit: .*{message}.*\)\."
    with pytest.warns(UserWarning, match=said):
        train_interrupted(path, folder, 12, **changes)
    assert files_of(folder / "checkpoint-model") == [
        "checkpoint.json",
        "trees-000010.skops",
    ]
    assert train_and_tell(path, folder, **changes)[0] == 10


def test_threads_and_checkpoints_may_change(tmp_path, path, folder):
    arguments = {"parameters": {"n_jobs": 1}, "checkpoint_every": 3}
    assert train_and_tell(path, folder, **arguments)[0] == 5
    assert_as_in_one_go(path, folder, tmp_path / "whole", **arguments)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("trees-000005.skops", lambda x: x[:-1], "was changed or damaged: sha256"),
        ("trees-000005.skops", None, "cannot be read: No such file"),
        ("checkpoint.json", lambda x: x[:50], r"is damaged \(Invalid JSON"),
        ("checkpoint.json", lambda x: b"[" * 5000, "recursion limit"),
        ("checkpoint.json", lambda x: b"{}", "Field required"),
        (
            "checkpoint.json",
            lambda x: x.replace(b'"format": 2', b'"format": 9', 1),
            "has format 9, and this version",
        ),
    ],
)
def test_a_damaged_checkpoint_is_told_and_replaced(path, folder, name, change, said):
    file = folder / "checkpoint-model" / name
    if change is None:
        file.unlink()
    else:
        file.write_bytes(change(file.read_bytes()))
    with pytest.warns(UserWarning, match=f"is not resumed; .*{name} .*{said}"):
        assert train_and_tell(path, folder)[0] == 0
    assert files_of(folder) == ["model.json", "model.skops"]


def test_what_a_killed_write_left_is_removed(path, folder):
    own = folder / "checkpoint-model"
    (own / ".sklearn-era-left").mkdir()
    (own / ".sklearn-era-left" / "trees-000010.skops").touch()
    (own / "checkpoint.json.1.partial").touch()
    train_interrupted(path, folder, 12)
    assert sorted(os.listdir(own)) == ["checkpoint.json", "trees-000010.skops"]


@pytest.mark.parametrize("name", ["save_model", "file_sha256"])
def test_a_full_disk_costs_the_checkpoint_not_the_training(
    tmp_path, path, monkeypatch, name
):
    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, name, fail)
        with pytest.warns(UserWarning, match="could not be written") as caught:
            assert train_and_tell(path, tmp_path / "full") == list(range(24))
    said = [str(warning.message) for warning in caught]
    assert [text.split()[3] for text in said] == ["5", "10", "15", "20"]
    assert all("checkpoint-model" in text and "No space left" in text for text in said)
    assert files_of(tmp_path / "full") == ["model.json", "model.skops"]
    assert_as_in_one_go(path, tmp_path / "full", tmp_path / "whole")


def test_copies_are_asked_for_only_where_one_is_due(tmp_path):
    fit = ModelRecord(target=TARGET, features=FEATURES, parameters={}, sha256="")
    writer = checkpoints.Writer(tmp_path, fit, range(4, 8, 4), 2, print)
    due = []
    for _ in range(6):
        writer.on_fit_task_begin(None, SimpleNamespace(task_name="iteration"))
        due.append(writer.on_fit_task_end.__name__ == "_save")
    assert due == [False, True, False, False, False, False]  # 4 trees; 8 are the model


@pytest.mark.parametrize("version", [sklearn_era.__version__, "0.2.0"])
def test_a_checkpoint_of_the_version_before_is_resumed(tmp_path, monkeypatch, version):
    monkeypatch.setattr(sklearn_era, "__version__", version)
    root = copy_version_before(tmp_path)
    config, workspace = load_config(root / "numerai.toml")
    folder = workspace.model_dir("someone")
    expected, _ = load_fit(folder, "model")
    for suffix in ("json", "skops"):
        (folder / f"model.{suffix}").unlink()
    told = []
    train(
        config.models[0].members[0].train,
        files=[workspace.newest("train")],
        features=read_features(workspace.newest("features")).features("all"),
        folder=folder,
        version="v5.3",
        on_progress=lambda *x: told.append(x),
    )
    assert [n_trees for stage, n_trees, _ in told if stage == "model"] == [8, 9, 10]
    assert_same_model(load_fit(folder, "model")[0], expected)
    assert not (folder / "checkpoint-model").exists()


def test_the_mark_of_a_complete_model_of_the_version_before_is_none(tmp_path):
    """It stood for a model whose comparison was still to come."""
    root = copy_version_before(tmp_path)
    path = root / "models" / "someone" / "checkpoint-model" / "checkpoint.json"
    document = json.loads(path.read_text())
    assert checkpoints.read(path.parent).n_trees == 8
    path.write_text(json.dumps({**document, "file": "../model.skops", "n_trees": 10}))
    assert checkpoints.read(path.parent) is None
    path.write_text("{")
    with pytest.raises(DataError, match="Remove its folder to train from the start"):
        checkpoints.read(path.parent)
