"""How scores of groups in eras are spread: crossed random effects."""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.special import logsumexp
from scipy.stats import chi2

from ._spread import INDEPENDENT, RELATED, Mixture, correlations

Array = NDArray[np.float64]

_N_QUANTILES = 20  # of chi-squared
_N_POINTS = {0: 64, 1: 20, 2: 10}  # on each axis of a grid
_LEAST_ERROR = 1e-4  # in standard deviations of the scores
_LARGEST_RATIO = 1e9  # of variances
_FAR = 12.0  # below the largest logarithm of a density, where it does not count


class Solved(NamedTuple):
    """Henderson's equations without rows, in coordinates where columns are diagonal."""

    values: Array  # (n_columns,)
    vectors: Array  # of covariances with columns, to these coordinates
    products: Array  # of the mean, the scores and a row in these coordinates
    gram: Array  # the same in those of cells
    log_determinant: float


class Variances(NamedTuple):
    """Variances to integrate over: of a row, of the rest, and some of columns."""

    way: int
    row: float
    rest: float
    columns: Array
    logs: Array  # of their densities


def _zoom(
    values_on: Callable[..., Array], ends: list[tuple[float, float]], n: int, drops: Any
) -> list[Array]:
    """Return axes of a grid on which values are near the largest one, after a step for
    each of `drops`, which says how near.
    """
    for drop in drops:
        axes = [np.linspace(*x, n) for x in ends]
        values = values_on(*axes)
        is_near = values >= values.max() - drop
        for i, axis in enumerate(axes):
            others = tuple(j for j in range(len(axes)) if j != i)
            near = axis[is_near.any(axis=others)]
            ends[i] = (
                max(0.0, near[0] - axis[1] + axis[0]),
                near[-1] + axis[1] - axis[0],
            )
    return axes


def _log_jeffreys(information: Array, variances: Any) -> Any:
    """Return the logarithm of the prior of variances, by what is known of effects."""
    shares = information / (1 + np.multiply.outer(variances, information))
    return np.log((shares**2).sum(axis=-1)) / 2


