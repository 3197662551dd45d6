"""Call scikit-learn's callbacks: for the fit, and for each iteration as a subtask."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils._metadata_requests import _routing_enabled

from .._eras import EncodedEras
from .._fit_attributes import Snapshot
from .._scikit_learn import ScoringMonitor, check_sample_weight
from ._binning.dataset import BinnedDataset
from ._fit_state import asks_for_eras


class Tasks:
    """Report the tasks of a fit to scikit-learn's callbacks, and to the estimator's
    `_follower`, even if the release of scikit-learn has no callbacks. The estimator's
    `_fitted_so_far` returns the attributes that it would have if the fit stopped here,
    or None if it could not predict with them.
    """

    def __init__(self, estimator: BaseEstimator, rows: "TrainingRows", n_tasks: int):
        self._estimator = estimator
        self._follower = getattr(estimator, "_follower", None)
        self._fit = self._iteration = None
        if hasattr(estimator, "_skl_callbacks"):
            # Functions, called only if a callback asks for their results.
            self._data = {
                name: partial(getattr, rows, name) for name in ("X", "y", "metadata")
            }
            self._fit = estimator._init_callback_context(max_subtasks=n_tasks)
            self._call(self._fit.call_on_fit_task_begin)

    def begin_iteration(self) -> None:
        if self._follower is not None:
            self._follower.begin_iteration(self._estimator)
        if self._fit is not None:
            self._iteration = task = self._fit.subcontext(task_name="iteration")
            self._call(
                task.call_on_fit_task_begin, reconstruction_attributes=self._stopped
            )

    def end_iteration(self) -> bool:
        """Keep a snapshot; return whether a callback or `_follower` stops the fit."""
        state = self._estimator._fit_state
        if state.keeps_iterations:
            state.last_whole = Snapshot(self._estimator)
        stops = False
        if self._follower is not None:
            fitted = self._estimator._fitted_so_far
            stops = bool(self._follower.end_iteration(self._estimator, fitted))
        return stops | (self._iteration is not None and self._end(self._iteration))

    def end(self) -> None:
        self._estimator._fit_state.finish()
        if self._fit is not None:
            self._end(self._fit)

    def _end(self, task: Any) -> bool:
        return self._call(
            task.call_on_fit_task_end, reconstruction_attributes=self._stopped
        )

    def _call(self, hooks: Any, **arguments: Any) -> Any:
        # With `_in_fit` the estimator would take rows to predict for bins, and
        # predictions of a callback would be wrong. After an error it is not needed.
        in_fit = self._estimator.__dict__.pop("_in_fit", None)
        result = hooks(estimator=self._estimator, **self._data, **arguments)
        if in_fit is not None:
            self._estimator._in_fit = in_fit
        return result

    def _stopped(self) -> dict[str, Any] | None:
        """Return ``{"__dict__": attributes}``, with the attributes that the estimator
        would have if the fit stopped here; return None if it could not predict.
        """
        fitted = self._estimator._fitted_so_far()
        return None if fitted is None else {"__dict__": fitted}


@dataclass(eq=False)
class TrainingRows:
    """Give callbacks the training rows as passed to ``fit``, not binned or encoded."""

    _estimator: Any
    _X: Any
    _y: NDArray[Any]
    _y_train: NDArray[Any]
    _sample_weight: Any
    _eras: EncodedEras | None

    @cached_property
    def X(self) -> Any:
        if isinstance(self._X, BinnedDataset):
            raise ValueError(
                "A callback asks for X, the raw rows to train on, and fit was given a "
                "BinnedDataset, which does not have them. Take the callback off "
                "(set_callbacks), or fit to the raw rows."
            )
        return self._take(self._X)

    @cached_property
    def y(self) -> NDArray[Any]:
        if is_classifier(self._estimator):
            return self._estimator.classes_[self._y_train.astype(np.intp)]
        return self._y_train

    @cached_property
    def metadata(self) -> dict[str, Any]:
        metadata = {}
        if self._sample_weight is not None:
            # The weights in `fit` include those of classes.
            sample_weight = check_sample_weight(
                self._sample_weight, self._y, dtype=np.float64
            )
            metadata["sample_weight"] = self._take(sample_weight)
        if self._eras is not None and all(
            map(_takes_eras, self._estimator._skl_callbacks)
        ):
            metadata["eras"] = self._eras.decode()
        return metadata

    def _take(self, values: Any) -> Any:
        if self._y_train is self._y:
            return values
        return _safe_indexing(values, self._indices)

    @cached_property
    def _indices(self) -> NDArray[np.intp]:
        """Indices of the rows that early stopping leaves for training."""
        estimator = self._estimator
        if estimator._fit_state.training_rows is not None:
            return estimator._fit_state.training_rows
        # Without eras, scikit-learn has split arrays; the seed gives the same indices.
        indices, _ = train_test_split(
            np.arange(self._y.size), test_size=estimator.validation_fraction,
            stratify=self._y if is_classifier(estimator) else None,
            random_state=estimator._random_seed,
        )  # fmt: skip
        assert np.array_equal(self._y[indices], self._y_train)
        return indices


def _takes_eras(callback: object) -> bool:
    """Return whether a callback accepts eras in the metadata. A `ScoringMonitor` passes
    all metadata to its scorer, which raises an error for metadata not requested.
    """
    if not isinstance(callback, ScoringMonitor):
        return True
    scoring = callback._scoring
    if not isinstance(scoring, dict):
        return asks_for_eras(scoring)
    # With routing, eras reach the scorers that request them, else every one.
    holds = any if _routing_enabled() else all
    return holds(asks_for_eras(scorer) for scorer in scoring.values())
