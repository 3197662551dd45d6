"""How scores of eras are spread, beside the errors with which each was measured."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import diags
from scipy.special import expit, logsumexp, ndtr
from scipy.stats import chi2

Array = NDArray[np.float64]

# Ways to relate eras: the correlation of neighbours, and the variance of a slope, by
# the spread and by the standard deviation of places; and how likely it is beforehand.
INDEPENDENT = {(0.0, 0.0): 1.0}
RELATED = {(0.0, 0.0): 0.5, (0.0, 1.0): 0.15, (0.0, 30.0): 0.1}
RELATED |= {(rho, 0.0): 0.05 for rho in (0.3, 0.5, 0.7, 0.85, 0.95)}
_N_POINTS = 400  # quantiles of chi-squared, and spreads to integrate over
_LEAST_ERROR = 1e-3  # in place of 0, in standard deviations of the scores


class Link(NamedTuple):
    """A scale on which scores have no bounds: log odds, or logarithms."""

    low: float
    high: float

    def __call__(self, scores: Any) -> Any:
        if not np.isfinite(self).any():
            return scores
        above = np.log(scores - self.low) if np.isfinite(self.low) else 0.0
        return above - (np.log(self.high - scores) if np.isfinite(self.high) else 0.0)

    def slope(self, scores: Any) -> Any:
        slope = 1 / (scores - self.low) + 1 / (self.high - scores)
        return slope if np.isfinite(self).any() else np.ones_like(scores)

    def inverse(self, value: float) -> float:
        if np.isfinite(self).all():
            return self.low + (self.high - self.low) * float(expit(value))
        if np.isfinite(self.low):
            return self.low + float(np.exp(value))
        return self.high - float(np.exp(-value)) if np.isfinite(self.high) else value


def make_link(bounds: Any, scores: Array) -> Link:
    """Return the scale of bounds, within which scores have to be."""
    ends = (None, None) if bounds is None else tuple(bounds)
    if len(ends) == 2:
        low, high = ends
        link = Link(-np.inf if low is None else low, np.inf if high is None else high)
        if link.low < scores.min() and scores.max() < link.high:
            return link
    raise ValueError(
        f"bounds={bounds!r} must be two ends of a range, such as (0, 1) or (None, 1), "
        f"with all scores between them, which go from {scores.min():.6g} to "
        f"{scores.max():.6g}: pass bounds=None, or leave an era out by a score of NaN."
    )


class Mixture(NamedTuple):
    """A mixture of normal distributions."""

    weights: Array
    means: Array
    deviations: Array

    def below(self, value: float) -> float:
        return float(self.weights @ ndtr((value - self.means) / self.deviations))

    def quantile(self, share: float) -> float:
        center, unit = self.means.mean(), self.deviations.max()
        reach = 40 + abs(self.means - center).max() / unit  # in units, as brentq's xtol
        found = brentq(lambda x: self.below(center + unit * x) - share, -reach, reach)
        return float(center + unit * found)


def correlations(places: Array, to: Array, rho: float, slope: float) -> Array:
    """Return covariances of eras with some places, in squares of the spread."""
    center, width = places.mean(), places.std()
    steps = abs(places[:, np.newaxis] - to)
    of_slope = np.outer(places - center, to - center) / width**2
    return np.where(steps, rho**steps, 1.0) + slope * of_slope


class RelatedEras:
    """The model of `EraScoreForecast` for one K. Spreads T are those where Cochran's Q,
    ``e' (S + T² K)^-1 e`` with S = diag(se²), is a quantile of chi-squared. Where Q is
    less even at T = 0, covariances are multiplied by the ratio (Hartung, Knapp 2001),
    but for equal scores, and an error of the new era that is larger than known ones.
    """

    def __init__(
        self, scores: Array, errors: Array, places: Any, rho: float, slope: float
    ) -> None:
        self.rho, self.slope, self.places = rho, slope, places
        n = scores.size
        least = max(1e-9 * abs(scores).max(), 1e-100)
        scale = max(scores.std(ddof=1), least)
        errors = np.maximum(errors, _LEAST_ERROR * scale)
        # All covariances are diagonal in coordinates of the vectors.
        self._values, self._whiten = errors**-2.0, diags(1 / errors)
        if rho or slope:
            related = correlations(places, places, rho, slope)
            values, vectors = np.linalg.eigh(related / np.outer(errors, errors))
            self._values, self._whiten = np.maximum(values, 0.0), vectors.T / errors
        self._scores, self._ones = self._whiten @ scores, self._whiten @ np.ones(n)
        quantiles = chi2.ppf((np.arange(_N_POINTS) + 0.5) / _N_POINTS, n - 1)
        self._error = error = np.sqrt(np.mean(errors**2))
        most = 30 * max(scale, error) * np.sqrt((n - 1) / quantiles[0])
        grid = np.geomspace(max(min(scale, error) / 30, 1e-6 * error), most, _N_POINTS)
        weights, precision, _, residuals = self._solve(np.append(0.0, grid))
        q = (weights * residuals**2).sum(axis=1)
        self.spreads = np.interp(-quantiles, -q, np.append(0.0, grid))
        self.factors = np.minimum(1.0, q[0] / quantiles if scale > least else 1.0)
        # The restricted likelihood, by Jeffreys' prior of T (Bodnar et al. 2017).
        determinant = np.log(precision) - np.log(weights).sum(axis=1)
        prior = np.log(((1 - weights[1:]) ** 2).sum(axis=1))
        self.log_evidence = logsumexp((prior - determinant[1:] - q[1:]) / 2)
        self.log_evidence += np.log(np.log(grid[1] / grid[0]))

    def _solve(self, spreads: Array) -> tuple[Array, Array, Array, Array]:
        """Return weights, the mean's precision, the mean, and residuals by spread."""
        weights = 1 / (1 + spreads[:, np.newaxis] ** 2 * self._values)
        precision = weights @ self._ones**2
        mean = weights @ (self._scores * self._ones) / precision
        residuals = self._scores - mean[:, np.newaxis] * self._ones
        return weights, precision, mean, residuals

    def predict(self, place: float, error: float) -> tuple[Array, Array]:
        """Return best linear unbiased predictions (Robinson 1991) and variances."""
        weights, precision, mean, residuals = self._solve(self.spreads)
        to = correlations(self.places, np.array([place]), self.rho, self.slope)
        shared = self._whiten @ to[:, 0]
        squares = self.spreads**2
        distance = (place - self.places.mean()) / self.places.std()
        known = min(error, self._error**2 / max(error, self._error)) ** 2
        variance = squares * (1 + self.slope * distance**2) + known
        variance -= squares**2 * (weights @ shared**2)
        of_mean = 1 - squares * (weights @ (shared * self._ones))
        variance += of_mean**2 / precision
        predicted = mean + squares * ((weights * residuals) @ shared)
        # Scores of others show nothing of an error that is larger than theirs.
        return predicted, self.factors * variance.clip(1e-300) + error**2 - known


class AnyEras:
    """Scores of eras that may be related in several ways, weighed by their evidence."""

    components: ClassVar[dict[str, float]] = {}  # of crossed eras only

    def __init__(self, scores: Array, errors: Array, places: Any, are_related: bool):
        ways = RELATED if are_related else INDEPENDENT
        self.models = [RelatedEras(scores, errors, places, *way) for way in ways]
        logs = np.log([*ways.values()]) + [x.log_evidence for x in self.models]
        self.weights = np.exp(logs - logsumexp(logs))

    def spread(self) -> float:
        """Return the median of the spread's distribution."""
        spreads = np.concatenate([model.spreads for model in self.models])
        order = np.argsort(spreads)
        shares = np.repeat(self.weights, _N_POINTS)[order].cumsum() / _N_POINTS
        return float(np.interp(0.5, shares, spreads[order]))

    def predict(self, place: float, error: float) -> Mixture:
        """Return the distribution of the score of an era with a sampling error."""
        parts = [model.predict(place, error) for model in self.models]
        means, variances = map(np.concatenate, zip(*parts, strict=True))
        weights = np.repeat(self.weights / _N_POINTS, _N_POINTS)
        return Mixture(weights, means, np.sqrt(variances))
