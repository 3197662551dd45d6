"""Fit a regularised linear model of standardised columns, as a member of an average."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from sklearn.preprocessing._data import _is_constant_feature
from sklearn.utils.validation import check_is_fitted, validate_data

from .._scikit_learn import check_categorical_features
from .._tables.columns import (
    Column,
    as_frame,
    as_matrix,
    places_in,
    read_columns,
    rows_as_in_fit,
    sorted_categories,
)
from .._typing import ColumnChoice, Table

# Penalties of a row's mean loss, from strong to weak. Predictions have the last one by
# default, and a model may end with any of the first.
PENALTIES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
# A category of fewer rows has no coefficient.
_LEAST_ROWS = 10
_MOST_CATEGORIES = 50


@dataclass(eq=False, repr=False)
class _Linear(BaseEstimator):
    """Generalised linear models of standardised columns, one model for each penalty. A
    missing number counts as the mean and is marked in a column of 0 and 1; each common
    category also has a column of 0 and 1. Predicted numbers stay in the range of
    training targets.
    """

    loss: str
    categorical_features: ColumnChoice = "from_dtype"
    penalties: tuple[float, ...] = PENALTIES

    def fit(self, X: Table, y: Any, sample_weight: Any = None) -> Self:
        X = as_frame(X)
        validate_data(self, X, skip_check_array=True)
        given = check_categorical_features(X, self.categorical_features)
        columns = read_columns(X, categorical_features=given)
        self.is_categorical_ = np.array([x.is_categorical for x in columns])
        weights = np.ones(len(y)) if sample_weight is None else np.array(sample_weight)
        self._codings = [_coding_of(column, weights) for column in columns]
        Z, scale = np.column_stack(self._design(columns)), float(weights.sum())
        if is_classifier(self):
            self.classes_, y = np.unique(y, return_inverse=True)
        else:
            known = np.asarray(y, dtype=np.float64)[weights > 0]
            self._range = np.array([known.min(), known.max()])
        intercepts, coefficients, level = [], [], 0.0
        model: Any = LogisticRegression(max_iter=500, warm_start=True)
        if self.loss in ("poisson", "gamma"):
            # Poisson's deviance has the unit of y, and the penalty has none.
            mean = float(np.average(y, weights=weights)) or 1.0
            y, level = np.asarray(y) / mean, np.log(mean)
            kind = PoissonRegressor if self.loss == "poisson" else GammaRegressor
            model = kind(max_iter=500, warm_start=True)
        for penalty in self.penalties:
            if self.loss == "log_loss":
                model.set_params(C=1 / (penalty * scale))
            elif self.loss == "squared_error":
                model = Ridge(penalty * scale)
            else:
                model.set_params(alpha=penalty)
            if is_classifier(self) and self.classes_.size == 1:
                intercepts.append(np.zeros(1))
                coefficients.append(np.zeros((1, Z.shape[1])))
                continue
            model.fit(Z, y, sample_weight=sample_weight)
            intercepts.append(np.atleast_1d(model.intercept_) + level)
            coefficients.append(np.atleast_2d(model.coef_))
        self._intercepts, self._coefficients = map(np.array, (intercepts, coefficients))
        return self

    def _staged(self, X: Table) -> Iterator[NDArray[np.float64]]:
        """Yield the raw predictions of each penalty's model, from strong to weak."""
        check_is_fitted(self)
        Z = np.column_stack(self._design(self._read(X)))
        for intercept, coefficient in zip(
            self._intercepts, self._coefficients, strict=True
        ):
            yield Z @ coefficient.T + intercept

    def _terms(self, X: Table) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return a pair: each column's term in the raw predictions, of shape (n_rows,
        n_columns, n_outputs), and X as a matrix of numbers.
        """
        columns = self._read(X)
        parts = self._design(columns)
        ends = np.cumsum([part.shape[1] for part in parts])[:-1]
        coefficients = np.split(self._coefficients[-1], ends, axis=1)
        terms = [part @ b.T for part, b in zip(parts, coefficients, strict=True)]
        return np.stack(terms, axis=1), as_matrix(columns)[0]

    def check(self) -> bool:
        """Return whether the shapes of coefficients match the numbers of penalties,
        classes and columns.
        """
        widths = [
            len(x) if isinstance(x, list) else 1 + bool(x[2]) for x in self._codings
        ]
        n_outputs = 1
        if is_classifier(self) and self.classes_.size > 2:
            n_outputs = self.classes_.size
        shape = (len(self.penalties), n_outputs)
        return (
            len(widths) == self.n_features_in_
            and self._intercepts.shape == shape
            and self._coefficients.shape == (*shape, sum(widths))
        )

    def _read(self, X: Table) -> list[Column]:
        known = [x for x in self._codings if isinstance(x, list)]
        return rows_as_in_fit(self, X, known)

    def _design(self, columns: list[Column]) -> list[NDArray[np.float64]]:
        return [_encode(*pair) for pair in zip(columns, self._codings, strict=True)]


class LinearRegressor(RegressorMixin, _Linear):
    def staged_predict(self, X: Table) -> Iterator[NDArray[np.float64]]:
        for raw in self._staged(X):
            mean = raw[:, 0] if self.loss == "squared_error" else np.exp(raw[:, 0])
            yield np.clip(mean, *self._range)

    def predict(self, X: Table) -> NDArray[np.float64]:
        return list(self.staged_predict(X))[-1]


class LinearClassifier(ClassifierMixin, _Linear):
    def staged_predict_proba(self, X: Table) -> Iterator[NDArray[np.float64]]:
        n_classes = self.classes_.size
        for raw in self._staged(X):
            if n_classes < 3:  # the second class against the first
                raw = np.column_stack([np.zeros(len(raw)), raw])[:, :n_classes]
            yield softmax(raw, axis=1)

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        return list(self.staged_predict_proba(X))[-1]

    def predict(self, X: Table) -> NDArray[Any]:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _coding_of(
    column: Column, weights: NDArray[np.float64]
) -> list[Any] | tuple[float, float, bool]:
    """Return, for a categorical column, a list of its common categories, the most
    frequent first. Return, for a numeric column, its mean, its standard deviation, and
    whether values are missing. A deviation that is only rounding becomes infinite, so
    that the column has no effect.
    """
    values, weights = column.values[weights > 0], weights[weights > 0]
    if column.is_categorical:
        counts = Counter[Any]()
        scale = weights.sum() / (weights @ weights)
        for value, n_rows in zip(values, scale * weights, strict=True):
            counts[value] += n_rows
        kinds = [*sorted_categories(counts), None]
        common = sorted(kinds, key=lambda value: -counts[value])
        known = [value for value in common if counts[value] >= _LEAST_ROWS]
        return known[:_MOST_CATEGORIES]
    is_known = np.isfinite(values)
    if not is_known.any():
        return 0.0, 1.0, False
    known, weights = values[is_known], weights[is_known]
    mean = np.average(known, weights=weights)
    square = np.average((known - mean) ** 2, weights=weights)
    is_constant = _is_constant_feature(square, mean, known.size)
    deviation = np.inf if is_constant else np.sqrt(square)
    return float(mean), float(deviation), bool(not is_known.all())


def _encode(column: Column, coding: Any) -> NDArray[np.float64]:
    values = column.values
    if column.is_categorical:
        codes = places_in(coding, values)[:, np.newaxis]
        return (codes == np.arange(len(coding))).astype(np.float64)
    mean, deviation, has_missing = coding
    is_known = np.isfinite(values)
    numbers = np.where(is_known, values - mean, 0.0) / deviation
    return np.column_stack([numbers, ~is_known]) if has_missing else numbers[:, None]
