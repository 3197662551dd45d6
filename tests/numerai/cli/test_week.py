"""``sklearn-era numerai``: a week's work, by its commands and by ``weekly``."""

import json
from functools import partial
from pathlib import Path

import pytest

from helpers.cli import fail, run
from helpers.numerai.program import NAME, SMALL_DEMO, Program
from helpers.numerai.server import SUBMISSION_IN_ORDER
from sklearn_era.cli.numerai import _weekly_demo
from sklearn_era.numerai import demo
from sklearn_era.numerai.demo import DEMO_TARGET
from sklearn_era.numerai.state import reason_to_train
from sklearn_era.numerai.training import fitting
from sklearn_era.numerai.training.checkpoints import checkpoint_folder, read_checkpoint

SENT = {"submission_upload_auth": 1, "PUT": 1, "create_submission": 1}
NO_EXPORT = ("weekly = true", "weekly = false")
ALL_ERAS = ('["train"]', '["train", "validation"]')


def test_a_week_goes_command_by_command(empty: Program):
    folder, server = empty.folder, empty.server
    empty.toml.unlink()
    assert "numerai.toml" in empty.run("init", "--name", NAME, "--target", DEMO_TARGET)
    empty.change('"medium"', '"small"')
    empty.change("max_iter = 2000", "max_iter = 10")
    empty.change("min_samples_leaf = 100", "min_samples_leaf = 5")

    said = empty.run("download")
    names = empty.load().config.data.files
    assert said.count(": downloaded") == len(names)
    assert f"{folder}/data/v5.3/live_1401.parquet: downloaded" in said
    n_live = sum(name.startswith("live") for name in names)
    assert empty.run("download").count(": kept") == len(names) - n_live

    said = "Trained 'model' on 800 rows of 20 eras (0001 to 0020) and 4 features"
    assert said in empty.run("train")
    assert (empty.model_folder / "model.skops").is_file()

    assert "max_feature_exposure" in empty.run("validate")
    assert (folder / "reports" / NAME).is_dir()

    said = empty.run("predict")
    assert said.startswith("Round 1401: 40 predictions from 0.01")
    assert str(empty.round_folder / "predictions.csv") in said

    server.requests.clear()
    assert empty.run("submit").endswith("Round 1401: submission submission-1.\n")
    assert server.operations == SUBMISSION_IN_ORDER
    assert "nothing is uploaded again" in empty.run("submit")
    assert "submission-2" in empty.run("submit", "--again")
    assert len(server.submissions) == 2

    said = empty.run("export")
    assert f"{folder}/models/{NAME}/portable.pkl" in said
    assert "checked on 40 rows" in said


def test_a_dry_run_needs_no_keys_and_does_all_but_the_upload(first_week):
    (said, _) = first_week.said
    for told in ("Training: there is no model yet.", "Report:", "Portable model:"):
        assert told in said
    assert "Nothing was uploaded (--dry-run)." in said
    calls = {*first_week.server.operations}
    assert calls == {"rounds", "listDatasets", "dataset", "GET"}
    for name in ("models/*/portable.pkl", "reports/*/report.json"):
        (path,) = first_week.folder.glob(name)
        assert path.stat().st_size > 0
    text = (first_week.round_folder / "predictions.csv").read_text()
    assert text.startswith("id,prediction\n")


def test_weekly_does_what_is_left_to_do(program: Program):
    model = (program.model_folder / "model.json").read_bytes()
    for _ in range(2):
        said = program.run("weekly")
        assert said.endswith("Round 1401: submission submission-1.\n")
        assert "Training" not in said
        assert "Portable" not in said
        assert program.sent == SENT, "it was uploaded again"
        assert (program.model_folder / "model.json").read_bytes() == model
    assert "nothing is uploaded again" in said
    record = json.loads((program.round_folder / "submission.json").read_text())
    assert record["state"] == "submitted"
    assert record["model_hash"] == json.loads(model)["sha256"]
    program.server.round_number = 1402
    assert "Round 1402: submission submission-2." in program.run("weekly")


@pytest.mark.slow
def test_a_changed_configuration_trains_again(program: Program):
    assert reason_to_train(*program.load()) is None
    program.change(*NO_EXPORT)
    program.change("max_iter = 10", "max_iter = 7")
    said = program.run("weekly --dry-run")
    assert "Training: parameters is not what the model was trained with" in said
    model = json.loads((program.model_folder / "model.json").read_text())
    assert model["parameters"]["max_iter"] == 7
    assert "Training: --retrain" in program.run("weekly --dry-run --retrain")


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [
        ("every_nth_era", "1", "2"),
        ("era_groups", "0", "3"),
        ("last_era", '""', '"0020"'),
        ("first_era", '""', '"0002"'),
        ("feature_set", '"small"', '"all"'),
        ("target", f'"{DEMO_TARGET}"', '"target_birch_20"'),
        ("files", *ALL_ERAS),
        ("random_state", "0", "1"),
        ("purge", '"auto"', "3"),
    ],
)
def test_what_a_model_depends_on_makes_it_another(program: Program, key, old, new):
    program.change(f"{key} = {old}", f"{key} = {new}")
    assert key in reason_to_train(*program.load())


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["reports/*/report.json", "models/*/portable.pkl"])
def test_what_is_missing_is_made_without_training_again(program: Program, lost):
    (path,) = program.folder.glob(lost)
    path.unlink()
    said = program.run("weekly --dry-run")
    assert "Training" not in said
    assert path.exists()
    assert ("Report:" in said) == lost.startswith("reports")
    assert ("Portable model:" in said) == lost.startswith("models")


