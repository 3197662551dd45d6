"""The candidates of a search: fitted in folds of whole eras, and scored by era."""

import time
import warnings
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    clone,
    is_classifier,
)
from sklearn.metrics import check_scoring, log_loss, make_scorer
from sklearn.model_selection import GroupKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from sklearn_era._eras import (
    EncodedEras,
    follow_each_other,
    read_eras,
)
from sklearn_era._tables.no_value import no_value_noted
from sklearn_era._warnings import warn_user
from sklearn_era.model_selection._fit_arguments import takes
from sklearn_era.model_selection._walk_forward import EraWalkForwardSplit

# Rows to train on and to test on.
Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]


def check_order(
    eras: Any, X: Any, era_order: str, name: str
) -> tuple[EncodedEras, str]:
    """Check the labels of rows; return them, and whether they are 'ordered' or not."""
    encoded = read_eras(eras, X)
    labels = encoded.labels
    follow = follow_each_other(encoded, era_order, name)
    era_order = "ordered" if follow else "unordered"
    if labels.size == 1:
        raise ValueError(
            f"eras holds the single era {labels[0]!s} (n_samples={encoded.codes.size}),"
            f" and {name} tests on eras that a model has not seen; pass the labels of "
            "two or more."
        )
    if follow and labels.size == 2:
        raise ValueError(
            "eras holds 2 eras, and walking forward tests on one, which has no "
            "standard error; pass three or more, or era_order='unordered'."
        )
    return encoded, era_order


