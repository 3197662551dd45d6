"""Corners of coverage, ties, weights and units of each criterion, by brute force."""

import math

import numpy as np
import pytest

from oracle.cases import (
    ERA_CRITERIA,
    Case,
    criterion_id,
    fit_and_check,
    make_case,
)
from sklearn_era.ensemble import HistGradientBoostingRegressor

ROBUST_TO_THE_WORST = {"split_criterion": "time_robust", "period_aggregation": "max"}
ROBUST_ON_AVERAGE = {"split_criterion": "time_robust", "period_aggregation": "mean"}
RATIO = {"split_criterion": "invariant", "invariance_statistic": "ratio"}
LIMITS = {"max_iter": 1, "min_samples_leaf": 1}


def fitted_root(case, **params):
    est = HistGradientBoostingRegressor(
        **LIMITS | case.params | params, early_stopping=False
    )
    est.fit(case.X, case.y, case.sample_weight, eras=case.eras)
    return est._predictors[0][0].nodes[0]


@pytest.mark.parametrize("better", [0, 1])
@pytest.mark.parametrize(
    "criterion",
    [
        {"split_criterion": "era"},
        {"split_criterion": "era", "boltzmann_alpha": -1.0},
        {"split_criterion": "era", "normalize_era_gain": True},
        {"split_criterion": "vrex"},
        {"split_criterion": {"era": 2.0, "vrex": 0.5}},
        ROBUST_TO_THE_WORST,
        ROBUST_ON_AVERAGE,
    ],
    ids=criterion_id,
)
def test_a_tie_of_all_eras_goes_to_the_larger_pooled_gain(criterion, better):
    """Within each era both features are as good; one changes direction between eras."""
    x = np.tile([0.0, 1.0], 20)
    eras = np.repeat([0, 1], 20)
    X = np.column_stack([x, x])
    X[eras == 1, 1 - better] = 1 - x[:20]
    case = Case(X, x, eras, params=LIMITS | {"max_leaf_nodes": 2})
    assert fitted_root(case, **criterion)["feature_idx"] == better
    assert fit_and_check(case, **criterion).n_splits == 1


@pytest.mark.parametrize("better", [0, 1])
def test_a_tie_of_the_worst_period_goes_to_the_larger_pooled_gain(better):
    # The features are the same in era 0, which stays impure; in era 1 one is better.
    x = np.tile([0.0, 1.0], 10)
    X = np.repeat(x.reshape(-1, 1), 2, axis=1)
    eras = np.repeat([0, 1], 10)
    y = np.where(eras == 0, x + np.tile([0, 0, 8, 8, 0], 4), x)
    X[[10, 11], 1 - better] = [1, 0]
    case = Case(X, y, eras, params=LIMITS | {"max_leaf_nodes": 2})
    assert fitted_root(case, **ROBUST_TO_THE_WORST)["feature_idx"] == better
    assert fit_and_check(case, **ROBUST_TO_THE_WORST).n_splits == 1


@pytest.mark.parametrize("criterion", ERA_CRITERIA, ids=criterion_id)
def test_an_era_without_weight(criterion):
    """It is covered, and has a say only where it counts as 0."""
    case = make_case("squared_error", [], seed=1)
    case.sample_weight = np.where(case.eras == "w", 0.0, 1.0)
    case.params |= {"min_samples_leaf": 5}
    report = fit_and_check(case, **criterion)
    name = criterion["split_criterion"]
    counts_as_worst = name in ("era", "directional") and (
        criterion.get("boltzmann_alpha") == -math.inf
        or criterion.get("min_direction_agreement") == 1.0
    )
    if counts_as_worst:
        assert report.n_splits == 0
    elif name in ("time_robust", "invariant") or name == {"gain": 1.0, "vrex": 0.3}:
        assert report.n_splits > 0


