"""The pages of docs/ and docstrings: examples run, links lead on, all is documented."""

import ast
import contextlib
import doctest
import importlib
import importlib.util
import inspect
import io
import re
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from docs import packages
from sklearn_era import auto, inspection

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TEXTS = [ROOT / "README.md", ROOT / "experiments" / "README.md", *PAGES]
COMMANDS = {"fit", "predict", "demo", "init", "run", "weekly", "download", "train",
            "validate", "submit", "export", "upload", "scores"}  # fmt: skip
# A block with one of these imports runs where the package is installed.
OTHER_PACKAGES = ("erasplit", "mlflow", "optuna", "skl2onnx", "skops",
                  "time_robust_forest")  # fmt: skip


def page_id(page):
    return page.relative_to(ROOT).as_posix()


def examples(page):
    """The page's code, each block with the output that stands below it."""
    return re.findall(
        r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", page.read_text(), re.DOTALL
    )


def other_packages(block):
    imported = re.findall(r"^(?:from|import) (\w+)", block, re.MULTILINE)
    return {*imported} & {*OTHER_PACKAGES}


def assert_same_words(printed, expected):
    """Numbers may differ in the last digits, where another machine adds up."""
    words = expected.split()
    for word, found in zip(words, printed.split()[-len(words) :], strict=True):
        if re.fullmatch(r"-?\d+\.\d+", word):
            assert float(found) == pytest.approx(float(word), abs=0.011)
        else:
            assert found == word


@pytest.mark.slow
@pytest.mark.parametrize("page", [*filter(examples, PAGES)], ids=page_id)
def test_examples_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    """In order, as one program that needs nothing but the page."""
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    printed = io.StringIO()
    for code, expected in examples(page):
        others = other_packages(code)
        if all(map(importlib.util.find_spec, others)):
            with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                if others:
                    warnings.simplefilter("ignore")  # such as of protobuf 7
                exec(compile(code, page.name, "exec"), names)
            if expected:
                assert_same_words(printed.getvalue(), expected)
    plt.close("all")


@pytest.mark.parametrize("page", TEXTS, ids=page_id)
def test_links_lead_to_files_and_headings(page):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
        path, _, heading = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.is_file(), f"{target} is no file"
        text = linked.read_text() if heading else ""
        headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
        letters = {re.sub(r"[^\w\- ]", "", text.lower()) for text in headings}
        anchors = {text.replace(" ", "-") for text in letters}
        assert not heading or heading in anchors, f"{target} is no heading"


@pytest.mark.parametrize("page", TEXTS, ids=page_id)
def test_commands_that_print_tables_and_figures_exist(page):
    """Those that a page names, also where a line ends within them."""
    text = " ".join(page.read_text().split())
    for name in re.findall(r"python -m experiments (\w+)", text):
        module = ROOT / "experiments" / f"{name}.py"
        assert name in ("list", "all") or module.is_file(), name
    for script in re.findall(r"python ((?:[\w.]+/)+\w+\.py)", text):
        assert (ROOT / script).is_file(), script
    drawn = {path.stem for path in (ROOT / "docs" / "images").glob("*.png")}
    for name in re.findall(r"python docs/figures.py (\w+)", text):
        assert name in drawn
    for name in re.findall(r"sklearn-era (numerai \w+|fit|predict|demo)", text):
        assert name.split()[-1] in COMMANDS, name


def test_page_on_inspection_lists_every_column():
    text = inspect.getdoc(inspection.split_statistics)
    columns = re.findall(r"^    ([a-z_, ]+) : ", text, flags=re.MULTILINE)
    names = {name for line in columns for name in line.split(", ")}
    assert len(names) > 15
    page = (ROOT / "docs" / "inspection.md").read_text()
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_picture_of_the_packages_is_what_its_script_draws():
    is_new = packages.PICTURE.read_text() == packages.picture()
    assert is_new, "run python docs/packages.py"


def test_no_modules_or_folders_import_each_other_in_a_circle():
    imports = packages.read_imports()
    packages.check_circles(imports)
    imports["sklearn_era._eras"].add("sklearn_era.ensemble._boosters.hooks.EraFitMixin")
    with pytest.raises(ValueError, match=r"_eras -> sklearn_era\.ensemble"):
        packages.check_circles(imports)


@pytest.mark.parametrize(("circle", "files"), [
    ("p.a p.b", {"a.py": "import os, p.b as b", "b.py": "from . import a"}),
    ("p.a p.b", {"a.py": "def f():\n    from .b import x", "b.py": "import p.a"}),
    ("p p.a", {"__init__.py": "from .a import x", "a.py": "from . import x"}),
    # Folders, by modules that are in none.
    ("p.a p.f",
     {"a.pyx": "from .f.x cimport z", "f/x.pxd": "", "f/y.py": "import p.a"}),
    ("p.f p.g",
     {"f/x.pxd": "from ..g.y cimport z", "g/y.pxd": "", "g/x.py": "import p.f.x"}),
    ("p.a p.b",
     {"a.pyx": "from .b cimport (  # (one)\n    x, y as z,\n)",
      "a.pxd": "cdef int i", "b.pxd": "from \\\n    .a cimport s"}),
    ("p.a p.b p.c",
     {"a.pyx": 'include "b.pxi"', "b.pxi": "cimport p.c", "c.pxd": "cimport p.a"}),
    ("",
     {"__init__.py": "from .a import x", "a.py": "from . import b, f",
      "b.pyx": "from .f.x import y\n# import p.a", "c.py": "import p.f.x",
      "f/__init__.py": "", "f/x.py": "if TYPE_CHECKING:\n    import p.a\n\n"
      "    import p.b\nimport numpy"}),
])  # fmt: skip
def test_imports_in_a_circle_are_refused(tmp_path, circle, files):
    for name, text in files.items():
        (tmp_path / "p" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "p" / name).write_text(text)
    found = []
    try:
        packages.check_circles(packages.read_imports(tmp_path / "p"))
    except ValueError as error:
        *found, first = str(error).removeprefix("Imports in a circle: ").split(" -> ")
        assert found[0] == first
    assert sorted(found) == circle.split()


