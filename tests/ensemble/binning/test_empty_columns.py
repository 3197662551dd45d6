"""Columns without a value in the rows that bins are made from: constants."""

import pickle
import warnings
from contextlib import contextmanager, nullcontext

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from helpers.criteria import CRITERIA, RATIO
from helpers.estimators import ours, stock
from helpers.grids import from_1_9, on_grid
from helpers.trees import assert_same_model, trees_of
from sklearn_era import ensemble
from sklearn_era._tables.no_value import NoValueWarning
from sklearn_era.ensemble import BinnedDataset, EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._binning.integers import draw_rows
from sklearn_era.ensemble._binning.read_columns import feature_columns

N = 240
ERAS = np.repeat(np.arange(6), N // 6)
EMPTY = ["never", "neither"]
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["a", "b", "c"])
FRAME.insert(1, "never", np.nan)
FRAME["kind"] = pd.Categorical(RNG.choice(["u", "v", "w"], N))
FRAME["neither"] = pd.Categorical([None] * N, categories=["x"])
Y = FRAME["a"] + FRAME["b"] * (FRAME["kind"] == "u") + 0.3 * RNG.normal(size=N)
WEIGHTS = RNG.uniform(0.5, 1.5, N)
# Sides of few rows would tie.
FOREST = {"n_estimators": 2, "bootstrap": False, "min_samples_leaf": 10}


@contextmanager
def warning_of(*columns):
    """One warning, of these columns and at the line of the test."""
    names = ", ".join(map(repr, columns))
    with pytest.warns(UserWarning, match=rf"^X: column\(s\) {names} have no") as all_:
        yield
    (warning,) = (x for x in all_ if "have no value" in str(x.message))
    assert warning.filename == __file__


def splits_by_name(model, trees=None):
    """The nodes of all trees, or of some, and the columns that they split."""
    nodes = np.concatenate([tree.nodes for tree in trees or trees_of(model)])
    names = np.array(feature_columns(model))[nodes["feature_idx"]]
    kept = [x for x in nodes.dtype.names if x not in ("feature_idx", "bitset_idx")]
    return np.where(nodes["is_leaf"], "", names).tolist(), nodes[kept]


def assert_blind(model, other, X, empty):
    """Its trees are those of a fit without the columns, and no value of them counts."""
    (names, nodes), (other_names, other_nodes) = map(splits_by_name, (model, other))
    assert names == other_names
    assert set(names) - {""}
    assert_array_equal(nodes, other_nodes)
    expected = model.predict(X)
    assert_array_equal(expected, other.predict(X.drop(columns=empty)))
    for number, text in ((np.inf, "x"), (-np.inf, "?"), (1e300, "u"), (0.0, None)):
        values = {"never": number, "neither": pd.Categorical([text] * len(X), [*"x?u"])}
        odd = X.assign(**{name: values[name] for name in empty})
        assert_array_equal(model.predict(odd), expected)


LEAFY = {"max_iter": 3, "min_samples_leaf": 2, "max_leaf_nodes": None}
KINDS = {
    "booster": (Regressor, {"max_iter": 3}, None),
    "leafy booster": (Regressor, LEAFY, WEIGHTS),
    "forest": (EraForestRegressor, FOREST, None),
}


@on_grid("params kind", CRITERIA | {"ratio": RATIO}, KINDS, every=5)
def test_trees_are_those_without_the_columns(params, kind):
    cls, more, weights = kind
    y = (Y > 0) * 1.0 if params is RATIO else Y
    model, other = cls(**more, **params), cls(**more, **params)
    with warning_of("neither", "never"):
        model.fit(FRAME, y, weights, eras=ERAS)
    other.fit(FRAME.drop(columns=EMPTY), y, weights, eras=ERAS)
    assert_blind(model, other, FRAME, EMPTY)


