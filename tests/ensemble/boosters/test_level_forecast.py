"""Levels of eras, against dense covariance matrices and simulated shops."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from numpy.linalg import inv, slogdet
from sklearn.base import clone

from helpers.data import make_data, make_drift
from helpers.estimators import ours
from helpers.grids import on_grid, slow
from sklearn_era._era_calendar import horizons
from sklearn_era._eras import encode_eras
from sklearn_era.effects import Intercepts
from sklearn_era.ensemble import BinnedDataset
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._boosters import level_forecast as levels
from sklearn_era.ensemble._boosters.era_effects import _groups_of, constant_columns
from sklearn_era.ensemble._boosters.level_forecast import Level, Series
from sklearn_era.model_files import load_model, save_model

AUTO = Intercepts(forecast="auto")


def make_series(n_eras=30, n_groups=4, seed=0, unknown=(3, 17), steps=0.3):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, n_eras)
    values = np.cumsum(steps * rng.normal(size=n_eras)) + rng.normal(size=n_eras) / 5
    variances = rng.uniform(0.01, 0.05, n_eras)
    variances[list(unknown)] = np.nan
    return Series(values + groups, variances, groups)


def covariances(n_eras, level):
    """Those of the level in all eras and one more, from its definition."""
    places = np.arange(n_eras + 1) - (n_eras - 1) / 2
    lags = np.abs(np.subtract.outer(places, places))
    decaying = level.q / (1 - level.phi**2) * level.phi**lags
    return decaying + level.trend * np.outer(places, places)


def conditional(series, level, seen):
    """The level's mean in all eras and one more given the values of some, with flat
    priors of the constants, and the restricted likelihood, of dense matrices.
    """
    C = covariances(series.values.size, level)
    V = C[np.ix_(seen, seen)] + np.diag(level.tau2 + series.variances[seen])
    Z = np.eye(series.groups.max() + 1)[series.groups[seen]]
    Z = Z[:, Z.any(axis=0)]
    t, normal = series.values[seen], Z.T @ inv(V) @ Z
    residuals = t - Z @ (inv(normal) @ Z.T @ inv(V) @ t)
    n_free = len(seen) - Z.shape[1]
    likelihood = slogdet(V)[1] + slogdet(normal)[1] + residuals @ inv(V) @ residuals
    likelihood = -0.5 * (likelihood + n_free * np.log(2 * np.pi))
    return C[:, seen] @ inv(V) @ residuals, t - residuals, likelihood


each_level = pytest.mark.parametrize("level", [
    Level(0.8, 0.1, 0.05), Level(0.995, 0.02, 0.01, 0.003), Level(0.0, 0.2, 0.1, 0.01),
])  # fmt: skip


@each_level
@pytest.mark.parametrize("n_groups", [1, 4])
def test_level_and_likelihood_are_those_of_dense_matrices(level, n_groups):
    series = make_series(n_groups=n_groups)
    known = np.flatnonzero(series.is_known)
    expected, constants, likelihood = conditional(series, level, known)
    equations = levels.Equations(series)
    end, evidence = equations.estimate(level), equations.evidence(level)
    assert evidence.log_likelihood(level.trend) == pytest.approx(likelihood)
    assert end.levels == pytest.approx(expected[:-1])
    assert end.constant == pytest.approx(constants.mean())
    path = np.array([[*level, 1.0, end.decaying, end.lasting, end.slope]])
    horizon = np.arange(1, 4)
    forecasts = levels.forecast_levels(path, horizon)[:, 0]
    assert forecasts[0] == pytest.approx(expected[-1])
    last = level.phi**horizon * end.decaying
    trend = end.slope * ((30 - 1) / 2 + np.cumsum(0.8 ** (horizon - 1)))
    assert forecasts == pytest.approx(last + trend)


@each_level
def test_forecast_errors_are_those_of_the_eras_before(level):
    series = make_series()
    known = np.flatnonzero(series.is_known)
    errors = levels.forecast_errors(series, level)
    for j in range(30):
        before = known[known < j]
        if j not in known or series.groups[j] not in series.groups[before]:
            assert np.isnan(errors[j])
            continue
        means, constants, _ = conditional(series, level, before)
        of_group = series.groups[before] == series.groups[j]
        expected = series.values[j] - means[j] - constants[of_group][0]
        assert errors[j] == pytest.approx(expected, abs=1e-4)


def test_what_lasts_is_carried_on_and_nothing_else():
    rng, n_carried = np.random.default_rng(0), {}
    for kind in ("walk", "noise", "seasons", "short", "alone"):
        n_carried[kind] = 0
        for seed in range(20):
            series = make_series(40, 1, seed, steps=0.3 * (kind == "walk"))
            if kind == "seasons":  # which a column holds
                groups = np.arange(40) % 12
                values = series.values + rng.normal(size=12)[groups]
                series = series._replace(values=values, groups=groups)
            elif kind == "short":
                series = Series(*(each[:6] for each in make_series(40, 1, seed)))
            elif kind == "alone":  # each era is alone in its columns
                series = make_series(40, 1, seed)._replace(groups=np.arange(40))
            columns = [each[:, None] for each in series[:2]]
            _, paths = levels.follow_levels(*columns, series.groups, None)
            n_carried[kind] += int(paths[0, 4])
    assert n_carried["walk"] >= 18
    assert n_carried["noise"] + n_carried["seasons"] <= 2
    assert n_carried["short"] == n_carried["alone"] == 0


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 9, 11])
def test_independent_steps_are_half_of_the_shocks(seed):
    """Where they tie, rounding chose: the level followed every shock or none."""
    rng, places = np.random.default_rng(seed), np.arange(24.0)
    values = 0.3 * places + rng.normal(size=24)
    series = Series(values, rng.uniform(0.01, 0.05, 24), np.arange(24) % 2)
    pair = [Level(0.0, 0.9, 0.02, 0.1), Level(0.0, 0.02, 0.9, 0.1)]
    ties = [conditional(series, level, np.arange(24))[2] for level in pair]
    assert ties[0] == pytest.approx(ties[1])
    level = levels.fit_level(series)
    assert level.phi == 0
    assert level.q == level.tau2
    assert 0.3 < level.q + level.tau2 < 2
    for _ in range(5):
        rounded = values * (1 + rng.choice([-1, 0, 1], 24) * np.finfo(float).eps)
        assert levels.fit_level(series._replace(values=rounded)) == pytest.approx(level)
    total = level.q + level.tau2
    reached = [
        levels.Equations(series).estimate(level._replace(q=q, tau2=total - q)).levels
        for q in (level.q, 1e-6 * total, (1 - 1e-6) * total)
    ]
    assert reached[0] == pytest.approx((reached[1] + reached[2]) / 2)


def test_an_era_alone_in_its_columns_is_no_evidence():
    """Whatever its value, the level and the constant are those without it."""
    series, found = make_series(40, 2, 0), []
    groups = np.where(np.arange(40) == 12, 2, series.groups)
    for of_era in ((0.0, np.nan), (0.0, 0.02), (50.0, 0.02)):
        table = np.array(series[:2])
        table[:, 12] = of_era
        found.append(levels.follow_levels(*table[..., None], groups, None))
    assert found[0][1][0, 4] == 1  # it is carried on
    for own, other, far in zip(*found, strict=True):
        assert np.array_equal(own, other)
        assert np.array_equal(own, far)


def test_columns_that_are_constant_within_eras():
    rng = np.random.default_rng(0)
    codes, pattern = rng.integers(0, 5, 200), rng.integers(0, 256, 5)
    X = np.column_stack([rng.integers(0, 9, 200), pattern[codes], np.full(200, 255)])
    X = X.astype(np.uint8)
    columns, patterns = constant_columns(X, encode_eras(codes))
    assert columns.tolist() == [1, 2]
    assert np.array_equal(patterns, np.column_stack([pattern, np.full(5, 255)]))
    columns, patterns = constant_columns(X, encode_eras(np.arange(200)))
    assert columns.size == patterns.size == 0


@pytest.mark.parametrize("is_held_out", [False, True])
@pytest.mark.parametrize(("n_rows", "varies"), [(1, False), (2, False), (2, True)])
def test_columns_stay_constant_unless_later_rows_contradict(
    n_rows, varies, is_held_out
):
    """A holiday's constant is its own, even if the last era has a single row."""
    rng, days = np.random.default_rng(0), np.arange(61)
    eras, is_holiday = np.repeat(days, [20] * 60 + [n_rows]), days % 6 == 5
    level = np.cumsum(rng.normal(size=61) / 3) + 4 * is_holiday
    X = np.column_stack([rng.normal(size=eras.size), is_holiday[eras]])
    y, old = X[:, 0] + level[eras] + rng.normal(size=eras.size) / 3, eras < 60
    X[-1, 1] = varies
    model = Regressor(max_iter=20, era_effects=AUTO, early_stopping=is_held_out)
    if is_held_out:
        model.set_params(validation_fraction=1).fit(X, y, eras=eras)
    else:
        model.fit(X[old], y[old], eras=eras[old])
        model._update_intercepts(X[~old], y[~old], eras[~old])
    assert model._era_columns.tolist() == [1] * (not varies)
    assert model._era_patterns.shape == (61, not varies)
    for value in (1, 0):  # of a later row of a known era, a holiday
        model._update_intercepts(np.array([[0.0, value]]), y[:1], [59])
        assert model._era_columns.size == (value == 1 and not varies)


