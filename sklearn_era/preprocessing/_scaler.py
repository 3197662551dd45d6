"""Centre and scale columns, or targets, within the era."""

from dataclasses import field
from typing import Any

import numpy as np
from sklearn.preprocessing._data import _is_constant_feature
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._eras import EncodedEras, check_order
from .._parameter_object import parameter, with_parameters
from .._typing import Eras, Table
from ._base import REST, SMOOTH, UNSEEN, Array, EraTransformer, of_fit

WITH = """with_centering, with_scaling : bool, default=True
        Whether to subtract the mean, and to divide by the standard deviation (by 1 if
        it is 0).
    robust : bool, default=False
        Whether to use the median and the interquartile range instead, as
        :class:`~sklearn.preprocessing.RobustScaler`."""
CENTER = """center_, scale_ : ndarray of shape (n_features,)
        The centre and the scale of each column in the training statistics."""


@with_parameters
class EraStandardScaler(EraTransformer):
    __doc__ = f"""Centre and scale columns by mean and deviation within each era.

    Let m_e and v_e be the mean and the variance of the n rows of an era, and m and v
    those of the training (v within eras). A value x becomes ``(x - c) / sqrt(u)``, with
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
    {REST}

    Examples
    --------
    >>> from sklearn_era.preprocessing import EraStandardScaler
    >>> X, weeks = [[1.0], [3.0], [10.0], [30.0]], [1, 1, 2, 2]
    >>> EraStandardScaler(smooth=0).fit_transform(X, eras=weeks).ravel().tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """
    with_centering: bool = parameter(["boolean"], default=True)
    with_scaling: bool = parameter(["boolean"], default=True)
    robust: bool = parameter(["boolean"], default=False)
    smooth: float = 10.0
    unseen: str = "batch"

    def _learn(self, X: Array, eras: EncodedEras, weights: Array) -> None:
        super()._learn(X, eras, weights)
        self.center_, self.scale_ = self._parts(*self._typical)

    def _measure(self, X: Array, weights: Array) -> tuple[Array, Array]:
        """Return the weight of each column's values, and an array with the median and
        the squared interquartile range of each column. Quantiles are linear between
        rows, like NumPy's. If the least weight is below 1, a row of this weight counts
        as one row.
        """
        order = np.argsort(X, axis=0)  # missing values are last
        X = np.take_along_axis(X, order, axis=0)
        known = np.where(np.isnan(X), 0.0, weights[order])
        ends, last = known.cumsum(axis=0), np.count_nonzero(known, axis=0) - 1
        row = np.min(known, axis=0, where=known > 0, initial=1.0)
        place = np.array([[0.25], [0.5], [0.75]]) * (ends[-1] - row)
        i = np.minimum((ends[:, np.newaxis] <= place).sum(axis=0), last)
        here, after = (
            np.take_along_axis(X, x, 0) for x in (i, np.minimum(i + 1, last))
        )
        part = (place - np.take_along_axis(ends, i, 0)) / row + 1
        low, center, high = here + np.maximum(part, 0.0) * (after - here)
        return ends[-1], np.array([center, (high - low) ** 2])

    def _measure_eras(self, X: Array, eras: EncodedEras, weights: Array) -> list[Any]:
        if of_fit(self, "robust"):
            return super()._measure_eras(X, eras, weights)
        codes, known = eras.codes, weights[:, np.newaxis] * ~np.isnan(X)

        def sums(values: Array) -> Array:
            of_columns = [np.bincount(codes, x, eras.labels.size) for x in values.T]
            return np.transpose(of_columns)

        n = sums(known)

        def mean(values: Array) -> Array:
            return sums(np.nan_to_num(known * values)) / np.where(n > 0, n, 1.0)

        center = mean(X)
        center += mean(X - center[codes])  # to the last digits
        square = mean((X - center[codes]) ** 2)
        square[_is_constant_feature(square, center, n)] = 0.0
        return [*zip(n, np.stack([center, square], axis=1), strict=True)]

    def _parts(self, n: Any, own: Any) -> tuple[Array, Array]:
        """Return the centres and the scales of eras. Centres are 0 if `with_centering`
        is False; scales are 1 if `with_scaling` is False, or where the deviation is 0.
        """
        n, own = np.asarray(n)[..., np.newaxis, :], np.asarray(own)
        center, square = np.moveaxis(self._mixed(n, own, self._training), -2, 0)
        is_used = (square != 0) & self.with_scaling
        center = np.where(self.with_centering, center, 0.0)
        return center, np.sqrt(np.where(is_used, square, 1.0))

    def _apply_eras(self, X: Array, eras: EncodedEras, measured: list[Any]) -> Array:
        center, scale = self._parts(*zip(*measured, strict=True))
        return (X - center[eras.codes]) / scale[eras.codes]


@with_parameters
class EraTargetTransformer(EraStandardScaler):
    __doc__ = f"""Centre and scale targets within each era, and bring predictions back.

    It works like :class:`EraStandardScaler` with ``unseen="train"``, because the
    targets of an era to be predicted are unknown. `level` sets this era's statistics.

    Parameters
    ----------
    {WITH}
    {SMOOTH}
    level : {{'mean', 'last'}}, default='mean'
        The statistics of eras that ``fit`` has not seen, and of rows without `eras`.
        'mean' takes the training statistics. 'last' takes those of the last training
        era, for which eras must follow each other in time.

    Attributes
    ----------
    {CENTER}
    {REST}

    Examples
    --------
    >>> from sklearn_era.preprocessing import EraTargetTransformer
    >>> transformer = EraTargetTransformer(smooth=0, level="last")
    >>> y, weeks = [[1.0], [3.0], [10.0], [30.0]], [1, 1, 2, 2]
    >>> transformer.fit_transform(y, eras=weeks).ravel().tolist()
    [-1.0, 1.0, -1.0, 1.0]
    >>> transformer.inverse_transform([[1.0], [1.0]], eras=[1, 3]).ravel().tolist()
    [3.0, 30.0]
    """
    level: str = parameter([StrOptions({"mean", "last"})], default="mean")
    unseen: str = field(default="train", init=False)

    def _learn(self, X: Array, eras: EncodedEras, weights: Array) -> None:
        super()._learn(X, eras, weights)
        if self.level == "last":
            other = "level='mean'"
            check_order(eras, "auto", "level='last'", other, f"use {other}")
            self._typical = self._of_eras[-1]

    def inverse_transform(self, X: Table, *, eras: Eras | None = None) -> Array:
        """Bring transformed targets, or predictions of them, back to eras' levels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Transformed targets.
        eras : array-like of shape (n_samples,), default=None
            Era of each row. None is an era that ``fit`` has not seen.

        Returns
        -------
        X_out : ndarray of shape (n_samples, n_features)
            The targets, in their own unit.
        """
        check_is_fitted(self)
        return self._by_era(self._invert, X, eras)

    def _invert(self, X: Array, eras: EncodedEras, measured: list[Any]) -> Array:
        center, scale = self._parts(*zip(*measured, strict=True))
        return X * scale[eras.codes] + center[eras.codes]
