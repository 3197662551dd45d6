"""A program and a stand-in for Numerai: before the first week, and after it."""

import shutil

import pytest

from helpers.numerai.program import Program, demo_files
from helpers.numerai.server import NumeraiServer, assert_discreet, discreet_server
from sklearn_era.numerai.api.transport import Transport


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> dict[str, bytes]:
    return demo_files(tmp_path_factory.mktemp("numerai"))


@pytest.fixture(scope="session")
def first_week(files, coarse_figures, tmp_path_factory) -> Program:
    """A program in a folder where a week's work was done but for the upload."""
    with NumeraiServer(files) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value if name.endswith("URL") else "")
        program = Program(tmp_path_factory.mktemp("week"), server)
        program.run("weekly --dry-run")
    return program


@pytest.fixture
def empty(files, tmp_path, monkeypatch, caplog, capfd):
    """A program in a folder that has the configuration alone."""
    monkeypatch.setattr(Transport, "wait", lambda *_: None)
    with discreet_server(files, tmp_path, caplog, capfd) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        program = Program(tmp_path, server)
        yield program
        assert_discreet(server, *program.said)


@pytest.fixture
def program(first_week, empty) -> Program:
    """A program in a folder where all is done but the submission."""
    shutil.copytree(first_week.folder, empty.folder, dirs_exist_ok=True)
    return empty
