"""The search by eras, and the estimators that search by themselves."""

import io
import re
import sys
import warnings
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array
from sklearn import config_context, model_selection
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import FitFailedWarning, UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.metrics import (
    get_scorer,
    log_loss,
    make_scorer,
    mean_squared_error,
    r2_score,
)
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneGroupOut
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.data import make_levels
from helpers.grids import from_1_9, slow
from sklearn_era._era_routing import ask
from sklearn_era._progress import Progress
from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.calibration import (
    EraCalibratedClassifier,
    EraConformalClassifier,
    EraConformalRegressor,
)
from sklearn_era.ensemble import BinnedDataset, EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.inspection import era_permutation_importance, era_stability
from sklearn_era.metrics import make_era_scorer
from sklearn_era.model_selection import (
    EraKFold,
    EraSearchCV,
    EraSearchDisplay,
    holdout_curve,
)
from sklearn_era.model_selection import EraWalkForwardSplit as EraWalk
from sklearn_era.model_selection._out_of_era import fit_arguments, fit_rows
from sklearn_era.preprocessing import EraStandardScaler

ALPHAS = {"alpha": [1.0, 100.0]}
MODEL = "histgradientboostingregressor"  # in a pipeline
rng = np.random.default_rng(0)
X, eras = rng.normal(size=(240, 3)), rng.permutation(np.arange(240) % 12)
y = X @ [1.0, -1.0, 0.0] + rng.normal(size=240)
DATA = X, y, eras


def refuse(estimator, X, y):
    raise ValueError("not today")


def named_error(model, X, y):
    return {"error": -mean_squared_error(y, model.predict(X))}


def log_loss_of_doubled(model, X, y):
    """A scorer with other rows in mind than those that it is handed."""
    return -log_loss(y, model.predict_proba(2 * X))


def scores_by_hand(model, X, y, eras, folds):
    """Negative squared errors by era, in the order of the labels."""
    scores = {}
    for train, test in folds:
        predicted = clone(model).fit(X[train], y[train]).predict(X[test])
        for era in np.unique(eras[test]):
            rows = eras[test] == era
            scores[era] = -mean_squared_error(y[test][rows], predicted[rows])
    return np.array([scores[era] for era in sorted(scores)])


def error_by_hand(differences, is_ordered, blocks):
    """The error of the rule: by the matrix of correlations, and by means of blocks."""
    n, residuals = differences.size, differences - differences.mean()
    error = differences.std(ddof=1) / np.sqrt(n)
    if is_ordered:
        r = np.sum(residuals[1:] * residuals[:-1]) / np.sum(residuals**2)
        r = np.clip(r + (1 + 3 * max(r, 0)) / n, 0, 0.95)
        correlations = r ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        of_mean = correlations.sum() / n**2
        error = np.sqrt(np.mean(residuals**2) / (1 - of_mean) * of_mean)
    means = [differences[block].mean() for block in blocks]
    return max(error, np.std(means, ddof=1) / np.sqrt(len(blocks)))


@pytest.mark.parametrize(("params", "folds"), [
    ({}, EraWalk(3, test_size=2)),
    ({"era_order": "ordered", "cv": 2}, EraWalk(2, test_size=3)),
    ({"cv": None}, EraWalk(5, test_size=1)),
    ({"gap": 2}, EraWalk(3, test_size=2, gap=2)),
    ({"era_order": "unordered"}, GroupKFold(3)),
    ({"cv": GroupKFold(4)}, GroupKFold(4)),
])  # fmt: skip
def test_scores_differences_and_choice_are_those_by_hand(params, folds):
    search = EraSearchCV(Ridge(1e4), ALPHAS, **params).fit(X, y, eras=eras)
    parts = list(folds.split(eras, groups=eras))
    expected = [scores_by_hand(Ridge(a), X, y, eras, parts) for a in (1e4, 1.0, 100.0)]
    assert_allclose(search.era_scores_, expected)
    tested = [np.unique(eras[test]) for _, test in parts]
    assert search.era_labels_.tolist() == sorted(np.concatenate(tested))
    results = search.cv_results_
    differences = search.era_scores_ - search.era_scores_[0]
    blocks = [np.searchsorted(search.era_labels_, block) for block in tested]
    is_ordered = search.era_order_ == "ordered"
    errors = [error_by_hand(row, is_ordered, blocks) for row in differences[1:]]
    assert_allclose(results["mean_difference"], differences.mean(axis=1))
    assert_allclose(results["se_difference"], [0, *errors])
    for k, block in enumerate(blocks):
        of_fold = search.era_scores_[:, block].mean(axis=1)
        assert_allclose(results[f"split{k}_test_score"], of_fold)
    assert_allclose(results["mean_era_score"], np.mean(expected, axis=1))
    assert_allclose(results["worst_era_score"], np.min(expected, axis=1))
    assert results["qualifies"].tolist() == [False, True, True]
    assert results["param_alpha"].tolist() == [1e4, 1.0, 100.0]
    assert (search.best_index_, search.best_params_) == (1, {"alpha": 1.0})
    assert search.best_score_ == results["mean_test_score"][1]
    assert search.n_splits_ == len(parts)
    assert (search.predict(X) == Ridge(1.0).fit(X, y).predict(X)).all()
    assert search.score(X, y) == -mean_squared_error(y, search.predict(X))
    assert is_regressor(search)


