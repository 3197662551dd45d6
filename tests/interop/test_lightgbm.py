"""LightGBM predicts from our text what the model predicts, bit for bit."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_max_ulp
from sklearn import ensemble
from sklearn._loss.loss import HalfSquaredError
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from helpers.grids import slow
from sklearn_era.ensemble import EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.interop import to_lightgbm_text, to_sklearn


def booster(model, **keywords):
    lightgbm = pytest.importorskip("lightgbm")
    return lightgbm.Booster(model_str=to_lightgbm_text(model, **keywords))


def splits_of(model):
    nodes = np.concatenate([tree.nodes for (tree,) in model._predictors])
    return nodes[nodes["is_leaf"] == 0]


def assert_same_predictions(model, X):
    assert np.array_equal(booster(model).predict(X), model.predict(X))


def make_rows(n_samples, seed=0):
    """Rows with missing values, zeros, infinities and small integers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 6))
    X[:, 3] = rng.integers(0, 5, n_samples)
    X[:, 4] = np.where(rng.random(n_samples) < 0.5, 0.0, X[:, 4])
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.001] = np.inf
    X[rng.random(X.shape) < 0.001] = -np.inf
    return X


def fit_regressor(loss="squared_error", n_samples=3000, **parameters):
    rng, X = np.random.default_rng(1), make_rows(n_samples)
    finite = np.nan_to_num(X, posinf=3, neginf=-3)
    y = finite[:, 0] + np.isnan(X[:, 1]) + finite[:, 3] * finite[:, 4]
    y = y + rng.normal(size=n_samples)
    if loss in ("poisson", "gamma"):
        y = np.exp(y / 4)
    parameters = {"max_iter": 60, "split_criterion": "directional"} | parameters
    model = Regressor(loss, quantile=0.3, **parameters)
    return model.fit(X, y, eras=np.arange(n_samples) % 5)


LOSSES = ["squared_error", "absolute_error", "quantile", "poisson", slow("gamma")]


@pytest.mark.parametrize("loss", LOSSES)
def test_predictions_are_equal_on_many_rows(loss):
    """With a log link but for the last digit of the exponential."""
    model = fit_regressor(loss, max_iter=20)
    text_model, X = booster(model), make_rows(20_000, seed=2)
    raw, expected = text_model.predict(X, raw_score=True), model.predict(X)
    assert np.unique(expected).size > 1000
    assert np.array_equal(raw, model._raw_predict(X).ravel())
    maxulp = loss in ("poisson", "gamma")
    for n_threads in (1, 2):
        found = text_model.predict(X, num_threads=n_threads)
        assert_array_max_ulp(found, expected, maxulp=maxulp)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_raw_predictions_of_a_classifier_are_equal(n_classes):
    rng, X = np.random.default_rng(0), make_rows(3000)
    y = np.digitize(np.nan_to_num(X[:, 0]) + rng.normal(size=3000), [-1, 1])
    model = Classifier(max_iter=20)
    model.fit(X, np.minimum(y, n_classes - 1))
    text_model, X = booster(model), make_rows(20_000, seed=2)
    raw = text_model.predict(X, raw_score=True)
    assert np.array_equal(raw, model.decision_function(X))
    probabilities = model.predict_proba(X)
    expected = probabilities[:, 1] if n_classes == 2 else probabilities
    assert_allclose(text_model.predict(X), expected, rtol=1e-14)


