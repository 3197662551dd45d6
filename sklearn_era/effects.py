"""Define objects to pass as `era_weighting`, for the weights of eras, and as
`era_effects`, for the intercepts of eras.
"""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from ._parameter_object import ParameterObject, parameter

_FORECASTS = {"auto", "last", "mean", "exponential"}


@dataclass(eq=False, repr=False)
class Recency(ParameterObject):
    """Halve the weight of an era with each half-life of its age.

    The last era in the order of the labels has age 0, the one before it 1, and era j
    has the weight ``0.5 ** (age_j / half_life)`` per row. These weights multiply
    `sample_weight`, and are scaled to keep the sum of all weights.

    Parameters
    ----------
    half_life : float
        Half-life in eras, greater than 0.

    Examples
    --------
    >>> from sklearn_era.effects import Recency
    >>> Recency(half_life=8)
    Recency(half_life=8)
    """

    half_life: float = parameter([Interval(Real, 0, None, closed="neither")])


@dataclass(eq=False, repr=False)
class GroupDRO(ParameterObject):
    """Weigh an era more if its loss is larger, to minimise the largest loss of an era.

    Algorithm 1 of [1]_: before each iteration the weight of an era is multiplied by
    ``exp(step_size * loss_j)``, and all weights are scaled to a mean of 1. loss_j is
    the mean loss of the era's training rows, weighted by `sample_weight`: half the
    squared error, half the deviance, or the log loss. Bins depend on `sample_weight`
    alone, and so do training scores unless `scoring` is 'loss', which uses the latest
    weights of eras. Validation rows are not weighted by era. A warm start continues
    with the latest weights. This weighting is for boosters only, as trees of a forest
    do not depend on earlier losses.

    Parameters
    ----------
    step_size : float, default=0.1
        Size of the steps, 0 or more. Its unit is 1 / loss, which depends on the
        target's unit. With 0, the weight of an era is the sum of the weights of its
        rows, as with ``era_weighting="rows"``.

    References
    ----------
    .. [1] S. Sagawa, P. W. Koh, T. B. Hashimoto, P. Liang (2020), Distributionally
       Robust Neural Networks for Group Shifts. :arxiv:`1911.08731`

    Examples
    --------
    >>> from sklearn_era.effects import GroupDRO
    >>> GroupDRO(step_size=0.5)
    GroupDRO(step_size=0.5)
    """

    step_size: float = parameter([Interval(Real, 0, None, closed="left")], default=0.1)


