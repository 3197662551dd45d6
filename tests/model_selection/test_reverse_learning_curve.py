"""The reverse learning curve: its points, what fit and scorer get, its figure."""

import datetime

import matplotlib
import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_era._plotting import BLUE
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.metrics import make_era_scorer
from sklearn_era.model_selection import (
    ReverseLearningCurveDisplay,
    reverse_learning_curve,
)


def make_data(n_eras=5, n_samples=60, random_state=0):
    rng = np.random.default_rng(random_state)
    eras = rng.permutation(np.repeat(2000 + np.arange(n_eras), n_samples))
    X = rng.normal(size=(eras.size, 2))
    y = X[:, 0] + (eras - 2000) * X[:, 1] + rng.normal(size=eras.size)
    return X, y, eras


X, y, eras = make_data()
LAST = {"eras": eras, "test_eras": [2004]}


class Recorder(RegressorMixin, BaseEstimator):
    """A regressor that keeps what its fit was handed."""

    def fit(self, X, y, sample_weight=None, *, eras=None):
        self.X_, self.y_ = X, y
        self.weight_, self.eras_ = sample_weight, eras
        return self

    def predict(self, X):
        return np.full(len(X), np.mean(self.y_))


def test_each_point_is_the_latest_eras_on_a_fixed_test_set():
    options = LAST | {"scoring": "neg_mean_squared_error"}
    curve = reverse_learning_curve(Ridge(), X, y, **options)
    test = eras == 2004
    expected = []
    for oldest in (2003, 2002, 2001, 2000):
        train = (eras >= oldest) & ~test
        predicted = Ridge().fit(X[train], y[train]).predict(X[test])
        expected.append(-mean_squared_error(y[test], predicted))
    assert_allclose(curve.scores, expected)
    assert_array_equal(curve.n_train_eras, [1, 2, 3, 4])
    assert_array_equal(curve.oldest_eras, [2003, 2002, 2001, 2000])
    assert_array_equal(curve.n_samples, [60, 120, 180, 240])
    assert curve.fit_times.shape == (4,)
    assert np.all(curve.fit_times > 0)
    assert curve.score_name == "neg_mean_squared_error"
    assert not curve.passes_eras
    assert "estimators" not in curve
    # The target drifts, and so the oldest eras harm.
    assert curve.scores[0] > curve.scores[-1]
    options["n_train_eras"] = [4, 1, 1]
    some = reverse_learning_curve(Ridge(), X, y, **options)
    assert_array_equal(some.n_train_eras, [1, 4])
    assert_array_equal(some.scores, curve.scores[[0, 3]])


def test_rows_beside_and_eras_within_are_the_same_test_set():
    weights = np.random.default_rng(1).random(eras.size)
    test = eras >= 2003
    options = {"eras": eras, "test_eras": [2003, 2004]}
    within = reverse_learning_curve(Ridge(), X, y, sample_weight=weights, **options)
    with parallel_config("threading"):  # starting processes takes long
        beside = reverse_learning_curve(
            Ridge(), X[~test], y[~test], eras=eras[~test], X_test=X[test],
            y_test=y[test], sample_weight=weights[~test],
            sample_weight_test=weights[test], n_jobs=2,
        )  # fmt: skip
    assert_array_equal(within.scores, beside.scores)
    unweighted = reverse_learning_curve(Ridge(), X, y, **options)
    assert np.all(unweighted.scores != within.scores)