def test_progress_has_the_time_left_and_changes_nothing(capsys):
    quiet = EraSearchCV(Ridge(), {"alpha": [0.1, 10.0]}).fit(X, y, eras=eras)
    assert not capsys.readouterr().out
    search = clone(quiet).set_params(verbose=1).fit(X, y, eras=eras)
    first, _, last = capsys.readouterr().out.splitlines()
    assert re.search(r"EraSearchCV 1/3 candidates: .*; about \d+ s left", first)
    assert last == "EraSearchCV 3/3 candidates: last {'alpha': 10.0}"
    assert_array_equal(search.era_scores_, quiet.era_scores_)
    assert search.verbose == 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test")
@pytest.mark.parametrize("alphas", [[-1.0, 0.1, 9.0], [0.1, -1.0, 9.0], [0.1, -1.0]])
def test_candidates_that_fail_leave_the_others_with_progress_too(alphas):
    """scikit-learn takes a part of which all fits fail for a search that fails."""
    for rule in ("best", "one_standard_error"):
        quiet = EraSearchCV(Ridge(), {"alpha": alphas}, rule=rule)
        search = clone(quiet).set_params(verbose=1).fit(X, y, eras=eras)
        expected = quiet.fit(X, y, eras=eras)
        assert_array_equal(search.era_scores_, expected.era_scores_)
        assert search.cv_results_["params"] == expected.cv_results_["params"]
        assert np.isnan(search.era_scores_).any()
        assert vars(search).keys() == vars(expected).keys()


@pytest.mark.parametrize("verbose", [0, 1])
def test_callbacks_follow_the_search(verbose):
    pytest.importorskip("sklearn.callback")
    tasks = []

    class Record:
        setup = teardown = on_fit_task_end = lambda *_, **__: None

        def on_fit_task_begin(self, _, context):
            tasks.append(context.task_name)

    search = EraSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, verbose=verbose)
    search.set_callbacks(Record()).fit(X, y, eras=eras)
    counts = Counter(tasks)
    assert counts["candidate-split-evaluation"] == 3 * search.n_splits_
    assert counts["search"] == counts["refit-with-best-params"] == 1


def test_a_terminal_has_a_bar(monkeypatch):
    pytest.importorskip("rich")
    out = io.StringIO()
    out.isatty = lambda: True
    monkeypatch.setattr(sys, "stdout", out)
    with Progress("AutoEra", 1) as progress:
        progress.expect(4)
        progress.step(3, "three")
    assert "AutoEra 3/4 fits: three\n" in out.getvalue()
    assert (progress._bar.tasks[0].completed, progress._bar.tasks[0].total) == (3, 4)


def test_the_plain_model_stays_within_a_standard_error():
    search = EraSearchCV(Ridge(1.0), {"alpha": [1.001, 0.5]}).fit(X, y, eras=eras)
    assert (search.best_index_, search.best_params_) == (0, {"alpha": 1.0})
    search.set_params(rule="best").fit(X, y, eras=eras)
    assert len(search.cv_results_["params"]) == 2  # the plain model is none of them
    assert search.best_index_ == search.cv_results_["mean_test_score"].argmax()


def test_folds_within_eras_choose_as_env_k_folds_and_their_min_max():
    shops = np.array(list("abc" * 80))  # shop c turns the slope of the others
    sales = np.where(shops == "c", -1.0, 1.0) * X[:, 0] + 0.1 * y
    cv, scores = EraKFold(4, shuffle=True, random_state=1), {}
    tested = np.zeros(240)
    for train, test in cv.split(X, groups=shops):
        assert sorted([*train, *test]) == list(range(240))
        assert [np.sum(shops[test] == shop) for shop in "abc"] == [20, 20, 20]
        tested[test] += 1
        for alpha in (1.0, 1e4):
            model = Ridge(alpha).fit(X[train], sales[train])
            for shop in "abc":
                rows = test[shops[test] == shop]
                score = -mean_squared_error(sales[rows], model.predict(X[rows]))
                scores.setdefault(alpha, {}).setdefault(shop, []).append(score)
    assert (tested == 1).all()
    by_era = np.array([[np.mean(x) for x in scores[a].values()] for a in scores])
    for choose_by, chosen in {"mean": 1.0, "worst": 1e4}.items():
        search = EraSearchCV(Ridge(), {"alpha": [1.0, 1e4]}, cv=cv,
                             era_order="unordered", rule="best",
                             choose_by=choose_by)  # fmt: skip
        for routed in (False, True):
            with config_context(enable_metadata_routing=routed):
                search.fit(X, sales, eras=shops)
            assert_allclose(search.era_scores_, by_era)
            assert search.best_params_ == {"alpha": chosen}
    assert (by_era.mean(axis=1).argmax(), by_era.min(axis=1).argmax()) == (0, 1)


def test_folds_within_eras_take_small_eras_and_refuse_only_small_ones():
    labels = [0, 0, 0, 0, 1]
    tested = [test for _, test in EraKFold(4).split(labels, groups=labels)]
    assert sorted(np.concatenate(tested)) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="n_splits=5 is more than the 4 rows of the l"):
        next(EraKFold().split(labels, groups=labels))
    with pytest.raises(ValueError, match="groups is missing"):
        next(EraKFold().split(labels))


