"""Averages, searches and intervals for new or known groups, so much later."""

from datetime import timedelta
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.linear_model import LogisticRegression as Logistic
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.grids import on_grid, slow
from sklearn_era._era_axes import TIME_FIRST, read_known
from sklearn_era._era_routing import question_of
from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.auto._weights import LeftOut, equal_eras, error_of_mean
from sklearn_era.calibration import EraConformalClassifier, EraConformalRegressor
from sklearn_era.effects import Intercepts
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble import JustTrainTwice
from sklearn_era.model_files import load_model, save_model
from sklearn_era.model_selection import EraSearchCV, EraSplit
from sklearn_era.model_selection._out_of_era import folds_of_eras
from sklearn_era.model_selection._times_and_groups import steps_of
from sklearn_era.preprocessing import EraTargetRegressor, EraTargetTransformer

rng = np.random.default_rng(0)
N_WEEKS, N_SHOPS, PER_CELL = 16, 12, 4
week, shop, _ = map(np.ravel, np.indices((N_WEEKS, N_SHOPS, PER_CELL)))
DATES = pd.date_range("2024-01-01", periods=N_WEEKS, freq="7D")
ERAS = pd.DataFrame({"week": DATES[week], "shop": [f"s{i}" for i in shop]})
MONTHS = pd.date_range("2022-03-01", periods=N_WEEKS, freq="MS")
X = rng.normal(size=(week.size, 3))
LEVEL = np.cumsum(rng.normal(size=N_WEEKS, scale=0.4))[week]
y = X[:, 0] + rng.normal(size=N_SHOPS)[shop] + LEVEL + 0.3 * rng.normal(size=week.size)
PLAIN = Regressor(max_iter=20, early_stopping=False, random_state=0)
FRAME, NAMES = pd.DataFrame(X).add_prefix("x").join(ERAS), ["week", "shop"]
UNCHANGED = EraTargetTransformer(with_centering=False, with_scaling=False)
LEVELS = clone(PLAIN).set_params(era_effects=Intercepts("auto"))


@pytest.mark.parametrize("seed", range(60))
def test_no_fold_trains_on_what_it_tests(seed):
    """By time, nor on groups that are to be new."""
    rng = np.random.default_rng(seed)
    n_weeks, n_shops = rng.integers(12, 24), rng.integers(4, 12)
    dates = pd.date_range("2024-01-01", periods=n_weeks, freq="7D")
    n, group = 600, ["new", "known"][seed % 2]
    at, of = rng.integers(n_weeks, size=n), rng.integers(n_shops, size=n)
    at[:n_weeks], of[:n_shops] = np.arange(n_weeks), np.arange(n_shops)
    columns = pd.DataFrame({"day": dates[at], "of": of.astype(str)})
    horizon, both = [1, 2, 3, "14D"][rng.integers(4)], seed % 3 > 0
    eras = columns if both else columns.day
    _, encoded, _ = read_known(eras, at, "auto", "the test")
    asked = {"horizon": horizon, "gap": int(rng.integers(3))}
    asked |= {"tests_half": bool(rng.integers(2))} | ({"group": group} if both else {})
    cv = int(rng.integers(2, 4))
    folds = folds_of_eras(cv, encoded, True, **asked)
    if hasattr(folds, "split"):
        folds = folds.split(at, groups=encoded.codes)
    folds, tested = list(folds), []
    steps = steps_of(horizon, encoded.labels) + asked["gap"]
    for train, test in folds:
        assert at[train].max() + steps <= at[test].min()
        shared = np.isin(of[test], of[train])
        if both:
            assert not shared.any() if group == "new" else shared.all()
        tested.append(test)
    assert len(folds) == cv
    tested = np.concatenate(tested)
    assert np.unique(tested).size == tested.size
    assert n_weeks - 1 in at[tested]
    if both and group == "new":  # all groups, where the last weeks have any
        last = at >= at[tested].min()
        assert {*of[tested]} == {*of[last]}


