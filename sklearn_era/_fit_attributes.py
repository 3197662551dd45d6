"""Keep an estimator's attributes during a fit, and restore them if the fit fails."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator

# Ours, with a `_follower` of the next fit's iterations, and scikit-learn's leftovers of
# a failed fit: by `_in_fit` predictions take rows for bins, by `_raw_predict` they
# ignore them.
FIT_ONLY_ATTRIBUTES = ("_fit_state", "_in_fit", "_raw_predict", "_follower")
# Attributes that scikit-learn keeps on an estimator for callbacks during a fit.
RUNNING_CALLBACKS = (
    "_callback_fit_ctx", "_parent_callback_ctx", "_skl_callbacks_to_teardown",
)  # fmt: skip
# The column of eras of an earlier fit, until a booster's fit begins.
NAME_BEFORE = "_era_column_before"
# Lists during a fit, arrays after it.
LISTS_OF_FIT = ("train_score_", "validation_score_", "_era_weights")

Function = TypeVar("Function", bound=Callable[..., Any])


def drop_attributes(estimator: BaseEstimator, names: Iterable[str]) -> None:
    """Delete the attributes with these names, if the estimator has them."""
    for name in names:
        vars(estimator).pop(name, None)


def copy_attributes(estimator: BaseEstimator) -> dict[str, Any]:
    """Return an estimator's attributes, except those that only a running fit has."""
    attributes = vars(estimator).copy()  # faster than to choose: once an iteration
    for name in (*FIT_ONLY_ATTRIBUTES, *RUNNING_CALLBACKS):
        attributes.pop(name, None)
    return attributes


class Snapshot:
    """Keeps the attributes that an estimator has now, to restore them after a fit."""

    def __init__(self, estimator: BaseEstimator):
        self._attributes = copy_attributes(estimator)
        self._lengths = {
            name: len(values)
            for name in ("_predictors", *LISTS_OF_FIT)
            if isinstance(values := self._attributes.get(name), list)
        }
        rng = self._attributes.get("_feature_subsample_rng")
        self._rng_state = None if rng is None else rng.bit_generator.state

    def attributes(self) -> dict[str, Any]:
        """Return a copy of the attributes as they were when this snapshot was made."""
        attributes = self._attributes.copy()
        for name, n in self._lengths.items():
            values = attributes[name][:n]
            attributes[name] = values if name == "_predictors" else np.array(values)
        if self._rng_state is not None:
            rng = deepcopy(attributes["_feature_subsample_rng"])
            rng.bit_generator.state = self._rng_state
            attributes["_feature_subsample_rng"] = rng
        return attributes


@contextmanager
def restore_on_failure(
    estimator: BaseEstimator, interrupts: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Restore an estimator if the fit in the block fails. After a keyboard interrupt or
    an error in `interrupts`, keep the complete iterations if a snapshot has them.
    """
    before = Snapshot(estimator)
    try:
        yield
    except BaseException as error:
        running = vars(estimator)
        kept = before
        if isinstance(error, interrupts) or not isinstance(error, Exception):
            kept = getattr(running.get("_fit_state"), "last_whole", None) or before
        estimator.__dict__ = kept.attributes()
        for name in RUNNING_CALLBACKS:  # not torn down yet
            if name in running:
                setattr(estimator, name, running[name])
        raise
    drop_attributes(estimator, FIT_ONLY_ATTRIBUTES)
    for name in LISTS_OF_FIT:
        if isinstance(vars(estimator).get(name), list):
            setattr(estimator, name, np.asarray(getattr(estimator, name)))


def restores_on_failure(fit: Function) -> Function:
    """Decorate a ``fit``, so that it leaves the estimator unchanged if it fails."""

    @wraps(fit)
    def wrapper(self: BaseEstimator, *args: Any, **kwargs: Any) -> Any:
        with restore_on_failure(self):
            return fit(self, *args, **kwargs)

    return cast(Function, wrapper)
