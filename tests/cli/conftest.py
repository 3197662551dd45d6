"""The folder and the tables of the program's tests."""

import pytest

# Fixtures import the packages that not all of the suite needs: pytest reads this file
# even where the folder's tests are left out.


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Every test runs in a folder of its own, and names files without a path."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def frame():
    from helpers.cli import make_frame

    return make_frame()


@pytest.fixture(scope="session")
def features(frame):
    from helpers.cli import make_features

    return make_features(frame)


@pytest.fixture
def small(empty_folder):
    """A small table, which is in ``d.csv``, and a model of it in ``m.era``."""
    from helpers.cli import make_small_folder

    return make_small_folder(empty_folder)
