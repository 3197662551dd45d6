"""Scorers that are handed eras, alone, in searches and in early stopping."""

import inspect
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context, metrics
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from helpers.data import correlation, make_shifting
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.metrics import EraScorer, era_scores, make_era_scorer
from sklearn_era.numerai.metrics import numerai_corr
from sklearn_era.preprocessing import EraStandardScaler

AGGREGATIONS = ["mean", "std", "sharpe", "worst", "max_drawdown"]


@pytest.mark.parametrize("aggregation", [*AGGREGATIONS, np.median])
@pytest.mark.parametrize("metric", [r2_score, mean_squared_error, numerai_corr])
def test_scorer_is_signed_so_that_greater_is_better(aggregation, metric):
    if metric is mean_squared_error and aggregation in ("sharpe", "max_drawdown"):
        return
    X, y, eras = make_shifting()
    model = Ridge().fit(X, y)
    scores = era_scores(y, model.predict(X), eras=eras, metric=metric)
    is_score = metric is not mean_squared_error
    is_score = is_score and aggregation not in ("std", "max_drawdown")
    value = scores.aggregate(aggregation) * (1 if is_score else -1)
    scorer = make_era_scorer(metric, aggregation=aggregation)
    assert scorer(model, X, y, eras=eras) == value


def test_scorer_calls_the_response_method_and_finds_the_positive_class():
    X, y, eras = make_shifting()
    classes = np.where(y > 0, "yes", "no")
    model = LogisticRegression().fit(X, classes)
    for pos_label, scored in zip(("no", "yes"), model.predict_proba(X).T, strict=True):
        of = {"metric": metrics.average_precision_score, "pos_label": pos_label}
        scorer = make_era_scorer(response_method="predict_proba", **of)
        expected = era_scores(classes, scored, eras=eras, **of).mean()
        assert_allclose(scorer(model, X, classes, eras=eras), expected)


def test_scorer_survives_copies():
    X, y, eras = make_shifting()
    model = Ridge().fit(X, y)
    scorer = make_era_scorer(mean_squared_error, eras="week", aggregation="worst")
    expected = scorer(model, X, y, eras=eras)
    assert isinstance(scorer, EraScorer)
    booster = Regressor(scoring=scorer)
    for other in (pickle.loads(pickle.dumps(scorer)), clone(booster).scoring):
        assert (other(model, X, y, eras=eras), repr(other)) == (expected, repr(scorer))
    assert repr(scorer) == (
        "make_era_scorer(mean_squared_error, eras='week', aggregation='worst', "
        "greater_is_better=False, undefined='raise', response_method='predict')"
    )
    scorer = make_era_scorer(r2_score, aggregation=np.median)
    assert "aggregation=median" in repr(scorer)


def test_cross_validate_hands_eras_and_weights_of_the_test_rows():
    X, y, eras = make_shifting()
    weight, cv = np.random.default_rng(1).uniform(1, 2, y.size), GroupKFold(3)
    scoring = {
        "worst": make_era_scorer(r2_score, aggregation="worst"),
        "weighted": make_era_scorer(r2_score), "pooled": metrics.make_scorer(r2_score),
    }  # fmt: skip
    requests = scoring["worst"].get_metadata_routing().score.requests
    assert (requests["eras"], requests["sample_weight"]) == (True, None)
    with config_context(enable_metadata_routing=True):
        for name, scorer in scoring.items():
            scorer.set_score_request(sample_weight=name == "weighted")
        model = Ridge().set_fit_request(sample_weight=True)
        params = {"eras": eras, "groups": eras, "sample_weight": weight}
        options = {"scoring": scoring, "params": params, "error_score": "raise"}
        result = cross_validate(model, X, y, cv=cv, **options)
    for fold, (train, test) in enumerate(cv.split(X, groups=eras)):
        model = Ridge().fit(X[train], y[train], weight[train])
        of, predicted = {"eras": eras[test], "metric": r2_score}, model.predict(X[test])
        scores = era_scores(y[test], predicted, **of)
        assert result["test_worst"][fold] == scores.worst()
        weighted = era_scores(y[test], predicted, sample_weight=weight[test], **of)
        assert result["test_weighted"][fold] == weighted.mean()
        assert result["test_pooled"][fold] == r2_score(y[test], predicted)


