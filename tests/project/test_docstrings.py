"""Docstrings of all that is public: examples run, parameters are all there."""

import doctest
import importlib
import inspect
import pkgutil
import re

import matplotlib
import pytest

MODULES = [
    "datasets", "ensemble", "environments", "inspection", "interop", "metrics",
    "model_files", "model_selection",
]  # fmt: skip


def public_objects():
    """Each public class, function and public method of our own, by its full name."""
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
WITH_EXAMPLES = [
    name for name in DOCUMENTED if ">>>" in (DOCUMENTED[name].__doc__ or "")
]


def documented_parameters(text):
    _, _, section = text.partition("Parameters\n----------\n")
    section = re.split(r"\n\n\w+\n---", section)[0]
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
    public = {name for name in OBJECTS if name.count(".") == 1}
    assert public - {*WITH_EXAMPLES} == {
        # What these hold or read, another example makes.
        "ensemble.InvariantForestClassifier", "ensemble.TimeRobustForestClassifier",
        "metrics.EraScores", "model_files.ModelFileError", "model_files.ModelMetadata",
        "model_files.load_model", "model_files.read_metadata", "model_files.save_model",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_in_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    for example in doctest.DocTestFinder(recurse=False).find(DOCUMENTED[name]):
        assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


def test_examples_of_numerai_run(tmp_path, monkeypatch):
    """Those of every module, where what the modules need is installed."""
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("numerapi")
    pytest.importorskip("pydantic")
    numerai = importlib.import_module("sklearn_era.numerai")
    n_examples = 0
    for found in pkgutil.walk_packages(numerai.__path__, "sklearn_era.numerai."):
        module = importlib.import_module(found.name)
        assert set(getattr(module, "__all__", [])) <= set(vars(module))
        results = doctest.testmod(module)
        assert results.failed == 0, found.name
        n_examples += results.attempted
    assert n_examples > 20
