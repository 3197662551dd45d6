"""What ``fit`` does with a `BinnedDataset`: take its bins rather than make them."""

from time import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)

from .dataset import BinnedDataset
from .integers import allocate_binned, take_rows


class BinnedRows:
    """Rows of a data set: what ``fit`` passes around as X until they are binned."""

    ndim = 2

    def __init__(self, dataset: BinnedDataset, rows: NDArray[np.intp] | None = None):
        self.dataset = dataset
        self.rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        n_rows, n_features = self.dataset.shape
        return (n_rows if self.rows is None else self.rows.size), n_features

    @property
    def nbytes(self) -> int:
        n_rows, n_features = self.shape
        return n_rows * n_features

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> "BinnedRows":
        """Rows by their indices, as ``X[indices]`` or ``X[indices, ...]``."""
        taken = np.asarray(key[0] if isinstance(key, tuple) else key)
        rows = np.arange(len(self.dataset)) if self.rows is None else self.rows
        return BinnedRows(self.dataset, rows[taken].astype(np.intp))


class BinnedFitMixin(BaseHistGradientBoosting):
    """Fits to a `BinnedDataset`; to be mixed in before `IntegerBinningMixin`."""

    _bin_mapper: Any
    categorical_features: Any
    max_bins: int
    verbose: int

    def _arrays_of_fit(
        self, X: Any, y: Any, sample_weight: Any, eras: Any
    ) -> tuple[Any, Any, Any]:
        """`y`, `sample_weight` and `eras` of a fit: the data set's, if X is one."""
        if not isinstance(X, BinnedDataset):
            if y is None:
                raise ValueError(
                    f"This {type(self).__name__} estimator requires y to be passed, "
                    "but the target y is None; only a BinnedDataset has its own."
                )
            return y, sample_weight, eras
        given = {"y": y, "sample_weight": sample_weight, "eras": eras}
        names = [name for name, value in given.items() if value is not None]
        if names:
            raise ValueError(
                f"{' and '.join(names)} cannot be passed along with a BinnedDataset, "
                "whose rows are in an order of their own: pass them to "
                "BinnedDataset.from_arrays or from_parquet."
            )
        return X.y, X.sample_weight, X.eras

    def _preprocess_X(self, X: Any, *, reset: bool) -> Any:
        if not isinstance(X, BinnedDataset):
            return super()._preprocess_X(X, reset=reset)
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
        self._keeps_integers = True  # those of X_val, see `IntegerBinningMixin`
        self.is_categorical_ = None
        self._preprocessor = None
        self._is_categorical_remapped = None
        self.n_features_in_ = X.shape[1]
        if X.feature_names is not None:
            self.feature_names_in_ = X.feature_names.copy()
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return BinnedRows(X), None

    def _bin_data(
        self, X: Any, sample_weight: NDArray[Any] | None, is_training_data: bool
    ) -> NDArray[np.uint8]:
        if not isinstance(X, BinnedRows):
            return super()._bin_data(X, sample_weight, is_training_data)
        tic = time()
        if is_training_data:
            self._keeps_integers = False
            # The fit's own mapper, made by `fit`, with what the data set's has learnt.
            for name, value in vars(X.dataset.bin_mapper).items():
                if name.endswith("_"):
                    setattr(self._bin_mapper, name, value)
            self._bin_mapper.bin_thresholds_ = list(self._bin_mapper.bin_thresholds_)
        if X.rows is None:
            binned = X.dataset.X_binned
        else:
            binned = allocate_binned(X.shape, order="F" if is_training_data else "C")
            take_rows(X.dataset.X_binned, X.rows, binned, self._bin_mapper.n_threads)
        if self.verbose:
            print(
                f"Taking {X.nbytes / 1e9:.3f} GB of binned "
                f"{'training' if is_training_data else 'validation'} data: "
                f"{time() - tic:.3f} s"
            )
        X.rows = None  # not needed any more, and kept by `fit` to its end
        return binned


def _names_features(categorical_features: Any) -> bool:
    if categorical_features is None or isinstance(categorical_features, str):
        return False  # 'from_dtype': bins are numbers
    given = np.asarray(categorical_features)
    return bool(given.any() if given.dtype == np.bool_ else given.size)


__all__ = ["BinnedFitMixin", "BinnedRows"]
