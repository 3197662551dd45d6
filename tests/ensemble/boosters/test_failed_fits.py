"""A fit that fails leaves a model as it was, and one that is interrupted whole."""

import itertools
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from helpers.data import make_data
from helpers.estimators import ours, stock
from helpers.grids import on_grid
from helpers.trees import assert_same_model, assert_same_trees
from sklearn_era.auto import AutoEraClassifier
from sklearn_era.effects import GroupDRO, Intercepts
from sklearn_era.ensemble import EraForestClassifier, EraForestRegressor, JustTrainTwice
from sklearn_era.ensemble._boosters import hooks
from sklearn_era.ensemble._exchange import Exchange
from sklearn_era.rules import RuleEnsembleClassifier

ESTIMATORS = {
    "regressor": lambda: ours(split_criterion="era"),
    "classifier": lambda: ours("binary", split_criterion="era"),
    "forest_regressor": lambda: EraForestRegressor(n_estimators=3, random_state=0),
    "forest_classifier": lambda: EraForestClassifier(n_estimators=3, random_state=0),
    "rules": lambda: RuleEnsembleClassifier(n_estimators=2, random_state=0),
    "twice": lambda: JustTrainTwice(ours("binary")),
    "search": lambda: AutoEraClassifier(
        ours("binary", max_iter=2), era_order="unordered", cv=2, random_state=0
    ),
}


def fit(model, X, y, eras, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, eras=eras, **arguments)


def make_frame():
    X, y, _, eras = make_data(n_samples=200)
    frame, letters = pd.DataFrame(X, columns=list("abcde")), np.array(list("uvwxyz"))
    frame["a"] = pd.Categorical(letters[np.nan_to_num(X[:, 0]).astype(int)])
    return frame, y, eras


def in_capitals(X):
    return X.assign(a=X["a"].cat.rename_categories(list("ABCDEF")))


MISSING = [np.nan] * 200
# Each is learnt before the fit fails.
OTHER_X = {
    "fewer_columns": lambda X: X[["b"]],
    "more_columns": lambda X: pd.concat([X, X.add_prefix("x")], axis=1),
    "other_names": lambda X: X.add_prefix("x"),
    "other_categories": in_capitals,
    "no_categories": lambda X: X.assign(a=np.arange(200.0)),
}


def state_of(model):
    """A hash of all that a model holds; joblib has none of masked arrays."""
    results = getattr(model, "cv_results_", {})
    masked = [x for x in results.values() if isinstance(x, np.ma.MaskedArray)]
    rest = {k: x for k, x in results.items() if not isinstance(x, np.ma.MaskedArray)}
    known = vars(model) | {"cv_results_": rest}
    return joblib.hash([known, [(x.data, x.mask) for x in masked]])


