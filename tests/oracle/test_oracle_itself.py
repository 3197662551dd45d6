"""The oracle itself: its numbers, worked out by hand, and what trees it refuses.

The split of `judged`: rows of two eras, and one row of the second era in another node.

    era  gradients left  right  G  H  SS
    a    1, 3            5      9  3  35
    b    0               1, 7   8  3  50
"""

import math
from copy import copy
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import splits
from oracle.cases import SLOW, first_tree, fit_case, make_case
from oracle.criteria import judge_eras
from oracle.formulas import Interval, all_of, boltzmann_mean, exactly, smoothed, spread
from oracle.reference import check_fit
from oracle.rules import Rules
from oracle.splits import Problem, gradient_variance
from sklearn_era.criteria import Blend, Directional, Era, Invariant, TimeRobust, VREx

GRADIENTS = np.array([1, 3, 5, 0, 1, 7, -17], dtype=np.float32)
LEFT, NODE = np.array([1, 1, 0, 1, 0, 0, 0], dtype=bool), np.arange(7) < 6
ERAS = [np.arange(7) < 3, np.arange(7) >= 3]
IS_POSITIVE = np.array([1, 0, 1, 0, 1, 0, 1], dtype=bool)
V = 374 / 7  # of all gradients, which add up to 0


def judged(criterion, pooled_gain=100.0, l2=0.0, hessians=None, **rules):
    weights = criterion if isinstance(criterion, dict) else {criterion: 1.0}
    problem = Problem(
        np.zeros((7, 1)), GRADIENTS, np.array(hessians or 7 * [1.0]), ERAS,
        n_bins_non_missing=[2], has_missing=[False], missing_bin=255,
        is_categorical=[False], monotonic_cst=[0],
        rules=Rules(weights, **({"n_to_cover": 2} | rules)),
        is_positive=IS_POSITIVE, l2=l2,
    )  # fmt: skip
    return judge_eras(problem, NODE, LEFT, exactly(pooled_gain))


def is_about(interval, expected):
    assert (interval.low + interval.high) / 2 == pytest.approx(expected, rel=1e-12)
    assert 0 <= interval.high - interval.low <= 1e-11 * max(abs(expected), 1)
    return True


@pytest.mark.parametrize(("criterion", "rules", "expected"), [
    # gain_a = 16/2 + 25/1 - 81/3 = 6 and gain_b = 0/1 + 64/2 - 64/3 = 32/3
    ("era", {}, 25 / 3),
    ("era", {"boltzmann_alpha": -math.inf}, 6),
    ("era", {"boltzmann_alpha": math.inf}, 32 / 3),
    ("era", {"normalize": True}, 25 / 9 / V),
    # (16/4 + 25/3 - 81/5 + 0/3 + 64/4 - 64/5) / 2
    ("era", {"l2": 2.0}, -1 / 3),
    # the standard deviation of the gains is 7/3
    ("vrex", {}, 6),
    ("vrex", {"vrex_penalty": 3.0}, 25 / 3 - 7),
    ("vrex", {"normalize": True}, 6 / 3 / V),
    # v_L - v_R is 3 and 4: a variance of 1/4, and H is 6
    ("invariant", {}, 98.5),
    ("invariant", {"penalty": 4.0}, 94),
    ("invariant", {"normalize": True}, 98.5),
    # with l2 = 1: -4/3 + 5/2 = 7/6 and 0 + 8/3 = 16/6
    ("invariant", {"l2": 1.0}, 100 - 6 * 0.75**2),
    # v_L - v is 1 and 8/3
    ("invariant", {"statistic": "changing_rate"}, 100 - 6 * 25 / 36),
    # I_a = (1.5/3) / (1.5/2) = 2/3 and I_b = (.5/2) / (1.5/3) = 1/2
    ("invariant", {"statistic": "ratio"}, 98),
    ({"gain": 0.5, "era": 3.0}, {}, 75),
    ({"gain": 0.5, "directional": 3.0}, {}, 53),
    ({"invariant": 2.0, "vrex": 0.5}, {}, 200),
    ({"gain": 1.0, "invariant": 1.0, "era": 1.0, "directional": 2.0},
     {"normalize": True}, (100 + 98.5) / (6 * V) + 25 / 9 / V + 2),
])  # fmt: skip
def test_key(criterion, rules, expected):
    keys = judged(criterion, **rules)
    assert is_about(keys.primary, expected)
    assert keys.valid is (expected > 0)
    assert keys.order is None


