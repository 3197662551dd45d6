"""The worked examples of Liao, Wu and Yan, with their data and their numbers.

Liao, Wu and Yan (2024), Invariant Random Forest: Tree-Based Model Solution for OOD
Generalization.
Krueger et al. (2021), Out-of-Distribution Generalization via Risk Extrapolation.

Where neither paper has numbers for a formula, the sums are small enough for pen and
paper.
"""

import math

import numpy as np
import pytest

from helpers.paper_trees import (
    ESTIMATORS,
    fit_tree,
    nodes_of,
    pooled_gain,
    rank,
    split_of,
)
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.ensemble._hist_gradient_boosting.criteria import (
    Criterion,
    InvarianceStatistic,
    SplitCriterion,
    compare_sides,
)

# Liao et al. (2024), section 3: X1 is the label, twisted with probability .3, and X2
# the label, twisted with probability .1, .4 and, in the test environment, .7. Counts
# in proportion to the probabilities, 100 rows of each label an environment.


def stable_and_unstable(*twists):
    counts, rows = [], []
    for era, twist in enumerate(twists):
        for y in (0, 1):
            for c1, c2 in ((0, 0), (0, 1), (1, 0), (1, 1)):
                share = (0.3 if c1 else 0.7) * (twist if c2 else 1 - twist)
                counts.append(round(100 * share))
                rows.append((abs(y - c1), abs(y - c2), y, era))
    rows = np.repeat(np.array(rows), counts, axis=0)
    return rows[:, :2].astype(float), rows[:, 2], rows[:, 3]


# With a smoothing of counts, by how much the ratios of X2 differ: 4.77, not 5.
X2_RATIOS = (40.5 / 101) / (60.5 / 101) / ((10.5 / 101) / (90.5 / 101)) - 1

# Up to which value of a parameter X2 is chosen, and from there on X1. A regressor has
# pooled gains of 16 and 25, gains by era of (8, 8) and (32, 2), and 400 rows. With a
# log loss gains are 4 times, values 4 times, hessians 1/4 of that.
TURNING_POINTS = [
    # Effects: -.4 and -.4, -.8 and -.2. 25 - 400 * .09 lambda = 16.
    ("invariance_penalty", {"invariance_statistic": "effect"}, 0.25, 0.25),
    # Changing rates: -.2 and -.2, -.4 and -.1. 25 - 400 * .0225 lambda = 16.
    ("invariance_penalty", {"invariance_statistic": "changing_rate"}, 1.0, 1.0),
    (
        "invariance_penalty", {"invariance_statistic": "ratio"},
        (25 - 16) / 400 / X2_RATIOS, (100 - 64) / 100 / X2_RATIOS,
    ),
    # 17 - 15 lambda = 8.
    ("invariance_penalty", {"split_criterion": "vrex"}, 0.6, 0.6),
    # 24 exp(32 alpha) = 6 exp(2 alpha).
    (
        "boltzmann_alpha", {"split_criterion": "era"},
        -math.log(4) / 30, -math.log(4) / 120,
    ),
    # Both directions agree in both eras: the same gains decide.
    (
        "boltzmann_alpha", {"split_criterion": "directional"},
        -math.log(4) / 30, -math.log(4) / 120,
    ),
    # Gains of .16 and .16, .64 and .04 of the variance, whatever the loss.
    (
        "boltzmann_alpha", {"split_criterion": "era", "normalize_era_gain": True},
        -math.log(4) / 0.6, -math.log(4) / 0.6,
    ),
]  # fmt: skip


@ESTIMATORS
@pytest.mark.parametrize(("parameter", "params", "regressor", "classifier"),
                         TURNING_POINTS)  # fmt: skip
def test_toy_of_liao_turns_where_it_should(
    estimator, parameter, params, regressor, classifier
):
    is_regressor = estimator is HistGradientBoostingRegressor
    turn = regressor if is_regressor else classifier
    params = {"split_criterion": "invariant"} | params
    for factor, feature, gain in ((0.999, 1, 25), (1.001, 0, 16)):
        model = fit_tree(
            *stable_and_unstable(0.1, 0.4), estimator,
            **{parameter: factor * turn}, **params,
        )  # fmt: skip
        root = nodes_of(model)[0]
        assert split_of(root) == (feature, 0.5)
        assert root["gain"] == pytest.approx(gain if is_regressor else 4 * gain)


