"""Runs the commands of ``sklearn-era numerai`` against the stand-in for Numerai."""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from helpers.cli import invoke
from helpers.numerai import server as numerai_server
from sklearn_era.numerai.api.transport import Transport
from sklearn_era.numerai.config import write_config
from sklearn_era.numerai.demo import DEMO_TARGET, write_demo_data
from sklearn_era.numerai.workspace import Workspace

NAME = "my_model"
MODEL_ID = "11111111-aaaa"
LIVE = "v5.3/live.parquet"
SECTIONS = {
    "data": {"version": "v5.3"},
    "train": {
        "feature_set": "small",
        "checkpoint_every": 5,
        "parameters": {
            "split_criterion": "directional",
            "max_iter": 10,
            "max_depth": 3,
            "max_bins": 5,
        },
    },
    "submit": {"timeout": 2.0, "retries": 1},
}
SUBMITTED = numerai_server.SUBMISSION_IN_ORDER


def demo_files(folder: Path, *, version: str = "v5.3", seed: int = 0) -> dict:
    """Files of a small demo, by the names that Numerai would have for them."""
    data = write_demo_data(
        Workspace(folder, version, "unused"),
        n_train_eras=20,
        n_validation_eras=40,
        n_future_eras=1,
        rows_per_era=40,
        n_features=20,
        random_state=seed,
    )
    return {
        f"{version}/{name}{path.suffix}": path.read_bytes()
        for name, path in data.paths.items()
    }


class Program:
    """The commands in a folder, whose configuration is that of the first argument."""

    def __init__(self, folder: Path, server: numerai_server.NumeraiServer) -> None:
        self.folder = folder
        self.server = server
        self.said: list[str] = []

    def invoke(self, command: str, *arguments: object):
        config = self.folder / "numerai.toml"
        result = invoke("numerai", command, "--config", config, *arguments)
        self.said += [result.stdout, result.stderr]
        if result.exception is not None:
            texts = numerai_server.everything_said(result.exception)
            numerai_server.assert_discreet(self.server, texts)
        return result

    def run(self, command: str, *arguments: object, warned: str = "") -> str:
        """Run a command; return its standard output."""
        result = self.invoke(command, *arguments)
        assert result.exit_code == 0, result.output
        lines = result.stderr.splitlines()
        if warned:
            (line,) = lines
            assert line.startswith("Warning: ")
            assert warned in line
        else:
            assert lines == []
        return result.stdout

    def fail(self, command: str, *arguments: object, code: int) -> str:
        """Run a command; return the one sentence that it fails with."""
        result = self.invoke(command, *arguments)
        assert result.exit_code == code, result.output
        assert isinstance(result.exception, SystemExit), result.exception
        (line,) = result.stderr.splitlines()
        assert line.startswith("Error: ")
        assert line.endswith(".")
        return line.removeprefix("Error: ")

    def change(self, old: str, new: str) -> None:
        """Edit the configuration."""
        path = self.folder / "numerai.toml"
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))

    @property
    def round_folder(self) -> Path:
        return self.folder / "rounds" / "1401" / NAME


@contextmanager
def standing_in(
    folder: Path,
    files: dict,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> Iterator[Program]:
    """A program, a server and an environment; at the end, no secret is anywhere."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(Transport, "wait", lambda *_: None)
    with numerai_server.NumeraiServer(files) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        program = Program(folder, server)
        yield program
    told = [record.getMessage() for record in caplog.get_records("call")]
    written = [path for path in folder.rglob("*") if path.is_file()]
    texts = [path.read_bytes().decode("latin-1") for path in written]
    numerai_server.assert_discreet(server, *program.said, *told, *texts)
    assert not [path for path in written if path.suffix in (".partial", ".temp")]


def write_settings(folder: Path) -> None:
    """The configuration of the tests."""
    write_config(folder / "numerai.toml", name=NAME, target=DEMO_TARGET, **SECTIONS)


def trained_folder(folder: Path, files: dict) -> Path:
    """A folder in which all is done up to the submission of round 1401."""
    write_settings(folder)
    program = Program(folder, numerai_server.NumeraiServer())
    workspace = Workspace(folder, "v5.3", NAME)
    workspace.data_dir.mkdir(parents=True)
    for name, content in files.items():
        stem, suffix = name.removeprefix("v5.3/").split(".")
        (workspace.data_dir / f"{stem}_1401.{suffix}").write_bytes(content)
    program.run("train")
    program.run("predict")
    return folder


def copied(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to, dirs_exist_ok=True)
    return to
