"""What goes wrong in ``sklearn-era numerai`` is one line, and nothing by halves."""

import fcntl
import io
import os
import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import pytest

from helpers.grids import slow
from helpers.numerai.program import Program
from helpers.numerai.server import PUBLIC_ID, SECRET_KEY, make_client
from sklearn_era.cli.numerai._download import download_shown
from sklearn_era.numerai.api.credentials import SITE

PROGRAM = """
import signal
from sklearn_era.cli import main
# Ctrl-C is for a program in front; this one may be started by one in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""
COMMAND = [sys.executable, "-P", "-c", PROGRAM, "numerai"]
KEY_NAMES = ("NUMERAI_PUBLIC_ID", "NUMERAI_SECRET_KEY")
REFUSED = f"Numerai's API answered HTTP 401: check {' and '.join(KEY_NAMES)}"


@pytest.mark.parametrize(
    ("operation", "kind", "code", "said"),
    [
        ("models", 401, 4, f"Looking up the model: {REFUSED}."),
        ("rounds", "hang", 4,
         "Looking up the current round: Numerai's API did not answer within 0.3 sec"),
        slow("models", "errors", 4,
         "Looking up the model: Numerai's API refused: *** and <address> ?; and anoth"),
        slow("dataset", 403, 4, "Downloading v5.3/live.parquet: Numerai's API answ"),
        slow("GET", 500, 4, "Downloading v5.3/live.parquet: the storage refused to"),
        ("GET", "corrupt", 3, "v5.3/live.parquet is damaged"),
        slow("submissions", "drop", 4, "Listing the submissions: Numerai's API could"),
        slow("submissions", "garbage", 4, "Listing the submissions: Numerai's API an"),
        slow("submission_upload_auth", 403, 4, "Uploading: Numerai's API answered HT"),
        ("PUT", "hang", 6,
         "Uploading: the storage did not answer within 0.3 seconds; nothing was submi"),
        slow("create_submission", 401, 6,
         f"Making the submission: {REFUSED}; nothing was submitted."),
        ("create_submission", "unlisted", 6,
         "Numerai accepted the call but does not list submission submission-1: "
         f"repeat this command in a while, and see at {SITE}."),
    ],
)  # fmt: skip
def test_a_fault_of_numerais_is_one_line_and_an_exit_code(
    program: Program, operation, kind, code, said
):
    message = f"{SECRET_KEY} and {program.server.sign('/uploads/x')} \x07"
    program.server.fail(operation, kind, 9, message)
    if kind == "hang":
        program.change("timeout = 2.0", "timeout = 0.3")
    assert program.fail("submit", code=code).startswith(said)
    assert len(program.server.submissions) == (kind == "unlisted")
    if kind == "hang":
        program.change("timeout = 0.3", "timeout = 2.0")
    program.assert_submitted_once()


def neutralise(program):
    program.change("neutralize_proportion = 0.0", "neutralize_proportion = 0.5")
    program.change("weekly = true", "weekly = false")


@pytest.mark.parametrize(
    ("command", "change", "code", "said"),
    [
        ("submit", ("timeout = 2.0", "timeout = 1e300"), 2, "timeout = 1e+300 must"),
        ("submit", ('name = "my_model"', "name = 123"), 2, "[model] name = 123"),
        ("submit --round 1402", None, 3, "has no live file of round 1402"),
        ("submit", lambda p: (p.round_folder / "predictions.csv").unlink(), 3,
         "predictions.csv: run 'sklearn-era numerai predict' first"),
        ("submit", lambda p: setattr(p.server, "round_number", 1402), 5,
         "the current round is 1402: run download and predict again; nothing was"),

        ("export", neutralise, 7, "A portable model does not neutralise"),
    ],
)  # fmt: skip
def test_a_mistake_here_is_one_line_and_an_exit_code(
    program: Program, command, change, code, said
):
    if callable(change):
        change(program)
    elif change:
        program.change(*change)
    assert said in program.fail(command, code=code)
    assert program.sent == {}


def test_too_little_memory_says_how_to_need_less(program: Program, monkeypatch):
    full = Mock(side_effect=MemoryError)
    monkeypatch.setattr("sklearn_era.numerai.steps.train_model", full)
    assert "take a smaller feature_set" in program.fail("train", code=1)


@pytest.mark.parametrize("command", ["submit", "weekly"])
def test_missing_keys_are_named_before_any_call(program: Program, monkeypatch, command):
    for name in KEY_NAMES:
        monkeypatch.delenv(name)
    said = f"{' and '.join(KEY_NAMES)} are not set"
    assert program.fail(command, code=2).startswith(said)
    assert program.server.requests == []
    # Neither download nor prediction need them.
    program.run("download")
    program.run("predict")
    settings = program.folder / ".env"
    settings.write_text(f"{KEY_NAMES[0]}={PUBLIC_ID}\n{KEY_NAMES[1]}={SECRET_KEY}")
    program.run(command)
    settings.unlink()  # the one file that is to hold the key


@pytest.mark.parametrize("command", ["submit --require-open", "submit"])
def test_a_closed_round_stops_where_it_has_to_be_open(program: Program, command):
    if command == "submit":
        program.change("require_open = false", "require_open = true")
    program.server.is_open = False
    message = program.fail(command, code=5)
    assert message.startswith("Round 1401 closed at 20")
    assert message.endswith("Use --allow-closed to have it queued for the next round.")
    program.run("submit", "--allow-closed", warned="queued for the next round")
    assert len(program.server.submissions) == 1


def test_what_was_downloaded_before_a_failure_is_told(program: Program):
    for name in ("train", "validation"):
        (program.data_folder / f"{name}_1401.parquet").unlink()
    program.server.files["v5.3/validation.parquet"] = b"PAR1 but no more of it"
    result = program.invoke("download")
    assert result.exit_code == 3
    assert "train_1401.parquet: downloaded\n" in result.stdout
    assert "validation_1401.parquet" not in result.stdout
    assert "validation_1401.parquet is cut off" in result.stderr


def test_a_damaged_file_or_another_configuration_is_warned_of(program: Program):
    path = program.data_folder / "live_example_preds_1401.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    program.run("predict", warned=f"{path} is cut off")
    path.write_bytes(whole)
    program.change("max_iter = 10", "max_iter = 13")
    program.run("predict", warned="the model is to be trained again: parameters")
    program.change('version = "v5.3"', 'version = "v5.4"')
    program.data_folder.rename(program.folder / "data" / "v5.4")
    result = program.invoke("predict")
    assert result.exit_code == 0
    first, second = result.stderr.splitlines()
    assert "The model was trained on v5.3" in first
    assert "the model is to be trained again: version" in second


def test_a_file_in_place_of_a_folder_is_named(program: Program):
    for folder, *commands in (
        ("data", "download"),
        ("models", "train", "predict", "export"),
        ("reports", "validate"),
        ("rounds", "predict"),
    ):
        place = program.folder / folder
        moved = place.rename(program.folder / "moved")
        place.write_text("")
        for command in commands:
            message = program.fail(command, code=3)
            assert str(place) in message
            assert "Not a directory" in message
        place.unlink()
        moved.rename(place)


def test_a_folder_in_place_of_a_file_is_named(program: Program):
    path, folder = program.round_folder / "predictions.csv", program.folder
    path.unlink()
    path.mkdir()
    message = program.fail("predict", code=3)
    assert message == f"{path} cannot be written: Is a directory."
    message = program.fail("export", "--out", folder, code=2)
    assert message == f"--out: '{folder}' is a folder: name a file in it."
    message = program.fail("export", "--out", folder / "no" / "x.pkl", code=2)
    assert message == f"--out: there is no folder '{folder / 'no'}': make it first."


@pytest.mark.parametrize("command", ["train", "weekly"])
def test_two_runs_do_not_train_at_once(program: Program, command):
    folder = program.model_folder
    before = {path: path.read_bytes() for path in folder.iterdir()}
    program.change("max_iter = 10", "max_iter = 11")
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    message = program.fail(command, code=3)
    os.close(descriptor)
    assert message == f"Another run is training in {folder}: wait for its end."
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert program.server.submissions == []


def start(program, command, **options):
    """Run a command in a process of its own, with pipes for what it says."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*COMMAND, command], cwd=program.folder, stdout=pipe, stderr=pipe, **options
    )


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["PUT", "submissionDownloadAuth"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_cut_off_can_be_repeated(program: Program, number, operation):
    program.change("timeout = 2.0", "timeout = 60.0")
    program.server.fail(operation, "hang")
    with start(program, "submit", text=True) as process:
        deadline = time.monotonic() + 60
        while operation not in program.server.operations:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert "Another run is submitting from" in program.fail("submit", code=6)
        process.send_signal(number)
        said = process.communicate(timeout=60)
    program.said += said
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert said[1] == "Interrupted: the same command can be run again.\n"
    record = program.round_folder / "submission.json"
    assert '"state": "uploading"' in record.read_text()
    program.assert_submitted_once()


def test_bars_are_for_terminals(program: Program, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    with monkeypatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setattr(sys, "stderr", terminal)
        download_shown(*program.load(), make_client(program.server), refresh=[])
    assert "live" in terminal.getvalue()


@pytest.mark.slow
def test_the_table_is_whole_and_plain_where_there_is_no_terminal(program: Program):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    with start(program, "validate", env=environment) as process:
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (0, b"")
    assert b"max_feature_exposure" in stdout
