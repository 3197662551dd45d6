"""Boosted rules as they are defined: masks of rows, one candidate after another."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The bins of a column that a condition covers.
Condition = tuple[int, frozenset[int]]
# Conjunctions joined by *or*; the last one can be refined by *and*.
Rule = tuple[tuple[Condition, ...], ...]


def list_conditions(
    X_binned: Any, n_bins: list[int], is_categorical: Iterable[bool], missing_bin: int
) -> list[Condition]:
    """Every condition, as the user guide lists them."""
    conditions = []
    for j, is_category in enumerate(is_categorical):
        known = frozenset(range(n_bins[j]))
        everything = known | {missing_bin}
        if is_category:
            for c in known:
                conditions += [(j, frozenset([c])), (j, everything - {c})]
        else:
            for k in range(n_bins[j] - 1):
                below = frozenset(range(k + 1))
                conditions += [(j, below), (j, known - below)]
        if (X_binned[:, j] == missing_bin).any():
            conditions += [(j, frozenset([missing_bin])), (j, known)]
    return conditions


def variance_of_groups(
    values: Any, weights: Any, groups: NDArray[Any], power: float
) -> float:
    """The mean over groups of the weighted variance within each, to a power."""
    powers = []
    for group in np.unique(groups):
        rows = groups == group
        mean = np.average(values[rows], weights=weights[rows])
        variance = np.average((values[rows] - mean) ** 2, weights=weights[rows])
        powers.append(variance**power)
    return float(np.mean(powers))


@dataclass
class State:
    """A round of boosting, before its rule is found."""

    X_binned: NDArray[np.uint8]
    is_positive: NDArray[np.bool_]
    sample_weight: NDArray[np.float64]
    scores: NDArray[np.float64]
    column_penalties: NDArray[np.float64]
    quality: str = "youden"
    m: float = 2.0
    learning_rate: float = 1.0
    l2_regularization: float = 0.0
    min_samples_rule: int = 1
    groups: NDArray[Any] | None = None  # of a label and a class
    variance_of: str = "loss"
    variance_penalty: float = 0.0
    variance_power: float = 1.0

    def __post_init__(self) -> None:
        self.masks: dict[Condition, NDArray[np.bool_]] = {}
        self.start_round()

    def start_round(self) -> None:
        """Compute what follows from the scores, the same for every rule."""
        probability = 1 / (1 + np.exp(-self.scores))
        self.residuals = self.sample_weight * (self.is_positive - probability)
        self.curvatures = self.sample_weight * probability * (1 - probability)
        sizes = np.abs(self.residuals)
        weights = sizes * (self.sample_weight.sum() / sizes.sum())
        self.positive = np.where(self.is_positive, weights, 0)
        self.negative = np.where(self.is_positive, 0, weights)

    def covers(self, rule: Rule) -> NDArray[np.bool_]:
        covered = np.zeros(self.scores.size, dtype=bool)
        for conjunction in rule:
            inside = np.ones(self.scores.size, dtype=bool)
            for column, bins in conjunction:
                if (column, bins) not in self.masks:
                    is_in = np.isin(self.X_binned[:, column], list(bins))
                    self.masks[column, bins] = is_in
                inside &= self.masks[column, bins]
            covered |= inside
        return covered

    def steps(self, covered: NDArray[np.bool_]) -> tuple[float, float]:
        """Newton's steps for the log loss, of the rows covered and of all others: 2 at
        most before the learning rate.
        """
        steps = []
        for rows in (covered, ~covered):
            total = self.curvatures[rows].sum() + self.l2_regularization
            step = self.residuals[rows].sum() / total if total > 0 else 0.0
            steps.append(self.learning_rate * float(np.clip(step, -2, 2)))
        return steps[0], steps[1]

    def measure(self, rule: Rule) -> float:
        """The quality of a rule, less its penalties; -inf if it covers too little."""
        covered = self.covers(rule)
        if np.count_nonzero(covered) < self.min_samples_rule:
            return -np.inf
        p, P = covered @ self.positive, self.positive.sum()
        n, N = covered @ self.negative, self.negative.sum()
        if self.quality == "youden":
            quality = p / P - n / N
        elif self.quality == "laplace":
            quality = (p + 1) / (p + n + 2)
        else:
            quality = (p + self.m * P / (P + N)) / (p + n + self.m)
        columns = {column for conjunction in rule for column, _ in conjunction}
        quality -= sum(self.column_penalties[column] for column in columns)
        if self.groups is not None:
            inside, outside = self.steps(covered)
            values = self.scores + np.where(covered, inside, outside)
            if self.variance_of == "loss":
                values = np.exp(np.where(self.is_positive, -values, values))
            elif self.variance_of == "probability":
                values = 1 / (1 + np.exp(-values))
            quality -= self.variance_penalty * variance_of_groups(
                values, self.sample_weight, self.groups, self.variance_power
            )
        return float(quality)

    def best_of_beam(
        self, conditions: list[Condition], width: int, depth: int, has_or: bool = False
    ) -> tuple[Rule, float]:
        best: tuple[Rule, float] = ((), -np.inf)
        beam: list[Rule] = [((),)]
        for level in range(depth):
            found: dict[Any, tuple[Rule, float]] = {}
            for rule in beam:
                for condition in conditions:
                    refined = [(*rule[:-1], (*rule[-1], condition))]
                    if has_or and level > 0:
                        refined.append((*rule, (condition,)))
                    for candidate in refined:
                        others = frozenset(frozenset(part) for part in candidate[:-1])
                        key = (others, frozenset(candidate[-1]))
                        if key not in found:
                            found[key] = candidate, self.measure(candidate)
            ranked = sorted(found.values(), key=lambda pair: -pair[1])
            ranked = [pair for pair in ranked if pair[1] > -np.inf][:width]
            beam = [rule for rule, _ in ranked]
            if ranked and ranked[0][1] > best[1]:
                best = ranked[0]
        return best

    def best_of_all(self, conditions: list[Condition]) -> float:
        singles = [self.measure(((condition,),)) for condition in conditions]
        pairs = [self.measure((pair,)) for pair in combinations(conditions, 2)]
        return max(singles + pairs, default=-np.inf)

    def add(self, rule: Rule) -> None:
        covered = self.covers(rule)
        inside, outside = self.steps(covered)
        self.scores = self.scores + np.where(covered, inside, outside)
        self.start_round()
