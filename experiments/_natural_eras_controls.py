"""Controls of the benchmark: other packages, and a search in folds of eras."""

from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import ParameterGrid

from experiments._natural_eras_data import Task
from experiments.common import fit_by_eras, respond
from sklearn_era._eras import encode_eras
from sklearn_era.model_selection._out_of_era import folds_of_eras

# The numbers of trees among which staged predictions choose are multiples of it.
TREES_OF_STAGE = 25
_LEAST_PROBABILITY = 1e-6
_OWN_TREES = 1_000


def losses(
    task: Task, y: NDArray[np.float64], predicted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Squared errors, or log losses of the probabilities of the second class."""
    if task == "regression":
        return (y - predicted) ** 2
    of_class = np.where(y == 1, predicted, 1 - predicted)
    return -np.log(np.clip(of_class, _LEAST_PROBABILITY, None))


def staged(model: Any, X: ArrayLike, step: int) -> list[NDArray[np.float64]]:
    """What a booster responds by its first trees, so many more of them in each."""
    if isinstance(model, OtherBooster):
        counts = range(step, model.max_iter + 1, step)
        return [model.predict(X, n_trees) for n_trees in counts]
    is_class = is_classifier(model)
    stages = model.staged_predict_proba(X) if is_class else model.staged_predict(X)
    wanted = islice(stages, step - 1, None, step)
    return [each[:, 1] if is_class else each for each in wanted]


def folds_of(eras: NDArray, n_folds: int = 3) -> list[tuple[NDArray, NDArray]]:
    """Folds of whole eras as of `EraSearchCV`: numbers follow each other, texts not."""
    encoded = encode_eras(eras)
    are_ordered = eras.dtype.kind != "U"
    folds = folds_of_eras(n_folds, encoded, are_ordered, tests_half=True)
    return list(folds.split(encoded.codes, groups=encoded.codes))


@dataclass(eq=False, repr=False)
class TunedByEras(BaseEstimator):
    """The best of a grid in folds of whole eras, whose mean losses weigh the same.
    Predictions of stages choose the number of trees, `max_iter`. `predict` responds
    with numbers, or probabilities of the second class.
    """

    task: Task
    estimator: Any
    grid: dict[str, list]
    n_folds: int = 3

    def fit(self, X: NDArray, y: NDArray, eras: NDArray) -> "TunedByEras":
        folds = folds_of(eras, self.n_folds)
        results = []
        for parameters in ParameterGrid(self.grid):
            model = clone(self.estimator).set_params(**parameters)
            parts = [self._loss_by_era(model, X, y, eras, fold) for fold in folds]
            of_stages = np.concatenate(parts, axis=1).mean(axis=1)
            results.append((of_stages.min(), int(of_stages.argmin()), parameters))
        self.best_loss_, stage, self.best_params_ = min(results, key=lambda x: x[0])
        self.best_params_["max_iter"] = TREES_OF_STAGE * (stage + 1)
        self.best_ = clone(self.estimator).set_params(**self.best_params_)
        fit_by_eras(self.best_, X, y, eras)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        return respond(self.best_, X)

    def _loss_by_era(
        self, model: Any, X: NDArray, y: NDArray, eras: NDArray, fold: Any
    ) -> NDArray[np.float64]:
        """Mean losses of a fold, of shape (stages, tested eras)."""
        train, test = fold
        fit_by_eras(model, X[train], y[train], eras[train])
        stages = staged(model, X[test], TREES_OF_STAGE)
        tested, codes = np.unique(eras[test], return_inverse=True)
        sums = [np.bincount(codes, losses(self.task, y[test], each)) for each in stages]
        return np.array(sums) / np.bincount(codes, minlength=tested.size)


@dataclass(eq=False, repr=False)
class OtherBooster(BaseEstimator):
    """A booster of another package, whose `predict` can stop after some trees. It
    responds as `TunedByEras` does. `categories` are columns of codes, which are
    categories to the package.
    """

    task: Task
    max_leaf_nodes: int = 31
    learning_rate: float | None = 0.1
    max_iter: int = 200
    categories: tuple[int, ...] = ()

    def predict(self, X: Any, n_trees: int | None = None) -> NDArray[np.float64]:
        return self.booster_.predict(X, num_iteration=n_trees)

    def _of_task(self, of_regression: Any, of_classification: Any) -> Any:
        return of_regression if self.task == "regression" else of_classification

    def _parameters(self, **others: Any) -> dict[str, Any]:
        """Those of LightGBM, which the packages that are built on it share."""
        leaves, rate = self.max_leaf_nodes, self.learning_rate
        common = {"num_leaves": leaves, "learning_rate": rate, "num_threads": 1}
        return common | {"verbosity": -1} | others


class LightGBM(OtherBooster):
    """LightGBM with categories of its own."""

    def fit(self, X: NDArray, y: NDArray) -> "LightGBM":
        lightgbm = import_module("lightgbm")
        rows = lightgbm.Dataset(X, y, categorical_feature=list(self.categories))
        parameters = self._parameters(objective=self._of_task("regression", "binary"))
        self.booster_ = lightgbm.train(parameters, rows, self.max_iter)
        return self


class CatBoost(OtherBooster):
    """CatBoost with categories of its own; trees are symmetric, so leaves double.
    Without a learning rate it has its own, which depends on the number of trees: these
    are 1,000, of which the first `max_iter` predict.
    """

    def fit(self, X: NDArray, y: NDArray) -> "CatBoost":
        catboost = import_module("catboost")
        kind = self._of_task(catboost.CatBoostRegressor, catboost.CatBoostClassifier)
        self.model_ = kind(
            iterations=self.max_iter if self.learning_rate else _OWN_TREES,
            depth=self.max_leaf_nodes.bit_length() - 1,
            learning_rate=self.learning_rate,
            random_seed=0,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
        )
        self.model_.fit(self._frame(X), y, cat_features=list(self.categories))
        return self

    def predict(self, X: Any, n_trees: int | None = None) -> NDArray[np.float64]:
        rows, n_trees = self._frame(X), n_trees or self.max_iter
        if self.task == "regression":
            return self.model_.predict(rows, ntree_end=n_trees)
        return self.model_.predict_proba(rows, ntree_end=n_trees)[:, 1]

    def _frame(self, X: NDArray) -> pd.DataFrame:
        return pd.DataFrame(X).astype(dict.fromkeys(self.categories, int))


class GPBoost(OtherBooster):
    """GPBoost: boosted trees beside a random intercept of each era."""

    def fit(self, X: NDArray, y: NDArray, eras: NDArray) -> "GPBoost":
        gpboost = import_module("gpboost")
        likelihood = self._of_task("gaussian", "bernoulli_logit")
        intercepts = gpboost.GPModel(
            group_data=eras.astype(str), likelihood=likelihood, num_parallel_threads=1
        )
        # Else rates depend on the scale of the target.
        newton = self._of_task(True, False)
        parameters = self._parameters(leaves_newton_update=newton)
        # In both calls, or it warns.
        of_both = {"categorical_feature": list(self.categories)}
        rows = gpboost.Dataset(X, y, **of_both)
        self.booster_ = gpboost.train(
            parameters, rows, self.max_iter, gp_model=intercepts, **of_both
        )
        return self

    def predict(self, X: Any, n_trees: int | None = None) -> NDArray[np.float64]:
        # An era without an intercept yet.
        eras = np.full(len(X), "unknown")
        options = {"predict_var": False, "pred_latent": False}
        return self.booster_.predict(
            data=X, num_iteration=n_trees, group_data_pred=eras, **options
        )["response_mean"]


@dataclass(eq=False, repr=False)
class AnchorBoosting(OtherBooster):
    """Anchor boosting, whose anchors are the eras."""

    gamma: float = 2.0

    def fit(self, X: NDArray, y: NDArray, eras: NDArray) -> "AnchorBoosting":
        anchorboosting = import_module("anchorboosting")
        self.booster_ = anchorboosting.AnchorBooster(
            self.gamma,
            objective=self._of_task("regression", "binary"),
            num_boost_round=self.max_iter,
            # As its documentation recommends.
            **self._parameters(min_gain_to_split=0.1),
        )
        codes = np.unique(eras, return_inverse=True)[1]
        self.booster_.fit(X, y, Z=codes, categorical_feature=list(self.categories))
        return self