def test_errors_are_those_of_two_way_clusters():
    eras, groups = week.astype(np.intp), shop.astype(np.intp)
    weights = equal_eras(eras, rng.uniform(1, 2, week.size))
    weights /= weights.sum()
    gains = rng.normal(size=week.size) + rng.normal(size=N_SHOPS)[shop]
    found = LeftOut({}, {}, y, weights, eras, groups)
    error = error_of_mean(found.by_era(gains), True)
    parts = weights * (gains - weights @ gains)

    def variance(codes):
        sums = [parts[codes == code].sum() for code in np.unique(codes)]
        return np.sum(np.square(sums)) * len(sums) / (len(sums) - 1)

    of_shops, of_cells = variance(shop), variance(100 * week + shop)
    squared = max(error**2, of_shops, error**2 + of_shops - of_cells)
    assert_allclose(found.error_of_both(error, gains), np.sqrt(squared))
    assert found._replace(groups=None).error_of_both(error, gains) == error
    # Of a member that one fold lacks, an era has the mean of the others.
    missing, w = np.where(shop < 4, np.nan, gains), np.where(shop < 4, 0.0, weights)
    expected = np.bincount(week, w * gains) / np.bincount(week, w)
    assert_allclose(found.by_era(missing), expected)


@pytest.mark.parametrize(("group", "horizon"), [
    ("known", 1), ("known", "14D"), ("new", 2),
])  # fmt: skip
def test_averages_know_times_and_groups(group, horizon, tmp_path):
    model = AutoEraRegressor(PLAIN, group=group, horizon=horizon, random_state=0)
    model.fit(X, y, eras=ERAS)
    steps = 1 if horizon == 1 else 2
    levels = [m for m in model.members_.values() if getattr(m, "era_effects", None)]
    assert levels or group == "new"
    for member in levels:
        assert [*member.era_intercepts_["groups"]] == sorted({*ERAS.shop})
    known = [m.era_effects for m in levels if m.era_effects.forecast == "auto"]
    assert all(x.horizon == steps for x in known)
    assert model.era_order_ == "ordered"
    assert {*model.era_labels_} <= {*np.unique(ERAS.week)}
    expected = sum(
        weight * model.members_[name].predict(X, eras=ERAS)
        if getattr(model.members_[name], "era_effects", None)
        else weight * model.members_[name].predict(X)
        for name, weight in model.weights_.items() if weight
    )  # fmt: skip
    found = model.predict(X, eras=ERAS)
    assert_allclose(found, expected)
    save_model(model, tmp_path / "m.era")
    frame = pl.DataFrame({"shop": ERAS.shop.to_list(), "week": DATES[week]})
    for asked, eras in (
        (model, ERAS[["shop", "week"]]), (load_model(tmp_path / "m.era")[0], frame)
    ):  # fmt: skip
        assert_allclose(asked.predict(X, eras=eras), found)
    assert_allclose(model.predict(X[:1], eras=ERAS[:1]), found[:1])
    assert np.isfinite(model.predict(X[:2])).all()
    r2 = 1 - np.mean((y - found) ** 2) / y.var()
    assert_allclose(model.score(X, y, eras=ERAS), r2)


@pytest.mark.filterwarnings("ignore:X lacks the columns")
@pytest.mark.parametrize("group", ["known", "new"])
def test_models_of_known_groups_read_the_columns_that_the_fit_named(group):
    average = AutoEraRegressor(PLAIN, group=group, random_state=0)
    for model in average, EraConformalRegressor(clone(average), cv=2, group=group):
        model.fit(FRAME, y, eras=NAMES)
        asked, told = model.predict(FRAME), model.predict(FRAME, eras=NAMES)
        rest = model.predict(FRAME.drop(columns=NAMES))
        if group == "known":
            assert_allclose(asked, told)
            assert not np.allclose(asked, rest)
        else:
            assert_allclose(asked, rest)


OF_KNOWN = {"group": "known", "cv": 2}
SEARCH = EraSearchCV(Ridge(), {}, rule="best", **OF_KNOWN)
CONFORMAL = EraConformalRegressor(Ridge(), **OF_KNOWN)


