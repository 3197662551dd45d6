"""Fitted trees against the brute force of reference.py, in every combination."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import splits
from oracle.cases import (
    ASPECTS,
    CRITERIA,
    TARGETS,
    criteria,
    criterion_id,
    fit_and_check,
    make_case,
)
from oracle.formulas import exactly
from oracle.reference import Report, check_fit
from oracle.splits import gradient_variance
from sklearn_era.ensemble import HistGradientBoostingRegressor


@pytest.mark.parametrize("aspect", ASPECTS)
@pytest.mark.parametrize("criterion", CRITERIA, ids=criterion_id)
def test_every_split_is_the_best_one(criterion, aspect):
    total = Report()
    number = ASPECTS.index(aspect)
    other_target = ["absolute_error", "multiclass"][number % 2]
    for target in ("squared_error", "binary", "poisson", other_target):
        seed = 100 * number + TARGETS.index(target)
        total += fit_and_check(make_case(target, [aspect], seed), **criterion)
    # Nothing is proved by stumps, or where rounding settles most comparisons.
    assert total.n_candidates > 40
    if criterion.get("min_direction_agreement") != 1.0:
        assert total.n_splits >= 8
    # A large alpha is all but the best or worst era, and rounds to it.
    is_extreme = abs(criterion.get("boltzmann_alpha", 0.0)) >= 1e3
    assert total.n_undecided <= 3 + total.n_splits * (0.6 if is_extreme else 0.2)


def test_every_split_is_the_best_one_in_any_combination():
    total = Report()

    @settings(deadline=None, database=None, max_examples=600)
    @given(
        target=st.sampled_from(TARGETS),
        aspects=st.sets(st.sampled_from(ASPECTS), min_size=1, max_size=5),
        criterion=criteria(),
        n_eras=st.integers(1, 6),
        seed=st.integers(0, 2**16),
    )
    def check(target, aspects, criterion, n_eras, seed):
        nonlocal total
        case = make_case(target, aspects, seed, n_eras=n_eras)
        total += fit_and_check(case, **criterion)

    check()
    assert total.n_splits >= 1200
    assert total.n_leaves >= 1800
    assert total.n_undecided <= total.n_splits / 8


def fitted(case, **params):
    params = case.params | {"max_depth": None, "max_leaf_nodes": 8} | params
    params.setdefault("min_samples_leaf", 5)
    return HistGradientBoostingRegressor(**params).fit(case.X, case.y, eras=case.eras)


def refuses(est, case, **params):
    """Whether the trees are those of the model, and not of one of other parameters."""
    check_fit(est, case.X, case.y, case.eras)
    before = est.get_params()
    est.set_params(**params)
    with pytest.raises(AssertionError):
        check_fit(est, case.X, case.y, case.eras)
    est.set_params(**{name: before[name] for name in params})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("boltzmann_alpha", -math.inf), ("split_criterion", "gain"),
        ("split_criterion", "directional"), ("l2_regularization", 9.0),
        ("min_samples_leaf", 12), ("max_leaf_nodes", 7), ("max_depth", 2),
        ("learning_rate", 0.3), ("monotonic_cst", [-1, 0, 0]),
        ("interaction_cst", [(0,), (1,), (2,)]), ("max_features", 0.4),
        ("colsample_bytree", 0.4),
        ("min_samples_per_era", 6), ("min_era_coverage", 0.3),
        ("min_impurity_decrease", 0.3),
    ],
)  # fmt: skip
def test_the_oracle_refuses_other_trees(name, value):
    case = make_case("squared_error", ["missing"], seed=3, n_samples=200)
    est = fitted(case, split_criterion="era", max_leaf_nodes=6, min_samples_leaf=5)
    assert check_fit(est, case.X, case.y, case.eras).n_splits >= 8
    refuses(est, case, **{name: value})


TWO = {"era": 1.0, "vrex": 1.0}


@pytest.mark.parametrize(
    ("fit_with", "check_with"),
    [
        ({"split_criterion": "vrex"}, {"invariance_penalty": 0.9}),
        ({"split_criterion": "vrex"}, {"split_criterion": "era"}),
        ({"split_criterion": "vrex"}, {"split_criterion": TWO}),
        ({"split_criterion": TWO}, {"split_criterion": TWO | {"era": 1.2}}),
        ({"split_criterion": TWO}, {"split_criterion": TWO | {"directional": 5.0}}),
        ({"split_criterion": TWO}, {"split_criterion": TWO | {"gain": 0.5}}),
        ({"split_criterion": TWO}, {"split_criterion": TWO | {"invariant": 0.5}}),
        ({"split_criterion": TWO | {"gain": 1.0}}, {"normalize_era_gain": True}),
        (
            {"split_criterion": TWO | {"directional": 1.0}},
            {"min_direction_agreement": 1.0},
        ),
        (
            {"split_criterion": "era", "boltzmann_alpha": -1.0},
            {"normalize_era_gain": True},
        ),
        ({"split_criterion": "time_robust"}, {"period_aggregation": "mean"}),
        ({"split_criterion": "time_robust"}, {"min_impurity_decrease": 0.1}),
        ({"split_criterion": "time_robust"}, {"min_samples_per_era": 5}),
        ({"split_criterion": "time_robust"}, {"min_era_coverage": 0.3}),
        ({"split_criterion": "invariant"}, {"invariance_penalty": 0.9}),
        ({"split_criterion": "invariant"}, {"invariance_penalty": 0.0}),
        ({"split_criterion": "invariant"}, {"invariance_statistic": "changing_rate"}),
        ({"split_criterion": "invariant"}, {"invariance_statistic": "ratio"}),
        ({"split_criterion": "invariant"}, {"min_impurity_decrease": 0.1}),
    ],
)
def test_the_oracle_refuses_the_trees_of_another_criterion(fit_with, check_with):
    case = make_case("squared_error", ["coverage"], seed=9, n_samples=400, n_eras=4)
    case.y = (case.y > 0).astype(float)  # for the ratio
    case.params |= {"max_bins": 60, "min_samples_per_era": 1, "min_era_coverage": 0.7}
    est = fitted(case, **fit_with, max_iter=4)
    refuses(est, case, **check_with)


def test_the_oracle_refuses_nodes_that_were_tampered_with():
    case = make_case("squared_error", ["missing"], seed=3, n_samples=200)
    est = fitted(case, split_criterion="era")
    check_fit(est, case.X, case.y, case.eras)
    with pytest.raises(AssertionError):
        check_fit(est, case.X, case.y, case.eras[::-1])
    for name, change in [("gain", 0.1), ("value", 0.1), ("bin_threshold", 1)]:
        nodes = est._predictors[0][0].nodes
        before = nodes.copy()
        nodes[name][1 if name == "value" else 0] += change
        with pytest.raises(AssertionError):
            check_fit(est, case.X, case.y, case.eras)
        nodes[:] = before
    check_fit(est, case.X, case.y, case.eras)


@pytest.mark.parametrize("is_centred", [True, False])
def test_the_oracle_refuses_another_variance_of_the_gradients(monkeypatch, is_centred):
    # Most of the target is its median, where gradients are -1: their mean is not 0.
    case = make_case("absolute_error", [], seed=1, n_samples=400)
    case.y = case.y.clip(max=np.quantile(case.y, 0.25))
    case.params |= {"max_bins": 60, "max_iter": 4}
    est = fitted(
        case,
        normalize_era_gain=True,
        split_criterion={"era": 1.0, "directional": 0.1},
    )
    check_fit(est, case.X, case.y, case.eras)

    def other_variance(gradients, hessians):
        found = gradient_variance(gradients, hessians)
        if is_centred:
            return found * exactly(1.2)
        return exactly(math.fsum(gradients**2) / len(gradients))

    monkeypatch.setattr(splits, "gradient_variance", other_variance)
    with pytest.raises(AssertionError):
        check_fit(est, case.X, case.y, case.eras)
