"""The key of a split by each criterion, calculated by hand, and means over eras."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from helpers.criteria import NAMES
from oracle.formulas import boltzmann_mean as exact_boltzmann_mean
from sklearn_era.criteria import Directional, Era, Invariant, TimeRobust, VREx
from sklearn_era.ensemble._criteria import objects
from sklearn_era.ensemble._criteria.objects import Criterion, boltzmann_mean

approx = pytest.approx

OF_SPLIT = {"impurities", "era_sizes", "gradient_variance", "groups"}


def rank(name, left, right, *, gain=10.0, **params):
    given = {key: params.pop(key) for key in OF_SPLIT & set(params)}
    return Criterion(name, **params).rank(left, right, gain=gain, **given)


ERA, DIRECTIONAL, TIME_ROBUST, INVARIANT, VREX = NAMES[1:]


# Eras with 6, 14 and 50 of their 20, 40 and 200 rows in the node, of which every third
# goes to the left: -g / h and h of each row.
N_J, N_IN_TRAINING, L2 = np.array([6, 14, 50]), np.array([20, 40, 200]), 0.5
_RNG = np.random.default_rng(0)
SIDES = [[np.arange(n) % 3 == 0 for n in N_J], [np.arange(n) % 3 > 0 for n in N_J]]
VALUES = [_RNG.normal(size=left.size) + 2 * left for left in SIDES[0]]
WEIGHTS = [_RNG.uniform(0.5, 2, n) for n in N_J]


def by_era(of, rows=(True, True, True)):
    each = zip(VALUES, WEIGHTS, rows, strict=True)
    return np.array([of(x[keep], h[keep]) for x, h, keep in each])


def left_in(x, h):
    """The sum of squares about the mean."""
    return np.sum(h * (x - np.average(x, weights=h)) ** 2)


ALL_ROWS = [np.ones(n, bool) for n in N_J]
G_L, G_R, G = (by_era(lambda x, h: -np.sum(x * h), s) for s in (*SIDES, ALL_ROWS))
H_L, H_R, H = (by_era(lambda x, h: np.sum(h), s) for s in (*SIDES, ALL_ROWS))
V_L, V_R, V = -G_L / (H_L + L2), -G_R / (H_R + L2), -G / (H + L2)
GAIN = G_L**2 / (H_L + L2) + G_R**2 / (H_R + L2) - G**2 / (H + L2)
L_BEFORE = by_era(left_in, ALL_ROWS) / H
L_J = (by_era(left_in, SIDES[0]) + by_era(left_in, SIDES[1])) / H
DECREASES = N_J / N_IN_TRAINING * (L_BEFORE - L_J)
# The same of standard deviations, without weights; squares stand for hessians.
SD = {"impurity": "standard_deviation"}
N_L, N_R = ([np.sum(s) for s in side] for side in SIDES)
S_L, S_R, S = (by_era(lambda x, h: np.std(x), s) for s in (*SIDES, ALL_ROWS))
SD_J = (N_L * S_L + N_R * S_R) / N_J
SUMS = [[G_L, H_L, N_L], [G_R, H_R, N_R]]
SQUARES = [
    [by_era(lambda x, h: np.sum(x), s), by_era(lambda x, h: np.sum(x**2), s), n]
    for s, n in zip(SIDES, (N_L, N_R), strict=True)
]


B = exact_boltzmann_mean
OF_DEVIATIONS = "L_j = (n_Lj s_Lj + n_Rj s_Rj) / n_j"
OF_DECREASE = "agg_j n_j / N_j (L_before,j - L_j)"


@pytest.mark.parametrize(("criterion", "formula", "key"), [
    (Era(-0.3), "B_alpha(gain_1, ..., gain_M)", B(GAIN, -0.3)),
    (Directional(), "|sum_j sign(v_Lj - v_Rj)| / M", abs(np.sign(V_L - V_R).sum()) / 3),
    (TimeRobust(), "-agg_j L_j", -L_J.max()),
    (TimeRobust("mean"), "-agg_j L_j", -L_J.mean()),
    (TimeRobust(2.0), "-agg_j L_j", -B(L_J, 2.0)),
    (TimeRobust(), OF_DECREASE, DECREASES.min()),
    (TimeRobust("mean"), OF_DECREASE, DECREASES.mean()),
    (TimeRobust(2.0), OF_DECREASE, B(DECREASES, -2.0)),
    (TimeRobust(**SD), OF_DEVIATIONS, -SD_J.max()),
    (TimeRobust("mean", **SD), OF_DEVIATIONS, -SD_J.mean()),
    (TimeRobust(2.0, **SD), OF_DEVIATIONS, -B(SD_J, 2.0)),
    (TimeRobust("mean", **SD), OF_DECREASE, (N_J / N_IN_TRAINING * (S - SD_J)).mean()),
    (Invariant(0.3), "v_Lj - v_Rj", 10 - 0.3 * H.sum() * np.var(V_L - V_R)),
    (Invariant(0.3, "changing_rate"), "v_Lj - v_j",
     10 - 0.3 * H.sum() * np.var(V_L - V)),
    (VREx(0.3), "mean_j gain_j - penalty * std_j gain_j",
     GAIN.mean() - 0.3 * GAIN.std()),
])  # fmt: skip
def test_formulas_of_docstrings(criterion, formula, key):
    """Of the kernel, by the rows of eras of unequal size."""
    assert formula in type(criterion).__doc__
    params = criterion._kernel_parameters()
    kernel = Criterion(criterion.name, l2_regularization=L2, **params)
    has_squares = getattr(criterion, "impurity", "") == "standard_deviation"
    sides = [np.column_stack(x) for x in (SQUARES if has_squares else SUMS)]
    found = kernel.rank(*sides, gain=10.0, impurities=L_BEFORE, era_sizes=N_IN_TRAINING)
    assert (found.priority if formula == OF_DECREASE else found.primary) == approx(key)


@pytest.mark.parametrize("unit", [1.0, 3.0, 1 / 3, 1e-12, 1e12])
@pytest.mark.parametrize("takes_worst", [True, False])
def test_pure_eras_have_no_impurity_in_any_unit(unit, takes_worst):
    """Each side has rows of one value: what is left of the impurity is rounding."""
    values = unit * np.random.default_rng(0).normal(size=(50, 2))
    n = np.tile([[1.0, 3.0]], (50, 1))
    left, right = np.stack([n * values, n, n]).transpose(2, 1, 0).tolist()
    means = (n * values).sum(axis=1) / 4
    impurities = (n * values**2).sum(axis=1) / 4 - means**2
    of = {"impurities": impurities, "takes_worst_era": takes_worst}
    assert rank(TIME_ROBUST, left, right, **of).primary == 0
    # What is more than rounding counts.
    assert rank(TIME_ROBUST, left, right, **of | {"impurities": 1.001 * impurities})[0]


def test_of_two_eras_the_smaller_gain_is_left_to_the_last_bit():
    """Less one deviation; so that splits which share it tie, whatever the other is."""
    rng = np.random.default_rng(0)
    for larger in 2.0 ** rng.uniform(1, 30, 200):
        left = rng.uniform(1, 2, (2, 3)) * [[-larger, 1, 1], [-1, 1, 1]]
        right = rng.uniform(1, 2, (2, 3)) * [[larger, 1, 1], [1, 1, 1]]
        smaller = objects.compare_sides([left], [right]).gains.min()
        for order in ([0, 1], [1, 0]):
            assert rank(VREX, left[order], right[order]).primary == smaller


CRITERIA = [
    *((name, {"boltzmann_alpha": alpha}) for name in (ERA, DIRECTIONAL)
      for alpha in (0.0, -math.inf, math.inf, -2.0, 0.5)),
    *((INVARIANT, {"invariance_statistic": statistic})
      for statistic in ("effect", "changing_rate", "ratio")),
    *((TIME_ROBUST, {"takes_worst_era": worst}) for worst in (True, False)),
    (TIME_ROBUST, {"takes_worst_era": False, "boltzmann_alpha": 0.5}),
    *((TIME_ROBUST, of | SD) for of in ({}, {"takes_worst_era": False},
      {"takes_worst_era": False, "boltzmann_alpha": 0.5})),
    (VREX, {}), (VREX, {"normalize_era_gain": True}),
    ("blend", {"weights": {"era": 1.0, "vrex": 1.0, "invariant": 1.0}}),
]  # fmt: skip
SIDE = st.tuples(st.integers(-4, 4), st.integers(0, 4))


@given(
    st.sampled_from(CRITERIA),
    st.lists(st.tuples(SIDE, SIDE, st.integers(0, 5)), min_size=1, max_size=9),
    st.randoms(use_true_random=False),
)
def test_eras_may_be_added_in_groups_that_are_merged(criterion, eras, random):
    """In any groups, in any order, some of them empty: a commutative monoid."""
    name, params = criterion
    # RATIO takes gradients for positive rows, which are a part of all.
    is_ratio = params.get("invariance_statistic", "effect") != "effect"
    has_squares = "impurity" in params
    left, right = (
        [
            (h / 2 if is_ratio else g, g * g + h if has_squares else h, h)
            for g, h in side
        ]
        for side in list(zip(*eras, strict=True))[:2]
    )
    impurities = [9.0 + era[2] for era in eras]
    sizes = [5] * len(eras)  # not of the node, where an era may have no rows
    of = {"impurities": impurities, "era_sizes": sizes}
    expected = rank(name, left, right, **of, **params)
    # The other groups are neutral, to the last bit.
    of_last = of | {"groups": [3] * len(eras)}
    assert rank(name, left, right, **of_last, **params) == expected
    order = random.sample(range(len(eras)), len(eras))
    lists = (left, right, impurities)
    left, right, impurities = ([each[i] for i in order] for each in lists)
    of |= {"impurities": impurities, "groups": [random.randrange(4) for _ in eras]}
    merged = rank(name, left, right, **of, **params)
    assert (merged is None) == (expected is None)
    assert merged is None or merged == approx(expected, rel=1e-12, abs=1e-12)


# Gains of any scale, of any sign: the gain within an era is negative where the pooled
# split, or the regularization, suits it badly.
sizes = st.floats(-300, 300).map(lambda exponent: 10.0**exponent)
gains = st.just(0.0) | st.floats(-10, 10) | sizes | sizes.map(lambda size: -size)
samples = st.lists(gains, min_size=1, max_size=12)
# Samples of one scale, where the operator does more than pick one value.
alike = st.builds(lambda scale, values: [scale * value for value in values], sizes,
                  st.lists(st.floats(-1, 1), min_size=1, max_size=12))  # fmt: skip
repeated = st.builds(lambda value, times: [value] * times, gains, st.integers(1, 20))
any_values = st.one_of(samples, alike, repeated)
alphas = st.sampled_from([-math.inf, math.inf, 0.0]) | st.floats(-5, 5)
alphas |= st.floats(-1e308, 1e308) | sizes | sizes.map(lambda size: -size)

many = settings(max_examples=4 * settings().max_examples)


def mean(values, alpha: float) -> float:
    return boltzmann_mean(np.array(values, dtype=float), alpha)


def rounding(values) -> float:
    """The error that a float64 computation may have."""
    return 1e-13 * len(values) * max(map(abs, values)) + 1e-307


@many
@given(values=any_values, alpha=alphas)
@example(values=[0.1, -0.3, 0.7], alpha=0.0)
@example(values=[1e300, -1e300], alpha=-1e308)
@example(values=[1e-300, 2e-300], alpha=1e308)
@example(values=[1e300, 1e300, 1e300], alpha=0.0)
# One value far from the others must not drown the difference between them.
@example(values=[1.0, 1.0 + 1e-9, -1e9], alpha=1e12)
def test_equals_the_exact_value(values, alpha):
    result = mean(values, alpha)
    assert min(values) <= result <= max(values)
    expected = exact_boltzmann_mean(values, alpha, digits=80)
    if math.isinf(alpha):  # one of the extremes
        assert result == expected
    # A weight exp(alpha x) is as uncertain as its exponent is large, but where it is
    # large the weight is nothing beside that of the extreme value.
    assert result == approx(expected, rel=1e-12, abs=rounding(values))


@many
@given(values=alike, relative=st.floats(-800, 800))
def test_equals_the_exact_value_where_weights_are_comparable(values, relative):
    alpha = relative / (max(map(abs, values)) or 1.0)
    alpha = min(max(alpha, -1e308), 1e308)
    expected = exact_boltzmann_mean(values, alpha, digits=80)
    # The offset from the extreme value is what is computed, and it is accurate.
    extreme, span = min(values) if alpha < 0 else max(values), max(values) - min(values)
    atol = 1e-13 * span + 4e-16 * abs(extreme) + 1e-307
    offset = mean(values, alpha) - extreme
    assert offset == approx(expected - extreme, rel=1e-11, abs=atol)


def test_no_values_are_refused():
    with pytest.raises(ValueError, match="values is empty"):
        mean([], 0.0)
