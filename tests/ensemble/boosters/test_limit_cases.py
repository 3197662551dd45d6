"""What trees of a criterion may depend on, and limits in which it is another."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn._loss.loss import AbsoluteError, PinballLoss
from sklearn.tree import DecisionTreeRegressor

from helpers.criteria import COVERING, CRITERIA, ERA_CRITERIA, RATIO
from helpers.data import N_SAMPLES, make_data
from helpers.estimators import ours, stock
from helpers.grids import grid, on_grid, slow
from helpers.trees import assert_same_model, n_splits
from sklearn_era.criteria import Directional, Era, Gain, Invariant
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor

# Those that are the gain where there is nothing to compare.
GAIN_OF_ONE_ERA = {
    name: criterion for name, criterion in ERA_CRITERIA.items()
    if "time_robust" not in name and "min_impurity_decrease" not in criterion
}  # fmt: skip
COVERING_GAIN = {name: COVERING[name] for name in GAIN_OF_ONE_ERA if name in COVERING}
CONFIGURATIONS = [
    ("real", {"monotonic_cst": [0, 1, 0, 0, 0]}),
    ("binary", {"categorical_features": [0]}),
    ("multiclass", {"max_features": 0.5, "early_stopping": True}),
    ("count", {"loss": "poisson", "l2_regularization": 3.0}),
]


def assert_same_partitions(a, b, X) -> None:
    """Compare by the rows of each leaf: with empty bins, several bins part them so."""
    for (one,), (other,) in zip(a._predictors, b._predictors, strict=True):
        assert_array_equal(one.nodes["count"], other.nodes["count"])
        assert_array_equal(one.nodes["feature_idx"], other.nodes["feature_idx"])
    assert_allclose(a.predict(X), b.predict(X), rtol=1e-5, atol=1e-8)


@on_grid("configuration criterion", CONFIGURATIONS, GAIN_OF_ONE_ERA, every=13)
def test_one_era_is_gain(configuration, criterion):
    target, params = configuration
    X, y, weights, _ = make_data(target)
    model = ours(target, **criterion, **params)
    message = "(?s)eras holds the single era 2024w1 .* is the same as 'gain'"
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(X, y, weights, eras=["2024w1"] * len(y))
    assert [warning.filename for warning in caught] == [__file__]
    assert_same_model(model, stock(target, **params).fit(X, y, weights), X)


@on_grid("criterion", COVERING_GAIN, every=2)
def test_one_era_whose_sides_need_more_rows_is_gain_with_larger_leaves(criterion):
    X, y, _, _ = make_data()
    model = ours(min_samples_per_era=30, min_samples_leaf=5, **criterion)
    with pytest.warns(UserWarning, match="single era"):
        model.fit(X, y, eras=np.zeros(len(y)))
    assert_same_partitions(model, stock(min_samples_leaf=30).fit(X, y), X)
    # With it, one criterion has nothing to compare, and is the impurity.
    with pytest.warns(UserWarning, match="'time_robust' has nothing to compare"):
        ours(split_criterion="time_robust").fit(X, y, eras=np.zeros(len(y)))


# Of eras, at which scikit-learn's splitter does not look.
LIMITS = {"min_samples_per_era": 500, "min_era_coverage": 0.9}
GAIN_BY_ANOTHER_NAME = {
    name: LIMITS | {"split_criterion": Invariant(0, name)}
    for name in ("effect", "changing_rate", "ratio")
} | {
    "object": {"split_criterion": Gain()}, "blend": {"split_criterion": {"gain": 1.0}},
    "blend with a weight of 0": {"split_criterion": {"gain": 0.2, "era": 0}},
}  # fmt: skip


@on_grid(
    "configuration criterion with_eras", CONFIGURATIONS, GAIN_BY_ANOTHER_NAME,
    [False, True], every=5)  # fmt: skip
def test_gain_by_another_name_is_gain(configuration, criterion, with_eras):
    target, params = configuration
    X, y, weights, eras = make_data(target)
    model = ours(target, **criterion, validation_eras=None, **params)
    model.fit(X, y, weights, eras=eras if with_eras else None)
    assert_same_model(model, stock(target, **params).fit(X, y, weights), X)


@on_grid("kind sign", [Era, Directional], [-1, 1], every=2)
def test_largest_alphas_are_the_infinite_ones(kind, sign):
    X, y, weights, eras = make_data()
    criteria = (kind(boltzmann_alpha=sign * alpha) for alpha in (1e308, np.inf))
    fits = (ours(split_criterion=x).fit(X, y, weights, eras=eras) for x in criteria)
    assert_same_model(*fits, X)


@pytest.mark.parametrize("weighted", [False, True])
def test_least_decrease_is_that_of_decision_trees(weighted):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 20, size=(600, 4)).astype(float)
    y = X[:, 0] + 3 * np.sin(X[:, 1]) + rng.normal(size=600)
    weights, n_leaves = rng.uniform(0.5, 2, 600) if weighted else None, []
    for least in np.geomspace(1e-3, 10, 9):
        model = ours(min_impurity_decrease=least, learning_rate=1.0, max_iter=1,
                     max_leaf_nodes=None,
                     min_samples_leaf=15).fit(X, y, weights)  # fmt: skip
        tree = DecisionTreeRegressor(min_impurity_decrease=least, min_samples_leaf=15)
        tree.fit(X, y, weights)
        assert model._predictors[0][0].get_n_leaf_nodes() == tree.get_n_leaves()
        assert_allclose(model.predict(X), tree.predict(X), rtol=1e-4)
        n_leaves.append(tree.get_n_leaves())
    assert len(set(n_leaves)) > 6
    assert all(a >= b for a, b in itertools.pairwise(n_leaves))


WITH_HALF = CRITERIA | {"half of the eras": {
    "split_criterion": "directional", "min_samples_per_era": 6,
    "min_era_coverage": 0.5, "min_gain_share": 0.0}}  # fmt: skip
ON_TARGETS = grid(WITH_HALF, ["real", "binary"], every=4)
ON_TARGETS += [pytest.param(RATIO, "binary", id="ratio")]

WORDS = np.array(["a", "b", "ba", "c"])
# Kinds of labels beside those of project/test_era_labels.py.
RENAMINGS = {
    "int8": lambda eras: (eras * 7 - 11).astype(np.int8),
    "str": lambda eras: WORDS[eras],
    "string_dtype": lambda eras: WORDS.astype(np.dtypes.StringDType())[eras],
    "tuples": lambda eras: pd.Series([(2024, int(era)) for era in eras]),
    "pandas_category": lambda eras: pd.Series(WORDS[eras]).astype("category"),
    "pandas_int": lambda eras: pd.Series(eras, dtype="Int64", index=eras[::-1]),
    "pandas_string": lambda eras: pd.Series(WORDS[eras], dtype="string"),
}  # fmt: skip


def fit(data, criterion, target="real", **params):
    """Fit with leaves so large that no two features part the rows of a node alike."""
    X, y, weights, eras = data
    params = {"min_samples_leaf": 25, "max_iter": 4} | params
    model = ours(target, **criterion, **params).fit(X, y, weights, eras=eras)
    assert n_splits(model) > 0
    return model


@on_grid(
    "rename criterion", RENAMINGS, [CRITERIA["era, worst"], CRITERIA["directional"]],
    every=2)  # fmt: skip
def test_labels_matter_by_their_order_only(rename, criterion):
    X, y, weights, eras = make_data()
    X = X[:, 1:3]
    expected = fit((X, y, weights, eras), criterion, max_iter=2)
    renamed = fit((X, y, weights, rename(eras)), criterion, max_iter=2)
    assert_same_model(renamed, expected, X)


EXACT = {"max_iter": 1, "min_samples_leaf": 2, "max_leaf_nodes": None}
EXACT |= {"categorical_features": [3]}


def exact_data(target, seed=0):
    """Data of integers and halves, whose sums for one tree are exact in any order."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, size=(N_SAMPLES, 4)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    eras, y = rng.integers(0, 4, N_SAMPLES), np.repeat([1.0, -1.0], N_SAMPLES // 2)
    weights = np.tile(rng.choice([0.0, 0.5, 1.0, 2.0], N_SAMPLES // 2), 2)
    if target == "real":
        y *= np.tile(rng.integers(0, 4, N_SAMPLES // 2), 2)
        # An effect to find: rows of large X change places with rows of small X.
        order = np.argsort(np.argsort(np.nan_to_num(X[:, 0] + X[:, 1] * eras)))
        order = np.argsort(y, kind="stable")[order]
        y, weights = y[order], weights[order]
    else:
        y = y > 0
    return X, y, weights, eras


@pytest.mark.parametrize(("criterion", "target"), ON_TARGETS)
def test_order_of_rows_does_not_matter_to_the_last_bit(criterion, target):
    data = exact_data(target)
    expected = fit(data, criterion, target, **EXACT)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(N_SAMPLES)
        shuffled = fit([values[order] for values in data], criterion, target, **EXACT)
        assert_same_model(shuffled, expected, data[0])


@pytest.mark.parametrize("kind", [Regressor, slow(Classifier)])
@pytest.mark.parametrize("criterion", ["gain", slow("era")])
def test_weights_that_forbid_splits_are_named(kind, criterion):
    X, y, eras = make_data("binary" if kind is Classifier else "real")[:3]
    model, small = kind(max_iter=2, split_criterion=criterion), np.full(y.size, 1e-8)
    with pytest.warns(UserWarning, match="sample_weight is 1e-08 on average") as caught:
        model.fit(X, y, small, eras=eras)
    assert (len(caught), n_splits(model)) == (1, 0)
    assert n_splits(model.fit(X, y, small / small.mean(), eras=eras)) > 0


@pytest.mark.parametrize("loss", ["absolute_error", "quantile"])
@pytest.mark.parametrize("criterion", ["gain", slow("directional")])
@pytest.mark.parametrize("constraints", [[1, 0, 0, 0, 0], slow({"b": -1}), None])
def test_constraints_that_medians_break_are_named(loss, criterion, constraints):
    X, y, eras = make_data("real")[:3]
    X = pd.DataFrame(X[:, :5], columns=list("abcde"))
    model = Regressor(loss, quantile=0.8, max_iter=2, split_criterion=criterion,
                      monotonic_cst=constraints)  # fmt: skip
    if constraints is None:
        model.fit(X, y, eras=eras)
        return
    with pytest.warns(UserWarning, match="monotonic_cst is not kept with loss="):
        model.fit(X, y, eras=eras)


LOSSES = [AbsoluteError(), PinballLoss(quantile=0.056), PinballLoss(quantile=0.8)]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weights", [None, "real", "whole"])
@pytest.mark.parametrize("criterion", ["gain", Gain(splitter="era"), "era"])
def test_leaves_have_the_losss_own_constants(loss, weights, criterion):
    """To the bit, also where rows have equal residuals."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(250, 3)), rng.normal(size=250)
    X, y = np.tile(X, (2, 1)), np.tile(X[:, 0] + noise, 2)
    eras, n = rng.integers(0, 4, 500), 500
    weights = {"real": rng.uniform(0.1, 2, n), "whole": rng.poisson(1.0, n)}.get(
        weights
    )
    share = getattr(loss.closs, "quantile", None)
    model = Regressor("absolute_error" if share is None else "quantile", quantile=share)
    model.set_params(max_iter=1, learning_rate=1.0, split_criterion=criterion)
    model.fit(X, y, weights, eras=eras)
    predicted, start = model.predict(X), model._baseline_prediction.item()
    assert np.unique(predicted).size > 5
    for value in np.unique(predicted):
        own = predicted == value
        given = None if weights is None else weights[own].astype(float)
        assert value == start + loss.fit_intercept_only(y[own] - start, given)


@pytest.mark.parametrize("params", [
    {}, {"split_criterion": "era"}, {"split_criterion": Gain(splitter="era")},
    {"feature_penalty": [0.5, 0.0]}])  # fmt: skip
def test_categories_have_no_monotonic_constraints(params):
    X, y = np.random.default_rng(0).integers(0, 3, (2, 60, 2))
    model = Regressor(categorical_features=[0], monotonic_cst=[1, 0], **params)
    with pytest.raises(ValueError, match=r"^Categorical features cannot have monot"):
        model.fit(X, y[:, 0], eras=np.arange(60) % 3)
