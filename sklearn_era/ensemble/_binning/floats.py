"""Bin all columns except those of small integers, a few columns at a time."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting._binning import _map_to_bins
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import check_array

from ..._scikit_learn import is_pandas_df, is_polars_df
from ..._tables.checks import names_of_columns
from .float_bins import search_bins
from .integer_columns import Bytes, Floats, Rows, is_pyarrow_table
from .integers import allocate_binned
from .thresholds import draw_rows, find_thresholds, map_in_threads, set_thresholds

# Maximum number of columns as float64 at a time.
_BATCH = 8
_BATCH_OF_THREAD = 4
_BATCH_ROWS = 4096


class FloatColumns:
    """Columns of an X without categories, converted to float64 as they are read."""

    def __init__(self, X: Any):
        self._take: Callable[[int], Any] = lambda _: None  # of a data frame
        self._array: Any = None
        if is_pandas_df(X):
            self._take = lambda feature: X.iloc[:, [feature]]
        elif is_polars_df(X):
            self._take = lambda feature: X[:, [feature]]
        elif is_pyarrow_table(X):
            self._take = lambda feature: X.select([feature])
        else:
            # Numeric arrays are converted later, others to float64 here.
            is_numeric = isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
            dtype = None if is_numeric else np.float64
            X = check_array(X, dtype=dtype, ensure_all_finite=False, input_name="X")
            self._array = X
        self.shape: tuple[int, int] = X.shape
        if 0 in self.shape:
            raise ValueError(
                f"X has no {'rows' if self.shape[0] == 0 else 'columns'}; its shape is "
                f"{self.shape}."
            )
        self.names = [*names_of_columns(X)] or [*range(self.shape[1])]

    def batch(self, features: range, rows: Rows | None = None) -> list[Floats]:
        """Return the columns `features` of X; if X is an array, only their `rows`."""
        if self._array is None:
            return [self._convert(feature) for feature in features]
        # In blocks of rows that fit the cache, as columns share lines in C order.
        n_rows = self.shape[0] if rows is None else rows.size
        values = np.empty((n_rows, len(features)), order="F")
        for start in range(0, n_rows, _BATCH_ROWS):
            block: Any = slice(start, start + _BATCH_ROWS)
            values[block] = self._array[
                block if rows is None else rows[block], features.start : features.stop
            ]
        return list(values.T)

    def _convert(self, feature: int) -> Floats:
        try:
            column, options = self._take(feature), {"ensure_all_finite": False}
            values = check_array(column, dtype=np.float64, input_name="X", **options)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X: column {self.names[feature]!r} is not numeric: {error}. Encode it "
                "as numbers, or drop it."
            ) from error
        return np.ascontiguousarray(values[:, 0])


def fit_float_mapper(
    mapper: _BinMapper, X: Floats, sample_weight: Floats | None, columns: Sequence[Any]
) -> None:
    """Fit a bin mapper to X, as its ``fit`` does. Warn of columns of X without a value,
    by their names in `columns`.
    """
    drawn, sample_weight = draw_rows(mapper, X.shape[0], sample_weight)
    n_features = X.shape[1]
    known = mapper.known_categories or [None] * n_features
    matrix = FloatColumns(X)

    def find(start: int) -> list[Floats | None]:
        features = range(start, min(n_features, start + _BATCH_OF_THREAD))
        batch = matrix.batch(features, drawn)
        return [
            find_thresholds(values, mapper.n_bins - 1, sample_weight, known[feature])
            for feature, values in zip(features, batch, strict=True)
        ]

    starts = range(0, n_features, _BATCH_OF_THREAD)
    n_rows = X.shape[0] if drawn is None else drawn.size
    batches = map_in_threads(find, [starts], mapper.n_threads, n_rows * n_features)
    set_thresholds(mapper, [found for batch in batches for found in batch], columns)


def fit_and_bin_columns(
    mapper: _BinMapper, columns: FloatColumns, order: NDArray[np.uint32] | None,
    sample_weight: Floats | None,
) -> Bytes:  # fmt: skip
    """Fit a bin mapper, and return the bins of all rows as ``fit_transform`` does,
    sorted by `order` unless it is None. `sample_weight` must have the sorted order.
    """
    binned = allocate_binned(columns.shape)
    drawn, sample_weight = draw_rows(mapper, binned.shape[0], sample_weight)

    def find(values: Floats) -> Floats | None:
        values = values if drawn is None else values[drawn]
        return find_thresholds(values, mapper.n_bins - 1, sample_weight)

    n_features = binned.shape[1]
    thresholds: list[Floats | None] = []
    for start in range(0, n_features, _BATCH):
        features = range(start, min(n_features, start + _BATCH))
        batch = columns.batch(features)
        if order is not None:
            batch = [values[order] for values in batch]
        n_values = sum(values.size for values in batch)
        thresholds += map_in_threads(find, [batch], mapper.n_threads, n_values)
        for feature, values in zip(features, batch, strict=True):
            bin_column(mapper, values, thresholds[feature], binned[:, feature])
        del batch, values  # before the next are made
    set_thresholds(mapper, thresholds, columns.names)
    return binned


def bin_column(
    mapper: _BinMapper, values: Floats, thresholds: Floats | None, binned: Bytes
) -> None:
    """Write the bins of a numeric column into `binned`, as ``transform`` does."""
    edges = [np.empty(0) if thresholds is None else thresholds]
    is_categorical = np.zeros(1, dtype=np.uint8)
    _search(values[:, None], edges, is_categorical, mapper, binned[:, None])


def transform(mapper: _BinMapper, X: Floats, order: Any = "F") -> Any:
    """Return the bins of rows, as the bin mapper's ``transform`` does."""
    binned = allocate_binned(X.shape)
    _search(X, mapper.bin_thresholds_, mapper.is_categorical_, mapper, binned)
    return np.asarray(binned, order=order)


def _search(
    X: Floats, thresholds: list[Floats], is_categorical: Bytes, mapper: _BinMapper,
    binned: Bytes,
) -> None:  # fmt: skip
    is_ascending = not any(np.isnan(column).any() for column in thresholds)
    n_threads = _openmp_effective_n_threads(mapper.n_threads)
    search = search_bins if is_ascending else _map_to_bins
    search(X, thresholds, is_categorical, mapper.n_bins - 1, n_threads, binned)
