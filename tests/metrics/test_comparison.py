"""Two predictions of the same rows, compared era by era."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import t, ttest_1samp
from sklearn.metrics import average_precision_score as average_precision
from sklearn.metrics import (
    f1_score,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
)
from sklearn.metrics import roc_auc_score as roc_auc

from sklearn_era.metrics import EraScoreForecast, compare_predictions, era_scores
from sklearn_era.metrics import era_standard_errors as errors_of
from sklearn_era.metrics._mean_errors import error_of_neighbours


def draw(n_eras=10, n=40, seed=0, gain=0.1):
    rng, eras = np.random.default_rng(seed), np.repeat(np.arange(n_eras), n)
    y, noise = rng.normal(size=eras.size), rng.normal(size=(2, eras.size))
    own = rng.normal(gain, 0.1, n_eras)[eras]
    return y, y + noise[0], y + (1 - own) * noise[1], eras


@pytest.mark.parametrize(("metric", "sign"), [(r2_score, 1), (mean_squared_error, -1)])
def test_groups_are_compared_by_the_paired_t_test(metric, sign):
    y, a, b, eras = draw()
    w = np.random.default_rng(1).uniform(1, 2, y.size)
    of = {"eras": eras, "metric": metric, "sample_weight": w}
    given = of | {"eras": eras.astype(str), "era_order": "unordered"}
    found = compare_predictions(y, a, b, **given)
    of_a, of_b = (era_scores(y, x, **of).scores for x in (a, b))
    expected = sign * (of_b - of_a)
    assert_allclose(found.differences, expected)
    assert_allclose(found.scores.scores["a"], of_a)
    test = ttest_1samp(expected, 0)
    assert found.p_value == pytest.approx(test.pvalue)
    assert_allclose(found.interval(0.9), [*test.confidence_interval(0.9)])
    assert found.standard_error == pytest.approx(np.std(expected, ddof=1) / np.sqrt(10))
    assert (found.is_ordered, found.n_effective) == (False, 10)
    # The next group's, by Student's t.
    scale = np.std(expected, ddof=1) * np.sqrt(1.1)
    above = t.cdf(expected.mean() / scale, 9)
    assert found.probability_next == pytest.approx(above, abs=2e-3)
    alone = EraScoreForecast("none").fit(found.differences, found.standard_errors)
    assert repr(found.pooled) == repr(alone.pooled_)
    # The other way round.
    other = compare_predictions(y, b, a, **given)
    assert_allclose(other.differences, -found.differences)
    assert other.p_value == pytest.approx(found.p_value)
    assert other.probability_next == pytest.approx(1 - found.probability_next)


def test_neighbouring_eras_count_as_fewer():
    rng, eras = np.random.default_rng(3), np.repeat(np.arange(40), 5)
    level = np.zeros(40)
    for era in range(1, 40):
        level[era] = 0.8 * level[era - 1] + rng.normal()
    y, a = np.zeros(200), np.ones(200) * 10
    b = a - level[eras]
    of = {"eras": eras, "metric": mean_absolute_error}
    found = compare_predictions(y, a, b, **of)
    assert_allclose(found.differences, level)
    error, n = error_of_neighbours(level)
    assert_allclose([found.standard_error, found.n_effective], [error, n])
    assert found.is_ordered
    assert n < 15
    groups = compare_predictions(y, a, b, **of, era_order="unordered")
    assert error > 1.5 * groups.standard_error
    assert found.p_value == pytest.approx(2 * t.sf(abs(level.mean()) / error, n - 1))
    assert found.p_value > groups.p_value
    forecast = EraScoreForecast().fit(level, eras=np.arange(40))
    assert_allclose(found.probability_next, forecast.probability_above(0))
    assert_allclose(found.forecast.interval(), forecast.interval())
    assert groups.forecast.related_ == 0


@pytest.mark.parametrize("metric", [roc_auc, log_loss, average_precision])
def test_errors_of_a_difference_are_by_the_same_rows(metric):
    rng, eras = np.random.default_rng(0), np.repeat(["x", "y", "z"], 100)
    y = rng.integers(0, 2, 300)
    a = 1 / (1 + np.exp(-y - rng.normal(size=300)))
    b = np.clip(a + 0.02 * rng.normal(size=300), 0.01, 0.99)
    given = {"metric": metric, "era_order": "unordered"}
    found = compare_predictions(y, a, b, eras=eras, n_resamples=100, **given)
    assert (found.standard_errors > 0).all()
    alone = errors_of(y, a, eras=eras, metric=metric).scores
    assert (found.standard_errors < alone / 2).all()
    without = compare_predictions(y, a, b, eras=eras, **given).standard_errors
    if metric is average_precision:
        assert np.isnan(without).all()
        return
    assert_allclose(without, found.standard_errors)
    if metric is log_loss:
        own = eras == "y"
        losses = [-np.log(np.where(y[own] == 1, p[own], 1 - p[own])) for p in (a, b)]
        gains = losses[0] - losses[1]
        expected = np.std(gains, ddof=1) / np.sqrt(100)
        assert found.standard_errors[1] == pytest.approx(expected)


def test_tables_and_texts():
    y, a, b, eras = draw()
    of = {"eras": eras, "metric": mean_squared_error}
    found = compare_predictions(y, a, b, **of)
    table, names = found.to_frame(), "a b n_samples difference standard_error"
    assert table.columns.tolist() == names.split()
    assert_allclose(table["difference"], table["a"] - table["b"])
    assert table.index.tolist() == [*range(10)]
    lines = repr(found).splitlines()
    low, high = found.interval()
    told = "EraComparison of 10 eras {} by mean_squared_error".format
    assert lines[0] == told("in the order of their labels")
    of_groups = compare_predictions(y, a, b, **of, era_order="unordered")
    assert repr(of_groups).startswith(told("without order"))
    assert f"gain of b: {found.mean:.4g} ± {found.standard_error:.2g}" in lines[1]
    assert f"95 % from {low:.4g} to {high:.4g}, p = {found.p_value:.2g}" in lines[1]
    wins = (found.differences > 0).sum()
    assert f"b is better in {wins} of 10 eras, and in the next one" in lines[2]


def test_eras_without_a_score_are_left_out():
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(5), 20)
    y = rng.integers(0, 2, 100)
    y[eras == 2] = 1
    a, b = rng.random((2, 100))
    told = r"^roc_auc_score is undefined in 1 era\(s\) \(2\): Only one class"
    with pytest.warns(UserWarning, match=told) as caught:
        found = compare_predictions(y, a, b, eras=eras, metric=roc_auc)
    assert [x.filename for x in caught] == [__file__]
    assert np.isnan(found.differences).tolist() == [False, False, True, False, False]
    known = found.differences[[0, 1, 3, 4]]
    assert found.mean == pytest.approx(known.mean())
    assert "of 4 eras" in repr(found)
    told = r"^f1_score is undefined in 1 era\(s\) \(2\): no row is of the positive"
    given = {"eras": eras, "metric": f1_score, "era_order": "unordered"}
    with pytest.warns(UserWarning, match=told) as caught:
        found = compare_predictions(1 - y, a > 0.5, b > 0.5, **given)
    assert len(caught) == 1
    assert np.isnan(found.differences).tolist() == [False, False, True, False, False]


def test_eras_that_do_not_tell_their_error_are_left_out():
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(6), 20)
    y = rng.integers(0, 2, 120)
    y[eras == 2] = np.arange(20) == 0  # a single death
    a, b = rng.random((2, 120))
    for p in (a, b):
        p[eras == 4] = y[eras == 4] + 0.01 * rng.random(20)  # an area of 1 in both
    given = {"metric": roc_auc, "era_order": "unordered"}
    told = "standard_errors is NaN for era 2, .* left out"
    with pytest.warns(UserWarning, match=told):
        found = compare_predictions(y, a, b, eras=eras, **given)
    kept = eras != 2
    without = compare_predictions(y[kept], a[kept], b[kept], eras=eras[kept], **given)
    assert np.flatnonzero(np.isnan(found.differences)).tolist() == [2]
    assert found.differences[4] == 0
    assert (found.mean, found.p_value) == (without.mean, without.p_value)
    assert found.n_effective == 5
    assert found.probability_next == pytest.approx(without.probability_next)
    assert "of 5 eras" in repr(found)
    # Where no era tells its error, all count, as in a series of single rows.
    y, a, b, _ = draw()
    given = {"metric": mean_absolute_error, "eras": np.arange(400)}
    found = compare_predictions(y, a, b, **given)
    assert found.mean == pytest.approx(np.mean(abs(y - a) - abs(y - b)))
    assert np.isnan(found.standard_errors).all()
    assert np.isnan(found.pooled.Q)
    # A single error is as good as none.
    given["eras"] = np.maximum(np.arange(400), 1)
    found = compare_predictions(y, a, b, **given)
    assert np.isfinite(found.standard_errors).sum() == 1
    alone = EraScoreForecast("none").fit(found.differences).pooled_
    assert repr(found.pooled) == repr(alone)


def test_a_metric_gets_its_columns_by_row():
    y, a, b, eras = draw()
    m = np.random.default_rng(2).uniform(1, 3, y.size)

    def scaled_error(y, p, *, scale, power):
        return float(np.mean(abs((y - p) / scale) ** power))

    given = {"eras": eras, "row_params": {"scale": m}, "power": 2}
    found = compare_predictions(y, a, b, metric=scaled_error, n_resamples=50, **given)
    scaled = y / m, a / m, b / m
    expected = compare_predictions(*scaled, eras=eras, metric=mean_squared_error)
    assert_allclose(found.differences, expected.differences)
    ratio = found.standard_errors / expected.standard_errors
    assert np.median(ratio) == pytest.approx(1, abs=0.15)
    scores = era_scores(y, b, metric=scaled_error, **given)
    assert_allclose(scores.scores, expected.scores.scores["b"])
    errors = errors_of(y, b, metric=scaled_error, **given).scores
    other = np.random.default_rng(3).permutation(y.size)
    given |= {"eras": eras[other], "row_params": {"scale": m[other]}}
    again = errors_of(y[other], b[other], metric=scaled_error, **given)
    assert_allclose(again.scores, errors)
    given["row_params"] = {"scale": m[:3]}
    with pytest.raises(ValueError, match="scale has 3 rows, but y_true has 400"):
        era_scores(y, b, metric=scaled_error, **given)


def test_equal_predictions_and_equal_gains():
    y, a, _, eras = draw()
    given = {"eras": eras, "metric": mean_absolute_error}
    same = compare_predictions(y, a, a, **given)
    assert (same.mean, same.standard_error, same.p_value) == (0, 0, 1)
    shifted = compare_predictions(np.zeros(400), a * 0 + 2, a * 0 + 1, **given)
    assert (shifted.mean, shifted.p_value) == (1, 0)
    assert shifted.probability_next == pytest.approx(1)


@pytest.mark.parametrize(("changed", "message"), [
    ({"b": [1.0]}, "b has 1 rows, but y_true has 400; pass the same rows in both"),
    ({"eras": ["x"] * 200 + ["y"] * 200}, "pass era_order='ordered' if eras follow"),
    ({"eras": ["x"] * 400, "era_order": "unordered"}, "scores has 1 known score"),
    ({"metric": max}, "compare_predictions depends on whether greater values of max"),
    ({"eras": {"shop": np.arange(400) % 2, "week": np.arange(400) % 5}},
     "eras has 2 columns: pass one"),
])  # fmt: skip
def test_what_cannot_be_compared_is_refused(changed, message):
    y, a, b, eras = draw()
    given = {"y_true": y, "a": a, "b": b, "eras": eras, "metric": mean_absolute_error}
    with pytest.raises(ValueError, match=message):
        compare_predictions(**given | changed)


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "most"), [(0.0, 0.06), (0.6, 0.13)])
def test_how_often_a_difference_is_found_where_there_is_none(rho, most):
    """At 5 %, in 30 eras of an AR(1) process; 14 and 34 % as if independent."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(2000):
        values = rng.normal(size=30)
        for era in range(1, 30):
            values[era] *= np.sqrt(1 - rho**2)
            values[era] += rho * values[era - 1]
        error, n = error_of_neighbours(values)
        found += 2 * t.sf(abs(values.mean()) / error, max(1, n - 1)) < 0.05
    assert found / 2000 < most
