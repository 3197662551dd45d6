"""Forests against trees grown one by one, and leaves worked out by hand."""

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from helpers import forests
from helpers.criteria import BLEND, COVER_ALL, ERA_CRITERIA, NAMES
from helpers.forests import classifier, drawn_rows, make_classes, make_data, regressor
from helpers.grids import on_grid
from helpers.trees import assert_same_trees, trees_of
from sklearn_era.ensemble import HistGradientBoostingRegressor

BOOTSTRAPS = ["rows", "within_eras", "whole_eras", False]


def no_categories(X):
    """Arguments of a tree's prediction for the categories of X, and one thread."""
    return np.zeros((0, 8), np.uint32), np.zeros(X.shape[1], np.uint32), 1


def grow_alone(forest, X, y, eras, weights=None):
    """The tree that a booster grows on rows."""
    params = {"learning_rate": 1.0, "max_iter": 1, "early_stopping": False}
    booster = HistGradientBoostingRegressor(**params)
    shared = booster.get_params().keys() & forest.get_params(deep=False).keys()
    shared -= {"max_features", "random_state", "warm_start", "n_jobs"}
    booster.set_params(**{name: getattr(forest, name) for name in shared})
    return booster.fit(X, y, weights, eras=eras)


def assert_equals_trees_grown_alone(forest, X, y, eras, weights=None):
    n_splits = 0
    draws = drawn_rows(forest, X, eras), forests.drawn_columns(forest, X, eras)
    for tree, drawn, columns in zip(trees_of(forest), *draws, strict=True):
        rows = np.arange(y.size) if drawn.rows is None else drawn.rows
        codes = eras if drawn.rows is None else drawn.eras.codes
        X_drawn = X[rows][:, columns]  # splits that tie are by the first column
        of_rows = None if weights is None else weights[rows]
        booster = grow_alone(forest, X_drawn, y[rows], codes, of_rows)
        (alone,) = trees_of(booster)
        if forest.split_criterion == "gain" and np.isnan(X).any():
            # Missing values against the rest can be either side, with the same gain.
            values = tree.predict(X[rows], *no_categories(X)) * forest.n_iter_
            assert_allclose(values, booster.predict(X_drawn), rtol=1e-5)
            n_splits += (tree.nodes["is_leaf"] == 0).sum()
            continue
        ours, theirs = forests.from_the_root(tree), forests.from_the_root(alone)
        for name in ("is_leaf", "count", "depth"):
            assert_array_equal(ours[name], theirs[name], err_msg=name)
        splits = ours["is_leaf"] == 0
        features = columns[theirs["feature_idx"][splits]]
        assert_array_equal(ours["feature_idx"][splits], features)
        names = ["bin_threshold", "num_threshold"]
        if np.isnan(X).any():
            names.append("missing_go_to_left")
        for name in names:
            assert_array_equal(ours[name][splits], theirs[name][splits], err_msg=name)
        assert_allclose(ours["gain"], theirs["gain"], rtol=1e-4, atol=1e-5)
        values = theirs["value"][~splits] + booster._baseline_prediction[0, 0]
        assert_allclose(ours["value"][~splits] * forest.n_iter_, values, rtol=1e-5)
        n_splits += splits.sum()
    assert n_splits > 3 * forest.n_iter_


# A small leaf is cut alike by several features, which tie: to scikit-learn's splitter
# up to rounding, and so the gain is compared where leaves are large.
@on_grid("split_criterion bootstrap missing", NAMES, BOOTSTRAPS, [0.0, 0.1], every=4)
def test_a_tree_is_that_of_a_booster_on_its_rows(split_criterion, bootstrap, missing):
    X, y, eras = make_data(missing=missing)
    leaf = 10 if split_criterion == "gain" else 1
    forest = regressor(split_criterion=split_criterion, bootstrap=bootstrap,
                       n_estimators=1 if bootstrap is False else 4,
                       min_samples_leaf=leaf).fit(X, y, eras=eras)  # fmt: skip
    assert_equals_trees_grown_alone(forest, X, y, eras)


