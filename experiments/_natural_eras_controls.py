"""Controls of the benchmark: other packages, and a search in folds of eras."""

from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GroupKFold, ParameterGrid
from sklearn.utils.validation import has_fit_parameter

from experiments._natural_eras_data import Task
from sklearn_era.model_selection import EraWalkForwardSplit

# The numbers of trees among which staged predictions choose are multiples of it.
TREES_OF_STAGE = 25
_LEAST_PROBABILITY = 1e-6


def losses(
    task: Task, y: NDArray[np.float64], predicted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Squared errors, or log losses of the probabilities of the second class."""
    if task == "regression":
        return (y - predicted) ** 2
    of_class = np.where(y == 1, predicted, 1 - predicted)
    return -np.log(np.clip(of_class, _LEAST_PROBABILITY, None))


def predict(task: Task, model: Any, X: ArrayLike) -> NDArray[np.float64]:
    """Numbers, or probabilities of the second class."""
    if task == "regression":
        return model.predict(X)
    return model.predict_proba(X)[:, 1]


class _ByClass(BaseEstimator):
    """Probabilities of both classes from `predict`, which gives those of the second."""

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        of_second = self.predict(X)
        return np.column_stack([1 - of_second, of_second])


class TunedByEras(_ByClass):
    """The best of a grid in folds of whole eras, whose mean losses weigh the same.

    The folds are those of `EraSearchCV`: eras that are numbers follow each other, and
    texts are groups. Of a booster with staged predictions, they choose `max_iter` too.
    """

    def __init__(
        self, task: Task, estimator: Any, grid: dict[str, list], n_folds: int = 3
    ) -> None:
        self.task = task
        self.estimator = estimator
        self.grid = grid
        self.n_folds = n_folds

    def fit(self, X: NDArray, y: NDArray, eras: NDArray) -> "TunedByEras":
        folds = list(self._folds(eras).split(X, groups=eras))
        results = []
        for parameters in ParameterGrid(self.grid):
            model = clone(self.estimator).set_params(**parameters)
            parts = [self._loss_by_era(model, X, y, eras, *fold) for fold in folds]
            of_stages = np.concatenate(parts, axis=1).mean(axis=1)
            results.append((of_stages.min(), int(of_stages.argmin()), parameters))
        self.best_loss_, stage, self.best_params_ = min(results, key=lambda x: x[0])
        if hasattr(self.estimator, "staged_predict"):
            self.best_params_["max_iter"] = TREES_OF_STAGE * (stage + 1)
        self.best_ = clone(self.estimator).set_params(**self.best_params_)
        self._fit(self.best_, X, y, eras)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        return predict(self.task, self.best_, X)

    def _folds(self, eras: NDArray) -> Any:
        n_eras = np.unique(eras).size
        if eras.dtype.kind == "U":
            return GroupKFold(min(self.n_folds, n_eras))
        n_folds = min(self.n_folds, n_eras - 1)
        n_tested = max(1, n_eras // (2 * n_folds))
        return EraWalkForwardSplit(n_folds, test_size=n_tested)

    def _fit(self, model: Any, X: NDArray, y: NDArray, eras: NDArray) -> None:
        model.fit(X, y, **({"eras": eras} if has_fit_parameter(model, "eras") else {}))

    def _loss_by_era(
        self, model: Any, X: NDArray, y: NDArray, eras: NDArray, train: NDArray,
        test: NDArray,
    ) -> NDArray[np.float64]:  # fmt: skip
        """Mean losses of a fold, of shape (stages, tested eras)."""
        self._fit(model, X[train], y[train], eras[train])
        stages = [predict(self.task, model, X[test])]
        if hasattr(model, "staged_predict"):
            is_number = self.task == "regression"
            name = "staged_predict" if is_number else "staged_predict_proba"
            staged = islice(
                getattr(model, name)(X[test]), TREES_OF_STAGE - 1, None, TREES_OF_STAGE
            )
            stages = [each if is_number else each[:, 1] for each in staged]
        tested, codes = np.unique(eras[test], return_inverse=True)
        sums = [np.bincount(codes, losses(self.task, y[test], each)) for each in stages]
        return np.array(sums) / np.bincount(codes, minlength=tested.size)


class WithCategories(_ByClass):
    """A search for a model of another package, which gets categories as such.

    `keyword` is the parameter of the model's `fit` that names their columns.
    """

    def __init__(
        self, task: Task, search: Any, keyword: str, categories: tuple[int, ...] = ()
    ) -> None:
        self.task = task
        self.search = search
        self.keyword = keyword
        self.categories = categories

    def fit(self, X: NDArray, y: NDArray) -> "WithCategories":
        columns = list(self.categories)
        self.search_ = clone(self.search)
        self.search_.fit(self._frame(X), y, **{self.keyword: columns})
        return self

    def predict(self, X: NDArray) -> NDArray[np.float64]:
        return predict(self.task, self.search_, self._frame(X))

    def _frame(self, X: NDArray) -> pd.DataFrame:
        return pd.DataFrame(X).astype(dict.fromkeys(self.categories, int))


class GPBoost(_ByClass):
    """GPBoost: boosted trees beside a random intercept of each era; 100 trees."""

    def __init__(
        self, task: Task, num_leaves: int = 31, learning_rate: float = 0.1
    ) -> None:
        self.task = task
        self.num_leaves = num_leaves
        self.learning_rate = learning_rate

    def fit(self, X: NDArray, y: NDArray, eras: NDArray) -> "GPBoost":
        gpboost = import_module("gpboost")
        likelihood = "gaussian" if self.task == "regression" else "bernoulli_logit"
        intercepts = gpboost.GPModel(
            group_data=eras.astype(str), likelihood=likelihood, num_parallel_threads=1
        )
        parameters = {
            "num_leaves": self.num_leaves,
            "learning_rate": self.learning_rate,
            # Else rates depend on the scale of the target.
            "leaves_newton_update": self.task == "regression",
            "num_threads": 1,
            "verbose": -1,
        }
        self.booster_ = gpboost.train(
            parameters, gpboost.Dataset(X, y), 100, gp_model=intercepts
        )
        return self

    def predict(self, X: NDArray) -> NDArray[np.float64]:
        # Of an era without an intercept yet.
        eras = np.full(len(X), "unknown")
        return self.booster_.predict(
            data=X, group_data_pred=eras, predict_var=False, pred_latent=False
        )["response_mean"]


class AnchorBoosting(_ByClass):
    """Anchor boosting, whose anchors are the eras; 100 trees."""

    def __init__(self, task: Task, num_leaves: int = 31, gamma: float = 2.0) -> None:
        self.task = task
        self.num_leaves = num_leaves
        self.gamma = gamma

    def fit(self, X: NDArray, y: NDArray, eras: NDArray) -> "AnchorBoosting":
        anchorboosting = import_module("anchorboosting")
        self.booster_ = anchorboosting.AnchorBooster(
            self.gamma,
            objective="regression" if self.task == "regression" else "binary",
            num_leaves=self.num_leaves,
            # As its documentation recommends.
            min_gain_to_split=0.1,
            num_threads=1,
            verbosity=-1,
        )
        codes = np.unique(eras, return_inverse=True)[1]
        self.booster_.fit(X, y, Z=codes)
        return self

    def predict(self, X: NDArray) -> NDArray[np.float64]:
        return self.booster_.predict(X)