def test_scorer_without_eras_says_what_to_do():
    X, y, _ = make_shifting()
    scorer = make_era_scorer(r2_score)
    with pytest.raises(ValueError, match=r"enable_metadata_routing=True.*pass eras to"):
        scorer(Ridge().fit(X, y), X, y)
    search = GridSearchCV(Ridge(), {"alpha": [1]}, scoring=scorer, error_score="raise")
    with pytest.raises(ValueError, match="enable metadata routing"):
        search.fit(X, y)


def drop_week(X):
    return X.drop(columns="week")


@pytest.mark.parametrize("routing", [False, True])
def test_eras_may_be_a_column_wherever_nothing_is_handed_over(routing):
    X, y, eras = make_shifting()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(week=eras)
    model = make_pipeline(FunctionTransformer(drop_week), Ridge())
    of = {"metric": r2_score, "aggregation": "worst"}
    scorer, plain = make_era_scorer(eras="week", **of), make_era_scorer(**of)
    cv = GroupKFold(3)
    with config_context(enable_metadata_routing=routing):
        groups = {"params": {"groups": eras}} if routing else {"groups": eras}
        result = cross_validate(model, frame, y, cv=cv, scoring=scorer, **groups)
        search = GridSearchCV(model, {"ridge__alpha": [1.0]}, cv=cv, scoring=scorer)
        search.fit(frame, y, groups=eras)
        fitted = search.best_estimator_
        bound = partial(plain, eras=eras)
        options = {"n_repeats": 2, "random_state": 0}
        by_name, by_array = (
            permutation_importance(fitted, frame, y, scoring=scoring, **options)
            for scoring in (scorer, bound)
        )
    for fold, (train, test) in enumerate(cv.split(X, groups=eras)):
        predicted = Ridge().fit(X[train], y[train]).predict(X[test])
        scores = era_scores(y[test], predicted, eras=eras[test], metric=r2_score)
        score = result["test_score"][fold]
        assert_allclose(score, scores.worst())
        assert search.cv_results_[f"split{fold}_test_score"] == score
    assert by_name.importances_mean[0] > 0.1
    assert_array_equal(by_name.importances[:3], by_array.importances[:3])
    assert_array_equal(by_array.importances[3], 0)  # the model does not read it
    with pytest.raises(ValueError, match="eras='week' names a column, but X is"):
        scorer(Ridge().fit(X, y), X, y)


