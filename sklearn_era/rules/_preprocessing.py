"""Preprocessing of X like scikit-learn's boosters, with columns in their order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)

from .._scikit_learn import check_categorical_features
from ..ensemble._binning.hooks import BinningMixin
from ..ensemble._binning.rare_categories import (
    codes_of_categories,
    encoder_of,
    share_bins,
)


class ColumnsMixin(BaseEstimator):
    """Checks X and encodes its categories as `HistGradientBoostingClassifier` does."""

    is_categorical_: NDArray[np.bool_] | None
    _preprocessor: Any
    categorical_features: Any

    # Borrowed, since a subclass would be taken for trees. It reads `max_bins`, the most
    # categories of a column.
    max_bins = 255
    _preprocess_X = BaseHistGradientBoosting._preprocess_X
    _check_categories = BinningMixin._check_categories

    def _check_categorical_features(self, X: Any) -> NDArray[np.bool_] | None:
        return check_categorical_features(X, self.categorical_features)

    def _columns_of(
        self, X: Any, *, reset: bool
    ) -> tuple[NDArray[np.float64], list[NDArray[np.float64] | None]]:
        """X as numbers, with encoded categories and columns in their order."""
        if reset:
            values, known_categories = self._preprocess_X(X, reset=True)
        else:
            values, known_categories = self._preprocess_X(X, reset=False), None
        if np.isinf(values).any():  # bins need finite edges
            values = np.clip(values, -1e300, 1e300)
        is_categorical = self.is_categorical_
        if is_categorical is None:
            return values, [None] * values.shape[1]
        if reset:
            share_bins(self, values)
        # scikit-learn puts categorical columns first.
        place = np.argsort(np.argsort(~is_categorical, kind="stable"))
        values = values[:, place]
        if known_categories is None:
            return values, []
        return values, [known_categories[j] for j in place]

    def _categories_by_column(self) -> dict[int, list[Any]]:
        """The names of the bins of each categorical column."""
        if self.is_categorical_ is None:
            return {}
        encoder, names = encoder_of(self), {}
        for i, column in enumerate(np.flatnonzero(self.is_categorical_).tolist()):
            codes = codes_of_categories(encoder, i)
            labels = encoder.categories_[i][: codes.size]
            in_bin = np.bincount(codes)
            names[column] = labels[in_bin[codes] == 1].tolist()
            names[column] += [f"one of {n:,} others" for n in in_bin[in_bin > 1]]
        return names
