"""Penalties of the splits of a feature, by brute force: `feature_penalty`.

A penalty is a share of the largest key of a node's valid splits.
"""

import math
from dataclasses import replace
from typing import Any

from oracle.formulas import EPSILON, Interval, all_of, exactly


def pay(problem: Any, found: list[Any], is_uncertain: bool) -> list[Any]:
    """The candidates of a node, less their features' penalties.

    `is_uncertain` if there may be others, which are not known.
    """
    if problem.penalties is None:
        return found
    largest = largest_key([(c.unit, c) for c in found], is_uncertain)
    return [_less(problem, c, largest) for c in found]


def largest_key(keys: list[tuple[Interval, Any]], is_uncertain: bool) -> Interval:
    """The largest of some keys, each with its candidate, where that is valid."""
    sure = [key.low for key, c in keys if c.valid and c.certain]
    possible = [key.high for key, c in keys if c.valid is not False]
    high = math.inf if is_uncertain else max(possible, default=0.0)
    return Interval(max(sure, default=0.0), high)


def penalty_of(problem: Any, feature: int, largest: Interval) -> Interval:
    """p K."""
    penalty = 0.0 if problem.penalties is None else float(problem.penalties[feature])
    return _rounded(exactly(penalty) * largest, largest)


def less(key: Interval, paid: Interval) -> Interval:
    return key if paid == exactly(0.0) else _rounded(key + -paid, key, paid)


def _rounded(result: Interval, *operands: Interval) -> Interval:
    """Numbers that are known to the last bit give one that is."""
    if all(each.low == each.high for each in operands):
        return result
    ends = (end for each in operands for end in vars(each).values())
    size = max((abs(end) for end in ends if math.isfinite(end)), default=0.0)
    return result.widened(2 * EPSILON * size)


def _less(problem: Any, candidate: Any, largest: Interval) -> Any:
    paid = penalty_of(problem, candidate.feature, largest)
    if paid == exactly(0.0):
        return candidate
    rules, order = problem.rules, candidate.order
    least = rules.min_impurity_decrease if rules.is_only("time_robust") else 0.0
    if order is not None and rules.gain_share == 0:
        order = less(order, paid)
    valid = all_of(candidate.valid, less(candidate.unit, paid).is_above(least))
    primary = less(candidate.primary, paid)
    return replace(candidate, primary=primary, order=order, valid=valid)
