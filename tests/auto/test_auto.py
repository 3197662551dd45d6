"""Averages of members, their weights and what they refuse."""

import pickle
import re
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from sklearn import config_context, metrics
from sklearn._loss.loss import HalfSquaredError
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    BaggingRegressor,
    HistGradientBoostingRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, scale
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.class_weight import compute_sample_weight

from helpers.data import make_levels
from helpers.grids import on_grid, slow
from sklearn_era._eras import encode_eras
from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor, _member_search
from sklearn_era.auto import _estimator as estimators
from sklearn_era.auto._candidates import make_members, uses_eras
from sklearn_era.auto._categories import columns_of
from sklearn_era.auto._fallback import keep
from sklearn_era.auto._linear import LinearRegressor
from sklearn_era.auto._member_search import Rows
from sklearn_era.auto._row_losses import loss_of
from sklearn_era.auto._weights import LeftOut, promising, update_weights, weigh
from sklearn_era.calibration import EraConformalRegressor
from sklearn_era.effects import Intercepts
from sklearn_era.ensemble import EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.inspection import shap_values
from sklearn_era.model_files import load_model, save_model
from sklearn_era.model_selection import (
    EraSearchCV,
    EraSearchDisplay,
    EraSplit,
    EraWalkForwardSplit,
)
from sklearn_era.preprocessing import (
    EraStandardScaler,
    EraTargetEncoder,
    EraTargetRegressor,
    EraTargetTransformer,
)

