"""Leftovers of a fit on a cluster, however it ends: none that another waits for."""

import sys
import threading
import time

import pytest
from distributed import Client, Semaphore

from cluster.conftest import IGNORES_LEAKS
from cluster.test_faults import at_iteration, collections, model, run
from cluster.test_fit import make_rows
from sklearn_era.dask import DaskFitError, _cluster, _training
from sklearn_era.dask._cluster import Cluster
from sklearn_era.dask._collective import start_tracker

pytestmark = [pytest.mark.slow, IGNORES_LEAKS]


def fit(client):
    estimator = model(client, max_iter=2, timeout=60)
    return estimator.fit(**collections(make_rows(n_samples=600)))


def trackers(client):
    module = "sklearn_era.dask._collective"
    found = client.run(lambda: [*sys.modules[module]._trackers])
    return [fit_id for of_worker in found.values() for fit_id in of_worker]


def is_soon(condition):
    end = time.monotonic() + 20
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.1)
    return met


def test_the_tracker_of_a_fit_whose_tasks_are_not_sent(client, monkeypatch):
    send, seen = Cluster.send, []

    def fail_once_it_is_there(self, value):
        seen.extend(trackers(client))
        if seen:
            raise OSError("no way")
        return send(self, value)

    monkeypatch.setattr(Cluster, "send", fail_once_it_is_there)
    with pytest.raises(OSError, match="no way"):
        fit(client)
    assert len(seen) == 1
    assert is_soon(lambda: not trackers(client))


def test_the_tracker_of_a_client_that_is_gone(client):
    address = min(client.nthreads())
    client.run(start_tracker, "of a client", 2, 1, workers=[address])
    assert trackers(client) == ["of a client"]
    assert is_soon(lambda: not trackers(client))


def test_the_trackers_of_fits_that_end_well_or_not(client):
    fit(client)
    with pytest.raises(ZeroDivisionError):
        run(client, at_iteration(1, lambda: 1 / 0))
    assert is_soon(lambda: not trackers(client))


@pytest.fixture
def locks(monkeypatch):
    made = []

    class Noted(Semaphore):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            made.append(self)

    monkeypatch.setattr(_cluster, "Semaphore", Noted)
    return made


def lock_of(client):
    name, scheduler = "sklearn-era-fit", client.scheduler
    return Semaphore(name=name, scheduler_rpc=scheduler, loop=client.loop)


def test_the_lease_of_a_fit_that_is_interrupted(client, locks, monkeypatch):
    fit(client)
    with monkeypatch.context() as patch:

        def interrupt(self, timeout=None):
            assert Semaphore.acquire(self, timeout)
            raise KeyboardInterrupt

        patch.setattr(type(locks[0]), "acquire", interrupt, raising=False)
        with pytest.raises(KeyboardInterrupt):
            fit(client)
    assert lock_of(client).get_value() == 0
    fit(client)
    assert len(locks) == 3
    for lock in locks:
        assert is_soon(lambda lock=lock: not lock.refresh_callback.is_running())
        assert not lock.refresh_leases


def test_a_fit_in_a_callback_asks_for_no_lease(client, locks):
    nested = at_iteration(1, lambda: fit(client))
    with pytest.raises(DaskFitError, match="in a callback of another"):
        run(client, nested)
    assert (len(locks), lock_of(client).get_value()) == (1, 0)


@pytest.fixture
def held(client, monkeypatch):
    """The lease of a fit that another client is at."""
    monkeypatch.setattr(_cluster, "_GRACE", 0.5)
    with Client(client.scheduler.address, set_as_default=False) as other:
        lock = lock_of(other)
        lock.acquire()
        yield lock
        lock.refresh_callback.stop()


def test_a_fit_says_that_it_waits_for_another(client, held):
    threading.Timer(2, held.release).start()
    with pytest.warns(UserWarning, match="Another fit runs on this cluster") as caught:
        fit(client)
    assert len(caught) == 1


@pytest.mark.filterwarnings("ignore:Another fit runs")
def test_a_client_that_is_closed_as_it_waits(client, held):
    waiting = Client(client.scheduler.address, set_as_default=False)
    threading.Timer(2, waiting.close).start()
    with pytest.raises(DaskFitError, match="The client was closed"):
        fit(waiting)
    held.release()
    fit(client)


def test_messages_of_others_are_not_read(client, caplog):
    foreign = "text", [1], {"what": "begin"}, {"fit": "another", "what": "end"}
    log = client.log_event
    post = at_iteration(1, lambda: [log(_training.TOPIC, each) for each in foreign])
    assert run(client, post, max_iter=4).n_iter_ == 4
    assert "Error" not in caplog.text
