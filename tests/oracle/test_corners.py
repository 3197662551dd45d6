"""Corners in which an implementation goes wrong in silence, against brute force."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from oracle.cases import (
    CRITERIA,
    ERA_CRITERIA,
    Case,
    criterion_id,
    fit_and_check,
    make_case,
    suit,
)
from oracle.reference import check_fit
from sklearn_era.ensemble import HistGradientBoostingRegressor


def regressor(split_criterion, **params):
    defaults = {"max_iter": 1, "min_samples_leaf": 1, "early_stopping": False}
    return HistGradientBoostingRegressor(
        split_criterion=split_criterion, **(defaults | params)
    )


def root(est):
    return est._predictors[0][0].nodes[0]


@pytest.mark.parametrize("constant", [0.1, 0.4, 1.9])
@pytest.mark.parametrize("n_left", [1, 3, 8, 21])
@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_era_of_equal_rows_has_no_direction_and_no_gain(
    weighted, loss, n_left, constant
):
    """Both sides of its split predict the same: sign(v_L - v_R) is 0, gain_j is 0.

    With weights too, which round gradients and hessians apart.
    """
    weights = np.random.default_rng(n_left).uniform(0.5, 2, 48) if weighted else None
    rows = np.arange(24)
    X = np.r_[rows >= n_left, rows >= 12].astype(float).reshape(-1, 1)
    eras = np.repeat(["equal", "unequal"], 24)
    y = np.r_[np.full(24, constant), np.where(rows < 12, 1.0, 3.0)]
    for alpha in (0.0, -math.inf):
        case = Case(X, y, eras, weights, {"loss": loss, "min_samples_leaf": 1})
        case.params |= {"boltzmann_alpha": alpha, "max_iter": 1}
        for agreement, can_split in [(0.5, alpha == 0), (0.6, False)]:
            report = fit_and_check(
                case, split_criterion="directional", min_direction_agreement=agreement
            )
            assert report.n_splits == can_split
        report = fit_and_check(case, split_criterion="era")
        assert report.n_splits == (alpha == 0)


@pytest.mark.parametrize("n_left", range(1, 40, 3))
def test_the_worst_era_gains_nothing_where_its_rows_are_of_one_class(n_left):
    rows = np.arange(40)
    X = np.r_[rows >= n_left, rows >= 20].astype(float).reshape(-1, 1)
    positives = np.random.default_rng(0).random(40) < np.where(rows < 20, 0.8, 0.3)
    case = Case(
        X,
        np.r_[np.ones(40, dtype=int), positives.astype(int)],
        np.repeat([0, 1], 40),
        params={"max_iter": 1, "min_samples_leaf": 1, "boltzmann_alpha": -math.inf},
    )
    assert fit_and_check(case, split_criterion="era").n_splits == 0


@pytest.mark.parametrize("seed", [0, 1, 101, 116, 160, 278, 314])
def test_rows_without_weight_predict_nothing(seed):
    """A side of an era with zero weights only has the value 0, whatever the others."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(40)
    x = np.tile(np.repeat([0, 1, 2], [5, 5, 10]), 2)[order]
    eras = np.repeat([0, 1], 20)[order]
    # Weights of all sizes: a difference of sums is then far from 0.
    weight = np.where((eras == 0) & (x == 2), 0.0, 10 ** rng.uniform(-5, 5, 40))
    case = Case(x.reshape(-1, 1).astype(float), x + rng.normal(size=40), eras, weight)
    case.params = {"max_iter": 1, "max_leaf_nodes": 3, "min_samples_leaf": 15}
    for criterion in ("era", "directional"):
        fit_and_check(case, split_criterion=criterion)


@pytest.mark.parametrize("level", [-5.0, 5.0])
def test_a_side_without_weight_has_no_say_in_the_direction(level):
    """Neither where the era's other side predicts more than 0, nor where less."""
    side = np.tile([0.0, 1.0], 30)
    eras = np.repeat([0, 1, 2], 20)
    weight = np.where((eras > 0) & (side == 1), 0.0, 1.0)
    y = np.where(eras == 0, side, level)
    case = Case(side.reshape(-1, 1), y, eras, weight)
    case.params = {"max_iter": 1, "min_samples_leaf": 1}
    assert fit_and_check(case, split_criterion="directional").n_splits == 1
    demanding = {"split_criterion": "directional", "min_direction_agreement": 0.5}
    assert fit_and_check(case, **demanding).n_splits == 0