@on_grid("other make", OTHER_X, ESTIMATORS, every=4)
def test_a_refit_that_fails_leaves_the_model_as_it_was(make, other):
    X, y, eras = make_frame()
    model = make()
    if is_classifier(model):
        y = np.where(y > 0, "up", "down")
    fit(model, X, y, eras)
    before, predicted = state_of(model), model.predict(X)
    other_y = np.resize([1.0, 2.0, 3.0], 200)
    for spoiled in (
        {"y": np.where(np.arange(200) == 7, np.nan, other_y), "eras": eras},
        {"y": other_y, "eras": eras[1:]},
        {"y": other_y, "eras": eras, "sample_weight": MISSING},
    ):
        with pytest.raises(ValueError, match=r"NaN|missing|eras has 199 labels"):
            fit(model, other(X), **spoiled)
        assert state_of(model) == before
    assert_array_equal(model.predict(X), predicted)


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
def test_a_first_fit_that_fails_leaves_no_model(make):
    X, _, eras = make_frame()
    model = make()
    before = set(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        fit(model, X, np.full(200, np.nan), eras)
    assert set(vars(model)) == before
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("make", [ours, EraForestRegressor])
def test_a_fit_whose_last_warning_is_an_error_leaves_no_model(make):
    X, y, _, eras = make_data()
    model = make(split_criterion="era")
    before = set(vars(model))
    with pytest.raises(UserWarning, match=r"^No split was admissible"):
        model.fit(np.ones_like(X), y, eras=eras)
    assert set(vars(model)) == before


class Failing:
    """A grower that raises an error in place of the n-th tree."""

    n_left = 0
    error: BaseException

    def grow(self):
        type(self).n_left -= 1
        if self.n_left == 0:
            raise self.error
        super().grow()


@pytest.fixture
def fail_at(monkeypatch):
    def arm(n_trees, error):
        for name in ("TreeGrower", "SortedFeaturesGrower", "EraTreeGrower"):
            bases = (Failing, getattr(hooks, name))
            kind = type("Grower", bases, {"n_left": n_trees, "error": error})
            monkeypatch.setattr(hooks, name, kind)

    return arm


def accuracy(estimator, X, y):
    return estimator.score(X, y)


STOPPING = {"early_stopping": True, "n_iter_no_change": 99}
WAYS = {
    "plain": ("real", {"split_criterion": "gain"}),
    "draws": ("real", {"max_features": 0.5, "colsample_bytree": 0.6}),
    "draws of the gain": ("multiclass", {"max_features": 0.5, "colsample_bytree": 0.6,
                                         "split_criterion": "gain"}),
    "classes": ("multiclass", {"max_features": 0.5}),
    "losses": ("real", STOPPING),
    "scores": ("binary", {**STOPPING, "scoring": "roc_auc"}),
    "scorer": ("binary", {**STOPPING, "scoring": accuracy}),
    "group_dro": ("binary", {"era_weighting": GroupDRO(), **STOPPING}),
    "intercepts": ("real", {"era_effects": Intercepts(forecast="mean")}),
    "categories": ("real", {"categorical_features": [0]}),
}  # fmt: skip


def make_model(target, params, max_iter):
    params = {"split_criterion": "era", "validation_eras": None, **params}
    return ours(target, warm_start=True, max_iter=max_iter, **params)


def assert_same_fit(one, other, X):
    assert_same_model(one, other, X)
    for name in ("_era_weights", "_era_log_weights", "_era_intercepts"):
        assert hasattr(one, name) == hasattr(other, name)
        assert_array_equal(getattr(one, name, 0), getattr(other, name, 0))
    rngs = [model._feature_subsample_rng.bit_generator.state for model in (one, other)]
    assert rngs[0] == rngs[1]


@on_grid("error way", [ValueError, MemoryError], WAYS, every=2)
def test_a_warm_start_that_failed_is_as_if_not_begun(error, way, fail_at):
    target, params = way
    X, y, _, eras = make_data(target)
    whole = fit(make_model(target, params, 6), X, y, eras)
    model = fit(make_model(target, params, 3), X, y, eras)
    before = joblib.hash(model)
    model.set_params(max_iter=6)
    fail_at(2 * model.n_trees_per_iteration_, error())
    with pytest.raises(error):
        fit(model, X, y, eras)
    assert joblib.hash(model.set_params(max_iter=3)) == before
    assert_same_fit(fit(model.set_params(max_iter=6), X, y, eras), whole, X)


@on_grid("is_warm way", [False, True], WAYS, every=2)
def test_an_interrupted_fit_keeps_whole_iterations(is_warm, way, fail_at):
    target, params = way
    X, y, _, eras = make_data(target)
    model = make_model(target, params, 3)
    if is_warm:
        fit(model, X, y, eras)
    whole = fit(clone(model).set_params(max_iter=7), X, y, eras)
    part = fit(clone(model).set_params(max_iter=5), X, y, eras)
    n_trees = whole.n_trees_per_iteration_
    model.set_params(max_iter=7)
    # In the last tree of the iteration after the fifth one.
    fail_at((3 if is_warm else 6) * n_trees, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        fit(model, X, y, eras)
    assert model.n_iter_ == 5
    assert {len(trees) for trees in model._predictors} == {n_trees}
    assert_same_fit(model, part, X)
    assert set(vars(model)) == set(vars(part))
    assert_same_fit(fit(model, X, y, eras), whole, X)


@pytest.mark.parametrize("n_whole", [0, 2])
@pytest.mark.parametrize("names", [*itertools.permutations(["week", "day", None], 2)])
def test_an_interrupted_fit_names_the_column_of_eras_of_its_trees(
    names, n_whole, fail_at
):
    X, y, eras = make_frame()
    frames = [X if name is None else X.assign(**{name: eras}) for name in names]
    given = [eras if name is None else name for name in names]
    model = fit(ours(max_iter=3), frames[0], y, given[0])
    fail_at(n_whole + 1, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        fit(model, frames[1], y, given[1])
    assert len(model._predictors) == (n_whole or 3)
    assert vars(model).get("_era_column") == names[n_whole > 0]
    assert model.predict(frames[n_whole > 0]).shape == y.shape
    assert set(vars(model)) - {"_era_column"} == set(vars(ours(max_iter=1).fit(X, y)))


@pytest.mark.parametrize("is_warm", [False, True])
def test_a_fit_that_is_interrupted_early_leaves_the_model_as_it_was(is_warm, fail_at):
    X, y, _, eras = make_data("multiclass")
    model = make_model("multiclass", {}, 3)
    if is_warm:
        fit(model, X, y, eras).set_params(max_iter=6)
    before = joblib.hash(model)
    fail_at(3, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        fit(model, X, y, eras)
    assert joblib.hash(model) == before


@pytest.mark.parametrize("make", [EraForestRegressor, RuleEnsembleClassifier])
def test_interrupted_forests_and_rules_are_as_before(make, monkeypatch):
    X, y, _, eras = make_data()
    model = fit(make(n_estimators=2), X, y > 0, eras)
    before = joblib.hash(model)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    name = "_grow_forest" if make is EraForestRegressor else "_find_rules"
    monkeypatch.setattr(make, name, interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit(model, X[:, :2], y > 1, eras)
    assert joblib.hash(model) == before


OTHER_CATEGORIES = "X has other categorical features, or other categories in them"
KEPT = "the trees that warm_start=True keeps"
OTHER_DATA = {
    "columns": (lambda X, y: (X[["a", "b"]], y),
                f"X has 2 columns, but {KEPT} were grown on 5"),
    "more_columns": (lambda X, y: (X.assign(f=1.0), y),
                     f"X has 6 columns, but {KEPT} were grown on 5"),
    "order": (lambda X, y: (X[["a", "c", "b", "d", "e"]], y),
              f"X has the column 'c' where {KEPT} had 'b'"),
    "classes": (lambda X, y: (X, np.where(y == "up", "high", y)),
                r"y has the classes \['down', 'high'\], but .* know \['down', 'up'\]"),
    "categories": (lambda X, y: (in_capitals(X), y), OTHER_CATEGORIES),
    "numbers": (lambda X, y: (X.assign(a=np.arange(200.0)), y), OTHER_CATEGORIES),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "message"), OTHER_DATA.values(), ids=OTHER_DATA)
def test_a_warm_start_to_other_data_is_refused(spoil, message):
    X, y, eras = make_frame()
    y = np.where(y > 0, "up", "down")
    model = fit(ours("binary", warm_start=True), X, y, eras).set_params(max_iter=8)
    before = joblib.hash(model)
    with pytest.raises(ValueError, match=message):
        fit(model, *spoil(X, y), eras)
    assert joblib.hash(model) == before
    assert fit(model, X, y, eras).n_iter_ == 8


@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_warm_start_to_other_rows_is_warned_of(early_stopping):
    X, y, _, _ = make_data()
    model = ours(warm_start=True, early_stopping=early_stopping, n_iter_no_change=99)
    theirs = stock(warm_start=True, early_stopping=early_stopping, n_iter_no_change=99)
    model.fit(X, y)
    theirs.fit(X, y)
    for each in (model, theirs):
        each.set_params(max_iter=8)
    with pytest.warns(UserWarning, match=r"^X makes other bins than the rows"):
        model.fit(X[::-2], y[::-2])
    theirs.fit(X[::-2], y[::-2])
    assert_same_trees(model, theirs)
    # Without a warning.
    model.set_params(max_iter=9, warm_start=False).fit(X, y)
    model.set_params(max_iter=10, warm_start=True).fit(X, y)


def test_no_error_is_lost_where_a_tree_starts(monkeypatch):
    """Ctrl-C, or no memory, while processes agree on units and sums."""
    X, y, weights, eras = make_data()
    whole, lost = ours(split_criterion="era").fit(X, y, weights, eras=eras), []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    for n in range(1, 200):
        calls = itertools.count(1)

        def combine(self, *values, n=n, calls=calls):
            if next(calls) == n:
                raise (KeyboardInterrupt, MemoryError)[n % 2]
            return tuple(map(float, values))

        for name in ("sum_of", "max_of"):
            monkeypatch.setattr(Exchange, name, combine)
        model = ours(split_criterion="era")
        try:
            model.fit(X, y, weights, eras=eras)
        except (KeyboardInterrupt, MemoryError):
            continue
        finally:
            assert not lost
        assert next(calls) <= n
        assert_same_model(model, whole, X)
        break
    else:
        raise AssertionError
