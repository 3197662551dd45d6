"""Error bars, forest plots and legends of scores by era, and figures of searches."""

import itertools
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.metrics import f1_score, mean_absolute_error, roc_auc_score

from helpers.grids import on_grid
from sklearn_era.calibration import era_calibration
from sklearn_era.inspection import EraCalibrationDisplay, EraScoreDisplay
from sklearn_era.metrics import (
    EraScoreForecast,
    EraScores,
    compare_predictions,
    era_scores,
)
from sklearn_era.metrics import era_standard_errors as errors_of
from sklearn_era.model_selection import EraSearchDisplay

AREAS, ERRORS = np.array([0.74, 0.71, 0.76, 0.73]), np.array([0.02, 0.01, 0.02, 0.03])
NAMES = ["north", "east", "south", "west"]
GIVEN = {"era_labels": NAMES, "standard_errors": ERRORS}


def ends_of(errorbar, axis):
    return [segment[:, axis] for segment in errorbar.lines[2][0].get_segments()]


@pytest.mark.parametrize(("kind", "axis"), [("bar", 1), ("line", 1), ("forest", 0)])
def test_errors_are_drawn_on_both_sides(ax, kind, axis):
    display = EraScoreDisplay(scores=AREAS, **GIVEN).plot(ax, kind=kind)
    half = norm.ppf(0.975) * ERRORS
    expected = np.column_stack([AREAS - half, AREAS + half])
    assert_allclose(ends_of(display.errorbar_, axis), expected)
    eras = np.arange(4)
    known = EraScores(eras, AREAS, eras, directions={"area": True})
    plain = EraScoreDisplay(scores=known, era_labels=eras)
    assert_allclose(plain.scores, AREAS)
    assert plain.plot(ax, kind=kind).errorbar_ is None
    with pytest.raises(ValueError, match=r"\(4,\) and \(4,\) and \(3,\)"):
        EraScoreDisplay(scores=AREAS, **GIVEN | {"standard_errors": ERRORS[1:]})
    several = EraScores(eras, {"a": AREAS, "b": AREAS}, eras, directions={})
    for changed in ({"scores": several}, {"standard_errors": several}):
        with pytest.raises(ValueError, match=r" of several metrics, \['a', 'b'\]"):
            EraScoreDisplay(**{"scores": AREAS} | GIVEN | changed)


def test_predictions_have_the_errors_that_are_known(ax):
    rng, eras = np.random.default_rng(0), np.repeat(NAMES, 50)
    y, p = rng.integers(0, 2, 200), rng.random(200)
    given = {"eras": eras, "metric": roc_auc_score}
    display = EraScoreDisplay.from_predictions(y, p, ax=ax, **given)
    errors = errors_of(y, p, **given).scores
    assert_allclose(display.standard_errors, errors)
    assert len(ends_of(display.errorbar_, 1)) == 4
    given, hits = {"eras": eras, "metric": partial(f1_score, pos_label=1)}, p > 0.5
    given["ax"] = ax
    display = EraScoreDisplay.from_predictions(y, hits, **given)
    assert display.score_name == "f1 score"
    assert display.standard_errors is display.errorbar_ is None
    display = EraScoreDisplay.from_predictions(y, hits, n_resamples=20, **given)
    assert (display.standard_errors > 0).all()


@on_grid(
    "shape layout kind", [(6, 3), (9, 4), (4, 3)], ["constrained", None],
    ["bar", "line"], every=2,
)  # fmt: skip
def test_the_legend_hides_nothing(pyplot, kind, shape, layout):
    figure, axes = pyplot.subplots(1, 2, sharey=True, figsize=shape, layout=layout)
    forecast = EraScoreForecast("none").fit(AREAS, ERRORS)
    for ax, scores in zip(axes, (AREAS, AREAS + 0.1), strict=True):
        EraScoreDisplay(scores=scores, **GIVEN).plot(ax, kind=kind, forecast=forecast)
    figure.canvas.draw()
    low, high = axes[0].get_ylim()
    assert low > 0.4  # differences are seen
    assert high > (AREAS + 0.1 + 2 * ERRORS).max() - 0.001
    legend = axes[1].get_legend().get_window_extent()
    top = (AREAS + 0.1 + norm.ppf(0.975) * ERRORS).max()
    slack = 0.1 * axes[1].get_window_extent().height if layout else 20
    assert axes[1].transData.transform((0, top))[1] < legend.y0 + slack
    if layout and shape[0] > 4:  # else the text alone is wider
        assert legend.x0 >= axes[1].get_window_extent().x0 - 40