SMALL = {"max_iter": 6, "max_leaf_nodes": 12, "min_samples_leaf": 5, "random_state": 0}
PLAIN = Regressor(**SMALL)
SQUARED = loss_of(PLAIN)
ALL = [
    "plain", "linear", "additive", "symmetric", "level", "large", "leaves_4",
    "last_levels",
]  # fmt: skip
TWO = [("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3))]
X, Y, ERAS = make_levels()


def auto(members="default", **params):
    return AutoEraRegressor(PLAIN, members=members, **params)


def fit(model, rows, y=Y, **params):
    return model.fit(X[rows], y[rows], eras=ERAS[rows], **params)


def update(model, rows, y=Y, **params):
    return model.update(X[rows], y[rows], eras=ERAS[rows], **params)


@on_grid("weighted case", [False, True], {
    "ordered": ({}, EraWalkForwardSplit(3, test_size=2)),
    "unordered": ({"era_order": "unordered", "cv": 2}, GroupKFold(2)),
}, every=2)  # fmt: skip
def test_scores_and_predictions_are_those_by_hand(weighted, case):
    params, folds = case
    weights = np.random.default_rng(1).uniform(0.5, 2, Y.size) if weighted else None
    model = auto(TWO, **params).fit(X, Y, eras=ERAS, sample_weight=weights)
    names, models = ["plain", "ridge", "tree"], [PLAIN, *(x for _, x in TWO)]

    def predict(model, train, test):
        w = None if weights is None else weights[train]
        return clone(model).fit(X[train], Y[train], sample_weight=w).predict(X[test])

    found = {}
    for train, test in folds.split(ERAS, groups=ERAS):
        p = np.array([predict(one, train, test) for one in models])
        p = np.vstack([p, list(model.weights_.values()) @ p])
        for era in np.unique(ERAS[test]):
            rows = ERAS[test] == era
            w = None if weights is None else weights[test][rows]
            squares = (p[:, rows] - Y[test][rows]) ** 2
            found[era] = -np.average(squares, axis=1, weights=w)
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
    every = np.arange(Y.size)
    predicted = [predict(one, every, every) for one in models]
    average = list(model.weights_.values()) @ np.array(predicted)
    np.testing.assert_allclose(model.predict(X), average)
    assert list(model.members_) == [x for x in names if model.weights_[x] > 0]


def left_out(predicted, y, codes, weights):
    stages = {name: [*range(1, len(p) + 1)] for name, p in predicted.items()}
    return LeftOut(predicted, stages, y, weights / weights.sum(), codes)


def by_brute_force(predicted, y, weights, codes):
    """The best weights on a grid of the simplex, three times, and those of the best."""
    grid = np.indices((51, 51, 51)).reshape(3, -1).T / 50
    grid = np.column_stack([grid, 1 - grid.sum(axis=1)])[grid.sum(axis=1) <= 1]
    squares = (predicted * weights) @ predicted.T
    losses = ((grid @ squares) * grid).sum(axis=1)
    losses -= 2 * grid @ predicted @ (weights * y)
    single = np.array([(p - y) ** 2 for p in predicted])
    order = np.argsort(np.average(single, weights=weights, axis=1))[:3]
    best = np.zeros(len(predicted))
    for i in order:
        d = single[i] - single[order[0]]
        d = [np.average(d[codes == j], weights=weights[codes == j]) for j in range(6)]
        best[i] = np.mean(d) <= np.std(d, ddof=1) / np.sqrt(6)
    return 0.75 * grid[np.argmin(losses)] + 0.25 * best / best.sum()


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
    weights, ones = 1 / np.bincount(codes)[codes], np.ones(600)
    eras, rows = (
        left_out(dict(zip("abcd", p[:, None], strict=True)), y, codes, w)
        for p, w in ((of_eras, weights), (of_rows, ones))
    )
    found = weigh(eras, rows, SQUARED)
    by_eras = by_brute_force(of_eras, y, weights, codes)
    by_rows = by_brute_force(of_rows, y, ones, codes)
    d = (by_rows @ of_eras - y) ** 2 - (by_eras @ of_eras - y) ** 2
    d = np.array([d[codes == j].mean() for j in range(6)])
    z = d.mean() / (d.std(ddof=1) / np.sqrt(6)) if d.any() else 0
    share = min(max((z - 1) / 2, 0), 1)
    assert (share > 0) == (noise_of_eras == 1.0)
    expected = share * by_eras + (1 - share) * by_rows
    np.testing.assert_allclose(list(found.weights.values()), expected, atol=0.02)
    assert sum(found.weights.values()) == pytest.approx(1)
    assert list(found.stages.values()) == [1, 1, 1, 1]


@pytest.mark.parametrize(("gains", "of_rows", "kept"), [
    ([0.3, 0.3, 0.3], 0.0, "average"), ([0.8, 0.1, -0.5], 0.3, "rows"),
    ([0.8, 0.1, -0.5], 0.0, "plain"), ([0.4, 0.1, -0.9], 0.3, "plain"),
    ([0.8, 0.1, -0.5], None, "plain"),
])  # fmt: skip
def test_rows_leave_the_plain_model_where_few_eras_cannot(gains, of_rows, kept):
    """`gains` are those of a member in eras, `None` stands for no folds of rows."""
    rng = np.random.default_rng(0)
    codes, ones = np.repeat(range(3), 400), np.ones(1200)
    y = rng.normal(size=1200)
    p = {"plain": [y + np.sqrt(2)], "a": [y + np.sqrt(2 - np.take(gains, codes))]}
    eras = left_out({k: np.array(x) for k, x in p.items()}, y, codes, ones)
    rows = eras
    if of_rows is not None:
        noise = rng.normal(size=1200)
        p = {"plain": [y + np.sqrt(2) * noise], "a": [y + np.sqrt(2 - of_rows) * noise]}
        rows = left_out({k: np.array(x) for k, x in p.items()}, y, codes, ones)
    found, average = keep(eras, rows, SQUARED)
    weights = np.array([*found.weights.values()])
    if kept == "plain":
        assert weights.tolist() == [1, 0]
        assert (found.predicted[0] == eras.predicted["plain"][-1]).all()
        assert (average != found.predicted[0]).any()
    else:
        share = 0.0 if kept == "rows" else None
        same = weigh(eras, rows, SQUARED, share=share)
        assert found.weights == same.weights
        np.testing.assert_array_equal(average, weights @ found.predicted)
        assert weights[1] > 0.1


def test_plain_models_may_have_more_parameters():
    class Wider(Regressor):
        def __init__(self, extra=1, max_iter=6, random_state=0, **params):
            super().__init__(max_iter=max_iter, random_state=random_state, **params)
            self.extra = extra

        @classmethod
        def _get_param_names(cls):
            return ["extra", *Regressor._get_param_names()]

    found = make_members(Wider(extra=2), "default", SQUARED, 1000, 16, True)
    assert list(found) == ALL
    assert found["symmetric"].max_iter == 15
    assert found["large"].extra == 2


def test_members_of_eras_alone_have_no_weight_by_rows():
    """Nor have few trees, if eras are no better than chance."""
    rng = np.random.default_rng(0)
    codes, ones = np.repeat(range(6), 50), np.ones(300)
    y = rng.normal(size=300)
    stages = y + np.array([[0.5], [0.7]]) * rng.normal(size=(2, 300))
    alone = y + 0.49 * rng.normal(size=(1, 300))
    rows = left_out({"a": stages}, y, codes, ones)
    eras = left_out({"a": stages[::-1], "b": alone}, y, codes, ones)
    assert weigh(eras, rows, SQUARED).weights["b"] > 0
    same = left_out({"a": stages, "b": alone + 5}, y, codes, ones)
    found = weigh(same, rows, SQUARED)
    assert (found.weights, found.stages) == ({"a": 1.0, "b": 0.0}, {"a": 1, "b": 1})


@pytest.mark.parametrize(("params", "metric"), [
    ({}, mean_squared_error), ({"loss": "absolute_error"}, metrics.mean_absolute_error),
    ({"loss": "poisson"}, metrics.mean_poisson_deviance),
    ({"loss": "gamma"}, metrics.mean_gamma_deviance),
    ({"loss": "quantile", "quantile": 0.8},
     partial(metrics.mean_pinball_loss, alpha=0.8)),
], ids=["squared_error", "absolute_error", "poisson", "gamma", "quantile"])  # fmt: skip
def test_losses_are_the_plain_model_s(params, metric):
    y, plain = np.exp(Y / 3), clone(PLAIN).set_params(**params)
    has_means = plain.loss not in ("absolute_error", "quantile")
    members = ["linear"] if has_means else ["leaves_4"]
    model = AutoEraRegressor(plain, members=members, era_order="unordered", cv=2)
    model.fit(X, y, eras=ERAS)
    train, test = next(GroupKFold(2).split(X, groups=ERAS))
    predicted = clone(plain).fit(X[train], y[train]).predict(X[test])
    rows = ERAS[test] == ERAS[test][0]
    expected = -metric(y[test][rows], predicted[rows])
    assert model.era_scores_[0, ERAS[test][0]] == pytest.approx(expected)
    of_means = [] if has_means else ["linear"]
    missing = [*of_means, "last_levels"]  # as eras are not ordered
    loss, p = loss_of(plain), np.linspace(0.5, 2, 7)
    members = make_members(plain, "default", loss, y.size, 16, False)
    assert list(members) == [name for name in ALL if name not in missing]
    # Derivatives by differences.
    slope = (loss(1.1, p + 1e-6) - loss(1.1, p - 1e-6)) / 2e-6
    np.testing.assert_allclose(loss.derivative(1.1, p), slope, rtol=1e-5)


@pytest.mark.parametrize("unit", [2.0**-45, 2.0**45])
@pytest.mark.parametrize(("name", "power"), [
    ("gamma", 0), ("poisson", 1), ("absolute_error", 1), ("squared_error", 2),
])  # fmt: skip
def test_losses_scale_with_the_unit_of_targets(name, power, unit):
    loss, p = loss_of(Regressor(loss=name)), np.array([[-1.0], [0.0], [1e-20], [3.0]])
    y = np.array([0.5, 2.0, 7.0] if name == "gamma" else [0.0, 0.5, 7.0])
    found, slope = loss(unit * y, unit * p), loss.derivative(unit * y, unit * p)
    np.testing.assert_allclose(found / unit**power, loss(y, p), atol=1e-99)
    expected = loss.derivative(y, p)
    np.testing.assert_allclose(slope * unit ** (1 - power), expected, atol=1e-99)


@pytest.mark.parametrize("unit", [2.0**-45, 2.0**45])
def test_weights_of_amounts_are_free_of_their_unit(unit):
    X, y, eras = make_levels(8, 40)
    plain = Regressor(loss="gamma", **SMALL)
    one, other = (
        AutoEraRegressor(plain, members=["leaves_4", "linear"]).fit(X, x, eras=eras)
        for x in (np.exp(y), unit * np.exp(y))
    )
    assert other.weights_ == pytest.approx(one.weights_, abs=1e-6)
    np.testing.assert_allclose(other.predict(X) / unit, one.predict(X), rtol=1e-5)


def test_counts_get_the_number_of_trees_of_least_deviance():
    """Log likelihoods, which may have either sign, would turn shares of them around."""
    rng = np.random.default_rng(0)
    eras, X = np.repeat(range(8), 40), rng.normal(size=(320, 3))
    y = rng.poisson(20 * np.exp(X[:, 0] / 2)).astype(float)
    plain = Regressor(loss="poisson", max_iter=10, random_state=0)
    model = AutoEraRegressor(plain, members=["leaves_4"]).fit(X, y, eras=eras)
    assert model.cv_results_["stage"][1] > 10
    with pytest.warns(UserWarning, match="larger than expected"):
        model.update(X[eras > 5], 4 * y[eras > 5], eras=eras[eras > 5] + 2)
    constant = AutoEraRegressor(members=["leaves_4"]).fit(X, np.ones(320), eras=eras)
    assert (constant.predict(X) == 1).all()


def test_averages_of_classes_are_of_probabilities():
    X, y, eras = make_levels(16, 30)
    y = np.digitize(y, [-0.5, 0.5]).astype(str)
    y[(y == "2") & (eras < 12)] = "1"  # no class 2 before the last folds
    plain, members = Classifier(**SMALL), ["symmetric", "linear", "level"]
    model = AutoEraClassifier(plain, members=members).fit(X, y, eras=eras)
    p = {name: one.predict_proba(X) for name, one in model.members_.items()}
    expected = sum(model.weights_[name] * p[name] for name in p)
    np.testing.assert_allclose(model.predict_proba(X), expected)
    assert (model.predict(X) == model.classes_[expected.argmax(axis=1)]).all()
    np.testing.assert_allclose(expected.sum(axis=1), 1)
    binary = AutoEraClassifier(plain, members=[], cv=2).fit(X, y == "1", eras=eras)
    train, test = next(EraWalkForwardSplit(2, test_size=4).split(eras, groups=eras))
    p = clone(plain).fit(X[train], y[train] == "1").predict_proba(X[test])
    rows = eras[test] == binary.era_labels_[0]
    loss = metrics.log_loss(y[test][rows] == "1", p[rows], labels=[False, True])
    assert -binary.era_scores_[0, 0] == pytest.approx(loss)


def test_the_number_of_trees_is_that_of_the_least_loss():
    y = np.random.default_rng(0).normal(size=Y.size)  # nothing to learn: few trees
    member = Regressor(max_iter=20, early_stopping=False)
    plain = Regressor(max_iter=20, random_state=0)
    model = AutoEraRegressor(plain, members=[("few", member)]).fit(X, y, eras=ERAS)
    stages = _member_search.stages_of(member)
    assert stages == [1, 2, 3, 4, 6, 8, 10, 12, 14, 17, 20]
    losses = np.zeros(20)
    for train, test in KFold(3, shuffle=True, random_state=0).split(X):
        staged = clone(member).fit(X[train], y[train]).staged_predict(X[test])
        losses += [mean_squared_error(y[test], p) for p in staged]
    best = min(stages, key=lambda n: losses[n - 1])
    assert model.cv_results_["stage"][1] == best  # eras add nothing to rows
    for name, fitted in model.members_.items():
        assert fitted.n_iter_ == model.cv_results_["stage"][int(name == "few")]


@pytest.mark.parametrize("params", [
    {}, {"era_effects": "intercept"}, slow({"categorical_features": [1]}),
], ids=str)  # fmt: skip
def test_folds_have_the_predictions_of_all_stages_until_one_stops(params):
    noise = np.random.default_rng(0).normal(size=Y.size)
    rows = Rows(np.round(X), noise + X[:, 0] / 3, ERAS, None, encode_eras(ERAS))
    train, test = np.flatnonzero(ERAS < 12), np.flatnonzero(ERAS >= 12)
    model = Regressor(max_iter=40, early_stopping=False, **params)
    given = rows, train, test, None, SQUARED
    found = _member_search._fit_fold(model, *given, np.inf)
    for n, p in zip(_member_search.stages_of(model), found, strict=True):
        one = clone(model).set_params(max_iter=n)
        expected = one.fit(rows.X[train], rows.y[train], eras=ERAS[train])
        np.testing.assert_allclose(p, expected.predict(rows.X[test]))
    losses = ((found - rows.y[test]) ** 2).mean(axis=1)
    stages = np.array(_member_search.stages_of(model))
    waits = [n - stages[losses[: i + 1].argmin()] for i, n in enumerate(stages)]
    end = np.argmax(np.array(waits) >= 0.2 * 40)  # the first that is too long
    stopped = _member_search._fit_fold(model, *given, 0.2)
    assert 0 < end < stages.size - 1
    np.testing.assert_array_equal(stopped[: end + 1], found[: end + 1])
    assert (stopped[end:] == found[end]).all()


def test_members_that_lose_in_a_fold_are_not_in_all():
    rng, names = np.random.default_rng(0), ["plain", "linear", "a", "b", "c"]
    y = rng.normal(size=300)
    noise = np.array([2.0, 3.0, 0.5, 0.6, 4.0])[:, np.newaxis, np.newaxis]
    p = dict(zip(names, y + noise * rng.normal(size=(5, 1, 300)), strict=True))
    found = left_out(p, y, np.repeat(range(6), 50), np.ones(300))
    assert promising(found, SQUARED, 1) == ["plain", "linear", "a"]
    assert promising(found, SQUARED, 3) == names
    weights = dict(zip(names, 1 / noise.ravel() ** 2, strict=True))
    assert weights["c"] < 0.02 * sum(weights.values()) < weights["b"]
    assert promising(found, SQUARED) == ["plain", "a", "b"]
    model = auto(random_state=0).fit(X, Y, eras=ERAS)
    tried = np.isfinite(model.era_scores_).sum(axis=1)
    assert sorted(model.weights_) == sorted(ALL)
    # Of six eras, two are in each fold.
    assert sorted(tried) == [2, 2, 2, 6, 6, 6, 6, 6, 6]
    kept = np.array([*model.weights_.values()]) > 0
    assert (tried[:-1][kept] == 6).all()


def test_fits_to_more_rows_have_more_trees():
    member = Regressor(max_iter=30, early_stopping=False, random_state=0)
    y = np.sin(2 * X[:, 0]) + 0.3 * np.random.default_rng(0).normal(size=Y.size)
    model = auto([("mine", member)], cv=EraWalkForwardSplit(1, test_size=6, gap=2))
    model.fit(X, y, eras=ERAS)
    train, test = ERAS < 8, ERAS >= 10
    staged = clone(member).fit(X[train], y[train]).staged_predict(X[test])
    losses = [mean_squared_error(y[test], p) for p in staged]
    best = min(_member_search.stages_of(member), key=lambda n: losses[n - 1])
    assert model.members_["mine"].n_iter_ == min(30, 2 * best) > best


@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_the_plain_model_is_kept_unless_the_average_is_better(noise):
    worse = Regressor(max_iter=1, early_stopping=False)
    y = np.sin(3 * X[:, 0]) if noise else X[:, 0]
    model = auto([("worse", worse if noise else Ridge())]).fit(X, y, eras=ERAS)
    mean, error = (model.cv_results_[f"{x}_difference"][-1] for x in ("mean", "se"))
    assert (model.weights_["plain"] == 1) == (mean <= error) == bool(noise)
    if noise:
        assert (model.predict(X) == clone(PLAIN).fit(X, y).predict(X)).all()


@pytest.mark.parametrize("early_stopping", [slow(False), True])
def test_the_level_of_later_eras_is_found(early_stopping):
    """It is that of the last eras, and not of those before eras that are held out."""
    own = {"max_iter": 15, "min_samples_leaf": 10, "early_stopping": early_stopping}
    plain = Regressor(**own, random_state=0)
    names = ["level", "last_levels", "leaves_4"]
    model = AutoEraRegressor(plain, members=names).fit(X, Y, eras=ERAS)
    assert model.weights_["level"] + model.weights_["last_levels"] > 0.4
    for name in {"level", "last_levels"} & {*model.members_}:
        assert list(model.members_[name].era_intercepts_) == list(range(16))
    with_eras = model.predict(X, eras=ERAS)
    assert mean_squared_error(Y, with_eras) < mean_squared_error(Y, model.predict(X))
    assert model.score(X, Y, eras=ERAS) == r2_score(Y, with_eras)
    assert model.score(X, Y) == r2_score(Y, model.predict(X))


@pytest.mark.slow
def test_fits_are_the_same_in_parallel():
    one, two = (auto(n_jobs=n).fit(X, Y, eras=ERAS) for n in (1, 2))
    assert (one.predict(X) == two.predict(X)).all()
    assert one.weights_ == two.weights_


def test_fits_print_a_line_a_member_and_are_pickled(capsys):
    one = auto(["linear", "leaves_4", "level"], verbose=1).fit(X, Y, eras=ERAS)
    lines = capsys.readouterr().out.splitlines()
    # Four members in three folds of eras, at least the plain one in two of rows.
    n_lines = 3 * 4 + sum("in rows left out" in line for line in lines) + 1
    assert len(lines) == n_lines > 13
    told = r"AutoEra 1/\d+ fits: plain, loss [\d.]+ in eras left out; about \d+ s left"
    assert re.fullmatch(told, lines[0])
    assert (pickle.loads(pickle.dumps(one)).predict(X) == one.predict(X)).all()


@pytest.mark.parametrize(("n_rows", "n_eras", "params", "names"), [
    (1000, 16, {}, ALL), (240, 4, {}, [*ALL[:4], "large"]),
    (300, 4, {}, [*ALL[:4], "large", "leaves_4"]),
    (240, 4, {"monotonic_cst": [1, 0]}, ["plain", "additive", "large", "leaves_4"]),
])  # fmt: skip
def test_few_eras_rows_or_constraints_have_fewer_members(n_rows, n_eras, params, names):
    plain = clone(PLAIN).set_params(**params)
    found = make_members(plain, "default", SQUARED, n_rows, n_eras, True)
    assert list(found) == names


def test_a_time_budget_leaves_members_out(monkeypatch):
    """By a clock on which a fit takes a second, and that of a linear model 0.1."""
    clock, fit_member = [0.0], _member_search.fit_rows

    def fit_in_a_second(model, *args, **params):
        clock[0] += 0.1 if isinstance(model, LinearRegressor) else 1
        return fit_member(model, *args, **params)

    monkeypatch.setattr(_member_search, "fit_rows", fit_in_a_second)
    for module in (estimators, _member_search):
        now = SimpleNamespace(perf_counter=lambda: clock[0])
        monkeypatch.setattr(module, "time", now)
    for budget, most in ((25, 6), (1e-9, 2)):
        before = clock[0]
        with pytest.warns(UserWarning, match="no time is left for [2-6] of 8") as told:
            model = auto(time_budget=budget).fit(X, Y, eras=ERAS)
        tried = {*model.weights_}
        assert tried == {*ALL[: len(tried)]}
        assert f"({', '.join(ALL[len(tried) :])})" in str(told[0].message)
        assert most - 2 < len(tried) <= most
        assert most == 2 or clock[0] - before <= budget
    pairs = pd.DataFrame({"t": ERAS, "g": (np.arange(Y.size) % 7).astype(str)})
    known = auto(time_budget=1e-9, group="known")
    with pytest.warns(UserWarning, match="no time is left for 6 of 8"):
        assert [*known.fit(X, Y, eras=pairs).weights_] == ["plain", "level"]


@pytest.mark.parametrize(("labels", "class_weight"), [
    (["no", "yes"], "balanced"), slow([0, 1], {1: 7.0}),
    slow([False, True], {True: 7.0, False: 2.0}),
])  # fmt: skip
def test_class_weights_are_weights_of_rows(labels, class_weight, tmp_path):
    is_rare = np.quantile(Y, 0.85) < Y
    y, now = np.array(labels)[1 * is_rare], ERAS.max() == ERAS
    of_rows = compute_sample_weight(class_weight, y)
    base = np.random.default_rng(0).uniform(0.5, 2, Y.size)
    small = SMALL | {"max_iter": 2}

    def fit(weights, **params):
        plain = Classifier(**params, **small)
        model = AutoEraClassifier(plain, members=["linear"], cv=2)
        return model.fit(X, y, eras=ERAS, sample_weight=weights)

    model, expected = fit(base, class_weight=class_weight), fit(base * of_rows)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_allclose(model.era_scores_, expected.era_scores_)
    assert model.predict_proba(X)[:, 1].mean() > 1.2 * is_rare.mean()
    save_model(model, tmp_path / "model.era")
    loaded, _ = load_model(tmp_path / "model.era")
    # A later era, whose classes have the weights of the fit.
    rows = {"X": X[now], "y": y[now], "eras": ERAS[now] + 1}
    expected.update(**rows, sample_weight=(base * of_rows)[now])
    for each in (model, loaded):
        each.update(**rows, sample_weight=base[now])
        loss = each.update_log_[0]["loss"]
        assert loss == pytest.approx(expected.update_log_[0]["loss"])


def test_members_have_the_threads_of_the_plain_model():
    plain = Regressor(n_jobs=1, **SMALL)
    members = make_members(plain, "default", SQUARED, 10_000, 12, True)
    models = [m for m in members.values() if hasattr(m, "n_jobs")]
    assert len(models) == len(members) - 1  # but for the linear one
    assert all(model.n_jobs == 1 for model in models)


def test_boosters_find_splits_by_the_kernel_and_the_users_model_by_its_own():
    kernel = "Gain(splitter='era')"
    for given, found in (("gain", kernel), ("directional", "directional")):
        plain = Regressor(split_criterion=given)
        members = make_members(plain, "default", SQUARED, 10_000, 12, True)
        names = {*members} - {"plain", "linear", "symmetric"}
        assert {str(members[x].split_criterion) for x in names} == {found}
        model = AutoEraRegressor(plain, members=[]).fit(X, Y, eras=ERAS)
        assert model.members_["plain"].split_criterion == given
    model = AutoEraRegressor(members=[]).fit(X, Y, eras=ERAS)
    assert str(model.members_["plain"].split_criterion) == kernel


class Failing(Ridge):
    def fit(self, X, y, sample_weight=None):
        raise ValueError("not today")


class Passing(Ridge):
    def predict(self, X, **others):
        assert not others
        return super().predict(X)


class PassingBoth(Passing):  # as models of Keras
    def fit(self, X, y, **others):
        assert not others
        return super().fit(X, y)


class Overflows(Ridge):
    def predict(self, X):
        return super().predict(X) + np.inf


@pytest.mark.parametrize(("member", "why"), [
    (Failing(), "not today"), (Overflows(), r"not finite numbers \(in fold"),
    (BaggingRegressor(Regressor(split_criterion="era")), "Bagging.* hands eras on"),
    (VotingRegressor([("era", Regressor(split_criterion="era"))]), "pass the models"),
    (VotingRegressor([("bad", Failing())]), r"not today \(in fold [^)]*\)\)$"),
])  # fmt: skip
def test_a_member_that_fails_is_left_out(member, why):
    with pytest.warns(UserWarning, match=f"bad cannot be fitted.*{why}"):
        model = auto([("bad", member), ("ridge", Ridge())]).fit(X, Y, eras=ERAS)
    assert list(model.weights_) == ["plain", "ridge"]
    assert np.isfinite(model.predict(X)).all()


def test_the_plain_model_must_not_fail():
    y = np.where(ERAS < 12, 0.0, 1.0)  # no count in the first fold
    plain = Regressor(loss="poisson", **SMALL)
    with pytest.raises(ValueError, match=r"in some fold.*ValueError: .*poisson"):
        AutoEraRegressor(plain, members=[]).fit(X, y, eras=ERAS)
    # Text is categories to it in that error, too.
    frame = pd.DataFrame({"a": X[:, 0], "city": np.resize(["p", "q", "r"], Y.size)})
    for rows in (X, frame):
        with pytest.raises(ValueError, match=r"^loss='poisson' requires non-neg"):
            AutoEraRegressor(plain).fit(rows, -y, eras=ERAS)


HALF = Regressor(loss=HalfSquaredError())


@pytest.mark.parametrize(("model", "match"), [
    (AutoEraRegressor(Ridge()), "must be a HistGradientBoostingRegressor"),
    (auto(["all"]), "names of default members"),
    (auto([("plain", Ridge())]), "'plain' twice"),
    (auto(["default", "default"]), "'additive' twice"),
    (auto([("a", 3)]), r"'a' must be a string.*int"),
    (auto([("a", LogisticRegression())]), "regressor"),
    (auto(time_budget=0), "time_budget"), (AutoEraRegressor(HALF), "by its name"),
], ids=range(8))  # fmt: skip
def test_slips_get_a_sentence(model, match):
    with pytest.raises(ValueError, match=match):
        model.fit(X, Y, eras=ERAS)


def test_the_plain_model_may_be_listed():
    for members in (["plain"], ["plain", *TWO], [*TWO, "plain"]):
        model = auto(members).fit(X, Y, eras=ERAS)
        expected = auto([x for x in members if x != "plain"]).fit(X, Y, eras=ERAS)
        assert model.weights_ == pytest.approx(expected.weights_)
        np.testing.assert_allclose(model.predict(X), expected.predict(X))


def test_members_are_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    model = auto([("ridge", Ridge())]).fit(X, Y, eras=ERAS)
    display = EraSearchDisplay.from_search(model)
    assert list(display.names) == ["ridge", "average"]
    assert display.chosen == (None if model.weights_["plain"] == 1 else 1)
    pyplot.close(display.figure_)


@pytest.mark.filterwarnings("ignore:The loss in 3 new eras")
def test_new_eras_are_scored_and_weighed():
    model = fit(auto(TWO), ERAS < 12)
    before, scores = model.predict(X), -model.era_scores_[-1]
    update(model, ERAS >= 13)
    (entry,) = model.update_log_
    new = [np.mean((Y - before)[era == ERAS] ** 2) for era in (13, 14, 15)]
    error = scores.std(ddof=1) * np.sqrt(1 / 6 + 1 / 3)
    expected = {"loss": np.mean(new), "expected": scores.mean(), "error": error}
    expected["p_value"] = stats.t.sf((np.mean(new) - scores.mean()) / error, 5)
    assert {name: entry[name] for name in expected} == pytest.approx(expected)
    assert entry["eras"] == [13, 14, 15]
    weights = np.bincount(model._left_out["codes"], model._left_out["weights"])
    np.testing.assert_allclose(weights, 1 / 9)
    assert sum(model.weights_.values()) == pytest.approx(1)
    assert not entry["refit"]
    message = (
        r"^eras holds 15 era\(s\), all of which the model has seen \(0, 1, .* 4, …\)"
    )
    with pytest.raises(ValueError, match=message):
        update(model, ERAS != 12)
    assert len(model.update_log_) == 1
    assert "update_log_" not in vars(fit(model, ERAS < 12))


def test_weights_move_to_what_is_better_in_new_eras():
    rng, codes = np.random.default_rng(0), np.repeat(range(12), 50)
    y = rng.normal(size=600)
    good, bad = (y + s * rng.normal(size=600) for s in (0.1, 0.5))
    eras = left_out({"a": bad[None], "b": good[None]}, y, codes, np.ones(600))
    assert update_weights(eras, np.array([1.0, 0.0]), SQUARED)[1] > 0.95
    kept = np.array([0.04, 0.96])
    np.testing.assert_allclose(update_weights(eras, kept, SQUARED), kept, atol=0.05)


def test_a_refit_needs_the_rows_of_all_eras():
    is_old = ERAS < 14
    changed = np.where(is_old, Y, 5 + X[:, 1])
    model = fit(auto([("ridge", Ridge())]), is_old)
    other = pickle.loads(pickle.dumps(model))
    with pytest.warns(UserWarning, match=r"larger than expected.*rows of all earlier"):
        update(other, ~is_old, changed)
    assert not other.update_log_[0]["refit"]
    update(model, slice(None), changed)
    assert model.update_log_[0]["refit"]
    expected = clone(model.members_["plain"]).fit(X, changed).predict(X)
    assert (model.members_["plain"].predict(X) == expected).all()


def test_a_refit_warns_once_at_the_line_of_the_caller():
    is_old, empty = ERAS < 14, np.column_stack([X, np.full(Y.size, np.nan)])
    changed, model = np.where(is_old, Y, 5 + X[:, 1]), auto(["additive", "leaves_4"])
    with pytest.warns(UserWarning, match="some fold trains on"):
        model.fit(empty[is_old], Y[is_old], eras=ERAS[is_old])
    with pytest.warns(UserWarning, match="no value in the rows of all eras") as caught:
        model.update(empty, changed, eras=ERAS)
    assert model.update_log_[0]["refit"]
    assert [x.filename for x in caught] == [__file__]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_members_that_diverge_are_named_and_have_no_weight(n_jobs):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2400, 1))
    y, eras = np.exp(4 * rng.normal(size=2400) + 2 * x[:, 0]), np.arange(2400) // 100
    plain = Regressor(loss="gamma", early_stopping=False)
    model = AutoEraRegressor(
        plain, members=["level", "linear"], random_state=0, n_jobs=n_jobs
    )
    message = "^members: plain, level diverge: in eras left out their loss is over 100"
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(x, y, eras=eras)
    assert [one.filename for one in caught] == [__file__]
    assert model.weights_ == {"plain": 0.0, "level": 0.0, "linear": 1.0}


