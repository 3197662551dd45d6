"""Find the best rule of a round by beam search: ``RuleGen`` of Du et al. (2025)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._columns import BinsOfColumn, Conditions, is_covered
from ._refinements import OVERFLOW, RefinementCounter, newton_step
from ._variance import VarianceTerm

# A set of conditions, all of which must hold.
Conjunction = frozenset[BinsOfColumn]


@dataclass(frozen=True)
class Rule:
    """Conjunctions of conditions, joined by *or*. An empty rule covers all rows."""

    others: frozenset[Conjunction] = frozenset()
    last: Conjunction = frozenset()  # the one that *and* refines

    def refined(self, condition: BinsOfColumn, is_union: bool) -> "Rule":
        """Return the rule joined with `condition`: by *or* if `is_union`, otherwise by
        *and*.
        """
        if is_union:
            return Rule(self.others | {self.last}, frozenset([condition]))
        column, bins = condition
        columns = dict(self.last)
        columns[column] = columns.get(column, bins) & bins
        return Rule(self.others, frozenset(columns.items()))

    @property
    def conjunctions(self) -> frozenset[Conjunction]:
        """Return all conjunctions; rules with equal conjunctions cover equal rows."""
        return self.others | {self.last}

    @property
    def columns(self) -> list[int]:
        """Return the indices of columns that have a condition, in ascending order."""
        return sorted({column for part in self.conjunctions for column, _ in part})

    def covers(self, X_binned: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return the mask of rows that the rule covers."""
        return covered_by_any(X_binned, self.conjunctions)


def covered_by_any(
    X_binned: NDArray[np.uint8], conjunctions: frozenset[Conjunction]
) -> NDArray[np.bool_]:
    """Return the mask of rows that meet at least one of the conjunctions."""
    covered = np.zeros(X_binned.shape[0], dtype=bool)
    for conjunction in conjunctions:
        covered |= is_covered(X_binned, conjunction)
    return covered


@dataclass(frozen=True)
class Round:
    """The inputs of the search in one round: targets, weights and penalties."""

    scores: NDArray[np.float64]  # of the rules so far
    sample_weight: NDArray[np.float64]
    residuals: NDArray[np.float64]  # times the sample weight
    weights: NDArray[np.float64]  # |residuals|, with the sum of the sample weight
    is_positive: NDArray[np.uint8]  # of the class
    curvatures: NDArray[np.float64]  # second derivatives of the log loss
    moments: Any  # (n_samples, 2), of the variance term; None if it needs none
    column_penalties: NDArray[np.float64]
    quality_of_all: float  # of the empty rule, which covers all rows
    rates: dict[str, float]  # the parameters of steps

    def steps(self, covered: NDArray[np.bool_]) -> list[float]:
        """Return the Newton steps for the rows `covered` and for all other rows."""
        return [
            newton_step(
                self.residuals[rows].sum(), self.curvatures[rows].sum(), **self.rates
            )
            for rows in (covered, ~covered)
        ]


@dataclass(frozen=True)
class BeamSearch:
    """Finds the best rule by adding conditions, one at a time, to the `width` best
    rules. Ties go to fewer conditions, then to lower columns and bins.
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
        """Return the best rule of a round, or the empty rule if no rule is better."""
        best, best_quality = Rule(), -np.inf
        beam = [best]
        for _ in range(self.max_depth):
            measured = [x for rule in beam for x in self._measure(rule, this_round)]
            found = self._best(measured)
            if not found:
                break
            beam = [*found]
            if found[beam[0]] > best_quality:
                best, best_quality = beam[0], found[beam[0]]
        if self.variance is not None:
            if -np.inf < best_quality < 0.1 * OVERFLOW:
                raise ValueError(
                    "variance_penalty: the loss or score of every rule overflows; "
                    "lower learning_rate or n_estimators."
                )
        elif best_quality <= this_round.quality_of_all and (
            this_round.column_penalties[best.columns].any()
        ):
            return Rule()  # better than the least penalised one
        return best

    def _measure(
        self, rule: Rule, this_round: Round
    ) -> Iterator[tuple[Rule, bool, NDArray[np.float64]]]:
        """Yield the rule, `is_union` and the qualities of all refinements by one more
        condition: first for *and*; then, if rules may be disjunctions, for *or*.
        """
        penalties = this_round.column_penalties.copy()
        penalties[rule.columns] = 0.0
        penalties += this_round.column_penalties[rule.columns].sum()
        staying = covered_by_any(self.X_binned, rule.others)
        moving = is_covered(self.X_binned, rule.last) & ~staying
        ways = [(False, moving, staying)]
        if self.has_disjunctions and rule.last:
            covered = moving | staying
            ways.append((True, ~covered, covered))
        for is_union, moving, staying in ways:
            qualities = self.counter.measure(
                np.flatnonzero(moving).astype(np.int32), is_union,
                *self._sums_of(staying, this_round), penalties, self.min_samples_rule,
            )  # fmt: skip
            if (term := self.variance) is not None and term.of == "probability":
                for place in np.flatnonzero(qualities > -np.inf).tolist():
                    condition = frozenset([self.conditions.bins(place)])
                    covered = staying | moving & is_covered(self.X_binned, condition)
                    steps = np.where(covered, *this_round.steps(covered))
                    qualities[place] -= term.penalty * term.of_probability(
                        this_round.scores + steps, this_round.sample_weight
                    )
            yield rule, is_union, qualities

    def _sums_of(
        self, staying: NDArray[np.bool_], this_round: Round
    ) -> tuple[tuple[Any, ...], NDArray[np.float64]]:
        """Return (sums, moments) over the rows `staying`, which stay covered. `sums`
        has the weights of positive and of negative rows, the sum of curvatures, and the
        number of rows; `moments` has sums by group (see `VarianceTerm.start_round`).
        """
        moments = np.zeros((0, 2))
        if self.variance is not None and this_round.moments is not None:
            moments = self.variance.sums(this_round.moments, staying)
        weights = this_round.weights[staying]
        negative, positive = np.bincount(this_round.is_positive[staying], weights, 2)
        curvature = this_round.curvatures[staying].sum()
        return (positive, negative, curvature, np.count_nonzero(staying)), moments

    def _best(
        self, measured: list[tuple[Rule, bool, NDArray[np.float64]]]
    ) -> dict[Rule, float]:
        """Return the best refinements (rules with one more condition) with their
        qualities, in descending order.
        """
        # Rounded, so that rules that cover the same rows tie.
        qualities = np.round(np.concatenate([values for *_, values in measured]), 12)
        n_conditions = self.conditions.column.size
        n_admissible = int(np.count_nonzero(qualities > -np.inf))
        found: dict[Rule, float] = {}
        n_looked_at = 0
        while len(found) < self.width and n_looked_at < n_admissible:
            n_looked_at = min(4 * (n_looked_at or self.width), n_admissible)
            least = np.partition(qualities, -n_looked_at)[-n_looked_at]
            places = np.flatnonzero(qualities >= least)
            for place in places[np.argsort(-qualities[places], kind="stable")].tolist():
                rule, is_union, _ = measured[place // n_conditions]
                condition = self.conditions.bins(place % n_conditions)
                refined = rule.refined(condition, is_union)
                found.setdefault(refined, float(qualities[place]))
                if len(found) == self.width:
                    break
        return found
