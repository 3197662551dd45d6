"""Columns of more categories than bins: the rarest share one, as if by hand."""

import pickle
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from helpers.criteria import CRITERIA
from helpers.estimators import ours, stock
from helpers.grids import on_grid
from helpers.model_files import Forgery
from helpers.trees import assert_same_model, trees_of
from sklearn_era.ensemble import EraForestClassifier, EraForestRegressor
from sklearn_era.ensemble._prediction import blocks
from sklearn_era.inspection import split_statistics
from sklearn_era.interop import to_sklearn
from sklearn_era.model_files import ModelFileError, load_model, save_model
from sklearn_era.rules import RuleEnsembleClassifier

N = 900
RNG = np.random.default_rng(0)
SHOPS = np.minimum(RNG.geometric(0.06, N), 40).astype(np.int8)
ZONES = RNG.integers(0, 12, N).astype(np.int8)
ERAS = np.arange(N) % 4
VALUES = RNG.normal(size=N)
Y = np.sin(9.0 * SHOPS) + (ZONES % 3) + VALUES + 0.3 * RNG.normal(size=N)
WEIGHTED = {"": None, "weights": RNG.choice([0.0, 0.5, 2.0], N)}
SHARES = "the rarest of which share a bin"
FOREST = {"n_estimators": 3, "min_samples_leaf": 5, "random_state": 0}

ignores_it = pytest.mark.filterwarnings(f"ignore:.*{SHARES}")


def rare_by_hand(column, n_bins):
    """The categories beyond the most frequent, of equal ones those that come first."""
    counts = Counter(column[~pd.isna(column)].tolist())
    if len(counts) <= n_bins:
        return set()
    order = sorted(sorted(counts), key=counts.__getitem__)
    return set(order[: len(counts) - n_bins + 1])


def as_floats(*columns):
    columns = [column.astype(float) for column in columns]
    columns[0][::9] = np.nan
    return np.column_stack([*columns, VALUES])


def as_bytes(*columns):
    return np.column_stack([*columns, (4 * VALUES).astype(np.int8)])


def as_pandas(*columns):
    frame = pd.DataFrame({"value": VALUES})
    for name, column in zip("pq", columns, strict=True):
        texts = np.where(column == 3, None, column.astype(str).astype(object))
        frame[name] = pd.Categorical(texts)
    return frame[["p", "value", "q"]]


def as_polars(*columns):
    """Without missing values, which scikit-learn takes for a category here."""
    frame = pl.DataFrame({"value": VALUES, "p": columns[0], "q": columns[1]})
    texts = pl.col("p", "q").cast(pl.String)
    return frame.with_columns(texts.cast(pl.Categorical))


def as_numbers_of_pandas(*columns):
    return pd.DataFrame(as_floats(*columns), columns=["p", "q", "value"])


FORMS = {
    as_floats: [0, 1], as_bytes: [True, True, False], as_pandas: "from_dtype",
    as_polars: "from_dtype", as_numbers_of_pandas: ["p", "q"],
}  # fmt: skip


def rows(form, n_bins):
    """X, and X with the rare categories replaced by one that sorts last by hand."""
    numbers = form in (as_floats, as_bytes, as_numbers_of_pandas)
    last = 99 if numbers else "~"
    X = form(SHOPS, ZONES)
    frame = X.to_pandas() if form is as_polars else pd.DataFrame(X)
    n_shared = {}
    for i, name in enumerate("pq"):
        column = i if isinstance(X, np.ndarray) else name
        values = frame[column].astype(object)
        rare = rare_by_hand(values.to_numpy(), n_bins)
        n_shared[name] = len(rare)
        collapsed = values.where(~values.isin(rare), last)
        frame[column] = collapsed.astype(float if numbers else "category")
    if isinstance(X, np.ndarray):
        frame = frame.to_numpy()
    return X, frame, n_shared


