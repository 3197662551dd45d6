"""Just train twice: both fits by hand, what they are handed, and what they refuse."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context, ensemble
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.ensemble import HistGradientBoostingClassifier as StockClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from helpers.data import make_data
from helpers.estimators import ours
from helpers.grids import from_1_9, on_grid
from helpers.trees import assert_same_model
from sklearn_era.criteria import Era
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble import JustTrainTwice
from sklearn_era.preprocessing import EraStandardScaler


@on_grid("target weighted", ["binary", "multiclass"], [False, True], every=2)
def test_both_fits_are_those_by_hand(target, weighted):
    X, y, weights, eras = make_data(target)
    estimator = ours(target, max_iter=15, split_criterion=Era(-1.0))
    given = weights if weighted else None
    model = JustTrainTwice(estimator, identification_iterations=3, upweight=4)
    assert model.fit(X, y, given, eras=eras) is model
    first = clone(estimator).set_params(max_iter=3).fit(X, y, given, eras=eras)
    assert_same_model(model.identification_estimator_, first, X)
    is_wrong = first.predict(X) != y
    assert np.array_equal(model.is_upweighted_, is_wrong)
    assert 0 < is_wrong.sum() < y.size
    heavier = np.where(is_wrong, 4.0, 1.0) * (weights if weighted else 1)
    second = clone(estimator).fit(X, y, heavier, eras=eras)
    assert_same_model(model.estimator_, second, X)
    assert np.array_equal(model.classes_, np.unique(y))
    assert model.n_features_in_ == 5
    for method in ("predict", "predict_proba", "decision_function"):
        assert np.array_equal(getattr(model, method)(X), getattr(second, method)(X))
    assert model.score(X, y) == second.score(X, y)
    assert not hasattr(estimator, "classes_")
    copied = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copied.predict(X), model.predict(X))


def test_another_first_classifier():
    X, y, *_ = make_data("binary")
    stump = DecisionTreeClassifier(max_depth=1)
    model = JustTrainTwice(ours("binary"), identification_estimator=stump).fit(X, y)
    assert model.identification_estimator_.get_depth() == 1
    assert np.array_equal(model.is_upweighted_, stump.fit(X, y).predict(X) != y)
    # Without weights of rows it need not take any.
    neighbours = KNeighborsClassifier()
    model.set_params(identification_estimator=neighbours).fit(np.nan_to_num(X), y)
    with pytest.raises(ValueError, match=r"^identification_estimator: the fit of KNei"):
        model.fit(np.nan_to_num(X), y, np.ones(y.size))


@pytest.mark.parametrize(("estimator", "name", "n_iter"), [
    (Classifier(max_iter=20), "max_iter", 10),
    (Classifier(max_iter=4), "max_iter", 4),
    (StockClassifier(max_iter=20), "max_iter", 10),
    (ensemble.GradientBoostingClassifier(n_estimators=20), "n_estimators", 10),
    (AdaBoostClassifier(n_estimators=20), "n_estimators", 10),
    (MLPClassifier((2,), tol=1.0, random_state=0), "max_iter", 10),
    (make_pipeline(StandardScaler(), Classifier(max_iter=20)),
     "histgradientboostingclassifier__max_iter", 10),
    (RandomForestClassifier(20, random_state=3), "n_estimators", 20),
    (LogisticRegression(max_iter=150), "max_iter", 150),
    (make_pipeline(LogisticRegression(max_iter=150)),
     "logisticregression__max_iter", 150),
])  # fmt: skip
def test_first_fit_is_short_where_it_goes_in_steps(estimator, name, n_iter):
    X, y, *_ = make_data("binary")
    model = JustTrainTwice(estimator).fit(np.nan_to_num(X), y)
    assert model.is_upweighted_.any()
    given = estimator.get_params()[name]
    assert model.identification_estimator_.get_params()[name] == n_iter
    assert model.estimator_.get_params()[name] == given


@from_1_9
def test_first_fit_without_an_error_is_warned_of():
    X, y, *_ = make_data("binary")
    tree = DecisionTreeClassifier(random_state=0)
    model = JustTrainTwice(tree)
    with pytest.warns(UserWarning, match="^The first classifier is right on all rows,"):
        model.fit(X, y)
    assert not model.is_upweighted_.any()
    assert np.array_equal(model.predict(X), tree.fit(X, y).predict(X))


@pytest.fixture(params=[False, True], ids=["plain fit params", "metadata routing"])
def routing(request):
    with config_context(enable_metadata_routing=request.param):
        yield request.param


def test_eras_and_weights_reach_both_fits(routing):
    X, y, weights, eras = make_data("binary")
    estimator = ours("binary", split_criterion="directional")
    if routing:
        estimator.set_fit_request(sample_weight=True)
    model = JustTrainTwice(estimator, identification_iterations=2)
    model.fit(X, y, weights, eras=eras)
    with config_context(enable_metadata_routing=False):
        expected = JustTrainTwice(clone(estimator), identification_iterations=2)
        expected.fit(X, y, weights, eras=eras)
    for name in ("identification_estimator_", "estimator_"):
        assert_same_model(getattr(model, name), getattr(expected, name), X)
    with pytest.raises(ValueError, match="needs eras: pass"):
        model.fit(X, y)


def test_pipelines(routing):
    X, y, weights, eras = make_data("binary")
    last = ours("binary", split_criterion="directional")
    scaler, name = StandardScaler(), "histgradientboostingclassifier__eras"
    if routing:
        last.set_fit_request(sample_weight=True)
        scaler.set_fit_request(sample_weight=False)
        name = "eras"
    model = JustTrainTwice(make_pipeline(scaler, last), identification_iterations=2)
    model.fit(X, y, weights, **{name: eras})
    scaled = StandardScaler().fit_transform(X)
    with config_context(enable_metadata_routing=False):
        expected = JustTrainTwice(clone(last), identification_iterations=2)
        expected.fit(scaled, y, weights, eras=eras)
    assert np.array_equal(model.is_upweighted_, expected.is_upweighted_)
    assert np.array_equal(model.predict_proba(X), expected.predict_proba(scaled))
    # And within one.
    outer = make_pipeline(StandardScaler(), expected)
    outer.fit(X, y, **{"eras" if routing else "justtraintwice__eras": eras})
    assert outer.score(X, y) > 0.7


def test_weights_that_cannot_be_passed_are_told_of(routing):
    X, y, *_ = make_data("binary")
    X, neighbours = np.nan_to_num(X), KNeighborsClassifier()
    for estimator in (neighbours, make_pipeline(StandardScaler(), neighbours)):
        with pytest.raises(ValueError, match=r"^estimator: the fit of .* takes no wei"):
            JustTrainTwice(estimator).fit(X, y)
    if routing:  # which passes on weights of the user, and of pipelines, by request
        plain = LogisticRegression()
        for estimator, weights in (
            (plain, np.ones(y.size)), (make_pipeline(plain), None),
            (LogisticRegression().set_fit_request(sample_weight=False), None),
        ):  # fmt: skip
            message = r"does not request sample_weight: set_fit_request\(sample_wei"
            if hasattr(estimator, "steps"):
                message += r"ght=True\) of the last step, and False of others, with"
            with pytest.raises(ValueError, match=message):
                JustTrainTwice(estimator).fit(X, y, weights)
        estimator = LogisticRegression().set_fit_request(sample_weight=True)
        model = JustTrainTwice(estimator, identification_estimator=LinearSVC())
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            model.fit(X, y, np.ones(y.size))


@pytest.mark.parametrize("estimator", [LogisticRegression(), ours("binary")])
def test_weights_of_its_own_need_no_request(routing, estimator):
    X, y, _, eras = make_data("binary")
    X = np.nan_to_num(X)
    known = {} if isinstance(estimator, LogisticRegression) else {"eras": eras}
    fitted = JustTrainTwice(estimator).fit(X, y, **known)
    with config_context(enable_metadata_routing=False):
        expected = JustTrainTwice(estimator).fit(X, y, **known)
    assert np.array_equal(fitted.predict_proba(X), expected.predict_proba(X))
    weak = LinearSVC(C=1e-3)
    model = JustTrainTwice(estimator, identification_estimator=weak).fit(X, y)
    assert model.is_upweighted_.any()


def test_methods_are_those_of_the_estimator():
    assert hasattr(JustTrainTwice(LinearSVC()), "decision_function")
    assert not hasattr(JustTrainTwice(LinearSVC()), "predict_proba")
    assert not hasattr(JustTrainTwice(RandomForestClassifier()), "decision_function")
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(JustTrainTwice(ours("binary")), method)([[0]])


@pytest.mark.parametrize(("params", "message"), [
    ({"upweight": 0}, "The 'upweight' parameter of JustTrainTwice must be a float"),
    ({"upweight": np.inf}, "The 'upweight' parameter of JustTrainTwice must be"),
    ({"identification_iterations": 0}, "The 'identification_iterations' parameter"),
    ({"estimator": "boosting"}, "The 'estimator' parameter of JustTrainTwice"),
    ({"estimator": Regressor()}, "^estimator is a HistGradientBoostingRegressor, "),
    ({"identification_estimator": Regressor()}, "^identification_estimator is a Hi"),
])  # fmt: skip
def test_bad_parameters_are_refused(params, message):
    model = JustTrainTwice(ours("binary")).set_params(**params)
    with pytest.raises(ValueError, match=message):
        model.fit([[0], [1]], [0, 1])


def test_targets_without_classes_to_tell_apart_are_refused():
    model = JustTrainTwice(ours("binary"))
    with pytest.raises(ValueError, match=r"^y has 1 class\(es\), \['a'\]: pass rows"):
        model.fit([[0], [1]], ["a", "a"])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        model.fit([[0], [1]], [0.5, 1.5])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit([[0], [1]], [0, 1, 1])


@pytest.mark.parametrize(("params", "reader"), [
    ({"identification_estimator": DecisionTreeClassifier(max_depth=1)},
     "identification_estimator=DecisionTreeClassifier"),
    ({"estimator": LogisticRegression(C=0.1)}, "estimator=LogisticRegression"),
])  # fmt: skip
def test_iterations_without_effect_are_warned_of(params, reader):
    X, y, *_ = make_data("binary")
    model = JustTrainTwice(ours("binary"), identification_iterations=3)
    model.set_params(**params)
    with pytest.warns(UserWarning, match=rf"^{reader}.* makes no use of identificatio"):
        model.fit(np.nan_to_num(X), y)


def test_a_subclass_may_have_fewer_parameters_and_other_defaults():
    class Stronger(JustTrainTwice):
        def __init__(self, upweight=9.0):
            super().__init__(RandomForestClassifier(5, max_depth=1), upweight=upweight)

    class Longer(JustTrainTwice):
        def __init__(self, estimator=None, *, identification_iterations=20):
            first = RandomForestClassifier(5, max_depth=1)
            super().__init__(
                estimator or first, identification_iterations=identification_iterations
            )

    X, y, *_ = make_data("binary")
    for model in (Stronger(), Longer()):
        assert model.fit(X, y).is_upweighted_.any()
    with pytest.warns(UserWarning, match="no use of identification_iterations=10"):
        Longer(identification_iterations=10).fit(X, y)


@pytest.mark.parametrize("requests", [False, True])
def test_column_of_eras_is_dropped_or_that_of_transformers(requests):
    X, y, _, eras = make_data("binary")
    X = np.nan_to_num(X) + 9 * eras[:, np.newaxis]
    frame = pd.DataFrame(X, columns=[*"abcde"]).assign(era=eras)
    booster = ours("binary", max_iter=5, split_criterion="era")
    model = JustTrainTwice(booster, identification_iterations=2)
    model.fit(frame, y, eras="era")
    assert model.feature_names_in_.tolist() == [*"abcde"]
    features = frame.drop(columns="era")
    assert np.array_equal(model.predict(frame), model.predict(features))
    assert model.score(frame, y) == model.score(features, y)
    scaler = EraStandardScaler(smooth=0)
    Z = scaler.fit_transform(X, eras=eras)
    last = LogisticRegression()
    if requests:  # which eras of transformers, without routing, do not need
        with config_context(enable_metadata_routing=True):
            scaler.set_fit_request(sample_weight=False)
            last.set_fit_request(sample_weight=True)
    by_hand = JustTrainTwice(LogisticRegression()).fit(Z, y)
    model = JustTrainTwice(make_pipeline(scaler, last))
    for given, asked in ((eras, {"eras": eras}), ("era", {})):
        rows = frame if given is not eras else X
        model.fit(rows, y, eras=given)
        assert np.array_equal(model.is_upweighted_, by_hand.is_upweighted_)
        expected = by_hand.predict_proba(Z)
        np.testing.assert_allclose(model.predict_proba(rows, **asked), expected)
