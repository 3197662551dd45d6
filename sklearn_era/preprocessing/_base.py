"""Define the base of transformers that use statistics of eras."""

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._era_arguments import eras_by_name, warn_of_row_order
from .._era_columns import take_era_column
from .._era_labels import find
from .._eras import EncodedEras, read_eras
from .._fit_attributes import restores_on_failure
from .._scikit_learn import check_sample_weight
from .._tables.columns import as_numeric
from .._typing import Eras, Table
from .._warnings import warn_user

Array = NDArray[np.float64]

# Parts of the docstrings of transformers.
SMOOTH = """smooth : float, default=10.0
        k, the number of rows that training statistics count as. Statistics of an era
        with n rows have the share ``n / (n + k)`` in the mixture, and training
        statistics have the share ``k / (n + k)``."""
UNSEEN = """unseen : {'batch', 'train'}, default='batch'
        The rows that give an era's own statistics. 'batch' takes the rows passed to
        ``transform``, which should be all rows of the era. 'train' takes the era's rows
        in ``fit`` and, for eras that ``fit`` has not seen, all training rows."""
REST = """era_labels_ : ndarray of shape (n_eras,)
        The eras of the training rows.
    n_features_in_, feature_names_in_ :
        As in scikit-learn's transformers.

    Notes
    -----
    Training statistics are the means of the eras' statistics with weights
    ``n / (n + k)``. They are empirical Bayes estimates if the variance between eras is
    1 / k of the variance within them. `sample_weight` counts as repeated rows, and only
    ``fit`` uses it. Missing values are left out, and stay missing. A column without
    values in the training gets the statistics of the row's own era alone; with
    ``unseen="train"``, it is missing."""


def of_fit(transformer: BaseEstimator, name: str) -> Any:
    """Return the value that a parameter had in the fit; or its present value, if an
    older version saved the transformer, which did not store the value of the fit.
    """
    return vars(transformer).get(f"_{name}", getattr(transformer, name))


def read_or_one(eras: Eras | None, X: Any, n_rows: int) -> EncodedEras:
    """Encode the eras of rows; if `eras` are None, all rows are of one era."""
    if eras is None:  # the label is one that `read_eras` refuses
        return EncodedEras(np.array([None], object), np.zeros(n_rows, np.int32))
    return read_eras(eras, X)


class EraTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of transformers by statistics of an era, mixed with training statistics."""

    smooth: float
    unseen: str
    _measure: ClassVar[Any]  # (X, weights) to the rows n of columns, and statistics
    _apply: ClassVar[Any]  # (X, n, statistics) to the transformed rows
    _takes_nan: ClassVar = True  # in all columns
    __metadata_request__fit: ClassVar = {"eras": True}
    __metadata_request__transform: ClassVar = {"eras": True}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "smooth": [Interval(Real, 0, None, closed="left")],
        "unseen": [StrOptions({"batch", "train"})],
    }

    @eras_by_name
    @restores_on_failure
    def fit(
        self, X: Table, y: ArrayLike | None = None, *, eras: Eras | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Learn the statistics of the training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers, or NaN where missing.
        y : None
            Ignored.
        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, or the name of the column of eras in X, which ``fit`` and
            ``transform`` drop. None takes all rows for one era, with a warning.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows.

        Returns
        -------
        self : object
            The transformer, fitted.
        """
        self._validate_params()
        # For `transform`, also if parameters are set before it.
        self._smooth, self._robust = self.smooth, getattr(self, "robust", False)
        if eras is None:
            warn_user(
                f"{type(self).__name__} takes all rows for one era: pass "
                "fit(X, eras=...) with one label a row."
            )
        values, encoded = self._read(X, eras, reset=True)
        weights = check_sample_weight(sample_weight, values)
        rows = np.flatnonzero(weights)
        encoded = encoded.take(rows)
        self.era_labels_ = encoded.labels
        values, weights = values[rows], weights[rows]
        self._of_eras = self._measure_eras(values, encoded, weights)
        self._learn(values, encoded, weights)
        if self.unseen == "batch":
            del self._of_eras
        return self

    def transform(self, X: Table, *, eras: Eras | None = None) -> Any:
        """Transform rows by the statistics of their eras.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, or the name of the column of eras in X. None takes the
            column that was named in ``fit``; if none was named, all rows are one era.

        Returns
        -------
        X_out : ndarray or data frame of shape (n_samples, n_features)
            The columns, transformed, as float64.
        """
        check_is_fitted(self)
        eras = getattr(self, "_era_column", None) if eras is None else eras
        return self._by_era(self._apply_eras, X, eras)

    def fit_transform(
        self, X: Table, y: ArrayLike | None = None, **fit_params: Any
    ) -> Any:
        # The docstring is scikit-learn's, whose method hands no eras to `transform`.
        return self.fit(X, y, **fit_params).transform(X, eras=fit_params.get("eras"))

    def _read(
        self, X: Table, eras: Eras | None, *, reset: bool
    ) -> tuple[Array, EncodedEras]:
        X, eras = take_era_column(X, eras, model=self)
        warn_of_row_order(eras, X)
        options: Any = {"ensure_all_finite": "allow-nan", "input_name": "X"}
        values = check_array(as_numeric(X), dtype=np.float64, estimator=self, **options)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return values, read_or_one(eras, X, len(values))

    def _learn(self, X: Array, eras: EncodedEras, weights: Array) -> None:
        """Store the mean statistics of all eras, for mixing and for unknown eras."""
        n, own = map(np.array, zip(*self._of_eras, strict=True))
        shares = self._share(n)[:, np.newaxis]
        total = np.where(shares > 0, shares * own, 0.0).sum(axis=0)
        with np.errstate(invalid="ignore"):  # columns without values are NaN
            self._training = total / shares.sum(axis=0)
        self._typical = np.zeros(X.shape[1]), self._training

    def _measure_eras(self, X: Array, eras: EncodedEras, weights: Array) -> list[Any]:
        return [self._measure(X[own], weights[own]) for own in eras.rows]

    def _apply_eras(self, X: Array, eras: EncodedEras, measured: list[Any]) -> Array:
        out = np.empty_like(X)
        for own, found in zip(eras.rows, measured, strict=True):
            out[own] = self._apply(X[own], *found)
        return out

    def _by_era(
        self, apply: Callable[..., Array], X: Table, eras: Eras | None
    ) -> Array:
        """Read X and eras; return the result of `apply` with each era's statistics."""
        X, encoded = self._read(X, eras, reset=False)
        if self.unseen == "batch":
            measured = self._measure_eras(X, encoded, np.ones(X.shape[0]))
        elif not hasattr(self, "_of_eras"):
            raise ValueError(
                "unseen='train' needs the statistics of training eras, and the fit, "
                "with unseen='batch', kept none: fit again."
            )
        else:
            of_eras = [*self._of_eras, self._typical]  # at -1, of an unknown era
            measured = [of_eras[i] for i in find(self.era_labels_, encoded.labels)]
        return apply(X, encoded, measured)

    def _share(self, n: Array) -> Array:
        """Return ``n / (n + smooth)``, the share of an era's own statistics in a mix
        with training statistics, where n is the era's number of rows; 0 for no rows.
        """
        none, k = np.zeros(np.shape(n)), of_fit(self, "smooth")
        return np.divide(n, n + k, out=none, where=n > 0)

    def _mixed(self, n: Array, own: Array, training: Array) -> Array:
        """Return an era's own statistics, from n rows, mixed with training statistics.
        Without rows, return the training statistics; where a column had no values in
        the training, return the era's own.
        """
        shares = self._share(n)
        training = np.where(np.isnan(training) & (shares > 0), own, training)
        return np.where(shares > 0, shares * own + (1 - shares) * training, training)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_nan
        return tags