@ESTIMATORS
@pytest.mark.parametrize(
    ("params", "feature", "accuracies"),
    [
        ({"split_criterion": "gain"}, 1, (0.75, 0.30)),
        ({"split_criterion": "time_robust", "period_aggregation": "mean"}, 1,
         (0.75, 0.30)),
        ({"split_criterion": "invariant"}, 0, (0.70, 0.70)),
        ({"split_criterion": "invariant", "invariance_statistic": "ratio"}, 0,
         (0.70, 0.70)),
        ({"split_criterion": "time_robust"}, 0, (0.70, 0.70)),
        ({"split_criterion": "vrex"}, 0, (0.70, 0.70)),
        ({"split_criterion": "era", "boltzmann_alpha": -1.0}, 0, (0.70, 0.70)),
    ],
)  # fmt: skip
def test_toy_of_liao_has_these_accuracies(estimator, params, feature, accuracies):
    X, y, eras = stable_and_unstable(0.1, 0.4)
    model = fit_tree(X, y, eras, estimator, **params)
    assert split_of(nodes_of(model)[0]) == (feature, 0.5)
    X_test, y_test, _ = stable_and_unstable(0.7)
    assert (
        np.mean(model.predict(X).round() == y),
        np.mean(model.predict(X_test).round() == y_test),
    ) == accuracies


@pytest.mark.parametrize("statistic", ["effect", "changing_rate", "ratio"])
def test_a_large_penalty_leaves_only_what_is_invariant(statistic):
    # Equation 15 with lambda to infinity; X2 tells the label in 99 of 100 rows of one
    # era, X1 in 51 of 100 rows of each.
    n = [51, 49, 49, 51]
    X1, y = (np.tile(np.repeat(a, n), 2) for a in ([0, 1, 0, 1], [0, 0, 1, 1]))
    eras = np.repeat([0, 1], 200)
    X2 = np.where(eras == 0, y, np.arange(400) % 2)
    X2[[0, 199]] = 1 - X2[[0, 199]]
    data = np.c_[X1, X2], y, eras
    gains = [pooled_gain(y - 0.5, feature == 0) for feature in (X1, X2)]
    assert gains[0] == pytest.approx(400 * 0.25 * 0.02**2)
    assert gains[1] > 500 * gains[0]
    for penalty, feature in ((1e-6, 1), (1e12, 0)):
        model = fit_tree(
            *data, split_criterion="invariant", invariance_statistic=statistic,
            invariance_penalty=penalty,
        )  # fmt: skip
        root = nodes_of(model)[0]
        assert split_of(root) == (feature, 0.5)
        assert root["gain"] == pytest.approx(gains[feature])


def test_theorem_1_of_liao_where_the_share_of_labels_differs():
    # The feature depends on the label alone, P(left | 1) = 1/2 and P(left | 0) = .7,
    # but an era has 100 positive labels and the other one 300. Half of them keeps the
    # ratio what it is under the smoothing, too.
    cells = [(0, 1, 50), (1, 1, 50), (0, 0, 70), (1, 0, 30)]
    cells += [(0, 1, 150), (1, 1, 150), (0, 0, 70), (1, 0, 30)]
    x, y, n = np.array(cells).T
    x, y = np.repeat(x, n), np.repeat(y, n)
    eras = np.repeat([0, 1], [200, 400])
    goes_left = x == 0
    gain = pooled_gain(y - 0.5, goes_left)
    ratio = Criterion(
        SplitCriterion.INVARIANT, invariance_statistic=InvarianceStatistic.RATIO
    ).rank(
        [(50, 120, 120), (150, 220, 220)], [(50, 80, 80), (150, 180, 180)], gain=gain
    )
    assert ratio.primary == gain
    # What the label's mean does is not the same.
    effects = (50 / 120 - 50 / 80, 150 / 220 - 150 / 180)
    assert rank("INVARIANT", y, eras, goes_left).primary == pytest.approx(
        gain - 600 * ((effects[0] - effects[1]) / 2) ** 2
    )


