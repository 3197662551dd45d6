"""Our models as scikit-learn's own: the same predictions, nothing of ours in them."""

import pickle
import pickletools
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context, ensemble
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from helpers.data import make_data
from helpers.estimators import fit_average, make_estimator
from helpers.grids import slow
from helpers.trees import assert_same_model
from sklearn_era import ensemble as era_ensemble
from sklearn_era.ensemble import (
    EraForestClassifier,
    HistGradientBoostingRegressor,
    JustTrainTwice,
)
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.interop import to_sklearn
from sklearn_era.metrics import make_era_scorer

UNPICKLE = """
import pickle, sys
sys.modules["sklearn_era"] = None
import numpy as np
with open("model.pkl", "rb") as file:
    for model, X, expected in pickle.load(file):
        assert np.array_equal(model.predict(X), expected)
        print(type(model).__module__)
"""


def fit(kind="real", **parameters):
    X, y, weights, eras = make_data(kind)
    parameters = {"split_criterion": "era", "categorical_features": [0]} | parameters
    model = make_estimator(era_ensemble, kind, **parameters)
    return model.fit(X, y, weights, eras=eras), X


def strings_of(pickled):
    arguments = (argument for _, argument, _ in pickletools.genops(pickled))
    return [argument for argument in arguments if isinstance(argument, str)]