def test_levels_of_new_eras_are_taken_in():
    X, y, eras = make_levels(20)
    y = y + np.where(eras < 16, 0, 1.0)  # a step that lasts
    old, new, last = eras < 18, eras == 18, eras == 19
    model = auto(["level", "last_levels"]).fit(X[old], y[old], eras=eras[old])
    error = mean_squared_error(y[last], model.predict(X[last]))
    model.update(X[new], y[new], eras=eras[new])
    levels = [name for name in model.members_ if "level" in name]
    assert all(18 in model.members_[name].era_intercepts_ for name in levels)
    assert levels
    assert mean_squared_error(y[last], model.predict(X[last])) < error


UNCHANGED = EraTargetTransformer(with_centering=False, with_scaling=False)


@pytest.mark.filterwarnings("ignore:The loss in .* new eras")
@pytest.mark.parametrize("hand", [
    partial(make_pipeline, "passthrough"), partial(make_pipeline, EraStandardScaler()),
    TransformedTargetRegressor, partial(EraTargetRegressor, transformer=UNCHANGED),
    partial(EraSearchCV, param_grid={}), partial(GridSearchCV, param_grid={}, cv=2),
    partial(EraConformalRegressor, cv=2),
    lambda model: AutoEraRegressor(PLAIN, members=[("inner", model)]),
])  # fmt: skip
def test_members_hand_eras_on_to_the_levels_inside(hand):
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(18), 20)
    x = np.tile(scale(rng.normal(size=(20, 2))), (18, 1))  # the same scaled by era
    y = x[:, 0] + eras + 0.1 * rng.normal(size=eras.size)
    levels = Regressor(**SMALL, era_effects=Intercepts(n_eras=1))
    models, old = [auto([("m", one)]) for one in (levels, hand(levels))], eras < 14
    for model in models:
        model.fit(x[old], y[old], eras=eras[old])
        assert model.weights_["m"] == 1
    for is_updated in (False, True):
        if is_updated:
            for model in models:
                model.update(x[~old], y[~old], eras=eras[~old])
                assert not model.update_log_[0]["refit"]
        asked = [None, eras[old], np.full(old.sum(), 15)]
        if isinstance(models[1].members_["m"], GridSearchCV):  # which takes no eras
            asked = [None]
        for known in asked:
            expected, found = (one.predict(x[old], eras=known) for one in models)
            np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("member", [
    StackingRegressor([("ridge", Ridge())], Ridge()), make_pipeline(Passing()),
    BaggingRegressor(Ridge(), random_state=0), PassingBoth(),
    FrozenEstimator(TransformedTargetRegressor(Ridge()).fit(X, Y)),
])  # fmt: skip
def test_members_without_levels_get_no_eras(member):
    model = auto([("m", member)]).fit(X, Y, eras=ERAS)
    assert model.weights_["m"] > 0
    assert (model.predict(X, eras=ERAS) == model.predict(X)).all()


