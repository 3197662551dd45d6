"""The worked examples of DeLise, with their data and their numbers.

DeLise (2023), Era Splitting: Invariant Learning for Decision Trees.

Where the paper has no numbers for a formula, the sums are small enough for pen and
paper.
"""

import math

import numpy as np
import pytest

from helpers.paper_trees import (
    fit_tree,
    gains_of,
    nodes_of,
    pooled_gain,
    rank,
    sides,
    split_of,
)
from sklearn_era.ensemble._hist_gradient_boosting.criteria import (
    Criterion,
    SplitCriterion,
    agreement,
    boltzmann_mean,
    compare_sides,
)

# DeLise (2023), table 1: the data of proposition 3.

DEGENERATE_X = np.array([[1, 1], [2, 3], [3, 2], [4, 4]], dtype=float)
DEGENERATE_ERAS = np.array([0, 0, 1, 1])
DEGENERATE_Y = np.array([-1.0, -2.0, -3.0, -4.0])
BETWEEN_ERAS = DEGENERATE_X[:, 0] <= 2
WITHIN_ERAS = DEGENERATE_X[:, 1] <= 2


def test_table_1_of_delise_has_a_pooled_split_that_no_era_feels():
    root = nodes_of(fit_tree(DEGENERATE_X, DEGENERATE_Y, DEGENERATE_ERAS))[0]
    assert split_of(root) == (0, 2.5)
    # The paper's score is 2, with its factor 1/2.
    assert pooled_gain(DEGENERATE_Y, BETWEEN_ERAS) == 2 / 0.5
    assert root["gain"] == pytest.approx(4.0)
    comparison = compare_sides(
        *([side] for side in sides(DEGENERATE_Y, DEGENERATE_ERAS, BETWEEN_ERAS))
    )
    assert not comparison.covered.any()
    assert comparison.gains.tolist() == [[0, 0]]
    for name in ("ERA", "DIRECTIONAL", "TIME_ROBUST", "INVARIANT", "VREX"):
        assert rank(name, DEGENERATE_Y, DEGENERATE_ERAS, BETWEEN_ERAS) is None


@pytest.mark.parametrize(
    "criterion",
    [
        "era", "directional", "time_robust", "invariant", "vrex",
        {"gain": 1.0, "era": 1.0},
    ],
)  # fmt: skip
def test_table_1_of_delise_is_split_within_the_eras(criterion):
    root = nodes_of(
        fit_tree(DEGENERATE_X, DEGENERATE_Y, DEGENERATE_ERAS, split_criterion=criterion)
    )[0]
    assert split_of(root) == (1, 2.5)
    # Proposition 5: never more than the pooled optimum, here 4.
    assert root["gain"] == 1.0


def test_table_1_of_delise_has_these_keys():
    data = DEGENERATE_Y, DEGENERATE_ERAS, WITHIN_ERAS
    assert gains_of(*data).tolist() == [0.5, 0.5]
    assert rank("ERA", *data) == (0.5, 0.0, 1.0, 0.5)
    assert rank("DIRECTIONAL", *data) == (1.0, 0.5, 1.0, 1.0)
    # Nothing is left to explain in either era: 1/4 before the split, 0 after it.
    assert rank("TIME_ROBUST", *data) == (0.0, 0.0, 1.0, 0.25)
    assert rank("INVARIANT", *data, invariance_penalty=9.0).primary == 1.0
    assert rank("VREX", *data, invariance_penalty=9.0).primary == 0.5


def internal_splits(model, X):
    """(rows of a node, which of them go left), for each internal node of the tree."""
    nodes = nodes_of(model)
    rows_of = {0: np.arange(len(X))}
    for i, node in enumerate(nodes):
        if not node["is_leaf"]:
            rows = rows_of[i]
            goes_left = X[rows, node["feature_idx"]] <= node["num_threshold"]
            rows_of[node["left"]], rows_of[node["right"]] = (
                rows[goes_left], rows[~goes_left],
            )  # fmt: skip
            yield rows, goes_left


@pytest.mark.parametrize("seed", range(5))
def test_propositions_4_and_5_of_delise(seed):
    rng = np.random.default_rng(seed)
    eras = np.arange(240) % 3
    X = rng.normal(size=(240, 4))
    y = X[:, 0] + (eras - 1) * 2 * X[:, 1] + rng.normal(size=240)
    params = {"l2_regularization": 1.0, "max_leaf_nodes": 12}

    def least_gains(alpha):
        model = fit_tree(X, y, eras, split_criterion="era", boltzmann_alpha=alpha,
                         **params)  # fmt: skip
        for rows, goes_left in internal_splits(model, X):
            left, right = sides((y - y.mean())[rows], eras[rows], goes_left)
            yield compare_sides([left], [right], l2_regularization=1.0).gains.min()

    smallest = list(least_gains(-math.inf))
    assert len(smallest) >= 3
    assert min(smallest) > 0
    # The mean over eras does let an era lose.
    assert min(least_gains(0.0)) < 0
    best = nodes_of(fit_tree(X, y, eras, **params))[0]["gain"]
    for criterion in ("era", "directional"):
        root = nodes_of(fit_tree(X, y, eras, split_criterion=criterion, **params))[0]
        assert 0 < root["gain"] <= best