@pytest.mark.slow
def test_the_same_model_without_a_word_of_this_package(tmp_path):
    models = []
    for kind in ("real", "binary", "multiclass"):
        model, X = fit(kind, early_stopping=True, n_jobs=1, colsample_bytree=0.5)
        stock = to_sklearn(model)
        assert type(stock) is getattr(ensemble, type(model).__name__)
        check_is_fitted(stock)
        assert_same_model(stock, model, X)
        models.append((stock, X, stock.predict(X)))
    pickled = pickle.dumps(models)
    assert not [text for text in strings_of(pickled) if "sklearn_era" in text]
    (tmp_path / "model.pkl").write_bytes(pickled)
    command = [sys.executable, "-c", UNPICKLE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sklearn.ensemble.") == 3


def test_plain_parameters_and_names_of_features_are_the_original_ones():
    X = pd.DataFrame({"a": np.arange(100.0), "b": np.arange(100) % 7})
    params = {"learning_rate": 0.07, "max_leaf_nodes": 9, "monotonic_cst": {"b": 1}}
    model = HistGradientBoostingRegressor(max_iter=3, **params).fit(X, X["a"])
    stock = to_sklearn(model)
    assert stock.feature_names_in_.tolist() == ["a", "b"]
    assert np.array_equal(stock.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        stock.predict(X[["b", "a"]])
    known = ensemble.HistGradientBoostingRegressor().get_params()
    parameters = model.get_params()
    expected = {name: parameters[name] for name in known}
    assert stock.get_params() == clone(stock).get_params() == expected


@pytest.mark.parametrize(
    ("kind", "early_stopping"),
    [("real", True), ("binary", False), slow("real", False), slow("binary", True)],
)
def test_attributes_are_those_that_scikit_learns_own_fit_leaves(kind, early_stopping):
    """They are listed by name: this fails when a release has others."""
    model, X = fit(kind, split_criterion="gain", early_stopping=early_stopping)
    stock = to_sklearn(model)
    own = clone(stock).fit(X, model.predict(X), np.ones(len(X)))
    assert vars(stock).keys() == vars(own).keys()


@pytest.mark.parametrize("kind", ["reals", "two", "three", "text"])
def test_an_average_is_a_vote_of_its_members(kind):
    model, X = fit_average(kind)
    pickled = pickle.dumps(to_sklearn(model))
    assert not [text for text in strings_of(pickled) if "sklearn_era" in text]
    vote = pickle.loads(pickled)
    assert vote.get_params()["weights"].tolist() == list(model.weights_.values())
    for method in ("predict", "predict_proba"):
        if hasattr(model, method):
            found, own = (getattr(each, method)(X) for each in (vote, model))
            if found.dtype.kind == "f":
                np.testing.assert_allclose(found, own, rtol=1e-12)
            else:
                assert np.array_equal(found, own)
    assert np.array_equal(getattr(model.members_["plain"], "classes_", 0),
                          getattr(model, "classes_", 0))  # fmt: skip


def test_members_may_be_pipelines():
    """Whose classes are their last step's."""
    model, X = fit_average("text")
    member = make_pipeline(StandardScaler(), model.members_["linear"])
    model.members_["linear"] = member.fit(X, model.predict(X))
    vote = to_sklearn(model)
    assert np.array_equal(vote.predict(X), model.predict(X))
    assert vote.named_estimators_["plain"].classes_.tolist() == [0, 1]


@pytest.mark.parametrize(("member", "message"), [
    (EraForestClassifier(2), r", a EraForestClassifier, cannot be converted: fit with"),
    (JustTrainTwice(Classifier(max_iter=2)), " is made of sklearn_era's, which the"),
    (make_pipeline(StandardScaler(), Classifier(max_iter=2)), " is made of sklearn_e"),
])  # fmt: skip
def test_averages_that_are_no_votes_are_refused(member, message):
    model, X = fit_average("two")
    model.members_["small"] = clone(member).fit(X, model.predict(X))
    with pytest.raises(ValueError, match=f"^Member 'small' of AutoEraC.*{message}"):
        to_sklearn(model)
    model._encoded = ["plain"]
    with pytest.raises(ValueError, match=r"encoded columns, .*encode_categories=False"):
        to_sklearn(model)


def test_what_belongs_to_fits_is_left_behind():
    ScoringMonitor = pytest.importorskip("sklearn.callback").ScoringMonitor
    X, y, _, eras = make_data()
    model = HistGradientBoostingRegressor(max_iter=3, split_criterion="era")
    monitor = ScoringMonitor(scoring=make_scorer(r2_score))
    model.set_callbacks(monitor).fit(X, y, eras=eras)
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(eras=True)
    stock = to_sklearn(model)
    assert not {"_skl_callbacks", "_metadata_request"} & vars(stock).keys()
    strings = strings_of(pickle.dumps(stock))
    assert not [text for text in strings if "_era" in text or text == "eras"]
    assert np.array_equal(stock.predict(X), model.predict(X))


def test_a_scoring_of_this_package_is_replaced_with_a_warning_and_no_other():
    scoring = make_era_scorer(r2_score)
    model, X = fit(early_stopping=True, scoring=scoring, validation_fraction=0.5)
    with pytest.warns(UserWarning, match="gets scoring='loss'"):
        stock = to_sklearn(model)
    assert stock.scoring == "loss"
    assert not [text for text in strings_of(pickle.dumps(stock)) if "_era" in text]
    assert np.array_equal(stock.predict(X), model.predict(X))

    # One of anybody else is kept.
    def score(estimator, X, y, sample_weight=None):
        return -np.abs(estimator.predict(X) - y).mean()

    for scoring in ("r2", make_scorer(r2_score), score, None):
        model, _ = fit(early_stopping=True, scoring=scoring)
        stock = to_sklearn(model)
        assert stock.scoring == model.scoring or type(stock.scoring) is type(scoring)


@pytest.mark.parametrize("scoring", ["loss", "r2"])
def test_a_warm_start_of_the_copy_leaves_the_original_as_it_was(scoring):
    X, y, _, eras = make_data()
    options = {"warm_start": True, "early_stopping": True, "scoring": scoring}
    model = HistGradientBoostingRegressor(max_iter=5, **options).fit(X, y, eras=eras)
    before, stock = model.predict(X), to_sklearn(model)
    n_iter = model.n_iter_
    stock.set_params(max_iter=n_iter + 4, early_stopping=False).fit(X, y)
    assert (stock.n_iter_, model.n_iter_) == (n_iter + 4, n_iter)
    assert np.array_equal(model.predict(X), before)


def test_other_models_are_refused():
    with pytest.raises(NotFittedError):
        to_sklearn(HistGradientBoostingRegressor())
    with pytest.raises(TypeError, match=r"or EraForestRegressor, got sklearn\."):
        to_sklearn(ensemble.HistGradientBoostingRegressor())
