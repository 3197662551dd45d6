"""Shapley values: sums over all sets of features, other packages, and eras."""

from functools import lru_cache
from math import comb

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad_vec
from scipy.special import expit
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor as StockRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

from helpers.data import make_data, make_mixed_frame
from helpers.grids import on_grid
from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.auto._linear import LinearClassifier, LinearRegressor
from sklearn_era.effects import Intercepts
from sklearn_era.ensemble import EraForestClassifier, EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._splitting.lanes.instruction_sets import available_levels
from sklearn_era.inspection import EraShapDisplay, shap_values

SIZES = {"min_samples_leaf": 5, "random_state": 0}
CONSTRAINTS = {"monotonic_cst": [0, 1, -1, 0, 0]}
CONSTRAINTS |= {"interaction_cst": [{0, 1}, {2, 3, 4}]}
KINDS = {
    "regressor": ("real", Regressor, {}), "stock": ("real", StockRegressor, {}),
    "constraints": ("real", Regressor, CONSTRAINTS),
    "intercepts": ("real", Regressor, {"era_effects": "intercept"}),
    "poisson": ("count", Regressor, {"loss": "poisson"}),
    "binary": ("binary", Classifier, {"split_criterion": "directional"}),
    "multiclass": ("multiclass", Classifier, {}),
    "forest": ("real", EraForestRegressor, {"bootstrap": "within_eras"}),
    "classes of forest": ("multiclass", EraForestClassifier, {}),
    "shared bins": ("real", Regressor, {"max_bins": 4}),
}  # fmt: skip


@lru_cache
def make_model(kind, seed, n_leaves=8):
    """A model of random data with categories and missing values, and the data."""
    target, make, parameters = KINDS[kind]
    X, y, _, eras = make_data(target, seed=seed)
    parameters = parameters | {"n_estimators" if "orest" in kind else "max_iter": 4}
    parameters |= {"categorical_features": [0], "max_leaf_nodes": n_leaves}
    model = make(**SIZES | parameters)
    model.fit(X, y, **({} if kind == "stock" else {"eras": eras}))
    X[:20, 0] = 77  # a category that the fit has not seen
    return model, X, eras


def by_sets(worth):
    """Shapley values from the worth of each set, whose bits are features."""
    n, values = len(worth).bit_length() - 1, []
    sets = np.arange(len(worth))
    for i in range(n):
        without = sets[(sets >> i) & 1 == 0]
        weights = 1 / np.array([n * comb(n - 1, int(s).bit_count()) for s in without])
        values.append(weights @ (worth[without | 1 << i] - worth[without]))
    return np.array(values)


def worth_by_background(predict, x, background):
    """Predictions with features of a set from x, others from the background."""
    sets = np.arange(2**x.size)
    known = (sets[:, np.newaxis] >> np.arange(x.size)) & 1 == 1
    mixes = np.where(known[:, np.newaxis], x, background).reshape(-1, x.size)
    predicted = predict(mixes)
    return predicted.reshape(sets.size, len(background), -1).mean(axis=1)


def worth_by_paths(model, x):
    """Expectations by counts of rows where a split's feature is not in the set."""
    known, rows_of_known = model._bin_mapper.make_known_categories_bitsets()
    columns = np.argsort(~model.is_categorical_, kind="stable")

    def has(bits, code):
        return bool(bits[code >> 5] >> np.uint32(code & 31) & 1)

    def goes_left(tree, node):
        value = x[columns[node["feature_idx"]]]
        if not node["is_categorical"]:
            go = node["missing_go_to_left"], value <= node["num_threshold"]
            return go[0] if np.isnan(value) else go[1]
        code = 255 if np.isnan(value) else int(value)
        if not has(known[rows_of_known[node["feature_idx"]]], code):
            return node["missing_go_to_left"]
        return has(tree.raw_left_cat_bitsets[node["bitset_idx"]], code)

    def expect(tree, index, features):
        node = tree.nodes[index]
        if node["is_leaf"]:
            return node["value"]
        left, right = int(node["left"]), int(node["right"])
        if features >> columns[node["feature_idx"]] & 1:
            return expect(tree, left if goes_left(tree, node) else right, features)
        counts = tree.nodes["count"][[left, right]]
        both = [expect(tree, child, features) for child in (left, right)]
        return np.dot(counts, both) / node["count"]

    worth = [
        [sum(expect(trees[k], 0, s) for trees in model._predictors)
         for k in range(model.n_trees_per_iteration_)]
        for s in range(2**x.size)
    ]  # fmt: skip
    return np.array(worth) + model._baseline_prediction


