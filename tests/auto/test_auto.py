"""Averages of members, their weights and what they refuse."""

import pickle
import time
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn._loss.loss import HalfSquaredError
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import (
    log_loss,
    mean_absolute_error,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
    r2_score,
)
from sklearn.model_selection import GroupKFold, KFold
from sklearn.tree import DecisionTreeRegressor

from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.auto._candidates import uses_eras
from sklearn_era.auto._losses import loss_of
from sklearn_era.auto._member_search import stages_of
from sklearn_era.auto._weights import LeftOut, update_weights, weigh
from sklearn_era.datasets import make_synthetic_memorization
from sklearn_era.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_era.model_files import load_model, save_model
from sklearn_era.model_selection import EraSearchDisplay, EraWalkForwardSplit

SMALL = {"max_iter": 6, "min_samples_leaf": 5, "random_state": 0}
ALL = [
    "plain", "linear", "additive", "leaves_8", "level", "leaves_4", "forest",
    "last_levels", "directional",
]  # fmt: skip


def make_levels(n_eras=16, n_rows=60):
    """Rows of eras whose level drifts."""
    rng = np.random.default_rng(0)
    eras = np.repeat(np.arange(n_eras), n_rows)
    X = rng.normal(size=(eras.size, 2))
    y = np.sin(X[:, 0]) + 0.3 * np.cumsum(rng.normal(size=n_eras))[eras]
    return X, y + 0.1 * rng.normal(size=eras.size), eras


