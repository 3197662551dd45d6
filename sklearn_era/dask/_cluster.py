"""Watch the workers of a client, and gather their results and messages in a fit."""

import asyncio
import queue
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import dask
from distributed import Client, Future, Semaphore

from .._warnings import warn_user
from ._training import TOPIC, Outcome

# Whether this thread is in a fit.
_thread = threading.local()
# Identifies a worker's process: containers may share host names and process ids.
_PROCESS = uuid.uuid4().hex
# Seconds between two checks for lost workers, and for a worker to report the cause of a
# broken group after another one has noticed it.
_LOOK_EVERY = 1.0
_GRACE = 5.0


class DaskFitError(RuntimeError):
    """A fit has ended because of a failure of its workers."""


class Cluster:
    """The workers that a client has when a fit begins, with methods to call them."""

    def __init__(self, client: Client, timeout: int):
        self.client = client
        self.timeout = timeout  # seconds for a worker to answer
        self.addresses: list[str] = []
        # The scheduler's last contact with each worker, and when this changed.
        self._last_seen: dict[str, tuple[float, float]] = {}

    def _answering(self) -> list[str]:
        """Return all workers' addresses; raise DaskFitError if there is none, one is
        lost or does not answer, or several share a process.
        """
        addresses = sorted(self.client.nthreads())
        if not addresses:
            raise DaskFitError("The cluster has no worker: scale it up, and fit again.")
        answers = self.ask(addresses, self.timeout)
        if silent := [address for address in addresses if address not in answers]:
            self.addresses = addresses
            self._check_there(silent)
            raise self._silent(silent)
        if (n_workers := max(Counter(answers.values()).values())) > 1:
            raise DaskFitError(
                f"{n_workers} workers share a process, and a fit needs one each: start "
                "them with processes=True."
            )
        return addresses

    def ask(self, addresses: Sequence[str], timeout: float) -> dict[str, Any]:
        """Return the process id (random text) of each worker that answers in time."""

        async def ask_all() -> dict[str, Any]:
            run = partial(self.client._run, _process, on_error="ignore")
            asked = [asyncio.ensure_future(run(workers=[each])) for each in addresses]
            done, pending = await asyncio.wait(asked, timeout=timeout)
            for question in pending:
                question.cancel()
            answers: dict[str, Any] = {}
            for question in done:
                if question.exception() is None:
                    answers |= question.result()
            return answers

        return self.client.sync(ask_all)

    def gather(
        self, futures: Sequence[Future],
        blame: Callable[[int, BaseException], Exception] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Wait for futures, and return their results; ``blame(i, error)`` makes the
        error to raise if future i fails.
        """
        try:
            self.wait(futures)
        except Exception:
            failed = [i for i, each in enumerate(futures) if each.status == "error"]
            if blame is not None and failed:
                error = futures[failed[0]].exception()
                raise blame(failed[0], error) from error
            raise
        return self._results(futures)

    def send(self, value: object) -> Future:
        """Put a value on a worker, for other workers to copy, and return its future."""
        with dask.config.set(
            {"distributed.admin.large-graph-warning-threshold": "1GB"}
        ):
            return self.client.submit(_identity, value, pure=False)

    def _results(self, futures: Sequence[Future]) -> list[Any]:
        """Return results of finished futures; raise DaskFitError if a worker hangs."""

        async def gather() -> list[Any]:
            results = self.client.gather(list(futures), asynchronous=True)
            return await asyncio.wait_for(results, self.timeout)

        try:
            return self.client.sync(gather)
        except (asyncio.CancelledError, RuntimeError):
            self._check_open()
            raise
        except TimeoutError:
            answers = self.ask(self.addresses, _GRACE)
            silent = [each for each in self.addresses if each not in answers]
            raise self._silent(silent or self.addresses) from None

    def wait(self, futures: Sequence[Future], workers: Sequence[str] = ()) -> None:
        """Wait for futures, and leave their results on the workers."""
        for future in self._as_done(futures, workers):
            if future.status != "finished":
                raise future.exception()

    def holders(self, futures: Sequence[Future]) -> list[str]:
        """Return for each future the address of a worker that holds its result, or ""
        while the result is in transit.
        """
        holders = self.client.who_has(list(futures))
        return [min(holders.get(each.key, ()), default="") for each in futures]

    def run_on(self, address: str, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function on a worker whose tasks go on meanwhile; return the result."""
        try:
            run, workers = self.client._run, [address]
            return self.client.sync(
                run, function, *args, workers=workers, callback_timeout=self.timeout
            )[address]
        except TimeoutError:
            raise self._silent([address]) from None
        except (OSError, RuntimeError) as error:
            self._check_there([address])
            if isinstance(error, OSError):  # the scheduler has not noticed yet
                raise self._gone([address]) from error
            raise

    def post(self, address: str, function: Callable[..., Any], *args: Any) -> None:
        """Start a function on a worker while the worker's tasks go on. Do not wait for
        the function, and ignore its errors.
        """

        async def run() -> None:
            with suppress(OSError):  # the scheduler is gone
                await self.client._run(
                    function, *args, workers=[address], on_error="ignore"
                )

        if self.client.status == "running":
            self.client.loop.add_callback(run)

    def gather_outcomes(
        self, futures: Mapping[str, Future], handle: Callable[[dict[str, Any]], None],
        messages: queue.SimpleQueue,
    ) -> list[Outcome]:  # fmt: skip
        """Wait for the outcomes of all workers, and return them; call `handle` for each
        message. Raise a worker's error, or DaskFitError if a worker is lost.
        """
        outcomes: dict[str, Outcome] = {}
        names = {future.key: address for address, future in futures.items()}
        deadline = float("inf")
        done = self._as_done(
            list(futures.values()), list(futures), messages, until=lambda: deadline
        )
        for event in done:
            if not isinstance(event, Future):
                handle(event)
                continue
            address = names[event.key]
            if event.status != "finished":
                error = event.exception()
                raise DaskFitError(f"Worker {address} has failed: {error}") from error
            (outcome,) = self._results([event])
            outcomes[address] = outcome
            if outcome.error is not None and not outcome.is_secondary:
                outcome.error.add_note(f"On worker {address}.")
                raise outcome.error
            if outcome.error is not None:
                deadline = min(deadline, time.monotonic() + _GRACE)
        errors = [x.error for x in outcomes.values() if x.error is not None]
        if errors:
            self._check_there(list(futures))
            if silent := [address for address in futures if address not in outcomes]:
                raise self._silent(silent)
            raise DaskFitError(f"The workers lost each other: {errors[0]}.")
        return [outcomes[address] for address in futures]

    def _gone(self, addresses: Sequence[str]) -> DaskFitError:
        return DaskFitError(
            f"Worker {', '.join(addresses)} is gone, and its rows with it; see its log "
            "for the reason (out of memory, for one), and fit again. With "
            "warm_start=True the fit goes on after the last whole iteration."
        )

    def _silent(self, addresses: Sequence[str]) -> DaskFitError:
        return DaskFitError(
            f"Worker {', '.join(addresses)} does not answer (timeout={self.timeout} "
            "s): restart or close it if it hangs, else set a longer timeout, and fit "
            "again."
        )

    def _as_done(
        self, futures: Sequence[Future], workers: Sequence[str],
        events: queue.SimpleQueue | None = None,
        until: Callable[[], float] = lambda: float("inf"),
    ) -> Iterator[Any]:  # fmt: skip
        """Yield futures when they finish, and messages when they come; end at the time
        ``until()``. Raise DaskFitError if a worker is lost.
        """
        events = queue.SimpleQueue() if events is None else events
        for future in futures:
            future.add_done_callback(events.put)
        n_pending = len(futures)
        next_look = 0.0
        while n_pending:
            now = time.monotonic()
            if now >= until():
                return
            if now >= next_look:
                self._check_there(workers)
                next_look = now + _LOOK_EVERY
            try:
                event = events.get(timeout=min(_LOOK_EVERY, max(0.0, until() - now)))
            except queue.Empty:
                continue
            if isinstance(event, Future):
                n_pending -= 1
                if event.cancelled():
                    self._check_there(workers)
                    raise DaskFitError(
                        "The fit was cancelled, as its tasks were; fit again."
                    )
            yield event
        while not events.empty():
            yield events.get()

    def _check_open(self) -> None:
        if self.client.status != "running":
            raise DaskFitError(
                "The client was closed, and the fit has ended with it; fit again with "
                "another client."
            )

    def _check_there(self, workers: Sequence[str]) -> None:
        """Raise DaskFitError if the client is closed, or any worker is lost."""
        self._check_open()
        try:
            # `scheduler_info` may return stale information on a few workers.
            identity = self.client.scheduler.identity
            present = self.client.sync(identity, n_workers=-1)["workers"]
        except Exception as error:
            self._check_open()
            raise DaskFitError(
                "The scheduler does not answer any more; fit again with another client."
            ) from error
        gone = [address for address in workers if address not in present]
        if gone or not present.keys() & set(self.addresses):
            raise self._gone(gone or self.addresses)
        now, silent = time.monotonic(), []
        for address in present.keys() & set(self.addresses):
            # The scheduler's clock may differ: compare its times only with each other.
            last_seen = present[address]["last_seen"]
            if self._last_seen.get(address, (None, 0.0))[0] != last_seen:
                self._last_seen[address] = last_seen, now
            elif now - self._last_seen[address][1] > self.timeout:
                silent.append(address)
        if silent:
            raise self._silent(sorted(silent))

    @contextmanager
    def only_fit(self) -> Iterator[None]:
        """Hold the cluster's lock in the ``with`` block, as two fits at the same time
        would each wait for workers that the other one occupies. Raise DaskFitError if
        a callback of another fit calls it.
        """
        if getattr(_thread, "is_fitting", False):
            raise DaskFitError("A fit cannot begin in a callback of another.")
        scheduler, loop = self.client.scheduler, self.client.loop
        lock = Semaphore(name="sklearn-era-fit", scheduler_rpc=scheduler, loop=loop)
        _thread.is_fitting = True
        try:
            self._acquire(lock)
            # After the wait, during which workers may have changed.
            self.addresses = self._answering()
            yield
        finally:
            _thread.is_fitting = False
            # A lease granted without our knowledge must expire.
            lock.refresh_leases = False
            if self.client.status == "running":
                # It would run for the lifetime of the client.
                if (refresh := getattr(lock, "refresh_callback", None)) is not None:
                    self.client.loop.add_callback(refresh.stop)
                with suppress(RuntimeError):  # there is no lease to release
                    lock.release()

    def _acquire(self, lock: Semaphore) -> None:
        """Wait until no other fit runs on the cluster; warn if that takes long."""
        try:
            # In short waits: the scheduler keeps an interrupted one until its timeout.
            if not lock.acquire(timeout=_GRACE):
                warn_user("Another fit runs on this cluster: this one waits for it.")
                while not lock.acquire(timeout=_GRACE):
                    pass
        except (OSError, RuntimeError, asyncio.CancelledError):
            self._check_open()
            raise

    @contextmanager
    def messages(self, fit_id: str) -> Iterator[queue.SimpleQueue]:
        """Yield a queue, which receives the messages of a fit's workers."""
        received: queue.SimpleQueue = queue.SimpleQueue()

        def handle(event: tuple[float, dict[str, Any]]) -> None:
            _, message = event
            # Any client or worker of the scheduler can write to the topic.
            if isinstance(message, dict) and message.get("fit") == fit_id:
                received.put(message)

        self.client.subscribe_topic(TOPIC, handle)
        try:
            yield received
        finally:
            if self.client.status == "running":
                self.client.unsubscribe_topic(TOPIC)

    def cancel(self, futures: Sequence[Future]) -> None:
        """Release futures, and cancel the tasks of futures that still run."""
        if self.client.status == "running":
            self.client.cancel(list(futures), force=True)


def _identity(value: object) -> Any:
    return value


def _process() -> str:
    return _PROCESS