def era_folds(eras: EncodedEras, era_order: str, n_folds: int) -> Folds:
    """Rows to train and to test on: later eras, or groups of eras, whole ones."""
    n_eras = eras.labels.size
    if era_order == "unordered":
        folds = GroupKFold(min(n_folds, n_eras))
        return list(folds.split(eras.codes, groups=eras.codes))
    n_folds = min(n_folds, n_eras - 1)
    n_test = max(1, n_eras // (2 * n_folds))
    walk = EraWalkForwardSplit(n_folds, test_size=n_test)
    return list(walk.split(eras.codes, groups=eras.codes))


class Candidates:
    """The results of the candidates, in the order of their trial."""

    def __init__(
        self,
        search: Any,  # the `EraSearchCV`
        plain: Any,
        X: Any,
        y: Any,
        arguments: dict[str, Any],
        folds: Folds,
        codes: NDArray[np.integer],  # of the tested rows
    ):
        self.search, self.plain, self.X, self.y = search, plain, X, y
        self.arguments, self.folds = arguments, folds
        tested = np.concatenate([test for _, test in folds])
        self.y_tested = _safe_indexing(y, tested)
        self.era_codes = np.unique(codes)
        self.rows_of_eras = [np.flatnonzero(codes == era) for era in self.era_codes]
        self.classes = np.unique(np.asarray(y)) if is_classifier(plain) else None
        scoring = search._scoring()
        if scoring is None and self.classes is not None:
            # An era need not have all classes.
            scoring = make_scorer(
                log_loss,
                greater_is_better=False,
                response_method="predict_proba",
                labels=self.classes,
            )
        elif scoring is None:
            scoring = "neg_mean_squared_error"
        self.scorer = check_scoring(plain, scoring)
        self.weights = {}
        for name, values in arguments.items():
            if name.endswith("sample_weight") and takes(self.scorer, "sample_weight"):
                self.weights["sample_weight"] = values[tested]
        self.failure: ValueError | None = None  # the last of the scorer
        self.params: list[Any] = []  # of an average, a list
        self.predictions: list[NDArray[np.float64]] = []  # of test rows of all folds
        self.scores: list[NDArray[np.float64]] = []  # by era, as `era_codes`
        self.seconds: list[float] = []  # the mean time of a fit
        self.empty_columns: list[Any] = []  # of a fold, once or more

    def try_all(self, candidates: Sequence[dict[str, Any]]) -> None:
        """Fit candidates, the plain model first, as long as there is time."""
        budget, start = self.search.time_budget, time.perf_counter()
        for i, params in enumerate(candidates):
            if i > 0 and budget is not None and time.perf_counter() - start > budget:
                warn_user(
                    f"time_budget={budget!r} seconds were over after {i} of "
                    f"{len(candidates)} candidates, and the others are left out; "
                    "raise it, or list fewer."
                )
                break
            estimator = clone(self.plain).set_params(**params)
            try:
                self._try(estimator, params)
            except ValueError as error:
                if i == 0:
                    raise
                warn_user(
                    f"{text_of(params)} is left out, as it cannot be fitted: {error}"
                )

    def _try(self, estimator: Any, params: dict[str, Any]) -> None:
        found = Parallel(n_jobs=self.search.n_jobs)(
            delayed(_fit_and_predict)(
                estimator,
                _safe_indexing(self.X, train),
                _safe_indexing(self.y, train),
                {name: values[train] for name, values in self.arguments.items()},
                _safe_indexing(self.X, test),
                self.classes,
            )
            for train, test in self.folds
        )
        predictions, seconds, empty = zip(*found, strict=True)
        self.empty_columns += chain(*empty)
        self._add(params, np.concatenate(predictions), float(np.mean(seconds)))

    def _add(self, params: Any, predicted: NDArray[np.float64], seconds: float) -> None:
        scores = np.array([self._score(predicted, rows) for rows in self.rows_of_eras])
        if not np.isfinite(scores).any():
            raise ValueError(
                f"scoring={self.search.scoring!r} is defined in no era: {self.failure}"
            )
        self.params.append(params)
        self.predictions.append(predicted)
        self.seconds.append(seconds)
        self.scores.append(scores)
        if self.search.verbose:
            mean = np.nanmean(self.scores[-1])
            print(f"{text_of(params)}: {mean:.6g}, {seconds:.2f} s a fit")

    def _score(self, predicted: NDArray[np.float64], rows: NDArray[np.intp]) -> float:
        """The score of one era's rows; NaN where it is not defined."""
        weights = {name: values[rows] for name, values in self.weights.items()}
        model = (
            _KnownValues()
            if self.classes is None
            else _KnownProbabilities(self.classes)
        )
        model.values = predicted[rows]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of classes that an era does not have
                return float(
                    self.scorer(
                        model,
                        np.arange(rows.size),
                        _safe_indexing(self.y_tested, rows),
                        **weights,
                    )
                )
        except ValueError as error:
            self.failure = error
            return np.nan

    def add_averages(self, n_averaged: int) -> None:
        """Add the averages of the best two candidates, the best three and so on."""
        means = [np.nanmean(scores) for scores in self.scores]
        best = np.argsort(np.negative(means), kind="stable")[:n_averaged]
        for n in range(2, best.size + 1):
            self._add(
                [self.params[i] for i in best[:n]],
                np.mean([self.predictions[i] for i in best[:n]], axis=0),
                float(np.sum([self.seconds[i] for i in best[:n]])),
            )

    def results(self) -> dict[str, Any]:
        """`cv_results_` of the search."""
        scores = np.array(self.scores)
        mean, error = mean_and_error(scores - scores[0])
        means = np.nanmean(scores, axis=1)  # each has a score in some era
        params = np.empty(len(self.params), dtype=object)
        params[:] = self.params
        return {
            "params": params,
            "mean_fit_time": np.array(self.seconds),
            "mean_test_score": means,
            "std_test_score": np.nanstd(scores, axis=1),
            "worst_test_score": np.nanmin(scores, axis=1),
            "rank_test_score": rankdata(-means, method="min").astype(np.int32),
            "mean_difference": mean,
            "se_difference": error,
            "qualifies": (mean > error) | (self.search.rule == "best"),
        }


def mean_and_error(differences: NDArray[np.float64]) -> tuple[Any, Any]:
    """Return means over eras, the last axis, and their standard errors, NaN of fewer
    than two; eras without a difference, which are NaN, are left out.
    """
    n_known = np.isfinite(differences).sum(axis=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of no era, or one
        mean = np.nanmean(differences, axis=-1)
        deviation = np.nanstd(differences, axis=-1, ddof=1)
    return mean, deviation / np.sqrt(np.maximum(n_known, 1))


class _KnownValues(RegressorMixin, BaseEstimator):
    """A model whose predictions are known, for scorers to ask; X are places of them."""

    values: NDArray[np.float64]

    def predict(self, X: NDArray[np.intp]) -> NDArray[np.float64]:
        return self.values[X]


class _KnownProbabilities(ClassifierMixin, BaseEstimator):
    """The same of a classifier."""

    values: NDArray[np.float64]

    def __init__(self, classes: NDArray[Any]):
        self.classes = classes
        self.classes_ = classes

    def predict_proba(self, X: NDArray[np.intp]) -> NDArray[np.float64]:
        return self.values[X]

    def predict(self, X: NDArray[np.intp]) -> NDArray[Any]:
        return self.classes_[self.values[X].argmax(axis=1)]


def _fit_and_predict(
    estimator: Any,
    X: Any,
    y: Any,
    arguments: dict[str, Any],
    X_test: Any,
    classes: NDArray[Any] | None,
) -> tuple[NDArray[np.float64], float, list[Any]]:
    """The predictions of a fold's test rows, the fit's seconds, and empty columns."""
    start = time.perf_counter()
    with no_value_noted() as empty:
        # A fold has fewer eras than there are, and its model is not the user's.
        warnings.filterwarnings("ignore", message="eras holds the single era")
        warnings.filterwarnings("ignore", message="Trees end early|.*has little say")
        model = clone(estimator).fit(X, y, **arguments)
    seconds = time.perf_counter() - start
    if classes is None:
        return model.predict(X_test), seconds, empty
    # A fold may lack a class. Boosters of one class have a second column, of 0.
    predicted = np.zeros((_num_samples(X_test), classes.size))
    known = np.searchsorted(classes, model.classes_)
    predicted[:, known] = model.predict_proba(X_test) if known.size > 1 else 1.0
    return predicted, seconds, empty


def text_of(params: Any) -> str:
    """Parameters in a line: those of the plain model are none."""
    if isinstance(params, list):
        return "average of " + ", ".join(f"({text_of(one)})" for one in params)
    return ", ".join(f"{k}={v!r}" for k, v in params.items()) or "the plain model"


__all__ = ["Candidates", "check_order", "era_folds", "mean_and_error", "text_of"]
