"""Forecasts of a new group in a later era, against REML and dense linear algebra."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from helpers.grids import slow
from sklearn_era.metrics import EraScoreForecast, era_scores
from sklearn_era.metrics._crossed import CrossedEras, Variances

ORDER = ("unordered", "ordered")


def draw(shape, spreads, seed, missing=0.0):
    """Return scores of groups in eras, and both labels."""
    rng = np.random.default_rng(seed)
    group, era = np.indices(shape).reshape(2, -1)
    scores = spreads[0] * rng.normal(size=shape[0])[group]
    scores += spreads[1] * rng.normal(size=shape[1])[era]
    scores += spreads[2] * rng.normal(size=group.size)
    is_known = rng.random(group.size) >= missing
    return scores[is_known], (group[is_known], era[is_known])


def fit(scores, eras, errors=None, trend="none", **params):
    forecast = EraScoreForecast(trend, era_order=ORDER, **params)
    return forecast.fit(scores, errors, eras=eras)


def components(forecast):
    return [forecast.components_[x] for x in ("groups", "eras", "residual")]


# Those of statsmodels 0.15.0, MixedLM with variance components, by REML.
def test_components_are_those_of_statsmodels():
    for seed, missing, *expected in (
        (0, 0.0, 0.83560, 2.13661, 0.92173),
        (1, 0.4, 0.37343, 0.80246, 0.96631),
    ):
        forecast = fit(*draw((12, 10), (1, 2, 1), seed, missing))
        assert_allclose(components(forecast), expected, rtol=1e-3)


def test_balanced_tables_have_the_components_of_mean_squares():
    scores, eras = draw((12, 20), (1, 2, 1), 0)
    forecast, table = fit(scores, np.column_stack(eras)), scores.reshape(12, 20)
    rest = table - table.mean(axis=0) - table.mean(axis=1)[:, None] + table.mean()
    residual = (rest**2).sum() / (11 * 19)
    of_groups = table.mean(axis=1).var(ddof=1) - residual / 20
    of_eras = table.mean(axis=0).var(ddof=1) - residual / 12
    expected = np.sqrt([of_groups, of_eras, residual])
    assert_allclose(components(forecast), expected, rtol=1e-3)
    assert forecast.mean_ == pytest.approx(scores.mean())


def standard_table(seed, are_related, has_errors):
    """Return a model of a small table of mean 0 and deviation 1, and its cells."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(5, 7))
    table[rng.random(table.shape) < 0.25] = np.nan
    table = (table - np.nanmean(table)) / np.nanstd(table, ddof=1)
    errors = rng.uniform(0.1, 0.9, size=table.shape) * has_errors
    model = CrossedEras(table, errors, are_related)
    group, era = np.nonzero(~np.isnan(table))
    return model, table[group, era], errors[group, era], group, era


def correlation(era, other, rho, slope):
    distance = abs(era[:, None] - other)
    center, width = 3.0, 2.0  # of seven eras
    of_slope = slope * np.outer(era - center, other - center) / width**2
    return np.where(distance == 0, 1.0, rho**distance) + of_slope


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("has_errors", [False, True])
@pytest.mark.parametrize("relation", [(0.0, 0.0), (0.0, 30.0), (0.7, 0.0)])
def test_likelihoods_are_those_of_the_normal_distribution(seed, has_errors, relation):
    model, scores, errors, group, era = standard_table(seed, True, has_errors)
    rng = np.random.default_rng(seed)
    row, *columns = rng.gamma(1.0, size=4)
    residual = rng.gamma(1.0) if has_errors else 1.0
    equations = model._equations(model._relations.index(relation), row, residual)
    logs, squares = model._likelihoods(equations, np.array(columns))
    n, expected = scores.size - 1, []
    for column in columns:
        V = row * (group[:, None] == group) + np.diag(residual + errors**2)
        V += column * correlation(era, era, *relation)
        precision = np.linalg.inv(V)
        of_ones = precision.sum(axis=0)
        q = scores @ precision @ scores - (of_ones @ scores) ** 2 / of_ones.sum()
        fit = q if has_errors else n * np.log(q)
        determinant = np.linalg.slogdet(V)[1] + np.log(of_ones.sum())
        expected.append([-(determinant + fit) / 2, q])
    rtol = 1e-9 if has_errors else 1e-7  # with 1e-8 in place of errors
    assert_allclose(np.transpose([logs, squares]), expected, rtol=rtol)


@pytest.mark.parametrize("group", [None, 2])
@pytest.mark.parametrize("relation", [None, (0.0, 0.0), (0.0, 30.0), (0.7, 0.0)])
def test_predictions_are_those_of_dense_algebra(group, relation):
    model, scores, errors, of_cell, era = standard_table(4, relation is not None, True)
    row, column, residual, error = 0.5, 0.7, 0.3, 0.2
    pair = (column, row) if model._is_turned else (row, column)
    assert model._is_turned == (relation is None)
    at = model._relations.index(relation or (0.0, 0.0))
    found = Variances(at, pair[0], residual, np.array([pair[1]]), *np.zeros((2, 1)))
    model._grids, model._variances = [found], found.table()
    model._factors = np.ones((1, 1))
    [weight], [mean], [deviation] = model.predict(8.0, error, group)
    related = correlation(era, np.array([8.0]), *(relation or (0, 0)))[:, 0]
    V = row * (of_cell[:, None] == of_cell) + np.diag(residual + errors**2)
    V += column * correlation(era, era, *(relation or (0, 0)))
    shared, precision = row * (of_cell == group) + column * related, np.linalg.inv(V)
    of_ones = precision.sum(axis=0)
    center = of_ones @ scores / of_ones.sum()
    expected = center + shared @ precision @ (scores - center)
    own = row + residual + error**2
    own += column * correlation(np.array([8.0]), 8.0, *(relation or (0, 0)))[0, 0]
    own += (1 - shared @ of_ones) ** 2 / of_ones.sum() - shared @ precision @ shared
    assert_allclose([weight, mean, deviation], [1, expected, np.sqrt(own)])


