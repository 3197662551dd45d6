"""Find rules by boosting, one after another, each for the current residuals."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ._beam import BeamSearch, Conjunction, Round, Rule


def quality_scales(
    quality: str, m: float, positive: float, negative: float
) -> tuple[bool, float, float]:
    """Return the last three arguments of `RefinementCounter.start_round`, with which it
    ranks refinements of rules by the measure `quality`.
    """
    if quality == "youden":
        return True, positive, negative
    if quality == "laplace":
        return False, 1.0, 1.0
    unit = m / (positive + negative)
    return False, unit * positive, unit * negative


def start_round(
    search: BeamSearch, scores: NDArray[np.float64], is_positive: NDArray[np.bool_],
    sample_weight: NDArray[np.float64],
    draw_penalties: Callable[[], NDArray[np.float64]], parameters: Any,
) -> Round | None:  # fmt: skip
    """Return the inputs of the search for the next rule, and pass some of them to the
    search's counter. Return None if all positive or all negative rows have residual 0.
    """
    probability = expit(scores)
    residuals = sample_weight * (is_positive - probability)
    sizes = np.abs(residuals)
    if not (sizes[is_positive].any() and sizes[~is_positive].any()):
        return None
    unit = sample_weight.sum() / sizes.sum()
    weights = sizes * unit
    totals = weights[is_positive].sum(), weights[~is_positive].sum()
    curvatures = sample_weight * probability * (1.0 - probability)
    positive = is_positive.view(np.uint8)
    scales = quality_scales(parameters.quality, float(parameters.m), *totals)
    quality_of_all = search.counter.start_round(
        weights, positive, curvatures, totals, *scales
    )
    names = ("learning_rate", "l2_regularization")
    rates = {name: getattr(parameters, name) for name in names}
    moments = None
    if search.variance is not None:
        moments = search.variance.start_round(
            search.counter, scores, sample_weight, residuals, unit=unit, **rates
        )
    return Round(
        scores, sample_weight, residuals, weights, positive, curvatures, moments,
        draw_penalties(), quality_of_all, rates,
    )  # fmt: skip


def boost_rules(
    search: BeamSearch, is_positive: NDArray[np.bool_],
    sample_weight: NDArray[np.float64],
    draw_penalties: Callable[[], NDArray[np.float64]], parameters: Any,
) -> tuple[float, list[tuple[Rule, float]]]:  # fmt: skip
    """Return the intercept and weighted rules of ``RuleEnsemble`` (Du et al. 2025).

    A rule is 1 for rows that it covers and -1 for all others. The scores of the rows on
    each side move by one Newton step. Half the difference of the two steps is added to
    the rule's coefficient, and half their sum to an intercept. Without an intercept, as
    in the paper, small rules would mostly move rows that they do not cover.
    """
    scores = np.zeros(is_positive.size)
    intercept = 0.0
    found: dict[frozenset[Conjunction], tuple[Rule, float]] = {}
    given = is_positive, sample_weight, draw_penalties, parameters
    for _ in range(parameters.n_estimators):
        this_round = start_round(search, scores, *given)
        if this_round is None:
            break
        rule = search.find(this_round)
        covered = rule.covers(search.X_binned)
        inside, outside = this_round.steps(covered)
        scores = scores + np.where(covered, inside, outside)
        if rule == Rule():
            intercept += inside
            continue
        intercept += (inside + outside) / 2.0
        _, before = found.get(rule.conjunctions, (rule, 0.0))
        found[rule.conjunctions] = rule, before + (inside - outside) / 2.0
    return intercept, sorted(found.values(), key=lambda pair: -abs(pair[1]))
