"""Running sums over eras, on their own."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oracle.reference import boltzmann_mean as exact_boltzmann_mean
from sklearn_era.ensemble._criteria.objects import boltzmann_mean

# Gains of any scale, of any sign: the gain within an era is negative where the pooled
# split, or the regularization, suits it badly.
sizes = st.floats(-300, 300).map(lambda exponent: 10.0**exponent)
gains = st.one_of(
    st.just(0.0), st.floats(-10, 10), sizes, sizes.map(lambda size: -size)
)
samples = st.lists(gains, min_size=1, max_size=12)
# Samples of one scale, where the operator does more than pick one value.
alike = st.builds(
    lambda scale, values: [scale * value for value in values],
    sizes,
    st.lists(st.floats(-1, 1), min_size=1, max_size=12),
)
repeated = st.builds(lambda value, times: [value] * times, gains, st.integers(1, 20))
any_values = st.one_of(samples, alike, repeated)
finite_alphas = st.one_of(
    st.just(0.0), st.floats(-5, 5), st.floats(-1e308, 1e308), sizes,
    sizes.map(lambda size: -size),
)  # fmt: skip
alphas = st.one_of(st.sampled_from([-math.inf, math.inf]), finite_alphas)

many = settings(max_examples=4 * settings().max_examples)


def mean(values, alpha: float) -> float:
    return boltzmann_mean(np.array(values, dtype=float), alpha)


def rounding(values) -> float:
    """The error that a float64 computation may have."""
    return 1e-13 * len(values) * max(map(abs, values)) + 1e-307


@many
@given(values=any_values, alpha=alphas)
@example(values=[0.1, -0.3, 0.7], alpha=0.0)
def test_equals_the_exact_value(values, alpha):
    result = mean(values, alpha)
    assert min(values) <= result <= max(values)
    expected = exact_boltzmann_mean(values, alpha, digits=80)
    if math.isinf(alpha):  # one of the extremes
        assert result == expected
    # A weight exp(alpha x) is as uncertain as its exponent is large, but where it is
    # large the weight is nothing beside that of the extreme value.
    assert result == pytest.approx(expected, rel=1e-12, abs=rounding(values))


@many
@given(values=alike, relative=st.floats(-800, 800))
def test_equals_the_exact_value_where_weights_are_comparable(values, relative):
    alpha = relative / (max(map(abs, values)) or 1.0)
    alpha = min(max(alpha, -1e308), 1e308)
    expected = exact_boltzmann_mean(values, alpha, digits=80)
    # The offset from the extreme value is what is computed, and it is accurate.
    extreme = min(values) if alpha < 0 else max(values)
    span = max(values) - min(values)
    assert mean(values, alpha) - extreme == pytest.approx(
        expected - extreme, rel=1e-11, abs=1e-13 * span + 4e-16 * abs(extreme) + 1e-307
    )


@pytest.mark.parametrize(
    ("values", "alpha", "expected"),
    [
        ([0.0, 1.0], 1.0, math.e / (1 + math.e)),
        ([0.0, 1.0], -1.0, 1 / (1 + math.e)),
        ([1.0, 2.0, 4.0], 0.0, 7 / 3),
        ([1e300, -1e300], 1e308, 1e300),
        ([1e300, -1e300], -1e308, -1e300),
        ([1e300, 1e300, 1e300], 0.0, 1e300),
        ([1e-300, 2e-300], 1e308, 2e-300),
        ([1e-300, 2e-300], -1e-308, 1.5e-300),
        ([5.0], 1e308, 5.0),
        # One value far from the others must not drown the difference between them.
        ([1.0, 1.0 + 1e-9, -1e9], 1e12, 1.0 + 1e-9),
    ],
)
def test_known_values(values, alpha, expected):
    assert mean(values, alpha) == pytest.approx(expected, rel=1e-15)


def test_no_values_are_refused():
    with pytest.raises(ValueError, match="values is empty"):
        mean([], 0.0)
