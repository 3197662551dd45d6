"""Evaluate one split by each criterion, by brute force.

`judge_eras` looks at the rows of every era by themselves and returns the keys of the
split as intervals (see `formulas`).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from oracle import formulas
from oracle.formulas import EPSILON, Interval, exactly, gain, mean, newton_value, total
from oracle.rules import Rules

# Gradients and hessians are float32: values this near, as a share, are alike.
REL_TOL, ZERO = 2.0**-21, exactly(0.0)


@dataclass
class Keys:
    """Keys by which the splits of a node, and nodes by their splits, are compared."""

    primary: Interval
    valid: bool | None
    secondary: Interval = ZERO
    order: Interval | None = None  # the priority, if it is not the primary key
    deciding: np.ndarray | None = None  # the one era that the key is of; None: all


class EraSplit:
    """The rows of one era in a node, divided by a split."""

    def __init__(self, problem, era: np.ndarray, rows: np.ndarray, left: np.ndarray):
        self.problem, self.l2 = problem, problem.l2
        self.era, self.rows, self.left, self.right = era, rows, left, rows & ~left
        self.n = int(self.rows.sum())
        n_left, needed = int(self.left.sum()), problem.rules.min_samples_per_era
        if 0 < needed < 1:  # a share of the era's rows
            needed = formulas.eras_to_cover(needed, int(era.sum()))
        self.is_covered = n_left >= needed and self.n - n_left >= needed
        self.directions: dict[float, int | None] = {}  # by l2

    @classmethod
    def of_node(cls, problem, node_rows: np.ndarray, left: np.ndarray) -> list:
        """Each era's; many splits of a node divide an era of few rows alike."""
        known, found = problem.era_splits, []
        for j, era in enumerate(problem.eras):
            rows = node_rows & era
            key = j, rows.tobytes(), (own := rows & left).tobytes()
            if key not in known:
                known[key] = cls(problem, era, rows, own)
            found.append(known[key])
        return found

    def add_up(self) -> None:
        if "sums" in vars(self):
            return
        g, h = self.problem.gradients, self.problem.hessians
        sides = (self.left, self.right, self.rows)
        self.sums = [(total(g, rows), total(h, rows)) for rows in sides]
        self.size = total(self.problem.sizes, self.rows)
        self.H = self.sums[2][1]
        self.unit = formulas.rounding(self.problem, self.n)
        # A side without weight predicts nothing.
        weight = min(self.sums[0][1], self.sums[1][1])
        self.is_informative = self.is_covered and weight > 0

    def direction(self, l2: float) -> int | None:
        if l2 not in self.directions:
            self.directions[l2] = self._direction(l2)
        return self.directions[l2]

    def _direction(self, l2: float) -> int | None:
        """sign(v_L - v_R), or None where rounding decides; 0 where they are alike."""
        if not self.is_informative:
            return 0
        problem, (left, right, _) = self.problem, self.sums
        if any(
            formulas.is_lost(problem, *side, [left, right], l2)
            for side in (left, right)
        ):
            return None
        v_left, v_right = newton_value(*left, l2), newton_value(*right, l2)
        gap, alike = abs(v_left - v_right), REL_TOL * max(abs(v_left), abs(v_right))
        error = 8 * EPSILON * max(abs(v_left), abs(v_right))
        if not problem.sums_are_exact:
            error += sum(self.unit * self.size / (H + l2) for _, H in (left, right))
        if gap <= alike - error or gap == 0 == error:
            return 0
        if gap > alike + error:
            return 1 if v_left > v_right else -1
        return None

    def gain(self, l2: float) -> Interval:
        if not self.is_informative or (l2 == 0 and self.direction(l2) == 0):
            return ZERO  # both sides predict the same: nothing is gained
        values = tuple(newton_value(*side, l2) for side in self.sums)
        found = gain(tuple(G for G, _ in self.sums), values)
        error = formulas.gain_error(self.problem, self.n, self.size, self.sums, l2)
        return formulas.around(found, error + self.lost_gain(l2))

    def lost_gain(self, l2: float) -> float:
        """The loss of gain if the sides are, or may be, taken to be alike."""
        if self.direction(l2):
            return 0.0
        (G_L, H_L), (G_R, H_R), _ = self.sums
        gap = newton_value(G_L, H_L, l2) - newton_value(G_R, H_R, l2)
        a, b = H_L + l2, H_R + l2
        return a * b / (a + b) * gap * gap if a + b > 0 else 0.0

    @cached_property
    def criterion_gain(self) -> Interval:
        """The gain of the era, in the units of the criterion."""
        found = self.gain(self.l2)
        if self.problem.rules.normalize and self.is_informative:
            found = found * exactly(1 / self.H) * self.problem.variance.inverted()
        return found

    def deviation(self, rows: np.ndarray) -> tuple[float, Interval]:
        """n s of some rows, without weights; those that are equal have none."""
        values = self.problem.gradients[rows]
        if (n := len(values)) == 0 or np.ptp(values) == 0:
            return 0.0, ZERO
        exact = n * formulas.standard_deviation(values.tolist())
        low, high = (exact**2 + sign * self.noise * n**2 for sign in (-1, 1))
        low = low if low > self.noise * n * self.n else 0.0  # may be taken for equal
        return exact, Interval(math.sqrt(low), math.sqrt(high))

    @cached_property
    def noise(self) -> float:
        """Bound on the error of a variance, from squares of as many bits as a sum over
        all rows allows, or a word beside the number of an era's rows.
        """
        is_large = max(era.sum() for era in self.problem.eras) > 500
        share = max(len(self.rows) * EPSILON, is_large * 2.0**-41)
        return (8 * share + REL_TOL**2) * float(self.problem.sizes.max()) ** 2

    @cached_property
    def deviations(self) -> tuple[Interval, Interval]:
        """L_before - L, and L, of standard deviations."""
        share = exactly(1 / max(self.n, 1))
        (whole, before), (left, of_left), (right, of_right) = map(
            self.deviation, (self.rows, self.left, self.right)
        )
        if not self.is_informative:
            return ZERO, before * share
        after = of_left + of_right
        decrease = (before + -after) * share
        size, least = whole / self.n, 4 * self.noise
        gap = (whole - left - right) / self.n
        if gap <= 1e-14 * size and min(left, right) * size > least * self.n:
            decrease = ZERO  # both sides have the same mean and deviation
        elif gap * size <= least:
            decrease = Interval(min(decrease.low, 0.0), max(decrease.high, 0.0))
        return decrease, after * share

    def impurity_decrease(self) -> Interval:
        """L_before - L, which is the gain without l2 by the weight of the era."""
        if self.problem.rules.impurity == "standard_deviation":
            return self.deviations[0]
        return self.gain(0.0) * exactly(1 / self.H if self.H > 0 else 0.0)

    def impurity_after(self) -> Interval:
        """L, or L_before where there is nothing to compare."""
        if self.H == 0:
            return exactly(0.0)
        if self.problem.rules.impurity == "standard_deviation":
            return self.deviations[1]
        g, h = self.problem.gradients, self.problem.hessians
        rows = self.rows & (h > 0)
        squares = math.fsum((g[rows] ** 2 / h[rows]).tolist())
        parts = self.sums[:2] if self.is_informative else self.sums[2:]
        found = formulas.impurity(squares, self.H, *parts)
        error = formulas.gain_error(
            self.problem, self.n, self.size, [*parts, self.sums[2]], 0.0
        )
        if self.is_informative:
            error += self.lost_gain(0.0)
        unit = EPSILON * (16 + 4 * self.n)  # squares do not add up without rounding
        error = error / self.H + unit * (squares / self.H + abs(found))
        # Values that differ by no more than those of equal rows may have no impurity.
        if found + error < (alike := REL_TOL**2 * squares / self.H):
            return ZERO
        return Interval(found - error if found - error >= alike else 0.0, found + error)

    def effect(self, of: int) -> Interval:
        """v_L - v_R (`of` is 1) or v_L - v (`of` is 2)."""
        found, error = [], 0.0
        for side in (0, of):
            G, H = self.sums[side]
            mass, value = H + self.l2, newton_value(G, H, self.l2)
            if formulas.is_lost(self.problem, G, H, self.sums, self.l2):
                return Interval(-math.inf, math.inf)
            found.append(value)
            size = abs(value)
            if not self.problem.sums_are_exact:
                size = (self.size + size * (self.H + self.l2)) / mass
            error += self.unit * size + abs(value) * formulas.SCIKIT_LEARN_GUARD / mass
        effect = formulas.around(found[0] - found[1], error)
        direction = self.direction(self.l2) if of == 1 else 1
        if direction == 0:
            return exactly(0.0)
        if direction is None:
            return Interval(min(effect.low, 0.0), max(effect.high, 0.0))
        return effect

    def rates(self) -> Interval | None:
        """I, of relative weights; None where a side has none."""
        weights, positive = self.problem.relative_weights, self.problem.is_positive
        lighter = min(total(weights, self.left), total(weights, self.right))
        if lighter == 0 or not self.is_covered:
            return None
        masks = [self.left & positive, self.rows & positive,
                 self.left & ~positive, self.rows & ~positive]  # fmt: skip
        sums = [total(weights, mask) for mask in masks]
        found = formulas.ratio_of_rates(*sums)
        unit = EPSILON * (8 if self.problem.counts_are_exact else 8 + 4 * self.n)
        pos_left, pos, neg_left, neg = sums
        error = (pos + 0.5) / (pos_left + 0.5) + (neg + 0.5) / (neg_left + 0.5)
        return formulas.around(found, found * unit * error)


