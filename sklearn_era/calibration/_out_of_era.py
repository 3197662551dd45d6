"""Models of folds of whole eras, and what they predict of the eras left out."""

from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.model_selection import GroupKFold, check_cv, cross_validate
from sklearn.utils import _safe_indexing, column_or_1d, get_tags, indexable
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._era_arguments import eras_by_name, take_era_column, warn_of_row_order
from .._eras import EncodedEras, follow_each_other, read_eras
from .._fit_attributes import fits_or_fails
from .._scikit_learn import check_sample_weight
from ..model_selection import EraWalkForwardSplit
from ..model_selection._fit_arguments import check_target, fit_arguments, with_order
from ..model_selection._search_scores import ask, prediction

Array = NDArray[np.float64]

DOC = """

    Parameters
    ----------
    estimator : object
        Any {task}, whose `fit` is passed the eras if it takes them.
    cv : int, splitter or iterable, default=5
        Folds of whole eras by :class:`~sklearn.model_selection.GroupKFold`{folds}.
    era_order : {{'auto', 'ordered', 'unordered'}}, default='auto'
        As in :class:`~sklearn_era.model_selection.EraSearchCV`.
    n_jobs : int, default=None
        Folds to fit at once.

    Attributes
    ----------
    estimator_, estimators_ : object, list of object
        The model of all rows, and those of folds.
    era_labels_, era_order_ : ndarray of shape (n_eras_left_out,), str
        The eras left out, and how eras were taken: 'ordered' or 'unordered'.
{attributes}
    classes_, n_features_in_, feature_names_in_ :
        Those of the estimator.
"""


class LeftOut(NamedTuple):
    """Rows that a fold's model has not seen, one fold after another."""

    folds: NDArray[Any]  # of the models, from 0
    codes: NDArray[Any]  # of the eras, from 0
    y: NDArray[Any]
    weights: NDArray[Any]
    predicted: NDArray[Any]  # of shape (n_rows,) or (n_rows, n_classes)


class OutOfEra(MetaEstimatorMixin, BaseEstimator):
    """An estimator that learns from what others predict out of era."""

    _walks_forward: ClassVar = True  # through ordered eras
    __metadata_request__fit: ClassVar = {"eras": True}
    __metadata_request__predict: ClassVar = {"eras": True}
    __metadata_request__predict_proba: ClassVar = {"eras": True}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "cv": ["cv_object"],
        "era_order": [StrOptions({"auto", "ordered", "unordered"})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        cv: Any = 5,
        era_order: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.era_order = era_order
        self.n_jobs = n_jobs

    @eras_by_name
    @fits_or_fails
    def fit(
        self, X: Any, y: Any = None, *, eras: Any = None, sample_weight: Any = None
    ) -> "OutOfEra":
        """Fit models in folds of eras and to all rows, and learn of the eras left out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y, eras : array-like of shape (n_samples,)
            Their targets and eras, or the name of the column of eras.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows, in fits and within eras.

        Returns
        -------
        self : object
            The model, fitted.

        Raises
        ------
        ValueError
            If `eras` is missing, has the wrong length or no known order, or less than
            three labels, two of unordered eras; or as the estimator's `fit` raises.
        """
        self._validate_params()
        check_target(y, X)
        X, eras = take_era_column(X, eras)
        X, y = indexable(X, y)
        y, name = column_or_1d(y, warn=True), type(self).__name__
        warn_of_row_order(eras, X)
        if eras is None:
            raise ValueError(
                f"{name} needs eras: pass fit(X, y, eras=...) with one label a row."
            )
        encoded = read_eras(eras, X)
        are_ordered = follow_each_other(encoded, self.era_order, name)
        self.era_order_ = "ordered" if are_ordered else "unordered"
        folds = list(self._splitter(encoded, y).split(X, y, groups=encoded.codes))
        weights = check_sample_weight(sample_weight, X)
        params = {"eras": eras, "sample_weight": sample_weight}
        if sample_weight is not None:
            params["sample_weight"] = weights
        self._fit_models(X, y, folds, params)
        parts = [
            (np.full(rows.size, i), encoded.codes[rows], y[rows], weights[rows],
             self._respond(self.estimators_[i], _safe_indexing(X, rows)))
            for i, (_, rows) in enumerate(folds)
        ]  # fmt: skip
        left_out = LeftOut(*map(np.concatenate, zip(*parts, strict=True)))
        has_weight = np.bincount(left_out.codes, left_out.weights) > 0
        self.era_labels_ = encoded.labels[np.flatnonzero(has_weight)]
        left_out = LeftOut(*(x[has_weight[left_out.codes]] for x in left_out))
        codes = np.cumsum(has_weight)[left_out.codes] - 1
        self._learn(left_out._replace(codes=codes), self.era_labels_.size)
        return self

    def _fit_models(self, X: Any, y: Any, folds: Any, params: dict[str, Any]) -> None:
        model = with_order(self.estimator, self.era_order_)
        params = fit_arguments(model, **params)
        self.estimators_ = cross_validate(
            model, X, y, cv=folds, n_jobs=self.n_jobs, params=params,
            scoring=lambda *_: 0.0, return_estimator=True, error_score="raise",
        )["estimator"]  # fmt: skip
        self.estimator_ = model.fit(X, y, **params)
        for attribute in ("classes_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(attribute, None)
            if hasattr(self.estimator_, attribute):
                setattr(self, attribute, getattr(self.estimator_, attribute))

    def _learn(self, left_out: LeftOut, n_eras: int) -> None:
        raise NotImplementedError

    def _splitter(self, encoded: EncodedEras, y: Any) -> Any:
        """Return `cv`, or folds of whole eras of that number."""
        if self.cv is not None and not isinstance(self.cv, Integral):
            return check_cv(self.cv, y)
        n_eras, n_folds = encoded.labels.size, 5 if self.cv is None else int(self.cv)
        walks = self._walks_forward and self.era_order_ == "ordered"
        if n_eras < 2 + walks:
            raise ValueError(
                f"eras holds {n_eras} label(s) (n_samples={encoded.codes.size}), and "
                f"{type(self).__name__} leaves eras out: pass three or more, or two "
                "with era_order='unordered'."
            )
        if walks:
            return EraWalkForwardSplit(min(n_folds, n_eras - 1))
        return GroupKFold(min(n_folds, n_eras))

    def _respond(self, model: Any, X: Any) -> Array:
        """Return predictions, or the probabilities of all classes."""
        if not hasattr(self, "classes_"):
            return np.asarray(model.predict(X), dtype=np.float64)
        p, known = (
            model.predict_proba(X),
            np.searchsorted(self.classes_, model.classes_),
        )
        found = np.zeros((p.shape[0], self.classes_.size))
        found[:, known] = p[:, : known.size]  # boosters of one class have two columns
        return found

    predict = prediction("predict", "targets or classes")

    def _ask(self, method: str, X: Any, eras: Any) -> Any:
        check_is_fitted(self)
        return ask(self.estimator_, method, X, eras)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


OF_PROBABILITIES = OutOfEra._parameter_constraints | {
    "estimator": [HasMethods(["fit", "predict_proba"])]
}

__all__ = ["DOC", "OF_PROBABILITIES", "Array", "LeftOut", "OutOfEra"]