@pytest.mark.parametrize("n_values", [4, 30, 60, 250])
def test_columns_of_many_values_have_wider_bins(n_values, monkeypatch):
    """So that a fit takes seconds; holidays keep their own constants."""
    rng = np.random.default_rng(0)
    temperatures, holidays = rng.permutation(400) % n_values, np.arange(400) % 8 == 0
    eras, widths = np.repeat(np.arange(400), 3), set()
    X = np.column_stack([temperatures, holidays])[eras]
    evidence = levels.Equations.evidence
    monkeypatch.setattr(levels.Equations, "evidence", lambda self, level: (
        widths.add(self.columns.shape[1]), evidence(self, level))[1])  # fmt: skip
    model = Regressor(max_iter=1, era_effects=AUTO)
    model.fit(X, rng.normal(size=400)[eras] + rng.normal(size=eras.size), eras=eras)
    patterns = model._era_patterns
    groups = _groups_of(patterns.tobytes(), patterns.shape)
    _, expected = np.unique(model._era_patterns, axis=0, return_inverse=True)
    assert np.array_equal(groups, expected.reshape(-1)) == (n_values < 60)
    assert 0 < max(widths) <= 66
    pairs = {*zip(groups.tolist(), holidays.tolist(), strict=True)}
    assert len(pairs) == groups.max() + 1
    spread = [np.ptp(temperatures[groups == group]) for group in range(groups.max())]
    assert max(spread) <= (n_values > 40) * 8


