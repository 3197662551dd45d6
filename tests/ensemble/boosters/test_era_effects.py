"""Weights of eras, how they shrink leaves, and their intercepts."""

import copy
import itertools
import pickle
import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from helpers.data import make_data, make_drift
from helpers.estimators import ours
from helpers.grids import on_grid
from helpers.trees import assert_same_model
from sklearn_era._trees.traversal import leaf_indices
from sklearn_era.effects import GroupDRO, Intercepts, Recency
from sklearn_era.ensemble import BinnedDataset, EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._boosters.empirical_bayes import cell_values
from sklearn_era.ensemble._boosters.leaf_shrinkage import leaf_factors
from sklearn_era.interop import to_sklearn
from sklearn_era.model_files import load_model, save_model

TARGETS = {"real": {}, "absolute": {"loss": "absolute_error"},
           "quantile": {"loss": "quantile", "quantile": 0.8},
           "count": {"loss": "poisson"}, "positive": {"loss": "gamma"},
           "binary": {}, "multiclass": {}}  # fmt: skip
ALL = {"era_weighting": Recency(half_life=2), "leaf_shrinkage": "eras",
       "era_effects": "intercept"}  # fmt: skip
DRO = {"era_weighting": GroupDRO(step_size=0.5)}
each_target = pytest.mark.parametrize("target", TARGETS)


def problem(target, **params):
    """A model, and X, y, weights and eras for it."""
    model = ours("real" if target in ("absolute", "quantile") else target)
    data = make_data("real" if target in ("absolute", "quantile") else target)
    return model.set_params(**TARGETS[target], **params), *data


def weights_by_hand(eras, weights, era_weighting):
    counts = {e: weights[eras == e].sum() for e in np.unique(eras)}
    if era_weighting == "equal":
        factors = {e: 1 / total for e, total in counts.items()}
    else:
        ages = {e: max(counts) - e for e in counts}
        factors = {e: 0.5 ** (ages[e] / era_weighting.half_life) for e in counts}
    product = weights * np.array([factors[e] for e in eras])
    return product * weights.sum() / product.sum()


@pytest.mark.parametrize(("model", "era_weighting"), [
    *((ours(), each) for each in ("equal", Recency(1), Recency(half_life=0.7))),
    (EraForestRegressor(2, max_bins=16, random_state=0), Recency(4))])  # fmt: skip
def test_weights_are_those_of_rows_times_those_of_eras(model, era_weighting):
    X, y, weights, eras = make_data()
    for given in (None, weights):
        rows = np.ones(y.size) if given is None else given
        product = weights_by_hand(eras, rows, era_weighting)
        assert product.sum() == pytest.approx(rows.sum())
        ours_, theirs = clone(model), clone(model).fit(X, y, product, eras=eras)
        ours_.set_params(era_weighting=era_weighting).fit(X, y, given, eras=eras)
        assert np.allclose(ours_.predict(X), theirs.predict(X), rtol=1e-6)
        assert ours_._fitted_with_sw
        for each in (ours_.set_params(era_weighting="rows"), theirs):
            assert not getattr(each.fit(X, y, eras=eras), "_fitted_with_sw", False)


def test_equal_eras_need_no_weights_and_one_era_none():
    X, y, eras = make_drift(4)
    plain = ours().fit(X, y, np.ones(y.size), eras=eras)
    assert_same_model(ours(era_weighting="equal").fit(X, y, eras=eras), plain, X)
    for each in ("equal", Recency(half_life=1)):
        model = ours(era_weighting=each).fit(X, y, eras=np.zeros(y.size, int))
        assert_same_model(model, plain, X)