@pytest.mark.parametrize("scoring", ["r2", ["r2", "neg_max_error"], None])
def test_the_best_of_folds_of_an_era_each_is_that_of_grid_search(scoring):
    cv, refit = LeaveOneGroupOut(), "r2" if isinstance(scoring, list) else True
    ours = EraSearchCV(Ridge(), ALPHAS, rule="best", cv=cv, scoring=scoring,
                       refit=refit,
                       return_train_score=True).fit(X, y, eras=eras)  # fmt: skip
    theirs = GridSearchCV(
        Ridge(), ALPHAS, cv=cv, scoring=scoring or "neg_mean_squared_error", refit=refit
    ).fit(X, y, groups=eras)
    assert set(theirs.cv_results_) < set(ours.cv_results_)
    for name, values in theirs.cv_results_.items():
        if not name.endswith("_time"):
            assert_array_equal(ours.cv_results_[name], values)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == theirs.best_score_
    assert ours.score(X, y) == theirs.score(X, y)
    assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("method", [
    "predict", "predict_proba", "predict_log_proba", "decision_function",
])  # fmt: skip
def test_predictions_leave_out_the_column_that_the_fit_named(method):
    frame = pd.DataFrame(X, columns=[*"abc"])
    by_week, model = frame.assign(week=eras), LogisticRegression()
    search = EraSearchCV(model, {"C": [0.1]}).fit(by_week, y > 0, eras="week")
    expected = getattr(search.best_estimator_, method)(frame)
    assert_array_equal(getattr(search, method)(by_week), expected)


def test_an_era_of_several_folds_has_the_mean_of_its_scores():
    folds = list(KFold(3).split(X))
    search = EraSearchCV(Ridge(), ALPHAS, cv=folds).fit(X, y, eras=eras)
    of_folds = [scores_by_hand(Ridge(), X, y, eras, [fold]) for fold in folds]
    assert_allclose(search.era_scores_[0], np.mean(of_folds, axis=0))


def test_refit_may_be_a_function_or_none():
    search = EraSearchCV(Ridge(1e4), ALPHAS, refit=lambda results: 2)
    assert search.fit(X, y, eras=eras).best_params_ == {"alpha": 100.0}
    search = EraSearchCV(Ridge(1e4), ALPHAS, refit=False).fit(X, y, eras=eras)
    assert search.best_params_ == {"alpha": 1.0}
    assert not hasattr(search, "predict")
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError, match="score is available only after refitt"):
        search.score(X, y, eras=eras)
    # Another fit is forgotten.
    search.set_params(refit=True).fit(pd.DataFrame(X, columns=[*"abc"]), y, eras=eras)
    search.fit(X, y, eras=eras)
    assert not hasattr(search, "feature_names_in_")
    search.set_params(refit=False).fit(X, y, eras=eras)
    assert not hasattr(search, "best_estimator_")


def test_classes_may_lack_in_a_fold():
    y = np.digitize(DATA[1], [-1, 1]).astype(str)
    y[(y == "2") & (eras < 10)] = "1"  # no class 2 before the last block
    strategies = {"strategy": ["stratified", "most_frequent"]}
    search = EraSearchCV(DummyClassifier(), strategies).fit(X, y, eras=eras)
    assert search.classes_.tolist() == ["0", "1", "2"]
    assert is_classifier(search)
    assert np.isfinite(search.era_scores_).all()
    search = EraSearchCV(LogisticRegression(C=1e-4), {"C": [1.0, 0.1]})
    search.fit(X, y, eras=eras)
    assert set(search.predict(X)) <= set("012")
    assert_allclose(search.predict_proba(X).sum(axis=1), 1.0)
    assert search.decision_function(X).shape == (240, 3)
    train, _ = next(EraWalk(3, test_size=2).split(X, groups=eras))
    model = LogisticRegression(C=1e-4).fit(X[train], y[train])
    first = eras == search.era_labels_[0]
    p = np.c_[model.predict_proba(X[first]), np.zeros(first.sum())]
    expected = -log_loss(y[first], p, labels=list("012"))
    assert search.era_scores_[0, 0] == pytest.approx(expected)


@pytest.mark.parametrize(("params", "tested"), [
    ({}, [7, 8, 9]), ({"cv": 2, "era_order": "unordered"}, [0, 1, *range(4, 10)]),
    ({"cv": EraWalk(3, test_size=2)}, range(6, 10)), ({"gap": 1}, [7, 8, 9]),
    ({"cv": GroupKFold(4)}, [0, 1, *range(4, 10)]),
    ({"cv": list(GroupKFold(4).split(X, groups=eras))}, [0, 1, *range(4, 10)]),
])  # fmt: skip
@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_eras_without_weight_are_not_tested(params, tested, scoring):
    model, weights = LogisticRegression(), 1.0 * ~np.isin(eras, [2, 3, 10, 11])
    search = EraSearchCV(model, {"C": [0.1]}, scoring=scoring, **params)
    given = {"eras": eras, "sample_weight": weights}
    if isinstance(params.get("cv"), EraWalk):  # the last fold tests none
        search.set_params(error_score="raise")
        with pytest.raises(ValueError, match="cv: sample_weight is 0 in all rows that"):
            search.fit(X, y > 0, **given)
        return
    search.fit(X, y > 0, **given)
    assert search.era_labels_.tolist() == [*tested]
    assert np.isfinite(search.era_scores_).all()


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_eras_and_weights_go_to_fit_and_scores(in_pipeline):
    rng = np.random.default_rng(1)
    X, eras = rng.normal(size=(300, 2)), np.repeat(list("abcdef"), 50)
    y, weights = X[:, 0] + rng.normal(size=300), rng.uniform(0, 2, 300)
    model, name = Regressor(max_iter=3, max_leaf_nodes=4), ""
    if in_pipeline:
        model, name = make_pipeline(StandardScaler(), model), MODEL + "__"
    search = EraSearchCV(
        model, {f"{name}split_criterion": ["vrex"]}, era_order="unordered"
    ).fit(X, y, eras=eras, sample_weight=weights)
    other = clone(model).set_params(**{f"{name}split_criterion": "vrex"})
    given = {f"{name}eras": eras, f"{name}sample_weight": weights}
    if search.best_index_ == 1:
        assert (search.predict(X) == other.fit(X, y, **given).predict(X)).all()
    train, test = next(GroupKFold(3).split(eras, groups=eras))
    weights_of_fit = {f"{name}sample_weight": weights[train]}
    model = clone(search.estimator).fit(X[train], y[train], **weights_of_fit)
    rows = test[eras[test] == eras[test][0]]
    squares = (y[rows] - model.predict(X[rows])) ** 2
    expected = -np.average(squares, weights=weights[rows])
    place = search.era_labels_.tolist().index(eras[rows[0]])
    assert search.era_scores_[0, place] == pytest.approx(expected)


