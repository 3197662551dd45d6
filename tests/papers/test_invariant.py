"""The worked examples of Liao, Wu and Yan, with their data and their numbers.

Liao, Wu and Yan (2024), Invariant Random Forest: Tree-Based Model Solution for OOD
Generalization.
Krueger et al. (2021), Out-of-Distribution Generalization via Risk Extrapolation.
"""

import math

import numpy as np
import pytest

from helpers.paper_trees import ESTIMATORS, fit_tree, nodes_of, split_of
from sklearn_era.criteria import Directional, Era, Invariant, TimeRobust, VREx
from sklearn_era.ensemble import HistGradientBoostingRegressor

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
    (Invariant, "penalty", {"statistic": "effect"}, 0.25, 0.25),
    # Changing rates: -.2 and -.2, -.4 and -.1. 25 - 400 * .0225 lambda = 16.
    (Invariant, "penalty", {"statistic": "changing_rate"}, 1.0, 1.0),
    (Invariant, "penalty", {"statistic": "ratio"},
     (25 - 16) / 400 / X2_RATIOS, (100 - 64) / 100 / X2_RATIOS),
    # 17 - 15 lambda = 8.
    (VREx, "penalty", {}, 0.6, 0.6),
    # 24 exp(32 alpha) = 6 exp(2 alpha).
    (Era, "boltzmann_alpha", {}, -math.log(4) / 30, -math.log(4) / 120),
    # Both directions agree in both eras: the same gains decide.
    (Directional, "boltzmann_alpha", {}, -math.log(4) / 30, -math.log(4) / 120),
    # Gains of .16 and .16, .64 and .04 of the variance, whatever the loss.
    (Era, "boltzmann_alpha", {"normalize": True}, -math.log(4) / 0.6,
     -math.log(4) / 0.6),
]  # fmt: skip


@ESTIMATORS
@pytest.mark.parametrize(
    ("criterion", "parameter", "params", "regressor", "classifier"), TURNING_POINTS
)
def test_toy_of_liao_turns_where_it_should(
    estimator, criterion, parameter, params, regressor, classifier
):
    is_regressor = estimator is HistGradientBoostingRegressor
    turn = regressor if is_regressor else classifier
    for factor, feature, gain in ((0.999, 1, 25), (1.001, 0, 16)):
        model = fit_tree(
            *stable_and_unstable(0.1, 0.4), estimator,
            split_criterion=criterion(**{parameter: factor * turn}, **params),
        )  # fmt: skip
        root = nodes_of(model)[0]
        assert split_of(root) == (feature, 0.5)
        assert root["gain"] == pytest.approx(gain if is_regressor else 4 * gain)


@ESTIMATORS
@pytest.mark.parametrize(
    ("criterion", "feature"),
    [
        ("gain", 1), ("invariant", 0), ("time_robust", 0), ("vrex", 0),
        (TimeRobust(aggregation="mean"), 1), (Invariant(statistic="ratio"), 0),
        (Era(boltzmann_alpha=-1.0), 0),
    ],
)  # fmt: skip
def test_toy_of_liao_has_these_accuracies(estimator, criterion, feature):
    X, y, eras = stable_and_unstable(0.1, 0.4)
    model = fit_tree(X, y, eras, estimator, split_criterion=criterion)
    assert split_of(nodes_of(model)[0]) == (feature, 0.5)
    X_test, y_test, _ = stable_and_unstable(0.7)
    assert np.mean(model.predict(X).round() == y) == (0.70, 0.75)[feature]
    assert np.mean(model.predict(X_test).round() == y_test) == (0.70, 0.30)[feature]


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
            np.c_[X1, X2].astype(float), y, eras,
            split_criterion=Invariant(penalty, "ratio"),
        )  # fmt: skip
        root = nodes_of(model)[0]
        assert split_of(root) == (feature, 0.5)
        assert root["gain"] == pytest.approx(gain, rel=1e-6)
