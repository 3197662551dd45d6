"""Levels and slopes of probabilities by era, and recalibration by them."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import multivariate_normal
from sklearn import config_context
from sklearn.datasets import make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from helpers.grids import slow
from sklearn_era.calibration import EraCalibratedClassifier, era_calibration
from sklearn_era.calibration._recalibration import RandomEffects, modes
from sklearn_era.preprocessing import EraStandardScaler

MEAN, COVARIANCE = np.array([-0.3, 0.7]), np.array([[0.3, 0.05], [0.05, 0.04]])


def make_rows(n_eras, n_rows, seed=0):
    """Outcomes, probabilities and eras, of levels and slopes that are drawn."""
    rng = np.random.default_rng(seed)
    effects = rng.multivariate_normal(MEAN, COVARIANCE, size=n_eras)
    eras = np.repeat(np.arange(n_eras), n_rows)
    z = rng.normal(-1, 1.5, size=eras.size)
    now = expit(-1 + effects[eras, 0] + effects[eras, 1] * (z + 1))
    return (rng.uniform(size=eras.size) < now).astype(float), expit(z), eras


def test_effects_are_the_largest_posterior_and_mean_and_spread_theirs():
    y, p, eras = make_rows(7, 60)
    weights = np.random.default_rng(1).integers(1, 3, y.size).astype(float)
    found = RandomEffects.fit(y, p, weights, eras, 7)
    z = logit(p) - np.average(logit(p), weights=weights)
    prior = multivariate_normal(found.mean, found.covariance)
    for era in range(7):
        rows = eras == era

        def loss(effects, rows=rows):
            eta = found.center + effects[0] + effects[1] * z[rows]
            own = np.logaddexp(0, eta) - y[rows] * eta
            return weights[rows] @ own - prior.logpdf(effects)

        best = minimize(loss, found.mean, method="BFGS", options={"gtol": 1e-7})
        assert found.effects[era] == pytest.approx(best.x, abs=2e-4)
        h, at = 1e-3 * np.eye(2), found.effects[era]
        hessian = [
            [(loss(at + a + b) - loss(at + a - b) - loss(at - a + b) + loss(at - a - b))
             / 4e-6 for b in h]
            for a in h
        ]  # fmt: skip
        np.testing.assert_allclose(found.errors[era] @ hessian, np.eye(2), atol=0.02)
    assert found.mean == pytest.approx(found.effects.mean(axis=0))
    squares = np.cov(found.effects.T) + found.errors.mean(axis=0)
    np.testing.assert_allclose(found.covariance, squares, atol=1e-4)


def test_errors_are_those_of_effects_and_mean_together():
    """Henderson's equations, of the mean and of 7 eras."""
    y, p, eras = make_rows(7, 60, 1)
    found, errors = RandomEffects.fit_with_errors(y, p, np.ones(y.size), eras, 7)
    precision = np.linalg.inv(found.covariance)
    whole = np.zeros((16, 16))
    whole[:2, :2] = 7 * precision
    for era in range(7):
        own = slice(2 * era + 2, 2 * era + 4)
        whole[own, own] = np.linalg.inv(found.errors[era])
        whole[:2, own] = whole[own, :2] = -precision
    together = np.linalg.inv(whole)[2:, 2:].reshape(7, 2, 7, 2)
    expected = np.array([together[era, :, era] for era in range(7)])
    np.testing.assert_allclose(errors, expected, rtol=1e-3, atol=1e-6)
    assert (np.linalg.eigvalsh(errors - found.errors) > 0).all()


