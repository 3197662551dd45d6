"""Score the candidates of a search era by era, and put the scores in a table."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score, top_k_accuracy_score
from sklearn.metrics._scorer import _Scorer
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import (
    MetadataRequest,
    MetadataRouter,
    get_routing_for_object,
)
from sklearn.utils.validation import _check_method_params, check_is_fitted

from .._era_routing import (
    eras_for_prediction,
    is_scored_by_era,
    take_eras_to_predict,
    with_answers,
    with_eras,
)
from .._eras import EncodedEras
from .._label_columns import EraColumns
from .._typing import Eras, Table
from .._warnings import listed, warn_user
from ..metrics._metric import is_defined, metric_name
from ._out_of_era import NOT_TESTED, respond


class EraMean(float):
    """The mean score of a fold's eras, a number that also holds each era's score."""

    codes: NDArray[np.integer]  # of the eras, ascending
    scores: NDArray[np.float64]  # of eras; NaN where the score is not defined
    why: str  # of the first score that failed, its error

    def __new__(cls, codes: NDArray[Any], scores: Any, why: str = "") -> "EraMean":
        scores = np.asarray(scores, dtype=np.float64)
        known = scores[~np.isnan(scores)]
        self = super().__new__(cls, known.mean() if known.size else np.nan)
        self.codes, self.scores, self.why = codes, scores, why
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return EraMean, (self.codes, self.scores, self.why)


class ScorerByEra:
    """A scorer that scores each era by another scorer, and returns an `EraMean`, or a
    dict of them if the other scorer returns dicts. An era's score is NaN if the other
    scorer raises ValueError for the era; if `raises`, errors of a user's own metric are
    raised. If `of_number`, ValueError is raised for scores that are not numbers.
    """

    def __init__(
        self, scorer: Callable[..., Any], eras: EncodedEras | None,
        raises: bool = False, of_number: bool = False,
    ) -> None:  # fmt: skip
        self.scorer, self._of_number = of_classes(scorer), of_number
        self._raises = raises and not _is_known(scorer)
        self.labels: Any = eras and eras.labels  # by code
        self.group_labels: Any = eras and eras.groups and eras.groups.labels

    def __repr__(self) -> str:
        return repr(self.scorer)

    def __call__(
        self, estimator: BaseEstimator, X: Any, *y: Any, era_codes: Any, **params: Any
    ) -> Any:
        eras: Any = None
        if self.group_labels is not None:
            calendar, (era_codes, groups) = era_codes.calendar, era_codes.columns
            columns = self.labels[era_codes], self.group_labels[groups]
            eras = EraColumns(columns, calendar=calendar)
        elif self.labels is not None:
            eras = self.labels[era_codes]
        if not is_scored_by_era(estimator):
            eras = eras_for_prediction(estimator, eras)
        estimator = with_eras(estimator, eras)
        if asks_for_eras(self.scorer):
            params["eras"] = era_codes
        order = np.argsort(era_codes, kind="stable")
        if (weights := params.get("sample_weight")) is not None:
            order = order[np.asarray(weights)[order] > 0]
            if not order.size:
                raise ValueError(NOT_TESTED)
        codes, starts = np.unique(era_codes[order], return_index=True)
        parts, found = np.split(order, starts[1:]), []
        for part, model, X_part in _asked_once(estimator, X, parts):
            targets = [_safe_indexing(values, part) for values in y]
            of_part = _check_method_params(X, params=params, indices=part)
            found.append(self._score(model, X_part, *targets, **of_part))
        known = [x for x in found if not isinstance(x, ValueError)]
        if not known:
            raise found[0]
        first = known[0]
        is_dict, is_other = isinstance(first, dict), np.ndim(first) > 0
        is_other |= isinstance(first, str)
        if self._of_number and (is_dict or is_other):
            raise ValueError(
                f"scoring must be of one number, and its score of an era is {first!r}: "
                "pass a single metric."
            )
        if is_other:
            return first
        undefined: Any = dict.fromkeys(first, np.nan) if is_dict else np.nan
        scores = [undefined if isinstance(x, ValueError) else x for x in found]
        why = next((str(x) for x in found if isinstance(x, ValueError)), "")
        if is_dict:
            return {x: EraMean(codes, [one[x] for one in scores], why) for x in first}
        return EraMean(codes, scores, why)

    def _score(self, *args: Any, **params: Any) -> Any:
        """Return the score of an era's rows, or the ValueError if it is undefined."""
        with warnings.catch_warnings():
            for category in (UserWarning, RuntimeWarning):  # of classes that it lacks
                warnings.simplefilter("ignore", category)
            try:
                return score_era(self.scorer, *args, **params)
            except ValueError as error:
                if self._raises:
                    raise
                return error

    def _accept_sample_weight(self) -> bool:
        accepts = getattr(self.scorer, "_accept_sample_weight", None)
        if accepts is not None:
            return accepts()
        return "sample_weight" in signature(self.scorer).parameters

    def get_metadata_routing(self) -> Any:
        """Return the requests of the inner scorer, and a request for codes of eras."""
        routing: Any = get_routing_for_object(self.scorer)
        own = routing
        if isinstance(routing, MetadataRouter):
            own = MetadataRequest(owner=self)
            routing.add_self_request(own)
        own.score.add_request(param="era_codes", alias=True)
        return routing


