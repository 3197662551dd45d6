"""Define the methods that the patched ``fit`` calls to bin X, of any kind."""

from time import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting
from sklearn.utils.validation import validate_data

from ..._era_columns import without_era_column
from ..._scikit_learn import check_categorical_features
from ..._tables.checks import check_mask, check_table
from ..._tables.target import check_values
from ..._typing import ColumnChoice, Eras, Table
from .category_groups import bins_of_codes, group_categories
from .dataset import BinnedDataset
from .floats import fit_float_mapper, transform
from .integer_columns import IntegerColumns, UnbinnedRows, as_integer_columns
from .integers import bin_columns, fit_bin_mapper, matrix_of_own_bins, take_rows
from .rare_categories import (
    codes_of_categories,
    encoder_of,
    numbers_of_categories,
    share_bins,
)
from .read_columns import encode, feature_columns


class DatasetRows(UnbinnedRows):
    """Stand in for X in ``fit``, with all or some of the rows of a `BinnedDataset`."""

    def __init__(self, dataset: BinnedDataset):
        super().__init__(*dataset.shape)
        self.dataset = dataset

    @property
    def nbytes(self) -> int:
        return self.shape[0] * self.shape[1]

    def bins(self, order: str, n_threads: int) -> NDArray[np.uint8]:
        """Return the selected rows' bins. If all are selected, copy nothing."""
        if self.rows is None:
            return self.dataset.X_binned
        columns = np.arange(self.shape[1], dtype=np.intp)
        return take_rows(self.dataset.X_binned, self.rows, columns, n_threads, order)


