"""Faults end a fit on a cluster: one error names the place, the next fit is right."""

import os
import signal

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client

from cluster.conftest import IGNORES_LEAKS, make_client
from cluster.test_fit import assert_same, by_era, make_rows, pair
from helpers.callbacks import Hook
from sklearn_era.dask import DaskFitError, DaskHistGradientBoostingRegressor

pytestmark = [
    pytest.mark.slow,
    IGNORES_LEAKS,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]
TIMEOUT = 3


def at_iteration(n, function):
    """A callback that calls a function once so many iterations have ended."""

    def call(estimator):
        if hook.ended.count("iteration") == n:
            function()

    hook = Hook(call)
    return hook


def model(client, **params):
    params = {"max_iter": 30, "split_criterion": "era", "random_state": 0,
              "timeout": TIMEOUT} | params  # fmt: skip
    return DaskHistGradientBoostingRegressor(**params, client=client)


def run(client, callback, **params):
    estimator = model(client, **params).set_callbacks(callback)
    return estimator.fit(**collections(make_rows()))


def collections(data):
    X, y, eras = data
    dX, dy, labels = by_era(eras, X, y, eras)
    return {"X": dX, "y": dy, "eras": labels}


def assert_next_fit_is_right(client, n_workers=2):
    client.wait_for_workers(n_workers, timeout=60)
    assert_same(*pair(client, make_rows(n_samples=600), split_criterion="era"))


def some_worker(client, i=1):
    client.wait_for_workers(2, timeout=60)
    address = sorted(client.nthreads())[i]
    return address, client.run(os.getpid, workers=[address])[address]


@pytest.mark.parametrize("i", [0, 1])
def test_killed_worker(client, i):
    address, pid = some_worker(client, i)
    kill = at_iteration(3, lambda: os.kill(pid, signal.SIGKILL))
    # The scheduler misses it by its connection, however busy the machine is.
    killed = model(client, warm_start=True, timeout=60).set_callbacks(kill)
    data = make_rows(n_samples=600)
    with pytest.raises(DaskFitError, match=f"{address} is gone"):
        killed.fit(**collections(data))
    assert_next_fit_is_right(client)
    # Trees that were whole are not fitted again.
    assert 3 <= killed.n_iter_ < 30
    n_iter = killed.n_iter_
    killed.set_params(max_iter=n_iter + 2).fit(**collections(data))
    params = {"max_iter": n_iter + 2, "max_leaf_nodes": 31}
    assert_same(killed, pair(client, data, split_criterion="era", **params)[1])


def test_worker_killed_before_a_fit(client):
    address, pid = some_worker(client)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(DaskFitError, match=f"{address} is gone"):
        model(client).fit(**collections(make_rows(n_samples=600)))
    assert_next_fit_is_right(client)


def test_worker_that_hangs(client):
    address, pid = some_worker(client)
    stop = at_iteration(2, lambda: os.kill(pid, signal.SIGSTOP))
    try:
        with pytest.raises(DaskFitError, match=f"{address} does not answer"):
            run(client, stop)
        with pytest.raises(DaskFitError, match=f"{address} does not answer"):
            model(client).fit(**collections(make_rows()))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert_next_fit_is_right(client)


