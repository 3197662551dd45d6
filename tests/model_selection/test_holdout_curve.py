"""Curves of the score in a holdout: by hand, drawn, and what they refuse."""

import re
from functools import partial

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_era.ensemble import (
    HistGradientBoostingRegressor,
    TimeRobustForestRegressor,
)
from sklearn_era.model_selection import HoldoutCurveDisplay, holdout_curve
from sklearn_era.preprocessing import EraStandardScaler

mpl.use("agg")
rng = np.random.default_rng(0)
years = rng.permutation(np.repeat(np.arange(2010, 2016), 30))
X = rng.normal(size=(180, 2))
y = np.where(years < 2013, -1, 1) * X[:, 0] + 0.1 * rng.normal(size=180)
HOLDOUT = {"eras": years, "test_eras": [2015, 2014]}


def test_a_reverse_learning_curve_trains_on_the_latest_eras():
    curve = holdout_curve(Ridge(), X, y, param_range=[1, 3, 4], **HOLDOUT)
    assert curve.oldest_eras.tolist() == [2013, 2011, 2010]
    assert curve.param_range.tolist() == [1, 3, 4]
    assert curve.test_eras.tolist() == [2014, 2015]
    for k, oldest in enumerate(curve.oldest_eras):
        is_known = (years >= oldest) & (years < 2014)
        model = Ridge().fit(X[is_known], y[is_known])
        of_years = [years == year for year in range(oldest, 2016)]
        scores = [r2_score(y[rows], model.predict(X[rows])) for rows in of_years]
        assert_allclose(curve.test_scores[k], scores[-2:])
        assert_allclose(curve.train_scores[k], [np.mean(scores[:-2])])
    every = holdout_curve(Ridge(), X, y, **HOLDOUT)
    assert every.param_range.tolist() == [1, 2, 3, 4]
    assert_array_equal(every.test_scores[[0, 2, 3]], curve.test_scores)


def test_progress_has_the_time_left(capsys):
    quiet = holdout_curve(Ridge(), X, y, param_range=[1, 3], **HOLDOUT)
    assert not capsys.readouterr().out
    told = holdout_curve(Ridge(), X, y, param_range=[1, 3], verbose=1, **HOLDOUT)
    first, last = capsys.readouterr().out.splitlines()
    start = "holdout_curve 1/2 fits: latest eras=1; about "
    assert re.fullmatch(rf"{start}\d+ s left", first)
    assert last == "holdout_curve 2/2 fits: latest eras=3"
    assert_array_equal(told.test_scores, quiet.test_scores)
    of = {"param_name": "alpha", "param_range": [0.1], "verbose": 1}
    holdout_curve(Ridge(), X, y, **of, **HOLDOUT)
    assert capsys.readouterr().out == "holdout_curve 1/1 fits: alpha=0.1\n"


def test_a_curve_over_a_parameter_hands_eras_to_the_fit_and_is_drawn():
    forest = TimeRobustForestRegressor(n_estimators=3, random_state=0)
    knob = {"param_name": "min_samples_per_era", "param_range": [2, 8]}
    display = HoldoutCurveDisplay.from_estimator(forest, X, y, **knob, **HOLDOUT)
    is_known = years < 2014
    for k, least in enumerate(knob["param_range"]):
        forest.set_params(min_samples_per_era=least)
        forest.fit(X[is_known], y[is_known], eras=years[is_known])
        scores = [forest.score(X[years == t], y[years == t]) for t in (2014, 2015)]
        assert_allclose(display.test_scores[k], scores)
    drawn = [line.get_ydata() for line in display.lines_]
    assert_allclose(drawn[0], display.train_scores[:, 0])
    assert_allclose(drawn[1], display.test_scores.mean(axis=1))
    assert display.ax_.get_xlabel() == "min_samples_per_era"


@pytest.mark.parametrize(("name", "values", "are_numbers"), [
    ("max_features", ["sqrt", 0.5], False), ("max_samples", [2, 0.5], True),
    ("max_depth", [None, 2], False), ("monotonic_cst", [(0, 1), (1, 0), None], False),
    ("bootstrap", [True, False], False), ("max_features", np.array([0.5, 1.0]), True),
], ids=str)  # fmt: skip
def test_values_reach_the_model_as_they_are(name, values, are_numbers):
    model = RandomForestRegressor(2, random_state=0)
    of = {"param_name": name, "param_range": values}
    given = {**of, **HOLDOUT, "ax": Figure().subplots()}
    display = HoldoutCurveDisplay.from_estimator(model, X, y, **given)
    is_known, rows = years < 2014, years == 2014
    for k, value in enumerate(values):
        model.set_params(**{name: value}).fit(X[is_known], y[is_known])
        assert display.test_scores[k][0] == model.score(X[rows], y[rows])
    assert display.param_range.tolist() == [*values]
    assert (display.param_range.dtype.kind == "f") == are_numbers
    x = [*values] if are_numbers else range(len(values))
    assert_array_equal(display.lines_[1].get_xdata(), x)
    if not are_numbers:
        ticks = [tick.get_text() for tick in display.ax_.get_xticklabels()]
        assert ticks == [*map(str, values)]


