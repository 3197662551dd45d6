"""Trees are added up to the same bits as scikit-learn's, whatever way rows go down."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from threadpoolctl import threadpool_limits

from sklearn_era.ensemble import (
    EraForestRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_era.ensemble._splitting.lanes.instruction_sets import (
    available_levels,
    lane_module,
)

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


def make_model(leaves, cls=HistGradientBoostingRegressor, missing=False, **parameters):
    X, y = make_data(missing=missing)
    parameters = {"max_iter": 4, "early_stopping": False, **parameters}
    if cls is HistGradientBoostingClassifier:
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
    add = lane_module("sklearn_era.ensemble._prediction.trees").add_trees
    add(X, model._predictors, *bitsets, raw, n_threads)
    return raw


def assert_same(model, X, **kwargs):
    assert_array_equal(by_all_trees(model, X, **kwargs), by_each_tree(model, X))


@LEAVES
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("level", available_levels())
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


@pytest.mark.parametrize("leaves", [31, 300])
@pytest.mark.parametrize("dtype", ["bool", "i1", "u1", "i2", "f4", "f8"])
def test_types_and_layouts(leaves, dtype):
    model = make_model(leaves)
    X = np.abs(make_data(200)[0]).astype(dtype)
    wide = np.zeros((400, 15), dtype)
    wide[::2, ::3] = X
    for rows in (X, np.asfortranarray(X), X[::-1], X[:, ::-1], wide[::2, ::3]):
        assert_same(model, rows)
    X.flags.writeable = False
    assert_same(model, X)


@pytest.mark.parametrize("leaves", [31, 300])
@pytest.mark.parametrize("missing", [False, True])
def test_categories_known_and_unknown(leaves, missing):
    model = make_model(leaves, missing=missing, categorical_features=[4, 3])
    # As the encoder gives them, and as it never does.
    X = model._preprocess_X(make_data(300, missing)[0], reset=False)
    assert_same(model, X)
    X[:100, 1] = np.resize([-1.0, -0.5, 6.5, 7.0, 31.0, 32.0, 255.0, np.nan], 100)
    assert_same(model, X)


@pytest.mark.parametrize("leaves", [8, 300])
@pytest.mark.parametrize("cls", [HistGradientBoostingClassifier, EraForestRegressor])
def test_classes_and_forests(leaves, cls):
    forest = {"n_estimators": 3, "random_state": 0}
    model = cls(max_leaf_nodes=leaves, min_samples_leaf=1)
    model.set_params(**(forest if cls is EraForestRegressor else {"max_iter": 3}))
    X, y = make_data()
    model.fit(X, np.digitize(y, [-500, 500]))
    assert_same(model, X)


@LEAVES
def test_any_number_of_threads(leaves):
    model = make_model(leaves, max_iter=60)
    X, _ = make_data(1500)
    with threadpool_limits(3, user_api="openmp"):
        for n_threads in (1, 2, 3):
            assert_same(model, X, n_threads=n_threads)


def test_trees_are_those_of_the_moment():
    X, y = make_data()
    model = make_model(31, warm_start=True)
    size = len(pickle.dumps(model))
    before = model.predict(X)
    assert len(pickle.dumps(model)) == size
    del model._predictors[2:]
    assert not np.array_equal(model.predict(X), before)
    assert_array_equal(model.predict(X), by_each_tree(model, X)[:, 0])
    model._predictors[0][0].nodes["value"] *= 2
    assert_array_equal(model.predict(X), by_each_tree(model, X)[:, 0])
    model.set_params(max_iter=6).fit(X, y)
    assert_array_equal(model.predict(X), list(model.staged_predict(X))[-1])


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("categorical_features", [None, [4, 3]])
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
    leaves = [0]
    lopsided = draw(st.booleans())
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