def test_groups_of_single_eras_cost_nothing(monkeypatch):
    """They are no evidence, and would make the covariance as large as the eras."""
    groups = np.where(np.arange(300) % 5, np.arange(300) + 2, np.arange(300) % 2)
    series, shapes, outer = make_series(300, 1), set(), np.outer
    monkeypatch.setattr(np, "outer", lambda a, b: (shapes.add(b.shape), outer(a, b))[1])
    columns = [each[:, None] for each in series[:2]]
    found = levels.follow_levels(*columns, groups, None)
    assert shapes == {(4,)}
    alone = groups > 1
    series.variances[alone], groups[alone] = np.nan, 0
    expected = levels.follow_levels(*columns, groups, None)
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


MONTHS = np.arange("2020-01", "2021-01", dtype="M8[M]")
WEEKS = np.arange("2023-12-04", "2024-06-01", 7, dtype="M8[D]")
TRADED = pd.bdate_range("2023-12-18", periods=20).to_numpy()
HOURS = pd.date_range("2024-05-01", periods=72, freq="h")
IN_SPRING = pd.bdate_range("2024-03-18", periods=20, tz="Europe/Berlin")
IN_SPRING = np.array([day.isoformat() for day in IN_SPRING])  # the offset changes


# project/test_era_labels.py has regular steps of every kind of label.
@pytest.mark.parametrize(("known", "labels", "expected"), [
    (np.arange(3, 9), [9, 10, 4, 12], [1, 2, 1, 4]),
    (np.array([1, 2, 5, 9]), [10, 20], [1, 1]), (np.array([3]), [7], [1]),
    (np.array(["a", "b", "c"]), ["d", "e"], [1, 1]),
    # Some are left out, or too many to know a step.
    (np.array([1, 2, 3, 5, 6]), [7, 10], [1, 4]),
    (np.array([1, 2, 9, 17, 18]), [19, 25], [1, 1]),
    (np.delete(MONTHS, 4), np.array(["2021-02"], "M8[M]"), [2]),
    ([202209, 202210, 202211, 202301, 202302], [202303, 202401], [1, 11]),
    (WEEKS[[0, 1, 2, 5, 6, 7]], WEEKS[[8, 10]], [1, 3]),
    (TRADED[[0, 1, 3, 4, 6, 7, 8, 9]], TRADED[[10, 11, 15]], [1, 2, 6]),
    # Months, weeks or numbers, by the values.
    (np.arange(202301, 202313), [202401], [1]),
    (np.arange(202301, 202311), [202311, 202310], [1, 1]),
    (np.arange(202301, 202311), [202313, 202401], [3, 43]),
    (np.arange(202340, 202353), [202402], [2]),
    (np.arange(202340, 202354), [202401], [1]),
    (np.arange(202340, 202360), [202360, 202401], [1, 42]),
    (np.arange(202340, 202353), [202353, 202354], [1, 2]),
    ([f"2023-{i:02}" for i in range(1, 11)], ["2024-01"], [3]),
    ([f"2023-{i}" for i in (8, 9)], ["2023-10", "2024-1"], [1, 4]),
    # Text with a time of day.
    *((HOURS.strftime(form)[:60], HOURS.strftime(form)[[60, 71]], [1, 12]) for form in (
        "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H", "%Y/%m/%d %H:%M",
        "%Y-%m-%d %H:%M:%S.250", "%Y-%m-%dT%H:%MZ", "%Y-%m-%d %H:%M:%S+02:00")),
    (pd.Index(MONTHS).strftime("%Y-%m-%d %H:%M:%S"), ["2024-01-01 00:00:00"], [37]),
    (["2024-03-30T00:00+01:00", "2024-03-31T00:00+01:00", "2024-04-01T00:00+02:00"],
     ["2024-04-04T00:00+02:00"], [3]),
    (IN_SPRING[:10], IN_SPRING[[10, 13, 19]], [1, 4, 10]),
])  # fmt: skip
def test_horizons(known, labels, expected):
    assert horizons(np.asarray(known), np.asarray(labels)).tolist() == expected


