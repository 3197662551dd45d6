"""`n_jobs`: how many OpenMP threads fits and predictions use, and what limits them."""

import json
import os
import pickle
import platform
import subprocess
import sys
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from threadpoolctl import threadpool_info, threadpool_limits

from helpers.criteria import NAMES
from helpers.data import make_data
from helpers.estimators import ours, stock
from helpers.grids import on_grid, slow
from sklearn_era import _threads as threads
from sklearn_era._threads import IterationThreads, openmp_threads
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._boosters import hooks
from sklearn_era.ensemble._prediction.blocks import BlockPredictionMixin
from sklearn_era.inspection import split_statistics

# Values of `n_jobs`, and their threads out of four.
OF_FOUR = [(None, 4), (1, 1), (3, 3), (4, 4), (9, 4), (-1, 4), (-2, 3), (-4, 1),
           (-9, 1), (np.int64(2), 2)]  # fmt: skip


@pytest.fixture(autouse=True)
def four_threads(monkeypatch):
    # With the variable set, scikit-learn does not count cores.
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    with threadpool_limits(4, user_api="openmp"):
        yield


class Scoring:
    """A scorer that notes the threads that there are while a fit runs."""

    def __init__(self):
        self.noted = []

    def __call__(self, estimator, X, y):
        self.noted.append(_openmp_effective_n_threads())
        estimator.predict(X)
        return 0.0


@pytest.fixture
def predicting(monkeypatch):
    """The threads that each sum of trees gets."""
    noted = []

    def note(owner, name):
        add = getattr(owner, name)

        def noting(*args, **kwargs):
            noted.append(kwargs.get("n_threads", args[-1]))
            return add(*args, **kwargs)

        monkeypatch.setattr(owner, name, noting)

    note(BlockPredictionMixin, "_add_trees")
    note(gradient_boosting.BaseHistGradientBoosting, "_predict_iterations")  # of stages
    return noted


@on_grid("n_jobs split_criterion", OF_FOUR, ["gain", "era"], every=3)
def test_fit_uses_them(n_jobs, split_criterion, predicting, monkeypatch):
    n_jobs, expected = n_jobs
    growing, name = [], "TreeGrower" if split_criterion == "gain" else "EraTreeGrower"

    class Grower(getattr(hooks, name)):
        def __init__(self, *args, n_threads, **kwargs):
            growing.append(n_threads)
            super().__init__(*args, n_threads=n_threads, **kwargs)

    monkeypatch.setattr(hooks, name, Grower)
    X, y, _, eras = make_data()
    scoring = Scoring()
    model = ours(n_jobs=n_jobs, split_criterion=split_criterion, early_stopping=True,
                 scoring=scoring)  # fmt: skip
    model.fit(X, y, eras=eras)
    assert growing == [expected] * 5
    assert set(scoring.noted) == {expected}
    assert set(predicting) == {expected}  # by the scorer, in the midst of the fit
    assert _openmp_effective_n_threads() == 4


class Machine:
    """A clock and a count of lost processors: an iteration takes `paces[n_threads]`."""

    def __init__(self, paces, n_lost=0.0):
        self.paces, self.rate, self.now, self.n_lost = paces, n_lost, 100.0, 0.0

    def run(self, threads, seconds):
        """Iterate for so long; return the seconds that each number of threads took."""
        spent, end = dict.fromkeys(self.paces, 0.0), self.now + seconds
        while self.now < end:
            n = threads.begin_iteration()
            self.now, spent[n] = self.now + self.paces[n], spent[n] + self.paces[n]
            self.n_lost += self.rate * self.paces[n]
        return spent


def test_fewer_threads_where_other_programs_take_processors(monkeypatch):
    """They take nearly all of the time where they are faster, and none elsewhere."""
    monkeypatch.delenv("OMP_DYNAMIC")
    quiet, busy = {1: 0.016, 2: 0.009, 4: 0.005}, {1: 0.02, 2: 0.1, 4: 1.5}
    machine = Machine(quiet, n_lost=15)
    options = {"clock": lambda: machine.now, "count_lost": lambda: int(machine.n_lost)}
    threads = IterationThreads(4, **options)
    assert machine.run(threads, 60)[4] > 60
    machine.paces, machine.rate = busy, 200
    spent = machine.run(threads, 60)
    assert spent[1] > 50
    assert 1.5 <= spent[4] <= 1.5 + 60 / 20
    threads.begin_fit()  # another one knows
    assert machine.run(threads, 1)[1] > 0.8
    machine.paces, machine.rate = quiet, 0
    machine.run(threads, 60)
    assert machine.run(threads, 10)[4] > 9
    # On so busy a machine, more threads still are faster: trials are rare.
    machine.rate = 200
    assert machine.run(threads, 60)[4] > 60 * 0.9
    machine.paces, machine.rate = {2: 1.0, 1: 2.0, 4: 2.0}, 200
    machine.run(threads, 200)
    assert machine.run(threads, 200)[2] > 200 * 0.8  # the rest are trials of 1 and 4
    machine.paces = busy
    monkeypatch.setenv("OMP_DYNAMIC", "false")  # from the next fit on
    threads.begin_fit()
    assert machine.run(threads, 9)[4] >= 9
    monkeypatch.delenv("OMP_DYNAMIC")  # where nobody counts
    options["count_lost"] = None
    assert machine.run(IterationThreads(4, **options), 9)[4] >= 9


