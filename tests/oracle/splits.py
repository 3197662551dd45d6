"""The admissible splits of one node and their keys, by brute force.

Slow and obvious on purpose: every split is judged from the rows of the node, with
boolean masks and exactly rounded sums. Each statistic is an interval, as wide as the
error of a float64 computation, and only what is certain is asserted.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from oracle import formulas
from oracle.criteria import Keys, judge_eras
from oracle.formulas import Interval, all_of, around, exactly, gain, newton_value, total
from oracle.rules import Rules, largest_key, less, pay, penalty_of

MIN_CATEGORY_SUPPORT = 10.0  # scikit-learn's MIN_CAT_SUPPORT
MIN_HESSIAN_TO_SPLIT = 1e-3  # scikit-learn's, which its estimators do not expose


@dataclass
class Problem:
    """All that decides how one tree grows."""

    X: np.ndarray  # binned
    gradients: np.ndarray
    hessians: np.ndarray
    eras: list[np.ndarray]  # a row mask for each
    n_bins_non_missing: np.ndarray
    has_missing: np.ndarray
    missing_bin: int
    is_categorical: np.ndarray
    monotonic_cst: np.ndarray
    rules: Rules
    is_positive: np.ndarray  # rows of target 1
    interaction_cst: list[set[int]] | None = None
    relative_weights: np.ndarray | None = None  # sample weights by their mean
    penalties: np.ndarray | None = None  # of features
    l2: float = 0.0
    min_samples_leaf: int = 1
    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    draw_features: Callable[[list[int]], list[int]] = list
    draws_features: bool = False  # whether it leaves any out
    sorts_features: bool = False  # before it does
    # Of rows and the Newton value.
    leaf_value: Callable[[np.ndarray, float], float] | None = None

    def __post_init__(self) -> None:
        # float32 numbers of similar size add up in float64 without any rounding.
        self.sums_are_exact = all(map(_sum_is_exact, (self.gradients, self.hessians)))
        self.gradients = self.gradients.astype(np.float64)
        self.hessians = self.hessians.astype(np.float64)
        self.sizes = abs(self.gradients)
        self.counts_are_exact = self.relative_weights is None
        if self.relative_weights is None:
            self.relative_weights = np.ones(len(self.X))
        self.root_hessian = math.fsum(self.hessians)
        self.era_splits: dict[tuple, object] = {}
        self.variance = gradient_variance(self.gradients, self.hessians)


def gradient_variance(gradients: np.ndarray, hessians: np.ndarray) -> Interval:
    """V = SS / H - (G / H)², SS = sum g² / h: the variance by weight of g / h."""
    G, H = math.fsum(gradients), math.fsum(hessians)
    if H == 0:
        return exactly(0.0)
    rows = hessians > 0
    squares = math.fsum(gradients[rows] ** 2 / hessians[rows])
    unit = formulas.EPSILON * (16 + 4 * len(gradients))
    error = unit * (squares / H + (math.fsum(abs(gradients)) / H) ** 2)
    return around(squares / H - (G / H) ** 2, error)


def _sum_is_exact(values: np.ndarray) -> bool:
    sizes = np.abs(values[values != 0].astype(np.float32))
    return not sizes.size or sizes.sum(dtype=float) < 2.0**53 * np.spacing(sizes.min())


@dataclass
class Candidate:
    """An admissible split of a node."""

    feature: int
    bin: int
    missing_left: bool
    categories: frozenset[int] | None  # those on the left side
    left: np.ndarray  # row mask
    pooled_gain: Interval
    primary: Interval
    secondary: Interval
    unit: Interval  # what penalties are shares of
    order: Interval | None  # the priority, if it is not the primary key
    valid: bool | None  # None: rounding decides
    gains: bool | None  # whether the pooled gain suffices
    certain: bool  # whether it is admissible whatever the rounding
    tie: tuple | None  # candidates with equal ties have equal keys, to the last bit

    def surely_beats(self, other: "Candidate") -> bool:
        """At the same node."""
        return self._comes_before(other, self.primary, other.primary)

    def surely_precedes(self, other: "Candidate") -> bool:
        """This one of two nodes is split first."""
        if self.order is not None:
            return self.order.low > other.order.high
        return self._comes_before(other, self.primary, other.primary)

    def by_gain(self, valid: bool | None) -> "Candidate":
        """The same split, judged by its gain, less what it has to pay."""
        gain = self.pooled_gain if self.order is None else self.order
        if gain is not self.pooled_gain:
            valid = all_of(valid, gain.is_above(0.0))
        return replace(self, primary=gain, secondary=exactly(0.0), valid=valid)

    def has_the_very_key_of(self, other: "Candidate") -> bool:
        """To the last bit, as is only known within one scan of the bins."""
        if self.tie is None or self.tie != other.tie or self.feature != other.feature:
            return False
        return self.missing_left == other.missing_left

    def _comes_before(self, other: "Candidate", key: Interval, beaten: Interval):
        if key.low != beaten.high:
            return key.low > beaten.high
        return self.secondary.low > other.secondary.high


@dataclass
class Node:
    """A node of the fitted tree, with what the reference found out about it."""

    index: int
    rows: np.ndarray  # mask
    depth: int
    value: float  # bounded by the constraints, not shrunk
    lower: float
    upper: float
    interaction_sets: list[set[int]] | None
    chosen: Candidate | None = None
    rivals: list[Candidate] = field(default_factory=list)  # none of them beaten
    found: list[Candidate] = field(default_factory=list)  # all
    has_uncertain_rivals: bool = False  # as the order of its categories is uncertain


def _judge(problem: Problem, node: Node, left: np.ndarray) -> dict[str, Any] | None:
    """Keys of the split of `node` by `left`; None if it is surely not admissible."""
    g, h, l2, rules = problem.gradients, problem.hessians, problem.l2, problem.rules
    L, R = node.rows & left, node.rows & ~left
    if min(L.sum(), R.sum()) < problem.min_samples_leaf:
        return None
    G_L, G_R, H_L, H_R = (total(x, m) for x in (g, h) for m in (L, R))
    slack = 0.0 if problem.sums_are_exact else 1e-12
    if min(H_L, H_R) < MIN_HESSIAN_TO_SPLIT - slack:
        return None

    G = total(g, node.rows)
    values = newton_value(G_L, H_L, l2), newton_value(G_R, H_R, l2)
    clipped = [min(max(value, node.lower), node.upper) for value in values]
    found = gain((G_L, G_R, G), (*clipped, node.value))
    size = total(problem.sizes, node.rows)
    sums = [(G_L, H_L), (G_R, H_R), (G, H_L + H_R)]
    error = formulas.gain_error(problem, node.rows.sum(), size, sums, l2)
    pooled = around(found, error + 1e-12 * size * abs(node.value))
    verdict = {"left": left, "tie": None, "order": None, "secondary": exactly(0.0)}
    verdict |= dict.fromkeys(("pooled_gain", "primary", "unit"), pooled)
    verdict |= dict.fromkeys(("valid", "gains"), pooled.is_above(0.0))
    verdict["certain"] = bool(min(H_L, H_R) >= MIN_HESSIAN_TO_SPLIT + slack)
    is_clipped = clipped[0] == clipped[1] and clipped[0] in (node.lower, node.upper)
    error = 1e-12 * max(map(abs, clipped))
    verdict["monotonic"] = clipped[0] - clipped[1], error, is_clipped
    if not rules.is_gain:
        keys = judge_eras(problem, node.rows, left, pooled)
        if keys is None:
            if rules.gain_share == 0:
                return None
            keys = Keys(exactly(0.0), False)
        for name in ("primary", "secondary", "order", "valid"):
            verdict[name] = getattr(keys, name)
        if not rules.is_only("invariant"):
            verdict["unit"] = keys.primary if keys.order is None else keys.order
        if rules.gain_share > 0:
            verdict["order"] = pooled
        if problem.sums_are_exact:
            deciding = node.rows if keys.deciding is None else keys.deciding
            same_rows = (left & node.rows & deciding).tobytes()
            verdict["tie"] = (same_rows, id(keys.deciding))
    if rules.least_gain > 0:
        asked = rules.least_gain * problem.root_hessian
        slack = formulas.rounding(problem, len(problem.X)) * asked
        gains_enough = pooled.widened(slack).is_at_least(asked)
        verdict["valid"] = all_of(verdict["valid"], gains_enough)
        verdict["gains"] = all_of(verdict["gains"], gains_enough)
    return verdict


def _sides(problem: Problem, node: Node, feature: int) -> Iterator[tuple]:
    """(bin, missing_left, categories, left row mask, certain), in the order of ties."""
    x, missing = problem.X[:, feature], problem.missing_bin
    n_bins = int(problem.n_bins_non_missing[feature])
    has_missing = bool(problem.has_missing[feature])
    if problem.is_categorical[feature]:
        bins = [*range(n_bins), *([missing] if has_missing else [])]
        for categories, certain in _category_sets(problem, node, x, bins):
            left = np.isin(x, sorted(categories))
            yield 0, missing in categories, categories, left, certain
        return
    for bin_idx in range(n_bins - 1 + has_missing):
        yield bin_idx, False, None, (x <= bin_idx) & (x != missing), True
        if has_missing and bin_idx < n_bins - 1:
            yield bin_idx, True, None, (x <= bin_idx) | (x == missing), True


def _category_sets(problem: Problem, node: Node, x, bins) -> Iterator[tuple]:
    g, h = problem.gradients, problem.hessians
    H = total(h, node.rows)
    used, certain = [], True
    for bin_idx in bins:
        rows = node.rows & (x == bin_idx)
        H_bin = total(h, rows)
        support = H_bin * node.rows.sum() / H if H > 0 else 0.0
        if abs(support - MIN_CATEGORY_SUPPORT) < 1e-9 and not (h == 1).all():
            certain = False
        if support >= MIN_CATEGORY_SUPPORT:
            used.append((total(g, rows) / (H_bin + MIN_CATEGORY_SUPPORT), bin_idx))
    used.sort()
    for (v, _), (w, _) in pairwise(used):
        # scikit-learn leaves the order of equal categories to qsort; we do not.
        is_exact = problem.sums_are_exact and not problem.rules.is_gain
        if w - v <= 1e-10 * max(abs(v), abs(w)) and not (v == w and is_exact):
            certain = False
    order = [bin_idx for _, bin_idx in used]
    middle = (len(order) + 1) // 2
    if len(order) > 1:
        for k in range(1, middle + 1):
            yield frozenset(order[:k]), certain
        for k in range(1, middle):
            yield frozenset(order[-k:]), certain


def candidates(problem: Problem, node: Node) -> tuple[list[Candidate], set[int]]:
    """Admissible splits of a node, and the features whose candidates are uncertain."""
    allowed = range(problem.X.shape[1])
    if node.interaction_sets is not None:
        # A set, in its own order: that is the order in which scikit-learn draws.
        allowed = set().union(*node.interaction_sets)
        allowed = sorted(allowed) if problem.sorts_features else allowed
    if problem.penalties is not None:
        allowed = [feature for feature in allowed if problem.penalties[feature] < 1]
    found, uncertain_features = [], set()
    for feature in sorted(problem.draw_features(list(allowed))):
        judged: dict[bytes, dict | None] = {}
        for *split, left, certain in _sides(problem, node, feature):
            if not certain:
                uncertain_features.add(feature)
            side = (left & node.rows).tobytes()
            if side not in judged:
                judged[side] = _judge(problem, node, left)
            if judged[side] is None:
                continue
            verdict = dict(judged[side])
            verdict["certain"] &= certain
            difference, error, is_clipped = verdict.pop("monotonic")
            if problem.monotonic_cst[feature]:
                if problem.monotonic_cst[feature] * difference > error:
                    continue
                if abs(difference) <= error and not is_clipped:
                    verdict["certain"] = False
            found.append(Candidate(feature, *split, **verdict))
    has_share = problem.rules.gain_share > 0 and not problem.rules.is_gain
    choose = _choose_among if has_share else pay
    return choose(problem, found, bool(uncertain_features)), uncertain_features


def _choose_among(
    problem: Problem, found: list[Candidate], is_uncertain: bool
) -> list[Candidate]:
    """The criterion's splits that have a share of the largest gain, or that of it."""
    share = problem.rules.gain_share
    gaining = [c for c in found if c.gains is not False]
    if not gaining:
        return [c.by_gain(False) for c in found]
    left = [c.pooled_gain for c in gaining]
    if problem.penalties is not None:  # nodes wait by their gains
        gains = [(c.pooled_gain, replace(c, valid=c.gains)) for c in gaining]
        unit = largest_key(gains, is_uncertain)
        paid = {c.feature: penalty_of(problem, c.feature, unit) for c in found}
        left = [less(c.pooled_gain, paid[c.feature]) for c in gaining]
        found = [replace(c, order=less(c.order, paid[c.feature])) for c in found]
    pairs = list(zip(left, gaining, strict=True))
    surely = max((gain.low for gain, c in pairs if c.gains and c.certain), default=0.0)
    largest = max(gain.high for gain in left)
    asked = Interval(share * surely, share * largest).widened(1e-11 * share * largest)
    chosen = [
        replace(c, valid=all_of(c.valid, c.gains, _is_at_least(c.pooled_gain, asked)))
        for c in found
    ]
    chosen = pay(problem, chosen, is_uncertain)
    if any(c.valid and c.certain for c in chosen):
        return chosen
    if all(c.valid is False for c in chosen):
        return [c.by_gain(c.gains) for c in found]
    anything = Interval(-math.inf, math.inf)
    valid = {True: None, None: None, False: False}
    return [replace(c, primary=anything, valid=valid[c.gains]) for c in found]


def _is_at_least(found: Interval, asked: Interval) -> bool | None:
    if found.low >= asked.high or found.high < asked.low:
        return bool(found.low >= asked.high)
    return None
