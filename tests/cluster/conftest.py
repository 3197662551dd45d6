"""Clusters of real processes: each test file that uses one has it to its end."""

import contextlib
import importlib
import logging

import pytest
from distributed import Client, LocalCluster

# Dask leaves sockets to the garbage collector.
IGNORES_LEAKS = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@contextlib.contextmanager
def make_client(n_workers):
    """The client of so many processes with a thread each, which end with the block."""
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    options |= {"n_workers": n_workers, "silence_logs": logging.CRITICAL}
    with (
        LocalCluster(**options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        # It takes a busy machine seconds, which would count as silence of a worker.
        client.run(importlib.import_module, "sklearn_era.dask")
        yield client


@pytest.fixture(scope="module")
def client():
    with make_client(2) as client:
        yield client


@pytest.fixture(scope="module", params=[1, 2, 4])
def any_client(request):
    with make_client(request.param) as client:
        yield client