def test_keys_of_directional_and_time_robust():
    keys = judged("directional", min_agreement=1.0)
    assert keys.primary == exactly(1.0)
    assert is_about(keys.secondary, 25 / 3)
    assert keys.valid is True
    # L_a = (35 - 16/2 - 25)/3 = 2/3, L_b = (50 - 0 - 64/2)/3 = 6
    # before: (35 - 81/3)/3 = 8/3, (50 - 64/3)/3 = 86/9, with 3/4 of era b here
    after = {
        "max": (6, 2), "mean": (10 / 3, 7 / 3),
        0.5: (boltzmann_mean([2 / 3, 6], 0.5), boltzmann_mean([2, 8 / 3], -0.5)),
    }  # fmt: skip
    for name, least, l2 in product(after, (0.0, 2.5), (0.0, 5.0)):
        rules = {"aggregation": name, "min_impurity_decrease": least}
        keys = judged("time_robust", l2=l2, **rules)
        assert is_about(keys.primary, -after[name][0])
        assert is_about(keys.order, after[name][1])
        assert keys.valid is (least == 0)
    # s_a = 1, 0 and sqrt(8/3) of both sides; s_b = 0, 3 and sqrt(86/9)
    decreases = [(8 / 3) ** 0.5 - 2 / 3, 3 / 4 * (86**0.5 / 3 - 2)]
    for name, after, decrease in [
        ("max", 2, min(decreases)), ("mean", 4 / 3, sum(decreases) / 2)]:  # fmt: skip
        rules = {"aggregation": name, "impurity": "standard_deviation"}
        keys = judged("time_robust", **rules)
        assert [keys.primary.low, keys.primary.high] == pytest.approx([-after] * 2)
        assert [keys.order.low, keys.order.high] == pytest.approx([decrease] * 2)


def test_an_uncovered_era_counts_as_0_or_not_at_all():
    def of_era_a(criterion, **rules):
        # Only era a has weight on both sides.
        return judged(criterion, hessians=[1, 1, 1, 0, 1, 1, 1], **rules).primary

    assert is_about(of_era_a("era"), 3)
    assert is_about(of_era_a("era", boltzmann_alpha=-math.inf), 0)
    assert is_about(of_era_a("vrex"), 0)
    assert is_about(of_era_a("directional"), 0.5)
    assert is_about(of_era_a("invariant"), 100)
    assert is_about(of_era_a("time_robust"), -2 / 3)
    # era b stays as impure as it was: (1 + 49 - 64/2) / 2 = 9
    assert is_about(of_era_a("time_robust", aggregation="mean"), -(2 / 3 + 9) / 2)
    # More rows of an era than there are.
    assert judged("era", min_samples_per_era=2) is None
    assert judged("time_robust", min_samples_per_era=2, n_to_cover=1) is None


def test_variance_of_gradients():
    # Constant hessians: the variance of the gradients.
    g = np.random.default_rng(0).normal(size=50) + 3
    assert is_about(gradient_variance(g, np.ones(50)), np.var(g))
    # Two rows that weigh 1 and 2 and predict 4 and 1: (16 + 2)/3 - (6/3)²
    assert is_about(gradient_variance(np.array([4.0, 2.0]), np.array([1.0, 2.0])), 2)
    assert gradient_variance(np.zeros(3), np.ones(3)) == exactly(0.0)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8),
    st.sampled_from([0.0, -1.0, 1e-3, 1e3, math.inf]),
)
def test_intervals_hold_what_float64_computes(values, alpha):
    deviation = spread([exactly(value) for value in values])
    assert deviation.low <= np.std(values) <= deviation.high
    wide = [Interval(value - 0.25, value + 0.25) for value in values]
    nearby = [value + 0.25 * (-1) ** i for i, value in enumerate(values)]
    assert spread(wide).low <= np.std(nearby) <= spread(wide).high
    blurred = smoothed(wide, alpha)
    assert blurred.low <= boltzmann_mean(nearby, alpha) <= blurred.high


def test_three_valued_answers():
    assert Interval(1, 2).is_above(0.5) is True
    assert Interval(1, 2).is_above(2) is False
    assert Interval(1, 2).is_above(1) is None
    assert Interval(1, 2).is_at_least(1) is True
    assert Interval(1, 2).is_at_least(2) is None
    assert all_of(True, None, False) is False
    assert all_of(True, None) is None
    assert all_of(True, True) is True
    # What may be 0 has any inverse.
    assert Interval(-1.0, 2.0).inverted() == Interval(-math.inf, math.inf)
    assert exactly(0.0).inverted() == exactly(0.0)
    assert exactly(0.0) * Interval(-math.inf, math.inf) == exactly(0.0)


def check(est, case, eras=None):
    return check_fit(est, case.X, case.y, case.eras if eras is None else eras)


