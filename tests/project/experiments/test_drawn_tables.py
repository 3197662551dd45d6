"""Experiments whose tables rest on draws: what they draw, count and compare."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t
from sklearn.linear_model import LinearRegression

from experiments import next_era_scores, search_rule
from experiments._next_era_data import AUTO, OUT_OF_ERA, PLAIN, TEST, TUNED
from experiments.features_that_turn import KINDS, plant, select, summarize_columns

PAGE = Path(__file__).parents[3] / "docs" / "choosing.md"
TRAINED, TESTED = np.linspace(0.7, 0.8, 8), np.array([0.6, 0.75, 0.82])


@pytest.fixture(scope="module")
def intervals():
    """Two candidates, the second better by a constant, in all parts and eras."""
    rows = [
        {"scenario": "votes, states", "split": 0, "model": model, "metric": "score",
         "candidate": candidate, "part": part, "era": era, "n_rows": 50,
         "value": value + 0.1 * candidate, "error": 0.01}
        for model, candidate in ((TUNED, 0), (TUNED, 1), (AUTO, 0))
        for part, values in ((OUT_OF_ERA, TRAINED), (TEST, TESTED))
        for era, value in enumerate(values, 100 * (part == TEST))
    ]  # fmt: skip
    return next_era_scores.forecast_all(pd.DataFrame(rows))


def test_intervals_are_of_the_chosen_candidate(intervals):
    own = intervals[intervals["way"] == next_era_scores.FORECAST]
    for level in next_era_scores.LEVELS:
        half = TRAINED.std(ddof=1) * np.sqrt(1 + 1 / 8) * t.ppf((1 + level) / 2, 7)
        inside = abs(TESTED - TRAINED.mean()) <= half
        for model in (PLAIN, TUNED, AUTO):
            found = own[(own["level"] == level) & (own["model"] == model)]
            assert found["inside"].tolist() == inside.tolist()
            assert found["width"].to_numpy() == pytest.approx(2 * half, rel=1e-3)
            assert found["gap"].to_numpy() == pytest.approx(TESTED - TRAINED.mean())


def test_sets_count_the_same(intervals):
    other = intervals[intervals["era"] == 101]
    other = other.assign(scenario="leaving clients, states")
    drawn = pd.DataFrame({"part": "groups", "cell": "M", "model": "none", "way": "x",
                          "level": 0.8, "inside": [True, False, True, True],
                          "width": 2.0})  # fmt: skip
    table = next_era_scores.tabulate(drawn, pd.concat([intervals, other]))
    found = table.set_index(["part", "cell", "model", "way", "level", "of"])["mean"]
    assert found["groups", "M", "none", "x", "80%", "inside"] == 75
    own = intervals[(intervals["level"] == 0.8) & (intervals["model"] == PLAIN)]
    own = own[own["way"] == next_era_scores.FORECAST]
    of_set = own["inside"].mean()
    cell = "score", PLAIN, next_era_scores.FORECAST, "80%"
    assert found["votes, states", *cell, "inside"] == pytest.approx(100 * of_set)
    expected = 100 * np.mean([of_set, own["inside"].iloc[1]])
    assert found["all sets", *cell, "inside"] == pytest.approx(expected)
    width = own["width"].iloc[0] / TRAINED.std(ddof=1)
    assert found["all sets", *cell, "width"] == pytest.approx(width)
    assert "votes, states" in next_era_scores.show(table)


def test_planted_columns_are_of_their_kind():
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(9), 2000)
    X, y = rng.normal(size=(eras.size, 3)), rng.normal(size=eras.size)
    both = np.column_stack([plant(X, y, eras, rng), y])
    found = np.array([np.corrcoef(both[eras == e].T)[-1, :-1] for e in range(9)])
    for (kind, rho, turns), by_era in zip(KINDS, found.T, strict=True):
        assert np.allclose(np.abs(by_era), rho, atol=0.1), kind
        assert rho == 0 or (0 < (by_era > 0).sum() < 9) == turns


def test_what_harms_later_eras_is_dropped():
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(12), 100)
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
    table = summarize_columns(scores.assign(table="t"))
    means = table[table["case"] == "t"].set_index("what")["mean"]
    assert np.allclose(means[["raw, all", "raw, by 1 error"]], [-0.1, 0.1])


@pytest.mark.slow
def test_the_plain_model_is_left_as_often_as_the_docs_say():
    table = search_rule.run(None, n_runs=2, quick=False)
    rates = table.pivot(index=["error", "rho"], columns="size", values="mean")
    ours = rates.loc[search_rule.OURS]
    # A share of 4,000 draws has a standard error of 0.8 % at most.
    for rho, most in {0.0: 16, 0.3: 25, 0.6: 25, 0.9: 34}.items():
        assert ours.loc[rho].max() < most + 2.5
    columns = [f"{n_folds} x {n_eras}" for n_folds, n_eras in search_rule.SIZES]
    rows = re.findall(r"^\| (0[^|]*)((?:\| \d+ )+)\|$", PAGE.read_text(), re.M)
    assert len(rows) == len(search_rule.RHOS) + 1
    for name, cells in rows:
        rho = search_rule.SHARED if "shared" in name else float(name)
        *printed, most = map(int, re.findall(r"\d+", cells))
        assert abs(ours.loc[rho, columns] - printed).max() < 3.5
        assert rates.loc[search_rule.INDEPENDENT].loc[rho].max() < most + 3.5