@pytest.mark.filterwarnings("ignore:X lacks the columns")
@pytest.mark.parametrize("model", [
    SEARCH, clone(SEARCH).set_params(estimator=CONFORMAL), *(
        clone(CONFORMAL).set_params(estimator=inner) for inner in (
            Ridge(), make_pipeline(StandardScaler(), Ridge()), PLAIN, SEARCH, CONFORMAL,
            TransformedTargetRegressor(Ridge()), TransformedTargetRegressor(PLAIN),
        )
    ), EraConformalClassifier(JustTrainTwice(Logistic()), **OF_KNOWN),
])  # fmt: skip
def test_models_that_use_no_eras_leave_the_columns_that_the_fit_named(model):
    target = y > 0 if is_classifier(model) else y
    model.fit(FRAME, target, eras=NAMES)
    rest = FRAME.drop(columns=NAMES)
    assert_array_equal(model.predict(FRAME), model.predict(rest))
    assert model.score(FRAME, target) == model.score(rest, target)
    if isinstance(model, EraConformalRegressor):
        of_both = [model.predict_interval(x, level=0.5) for x in (FRAME, rest)]
        assert_array_equal(*of_both)
        with pytest.warns(UserWarning, match="group.s. that the fit has not seen"):
            model.predict_interval(FRAME.assign(shop="new"), level=0.5)


@pytest.mark.filterwarnings("ignore:The loss in")
@pytest.mark.parametrize("make", [
    partial(AutoEraRegressor, PLAIN, members=["level"]),
    partial(EraSearchCV, LEVELS, {"max_leaf_nodes": [4]}),
    partial(EraConformalRegressor, LEVELS),
    partial(EraConformalRegressor, AutoEraRegressor(PLAIN, members=["level"])),
])  # fmt: skip
def test_a_splitter_asks_for_groups_and_horizon_as_parameters_do(make, tmp_path):
    old = week < 15
    model = make(cv=EraSplit(2, 1, group="known", horizon=2, test_size=2))
    model.fit(FRAME[old], y[old], eras=NAMES)
    told = model.predict(FRAME, eras=NAMES)
    assert_allclose(model.predict(FRAME), told)
    with pytest.warns(UserWarning, match="group.s. that the fit has not seen"):
        model.predict(FRAME.assign(shop="new"), eras=NAMES)
    metadata = save_model(model, tmp_path / "m.era")
    assert (metadata.group, metadata.horizon) == ("known", 2)
    assert_allclose(load_model(tmp_path / "m.era")[0].predict(FRAME), told)
    average = getattr(model, "estimator_", model)
    if isinstance(average, AutoEraRegressor):
        assert question_of(average) == {"group": "known", "horizon": 2}
        assert average.members_["level"].era_effects.horizon == 2
        rows = FRAME[~old].drop(columns=NAMES)
        average.update(rows, y[~old], eras=ERAS[~old])
        assert np.isfinite(average.update_log_[-1]["loss"])


def test_both_axes_are_better_than_either_for_known_shops():
    train, test = week < 12, week >= 13
    of_both, losses = AutoEraRegressor(PLAIN, group="known", horizon=2), []
    for model, eras in (
        (of_both, ERAS), (AutoEraRegressor(PLAIN, horizon=2), ERAS.week),
        (AutoEraRegressor(PLAIN, era_order="unordered"), ERAS.shop),
    ):  # fmt: skip
        model.fit(X[train], y[train], eras=eras[train])
        error = y[test] - model.predict(X[test], eras=eras[test])
        losses.append(np.mean(error**2))
    assert losses[0] < 0.7 * min(losses[1:])


