"""Columns of more categories than bins: similar ones share one, as if by hand."""

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from helpers.criteria import CRITERIA
from helpers.estimators import ours, stock
from helpers.grids import on_grid
from helpers.model_files import Forgery
from helpers.trees import assert_same_model, trees_of
from sklearn_era.ensemble import EraForestClassifier, EraForestRegressor
from sklearn_era.ensemble._binning import rare_categories
from sklearn_era.ensemble._binning.rare_categories import encoder_of, set_bins
from sklearn_era.ensemble._boosters.estimators import SymmetricRegressor
from sklearn_era.ensemble._prediction import blocks
from sklearn_era.inspection import split_statistics
from sklearn_era.interop import to_sklearn
from sklearn_era.model_files import ModelFileError, load_model, save_model
from sklearn_era.rules import RuleEnsembleClassifier

N, RNG = 900, np.random.default_rng(0)
SHOPS = np.minimum(RNG.geometric(0.06, N), 40).astype(np.int8)
ZONES, ERAS = RNG.integers(0, 12, N).astype(np.int8), np.arange(N) % 4
VALUES = RNG.normal(size=N)
Y = np.sin(9.0 * SHOPS) + (ZONES % 3) + VALUES + 0.3 * RNG.normal(size=N)
WEIGHTED = {"": None, "weights": RNG.choice([0.0, 0.5, 2.0], N)}
FOREST = {"n_estimators": 3, "min_samples_leaf": 5, "random_state": 0}


def estimates_by_hand(values, parts, y, w):
    """The effect of each category, and that in other parts than each, cell by cell."""
    groups = pd.Series(range(y.size)).groupby([values, parts]).indices
    means = {key: np.average(y[rows], weights=w[rows]) for key, rows in groups.items()}
    cells = {key: (w[rows].sum(), means[key], rows) for key, rows in groups.items()}
    total, names = w.sum(), sorted({name for name, _ in cells})
    mean = np.average(y, weights=w)
    n = {a: sum(c[0] for k, c in cells.items() if k[0] == a) for a in names}
    m = {a: sum(c[0] * c[1] for k, c in cells.items() if k[0] == a) / n[a] for a in n}
    squares = {a: sum(c[0] ** 2 for k, c in cells.items() if k[0] == a) for a in names}
    within = sum((w[c[2]] * (y[c[2]] - c[1]) ** 2).sum() for c in cells.values())
    noise = within / (total - len(cells))
    between_cells = sum(c[0] * (c[1] - m[k[0]]) ** 2 for k, c in cells.items())
    spare = sum(squares[a] / n[a] for a in names)
    of_eras = between_cells - noise * (len(cells) - len(names))
    of_eras = max(of_eras, 0) / (total - spare)
    between = sum(n[a] * (m[a] - mean) ** 2 for a in names) - noise * (len(names) - 1)
    between -= of_eras * (spare - sum(squares.values()) / total)
    between = max(between, 0) / (total - sum(n[a] ** 2 for a in names) / total)

    def effect(name, left_out=None):
        own = [c for k, c in cells.items() if k[0] == name and k[1] != left_out]
        p = [(between / (of_eras + noise / c[0]), c[1] - mean) for c in own]
        if not p:
            return np.nan
        return round(sum(a * b for a, b in p) / (1 + sum(a for a, _ in p)), 10)

    return {a: effect(a) for a in names}, {k: effect(*k) for k in cells}


