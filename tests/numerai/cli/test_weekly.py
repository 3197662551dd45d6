"""A week's work by the program, against a stand-in for Numerai."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("numerapi")
pytest.importorskip("numerai_tools")

from helpers.cli import fail, invoke, run
from helpers.numerai.server import NumeraiServer, assert_discreet
from sklearn_era.numerai.config import load_config, write_config
from sklearn_era.numerai.demo import DEMO_TARGET, write_demo_data
from sklearn_era.numerai.state import reason_to_train
from sklearn_era.numerai.training.checkpoints import (
    checkpoint_folder,
    read_checkpoint,
)
from sklearn_era.numerai.workspace import Workspace

PARAMETERS = {"max_iter": 12, "max_depth": 3, "split_criterion": "directional"}
SENT = Counter(submission_upload_auth=1, PUT=1, create_submission=1)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The files that the stand-in serves, by their names."""
    workspace = Workspace(tmp_path_factory.mktemp("served"), "v5.3", "model_a")
    data = write_demo_data(
        workspace,
        n_train_eras=24,
        n_validation_eras=24,
        n_future_eras=1,
        rows_per_era=40,
        n_features=20,
    )
    return {f"v5.3/{name}{path.suffix}": path for name, path in data.paths.items()}


@pytest.fixture
def server(served, monkeypatch):
    with NumeraiServer(served) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def toml(tmp_path, server):
    path = tmp_path / "numerai.toml"
    write_config(
        path,
        name=next(iter(server.models)),
        target=DEMO_TARGET,
        train={
            "feature_set": "all",
            "checkpoint_every": 5,
            "parameters": PARAMETERS,
        },
    )
    return path


def weekly(toml, *options):
    return run("numerai", "weekly", "--config", toml, *options)


def edit(toml, old, new):
    text = toml.read_text()
    assert text.count(old) == 1
    toml.write_text(text.replace(old, new))


def sent(server):
    """How often each operation that changes something at Numerai was asked for."""
    return Counter(name for name in server.operations if name in SENT)


def test_the_first_week_does_everything_and_the_next_only_what_is_new(server, toml):
    first = weekly(toml)
    _, workspace = load_config(toml)
    for told in ("Training: there is no model yet", "Report:", "Portable model:"):
        assert told in first
    assert sent(server) == SENT
    assert len(server.submissions) == 1
    (round_number,) = workspace.rounds_of("live")
    folder = workspace.round_dir(round_number)
    record = json.loads((folder / "submission.json").read_text())
    assert record["state"] == "submitted"
    model = json.loads((workspace.model_dir / "model.json").read_text())
    assert (
        record["model_sha256" if "model_sha256" in record else "model_hash"]
        == (model["sha256"])
    )
    assert (workspace.model_dir / "portable.pkl").stat().st_size > 0
    assert (workspace.report_dir / "report.json").stat().st_size > 0

    trained = (workspace.model_dir / "model.json").read_bytes()
    second = weekly(toml)
    assert "Training" not in second
    assert "Portable" not in second
    assert sent(server) == SENT, "it was uploaded again"
    assert (workspace.model_dir / "model.json").read_bytes() == trained
    assert_discreet(server, first, second)
    for path in toml.parent.rglob("*"):
        if path.suffix in (".json", ".csv", ".toml"):
            assert_discreet(server, path.read_text())


def test_a_dry_run_needs_no_keys_and_sends_nothing(server, toml, monkeypatch):
    for name in ("NUMERAI_PUBLIC_ID", "NUMERAI_SECRET_KEY"):
        monkeypatch.delenv(name)
    assert "Nothing was uploaded" in weekly(toml, "--dry-run")
    assert sent(server) == Counter()
    _, workspace = load_config(toml)
    (path,) = workspace.root.glob("rounds/*/*/predictions.csv")
    assert path.read_text().startswith("id,prediction\n")


def test_missing_keys_stop_it_before_anything_is_done(server, toml, monkeypatch):
    monkeypatch.delenv("NUMERAI_SECRET_KEY")
    assert "NUMERAI_SECRET_KEY" in fail("numerai", "weekly", "--config", toml)
    assert server.operations == []


