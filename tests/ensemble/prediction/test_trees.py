"""Trees add up to scikit-learn's bits; damaged ones are refused, touching no memory."""

import pickle
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from threadpoolctl import threadpool_limits

from helpers.grids import on_grid
from sklearn_era.ensemble import EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._splitting.lanes import instruction_sets

# Bits for 64 leaves, and nodes for more.
LEAVES = pytest.mark.parametrize("leaves", [2, 31, 64, 65, 300])


def make_data(n_samples=700, missing=False):
    rng = np.random.default_rng(0)
    X = rng.normal(scale=30, size=(n_samples, 5)).round()
    X[:, 4] = np.abs(X[:, 4]) % 7
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
        X[:, 3] = np.where(X[:, 0] > 0, np.nan, 1.0)  # a split on missing alone
    y = np.nan_to_num(X[:, 0] * X[:, 1] + 50 * X[:, 2] * (X[:, 4] % 2) + 99 * X[:, 3])
    return X, y + rng.normal(size=n_samples)


def make_model(*args, **kwargs):
    """A model of one's own; each is fitted once."""
    return deepcopy(fit_model(*args, **kwargs))


@cache
def fit_model(leaves, cls=Regressor, missing=False, **parameters):
    X, y = make_data(missing=missing)
    of_boosters = {"max_iter": 4, "early_stopping": False}
    parameters = (of_boosters if cls is not EraForestRegressor else {}) | parameters
    if cls is not Regressor:
        y = np.digitize(y, [-500, 500])
    return cls(max_leaf_nodes=leaves, min_samples_leaf=1, **parameters).fit(X, y)


def by_each_tree(model, X):
    """scikit-learn's sum."""
    raw = np.zeros((len(X), model.n_trees_per_iteration_), order="F")
    raw += model._baseline_prediction
    X = np.asarray(X, dtype=np.float64)
    model._predict_iterations(X, model._predictors, raw, False, 1)
    return raw


def by_all_trees(model, X, n_threads=1):
    """Ours, of encoded rows."""
    raw = np.zeros((len(X), model.n_trees_per_iteration_), order="F")
    raw += model._baseline_prediction
    bitsets = model._bin_mapper.make_known_categories_bitsets()
    trees = instruction_sets.lane_module("sklearn_era.ensemble._prediction.trees")
    trees.add_trees(X, model._predictors, *bitsets, raw, n_threads)
    return raw


def assert_same(model, X, **kwargs):
    assert_array_equal(by_all_trees(model, X, **kwargs), by_each_tree(model, X))


@LEAVES
@on_grid("missing level", [False, True], instruction_sets.available_levels())
def test_any_number_of_leaves(leaves, missing, level, monkeypatch):
    monkeypatch.setenv("SKLEARN_ERA_X86_LEVEL", level)
    model = make_model(leaves, missing=missing)
    X, _ = make_data(300, missing)
    X[::7, 1] = np.inf
    X[1::7, 2] = -np.inf
    assert_same(model, X)
    X[3::5, 0] = np.nan  # missing, though not in training
    for n_samples in (300, 129, 128, 80):
        assert_same(model, X[:n_samples])
    X, _ = make_data(300)
    X[0, :3] = np.nan  # in the first tile alone
    assert_same(model, X)


@on_grid("leaves dtype", [31, 300], ["bool", "i1", "u1", "i2", "f4", "f8"])
def test_types_and_layouts(leaves, dtype):
    model, X = make_model(leaves), np.abs(make_data(200)[0]).astype(dtype)
    wide = np.zeros((400, 15), dtype)
    wide[::2, ::3] = X
    for rows in (X, np.asfortranarray(X), X[::-1], X[:, ::-1], wide[::2, ::3]):
        assert_same(model, rows)
    X.flags.writeable = False
    assert_same(model, X)


