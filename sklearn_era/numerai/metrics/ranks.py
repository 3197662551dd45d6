"""Ranks within an era, which scores are computed of and submissions hold."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from sklearn_era.numerai.metrics._era_rows import EraRows, as_numbers


def rank_normalize(x: ArrayLike, eras: ArrayLike | None = None) -> NDArray[np.float64]:
    r"""Rank numbers within their era, as shares strictly between 0 and 1.

    .. math:: r_i = (\operatorname{rank}(x_i) - 1/2) / n

    over the n rows of the era, with average ranks for ties (numerai-tools 0.7.2,
    ``scoring.tie_kept_rank``). The mean of an era's ranks is 1/2.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        Finite numbers.
    eras : array-like of shape (n_samples,), default=None
        Era of each row, in any order. None: all rows are one era.

    Returns
    -------
    ranks : ndarray of shape (n_samples,), dtype=float64
        Between ``0.5 / n`` and ``1 - 0.5 / n``.

    Raises
    ------
    ValueError
        If `x` is no column of finite numbers, or `eras` no label a row.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import rank_normalize
    >>> rank_normalize([0.2, 0.7, 0.2, -1.0]).tolist()
    [0.5, 0.875, 0.5, 0.125]
    """
    rows = EraRows(x, eras, "x")
    ranks = np.empty_like(rows.x)
    for index in rows:
        ranks[index] = rank_era(rows.x[index])
    return ranks


def gaussianize(ranks: ArrayLike) -> NDArray[np.float64]:
    r"""Spread ranks as a standard normal variable.

    .. math:: g_i = \Phi^{-1}(r_i)

    with the standard normal distribution :math:`\Phi` (numerai-tools 0.7.2,
    ``scoring.gaussian``).

    Parameters
    ----------
    ranks : array-like of shape (n_samples,)
        Strictly between 0 and 1, as of :func:`rank_normalize`.

    Returns
    -------
    values : ndarray of shape (n_samples,), dtype=float64
        In standard deviations.

    Raises
    ------
    ValueError
        If a rank is not strictly between 0 and 1.

    Examples
    --------
    >>> from sklearn_era.numerai.metrics import gaussianize
    >>> gaussianize([0.125, 0.5, 0.875]).round(3).tolist()
    [-1.15, 0.0, 1.15]
    """
    values = as_numbers(ranks, "ranks")
    outside = ~((values > 0) & (values < 1))
    if outside.any():
        first = int(np.argmax(outside))
        raise ValueError(
            "ranks must be strictly between 0 and 1, as rank_normalize returns them; "
            f"{np.count_nonzero(outside):,} are not, the first {values[first]!s} at "
            f"row {first:,}."
        )
    return ndtri(values)


def rank_era(values: NDArray[Any]) -> NDArray[np.float64]:
    """As `rank_normalize`: `scipy.stats.rankdata` takes several times as long."""
    n = values.size
    order = np.argsort(values)
    ordered = values[order]
    is_first = np.empty(n + 1, dtype=bool)  # of equal numbers, and the end
    is_first[0] = is_first[n] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:n])
    starts = np.flatnonzero(is_first)
    counts = np.diff(starts)
    # Equal numbers from `start` on have ranks start + 1, ..., start + count.
    averages = (starts[:-1] + (counts + 1) / 2 - 0.5) / n
    ranks = np.empty(n)
    ranks[order] = averages if averages.size == n else np.repeat(averages, counts)
    return ranks


def gaussian_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gaussianized ranks of one era."""
    return ndtri(rank_era(values))
