"""Fitted trees against the brute force of reference.py, in every combination."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.criteria import NAMES
from oracle import cases
from oracle.cases import ASPECTS, CRITERIA, TABLE, fit_and_check, make_case, parameter
from oracle.reference import Report


def test_the_table_of_criteria_has_all_names():
    assert set().union(*map(cases.names_of, TABLE.values())) == set(NAMES)


def targets_of(aspect: str) -> list[str]:
    other = ["absolute_error", "multiclass"][ASPECTS.index(aspect) % 2]
    return ["squared_error", "binary", "poisson", other]


def check_fits(criterion: dict, fits: list[tuple[str, str]], **params) -> None:
    """Fit to each (aspect, target)."""
    total = Report()
    for aspect, target in fits:
        seed = 100 * ASPECTS.index(aspect) + cases.TARGETS.index(target)
        total += fit_and_check(make_case(target, [aspect], seed), **criterion, **params)
    # Nothing is proved by stumps, or where rounding settles most comparisons.
    assert total.n_candidates > 10 * len(fits)
    if parameter(criterion, "min_agreement") != 1.0:
        assert total.n_splits >= 2 * len(fits)
    # A large alpha is all but the best or worst era, and rounds to it.
    is_extreme = abs(parameter(criterion, "boltzmann_alpha")) >= 1e3
    assert total.n_undecided <= 3 + total.n_splits * (0.6 if is_extreme else 0.2)


@pytest.mark.parametrize("number", range(len(CRITERIA)), ids=CRITERIA)
def test_every_split_is_the_best_one(number):
    """Each criterion with three aspects, each aspect with every fifth criterion."""
    fits = []
    for i in range(number % 5, len(ASPECTS), 5):
        fits.append((ASPECTS[i], targets_of(ASPECTS[i])[(number // 5 + i // 5) % 4]))
    criterion = list(CRITERIA.values())[number]
    # The slowest ones, with a parameter at the end of its range, have a tree each.
    is_slow = number >= len(TABLE) and parameter(criterion, "boltzmann_alpha")
    check_fits(criterion, fits, **({"max_iter": 1} if is_slow else {}))


@pytest.mark.slow
@pytest.mark.parametrize("aspect", ASPECTS)
@pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)
def test_every_split_is_the_best_one_with_every_aspect(criterion, aspect):
    check_fits(criterion, [(aspect, target) for target in targets_of(aspect)])


@pytest.mark.parametrize(("always", "n_slow"), [(set(), 2000), ({"penalties"}, 1000)])
def test_every_split_is_the_best_one_in_any_combination(always, n_slow, pytestconfig):
    reports = []

    @settings(max_examples=n_slow if pytestconfig.option.slow else 30)
    @given(
        target=st.sampled_from(cases.TARGETS),
        aspects=st.sets(st.sampled_from(ASPECTS), min_size=1, max_size=5),
        criterion=cases.criteria(),
        n_eras=st.integers(1, 6),
        seed=st.integers(0, 2**16),
    )
    def check(target, aspects, criterion, n_eras, seed):
        case = make_case(target, aspects | always, seed, n_eras=n_eras)
        reports.append((criterion, fit_and_check(case, **criterion)))

    check()
    assert len(reports) >= 30
    total = sum((report for _, report in reports), Report())
    assert total.n_splits >= 2 * len(reports)
    assert total.n_leaves >= 3 * len(reports)
    # Parameters of 1000 and more leave much to rounding.
    ordinary = [report for given, report in reports if "1000" not in repr(given)]
    total = sum(ordinary, Report())
    assert total.n_undecided <= total.n_splits / (6 if always else 8)