OF, TWO = "split_criterion", {"era": 1.0, "vrex": 1.0}
RAW = Blend(TWO, normalize=False)
# A criterion, and parameters that its trees are not of.
OTHER_PARAMETERS = [
    (Era(boltzmann_alpha=-1.0), [
        (OF, Era(-math.inf)), (OF, Era(-1.0, normalize=True)), (OF, "gain"),
        (OF, "directional"), ("l2_regularization", 9.0), ("min_samples_leaf", 12),
        ("max_leaf_nodes", 7), ("max_depth", 2), ("learning_rate", 0.3),
        ("monotonic_cst", [-1, 0, 0]), ("interaction_cst", [(0,), (1,), (2,)]),
        ("max_features", 0.4), ("colsample_bytree", 0.4), ("min_samples_per_era", 6),
        ("min_era_coverage", 0.3), ("min_impurity_decrease", 0.3),
    ]),
    ("vrex", [(OF, VREx(0.9)), (OF, "era"), (OF, RAW)]),
    (RAW, [
        (OF, Blend(weights, normalize=False)) for weights in (
            TWO | {"era": 1.2}, TWO | {"directional": 5.0}, TWO | {"gain": 0.5},
            TWO | {"invariant": 0.5}, {"era": 1.0, VREx(2.0): 1.0},
        )
    ]),
    (Blend(TWO | {"gain": 1.0, "invariant": 1.0}, normalize=False), [
        (OF, TWO | {"gain": 1.0, "invariant": 1.0}),
        (OF, Blend(TWO | {"gain": 1.0, Invariant(2.0): 1.0}, normalize=False)),
    ]),
    (Blend(TWO | {"directional": 1.0}, normalize=False),
     [(OF, Blend(TWO | {Directional(1.0): 1.0}, normalize=False))]),
    ("time_robust", [
        (OF, TimeRobust("mean")), (OF, TimeRobust(min_impurity_decrease=0.1)),
        (OF, TimeRobust(impurity="standard_deviation")), ("min_samples_per_era", 5),
        ("min_era_coverage", 0.3), ("min_impurity_decrease", 0.3),
    ]),
    ("invariant", [
        *((OF, Invariant(penalty)) for penalty in (0.9, 0.0)),
        *((OF, Invariant(statistic=name)) for name in ("changing_rate", "ratio")),
        ("min_impurity_decrease", 0.1),
    ]),
]  # fmt: skip


@cache
def fit_and_check_once(number):
    """A model of the criterion of that number, and the case."""
    case = make_case("squared_error", ["coverage", "missing"], 9, 4, n_samples=250)
    case.y = (case.y > 0).astype(float)  # for the ratio
    case.params |= {"max_bins": 30, "min_samples_per_era": 1, "min_era_coverage": 0.7}
    case.params |= {"max_depth": None, "max_leaf_nodes": 8, "max_iter": 3}
    est = fit_case(case, split_criterion=OTHER_PARAMETERS[number][0])
    assert check(est, case).n_splits >= 8
    return est, case


BY_DEFAULT = {Era(-math.inf), TimeRobust("mean"), 0.4}


@pytest.mark.parametrize(("number", "name", "value"), [
    pytest.param(number, name, value, id=f"{criterion}-{name}-{value}",
                 marks=() if any(value == each for each in BY_DEFAULT) else SLOW)
    for number, (criterion, changes) in enumerate(OTHER_PARAMETERS)
    for name, value in changes
])  # fmt: skip
def test_the_oracle_refuses_trees_of_other_parameters(number, name, value):
    est, case = fit_and_check_once(number)
    with pytest.raises(AssertionError):
        check(copy(est).set_params(**{name: value}), case)


def test_the_oracle_refuses_nodes_that_were_tampered_with():
    case = make_case("squared_error", ["missing"], seed=3, n_samples=200)
    est = fit_case(case, split_criterion="era")
    check(est, case)
    with pytest.raises(AssertionError):
        check(est, case, case.eras[::-1])
    for name, change in [("gain", 0.1), ("value", 0.1), ("bin_threshold", 1)]:
        nodes = first_tree(est)
        before = nodes.copy()
        nodes[name][1 if name == "value" else 0] += change
        with pytest.raises(AssertionError):
            check(est, case)
        nodes[:] = before
    check(est, case)


@pytest.mark.parametrize("is_centred", [pytest.param(True, marks=SLOW), False])
def test_the_oracle_refuses_another_variance_of_the_gradients(monkeypatch, is_centred):
    # Most of the target is its median, where gradients are -1: their mean is not 0.
    case = make_case("absolute_error", [], seed=1, n_samples=400)
    case.y = case.y.clip(max=np.quantile(case.y, 0.25))
    case.params |= {"max_bins": 60, "max_iter": 4}
    est = fit_case(case, split_criterion={"era": 1.0, "directional": 0.1})
    check(est, case)

    def other_variance(gradients, hessians):
        found = gradient_variance(gradients, hessians)
        if is_centred:
            return found * exactly(1.2)
        return exactly(math.fsum(gradients**2) / len(gradients))

    monkeypatch.setattr(splits, "gradient_variance", other_variance)
    with pytest.raises(AssertionError):
        check(est, case)