@pytest.mark.parametrize(("known", "labels", "error"), [
    (range(202301, 202311), [202310, 202401],
     "eras holds 202401, which is 3 months or 43 weeks after the last era of training, "
     "202310: pass dates, periods, or text such as '2024-01' for months and "
     "'2024-W01' for weeks."),
    (["202309", "202310"], ["202401"], "'202401', which is 3 months or 43 weeks"),
    ([202311, 202312, 202401], [202402, 202413],
     "eras holds 202413, which is none of the months that labels of training such as "
     "202401 are: pass labels as in training."),
    ([20233, 20234], [20241, 20235], "20235, which is none of the quarters"),
    (["2023-11", "2023-12", "2024-01"], ["2024-13"], "'2024-13', which is none of"),
    (["2023Q3", "2023Q4"], ["2024Q1", "2024-Q2"],
     "eras holds '2024-Q2', which is not written as labels of training such as "
     "'2023Q4' are: pass labels as in training."),
    (["2024-10", "2024-11", "2024-12"], ["2025-03-01"], "'2025-03-01', which is not"),
    (["2024-10", "2024-12"], ["March 2025"], "'March 2025', which is not"),
    (["2024-W01", "2024-W02"], [""], "'', which is not written as"),
    (["week 1", "week 2"], ["rome"], "'rome', which is not written as"),
    (["0001", "0002"], ["0003a"], "'0003a', which is not written as"),
    (["2024-05-01 05:00", "2024-05-01 06:00"], ["2024-05-01 25:00"],
     "'2024-05-01 25:00', which is none of the dates that labels of training such as"),
    (["2024-05-01 05:00", "2024-05-01 06:00"], ["2024-05-01"], "is not written as"),
])  # fmt: skip
def test_labels_of_two_meanings_or_another_one(known, labels, error):
    with pytest.raises(ValueError, match=re.escape(error)):
        horizons(np.asarray(known), np.asarray(labels))


