"""The key of a split by each criterion, calculated by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.criteria import NAMES
from sklearn_era.ensemble._criteria.objects import Criterion, compare_sides

approx = pytest.approx

# Eras are (sum of gradients, sum of hessians, rows).

LEFT = [(-6.0, 3.0, 3), (-2.0, 1.0, 1), (4.0, 4.0, 4)]
RIGHT = [(2.0, 1.0, 1), (2.0, 1.0, 1), (-4.0, 4.0, 4)]
# v_L = 2, 2, -1 and v_R = -2, -2, 1.
# gain_j = a b / (a + b) (v_L - v_R)²: 3/4 16, 1/2 16 and 2 4.
GAINS = [12.0, 8.0, 8.0]
# Two of three agree that the left side predicts more.
AGREEMENT = 1 / 3
DEVIATION = math.sqrt(32 / 9)  # of the gains, around their mean 28/3
OF_SPLIT = {"impurities", "era_sizes", "gradient_variance", "groups"}


def rank(name, left=LEFT, right=RIGHT, *, gain=10.0, **params):
    given = {key: params.pop(key) for key in OF_SPLIT & set(params)}
    return Criterion(name, **params).rank(left, right, gain=gain, **given)


ERA, DIRECTIONAL, TIME_ROBUST, INVARIANT, VREX, HELD_OUT = NAMES[1:]
BLEND = "blend"
STATISTICS = ["effect", "changing_rate", "ratio"]
NORMALISED = {"normalize_era_gain": True, "gradient_variance": 0.5}
WORST = {"boltzmann_alpha": -math.inf}
# Decreases gain_j / H_j are 3, 4 and 1; shares of rows are 1/2, 1/2 and 1.
IMPURITIES = {"impurities": [3.5, 4.0, 5.0], "era_sizes": [8, 4, 8]}
WEIGHTED = np.average(GAINS, weights=np.exp(0.1 * np.array(GAINS)))


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        (ERA, {}, approx(28 / 3)),
        (ERA, WORST, 8),
        (ERA, {"boltzmann_alpha": math.inf}, 12),
        (ERA, {"boltzmann_alpha": 0.1}, approx(WEIGHTED, rel=1e-14)),
        # Each gain over its era's hessians, 4, 2 and 8, and over the variance.
        (ERA, NORMALISED, approx((3 + 4 + 1) / 3 / 0.5)),
        (ERA, NORMALISED | WORST, 2),
        (ERA, NORMALISED | {"gradient_variance": 0.0}, None),
        (DIRECTIONAL, {"min_direction_agreement": AGREEMENT}, AGREEMENT),
        (DIRECTIONAL, {"min_direction_agreement": 0.34}, None),
        (VREX, {"vrex_penalty": 0.0}, approx(28 / 3)),
        (VREX, {"vrex_penalty": 0.5}, approx(28 / 3 - 0.5 * DEVIATION)),
        (VREX, {"vrex_penalty": 2.0}, approx(28 / 3 - 2 * DEVIATION)),
        (VREX, {"vrex_penalty": 5.0}, None),
        (HELD_OUT, {}, None),  # the third era predicts the contrary of the others
        # v_j = 1, 0, 0, so that left sides move by 1, 2 and -1: variance 14/9.
        (
            INVARIANT,
            {"invariance_statistic": "changing_rate"},
            approx(10 - 14 * 14 / 9),
        ),
        (INVARIANT, {"gain": 0.0}, None),
        (INVARIANT, {"gain": -1.0}, None),
        (
            TIME_ROBUST,
            IMPURITIES | {"takes_worst_era": False},
            approx(-(0.5 + 0 + 4) / 3),
        ),
        (TIME_ROBUST, IMPURITIES | {"min_impurity_decrease": 0.999}, -4),
        (TIME_ROBUST, IMPURITIES | {"min_impurity_decrease": 1.0}, None),
        # In units of H V: 14 times 2 for pooled gains, an era's own for its gains.
        (
            BLEND,
            {
                "weights": {"gain": 1.0, "era": 1.0, "invariant": 1.0},
                "invariance_penalty": 0.1,
                "normalize_era_gain": True,
                "gradient_variance": 2.0,
            },
            approx(10 / 28 + (3 + 4 + 1) / 6 + (10 - 0.1 * 14 * 8) / 28),
        ),
        # A blend needs agreement only with a share in it.
        (
            BLEND,
            {"weights": {"era": 1.0, "gain": 1.0}, "min_direction_agreement": 0.5},
            approx(28 / 3 + 10),
        ),
        (
            BLEND,
            {
                "weights": {"era": 1.0, "directional": 0.01},
                "min_direction_agreement": 0.5,
            },
            None,
        ),
        (BLEND, {"weights": {"gain": 1.0, "invariant": 1.0}}, None),
    ],
)
def test_primary_key(name, params, expected):
    result = rank(name, **params)
    assert (result and result.primary) == expected


def test_all_keys():
    """The key, what breaks its ties, the pooled gain, and the growth of the best."""
    mean = approx(28 / 3)
    assert rank(ERA) == (mean, 0, 10, mean)
    assert rank(DIRECTIONAL, **WORST) == (AGREEMENT, 8, 10, AGREEMENT)
    # Effects 4, 4, -2 have the variance 8; the node's hessians sum to 14.
    penalised = 10 - 0.5 * 14 * 8
    expected = (penalised, 0, 10, penalised)
    assert rank(INVARIANT, invariance_penalty=0.5) == expected
    # Worst after the split is 5 - 1.
    assert rank(TIME_ROBUST, **IMPURITIES) == (-4, 0, 10, 1)
    result = rank(TIME_ROBUST, takes_worst_era=False, **IMPURITIES)
    assert result.priority == approx((1.5 + 2 + 1) / 3)
    with pytest.raises(ValueError, match="needs the impurities"):
        rank(TIME_ROBUST)
    weights = {
        "gain": 0.5, "era": 2.0, "directional": 3.0, "invariant": 0.25, "vrex": 1.0,
    }  # fmt: skip
    expected = 0.5 * 10 + 2 * 28 / 3 + 3 * AGREEMENT + 0.25 * (10 - 0.1 * 14 * 8)
    expected = approx(expected + 28 / 3 - 0.3 * DEVIATION)
    penalties = {"invariance_penalty": 0.1, "vrex_penalty": 0.3}
    result = rank(BLEND, weights=weights, **penalties)
    assert result == (expected, 0, 10, expected)


def test_as_many_eras_for_as_against_are_no_direction():
    assert rank(DIRECTIONAL, [LEFT[0], LEFT[2]], [RIGHT[0], RIGHT[2]]) is None


def test_invariant_ranks_by_the_ratio_of_ratios():
    """Positive weight and weight: I_j = (1.5/3)/(2.5/5) = 1 and (3.5/5)/(0.5/3)."""
    sides = [(1.0, 3.0, 3), (3.0, 3.0, 3)], [(1.0, 3.0, 3), (1.0, 3.0, 3)]
    params = {"invariance_statistic": "ratio", "invariance_penalty": 0.25}
    result = rank(INVARIANT, *sides, **params)
    assert result.primary == approx(10 - 0.25 * 12 * (3.5 / 5 / (0.5 / 3) - 1))


@pytest.mark.parametrize("statistic", STATISTICS)
def test_penalty_of_a_single_era_is_none(statistic):
    result = rank(INVARIANT, LEFT[:1], RIGHT[:1], invariance_statistic=statistic)
    assert result.primary == 10


@pytest.mark.parametrize("name", [ERA, DIRECTIONAL, INVARIANT, VREX, BLEND])
@pytest.mark.parametrize(
    ("min_samples", "min_covered", "is_valid"),
    [(1, 3, True), (2, 1, True), (2, 2, False), (4, 1, True), (5, 1, False)],
)
def test_split_has_to_cover_enough_eras(name, min_samples, min_covered, is_valid):
    """Sides of at least two rows are in the last era only, of one row in all."""
    result = rank(
        name,
        weights={"gain": 1.0, "era": 1.0} if name == BLEND else None,
        min_samples_per_era=min_samples,
        min_covered_eras=min_covered,
        invariance_penalty=0.1,
        vrex_penalty=0.1,
    )
    assert (result is not None) == is_valid


@pytest.mark.parametrize("normalised", [False, True])
def test_held_out_takes_the_values_of_the_other_eras(normalised):
    # The second era has no rows on the left, and the third alone has some on the right.
    left, right = np.array([[-6.0, 3, 3], [0, 0, 0], [-1, 2, 2]]), np.zeros((3, 3))
    right[2] = 6, 3, 3
    both, expected = left + right, 0.0
    for j in range(3):
        others = [
            np.delete(side, j, axis=0).sum(axis=0) for side in (both, left, right)
        ]
        node, *sides = (-G / (H + 0.5) if n else None for G, H, n in others)
        v = [node, *(node if value is None else value for value in sides)]
        q = [
            2 * s[j, 0] * x + s[j, 1] * x**2
            for s, x in zip((both, left, right), v, strict=True)
        ]
        saved = q[0] - q[1] - q[2]
        expected += saved / (both[j, 1] or 1) / 2 / 3 if normalised else saved
    params = {"gradient_variance": 2.0, "normalize_era_gain": normalised}
    result = rank(HELD_OUT, left, right, l2_regularization=0.5, **params)
    assert result.primary == approx(expected)
    # Sides of equal rows differ by rounding, which a split does not save.
    assert rank(HELD_OUT, [(-3 - 3e-7, 3, 3)] * 2, [(-3.0, 3, 3)] * 2) is None
    # Alike eras have the gain, whatever their number.
    twice = [(-6.0, 3.0, 3)] * 2, [(6.0, 3.0, 3)] * 2
    assert rank(HELD_OUT, *twice).primary == 2 * 6**2 / 3 * 2


def test_uncovered_eras_have_no_gain_no_direction_and_no_part_in_the_variance():
    params = {"min_samples_per_era": 2, "min_covered_eras": 1}
    assert rank(ERA, **params).primary == approx(8 / 3)
    assert rank(DIRECTIONAL, **params).primary == 1 / 3
    result = rank(VREX, vrex_penalty=0.1, **params)
    assert result.primary == approx(8 / 3 - 0.1 * math.sqrt(128 / 9))
    assert rank(INVARIANT, **params).primary == 10
    given = {"impurities": [3.5, 4.0, 5.0]}
    assert rank(TIME_ROBUST, **given, **params) == (-4, 0, 10, 1)
    mean = rank(TIME_ROBUST, takes_worst_era=False, **given, **params)
    assert mean.primary == approx(-(3.5 + 4 + 4) / 3)
    assert mean.priority == approx(1 / 3)


def test_era_without_weight_on_a_side_is_covered_but_tells_nothing():
    left, right = [*LEFT, (0.0, 0.0, 5)], [*RIGHT, (-7.0, 2.0, 5)]
    result = rank(ERA, left, right, min_covered_eras=4)
    assert result.primary == approx(28 / 4)
    result = rank(DIRECTIONAL, left, right, min_covered_eras=4)
    assert result.primary == 1 / 4
    result = rank(INVARIANT, left, right, invariance_penalty=0.5)
    assert result.primary == 10 - 0.5 * 16 * 8


def test_of_two_eras_the_smaller_gain_is_left_to_the_last_bit():
    """Less one deviation; so that splits which share it tie, whatever the other is."""
    rng = np.random.default_rng(0)
    for larger in 2.0 ** rng.uniform(1, 30, 200):
        left = rng.uniform(1, 2, (2, 3)) * [[-larger, 1, 1], [-1, 1, 1]]
        right = rng.uniform(1, 2, (2, 3)) * [[larger, 1, 1], [1, 1, 1]]
        smaller = compare_sides([left], [right]).gains.min()
        for order in ([0, 1], [1, 0]):
            assert rank(VREX, left[order], right[order]).primary == smaller


@given(
    st.sampled_from(
        [
            (name, {"boltzmann_alpha": alpha})
            for name in (ERA, DIRECTIONAL)
            for alpha in (0.0, -math.inf, math.inf, -2.0, 0.5)
        ]
        + [(INVARIANT, {"invariance_statistic": statistic}) for statistic in STATISTICS]
        + [(TIME_ROBUST, {"takes_worst_era": worst}) for worst in (True, False)]
        + [
            (VREX, {}),
            (VREX, {"normalize_era_gain": True}),
            (HELD_OUT, {"l2_regularization": 0.5}),
            (BLEND, {"weights": {"era": 1.0, "vrex": 1.0, "invariant": 1.0}}),
        ]
    ),
    st.lists(
        st.tuples(*[st.integers(-4, 4), st.integers(0, 4)] * 2, st.integers(0, 5)),
        min_size=1,
        max_size=9,
    ),
    st.randoms(use_true_random=False),
)
def test_eras_may_be_added_in_groups_that_are_merged(criterion, eras, random):
    """In any groups, in any order, some of them empty: a commutative monoid."""
    name, params = criterion
    left, right = (
        # RATIO takes gradients for positive rows, of which there is a part of all.
        [
            (
                g
                if params.get("invariance_statistic", "effect") == "effect"
                else h / 2,
                h,
                h,
            )
            for g, h in side
        ]
        for side in ([era[:2] for era in eras], [era[2:4] for era in eras])
    )
    given = {"impurities": [9.0 + era[4] for era in eras], "gain": 10.0, **params}
    expected = rank(name, left, right, **given)
    last = rank(name, left, right, groups=[3] * len(eras), **given)
    assert last == expected  # the other groups are neutral, to the last bit
    order = random.sample(range(len(eras)), len(eras))
    given["impurities"] = [given["impurities"][i] for i in order]
    merged = rank(
        name,
        [left[i] for i in order],
        [right[i] for i in order],
        groups=[random.randrange(4) for _ in eras],
        **given,
    )
    assert (merged is None) == (expected is None)
    if merged is not None:
        assert merged == approx(expected, rel=1e-12, abs=1e-12)


def test_compare_sides_of_several_splits():
    left, right = [LEFT, RIGHT], [RIGHT, LEFT]
    result = compare_sides(left, right)
    assert result.gains.tolist() == [GAINS, GAINS]
    assert result.directions.tolist() == [[1, 1, -1], [-1, -1, 1]]
    assert result.covered.all()
    assert result.values_left.tolist() == [[2, 2, -1], [-2, -2, 1]]
    assert result.values_right.tolist() == [[-2, -2, 1], [2, 2, -1]]
    result = compare_sides(left, right, min_samples_per_era=2)
    assert result.covered.tolist() == [[False, False, True]] * 2
    assert result.gains.tolist() == [[0, 0, 8]] * 2
    assert result.directions.tolist() == [[0, 0, -1], [0, 0, 1]]
    result = compare_sides(left, right, l2_regularization=1.0)
    # 36/4 + 4/2 - 16/5, 4/2 + 4/2 - 0 and 16/5 + 16/5 - 0.
    assert result.gains[0] == approx([7.8, 4, 6.4])
    assert result.values_left[0] == approx([1.5, 1, -0.8])