@pytest.mark.parametrize("n_eras", [1, 3])
def test_eras_that_do_not_differ_have_the_errors_of_all_rows_together(n_eras):
    y, p, _ = make_rows(1, 60)
    (y, p), eras = np.tile([y, p], n_eras), np.repeat(np.arange(n_eras), 60)
    x = np.column_stack([np.ones(y.size), logit(p) - logit(p).mean()])
    errors = newton(y, x, logit(p).mean(), np.ones(y.size))[1]
    found = era_calibration(y, p, eras=eras).scores
    for name, error in zip(("shrunken_level", "shrunken_slope"), errors, strict=True):
        assert found[f"{name}_error"] == pytest.approx([error] * n_eras, rel=1e-3)
    # The slope of equal probabilities is not known, and the level is.
    found = era_calibration(y, np.full(y.size, 0.4), eras=eras).scores
    error = 1 / np.sqrt(y.size * y.mean() * (1 - y.mean()))
    assert found["shrunken_level_error"] == pytest.approx([error] * n_eras, rel=1e-3)


@pytest.mark.parametrize("spread", 10.0 ** np.arange(-16, -2, 3))
def test_probabilities_that_hardly_vary_have_levels(spread):
    rng = np.random.default_rng(0)
    for _ in range(2):
        p = expit(spread * rng.normal(size=300) - 0.4)
        y, eras = 1 * (rng.random(300) < p), rng.integers(0, 6, 300)
        found = era_calibration(y, p, eras=eras).scores
        constant = era_calibration(y, np.full(300, expit(-0.4)), eras=eras).scores
        expected = pytest.approx(constant["in_the_large"], abs=0.01)
        assert found["in_the_large"] == expected
        assert np.isnan(found["slope"]).all() == (spread < 2e-6)
        assert np.isfinite(found["shrunken_level_error"]).all()


@pytest.mark.parametrize(("n_eras", "n_rows", "spread", "shift", "is_rounded"), [
    (200, 5, 1.0, 0.0, False), (50, 20, 1.0, 0.0, True), (20, 200, 0.0, 0.0, False),
    (100, 30, 0.0, -5.0, False), (30, 4, 5.0, 0.0, False), (20, 3, 0.0, 0.0, True),
])  # fmt: skip
def test_em_would_go_no_further(n_eras, n_rows, spread, shift, is_rounded):
    """Slopes hardly differ, which takes it thousands of steps."""
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(n_eras), n_rows)
    z, weights = rng.normal(size=(2, eras.size))
    level, weights = rng.normal(shift, spread, n_eras)[eras], np.exp(weights / 9)
    y, p = 1.0 * (rng.uniform(size=eras.size) < expit(level + z)), expit(z)
    p = np.round(p) if is_rounded else p
    found = RandomEffects.fit(y, p, weights, eras, n_eras)
    x = np.stack([np.ones_like(p), np.clip(logit(p), -15, 15) - found.center])
    given = y, x, found.center, weights, eras, found.effects
    effects, errors = modes(*given, found.mean, np.linalg.inv(found.covariance))
    np.testing.assert_allclose(effects.mean(axis=0), found.mean, atol=1e-6)
    covariance = np.cov(effects.T) + errors.mean(axis=0)
    np.testing.assert_allclose(covariance, found.covariance, 1e-6, 1e-6)


def test_distribution_over_eras_is_found_again():
    y, p, eras = make_rows(300, 200)
    found = era_calibration(y, p, eras=eras)
    assert [*found.typical] == [*found.spread] == ["level", "slope"]
    assert [*found.typical.values()] == pytest.approx(MEAN, abs=0.1)
    spread = np.sqrt(np.diagonal(COVARIANCE))
    assert [*found.spread.values()] == pytest.approx(spread, rel=0.15)


def test_new_eras_have_the_mean_probability():
    """Also where levels and slopes go together."""
    mean, together = np.array([0.0, 1.0]), np.array([[1.0, 0.8], [0.8, 1.0]])
    found = RandomEffects(-1, mean, together, np.zeros((0, 2)), np.zeros((0, 2, 2)))
    draws = np.random.default_rng(0).multivariate_normal(mean, together, size=20_000)
    p = np.array([0.001, 0.2, 0.5, 0.9])
    eta = found.center + draws[:, :1] + draws[:, 1:] * (logit(p) - found.center)
    expected = expit(eta).mean(axis=0)
    assert found.probabilities(p, np.full(4, -1)) == pytest.approx(expected, abs=0.01)


