"""Estimate the level that values of eras follow, and forecast it, by the equations in
the docstring of `Intercepts`.

The prior of the constants c is flat, which makes the likelihood the restricted one.
"Steps" are the values a_j, which decay by phi. With phi = 0, they are independent, as
shocks u_j are, and the likelihood depends on ``q + tau2`` alone. Then q is half of the
sum: the level is linear in q, and half is the mean if all shares are equally likely.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgesv, dpttrf, dpttrs

from ..._eras import Array

Place = tuple[int, ...]

# Minimum number of eras with a constant known from earlier ones; fewer have no level.
_LEAST_ORIGINS = 6
_LEAST_LOG_RATIO = 2.0
# The grid: phi, and variances as shares of that of the series.
_GRID = (
    np.array([0.0, 0.3, 0.5, 0.65, 0.8, 0.88, 0.93, 0.96, 0.98, 0.99, 0.995]),
    2.0 ** np.arange(-12, 2),
    2.0 ** np.arange(-12, 1),
    np.array([0.0, 0.001, 0.01, 0.1, 1.0]),
)
_STARTS = ((8, 9, 6, 0), (3, 11, 6, 0), (3, 8, 6, 2))
# Prior variance of an unknown constant, in units of that of the series.
_FLAT = 1e6
# Ratio of each further step of a trend to the one before.
_DAMPING = 0.8


class Series(NamedTuple):
    """The values of eras, in the order of eras."""

    values: Array
    variances: Array  # of their noise; not finite if a value is unknown
    groups: NDArray[np.intp]  # eras of a group share a constant

    @property
    def is_known(self) -> NDArray[np.bool_]:
        return np.isfinite(self.variances)


class Level(NamedTuple):
    """The parameters of a level (see `Intercepts`); with ``q=0`` there is no level."""

    phi: float = 0.0
    q: float = 0.0
    tau2: float = 0.0
    trend: float = 0.0


class Estimate(NamedTuple):
    """The level of each era, given all eras, and the level's parts in the last era."""

    levels: Array
    decaying: float
    lasting: float
    slope: float
    constant: float  # the mean over eras


def follow_levels(
    values: Array, variances: Array, groups: NDArray[np.intp], paths: Array | None
) -> tuple[Array, Array]:
    """Return the levels of eras, of shape (n_eras, n_outputs), and paths, of shape
    (n_outputs, 8). A row of paths is for one output: the four parameters of the
    `Level`, 1 if its forecasts lower the errors or else 0, and the level's decaying
    part, lasting part and slope in the last era. Estimate the parameters unless `paths`
    are given.
    """
    n_eras, n_outputs = values.shape
    levels, reached = np.zeros((n_eras, n_outputs)), np.zeros((n_outputs, 8))
    for k in range(n_outputs):
        is_known = np.isfinite(variances[:, k])
        # An era that has its constant to itself is no evidence on the level.
        is_known &= np.bincount(groups, is_known)[groups] > 1
        noise = np.where(is_known, variances[:, k], np.nan)
        series = Series(values[:, k], noise, groups)
        if paths is None:
            level = fit_level(series)
            is_carried = level.q > 0 and forecasts_gain(series, level)
        else:
            level, is_carried = Level(*paths[k, :4].tolist()), paths[k, 4] > 0
        if level.q > 0 and series.is_known.any():
            end = Equations(series).estimate(level)
            # Trees that are fitted cannot learn a constant of later eras.
            constant = end.constant if is_carried else 0.0
            levels[:, k] = end.levels + constant
            lasting = end.lasting + constant
            reached[k] = (*level, is_carried, end.decaying, lasting, end.slope)
    return levels, reached


def forecast_levels(paths: Array, horizon: NDArray[np.integer]) -> Array:
    """Return forecasts from `paths` (see `follow_levels`), of shape (n_horizons,
    n_outputs); 0 for outputs whose forecasts do not lower the errors.
    """
    phi, is_carried, decaying, lasting, slope = paths[:, [0, 4, 5, 6, 7]].T
    ahead = horizon[:, None]
    n_steps = (1 - _DAMPING**ahead) / (1 - _DAMPING)
    return is_carried * (phi**ahead * decaying + lasting + slope * n_steps)


