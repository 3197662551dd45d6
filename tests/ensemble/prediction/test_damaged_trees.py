"""Trees that no fit makes: predictions refuse them, and read and write no memory."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from sklearn_era.ensemble import HistGradientBoostingClassifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor

N_ROWS = 700


def make_model(leaves, **parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(scale=30, size=(N_ROWS, 5)).round()
    X[:, 4] = np.abs(X[:, 4]) % 7
    y = X[:, 0] * X[:, 1] + 50 * X[:, 2] * (X[:, 4] % 2) + rng.normal(size=N_ROWS)
    model = Regressor(
        max_iter=3, max_leaf_nodes=leaves, min_samples_leaf=1, early_stopping=False,
        **{"categorical_features": [4]} | parameters,
    )  # fmt: skip
    return model.fit(X, y), X, y


def set_first_split(field, value, *, categorical=False):
    def spoil(tree):
        splits = tree.nodes["is_leaf"] == 0
        if categorical:
            splits &= tree.nodes["is_categorical"] == 1
            assert splits.any()
        tree.nodes[field][splits] = value

    return spoil


def mask(tree):
    tree.nodes = np.ma.masked_array(tree.nodes, mask=np.zeros(len(tree.nodes), bool))


def replace_nodes(make):
    def spoil(tree):
        tree.nodes = make(tree.nodes)

    return spoil


SPOILT = {
    "left_beyond": set_first_split("left", 2**31),
    "left_just_beyond": lambda tree: set_first_split("left", len(tree.nodes))(tree),
    "right_beyond": set_first_split("right", 2**32 - 1),
    "cycle": set_first_split("left", 0),
    "loop_on_the_right": set_first_split("right", 0),
    "feature": set_first_split("feature_idx", 5),
    "feature_far": set_first_split("feature_idx", 2**40),
    "feature_negative": set_first_split("feature_idx", -1),
    "categories": set_first_split("bitset_idx", 2**20, categorical=True),
    "masked": mask,
    "no_nodes": replace_nodes(lambda nodes: nodes[:0]),
    "strided": replace_nodes(lambda nodes: nodes.repeat(2)[::2]),
    "other_type": replace_nodes(lambda nodes: nodes["value"].copy()),
    "list": replace_nodes(lambda nodes: nodes.tolist()),
}
# Methods that walk down the trees, small or large.
WAYS = {
    "packed_small": (20, lambda model, X, y: model.predict(X)),
    "packed_large": (300, lambda model, X, y: model.predict(X)),
    "few_rows": (3000, lambda model, X, y: model.predict(X[:2])),
    "stages": (20, lambda model, X, y: list(model.staged_predict(X))),
    "partial_dependence": (
        20,
        lambda model, X, y: model._compute_partial_dependence_recursion(X[:, :1], [0]),
    ),
    "warm_start": (
        20,
        lambda model, X, y: model.set_params(warm_start=True, max_iter=4).fit(X, y),
    ),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
@pytest.mark.parametrize(("leaves", "walk"), WAYS.values(), ids=WAYS)
def test_a_damaged_tree_is_refused(leaves, walk, spoil):
    model, X, y = make_model(leaves)
    spoil(model._predictors[1][0])
    with pytest.raises(ValueError, match=r"^A tree of the model is damaged: .*; fit "):
        walk(model, X, y)


@pytest.mark.parametrize(("leaves", "walk"), WAYS.values(), ids=WAYS)
def test_categories_that_the_model_does_not_have_are_refused(leaves, walk):
    model, X, y = make_model(leaves, categorical_features=None)
    for (tree,) in model._predictors:
        set_first_split("is_categorical", 1)(tree)
    with pytest.raises(ValueError, match="is damaged: a split names a node, column or"):
        walk(model, X, y)


@pytest.mark.parametrize("n_trees", [0, 2, 60])
@pytest.mark.parametrize(("leaves", "walk"), WAYS.values(), ids=WAYS)
def test_trees_of_other_outputs_are_refused(leaves, walk, n_trees):
    model, X, y = make_model(leaves)
    model._predictors[1] = model._predictors[1] * n_trees
    message = f"^An iteration of the model has {n_trees} trees in place of 1, as while"
    with pytest.raises(ValueError, match=message):
        walk(model, X, y)


@pytest.mark.parametrize("leaves", [20, 3000])
@pytest.mark.parametrize("n_columns", [1, 4, 6, 4000])
def test_other_columns_than_those_of_the_bins_are_refused(leaves, n_columns):
    model, _, _ = make_model(leaves, categorical_features=None)
    model.n_features_in_ = model._n_features = n_columns
    rows = np.zeros((2, n_columns))
    message = (
        rf"^X is of shape \(2, {n_columns}\), in place of 2 rows and the 5 columns"
    )
    for walk in (model.predict, lambda rows: list(model.staged_predict(rows))):
        with pytest.raises(ValueError, match=message):
            walk(rows)


@pytest.mark.parametrize("leaves", [20, 300])
def test_nodes_that_are_mapped_into_memory_are_those_of_a_model(leaves, tmp_path):
    """As joblib hands them to its workers."""
    model, X, _ = make_model(leaves)
    before = model.predict(X)
    for i, (tree,) in enumerate(model._predictors):
        np.save(tmp_path / f"{i}.npy", tree.nodes)
        tree.nodes = np.load(tmp_path / f"{i}.npy", mmap_mode="r")
    assert np.array_equal(model.predict(X), before)
    assert np.array_equal(model.predict(X[:1]), before[:1])


class Changing(TreePredictor):
    """A tree that another thread replaces by larger ones, each time it is looked at."""

    @property
    def nodes(self):
        given, self.given = self.given, np.concatenate([self.given] * 9)
        return given

    @nodes.setter
    def nodes(self, nodes):
        self.given = nodes


@pytest.mark.parametrize("leaves", [20, 300, 3000])
def test_trees_are_packed_as_they_were_counted(leaves):
    model, X, _ = make_model(leaves)
    before = model.predict(X)
    model._predictors = [
        [Changing(tree.nodes, tree.binned_left_cat_bitsets, tree.raw_left_cat_bitsets)]
        for (tree,) in model._predictors
    ]
    assert np.array_equal(model.predict(X), before)


def test_trees_that_are_added_meanwhile_are_not_of_the_call():
    model, X, _ = make_model(20)
    before = model.predict(X)

    class Growing(list):
        def __iter__(self):
            trees = list(self[:])
            self.extend(self[:])
            return iter(trees)

    model._predictors = Growing(model._predictors)
    assert np.array_equal(model.predict(X), before)


def test_an_iteration_that_is_not_whole_predicts_nothing():
    X = np.random.default_rng(0).normal(size=(300, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HistGradientBoostingClassifier(max_iter=2).fit(X, np.arange(300) % 3)
    model._predictors[1].pop()
    with pytest.raises(
        ValueError, match="has 2 trees in place of 3, as while it is fi"
    ):
        model.predict(X)