@pytest.mark.parametrize("kind", ["column", "classes", "transformer"])
def test_a_scorer_scores_alone_as_among_others(kind):
    X, y, eras = make_shifting()
    model, metric, asked, name = Ridge(), r2_score, "predict", None
    if kind == "column":
        X, name = pd.DataFrame(X, columns=[*"abc"]).assign(week=eras), "week"
        model = make_pipeline(FunctionTransformer(drop_week), Ridge())
    elif kind == "classes":
        y, metric = (y > 0) & (eras != eras[0]), metrics.log_loss
        model, asked = LogisticRegression(), "predict_proba"
    else:
        model = make_pipeline(EraStandardScaler(smooth=0), Ridge())
    scorer = make_era_scorer(metric, eras=name, response_method=asked)
    other = metrics.make_scorer(metric, response_method=asked)
    several = {"before": other, "era": scorer, "after": other}
    cv = GroupKFold(3)
    with config_context(enable_metadata_routing=True):
        known = {"groups": eras} | ({} if name else {"eras": eras})
        given = {"cv": cv, "params": known, "error_score": "raise"}
        found = cross_validate(model, X, y, scoring=several, **given)
        single = cross_val_score(model, X, y, scoring=scorer, **given)
        search = GridSearchCV(model, {}, cv=cv, scoring=several, refit="era")
        search.fit(X, y, **known)
        for fold, (train, test) in enumerate(cv.split(X, groups=eras)):
            parts = [(X.loc if name else X)[rows] for rows in (train, test)]
            own = {"eras": eras[train]} if kind == "transformer" else {}
            fitted = clone(model).fit(parts[0], y[train], **own)
            expected = scorer(fitted, parts[1], y[test], eras=name or eras[test])
            assert_allclose(found["test_era"][fold], expected)
            assert single[fold] == found["test_era"][fold]
            assert search.cv_results_[f"split{fold}_test_era"] == single[fold]
    assert_array_equal(found["test_after"], found["test_before"])
    if name:
        options = {"scoring": several, "n_repeats": 2, "random_state": 0}
        found = permutation_importance(fitted, X, y, **options)["era"].importances
        options["scoring"] = scorer
        alone = permutation_importance(fitted, X, y, **options).importances
        assert_array_equal(found, alone)


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_early_stopping_scores_by_era(routing, weighted):
    X, y, eras = make_shifting()
    X_val, y_val, eras_val = make_shifting(90, n_eras=3, seed=1)
    fit = {"eras": eras, "X_val": X_val, "y_val": y_val, "eras_val": eras_val}
    if weighted:
        fit["sample_weight"] = np.linspace(1, 2, y.size)
        fit["sample_weight_val"] = np.linspace(1, 2, y_val.size)
    scorer = make_era_scorer(r2_score, aggregation="worst")
    parameters = {"split_criterion": "era", "max_iter": 6, "min_samples_leaf": 3}
    model = Regressor(early_stopping=True, scoring=scorer, **parameters)
    with config_context(enable_metadata_routing=routing):
        model.fit(X, y, **fit)
    fit |= {"X": X, "y": y}
    for end, recorded in (("", model.train_score_), ("_val", model.validation_score_)):
        weight = fit.get("sample_weight" + end)
        of = {"eras": fit["eras" + end], "sample_weight": weight}
        expected = [
            era_scores(fit["y" + end], predicted, metric=r2_score, **of).worst()
            for predicted in model.staged_predict(fit["X" + end])
        ]
        assert_allclose(recorded[1:], expected)


def test_early_stopping_of_a_classifier_scores_probabilities():
    X, y, eras = make_shifting()
    classes = np.where(y > 0, "yes", "no")
    of = {"aggregation": "worst", "response_method": "predict_proba"}
    scorer = make_era_scorer(metrics.roc_auc_score, **of)
    of = {"early_stopping": True, "validation_fraction": None, "max_iter": 3}
    model = Classifier(scoring=scorer, **of)
    with config_context(enable_metadata_routing=True):
        model.fit(X, classes, eras=eras)
        last = scorer(model, X, classes, eras=eras)
    assert model.train_score_[0] == 0.5
    assert_allclose(model.train_score_[-1], last)


@pytest.mark.parametrize(
    "method", ["predict_proba", ["predict_proba"], ("decide", "predict_proba")]
)
def test_probabilities_of_an_era_of_one_class(method):
    X, y, eras = make_shifting()
    target = np.where((y > 0) & (eras != eras[0]), "yes", "no")
    model = LogisticRegression().fit(X, target)
    scorer = make_era_scorer(metrics.log_loss, response_method=method)
    p = model.predict_proba(X)[np.arange(y.size), (target == "yes").astype(int)]
    expected = np.mean([np.log(p[eras == era]).mean() for era in np.unique(eras)])
    assert np.isclose(scorer(model, X, target, eras=eras), expected)
    # One class more, that the model does not know, has the probability 0.
    target[eras == eras[0]] = "may"
    scores = [
        metrics.log_loss(
            target[eras == era],
            np.insert(model.predict_proba(X[eras == era]), 0, 0.0, axis=1),
            labels=["may", "no", "yes"],
        )
        for era in np.unique(eras)
    ]
    assert np.isclose(-scorer(model, X, target, eras=eras), np.mean(scores))