@pytest.mark.parametrize("criterion", ERA_CRITERIA, ids=criterion_id)
def test_eras_of_a_single_row(criterion):
    """They can never be covered; coverage of the others is what counts."""
    case = make_case("squared_error", [], seed=2, n_samples=100)
    case.eras = np.r_[np.repeat([5, 6], 40), np.arange(100, 120)]
    case.params |= {"min_era_coverage": 0.06, "min_samples_leaf": 4}
    report = fit_and_check(case, **criterion)
    assert report.n_candidates > 0
    case.params |= {"min_era_coverage": 0.1}  # 2.2 eras of 22 are 3
    with pytest.raises(ValueError, match="min_era_coverage"):
        fit_and_check(case, **criterion)


@pytest.mark.parametrize(
    ("criterion", "n_splits"),
    [
        ({"split_criterion": "era", "boltzmann_alpha": -math.inf}, 0),
        ({"split_criterion": "era", "boltzmann_alpha": 0.0}, 1),
        ({"split_criterion": "era", "boltzmann_alpha": math.inf}, 1),
        ({"split_criterion": "directional", "min_direction_agreement": 2 / 3}, 1),
        ({"split_criterion": "directional", "min_direction_agreement": 0.7}, 0),
        # Gains of g, g and 0: the mean less the deviation is (2 - sqrt(2) λ) g / 3.
        ({"split_criterion": "vrex", "invariance_penalty": 1.4}, 1),
        ({"split_criterion": "vrex", "invariance_penalty": 1.5}, 0),
        (ROBUST_TO_THE_WORST, 1),
        (ROBUST_ON_AVERAGE, 1),
        ({"split_criterion": "invariant", "invariance_penalty": 1e6}, 1),
        (RATIO | {"invariance_penalty": 1e6}, 1),
    ],
    ids=lambda value: criterion_id(value) if isinstance(value, dict) else None,
)
def test_an_uncovered_era_counts_as_0_or_not_at_all(criterion, n_splits):
    x = np.r_[np.tile([0.0, 1.0], 20), np.zeros(20)]
    eras = np.repeat([0, 1, 2], 20)
    y = np.r_[np.tile([0.0, 1.0], 20), np.tile([0.0, 1.0], 10)]
    case = Case(x.reshape(-1, 1), y, eras, params=LIMITS | {"min_era_coverage": 0.6})
    assert fit_and_check(case, **criterion).n_splits == n_splits
    case.params |= {"min_era_coverage": 0.7}
    assert fit_and_check(case, **criterion).n_splits == 0


@pytest.mark.parametrize("criterion", ERA_CRITERIA[::3], ids=criterion_id)
@pytest.mark.parametrize(
    ("share", "n_eras", "n_needed"),
    [(0.1, 30, 3), (0.3, 10, 3), (0.29, 100, 29), (0.07, 100, 7), (0.55, 20, 11)],
)
def test_rounding_does_not_ask_for_one_era_more(criterion, share, n_eras, n_needed):
    rng = np.random.default_rng(0)
    eras = np.repeat(np.arange(n_eras), 4)
    for n_covered in (n_needed - 1, n_needed):
        x = np.where(eras < n_covered, np.tile([0.0, 1.0], 2 * n_eras), 0.0)
        case = Case(x.reshape(-1, 1), x + 0.1 * rng.normal(size=x.size), eras)
        case.params = LIMITS | {"min_era_coverage": share}
        report = fit_and_check(case, **criterion)
        assert report.n_candidates == (n_covered == n_needed)


@pytest.mark.parametrize("criterion", ERA_CRITERIA, ids=criterion_id)
def test_just_the_rows_per_era_that_are_asked_for(criterion):
    # 3 rows of era 1 to the left, and 7 of it to the right; 5 of era 0 to each side.
    x = np.r_[np.repeat([0.0, 1.0], 5), np.repeat([0.0, 1.0], [3, 7])]
    y = x + 0.1 * np.random.default_rng(0).normal(size=20)
    case = Case(x.reshape(-1, 1), y, np.repeat([0, 1], 10), params=LIMITS)
    for least, n_candidates in [(3, 1), (4, 0), (5, 0)]:
        report = fit_and_check(case, **criterion | {"min_samples_per_era": least})
        assert report.n_candidates == n_candidates
    # Zero weights do not matter to it: it counts rows.
    case.sample_weight = np.where(np.arange(20) % 5 == 1, 0.0, 1.0)
    report = fit_and_check(case, **criterion | {"min_samples_per_era": 3})
    assert report.n_candidates == 1


