"""The linear member against scikit-learn's models on the same columns."""

import datetime

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from sklearn_era._tables.columns import as_categories, places_in
from sklearn_era.auto._linear import PENALTIES, LinearClassifier, LinearRegressor

RNG, N = np.random.default_rng(0), 300
WEIGHTS = RNG.uniform(0.5, 2, N)


def make_table():
    """A number, one with missing values, a constant and a category."""
    kind = RNG.choice(["u", "v", "w"], N, p=[0.6, 0.38, 0.02])
    holes = np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(3, 2, N))
    columns = {"a": RNG.normal(size=N), "b": holes, "c": 1.0}
    return pd.DataFrame(columns | {"kind": pd.Categorical(kind)})


def by_hand(X, weights):
    """Standardised columns; missing ones at the mean, and their indicators."""
    w = np.ones(N) if weights is None else weights
    columns = []
    for name in "abc":
        x = X[name].to_numpy()
        known = ~np.isnan(x)
        mean = np.average(x[known], weights=w[known])
        std = np.sqrt(np.average((x[known] - mean) ** 2, weights=w[known])) or 1.0
        columns.append(np.where(known, (x - mean) / std, 0))
        if not known.all():
            columns.append(~known)
    counts = X["kind"].value_counts()
    columns += [X["kind"] == k for k in counts.index if counts[k] >= 10]
    return np.column_stack(columns).astype(float)


X = make_table()
SIGNAL = X["a"] + np.nan_to_num(X["b"], nan=3.0) / 3 + (X["kind"] == "u")


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma", "log_loss"])
def test_each_penalty_is_a_model_of_scikit_learn(loss, weights):
    Z, scale = by_hand(X, weights), N if weights is None else weights.sum()
    y = SIGNAL + RNG.normal(size=N)
    make = {
        "squared_error": lambda a: linear_model.Ridge(a * scale),
        "poisson": lambda a: linear_model.PoissonRegressor(alpha=a, max_iter=500),
        "gamma": lambda a: linear_model.GammaRegressor(alpha=a, max_iter=500),
        "log_loss": lambda a: LogisticRegression(C=1 / (a * scale), max_iter=500),
    }[loss]
    if loss == "log_loss":
        model, y = LinearClassifier(loss), np.digitize(y, [1, 2.5]).astype(str)
        staged = model.fit(X, y, sample_weight=weights).staged_predict_proba(X)
    else:
        y = y if loss == "squared_error" else np.exp(y / 2)
        model, unit = LinearRegressor(loss), np.average(y, weights=weights)
        staged = model.fit(X, y, sample_weight=weights).staged_predict(X)
    for penalty, found in zip(PENALTIES, staged, strict=True):
        if loss == "log_loss":
            theirs = make(penalty).fit(Z, y, sample_weight=weights)
            assert_allclose(found, theirs.predict_proba(Z), atol=1e-2)
        else:
            theirs = make(penalty).fit(Z, y / unit, sample_weight=weights)
            expected = np.clip(unit * theirs.predict(Z), y.min(), y.max())
            assert_allclose(found, expected, rtol=2e-3)
    assert model.check()
    if loss == "log_loss":
        assert (model.predict(X) == model.classes_[found.argmax(axis=1)]).all()
    else:
        assert (model.predict(X) == found).all()


@pytest.mark.parametrize("unit", [1e-3, 1e6])
@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma"])
def test_the_unit_of_a_target_does_not_matter(loss, unit):
    y = RNG.gamma(1, np.exp(SIGNAL / 2))
    fits = [
        LinearRegressor(loss).fit(X, y * u, sample_weight=WEIGHTS).staged_predict(X)
        for u in (1, unit)
    ]
    for one, other in zip(*fits, strict=True):
        assert_allclose(unit * one, other, rtol=1e-6)


def test_unknown_categories_and_missing_values_are_predicted():
    model = LinearRegressor("squared_error").fit(X, SIGNAL)
    other = X.assign(kind=pd.Categorical(["new"] * N), a=np.nan)
    assert np.isfinite(model.predict(other)).all()
    two = X[["a", "b"]]
    arrays = LinearRegressor("squared_error").fit(two.to_numpy(), SIGNAL)
    frames = LinearRegressor("squared_error").fit(two, SIGNAL)
    assert_allclose(arrays.predict(two.to_numpy()), frames.predict(two))
    with pytest.raises(ValueError, match="X has 1 features, but LinearRegressor is"):
        arrays.predict(two[["a"]].to_numpy())
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(two)