@pytest.mark.filterwarnings("ignore:The loss in .* new eras")
def test_an_update_transforms_no_targets_of_members_without_levels():
    old, y = ERAS < 12, np.exp(Y)
    positive = PowerTransformer("box-cox")  # which refuses 0
    member = TransformedTargetRegressor(Ridge(), transformer=positive)
    model = fit(auto([("m", member)]), old, y)
    member = model.members_["m"]
    update(model, ~old, np.where(old, y, 0.0))
    assert model.members_["m"] is member


def test_routing_of_the_user_changes_no_prediction():
    levels = Regressor(**SMALL, era_effects=Intercepts()).fit(X, Y, eras=ERAS)
    member = make_pipeline("passthrough", FrozenEstimator(levels))
    model = auto([("m", member)]).fit(X, Y, eras=ERAS)
    assert model.weights_["m"] > 0
    expected = model.predict(X, eras=ERAS)
    with config_context(enable_metadata_routing=True):
        assert (model.predict(X, eras=ERAS) == expected).all()


@pytest.mark.filterwarnings("ignore:The loss in .* new eras")
def test_an_update_has_the_plain_model_of_the_fit(tmp_path):
    old, y, plain = ERAS < 12, np.exp(Y / 10), Regressor("poisson", **SMALL)
    model = fit(AutoEraRegressor(plain, members=["leaves_4"]), old, y)
    save_model(model, tmp_path / "a.era")
    others = [pickle.loads(pickle.dumps(model)), load_model(tmp_path / "a.era")[0]]
    expected = shap_values(model, X[:5]).values
    loss = update(others[0], ~old, y).update_log_[0]["loss"]
    plain.set_params(loss="absolute_error")
    for one in (model, others[1].set_params(estimator=None)):
        assert (shap_values(one, X[:5]).values == expected).all()
        assert update(one, ~old, y).update_log_[0]["loss"] == loss
    before = load_model(tmp_path / "a.era")[0]
    del before._plain  # as in models of before
    assert update(before, ~old, y).update_log_[0]["loss"] == loss


