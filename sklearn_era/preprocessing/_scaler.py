"""Columns centred and scaled within the era."""

from typing import Any, ClassVar

import numpy as np
from sklearn.preprocessing._data import _is_constant_feature
from sklearn.utils.stats import _weighted_percentile

from .._eras import EncodedEras
from ._base import Array, TableTransformer, rows_by_era, sums_by_era
from ._docstring import ATTRIBUTES, CENTER, NOTES, SMOOTH, UNSEEN, WITH


class EraStandardScaler(TableTransformer):
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
        **TableTransformer._parameter_constraints,
        "with_centering": ["boolean"],
        "with_scaling": ["boolean"],
        "robust": ["boolean"],
    }

    def __init__(
        self,
        *,
        with_centering: bool = True,
        with_scaling: bool = True,
        robust: bool = False,
        smooth: float = 10.0,
        unseen: str = "batch",
    ) -> None:
        self.with_centering = with_centering
        self.with_scaling = with_scaling
        self.robust = robust
        self.smooth = smooth
        self.unseen = unseen

    def _learn(self, X: Array, eras: EncodedEras, weights: Array) -> None:
        super()._learn(X, eras, weights)
        self.center_, self.scale_ = self._parts(self._training)

    def _measure(
        self, X: Array, eras: EncodedEras, weights: Array
    ) -> tuple[Array, Array]:
        known = weights[:, np.newaxis] * ~np.isnan(X)
        n = sums_by_era(known, eras)
        if self.robust:
            quartiles = np.array([
                [_quantile(X[own], weights[own], percent) for percent in (25, 50, 75)]
                for own in rows_by_era(eras)
            ])  # fmt: skip
            low, center, high = quartiles.swapaxes(0, 1)
            return n, np.stack([center, (high - low) ** 2], axis=1)

        def mean(values: Array) -> Array:
            return sums_by_era(known * values, eras) / np.where(n > 0, n, 1.0)

        filled = np.where(np.isnan(X), 0.0, X)
        center = mean(filled)
        center += mean(filled - center[eras.codes])  # to the last digits
        square = mean((filled - center[eras.codes]) ** 2)
        square[_is_constant_feature(square, center, n)] = 0.0
        return n, np.stack([center, square], axis=1)

    def _parts(self, table: Array) -> tuple[Array, Array]:
        """Centres and scales, 0 and 1 where these are not wanted."""
        center, scale = table[..., 0, :], np.sqrt(table[..., 1, :])
        center = center if self.with_centering else np.zeros_like(center)
        is_used = (scale != 0) & self.with_scaling
        return center, np.where(is_used, scale, 1.0)

    def _apply(self, X: Array, eras: EncodedEras) -> Array:
        center, scale = self._parts(self._statistics(X, eras))
        return (X - center[eras.codes]) / scale[eras.codes]


def _quantile(X: Array, weights: Array, percent: float) -> Array:
    """The averaged inverse of the distribution: of two values halfway, their mean."""
    up = _weighted_percentile(X, weights, percent)
    return (up - _weighted_percentile(-X, weights, 100 - percent)) / 2
