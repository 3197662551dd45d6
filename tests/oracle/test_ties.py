"""Of splits with one key: the larger pooled gain, then the lower feature, then bin."""

import math

import numpy as np
import pytest

from helpers.criteria import ERA_CRITERIA as TABLE
from helpers.data import two_features
from oracle import cases
from oracle.cases import ERA_CRITERIA, Case, first_tree, fit_case, make_case, of_each
from oracle.reference import check_fit
from sklearn_era.criteria import Era, Invariant, VREx

# Those that take targets of other values than 0 and 1.
REAL = {name: x for name, x in ERA_CRITERIA.items() if not cases.asks_for_rates(x)}
# Those whose keys are made of era gains, or impurities, and not of the pooled gain.
POOLED = {"gain", "invariant"}
OF_ERAS = {name: x for name, x in REAL.items() if not POOLED & cases.names_of(x)}
OF_ERAS = {
    k: x for k, x in OF_ERAS.items() if cases.parameter(x, "min_agreement") <= 0.6
}


def root_split(X, y, eras, criterion):
    """Feature and bin of the only split of a tree."""
    limits = {"max_iter": 1, "max_leaf_nodes": 2, "min_samples_leaf": 5}
    model = fit_case(Case(X, y, eras, params=limits), **criterion)
    assert check_fit(model, X, y, eras).n_splits == 1
    nodes = first_tree(model)
    return int(nodes["feature_idx"][0]), int(nodes["bin_threshold"][0])


def assert_second_is_split(effects, criterion):
    X, y, eras = two_features(effects)
    assert root_split(X, y, eras, criterion) == (1, 0)
    assert root_split(X[:, ::-1], y, eras, criterion) == (0, 0)


@of_each(OF_ERAS)
def test_larger_pooled_gain_breaks_ties_of_the_key(criterion):
    """Effects of one size within each era; four of the five agree in both features.

    So gains within eras and agreements are equal; the pooled effect is what differs.
    """
    assert_second_is_split([[-3.0, 2, 2, 2, 2], [3.0, 2, 2, 2, -2]], criterion)


@pytest.mark.parametrize(("criterion", "effects"), [
    # Directions agree: the mean gain decides, although the pooled one is less.
    (TABLE["directional"], [[3.5, 3.5], [1, 5]]),
    # The worst era is the same, or the best one: the pooled gain decides.
    (TABLE["era, worst"], [[1.0, 2], [1, 3]]),
    ({"split_criterion": Era(boltzmann_alpha=math.inf)}, [[4.0, 1], [4, 2]]),
    (TABLE["time_robust"], [[5.0, 2], [5, 3]]),
    # Less one deviation, the mean of two gains is the smaller one.
    ({"split_criterion": "vrex"}, [[1.0, 2], [1, 3]]),
    ({"split_criterion": VREx(0.0)}, [[1.0, 2], [3, 1]]),  # their mean
])  # fmt: skip
def test_ties_of_one_era_or_of_directions(criterion, effects):
    assert_second_is_split(effects, criterion)


def test_larger_pooled_gain_breaks_ties_of_invariant_keys():
    """Gain 8 and no penalty, against gain 32 and variance 4 times the hessian 8."""
    X, y, eras = two_features([[1.0, 1.0], [3.0, 1.0]], n_repeats=1)
    y = np.tile(y, 4)  # all sums times 4, to have enough rows for a leaf
    X, eras = np.tile(X, (4, 1)), np.tile(eras, 4)
    for penalty, feature in [(0.75, 1), (0.7501, 0), (0.7499, 1)]:
        criterion = {"split_criterion": Invariant(penalty)}
        assert root_split(X, y, eras, criterion) == (feature, 0)
        assert root_split(X[:, ::-1], y, eras, criterion) == (1 - feature, 0)


@of_each(REAL)
def test_lower_feature_breaks_ties_of_key_and_gain(criterion):
    X, y, eras = two_features([[2.0, 2.25, 2.5], [0.5, 0.5, 0.5]])
    copies = X[:, [1, 0, 0, 1, 0]]
    assert root_split(copies, y, eras, criterion) == (1, 0)
    # Negated columns part the same rows, with the sides exchanged.
    copies[:, 1] *= -1
    assert root_split(copies, y, eras, criterion) == (1, 0)


@of_each(REAL)
@pytest.mark.parametrize(("x", "targets"), [
    # To part either end is worth the same.
    ([0.0, 1.0, 2.0], [-2.0, 0.0, 2.0]),
    ([0.0, 1.0, 2.0], [2.0, 0.0, -2.0]),
    # A missing value on either side may be worth the same, to the last bit.
    ([0.0, 1.0, np.nan], [-2.0, 2.0, 0.0]),
    # So may the bins 0 and 1 on one, if a side has two values.
    ([0.0, 1.0, 2.0, np.nan], [-2.0, 0.0, 2.0, 0.0]),
])  # fmt: skip
def test_lower_bin_breaks_ties_of_key_and_gain(criterion, x, targets):
    n = 8 if len(x) == 3 else 1  # five rows to a side
    X, y = (np.tile(np.repeat(values, n), 4) for values in (x, targets))
    eras = np.repeat(np.arange(4), n * len(x))
    assert root_split(X.reshape(-1, 1), y, eras, criterion) == (0, 0)


@of_each(ERA_CRITERIA)
@pytest.mark.parametrize(
    "interaction_cst", [None, [range(8, 0, -1)], [(8, 1), (1, 3), (8, 5)]]
)
def test_lower_feature_breaks_ties_in_sets_of_features(interaction_cst, criterion):
    # As a set, {8, 1} is iterated from 8.
    case = make_case("squared_error", [], seed=5)
    noise = np.random.default_rng(0).normal(size=(len(case.y), 9))
    noise[:, 1] = noise[:, 8] = noise[:, 3] = case.X[:, 0]
    limits = {"max_iter": 1, "min_samples_leaf": 8, "max_bins": 9}
    case = cases.suit(Case(noise, case.y, case.eras, params=limits), criterion)
    nodes = first_tree(fit_case(case, **criterion, interaction_cst=interaction_cst))
    if not cases.asks_for_rates(criterion):  # which prefers noise here
        assert nodes["feature_idx"][0] == 1
    assert not np.isin(nodes["feature_idx"][nodes["is_leaf"] == 0], [3, 8]).any()


@pytest.mark.parametrize("split_criterion", ["era", "directional"])
def test_lower_feature_breaks_ties_whatever_its_neighbours(split_criterion):
    """Equal columns, the second one beside a feature with which it could be bundled."""
    rng, n_samples = np.random.default_rng(0), 600
    eras = np.repeat(np.arange(40), 15)
    for _ in range(20):
        x = rng.integers(0, 64, n_samples).astype(float)
        x[:64] = np.arange(64)
        wide = np.zeros(n_samples)
        wide[rng.permutation(n_samples)[:199]] = np.arange(1, 200)
        two = np.zeros(n_samples)
        two[3] = 1.0
        y = (x > 30) + rng.normal(size=n_samples)
        case = Case(np.column_stack([x, wide, x, two]), y, eras)
        case.params = {"max_iter": 1, "min_samples_leaf": 60, "min_era_coverage": 0.3}
        model = fit_case(case, split_criterion=split_criterion)
        assert first_tree(model)["feature_idx"][0] == 0