def factors_by_hand(leaves, eras, v, h, of_eras=None):
    """The factors of leaves, term by term as in the equations of the module."""
    f = np.ones(eras.max() + 1) if of_eras is None else of_eras
    every = itertools.product(np.unique(leaves), np.unique(eras))
    cells = {(leaf, era): (leaves == leaf) & (eras == era) for leaf, era in every}
    cells = {key: rows for key, rows in cells.items() if h[rows].sum() > 0}
    mean = {key: np.average(v[rows], weights=h[rows]) for key, rows in cells.items()}
    H = {key: h[rows].sum() for key, rows in cells.items()}
    base = h / f[eras]
    squares = ((base * (v - mean[key]))[rows] ** 2 for key, rows in cells.items())
    within, n_rows = sum(x.sum() for x in squares), (h > 0).sum()
    s2 = within / base.sum() * n_rows / (n_rows - len(cells))
    values, variances, totals = [], [], []
    for leaf in np.unique(leaves):
        keys = [key for key in cells if key[0] == leaf]
        total = sum(H[key] for key in keys)
        value = sum(H[key] * mean[key] for key in keys) / total
        # Dense matrices: expectations of squares, and variances of weighted means.
        of_keys, share = (np.array([x[key] for key in keys]) for x in (mean, H))
        noise = np.diag([f[key[1]] * s2 / H[key] for key in keys])
        M = np.diag(share) - np.outer(share, share) / total
        tau2 = (of_keys @ M @ of_keys - np.trace(M @ noise)) / max(np.trace(M), 1e-9)
        noise += max(0, tau2) * (len(keys) > 1) * np.eye(len(keys))
        values.append(value)
        variances.append(share @ noise @ share / total**2)
        totals.append(total)
    values, variances = np.array(values), np.array(variances)
    prior = max(0, np.average(values**2 - variances, weights=totals))
    return prior / (prior + variances)


def test_factor_of_a_leaf_is_that_of_the_equations():
    rng = np.random.default_rng(0)
    leaves, eras = rng.integers(0, 4, 300), rng.integers(0, 3, 300)
    eras[leaves == 3] = 1  # a leaf of one era
    v = leaves - 1.5 + rng.normal(size=300) + (eras - 1) * (leaves == 2)
    h = rng.choice([0.0, 0.5, 2.0], 300)
    values, H, s2 = cell_values(leaves * 3 + eras, 12, -v * h, h)
    factors = leaf_factors(values.reshape(4, 3), H.reshape(4, 3), s2)
    assert factors == pytest.approx(factors_by_hand(leaves, eras, v, h))
    assert factors.argmin() == 2
    # Without noise within eras or between them, values are believed.
    exact = leaf_factors(np.ones((2, 3)), np.ones((2, 3)), 0.0)
    assert np.array_equal(exact, [1, 1])
    # An era may weigh so much that it is all of a leaf, to rounding.
    values, H = np.array([[9, 1], [1, 1]]), np.array([[1e-20, 1], [1, 1]])
    with np.errstate(all="raise"):
        factors = leaf_factors(values, H, 0.01)
    assert factors == pytest.approx(np.ones(2), abs=0.02)


@each_target
@pytest.mark.parametrize("weighting", ["rows", "equal", Recency(1), GroupDRO(0.5)])
def test_first_tree_is_shrunk_leaf_by_leaf(target, weighting):
    model, X, y, weights, eras = problem(target, max_iter=1, min_samples_leaf=30)
    model.set_params(era_weighting=weighting)
    for given in (None, weights + 0.1):
        plain = clone(model).fit(X, y, given, eras=eras)
        shrunk = clone(model).set_params(leaf_shrinkage="eras")
        shrunk.fit(X, y, given, eras=eras)
        raw = np.repeat(plain._baseline_prediction, y.size, axis=0)
        f = None
        if weighting != "rows":
            f = np.array([each[0] for each in plain.era_weights_.values()])
            given = (1.0 if given is None else given) * f[eras]
        g, h = plain._loss.gradient_hessian(plain._encode_y_val(y), raw, given)
        g, h = g.reshape(raw.shape), h.reshape(raw.shape)
        bins = plain._bin_mapper.transform(X)
        missing = plain._bin_mapper.missing_values_bin_idx_
        trees = zip(plain._predictors[0], shrunk._predictors[0], strict=True)
        for k, (before, after) in enumerate(trees):
            leaves = leaf_indices(before).predict_binned(bins, missing, 1)
            factors = factors_by_hand(leaves, eras, -g[:, k] / h[:, k], h[:, k], f)
            is_leaf = before.nodes["is_leaf"] == 1
            expected = before.nodes["value"][is_leaf] * factors
            assert after.nodes["value"][is_leaf] == pytest.approx(expected, rel=1e-4)


