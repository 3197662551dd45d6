"""``sklearn-era numerai``: a round's work, by its commands and by ``run``."""

import json
import shutil
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from helpers.cli import fail, run
from helpers.numerai.program import NAME, SENT, SMALL_DEMO, Program
from sklearn_era.cli.numerai import _demo
from sklearn_era.numerai import demo, pipeline
from sklearn_era.numerai.demo import DEMO_TARGETS
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.files import lock

BLEND = f"""
[[model.member]]
name = "amber"
[[model.member]]
name = "birch"
target = "{DEMO_TARGETS[1]}"
weight = 0.5
"""


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def record_of(program: Program, name: str = NAME) -> dict:
    path = program.folder / "rounds" / "1401" / name / "submission.json"
    return json.loads(path.read_text())


def test_a_round_goes_command_by_command(empty: Program):
    names = empty.load()[0].data.files
    said = empty.run("download")
    assert said.count("Downloaded ") == len(names)
    n_live = sum(name.startswith("live") for name in names)
    assert empty.run("download").count("Kept ") == len(names) - n_live

    said = "Trained 'my_model' on 800 rows of 20 eras (0001 to 0020) and 4 features"
    assert said in empty.run("train")
    assert "is up to date" in empty.run("train")

    said = empty.run("validate")
    for row in ("max exposure", "v53_lgbm_amber20", "example predictions"):
        assert row in said
    for file in empty.report_folder.iterdir():
        assert str(file) in said

    said = empty.run("predict")
    assert said.startswith("Round 1401: 40 predictions of 'my_model' from 0.01")
    assert "Rank correlation with v53_lgbm_amber20: " in said

    assert empty.run("submit").endswith("'my_model' has submission submission-1.\n")
    assert empty.sent == SENT
    assert "already submitted" in empty.run("submit")
    assert "submission-2" in empty.run("submit", "--force")
    assert f"models/{NAME}/portable.pkl" in empty.run("export")


def test_no_submit_needs_no_keys_and_does_all_but_the_upload(first_run):
    (said, _) = first_run.said
    for told in ("Training 'my_model': ", "Report:", "Portable model of 'my_model':"):
        assert told in said
    assert said.endswith("Nothing was uploaded (--no-submit).\n")
    assert first_run.sent == {}
    assert (first_run.round_folder / "predictions.csv").is_file()


def test_a_dry_run_shows_the_plan_and_touches_nothing(empty: Program, first_run):
    before = snapshot(empty.folder)
    said = empty.run("run --dry-run")
    assert "Would export" not in said
    for told in (
        "Round 1401 is open until",
        "Would download train: there is none yet.",
        "Would train 'my_model': there is no model yet.",
        "Would predict and submit 'my_model' for round 1401.",
        "Would validate 'my_model'.",
    ):
        assert told in said
    assert snapshot(empty.folder) == before
    assert set(empty.server.operations) <= {"rounds"}

    shutil.copytree(first_run.folder, empty.folder, dirs_exist_ok=True)
    before = snapshot(empty.folder)
    said = empty.run("run --dry-run")
    assert "Would train" not in said
    assert "Would validate" not in said
    empty.change(max_iter="13")
    assert "Would train 'my_model': max_iter was 10 and is 13." in empty.run(
        "run --dry-run"
    )
    empty.server.fail("rounds", 500, 9)
    assert "Numerai cannot be asked" in empty.run("run --dry-run")
    empty.change(max_iter="10")
    assert snapshot(empty.folder) == before


def test_run_does_what_is_left_to_do(program: Program):
    model = (program.model_folder / "model.json").read_bytes()
    for command in ("run", "weekly", "run"):
        said = program.run(command)
        assert "Training" not in said
        assert "Portable" not in said
        assert "Report" not in said
        assert program.sent == SENT, "it was uploaded again"
        assert (program.model_folder / "model.json").read_bytes() == model
    record = record_of(program)
    assert record["state"] == "submitted"
    assert record["model_sha256"] == json.loads(model)["sha256"]
    # The next round has other ids.
    program.server.round_number = 1402
    program.server.files["v5.3/live.parquet"] = shuffled_ids(
        program.server.files["v5.3/live.parquet"]
    )
    program.run("run", warned="")
    assert len(program.server.submissions) == 2