@on_grid("leaves missing", [31, 300], [False, True])
def test_categories_known_and_unknown(leaves, missing):
    model = make_model(leaves, missing=missing, categorical_features=(4, 3))
    # As the encoder gives them, and as it never does.
    X = model._preprocess_X(make_data(300, missing)[0], reset=False)
    assert_same(model, X)
    X[:100, 1] = np.resize([-1.0, -0.5, 6.5, 7.0, 31.0, 32.0, 255.0, np.nan], 100)
    assert_same(model, X)


@pytest.mark.parametrize("leaves", [8, 300])
@pytest.mark.parametrize(("cls", "parameters"), [
    (Classifier, {"max_iter": 3}),
    (EraForestRegressor, {"n_estimators": 3, "random_state": 0})])  # fmt: skip
def test_classes_and_forests(leaves, cls, parameters):
    assert_same(make_model(leaves, cls, **parameters), make_data()[0])


@LEAVES
def test_any_number_of_threads(leaves):
    model = make_model(leaves, max_iter=20)
    X, _ = make_data(1500)
    with threadpool_limits(3, user_api="openmp"):
        for n_threads in (1, 2, 3):
            assert_same(model, X, n_threads=n_threads)


def test_trees_are_those_of_the_moment():
    X, y = make_data()
    model = make_model(31, warm_start=True)
    size, before = len(pickle.dumps(model)), model.predict(X)
    assert len(pickle.dumps(model)) == size
    del model._predictors[2:]
    assert not np.array_equal(model.predict(X), before)
    assert_array_equal(model.predict(X), by_each_tree(model, X)[:, 0])
    model._predictors[0][0].nodes["value"] *= 2
    assert_array_equal(model.predict(X), by_each_tree(model, X)[:, 0])
    model.set_params(max_iter=6).fit(X, y)
    assert_array_equal(model.predict(X), list(model.staged_predict(X))[-1])