AT_ONCE = make_pipeline(StandardScaler(), Ridge())
BY_ERA = make_pipeline(EraStandardScaler(), Ridge())
TREES = Regressor(max_iter=3, split_criterion="era")
NEAREST = KNeighborsRegressor()  # without weights


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize(("plain", "part", "other"), [
    (AT_ONCE, "standardscaler", EraStandardScaler()), (AT_ONCE, "ridge", TREES),
    (BY_ERA, "erastandardscaler", StandardScaler()),
    (BY_ERA, "erastandardscaler", "passthrough"),
    (make_pipeline(StandardScaler(), TREES), MODEL, Ridge()),
    (make_pipeline(EraStandardScaler(), TREES), MODEL, NEAREST),
    (TransformedTargetRegressor(Ridge()), "regressor", BY_ERA),
], ids=lambda x: type(x).__name__)  # fmt: skip
def test_each_candidate_gets_what_its_own_parts_take(plain, part, other, routing):
    frame = pd.DataFrame(X + 5 * eras[:, None], columns=["a", "b", "c"])
    frame["shop"] = np.array(list("abcdefghijkl"))[eras]  # text, which has no order
    given = {"eras": "shop"}
    if not routing and other is not NEAREST:
        given["sample_weight"] = np.linspace(1, 9, 240)
    replaced = clone(plain).set_params(**{part: other})
    known = {"era_order": "unordered", "error_score": "raise"}
    alone = [EraSearchCV(x, {}, rule="best", **known) for x in (plain, replaced)]
    both = EraSearchCV(plain, {part: [other]}, refit=lambda _: 1, **known)
    with config_context(enable_metadata_routing=routing):
        expected = [x.fit(frame, y, **given).era_scores_[0] for x in alone]
        assert_array_equal(both.fit(frame, y, **given).era_scores_, expected)
        assert_array_equal(both.predict(frame), alone[1].predict(frame))
    assert both.best_params_ == {part: other}


def test_rows_of_weight_0_do_not_count_in_scores():
    """A single row with weight has no R²."""
    X, eras = np.arange(24.0)[:, np.newaxis], np.repeat(np.arange(8), 3)
    weight = np.array([1, 1, 0] * 7 + [0, 1, 0])
    search = EraSearchCV(Ridge(), {"alpha": [2.0]}, scoring="r2", cv=2)
    with pytest.warns(UndefinedMetricWarning, match=r"r2 is undefined in 1 era\(s\) "):
        search.fit(X, X[:, 0] % 4, eras=eras, sample_weight=weight)
    assert_array_equal(np.isnan(search.era_scores_), [[False] * 3 + [True]] * 2)


def test_weights_are_for_candidates_that_take_them():
    given, why = {"eras": eras, "sample_weight": np.linspace(1, 9, 240)}, "no weights;"
    warnings.simplefilter("ignore")  # restored after each test
    search = EraSearchCV(AT_ONCE, {"ridge": [NEAREST]})
    with pytest.warns(FitFailedWarning, match=why):
        assert search.fit(X, y, **given).best_index_ == 0
    search = EraSearchCV(clone(AT_ONCE).set_params(ridge=NEAREST), {"ridge": [Ridge()]})
    with pytest.raises(ValueError, match=f"^sample_weight: .* {why}"):
        search.fit(X, y, **given)
    search.set_params(rule="best").fit(X, y, **given)  # the plain model is no candidate
    with pytest.raises(ValueError, match=f"^sample_weight: .* {why}"):
        search.set_params(param_grid={}).fit(X, y, **given)


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("wrap", [
    lambda x: x, lambda x: make_pipeline(StandardScaler(), x),
    TransformedTargetRegressor, EraConformalRegressor,
])  # fmt: skip
def test_rows_are_of_known_eras_if_the_model_asks_for_eras_to_score(wrap, routing):
    X, y, eras = make_levels()
    inner = Regressor(max_iter=3, era_effects="intercept")
    with config_context(enable_metadata_routing=True):
        inner.set_score_request(eras=True)
    model, expected = wrap(inner), []
    name = next(x for x in model.get_params() if x.endswith("era_effects"))
    folds, plain = [*EraKFold(3).split(X, groups=eras)], clone(model)
    plain.set_params(**{name: None})
    for one in (plain, model):
        for train, test in folds:
            fitted = fit_rows(one, X, y, fit_arguments(one, eras, None), train)
            p = ask(fitted, "predict", X[test], None if one is plain else eras[test])
            squares, of_era = (p - y[test]) ** 2, eras[test]
            of_eras = [squares[of_era == x].mean() for x in np.unique(of_era)]
            expected.append(-np.mean(of_eras))
    search = EraSearchCV(plain, {name: ["intercept"]}, cv=folds, error_score="raise")
    with config_context(enable_metadata_routing=routing):
        results = search.fit(X, y, eras=eras).cv_results_
    found = np.column_stack([results[f"split{k}_test_score"] for k in range(3)])
    assert_allclose(found.ravel(), expected)
    assert search.best_params_ == {name: "intercept"}


