"""Run the local ``fit`` on a worker's shard, in lockstep with the other workers."""

import copy
import pickle
import queue
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from distributed import get_worker
from numpy.typing import ArrayLike, NDArray
from sklearn._loss.loss import BaseLoss
from sklearn.base import BaseEstimator, is_classifier

from .._eras import EncodedEras
from .._fit_attributes import LISTS_OF_FIT, copy_attributes
from .._threads import use_openmp_threads
from ..ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from ..ensemble._boosters.era_effects import FITTED_INTERCEPTS
from ..ensemble._boosters.era_weights import base_weights, is_reweighted
from ..ensemble._boosters.hooks import EraFitMixin
from ..ensemble._exchange import Exchange
from ._bins import Shard, ShardRows
from ._collective import ExchangeError, call_in_group, stop_tracker
from ._partitions import Bins, Floats

# The topic of messages to clients; Dask keeps its last ones.
TOPIC = "sklearn-era-fit"
# Lists to which each iteration appends, and attributes that the client has itself.
LISTS = ("_predictors", *LISTS_OF_FIT)
KEPT = ("_predictors", "_bin_mapper", "_preprocessor", "_label_encoder")
_OF_WORKER = (
    "_exchange", "_held_out", "_known_categories", "_lockstep", "_shard_mapper",
    "_era_factors", "_training_weights",
)  # fmt: skip
_CHANGING = ("_feature_subsample_rng", *FITTED_INTERCEPTS, "_era_log_weights")
# The client's answers by fit: whether a callback requests a stop.
_answers: dict[str, queue.SimpleQueue] = {}


@dataclass
class Outcome:
    """The result of the fit on one worker: attributes or an error, and warnings."""

    fitted: dict[str, Any] | None = None  # attributes, from rank 0 only
    error: Exception | None = None  # without its traceback
    is_secondary: bool = False  # the error was caused by another worker
    warnings: list[tuple[str, type[Warning]]] = field(default_factory=list)
    n_bytes: int = 0  # sent by this worker to be reduced


class FitCancelledError(RuntimeError):
    """The client has cancelled the fit."""


class _SharedMeans:
    """Mixin for a loss whose means are over the rows of all workers. The loss's best
    constant may only depend on the mean of the target, or on the shares of classes.
    """

    exchange: Exchange
    is_multiclass: bool
    n_classes: int
    loss: Callable[..., Floats]

    def __call__(
        self, y_true: ArrayLike, raw_prediction: Any, sample_weight: Any = None,
        n_threads: int = 1,
    ) -> float:  # fmt: skip
        losses = self.loss(y_true, raw_prediction, None, None, n_threads)
        return self._mean(losses, sample_weight)

    def fit_intercept_only(self, y_true: Any, sample_weight: Any = None) -> Any:
        fit: Any = super().fit_intercept_only  # type: ignore[misc]
        if not self.is_multiclass:
            return fit(np.array([self._mean(y_true, sample_weight)]))
        shares = np.bincount(y_true.astype(np.intp), sample_weight, self.n_classes)
        weights = self.exchange.sum(shares.astype(np.float64))
        return fit(np.arange(self.n_classes, dtype=np.float64), weights)

    def _mean(self, values: Floats, weights: Floats | None) -> float:
        if weights is None:
            total, weight = self.exchange.sum_of(values.sum(), values.size)
        else:
            total, weight = self.exchange.sum_of(values @ weights, weights.sum())
        return total / weight


def share_means(loss: BaseLoss, exchange: Exchange) -> Any:
    """Return a copy of a loss that takes its means over the rows of all workers."""
    shared = copy.copy(loss)
    shared.__class__ = type(type(loss).__name__, (_SharedMeans, type(loss)), {})
    shared.exchange = exchange
    return shared


class ShardFitMixin(EraFitMixin):
    """Fits to one worker's shard, with names, classes and seed from the client."""

    _held_out: Shard
    _known_categories: Any
    _shard_mapper: Any
    _era_factors: tuple[NDArray[Any], Floats] | None
    _training_weights: Floats | None
    _lockstep: "Lockstep"
    _label_encoder: Any

    def _preprocess_X(self, X: ShardRows, *, reset: bool) -> Any:
        return (X, self._known_categories) if reset else X

    def _encode_y(self, y: Floats) -> Floats:
        return y  # encoded by the client

    def _hold_out_eras(
        self, eras: EncodedEras | None, stratify: NDArray[Any] | None
    ) -> tuple[EncodedEras | None, None, Callable[..., list[Any]]]:
        """Return the training rows' eras, None for the held-out rows' eras, and a
        function. This function takes arrays of training rows, and returns each of them
        followed by the same array for the held-out rows, which the client has chosen.
        """
        held_out = self._held_out
        rows = ShardRows(held_out.X), held_out.y, held_out.sample_weight

        def split(*trained: Any, **_: Any) -> list[Any]:
            if eras is not None and hasattr(self, "validation_eras_"):
                # Kept only if they are the last eras.
                codes = held_out.codes - np.int32(eras.labels.size)
                last = EncodedEras(self.validation_eras_, codes)
                self._keep_held_out(last, *rows[1 : len(trained)])
            pairs = zip(trained, rows[: len(trained)], strict=True)
            return [each for pair in pairs for each in pair]

        return eras, None, split

    def _check_eras(self, *args: Any) -> Any:
        with warnings.catch_warnings(action="ignore"):  # the client has warned
            held_out = vars(self).get("validation_eras_")
            checked = super()._check_eras(*args)
        if held_out is not None:  # the client's choice
            self.validation_eras_ = held_out
        return checked

    def _weigh_eras(self, eras: Any, sample_weight: Any) -> Any:
        # Not passed to `fit`, which refuses all-zero weights: other workers may train.
        if is_reweighted(self):
            return super()._weigh_eras(eras, self._training_weights)
        self._fit_state.era_factors = self._era_factors  # included in the weights
        self._check_weights(base_weights(self, eras, self._training_weights))
        return self._training_weights

    def _get_loss(self, sample_weight: Floats | None) -> Any:
        return share_means(super()._get_loss(sample_weight), self._exchange)

    def _bin_data(
        self, X: ShardRows, sample_weight: Any = None, *, is_training_data: bool
    ) -> Bins:
        if is_training_data:
            self._bin_mapper = copy.copy(self._shard_mapper)
        elif self._fit_state.held_out is not None:
            self._fit_state.held_out.X = X.binned
        return X.binned

    def _begin_tasks(self, *args: Any) -> Any:
        super()._begin_tasks(*args)
        self._lockstep.begin(self)
        return self._lockstep


