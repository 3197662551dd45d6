"""The best rule of a round, by beam search: ``RuleGen`` of Du et al. (2025)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ._columns import BinsOfColumn, Conditions, is_covered
from ._refinements import OVERFLOW, RefinementCounter
from ._variance import VarianceTerm

# A set of conditions, all of which must hold.
Conjunction = frozenset[BinsOfColumn]


@dataclass(frozen=True)
class Rule:
    """Conjunctions joined by *or*: an empty conjunction covers all rows."""

    others: frozenset[Conjunction] = frozenset()
    last: Conjunction = frozenset()  # the one that *and* refines

    def refined(self, condition: BinsOfColumn, is_union: bool) -> "Rule":
        """Return this rule *and* the condition; with `is_union`, *or* the condition."""
        if is_union:
            return Rule(self.others | {self.last}, frozenset([condition]))
        column, bins = condition
        columns = dict(self.last)
        columns[column] = columns.get(column, bins) & bins
        return Rule(self.others, frozenset(columns.items()))

    @property
    def conjunctions(self) -> frozenset[Conjunction]:
        """All conjunctions, which identify equal rules."""
        return self.others | {self.last}

    @property
    def columns(self) -> list[int]:
        """The columns with a condition, ascending."""
        return sorted({column for part in self.conjunctions for column, _ in part})

    def covers(self, X_binned: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """The mask of rows that the rule covers."""
        return covered_by_any(X_binned, self.conjunctions)


def covered_by_any(
    X_binned: NDArray[np.uint8], conjunctions: frozenset[Conjunction]
) -> NDArray[np.bool_]:
    """The mask of rows that meet any of the conjunctions."""
    covered = np.zeros(X_binned.shape[0], dtype=bool)
    for conjunction in conjunctions:
        covered |= is_covered(X_binned, conjunction)
    return covered


@dataclass(frozen=True)
class Round:
    """The targets, weights and penalties of a round's search."""

    weights: NDArray[np.float64]  # sample weight times |residual|, with the same sum
    is_positive: NDArray[np.uint8]  # of the class
    curvatures: NDArray[np.float64]  # second derivatives of the log loss
    moments: NDArray[np.float64] | None  # (n_samples, 2), of the variance term
    column_penalties: NDArray[np.float64]
    quality_of_all: float  # of the empty rule, which covers all rows


class _Seed:
    """A rule in the beam, with the masks that its refinements share."""

    def __init__(self, rule: Rule, X_binned: NDArray[np.uint8]):
        self.rule = rule
        self._X_binned = X_binned

    @cached_property
    def by_others(self) -> NDArray[np.bool_]:
        return covered_by_any(self._X_binned, self.rule.others)

    @cached_property
    def by_last(self) -> NDArray[np.bool_]:
        return is_covered(self._X_binned, self.rule.last)

    def parts(
        self, is_union: bool
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
        """The rows that a refinement can move, and those that stay covered, or None."""
        if is_union:
            covered = self.by_others | self.by_last
            return ~covered, covered
        if not self.rule.others:
            return self.by_last, None
        return self.by_last & ~self.by_others, self.by_others


@dataclass(frozen=True)
class BeamSearch:
    """Finds the rule of the best quality, level by level from the `width` best ones.
    Ties go to fewer conditions, then to lower columns and bins.
    """

    X_binned: NDArray[np.uint8]
    conditions: Conditions
    counter: RefinementCounter
    variance: VarianceTerm | None
    width: int
    max_depth: int
    has_disjunctions: bool
    min_samples_rule: int

    def find(self, this_round: Round) -> Rule:
        """Return the best rule of a round, the empty one if there is no other."""
        best, best_quality = Rule(), -np.inf
        beam = [Rule()]
        for level in range(self.max_depth):
            kinds = (False, True) if self.has_disjunctions and level > 0 else (False,)
            measured = [
                (rule, is_union, qualities)
                for rule in beam
                for is_union, qualities in self._measure(rule, kinds, this_round)
            ]
            found = self._best(measured)
            beam = [rule for rule, _ in found]
            if found and found[0][1] > best_quality:
                best, best_quality = found[0]
        if self.variance is not None and -np.inf < best_quality < 0.1 * OVERFLOW:
            raise ValueError(
                "variance_penalty: the loss or score of every rule overflows; lower "
                "learning_rate or n_estimators."
            )
        pays = this_round.column_penalties[best.columns].any()
        if self.variance is None and pays and best_quality <= this_round.quality_of_all:
            return Rule()  # better than the least penalised one
        return best

    def _measure(
        self, rule: Rule, kinds: tuple[bool, ...], this_round: Round
    ) -> Iterator[tuple[bool, NDArray[np.float64]]]:
        """Yield the qualities of a rule's refinements by *and* or *or*."""
        seed = _Seed(rule, self.X_binned)
        added = this_round.column_penalties.copy()
        added[rule.columns] = 0.0
        penalties = added + this_round.column_penalties[rule.columns].sum()
        for is_union in kinds:
            moving, staying = seed.parts(is_union)
            sums, moments = self._sums_of(staying, this_round)
            yield (
                is_union,
                self.counter.measure(
                    np.flatnonzero(moving).astype(np.int32),
                    is_union,
                    sums,
                    moments,
                    penalties,
                    self.min_samples_rule,
                ),
            )

    def _sums_of(
        self, staying: NDArray[np.bool_] | None, this_round: Round
    ) -> tuple[tuple[float, float, float, float], NDArray[np.float64]]:
        """The sums over the rows that stay covered, and their moments by group."""
        n_groups = 0 if self.variance is None else self.variance.groups.is_positive.size
        if staying is None:
            return (0.0, 0.0, 0.0, 0.0), np.zeros((n_groups, 2))
        by_class = np.bincount(
            this_round.is_positive[staying], this_round.weights[staying], 2
        )
        moments = np.zeros((0, 2))
        if self.variance is not None:
            assert this_round.moments is not None
            moments = self.variance.moments_of(this_round.moments, staying)
        return (
            float(by_class[1]),
            float(by_class[0]),
            float(this_round.curvatures[staying].sum()),
            float(np.count_nonzero(staying)),
        ), moments

    def _best(
        self, measured: list[tuple[Rule, bool, NDArray[np.float64]]]
    ) -> list[tuple[Rule, float]]:
        """The best refinements in descending order, each rule once."""
        if not measured:
            return []
        qualities = np.concatenate([values for _, _, values in measured])
        # Rounded, so that rules that cover the same rows tie.
        qualities = np.round(qualities, 12)
        n_conditions = self.conditions.column.size
        n_admissible = int(np.count_nonzero(qualities > -np.inf))
        n_looked_at = 4 * self.width
        while True:
            n_looked_at = min(n_looked_at, n_admissible)
            if n_looked_at == 0:
                return []
            least = np.partition(qualities, -n_looked_at)[-n_looked_at]
            places = np.flatnonzero(qualities >= least)
            places = places[np.argsort(-qualities[places], kind="stable")]
            found: dict[Rule, float] = {}
            for place in places.tolist():
                rule, is_union, _ = measured[place // n_conditions]
                condition = self.conditions.bins(place % n_conditions)
                found.setdefault(
                    rule.refined(condition, is_union), float(qualities[place])
                )
                if len(found) == self.width:
                    return list(found.items())
            if n_looked_at == n_admissible:
                return list(found.items())
            n_looked_at *= 4
