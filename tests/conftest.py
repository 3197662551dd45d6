"""One OpenMP thread: the data are so small that two would mostly wait for each other.

Tests about threads set their own number.
"""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    import sklearn_era.ensemble  # noqa: F401  (libraries are limited once loaded)

    with threadpool_limits(1, user_api="openmp"):
        yield