class Changing(Regressor):
    """Grows each tree with another number of threads."""

    def _threads_of_iteration(self, n_threads):
        self.n_asked = vars(self).get("n_asked", 0) + 1
        assert super()._threads_of_iteration(n_threads) == 4  # the first one's
        return (4, 1, 3, 2)[self.n_asked % 4]


@on_grid("criterion loss", NAMES, ["squared_error", "absolute_error", "poisson"],
         every=3)  # fmt: skip
def test_any_number_of_threads_grows_the_same_trees(criterion, loss):
    rng = np.random.default_rng(0)
    X, eras = rng.normal(size=(6000, 8)), np.repeat(np.arange(6), 1000)
    y = abs(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=6000))
    params = {"max_iter": 8, "loss": loss, "early_stopping": False, "random_state": 0}
    model = Changing(split_criterion=criterion, **params).fit(X, y, eras=eras)
    assert model.n_asked == 8
    others = [Regressor(split_criterion=criterion, n_jobs=1, **params)]
    others[0].fit(X, y, eras=eras)
    if criterion == "gain":
        others.append(stock(**params, max_bins=255, min_samples_leaf=20).fit(X, y))
    for other in others:
        assert_array_equal(model.predict(X), other.predict(X))


@on_grid("n_jobs", OF_FOUR, every=2)
def test_predictions_use_them(n_jobs, predicting):
    n_jobs, expected = n_jobs
    X, y, _, _ = make_data("binary")
    model = ours("binary", n_jobs=n_jobs).fit(X, y)
    for method in ("predict", "predict_proba", "decision_function"):
        getattr(model, method)(X)
    model.score(X, y)
    assert predicting == [expected] * 4
    for method in ("staged_predict", "staged_predict_proba"):
        for n_before, _ in enumerate(getattr(model, method)(X), start=1):
            # The limit does not last while the caller works with a stage.
            assert _openmp_effective_n_threads() == 4
            assert len(predicting) >= n_before
    assert predicting == [expected] * 14
    stages = model.staged_predict(X)
    next(stages)
    stages.close()
    assert _openmp_effective_n_threads() == 4


def test_replays_use_them(monkeypatch):
    noted = []

    def note():
        noted.append(_openmp_effective_n_threads())
        return noted[-1]

    replay = sys.modules["sklearn_era.inspection._replay"]
    monkeypatch.setattr(replay, "_openmp_effective_n_threads", note)
    X, y, _, eras = make_data()
    split_statistics(ours(n_jobs=3).fit(X, y), X, y, eras=eras)
    assert noted == [3]


def test_parameter_may_change_after_the_fit(predicting):
    X, y, _, _ = make_data()
    model = ours(n_jobs=3).fit(X, y)
    model.set_params(n_jobs=1).predict(X)
    pickle.loads(pickle.dumps(model)).predict(X)
    clone(model).set_params(n_jobs=2).fit(X, y).predict(X)
    assert predicting == [1, 1, 2]
    with pytest.raises(ValueError, match=r"'n_jobs' parameter of HistGrad.* Got 0"):
        model.set_params(n_jobs=0).predict(X)


@pytest.mark.parametrize(("n_jobs", "expected"), [(None, 2), (1, 1), (3, 2), (-2, 1)])
def test_a_lower_limit_of_the_caller_is_kept(n_jobs, expected, predicting):
    X, y, _, _ = make_data()
    model = ours(n_jobs=n_jobs)
    with threadpool_limits(2, user_api="openmp"):
        model.fit(X, y).predict(X)
        assert _openmp_effective_n_threads() == 2
    assert predicting == [expected]
    assert _openmp_effective_n_threads() == 4


