"""Eras in which features are hardly correlated: the search for them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from experiments._decorrelated import EraMoments, Search, decorrelated_partition


def make_correlated(n_samples=2000, n_features=8, random_state=0):
    rng = np.random.default_rng(random_state)
    factors = rng.normal(size=(n_samples, 2))
    mixed = factors @ rng.normal(size=(2, n_features))
    return mixed + rng.normal(size=(n_samples, n_features))


def mean_squares(X, labels):
    """J of each era, by numpy."""
    off = ~np.eye(X.shape[1], dtype=bool)
    eras = np.unique(labels)
    return np.array([np.mean(np.corrcoef(X[labels == e].T)[off] ** 2) for e in eras])


@pytest.mark.parametrize(("n_eras", "seed"), [(2, 0), (3, 1), (6, 2)])
def test_subsets_are_less_correlated_than_random_ones(n_eras, seed):
    X = make_correlated(random_state=seed)
    labels = decorrelated_partition(X, n_eras, random_state=seed)
    counts = np.bincount(labels)
    assert np.all(np.diff(counts) <= 0)  # numbered by size
    assert counts.min() >= len(X) // (2 * n_eras)
    drawn = np.random.default_rng(seed).permutation(np.arange(len(X)) % n_eras)
    ours, at_random = mean_squares(X, labels), mean_squares(X, drawn)
    assert ours.mean() < 0.65 * at_random.mean()
    assert ours.min() < 0.5 * at_random.min()


def test_units_and_constants_do_not_matter_but_seeds_do():
    X = make_correlated()
    labels = decorrelated_partition(X, 3, random_state=1)
    scaled = np.insert(X * 2.0 ** np.arange(8), 3, 7.0, axis=1)
    assert_array_equal(decorrelated_partition(scaled, 3, random_state=1), labels)
    assert np.any(decorrelated_partition(X, 3, random_state=2) != labels)


def test_uncorrelated_features_stay_so():
    X = np.array([[a, b] for a in (-1.0, 1) for b in (-1.0, 1)] * 50)
    assert mean_squares(X, decorrelated_partition(X, 2, random_state=0)).max() < 1e-6


def make_search(n_samples, n_features, n_eras):
    X = make_correlated(n_samples=n_samples, n_features=n_features)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = np.arange(n_samples) % n_eras
    return Search(X, labels, EraMoments.of(X, labels, n_eras)), X, labels


def test_slopes_are_derivatives_of_the_objective():
    """Compare with the objective after one row more, of small weight."""
    search, X, labels = make_search(60, 4, 3)
    moments = EraMoments.of(X, labels, 3)
    targets, changes = search.best_moves(np.arange(60))
    step = 1e-5
    for row in range(0, 60, 7):
        change = []
        for weight in step * np.eye(3):
            moved = EraMoments(
                moments.counts + weight,
                moments.sums + np.multiply.outer(weight, X[row]),
                moments.products + np.multiply.outer(weight, np.outer(X[row], X[row])),
            )
            slope = (moved.correlations()[3].mean() - search.objective) / step
            change.append(slope)
        assert targets[row] == np.argmin(change)
        expected = min(change) - change[labels[row]]
        assert_allclose(changes[row], expected, rtol=1e-3, atol=1e-6)


def test_every_sweep_lowers_the_objective_and_keeps_the_sums():
    search, X, _ = make_search(500, 5, 2)
    rng = np.random.RandomState(0)
    last = search.objective
    for _ in range(4):
        search.sweep(rng, 100)
        anew = EraMoments.of(X, search.labels, 2)
        assert_allclose(search.moments.products, anew.products, atol=1e-9)
        assert_allclose(search.moments.counts, anew.counts)
        assert search.objective <= last
        last = search.objective
    assert_allclose(last, mean_squares(X, search.labels).mean(), rtol=1e-4)


@pytest.mark.parametrize(("X", "message"), [
    (np.column_stack([np.arange(9), np.ones(9)]), r"1 column\(s\) that vary"),
    (make_correlated(n_samples=8), "8 rows .* n_eras=3 takes 9 rows"),
])  # fmt: skip
def test_too_few_rows_or_columns(X, message):
    with pytest.raises(ValueError, match=message):
        decorrelated_partition(X, 3, random_state=0)
