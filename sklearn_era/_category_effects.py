"""Effects of categories on a target, shrunken by the variance between and within them:

    y = mean + b_category + u_category,era + noise

Estimates of b are those of least squared error, given the three variances.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.integer]


class CategoryEffects(NamedTuple):
    """Effects of categories, and for each row that of its category in other eras."""

    effects: Array  # (n_categories,), 0 of those without rows
    of_rows: Array  # (n_rows,), NaN where no other era has the category


def estimate_effects(
    codes: Codes, eras: Codes, y: Array, weights: Array, n_categories: int
) -> CategoryEffects:
    """Estimate effects, ``sum_j p_j (m_j - mean) / (1 + sum_j p_j)`` over a category's
    eras j of means m_j, each with its precision p_j in units of the variance of b.
    Weights are positive, and 1 on average.
    """
    n_eras = int(eras.max(initial=0)) + 1
    keys = codes.astype(np.intp) * n_eras + eras
    cells, of_row = np.unique(keys, return_inverse=True)
    category = cells // n_eras
    n = np.bincount(of_row, weights).astype(np.float64)
    means = np.bincount(of_row, weights * y) / n
    means -= np.average(means, weights=n)
    residuals = y - np.average(y, weights=weights) - means[of_row]
    within = float(weights @ residuals**2)
    noise, of_eras, between = _variances(category, n, means, within, n_categories)
    # Without any other variance, the means are exact: p is large, but finite.
    variances = np.maximum(of_eras + noise / n, 1e-12 * between / n)
    p = np.divide(between, variances, out=np.zeros_like(n), where=variances > 0)
    totals = np.bincount(category, p, n_categories)
    sums = np.bincount(category, p * means, n_categories)
    of_cells = (sums[category] - p * means) / (1 + totals[category] - p)
    of_cells[np.bincount(category)[category] == 1] = np.nan
    return CategoryEffects(sums / (1 + totals), of_cells[of_row])


def _variances(
    category: Codes, n: Array, means: Array, within: float, n_categories: int
) -> tuple[float, float, float]:
    """Return the variances of noise, of u and of b, by Henderson's first method: sums
    of squares within cells, between those of a category and between categories, set
    equal to their expectations. The means of cells have the mean 0.
    """
    n_rows = np.bincount(category, n, n_categories)
    is_known = n_rows > 0
    n_known = int(is_known.sum())
    squares = np.bincount(category, n * n, n_categories)[is_known]
    sums = np.bincount(category, n * means, n_categories)[is_known]
    n_rows, total = n_rows[is_known], n.sum()
    between = float(sums @ (sums / n_rows))
    of_eras = float(n @ means**2) - between
    free = total - n.size
    noise = within / free if free > 0 else 0.0
    of_cells = (squares / n_rows).sum()

    def solved(sum_of_squares: float, expected: float, size: float) -> float:
        return max(sum_of_squares - expected, 0.0) / size if size > 0 else 0.0

    u = solved(of_eras, noise * (n.size - n_known), total - of_cells)
    expected = noise * (n_known - 1) + u * (of_cells - squares.sum() / total)
    return noise, u, solved(between, expected, total - (n_rows @ n_rows) / total)
