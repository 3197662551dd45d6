"""The benchmark of natural eras: its splits, its statistics, and what it leaves out."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyRegressor

from experiments import _natural_eras_measure as bench
from experiments import natural_eras
from experiments._natural_eras_data import SCENARIOS, Scenario
from experiments._natural_eras_fresh import FRESH, SECOND
from experiments._natural_eras_measure import ALL, ALL_FRESH, measure, score_rows, tally
from experiments.common import ExperimentError


def make_reader():
    """A function that other processes get by its code: they cannot import this file."""

    def read(data_dir):
        rng = np.random.default_rng(0)
        eras = pd.Series(rng.permutation(np.repeat(np.arange(12), 50)))
        texts = ["b", "a", "b"] * 200
        X = pd.DataFrame({"number": rng.normal(size=600), "text": texts})
        return X, X["number"] + rng.normal(size=600), eras

    return read


def read_nothing(data_dir):
    raise ExperimentError("There is no such file.")


NUMBERS = Scenario(make_reader(), "regression", "time")


@pytest.mark.parametrize("kind", ["time", "groups"])
def test_no_era_is_in_training_and_test(kind):
    eras = NUMBERS.load(None).eras
    parts = list(bench.splits(NUMBERS._replace(kind=kind), eras))
    assert len(parts) == 5
    tested = [era for _, test in parts for era in np.unique(eras[test])]
    assert len(tested) == len(set(tested)) == (5 if kind == "time" else 12)
    for train, test in parts:
        assert not set(eras[train]) & set(eras[test])
        assert kind == "groups" or eras[train].max() < eras[test].min()


def test_fewer_rows_keep_the_shares_of_eras():
    eras, rows = np.repeat([0, 1, 2], [600, 300, 3]), np.arange(1, 903)
    kept = bench.thinned(rows, eras, 90, seed=0)
    assert np.bincount(eras[kept]).tolist() == [60, 30, 1]
    assert (np.diff(kept) > 0).all()
    assert set(kept) < set(rows)
    assert_array_equal(bench.thinned(rows, eras, 902, seed=0), rows)


def test_groups_of_few_rows_are_one_and_categories_go_by_their_number():
    groups = pd.Series(["a"] * 150 + ["b"] * 149 + ["c"] + ["d"])
    parts = pd.DataFrame({"x": ["p", "q", "q"] * 100 + [None]}), groups == "a", groups
    table = Scenario(lambda _: parts, "regression", "groups").load(None)
    assert np.bincount(table.eras).tolist() == [150, 149, 2]
    assert (table.X[:3, 0].tolist(), table.X[-1, 0]) == ([1, 0, 0], 2)
    assert table.categories == (0,)


def test_an_era_has_a_score_where_it_has_the_rows():
    y = np.arange(40) % 2.0
    assert score_rows("classification", y, y) == 1
    assert np.isnan(score_rows("classification", y[:29], y[:29]))
    assert np.isnan(score_rows("classification", np.zeros(40), y))
    assert score_rows("regression", y, np.full(40, 0.5)) == 0


def test_differences_are_taken_split_by_split():
    rows = [
        {"scenario": scenario, "split": split, "run": run, "model": model,
         "score": scale * score + noise, "worst_era_score": 0.0,
         "loss": np.exp(-scale * score), "fit_seconds": 1.0}
        for scenario, scale in (("a", 1), ("b", 2))
        for model, first, step in (("gain", 5, 2), ("other", 6, 3), ("gone", 4, 2))
        for split, score in enumerate((first + step * np.arange(3)) / 10)
        for run, noise in enumerate((-0.1, 0.1))
    ]  # fmt: skip
    table = bench.compare(pd.DataFrame(rows))
    by_cell = table.set_index(["score", "scenario", "model"]).sort_index()
    # Over both, the mean is that of 0.2 and 0.4; the logarithm of a ratio of losses is
    # as the scores were made to be.
    for score, scenario, expected in (
        ("score", "a", [3, 0.2, 0.1 / 3**0.5]),
        ("score", ALL, [2, 0.3, 0.1]),
        ("loss", ALL, [2, 0.3, 0.1]),
    ):
        found = by_cell.loc[(score, scenario, "other"), ["n_runs", "mean", "se"]]
        assert_allclose(found.astype(float), expected)
    assert by_cell.loc[("score", "a", "other"), "level"] == pytest.approx(0.9)
    columns = ["n", "median", "mean_but_largest", "ahead", "behind"]
    clearly = ["clearly_ahead", "clearly_behind", "p"]
    by_model = tally(table, "loss").loc[ALL][columns + clearly]
    assert_allclose(by_model.loc["other"], [2, 0.3, 0.2, 2, 0, 2, 0, 0.5])
    assert_allclose(by_model.loc["gone"], [2, -0.15, -0.2, 0, 2, 0, 2, 0.5])
    text = natural_eras.show(table)
    assert "| a (0.700) | **+.200 ± .058** |" in text
    cells = "| +0.3000 | 2 / 0 (0.5) | 2 / 0 | +0.2000 "
    assert f"| {ALL} (2) | other {cells}{cells}|" in text
    for options, means in (
        ({"reference": "gone"}, {"a": 0.3}),
        ({"parts": {ALL_FRESH: ["b"]}}, {ALL: 0.2, ALL_FRESH: 0.4}),
    ):
        found = bench.compare(pd.DataFrame(rows), **options)
        found = found.set_index(["score", "model", "scenario"]).sort_index()["mean"]
        assert_allclose(found["score", "other"][[*means]], [*means.values()])


class Labels(DummyRegressor):
    """Keeps the labels of the eras that it is fitted to."""

    seen: ClassVar[list] = []

    def fit(self, X, y, eras=None):
        self.seen.append(eras)
        return super().fit(X, y)


@pytest.mark.parametrize(("kind", "dtype"), [("time", np.integer), ("groups", np.str_)])
def test_only_eras_in_time_have_labels_with_an_order(kind, dtype):
    models = {"gain": lambda task, seed: Labels()}
    measure({"n": NUMBERS._replace(kind=kind)}, models, data_dir=None, quick=True)
    assert np.issubdtype(Labels.seen[-1].dtype, dtype)


@pytest.mark.slow
def test_what_lacks_its_data_is_left_out_and_what_is_known_is_kept(tmp_path, capsys):
    scenarios = {"lacking": Scenario(read_nothing, "regression", "time"), "n": NUMBERS}
    models = {name: natural_eras.MODELS[name] for name in ("gain", "directional")}
    options = {"data_dir": None, "quick": True, "cache": tmp_path / "scores"}
    scores = measure(scenarios, models, **options)
    assert capsys.readouterr().err == "lacking is left out. There is no such file.\n"
    assert len(scores) == 4
    assert (scores["worst_era_score"] <= scores["score"] + 0.1).all()
    # Seconds are those of the first fits.
    again = measure(scenarios, models, **options)
    pd.testing.assert_frame_equal(again, scores, check_exact=True)
    # As when a run was stopped, and another one goes on with more processes.
    options["cache"] = tmp_path / "others"
    measure({"n": NUMBERS}, {"gain": models["gain"]}, **options)
    again = measure({"n": NUMBERS}, models, n_jobs=2, **options)
    measured = [*scores.columns.drop("fit_seconds")]
    pd.testing.assert_frame_equal(again[measured], scores[measured], check_exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SCENARIOS, *FRESH, *SECOND])
def test_each_scenario_has_its_splits(name, data_folder):
    scenario = (SCENARIOS | FRESH | SECOND)[name]
    try:
        X, y, eras = scenario.load(data_folder)[:3]
    except ExperimentError as error:
        pytest.skip(str(error))
    assert len(X) == len(y) == len(eras) > 2500
    assert np.isfinite(y).all()
    assert set(y) == {0, 1} or scenario.task == "regression"
    parts = list(bench.splits(scenario, eras))
    assert len(parts) == scenario.n_splits
    for train, test in parts:
        assert np.isfinite(score_rows(scenario.task, y[test], np.zeros(len(test))))
        assert len(np.unique(eras[train])) >= 5
