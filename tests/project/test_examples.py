"""The examples of the gallery: they run, without a warning, and have its form."""

import ast
import re
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


@pytest.mark.usefixtures("drawing")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_draws(example):
    """Warnings are errors, as in all tests."""
    runpy.run_path(str(example), run_name="__main__")
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    assert all(figure.axes for figure in figures)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_the_form_of_the_gallery(example):
    """A docstring that begins with a title, and cells that begin with prose."""
    text = example.read_text()
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring is not None
    title, underline, *_ = docstring.splitlines()
    assert underline == "=" * len(title)
    cells = re.findall(r"^# %%\n(.*)$", text, flags=re.MULTILINE)
    assert cells
    assert all(first.startswith("# ") for first in cells)
    assert len(text.splitlines()) < 120


def test_index_of_documentation_lists_what_there_is():
    """Entries that are not patterns are files, or made by the build."""
    docs = ROOT / "docs"
    blocks = re.findall(
        r"```\{toctree\}\n(.*?)```", (docs / "index.md").read_text(), flags=re.DOTALL
    )
    entries = [
        line
        for block in blocks
        for line in block.splitlines()
        if line and not line.startswith(":")
    ]
    made = {"auto_examples/index"}
    for entry in entries:
        assert (
            entry in made
            or list(docs.glob(f"{entry}.md"))
            or (docs / f"{entry}.md").is_file()
        )