@pytest.mark.parametrize("AutoEra", [AutoEraRegressor, AutoEraClassifier])
@pytest.mark.parametrize("n_rows", [2, 3])
def test_two_rows_are_too_few_for_folds_of_rows(AutoEra, n_rows):
    y = np.arange(n_rows) % 2
    model = AutoEra(era_order="unordered").fit(X[:n_rows], y, eras=range(n_rows))
    assert model.weights_ == {"plain": 1.0}


def test_default_members_are_chosen_by_name_and_folds_of_rows_are_enough():
    """With folds of rows alone, weights are those of any super learner."""
    folds = KFold(3, shuffle=True, random_state=1)
    model = auto(["leaves_4", "linear", TWO[1]], cv=folds).fit(X, Y, eras=ERAS)
    assert list(model.weights_) == ["plain", "leaves_4", "linear", "tree"]
    p = np.empty(Y.size)
    for train, test in folds.split(X):
        p[test] = clone(TWO[1][1]).fit(X[train], Y[train]).predict(X[test])
    expected = [-np.mean((Y - p)[era == ERAS] ** 2) for era in range(16)]
    np.testing.assert_allclose(model.era_scores_[3], expected)
    with pytest.raises(ValueError, match=r"members has 'level', which these data.*six"):
        fit(auto(["level", "linear"], cv=2), ERAS < 4)