@pytest.mark.parametrize("model", [
    Regressor(max_iter=3, interaction_cst="no_interactions"),
    Regressor(max_iter=3, monotonic_cst={"a": 1, "never": -1}),
    Regressor(max_iter=3, max_features=0.5, colsample_bytree=0.7),
    Regressor(max_iter=3, loss="poisson", early_stopping=True),
    Regressor(max_iter=3, feature_penalty={"a": 0.1, "never": 1.0}),
    Regressor(max_iter=3, era_effects="intercept", leaf_shrinkage="eras"),
    EraForestRegressor(30, max_features=1, max_leaf_nodes=9, oob_score=True),
])  # fmt: skip
def test_no_parameter_makes_a_split_of_them(model):
    with warning_of("neither", "never"):
        model.fit(FRAME, np.abs(Y), eras=ERAS)
    names, _ = splits_by_name(model)
    assert set(names) - {""}
    assert not set(names) & set(EMPTY)
    assert np.isfinite(model.predict(FRAME)).all()


@pytest.mark.parametrize("kind", [Classifier, ensemble.EraForestClassifier])
def test_classes(kind):
    model = kind(**{"max_iter" if kind is Classifier else "n_estimators": 2})
    classes = pd.cut(Y, 3, labels=["l", "m", "r"]).to_numpy()
    with warning_of("neither", "never"):
        model.fit(FRAME, classes, eras=ERAS)
    assert not set(splits_by_name(model)[0]) & set(EMPTY)
    assert_array_equal(model.predict_proba(FRAME.assign(never=1e9)).sum(1).round(9), 1)
    X = FRAME[["a", "never"]]
    with warning_of("never"):  # once, of two fits
        twice = ensemble.JustTrainTwice(Classifier(max_iter=2)).fit(X, Y > 0)
    assert set(twice.predict(X)) == {False, True}


MATRIX = FRAME[["a", "never", "b"]].to_numpy()


@from_1_9
@pytest.mark.parametrize(("X", "column"), [
    (MATRIX, 1), (MATRIX.astype(np.float32), 1), (np.asfortranarray(MATRIX), 1),
    (MATRIX.tolist(), 1),
    (FRAME[["a", "never", "b"]], "never"),
    (FRAME[["a", "never", "b"]].astype({"never": object}), "never"),
    (FRAME[["a", "never", "b"]].astype({"never": "Int8"}), "never"),
    (pl.from_numpy(MATRIX, ["a", "never", "b"]), "never"),
    (pl.DataFrame({"a": MATRIX[:, 0], "never": None, "b": MATRIX[:, 2]}), "never"),
    (pa.table({"a": MATRIX[:, 0], "never": pa.nulls(N)}), "never"),
    (pa.table({"a": pa.array(np.arange(N) % 9, pa.int8()),
               "never": pa.nulls(N, pa.int8())}), "never"),
])  # fmt: skip
def test_tables_of_all_kinds(X, column):
    model = Regressor(max_iter=3)
    with warning_of(column):
        model.fit(X, Y)
    with warning_of(column):
        dataset = BinnedDataset.from_arrays(X, Y)
    assert_same_model(Regressor(max_iter=3).fit(dataset), model, X)
    features = {f for tree in trees_of(model) for f in tree.nodes["feature_idx"][:1]}
    assert 1 not in features
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("has_value", [False, True])
def test_categorical_features_by_index(has_value):
    """scikit-learn fits where a category has no value, and raises for a number."""
    X = np.column_stack([MATRIX[:, 0], np.full(N, np.nan), np.arange(N) % 3])
    if has_value:
        X[:120, 1] = np.arange(120) % 2
    params = {"max_iter": 3, "categorical_features": [1, 2], "random_state": 0}
    with nullcontext() if has_value else warning_of(1):
        model = ours(**params).fit(X, Y)
    assert_same_model(model, stock(**params).fit(X, Y), X)