def judge_eras(problem, node_rows, left, pooled: Interval) -> Keys | None:
    """Keys of the split of a node by `left`; None if it covers too few eras."""
    rules, eras = problem.rules, EraSplit.of_node(problem, node_rows, left)
    if sum(era.is_covered for era in eras) < rules.n_to_cover:
        return None
    for era in eras:
        era.add_up()
    if rules.is_only("time_robust"):
        return _time_robust(rules, eras)
    H = total(problem.hessians, node_rows)
    judged = [name for name in rules.weights if name in _KEYS]
    keys = {name: _KEYS[name](problem, eras, pooled, H) for name in judged}
    agreement = _agreement(eras) if "directional" in rules.weights else exactly(1.0)
    agrees = agreement.is_at_least(rules.min_agreement)
    if len(rules.weights) > 1:
        return _blend(problem, keys, agreement, agrees, pooled, H)
    if rules.is_only("directional"):
        gains = _smoothed_gain(problem, eras, pooled, H)
        valid = formulas.all_of(agreement.is_above(0.0), agrees, gains.is_above(0.0))
        return Keys(agreement, valid, secondary=gains)
    if rules.is_only("invariant"):
        return Keys(keys["invariant"], pooled.is_above(0.0))
    (key,) = keys.values()
    deciding, alpha = None, rules.boltzmann_alpha
    if rules.is_only("era") and math.isinf(alpha):
        gains = [era.criterion_gain for era in eras]
        deciding = _decisive(eras, gains if alpha > 0 else [-x for x in gains])
    return Keys(key, key.is_above(0.0), deciding=deciding)


