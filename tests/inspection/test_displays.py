"""The displays: what they draw, where, and what they refuse to."""

import itertools
import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, roc_auc_score

from helpers.inspection_display import (
    N_SAMPLES,
    PARAMETERS,
    make_classifier,
    make_data,
    make_frame,
    make_regressor,
)
from sklearn_era._optional import MissingPackageError
from sklearn_era.ensemble import (
    HistGradientBoostingRegressor,
)
from sklearn_era.inspection import (
    DecisionSurfaceDisplay,
    EraScoreDisplay,
    SplitAgreementDisplay,
    split_statistics,
)
from sklearn_era.metrics import make_era_scorer


@pytest.fixture(autouse=True)
def pyplot():
    """A backend without windows, and no figure left behind."""
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture
def ax():
    return Figure().subplots()


# Scores of eras.


def test_scores_of_an_estimator_by_era(ax):
    X, y, eras = make_data()
    model = make_regressor(X, y)
    display = EraScoreDisplay.from_estimator(model, X, y, eras=eras, ax=ax)
    expected = [model.score(X[eras == e], y[eras == e]) for e in np.unique(eras)]
    assert_allclose(display.scores, expected)
    assert_array_equal(display.era_labels, ["w1", "w2", "w3", "w4"])
    assert_allclose([bar.get_height() for bar in display.bars_], expected)
    assert display.worst == np.argmin(expected) == 0
    assert_allclose(display.mean_line_.get_ydata(), np.mean(expected))
    colors = [bar.get_facecolor() for bar in display.bars_]
    assert colors[0] != colors[1] == colors[2] == colors[3]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "worst: w1" in texts
    assert any(text.startswith("mean: ") for text in texts)
    assert (display.ax_, display.figure_) == (ax, ax.figure)


def test_scoring_and_weights_reach_the_scorer(ax):
    frame, y = make_frame()
    eras = np.arange(N_SAMPLES) % 3
    weight = np.arange(N_SAMPLES, dtype=float)
    model = make_regressor(frame, y)
    display = EraScoreDisplay.from_estimator(
        model,
        frame,
        pd.Series(y),
        eras=eras,
        scoring="neg_mean_squared_error",
        sample_weight=weight,
        ax=ax,
    )
    error = (model.predict(frame) - y) ** 2
    expected = [
        -np.average(error[eras == e], weights=weight[eras == e]) for e in range(3)
    ]
    assert_allclose(display.scores, expected)
    assert ax.get_ylabel() == "neg_mean_squared_error"


@pytest.mark.parametrize("greater_is_better", [True, False])
def test_scores_of_predictions_by_era(ax, greater_is_better):
    y_true = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    y_pred = y_true + np.repeat([1.0, 3.0, 2.0], 2)
    days = np.datetime64("2024-01-01") + np.array([0, 0, 1, 1, 2, 2], dtype="m8[D]")
    display = EraScoreDisplay.from_predictions(
        y_true,
        y_pred,
        eras=days,
        metric=mean_absolute_error,
        greater_is_better=greater_is_better,
        kind="line",
        ax=ax,
    )
    assert_allclose(display.scores, [1, 3, 2])
    assert display.mean == 2
    assert display.worst == (0 if greater_is_better else 1)
    assert_allclose(display.line_.get_ydata(), [1, 3, 2])
    assert display.bars_ is None
    assert ax.get_ylabel() == "mean absolute error"
    ticks = [text.get_text() for text in ax.get_xticklabels()]
    assert ticks == ["2024-01-01", "2024-01-02", "2024-01-03"]
    weighted = EraScoreDisplay.from_predictions(
        y_true,
        y_pred + np.array([3, 0, 0, 0, 0, 0]),
        eras=days,
        metric=mean_absolute_error,
        sample_weight=[0, 1, 1, 1, 1, 1],
        ax=ax,
    )
    assert_allclose(weighted.scores, [1, 3, 2])


@pytest.mark.parametrize("undefined", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["bar", "line"])
def test_eras_without_a_score_are_left_out_and_counted(ax, undefined, kind):
    display = EraScoreDisplay(scores=[undefined, 3, 1], era_labels=["a", "b", "c"])
    assert display.mean == 2
    assert display.plot(ax, kind=kind).worst == 2
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "mean of 2 of 3 eras: 2" in texts
    assert np.isfinite(ax.get_ylim()).all()


