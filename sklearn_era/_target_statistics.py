"""Estimate effects of categories on a target by empirical Bayes, from sums by era."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
# Variances are estimated anew whenever eras have become more by this factor.
_GROWTH = 1.5
# Eras that the variance between all eras counts as in that of a category.
_PRIOR_ERAS = 4.0
_TINY = 1e-12


class Cells(NamedTuple):
    """Sums over the rows of each cell, a pair of a category and an era. Cells are
    sorted by category, then by era.
    """

    categories: Any
    eras: Any
    n: Any
    sums: Any  # of values, of shape (n_outputs, n_cells)
    squares: Any  # of values of whole eras, of shape (n_outputs, n_eras)


def cells_of(categories: Ints, eras: Ints, values: Array, weights: Array) -> Cells:
    """Return the `Cells` of rows, from `values` of shape (n_outputs, n_rows)."""
    n_eras = eras.max() + 1
    keys, at = np.unique(categories * n_eras + eras, return_inverse=True)
    sums = [np.bincount(at, weights * x) for x in values]
    squares = [np.bincount(eras, weights * x * x) for x in values]
    n = np.bincount(at, weights)
    return Cells(keys // n_eras, keys % n_eras, n, np.array(sums), np.array(squares))


def effects(
    cells: Cells, categories: Ints, eras: Ints, smooth: Any, n_folds: int = 0
) -> list[Array]:
    """Return [effect, variation, count] of each row's category, from eras before the
    row's own: the effect on the target, the effect's standard deviation over eras, and
    the sum of weights. The first two have shape (n_rows, n_outputs), the last (n_rows,
    1). With `n_folds`, effects and variations come from the eras of the other folds.
    Counts then come from all eras: counts in the other folds would reveal how many rows
    of a category are in the row's own fold.
    """
    if not n_folds:
        return _by_earlier_eras(cells, categories, eras, smooth)
    new = np.full(eras.size, n_eras := cells.squares.shape[1])
    found = _by_earlier_eras(cells, categories, new, smooth)
    folds = np.arange(n_eras) % n_folds
    for fold in range(n_folds):
        rows, is_other = np.flatnonzero(folds[eras] == fold), folds != fold
        of_others = [x[..., is_other[cells.eras]] for x in cells[:4]]
        others = Cells._make([*of_others, cells.squares * is_other])
        parts = _by_earlier_eras(others, categories[rows], new[rows], smooth)
        found[0][rows], found[1][rows] = parts[:2]
    return found


def _by_earlier_eras(
    cells: Cells, categories: Ints, eras: Ints, smooth: Any
) -> list[Array]:
    n_eras, n_outputs = cells.squares.shape[1], len(cells.sums)
    keys = cells.categories * (n_eras + 1) + cells.eras
    first = np.searchsorted(keys, categories * (n_eras + 1))
    last = np.searchsorted(keys, categories * (n_eras + 1) + eras)

    def total(x: Array, rows: slice | NDArray[Any] = slice(None)) -> Array:
        """Return each row's sum of x over the cells of its category in earlier eras."""
        sums = np.append(0.0, np.cumsum(x))
        return sums[last[rows]] - sums[first[rows]]

    effect, variation = np.zeros((2, eras.size, n_outputs))
    for i in range(n_outputs):
        mean = cells.sums[i] / cells.n
        for start, stop, noise, between, of_effects in _variances(cells, i):
            rows = np.flatnonzero((start <= eras) & (eras < stop))
            p = _precisions(cells.n, noise, between, of_effects)
            precision, product = total(p, rows), total(p * mean, rows)
            own = _ratio(product, precision)
            spread = np.maximum(total(p * mean**2, rows) - own * product, 0.0)
            if smooth == "auto":
                shrinkage = 1 / of_effects if of_effects > 0 else np.inf
            else:
                shrinkage, precision = smooth, total(cells.n, rows)
                own = _ratio(total(cells.sums[i], rows), precision)
            effect[rows, i] = own * _ratio(precision, precision + shrinkage)
            n_own = np.maximum(last[rows] - first[rows] - 1, 0)
            share = (spread + _PRIOR_ERAS) / (n_own + _PRIOR_ERAS)
            variation[rows, i] = np.sqrt(between * share)
    return [effect, variation, total(cells.n)[:, np.newaxis]]