def test_a_model_of_all_eras_is_submitted_without_a_validation(program: Program):
    program.change(*NO_EXPORT)
    program.change(*(f"files = {files}" for files in ALL_ERAS))
    assert "Not validated: " in program.run("weekly")
    assert program.sent == SENT


def test_what_stops_it_before_the_download(empty: Program):
    for name in ("max_itr", "max_iter"):
        empty.change("max_iter = 10", f"{name} = 0")
        said = fail("numerai", "weekly", "--config", empty.toml)
        assert ("did you mean 'max_iter'?" if name == "max_itr" else name) in said
        empty.change(f"{name} = 0", "max_iter = 10")
    assert empty.server.operations == []
    empty.server.models = {"mine": "1", "another": "2"}
    said = empty.fail("weekly", code=4)
    assert said == f"No Classic model named '{NAME}'. Your models: another, mine."
    assert empty.server.operations == ["models"]


@pytest.mark.slow
def test_a_week_goes_without_the_files_to_compare_with(program: Program):
    for name in ("live_example_preds", "meta_model"):
        del program.server.files[f"v5.3/{name}.parquet"]
        (program.data_folder / f"{name}_1401.parquet").unlink()
    (path,) = program.folder.glob("reports/*/report.json")
    path.unlink()
    result = program.invoke("weekly")
    assert result.exit_code == 0, result.output
    warned = [line for line in result.stderr.splitlines() if "serves no" in line]
    assert len(warned) == 2
    assert "mmc was left out" in result.stdout
    assert program.sent == SENT


@pytest.mark.parametrize("name", ["train", "live"])
def test_a_week_does_not_go_without_the_data(empty: Program, name):
    del empty.server.files[f"v5.3/{name}.parquet"]
    assert f"Numerai serves no v5.3/{name}.parquet" in empty.fail("weekly", code=2)


def test_a_submission_changed_by_hand_names_no_model(program: Program):
    path = program.round_folder / "predictions.csv"
    path.write_text(path.read_text().replace("\n", "\r\n"))
    program.run("submit", warned="is not what 'predict' wrote")
    assert "unknown" in path.with_name("submission.json").read_text()


class Stopped(BaseException):
    """What a kill is to the code that runs."""


def interrupt(program, monkeypatch):
    """Stop a training after seven trees, of which the checkpoint has five."""
    original = fitting.CheckpointWriter

    def stopping(*arguments, on_tree, **options):
        def on_tree_or_stop(n):
            on_tree(n)
            if n > 7:
                raise Stopped

        return original(*arguments, on_tree=on_tree_or_stop, **options)

    program.change(*NO_EXPORT)
    with monkeypatch.context() as patch:
        patch.setattr(fitting, "CheckpointWriter", stopping)
        with pytest.raises(Stopped):
            program.invoke("weekly --dry-run --retrain")
    checkpoint = read_checkpoint(checkpoint_folder(program.model_folder, "model"))
    assert checkpoint.n_trees == 5


@pytest.mark.slow
def test_an_interrupted_training_is_continued(program: Program, monkeypatch):
    def made():
        model = json.loads((program.model_folder / "model.json").read_text())
        predictions = (program.round_folder / "predictions.csv").read_bytes()
        return model["data_fingerprint"], predictions

    before = made()
    interrupt(program, monkeypatch)
    said = program.run("weekly --dry-run")
    assert "Training: a training was interrupted" in said
    assert "is not continued" not in said
    assert made() == before


@pytest.mark.slow
def test_an_interrupted_training_of_another_configuration_is_not(
    program: Program, monkeypatch
):
    interrupt(program, monkeypatch)
    program.change("max_iter = 10", "max_iter = 9")
    assert "is not continued" in program.run("weekly --dry-run")
    assert reason_to_train(*program.load()) is None


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
def test_the_demo_leaves_all_that_a_week_makes_and_the_era_model_ahead(
    tmp_path, monkeypatch, whole
):
    monkeypatch.chdir(tmp_path)
    if not whole:
        small = partial(demo.write_demo_data, **{**SMALL_DEMO, "n_future_eras": 3})
        monkeypatch.setattr(demo, "write_demo_data", small)
        monkeypatch.setitem(_weekly_demo._PARAMETERS, "max_iter", 10)
    told = run("numerai", "weekly", "--demo")
    assert "Nothing was uploaded" in told
    for name in (
        "numerai.toml", "models/demo/model.skops", "models/demo/model.json",
        "models/demo/gain.skops", "models/demo/portable.pkl",
        "reports/demo/report.json", "reports/demo/cumulative_corr.png",
        "reports/demo/corr_by_era.png", "reports/demo/split_agreement.png",
        "reports/demo/feature_exposure.png", "rounds/1/demo/predictions.csv",
    ):  # fmt: skip
        assert (Path("numerai-demo") / name).stat().st_size > 0, name
    live = told.partition("The live eras")[2]
    rows = [line.split("│") for line in live.splitlines() if "│" in line]
    scores = {row[1].strip(): float(row[3]) for row in rows}
    assert scores.keys() == {"model", "gain"}
    assert not whole or scores["model"] > scores["gain"] + 0.03
    assert "'numerai-demo' exists" in fail("numerai", "weekly", "--demo")


def test_the_demo_takes_no_options_of_the_real_thing():
    assert "--dry-run" in fail("numerai", "weekly", "--demo", "--dry-run")