class ShardRegressor(ShardFitMixin, HistGradientBoostingRegressor):
    pass


class ShardClassifier(ShardFitMixin, HistGradientBoostingClassifier):
    pass


class Lockstep:
    """Reports the iterations of rank 0 to the client, and lets all workers stop after
    the same iteration.
    """

    def __init__(self, fit_id: str, rank: int, has_callbacks: bool):
        self._fit_id = fit_id
        self._reports = rank == 0
        self._asks = rank == 0 and has_callbacks
        self._worker = get_worker()
        self._key = self._worker.get_current_task()
        if self._asks:
            _answers[fit_id] = queue.SimpleQueue()

    def begin(self, estimator: BaseEstimator) -> None:
        self._estimator = estimator
        if self._reports:
            fitted = _fitted_attributes(estimator)
            self._report("begin", {n: x for n, x in fitted.items() if n not in KEPT})

    def begin_iteration(self) -> None:
        if self._asks:
            self._report("begin_iteration", {})

    def end_iteration(self) -> bool:
        is_last = False
        if self._reports:
            now = vars(self._estimator)
            changed = {name: now[name] for name in _CHANGING if name in now}
            ends = {x: (len(now[x]), now[x][-1:]) for x in LISTS if x in now}
            self._report("end_iteration", changed, ends)
        if self._asks:
            is_last = self._answer()
        is_cancelled = self._is_cancelled()
        last, cancelled = self._estimator._exchange.max_of(is_last, is_cancelled)
        if cancelled:
            raise FitCancelledError("the client does not want this fit any more")
        return bool(last)

    def end(self) -> None:
        self._estimator._fit_state.finish()

    def _report(self, what: str, attributes: dict[str, Any], more: Any = None) -> None:
        message = {
            "fit": self._fit_id, "what": what, "attributes": pickle.dumps(attributes),
            "more": pickle.dumps(more),
        }  # fmt: skip
        self._worker.log_event(TOPIC, message)

    def _answer(self) -> bool:
        while True:
            try:
                return _answers[self._fit_id].get(timeout=1)
            except queue.Empty:
                if self._is_cancelled():
                    return True

    def _is_cancelled(self) -> bool:
        task = self._worker.state.tasks.get(self._key)
        return task is None or task.state == "cancelled"


def answer(fit_id: str, stop: bool) -> None:
    """Pass to the fit on this worker whether a callback of the client asks to stop."""
    if fit_id in _answers:
        _answers[fit_id].put(stop)


def _fitted_attributes(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the attributes that a fit on a shard has set so far."""
    params = estimator.get_params(deep=False)
    fitted = {
        name: value
        for name, value in copy_attributes(estimator).items()
        if name not in params and name not in _OF_WORKER
    }
    if "_loss" in fitted:
        fitted["_loss"] = _local_loss(estimator._loss)
    return fitted


def _local_loss(loss: BaseLoss) -> Any:
    """Return a copy of a loss without the exchange, as a fit on one machine has it."""
    local = copy.copy(loss)
    local.__class__ = type(loss).__mro__[2]
    del local.exchange
    return local


def train(
    local: BaseEstimator, shards: tuple[Shard, Shard], era_labels: NDArray[Any] | None,
    fit_id: str, rank: int, group: dict[str, Any] | None, timeout: int,
    has_callbacks: bool,
) -> Outcome:  # fmt: skip
    """Fit the client's estimator, `local`, to a worker's shards; return the outcome."""
    kind = ShardClassifier if is_classifier(local) else ShardRegressor
    estimator: Any = object.__new__(kind)
    vars(estimator).update(vars(local))
    training, estimator._held_out = shards
    estimator._training_weights = training.sample_weight
    eras = None if era_labels is None else EncodedEras(era_labels, training.codes)
    outcome = Outcome()

    def fit(exchange: Exchange) -> None:
        estimator._exchange = exchange
        caught = warnings.catch_warnings(record=True, action="always")
        with caught as noted, use_openmp_threads(get_worker().state.nthreads):
            estimator.fit(ShardRows(training.X), training.y, eras=eras)
        outcome.warnings = [(str(each.message), each.category) for each in noted]
        outcome.n_bytes = getattr(exchange, "n_bytes", 0)

    try:
        estimator._lockstep = Lockstep(fit_id, rank, has_callbacks)
        call_in_group(group, rank, timeout, fit)
        if rank == 0:
            outcome.fitted = _fitted_attributes(estimator)
    except Exception as error:
        outcome.error = error.with_traceback(None)
        outcome.is_secondary = isinstance(error, ExchangeError | FitCancelledError)
    finally:
        _answers.pop(fit_id, None)
        if rank == 0:
            stop_tracker(fit_id, timeout)
    return outcome