def test_calibration_by_era_is_a_table():
    y, p, eras = make_rows(5, 4000)
    found = era_calibration(y > 0, p, eras=eras)
    table = found.to_frame()
    names = "in_the_large intercept slope ratio shrunken_level shrunken_slope"
    columns = [x for name in names.split() for x in (name, f"{name}_error")]
    columns += ["observed", "predicted", "n_events"]
    assert [*table] == [*columns, "n_samples"]
    assert found[3]["shrunken_level"] == table.shrunken_level[3]
    assert found.scores["observed"] == pytest.approx(y.reshape(5, -1).mean(axis=1))
    assert found.scores["predicted"] == pytest.approx(p.reshape(5, -1).mean(axis=1))
    mirror = era_calibration(np.where(y > 0, "a", "b"), p, eras=eras, pos_label="a")
    for name in ("slope", "shrunken_slope"):
        np.testing.assert_allclose(mirror.scores[name], found.scores[name])
    twice = era_calibration(*(np.tile(x, 2) for x in (y, p)), eras=np.tile(eras, 2))
    heavy = era_calibration(y, p, eras=eras, sample_weight=np.full(y.size, 2))
    for name in columns[:-1]:
        np.testing.assert_allclose(twice.scores[name], heavy.scores[name])
    # With many rows, an era's own logistic regression.
    rows, z = eras == 2, (logit(p) - logit(p).mean())[:, np.newaxis]
    own = LogisticRegression(C=np.inf).fit(z[rows], y[rows])
    assert found[2]["shrunken_slope"] == pytest.approx(own.coef_[0, 0], abs=0.05)
    assert found[2]["shrunken_level"] == pytest.approx(own.intercept_[0] + 1.0, abs=0.1)


def newton(y, x, offset, weights):
    """Logistic regression by plain Newton steps, and standard errors."""
    effects = np.zeros(x.shape[1])
    for _ in range(50):
        now = expit(offset + x @ effects)
        information = x.T @ (x * (weights * now * (1 - now))[:, np.newaxis])
        effects = effects + np.linalg.solve(information, x.T @ (weights * (y - now)))
    return effects, np.sqrt(np.diagonal(np.linalg.inv(information)))


def test_eras_that_need_few_steps_do_not_wait_for_others():
    y, p, eras = make_rows(9, 80)
    y[(eras == 4) & (p < 0.99)] = 0.0  # hardly any positive row: many steps
    x, start = np.stack([np.ones_like(p), logit(p)]), np.zeros((9, 2))
    given = 0.0, np.eye(2) / 1e4
    together = modes(y, x, 0.0, np.ones_like(y), eras, start, *given)
    for era in range(9):
        own, code = eras == era, np.zeros(80, int)
        alone = modes(y[own], x[:, own], 0.0, np.ones(80), code, start[:1], *given)
        for found, expected in zip(together, alone, strict=True):
            np.testing.assert_allclose(found[era], expected[0], rtol=1e-4)


def test_unshrunken_values_are_those_of_each_era_alone():
    y, p, eras = make_rows(6, 80)
    weights = np.random.default_rng(1).integers(1, 3, y.size).astype(float)
    p[0], p[1] = 0.0, 1.0  # the log-odds of which are cut
    found = era_calibration(y, p, eras=eras, sample_weight=weights)
    z = np.clip(logit(p), -15, 15)
    for era in range(6):
        rows = eras == era
        own, w, ones = y[rows], weights[rows], np.ones((80, 1))
        [a], [error] = newton(own, ones, z[rows], w)
        got = found[era]
        found_level = got["in_the_large"], got["in_the_large_error"]
        assert found_level == pytest.approx((a, error), rel=1e-6)
        x = np.column_stack([ones, z[rows]])
        effects, errors = newton(own, x, np.zeros(80), w)
        names = "intercept", "slope"
        assert [got[x] for x in names] == pytest.approx(effects, rel=1e-6)
        assert [got[f"{x}_error"] for x in names] == pytest.approx(errors, rel=1e-6)
        share, expected = np.average(own, weights=w), np.average(p[rows], weights=w)
        assert got["ratio"] == pytest.approx(share / expected)
        error = np.sqrt(share * (1 - share) / w.sum()) / expected
        assert got["ratio_error"] == pytest.approx(error)
        assert got["n_events"] == own.sum()


