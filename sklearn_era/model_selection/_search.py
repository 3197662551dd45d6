"""Search for parameters by scores in eras that the model has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.model_selection._search import (
    BaseSearchCV,
    _check_refit,
    _search_estimator_has,
)
from sklearn.utils import get_tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from .._era_arguments import eras_by_name
from .._era_routing import (
    PredictsByEra,
    ask,
    requests_of,
    take_fitted_columns,
    takes_eras,
    with_eras,
)
from .._fit_attributes import restores_on_failure
from .._parameter_object import parameter, with_parameters
from .._scikit_learn import check_sample_weight
from .._typing import Duration, Eras, Folds, Scoring, Table
from .._warnings import refuses_moved
from ._out_of_era import check_divisible, check_target, folds_warned_once, take_rows
from ._search_scores import asks_for_eras, prediction
from ._search_steps import SearchByEra
from ._times_and_groups import OF_AXES
from ._walk_forward import COUNT_OR_ZERO

# Attributes that only a running fit has.
_OF_FIT = (
    "_eras", "_test_codes", "_targets", "_folds", "_checked_cv_orig", "_arguments",
    "_so_far", "_is_last",
)  # fmt: skip


def _of_best(method: str, returned: str) -> Any:
    return available_if(_search_estimator_has(method))(prediction(method, returned))


@refuses_moved(
    n_averaged="AutoEraRegressor or AutoEraClassifier, which average models",
    time_budget="a smaller param_grid",
)
@with_parameters
class EraSearchCV(PredictsByEra, SearchByEra):
    """Choose parameters by scores in eras that the model has not seen.

    A :class:`~sklearn.model_selection.GridSearchCV` over folds of whole eras, with a
    rule of its own: the estimator as given is the *plain model*, the first candidate,
    and another candidate is chosen only if it is better beyond chance. Let ``s_cj``
    be the score of candidate c in test era j, and ``d_cj = s_cj - s_0j`` its difference
    to the plain model's score. A candidate qualifies if

        mean_j d_cj > standard error of the mean,

    the rule of Breiman et al. (1984, section 3.4.3). Among candidates that qualify, the
    best mean over eras, or the best worst era, is chosen; if none qualifies, the plain
    model is. As eras are not independent draws, the standard error is the larger of
    two errors of the mean:

    - for ordered eras, the error if ``d_cj`` is an AR(1) process with the correlation
      of neighbouring eras; for unordered eras, the error if eras are independent;
    - the error if only folds are independent, as eras of a fold share a model: it is
      ``std_k dbar_ck / sqrt(K)`` if folds have equally many eras, where ``dbar_ck`` is
      the mean of fold k.

    Parameters
    ----------
    estimator : object
        Any estimator, with the parameters of the plain model.
    param_grid : dict or list of dict
        Parameters to try in place of the estimator's: for each dict, all combinations
        of the values in its lists.
    scoring : str, callable, list, tuple, dict or None, default=None
        As :class:`~sklearn.model_selection.GridSearchCV` takes it, for the rows of one
        era at a time. None means the negative squared error for regressors, the
        negative log loss for classifiers with ``predict_proba`` (both are defined in
        eras of any size), and ``score`` for all other estimators.
    n_jobs : int or None, default=None
        The number of fits to run in parallel, of all candidates and folds.
    refit : bool, str or callable, default=True
        Whether to fit the best model to all rows. With several metrics, the name of the
        metric to choose by. A function of `cv_results_` that returns the index of the
        best candidate replaces the rule.
    cv : int, splitter, iterable or None, default=3
        The number of folds of whole eras, 5 for None. If eras are ordered, folds test
        blocks of the last half of eras (:class:`EraWalkForwardSplit`); if not, each
        fold tests some of the eras (:class:`~sklearn.model_selection.GroupKFold`). A
        splitter gets the eras as `groups`, unless `groups` are passed to `fit`. The
        model is for the `horizon` and the `group` of an :class:`EraSplit`.
    verbose, pre_dispatch, error_score, return_train_score :
        As in :class:`~sklearn.model_selection.GridSearchCV`, but ``verbose=1`` prints
        lines and the time left (in a bar, with rich on a terminal). A candidate whose
        score is NaN in a fold does not qualify.
    gap : int, default=0
        Eras left out between training and test, if eras are ordered and `cv` is a
        number: h - 1 for targets that span h eras, as such targets overlap.
    era_order : {'auto', 'ordered', 'unordered'} or tuple of two, default='auto'
        Whether eras follow each other, in the order of their labels. With 'auto',
        numbers, dates and ordered categoricals do, and so does text of numbers or dates
        in one form, such as '0001' or '2024-W07'; other text raises an error. Groups
        with numbers for names need 'unordered'. For two columns, ``("ordered",
        "unordered")`` is times and groups, and scores are by time; 'auto' finds this
        out as :class:`EraSplit` does; 'ordered' or 'unordered' alone makes each pair of
        labels an era.
    choose_by : {'mean', 'worst'}, default='mean'
        Whether the candidates that qualify are ranked by the mean over eras or by the
        worst era.
    rule : {'one_standard_error', 'best'}, default='one_standard_error'
        The rule by which candidates qualify: see above. With 'best', all candidates of
        `param_grid` qualify, and the plain model is not a candidate, as in
        scikit-learn's searches.
    horizon : int or duration, default=1
        How far ahead the model is to predict, in eras or as a duration such as "28D"
        (see :class:`EraSplit`). In folds, training eras precede test eras by this much.
    group : {'new', 'known'}, default='new'
        With times and groups, whether the model is for groups that it has not seen, or
        for groups of training. With 'new', each of the `cv` folds leaves out some of
        the groups, and tests them in the last quarter of the times (in the last half,
        for conformal intervals).

    Attributes
    ----------
    cv_results_ : dict of str to array-like of shape (n_candidates,)
        As :class:`~sklearn.model_selection.GridSearchCV` has it, the plain model first.
        The score of a fold is the mean over its eras. For the metric to choose by,
        there are also ``mean_era_score`` and ``worst_era_score`` over all test eras,
        ``qualifies``, and ``mean_difference`` and ``se_difference`` to the plain model.
    era_scores_ : ndarray of shape (n_candidates, n_test_eras)
        Scores by era (means over folds, if several test the era), NaN where undefined.
        With several metrics, a dict of such arrays.
    era_labels_ : ndarray of shape (n_test_eras,)
        Labels of the test eras.
    era_order_ : {'ordered', 'unordered'}
        Whether eras were taken in the order of their labels.
    best_params_ : dict
        Parameters of the best candidate, which may be the plain model.
    best_estimator_, best_index_, best_score_, scorer_, n_splits_, refit_time_, \