def effects_elsewhere(
    categories: Ints, eras: Ints, y: Array, weights: Array, n_categories: int
) -> tuple[Array, Array]:
    """Return two arrays. The first has each category's effect on y; the second has, for
    each row, the effect of its category, estimated from all eras except the row's own
    (NaN if no other era has the category). The weighted mean of y must be 0.
    """
    cells = cells_of(categories, eras, y[np.newaxis], weights)
    *_, (_, _, noise, between, of_effects) = _variances(cells, 0)
    p = _precisions(cells.n, noise, between, of_effects)
    shrinkage = 1 / of_effects if of_effects > 0 else np.inf
    products = p * cells.sums[0] / cells.n
    own = cells.categories
    precision, product = (np.bincount(own, x, n_categories) for x in (p, products))
    of_cells = (product[own] - products) / (precision[own] - p + shrinkage)
    of_cells[np.bincount(own)[own] == 1] = np.nan
    n_eras = cells.squares.shape[1]
    keys = cells.categories * n_eras + cells.eras
    at = np.searchsorted(keys, categories * n_eras + eras)
    return product / (precision + shrinkage), of_cells[at]


def _precisions(n: Array, noise: float, between: float, of_effects: float) -> Array:
    """Return the precision (1 / variance) of the mean of each cell's n rows, given the
    variances that `_variances` yields.
    """
    least = _TINY * (of_effects or between + noise or 1.0)  # in the target's unit
    return 1 / np.maximum(between + noise / n, least)


def _ratio(a: Array, b: Array) -> Array:
    return np.divide(a, b, out=np.zeros(a.size), where=b > 0)


def _variances(cells: Cells, i: int) -> Iterator[tuple[int, int, float, float, float]]:
    """Yield (start, stop, noise, between, of_effects) for output `i`. The variances
    hold for eras start, ..., stop - 1, and are estimated from earlier eras only, by the
    method of moments. `noise` is the variance of rows in a cell, `between` the variance
    of a category's effect from era to era, and `of_effects` the variance of effects
    among categories.
    """
    n_eras, n, s = cells.squares.shape[1], cells.n, cells.sums[i]
    is_first = np.append(True, np.diff(cells.categories) != 0)[: n.size]
    start = np.maximum.accumulate(np.where(is_first, np.arange(n.size), 0))

    def by_era(x: Array) -> Array:
        return np.cumsum(np.bincount(cells.eras, x, n_eras))

    def of_category(x: Array) -> tuple[Array, Array]:
        """Return two sums of x for each cell (a category in an era). The first is over
        the cells of the same category up to this era, the second over cells of the same
        category before this era.
        """
        sums = np.cumsum(x)
        own = sums - (sums - x)[start]
        return own, np.where(is_first, 0.0, own - x)

    def solve(rest: Array, size: Array) -> Array:
        return _ratio(np.maximum(rest, 0.0), np.where(size > 1e-9 * rows, size, 0.0))

    (n1, n0), (s1, s0), (q1, q0) = map(of_category, (n, s, n * n))
    rows, sums, squares = by_era(n), by_era(s), np.cumsum(cells.squares[i])
    n_cells, n_categories = by_era(np.ones(n.size)), by_era(1.0 * is_first)
    # Sums of squares that are explained by cells, by categories and by the mean.
    of_cells, of_mean = by_era(s * s / n), _ratio(sums**2, rows)
    of_categories = by_era(s1**2 / n1 - _ratio(s0**2, n0))
    # What they expect of the variances between eras and of effects.
    in_categories = by_era(q1 / n1 - _ratio(q0, n0))
    in_mean = _ratio(by_era(n * n), rows)
    effects_in_mean = _ratio(by_era(n1**2 - n0**2), rows)
    noise = solve(squares - of_cells, rows - n_cells)
    is_single = rows - n_cells <= 1e-9 * rows  # no cell has two rows
    pooled = solve(squares - of_categories, rows - n_categories)
    noise = np.where(is_single, pooled, noise)
    rest = of_cells - of_categories - noise * (n_cells - n_categories)
    between = np.where(is_single, 0.0, solve(rest, rows - in_categories))
    rest = of_categories - of_mean - noise * (n_categories - 1)
    rest -= between * (in_categories - in_mean)
    of_effects = solve(rest, rows - effects_in_mean)
    stop = 1
    while (era := stop) <= n_eras:
        grown = max(era + 1, int(_GROWTH * era))
        stop = min(grown, n_eras + (era == n_eras))
        at = era - 1
        yield era, stop, float(noise[at]), float(between[at]), float(of_effects[at])