def test_blocks_in_one_another():
    with openmp_threads(-2, "outer"):
        assert _openmp_effective_n_threads() == 3
        with openmp_threads(-2, "inner"):  # one less than all, and not than three
            assert _openmp_effective_n_threads() == 3
        with openmp_threads(-3, "inner"):
            assert _openmp_effective_n_threads() == 2
        with openmp_threads(-1, "inner"):
            assert _openmp_effective_n_threads() == 3
        with threadpool_limits(1, user_api="openmp"), openmp_threads(-1, "inner"):
            assert _openmp_effective_n_threads() == 1
        assert _openmp_effective_n_threads() == 3
    assert _openmp_effective_n_threads() == 4
    with openmp_threads(-2, "next"), openmp_threads(None, "inner"):
        assert _openmp_effective_n_threads() == 3
    # Other libraries keep their threads.
    before = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    with openmp_threads(1, "estimator"):
        after = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert before == after != []


def test_other_python_threads_keep_theirs():
    noted = {}
    inside, outside = threading.Event(), threading.Event()

    def limited():
        with openmp_threads(1, "one"):
            noted["inside"] = _openmp_effective_n_threads()
            inside.set()
            outside.wait(10)
        noted["after"] = _openmp_effective_n_threads()

    thread = threading.Thread(target=limited)
    thread.start()
    assert inside.wait(10)
    noted["meanwhile"] = _openmp_effective_n_threads()
    with openmp_threads(-2, "two"):
        noted["of its own"] = _openmp_effective_n_threads()
    outside.set()
    thread.join()
    assert noted.pop("after") >= 1
    assert noted == {"inside": 1, "meanwhile": 4, "of its own": 3}


def test_errors_leave_no_limit():
    X, y, _, _ = make_data()

    def fail(estimator, X, y):
        assert _openmp_effective_n_threads() == 1
        raise RuntimeError("the scorer fails")

    failing, model = ours(early_stopping=True, scoring=fail), ours(n_jobs=1).fit(X, y)
    for message, act in (
        ("the scorer fails", lambda: failing.set_params(n_jobs=1).fit(X, y)),
        ("inconsistent numbers of samples", lambda: clone(model).fit(X, y[:-1])),
        ("features", lambda: model.predict(X[:, :2])),
    ):
        with pytest.raises((RuntimeError, ValueError), match=message):
            act()
        assert _openmp_effective_n_threads() == 4
    with openmp_threads(-2, "again"):  # no trace of the blocks that failed
        assert _openmp_effective_n_threads() == 3


@pytest.mark.parametrize("n_jobs", [None, slow(-1), slow(4), 7])
def test_nothing_is_done_where_nothing_is_to_be_limited(n_jobs, monkeypatch):
    def refuse():
        raise AssertionError("looked for OpenMP runtimes")

    monkeypatch.setattr(threads, "_openmp_controller", refuse)
    X, y, _, _ = make_data()
    model = ours(n_jobs=n_jobs).fit(X, y)
    for _ in model.staged_predict(X):
        pass
    with pytest.raises(AssertionError, match="looked for"):
        model.set_params(n_jobs=3).predict(X)


@pytest.mark.parametrize(("n_jobs", "expected"), [slow(None, 3), (2, 1), slow(1, 0)])
def test_operating_system_sees_no_more_and_one_runtime(n_jobs, expected):
    """OpenMP keeps the threads that it once started, and two runtimes would spin."""
    script = f"""
import json, os, time
import numpy as np
import threadpoolctl
from sklearn_era.ensemble import HistGradientBoostingRegressor

def tasks():
    folder = "/proc/self/task"  # of Linux
    return set(os.listdir(folder)) if os.path.isdir(folder) else set()

X = np.random.default_rng(0).normal(size=(2000, 8))
before = tasks()
HistGradientBoostingRegressor(max_iter=2, n_jobs={n_jobs}).fit(X, X[:, 0]).predict(X)
deadline = time.monotonic() + 10
while True:  # those of joblib, which binning had, take a moment to end
    n_more = len(tasks() - before)
    if n_more <= {expected} or time.monotonic() > deadline:
        break
    time.sleep(0.01)
print(json.dumps([n_more, threadpoolctl.threadpool_info()]))
"""
    environment = {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-c", script]
    output = subprocess.check_output(command, text=True, env=os.environ | environment)
    n_more, pools = json.loads(output.splitlines()[-1])
    assert n_more == (expected if platform.system() == "Linux" else 0)
    openmp = [pool["filepath"] for pool in pools if pool["user_api"] == "openmp"]
    assert len(openmp) == 1, openmp