@pytest.mark.filterwarnings("ignore:monotonic_cst is not kept")
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_shrunk_leaves_keep_their_order(loss):
    rng = np.random.default_rng(0)
    X, eras = rng.integers(0, 3, (600, 1)), rng.integers(0, 5, 600)
    # The low end differs between eras, and would be shrunk beyond its neighbour.
    y = np.where(X[:, 0] == 0, -2.2 + 3 * (eras - 2), 4.0 * X[:, 0] - 6)
    params, values = {"loss": loss, "max_iter": 1, "max_leaf_nodes": 3}, {}
    for sign in (0, 1):
        for how in (None, "eras"):
            model = Regressor(monotonic_cst=[sign], leaf_shrinkage=how, **params)
            predicted = model.fit(X, y, eras=eras).predict([[0], [1], [2]])
            values[sign, how] = predicted - model._baseline_prediction.item()
    if loss == "squared_error":
        assert values[0, None][0] < values[0, None][1] < values[0, "eras"][0]
    ratio = values[1, "eras"] / values[1, None]
    assert ratio == pytest.approx(ratio[0])
    assert 0.1 < ratio[0] < 0.95


@each_target
def test_intercepts_do_not_depend_on_the_unit_of_weights(target):
    model, X, y, weights, eras = problem(target, max_iter=3, era_effects="intercept")
    if target in ("absolute", "quantile"):
        y = y + 3 * eras
    weights *= np.linspace(1, 2, y.size)  # no quantile lies just between two rows
    expected = clone(model).fit(X, y, weights, eras=eras)
    found = model.fit(X, y, weights * 64, eras=eras)
    values = [np.array([*each.era_intercepts_.values()]) for each in (found, expected)]
    assert np.allclose(*values, rtol=1e-5)
    assert np.abs(values[0]).max() > 1 or target not in ("absolute", "quantile")


@pytest.mark.parametrize("growth", [0.5, 1.1, 2.0])
@pytest.mark.parametrize("effects", ["last", "mean", "auto"])
def test_intercepts_of_amounts_that_grow_converge(effects, growth):
    rng = np.random.default_rng(0)
    month, X = np.repeat(np.arange(24), 100), rng.normal(size=(2400, 2))
    y = growth**month * np.exp(0.5 * X[:, 0]) * rng.gamma(4, 0.25, 2400)
    model = Regressor(loss="gamma", max_iter=10, era_effects=Intercepts(effects))
    model.set_params(early_stopping=False).fit(X, y, eras=month)
    levels = np.array([*model.era_intercepts_.values()])
    assert np.diff(levels) == pytest.approx(np.full(23, np.log(growth)), abs=0.5)


@pytest.mark.parametrize("log_factor", [-300.0, 30.0, 100.0])
def test_amounts_far_from_those_of_the_fit_are_taken_in(log_factor):
    rng = np.random.default_rng(0)
    month, X, y = np.repeat(np.arange(9), 50), np.zeros((450, 1)), rng.gamma(4, 1, 450)
    y[400:] *= np.exp(log_factor)
    model = Regressor(loss="gamma", max_iter=3, era_effects=Intercepts("last"))
    model.set_params(early_stopping=False).fit(X[:400], y[:400], eras=month[:400])
    model._update_intercepts(X[400:], y[400:], month[400:])
    assert model.era_intercepts_[8] == pytest.approx(log_factor, abs=1)


