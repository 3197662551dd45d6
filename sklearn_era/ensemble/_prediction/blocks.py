"""Predict in blocks of rows; scikit-learn would first copy all rows as float64."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import (
    _get_feature_names,
    check_array,
    check_is_fitted,
    validate_data,
)

from ..._era_columns import without_era_column
from ..._scikit_learn import is_pandas_df, is_polars_df
from ..._typing import Table
from .._binning.integer_columns import is_pyarrow_table
from .._binning.read_columns import encode, must_be_read, read_by_column
from .._splitting.lanes.instruction_sets import lane_module
from .packed_trees import check_trees
from .trees import READABLE

# Values of a block: 16 MiB as float64. Data frames have an overhead for each block.
BLOCK_VALUES = 2**21


class BlockPredictionMixin(gradient_boosting.BaseHistGradientBoosting):
    """Predict by the module ``trees``, bit for bit as scikit-learn predicts. Numeric
    arrays and data frames are converted in blocks of rows. Lists, sparse matrices and
    object arrays are converted as a whole, by scikit-learn.
    """

    _bin_mapper: Any
    _preprocessor: Any

    def _raw_predict(self, X: Any, n_threads: int | None = None) -> NDArray[Any]:
        """Return raw predictions of shape (n_rows, n_outputs). In a fit, X has bins."""
        check_is_fitted(self)
        if getattr(self, "_in_fit", False):
            return super()._raw_predict(X, n_threads)
        X = without_era_column(self, X)
        blocks = self._blocks(X)
        if blocks is None:
            X = self._preprocess_X(X, reset=False)
            blocks = iter([(slice(None), X)])
        baseline = self._baseline_prediction
        shape = X.shape[0], self.n_trees_per_iteration_
        raw_predictions = np.zeros(shape, dtype=baseline.dtype, order="F")
        raw_predictions += baseline
        n_threads = _openmp_effective_n_threads(n_threads)
        for rows, block in blocks:
            self._add_trees(block, raw_predictions[rows], n_threads)
        return raw_predictions

    def _blocks(self, X: Any) -> Iterator[tuple[slice, NDArray[Any]]] | None:
        """Return an iterator of pairs: a slice, and the converted rows of the slice.
        Return None if X has to be converted as a whole.
        """
        take = _block_taker(X)
        if take is None or 0 in X.shape or not self._predicts_blocks_alike(X):
            return None
        n_samples, n_features = X.shape
        n_rows = max(1, BLOCK_VALUES // n_features)
        if self._preprocessor is None and _is_readable(X):
            n_rows = n_samples
        elif n_samples <= n_rows:
            return None
        if self._preprocessor is None:
            # Once, not with each block: it may warn.
            validate_data(self, X, reset=False, skip_check_array=True)
            if must_be_read(self, X):
                return None
        slices = (slice(i, i + n_rows) for i in range(0, n_samples, n_rows))
        return ((rows, self._convert_block(take(rows))) for rows in slices)

    def _add_trees(
        self, X: NDArray[Any], raw_predictions: NDArray[np.float64], n_threads: int
    ) -> None:
        """Add the trees' predictions for X to `raw_predictions`."""
        X = X if _is_readable(X) else np.array(X, dtype=np.float64)
        bitsets = self._bin_mapper.make_known_categories_bitsets()
        add_trees = lane_module(f"{__package__}.trees").add_trees
        add_trees(X, self._predictors, *bitsets, raw_predictions, n_threads)

    def _predict_iterations(
        self, X: NDArray[Any], predictors: list[list[Any]],
        raw_predictions: NDArray[np.float64], is_binned: bool, n_threads: int,
    ) -> None:  # fmt: skip
        """Check the indices in trees; then add predictions as scikit-learn does."""
        known, f_idx_map = self._bin_mapper.make_known_categories_bitsets()
        categories = f"{'binned' if is_binned else 'raw'}_left_cat_bitsets"
        out_shape = raw_predictions.shape
        check_trees(predictors, X.shape, out_shape, known, f_idx_map, categories)
        super()._predict_iterations(
            X, predictors, raw_predictions, is_binned, n_threads
        )

    def _predicts_blocks_alike(self, X: Table) -> bool:
        """Return whether checks by block raise and warn like a check of all rows."""
        fitted, given = getattr(self, "feature_names_in_", None), _get_feature_names(X)
        if self._preprocessor is None or fitted is None or given is None:
            return self._preprocessor is None or fitted is given
        return np.array_equal(fitted, given)

    def _convert_block(self, block: Any) -> NDArray[Any]:
        if self._preprocessor is not None:
            return encode(self, block, reset=False)
        if isinstance(block, np.ndarray):
            return block if _is_readable(block) else block.astype(np.float64)
        options = {"estimator": self, "input_name": "X", "ensure_all_finite": False}
        try:
            return check_array(block, dtype=np.float64, **options)
        except Exception as error:  # those of polars, too
            return read_by_column(self, block, error=error)


def _is_readable(X: Any) -> bool:
    """Return whether the module ``trees`` can read X without a conversion."""
    is_array = isinstance(X, np.ndarray) and X.dtype.char in READABLE
    return is_array and X.dtype.isnative and X.flags.aligned


def _block_taker(X: Any) -> Callable[[slice], Any] | None:
    """Return a function from slices to rows of X, without a copy. Return None if X is
    neither a matrix nor a data frame, or if scikit-learn would not copy X anyway.
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
