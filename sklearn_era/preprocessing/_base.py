"""Fit and transform by era: where the statistics of an era come from."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .._era_arguments import eras_by_name, take_era_column, warn_of_row_order
from .._eras import EncodedEras, read_eras
from .._fit_attributes import fits_or_fails
from .._scikit_learn import check_sample_weight
from .._warnings import warn_user
from ..ensemble._boosters.known_eras import alike, as_keys

Array = NDArray[np.float64]


class EraTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Learns statistics by era; a subclass has `_learn` and `_apply`."""

    __metadata_request__fit: ClassVar = {"eras": True}
    __metadata_request__transform: ClassVar = {"eras": True}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "smooth": [Interval(Real, 0, None, closed="left")],
        "unseen": [StrOptions({"batch", "train"})],
    }
    smooth: float
    unseen: str

    @eras_by_name
    @fits_or_fails
    def fit(
        self, X: Any, y: Any = None, *, eras: Any = None, sample_weight: Any = None
    ) -> Any:
        """Learn the statistics of the training.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers, or NaN where missing.
        y : None
            Ignored.
        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, or the name of their column in X, which is dropped, and
            which ``transform`` drops, too. None is one era, with a warning.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows.

        Returns
        -------
        self : object
            The transformer, fitted.
        """
        self._validate_params()
        self._era_column = eras if isinstance(eras, str) else None
        if eras is None:
            warn_user(
                f"{type(self).__name__} takes all rows for one era: pass "
                "fit(X, eras=...) with one label a row."
            )
        values, encoded = self._read(X, eras, reset=True)
        weights = check_sample_weight(sample_weight, values, ensure_non_negative=True)
        rows = np.flatnonzero(weights)
        encoded = encoded.take(rows)
        self.era_labels_ = encoded.labels
        self._learn(values[rows], encoded, weights[rows])
        return self

    def transform(self, X: Any, *, eras: Any = None) -> Any:
        """Transform rows by the statistics of their eras.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, or the name of their column in X; None is one era.

        Returns
        -------
        X_out : ndarray or data frame of shape (n_samples, n_features)
            The columns, transformed, as float64.
        """
        check_is_fitted(self)
        eras = self._era_column if eras is None else eras
        return self._apply(*self._read(X, eras, reset=False))

    def fit_transform(
        self, X: Any, y: Any = None, *, eras: Any = None, sample_weight: Any = None
    ) -> Any:
        """Fit to rows and transform them, as ``fit`` and ``transform`` do.

        Parameters
        ----------
        X, y, eras, sample_weight :
            As in ``fit``.

        Returns
        -------
        X_out : ndarray or data frame of shape (n_samples, n_features)
            The columns, transformed, as float64.
        """
        fitted = self.fit(X, y, eras=eras, sample_weight=sample_weight)
        return fitted.transform(X, eras=eras)

    def _read(self, X: Any, eras: Any, *, reset: bool) -> tuple[Array, EncodedEras]:
        X, eras = take_era_column(X, eras)
        warn_of_row_order(eras, X)
        values = validate_data(
            self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
        )
        if eras is None:  # the label is one that `read_eras` refuses
            codes = np.zeros(values.shape[0], np.int32)
            return values, EncodedEras(np.array([None], object), codes)
        return values, read_eras(eras, X)

    def _places(self, eras: EncodedEras) -> NDArray[np.intp]:
        """The places of eras among those of the training, -1 of unseen ones."""
        known, labels = map(as_keys, alike(self.era_labels_, eras.labels))
        places = {label: i for i, label in enumerate(known)}
        return np.array([places.get(label, -1) for label in labels], np.intp)

    def _learn(self, X: Array, eras: EncodedEras, weights: Array) -> None:
        raise NotImplementedError

    def _apply(self, X: Array, eras: EncodedEras) -> Array:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class TableTransformer(EraTransformer):
    """Has a table of statistics, of shape (n_eras, n_statistics, n_features)."""

    def _measure(
        self, X: Array, eras: EncodedEras, weights: Array
    ) -> tuple[Array, Array]:
        """Return the rows that the statistics of eras are of, of shape (n_eras,
        n_features), and the statistics.
        """
        raise NotImplementedError

    def _learn(self, X: Array, eras: EncodedEras, weights: Array) -> None:
        n, own = self._measure(X, eras, weights)
        shares = share_of(n, self.smooth)[:, np.newaxis]
        total = np.where(shares > 0, shares * own, 0.0).sum(axis=0)
        with np.errstate(invalid="ignore"):  # columns without values are NaN
            self._training = self._typical = total / shares.sum(axis=0)
        if self.unseen == "train":
            self._of_eras = mixed(n[:, np.newaxis], own, self._training, self.smooth)

    def _statistics(self, X: Array, eras: EncodedEras) -> Array:
        """The statistics of the eras of rows to transform."""
        if self.unseen == "train":
            table = np.append(self._of_eras, [self._typical], axis=0)
            return table[self._places(eras)]
        n, own = self._measure(X, eras, np.ones(X.shape[0]))
        return mixed(n[:, np.newaxis], own, self._training, self.smooth)


def share_of(n: Array, smooth: float) -> Array:
    """The share of the statistics of an era's own n rows; 0 without any."""
    return np.divide(n, n + smooth, out=np.zeros(n.shape), where=n > 0)


def mixed(n: Array, own: Array, training: Array, smooth: float) -> Array:
    """The statistics of eras of n rows, mixed with those of the training."""
    shares = share_of(n, smooth)
    return np.where(shares > 0, shares * own + (1 - shares) * training, training)


def rows_by_era(eras: EncodedEras) -> list[NDArray[np.intp]]:
    order = np.arange(eras.codes.size) if eras.order is None else eras.order
    return np.split(order, eras.offsets[1:-1])


def sums_by_era(values: Array, eras: EncodedEras) -> Array:
    """The sums of columns, of shape (n_eras, n_features)."""
    ordered = values if eras.order is None else values[eras.order]
    return np.add.reduceat(ordered, eras.offsets[:-1])
