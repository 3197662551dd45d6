"""Boosters that find out by themselves how to use eras."""

from typing import Any, ClassVar

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.utils._param_validation import HasMethods

from ..model_selection._search import EraSearchCV
from ._boosters.estimators import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

# Chosen on public data (docs/natural-eras.md): each is good somewhere, and they differ
# enough for their average to be better than each. The cheapest come first.
_CANDIDATES: list[dict[str, Any]] = [
    {"max_leaf_nodes": 4},
    {"max_leaf_nodes": 8},
    {"max_leaf_nodes": 15},
    {"leaf_shrinkage": "eras"},
    # What a shortcut that holds in most eras cannot deceive.
    {
        "split_criterion": "directional",
        "min_era_coverage": 1.0,
        "min_gain_share": 0.0,
        "max_leaf_nodes": 15,
    },
]
# Where eras follow each other, the level of the next one is that of the last few.
_OF_ORDERED_ERAS: list[dict[str, Any]] = [
    {"era_effects": "intercept"},
    {"era_effects": "intercept", "max_leaf_nodes": 15},
]

_SCORING_OF_LOSS = {
    "absolute_error": "neg_mean_absolute_error",
    "poisson": "neg_mean_poisson_deviance",
    "gamma": "neg_mean_gamma_deviance",
}

_DOC = """Boosted trees for {task} that choose how to use eras.

    A few ways of using eras are tried beside the plain gain, in cross-validation of
    whole eras: trees of 4, 8 and 15 leaves, ``leaf_shrinkage``,
    ``split_criterion="directional"`` with the papers' coverage and 15 leaves, and where
    eras are ordered ``era_effects``. The best two or three of them are fitted to all
    rows and averaged; or there is a single one, if it is better than averages by more
    than one standard error over eras; or the plain model, unless something is better
    than it by as much.
    It is :class:`~sklearn_era.model_selection.EraSearchCV`, with these candidates.

    With 3 folds it takes about as long as 22 fits of the plain model, and more where
    rows are few and eras many.

    Parameters
    ----------
    estimator : {kind}, default=None
        The plain model, whose parameters all candidates share but for what they try.
        None is ``{kind}(random_state=random_state)``.

    era_order : {{'auto', 'ordered', 'unordered'}}, default='auto'
        Whether eras follow each other, in the order of their labels: then models are
        tested on later eras, else on eras that are left out. 'auto' takes numbers and
        dates for ordered, in text too if it has one form ('0001', '2024-W07'), and
        refuses other text. Numbers that are mere names (hospitals, shops) need
        'unordered'.

    cv : int, default=3
        The number of folds, at least 2.

    scoring : str, callable or None, default=None
        A scorer of one era's rows; None is the negative {loss}.

    choose_by : {{'mean', 'worst'}}, default='mean'
        Whether to look for the best mean over eras or for the best worst era.

    n_averaged : int, default=3
        The most candidates to average, the best in their means; 1 for no average.

    time_budget : float or None, default=None
        Seconds after which no further candidate is begun in cross-validation.

    n_jobs : int or None, default=None
        Folds to fit in parallel.

    random_state : int, RandomState instance or None, default=None
        Of the plain model, where `estimator` is None.

    verbose : int, default=0
        1 prints a line for each candidate.

    Attributes
    ----------
    cv_results_, era_scores_, era_labels_, era_order_, best_index_, best_params_ :
        As :class:`~sklearn_era.model_selection.EraSearchCV` has them.

    estimators_ : list of {kind}
        The models whose predictions are averaged, fitted to all rows.
{classes}
    n_features_in_ : int
        Number of columns of X.

    See Also
    --------
    sklearn_era.model_selection.EraSearchCV : The same with candidates of one's own.
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


class _AutoEra(EraSearchCV):
    """The search with candidates of its own."""

    rule = "one_standard_error"
    _booster: ClassVar[type]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: constraint
        for name, constraint in EraSearchCV._parameter_constraints.items()
        if name not in ("param_grid", "rule")
    } | {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        era_order: str = "auto",
        cv: int = 3,
        scoring: Any = None,
        choose_by: str = "mean",
        n_averaged: int = 3,
        time_budget: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.era_order = era_order
        self.cv = cv
        self.scoring = scoring
        self.choose_by = choose_by
        self.n_averaged = n_averaged
        self.time_budget = time_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _plain_model(self) -> Any:
        if self.estimator is None:
            return self._booster(random_state=self.random_state)
        if not isinstance(self.estimator, self._booster):
            raise ValueError(
                f"estimator must be a {self._booster.__name__} of "
                f"sklearn_era.ensemble, or None; got {type(self.estimator).__name__}."
            )
        return self.estimator

    def _list_candidates(self) -> list[dict[str, Any]]:
        if self.era_order_ == "unordered":
            return _CANDIDATES
        if self._plain_model().early_stopping is False:
            return [*_CANDIDATES, *_OF_ORDERED_ERAS]
        # Were the last eras held out, the level carried on would be that before them.
        rows = {"validation_eras": None}
        return [*_CANDIDATES, *(one | rows for one in _OF_ORDERED_ERAS)]


class AutoEraRegressor(RegressorMixin, _AutoEra):
    __doc__ = _DOC.format(
        task="regression", suffix="Regressor", kind="HistGradientBoostingRegressor",
        loss="mean of its loss", classes="",
    )  # fmt: skip
    _booster = HistGradientBoostingRegressor

    def _scoring(self) -> Any:
        """That of the plain model's loss."""
        plain = self._plain_model()
        if self.scoring is None and plain.loss == "quantile":
            return make_scorer(
                mean_pinball_loss, greater_is_better=False, alpha=plain.quantile
            )
        return self.scoring or _SCORING_OF_LOSS.get(plain.loss)


class AutoEraClassifier(ClassifierMixin, _AutoEra):
    __doc__ = _DOC.format(
        task="classification", suffix="Classifier", loss="log loss",
        kind="HistGradientBoostingClassifier",
        classes="\n    classes_ : ndarray of shape (n_classes,)\n        The labels of "
        "classes.\n",
    )  # fmt: skip
    _booster = HistGradientBoostingClassifier


__all__ = ["AutoEraClassifier", "AutoEraRegressor"]
