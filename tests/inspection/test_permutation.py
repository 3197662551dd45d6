"""Permutation importances by era, against scikit-learn's and closed forms."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import LeaveOneGroupOut

from helpers.data import make_mixed_frame
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.inspection import era_permutation_importance, era_stability
from sklearn_era.metrics import make_era_scorer


def make_data(n_eras=6, n=60):
    rng = np.random.default_rng(0)
    eras, X = np.repeat(np.arange(n_eras), n), rng.normal(size=(n_eras * n, 3))
    X[:, 2] += eras
    return X, X[:, 0] - np.where(eras < 3, 1, 0) * X[:, 1] + 0.1 * X[:, 2], eras


@pytest.mark.parametrize("weighted", [False, True])
def test_importances_are_those_of_scikit_learn_in_each_era_left_out(weighted):
    X, y, eras = make_data()
    weights = np.random.default_rng(1).uniform(0.2, 2, y.size) if weighted else None
    options = {"n_repeats": 10, "scoring": "neg_mean_squared_error"}
    of = {"eras": eras, "sample_weight": weights, "cv": LeaveOneGroupOut()}
    model = LinearRegression()
    result = era_permutation_importance(model, X, y, random_state=0, **of, **options)
    w = np.ones(y.size) if weights is None else weights
    for era in range(6):
        left, kept = eras == era, eras != era
        model.fit(X[kept], y[kept], w[kept])
        options["sample_weight"] = w[left]
        test = X[left], y[left]
        expected = permutation_importance(model, *test, random_state=1, **options)
        errors = 5 * np.sqrt(2 / 10) * expected.importances_std
        found = result.importances[era]
        assert np.all(abs(found - expected.importances_mean) < errors)
    assert_allclose(result.mean_importance, result.importances.mean(axis=0))
    assert np.all(result.importance_error > 0)
    assert_array_equal(result.era_labels, np.arange(6))
    assert result.feature_names.tolist() == ["x0", "x1", "x2"]


@pytest.mark.parametrize("cv", [3, LeaveOneGroupOut()])
def test_eras_without_weight_are_not_tested(cv):
    X, y, eras = make_data()
    weights, options = np.where(eras == 2, 0.0, 1.0), {"cv": cv, "random_state": 0}
    options["era_order"] = "unordered"
    for measure in (era_permutation_importance, partial(era_stability, price=False)):
        found = []
        for rows in (slice(None), weights > 0):
            of = {"eras": eras[rows], "sample_weight": weights[rows], **options}
            found.append(measure(X=X[rows], y=y[rows], estimator=Ridge(), **of))
        one, other = (result.importances for result in found)
        assert np.isnan(one[2]).all()
        assert_allclose(np.delete(one, 2, axis=0), other)


def test_a_level_by_era_is_no_importance_and_errors_are_those_of_eras():
    X, y, eras = make_data()
    X = np.column_stack([X, eras])
    options = {"eras": eras, "random_state": 0}
    options |= {"era_order": "unordered", "cv": 6, "n_repeats": 2}
    result = era_permutation_importance(LinearRegression(), X, y, **options)
    assert_allclose(result.importances[:, 3], 0, atol=1e-12)
    deviation = result.importances.std(axis=0, ddof=1) / np.sqrt(6)
    assert_allclose(result.importance_error, deviation)
    options["cv"] = 2  # eras of a fold apart from each other
    result = era_permutation_importance(LinearRegression(), X, y, **options)
    assert_allclose(result.importances[:, 3], 0, atol=1e-12)


@pytest.mark.parametrize("make", [lambda X: X, pl.from_pandas, pa.Table.from_pandas])
def test_frames_keep_their_columns_and_eras_may_be_one(make):
    frame, y, eras = make_mixed_frame()
    frame = frame.assign(week=np.array(["a", "b", "c", "d"])[eras])
    before = frame.copy()
    X = make(frame)
    model = HistGradientBoostingRegressor(max_iter=10, categorical_features=["t"])
    options = {"era_order": "unordered", "n_repeats": 2, "cv": 2, "as_frame": True}
    result = era_permutation_importance(model, X, y, eras="week", **options)
    assert result.importances.shape == (4, 5)
    assert result.importances.columns.tolist() == list("pqrst")
    assert result.importances.index.tolist() == ["a", "b", "c", "d"]
    assert result.mean_importance.idxmax() == "s"
    pd.testing.assert_frame_equal(frame, before)


def test_scores_by_era_and_undefined_ones():
    X, y, eras = make_data()
    options = {"eras": eras, "cv": 2, "n_repeats": 2, "random_state": 0}
    of_names = [
        era_permutation_importance(LinearRegression(), X, y, scoring=scoring, **options)
        for scoring in ("neg_mean_squared_error", make_era_scorer(mean_squared_error))
    ]
    assert_allclose(of_names[0].importances, of_names[1].importances)
    classes = np.where(eras == 0, 1, y > y.mean())  # era 0 has a single one
    options["scoring"] = "roc_auc"
    with pytest.warns(UndefinedMetricWarning, match=r"undefined in 1 era\(s\) \(0\)"):
        found = era_permutation_importance(LogisticRegression(), X, classes, **options)
    assert np.isnan(found.importances[0]).all()
    assert np.isfinite(found.importances[1:]).all()


@pytest.mark.parametrize(("changed", "message"), [
    ({"eras": None}, "era_permutation_importance needs eras: pass eras="),
    ({"eras": np.zeros(360)}, "eras holds 1 label.*tests on eras that a model has"),
    ({"y": np.zeros(3)}, "y has 3 rows, but X has 360"),
    ({"n_repeats": 0}, "The 'n_repeats' parameter .* must be an int in the range"),
    ({"scoring": ["r2"]}, "The 'scoring' parameter"),
    ({"scoring": lambda *_: {"r2": 1.0}}, "scoring must be of one number, .* {'r2'"),
    ({"scoring": lambda *_: "good"}, "scoring must be of one number, .* is 'good'"),
])  # fmt: skip
def test_refusals(changed, message):
    options = dict(zip(("X", "y", "eras"), make_data(), strict=True)) | changed
    with pytest.raises(ValueError, match=message):
        era_permutation_importance(LinearRegression(), **options)
