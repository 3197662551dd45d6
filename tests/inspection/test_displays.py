"""The displays: what they draw, where, and what they refuse to."""

import functools
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.linear_model import LinearRegression
from sklearn.metrics import (
    average_precision_score,
    log_loss,
    make_scorer,
    mean_absolute_error,
    roc_auc_score,
)

from helpers.data import make_mixed_frame
from sklearn_era import inspection
from sklearn_era._optional import MissingPackageError
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.inspection import EraScoreDisplay, SplitAgreementDisplay
from sklearn_era.metrics import EraScoreForecast, make_era_scorer


@functools.cache
def fit_data():
    """A model, X, y, and eras of which one differs: not to be changed."""
    X, week = np.random.default_rng(0).normal(size=(200, 4)), np.arange(200) % 4
    y = X[:, 0] * X[:, 1] + X[:, 2] * np.where(week == 0, 2, -1)
    model = Regressor(max_iter=4, min_samples_leaf=5)
    return model.fit(X, y), X, y, np.array(["w1", "w2", "w3", "w4"])[week]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_scores_of_an_estimator_by_era(ax):
    model, X, y, eras = fit_data()
    display = EraScoreDisplay.from_estimator(model, X, y, eras=eras, ax=ax)
    expected = [model.score(X[eras == e], y[eras == e]) for e in np.unique(eras)]
    assert_allclose(display.scores, expected)
    assert_array_equal(display.era_labels, ["w1", "w2", "w3", "w4"])
    assert_allclose([bar.get_height() for bar in display.bars_], expected)
    assert display.worst == np.argmin(expected) == 0
    assert_allclose(display.mean_line_.get_ydata(), np.mean(expected))
    colors = [bar.get_facecolor() for bar in display.bars_]
    assert colors[0] != colors[1] == colors[2] == colors[3]
    assert {"worst: w1", f"mean: {display.mean:.4g}"} <= {*legend(ax)}
    assert (display.ax_, display.figure_) == (ax, ax.figure)


def test_scoring_and_weights_reach_the_scorer(ax):
    X, y, eras = make_mixed_frame()
    model, weight = Regressor(max_iter=4).fit(X, y), np.arange(400.0)
    of = {"eras": eras, "sample_weight": weight, "ax": ax}
    scoring, draw = "neg_mean_squared_error", EraScoreDisplay.from_estimator
    display = draw(model, X, pd.Series(y), scoring=scoring, **of)
    error = (model.predict(X) - y) ** 2
    rows = [eras == era for era in np.unique(eras)]
    expected = [-np.average(error[own], weights=weight[own]) for own in rows]
    assert_allclose(display.scores, expected)
    assert ax.get_ylabel() == scoring


def test_the_forecast_is_drawn_after_the_last_era(ax):
    forecast = EraScoreForecast().fit(SCORES := [0.3, 0.5, 0.4])
    display = EraScoreDisplay(scores=SCORES, era_labels=["a", "b", "c"])
    display.plot(ax, forecast=forecast)
    assert_allclose(display.forecast_.get_xydata(), [[3, forecast.mean_]])
    drawn = [lines.get_segments()[0] for lines in ax.collections]
    for (low, high), level in zip(drawn, (0.95, 0.8), strict=True):
        assert_allclose([low, high], [[3, x] for x in forecast.interval(level)])
    low, high = forecast.interval()
    assert f"next: {forecast.mean_:.4g}, 80 % {low:.4g} to {high:.4g}" in legend(ax)
    assert display.plot(ax).forecast_ is None


@pytest.mark.parametrize("greater_is_better", [True, False])
def test_scores_of_predictions_by_era(ax, greater_is_better):
    y_true = np.arange(6.0)
    y_pred = y_true + np.repeat([1.0, 3.0, 2.0], 2)
    days = pd.date_range("2024-01-05", periods=3, freq="7D").to_numpy().repeat(2)
    options = {"eras": days, "metric": mean_absolute_error, "ax": ax}
    of = {"greater_is_better": greater_is_better, "kind": "line"} | options
    display = EraScoreDisplay.from_predictions(y_true, y_pred, **of)
    assert (display.scores.tolist(), display.mean) == ([1, 3, 2], 2)
    assert display.worst == (0 if greater_is_better else 1)
    assert display.line_.get_ydata().tolist() == [1, 3, 2]
    assert display.bars_ is None
    assert ax.get_ylabel() == "mean absolute error"
    ticks = [text.get_text() for text in ax.get_xticklabels()]
    assert ticks == ["2024-01-05", "2024-01-12", "2024-01-19"]
    bars = EraScoreDisplay(scores=[3, 1, 2], era_labels=days[::2]).plot(ax).bars_
    assert bars[1].get_label() == "worst: 2024-01-12"
    y_pred[0] += 3
    options["sample_weight"] = [0, 1, 1, 1, 1, 1]
    weighted = EraScoreDisplay.from_predictions(y_true, y_pred, **options)
    assert weighted.scores.tolist() == [1, 3, 2]


