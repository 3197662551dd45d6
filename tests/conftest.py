"""How the suite runs: its tiers, its random examples, its threads, what it leaves out.

Plain ``pytest`` runs the default tier: the same tests on the same examples every time.
``--slow`` adds the tests marked ``slow`` and draws more examples, other ones each time.
"""

import os

# Threads that spin while they wait take minutes where cores are few or busy. An OpenMP
# runtime reads this when it is loaded, so it has to come before any import of one.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import functools
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from helpers import grids

TESTS = Path(__file__).parent

# The package is tested without these too: what needs them is left out.
CLUSTER = {"dask", "distributed", "xgboost"}
OPTIONAL = CLUSTER | {
    "dotenv", "filelock", "lightgbm", "matplotlib", "numerai_tools", "pandas", "polars",
    "pyarrow", "pydantic", "requests", "rich", "typer",
}  # fmt: skip
# The packages that tests of these folders need.
NEEDS = {
    "cli": OPTIONAL
    - CLUSTER
    - {"dotenv", "filelock", "lightgbm", "numerai_tools", "pydantic", "requests"},
    "cluster": CLUSTER | {"pandas", "pyarrow"},
    "numerai": OPTIONAL - CLUSTER,
    "project/experiments": {"matplotlib", "pandas"},
}

settings.register_profile(
    "default", max_examples=30, deadline=None, database=None, derandomize=True
)
settings.register_profile(
    "slow", max_examples=500, deadline=None, database=None, derandomize=False,
    print_blob=True,
)  # fmt: skip


def pytest_addoption(parser):
    group = parser.getgroup("sklearn_era")
    group.addoption(
        "--slow",
        action="store_true",
        help="run the slow tests too, and ten times as many random examples",
    )
    group.addoption(
        "--examples",
        type=int,
        metavar="N",
        help="how many random examples to draw for a test, in place of 30, or of 500 "
        "with --slow",
    )
    group.addoption(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder of the experiments' data files, which `python -m experiments "
        "list` names with their sources; tests that read them are skipped without it",
    )


def pytest_configure(config):
    profile = settings.get_profile("slow" if config.option.slow else "default")
    n_examples = config.option.examples or profile.max_examples
    settings.register_profile("chosen", profile, max_examples=n_examples)
    settings.load_profile("chosen")
    grids.with_slow = config.option.slow


@functools.cache
def lacking(file: Path) -> frozenset[str]:
    """Packages that are not here, of those that a file needs by folder or imports."""
    names: set[str] = set()
    for folder, needed in NEEDS.items():
        names |= needed if TESTS / folder in file.parents else set()
    conftest = file.with_name("conftest.py")
    if conftest.exists() and conftest not in (file, TESTS / "conftest.py"):
        names |= lacking(conftest)
    imports = re.findall(r"^(?:from|import) ([\w.]+)", file.read_text(), re.MULTILINE)
    for module in imports:
        names |= {module.partition(".")[0]} & OPTIONAL
        ours = (TESTS / module.replace(".", "/")).with_suffix(".py")
        names |= lacking(ours) if ours.is_file() else set()
    return frozenset(name for name in names if find_spec(name) is None)


def pytest_ignore_collect(collection_path):
    """Leave out a file whose packages are not installed; the summary lists it."""
    if collection_path.is_dir():
        file = collection_path / "conftest.py"
        is_part = file.exists() and collection_path != TESTS
    else:
        file = collection_path
        is_part = file.suffix == ".py" and file.name != "conftest.py"
    return True if is_part and lacking(file) else None


def pytest_collection_modifyitems(config, items):
    if config.option.slow:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)


def pytest_terminal_summary(terminalreporter, config):
    if not config.option.slow:
        terminalreporter.write_line("Left out: slow tests, which --slow runs")
    left_out = [names for f in TESTS.rglob("test_*.py") if (names := lacking(f))]
    if left_out:
        terminalreporter.write_line(
            f"Left out: {len(left_out)} files of tests, for want of "
            f"{', '.join(sorted(frozenset.union(*left_out)))}: pip install '.[test]'"
        )


@pytest.fixture(scope="session")
def data_folder(pytestconfig) -> Path:
    """The folder that --data names."""
    if pytestconfig.option.data is None:
        pytest.skip("reads a public data file: give --data=DIR")
    return pytestconfig.option.data


@pytest.fixture(autouse=True)
def seed():
    """Have an estimator without a ``random_state`` draw the same numbers every time."""
    np.random.seed(0)  # noqa: NPY002 - that is what an unseeded estimator draws from


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Two threads would mostly wait for each other; tests of threads set a number, and
    get it however busy the machine is.
    """
    # Threads are limited of libraries that are loaded.
    from threadpoolctl import threadpool_limits

    import sklearn_era.ensemble  # noqa: F401

    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        patch.setenv("OMP_DYNAMIC", "false")
        yield
