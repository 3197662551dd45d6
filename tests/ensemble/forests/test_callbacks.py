"""Calls of scikit-learn's callbacks in a forest's fit: a task for each tree."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import accuracy_score

from helpers.callbacks import Hook, Recorder, logged
from helpers.forests import classifier, make_classes, make_data, regressor
from helpers.trees import assert_same_trees

ScoringMonitor = pytest.importorskip("sklearn.callback").ScoringMonitor

N_TREES = 6
ON_THREADS = pytest.mark.parametrize("n_jobs", [1, 2])


@ON_THREADS
def test_each_tree_is_a_task_and_the_forest_so_far_is_one_of_so_many(n_jobs):
    X, y, eras = make_data()
    recorder = Recorder()
    params = {"split_criterion": "era", "max_samples": 0.3, "n_jobs": n_jobs}
    forest = regressor(oob_score=True, **params)
    plain = clone(forest).fit(X, y, eras=eras)
    forest.set_callbacks(recorder).fit(X, y, eras=eras)
    assert_same_trees(forest, plain)
    assert set(vars(forest)) == set(vars(plain)) | {"_skl_callbacks"}
    tasks = [(kind, c.task_name, c.task_id) for kind, c, *_ in recorder.events[1:-1]]
    of_trees = [(k, "iteration", i) for i in range(N_TREES) for k in ("begin", "end")]
    assert tasks == [("begin", "fit", 0), *of_trees, ("end", "fit", 0)]
    ((root, *_),) = recorder.of("begin", "fit")
    assert root.max_subtasks == N_TREES
    begun = [fitted for *_, fitted in recorder.of("begin", "iteration")]
    assert begun[0] is None
    for n_trees, so_far in enumerate([*begun[1:], recorder.fitted[-1]], start=1):
        few = clone(forest).set_callbacks().set_params(n_estimators=n_trees)
        few.set_params(oob_score=False).fit(X, y, eras=eras)
        assert_same_trees(so_far, few)
        assert_array_equal(so_far.predict(X), few.predict(X))
    ((*_, whole),) = recorder.of("end", "fit")
    assert_array_equal(whole.oob_prediction_, plain.oob_prediction_)


def test_a_monitor_logs_the_score_of_each_stage():
    X, y, eras = make_data()
    y = make_classes(y)
    weights = np.linspace(1, 2, y.size)
    recorder, monitor = Recorder(), ScoringMonitor(scoring="accuracy")
    forest = classifier().set_callbacks(recorder, monitor).fit(X, y, weights, eras=eras)
    stages = forest.staged_predict(X)
    staged = [accuracy_score(y, each, sample_weight=weights) for each in stages]
    assert_allclose(logged(monitor, "accuracy"), staged)
    _, X_seen, y_seen, metadata, _ = recorder.of("end", "fit")[0]
    assert X_seen is X
    assert_array_equal(y_seen, y)
    assert_array_equal(metadata["sample_weight"], weights)
    assert set(metadata) == {"sample_weight"}  # which is all that the scorer takes
    forest.set_callbacks(recorder).fit(X, y, eras={"a": eras, "b": eras + 1})
    assert_array_equal(recorder.of("end", "fit")[-1][3]["eras"], eras)


@ON_THREADS
def test_a_callback_may_stop_the_fit(n_jobs):
    X, y, eras = make_data()
    stop = Hook(lambda estimator: len(stop.ended) == 3)
    params = {"n_jobs": n_jobs, "oob_score": True, "max_samples": 0.05}
    forest = regressor(n_estimators=40, warm_start=True, **params)
    forest.set_callbacks(stop).fit(X, y, eras=eras)
    assert (forest.n_iter_, stop.ended) == (3, ["iteration"] * 3 + ["fit"])
    assert stop.torn_down
    three = regressor(n_estimators=3, **params).fit(X, y, eras=eras)
    assert_same_trees(forest, three)
    assert_array_equal(forest.oob_prediction_, three.oob_prediction_)
    forest.set_callbacks().set_params(n_estimators=9).fit(X, y, eras=eras)
    whole = regressor(n_estimators=9, **params).fit(X, y, eras=eras)
    assert_allclose(forest.predict(X), whole.predict(X))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("hook", ["setup", "on_fit_task_begin", "on_fit_task_end"])
def test_errors_of_callbacks_leave_the_forest_as_it_was(hook, error, monkeypatch):
    X, y, eras = make_data()
    recorder = Recorder()
    forest = regressor(n_jobs=2, warm_start=True).fit(X, y, eras=eras)
    before, expected = set(vars(forest.set_callbacks(recorder))), forest.predict(X)

    def fail(estimator, context, **arguments):
        if hook == "setup" or context.task_id == 2:
            raise error("out of ink")

    monkeypatch.setattr(recorder, hook, fail)
    with pytest.raises(error, match=r"^out of ink$"):
        forest.set_params(n_estimators=20).fit(X, y, eras=eras)
    assert recorder.events[-1] == "teardown"
    assert set(vars(forest)) == before
    assert_array_equal(forest.predict(X), expected)