def test_what_an_era_does_not_tell_by_itself_is_nan():
    y = np.array([0, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1])
    p = np.array([0.1, 0.2, 0.3, 0.1, 0.6, 0.7, 0.5, 0.5, 0.2, 0.6, 0.4, 0.8])
    eras = np.repeat(["one class", "apart", "equal", "known"], [3, 3, 2, 4])
    found = era_calibration(y, p, eras=eras)
    known = {era: {x for x, v in found[era].items() if v == v} for era in found}
    shrunken = "shrunken_level", "shrunken_slope"
    rest = {"ratio", "observed", "predicted", "n_events", *shrunken}
    rest |= {f"{name}_error" for name in shrunken}
    assert known["one class"] == rest
    large = {"in_the_large", "in_the_large_error", "ratio_error"}
    assert known["apart"] == known["equal"] == rest | large
    assert known["known"] == {*found["known"]}


@pytest.mark.parametrize(("y", "p", "params", "message"), [
    ([0, 1, 2], [0.1, 0.2, 0.3], {}, "multiclass"),
    ([0, 0, 0], [0.1, 0.2, 0.3], {}, "pos_label and another"),
    ([0, 1, 1], [0.1, 0.2, 0.3], {"pos_label": "x"}, "pos_label and another"),
    ([0, 1, 1], [0.1, 1.2, 0.3], {}, "greater than 1: 1.2"),
    ([0, 1, 1], [0.1, 0.2], {}, "inconsistent numbers"),
    ([0, 1, 1], np.full((3, 2), 0.5), {}, r"shape \(3, 2\): pass .* y_prob\[:, 1\]"),
    ([0, 1, 1], [0.1, 0.2, 0.3], {"sample_weight": [0, 1, 1]}, "and another class"),
])  # fmt: skip
def test_refusals(y, p, params, message):
    with pytest.raises(ValueError, match=message):
        era_calibration(y, p, eras=[0, 0, 1], **params)