def test_partition_that_fails_to_load(client):
    given = collections(make_rows())

    def fail(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 4:
            raise OSError("no such disk")
        return block

    given["X"] = given["X"].map_blocks(fail, dtype=np.int8)
    with pytest.raises(DaskFitError, match=r"Partition 4 of X: no such disk"):
        model(client).fit(**given)
    assert_next_fit_is_right(client)


def test_partition_with_missing_target(client):
    X, y, eras = make_rows()
    y[eras == 7] = np.nan
    with pytest.raises(ValueError, match=r"Partition 7 of X: y has missing"):
        model(client).fit(**collections((X, y, eras)))
    assert_next_fit_is_right(client)


def test_era_in_two_partitions(client):
    X, y, eras = make_rows()
    dX, dy, labels = by_era(np.arange(y.size) // 500, X, y, eras)
    with pytest.raises(ValueError, match=r"Era \d+ has rows in partitions 0, 1 of X"):
        model(client, shuffle=False).fit(dX, dy, eras=labels)
    assert_next_fit_is_right(client)


def test_client_that_is_closed(client):
    # After so long, what the closed client held is free for others.
    leases = {"lease-timeout": "2s", "lease-validation-interval": "500ms"}
    config = dask.config.set({"distributed.scheduler.locks": leases})
    with config, make_client(2) as one:
        other = Client(one.scheduler.address, set_as_default=False)
        close = at_iteration(2, other.close)
        with pytest.raises(DaskFitError, match="The client was closed"):
            run(other, close)
        assert_next_fit_is_right(one)


def test_fewer_eras_than_workers(client):
    data = make_rows(n_eras=1)
    uses = "The fit uses 1 of 2 workers, as there are no"
    with pytest.warns(match=uses), pytest.warns(match="single era"):
        assert_same(*pair(client, data, split_criterion="era"))
    assert_next_fit_is_right(client)


def test_empty_partition(client):
    data = make_rows()
    _, y, eras = data
    sizes = (0, *np.unique(eras, return_counts=True)[1])
    dX, dy, labels = (da.from_array(a, (sizes, -1)[: a.ndim]) for a in data)
    options = {"collections": (dX, dy, None, labels), "split_criterion": "era"}
    with pytest.warns(UserWarning, match="Partition 0 of X has no rows"):
        fitted, local = pair(client, data, **options)
    assert_same(fitted, local)
    assert fitted.predict(dX).shape == y.shape
    assert client.compute(fitted.predict(dX)).result().shape == y.shape


def frame_of(X, text_in, name="c0"):
    frame = pd.DataFrame(X).add_prefix("c")
    parts = [frame.iloc[i : i + 500] for i in range(0, len(frame), 500)]
    parts[text_in] = parts[text_in].assign(**{name: "text"})
    return dd.from_map(lambda i: parts[i], range(len(parts)), meta=frame.iloc[:0])


def test_types_that_differ(client):
    X, y, _ = make_rows()
    estimator, dy = model(client, split_criterion="gain"), da.from_array(y, 500)
    with pytest.raises(ValueError, match="'c0' of X holds text in partition 2"):
        estimator.fit(frame_of(X, text_in=2), dy)
    with pytest.raises(ValueError, match="Partition 1 of X has other columns"):
        estimator.fit(frame_of(X, text_in=1, name="more"), dy)
    assert_next_fit_is_right(client)


@pytest.mark.parametrize(("params", "message"), [
    ({"loss": "absolute_error"}, "quantiles of each leaf"),
    ({"scoring": "r2"}, "scoring='r2' needs the predictions"),
    ({"timeout": 0}, "The 'timeout' parameter"),
    ({"monotonic_cst": [1, 2]}, "monotonic_cst must be"),
    ({"era_weighting": "equal", "eras": None}, "needs eras"),
])  # fmt: skip
def test_parameters(client, params, message):
    given = collections(make_rows())
    given |= {name: params.pop(name) for name in ("eras",) if name in params}
    estimator = model(client).set_params(**params)
    with pytest.raises(ValueError, match=message):
        estimator.fit(**given)


def test_arguments(client):
    X, y, eras = make_rows()
    given = collections((X, y, eras))
    with pytest.raises(TypeError, match="X is a ndarray, and has to be a Dask array"):
        model(client).fit(X, y, eras=eras)
    with pytest.raises(ValueError, match=r"y has 1 partition\(s\), but X has 12"):
        model(client).fit(given["X"], dd.from_pandas(pd.Series(y), npartitions=1))
    with pytest.raises(ValueError, match="There is no Dask client"):
        model(None).fit(**given)
    fitted = model(client).fit(**given)
    with pytest.raises(TypeError, match="to_local"):
        fitted.predict(X)
    with pytest.raises(TypeError, match="no staged predictions"):
        fitted.staged_predict(X)


def test_fit_in_a_task_would_wait_for_itself(client):
    given, estimator = collections(make_rows()), model(None)
    # Without a function of this module, which workers do not find.
    task = client.submit(lambda: estimator.fit(**given))
    with pytest.raises(ValueError, match="fit is called in a task of Dask"):
        task.result(timeout=30)
    assert_next_fit_is_right(client)