def test_the_worst_period_is_that_of_the_covered_eras():
    rng = np.random.default_rng(0)
    eras = np.repeat([0, 1, 2], 20)
    signal = np.tile([0.0, 1.0], 30)
    weak = np.where(rng.random(60) < 0.2, 1 - signal, signal)
    signal[eras == 2] = 0.0
    y = np.tile([0.0, 1.0], 30) + (eras == 2) * rng.normal(size=60) * 50
    case = Case(np.column_stack([weak, signal]), y, eras)
    case.params = LIMITS | {"max_leaf_nodes": 2}
    for coverage, feature in [(0.6, 1), (1.0, 0)]:
        case.params |= {"min_era_coverage": coverage}
        assert fitted_root(case, **ROBUST_TO_THE_WORST)["feature_idx"] == feature
        assert fit_and_check(case, **ROBUST_TO_THE_WORST).n_splits == 1


@pytest.mark.parametrize("outcome", [0.0, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_ratio_of_an_era_of_one_outcome(outcome, weighted):
    """The halves keep its rate from being 0 / 0."""
    rng = np.random.default_rng(3)
    case = make_case("squared_error", ["weights"] if weighted else [], seed=3)
    case.y = (case.y > 0).astype(float)
    case.y[case.eras == "w"] = outcome
    case.y[case.eras == "e"] = rng.integers(0, 2, (case.eras == "e").sum())
    for penalty in (1e-3, 0.1, 10.0):
        report = fit_and_check(case, **RATIO | {"invariance_penalty": penalty})
        assert report.n_splits > 1


@pytest.mark.parametrize("factor", [1e-3, 1.0, 7.0])
def test_the_ratio_does_not_know_the_unit_of_the_weights(factor):
    case = make_case("squared_error", ["weights"], seed=5)
    case.y = (case.y > 0).astype(float)
    case.params |= {"max_iter": 1, "min_samples_leaf": 8, "max_leaf_nodes": 6}
    trees = []
    for times in (1.0, factor):
        weighted = Case(case.X, case.y, case.eras, times * case.sample_weight)
        weighted.params = case.params
        # The pooled gain and H are in the unit of the weights, and so is the key.
        assert fit_and_check(weighted, **RATIO | {"invariance_penalty": 0.2}).n_splits
        est = HistGradientBoostingRegressor(
            **case.params, **RATIO, invariance_penalty=0.2, early_stopping=False
        )
        est.fit(case.X, case.y, weighted.sample_weight, eras=case.eras)
        trees.append(est._predictors[0][0].nodes[["feature_idx", "bin_threshold"]])
    np.testing.assert_array_equal(*trees)


@pytest.mark.parametrize("power", [-40, -7, 9, 40])
@pytest.mark.parametrize(
    "criterion",
    [
        {"split_criterion": "era", "boltzmann_alpha": -30.0},
        {"split_criterion": "era", "boltzmann_alpha": 4.0},
        {"split_criterion": "directional", "boltzmann_alpha": -5.0},
        {"split_criterion": "vrex", "invariance_penalty": 0.4},
        {
            "split_criterion": {
                "gain": 1.0, "era": 2.0, "directional": 0.1, "invariant": 0.2,
                "vrex": 0.1,
            },
            "boltzmann_alpha": -9.0,
        },
    ],
    ids=criterion_id,
)  # fmt: skip
def test_normalised_gains_do_not_know_the_unit_of_the_target(criterion, power):
    case = make_case("squared_error", ["missing"], seed=8)
    case.params |= {"max_iter": 3, "min_samples_leaf": 4, "max_leaf_nodes": 6}
    params = criterion | {"normalize_era_gain": True}
    trees = []
    for unit in (1.0, 2.0**power):
        scaled = Case(case.X, case.y * unit, case.eras, params=case.params)
        assert fit_and_check(scaled, **params).n_splits >= 6
        est = HistGradientBoostingRegressor(
            **case.params, **params, early_stopping=False
        )
        est.fit(scaled.X, scaled.y, eras=case.eras)
        trees.append(np.concatenate([tree.nodes for (tree,) in est._predictors]))
    for name in ("feature_idx", "bin_threshold", "count", "left", "depth"):
        np.testing.assert_array_equal(trees[0][name], trees[1][name])
    np.testing.assert_allclose(trees[0]["value"] * unit, trees[1]["value"], rtol=1e-5)


def test_constant_gradients_have_no_normalised_gain():
    case = make_case("squared_error", [], seed=8)
    case.y = np.full(90, 2.5)
    for criterion in ("era", "vrex", {"gain": 1.0, "era": 1.0}):
        params = {"split_criterion": criterion, "normalize_era_gain": True}
        assert fit_and_check(case, **params).n_splits == 0


@pytest.mark.parametrize(
    "criterion",
    [{"split_criterion": "gain"}, *ERA_CRITERIA[::4], RATIO],
    ids=criterion_id,
)
def test_a_pooled_gain_of_just_the_least_decrease_splits(criterion):
    # Gradients of -1/2 and 1/2 on the sides: the gain is 10, and 40 rows weigh 40.
    # (With fewer rows scikit-learn's gain falls short of it, by what guards its 0 / 0.)
    x = np.tile([0.0, 1.0], 20)
    case = Case(x.reshape(-1, 1), x, np.repeat([0, 1], 20), params=LIMITS)
    decrease = 0.25
    for least, splits in [
        (decrease, 1),
        (decrease * (1 + 1e-9), 0),
        (decrease * (1 - 1e-9), 1),
    ]:
        params = criterion | {"min_impurity_decrease": least}
        if criterion["split_criterion"] == "time_robust":
            splits = int(least < decrease)
        assert fit_and_check(case, **params).n_splits == splits


@pytest.mark.parametrize("criterion", [ROBUST_TO_THE_WORST, ROBUST_ON_AVERAGE])
def test_a_decrease_of_just_the_least_one_does_not_split_a_robust_tree(criterion):
    # Each era is of variance 1 before the split, and of 0 after it.
    x = np.tile([0.0, 1.0], 4)
    case = Case(x.reshape(-1, 1), x * 2, np.repeat([0, 1], 4), params=LIMITS)
    for least, n_splits in [(1.0, 0), (1 - 1e-9, 1)]:
        params = criterion | {"min_impurity_decrease": least}
        assert fit_and_check(case, **params).n_splits == n_splits


@pytest.mark.parametrize("constant", [0.1, 0.4, 1.9])
@pytest.mark.parametrize("n_left", [1, 3, 8, 21])
def test_an_era_of_equal_rows_has_no_decrease(n_left, constant):
    rows = np.arange(24)
    X = np.r_[rows >= n_left, rows >= 12].astype(float).reshape(-1, 1)
    y = np.r_[np.full(24, constant), np.where(rows < 12, 1.0, 3.0)]
    case = Case(X, y, np.repeat(["equal", "unequal"], 24), params=LIMITS)
    assert fit_and_check(case, **ROBUST_TO_THE_WORST).n_splits == 0
    assert fit_and_check(case, **ROBUST_ON_AVERAGE).n_splits == 1


@pytest.mark.parametrize("criterion", ERA_CRITERIA, ids=criterion_id)
def test_one_era(criterion):
    for target in ("squared_error", "binary"):
        case = make_case(target, ["l2"], seed=4, n_eras=1)
        case.params |= {"min_samples_leaf": 4}
        for least in (1, 9):
            params = criterion | {"min_samples_per_era": least}
            assert fit_and_check(case, **params).n_splits >= 2


@pytest.mark.parametrize("criterion", ERA_CRITERIA[::3], ids=criterion_id)
def test_many_small_eras_and_little_coverage(criterion):
    case = make_case(
        "binary", ["coverage", "missing"], seed=6, n_eras=40, n_samples=480
    )
    case.params |= {"min_era_coverage": 0.25, "min_samples_per_era": 2}
    case.params |= {"max_iter": 1, "min_samples_leaf": 20}
    assert fit_and_check(case, **criterion).n_candidates >= 40
