"""Neutralization: numerai-tools gets the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from helpers.numerai.metric_cases import make_case, neutralized
from sklearn_era.numerai.metrics.neutralization import neutralize

SMALL = make_case(4, n_features=3, seed=1)


def neutralizer_kinds():
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 5, size=(300, 40)).astype(np.int8)
    constant = wide.copy()
    constant[:, 5:35] = 2
    one_hot = (wide[:, :2, None] == np.arange(5)).reshape(300, 10)
    return {
        "int8": wide,
        "columns in order": np.asfortranarray(wide),
        "constant columns": constant,
        "nothing but a constant": np.full((300, 1), 2, np.int8),
        "duplicates": np.hstack([wide, wide[:, :3]]),
        "sums": np.column_stack([wide, wide[:, 0].astype(int) + wide[:, 1]]),
        "one-hot": one_hot,
        "float32": rng.normal(size=(300, 20)).astype(np.float32),
        "negative integers": wide.astype(np.int16) * -500,
        "unsigned": wide.astype(np.uint8),
        "scales": rng.normal(size=(300, 6)) * 10.0 ** np.arange(-6, 6, 2),
        "large mean": rng.normal(size=(300, 5)) + 1e4,
        "a single column": wide[:, :1],
        "columns skipped": wide[:, ::3],
    }


@pytest.mark.parametrize("kind", neutralizer_kinds())
@pytest.mark.parametrize("proportion", [1.0, 0.3, 0.0])
def test_neutralize_equals_numerai_tools(kind, proportion):
    neutralizers = neutralizer_kinds()[kind]
    x = np.random.default_rng(1).normal(size=300)
    result = neutralize(x, neutralizers, proportion)
    expected = neutralized(x, neutralizers, proportion)
    # Where the singular values span 1e6, least squares itself knows fewer digits.
    tolerance = 1e-9 if kind in ("scales", "large mean") else 1e-12
    assert_allclose(result, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("exponent", range(1, 15))
def test_neutralizers_may_nearly_depend_on_each_other(exponent):
    rng = np.random.default_rng(exponent)
    columns = rng.normal(size=(200, 4))
    near = columns[:, :1] + 10.0**-exponent * rng.normal(size=(200, 1))
    neutralizers = np.hstack([columns, near])
    x = rng.normal(size=200)
    assert_allclose(
        neutralize(x, neutralizers),
        neutralized(x, neutralizers, 1.0),
        rtol=0,
        atol=1e-12 + 1e-15 * 10.0 ** min(exponent, 6),
    )


def test_features_of_numerai_need_no_singular_values(monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("least squares by singular values were called")

    rng = np.random.default_rng(0)
    features = rng.integers(0, 5, size=(1500, 300)).astype(np.int8)
    features[:, ::4] = features[:, 1::4]  # pairs that mostly agree
    flips = rng.random((1500, 75)) < 0.05
    features[:, ::4][flips] = rng.integers(0, 5, size=flips.sum())
    features[:, 200:] = 2  # not there yet in early eras
    x = rng.normal(size=1500)
    expected = neutralized(x, features, 1.0)
    with monkeypatch.context() as patch:
        patch.setattr(np.linalg, "lstsq", fail)
        result = neutralize(x, features)
        with pytest.raises(AssertionError, match="singular values"):
            neutralize(x, np.hstack([features, features]))
    assert_allclose(result, expected, rtol=0, atol=1e-12)


def test_neutralize_by_era_is_neutralize_of_each_era():
    result = neutralize(SMALL.predictions, SMALL.features, 0.8, SMALL.eras)
    for label in np.unique(SMALL.eras):
        own = SMALL.eras == label
        alone = neutralize(SMALL.predictions[own], SMALL.features[own], 0.8)
        assert_array_equal(result[own], alone)


@given(st.integers(0, 2**32), st.integers(1, 6), st.floats(0, 1))
def test_neutral_predictions_are_uncorrelated_with_neutralizers(seed, k, proportion):
    rng = np.random.default_rng(seed)
    neutralizers = rng.integers(0, 5, size=(50, k))
    x = rng.normal(size=50)
    neutral = neutralize(x, neutralizers)
    assert_allclose(neutralizers.T @ neutral, 0, atol=1e-11)
    assert_allclose(neutral.mean(), 0, atol=1e-13)
    assert_allclose(neutralize(neutral, neutralizers), neutral, rtol=0, atol=1e-13)
    mixed = proportion * neutral + (1 - proportion) * x
    assert_allclose(neutralize(x, neutralizers, proportion), mixed, atol=1e-13)
