"""Forests that grow on: as one fit, or not at all."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from helpers.forests import classifier, make_classes, make_data, regressor
from helpers.trees import assert_same_trees, trees_of

# With few trees, some row is in every bag.
pytestmark = pytest.mark.filterwarnings("ignore:.*were drawn for every:UserWarning")


@pytest.mark.parametrize("bootstrap", ["rows", "within_eras", "whole_eras", False])
def test_two_fits_are_one(bootstrap):
    X, y, eras = make_data(missing=0.1)
    parameters = {"bootstrap": bootstrap, "split_criterion": "era", "max_features": 2,
                  "oob_score": bootstrap is not False, "n_estimators": 14}  # fmt: skip
    whole = regressor(**parameters).fit(X, y, eras=eras)
    parts = regressor(**parameters | {"n_estimators": 9}, warm_start=True)
    parts.fit(X, y, eras=eras)
    first = parts._predictors[0][0].nodes.copy()
    parts.set_params(n_estimators=14).fit(X, y, eras=eras)
    assert parts.n_iter_ == 14
    for tree, other in zip(trees_of(whole), trees_of(parts), strict=True):
        for name in ("feature_idx", "bin_threshold", "count", "is_leaf"):
            assert_array_equal(tree.nodes[name], other.nodes[name])
    assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-12)
    assert_allclose(parts._predictors[0][0].nodes["value"] * 14, first["value"] * 9)
    if bootstrap is not False:
        assert_allclose(parts.oob_prediction_, whole.oob_prediction_, rtol=1e-12)


def test_the_seed_of_the_first_fit_is_kept():
    X, y, _ = make_data()
    parts = regressor(random_state=np.random.RandomState(0), warm_start=True)
    parts.set_params(n_estimators=2).fit(X, y).set_params(n_estimators=4).fit(X, y)
    whole = regressor(random_state=np.random.RandomState(0), n_estimators=4).fit(X, y)
    assert_allclose(parts.predict(X), whole.predict(X))
    # Without a warm start, a fit begins anew.
    assert_same_trees(regressor().fit(X, y + 1000).fit(X, y), regressor().fit(X, y))


def test_a_warm_start_can_change_how_trees_grow():
    X, y, eras = make_data()
    forest = regressor(warm_start=True, n_estimators=3).fit(X, y)
    forest.set_params(split_criterion="era", max_depth=2, n_estimators=5)
    forest.fit(X, y, eras=eras)
    depths = [int(tree.nodes["depth"].max()) for tree in trees_of(forest)]
    assert min(depths[:3]) > 2
    assert max(depths[3:]) == 2
    before = forest.predict(X)
    with pytest.warns(UserWarning, match=r"adds no tree: there are n_estimators=5"):
        forest.fit(X, y, eras=eras)
    assert_allclose(forest.predict(X), before, rtol=1e-15)
    # Other rows are fine without an out-of-bag score.
    forest.set_params(bootstrap="within_eras", n_estimators=9)
    forest.fit(X[:100], y[:100], eras=eras[:100])
    assert forest.n_iter_ == 9


OTHER_CATEGORIES = r"X has other categorical features, or other categories in them"
OTHER_DRAWS = r"oob_score=True draws the rows .* but the rows or eras, or bootstrap"
OTHER_PARAMETERS = [
    ({"n_estimators": 5}, "n_estimators=5 is less than the 6 trees that warm_start="),
    ({"categorical_features": ["c"]}, OTHER_CATEGORIES),
    ({"bootstrap": "rows"}, OTHER_DRAWS), ({"max_samples": 0.5}, OTHER_DRAWS),
]  # fmt: skip
OTHER_DATA = {
    "columns": (lambda X, y, eras: (X[["b", "c", "d"]], y, eras),
                "X has 3 columns, but the trees that warm_start=True keeps were"),
    "categories": (lambda X, y, eras: (X.assign(d=X["d"].replace(0, 9)), y, eras),
                   OTHER_CATEGORIES),
    "rows": (lambda X, y, eras: (X[:200], y[:200], eras[:200]), OTHER_DRAWS),
    "order": (lambda X, y, eras: (X[::-1], y[::-1], eras), OTHER_DRAWS),
    "values": (lambda X, y, eras: (X.assign(a=np.roll(X["a"], 1)), y, eras),
               OTHER_DRAWS),
    "targets": (lambda X, y, eras: (X, np.roll(y, 1), eras), OTHER_DRAWS),
    "eras": (lambda X, y, eras: (X, y, eras[::-1]), OTHER_DRAWS),
    "bins": (lambda X, y, eras: (X.assign(a=X["a"] * 2), y, eras), OTHER_DRAWS),
    "missing_target": (lambda X, y, eras: (X, np.where(y == "mid", np.nan, 1.0), eras),
                       "Input y contains NaN"),
    "eras_too_short": (lambda X, y, eras: (X, y, eras[1:]), "eras has 239 labels, but"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "spoil", "message"), [
    *((change, lambda *data: data, text) for change, text in OTHER_PARAMETERS),
    *(pytest.param({}, *case, id=name) for name, case in OTHER_DATA.items()),
])  # fmt: skip
def test_what_does_not_go_with_the_trees_there_are(change, spoil, message):
    """And the forest of before is left as it was."""
    X, y, eras = make_data()
    frame, y = pd.DataFrame(X, columns=list("abcd")), make_classes(y)
    parameters = {"categorical_features": ["d"], "bootstrap": "within_eras"}
    forest = classifier(warm_start=True, oob_score=True, **parameters)
    forest.fit(frame, y, eras=eras)
    names, before = set(vars(forest)), forest.predict_proba(frame)
    forest.set_params(**{"n_estimators": 8} | change)
    X_other, y_other, eras_other = spoil(frame, y, eras)
    with pytest.raises((ValueError, TypeError), match=message):
        forest.fit(X_other, y_other, eras=eras_other)
    assert set(vars(forest)) == names
    assert_array_equal(forest.predict_proba(frame), before)
    forest.set_params(n_estimators=8, max_samples=None, **parameters)
    assert forest.fit(frame, y, eras=eras).n_iter_ == 8


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_rows_are_drawn_again_where_a_threshold_is_no_number():
    """As between the infinities."""
    X, y = np.array([[-np.inf], [np.inf]] * 30), np.arange(60.0)
    forest = regressor(n_estimators=5, warm_start=True, oob_score=True).fit(X, y)
    assert np.isnan(forest._bin_mapper.bin_thresholds_[0]).any()
    assert len(forest.set_params(n_estimators=6).fit(X, y)._predictors) == 6
