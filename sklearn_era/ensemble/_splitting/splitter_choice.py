"""Which splitter a fit takes: scikit-learn's own, or the one that compares eras."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from ..._eras import EncodedEras
from .._criteria.parameters import CriterionPlan, make_criterion, make_target_weights
from .splitter import EraSplitter


def choose_splitter(
    estimator: Any,
    plan: CriterionPlan,
    eras: EncodedEras | None,
    y: NDArray[Any],
    sample_weight: NDArray[Any] | None,
    make: Callable[..., EraSplitter] = EraSplitter,
) -> EraSplitter | None:
    """What finds splits by an estimator's parameters: None for scikit-learn's splitter.

    `eras` may be None only for the plain gain; `make` may give the splitter another
    budget. ValueError as in `make_target_weights`.
    """
    if plan.is_plain_gain:
        return None
    assert eras is not None
    target_weights: tuple[NDArray[np.float32], ...] = ()
    if plan.needs_target:
        n_classes = estimator.classes_.size if is_classifier(estimator) else None
        target_weights = make_target_weights(y, sample_weight, n_classes)
    n_eras = eras.labels.size
    if not plan.compares(n_eras):
        return None
    criterion = make_criterion(estimator, plan, n_eras)
    return make(eras.codes, n_eras, eras.order, criterion, *target_weights)
