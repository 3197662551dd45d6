"""Fitted trees against brute force, on data that go each way of the era kernel.

The cases of `cases` are small. Here eras are few and large, or many and small, and bins
few or many.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from helpers.criteria import DEVIATIONS, ERA_CRITERIA
from helpers.grids import on_grid, slow
from helpers.kernel_fits import fit, make_eras
from helpers.trees import rows_of_nodes, trees_of
from oracle.cases import Case, first_tree, fit_and_check, fit_case, of_each
from oracle.reference import check_fit
from sklearn_era.criteria import Era, Gain

LIMITS = {"max_iter": 1, "min_samples_leaf": 5, "max_leaf_nodes": 6,
          "min_era_coverage": 0.5}  # fmt: skip
# Eras, rows of each and bins; and the share of eras that a split covers.
WAYS = {
    "kept sums": (3, 500, 5, 0.5),
    "masks": (33, 50, 5, 0.3),
    "masks of few eras": (12, 40, 5, 0.5),
    "bins by rows": (24, 10, 60, 0.3),
    "few rows": (16, 12, 120, 0.3),
    "lanes": (33, 15, 64, 0.3),
    "lanes of few eras": (12, 32, 8, 0.5),
    # Where few splits are covered by enough eras, the others are left out first.
    "few covered": (12, 30, 60, 0.7),
    "very few covered": (12, 30, 60, 0.9),
}
PENALTIES = {"free": None, "penalties": [0.3, 0.1, 0.0, 2.0]}


def check(data, criterion, weights=None, **params):
    model, splitter = fit(data, criterion, weights=weights, **LIMITS | params)
    report = check_fit(model, *data, weights)
    assert report.n_splits > 2
    assert report.n_undecided <= report.n_splits
    return model, splitter


@on_grid(
    "criterion way missing penalties",
    ERA_CRITERIA | DEVIATIONS, WAYS, [0.0, 0.15], PENALTIES, every=29)  # fmt: skip
def test_each_way(criterion, way, missing, penalties):
    *shape, coverage = way
    # Of more than four columns, and without penalties, some are compared first.
    data = make_eras(*shape, n_features=4 if penalties else 5, missing=missing)
    params = {"max_leaf_nodes": 4, "min_era_coverage": coverage}
    check(data, criterion, feature_penalty=penalties, **params)


MASKS, GROUPS = "columns of masks", "columns of groups"
PACKED, BY_ERA = "packed sums", "sums by era"
HALF, MOST = {"min_era_coverage": 0.5}, {"min_era_coverage": 0.7}
SIGNS = {"split_criterion": "directional"}
FIRST = {"first columns", "directions first", "contrasts"}
# Data, parameters, and all ways that a fit takes.
TAKEN = {
    "eras of many rows": ((3, 500, 5), {}, {BY_ERA, MASKS}),
    "eras of few rows": ((33, 20, 5), {}, {PACKED, MASKS}),
    "more than half of an even number": ((20, 20, 5), HALF, {PACKED, MASKS}),
    "more than half of an odd number": ((21, 20, 5), HALF, {PACKED, MASKS}),
    "many bins": ((24, 10, 60), {}, {PACKED, GROUPS}),
    "many bins, half of an even number": ((24, 10, 60), HALF, {PACKED, GROUPS}),
    "many bins, most eras": ((24, 10, 60), MOST, {PACKED, GROUPS, "rows looked at"}),
    "many bins, most eras of many rows": ((3, 5000, 60), MOST, {PACKED, GROUPS}),
    "a share of the gain": ((24, 10, 60), {"min_gain_share": 0.5},
                            {PACKED, GROUPS, "shares of the gain"}),
    "many columns": ((33, 15, 64, 9), {}, {PACKED, GROUPS, "first columns"}),
    "many columns of directions": ((33, 15, 64, 9), SIGNS, {PACKED, GROUPS} | FIRST),
    "many masks of directions": ((12, 40, 16, 10), SIGNS, {PACKED, MASKS} | FIRST),
    "few columns of directions": ((33, 15, 64), SIGNS, {PACKED, GROUPS}),
    "the gain": ((24, 10, 60), {"split_criterion": Gain(splitter="era")}, {PACKED}),
}  # fmt: skip


@pytest.mark.parametrize(("shape", "params", "expected"), TAKEN.values(), ids=TAKEN)
def test_each_way_is_taken_where_it_pays(shape, params, expected):
    criterion = {"split_criterion": "era", "max_iter": 1} | params
    _, splitter = fit(make_eras(*shape), criterion)
    assert {way for way, n in splitter.ways.items() if n > 0} == expected


def test_several_threads_search_large_nodes_alone():
    with threadpool_limits(2, user_api="openmp"):
        _, small = fit(make_eras(4, 200, 5), ERA_CRITERIA["era"], max_iter=1)
        _, large = fit(make_eras(4, 1200, 5), ERA_CRITERIA["era"], max_iter=1)
    assert small.ways["threads"] == 0 < small.n_searched
    assert 0 < large.ways["threads"] < large.n_searched


@on_grid("name size", ["era", "directional"], [0.01, 0.2, 0.6])
def test_what_a_first_look_would_leave_out(name, size):
    """The split of the largest key is of another feature than the one that is made."""
    X, y, eras = make_eras(33, 15, 64)
    X[:, 3] = X[:, 0] + np.arange(len(y)) % 7
    penalties = {"feature_penalty": [size, size, 0.0, 0.0], "max_leaf_nodes": 4}
    check((X, y, eras), {"split_criterion": name}, **penalties)


# Rows are first summed up by the 125 combinations of three features' bins where an era
# has three times as many of them: at the root, but not in its children.
@on_grid("is_weighted missing", [False, True], [0.0, 0.15])
def test_eras_of_more_rows_than_combinations(is_weighted, missing):
    data = make_eras(3, 401, 5, n_features=4, missing=missing)
    weights = np.linspace(0.5, 2.0, 1203) if is_weighted else None
    for criterion in ("directional", "invariant"):
        check(data, ERA_CRITERIA[criterion], weights)


@pytest.mark.parametrize("unit", [2.0**-70, 1.0, 2.0**70])
def test_squares_of_which_most_are_below_a_millionth_of_the_largest(unit):
    X, y, eras = make_eras(4, 40, 8, n_features=3)
    y = unit * np.exp(5.0 * np.random.default_rng(1).normal(size=y.size)) * (1 + y)
    case = Case(X, y, eras, None, LIMITS | {"max_iter": 2, "max_leaf_nodes": 4})
    report = fit_and_check(case, **DEVIATIONS["time_robust, worst deviation"])
    assert report.n_splits > 2 >= report.n_undecided


# Beside the gradients of one era, what parts the sides of the others is little.
@on_grid("l2 size", [0.0, 2.0], [0.0, 1e6])
def test_directions_in_doubt(l2, size):
    X, _, eras = make_eras(40, 12, 24, n_features=5)
    y = np.random.default_rng(0).integers(0, 2, len(X)) + size * (eras == 0)
    params = LIMITS | {"max_leaf_nodes": 4, "l2_regularization": l2}
    fit_and_check(Case(X, y, eras, None, params), split_criterion="directional")


# Of more than four columns, or bundles with masks, directions alone are compared first.
@pytest.mark.parametrize(("n_bins", "n_copies"), [(40, 3), (4, 12)])
def test_sides_that_are_equal_up_to_rounding_have_no_direction(n_bins, n_copies):
    """In a third of the eras, sides of x differ by 2^-22 of their values, the other way
    than in the rest. Sides of z differ in half of the eras.
    """
    place = np.arange(40)
    places = np.column_stack([place, place % 20 * 2 + place // 20])
    X, eras = np.tile(places, (48, 1)), np.repeat(np.arange(48), 40)
    x, z = np.tile(places >= 20, (48, 1)).T
    y = np.where(eras % 2, 1.0, -1.0) * 2**22 + np.where(eras < 16, -1, 5) * x
    y += 6 * z * (eras >= 24)
    params = {"max_iter": 1, "min_samples_leaf": 900, "max_leaf_nodes": 2}
    X = np.repeat(X * n_bins // 40, n_copies, axis=1).astype(float)
    case = Case(X, y, eras, None, params)
    nodes = first_tree(fit_case(case, split_criterion="directional"))
    assert nodes["feature_idx"][0] == 0


def test_splits_that_missing_values_or_some_eras_alone_cover():
    X, y, eras = make_eras(12, 30, 60, n_features=5, missing=0.15)
    y += 20.0 * (np.isnan(X[:, 0]) | (X[:, 0] < 2))
    criterion, limits = ERA_CRITERIA["directional"], {"min_era_coverage": 0.9}
    check((X, y, eras), criterion, **limits)
    check(make_eras(12, 40, 16, n_features=10), criterion, **limits)  # with masks


@of_each(ERA_CRITERIA, step=6)
def test_lanes_of_weights_with_missing_values(criterion):
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], size=384)
    data = make_eras(12, 32, 8, n_features=3, missing=0.2)
    check(data, criterion, weights, min_era_coverage=0.7)


@pytest.mark.parametrize("criterion", [
    ERA_CRITERIA["era"],
    # An absent era has no gain: for the best one, that is nothing.
    {"split_criterion": Era(boltzmann_alpha=math.inf), "min_gain_share": 0.0},
    ERA_CRITERIA["vrex"],
    slow(ERA_CRITERIA["directional"]),
    slow(ERA_CRITERIA["era, smoothed"]),
    slow(ERA_CRITERIA["time_robust, mean"]),
])  # fmt: skip
def test_eras_without_a_row_in_most_nodes(criterion):
    X, y, eras = make_eras(40, 6, 10, n_features=3)
    # A feature that parts most eras from the others, and is worth it.
    X[:, 2] = np.where(np.arange(len(y)) % 3, eras // 4, X[:, 2])
    y += 60.0 * (X[:, 2] > 5)
    params = {"max_leaf_nodes": 4, "min_era_coverage": 0.05, "min_samples_leaf": 10}
    model, _ = check((X, y, eras), criterion, **params)
    rows_by_node = rows_of_nodes(trees_of(model)[0], X).values()
    assert min(np.unique(eras[rows]).size for rows in rows_by_node) < 38


# More rows than are packed at a time. Twice the same eras give the same.
@pytest.mark.parametrize("criterion", ["directional", "era", "invariant"])
def test_more_rows_than_a_chunk_has(criterion):
    X, y, eras = make_eras(40, 875, 20, n_features=6)
    y += 50.0 * (eras < 10) * X[:, 1]  # the largest gain, in few eras
    both = (np.tile(X, (2, 1)), np.tile(y, 2), np.r_[eras, eras + 40])
    once, twice = (
        fit(
            data, ERA_CRITERIA[criterion], max_iter=1, max_leaf_nodes=4,
            min_samples_leaf=n,
        )[0]._predictors[0][0].nodes
        for data, n in [((X, y, eras), 20), (both, 40)]
    )  # fmt: skip
    for name, factor in {"count": 2, "feature_idx": 1, "bin_threshold": 1}.items():
        assert_array_equal(twice[name], factor * once[name])