multimetric_, classes_, n_features_in_, feature_names_in_ :
        As in :class:`~sklearn.model_selection.GridSearchCV`. `scorer_` scores rows of
        all eras at once.

    See Also
    --------
    sklearn_era.auto.AutoEraRegressor : An average, weighted by losses in eras left out.
    EraWalkForwardSplit : The folds of ordered eras.

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

    __metadata_request__predict_log_proba: ClassVar = {"eras": True}
    __metadata_request__decision_function: ClassVar = {"eras": True}

    estimator: Any = field(kw_only=False)
    param_grid: Any = field(kw_only=False)  # a mapping or a sequence of mappings
    scoring: Scoring = None
    n_jobs: int | None = None
    refit: bool | str | Callable[..., Any] = True
    cv: Folds = 3
    verbose: int = 0
    pre_dispatch: int | str = "2*n_jobs"
    error_score: str | float = np.nan
    return_train_score: bool = False
    gap: int = parameter([COUNT_OR_ZERO], default=0)
    era_order: Any = parameter(OF_AXES["era_order"], default="auto")
    choose_by: str = parameter([StrOptions({"mean", "worst"})], default="mean")
    rule: str = parameter(
        [StrOptions({"one_standard_error", "best"})], default="one_standard_error"
    )
    horizon: Duration = parameter(OF_AXES["horizon"], default=1)
    group: str = parameter(OF_AXES["group"], default="new")

    @eras_by_name
    @restores_on_failure
    def fit(
        self, X: Any, y: Any = None, *, eras: Eras | None = None, **params: Any
    ) -> Self:
        """Fit all candidates in cross-validation, and the best one to all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The input samples.
        y : array-like of shape (n_samples,), default=None
            Target values.
        eras : array-like of shape (n_samples,) or str
            Era of each row, or the name of a column of X, which is then no feature. The
            search uses eras, and passes them to candidates whose `fit` takes eras.
        **params : dict of str to object
            Metadata for `fit`, scorers and splitter, by scikit-learn's routing. Without
            routing, `groups` goes to the splitter, all other metadata to `fit`, and
            `sample_weight` also to scorers; eras without weight are not tested. In a
            pipeline, the last step gets eras and weights.

        Returns
        -------
        self : object
            The search, fitted.

        Raises
        ------
        ValueError
            If `eras` is missing, has the wrong length, has no known order, or has too
            few labels for `cv` folds; if weights are passed to an estimator whose `fit`
            takes none; if all fits fail; or if a fit of the plain model fails, unless
            ``rule="best"``.
        TypeError
            If `X` is a `BinnedDataset`, which cannot be split by rows.

        Warns
        -----
        UserWarning
            If a candidate cannot be fitted; if eras are text that is taken for numbers
            or dates, to find an order; or if a column has no value in the training rows
            of a fold. If other processes fit the folds (see `n_jobs`), the last warning
            comes only for columns that have no value in any row.
        """
        self._validate_params()
        check_divisible(X, "EraSearchCV")
        if y is not None or get_tags(self.estimator).target_tags.required:
            check_target(y, X, self.estimator)
        X, y, eras = take_rows(X, y, eras, "EraSearchCV")
        if y is not None and is_classifier(self.estimator):
            with np.errstate(invalid="ignore"):
                type_of_target(y, input_name="y")  # it refuses missing classes
        self._targets = y
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # of another fit
        eras = self._check_eras(eras, X)
        if params.get("groups") is not None and self._splits_eras():
            raise ValueError(
                f"groups is for the splitter that is passed as cv, and cv={self.cv!r} "
                "makes folds of eras: leave groups out, or pass a splitter."
            )
        if params.get("sample_weight") is not None:
            params["sample_weight"] = check_sample_weight(params["sample_weight"], X)
        with folds_warned_once(self.n_jobs):
            given: Any = self.estimator, self.cv, self.param_grid
            if self.rule != "best":
                self.param_grid = self._with_plain()
            try:
                super().fit(X, y, eras=eras, **params)
            except ValueError as error:
                if "fits failed" in str(error):  # scikit-learn names no fold
                    self._explain_failure(X, y)
                raise
            finally:
                self.estimator, self.cv, self.param_grid = given
        self.era_labels_ = self._eras.labels[self._test_codes]
        self.scorer_ = self._get_scorers(by_era=False)[0]
        for name in _OF_FIT:
            self.__dict__.pop(name, None)
        return self

    predict = _of_best("predict", "targets or classes")
    predict_proba = _of_best("predict_proba", "the probabilities of classes")
    predict_log_proba = _of_best(
        "predict_log_proba", "logarithms of the probabilities of classes"
    )
    decision_function = _of_best(
        "decision_function", "scores whose sign or largest one gives the class"
    )

    def _ask(self, method: str, X: Table, eras: Eras | None) -> Any:
        return ask(self.best_estimator_, method, X, eras)

    def score(
        self, X: Table, y: ArrayLike | None = None, *, eras: Eras | None = None,
        **params: Any,
    ) -> float:  # fmt: skip
        """Score the best model by the search's scorer, on all rows at once.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The input samples.
        y, eras : array-like of shape (n_samples,), default=None
            Targets and eras of the rows; eras are used by a model with intercepts of
            eras, or a scorer that asks for eras.
        **params : dict of str to object
            Other arguments of the scorer, with metadata routing.

        Returns
        -------
        score : float
            Greater is better.
        """
        X, eras = take_fitted_columns(self, X, eras)
        if eras is None:
            return super().score(X, y, **params)
        _check_refit(self, "score")
        check_is_fitted(self)
        known: Any = object.__new__(type(self))
        vars(known).update(vars(self))
        if takes_eras(self.best_estimator_, "predict"):
            known.best_estimator_ = with_eras(self.best_estimator_, eras)
        if isinstance(self.scorer_, dict):
            known.scorer_, known.multimetric_ = self.scorer_[self.refit], False
        if asks_for_eras(known.scorer_):
            known.scorer_ = partial(known.scorer_, eras=eras)
        return BaseSearchCV.score(known, X, y, **params)

    def get_metadata_routing(self) -> Any:
        routing = SearchByEra.get_metadata_routing(self)
        return routing.add_self_request(requests_of(self))
