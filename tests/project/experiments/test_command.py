"""The experiments: each runs end to end, reduced, and the command reports it."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from experiments import __main__ as command
from experiments.__main__ import data_files, experiment_names, load_experiment
from experiments.common import ExperimentError, bars, find_data_file, seed_of, summarize
from helpers.grids import slow
from sklearn_era.cli._numerai_demo import write_demo_data
from sklearn_era.numerai.files import Workspace

NUMERAI = "era_splitting_numerai"
ROOT = Path(__file__).resolve().parents[3]


class Stub:
    """An experiment of one cell, which notes how it was called."""

    TITLE = "A table of one cell"
    N_RUNS = 3

    def __init__(self):
        self.calls = []

    def run(self, **options):
        self.calls.append(options)
        values = {"cell": "x", "score": np.arange(options["n_runs"], dtype=float)}
        by_cell = {"by": ["cell"], "value": "score", "paper": {"x": 0.25}}
        return summarize(pd.DataFrame(values), **by_cell)

    draw = staticmethod(bars("cell"))


class Lacking(Stub):
    DATA_FILES = ("adult.csv.gz",)

    def run(self, data_dir, n_runs, quick):
        find_data_file("adult.csv.gz", data_dir)


class Long(Stub):
    """An experiment that can be stopped and shared among processes."""

    def run(self, data_dir, n_runs, quick, cache=None, n_jobs=None):
        return super().run(n_runs=n_runs, cache=cache, n_jobs=n_jobs)


@pytest.fixture
def stubs(monkeypatch):
    """Return a function that puts stubs, by name, in the place of all experiments."""

    def put(**experiments):
        monkeypatch.setattr(command, "experiment_names", lambda: [*experiments])
        monkeypatch.setattr(command, "load_experiment", experiments.__getitem__)
        return experiments

    return put


@pytest.fixture
def stub(stubs):
    return stubs(lacking=Lacking(), stub=Stub())["stub"]


def made_up_numerai(folder):
    """A folder with made-up files in the layout of Numerai's."""
    sizes = {"n_train_eras": 70, "n_validation_eras": 30, "n_future_eras": 1}
    workspace = Workspace(folder, "v5")
    write_demo_data(workspace, **sizes, rows_per_era=60, n_features=20)
    return workspace.data_dir


@pytest.mark.filterwarnings("ignore::UserWarning")  # as the command does
@pytest.mark.parametrize(
    "name", [x if x == NUMERAI else slow(x) for x in experiment_names()]
)
def test_experiment_runs_reduced(name, request, tmp_path):
    experiment = load_experiment(name)
    assert experiment.N_RUNS >= 1
    data = None
    if name == NUMERAI:
        data = made_up_numerai(tmp_path)
    elif data_files(experiment):
        data = request.getfixturevalue("data_folder")
    frame = experiment.run(data_dir=data, n_runs=1, quick=True)
    assert len(frame) > 1
    numbers = frame.select_dtypes("number")
    assert {"n_runs", "mean", "paper"} <= set(numbers)
    assert (frame["n_runs"] >= 1).all()
    assert np.isfinite(frame["mean"]).all()
    names = frame.drop(columns=[*numbers, *{"runs"} & set(frame)])
    assert not names.duplicated().any(), "two rows for a cell"
    figure = Figure(layout="constrained")
    experiment.draw(frame, figure)
    figure.canvas.draw()
    assert figure.axes
    assert all(axes.has_data() for axes in figure.axes if axes.axison)


@pytest.mark.parametrize(
    "name", [name for name in experiment_names() if data_files(load_experiment(name))]
)
def test_experiment_says_which_file_it_lacks(name, tmp_path):
    experiment = load_experiment(name)
    missing = "|".join(map(re.escape, experiment.DATA_FILES))
    with pytest.raises(ExperimentError, match=missing):
        experiment.run(data_dir=tmp_path, n_runs=1, quick=True)


def test_numerai_thins_eras_and_scores_folds_of_time_by_week(tmp_path):
    numerai, folder = load_experiment(NUMERAI), made_up_numerai(tmp_path)
    data = numerai._read(*(numerai._find(x, folder) for x in numerai.DATA_FILES))
    # The first of 100 eras and every fourth; of 5 sets, the one nearest to 244.
    assert np.unique(data.weeks).tolist() == list(range(1, 86, 4))
    assert (data.X.shape, data.X.dtype) == ((22 * 60, 20), np.int8)
    ends = [np.ptp(data.weeks[data.folds == fold]) for fold in range(5)]
    assert np.all(np.diff(data.folds) >= 0)
    assert set(ends) <= {12, 16}
    drawn = {**numerai.PARAMETERS, "max_iter": 20}
    found = numerai._scores("gain", drawn, 0, data, 4)
    train, test = (data.folds < 4), (data.folds == 4)
    model = numerai.delise.fit("gain", drawn, (data.X[train], data.y[train], None), 0)
    frame = pd.DataFrame({"y": data.y[test], "x": model.predict(data.X[test])})
    corr = pd.Series([
        week.corr().loc["y", "x"] for _, week in frame.groupby(data.weeks[test])
    ])  # fmt: skip
    sums = corr.cumsum()
    assert found[numerai.delise.TEST] == pytest.approx(corr.mean())
    assert found[numerai.SHARPE] == pytest.approx(corr.mean() / corr.std(ddof=0))
    assert found[numerai.DRAWDOWN] == pytest.approx((sums.cummax() - sums).max())
    gap = found[numerai.delise.TRAINING] - found[numerai.delise.TEST]
    assert found[numerai.delise.GAP] == gap