def test_frozen_models_are_copied_for_each_candidate():
    fitted = Ridge().fit(X, y)
    frozen = FrozenEstimator(fitted)
    seen = vars(frozen).copy()
    alone = EraSearchCV(frozen, {}).fit(X, y, eras=eras)
    assert_array_equal(alone.predict(X), fitted.predict(X))
    assert alone.best_estimator_ is not frozen
    other = FrozenEstimator(Ridge(500.0).fit(X, y))
    tried = EraSearchCV(frozen, {"estimator": [other]}, rule="best")
    assert_array_equal(tried.fit(X, y, eras=eras).predict(X), other.predict(X))
    known = {"eras": eras, "test_eras": [11], "param_name": "estimator"}
    curve = holdout_curve(frozen, X, y, param_range=[other], **known)
    assert curve.test_scores[0] == other.score(X[eras == 11], y[eras == 11])
    assert vars(frozen) == seen


def test_differences_are_drawn_with_their_errors():
    pytest.importorskip("matplotlib").use("Agg")
    search = EraSearchCV(Ridge(1e4), ALPHAS).fit(X, y, eras=eras)
    display, results = EraSearchDisplay.from_search(search), search.cv_results_
    assert_array_equal(display.means, results["mean_difference"][1:])
    assert_array_equal(display.errors, results["se_difference"][1:])
    assert display.names == ["alpha=1.0", "alpha=100.0"]
    assert display.chosen == search.best_index_ - 1
    assert [x.get_text() for x in display.ax_.get_yticklabels()] == display.names
    with pytest.raises(ValueError, match=r"the shapes \(0,\) and \(0,\) and 0 names"):
        EraSearchDisplay(means=[], errors=[], names=[])
    search.set_params(rule="best").fit(X, y, eras=eras)
    with pytest.raises(ValueError, match="no candidate beside the plain model"):
        EraSearchDisplay.from_search(search)


def test_a_candidate_that_cannot_be_fitted_is_none():
    search = EraSearchCV(Ridge(1e4), {"alpha": [-1.0, 1.0]})
    with pytest.warns(FitFailedWarning), pytest.warns(UserWarning, match="non-finite"):
        search.fit(X, y, eras=eras)
    assert search.best_params_ == {"alpha": 1.0}
    assert search.cv_results_["qualifies"].tolist() == [False, False, True]
    assert np.isnan(search.era_scores_[1]).all()
    worst = search.cv_results_["worst_era_score"]
    assert_allclose(worst, [*search.era_scores_.min(axis=1)])
    search.set_params(error_score=-7.0)
    with pytest.warns(FitFailedWarning):
        search.fit(X, y, eras=eras)
    assert (search.era_scores_[1] == -7).all()
    search = EraSearchCV(Ridge(-1.0), ALPHAS)
    message = "The plain model, with which"
    warnings.simplefilter("ignore")  # restored after each test
    with pytest.raises(ValueError, match=message):
        search.fit(X, y, eras=eras)
    with pytest.raises(ValueError, match="alpha"):
        search.set_params(error_score="raise").fit(X, y, eras=eras)


def test_the_best_is_chosen_before_the_number_of_splits_is_kept(monkeypatch):
    """As scikit-learn 1.7 and 1.8 do."""
    select = EraSearchCV._select_best_index

    def select_first(search, *args):
        vars(search).pop("n_splits_", None)
        return select(search, *args)

    monkeypatch.setattr(EraSearchCV, "_select_best_index", select_first)
    search = EraSearchCV(Ridge(1e4), {"alpha": [1.0]}).fit(X, y, eras=eras)
    assert search.best_params_ == {"alpha": 1.0}