@pytest.mark.parametrize(
    "dates",
    [
        np.array(["2024-03-01"], dtype="M8[D]"),
        np.array(["2024-03-01"], dtype="M8[ns]"), [pd.Timestamp("2024-03-01")],
        [datetime.date(2024, 3, 1)], ["2024-03-01"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("unit", ["D", "ns"])
def test_dates_are_named_in_any_unit(dates, unit):
    X, y, eras = make_data(n_eras=3)
    months = np.array(["2024-01-01", "2024-02-01", "2024-03-01"], dtype=f"M8[{unit}]")
    options = {"eras": months[eras - 2000], "test_eras": dates}
    curve = reverse_learning_curve(Ridge(), X, y, **options)
    assert_array_equal(curve.oldest_eras, months[[1, 0]])
    assert curve.oldest_eras.dtype == months.dtype
    expected = reverse_learning_curve(Ridge(), X, y, eras=eras, test_eras=[2002])
    assert_array_equal(curve.scores, expected.scores)


@pytest.mark.parametrize(
    "wrap", ["itself", "pipeline", "search", "search of pipeline", "regressor"]
)
def test_fit_is_handed_eras_and_weights_of_its_rows(wrap):
    X, y, eras = make_data(n_eras=3)
    names = np.array(["a", "b", "c"])[eras - 2000]
    weights = np.arange(1.0, eras.size + 1)
    estimator = Recorder()
    if "pipeline" in wrap:
        estimator = make_pipeline(StandardScaler(), estimator)
    if "search" in wrap:
        estimator = GridSearchCV(estimator, {}, cv=2)
    if wrap == "regressor":
        estimator = TransformedTargetRegressor(estimator, check_inverse=False)
    curve = reverse_learning_curve(
        estimator, X, y, eras=names, test_eras=["c"], era_order="ordered", scoring="r2",
        sample_weight=weights if wrap == "itself" else None, return_estimator=True,
    )  # fmt: skip
    assert curve.passes_eras
    for fitted, oldest in zip(curve.estimators, ["b", "a"], strict=True):
        model = getattr(fitted, "best_estimator_", fitted)
        model = getattr(model, "regressor_", model)
        model = model[-1] if "pipeline" in wrap else model
        rows = (names >= oldest) & (names < "c")
        assert_array_equal(model.eras_, names[rows])
        assert_array_equal(model.y_, y[rows])
        if wrap == "itself":
            assert_array_equal(model.weight_, weights[rows])
        else:
            assert model.weight_ is None


def test_metadata_routing_settles_what_is_handed():
    X, y, eras = make_data(n_eras=3)
    options = {"eras": eras, "test_eras": [2002], "return_estimator": True}
    with config_context(enable_metadata_routing=True):
        for request in (True, False):
            model = make_pipeline(
                StandardScaler(), Recorder().set_fit_request(eras=request)
            )
            curve = reverse_learning_curve(model, X, y, **options)
            assert curve.passes_eras is request
            assert (curve.estimators[0][-1].eras_ is None) is not request
        booster = HistGradientBoostingRegressor(split_criterion="era", max_iter=2)
        assert reverse_learning_curve(booster, X, y, **options).passes_eras


def test_era_criteria_get_along_with_one_era():
    booster = HistGradientBoostingRegressor(split_criterion="directional", max_iter=5)
    curve = reverse_learning_curve(booster, pd.DataFrame(X), pd.Series(y), **LAST)
    assert curve.passes_eras
    assert np.isfinite(curve.scores).all()


def test_a_scorer_that_asks_for_eras_gets_those_of_the_test_set():
    scorer = make_era_scorer(r2_score, aggregation="worst")
    options = {"test_eras": [2003, 2004], "scoring": scorer, "return_estimator": True}
    curve = reverse_learning_curve(LinearRegression(), X, y, eras=eras, **options)
    for model, score in zip(curve.estimators, curve.scores, strict=True):
        expected = [model.score(X[eras == e], y[eras == e]) for e in (2003, 2004)]
        assert score == pytest.approx(min(expected))

    def count_eras(estimator, X, y, eras):
        return len(np.unique(eras))

    test = eras >= 2003
    options = {"X_test": X[test], "y_test": y[test], "scoring": count_eras}
    curve = reverse_learning_curve(
        LinearRegression(), X, y, eras=eras, eras_test=eras[test], **options
    )
    assert_array_equal(curve.scores, 2)
    with pytest.raises(ValueError, match=r"eras_test is missing: scoring=.* asks for"):
        reverse_learning_curve(LinearRegression(), X, y, eras=eras, **options)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "pass the labels of the eras to score on, or both .* got none"),
        ({"X_test": [[1, 2]]}, "or both X_test and y_test; got X_test"),
        ({"test_eras": [2004], "y_test": [1]}, "and y_test came with it; pass one or"),
        ({"test_eras": [1999]}, "eras has no label 1999; its labels go from 2000 to"),
        ({"test_eras": ["2004"]}, "eras has no label '2004'; its labels go from 2000"),
        ({"test_eras": []}, "test_eras is empty"),
        ({"test_eras": range(2000, 2005)}, "names all eras, and none is left"),
        ({"test_eras": [2002]}, "era 2002 is to be scored on, but is not after era"),
        ({"X_test": [[1, 2]], "y_test": [1, 2]}, "X_test has 1 rows, and y_test 2"),
        ({"X_test": [[1, 2]], "y_test": [1], "eras_test": [1, 2]},
         "eras_test has 2 labels, but X_test has 1 rows"),
        ({"X_test": [[1, 2]], "y_test": [1], "sample_weight_test": [1, 2]},
         "sample_weight_test has 2 values, but there are 1 rows"),
        ({"test_eras": [2004], "n_train_eras": [5]}, "5 is not a number of eras to tr"),
        ({"test_eras": [2004], "n_train_eras": [0, 1]}, "n_train_eras: 0 is not a nu"),
        ({"test_eras": [2004], "n_train_eras": [0.5]}, "must be a list of integers"),
        ({"test_eras": [2004], "sample_weight": [1.0]}, "sample_weight has 1 values"),
        ({"test_eras": [2004], "eras": [1]}, "eras has 1 labels, but X has 300 rows"),
        ({"test_eras": [2004], "y": [1]}, "y has 1 rows, but X has 300"),
        ({"test_eras": [2004], "scoring": lambda *_: np.zeros(2)},
         "scoring must return one number; got array"),
    ],
)  # fmt: skip
def test_curve_refuses(parameters, message):
    data = {"y": y, "eras": eras} | parameters
    with pytest.raises(ValueError, match=message):
        reverse_learning_curve(Ridge(), X, **data)


