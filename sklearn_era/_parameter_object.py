"""Define parameters of an estimator that are objects with their own parameters."""

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar, cast, dataclass_transform

from sklearn.base import BaseEstimator, clone

_T = TypeVar("_T")


def parameter(
    values: list[Any], kernel_name: str | None = None, *, default: Any = MISSING,
    **options: Any,
) -> Any:  # fmt: skip
    """Return a dataclass field, with its valid values and its name in compiled code."""
    metadata = {"values": values, "kernel_name": kernel_name}
    return field(default=default, metadata=metadata, **options)


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter, field))
def with_parameters(cls: type[_T]) -> type[_T]:
    """Decorate an estimator to make its constructor and constraints from its fields."""
    made: Any = dataclass(kw_only=True, eq=False, repr=False)(cls)
    known = getattr(cls, "_parameter_constraints", {})  # of a base without fields
    made._parameter_constraints = {
        x.name: x.metadata.get("values", known.get(x.name))
        for x in fields(made)
        if x.init
    }
    return made


class ParameterObject(BaseEstimator):
    """Base of objects that are equal if they have the same class and parameters. As the
    hash depends on parameters, do not change an object that is a key of a dict.
    """

    @property
    def _parameter_constraints(self) -> dict[str, list[Any]]:
        known = [x for x in fields(cast("Any", self)) if "values" in x.metadata]
        return {x.name: x.metadata["values"] for x in known}

    def _check(self) -> None:
        """Raise InvalidParameterError if a parameter has an invalid value."""
        self._validate_params()

    def _changed(self, **params: Any) -> Any:
        """Return a copy with some parameters changed."""
        return clone(self).set_params(**params)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        values = (
            frozenset(value.items()) if isinstance(value, dict) else value
            for _, value in sorted(vars(self).items())
        )
        return hash((type(self), *values))