def make_classes(n_classes, n_eras, seed):
    rng = np.random.default_rng(seed)
    X, y = make_blobs(80 * n_eras, centers=3.0 * np.eye(n_classes), random_state=seed)
    eras = rng.permutation(np.repeat(np.arange(n_eras), 80))
    # Columns of which one is the other's: naive Bayes is too sure.
    return np.hstack([X, X]) + rng.normal(0, 0.7, size=(n_eras, 1))[eras], y, eras


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_recalibrated_out_of_era(n_classes):
    X, y, eras = make_classes(n_classes, 15, 0)
    model = EraCalibratedClassifier(GaussianNB(), era_order="unordered")
    model.fit(X, y, eras=eras)
    folds = list(GroupKFold(5).split(X, groups=eras))
    p = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")
    new, truth, _ = make_classes(n_classes, 40, 1)
    before = GaussianNB().fit(X, y).predict_proba(new)
    codes = np.where(np.arange(len(new)) % 2, np.arange(len(new)) % 15, -1)
    known = np.where(codes < 0, 99, codes)
    for train, test in folds:
        fit, own = GaussianNB().fit(X[train], y[train]), np.isin(known, eras[test])
        before[own] = fit.predict_proba(new[own])
    columns, expected = range(n_classes == 2, n_classes), []
    for i in columns:
        found = RandomEffects.fit(1.0 * (y == i), p[:, i], np.ones(y.size), eras, 15)
        expected.append(found.probabilities(before[:, i], codes))
    expected = np.transpose(expected)
    if n_classes == 2:
        expected = np.hstack([1 - expected, expected])
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(new, eras=known), expected)
    predicted = model.predict(new, eras=known)
    np.testing.assert_array_equal(predicted, expected.argmax(axis=1))
    assert model.effects_.shape == (len(columns), 15, 2)
    assert model.mean_effects_.shape == model.spread_effects_.shape == (len(columns), 2)
    before, after = (m.predict_proba(new) for m in (model.estimator_, model))
    assert log_loss(truth, after) < log_loss(truth, before) - 0.005
    by_era, without = model.predict_proba(X, eras=eras), model.predict_proba(X)
    assert log_loss(y, by_era) < log_loss(y, without)
    with pytest.raises(ValueError, match="y has one class"):
        model.set_params(estimator=DummyClassifier()).fit(X, y > -1, eras=eras)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_that_are_tested_twice_count_once(n_classes):
    X, y, eras = make_classes(n_classes, 9, 0)
    y, eras = np.array(["a", "b", "c"])[y], eras - 1.0 * (eras == 8)
    folds, weights = list(GroupKFold(3).split(X, groups=eras)), 1.0 * (eras != 2)
    rows = list(KFold(3, shuffle=True, random_state=0).split(X))
    for cv, again in ((folds, folds), (folds, folds[2:]), (rows, rows * 2)):
        models = once, repeated = [
            EraCalibratedClassifier(GaussianNB(), cv=x, era_order="unordered")
            for x in (cv, [*cv, *again])
        ]
        for model in models:
            model.fit(X, y, eras=eras, sample_weight=weights)
        for name in ("effects_", "mean_effects_", "spread_effects_"):
            expected = getattr(once, name)
            np.testing.assert_allclose(getattr(repeated, name), expected, atol=1e-4)


@pytest.mark.parametrize("is_frozen", [False, slow(True)])
def test_transformers_get_the_eras_of_rows(is_frozen):
    X, y, eras = make_classes(2, 8, 0)
    X, scaler = X + 5 * eras[:, np.newaxis], EraStandardScaler(smooth=0)
    Z = scaler.fit_transform(X, eras=eras)
    models = [GaussianNB(), make_pipeline(scaler, GaussianNB())]
    if is_frozen:
        with config_context(enable_metadata_routing=True):
            models[1] = FrozenEstimator(models[1].fit(X, y, eras=eras))
        models[0] = FrozenEstimator(models[0].fit(Z, y))
    by_hand, model = (EraCalibratedClassifier(m, era_order="unordered") for m in models)
    kept = eras < 6  # later ones are new
    by_hand.fit(Z[kept], y[kept], eras=eras[kept])
    model.fit(X[kept], y[kept], eras=eras[kept])
    expected = by_hand.predict_proba(Z, eras=eras)
    np.testing.assert_allclose(model.predict_proba(X, eras=eras), expected)
    assert model.score(X, y, eras=eras) == by_hand.score(Z, y, eras=eras)


def test_eras_without_weight_are_none():
    y, p, eras = make_rows(8, 60)
    weights = (eras < 5) * 2.0
    found, kept = era_calibration(y, p, eras=eras, sample_weight=weights), eras < 5
    given = {"eras": eras[kept], "sample_weight": weights[kept]}
    expected = era_calibration(y[kept], p[kept], **given)
    assert found.spread == expected.spread
    np.testing.assert_array_equal(found.eras, expected.eras)


@pytest.mark.parametrize("n_rows", [10, 300])
def test_effects_are_finite_where_classes_do_not_overlap(n_rows):
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(30), n_rows)
    z = rng.normal(size=eras.size)
    for y in (z > 0, z == z.max()):
        p = expit(z)
        found = RandomEffects.fit(1.0 * y, p, np.ones(eras.size), eras, 30)
        assert np.abs(found.mean).max() < 20
        assert np.diagonal(found.covariance).max() < 2
        of_new = found.probabilities(p, np.full(eras.size, -1))
        loss, before = (-np.mean(np.log(np.where(y, x, 1 - x))) for x in (of_new, p))
        assert loss < before
