"""How the suite runs: its tiers, its random examples, its threads, what it leaves out.

Plain ``pytest`` runs the default tier: the same tests on the same examples every time.
``--slow`` adds the tests marked ``slow`` and draws more examples, other ones each time.
"""

import os

# Threads that spin while they wait take minutes where cores are few or busy. An OpenMP
# runtime reads this when it is loaded, so it has to come before any import of one.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent

# Folders whose tests need more than the package itself, which is tested without it.
NEEDS = {
    "cli": ("matplotlib", "pandas", "pyarrow", "rich", "skops", "typer"),
    "numerai": (
        "dotenv", "lightgbm", "matplotlib", "numerai_tools", "numerapi", "pandas",
        "pyarrow", "pydantic", "skops", "typer",
    ),
    "project/experiments": ("matplotlib", "pandas"),
}  # fmt: skip

settings.register_profile(
    "default", max_examples=50, deadline=None, database=None, derandomize=True
)
settings.register_profile(
    "slow", max_examples=500, deadline=None, database=None, print_blob=True
)

N_SLOW = pytest.StashKey[int]()


def pytest_addoption(parser):
    group = parser.getgroup("sklearn_era")
    group.addoption(
        "--slow",
        action="store_true",
        help="run the slow tests too, and ten times as many random examples",
    )
    group.addoption(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder of the experiments' data files, which `python -m experiments "
        "list` names with their sources; tests that read them are skipped without it",
    )


def pytest_configure(config):
    settings.load_profile("slow" if config.option.slow else "default")
    config.stash[N_SLOW] = 0


def lacking(folder: str) -> list[str]:
    return [name for name in NEEDS[folder] if find_spec(name) is None]


def pytest_ignore_collect(collection_path):
    """Leave out a folder whose packages are not installed; the summary says so."""
    folder = collection_path.relative_to(TESTS.parent).as_posix()
    folder = folder.removeprefix("tests/")
    return True if folder in NEEDS and lacking(folder) else None


def pytest_collection_modifyitems(config, items):
    if config.option.slow:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        config.stash[N_SLOW] = len(slow)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # a worker of pytest-xdist
        session.config.workeroutput["n_slow"] = session.config.stash[N_SLOW]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Every worker collects every test: the number of one is that of all."""
    n_slow = getattr(node, "workeroutput", {}).get("n_slow", 0)
    node.config.stash[N_SLOW] = max(node.config.stash[N_SLOW], n_slow)


def pytest_terminal_summary(terminalreporter, config):
    if n_slow := config.stash[N_SLOW]:
        terminalreporter.write_line(f"Left out: {n_slow} slow tests, which --slow runs")
    for folder in NEEDS:
        if names := lacking(folder):
            n_files = len(list((TESTS / folder).rglob("test_*.py")))
            terminalreporter.write_line(
                f"Left out: the {n_files} files of tests/{folder}, which need "
                f"{', '.join(names)}: pip install '.[test]'"
            )


@pytest.fixture(scope="session")
def data_folder(pytestconfig) -> Path:
    """The folder that --data names."""
    if pytestconfig.option.data is None:
        pytest.skip("reads a public data file: give --data DIR")
    return pytestconfig.option.data


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """The data are so small that two threads would mostly wait for each other.

    Tests about threads set their own number.
    """
    # Threads are limited of libraries that are loaded.
    from threadpoolctl import threadpool_limits

    import sklearn_era.ensemble  # noqa: F401

    with threadpool_limits(1, user_api="openmp"):
        yield
