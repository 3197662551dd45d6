"""Make members of CatBoost and LightGBM, with the categories and weights of the fit."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import check_is_fitted, validate_data

from .._optional import import_optional
from .._tables.columns import (
    Column,
    as_frame,
    places_in,
    read_columns,
    rows_as_in_fit,
    sorted_categories,
)
from .._typing import ColumnChoice, Table

PEERS = ("catboost", "lightgbm")
# Constraints of trees by columns, by our names.
_LIMITS = ("monotonic_cst", "interaction_cst", "feature_penalty")
# Names of the number of trees; LightGBM's default is under the last one.
_ALIASES = (
    "iterations", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees",
    "num_round", "num_rounds", "nrounds", "num_boost_round", "max_iter", "n_estimators",
)  # fmt: skip
# Their number of trees, of which the best number is chosen, and their parameters:
# CatBoost finds its learning rate by the numbers of rows and trees.
_TREES = {"catboost": 1_000, "lightgbm": 500}
_PARAMETERS: dict[str, dict[str, Any]] = {
    "catboost": {"verbose": False, "allow_writing_files": False},
    "lightgbm": {"learning_rate": 0.05, "verbosity": -1},
}
# Their names of losses that are not their defaults.
_LOSSES = {
    "catboost": {"absolute_error": "MAE", "poisson": "Poisson", "quantile": "Quantile"},
    "lightgbm": {
        "absolute_error": "l1", "poisson": "poisson", "gamma": "gamma",
        "quantile": "quantile",
    },
}  # fmt: skip


@dataclass(eq=False, repr=False)
class Peer(BaseEstimator):
    """A booster of CatBoost or LightGBM that reads columns as this package's boosters
    do. All trees are fitted, since their number may set the learning rate; only the
    first `max_iter` trees predict.
    """

    early_stopping = False

    model: BaseEstimator
    max_iter: int
    categorical_features: ColumnChoice = "from_dtype"

    def fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        X = as_frame(X)
        validate_data(self, X, skip_check_array=True)
        columns = read_columns(X, categorical_features=self.categorical_features)
        self.is_categorical_ = np.array([x.is_categorical for x in columns])
        self.categories_ = [
            [None, *sorted_categories(x.values)] for x in columns if x.is_categorical
        ]
        model, threads = clone(self.model), _openmp_effective_n_threads()
        name = "thread_count" if self._is_catboost else "n_jobs"
        if model.get_params().get(name) is None:
            model.set_params(**{name: threads})
        categories = np.flatnonzero(self.is_categorical_).tolist()
        name = "cat_features" if self._is_catboost else "categorical_feature"
        known = {name: categories} if categories else {}
        self.model_ = model.fit(
            self._table(columns), y, sample_weight=sample_weight, **known
        )
        self.n_trees_ = (
            self.model_.tree_count_
            if self._is_catboost
            else self.model_.booster_.current_iteration()
        )
        if is_classifier(self.model):
            self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Table) -> NDArray[Any]:
        """Return predicted numbers, or predicted classes."""
        if is_classifier(self.model):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return self.predict_after("predict", X, [self.max_iter])[0]

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Return the probabilities of classes."""
        return self.predict_after("predict_proba", X, [self.max_iter])[0]

    def predict_after(
        self, method: str, X: Table, numbers: list[int]
    ) -> list[NDArray[Any]]:
        """Return a list of predictions by `method`, one for each number of trees."""
        check_is_fitted(self)
        known = [x[1:] for x in self.categories_]
        table = self._table(rows_as_in_fit(self, X, known))
        name = "ntree_end" if self._is_catboost else "num_iteration"
        predict = getattr(self.model_, method)
        numbers = [min(n, self.n_trees_) for n in numbers]  # it may have stopped early
        return [np.asarray(predict(table, **{name: n})) for n in numbers]

    def _table(self, columns: list[Column]) -> Any:
        """Return the columns as one table for the package. A category becomes its place
        among the categories of the fit: 0 if missing, the highest number if new.
        """
        known, made = iter(self.categories_), []
        for column in columns:
            values = column.values
            if column.is_categorical:
                values = places_in(next(known), values)
            made.append(values)
        if not self._is_catboost:
            return np.column_stack(made)
        pandas = import_optional("pandas", extra="catboost")
        return pandas.DataFrame(dict(enumerate(made)))

    @property
    def _is_catboost(self) -> bool:
        return package_of(self.model) == "catboost"

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.model)


def package_of(model: BaseEstimator) -> str:
    """Return the name of the package that defines a model's class."""
    return type(model).__module__.partition(".")[0]


def limits_of(plain: BaseEstimator) -> list[str]:
    """Return the names of a model's parameters that constrain trees by columns."""
    return [name for name in _LIMITS if getattr(plain, name) is not None]


def make_peer(name: str, plain: BaseEstimator, loss: str) -> Peer:
    """Return an unfitted `Peer` of the package `name`, for the plain model's task, loss
    and columns. Raise ValueError if the plain model has constraints on columns, or a
    loss that the package lacks.
    """
    package = import_optional(name, extra=name)
    of = "Classifier" if is_classifier(plain) else "Regressor"
    kind = getattr(package, ("CatBoost" if name == "catboost" else "LGBM") + of)
    if limits := limits_of(plain):
        raise ValueError(
            f"members has {name!r}, which does not keep to the plain model's "
            f"{limits[0]}: leave it out, or pass a model of yours by ('mine', model)."
        )
    seed: Any = 0 if plain.random_state is None else plain.random_state
    if not isinstance(seed, Integral):
        seed = check_random_state(seed).randint(2**31 - 1)
    parameters = {"n_estimators": _TREES[name], "random_state": int(seed)}
    if loss != ("log_loss" if is_classifier(plain) else "squared_error"):
        parameters |= _loss_of(name, plain, loss)
    return as_peer(kind(**parameters, **_PARAMETERS[name]), plain)


def as_peer(model: BaseEstimator, plain: BaseEstimator) -> Peer:
    """Return another package's booster as an unfitted `Peer`. Its categorical columns
    are named by the booster's parameters, or else by the plain model.
    """
    parameters, categories = model.get_params(), plain.categorical_features
    if parameters.get("cat_features") is not None:  # which cannot be cloned
        categories = parameters.pop("cat_features")
        model = type(model)(**parameters)
    given = [parameters[x] for x in _ALIASES if parameters.get(x) is not None]
    n_trees = given[0] if given else _TREES[package_of(model)]
    return Peer(model, n_trees, categories)


def _loss_of(name: str, plain: BaseEstimator, loss: str) -> dict[str, Any]:
    """Return the package's parameters for a loss that is not its default; raise
    ValueError if the package has no such loss.
    """
    if (own := _LOSSES[name].get(loss)) is None:
        raise ValueError(
            f"members has {name!r}, which has no loss like {loss!r} of the plain "
            "model; leave it out, or pass a model of yours by ('mine', model)."
        )
    if name == "catboost":
        share = f":alpha={plain.quantile}" if loss == "quantile" else ""
        return {"loss_function": own + share}
    return {"objective": own} | ({"alpha": plain.quantile} if own == "quantile" else {})
