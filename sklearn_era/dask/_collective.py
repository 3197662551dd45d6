"""Compute sums and maxima over the workers of a fit, by XGBoost's collective."""

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

# To reach the tracker, which listens before anyone connects; each retry waits longer.
_N_RETRIES = 1
# Seconds after the timeout for the collective to raise its own error.
_GRACE = 5
# By fit: its tracker, and an event that is set when the tracker has ended.
_trackers: dict[str, tuple[RabitTracker, threading.Event]] = {}


class ExchangeError(RuntimeError):
    """Another worker of the group is gone, or has not answered in time."""


class CollectiveExchange(Exchange):
    """Computes sums and maxima over the workers of a group."""

    is_alone = False

    def __init__(self) -> None:
        self.n_bytes = 0  # sent by this worker to be reduced
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
    """Start a tracker on this worker, and not on the client, as clients may leave.
    Return the tracker's address, in the form that `call_in_group` takes as `group`.
    """
    tracker = RabitTracker(
        n_workers=n_workers, host_ip=get_address_host(dask_worker.address),
        sortby="task", timeout=timeout,
    )  # fmt: skip
    tracker.start()
    ended = threading.Event()
    _trackers[fit_id] = tracker, ended

    def wait() -> None:
        with suppress(XGBoostError):  # nobody joined, or a member vanished
            tracker.wait_for()
        ended.set()
        _free(fit_id)

    threading.Thread(target=wait, daemon=True).start()
    return tracker.worker_args()


def stop_tracker(fit_id: str, timeout: int) -> None:
    """End the tracker once all members have left, or after `timeout` seconds."""

    def stop(ended: threading.Event) -> None:
        ended.wait(timeout)
        _free(fit_id)

    if (found := _trackers.get(fit_id)) is not None:
        threading.Thread(target=stop, args=found[1:], daemon=True).start()


def _free(fit_id: str) -> None:
    # By one thread only: the library does not check whether a tracker was freed.
    tracker, _ = _trackers.pop(fit_id, (None, None))
    if tracker is not None:
        with suppress(XGBoostError):
            tracker.free()


def call_in_group(
    group: dict[str, Any] | None, rank: int, timeout: int,
    function: Callable[[Exchange], None],
) -> None:  # fmt: skip
    """Call a function with the exchange of a group, or with `ALONE` if `group` is None.
    The function runs in a thread of its own, as XGBoost's collective is bound to a
    thread and may wait there forever.
    """
    if group is None:
        function(ALONE)
        return
    jobs: queue.SimpleQueue = queue.SimpleQueue()
    results: queue.SimpleQueue = queue.SimpleQueue()
    arguments = dict(group, dmlc_timeout=timeout, dmlc_retry=_N_RETRIES)
    # Ranks follow the order of ids as text.
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
        # In the context in which Dask finds its worker.
        context = contextvars.copy_context()
        jobs.put(lambda exchange: context.run(function, exchange))
        error = results.get()
    if error is not None:
        raise error


def _serve(
    arguments: dict[str, Any], jobs: queue.SimpleQueue, results: queue.SimpleQueue
) -> None:
    """Join a group, do one job, and leave; put an error or None into `results` twice:
    on joining, and after the job.
    """
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
        del job  # frees the rows
    with suppress(XGBoostError):  # others may have vanished
        collective.finalize()


def _reason(error: XGBoostError) -> str:
    """Return the reason of an error: its message's last line, without the trace."""
    lines = [line for line in str(error).splitlines() if line.startswith("- [")]
    return lines[-1].partition("]:")[2].strip() if lines else "the group broke up"
