"""Weights and intercepts of eras: the values of `era_weighting` and `era_effects`."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from ._parameter_object import ParameterObject


class Recency(ParameterObject):
    """Weigh an era half as much with each half-life of its age.

    The last era in the order of the labels has age 0, the one before it 1, and era j
    has the weight ``0.5 ** (age_j / half_life)`` per row. Such weights multiply
    `sample_weight`, and the sum of all weights stays the same.

    Parameters
    ----------
    half_life : float
        The half-life, in eras; greater than 0.

    Examples
    --------
    >>> from sklearn_era.effects import Recency
    >>> Recency(half_life=8)
    Recency(half_life=8)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "half_life": [Interval(Real, 0, None, closed="neither")]
    }

    def __init__(self, half_life: float) -> None:
        self.half_life = half_life


class GroupDRO(ParameterObject):
    """Weigh an era the more the more it loses, after the largest loss of an era.

    Algorithm 1 of [1]_: before each iteration the weight of an era is multiplied by
    ``exp(step_size * loss_j)`` and all are scaled to a mean of 1, where loss_j is the
    mean loss of the era's training rows, by `sample_weight`: half of the squared error
    or deviance, the log loss. Bins are those of `sample_weight` alone, and so are
    scores in training by a `scoring` other than 'loss'; by 'loss' they are of the rows
    as they were weighed last. Validation rows have no weights of eras. A warm start
    goes on with the weights it had. For boosters: the trees of a forest know no loss.

    Parameters
    ----------
    step_size : float, default=0.1
        In units of 1 / loss and so of the target, 0 or more. 0 weighs all eras as their
        rows do, and is the plain fit.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "step_size": [Interval(Real, 0, None, closed="left")]
    }

    def __init__(self, step_size: float = 0.1) -> None:
        self.step_size = step_size


class Intercepts(ParameterObject):
    """Give each era an intercept, beside which the trees are grown.

    The raw prediction has an intercept of each training era, of each class where there
    are more than two. Before each iteration all intercepts take a Newton step, and are
    shrunk to 0 by how well their rows determine them [1]_, or smoothed. What is
    predicted for is the next era, by the forecast of its intercept, or an era given to
    ``predict``. Where early stopping holds out the last eras, theirs are estimated
    after the last tree, and are in the forecast.

    Parameters
    ----------
    forecast : {'last', 'auto', 'mean', 'exponential'}, default='last'
        What the intercept of an era that is not known is taken for: the mean of the
        last `n_eras` intercepts in the order of the labels, the mean of all, or a mean
        whose weights halve with each `n_eras` eras. Groups without an order, such as
        hospitals, need 'mean'. With 'auto', intercepts are a level that is estimated
        and tested, and may be none: see Notes.

    n_eras : int, default=3
        How many eras 'last' takes, or the half-life of 'exponential'. The others take
        all.

    Notes
    -----
    With 'auto', era j of the values of eras, whose noise is known, is ::

        t_j = c_g(j) + b (j - j0) + a_j + u_j + e_j,   a_j = phi a_(j-1) + N(0, q)

    and its intercept is the mean of the trend and of a_j given all eras, beside the
    mean of c. The era's own shock u_j is left to the trees, and so are the constants c
    of eras that are alike in all columns that are constant within eras: a holiday
    keeps its effect. Variances and phi are on a grid, of the largest restricted
    likelihood [2]_; they are estimated before the first tree and after 4, 16, 64 and
    so on. The likelihood has to be larger than without a level by 2 in logarithms, at
    least six eras have to be comparable with earlier ones, and forecasts of each era
    from those before it have to have smaller squared errors with the level than
    without, by more than an autocorrelation-consistent standard error [3]_. Otherwise
    nothing is carried on; without a level, the model is the plain one. Eras beyond
    training that are given to ``predict`` have the forecast of their own horizon, if
    labels are numbers, dates or periods in regular steps: a decays by phi, and each
    step of the trend is 0.8 of the one before.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "forecast": [StrOptions({"auto", "last", "mean", "exponential"})],
        "n_eras": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, forecast: str = "last", n_eras: int = 3) -> None:
        self.forecast = forecast
        self.n_eras = n_eras

    @property
    def _is_ordered(self) -> bool:
        """Whether the forecast depends on the order of the eras."""
        return self.forecast != "mean"

    @property
    def _estimates(self) -> bool:
        """Whether the forecast is one of estimated levels, not of weights of eras."""
        return self.forecast == "auto"

    def _forecast_weights(self, has_weight: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the weight of each era's intercept in the next era's.

        Parameters
        ----------
        has_weight : ndarray of shape (n_eras,), dtype=bool
            Whether each era has weight in training, in the order of the labels.

        Returns
        -------
        weights : ndarray of shape (n_eras,)
            They add up to 1, and are 0 for eras without weight.
        """
        n_eras = int(has_weight.sum())
        if self.forecast == "exponential":
            weights = half_life_weights(n_eras, self.n_eras)
        else:
            n_last = self.n_eras if self._is_ordered else n_eras
            weights = (np.arange(n_eras) >= n_eras - n_last).astype(np.float64)
        of_all = np.zeros(has_weight.size)
        of_all[has_weight] = weights / weights.sum()
        return of_all


def half_life_weights(n_eras: int, half_life: float) -> NDArray[np.float64]:
    """``0.5 ** (age / half_life)`` of each era, the last one's age being 0."""
    return 0.5 ** (np.arange(n_eras)[::-1] / half_life)


def intercepts_of(estimator: Any) -> Intercepts | None:
    """Return what `era_effects` of an estimator stands for."""
    effects = estimator.era_effects
    return Intercepts() if effects == "intercept" else effects


__all__ = ["GroupDRO", "Intercepts", "Recency"]