def test_equations_16_to_19_of_liao_by_hand():
    # Positive labels and rows to the left and to the right.
    criterion = Criterion(
        SplitCriterion.INVARIANT, invariance_penalty=0.5,
        invariance_statistic=InvarianceStatistic.RATIO,
    )  # fmt: skip
    left = [(2, 3, 3), (0, 1, 1), (0, 2, 2)]
    right = [(1, 4, 4), (0, 2, 2), (2, 2, 2)]
    # The second era has no positive label.
    ratios = [
        (2.5 / 4) / (1.5 / 5),
        (0.5 / 1) / (1.5 / 4),
        (0.5 / 3) / (2.5 / 3),
    ]
    assert ratios == pytest.approx([25 / 12, 4 / 3, 1 / 5])
    key = criterion.rank(left, right, gain=2.0).primary
    assert key == pytest.approx(2 - 0.5 * 14 * (25 / 12 * 5 - 1))
    # An era with nothing on one side has no ratio to compare.
    key = criterion.rank([*left[:2], (0, 0, 0)], right, gain=2.0).primary
    assert key == pytest.approx(2 - 0.5 * 12 * (25 / 12 * 3 / 4 - 1))
    # One era has nothing to differ from.
    assert criterion.rank(left[:1], right[:1], gain=2.0).primary == 2.0
    # And it is the ratio that differs, not its logarithm: 1 and 3 are 2 apart.
    key = criterion.rank(
        [(1, 2, 2), (1, 1, 1)], [(1, 2, 2), (0, 1, 1)], gain=0.5
    ).primary  # fmt: skip
    assert key == pytest.approx(0.5 - 0.5 * 6 * ((1.5 / 2) / (0.5 / 2) - 1))


def test_equations_16_to_19_of_liao_choose_a_split():
    # The second era has no positive label. Ratios are 3/7 and 1 to the left of X1,
    # 1/7 and 5/3 to the left of X2, which explains more: 2/3 against 1/3.
    y = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    X1 = np.array([0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1])
    X2 = np.array([1, 1, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1])
    eras = np.repeat([0, 1], [8, 4])
    # 2/3 - 12 (35/3 - 1) lambda = 1/3 - 12 (7/3 - 1) lambda.
    for penalty, feature, gain in ((0.999 / 336, 1, 2 / 3), (1.001 / 336, 0, 1 / 3)):
        model = fit_tree(
            np.c_[X1, X2].astype(float), y, eras, split_criterion="invariant",
            invariance_statistic="ratio", invariance_penalty=penalty,
        )  # fmt: skip
        root = nodes_of(model)[0]
        assert split_of(root) == (feature, 0.5)
        assert root["gain"] == pytest.approx(gain, rel=1e-6)


@pytest.mark.parametrize(
    ("statistic", "variance"),
    [
        # 3/2 - 18/5 and 2 - 7/3.
        (InvarianceStatistic.CHANGING_RATE, ((2.1 - 1 / 3) / 2) ** 2),
        # 3/2 - 5 and 2 - 3.
        (InvarianceStatistic.EFFECT, ((3.5 - 1) / 2) ** 2),
    ],
)
def test_equations_20_to_22_of_liao_by_hand(statistic, variance):
    y = np.array([1.0, 2, 4, 5, 6, 0, 4, 3])
    eras = np.array([0, 0, 0, 0, 0, 1, 1, 1])
    goes_left = np.array([1, 1, 0, 0, 0, 1, 1, 0], dtype=bool)
    for penalty in (0.5, 2.0):
        ranked = rank("INVARIANT", y, eras, goes_left, invariance_penalty=penalty,
                      invariance_statistic=statistic)  # fmt: skip
        assert ranked.gain == pytest.approx(7**2 / 4 + 18**2 / 4 - 25**2 / 8)
        assert ranked.primary == pytest.approx(15.125 - penalty * 8 * variance)
        assert ranked.expansion == ranked.primary


def test_penalty_on_the_deviation_of_gains_by_hand():
    # Two rows a side, 1, 2 and 3 apart: gains of 1, 4 and 9, a variance of 98 / 9.
    # Krueger et al. (2021) take a mean risk and penalise the variance over eras.
    left = [(-2 * effect, 2, 2) for effect in (1, 2, 3)]
    right = [(0, 2, 2)] * 3
    assert compare_sides([left], [right]).gains.tolist() == [[1, 4, 9]]

    def key(penalty):
        criterion = Criterion(SplitCriterion.VREX, invariance_penalty=penalty)
        ranked = criterion.rank(left, right, gain=14.0)
        return ranked and ranked.primary

    assert key(0.0) == pytest.approx(14 / 3)
    assert key(1.0) == pytest.approx((14 - 7 * math.sqrt(2)) / 3)
    # The key is 0 at the square root of 2.
    assert key(1.414) > 0
    assert key(1.415) is None