def test_bars_begin_at_0_where_scores_are_near_it(ax):
    EraScoreDisplay(scores=[0.2, 0.5, 0.9], era_labels=[1, 2, 3]).plot(ax)
    assert ax.get_ylim()[0] == 0
    ax.clear()
    EraScoreDisplay(scores=[-0.2, 0.5], era_labels=[1, 2]).plot(ax)
    assert ax.get_ylim()[0] < -0.2
    ax.clear()
    EraScoreDisplay(scores=[-0.7, -0.75], era_labels=[1, 2]).plot(ax)
    low, high = ax.get_ylim()
    assert -0.8 < low < -0.75 < -0.7 < high < -0.6  # bars hang from 0


def test_a_forest_plot_has_rows_the_pooled_mean_and_the_next_era(ax):
    eras = np.repeat(NAMES, 60)
    y, p = np.random.default_rng(0).normal(size=(2, 240))
    given = {"eras": eras, "metric": mean_absolute_error}
    scores, errors = era_scores(y, p, **given), errors_of(y, p, **given)
    forecast = EraScoreForecast("none").fit(scores, errors)
    display = EraScoreDisplay.from_forecast(forecast, score_name="MAE", ax=ax)
    texts = [x.get_text() for x in ax.get_yticklabels()]
    assert texts == ["east", "north", "south", "west", "pooled", "next era, measured"]
    assert_allclose(display.line_.get_xdata(), scores.scores)
    assert_allclose(display.line_.get_ydata(), np.arange(4))
    assert_allclose(display.forecast_.get_xydata(), [[forecast.mean_, 5]])
    diamond, band = ax.patches
    low, high = forecast.interval(0.95, of="mean")
    corners = diamond.get_xy()
    assert_allclose([corners[:, 0].min(), corners[:, 0].max()], [low, high])
    assert_allclose(corners[1, 0], forecast.mean_, rtol=1e-4)
    span = band.get_x(), band.get_x() + band.get_width()
    assert_allclose(span, forecast.interval(0.95))
    [right] = ax.child_axes
    printed = [x.get_text().replace("\u2007", "") for x in right.get_yticklabels()]
    half = norm.ppf(0.975) * errors.scores[0]
    ends = scores.scores[0] + half * np.array([-1, 1])
    assert printed[0] == "60  {:.2f} [{:.2f}, {:.2f}]".format(scores.scores[0], *ends)
    ends = forecast.interval(0.95)
    assert printed[5] == "  {:.2f} [{:.2f}, {:.2f}]".format(forecast.mean_, *ends)
    assert ax.yaxis_inverted()
    assert ax.get_xlabel() == "MAE"
    assert len(ends_of(display.errorbar_, 0)) == 4
    ax.clear()
    EraScoreDisplay.from_forecast(forecast, ax=ax, numbers=False, next_error=0)
    assert not ax.child_axes
    assert ax.get_yticklabels()[-1].get_text() == "next era, true score"
    band = ax.patches[1]
    span = band.get_x(), band.get_x() + band.get_width()
    assert_allclose(span, forecast.interval(0.95, standard_error=0))
    ax.clear()
    without = EraScoreForecast("none").fit(scores)
    assert EraScoreDisplay.from_forecast(without, ax=ax).errorbar_ is None
    pairs = {"day": [1, 1, 2, 2], "shop": ["a", "b", "a", "b"]}
    by_pair = EraScoreForecast().fit([1.0, 2.0, 4.0, 3.0], eras=pairs)
    with pytest.raises(ValueError, match="forecast is of two columns of labels"):
        EraScoreDisplay.from_forecast(by_pair)