def shuffled_ids(content: bytes) -> bytes:
    """A live file with other ids, as the next round's has."""
    import io

    import pandas as pd

    frame = pd.read_parquet(io.BytesIO(content))
    frame.index = pd.Index([f"n{i:015x}" for i in range(len(frame))], name="id")
    return frame.to_parquet()


def test_the_round_is_submitted_before_anything_else(program: Program, monkeypatch):
    """Neither training, nor validation, nor export has a say in the submission."""

    def broken(*_, **__):
        assert program.server.submissions, "the round was not submitted first"
        raise DataError("It is broken.")

    for name in ("train_model", "validate_model", "export_model"):
        monkeypatch.setattr(pipeline, name, broken)
    shutil.rmtree(program.report_folder)
    (program.model_folder / "portable.pkl").unlink()
    program.change(max_iter="12")
    result = program.invoke("run")
    assert result.exit_code == 3
    assert result.stderr.count("It is broken.") == 1, "the same error is told once"
    assert "While training 'my_model': It is broken." in result.stderr
    assert record_of(program)["state"] == "submitted"
    assert program.sent == SENT


@pytest.mark.parametrize("name", ["live_benchmark_models", "live_example_preds"])
@pytest.mark.parametrize("kind", ["corrupt", 500])
def test_a_file_to_compare_with_does_not_gate_the_submission(
    program: Program, name, kind
):
    program.server.files[f"v5.3/{name}.parquet"] = b"PAR1 and no more"
    result = program.invoke("run")
    assert result.exit_code == 0
    assert f"{name}_1401.parquet is damaged" in result.stderr
    assert program.sent == SENT


def test_two_runs_do_not_validate_at_once(program: Program):
    shutil.rmtree(program.report_folder)
    _, workspace = program.load()
    with lock(workspace.lock_file(f"validate-{NAME}"), "at it"):
        assert "Another run is validating 'my_model'" in program.run("run")
        assert "Another run is validating" in program.fail("validate", code=3)
    assert program.sent == SENT
    assert "Report" in program.run("run")


def test_a_fit_of_other_data_waits_for_its_training(program: Program, monkeypatch):
    """It may read features of the same names that mean something else."""
    for name, content in list(program.server.files.items()):
        program.server.files[name.replace("v5.3", "v6.0")] = content
    program.change(version='"v6.0"')
    monkeypatch.setattr(pipeline, "train_model", Mock(side_effect=DataError("No.")))
    result = program.invoke("run")
    assert "'my_model' is submitted once it is trained on v6.0." in result.stdout
    assert result.exit_code == 3
    assert program.sent == {}


def test_a_model_that_becomes_a_blend_says_what_it_waits_for(program: Program):
    program.add(BLEND)
    said = program.run("run --no-submit")
    assert "is submitted once all of its fits are trained" in said
    assert "Trained 'my_model' member 'birch'" in said


def test_a_round_that_begins_during_a_training_is_submitted(
    program: Program, monkeypatch
):
    program.add('\n[[model]]\nname = "other"\nfeature_set = "medium"\n')
    program.server.models["other"] = "22222222"
    train = pipeline.train_model

    def train_long(*arguments, **options):
        train(*arguments, **options)
        program.server.round_number = 1402
        program.server.files["v5.3/live.parquet"] = shuffled_ids(
            program.server.files["v5.3/live.parquet"]
        )

    monkeypatch.setattr(pipeline, "train_model", train_long)
    program.run("run")
    for name in (NAME, "other"):
        path = program.folder / "rounds" / "1402" / name / "submission.json"
        assert json.loads(path.read_text())["state"] == "submitted"


def test_what_is_not_foreseen_does_not_stop_the_other_models(
    program: Program, monkeypatch
):
    program.add('\n[[model]]\nname = "other"\n')
    (program.folder / "models" / "other").mkdir()
    for path in program.model_folder.glob("model.*"):
        shutil.copy(path, program.folder / "models" / "other")
    predict = pipeline.predict_model

    def predict_other(config, workspace, model, *rest):
        if model.name == NAME:
            raise ZeroDivisionError("a bug")
        return predict(config, workspace, model, *rest)

    monkeypatch.setattr(pipeline, "predict_model", predict_other)
    result = program.invoke("run")
    assert isinstance(result.exception, ZeroDivisionError)
    (made,) = program.server.submissions
    assert made["modelId"] == program.server.models["other"]


