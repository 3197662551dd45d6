"""What each criterion ranks a split by, calculated by hand."""

import math

import numpy as np
import pytest

from sklearn_era.ensemble._hist_gradient_boosting.criteria import (
    Criterion,
    InvarianceStatistic,
    SplitCriterion,
    agreement,
    compare_sides,
    weighted_impurity,
)

# Eras are (sum of gradients, sum of hessians, rows).

LEFT = [(-6.0, 3.0, 3), (-2.0, 1.0, 1), (4.0, 4.0, 4)]
RIGHT = [(2.0, 1.0, 1), (2.0, 1.0, 1), (-4.0, 4.0, 4)]
# v_L = 2, 2, -1 and v_R = -2, -2, 1.
# gain_j = a b / (a + b) (v_L - v_R)²: 3/4 16, 1/2 16 and 2 4.
GAINS = [12.0, 8.0, 8.0]
# Two of three agree that the left side predicts more.
AGREEMENT = 1 / 3
DEVIATION = math.sqrt(32 / 9)  # of the gains, around their mean 28/3


def rank(name, left=LEFT, right=RIGHT, *, gain=10.0, **params):
    given = {
        key: params.pop(key)
        for key in ("impurities", "era_sizes", "gradient_variance")
        if key in params
    }
    return Criterion(name, **params).rank(left, right, gain=gain, **given)


def test_era_ranks_by_the_boltzmann_mean():
    assert rank(SplitCriterion.ERA) == (
        pytest.approx(28 / 3),
        0,
        10,
        pytest.approx(28 / 3),
    )
    assert rank(SplitCriterion.ERA, boltzmann_alpha=-math.inf).primary == 8
    assert rank(SplitCriterion.ERA, boltzmann_alpha=math.inf).primary == 12
    weights = np.exp(0.1 * np.array(GAINS))
    expected = np.average(GAINS, weights=weights)
    result = rank(SplitCriterion.ERA, boltzmann_alpha=0.1)
    assert result.primary == pytest.approx(expected, rel=1e-14)


def test_normalised_gains_are_shares_of_the_variance():
    """Each gain over its era's hessians, 4, 2 and 8, and over the variance."""
    params = {"normalize_era_gain": True, "gradient_variance": 0.5}
    result = rank(SplitCriterion.ERA, **params)
    assert result.primary == pytest.approx((3 + 4 + 1) / 3 / 0.5)
    assert result.gain == 10
    assert rank(SplitCriterion.ERA, boltzmann_alpha=-math.inf, **params).primary == 2
    params["gradient_variance"] = 0.0
    assert rank(SplitCriterion.ERA, **params) is None


def test_directional_ranks_by_agreement_then_gain():
    result = rank(SplitCriterion.DIRECTIONAL, boltzmann_alpha=-math.inf)
    assert result == (AGREEMENT, 8, 10, AGREEMENT)
    for asked, is_valid in [(AGREEMENT, True), (0.34, False)]:
        params = {"min_direction_agreement": asked}
        assert (rank(SplitCriterion.DIRECTIONAL, **params) is not None) == is_valid
    # Of the first and the last era, one goes each way.
    halves = [LEFT[0], LEFT[2]], [RIGHT[0], RIGHT[2]]
    assert rank(SplitCriterion.DIRECTIONAL, *halves) is None


def test_vrex_ranks_by_the_mean_less_the_deviation():
    for penalty in (0.0, 0.5, 2.0):
        result = rank(SplitCriterion.VREX, invariance_penalty=penalty)
        assert result.primary == pytest.approx(28 / 3 - penalty * DEVIATION)
    assert rank(SplitCriterion.VREX, invariance_penalty=5.0) is None


def test_invariant_ranks_by_the_gain_less_the_variance():
    """Effects 4, 4, -2 have the variance 8; the node's hessians sum to 14."""
    result = rank(SplitCriterion.INVARIANT, invariance_penalty=0.5)
    assert result == (10 - 0.5 * 14 * 8, 0, 10, 10 - 0.5 * 14 * 8)
    # v_j = 1, 0, 0, so that left sides move by 1, 2 and -1: variance 14/9.
    result = rank(
        SplitCriterion.INVARIANT,
        invariance_statistic=InvarianceStatistic.CHANGING_RATE,
    )
    assert result.primary == pytest.approx(10 - 14 * 14 / 9)
    assert rank(SplitCriterion.INVARIANT, gain=0.0) is None
    assert rank(SplitCriterion.INVARIANT, gain=-1.0) is None