@pytest.mark.parametrize(("splitter", "lag", "has_rows"), [
    (EraWalkForwardSplit, {"gap": 2}, False), (EraSplit, {"gap": 2}, False),
    (EraSplit, {"purge": 2}, False), (EraSplit, {"purge": "14D"}, False),
    (EraSplit, {"horizon": 2}, True),  # ahead, of targets that span an era
])  # fmt: skip
def test_targets_that_overlap_have_no_folds_of_rows(splitter, lag, has_rows, capsys):
    eras = np.datetime64("2024-01-01") + 7 * ERAS.astype("m8[D]")
    folds = splitter(3, test_size=2, **lag)
    model = auto(["linear"], cv=folds, verbose=1).fit(X, Y, eras=eras)
    assert ("in rows left out" in capsys.readouterr().out) == has_rows
    assert model.era_labels_.tolist() == np.unique(eras)[10:].tolist()


@pytest.mark.filterwarnings("ignore:The loss in")
def test_dates_are_known_in_any_unit_and_saved(tmp_path):
    dates, old = np.datetime64("2024-01-01") + 7 * ERAS.astype("m8[D]"), ERAS < 12
    nanoseconds = dates.astype("M8[ns]")
    model = auto(["level"]).fit(X[old], Y[old], eras=nanoseconds[old])
    model.update(X, Y, eras=dates)
    new = list(np.unique(dates)[12:])
    assert (model.update_log_[0]["eras"], model._known_eras.size) == (new, 16)
    save_model(model, tmp_path / "model.era")
    loaded, _ = load_model(tmp_path / "model.era")
    assert loaded.update_log_[0]["eras"] == new


@pytest.fixture(scope="module")
def with_level():
    """An average of twelve eras, which no test changes."""
    return pickle.dumps(fit(auto(["level"]), ERAS < 12))


@pytest.mark.parametrize(("change", "match"), [
    ({"eras": lambda codes: codes.astype(str)}, "of type str, but the eras"),
    ({"eras": lambda codes: codes - 20}, "-8, which is new but lies before the"),
    ({"sample_weight": lambda y: 0 * y}, "at least one non-zero number"),
    ({"y": lambda y: np.where(y > 0, np.nan, y)}, "contains NaN"),
    ({"eras": lambda codes: None}, "update needs targets and eras"),
    (dict.fromkeys(["X", "y", "eras"], lambda x: x[:0]), "^X has no rows: "),
], ids=["text", "early", "weights", "y", "none", "empty"])  # fmt: skip
def test_what_an_update_cannot_take_in(change, match, with_level):
    new, model = ERAS >= 12, pickle.loads(with_level)
    before = pickle.dumps(model)
    given = {"y": Y[new], "eras": ERAS[new], "sample_weight": np.ones(new.sum())}
    given["X"] = X[new]
    given |= {name: make(given[name]) for name, make in change.items()}
    with pytest.raises(ValueError, match=match):
        model.update(**given)
    assert pickle.dumps(model) == before


def test_classes_that_the_fit_lacks_are_refused():
    classes = np.array(["a", "b", "c"])[np.digitize(Y, [0, 0.5])]
    model = AutoEraClassifier(Classifier(**SMALL), members=[])
    fit(model, (ERAS < 12) & (classes != "c"), classes)
    with pytest.raises(ValueError, match="the class 'c', which the fit has not seen"):
        model.update(X, classes, eras=ERAS)


@pytest.mark.parametrize(("params", "lacking"), [
    ({}, [3, 15]), ({}, [12, 13, 14, 15]), ({}, range(8)),
    ({"era_order": "unordered"}, [3, 15]),
    ({"cv": EraWalkForwardSplit(4, test_size=2)}, [3, 14, 15]),
    ({"cv": GroupKFold(4)}, [3, 15]),
    ({"cv": list(GroupKFold(4).split(X, groups=ERAS))}, [3, 7, 11, 15]),
])  # fmt: skip
def test_eras_without_weight_count_for_nothing(params, lacking):
    """They are no eras for numbers of folds; folds of splitters lack their rows."""
    weights = np.where(np.isin(ERAS, lacking), 0.0, 1.0)
    model = auto(["level", *TWO[:1]], **params)
    model.fit(X, Y, eras=ERAS, sample_weight=weights)
    kept, expected = np.flatnonzero(weights), clone(model)
    if (cv := params.get("cv")) is not None:
        folds = cv if isinstance(cv, list) else [*cv.split(X, groups=ERAS)]
        folds = [[np.flatnonzero(np.isin(kept, x)) for x in fold] for fold in folds]
        expected.set_params(cv=[fold for fold in folds if fold[1].size])
    fit(expected, kept, sample_weight=weights[kept])
    assert not {*model.era_labels_} & {*lacking}
    assert np.isfinite(model.cv_results_["mean_era_score"]).all()
    assert model.weights_ == pytest.approx(expected.weights_)
    assert model.era_labels_.tolist() == expected.era_labels_.tolist()
    np.testing.assert_allclose(model.predict(X), expected.predict(X))


def test_too_few_eras_with_weight_are_refused():
    with pytest.raises(ValueError, match=r"holds 1 era\(s\) with weight .n_samples=60"):
        auto().fit(X, Y, eras=ERAS, sample_weight=1.0 * (ERAS == 3))
    train, test = ERAS < 8, ERAS == 15
    model = auto(TWO, cv=[(np.flatnonzero(train), np.flatnonzero(test))])
    with pytest.raises(ValueError, match="cv: sample_weight is 0 in all rows that a f"):
        model.fit(X, Y, eras=ERAS, sample_weight=1.0 * (ERAS < 15))


def test_an_era_without_weight_is_new_to_an_update():
    """Also where the rows of all eras are passed, for a refit."""
    old, weights = ERAS < 13, 1.0 * ~np.isin(ERAS, [3, 12])
    expected = fit(auto(["level"]), old & (weights > 0))
    model = fit(auto(["level"]), old, sample_weight=weights[old])
    with pytest.raises(ValueError, match="sample_weight is 0 in all new eras"):
        update(model, old, sample_weight=weights[old])
    changed = np.where(ERAS < 12, Y, 5 + X[:, 1])
    for one in (model, expected):
        one.update(X, changed, eras=ERAS, sample_weight=1.0 * (ERAS != 3))
        assert one.update_log_[0]["eras"] == [12, 13, 14, 15]
        assert one.update_log_[0]["refit"]
    np.testing.assert_allclose(model.predict(X), expected.predict(X))


