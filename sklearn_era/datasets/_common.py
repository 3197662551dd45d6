"""Checks of the parameters of generators."""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

from sklearn.utils._param_validation import Interval, validate_params

_Function = TypeVar("_Function", bound=Callable[..., Any])


_KINDS = {
    "positive": Interval(Integral, 1, None, closed="left"),
    "counts": Interval(Integral, 0, None, closed="left"),
    "amounts": Interval(Real, 0, None, closed="left"),
}


def checked(
    kinds: Mapping[str, str], **others: Interval
) -> Callable[[_Function], _Function]:
    """Validate a generator's parameters; `kinds` maps each kind to parameter names."""
    constraints = {
        name: [_KINDS[kind]] for kind, names in kinds.items() for name in names.split()
    }
    constraints |= {name: [interval] for name, interval in others.items()}
    return validate_params(
        {**constraints, "random_state": ["random_state"]},
        prefer_skip_nested_validation=True,
    )