def fit_level(series: Series) -> Level:
    """Return the likeliest level on a grid of parameters. Return `Level()`, which is no
    level, if no level is almost as likely, or if there are few eras.
    """
    values, _, groups = series
    known = series.is_known
    n_free = np.count_nonzero(known) - _constants_of(groups[known])[1]
    if n_free < _LEAST_ORIGINS:
        return Level()
    counts = np.maximum(np.bincount(groups[known]), 1)
    means = np.bincount(groups[known], values[known]) / counts
    residuals = values[known] - means[groups[known]]
    scale = float(residuals @ residuals) / n_free
    if not scale > 0:
        return Level()

    def level_at(place: Place) -> Level:
        phi, q, tau2, trend = (
            float(grid[i]) for grid, i in zip(_GRID, place, strict=True)
        )
        if phi == 0:  # steps are as independent as shocks: only the sum is known
            q = tau2 = (q + tau2) / 2
        return Level(phi, scale * q, scale * tau2, scale * trend)

    equations = Equations(series)
    evidence = cache(lambda place: equations.evidence(level_at((*place, 0))))

    @cache
    def likelihood(place: Place) -> float:
        return evidence(place[:3]).log_likelihood(level_at(place).trend)

    best = max((_climb(likelihood, start) for start in _STARTS), key=likelihood)
    without = max(
        equations.evidence(Level(0.0, 1e-8 * scale, scale * share)).log_likelihood(0.0)
        for share in _GRID[2]
    )
    return level_at(best) if likelihood(best) > without + _LEAST_LOG_RATIO else Level()


def _climb(height: Callable[[Place], float], place: Place) -> Place:
    """Step along the axes of the grid while `height` grows; return the last place."""
    while True:
        steps = [
            (*place[:axis], place[axis] + step, *place[axis + 1 :])
            for axis, grid in enumerate(_GRID)
            for step in (-1, 1)
            if 0 <= place[axis] + step < grid.size
        ]
        best = max(steps, key=height)
        if height(best) <= height(place):
            return place
        place = best


class Evidence(NamedTuple):
    """Products of the values and positions of eras with the inverse of the covariance
    matrix, after the constants of groups of eras are removed.
    """

    products: Array  # (2, 2), of both by the inverse of the covariance
    log_determinant: float
    n_free: int

    def log_likelihood(self, trend: float) -> float:
        (squares, both), (_, square) = self.products
        logs = self.log_determinant + (np.log(trend * square + 1) if trend else 0.0)
        squares = squares - both * _slope(self.products, trend)
        return float(-0.5 * (logs + squares + self.n_free * np.log(2 * np.pi)))


def _slope(products: Array, trend: float) -> float:
    (_, both), (_, square) = products
    return float(both / (square + 1 / trend)) if trend else 0.0


class Equations:
    """Linear equations with the covariance matrix of the values of eras. The inverse of
    this matrix is ``W - W (A + W)^-1 W``, with W the diagonal matrix of eras' weights
    (1 / variance), and A the precision matrix of the true levels. As A is tridiagonal,
    the product of the inverse with a column takes O(n_eras).
    """

    def __init__(self, series: Series) -> None:
        self.series, self.known = series, series.is_known
        values, _, groups = series
        self.index, n_constants = _constants_of(groups[self.known])
        # Values, places and an indicator of each constant, in LAPACK's order.
        self.columns = np.zeros((values.size, 2 + n_constants), order="F")
        self.columns[self.known, 0] = values[self.known]
        self.columns[:, 1] = _places(values.size)
        self.columns[self.known, 2 + self.index] = 1.0

    def _factor(self, level: Level) -> tuple[Array, Array, Array]:
        """Return the diagonal of W, and LAPACK's two factors of A + W."""
        phi, q, tau2, _ = level
        weights = np.zeros(self.known.size)
        weights[self.known] = 1 / (tau2 + self.series.variances[self.known])
        diagonal = np.full(weights.size, (1 + phi**2) / q)
        diagonal[[0, -1]] = 1 / q
        d, e, _ = dpttrf(diagonal + weights, np.full(weights.size - 1, -phi / q))
        return weights, d, e

    def _products(self, weights: Array, d: Array, e: Array) -> Array:
        """Return the products of the columns by the inverse of their covariance."""
        inverse, _ = dpttrs(d, e, weights[:, None] * self.columns, overwrite_b=True)
        np.subtract(self.columns, inverse, out=inverse)
        inverse *= weights[:, None]
        return self.columns.T @ inverse

    def evidence(self, level: Level) -> Evidence:
        """Return the `Evidence` on a level; the level's `trend` does not affect it."""
        weights, d, _ = factors = self._factor(level)
        products = self._products(*factors)
        right = products[2:, :2]
        triangle, _, effects, _ = dgesv(products[2:, 2:], right)
        log_determinant = (
            np.log(d).sum()
            + d.size * np.log(level.q)
            - np.log1p(-(level.phi**2))
            - np.log(weights[self.known]).sum()
            + np.log(np.abs(triangle.diagonal())).sum()
        )
        return Evidence(
            products[:2, :2] - right.T @ effects, float(log_determinant),
            self.index.size - len(effects),
        )  # fmt: skip

    def estimate(self, level: Level) -> Estimate:
        """Return the `Estimate` of the levels of eras, given the parameters."""
        weights, d, e = factors = self._factor(level)
        products = self._products(*factors)
        normal, right = products[2:, 2:], products[2:, :2]
        effects = np.linalg.solve(normal, right)
        slope = _slope(products[:2, :2] - right.T @ effects, level.trend)
        constants = effects @ [1.0, -slope]
        trend = slope * self.columns[:, 1]
        rest = self.columns[:, 0] - trend - self.columns[:, 2:] @ constants
        steps, _ = dpttrs(d, e, weights * rest)
        return Estimate(
            steps + trend, float(steps[-1]), float(trend[-1]), slope,
            float(constants[self.index].mean()),
        )  # fmt: skip


