"""Which split is made where several have the same key, exactly.

The larger pooled gain decides, then the lower feature index, then the lower bin.
"""

import numpy as np
import pytest

import sklearn_era.ensemble
from helpers.data import two_features
from helpers.estimators import make_estimator

# Criteria whose keys are made of era gains, or impurities, and not of the pooled gain.
OF_ERAS = [
    {"split_criterion": "era", "boltzmann_alpha": -np.inf},
    {"split_criterion": "era", "boltzmann_alpha": -0.01},
    {"split_criterion": "era", "boltzmann_alpha": 0.0},
    {"split_criterion": "era", "boltzmann_alpha": np.inf, "normalize_era_gain": True},
    {"split_criterion": "directional"},
    {"split_criterion": "vrex", "invariance_penalty": 0.0},
    {"split_criterion": "vrex", "invariance_penalty": 0.25},
    {
        "split_criterion": "vrex",
        "invariance_penalty": 0.25,
        "normalize_era_gain": True,
    },
    {"split_criterion": "time_robust", "period_aggregation": "max"},
    {"split_criterion": "time_robust", "period_aggregation": "mean"},
    {"split_criterion": {"era": 1.0, "vrex": 1.0}},
    {"split_criterion": {"era": 1.0, "directional": 2.0}},
]
# With these, keys differ where pooled gains do.
OF_ALL_ROWS = [
    {"split_criterion": "invariant", "invariance_penalty": 0.125},
    {
        "split_criterion": "invariant",
        "invariance_penalty": 0.125,
        "invariance_statistic": "changing_rate",
    },
    {"split_criterion": {"gain": 1.0, "vrex": 0.5}},
]


def root_split(X, y, eras, criterion):
    """Feature and bin of the only split of a tree."""
    model = make_estimator(
        sklearn_era.ensemble, "real", max_iter=1, max_leaf_nodes=2, **criterion
    ).fit(X, y, eras=eras)
    nodes = model._predictors[0][0].nodes
    assert len(nodes) == 3
    return int(nodes["feature_idx"][0]), int(nodes["bin_threshold"][0])


@pytest.mark.parametrize("criterion", OF_ERAS)
def test_larger_pooled_gain_breaks_ties_of_the_key(criterion):
    """Effects of one size within each era, of which two point one way in both features.

    So gains within eras and agreements are equal; the pooled effect is what differs.
    """
    weaker, stronger = [4.0, -2.0, 1.0], [4.0, 2.0, -1.0]
    X, y, eras = two_features([weaker, stronger])
    assert root_split(X, y, eras, criterion) == (1, 0)
    assert root_split(X[:, ::-1], y, eras, criterion) == (0, 0)


def test_larger_pooled_gain_breaks_ties_of_invariant_keys():
    """Gain 8 and no penalty, against gain 32 and variance 4 times the hessian 8."""
    X, y, eras = two_features([[1.0, 1.0], [3.0, 1.0]], n_repeats=1)
    y = np.tile(y, 4)  # all sums times 4, to have enough rows for a leaf
    X, eras = np.tile(X, (4, 1)), np.tile(eras, 4)
    for penalty, feature in [(0.75, 1), (0.7501, 0), (0.7499, 1)]:
        criterion = {"split_criterion": "invariant", "invariance_penalty": penalty}
        assert root_split(X, y, eras, criterion) == (feature, 0)
        flipped = root_split(X[:, ::-1], y, eras, criterion)
        assert flipped == (1 - feature, 0)


@pytest.mark.parametrize("criterion", OF_ERAS + OF_ALL_ROWS)
def test_lower_feature_breaks_ties_of_key_and_gain(criterion):
    X, y, eras = two_features([[2.0, 1.0, 4.0], [0.5, 0.5, 0.5]])
    copies = X[:, [1, 0, 0, 1, 0]]
    assert root_split(copies, y, eras, criterion) == (1, 0)
    # Negated columns part the same rows, with the sides exchanged.
    copies[:, 1] *= -1
    assert root_split(copies, y, eras, criterion) == (1, 0)


@pytest.mark.parametrize("criterion", OF_ERAS + OF_ALL_ROWS)
def test_lower_bin_breaks_ties_of_key_and_gain(criterion):
    """y = -2, 0, 2 by the bin: to part either end is worth the same."""
    for values in ([-2.0, 0.0, 2.0], [2.0, 0.0, -2.0]):
        X = np.tile(np.repeat([0.0, 1.0, 2.0], 8), 4).reshape(-1, 1)
        y = np.tile(np.repeat(values, 8), 4)
        eras = np.repeat(np.arange(4), 24)
        assert root_split(X, y, eras, criterion) == (0, 0)


@pytest.mark.parametrize("criterion", OF_ERAS + OF_ALL_ROWS)
def test_lower_bin_breaks_ties_with_missing_values(criterion):
    """A missing value on either side may be worth the same, to the last bit."""
    X = np.tile(np.repeat([0.0, 1.0, np.nan], 8), 4).reshape(-1, 1)
    y = np.tile(np.repeat([-2.0, 2.0, 0.0], 8), 4)
    eras = np.repeat(np.arange(4), 24)
    assert root_split(X, y, eras, criterion) == (0, 0)


@pytest.mark.parametrize("split_criterion", ["era", "directional"])
def test_lower_feature_breaks_ties_whatever_its_neighbours(split_criterion):
    """Equal columns, the second one beside a feature with which it could be bundled."""
    rng = np.random.default_rng(0)
    n_samples = 600
    eras = np.repeat(np.arange(40), 15)
    for _ in range(20):
        x = rng.integers(0, 64, n_samples).astype(float)
        x[:64] = np.arange(64)
        wide = np.zeros(n_samples)
        wide[rng.permutation(n_samples)[:199]] = np.arange(1, 200)
        two = np.zeros(n_samples)
        two[3] = 1.0
        est = make_estimator(
            sklearn_era.ensemble,
            "squared_error",
            split_criterion=split_criterion,
            max_iter=1,
            min_samples_leaf=60,
            min_era_coverage=0.3,
        )
        y = (x > 30) + rng.normal(size=n_samples)
        est.fit(np.column_stack([x, wide, x, two]), y, eras=eras)
        assert est._predictors[0][0].nodes[0]["feature_idx"] == 0
