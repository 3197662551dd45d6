"""Bins of floats are scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.ensemble._hist_gradient_boosting import binning as stock

from helpers.grids import on_grid
from helpers.trees import assert_same_bins
from sklearn_era._scikit_learn import BINS_ARE_WEIGHTED
from sklearn_era.ensemble._binning.floats import fit_float_mapper, transform
from sklearn_era.ensemble._binning.thresholds import find_thresholds

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")

UNUSUAL = [0.0, -0.0, 1.0, -np.inf, np.inf, np.nan, 1.7e308, -1.7e308, 5e-324]


@st.composite
def columns(draw):
    """Values with ties, missing and extreme ones among them, and perhaps weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows = draw(st.integers(1, 700))
    values = rng.normal(size=n_rows)
    if draw(st.booleans()):
        values = values.round(draw(st.integers(0, 2)))
    share = draw(st.sampled_from([0.0, 0.01, 0.5]))
    unusual = draw(st.lists(st.sampled_from(UNUSUAL), min_size=1))
    chosen = rng.uniform(size=n_rows) < share
    values[chosen] = rng.choice(unusual, size=chosen.sum())
    weights = [None, rng.integers(0, 3, size=n_rows) / 3.0]
    weights += [rng.gamma(0.1, scale, size=n_rows) for scale in (1e-9, 1.0, 1e9)]
    weights += [rng.normal(size=n_rows)]
    return values, draw(st.sampled_from(weights))


@given(columns(), st.integers(2, 255))
def test_thresholds_are_those_of_scikit_learn(column, max_bins):
    values, weights = column
    found = find_thresholds(values, max_bins, weights)
    arguments = [weights] if BINS_ARE_WEIGHTED else []
    weights = weights if BINS_ARE_WEIGHTED else None
    if np.isnan(values[slice(None) if weights is None else weights != 0]).all():
        assert found is None
        return
    expected = stock._find_binning_thresholds(values, max_bins, *arguments)
    assert_array_equal(found, expected)


@on_grid("n_rows max_bins", [255, 256, 257, 510, 511, 512, 2_551, 200_000], [2, 7, 255])
def test_quantiles_of_as_many_rows_as_bins_and_of_many_more(n_rows, max_bins):
    values = np.random.default_rng(n_rows).normal(size=n_rows)
    expected = stock._find_binning_thresholds(values, max_bins)
    assert_array_equal(find_thresholds(values, max_bins, None), expected)


@on_grid("has_nan_threshold n_threads", [False, True], [1, 3])
@on_grid("layout n_rows", ["C", "F", "strided"], [1, 63, 64, 65, 256, 1_000])
def test_bins_are_those_of_scikit_learn(n_rows, layout, n_threads, has_nan_threshold):
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 19))
    X[:, 4] = 1.0
    if has_nan_threshold:
        X[:, 5] = np.resize([-np.inf, np.inf], n_rows)
    X[:, 3] = rng.choice([0.0, 2.0, 5.0], size=n_rows)
    is_categorical = np.arange(19) == 3
    known = [np.array([0.0, 2.0, 5.0]) if x else None for x in is_categorical]
    params = {"is_categorical": is_categorical, "known_categories": known}
    mapper = stock._BinMapper(17, n_threads=n_threads, **params)
    fit_float_mapper(mapper, X, None, range(19))
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    X[rng.uniform(size=n_rows) < 0.1, 3] = -1.0
    if layout == "strided":
        X = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    else:
        X = np.asarray(X, order=layout)
    for order in "CF":
        bins = transform(mapper, X, order)
        assert bins.flags[f"{order}_CONTIGUOUS"]
        assert_array_equal(bins, mapper.transform(X))


def test_rows_are_drawn_as_scikit_learn_draws_them():
    X = np.random.default_rng(0).normal(size=(5_000, 3))
    drawn = {"subsample": 1_000, "random_state": 5}
    ours, theirs = (stock._BinMapper(256, **drawn) for _ in range(2))
    fit_float_mapper(ours, X, None, range(3))
    theirs.fit(X)
    assert_same_bins(ours, theirs)