@on_grid("missing categorical_features", [False, True], [None, (4, 3)])
def test_few_rows_walk_down_large_trees(missing, categorical_features):
    model = make_model(3000, missing=missing, categorical_features=categorical_features)
    X = model._preprocess_X(make_data(missing=missing)[0], reset=False)
    X[5, 1:3] = -1.0, np.nan
    n_nodes = min(len(tree.nodes) for (tree,) in model._predictors)
    for n_samples in (1, 2, (n_nodes - 256) // 8 - 1):
        assert n_samples > 0
        with threadpool_limits(2, user_api="openmp"):
            assert_same(model, X[:n_samples], n_threads=2)
    for rows in (X[:2].astype(np.float32), np.asfortranarray(X[:2])):
        assert_same(model, rows)


@st.composite
def random_trees(draw):
    """A tree of any shape: each leaf in turn is split, or left."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nodes = np.zeros(2 * draw(st.integers(0, 100)) + 1, PREDICTOR_RECORD_DTYPE)
    nodes["is_leaf"] = True
    nodes["value"] = rng.normal(size=len(nodes))
    leaves, lopsided = [0], draw(st.booleans())
    for left in range(1, len(nodes), 2):
        node = nodes[leaves.pop(-1 if lopsided else rng.integers(len(leaves)))]
        node["is_leaf"] = False
        node["feature_idx"] = rng.integers(3)
        node["num_threshold"] = rng.choice([-np.inf, -1, -0.0, 0.5, 2, np.inf, np.nan])
        node["missing_go_to_left"] = rng.integers(2)
        node["left"], node["right"] = left, left + 1
        leaves += [left, left + 1]
    return TreePredictor(nodes, *np.zeros((2, 0, 8), np.uint32))


@given(random_trees(), st.sampled_from(["f4", "f8"]), st.integers(0, 2**32 - 1))
def test_random_trees(tree, dtype, seed):
    model = make_model(2, max_iter=1)
    model._predictors = [[tree], [tree]]
    values = [-np.inf, -2, -1, -0.0, 0.0, 0.5, 1, 2, 3, np.inf, np.nan]
    X = np.random.default_rng(seed).choice(values, size=(100, 5)).astype(dtype)
    assert_same(model, X)


def set_first_split(field, value, *, categorical=False):
    def spoil(tree):
        splits = tree.nodes["is_leaf"] == 0
        if categorical:
            splits &= tree.nodes["is_categorical"] == 1
            assert splits.any()
        tree.nodes[field][splits] = value

    return spoil


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
    "masked": replace_nodes(lambda nodes: np.ma.masked_array(nodes, mask=False)),
    "no_nodes": replace_nodes(lambda nodes: nodes[:0]),
    "strided": replace_nodes(lambda nodes: nodes.repeat(2)[::2]),
    "other_type": replace_nodes(lambda nodes: nodes["value"].copy()),
    "list": replace_nodes(lambda nodes: nodes.tolist()),
}
# Methods that walk down the trees, small or large.
WAYS = {
    "packed_small": (20, lambda est, X: est.predict(X)),
    "packed_large": (300, lambda est, X: est.predict(X)),
    "few_rows": (3000, lambda est, X: est.predict(X[:40])),
    "stages": (20, lambda est, X: list(est.staged_predict(X))),
    "partial_dependence":
        (20, lambda est, X: est._compute_partial_dependence_recursion(X[:, :1], [0])),
    "warm_start":
        (20, lambda est, X: est.set_params(warm_start=True, max_iter=5).fit(X, X.T[0])),
}  # fmt: skip
BY_ALL_WAYS = pytest.mark.parametrize(("leaves", "walk"), WAYS.values(), ids=WAYS)


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
@BY_ALL_WAYS
def test_a_damaged_tree_is_refused(leaves, walk, spoil):
    model = make_model(leaves, categorical_features=(4,))
    spoil(model._predictors[1][0])
    with pytest.raises(ValueError, match=r"^A tree of the model is damaged: .*; fit "):
        walk(model, make_data()[0])


@BY_ALL_WAYS
def test_categories_and_outputs_that_the_model_does_not_have_are_refused(leaves, walk):
    model = make_model(leaves)
    for (tree,) in model._predictors:
        set_first_split("is_categorical", 1)(tree)
    with pytest.raises(ValueError, match="is damaged: a split names a node, column or"):
        walk(model, make_data()[0])
    for n_trees in (0, 2, 60):
        model = make_model(leaves)
        model._predictors[1] = model._predictors[1] * n_trees
        message = f"^An iteration of the model has {n_trees} trees in place of 1, "
        message += "as while"
        with pytest.raises(ValueError, match=message):
            walk(model, make_data()[0])


@on_grid("leaves n_columns", [20, 3000], [1, 4, 6, 4000])
def test_other_columns_than_those_of_the_bins_are_refused(leaves, n_columns):
    model = make_model(leaves)
    model.n_features_in_ = model._n_features = n_columns
    rows = np.zeros((2, n_columns))
    message = rf"^X is of shape \(2, {n_columns}\), in place of 2 rows and the 5 col"
    for walk in (model.predict, lambda rows: list(model.staged_predict(rows))):
        with pytest.raises(ValueError, match=message):
            walk(rows)


@pytest.mark.parametrize("leaves", [20, 300])
def test_nodes_that_are_mapped_into_memory_are_those_of_a_model(leaves, tmp_path):
    """As joblib hands them to its workers."""
    model, X = make_model(leaves, categorical_features=(4,)), make_data()[0]
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
    model, X = make_model(leaves, categorical_features=(4,)), make_data()[0]
    before = model.predict(X)
    model._predictors = [
        [Changing(tree.nodes, tree.binned_left_cat_bitsets, tree.raw_left_cat_bitsets)]
        for (tree,) in model._predictors
    ]
    assert np.array_equal(model.predict(X), before)


def test_trees_that_are_added_meanwhile_are_not_of_the_call():
    model, X = make_model(20), make_data()[0]
    before = model.predict(X)

    class Growing(list):
        def __iter__(self):
            trees = list(self[:])
            self.extend(self[:])
            return iter(trees)

    model._predictors = Growing(model._predictors)
    assert np.array_equal(model.predict(X), before)