def _is_known(scorer: Any) -> bool:
    """Return whether a scorer's metric is of scikit-learn or of this package. An error
    of this metric then means that an era has no score, for example with a single class.
    """
    metric = getattr(scorer, "_score_func", scorer)
    while isinstance(metric, partial):
        metric = metric.func
    return str(metric.__module__).startswith(("sklearn.", "sklearn_era."))


def score_era(scorer: Any, model: Any, X: Any, *y: Any, **params: Any) -> Any:
    """Return the scorer's score of an era's rows. Return NaN, with a warning, if the
    metric needs a class that no row has (see `is_defined`).
    """
    if y and isinstance(scorer, _Scorer):
        classes = getattr(model, "classes_", ())
        of_metric = scorer._score_func, scorer._kwargs
        if not is_defined(*of_metric, y[0], len(classes) == 2):
            return np.nan
    return scorer(model, X, *y, **params)


def _asked_once(
    model: BaseEstimator, X: Table, parts: Sequence[NDArray[np.intp]]
) -> Iterator[tuple[NDArray[np.intp], Any, Any]]:
    """Yield each part (indices of rows), a stand-in for the model, and the part's rows
    of X. The model predicts all of X only once, and the stand-in returns the part's
    share of these predictions.
    """
    known: dict[str, Any] = {}
    for part in parts:
        X_part = _safe_indexing(X, part)

        def answer(method: str, X_asked: Any, X_part=X_part, part=part) -> Any:
            respond = getattr(model, method)
            if X_asked is not X_part:  # the scorer has other rows in mind
                return respond(X_asked)
            if method not in known:
                known[method] = respond(X)
            if isinstance(known[method], list):  # of several outputs
                return [values[part] for values in known[method]]
            return _safe_indexing(known[method], part)

        yield part, with_answers(model, answer), X_part


def prediction(
    method: str, returned: str, rows: str = "array-like", array: str = "ndarray"
) -> Callable[..., Any]:
    """Return a method called `method`, with a docstring, that passes X and eras to the
    model's `_ask`. The docstring names the result by `returned`, and types of arguments
    and result by `rows` and `array`.
    """

    def predict(
        self: BaseEstimator, X: Table, *, eras: Eras | None = None
    ) -> NDArray[Any]:
        check_is_fitted(self)
        return self._ask(method, *take_eras_to_predict(self, X, eras))

    predict.__name__ = method
    predict.__doc__ = f"""Predict {returned}.

        Parameters
        ----------
        X : {rows} of shape (n_samples, n_features)
            The input samples.
        eras : {rows} of shape (n_samples,), default=None
            Eras of the rows: labels, or names of columns as in ``fit``. Intercepts of
            eras and transformers by era use eras. None means the columns that ``fit``
            named, if the model is for known groups or has transformers by era.

        Returns
        -------
        predicted : {array} of shape (n_samples,) or (n_samples, n_classes)
            In the form that `{method}` of scikit-learn's models returns.
        """
    return predict


