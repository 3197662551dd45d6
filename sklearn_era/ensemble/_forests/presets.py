"""Define the forests of the papers: era forests with the papers' defaults."""

from typing import Any

from ...criteria import Invariant, TimeRobust
from .._parameter_table import stores_parameters
from .estimators import EraForestClassifier, EraForestRegressor

# The defaults of Moneda's package, time-robust-forest 0.1.14, except the number of
# trees, there 5. Its max_features="auto" is the square root of the number of features,
# drawn for each split, its period_criterion="avg" the mean over periods, and its
# bootstrap draws rows regardless of their period. It admits splits that leave the
# impurity unchanged; ours do not. The thesis has no defaults: it uses the trees and
# depth of a tuned random forest, and fewer rows per period, below 25 where it is best.
_TIME_ROBUST: dict[str, Any] = {
    "split_criterion": TimeRobust(aggregation="mean", rule="every_era"),
    "max_features": "sqrt", "max_depth": 5, "min_samples_leaf": 1,
    "min_samples_per_era": 100,
}  # fmt: skip

# Liao et al., sections 4 and 5.1: 50 trees, rows drawn within each environment, all
# features at each split, the largest penalty that they try.
_INVARIANT: dict[str, Any] = {
    "n_estimators": 50, "split_criterion": Invariant(penalty=10.0, rule="every_era"),
    "bootstrap": "within_eras", "min_samples_leaf": 1,
}  # fmt: skip

# The paper's penalty for classes is 10, on an impurity that is twice the squared error.
_RATIO = Invariant(penalty=5.0, statistic="ratio", rule="every_era")


class TimeRobustForestRegressor(EraForestRegressor):
    """A time robust forest for regression, as in Moneda's package (2021).

    Trees only use splits with at least 100 rows of every era on both sides, and choose
    the one with the smallest variance, on average over eras. The regressor of
    Moneda's package ranks splits by standard deviations times numbers of rows; in
    version 0.1.14, its fit fails. For your own data, begin with
    ``EraForestRegressor(split_criterion="time_robust")``, whose trees also split nodes
    that lack an era.

    Parameters and attributes are those of :class:`EraForestRegressor`; the defaults
    that differ are
    ``split_criterion=TimeRobust(aggregation="mean", rule="every_era")``,
    ``max_features="sqrt"``, ``max_depth=5``, ``min_samples_leaf=1`` and
    ``min_samples_per_era=100``.

    Examples
    --------
    >>> from sklearn_era.ensemble import TimeRobustForestRegressor
    >>> TimeRobustForestRegressor(min_samples_per_era=20).max_depth
    5
    """

    __init__ = stores_parameters(EraForestRegressor.__init__, _TIME_ROBUST)


class TimeRobustForestClassifier(EraForestClassifier):
    """A time robust forest for classification, as in Moneda's package (2021).

    Trees only use splits with at least 100 rows of every era on both sides, and choose
    the one with the smallest Gini impurity, on average over eras. For your own data,
    begin with ``EraForestClassifier(split_criterion="time_robust")``.

    Parameters and attributes are those of :class:`EraForestClassifier`, with the
    defaults of :class:`TimeRobustForestRegressor`.
    """

    __init__ = stores_parameters(EraForestClassifier.__init__, _TIME_ROBUST)


class InvariantForestRegressor(EraForestRegressor):
    """An invariant random forest for regression, as in the paper (Liao et al. 2024).

    Trees penalise splits whose effect differs between eras, draw rows within each era,
    and consider all features at each split. For your own data, begin with
    ``EraForestRegressor(split_criterion="invariant")``, whose trees also split nodes
    that lack an era.

    Parameters and attributes are those of :class:`EraForestRegressor`; the defaults
    that differ are ``n_estimators=50``,
    ``split_criterion=Invariant(penalty=10.0, rule="every_era")``
    (``statistic="changing_rate"`` has the paper's equations to the letter),
    ``bootstrap="within_eras"`` and ``min_samples_leaf=1``.

    Examples
    --------
    >>> from sklearn_era.ensemble import InvariantForestRegressor
    >>> InvariantForestRegressor(max_depth=20).bootstrap
    'within_eras'
    """

    __init__ = stores_parameters(EraForestRegressor.__init__, _INVARIANT)


class InvariantForestClassifier(EraForestClassifier):
    """An invariant random forest for two classes, as in the paper (Liao et al. 2024).

    The forest is like :class:`InvariantForestRegressor`, with the paper's penalty for
    classes. For each era, take the share of the positive rows that go left, and divide
    it by the share of the negative rows that go left; the penalty is on the variation
    of this ratio over eras. The ratio needs two classes; for more, pass
    ``split_criterion=Invariant(penalty=10.0, rule="every_era")``. For your own data,
    begin with ``EraForestClassifier(split_criterion="invariant")``.

    Parameters and attributes are those of :class:`EraForestClassifier`, with the
    defaults of :class:`InvariantForestRegressor` except ``penalty=5.0`` and
    ``statistic="ratio"`` of the criterion. A penalty of 5 corresponds to 10 in the
    paper, whose impurity is twice the squared error.
    """

    __init__ = stores_parameters(
        EraForestClassifier.__init__, _INVARIANT | {"split_criterion": _RATIO}
    )
