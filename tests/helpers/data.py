"""Data with eras."""

import numpy as np

N_SAMPLES = 400


def make_data(target: str = "real", n_samples: int = N_SAMPLES, seed: int = 0):
    """X with missing values and a categorical column 0, y, weights and eras."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 5))
    X[:, 0] = rng.integers(0, 6, n_samples)
    X[rng.random(X.shape) < 0.1] = np.nan
    eras = rng.integers(0, 4, n_samples)
    score = np.nan_to_num(X[:, 1]) + np.nan_to_num(X[:, 2]) * (eras - 1.5)
    score = score + (X[:, 0] == 2) + 0.3 * rng.normal(size=n_samples)
    y = {
        "real": lambda: score, "positive": lambda: np.exp(score),
        "count": lambda: rng.poisson(np.exp(score / 2)),
        "binary": lambda: np.where(score > 0, "up", "down"),
        "multiclass": lambda: np.digitize(score, [-1, 1]),
    }[target]()  # fmt: skip
    weights = rng.choice([0.0, 0.3, 1.0, 2.5], size=n_samples)
    return X, y, weights, eras


def make_mixed_frame(target="real"):
    """`make_data` with missing values, categories by name in the last column."""
    import pandas as pd

    X, y, _, eras = make_data(target)
    frame = pd.DataFrame(X[:, ::-1], columns=list("pqrst"))
    names = frame["t"].map("tree {:.0f}".format, na_action="ignore")
    return frame.assign(t=names.astype("category")), y, eras


def make_only_category(n_samples: int = 600):
    """X with a category or a missing value, other categories and a number, and y. Each
    splits the target on its own; y is what trees can reach.
    """
    rng = np.random.default_rng(0)
    only = np.where(rng.random(n_samples) < 0.5, 0.0, np.nan)
    other = rng.integers(0, 4, n_samples).astype(float)
    number = rng.integers(0, 2, n_samples).astype(float)
    y = 3.0 * np.isnan(only) + 10.0 * np.isin(other, [0, 2]) + number
    return np.column_stack([only, other, number]), y, np.arange(n_samples) % 2


def two_features(effects, n_repeats=8):
    """Two features of values 0 and 1, in a full factorial design within each era.
    `effects` has shape (2, n_eras): half of what a feature adds to the target. With n
    rows an era, the gain of a feature within it is n times the effect squared.
    """
    effects = np.asarray(effects)
    eras = np.repeat(np.arange(effects.shape[1]), 4 * n_repeats)
    X = np.repeat([(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)], n_repeats, axis=0)
    X = np.tile(X, (effects.shape[1], 1))
    first, second = effects[:, eras] * (2 * X.T - 1)
    return X, first + second, eras


def frames_of(columns: dict):
    """Data frames of every library, of columns of numbers by name."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    frame = pd.DataFrame(columns)
    yield "pandas", frame
    yield "nullable", frame.convert_dtypes(dtype_backend="numpy_nullable")
    yield "polars", pl.DataFrame(columns)
    yield "arrow", pa.table(columns)


def make_levels(n_eras: int = 16, n_rows: int = 60):
    """X, y and eras whose level drifts."""
    rng = np.random.default_rng(0)
    eras = np.repeat(np.arange(n_eras), n_rows)
    X = rng.normal(size=(eras.size, 2))
    y = np.sin(X[:, 0]) + 0.3 * np.cumsum(rng.normal(size=n_eras))[eras]
    return X, y + 0.1 * rng.normal(size=eras.size), eras


def make_shifting(n_samples=240, n_eras=6, seed=0):
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


def make_drift(n_eras=20, n_rows=100, slope=0.5, noise=0.1):
    """X, y and eras whose level grows from era to era, which no feature shows."""
    rng = np.random.default_rng(0)
    eras = np.repeat(np.arange(n_eras), n_rows)
    X = rng.normal(size=(eras.size, 3))
    return X, X[:, 0] + slope * eras + noise * rng.normal(size=eras.size), eras
