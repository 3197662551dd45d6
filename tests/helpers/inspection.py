"""Data and models for the tests of `sklearn_era.inspection`."""

import functools

import numpy as np
import pandas as pd

from helpers.data import make_data as make_shared_data
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor

N_SAMPLES = 200
PARAMETERS = {"max_iter": 4, "min_samples_leaf": 5, "random_state": 0}


def make_data():
    """Four features without missing values, y, and eras of which one differs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_SAMPLES, 4))
    eras = np.array(["w1", "w2", "w3", "w4"])[np.arange(N_SAMPLES) % 4]
    y = X[:, 0] * X[:, 1] + X[:, 2] * np.where(eras == "w1", 2, -1)
    return X, y, eras


def make_regressor(X, y, **parameters):
    return Regressor(**PARAMETERS | parameters).fit(X, y)


@functools.cache
def fit_data():
    """A model of the data, and the data: not to be changed."""
    X, y, eras = make_data()
    return make_regressor(X, y), X, y, eras


def make_classifier(X, y, bounds, **parameters):
    model = Classifier(**PARAMETERS | parameters)
    return model.fit(X, np.array(["a", "b", "c"])[np.digitize(y, bounds)])


def make_frame():
    """The same with a column of integers and one of two categories, and their y."""
    X, y, _ = make_data()
    frame = pd.DataFrame(X, columns=["p", "q", "r", "s"])
    frame["count"] = np.arange(N_SAMPLES) % 7
    frame["tree"] = pd.Categorical(np.array(["ash", "elm"])[np.arange(N_SAMPLES) % 2])
    return frame, y + frame["count"] - 3.0 * (frame["tree"] == "ash")


def make_mixed_frame(target="real"):
    """The shared data with missing values, categories by name in the last column."""
    X, y, _, eras = make_shared_data(target)
    frame = pd.DataFrame(X[:, ::-1], columns=list("pqrst"))
    names = frame["t"].map("tree {:.0f}".format, na_action="ignore")
    return frame.assign(t=names.astype("category")), y, eras
