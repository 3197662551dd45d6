"""Estimate the spread of scores between eras, apart from scores' sampling errors."""

from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
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
_STEP = 1e-3


class Link(NamedTuple):
    """Maps scores to a scale without bounds: log odds, a logarithm, or unchanged."""

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

    def inverse(self, values: Any) -> Any:
        if np.isfinite(self).all():
            return self.low + (self.high - self.low) * expit(values)
        if np.isfinite(self.low):
            return self.low + np.exp(values)
        return self.high - np.exp(-values) if np.isfinite(self.high) else values


def make_link(bounds: Any, scores: Array) -> Link:
    """Return the `Link` for bounds; raise ValueError unless scores lie between them."""
    ends = (None, None) if bounds is None else tuple(bounds)
    if len(ends) == 2 and all(x is None or isinstance(x, Real) for x in ends):
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
    """Return the covariance of each era in `places` with each era in `to`, divided by
    the squared spread. `rho` is the correlation of neighbours, and `slope` the variance
    of a slope over eras.
    """
    center, width = places.mean(), places.std()
    steps = abs(places[:, np.newaxis] - to)
    of_slope = np.outer(places - center, to - center) / width**2
    return np.where(steps, rho**steps, 1.0) + slope * of_slope


class Filtered(NamedTuple):
    """Results of a Kalman filter of vectors with one value per era, for each spread."""

    products: Array  # x' V^-1 x, of shape (n_vectors, n_vectors, n_spreads)
    log_determinant: Array
    last: Array  # expected in the last era given x, (n_vectors, n_spreads)
    variance: Array  # of the last era, given all


def kalman_filter(
    vectors: Array, errors: Array, decay: Array, squares: Array
) -> Filtered:
    """Run a Kalman filter (Kalman 1960) over `vectors`, which needs no matrix V = S +
    T² K. The effect of an era is its factor in `decay` times the effect of the era
    before, plus noise that gives all effects the variance T², for each T² in `squares`.
    """
    n, n_spreads = len(vectors), squares.size
    products, last = np.zeros((n, n, n_spreads)), np.zeros((n, n_spreads))
    products, last = products.astype(squares.dtype), last.astype(squares.dtype)
    log_determinant, variance = np.zeros_like(squares), squares
    for values, error, factor in zip(vectors.T, errors**2, decay, strict=True):
        last, variance = last * factor, squares + factor**2 * (variance - squares)
        whole, news = variance + error, values[:, np.newaxis] - last
        products += news[:, np.newaxis] * (news / whole)
        log_determinant += np.log(whole)
        gain = variance / whole
        last, variance = last + gain * news, error * gain
    return Filtered(products, log_determinant, last, variance)


def least_spread(scores: Array) -> float:
    """Return the largest standard deviation of scores that may come from rounding."""
    return max(1e-9 * abs(scores).max(), 1e-100)


def least_errors(scores: Array, errors: Array) -> Array:
    """Return errors, raised to at least a small part of the scores' deviation."""
    scale = max(scores.std(ddof=1), least_spread(scores))
    return np.maximum(errors, _LEAST_ERROR * scale)