PARAMETERS = ERA_CRITERIA | {
    "depth": {"split_criterion": "era", "max_depth": 3},
    "coverage": {"split_criterion": "era", "min_samples_per_era": 4,
                 "min_era_coverage": 0.6, "min_gain_share": 0.0},
    "leaves": {"split_criterion": "era", "max_leaf_nodes": 9},
    "leaf": {"split_criterion": BLEND, "min_samples_leaf": 3},
    "gain, leaves": {"split_criterion": "gain", "max_leaf_nodes": 6},
    "gain, decrease": {"split_criterion": "gain", "min_impurity_decrease": 0.1,
                       "l2_regularization": 2.0},
    "l2": {"split_criterion": "directional", "l2_regularization": 2.0},
}  # fmt: skip


@on_grid("parameters weighted", PARAMETERS, [False, True], every=4)
def test_parameters_mean_what_they_mean_to_a_booster(parameters, weighted):
    X, y, eras = make_data(1)
    # Powers of two: their products are exact, and so sums are in any order.
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], y.size)
    weights = weights if weighted else None
    if weighted:
        parameters = {"max_depth": 3, "min_samples_leaf": 8} | parameters
    forest = regressor(bootstrap="within_eras", n_estimators=3, **parameters)
    forest.fit(X, y, weights, eras=eras)
    assert_equals_trees_grown_alone(forest, X, y, eras, weights)


