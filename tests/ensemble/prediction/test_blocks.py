"""Rows are predicted in blocks where all would be copied, and alike."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn import ensemble

from helpers import peak_memory
from helpers.data import frames_of
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._prediction import blocks as block_prediction


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(block_prediction, "BLOCK_VALUES", 64)


def make_data(n_samples=300, n_features=4):
    rng = np.random.default_rng(0)
    X = rng.integers(-20, 20, size=(n_samples, n_features)).astype(np.float64)
    return X, X[:, 0] * X[:, 1] + rng.normal(size=n_samples)


def stock_prediction(model, X, method):
    """The prediction of scikit-learn's class from the same trees."""
    stock = getattr(ensemble, type(model).__name__)
    own = stock.__new__(stock)
    own.__dict__.update(model.__dict__)
    return getattr(own, method)(X)


def copies(X):
    """X in every form whose conversion to float64 takes a copy."""
    for dtype in ("int8", "int16", "int32", "int64", "float16", "float32"):
        yield np.asarray(X, dtype, order="C")
        yield np.asarray(X, dtype, order="F")
        yield np.asarray(X, dtype)[::-2]
    yield np.abs(X).astype("uint8")
    yield X > 0
    columns = {str(i): column.astype("int8") for i, column in enumerate(X.T)}
    columns["2"] = X[:, 2] / 3
    yield from (frame for _, frame in frames_of(columns))


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_every_method_predicts_as_scikit_learn():
    X, y = make_data()
    classifier = Classifier(max_iter=3).fit(X, np.digitize(y, [-9, 9]))
    for model in (Regressor(max_iter=5).fit(X, y), classifier):
        for method in ("predict", "predict_proba", "decision_function"):
            for rows in copies(X) if hasattr(model, method) else ():
                expected = stock_prediction(model, rows, method)
                assert_array_equal(getattr(model, method)(rows), expected)


def test_missing_values_and_values_never_seen():
    X, y = make_data()
    X[::3, 1] = np.nan
    model = Regressor(max_iter=5).fit(X, y)
    rows = np.where(X == 3, np.inf, 5 * X).astype(np.float32)
    assert_array_equal(model.predict(rows), stock_prediction(model, rows, "predict"))
    frame = pl.DataFrame(X).with_columns(pl.all().fill_nan(None))
    with pytest.warns(UserWarning, match="X has feature names") as caught:
        assert_array_equal(model.predict(frame), model.predict(X))
    assert len(caught) == 1


def test_categories():
    X, y = make_data()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["b"] = pd.Categorical((X[:, 1] // 10).astype(str))
    model = Regressor(max_iter=5).fit(frame, y)
    assert_array_equal(model.predict(frame), stock_prediction(model, frame, "predict"))
    numbers = np.abs(X).astype(np.int8)
    model = Regressor(max_iter=5, categorical_features=[1]).fit(numbers[::2], y[::2])
    expected = stock_prediction(model, numbers, "predict")
    assert_array_equal(model.predict(numbers), expected)
    with pytest.raises(ValueError, match=r"X has 2 features, but Hist.* expecting 4"):
        model.predict(numbers[:, :2])


def test_names_are_compared_once_and_columns_checked():
    X, y = make_data()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = Regressor(max_iter=2).fit(frame, y)
    with pytest.warns(UserWarning, match="does not have valid feature names") as caught:
        model.predict(X.astype(np.int8))
    assert len(caught) == 1
    with pytest.raises(ValueError, match="Feature names unseen at fit time"):
        model.predict(frame.rename(columns={"a": "z"}))
    frame["b"] = ["1"] * 200 + ["x"] * 100
    with pytest.raises(ValueError, match=r"column 'b', .* it holds 'x'"):
        model.predict(frame)
    with pytest.raises(ValueError, match="X has 3 features, but"):
        model.fit(X, y).predict(X[:, :3].astype(np.int8))


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_of_a_prediction(order, monkeypatch):
    monkeypatch.setattr(block_prediction, "BLOCK_VALUES", 2**16)
    rng = np.random.default_rng(0)
    X = np.asarray(rng.integers(0, 5, size=(40_000, 50), dtype=np.int8), order=order)
    model = Regressor(max_iter=2).fit(X[:500], X[:500, 0])
    assert peak_memory(model.predict, X)[1] < 8 * len(X) + 2 * 8 * 2**16


def test_an_array_of_float64_is_not_copied(monkeypatch):
    monkeypatch.setattr(block_prediction, "BLOCK_VALUES", 2**30)
    X, y = make_data(5000, 20)
    assert peak_memory(Regressor(max_iter=2).fit(X, y).predict, X)[1] < X.nbytes / 2