def test_the_positive_class_of_probabilities_is_that_of_the_model():
    """Also if all rows to score are of one class."""
    X, y, eras = make_shifting()
    target = np.where((y > 0) & (eras != eras[0]), 2, 1)
    model = LogisticRegression().fit(X, target)
    losses = (model.predict_proba(X)[:, 1] - (target == 2)) ** 2
    of = {"response_method": "predict_proba"}
    scorer = make_era_scorer(metrics.brier_score_loss, **of)
    for kept in ([*set(eras)], eras[:1]):
        expected = np.mean([losses[eras == era].mean() for era in kept])
        rows = np.isin(eras, kept)
        score = scorer(model, X[rows], target[rows], eras=eras[rows])
        assert_allclose(-score, expected)


def test_arguments_of_make_era_scorer_are_checked():
    for name, value in (("aggregation", "min"), ("undefined", np.nan)):
        with pytest.raises(ValueError, match=f"'{name}' parameter"):
            make_era_scorer(r2_score, **{name: value})
    for metric in (lambda y, y_pred, eras: 1.0, lambda y, y_pred, *, eras="all": 1.0):
        with pytest.raises(ValueError, match=r"needs a parameter eras, but .* by era"):
            make_era_scorer(metric)
    X, y, eras = make_shifting()
    with pytest.raises(ValueError, match="no signature found"):
        inspect.signature(max)
    scorer = make_era_scorer(max, greater_is_better=True)  # of tuples here
    model = Ridge().fit(X, y)
    with pytest.raises(ValueError, match="metric max failed in era w00"):
        scorer(model, X, y, eras=eras)


@pytest.mark.parametrize("aggregation", ["mean", "sharpe"])
def test_early_stopping_by_a_metric_undefined_for_constants(aggregation):
    """The first model scored is a constant."""
    X, y, eras = make_shifting()
    of = {"aggregation": aggregation, "greater_is_better": True}
    scorer = make_era_scorer(correlation, **of)
    options = {"validation_fraction": 2, "era_order": "ordered"}
    model = Regressor(early_stopping=True, scoring=scorer, **options)
    message = (
        r"in 4 of 4 eras \(w00, w01, w02, w03\).* undefined .*'omit'.* The scorer "
        r"of correlation got 160 rows of 4 era\(s\), from w00 to w03. In early "
        "stopping these are the rows held out, or rows that are trained on"
    )
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, eras=eras)
    # The advice is right.
    scorer = make_era_scorer(correlation, **of, undefined=0.0)
    model.set_params(scoring=scorer, max_iter=3).fit(X, y, eras=eras)
    assert model.train_score_[0] == model.validation_score_[0] == 0
    assert np.all(model.train_score_[1:] > 0)


def test_the_column_of_eras_is_kept_from_a_model_that_was_fitted_without_it():
    X, y, eras = make_shifting()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(week=eras)
    scorer = make_era_scorer(r2_score, eras="week", aggregation="worst")
    model = Regressor(split_criterion="era", max_iter=3)
    search = GridSearchCV(model, {"max_iter": [3]}, scoring=scorer, cv=GroupKFold(3))
    search.fit(frame, y, groups=eras, eras="week")
    fitted = model.fit(X, y, eras=eras)
    scores = era_scores(y, fitted.predict(X), eras=eras, metric=r2_score)
    assert scorer(search.best_estimator_, frame, y) == scores.worst()
    assert scorer(fitted, X, y, eras=eras) == scores.worst()
    assert np.isfinite(search.best_score_)


@pytest.mark.parametrize("metric", [metrics.roc_auc_score, metrics.f1_score])
def test_eras_without_a_score_are_named_once(metric):
    X, eras = np.arange(12.0)[:, np.newaxis], np.repeat([*"abc"], 4)
    y = np.array([0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1])
    model, given = LogisticRegression().fit(X, y), {"eras": eras}
    with pytest.warns(
        UndefinedMetricWarning, match=r"1 of 3 eras \(b\), left"
    ) as caught:
        make_era_scorer(metric, undefined="omit")(model, X, y, **given)
    assert len(caught) == 1
    with pytest.raises(ValueError, match=r"1 of 3 eras \(b\)\. Drop"):
        make_era_scorer(metric)(model, X, y, **given)
    make_era_scorer(metric, undefined=0.5)(model, X, y, **given)