class BinningMixin(gradient_boosting.BaseHistGradientBoosting):
    """Make the same bins as scikit-learn. A `BinnedDataset` has its bins already; small
    integers are binned by a table; any other X, and X with categories, is first copied
    to float64.
    """

    _bin_mapper: Any
    _era_column: Any
    _preprocessor: Any
    is_categorical_: Any
    categorical_features: Any
    era_order: Any
    max_bins: int
    verbose: int

    def _arrays_of_fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None, eras: Eras | None
    ) -> tuple[Any, Any, Any]:
        """Check and return `y`, `sample_weight` and `eras`; if X is a `BinnedDataset`,
        return the data set's own arrays. Raise ValueError if any array is passed along
        with a data set, or if `y` is missing and X is not a data set.
        """
        check_table(X)
        check_mask(sample_weight, "sample_weight")
        if not isinstance(X, BinnedDataset):
            if y is None:
                raise ValueError(
                    f"{type(self).__name__} requires y to be passed, but the target y "
                    "is None; only a BinnedDataset has its own."
                )
            check_values(y, are_numbers=is_regressor(self))
            return y, sample_weight, eras
        given = {"y": y, "sample_weight": sample_weight, "eras": eras}
        if names := [name for name, value in given.items() if value is not None]:
            raise ValueError(
                f"{' and '.join(names)} cannot be passed along with a BinnedDataset, "
                "whose rows are in an order of their own: pass them to "
                "BinnedDataset.from_arrays or from_parquet."
            )
        check_values(X.y, are_numbers=is_regressor(self))
        return X.y, X.sample_weight, X.eras

    def _preprocess_X(self, X: Any, *, reset: bool) -> Any:
        """Preprocess X as scikit-learn does, but wrap a `BinnedDataset`, or small
        integers, in an `UnbinnedRows`. `reset` is True for the training data of a fit.
        If the fit's state has `rows_of_values`, as on Dask, X has each category once;
        the rare categories of a column get one code here. Other fits give them bins in
        `_group_categories`.
        """
        if reset:
            # All rows from here to the binning of the training rows belong to the fit.
            # Before and after, scikit-learn needs float64 for predictions.
            self._fit_state.keeps_integers = True
        else:
            X = without_era_column(self, X)
        if isinstance(X, BinnedDataset):
            self._check_dataset(X, reset)
            return DatasetRows(X), None
        columns = None
        if hasattr(self, "_fit_state") and self._fit_state.keeps_integers:
            columns = as_integer_columns(X)
        if reset and columns is not None:
            given = self.categorical_features
            self.is_categorical_ = check_categorical_features(X, given)
        if columns is None or self.is_categorical_ is not None:
            encoded = encode(self, X, reset=reset)
            n_rows = self._fit_state.rows_of_values if reset else None
            if self.is_categorical_ is not None and n_rows is not None:
                share_bins(self, encoded[0], n_rows)
            return encoded
        self._preprocessor = self._is_categorical_remapped = None
        # Integers pass all checks of arrays; feature names and their number may not.
        validate_data(self, X, reset=reset, skip_check_array=True)
        return (columns, None) if reset else columns

    def _group_categories(self, X: Any, is_training_data: bool) -> None:
        """In columns of X with more categories than bins, replace codes by bins. If X
        is training data, choose the bins first.
        """
        if self.is_categorical_ is None or self._fit_state.target is None:
            return
        encoder = encoder_of(self)
        many = np.flatnonzero(numbers_of_categories(encoder) > self.max_bins).tolist()
        if not is_training_data:
            for i in many:
                X[:, i] = bins_of_codes(X[:, i], codes_of_categories(encoder, i))
            return
        y, sample_weight, eras = self._fit_state.target
        if many:
            targets = self._first_targets(y, sample_weight)
            group_categories(self, X, targets, sample_weight, eras)
        for i in many:
            n_bins = codes_of_categories(encoder, i).max() + 1
            self._bin_mapper.known_categories[i] = np.arange(n_bins, dtype=np.float64)
        if self._fit_state.previous is not None:
            self._fit_state.previous.check_same_categories(self)

    def _check_dataset(self, X: BinnedDataset, reset: bool) -> None:
        """Raise ValueError unless this is a fit, with the data set's `max_bins`, no
        `categorical_features`, and no pair as `era_order`. Copy the names of features,
        and of the column of eras, to the estimator.
        """
        if not reset:
            raise ValueError(
                "X is a BinnedDataset, which only fit takes: rows to predict, X_val "
                "among them, have to be raw, as an array or a data frame."
            )
        if X.max_bins != self.max_bins:
            raise ValueError(
                f"The BinnedDataset has max_bins={X.max_bins}, but the "
                f"{type(self).__name__} has max_bins={self.max_bins}: make both the "
                "same."
            )
        if _names_features(self.categorical_features):
            raise ValueError(
                f"categorical_features={self.categorical_features!r}: a BinnedDataset "
                "has no categorical features. Fit to the raw rows, or set "
                "categorical_features=None."
            )
        if X.eras is not None and not isinstance(self.era_order, str):
            raise ValueError(
                f"era_order={self.era_order!r} is for two columns of eras, times and "
                "groups, and a BinnedDataset has one label a row: fit to the raw rows, "
                "or set era_order to 'ordered' or 'unordered'."
            )
        X.check_bins()
        self.is_categorical_ = self._preprocessor = self._is_categorical_remapped = None
        self.n_features_in_ = X.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if X.feature_names is not None:
            self.feature_names_in_ = X.feature_names.copy()
        if X.era_column is not None:
            self._era_column = X.era_column

    def _check_categories(self) -> list[NDArray[np.float64] | None]:
        """Return a list that has the codes of each column's categories, or None for a
        column of numbers. Unlike scikit-learn, accept columns with more categories than
        bins, and columns without a category.
        """
        encoder = encoder_of(self)
        known: list[Any] = [None] * self._preprocessor.n_features_in_
        for i, n in enumerate(numbers_of_categories(encoder).tolist()):
            known[i] = np.arange(min(n, self.max_bins), dtype=np.float64)
            if n == 0:
                encoder.categories_[i] = np.array([np.nan])
        return known

    def _bin_data(
        self, X: Any, sample_weight: Any = None, *, is_training_data: bool
    ) -> NDArray[np.uint8]:
        """Return the bins of X: Fortran-ordered for training rows, to which the bin
        mapper is fitted first, and C-ordered for validation rows. If the bins share
        memory with X, they are read-only.
        """
        if is_training_data:
            self._fit_state.keeps_integers = False
        if self._fit_state.has_unit_weights:
            sample_weight = None
        if self.verbose:
            how, what = "Binning", "training" if is_training_data else "validation"
            if isinstance(X, DatasetRows):
                how, what = "Taking", f"binned {what}"
            text = f"{how} {X.nbytes / 1e9:.3f} GB of {what} data: "
            print(text, end="", flush=True)
        tic = time()
        self._group_categories(X, is_training_data)
        order: Any = "F" if is_training_data else "C"
        mapper = self._bin_mapper
        binned: NDArray[np.uint8] | None = None
        if isinstance(X, DatasetRows):
            if is_training_data:
                of_dataset = vars(X.dataset.bin_mapper).items()
                vars(mapper).update({k: v for k, v in of_dataset if k[-1] == "_"})
                mapper.bin_thresholds_ = list(mapper.bin_thresholds_)
            binned = X.bins(order, mapper.n_threads)
        elif not isinstance(X, IntegerColumns):
            if is_training_data:
                fit_float_mapper(mapper, X, sample_weight, feature_columns(self))
            binned = transform(mapper, X, order)
        else:
            if is_training_data:
                fit_bin_mapper(mapper, X, sample_weight)
                binned = matrix_of_own_bins(mapper, X)
            if binned is None:
                binned = bin_columns(mapper, X, order)
        if isinstance(X, UnbinnedRows):
            X.forget()
        if self.verbose:
            print(f"{time() - tic:.3f} s")
        if not is_training_data and self._fit_state.held_out is not None:
            self._fit_state.held_out.X = binned
        return binned


def _names_features(categorical_features: ColumnChoice) -> bool:
    if categorical_features is None or isinstance(categorical_features, str):
        return False  # 'from_dtype' finds none: bins are numbers
    given = np.asarray(categorical_features)
    return bool(given.any() if given.dtype == np.bool_ else given.size)