@pytest.mark.parametrize(("params", "arguments", "message"), [
    ({}, {"eras": None}, "EraSearchCV needs eras: pass eras=... with one lab"),
    ({}, {"eras": np.zeros(240)}, r"holds 1 label\(s\) \(n_samples=240\)"),
    ({}, {"eras": np.arange(240) % 2}, "holds 2 label.* three or more"),
    ({"scoring": refuse, "error_score": "raise"}, {}, "not today"),
    ({"gap": 1, "cv": GroupKFold(3)}, {}, "gap=1 is for ordered eras and cv as"),
    ({"gap": 1, "era_order": "unordered"}, {}, "gap=1 is for ordered eras"),
    ({"gap": 9}, {}, "12 eras are too few to walk forward"),
    ({"scoring": make_era_scorer(r2_score, aggregation="worst")}, {}, "'worst', a"),
    ({"estimator": Lasso()}, {"sample_weight": np.zeros(3)}, "sample_weight.shape"),
    ({"estimator": KNeighborsRegressor(), "param_grid": {"p": [1]}},
     {"sample_weight": np.ones(240)}, "the fit of KNeighborsRegressor takes no weight"),
    ({"param_grid": {"alfa": [1.0]}}, {}, "Invalid parameter 'alfa'"),
    ({}, {"eras": np.zeros(239)}, "eras has 239 labels, but X has 240 rows"),
    ({}, {"y": np.zeros(3)}, "y has 3 rows, but X has 240"),
    ({"param_grid": [], "rule": "best", "verbose": 1}, {}, "No fits were performed"),
    ({"cv": 1}, {}, "'cv' parameter"),
    ({"gap": -1}, {}, "'gap' parameter"),
    ({"era_order": "time"}, {}, "'era_order' parameter"),
])  # fmt: skip
def test_what_is_wrong_is_said(params, arguments, message):
    rows = {"X": X, "y": y, "eras": eras} | arguments
    with pytest.raises(ValueError, match=message):
        EraSearchCV(Ridge(), ALPHAS).set_params(**params).fit(**rows)


def test_a_fold_of_a_single_class():
    plain = Classifier(max_iter=2)
    warnings.simplefilter("ignore")  # of what else a single class may be to blame
    search = EraSearchCV(plain, {"max_leaf_nodes": [3]})
    search.fit(X, (eras > 5).astype(int), eras=eras)
    assert np.isfinite(search.era_scores_).all()


def test_metadata_are_routed():
    weights, other = np.linspace(1, 2, 240), eras[::-1] % 6
    with config_context(enable_metadata_routing=True):
        model = Ridge(1e4).set_fit_request(sample_weight=True)
        scorer = get_scorer("r2").set_score_request(sample_weight=True)
        search = EraSearchCV(model, ALPHAS, scoring=scorer, cv=GroupKFold(3))
        scores = model_selection.cross_val_score(search, X, y, params={"eras": eras})
        assert np.isfinite(scores).all()
        search.fit(X, y, eras=eras, groups=other, sample_weight=weights)
        ours = search.cv_results_
        search.set_params(scoring=["r2"], refit="r2")
        assert search.fit(X, y, eras=eras).best_params_ == {"alpha": 1.0}
    train, test = next(GroupKFold(3).split(X, groups=other))
    model.fit(X[train], y[train], sample_weight=weights[train])
    of_eras = [test[eras[test] == era] for era in np.unique(eras[test])]
    expected = [model.score(X[i], y[i], sample_weight=weights[i]) for i in of_eras]
    assert ours["split0_test_score"][0] == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("estimator", [Ridge(1e4), Classifier(max_iter=2)])
def test_weights_reach_the_default_scorer(estimator):
    """As without routing, unless the estimator's score is not to have them."""
    weights = np.linspace(1, 99, 240)
    target = X[:, 0] > 0 if is_classifier(estimator) else y
    search = EraSearchCV(estimator, {}, rule="best", cv=2)
    expected = clone(search).fit(X, target, eras=eras, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        inner = clone(estimator).set_fit_request(sample_weight=True)
        search.set_params(estimator=inner)
        search.fit(X, target, eras=eras, sample_weight=weights)
        assert search.best_score_ == expected.best_score_
        inner.set_score_request(sample_weight=False)
        search.fit(X, target, eras=eras, sample_weight=weights)
        assert search.best_score_ != expected.best_score_


def test_predictions_and_scores_know_eras():
    X, y, eras = make_levels()
    X_new, model = X[:32], Regressor(max_iter=5)
    search = EraSearchCV(model, {"era_effects": ["intercept"]}).fit(X, y, eras=eras)
    expected = search.best_estimator_.predict(X_new, eras=eras[:32])
    assert (search.predict(X_new, eras=eras[:32]) == expected).all()
    assert (search.predict(X_new) != expected).any()
    error = -mean_squared_error(y[:32], expected)
    assert search.score(X_new, y[:32], eras=eras[:32]) == error
    scorer = make_era_scorer(mean_squared_error, greater_is_better=False)
    search.set_params(scoring=scorer)
    assert search.fit(X, y, eras=eras).score(X_new, y[:32], eras=eras[:32]) == error
    search.set_params(scoring=named_error, refit="error")
    assert search.fit(X, y, eras=eras).score(X_new, y[:32], eras=eras[:32]) == error
    plain = EraSearchCV(model, {"max_depth": [2]}).fit(X, y, eras=eras)
    assert (plain.predict(X, eras=eras) == plain.predict(X)).all()
    search = EraSearchCV(Ridge(), ALPHAS).fit(X, y, eras=eras)
    with pytest.raises(ValueError, match="eras: the predict of Ridge takes none"):
        search.predict(X, eras=eras)


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", log_loss_of_doubled])
def test_a_model_is_asked_once_for_all_eras_of_a_fold(scoring, monkeypatch):
    asked = []
    for name in ("predict", "predict_proba"):
        respond = getattr(LogisticRegression, name)

        def count(self, X, respond=respond):
            asked.append(len(X))
            return respond(self, X)

        count.__name__ = name
        monkeypatch.setattr(LogisticRegression, name, count)
    search = EraSearchCV(LogisticRegression(), {"C": [0.1]}, scoring=scoring, cv=2)
    search.fit(X, y > 0, eras=eras)
    assert len(asked) == (12 if callable(scoring) else 4)  # of 2 models and 2 folds
    scorer = scoring if callable(scoring) else get_scorer(scoring)
    train, _ = next(EraWalk(2, test_size=3).split(X, groups=eras))
    model = LogisticRegression().fit(X[train], y[train] > 0)
    expected = [scorer(model, X[eras == era], y[eras == era] > 0) for era in (6, 7, 8)]
    assert_allclose(search.era_scores_[0, :3], expected)


def test_sparse_rows_of_any_kind():
    search = EraSearchCV(Ridge(), ALPHAS).fit(X, y, eras=eras)
    sparse = clone(search).fit(coo_array(X), y, eras=eras)
    assert np.allclose(sparse.era_scores_, search.era_scores_)
    # Bins of all rows are no rows to search.
    rows = BinnedDataset.from_arrays(X, y, eras=eras)
    with pytest.raises(TypeError, match="cannot be split or indexed"):
        search.fit(rows, y, eras=eras)


def make_late_columns():
    """Rows of 12 eras; two columns begin in the second half, and one never does."""
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(12), 30)
    X = pd.DataFrame(rng.normal(size=(eras.size, 3)), columns=["a", "b", "late"])
    X.loc[eras < 6, "late"] = np.nan
    X["kind"] = pd.Categorical(np.where(eras < 6, None, rng.choice(["u", "v"], 360)))
    X["never"] = np.nan
    return X, X["a"] + X["late"].fillna(0.0) + 0.1 * rng.normal(size=360), eras


