"""Planted columns act by their kind, and the selection drops what harms."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from experiments._stable_selection import select
from experiments.features_that_turn import KINDS, plant, summarize_columns


def test_planted_columns_are_of_their_kind():
    rng = np.random.default_rng(0)
    eras = np.repeat(np.arange(9), 2000)
    X, y = rng.normal(size=(eras.size, 3)), rng.normal(size=eras.size)
    both = np.column_stack([plant(X, y, eras, rng), y])
    found = np.array([np.corrcoef(both[eras == e].T)[-1, :-1] for e in range(9)])
    for (kind, rho, turns), by_era in zip(KINDS, found.T, strict=True):
        assert np.allclose(np.abs(by_era), rho, atol=0.1), kind
        n_positive = (by_era > 0).sum()
        assert rho == 0 or (0 < n_positive < 9) == turns


def test_what_harms_later_eras_is_dropped():
    rng = np.random.default_rng(0)
    eras = np.repeat(np.arange(12), 100)
    X = rng.normal(size=(eras.size, 3))
    slope = np.where(eras % 4 == 3, -1, 1) * rng.normal(2, 3, 12)[eras]
    y = X[:, 0] + slope * X[:, 1] + X[:, 2] + rng.normal(size=eras.size)
    found = select(LinearRegression(), X, y, eras, True, 0)
    assert found.turning.tolist() == [1]
    assert [len(kept) for kept in found.kept] == [3, 2, 1]
    assert found.kept[1].tolist() == [0, 2]
    assert found.choose(0).tolist() in ([0, 1, 2], [0, 2])
    assert found.choose(1e9).tolist() == [0, 1, 2]


def test_columns_are_compared_with_the_curated_ones():
    cells = [("curated", "all", 0.8), ("raw", "all", 0.7), ("raw", "by 1 error", 0.9)]
    scores = pd.DataFrame(cells, columns=["columns", "selection", "score"])
    table = summarize_columns(scores.assign(table="t", split=0))
    means = table[table["case"] == "t"].set_index("what")["mean"]
    assert np.allclose(means[["raw, all", "raw, by 1 error"]], [-0.1, 0.1])
