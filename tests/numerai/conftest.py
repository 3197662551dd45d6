"""Fixtures: the small demo, a program with its stand-in for Numerai."""

import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from scipy.stats import rankdata

from helpers.numerai import server as helper
from helpers.numerai.demo import SmallDemo, small_demo
from helpers.numerai.program import Program, demo_files
from helpers.numerai.server import NOTES, NumeraiServer, discreet_server
from helpers.numerai.training import make_frame, write_frame
from sklearn_era.numerai import export_check, metrics, report
from sklearn_era.numerai.http import Http


@pytest.fixture(scope="session")
def demo(tmp_path_factory) -> SmallDemo:
    return small_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session", autouse=True)
def coarse_figures():
    """Figures of few pixels, which take less time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "_DPI", 20)
        yield


# Of a portable model that runs within Numerai's limits.
CHECK = {"rows": 40, "seconds": 1.0, "peak_bytes": 0, "python": "3"}
CHECK |= {"versions": {}, "warnings": []}


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    """A file of thirty eras to train on."""
    folder = tmp_path_factory.mktemp("data")
    return write_frame(make_frame(), folder / "train_7.parquet")


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> dict[str, bytes]:
    return demo_files(tmp_path_factory.mktemp("numerai"))


def save_time(patch: pytest.MonkeyPatch) -> None:
    """Let models not be drawn, and tried in no other process."""
    patch.setattr(report, "as_png", lambda figure: b"PNG")
    ran = {"stage": "done", "check": CHECK}
    patch.setattr(export_check, "_run", lambda *_: ran)


@pytest.fixture(scope="session")
def first_run(files, coarse_figures, tmp_path_factory) -> Program:
    """A program in a folder where a round's work was done but for the upload."""
    with NumeraiServer(files) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value if name.endswith("URL") else "")
        program = Program(tmp_path_factory.mktemp("round"), server)
        program.change(automatic="true")
        save_time(patch)
        program.run("run --no-submit")
    return program


@pytest.fixture
def empty(files, tmp_path, monkeypatch, caplog, capfd):
    """A program in a folder that has the configuration alone."""
    monkeypatch.setattr(Http, "wait", lambda *_: None)
    with discreet_server(files, tmp_path, caplog, capfd) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        program = Program(tmp_path, server)
        yield program
        helper.assert_discreet(server, *program.said)


@pytest.fixture(scope="module")
def quick_scores():
    """Scores like those of numerai-tools, which take less time."""

    def corr(x, y, **_):
        z = ndtri((rankdata(x["x"]) - 0.5) / len(x))
        return {"x": np.corrcoef(np.sign(z) * np.abs(z) ** 1.5, y)[0, 1]}

    def contribution(x, m, y):
        return {"x": np.cov(rankdata(x["x"]) - rankdata(m), y)[0, 1]}

    tools = SimpleNamespace(numerai_corr=corr, correlation_contribution=contribution)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "import_tools", lambda: (pd, tools))
        yield


@pytest.fixture
def program(first_run, empty, quick_scores, monkeypatch) -> Program:
    """A program where all is done but the submission; it draws and tries no model."""
    save_time(monkeypatch)
    shutil.copytree(first_run.folder, empty.folder, dirs_exist_ok=True)
    return empty


@pytest.fixture
def server(caplog, capfd):
    """The stand-in for Numerai with one file, which is no secret."""
    with discreet_server(NOTES, None, caplog, capfd) as server:
        yield server


@pytest.fixture
def client(server):
    return helper.make_client(server)
