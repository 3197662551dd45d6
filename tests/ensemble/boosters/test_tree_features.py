"""`colsample_bytree`: the features of a tree, drawn before histograms are built."""

import numpy as np
import pytest

from helpers.data import make_data
from helpers.estimators import ours
from helpers.grids import on_grid
from helpers.trees import trees_of
from oracle.reference import check_fit
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._boosters import hooks, tree_features
from sklearn_era.ensemble._boosters.tree_features import draw_tree_features
from sklearn_era.ensemble._splitting.tree_grower import EraTreeGrower


def make_wide_data(target="real", n_features=12):
    """As `make_data`, with more columns, each of some use."""
    X, y, weights, eras = make_data(target)
    rng = np.random.default_rng(1)
    more = X[:, rng.integers(1, 5, n_features - 5)]
    more = more + rng.normal(size=more.shape)
    return np.column_stack([X, more]), y, weights, eras


def fitted(data, target="real", **params):
    X, y, weights, eras = data
    model = ours(target, **{"max_leaf_nodes": 6, "max_bins": 16} | params)
    return model.fit(X, y, weights, eras=eras)


def features_of(tree):
    return set(tree.nodes[tree.nodes["is_leaf"] == 0]["feature_idx"].tolist())


@pytest.fixture
def growth(monkeypatch):
    """Features allowed to each grown tree, as a whole and at each node."""
    grown = []

    class Recorder:
        def __init__(self, *args, **kwargs):
            self.allowed_at_nodes = []
            self.sets = kwargs["interaction_cst"]
            grown.append(self)
            super().__init__(*args, **kwargs)

    class Plain(Recorder, tree_features.SortedFeaturesGrower):
        def _compute_best_split_and_push(self, node):
            super()._compute_best_split_and_push(node)
            self.allowed_at_nodes.append(node.allowed_features.tolist())

    class OfEras(Recorder, EraTreeGrower):
        def grow(self):
            super().grow()
            allowed = [features.tolist() for features, _ in self.features.allowed]
            self.allowed_at_nodes += allowed

    monkeypatch.setattr(hooks, "SortedFeaturesGrower", Plain)
    monkeypatch.setattr(hooks, "EraTreeGrower", OfEras)
    return grown


@on_grid("groups share", [None, [{0, 1}, {1, 2, 3}]], [1.0, 0.8])
def test_generator_is_left_alone_where_all_features_are_drawn(share, groups):
    rng = np.random.default_rng(0)
    assert draw_tree_features(rng, 4, share, groups) is groups
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state


def test_classes_of_an_iteration_draw_apart(growth):
    model = fitted(make_wide_data("multiclass"), "multiclass", colsample_bytree=0.25)
    assert [len(trees) for trees in model._predictors] == [3] * 5
    for tree, grown in zip(trees_of(model), growth, strict=True):
        assert features_of(tree) <= grown.sets[0]
    draws = [grown.sets[0] for grown in growth]
    assert any(len(set(draws[i : i + 3])) == 3 for i in range(0, 15, 3))
    # A single feature a tree.
    model = fitted(make_wide_data(), colsample_bytree=0.01, max_iter=20)
    assert all(len(features_of(tree)) <= 1 for tree in trees_of(model))
    assert len(set().union(*map(features_of, trees_of(model)))) > 4


@on_grid("interaction_cst criterion", {
    "none": None, "two groups": [range(1000), range(800, 2000)],
}, ["gain", "era"], every=2)  # fmt: skip
def test_of_equal_features_drawn_the_first_is_used(criterion, interaction_cst, growth):
    """Though a set of two hundred integers among two thousand is in no order."""
    effect = np.random.default_rng(0).integers(0, 5, 200).astype(float)
    X = np.tile(effect[:, np.newaxis], 2000)
    model = Regressor(split_criterion=criterion, colsample_bytree=0.1, max_iter=3,
                      max_leaf_nodes=4, interaction_cst=interaction_cst,
                      random_state=0)  # fmt: skip
    model.fit(X, effect, eras=np.arange(200) % 2)
    sets = [set().union(*grown.sets) for grown in growth]
    assert any(list(drawn) != sorted(drawn) for drawn in sets)
    for tree, drawn, grown in zip(trees_of(model), sets, growth, strict=True):
        assert min(drawn) in features_of(tree)
        assert features_of(tree) == {min(drawn)} or interaction_cst is not None
        assert all(a == sorted(a) for a in grown.allowed_at_nodes)
        if interaction_cst is None:
            assert all(set(a) == drawn for a in grown.allowed_at_nodes)


@pytest.mark.parametrize("criterion", ["gain", "directional"])
def test_features_of_a_split_are_drawn_from_those_of_the_tree_in_order(criterion):
    X = np.random.default_rng(0).normal(size=(90, 200)).round(1)
    y, eras = X[:, ::2].sum(axis=1), np.arange(90) % 3
    model = Regressor(split_criterion=criterion, colsample_bytree=0.1, max_features=0.5,
                      max_iter=3, max_leaf_nodes=3, max_bins=8, early_stopping=False,
                      random_state=0)  # fmt: skip
    assert check_fit(model.fit(X, y, eras=eras), X, y, eras).n_splits == 6