SMALL = {"max_iter": 3, "max_leaf_nodes": 4}


@pytest.mark.parametrize("search", [
    slow(AutoEraRegressor(Regressor(**SMALL))),
    AutoEraRegressor(Regressor(**SMALL), members=["linear", "level", "large"]),
    AutoEraClassifier(Classifier(**SMALL), members=["linear", "leaves_4"]),
    EraSearchCV(Regressor(**SMALL), {"max_depth": [1, 2]}),
    EraSearchCV(EraForestRegressor(3), {"max_depth": [2]}, era_order="unordered"),
])  # fmt: skip
def test_columns_that_begin_later_are_one_warning(search):
    X, y, eras = make_late_columns()
    if is_classifier(search):
        y = y > 0
    names = "'kind', 'late', 'never'"
    if not isinstance(search, EraSearchCV):  # the last fold comes first
        names = "'never', 'kind', 'late'"
    if search.era_order == "unordered":  # each fold has some of the late eras
        names = "'never'"
    message = rf"X: column\(s\) {names} have no value in rows that some fold trains on"
    with pytest.warns(UserWarning, match=message) as caught:
        search.fit(X, y, eras=eras)
    (warning,) = (x for x in caught if "have no value" in str(x.message))
    assert warning.filename == __file__
    # Members of an average that are dropped have no scores in all folds.
    assert np.isfinite(search.era_scores_[[0, -1]]).all()
    predicted = search.predict(X)
    assert np.isfinite(predicted).all()
    unknown = X.assign(kind=pd.Categorical(["unknown"] * y.size))
    assert np.isfinite(search.predict(unknown)).all()
    assert_array_equal(search.predict(X.assign(never=1.0)), predicted)


@pytest.mark.parametrize("fit", [
    EraConformalClassifier(Classifier(**SMALL)).fit,
    EraCalibratedClassifier(Classifier(**SMALL)).fit,
    partial(era_permutation_importance, Classifier(**SMALL), n_repeats=1),
    partial(era_stability, estimator=Classifier(**SMALL), n_repeats=1, alpha=0.999),
], ids=["sets", "calibration", "importance", "stability"])  # fmt: skip
def test_columns_without_a_value_are_one_warning(fit):
    X, y, eras = make_late_columns()
    with pytest.warns(UserWarning, match="'never'.* rows that some fold") as caught:
        fit(X, y > 0, eras=eras)
    (warning,) = (x for x in caught if "have no value" in str(x.message))
    assert warning.filename == __file__


@pytest.mark.slow
def test_fits_in_parallel_are_the_same():
    X, y, eras = make_late_columns()
    search = EraSearchCV(Regressor(**SMALL), {"max_depth": [1, 2]})
    with pytest.warns(UserWarning, match="'kind', 'late', 'never' have no value"):
        expected = search.fit(X, y, eras=eras).era_scores_
    with pytest.warns(UserWarning, match=r"column\(s\) 'never' have no value"):
        search.set_params(n_jobs=2).fit(X, y, eras=eras)
    assert_array_equal(search.era_scores_, expected)


@pytest.mark.parametrize("search", [EraSearchCV, AutoEraRegressor])
def test_eras_may_be_a_column_that_is_no_feature(search):
    frame = pd.DataFrame(X, columns=list("abc"))
    plain = Regressor(max_iter=3, era_effects="intercept")
    grid = ({"max_depth": [2]},) if search is EraSearchCV else ()
    by_labels = search(plain, *grid).fit(frame, y, eras=eras)
    with_column = frame.assign(week=eras)
    by_name = search(plain, *grid).fit(with_column, y, eras="week")
    assert by_name.feature_names_in_.tolist() == list("abc")
    assert_array_equal(by_name.era_scores_, by_labels.era_scores_)
    expected = by_labels.predict(frame, eras=eras)
    assert (by_name.predict(with_column, eras="week") == expected).all()


def make_classes(labels):
    """Eras of which each second one has one class, the first."""
    return np.array(labels)[((eras % 2 == 1) & (X[:, 0] > 0)).astype(int)]