@pytest.mark.parametrize(("plain", "part", "values"), [
    (make_pipeline("passthrough", Ridge()), "passthrough",
     [StandardScaler(), EraStandardScaler()]),
    (make_pipeline(StandardScaler(), Ridge()), "ridge",
     [HistGradientBoostingRegressor(max_iter=3, split_criterion="era"), Ridge(2.0)]),
])  # fmt: skip
def test_each_value_gets_eras_if_its_own_parts_take_them(plain, part, values):
    shops = np.array(list("abcdef"))[years - 2010]  # text, which has no order
    given = {"eras": shops, "test_eras": ["b", "f"], "era_order": "unordered"}
    rows = X + years[:, None]
    curve = holdout_curve(plain, rows, y, param_name=part, param_range=values, **given)
    for value, scores in zip(values, curve.test_scores, strict=True):
        model, of = clone(plain).set_params(**{part: value}), {"param_name": "verbose"}
        alone = holdout_curve(model, rows, y, **of, param_range=[False], **given)
        assert_array_equal(scores, alone.test_scores[0])


def test_eras_without_a_score_are_left_out_of_the_curve():
    sales = ((y > 0) & (years != 2014)).astype(int)
    of = {"param_name": "C", "param_range": [0.1, 1.0], "scoring": "roc_auc"}
    model, ax = LogisticRegression(), Figure().subplots()
    draw = partial(HoldoutCurveDisplay.from_estimator, model, X, sales, ax=ax)
    told = r"roc_auc is undefined in 1 era\(s\) \(2014\)"
    with pytest.warns(UndefinedMetricWarning, match=told):
        display = draw(**of, **HOLDOUT)
    assert np.isnan(display.test_scores).tolist() == 2 * [[True, False]]
    assert_allclose(display.lines_[1].get_ydata(), display.test_scores[:, 1])
    none = {**of, "eras": years, "test_eras": [2014]}
    with (
        pytest.warns(UndefinedMetricWarning, match=told),
        pytest.raises(ValueError, match="roc_auc is undefined in all test eras"),
    ):
        draw(**none)
    with pytest.warns(UndefinedMetricWarning, match=told):
        assert len(draw(**none, score_type="train").lines_) == 1


def test_groups_without_an_order_have_curves_of_parameters_only():
    shops, sales = np.array(list("abc" * 60)), (y > 0).astype(int)
    options = {"eras": shops, "test_eras": ["b"], "era_order": "unordered"}
    curve = holdout_curve(LogisticRegression(), X, sales, param_name="C",
                          param_range=[1e-3, 1.0], scoring="roc_auc",
                          **options)  # fmt: skip
    model = LogisticRegression(C=1e-3).fit(X[shops != "b"], sales[shops != "b"])
    p = model.decision_function(X[shops == "b"])
    assert curve.test_scores[0] == [roc_auc_score(sales[shops == "b"], p)]
    with pytest.raises(ValueError, match="be the last of ordered eras"):
        holdout_curve(Ridge(), X, y, **options)


@pytest.mark.parametrize(("options", "message"), [
    ({"test_eras": [2012]}, "be the last of ordered eras"),
    ({"test_eras": [2016]}, "must be labels that eras has"),
    ({"test_eras": []}, "must be labels that eras has"),
    ({"test_eras": years}, "leave others to train on"),
    ({"param_range": [0, 1]}, "numbers of eras from 1 to 4"),
    ({"param_name": "alpha"}, "must be values of 'alpha'"),
    ({"scoring": lambda *_: {"a": 1.0}}, "scoring must be of one number, .* {'a': 1.0"),
    ({"scoring": lambda *_: "good"}, "score of an era is 'good': pass a single metric"),
])  # fmt: skip
def test_curves_refuse(options, message):
    with pytest.raises(ValueError, match=message):
        holdout_curve(Ridge(), X, y, **{**HOLDOUT, **options})
