"""Boosters of other packages as members of averages."""

import datetime
import pickle
import warnings

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from helpers.grids import on_grid
from sklearn_era._tables.columns import read_columns
from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.auto._candidates import make_members
from sklearn_era.auto._member_search import at_stage, respond, stages_of
from sklearn_era.auto._other_packages import PEERS, as_peer, make_peer
from sklearn_era.auto._row_losses import loss_of
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_files import ModelFileError, save_model

RNG, N = np.random.default_rng(0), 360
ERAS = np.repeat(np.arange(12), 30)
X = pd.DataFrame({"number": RNG.normal(size=N)})
X["shop"] = RNG.choice(["a", "b", "c", None], N)
X["place"] = pd.Categorical(RNG.choice(["x", "y"], N))
X.loc[::9, "number"] = np.nan
Y = X["number"].fillna(1).to_numpy() + 2 * (X["shop"] == "b") + RNG.normal(size=N)
WEIGHTS = RNG.integers(1, 4, N).astype(float)
packages = pytest.mark.parametrize("name", PEERS)


def mine(name, **params):
    """A small booster of a package."""
    package = pytest.importorskip(name)
    if name == "lightgbm":
        return package.LGBMRegressor(n_estimators=30, verbosity=-1, n_jobs=1, **params)
    options = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
    return package.CatBoostRegressor(iterations=30, **options, **params)


@packages
def test_a_peer_is_the_package_with_categories_and_weights(name):
    peer = as_peer(mine(name), Regressor()).fit(X, Y, sample_weight=WEIGHTS)
    codes = [pd.factorize(X[c], sort=True)[0] + 1 for c in ("shop", "place")]
    table = pd.DataFrame({0: X["number"], 1: codes[0], 2: codes[1]})
    options = {"cat_features" if name == "catboost" else "categorical_feature": [1, 2]}
    table = table if name == "catboost" else table.to_numpy()
    own = mine(name).fit(table, Y, sample_weight=WEIGHTS, **options)
    np.testing.assert_array_equal(peer.predict(X), own.predict(table))
    unweighted = mine(name).fit(table, Y, **options)
    assert (peer.predict(X) != unweighted.predict(table)).any()


@packages
def test_dates_of_older_pickles_stay_known(name):
    shops = {"a": 1, "b": 2, "c": 3}
    days = [shops.get(x) and datetime.date(2024, 1, shops[x]) for x in X["shop"]]
    rows = X[["number"]].assign(day=pd.Categorical(days))
    peer = as_peer(mine(name), Regressor()).fit(rows, Y)
    expected = peer.predict(rows)
    peer.categories_ = [[x and x.date() for x in peer.categories_[0]]]
    np.testing.assert_array_equal(peer.predict(rows), expected)


@packages
def test_a_peer_ends_after_a_stage(name):
    peer = as_peer(mine(name), Regressor())
    stages = stages_of(peer)
    assert stages[-1] == peer.max_iter == 30
    fitted = clone(peer).fit(X, Y)
    for stage, predicted in zip(stages, respond(fitted, X, Y, stages), strict=True):
        short = at_stage(peer, stage).fit(X, Y)
        np.testing.assert_array_equal(short.predict(X), predicted)


@packages
def test_peers_predict_rows_as_they_arrive(name):
    peer = as_peer(mine(name), Regressor()).fit(X, Y)
    expected = peer.predict(X)
    for rows in (
        X.astype({"number": object, "shop": "category", "place": object}),
        pl.from_pandas(X), X[["place", "shop", "number"]],
    ):  # fmt: skip
        np.testing.assert_array_equal(peer.predict(rows), expected)
    missing = peer.predict(X.assign(shop=None))
    assert np.isfinite(peer.predict(X.assign(shop="never seen"))).all()
    is_missing = X["shop"].isna().to_numpy()
    np.testing.assert_array_equal(missing[is_missing], expected[is_missing])
    with pytest.raises(ValueError, match=r"column 'number'.* holds 'text'"):
        peer.predict(X.assign(number="text"))