@pytest.mark.parametrize("spreads", [slow((1, 1, 1)), (0, 1, 1), slow((2, 1, 1))])
def test_intervals_cover_a_later_era(spreads):
    """Of a new group, and of a known one."""
    covered = []
    for seed in range(40):
        forecast = fit(*draw((10, 20), spreads, seed))
        level = spreads[0] * np.random.default_rng(seed).normal(size=10)[0]
        covered.append([
            np.diff(norm.cdf(forecast.interval(0.8, group=group), mean, spread))[0]
            for group, mean, spread in (
                (None, 0.0, np.linalg.norm(spreads)),
                (0, level, np.linalg.norm(spreads[1:])),
            )
        ])  # fmt: skip
    assert_allclose(np.mean(covered, axis=0), 0.8, rtol=0, atol=0.03)


def test_groups_and_eras_without_an_order_are_alike():
    scores, (group, era) = draw((6, 9), (1, 2, 1), 3, 0.2)
    one, other = fit(scores, (group, era)), fit(scores, (era, group))
    assert_allclose(one.interval(0.8), other.interval(0.8), rtol=1e-6)
    of_era, of_group, residual = components(other)
    assert_allclose(components(one), [of_group, of_era, residual], rtol=1e-4)


def test_the_spread_is_that_of_new_groups():
    forecast = fit(*draw((30, 30), (1, 2, 1), 3))
    spread = forecast._model.spread()
    forecast.interval(group=3)
    assert forecast._model.spread() == spread == forecast.spread_
    total = np.linalg.norm(components(forecast))
    assert forecast.spread_ == pytest.approx(total, rel=0.03)


def test_no_errors_are_like_small_ones():
    scores, eras = draw((2, 2), (1, 1, 1), 1)
    ends = fit(scores, eras).interval(0.8)
    assert_allclose(ends, fit(scores, eras, np.full(4, 0.01)).interval(0.8), rtol=0.05)


def test_eras_with_a_slope_go_on():
    scores, (group, era) = draw((5, 12), (0.3, 0.3, 0.3), 1)
    forecast = fit(scores + era, (group, era), trend="auto")
    assert forecast.related_ > 0.99
    for horizon in (1, 4):
        low, high = forecast.interval(0.9, horizon=horizon)
        assert low < 11 + horizon < high < low + 4


def test_labels_come_in_any_form():
    rng = np.random.default_rng(0)
    week, shop = np.repeat(np.indices((8, 5)).reshape(2, -1), 20, axis=1)
    y = rng.normal(size=week.size) + shop
    data = pd.DataFrame({"shop": [f"shop {i}" for i in shop], "week": week})

    def metric(y_true, y_pred):
        return float(np.mean(y_true - y_pred))

    scores = era_scores(y, np.zeros(y.size), eras=data, metric=metric)
    forecast = EraScoreForecast().fit(scores)
    again = EraScoreForecast().fit(scores.scores, eras=tuple(scores.levels.values()))
    assert forecast.interval() == again.interval()
    assert forecast.eras_[0] == (0, "shop 0")
    low, high = forecast.interval(0.8, group="shop 4")
    assert low < 4 < high < low + 2
    above = forecast.probability_above(low, group="shop 4")
    assert above == pytest.approx(0.9, abs=1e-6)


def test_bounds_hold_and_missing_scores_are_left_out():
    scores, eras = draw((8, 9), (1, 1, 1), 0)
    errors = np.full(scores.size, 0.02)
    scores = 1 / (1 + np.exp(-3 - scores))
    is_known = np.arange(scores.size) % 5 > 0
    forecast = fit(np.where(is_known, scores, np.nan), eras, errors, bounds=(0, 1))
    kept = tuple(x[is_known] for x in eras)
    same = fit(scores[is_known], kept, errors[is_known], bounds=(0, 1))
    assert forecast.interval() == same.interval()
    low, high = forecast.interval(0.99)
    assert 0 < low < forecast.mean_ < high < 1


def test_errors_name_what_is_wrong():
    for last, pairs, errors, message in (
        (3, [[0, 0], [0, 0], [1, 1]], None, "a pair of labels twice"),
        (3, [[0, 0], [0, 1], [0, 2]], None, "known of a single group"),
        (3, [[0, 0], [1, 0], [2, 0]], None, "known of a single time"),
        (np.inf, [[0, 0], [0, 1], [1, 1]], None, r"era \(1, 1\) is inf"),
        (3, [[0, 0], [0, 1], [1, 1]], [0, -1, 0], r"era \(1, 0\) is neg"),
        (3, [[0, 0], [0, 1], [1, 1]], [0, 0], "pass one of each per pair"),
    ):
        with pytest.raises(ValueError, match=message):
            fit([1, 2, last], np.array(pairs), errors)


def test_questions_of_one_column_and_of_two_are_told_apart():
    forecast = fit(*draw((4, 5), (1, 1, 1), 0))
    with pytest.raises(ValueError, match=r"group='none' is no group of fit"):
        forecast.interval(group="none")
    with pytest.raises(ValueError, match="eras_needed counts eras of one column"):
        forecast.eras_needed(1.0)
    with pytest.raises(ValueError, match=r"era_order=.* needs scores of one metric"):
        EraScoreForecast(era_order=ORDER).fit([1.0, 2.0, 3.0])
