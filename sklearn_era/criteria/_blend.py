"""Define the `Blend`, and convert values of `split_criterion` into criteria."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ._criteria import (
    CRITERIA,
    Directional,
    Era,
    EraCriterion,
    SplitCriterion,
    TimeRobust,
    parameter,
    refuse_removed,
)
from ._custom import CustomCriterion


@dataclass(eq=False, repr=False)
class Blend(EraCriterion):
    """The weighted sum of the keys of several criteria.

    The key of a criterion is the value by which it ranks splits. The key of
    :class:`Directional` is the agreement; ties go to the pooled gain. The keys of
    :class:`TimeRobust`, and of :class:`Invariant` with ``statistic="ratio"``, cannot be
    summed with other keys. A split is valid if the sum is positive and, in a blend with
    a :class:`Directional`, the agreement is at least its `min_agreement`.

    Parameters
    ----------
    weights : dict of criterion to float
        The weight, 0 or more, of each criterion, which is a name or an object. At most
        one criterion of each class may have a positive weight. A blend with a single
        positive weight is the same as its criterion.
    normalize : bool, default=True
        Whether to divide all gains, also the pooled gain, as `normalize` of
        :class:`Era` does, so that they have the size of an agreement. With False, raw
        gains are summed, whose size depends on the target's unit and the number of
        rows. The keys of a :class:`CustomCriterion` are never divided.
    rule : {'every_era'} or None, default=None
        As in :class:`Era`, for all criteria, which must not have rules of their own.

    Examples
    --------
    >>> from sklearn_era.criteria import Blend
    >>> Blend({"directional": 1, "gain": 0.5})
    Blend(weights={'directional': 1, 'gain': 0.5})
    """

    weights: Mapping[str | SplitCriterion, float] = parameter([Mapping])
    normalize: bool = parameter(["boolean"], default=True)
    name = "blend"

    def _check(self) -> None:
        super()._check()
        for key, weight in self.weights.items():
            if not 0 <= as_float(weight) < math.inf:
                raise ValueError(
                    f"split_criterion: the weight of {key!r} is {weight!r}; weights "
                    "are finite numbers of 0 or more."
                )
        seen = set()
        n_added = sum(weight > 0 for weight in self.weights.values())
        for key, weight in self.weights.items():
            refuse_removed(key)
            part, is_added = _named(key), n_added > 1 and weight > 0
            reason = _not_blendable(part, self.normalize, is_added)
            if reason is None and is_added and part.name in seen:
                reason = "it is the second one of its class"
                if isinstance(part, CustomCriterion):
                    reason = "a blend has one CustomCriterion at most"
            if reason is not None:
                raise ValueError(
                    f"split_criterion: {key!r} cannot be part of a blend: {reason}."
                )
            if is_added:
                seen.add(part.name)
        if n_added == 0:
            raise ValueError(
                f"split_criterion={dict(self.weights)!r} has no positive weight; give "
                "one to a criterion at least."
            )

    @property
    def _parts(self) -> dict[SplitCriterion, float]:
        """Return criteria of positive weight, with weights divided by the largest."""
        weights = {
            _named(key): float(weight)
            for key, weight in self.weights.items()
            if weight > 0
        }
        # The sum is only compared with other sums and with 0, so its unit is arbitrary;
        # no part should overflow.
        largest = max(weights.values())
        return {
            part: max(weight / largest, sys.float_info.min)
            for part, weight in weights.items()
        }

    def _kernel_parameters(self) -> dict[str, Any]:
        parts = self._parts
        merged: dict[str, Any] = {}
        # `Era` last: the mean of gains of `Directional` is not part of a blend.
        for part in sorted(parts, key=lambda part: isinstance(part, Era)):
            merged |= part._kernel_parameters()
        weights = {part.name: weight for part, weight in parts.items()}
        return merged | {"weights": weights, "normalize_era_gain": self.normalize}


def _named(value: Any) -> Any:
    """Return the criterion that a name stands for; return any other value as it is."""
    return CRITERIA[value]() if value in CRITERIA else value


def _not_blendable(part: object, normalize: bool, is_added: bool) -> str | None:
    """Return the reason why a blend cannot have a criterion, or None if it can."""
    if not isinstance(part, SplitCriterion) or isinstance(part, Blend):
        known = [name for name, cls in CRITERIA.items() if cls is not TimeRobust]
        return (
            f"it is no criterion. Use some of {', '.join(map(repr, known))}, or "
            "objects of sklearn_era.criteria"
        )
    _check_class(part)
    part._check()
    if not is_added:
        return None
    if isinstance(part, TimeRobust):
        return "its key is an impurity, which cannot be added to gains"
    if part._needs_target:
        return (
            "statistic='ratio' compares counts of the target and no gradients; use "
            "'effect' or 'changing_rate'"
        )
    if isinstance(part, Directional) and part.boltzmann_alpha != 0:
        return "boltzmann_alpha decides ties, which in a blend go to the gain"
    if getattr(part, "rule", None):
        return f"it has a rule of its own: pass rule={part.rule!r} to the Blend instead"
    if getattr(part, "normalize", False) and not normalize:
        return "its normalize is True, and the blend's, which holds, is False"
    return None


def _check_class(criterion: SplitCriterion) -> None:
    """Raise TypeError for an unknown class that is not derived from CustomCriterion."""
    known = {*CRITERIA.values(), Blend}
    if isinstance(criterion, CustomCriterion) or type(criterion) in known:
        return
    name = type(criterion).__name__
    base = next((cls for cls in type(criterion).__mro__ if cls in known), None)
    keys = "no compiled code computes its key"
    if base is not None:
        keys = f"compiled code would compute the key of {base.__name__} instead"
    raise TypeError(
        f"split_criterion={criterion!r}: {keys}. Derive {name} from "
        "sklearn_era.criteria.CustomCriterion, and define its keys(splits) in NumPy."
    )


def as_criterion(value: Any) -> SplitCriterion:
    """Return the checked criterion for a value of `split_criterion`. A blend of one
    criterion becomes this criterion. Raise ValueError or TypeError for other values.
    """
    if isinstance(value, str):
        refuse_removed(value)
        if value not in CRITERIA:
            raise ValueError(f"split_criterion={value!r} is no criterion.")
        return CRITERIA[value]()
    criterion: SplitCriterion = Blend(value) if isinstance(value, Mapping) else value
    _check_class(criterion)
    criterion._check()
    first, *others = criterion._parts
    if others or first is criterion:
        return criterion
    has_rule = isinstance(first, EraCriterion) and first.rule is None
    return first._changed(rule=criterion.rule) if has_rule else first


def as_float(number: object) -> float:
    """Return a real number as a float, inf if too large; NaN for any other object."""
    try:
        return float(number) if isinstance(number, Real) else math.nan
    except OverflowError:
        return math.inf