@pytest.mark.parametrize("metric", [roc_auc_score, average_precision_score])
def test_eras_of_one_class_are_named_once(ax, metric):
    y, p, eras = np.arange(40) % 4 == 0, np.arange(40) % 7, np.repeat([*"abcd"], 10)
    y[(eras == "b") | (eras == "d")] = False
    model = DummyClassifier(strategy="prior").fit(p[:, np.newaxis], y)
    of = {"eras": eras, "ax": ax}
    scoring = make_scorer(metric, response_method="predict_proba")
    for draw in (
        functools.partial(EraScoreDisplay.from_predictions, y, p, metric=metric),
        functools.partial(
            EraScoreDisplay.from_estimator, model, p[:, None], y, scoring=scoring
        ),
    ):
        told = r"undefined in 2 era\(s\) \(b, d\): "
        with pytest.warns(UndefinedMetricWarning, match=told) as caught:
            display = draw(**of)
        assert [x.filename for x in caught] == [__file__]
        assert np.isnan(display.scores).tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    "scoring",
    [
        "neg_log_loss",
        make_scorer(log_loss, greater_is_better=False, response_method="predict_proba"),
        make_era_scorer(log_loss, response_method=["predict_proba"]),
    ],
    ids=["name", "scorer", "era scorer"],
)
def test_probabilities_have_scores_in_eras_of_one_class(ax, scoring):
    _, X, y, eras = fit_data()
    y = np.where((y > 0) & (eras != "w2"), "yes", "no")
    model = Classifier(max_iter=4).fit(X, y)
    display = EraScoreDisplay.from_estimator(
        model, X, y, eras=eras, scoring=scoring, ax=ax
    )
    p = model.predict_proba(X)[np.arange(y.size), (y == "yes").astype(int)]
    expected = [np.log(p[eras == era]).mean() for era in np.unique(eras)]
    assert_allclose(display.scores, expected)


@pytest.mark.parametrize("undefined", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["bar", "line"])
def test_eras_without_a_score_are_left_out_and_counted(ax, undefined, kind):
    display = EraScoreDisplay(scores=[undefined, 3, 1], era_labels=["a", "b", "c"])
    assert display.mean == 2
    assert display.plot(ax, kind=kind).worst == 2
    assert "mean of 2 of 3 eras: 2" in legend(ax)
    assert np.isfinite(ax.get_ylim()).all()


def test_an_era_scorer_scores_each_era_by_its_metric(ax):
    model, X, y, eras = fit_data()
    draw, of = EraScoreDisplay.from_estimator, {"eras": eras, "ax": ax}
    error = {"aggregation": "worst", "greater_is_better": False}
    scorer = make_era_scorer(mean_absolute_error, **error)
    display = draw(model, X, y, scoring=scorer, **of)
    error = np.abs(y - model.predict(X))
    expected = [-error[eras == era].mean() for era in np.unique(eras)]
    assert_allclose(display.scores, expected)
    assert ax.get_ylabel() == "minus mean absolute error"
    scorer = make_era_scorer(roc_auc_score, response_method="predict_proba")
    y = np.where(y > 0, "b", "a")
    classifier = Classifier(max_iter=4).fit(X, y)
    p = classifier.predict_proba(X)[:, 1]
    scores = [roc_auc_score(y[eras == e], p[eras == e]) for e in np.unique(eras)]
    assert_allclose(draw(classifier, X, y, scoring=scorer, **of).scores, scores)
    assert ax.get_ylabel() == "roc auc score"


def test_displays_make_figures_and_take_a_style(pyplot):
    display = EraScoreDisplay(scores=[1, 2], era_labels=["a", "b"], score_name="R²")
    worst, other = display.plot().bars_
    assert pyplot.get_fignums() == [display.figure_.number]
    assert display.ax_.get_ylabel() == "R²"
    assert worst.get_facecolor() != other.get_facecolor()
    assert worst.get_edgecolor() == other.get_edgecolor()
    assert worst.get_linewidth() == other.get_linewidth()
    assert display.plot(color="green") is display
    assert_allclose(display.bars_[1].get_facecolor(), [0, 128 / 255, 0, 1])
    model, X, y, eras = fit_data()
    display = SplitAgreementDisplay.from_estimator(model, X, y, eras=eras, color="red")
    assert pyplot.get_fignums()[-1] == display.figure_.number == 3
    assert_array_equal(display.points_.get_facecolor()[0][:3], [1, 0, 0])
    assert display.plot() is display