def test_a_changed_configuration_trains_again(server, toml):
    weekly(toml, "--dry-run")
    config, workspace = load_config(toml)
    assert reason_to_train(config, workspace) is None
    edit(toml, "max_iter = 12", "max_iter = 7")
    told = weekly(toml, "--dry-run")
    assert "Training: parameters is not what the model was trained with" in told
    assert (
        json.loads((workspace.model_dir / "model.json").read_text())["parameters"][
            "max_iter"
        ]
        == 7
    )
    assert "Training: --retrain" in weekly(toml, "--dry-run", "--retrain")


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("every_nth_era = 1", "every_nth_era = 2", "every_nth_era"),
        ("era_groups = 0", "era_groups = 3", "era_groups"),
        ('last_era = ""', 'last_era = "0020"', "last_era"),
        ('first_era = ""', 'first_era = "0002"', "first_era"),
        ('feature_set = "all"', 'feature_set = "small"', "feature_set"),
        (DEMO_TARGET, "target_birch_20", "target"),
        ('files = ["train"]', 'files = ["train", "validation"]', "files"),
        ("random_state = 0", "random_state = 1", "random_state"),
        ('purge = "auto"', "purge = 3", "purge"),
    ],
)
def test_what_a_model_depends_on_makes_it_another(server, toml, trained, old, new, key):
    shutil.copytree(trained, toml.parent, dirs_exist_ok=True)
    assert reason_to_train(*load_config(toml)) is None
    edit(toml, old, new)
    assert key in reason_to_train(*load_config(toml))


@pytest.fixture(scope="module")
def trained(served, tmp_path_factory):
    """A folder in which a dry run was done."""
    folder = tmp_path_factory.mktemp("trained")
    toml = folder / "numerai.toml"
    with NumeraiServer(served) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        write_config(
            toml,
            name=next(iter(server.models)),
            target=DEMO_TARGET,
            train={
                "feature_set": "all",
                "checkpoint_every": 5,
                "parameters": PARAMETERS,
            },
        )
        weekly(toml, "--dry-run")
    return folder


@pytest.mark.parametrize("lost", ["reports/*/report.json", "models/*/portable.pkl"])
def test_what_is_missing_is_made_without_training_again(server, toml, trained, lost):
    shutil.copytree(trained, toml.parent, dirs_exist_ok=True)
    (path,) = toml.parent.glob(lost)
    path.unlink()
    told = weekly(toml, "--dry-run")
    assert "Training" not in told
    assert path.exists()
    assert ("Report:" in told) == lost.startswith("reports")
    assert ("Portable model:" in told) == lost.startswith("models")


def test_a_model_of_all_eras_is_submitted_without_a_validation(server, toml):
    edit(toml, 'files = ["train"]', 'files = ["train", "validation"]')
    told = weekly(toml)
    assert "Not validated: " in told
    assert sent(server) == SENT


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("max_iter = 12", "max_itr = 12", "did you mean 'max_iter'?"),
        ("max_iter = 12", "max_iter = 0", "max_iter"),
    ],
)
def test_a_bad_parameter_stops_it_before_the_download(server, toml, old, new, said):
    edit(toml, old, new)
    assert said in fail("numerai", "weekly", "--config", toml)
    assert server.operations == []


def test_a_week_goes_without_the_files_to_compare_with(server, toml, served):
    for name in ("live_example_preds", "meta_model"):
        del server.files[f"v5.3/{name}.parquet"]
    result = invoke("numerai", "weekly", "--config", toml)
    assert result.exit_code == 0, result.output
    warned = [line for line in result.stderr.splitlines() if "serves no" in line]
    assert len(warned) == 2
    assert "mmc was left out" in result.stdout
    assert sent(server) == SENT


@pytest.mark.parametrize("name", ["train", "live"])
def test_a_week_does_not_go_without_the_data(server, toml, name):
    del server.files[f"v5.3/{name}.parquet"]
    said = fail("numerai", "weekly", "--config", toml)
    assert f"Numerai serves no v5.3/{name}.parquet" in said


def test_an_unknown_model_stops_it_before_the_download(server, toml):
    edit(toml, f'name = "{next(iter(server.models))}"', 'name = "nobody"')
    told = fail("numerai", "weekly", "--config", toml, exit_code=4)
    assert "'nobody'" in told
    assert set(server.operations) == {"models"}


