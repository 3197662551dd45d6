"""A training that was killed goes on, and makes the model of one that was not."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("skops")

import sklearn_era
from helpers.numerai.training import (
    FEATURES,
    TARGET,
    assert_same_model,
    make_frame,
    train_on,
    write_frame,
)
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.training import checkpoints
from sklearn_era.numerai.training.fit_identity import FitDescription, differences
from sklearn_era.numerai.training.model_store import load_trained

DIRECTIONAL = {"colsample_bytree": 0.3}
GAIN = {"split_criterion": "gain", "max_features": 0.5, "colsample_bytree": 0.7}


@pytest.fixture(scope="module")
def frame():
    return make_frame()


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    return write_frame(frame, tmp_path_factory.mktemp("data") / "train_7.parquet")


def train_killed(path, model_dir, how, **changes):
    """Train in a process that SIGKILL ends, which nothing can tidy up after."""
    code = """
    import json, os, signal, sys
    sys.path[:0] = json.loads(sys.argv[1])
    from numerai_training_data import train_on

    def kill():
        os.kill(os.getpid(), signal.SIGKILL)

    def on_progress(stage, done, total):
        pass

    HOW
    train_on(
        sys.argv[2], sys.argv[3], on_progress=on_progress, **json.loads(sys.argv[4])
    )
    """
    code = textwrap.dedent(code).replace("HOW", textwrap.dedent(how))
    folders = [folder for folder in sys.path if folder.endswith("tests")]
    arguments = [json.dumps(folders), str(path), str(model_dir), json.dumps(changes)]
    finished = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=path.parent,  # not the sources, which are not compiled
        capture_output=True,
        text=True,
    )
    assert finished.returncode == -9, finished.stderr


def at_tree(stage, n_trees):
    return f"""
    def on_progress(stage, done, total):
        if (stage, done) == {(stage, n_trees)!r}:
            kill()
    """


class Interrupt:
    """A progress report that ends the training after some trees."""

    def __init__(self, n_trees, stage="model"):
        self.n_trees = n_trees
        self.stage = stage

    def __call__(self, stage, done, total):
        if (stage, done) == (self.stage, self.n_trees):
            raise KeyboardInterrupt


def train_interrupted(path, model_dir, n_trees, stage="model", **changes):
    with pytest.raises(KeyboardInterrupt):
        train_on(path, model_dir, on_progress=Interrupt(n_trees, stage), **changes)


def files_of(folder):
    return sorted(
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*")
        if file.is_file()
    )


@pytest.mark.parametrize("parameters", [DIRECTIONAL, GAIN], ids=["directional", "gain"])
def test_a_killed_training_makes_the_same_model(tmp_path, path, frame, parameters):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    train_killed(path, killed, at_tree("model", 13), parameters=parameters)
    assert files_of(killed) == [
        "checkpoint-model/checkpoint.json",
        "checkpoint-model/trees-000010.skops",
    ]
    seen = []
    resumed = train_on(
        path,
        killed,
        parameters=parameters,
        resume=True,
        on_progress=lambda *arguments: seen.append(arguments),
    )
    assert [done for stage, done, _ in seen if stage == "model"] == list(range(10, 24))
    assert files_of(killed) == ["model.json", "model.skops"]
    expected = train_on(path, whole, parameters=parameters)
    one, _ = load_trained(killed)
    other, _ = load_trained(whole)
    assert_same_model(one, other)
    rows = frame[FEATURES]
    np.testing.assert_array_equal(one.predict(rows), other.predict(rows))
    fingerprints = [x["model"].data_fingerprint for x in (resumed, expected)]
    assert fingerprints[0] == fingerprints[1]


def test_a_kill_in_the_plain_model_leaves_the_first(tmp_path, path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    arguments = {"compare_with_gain": True, "parameters": {"max_features": 0.5}}
    train_killed(path, killed, at_tree("gain", 17), **arguments)
    written = (killed / "model.skops").read_bytes()
    seen = []
    records = train_on(
        path,
        killed,
        resume=True,
        purge=5,  # which no tree depends on
        on_progress=lambda *arguments: seen.append(arguments),
        **arguments,
    )
    assert {record.purge for record in records.values()} == {5}
    assert [x for x in seen if x[0] == "model"] == [("model", 23, 23)]
    assert [done for stage, done, _ in seen if stage == "gain"] == list(range(15, 24))
    assert (killed / "model.skops").read_bytes() == written
    assert list(records) == ["model", "gain"]
    train_on(path, whole, **arguments)
    for name in ("model", "gain"):
        one, record = load_trained(killed, name)
        assert record == records[name]
        assert_same_model(one, load_trained(whole, name)[0])
    assert len(files_of(killed)) == 4


@pytest.mark.parametrize(
    ("replaced", "n_trees", "left"),
    [
        # The second checkpoint's trees are there, and its JSON file is not.
        ("checkpoint-model/checkpoint.json", 5, ["trees-000005", "trees-000010"]),
        # The record of the model is there, and its file has yet to be renamed.
        ("model.skops", 20, ["trees-000020"]),
    ],
)
def test_a_kill_between_two_files(tmp_path, path, replaced, n_trees, left):
    killed = tmp_path / "killed"
    how = f"""
    replace = os.replace
    def replace_or_die(source, target):
        global n_left
        if str(target).endswith({replaced!r}):
            n_left -= 1
            if n_left == 0:
                kill()
        replace(source, target)
    n_left = {2 if "json" in replaced else 1}
    os.replace = replace_or_die
    """
    train_killed(path, killed, how)
    folder = killed / "checkpoint-model"
    assert sorted(file.stem for file in folder.glob("*.skops")) == left
    assert checkpoints.read_checkpoint(folder).n_trees == n_trees
    train_on(path, tmp_path / "whole")
    if "json" not in replaced:
        # The new model counts from its record on.
        assert_same_model(load_trained(killed)[0], load_trained(tmp_path / "whole")[0])
    train_on(path, killed, resume=True)
    assert_same_model(load_trained(killed)[0], load_trained(tmp_path / "whole")[0])
    assert files_of(killed) == ["model.json", "model.skops"]


@settings(deadline=None, database=None, max_examples=12)
@given(
    stops=st.lists(st.integers(0, 14), min_size=1, max_size=3),
    every=st.integers(1, 16),
    parameters=st.fixed_dictionaries(
        {
            "split_criterion": st.sampled_from(["gain", "era", "time_robust", "vrex"]),
            "loss": st.sampled_from(["squared_error", "absolute_error"]),
            "colsample_bytree": st.sampled_from([0.3, 1.0]),
            "max_features": st.sampled_from([0.5, 1.0]),
        }
    ),
    seed=st.integers(0, 2**32 - 1),
)
@pytest.mark.filterwarnings("ignore:There is no checkpoint:UserWarning")
def test_it_does_not_matter_where_it_stops(
    path, tmp_path_factory, stops, every, parameters, seed
):
    folder = tmp_path_factory.mktemp("stops")
    arguments = {
        "parameters": {**parameters, "max_iter": 15},
        "random_state": seed,
        "checkpoint_every": every,
    }
    for i, stop in enumerate(sorted(stops)):
        # A training that goes on begins at its checkpoint, and may be past the stop.
        interrupt = Interrupt(stop)
        try:
            train_on(path, folder, resume=i > 0, on_progress=interrupt, **arguments)
        except KeyboardInterrupt:
            continue
        break
    train_on(path, folder, resume=True, **arguments)
    whole = tmp_path_factory.mktemp("whole")
    train_on(path, whole, **arguments)
    assert_same_model(load_trained(folder)[0], load_trained(whole)[0])


def test_a_training_anew_leaves_the_checkpoint_until_it_has_its_own(tmp_path, path):
    """Both have a checkpoint of as many trees, and the second is killed in writing."""
    killed = tmp_path / "killed"
    train_interrupted(path, killed, 7)
    how = """
    replace = os.replace
    def replace_or_die(source, target):
        if str(target).endswith("checkpoint.json"):
            kill()
        replace(source, target)
    os.replace = replace_or_die
    """
    train_killed(path, killed, how)
    folder = killed / "checkpoint-model"
    assert len(list(folder.glob("trees-000005*.skops"))) == 2
    seen = []
    train_on(path, killed, resume=True, on_progress=lambda *told: seen.append(told))
    assert ("model", 5, 23) in seen
    assert ("model", 4, 23) not in seen
    train_on(path, tmp_path / "whole")
    assert_same_model(load_trained(killed)[0], load_trained(tmp_path / "whole")[0])
    assert files_of(killed) == ["model.json", "model.skops"]


def test_the_plain_models_checkpoint_of_another_fit_does_not_stay(tmp_path, path):
    """Not even where the training in between makes no plain model."""
    older = {"compare_with_gain": True, "parameters": {"learning_rate": 0.2}}
    train_interrupted(path, tmp_path, 7, stage="gain", **older)
    train_interrupted(path, tmp_path, 7)
    records = train_on(path, tmp_path, resume=True, compare_with_gain=True)
    assert list(records) == ["model", "gain"]
    assert load_trained(tmp_path, "gain")[0].learning_rate == 0.1


def test_without_a_checkpoint_it_says_so(tmp_path, path):
    with pytest.warns(UserWarning, match="There is no checkpoint in .* starts anew"):
        train_on(path, tmp_path, resume=True)
    assert load_trained(tmp_path)[0].n_iter_ == 23
    # Nor is there one once a training has ended.
    with pytest.warns(UserWarning, match="There is no checkpoint in"):
        train_on(path, tmp_path, resume=True)


def test_without_resume_it_starts_anew(tmp_path, path):
    train_interrupted(path, tmp_path, 12)
    seen = []
    train_on(path, tmp_path, on_progress=lambda *arguments: seen.append(arguments))
    assert [done for stage, done, _ in seen if stage == "model"] == list(range(24))
    assert files_of(tmp_path) == ["model.json", "model.skops"]


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
        ({"era_groups": 5}, "era_groups was 0 and is 5"),
        ({"every_nth_era": 2}, "every_nth_era was 1 and is 2"),
        ({"version": "v5.4"}, "version was 'v5.3' and is 'v5.4'"),
    ],
)
def test_another_fit_is_refused(tmp_path, path, changes, message):
    train_interrupted(path, tmp_path, 7)
    before = files_of(tmp_path)
    with pytest.raises(ConfigError, match=message) as caught:
        train_on(path, tmp_path, resume=True, **changes)
    assert "of another fit" in str(caught.value)
    assert "without resume to start anew" in str(caught.value)
    assert files_of(tmp_path) == before
    train_on(path, tmp_path, resume=True)  # with all as it was


def test_other_values_are_refused(tmp_path, frame):
    path = write_frame(frame, tmp_path / "train_1.parquet")
    train_interrupted(path, tmp_path / "model", 7)
    changed = frame.copy()
    changed.iloc[100, changed.columns.get_loc(FEATURES[4])] ^= 1
    write_frame(changed, path)
    with pytest.raises(ConfigError, match=r"other values in these rows .*fingerprint"):
        train_on(path, tmp_path / "model", resume=True)


def test_threads_and_checkpoints_may_change(tmp_path, path):
    train_interrupted(path, tmp_path / "model", 7)
    arguments = {"parameters": {"n_jobs": 1}, "checkpoint_every": 3}
    train_on(path, tmp_path / "model", resume=True, **arguments)
    train_on(path, tmp_path / "whole", **arguments)
    models = [load_trained(tmp_path / name)[0] for name in ("model", "whole")]
    assert_same_model(*models)


def test_damage_is_told(tmp_path, path, monkeypatch):
    train_interrupted(path, tmp_path, 7)
    folder = tmp_path / "checkpoint-model"
    trees, document = folder / "trees-000005.skops", folder / "checkpoint.json"
    content, text = trees.read_bytes(), document.read_text()

    def refused(message):
        with pytest.raises(DataError, match=message) as caught:
            train_on(path, tmp_path, resume=True)
        assert "without resume" in str(caught.value) or "remove it" in str(caught.value)

    trees.write_bytes(content[:-1])
    refused(r"trees-000005.skops was changed or damaged \(its sha256 differs")
    trees.unlink()
    refused("trees-000005.skops is missing")
    trees.write_bytes(content)
    document.write_text(text[:50])
    refused("checkpoint.json is damaged, it is no JSON")
    document.write_text("{}")
    refused("checkpoint.json is damaged, or is no checkpoint: KeyError")
    document.write_text(text.replace('"format": 1', '"format": 2'))
    refused("of another version of sklearn_era")
    document.write_text(text)
    with monkeypatch.context() as patch:
        patch.setattr(sklearn_era, "__version__", "0.0.0")
        refused(r"cannot be resumed: .* was written by sklearn_era")
    train_on(path, tmp_path, resume=True)


def test_a_checkpoint_can_be_read_by_people(tmp_path, path):
    train_interrupted(path, tmp_path, 12, first_era="0002")
    document = json.loads((tmp_path / "checkpoint-model/checkpoint.json").read_text())
    assert document["n_trees"] == 10
    assert document["file"] == "trees-000010.skops"
    assert document["fit"]["target"] == TARGET
    assert document["fit"]["parameters"]["split_criterion"] == "directional"
    assert document["fit"]["data"] == {
        "version": "v5.3",
        "first_era": "0002",
        "last_era": "0030",
        "n_eras": 29,
        "every_nth_era": 1,
        "era_groups": 0,
        "n_rows": 1740,
    }


def test_what_a_killed_write_left_is_removed(tmp_path, path):
    train_interrupted(path, tmp_path, 7)
    folder = tmp_path / "checkpoint-model"
    (folder / ".sklearn-era-left").mkdir()
    (folder / ".sklearn-era-left" / "trees-000010.skops").touch()
    (folder / "checkpoint.json.1.partial").touch()
    train_interrupted(path, tmp_path, 12, resume=True)
    assert files_of(folder) == ["checkpoint.json", "trees-000010.skops"]
    assert not (folder / ".sklearn-era-left").exists()


def test_the_plain_models_checkpoint_goes_with_the_model(tmp_path, path):
    arguments = {"compare_with_gain": True}
    train_interrupted(path, tmp_path, 12, "gain", **arguments)
    other = {**arguments, "parameters": {"learning_rate": 0.2}}
    train_interrupted(path, tmp_path, 12, **other)
    records = train_on(path, tmp_path, resume=True, **other)
    assert list(records) == ["model", "gain"]
    assert records["gain"].parameters["learning_rate"] == 0.2


def test_the_plain_models_checkpoint_alone_is_none(tmp_path, path):
    arguments = {"compare_with_gain": True}
    train_interrupted(path, tmp_path, 12, "gain", **arguments)
    checkpoints.remove_checkpoint(tmp_path / "checkpoint-model")
    with pytest.warns(UserWarning, match="There is no checkpoint"):
        train_on(path, tmp_path, resume=True, **arguments)
    assert len(files_of(tmp_path)) == 4


def test_a_folder_by_another_name(tmp_path, path, monkeypatch):
    (tmp_path / "other").mkdir()
    arguments = {"compare_with_gain": True}
    train_interrupted(path, tmp_path / "model", 12, "gain", **arguments)
    written = (tmp_path / "model" / "model.skops").read_bytes()
    monkeypatch.chdir(tmp_path / "other")
    train_interrupted(path, "../model", 17, "gain", resume=True, **arguments)
    (tmp_path / "moved").symlink_to(tmp_path / "model")
    train_on(path, "../other/../moved", resume=True, **arguments)
    assert (tmp_path / "model" / "model.skops").read_bytes() == written
    assert len(files_of(tmp_path / "model")) == 4


def test_copies_are_asked_for_only_where_one_is_due(tmp_path):
    class Context:
        task_name = "iteration"

    writer = checkpoints.CheckpointWriter(
        tmp_path,
        FitDescription({}, TARGET, FEATURES),
        every=4,
        n_trees=2,
        max_iter=8,
        on_tree=lambda n_trees: None,
    )
    due = []
    for _ in range(6):
        writer.on_fit_task_begin(None, Context())
        due.append(writer.on_fit_task_end.__name__ == "_end_and_save")
    assert due == [False, True, False, False, False, False]  # 4 trees; 8 are the model


def test_differences_are_told_in_words():
    one = FitDescription({"a": 1, "b": [1, 2]}, "t", ["x", "y"], {"n": 3}, "f")
    assert differences(one, one) == []
    assert differences(one, FitDescription({"a": 1}, "t", ["x", "y"], {"n": 3})) == [
        "b was [1, 2] and is None"
    ]
    other = FitDescription(one.parameters, "u", ["y", "z", "w"], {"n": 4}, "g")
    assert differences(one, other) == [
        "target was 't' and is 'u'",
        "of the features, 1 are gone (the first is 'x') and 2 are new (the first is "
        "'z')",
        "n was 3 and is 4",
    ]
