"""Columns centred and scaled within the era."""

from typing import Any, ClassVar

import numpy as np
from sklearn.preprocessing._data import _is_constant_feature
from sklearn.utils.stats import _weighted_percentile

from .._eras import EncodedEras
from ._base import Array, EraTransformer, with_parameters
from ._docstring import ATTRIBUTES, CENTER, NOTES, SMOOTH, UNSEEN, WITH


@with_parameters
class EraStandardScaler(EraTransformer):
    __doc__ = f"""Centre and scale columns by mean and deviation within each era.

    With mean m_e and variance v_e of the n rows of an era, and m and v of the training
    (v within eras), a value x becomes ``(x - c) / sqrt(u)``, where
    ``c = (n m_e + k m) / (n + k)`` and ``u = (n v_e + k v) / (n + k)``. With
    ``smooth=0`` this is :class:`~sklearn.preprocessing.StandardScaler` era by era.

    Parameters
    ----------
    {WITH}
    {SMOOTH}
    {UNSEEN}

    Attributes
    ----------
    {CENTER}
    {ATTRIBUTES}

    {NOTES}

    Examples
    --------
    >>> from sklearn_era.preprocessing import EraStandardScaler
    >>> X, weeks = [[1.0], [3.0], [10.0], [30.0]], [1, 1, 2, 2]
    >>> EraStandardScaler(smooth=0).fit_transform(X, eras=weeks).ravel().tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **EraTransformer._parameter_constraints,
        "with_centering": ["boolean"],
        "with_scaling": ["boolean"],
        "robust": ["boolean"],
    }

    with_centering: bool = True
    with_scaling: bool = True
    robust: bool = False
    smooth: float = 10.0
    unseen: str = "batch"

    def _learn(self, X: Array, eras: EncodedEras, weights: Array) -> None:
        super()._learn(X, eras, weights)
        self.center_, self.scale_ = self._parts(self._training)

    def _measure(self, X: Array, weights: Array) -> tuple[Array, Array]:
        known = weights[:, np.newaxis] * ~np.isnan(X)
        n = known.sum(axis=0)
        if self.robust:
            low, center, high = (_quantile(X, weights, p) for p in (25, 50, 75))
            return n, np.array([center, (high - low) ** 2])

        def mean(values: Array) -> Array:
            return np.nansum(known * values, axis=0) / np.where(n > 0, n, 1.0)

        center = mean(X)
        center += mean(X - center)  # to the last digits
        square = mean((X - center) ** 2)
        square[_is_constant_feature(square, center, n)] = 0.0
        return n, np.array([center, square])

    def _parts(self, table: Array) -> tuple[Array, Array]:
        """The centre and the scale, 0 and 1 where these are not wanted."""
        center, scale = table[0], np.sqrt(table[1])
        is_used = (scale != 0) & self.with_scaling
        center = np.where(self.with_centering, center, 0.0)
        return center, np.where(is_used, scale, 1.0)

    def _apply(self, X: Array, n: Array, own: Array) -> Array:
        center, scale = self._parts(self._mixed(n, own, self._training))
        return (X - center) / scale


def _quantile(X: Array, weights: Array, percent: float) -> Array:
    """The averaged inverse of the distribution: of two values halfway, their mean."""
    up = _weighted_percentile(X, weights, percent)
    return (up - _weighted_percentile(-X, weights, 100 - percent)) / 2
