"""X as numbers: what scikit-learn's boosters do to its columns, in their order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)

from ..ensemble._binning.hooks import BinningMixin


class ColumnsMixin(BaseEstimator):
    """Checks X and encodes its categories as `HistGradientBoostingClassifier` does."""

    is_categorical_: NDArray[np.bool_] | None
    _preprocessor: Any

    # Borrowed: to inherit from its class would be to be taken for trees. It asks for
    # this number, the most categories of a column.
    max_bins = 255
    _preprocess_X = BaseHistGradientBoosting._preprocess_X
    _check_categories = BinningMixin._check_categories

    def _columns_of(
        self, X: Any, *, reset: bool
    ) -> tuple[NDArray[np.float64], list[NDArray[np.float64] | None]]:
        """X as numbers with its categories encoded, the columns in their order."""
        if reset:
            values, known_categories = self._preprocess_X(X, reset=True)
        else:
            values, known_categories = self._preprocess_X(X, reset=False), None
        if np.isinf(values).any():  # so that bins have ends
            values = np.clip(values, -1e300, 1e300)
        is_categorical = self.is_categorical_
        if is_categorical is None:
            return values, [None] * values.shape[1]
        # scikit-learn puts categorical columns first.
        place = np.argsort(np.argsort(~is_categorical, kind="stable"))
        values = values[:, place]
        if known_categories is None:
            return values, []
        return values, [known_categories[j] for j in place]

    def _categories_by_column(self) -> dict[int, NDArray[Any]]:
        if self.is_categorical_ is None:
            return {}
        encoder = self._preprocessor.named_transformers_["encoder"]
        columns = np.flatnonzero(self.is_categorical_).tolist()
        return dict(zip(columns, encoder.categories_, strict=True))
