"""Boosters that find out by themselves how to use eras."""

import re
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    clone,
    is_regressor,
)
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import _check_method_params, check_is_fitted

from .._era_arguments import eras_by_name, take_era_column
from .._fit_attributes import fits_or_fails
from .._renamed import refuses_moved
from .._tables.no_value import no_value_noted
from ..model_selection._fit_arguments import with_order
from ..model_selection._search import EraSearchCV
from ..model_selection._search_errors import mean_and_error, mean_over_folds
from ..model_selection._search_scores import (
    ScorerByEra,
    ask,
    prediction,
    tabulate,
    with_eras,
)
from ._boosters.estimators import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

# Chosen on public data (docs/natural-eras.md): each is good somewhere, and they differ
# enough for their average to be better than each. The cheapest come first.
_CANDIDATES: list[dict[str, list[Any]]] = [
    {"max_leaf_nodes": [4, 8, 15]},
    {"leaf_shrinkage": ["eras"]},
    # What a shortcut that holds in most eras cannot deceive.
    {
        "split_criterion": ["directional"],
        "min_era_coverage": [1.0],
        "min_gain_share": [0.0],
        "max_leaf_nodes": [15],
    },
]
# Where eras follow each other, the level of the next one is that of the last few.
_OF_ORDERED_ERAS: list[dict[str, list[Any]]] = [
    {"era_effects": ["intercept"]},
    {"era_effects": ["intercept"], "max_leaf_nodes": [15]},
]

_SCORING_OF_LOSS = {
    "absolute_error": "neg_mean_absolute_error",
    "poisson": "neg_mean_poisson_deviance",
    "gamma": "neg_mean_gamma_deviance",
}

_DOC = """Boosted trees for {task} that choose how to use eras.

    Beside the plain gain, trees of 4, 8 and 15 leaves, ``leaf_shrinkage``,
    ``split_criterion="directional"`` with the papers' coverage and 15 leaves, and where
    eras are ordered ``era_effects`` are tried in cross-validation of whole eras. The
    best two or three are averaged; or there is a single one, if it is better than
    averages by more than one standard error over eras, which count as independent; or
    the plain model, unless something is better than it by as much. With 3 folds it
    takes as long as some 22 fits of the plain model.

    Parameters
    ----------
    estimator : {kind}, default=None
        The plain model, whose parameters all candidates share but for what they try.
        None is ``{kind}(random_state=random_state)``.

    n_averaged : int, default=3
        The most candidates to average, the best in their means; 1 for no average.

    scoring : str, callable or None, default=None
        A scorer of one era's rows; None is the negative {loss}.

    random_state : int, RandomState instance or None, default=None
        Of the plain model, where `estimator` is None.

    cv, n_jobs, verbose, era_order, choose_by :
        As in :class:`~sklearn_era.model_selection.EraSearchCV`. Eras whose numbers are
        mere names (hospitals, shops) need ``era_order="unordered"``.

    Attributes
    ----------
    cv_results_, era_scores_, era_labels_, era_order_, best_index_, best_params_ :
        As :class:`~sklearn_era.model_selection.EraSearchCV` has them, of single
        candidates.

    averaged_params_ : list of dict
        Parameters of the models that are averaged, the best first; of a single model
        `best_params_`.

    estimators_ : list of {kind}
        These models, fitted to all rows.
{classes}
    n_features_in_ : int
        Number of columns of X.

    See Also
    --------
    sklearn_era.model_selection.EraSearchCV : A search with candidates of one's own.
    {kind} : The model.

    Examples
    --------
    >>> from sklearn_era.datasets import make_synthetic_memorization
    >>> from sklearn_era.ensemble import AutoEra{suffix}
    >>> data = make_synthetic_memorization(random_state=0)
    >>> est = AutoEra{suffix}(era_order="unordered", cv=2)
    >>> est = est.fit(data.X_train, data.y_train, eras=data.eras_train)
    >>> est.predict(data.X_test).shape
    (2000,)
    """
_RESULTS = (
    "cv_results_", "era_scores_", "era_labels_", "era_order_", "best_index_",
    "best_params_",
)  # fmt: skip
_OF_SEARCH = ("era_order", "cv", "choose_by", "n_jobs", "verbose")


