"""``sklearn-era numerai``: the commands of a week, one after the other."""

import json

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("numerapi")
pytest.importorskip("numerai_tools")
pytest.importorskip("matplotlib")
lightgbm = pytest.importorskip("lightgbm")
numerai_program = pytest.importorskip("helpers.numerai.program")

from helpers.numerai.program import NAME, SUBMITTED, Program  # noqa: E402
from sklearn_era.numerai.config import load_config  # noqa: E402


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return numerai_program.demo_files(tmp_path_factory.mktemp("numerai"))


@pytest.fixture
def program(files, tmp_path, monkeypatch, caplog):
    with numerai_program.standing_in(tmp_path, files, monkeypatch, caplog) as program:
        yield program


def test_a_week_goes_command_by_command(program: Program):
    folder, server = program.folder, program.server
    said = program.run("init", "--name", NAME, "--target", "target_amber_20")
    assert "numerai.toml" in said
    for old, new in (
        ('"medium"', '"small"'),
        ("max_iter = 2000", "max_iter = 10"),
        ("min_samples_leaf = 100", "min_samples_leaf = 5"),
    ):
        program.change(old, new)

    said = program.run("download")
    names = load_config(folder / "numerai.toml").config.data.files
    assert said.count(": downloaded") == len(names)
    assert f"{folder}/data/v5.3/live_1401.parquet: downloaded" in said
    said = program.run("download")
    n_live = sum(name.startswith("live") for name in names)
    assert said.count(": kept") == len(names) - n_live

    said = program.run("train")
    assert (
        "Trained 'model' on 800 rows of 20 eras (0001 to 0020) and 4 features" in said
    )
    assert (folder / "models" / NAME / "model.skops").is_file()

    said = program.run("validate")
    assert "corr" in said
    assert (folder / "reports" / NAME).is_dir()

    said = program.run("predict")
    assert said.startswith("Round 1401: 40 predictions from 0.01")
    assert str(program.round_folder / "predictions.csv") in said

    server.requests.clear()
    said = program.run("submit")
    assert said.endswith("Round 1401: submission submission-1.\n")
    assert server.operations == SUBMITTED
    (made,) = server.submissions
    sent = (program.round_folder / "predictions.csv").read_bytes()
    assert made["content"] == sent

    server.requests.clear()
    assert "nothing is uploaded again" in program.run("submit")
    assert server.operations == ["models", "submissions", "submissions"]
    assert "submission-2" in program.run("submit", "--again")
    assert len(server.submissions) == 2

    said = program.run("export")
    assert f"{folder}/models/{NAME}/portable.pkl" in said
    assert "checked on 40 rows" in said


def test_weekly_does_what_is_left_to_do(program: Program, monkeypatch):
    folder, server = program.folder, program.server
    numerai_program.write_settings(folder)
    with monkeypatch.context() as patched:
        patched.delenv("NUMERAI_PUBLIC_ID")
        patched.delenv("NUMERAI_SECRET_KEY")
        said = program.run("weekly", "--dry-run")
    assert "there is no model yet." in said
    assert "Nothing was uploaded (--dry-run)." in said
    assert {*server.operations} == {"rounds", "listDatasets", "dataset", "GET"}
    assert (folder / "models" / NAME / "portable.pkl").is_file()
    model = (folder / "models" / NAME / "model.skops").read_bytes()

    said = program.run("weekly")
    assert "Trained" not in said
    assert said.endswith("Round 1401: submission submission-1.\n")
    said = program.run("weekly")
    assert "nothing is uploaded again" in said
    assert len(server.submissions) == 1
    assert (folder / "models" / NAME / "model.skops").read_bytes() == model

    server.round_number = 1402
    assert "Round 1402: submission submission-2." in program.run("weekly")
    path = folder / "rounds" / "1402" / NAME / "submission.json"
    assert json.loads(path.read_text())["state"] == "submitted"
