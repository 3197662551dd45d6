"""The rules that a model's splits follow: its criterion, parameters and penalties.

A penalty of a feature is a share of the largest key of a node's valid splits.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from oracle.formulas import EPSILON, Interval, all_of, eras_to_cover, exactly
from sklearn_era.criteria import Blend
from sklearn_era.criteria._criteria import CRITERIA

# With one era they are the gain, as the era is all that there is.
THE_GAIN_OF_ONE_ERA = {"era", "directional", "invariant", "vrex"}


@dataclass
class Rules:
    """The criterion that a model really uses, and its parameters."""

    weights: dict[str, float]  # of the criteria: more than one in a blend
    n_to_cover: int  # eras
    gain_share: float = 0.0  # of the largest gain of a node's splits
    least_gain: float = 0.0  # by unit of the hessians of the root
    min_samples_per_era: float = 1
    # By the names that the criteria have for them, but for the penalty of `VREx`.
    boltzmann_alpha: float = 0.0
    min_agreement: float = 0.0
    normalize: bool = False
    aggregation: str | float = "max"
    impurity: str = "squared_error"
    penalty: float = 1.0
    vrex_penalty: float = 1.0
    statistic: str = "effect"
    min_impurity_decrease: float = 0.0

    @property
    def is_gain(self) -> bool:
        """Whether scikit-learn's own splitter does it, which knows no eras."""
        return set(self.weights) == {"gain"}

    def is_only(self, name: str) -> bool:
        return set(self.weights) == {name}


def rules_of(est: Any, n_eras: int) -> Rules:
    criterion = est.split_criterion
    blend = Blend(criterion) if isinstance(criterion, dict) else criterion
    weights, own = {}, {}
    for given, weight in getattr(blend, "weights", {blend: 1.0}).items():
        part = CRITERIA[given]() if isinstance(given, str) else given
        if weight > 0:
            weights[part.name], own[part.name] = weight, part.get_params()
    if "vrex" in own:
        own["vrex"]["vrex_penalty"] = own["vrex"].pop("penalty")
    if len(weights) > 1:
        own.get("directional", {}).pop("boltzmann_alpha", None)
        own["blend"] = {"normalize": blend.normalize}
    parameters = {name: x for params in own.values() for name, x in params.items()}
    by_papers = "every_era" in (parameters.pop("rule", None), getattr(blend, "rule", 0))
    coverage, share = est.min_era_coverage, est.min_gain_share
    coverage, share = (1.0, 0.0) if by_papers else (coverage, share)
    parameters.pop("splitter", None)
    asks_for_coverage = set(weights) != {"gain"}
    is_limited = not 1 <= est.min_samples_per_era <= est.min_samples_leaf
    is_gain_of_one_era = n_eras == 1 and (THE_GAIN_OF_ONE_ERA & set(weights))
    is_gain_of_one_era = is_gain_of_one_era and not (asks_for_coverage and is_limited)
    is_unpenalised = set(weights) == {"invariant"} and parameters["penalty"] == 0
    if is_gain_of_one_era or is_unpenalised:
        weights = {"gain": 1.0}
    return Rules(
        weights,
        eras_to_cover(coverage, n_eras) if asks_for_coverage else 0,
        0.0 if set(weights) == {"gain"} else share,
        est.min_impurity_decrease,
        est.min_samples_per_era if asks_for_coverage else 0,
        **parameters,
    )


def pay(problem: Any, found: list[Any], is_uncertain: bool) -> list[Any]:
    """The candidates of a node, perhaps not all (`is_uncertain`), less penalties."""
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
