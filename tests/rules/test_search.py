"""The beam search and its compiled sums against masks of rows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import rules as reference
from sklearn_era.rules._beam import BeamSearch, Round, Rule
from sklearn_era.rules._boosting import start_round
from sklearn_era.rules._columns import fit_bins, list_conditions
from sklearn_era.rules._refinements import RefinementCounter
from sklearn_era.rules._variance import make_term

QUALITIES = ("youden", "laplace", "m_estimate")


def draw_problem(
    seed, *, n_samples, n_features, n_bins, variance_of=None, **parameters
) -> tuple[reference.State, BeamSearch, Round, list[reference.Condition]]:
    """A round in the middle of a fit, for the reference and for the compiled search."""
    rng = np.random.default_rng(seed)
    is_categorical = rng.random(n_features) < 0.3
    X = rng.normal(size=(n_samples, n_features))
    X[:, is_categorical] = rng.integers(n_bins, size=(n_samples, is_categorical.sum()))
    X[rng.random(X.shape) < rng.choice([0.0, 0.1])] = np.nan
    X[0] = 0.0  # no column without a value
    is_positive = rng.random(n_samples) < 0.4
    is_positive[:8] = [True, False, False, True] * 2  # each group has two rows
    weights = rng.uniform(0.5, 2.0, n_samples)
    categories = [np.arange(n_bins * 1.0) if c else None for c in is_categorical]
    mapper = fit_bins(X, categories, weights, np.arange(n_features), n_bins=n_bins,
                      binning=str(rng.choice(["uniform", "quantile"])), random_state=0,
                      n_threads=1)  # fmt: skip
    X_binned, missing_bin = mapper.transform(X), mapper.missing_values_bin_idx_
    state = reference.State(X_binned, is_positive, weights, rng.normal(size=n_samples),
                            rng.choice([0.0, 0.1, 0.5], n_features),
                            **parameters)  # fmt: skip
    variance = None
    if variance_of is not None:
        labels = np.arange(n_samples) // 2 % 2
        term = variance_of, 0.3, rng.choice([0.5, 1.0])
        state.variance_of, state.variance_penalty, state.variance_power = term
        variance = make_term(labels, is_positive, 1, *term)
        state.groups = variance.groups
    conditions = list_conditions(mapper, (X_binned == missing_bin).any(axis=0))
    counter = RefinementCounter(X_binned, conditions, 2)
    search = BeamSearch(
        X_binned, conditions, counter, variance, 30, 2, False, state.min_samples_rule
    )
    rows = state.scores, is_positive, weights, lambda: state.column_penalties
    this_round = start_round(search, *rows, state)
    # The reference does not leave penalised rules for the one that covers all rows.
    this_round = replace(this_round, quality_of_all=-np.inf)
    listed = reference.list_conditions(
        X_binned, mapper.n_bins_non_missing_.tolist(), is_categorical, missing_bin
    )
    return state, search, this_round, listed


def as_reference(rule: object, missing_bin: int) -> reference.Rule:
    return tuple(
        tuple((column, frozenset(i for i in range(missing_bin + 1) if bins >> i & 1))
              for column, bins in conjunction)
        for conjunction in rule.conjunctions
    )  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), n_samples=st.integers(10, 40),
    n_features=st.integers(1, 6), n_bins=st.integers(2, 4),
    quality=st.sampled_from(QUALITIES), min_samples_rule=st.sampled_from([1, 3]),
    variance_of=st.sampled_from([None, "loss", "score", "probability"]),
    learning_rate=st.sampled_from([0.3, 1.0]),
    l2_regularization=st.sampled_from([0.0, 1.0]),
)  # fmt: skip
def test_a_wide_beam_finds_the_best_rule_of_all(seed, **parameters):
    state, search, this_round, conditions = draw_problem(seed, **parameters)
    wide = replace(search, width=max(1, search.conditions.column.size))
    found, best = wide.find(this_round), state.best_of_all(conditions)
    if found == Rule():
        assert best == -np.inf
        return
    quality = state.measure(as_reference(found, search.conditions.missing_bin))
    assert quality == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("has_disjunctions", [False, True])
def test_a_narrow_beam_is_as_narrow_as_it_says(has_disjunctions):
    """Width 3 and depth 3: the same rule as the reference's, where no two tie."""
    sizes = {"n_samples": 300, "n_features": 4, "n_bins": 4}
    for seed in range(10):
        state, search, this_round, conditions = draw_problem(seed, **sizes)
        of = {"width": 3, "max_depth": 3, "has_disjunctions": has_disjunctions}
        narrow = replace(search, **of)
        found = as_reference(narrow.find(this_round), search.conditions.missing_bin)
        _, expected = state.best_of_beam(conditions, 3, 3, has_disjunctions)
        assert state.measure(found) == pytest.approx(expected, abs=1e-12)
