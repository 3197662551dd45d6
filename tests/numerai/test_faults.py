"""Faults print one line and leave nothing by halves; killed runs lose nothing."""

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import pytest

from helpers.numerai.program import BLEND, NAME, Program
from helpers.numerai.server import PUBLIC_ID, SECRET_KEY, NumeraiServer
from sklearn_era.cli import _ui
from sklearn_era.numerai import training
from sklearn_era.numerai.files import lock
from sklearn_era.numerai.steps import Steps

KEY_NAMES = ("NUMERAI_PUBLIC_ID", "NUMERAI_SECRET_KEY")
REFUSED = f"Numerai's API answered HTTP 401: check {' and '.join(KEY_NAMES)}"


@pytest.mark.parametrize(("operation", "kind", "code", "said"), [
    ("models", 401, 4, REFUSED), ("rounds", "hang", 4, "did not answer within 0.3 sec"),
    ("GET", "corrupt", 3, "v5.3/live.parquet is damaged"),
    ("PUT", "hang", 6, "storage did not answer within 0.3 seconds; nothing was"),
    ("create_submission", "unlisted", 6, "does not list"),
])  # fmt: skip
def test_a_fault_of_numerai(program, operation, kind, code, said):
    program.server.fail(operation, kind, 9)
    if kind == "hang":
        program.change(timeout="0.3")
    assert said in program.fail("submit", code=code)
    assert len(program.server.submissions) == (kind == "unlisted")
    program.change(timeout="2.0")
    program.assert_submitted_once()


@pytest.fixture
def validated(monkeypatch):
    """Takes every model for validated, which saves time."""
    monkeypatch.setattr(Steps, "is_validated", lambda *_: True)


@pytest.mark.usefixtures("validated")
@pytest.mark.parametrize("edited", [True, False])
@pytest.mark.parametrize(("operation", "kind"), [
    ("submission_upload_auth", 500), ("create_submission", 500),
    ("create_submission", "unlisted"),
])  # fmt: skip
def test_a_file_of_the_user_is_not_lost(program, tmp_path, operation, kind, edited):
    predictions, mine = program.round_folder / "predictions.csv", tmp_path / "mine.csv"
    mine = predictions if edited else mine
    mine.write_text(content := predictions.read_text().replace("0.9", "0.8"))
    command = ("submit",) if edited else ("submit", mine, "--model", NAME)
    program.server.fail(operation, kind, 9)
    assert program.invoke(*command).exit_code in (4, 6)
    program.server.faults.clear()
    program.server.unlisted.clear()
    assert f"Would look for {mine.name} at Numerai" in program.run("run --dry-run")
    if kind != "unlisted":
        message = program.fail("run", code=6)
        assert f"upload of your file {mine.name} for round 1401 was int" in message
        assert mine.read_text() == content
        assert program.invoke(*command).exit_code == 0
    assert f"from your file {mine.name}; leaving it alone" in program.run("run")
    (made,), record = program.server.submissions, program.submission()
    assert made["content"].decode() == content
    assert (record["state"], record["content_confirmed"]) == ("submitted", True)
    assert "would leave it alone" in program.run("run --dry-run")
    # It also counts as a submission where the training has to wait.
    program.change(max_iter="9")
    with lock(program.load()[1].lock_file(f"train-{NAME}"), "at it"):
        assert "A later run submits its model" in program.run("run")


@pytest.mark.usefixtures("validated")
def test_each_model_that_fails_is_told(program):
    program.add_other()
    shutil.copytree(program.model_folder, program.folder / "models" / "other")
    program.server.fail("submission_upload_auth", 500, 9)
    result = program.invoke("run")
    assert result.exit_code == 4
    for name in (NAME, "other"):
        assert result.stderr.count(f"While submitting '{name}': ") == 1


