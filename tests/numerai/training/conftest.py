"""The eras that the tests train on, in memory and as a file."""

import pytest

from helpers.numerai.training import make_frame, write_frame


@pytest.fixture(scope="session")
def frame():
    return make_frame()


@pytest.fixture(scope="session")
def path(frame, tmp_path_factory):
    return write_frame(frame, tmp_path_factory.mktemp("data") / "train_7.parquet")
