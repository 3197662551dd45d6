"""Fitted trees with `feature_penalty` against brute force.

The penalties of a node's splits are shares of its largest key: see `penalties`.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.criteria import ERA_CRITERIA
from helpers.grids import grid, slow
from helpers.kernel_fits import make_eras
from oracle.cases import (
    ASPECTS,
    CRITERIA,
    TARGETS,
    Case,
    criteria,
    fit_and_check,
    make_case,
    of_each,
)
from oracle.reference import Report

OTHERS = [name for name in ASPECTS if name != "penalties"]


@of_each(CRITERIA)
def test_every_split_is_the_best_one_that_pays(criterion):
    total = Report()
    for seed, (target, *aspects) in enumerate(
        [
            ("squared_error",),
            ("squared_error", "categorical", "missing"),
            ("binary", "weights", "monotonic"),
            ("squared_error", "coverage", "interaction"),
            ("poisson", "max_features", "min_decrease"),
            ("squared_error", "colsample", "rows_per_era"),
        ]
    ):
        case = make_case(target, {"penalties", *aspects}, seed, n_eras=4)
        total += fit_and_check(case, **criterion)
        if criterion.get("min_gain_share", 0.0) == 0.0:
            total += fit_and_check(case, **criterion | {"min_gain_share": 0.4})
    assert total.n_splits >= 12
    assert total.n_undecided <= 3 + total.n_splits / 4


def test_every_split_is_the_best_one_that_pays_in_any_combination(pytestconfig):
    total = Report()
    n_examples = 0

    @settings(max_examples=1000 if pytestconfig.option.slow else 30)
    @given(
        target=st.sampled_from(TARGETS),
        aspects=st.sets(st.sampled_from(OTHERS), max_size=4),
        criterion=criteria(),
        n_eras=st.integers(1, 6),
        seed=st.integers(0, 2**16),
    )
    def check(target, aspects, criterion, n_eras, seed):
        nonlocal total, n_examples
        n_examples += 1
        case = make_case(target, aspects | {"penalties"}, seed, n_eras=n_eras)
        total += fit_and_check(case, **criterion)

    check()
    assert total.n_splits >= 2 * n_examples
    assert total.n_undecided <= total.n_splits / 6


# Eras, rows of each, and bins: sums that are kept; masks, with and without a first look
# at directions; lanes; bins that have rows only; and a first look at many bins.
SHAPES = [
    (3, 500, 5), (12, 40, 5), (33, 50, 5), (12, 32, 8), (40, 6, 100), (33, 15, 64),
]  # fmt: skip
LIMITS = {"max_iter": 1, "min_samples_leaf": 5, "min_era_coverage": 0.5}


@pytest.mark.parametrize(
    ("criterion", "shape", "missing"), grid(ERA_CRITERIA, SHAPES, [0.0, 0.15], every=7)
)
def test_each_way_of_the_kernel(criterion, shape, missing):
    X, y, eras = make_eras(*shape, n_features=4, missing=missing)
    params = LIMITS | {"max_leaf_nodes": 6, "feature_penalty": [0.3, 0.1, 0.0, 2.0]}
    report = fit_and_check(Case(X, y, eras, None, params), **criterion)
    assert report.n_splits > 0
    assert report.n_undecided <= report.n_splits


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("era", SHAPES[-1]), ("directional", SHAPES[-1]),
        slow("directional", SHAPES[2]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [0.01, 0.2, 0.6])
def test_what_a_first_look_would_leave_out(name, shape, size):
    """The split of the largest key is of another feature than the one that is made."""
    X, y, eras = make_eras(*shape, n_features=4)
    params = LIMITS | {"max_leaf_nodes": 4, "feature_penalty": [size, size, 0.0, 0.0]}
    X[:, 3] = X[:, 0] + np.arange(len(y)) % 7
    case = Case(X, y, eras, None, params)
    assert fit_and_check(case, split_criterion=name).n_splits > 2