@each_target
def test_a_step_of_the_intercepts_is_that_of_the_equations(target):
    model, X, y, weights, eras = problem(target, max_iter=1, era_effects="intercept")
    for given in (None, weights):
        model.fit(X, y, given, eras=eras)
        w = np.ones(y.size) if given is None else given
        plain = clone(model).set_params(era_effects=None).fit(X, y, given)
        encoded, loss = model._encode_y_val(y), model._loss
        raw = np.repeat(plain._baseline_prediction, y.size, axis=0)
        g, h = (x.reshape(raw.shape) for x in loss.gradient_hessian(encoded, raw, w))
        for k in range(raw.shape[1]):
            step, H = np.zeros(4), np.bincount(eras, h[:, k])
            for j in range(4):
                rows = eras == j
                step[j] = -g[rows, k].sum() / H[j]
                if not loss.differentiable:
                    residuals = (encoded - raw[:, k])[rows]
                    at_rows = None if given is None else w[rows]
                    step[j] = loss.fit_intercept_only(residuals, at_rows).item()
            is_known = type(loss).__name__[:5] in ("HalfB", "HalfM", "HalfP")
            squares, n_rows = (g + h * step[eras, None])[:, k] ** 2, (h[:, k] > 0).sum()
            s2 = squares.sum() / H.sum() * n_rows / (n_rows - 4)
            if not loss.differentiable:
                at = raw[:, k] + step[eras]
                information = np.average(loss.gradient(encoded, at) ** 2, weights=w)
                s2 = loss(encoded, at, w) ** 2 / information * w[w > 0].mean()
            if is_known:
                step, s2 = np.clip(step, -1, 1), max(s2, w[w > 0].mean())
            if target == "positive":  # exact, and the hessians are those of its end
                total = np.bincount(eras, w * encoded / np.exp(raw[:, 0]))
                step, s2 = np.log(total / np.bincount(eras, w)), s2 * H.sum() / w.sum()
                H = np.bincount(eras, w)
            prior = max(0, (step**2 - s2 / H).mean())
            expected = step * prior / (prior + s2 / H)
            reached = [np.atleast_1d(b)[k] for b in model.era_intercepts_.values()]
            assert reached == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("weighting", ["equal", Recency(2), GroupDRO(0.5)])
def test_factors_of_eras_are_no_information_on_their_levels(weighting, early_stopping):
    """The variance of a value is that by the rows' own weights, held out or not."""
    rng = np.random.default_rng(0)
    eras = np.repeat(np.arange(10), [3, 100] * 5)
    y = rng.normal(size=10)[eras] + 2 * rng.normal(size=eras.size)
    weights, X = rng.uniform(0.5, 2.0, y.size), np.zeros((y.size, 1))
    params = {"early_stopping": early_stopping, "validation_fraction": 2}
    plain = Regressor(era_effects="intercept", max_iter=3, **params)
    weighed = clone(plain).set_params(era_weighting=weighting)
    means, variances = [], []
    for model in (plain, weighed):
        model.fit(X, y, weights, eras=eras)
        means.append(model._era_series[0, :, 0] + model._baseline_prediction.item())
        means[-1] -= model._era_forecast
        variances.append(model._era_series[1, :, 0])
    totals = np.bincount(eras, weights)
    expected = np.bincount(eras, weights * y) / totals
    s2 = weights**2 @ (y - expected[eras]) ** 2 / (y.size - 10) / weights.mean()
    assert means == pytest.approx(np.tile(expected, (2, 1)))
    assert variances[1] == pytest.approx(variances[0])
    assert variances[0] == pytest.approx(s2 / totals, rel=early_stopping and 0.3)


@pytest.mark.parametrize(("forecast", "n_eras", "weights"), [
    ("last", 1, [0, 0, 0, 1]), ("last", 2, [0, 0, 1 / 2, 1 / 2]),
    ("last", 9, [1 / 4] * 4), ("mean", 3, [1 / 4] * 4),
    ("exponential", 1, np.array([1, 2, 4, 8]) / 15)])  # fmt: skip
def test_forecast_weighs_the_eras(forecast, n_eras, weights):
    effects = Intercepts(forecast, n_eras)
    assert effects._forecast_weights(4) == pytest.approx(weights)


@pytest.mark.parametrize("effects", [
    "intercept", Intercepts("last", 1), Intercepts("mean"), Intercepts("exponential"),
    Intercepts("auto"), Intercepts("auto", horizon=2)])  # fmt: skip