def test_targets_of_any_container():
    expected = auto(TWO[:1]).fit(X, Y, eras=ERAS)
    for other in (pl.Series(Y), Y.astype(object)):
        model = clone(expected).fit(X, other, eras=ERAS)
        assert (model.predict(X) == expected.predict(X)).all()
    with pytest.warns(DataConversionWarning, match="column-vector"):
        clone(expected).fit(X, Y[:, np.newaxis], eras=ERAS)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "gamma"])
@pytest.mark.parametrize("size", [1e39, 1e200, 1e308])
def test_targets_beyond_single_precision_are_refused(loss, size):
    y, model = np.linspace(0.1, 1, Y.size), AutoEraRegressor(Regressor(loss=loss))
    with pytest.raises(ValueError, match=r"y has targets of up to .*; divide y by a c"):
        model.fit(X, -size * y, eras=ERAS)
    model = fit(AutoEraRegressor(PLAIN, members=[]), ERAS < 12, 1e37 * y)
    with pytest.raises(ValueError, match=re.escape(f"up to {size:.3g}, out of")):
        update(model, ERAS >= 12, size * y)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(X, np.where(y > 0.5, np.inf, y), eras=ERAS)


def test_a_seed_is_that_of_a_plain_model_without_one():
    drawn = Regressor(**SMALL | {"random_state": None}, max_features=0.5)
    models = [
        AutoEraRegressor(plain, members=["leaves_4"], random_state=seed)
        for plain, seed in ((drawn, 3), (clone(drawn).set_params(random_state=3), 5))
    ]
    one, other = (model.fit(X, Y, eras=ERAS).predict(X) for model in models)
    np.testing.assert_array_equal(one, other)
    assert drawn.random_state is None


def test_members_that_use_eras_have_no_folds_of_rows():
    for params in ({"era_effects": "intercept"}, {"split_criterion": "era"}):
        assert uses_eras(Regressor(**params))
    for model in (PLAIN, Ridge()):
        assert not uses_eras(model)


def make_shops(n_eras=12, n_rows=60, effect=1.0):
    """A frame with text of 30 categories, of which the first letters are ten."""
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(n_eras), n_rows)
    codes = rng.integers(0, 30, eras.size)
    shops = np.array([f"{'abcdefghij'[i % 10]}{i}" for i in range(30)], dtype=object)
    x = rng.normal(size=eras.size)
    y = effect * rng.normal(size=30)[codes] + x + rng.normal(size=eras.size) / 2
    frame = pd.DataFrame({"x": x, "shop": shops[codes], "kind": codes % 3})
    frame.loc[::50, "shop"] = None
    return frame, y, eras


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_text_is_categories_and_beside_them_what_earlier_eras_tell(library, tmp_path):
    pandas, y, eras = make_shops()
    frame = pandas if library == "pandas" else pl.from_pandas(pandas)
    members, folds = ["leaves_4", "linear"], EraWalkForwardSplit(3, test_size=2)
    model = auto(members, encode_categories=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(frame, y, eras=eras)
    assert not caught
    assert model.feature_names_in_.tolist() == ["x", "shop", "kind"]
    names = model.encoder_.get_feature_names_out()
    assert names.tolist() == ["shop_effect", "shop_count"]
    category = pandas.assign(shop=pandas["shop"].astype("category"))
    encoder = EraTargetEncoder(target_type="continuous", count=True)
    encoder.set_output(transform="pandas")

    def with_encoded(train, test):
        given = {"eras": eras[train]}
        of_train = encoder.fit_transform(category.iloc[train], y[train], **given)
        of_test = encoder.transform(category.iloc[test])
        parts = (train, of_train), (test, of_test)
        return [category.iloc[rows].join(encoded) for rows, encoded in parts]

    losses = np.zeros((2, 6))
    for k, (train, test) in enumerate(folds.split(eras, groups=eras)):
        own = [category.iloc[rows] for rows in (train, test)]
        # Twice the trees at twice the rate: in folds, half of them at four times it.
        small = Regressor(**SMALL | {"max_leaf_nodes": 4})
        small.set_params(early_stopping=False, learning_rate=0.4)
        assert model.cv_results_["stage"][1] == 12
        fits = (clone(PLAIN), own), (small, with_encoded(train, test))
        for i, (one, (of_train, of_test)) in enumerate(fits):
            p = one.fit(of_train, y[train]).predict(of_test)
            for j, era in enumerate(np.unique(eras[test])):
                rows = eras[test] == era
                losses[i, 2 * k + j] = np.mean((p - y[test])[rows] ** 2)
    np.testing.assert_allclose(model.era_scores_[:2], -losses)
    every = np.arange(y.size)
    encoded = with_encoded(every, every)[1]
    expected = 0.0
    for name, member in model.members_.items():
        table = encoded if name in ("leaves_4", "linear") else pandas
        expected = expected + model.weights_[name] * member.predict(table)
    np.testing.assert_allclose(model.predict(frame), expected)
    save_model(model, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), load_model(tmp_path / "model")[0]):
        np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))
    copy.members_["linear"]._range[:] = -np.inf, np.inf
    explained = shap_values(copy, frame[:30], background=frame[30:60])
    assert explained.values.shape == explained.data.shape == (30, 3)
    sums = explained.values.sum(axis=1) + explained.base_values
    np.testing.assert_allclose(sums, copy.predict(frame)[:30])
    new = frame[-60:]
    model.update(new, y[-60:], eras=eras[-60:] + 1)
    assert not model.update_log_[0]["refit"]
    twice = {"pandas": pd, "polars": pl}[library].concat([frame, frame])
    copy.update(twice, np.r_[y, 9 - y], eras=np.r_[eras, 12 + eras])
    assert copy.update_log_[0]["refit"]
    assert (copy.encoder_.era_labels_.size, copy.predict(frame).shape) == (24, y.shape)


@pytest.mark.parametrize("model", [
    clone(PLAIN).set_params(split_criterion="directional"),
    EraForestRegressor(5, random_state=0),
    EraTargetRegressor(PLAIN), HistGradientBoostingRegressor(max_iter=5),
    EraSearchCV(EraTargetRegressor(PLAIN), {}, rule="best"),
])  # fmt: skip
def test_text_is_categories_to_models_that_find_them_by_dtype(model):
    frame, y, eras = make_shops()
    category = frame.assign(shop=frame["shop"].astype("category"))
    of_both = []
    for table in (frame, category):
        average = auto(["leaves_4", ("own", model)]).fit(table, y, eras=eras)
        of_both.append(average.cv_results_["mean_era_score"])
        assert np.isfinite(average.predict(table)).all()
    assert "own" in average.cv_results_["member"]
    np.testing.assert_allclose(*of_both)


class OfText(Ridge):
    """A model that needs text, and names the column in its own way."""

    def __init__(self, categorical_features="shop"):
        super().__init__()
        self.categorical_features = categorical_features

    def fit(self, X, y):
        return super().fit((X[["shop"]] + "").isna(), y)

    def predict(self, X):
        return super().predict((X[["shop"]] + "").isna())


def test_other_models_of_yours_get_text():
    frame, y, eras = make_shops()
    average = auto(["leaves_4", ("own", OfText())]).fit(frame, y, eras=eras)
    assert "own" in average.cv_results_["member"]