@pytest.mark.usefixtures("validated")
@pytest.mark.parametrize("in_time", [True, False])
def test_a_later_submission_in_the_round_makes_up(program, monkeypatch, in_time):
    train = Steps.train

    def train_long(*arguments, **options):
        train(*arguments, **options)
        if not in_time:
            program.begin_round()

    monkeypatch.setattr(Steps, "train", train_long)
    program.change(max_iter="7")
    program.server.fail("submission_upload_auth", 500, 2)
    result = program.invoke("run")
    assert (result.exit_code, len(program.server.submissions)) == (4 * (not in_time), 1)
    assert ("While submitting 'my_model'" in result.stderr) is not in_time


@pytest.mark.parametrize(("command", "change", "code", "said"), [
    ("submit", {"every_nth_era": '"x"'}, 2, "[train] every_nth_era = 'x' must"),
    ("export", {"neutralize_proportion": "0.5"}, 7, "neutralize"),
    ("validate", lambda p: shutil.rmtree(p.data_folder), 3, "download"),
    *((x, lambda p: (p.model_folder / "model.json").write_text("[" * 9999), 3,
       "delete it to train again") for x in ("run", "train", "predict")),
    ("predict", lambda p: (p.round_folder / "predictions.csv").unlink()
     or (p.round_folder / "predictions.csv").mkdir(), 3,
     "predictions.csv cannot be written: Is a directory."),
])  # fmt: skip
def test_a_mistake(program, command, change, code, said):
    if callable(change):
        change(program)
    else:
        program.change(**change)
    models = {path: path.read_bytes() for path in program.model_folder.glob("m*")}
    assert said in program.fail(command, code=code)
    assert (program.sent, {path: path.read_bytes() for path in models}) == ({}, models)


@pytest.mark.parametrize(("error", "code", "said"), [
    (MemoryError, 1, "Error: Out of memory: use fewer features or eras"),
    (KeyboardInterrupt, 130, "Interrupted. Run the command again to resume"),
])  # fmt: skip
def test_what_ends_a_command_says_how_to_go_on(program, monkeypatch, error, code, said):
    ended = Mock(side_effect=error)
    monkeypatch.setattr("sklearn_era.numerai.steps.Steps.reasons_to_train", ended)
    result = program.invoke("train")
    assert (result.exit_code, result.stderr.startswith(said)) == (code, True)


@pytest.mark.parametrize("command", ["submit", "run"])
def test_missing_keys_are_named_before_any_call(program, monkeypatch, command):
    for name in KEY_NAMES:
        monkeypatch.delenv(name)
    assert program.fail(command, code=2).startswith(" and ".join(KEY_NAMES))
    assert program.server.requests == []
    # Neither download nor prediction need them.
    program.run("download")
    program.run("predict")
    settings = program.folder / ".env"
    settings.touch(0o600)
    settings.write_text(f"{KEY_NAMES[0]}={PUBLIC_ID}\n{KEY_NAMES[1]}={SECRET_KEY}")
    program.run(command)
    settings.unlink()  # the one file that is to hold the key


def test_a_damaged_file_to_compare_with_is_warned_of(program):
    path = program.data_folder / "live_example_preds_1401.parquet"
    path.write_bytes(path.read_bytes()[:-5])
    program.run("predict", warned=f"{path} is damaged")


def test_a_file_in_place_of_a_folder_is_named(program):
    models = "models train predict export"
    for line in ("data download", models, "reports validate", "rounds predict"):
        folder, *commands = line.split()
        place = program.folder / folder
        moved = place.rename(program.folder / "moved")
        place.write_text("")
        for command in commands:
            message = program.fail(command, code=3)
            assert str(place) in message, command
        place.unlink()
        moved.rename(place)


def test_two_runs_do_not_train_at_once_and_a_round_does_not_wait(program):
    program.change(max_iter="11")
    _, workspace = program.load()
    before = program.model()
    with lock(workspace.lock_file("train-my_model"), "at it"):
        message = program.fail("train --restart", code=3)
        assert message == "Another run is training 'my_model': wait for it to finish."
        # The training would take a request for its own, and drop it.
        assert not list(program.model_folder.glob("*.retrain"))
        assert "A later run submits its model" in program.run("run")
    assert (program.model(), len(program.server.submissions)) == (before, 1)
    assert "max_iter changed from 10 to 11" in program.run("run")