@settings(max_examples=settings().max_examples // 3)
@given(
    seed=st.integers(0, 10_000), bootstrap=st.sampled_from(BOOTSTRAPS),
    l2=st.sampled_from([0.0, 3.0]), weighted=st.booleans(), missing=st.booleans(),
    criterion=st.sampled_from(["gain", "directional"]))  # fmt: skip
def test_leaves_are_means_of_rows(seed, bootstrap, l2, weighted, missing, criterion):
    X, y, eras = make_data(seed, missing=0.1 * missing, n_samples=120)
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 3, y.size) * 0.7 if weighted else None
    forest = regressor(n_estimators=2, bootstrap=bootstrap, l2_regularization=l2,
                       split_criterion=criterion,
                       random_state=seed).fit(X, y, weights, eras=eras)  # fmt: skip
    by_hand, unit = np.zeros(y.size), np.ones(y.size) if weights is None else weights
    for tree, drawn in zip(trees_of(forest), drawn_rows(forest, X, eras), strict=True):
        rows = np.arange(y.size) if drawn.rows is None else drawn.rows
        mean, values = np.average(y[rows], weights=unit[rows]), {}
        for leaf, members in forests.rows_of_leaves(tree, X[rows]):
            members = rows[members]
            total = unit[members].sum() + l2
            summed = unit[members] @ y[members] + l2 * mean
            values[leaf] = summed / total if total else mean
            node = tree.nodes[leaf]
            assert node["count"] == members.size
            assert_allclose(node["value"], values[leaf] / 2, rtol=1e-12)
        for leaf, members in forests.rows_of_leaves(tree, X):
            by_hand[members] += values[leaf] / 2
        assert_allclose(tree.nodes["value"][0], mean / 2)
    assert_allclose(forest.predict(X), by_hand, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_mean_proportions(n_classes):
    X, y, eras = make_data()
    y = make_classes(y, n_classes)
    forest = classifier(n_estimators=4, split_criterion="era", max_depth=3)
    forest.fit(X, y, eras=eras)
    assert_array_equal(forest.classes_, np.unique(y))
    n_outputs = 1 if n_classes == 2 else 3
    totals, draws = np.zeros((y.size, n_outputs)), drawn_rows(forest, X, eras)
    for trees, drawn in zip(forest._predictors, draws, strict=True):
        assert len(trees) == n_outputs
        for output, tree in enumerate(trees):
            label = forest.classes_[output if n_outputs == 3 else 1]
            for leaf, members in forests.rows_of_leaves(tree, X[drawn.rows]):
                share = np.mean(y[drawn.rows[members]] == label)
                assert_allclose(tree.nodes["value"][leaf], share / 4, atol=1e-15)
            for leaf, members in forests.rows_of_leaves(tree, X):
                totals[members, output] += tree.nodes["value"][leaf]
    if n_outputs == 1:
        expected = np.column_stack([1 - totals, totals])
    else:
        expected = totals / totals.sum(axis=1, keepdims=True)
    probabilities = forest.predict_proba(X)
    assert_allclose(probabilities, expected, atol=1e-12)
    assert probabilities.min() >= 0
    assert probabilities.max() <= 1
    assert_array_equal(forest.predict(X), forest.classes_[probabilities.argmax(axis=1)])


@pytest.mark.parametrize("labels", [["b", "a"], [7, -1], [4.0, 1.0], [True, False]])
def test_a_pure_leaf_is_certain_whatever_the_type_of_labels(labels):
    X, y, _ = make_data()
    y = np.array(labels)[(X[:, 0] > 2).astype(int)]
    forest = classifier(n_estimators=7, bootstrap=False).fit(X, y)
    assert forest.classes_.dtype == y.dtype
    assert forest.score(X, y) == 1
    assert set(np.unique(forest.predict_proba(X).round(15))) == {0.0, 1.0}
    assert forest.predict_proba(X).max() <= 1


def test_two_classes_have_the_trees_of_a_target_of_0_and_1():
    X, y, eras = make_data()
    y = make_classes(y, 2)
    parameters = {"split_criterion": "directional", "bootstrap": "whole_eras"}
    forest = classifier(**parameters).fit(X, y, eras=eras)
    other = regressor(**parameters).fit(X, y == "low", eras=eras)
    assert_same_trees(forest, other)
    assert_array_equal(forest.predict_proba(X)[:, 1], other.predict(X).clip(0, 1))
    assert not hasattr(forest, "decision_function")
    assert not hasattr(forest, "staged_decision_function")
    # A single class.
    forest = classifier(bootstrap="within_eras")
    forest.fit(X, np.full(forests.N_SAMPLES, "only"), eras=eras)
    assert set(forest.predict(X)) == {"only"}
    assert_array_equal(forest.predict_proba(X), np.ones((forests.N_SAMPLES, 1)))
    assert_array_equal(forest.feature_importances_, np.zeros(4))


def test_stages_are_forests_of_the_first_trees():
    X, y, eras = make_data()
    for forest, target, method in (
        (regressor(n_estimators=4), y, "predict"),
        (classifier(n_estimators=4), make_classes(y), "predict_proba"),
    ):
        forest.set_params(bootstrap="within_eras").fit(X, target, eras=eras)
        stages = list(getattr(forest, f"staged_{method}")(X))
        assert len(stages) == 4
        for n_trees, stage in enumerate(stages, start=1):
            forest.set_params(n_estimators=n_trees).fit(X, target, eras=eras)
            assert_allclose(stage, getattr(forest, method)(X), rtol=1e-12, atol=1e-15)


def test_rows_without_weight_change_nothing():
    X, y, eras = make_data()
    weights = (np.arange(y.size) % 3 > 0).astype(float)
    forest = regressor(split_criterion="era").fit(X, y, weights, eras=eras)
    other = clone(forest).fit(X, np.where(weights > 0, y, -1e6), weights, eras=eras)
    assert_array_equal(forest.predict(X), other.predict(X))


@pytest.mark.parametrize("split_criterion", [*NAMES, BLEND], ids=str)
def test_a_tree_that_draws_no_weight_predicts_the_mean_of_all(split_criterion):
    X, y, eras = make_data()
    weights = (eras == 2).astype(float)
    params = {"bootstrap": "whole_eras", "split_criterion": split_criterion}
    forest = regressor(max_samples=1, **params).fit(X, y, weights, eras=eras)
    grown = zip(trees_of(forest), drawn_rows(forest, X, eras), strict=True)
    empty = [tree for tree, drawn in grown if not weights[drawn.rows].any()]
    assert 0 < len(empty) < 6
    for tree in empty:
        assert_allclose(tree.nodes["value"] * 6, np.mean(y[eras == 2]))
        assert tree.nodes.size == 1


def test_the_least_decrease_is_a_share_of_the_weight_that_a_tree_draws():
    X, y, eras = make_data(1)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], y.size)
    forest = regressor(
        bootstrap="rows", max_samples=0.5, n_estimators=3, min_samples_leaf=8,
        min_impurity_decrease=0.1, split_criterion="gain",
    ).fit(X, y, weights, eras=eras)  # fmt: skip
    assert_equals_trees_grown_alone(forest, X, y, eras, weights)
    # Whatever its unit.
    other = clone(forest).fit(X, y, 2.0**-20 * weights, eras=eras)
    assert_array_equal(other.predict(X), forest.predict(X))