@pytest.mark.filterwarnings("ignore:The loss in")
def test_updates_take_in_times_and_groups():
    old, model = week < 13, AutoEraRegressor(PLAIN, members=["level"], group="known")
    model.fit(X[old], y[old], eras=ERAS[old])
    rows = ERAS.assign(shop=ERAS.shop.where(shop < 10, "late " + ERAS.shop))
    for now in (13, 14):
        model.update(X[week == now], y[week == now], eras=rows[week == now])
    entry = model.update_log_[-1]
    assert [pd.Timestamp(x) for x in entry["eras"]] == [DATES[14]]
    assert model._known_eras.size == 15
    assert {"late s10", "late s11"} <= {*model._known_groups}
    left_out = LeftOut(**model._left_out)
    assert left_out.groups.shape == left_out.codes.shape
    level = model.members_["level"].era_intercepts_
    assert "late s10" in level["groups"]
    assert np.datetime64(DATES[14]) in level["times"]
    last = week == 15
    error = y[last] - model.predict(X[last], eras=rows[last])
    assert np.mean(error**2) < 0.5 * y[last].var()
    before, only_new = model.weights_, ERAS.assign(shop="later " + ERAS.shop)
    told = r"^No row of the 1 new era\(s\) is of a known "
    with pytest.warns(UserWarning, match=told):
        model.update(X[last], y[last], eras=only_new[last])
    entry = model.update_log_[-1]
    assert np.isnan(entry["loss"])
    assert (entry["p_value"], model.weights_) == (1, before)
    assert LeftOut(**model._left_out).y.size == left_out.y.size
    level = model.members_["level"].era_intercepts_
    assert "later s1" in level["groups"]
    model.update(X, y, eras=ERAS.assign(week=ERAS.week + pd.Timedelta("350D")))
    assert model._known_eras.size == 32


@pytest.mark.filterwarnings("ignore:The loss in .* new eras")
@pytest.mark.parametrize("hand", [
    partial(make_pipeline, "passthrough"), TransformedTargetRegressor,
    partial(EraTargetRegressor, transformer=UNCHANGED),
    partial(EraSearchCV, param_grid={}, group="known"),
])  # fmt: skip
def test_members_hand_times_and_groups_on(hand):
    old, members = week < 14, [LEVELS, hand(LEVELS)]
    models = [
        AutoEraRegressor(PLAIN, members=[("m", one)], group="known") for one in members
    ]
    for model in models:
        model.fit(X[old], y[old], eras=ERAS[old])
        assert model.weights_["m"] > 0
    assert_allclose(*(model.era_scores_ for model in models))
    for now in (14, 15):
        rows = week == now
        assert_allclose(*(model.predict(X[rows], eras=ERAS[rows]) for model in models))
        for model in models:
            model.update(X[rows], y[rows], eras=ERAS[rows])
    assert_allclose(*(model.predict(X, eras=ERAS) for model in models))


def test_known_groups_do_not_move_the_weights_of_a_model_for_new_ones():
    old, model = week < 13, AutoEraRegressor(PLAIN, members=["level", "linear"])
    model.fit(X[old], y[old], eras=ERAS[old])
    model.weights_ = dict(zip(model.weights_, (0.2, 0.3, 0.5), strict=True))
    before = dict(model.weights_)
    told = "^No row .* new group.*weights stay"
    with pytest.warns(UserWarning, match=told) as caught:
        model.update(X[~old], y[~old], eras=ERAS[~old])
    assert len(caught) == 1
    assert model.weights_ == before
    assert np.datetime64(DATES[15]) in model.members_["level"].era_intercepts_["times"]


def test_classifiers_searches_and_intervals_take_both():
    frame, plain = pd.DataFrame(X, columns=[*"abc"]).join(ERAS), Classifier(max_iter=10)
    model = AutoEraClassifier(plain, members=["level"], group="known")
    model.fit(frame, y > 0, eras=["week", "shop"])
    assert model.n_features_in_ == 3
    p = model.predict_proba(frame, eras=["shop", "week"])
    assert_array_equal(p, model.predict_proba(frame[[*"abc"]], eras=ERAS))
    message = "fit of AutoEraClassifier took two, times and groups .*: pass both"
    with pytest.raises(ValueError, match=message):
        model.predict(frame, eras="week")
    grid = {"era_effects": [Intercepts("auto", horizon=2)]}
    search = EraSearchCV(PLAIN, grid, group="known", horizon=2).fit(X, y, eras=ERAS)
    assert search.best_params_ == grid | {"era_effects": grid["era_effects"][0]}
    assert search.era_scores_.shape == (2, search.era_labels_.size)
    assert search.score(X, y, eras=ERAS) > search.score(X, y)
    widths = []
    for kind in (PLAIN, LEVELS):
        conformal = EraConformalRegressor(kind, group="known").fit(X, y, eras=ERAS)
        told = {"eras": ERAS} if kind is LEVELS else {}
        widths.append(np.diff(conformal.predict_interval(X, 0.7, **told)).mean())
    assert widths[1] < 0.8 * widths[0]
    fewer = EraConformalClassifier(AutoEraClassifier(members=[]), cv=2)
    fewer.fit(X, y > 0, eras=ERAS)
    assert fewer.predict_set(X, 0.6, eras=ERAS).any(axis=1).mean() > 0.5