def test_an_era_scorer_scores_each_era_by_its_metric(ax):
    X, y, eras = make_data()
    model = make_regressor(X, y)
    parameters = {"aggregation": "worst", "greater_is_better": False}
    scorer = make_era_scorer(mean_absolute_error, **parameters)
    display = EraScoreDisplay.from_estimator(
        model, X, y, eras=eras, scoring=scorer, ax=ax
    )
    error = np.abs(y - model.predict(X))
    expected = [-error[eras == era].mean() for era in np.unique(eras)]
    assert_allclose(display.scores, expected)
    assert ax.get_ylabel() == "minus mean absolute error"
    display = EraScoreDisplay.from_estimator(
        make_classifier(X, y, [0]),
        X,
        np.where(y > 0, "b", "a"),
        eras=eras,
        scoring=make_era_scorer(roc_auc_score, response_method="predict_proba"),
        ax=ax,
    )
    assert np.all(display.scores > 0.5)
    assert ax.get_ylabel() == "roc auc score"


def test_the_worst_bar_is_as_thick_as_the_others(ax):
    display = EraScoreDisplay(scores=[1, 2], era_labels=["a", "b"]).plot(ax)
    worst, other = display.bars_
    assert worst.get_facecolor() != other.get_facecolor()
    assert worst.get_edgecolor() == other.get_edgecolor()
    assert worst.get_linewidth() == other.get_linewidth()


@pytest.mark.parametrize("n_eras", [2, 12, 40, 500])
@pytest.mark.parametrize("length", [1, 4, 10, 25])
def test_labels_of_eras_do_not_overlap(pyplot, n_eras, length):
    labels = [str(era).rjust(length, "W") for era in range(n_eras)]
    display = EraScoreDisplay(scores=np.ones(n_eras), era_labels=labels).plot()
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.ax_.get_xticklabels()]
    assert min(6, n_eras) <= len(boxes) <= 12
    for left, right in itertools.pairwise(boxes):
        assert left.x1 < right.x0
    assert all(box.y0 >= 0 for box in boxes)  # in the figure, however long


def test_dates_are_written_with_the_digits_they_need(ax):
    days = pd.date_range("2024-01-05", periods=3, freq="7D").to_numpy()
    display = EraScoreDisplay(scores=[3, 1, 2], era_labels=days).plot(ax)
    ticks = [text.get_text() for text in ax.get_xticklabels()]
    assert ticks == ["2024-01-05", "2024-01-12", "2024-01-19"]
    assert display.bars_[1].get_label() == "worst: 2024-01-12"


def test_a_thousand_eras_have_a_dozen_ticks(ax):
    display = EraScoreDisplay(scores=np.arange(1000), era_labels=np.arange(1000))
    display.plot(ax, kind="line")
    assert 6 <= len(ax.get_xticks()) <= 12


def test_scores_make_a_figure_and_take_a_style(pyplot):
    display = EraScoreDisplay(scores=[1, 2], era_labels=["a", "b"], score_name="R²")
    assert display.plot(color="green") is display
    assert pyplot.get_fignums() == [display.figure_.number]
    assert display.ax_.get_ylabel() == "R²"
    assert_allclose(display.bars_[1].get_facecolor(), [0, 128 / 255, 0, 1])


def test_scores_refuse(ax):
    X, y, eras = make_data()
    model = make_regressor(X, y)
    draw = EraScoreDisplay.from_estimator
    with pytest.raises(NotFittedError):
        draw(HistGradientBoostingRegressor(), X, y, eras=eras, ax=ax)
    with pytest.raises(ValueError, match="eras has 199 labels, but y_true has 200"):
        draw(model, X, y, eras=eras[1:], ax=ax)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        draw(model, X, y[1:], eras=eras, ax=ax)
    with pytest.raises(ValueError, match="kind must be 'bar' or 'line'; got 'pie'"):
        draw(model, X, y, eras=eras, kind="pie", ax=ax)
    with pytest.raises(ValueError, match=r"scoring must be one scorer.*'max_error'"):
        draw(model, X, y, eras=eras, scoring=["r2", "max_error"], ax=ax)

    def by_era(estimator, X, y, eras):
        return 1.0

    with pytest.raises(ValueError, match=r"scoring=.*by_era.* asks for eras"):
        draw(model, X, y, eras=eras, scoring=by_era, ax=ax)
    with pytest.raises(ValueError, match=r"shapes \(1,\) and \(2,\)"):
        EraScoreDisplay(scores=[1], era_labels=["a", "b"])
    with pytest.raises(ValueError, match="none of the 2 eras has a score"):
        EraScoreDisplay(scores=[np.nan, np.nan], era_labels=["a", "b"])
    draw = EraScoreDisplay.from_predictions
    with pytest.raises(ValueError, match=r"'metric' parameter .* must be a callable"):
        draw(y, y, eras=eras, metric="r2", ax=ax)
    with pytest.raises(ValueError, match="y_pred has 199 rows, but y_true has 200"):
        draw(y, y[1:], eras=eras, metric=mean_absolute_error, ax=ax)
    bad = np.where(eras == "w3", np.nan, y)
    with pytest.raises(ValueError, match=r"failed in era w3, of 50 rows.*contains NaN"):
        draw(y, bad, eras=eras, metric=mean_absolute_error, ax=ax)


