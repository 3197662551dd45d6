"""What `split_statistics` and `era_feature_importances` refuse, and in which words."""

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.data import make_data
from helpers.estimators import make_estimator
from helpers.inspection import make_mixed_frame
from sklearn_era import ensemble
from sklearn_era._optional import MissingPackageError
from sklearn_era.inspection import era_feature_importances, split_statistics

FUNCTIONS = pytest.mark.parametrize(
    "function", [split_statistics, era_feature_importances]
)


@FUNCTIONS
@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("X", lambda X: X[:, :4],
         r"X has 4 columns, but HistGradientBoostingClassifier was fitted to 5"),
        ("X", lambda X: np.hstack([X, X]),
         r"X has 10 columns, .* fitted to 5; pass the columns of the fit"),
        ("X", lambda X: X[:, 0], r"Expected 2D array"),
        ("X", lambda X: X[:-1], r"y has 400 values, but X has 399 rows"),
        ("y", lambda y: y[:-1],
         r"y has 399 values, but X has 400 rows; pass one value a row"),
        ("eras", lambda eras: eras[:-1], r"eras has 399 labels, but X has 400 rows"),
        ("eras", lambda _: None, r"eras is None; pass one label a row"),
        ("eras", lambda eras: np.where(eras == 1, np.nan, eras),
         r"eras has .* missing label"),
        ("sample_weight", lambda _: np.ones(3),
         r"sample_weight.shape == \(3,\), expected \(400,\)"),
        ("y", lambda y: np.where(y == "up", "perhaps", y),
         r"y has 1 class\(es\) that were not in the fit, the first is 'perhaps'; the "
         r"model knows \['down', 'up'\]"),
        ("y", lambda y: np.where(y == "up", 1.0, np.nan), r"Input y contains NaN"),
        ("min_samples_per_era", lambda _: 0,
         r"min_samples_per_era must be an integer of at least 1, .* got 0"),
        ("min_samples_per_era", lambda _: 1.5,
         r"min_samples_per_era must be an integer .* got 1.5"),
        ("estimator", lambda model: make_pipeline(StandardScaler(), model),
         r"estimator must be a HistGradientBoosting.*got Pipeline"),
        ("estimator", lambda _: LinearRegression(),
         r"estimator must be a HistGradientBoosting.*got LinearRegression"),
        ("estimator", lambda _: ensemble.HistGradientBoostingRegressor,
         r"estimator must be a HistGradientBoosting"),
        ("estimator", lambda _: make_estimator(ensemble, "real"), "not fitted yet"),
    ],
)  # fmt: skip
def test_refuses(function, name, spoil, message):
    X, y, _, eras = make_data("binary")
    arguments = {
        "estimator": make_estimator(ensemble, "binary", max_iter=1).fit(X, y),
        "X": X,
        "y": y,
        "eras": eras,
        "sample_weight": None,
        "min_samples_per_era": None,
    }
    function(**arguments)  # which is fine before it is spoilt
    error = NotFittedError if "fitted yet" in message else ValueError
    with pytest.raises(error, match=message):
        function(**arguments | {name: spoil(arguments[name])})


@FUNCTIONS
def test_refuses_columns_of_other_names(function):
    frame, y, eras = make_mixed_frame()
    frame = frame.drop(columns="t")
    model = make_estimator(ensemble, "real", max_iter=1).fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        function(model, frame.rename(columns={"p": "other"}), y, eras=eras)


@FUNCTIONS
def test_refuses_a_target_outside_the_loss(function):
    X, y, _, eras = make_data("positive")
    model = make_estimator(ensemble, "real", loss="gamma", max_iter=1).fit(X, y)
    with pytest.raises(ValueError, match="requires strictly positive y"):
        function(model, X, -y, eras=eras)


@FUNCTIONS
def test_pandas_is_needed_for_data_frames_only(function, monkeypatch):
    X, y, _, eras = make_data()
    model = make_estimator(ensemble, "real", max_iter=1).fit(X, y)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert function(model, X, y, eras=eras)
    with pytest.raises(MissingPackageError, match=r"sklearn-era\[cli\]"):
        function(model, X, y, eras=eras, as_frame=True)