def assert_sums(model, X, background=None):
    """Values of a row, and its base value, sum up to the raw prediction."""
    result, raw = shap_values(model, X, background=background), model._raw_predict(X)
    sums = result.values.sum(axis=1) + result.base_values
    assert_allclose(sums.reshape(raw.shape), raw, rtol=0, atol=1e-9)
    return result


SEEDS = [pytest.param(i, marks=[pytest.mark.slow] * (i >= 30)) for i in range(200)]


@pytest.mark.filterwarnings("ignore:.* share a bin")
@pytest.mark.parametrize("seed", SEEDS)
def test_sums_are_raw_predictions(seed):
    kind = list(KINDS)[seed % len(KINDS)]
    model, X, _ = make_model(kind, seed, n_leaves=[4, 12, 31][seed % 3])
    assert_sums(model, X)
    found = assert_sums(model, X, X[100:150]).base_values
    base = model._raw_predict(X[100:150]).mean(axis=0)
    assert_allclose(found.reshape(len(X), -1), np.tile(base, (len(X), 1)))


@pytest.mark.filterwarnings("ignore:.* share a bin")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "shared bins"])
def test_values_are_those_over_all_sets(kind):
    model, X, _ = make_model(kind, seed=7)
    rows, background = X[[0, 25, 130]], X[40:60]
    by_paths = shap_values(model, rows)
    by_rows = shap_values(model, rows, background=background)
    for i, x in enumerate(rows):
        of_paths = worth_by_paths(model, x)
        of_rows = worth_by_background(model._raw_predict, x, background)
        for result, worth in ((by_paths, of_paths), (by_rows, of_rows)):
            expected = by_sets(worth).reshape(result.values[i].shape)
            assert_allclose(result.values[i], expected, rtol=0, atol=1e-12)
        assert_allclose(by_paths.base_values[i], of_paths[0].squeeze())