@pytest.mark.parametrize("at", [np.arange(40), np.delete(np.arange(40), [9, 22])])
@pytest.mark.parametrize("start", ["2024-03-29", "2024-10-25"])
@pytest.mark.parametrize("hours", [3, 4, 6, 8, 12, 24])
def test_steps_of_hours_where_clocks_change(hours, start, at):
    """By the clock of the zone, or of UTC."""
    local = pd.date_range(start, periods=60, freq=f"{hours}h")
    for times in (local.tz_localize("Europe/Berlin"), local.tz_localize("UTC")):
        labels = pd.Series(times.tz_convert("Europe/Berlin"))
        for some in (labels, labels.map(pd.Timestamp.isoformat)):
            found = horizons(np.array(some[at]), np.array(some[[40, 43, 47]]))
            assert found.tolist() == [1, 4, 8]


@pytest.mark.parametrize(("calendars", "expected"), [
    ([range(202201, 202213)], 2), ([range(202101, 202105), [202152, 202201]], 42),
    ([[202211, 202213]], 42), ([["a", "b"]], None), ([[202211, 202301]], None),
])  # fmt: skip
def test_other_labels_tell_months_from_weeks(calendars, expected):
    known, labels = np.arange(202201, 202212), np.array([202301])
    given = known, labels, 1, [*map(np.array, calendars)]
    if expected is not None:
        assert horizons(*given) == [expected]
        return
    with pytest.raises(ValueError, match="2 months or 42 weeks"):
        horizons(*given)


def test_labels_without_weight_tell_months_from_weeks():
    X, y, at = make_drift(12, 30, 0.3, 0.2)
    months = pd.date_range("2022-02", periods=14, freq="MS")
    predicted = []
    for labels in (months.year * 100 + months.month, months):
        model = Regressor(max_iter=9, era_effects=AUTO)
        model.fit(X, y, at < 10, eras=labels[at])
        predicted.append(model.predict(X, eras=labels[at % 2 + 12]))
    assert np.array_equal(*predicted)


