"""Forests within scikit-learn's tools, and on rows of every kind that these take."""

from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.inspection import partial_dependence
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from helpers.data import make_only_category
from helpers.forests import make_classes, make_data, regressor
from helpers.grids import on_grid
from helpers.trees import assert_same_trees, trees_of
from sklearn_era import ensemble
from sklearn_era.criteria import Invariant, TimeRobust


@on_grid("kind criterion", ["Regressor", "Classifier"], [TimeRobust, Invariant])
def test_presets_are_forests_with_other_defaults(criterion, kind):
    name = criterion.__name__
    preset, base = (getattr(ensemble, f"{x}Forest{kind}") for x in (name, "Era"))
    defaults, known = (signature(each).parameters for each in (preset, base))
    assert list(defaults) == list(known)
    assert isinstance(defaults["split_criterion"].default, criterion)
    assert defaults["split_criterion"].default.rule == "every_era"
    params = {"n_estimators": 4, "min_samples_per_era": 3, "max_depth": 2}
    forest = preset(**params, random_state=0)
    assert isinstance(forest, base)
    text = "max_depth=2, min_samples_per_era=3, n_estimators=4,"
    assert " ".join(repr(forest).split()).startswith(f"{name}Forest{kind}({text} rand")
    assert repr(clone(forest)) == repr(forest)
    X, y, eras = make_data()
    y = y if kind == "Regressor" else make_classes(y, 2)
    assert forest.fit(X, y, eras=eras).score(X, y) > 0
    with pytest.raises(TypeError, match="unexpected keyword argument 'trees'"):
        preset(trees=3)


def test_frames_have_names_and_are_checked():
    X, y, eras = make_data()
    frame = pd.DataFrame(X, columns=list("pqrs"))
    forest = regressor(split_criterion="era").fit(frame, y, eras=pd.Series(eras))
    assert forest.feature_names_in_.tolist() == list("pqrs")
    assert_same_trees(forest, regressor(split_criterion="era").fit(X, y, eras=eras))
    with pytest.raises(ValueError, match="feature names should match"):
        forest.predict(frame[list("qprs")])
    # A single column of eras is no column at all.
    assert_same_trees(forest, clone(forest).fit(X, y, eras=eras.reshape(-1, 1)))
    of_polars = regressor(split_criterion="era")
    of_polars.fit(pl.DataFrame(frame), pl.Series(y), eras=pl.Series(eras))
    assert_same_trees(forest, of_polars)
    assert_array_equal(of_polars.predict(pl.DataFrame(frame)), forest.predict(frame))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.float32])
@pytest.mark.parametrize("bootstrap", ["within_eras", False])
def test_numbers_of_any_type(dtype, bootstrap):
    X, y, eras = make_data()
    parameters = {"split_criterion": "directional", "bootstrap": bootstrap}
    forest = regressor(**parameters).fit(X, y, eras=eras)
    for order in "CF":
        other = regressor(**parameters)
        other.fit(np.asarray(X, dtype=dtype, order=order), y, eras=eras)
        assert_same_trees(forest, other)
        assert_array_equal(other.predict(X.astype(dtype)), forest.predict(X))


@pytest.mark.parametrize("bootstrap", ["rows", "within_eras", "whole_eras", False])
def test_a_binned_dataset_is_its_rows(bootstrap):
    X, y, eras = make_data()
    weights = np.random.default_rng(0).choice([0.5, 1, 2], y.size)
    order = np.argsort(eras, kind="stable")  # which the data set may sort by itself
    X, y, eras, weights = X[order], y[order], eras[order], weights[order]
    parameters = {"split_criterion": "era", "bootstrap": bootstrap}
    dataset = ensemble.BinnedDataset.from_arrays(X, y, eras=eras, sample_weight=weights)
    forest = regressor(**parameters, oob_score=False).fit(dataset)
    other = regressor(**parameters).fit(X, y, weights, eras=eras)
    assert_same_trees(forest, other)
    assert_array_equal(forest.predict(X), other.predict(X))


@pytest.mark.parametrize("split_criterion", ["gain", "era"])
def test_categories(split_criterion):
    rng = np.random.default_rng(0)
    codes, means = rng.integers(0, 9, 400), rng.normal(size=9)
    categories = pd.Categorical.from_codes(codes, [f"c{i}" for i in range(9)])
    frame, y = pd.DataFrame({"x": rng.normal(size=400), "c": categories}), means[codes]
    forest = regressor(split_criterion=split_criterion, min_samples_leaf=5)
    forest.fit(frame, y, eras=np.arange(400) % 2)
    assert forest.is_categorical_.tolist() == [False, True]
    assert forest.score(frame, y) > 0.95
    assert forest.feature_importances_[1] > 0.9
    assert any(tree.nodes["is_categorical"].any() for tree in trees_of(forest))
    names = sorted(frame["c"].cat.categories, reverse=True)
    shuffled = frame.assign(c=frame["c"].cat.reorder_categories(names))
    assert_array_equal(forest.predict(shuffled), forest.predict(frame))


@on_grid("split_criterion n_samples", ["gain", "era"], [600, 4000])
def test_the_only_category_is_told_from_missing_values(split_criterion, n_samples):
    X, y, eras = make_only_category(n_samples)
    params = {"categorical_features": [0, 1], "bootstrap": False}
    forest = regressor(split_criterion=split_criterion, **params).fit(X, y, eras=eras)
    assert_allclose(forest.predict(X), y, atol=1e-6)


# scikit-learn's tools.


def test_eras_are_routed():
    X, y, eras = make_data()
    forest = regressor(split_criterion="era")
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(FunctionTransformer(), forest)
        predicted = pipeline.fit(X, y, eras=eras).predict(X)
        assert_array_equal(predicted, clone(forest).fit(X, y, eras=eras).predict(X))
        folds = GroupKFold(3).set_split_request(groups="eras")
        result = cross_validate(pipeline, X, y, cv=folds, params={"eras": eras})
        assert np.isfinite(result["test_score"]).all()
        search = GridSearchCV(forest, {"max_depth": [1, 2]}).fit(X, y, eras=eras)
        assert search.best_params_["max_depth"] in (1, 2)
    # Partial dependence, with weights of before.
    forest = regressor().fit(X, y, np.ones(y.size))
    with pytest.raises(NotImplementedError, match="sample weights were given"):
        partial_dependence(forest, X, [0], method="recursion")
    forest.fit(X, y)
    assert np.isfinite(partial_dependence(forest, X, [0])["average"]).all()
