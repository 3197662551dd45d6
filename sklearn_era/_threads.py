"""Limit the number of OpenMP threads of a fit or a prediction to `n_jobs`.

scikit-learn uses as many threads as OpenMP allows. The limit holds during one call, and
only in the thread that makes the call.
"""

import functools
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from numbers import Integral
from typing import Any

from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils._param_validation import Interval, validate_parameter_constraints
from threadpoolctl import ThreadpoolController

from ._typing import Table

try:
    from resource import RUSAGE_SELF, getrusage
except ImportError:  # on Windows, where nobody counts
    _count_lost: Callable[[], int] | None = None
else:

    def _count_lost() -> int:
        """Return how often the system took a processor from this process's threads."""
        return getrusage(RUSAGE_SELF).ru_nivcsw


N_JOBS_CONSTRAINTS: list[Any] = [
    Interval(Integral, None, -1, closed="right"),
    Interval(Integral, 1, None, closed="left"),
    None,
]

_running = threading.local()

_PERIOD = 0.02  # seconds or more by which a number of threads is judged
_LOST_ON_IDLE = 50  # processors that a process loses in a second to the system alone
# Trials of more threads take a twentieth of the time; those of fewer, a fortieth.
_TIME_OF_TRIALS = {True: 20, False: 40}


@functools.cache
def _openmp_controller() -> ThreadpoolController:
    """Return the controller of OpenMP; look it up only once, as this is slow."""
    return ThreadpoolController().select(user_api="openmp")


@contextmanager
def openmp_threads(n_jobs: int | None, caller: str) -> Iterator[None]:
    """Limit OpenMP to `n_jobs` threads in a ``with`` block, in this thread alone."""
    if n_jobs is None:
        yield
        return
    # Checked here too: predictions use a parameter that may be set after the fit.
    validate_parameter_constraints(
        {"n_jobs": N_JOBS_CONSTRAINTS}, {"n_jobs": n_jobs}, caller_name=caller
    )
    n_now = _openmp_effective_n_threads()
    is_outermost = not hasattr(_running, "n_available")
    if is_outermost:
        _running.n_available = n_now
    try:
        n_asked = n_jobs if n_jobs > 0 else max(1, _running.n_available + 1 + n_jobs)
        is_lower = n_asked < n_now
        with use_openmp_threads(int(n_asked)) if is_lower else nullcontext():
            yield
    finally:
        if is_outermost:
            del _running.n_available


def use_openmp_threads(n_threads: int) -> AbstractContextManager[Any]:
    """Return a context where OpenMP uses `n_threads`, whatever the environment sets."""
    return _openmp_controller().limit(limits=n_threads)


class IterationThreads:
    """Chooses the number of threads, at most `n_all`, for each iteration of fits.

    OpenMP's threads wait for each other in busy loops, some hundred times per tree. If
    another program takes the processor of one thread, all other threads wait until this
    thread runs again: half as many threads, or one, may be a hundred times faster. So
    fewer threads are tried if the process loses processors, and more threads now and
    then. With OpenMP's variable ``OMP_DYNAMIC=false``, `n_all` threads are always used.
    """

    def __init__(
        self, n_all: int, clock: Callable[[], float] = time.perf_counter,
        count_lost: Callable[[], int] | None = _count_lost,
    ) -> None:  # fmt: skip
        self._n = self._n_all = n_all
        self._clock, self._count_lost = clock, count_lost
        # When fewer threads, and more, may be tried; and the trial in progress: the
        # number before it, with its seconds an iteration, and those it was judged by.
        self._due = {False: 0.0, True: 0.0}
        self._before: tuple[int, float, float] | None = None
        self.begin_fit()

    def begin_fit(self) -> None:
        """Forget the iterations of an earlier fit, but keep its number of threads."""
        is_dynamic = os.environ.get("OMP_DYNAMIC", "").strip().lower() != "false"
        self._is_fixed = self._n_all == 1 or not is_dynamic
        if self._before is not None:
            self._n, self._before = self._before[0], None
        self._began, self._n_lost, self._n_iterations = -math.inf, 0, -1

    def begin_iteration(self) -> int:
        """Return how many threads to use, given the time of the iterations so far."""
        if self._is_fixed or self._count_lost is None:
            return self._n_all
        now, self._n_iterations = self._clock(), self._n_iterations + 1
        if (seconds := now - self._began) >= _PERIOD:
            n_lost = self._count_lost()
            if self._n_iterations:
                is_busy = n_lost - self._n_lost > max(1, _LOST_ON_IDLE * seconds)
                self._choose(now, seconds, seconds / self._n_iterations, is_busy)
            self._began, self._n_lost, self._n_iterations = now, n_lost, 0
        return self._n

    def _choose(self, now: float, seconds: float, pace: float, is_busy: bool) -> None:
        """Begin a trial of more or fewer threads, or end a trial and keep the faster
        number. The latest iterations took `seconds` in all, and `pace` seconds each.
        """
        if self._before is not None:
            n, pace_before, seconds_before = self._before
            is_more, is_faster = self._n > n, pace < pace_before
            waits = is_more != is_faster  # more threads, or fewer
            cost = max(seconds, seconds_before) if is_faster else seconds
            self._due[waits] = now + _TIME_OF_TRIALS[waits] * cost
            self._n, self._before = self._n if is_faster else n, None
            return
        n_more, n_fewer = min(2 * self._n, self._n_all), self._n // 2
        if is_busy and n_fewer and now >= self._due[False]:
            tried = n_fewer
        elif n_more > self._n and now >= self._due[True]:
            tried = n_more
        else:
            return
        self._before, self._n = (self._n, pace, seconds), tried


def threads_of_fit(n_all: int) -> IterationThreads:
    """Return the `IterationThreads` of this Python thread for a fit that begins now."""
    known: dict[int, IterationThreads] = vars(_running).setdefault("of_iterations", {})
    if n_all not in known:
        known[n_all] = IterationThreads(n_all)
    known[n_all].begin_fit()
    return known[n_all]


class ThreadsMixin(gradient_boosting.BaseHistGradientBoosting):
    """Mixin to predict with at most `n_jobs` threads. It must come before other mixins
    that define predictions.
    """

    n_jobs: int | None

    def _raw_predict(self, X: Table, n_threads: int | None = None) -> NDArray[Any]:
        with openmp_threads(self.n_jobs, type(self).__name__):
            return super()._raw_predict(X, n_threads)

    def _staged_raw_predict(self, X: Table) -> Iterator[NDArray[Any]]:
        stages = super()._staged_raw_predict(X)
        while True:
            # The limit must not last while the caller uses a stage.
            with openmp_threads(self.n_jobs, type(self).__name__):
                try:
                    stage = next(stages)
                except StopIteration:
                    return
            yield stage
