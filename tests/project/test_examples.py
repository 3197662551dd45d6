"""The examples of the gallery run, without a warning, and draw."""

import runpy
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot")

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


@pytest.fixture
def drawing(tmp_path, monkeypatch):
    """A backend without windows, and a folder in which nothing may be left."""
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    yield
    plt.close("all")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.usefixtures("drawing")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_draws(example):
    """Warnings are errors, as in all tests."""
    runpy.run_path(str(example), run_name="__main__")
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    assert all(figure.axes for figure in figures)
