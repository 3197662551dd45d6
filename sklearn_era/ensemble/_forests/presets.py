"""The forests of the papers: era forests whose defaults are theirs."""

from typing import Any

from ...criteria import Invariant, TimeRobust
from .._parameter_table import stores_parameters
from .estimators import EraForestClassifier, EraForestRegressor

# Moneda's package, time-robust-forest 0.1.14: its defaults, but for the number of
# trees, which there are 5. Its max_features="auto" is the root of the number of
# features, drawn for each split, its period_criterion="avg" the mean over periods, and
# its bootstrap draws rows whatever their period. A split that leaves the impurity where
# it was is admitted there and not here. The thesis has no defaults: it takes trees and
# depth of a tuned random forest, and fewer rows of a period, below 25 where it is best.
_TIME_ROBUST: dict[str, Any] = {
    "split_criterion": TimeRobust(aggregation="mean"),
    "max_features": "sqrt",
    "max_depth": 5,
    "min_samples_leaf": 1,
    "min_samples_per_era": 100,
    "min_era_coverage": 1.0,
    "min_gain_share": 0.0,
}

# Liao et al., sections 4 and 5.1: 50 trees, rows drawn within each environment, all
# features at each split, the largest of the penalties that they try.
_INVARIANT: dict[str, Any] = {
    "n_estimators": 50,
    "split_criterion": Invariant(penalty=10.0),
    "bootstrap": "within_eras",
    "min_samples_leaf": 1,
    "min_era_coverage": 1.0,
    "min_gain_share": 0.0,
}

# The paper's penalty for classes is 10, of an impurity that is twice the squared error.
_INVARIANT_RATIO = {"split_criterion": Invariant(penalty=5.0, statistic="ratio")}


class TimeRobustForestRegressor(EraForestRegressor):
    """A time robust forest for regression, as in Moneda's package (2021).

    Trees take the split with the least variance on average over eras, and leave at
    least 100 rows of each era on both sides. The package's regressor, which cannot be
    fitted in version 0.1.14, ranks splits by standard deviations times rows. For data
    of your own, begin with ``EraForestRegressor(split_criterion="time_robust")``, whose
    defaults end no tree for want of an era.

    The parameters and attributes are those of :class:`EraForestRegressor`. Defaults
    that are not its own are ``split_criterion=TimeRobust(aggregation="mean")``,
    ``max_features="sqrt"``, ``max_depth=5``, ``min_samples_leaf=1``,
    ``min_samples_per_era=100``, ``min_era_coverage=1.0`` and ``min_gain_share=0.0``.

    Examples
    --------
    >>> from sklearn_era.ensemble import TimeRobustForestRegressor
    >>> TimeRobustForestRegressor(min_samples_per_era=20).max_depth
    5
    """

    __init__ = stores_parameters(EraForestRegressor.__init__, _TIME_ROBUST)


class TimeRobustForestClassifier(EraForestClassifier):
    """A time robust forest for classification, as in Moneda's package (2021).

    Trees take the split with the least Gini impurity on average over eras, and leave at
    least 100 rows of each era on both sides. For data of your own, begin with
    ``EraForestClassifier(split_criterion="time_robust")``.

    The parameters and attributes are those of :class:`EraForestClassifier`, with the
    defaults of :class:`TimeRobustForestRegressor`.
    """

    __init__ = stores_parameters(EraForestClassifier.__init__, _TIME_ROBUST)


class InvariantForestRegressor(EraForestRegressor):
    """An invariant random forest for regression, as in the paper (Liao et al. 2024).

    Trees pay for splits whose effect differs between eras, on rows drawn within each
    era, and look at all features at each split. For data of your own, begin with
    ``EraForestRegressor(split_criterion="invariant")``, whose defaults end no tree for
    want of an era.

    The parameters and attributes are those of :class:`EraForestRegressor`. Defaults
    that are not its own are ``n_estimators=50``,
    ``split_criterion=Invariant(penalty=10.0)`` (the equations of the paper to the
    letter are ``statistic="changing_rate"``), ``bootstrap="within_eras"``,
    ``min_samples_leaf=1``, ``min_era_coverage=1.0`` and ``min_gain_share=0.0``.

    Examples
    --------
    >>> from sklearn_era.ensemble import InvariantForestRegressor
    >>> InvariantForestRegressor(max_depth=20).bootstrap
    'within_eras'
    """

    __init__ = stores_parameters(EraForestRegressor.__init__, _INVARIANT)


class InvariantForestClassifier(EraForestClassifier):
    """An invariant random forest for two classes, as in the paper (Liao et al. 2024).

    As :class:`InvariantForestRegressor`, with the paper's penalty for classes: how much
    the ratio of the rates at which a split passes positive and negative rows to the
    left differs between eras. That compares two classes; for more, pass
    ``split_criterion=Invariant(penalty=10.0)``. For data of your own, begin with
    ``EraForestClassifier(split_criterion="invariant")``.

    The parameters and attributes are those of :class:`EraForestClassifier`, with the
    defaults of :class:`InvariantForestRegressor` but for
    ``split_criterion=Invariant(penalty=5.0, statistic="ratio")``, which is 10 in the
    paper, whose impurity is twice the squared error.
    """

    __init__ = stores_parameters(
        EraForestClassifier.__init__, _INVARIANT | _INVARIANT_RATIO
    )


__all__ = [
    "InvariantForestClassifier",
    "InvariantForestRegressor",
    "TimeRobustForestClassifier",
    "TimeRobustForestRegressor",
]
