"""Each tree of a forest draws rows, eras, segments and features."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestRegressor

from helpers.forests import drawn_rows, make_data, regressor
from helpers.grids import on_grid
from helpers.trees import assert_same_trees, trees_of
from sklearn_era._eras import consecutive_blocks, encode_eras
from sklearn_era.ensemble._forests import sampling
from sklearn_era.ensemble._forests.checks import number_of_features
from sklearn_era.ensemble._forests.sampling import draw_tree_rows, number_to_draw

LABELS = st.lists(st.integers(0, 6), min_size=1, max_size=60)
SHARES = st.one_of(st.none(), st.floats(0.01, 1.0))


def encoded(labels):
    return encode_eras(np.array(labels))


def draw(labels, bootstrap, max_samples=None, seed=0):
    return draw_tree_rows(
        np.random.default_rng(seed), len(labels),
        None if bootstrap == "no eras" else encoded(labels),
        "rows" if bootstrap == "no eras" else bootstrap, max_samples)  # fmt: skip


@settings(max_examples=2 * settings().max_examples)
@given(labels=LABELS, share=SHARES, seed=st.integers(0, 99))
def test_draws_are_of_rows_or_within_eras_or_of_whole_eras(labels, share, seed):
    found, counts = np.unique(labels, return_counts=True)
    nothing, of_all = draw(labels, False, share, seed)
    assert nothing is None
    assert_array_equal(of_all.decode(), labels)
    for bootstrap in ("rows", "within_eras", "whole_eras"):
        rows, eras = draw(labels, bootstrap, share, seed)
        assert (np.diff(eras.codes) >= 0).all()
        assert_array_equal(np.bincount(eras.codes), eras.counts)
        if bootstrap == "rows":
            assert rows.size == number_to_draw(share, len(labels))
            plain, none = draw(labels, "no eras", share, seed)
            assert none is None
            assert_array_equal(np.sort(rows), plain)  # eras change the order alone
        elif bootstrap == "within_eras":
            assert_array_equal(eras.labels, found)
            assert_array_equal(eras.counts, [number_to_draw(share, n) for n in counts])
        else:  # an era that is drawn twice is two
            assert eras.labels.size == number_to_draw(share, found.size)
            for code, label in enumerate(eras.labels):
                whole = np.flatnonzero(np.array(labels) == label)
                assert_array_equal(rows[eras.codes == code], whole)
        assert_array_equal(eras.decode(), np.array(labels)[rows])


@pytest.mark.parametrize(("max_samples", "n_available", "expected"), [
    (None, 7, 7), (1.0, 7, 7), (0.5, 7, 3), (0.01, 7, 1), (3, 7, 3),
    (np.int64(3), 7, 3), (0.29, 100, 29), (np.float32(0.5), 8, 4)])  # fmt: skip
def test_number_to_draw(max_samples, n_available, expected):
    assert number_to_draw(max_samples, n_available) == expected


@pytest.mark.parametrize(("bootstrap", "max_samples", "expected"), [
    ("rows", 50, lambda sizes: [50]), ("rows", 0.25, lambda sizes: [60]),
    ("within_eras", 10, lambda sizes: [30]),
    ("within_eras", 0.5, lambda sizes: [(sizes // 2).sum()]),
    ("whole_eras", 1, lambda sizes: sizes),
])  # fmt: skip
def test_max_samples_is_what_trees_are_grown_on(bootstrap, max_samples, expected):
    X, y, eras = make_data()
    forest = regressor(bootstrap=bootstrap, max_samples=max_samples)
    forest.fit(X, y, eras=eras)
    for tree, drawn in zip(trees_of(forest), drawn_rows(forest, X, eras), strict=True):
        assert tree.nodes["count"][0] == drawn.rows.size
        assert drawn.rows.size in expected(np.bincount(eras))


@settings(max_examples=2 * settings().max_examples)
@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=12),
    n_segments=st.integers(1, 12), seed=st.integers(0, 99))  # fmt: skip
def test_segments_are_of_consecutive_eras_and_none_is_empty(counts, n_segments, seed):
    n_segments = min(n_segments, len(counts))
    labels = np.repeat(np.arange(len(counts)) * 10, counts)
    np.random.default_rng(seed).shuffle(labels)
    merged = sampling.merge_into_segments(encoded(labels), n_segments)
    codes = merged.codes
    assert_array_equal(merged.labels, np.arange(n_segments))
    assert_array_equal(np.bincount(codes, minlength=n_segments), merged.counts)
    assert (merged.counts > 0).all()
    assert (np.diff(codes[np.argsort(labels, kind="stable")]) >= 0).all()
    for label in np.unique(labels):  # no era is divided
        assert np.unique(codes[labels == label]).size == 1
    order = np.arange(codes.size) if merged.order is None else merged.order
    for segment in range(n_segments):
        rows = order[merged.offsets[segment] : merged.offsets[segment + 1]]
        assert_array_equal(np.sort(rows), np.flatnonzero(codes == segment))


@settings(max_examples=4 * settings().max_examples)
@given(
    place=st.integers(0, 39), size=st.integers(100, 5000), small=st.integers(40, 80),
    n_blocks=st.integers(2, 12))  # fmt: skip
def test_an_era_larger_than_a_block_does_not_crowd(place, size, small, n_blocks):
    counts = np.full(small, 10)
    counts[place] = size
    blocks = consecutive_blocks(counts, n_blocks)
    assert (np.isin(np.diff(blocks), [0, 1])).all()
    rows = np.bincount(blocks, weights=counts)
    assert rows.size == n_blocks
    # All blocks but that of the large era share the others' rows.
    others = np.delete(rows, blocks[place])
    assert others.min() >= max(10, 0.3 * others.mean())
    assert others.max() <= 1.5 * others.mean() + 10


def test_each_tree_draws_its_number_of_segments():
    X, y, _ = make_data(n_samples=600)
    eras = np.arange(600) // 20
    forest = regressor(n_estimators=60, random_segments=5, split_criterion="era",
                       bootstrap="within_eras", max_samples=100)  # fmt: skip
    forest.fit(X, y, eras=eras)  # an era has 20 rows, and a segment 120 or more
    counts = [drawn.eras.counts for drawn in drawn_rows(forest, X, eras)]
    assert {of_tree.size for of_tree in counts} == {2, 3, 4, 5}
    assert {*np.concatenate(counts)} == {100}
    assert_array_equal(forest.era_labels_, np.arange(30))


def two_columns(y):
    return {"week": np.arange(y.size) % 6, "half": np.arange(y.size) % 6 // 3}


@pytest.mark.parametrize("make", [
    dict,
    lambda d: {name: pd.Series(x).astype("category") for name, x in d.items()},
    lambda d: {name: pl.Series(x) for name, x in d.items()},
    lambda d: d | {"half": pd.to_datetime(d["half"], unit="D")},
    lambda d: d | {"half": [f"h{x}" for x in d["half"]]},
])  # fmt: skip
def test_each_tree_draws_one_of_several_labels(make):
    X, y, _ = make_data()
    columns = two_columns(y)
    parameters = {"split_criterion": "era", "bootstrap": "within_eras"}
    parameters["n_estimators"] = 12
    forest = regressor(**parameters).fit(X, y, eras=make(columns))
    assert_array_equal(forest.era_labels_, np.arange(6))
    assert forest.era_labels_.dtype.kind in "iO"
    drawn = drawn_rows(forest, X, make(columns))
    assert {tree.eras.labels.size for tree in drawn} == {2, 6}
    assert_same_trees(forest, regressor(**parameters).fit(X, y, eras=columns))


@pytest.mark.parametrize(("max_features", "n_features"), [
    *itertools.product([None, 1.0, 0.5, 0.01, 1, "sqrt", "log2"], [1, 2, 5, 17]),
    (3, 5), (3, 17)])  # fmt: skip
def test_features_are_counted_as_scikit_learns_forests_count(max_features, n_features):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, n_features)), rng.normal(size=20)
    theirs = RandomForestRegressor(1, max_features=max_features).fit(X, y)
    expected = theirs.estimators_[0].max_features_
    assert number_of_features(max_features, n_features) == expected


@on_grid(
    "kind split_criterion max_features", ["numbers", "category", "best first"],
    ["gain", "era"], [1, 2, "sqrt"], every=3)  # fmt: skip
def test_nodes_draw_on_until_a_feature_varies(kind, split_criterion, max_features):
    # All rows of eight binary columns differ, and each path is done with its columns;
    # others separate no rows.
    X = (np.arange(256)[:, np.newaxis] >> np.arange(8)) % 2
    X = np.repeat(np.hstack([X, np.ones((256, 30), dtype=int)]), 2, axis=0)
    y = np.repeat(np.random.default_rng(0).normal(size=256), 2)
    params = {"bootstrap": False, "max_features": max_features, "random_state": 0}
    forest = regressor(
        split_criterion=split_criterion, max_depth=None,
        max_leaf_nodes=256 if kind == "best first" else None,
        categorical_features=[8] if kind == "category" else None, **params,
    ).fit(X, y, eras=np.arange(512) % 2)  # fmt: skip
    for model in (forest, RandomForestRegressor(3, **params).fit(X, y)):
        np.testing.assert_allclose(model.predict(X), y, rtol=0, atol=1e-6)


@on_grid("weights max_leaf_nodes", [None, np.ones(240)], [None, 10_000])
def test_nodes_draw_on_where_categories_cannot_be_parted(weights, max_leaf_nodes):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, size=(240, 6)).astype(float)
    X[:, -1] = rng.permutation(240)
    y = rng.normal(size=240)
    forest = regressor(
        bootstrap=False, max_features=1, max_leaf_nodes=max_leaf_nodes,
        categorical_features=[0, 1, 2, 3, 4]).fit(X, y, weights)  # fmt: skip
    # Nodes without ten rows of two categories are left to the number, to the last row.
    np.testing.assert_allclose(forest.predict(X), y, rtol=0, atol=1e-6)


def test_a_split_looks_at_as_many_features_as_it_may():
    X = np.random.default_rng(0).normal(size=(300, 6))
    y, eras = X @ [32.0, 16.0, 8.0, 4.0, 2.0, 1.0], np.arange(300) % 2
    for split_criterion in ("gain", "era"):
        roots = {}
        for n_wanted in (1, 2, 5, 6):
            forest = regressor(
                n_estimators=80, bootstrap=False, max_bins=16, max_features=n_wanted,
                max_depth=1, split_criterion=split_criterion,
            ).fit(X, y, eras=eras)  # fmt: skip
            features = [int(t.nodes["feature_idx"][0]) for t in trees_of(forest)]
            roots[n_wanted] = set(features)
        # The best of n drawn is never one of the n - 1 worst.
        assert roots == {1: {*range(6)}, 2: {*range(5)}, 5: {0, 1}, 6: {0}}
