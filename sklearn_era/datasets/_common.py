"""Checks of the parameters of generators, and the names of their arrays."""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, validate_params

_Function = TypeVar("_Function", bound=Callable[..., Any])


_KINDS = {
    "positive": Interval(Integral, 1, None, closed="left"),
    "counts": Interval(Integral, 0, None, closed="left"),
    "amounts": Interval(Real, 0, None, closed="left"),
    "shares": Interval(Real, 0, 1, closed="both"),
}


def checked(
    kinds: Mapping[str, str], **others: Interval
) -> Callable[[_Function], _Function]:
    """Check a generator's parameters, of which `kinds` has the names by their kind."""
    constraints = {
        name: [_KINDS[kind]] for kind, names in kinds.items() for name in names.split()
    }
    constraints |= {name: [interval] for name, interval in others.items()}
    return validate_params(
        {**constraints, "random_state": ["random_state"]},
        prefer_skip_nested_validation=True,
    )


def by_part(**parts: tuple[NDArray[Any], ...]) -> dict[str, NDArray[Any]]:
    """Name the features, the target and the eras of each part, as ``X_train``."""
    return {
        f"{key}_{part}": values
        for part, arrays in parts.items()
        for key, values in zip(("X", "y", "eras"), arrays, strict=True)
    }


def numbered(kind: str, count: int) -> list[str]:
    """Names of features, from 0."""
    return [f"{kind}_{index}" for index in range(count)]