def test_weights_that_fit_or_scoring_does_not_take_are_refused():
    weights = {"sample_weight": np.ones(eras.size)}

    def unweighted(estimator, X, y):
        return estimator.score(X, y)

    with pytest.raises(ValueError, match="fit of KNeighborsRegressor takes no weights"):
        reverse_learning_curve(KNeighborsRegressor(), X, y, **LAST, **weights)
    weights["scoring"] = unweighted
    with pytest.raises(ValueError, match=r"scoring=.*unweighted.* takes no sample_"):
        reverse_learning_curve(Ridge(), X, y, **LAST, **weights)
    beside = {"eras": eras, "X_test": X[:9], "y_test": y[:9]}
    assert reverse_learning_curve(Ridge(), X, y, **beside, **weights).scores.size == 5


@pytest.mark.parametrize(
    ("bad_era", "message"),
    [
        (
            2002,
            r"^The fit to the latest 2 training era\(s\), from 2002 on, failed: .*NaN",
        ),
        (2004, "from 2003 on, cannot be scored on the test"),
    ],
)
def test_failures_name_the_eras_trained_on(bad_era, message):
    rows = np.where((eras == bad_era)[:, np.newaxis], np.nan, X)
    with pytest.raises(ValueError, match=message):
        reverse_learning_curve(Ridge(), rows, y, **LAST)


def test_curves_share_axes():
    matplotlib.use("agg")
    from matplotlib import pyplot

    draw = ReverseLearningCurveDisplay.from_estimator
    first = draw(Ridge(), X, y, label="ridge", scoring="r2", **LAST)
    curve = reverse_learning_curve(Ridge(), X, y, **LAST)
    assert_allclose(first.line_.get_ydata(), curve.scores)
    assert_allclose(first.line_.get_xdata(), [1, 2, 3, 4])
    ticks = [text.get_text() for text in first.ax_.get_xticklabels()]
    assert ticks == ["2003", "2002", "2001", "2000"]
    assert first.ax_.get_ylabel() == "r2"
    second = draw(Ridge(), X, y, label="other", ax=first.ax_, **LAST)
    assert second.figure_ is first.figure_
    # The second colour of matplotlib's cycle: the first is too near to our blue.
    colors = [to_hex(display.line_.get_color()) for display in (first, second)]
    assert colors == [BLUE, to_hex("C1")]
    texts = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert texts == ["ridge", "other"]
    assert pyplot.get_fignums() == [first.figure_.number]
    pyplot.close(first.figure_)


def test_display_refuses():
    with pytest.raises(ValueError, match=r"the shapes \(2,\), \(1,\) and \(2,\)"):
        ReverseLearningCurveDisplay(n_train_eras=[1, 2], scores=[1], oldest_eras=[2, 1])
    display = ReverseLearningCurveDisplay(
        n_train_eras=[1, 3], scores=[0.5, 0.6], oldest_eras=["b", "a"]
    )
    for name in ("color", "c"):
        display.plot(Figure().subplots(), **{name: "green"})
        assert display.line_.get_color() == "green"
    assert display.ax_.get_legend() is None


def test_columns_without_a_value_are_one_warning():
    rng = np.random.default_rng(0)
    eras = np.repeat(np.arange(6), 40)
    X = pd.DataFrame(rng.normal(size=(240, 2)), columns=["a", "early"])
    X.loc[eras > 2, "early"] = np.nan
    estimator = HistGradientBoostingRegressor(max_iter=2)
    message = r"X: column\(s\) 'early' have no value in rows that a fit is trained on"
    with pytest.warns(UserWarning, match=message) as caught:
        curve = reverse_learning_curve(estimator, X, X["a"], eras=eras, test_eras=[5])
    assert len(caught) == 1
    assert np.isfinite(curve.scores).all()