def make_shops(n_weeks=136, n_shops=20):
    """Sales by week, with five holiday weeks a year and a level that drifts."""
    rng, weeks = np.random.default_rng(0), np.repeat(np.arange(n_weeks), n_shops)
    shops = np.tile(np.arange(n_shops), n_weeks)
    is_holiday = np.isin(weeks % 52, [0, 13, 21, 50, 51])
    promotion = rng.random(weeks.size) < 0.2
    X = np.column_stack([shops, is_holiday, promotion, rng.normal(size=weeks.size)])
    level = np.cumsum(0.08 * rng.normal(size=n_weeks))
    y = 0.5 * rng.normal(size=n_shops)[shops] + 0.6 * is_holiday + 0.3 * promotion
    y += level[weeks] - 0.2 * X[:, 3] + 0.2 * rng.normal(size=weeks.size)
    return X, y, weeks, is_holiday


def test_weeks_with_and_without_a_holiday_are_forecast():
    X, y, weeks, is_holiday = make_shops()
    models = {None: [], "intercept": [], AUTO: []}
    tested = [95, 103, 104, 117, 120, 125]
    for week in tested:
        train, test = weeks < week, weeks == week
        for effects, errors in models.items():
            model = Regressor(max_iter=40, era_effects=effects, early_stopping=False)
            model.fit(X[train], y[train], eras=weeks[train])
            errors.append(np.mean((y[test] - model.predict(X[test])) ** 2))
    in_holidays = np.isin(tested, weeks[is_holiday])
    plain, last, auto = (np.array(errors) for errors in models.values())
    for kind in (in_holidays, ~in_holidays):
        assert auto[kind].mean() < 0.9 * plain[kind].mean()
    assert auto[in_holidays].mean() < 0.5 * last[in_holidays].mean()


@pytest.mark.parametrize("target", ["real", slow("count"), "binary", "multiclass"])
def test_levels_of_every_target(target):
    X, y, weights, _ = make_data(target)
    rng = np.random.default_rng(0)
    # The level of an era is the share of rows whose target is another one's.
    days = np.datetime64("2024-01-01") + np.arange(y.size) // 25
    y = np.where(np.arange(y.size) / y.size > rng.random(y.size), np.unique(y)[-1], y)
    model = ours(target).set_params(era_effects=AUTO, max_iter=12)
    model.fit(X, y, weights, eras=days)
    assert np.abs(model._era_forecast).max() > 0.1
    ahead = levels.forecast_levels(model._era_level, np.array([1, 4]))
    assert model._era_forecast == pytest.approx(ahead[0])
    if target in ("binary", "multiclass"):
        raw = model._raw_predict(X)
        expected = raw + ahead[1] - ahead[0]
        decision = model.decision_function(X, eras=np.full(y.size, days[-1] + 4))
        assert decision.reshape(raw.shape) == pytest.approx(expected)
    # Rows in another order.
    order = rng.permutation(y.size)
    moved = ours(target).set_params(era_effects=AUTO, max_iter=12)
    moved.fit(X[order], y[order], weights[order], eras=days[order])
    assert moved._era_forecast == pytest.approx(model._era_forecast, rel=0.1)


def test_without_a_level_the_model_is_the_plain_one():
    rng = np.random.default_rng(0)
    X, eras = rng.normal(size=(600, 3)), np.arange(600) // 30
    y = X[:, 0] + rng.normal(size=600)
    plain = Regressor(max_iter=10).fit(X, y)
    model = Regressor(max_iter=10, era_effects=AUTO).fit(X, y, eras=eras)
    assert np.array_equal(model.predict(X, eras=eras), plain.predict(X))
    single = Regressor(max_iter=10, era_effects=AUTO).fit(X, y, eras=np.arange(600))
    assert np.array_equal(single.predict(X), plain.predict(X))


EFFECTS = [Intercepts(n_eras=1), Intercepts("exponential", 1), AUTO]


