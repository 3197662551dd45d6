"""Prediction in blocks of rows, where scikit-learn would first copy all to float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)
from sklearn.utils._dataframe import is_pandas_df, is_polars_df
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import (
    _get_feature_names,
    check_array,
    check_is_fitted,
    validate_data,
)

from .._binning.integer_columns import is_pyarrow_table

# Values of a block: 64 MiB as float64. Each tree passes over a block on its own, which
# of much smaller blocks would take more time to begin than to do.
BLOCK_VALUES = 2**23
_TURNED_ROWS = 256


class BlockPredictionMixin(BaseHistGradientBoosting):
    """Converts rows to predict a block at a time.

    Predictions are those of scikit-learn, bit for bit. Lists, sparse matrices and
    arrays of objects take its way.
    """

    _preprocessor: Any

    def _raw_predict(self, X: Any, n_threads: int | None = None) -> NDArray[Any]:
        """The sum of the leaves' values over all trees, with a column for each class.

        In the course of a fit, `X` is binned. `n_threads` is None for all CPUs.
        """
        check_is_fitted(self)
        take = None
        if not getattr(self, "_in_fit", False):
            take = _block_taker(X)
        if take is None or not self._predicts_blocks_alike(X):
            return super()._raw_predict(X, n_threads)
        n_samples, n_features = X.shape
        n_rows = max(1, BLOCK_VALUES // max(1, n_features))
        if n_samples <= n_rows or n_features == 0:
            return super()._raw_predict(X, n_threads)

        if self._preprocessor is None:
            # Once, and not with each block: it may warn.
            validate_data(self, X, reset=False, skip_check_array=True)
        raw_predictions = np.zeros(
            shape=(n_samples, self.n_trees_per_iteration_),
            dtype=self._baseline_prediction.dtype,
            order="F",
        )
        raw_predictions += self._baseline_prediction
        n_threads = _openmp_effective_n_threads(n_threads)
        for start in range(0, n_samples, n_rows):
            rows = slice(start, start + n_rows)
            self._predict_iterations(
                self._convert_block(take(rows)),
                self._predictors,
                raw_predictions[rows],
                False,
                n_threads,
            )
        return raw_predictions

    def _predicts_blocks_alike(self, X: Any) -> bool:
        """Whether blocks of X pass the same checks, with the same warnings, as X.

        A preprocessor for categorical features compares the names of features on its
        own, with every block. It says nothing where they are the same.
        """
        if self._preprocessor is None:
            return True
        fitted = getattr(self, "feature_names_in_", None)
        given = _get_feature_names(X)
        if fitted is None or given is None:
            return fitted is given
        return np.array_equal(fitted, given)

    def _convert_block(self, block: Any) -> NDArray[np.float64]:
        if self._preprocessor is not None:
            return self._preprocessor.transform(block)
        if isinstance(block, np.ndarray):
            return _as_rows_of_floats(block)
        return check_array(
            block,
            dtype=np.float64,
            ensure_all_finite=False,
            estimator=self,
            input_name="X",
        )


def _as_rows_of_floats(block: NDArray[Any]) -> NDArray[np.float64]:
    """A block of an array of numbers as float64, in C order.

    A tree reads few values of a row, which should be close together. NumPy would turn
    the order of a whole block through memory, of a few rows it does so in the cache.
    """
    rows = np.empty(block.shape, dtype=np.float64)
    for start in range(0, block.shape[0], _TURNED_ROWS):
        rows[start : start + _TURNED_ROWS] = block[start : start + _TURNED_ROWS]
    return rows


def _block_taker(X: Any) -> Callable[[slice], Any] | None:
    """What takes rows of X without a copy; None where scikit-learn would not copy X.

    Nor for what is no matrix or data frame with as many values in each row.
    """
    if get_config()["array_api_dispatch"]:
        return None
    if isinstance(X, np.ndarray) and not isinstance(X, np.matrix):
        if X.ndim != 2 or X.dtype == np.float64 or X.dtype.kind not in "biuf":
            return None
        return X.__getitem__
    if is_pandas_df(X):
        return X.iloc.__getitem__
    if is_polars_df(X) or is_pyarrow_table(X):
        return lambda rows: X.slice(rows.start, rows.stop - rows.start)
    return None


__all__ = ["BLOCK_VALUES", "BlockPredictionMixin"]