def test_every_experiment_stands_in_the_readme():
    text = (ROOT / "experiments" / "README.md").read_text()
    for name in experiment_names():
        for word in (name, *data_files(load_experiment(name))):
            assert f"`{word}`" in text


def test_data_file_is_found_or_missed_in_one_sentence(tmp_path):
    parts = ("the file adult.csv.gz", "--data DIR", "experiments/README.md")
    for folder in (None, tmp_path):
        with pytest.raises(ExperimentError, match=r"^.*$") as caught:
            find_data_file("adult.csv.gz", folder)
        assert all(part in str(caught.value) for part in parts)
    assert str(tmp_path) in str(caught.value)
    (tmp_path / "adult.csv.gz").touch()
    assert find_data_file("adult.csv.gz", tmp_path) == tmp_path / "adult.csv.gz"


def test_seeds_differ_by_purpose_and_run_and_stay():
    seeds = [seed_of(purpose, run) for purpose in ("data", "model") for run in range(9)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**32 for seed in seeds)
    # CRC-32 and NumPy's SeedSequence are the same on every machine.
    assert seed_of("data", 0) == seeds[0] == 1217817933


def test_summary_has_a_row_for_each_cell():
    runs = pd.DataFrame({"model": list("bbab"), "data": list("xyxx")})
    runs["score"] = [1.0, 5.0, 2.0, 3.0]
    options = {"paper": {("b", "x"): 2.5}, "show_runs": True}
    table = summarize(runs, by=["model", "data"], value="score", **options)
    expected = pd.DataFrame({
        "model": ["b", "b", "a"], "data": ["x", "y", "x"], "n_runs": [2, 1, 1],
        "mean": [2.0, 5.0, 2.0], "std": [2**0.5, np.nan, np.nan],
        "paper": [2.5, np.nan, np.nan], "runs": ["1 3", "5", "2"]})  # fmt: skip
    pd.testing.assert_frame_equal(table[[*expected]], expected)


def test_command_prints_and_writes_and_counts_its_runs(stub, tmp_path, capsys):
    asked = {"data_dir": None, "n_runs": 3, "quick": False}
    for options, changed, printed in (
        ([], {}, "cell\n\n"),
        (["--data", str(tmp_path), "--runs", "2"],
         {"data_dir": tmp_path, "n_runs": 2}, "With 2 of 3 runs.\n\n"),
        (["--quick"], {"n_runs": 1, "quick": True},
         "With 1 of 3 runs.\nReduced, to see that it runs: these are not the table's"),
    ):  # fmt: skip
        assert command.main(["stub", "--out", str(tmp_path / "out"), *options]) == 0
        assert stub.calls.pop() == asked | changed
        out = capsys.readouterr().out
        assert out.startswith("A table of one cell\n")
        assert printed in out
        assert "0.25" in out
    # A quick look does not replace a measurement.
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"stub.csv", "stub.png", "stub-quick.csv", "stub-quick.png"}
    assert pd.read_csv(tmp_path / "out/stub.csv")["mean"].tolist() == [0.5]


def test_one_without_data_does_not_keep_others_from_running(stub, tmp_path, capsys):
    assert (command.main(["all", "--out", str(tmp_path)]), len(stub.calls)) == (1, 1)
    captured = capsys.readouterr()
    assert captured.err.startswith("lacking: No folder was named")
    assert captured.err.count("\n") == 1
    assert (tmp_path / "stub.csv").is_file()


def test_only_long_experiments_take_a_cache_and_jobs(stubs, tmp_path, capsys):
    experiments = stubs(long=Long(), stub=Stub())
    options = ["--out", str(tmp_path), "--cache", "scores.csv", "--jobs", "2"]
    assert command.main(["all", *options]) == 1
    assert capsys.readouterr().err == "stub: It takes neither --cache nor --jobs.\n"
    asked = {"n_runs": 3, "cache": Path("scores.csv"), "n_jobs": 2}
    assert (experiments["long"].calls, experiments["stub"].calls) == ([asked], [])