class RelatedEras:
    """The model of `EraScoreForecast` for one matrix K, the correlations of eras. Its
    spreads T are those at which Cochran's Q, ``e' (S + T² K)^-1 e``, is a quantile of
    chi-squared; e are scores less their mean, and S = diag(se²). Where Q is below the
    quantile even at T = 0, T is 0, and covariances are multiplied by Q / quantile
    (Hartung, Knapp 2001), unless scores are equal. The part of a new era's error that
    exceeds known errors is not scaled.
    """

    def __init__(
        self, scores: Array, errors: Array, places: Any, rho: float, slope: float
    ) -> None:
        self.rho, self.slope, self.places = rho, slope, places
        n, scale, least = scores.size, scores.std(ddof=1), least_spread(scores)
        scale, errors = max(scale, least), least_errors(scores, errors)
        self._errors = errors
        self._center, self._width = places.mean(), places.std() or 1.0
        self._mean = scores.mean()  # less of which, squares lose few digits
        steps = (places - self._center) / self._width
        self._vectors = np.array([np.ones(n), scores - self._mean, steps])
        self._decay = rho ** np.append(0.0, np.diff(places))
        quantiles = chi2.ppf((np.arange(_N_POINTS) + 0.5) / _N_POINTS, n - 1)
        self._error = error = np.sqrt(np.mean(errors**2))
        most = 30 * max(scale, error) * np.sqrt((n - 1) / quantiles[0])
        grid = np.geomspace(max(min(scale, error) / 30, 1e-6 * error), most, _N_POINTS)
        precision, _, q, determinant, _ = self._solve(np.append(0.0, grid) ** 2)
        self.spreads = np.interp(-quantiles, -q, np.append(0.0, grid))
        self.factors = np.minimum(1.0, q[0] / quantiles if scale > least else 1.0)
        self._solved = self._solve(self.spreads**2)
        # The restricted likelihood, by Jeffreys' prior of T (Bodnar et al. 2017), the
        # root of tr (T² V^-1 K)² = f' - f'', with f = log |V| by log T². Derivatives
        # are by a step in the complex plane (Squire, Trapp 1998).
        aside = self._solve(grid**2 * np.exp(_STEP * 1j))[3] - determinant[1:]
        prior = np.log((aside.imag / _STEP + 2 * aside.real / _STEP**2).clip(1e-300))
        determinant -= 2 * np.log(errors).sum()
        total = prior - determinant[1:] - np.log(precision[1:]) - q[1:]
        self.log_evidence = logsumexp(total / 2) + np.log(np.log(grid[1] / grid[0]))

    def _solve(self, squares: Array) -> tuple[Array, Array, Array, Array, Any]:
        """Return, for each T² in `squares`, the mean's precision, the mean, Cochran's Q
        and log |V|. Last comes a pair: the results of `kalman_filter`, and the slope's
        variance.
        """
        found = kalman_filter(self._vectors, self._errors, self._decay, squares)
        of_slope = self.slope * squares
        left = of_slope / (1 + of_slope * found.products[2, 2])
        by_slope = found.products[2]
        products = found.products - left * by_slope[:, np.newaxis] * by_slope
        precision, mean = products[0, 0], products[0, 1] / products[0, 0]
        q = products[1, 1] - mean * products[0, 1]
        determinant = found.log_determinant + np.log1p(of_slope * by_slope[2])
        return precision, mean, q, determinant, (found, left)

    def mean(self) -> tuple[Array, Array]:
        """Return the mean over all possible eras, and its variance, for each spread."""
        precision, mean, *_ = self._solved
        return self._mean + mean, self.factors / precision

    def predict(self, place: float, error: float) -> tuple[Array, Array]:
        """Return the best linear unbiased prediction of the score in the era at
        `place`, measured with a sampling error (Robinson 1991), and the prediction's
        variance, for each spread.
        """
        precision, mean, _, _, (found, left) = self._solved
        factor, squares = self.rho ** (place - self.places[-1]), self.spreads**2
        of_ones, of_scores, of_steps = factor * found.last
        of_slope = (place - self._center) / self._width - of_steps
        by_mean, of_score, _ = found.products[2]
        slope = left * (of_score - mean * by_mean)
        known = min(error, self._error**2 / max(error, self._error)) ** 2
        variance = squares + factor**2 * (found.variance - squares) + known
        of_mean = 1 - of_ones - left * by_mean * of_slope
        variance += left * of_slope**2 + of_mean**2 / precision
        predicted = mean * (1 - of_ones) + of_scores + slope * of_slope
        # Scores of others show nothing of an error that is larger than theirs.
        total = self.factors * variance.clip(1e-300) + error**2 - known
        return self._mean + predicted, total


class AnyEras:
    """A mixture of `RelatedEras`, weighted by the evidence for each."""

    components: ClassVar[dict[str, float]] = {}  # of crossed eras only

    def __init__(self, scores: Array, errors: Array, places: Any, are_related: bool):
        ways = RELATED if are_related else INDEPENDENT
        self.models = [RelatedEras(scores, errors, places, *way) for way in ways]
        logs = np.log([*ways.values()]) + [x.log_evidence for x in self.models]
        self.weights = np.exp(logs - logsumexp(logs))

    def spread(self) -> float:
        """Return the median of the distribution of the spread of eras."""
        spreads = np.concatenate([model.spreads for model in self.models])
        order = np.argsort(spreads)
        shares = np.repeat(self.weights, _N_POINTS)[order].cumsum() / _N_POINTS
        return float(np.interp(0.5, shares, spreads[order]))

    def predict(self, place: float, error: float) -> Mixture:
        """Return the distribution of the score in the era at `place`, measured with a
        sampling error.
        """
        return self._mixture([model.predict(place, error) for model in self.models])

    def mean(self) -> Mixture:
        """Return the distribution of the unknown mean score of all possible eras."""
        return self._mixture([model.mean() for model in self.models])

    def _mixture(self, parts: list[tuple[Array, Array]]) -> Mixture:
        means, variances = map(np.concatenate, zip(*parts, strict=True))
        weights = np.repeat(self.weights / _N_POINTS, _N_POINTS)
        return Mixture(weights, means, np.sqrt(variances))
