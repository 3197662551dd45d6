"""``sklearn-era numerai``: a round's work, by its commands and by ``run``."""

import json
import re
import shutil
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest

from helpers.cli import fail, run
from helpers.numerai.program import BLEND, NAME, SENT, SMALL_DEMO, shuffled_ids
from helpers.numerai.training import VERSION_BEFORE
from sklearn_era.cli import _numerai_demo as demo
from sklearn_era.numerai import data, export_check, pipeline, training
from sklearn_era.numerai.errors import DataError
from sklearn_era.numerai.files import lock
from sklearn_era.numerai.steps import Steps
from sklearn_era.numerai.store import read_record
from sklearn_era.numerai.submit import read_submission_record


def snapshot(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_round_goes_command_by_command(empty):
    names = empty.load()[0].data.files
    said = empty.run("download")
    assert said.count("Downloaded ") == len(names)
    n_live = sum(name.startswith("live") for name in names)
    assert empty.run("download").count("Kept ") == len(names) - n_live

    said = "target_amber_20 on 800 rows of 20 eras (0001 to 0020) and 4 features."
    assert said in empty.run("train")
    assert "is up to date" in empty.run("train")

    said = empty.run("validate")
    for row in ("max exposure", "v53_lgbm_amber20", "example predictions"):
        assert row in said
    assert all(str(file) in said for file in empty.report_folder.iterdir())
    said = empty.run("predict")
    assert said.startswith("Round 1401: 40 predictions of 'my_model', from 0.01")
    assert "Rank correlation with v53_lgbm_amber20: " in said

    assert empty.run("submit").endswith("'my_model' has submission submission-1.\n")
    assert "already submitted" in empty.run("submit")
    assert empty.sent == SENT
    assert "submission-2" in empty.run("submit", "--force")
    assert f"models/{NAME}/portable.pkl" in empty.run("export")


def test_files_are_named_as_the_current_folder_sees_them(program, monkeypatch):
    monkeypatch.chdir(program.folder.parent)
    here = program.folder.name
    assert f": {here}/rounds/1401/{NAME}/predictions.csv\n" in program.run("predict")
    assert f"Record: {here}/rounds/1401/{NAME}/submission.j" in program.run("submit")
    monkeypatch.chdir(program.folder)
    assert f"Portable model of '{NAME}': models/{NAME}/portab" in program.run("export")
    shutil.rmtree("data")
    assert program.fail("predict", code=3).startswith("data/v5.3 has no live_")


def test_no_submit_needs_no_keys_and_does_all_but_the_upload(first_run):
    (said, _) = first_run.said
    for told in ("Training 'my_model': ", "Report:", "Portable model of 'my_model':"):
        assert told in said
    assert said.endswith("Nothing was uploaded (--no-submit).\n")
    assert first_run.sent == {}
    assert (first_run.round_folder / "predictions.csv").is_file()


def test_a_dry_run_shows_the_plan_and_touches_nothing(empty, first_run):
    before = snapshot(empty.folder)
    said = empty.run("run --dry-run")
    assert "Would export" not in said
    for told in (
        "Round 1401 is open until", "Would download train: not downloaded yet.",
        "Would train 'my_model': not trained yet.", "Would validate 'my_model'.",
        "Would predict and submit 'my_model' for round 1401.",
    ):  # fmt: skip
        assert told in said
    assert snapshot(empty.folder) == before
    assert set(empty.server.operations) <= {"rounds"}
    shutil.copytree(first_run.folder, empty.folder, dirs_exist_ok=True)
    before = snapshot(empty.folder)
    said = empty.run("run --dry-run")
    assert "Would train" not in said
    assert "Would validate" not in said
    empty.change(max_iter="13")
    empty.server.fail("rounds", 500, 9)
    said = empty.run("run --dry-run")
    assert "Would train 'my_model': max_iter changed from 10 to 13." in said
    assert "The current round is unknown" in said
    assert "Would predict and submit 'my_model' for the current round." in said
    empty.change(max_iter="10")
    assert snapshot(empty.folder) == before


def test_run_does_what_is_left_to_do(program, monkeypatch):
    read = Mock(side_effect=data.read_features)
    monkeypatch.setattr(data, "read_features", read)
    model = program.model()
    for count, command in enumerate(("run", "weekly"), 1):
        said = program.run(command)
        for told in ("Training", "Portable", "Report"):
            assert told not in said
        assert program.sent == SENT, "it was uploaded again"
        assert program.model() == model
        assert read.call_count == count, "features.json is read once a run"
    record = program.submission()
    assert (record["state"], record["model_sha256"]) == ("submitted", model["sha256"])
    program.begin_round()
    program.run("run")
    assert len(program.server.submissions) == 2


def test_the_round_is_submitted_before_anything_else(program, monkeypatch):
    def broken(*_, **__):
        assert program.server.submissions, "the round was not submitted first"
        raise DataError("It is broken.")

    for name in ("train", "validate", "export"):
        monkeypatch.setattr(Steps, name, broken)
    shutil.rmtree(program.report_folder)
    (program.model_folder / "portable.pkl").unlink()
    program.change(max_iter="12")
    result = program.invoke("run")
    assert result.exit_code == 3
    assert result.stderr.count("It is broken.") == 1, "the same error is told once"
    assert "While training 'my_model': It is broken." in result.stderr
    assert (program.submission()["state"], program.sent) == ("submitted", SENT)


@pytest.mark.parametrize("name", ["live_benchmark_models", "live_example_preds"])
def test_a_file_to_compare_with_does_not_gate_the_submission(program, name):
    program.server.files[f"v5.3/{name}.parquet"] = b"PAR1 and no more"
    result = program.invoke("run")
    assert result.exit_code == 0
    assert f"v5.3/{name}.parquet is damaged" in result.stderr
    assert program.sent == SENT


def test_the_purge_is_of_the_report_which_two_runs_do_not_write(program):
    program.change(purge="3")
    _, workspace = program.load()
    with lock(workspace.lock_file(f"validate-{NAME}"), "at it"):
        assert "Another run is validating 'my_model'" in program.run("run")
        assert "Another run is validating" in program.fail("validate", code=3)
    assert program.sent == SENT
    said = program.run("run --no-submit")
    assert "Training" not in said
    assert "Report" in said
    report = json.loads((program.report_folder / "report.json").read_text())
    assert report["about"]["purge"] == 3


def test_a_fit_of_other_data_waits_for_its_training(program, monkeypatch):
    """It may read features of the same names that mean something else."""
    for name, content in list(program.server.files.items()):
        program.server.files[name.replace("v5.3", "v6.0")] = content
    program.change(version='"v6.0"')
    monkeypatch.setattr(Steps, "train", Mock(side_effect=DataError("No.")))
    result = program.invoke("run")
    assert "'my_model' will be submitted once it is trained on v6.0." in result.stdout
    assert (result.exit_code, program.sent) == (3, {})


def test_a_round_begins_during_a_training(program, monkeypatch):
    program.add_other('feature_set = "medium"\n')
    program.server.models["other"] = "22222222"
    train = Steps.train

    def train_long(*arguments, **options):
        train(*arguments, **options)
        program.begin_round()

    monkeypatch.setattr(Steps, "train", train_long)
    program.run("run")
    for name in (NAME, "other"):
        assert program.submission(1402, name)["state"] == "submitted"


def test_a_bug_stops_no_other_model(program, monkeypatch):
    program.add_other()
    shutil.copytree(program.model_folder, program.folder / "models" / "other")
    predict = Steps.predict

    def predict_other(self, model, *rest):
        if model.name == NAME:
            raise ZeroDivisionError("a bug")
        return predict(self, model, *rest)

    monkeypatch.setattr(Steps, "predict", predict_other)
    result = program.invoke("run")
    assert isinstance(result.exception, ZeroDivisionError)
    (made,) = program.server.submissions
    assert made["modelId"] == program.server.models["other"]


def test_a_machine_that_only_predicts_needs_two_files(program):
    shutil.rmtree(program.data_folder)
    shutil.rmtree(program.report_folder)
    text = program.toml.read_text()
    files = re.sub(r"files = \[[^]]*\]", 'files = ["features", "live"]', text, count=1)
    program.toml.write_text(files)
    program.run("run")
    assert program.sent == SENT
    fetched = {path.name for path in program.data_folder.iterdir()}
    assert fetched == {"features_1401.json", "live_1401.parquet"}


def test_a_changed_model_is_submitted_first_and_trained_after(program):
    program.change(max_iter="7")
    program.run("predict", warned="'my_model' is out of date: max_iter changed")
    said = program.run("run")
    assert "Training 'my_model': max_iter changed from 10 to 7." in said
    assert len(program.server.submissions) == 2
    steps = [said.index(x) for x in ("submission-1", "Training", "submission-2")]
    assert steps == sorted(steps)
    assert program.submission()["model_sha256"] == program.model()["sha256"]
    said = program.run("run --retrain --no-submit")
    assert "Training 'my_model': as requested." in said


def test_several_models_and_a_blend_share_one_download(empty, quick_scores):
    empty.add_other('feature_set = "medium"\n')
    empty.add(BLEND)
    said = empty.run("run")
    assert "'my_model' will be submitted once all of its fits are trained" in said
    n_files = len(empty.load()[0].data.files)
    # For each submission, the live file and what was sent are looked at.
    assert empty.server.operations.count("GET") == n_files + 2 * 2
    for told in ("my_model' member 'amber'", "my_model' member 'birch'", "other'"):
        assert f"Trained '{told}" in said
    assert said.count("Validation of ") == 2
    models = {empty.server.models[name] for name in (NAME, "other")}
    assert {entry["modelId"] for entry in empty.server.submissions} == models
    sha256 = [empty.model(name)["sha256"] for name in ("amber", "birch")]
    assert empty.submission()["model_sha256"] == "+".join(sha256)
    (empty.folder / "models" / "other" / "model.era").write_bytes(b"PK")
    empty.begin_round()
    result = empty.invoke("run")
    assert result.exit_code == 3
    assert "While submitting 'other': " in result.stderr
    assert len(empty.server.submissions) == 3


def test_rounds_and_data_are_waited_for(program, monkeypatch):
    server, waited = program.server, []
    server.is_open, old = False, server.files["v5.3/live.parquet"]

    def sleep(seconds):
        waited.append(seconds)
        if len(waited) == 1:
            server.round_number, server.is_open = 1402, True
        if len(waited) == 2:
            server.files["v5.3/live.parquet"] = shuffled_ids(old)

    monkeypatch.setattr(pipeline, "sleep", sleep)
    said = program.run("run", "--wait", 30)
    assert "waiting for the next" in said
    assert "are not published yet" in said
    assert (len(waited), len(server.submissions)) == (2, 1)
    assert program.submission(1402)["state"] == "submitted"
    # Without the wait it is an error, and nothing is sent.
    server.round_number = 1403
    assert "not published yet" in program.fail("run", code=4)
    assert len(server.submissions) == 1


def test_what_stops_it_before_a_download(program):
    program.change(name='"nobody"')
    assert "no Classic model 'nobody'. Your models: my" in program.fail("run", code=4)
    program.change(target='"target_x_20"')
    assert "Unknown target 'target_x_20'" in program.fail("run", code=2)
    assert program.server.operations == ["models"]


@pytest.mark.parametrize(("changes", "said"), [
    ({"fnc_feature_set": '"sma"'}, "no feature set 'sma'; did you mean 'small'"),
    ({"neutralize_proportion": "0.5", "neutralize_feature_set": '"x"'}, "set 'x'; use"),
])  # fmt: skip
def test_sets_of_features_are_checked_first(program, changes, said):
    program.change(**changes)
    assert said in program.fail("run --dry-run", code=2)


@pytest.mark.parametrize(("changes", "said"), [
    ({"benchmark": '"v9"'}, "no column 'v9'; it has"),
    ({"folds": "99", "purge": "90"}, "lower [validate] folds"),
])  # fmt: skip
def test_what_validation_will_lack_is_told_before_training(program, changes, said):
    program.change(**changes)
    program.run("run --dry-run")
    program.change(max_iter="13")
    program.run("run --dry-run", warned=said)


@pytest.mark.parametrize(("change", "said"), [
    (lambda x: x.sample(frac=1, random_state=0), "are not contiguous: sort"),
    (lambda x: pd.concat([x, x[-1:]]), "1 duplicate ids"),
])  # fmt: skip
def test_rows_placed_by_hand_are_checked_before_training(program, change, said):
    path = program.data_folder / "train_1401.parquet"
    change(pd.read_parquet(path)).to_parquet(path)
    assert said in program.fail("train --restart", code=3)


def test_a_restart_reaches_the_fits_for_validation(program):
    for name in ("gain", "folds"):
        (program.model_folder / name).mkdir(exist_ok=True)
    program.run("train --restart")
    assert not {"gain", "folds"} & {x.name for x in program.model_folder.iterdir()}


def test_a_newer_features_file_may_know_a_feature_set(program):
    document = json.loads(program.server.files["v5.3/features.json"])
    document["feature_sets"]["tiny"] = document["feature_sets"]["small"][:3]
    program.server.files["v5.3/features.json"] = json.dumps(document).encode()
    program.begin_round()
    program.change(refresh='["features"]', feature_set='"tiny"')
    said = program.run("run --no-submit")
    assert "feature_set changed from 'small' to 'tiny'" in said
    assert "and 3 features" in said


def test_a_round_goes_without_the_files_to_compare_with(program):
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
def test_a_round_does_not_go_without_the_data(empty, name):
    del empty.server.files[f"v5.3/{name}.parquet"]
    result = empty.invoke("run")
    assert (result.exit_code, f"no v5.3/{name}.parquet" in result.stderr) == (2, True)


def test_any_predictions_are_submitted_without_configuration(program, tmp_path):
    path, mine = program.round_folder / "predictions.csv", tmp_path / "mine.csv"
    shutil.copy(path, mine)
    # What was changed by hand names no model.
    path.write_text(path.read_text().replace("\n", "\r\n"))
    program.run("submit", warned="is not what 'predict' wrote")
    assert program.submission()["model_sha256"] == ""
    program.toml.unlink()
    shutil.rmtree(program.data_folder)
    said = program.run("submit", mine, "--model", "other")
    assert "'other' has submission submission-2" in said
    made = program.server.submissions[-1]
    assert made["modelId"] == program.server.models["other"]
    assert "already submitted" in program.run("submit", mine, "--model", "other")
    assert "--model" in program.fail("submit", mine, code=2)


def test_a_file_of_the_user_is_checked_and_left_alone(program, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("id,prediction\na,0.5\n")
    before = snapshot(program.folder)
    for name, code in ((NAME, 5), ("nobody", 4), ("../../evil", 4)):
        program.fail("submit", mine, "--model", name, code=code)
    new = snapshot(program.folder).keys() - before.keys()
    assert new <= {f"rounds/1401/{NAME}/submission.lock"}
    shutil.copy(program.round_folder / "predictions.csv", mine)
    program.change(require_open="true")
    program.server.is_open = False
    program.fail("submit", mine, "--model", NAME, code=5)
    command = ("submit --allow-closed", mine, "--model", NAME)
    program.run(*command, warned="queue this upload for the next round")
    assert "from your file mine.csv; leaving it alone" in program.run("run")
    assert program.sent == SENT


def test_an_upload_is_of_the_present_model(program, tmp_path, monkeypatch):
    program.change(max_iter="7")
    program.run("train")
    assert "is missing or out of date: run" in program.fail("upload", code=2)
    (other := tmp_path / "other.pkl").write_bytes(b"garbage")
    failed = {"stage": "read", "error": "EOFError"}
    monkeypatch.setattr(export_check, "_run", lambda *_: failed)
    assert "other.pkl" in program.fail("upload", "--file", other, code=7)
    assert program.server.pickles == []


def test_an_upgrade_trains_nothing_and_keeps_all(empty):
    shutil.copytree(VERSION_BEFORE, empty.folder, dirs_exist_ok=True)
    files = {path.name: path.read_bytes() for path in empty.data_folder.iterdir()}
    empty.server.files = {f"v5.3/{x.replace('_1.', '.')}": files[x] for x in files}
    empty.server.models["someone"] = "someone"
    empty.server.round_number = 1
    before = snapshot(empty.folder)
    assert "someone" in empty.run("run --dry-run")
    said = empty.run("run --no-submit")
    assert "Training" not in said
    assert "Validation" not in said
    after, model = snapshot(empty.folder), "models/someone/model"
    for name in (f"{model}.era", f"{model}.json", "rounds/1/someone/predictions.csv"):
        assert after[name] == before[name]
    # The submission's record is read, where the digest had another name.
    path = empty.folder / "rounds/1/someone/submission.json"
    digest = json.loads(path.read_text())["model_hash"]
    assert read_submission_record(path).model_sha256 == digest
    assert "submission" in empty.run("run --dry-run")


def test_init_lists_what_there_is(empty):
    empty.toml.unlink()
    said = empty.fail("init", "--name", NAME, code=2)
    assert said.startswith("--target is required. Targets of v5.3: target_amber_20")
    target = ("--target", demo.DEMO_TARGETS[0])
    said = empty.fail("init", *target, code=2)
    assert said.startswith("--name is required. Your models: my_model, other")
    empty.run("init", "--name", NAME, *target)
    assert empty.load()[0].data.version == "v5.3"
    # Without Numerai, the version that this program knows.
    empty.toml.unlink()
    empty.server.fail("listDatasets", 500, 9)
    empty.run("init", "--name", NAME, *target, warned="latest version")


@pytest.mark.parametrize("n", [5, 4])
def test_trees_without_splits_are_told_and_warned_of(program, monkeypatch, n):
    counts = {"n_trees": 10, "n_trees_with_splits": n}
    record = read_record(program.model_folder, "model").model_copy(update=counts)
    monkeypatch.setattr(training, "train", lambda *_, **__: record)
    told = f"Only {n} of 10 trees have splits: the eras agree on too little. "
    said = program.run("train --restart", warned=told if n < 5 else "")
    assert (told in said) == (n == 5)


def test_an_upload_and_scores_are_shown(program, tmp_path):
    for option, assigned in (("--no-assign", False), ("--assign", True)):
        said = program.run("upload", option)
        assert "Numerai has validated it" in said
        assert ("makes the submissions of" in said) is assigned
        assert (program.server.pickles[-1]["assigned"] is not None) is assigned
    program.server.add_score(1390, v2_corr20=0.02, mmc20=0.01)
    figure = tmp_path / "scores.png"
    said = program.run("scores", "--out", figure)
    (row,) = [line.split() for line in said.splitlines() if "1390" in line]
    assert row[:6] == ["1390", NAME, "0.0200", "0.0100", "-", "-"]
    assert figure.stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
def test_the_demo(tmp_path, monkeypatch, whole):
    monkeypatch.chdir(tmp_path)
    if not whole:
        small = partial(demo.write_demo_data, **{**SMALL_DEMO, "n_future_eras": 3})
        monkeypatch.setattr(demo, "write_demo_data", small)
        toml = demo._TOML.replace("max_iter = 100", "max_iter = 10")
        monkeypatch.setattr(demo, "_TOML", toml)
    told = run("numerai", "run", "--demo")
    assert "Nothing was uploaded" in told
    made = "models/demo/amber.era models/demo/portable.pkl reports/demo/report.json"
    for name in (*made.split(), "numerai.toml", "rounds/1/demo/predictions.csv"):
        assert (Path("numerai-demo") / name).stat().st_size > 0, name
    live = told.partition("The live eras")[2]
    rows = [line.split() for line in live.splitlines() if line.count(".") == 3]
    scores = {row[0]: float(row[1]) for row in rows}
    assert scores.keys() == {"demo", "gain"}
    assert not whole or scores["demo"] > scores["gain"] + 0.03
    if not whole:
        run("numerai", "run", "--demo")
    Path("mine").mkdir()
    Path("mine/file").touch()
    for place in ("mine", "mine/file"):
        assert f"'{place}'" in fail("numerai", "run", "--demo", "--demo-folder", place)
    assert "--demo" in fail("numerai", "run", "--demo", "--dry-run")