@pytest.mark.parametrize("errors", [None, [np.nan, 0.05, 0.04, np.nan]])
def test_numbers_of_a_forest_plot_are_in_columns(ax, errors):
    """Also in rows without a score or an interval, and below zero."""
    scores, n_samples = [np.nan, -0.75, 0.74, 0.1], [100, 1000, 99, 12345]
    given = {"standard_errors": errors, "n_samples": n_samples, "era_labels": NAMES}
    EraScoreDisplay(scores=scores, **given).plot(ax, kind="forest")
    canvas = pytest.importorskip("matplotlib.backends.backend_agg").FigureCanvasAgg
    measure = canvas(ax.figure).get_renderer().get_text_width_height_descent
    [right] = ax.child_axes
    [header] = [x for x in ax.texts if "score" in x.get_text()]
    widths, points = [], []
    texts = [f"{n:,}" for n in n_samples]
    for label, n in zip([*right.get_yticklabels(), header], [*texts, "n"], strict=True):
        text, font = label.get_text(), label.get_fontproperties()
        widths.append(measure(text[: text.index(n) + len(n)], font, False)[0])
        if "." in text:
            points.append(measure(text[: text.index(".")], font, False)[0])
    assert_allclose(widths, widths[0], atol=1)
    assert_allclose(points, points[0], atol=1)
    assert len(points) == 3


def test_intervals_of_a_forest_plot_are_within_the_bounds_of_its_forecast(ax):
    scores, errors = np.array([0.7, 0.8, 0.9, 0.95]), np.array([0.05, 0.04, 0.1, 0.2])
    forecast = EraScoreForecast("none", bounds=(0, 1)).fit(scores, errors)
    display = EraScoreDisplay.from_forecast(forecast, ax=ax)
    ends = np.array([x[:, 0] for x in display.errorbar_[2][0].get_segments()])
    odds = np.log(scores / (1 - scores))
    half = norm.ppf(0.975) * errors / (scores * (1 - scores))
    for side, expected in zip(ends.T, (odds - half, odds + half), strict=True):
        assert_allclose(side, 1 / (1 + np.exp(-expected)))


@pytest.mark.parametrize("kind", ["line", "bar", "forest"])
def test_a_comparison_is_drawn_around_0(ax, kind):
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(8), 50)
    y, a, b = rng.normal(size=(3, 400))
    found = compare_predictions(y, a, b / 2, eras=eras, metric=mean_absolute_error)
    display = EraScoreDisplay.from_comparison(found, ax=ax, kind=kind)
    assert_allclose(display.scores, found.differences)
    assert_allclose(display.standard_errors, found.standard_errors)
    band, along = ax.patches[-1], kind == "forest"
    low = band.get_x() if along else band.get_y()
    size = band.get_width() if along else band.get_height()
    assert_allclose([low, low + size], found.interval())
    name = ax.get_xlabel() if along else ax.get_ylabel()
    assert name == "gain of b, mean absolute error"


@pytest.mark.parametrize("shape", [(7, 2.4), (6.4, 4.8)])
@pytest.mark.parametrize("names", [
    [f"member_{i}" for i in range(12)],
    [f"criterion=Directional(rule='every_era', alpha={i}), leaves=4" for i in range(5)],
    ["a"],
])  # fmt: skip
def test_labels_of_candidates_do_not_overlap(pyplot, names, shape):
    figure, ax = pyplot.subplots(figsize=shape, layout="constrained")
    rng = np.random.default_rng(0)
    means, errors = rng.normal(0, 0.002, len(names)), np.full(len(names), 0.001)
    EraSearchDisplay(means=means, errors=errors, names=names).plot(ax)
    figure.canvas.draw()
    rows = [x.get_window_extent() for x in ax.get_yticklabels()]
    assert len(rows) == len(names)
    for upper, lower in itertools.pairwise(rows):
        assert upper.y0 > lower.y1 - 1
    ticks = [x for x in ax.get_xticklabels() if ax.get_xlim()[0] <= x.get_position()[0]]
    ticks = [x for x in ticks if x.get_position()[0] <= ax.get_xlim()[1]]
    columns = [x.get_window_extent() for x in ticks]
    for left, right in itertools.pairwise(columns):
        assert left.x1 < right.x0
    label = ax.xaxis.label.get_window_extent()
    assert label.x0 >= 0
    assert label.x1 <= figure.bbox.width
    assert label.y0 >= 0
    assert ax.get_window_extent().width > 0.4 * figure.bbox.width