@pytest.mark.parametrize("lacking", [[19], [7, 8, 19]])
def test_an_era_without_weight_is_not_known(effects, lacking):
    """The forecast is that without its rows, and counts from the last with weight."""
    rng = np.random.default_rng(0)
    X, eras = rng.normal(size=(1200, 2)), np.repeat(np.arange(20), 60)
    y = X[:, 0] + 2.0 * np.cumsum(rng.normal(size=20))[eras]
    has_weight = ~np.isin(eras, lacking)
    model = Regressor(era_effects=effects, max_iter=3, min_samples_leaf=1000)
    model.fit(X, y, eras=eras, sample_weight=1.0 * has_weight)
    rows = X[has_weight], y[has_weight]
    without = clone(model).fit(*rows, eras=eras[has_weight])
    for asked in (None, 7, 19, 20, 30):
        of_rows = None if asked is None else np.full(1200, asked)
        expected = without.predict(X, eras=of_rows)
        np.testing.assert_allclose(model.predict(X, eras=of_rows), expected)
        if asked != 7 and not hasattr(model, "_era_level"):
            assert_array_equal(model.predict(X, eras=of_rows), model.predict(X))
    assert model.era_intercepts_[19] == model._era_forecast
    assert np.ptp(model.predict(X, eras=eras)) > 1.0