def test_a_machine_that_only_predicts_needs_two_files(program: Program):
    shutil.rmtree(program.data_folder)
    shutil.rmtree(program.report_folder)
    text = program.toml.read_text()
    start, end = text.index("files = ["), text.index("]\n", text.index("files = ["))
    program.toml.write_text(f'{text[:start]}files = ["features", "live"{text[end:]}')
    program.run("run")
    assert program.sent == SENT
    fetched = {path.name for path in program.data_folder.iterdir()}
    assert fetched == {"features_1401.json", "live_1401.parquet"}


def test_a_changed_model_is_submitted_first_and_trained_after(program: Program):
    program.change(max_iter="7")
    said = program.run("run")
    assert "Training 'my_model': max_iter was 10 and is 7." in said
    assert len(program.server.submissions) == 2
    assert (
        said.index("submission-1") < said.index("Training") < said.index("submission-2")
    )
    model = json.loads((program.model_folder / "model.json").read_text())
    assert record_of(program)["model_sha256"] == model["sha256"]
    assert "Training 'my_model': as requested." in program.run(
        "run --retrain --no-submit"
    )


def test_purge_belongs_to_the_report_and_trains_nothing(program: Program):
    program.change(purge="3")
    said = program.run("run --no-submit")
    assert "Training" not in said
    assert "Report" in said
    report = json.loads((program.report_folder / "report.json").read_text())
    assert report["about"]["purge"] == 3


def test_a_damaged_record_is_no_missing_model(program: Program):
    path = program.model_folder / "model.json"
    path.write_text(path.read_text()[:40])
    before = snapshot(program.model_folder)
    for command in ("run", "train", "predict"):
        assert "model.json is damaged" in program.fail(command, code=3)
    assert snapshot(program.model_folder) == before
    assert program.sent == {}


def test_several_models_and_a_blend_share_one_download(empty: Program):
    empty.add(f'{BLEND}\n[[model]]\nname = "other"\nfeature_set = "medium"\n')
    said = empty.run("run")
    assert empty.server.operations.count("GET") == len(
        empty.load()[0].data.files
    ) + 2 * (2), "a file was fetched twice"
    for told in (
        "Trained 'my_model' member 'amber'", "Trained 'my_model' member 'birch'",
        "Trained 'other'", "Validation of my_model", "Validation of other",
    ):  # fmt: skip
        assert told in said
    assert {entry["modelId"] for entry in empty.server.submissions} == {
        empty.server.models[name] for name in (NAME, "other")
    }
    sha256 = [
        json.loads((empty.model_folder / f"{name}.json").read_text())["sha256"]
        for name in ("amber", "birch")
    ]
    assert record_of(empty)["model_sha256"] == "+".join(sha256)
    # One model's trouble is not the other's.
    (empty.folder / "models" / "other" / "model.skops").write_bytes(b"PK")
    empty.server.round_number = 1402
    empty.server.files["v5.3/live.parquet"] = shuffled_ids(
        empty.server.files["v5.3/live.parquet"]
    )
    result = empty.invoke("run")
    assert result.exit_code == 3
    assert "While submitting 'other': " in result.stderr
    assert len(empty.server.submissions) == 3


def test_a_round_that_is_to_open_and_data_that_are_to_come_are_waited_for(
    program: Program, monkeypatch
):
    server, waited = program.server, []
    server.round_number, server.is_open = 1401, False
    old = server.files["v5.3/live.parquet"]

    def sleep(seconds):
        waited.append(seconds)
        if len(waited) == 1:
            server.round_number, server.is_open = 1402, True
        if len(waited) == 2:
            server.files["v5.3/live.parquet"] = shuffled_ids(old)

    monkeypatch.setattr(
        pipeline.Run.__init__,
        "__kwdefaults__",
        {**pipeline.Run.__init__.__kwdefaults__, "sleep": sleep},
    )
    said = program.run("run", "--wait", 30)
    assert "waiting for the next" in said
    assert "are not published yet" in said
    assert len(waited) == 2
    assert len(server.submissions) == 1
    assert (program.folder / "rounds" / "1402" / NAME / "submission.json").exists()
    # Without the wait it is an error, and nothing is sent.
    server.round_number = 1403
    assert "not published yet" in program.fail("run", code=4)
    assert len(server.submissions) == 1