def _decisive(eras: list[EraSplit], values: list[Interval]) -> np.ndarray | None:
    """The era whose value is the largest, if there is no doubt which one it is."""
    for era, value in zip(eras, values, strict=True):
        if all(value.low > x.high for x in values if x is not value):
            return era.era
    return None


def _smoothed_gain(problem, eras, pooled, H) -> Interval:
    return formulas.smoothed(
        [era.criterion_gain for era in eras], problem.rules.boltzmann_alpha
    )


def _mean_less_deviation(problem, eras, pooled, H) -> Interval:
    gains = [era.criterion_gain for era in eras]
    deviation = exactly(-problem.rules.vrex_penalty) * formulas.spread(gains)
    found = mean(gains) + deviation
    sizes = map(_finite, (*vars(mean(gains)).values(), deviation.low))
    return found.widened(8 * EPSILON * max(sizes))


def _penalised_gain(problem, eras, pooled, H) -> Interval:
    rules, penalty = problem.rules, ZERO
    if rules.statistic == "ratio":
        rates = [r for r in (era.rates() for era in eras) if r is not None]
        if len(rates) > 1:
            most, least = formulas.largest(rates), formulas.smallest(rates)
            penalty = Interval(most.low / least.high, most.high / least.low)
            penalty = penalty.widened(4 * EPSILON * penalty.high) + exactly(-1.0)
    else:
        of = {"effect": 1, "changing_rate": 2}[rules.statistic]
        effects = [era.effect(of) for era in eras if era.is_informative]
        if len(effects) > 1:
            penalty = formulas.spread(effects) * formulas.spread(effects)
    cost = exactly(rules.penalty) * exactly(H) * penalty
    unit = formulas.rounding(problem, sum(era.n for era in eras))
    cost = cost.widened(unit * _finite(cost.high))
    found = pooled + -cost
    return found.widened(2 * EPSILON * max(map(_finite, vars(found).values())))


