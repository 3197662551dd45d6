"""Predictions and scores for rows of eras that were trained on."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, cross_validate

from helpers.data import make_data
from helpers.estimators import ours
from sklearn_era.effects import Intercepts
from sklearn_era.ensemble._boosters.known_eras import guess_labels

EFFECTS = {"era_effects": Intercepts("mean")}
TARGETS = ["real", "count", "binary", "multiclass"]
each_target = pytest.mark.parametrize("target", TARGETS)


def problem(target):
    """A fitted model whose eras have levels of their own, X, y, weights and eras."""
    X, y, weights, eras = make_data(target)
    y = np.where(eras == 1, "up", y) if target == "binary" else y
    y = y + 2 * eras if target in ("real", "count") else y
    params = {"loss": "poisson"} if target == "count" else {}
    model = ours("real" if target == "count" else target, **EFFECTS, **params)
    return model.fit(X, y, eras=eras), X, y, weights, eras


@each_target
def test_stages_have_the_last_intercepts(target):
    model, X, _, _, eras = problem(target)
    eras = np.where(eras == 3, 99, eras)  # which is not known
    levels = model.era_intercepts_
    forecast = np.mean(list(levels.values()), axis=0)
    own = [np.atleast_1d(levels.get(era, forecast) - forecast) for era in eras.tolist()]
    raw = [stage + np.array(own) for stage in model._staged_raw_predict(X)]
    of_classes = ("predict_proba", "decision_function") * is_classifier(model)
    for name in ("predict", *of_classes):
        stages = list(getattr(model, f"staged_{name}")(X, eras=eras))
        whole = getattr(model, name)(X, eras=eras)
        assert len(stages) == model.n_iter_
        assert np.array_equal(stages[-1], whole)
        assert not np.array_equal(whole, getattr(model, name)(X))
        for stage, of_stage in zip(stages, raw, strict=True):
            expected = of_stage
            if not is_classifier(model):
                expected = model._loss.link.inverse(of_stage)
            elif name != "decision_function":
                expected = model._loss.predict_proba(of_stage)
            if name == "predict" and is_classifier(model):
                expected = model.classes_[expected.argmax(axis=1)]
            if expected.dtype.kind == "f":
                assert stage == pytest.approx(expected.reshape(stage.shape))
            else:
                assert np.array_equal(stage, expected)
    # Wrong labels are refused before the first stage.
    with pytest.raises(ValueError, match="eras has 1 labels, but X has 400 rows"):
        model.staged_predict(X, eras=[0])


@each_target
def test_score_is_that_of_the_predictions(target):
    model, X, y, weights, eras = problem(target)
    metric = accuracy_score if is_classifier(model) else r2_score
    for given in (None, weights):
        expected = metric(y, model.predict(X, eras=eras), sample_weight=given)
        assert model.score(X, y, given, eras=eras) == expected
        forecast = metric(y, model.predict(X), sample_weight=given)
        assert model.score(X, y, given) == forecast
    assert model.score(X, y, eras=eras) != model.score(X, y)
    with pytest.raises(ValueError, match="needs the intercepts of a fit with era_eff"):
        clone(model).set_params(era_effects=None).fit(X, y).score(X, y, eras=eras)


@pytest.mark.parametrize("is_asked_for", [None, False, True])
def test_eras_are_routed_to_score_if_asked_for(is_asked_for):
    model, X, y, _, eras = problem("real")
    cv = KFold(3, shuffle=True, random_state=0)
    with config_context(enable_metadata_routing=True):
        if is_asked_for is not None:
            model.set_score_request(eras=is_asked_for)
        result = cross_validate(model, X, y, cv=cv, params={"eras": eras})
    for (train, test), score in zip(cv.split(X), result["test_score"], strict=True):
        fitted = clone(model).fit(X[train], y[train], eras=eras[train])
        given = {"eras": eras[test]} if is_asked_for else {}
        assert score == fitted.score(X[test], y[test], **given)


@pytest.mark.parametrize("params", [EFFECTS, {}], ids=["intercepts", ""])
def test_early_stopping_scores_the_same_whether_score_asks_for_eras(params):
    X, y, _, eras = make_data()
    params = {"scoring": None, "validation_eras": None, **params}
    params["early_stopping"] = True
    model = ours(**params).fit(X, y + 2 * eras, eras=eras)
    with config_context(enable_metadata_routing=True):
        other = ours(**params).set_score_request(eras=True)
        other.fit(X, y + 2 * eras, eras=eras)
    assert np.array_equal(other.train_score_, model.train_score_)
    assert np.array_equal(other.validation_score_, model.validation_score_)


CITIES = ["Boston", "Denver", "New York"]
WEEKS = [f"week{i:02}" for i in range(1, 53)]
HOSPITALS = [f"hospital {letter}" for letter in "ABC"]


@pytest.mark.parametrize(("label", "known", "guess"), [
    ("Bostn", CITIES, "Boston"), ("BOSTON", CITIES, "Boston"),
    ("new york", CITIES, "New York"), ("Dallas", CITIES, None),
    ("Newark", CITIES, None), ("week 9", WEEKS, "week09"), ("weeek12", WEEKS, "week12"),
    ("week53", WEEKS, None), ("2024-7", ["2024-06", "2024-07"], "2024-07"),
    ("2024-08", ["2024-06", "2024-07"], None), ("0575", ["0573", "0574"], None),
    ("2024-W9", ["2023-W09", "2024-W09"], "2024-W09"),
    ("hospitl A", HOSPITALS, "hospital A"), ("hospital D", HOSPITALS, None),
    ("hospital a", HOSPITALS, "hospital A"), ("", CITIES, None),
])  # fmt: skip
def test_a_misspelt_label_is_guessed_at_and_a_new_one_is_not(label, known, guess):
    assert guess_labels([label], known) == ({} if guess is None else {label: guess})


def test_misspelt_labels_are_warned_of_and_get_the_forecast():
    X, y, _, eras = make_data()
    names = np.array(["Austin", *CITIES])
    model = ours(**EFFECTS).fit(X, y + 2 * eras, eras=names[eras])
    texts = names[eras].astype(object)
    texts[eras == 1] = "Bostn"
    message = r"^eras holds labels .* forecast: 'Bostn' \(was 'Boston' meant\?\)\. Pass"
    for method in (model.staged_predict, model.predict):
        with pytest.warns(UserWarning, match=message) as caught:
            predicted = method(X, eras=texts)
        assert [warning.filename for warning in caught] == [__file__]
    known = model.predict(X, eras=names[eras])
    assert np.array_equal(predicted, np.where(eras == 1, model.predict(X), known))
    assert not np.array_equal(predicted, known)
    model.predict(X, eras=np.where(texts == "Bostn", "Dallas", texts))  # no warning
