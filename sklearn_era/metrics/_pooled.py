"""Pool scores by the random-effects meta-analysis of independent eras."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import chi2, norm, t

from ._forecast_input import check_level
from ._spread import Link, least_errors

Array = NDArray[np.float64]

_N_POINTS = 50  # among which the likelihood has its maximum


@dataclass(frozen=True, eq=False)
class PooledScore:
    """The mean of scores, by a random-effects meta-analysis of independent eras.

    It is made by :class:`EraScoreForecast`. Names and numbers are those of R's metafor,
    ``rma(score, sei=standard_error, test="knha")``, with the variance between eras by
    restricted maximum likelihood (Viechtbauer 2005). With `bounds`, `standard_error`
    and `tau` are on a scale without bounds, such as log odds.

    Attributes
    ----------
    mean : float
        The pooled score; a median if the forecast has `bounds`.
    standard_error : float
        The standard error of the mean, by the normal distribution.
    tau, tau2 : float
        The standard deviation between eras, and its square.
    Q, p_value, I2 : float
        Cochran's Q; its p-value under the hypothesis that eras do not differ; and the
        share of the variance of scores that is between eras, in % (Higgins, Thompson
        2002). All are NaN without standard errors.
    n_eras : int
        The number of scores.
    weight, shrunken : ndarray of shape (n_eras,)
        The shares of eras in the mean; and scores shrunken to the mean by their errors
        (best linear unbiased predictions, Robinson 1991).

    Examples
    --------
    >>> from sklearn_era.metrics import EraScoreForecast
    >>> areas, errors = [0.71, 0.78, 0.74, 0.69], [0.03, 0.02, 0.03, 0.02]
    >>> EraScoreForecast().fit(areas, errors).pooled_
    PooledScore of 4 eras: mean 0.7307, 95 % from 0.6652 to 0.7961; tau 0.03556, \
I2 68.5 %, Q 10.8 (p = 0.013)
    """

    mean: float
    standard_error: float
    tau: float
    tau2: float
    I2: float
    Q: float
    p_value: float
    n_eras: int
    weight: Array
    shrunken: Array
    _link: Link
    _knha: float  # the standard error by the scores' own spread
    _values: Array  # the scores and their errors, on the scale of the link
    _errors: Array

    def interval(
        self, level: float = 0.95, *, test: str = "knha"
    ) -> tuple[float, float]:
        """Return a confidence interval of the mean.

        Parameters
        ----------
        level : float, default=0.95
            The probability that the interval contains the mean.
        test : {'knha', 'z'}, default='knha'
            'knha' uses Student's t and the spread of the scores (Hartung, Knapp 2001);
            'z' uses `standard_error` and the normal distribution, and gives intervals
            that are too narrow for few eras.

        Returns
        -------
        low, high : float
            Both ends.
        """
        if test not in ("knha", "z"):
            raise ValueError(f"test must be 'knha' or 'z'; got {test!r}.")
        share = (1 + check_level(level)) / 2
        half = float(norm.ppf(share)) * self.standard_error
        if test == "knha":
            half = float(t.ppf(share, self.n_eras - 1)) * self._knha
        center = float(self._link(self.mean))
        low, high = self._link.inverse(center + half * np.array([-1, 1])).tolist()
        return low, high

    def tau_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval of `tau`: the values at which Cochran's Q is
        neither too large nor too small (Viechtbauer 2007).

        Parameters
        ----------
        level : float, default=0.95
            The probability that the interval contains `tau` of all possible eras.

        Returns
        -------
        low, high : float
            Both ends, like `tau` on the scale of `bounds`.
        """
        tail, freedom = (1 - check_level(level)) / 2, self.n_eras - 1
        if not (unit := float(np.ptp(self._values))) > 0:
            return 0.0, 0.0
        values, squares = self._values / unit, (self._errors / unit) ** 2

        def excess(tau: float, most: float) -> float:
            weights = 1 / (squares + tau**2)
            mean = np.average(values, weights=weights)
            return float(weights @ (values - mean) ** 2 - most)

        ends = []
        for most in (chi2.isf(tail, freedom), chi2.ppf(tail, freedom)):
            high = 1.0
            while excess(high, most) > 0:
                high *= 2
            is_above = excess(0.0, most) > 0
            ends.append(unit * brentq(excess, 0.0, high, (most,)) if is_above else 0.0)
        return ends[0], ends[1]

    def __repr__(self) -> str:
        low, high = self.interval()
        return (
            f"PooledScore of {self.n_eras} eras: mean {self.mean:.4g}, 95 % from "
            f"{low:.4g} to {high:.4g}; tau {self.tau:.4g}, I2 {self.I2:.1f} %, "
            f"Q {self.Q:.1f} (p = {self.p_value:.2g})"
        )


def pool(scores: Array, errors: Array, link: Link) -> PooledScore:
    """Return a `PooledScore` of scores on the link's scale, weighted by errors."""
    n, has_errors, errors = scores.size, errors.any(), least_errors(scores, errors)
    unit, origin = errors.max(), scores.mean()
    squares, values = (errors / unit) ** 2, (scores - origin) / unit

    def solve(tau2: float) -> tuple[Array, float, float]:
        weights = 1 / (squares + tau2)
        mean = float(weights @ values / weights.sum())
        return weights, mean, float(weights @ (values - mean) ** 2)

    def deviance(tau: float) -> float:
        weights, _, q = solve(tau**2)
        return np.log(weights.sum()) - np.log(weights).sum() + q

    most = 5 * values.std(ddof=1) + 1e-6
    grid = np.linspace(0, most, _N_POINTS)
    place = int(np.argmin([deviance(x) for x in grid]))
    ends = grid[max(0, place - 1)], grid[min(place + 1, grid.size - 1)]
    best = minimize_scalar(
        deviance, bounds=ends, method="bounded", options={"xatol": 1e-9 * most}
    )
    tau2 = float(best.x**2) if best.fun < deviance(0.0) else 0.0
    (plain, _, q), (weights, mean, rest) = solve(0.0), solve(tau2)
    total = plain.sum()
    typical = (n - 1) * total / (total**2 - plain @ plain)
    shrunken = mean + tau2 / (tau2 + squares) * (values - mean)
    error = unit / np.sqrt(weights.sum())
    return PooledScore(
        mean=float(link.inverse(origin + unit * mean)), standard_error=float(error),
        tau=float(unit * tau2**0.5), tau2=float(unit**2 * tau2),
        I2=float(100 * tau2 / (tau2 + typical)) if has_errors else np.nan,
        Q=q if has_errors else np.nan,
        p_value=float(chi2.sf(q, n - 1)) if has_errors else np.nan,
        n_eras=n, weight=weights / weights.sum(),
        shrunken=link.inverse(origin + unit * shrunken),
        _link=link, _knha=float(error * np.sqrt(rest / (n - 1))),
        _values=scores, _errors=errors,
    )  # fmt: skip