def _finite(value: float) -> float:
    return abs(value) if math.isfinite(value) else 0.0


_KEYS = {"era": _smoothed_gain, "vrex": _mean_less_deviation,
         "invariant": _penalised_gain}  # fmt: skip


def _agreement(eras: list[EraSplit]) -> Interval:
    directions = [era.direction(era.l2) for era in eras]
    known = abs(sum(d for d in directions if d is not None))
    unknown = directions.count(None)
    return Interval(max(0, known - unknown) / len(eras), (known + unknown) / len(eras))


def _blend(problem, keys, agreement, agrees, pooled, H) -> Keys:
    rules = problem.rules
    if "gain" in rules.weights:
        keys["gain"] = pooled
    if rules.normalize:
        for name in {"gain", "invariant"} & set(keys):
            keys[name] = keys[name] * exactly(1 / H) * problem.variance.inverted()
    if "directional" in rules.weights:
        keys["directional"] = agreement
    terms = [exactly(w) * keys[name] for name, w in rules.weights.items()]
    found = sum(terms, exactly(0.0))
    size = sum(max(_finite(x.low), _finite(x.high)) for x in terms)
    found = found.widened(2 * len(terms) * EPSILON * size)
    return Keys(found, formulas.all_of(found.is_above(0.0), agrees))


def _time_robust(rules: Rules, eras: list[EraSplit]) -> Keys:
    informative = [era for era in eras if era.is_informative]
    if not informative:
        return Keys(ZERO, False, order=ZERO)
    alpha = {"max": math.inf, "mean": 0.0}.get(rules.aggregation, rules.aggregation)
    takes_worst, compared = math.isinf(alpha), informative if alpha else eras
    impurities = [era.impurity_after() for era in compared]
    shares = [exactly(era.n / int(era.era.sum())) for era in compared]
    pairs = zip(compared, shares, strict=True)
    decreases = [era.impurity_decrease() * share for era, share in pairs]
    key = -(formulas.smoothed(impurities, alpha) if alpha else mean(impurities))
    decrease = formulas.smoothed(decreases, -alpha) if alpha else mean(decreases)
    valid = decrease.is_above(rules.min_impurity_decrease)
    deciding = _decisive(compared, impurities) if takes_worst else None
    return Keys(key, valid, order=decrease, deciding=deciding)
