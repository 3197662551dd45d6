"""Define `BinnedDataset`, whose rows are binned once, for any number of fits."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from os import PathLike
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import _get_feature_names, check_consistent_length

from ..._era_arguments import warn_of_row_order
from ..._era_columns import names_columns, take_era_column
from ..._era_labels import missing_rows
from ..._eras import EncodedEras, read_eras
from ..._scikit_learn import check_categorical_features, check_sample_weight
from ..._tables.parquet import ParquetColumns
from ..._tables.target import check_values
from ..._typing import Eras, Seed, Table
from .floats import FloatColumns, fit_and_bin_columns
from .integer_columns import as_integer_columns
from .integers import bin_columns, fit_bin_mapper
from .parquet import bin_features, check_names, read_kept_eras, read_target
from .read_columns import check_numbers, checked_table


@dataclass(kw_only=True, repr=False, eq=False)
class BinnedDataset:
    """Training rows that are binned once, to one byte per value, and sorted by era.

    ``fit(dataset)`` takes a data set in place of `X`, `y`, `sample_weight` and `eras`,
    any number of times and with any parameters except `max_bins`. Without early
    stopping, the trees are those of ``fit(X, y, sample_weight, eras=eras)`` with rows
    stably sorted by era, bit for bit. But bins are weighted by `sample_weight` alone,
    and those of a fit to rows also by `class_weight` and ``era_weighting="equal"`` or
    :class:`~sklearn_era.effects.Recency`. With more than 200,000 rows, bins are made
    from a sample of the rows, and the data set and the estimator need the same
    `random_state`.

    Make a data set with :meth:`from_arrays` or :meth:`from_parquet`. A data set has no
    categorical features and no raw values: ``predict``, `X_val` and callbacks that read
    `X` need raw rows. With two columns of eras, each combination of labels is an era;
    the columns are never times and groups. Cross-validation cannot split a data set:
    make one for each fold. A warning names columns without a value: no tree splits on
    these columns.

    Attributes
    ----------
    X_binned : ndarray of shape (n_samples, n_features), dtype=uint8
        The bin of each value; Fortran-ordered, and read-only.
    bin_mapper : _BinMapper
        scikit-learn's fitted bin mapper, with the thresholds of the bins.
    y : ndarray of shape (n_samples,)
        The target, read-only: float64 for floats, otherwise its own dtype.
    eras : EncodedEras or None
        The eras, encoded: ``labels`` of shape (n_eras,), sorted; ``codes`` of shape
        (n_samples,) and dtype int32, ascending; ``counts`` of shape (n_eras,).
    sample_weight : ndarray of shape (n_samples,), dtype=float64, or None
        The weights, read-only.
    feature_names : ndarray of shape (n_features,), dtype=object, or None
        The names of the columns, if all are strings.
    era_column : str, list of str, or None
        The names of the columns of X that held the eras. Models fitted to the data set
        leave these columns out of frames that they predict. None for Parquet files.
    order : ndarray of shape (n_samples,), dtype=uint32, or None
        For each row of the data set, its position among the rows that were passed, or
        kept from files; None if these were sorted by era, or have no eras. `X_binned`,
        `y`, the codes of eras and the weights are in the order of the data set:
        ``dataset.y`` is ``y[dataset.order]``. Out-of-bag predictions of forests are in
        the order of the rows that were passed or kept.
    max_bins : int
        Maximum number of bins of a feature, without the bin of missing values.
    shape : tuple of int
        ``(n_samples, n_features)``.
    nbytes : int
        Size of the arrays in bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import BinnedDataset, HistGradientBoostingRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 5, size=(1000, 3), dtype=np.int8)
    >>> eras = np.arange(1000) % 4
    >>> dataset = BinnedDataset.from_arrays(X, X[:, 0] * 1.0, eras=eras)
    >>> dataset
    BinnedDataset(n_samples=1000, n_features=3, n_eras=4, max_bins=255, nbytes=19000)
    >>> models = [
    ...     HistGradientBoostingRegressor(split_criterion=name, max_iter=5).fit(dataset)
    ...     for name in ("gain", "era", "directional")
    ... ]
    >>> models[0].predict(X).shape
    (1000,)
    """

    # Checked rows, sorted by era, as the constructors pass them.
    X_binned: NDArray[np.uint8]
    bin_mapper: _BinMapper
    y: NDArray[Any]
    eras: EncodedEras | None
    sample_weight: NDArray[np.float64] | None
    feature_names: NDArray[Any] | None
    era_column: str | list[str] | None = None
    order: NDArray[np.uint32] | None = None

    def __post_init__(self) -> None:
        """Make the arrays read-only, since many fits share them."""
        for array in self._arrays():
            array.flags.writeable = False

    @classmethod
    def from_arrays(
        cls, X: Table, y: ArrayLike, *, eras: Eras | None = None,
        sample_weight: Any = None, max_bins: int = 255, random_state: Seed = None,
    ) -> "BinnedDataset":  # fmt: skip
        """Bin the arrays or data frames that ``fit`` takes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The rows, which stay unchanged. Only a few columns are converted at a time.
        y : array-like of shape (n_samples,)
            The target, without missing values.
        eras : array-like of shape (n_samples,), str or list of str, default=None
            Era of each row, or the name of the column of eras in the data frame X. Rows
            are sorted by era, and within an era in the order of `X`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. They affect the bins, as they do in ``fit``, where
            `class_weight` affects the bins, too.
        max_bins : int, default=255
            Maximum number of bins of a feature, in [2, 255], as in the estimator.
        random_state : int, RandomState instance or None, default=None
            Seed of the sample from which bins are made if there are more than 200,000
            rows. An estimator with the same `random_state` draws the same sample.

        Returns
        -------
        dataset : BinnedDataset

        Raises
        ------
        ValueError
            If `max_bins` is not in [2, 255], a column is categorical or not numeric,
            lengths differ, targets or eras are missing, or a weight is negative.
        MemoryError
            If the binned matrix does not fit in memory; the message names its size.
        """
        mapper = make_bin_mapper(max_bins, random_state)
        if isinstance(X, BinnedDataset):
            raise ValueError("X is a BinnedDataset already: pass it to fit.")
        era_column: Any = eras if names_columns(eras, X) else None
        X, eras = take_era_column(X, eras)
        warn_of_row_order(eras, X)
        X = checked_table(X)
        check_numbers(None, X)
        if check_categorical_features(X, "from_dtype") is not None:
            raise ValueError(
                "X has categorical columns, which a BinnedDataset does not hold. "
                "Encode them as numbers or drop them, or fit to the raw rows."
            )
        feature_names = _get_feature_names(X)
        check_values(y, are_numbers=False)
        y = np.array(column_or_1d(y, warn=True))
        check_consistent_length(X, y)
        if n_missing := missing_rows(y).size:
            raise ValueError(
                f"y has {n_missing} missing value(s) in {y.size} rows; drop these rows."
            )
        encoded = None if eras is None else read_eras(eras, X)
        order, y, sample_weight, encoded = _sort_by_era(y, sample_weight, encoded)
        integers = as_integer_columns(X)
        if integers is not None:
            if order is not None:
                integers = integers[order]
            fit_bin_mapper(mapper, integers, sample_weight)
            X_binned = bin_columns(mapper, integers)
        else:
            columns = FloatColumns(X)
            X_binned = fit_and_bin_columns(mapper, columns, order, sample_weight)
        return cls(
            X_binned=X_binned, bin_mapper=mapper, y=y, eras=encoded,
            sample_weight=sample_weight, feature_names=feature_names,
            era_column=era_column, order=order,
        )  # fmt: skip

    @classmethod
    def from_parquet(
        cls, path: str | PathLike[str] | Sequence[str | PathLike[str]], *, target: str,
        era: str | None = None, features: Sequence[str] | None = None,
        sample_weight: str | None = None, max_bins: int = 255,
        random_state: Seed = None, drop_missing_target: bool = False,
        keep_eras: Collection[Any] | Mapping[Any, Any] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> "BinnedDataset":  # fmt: skip
        """Bin Parquet files batch by batch, without holding their rows.

        Each file is read twice: once for the thresholds of bins (with more than 200,000
        rows, from a sample), and once for the bins. Memory holds the data set, some
        hundred MiB, about 50 bytes per row, and 64 columns of a file's row groups.

        Parameters
        ----------
        path : str, path, or list of these
            A file, a folder (its ``*.parquet`` files sorted by name), or a list
            of files, whose rows follow one another.
        target : str
            The column of the target.
        era : str, default=None
            The column of the eras. It is a feature only if `features` names it.
        features : list of str, default=None
            The columns of features, in this order: integers, floats and booleans, with
            nulls as missing values. By default all columns except those of `target`,
            `era`, `sample_weight` and the index of a pandas data frame.
        sample_weight : str, default=None
            The column of the weights.
        max_bins : int, default=255
            Maximum number of bins of a feature, in [2, 255], as in the estimator.
        random_state : int, RandomState instance or None, default=None
            As in :meth:`from_arrays`.
        drop_missing_target : bool, default=False
            If True, drop rows whose target is null or NaN; if False, raise an error.
        keep_eras : collection or dict, default=None
            The labels of the eras to keep; by default all. Rows of other eras, and rows
            without a label, are dropped before any check. A dict maps the labels to
            keep to new labels, which may be equal: for example, weeks to months.
        on_progress : callable, default=None
            Called as ``on_progress(n_done, n_features)`` each time that further
            features are binned; ``n_done`` is the number of binned features so far.

        Returns
        -------
        dataset : BinnedDataset
            The data set that :meth:`from_arrays` makes of the same rows, bit for bit.

        Raises
        ------
        ValueError
            If a column is missing in one of the files, or not numeric (the message
            names it); if targets or eras are missing; if a weight is negative; if
            `keep_eras` names an era that no file has, or is given without `era`.
        MemoryError, ImportError
            If the binned matrix does not fit in memory (the message names its size); if
            pyarrow, which the extra ``parquet`` installs, is missing.
        """
        mapper = make_bin_mapper(max_bins, random_state)
        columns = ParquetColumns(path)
        names = check_names(columns, features, target, era, sample_weight)
        encoded, rows = None, np.arange(columns.n_rows)
        if era is not None:
            encoded, rows = read_kept_eras(columns, era, keep_eras)
        elif keep_eras is not None:
            raise ValueError("keep_eras needs era=, the name of the eras' column.")
        y, labelled = read_target(columns, target, rows, drop_missing_target)
        rows = rows[labelled]
        weights = None
        if sample_weight is not None:
            weights = columns.read_numbers(sample_weight, "sample_weight")[rows]
        encoded = None if encoded is None else encoded.take(labelled)
        order, y, weights, encoded = _sort_by_era(y, weights, encoded)
        if order is not None:
            rows = rows[order]
        del labelled  # 8 bytes a row
        columns.release()
        X_binned = bin_features(columns, names, rows, weights, mapper, on_progress)
        return cls(
            X_binned=X_binned, bin_mapper=mapper, y=y, eras=encoded,
            sample_weight=weights, feature_names=np.array(names, dtype=object),
            order=order,
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_samples, n_features)``."""
        return self.X_binned.shape

    @property
    def max_bins(self) -> int:
        """Maximum number of bins of a feature, without the bin of missing values."""
        return self.bin_mapper.n_bins - 1

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return sum(array.nbytes for array in self._arrays())

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n_eras = None if self.eras is None else self.eras.labels.size
        return (
            f"BinnedDataset(n_samples={self.shape[0]}, n_features={self.shape[1]}, "
            f"n_eras={n_eras}, max_bins={self.max_bins}, nbytes={self.nbytes})"
        )

    # Otherwise conversion to an array would index rows one by one.
    __iter__ = None

    def __getitem__(self, key: object) -> NoReturn:
        raise TypeError(
            "A BinnedDataset cannot be split or indexed, as cross-validation and grid "
            "search do: its bins were made from all rows. Pass them raw rows, or make "
            "a BinnedDataset for each fold."
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            "A BinnedDataset is no array: only fit of the estimators of "
            "sklearn_era.ensemble takes it. The matrix of bins is its X_binned."
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def check_bins(self) -> None:
        """Raise ValueError if X_binned has bins that its bin mapper lacks."""
        mapper = self.bin_mapper
        for j in range(self.shape[1]):
            n_bins = int(mapper.n_bins_non_missing_[j : j + 1].sum())
            column = self.X_binned[:, j]
            if ((column >= n_bins) & (column != mapper.missing_values_bin_idx_)).any():
                raise ValueError(
                    f"Column {j} of the BinnedDataset holds bins beyond the {n_bins} "
                    "of its bin_mapper; make the data set again from the raw rows."
                )

    def _arrays(self) -> list[NDArray[Any]]:
        codes = None if self.eras is None else self.eras.codes
        arrays = [self.X_binned, self.y, self.sample_weight, codes, self.order]
        return [array for array in arrays if array is not None]


def check_max_bins(max_bins: int) -> None:
    if not isinstance(max_bins, Integral) or not 2 <= max_bins <= 255:
        raise ValueError(f"max_bins={max_bins!r} must be an integer from 2 to 255.")


def make_bin_mapper(max_bins: int, random_state: Seed) -> _BinMapper:
    """Check `max_bins`; return an unfitted bin mapper, seeded as in ``fit``."""
    check_max_bins(max_bins)
    seed = check_random_state(random_state).randint(np.iinfo(np.uint32).max, dtype="u8")
    n_threads = _openmp_effective_n_threads()
    return _BinMapper(int(max_bins) + 1, random_state=seed, n_threads=n_threads)


def _sort_by_era(
    y: NDArray[Any], sample_weight: Any, eras: EncodedEras | None
) -> tuple[NDArray[np.uint32] | None, NDArray[Any], Any, EncodedEras | None]:
    """Return (order, y, sample_weight, eras). The order sorts rows by era; it is None
    if rows are sorted already or have no eras. The other results are in this order.
    """
    if y.dtype.kind == "f":
        y = y.astype(np.float64, copy=False)
    if sample_weight is not None:
        sample_weight = check_sample_weight(
            sample_weight, y, dtype=np.float64, copy=True
        )
    order = None if eras is None else eras.order
    if eras is not None and order is not None:
        y, eras = y[order], eras.take(order)
        sample_weight = None if sample_weight is None else sample_weight[order]
    return order, y, sample_weight, eras
