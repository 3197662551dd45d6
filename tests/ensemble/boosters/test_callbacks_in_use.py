"""scikit-learn's callbacks and meta-estimators at work on our fits."""

import pytest
import sklearn
from sklearn.metrics import get_scorer, make_scorer, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.callbacks import MAX_ITER, Propagated, Recorder, logged
from helpers.data import make_data
from helpers.estimators import ours
from sklearn_era.metrics import era_scores, make_era_scorer

callback = pytest.importorskip("sklearn.callback")
ScoringMonitor = callback.ScoringMonitor

# Eras and scores


def era_r2(estimator, X, y, eras):
    """The lowest R² of an era."""
    prediction = estimator.predict(X)
    return {"r2": min(r2_score(y[eras == e], prediction[eras == e]) for e in set(eras))}


@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_monitor_may_score_era_by_era(early_stopping):
    X, y, _, eras = make_data()
    recorder, monitor = Recorder(), ScoringMonitor(scoring=era_r2)
    model = ours(early_stopping=early_stopping)
    model.set_callbacks(monitor, recorder).fit(X, y, eras=eras)
    _, X_seen, y_seen, metadata, _ = recorder.of("end", "fit")[0]
    expected = [
        era_r2(stage, X_seen, y_seen, metadata["eras"])["r2"]
        for stage in recorder.fitted
    ]
    assert logged(monitor, "r2") == expected


@pytest.mark.parametrize(
    "scoring", ["r2", ["r2"], get_scorer("r2"), {"r2": get_scorer("r2")}]
)
def test_a_monitor_that_does_not_ask_for_eras_gets_none(scoring):
    X, y, _, eras = make_data()
    recorder, monitor = Recorder(), ScoringMonitor(scoring=scoring)
    model = ours(split_criterion="era").set_callbacks(recorder, monitor)
    model.fit(X, y, eras=eras)
    assert recorder.of("end", "fit")[0][3] == {}
    assert len(monitor.get_logs().data) == MAX_ITER + 1


def test_routed_eras_reach_the_scorer_that_requests_them():
    X, y, _, eras = make_data()

    def lowest(y_true, y_pred, eras):
        return min(r2_score(y_true[eras == e], y_pred[eras == e]) for e in set(eras))

    with sklearn.config_context(enable_metadata_routing=True):
        asking = make_scorer(lowest).set_score_request(eras=True)
        monitor = ScoringMonitor(scoring={"era": asking, "r2": get_scorer("r2")})
        model = ours(split_criterion="era").set_callbacks(monitor)
        model.fit(X, y, eras=eras)
    staged = list(model.staged_predict(X))
    assert logged(monitor, "era") == [lowest(y, stage, eras) for stage in staged]
    assert logged(monitor, "r2") == [r2_score(y, stage) for stage in staged]


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
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


# Meta-estimators


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


def test_callbacks_of_a_grid_search_follow_iterations():
    X, y, _, eras = make_data()
    recorder = Propagated()
    search = GridSearchCV(ours(), {"max_iter": [2, 3]}, cv=2)
    search.set_callbacks(recorder).fit(X, y, eras=eras)
    parents = [context.parent for context, *_ in recorder.of("end", "iteration")]
    assert len(parents) == 2 * 2 + 2 * 3 + search.best_params_["max_iter"]
    assert {parent.source_task_name for parent in parents} == {
        "candidate-split-evaluation",
        "refit-with-best-params",
    }
    assert recorder.events.count("setup") == recorder.events.count("teardown") == 1
