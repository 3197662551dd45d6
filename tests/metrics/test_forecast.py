"""Forecasts of the next era, against formulas and dense linear algebra."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import chi2, norm, t
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import mean_absolute_error, mean_squared_error

from sklearn_era.auto import AutoEraRegressor
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.metrics import EraScoreForecast, era_scores, era_standard_errors
from sklearn_era.metrics._spread import RelatedEras
from sklearn_era.model_selection import EraSearchCV

SCORES = np.array([0.31, 0.42, 0.28, 0.55, 0.40, 0.37, 0.48])
BOTH = [mean_absolute_error, mean_squared_error]
OF_SEVERAL = era_scores([1, 2], [1, 2], eras=[1, 2], metric=BOTH)


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize("error", [None, 0.01, 0.1, 3.0])
def test_with_equal_errors_intervals_are_those_of_student(n, error):
    scores, errors = SCORES[:n], None if error is None else np.full(n, error)
    forecast = EraScoreForecast().fit(scores, errors)
    deviation = scores.std(ddof=1) * np.sqrt(1 + 1 / n)
    for level in (0.5, 0.8, 0.95):
        half = t.ppf((1 + level) / 2, n - 1) * deviation
        low, high = forecast.interval(level)
        expected = scores.mean() - half, scores.mean() + half
        assert_allclose([low, high], expected, rtol=2e-3 * half / abs(expected[0]))
        assert forecast.probability_above(high) == pytest.approx((1 - level) / 2)
    assert forecast.mean_ == pytest.approx(scores.mean())


def dense(model, errors, spread, to):
    """Covariances of eras and of an era to come, computed one by one."""
    z = (np.append(model.places, to) - model.places.mean()) / model.places.std()
    x = np.append(model.places, to)
    related = [
        [(model.rho ** abs(x[i] - x[j]) if i != j else 1.0) + model.slope * z[i] * z[j]
         for j in range(x.size)]
        for i in range(x.size)
    ]  # fmt: skip
    return spread**2 * np.array(related) + np.diag(np.append(errors, 0.0) ** 2)


@pytest.mark.parametrize(("rho", "slope"), [(0.0, 0.0), (0.7, 0.0), (0.0, 1.0)])
def test_predictions_are_those_of_dense_matrices(rho, slope):
    errors = np.array([0.05, 0.2, 0.1, 0.04, 0.03, 0.3, 0.1]) / 4
    places = np.array([0.0, 1, 2, 4, 5, 6, 8])
    n, ones = SCORES.size, np.ones(SCORES.size)
    model = RelatedEras(SCORES, errors, places, rho, slope)
    means, variances = model.predict(10.0, 0.07)
    pooled, variance_of_pooled = model.mean()

    def solve(spread):
        whole = dense(model, errors, spread, 10.0)
        inverse = np.linalg.inv(whole[:n, :n])
        mean = ones @ inverse @ SCORES / (ones @ inverse @ ones)
        residuals = SCORES - mean
        return whole, inverse, mean, residuals @ inverse @ residuals

    for k in (20, 200, 390):
        whole, inverse, mean, q = solve(model.spreads[k])
        share = inverse @ whole[:n, n]
        of_mean = (1 - ones @ share) ** 2 / (ones @ inverse @ ones)
        variance = whole[n, n] - share @ whole[:n, n] + of_mean + 0.07**2
        assert_allclose(means[k], mean + share @ (SCORES - mean), rtol=1e-6)
        assert_allclose(pooled[k], mean, rtol=1e-6)
        of_all = variance_of_pooled[k] / model.factors[k]
        assert_allclose(of_all, 1 / (ones @ inverse @ ones), rtol=1e-6)
        assert_allclose(variances[k] / model.factors[k], variance, rtol=1e-6)
        quantile = chi2.ppf((k + 0.5) / 400, n - 1)
        if model.spreads[k] > 0:
            assert_allclose(q, quantile, rtol=2e-3)
        else:
            assert_allclose(model.factors[k], q / quantile, rtol=1e-6)

    def likelihood(log_spread):
        spread = np.exp(log_spread)
        whole, inverse, _, q = solve(spread)
        part = whole[:n, :n] - np.diag(errors**2)
        prior = np.sqrt(np.trace(inverse @ part @ inverse @ part))
        determinant = np.linalg.slogdet(whole[:n, :n])[1] - 2 * np.log(errors).sum()
        precision = ones @ inverse @ ones
        return prior * np.exp(-(determinant + np.log(precision) + q) / 2)

    expected = quad(likelihood, -12, 6, limit=500, points=[-4, -2, 0])[0]
    assert_allclose(model.log_evidence, np.log(expected), atol=0.01)


def test_eras_in_time_may_be_related():
    rng, weeks = np.random.default_rng(0), np.arange(40)
    noise, level = rng.normal(size=40), np.cumsum(rng.normal(size=40))
    groups, unrelated, slope, level_ahead = (
        EraScoreForecast().fit(scores, eras=eras)
        for scores, eras in [
            (weeks + noise, None), (noise, weeks), (weeks + noise, weeks),
            (level + noise / 4, weeks),
        ]
    )  # fmt: skip
    assert (groups.related_, groups.era_order_) == (0, "unordered")
    assert unrelated.related_ < 0.5
    assert unrelated.era_order_ == slope.era_order_ == "ordered"
    assert min(slope.related_, level_ahead.related_) > 0.99
    assert slope.mean_ == pytest.approx(40, abs=1)
    # As far as it is a slope, ten eras later the score is ten higher.
    far = np.mean(slope.interval(horizon=11))
    assert far - slope.mean_ == pytest.approx(10, abs=0.5)
    low, high = level_ahead.interval()
    assert low < level[-1] < high
    far = level_ahead.interval(horizon=10)
    assert far[0] < low < high < far[1]
    without = EraScoreForecast(trend="none").fit(level, eras=weeks)
    assert (without.related_, without.mean_) == (0, pytest.approx(level.mean()))
    assert without.era_order_ == "unordered"


@pytest.mark.parametrize(("bounds", "to", "back"), [
    ((0, 1), lambda s: np.log(s / (1 - s)), lambda x: 1 / (1 + np.exp(-x))),
    ((None, 1), lambda s: -np.log(1 - s), lambda x: 1 - np.exp(-x)),
    ((0, None), np.log, np.exp),
    ((-1, 1), lambda s: 2 * np.arctanh(s), lambda x: np.tanh(x / 2)),
])  # fmt: skip
def test_bounded_scores_are_compared_where_they_have_no_bounds(bounds, to, back):
    forecast = EraScoreForecast(bounds=bounds).fit(SCORES)
    free = EraScoreForecast().fit(to(SCORES))
    expected = [back(x) for x in (free.mean_, *free.interval(0.95))]
    assert_allclose([forecast.mean_, *forecast.interval(0.95)], expected)
    above = forecast.probability_above(0.4)
    assert above == pytest.approx(free.probability_above(to(0.4)))
    assert forecast.probability_above(7 if bounds[1] else -7) == (not bounds[1])
    # By the slope of the scale at the mean.
    step = 1e-5
    slope = (to(forecast.mean_ + step) - to(forecast.mean_ - step)) / (2 * step)
    assert forecast.spread_ == pytest.approx(free.spread_ / slope, rel=1e-4)
    errors = 0.02 / np.sqrt(1 + SCORES)
    few = EraScoreForecast(bounds=bounds).fit(SCORES, errors)
    narrow, wide = (few.interval(standard_error=x) for x in (0.0, 0.2))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    # Errors are by the slopes of the scale, too, that of the new era at the mean.
    at = np.append(SCORES, few.mean_)
    slopes = (to(at + step) - to(at - step)) / (2 * step)
    free = EraScoreForecast().fit(to(SCORES), errors * slopes[:-1])
    expected = [back(x) for x in free.interval(standard_error=0.2 * slopes[-1])]
    assert_allclose(wide, expected, rtol=1e-5)
    assert few.sampling_error_ == pytest.approx(np.sqrt(np.mean(errors**2)))
    # So are pooled scores, whose deviation stays on that scale.
    ours, pooled = few.pooled_, free.pooled_
    assert_allclose([ours.tau, ours.I2, ours.Q], [pooled.tau, pooled.I2, pooled.Q])
    ends = *pooled.interval(), *free.interval(of="mean")
    expected = back(np.array([pooled.mean, *pooled.shrunken, *ends]))
    ends = *ours.interval(), *few.interval(of="mean")
    assert_allclose([ours.mean, *ours.shrunken, *ends], expected, rtol=1e-5)


def test_a_choice_by_the_same_scores_is_corrected():
    table = np.random.default_rng(1).normal(size=(6, 9))
    table[2, 4] = np.nan
    gains, best = [], int(np.nanmean(table, axis=1).argmax())
    for j in (0, 1, 2, 3, 5, 6, 7, 8):
        others = np.delete(table, j, axis=1)
        gains.append(table[best, j] - table[np.nanmean(others, axis=1).argmax(), j])
    forecast = EraScoreForecast().fit(table)
    assert forecast.optimism_ == pytest.approx(np.mean(gains))
    assert np.mean(gains) > 0
    assert_allclose(forecast.scores_, table[best])
    expected = np.nanmean(table[best]) - forecast.optimism_
    assert forecast.mean_ == pytest.approx(expected)
    # Without its worst era, a candidate may be the best, however bad it is there.
    table[3] += 5
    table[3, 0] = -1e20
    gain = table[np.nanmean(table, axis=1).argmax(), 0] + 1e20
    assert EraScoreForecast().fit(table).optimism_ >= gain / 9


def test_scores_are_taken_from_what_has_them():
    rng = np.random.default_rng(0)
    weeks, X = np.repeat(np.arange(12), 30), rng.normal(size=(360, 2))
    y = X[:, 0] + rng.normal(size=360)
    scores = era_scores(y, X[:, 0], eras=weeks, metric=mean_squared_error)
    by_era = EraScoreForecast().fit(scores)
    backward = EraScoreForecast().fit(scores.scores[::-1], eras=weeks[::-30])
    assert by_era.mean_ == pytest.approx(backward.mean_)
    assert by_era.eras_.tolist() == backward.eras_.tolist() == [*range(12)]
    # Only a forecast without order differs.
    groups = EraScoreForecast(trend="none").fit(scores)
    assert groups.mean_ == pytest.approx(scores.mean())
    for make in (pd.Series, pl.Series, list):
        again = EraScoreForecast().fit(make(scores.scores), eras=make(range(12)))
        assert again.interval() == by_era.interval()
    plain = HistGradientBoostingRegressor(max_iter=5)
    search = EraSearchCV(plain, {"max_leaf_nodes": [2, 3]}, rule="best")
    search.fit(X, y, eras=weeks)
    found = EraScoreForecast().fit(search)
    assert_allclose(found.scores_, search.era_scores_[search.best_index_])
    assert found.eras_.tolist() == search.era_labels_.tolist()
    assert found.related_ > 0
    table = EraScoreForecast().fit(search.era_scores_, eras=search.era_labels_)
    assert found.interval() == table.interval()
    auto = AutoEraRegressor(plain, members=["leaves_4"], era_order="unordered")
    auto.fit(X, y, eras=weeks)
    for weight, kept in ((1.0, 0), (0.5, -1)):
        auto.weights_ = {"plain": weight, "leaves_4": 1 - weight}
        found = EraScoreForecast().fit(auto)
        assert_allclose(found.scores_, auto.era_scores_[kept])
    assert found.related_ == found.optimism_ == 0
    copied = pickle.loads(pickle.dumps(found))
    assert copied.interval() == found.interval()
    assert clone(found).get_params() == EraScoreForecast().get_params()


def test_errors_are_taken_with_their_labels():
    eras, rng = np.repeat(["a", "b", "c"], 30), np.random.default_rng(0)
    y, p = rng.normal(size=(2, 90))
    given = {"eras": eras, "metric": mean_squared_error}
    scores, errors = era_scores(y, p, **given), era_standard_errors(y, p, **given)
    found = EraScoreForecast("none").fit(scores, errors)
    again = EraScoreForecast("none").fit(scores, errors.scores)
    assert found.interval() == again.interval()
    others = era_standard_errors(y, p, **given | {"eras": np.repeat([1, 2, 3], 30)})
    with pytest.raises(ValueError, match="standard_errors has other labels than"):
        EraScoreForecast("none").fit(scores, others)


def test_more_eras_make_intervals_narrow():
    forecast = EraScoreForecast().fit(SCORES, np.full(7, 0.05))
    variance = forecast.spread_**2 + 0.05**2
    for of, share in (("mean", 0.0), ("next_era", 1.0)):
        for width in (0.26, 0.3, 0.6):
            n = forecast.eras_needed(width, level=0.8, of=of)
            m = np.array([n, n - 1])
            half = t.ppf(0.9, m - 1) * np.sqrt(variance * (share + 1 / m))
            assert 2 * half[0] <= width
            assert n == 2 or 2 * half[1] > width
    assert forecast.eras_needed(0.1) == np.inf


@pytest.mark.parametrize(("options", "given", "message"), [
    ({}, {"scores": [1.0]}, "scores has 1 known score"),
    ({}, {"scores": [1, -np.inf, 2], "eras": [7, 8, 9]}, "scores of era 8 is infinite"),
    ({"trend": "none"}, {"scores": [1, 2], "standard_errors": [1, np.inf]},
     "standard_errors of era 1 is negative or inf"),
    ({}, {"scores": [1.0, 2.0], "standard_errors": [1.0]}, "one of each per era"),
    ({"trend": "none"},
     {"scores": [1, 2], "standard_errors": [1, -1], "eras": ["a", "b"]},
     "standard_errors of era b is negative"),
    ({}, {"scores": [1, 2], "eras": [3, 3]}, "eras has a label twice"),
    ({}, {"scores": [1, 2], "eras": [1]}, "eras has 1 labels, but scores has 2"),
    ({}, {"scores": [1, 2, 3], "eras": ["x", "y", "z"]},
     "pass era_order='unordered'"),
    ({"era_order": "ordered"}, {"scores": [1, 2], "eras": [[0, 1], [1, 0]]},
     "is for one column of eras; of two, times and groups, pass"),
    ({"bounds": (0, 1)}, {"scores": [0.5, 1.0]}, "which go from 0.5 to 1: pass"),
    ({"bounds": (1, 0)}, {"scores": [0.5, 0.6]}, "must be two ends of a range"),
    ({"bounds": ("0", 1)}, {"scores": [0.5, 0.6]}, "must be two ends of a range"),
    ({"trend": "linear"}, {"scores": [1, 2]}, "The 'trend' parameter"),
    ({}, {"scores": OF_SEVERAL}, "scores are of several metrics, or"),
    ({}, {"scores": [1, 2], "standard_errors": OF_SEVERAL},
     r"EraScores of several metrics, \['mean_absolute_error', 'mean_squared_error'\]"),
])  # fmt: skip
def test_what_cannot_be_fitted_is_refused(options, given, message):
    if "era_order='unordered'" in message:
        without, alike = {"trend": "none"}, {"era_order": "unordered"}
        found = [EraScoreForecast(**x).fit(**given) for x in (without, alike)]
        assert found[0].interval() == found[1].interval()
        assert found[0].era_order_ == found[1].era_order_ == "unordered"
    forecast = EraScoreForecast("none").fit(SCORES)
    before = forecast.interval(), forecast.scores_.tolist()
    with pytest.raises(ValueError, match=message):
        forecast.set_params(**{"trend": "auto", **options}).fit(**given)
    assert (forecast.interval(), forecast.scores_.tolist()) == before


@pytest.mark.parametrize(("ask", "message"), [
    (lambda x: x.interval(1.0), "level == 1.0, must be < 1"),
    (lambda x: x.interval(horizon=0), "horizon == 0, must be >= 1"),
    (lambda x: x.interval(standard_error=-1.0), "standard_error == -1.0"),
    (lambda x: x.eras_needed(0.0), "width == 0.0, must be > 0"),
    (lambda x: x.eras_needed(1.0, of="median"), "of must be 'next_era' or"),
    (lambda x: x.interval(of="median"), "of must be 'next_era' or 'mean'"),
    (lambda x: x.interval(of="mean", horizon=2), "of='mean' is of all eras there"),
    (lambda x: x.interval(of="mean", standard_error=0.1), "of='mean' is of all eras"),
    (lambda x: x.interval(of="mean", group="a"), "of='mean' is of all eras"),
    (lambda x: x.interval(group=1), "group=1 is for scores by groups and eras"),
    (lambda x: x.pooled_.interval(test="t"), "test must be 'knha' or 'z'; got 't'"),
    (lambda x: x.pooled_.tau_interval(95), "level == 95, must be < 1"),
    (lambda x: x.probability_above(np.nan), "threshold is NaN: pass a number"),
    (lambda x: x.interval(np.nan), "level is NaN"),
    (lambda x: x.pooled_.interval(np.nan), "level is NaN"),
    (lambda x: x.interval(standard_error=np.nan), "standard_error is NaN"),
    (lambda x: x.eras_needed(np.nan), "width is NaN"),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused(ask, message):
    with pytest.raises(NotFittedError):
        EraScoreForecast().interval()
    with pytest.raises(ValueError, match=message):
        ask(EraScoreForecast().fit(SCORES))


@pytest.mark.parametrize("eras", [False, True])
@pytest.mark.parametrize("value", [0.0, 0.7, 1.0, -3e9])
def test_equal_scores_have_the_spread_of_their_errors_alone(value, eras):
    for n in (2, 3, 6):
        forecast = EraScoreForecast()
        forecast.fit(np.full(n, value), eras=range(n) if eras else None)
        assert_allclose(forecast.interval(), value, rtol=1e-6, atol=1e-12)
        for threshold in (value, value - 1, value + 1):
            assert 0 <= forecast.probability_above(threshold) <= 1
        assert forecast.spread_ == 0
    forecast.fit(np.full(6, value), np.full(6, 0.1), eras=range(6) if eras else None)
    half = np.ptp(forecast.interval()) / 2
    expected = norm.ppf(0.9) * 0.1 * np.sqrt(1 + 1 / 6)
    assert half == pytest.approx(expected, rel=0.2 if eras else 1e-3)


def test_larger_errors_of_a_new_era_make_intervals_wide():
    flat = EraScoreForecast().fit([0.5] * 5 + [0.501], np.full(6, 0.1))
    asked = (0.0, 0.1, 0.11, 0.2, 1.0)
    halves = [np.ptp(flat.interval(standard_error=e)) / 2 for e in asked]
    assert (np.diff(halves) > 0).all()
    assert halves[-1] == pytest.approx(norm.ppf(0.9), rel=2e-3)
    assert halves[1] < 0.01  # that of Student, by the same scores
    rng, hits = np.random.default_rng(0), []
    for _ in range(30):
        scores = 0.7 + 0.1 * rng.normal(size=5)
        forecast = EraScoreForecast(trend="none").fit(scores, np.full(5, 0.1))
        low, high = forecast.interval(standard_error=1.0)
        hits.append(norm.cdf(high - 0.7) - norm.cdf(low - 0.7))
    assert 0.79 < np.mean(hits) < 0.83


@pytest.mark.parametrize("factor", [1e-12, 1e-60, 1e60])
def test_units_of_scores_do_not_matter(factor):
    expected = EraScoreForecast().fit(SCORES, SCORES / 9).interval()
    found = EraScoreForecast().fit(SCORES * factor, SCORES / 9 * factor).interval()
    assert_allclose(np.array(found) / factor, expected)


def test_optimism_is_taken_off_where_scores_have_no_bounds():
    rng = np.random.default_rng(4)
    table = np.abs(rng.normal(0.05, 0.03, (6, 6))) + 0.001
    forecast = EraScoreForecast(bounds=(0, 1)).fit(table)
    free = EraScoreForecast().fit(table)
    assert forecast.optimism_ == free.optimism_ > forecast.scores_.min()
    scaled = np.log(forecast.scores_ / (1 - forecast.scores_))
    middle = 1 / (1 + np.exp(-scaled.mean()))
    scaled -= forecast.optimism_ / (middle * (1 - middle))
    expected = np.array(EraScoreForecast().fit(scaled).interval())
    assert_allclose(forecast.interval(), 1 / (1 + np.exp(-expected)))


def test_eras_with_an_unknown_error_are_left_out_with_a_warning():
    errors, labels = np.full(7, 0.05), np.array([*"abcdefg"])
    errors[[1, 4]] = np.nan
    with pytest.warns(UserWarning, match="NaN for era b, e, whose rows do not tell it"):
        found = EraScoreForecast(trend="none").fit(SCORES, errors, labels)
    kept = [0, 2, 3, 5, 6]
    expected = EraScoreForecast("none").fit(SCORES[kept], errors[kept], labels[kept])
    assert found.interval() == pytest.approx(expected.interval())
    assert found.pooled_.mean == pytest.approx(expected.pooled_.mean)
    assert found.to_frame().index[found.to_frame()["weight"].notna()].size == 5