AVERAGE = partial(AutoEraRegressor, PLAIN, members=["linear"])


@on_grid("make asked", {
    "average": AVERAGE, "search": partial(EraSearchCV, LEVELS, {"max_leaf_nodes": [4]}),
    "intervals": lambda **given: EraConformalRegressor(
        AVERAGE(members=[], **given), **given),
}, [{"group": "known"}, {"n_group_folds": 2}], every=2)  # fmt: skip
def test_a_splitter_may_state_which_column_is_time(make, asked):
    """Of two columns of numbers, in either order."""
    found = []
    for step, order in (1, TIME_FIRST), (-1, TIME_FIRST[::-1]):
        for stated in (order, "auto"):  # then the model states it alone
            cv = EraSplit(2, test_size=3, era_order=stated, **asked)
            model, eras = make(cv=cv, era_order=order), (week, 900 + shop)[::step]
            found.append(model.fit(X, y, eras=eras).predict(X, eras=eras))
            assert_array_equal(model.era_labels_, np.arange(10, N_WEEKS))
            assert cv.era_order == stated
    for other in found[1:]:
        assert_array_equal(other, found[0])


def test_folds_may_come_from_an_iterator():
    folds = [*EraSplit(2, 2).split(X, groups=ERAS)]
    one, other = (AVERAGE(cv=kind(folds)).fit(X, y, eras=ERAS) for kind in (list, iter))
    assert one.weights_ == other.weights_


def test_a_splitter_of_unordered_eras_asks_inner_models_nothing():
    average = AutoEraRegressor(PLAIN, members=["linear"])
    cv = EraSplit(3, era_order="unordered", horizon=2)
    model = EraConformalRegressor(average, era_order="unordered", cv=cv)
    assert model.fit(X, y, eras=shop).estimator_.horizon == 1


A_DAY = np.timedelta64(1, "D")  # which equals the number 1, the default


@pytest.mark.parametrize(("model", "eras", "message"), [
    (AutoEraRegressor(horizon=2, era_order="unordered"), shop, "horizon=2 is for ord"),
    (AutoEraRegressor(horizon=2, cv=EraSplit(2)), week, "as cv a horizon"),
    (AutoEraRegressor(horizon=A_DAY, era_order="unordered"), shop, "is for ordered"),
    (AutoEraRegressor(horizon=99), week, "too few to walk forward"),
    (AutoEraRegressor(horizon="3 moons"), ERAS.week, "horizon must be a number"),
    (AutoEraRegressor(horizon="28D"), week, "horizon is a duration, and labels"),
    (AutoEraRegressor(group="known"), week, "group='known' is for two columns"),
    (AutoEraRegressor(era_order=("ordered", 1)), ERAS, "must be of two columns"),
    (EraConformalRegressor(LinearRegression(), group="known"), week, "two columns"),
    (AutoEraRegressor(), ERAS.assign(shop="s1"), "the single group s1, and group='new"),
    (EraSearchCV(Ridge(), {"alpha": [1]}, group="known"), week, "two columns"),
    (EraSearchCV(Ridge(), {"alpha": [1]}, horizon=3, cv=EraSplit(2)), week, "cv a hor"),
    (EraSearchCV(Ridge(), {"alpha": [1]}), ERAS.assign(week="a"), "which column is ti"),
])  # fmt: skip
def test_what_folds_would_not_follow_is_refused(model, eras, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, eras=eras)