def _constants_of(groups: NDArray[np.intp]) -> tuple[NDArray[np.intp], int]:
    """Return the index of each group among those that are there, and their number."""
    is_there = np.bincount(groups) > 0
    return (np.cumsum(is_there) - 1)[groups], int(np.count_nonzero(is_there))


def _places(n_eras: int) -> Array:
    """Return the position of each era, counted from the middle of all eras."""
    return np.arange(n_eras, dtype=np.float64) - (n_eras - 1) / 2


def forecasts_gain(series: Series, level: Level) -> bool:
    """Return whether forecasts by the level lower squared errors significantly."""
    without = forecast_errors(series, Level(tau2=level.tau2))
    gains = without**2 - forecast_errors(series, level) ** 2
    gains = gains[np.isfinite(gains)]
    return bool(gains.size >= _LEAST_ORIGINS and gains.mean() > newey_west_error(gains))


def forecast_errors(series: Series, level: Level) -> Array:
    """Return each value minus its forecast from earlier values, by a Kalman filter."""
    values, variances, groups = series
    known = series.is_known
    phi, q, tau2, trend = level
    flat = _FLAT * max(float(np.var(values[known])), np.finfo(float).tiny)
    # The state: the steps that decay, the constants of known eras, and the slope.
    index, n_constants = _constants_of(groups[known])
    of_era = np.zeros(values.size, dtype=np.intp)
    of_era[known] = index + 1
    n_states = n_constants + 2
    mean, covariance = np.zeros(n_states), np.diag(np.full(n_states, flat))
    covariance[0, 0], covariance[-1, -1] = q / (1 - phi**2), trend
    errors = np.full(values.size, np.nan)
    for j, place in enumerate(_places(values.size)):
        if j:
            mean[0] *= phi
            covariance[0] *= phi
            covariance[:, 0] *= phi
            covariance[0, 0] += q
        if known[j]:
            seen = [0, of_era[j], n_states - 1]
            by = np.array([1.0, 1.0, place])
            shared = covariance[:, seen] @ by
            variance = by @ shared[seen]
            error = values[j] - by @ mean[seen]
            if variance < flat / 2:
                errors[j] = error
            gain = shared / (variance + tau2 + variances[j])
            mean += gain * error
            covariance -= np.outer(gain, shared)
    return errors


def newey_west_error(values: Array) -> float:
    """Return the standard error of a time series' mean (Newey, West 1987)."""
    deviations, n_lags = values - values.mean(), int(np.ceil(values.size ** (1 / 3)))
    total = deviations @ deviations
    for lag in range(1, n_lags + 1):
        share = 1 - lag / (n_lags + 1)
        total += 2 * share * (deviations[lag:] @ deviations[:-lag])
    return float(np.sqrt(max(total, 0.0)) / values.size)
