"""Sums and maxima over the workers of a fit, by XGBoost's collective."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from distributed.comm import get_address_host
from numpy.typing import NDArray
from xgboost import collective
from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

from ..ensemble._exchange import ALONE, Exchange

# A process belongs to one group at a time.
_in_group = threading.Lock()
# To reach the tracker, which listens before anyone asks: each waits longer.
_N_RETRIES = 1
_trackers: dict[str, RabitTracker] = {}


class ExchangeError(RuntimeError):
    """Another worker is gone, or has not answered in time."""


class CollectiveExchange(Exchange):
    """Sums and maxima over the workers that have joined a group.

    `n_bytes` counts what this one has handed over to be summed up.
    """

    is_alone = False

    def __init__(self) -> None:
        self.n_bytes = 0

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
    """Let a group meet at this worker; returns what its members need to know.

    They have to join within `timeout` seconds. Dask passes the worker.
    """
    tracker = RabitTracker(
        n_workers=n_workers,
        host_ip=get_address_host(dask_worker.address),
        sortby="task",
        timeout=timeout,
    )
    tracker.start()
    _trackers[fit_id] = tracker
    return tracker.worker_args()


def stop_tracker(fit_id: str, timeout: int) -> None:
    """End what `start_tracker` began, if this worker did, once all members have left.

    Of a group that lost one, that is after `timeout` seconds; none of them waits.
    """
    if (tracker := _trackers.pop(fit_id, None)) is not None:
        threading.Thread(target=_stop, args=(tracker, timeout), daemon=True).start()


def _stop(tracker: RabitTracker, timeout: int) -> None:
    with suppress(XGBoostError):  # of a group that lost a member: nothing new
        tracker.wait_for(timeout)
    with suppress(XGBoostError):
        tracker.free()


@contextmanager
def join_group(
    group: dict[str, Any] | None, rank: int, timeout: int
) -> Iterator[Exchange]:
    """Exchange with a group in a ``with`` block; without one, alone.

    Raises
    ------
    ExchangeError
        If the others do not join within `timeout` seconds, or an earlier fit does not
        leave this process.
    """
    if group is None:
        yield ALONE
        return
    if not _in_group.acquire(timeout=timeout):
        raise ExchangeError(f"an earlier fit still runs after {timeout} s")
    try:
        try:
            # Ranks follow the ids, which sort as text.
            collective.init(
                **group,
                dmlc_task_id=f"{rank:08d}",
                dmlc_timeout=int(timeout),
                dmlc_retry=_N_RETRIES,
            )
        except XGBoostError as error:
            raise ExchangeError(_reason(error)) from error
        try:
            yield CollectiveExchange()
        finally:
            with suppress(XGBoostError):  # of others who left without saying so
                collective.finalize()
    finally:
        _in_group.release()


def _reason(error: XGBoostError) -> str:
    """What went wrong, of a message that traces it through the library."""
    lines = [line for line in str(error).splitlines() if line.startswith("- [")]
    return lines[-1].partition("]:")[2].strip() if lines else "the group broke up"


__all__ = [
    "CollectiveExchange",
    "ExchangeError",
    "join_group",
    "start_tracker",
    "stop_tracker",
]
