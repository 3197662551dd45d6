"""The split criteria by name: what is true of each, and the parameters it reads."""

from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

# In the order of the constructors, in which they follow `split_criterion`.
ERA_PARAMETER_NAMES = (
    "boltzmann_alpha",
    "min_direction_agreement",
    "min_samples_per_era",
    "min_era_coverage",
    "min_gain_share",
    "normalize_era_gain",
    "period_aggregation",
    "invariance_penalty",
    "invariance_statistic",
)

# What eras weigh, shrink and add, whatever the criterion: in the order of the
# constructors, in which they follow `validation_eras`.
ERA_EFFECT_NAMES = (
    "era_weighting",
    "era_half_life",
    "group_dro_step_size",
    "leaf_shrinkage",
    "era_effects",
    "era_forecast",
    "n_forecast_eras",
)

_COVERAGE = ("min_samples_per_era", "min_era_coverage", "min_gain_share")


class CriterionTraits(NamedTuple):
    """The traits of a criterion: a row of the table."""

    parameters: tuple[str, ...] = ()  # read beside those that all criteria read
    is_blendable: bool = True  # the key is a gain or a share, which add up
    is_gain_of_one_era: bool = True  # with a single era, splits are those of the gain
    # Read by the kernel: see `criterion_traits` in ensemble/_criteria.
    reads_impurities: bool = False
    sees_all_eras: bool = False
    is_at_most_gain: bool = False
    worst_era_decides: bool = False


CRITERIA = {
    "gain": CriterionTraits(),  # scikit-learn's own splitter serves it
    "era": CriterionTraits(
        parameters=(*_COVERAGE, "normalize_era_gain", "boltzmann_alpha"),
    ),
    "directional": CriterionTraits(
        parameters=(
            *_COVERAGE,
            "normalize_era_gain",
            "boltzmann_alpha",
            "min_direction_agreement",
        ),
    ),
    "time_robust": CriterionTraits(
        parameters=(*_COVERAGE, "period_aggregation"),
        reads_impurities=True,
        worst_era_decides=True,  # where `period_aggregation` is "max"
        is_blendable=False,
        is_gain_of_one_era=False,  # impurities know no regularization
    ),
    "invariant": CriterionTraits(
        parameters=(*_COVERAGE, "invariance_penalty", "invariance_statistic"),
        is_at_most_gain=True,
    ),
    "vrex": CriterionTraits(
        parameters=(*_COVERAGE, "normalize_era_gain", "invariance_penalty"),
    ),
    "held_out": CriterionTraits(
        parameters=("min_gain_share", "normalize_era_gain"), sees_all_eras=True
    ),
}


def parameters_read(
    split_criterion: str | Mapping[str, float], invariance_penalty: float | None = None
) -> set[str]:
    """Return the parameters that a criterion or a blend reads beside those that all
    read; parts without weight and "invariant" without a penalty, the gain, read none.
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
    read = {
        name
        for part in parts
        for name in CRITERIA.get(part, CriterionTraits()).parameters
    }
    if len(parts) > 1:
        # Of "directional" a blend takes the share of eras, and ties go to the gain; all
        # keys are normalised with those of the eras.
        read |= {"normalize_era_gain"}
        read -= {"boltzmann_alpha"} if "era" not in parts else set()
    return read


def unread_era_effects(
    era_weighting: str = "rows",
    era_effects: str | None = None,
    era_forecast: str = "last",
    **_: Any,
) -> dict[str, tuple[str, ...]]:
    """By a parameter, those that its value makes no use of."""
    unread: dict[str, tuple[str, ...]] = {}
    of_weighting = {"recency": "era_half_life", "group_dro": "group_dro_step_size"}
    unread["era_weighting"] = tuple(
        name for value, name in of_weighting.items() if value != era_weighting
    )
    if era_effects is None:
        unread["era_effects"] = ("era_forecast", "n_forecast_eras")
    elif era_forecast == "mean":
        unread["era_forecast"] = ("n_forecast_eras",)
    return unread
