"""Data and models for the tests of `sklearn_era.inspection`."""

import numpy as np
import pandas as pd

from sklearn_era.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

N_SAMPLES = 600
PARAMETERS = {"max_iter": 6, "min_samples_leaf": 5, "random_state": 0}


def make_data(seed=0):
    """Six features, the fifth with categories, missing values in all; y and eras."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_SAMPLES, 6))
    X[:, 4] = rng.integers(0, 6, size=N_SAMPLES)
    eras = rng.integers(0, 4, size=N_SAMPLES)
    y = X[:, 0] + (eras - 1.5) * X[:, 1] + 2 * (X[:, 4] % 3)
    y += 0.3 * rng.normal(size=N_SAMPLES)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y, eras


def make_targets(kind, y):
    if kind == "binary":
        return np.array(["no", "yes"])[(y > 2).astype(int)]
    if kind == "multiclass":
        return np.array(["low", "mid", "top"])[np.digitize(y, [1, 3])]
    return y


def make_model(kind, **parameters):
    if kind == "regressor":
        return HistGradientBoostingRegressor(**PARAMETERS | parameters)
    return HistGradientBoostingClassifier(**PARAMETERS | parameters)


def make_frame():
    X, y, eras = make_data()
    frame = pd.DataFrame(X, columns=list("pqrstu"))
    names = np.array(["ash", "elm", "fir", "oak", "pine", "yew"], dtype=object)
    trees = [None if np.isnan(x) else names[int(x)] for x in X[:, 4]]
    frame["t"] = pd.Categorical(trees, categories=sorted(names))
    return frame, y, eras
