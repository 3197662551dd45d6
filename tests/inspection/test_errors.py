"""What `split_statistics` and `era_feature_importances` refuse, and in which words."""

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.inspection import (
    make_data,
    make_frame,
    make_model,
    make_targets,
)
from sklearn_era._optional import MissingPackageError
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.inspection import era_feature_importances, split_statistics

FUNCTIONS = pytest.mark.parametrize(
    "function", [split_statistics, era_feature_importances]
)


def replace(**changes):
    return lambda arguments: (
        arguments | {name: change(arguments[name]) for name, change in changes.items()}
    )


BAD_ARGUMENTS = {
    "columns_missing": (
        replace(X=lambda X: X[:, :5]),
        r"X has 5 columns, but HistGradientBoostingClassifier was fitted to 6",
    ),
    "columns_too_many": (
        replace(X=lambda X: np.hstack([X, X])),
        r"X has 12 columns, .* fitted to 6; pass the columns of the fit",
    ),
    "one_dimensional": (replace(X=lambda X: X[:, 0]), r"Expected 2D array"),
    "rows_of_X": (
        replace(X=lambda X: X[:-1]),
        r"y has 600 values, but X has 599 rows",
    ),
    "rows_of_y": (
        replace(y=lambda y: y[:-1]),
        r"y has 599 values, but X has 600 rows; pass one value a row",
    ),
    "eras_too_short": (
        replace(eras=lambda eras: eras[:-1]),
        r"eras has 599 labels, but X has 600 rows",
    ),
    "eras_none": (replace(eras=lambda _: None), r"eras is None; pass one label a row"),
    "eras_missing": (
        replace(eras=lambda eras: np.where(eras == 1, np.nan, eras)),
        r"eras has .* missing label",
    ),
    "weights": (
        replace(sample_weight=lambda _: np.ones(3)),
        r"sample_weight.shape == \(3,\), expected \(600,\)",
    ),
    "unknown_class": (
        replace(y=lambda y: np.where(y == "no", "perhaps", y)),
        r"y has 1 class\(es\) that were not in the fit, the first is 'perhaps'; the "
        r"model knows \['no', 'yes'\]",
    ),
    "y_missing": (
        replace(y=lambda y: np.where(y == "no", 1.0, np.nan)),
        r"Input y contains NaN",
    ),
    "minimum_zero": (
        replace(min_samples_per_era=lambda _: 0),
        r"min_samples_per_era must be an integer of at least 1, .* got 0",
    ),
    "minimum_fraction": (
        replace(min_samples_per_era=lambda _: 1.5),
        r"min_samples_per_era must be an integer .* got 1.5",
    ),
    "pipeline": (
        replace(estimator=lambda model: make_pipeline(StandardScaler(), model)),
        r"estimator must be a HistGradientBoosting.*got Pipeline",
    ),
    "other_estimator": (
        replace(estimator=lambda _: LinearRegression()),
        r"estimator must be a HistGradientBoosting.*got LinearRegression",
    ),
    "class": (
        replace(estimator=lambda _: HistGradientBoostingRegressor),
        r"estimator must be a HistGradientBoosting",
    ),
}


@FUNCTIONS
@pytest.mark.parametrize(
    ("spoil", "message"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS
)
def test_refuses(function, spoil, message):
    X, y, eras = make_data()
    y = make_targets("binary", y)
    model = make_model("binary", max_iter=1).fit(X, y)
    arguments = {
        "estimator": model,
        "X": X,
        "y": y,
        "eras": eras,
        "sample_weight": None,
        "min_samples_per_era": None,
    }
    function(**arguments)  # which is fine before it is spoilt
    with pytest.raises(ValueError, match=message):
        function(**spoil(arguments))


@FUNCTIONS
def test_refuses_a_model_that_is_not_fitted(function):
    X, y, eras = make_data()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        function(make_model("regressor"), X, y, eras=eras)


@FUNCTIONS
def test_refuses_columns_of_other_names(function):
    frame, y, eras = make_frame()
    frame = frame.drop(columns="t")
    model = make_model("regressor", max_iter=1).fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        function(model, frame.rename(columns={"p": "other"}), y, eras=eras)


@FUNCTIONS
def test_refuses_a_target_outside_the_loss(function):
    X, y, eras = make_data()
    model = make_model("regressor", loss="gamma", max_iter=1).fit(X, np.exp(y))
    with pytest.raises(ValueError, match="requires strictly positive y"):
        function(model, X, y, eras=eras)


@FUNCTIONS
def test_pandas_is_needed_for_data_frames_only(function, monkeypatch):
    X, y, eras = make_data()
    model = make_model("regressor", max_iter=1).fit(X, y)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert function(model, X, y, eras=eras)
    with pytest.raises(MissingPackageError, match=r"sklearn-era\[cli\]"):
        function(model, X, y, eras=eras, as_frame=True)