@pytest.mark.parametrize("dtype", [None, object, float, "category", "str"])
def test_anything_is_taken_for_a_category_that_never_was(dtype):
    empty = pd.Series([None] * N, dtype=dtype).astype("category")
    with warning_of("k"):
        model = Regressor(max_iter=2).fit(FRAME[["a"]].assign(k=empty), Y)
    expected = model.predict(FRAME[["a"]].assign(k=empty))
    for values in ("x", 1, 2.5, np.nan, None, np.arange(N), list("xy") * (N // 2)):
        X = FRAME[["a"]].assign(k=values).astype({"k": "category"})
        assert_array_equal(model.predict(X), expected)


def test_many_columns_are_counted():
    X = np.full((N, 20), np.nan)
    X[:, 19] = Y
    message = r"X: column\(s\) 0, 1, 2, 3, 4 and 14 more h"
    with pytest.warns(NoValueWarning, match=message) as caught:
        Regressor(max_iter=1).fit(X, Y)
    warning = pickle.loads(pickle.dumps(caught[0].message))
    assert str(warning) == str(caught[0].message)
    assert warning.columns == list(range(19))


@from_1_9
def test_values_of_rows_without_weight_do_not_count():
    X = FRAME.assign(never=np.where(ERAS < 3, 1.5, np.nan))
    X["neither"] = pd.Categorical(np.where(ERAS < 3, "x", None))
    for params in ({}, {"split_criterion": "era"}):
        for model in (Regressor(max_iter=3, **params), EraForestRegressor(3, **params)):
            with warning_of("neither", "never"):
                model.fit(X, Y, (ERAS >= 3) * 1.0, eras=ERAS)
            assert not set(splits_by_name(model)[0]) & set(EMPTY)
            assert_array_equal(model.predict(X), model.predict(FRAME))


def test_values_of_held_out_eras_do_not_count():
    X = FRAME.assign(never=np.where(ERAS == 5, ERAS + Y, np.nan))
    X["neither"] = pd.Categorical(np.where(ERAS == 5, "x", None))
    params = {"max_iter": 3, "early_stopping": True, "random_state": 0}
    model, other = Regressor(**params), Regressor(**params)
    with warning_of("neither", "never"):
        model.fit(X, Y, eras=ERAS)
    assert model.validation_eras_.tolist() == [5]
    other.fit(X.drop(columns=EMPTY), Y, eras=ERAS)
    assert_blind(model, other, X, EMPTY)
    assert_array_equal(model.validation_score_, other.validation_score_)


@on_grid("has_value_first kind", [False, True], [Regressor, EraForestRegressor])
def test_warm_starts_on_rows_with_and_without_values(kind, has_value_first):
    """A warm start keeps its trees, and makes new bins."""
    late = FRAME[["a", "never"]].assign(never=2 * Y)
    fits = [late, late.assign(never=np.nan)]
    if not has_value_first:
        fits.reverse()
    size = "max_iter" if kind is Regressor else "n_estimators"
    model = kind(warm_start=True, random_state=0)
    for n_trees, X in zip((2, 4), fits, strict=True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.set_params(**{size: n_trees}).fit(X, Y)
        told = [each for each in caught if "no value" in str(each.message)]
        assert len(told) == X["never"].isna().all()
    splits = [splits_by_name(model, [tree])[0] for tree in trees_of(model)]
    are_blind = ["never" not in names for names in splits]
    assert are_blind == [False, False, True, True][:: 1 if has_value_first else -1]
    assert (model.predict(late) != model.predict(late.assign(never=np.nan))).any()


def test_a_column_with_values_in_rows_that_are_not_drawn():
    """All of its values share a bin, which a split can part from missing ones."""
    n = 210_000
    X = np.column_stack([np.arange(n) % 7.0, np.arange(n)])
    model = Regressor(max_iter=2, early_stopping=False, random_state=0).fit(X, X[:, 0])
    X[draw_rows(model._bin_mapper, n, None)[0], 1] = np.nan
    has_value = ~np.isnan(X[:, 1])
    y = X[:, 0] + 5.0 * has_value
    with warning_of(1):
        model.fit(X, y)
    nodes = np.concatenate([tree.nodes for tree in trees_of(model)])
    of_column = (nodes["feature_idx"] == 1) & (nodes["is_leaf"] == 0)
    assert_array_equal(nodes["num_threshold"][of_column], np.inf)
    expected = model.predict(X)
    for value in (-np.inf, 0.5, np.inf):
        X[has_value, 1] = value
        assert_array_equal(model.predict(X), expected)