@ignores_it
@on_grid("form n_bins weights", list(FORMS), [2, 7, 20], WEIGHTED, every=4)
def test_trees_are_those_of_columns_collapsed_by_hand(form, n_bins, weights):
    """Rows count alike, whatever they weigh; missing values count for nothing."""
    X, by_hand, n_shared = rows(form, n_bins)
    assert n_shared["p"] > 1
    params = {"max_bins": n_bins, "categorical_features": FORMS[form]}
    early = {"early_stopping": True, "max_iter": 9}
    for theirs, target, more in (
        (stock, "real", {}), (stock, "binary", early),
        (ours, "real", CRITERIA["directional"] | early),
    ):  # fmt: skip
        y = Y if target == "real" else Y > 1
        eras = {} if theirs is stock else {"eras": ERAS}
        other = theirs(target, **params, **more).fit(by_hand, y, weights, **eras)
        model = ours(target, **params, **more).fit(X, y, weights, **eras)
        assert any(tree.nodes["is_categorical"].any() for tree in trees_of(model))
        assert model.n_iter_ == other.n_iter_
        assert_array_equal(model._raw_predict(X), other._raw_predict(by_hand))
    for forest in (EraForestRegressor, EraForestClassifier):
        y = Y if forest is EraForestRegressor else Y > 1
        model = forest(**FOREST, **params)
        other = clone(model).fit(by_hand, y, weights)
        model.fit(X, y, weights)
        assert_array_equal(model._raw_predict(X), other._raw_predict(by_hand))


@pytest.mark.parametrize("form", FORMS)
def test_trees_are_scikit_learns_where_categories_have_bins_of_their_own(form):
    X = form(SHOPS, ZONES)
    params = {"max_bins": 40, "categorical_features": FORMS[form]}
    model = ours(**params).fit(X, Y)  # without a warning
    assert_same_model(model, stock(**params).fit(X, Y), X)


@pytest.mark.parametrize("n_categories", [255, 256, 2000])
def test_more_than_255_categories(n_categories):
    shops = np.r_[np.arange(n_categories), RNG.integers(0, 254, 3000)]
    X, y = np.c_[RNG.normal(size=(2, shops.size)).T, shops], np.sin(shops)
    model, by_hand = ours(max_bins=255, categorical_features=[2]), X.copy()
    if n_categories == 255:
        model.fit(X, y)
    else:
        n_rare = n_categories - 254
        message = rf"255 categories, {SHARES}: {n_rare:,} of column 2 \("
        with pytest.warns(UserWarning, match=message) as caught:
            model.fit(X, y)
        assert [warning.filename for warning in caught] == [__file__]
        by_hand[np.isin(X[:, 2], list(rare_by_hand(X[:, 2], 255))), 2] = 1e6
    other = stock(max_bins=255, categorical_features=[2]).fit(by_hand, y)
    assert_array_equal(model.predict(X), other.predict(by_hand))


def test_one_warning_names_the_columns():
    frame = pd.DataFrame({f"c{i}": pd.Categorical(SHOPS) for i in range(7)})
    counts = np.sort(np.unique(SHOPS, return_counts=True)[1])[:-29]
    each = f"{counts.size} of column 'c4' \\({counts.sum()} rows\\)"
    message = f"{each} and those of 2 more columns.$"
    with pytest.warns(UserWarning, match=message) as all_:
        ours(max_bins=30).fit(frame, Y)
    assert len(all_) == 1


@pytest.fixture
def fitted():
    """A model, its X, a rare category, one that is not, and the bin of each."""
    X = as_pandas(SHOPS, ZONES)
    with pytest.warns(UserWarning, match=SHARES):
        model = ours(max_bins=8, **CRITERIA["directional"]).fit(X, Y, eras=ERAS)
    return model, X, rare_by_hand(X["p"].to_numpy(), 8)


def at(X, value):
    return X.assign(p=pd.Categorical([value] * len(X), categories=[value or "x"]))


def test_rare_categories_go_together_and_new_ones_as_missing(fitted, monkeypatch):
    model, X, rare = fitted
    shared, *others = (model.predict(at(X, value)) for value in sorted(rare))
    assert others
    for predicted in others:
        assert_array_equal(predicted, shared)
    missing = model.predict(at(X, None))
    assert_array_equal(model.predict(at(X, "new")), missing)
    assert (missing != shared).any()
    expected = model.predict(X)
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 300)  # rows are converted in blocks
    assert_array_equal(model.predict(X), expected)


def test_every_copy_predicts_the_same(fitted, tmp_path):
    model, X, rare = fitted
    save_model(model, tmp_path / "model.era")
    loaded, _ = load_model(tmp_path / "model.era")
    copies = [pickle.loads(pickle.dumps(model)), loaded, to_sklearn(model)]
    for copied in copies:
        for rows in (X, at(X, None), at(X, "new"), at(X, min(rare))):
            assert_array_equal(copied.predict(rows), model.predict(rows))
    assert b"sklearn_era" not in pickle.dumps(copies[-1])


