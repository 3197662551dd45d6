"""The experiments on the invariant forest: its penalty, its scores and its splits."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime, minimize

from experiments import _liao
from experiments import liao_energy_air as energy_air
from experiments import liao_financial as financial
from experiments._liao import Case, fit_invariant_linear, make_forest, split_frequencies
from experiments._liao_scenarios import Part, splits_to_test, splits_to_tune
from helpers.grids import on_grid, slow
from helpers.trees import rows_of_nodes


def coarse_data(seed):
    """Rows of two eras, with few values of each feature, so that bins lose nothing."""
    rng, eras = np.random.default_rng(seed), np.repeat([0, 1], 60)
    y = rng.integers(2, size=120)
    flips = rng.uniform(size=(120, 3)) < np.where(eras == 0, 0.1, 0.4)[:, np.newaxis]
    X = np.abs(y[:, np.newaxis] - flips) + rng.normal(size=(120, 3))
    return X.round(1), y, eras


def gini(y):
    return 2 * np.mean(y) * (1 - np.mean(y))


def smoothed_ratio(y_left, y):
    """Equations 17 to 19."""
    one, zero = ((np.sum(y_left == c) + 0.5) / (np.sum(y == c) + 1) for c in (1, 0))
    return one / zero


def gini_objective(y, left, eras, penalty):
    """Equation 15 with Gini impurity, 9 and 16."""
    ratios = [smoothed_ratio(y[left & (eras == e)], y[eras == e]) for e in (0, 1)]
    impurity = np.mean(left) * gini(y[left]) + np.mean(~left) * gini(y[~left])
    return impurity + penalty * (max(ratios) / min(ratios) - 1)


def error_objective(y, left, eras, penalty):
    """Equation 15 with the squared error, 9, 20 and 22."""
    changes = [np.mean(y[left & (eras == e)]) - np.mean(y[eras == e]) for e in (0, 1)]
    impurity = np.mean(left) * np.var(y[left]) + np.mean(~left) * np.var(y[~left])
    return impurity + penalty * np.var(changes)


def least_objective(X, y, eras, objective, penalty):
    """Search splits with both eras on both sides that lower the squared error."""
    values = []
    for column in X.T:
        for low, _ in pairwise(np.unique(column)):
            left = column <= low
            within = np.mean(left) * np.var(y[left]) + np.mean(~left) * np.var(y[~left])
            if np.unique(eras[left]).size == np.unique(eras[~left]).size == 2 and (
                np.var(y) - within > 1e-9
            ):
                values.append(objective(y, left, eras, penalty))
    return min(values)


@pytest.mark.parametrize("penalty", [0.03, 1, *map(slow, [0.001, 0.01, 0.1, 10])])
@pytest.mark.parametrize("is_class", [True, False])
def test_every_split_has_the_least_objective(is_class, penalty):
    objective = gini_objective if is_class else error_objective
    case = Case(penalty, "changing_rate")
    one_tree = {"n_estimators": 1, "max_depth": 3, "bootstrap": False}
    for seed in range(3):
        X, y, eras = coarse_data(seed)
        forest = make_forest(is_class, case, **one_tree).fit(X, y, eras=eras)
        nodes = forest._predictors[0][0].nodes
        rows_of = rows_of_nodes(forest._predictors[0][0], X)
        for index in np.flatnonzero(nodes["is_leaf"] == 0):
            rows = rows_of[index]
            left = np.isin(rows, rows_of[nodes["left"][index]])
            found = objective(y[rows], left, eras[rows], penalty)
            best = least_objective(X[rows], y[rows], eras[rows], objective, penalty)
            assert found == pytest.approx(best, rel=1e-6)
        assert len(rows_of) > 3


@on_grid("kind is_classifier", ["IRM", "REx"], [False, True])
def test_linear_model_has_the_least_penalised_risk(kind, is_classifier):
    """Of IRMv1 the slope in a factor, of V-REx the variance, by differences."""
    X, y, eras = coarse_data(0)
    Z = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])
    target = y if is_classifier else (y - y.mean()) / y.std()

    def risk(f, t):
        if is_classifier:
            return np.mean(np.log1p(np.exp(f)) - t * f)
        return np.mean((f - t) ** 2) / 2

    def objective(w, penalty=3.0):
        of = [(Z[eras == e] @ w, target[eras == e]) for e in (0, 1)]
        risks = [risk(f, t) for f, t in of]
        scaled = [lambda s, f=f, t=t: risk(s * f, t) for f, t in of]
        slopes = [approx_fprime(np.ones(1), each, 1e-7)[0] for each in scaled]
        size = np.mean(np.square(slopes)) if kind == "IRM" else np.var(risks)
        return np.mean(risks) + penalty * size

    w = minimize(objective, minimize(lambda w: objective(w, 0.0), np.zeros(4)).x).x
    found = fit_invariant_linear(X, y, eras, kind, 3.0, is_classifier)(X)
    if is_classifier:
        assert np.mean(found == (Z @ w > 0)) > 0.98
    else:
        assert found == pytest.approx(y.mean() + y.std() * (Z @ w), abs=0.01)


def test_frequencies_add_up_to_the_mean_depth_of_rows():
    X, y, eras = coarse_data(0)
    forest = make_forest(True, Case(1), n_estimators=7, random_state=0)
    forest.fit(X, y, eras=eras)
    leaves = [tree.nodes[tree.nodes["is_leaf"] == 1] for (tree,) in forest._predictors]
    depths = [np.average(each["depth"], weights=each["count"]) for each in leaves]
    frequencies = split_frequencies(forest)
    assert frequencies.shape == (3,)
    assert frequencies.sum() == pytest.approx(np.mean(depths))
    found = list(_liao.importances(forest, 1).values())
    gains = forest.feature_importances_
    stable, others = frequencies[0], frequencies[1:].sum()
    share = stable / (stable + others)
    assert found == pytest.approx([stable, others, share, gains[0]])
    # A stump splits every row once.
    X[:, :2] = 0
    forest = make_forest(True, Case(1), n_estimators=3, max_depth=1)
    assert split_frequencies(forest.fit(X, y, eras=eras)).tolist() == [0, 0, 1]


# Table 6, as the paper writes it: from an hour to before another one, and months.
HOURS = {
    ("Energy1-1", 3): "10-18, 6-10 18-22, 0-6 22-24",
    ("Energy1-2", 3): "4-12, 12-20, 0-4 20-24",
    ("Energy1-3", 3): "0-8, 8-16, 16-24",
    ("Energy1-1", 4): "0-6, 6-12, 12-18, 18-24",
}
MONTHS = {
    ("Air1-1", 3): "1 2 3 4, 5 6 7 8, 9 10 11 12",
    ("Air1-2", 3): "2 3 4 5, 6 7 8 9, 10 11 12 1",
    ("Air1-3", 3): "3 4 5 6, 7 8 9 10, 11 12 1 2",
    ("Air1-1", 4): "1 2 3, 4 5 6, 7 8 9, 10 11 12",
    ("Air1-2", 4): "2 3 4, 5 6 7, 8 9 10, 11 12 1",
    ("Air1-3", 4): "3 4 5, 6 7 8, 9 10 11, 12 1 2",
}


def test_environments_are_those_of_table_6():
    hours = {3: energy_air._HOURS_OF_3, 4: energy_air._HOURS_OF_4}
    months = {3: energy_air._MONTHS_OF_3, 4: energy_air._MONTHS_OF_4}
    for table, ours, first in ((HOURS, hours, 0), (MONTHS, months, 1)):
        for (name, n), text in table.items():
            expected = {}
            for number, part in enumerate(text.split(", ")):
                for span in part.split():
                    start, _, end = span.partition("-")
                    units = range(int(start), int(end or int(start) + 1))
                    expected |= dict.fromkeys(units, number)
            assert dict(enumerate(ours[n][name], first)) == expected


def air_rows(n_days):
    dates = pd.date_range("2010-01-01", periods=n_days, freq="D")
    return pd.DataFrame({
        "No": np.arange(1, n_days + 1), "year": dates.year, "month": dates.month,
        "hour": 3, "pm2.5": np.arange(float(n_days)),
        "cbwd": np.resize(["SE", "NW", "cv", "NE"], n_days)})  # fmt: skip


def test_air_has_no_column_that_tells_its_environment():
    air = air_rows(720)
    by_month = energy_air._air_part(air, energy_air._MONTHS_OF_3["Air1-2"], 3)
    by_time = energy_air._air_part(air, None, 4)
    # Hour, direction of the wind, and the year or the month.
    assert by_month.X.shape == by_time.X.shape == (720, 6)
    assert set(by_month.X[:, 0]) == {2010, 2011}
    assert set(by_time.X[:, 0]) == set(range(1, 13))
    assert by_month.environments[[0, 40, 160, 300]].tolist() == [2, 0, 1, 2]
    np.testing.assert_array_equal(by_time.environments, np.arange(720) // 180)


def test_shares_have_no_column_that_is_made_of_the_target():
    frame = pd.DataFrame({
        "year": [2014, 2015], "Revenue": [1.0, 2.0], "Growth": [np.nan, 3.0],
        "Sector": ["Energy", "Services"], "Class": [0, 1],
        "2015 PRICE VAR [%]": [-7.0, 7.0]})  # fmt: skip
    assert financial._read(frame, financial.NUMBERS).X.tolist() == [[1.0], [2.0]]
    both = financial._read(frame, financial.ALL_COLUMNS)
    assert both.X.tolist() == [[1.0, 1.0, 0.0], [2.0, 0.0, 1.0]]
    assert both.environments.tolist() == [2014, 2015]


def test_scenarios_take_every_choice_of_environments_once():
    data = Part(np.arange(8.0)[:, np.newaxis], np.arange(8), np.repeat([3, 5, 8, 9], 2))
    tested = list(splits_to_test(data, 3))
    assert [set(test.environments) for _, test in tested] == [{9}, {8}, {5}, {3}]
    tuned = list(splits_to_tune(data, 2))
    assert len(tuned) == 12
    assert len({tuple(map(bytes, (p.y for p in parts))) for parts in tuned}) == 12
    for parts in tuned:
        rows = np.concatenate([part.y for part in parts])
        assert rows.size == np.unique(rows).size == 8
        assert [part.y.size for part in parts] == [4, 2, 2]
        assert all((part.X[:, 0] == part.y).all() for part in parts)