@pytest.mark.parametrize("model", [
    AutoEraRegressor(PLAIN, members=["linear"], cv=2), EraConformalRegressor(Ridge()),
    EraSearchCV(Ridge(), {"alpha": [1]}, cv=2), LEVELS,
    clone(LEVELS).set_params(early_stopping=True),
], ids=["average", "intervals", "search", "levels", "stopping"])  # fmt: skip
def test_a_second_fit_keeps_nothing_of_the_first_one(model):
    given = {"pair": ERAS, "times": ERAS.week, "numbers": week}
    fresh = {name: clone(model).fit(X, y, eras=eras) for name, eras in given.items()}
    again = clone(model).fit(X, y, eras=ERAS)
    # After each kind of eras each other one.
    for name in ("times", "numbers", "pair", "numbers", "times", "pair"):
        again.fit(X, y, eras=given[name])
        assert vars(again).keys() == vars(fresh[name]).keys()
        assert_array_equal(again.predict(X), fresh[name].predict(X))


@pytest.mark.parametrize("eras", [ERAS.week, ERAS])
@pytest.mark.parametrize("make", [
    lambda **asked: AutoEraRegressor(PLAIN, members=["linear"], **asked),
    lambda **asked: EraSearchCV(Ridge(), {"alpha": [9.0]}, **asked),
    lambda **asked: EraConformalRegressor(LinearRegression(), **asked),
])  # fmt: skip
def test_durations_of_all_kinds_are_one_horizon(make, eras):
    """As is the number of weeks in them."""
    in_ns = np.timedelta64(2, "W").astype("m8[ns]")
    horizons = [2, "14D", timedelta(14), 14 * A_DAY, in_ns]
    one, *others = (make(horizon=x).fit(X, y, eras=eras) for x in horizons)
    for other in others:
        assert_array_equal(one.predict(X), other.predict(X))
        for name in ("era_scores_", "conformity_scores_"):
            assert_array_equal(getattr(one, name, 0), getattr(other, name, 0))


def test_a_day_is_not_the_default_of_a_model_within():
    average = AutoEraRegressor(PLAIN, members=["linear"], horizon=A_DAY)
    model = EraConformalRegressor(average, horizon="14D").fit(X, y, eras=ERAS.week)
    assert model.estimator_.horizon == A_DAY


ASKED = {"group": "known", "horizon": 2}
IN_TWO = clone(PLAIN).set_params(era_effects=Intercepts("auto", horizon=2))
SEARCH = EraSearchCV(IN_TWO, {"max_iter": [9]}, **ASKED)


@pytest.mark.parametrize("model", [
    AutoEraRegressor(PLAIN, members=["level"], **ASKED), SEARCH,
    EraConformalRegressor(IN_TWO, **ASKED),
    slow(EraConformalRegressor(SEARCH, **ASKED)),
])  # fmt: skip
def test_months_are_months_in_folds_without_december(model):
    """As numbers 202401, which might be weeks, if the fit has months of two years."""
    models = []
    for eras in (MONTHS[week].year * 100 + MONTHS[week].month, MONTHS[week]):
        models.append(clone(model).fit(X, y, eras=(eras, ERAS.shop)))
    scores = [getattr(x, "cv_results_", {}).get("mean_era_score") for x in models]
    assert_array_equal(*scores)
    assert_array_equal(*(x.predict(X) for x in models))
    if hasattr(model, "predict_interval"):
        assert_array_equal(*(x.predict_interval(X) for x in models))


@pytest.mark.parametrize("group", ["new", "known"])
def test_times_and_groups_without_weight_count_for_nothing(group):
    has_weight = ~np.isin(week, [5, N_WEEKS - 1]) & (shop != 3)
    model = AutoEraRegressor(PLAIN, members=["leaves_4", "level"], group=group)
    expected = clone(model).fit(X[has_weight], y[has_weight], eras=ERAS[has_weight])
    model.fit(X, y, eras=ERAS, sample_weight=2.0 * has_weight)
    assert_array_equal(model.era_labels_, expected.era_labels_)
    asked = ERAS[shop != 3]
    found, expected = (x.predict(X[shop != 3], eras=asked) for x in (model, expected))
    assert_allclose(found, expected)
    search = EraSearchCV(LEVELS, {"max_leaf_nodes": [4]}, group=group)
    search.fit(X, y, eras=ERAS, sample_weight=1.0 * has_weight)
    assert not {*search.era_labels_} & {*DATES[[5, N_WEEKS - 1]].to_numpy()}
    assert np.isfinite(search.era_scores_).all()
