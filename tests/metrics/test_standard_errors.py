"""Standard errors of scores, against published ones, the jackknife and all pairs."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn import metrics

from sklearn_era.metrics import (
    EraScores,
    _standard_errors,
    compare_predictions,
    era_standard_errors,
)
from sklearn_era.metrics._linearized import _FORMS, linearize
from sklearn_era.metrics._standard_errors import Rows, errors_by_era, sampling_error

# Turck et al. (2010), doi:10.1007/s00134-009-1641-y: three markers of 113 patients.
ASAH = np.genfromtxt(Path(__file__).with_name("asah.csv"), delimiter=",", names=True)
REGRESSION = {
    metrics.mean_squared_error, metrics.root_mean_squared_error,
    metrics.mean_absolute_error, metrics.mean_absolute_percentage_error,
    metrics.mean_squared_log_error, metrics.root_mean_squared_log_error,
    metrics.mean_pinball_loss, metrics.mean_tweedie_deviance,
    metrics.mean_poisson_deviance, metrics.mean_gamma_deviance, metrics.r2_score,
    metrics.explained_variance_score, partial(metrics.mean_tweedie_deviance, power=1.5),
    partial(metrics.mean_tweedie_deviance, power=3),
    partial(metrics.mean_pinball_loss, alpha=0.9),
}  # fmt: skip
CLASSES = {metrics.accuracy_score, metrics.zero_one_loss}
OF_PROBABILITIES = {metrics.roc_auc_score, metrics.log_loss, metrics.brier_score_loss}


def name_of(metric):
    own = getattr(metric, "keywords", {})
    return getattr(metric, "func", metric).__name__ + "".join(map(str, own.values()))


CLOSED = sorted(REGRESSION | CLASSES | OF_PROBABILITIES, key=name_of)
RESAMPLED = [
    metrics.f1_score, metrics.balanced_accuracy_score, metrics.average_precision_score,
    metrics.d2_absolute_error_score, metrics.median_absolute_error,
    partial(metrics.roc_auc_score, max_fpr=0.5),
]  # fmt: skip


def draw(metric, n=60, seed=0):
    """Targets and predictions, some of them tied, that a metric takes."""
    rng = np.random.default_rng(seed)
    y, p = rng.gamma(2, size=n), rng.gamma(2, size=n)
    p = np.round(0.6 * y + 0.4 * p, 1) + 0.1
    if metric in REGRESSION or "absolute" in name_of(metric):
        return y, p
    y, p = (y > 1.5).astype(int), p / (p.max() + 0.1)
    is_of_labels = metric in CLASSES or metric in RESAMPLED[:2]
    return y, (p > 0.4).astype(int) if is_of_labels else p


def test_all_closed_forms_are_tested():
    assert {x for x in CLOSED if not isinstance(x, partial)} == {*_FORMS}


@pytest.mark.parametrize(("marker", "area", "low", "high"), [
    ("s100b", 0.7314, 0.6301, 0.8326), ("ndka", 0.6120, 0.5012, 0.7227),
    ("wfns", 0.8237, 0.7485, 0.8988),
])  # fmt: skip
def test_areas_have_the_intervals_that_pROC_prints(marker, area, low, high):
    given = {"eras": np.zeros(113), "metric": metrics.roc_auc_score}
    found = metrics.roc_auc_score(ASAH["poor"], ASAH[marker])
    [error] = era_standard_errors(ASAH["poor"], ASAH[marker], **given).scores
    half = norm.ppf(0.975) * error
    assert_allclose([found, found - half, found + half], [area, low, high], atol=5e-5)


def test_two_areas_of_the_same_rows_differ_as_pROC_prints():
    y, a, b = (ASAH[name] for name in ("poor", "s100b", "wfns"))
    area = metrics.roc_auc_score
    error = sampling_error(Rows(y, [a, b], {}), area, {}, 2, 0)
    z = (area(y, b) - area(y, a)) / error
    assert_allclose([z, 2 * norm.sf(z)], [2.209, 0.02718], rtol=2e-4)


@pytest.mark.parametrize("weighed", [False, True])
def test_areas_are_those_of_all_pairs(weighed):
    y, p = draw(metrics.roc_auc_score)
    w = np.random.default_rng(1).uniform(1, 2, y.size) if weighed else np.ones(y.size)
    pairs = (p[y == 1][:, None] > p[y == 0]) + 0.5 * (p[y == 1][:, None] == p[y == 0])
    variance = 0.0
    for table, label in ((pairs, 1), (pairs.T, 0)):
        own, shares = w[y == label], w[y != label] / w[y != label].sum()
        means, own = table @ shares, own / own.sum()
        squares = own**2 @ (means - own @ means) ** 2
        variance += squares * own.size / (own.size - 1)
    given = {"sample_weight": w if weighed else None, "metric": metrics.roc_auc_score}
    found = era_standard_errors(y, p, eras=np.zeros(y.size), **given)
    assert_allclose(found.scores, np.sqrt(variance))


@pytest.mark.parametrize("metric", CLOSED, ids=name_of)
@pytest.mark.parametrize("weighed", [False, True])
def test_closed_forms_are_near_the_jackknife(metric, weighed):
    y, p = draw(metric, 200)
    weights = np.random.default_rng(2).uniform(1, 2, 200)
    params = {"sample_weight": weights} if weighed else {}
    score = metric(y, p, **params)
    assert linearize(metric, score, y, p, params) is not None
    found, left = sampling_error(Rows(y, [p], params), metric, {}, 2, 0), []
    for row in range(200):
        others = {name: np.delete(x, row) for name, x in params.items()}
        left.append(metric(np.delete(y, row), np.delete(p, row), **others))
    assert_allclose(found, np.sqrt(199 * np.var(left)), rtol=0.06)


@pytest.mark.parametrize("metric", [*CLOSED, *RESAMPLED], ids=name_of)
def test_the_order_of_rows_does_not_matter(metric):
    y, p = draw(metric)
    eras, w = np.repeat([0, 1], 30), np.random.default_rng(2).uniform(1, 2, 60)
    for weights in (None, w):
        found = []
        for seed in range(2):
            rows = np.random.default_rng(seed).permutation(60)
            own = {"sample_weight": None if weights is None else weights[rows]}
            own |= {"metric": metric, "n_resamples": 25}
            error = era_standard_errors(y[rows], p[rows], eras=eras[rows], **own)
            found.append(error.scores)
        assert_allclose(*found, rtol=1e-10)
        assert np.isfinite(found).all()
        assert (np.array(found) > 0).all()


@pytest.mark.parametrize("metric", RESAMPLED, ids=name_of)
def test_other_metrics_are_resampled(metric):
    y, p = draw(metric, 300)
    rows = Rows(y, [p], {})
    assert linearize(metric, metric(y, p), y, p, {}) is None
    found = sampling_error(rows, metric, {}, 100, 0)
    again = sampling_error(rows, metric, {}, 200, 1)
    assert_allclose(found, again, rtol=0.35)
    assert sampling_error(rows, metric, {}, 100, 0) == found
    # By hand, as documented.
    order, draws, scores = rows.order(), np.random.RandomState(0), []
    for _ in range(100):
        drawn = order[draws.randint(300, size=300)]
        scores.append(metric(y[drawn], p[drawn]))
    assert_allclose(found, np.std(scores, ddof=1) * np.sqrt(300 / 299))


@pytest.mark.parametrize(("metric", "params", "is_closed"), [
    (metrics.accuracy_score, {"normalize": False}, False),
    (metrics.log_loss, {"labels": [0, 1, 2]}, False),
    (metrics.log_loss, {"labels": [0, 1]}, True),
    (metrics.brier_score_loss, {"pos_label": 0}, True),
    (metrics.r2_score, {"multioutput": "uniform_average"}, False),
])  # fmt: skip
def test_parameters_of_the_metric_count(metric, params, is_closed):
    y, p = draw(metric)
    if params.get("labels") == [0, 1, 2]:
        p, is_closed = np.column_stack([1 - p, p / 2, p / 2]), True
    found = linearize(metric, metric(y, p, **params), y, p, params)
    assert (found is not None) == is_closed
    given = {"eras": np.zeros(60), "n_resamples": 20}
    bound = partial(metric, **params)
    bound.__name__ = "named"  # which Python does not join with the partial around it
    passed = era_standard_errors(y, p, metric=metric, **params, **given)
    for one in (partial(metric, **params), partial(bound)):
        assert era_standard_errors(y, p, metric=one, **given)[0] == passed[0] > 0


OF_LOGARITHMS = {metrics.mean_squared_log_error, metrics.root_mean_squared_log_error}


@pytest.mark.parametrize(
    "metric",
    [*sorted(REGRESSION - OF_LOGARITHMS, key=name_of), metrics.median_absolute_error],
    ids=name_of,
)  # fmt: skip
@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_errors_are_in_the_unit_of_the_score(metric, unit):
    y, p = draw(metric)
    given = {"eras": np.repeat([0, 1], 30), "metric": metric, "n_resamples": 25}
    expected = era_standard_errors(y, p, **given).scores
    found = era_standard_errors(unit * y, unit * p, **given).scores
    assert (found > 0).all()
    factor = metric(unit * y, unit * p) / metric(y, p)
    assert_allclose(found, factor * expected, rtol=1e-6)
    # Losses that are equal up to rounding tell no error, of whatever unit.
    if metric is metrics.mean_squared_error:
        y = np.arange(60) / 10
        assert np.isnan(era_standard_errors(unit * y, unit * (y + 1), **given)[0])


def test_several_classes_and_outputs():
    rng = np.random.default_rng(0)
    y, p = rng.choice(["a", "b", "c"], 90), rng.dirichlet(np.ones(3), 90)
    own = p[np.arange(90), np.searchsorted(["a", "b", "c"], y)]
    given = {"eras": np.zeros(90), "n_resamples": 20}
    found = era_standard_errors(y, p, metric=metrics.log_loss, **given)
    assert found[0] == pytest.approx(np.std(-np.log(own), ddof=1) / np.sqrt(90))
    of = {"metric": metrics.roc_auc_score, "multi_class": "ovr"}
    area = era_standard_errors(y, p, **of, **given)
    assert 0 < area[0] < 0.2
    y, p = rng.normal(size=(2, 90, 2))
    found = era_standard_errors(y, p, metric=metrics.mean_absolute_error, **given)
    losses = np.abs(y - p).mean(axis=1)
    assert found[0] == pytest.approx(np.std(losses, ddof=1) / np.sqrt(90))
    scores = metrics.r2_score(y, p)
    assert linearize(metrics.r2_score, scores, y, p, {}) is not None


@pytest.mark.parametrize("metric", CLOSED, ids=name_of)
def test_a_column_has_the_errors_of_a_vector(metric):
    y, p = draw(metric)
    given = {"eras": np.repeat([0, 1], 30), "metric": metric, "n_resamples": 0}
    expected = era_standard_errors(y, p, **given).scores
    for columns in ((pd.DataFrame(y), p), (y, p[:, None]), (y[:, None], p[:, None])):
        found = era_standard_errors(*columns, **given).scores
        assert_allclose(found, expected, rtol=1e-9)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("metric", sorted(OF_PROBABILITIES, key=name_of), ids=name_of)
def test_several_labels_a_row_are_resampled(metric):
    rng, given = np.random.default_rng(0), {"metric": metric, "n_resamples": 20}
    y, (a, b) = rng.integers(2, size=(60, 3)), rng.dirichlet(np.ones(3), (2, 60))
    given["eras"] = np.repeat([0, 1], 30)
    assert (era_standard_errors(y, a, **given).scores > 0).all()
    assert (compare_predictions(y, a, b, **given).standard_errors > 0).all()


def test_errors_have_the_labels_of_eras():
    y, p = draw(metrics.roc_auc_score)
    y[-12:], eras = 1, np.repeat(["b", "a", "c", "d"], [20, 28, 11, 1])
    given = {"metric": metrics.roc_auc_score}
    found = era_standard_errors(y, p, eras=eras, **given)
    assert isinstance(found, EraScores)
    assert list(found) == ["a", "b", "c", "d"]
    assert np.isnan(found.scores).tolist() == [False, False, True, True]
    assert found["a"] == found.scores[0] > 0
    table = found.to_frame()
    assert table.loc["b", "standard error of roc_auc_score"] == found["b"]
    for make in (pd.Series, pl.Series, list):
        same = era_standard_errors(*map(make, (y, p)), eras=make(eras), **given)
        assert_array_equal(same.scores, found.scores)


def test_rows_without_weight_do_not_count():
    for metric in (metrics.log_loss, metrics.average_precision_score):
        y, p = draw(metric)
        weights, eras = np.repeat([2.0, 0.0], 30), np.zeros(60)
        given = {"metric": metric, "n_resamples": 30}
        found = era_standard_errors(y, p, eras=eras, sample_weight=weights, **given)
        rest = era_standard_errors(y[:30], p[:30], eras=eras[:30], **given)
        assert_allclose(found.scores, rest.scores)


def test_what_has_no_error_is_refused():
    y, p = np.array([0, 1, 1]), np.array([0.2, 0.7, 0.4])
    for metric, n_resamples, message in (
        (metrics.log_loss, 0, "standard error of log_loss failed in era 2"),
        (lambda y, p: y - p, 0, "must return one number; standard error of"),
        (metrics.f1_score, -1, "'n_resamples' .* must be an int"),
    ):
        of = {"metric": metric, "n_resamples": n_resamples}
        with pytest.raises(ValueError, match=message):
            era_standard_errors(y, p, eras=[1, 1, 2], **of)


@pytest.mark.parametrize("metric", [metrics.roc_auc_score, metrics.accuracy_score])
def test_rows_that_say_nothing_of_the_error_have_none(metric):
    """A single death, or scores that cannot differ, look like no error at all."""
    y = np.array([1, 1, 0, 0, 0, 0])
    errors = era_standard_errors(y, y, eras=np.zeros(6), metric=metric)
    assert np.isnan(errors.scores).all()
    if metric is metrics.roc_auc_score:
        p = np.array([0.3, 0.1, 0.2, 0.4, 0.5, 0.2])
        errors = era_standard_errors(y[1:], p[1:], eras=np.zeros(5), metric=metric)
        assert np.isnan(errors.scores).all()


@pytest.mark.parametrize("value", [3.0, 0.1])  # the mean of 0.1s is another number
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize(
    "metric", [metrics.r2_score, metrics.explained_variance_score], ids=name_of
)
def test_targets_that_do_not_vary_tell_no_error(metric, n_outputs, value):
    y, p = (np.column_stack([x] * n_outputs) for x in draw(metric))
    given = {"eras": np.repeat([0, 1, 2], 20), "metric": metric}
    expected = era_standard_errors(y, p, **given).scores
    assert np.isfinite(expected).all()
    y[20:40, 0], expected[1] = value, np.nan
    for predicted in (p, np.vstack([p[:20], y[20:40], p[40:]])):
        found = era_standard_errors(y, predicted, **given).scores
        assert_array_equal(found, expected)
    with pytest.warns(UserWarning, match="era"):
        found = compare_predictions(y, p, p[::-1], **given)
    assert np.isnan(found.differences).tolist() == [False, True, False]


def test_samples_in_which_a_metric_divides_by_zero_are_left_out():
    def share(y_true, y_pred):
        return float(np.ptp(y_pred)) / float(np.ptp(y_true))

    given = {"eras": np.zeros(3), "metric": share, "n_resamples": 50}
    assert 0 < era_standard_errors([1, 2, 4], [1, 3, 4], **given)[0] < np.inf
    with pytest.raises(ValueError, match=r"share failed in era 0.*division by zero"):
        era_standard_errors([1, 1, 1], [1, 3, 4], **given)


@pytest.mark.parametrize(("metric", "params"), [
    (metrics.mean_squared_error, {}), (metrics.mean_pinball_loss, {"alpha": 0.2}),
    (partial(metrics.mean_tweedie_deviance, power=1.5), {}),
    (metrics.mean_gamma_deviance, {}),
])  # fmt: skip
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_of_all_rows_at_once_give_the_errors_era_by_era(
    metric, params, weighted, monkeypatch
):
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(6), [1, 2, 9, 9, 30, 40])
    y, p, other = rng.gamma(2, 1, (3, eras.size))
    p[eras == 2] = y[eras == 2]  # rows that all score alike
    weights = rng.gamma(1, 1, eras.size) * (eras != 3) if weighted else None
    given = {"eras": eras, "sample_weight": weights, "row_params": None}

    def found():
        return [
            errors_by_era(y, predictions, metric, params, 0, 0, **given).scores
            for predictions in ([p], [p, other])
        ]

    at_once = found()
    monkeypatch.setattr(_standard_errors, "row_losses", lambda *_: None)
    for one, expected in zip(at_once, found(), strict=True):
        assert_allclose(one, expected, rtol=1e-9)
    assert np.isnan(at_once[0]).sum() == 2 + weighted