def test_a_feature_is_drawn_for_categories_of_enough_weight():
    """Half of the trees draw them first; they need the weight of ten mean rows each."""
    x = np.arange(300.0)
    params = {"max_features": 1, "max_leaf_nodes": 2, "bootstrap": False}
    for of_rare, of_rest, is_alone in ((4, 1, True), (1, 1, False), (4, 4, False)):
        weights = np.where(x < 8, of_rare, of_rest)  # eight rows of one category
        forest = regressor(categorical_features=[0], n_estimators=8, **params)
        forest.fit(np.column_stack([x < 8, x]), x + 99 * (x < 8), weights)
        roots = {int(tree.nodes["feature_idx"][0]) for tree in trees_of(forest)}
        assert roots == ({0, 1} if is_alone else {1})


def test_class_weights_are_row_weights():
    X, y, eras = make_data()
    y, by_class = make_classes(y), {"high": 1.0, "low": 4.0, "mid": 0.5}
    rows = np.array([by_class[label] for label in y])
    one = classifier(class_weight=by_class).fit(X, y, eras=eras)
    assert_same_trees(one, classifier().fit(X, y, rows, eras=eras))
    both = classifier(class_weight=by_class).fit(X, y, rows, eras=eras)
    assert_same_trees(both, classifier().fit(X, y, rows**2, eras=eras))
    skewed = np.where(y == "mid", "low", y)
    balanced = classifier(class_weight="balanced", max_depth=1).fit(X, skewed)
    share = np.mean(skewed == "low")
    weights = np.where(skewed == "low", 0.5 / share, 0.5 / (1 - share))
    assert_same_trees(balanced, classifier(max_depth=1).fit(X, skewed, weights))


@on_grid("bootstrap", BOOTSTRAPS, every=2)
def test_the_number_of_threads_does_not_matter(bootstrap):
    X, y, eras = make_data(missing=0.1, n_samples=400)
    fits = []
    with threadpool_limits(3, user_api="openmp"):
        for n_jobs in (1, 2, 3, None):
            forest = classifier(
                n_jobs=n_jobs, bootstrap=bootstrap, split_criterion="directional",
                max_features=0.5, oob_score=bootstrap is not False, n_estimators=20,
            )  # fmt: skip
            fits.append(forest.fit(X, make_classes(y), eras=eras))
    for other in fits[1:]:
        assert_same_trees(fits[0], other)
        if bootstrap is not False:
            oob = other.oob_decision_function_
            assert_array_equal(fits[0].oob_decision_function_, oob)


def test_backends_without_shared_memory_take_threads():
    X, y, eras = make_data()
    params = {"oob_score": True, "n_estimators": 30}
    expected = regressor(**params).fit(X, y, eras=eras)
    with joblib.parallel_config("multiprocessing"):
        forest = regressor(**params, n_jobs=2).fit(X, y, eras=eras)
    assert_same_trees(expected, forest)


def test_random_state():
    X, y, _ = make_data()
    seeded = (regressor(max_features=1, random_state=seed) for seed in (3, 3, 4))
    one, same, other = (forest.fit(X, y) for forest in seeded)
    assert_same_trees(one, same)
    assert not np.array_equal(one.predict(X), other.predict(X))
    forest = regressor(random_state=np.random.RandomState(0))
    first = forest.fit(X, y).predict(X)
    assert not np.array_equal(first, forest.fit(X, y).predict(X))
    # Trees differ from one another.
    for parameters in ({}, {"bootstrap": False, "max_features": 1}):
        forest = regressor(**parameters).fit(X[::2], y[::2])
        predictions = [t.predict(X, *no_categories(X)) for t in trees_of(forest)]
        assert np.unique(predictions, axis=0).shape[0] == 6


def test_a_split_that_loses_over_all_rows_has_no_importance():
    """Its gain is below 0; importances are shares of the others."""
    rng = np.random.default_rng(0)
    X, eras = rng.normal(size=(400, 4)), np.arange(400) % 2
    y = (2 * eras - 1) * np.sign(X[:, 0]) + 0.1 * X[:, 1] + 0.1 * rng.normal(size=400)
    params = {"split_criterion": "time_robust", "bootstrap": "within_eras"} | COVER_ALL
    forest = regressor(l2_regularization=100.0, max_depth=2, n_estimators=20, **params)
    forest.fit(X, y, eras=eras)
    shares, least = np.zeros(4), 0.0
    for tree in trees_of(forest):
        splits = tree.nodes[tree.nodes["is_leaf"] == 0]
        gains = np.bincount(splits["feature_idx"], splits["gain"].clip(0), minlength=4)
        shares, least = shares + gains / gains.sum() / 20, min(least, *splits["gain"])
    assert_allclose(forest.feature_importances_, shares)
    assert least < 0