@pytest.mark.parametrize(
    ("params", "folds"),
    [
        ({}, EraWalkForwardSplit(3, test_size=2)),
        ({"era_order": "unordered", "cv": 2}, GroupKFold(2)),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_and_predictions_are_those_by_hand(params, folds, weighted):
    X, y, eras = make_levels()
    weights = np.random.default_rng(1).uniform(0.5, 2, y.size) if weighted else None
    plain = HistGradientBoostingRegressor(**SMALL)
    members = [("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3))]
    model = AutoEraRegressor(plain, members=members, **params)
    model.fit(X, y, eras=eras, sample_weight=weights)
    names, models = ["plain", "ridge", "tree"], [plain, *(x for _, x in members)]

    def predict(model, train, test):
        w = None if weights is None else weights[train]
        return clone(model).fit(X[train], y[train], sample_weight=w).predict(X[test])

    found = {}
    for train, test in folds.split(eras, groups=eras):
        p = np.array([predict(one, train, test) for one in models])
        p = np.vstack([p, list(model.weights_.values()) @ p])
        for era in np.unique(eras[test]):
            rows = eras[test] == era
            w = None if weights is None else weights[test][rows]
            found[era] = [
                -mean_squared_error(y[test][rows], x[rows], sample_weight=w) for x in p
            ]
    expected = np.array([found[era] for era in sorted(found)]).T
    np.testing.assert_allclose(model.era_scores_, expected)
    assert model.era_labels_.tolist() == sorted(found)
    results = model.cv_results_
    assert results["member"].tolist() == [*names, "average"]
    np.testing.assert_allclose(results["mean_era_score"], expected.mean(axis=1))
    np.testing.assert_allclose(results["worst_era_score"], expected.min(axis=1))
    differences = expected - expected[0]
    np.testing.assert_allclose(results["mean_difference"], differences.mean(axis=1))
    n = len(found)
    errors = differences.std(axis=1, ddof=1) / np.sqrt(n)
    if not params:  # and neighbours resemble each other
        distances = abs(np.subtract.outer(np.arange(n), np.arange(n)))
        kernel = np.maximum(1 - distances / (np.ceil(n ** (1 / 3)) + 1), 0)
        d = differences - differences.mean(axis=1, keepdims=True)
        errors = np.maximum(errors, np.sqrt(np.sum(d @ kernel * d, axis=1)) / n)
    np.testing.assert_allclose(results["se_difference"], errors)
    rows = np.arange(y.size)
    predicted = [predict(one, rows, rows) for one in models]
    np.testing.assert_allclose(
        model.predict(X), list(model.weights_.values()) @ np.array(predicted)
    )
    assert list(model.members_) == [x for x in names if model.weights_[x] > 0]


def left_out(predicted, y, codes, weights):
    stages = {name: [*range(1, len(p) + 1)] for name, p in predicted.items()}
    return LeftOut(predicted, stages, y, weights / weights.sum(), codes)


def by_brute_force(predicted, y, weights, codes):
    """Half the best weights on a grid of the simplex, and half those of the best."""
    steps = range(0, 101, 2)
    grid = np.array(
        [(i, j, k, 100 - i - j - k) for i in steps for j in steps for k in steps]
    )
    grid = grid[grid.min(axis=1) >= 0] / 100
    losses = [np.average((w @ predicted - y) ** 2, weights=weights) for w in grid]
    single = np.array([(p - y) ** 2 for p in predicted])
    order = np.argsort(np.average(single, weights=weights, axis=1))[:3]
    best = np.zeros(len(predicted))
    for i in order:
        d = single[i] - single[order[0]]
        d = [np.average(d[codes == j], weights=weights[codes == j]) for j in range(6)]
        best[i] = np.mean(d) <= np.std(d, ddof=1) / np.sqrt(6)
    return 0.5 * grid[np.argmin(losses)] + 0.5 * best / best.sum()


@pytest.mark.parametrize("noise_of_eras", [0.1, 1.0])
def test_weights_are_those_by_brute_force(noise_of_eras):
    rng = np.random.default_rng(0)
    codes = np.repeat(range(6), [50, 100, 150, 50, 100, 150])
    y = rng.normal(size=600)
    # Two members that rows favour, and two that eras do.
    noise = np.array([[0.5], [0.6], [1.0], [1.2]])
    of_rows = y + noise * rng.normal(size=(4, 600))
    drift = noise_of_eras * rng.normal(size=6)[codes]
    of_eras = of_rows + drift * np.array([[1], [1], [0], [0.5]])
    weights = 1 / np.bincount(codes)[codes]
    names = list("abcd")
    eras = left_out(dict(zip(names, of_eras[:, None], strict=True)), y, codes, weights)
    rows = left_out(
        dict(zip(names, of_rows[:, None], strict=True)), y, codes, np.ones(600)
    )
    found = weigh(eras, rows, loss_of(HistGradientBoostingRegressor()))
    by_eras = by_brute_force(of_eras, y, weights, codes)
    by_rows = by_brute_force(of_rows, y, np.ones(600), codes)
    d = (by_rows @ of_eras - y) ** 2 - (by_eras @ of_eras - y) ** 2
    d = np.array([d[codes == j].mean() for j in range(6)])
    z = d.mean() / (d.std(ddof=1) / np.sqrt(6)) if d.any() else 0
    share = min(max((z - 1) / 2, 0), 1)
    assert (share > 0) == (noise_of_eras == 1.0)
    expected = share * by_eras + (1 - share) * by_rows
    np.testing.assert_allclose(list(found.weights.values()), expected, atol=0.02)
    assert sum(found.weights.values()) == pytest.approx(1)
    assert list(found.stages.values()) == [1, 1, 1, 1]


def test_members_of_eras_alone_have_no_weight_by_rows():
    """Nor have few trees, if eras are no better than chance."""
    rng = np.random.default_rng(0)
    codes = np.repeat(range(6), 50)
    y = rng.normal(size=300)
    stages = y + np.array([[0.5], [0.7]]) * rng.normal(size=(2, 300))
    alone = y + 0.49 * rng.normal(size=(1, 300))
    eras = left_out({"a": stages[::-1], "b": alone}, y, codes, np.ones(300))
    rows = left_out({"a": stages}, y, codes, np.ones(300))
    loss = loss_of(HistGradientBoostingRegressor())
    both = weigh(eras, rows, loss)
    assert both.weights["b"] > 0
    same = left_out({"a": stages, "b": alone + 5}, y, codes, np.ones(300))
    found = weigh(same, rows, loss)
    assert found.weights == {"a": 1.0, "b": 0.0}
    assert found.stages == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("params", "metric"),
    [
        ({}, mean_squared_error),
        ({"loss": "absolute_error"}, mean_absolute_error),
        ({"loss": "poisson"}, lambda y, p: mean_poisson_deviance(y, p) / 2),
        ({"loss": "gamma"}, lambda y, p: mean_gamma_deviance(y, p) / 2),
        ({"loss": "quantile", "quantile": 0.8}, partial(mean_pinball_loss, alpha=0.8)),
    ],
)
def test_losses_are_the_plain_model_s(params, metric):
    X, y, eras = make_levels()
    y = np.exp(y / 3)
    plain = HistGradientBoostingRegressor(**SMALL, **params)
    model = AutoEraRegressor(plain, era_order="unordered", cv=2).fit(X, y, eras=eras)
    train, test = next(GroupKFold(2).split(X, groups=eras))
    predicted = clone(plain).fit(X[train], y[train]).predict(X[test])
    rows = eras[test] == eras[test][0]
    expected = -metric(y[test][rows], predicted[rows])
    assert model.era_scores_[0, eras[test][0]] == pytest.approx(expected)
    has_means = "loss" not in params or params["loss"] in ("poisson", "gamma")
    of_means = [] if has_means else ["linear", "forest"]
    missing = [*of_means, "last_levels"]  # as eras are not ordered
    assert list(model.weights_) == [name for name in ALL if name not in missing]
    # Derivatives by differences.
    loss, p = loss_of(plain), np.linspace(0.5, 2, 7)
    slope = (loss(1.1, p + 1e-6) - loss(1.1, p - 1e-6)) / 2e-6
    np.testing.assert_allclose(loss.derivative(1.1, p), slope, rtol=1e-5)


def test_counts_get_the_number_of_trees_of_least_deviance():
    """Log likelihoods, which may have either sign, would turn shares of them around."""
    rng = np.random.default_rng(0)
    eras, X = np.repeat(range(8), 40), rng.normal(size=(320, 3))
    y = rng.poisson(20 * np.exp(X[:, 0] / 2)).astype(float)
    plain = HistGradientBoostingRegressor(loss="poisson", max_iter=10, random_state=0)
    model = AutoEraRegressor(plain, members=["leaves_8"]).fit(X, y, eras=eras)
    assert model.cv_results_["stage"][1] > 10
    with pytest.warns(UserWarning, match="larger than expected"):
        model.update(X[eras > 5], 4 * y[eras > 5], eras=eras[eras > 5] + 2)
    constant = AutoEraRegressor(members=["leaves_8"]).fit(X, np.ones(320), eras=eras)
    assert (constant.predict(X) == 1).all()


def test_averages_of_classes_are_of_probabilities():
    X, y, eras = make_levels()
    y = np.digitize(y, [-0.5, 0.5]).astype(str)
    y[(y == "2") & (eras < 12)] = "1"  # no class 2 before the last folds
    plain = HistGradientBoostingClassifier(**SMALL)
    model = AutoEraClassifier(plain).fit(X, y, eras=eras)
    expected = sum(
        model.weights_[name] * one.predict_proba(X)
        for name, one in model.members_.items()
    )
    np.testing.assert_allclose(model.predict_proba(X), expected)
    assert (model.predict(X) == model.classes_[expected.argmax(axis=1)]).all()
    np.testing.assert_allclose(expected.sum(axis=1), 1)
    binary = AutoEraClassifier(plain, cv=2).fit(X, y == "1", eras=eras)
    train, test = next(EraWalkForwardSplit(2, test_size=4).split(eras, groups=eras))
    p = clone(plain).fit(X[train], y[train] == "1").predict_proba(X[test])
    rows = eras[test] == binary.era_labels_[0]
    assert -binary.era_scores_[0, 0] == pytest.approx(
        log_loss(y[test][rows] == "1", p[rows], labels=[False, True])
    )


def test_the_number_of_trees_is_that_of_the_least_loss():
    X, y, eras = make_levels()
    y = np.random.default_rng(0).normal(size=y.size)  # nothing to learn: few trees
    member = HistGradientBoostingRegressor(max_iter=40, early_stopping=False)
    plain = HistGradientBoostingRegressor(max_iter=40, random_state=0)
    model = AutoEraRegressor(plain, members=[("few", member)]).fit(X, y, eras=eras)
    stages = stages_of(member)
    assert stages == [2, 4, 6, 8, 12, 16, 20, 24, 28, 34, 40]
    losses = np.zeros(40)
    for train, test in KFold(3, shuffle=True, random_state=0).split(X):
        fitted = clone(member).fit(X[train], y[train])
        staged = fitted.staged_predict(X[test])
        losses += [mean_squared_error(y[test], p) for p in staged]
    best = min(stages, key=lambda n: losses[n - 1])
    assert model.cv_results_["stage"][1] == best  # eras add nothing to rows
    for name, fitted in model.members_.items():
        assert fitted.n_iter_ == model.cv_results_["stage"][int(name == "few")]


@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_the_plain_model_is_kept_unless_the_average_is_better(noise):
    X, _, eras = make_levels()
    plain = HistGradientBoostingRegressor(**SMALL)
    worse = HistGradientBoostingRegressor(max_iter=1, early_stopping=False)
    members = [("worse", worse if noise else Ridge())]
    model = AutoEraRegressor(plain, members=members)
    model.fit(X, np.sin(3 * X[:, 0]) if noise else X[:, 0], eras=eras)
    mean, error = (model.cv_results_[f"{x}_difference"][-1] for x in ("mean", "se"))
    assert (model.weights_["plain"] == 1) == (mean <= error) == bool(noise)
    if noise:
        expected = clone(plain).fit(X, np.sin(3 * X[:, 0])).predict(X)
        assert (model.predict(X) == expected).all()


@pytest.mark.parametrize("early_stopping", [False, True])
def test_the_level_of_later_eras_is_found(early_stopping):
    """It is that of the last eras, and not of those before eras that are held out."""
    X, y, eras = make_levels()
    plain = HistGradientBoostingRegressor(
        max_iter=30, min_samples_leaf=10, early_stopping=early_stopping, random_state=0
    )
    model = AutoEraRegressor(plain).fit(X, y, eras=eras)
    assert model.weights_["level"] + model.weights_["last_levels"] > 0.4
    levels = [name for name in model.members_ if "level" in name]
    for name in levels:
        assert list(model.members_[name].era_intercepts_) == list(range(16))
    with_eras = model.predict(X, eras=eras)
    assert mean_squared_error(y, with_eras) < mean_squared_error(y, model.predict(X))
    assert model.score(X, y, eras=eras) == r2_score(y, with_eras)
    assert model.score(X, y) == r2_score(y, model.predict(X))
    unordered = clone(model).set_params(era_order="unordered").fit(X, y, eras=eras)
    assert unordered.era_order_ == "unordered"


@pytest.mark.slow
def test_a_shortcut_is_seen_through():
    """By a member whose splits every era has to agree on."""
    data = make_synthetic_memorization(random_state=0)
    booster = HistGradientBoostingClassifier(max_iter=30, early_stopping=False)
    agreed = clone(booster).set_params(
        split_criterion="directional", min_era_coverage=1.0, min_gain_share=0.0
    )
    members = ["default", ("agreed", agreed)]
    model = AutoEraClassifier(booster, members=members, era_order="unordered", cv=2)
    model.fit(data.X_train, data.y_train, eras=data.eras_train)
    plain = HistGradientBoostingClassifier(max_iter=30).fit(data.X_train, data.y_train)
    assert model.score(data.X_test, data.y_test) > plain.score(data.X_test, data.y_test)
    assert model.predict_proba(data.X_test).shape == (2000, 2)


def test_fits_are_the_same_in_parallel_and_after_pickling(capsys):
    X, y, eras = make_levels()
    plain = HistGradientBoostingRegressor(**SMALL)
    one = AutoEraRegressor(plain, verbose=1).fit(X, y, eras=eras)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 16
    assert lines[0].startswith("AutoEra 1/9: plain, loss ")
    two = AutoEraRegressor(plain, n_jobs=2).fit(X, y, eras=eras)
    assert (one.predict(X) == two.predict(X)).all()
    assert one.weights_ == two.weights_
    assert (pickle.loads(pickle.dumps(one)).predict(X) == one.predict(X)).all()


def test_few_eras_few_rows_and_constraints_have_fewer_members():
    X, y, eras = make_levels(4)
    plain = HistGradientBoostingRegressor(**SMALL)
    model = AutoEraRegressor(plain).fit(X, y, eras=eras)
    few = ["plain", "linear", "additive", "leaves_8", "leaves_4"]
    assert list(model.weights_) == few  # of 240 rows
    X, y, eras = make_levels(4, 75)
    model.fit(X, y, eras=eras)
    assert list(model.weights_) == [*few, "forest"]
    plain.set_params(monotonic_cst=[1, 0])
    constrained = AutoEraRegressor(plain).fit(X, y, eras=eras)
    assert list(constrained.weights_) == ["plain", *few[2:]]


def test_a_time_budget_leaves_members_out():
    X, y, eras = make_levels(16, 200)
    plain = HistGradientBoostingRegressor(max_iter=50, random_state=0, n_jobs=1)
    start = time.perf_counter()
    AutoEraRegressor(plain).fit(X, y, eras=eras)
    whole = time.perf_counter() - start
    start = time.perf_counter()
    model = AutoEraRegressor(plain, time_budget=whole / 2).fit(X, y, eras=eras)
    assert time.perf_counter() - start < 0.75 * whole
    assert list(model.weights_) == ALL[: len(model.weights_)] < ALL
    shortest = AutoEraRegressor(plain, time_budget=1e-9).fit(X, y, eras=eras)
    assert shortest.weights_ == {"plain": 1.0}


def test_tables_with_categories_and_missing_values():
    X, y, eras = make_levels()
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["kind"] = np.random.default_rng(0).choice(list("uvw"), y.size)
    frame.loc[::7, "b"] = np.nan
    frame.loc[::9, "kind"] = None
    y = y + (frame["kind"] == "u")
    frame["kind"] = frame["kind"].astype("category")
    model = AutoEraRegressor(HistGradientBoostingRegressor(**SMALL))
    model.fit(frame.assign(week=eras), y, eras="week")
    assert model.feature_names_in_.tolist() == ["a", "b", "kind"]
    unknown = pd.Categorical(["unknown"] * y.size)
    predicted = model.predict(frame.assign(kind=unknown))
    assert np.isfinite(predicted).all()
    assert r2_score(y, model.predict(frame.assign(week=eras), eras="week")) > 0.7


def fail(X, y):
    raise ValueError("not today")


class Failing(Ridge):
    def fit(self, X, y, sample_weight=None):
        fail(X, y)


def test_a_member_that_fails_is_left_out():
    X, y, eras = make_levels()
    plain = HistGradientBoostingRegressor(**SMALL)
    members = [("failing", Failing()), ("ridge", Ridge())]
    with pytest.warns(UserWarning, match=r"failing cannot be fitted.*not today"):
        model = AutoEraRegressor(plain, members=members).fit(X, y, eras=eras)
    assert list(model.weights_) == ["plain", "ridge"]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: AutoEraRegressor(Ridge()), "must be a HistGradientBoostingRegressor"),
        (lambda: AutoEraRegressor(members=["all"]), "names of default members"),
        (lambda: AutoEraRegressor(members=[("plain", Ridge())]), "'plain' twice"),
        (lambda: AutoEraRegressor(members=["default", "default"]), "'additive' twice"),
        (lambda: AutoEraRegressor(members=[("a", 3)]), r"'a' must be a text.*int"),
        (lambda: AutoEraRegressor(members=[("a", LogisticRegression())]), "regressor"),
        (lambda: AutoEraRegressor(time_budget=0), "time_budget"),
        (
            lambda: AutoEraRegressor(
                HistGradientBoostingRegressor(loss=HalfSquaredError())
            ),
            "by its name",
        ),
    ],
)  # fmt: skip
def test_slips_get_a_sentence(make, match):
    X, y, eras = make_levels()
    with pytest.raises(ValueError, match=match):
        make().fit(X, y, eras=eras)