@settings(max_examples=settings().max_examples // 2)
@given(
    exponent=st.integers(-300, 300), seed=st.integers(0, 1000),
    n_leaves=st.integers(2, 40),
)  # fmt: skip
def test_every_double_survives_the_text(exponent, seed, n_leaves):
    """Thresholds and leaves of any size, and rows that are the thresholds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3)) * 10.0 ** np.clip(exponent, -30, 300)
    y = rng.normal(size=300) * 10.0 ** np.clip(exponent, -30, 30)
    model = Regressor(max_iter=5, max_leaf_nodes=n_leaves, min_samples_leaf=2).fit(X, y)
    splits = splits_of(model)
    at_thresholds = np.repeat(splits["num_threshold"][:, np.newaxis], 3, axis=1)
    above = np.nextafter(at_thresholds, np.inf)
    rows = np.concatenate([X, at_thresholds, above, -at_thresholds])
    assert_same_predictions(model, rows)


def test_a_split_between_missing_values_and_all_others_has_an_infinite_threshold():
    X = np.where(np.arange(400) % 4 == 0, np.nan, 1.0).reshape(-1, 1)
    model = Regressor(max_iter=3).fit(X, np.isnan(X[:, 0]).astype(float))
    assert np.isinf(splits_of(model)["num_threshold"]).any()
    assert_same_predictions(model, np.array([[np.nan], [0], [1], [np.inf], [-np.inf]]))


def test_rows_and_models_of_other_kinds_are_taken_too():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 5, (500, 3), dtype=np.int8), columns=list("abc"))
    model = Regressor(max_iter=10).fit(X, X["a"] * X["b"])
    text_model = booster(model)
    assert text_model.feature_name() == ["a", "b", "c"]
    for rows in (X, X.to_numpy(), X.astype(float)):
        assert np.array_equal(text_model.predict(rows), model.predict(X))
    # Those of scikit-learn, and without a split.
    X = make_rows(500)[:, [3, 4]]
    X[np.isinf(X)] = 9.0
    y = np.nan_to_num(X[:, 0])
    stock = ensemble.HistGradientBoostingRegressor(max_iter=10).fit(X, y)
    stump = Regressor(max_iter=3).fit(np.zeros_like(X), y)
    assert splits_of(stump).size == 0
    for model in (stock, stump):
        assert_same_predictions(model, X)


def test_node_statistics_are_what_contributions_and_importances_need():
    model = fit_regressor(max_iter=10)
    text_model, X = booster(model), make_rows(500, seed=2)
    contributions = text_model.predict(X, pred_contrib=True)
    assert_allclose(contributions.sum(axis=1), model.predict(X), atol=1e-12)
    splits = splits_of(model)
    gains = np.bincount(splits["feature_idx"], splits["gain"], minlength=6)
    assert_allclose(text_model.feature_importance("gain"), gains)
    bare = booster(model, node_statistics=False)
    assert np.array_equal(bare.predict(X), model.predict(X))
    short, full = (to_lightgbm_text(model, node_statistics=b) for b in (False, True))
    assert len(short) < 0.8 * len(full)


def make_frame(n_samples, seed=0, new=()):
    """Two numeric columns, and three of categories: 300 of text, three, and numbers."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.normal(size=n_samples)})
    X["city"] = rng.integers(0, 300 + 50 * len(new), n_samples)
    X["city"] = X["city"].map("city {}".format)
    X["z"] = rng.normal(size=n_samples)
    X["mood"] = rng.choice(['so, "so"', "höchst\n", None, *new], n_samples)
    X["level"] = rng.choice([-10.0, 2.5, 30.0, np.nan, *range(len(new))], n_samples)
    return X.astype(dict.fromkeys(["city", "mood", "level"], "category"))


def make_target(X):
    """A target that every column matters to, with missing values on either side."""
    rng = np.random.default_rng(1)
    effects = rng.normal(size=400)[X["city"].str[5:].astype(int)]
    y = effects + X["x"] + X["mood"].isna() - X["level"].isna() + (X["level"] == 2.5)
    return (y + rng.normal(size=len(X))).to_numpy()


CATEGORICAL_MODELS = {
    "regressor": (Regressor(max_iter=20), lambda y: y),
    "counts": (Regressor("poisson", max_iter=5), lambda y: np.exp(y / 4)),
    "binary": (Classifier(max_iter=5), lambda y: y > 0),
    "multiclass": (Classifier(max_iter=5), lambda y: np.digitize(y, [-1, 1])),
    "forest": (EraForestRegressor(5, random_state=0), lambda y: y),
    "stock": (ensemble.HistGradientBoostingRegressor(max_iter=5), lambda y: y),
}


@pytest.mark.filterwarnings("ignore:.* share a bin")
@pytest.mark.parametrize("name", CATEGORICAL_MODELS)
def test_categories_of_frames_go_where_they_went(name):
    X = make_frame(3000)
    model, target = CATEGORICAL_MODELS[name]
    y = target(make_target(X))
    if name == "stock":  # which takes no more categories than bins
        X["city"] = X["city"].str[:6].astype("category")
    model.fit(X, y)
    trees = [tree for trees in model._predictors for tree in trees]
    nodes = np.concatenate([tree.nodes for tree in trees])
    goes_left = nodes["missing_go_to_left"][nodes["is_categorical"] == 1]
    assert {*goes_left} == {0, 1}
    # Categories that the fit has not seen, others that are missing, in another order.
    new = make_frame(3000, seed=2, new=("a", "b"))
    new["mood"] = new["mood"].cat.reorder_categories(new["mood"].cat.categories[::-1])
    text_model = booster(model)
    for rows in (X, new, new[:1]):
        raw = model._raw_predict(rows)
        predicted = text_model.predict(rows, raw_score=True).reshape(raw.shape)
        assert np.array_equal(predicted, raw)
    assert text_model.dump_model()["feature_infos"]["mood"]["values"] == [0, 1]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_whole_numbers_are_categories_by_themselves(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4)).astype(dtype)
    X[:, 1] = rng.integers(0, 200, 2000)
    X[:, 3] = rng.choice([0, 7, 100_000, np.nan], 2000)
    y = rng.normal(size=200)[X[:, 1].astype(int)] + (X[:, 3] == 7) - np.isnan(X[:, 3])
    model = Regressor(max_iter=20, categorical_features=[1, 3]).fit(X, y + X[:, 0])
    X[:500, 1] = rng.integers(-50, 400, 500)
    X[::3, 3] = rng.choice([1, 8, -7, 2e6, 1e15], 667)
    assert_same_predictions(model, X)
    frame, text_model = pd.DataFrame(X, columns=list("abcd")), booster(model)
    assert np.array_equal(text_model.predict(frame), model.predict(X))
    # LightGBM would number the categories of such a column in their order.
    with pytest.raises(ValueError, match="categorical_feature do not match"):
        text_model.predict(frame.astype({"d": "category"}))
    X[:, 1] = 2
    whole = text_model.predict(X)
    X[:, 1] = 2.5
    assert np.array_equal(text_model.predict(X), whole)


