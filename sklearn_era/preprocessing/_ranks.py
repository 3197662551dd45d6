"""Replace values by their ranks within the era."""

import numpy as np
from scipy.special import ndtri
from sklearn.utils._param_validation import StrOptions

from .._eras import EncodedEras
from .._parameter_object import parameter, with_parameters
from ._base import REST, SMOOTH, UNSEEN, Array, EraTransformer

# Values of a column to remember, as many as scikit-learn's QuantileTransformer does.
_MOST_POINTS = 1000

Points = tuple[Array, Array]  # values and their ranks


@with_parameters
class EraRankTransformer(EraTransformer):
    __doc__ = f"""Replace each value by its rank within its era, between 0 and 1.

    Among n rows the rank is ``F_e = (rank - 1/2) / n``, with average ranks for ties.
    The result is ``(n F_e + k F) / (n + k)``, where F is the value's rank in the
    training, interpolated linearly between training values. With ``smooth=0`` the
    result is that of :func:`~sklearn_era.numerai.metrics.rank_normalize`.

    Parameters
    ----------
    output_distribution : {{'uniform', 'normal'}}, default='uniform'
        Whether to return ranks, or their quantiles of the standard normal distribution.
    {SMOOTH}
    {UNSEEN}
        At most 1,000 values of each column are kept for the training, and for each era.

    Attributes
    ----------
    {REST}

    Examples
    --------
    >>> from sklearn_era.preprocessing import EraRankTransformer
    >>> X, weeks = [[1.0], [3.0], [10.0], [30.0]], [1, 1, 2, 2]
    >>> EraRankTransformer(smooth=0).fit_transform(X, eras=weeks).ravel().tolist()
    [0.25, 0.75, 0.25, 0.75]
    """
    output_distribution: str = parameter(
        [StrOptions({"uniform", "normal"})], default="uniform"
    )
    smooth: float = 10.0
    unseen: str = "batch"

    def _measure(self, X: Array, weights: Array) -> tuple[Array, list[Points]]:
        return weights @ ~np.isnan(X), [_points(x, weights) for x in X.T]

    def _learn(self, X: Array, eras: EncodedEras, weights: Array) -> None:
        n = np.array([n for n, _ in self._of_eras])
        divisors = np.where(n > 0, n + self.smooth, 1.0)
        in_all = weights[:, np.newaxis] / divisors[eras.codes]
        pairs = zip(X.T, in_all.T, strict=True)
        self._training = [_fewer(_points(x, w)) for x, w in pairs]
        self._of_eras = [(n, [*map(_fewer, own)]) for n, own in self._of_eras]
        self._typical = np.zeros(X.shape[1]), self._training

    def _apply(self, X: Array, n: Array, own: list[Points]) -> Array:
        ranks = self._mixed(n, _rank(X, own), _rank(X, self._training))
        return ndtri(ranks) if self.output_distribution == "normal" else ranks


def _points(x: Array, weights: Array) -> Points:
    """Return the distinct values of x and their ranks between 0 and 1. A value's rank
    is the share of weight below it plus half the share at it, which is (rank - 1/2) / n
    for n rows of equal weight. If all of x is missing, return one value, with rank NaN.
    """
    is_known = ~np.isnan(x)
    if not is_known.any():
        return np.zeros(1), np.full(1, np.nan)
    values, places = np.unique(x[is_known], return_inverse=True)
    mass = np.bincount(places, weights[is_known])
    return values, (np.cumsum(mass) - mass / 2) / mass.sum()


def _fewer(points: Points) -> Points:
    """Return at most `_MOST_POINTS` of the points, at about evenly spaced ranks."""
    values, ranks = points
    if values.size <= _MOST_POINTS:
        return points
    wanted = np.linspace(ranks[0], ranks[-1], _MOST_POINTS)
    kept = np.unique(np.searchsorted(ranks, wanted))
    return values[kept], ranks[kept]


def _rank(X: Array, points: list[Points]) -> Array:
    """Return the ranks of columns' values, interpolated between columns' points."""
    pairs = zip(X.T, points, strict=True)
    ranks = np.transpose([np.interp(x, *own) for x, own in pairs])
    return np.where(np.isnan(X), np.nan, ranks)  # a single point ranks NaN, too
