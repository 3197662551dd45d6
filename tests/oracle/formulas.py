"""The formulas of the split criteria, one definition each, and interval arithmetic.

Exactly rounded sums throughout. What rounding alone may decide is left open: each
statistic is an interval, as wide as the error of a float64 computation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext

EPSILON = 2.0**-52
SCIKIT_LEARN_GUARD = 1e-15  # what it adds to H + l2, to keep clear of 0 / 0


def boltzmann_mean(values, alpha: float, digits: int = 40) -> float:
    """B_alpha(x) = sum x exp(alpha x) / sum exp(alpha x), in decimal arithmetic."""
    if math.isinf(alpha):
        return max(values) if alpha > 0 else min(values)
    with localcontext(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN):
        exact = [Decimal(float(value)) for value in values]
        exponents = [Decimal(float(alpha)) * value for value in exact]
        weights = [(exponent - max(exponents)).exp() for exponent in exponents]
        total = sum(w * value for w, value in zip(weights, exact, strict=True))
        return float(total / sum(weights))


def newton_value(gradients: float, hessians: float, l2: float) -> float:
    """v = -G / (H + l2)."""
    return -gradients / (hessians + l2) if hessians + l2 > 0 else 0.0


def gain(gradients: tuple, values: tuple) -> float:
    """-(G_L v_L + G_R v_R) + G v, of the left side, the right side and both."""
    (left, right, node), (v_left, v_right, v_node) = gradients, values
    return math.fsum((-left * v_left, -right * v_right, node * v_node))


def impurity(sum_of_squares: float, hessians: float, *parts: tuple) -> float:
    """(SS - sum G²/H over the parts) / H, the parts being (G, H); 0 where H is 0."""
    if hessians == 0:
        return 0.0
    return math.fsum((sum_of_squares, *(-g * g / h for g, h in parts))) / hessians


def standard_deviation(values: Sequence[float]) -> float:
    """The square root of mean (x - mean x)²: of a population, not of a sample."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((x - mean) ** 2 for x in values) / len(values))


def ratio_of_rates(pos_left: float, pos: float, neg_left: float, neg: float) -> float:
    """I = [(pos_L + .5) / (pos + 1)] / [(neg_L + .5) / (neg + 1)]."""
    return (pos_left + 0.5) / (pos + 1) / ((neg_left + 0.5) / (neg + 1))


def eras_to_cover(share: float, n_eras: int) -> int:
    """How many eras a split must cover: that share of all, and never none."""
    return max(1, math.ceil(round(share * n_eras, 9)))


@dataclass(frozen=True)
class Interval:
    """A number that floating-point arithmetic may place anywhere in between."""

    low: float
    high: float

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(self.low + other.low, self.high + other.high)

    def __mul__(self, other: "Interval") -> "Interval":
        # 0 times anything is 0: what an era that counts as 0 is multiplied with
        # does not matter.
        ends = [a * b if a and b else 0.0 for a in vars(self).values()
                for b in vars(other).values()]  # fmt: skip
        return Interval(min(ends), max(ends))

    def __neg__(self) -> "Interval":
        return Interval(-self.high, -self.low)

    def widened(self, error: float) -> "Interval":
        return Interval(self.low - error, self.high + error)

    def is_above(self, bound: float) -> bool | None:
        """Whether the number is larger; None: rounding decides."""
        if self.low > bound or self.high <= bound:
            return bool(self.low > bound)
        return None

    def is_at_least(self, bound: float) -> bool | None:
        if self.low >= bound or self.high < bound:
            return bool(self.low >= bound)
        return None

    def inverted(self) -> "Interval":
        """1 / x of a variance; anything if that may be 0, and 0 if it is."""
        if self.low == self.high == 0:
            return Interval(0.0, 0.0)
        if self.low <= 0:
            return Interval(-math.inf, math.inf)
        return Interval(1 / self.high, 1 / self.low)


def exactly(value: float) -> Interval:
    return Interval(value, value)


def around(value: float, error: float) -> Interval:
    return Interval(value - error, value + error)


def largest(intervals: Sequence[Interval]) -> Interval:
    return Interval(max(x.low for x in intervals), max(x.high for x in intervals))


def smallest(intervals: Sequence[Interval]) -> Interval:
    return Interval(min(x.low for x in intervals), min(x.high for x in intervals))


def mean(intervals: Sequence[Interval]) -> Interval:
    n = len(intervals)
    ends = zip(*((x.low, x.high) for x in intervals), strict=True)
    finite = math.isfinite
    low, high = (math.fsum(x) / n if all(map(finite, x)) else sum(x) for x in ends)
    error = n * EPSILON * max(max(abs(x.low), abs(x.high)) for x in intervals)
    return Interval(low, high).widened(error if finite(error) else 0.0)


def middle_and_error(interval: Interval) -> tuple[float, float]:
    if math.isinf(interval.low) or math.isinf(interval.high):
        return 0.0, math.inf
    return (interval.low + interval.high) / 2, (interval.high - interval.low) / 2


def spread(intervals: Sequence[Interval]) -> Interval:
    """The standard deviation. It moves by no more than the numbers themselves."""
    values, errors = zip(*map(middle_and_error, intervals), strict=True)
    error = max(errors) + (len(values) + 4) * EPSILON * max(abs(x) for x in values)
    found = standard_deviation(values)
    return Interval(max(found - error, 0.0), found + error)


def smoothed(intervals: Sequence[Interval], alpha: float) -> Interval:
    """B_alpha."""
    if math.isinf(alpha):
        return largest(intervals) if alpha > 0 else smallest(intervals)
    values, errors = zip(*map(middle_and_error, intervals), strict=True)
    # |dB / dx_j| is at most 1 + M / e, whatever alpha.
    return around(boltzmann_mean(values, alpha), (1 + len(values)) * max(errors))


def all_of(*answers: bool | None) -> bool | None:
    """Three-valued: False wins over None, which wins over True."""
    if any(answer is False for answer in answers):
        return False
    return None if None in answers else True


# Bounds on what rounding does to sums over the rows of a `splits.Problem`.


def total(values, rows) -> float:
    return math.fsum(values[rows].tolist())


def is_lost(problem, gradient: float, hessian: float, sums, l2: float) -> bool:
    """Whether sums over both sides lose that of a side, as of saturated ones."""
    mass = hessian + l2
    if mass == 0 or problem.sums_are_exact:
        return mass == 0 and gradient != 0
    return mass < 1e-12 * (max(h for _, h in sums) + l2)


def gain_error(problem, n: int, size: float, sums: list, l2: float) -> float:
    """Bound on what rounding makes of a gain; `size` is sum |g|, `sums` are (G, H)."""
    if any(is_lost(problem, *side, sums, l2) for side in sums):
        return math.inf
    unit = rounding(problem, n)
    total_hessian = max(h for _, h in sums) + l2
    error = guard = 0.0
    for gradient, hessian in sums:
        mass = hessian + l2
        if mass > 0:
            error += 2 * abs(gradient) * size / mass + (gradient / mass) ** 2 * (
                mass if problem.sums_are_exact else total_hessian
            )
            guard += (gradient / mass) ** 2 * SCIKIT_LEARN_GUARD
    return unit * error + guard


def rounding(problem, n: int) -> float:
    return EPSILON * (16 if problem.sums_are_exact else 16 + 4 * n)