@pytest.mark.parametrize("n_features", [6, 14])
def test_paths_of_many_features(n_features):
    """Sets of more than 12 features are not remembered."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(3000, n_features)))
    model = EraForestRegressor(2, min_samples_leaf=1, random_state=0)
    model.fit(X, X.prod(axis=1) ** 0.3)
    rows, background = X[:2], X[10:14]
    result = shap_values(model, rows, background=background)
    for x, values in zip(rows, result.values, strict=True):
        worth = worth_by_background(model._raw_predict, x, background)[:, 0]
        assert_allclose(values, by_sets(worth), atol=1e-12)
    assert_sums(model, X)


@pytest.mark.parametrize("background", [None, 30])
def test_threads_chunks_and_levels_make_no_difference(background, monkeypatch):
    model, X, _ = make_model("binary", seed=1)
    X = np.tile(X, (12, 1))
    background = None if background is None else X[:background]
    expected = shap_values(model, X[:100], background=background).values
    for level in available_levels():
        monkeypatch.setenv("SKLEARN_ERA_X86_LEVEL", level)
        found = shap_values(model, X, background=background).values
        assert_allclose(found, np.tile(found[:400], (12, 1)), atol=1e-15)
        assert_allclose(found[:100], expected, atol=1e-14)


def test_categories_by_name():
    X = make_data()[0]
    frame, y, _ = make_mixed_frame()
    model = Regressor(max_iter=5, **SIZES).fit(frame, y)
    result = shap_values(model, frame)
    of_codes = Regressor(max_iter=5, categorical_features=[0], **SIZES).fit(X, y)
    assert_allclose(result.values[:, ::-1], shap_values(of_codes, X).values)
    assert_array_equal(result.data[:, ::-1], X)
    assert result.display_data[np.flatnonzero(X[:, 0] == 2)[0], 4] == "tree 2"
    assert result.feature_names == list("pqrst")
    for other in (frame[[*"tsrqp"]], frame.assign(a=0.0)[[*"aqrstp"]]):
        for X in (other, pa.Table.from_pandas(other)):
            found = shap_values(model, X)
            assert_array_equal(found.data, result.data)
            shown = map(pd.DataFrame, (found.display_data, result.display_data))
            pd.testing.assert_frame_equal(*shown)


def test_averages_of_trees_and_linear_models():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y, eras = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=400), np.arange(400) % 8
    y[:2] = [-20, 20]  # beyond which the linear member cuts off
    members = ["linear", ("ridge", Ridge()), ("forest", EraForestRegressor(3))]
    plain = Regressor(max_iter=5, max_leaf_nodes=4)
    model = AutoEraRegressor(plain, members=members, era_order="unordered")
    model.fit(X, y, eras=eras)
    model.weights_ = dict.fromkeys(model.members_, 1 / len(model.members_))
    assert {"linear", "ridge"} <= model.members_.keys()
    result = shap_values(model, X[:3], background=X[50:70])
    for x, values in zip(X[:3], result.values, strict=True):
        worth = worth_by_background(model.predict, x, X[50:70])[:, 0]
        assert_allclose(values, by_sets(worth), atol=1e-12)
    sums = result.values.sum(axis=1) + result.base_values
    assert_allclose(sums, model.predict(X[:3]))
    with pytest.raises(ValueError, match=r"'linear' .* is linear, .*; pass background"):
        shap_values(model, X)
    with pytest.raises(ValueError, match=r"cuts off .* 1 of 400 rows .* row 9;"):
        shap_values(model, np.where(np.arange(400)[:, None] == 9, 99, X), background=X)
    model.members_["ridge"] = KNeighborsRegressor().fit(X, y)
    with pytest.raises(ValueError, match=r"'ridge' .*KNeighbors.*, has no exact"):
        shap_values(model, X, background=X)


def assert_sums_of_average(model, X, background):
    result = shap_values(model, X, background=background)
    sums = result.values.sum(axis=1) + result.base_values
    if isinstance(model, AutoEraRegressor):
        expected = np.log(model.predict(X))
    else:
        expected = np.log(model.predict_proba(X))
        if expected.shape[1] == 2:
            expected = expected[:, 1] - expected[:, 0]
    assert_allclose(sums, expected, atol=1e-9)


@on_grid("kind background", ["two", "three", "poisson"], [None, 30], every=2)
def test_averages_after_a_link_add_up(kind, background):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    z, eras = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=400), np.arange(400) % 8
    others = None if background is None else X[50:80]
    if kind == "poisson":
        y = rng.poisson(np.exp(z / 2)) + 0.0
        y[:2] = [0, 999]
        model = AutoEraRegressor(Regressor("poisson", max_iter=5))
        members = [Regressor("poisson", max_iter=2), EraForestRegressor(9)]
        members += [LinearRegressor("poisson")]
    else:
        y = np.digitize(z, [0.0] if kind == "two" else [-0.5, 0.5])
        model = AutoEraClassifier(Classifier(max_iter=5))
        members = [EraForestClassifier(9), Classifier(max_iter=2)]
        members += [LinearClassifier("log_loss"), LogisticRegression()]
    model.set_params(members=[], cv=2).fit(X, y, eras=eras)
    plain = clone(model._plain_model()).fit(X, y, eras=eras)
    model.members_ = {"plain": plain}
    for member in members:
        name = type(member).__name__
        if background is not None or not name.startswith("L"):  # linear ones need it
            model.members_[name] = member.fit(X, y)
    model.weights_ = dict.fromkeys(model.members_, 1 / len(model.members_))
    assert_sums_of_average(model, X[:20], others)
    members = model.members_
    # Values of alike members, and of one alone, are theirs.
    own = shap_values(plain, X[:20], background=others)
    for weights in ({"a": 0.3, "b": 0.7}, {"a": 1.0}):
        model.members_, model.weights_ = dict.fromkeys(weights, plain), weights
        found = shap_values(model, X[:20], background=others)
        if kind == "three":  # logarithms of probabilities, and not raw predictions
            assert_allclose(np.diff(found.values), np.diff(own.values), atol=1e-9)
        else:
            assert_allclose(found.values, own.values, atol=1e-9)
    # The scale is the same if all the weight is on one member.
    for name, member in members.items():
        model.members_, model.weights_ = {name: member}, {name: 1.0}
        assert_sums_of_average(model, X[:20], others)


def test_shares_of_members_are_integrals_of_slopes():
    """Two members of a column each: their shares are the values of the columns."""
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = np.random.default_rng(1).logistic(size=400) < X @ [1, -2]
    only = [X * mask for mask in np.eye(2)]
    first, second = (Classifier(max_iter=9).fit(Z, y) for Z in only)
    model = AutoEraClassifier(Classifier(max_iter=1), members=[], cv=2)
    model.fit(X, y, eras=np.arange(400) % 8)
    model.members_ = {"a": first, "b": second}
    model.weights_ = {"a": 0.4, "b": 0.6}
    result = shap_values(model, X[:5], background=X[50:80])
    for row, values in zip(X[:5], result.values, strict=True):
        start, end = (
            np.array([m.decision_function(rows).mean() for m in (first, second)])
            for rows in (X[50:80], row[np.newaxis])
        )

        def slopes(t, start=start, end=end):
            p = expit(start + t * (end - start))
            mean = [0.4, 0.6] @ p
            return (end - start) * [0.4, 0.6] * p * (1 - p) / (mean * (1 - mean))

        assert_allclose(values, quad_vec(slopes, 0, 1)[0], atol=1e-9)


def test_columns_are_those_of_the_fit():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    y, frame["era"] = 3 * frame["a"] + rng.normal(size=200), np.arange(200) % 8
    y[:2] = [-30, 30]
    model = AutoEraRegressor(Regressor(max_iter=2), members=["linear"], cv=2)
    model.fit(frame, y, eras="era")
    assert model.members_.keys() == {"linear"}
    columns = frame[list("abc")]
    terms = model.members_["linear"]._terms(columns)[0][..., 0]
    for X in (frame, columns):  # predictions take either
        found = shap_values(model, X[:3], background=X)
        assert_allclose(found.values, terms[:3] - terms.mean(axis=0))
        assert_allclose(found.data, columns[:3])
    for other in (columns[["c", "b", "a"]], columns.assign(d=1.0)):
        with pytest.raises(ValueError, match="feature names should match"):
            shap_values(model, other[:3], background=columns)


@pytest.mark.filterwarnings("ignore:X lacks the columns")
@pytest.mark.parametrize("kind", ["real", "count", "multiclass", "average", "classes"])
def test_bases_have_the_intercepts_that_predictions_read_from_columns(kind):
    rng = np.random.default_rng(0)
    week, shop = map(np.ravel, np.indices((12, 10)))
    frame = pd.DataFrame(rng.normal(size=(120, 2)), columns=list("ab"))
    z = frame.a + rng.normal(size=10)[shop] + rng.normal(size=12)[week] / 2
    frame["week"], frame["shop"] = week, [f"s{i}" for i in shop]
    names, effects = ["week", "shop"], {"era_effects": Intercepts("auto")}
    y, booster = z, Regressor(max_iter=9, random_state=0)
    if kind == "count":
        y, booster = rng.poisson(np.exp(z / 2)), booster.set_params(loss="poisson")
    elif kind in ("multiclass", "classes"):
        y = np.digitize(z, [-0.5, 0.5] if kind == "multiclass" else [0.0])
        booster = Classifier(max_iter=9, random_state=0)
    if kind in ("average", "classes"):
        make = AutoEraRegressor if kind == "average" else AutoEraClassifier
        model = make(booster, members=[], cv=2, group="known").fit(frame, y, eras=names)
        level, X = clone(booster).set_params(**effects), frame[["a", "b"]]
        model.members_ = {"plain": clone(booster).fit(X, y)}
        model.members_["level"] = level.fit(X, y, eras=frame[names])
        model.weights_ = {"plain": 0.3, "level": 0.7}
    else:
        model = booster.set_params(**effects).fit(frame, y, eras=names)
    bases = []
    for X in (frame[::7], frame[::7].drop(columns=names)):
        for background in (None, frame[:30]):
            result = shap_values(model, X, background=background)
            bases.append(result.base_values)
            if kind == "classes":
                expected = np.diff(np.log(model.predict_proba(X)))[:, 0]
            elif kind == "multiclass":
                expected = model.decision_function(X)
            else:
                predicted = model.predict(X)
                expected = np.log(predicted) if kind == "count" else predicted
            sums = result.values.sum(axis=1) + result.base_values
            assert_allclose(sums, expected, atol=1e-9)
    assert (bases[0] != bases[2]).all()


def make_chain(n):
    """A model of one tree that splits by each of n features in turn."""
    X = np.tri(n + 1, n)
    model = Regressor(max_iter=1, min_samples_leaf=1).fit(X, np.arange(n + 1))
    nodes = np.zeros(2 * n + 1, model._predictors[0][0].nodes.dtype)
    splits = nodes[:-1:2]
    nodes["is_leaf"], nodes["value"] = 1, np.arange(2 * n + 1) % 7
    splits["is_leaf"], splits["feature_idx"] = 0, np.arange(n)
    splits["left"], splits["right"] = 2 * np.arange(n) + [[1], [2]]
    nodes["count"] = 2 * n + 1 - np.arange(2 * n + 1)
    model._predictors[0][0].nodes = nodes
    return model


def test_refusals():
    X, y, _, eras = make_data("count")
    one = EraForestClassifier(1, bootstrap=False, min_samples_leaf=1)
    forests = AutoEraClassifier(Classifier(max_iter=2), members=[("a", one)], cv=2)
    narrow = make_model("regressor", seed=0)[0]
    chain, wide = make_chain(65), np.tri(66, 65)
    assert_sums(chain, wide)
    damaged = make_chain(65)
    damaged._predictors[0][0].nodes["right"][8] = 2
    forests.fit(X, y > 1, eras=eras)
    forests.members_ = dict.fromkeys("ab", one.fit(X, y > 1))
    forests.weights_ = dict.fromkeys("ab", 0.5)
    for model, rows, background, message in (
        (forests, X, None, r"predicts 0 or 1 for row \d+ of X .* infinite"),
        (LinearRegression(), X, None, "model must be .*; got LinearReg"),
        (narrow, X[:, 1:], None, "X has 4 features"),
        (narrow, X, X[:0], "0 sample"),
        (chain, wide, wide, "has 65 features, .* pass background=None"),
        (damaged, wide, None, "A tree of the model is damaged"),
    ):
        with pytest.raises(ValueError, match=message):
            shap_values(model, rows, background=background)


def test_values_by_era(ax):
    model, X, eras = make_model("multiclass", seed=0)
    for values in (shap_values(model, X), shap_values(make_model("forest", 0)[0], X)):
        summary = values.by_era(eras)
        for name, change in (("mean", np.asarray), ("mean_abs", np.abs)):
            table = pd.DataFrame(change(values.values).reshape(len(X), -1))
            mean = table.groupby(eras).mean()
            found, spread = summary[name], summary[f"{name}_spread"]
            assert_allclose(found.reshape(mean.shape), mean, atol=1e-14)
            assert_allclose(spread.ravel(), mean.std(ddof=0))
        std = pd.DataFrame(values.values.reshape(len(X), -1)).groupby(eras).std(ddof=0)
        assert_allclose(summary.std.reshape(std.shape), std, atol=1e-14)
    assert_array_equal(summary.era_labels, np.unique(eras))
    display = EraShapDisplay(summary).plot(ax, field="mean", max_features=3)
    order = np.argsort(-summary.mean_abs.mean(axis=0))[:3]
    assert_array_equal(display.image_.get_array(), summary.mean[:, order].T)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [summary.feature_names[i] for i in order]
    classes = EraShapDisplay(shap_values(model, X).by_era(eras))
    assert classes.plot(output=2).image_.get_clim()[0] == 0
    for display, options, message in (
        (classes, {}, r"classes \['0', '1', '2'\], from 0; got None"),
        (EraShapDisplay(summary), {"output": 1}, "output=1: there is one alone"),
        (EraShapDisplay(summary), {"field": "max"}, "field must be .*; got 'max'"),
        (EraShapDisplay(summary), {"max_features": 0}, "max_features must be 1"),
    ):
        with pytest.raises(ValueError, match=message):
            display.plot(**options)


@pytest.mark.slow
class TestShap:
    """Where the package is right, values are its own."""

    @pytest.mark.parametrize("kind", ["regressor", "multiclass", "forest"])
    @pytest.mark.parametrize("n_background", [None, 40])
    def test_values_without_categories(self, kind, n_background):
        shap = pytest.importorskip("shap", exc_type=ImportError)
        target, make, _ = KINDS[kind]
        X, y, _, _ = make_data(target)
        X = X[:, 1:].astype("f4").astype("f8")  # which it rounds to by a background
        model = make(max_leaf_nodes=12, **SIZES).fit(X, y)
        background = None if n_background is None else X[:n_background]
        explainer = shap.TreeExplainer(model, background)
        result = shap_values(model, X, background=background)
        atol = 1e-9 if n_background is None else 1e-7
        assert_allclose(result.values, explainer.shap_values(X), atol=atol)
        base = np.ravel(explainer.expected_value)
        assert_allclose(result.base_values, np.tile(base, (len(X), 1)).squeeze())

    def test_plots_take_the_result(self, pyplot):
        shap = pytest.importorskip("shap", exc_type=ImportError)
        model, X, _ = make_model("regressor", seed=0)
        explanation = shap.Explanation(**shap_values(model, X))
        shap.plots.beeswarm(explanation, show=False)
        labels = [text.get_text() for text in pyplot.gca().get_yticklabels()]
        assert set(labels) == {f"x{i}" for i in range(5)}
        shap.plots.waterfall(explanation[0], show=False)
