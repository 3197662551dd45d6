"""Forests in other packages and files: the same predictions, or a refusal."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import ensemble
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

from helpers.forests import classifier, make_classes, make_data, regressor
from helpers.grids import on_grid
from sklearn_era.ensemble import EraForestClassifier
from sklearn_era.interop import to_sklearn
from sklearn_era.model_files import load_model, save_model


@pytest.fixture(scope="module")
def forest():
    X, y, eras = make_data(missing=0.1)
    X = X.astype(np.float32).astype(np.float64)
    model = regressor(split_criterion="era", bootstrap="within_eras")
    return model.fit(X, y, eras=eras), X


def test_the_pickle_for_numerai_has_the_forest(forest, tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("pydantic")
    from sklearn_era.numerai import write_portable_model
    from sklearn_era.numerai.errors import ExportError

    model, X = forest
    names = list("abcd")
    write_portable_model(model, tmp_path / "m.pkl", feature_names=names)
    predict = pickle.loads((tmp_path / "m.pkl").read_bytes())
    live = pd.DataFrame(X, columns=names).assign(era="X")
    ranks = pd.Series(model.predict(X)).rank()
    assert_allclose(predict(live).to_numpy().ravel(), (ranks - 0.5) / len(ranks))
    other = classifier().fit(X, X[:, 0] > 2)
    with pytest.raises(ExportError, match="cannot be exported"):
        write_portable_model(other, tmp_path / "m.pkl", feature_names=names)


def test_a_stock_estimator_predicts_the_same_bits(forest):
    model, X = forest
    stock = to_sklearn(model)
    assert type(stock) is ensemble.HistGradientBoostingRegressor
    assert_array_equal(stock.predict(X), model.predict(X))
    assert_array_equal(list(stock.staged_predict(X))[-1], model.predict(X))
    assert b"sklearn_era" not in pickle.dumps(stock)
    assert stock.n_iter_ == stock.max_iter == 6
    assert stock.min_samples_leaf == 1
    stock.fit(X, X[:, 0] > 2)  # a booster, by its parameters
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["a"] = frame["a"].map("level {:.0f}".format).astype("category")
    model = regressor().fit(frame, X[:, 0] > 2)
    assert_array_equal(to_sklearn(model).predict(frame), model.predict(frame))


@on_grid("make parameters", [regressor, classifier], {
    "all rows": {"bootstrap": False, "max_features": "sqrt"},
    "blend": {"split_criterion": {"era": 1, "vrex": 0.5}, "bootstrap": "whole_eras"},
    "scored": {"bootstrap": "within_eras", "max_samples": 0.5, "oob_score": True},
    "drawn": {"categorical_features": [3], "random_state": np.random.RandomState(1)},
    "segments": {"random_segments": 2, "warm_start": True},
}, every=2)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*were drawn for every:UserWarning")
def test_a_model_file_has_the_whole_forest(make, parameters, tmp_path):
    X, y, eras = make_data(missing=0.1)
    y = y if make is regressor else make_classes(y)
    model = make(**parameters).fit(X, y, eras=eras)
    metadata = save_model(model, tmp_path / "f.era", era="week")
    loaded, read = load_model(tmp_path / "f.era")
    assert metadata == read
    assert read.estimator == type(model).__name__
    assert type(loaded) is type(model)
    method = "predict" if make is regressor else "predict_proba"
    assert_array_equal(getattr(loaded, method)(X), getattr(model, method)(X))
    assert set(vars(loaded)) == set(vars(model))
    assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    loaded.set_params(n_estimators=8).fit(X, y, eras=eras)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_class_of_a_forest_is_a_regressor(n_classes):
    X, y, eras = make_data(missing=0.1)
    numbers = np.unique(make_classes(y, n_classes), return_inverse=True)[1]
    labels = np.array(["a", "b", "c"])[numbers]
    forest = classifier(split_criterion="era", oob_score=True, n_estimators=20)
    forest.fit(X, labels, eras=eras)
    parts = [forest.to_regressor(label).predict(X) for label in forest.classes_]
    proportions = np.column_stack(parts)
    scaled = proportions / proportions.sum(axis=1, keepdims=True)
    assert_allclose(scaled, forest.predict_proba(X), rtol=0, atol=1e-14)
    regressor_of_b = forest.to_regressor("b")
    assert is_classifier(forest)
    # Other packages would take its proportions for log-odds.
    assert not isinstance(forest, ensemble.HistGradientBoostingClassifier)
    assert not is_classifier(regressor_of_b)
    assert not hasattr(regressor_of_b, "classes_")
    assert not hasattr(regressor_of_b, "oob_score_")
    stock = to_sklearn(regressor_of_b)
    assert_array_equal(stock.predict(X), regressor_of_b.predict(X))
    if n_classes == 2:
        assert_array_equal(forest.to_regressor().predict(X), proportions[:, 1])
        assert_array_equal(forest.predict_proba(X)[:, 1], proportions[:, 1].clip(0, 1))
    else:
        with pytest.raises(ValueError, match=r"^The forest has 3 classes: pass the"):
            forest.to_regressor()
    with pytest.raises(ValueError, match=r"^label='z' is none of the classes \['a'"):
        forest.to_regressor("z")


def test_the_only_class_of_a_forest_has_the_proportion_1():
    X, _, _ = make_data()
    forest = classifier().fit(X, np.full(X.shape[0], "only"))
    assert_array_equal(forest.to_regressor("only").predict(X).round(12), 1.0)
    with pytest.raises(NotFittedError):
        EraForestClassifier().to_regressor()