def test_what_stops_it_before_the_download(empty: Program):
    for name in ("max_itr", "max_iter"):
        empty.change(max_iter="0")
        if name == "max_itr":
            empty.toml.write_text(empty.toml.read_text().replace("max_iter", "max_itr"))
        said = fail("numerai", "run", "--config", empty.toml)
        assert ("did you mean 'max_iter'?" if name == "max_itr" else name) in said
        empty.toml.write_text(empty.toml.read_text().replace("max_itr", "max_iter"))
    empty.change(max_iter="10")
    assert empty.server.operations == []
    empty.server.models = {"mine": "1", "another": "2"}
    said = empty.fail("run", code=4)
    assert said.startswith(f"No Classic model named '{NAME}'. ")
    assert "another, mine" in said
    assert empty.server.operations == ["models"]


def test_a_round_goes_without_the_files_to_compare_with(program: Program):
    for name in ("live_example_preds", "meta_model"):
        del program.server.files[f"v5.3/{name}.parquet"]
        (program.data_folder / f"{name}_1401.parquet").unlink()
    shutil.rmtree(program.report_folder)
    result = program.invoke("run")
    assert result.exit_code == 0, result.output
    warned = [line for line in result.stderr.splitlines() if "Numerai has no" in line]
    assert len(warned) == 2
    assert "mmc was left out" in result.stdout
    assert program.sent == SENT


@pytest.mark.parametrize("name", ["train", "live"])
def test_a_round_does_not_go_without_the_data(empty: Program, name):
    del empty.server.files[f"v5.3/{name}.parquet"]
    result = empty.invoke("run")
    assert result.exit_code == 2
    assert f"Numerai has no v5.3/{name}.parquet" in result.stderr


def test_a_submission_changed_by_hand_names_no_model(program: Program):
    path = program.round_folder / "predictions.csv"
    path.write_text(path.read_text().replace("\n", "\r\n"))
    program.run("submit", warned="is not what 'predict' wrote")
    assert record_of(program)["model_sha256"] == ""


def test_predictions_of_any_model_are_submitted_without_a_configuration(
    program: Program, tmp_path
):
    mine = tmp_path / "mine.csv"
    shutil.copy(program.round_folder / "predictions.csv", mine)
    program.toml.unlink()
    shutil.rmtree(program.data_folder)
    said = program.run("submit", mine, "--model", "other")
    assert "'other' has submission submission-1" in said
    (made,) = program.server.submissions
    assert made["modelId"] == program.server.models["other"]
    assert "already submitted" in program.run("submit", mine, "--model", "other")
    assert "--model" in program.fail("submit", mine, code=2)
    mine.write_text("id,prediction\na,0.5\n")
    program.fail("submit", mine, "--model", "other", code=5)


def test_a_file_of_the_users_is_checked_first_and_then_left_alone(
    program: Program, tmp_path
):
    mine = tmp_path / "mine.csv"
    mine.write_text("id,prediction\na,0.5\n")
    before = snapshot(program.folder)
    for name, code in ((NAME, 5), ("nobody", 4), ("../../evil", 4)):
        program.fail("submit", mine, "--model", name, code=code)
    after = snapshot(program.folder)
    assert {name for name in after if name not in before} <= {
        f"rounds/1401/{NAME}/submission.lock"
    }
    shutil.copy(program.round_folder / "predictions.csv", mine)
    program.run("submit", mine, "--model", NAME)
    assert "from a file of yours, mine.csv: it is left alone" in program.run("run")
    assert program.sent == SENT


def test_an_upload_is_of_the_present_model(program: Program, tmp_path):
    program.change(max_iter="7")
    program.run("train")
    assert "of the present model: run" in program.fail("upload", code=2)
    for content in (b"", b"garbage"):
        other = tmp_path / "other.pkl"
        other.write_bytes(content)
        assert "other.pkl" in program.fail("upload", "--file", other, code=7)
    assert program.server.pickles == []