def asks_for_eras(scorer: Callable[..., Any]) -> bool:
    """Return whether a scorer has an argument `eras`."""
    return callable(scorer) and "eras" in signature(scorer).parameters


class _ScorerOfClasses(_Scorer):
    """A scorer of probabilities that also works if model or rows lack some classes."""

    def _score(
        self, method_caller: Any, estimator: BaseEstimator, X: Table, y_true: ArrayLike,
        **kwargs: Any,
    ) -> float:  # fmt: skip
        metric = self._score_func
        if not hasattr(estimator, "classes_"):
            raise ValueError(
                f"scoring: {metric_name(metric)} is of classes, and "
                f"{type(estimator).__name__} predicts none: choose a score of numbers, "
                "such as 'r2', or fit a classifier."
            )
        labels = np.union1d(estimator.classes_, y_true)
        if labels.size == 1 and self._sign < 0:
            return 0.0
        if metric_name(metric).startswith("d2_") and np.unique(y_true).size == 1:
            return np.nan  # they divide by the loss of shares of classes
        if labels.size < 2 + (metric is roc_auc_score):  # which then needs no labels
            return super()._score(method_caller, estimator, X, y_true, **kwargs)
        p = respond(estimator, X, labels)
        if labels.size == 2 and metric is top_k_accuracy_score:
            p = p[:, 1]
        params = {**self._kwargs, **kwargs, "labels": labels}
        return self._sign * metric(y_true, p, **params)


def of_classes(scorer: Any) -> Any:
    """Return the scorer or, if it is of probabilities and its metric takes labels, a
    copy that passes the classes of the model and of the rows to the metric.
    """
    if (
        type(scorer) is not _Scorer
        or "predict_proba" not in np.atleast_1d(scorer._response_method)
        or "labels" not in signature(scorer._score_func).parameters
        or {"labels", "pos_label"} & set(scorer._kwargs)
    ):
        return scorer
    known: Any = object.__new__(_ScorerOfClasses)
    vars(known).update(vars(scorer))
    return known


def warn_of_undefined(
    scores: Sequence[Any], labels: NDArray[Any], scoring: Any
) -> None:
    """Warn of eras whose score is NaN, since means over eras ignore these eras."""
    means = [x for x in scores if isinstance(x, EraMean)]
    codes = [x.codes[np.isnan(x.scores)] for x in means]
    if (lost := np.unique(np.concatenate([[], *codes])).astype(np.intp)).size:
        why = next((f" The first error: {x.why}" for x in means if x.why), "")
        name = scoring or "the score"
        if not isinstance(name, str):  # scikit-learn 1.7 has no repr of some scorers
            name = metric_name(getattr(scoring, "_score_func", scoring))
        warn_user(
            f"scoring: {name} is undefined in {lost.size} era(s) "
            f"({listed(labels[lost])}), which means over eras leave out. Merge them, "
            f"or pass a scoring that eras of one class have.{why}",
            UndefinedMetricWarning,
        )


def tabulate(
    scores: Sequence[Any], n_folds: int
) -> tuple[NDArray[np.float64], NDArray[np.integer]]:
    """Return a table of scores, of shape (n_candidates, n_folds, n_eras), and the codes
    of its eras. If a fit failed, its `error_score` is the score in each era that the
    fold tests.
    """
    known = [score for score in scores if isinstance(score, EraMean)]
    codes = np.unique(np.concatenate([[], *(x.codes for x in known)])).astype(np.intp)
    table = np.full((len(scores), codes.size), np.nan)
    is_tested = np.zeros((n_folds, codes.size), dtype=bool)
    for i, score in enumerate(scores):
        if isinstance(score, EraMean):
            places = np.searchsorted(codes, score.codes)
            table[i, places] = score.scores
            is_tested[i % n_folds, places] = True
    for i, score in enumerate(scores):
        if not isinstance(score, EraMean):
            table[i, is_tested[i % n_folds]] = score
    return table.reshape(len(scores) // n_folds, n_folds, codes.size), codes