# Agreement of splits.


def test_bubbles_hold_the_gain_of_their_depth_and_agreement(ax):
    X, y, eras = make_data()
    model = make_regressor(X, y)
    statistics = split_statistics(model, X, y, eras=eras)
    display = SplitAgreementDisplay.from_estimator(model, X, y, eras=eras, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert_allclose(display.gain_share, statistics.gain / statistics.gain.sum())
    places = np.asarray(display.points_.get_offsets())
    areas = display.points_.get_sizes()
    expected = [
        statistics.gain[
            (statistics.depth == depth) & (statistics.direction_agreement == agreement)
        ].sum()
        for depth, agreement in places
    ]
    large = areas > areas.min()
    assert large.sum() > 2
    assert_allclose(
        areas[large] / areas.max(), np.array(expected)[large] / max(expected)
    )
    depths, means = display.mean_line_.get_data()
    for depth, mean in zip(depths, means, strict=True):
        at = statistics.depth == depth
        assert_allclose(
            mean,
            np.average(statistics.direction_agreement[at], weights=statistics.gain[at]),
        )


def test_a_dot_a_split_by_share_of_the_gain(ax):
    X, y, eras = make_data()
    table = split_statistics(make_regressor(X, y), X, y, eras=eras, as_frame=True)
    display = SplitAgreementDisplay.from_statistics(table, ax=ax, x="gain_share")
    places = np.asarray(display.points_.get_offsets())
    assert_allclose(places[:, 0], table["gain"] / table["gain"].sum())
    assert_allclose(places[:, 1], table["direction_agreement"])
    assert ax.get_xscale() == "log"
    assert display.mean_line_ is None
    # Of held-out rows some splits have none.
    few = split_statistics(make_regressor(X, y), X[:8], y[:8], eras=eras[:8])
    assert np.any(few.gain == 0)
    SplitAgreementDisplay.from_statistics(few, ax=ax, x="gain_share")
    assert ax.get_xscale() == "symlog"


def test_directional_splits_agree_more_than_those_by_gain(ax):
    X, y, eras = make_data()
    means = []
    for criterion in ("gain", "directional"):
        model = HistGradientBoostingRegressor(split_criterion=criterion, **PARAMETERS)
        model.fit(X, y, eras=eras)
        display = SplitAgreementDisplay.from_estimator(model, X, y, eras=eras, ax=ax)
        means.append(display.mean_line_.get_ydata()[0])
    assert means[0] < means[1] == 1


def test_agreement_makes_a_figure_and_takes_a_style(pyplot):
    X, y, eras = make_data()
    model = make_regressor(X, y)
    display = SplitAgreementDisplay.from_estimator(model, X, y, eras=eras, color="red")
    assert pyplot.get_fignums() == [display.figure_.number]
    assert_array_equal(display.points_.get_facecolor()[0][:3], [1, 0, 0])
    again = display.plot(x="gain_share")
    assert again is display
    assert len(pyplot.get_fignums()) == 2


def test_agreement_refuses(ax):
    X, y, eras = make_data()
    model = make_regressor(X, y)
    table = split_statistics(model, X, y, eras=eras, as_frame=True)
    draw = SplitAgreementDisplay.from_statistics
    with pytest.raises(ValueError, match="x must be 'depth' or 'gain_share'; got 'D'"):
        draw(table, ax=ax, x="D")
    with pytest.raises(ValueError, match="statistics has no column depth, gain;"):
        draw(table.drop(columns=["depth", "gain"]), ax=ax)
    with pytest.raises(ValueError, match="no split has a gain on these rows"):
        draw(split_statistics(model, X[:1], y[:1], eras=eras[:1]), ax=ax)
    with pytest.raises(ValueError, match="The model has no split"):
        draw(table[:0], ax=ax)
    with pytest.raises(ValueError, match=r"one value a split each; got .*\(2,\)"):
        SplitAgreementDisplay(depth=[0, 1], gain=[1], direction_agreement=[1])
    with pytest.raises(ValueError, match="estimator must be a HistGradientBoosting"):
        SplitAgreementDisplay.from_estimator(LinearRegression(), X, y, eras=eras, ax=ax)


# Without matplotlib.


def test_matplotlib_is_asked_for_by_name(monkeypatch):
    X, y, eras = make_data()
    model = make_regressor(X, y)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (
        lambda: EraScoreDisplay(scores=[1], era_labels=[0]).plot(),
        lambda: SplitAgreementDisplay.from_estimator(model, X, y, eras=eras),
        lambda: DecisionSurfaceDisplay.from_estimator(model, X, (0, 1)),
    ):
        with pytest.raises(MissingPackageError, match=r"sklearn-era\[plot\]"):
            draw()