def test_a_submission_changed_by_hand_names_no_model(server, toml, trained):
    shutil.copytree(trained, toml.parent, dirs_exist_ok=True)
    (path,) = toml.parent.glob("rounds/*/*/predictions.csv")
    path.write_text(path.read_text().replace("\n", "\r\n"))
    result = invoke("numerai", "submit", "--config", toml)
    assert result.exit_code == 0
    assert "is not what 'predict' wrote" in result.stderr
    assert "unknown" in path.with_name("submission.json").read_text()


def test_predicting_with_a_model_of_another_configuration_is_warned_of(
    server, toml, trained
):
    shutil.copytree(trained, toml.parent, dirs_exist_ok=True)
    assert invoke("numerai", "predict", "--config", toml).stderr == ""
    edit(toml, "max_iter = 12", "max_iter = 13")
    said = invoke("numerai", "predict", "--config", toml).stderr
    assert said.startswith("Warning: the model is to be trained again: parameters")


class Stopped(BaseException):
    """What a kill is to the code that runs."""


def stop_after(monkeypatch, n_trees):
    """Make the next training stop once it has so many trees."""
    from sklearn_era.numerai.training import fitting

    whole = fitting.CheckpointWriter

    class Stopping(whole):
        def __init__(self, *arguments, on_tree, **options):
            def on_tree_or_stop(n):
                on_tree(n)
                if n > n_trees:
                    raise Stopped

            super().__init__(*arguments, on_tree=on_tree_or_stop, **options)

    monkeypatch.setattr(fitting, "CheckpointWriter", Stopping)


def interrupt(toml, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 7)
        with pytest.raises(Stopped):
            invoke("numerai", "weekly", "--dry-run", "--config", toml)
    _, workspace = load_config(toml)
    checkpoint = read_checkpoint(checkpoint_folder(workspace.model_dir, "model"))
    assert checkpoint.n_trees == 5
    return workspace


def test_an_interrupted_training_is_continued(server, toml, trained, monkeypatch):
    workspace = interrupt(toml, monkeypatch)
    told = weekly(toml, "--dry-run")
    assert "Training: a training was interrupted" in told
    _, whole = load_config(trained / "numerai.toml")
    first, second = (
        json.loads((w.model_dir / "model.json").read_text()) for w in (workspace, whole)
    )
    assert first["data_fingerprint"] == second["data_fingerprint"]
    predictions = [
        next(folder.glob("rounds/*/*/predictions.csv")).read_bytes()
        for folder in (toml.parent, trained)
    ]
    assert predictions[0] == predictions[1]


def test_an_interrupted_training_of_another_configuration_is_not(
    server, toml, monkeypatch
):
    interrupt(toml, monkeypatch)
    edit(toml, "max_iter = 12", "max_iter = 9")
    assert "is not continued" in weekly(toml, "--dry-run")
    assert reason_to_train(*load_config(toml)) is None


def test_the_demo_leaves_all_that_a_week_makes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = run("numerai", "weekly", "--demo")
    assert "Nothing was uploaded" in told
    for name in (
        "numerai.toml",
        "models/demo/model.skops",
        "models/demo/model.json",
        "models/demo/gain.skops",
        "models/demo/portable.pkl",
        "reports/demo/report.json",
        "reports/demo/cumulative_corr.png",
        "reports/demo/corr_by_era.png",
        "reports/demo/split_agreement.png",
        "reports/demo/feature_exposure.png",
        "rounds/1/demo/predictions.csv",
    ):
        assert (Path("numerai-demo") / name).stat().st_size > 0, name
    again = fail("numerai", "weekly", "--demo")
    assert "'numerai-demo' exists" in again


def test_the_demo_shows_the_era_model_ahead_of_the_plain_one(tmp_path):
    told = run("numerai", "weekly", "--demo", "--demo-folder", tmp_path / "demo")
    live = told.partition("The live eras")[2]
    rows = [line.split("│") for line in live.splitlines() if "│" in line]
    scores = {row[1].strip(): float(row[3]) for row in rows}
    assert scores["model"] > scores["gain"] + 0.03


def test_the_demo_takes_no_options_of_the_real_thing(tmp_path):
    assert "--dry-run" in fail("numerai", "weekly", "--demo", "--dry-run")