def test_an_upgrade_trains_nothing_and_keeps_all(empty: Program):
    """A folder of the version before: its model predicts, its records are read."""
    for path in (Path(__file__).parent / "version_before").iterdir():
        if path.is_dir():
            shutil.copytree(path, empty.folder / path.name)
    shutil.copy(Path(__file__).parent / "version_before" / "numerai.toml", empty.toml)
    files = (empty.folder / "data" / "v5.3").iterdir()
    empty.server.files = {
        f"v5.3/{path.name.replace('_1.', '.')}": path.read_bytes() for path in files
    }
    empty.server.models["someone"] = "someone"
    empty.server.round_number = 1
    model_folder = empty.folder / "models" / "someone"
    before = snapshot(model_folder)
    assert "someone" in empty.run("run --dry-run")
    said = empty.run("run --no-submit")
    assert "Training" not in said
    assert "Validation" not in said
    after = snapshot(model_folder)
    assert {name: after[name] for name in ("model.skops", "model.json")} == {
        name: before[name] for name in ("model.skops", "model.json")
    }
    path = "rounds/1/someone/predictions.csv"
    old = Path(__file__).parent / "version_before" / path
    assert (empty.folder / path).read_bytes() == old.read_bytes()
    # The record of the submission is read, and Numerai is asked for it.
    assert "submission" in empty.run("run --dry-run")


def test_init_lists_what_there_is(empty: Program):
    empty.toml.unlink()
    said = empty.fail("init", "--name", NAME, code=2)
    assert said.startswith("--target is needed. The targets of v5.3: target_amber_20")
    said = empty.fail("init", "--target", DEMO_TARGETS[0], code=2)
    assert said.startswith("--name is needed. Your models: my_model, other")
    empty.run("init", "--name", NAME, "--target", DEMO_TARGETS[0])
    assert empty.load()[0].data.version == "v5.3"
    # Without Numerai, the version that this program knows.
    empty.toml.unlink()
    empty.server.fail("listDatasets", 500, 9)
    empty.run(
        "init", "--name", NAME, "--target", DEMO_TARGETS[0], warned="latest version"
    )


def test_predict_warns_of_another_configuration(program: Program):
    program.change(max_iter="13")
    program.run("predict", warned="'my_model' is not up to date: max_iter was 10")


def test_an_upload_and_scores_are_shown(program: Program, tmp_path):
    for option, assigned in (("--no-assign", False), ("--assign", True)):
        said = program.run("upload", option)
        assert "Numerai has validated it" in said
        assert ("makes the submissions of" in said) is assigned
        assert (program.server.pickles[-1]["assigned"] is not None) is assigned
    program.server.add_score(1390, v2_corr20=0.02, mmc20=0.01)
    figure = tmp_path / "scores.png"
    said = program.run("scores", "--out", figure)
    assert "CORR" in said
    assert figure.stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
def test_the_demo_can_be_repeated_and_has_the_era_model_ahead(
    tmp_path, monkeypatch, whole
):
    monkeypatch.chdir(tmp_path)
    if not whole:
        small = partial(demo.write_demo_data, **{**SMALL_DEMO, "n_future_eras": 3})
        monkeypatch.setattr(demo, "write_demo_data", small)
        monkeypatch.setattr(
            _demo, "_TOML", _demo._TOML.replace("max_iter = 200", "max_iter = 10")
        )
    told = run("numerai", "run", "--demo")
    assert "Nothing was uploaded" in told
    for name in (
        "numerai.toml", "models/demo/amber.skops", "models/demo/birch.json",
        "models/demo/portable.pkl", "reports/demo/report.json",
        "reports/demo/cumulative_corr.png", "rounds/1/demo/predictions.csv",
    ):  # fmt: skip
        assert (Path("numerai-demo") / name).stat().st_size > 0, name
    live = told.partition("The live eras")[2]
    rows = [line.split("│") for line in live.splitlines() if "│" in line]
    scores = {row[1].strip(): float(row[2]) for row in rows}
    assert not whole or scores["demo"] > scores["gain"] + 0.03
    if not whole:
        run("numerai", "run", "--demo")
    Path("mine").mkdir()
    Path("mine/file").touch()
    assert "'mine'" in fail("numerai", "run", "--demo", "--demo-folder", "mine")
    assert "--demo" in fail("numerai", "run", "--demo", "--dry-run")
