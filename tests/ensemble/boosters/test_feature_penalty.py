"""`feature_penalty`: what splits pay; oracle/test_every_split.py checks each one."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from helpers.criteria import CRITERIA, RATIO
from helpers.data import make_data
from helpers.estimators import ours
from helpers.forests import classifier, regressor
from helpers.grids import on_grid
from helpers.trees import assert_same_trees, n_splits, trees_of
from sklearn_era.criteria import Gain
from sklearn_era.ensemble import _criterion_plan

NAMES = ["a", "b", "c", "d", "e"]


def forest(target="real", **params):
    make = classifier if target in ("binary", "multiclass") else regressor
    return make(**{"n_estimators": 3, "max_bins": 32, "max_depth": 5} | params)


KINDS = {"booster": ours, "forest": forest}
ALL = CRITERIA | {"invariant, ratio": RATIO}


def target_of(criterion):
    return "binary" if criterion is RATIO else "real"


def features_of(model) -> set[int]:
    """The features that split, as scikit-learn trains on them."""
    nodes = np.concatenate([tree.nodes for tree in trees_of(model)])
    return {*nodes["feature_idx"][nodes["is_leaf"] == 0].tolist()}


@on_grid("kind criterion", list(KINDS), ALL, every=4)
def test_zeros_change_no_bit(kind, criterion):
    target = target_of(criterion)
    X, y, weights, eras = make_data(target)
    plain = KINDS[kind](target, **criterion).fit(X, y, weights, eras=eras)
    assert n_splits(plain) > 0
    for zeros in (np.zeros(5), [0, 0.0, False, 0, 0], {}, {1: 0}):
        model = clone(plain).set_params(feature_penalty=zeros)
        assert_same_trees(model.fit(X, y, weights, eras=eras), plain)


def test_zeros_leave_the_gain_to_scikit_learn(monkeypatch):
    X, y, _, _ = make_data()
    made, by_gain = [], _criterion_plan._by_gain
    noting = lambda make, y: made.append(by_gain(make, y)) or made[-1]  # noqa: E731
    monkeypatch.setattr(_criterion_plan, "_by_gain", noting)
    for make in KINDS.values():
        make(feature_penalty=np.zeros(5)).fit(X, y)
        assert not made
        make(feature_penalty=[0, 0.1, 0, 0, 0]).fit(X, y)
        assert made
        made.clear()


@on_grid(
    "criterion kind more penalty", ALL, list(KINDS),
    [{}, {"max_features": 0.5}, {"colsample_bytree": 0.5}], [1.0, 1.5, math.inf],
    every=14)  # fmt: skip
def test_one_or_more_is_a_column_less(kind, criterion, more, penalty):
    if kind == "forest" and "colsample_bytree" in more:
        more = {"max_features": "sqrt"}
    target = target_of(criterion)
    X, y, weights, eras = make_data(target)
    more = dict(more)
    if kind == "booster" and criterion["split_criterion"] == "gain":
        criterion = {"split_criterion": Gain(splitter="era")}  # as with any penalty
    kept, expected = [0, 2, 3], KINDS[kind](target, **criterion | more)
    expected.fit(X[:, kept], y, weights, eras=eras)
    penalties = np.where(np.isin(np.arange(5), kept), 0.0, penalty)
    model = KINDS[kind](target, feature_penalty=penalties, **criterion | more)
    model.fit(X, y, weights, eras=eras)
    assert n_splits(model) > 0
    assert features_of(model) <= set(kept)
    predict = "predict_proba" if target == "binary" else "predict"
    by_hand = getattr(expected, predict)(X[:, kept])
    np.testing.assert_array_equal(getattr(model, predict)(X), by_hand)


@on_grid("kind name", [*KINDS], ["gain", "era", "time_robust"])
def test_a_mapping_is_the_array(kind, name):
    X, y, _, eras = make_data()
    frame, penalties = pd.DataFrame(X, columns=NAMES), [0.0, 0.3, 0.0, 2.0, 0.0]
    expected = KINDS[kind](**CRITERIA[name], feature_penalty=penalties)
    expected.fit(frame, y, eras=eras)
    series = pd.Series(penalties)
    for mapping in (
        {"b": 0.3, "d": 2}, {1: 0.3, np.int64(3): 2.0}, {"b": 0.3, 3: 2},
        series.sort_values(), series[series > 0], series.set_axis(NAMES)[::-1],
    ):  # fmt: skip
        model = KINDS[kind](**CRITERIA[name], feature_penalty=mapping)
        assert_same_trees(model.fit(frame, y, eras=eras), expected)
    for given in (tuple(penalties), series, np.array(penalties)):
        model = KINDS[kind](**CRITERIA[name], feature_penalty=given)
        assert_same_trees(model.fit(X, y, eras=eras), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_categories_come_first_to_the_trees(kind):
    X, y, _, eras = make_data()
    X = X[:, [1, 2, 0, 3, 4]]
    params = {"categorical_features": [2], "split_criterion": "era"}
    model = KINDS[kind](**params, feature_penalty=[0, 0, 9, 0, 0]).fit(X, y, eras=eras)
    assert 0 not in features_of(model) >= {1, 2}
    model = KINDS[kind](**params, feature_penalty={0: 9}).fit(X, y, eras=eras)
    assert 1 not in features_of(model) >= {0, 2}
    without = KINDS[kind](**params | {"categorical_features": [1]})
    expected = without.fit(X[:, 1:], y, eras=eras).predict(X[:, 1:])
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize(("penalties", "message"), [
    ([0, 0.1, -0.1, 0, 0], "of feature 2 is -0.1; penalties are numbers of 0 or more"),
    ([0, math.nan, 0, 0, 0], "of feature 1 is nan; penalties"),
    (["much", 0, 0, 0, 0], "of feature 0 is 'much'; penalties"),
    ({"b": -1}, "of feature 'b' is -1; penalties"),
    ({"b": None}, "of feature 'b' is None; penalties"),
    ([0, 0.1], r"has shape \(2,\), but X has 5 features: give one"),
    ([[0, 0, 0, 0, 1]], r"has shape \(1, 5\), but X has 5 features"),
    ({5: 1}, "has the feature 5, but the 5 features of X are counted from 0 to 4"),
    ({-1: 1}, "has the feature -1, but"),
    ({"price": 1}, "has the feature 'price', which is no column of X.$"),
    ({"long_nam": 1},
     r"has the feature 'long_nam', which is no column of X\. Did you mean"),
    ({True: 1}, "has the feature True, which is no column"),
    ({("a", "b", "c", "d", "long_name"): 1}, r"has the feature \('a',.* is no column"),
    (pd.Series([0, 1, 1], [1, 2, 1]), "names column 1 twice, by 1 and 1; leave one"),
    (pd.Series([0] * 5, range(1, 6)), "has the feature 5, but the 5 features of X"),
    ([1, 1, 2, 1, math.inf], "forbids all features: give one of them a penalty below"),
])  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_errors(kind, penalties, message):
    X, y, _, eras = make_data()
    frame = pd.DataFrame(X, columns=[*NAMES[:4], "long_name"])
    for criterion in ("gain", "era"):
        model = KINDS[kind](split_criterion=criterion, feature_penalty=penalties)
        with pytest.raises(ValueError, match=f"^feature_penalty {message}"):
            model.fit(frame, y, eras=eras)


def test_columns_without_names_weights_and_shares():
    X, y, _, eras = make_data()
    for make in KINDS.values():
        message = "'b', but X has no names of columns: count"
        with pytest.raises(ValueError, match=message):
            make(feature_penalty={"b": 1}).fit(X, y)
    weights = np.where(eras, 1.0, -1.0)
    ours(feature_penalty=np.zeros(5)).fit(X, y, weights)
    with pytest.raises(ValueError, match=r"feature_penalty=\{0: 0.1\} takes weights"):
        ours(feature_penalty={0: 0.1}).fit(X, y, weights)
    with pytest.raises(ValueError, match="max_features=4 is more than the 3 columns"):
        forest(max_features=4, feature_penalty={0: 1, 1: 1}).fit(X, y)
