"""Ranks within the era."""

from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri
from sklearn.utils._param_validation import StrOptions

from .._eras import EncodedEras
from ._base import Array, EraTransformer, mixed, rows_by_era, sums_by_era
from ._docstring import ATTRIBUTES, NOTES, SMOOTH, UNSEEN

# Values of a column to remember, as many as scikit-learn's QuantileTransformer does.
_MOST_POINTS = 1000


def era_ranks(x: Array, codes: Any = None, weights: Array | None = None) -> Array:
    """Return the share that is below each row in its era, and half of its equals, by
    weight: of n rows (rank - 1/2) / n, with average ranks for ties.
    """
    order = np.argsort(x)
    if codes is None:
        codes = np.zeros(x.size, np.int32)
    else:  # faster than `lexsort`, which sorts x stably
        order = order[np.argsort(codes[order], kind="stable")]
    x, codes = x[order], codes[order]
    own = np.ones(x.size) if weights is None else weights[order]
    is_first = np.append(True, (x[1:] != x[:-1]) | (codes[1:] != codes[:-1]))
    starts = np.flatnonzero(is_first[: x.size])
    mass, of_era = np.add.reduceat(own, starts), codes[starts]
    totals = np.bincount(of_era, mass)
    below = np.cumsum(mass) - mass / 2 - (np.cumsum(totals) - totals)[of_era]
    totals[totals == 0] = 1.0
    ranks = np.empty(x.size)
    sizes = np.diff(np.append(starts, x.size))
    ranks[order] = np.repeat(below / totals[of_era], sizes)
    return ranks


class EraRankTransformer(EraTransformer):
    __doc__ = f"""Replace each value by its rank within its era, between 0 and 1.

    Among n rows the rank is ``F_e = (rank - 1/2) / n``, with average ranks for ties.
    The result is ``(n F_e + k F) / (n + k)`` with F the rank in the training, which is
    linear between values. With ``smooth=0`` it is that of
    :func:`~sklearn_era.numerai.metrics.rank_normalize`.

    Parameters
    ----------
    output_distribution : {{'uniform', 'normal'}}, default='uniform'
        Whether to return ranks, or their quantiles of the standard normal distribution.
    {SMOOTH}
    {UNSEEN}
        At most 1,000 values of a column are kept of the training, or of an era.

    Attributes
    ----------
    {ATTRIBUTES}

    {NOTES}

    Examples
    --------
    >>> from sklearn_era.preprocessing import EraRankTransformer
    >>> X, weeks = [[1.0], [3.0], [10.0], [30.0]], [1, 1, 2, 2]
    >>> EraRankTransformer(smooth=0).fit_transform(X, eras=weeks).ravel().tolist()
    [0.25, 0.75, 0.25, 0.75]
    """
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **EraTransformer._parameter_constraints,
        "output_distribution": [StrOptions({"uniform", "normal"})],
    }

    def __init__(
        self,
        *,
        output_distribution: str = "uniform",
        smooth: float = 10.0,
        unseen: str = "batch",
    ) -> None:
        self.output_distribution = output_distribution
        self.smooth = smooth
        self.unseen = unseen

    def _learn(self, X: Array, eras: EncodedEras, weights: Array) -> None:
        known = weights[:, np.newaxis] * ~np.isnan(X)
        self._n_of_eras = sums_by_era(known, eras)
        in_all = known / (self._n_of_eras + self.smooth)[eras.codes]
        self._training = [_points(*pair) for pair in zip(X.T, in_all.T, strict=True)]
        rows = rows_by_era(eras) if self.unseen == "train" else []
        self._of_eras = [
            [_points(*pair) for pair in zip(X[own].T, known[own].T, strict=True)]
            for own in rows
        ]

    def _apply(self, X: Array, eras: EncodedEras) -> Array:
        training = _rank(X, self._training)
        if self.unseen == "batch":
            known = 1.0 * ~np.isnan(X)
            pairs = zip(X.T, known.T, strict=True)
            n = sums_by_era(known, eras)
            own = np.transpose([era_ranks(x, eras.codes, w) for x, w in pairs])
        else:
            places, own = self._places(eras), training.copy()
            n = np.where(places[:, np.newaxis] < 0, 0.0, self._n_of_eras[places])
            for rows, place in zip(rows_by_era(eras), places, strict=True):
                if place >= 0:
                    own[rows] = _rank(X[rows], self._of_eras[place])
        ranks = mixed(n[eras.codes], own, training, self.smooth)
        return ndtri(ranks) if self.output_distribution == "normal" else ranks


def _points(x: Array, weights: Array) -> tuple[Array, Array]:
    """The distinct values and their ranks, of many those nearest to even ranks."""
    x, weights = x[weights > 0], weights[weights > 0]
    values, first = np.unique(x, return_index=True)
    ranks = era_ranks(x, weights=weights)[first]
    if values.size > _MOST_POINTS:
        wanted = np.linspace(ranks[0], ranks[-1], _MOST_POINTS)
        kept = np.unique(np.searchsorted(ranks, wanted).clip(max=values.size - 1))
        values, ranks = values[kept], ranks[kept]
    return values, ranks


def _rank(X: Array, points: list[tuple[Array, Array]]) -> Array:
    """The ranks of columns among points; NaN where there are none."""
    ranks = [
        np.interp(x, *own) if own[0].size else np.full(x.shape, np.nan)
        for x, own in zip(X.T, points, strict=True)
    ]
    return np.transpose(ranks)