def test_an_era_without_weight_counts_as_gain_and_direction_0():
    case = make_case("squared_error", [], seed=1)
    case.sample_weight = np.where(case.eras == "w", 0.0, 1.0)
    case.params |= {"min_samples_leaf": 5}
    assert fit_and_check(case, split_criterion="era").n_splits > 0
    report = fit_and_check(
        case, split_criterion="era", boltzmann_alpha=-math.inf
    )  # the worst gain is 0
    assert report.n_splits == 0
    directional = {"split_criterion": "directional", "min_direction_agreement": 1.0}
    assert fit_and_check(case, **directional).n_splits == 0


def test_a_tie_of_agreement_goes_to_the_larger_mean_of_another_feature():
    rng = np.random.default_rng(0)
    signal = np.tile([0.0, 1.0], 50)
    weak = np.where(rng.random(100) < 0.3, 1 - signal, signal)
    X, eras = np.column_stack([weak, signal]), np.repeat([0, 1], 50)
    est = regressor("directional").fit(X, signal, eras=eras)
    assert root(est)["feature_idx"] == 1
    assert check_fit(est, X, signal, eras).n_splits > 0


@pytest.mark.parametrize("better", [0, 1])
def test_a_tie_of_the_worst_era_goes_to_the_larger_pooled_gain(better):
    # The features are the same in era 0, which gains least; in era 1 one is better.
    x = np.tile([0.0, 1.0], 10)
    X = np.repeat(x.reshape(-1, 1), 2, axis=1)
    eras = np.repeat([0, 1], 10)
    y = np.where(eras == 0, x, 9 * x)
    X[[10, 11], 1 - better] = [1, 0]
    est = regressor("era", boltzmann_alpha=-math.inf, max_leaf_nodes=2)
    est.fit(X, y, eras=eras)
    assert root(est)["feature_idx"] == better
    check_fit(est, X, y, eras)


@pytest.mark.parametrize("criterion", ERA_CRITERIA, ids=criterion_id)
@pytest.mark.parametrize(
    "interaction_cst", [None, [range(8, 0, -1)], [(8, 1), (1, 3), (8, 5)]]
)
def test_a_tie_goes_to_the_lower_feature(interaction_cst, criterion):
    # As a set, {8, 1} is iterated from 8.
    case = make_case("squared_error", [], seed=5)
    noise = np.random.default_rng(0).normal(size=(len(case.y), 9))
    noise[:, 1] = noise[:, 8] = noise[:, 3] = case.X[:, 0]
    case = suit(replace(case, X=noise), criterion)
    est = regressor(
        **criterion, interaction_cst=interaction_cst, min_samples_leaf=8, max_bins=9
    )
    est.fit(case.X, case.y, eras=case.eras)
    if criterion.get("invariance_statistic") != "ratio":  # which prefers noise here
        assert root(est)["feature_idx"] == 1
    nodes = est._predictors[0][0].nodes
    assert not np.isin(nodes["feature_idx"][nodes["is_leaf"] == 0], [3, 8]).any()


@pytest.mark.parametrize("fraction", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("split_criterion", ["gain", "era", "directional"])
def test_max_features_draws_like_scikit_learn_with_interactions(
    split_criterion, fraction
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 10)).round(1)
    case = Case(X, X.sum(axis=1) + rng.normal(size=120), rng.integers(0, 3, 120))
    case.params = {"interaction_cst": [(9, 1, 8), (8, 0, 3), (2, 4, 5, 6)]}
    case.params |= {"max_iter": 3, "max_bins": 6, "random_state": 3}
    case.params |= {"max_leaf_nodes": 5, "min_samples_leaf": 4}
    report = fit_and_check(case, split_criterion=split_criterion, max_features=fraction)
    assert report.n_splits >= 6


@pytest.mark.parametrize("criterion", ERA_CRITERIA[::5], ids=criterion_id)
def test_all_255_bins_and_the_missing_one(criterion):
    rng = np.random.default_rng(0)
    X = rng.permutation(np.arange(1200) % 300).reshape(-1, 2).astype(float)
    # 250 categories, of which few have the support to leave the right side.
    X[:, 1] = np.minimum(rng.geometric(0.06, 600), 250)
    X[:250, 1] = np.arange(250)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.sin(np.nan_to_num(X[:, 0]) / 30) + np.isnan(X[:, 0]) + (X[:, 1] % 3 == 0)
    case = Case(X, y, rng.integers(0, 2, 600))
    case.params = {"categorical_features": [1], "max_iter": 1, "max_leaf_nodes": 3}
    assert fit_and_check(case, **criterion).n_splits == 2


