"""Which splitter a fit takes: scikit-learn's own, or the one that compares eras."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from ..._eras import EncodedEras
from .._criteria.objects import Criterion
from .._criteria.parameters import CriterionPlan, make_criterion, make_target_weights
from .._exchange import ALONE, Exchange
from .splitter import EraSplitter


def choose_splitter(
    estimator: Any,
    plan: CriterionPlan,
    eras: EncodedEras | None,
    y: NDArray[Any],
    sample_weight: NDArray[Any] | None,
    make: Callable[..., EraSplitter] = EraSplitter,
    exchange: Exchange = ALONE,
    penalties: NDArray[np.float64] | None = None,
) -> EraSplitter | None:
    """Return what finds splits by an estimator's parameters: None for scikit-learn's
    splitter. `eras` is None only for the plain gain; with an `exchange`, rows are of
    this process and labels of all. `penalties` are in the order of binned columns.
    """
    make = partial(
        make,
        has_weights=sample_weight is not None,
        exchange=exchange,
        penalties=penalties,
    )
    if plan.is_plain_gain:
        is_fast = not exchange.is_alone or getattr(estimator, "fast_gain", False)
        return _by_gain(make, y) if is_fast or penalties is not None else None
    assert eras is not None
    target_weights = target_weights_of(estimator, plan, y, sample_weight, exchange)
    n_eras = eras.labels.size
    if not plan.compares(n_eras):
        return None if penalties is None else _by_gain(make, y)
    criterion = make_criterion(estimator, plan, n_eras)
    if not exchange.is_alone:
        eras = eras.take(np.arange(eras.codes.size))  # without those of other processes
    return make(eras.codes, eras.labels.size, eras.order, criterion, *target_weights)


def _by_gain(make: Callable[..., EraSplitter], y: NDArray[Any]) -> EraSplitter:
    """What finds splits by the gain: all rows are one era."""
    of_one_era = np.zeros(y.shape[0], dtype=np.int32)
    return make(of_one_era, 1, None, Criterion("gain", min_covered_eras=0))


def target_weights_of(
    estimator: Any,
    plan: CriterionPlan,
    y: NDArray[Any],
    sample_weight: NDArray[Any] | None,
    exchange: Exchange = ALONE,
) -> tuple[NDArray[np.float32], ...]:
    """As `make_target_weights` returns them, where eras are compared by the target."""
    if not plan.needs_target:
        return ()
    n_classes = estimator.classes_.size if is_classifier(estimator) else None
    return make_target_weights(y, sample_weight, n_classes, exchange)
