"""Data and a metric for the tests of `sklearn_era.metrics`."""

import numpy as np


def make_data(n_samples=240, n_eras=6, seed=0):
    """X, y and string eras in no order; the second feature's effect shifts."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n_samples) % n_eras)
    X = rng.normal(size=(n_samples, 3))
    y = X[:, 0] + rng.normal(size=n_eras)[codes] * X[:, 1]
    y += rng.normal(size=n_samples)
    return X, y, np.array([f"w{code:02d}" for code in codes])


def correlation(y_true, y_pred):
    """Pearson's, NaN without a warning where the prediction is constant."""
    if np.ptp(y_pred) == 0:
        return np.nan
    return np.corrcoef(y_true, y_pred)[0, 1]