def test_members_are_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y, eras = make_levels()
    members = [("ridge", Ridge())]
    plain = HistGradientBoostingRegressor(**SMALL)
    model = AutoEraRegressor(plain, members=members).fit(X, y, eras=eras)
    display = EraSearchDisplay.from_search(model)
    assert list(display.names) == ["ridge", "average"]
    assert display.chosen == (None if model.weights_["plain"] == 1 else 1)
    pyplot.close(display.figure_)


@pytest.mark.filterwarnings("ignore:The loss in 3 new eras")
def test_new_eras_are_scored_and_weighed():
    X, y, eras = make_levels()
    plain = HistGradientBoostingRegressor(**SMALL)
    members = [("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3))]
    is_old, is_new = eras < 12, eras >= 13
    model = AutoEraRegressor(plain, members=members)
    model.fit(X[is_old], y[is_old], eras=eras[is_old])
    before = model.predict(X)
    scores = -model.era_scores_[-1]
    rows = eras != 12
    model.update(X[is_new], y[is_new], eras=eras[is_new])
    (entry,) = model.update_log_
    new = [np.mean((y - before)[eras == era] ** 2) for era in (13, 14, 15)]
    assert entry["eras"] == [13, 14, 15]
    assert entry["loss"] == pytest.approx(np.mean(new))
    assert entry["expected"] == pytest.approx(scores.mean())
    error = scores.std(ddof=1) * np.sqrt(1 / 6 + 1 / 3)
    assert entry["error"] == pytest.approx(error)
    statistic = (np.mean(new) - scores.mean()) / error
    assert entry["p_value"] == pytest.approx(stats.t.sf(statistic, 5))
    assert sum(model.weights_.values()) == pytest.approx(1)
    assert not entry["refit"]
    with pytest.raises(ValueError, match=r"all of which the model has seen"):
        model.update(X[rows], y[rows], eras=eras[rows])
    assert len(model.update_log_) == 1
    assert "update_log_" not in vars(model.fit(X[is_old], y[is_old], eras=eras[is_old]))


def test_weights_move_to_what_is_better_in_new_eras():
    rng = np.random.default_rng(0)
    codes = np.repeat(range(12), 50)
    y = rng.normal(size=600)
    good, bad = (y + s * rng.normal(size=600) for s in (0.1, 0.5))
    eras = left_out({"a": bad[None], "b": good[None]}, y, codes, np.ones(600))
    loss = loss_of(HistGradientBoostingRegressor())
    moved = update_weights(eras, np.array([1.0, 0.0]), loss)
    assert moved[1] > 0.95
    kept = np.array([0.04, 0.96])
    np.testing.assert_allclose(update_weights(eras, kept, loss), kept, atol=0.05)


def test_a_refit_needs_the_rows_of_all_eras():
    X, y, eras = make_levels()
    changed = np.where(eras < 14, y, 5 + X[:, 1])
    plain = HistGradientBoostingRegressor(**SMALL)
    is_old = eras < 14
    model = AutoEraRegressor(plain, members=[("ridge", Ridge())])
    model.fit(X[is_old], y[is_old], eras=eras[is_old])
    other = pickle.loads(pickle.dumps(model))
    with pytest.warns(UserWarning, match=r"larger than expected.*rows of all earlier"):
        other.update(X[~is_old], changed[~is_old], eras=eras[~is_old])
    assert not other.update_log_[0]["refit"]
    model.update(X, changed, eras=eras)
    assert model.update_log_[0]["refit"]
    expected = clone(model.members_["plain"]).fit(X, changed).predict(X)
    assert (model.members_["plain"].predict(X) == expected).all()


def test_levels_of_new_eras_are_taken_in():
    X, y, eras = make_levels(20)
    y = y + np.where(eras < 16, 0, 1.0)  # a step that lasts
    is_old = eras < 18
    plain = HistGradientBoostingRegressor(**SMALL)
    model = AutoEraRegressor(plain).fit(X[is_old], y[is_old], eras=eras[is_old])
    last = eras == 19
    error = mean_squared_error(y[last], model.predict(X[last]))
    model.update(X[eras == 18], y[eras == 18], eras=eras[eras == 18])
    levels = [name for name in model.members_ if "level" in name]
    assert all(18 in model.members_[name].era_intercepts_ for name in levels)
    assert levels
    assert mean_squared_error(y[last], model.predict(X[last])) < error


def test_default_members_are_chosen_by_name_and_folds_of_rows_are_enough():
    """With folds of rows alone, weights are those of any super learner."""
    X, y, eras = make_levels()
    folds = KFold(3, shuffle=True, random_state=1)
    plain = HistGradientBoostingRegressor(**SMALL)
    names = ["leaves_4", "linear", ("tree", DecisionTreeRegressor(max_depth=2))]
    model = AutoEraRegressor(plain, members=names, cv=folds).fit(X, y, eras=eras)
    assert list(model.weights_) == ["plain", "leaves_4", "linear", "tree"]
    p = np.empty(y.size)
    for train, test in folds.split(X):
        tree = DecisionTreeRegressor(max_depth=2).fit(X[train], y[train])
        p[test] = tree.predict(X[test])
    expected = [-np.mean((y - p)[eras == era] ** 2) for era in range(16)]
    np.testing.assert_allclose(model.era_scores_[3], expected)
    few = AutoEraRegressor(plain, members=["level", "linear"], cv=2)
    with pytest.raises(ValueError, match=r"members has 'level', which these data.*six"):
        few.fit(X[eras < 4], y[eras < 4], eras=eras[eras < 4])


def test_targets_that_overlap_have_no_folds_of_rows(capsys):
    X, y, eras = make_levels()
    plain = HistGradientBoostingRegressor(**SMALL)
    folds = EraWalkForwardSplit(3, test_size=2, gap=2, era_order="ordered")
    model = AutoEraRegressor(plain, members=["linear"], cv=folds, verbose=1)
    model.fit(X, y, eras=eras)
    assert "in rows left out" not in capsys.readouterr().out
    assert model.era_labels_.tolist() == [10, 11, 12, 13, 14, 15]


def make_update(eras, **params):
    """A model of the first 12 eras of 16, and the rows."""
    X, y, codes = make_levels()
    plain = HistGradientBoostingRegressor(**SMALL)
    model = AutoEraRegressor(plain, members=["level"], **params)
    labels = eras(codes)
    return model.fit(X[codes < 12], y[codes < 12], eras=labels[codes < 12]), X, y, codes


@pytest.mark.filterwarnings("ignore:The loss in")
def test_dates_are_known_in_any_unit_and_saved(tmp_path):
    def days(codes):
        return np.datetime64("2024-01-01") + 7 * codes.astype("m8[D]")

    model, X, y, codes = make_update(lambda codes: days(codes).astype("M8[ns]"))
    model.update(X, y, eras=days(codes))
    assert model.update_log_[0]["eras"] == list(days(np.arange(12, 16)))
    assert model._known_eras.size == 16
    save_model(model, tmp_path / "model.era")
    loaded, _ = load_model(tmp_path / "model.era")
    assert loaded.update_log_[0]["eras"] == list(days(np.arange(12, 16)))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"eras": lambda codes: codes.astype(str)}, "of type str, but the eras"),
        ({"eras": lambda codes: codes - 20}, "-8, which is new but lies before the"),
        ({"weights": lambda y: 0 * y}, "at least one non-zero number"),
        ({"y": lambda y: np.where(y > 0, np.nan, y)}, "contains NaN"),
        ({"eras": None}, "update needs targets and eras"),
    ],
)
def test_what_an_update_cannot_take_in(change, match):
    model, X, y, codes = make_update(lambda codes: codes)
    before, new = pickle.dumps(model), codes >= 12
    given = {"eras": codes[new], "y": y[new], "weights": np.ones(new.sum())}
    for name, make in change.items():
        given[name] = None if make is None else make(given[name])
    with pytest.raises(ValueError, match=match):
        model.update(X[new], given["y"], eras=given["eras"],
                     sample_weight=given["weights"])  # fmt: skip
    assert pickle.dumps(model) == before