@pytest.mark.parametrize("forecast", ["last", "mean", "exponential"])
@pytest.mark.parametrize("is_held_out", [False, True])
def test_a_later_era_of_one_row_leaves_the_intercepts(forecast, is_held_out):
    """Alone, it does not determine a value: it gets the forecast."""
    rng = np.random.default_rng(0)
    X, eras = rng.normal(size=(601, 2)), np.minimum(np.arange(601) // 30, 20)
    y = X[:, 0] + np.cumsum(rng.normal(size=21))[eras] + 0.1 * rng.normal(size=601)
    params = {"max_iter": 9, "era_effects": Intercepts(forecast)}
    model = Regressor(early_stopping=False, **params)
    model.fit(X[:600], y[:600], eras=eras[:600])
    expected = model.era_intercepts_ | {20: model._era_forecast.item()}
    if is_held_out:
        stopped = {"early_stopping": True, "n_iter_no_change": 9}
        model = Regressor(validation_eras="last", **params, **stopped)
        model.set_params(validation_fraction=0.001).fit(X, y, eras=eras)
        assert model.n_iter_ == 9
        if forecast == "mean":  # does not take in held-out eras
            expected.pop(20)
    else:
        model._update_intercepts(X[600:], y[600:], eras[600:])
    assert model.era_intercepts_ == pytest.approx(expected)
    assert np.ptp(list(expected.values())) > 1


@pytest.mark.parametrize("n_rows", [1, 20])
def test_intercepts_do_not_fit_noise(n_rows):
    """Trees reduce the variance of classes within eras; a single row has none."""
    rng = np.random.default_rng(0)
    X, eras = rng.normal(size=(1200, 3)), np.arange(1200) // n_rows
    y = rng.random(1200) < 0.05
    model = Classifier(era_effects="intercept", max_iter=60).fit(X, y, eras=eras)
    assert np.std(list(model.era_intercepts_.values())) < 0.3
    for loss in ("squared_error", "absolute_error"):
        model = Regressor(loss, era_effects="intercept", max_iter=30)
        model.fit(X, X[:, 0] + rng.normal(size=1200), eras=eras)
        assert np.std(model.predict(X)) > 0.5


def test_eras_of_a_single_class_end():
    rng = np.random.default_rng(0)
    X, eras = rng.normal(size=(400, 2)), np.arange(400) // 40
    for y in (eras % 2, np.where(eras > 7, 2, rng.integers(0, 2, 400))):
        model = Classifier(era_effects="intercept", max_iter=150).fit(X, y, eras=eras)
        assert np.all(np.abs(list(model.era_intercepts_.values())) < 15)
        assert np.isfinite(model.predict_proba(X)).all()


@each_target
def test_all_of_a_model_agrees_in_the_forecast(target, tmp_path):
    model, X, y, weights, eras = problem(target, **ALL)
    model.set_params(early_stopping=True, validation_fraction=None)
    days = np.datetime64("2024-01-01") + eras
    model.fit(X, y, weights, eras=days)
    raw = model._raw_predict(X)
    assert np.array_equal(list(model._staged_raw_predict(X))[-1], raw)
    # Training rows have their own intercept, in the last score of the training loss.
    by_label = model.era_intercepts_
    forecast = np.mean(list(by_label.values())[-3:], axis=0)
    own = raw + np.array([np.atleast_1d(by_label[day] - forecast) for day in days])
    product = weights_by_hand(eras, weights, Recency(2))
    if target != "multiclass":
        own = own.ravel()
    loss = model._loss(model._encode_y_val(y), own, product)
    assert -model.train_score_[-1] == pytest.approx(loss)
    # In every copy.
    path = tmp_path / "model.era"
    save_model(model, path)
    expected = model.predict(X, eras=days)
    for copied in (load_model(path)[0], pickle.loads(pickle.dumps(model))):
        assert np.array_equal(copied.predict(X, eras=days.astype("M8[ns]")), expected)
        assert list(copied.era_intercepts_) == list(by_label)
    assert np.array_equal(to_sklearn(model).predict(X), model.predict(X))


@pytest.mark.parametrize("scoring", ["loss", "r2", None])
def test_early_stopping_scores_the_forecast(scoring):
    X, y, eras = make_drift()
    params = {"early_stopping": True, "scoring": scoring, "validation_fraction": 4}
    model = Regressor(max_iter=5, era_effects="intercept", **params)
    model.fit(X, y, eras=eras)
    held_out = np.isin(eras, model.validation_eras_)
    assert (held_out.sum(), list(model.era_intercepts_)) == (400, list(range(20)))
    # Scores are of the level before the eras that are held out.
    forecast = np.mean([model.era_intercepts_[era] for era in (13, 14, 15)])
    later = np.mean([model.era_intercepts_[era] for era in (17, 18, 19)])
    residuals = y[held_out] - (model.predict(X[held_out]) + forecast - later)
    expected = 1 - np.mean(residuals**2) / np.var(y[held_out])
    if scoring == "loss":
        expected = -0.5 * np.mean(residuals**2)
    assert model.validation_score_[-1] == pytest.approx(expected, rel=1e-2)


def test_warm_start_goes_on_with_the_intercepts():
    X, y, eras = make_drift(6)
    params = {"era_effects": "intercept", "leaf_shrinkage": "eras"}
    straight = ours(max_iter=8, **params).fit(X, y, eras=eras)
    model = ours(max_iter=3, warm_start=True, **params).fit(X, y, eras=eras)
    model.set_params(max_iter=8, era_effects__forecast="mean").fit(X, y, eras=eras)
    reached, expected = model.era_intercepts_, straight.era_intercepts_
    assert reached == pytest.approx(expected)
    assert model.predict(X, eras=eras) == pytest.approx(straight.predict(X, eras=eras))
    mean = np.mean(list(expected.values()))
    new = straight.predict(X, eras=eras) - np.array(list(expected.values()))[eras]
    assert model.predict(X) == pytest.approx(new + mean)
    model.set_params(max_iter=9)
    with pytest.raises(ValueError, match=r"5 eras .* not the 6 whose intercepts warm"):
        model.fit(X, y, eras=np.minimum(eras, 4))
    with pytest.raises(ValueError, match=r"^era_effects=None leaves out the"):
        copy.deepcopy(model).set_params(era_effects=None).fit(X, y, eras=eras)
    # A fit from the beginning forgets them.
    model.set_params(era_effects=None, warm_start=False)
    assert not hasattr(model.fit(X, y, eras=eras), "era_intercepts_")


@on_grid("target", list(TARGETS), every=2)
def test_one_era_and_none_of_them_change_no_bit(target):
    model, X, y, weights, eras = problem(target)
    one = np.zeros(y.size, int)
    for given in (None, weights):
        plain = clone(model).fit(X, y, given, eras=eras)
        # The names of the defaults, and one era.
        assert_same_model(clone(model).fit(X, y, given), plain, X)
        params = {"leaf_shrinkage": "eras", "era_effects": "intercept"}
        alone = clone(model).set_params(**params).fit(X, y, given, eras=one)
        assert_same_model(alone, plain, X)
        assert not np.any(alone.era_intercepts_[0])


def test_threads_of_blas_do_not_matter():
    # From 10,000 numbers on, OpenBLAS shares a scalar product out among its threads.
    X, y, weights, eras = make_data(n_samples=20_000)
    model, predicted = Regressor(max_iter=20, **ALL), []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            predicted.append(model.fit(X, y, weights, eras=eras).predict(X))
    assert_array_equal(*predicted)


def test_order_of_rows_and_data_set_do_not_matter():
    X, y, weights, eras = make_data()
    X, weights = X.round(), weights + 0.1  # bins do not depend on weights
    model = ours(**ALL).fit(X, y, weights, eras=eras)
    order = np.random.default_rng(0).permutation(y.size)
    moved = clone(model).fit(X[order], y[order], weights[order], eras=eras[order])
    assert moved.predict(X, eras=eras) == pytest.approx(model.predict(X, eras=eras))
    given = {"sample_weight": weights, "eras": eras, "max_bins": 32}
    data = BinnedDataset.from_arrays(X, y, **given)
    binned = clone(model).fit(data)  # which has an order of its own
    assert binned.predict(X, eras=eras) == pytest.approx(model.predict(X, eras=eras))


@pytest.mark.parametrize(("name", "value"), [
    *(("era_weighting", v) for v in ("row", "recency", "group_dro", None, 1)),
    *(("step_size", GroupDRO(v)) for v in (-0.1, np.nan, np.inf, None, "0.1")),
    *(("era_weighting__half_life", v) for v in (0, -1, 0.0, np.nan, np.inf, None)),
    *(("leaf_shrinkage", v) for v in ("rows", True)),
    *(("era_effects", v) for v in ("slope", False)),
    *(("era_effects__forecast", v) for v in ("next", None)),
    *(("era_effects__n_eras", v) for v in (0, 1.5)),
])  # fmt: skip
def test_bad_values_are_refused(name, value):
    own, name = name.rpartition("__")[2], name.replace("step_size", "era_weighting")
    model = ours(**ALL).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"The '{own}' parameter of .* must be"):
        model.fit([[0]], [0], eras=[0])


