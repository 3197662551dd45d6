"""The package as a whole: its version, its signatures, what importing it brings in."""

import importlib.metadata
import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn.ensemble

import sklearn_era
from sklearn_era import ensemble

ROOT = Path(__file__).resolve().parents[2]


def run_python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_one_version():
    assert importlib.metadata.version("sklearn-era") == sklearn_era.__version__


@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_constructor_extends_upstream_s(kind):
    estimator, stock = (
        getattr(module, f"HistGradientBoosting{kind}")
        for module in (ensemble, sklearn.ensemble)
    )
    theirs = inspect.signature(stock).parameters
    ours = inspect.signature(estimator).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    for name, parameter in theirs.items():
        assert ours[name].default == parameter.default
        assert ours[name].kind == parameter.kind
    assert set(estimator._parameter_constraints) == set(ours)


def test_scores_data_and_environments_load_no_kernel(tmp_path):
    code = (
        "import sys, sklearn_era.metrics, sklearn_era.datasets, "
        "sklearn_era.environments, sklearn_era.model_selection;"
        "print(*(name for name in sys.modules if name.startswith('sklearn_era.ens')))"
    )
    result = run_python(code, tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == ""


@pytest.mark.slow
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
    optional = {"matplotlib", "networkx", "pandas", "pyarrow", "rich", "typer"}
    assert not brought_in & optional


@pytest.mark.parametrize("package", ["ensemble", "rules"])
def test_the_openmp_runtime_is_loaded_before_what_needs_it(tmp_path, package):
    # Extensions link none: those of macOS and Windows find scikit-learn's, once loaded.
    code = f"import sys, sklearn_era.{package}; print(*sys.modules)"
    result = run_python(code, tmp_path)
    assert result.returncode == 0, result.stderr
    in_order = result.stdout.split()
    last = in_order.index("sklearn.utils._openmp_helpers")
    assert in_order.index("sklearn_era.ensemble._cyutility") > last
    assert in_order.index("sklearn_era.ensemble._binning.codes") > last


def test_a_clone_takes_its_modules_from_the_installed_package(tmp_path):
    shutil.copytree(ROOT / "sklearn_era", tmp_path / "sklearn_era")
    (tmp_path / "meson.build").touch()
    result = run_python("import sklearn_era.ensemble as e; print(e.__file__)", tmp_path)
    assert result.returncode == 0, result.stderr
    assert Path(result.stdout.strip()) == Path(ensemble.__file__)


@pytest.mark.slow
def test_a_clone_without_an_installed_package_says_so(tmp_path):
    shutil.copytree(ROOT / "sklearn_era", tmp_path / "sklearn_era")
    result = run_python("import sklearn_era.ensemble", tmp_path)
    assert result.returncode == 1
    assert "the source folder of sklearn_era, and it is not inst" in result.stderr
