"""The split criteria: one table that every grid of the tests reads.

A new criterion enters `CRITERIA`; whatever should hold of every criterion then holds of
it, or a test fails.
"""

import math

from sklearn_era.criteria import (
    Blend,
    Directional,
    Era,
    Invariant,
    TimeRobust,
    VREx,
)

# The papers' rule, and the estimators' own.
COVER_ALL = {"min_era_coverage": 1.0, "min_gain_share": 0.0}
SHARED = {"min_era_coverage": 0.1, "min_gain_share": 0.5}

# Each way in which eras are compared.
CRITERIA = {
    "gain": "gain", "era": "era", "era, smoothed": Era(boltzmann_alpha=-1.0),
    "era, worst": Era(boltzmann_alpha=-math.inf),
    # Sums over eras suffice, with gains normalised.
    "era, normalised mean": Era(normalize=True),
    "era, normalised": Era(boltzmann_alpha=-3.0, normalize=True),
    "directional": "directional",
    # A gain in units of its own breaks ties.
    "directional, smoothed": Directional(boltzmann_alpha=2.0),
    "directional, agreeing": Directional(min_agreement=0.6, rule="every_era"),
    "time_robust": "time_robust",
    "time_robust, mean": TimeRobust("mean", min_impurity_decrease=0.001),
    "time_robust, smoothed": TimeRobust(2.0, min_impurity_decrease=0.001),
    "invariant": Invariant(penalty=0.3),
    "invariant, changing rate": Invariant(statistic="changing_rate"),
    "vrex": VREx(penalty=0.4),
    "era, sharing": "era", "directional, sharing": "directional",
    "time_robust, sharing": "time_robust", "invariant, sharing": Invariant(penalty=3.0),
    "blend": Blend(
        {"gain": 0.2, "era": 1.0, Invariant(penalty=0.3): 0.5}, False, rule="every_era"
    ),
    "blend, normalised": {Era(-3.0): 1.0, "directional": 0.1, VREx(1.0): 0.5},
}  # fmt: skip
# By default, all eras have to be on both sides of a split.
_LIMITS = dict.fromkeys(CRITERIA, COVER_ALL) | {
    "gain": {},
    # The criterion's own rule overrides these.
    "directional, agreeing": SHARED, "blend": SHARED,
    "invariant, changing rate": COVER_ALL | {"min_impurity_decrease": 0.001},
    "era, sharing": SHARED, "directional, sharing": SHARED,
    "time_robust, sharing": SHARED,
    "invariant, sharing": COVER_ALL | {"min_gain_share": 0.9},
}  # fmt: skip
CRITERIA = {
    name: _LIMITS[name] | {"split_criterion": criterion}
    for name, criterion in CRITERIA.items()
}
# Those by which a split has to have a share of the largest gain.
SHARING = [name for name in CRITERIA if "sharing" in name]
# For a target of 0 and 1 only.
RATIO = {"split_criterion": Invariant(penalty=0.1, statistic="ratio")} | COVER_ALL
# For rows without weights, and losses whose hessians are 1, only.
DEVIATIONS = {
    f"time_robust, {name} deviation": COVER_ALL
    | {"split_criterion": TimeRobust(x, least, "standard_deviation")}
    for name, x, least in [
        ("worst", "max", 0.0), ("mean", "mean", 0.001), ("smoothed", 3.0, 0.001),
    ]
}  # fmt: skip
# Those that look at eras, and so are not found by scikit-learn's own splitter.
ERA_CRITERIA = {name: CRITERIA[name] for name in CRITERIA if name != "gain"}
# Those that refuse a split without all eras on both sides.
COVERING = {name: CRITERIA[name] for name in ERA_CRITERIA if name not in SHARING}
# Names that `split_criterion` takes, and one blend.
NAMES = ["gain", "era", "directional", "time_robust", "invariant", "vrex"]
BLEND = {"era": 1.0, "gain": 0.5}
