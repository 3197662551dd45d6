"""The pages of docs/: their examples run and print what they say, links lead on."""

import contextlib
import importlib.util
import inspect
import io
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn import ensemble as stock

from sklearn_era import ensemble, inspection

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
QUICK_PAGES = [
    "docs/criteria/directional.md", "docs/early-stopping.md", "docs/environments.md",
    "docs/feature-sampling.md", "docs/inspection.md", "docs/large-data.md",
    "docs/migration.md", "docs/split-criteria.md",
]  # fmt: skip
# A block with one of these imports runs where the package is installed.
OTHER_PACKAGES = ("erasplit", "skl2onnx", "time_robust_forest")


def page_id(page):
    return page.relative_to(ROOT).as_posix()


def examples(page):
    """The page's code, each block with the output that stands below it."""
    return re.findall(
        r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", page.read_text(), re.DOTALL
    )


def lacks_a_package(block):
    return any(
        f"from {package}" in block and importlib.util.find_spec(package) is None
        for package in OTHER_PACKAGES
    )


def assert_same_words(printed, expected):
    """Numbers may differ in the last digits, where another machine adds up."""
    words = expected.split()
    for word, found in zip(words, printed.split()[-len(words) :], strict=True):
        if re.fullmatch(r"-?\d+\.\d+", word):
            assert float(found) == pytest.approx(float(word), abs=0.011)
        else:
            assert found == word


def runnable_pages():
    for page in PAGES:
        if examples(page):
            is_slow = page_id(page) not in QUICK_PAGES
            yield pytest.param(
                page, id=page_id(page), marks=[pytest.mark.slow] if is_slow else []
            )


@pytest.mark.slow
# onnx hands protobuf booleans for integers; protobuf 7 will refuse them.
@pytest.mark.filterwarnings("ignore:Field onnx:DeprecationWarning")
@pytest.mark.parametrize("page", list(runnable_pages()))
def test_examples_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    """In order, as one program that needs nothing but what the page says."""
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    printed = io.StringIO()
    for code, expected in examples(page):
        if not lacks_a_package(code):
            with contextlib.redirect_stdout(printed):
                exec(compile(code, page.name, "exec"), names)
            if expected:
                assert_same_words(printed.getvalue(), expected)
    plt.close("all")


def test_printed_words_are_compared():
    assert_same_words("before\nloss 0.384 x", "loss 0.38 x")
    for other in ("loss 0.36 x", "loss 0.38 y", "0.38 x"):
        with pytest.raises((AssertionError, ValueError)):
            assert_same_words(other, "loss 0.38 x")


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=page_id)
def test_links_lead_to_files_and_headings(page):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
        path, _, heading = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.is_file(), f"{target} is no file"
        headings = re.findall(r"^#+ (.*)$", linked.read_text(), flags=re.MULTILINE)
        anchors = {
            re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings
        }
        assert not heading or heading in anchors, f"{target} is no heading"


def test_page_on_inspection_lists_every_column():
    text = inspect.getdoc(inspection.split_statistics)
    columns = re.findall(r"^    ([a-z_, ]+) : ", text, flags=re.MULTILINE)
    names = {name for line in columns for name in line.split(", ")}
    assert len(names) > 15
    page = (ROOT / "docs" / "inspection.md").read_text()
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_a_single_category_beside_missing_values_is_a_fault_of_scikit_learn():
    """As the page on other packages says; if it has gone, a release has mended it."""
    half = np.where(np.arange(80) % 2, np.nan, 3.0).reshape(-1, 1)
    filled = np.nan_to_num(half, nan=4.0)  # what the page advises
    target = -1.0 * np.isnan(half[:, 0])
    params = {"max_iter": 1, "min_samples_leaf": 1, "categorical_features": [0]}

    def n_predictions(package, X, eras=None, **more):
        model = package.HistGradientBoostingRegressor(**params, **more)
        model.fit(X, target, **({} if eras is None else {"eras": eras}))
        return np.unique(model.predict(X)).size

    assert n_predictions(stock, half) == 1
    assert n_predictions(stock, filled) == 2
    assert n_predictions(ensemble, half) == 1
    eras = np.arange(80) // 2 % 2
    for criterion in ("era", "directional", "time_robust", "invariant", "vrex"):
        assert n_predictions(ensemble, half, eras, split_criterion=criterion) == 2