def test_invariant_ranks_by_the_ratio_of_ratios():
    """Positive weight and weight: I_j = (1.5/3)/(2.5/5) = 1 and (3.5/5)/(0.5/3)."""
    left, right = [(1.0, 3.0, 3), (3.0, 3.0, 3)], [(1.0, 3.0, 3), (1.0, 3.0, 3)]
    result = rank(
        SplitCriterion.INVARIANT,
        left,
        right,
        invariance_statistic=InvarianceStatistic.RATIO,
        invariance_penalty=0.25,
    )
    assert result.primary == pytest.approx(10 - 0.25 * 12 * (3.5 / 5 / (0.5 / 3) - 1))


def test_penalty_of_a_single_era_is_none():
    for statistic in InvarianceStatistic:
        result = rank(
            SplitCriterion.INVARIANT,
            LEFT[:1],
            RIGHT[:1],
            invariance_statistic=statistic,
        )
        assert result.primary == 10


def test_time_robust_ranks_by_the_impurity():
    """Decreases gain_j / H_j are 3, 4 and 1."""
    given = {"impurities": [3.5, 4.0, 5.0], "era_sizes": [8, 4, 8]}
    result = rank(SplitCriterion.TIME_ROBUST, **given)
    # Worst after the split is 5 - 1; shares of rows are 1/2, 1/2 and 1.
    assert result == (-4, 0, 10, 1)
    result = rank(SplitCriterion.TIME_ROBUST, takes_worst_era=False, **given)
    assert result.primary == pytest.approx(-(0.5 + 0 + 4) / 3)
    assert result.expansion == pytest.approx((1.5 + 2 + 1) / 3)
    for least, is_valid in [(0.999, True), (1.0, False)]:
        result = rank(SplitCriterion.TIME_ROBUST, min_impurity_decrease=least, **given)
        assert (result is not None) == is_valid
    with pytest.raises(ValueError, match="needs the impurities"):
        rank(SplitCriterion.TIME_ROBUST)


def test_blend_adds_up_keys():
    weights = {
        "gain": 0.5, "era": 2.0, "directional": 3.0, "invariant": 0.25, "vrex": 1.0,
    }  # fmt: skip
    result = rank(SplitCriterion.BLEND, weights=weights, invariance_penalty=0.1)
    expected = (
        0.5 * 10
        + 2 * 28 / 3
        + 3 * AGREEMENT
        + 0.25 * (10 - 0.1 * 14 * 8)
        + 28 / 3
        - 0.1 * DEVIATION
    )
    assert result == (pytest.approx(expected), 0, 10, pytest.approx(expected))
    # In units of H V: 14 times 2 for pooled gains, an era's own for its gains.
    normalised = rank(
        SplitCriterion.BLEND,
        weights={"gain": 1.0, "era": 1.0, "invariant": 1.0},
        invariance_penalty=0.1,
        normalize_era_gain=True,
        gradient_variance=2.0,
    )
    expected = 10 / 28 + (3 + 4 + 1) / 6 + (10 - 0.1 * 14 * 8) / 28
    assert normalised.primary == pytest.approx(expected)


def test_blend_asks_for_agreement_only_with_a_share_in_it():
    for weights, is_valid in [
        ({"era": 1.0, "gain": 1.0}, True),
        ({"era": 1.0, "directional": 0.01}, False),
    ]:
        result = rank(
            SplitCriterion.BLEND, weights=weights, min_direction_agreement=0.5
        )
        assert (result is not None) == is_valid
    weights = {"gain": 1.0, "invariant": 1.0}
    assert rank(SplitCriterion.BLEND, weights=weights, invariance_penalty=1.0) is None


EVERY = [name for name in SplitCriterion if name != SplitCriterion.TIME_ROBUST]


@pytest.mark.parametrize("name", EVERY)
def test_split_has_to_cover_enough_eras(name):
    """Sides of at least two rows are in the last era only, of one row in all."""
    weights = {"gain": 1.0, "era": 1.0} if name == SplitCriterion.BLEND else None
    for min_samples, min_covered, is_valid in [
        (1, 3, True), (2, 1, True), (2, 2, False), (4, 1, True), (5, 1, False),
    ]:  # fmt: skip
        result = rank(
            name,
            weights=weights,
            min_samples_per_era=min_samples,
            min_covered_eras=min_covered,
            invariance_penalty=0.1,
        )
        assert (result is not None) == is_valid, (min_samples, min_covered)