class _Search(EraSearchCV):
    """The search for one of the candidates, by the error of eras that are independent,
    with which they were chosen.
    """

    _name = "AutoEra"
    _keeps_models = True

    def _list_candidates(self) -> list[dict[str, Any]]:
        self.param_grid = _CANDIDATES
        if self.era_order_ == "ordered":
            # Were the last eras held out, the level carried on would be that of before.
            rows = {"validation_eras": [None]} if self.estimator.early_stopping else {}
            self.param_grid = [*_CANDIDATES, *(one | rows for one in _OF_ORDERED_ERAS)]
        return super()._list_candidates()

    def _get_routed_params_for_fit(self, params: dict[str, Any]) -> Any:
        self._routed = super()._get_routed_params_for_fit(params)
        return self._routed

    def _mean_and_error(self, differences: Any) -> tuple[Any, Any]:
        return mean_and_error(mean_over_folds(differences))


class _AutoEra(BaseEstimator):
    """The average of models that an `EraSearchCV` with candidates of its own finds."""

    __metadata_request__fit: ClassVar = {"eras": True}
    __metadata_request__predict: ClassVar = {"eras": True}
    __metadata_request__predict_proba: ClassVar = {"eras": True}
    __metadata_request__score: ClassVar = {"eras": False}
    _booster: ClassVar[type]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: EraSearchCV._parameter_constraints[name] for name in _OF_SEARCH},
        "estimator": [HasMethods(["fit", "predict"]), None],
        "scoring": [str, callable, None],
        "n_averaged": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    @refuses_moved(time_budget="fewer folds by cv=2")
    def __init__(
        self,
        estimator: Any = None,
        *,
        n_averaged: int = 3,
        scoring: Any = None,
        random_state: Any = None,
        cv: Any = 3,
        n_jobs: int | None = None,
        verbose: int = 0,
        era_order: str = "auto",
        choose_by: str = "mean",
    ) -> None:
        self.estimator = estimator
        self.n_averaged = n_averaged
        self.scoring = scoring
        self.random_state = random_state
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.era_order = era_order
        self.choose_by = choose_by

    @eras_by_name
    @fits_or_fails
    def fit(
        self, X: Any, y: Any = None, *, eras: Any = None, sample_weight: Any = None
    ) -> "_AutoEra":
        """Fit all candidates in cross-validation, and the best ones to all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The input samples.

        y, eras : array-like of shape (n_samples,)
            Their targets and eras, or the name of the column of eras.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows, in fits and scores.

        Returns
        -------
        self : object
            The model, fitted.

        Raises
        ------
        ValueError
            As :meth:`~sklearn_era.model_selection.EraSearchCV.fit` does.
        """
        self._validate_params()
        X, eras = take_era_column(X, eras)
        plain = self._plain_model()
        params = {name: getattr(self, name) for name in _OF_SEARCH}
        search = _Search(plain, _CANDIDATES, scoring=self._scoring(plain), **params)
        with config_context(enable_metadata_routing=False):
            try:
                search.fit(X, y, eras=eras, sample_weight=sample_weight)
            except ValueError as error:
                if re.search("All the .* fits failed|^The plain model", str(error)):
                    # The error of a single fit is clearer.
                    clone(plain).fit(X, y, eras=eras, sample_weight=sample_weight)
                raise
        plain = with_order(plain, search.era_order_)
        X, y = indexable(X, y)
        chosen = self._choose(search, X, y)
        candidates = [search.cv_results_["params"][i] for i in chosen]
        models = {search.best_index_: search.best_estimator_}
        with no_value_noted():  # of which the search has warned
            for i, params in zip(chosen, candidates, strict=True):
                if i not in models:
                    models[i] = clone(plain).set_params(**params)
                    models[i].fit(X, y, **search._routed.estimator.fit)
        self.averaged_params_ = candidates
        for name in _RESULTS:
            setattr(self, name, getattr(search, name))
        return self._set_models([models[i] for i in chosen])

    def _choose(self, search: _Search, X: Any, y: Any) -> NDArray[np.intp]:
        """Return the candidates to average: the best two, three and so on, or one."""
        results, scores = search.cv_results_, search._fold_scores
        ranking = np.argsort(-results["mean_era_score"], kind="stable")
        ranking = ranking[np.isfinite(results["mean_test_score"][ranking])]
        found = []
        for n in range(2, min(self.n_averaged, ranking.size) + 1):
            for fold in scores[ranking[:n]].T:
                rows = fold[0].rows
                params = _check_method_params(X, search._routed.scorer.score, rows)
                average = clone(self)._set_models([score.model for score in fold])
                some = (_safe_indexing(values, rows) for values in (X, y))
                found.append(ScorerByEra(search.scorer_)(average, *some, **params))
        table, _ = tabulate([*scores.ravel(), *found], search.n_splits_)
        singles, averages = np.split(table, [len(scores)])
        best = search.best_index_
        ranks = search._rank(search._compare(averages, singles[0]))
        if not np.isfinite(ranks).any():
            return np.array([best])
        chosen = int(np.argmax(ranks))
        if self.choose_by == "worst":
            is_single = search._rank(results)[best] >= ranks[chosen]
        else:
            mean, error = search._mean_and_error(singles[best] - averages[chosen])
            is_single = mean > error
        return np.array([best]) if is_single else ranking[: chosen + 2]

    def _set_models(self, models: list[Any]) -> "_AutoEra":
        self.estimators_ = models
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(models[0], name):
                setattr(self, name, getattr(models[0], name))
        return self

    def _plain_model(self) -> Any:
        if self.estimator is None:
            return self._booster(random_state=self.random_state)
        if not isinstance(self.estimator, self._booster):
            raise ValueError(
                f"estimator must be a {self._booster.__name__} of "
                f"sklearn_era.ensemble, or None; got {type(self.estimator).__name__}."
            )
        return self.estimator

    def _scoring(self, plain: Any) -> Any:
        """The scoring, by default that of the plain model's loss."""
        if self.scoring is None and plain.loss == "quantile":
            return make_scorer(
                mean_pinball_loss, greater_is_better=False, alpha=plain.quantile
            )
        return self.scoring or _SCORING_OF_LOSS.get(plain.loss)

    predict = prediction("predict", "targets or classes, by averages")

    def _ask(self, method: str, X: Any, eras: Any) -> NDArray[Any]:
        check_is_fitted(self)
        models = self.estimators_
        if len(models) == 1:
            return ask(models[0], method, X, eras)
        if method == "predict" and hasattr(self, "classes_"):
            p = self._ask("predict_proba", X, eras)
            return self.classes_[p.argmax(axis=1)]
        return np.mean([ask(model, method, X, eras) for model in models], axis=0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._booster() if self.estimator is None else self.estimator)
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        return tags