@pytest.mark.parametrize("split_criterion", ["era", "directional"])
def test_more_eras_than_a_byte_or_a_short_can_count(split_criterion):
    n_eras = 70_000  # each with one row to a side of 0, so that one split is admissible
    eras = np.repeat(np.arange(n_eras), 2)[::-1]
    x = np.tile([0.0, 1.0], n_eras)
    est = regressor(split_criterion, max_bins=2).fit(x.reshape(-1, 1), x, eras=eras)
    assert est._predictors[0][0].nodes["count"].tolist() == [2 * n_eras, n_eras, n_eras]
    # One era that disagrees is a share of 1 / n_eras, and the worst of all.
    y = np.where(eras == 69_999, 1 - x, x)
    params = {"min_direction_agreement": 1.0, "boltzmann_alpha": -math.inf}
    est.set_params(**params)
    if split_criterion == "directional":
        with pytest.warns(UserWarning, match="No split was admissible"):
            est.fit(x.reshape(-1, 1), y, eras=eras)
    else:
        est.fit(x.reshape(-1, 1), y, eras=eras)
        assert root(est)["gain"] > 0


@pytest.mark.parametrize("n_eras", [40, 300])
@pytest.mark.parametrize("criterion", ERA_CRITERIA[::4], ids=criterion_id)
def test_many_eras(criterion, n_eras):
    rng = np.random.default_rng(0)
    eras = rng.permutation(np.tile(np.arange(n_eras), 6))
    X = rng.integers(0, 2, size=(len(eras), 2)).astype(float)
    # Two rows of each era to a side; the second feature does that at the root only.
    X[:, 0] = np.argsort(np.argsort(eras, kind="stable")) % 6 > 2
    case = Case(X, X[:, 0] + rng.normal(size=len(eras)), eras)
    case.params = {"max_iter": 1, "max_bins": 3}
    assert fit_and_check(case, **criterion).n_candidates == 1


@pytest.mark.parametrize("criterion", CRITERIA, ids=criterion_id)
def test_features_without_a_split(criterion):
    case = make_case("binary", ["missing"], seed=2, n_samples=120)
    nothing = np.full(120, np.nan)
    half = np.where(np.arange(120) % 2, np.nan, 3.0)  # a split on missing values
    of_one_era = np.where(case.eras == "w", np.nan, case.X[:, 0])
    # With a single category and missing values, scikit-learn stores no categories.
    categories = half + np.arange(120) // 60
    case.X = np.column_stack(
        [nothing, np.zeros(120), half, categories, of_one_era, case.X[:, 0]]
    )
    case.params |= {"categorical_features": [0, 3], "min_samples_leaf": 4}
    report = fit_and_check(case, **criterion)
    assert report.n_candidates > 0


@pytest.mark.parametrize("criterion", CRITERIA, ids=criterion_id)
def test_columns_that_scikit_learn_moves(criterion):
    """Categories come first in the binned data, wherever the frame has them."""
    case = make_case("squared_error", ["missing", "weights"], seed=11)
    frame = pd.DataFrame(case.X, columns=["up", "down", "free"])
    frame["city"] = pd.Categorical(np.array(list("abc"))[np.arange(90) % 3])
    case.X = frame
    case.params |= {"monotonic_cst": {"up": 1, "down": -1}, "max_features": 0.6}
    fit_and_check(case, **criterion)


@pytest.mark.parametrize("limits", [{"max_depth": 1}, {"max_leaf_nodes": 2},
                                    {"max_leaf_nodes": None, "max_depth": None},
                                    {"min_samples_leaf": 45},
                                    {"min_samples_leaf": 46}])  # fmt: skip
@pytest.mark.parametrize("criterion", CRITERIA[::3], ids=criterion_id)
def test_limits_of_a_tree(criterion, limits):
    for target in ("squared_error", "binary"):
        case = make_case(target, [], seed=21)
        case.params |= limits
        report = fit_and_check(case, **criterion)
        assert report.n_splits <= 2 or "max_leaf_nodes" in limits


def test_warm_start_goes_on_with_the_same_draws():
    case = make_case("squared_error", ["max_features", "missing"], seed=4)
    est = HistGradientBoostingRegressor(
        **case.params | {"max_iter": 1}, warm_start=True, split_criterion="era"
    )
    est.fit(case.X, case.y, eras=case.eras)
    est.set_params(max_iter=4).fit(case.X, case.y, eras=case.eras)
    assert check_fit(est, case.X, case.y, case.eras).n_splits >= 4


@pytest.mark.parametrize("target", ["binary", "multiclass"])
@pytest.mark.parametrize("criterion", ERA_CRITERIA[::3], ids=criterion_id)
def test_saturated_probabilities(criterion, target):
    case = make_case(target, [], seed=6)
    case.params |= {"learning_rate": 1.0, "max_iter": 6, "min_samples_leaf": 1}
    fit_and_check(case, **criterion)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("criterion", CRITERIA, ids=criterion_id)
def test_heavy_tails_and_odd_units(criterion, scale):
    case = make_case("squared_error", ["big_era"], seed=8)
    case.y = scale * np.random.default_rng(0).standard_cauchy(90)
    fit_and_check(case, **criterion)