@pytest.mark.parametrize(("colours", "message"), [
    ([0.0, -1.0], r"'colour' has the category -1\.0, and only whole numbers from 0 to"),
    ([0.5, 1.0], r"the category 0\.5, and only"), ([1e7, 0.0], "category 10000000"),
    (pd.to_datetime(["2020-01-01", "2021-01-01"]), "'colour' has categories such as"),
    (pd.cut(pd.Series([1, 2]), 2), "such as Interval.* fit the model to text"),
])  # fmt: skip
def test_categories_that_cannot_be_written_are_refused_by_name(colours, message):
    X = pd.DataFrame({"size": np.arange(100.0), "colour": [*colours] * 50})
    X["colour"] = X["colour"].astype("category")
    model = Regressor(max_iter=3, categorical_features=["colour"])
    model.fit(X, X["size"])
    with pytest.raises(ValueError, match=message):
        to_lightgbm_text(model)


def test_splits_next_to_zero_are_refused_by_name():
    X = np.where(np.arange(100) % 2, 1e-36, 0.0)[:, np.newaxis] * [1.0, 0.0]
    for columns in (None, [1]):  # categorical ones are the trees' first features
        model = Regressor(max_iter=1, categorical_features=columns)
        model.fit(X, X[:, 0] > 0)
        with pytest.raises(ValueError, match=r"Feature 'Column_0' is split at 5e-37"):
            to_lightgbm_text(model)


@pytest.mark.parametrize(("name", "message"), [
    ("a b", r"'a b' has the character ' '"), ("tab\t", "has the character"),
    ("a,b", r"'a,b' has the character ','"), ("", "'' has no character"),
    ('"', r"has the character '\"'"),
])  # fmt: skip
def test_names_that_lightgbm_does_not_take_are_refused(name, message):
    X = pd.DataFrame({"x": np.arange(50.0), name: np.arange(50.0)})
    model = Regressor(max_iter=1).fit(X, X["x"])
    with pytest.raises(ValueError, match=f"{message}.*pass feature_names"):
        to_lightgbm_text(model)
    assert booster(model, feature_names=["x", "ü=y"]).feature_name() == ["x", "ü=y"]


def test_names_are_checked():
    model = fit_regressor(max_iter=1)
    for names, message in (
        (["x"], r"feature_names has 1 names, but .* 6 feat"),
        ("abcdef", "feature_names='abcdef' is one name"),
        (["x", "x", "a", "b", "c", "d"], "2 features have the name 'x'"),
    ):
        with pytest.raises(ValueError, match=message):
            to_lightgbm_text(model, feature_names=names)


def test_other_models_are_refused():
    model = Regressor()
    with pytest.raises(NotFittedError):
        to_lightgbm_text(model)
    with pytest.raises(TypeError, match=r"got sklearn\.pipeline\.Pipeline"):
        to_lightgbm_text(make_pipeline(model))

    class CustomLoss(HalfSquaredError):
        pass

    X = make_rows(100)
    model = Regressor(CustomLoss()).fit(X, np.arange(100.0))
    with pytest.raises(ValueError, match=r"loss=.*CustomLoss.* has no counterpart"):
        to_lightgbm_text(model)


def test_a_column_without_a_value():
    X = np.clip(make_rows(500), -3, 3)
    X[:, 1] = np.nan
    with pytest.warns(UserWarning, match=r"X: column\(s\) 1 have no value in"):
        model = Regressor(max_iter=3).fit(X, np.nan_to_num(X[:, 0]))
    assert 1 not in splits_of(model)["feature_idx"]
    X[:, 1] = np.linspace(-1e9, 1e300, 500)
    assert_same_predictions(model, X)
    assert np.array_equal(to_sklearn(model).predict(X), model.predict(X))
