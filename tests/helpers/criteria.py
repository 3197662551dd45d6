"""The split criteria: one table that every grid of the tests reads.

A new criterion enters `CRITERIA`; whatever should hold of every criterion then holds of
it, or a test fails.
"""

import math

from sklearn_era.criteria import (
    Blend,
    Directional,
    Era,
    HeldOut,
    Invariant,
    TimeRobust,
    VREx,
)

# The papers' rule, and the estimators' own.
COVER_ALL = {"min_era_coverage": 1.0, "min_gain_share": 0.0}
SHARED = {"min_era_coverage": 0.1, "min_gain_share": 0.5}

# One line for each way in which eras are compared, by parameters of the estimators.
CRITERIA = {
    "gain": {"split_criterion": "gain"},
    "era": {"split_criterion": "era"},
    "era, smoothed": {"split_criterion": Era(boltzmann_alpha=-1.0)},
    "era, worst": {"split_criterion": Era(boltzmann_alpha=-math.inf)},
    # Sums over eras suffice, with gains normalised.
    "era, normalised mean": {"split_criterion": Era(normalize=True)},
    "era, normalised": {"split_criterion": Era(boltzmann_alpha=-3.0, normalize=True)},
    "directional": {"split_criterion": "directional"},
    # A gain in units of its own breaks ties.
    "directional, smoothed": {"split_criterion": Directional(boltzmann_alpha=2.0)},
    "directional, agreeing": {"split_criterion": Directional(min_agreement=0.6)},
    "time_robust": {"split_criterion": "time_robust"},
    "time_robust, mean": {
        "split_criterion": TimeRobust("mean", min_impurity_decrease=0.001)
    },
    "invariant": {"split_criterion": Invariant(penalty=0.3)},
    "invariant, changing rate": {
        "split_criterion": Invariant(statistic="changing_rate"),
        "min_impurity_decrease": 0.001,
    },
    "vrex": {"split_criterion": VREx(penalty=0.4)},
    "held_out": {"split_criterion": "held_out"},
    "held_out, normalised": {"split_criterion": HeldOut(normalize=True)},
    "era, sharing": {"split_criterion": "era"} | SHARED,
    "directional, sharing": {"split_criterion": "directional"} | SHARED,
    "time_robust, sharing": {"split_criterion": "time_robust"} | SHARED,
    "invariant, sharing": {
        "split_criterion": Invariant(penalty=3.0), "min_gain_share": 0.9,
    },
    "blend": {
        "split_criterion": Blend(
            {"gain": 0.2, "era": 1.0, Invariant(penalty=0.3): 0.5}, normalize=False
        ),
    },
    "blend, normalised": {
        "split_criterion": {Era(-3.0): 1.0, "directional": 0.1, VREx(1.0): 0.5},
    },
}  # fmt: skip

# Those by which a split has to have a share of the largest gain.
SHARING = [name for name in CRITERIA if "sharing" in name]

# For a target of 0 and 1 only.
RATIO = {"split_criterion": Invariant(penalty=0.1, statistic="ratio")} | COVER_ALL

# By default, all eras have to be on both sides of a split.
for _name, _criterion in CRITERIA.items():
    if _name != "gain":
        _others = SHARED if "held_out" in _name else COVER_ALL
        CRITERIA[_name] = _others | _criterion

# Those that look at eras, and so are not found by scikit-learn's own splitter.
ERA_CRITERIA = {name: CRITERIA[name] for name in CRITERIA if name != "gain"}
# Those that refuse a split without all eras on both sides.
COVERING = {
    name: CRITERIA[name]
    for name in ERA_CRITERIA
    if "held_out" not in name and name not in SHARING
}

# Names that `split_criterion` takes, and one blend.
NAMES = ["gain", "era", "directional", "time_robust", "invariant", "vrex", "held_out"]
BLEND = {"era": 1.0, "gain": 0.5}
