"""The base class of criteria: their parameters, and the traits of their keys."""

from dataclasses import Field, field
from typing import Any, ClassVar, NamedTuple

from .._parameter_object import ParameterObject


class KernelTraits(NamedTuple):
    """Facts on a key for the kernel: `criterion_traits` in ensemble/_criteria."""

    reads_impurities: bool = False
    sees_all_eras: bool = False
    is_at_most_gain: bool = False
    worst_era_decides: bool = False


def parameter(default: Any, values: list[Any], kernel_name: str | None = None) -> Any:
    """Return a field with its default, the values that scikit-learn's validation lets
    pass, and its name among the arguments of the kernel's `Criterion`, if any.
    """
    return field(
        default=default, metadata={"values": values, "kernel_name": kernel_name}
    )


class SplitCriterion(ParameterObject):
    """A criterion: its parameters, and the properties of its key."""

    name: ClassVar[str]  # the string that stands for it
    traits: ClassVar[KernelTraits] = KernelTraits()
    asks_coverage: ClassVar[bool] = True  # whether splits must cover eras
    is_gain_of_one_era: ClassVar[bool] = True  # with one era, splits are the gain's
    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    _kernel_names: ClassVar[dict[str, str | None]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        found = {name: x.metadata for name, x in vars(cls).items() if type(x) is Field}
        cls._parameter_constraints = {name: x["values"] for name, x in found.items()}
        cls._kernel_names = {name: x["kernel_name"] for name, x in found.items()}

    @property
    def _parts(self) -> "dict[SplitCriterion, float]":
        """The criteria whose keys are summed, with their weights."""
        return {self: 1.0}

    @property
    def _is_plain_gain(self) -> bool:
        """Return whether splits are ranked by the gain alone, whatever the eras."""
        return False

    @property
    def _needs_target(self) -> bool:
        """Return whether eras are compared by the target instead of gradients."""
        return False

    def _kernel_parameters(self) -> dict[str, Any]:
        """Return this criterion's arguments for the kernel's `Criterion`."""
        names = self._kernel_names.items()
        return {known: getattr(self, own) for own, known in names if known}
