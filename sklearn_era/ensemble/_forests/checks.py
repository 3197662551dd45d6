"""Check a forest's parameters against each other, and against the data."""

import hashlib
import math
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..._eras import (
    Array,
    EncodedEras,
    check_order,
    check_splittable,
    consecutive_blocks,
)
from ..._warnings import warn_user
from ...effects import Recency
from .._criterion_plan import CriterionPlan, warn_of_single_era
from .._parameters import check_single_precision, check_weight_size, refuse_uses_of_eras
from .._warm_start import PreviousFit


def describe_draws(
    forest: BaseEstimator, X_binned: NDArray[Any], y: Array,
    era_columns: list[EncodedEras],
) -> str:  # fmt: skip
    """Return a digest of the rows, in their order, and of all else that determines
    which rows trees draw, except the seed.
    """
    parameters = (forest.bootstrap, forest.max_samples, forest.random_segments)
    digest = hashlib.sha256(repr((X_binned.shape, parameters)).encode())
    for values in [*X_binned.T, y, *(eras.codes for eras in era_columns)]:
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def check_warm_start(forest: BaseEstimator) -> PreviousFit | None:
    """Return facts about the fit that a warm start continues; None if there is none.
    Raise ValueError if `n_estimators` is less than the number of trees; warn if the two
    are equal.
    """
    if not (forest.warm_start and hasattr(forest, "_predictors")):
        return None
    n_grown = len(forest._predictors)
    if forest.n_estimators < n_grown:
        raise ValueError(
            f"n_estimators={forest.n_estimators} is less than the {n_grown} trees that "
            "warm_start=True keeps; raise n_estimators, or set warm_start=False."
        )
    if forest.n_estimators == n_grown:
        warn_user(
            f"warm_start=True adds no tree: there are n_estimators={n_grown} already. "
            "Raise n_estimators to grow more."
        )
    return PreviousFit.of(forest)


def check_forest_eras(
    forest: BaseEstimator, era_columns: list[EncodedEras], plan: CriterionPlan
) -> None:
    """Raise ValueError if eras are missing, too few, or too small, or if they lack an
    order that a parameter needs; warn of a single era.
    """
    if not era_columns:
        refuse_uses_of_eras(forest, plan.is_plain_gain)
    for eras in era_columns:
        labels = eras.labels
        if (n_segments := forest.random_segments) is not None:
            what = f"random_segments={n_segments}"
            check_order(eras, forest.era_order, what, "None")
            if labels.size < n_segments:
                raise ValueError(
                    f"{what} is more than the {labels.size} distinct eras, which "
                    "segments consist of; lower it, or pass finer eras."
                )
        # Weighed by the first of several labels.
        if isinstance(forest.era_weighting, Recency) and eras is era_columns[0]:
            what = f"era_weighting={forest.era_weighting!r}"
            check_order(eras, forest.era_order, what, "'equal'")
        if not plan.is_plain_gain:
            warn_of_single_era(forest, plan, eras)
            if labels.size > 1 and n_segments is None:
                check_splittable(labels, eras.counts, plan)


def what_trees_draw(
    forest: BaseEstimator, n_samples: int, era_columns: list[EncodedEras]
) -> tuple[str, list[int]]:
    """Return the name of the units that trees draw, and a list with the number of units
    for each entry of `era_columns`, or for all rows.
    """
    unit, end, counts = "era", "", [eras.counts for eras in era_columns]
    if forest.random_segments is not None:
        unit, end = "segment", " of trees with two segments"
        counts = [np.bincount(consecutive_blocks(n, 2), n) for n in counts]
    if forest.bootstrap == "within_eras":
        return f"rows of the largest {unit}{end}", [int(n.max()) for n in counts]
    if forest.bootstrap == "whole_eras":
        return f"{unit}s{end}", [n.size for n in counts]
    return "rows", [n_samples]


def check_bootstrap(
    forest: BaseEstimator, n_samples: int, era_columns: list[EncodedEras]
) -> None:
    """Raise ValueError if `max_samples` is too large, or if `max_samples` or
    `oob_score` is set although `bootstrap` is False.
    """
    if forest.bootstrap is False:
        for name in ("oob_score", "max_samples"):
            value = getattr(forest, name)
            if value is not None and value is not False:
                raise ValueError(
                    f"{name}={value!r} needs rows to be drawn, but bootstrap=False; "
                    "set bootstrap='rows', 'within_eras' or 'whole_eras'."
                )
        return
    if forest.max_samples is None or isinstance(forest.max_samples, float):
        return
    what, available = what_trees_draw(forest, n_samples, era_columns)
    if forest.max_samples > min(available):
        raise ValueError(
            f"max_samples={forest.max_samples} is more than the {min(available)} {what}"
            "; lower it, or use a share such as 0.5."
        )


def number_of_features(max_features: float | int | str | None, n_features: int) -> int:
    """Return how many features are drawn for a split, as in scikit-learn's forests."""
    if max_features is None:
        return n_features
    if isinstance(max_features, str):
        root_or_log = {"sqrt": math.sqrt, "log2": math.log2}[max_features]
        return max(1, int(root_or_log(n_features)))
    if isinstance(max_features, Integral):
        if int(max_features) > n_features:
            raise ValueError(
                f"max_features={max_features} is more than the {n_features} columns "
                "of X that splits may use; lower it, or use a share such as 0.5."
            )
        return int(max_features)
    return max(1, int(max_features * n_features))


def check_spread(y: Array, sample_weight: Array | None) -> None:
    """Raise ValueError if the largest weight, or the largest difference of two targets
    times this weight, is too large or too small for single precision.
    """
    largest, weighted = 1.0, ""
    if sample_weight is not None:
        largest = check_weight_size(sample_weight)
        weighted = " times the largest weight"
        y = y[sample_weight > 0]
    with np.errstate(over="ignore"):
        spread = float(np.ptp(y)) * largest
    if spread != 0.0:
        what = f"y: the largest difference of two targets{weighted} is"
        check_single_precision(spread, what, "y by a constant")