def by_era(estimator, X, y, eras):
    return 1.0


def test_scores_refuse(ax):
    model, X, y, eras = fit_data()
    with pytest.raises(NotFittedError):
        EraScoreDisplay.from_estimator(Regressor(), X, y, eras=eras)
    bad = np.where(eras == "w3", np.nan, y)
    of_estimator, of_predictions = {"estimator": model, "X": X, "y": y}, {"y_true": y}
    for given, changed, message in (
        (of_estimator, {"eras": eras[1:]}, "eras has 199 labels, but y_true has 200"),
        (of_estimator, {"y": y[1:]}, "inconsistent numbers of samples"),
        (of_estimator, {"kind": "pie"}, "kind must be 'bar', 'line' or .*; got 'pie'"),
        (of_estimator, {"scoring": ["r2", "r2"]}, "scoring must be one.*'r2', 'r2'"),
        (of_estimator, {"scoring": by_era}, "scoring=.*by_era.* asks for eras"),
        (of_predictions, {"y_pred": y, "metric": "r2"}, "one function, not 'r2'"),
        (of_predictions, {"y_pred": y[1:]}, "y_pred has 199 rows, but y_true has 200"),
        (of_predictions, {"y_pred": bad}, "failed in era w3, of 50 rows.*contains NaN"),
    ):
        draw = EraScoreDisplay.from_estimator
        if "y_true" in given:
            draw = EraScoreDisplay.from_predictions
            given = given | {"metric": mean_absolute_error}
        with pytest.raises(ValueError, match=message):
            draw(**given | {"eras": eras, "ax": ax} | changed)
    for scores, message in (
        ([1], r"shapes \(1,\) and \(2,\)"),
        ([np.nan, np.nan], "none of the 2 eras has a score"),
    ):
        with pytest.raises(ValueError, match=message):
            EraScoreDisplay(scores=scores, era_labels=["a", "b"])


def test_bubbles_hold_the_gain_of_their_depth_and_agreement(ax):
    model, X, y, eras = fit_data()
    statistics = inspection.split_statistics(model, X, y, eras=eras)
    display = SplitAgreementDisplay.from_estimator(model, X, y, eras=eras, ax=ax)
    assert (display.ax_, display.figure_) == (ax, ax.figure)
    gain, agreement = statistics.gain, statistics.direction_agreement
    assert_allclose(display.gain_share, gain / gain.sum())
    areas = display.points_.get_sizes()
    places = np.asarray(display.points_.get_offsets())
    at = [(statistics.depth == x) & (agreement == y) for x, y in places]
    expected = np.array([gain[own].sum() for own in at])
    large = areas > areas.min()
    assert large.sum() > 2
    assert_allclose(areas[large] / areas.max(), expected[large] / expected.max())
    for depth, mean in zip(*display.mean_line_.get_data(), strict=True):
        at = statistics.depth == depth
        assert_allclose(mean, np.average(agreement[at], weights=gain[at]))


def test_agreement_refuses(ax):
    model, X, y, eras = fit_data()
    table = inspection.split_statistics(model, X, y, eras=eras, as_frame=True)
    few = inspection.split_statistics(model, X[:1], y[:1], eras=eras[:1])
    for statistics, message in (
        (table.drop(columns=["depth", "gain"]), "statistics has no column depth, gain"),
        (few, "no split has a gain on these rows"),
        (table[:0], "The model has no split"),
    ):
        with pytest.raises(ValueError, match=message):
            SplitAgreementDisplay(statistics).plot(ax)
    with pytest.raises(ValueError, match="estimator must be a HistGradientBoosting"):
        SplitAgreementDisplay.from_estimator(LinearRegression(), X, y, eras=eras, ax=ax)


def test_matplotlib_is_asked_for_by_name(monkeypatch):
    model, X, y, eras = fit_data()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (
        lambda: EraScoreDisplay(scores=[1], era_labels=[0]).plot(),
        lambda: SplitAgreementDisplay.from_estimator(model, X, y, eras=eras),
    ):
        with pytest.raises(MissingPackageError, match=r"sklearn-era\[plot\]"):
            draw()