@on_grid("effects scoring", EFFECTS, ["loss", None], every=2)
def test_levels_of_held_out_eras_are_carried_forward(effects, scoring):
    X, y, eras = make_drift(24, 60, 0.3, 0.2)
    now = eras < 20
    params = {"early_stopping": True, "validation_fraction": 4, "scoring": scoring}
    model = Regressor(max_iter=30, era_effects=effects, **params)
    model.fit(X[now], y[now], eras=eras[now])
    by_label = model.era_intercepts_
    assert list(by_label) == list(range(20))
    trees = model._raw_predict(X)[:, 0] - model._era_forecast
    for j in range(16, 20):
        in_era = eras == j
        own = np.mean(y[in_era] - trees[in_era])
        assert by_label[j] == pytest.approx(own, abs=0.15)
    test = eras == 20
    # The last level is an era old, or two by half; without it, all are ten.
    assert abs(np.mean(y[test] - model.predict(X[test]))) < 0.75
    data = BinnedDataset.from_arrays(X[now], y[now], eras=eras[now], max_bins=255)
    binned = Regressor(max_iter=30, era_effects=effects, **params).fit(data)
    assert binned._era_forecast == pytest.approx(model._era_forecast, abs=0.05)
    model.set_params(warm_start=True, max_iter=40).fit(X[now], y[now], eras=eras[now])
    assert list(model.era_intercepts_) == list(range(20))


@on_grid("kind effects", [Regressor, Classifier], EFFECTS, every=2)
def test_intercepts_of_later_eras_are_estimated_with_the_trees_kept(kind, effects):
    X, y, eras = make_drift(24, 60, 0.3, 0.2)
    if kind is Classifier:
        y = y - 3.6 > np.random.default_rng(0).logistic(size=y.size)
    old, new = eras < 20, (eras >= 19) & (eras < 23)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, y.size)
    model = kind(max_iter=20, era_effects=effects, early_stopping=False)
    model.fit(X[old], y[old], weights[old], eras=eras[old])
    trees = model._raw_predict(X)[:, 0] - model._era_forecast
    before = model.era_intercepts_
    model._update_intercepts(X[new], y[new], eras[new], weights[new])
    assert list(model.era_intercepts_) == list(range(23))
    assert model._raw_predict(X)[:, 0] - model._era_forecast == pytest.approx(trees)
    reached = [model.era_intercepts_[j] for j in range(20, 23)]
    if kind is Regressor:
        rows = [eras == j for j in range(20, 23)]
        own = [np.average((y - trees)[each], weights=weights[each]) for each in rows]
        assert reached == pytest.approx(own, abs=0.1)
    assert np.mean(reached) > before[19] - 0.2
    assert model._era_forecast.item() > 0.8 * before[19]


@pytest.mark.parametrize("effects", [*EFFECTS, Intercepts("auto", horizon=3)])
@pytest.mark.parametrize("changed", [None, Intercepts("mean", 9, horizon=9), "nested"])
def test_parameters_that_are_set_after_a_fit_change_no_forecast(
    effects, changed, tmp_path
):
    X, y, eras = make_drift(12, 30, 0.3, 0.2)
    eras = eras**2  # of steps that tell no horizon
    old, asked = eras < 100, np.arange(20) * 11
    model = Regressor(max_iter=5, era_effects=clone(effects), early_stopping=False)
    model.fit(X[old], y[old], eras=eras[old])
    other = pickle.loads(pickle.dumps(model))
    if changed == "nested":
        other.set_params(era_effects__horizon=9, era_effects__n_eras=9)
    else:
        other.set_params(era_effects=changed)
    save_model(other, tmp_path / "m.era")
    horizon = effects.horizon if effects.forecast == "auto" else None
    assert load_model(tmp_path / "m.era")[1].horizon == horizon
    for _ in range(2):
        expected = model.predict(X[:20], eras=asked)
        assert np.array_equal(other.predict(X[:20], eras=asked), expected)
        for each in (model, other):
            each._update_intercepts(X[~old], y[~old], eras[~old])


