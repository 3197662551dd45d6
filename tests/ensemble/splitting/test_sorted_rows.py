"""A tree whose small nodes are grown apart is the one that the grower makes alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from helpers import grown_trees
from helpers.criteria import DEVIATIONS
from helpers.grids import on_grid
from helpers.grown_trees import FULL, assert_same_tree, grow, make_rows, with_categories
from sklearn_era.ensemble._forests.tree_grower import ForestTreeGrower, TreeLimits
from sklearn_era.ensemble._splitting.sorted_rows.grower import MAX_SMALL_ROWS

ROWS = st.fixed_dictionaries({
    "n_eras": st.integers(1, 50), "n_bins": st.sampled_from([2, 3, 10, 30, 255]),
    "n_features": st.integers(1, 4), "missing": st.sampled_from([0.0, 0.02, 0.5]),
    "has_weights": st.booleans(), "seed": st.integers(0, 1000)})  # fmt: skip
LIMITS = st.builds(
    TreeLimits, max_depth=st.none() | st.integers(1, 6), max_leaf_nodes=st.none(),
    min_samples_leaf=st.integers(1, 20), min_gain_to_split=st.sampled_from([0.0, 0.1]),
    l2_regularization=st.sampled_from([0.0, 1.5]), max_features=st.none())  # fmt: skip


@settings(max_examples=3 * settings().max_examples)
@given(
    criterion=st.sampled_from(sorted(grown_trees.CRITERIA)), shape=ROWS, limits=LIMITS,
    has_categories=st.booleans(), coverage=st.floats(0.02, 1.0),
    min_samples=st.sampled_from([1, 2, 3, 0.1]), is_gain=st.booleans(),
    # All different, as the last feature is a copy, which should not tie.
    penalties=st.none() | st.permutations([0.0, 0.01, 0.3, 0.95]),
    # Below the root, and the root itself.
    small_node_rows=st.sampled_from([50, MAX_SMALL_ROWS]),
)  # fmt: skip
def test_tree_is_the_one_without_small_nodes(
    criterion, shape, has_categories, limits, coverage, min_samples, penalties, is_gain,
    small_node_rows):  # fmt: skip
    if criterion in DEVIATIONS:
        shape = shape | {"has_weights": False}
    rows = make_rows(200, is_binary=criterion == "invariant, ratio", **shape)
    if has_categories:
        rows = with_categories(rows)
    params = {"min_era_coverage": coverage, "min_samples_per_era": min_samples}
    if penalties is not None:
        params["penalties"] = penalties[: shape["n_features"]]
        criterion = None if is_gain else criterion
    expected = grow(rows, criterion, limits, small_node_rows=0, **params)
    params["small_node_rows"] = small_node_rows
    assert_same_tree(grow(rows, criterion, limits, **params), expected)


@pytest.mark.parametrize("criterion", [None, "era", "time_robust", "invariant", "vrex"])
def test_weights_that_round_change_no_more_than_the_last_digits(criterion):
    rows = make_rows(n_rows=500, n_features=4, n_bins=255)
    rng = np.random.default_rng(0)
    hessians = rng.lognormal(sigma=2.0, size=500).astype(np.float32)
    target = rng.normal(size=500) + rows.X_binned[:, 0] / 100
    rows = replace(rows, target=target, hessians=hessians)
    # Leaves of so many rows that no two features split them in the same way.
    limits = FULL._replace(min_samples_leaf=12)
    expected = grow(rows, criterion, limits, small_node_rows=0)
    tree = grow(rows, criterion, limits)
    assert tree.nodes.size > 20
    for name in ("left", "right", "feature_idx", "bin_threshold", "count", "depth"):
        assert_array_equal(tree.nodes[name], expected.nodes[name])
    for name in ("value", "gain"):
        one, other = tree.nodes[name], expected.nodes[name]
        assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@on_grid("criterion small_node_rows", [None, "era", "invariant"], [0, MAX_SMALL_ROWS])
def test_pure_nodes_are_not_split(criterion, small_node_rows):
    rows = make_rows(n_rows=300)
    # Multiples of 0.1 do not add up exactly, and sides of a split seem to differ.
    rows = replace(rows, target=0.1 * (rows.X_binned[:, 0] > 30))
    tree = grow(rows, criterion, small_node_rows=small_node_rows)
    assert tree.nodes.size == 3
    rows = replace(rows, target=np.full(300, 0.1))
    tree = grow(rows, criterion, small_node_rows=small_node_rows)
    assert (tree.nodes.size, tree.nodes["value"][0]) == (1, pytest.approx(0.1))
    if criterion is None:
        hessians = np.random.default_rng(0).lognormal(size=300).astype(np.float32)
        rows = replace(rows, hessians=hessians)
        assert grow(rows, small_node_rows=small_node_rows).nodes.size == 1


def test_weight_in_any_unit_makes_the_same_splits():
    rows = make_rows(n_rows=300, has_weights=True)
    tiny = replace(rows, hessians=rows.hessians * 2.0**-40)
    for criterion in (None, "era"):
        one, other = grow(rows, criterion).nodes, grow(tiny, criterion).nodes
        for name in ("feature_idx", "bin_threshold", "count"):
            assert_array_equal(one[name], other[name])


def test_nodes_draw_their_features_by_the_generator():
    target = np.random.default_rng(0).normal(size=1000)
    rows = replace(make_rows(n_rows=1000, n_features=9), target=target)
    limits = FULL._replace(max_features=1)  # of 9
    trees = [grow(rows, limits=limits, seed=seed).nodes for seed in (0, 0, 1)]
    assert_array_equal(trees[0], trees[1])
    assert not np.array_equal(trees[0]["feature_idx"], trees[2]["feature_idx"])
    # A split is the best one of the feature that was drawn, and each is as often.
    inner = trees[0][~trees[0]["is_leaf"].astype(bool)]
    counts = np.bincount(inner["feature_idx"], minlength=9)
    assert inner.size > 400
    expected = inner.size / 9
    assert ((counts - expected) ** 2 / expected).sum() < 27.9  # p = 0.0005, df = 8


@on_grid("missing has_weights", [0.0, 0.2], [False, True])
def test_categories_are_split_as_sets(missing, has_weights):
    """Which of two sets goes to the left is a tie by the gain, but for rounding; more
    bins make more ties.
    """
    rows = make_rows(900, n_bins=8, missing=missing, has_weights=has_weights)
    rows = with_categories(rows)
    tree, large = grow(rows), grow(rows, small_node_rows=0)
    n_sets = tree.nodes["is_categorical"].sum()
    assert len(tree.binned_left_cat_bitsets) == n_sets > 0
    X = np.ascontiguousarray(rows.X_binned), grown_trees.MISSING, 1
    predicted = (each.predict_binned(*X) for each in (tree, large))
    assert_allclose(*predicted, rtol=0, atol=1e-12)


def test_small_nodes_are_grown_without_a_histogram(monkeypatch):
    sizes = []
    find = ForestTreeGrower._compute_best_split_and_push

    def record(grower, node):
        if node.n_samples > grower._small_node_rows:
            sizes.append(node.n_samples)
        find(grower, node)

    monkeypatch.setattr(ForestTreeGrower, "_compute_best_split_and_push", record)
    rows = make_rows(n_rows=3000, n_bins=8)
    for data in (rows, with_categories(rows)):
        sizes.clear()
        nodes = grow(data).nodes
        assert min(sizes) > MAX_SMALL_ROWS
        assert nodes["count"][~nodes["is_leaf"].astype(bool)].min() < 20


def test_path_may_be_as_long_as_there_are_rows():
    n = 200
    rows = make_rows(n_rows=n, n_features=2, n_bins=255, n_eras=1)
    X = np.tile(np.arange(n, dtype=np.uint8)[:, None], 2)
    bins = rows.bins._replace(n_bins_non_missing=np.array([n, n], dtype=np.uint32))
    bins = bins._replace(bin_thresholds=[np.arange(n - 1) + 0.5] * 2)
    target = np.ldexp(1.0, np.arange(n) - 100)  # each row outweighs all before it
    rows = replace(rows, X_binned=np.asfortranarray(X), target=target, bins=bins)
    tree = grow(rows)
    assert tree.nodes["depth"].max() > 60
    inner = np.flatnonzero(tree.nodes["is_leaf"] == 0)
    assert (tree.nodes["left"][inner] > inner).all()