def test_columns_are_encoded_where_they_are_worth_it():
    frame, y, eras = make_shops()
    few = frame.assign(shop=frame["shop"].str[0])
    codes = frame.assign(shop=frame["shop"].astype("category").cat.codes)
    masked = clone(PLAIN).set_params(categorical_features=[False, True, False])
    limited = Regressor(**SMALL, monotonic_cst={"x": 1})
    labels = np.digitize(y, [-1, 1]).astype(str)
    own = [("own", Ridge()), "plain"]  # are not given encoded columns
    for plain, table, wanted, ordered, n_columns in (
        (PLAIN, frame, "auto", True, 2), (PLAIN, few, "auto", True, 0),
        (PLAIN, few, True, True, 2), (PLAIN, frame, False, True, 0),
        (PLAIN, frame, "auto", False, 0), (PLAIN, frame, True, False, 2),
        (PLAIN, codes, True, True, 0), (masked, codes, "auto", True, 2),
        (masked, codes.to_numpy(), "auto", True, 2), (limited, frame, True, True, 0),
        (Classifier(), frame, "auto", True, 4),
    ):  # fmt: skip
        targets = labels if isinstance(plain, Classifier) else y
        rows = Rows(table, targets, eras, None, encode_eras(eras))
        encoder = columns_of(plain, "default", rows, ordered, wanted)[1].encoder
        assert columns_of(plain, own, rows, ordered, wanted)[1].encoder is None
        assert (encoder is None) == (n_columns == 0)
        if n_columns:
            found = encoder.fit_transform(table, targets, eras=eras)
            assert found.shape == (y.size, n_columns)
    # Models that are passed are given text.
    onehot = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["shop"]))
    own = [("own", make_pipeline(onehot, Ridge()))]
    options = {"cv": 2, "encode_categories": True}
    model = AutoEraRegressor(masked, members=own, **options).fit(codes, y, eras=eras)
    assert model.weights_["own"] > 0
    table = codes.to_numpy()
    model = AutoEraRegressor(masked, members=["leaves_4"], **options)
    model.fit(table, y, eras=eras)
    assert model.members_["leaves_4"].n_features_in_ == 5
    assert r2_score(y, model.predict(table)) > 0.5
    of_classes = AutoEraClassifier(Classifier(**SMALL), members=["leaves_4"], **options)
    of_classes.fit(frame, labels, eras=eras)
    assert of_classes.predict_proba(frame).shape == (y.size, 3)


@pytest.mark.parametrize("kind", [
    "object", "str", "string", "string[pyarrow]", "arrow", "polars",
])  # fmt: skip
def test_text_of_all_types_is_categories(kind):
    """With missing values, one warning for a column of which nothing can be told."""
    rng, n = np.random.default_rng(0), 720
    eras, code = np.repeat(np.arange(9), 80), np.arange(n) % 30
    text = np.array([None, *[f"c{i}" for i in range(1, 30)]], dtype=object)[code]
    frame = pd.DataFrame({"x": rng.normal(size=n), "c": text})
    frame["id"] = [f"row {i}" for i in range(n)]
    y = rng.normal(size=30)[code] + frame["x"]
    if kind == "polars":
        table = pytest.importorskip("polars").from_pandas(frame)
    else:
        dtype = pd.ArrowDtype(pa.string()) if kind == "arrow" else kind
        table = frame.astype({"c": dtype, "id": dtype})
    if kind == "object":
        table.columns = range(3)
    plain = Regressor(max_iter=20, early_stopping=False)
    model = AutoEraRegressor(plain, members=["leaves_4"], cv=2)
    name = 2 if kind == "object" else "'id'"
    with pytest.warns(UserWarning, match=f"{name} has more than 255 cat") as caught:
        model.fit(table, y, eras=eras)
    assert len(caught) == 1
    assert model.encoder_ is not None or model.weights_["leaves_4"] == 0
    assert r2_score(y, model.predict(table)) > 0.5


@pytest.mark.parametrize("kinds", [
    "frame array", "frame list", "array frame", "array polars",
])  # fmt: skip
@pytest.mark.parametrize("AutoEra", [AutoEraRegressor, AutoEraClassifier])
def test_columns_without_names_are_one_warning(kinds, AutoEra):
    """In the name of the average, beside an encoder and models of the user, too."""
    frame = pd.DataFrame({"a": X[:, 0], "b": np.arange(Y.size) % 30})
    make = {
        "frame": pd.DataFrame, "array": np.array, "list": lambda x: x.values.tolist(),
        "polars": pl.DataFrame,
    }  # fmt: skip
    of_fit, other = (make[kind] for kind in kinds.split())
    Booster, own, y = Regressor, Ridge(), Y
    if AutoEra is AutoEraClassifier:
        Booster, own, y = Classifier, LogisticRegression(), (Y > 0).astype(int)
    plain = Booster(categorical_features=[1], **SMALL)
    model = AutoEra(plain, members=["level", "leaves_4", ("own", own)])
    old, new = ERAS < 15, ERAS == 15
    model.fit(of_fit(frame[old]), y[old], eras=ERAS[old])
    model.members_["own"] = clone(own).fit(of_fit(frame), y)  # of any weight
    model.weights_["own"] = 0.5
    has = "does not have valid" if kinds[0] == "f" else "has"
    message = f"X {has} feature names, but {AutoEra.__name__} was fitted with"
    asked = [
        lambda: model.predict(other(frame)),
        lambda: model.predict(other(frame), eras=ERAS),
        lambda: model.update(other(frame[new]), y[new], eras=ERAS[new]),
    ]
    for ask in asked:
        with pytest.warns(UserWarning, match=message) as caught:
            ask()
        assert len(caught) == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("encode", ["auto", True])
@pytest.mark.parametrize("values", [[1.5, "n/a"], [1.5, 2.5, None, "n/a"], [True, "a"]])
def test_text_among_numbers_is_refused_as_by_a_booster(library, encode, values):
    column = np.resize(np.array(values, dtype=object), Y.size)
    table = pd.DataFrame({"a": X[:, 0], "b": column})
    if library == "polars":
        b = pl.Series(column.tolist(), dtype=pl.Object)
        table = pl.DataFrame({"a": X[:, 0], "b": b})
    message = f"X: column 'b' is not numeric: .* '{values[-1]}'. Encode it as numbers"
    model = auto(encode_categories=encode)
    for fit in (PLAIN.fit, partial(model.fit, eras=ERAS)):
        with pytest.raises(ValueError, match=message):
            fit(table, Y)


@pytest.mark.parametrize("values", [[1.5, "2.5", 3], [1.5, None, 3.0]])
@pytest.mark.parametrize("encode", ["auto", True])
def test_objects_that_are_numbers_are_numbers(values, encode):
    column = np.resize(np.array(values, dtype=object), Y.size)
    table = pd.DataFrame({"a": X[:, 0], "b": column})
    model = auto(["leaves_4", "linear"], encode_categories=encode)
    model.fit(table, Y, eras=ERAS)
    expected = clone(model).fit(table.astype(float), Y, eras=ERAS)
    found = model.predict(table)
    np.testing.assert_allclose(found, expected.predict(table.astype(float)))


@pytest.mark.filterwarnings("ignore:X has columns of more than")
@pytest.mark.parametrize("era_order", ["ordered", "unordered"])
def test_noise_in_many_categories_is_not_believed(era_order):
    rng = np.random.default_rng(0)
    eras, train = np.repeat(np.arange(24), 500), 16 * 500
    frame = pd.DataFrame({"c": rng.integers(0, 5000, eras.size).astype(str)})
    y = rng.normal(size=eras.size)
    options = {"encode_categories": True, "era_order": era_order, "cv": 2}
    model = auto(["linear", "leaves_4"], **options)
    model.fit(frame[:train], y[:train], eras=eras[:train])
    p, left = model.predict(frame[train:]), y[train:]
    gains = np.reshape((left - y[:train].mean()) ** 2 - (left - p) ** 2, (8, -1))
    gains = gains.mean(axis=1)
    assert abs(gains.mean()) < 2 * gains.std(ddof=1) / np.sqrt(8) + 1e-4
