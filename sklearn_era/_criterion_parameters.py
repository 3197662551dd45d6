"""Which of the estimators' parameters each split criterion reads."""

from collections.abc import Mapping
from numbers import Real

# In the order of the constructors, in which they follow `split_criterion`.
ERA_PARAMETER_NAMES = (
    "boltzmann_alpha",
    "min_direction_agreement",
    "min_samples_per_era",
    "min_era_coverage",
    "normalize_era_gain",
    "period_aggregation",
    "invariance_penalty",
    "invariance_statistic",
)

_COVERAGE = ("min_samples_per_era", "min_era_coverage")

# Beside those that all criteria read.
CRITERION_PARAMETERS: dict[str, tuple[str, ...]] = {
    "gain": (),
    "era": (*_COVERAGE, "normalize_era_gain", "boltzmann_alpha"),
    "directional": (
        *_COVERAGE,
        "normalize_era_gain",
        "boltzmann_alpha",
        "min_direction_agreement",
    ),
    "time_robust": (*_COVERAGE, "period_aggregation"),
    "invariant": (*_COVERAGE, "invariance_penalty", "invariance_statistic"),
    "vrex": (*_COVERAGE, "normalize_era_gain", "invariance_penalty"),
}


def parameters_read(
    split_criterion: str | Mapping[str, float], invariance_penalty: float | None = None
) -> set[str]:
    """The parameters that a criterion, or a blend of several, reads.

    Beside those that all criteria read. A part of a blend without weight reads nothing,
    and "invariant" without a penalty nothing else, as it is the gain.
    """
    if isinstance(split_criterion, str):
        split_criterion = {split_criterion: 1.0}
    parts = [
        name
        for name, weight in split_criterion.items()
        if not (isinstance(weight, Real) and weight == 0)
    ]
    if parts == ["invariant"] and invariance_penalty == 0:
        return {"invariance_penalty"}
    read = {name for part in parts for name in CRITERION_PARAMETERS.get(part, ())}
    # All keys of a blend are normalised with those of the eras.
    return read | ({"normalize_era_gain"} if len(parts) > 1 else set())