@packages
@pytest.mark.parametrize("loss", ["absolute_error", "poisson", "gamma", "quantile"])
def test_strings_take_the_loss_of_the_plain_model(name, loss):
    pytest.importorskip(name)
    plain = Regressor(loss=loss, quantile=0.2 if loss == "quantile" else None)
    if (name, loss) == ("catboost", "gamma"):
        with pytest.raises(ValueError, match="'catboost', which has no loss like"):
            make_peer(name, plain, loss)
        return
    y = abs(Y) + 0.1
    model = make_peer(name, plain, loss).model.set_params(n_estimators=100)
    peer, losses = as_peer(model, plain), loss_of(plain)
    best = {"absolute_error": np.median(y), "quantile": np.quantile(y, 0.2)}
    constant = losses(y, np.full(N, best.get(loss, y.mean()))).mean()
    assert losses(y, peer.fit(X, y).predict(X)).mean() < 0.9 * constant


@on_grid("name n_classes", list(PEERS), [2, 3], every=2)
def test_averages_have_peers_as_members(name, n_classes):
    pytest.importorskip(name)
    y = np.array(["no", "yes", "very"])[np.digitize(Y, [0.5, 1.5][: n_classes - 1])]
    plain = Classifier(max_iter=1, random_state=0)
    model = AutoEraClassifier(plain, members=[name], cv=2)
    model.fit(X, y, eras=ERAS, sample_weight=WEIGHTS)
    assert list(model.weights_) == ["plain", name]
    assert model.weights_[name] > 0.5
    p = {k: one.predict_proba(X) for k, one in model.members_.items()}
    average = sum(model.weights_[k] * each for k, each in p.items())
    np.testing.assert_allclose(model.predict_proba(X), average)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert model.score(X, y) > 0.6


def test_models_that_are_passed_keep_their_parameters(tmp_path):
    members = ["linear", ("mine", mine("lightgbm", num_leaves=5))]
    model = AutoEraRegressor(Regressor(max_iter=10, random_state=0), members=members)
    model.fit(X, Y, eras=ERAS)
    assert model.weights_["mine"] > 0.1
    assert isinstance(model.members_["mine"].model_, lightgbm.LGBMRegressor)
    assert model.members_["mine"].model_.num_leaves == 5
    with pytest.raises(ModelFileError, match=r"lightgbm.*pickle the estimator"):
        save_model(model, tmp_path / "model.era")


def test_columns_of_categories_that_are_passed_count():
    model = mine("catboost", cat_features=["shop", "place"])
    assert as_peer(model, Regressor()).categorical_features == ["shop", "place"]
    array = np.column_stack([Y, RNG.integers(0, 5, N)])
    plain = Regressor(categorical_features=[1])
    given = make_members(plain, [("mine", model)], loss_of(plain), N, 12, True)["mine"]
    peer = as_peer(mine("lightgbm"), plain).fit(array, Y)
    assert given.categorical_features == ["shop", "place"]
    assert peer.is_categorical_.tolist() == [False, True]


def test_numbers_of_trees_are_those_that_there_are():
    kind = lightgbm.LGBMRegressor
    model = as_peer(kind(num_boost_round=130, verbosity=-1, n_jobs=1), Regressor())
    assert model.max_iter == 130
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the other name
        fitted = model.fit(X, Y)
    assert fitted.n_trees_ == 130
    own = fitted.model_.predict(fitted._table(read_columns(X)))
    np.testing.assert_array_equal(fitted.predict(X), own)
    stopping = {"eval_fraction": 0.3, "early_stopping_rounds": 2}
    model, noise = mine("catboost", **stopping), RNG.normal(size=N)
    stopped = as_peer(model, Regressor()).fit(X, noise)
    assert stopped.n_trees_ < 30 == stopped.max_iter
    assert np.isfinite(stopped.predict(X)).all()


@packages
def test_strings_have_the_plain_model_s_seed_and_no_constraints(name):
    pytest.importorskip(name)
    for seed, expected in ((np.int64(3), 3), (None, 0)):
        model = make_peer(name, Regressor(random_state=seed), "squared_error").model
        assert model.get_params()["random_state"] == expected
    drawn = make_peer(name, Regressor(random_state=np.random.RandomState(0)), "poisson")
    assert drawn.model.get_params()["random_state"] > 0
    plain = Regressor(monotonic_cst={"number": 1})
    message = rf"{name!r}, which does not keep to .*monoton"
    with pytest.raises(ValueError, match=message):
        AutoEraRegressor(plain, members=[name]).fit(X, Y, eras=ERAS)


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "catboost", None)
    with pytest.raises(ImportError, match=r"pip install 'sklearn-era\[catboost\]'"):
        AutoEraRegressor(members=["catboost"]).fit(X, Y, eras=ERAS)