@pytest.mark.usefixtures("validated")
@pytest.mark.parametrize("command", ["train --restart", "run --retrain"])
def test_an_interrupted_training_on_request_goes_on(program, monkeypatch, command):
    program.add_other()
    program.add(BLEND)
    program.run("train")
    (folds := program.folder / "models" / "other" / "folds").mkdir()
    train, begun = training.train, []

    def train_or_stop(plan, **options):
        begun.append(plan.name)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return train(plan, **options)

    monkeypatch.setattr(training, "train", train_or_stop)
    stopped = program.invoke(command)
    assert stopped.exit_code == 130
    assert "to resume, without --restart or --retrain" in stopped.stderr
    command, _ = command.split()
    for _ in range(2):
        program.run(command)
        assert begun == ["amber", "birch", "birch", "model"]
    assert not folds.exists()


def test_bars_are_for_terminals(monkeypatch, capsys):
    screen = io.StringIO()
    screen.isatty = lambda: True
    with monkeypatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setattr(sys, "stderr", screen)
        with (told := _ui.Terminal()).bars:
            told.progress("model", 3, 2000)
            told.progress("live", 10**7, 10**8)
    assert "3/2000" in screen.getvalue()
    assert "live (MB)" in screen.getvalue()
    monkeypatch.setattr(_ui, "_LOG_EVERY", 0.0)
    with (told := _ui.Terminal()).bars:
        told.progress("model", 300, 2000)
    assert capsys.readouterr().err == "model: 300 of 2,000\n"


@pytest.mark.slow
def test_the_table_is_whole_and_plain_where_there_is_no_terminal(program):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    with start(program, "validate", text=True, env=environment) as process:
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (0, "")
    assert "max exposure" in stdout
    assert json.loads((program.report_folder / "report.json").read_text())


PROGRAM = """
import signal
from sklearn_era.cli import main
# Ctrl-C is for a program in front; this one may be started by one in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""
COMMAND = [sys.executable, "-P", "-c", PROGRAM, "numerai"]


def start(program, *command: str, env=os.environ, **options):
    options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    options |= {"cwd": program.folder, "env": {**env, **program.server.environment}}
    return subprocess.Popen([*COMMAND, *command], **options)


def result(program) -> tuple:
    """The results of a finished run, which must not depend on how it came about."""
    predictions = (program.round_folder / "predictions.csv").read_bytes()
    (made,), record = program.server.submissions, program.submission()
    assert (record["state"], record["submission_id"]) == ("submitted", made["id"])
    assert made["content"] == predictions
    assert not list(program.folder.rglob("*.partial*"))
    assert not list(program.model_folder.glob("checkpoint-*"))
    fits = [program.model(name)["data_fingerprint"] for name in ("amber", "birch")]
    return predictions, fits


def run_killed(program, rng: random.Random, duration: float) -> None:
    """Run until it gets through, killing it at random moments."""
    for _ in range(1000):
        with start(program, "run") as process:
            try:
                _, said = process.communicate(timeout=rng.uniform(0, 1.2) * duration)
            except subprocess.TimeoutExpired:
                process.send_signal(rng.choice([signal.SIGKILL, signal.SIGINT]))
                _, said = process.communicate()
                if process.returncode != 0:
                    continue
            assert process.returncode == 0, said
            return
    raise AssertionError("it never gets through")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_killed_runs_end_as_one_that_was_not(files, tmp_path, seed):
    results, duration = [], 1000.0  # the first run is killed only if it hangs
    for name in ("whole", "killed"):
        with NumeraiServer(files) as server:
            (folder := tmp_path / name).mkdir()
            program, began = Program(folder, server), time.monotonic()
            program.change(max_iter="60", automatic="true", folds="2")
            program.add(BLEND)
            run_killed(program, random.Random(seed), duration)
            duration = time.monotonic() - began
            results.append(result(program))
    assert results[0] == results[1]