@dataclass(eq=False, repr=False)
class Intercepts(ParameterObject):
    """Give each era an intercept, estimated along with the trees.

    The raw prediction has an intercept for each training era, and for each class if
    there are more than two. Before each iteration, all intercepts take a Newton step
    and are then smoothed (if `forecast` is 'auto') or shrunk towards 0. An intercept
    with a smaller variance is shrunk less [1]_; variances are by `sample_weight`,
    without the factors of `era_weighting`. Predictions use the forecast of the next
    era's intercept, or the intercept of an era passed to ``predict``. If early stopping
    holds out the last eras, their intercepts are estimated after the last tree, and
    enter the forecast; the noise of their rows is pooled with the noise of training
    rows, which counts for 10 degrees of freedom.

    Parameters
    ----------
    forecast : {'last', 'auto', 'mean', 'exponential'}, default='last'
        Forecast of the intercept of unknown eras. 'last' is the mean of the last
        `n_eras` intercepts in the order of the labels, 'mean' is the mean of all
        intercepts, and 'exponential' is a mean whose weights halve every `n_eras` eras.
        With 'auto', intercepts follow a level that is estimated and tested, and may be
        dropped: see Notes. Groups without an order, such as hospitals, need 'mean'.
    n_eras : int, default=3
        Number of eras that 'last' averages, or half-life in eras of 'exponential'.
    horizon : int, default=1
        With 'auto', the number of eras from the last era with weight to the era of rows
        that are predicted without an era. The other forecasts do not depend on it.

    Notes
    -----
    With two columns of eras, times and groups, the raw prediction of a row is the sum
    over trees, plus the intercept of its time, as above, plus the intercept of its
    group, which is shrunk towards 0 [1]_. Intercepts of groups take a step first, then
    intercepts of times. New groups have the intercept 0. Criteria and early stopping
    use the times alone. Columns are times and groups if `era_order` (see
    :class:`~sklearn_era.model_selection.EraSplit`) is a pair, or if it is 'auto' and
    `forecast` is not 'mean'; otherwise the combinations of both columns are the eras.

    With 'auto', the value t_j of era j, whose noise e_j has a known variance, is ::

        t_j = c_g(j) + b (j - j0) + a_j + u_j + e_j,   a_j = phi a_(j-1) + N(0, q)

    where b is the slope of a trend, j0 the middle of the eras, and N(0, q) normal noise
    of variance q. The era's intercept is the expectation of b (j - j0) + a_j given all
    eras, plus, if the level is carried forward (see below), the mean of c. Trees
    explain the shock u_j of an era, and the constant c of its group g. A group is all
    eras that agree in the columns that are constant within eras; so a holiday keeps its
    effect. If more than 64 groups have several eras, as with the temperature of a day,
    the bins of such columns are made wider.
    Variances and phi have the largest restricted likelihood on a grid [2]_, and are
    estimated before the first tree and after 4, 16, 64 trees and so on. If ``phi = 0``
    is likeliest, a_j is as independent as u_j. Only the variance of their sum can then
    be estimated, of which each has half. A level is carried forward if its
    log-likelihood exceeds the one without a level by 2, at least six eras are
    comparable with earlier ones, and forecasts of each era from earlier eras have
    smaller squared errors with the level than without, by more than an
    autocorrelation-consistent standard error [3]_. Otherwise the forecast is 0; without
    any level, all intercepts are 0, too. Eras beyond training that are passed to
    ``predict`` get the forecast of their own horizon, if labels are numbers, dates,
    periods, categories, or text that holds them, in regular steps. With each era of the
    horizon, a is multiplied by phi, and each step of the trend is 0.8 times the step
    before.

    References
    ----------
    .. [1] B. Efron, C. Morris (1975), Data analysis using Stein's estimator and its
       generalizations. Journal of the American Statistical Association 70, 311-319.
    .. [2] D. A. Harville (1977), Maximum likelihood approaches to variance component
       estimation. Journal of the American Statistical Association 72, 320-338.
    .. [3] W. K. Newey, K. D. West (1987), A simple, positive semi-definite,
       heteroskedasticity and autocorrelation consistent covariance matrix.
       Econometrica 55, 703-708.

    Examples
    --------
    >>> from sklearn_era.effects import Intercepts
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> HistGradientBoostingRegressor(era_effects=Intercepts(forecast="auto"))
    HistGradientBoostingRegressor(era_effects=Intercepts(forecast='auto'))
    """

    forecast: str = parameter([StrOptions(_FORECASTS)], default="last")
    n_eras: int = parameter([Interval(Integral, 1, None, closed="left")], default=3)
    horizon: int = parameter([Interval(Integral, 1, None, closed="left")], default=1)

    @property
    def _is_ordered(self) -> bool:
        """Return whether the forecast depends on the order of eras."""
        return self.forecast != "mean"

    @property
    def _estimates(self) -> bool:
        """Return whether the forecast uses estimated levels, not a weighted mean."""
        return self.forecast == "auto"

    def _forecast_weights(self, n_eras: int) -> NDArray[np.float64]:
        """Return the weight of each era's intercept in the forecast; they sum to 1."""
        if self.forecast == "exponential":
            weights = half_life_weights(n_eras, self.n_eras)
        else:
            n_last = self.n_eras if self._is_ordered else n_eras
            weights = (np.arange(n_eras) >= n_eras - n_last).astype(np.float64)
        return weights / weights.sum()


def half_life_weights(n_eras: int, half_life: float) -> NDArray[np.float64]:
    """Return each era's weight ``0.5 ** (age / half_life)``; the last era has age 0."""
    return 0.5 ** (np.arange(n_eras)[::-1] / half_life)


def intercepts_of(estimator: BaseEstimator) -> Intercepts | None:
    """Return an estimator's `Intercepts`, or None if it has no intercepts of eras."""
    effects = estimator.era_effects
    return Intercepts() if effects == "intercept" else effects


def fitted_intercepts(estimator: BaseEstimator) -> Intercepts:
    """Return the `Intercepts` that the estimator's fit used, whatever its parameters
    are now. For a model of an older version, which did not store them, use its
    parameters.
    """
    kept = getattr(estimator, "_era_effects", None)
    return kept or intercepts_of(estimator) or Intercepts()


__all__ = ["GroupDRO", "Intercepts", "Recency"]
