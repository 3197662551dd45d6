"""The split criteria: one table that every grid of the tests reads.

A new criterion enters `CRITERIA`; whatever should hold of every criterion then holds of
it, or a test fails.
"""

import math

# One line for each way in which eras are compared, by parameters of the estimators.
CRITERIA = {
    "gain": {"split_criterion": "gain"},
    "era": {"split_criterion": "era"},
    "era, smoothed": {"split_criterion": "era", "boltzmann_alpha": -1.0},
    "era, worst": {"split_criterion": "era", "boltzmann_alpha": -math.inf},
    # Sums over eras say all that is asked, with gains normalised.
    "era, normalised mean": {"split_criterion": "era", "normalize_era_gain": True},
    "era, normalised": {
        "split_criterion": "era", "boltzmann_alpha": -3.0, "normalize_era_gain": True,
    },
    "directional": {"split_criterion": "directional"},
    # A gain in units of its own breaks ties.
    "directional, smoothed": {"split_criterion": "directional", "boltzmann_alpha": 2.0},
    "directional, agreeing": {
        "split_criterion": "directional", "min_direction_agreement": 0.6,
    },
    "time_robust": {"split_criterion": "time_robust"},
    "time_robust, mean": {
        "split_criterion": "time_robust", "period_aggregation": "mean",
        "min_impurity_decrease": 0.001,
    },
    "invariant": {"split_criterion": "invariant", "invariance_penalty": 0.3},
    "invariant, changing rate": {
        "split_criterion": "invariant", "invariance_statistic": "changing_rate",
        "min_impurity_decrease": 0.001,
    },
    "vrex": {"split_criterion": "vrex", "invariance_penalty": 0.4},
    "held_out": {"split_criterion": "held_out"},
    "held_out, normalised": {"split_criterion": "held_out", "normalize_era_gain": True},
    "era, auto": {"split_criterion": "era", "min_era_coverage": "auto"},
    "directional, auto": {"split_criterion": "directional", "min_era_coverage": "auto"},
    "time_robust, auto": {"split_criterion": "time_robust", "min_era_coverage": "auto"},
    "invariant, most of the gain": {
        "split_criterion": "invariant", "invariance_penalty": 3.0,
        "min_gain_share": 0.9,
    },
    "blend": {
        "split_criterion": {"gain": 0.2, "era": 1.0, "invariant": 0.5},
        "invariance_penalty": 0.3,
    },
    "blend, normalised": {
        "split_criterion": {"era": 1.0, "directional": 0.1, "vrex": 0.5},
        "boltzmann_alpha": -3.0, "normalize_era_gain": True,
    },
}  # fmt: skip

# Those by which a split has to have a share of the largest gain.
SHARING = [name for name in CRITERIA if "auto" in name or "most of" in name]

# Where nothing else is said, all eras have to be on both sides of a split.
for _name, _criterion in CRITERIA.items():
    if _name != "gain" and "held_out" not in _name:
        _criterion.setdefault("min_era_coverage", 1.0)

# For a target of 0 and 1 only.
RATIO = {
    "split_criterion": "invariant", "invariance_statistic": "ratio",
    "invariance_penalty": 0.1, "min_era_coverage": 1.0,
}  # fmt: skip

# Those that look at eras, and so are not found by scikit-learn's own splitter.
ERA_CRITERIA = {name: CRITERIA[name] for name in CRITERIA if name != "gain"}
# Those that refuse a split without all eras on both sides.
COVERING = {
    name: CRITERIA[name]
    for name in ERA_CRITERIA
    if "held_out" not in name and name not in SHARING
}

# What `split_criterion` takes by name, and one blend.
NAMES = ["gain", "era", "directional", "time_robust", "invariant", "vrex", "held_out"]
BLEND = {"era": 1.0, "gain": 0.5}

# Blends, by how the program spells them, and a value of each parameter of a criterion
# that is not the default.
BLENDS = {
    "gain=1,invariant=1": {"gain": 1.0, "invariant": 1.0},
    "era=1,directional=50": {"era": 1.0, "directional": 50.0},
    "vrex=1,era=0": {"vrex": 1.0, "era": 0.0},
    "gain=1,directional=9": {"gain": 1.0, "directional": 9.0},
}
OTHER_VALUES = {
    "boltzmann_alpha": -4.0, "min_direction_agreement": 1.0, "min_samples_per_era": 12,
    "min_era_coverage": 0.5, "min_gain_share": 0.3, "normalize_era_gain": True,
    "period_aggregation": "mean",
    "invariance_penalty": 0.2, "invariance_statistic": "changing_rate",
    "min_impurity_decrease": 0.02,
}  # fmt: skip
