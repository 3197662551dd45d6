"""Make the criterion and the splitter of a fit from an estimator's parameters."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import _check_monotonic_cst

from .._eras import EncodedEras, minimum_text, number_of_share
from .._warnings import warn_user
from ..criteria._blend import as_criterion
from ..criteria._criteria import SplitCriterion
from ..criteria._custom import CustomCriterion
from ._criteria.objects import Criterion
from ._exchange import ALONE, Exchange
from ._splitting.splitter import EraSplitter

MIN_HESSIAN_TO_SPLIT = 1e-3  # scikit-learn's, of either side
_MANY = 30  # trees or nodes of a fit, for a share of them to mean something
_LARGEST_INT = int(np.iinfo(np.int32).max)


@dataclass(frozen=True)
class CriterionPlan:
    """The criterion of a fit, and limits of splits, by the estimator's parameters."""

    criterion: SplitCriterion
    is_gain_of_one_era: bool  # and min_samples_per_era <= min_samples_leaf
    min_samples_per_era: float  # like the next two, 0 if the criterion ignores it
    min_era_coverage: float
    min_gain_share: float
    is_by_rule: bool  # the criterion's, which overrides the estimator's parameters

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator) -> "CriterionPlan":
        """Return the plan that an estimator's split parameters describe."""
        criterion = as_criterion(estimator.split_criterion)
        asks = any(part.asks_coverage for part in criterion._parts)
        min_samples_per_era = estimator.min_samples_per_era if asks else 0
        coverage, gain_share = estimator.min_era_coverage, estimator.min_gain_share
        if is_by_rule := getattr(criterion, "rule", None) == "every_era":
            coverage, gain_share = 1.0, 0.0
        return cls(
            criterion,
            is_gain_of_one_era=criterion.is_gain_of_one_era
            and isinstance(min_samples_per_era, Integral)
            and min_samples_per_era <= estimator.min_samples_leaf,
            min_samples_per_era=min_samples_per_era,
            min_era_coverage=coverage if asks else 0.0,
            min_gain_share=0.0 if criterion._is_plain_gain else gain_share,
            is_by_rule=is_by_rule,
        )

    @property
    def coverage_by(self) -> str:
        """Return the parameter that sets how many eras a split has to cover, with its
        value, for messages: "min_era_coverage=0.5" or "rule='every_era'".
        """
        if self.is_by_rule:
            return "rule='every_era'"
        return f"min_era_coverage={self.min_era_coverage!r}"

    @property
    def remedy(self) -> str:
        """Return, as text, how a user can allow splits that cover fewer eras."""
        return "leave the rule out" if self.is_by_rule else "lower min_era_coverage"

    @property
    def is_plain_gain(self) -> bool:
        """Return whether splits are ranked by the gain alone, whatever the eras."""
        return self.criterion._is_plain_gain

    @property
    def is_by_kernel(self) -> bool:
        """Return whether the era splitter, not scikit-learn's, finds splits by gain."""
        return getattr(self.criterion, "splitter", None) == "era"

    def compares(self, n_eras: int) -> bool:
        """Return whether anything besides the gain ranks splits, given `n_eras`."""
        return not (self.is_plain_gain or (n_eras == 1 and self.is_gain_of_one_era))


def make_criterion(plan: CriterionPlan, n_eras: int) -> Criterion:
    """Return the compiled criterion of a plan, for `n_eras` training eras."""
    return Criterion(
        plan.criterion.name,
        # No era has more rows than the largest C int, so larger values change nothing.
        min_samples_per_era=min(plan.min_samples_per_era, _LARGEST_INT),
        min_covered_eras=number_of_share(plan.min_era_coverage, n_eras),
        min_gain_share=plan.min_gain_share,
        **plan.criterion._kernel_parameters(),
    )


def target_weights_of(
    estimator: BaseEstimator, plan: CriterionPlan, y: NDArray[Any],
    sample_weight: NDArray[Any] | None, exchange: Exchange = ALONE,
) -> tuple[NDArray[np.float32], ...]:  # fmt: skip
    """Return two arrays for the statistic "ratio": weights of the positive rows, with 0
    for all other rows, and weights of all rows, whose mean is 1. Raise ValueError if
    there are more than two classes, or targets other than 0 and 1. Return () if the
    criterion needs no targets.
    """
    if not plan.criterion._needs_target:
        return ()
    others = y[(y != 0) & (y != 1)]
    if is_classifier(estimator):
        if (n_classes := estimator.classes_.size) > 2:
            raise ValueError(
                "Only binary classification is supported by Invariant(statistic="
                f"'ratio'), but y has {n_classes} classes; use 'effect' or "
                "'changing_rate'."
            )
    elif others.size:
        raise ValueError(
            "Invariant(statistic='ratio') needs a target of 0 and 1, or a classifier, "
            f"but y holds {others[0]:g}; use 'effect' or 'changing_rate'."
        )
    weights = np.ones(y.size, dtype=np.float32)
    if sample_weight is not None:
        n_rows, total = exchange.sum_of(y.size, sample_weight.sum())
        if total > 0:
            weights = (sample_weight * (n_rows / total)).astype(np.float32)
    return np.where(y == 1, weights, np.float32(0)), weights


