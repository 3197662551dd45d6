"""Estimate the spread of scores over groups and eras, by crossed random effects."""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import chi2

from ._spread import INDEPENDENT, RELATED, Mixture, correlations

Array = NDArray[np.float64]

_N_QUANTILES = 20  # of chi-squared
_N_COLUMN_POINTS, _N_POINTS = 64, {1: 20, 2: 10}  # on an axis, by the number of others
_N_ZOOMS = 4
_LEAST_ERROR = 1e-4  # in standard deviations of the scores
_LARGEST_RATIO = 1e9  # of variances
_FAR = 12.0  # log densities so far below the largest do not count


class Equations(NamedTuple):
    """Henderson's mixed-model equations of a table of scores, for given variances of
    rows and residuals. Effects of rows are eliminated, and columns are rotated to
    uncorrelated coordinates. There are two right-hand sides, ones and scores, and, for
    predictions of a known row, a third one: the indicator of this row.
    """

    information: Array  # on each coordinate
    vectors: Array  # from columns, whitened by their correlations, to coordinates
    products: Array  # of ones, scores, and a row's indicator, with coordinates
    gram: Array  # of ones, scores and the indicator with each other
    log_determinant: float

    def at(self, columns: Array) -> tuple[Array, Array, Array]:
        """Return three results for each of `columns`, which are values of the variance
        of column effects: the posterior variances of the coordinates; ``x' V^-1 y`` for
        all pairs x, y of right-hand sides; ``log |V|``, with V the scores' covariance.
        """
        ratios = 1 + np.multiply.outer(columns, self.information)
        left, n = columns[:, np.newaxis] / ratios, len(self.gram)
        pairs = (self.products[:, np.newaxis] * self.products).reshape(n * n, -1)
        grams = self.gram - (left @ pairs.T).reshape(-1, n, n)
        return left, grams, self.log_determinant + np.log(ratios).sum(axis=1)


class Variances(NamedTuple):
    """Points of a grid over variances, which share the variances of rows and residuals
    and differ in the variance of columns.
    """

    relation: int  # of columns, its number: see `CrossedEras`
    row: float
    residual: float
    columns: Array
    log_densities: Array
    squares: Array  # weighted sums of squared residuals

    def table(self) -> Array:
        """Return a table of the variances of rows, columns and residuals."""
        found = np.broadcast_arrays(self.row, self.columns, self.residual)
        return np.stack(found, axis=1)


def _zoom(
    log_density: Callable[[Array], Array], high: Array, n: int
) -> tuple[Array, Array, Array]:
    """Return a grid over the part between 0 and `high` where the density is not
    negligible: its points, the log density at each point, and the step along each axis.
    """
    low = np.zeros(high.size)
    for _ in range(_N_ZOOMS):
        step = (high - low) / (n - 1)
        points = low + step * np.array([*product(range(n), repeat=high.size)])
        logs = log_density(points)
        near = points[logs > logs.max() - _FAR]
        low, high = (near.min(axis=0) - step).clip(0), near.max(axis=0) + step
    return points, logs, step