@on_grid(
    "n_eras n_letters kind", [2, 13, 40, 1000], [1, 11, 25], ["bar", "line"], every=4
)
def test_up_to_forty_eras_all_have_names(n_eras, n_letters, kind):
    names = [str(era).rjust(n_letters, "W") for era in range(n_eras)]
    display = EraScoreDisplay(scores=np.arange(n_eras), era_labels=names)
    display.plot(kind=kind).figure_.canvas.draw()
    labels = display.ax_.get_xticklabels()
    if n_eras <= 40:
        assert [x.get_text() for x in labels] == names
    else:
        assert 6 <= len(labels) <= 12
    boxes = [x.get_window_extent() for x in labels]
    assert all(box.y0 >= 0 for box in boxes)  # in the figure, however long
    for left, right in itertools.pairwise(boxes):
        assert left.x1 < right.x0 + 1


@pytest.mark.parametrize("kind", ["bar", "line", "forest"])
def test_a_dollar_in_a_name_is_no_formula(kind):
    display = EraScoreDisplay(scores=[1.0, 2.0], era_labels=[r"a $\x$", r"b $\y$"])
    display.plot(kind=kind).figure_.canvas.draw()
    for label in display.ax_.get_xticklabels() + display.ax_.get_yticklabels():
        assert not (label.get_parse_math() and "$" in label.get_text())


@pytest.mark.parametrize("kind", ["bar", "line"])
def test_formulas_of_the_user_stay_in_legends(kind):
    display = EraScoreDisplay(scores=[1.0, 2.0], era_labels=[r"$\x$", "b"])
    display.plot(kind=kind, label=r"$\rho$")
    legends = display.ax_.get_legend(), display.ax_.legend()
    display.figure_.canvas.draw()  # which reads formulas
    for text in (text for legend in legends for text in legend.get_texts()):
        assert text.get_parse_math()


def test_a_new_forest_plot_is_as_high_as_its_rows(pyplot, ax):
    names = [f"hospital {i}" for i in range(40)]
    display = EraScoreDisplay(scores=np.arange(40), era_labels=names)
    labels = display.plot(kind="forest").ax_.get_yticklabels()
    assert [x.get_text() for x in labels] == names
    assert labels[0].get_fontsize() > 8
    # Of too many rows, some are labelled.
    display = EraScoreDisplay(scores=np.arange(500), era_labels=np.arange(500.0))
    display.plot(ax, kind="forest")
    assert 20 < len(ax.get_yticks()) < 100


@pytest.mark.parametrize(("options", "message"), [
    ({"numbers": True}, "numbers are for kind='forest', and kind is 'bar'"),
    ({"next_error": 0}, "next_error is for a forecast"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_refused(ax, options, message):
    display = EraScoreDisplay(scores=AREAS, era_labels=NAMES)
    with pytest.raises(ValueError, match=message):
        display.plot(ax, **options)


def test_calibration_is_drawn_as_forest_plots(pyplot):
    rng, eras = np.random.default_rng(0), np.repeat(NAMES, 200)
    p = rng.uniform(size=800)
    y = (rng.uniform(size=800) < p).astype(int)
    y[eras == "west"] = 0  # which tells no error
    found = era_calibration(y, p, eras=eras)
    values = ("in_the_large", "slope", "ratio")
    drawn = EraCalibrationDisplay.from_predictions(y, p, eras=eras, values=values)
    assert [*drawn.displays_] == [*values]
    for value, exact in zip(values, (0, 1, 1), strict=True):
        display, errors = drawn.displays_[value], found.scores[f"{value}_error"]
        assert_allclose(display.scores, found.scores[value])
        assert_allclose(display.standard_errors, errors)
        assert display.ax_.lines[-1].get_xdata()[0] == exact
        known = np.isfinite(errors)
        bounds = (0, None) if value == "ratio" else None
        kept = found.scores[value][known], errors[known]
        forecast = EraScoreForecast("none", bounds=bounds).fit(*kept)
        assert_allclose(display.forecast_.get_xdata(), [forecast.mean_])
    with pytest.raises(ValueError, match="values has 'level': pass some of"):
        drawn.plot(values=["level"])
    with pytest.raises(ValueError, match="axes are 1, and values 2"):
        drawn.plot(pyplot.subplots()[1])
