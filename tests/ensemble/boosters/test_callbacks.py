"""Calls of scikit-learn's callbacks in a fit, whose trees do not depend on them."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer, log_loss, make_scorer, r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.callbacks import MAX_ITER, Hook, Propagated, Recorder, logged
from helpers.data import N_SAMPLES, make_data
from helpers.estimators import ours
from helpers.grids import on_grid
from helpers.trees import assert_same_model
from sklearn_era.metrics import era_scores, make_era_scorer

ScoringMonitor = pytest.importorskip("sklearn.callback").ScoringMonitor

TARGETS = ["real", "binary", "multiclass"]


@on_grid("target criterion weighted", TARGETS, ["gain", "era"], [False, True], every=2)
def test_a_monitor_logs_the_score_of_each_stage(target, criterion, weighted):
    X, y, weights, eras = make_data(target)
    weights = weights if weighted else None
    name = "r2" if target == "real" else "neg_log_loss"
    monitor = ScoringMonitor(scoring=name)
    model = ours(target, split_criterion=criterion).set_callbacks(monitor)
    model.fit(X, y, weights, eras=eras)
    if target == "real":
        stages, score, sign = model.staged_predict(X), r2_score, 1
    else:
        stages, score, sign = model.staged_predict_proba(X), log_loss, -1
    staged = [sign * score(y, stage, sample_weight=weights) for stage in stages]
    assert len(set(staged)) == MAX_ITER
    assert logged(monitor, name) == staged
    assert logged(monitor, name, "fit") == staged[-1:]


@on_grid("target held_out weighted", TARGETS, [
    ("gain", "last"), ("gain", None), ("gain", "no eras"), ("era", "last"),
    ("era", None)], [False, True], every=4)  # fmt: skip
def test_held_out_rows_are_not_handed_over(target, held_out, weighted):
    criterion, validation_eras = held_out
    X, y, weights, eras = make_data(target)
    weights, recorder = weights if weighted else None, Recorder()
    model = ours(target, split_criterion=criterion, early_stopping=True)
    if validation_eras == "no eras":
        eras = None
    else:
        model.set_params(validation_eras=validation_eras)
    model.set_callbacks(recorder).fit(X, y, weights, eras=eras)
    rows, _ = train_test_split(np.arange(N_SAMPLES), test_size=0.1,
                               stratify=None if target == "real" else y,
                               random_state=model._random_seed)  # fmt: skip
    if validation_eras == "last":
        rows = np.flatnonzero(eras != eras.max())
    given = {"eras": eras, "sample_weight": weights}
    given = {name: values for name, values in given.items() if values is not None}
    seen = recorder.of("end", "iteration")
    for _, X_seen, y_seen, metadata, _ in seen:
        assert X_seen is seen[0][1]  # taken once
        assert_array_equal(X_seen, X[rows])
        assert_array_equal(y_seen, y[rows])
        assert y_seen.dtype == y.dtype
        assert set(metadata) == set(given)
        for name, values in given.items():
            assert_array_equal(metadata[name], values[rows])


def test_weights_are_those_given_without_class_weights():
    X, y, _, _ = make_data("binary")
    recorder = Recorder()
    model = ours("binary", class_weight="balanced").set_callbacks(recorder)
    model.fit(X, y, sample_weight=2.0)
    weights = recorder.of("end", "fit")[0][3]["sample_weight"]
    assert_array_equal(weights, np.full(N_SAMPLES, 2.0))
    model.fit(X, y)
    assert recorder.of("end", "fit")[-1][3] == {}


@on_grid("early_stopping library", [False, True], ["pandas", "polars"])
def test_frames_stay_frames(library, early_stopping):
    frames = pytest.importorskip(library)
    X, y, _, eras = make_data()
    colors = np.array(["red", "green", "blue", "grey"])
    # A categorical column behind the others: training puts it first, and encodes it.
    columns = {"b": X[:, 0], "a": X[:, 1], "color": colors[eras]}
    dtype = {"pandas": "category", "polars": getattr(frames, "Categorical", None)}
    frame = frames.DataFrame(columns)
    if library == "pandas":
        frame["color"] = frame["color"].astype(dtype[library])
    else:
        frame = frame.with_columns(frame["color"].cast(dtype[library]))
    recorder, monitor = Recorder(), ScoringMonitor(scoring="r2")
    model = ours(early_stopping=early_stopping, split_criterion="era")
    model.set_callbacks(recorder, monitor).fit(frame, y, eras=eras)
    assert model.is_categorical_.tolist() == [False, False, True]
    _, X_seen, y_seen, _, _ = recorder.of("end", "fit")[0]
    assert isinstance(X_seen, frames.DataFrame)
    assert list(X_seen.columns) == ["b", "a", "color"]
    assert (X_seen is frame) == (not early_stopping)
    staged = [r2_score(y_seen, stage) for stage in model.staged_predict(X_seen)]
    assert logged(monitor, "r2") == staged


@pytest.mark.parametrize("scoring", ["loss", "r2", lambda est, X, y: est.score(X, y)])
def test_the_estimator_so_far_is_that_of_a_fit_that_stopped(scoring):
    X, y, _, eras = make_data()
    recorder = Recorder()
    model = ours(split_criterion="era", early_stopping=True, scoring=scoring)
    model.set_callbacks(recorder).fit(X, y, eras=eras)
    begun = [arguments[-1] for arguments in recorder.of("begin", "iteration")]
    stages = [begun[0], *recorder.fitted]
    assert [stage.n_iter_ for stage in stages] == list(range(MAX_ITER + 1))
    for stage, prediction in zip(recorder.fitted, model.staged_predict(X), strict=True):
        assert_array_equal(stage.predict(X), prediction)
    assert_array_equal(begun[0].predict(X), model._baseline_prediction.item())
    for n_done, stage in enumerate(stages):
        assert set(vars(stage)) == set(vars(model)) - {"_raw_predict"}
        for name in ("train_score_", "validation_score_"):
            assert_array_equal(getattr(stage, name), getattr(model, name)[: n_done + 1])


def test_the_estimator_so_far_can_be_kept_and_fitted_further():
    X, y, _, _ = make_data()
    recorder = Recorder()
    model = ours(warm_start=True, max_features=0.5, random_state=3)
    stopped = clone(model).set_params(max_iter=2).fit(X, y)
    model.set_callbacks(recorder).fit(X, y)
    so_far = recorder.fitted[1].set_callbacks()
    assert_same_model(so_far, stopped, X)
    whole = pickle.loads(pickle.dumps(model))
    so_far = pickle.loads(pickle.dumps(so_far))
    assert_same_model(so_far.fit(X, y), whole, X)
    assert_same_model(recorder.fitted[1].fit(X, y), whole, X)
    assert_same_model(model, whole, X)  # which the fits above leave alone
    assert recorder.fitted[2].n_iter_ == 3


def test_a_hook_may_predict_with_the_estimator_itself():
    X, y, _, _ = make_data()
    seen = []
    hook = Hook(lambda estimator: seen.append(estimator.predict(X)))
    model = ours(early_stopping=True).set_callbacks(hook).fit(X, y)
    assert_array_equal(seen, list(model.staged_predict(X)))


STOPPING = {"early_stopping": True, "n_iter_no_change": 2, "learning_rate": 1.0}


@pytest.mark.parametrize("params", [{}, STOPPING | {"max_iter": 100}])
def test_tasks_are_a_fit_and_its_iterations(params):
    X, y, _, _ = make_data()
    recorder = Recorder()
    model = ours(**params).set_callbacks(recorder).fit(X, y)
    assert 2 < model.n_iter_ < 100 if params else model.n_iter_ == MAX_ITER
    assert (recorder.events[0], recorder.events[-1]) == ("setup", "teardown")
    contexts = [(kind, context) for kind, context, *_ in recorder.events[1:-1]]
    root = contexts[0][1]
    assert (contexts[0], contexts[-1]) == (("begin", root), ("end", root))
    found = root.task_name, root.max_subtasks, root.parent
    assert found == ("fit", model.max_iter, None)
    order = [(kind, context.task_id) for kind, context in contexts[1:-1]]
    expected = range(model.n_iter_)
    assert order == [(kind, i) for i in expected for kind in ("begin", "end")]
    assert all(context.parent is root for _, context in contexts[1:-1])
    assert all(context.max_subtasks == 0 for _, context in contexts[1:-1])


def test_warm_start_reports_the_iterations_that_are_left():
    X, y, _, _ = make_data()
    recorder = Recorder()
    model = ours(warm_start=True).set_callbacks(recorder).fit(X, y)
    for max_iter, left in [(MAX_ITER + 3, 3), (MAX_ITER + 3, 0)]:
        recorder.events.clear()
        model.set_params(max_iter=max_iter).fit(X, y)
        assert recorder.of("begin", "fit")[0][0].max_subtasks == left
        ends = recorder.of("end", "iteration")
        assert [context.task_id for context, *_ in ends] == list(range(left))
        n_iter = [fitted.n_iter_ - MAX_ITER for *_, fitted in ends]
        assert n_iter == list(range(1, 1 + left))
        assert recorder.of("end", "fit")[0][-1].n_iter_ == MAX_ITER + 3


@on_grid("early_stopping target", [False, True], TARGETS)
def test_a_callback_may_stop_the_fit(target, early_stopping):
    X, y, _, eras = make_data(target)
    model = ours(target, early_stopping=early_stopping, split_criterion="era")
    short = clone(model).set_params(max_iter=3).fit(X, y, eras=eras)
    recorder, stop = Recorder(), Hook(lambda estimator: estimator.n_iter_ == 3)
    model.set_callbacks(stop, recorder).fit(X, y, eras=eras)
    assert model.n_iter_ == 3
    assert_same_model(model, short, X)
    assert len(recorder.of("end", "iteration")) == 3
    assert len(recorder.of("end", "fit")) == 1
    n_scores = 4 if early_stopping else 0
    assert model.train_score_.shape == model.validation_score_.shape == (n_scores,)


@pytest.mark.parametrize("error", [ValueError, TypeError, KeyboardInterrupt])
@pytest.mark.parametrize("hook", ["setup", "on_fit_task_begin", "on_fit_task_end"])
def test_errors_of_callbacks_end_the_fit_and_tear_down(hook, error, monkeypatch):
    X, y, _, eras = make_data()
    frame, recorder = pd.DataFrame(X, columns=list("abcde")), Recorder()

    def fail(estimator, context, **arguments):
        if hook == "setup" or context.task_id == 2:
            raise error("out of ink")

    model = ours(split_criterion="era").set_callbacks(recorder)
    plain = clone(model).set_callbacks().fit(frame, y, eras=eras)
    with monkeypatch.context() as patched:
        patched.setattr(recorder, hook, fail)
        with pytest.raises(error, match=r"^out of ink$"):
            model.fit(frame, y, eras=eras)
    assert recorder.events[-1] == "teardown"
    left = set(vars(model)) - set(vars(plain))
    assert left <= {"_skl_callbacks"}
    if hook != "setup" and error is KeyboardInterrupt:  # whole iterations are kept
        n_whole = 2 + (hook == "on_fit_task_end")
        stages = list(plain.staged_predict(frame))
        assert_array_equal(model.predict(frame), stages[n_whole - 1])
    else:
        with pytest.raises(NotFittedError):
            model.predict(frame)
    model.fit(frame, y, eras=eras)
    assert_same_model(model, plain, frame)


@pytest.mark.parametrize("scoring", ["r2", ["r2"], {"r2": get_scorer("r2")}])
def test_a_monitor_that_does_not_ask_for_eras_gets_none(scoring):
    X, y, _, eras = make_data()
    recorder, monitor = Recorder(), ScoringMonitor(scoring=scoring)
    ours(split_criterion="era").set_callbacks(recorder, monitor).fit(X, y, eras=eras)
    assert recorder.of("end", "fit")[0][3] == {}
    assert len(monitor.get_logs().data) == MAX_ITER + 1


def test_routed_eras_reach_the_scorer_that_requests_them():
    X, y, _, eras = make_data()

    def lowest(y_true, y_pred, eras):
        return min(r2_score(y_true[eras == e], y_pred[eras == e]) for e in set(eras))

    with sklearn.config_context(enable_metadata_routing=True):
        asking = make_scorer(lowest).set_score_request(eras=True)
        monitor = ScoringMonitor(scoring={"era": asking, "r2": get_scorer("r2")})
        model = ours(split_criterion="era").set_callbacks(monitor).fit(X, y, eras=eras)
    staged = list(model.staged_predict(X))
    assert logged(monitor, "era") == [lowest(y, stage, eras) for stage in staged]
    assert logged(monitor, "r2") == [r2_score(y, stage) for stage in staged]


@on_grid("routing named weighted", [False, True], [False, True], [False, True])
def test_a_monitor_takes_a_scorer_of_eras(routing, named, weighted):
    X, y, weights, eras = make_data()
    scorer = make_era_scorer(r2_score, aggregation="worst")
    weights = weights if weighted else None
    with sklearn.config_context(enable_metadata_routing=routing):
        if weighted and routing:
            scorer.set_score_request(sample_weight=True)
        monitor = ScoringMonitor(scoring={"worst": scorer} if named else scorer)
        model = ours(split_criterion="era").set_callbacks(monitor)
        model.fit(X, y, eras=eras, sample_weight=weights)
    of = {"eras": eras, "metric": r2_score, "sample_weight": weights}
    assert logged(monitor, "worst" if named else "score") == [
        era_scores(y, stage, **of).worst() for stage in model.staged_predict(X)
    ]


def test_callbacks_of_a_pipeline_follow_iterations():
    X, y, _, eras = make_data()
    recorder = Propagated()
    pipeline = make_pipeline(StandardScaler(), ours(split_criterion="era"))
    pipeline.set_callbacks(recorder)
    pipeline.fit(X, y, histgradientboostingregressor__eras=eras)
    ends = recorder.of("end", "iteration")
    assert len(ends) == MAX_ITER
    for context, X_seen, *_, fitted in ends:
        task = context.parent
        assert task.source_estimator_name == "Pipeline"
        assert task.parent.estimator_name == "Pipeline"
        assert fitted.predict(X_seen).shape == y.shape
    model = pipeline[-1]
    assert not hasattr(model, "_skl_callbacks")
    assert not hasattr(model, "_parent_callback_ctx")
    assert "_parent_callback_ctx" not in vars(ends[-1][-1])