@pytest.mark.parametrize(
    ("values", "alpha", "expected"),
    [
        # With weights 2^x, 1 and 2^-x.
        ([1.0, 2.0, 3.0], math.log(2), 17 / 7),
        ([1.0, 2.0, 3.0], 0.0, 2.0),
        ([1.0, 2.0, 3.0], -math.log(2), 11 / 7),
        ([0.0, math.log(2)], 1.0, 2 / 3 * math.log(2)),
        ([32.0, 2.0], -math.log(4) / 30, 8.0),
        # Proposition 2 and its twin.
        ([1.0, 2.0, 3.0], math.inf, 3.0),
        ([1.0, 2.0, 3.0], 1e3, 3.0),
        ([1.0, 2.0, 3.0], -math.inf, 1.0),
        ([1.0, 2.0, 3.0], -1e3, 1.0),
    ],
)
def test_definition_5_of_delise(values, alpha, expected):
    assert boltzmann_mean(np.array(values), alpha) == pytest.approx(expected, rel=1e-14)
    # The factor 1/2 of equation 28, which gains go without, rescales alpha.
    halves = np.array(values) / 2
    assert boltzmann_mean(halves, 2 * alpha) == pytest.approx(expected / 2, rel=1e-14)


@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        ([1, 2, 3, 4], 1.0),
        ([-1, -2, -3, -4], 1.0),
        ([1, 2, -3, -4], 0.0),
        ([1, 2, 3, -4], 0.5),
        ([1, -2, -3], 1 / 3),
        ([5], 1.0),
        # An era whose sides predict the same takes no side.
        ([1, 0, 1, 1], 0.75),
    ],
)
def test_definition_7_of_delise(effects, expected):
    # One row a side and era: the left one asks for the effect, the right one for 0.
    left = [(-effect, 1, 1) for effect in effects]
    right = [(0, 1, 1)] * len(effects)
    comparison = compare_sides([left], [right])
    assert comparison.directions[0].tolist() == np.sign(effects).tolist()
    assert agreement(comparison.directions)[0] == expected
    ranked = Criterion(SplitCriterion.DIRECTIONAL).rank(left, right, gain=1.0)
    if expected == 0:
        assert ranked is None
    else:
        gains = [effect**2 / 2 for effect in effects]
        assert ranked.primary == expected
        assert ranked.secondary == pytest.approx(np.mean(gains))


# What figure 3 of DeLise (2023) shows on its right: the first feature acts strongly,
# but one way in one era and the other way in the other; the second one always alike.
CONFLICT_X = np.array([[a, b] for _ in range(2) for a in (0, 1) for b in (0, 1)], float)
CONFLICT_ERAS = np.repeat([0, 1], 4)
CONFLICT_Y = np.where(CONFLICT_ERAS == 0, 6.0, -2.0) * CONFLICT_X[:, 0]
CONFLICT_Y += CONFLICT_X[:, 1]


@pytest.mark.parametrize(
    ("params", "feature", "gain"),
    [
        ({"split_criterion": "gain"}, 0, 8.0),
        ({"split_criterion": "era"}, 0, 8.0),
        ({"split_criterion": "era", "boltzmann_alpha": -math.inf}, 0, 8.0),
        ({"split_criterion": "directional"}, 1, 2.0),
        ({"split_criterion": "invariant"}, 1, 2.0),
    ],
)
def test_only_directions_tell_eras_that_contradict_each_other(params, feature, gain):
    root = nodes_of(fit_tree(CONFLICT_X, CONFLICT_Y, CONFLICT_ERAS, **params))[0]
    assert split_of(root) == (feature, 0.5)
    assert root["gain"] == pytest.approx(gain)


def test_keys_of_eras_that_contradict_each_other():
    strong, steady = (CONFLICT_X[:, feature] == 0 for feature in (0, 1))
    data = CONFLICT_Y, CONFLICT_ERAS
    assert gains_of(*data, strong).tolist() == [36, 4]
    assert gains_of(*data, steady).tolist() == [1, 1]
    assert rank("ERA", *data, strong).primary == 20
    assert rank("DIRECTIONAL", *data, strong) is None
    assert rank("DIRECTIONAL", *data, steady)[:3] == (1.0, 1.0, 2.0)
    # Effects of -6 and 2 have a variance of 16; the node has 8 rows.
    assert rank("INVARIANT", *data, strong).primary == 8 - 8 * 16