def choose_splitter(
    estimator: BaseEstimator, plan: CriterionPlan, eras: EncodedEras | None,
    y: NDArray[Any], sample_weight: NDArray[Any] | None,
    make: Callable[..., EraSplitter] = EraSplitter, exchange: Exchange = ALONE,
    penalties: NDArray[np.float64] | None = None,
) -> EraSplitter | None:  # fmt: skip
    """Return the splitter that an estimator needs; None is scikit-learn's own.

    `eras` may be None only if the gain alone ranks splits. With an `exchange`, `y` and
    `sample_weight` hold the rows of this process, and ``eras.labels`` the eras of all
    processes. `penalties` are in the order of the binned columns.
    """
    has_weights = sample_weight is not None
    check_equal_hessians(estimator, plan, has_weights)
    make = partial(
        make, has_weights=has_weights, exchange=exchange, penalties=penalties
    )
    if plan.is_plain_gain:
        by_kernel = plan.is_by_kernel or not exchange.is_alone or penalties is not None
        return _by_gain(make, y) if by_kernel else None
    assert eras is not None
    target_weights = target_weights_of(estimator, plan, y, sample_weight, exchange)
    n_eras = eras.labels.size
    if not plan.compares(n_eras):
        return None if penalties is None else _by_gain(make, y)
    criterion = make_criterion(plan, n_eras)
    criterion.era_labels = eras.labels
    if not exchange.is_alone:
        eras = eras.take(np.arange(eras.codes.size))  # without those of other processes
    return make(eras.codes, eras.labels.size, eras.order, criterion, *target_weights)


def check_equal_hessians(
    estimator: BaseEstimator, plan: CriterionPlan, has_weights: bool
) -> None:
    """Raise ValueError if hessians vary while the criterion needs equal ones."""
    loss = getattr(estimator, "_loss", None)  # a forest has none
    varies = has_weights or not (loss is None or loss.constant_hessian)
    if varies and getattr(plan.criterion, "impurity", "") == "standard_deviation":
        found = "sample_weight or era_weighting weighs them"
        if not has_weights:
            found = f"those of loss={estimator.loss!r} vary"
        raise ValueError(
            "TimeRobust(impurity='standard_deviation') needs rows whose hessians are 1,"
            f" and {found}: use impurity='squared_error', or loss='squared_error' "
            "without weights."
        )


def _by_gain(make: Callable[..., EraSplitter], y: NDArray[Any]) -> EraSplitter:
    """Return a splitter by the gain, which treats all rows as one era."""
    of_one_era = np.zeros(y.shape[0], dtype=np.int32)
    return make(of_one_era, 1, None, Criterion("gain", min_covered_eras=0))


def least_gain(estimator: BaseEstimator, total_weight: float) -> float:
    """Return the gain that a split must exceed, given a tree's sum of hessians."""
    # The grower requires more than its minimum, while the parameter itself suffices, up
    # to rounding errors of sums.
    return estimator.min_impurity_decrease * total_weight * (1.0 - 1e-12)


def warn_of_single_era(
    estimator: BaseEstimator, plan: CriterionPlan, eras: EncodedEras
) -> None:
    """Warn if a criterion that compares eras gets a single era."""
    if eras.labels.size == 1:
        does = "has nothing to compare" if plan.compares(1) else "is the same as 'gain'"
        warn_user(
            f"eras holds the single era {eras.labels[0]!s} to train on, with which "
            f"split_criterion={estimator.split_criterion!r} {does}. Pass the labels of "
            "two eras or more to train on."
        )