def test_a_single_class_is_certain():
    model = LinearClassifier("log_loss").fit(X, np.ones(N))
    assert (model.predict_proba(X) == 1).all()
    assert model.check()


@pytest.mark.parametrize("weights", [None, 1e-6 * WEIGHTS])
@pytest.mark.parametrize("value", [0.1, 123.456, 1e9 + 0.1])
@pytest.mark.parametrize("loss", ["squared_error", "gamma", "log_loss"])
def test_a_column_that_is_constant_in_training_counts_for_nothing(loss, value, weights):
    # The mean of values of 0.1 is not 0.1, and differences are not 0.
    table = X.assign(c=np.where(np.arange(N) % 7, value, np.nan))
    y, model = np.exp(SIGNAL), LinearRegressor(loss)
    if loss == "log_loss":
        y, model = SIGNAL > 2, LinearClassifier(loss)
    model.fit(table, y, sample_weight=weights)
    predict = model.predict_proba if loss == "log_loss" else model.predict
    for new in (2 * value, value + 1e6):
        pair = predict(table.assign(c=value)), predict(table.assign(c=new))
        assert (pair[0] == pair[1]).all()


@pytest.mark.parametrize("kind", ["regression", "classes"])
def test_rows_without_weight_count_for_nothing(kind):
    outlier = X.assign(a=1e3, c=np.nan, kind=pd.Categorical(["z"] * N))
    both, weights = pd.concat([X, outlier]), np.repeat([1.0, 0.0], N)
    both["kind"] = both["kind"].astype("category")
    y, model = np.tile(SIGNAL, 2), LinearRegressor("squared_error")
    if kind == "classes":
        y, model = (y > 2).astype(str), LinearClassifier("log_loss")
    else:
        y[N:] = 1e3
    found, far = model.fit(both, y, sample_weight=weights), X.assign(a=50.0)
    without = clone(model).fit(X, y[:N], sample_weight=2 * weights[:N])
    assert found._codings == without._codings
    method = "predict" if kind == "regression" else "predict_proba"
    expected = getattr(without, method)(far)
    assert_allclose(getattr(found, method)(far), expected, atol=1e-3)


def test_categories_count_by_their_weights():
    weights = np.where(X["kind"] == "u", 1e-9, 1.0)
    model = LinearRegressor("squared_error").fit(X, SIGNAL, sample_weight=weights)
    assert model._codings[3] == ["v"]
    weights = np.where(X["kind"] == "w", 5.0, 1.0)
    model.fit(X, SIGNAL, sample_weight=weights)
    assert model._codings[3] == ["u", "v", "w"]


def test_dates_of_older_pickles_stay_known():
    days = pd.Categorical([datetime.date(2024, 1, ord(x) - 100) for x in X["kind"]])
    rows = X[["a"]].assign(day=days)
    model = LinearRegressor("squared_error").fit(rows, SIGNAL)
    expected = model.predict(rows)
    model._codings[1] = [day.date() for day in model._codings[1]]
    assert_array_equal(model.predict(rows), expected)


@pytest.mark.parametrize("unit", ["D", "us", "ns"])
@pytest.mark.parametrize("kind", "mM")
def test_missing_dates_and_durations_of_arrays_are_none(kind, unit):
    """Before categories are looked up: NaT differs from itself."""
    values = np.array([0, "NaT", 0] * 9, dtype="O").astype(f"{kind}8[{unit}]")
    found = as_categories(values, "day")
    first = datetime.timedelta(0) if kind == "m" else datetime.datetime(1970, 1, 1)
    assert found.tolist() == [first, None, first] * 9


def test_a_new_category_has_no_place_of_a_known_one():
    """Also if, in an older pickle, two categories are the same to this version."""
    days = [datetime.datetime(2024, 1, day) for day in (1, 2, 3)]
    known = [None, pd.NaT, days[0], days[0].date(), days[1]]
    assert places_in(known, days).tolist() == [3, 4, 5]