def own_probabilities(model, rows, target):
    """The probability of each row's own class."""
    places = np.searchsorted(model.classes_, target[rows])
    return model.predict_proba(X[rows])[np.arange(rows.size), places]


@pytest.mark.parametrize("labels", [["no", "yes"], slow([0, 1]), slow([False, True])])
@pytest.mark.parametrize(("scoring", "score"), [
    ("neg_log_loss", np.log), ("neg_brier_score", lambda own: -((1 - own) ** 2)),
])  # fmt: skip
def test_probabilities_are_scored_in_eras_that_lack_classes(scoring, score, labels):
    target = make_classes(labels)
    search = EraSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2, scoring=scoring)
    search.fit(X, target, eras=eras)
    train, test = next(EraWalk(2, test_size=3).split(X, groups=eras))
    model = LogisticRegression().fit(X[train], target[train])
    found = score(own_probabilities(model, test, target))
    expected = [found[eras[test] == era].mean() for era in (6, 7, 8)]
    assert np.allclose(search.era_scores_[0, :3], expected)
    rows = np.flatnonzero(eras == 6)
    expected = score(own_probabilities(search, rows, target)).mean()
    assert np.isclose(search.score(X[rows], target[rows]), expected)


@pytest.mark.parametrize(
    "scoring",
    ["roc_auc", pytest.param("d2_log_loss_score", marks=from_1_9), slow("roc_auc_ovr"),
     ["roc_auc"], "f1", "recall", "average_precision", "precision", "jaccard"], ids=str,
)  # fmt: skip
def test_eras_without_a_score_are_named(scoring):
    """Once, also if candidates are fitted one by one, to print lines of progress."""
    given = {"scoring": scoring, "refit": isinstance(scoring, str), "verbose": 1}
    search = EraSearchCV(LogisticRegression(), {"C": [0.1]}, **given)
    told = r"in 3 era\(s\) \(6, 8, 10\)"
    with pytest.warns(UndefinedMetricWarning, match=told) as caught:
        search.fit(X, make_classes([0, 1]), eras=eras)
    assert sum("in 3 era" in str(x.message) for x in caught) == 1
    table = search.era_scores_
    table = table["roc_auc"] if isinstance(table, dict) else table
    assert np.isnan(table).tolist() == 2 * [3 * [True, False]]


def fails_in_era_8(y, predicted):
    if y.size == 20 and (y == DATA[1][eras == 8]).all():
        raise ValueError("not today")
    return -mean_squared_error(y, predicted)


def score_named(model, X, y):
    return {"error": fails_in_era_8(y, model.predict(X))}


@pytest.mark.parametrize(("scoring", "refit"), [
    (make_scorer(fails_in_era_8), True), (make_scorer(partial(fails_in_era_8)), True),
    ({"error": make_scorer(fails_in_era_8)}, "error"), (score_named, "error"),
], ids=["scorer", "partial", "several", "function"])  # fmt: skip
def test_errors_of_own_scorers_are_told(scoring, refit):
    search = EraSearchCV(Ridge(), ALPHAS, scoring=scoring, refit=refit, cv=2)
    told = r"undefined in 1 era\(s\) \(8\), .* The first error: not today"
    with pytest.warns(UndefinedMetricWarning, match=told):
        search.fit(X, y, eras=eras)
    with pytest.raises(ValueError, match="not today"):
        search.set_params(error_score="raise").fit(X, y, eras=eras)
    if callable(scoring) and refit is True:
        given = {"eras": eras, "test_eras": [8, 9, 10, 11], "scoring": scoring}
        told = f"scoring: fails_in_era_8 is {told}"
        with pytest.warns(UndefinedMetricWarning, match=told):
            holdout_curve(Ridge(), X, y, param_range=[8], **given)


@pytest.mark.filterwarnings("ignore:Scoring failed", "ignore:One or more of the test")
@pytest.mark.parametrize(("rule", "message"), [
    ("one_standard_error", "The plain model.* fails in fold.s. 1, 2, 3 of 3;"),
    ("best", "No candidate can be fitted and scored in all folds")])  # fmt: skip
def test_a_score_that_no_era_has_is_refused(rule, message):
    """The positive class of text is not known."""
    search = EraSearchCV(LogisticRegression(), {"C": [1.0]}, scoring="f1", rule=rule)
    with pytest.raises(ValueError, match=message):
        search.fit(X, make_classes(["no", "yes"]), eras=eras)


@pytest.mark.filterwarnings("ignore:scoring. roc", "ignore:One or more of the test")
@pytest.mark.parametrize("error_score", [np.nan, "raise"])
@pytest.mark.parametrize("rule", ["best", "one_standard_error"])
def test_a_score_that_is_undefined_in_a_fold_did_not_fail(rule, error_score):
    """The first era has a class of its own: no other has a score of all classes."""
    target = np.where(X[:, 0] > 0, "a", "b")
    target[(eras == 0) & (X[:, 1] > 0)] = "c"
    given = {"rule": rule, "error_score": error_score, "scoring": "roc_auc_ovr"}
    search = EraSearchCV(LogisticRegression(), {"C": [1.0]}, **given)
    told = (
        r"in all folds: the score is undefined in every era of fold\(s\) 1, 2.* of \d, "
        r"of which some lack the class\(es\) c; merge eras, or pass a scoring"
    )
    with pytest.raises(ValueError, match=told) as caught:
        search.fit(X, target, eras=eras)
    assert "error_score" not in str(caught.value)