def warn_of_limits(booster: BaseEstimator, mean_weight: float) -> bool:
    """Return whether scikit-learn's minimum sum of hessians needs more rows on each
    side of a split than `min_samples_leaf`, and warn if so. Also warn if the loss makes
    scikit-learn ignore monotonic constraints.
    """
    least = MIN_HESSIAN_TO_SPLIT / mean_weight if mean_weight > 0 else 0.0
    if weighs_little := least > booster.min_samples_leaf:
        warn_user(
            f"sample_weight is {mean_weight:.2g} on average, and both sides of a split "
            f"need a sum of {MIN_HESSIAN_TO_SPLIT}, of about {least:,.0f} rows, beside "
            f"min_samples_leaf={booster.min_samples_leaf}. Divide it by its mean."
        )
    constraints = _check_monotonic_cst(booster, booster.monotonic_cst)
    if np.any(constraints) and not booster._loss.differentiable:
        warn_user(
            f"monotonic_cst is not kept with loss={booster.loss!r}: as in scikit-learn,"
            " a grown tree's leaves get medians or quantiles without constraints. Use "
            "loss='squared_error'."
        )
    return weighs_little


def warn_if_nothing_split(
    estimator: BaseEstimator, plan: CriterionPlan, what: str
) -> None:
    """Warn, with a reason, if no tree has a split; `what` is "model" or "forest"."""
    if any(tree.nodes.size > 1 for tree in chain(*estimator._predictors)):
        return
    nothing = (
        f"No split was admissible for split_criterion={estimator.split_criterion!r}, "
        f"and the fitted {what} predicts a constant: a split must "
    )
    reason = (
        f"leave {minimum_text(estimator.min_samples_per_era)} of enough eras ("
        f"{plan.coverage_by}) on both sides, and improve on the criterion. Check that "
        "eras overlap in the features and have weight, merge small eras, or lower the "
        "thresholds."
    )
    if not any(part.asks_coverage for part in plan.criterion._parts):
        reason = (
            "leave min_samples_leaf rows on both sides, and improve on the criterion. "
            "Check that eras have weight, or lower the thresholds."
        )
    warn_user(nothing + reason)


def warn_if_few_splits_are_covered(
    estimator: BaseEstimator, plan: CriterionPlan, splitter: Any
) -> None:
    """Warn if trees have few splits, or if the gain chooses most splits in place of the
    criterion. State a reason: for example, too few eras have enough rows on both sides
    of a split, or eras agree too little.
    """
    leaves = [tree.get_n_leaf_nodes() for tree in chain(*estimator._predictors)]
    n_nodes, limit = max(splitter.n_splittable, 1), estimator.max_leaf_nodes
    share, of_gain = splitter.n_uncovered / n_nodes, splitter.n_the_gains / n_nodes
    n_unsplit, by_default = leaves.count(1), plan.min_gain_share > 0
    covered = (
        f"{minimum_text(estimator.min_samples_per_era)} of enough eras "
        f"({plan.coverage_by}) on both sides"
    )
    if max(leaves) == 1:
        return
    refusing = ""
    if any(isinstance(part, CustomCriterion) for part in plan.criterion._parts):
        refusing = ", as those have in which keys() refuses all"
    unsplit = f"{n_unsplit:,} of {len(leaves):,} trees have no split: "
    agreement = plan.criterion._kernel_parameters().get("min_direction_agreement", 0.0)
    if agreement > 0 and n_unsplit > 0.9 * len(leaves):
        warn_user(
            f"{unsplit}eras agree too little for Directional(min_agreement={agreement})"
            ". Lower it, or expect little more than a constant."
        )
    elif by_default and n_unsplit > 0.5 * len(leaves) > 0.5 * _MANY:
        warn_user(
            f"{unsplit}the others leave no gain. If they follow a shortcut that changes"
            f" from era to era, split_criterion={estimator.split_criterion!r} needs "
            "rule='every_era', which asks every era of each split."
        )
    decides_few = f"split_criterion={estimator.split_criterion!r} decides few splits: "
    if by_default and share > 0.9:
        warn_user(
            f"{decides_few}at {share:.0%} of the nodes no split with enough gain leaves"
            f" {covered}, and the gain decides. Merge small eras, or lower "
            "min_era_coverage or min_gain_share."
        )
    elif 0 < plan.min_gain_share < 1 and of_gain > 0.95 and n_nodes > _MANY:
        warn_user(
            f"{decides_few}{of_gain:.0%} of the nodes have the split of the largest "
            f"gain{refusing}. Lower min_gain_share, or set the criterion's "
            "rule='every_era', by which it chooses among all splits that cover every "
            "era."
        )
    few = limit is None or 2 * np.median(leaves) <= limit
    if not by_default and few and share > 0.25:
        raise_share = "" if plan.is_by_rule else "raise min_gain_share, "
        of_limit = "" if limit is None else f" of max_leaf_nodes={limit}"
        warn_user(
            f"Trees end early, with {np.median(leaves):g} leaves{of_limit} in the "
            f"median: at {share:.0%} of the nodes no split leaves {covered}. Merge "
            f"small eras, {raise_share}or {plan.remedy}."
        )
