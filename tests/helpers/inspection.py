"""Data and models for the tests of `sklearn_era.inspection`."""

import functools

import numpy as np
import pandas as pd

from helpers.data import make_data
from sklearn_era.ensemble import HistGradientBoostingRegressor


@functools.cache
def fit_data():
    """A model, X, y, and eras of which one differs: not to be changed."""
    X, week = np.random.default_rng(0).normal(size=(200, 4)), np.arange(200) % 4
    y = X[:, 0] * X[:, 1] + X[:, 2] * np.where(week == 0, 2, -1)
    model = HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=5)
    return model.fit(X, y), X, y, np.array(["w1", "w2", "w3", "w4"])[week]


def make_mixed_frame(target="real"):
    """The shared data with missing values, categories by name in the last column."""
    X, y, _, eras = make_data(target)
    frame = pd.DataFrame(X[:, ::-1], columns=list("pqrst"))
    names = frame["t"].map("tree {:.0f}".format, na_action="ignore")
    return frame.assign(t=names.astype("category")), y, eras
