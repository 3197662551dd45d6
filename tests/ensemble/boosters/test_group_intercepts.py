"""Intercepts of groups beside those of times, and forecasts of a horizon."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import r2_score

from sklearn_era.auto import AutoEraRegressor
from sklearn_era.effects import Intercepts, Recency
from sklearn_era.ensemble import EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._boosters.level_forecast import forecast_levels
from sklearn_era.model_files import load_model, save_model

N_WEEKS, N_SHOPS, PER_CELL = 14, 10, 6
rng = np.random.default_rng(0)
week, shop, _ = map(np.ravel, np.indices((N_WEEKS, N_SHOPS, PER_CELL)))
DATES = pd.date_range("2024-01-01", periods=N_WEEKS, freq="7D")
ERAS = pd.DataFrame({"week": DATES[week], "shop": [f"s{i}" for i in shop]})
X = rng.normal(size=(week.size, 3))
OWN, LEVEL = rng.normal(size=N_SHOPS), np.cumsum(rng.normal(size=N_WEEKS, scale=0.4))
y = X[:, 0] + OWN[shop] + LEVEL[week] + 0.3 * rng.normal(size=week.size)
COUNTS = rng.poisson(np.exp(y / 2)) + 0.0
AUTO = Intercepts("auto")
regressor = partial(Regressor, max_iter=30, era_effects=AUTO, early_stopping=False)
classifier = partial(Classifier, max_iter=30, era_effects=AUTO)
CASES = {
    "squared": (regressor(), y), "absolute": (regressor("absolute_error"), y),
    "poisson": (regressor("poisson"), COUNTS),
    "last": (regressor(era_effects="intercept"), y),
    "pair": (regressor(era_effects=Intercepts("mean"),
                       era_order=("ordered", "unordered")), y),
    "criterion": (regressor(split_criterion="era"), y),
    "stopped": (regressor(early_stopping=True), y),
    "classes": (classifier(), (y > 0) * 1),
    "three": (classifier(), np.digitize(y, [-1, 1])),
}  # fmt: skip


def raw_of(model, X, **eras):
    if hasattr(model, "decision_function"):
        return model.decision_function(X, **eras).reshape(len(X), -1)
    raw = model.predict(X, **eras)
    return (np.log(raw) if model.loss == "poisson" else raw)[:, np.newaxis]


@pytest.mark.parametrize(("model", "target"), CASES.values(), ids=CASES)
def test_predictions_add_the_intercepts_of_time_and_group(model, target, tmp_path):
    """In any order of named columns, of any library, and after a file."""
    model = clone(model).fit(X, target, eras=ERAS)
    times, groups = model.era_intercepts_["times"], model.era_intercepts_["groups"]
    assert (len(times), [*groups]) == (N_WEEKS, sorted({*ERAS.shop}))
    of_times = np.array([times[x] for x in sorted(times)]).reshape(N_WEEKS, -1)
    of_groups = np.array([groups[f"s{i}"] for i in range(N_SHOPS)])
    steps = of_times[week] - model._era_forecast
    steps += of_groups.reshape(N_SHOPS, -1)[shop]
    assert_allclose(raw_of(model, X, eras=ERAS), raw_of(model, X) + steps, atol=1e-10)
    expected = model.predict(X, eras=ERAS)
    save_model(model, tmp_path / "m.era")
    other, _ = load_model(tmp_path / "m.era")
    for asked, eras in (
        (model, ERAS[["shop", "week"]]), (model, (ERAS.week, ERAS.shop)),
        (model, pl.DataFrame({"shop": ERAS.shop.to_list(), "week": DATES[week]})),
        (other, ERAS), (pickle.loads(pickle.dumps(model)), ERAS)):  # fmt: skip
        assert_array_equal(asked.predict(X, eras=eras), expected)
    *_, last = model.staged_predict(X, eras=ERAS)
    assert_array_equal(last, expected)
    # A new group has the intercept of its time alone, and a later time a forecast.
    new = raw_of(model, X, eras=ERAS.assign(shop="new"))
    assert_allclose(new, raw_of(model, X) + of_times[week] - model._era_forecast)
    later = ERAS.assign(week=DATES[-1] + pd.Timedelta("7D"), shop="new")
    assert_allclose(raw_of(model, X, eras=later), raw_of(model, X), atol=1e-12)


@pytest.mark.parametrize("weights", [None, rng.uniform(0.5, 2.0, week.size)])
def test_group_intercepts_are_shrunken_means_of_residuals(weights):
    """Where trees cannot split, as by a one-way model of what the weeks leave."""
    model = regressor(max_iter=60).fit(np.zeros((week.size, 1)), y, weights, eras=ERAS)
    times = np.array([*model.era_intercepts_["times"].values()])
    rest = y - model._baseline_prediction.item() + model._era_forecast - times[week]
    w = np.ones(week.size) if weights is None else weights
    totals = np.bincount(shop, w)
    means = np.bincount(shop, w * rest) / totals
    within = w**2 @ (rest - means[shop]) ** 2 / w.mean()
    s2 = within / (week.size - N_SHOPS)
    variance = means.var() - (s2 / totals).mean()
    expected = variance / (variance + s2 / totals) * means
    found = np.array([*model.era_intercepts_["groups"].values()])
    assert_allclose(found, expected, atol=0.02 * found.std())


# By statsmodels 0.15: `MixedLM` with variance components of both, REML.
PREDICTED = {
    (12, 15, 4, 0): [
        -1.844, 0.2571, 0.0013, 0.712, 1.5283, 0.5574, -1.5662, 0.0177, 0.4624,
        0.5755, -0.9826, -1.5164, 0.7344, 0.675, 0.3879,
    ],
    (12, 15, 4, 0.4): [
        -1.5755, 0.0938, -0.0897, 0.5854, 1.7941, 0.8458, -1.5754, 0.0523,
        0.2126, 0.5943, -1.1196, -1.2721, 0.9021, 0.5769, -0.025,
    ],
    (20, 6, 3, 0.2): [-0.8413, 0.3742, 0.2767, 1.8929, -0.568, -1.1345],
}  # fmt: skip


@pytest.mark.parametrize(("sizes", "expected"), PREDICTED.items(), ids=str)
def test_group_intercepts_are_best_linear_predictions(sizes, expected):
    """Without columns, those of a crossed mixed model, within 1 % of their spread."""
    rng, (n_weeks, n_shops, n, missing) = np.random.default_rng(3), sizes
    week, shop, _ = map(np.ravel, np.indices((n_weeks, n_shops, n)))
    kept = rng.random(week.size) >= missing
    week, shop = week[kept], shop[kept]
    y = rng.normal(size=n_shops)[shop] + 0.7 * rng.normal(size=n_weeks)[week]
    y += 0.8 * rng.normal(size=week.size)
    order = ("ordered", "unordered")
    model = regressor(max_iter=80, era_effects=Intercepts("mean"), era_order=order)
    model.fit(np.zeros((y.size, 1)), y, eras=np.column_stack([week, shop]))
    found = np.array([*model.era_intercepts_["groups"].values()])
    assert_allclose(found - found.mean(), expected, atol=0.01 * np.std(expected))


def test_columns_that_are_constant_within_shops_are_left_to_trees():
    area = rng.normal(size=60)
    week, shop = map(np.ravel, np.indices((12, 60)))
    X = np.column_stack([area[shop], rng.normal(size=week.size)])
    y = 2 * X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=60)[shop]
    eras, train = np.column_stack([week, shop]), shop < 45
    model = regressor(max_iter=60, era_order=("ordered", "unordered"))
    model.fit(X[train], y[train], eras=eras[train])
    error = y[~train] - model.predict(X[~train], eras=eras[~train])
    assert np.mean(error**2) < 0.15 * y[~train].var()


@pytest.mark.filterwarnings("ignore:.* that the fit has not seen")
@pytest.mark.parametrize("n_rows", [1, 2, 3, 40])
def test_columns_that_the_fit_named_are_read_of_any_number_of_rows(n_rows):
    """Two names of two rows, or of one, are not labels."""
    frame, names = ERAS.assign(a=X[:, 0])[["a", "week", "shop"]], ["week", "shop"]
    asked = frame.iloc[-n_rows:].replace({"shop": {"s9": "new"}})
    expected = regressor().fit(frame[["a"]], y, eras=frame[names])
    expected = expected.predict(asked[["a"]], eras=asked[names])
    model = regressor().fit(frame, y, eras=names)
    average = AutoEraRegressor(regressor(era_effects=None), group="known", cv=2)
    average.set_params(members=[("own", regressor())]).fit(frame, y, eras=names)
    for one in (model, average):
        assert_array_equal(one.predict(asked), one.predict(asked, eras=asked[names]))
        assert_array_equal(one.predict(asked), one.predict(asked, eras=names))
    assert_array_equal(model.predict(asked), expected)
    for one in (model, average):
        with pytest.raises(ValueError, match=r"lacks 'shop', of .*Did you mean 'Shop'"):
            one.predict(asked.rename(columns={"shop": "Shop"}))
        with pytest.warns(UserWarning, match="X lacks the columns 'week', 'shop'"):
            one.predict(asked[["a"]])
        of_asked = y[-n_rows:]
        if n_rows > 1:
            score = r2_score(of_asked, one.predict(asked))
            assert one.score(asked, of_asked) == pytest.approx(score)
    with pytest.warns(UserWarning, match=r"'S0' \(was 's0' meant\?\)"):
        model.predict(asked.assign(shop="S0"))
    if n_rows != 2:
        with pytest.raises(ValueError, match=r"'shops' is no column .*mean 'shop'\?"):
            model.predict(asked, eras=["week", "shops"])


def test_validation_rows_of_known_groups_have_their_intercepts():
    scores = {}
    for name, shops in {"known": ERAS.shop, "new": "x" + ERAS.shop}.items():
        train = week < 10
        model = regressor(early_stopping=True, max_iter=60, n_iter_no_change=60)
        val = ERAS.assign(shop=shops)[~train]
        model.fit(X[train], y[train], eras=ERAS[train], X_val=X[~train],
                  y_val=y[~train], eras_val=val)  # fmt: skip
        scores[name] = model.validation_score_[-1]
        # Of times, validation rows have the forecast.
        at = ERAS[~train].assign(week=DATES[10], shop=val.shop)
        error = y[~train] - model.predict(X[~train], eras=at)
        assert_allclose(-scores[name], np.mean(error**2) / 2, rtol=1e-6)
    assert scores["known"] > scores["new"] + 0.2


def test_validation_rows_have_times_and_groups_in_either_order():
    texts = {"week": [f"2024-W{x + 10}" for x in week], "shop": ERAS.shop}
    frame = pd.DataFrame(X, columns=[*"abc"]).assign(**texts)
    model = regressor(early_stopping=True, era_order=("ordered", "unordered"))
    fit = {"eras": ["week", "shop"], "X_val": frame, "y_val": y}
    scores = [
        model.fit(frame, y, **fit, eras_val=names).validation_score_
        for names in (["week", "shop"], ["shop", "week"])
    ]
    assert_array_equal(*scores)
    for wrong, message in (
        (ERAS.shop, r"^eras_val has 1 column\(s\)"),
        (ERAS[:9], r"^eras_val\['week'\] has 9 labels, but X_val has 840 rows"),
        (ERAS.assign(shop=None), r"^eras_val\['shop'\] has 840 missing"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, eras=ERAS, X_val=X, y_val=y, eras_val=wrong)


def test_updates_take_in_weeks_of_known_and_new_groups():
    old, n_old = week < 10, 10
    model = regressor(max_iter=60).fit(X[old], y[old], eras=ERAS[old])
    before = model.era_intercepts_["groups"]
    rows = ERAS.assign(shop=ERAS.shop.where(shop < 8, "late" + ERAS.shop))
    model._update_intercepts(X[~old], y[~old], rows[~old])
    times, groups = model.era_intercepts_.values()
    assert (len(times), {*groups}) == (N_WEEKS, {*before, "lates8", "lates9"})
    at_once = regressor(max_iter=60).fit(X, y, eras=rows).era_intercepts_["groups"]
    for name, value in at_once.items():
        assert abs(groups[name] - value) < 0.3
    assert groups["s9"] == pytest.approx(before["s9"], rel=0.2)
    assert n_old < len(times)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_groups_follow_recent_times_by_their_weights(loss):
    """Weights of times move the values of groups, and make none more precise."""
    model = regressor(loss, max_iter=1, era_weighting=Recency(2))
    model.fit(X, y + 0.3 * week * OWN[shop], eras=ERAS)
    f, rest = 0.5 ** ((N_WEEKS - 1 - week) / 2), y + 0.3 * week * OWN[shop]
    values, variances = model._group_series[:, :, 0]
    for j in range(N_SHOPS):
        own, of_row = shop == j, f[shop == j]
        start = rest[own] - model._baseline_prediction[0, 0] + model._era_forecast[0]
        mean = np.average(start, weights=of_row)
        if loss == "absolute_error":
            order = np.argsort(start)
            shares = np.cumsum(of_row[order]) / of_row.sum()
            mean = start[order][np.searchsorted(shares, 0.5)]
        assert values[j] == pytest.approx(mean, abs=1e-6)
        n_effective = of_row.sum() ** 2 / (of_row**2).sum()
        assert variances[j] * n_effective == pytest.approx(model._group_noise[0, 0])


def test_noise_of_new_groups_is_pooled_with_that_of_the_fit():
    old = week < 10
    model = regressor(max_iter=40).fit(X[old], y[old], eras=ERAS[old])
    before, rows = model._group_noise.copy(), np.flatnonzero(~old)[:2]
    assert before[1] == old.sum() - N_SHOPS
    eras = ERAS.iloc[rows].assign(shop="new")
    model._update_intercepts(X[rows], [3.0, 3.0 + X[rows[1], 0] - X[rows[0], 0]], eras)
    assert model._group_noise[1] == 11
    assert model._group_series[1, -1] * 2 == pytest.approx(model._group_noise[0])
    assert 0.9 < model._group_noise[0] / before[0] < 1.1


def test_groups_far_from_the_others_that_open_in_held_out_weeks():
    """They need several steps of a loss that is not quadratic."""
    is_far = shop == 0
    counts = np.random.default_rng(1).poisson(np.exp(y / 3 + 3.0 * is_far)) + 0.0
    model = regressor("poisson", max_iter=60, early_stopping=True, n_iter_no_change=60)
    is_open, last = ~is_far | (week >= 10), (week >= 10) & is_far
    model.set_params(validation_fraction=4)
    model.fit(X[is_open], counts[is_open], eras=ERAS[is_open])
    predicted = model.predict(X[last], eras=ERAS[last])
    assert predicted.mean() == pytest.approx(counts[last].mean(), rel=0.2)


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_horizon_is_that_of_rows_without_an_era(horizon):
    slow = X[:, 0] + np.cumsum(rng.normal(size=40, scale=0.5)).repeat(21)
    eras = np.arange(40).repeat(21)
    model = regressor(era_effects=Intercepts("auto", horizon=horizon))
    model.fit(X, slow, eras=eras)
    assert model._era_level[0, 4], "no level was found"
    expected = forecast_levels(model._era_level, np.array([horizon]))[0]
    assert_array_equal(model._era_forecast, expected)
    ahead = np.full(len(X), 39 + horizon)
    assert_allclose(model.predict(X), model.predict(X, eras=ahead), atol=1e-12)
    model._update_intercepts(X[:21], slow[-21:], np.full(21, 40))
    ahead += 1
    assert_allclose(model.predict(X), model.predict(X, eras=ahead), atol=1e-12)
    flat = [Intercepts("last", horizon=h) for h in (1, horizon)]
    one, other = (regressor(era_effects=x).fit(X, slow, eras=eras) for x in flat)
    assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("kind", [Regressor, EraForestRegressor])
def test_times_are_the_eras_of_criteria(kind):
    model = kind(split_criterion="era", random_state=0)
    pair = clone(model).set_params(era_order=("ordered", "unordered"))
    alone = model.fit(X, y, eras=ERAS.week).predict(X)
    assert_array_equal(pair.fit(X, y, eras=ERAS).predict(X), alone)


@pytest.mark.parametrize(("eras", "order", "message"), [
    (ERAS.assign(week=ERAS.shop), "auto", "do not tell which column is time"),
    (ERAS, ("ordered", "ordered"), "must be of two columns"),
    (ERAS.week, ("ordered", "unordered"), "does not fit eras of 1 column"),
    # In a prediction.
    (ERAS.week, None, r"eras has 1 column\(s\), and the fit of HistGradientBoosting"
     r"Regressor took two, times and groups \('week' and 'shop'\): pass both\."),
    (ERAS.assign(shop=shop), None,
     "eras holds 0, of type int, but the eras of training are"),
    (ERAS.assign(week=week), None, "but the eras of training are of type"),
    (ERAS.iloc[:5], None, "has 5 labels, but X has"),
])  # fmt: skip
def test_other_columns_are_refused(eras, order, message):
    model = regressor(max_iter=3)
    ask = model.set_params(era_order=order).fit if order else model.fit(X, y, eras=ERAS)
    with pytest.raises(ValueError, match=message):
        ask(X, y, eras=eras) if order else ask.predict(X, eras=eras)


def test_groups_of_a_few_rows_of_classes_differ():
    rng = np.random.default_rng(0)
    year, patient = map(np.ravel, np.indices((8, 300)))
    own = rng.normal(scale=1.2, size=300)
    y = rng.random(year.size) < 1 / (1 + np.exp(-own[patient]))
    order = ("ordered", "unordered")
    model = classifier(max_iter=60, era_order=order)
    model.fit(np.zeros((y.size, 1)), y, eras=np.column_stack([year, patient]))
    found = np.array([*model.era_intercepts_["groups"].values()])
    assert 0.6 < found.std() < 1.1
    assert np.corrcoef(found, own)[0, 1] > 0.75
    counts = rng.poisson(np.exp(1 + 1.5 * own[patient]))  # from 0 to hundreds
    model = regressor("poisson", max_iter=80, era_order=order)
    model.fit(np.zeros((y.size, 1)), counts, eras=np.column_stack([year, patient]))
    found = np.array([*model.era_intercepts_["groups"].values()])
    assert np.corrcoef(found, own)[0, 1] > 0.95
    assert 0.85 < np.polyfit(1.5 * own, found, 1)[0] < 1.1


def test_a_warm_start_without_groups_is_refused():
    model = regressor(max_iter=2, warm_start=True).fit(X, y, eras=ERAS)
    with pytest.raises(ValueError, match=r"^eras leaves out the groups whose interce"):
        model.set_params(max_iter=3).fit(X, y, eras=ERAS.week)


@pytest.mark.parametrize("n_later", [0, 1, 30])
def test_a_warm_start_goes_on_with_times_and_groups(n_later):
    """Where groups begin one after the other, so that times could be taken for them."""
    eras = np.arange(week.size) // 42, np.minimum(shop, np.arange(week.size) // 84)
    target = y + 2.0 * eras[0] + eras[1]
    params = {"era_effects": "intercept", "era_order": ("ordered", "unordered")}
    model = regressor(**params, warm_start=True).fit(X, target, eras=eras)
    model.set_params(max_iter=30 + n_later).fit(X, target, eras=eras)
    other = regressor(**params, max_iter=30 + n_later).fit(X, target, eras=eras)
    predicted, expected = (m.predict(X, eras=eras) for m in (model, other))
    assert_allclose(predicted, expected, atol=1e-9)
    assert_allclose(model._group_series, other._group_series)


@pytest.mark.parametrize("eras", [week, (week, shop)], ids=["times", "groups"])
@pytest.mark.filterwarnings("ignore:X makes other bins")  # if fewer are held out
@pytest.mark.parametrize("n_later", [2, 1])  # held out by the warm start
@pytest.mark.parametrize("kind", ["squared", "poisson", "last", "classes"])
def test_a_warm_start_takes_nothing_from_held_out_eras(eras, kind, n_later):
    model, target = clone(CASES[kind][0]), CASES[kind][1]
    model.set_params(early_stopping=True, validation_fraction=2, n_iter_no_change=99)
    model.set_params(max_iter=40, era_order="ordered", random_state=0)
    if len(eras) == 2:
        model.set_params(era_order=("ordered", "unordered"))
    at_once = clone(model).fit(X, target, eras=eras)
    others = np.random.default_rng(1).permutation(target)
    moved = np.where(week >= N_WEEKS - n_later, others, target)
    raws = []
    for y_given in (target, moved):
        warm = clone(model).set_params(max_iter=25, warm_start=True)
        warm = pickle.loads(pickle.dumps(warm.fit(X, y_given, eras=eras)))
        warm.set_params(max_iter=40, validation_fraction=n_later)
        warm.fit(X, y_given, eras=eras)
        raws.append(warm._raw_predict(X) - warm._baseline_prediction)  # of the trees
        if y_given is target and n_later == 2:
            expected = at_once.validation_score_
            assert_allclose(warm.validation_score_, expected, rtol=1e-9)
            assert_allclose(raw_of(warm, X, eras=eras), raw_of(at_once, X, eras=eras))
    assert_allclose(*raws, atol=1e-12)


@pytest.mark.parametrize("given", [
    {"validation_eras": "random"}, {"validation_eras": "last"},
    {"learning_rate": 0.02, "max_iter": 200}, {"X_val": True},
])  # fmt: skip
def test_early_stopping_waits_for_the_intercepts_of_groups(given):
    target, fit = 5.0 * shop + 0.1 * y, {"eras": (week, shop)}
    if given.pop("X_val", False):
        fit |= {"X_val": X, "y_val": target, "eras_val": fit["eras"]}
    params = {"era_order": ("ordered", "unordered"), "max_iter": 100} | given
    model = regressor(early_stopping=True, random_state=0, **params)
    model.fit(np.zeros_like(X), target, **fit)
    predicted = model.predict(np.zeros_like(X), eras=fit["eras"])
    assert r2_score(target, predicted) > 0.95


def test_a_constant_target_has_no_intercepts():
    model = regressor(early_stopping=True).fit(X, np.full(week.size, 3.0), eras=ERAS)
    assert_array_equal(model.predict(X, eras=ERAS), 3.0)