class CrossedEras:
    """The model of `EraScoreForecast` for a table with a row for each group and a
    column for each era, or the reverse if there are more eras than groups and eras are
    not related.

    Variances are unknown, and results are averages over a grid of variances. The grid
    is in log(1 + r), with r a variance divided by the variance of residuals and
    sampling errors together. Without sampling errors, all variances are multiples of
    the residual variance, which is integrated out by itself. The variance of rows has a
    prior that is uniform in log(1 + r), as Jeffreys' prior is if groups are in equally
    many eras. The variance of columns has Jeffreys' prior, which depends on the
    relation of columns. This is a pair: the correlation of neighbours, and the variance
    of a slope (see `correlations`).
    """

    def __init__(self, table: Array, errors: Array, are_related: bool) -> None:
        # Equations are as large as columns are many.
        self._is_turned = not are_related and table.shape[0] < table.shape[1]
        if self._is_turned:
            table, errors = table.T, errors.T
        self._is_known = is_known = ~np.isnan(table)
        known = table[is_known]
        self._center, self._n = known.mean(), known.size
        self._unit = max(known.std(ddof=1), 1e-9 * abs(known).max(), 1e-100)
        scores = np.where(is_known, (table - self._center) / self._unit, 0.0)
        self._vectors = np.array([is_known, scores])
        self._has_errors = bool(errors[is_known].any())
        least = _LEAST_ERROR * self._has_errors
        errors = np.maximum(np.where(is_known, errors / self._unit, 0.0), least)
        self._squares, self._square = errors**2, np.mean(errors[is_known] ** 2)
        self._places = np.arange(float(table.shape[1]))
        prior_weights = RELATED if are_related else INDEPENDENT
        self._relations = [*prior_weights]
        self._roots = [
            cholesky(correlations(self._places, self._places, *relation), lower=True)
            for relation in self._relations
        ]
        self._sizes = np.array([is_known.any(axis=i).sum() for i in (1, 0)])
        # A variance that adds as much to a row's mean, or a column's, as residuals do.
        self._units = self._sizes / self._n
        tops = np.log1p(_LARGEST_RATIO / self._units)
        high, self._top = tops[:1], tops[1:]
        if self._has_errors:
            high = np.append(high, np.log1p(1e4 / self._square))
        points, logs, _ = _zoom(
            lambda x: np.array(
                [logsumexp(v.log_densities) for v in self._variances_at(0, x)]
            ),
            high, _N_POINTS[high.size],
        )  # fmt: skip
        self.components = self._estimate(points[logs.argmax()], [*high, *self._top])
        # Other relations are looked at where the first one has its densities.
        near = points[logs > logs.max() - _FAR]
        grids = [
            self._variances_at(i, near, weight)
            for i, weight in enumerate(prior_weights.values())
        ]
        evidence = [logsumexp([x.log_densities for x in grid]) for grid in grids]
        self.weights = np.exp(evidence - logsumexp(evidence))
        least = max(x.log_densities.max() for grid in grids for x in grid) - _FAR
        self._grids = [
            Variances(x.relation, x.row, x.residual, *np.array(x[3:])[:, x[4] > least])
            for grid in grids for x in grid if x.log_densities.max() > least
        ]  # fmt: skip
        self._variances = np.concatenate([x.table() for x in self._grids])
        # Their common factor is the sum of squares by a chi-squared, which has four
        # degrees of freedom more by the prior of `_weigh`.
        self._factors = np.ones((len(self._variances), 1))
        if not self._has_errors:
            shares = (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES
            squares = np.concatenate([x.squares for x in self._grids])
            self._factors = np.divide.outer(squares, chi2.ppf(shares, self._n + 3))

    def _levels(self, point: Array) -> Any:
        """Return three numbers for a point of the grid: the variance of rows, the
        variance of residuals, and the unit in which variances of columns are given.
        """
        level = self._square * np.exp(point[1]) if self._has_errors else 1.0
        row, column = self._units * level
        return np.expm1(point[0]) * row, level - self._square, column

    def _equations(
        self, relation: int, row: float, residual: float, at: int | None = None
    ) -> Equations:
        """Return the `Equations` for a relation of columns, given by its number, and
        for the variances of rows and of residuals. If the number `at` of a row is
        given, the equations have a third vector: 1 in this row, and 0 in all others.
        """
        vectors = self._vectors
        if at is not None:
            vectors = np.append(vectors, np.zeros_like(vectors[:1]), axis=0)
            vectors[2, at] = vectors[0, at]
        weights = self._is_known / (residual + self._squares)
        weighed = vectors * weights
        of_rows, of_columns = weighed.sum(axis=2), weighed.sum(axis=1)
        shrunk = row / (1 + row * of_rows[0])
        gram = np.tensordot(weighed, vectors, axes=([1, 2], [1, 2]))
        gram -= of_rows * shrunk @ of_rows.T
        matrix = np.diag(of_columns[0]) - (weights.T * shrunk) @ weights
        root = self._roots[relation]
        information, basis = eigh(root.T @ matrix @ root)
        products = (of_columns - of_rows * shrunk @ weights) @ root @ basis
        determinant = np.log1p(row * of_rows[0]).sum()
        determinant -= np.log(weights[self._is_known]).sum()
        return Equations(information.clip(0), basis, products, gram, determinant)

    def _likelihoods(self, equations: Equations, columns: Array) -> Array:
        """Return two rows, with a number for each of `columns`, which are values of the
        variance of column effects: the log of the restricted likelihood (Patterson,
        Thompson 1971), and the weighted sum of squared residuals.
        """
        _, grams, determinants = equations.at(columns)
        precision, n = grams[:, 0, 0], self._n - 1
        squares = (grams[:, 1, 1] - grams[:, 0, 1] ** 2 / precision).clip(0)
        if not self._has_errors:
            squares += n * _LEAST_ERROR**2
        of_scores = squares if self._has_errors else n * np.log(squares)
        return np.array([-(determinants + np.log(precision) + of_scores) / 2, squares])

    def _variances_at(
        self, relation: int, points: Array, prior_weight: float = 1.0
    ) -> list[Variances]:
        """Return a list of `Variances`, one for each of `points`. A point gives the
        variances of rows and of residuals; a grid of variances of columns is added.
        `prior_weight` is the prior probability of the relation.
        """
        levels = [self._levels(point) for point in points]
        equations = [self._equations(relation, *level[:2]) for level in levels]

        def evaluate(axis: Array) -> Array:
            found = []
            for x, (*_, unit) in zip(equations, levels, strict=True):
                columns = np.expm1(axis[:, 0]) * unit
                found.append(self._likelihoods(x, columns))
                ratios = 1 + np.multiply.outer(columns, x.information)
                jeffreys = ((x.information / ratios) ** 2).sum(axis=1)
                found[-1][0] += np.log(jeffreys) / 2 + axis[:, 0]
            return np.array(found)

        axis, _, step = _zoom(
            lambda axis: evaluate(axis)[:, 0].max(axis=0), self._top, _N_COLUMN_POINTS
        )
        # Trapezoids end at 0; steps on the axes of points are alike.
        shares = prior_weight * step * np.where(axis[:, 0], 1.0, 0.5)
        found = []
        for point, level, (logs, squares) in zip(
            points, levels, evaluate(axis), strict=True
        ):
            logs += np.log(level[2] * shares) - np.log(2) * (point == 0).sum()
            columns = np.expm1(axis[:, 0]) * level[2]
            found.append(
                Variances(relation, level[0], level[1], columns, logs, squares)
            )
        return found

    def _estimate(self, point: Array, high: Any) -> dict[str, float]:
        """Return the standard deviations of groups, eras and residuals by restricted
        maximum likelihood, for unrelated eras. The search starts at `point` and stays
        between 0 and `high`.
        """

        def solve(point: Array) -> tuple[Any, Any]:
            row, residual, unit = self._levels(point)
            columns = np.expm1(point[-1:]) * unit
            equations = self._equations(0, row, residual)
            logs, squares = self._likelihoods(equations, columns)
            factor = 1.0 if self._has_errors else squares[0] / (self._n - 1)
            return -logs[0], np.array([row, columns[0], residual]) * factor

        [grid] = self._variances_at(0, point[np.newaxis])
        columns = grid.columns[grid.log_densities.argmax()] / self._levels(point)[2]
        start, bounds = np.append(point, np.log1p(columns)), [(0.0, x) for x in high]
        best = minimize(lambda x: solve(x)[0], start, bounds=bounds, method="L-BFGS-B")
        found = (self._unit * np.sqrt(solve(best.x)[1])).tolist()
        names = ["eras", "groups"] if self._is_turned else ["groups", "eras"]
        return dict(zip([*names, "residual"], found, strict=True))

    def _weigh(self, shares: Any) -> Array:
        """Return the weights of all points of the grid. The prior (Peers 1965) matches
        the probabilities of a sum: the sum of a point's three variances, each of which
        is multiplied by its number in `shares`.
        """
        of_residual = max(1, self._n - self._sizes.sum() + 1)
        freedom = np.append(self._sizes - 1, of_residual)
        level = self._variances[:, 2] + self._square
        levels = self._variances * [1, 1, 0] + np.outer(level, [*self._units, 1])
        levels *= self._factors[:, :1]  # in proportion to the common factor
        logs = np.log(levels**2 @ (shares**2 / freedom)) / 2
        logs -= np.log(levels).sum(axis=1)
        logs += np.concatenate([x.log_densities for x in self._grids])
        weights = np.exp(logs - logsumexp(logs))
        return np.repeat(weights / self._factors.shape[1], self._factors.shape[1])

    def spread(self) -> float:
        """Return the median standard deviation of new groups' scores in new eras."""
        squares = self._variances.sum(axis=1)[:, np.newaxis] * self._factors
        values, weights = np.sqrt(squares).ravel(), self._weigh(np.ones(3))
        order = np.argsort(values)
        half = np.interp(0.5, weights[order].cumsum(), values[order])
        return float(half * self._unit)

    def predict(self, place: float, error: float, group: int | None = None) -> Mixture:
        """Return the distribution of a group's measured score in the era at `place`, by
        best linear unbiased prediction (Henderson 1975). The distribution includes the
        sampling `error` of the measurement. If `group` is None, the group is a new one.
        """
        row, is_new = group, np.array([group is None, 1.0, 1.0])
        if self._is_turned:  # a later era is a new row
            place, row = self._places.size if group is None else group, None
            is_new = is_new[[1, 0, 2]]
        places, parts = self._places, []
        for x in self._grids:
            rho, slope = self._relations[x.relation]
            to = correlations(places, np.array([place]), rho, slope)[:, 0]
            distance = (place - places.mean()) / places.std()
            variance = x.columns * (1 + slope * distance**2)
            equations = self._equations(x.relation, x.row, x.residual, row)
            left, grams, _ = equations.at(x.columns)
            loads = equations.vectors.T @ solve_triangular(
                self._roots[x.relation], to, lower=True
            )
            shared = (left * loads) @ equations.products.T
            variance -= (x.columns[:, np.newaxis] - left) @ loads**2
            if row is not None:
                variance -= x.row * (x.row * grams[:, 2, 2] + 2 * shared[:, 2])
                shared += x.row * grams[:, 2]
            mean = grams[:, 0, 1] / grams[:, 0, 0]
            variance += x.row + x.residual + (1 - shared[:, 0]) ** 2 / grams[:, 0, 0]
            # Large variances leave rounding errors.
            least = max(x.residual, 1e-300)
            means = mean + shared[:, 1] - mean * shared[:, 0]
            parts.append((means, variance.clip(least)))
        return self._mixture(parts, error, is_new)

    def mean(self) -> Mixture:
        """Return the distribution of the unknown mean score of all possible groups and
        eras.
        """
        parts = []
        for x in self._grids:
            equations = self._equations(x.relation, x.row, x.residual)
            grams = equations.at(x.columns)[1]
            parts.append((grams[:, 0, 1] / grams[:, 0, 0], 1 / grams[:, 0, 0]))
        return self._mixture(parts, 0.0, 1 / np.append(self._sizes, self._n))

    def _mixture(self, parts: list[Any], error: float, shares: Array) -> Mixture:
        means, variances = map(np.concatenate, zip(*parts, strict=True))
        squares = (variances[:, np.newaxis] * self._factors).ravel()
        means = np.repeat(means, self._factors.shape[1]) * self._unit + self._center
        deviations = np.hypot(np.sqrt(squares) * self._unit, error)
        return Mixture(self._weigh(shares), means, deviations)
