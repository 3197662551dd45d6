"""Forecasts of a new group in a later era, against REML and simulated tables."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from sklearn_era.metrics import EraScoreForecast


def draw(n_groups, n_eras, spreads, seed):
    rng = np.random.default_rng(seed)
    group, era = np.indices((n_groups, n_eras)).reshape(2, -1)
    a, b, c = spreads
    scores = a * rng.normal(size=n_groups)[group] + b * rng.normal(size=n_eras)[era]
    return scores + c * rng.normal(size=group.size), (group, era)


def test_balanced_tables_have_the_components_of_mean_squares():
    scores, eras = draw(12, 20, (1, 2, 1), 0)
    forecast = EraScoreForecast("none", era_order=("unordered", "ordered"))
    forecast.fit(scores, eras=np.column_stack(eras))
    table = scores.reshape(12, 20)
    rest = table - table.mean(axis=0) - table.mean(axis=1)[:, None] + table.mean()
    residual = (rest**2).sum() / (11 * 19)
    expected = [
        np.sqrt(table.mean(axis=1).var(ddof=1) - residual / 20),
        np.sqrt(table.mean(axis=0).var(ddof=1) - residual / 12),
        np.sqrt(residual),
    ]
    assert_allclose([*forecast.components_.values()], expected, rtol=0.01)
    assert forecast.mean_ == pytest.approx(scores.mean())


@pytest.mark.parametrize("spreads", [(1, 1, 1), (0, 1, 1), (2, 1, 1)])
def test_intervals_cover_a_new_group_in_a_later_era(spreads):
    covered = []
    for seed in range(60):
        scores, eras = draw(10, 20, spreads, seed)
        forecast = EraScoreForecast("none", era_order=("unordered", "ordered"))
        low, high = forecast.fit(scores, eras=np.column_stack(eras)).interval(0.8)
        covered.append(np.diff(norm.cdf([low, high], scale=np.linalg.norm(spreads)))[0])
    assert 0.76 < np.mean(covered) < 0.84


def test_pairs_of_labels_come_once():
    with pytest.raises(ValueError, match="a pair of labels twice"):
        EraScoreForecast(era_order=("unordered", "ordered")).fit(
            [1.0, 2.0, 3.0], eras=np.array([[0, 0], [0, 0], [1, 1]])
        )