def test_uncovered_eras_have_no_gain_no_direction_and_no_part_in_the_variance():
    params = {"min_samples_per_era": 2, "min_covered_eras": 1}
    assert rank(SplitCriterion.ERA, **params).primary == pytest.approx(8 / 3)
    assert rank(SplitCriterion.DIRECTIONAL, **params).primary == 1 / 3
    result = rank(SplitCriterion.VREX, invariance_penalty=0.1, **params)
    assert result.primary == pytest.approx(8 / 3 - 0.1 * math.sqrt(128 / 9))
    assert rank(SplitCriterion.INVARIANT, **params).primary == 10
    given = {"impurities": [3.5, 4.0, 5.0]}
    assert rank(SplitCriterion.TIME_ROBUST, **given, **params) == (-4, 0, 10, 1)
    mean = rank(SplitCriterion.TIME_ROBUST, takes_worst_era=False, **given, **params)
    assert mean.primary == pytest.approx(-(3.5 + 4 + 4) / 3)
    assert mean.expansion == pytest.approx(1 / 3)


def test_era_without_weight_on_a_side_is_covered_but_tells_nothing():
    left, right = [*LEFT, (0.0, 0.0, 5)], [*RIGHT, (-7.0, 2.0, 5)]
    result = rank(SplitCriterion.ERA, left, right, min_covered_eras=4)
    assert result.primary == pytest.approx(28 / 4)
    result = rank(SplitCriterion.DIRECTIONAL, left, right, min_covered_eras=4)
    assert result.primary == 1 / 4
    result = rank(SplitCriterion.INVARIANT, left, right, invariance_penalty=0.5)
    assert result.primary == 10 - 0.5 * 16 * 8


def test_compare_sides_of_several_splits():
    left, right = [LEFT, RIGHT], [RIGHT, LEFT]
    result = compare_sides(left, right)
    assert result.gains.tolist() == [GAINS, GAINS]
    assert result.directions.tolist() == [[1, 1, -1], [-1, -1, 1]]
    assert result.covered.all()
    assert result.values_left.tolist() == [[2, 2, -1], [-2, -2, 1]]
    assert result.values_right.tolist() == [[-2, -2, 1], [2, 2, -1]]
    assert agreement(result.directions).tolist() == [AGREEMENT, AGREEMENT]
    result = compare_sides(left, right, min_samples_per_era=2)
    assert result.covered.tolist() == [[False, False, True]] * 2
    assert result.gains.tolist() == [[0, 0, 8]] * 2
    assert result.directions.tolist() == [[0, 0, -1], [0, 0, 1]]
    result = compare_sides(left, right, l2_regularization=1.0)
    # 36/4 + 4/2 - 16/5, 4/2 + 4/2 - 0 and 16/5 + 16/5 - 0.
    assert result.gains[0] == pytest.approx([7.8, 4, 6.4])
    assert result.values_left[0] == pytest.approx([1.5, 1, -0.8])


def test_agreement_of_no_directions_is_none():
    assert agreement(np.zeros((2, 0), dtype=np.int8)).tolist() == [0, 0]
    assert agreement(np.zeros((1, 3), dtype=np.int8)).tolist() == [0]


def test_weighted_impurity_is_a_weighted_variance():
    """Residuals g / h of -1, 2 and 3 with weights 1, 2 and 1: mean 1.5."""
    assert weighted_impurity([-1.0, 4.0, 3.0], [1.0, 2.0, 1.0]) == 2.25
    # A row without weight has no part in it.
    assert weighted_impurity([-1.0, 4.0, 3.0, 0.0], [1.0, 2.0, 1.0, 0.0]) == 2.25
    assert weighted_impurity([0.0, 0.0], [0.0, 0.0]) == 0
    assert weighted_impurity([0.1] * 3, [0.3] * 3) == pytest.approx(0, abs=1e-15)
    # Of the classes 0 and 1, half the Gini impurity p (1 - p).
    assert weighted_impurity([0.0, 0, 0, 1], [1.0] * 4) == pytest.approx(0.25 * 0.75)