def noise_by_hand(loss, y, weights, eras):
    """s2 of a row of the mean weight about the values of eras, and its freedom."""
    labels, codes = np.unique(eras, return_inverse=True)
    mean, freedom = weights.mean(), y.size - labels.size
    if loss == "absolute_error":
        rest = y - np.array([np.median(y[eras == j]) for j in labels])[codes]
        return np.mean(np.abs(rest)) ** 2, freedom
    totals = np.bincount(codes, weights)
    means = np.bincount(codes, weights * y) / totals
    squares = weights**2 @ (y - means[codes]) ** 2
    return squares / mean**2 / max(freedom, 1), freedom


@on_grid("loss sizes unit is_old", ["squared_error", "absolute_error"],
         [[1], [2], [5, 1], [40, 30]], [1, 8], [False, True], every=3)  # fmt: skip
def test_noise_of_later_eras_is_pooled_with_that_of_the_fit(
    loss, sizes, unit, is_old, tmp_path
):
    """In any unit of weights, with 10 degrees of freedom at most."""
    rng, params = np.random.default_rng(0), {"max_iter": 1, "early_stopping": False}
    eras = np.repeat(np.arange(20 + len(sizes)), [15] * 20 + sizes)
    y = rng.normal(size=eras.max() + 1)[eras] + 2 * rng.normal(size=eras.size)
    weights = rng.uniform(0.5, 2, y.size) ** (loss == "squared_error")
    X, old = np.zeros((y.size, 1)), eras < 20
    model = Regressor(loss, era_effects=EFFECTS[0], **params)
    model.fit(X[old], y[old], weights[old], eras=eras[old])
    save_model(model, tmp_path / "m.era")
    model, _ = load_model(tmp_path / "m.era")
    if is_old:  # a file or pickle of before
        del model._era_noise
    before = noise_by_hand(loss, y[old], weights[old], eras[old])
    own = noise_by_hand(loss, y[~old], weights[~old], eras[~old])
    model._update_intercepts(X[~old], y[~old], eras[~old], unit * weights[~old])
    most = 0 if is_old else min(10, before[1])
    s2 = np.inf  # a single row does not tell it
    if own[1]:
        s2 = (most * before[0] + own[0] * own[1]) / (most + own[1])
    s2 *= weights[~old].mean()
    expected = s2 / np.bincount(eras, weights)[20:]
    assert model._era_series[1, 20:, 0] == pytest.approx(expected)


def test_a_far_level_of_a_later_era_is_reached():
    """From odds of 1 to those of 20, by steps of at most 1."""
    eras, shares = np.repeat(np.arange(8), 210), np.array([0.5] * 6 + [20 / 21] * 2)
    y = np.arange(eras.size) % 210 < 210 * shares[eras]
    X, old = np.zeros((y.size, 1)), eras < 6
    model = Classifier(max_iter=2, era_effects=Intercepts(n_eras=1))
    model.fit(X[old], y[old], eras=eras[old])
    model._update_intercepts(X[~old], y[~old], eras[~old])
    reached = model.predict_proba(X, eras=eras)[~old, 1]
    assert reached == pytest.approx(20 / 21, abs=0.02)


def test_later_eras_change_the_parameters_of_a_level():
    X, y, eras = make_drift(30, 30, 0.3, 0.2)
    y += 3.0 * (eras % 2) * (eras >= 20)
    old = eras < 20
    model = Regressor(max_iter=2, era_effects=AUTO).fit(X[old], y[old], eras=eras[old])
    before = model._era_level
    model._update_intercepts(X[~old], y[~old], eras[~old])
    assert not np.allclose(model._era_level[0, :4], before[0, :4])
    expected = levels.follow_levels(*model._era_series, np.zeros(30, int), None)[1]
    assert np.array_equal(model._era_level, expected)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model._update_intercepts(X, y[1:], eras)
    with pytest.raises(ValueError, match="updating intercepts needs those of a fit"):
        Regressor(max_iter=2).fit(X, y)._update_intercepts(X, y, eras)
