"""Encode categories by their targets in eras other than the row's own."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import _safe_indexing, check_array, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    validate_data,
)

from .._era_arguments import eras_by_name, warn_of_row_order
from .._era_columns import era_columns_in, take_era_column
from .._era_labels import find
from .._eras import EncodedEras, are_ordered, era_means
from .._fit_attributes import restores_on_failure
from .._parameter_object import parameter, with_parameters
from .._scikit_learn import check_sample_weight
from .._tables import columns as tables
from .._tables.checks import check_table, is_data_frame
from .._tables.target import are_classes, check_values
from .._target_statistics import Cells, cells_of, effects
from .._typing import Eras, Table
from .._warnings import warn_user
from ..ensemble._binning.read_columns import column_name
from ..model_selection._out_of_era import check_target
from ._base import Array, of_fit, read_or_one

# Eras without an order are encoded by those of other folds.
_N_FOLDS = 5
_TARGETS = {"auto", "continuous", "binary", "multiclass"}


@with_parameters
class EraTargetEncoder(TransformerMixin, BaseEstimator):
    """Encode categories by their targets in earlier eras.

    A category c becomes the shrunken mean of its targets, less the means of their eras.
    In the model ``y = level_e + b_c + u_ce + noise``, t² is the variance of b, s² that
    of u, by which an effect differs between eras, and v that of the noise. Let c have
    n_e rows in era e, and let d_e be the mean of their targets less the era's mean. The
    estimate of b_c by empirical Bayes is ::

        sum_e p_e d_e / (sum_e p_e + 1 / t²),    p_e = 1 / (s² + v / n_e)

    The estimate and the variances, by moments [1]_, use the eras e before the row's
    own, so that no row uses targets of its own era or of later eras. Rows of the first
    era, and unknown categories, are 0; rows of eras new to ``fit`` use all its eras.

    Where eras have no order, such as hospitals, whole eras are put into five folds, and
    the estimate uses the eras e in the four folds other than the row's own. **Leave
    such columns out of models**: the higher the mean of the row's own era is, the lower
    is the mean of the other eras, and trees find this.

    Parameters
    ----------
    categorical_features : 'from_dtype' or list, default='from_dtype'
        Columns to encode, by names, places or one bool per column; other columns are
        dropped. 'from_dtype' encodes a frame's columns of text and categories, or all
        columns if there are none, as in an array. A missing value is a category.
    target_type : {'auto', 'continuous', 'binary', 'multiclass'}, default='auto'
        If there are two classes, the second is encoded; if more, each class is. 'auto'
        takes names, booleans and two whole numbers for classes, and other numbers for
        amounts (:class:`~sklearn.preprocessing.TargetEncoder` takes counts for
        classes). If more than two numbers are classes, pass 'multiclass'.
    smooth : 'auto' or float, default='auto'
        'auto' is the estimate above. With a number k, the estimate has k in place of
        1 / t², and ``p_e = n_e``.
    variation : bool, default=False
        Whether to add a column with each category's own s, the root of
        ``s² (D + 4) / (m + 3)`` with ``D = sum_e p_e (d_e - d)²``: m is the category's
        number of eras, and d the mean of d_e with weights p_e. These p_e are those of
        'auto' even if `smooth` is a number.
    count : bool, default=False
        Whether to add a column with the number of rows of each category.
    relative : list, default=()
        Numeric columns, by names, places or one bool per column. For each of them and
        each encoded column, a column is added: the number less the effect of the row's
        category on it, estimated as for targets.
    era_order : {'auto', 'ordered', 'unordered'}, default='auto'
        As in :class:`~sklearn_era.model_selection.EraSearchCV`.

    Attributes
    ----------
    categories_ : list of ndarray
        The categories of each encoded column, None last if values are missing.
    encodings_ : list of ndarray of shape (n_categories + 1, n_encoded)
        For each encoded column, the output columns of each category in later eras; the
        last row is that of an unknown category. `relative` columns have the effects to
        subtract.
    era_labels_ : ndarray of shape (n_eras,)
        The eras of the training.
    era_order_, target_type_ : str
        'ordered' or 'unordered', as eras were taken; and the kind of the targets.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, if there are any.
    n_features_in_, feature_names_in_ :
        As in scikit-learn's transformers.

    See Also
    --------
    sklearn.preprocessing.TargetEncoder : The same without eras, in folds of rows.

    References
    ----------
    .. [1] S. R. Searle, G. Casella, C. E. McCulloch (1992), Variance Components. Wiley,
       section 5.3 (Henderson's method III).

    Examples
    --------
    >>> from sklearn_era.preprocessing import EraTargetEncoder
    >>> X, y = [["a"], ["b"], ["a"], ["b"], ["c"]], [3.0, 1.0, 7.0, 5.0, 6.0]
    >>> encoder = EraTargetEncoder(target_type="continuous", smooth=1.0)
    >>> encoder.fit_transform(X, y, eras=[1, 1, 2, 2, 2]).ravel().tolist()
    [0.0, 0.0, 0.5, -0.5, 0.0]
    >>> encoder.transform([["a"], ["d"]]).round(3).tolist()
    [[0.667], [0.0]]
    """

    __metadata_request__fit: ClassVar = {"eras": True}
    __metadata_request__transform: ClassVar = {"eras": True}
    categorical_features: Any = parameter(
        [StrOptions({"from_dtype"}), "array-like"], default="from_dtype"
    )
    target_type: str = parameter([StrOptions(_TARGETS)], default="auto")
    smooth: Any = parameter(
        [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")], default="auto"
    )
    variation: bool = parameter(["boolean"], default=False)
    count: bool = parameter(["boolean"], default=False)
    relative: Any = parameter(["array-like"], default=())
    era_order: str = parameter(
        [StrOptions({"auto", "ordered", "unordered"})], default="auto"
    )

    @eras_by_name
    @restores_on_failure
    def fit(
        self, X: Table, y: ArrayLike, *, eras: Eras | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Learn how targets depend on categories, era by era.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their targets.
        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, or the name of the column of eras in X, which ``fit`` and
            ``transform`` drop. None takes all rows for one era, with a warning.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows, scaled so that they sum to the effective number of rows.

        Returns
        -------
        self : object
            The encoder, fitted.
        """
        self._validate_params()
        # For `transform`, also if parameters are set before it.
        self._smooth, self._variation = self.smooth, self.variation
        self._count = self.count
        if eras is None:
            warn_user(
                "EraTargetEncoder takes all rows for one era, so that none has an "
                "earlier one: pass fit(X, y, eras=...) with one label a row."
            )
        X, encoded = self._read(X, eras, reset=True)
        targets = self._targets(y, X)
        weights = check_sample_weight(sample_weight, X)
        weights = weights * (weights.sum() / (weights @ weights))
        rows = np.flatnonzero(weights)
        encoded, targets, weights = encoded.take(rows), targets[:, rows], weights[rows]
        ordered = are_ordered(encoded, self.era_order, type(self).__name__)
        self.era_labels_ = encoded.labels
        self.era_order_ = "ordered" if ordered else "unordered"
        targets = np.vstack([targets, self._numbers(X)[:, rows]])
        # A missing number is that of its era.
        known = ~np.isnan(targets)
        levels = [
            era_means(encoded.codes, weights * here, np.where(here, each, 0.0))
            for here, each in zip(known, targets, strict=True)
        ]
        targets = np.nan_to_num(targets - np.array(levels)[:, encoded.codes])
        self.categories_, self._cells, self.encodings_ = [], [], []
        for j in self._columns:
            column = self._categories(X, j)[rows]
            missing = [None] if None in {*column} else []
            categories = tables.sorted_categories(column) + missing
            known = np.fromiter(categories, dtype=object, count=len(categories))
            codes = tables.places_in(known, column)
            cells = cells_of(codes, encoded.codes.astype(np.intp), targets, weights)
            self.categories_.append(known)
            self._cells.append(tuple(cells))
            every = np.arange(known.size + 1)
            new = np.full(every.size, encoded.labels.size)
            found = effects(cells, every, new, self.smooth)
            self.encodings_.append(self._chosen(found))
        return self

    def transform(self, X: Table, *, eras: Eras | None = None) -> Any:
        """Encode rows by the targets of other eras.

        Rows of training eras are encoded by earlier eras or, if eras have no order, by
        the eras in other folds. Rows of new eras are encoded by all training eras.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        eras : array-like of shape (n_samples,) or str, default=None
            Era of each row, or the name of the column of eras in X. None is the column
            that ``fit`` was given by name, if X has it; else all rows are of a new era,
            and are encoded by all eras of the training.

        Returns
        -------
        X_out : ndarray or data frame of shape (n_samples, n_features_out)
            The encoded columns, as float64.
        """
        check_is_fitted(self)
        eras = era_columns_in(self, X) if eras is None else eras
        X, encoded = self._read(X, eras, reset=False)
        if eras is None:
            return self._encode(X, np.full(encoded.codes.size, -1))
        return self._encode(X, find(self.era_labels_, encoded.labels)[encoded.codes])

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        # The docstring is scikit-learn's, whose method hands no eras to `transform`.
        eras = fit_params.get("eras")
        X, encoded = self.fit(X, y, **fit_params)._read(X, eras, reset=False)
        return self._encode(X, find(self.era_labels_, encoded.labels)[encoded.codes])

    def _encode(self, X: Table, at: NDArray[Any]) -> Array:
        """Return the encoded rows. `at` has the index in `era_labels_` of each row's
        era, and -1 for an era that is new since the fit.
        """
        is_known, parts = at >= 0, [np.empty((at.size, 0))]
        n_folds = _N_FOLDS if self.era_order_ == "unordered" else 0
        for i, j in enumerate(self._columns):
            column, known = self._categories(X, j), self.categories_[i]
            tables.check_kinds(column, known, column_name(self, j))
            codes = tables.places_in(known, column)
            parts.append(self.encodings_[i][codes].astype(np.float64))
            if is_known.any():
                asked = codes[is_known], at[is_known]
                smooth = of_fit(self, "smooth")
                found = effects(Cells(*self._cells[i]), *asked, smooth, n_folds)
                parts[-1][is_known] = self._chosen(found)
            if self._relative:
                effect = parts[-1][:, -len(self._relative) :]
                effect[:] = self._numbers(X).T - effect
        return np.hstack(parts)

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Return the names of the encoded columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            The names of the columns of X, by default those of the fit.

        Returns
        -------
        names : ndarray of str
            An encoded column's name with "_effect", "_variation" or "_count", and with
            a class if there are more than two; or a `relative` column's name, "_less_"
            and an encoded column's name.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        classes = [f"_{x}" for x in getattr(self, "classes_", ())]
        ends = classes if self.target_type_ == "multiclass" else [""]
        kinds = [f"_effect{end}" for end in ends]
        if of_fit(self, "variation"):
            kinds += [f"_variation{end}" for end in ends]
        kinds += ["_count"] if of_fit(self, "count") else []
        found = list[str]()
        for j in self._columns:
            found += [f"{names[j]}{kind}" for kind in kinds]
            found += [f"{names[r]}_less_{names[j]}" for r in self._relative]
        return np.array(found, dtype=object)

    def _read(
        self, X: Any, eras: Eras | None, *, reset: bool
    ) -> tuple[Any, EncodedEras]:
        """Return X without eras, as a frame or an array; and the encoded eras."""
        check_table(X)
        X, eras = take_era_column(X, eras, model=self)
        warn_of_row_order(eras, X)
        X = tables.as_frame(X)
        options: dict[str, Any] = {"dtype": None, "ensure_all_finite": "allow-nan"}
        if is_frame := is_data_frame(X):
            X = X if reset else tables.columns_of_fit(self, X)
            options = {"skip_check_array": True}
        X = validate_data(self, X, reset=reset, **options)
        if reset:
            names = [*getattr(X, "columns", range(X.shape[1]))]
            chosen, given = self.categorical_features, np.ones(len(names), bool)
            if not (isinstance(chosen, str) and chosen == "from_dtype"):
                options = {"name": "categorical_features", "also": "'from_dtype', or "}
                given = tables.choose_columns(chosen, names, is_frame, **options)
            elif is_frame:
                is_text = np.array([tables.holds_text(dtype) for dtype in X.dtypes])
                given = is_text if is_text.any() else given
            self._columns = np.flatnonzero(given).tolist()
            if not self._columns:
                raise ValueError(
                    f"categorical_features={chosen!r} names no column to encode: name "
                    "some, or leave the encoder out."
                )
            chosen = tables.choose_columns(
                self.relative, names, is_frame, name="relative"
            )
            self._relative = np.flatnonzero(chosen).tolist()
        return X, read_or_one(eras, X, X.shape[0])

    def _numbers(self, X: Table) -> Array:
        """Return the `relative` columns as numbers, of shape (n_columns, n_samples)."""
        numbers = np.empty((len(self._relative), len(X)))
        names = _check_feature_names_in(self).tolist()
        remedy = "Make numbers of it, or leave it out of `relative`."
        for i, j in enumerate(self._relative):
            values = _safe_indexing(X, j, axis=1)
            numbers[i] = tables.as_numbers(values, names[j], "X", remedy)
        return numbers

    def _categories(self, X: Table, j: int) -> NDArray[Any]:
        values = _safe_indexing(X, j, axis=1)
        return tables.as_categories(values, column_name(self, j))

    def _targets(self, y: ArrayLike, X: Table) -> Array:
        """Return the target as numbers to average, of shape (n_outputs, n_samples)."""
        check_target(y, X)
        check_values(y, are_numbers=self.target_type == "continuous")
        y = column_or_1d(y, warn=True)
        self.target_type_ = self.target_type
        if self.target_type == "auto":
            self.target_type_ = "binary" if are_classes(np.asarray(y)) else "continuous"
        self.__dict__.pop("classes_", None)
        if self.target_type_ == "continuous":
            options: Any = {"ensure_2d": False, "input_name": "y"}
            return check_array(y, dtype=np.float64, **options)[np.newaxis].copy()
        encoder = LabelEncoder().fit(y)
        self.classes_, codes = encoder.classes_, encoder.transform(y)
        last = self.classes_.size - 1
        if self.target_type == "binary" and last > 1:
            raise ValueError(
                f"y has {last + 1} classes, and target_type='binary' is for two: pass "
                "target_type='multiclass'."
            )
        if self.target_type == "auto" and last > 1:
            self.target_type_ = "multiclass"
        shown = [last] if self.target_type_ == "binary" else range(last + 1)
        return np.array([codes == code for code in shown], dtype=np.float64)

    def _chosen(self, found: list[Array]) -> Array:
        """Join the columns of `found` that the parameters of the fit ask for."""
        n = found[0].shape[1] - len(self._relative)
        effect, variation, count = found
        parts = [effect[:, :n]]
        parts += [variation[:, :n]] if of_fit(self, "variation") else []
        parts += [count] if of_fit(self, "count") else []
        return np.hstack([*parts, effect[:, n:]])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.target_tags.required = True
        return tags
