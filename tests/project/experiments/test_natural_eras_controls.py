"""Controls of the benchmark: trees tuned by eras, and models of other packages."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_squared_error, roc_auc_score

from experiments import natural_eras
from experiments._natural_eras_controls import (
    AnchorBoosting,
    GPBoost,
    TunedByEras,
    WithCategories,
    losses,
)
from sklearn_era.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_era.model_selection import EraSearchCV

BOOSTERS = {
    "regression": HistGradientBoostingRegressor,
    "classification": HistGradientBoostingClassifier,
}


@pytest.fixture(scope="module")
def data():
    """Two numbers and a category of nine, in twelve eras that differ in their level."""
    rng = np.random.default_rng(0)
    eras = np.repeat(np.arange(12), 60)
    X = rng.normal(size=(720, 3))
    X[:, 2] = rng.integers(0, 9, 720)
    y = X[:, 0] + 2 * (X[:, 2] % 2) + rng.normal(size=12)[eras] + rng.normal(size=720)
    return X, y, eras


def target(task, y):
    return y if task == "regression" else (y > np.median(y)).astype(float)


def test_losses_are_those_of_scikit_learn(data):
    _, y, _ = data
    probability = 1 / (1 + np.exp(-y))
    classes = target("classification", y)
    measured = losses("classification", classes, probability).mean()
    np.testing.assert_allclose(measured, log_loss(classes, probability))
    measured = losses("regression", y, probability).mean()
    np.testing.assert_allclose(measured, mean_squared_error(y, probability))


@pytest.mark.parametrize("kind", ["time", "groups"])
@pytest.mark.parametrize("task", BOOSTERS)
def test_trees_tuned_by_eras_are_those_of_a_search_with_further_fits(data, task, kind):
    X, y, eras = data
    y, labels = target(task, y), eras if kind == "time" else eras.astype(str)
    booster = BOOSTERS[task](early_stopping=False, max_iter=75, random_state=0)
    grid = {"max_leaf_nodes": [3, 15], "learning_rate": [0.05, 0.3]}
    tuned = TunedByEras(task, booster, grid).fit(X, y, eras=labels)
    loss = "neg_mean_squared_error" if task == "regression" else "neg_log_loss"
    # The first is the plain model of the search, which does not decide here.
    order = "ordered" if kind == "time" else "unordered"
    search = EraSearchCV(
        booster,
        grid | {"max_iter": [25, 50, 75]},
        cv=3,
        scoring=loss,
        era_order=order,
    ).fit(X, y, eras=labels)
    means = search.cv_results_["mean_test_score"]
    assert tuned.best_params_ == search.cv_results_["params"][means.argmax()]
    np.testing.assert_allclose(tuned.best_loss_, -means.max())
    best = BOOSTERS[task](early_stopping=False, random_state=0, **tuned.best_params_)
    expected = best.fit(X, y)
    if task == "regression":
        np.testing.assert_allclose(tuned.predict(X), expected.predict(X))
    else:
        probabilities = expected.predict_proba(X)
        np.testing.assert_allclose(tuned.predict_proba(X), probabilities)


@pytest.mark.parametrize("package", ["lightgbm", "catboost"])
@pytest.mark.parametrize("task", BOOSTERS)
def test_categories_reach_the_model_as_such(data, task, package):
    pytest.importorskip(package)
    X, y, _ = data
    y = target(task, y)
    of_package = {"lightgbm": ("_lightgbm", "categorical_feature"),
                  "catboost": ("_catboost", "cat_features")}  # fmt: skip
    name, keyword = of_package[package]
    model = getattr(natural_eras, name)(task, 0)
    seen = {}
    for categories in ((), (2,)):
        wrapped = WithCategories(task, model, keyword, categories).fit(X, y)
        seen[categories] = wrapped.predict(X)
        if task == "classification":
            assert roc_auc_score(y, wrapped.predict_proba(X)[:, 1]) > 0.8
    assert not np.allclose(seen[()], seen[(2,)])
    plain = model.fit(X, y)
    without = plain.predict(X) if task == "regression" else plain.predict_proba(X)[:, 1]
    np.testing.assert_allclose(seen[()], without)


@pytest.mark.parametrize("task", BOOSTERS)
@pytest.mark.parametrize("name", ["gpboost", "anchorboosting"])
def test_models_with_eras_predict_eras_that_they_do_not_know(data, task, name):
    pytest.importorskip(name)
    X, y, eras = data
    y, seen, new = target(task, y), eras < 9, eras >= 9
    kind = GPBoost if name == "gpboost" else AnchorBoosting
    predicted = []
    for labels in (eras, eras.astype(str), eras % 2):
        model = kind(task).fit(X[seen], y[seen], eras=labels[seen])
        predicted.append(model.predict(X[new]))
    of_numbers, of_texts, of_others = predicted
    np.testing.assert_allclose(of_numbers, of_texts, rtol=1e-6)
    assert not np.allclose(of_numbers, of_others)
    assert np.corrcoef(X[new, 0] + 2 * (X[new, 2] % 2), of_numbers)[0, 1] > 0.7
    if task == "regression":
        scaled = kind(task).fit(X[seen], 100 * y[seen], eras=labels[seen])
        assert np.corrcoef(scaled.predict(X[new]), of_others)[0, 1] > 0.99
    else:
        assert (np.abs(model.predict_proba(X).sum(axis=1) - 1) < 1e-12).all()
        assert ((of_numbers > 0) & (of_numbers < 1)).all()
