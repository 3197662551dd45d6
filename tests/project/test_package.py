"""The package as a whole: its version, its docstrings, what importing it brings in."""

import doctest
import importlib.metadata
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn.ensemble

import sklearn_era
from sklearn_era import datasets, ensemble

ESTIMATORS = [
    ensemble.HistGradientBoostingClassifier,
    ensemble.HistGradientBoostingRegressor,
]
ROOT = Path(__file__).resolve().parents[2]


def run_python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_version():
    assert importlib.metadata.version("sklearn-era") == sklearn_era.__version__


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_docstring_lists_every_parameter_in_order(estimator):
    _, _, parameters = estimator.__doc__.partition("Parameters\n----------\n")
    parameters, _, _ = parameters.partition("\nAttributes\n")
    documented = re.findall(r"^(\w+) :", parameters, flags=re.MULTILINE)
    assert documented == list(inspect.signature(estimator).parameters)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_constructor_extends_upstream_s(estimator):
    stock = getattr(sklearn.ensemble, estimator.__name__)
    theirs = inspect.signature(stock).parameters
    ours = inspect.signature(estimator).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    for name, parameter in theirs.items():
        assert ours[name].default == parameter.default
        assert ours[name].kind == parameter.kind
    assert set(estimator._parameter_constraints) == set(ours)


@pytest.mark.parametrize(
    "documented",
    [*ESTIMATORS, datasets.make_synthetic_memorization],
    ids=lambda documented: documented.__name__,
)
def test_examples_in_docstrings(documented):
    (example,) = doctest.DocTestFinder(recurse=False).find(documented, globs={})
    assert example.examples
    results = doctest.DocTestRunner(verbose=False).run(example)
    assert results.failed == 0


def test_import_brings_in_no_optional_package(tmp_path):
    # scikit-learn itself imports some of them where they are installed.
    code = (
        "import sys, sklearn.ensemble, sklearn.datasets; before = set(sys.modules);"
        "import sklearn_era.ensemble, sklearn_era.datasets;"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    result = run_python(code, tmp_path)
    assert result.returncode == 0, result.stderr
    brought_in = set(result.stdout.split())
    assert "sklearn_era" in brought_in
    assert not brought_in & {
        "matplotlib",
        "pandas",
        "pyarrow",
        "rich",
        "skops",
        "typer",
    }


def test_source_folder_says_that_it_is_no_package(tmp_path):
    if "_sklearn_era_editable_loader" in sys.modules:
        pytest.skip("an editable install finds its package before the working folder")
    shutil.copytree(ROOT / "sklearn_era", tmp_path / "sklearn_era")
    result = run_python("import sklearn_era.ensemble", tmp_path)
    assert result.returncode == 1
    assert "this is the source folder of sklearn_era" in result.stderr
