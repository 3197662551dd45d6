"""What `sklearn_era.inspection` documents holds: examples, parameters, the page."""

import contextlib
import doctest
import inspect
import io
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest

from sklearn_era import inspection

PAGE = Path(__file__).resolve().parents[2] / "docs" / "inspection.md"
PUBLIC = [getattr(inspection, name) for name in inspection.__all__]
CALLABLES = [
    inspection.split_statistics,
    inspection.era_feature_importances,
    *(
        getattr(display, method)
        for display, methods in {
            inspection.EraScoreDisplay: ("plot", "from_estimator", "from_predictions"),
            inspection.SplitAgreementDisplay: (
                "plot",
                "from_estimator",
                "from_statistics",
            ),
            inspection.DecisionSurfaceDisplay: ("plot", "from_estimator"),
        }.items()
        for method in methods
    ),
]


@pytest.fixture(autouse=True)
def pyplot():
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.mark.parametrize("documented", PUBLIC, ids=inspection.__all__)
def test_examples_in_docstrings(documented):
    (example,) = doctest.DocTestFinder(recurse=False).find(documented, globs={})
    assert example.examples
    results = doctest.DocTestRunner(verbose=False).run(example)
    assert results.failed == 0


@pytest.mark.parametrize("function", CALLABLES, ids=lambda f: f.__qualname__)
def test_docstrings_list_every_parameter_in_order(function):
    text = inspect.getdoc(function)
    _, _, text = text.partition("Parameters\n----------\n")
    text, _, _ = text.partition("\nReturns\n")
    documented = re.findall(r"^([\w*, ]+) :", text, flags=re.MULTILINE)
    documented = [name.strip("*") for names in documented for name in names.split(", ")]
    parameters = list(inspect.signature(function).parameters)
    assert documented == [name for name in parameters if name != "self"]


def test_page_runs_and_prints_what_it_says(pyplot, tmp_path, monkeypatch):
    """Numbers may differ in the last digits, where another machine adds up."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE.read_text(), re.DOTALL
    )
    assert sum(bool(text) for _, text in blocks) == 4
    namespace: dict = {}
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        words, expected_words = printed.getvalue().split(), expected.split()
        assert len(words) == len(expected_words)
        for word, expected_word in zip(words, expected_words, strict=True):
            if re.fullmatch(r"-?\d+\.\d+", expected_word):
                assert float(word) == pytest.approx(float(expected_word), abs=0.011)
            else:
                assert word == expected_word
    assert len(pyplot.get_fignums()) == 4
    assert (tmp_path / "surface.png").stat().st_size > 1000


def test_page_lists_every_column():
    data = inspect.getdoc(inspection.split_statistics)
    columns = re.findall(r"^    ([a-z_, ]+) : ", data, flags=re.MULTILINE)
    names = {name for line in columns for name in line.split(", ")}
    assert len(names) > 15
    assert {name for name in names if f"`{name}`" not in PAGE.read_text()} == set()


def test_matplotlib_is_imported_where_it_draws_only():
    code = (
        "import sys; import sklearn_era.inspection; "
        "sys.exit('matplotlib' in sys.modules)"
    )
    # Without -P, the sources in the working folder would be found first.
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
