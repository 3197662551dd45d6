"""Eras in which features are hardly correlated: the search for them."""

import numpy as np
import pytest

from sklearn_era.environments import decorrelated_partition


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


@pytest.mark.parametrize(("X", "message"), [
    (np.column_stack([np.arange(9), np.ones(9)]), r"1 column\(s\) that vary"),
    (make_correlated(n_samples=8), "8 rows .* n_eras=3 takes 9 rows"),
])  # fmt: skip
def test_too_few_rows_or_columns(X, message):
    with pytest.raises(ValueError, match=message):
        decorrelated_partition(X, 3, random_state=0)
