"""The package as a whole: its version, its signatures, what importing it brings in."""

import importlib.metadata
import inspect
import re
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
import sklearn.ensemble

import sklearn_era
from helpers.grids import slow
from sklearn_era import criteria, effects, ensemble

ROOT = Path(__file__).resolve().parents[2]


def run_python(code: str, folder: Path, returncode: int = 0) -> str:
    """Return what a process prints, on its error stream if it has to fail."""
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == returncode, result.stderr
    return result.stderr if returncode else result.stdout


def test_one_version():
    assert importlib.metadata.version("sklearn-era") == sklearn_era.__version__


def test_parameters_that_the_citations_name_are_taken():
    notes = re.findall(r"notes: (.*)", (ROOT / "CITATION.cff").read_text())
    named = [re.findall(r"(\w+)=(\S+)(?: and (\"\w+\"))?", note) for note in notes]
    for name, *values in chain(*named):
        for value in filter(None, values):
            value = eval(value, vars(criteria) | vars(effects))
            ensemble.HistGradientBoostingRegressor(**{name: value})._validate_params()
    assert sum(map(len, named)) >= 6


@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_constructor_extends_upstream_s(kind):
    estimator = getattr(ensemble, f"HistGradientBoosting{kind}")
    theirs, ours = (
        [(x.name, x.default, x.kind) for x in inspect.signature(c).parameters.values()]
        for c in (getattr(sklearn.ensemble, f"HistGradientBoosting{kind}"), estimator)
    )
    assert ours[: len(theirs)] == theirs
    assert set(estimator._parameter_constraints) == {name for name, *_ in ours}


@pytest.mark.slow
def test_import_brings_in_no_optional_package(tmp_path):
    # scikit-learn itself imports some of them where they are installed.
    code = (
        "import sys, sklearn.ensemble, sklearn.datasets; before = set(sys.modules);"
        "import sklearn_era.ensemble, sklearn_era.datasets;"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    brought_in = set(run_python(code, tmp_path).split())
    assert "sklearn_era" in brought_in
    optional = {"matplotlib", "networkx", "pandas", "pyarrow", "rich", "typer"}
    assert not brought_in & optional


@pytest.mark.parametrize("package", [slow("ensemble"), "rules"])
def test_the_openmp_runtime_is_loaded_before_what_needs_it(tmp_path, package):
    # Extensions link none: those of macOS and Windows find scikit-learn's, once loaded.
    code = f"import sys, sklearn_era.{package}; print(*sys.modules)"
    in_order = run_python(code, tmp_path).split()
    last = in_order.index("sklearn.utils._openmp_helpers")
    assert in_order.index("sklearn_era.ensemble._cyutility") > last
    assert in_order.index("sklearn_era.ensemble._binning.integer_bins") > last


def test_modules_are_attributes_once_asked_for(tmp_path):
    script = """
import sys, sklearn_era
assert not {"sklearn", "numpy"} & {*sys.modules}
names = [name for name in dir(sklearn_era) if name != "__version__"]
for name in names:
    try:
        assert getattr(sklearn_era, name) is sys.modules["sklearn_era." + name]
    except ImportError as error:  # of an extra
        print(name, file=sys.stderr)
try:
    sklearn_era.ensembel
except AttributeError as error:
    print(*names, error)
"""
    *names, last = run_python(script, tmp_path).split(" module ")
    public = {x.stem.removesuffix(".py") for x in (ROOT / "sklearn_era").iterdir()}
    public = {name for name in public if name[0].isalpha()} - {"cli", "py", "meson"}
    assert {*names[0].split()} == public
    assert last == "'sklearn_era' has no attribute 'ensembel'\n"


def test_a_clone_takes_its_modules_from_the_installed_package(tmp_path):
    shutil.copytree(ROOT / "sklearn_era", tmp_path / "sklearn_era")
    (tmp_path / "meson.build").touch()
    found = run_python("import sklearn_era.ensemble as e; print(e.__file__)", tmp_path)
    assert Path(found.strip()) == Path(ensemble.__file__)


@pytest.mark.slow
def test_a_clone_without_an_installed_package_says_so(tmp_path):
    shutil.copytree(ROOT / "sklearn_era", tmp_path / "sklearn_era")
    error = run_python("import sklearn_era.ensemble", tmp_path, returncode=1)
    assert "the source folder of sklearn_era, and it is not inst" in error


@pytest.mark.slow
def test_a_program_of_pyinstaller_predicts(tmp_path):
    """The hook comes with the package, which has to be installed, and not editable."""
    pytest.importorskip("PyInstaller")
    if "site-packages" not in ensemble.__file__:
        pytest.skip("PyInstaller finds no editable package")
    (tmp_path / "program.py").write_text("""
import numpy as np
from sklearn_era.ensemble import HistGradientBoostingRegressor
X = np.arange(200.0).reshape(-1, 1)
model = HistGradientBoostingRegressor(split_criterion="era", max_iter=100)
print(model.fit(X, X[:, 0], eras=np.arange(200) % 4).predict([[3.0], [190.0]]).round())
""")
    build = [sys.executable, "-m", "PyInstaller", "--log-level=ERROR", "program.py"]
    subprocess.run(build, cwd=tmp_path, check=True)
    program = tmp_path / "dist/program/program"
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    low, high = map(float, done.stdout.strip("[]\n").split())
    assert low < 30 < 170 < high


def test_help_prints_types_as_they_are_written():
    """`ArrayLike`, and not the 300 characters that it stands for."""
    for name in dir(sklearn_era)[1:]:
        module = getattr(sklearn_era, name)
        for public in map(vars(module).get, module.__all__):
            members = vars(public).values() if inspect.isclass(public) else ()
            for function in filter(inspect.isfunction, (public, *members)):
                assert "numpy._typing" not in str(inspect.signature(function)), function
