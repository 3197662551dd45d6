"""Sums and maxima over the workers of a fit, by XGBoost's collective."""

import contextvars
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from distributed.comm import get_address_host
from numpy.typing import NDArray
from xgboost import collective
from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

from ..ensemble._exchange import ALONE, Exchange

# To reach the tracker, which listens before anyone asks: each waits longer.
_N_RETRIES = 1
# Seconds that the collective has to say itself that time is up.
_GRACE = 5
# Of fits, and what is set once a tracker has ended.
_trackers: dict[str, tuple[RabitTracker, threading.Event]] = {}


class ExchangeError(RuntimeError):
    """Another worker is gone, or has not answered in time."""


class CollectiveExchange(Exchange):
    """Sums and maxima over the workers that have joined a group."""

    is_alone = False

    def __init__(self) -> None:
        self.n_bytes = 0  # handed over by this one, to be summed up
        self.rank = collective.get_rank()
        self.n_processes = collective.get_world_size()

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        return self._reduce(values, collective.Op.SUM)

    def max(self, values: NDArray[Any]) -> NDArray[Any]:
        return self._reduce(values, collective.Op.MAX)

    def _reduce(self, values: NDArray[Any], op: collective.Op) -> NDArray[Any]:
        self.n_bytes += values.nbytes
        try:
            return collective.allreduce(values, op).reshape(values.shape)
        except XGBoostError as error:
            raise ExchangeError(_reason(error)) from error


def start_tracker(
    fit_id: str, n_workers: int, timeout: int, dask_worker: Any = None
) -> dict[str, Any]:
    """Let a group meet at this worker for `timeout` seconds, as the client may be gone,
    too; return what its members need to know.
    """
    tracker = RabitTracker(
        n_workers=n_workers,
        host_ip=get_address_host(dask_worker.address),
        sortby="task",
        timeout=timeout,
    )
    tracker.start()
    ended = threading.Event()
    _trackers[fit_id] = tracker, ended

    def wait() -> None:
        with suppress(XGBoostError):  # nobody has joined, or has left without a word
            tracker.wait_for()
        ended.set()
        _free(fit_id)

    threading.Thread(target=wait, daemon=True).start()
    return tracker.worker_args()


def stop_tracker(fit_id: str, timeout: int) -> None:
    """End what `start_tracker` began here once all members have left, or `timeout`
    seconds later if one was lost.
    """

    def stop(ended: threading.Event) -> None:
        ended.wait(timeout)
        _free(fit_id)

    if (found := _trackers.get(fit_id)) is not None:
        threading.Thread(target=stop, args=found[1:], daemon=True).start()


def _free(fit_id: str) -> None:
    # By one thread alone: the library has no check for a tracker that is gone.
    tracker, _ = _trackers.pop(fit_id, (None, None))
    if tracker is not None:
        with suppress(XGBoostError):
            tracker.free()


def call_in_group(
    group: dict[str, Any] | None,
    rank: int,
    timeout: int,
    function: Callable[[Exchange], None],
) -> None:
    """Call a function with what exchanges with a group; without one, alone. It has a
    thread of its own: XGBoost's collective belongs to the thread that has joined, and
    one that waits for others to join cannot be stopped.
    """
    if group is None:
        function(ALONE)
        return
    jobs: queue.SimpleQueue = queue.SimpleQueue()
    results: queue.SimpleQueue = queue.SimpleQueue()
    arguments = dict(group, dmlc_timeout=timeout, dmlc_retry=_N_RETRIES)
    # Ranks follow the ids, which sort as text.
    arguments["dmlc_task_id"] = f"{rank:08d}"
    threading.Thread(
        target=_serve, args=(arguments, jobs, results), daemon=True
    ).start()
    try:
        error = results.get(timeout=timeout + _GRACE)
    except queue.Empty:
        jobs.put(None)
        raise ExchangeError(f"others have not joined within {timeout} s") from None
    if error is None:
        # With the context in which Dask knows of its worker.
        context = contextvars.copy_context()
        jobs.put(lambda exchange: context.run(function, exchange))
        error = results.get()
    if error is not None:
        raise error


def _serve(
    arguments: dict[str, Any], jobs: queue.SimpleQueue, results: queue.SimpleQueue
) -> None:
    """Join a group, say so or why not, do one job, and leave."""
    try:
        collective.init(**arguments)
    except XGBoostError as error:
        results.put(ExchangeError(_reason(error)))
        return
    results.put(None)
    if (job := jobs.get()) is not None:
        try:
            job(CollectiveExchange())
            results.put(None)
        except BaseException as error:
            results.put(error)
        del job  # and with it the rows
    with suppress(XGBoostError):  # of others who left without saying so
        collective.finalize()


def _reason(error: XGBoostError) -> str:
    """What went wrong, of a message that traces it through the library."""
    lines = [line for line in str(error).splitlines() if line.startswith("- [")]
    return lines[-1].partition("]:")[2].strip() if lines else "the group broke up"