@pytest.mark.parametrize("change", [
    lambda a: a[:-1], lambda a: a[::-1], lambda a: a + 99,
    lambda a: a * 1.0, lambda a: a[:0], lambda a: a.reshape(1, -1),
], ids=range(6))  # fmt: skip
def test_other_shared_bins_in_a_model_file_are_refused(fitted, tmp_path, change):
    path = tmp_path / "model.era"
    save_model(fitted[0], path)
    forgery = Forgery(path)
    number = forgery.attribute("_preprocessor")[0][1]["array"]
    forgery.arrays[number] = change(forgery.arrays[number])
    forgery.write(path)
    with pytest.raises(ModelFileError, match="is damaged"):
        load_model(path)


@ignores_it
def test_statistics_name_all_categories_on_the_left():
    X = as_pandas(SHOPS, ZONES)[["p"]]
    rare = rare_by_hand(X["p"].to_numpy(), 8)
    is_rare = X["p"].isin(rare)
    model = ours("binary", max_bins=8, max_iter=1).fit(X, is_rare)
    (left, *_) = split_statistics(model, X, is_rare, eras=ERAS).left_categories
    assert set(left) in (rare, set(X["p"].dropna()) - rare)


@ignores_it
def test_validation_rows_have_the_bins_of_training_rows():
    X, by_hand, _ = rows(as_floats, 8)
    params = {"max_bins": 8, "categorical_features": [0, 1], "early_stopping": True}
    first, second = np.arange(N) < 600, np.arange(N) >= 600
    given = {"X_val": X[second], "y_val": Y[second]}
    model = ours(**params).fit(X[first], Y[first], **given)
    for j in (0, 1):  # by the training rows
        rare = list(rare_by_hand(X[first, j], 8))
        known = np.isin(X[:, j], X[first, j])
        by_hand[:, j] = np.where(np.isin(X[:, j], rare), 99, X[:, j])
        by_hand[~known, j] = np.nan
    given = {"X_val": by_hand[second], "y_val": Y[second]}
    other = stock(**params).fit(by_hand[first], Y[first], **given)
    assert_array_equal(model.validation_score_, other.validation_score_)


@ignores_it
@pytest.mark.parametrize(("new", "name"), [
    (ours, "max_iter"), (lambda **p: EraForestRegressor(**FOREST | p), "n_estimators"),
], ids=["booster", "forest"])  # fmt: skip
def test_warm_start(new, name):
    X, by_hand, _ = rows(as_pandas, 8)
    model, other = (new(max_bins=8, warm_start=True) for _ in "ab")
    for n in (2, 4):
        model.set_params(**{name: n}).fit(X, Y)
        other.set_params(**{name: n}).fit(by_hand, Y)
    assert_array_equal(model.predict(X), other.predict(by_hand))
    # The same categories, of which other ones are rare.
    frequent = X["p"].value_counts().index[0]
    kept = (X["p"] != frequent) | ~X["p"].duplicated()
    model.set_params(**{name: 6})
    with pytest.raises(ValueError, match="other categories in them or in a shared bin"):
        model.fit(X[kept], Y[kept])


@ignores_it
def test_rules():
    rng = np.random.default_rng(0)
    n = 4000
    shops = np.where(rng.random(n) < 0.5, rng.integers(0, 254, n), np.arange(n) % 700)
    frame = pd.DataFrame({"shop": shops.astype(str)}).astype("category")
    rare = rare_by_hand(frame["shop"].to_numpy(), 255)
    y = frame["shop"].isin(rare) ^ (rng.random(n) < 0.1)
    texts = frame["shop"].astype(object)
    by_hand = texts.where(~texts.isin(rare), "~").astype("category").to_frame()
    model = RuleEnsembleClassifier(n_estimators=3, random_state=0).fit(frame, y)
    other = clone(model).fit(by_hand, y)
    assert_array_equal(model.predict_proba(frame), other.predict_proba(by_hand))
    texts = "\n".join(other.rules_.text)
    assert "~" in texts
    named = texts.replace("= ~", f"= one of {len(rare)} others")
    assert "\n".join(model.rules_.text) == named
