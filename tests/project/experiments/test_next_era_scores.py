"""The shares of test eras inside their intervals, of scores that are made up."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from experiments import next_era_scores
from experiments._next_era_data import AUTO, OUT_OF_ERA, PLAIN, TEST, TUNED

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
    other = intervals[intervals["era"] == 101].assign(
        scenario="leaving clients, states"
    )
    drawn = pd.DataFrame({
        "part": "groups", "cell": "M", "model": "none", "way": "x", "level": 0.8,
        "inside": [True, False, True, True], "width": 2.0,
    })  # fmt: skip
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
