"""The number of OpenMP threads of a fit or a prediction: `n_jobs`.
OpenMP's own number, which scikit-learn uses, is limited during a call in its thread.
"""

import functools
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from numbers import Integral
from typing import Any

from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils._param_validation import Interval, validate_parameter_constraints
from threadpoolctl import ThreadpoolController

from ._typing import Table

N_JOBS_CONSTRAINTS: list[Any] = [
    Interval(Integral, None, -1, closed="right"),
    Interval(Integral, 1, None, closed="left"),
    None,
]

_running = threading.local()


@functools.cache
def _openmp_controller() -> ThreadpoolController:
    """Return the controller of OpenMP, looked up once, as that takes milliseconds."""
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


class ThreadsMixin(gradient_boosting.BaseHistGradientBoosting):
    """Predicts with at most `n_jobs` threads; must precede mixins that predict."""

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