@pytest.mark.parametrize(("name", "value"), [*ALL.items(), *DRO.items()])
def test_missing_eras_and_negative_weights_are_refused(name, value):
    X, y, _, eras = make_data(n_samples=60)
    models, shown = [ours(**{name: value})], re.escape(repr(value))
    if isinstance(value, Recency):
        models.append(EraForestRegressor(**{name: value}))
    for model in models:
        with pytest.raises(ValueError, match=rf"^{name}={shown} needs eras: pass"):
            model.fit(X, y)
    with pytest.raises(ValueError, match=rf"negative in 60 .* {name}={shown} takes"):
        models[0].fit(X, y, -np.ones(60), eras=eras)


def test_text_of_numpy_is_text_and_a_number_is_no_date():
    X, y, _, eras = make_data()
    model = ours(era_effects="intercept", era_order="ordered")
    model.fit(X, y + eras, eras=eras.astype(str))
    same = np.array(list(map(np.str_, eras)), dtype=object)
    expected = model.predict(X, eras=eras.astype(str))
    assert_array_equal(model.predict(X, eras=same), expected)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(X[:0], eras=[])
    model.fit(X, y, eras=np.datetime64("2024-01-01") + eras)
    with pytest.raises(ValueError, match=r"eras holds 0, of type int, .* datetime64"):
        model.predict(X, eras=eras)
    model.fit(X, y, eras=eras)
    for labels in (eras > 0, eras.astype(complex)):
        with pytest.raises(ValueError, match=r"eras holds .* type int, such as 0"):
            model.predict(X, eras=labels)


@pytest.mark.parametrize("learning_rate", [0.3, 0.5])
def test_rows_that_trees_fit_almost_exactly_leave_intercepts(learning_rate):
    """A hessian near 0 would make the variance within eras, by -g / h, enormous."""
    rng = np.random.default_rng(0)
    eras, X = np.repeat(np.arange(20), 200), rng.normal(size=(4000, 2))
    raw = np.column_stack([3 * X[:, 0], np.full(4000, -6.0), rng.normal(size=20)[eras]])
    y = (raw + rng.gumbel(size=raw.shape)).argmax(axis=1)
    params = {"learning_rate": learning_rate, "max_iter": 40}
    model = Classifier(era_effects="intercept", **params)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, eras=eras)
    spread = np.std([*model.era_intercepts_.values()], axis=0).max()
    assert spread > 1.0 or learning_rate == 0.5  # there trees diverge
    assert np.isfinite(model.predict_proba(X)).all()