def _score(
    self: Any, X: Any, y: Any, sample_weight: Any = None, *, eras: Any = None
) -> float:
    """Score predictions: by R^2 of a regressor, by accuracy of a classifier.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows to predict.

    y, sample_weight, eras : array-like of shape (n_samples,)
        Their targets and, both by default None, weights and eras.

    Returns
    -------
    score : float
        1 is the best.
    """
    kind: Any = RegressorMixin if is_regressor(self) else ClassifierMixin
    known = self if eras is None else with_eras(self, eras)
    return kind.score(known, X, y, sample_weight)


class AutoEraRegressor(RegressorMixin, _AutoEra):
    __doc__ = _DOC.format(
        task="regression", suffix="Regressor", kind="HistGradientBoostingRegressor",
        loss="mean of its loss", classes="",
    )  # fmt: skip
    _booster = HistGradientBoostingRegressor
    score = _score


class AutoEraClassifier(ClassifierMixin, _AutoEra):
    __doc__ = _DOC.format(
        task="classification", suffix="Classifier", loss="log loss",
        kind="HistGradientBoostingClassifier",
        classes="\n    classes_ : ndarray of shape (n_classes,)\n        The labels of "
        "classes.\n",
    )  # fmt: skip
    _booster = HistGradientBoostingClassifier
    score = _score

    predict_proba = prediction("predict_proba", "the probabilities of classes")


__all__ = ["AutoEraClassifier", "AutoEraRegressor"]
