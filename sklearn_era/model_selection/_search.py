"""A search for parameters by scores in eras that the model has not seen."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags, indexable
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from sklearn_era._era_arguments import warn_of_row_order
from sklearn_era._eras import EncodedEras
from sklearn_era._fit_attributes import fits_or_fails
from sklearn_era._tables.no_value import no_value_noted, warn_of_no_value
from sklearn_era.model_selection._fit_arguments import check_target, fit_arguments
from sklearn_era.model_selection._search_candidates import (
    Candidates,
    check_order,
    era_folds,
    mean_and_error,
    text_of,
)


class EraSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Choose parameters by scores in eras that the model has not seen.

    The estimator as it is given is the *plain model*, and is left only for what is
    better beyond chance. Each candidate is fitted in cross-validation of whole eras, to
    the same folds. With ``s_cj`` the score of candidate c in test era j, and
    ``d_cj = s_cj - s_0j`` its difference to the plain model, a candidate qualifies
    where, over the M test eras,

        mean_j d_cj > std_j d_cj / sqrt(M),

    more than one standard error, as Breiman et al. (1984, section 3.4.3) do by folds.
    Of those that qualify the best mean score is chosen, or the best worst era; without
    any the plain model is. With `n_averaged`, the predictions of the best two, the best
    three and so on are averaged, as averages of models that were built differently are
    often better than each of them. They are candidates, too, and the best of those that
    qualify is left only for a single one that is better by more than a standard error.

    Parameters
    ----------
    estimator : object
        A regressor or classifier, with the parameters of the plain model.

    param_grid : dict or list of dict
        Parameters to try in place of the estimator's: of each dict all combinations of
        its lists, as in :class:`~sklearn.model_selection.GridSearchCV`.

    era_order : {'auto', 'ordered', 'unordered'}, default='auto'
        Whether eras follow each other, in the order of their labels. Models of ordered
        eras are tested on later eras, after :class:`EraWalkForwardSplit`; of others on
        groups of eras that are left out, by
        :class:`~sklearn.model_selection.GroupKFold`. 'auto' takes numbers and dates of
        any kind for ordered, and booleans for unordered. Text that is numbers or dates
        of one form, such as '0001' or '2024-W07', is ordered, with a warning; of other
        text, whether it has an order has to be passed.

    cv : int, default=3
        The number of folds, at least 2. Walking forward, their test blocks are the last
        half of the eras.

    scoring : str, callable or None, default=None
        A scorer, as `sklearn.metrics.check_scoring` takes it; greater is better. It
        sees the rows of one era at a time, as predictions that are known: a callable
        has to ask its estimator, and not to look into X. None is the negative squared
        error, and for classifiers the negative log loss, which eras of any size have.

    choose_by : {'mean', 'worst'}, default='mean'
        Whether the candidates that qualify are ranked by the mean over eras or by the
        worst era.

    rule : {'one_standard_error', 'best'}, default='one_standard_error'
        What qualifies: see above; with 'best' all candidates do.

    n_averaged : int, default=1
        The most candidates to average, the best in their means; 1 for no average.

    time_budget : float or None, default=None
        Seconds after which no further candidate is begun, in the order of
        `param_grid`; the plain model is always fitted. Those left out are warned of.
        The models that are fitted at last are not counted.

    n_jobs : int or None, default=None
        Fits to run in parallel, of the folds of a candidate; see
        :class:`~sklearn.model_selection.GridSearchCV`.

    verbose : int, default=0
        1 prints a line for each candidate.

    Attributes
    ----------
    cv_results_ : dict of str to ndarray of shape (n_candidates,)
        As :class:`~sklearn.model_selection.GridSearchCV` has it: ``params``,
        ``mean_test_score`` and ``std_test_score`` over eras, ``rank_test_score``,
        ``mean_fit_time`` in seconds; and ``worst_test_score``, ``mean_difference`` and
        ``se_difference`` to the plain model, and ``qualifies``. The plain model comes
        first; averages come last, and their ``params`` are lists.

    era_scores_ : ndarray of shape (n_candidates, n_test_eras)
        Scores by era, NaN where they are not defined.

    era_labels_ : ndarray of shape (n_test_eras,)
        Labels of the eras tested.

    era_order_ : {'ordered', 'unordered'}
        How eras were taken.

    best_index_ : int
        Which of the candidates was chosen; 0 is the plain model.

    best_params_ : dict, or list of dict for an average
        Its parameters.

    estimators_ : list of object
        The model, or those averaged, fitted to all rows.

    classes_ : ndarray of shape (n_classes,)
        Of a classifier, the labels of classes.

    n_features_in_ : int
        Number of columns of X.

    See Also
    --------
    sklearn_era.ensemble.AutoEraRegressor : The same, with candidates of its own.
    EraWalkForwardSplit : The folds of ordered eras.
    best_worst_era : A rule for scikit-learn's searches.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_era.ensemble import HistGradientBoostingRegressor
    >>> from sklearn_era.model_selection import EraSearchCV
    >>> rng = np.random.default_rng(0)
    >>> weeks = np.repeat(np.arange(12), 50)
    >>> X = rng.normal(size=(600, 2))
    >>> y = X[:, 0] + 0.5 * weeks + rng.normal(size=600)  # of a level that rises
    >>> search = EraSearchCV(
    ...     HistGradientBoostingRegressor(max_iter=20),
    ...     [{"max_leaf_nodes": [4]}, {"era_effects": ["intercept"]}],
    ... )
    >>> search.fit(X, y, eras=weeks).best_params_
    {'era_effects': 'intercept'}
    """

    # As that of the boosters.
    __metadata_request__fit: ClassVar = {"eras": True}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "param_grid": [dict, list],
        "era_order": [StrOptions({"auto", "ordered", "unordered"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "scoring": [str, callable, None],
        "choose_by": [StrOptions({"mean", "worst"})],
        "rule": [StrOptions({"one_standard_error", "best"})],
        "n_averaged": [Interval(Integral, 1, None, closed="left")],
        "time_budget": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence] | Sequence[Mapping[str, Sequence]],
        *,
        era_order: str = "auto",
        cv: int = 3,
        scoring: Any = None,
        choose_by: str = "mean",
        rule: str = "one_standard_error",
        n_averaged: int = 1,
        time_budget: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.era_order = era_order
        self.cv = cv
        self.scoring = scoring
        self.choose_by = choose_by
        self.rule = rule
        self.n_averaged = n_averaged
        self.time_budget = time_budget
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fits_or_fails
    def fit(
        self, X: Any, y: Any, *, eras: Any = None, sample_weight: Any = None
    ) -> "EraSearchCV":
        """Fit all candidates in cross-validation, and the chosen one to all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The input samples.

        y : array-like of shape (n_samples,)
            Target values.

        eras : array-like of shape (n_samples,)
            Era of each row. An estimator whose `fit` takes eras is handed those of its
            rows.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows, for `fit` and for a `scoring` that takes them, as the
            default does.

        Returns
        -------
        self : object
            The search, fitted.

        Raises
        ------
        ValueError
            If `eras` is missing, has the wrong length, a single era, or two ordered
            ones; if a candidate's parameter is unknown; if `fit` takes no weights and
            there are some; or if the plain model cannot be fitted or scored.
        TypeError
            If `X` is a `BinnedDataset`, which cannot be taken apart by rows.

        Warns
        -----
        UserWarning
            If a candidate cannot be fitted, or is left out for want of time; if the
            labels of ordered eras are numbered texts in another order than the
            numbers; if columns have no value in the training rows of a fold.
        """
        self._validate_params()
        (X,), (y,) = indexable(X), indexable(y)
        warn_of_row_order(eras, X)
        encoded, arguments = self._check_rows(X, y, eras, sample_weight)
        folds = era_folds(encoded, self.era_order_, self.cv)
        tested = np.concatenate([test for _, test in folds])
        plain = self._plain_model()
        search = Candidates(self, plain, X, y, arguments, folds, encoded.codes[tested])
        search.try_all([{}, *self._list_candidates()])
        if self.n_averaged > 1:
            search.add_averages(self.n_averaged)
        self.cv_results_ = search.results()
        self.era_scores_ = np.array(search.scores)
        self.era_labels_ = encoded.labels[search.era_codes]
        self.best_index_ = self._choose()
        self.best_params_ = search.params[self.best_index_]
        chosen = self.best_params_
        with no_value_noted() as empty:
            self.estimators_ = [
                clone(plain).set_params(**params).fit(X, y, **arguments)
                for params in (chosen if isinstance(chosen, list) else [chosen])
            ]
        warn_of_no_value(search.empty_columns + empty, "rows that some fold trains on")
        if self.verbose:
            print(f"chosen: {text_of(chosen)}")
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))
        return self

    def _check_rows(
        self, X: Any, y: Any, eras: Any, sample_weight: Any
    ) -> tuple[EncodedEras, dict[str, Any]]:
        """The eras, and what `fit` gets beside X and y; sets `era_order_`."""
        name = type(self).__name__
        if eras is None:
            raise ValueError(
                f"{name} needs eras: pass fit(X, y, eras=...) with one label a row."
            )
        encoded, self.era_order_ = check_order(eras, X, self.era_order, name)
        check_target(y, X)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
        plain = self._plain_model()
        return encoded, fit_arguments(plain, encoded.decode(), sample_weight)

    def _plain_model(self) -> Any:
        """The estimator with which candidates are compared."""
        return self.estimator

    def _list_candidates(self) -> list[dict[str, Any]]:
        """The parameters to try in place of the plain model's."""
        return list(ParameterGrid(self.param_grid))

    def _scoring(self) -> Any:
        """The scoring; None for that of the task."""
        return self.scoring

    def _choose(self) -> int:
        """The candidate of `cv_results_` to take."""
        results = self.cv_results_
        name = "mean_test_score" if self.choose_by == "mean" else "worst_test_score"
        scores = np.where(results["qualifies"], results[name], -np.inf)
        # The plain model qualifies where nothing else does.
        best = int(np.argmax(scores)) if np.isfinite(scores).any() else 0
        averages = [isinstance(params, list) for params in results["params"]]
        of_averages = np.where(averages, scores, -np.inf)
        average = int(np.argmax(of_averages))
        if (
            self.rule == "best"
            or self.choose_by == "worst"
            or np.isinf(of_averages[average])
        ):
            return best
        mean, error = mean_and_error(self.era_scores_[best] - self.era_scores_[average])
        return best if mean > error else average

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict targets, or classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The input samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The (averaged) predictions, or the class of the largest probability.
        """
        check_is_fitted(self)
        if len(self.estimators_) == 1:
            return self.estimators_[0].predict(X)
        if is_classifier(self._plain_model()):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return np.mean([model.predict(X) for model in self.estimators_], axis=0)

    @available_if(lambda self: hasattr(self._plain_model(), "predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probabilities of classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The input samples.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            The (averaged) probabilities, in the order of `classes_`.
        """
        check_is_fitted(self)
        return np.mean([model.predict_proba(X) for model in self.estimators_], axis=0)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions, or of a classifier the share that is right.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The input samples.

        y : array-like of shape (n_samples,)
            Their targets.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows.

        Returns
        -------
        score : float
        """
        metric = accuracy_score if is_classifier(self._plain_model()) else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._plain_model())
        tags.estimator_type = inner.estimator_type
        tags.target_tags = inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.input_tags = inner.input_tags
        return tags


__all__ = ["EraSearchCV"]
