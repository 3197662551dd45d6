"""Pooled scores, against R's metafor and by simulation; tables of a forecast."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, t
from sklearn.metrics import mean_squared_error

from helpers import peak_memory
from sklearn_era import metrics
from sklearn_era.metrics import EraScoreForecast, era_scores, era_standard_errors

ORDER = ("unordered", "ordered")
SCORES = np.array([0.31, 0.42, 0.28, 0.55, 0.40, 0.37, 0.48])
# Colditz et al. (1994): cases and others, vaccinated against tuberculosis and not; the
# `dat.bcg` of metafor.
TRIALS = np.array([
    [4, 119, 11, 128], [6, 300, 29, 274], [3, 228, 11, 209], [62, 13536, 248, 12619],
    [33, 5036, 47, 5761], [180, 1361, 372, 1079], [8, 2537, 10, 619],
    [505, 87886, 499, 87892], [29, 7470, 45, 7232], [17, 1699, 65, 1600],
    [186, 50448, 141, 27197], [5, 2493, 3, 2338], [27, 16886, 29, 17825],
])  # fmt: skip


def log_risk_ratios():
    ill, well, ill_other, well_other = TRIALS.T
    both, others = ill + well, ill_other + well_other
    ratios = np.log(ill / both) - np.log(ill_other / others)
    return ratios, np.sqrt(1 / ill - 1 / both + 1 / ill_other - 1 / others)


def test_numbers_are_those_of_metafor():
    """As printed by metafor 3.8 for ``rma(yi, vi, data=dat, test="knha")``."""
    forecast = EraScoreForecast().fit(*log_risk_ratios())
    pooled = forecast.pooled_
    found = [pooled.mean, pooled.standard_error, pooled.tau2, pooled.I2, pooled.Q]
    expected = [-0.714532, 0.179782, 0.313243, 92.221386, 152.233008]
    assert_allclose(found, expected, rtol=3e-6)
    assert pooled.tau == pytest.approx(0.313243**0.5, rel=1e-5)
    for test, ends in (("z", (-1.066898, -0.362167)), ("knha", (-1.108444, -0.320621))):
        assert_allclose(pooled.interval(test=test), ends, rtol=3e-6)
    weights = [5.0595, 6.3647, 4.4360, 9.6987, 8.8685, 10.0957, 6.0272, 10.1894, 8.7431,
               8.3676, 9.9250, 3.8216, 8.4029]  # fmt: skip
    assert_allclose(100 * pooled.weight, weights, atol=6e-5)
    blup = [-0.80023, -1.25171, -0.98690, -1.39790, -0.28738, -0.78457, -1.24396,
            0.00288, -0.50684, -1.24717, -0.35366, -0.28473, -0.14674]  # fmt: skip
    assert_allclose(pooled.shrunken, blup, atol=6e-6)
    assert pooled.p_value == pytest.approx(chi2.sf(152.233008, 12), rel=1e-4)
    # As ``confint`` prints it, by the Q-profile.
    assert_allclose(pooled.tau_interval(), [0.3460, 1.0543], atol=6e-5)
    expected = (
        "PooledScore of 13 eras: mean -0.7145, 95 % from -1.108 to -0.3206; tau 0.5597,"
        " I2 92.2 %, Q 152.2 (p = 2e-26)"
    )
    assert repr(pooled) == expected
    # By the model of the forecast, in which tau is not known, it is a bit wider.
    assert_allclose(forecast.interval(0.95, of="mean"), [-1.123, -0.323], atol=1e-3)


def test_deviations_between_eras_have_intervals():
    alone = EraScoreForecast().fit(SCORES).pooled_
    known = SCORES.std(ddof=1) * np.sqrt(6 / chi2.ppf([0.975, 0.025], 6))
    assert_allclose(alone.tau_interval(), known, rtol=1e-5)
    assert np.isnan(alone.p_value)
    none = EraScoreForecast().fit(SCORES, np.full(7, 0.5)).pooled_
    assert (none.tau, none.tau_interval()[0]) == (0.0, 0.0)
    assert none.p_value > 0.99
    assert EraScoreForecast().fit([0.5, 0.5, 0.5]).pooled_.tau_interval() == (0, 0)


@pytest.mark.parametrize("error", [None, 0.01, 0.05])
def test_with_equal_errors_the_mean_has_the_interval_of_student(error):
    errors = None if error is None else np.full(7, error)
    forecast = EraScoreForecast().fit(SCORES, errors)
    half = t.ppf(0.975, 6) * SCORES.std(ddof=1) / np.sqrt(7)
    expected = SCORES.mean() + np.array([-half, half])
    assert_allclose(forecast.pooled_.interval(), expected)
    assert_allclose(forecast.interval(0.95, of="mean"), expected, rtol=1e-3)
    total = forecast.pooled_.tau2 + (error or 0) ** 2
    assert total == pytest.approx(SCORES.var(ddof=1), rel=1e-5)
    assert forecast.pooled_.standard_error == pytest.approx(np.sqrt(total / 7))
    above = forecast.probability_above(expected[0], of="mean")
    assert above == pytest.approx(0.975, abs=1e-3)
    assert np.isnan([forecast.pooled_.Q, forecast.pooled_.I2]).all() == (error is None)

    # Equal scores have the errors of their rows.
    pooled = EraScoreForecast().fit(np.full(6, 0.7), np.full(6, 0.1)).pooled_
    assert pooled.tau == pooled.I2 == 0
    assert pooled.standard_error == pytest.approx(0.1 / np.sqrt(6))
    pooled = EraScoreForecast().fit(np.full(6, 0.7)).pooled_
    assert_allclose(pooled.interval(), 0.7)


def test_a_table_has_what_a_forest_plot_shows():
    eras = np.repeat(["north", "east", "south", "west"], [40, 30, 20, 1])
    y, p = np.random.default_rng(0).normal(size=(2, 91))
    given = {"eras": eras, "metric": mean_squared_error}
    scores, errors = era_scores(y, p, **given), era_standard_errors(y, p, **given)
    scores.scores[3] = np.nan  # of a single row
    forecast = EraScoreForecast("none").fit(scores, errors)
    table, pooled = forecast.to_frame(), forecast.pooled_
    assert isinstance(pooled, metrics.PooledScore)
    assert table.index.tolist() == ["east", "north", "south", "west"]
    names = ["score", "standard_error", "weight", "shrunken", "n_samples"]
    assert table.columns.tolist() == names
    assert table["n_samples"].tolist() == [30, 40, 20, 1]
    assert_allclose(table["score"], scores.scores)
    assert_allclose(table["standard_error"], errors.scores)
    assert table.loc["west", ["weight", "shrunken"]].isna().all()
    assert table["weight"].sum() == pytest.approx(1)
    assert_allclose(table["weight"][:3] @ table["score"][:3], pooled.mean)
    weights = 1 / (errors.scores[:3] ** 2 + pooled.tau2)
    assert_allclose(table["weight"][:3], weights / weights.sum())
    plain = EraScoreForecast("none").fit(SCORES).to_frame()
    assert plain.columns.tolist() == names[:4]
    week, shop = (x.ravel() for x in np.indices((5, 4)))
    by_pair = EraScoreForecast(era_order=("ordered", "unordered"))
    by_pair.fit(np.arange(20.0) % 7, eras={"w": week, "s": shop})
    table = by_pair.to_frame()
    assert isinstance(table.index, pd.MultiIndex)
    assert table.loc[(2, 3), "score"] == 4
    assert by_pair.pooled_ is None


def test_the_mean_of_groups_and_eras_is_nearer_than_a_new_score():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(12, 1)) + rng.normal(size=8) + rng.normal(size=(12, 8))
    group, week = np.indices(table.shape)
    for errors in (None, np.full(96, 0.3)):
        forecast = EraScoreForecast("none", era_order=ORDER)
        given = {"group": group.ravel(), "week": week.ravel()}
        forecast.fit(table.ravel(), errors, eras=given)
        low, high = forecast.interval(0.95, of="mean")
        ahead = forecast.interval(0.95)
        assert ahead[0] < low < table.mean() < high < ahead[1]
        assert low + high == pytest.approx(2 * table.mean(), abs=0.02)


@pytest.mark.parametrize("eras", [None, np.arange(1500)])
def test_thousands_of_eras_need_no_matrix(eras):
    rng = np.random.default_rng(0)
    scores, errors = rng.normal(size=1500), rng.uniform(0.5, 1, 1500)
    forecast, peak = peak_memory(EraScoreForecast().fit, scores, errors, eras)
    peak = max(peak, peak_memory(forecast.interval)[1])
    assert peak < 5e6  # a matrix of pairs has 1.8e7 bytes
    assert (forecast.related_ > 0) == (eras is not None)


@pytest.mark.slow
@pytest.mark.parametrize("n_eras", [3, 5, 12, 30])
@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0, 4.0])
def test_intervals_of_the_mean_hold(n_eras, spread):
    """Of 1,000 draws; errors of eras differ by factors of up to ten."""
    rng, inside = np.random.default_rng(0), np.zeros((3, 2))
    for _ in range(1000):
        errors = np.sqrt(rng.gamma(1, size=n_eras) + 0.05)
        scores = spread * rng.normal(size=n_eras) + errors * rng.normal(size=n_eras)
        forecast = EraScoreForecast().fit(scores, errors)
        for column, level in enumerate((0.8, 0.95)):
            for row, (low, high) in enumerate((
                forecast.interval(level, of="mean"), forecast.pooled_.interval(level),
                forecast.pooled_.interval(level, test="z"),
            )):  # fmt: skip
                inside[row, column] += low <= 0 <= high
    shares = inside / 1000
    print(n_eras, spread, *shares.ravel())
    assert (shares[0] > [0.75, 0.93]).all()
    assert (shares[0] < [0.88, 0.985]).all()
    assert shares[1, 1] > 0.9
    if spread >= 1 and n_eras <= 5:
        assert shares[2, 1] < 0.9


@pytest.mark.slow
def test_intervals_of_the_mean_of_groups_and_eras_hold():
    rng, (group, week) = np.random.default_rng(0), np.indices((8, 8)).reshape(2, -1)
    inside, given = 0, {"eras": {"group": group, "week": week}}
    for _ in range(200):
        scores = rng.normal(size=8)[group] + rng.normal(size=8)[week]
        scores += rng.normal(size=64)
        forecast = EraScoreForecast("none", era_order=ORDER).fit(scores, **given)
        low, high = forecast.interval(of="mean")
        inside += low <= 0 <= high
    assert abs(inside / 200 - 0.8) < 0.07
