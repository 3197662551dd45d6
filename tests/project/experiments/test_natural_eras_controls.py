"""Controls of the benchmark: trees tuned by eras, and models of other packages."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss, mean_squared_error, roc_auc_score

from experiments import _natural_eras_controls as controls
from experiments._natural_eras_controls import AnchorBoosting, CatBoost, GPBoost, losses
from experiments.common import fit_by_eras, respond
from helpers.grids import on_grid, slow
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_selection import EraSearchCV

BOOSTERS = {"regression": Regressor, "classification": Classifier}
OTHERS = [controls.LightGBM, CatBoost, GPBoost, AnchorBoosting]


@pytest.fixture(scope="module")
def data():
    """Two numbers and a category of nine, in twelve eras that differ in their level."""
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(12), 60)
    X = rng.normal(size=(720, 3))
    X[:, 2] = rng.integers(0, 9, 720)
    y = X[:, 0] + 2 * (X[:, 2] % 2) + rng.normal(size=12)[eras] + rng.normal(size=720)
    return X, y, eras


def target(task, y):
    return y if task == "regression" else (y > np.median(y)).astype(float)


def test_losses_are_those_of_scikit_learn(data):
    probability = 1 / (1 + np.exp(-data[1]))
    for task, loss in zip(BOOSTERS, (mean_squared_error, log_loss), strict=True):
        y = target(task, data[1])
        assert_allclose(losses(task, y, probability).mean(), loss(y, probability))


@pytest.mark.parametrize("kind", ["time", slow("groups")])
@pytest.mark.parametrize("task", BOOSTERS)
def test_trees_tuned_by_eras_are_those_of_a_search(data, task, kind, monkeypatch):
    """Which fits again for each number of trees."""
    monkeypatch.setattr(controls, "TREES_OF_STAGE", 5)
    X, y, eras = data
    y, labels = target(task, y), eras if kind == "time" else eras.astype(str)
    booster = BOOSTERS[task](early_stopping=False, max_iter=15, random_state=0)
    grid = {"max_leaf_nodes": [3, 15], "learning_rate": [0.05, 0.3]}
    tuned = controls.TunedByEras(task, booster, grid).fit(X, y, eras=labels)
    loss = "neg_mean_squared_error" if task == "regression" else "neg_log_loss"
    # The first is the plain model of the search, which does not decide here.
    order = "ordered" if kind == "time" else "unordered"
    search = EraSearchCV(
        booster, grid | {"max_iter": [5, 10, 15]}, cv=3, scoring=loss, era_order=order
    ).fit(X, y, eras=labels)
    means = search.cv_results_["mean_test_score"]
    assert tuned.best_params_ == search.cv_results_["params"][means.argmax()]
    assert_allclose(tuned.best_loss_, -means.max())
    best = BOOSTERS[task](early_stopping=False, random_state=0, **tuned.best_params_)
    assert_allclose(respond(tuned, X), respond(best.fit(X, y), X))


@on_grid("kind task", OTHERS, [*BOOSTERS])
def test_stages_have_fewer_trees_and_categories_no_order(data, task, kind):
    pytest.importorskip(kind.__name__.lower())
    X, y, eras = data
    y = target(task, y)
    # Codes in another order are the same categories, which numbers are not.
    others, by_columns = np.column_stack([X[:, :2], X[:, 2] * 4 % 9]), []
    for categories in ((), (2,)):
        make = partial(kind, task, max_leaf_nodes=8, categories=categories)
        model = fit_by_eras(make(max_iter=50), X, y, eras)
        fewer = fit_by_eras(make(max_iter=25), X, y, eras)
        stages = controls.staged(model, X, 25)
        assert_allclose(stages[1], respond(model, X), rtol=1e-6)
        if kind is not GPBoost:
            assert_allclose(stages[0], fewer.predict(X), rtol=1e-6)
        of_others = fit_by_eras(make(max_iter=50), others, y, eras).predict(others)
        by_columns.append(np.allclose(of_others, model.predict(X), rtol=1e-3))
        if task == "classification":
            assert roc_auc_score(y, stages[1]) > 0.8
    assert by_columns == [False, True]
