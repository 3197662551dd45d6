"""``sklearn-era numerai run``, killed at any moment and run again, loses nothing."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from helpers.numerai.program import BLEND, Program
from helpers.numerai.server import NumeraiServer

PROGRAM = """
import signal
from sklearn_era.cli import main
# Ctrl-C is for a program in front; this one may be started by one in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""
COMMAND = [sys.executable, "-P", "-c", PROGRAM, "numerai"]


def start(
    program: Program, *command: str, env=os.environ, **options
) -> subprocess.Popen:
    """Run a command in a process of its own, with pipes for its output."""
    return subprocess.Popen(
        [*COMMAND, *command],
        cwd=program.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**env, **program.server.environment},
        **options,
    )


def result(program: Program) -> tuple:
    """The results of a finished run, which must not depend on how it came about."""
    predictions = (program.round_folder / "predictions.csv").read_bytes()
    (made,), record = program.server.submissions, program.submission()
    assert (record["state"], record["submission_id"]) == ("submitted", made["id"])
    assert made["content"] == predictions
    assert not list(program.folder.rglob("*.partial*"))
    assert not list(program.model_folder.glob("checkpoint-*"))
    fits = [program.model(name)["data_fingerprint"] for name in ("amber", "birch")]
    return predictions, fits


def make(files, folder, server) -> Program:
    folder.mkdir()
    program = Program(folder, server)
    program.change(max_iter="60", automatic="true", folds="2")
    program.add(BLEND)
    return program


def run_killed(program: Program, rng: random.Random, duration: float) -> None:
    """Run until it gets through, killing it at random moments."""
    for _ in range(1000):
        with start(program, "run") as process:
            try:
                process.communicate(timeout=rng.uniform(0, 1.2) * duration)
            except subprocess.TimeoutExpired:
                process.send_signal(rng.choice([signal.SIGKILL, signal.SIGINT]))
                process.communicate()
                if process.returncode != 0:
                    continue
            assert process.returncode == 0
            return
    raise AssertionError("it never gets through")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_killed_runs_end_as_one_that_was_not(files, tmp_path, seed):
    with NumeraiServer(files) as server:
        whole = make(files, tmp_path / "whole", server)
        began = time.monotonic()
        with start(whole, "run") as process:
            _, said = process.communicate()
            assert process.returncode == 0, said
        duration = time.monotonic() - began
        expected = result(whole)
    with NumeraiServer(files) as server:
        program = make(files, tmp_path / "killed", server)
        run_killed(program, random.Random(seed), duration)
        assert result(program) == expected


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["PUT", "submissionDownloadAuth"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_submission_that_is_cut_off_can_be_repeated(
    program: Program, number, operation
):
    program.change(timeout="60.0")
    program.server.fail(operation, "hang")
    with start(program, "submit", text=True) as process:
        deadline = time.monotonic() + 60
        while operation not in program.server.operations:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        said = process.communicate(timeout=60)
    program.said += said
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert said[1].startswith("Interrupted. Run the command again to resume")
    assert program.submission()["state"] == "uploading"
    program.assert_submitted_once()