class CrossedEras:
    """The model of `EraScoreForecast` for a table of groups by eras.

    Restricted likelihoods are those of Henderson's equations. Rows of the table are
    absorbed, and in coordinates of eigenvectors all variances of columns are at hand.
    Without sampling errors, others are ratios to that of e, which is integrated out.
    Each has the prior of Jeffreys, as if the others were known.
    """

    def __init__(self, table: Array, errors: Array, are_related: bool) -> None:
        self.is_swapped = not are_related and table.shape[0] < table.shape[1]
        if self.is_swapped:
            table, errors = table.T, errors.T
        self._is_known = is_known = ~np.isnan(table)
        known = table[is_known]
        self._center, self._n = known.mean(), known.size
        self.unit = max(known.std(ddof=1), 1e-9 * abs(known).max(), 1e-100)
        scores = np.where(is_known, (table - self._center) / self.unit, 0.0)
        self._cells = np.array([is_known, scores])
        self._has_errors = bool(errors[is_known].any())
        least = _LEAST_ERROR * self._has_errors
        self._squares = (
            np.maximum(np.where(is_known, errors / self.unit, 0.0), least) ** 2
        )
        self._square = self._squares[is_known].mean()
        self._places = np.arange(float(table.shape[1]))
        self._ways = [*(RELATED if are_related else INDEPENDENT)]
        self._roots = [
            cholesky(correlations(self._places, self._places, self._places, *way)).T
            for way in self._ways
        ]
        # Coordinates in which densities are smooth, log(1 + variance / unit).
        self._units = [is_known.any(axis=i).sum() / self._n for i in (0, 1)]
        tops = [np.log1p(_LARGEST_RATIO / x) for x in self._units]
        self._tops = [(0.0, x) for x in tops]
        self._fit(RELATED if are_related else INDEPENDENT)

    def _variances(self, *point: float) -> tuple[float, float]:
        """Return the variances of rows and of the rest at a point of the grid."""
        if not self._has_errors:
            return np.expm1(point[0]) * self._units[1], 1.0
        rest = np.expm1(point[1]) * self._square
        return np.expm1(point[0]) * self._units[1] * (rest + self._square), rest

    def _solve(
        self, way: int, row: float, rest: float, at: int | None = None
    ) -> Solved:
        cells = self._cells
        if at is not None:
            cells = np.append(cells, np.zeros_like(cells[:1]), axis=0)
            cells[2, at] = cells[0, at]
        weights = cells[0] / (rest + self._squares)
        weighed = cells * weights
        sums, own = weighed.sum(axis=2), weighed.sum(axis=1)
        shrunk = row / (1 + row * sums[0])
        gram = weighed.reshape(len(cells), -1) @ cells.reshape(len(cells), -1).T
        gram -= sums * shrunk @ sums.T
        root = self._roots[way]
        matrix = np.diag(own[0]) - (weights.T * shrunk) @ weights
        values, vectors = eigh(root.T @ matrix @ root)
        products = (own - sums * shrunk @ weights) @ root @ vectors
        determinant = np.log1p(row * sums[0]).sum()
        determinant -= np.log(weights[self._is_known]).sum()
        return Solved(values.clip(0), vectors, products, gram, determinant)

    def _means(self, solved: Solved, columns: Array) -> tuple[Array, ...]:
        """Return log-likelihoods by variances of columns, the factor, and products."""
        values, _, products, gram, determinant = solved
        shares = columns[:, np.newaxis] / (1 + np.multiply.outer(columns, values))
        pairs = products[:, np.newaxis] * products
        grams = gram - np.einsum("nt,klt->nkl", shares, pairs, optimize=True)
        precision, n = grams[:, 0, 0], self._n - 1
        q = grams[:, 1, 1] - grams[:, 0, 1] ** 2 / precision
        q = np.maximum(q, 0)
        if not self._has_errors:
            q = q + n * _LEAST_ERROR**2
        whole = determinant + np.log1p(np.multiply.outer(columns, values)).sum(axis=1)
        logs = (
            -(whole + np.log(precision) + (q if self._has_errors else n * np.log(q)))
            / 2
        )
        return logs, q, grams, shares

    def _integrate(self, way: int, point: tuple[float, ...]) -> Variances:
        row, rest = self._variances(*point)
        solved = self._solve(way, row, rest)
        unit = self._units[0] * (rest + self._square if self._has_errors else 1)

        def logs(axis):
            columns = np.expm1(axis) * unit
            return (
                self._means(solved, columns)[0]
                + _log_jeffreys(solved.values, columns)
                + axis
            )

        [axis] = _zoom(logs, [self._tops[0]], _N_POINTS[0], [_FAR] * 3)
        densities = logs(axis) + np.log(np.where(axis == axis[0], 0.5, 1.0))
        densities += np.log((axis[1] - axis[0]) * unit)
        # prior of rows
        weights = self._is_known / (rest + self._squares)
        densities += _log_jeffreys(weights.sum(axis=1), row) + point[0]
        if self._has_errors:
            densities += (
                np.log(rest + self._square) + point[1] + np.log((weights**2).sum()) / 2
            )
        return Variances(way, row, rest, np.expm1(axis) * unit, densities)

    def _profile(self, point):
        row, rest = self._variances(*point)
        solved = self._solve(0, row, rest)
        unit = self._units[0] * (rest + self._square if self._has_errors else 1)
        [axis] = _zoom(
            lambda axis: self._means(solved, np.expm1(axis) * unit)[0],
            [self._tops[0]],
            _N_POINTS[0],
            [_FAR, _FAR, 0, 0, 0],
        )
        logs, q, *_ = self._means(solved, np.expm1(axis) * unit)
        best = logs.argmax()
        factor = 1.0 if self._has_errors else q[best] / (self._n - 1)
        return logs[best], np.array([row, np.expm1(axis[best]) * unit, rest]) * factor

    def _fit(self, ways):
        found: dict[Any, Variances] = {}

        def evidence(*axes):
            found.clear()
            for point in product(*axes):
                found[point] = self._integrate(0, point)
            v = np.array([logsumexp(x.logs) for x in found.values()])
            return v.reshape([len(x) for x in axes])

        tops = [self._tops[1]]
        if self._has_errors:
            tops.append((0.0, np.log(1e4 / self._square)))
        n = _N_POINTS[len(tops)]
        axes = _zoom(evidence, tops, n, [_FAR] * (3 + self._has_errors))
        halves = sum(
            np.meshgrid(
                *[np.where(np.arange(n) == 0, np.log(0.5), 0.0) for _ in axes],
                indexing="ij",
            )
        ).ravel()
        points = [
            (p, x._replace(logs=x.logs + h))
            for (p, x), h in zip(found.items(), halves, strict=True)
        ]
        w = np.array([logsumexp(x.logs) for _, x in points])
        keep = [
            (p, x, h)
            for ((p, x), h, a) in zip(points, halves, w, strict=True)
            if a > w.max() - _FAR
        ]
        # REML
        best = keep[int(np.argmax([logsumexp(x.logs) for _, x, _ in keep]))][0]
        steps = [x[1] - x[0] for x in axes]

        def prof(*axes):
            return np.array([self._profile(p)[0] for p in product(*axes)]).reshape(
                [len(x) for x in axes]
            )

        ends = [
            (max(0, b - 4 * s), b + 4 * s) for b, s in zip(best, steps, strict=True)
        ]
        ax = _zoom(prof, ends, n, [0.0] * (2 + 2 * self._has_errors))
        v = prof(*ax)
        at = np.unravel_index(v.argmax(), v.shape)
        self.components = (
            np.sqrt(self._profile([x[i] for x, i in zip(ax, at, strict=True)])[1])
            * self.unit
        )
        prior = np.log([*ways.values()])
        self.points = [x._replace(logs=x.logs + prior[0]) for _, x, _ in keep]
        for way in range(1, len(ways)):
            for p, _, h in keep:
                x = self._integrate(way, p)
                self.points.append(x._replace(logs=x.logs + h + prior[way]))
        total = logsumexp([logsumexp(x.logs) for x in self.points])
        self.points = [x._replace(logs=x.logs - total) for x in self.points]
        self.weights = np.bincount(
            [x.way for x in self.points],
            [np.exp(logsumexp(x.logs)) for x in self.points],
        )

    def spread(self) -> float:
        """Return the median of the total's distribution, of the last prediction."""
        values, weights = self.sp
        order = np.argsort(values)
        return float(np.interp(0.5, weights[order].cumsum(), values[order]))

    def predict(self, group, place, of_mean, error):
        row_on, cell_on = 1.0, 1.0 - of_mean
        parts = []
        quant = np.ones(1)
        if not self._has_errors:
            quant = 1 / chi2.ppf(
                (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES, self._n + 3
            )
        for x in self.points:
            keep = x.logs > max(np.log(1e-8), -99)
            if not keep.any():
                continue
            if self.is_swapped:
                at = (
                    int(place)
                    if place is not None and place < len(self._cells[0]) and not of_mean
                    else None
                )
                row_on = 1.0 - of_mean
                k = np.zeros(len(self._places))
                kk = 1.0
                if group is not None:
                    k[group] = 1.0
            else:
                at = group
                if of_mean:
                    k, kk = np.zeros(len(self._places)), 0.0
                else:
                    k = correlations(
                        self._places,
                        self._places,
                        np.array([place]),
                        *self._ways[x.way],
                    )[:, 0]
                    kk = correlations(
                        self._places,
                        np.array([place]),
                        np.array([place]),
                        *self._ways[x.way],
                    )[0, 0]
            solved = self._solve(x.way, x.row, x.rest, at)
            b = x.columns[keep]
            _, q, grams, shares = self._means(solved, b)
            kappa = solved.vectors.T @ solve_triangular(
                self._roots[x.way], k, lower=True
            )
            to = (shares * kappa) @ solved.products.T  # (n, 2 or 3)
            own = ((b[:, None] - shares) * kappa**2).sum(axis=1)
            if at is not None:
                own += x.row**2 * grams[:, 2, 2] + 2 * x.row * to[:, 2]
                to = to + x.row * grams[:, 2]
            mean = grams[:, 0, 1] / grams[:, 0, 0]
            pred = mean + to[:, 1] - mean * to[:, 0]
            var = (
                row_on * x.row
                + b * kk
                + cell_on * x.rest
                - own
                + (1 - to[:, 0]) ** 2 / grams[:, 0, 0]
            )
            spread = row_on * x.row + b * (kk > 0) + cell_on * x.rest
            factors = np.multiply.outer(
                np.ones(b.size) if self._has_errors else q, quant
            )
            # The prior that matches probability for a sum of variances (Peers 1965).
            r = x.rest + (self._square if self._has_errors else 0)
            G, T = self._cells.shape[1:]
            la, lb, le = x.row + r * self._units[1], b + r * self._units[0], r
            va, vb, ve = G - 1, T - 1, max(1, self._n - G - T + 1)
            ca, cb, ce = row_on, float(kk > 0), cell_on
            fac = np.log(
                ca * la**2 / va + cb * lb**2 / vb + ce * le**2 / ve
            ) / 2 - np.log(la * lb * le)
            parts.append(
                [
                    np.exp(x.logs[keep] + fac),
                    pred,
                    var,
                    spread,
                    factors.reshape(b.size, -1),
                ]
            )
        w, m, v, s, f = (np.concatenate(p) for p in zip(*parts, strict=True))
        J = f.shape[1]
        w = np.repeat(w / J, J)
        w /= w.sum()
        m = np.repeat(m, J) * self.unit + self._center
        dev = np.sqrt(v[:, None] * f).ravel() * self.unit
        self.sp = (np.sqrt(s[:, None] * f).ravel() * self.unit, w)
        return Mixture(w, m, np.hypot(dev, error))
