"""Boosting: rules found one after another, each for the current residuals."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ._beam import BeamSearch, Conjunction, Round, Rule
from ._refinements import newton_step


@dataclass(frozen=True)
class Quality:
    """The quality of rules that cover the weights p of P and n of N.

    "youden" is ``p / P - n / N``, the true minus the false positive rate; "laplace"
    ``(p + 1) / (p + n + 2)``, equation 3 of Du et al. (2025); "m_estimate" has a prior
    of `m` rows at the class's share, instead of one row per class.
    """

    name: str
    m: float

    def scales(self, positive: float, negative: float) -> tuple[bool, float, float]:
        """The last arguments of `RefinementCounter.start_round`, from P and N."""
        if self.name == "youden":
            return True, positive, negative
        if self.name == "laplace":
            return False, 1.0, 1.0
        unit = self.m / (positive + negative)
        return False, unit * positive, unit * negative

    def of_all_rows(self, positive: float, negative: float) -> float:
        """The quality of the empty rule."""
        if self.name == "youden":
            return 0.0
        _, more_positive, more_negative = self.scales(positive, negative)
        positive, negative = positive + more_positive, negative + more_negative
        return positive / (positive + negative)


def boost_rules(
    search: BeamSearch,
    is_positive: NDArray[np.bool_],
    sample_weight: NDArray[np.float64],
    draw_penalties: Callable[[], NDArray[np.float64]],
    quality: Quality,
    *,
    n_estimators: int,
    learning_rate: float,
    l2_regularization: float,
) -> tuple[float, list[tuple[Rule, float]]]:
    """Return an intercept and the rules of ``RuleEnsemble``, Du et al. (2025).

    The scores on either side of a rule (1 if covered, else -1) move by a Newton step.
    Half the steps' difference goes to the coefficient, half their sum to the intercept,
    which the paper lacks: small rules would mostly move the rows they do not cover.
    """
    scores = np.zeros(is_positive.size)
    intercept = 0.0
    found: dict[frozenset[Conjunction], tuple[Rule, float]] = {}
    for _ in range(n_estimators):
        probability = expit(scores)
        residuals = sample_weight * (is_positive - probability)
        sizes = np.abs(residuals)
        if not (sizes[is_positive].any() and sizes[~is_positive].any()):
            break  # no residuals are left
        unit = sample_weight.sum() / sizes.sum()
        weights = sizes * unit
        totals = weights[is_positive].sum(), weights[~is_positive].sum()
        curvatures = sample_weight * probability * (1.0 - probability)
        positive = is_positive.view(np.uint8)
        search.counter.start_round(
            weights, positive, curvatures, *quality.scales(*totals)
        )
        moments = None
        if search.variance is not None:
            moments = search.variance.start_round(
                search.counter,
                scores,
                sample_weight,
                unit=unit,
                sum_residuals=residuals.sum(),
                learning_rate=learning_rate,
                l2_regularization=l2_regularization,
            )
        rule = search.find(
            Round(
                weights,
                positive,
                curvatures,
                moments,
                draw_penalties(),
                quality.of_all_rows(*totals),
            )
        )
        covered = rule.covers(search.X_binned)
        inside, outside = (
            newton_step(
                residuals[rows].sum(),
                curvatures[rows].sum(),
                learning_rate,
                l2_regularization,
            )
            for rows in (covered, ~covered)
        )
        scores += np.where(covered, inside, outside)
        if rule == Rule():
            intercept += inside
            continue
        intercept += (inside + outside) / 2.0
        _, before = found.get(rule.conjunctions, (rule, 0.0))
        found[rule.conjunctions] = rule, before + (inside - outside) / 2.0
    return intercept, sorted(found.values(), key=lambda pair: -abs(pair[1]))