@pytest.mark.parametrize("init", [
    path for path in sorted((ROOT / "sklearn_era").rglob("__init__.py"))
    # Public packages document functions, not modules.
    if re.match("sklearn_era/(_[a-z]|cli|ensemble|numerai)", page_id(path))
], ids=page_id)  # fmt: skip
def test_docstring_of_a_package_names_each_module_once(init):
    text = ast.get_docstring(ast.parse(init.read_text()))
    names = {path.stem for path in init.parent.glob("*.p[yx]*")} - {"__init__"}
    names |= {path.parent.name for path in init.parent.glob("*/__init__.py")}
    assert [n for n in sorted(names) if text.count(f"``{n}``") != 1] == []


MODULES = [
    "calibration", "causal", "criteria", "datasets", "effects", "ensemble",
    "environments", "inspection", "interop", "metrics", "model_files",
    "model_selection", "numerai", "numerai.metrics", "preprocessing", "rules",
]  # fmt: skip


def public_objects():
    for name in MODULES:
        module = importlib.import_module(f"sklearn_era.{name}")
        for public in module.__all__:
            documented = getattr(module, public)
            yield f"{name}.{public}", documented
            for method, function in inspect.getmembers(documented, inspect.isroutine):
                module_of = getattr(function, "__module__", None) or ""
                if module_of.startswith("sklearn_era.") and method[0] != "_":
                    yield f"{name}.{public}.{method}", function


OBJECTS = dict(public_objects())
DOCUMENTED = OBJECTS | {n: importlib.import_module(f"sklearn_era.{n}") for n in MODULES}
WITH_EXAMPLES = [name for name, x in DOCUMENTED.items() if ">>>" in (x.__doc__ or "")]


def calls_of(page):
    """The expressions in backticks that call something, such as `Era(rule=None)`."""
    for span in re.findall(r"`([^`\n]+\([^`\n]*\)[^`\n]*)`", page.read_text()):
        with contextlib.suppress(SyntaxError):
            tree = ast.parse(span, mode="eval")
            yield from (x for x in ast.walk(tree) if isinstance(x, ast.Call))


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs/papers").glob("*.md")), ids=page_id
)
def test_calls_on_pages_of_papers_are_of_what_there_is(page):
    """Names are public ones, and keywords are parameters of theirs."""
    named = [x for x in OBJECTS.values() if "." not in x.__qualname__]
    known, calls = {x.__name__: x for x in named} | vars(auto), list(calls_of(page))
    assert len(calls) >= 5
    for call in calls:
        if isinstance(call.func, ast.Attribute):
            function = getattr(known[call.func.value.func.id], call.func.attr)
        else:
            function = known[call.func.id]
        parameters = inspect.signature(function).parameters
        assert {x.arg for x in call.keywords} <= {*parameters}, ast.unparse(call)


def documented_parameters(text):
    _, _, section = text.partition("Parameters\n----------\n")
    section = re.split(r"\n\n[\w ]+\n---", section)[0]
    lines = re.findall(r"^([\w*, ]+) :(?: |$)", section, flags=re.MULTILINE)
    return [name.strip("* ") for line in lines for name in line.split(",")]


@pytest.mark.parametrize("name", OBJECTS)
def test_docstring_lists_every_parameter_in_order(name):
    documented = OBJECTS[name]
    text = inspect.getdoc(documented)
    assert text
    if inspect.isclass(documented) and "\nParameters\n" not in text:
        return  # made by a function or a method, not by its user
    parameters = inspect.signature(documented).parameters
    assert documented_parameters(text) == [p for p in parameters if p != "self"]


def test_every_estimator_and_function_has_an_example():
    assert {name for name in OBJECTS if name.count(".") == 1} - {*WITH_EXAMPLES} == {
        # Other examples make the objects that these hold or read.
        "criteria.EraSums", "criteria.ListedSplits", "criteria.SplitKeys",
        "ensemble.InvariantForestClassifier", "ensemble.TimeRobustForestClassifier",
        "metrics.EraScorer", "metrics.EraScores", "model_files.ModelFileError",
        "model_files.ModelMetadata", "model_files.load_model",
        "model_files.read_metadata", "model_files.save_model",
        "numerai.check_portable_model",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_in_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    for example in doctest.DocTestFinder(recurse=False).find(DOCUMENTED[name]):
        assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