def bins_by_hand(values, y, w, eras, n_bins):
    """The bin of each category, and of each row; NaN for that of missing values."""
    known = np.flatnonzero(~pd.isna(values))
    values, y = values[known], y[known].astype(float)
    w = np.ones(y.size) if w is None else w[known]
    every, size, used = values, known.size, np.flatnonzero(w > 0)
    known, values, y, w = known[used], values[used], y[used], w[used]
    sums = pd.Series(w).groupby(values).sum() * (w.size / w.sum())
    w = w * (w.size / w.sum())
    places = pd.Series(values).groupby(values).cumcount().to_numpy()
    parts = places % 5 if eras is None else eras[known]
    for part in np.unique(parts):
        own = parts == part
        y[own] -= np.average(y[own], weights=w[own])
    y /= np.sqrt(np.average(y**2, weights=w))
    effects, elsewhere = estimates_by_hand(values, parts, y, w)
    names = sorted(set(every.tolist()))
    n = {a: sums.get(a, 0.0) for a in names}
    effects = {a: effects.get(a, 0.0) for a in names}
    if len(names) <= n_bins:
        return {a: i for i, a in enumerate(names)}, None
    frequent, most = sorted(names, key=lambda a: -n[a]), max(1, n_bins // 4)
    frequent = frequent[: max(n_bins - most, 2 * n_bins - len(names))]
    own = sorted(a for a in frequent if n[a] >= 20)
    others = sorted((a for a in names if a not in own), key=effects.__getitem__)
    rows = sum(n[a] for a in others)
    n_groups = min(n_bins - len(own), most, int(rows // 20))
    edges, seen, last = [], 0.0, None
    for a in others if n_groups > 1 else ():
        group = int((seen + n[a] / 2) * n_groups / rows)
        if last is not None and group != last[0]:
            edges.append((effects[last[1]] + effects[a]) / 2)
        seen, last = seen + n[a], (group, a)

    def place(effect):
        return len(own) + sum(edge < effect for edge in set(edges))

    bins = {a: place(effects[a]) for a in others} | {a: i for i, a in enumerate(own)}
    of_rows = np.array([bins[a] for a in every.tolist()], dtype=float)
    for row, a, part in zip(used, values.tolist(), parts, strict=True):
        if n[a] < 20:
            effect = elsewhere[a, part]
            of_rows[row] = np.nan if np.isnan(effect) else place(effect)
    assert size == of_rows.size
    return bins, of_rows


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
    """Without nulls, which scikit-learn takes for a category where a bin is left."""
    frame = pl.DataFrame({"value": VALUES, "p": columns[0], "q": columns[1]})
    return frame.with_columns(pl.col("p", "q").cast(pl.String).cast(pl.Categorical))


def as_numbers_of_pandas(*columns):
    return pd.DataFrame(as_floats(*columns), columns=["p", "q", "value"])


FORMS = {as_floats: [0, 1], as_bytes: [True, True, False], as_pandas: "from_dtype",
         as_polars: "from_dtype", as_numbers_of_pandas: ["p", "q"]}  # fmt: skip


def frame_of(X):
    return X.to_pandas() if isinstance(X, pl.DataFrame) else pd.DataFrame(X)


def binned_by_hand(X, names, y, w, eras, n_bins):
    """X with bins for categories: of training rows, and of rows to predict."""
    frame = frame_of(X)
    training, others = frame.copy(), frame.copy()
    for name in names:
        values = frame[name].astype(object).to_numpy()
        bins, of_rows = bins_by_hand(values, y, w, eras, n_bins)
        others[name] = [np.nan if pd.isna(a) else bins[a] for a in values]
        training[name] = others[name]
        if of_rows is not None:
            training.loc[~pd.isna(values), name] = of_rows
    return training, others


@on_grid(
    "form n_bins weights eras",
    list(FORMS), [4, 7, 20], WEIGHTED, {"": None, "eras": ERAS}, every=5)  # fmt: skip
def test_trees_are_those_of_columns_binned_by_hand(form, n_bins, weights, eras):
    X = form(SHOPS, ZONES)
    names = [0, 1] if isinstance(X, np.ndarray) else ["p", "q"]
    params = {"max_bins": n_bins, "categorical_features": FORMS[form]}
    by_hand = params | {"categorical_features": names}
    own, n_rows_right = {"eras": eras} if eras is not None else {}, 0
    for make, more in ((ours, {}), (EraForestRegressor, FOREST)):
        for of_class in (False, True) if make is ours else (False,):
            y = Y > 1 if of_class else Y
            mean = np.average(y, weights=weights)
            training, others = binned_by_hand(X, names, y - mean, weights, eras, n_bins)
            target = ("binary" if of_class else "real",) if make is ours else ()
            model = make(*target, **params, **more).fit(X, y, weights, **own)
            other = make(*target, **by_hand, **more).fit(training, y, weights, **own)
            assert any(tree.nodes["is_categorical"].any() for tree in trees_of(model))
            # Bins without a training row are unknown to the other model.
            known = np.all([others[a].isin(training[a]) for a in names], axis=0)
            assert known.mean() > 0.8
            n_rows_right += known.sum()
            right = other._raw_predict(others[known])
            assert_array_equal(model._raw_predict(X)[known], right)
    assert n_rows_right


@pytest.mark.parametrize("form", FORMS)
def test_trees_are_scikit_learns_where_categories_have_bins_of_their_own(form):
    X = form(SHOPS, ZONES)
    params = {"max_bins": 40, "categorical_features": FORMS[form]}
    model = ours(**params).fit(X, Y)  # without a warning
    assert_same_model(model, stock(**params).fit(X, Y), X)


NULLS = {
    "polars": lambda a: pl.DataFrame({"p": pl.Series(a, dtype=pl.Categorical)}),
    "polars text": lambda a: pl.DataFrame({"p": a}),
    "pandas": lambda a: pd.DataFrame({"p": a}, dtype=object),
    "and NaN": lambda a: pd.DataFrame({"p": [a[0] or np.nan, *a[1:]]}, dtype=object),
    "arrow": lambda a: pa.table({"p": pa.array(a).dictionary_encode()}),
    "arrow text": lambda a: pa.table({"p": a}),
}


@on_grid("make_X max_bins", NULLS, [39, 8], every=2)
@pytest.mark.parametrize("make", [
    ours, SymmetricRegressor, lambda **params: EraForestRegressor(**FOREST | params),
], ids=["booster", "symmetric", "forest"])  # fmt: skip
def test_none_is_missing_if_it_is_a_category_too_many(make_X, max_bins, make, tmp_path):
    """As NaN is, in the fit and in rows to predict, of any type."""
    names = [None if i == 0 or shop == 3 else str(shop) for i, shop in enumerate(SHOPS)]
    X, frame = make_X(names), pd.DataFrame({"p": pd.Categorical(names)})
    model = make(max_bins=max_bins, categorical_features=["p"])
    other = clone(model).fit(frame, Y, eras=ERAS)
    expected = other.predict(frame)
    copies = [other, model.fit(X, Y, eras=ERAS)]
    if make is not SymmetricRegressor:
        save_model(model, tmp_path / "model.era")
        copies.append(load_model(tmp_path / "model.era")[0])
        texts = pd.DataFrame({"p": names}, dtype=object)
        assert_array_equal(to_sklearn(model).predict(texts), expected)
    for each, rows in itertools.product(copies, (X, frame)):
        assert_array_equal(each.predict(rows), expected)


@pytest.mark.parametrize("make", [ours, lambda: EraForestRegressor(**FOREST)])
def test_columns_are_found_by_name_with_unknown_categories(make):
    """In any order, and beside others, as scikit-learn finds them."""
    frame = as_pandas(SHOPS, ZONES)
    model = make().fit(frame, Y)
    unknown = frame.assign(q=frame["q"].cat.rename_categories({"4": "new"}), more=1.5)
    expected = model.predict(unknown[frame.columns])
    assert_array_equal(model.predict(unknown[["more", "q", "p", "value"]]), expected)


@pytest.mark.parametrize("n_categories", [300, 2000])
@pytest.mark.parametrize("make", [
    lambda: ours(max_iter=150, max_bins=255), lambda: EraForestRegressor(**FOREST),
], ids=["booster", "forest"])  # fmt: skip
def test_no_category_is_worse_off_for_its_rank(n_categories, make):
    """Those that come first or last, of equally frequent ones, are as well known."""
    rng = np.random.default_rng(1)
    week, shop = np.divmod(np.arange(60 * n_categories), n_categories)
    effects = rng.normal(size=n_categories)
    y = effects[shop] + 0.5 * rng.normal(size=shop.size)
    X = pd.DataFrame({"shop": pd.Categorical([f"S{i:04d}" for i in shop])})
    past = week < 55
    model = make().fit(X[past], y[past], eras=week[past])
    error = (model.predict(X[:n_categories]) - effects) ** 2
    assert error[:46].mean() < 2 * error.mean() + 0.02
    assert error[-46:].mean() < 2 * error.mean() + 0.02
    assert error.mean() < 0.05


@pytest.mark.parametrize("eras", [None, np.arange(4000) % 8], ids=["rows", "eras"])
def test_noise_of_thousands_of_categories_is_not_fitted(eras):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": pd.Categorical(rng.integers(0, 2000, 8000).astype(str))})
    y, given = rng.normal(size=8000), {} if eras is None else {"eras": eras}
    model = ours(max_bins=255, max_iter=100).fit(X[:4000], y[:4000], **given)
    assert model.score(X[4000:], y[4000:]) > -0.05


def test_categories_of_a_single_era_count_as_missing():
    """Other eras know nothing of them, as of those of new eras."""
    n = 800
    eras, patients = np.arange(n) // 100, np.arange(n) // 2
    X = pd.DataFrame({"id": pd.Categorical(patients), "x": np.arange(n) % 7})
    y, model = np.repeat(RNG.normal(size=n // 2), 2), ours(max_bins=255)
    with pytest.warns(UserWarning, match="column 'id' .* each in a single era") as all_:
        model.fit(X, y, eras=eras)
    assert len(all_) == 1
    assert not any(tree.nodes["is_categorical"].any() for tree in trees_of(model))


def test_classes_are_one_line_for_all():
    """The means of categories lie on it: with two classes as by the first alone."""
    shops = RNG.integers(0, 400, 6000)
    X = pd.DataFrame({"shop": pd.Categorical(shops)})
    y = (np.sin(shops) + 0.3 * RNG.normal(size=6000) > 0) * 1 + (shops % 5 == 0)
    assert (EraForestClassifier(**FOREST).fit(X, y).predict(X) == y).mean() > 0.8
    booster = ours("multiclass", max_iter=50, max_bins=255).fit(X, y)
    assert (booster.predict(X) == y).mean() > 0.8


@pytest.fixture
def fitted():
    """A model, its X, and the bin of each category of the first column."""
    X = as_pandas(SHOPS, ZONES)
    model = ours(max_bins=8, **CRITERIA["directional"]).fit(X, Y, eras=ERAS)
    bins, _ = bins_by_hand(np.array(X["p"], object), Y - Y.mean(), None, ERAS, 8)
    return model, X, bins


def at(X, value):
    return X.assign(p=pd.Categorical([value] * len(X), categories=[value or "x"]))


def test_categories_of_a_bin_go_together_and_new_ones_as_missing(fitted, monkeypatch):
    model, X, bins = fitted
    of_bins = {}
    for value, place in bins.items():
        predicted = model.predict(at(X, value))
        assert_array_equal(predicted, of_bins.setdefault(place, predicted))
    assert 1 < len(of_bins) < len(bins)
    missing = model.predict(at(X, None))
    assert_array_equal(model.predict(at(X, "new")), missing)
    assert all((missing != predicted).any() for predicted in of_bins.values())
    expected = model.predict(X)
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 300)  # rows are converted in blocks
    assert_array_equal(model.predict(X), expected)


def test_every_copy_predicts_the_same(fitted, tmp_path):
    model, X, bins = fitted
    save_model(model, tmp_path / "model.era")
    loaded, _ = load_model(tmp_path / "model.era")
    copies = [pickle.loads(pickle.dumps(model)), loaded, to_sklearn(model)]
    for copied in copies:
        for rows in (X, at(X, None), at(X, "new"), *(at(X, value) for value in bins)):
            assert_array_equal(copied.predict(rows), model.predict(rows))
    assert b"sklearn_era" not in pickle.dumps(copies[-1])


def forge_bins(model, path, change):
    """Save the model, with other bins of its first column's categories."""
    save_model(model, path)
    forgery = Forgery(path)
    number = forgery.attribute("_preprocessor")[0][1]["array"]
    forgery.arrays[number] = change(forgery.arrays[number])
    forgery.write(path)


@pytest.mark.parametrize("change", [
    lambda a: a[:-1], lambda a: a - 1, lambda a: a + 99,
    lambda a: a * 1.0, lambda a: a.reshape(1, -1)], ids=range(5))  # fmt: skip
def test_other_bins_in_a_model_file_are_refused(fitted, tmp_path, change):
    forge_bins(fitted[0], tmp_path / "m.era", change)
    with pytest.raises(ModelFileError, match="is damaged"):
        load_model(tmp_path / "m.era")


def test_files_of_before_name_those_that_share_the_last_bin(fitted, tmp_path):
    bins = np.roll(np.arange(len(fitted[2])).clip(max=7), 3)
    set_bins(encoder_of(fitted[0]), 0, bins)
    forge_bins(fitted[0], tmp_path / "m.era", lambda a: np.flatnonzero(bins == 7))
    model, _ = load_model(tmp_path / "m.era")
    loaded = rare_categories.codes_of_categories(encoder_of(model), 0)
    assert_array_equal(loaded[bins < 7], np.arange((bins < 7).sum()))
    assert (loaded[bins == 7] == 7).all()


def test_statistics_name_all_categories_on_the_left():
    X = as_pandas(SHOPS, ZONES)[["p"]]
    values = X["p"].astype(object).to_numpy()
    model = ours(max_bins=8, max_iter=1).fit(X, Y)
    bins, _ = bins_by_hand(values, Y - Y.mean(), None, None, 8)
    for left in split_statistics(model, X, Y, eras=ERAS).left_categories:
        of_left = {bins[a] for a in left}
        assert set(left) == {a for a, place in bins.items() if place in of_left}


def test_validation_rows_have_no_part_in_bins():
    X = as_floats(SHOPS, ZONES)
    params = {"max_bins": 8, "categorical_features": [0, 1], "early_stopping": True}
    first, second = np.arange(N) < 600, np.arange(N) >= 600
    scores = []
    for y in (Y, np.where(first, Y, 2 * Y)):
        model = ours(**params).fit(X[first], y[first], X_val=X[second], y_val=y[second])
        alone = ours(**params | {"early_stopping": False}, max_iter=1)
        alone.fit(X[first], y[first])
        assert_array_equal(*(trees_of(x)[0].nodes["value"] for x in (model, alone)))
        loss = np.mean((alone.predict(X[second]) - y[second]) ** 2) / 2
        np.testing.assert_allclose(-model.validation_score_[1], loss, rtol=1e-12)
        scores.append(loss)
    assert scores[0] != scores[1]


@pytest.mark.parametrize(("new", "name"), [
    (ours, "max_iter"), (lambda **p: EraForestRegressor(**FOREST | p), "n_estimators"),
], ids=["booster", "forest"])  # fmt: skip
def test_warm_start(new, name):
    X, model = as_pandas(SHOPS, ZONES), new(max_bins=8, warm_start=True)
    for n in (2, 4):
        model.set_params(**{name: n}).fit(X, Y)
    whole = new(max_bins=8, **{name: 4}).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-12)
    # The same categories, of which others share bins.
    model.set_params(**{name: 6})
    with pytest.raises(ValueError, match="other categories in them or in a shared bin"):
        model.fit(X, -(Y**3))


@pytest.mark.filterwarnings("ignore:.*the rarest of which share a bin")
def test_rules():
    rng, n = np.random.default_rng(0), 4000
    shops = np.where(rng.random(n) < 0.5, rng.integers(0, 254, n), np.arange(n) % 700)
    frame = pd.DataFrame({"shop": shops.astype(str)}).astype("category")
    counts = frame["shop"].value_counts(sort=False)  # of equal ones the first are rare
    rare = set(counts.sort_values(kind="stable").index[: counts.size - 254])
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
    names = [None if shop < 40 else str(shop) for shop in shops]
    frames = pl.DataFrame({"shop": pl.Series(names, dtype=pl.Categorical)}), frame
    frame["shop"] = pd.Categorical(names)
    one, other = (clone(model).fit(X, y).predict_proba(X) for X in frames)
    assert_array_equal(one, other)
