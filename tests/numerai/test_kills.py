"""``sklearn-era numerai run``, killed at any moment and run again, loses nothing."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from helpers.numerai.program import NAME, Program
from helpers.numerai.server import NumeraiServer

PROGRAM = """
import signal
from sklearn_era.cli import main
# Ctrl-C is for a program in front; this one may be started by one in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""
COMMAND = [sys.executable, "-P", "-c", PROGRAM, "numerai"]
BLEND = """
[[model.member]]
name = "amber"
[[model.member]]
name = "birch"
target = "target_birch_20"
weight = 0.5
"""


def start(
    program: Program, *command: str, env=os.environ, **options
) -> subprocess.Popen:
    """Run a command in a process of its own, with pipes for what it says."""
    return subprocess.Popen(
        [*COMMAND, *command],
        cwd=program.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**env, **program.server.environment},
        **options,
    )


def result(program: Program) -> tuple:
    """What a finished run has made, which must not depend on how it came about."""
    predictions = (program.round_folder / "predictions.csv").read_bytes()
    records = [
        json.loads((program.model_folder / f"{name}.json").read_text())
        for name in ("amber", "birch")
    ]
    (made,) = program.server.submissions
    record = json.loads((program.round_folder / "submission.json").read_text())
    assert (record["state"], record["submission_id"]) == ("submitted", made["id"])
    assert made["content"] == predictions
    leftovers = [path for path in program.folder.rglob("*") if ".partial" in path.name]
    assert leftovers == []
    assert not list(program.model_folder.glob("checkpoint-*"))
    return predictions, [record["data_fingerprint"] for record in records]


def make(files, folder, server) -> Program:
    folder.mkdir()
    program = Program(folder, server)
    program.change(max_iter="60", automatic="true", folds="2")
    program.add(BLEND)
    return program


def run_killed(program: Program, rng: random.Random, duration: float) -> int:
    """Run until it gets through, killing it at random moments; return how often."""
    for n_kills in range(1000):
        with start(program, "run") as process:
            limit = rng.uniform(0, 1.2) * duration
            try:
                process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                process.send_signal(rng.choice([signal.SIGKILL, signal.SIGINT]))
                process.communicate()
                if process.returncode != 0:
                    continue
            assert process.returncode == 0
            return n_kills
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
        n_kills = run_killed(program, random.Random(seed), duration)
        assert result(program) == expected
    print(f"{n_kills} kills of {NAME}")


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
        assert said[1].startswith("Interrupted. Run the command again to go on")
    record = program.round_folder / "submission.json"
    assert json.loads(record.read_text())["state"] == "uploading"
    program.assert_submitted_once()
