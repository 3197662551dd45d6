"""The benchmarks, on tiny data: they run, and compare their output."""

import json
import re
import sys
from functools import partial

import numpy as np
import pytest

import instructions
import table
from benchmarks import common, ensemble, forest, numerai_metrics, rules
from comparisons import memory_probe
from comparisons.memory import LARGE_ROWS
from comparisons.results import NotPossibleHere, Settings
from comparisons.speed import HEADLINES
from sklearn_era.ensemble import HistGradientBoostingRegressor

TINY = Settings(n_threads=1, repeats=1, scale=1e-9, n_trees=2)
SETTINGS = Settings(n_threads=2, repeats=5, scale=1.0, n_trees=None)
ROWS = *HEADLINES, *table.ROWS, *LARGE_ROWS
ROWS = {row.case(SETTINGS): row for row in ROWS}.values()
POINT = ("directional", 5, 5, 2_000)
FOREST_POINT = ("directional", 2, "shallow", 2_000)
RECORD = instructions.RECORD
BENCHMARKS = [
    (kind, name, point)
    for kinds, point in [
        ([ensemble.Fit, ensemble.Ratio], POINT),
        ([ensemble.Fit, ensemble.Ratio], ("vrex", 5, None, 2_000)),
        ([ensemble.FitFastGain], ("gain", 1, 5, 2_000)),
        *(([ensemble.FitOtherData], ("directional", data, 20_000))
          for data in ensemble.OTHER_DATA),
        ([ensemble.Predict], ("uint8", "data frame", 2_000)),
        ([forest.ForestFit, forest.ForestPredict], FOREST_POINT),
        *(([numerai_metrics.Score], (metric, 3, 60))
          for metric in numerai_metrics.METRICS),
        *(([rules.RulesFit], (8, penalty, 500)) for penalty in rules.PENALTIES),
    ]
    for kind in kinds for name in dir(kind)
    if re.match("time_|peakmem_|track_", name)
]  # fmt: skip


def first_number(text):
    return float(re.match(r"[\d.]+", text)[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Trees end early")  # by the papers' rule
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.case(TINY))
def test_row_of_the_table_is_measured(row):
    try:
        result = row.measure(TINY)
    except NotPossibleHere as reason:
        pytest.skip(str(reason))
    assert first_number(result.value) > 0
    grown = [first_number(leaves) for leaves in result.leaves.split(" / ") if leaves]
    assert all(n_leaves > 2 for n_leaves in grown)
    is_fit = getattr(row, "call", "fit").startswith(("fit", "scikit-learn's fit"))
    assert bool(grown) == is_fit


@pytest.mark.filterwarnings("ignore:Trees end early")  # by the papers' rule
def test_tables_are_markdown(capsys):
    options = ["--scale", "0.002", "--trees", "2", "--repeats", "1", "--threads", "1"]
    assert table.main([*options, "--only", "`gain` over|^[0-9,]+ x 20, floats"]) == 0
    *lines, blank, footer = capsys.readouterr().out.splitlines()
    floats, integers = lines[:3], lines[-3:]
    assert lines == [*floats, "", *integers]
    for (header, rule, row), n_columns in ((floats, 8), (integers, 3)):
        assert header.count("|") == rule.count("|") == row.count("|") == n_columns + 1
    assert "2,000 x 20, floats, 40 eras" in floats[-1]
    assert "2,000 x 100" in integers[-1]
    assert blank == ""
    assert footer.startswith("OpenMP threads: 1; best of 1; ")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "point"), BENCHMARKS)
def test_asv_benchmark_runs(kind, name, point):
    benchmark = kind()
    try:
        benchmark.setup(*point)
    except NotImplementedError:
        pytest.skip("what it measures is not installed")
    result = getattr(benchmark, name)(*point)
    if name.startswith("track_"):
        assert result > (2 if "leaves" in name else 0)
        assert getattr(benchmark, name).unit
    else:
        assert result is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_peak_of_memory_is_found_after_it_was_given_back():
    size = 64 * 2**20
    np.ones(2 * size, dtype=np.uint8)  # before the peak is reset
    memory_probe.reset_peak()
    before = memory_probe.resident_bytes("VmRSS")
    np.ones(size, dtype=np.uint8)
    assert 0.95 * size < (memory_probe.resident_bytes("VmHWM") - before) < 1.1 * size


def test_learners_take_turns():
    turns = []

    def fit(name, data, n_trees):
        turns.append(name)
        return common.SKLEARN.fit(data, n_trees)

    learners = [common.Learner(name, partial(fit, name)) for name in "AB"]
    task = common.Task(n_rows=500, n_eras=2, n_features=3, n_trees=1)
    timings = common.interleave(learners, task, repeats=3)
    assert "".join(turns) == "ABABAB"
    assert all(timing.seconds > 0 for timing in timings)
    assert timings[0].leaves == timings[1].leaves > 1


@pytest.mark.parametrize(("n_bins", "size"), [(5, 0.04), (None, 0.2)])
def test_some_effects_hold_in_every_era_and_some_do_not(n_bins, size):
    task = common.Task(200_000, n_eras=4, n_bins=n_bins, n_features=20)
    X, y, eras, *_ = common.make_data(task)
    of_eras = [eras == e for e in range(4)]
    correlations = np.array([np.corrcoef(X[i].T, y[i])[-1, :-1] for i in of_eras])
    sizes, n_positive = np.abs(correlations), (correlations > 0).sum(axis=0)
    assert (sizes[:, :4] > size).all()
    assert (sizes[:, 4:] < 0.03).all()
    varies = (n_positive > 0) & (n_positive < 4)
    assert varies[:4].tolist() == [False, False, True, True]


def test_floats_are_fitted_with_default_parameters():
    data = common.make_data(common.Task(1_000, n_bins=None, n_features=5))
    assert data.X.dtype == np.float64
    ours = common.era_booster(data, "directional", 20).get_params()
    default = HistGradientBoostingRegressor().get_params()
    changed = {name for name in ours if ours[name] != default[name]}
    assert changed == {"split_criterion", "max_iter", "early_stopping", "random_state"}


def test_instructions_are_compared_with_those_on_record(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(instructions, "RECORD", tmp_path / "instructions.json")
    counts = dict.fromkeys(json.loads(RECORD.read_text())["instructions"], 1000)
    assert list(counts) == list(instructions.FITS)
    monkeypatch.setattr(instructions, "count", lambda: counts)
    assert instructions.main(["--update"]) == instructions.main([]) == 0
    first = next(iter(counts))
    for count, is_more in ((1049, 0), (1051, 1)):
        counts[first] = count
        assert instructions.main([]) == is_more
    assert f"{first} takes 5.1% more instructions" in capsys.readouterr().out
    monkeypatch.setattr(instructions, "tools", lambda: "GCC 99")
    assert instructions.main([]) == 0
    assert "here is GCC 99" in capsys.readouterr().out
