"""Rows in the layout of Numerai's live data, and models fitted to some."""

import numpy as np
import pandas as pd

from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai.store import Blend, WeightedFit

# In the order of the models, which is not that of the files.
NAMES = [f"feature_{letter}" for letter in "cabdefgh"]


def make_frame(n_rows=500, eras=("X",), seed=1):
    """Rows of eras in any order, with a feature that no model knows."""
    rng = np.random.default_rng(seed)
    index = pd.Index([f"n{i:015x}" for i in rng.permutation(n_rows)], name="id")
    frame = pd.DataFrame({"era": rng.choice(eras, n_rows), "data_type": "live"}, index)
    values = rng.integers(0, 5, (len(NAMES), n_rows), dtype=np.int8)
    features = dict(zip(sorted(NAMES), values, strict=True))
    return frame.assign(feature_unknown=np.int8(2), **features)


def fit(names=NAMES, seed=0, sign=1, **parameters):
    train = make_frame(2000, seed=0)
    y = train["feature_c"] * 0.1 + train["feature_a"] * train["feature_b"] * 0.05
    y += np.random.default_rng(seed).normal(size=len(train))
    parameters = {"max_iter": 30, "split_criterion": "directional"} | parameters
    model = HistGradientBoostingRegressor(**parameters)
    return model.fit(train[list(names)], sign * y, eras=np.arange(len(train)) % 4)


def make_blend():
    """Three fits of different features, one of them categories, one of few values."""
    few = WeightedFit(fit(seed=2, max_iter=1, max_leaf_nodes=3), NAMES, 0.1)
    turned = WeightedFit(fit(NAMES[:2:-1], seed=1), NAMES[:2:-1], 0.3)
    first = fit(NAMES[:5], categorical_features=["feature_b"])
    return Blend([WeightedFit(first, NAMES[:5], 1.0), turned, few])


def expected_ranks(blend, frame, eras=None):
    """A blend's own predictions of each era, as a frame."""
    eras = frame["era"] if eras is None else eras
    ranks = pd.Series(np.nan, index=frame.index, name="prediction")
    for _, rows in frame.groupby(eras.to_numpy()):
        ranks[rows.index] = blend.ranks(rows)
    return ranks.to_frame()
