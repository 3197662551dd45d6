"""The pages of docs/: their examples run, their links lead somewhere."""

import importlib.util
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
# Blocks with these imports run where the package is installed: no test brings them.
OTHER_PACKAGES = ("erasplit", "skl2onnx", "time_robust_forest")


def page_id(page):
    return page.relative_to(ROOT).as_posix()


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


def lacks_a_package(block):
    return any(
        f"from {package}" in block and importlib.util.find_spec(package) is None
        for package in OTHER_PACKAGES
    )


# onnx hands protobuf booleans for integers; protobuf 7 will refuse them.
@pytest.mark.filterwarnings("ignore:Field onnx:DeprecationWarning")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if python_blocks(page)], ids=page_id
)
def test_examples_run(page, tmp_path, monkeypatch):
    """In order, as one program that needs nothing but what the page says."""
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in python_blocks(page):
        if not lacks_a_package(block):
            exec(compile(block, page.name, "exec"), names)
    plt.close("all")


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


def test_readme_links_to_every_page_or_to_one_that_does():
    linked = set()
    for page in [ROOT / "README.md", ROOT / "docs" / "split-criteria.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text()):
            linked.add((page.parent / target).resolve())
    assert [page for page in PAGES if page not in linked] == []


def test_a_single_category_beside_missing_values_is_still_a_fault_of_scikit_learn():
    """As the page on other packages says; if this fails, a release has fixed it."""
    half = np.where(np.arange(80) % 2, np.nan, 3.0).reshape(-1, 1)
    target = -1.0 * np.isnan(half[:, 0])
    model = HistGradientBoostingRegressor(
        max_iter=1, learning_rate=1.0, min_samples_leaf=1, categorical_features=[0]
    )
    assert np.unique(model.fit(half, target).predict(half)).size == 1
    filled = np.nan_to_num(half, nan=4.0)  # what the page advises
    assert np.unique(model.fit(filled, target).predict(filled)).size == 2