def test_classes_that_the_fit_lacks_are_refused():
    X, y, eras = make_levels()
    classes = np.where(y > 0.5, "c", np.where(y > 0, "b", "a"))
    old = (eras < 12) & (classes != "c")
    model = AutoEraClassifier(HistGradientBoostingClassifier(**SMALL), members=[])
    model.fit(X[old], classes[old], eras=eras[old])
    with pytest.raises(ValueError, match="the class 'c', which the fit has not seen"):
        model.update(X, classes, eras=eras)


def test_eras_without_weight_count_for_nothing():
    X, y, eras = make_levels()
    weights = np.where(np.isin(eras, [3, 15]), 0.0, 1.0)
    plain = HistGradientBoostingRegressor(**SMALL)
    model = AutoEraRegressor(plain, members=["leaves_8"], cv=3)
    old = eras < 14
    model.fit(X[old], y[old], eras=eras[old], sample_weight=weights[old])
    model.fit(X, y, eras=eras, sample_weight=weights)
    assert np.isnan(model.era_scores_).sum() == 3  # of the last era
    assert np.isfinite(model.cv_results_["mean_era_score"]).all()


def test_targets_of_any_container():
    X, y, eras = make_levels()
    plain = HistGradientBoostingRegressor(**SMALL)
    expected = AutoEraRegressor(plain, members=["level"]).fit(X, y, eras=eras)
    for other in (pl.Series(y), y.astype(object)):
        model = clone(expected).fit(X, other, eras=eras)
        assert (model.predict(X) == expected.predict(X)).all()
    with pytest.warns(DataConversionWarning, match="column-vector"):
        clone(expected).fit(X, y[:, np.newaxis], eras=eras)


def test_members_that_use_eras_have_no_folds_of_rows():
    has_level = HistGradientBoostingRegressor(era_effects="intercept")
    assert uses_eras("mine", has_level)
    assert uses_eras("mine", HistGradientBoostingRegressor(split_criterion="era"))
    assert not uses_eras("mine", HistGradientBoostingRegressor())
    assert not uses_eras("mine", Ridge())
