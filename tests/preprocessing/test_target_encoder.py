"""Categories by the targets of other eras: by brute force, and that nothing leaks."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from helpers.grids import on_grid, slow
from sklearn_era.ensemble import HistGradientBoostingRegressor as Booster
from sklearn_era.model_files import load_model, save_model
from sklearn_era.model_selection import EraSearchCV
from sklearn_era.preprocessing import EraTargetEncoder

RNG = np.random.default_rng(0)
ERAS = RNG.permutation(np.repeat(range(9), [20, 5, 40, 30, 30, 30, 10, 30, 30]))
CODES = RNG.integers(0, 8, ERAS.size)
Y = RNG.normal(size=8)[CODES] + RNG.normal(size=(8, 9))[CODES, ERAS]
Y = Y + 3 * ERAS + RNG.normal(size=ERAS.size)
WEIGHTS, X = RNG.integers(1, 4, ERAS.size).astype(float), CODES[:, np.newaxis]
EVERY = {"variation": True, "count": True}


def variances(c, e, d, w):
    """Searle, Casella and McCulloch's, by sums of squares of single rows."""

    def explained(groups):
        parts = [groups == x for x in np.unique(groups)]
        return sum((w @ (d * rows)) ** 2 / w[rows].sum() for rows in parts)

    def share(groups, inner):
        """The sum over groups of their inner groups' squares, by their size."""
        found = 0.0
        for x in np.unique(groups):
            rows = groups == x
            n = [w[rows & (inner == i)].sum() for i in np.unique(inner[rows])]
            found += np.sum(np.square(n)) / w[rows].sum()
        return found

    cell, one, n = 100 * c + e, np.zeros_like(c), w.sum()
    n_cells, n_categories = (len(np.unique(x)) for x in (cell, c))
    noise = (w @ d**2 - explained(cell)) / (n - n_cells)
    between = explained(cell) - explained(c) - noise * (n_cells - n_categories)
    between = max(0.0, between / (n - share(c, cell)))
    rest = explained(c) - explained(one) - noise * (n_categories - 1)
    rest -= between * (share(c, cell) - share(one, cell))
    return noise, between, max(0.0, rest / (n - share(one, c)))


def by_hand(c, e, y, w, asked, rows, known=None):
    """What some rows tell of a category: its effect, variation and count."""
    w = w * w.sum() / (w @ w)
    means = {x: np.average(y[e == x], weights=w[e == x]) for x in np.unique(e)}
    d, known = y - np.array([means[x] for x in e]), rows if known is None else known
    noise, between, of_effects = variances(*(x[known] for x in (c, e, d, w)))
    eras = np.unique(e[rows & (c == asked)])
    cells = [rows & (c == asked) & (e == x) for x in eras]
    p = np.array([1 / (between + noise / w[x].sum()) for x in cells])
    if not cells:
        return 0.0, np.sqrt(between * 4 / 4), 0.0
    own = np.array([np.average(d[x], weights=w[x]) for x in cells])
    mean = p @ own / p.sum()
    share = (p @ (own - mean) ** 2 + 4) / (len(eras) + 3)
    effect = mean * p.sum() / (p.sum() + 1 / of_effects) if of_effects else 0.0
    return effect, np.sqrt(between * share), w[rows & (c == asked)].sum()


@pytest.mark.parametrize("era_order", ["ordered", "unordered"])
def test_effects_are_those_by_hand(era_order):
    encoder = EraTargetEncoder(target_type="continuous", era_order=era_order, **EVERY)
    found = encoder.fit_transform(X, Y, eras=ERAS, sample_weight=WEIGHTS)
    # Variances are estimated when eras have become more by half.
    stretches = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 4, 6: 6, 7: 6, 8: 6, 9: 9}
    for era in range(10):
        rows = np.flatnonzero(era == ERAS)[:4]
        others, known = era > ERAS, stretches[era] > ERAS
        if era_order == "unordered":
            others = known = era % 5 != ERAS % 5 if era < 9 else ERAS >= 0
        for i in rows if era < 9 else range(4):
            values = encoder.transform(X[[i]])[0] if era == 9 else found[i]
            expected = (0.0, 0.0, 0.0)
            if others.any():
                expected = by_hand(CODES, ERAS, Y, WEIGHTS, CODES[i], others, known)
            if era_order == "unordered":
                n = WEIGHTS[CODES[i] == CODES].sum()
                n *= WEIGHTS.sum() / (WEIGHTS @ WEIGHTS)
                expected = *expected[:2], n
            assert_allclose(values, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-9, 1e6, 1e12])
@pytest.mark.parametrize("smooth", ["auto", 10.0, 0.0])
@pytest.mark.parametrize("effects", ["some", "none"])
def test_units_of_targets_are_free(unit, smooth, effects):
    y = Y if effects == "some" else np.random.default_rng(4).normal(size=Y.size)
    params = {"target_type": "continuous", "smooth": smooth, **EVERY}
    encoder = EraTargetEncoder(categorical_features=[0], relative=[1], **params)
    of_one, of_unit = (
        encoder.fit_transform(np.c_[CODES, x * y], x * y, eras=ERAS) for x in (1, unit)
    )
    assert_allclose(of_unit / [unit, unit, 1, unit], of_one, rtol=1e-9, atol=1e-9)
    encoder.set_params(smooth="auto")
    auto = encoder.fit_transform(np.c_[CODES, y], y, eras=ERAS)
    assert_array_equal(of_one[:, 1], auto[:, 1])  # the variation has no `smooth`
    assert of_one[:, 1].any()


def test_no_later_target_changes_what_is_known():
    encoder = EraTargetEncoder(target_type="continuous", **EVERY)
    before = encoder.fit_transform(X, Y, eras=ERAS)
    assert not before[ERAS == 0].any()
    for era in range(9):
        changed = np.where(era <= ERAS, RNG.normal(0, 9, Y.size), Y)
        found = clone(encoder).fit_transform(X, changed, eras=ERAS)
        assert_allclose(found[era >= ERAS], before[era >= ERAS], atol=1e-12)
        assert np.allclose(found, before, atol=1e-12) == (era == 8)


def make_effects(seed, spread, of_effects, n_eras=30, n_rows=600, n_categories=300):
    rng, eras = np.random.default_rng(seed), np.repeat(np.arange(n_eras), n_rows)
    codes = rng.integers(0, n_categories, eras.size)
    b = of_effects * rng.normal(size=n_categories)
    y = b[codes] + spread * rng.normal(size=(n_categories, n_eras))[codes, eras]
    return codes[:, None], y + rng.normal(size=eras.size), eras, b


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_effects_are_as_good_as_with_known_variances(spread):
    rows, y, eras, b = make_effects(0, spread, 0.5)
    encoder = EraTargetEncoder(target_type="continuous").fit(rows, y, eras=eras)
    found, codes = encoder.encodings_[0][:-1, 0], rows[:, 0]
    n = np.array([np.bincount(codes[eras == x], minlength=300) for x in range(30)])
    d = y - np.bincount(eras, y)[eras] / 600
    sums = [np.bincount(codes[eras == x], d[eras == x], 300) for x in range(30)]
    p = np.divide(n, n * spread**2 + 1)
    best = np.sum(p * sums / np.maximum(n, 1), axis=0) / (p.sum(axis=0) + 1 / 0.25)
    assert np.mean((found - b) ** 2) < 1.03 * np.mean((best - b) ** 2)
    raw = np.bincount(codes, d) / np.bincount(codes)
    if spread:
        assert np.mean((found - b) ** 2) < 0.85 * np.mean((raw - b) ** 2)


def make_turning(seed, n_eras=32, n_categories=1500):
    """Categories come and go; their effects in one era say next to nothing of another.
    Returns what can be known of the last eras, too.
    """
    rng = np.random.default_rng(seed)
    shown = [rng.choice(n_categories, 100, replace=False) for _ in range(n_eras)]
    codes, eras = np.repeat(shown, 5), np.repeat(np.arange(n_eras), 500)
    x, b = rng.normal(size=codes.size), 0.3 * rng.normal(size=n_categories)
    turning = 2 * rng.normal(size=(n_categories, n_eras))[codes, eras]
    best, frame = b[codes] + x, pd.DataFrame({"c": codes.astype(str), "x": x})
    frame["c"] = frame["c"].astype("category")
    return frame, best + turning + rng.normal(size=codes.size), eras, best


def boosted(rows, y, eras, is_new, encoder):
    """What a booster predicts of categories beside encoded ones."""
    encoder = encoder.set_output(transform="pandas")
    given = {"eras": eras[~is_new]} if isinstance(encoder, EraTargetEncoder) else {}
    columns = rows[["c"]]
    train = encoder.fit_transform(columns[~is_new], y[~is_new], **given)
    test = encoder.transform(columns[is_new])
    encoded = zip((~is_new, is_new), (train, test), strict=True)
    tables = [rows[part].join(table.add_prefix("of_")) for part, table in encoded]
    booster = Booster(learning_rate=0.05, max_iter=100, early_stopping=False)
    booster.fit(tables[0], y[~is_new], eras=eras[~is_new])
    return booster.predict(tables[1])


def of_catboost(rows, y, is_new):
    catboost = pytest.importorskip("catboost")
    params = {"has_time": True, "verbose": 0, "thread_count": 1, "iterations": 300,
              "allow_writing_files": False}  # fmt: skip
    model = catboost.CatBoostRegressor(cat_features=["c"], **params)
    rows = rows.assign(c=rows["c"].astype(str))
    return model.fit(rows[~is_new], y[~is_new]).predict(rows[is_new])


@pytest.mark.filterwarnings("ignore:X has columns of more than")
@pytest.mark.parametrize("peer", ["scikit-learn", slow("catboost")])
def test_effects_that_turn_between_eras_are_not_believed(peer):
    losses = []
    for seed in range(2):
        rows, y, eras, best = make_turning(seed)
        is_new = eras >= 26
        ours = boosted(rows, y, eras, is_new, EraTargetEncoder())
        if peer == "catboost":
            theirs = of_catboost(rows, y, is_new)
        else:
            encoder = TargetEncoder(target_type="continuous")
            theirs = boosted(rows, y, eras, is_new, encoder)
        noise = np.mean((y - best)[is_new] ** 2)
        losses += [np.mean((y[is_new] - p) ** 2) - noise for p in (ours, theirs)]
    ours, theirs = np.reshape(losses, (2, 2)).mean(axis=0)
    assert ours < theirs / 2


@on_grid("era_order how", ["ordered", "unordered"], ["pipeline", "search"], every=2)
def test_noise_tells_nothing(era_order, how):
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(24), 1000)
    rows = rng.integers(0, 5000, (eras.size, 1)).astype(str).astype(object)
    y, train = rng.normal(size=eras.size), eras < 16
    encoder = EraTargetEncoder(era_order=era_order)
    few = Booster(max_iter=5, min_samples_leaf=500, early_stopping=False)
    for last in (Ridge(), few):
        model = make_pipeline(encoder, last)
        if how == "search":
            grid = {"eratargetencoder__smooth": ["auto", 10.0]}
            model = EraSearchCV(model, grid, era_order=era_order, cv=2, scoring="r2")
        with config_context(enable_metadata_routing=True):
            model.fit(rows[train], y[train], eras=eras[train])
        y_test, p = y[~train], model.predict(rows[~train])
        gain = (y_test - y[train].mean()) ** 2 - (y_test - p) ** 2
        of_eras = np.array([gain[eras[~train] == era].mean() for era in range(16, 24)])
        error = of_eras.std(ddof=1) / np.sqrt(of_eras.size)
        assert abs(of_eras.mean()) < 2 * error + 1e-6  # 0 where all is shrunk to 0


@pytest.mark.parametrize("frames", [pd, pl])
def test_text_of_data_frames_is_encoded(frames, tmp_path):
    text = np.array(["a", "b", "c", "d", "e", "f", "g", None], dtype=object)[CODES]
    frame = frames.DataFrame({"era": ERAS, "text": text.tolist(), "number": Y})
    labels = np.digitize(Y, [5, 15])
    of_classes = EVERY | {"target_type": "multiclass"}
    encoder = EraTargetEncoder(**of_classes).set_output(transform=frames.__name__)
    found = encoder.fit_transform(frame, labels, eras="era")
    ends = [f"{kind}_{k}" for kind in ("effect", "variation") for k in range(3)]
    names = [f"text_{end}" for end in [*ends, "count"]]
    assert [*found.columns] == [*encoder.get_feature_names_out()] == names
    assert encoder.categories_[0].tolist() == [*"abcdefg", None]
    for k in range(3):
        one = EraTargetEncoder(target_type="continuous")
        expected = one.fit_transform(X, (labels == k) * 1.0, eras=ERAS)[:, 0]
        assert_allclose(found[f"text_effect_{k}"].to_numpy(), expected, atol=1e-12)
    two = EraTargetEncoder().fit_transform(X, labels == 2, eras=ERAS)[:, 0]
    assert_allclose(two, expected, atol=1e-12)
    plain = EraTargetEncoder(**of_classes).fit(frame, labels, eras="era")
    save_model(plain, tmp_path / "model")
    new = frames.DataFrame({"era": [99, 99], "text": ["a", "new"], "number": [0, 0]})
    loaded, _ = load_model(tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(encoder)), loaded):
        assert_array_equal(np.asarray(copy.transform(frame)), found.to_numpy())
        of_new = np.asarray(copy.transform(new))
        assert_allclose(of_new[0], encoder.encodings_[0][0])
        assert of_new[0, 0]
        assert not of_new[1, [0, 1, 2, 6]].any()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_without_text_all_columns_of_a_frame_are_encoded(make):
    table = np.column_stack([CODES, CODES % 3])
    frame = make({"era": ERAS, "shop": table[:, 0], "kind": table[:, 1]})
    encoder = EraTargetEncoder(target_type="continuous")
    expected = encoder.fit_transform(table, Y, eras=ERAS)
    assert_array_equal(encoder.fit_transform(frame, Y, eras="era"), expected)
    assert_array_equal(encoder.transform(frame), encoder.transform(frame, eras="era"))
    assert [*encoder.get_feature_names_out()] == ["shop_effect", "kind_effect"]


COUNTS = np.round(Y - Y.min())
CLASSES = {
    "flags": np.array([False, True]), "floats": np.array([0.0, 1.0]),
    "names": np.array(["no", "yes"]), "codes": np.array([1, 2], dtype=object),
}  # fmt: skip


@pytest.mark.parametrize("given", [
    COUNTS.astype(np.int64), COUNTS, COUNTS.astype(object),
    pd.Series(COUNTS, dtype="Int64"),
], ids=["whole", "floats", "objects", "nullable"])  # fmt: skip
def test_counts_are_numbers(given):
    found = EraTargetEncoder().fit_transform(X, given, eras=ERAS)
    expected = EraTargetEncoder(target_type="continuous")
    assert_array_equal(found, expected.fit_transform(X, COUNTS, eras=ERAS))


@pytest.mark.parametrize("names", CLASSES.values(), ids=CLASSES)
def test_names_flags_and_two_whole_numbers_are_classes(names):
    encoder = EraTargetEncoder().fit(X, names[(Y > 5) * 1], eras=ERAS)
    assert encoder.target_type_ == "binary"
    assert encoder.classes_.tolist() == names.tolist()


def test_columns_are_chosen_and_slips_named():
    table = np.column_stack([Y, CODES])
    expected = EraTargetEncoder(target_type="continuous").fit_transform(X, Y, eras=ERAS)
    for given in ([1], [False, True]):
        encoder = EraTargetEncoder(categorical_features=given, target_type="continuous")
        assert_array_equal(encoder.fit_transform(table, Y, eras=ERAS), expected)
    with pytest.warns(UserWarning, match="all rows for one era"):
        assert not EraTargetEncoder().fit_transform(X, Y).any()
    for model, targets, match in (
        (EraTargetEncoder(), np.column_stack([Y, Y]), "y should be a 1d array"),
        (EraTargetEncoder(categorical_features=[2]), Y, "there is no column 2"),
        (EraTargetEncoder(categorical_features=[]), Y, r"=\[\] names no column to en"),
        (EraTargetEncoder(), Y[1:], "y has 224 rows, but X has 225"),
        (EraTargetEncoder(), np.append(Y[1:], np.nan), "^Input y contains NaN"),
    ):
        with pytest.raises(ValueError, match=match):
            model.fit(table, targets, eras=ERAS)
    binary = EraTargetEncoder(target_type="binary")
    with pytest.raises(ValueError, match=r"^y has 3 classes, .* pass target_type='mul"):
        binary.fit(X, ERAS % 3, eras=ERAS)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_rows_without_the_column_of_eras_are_of_a_new_one(make):
    columns = {"c": [*map(str, CODES)], "era": ERAS}
    frame, text = make(columns), make({"c": columns["c"]})
    encoder = EraTargetEncoder().fit(frame, Y, eras="era")
    of_new = encoder.transform(make(columns | {"era": 99 + 0 * ERAS}))
    assert_array_equal(encoder.transform(text), of_new)
    found = encoder.transform(frame)
    assert_array_equal(found, encoder.transform(text, eras=ERAS))
    assert (np.asarray(found) != of_new).any()
    both = make(columns | {"site": CODES % 2})
    encoder.set_params(era_order="ordered").fit(both, Y, eras=["era", "site"])
    with pytest.raises(ValueError, match=r"^X lacks 'site', of the columns 'era', 'si"):
        encoder.transform(frame)


def test_numbers_relative_to_categories_are_less_their_effect_on_them(tmp_path):
    x, z = np.random.default_rng(3).normal(size=(2, ERAS.size)) + CODES
    z[::7] = np.nan
    frame = pd.DataFrame({"x": x, "c": CODES.astype(str), "d": CODES % 3, "z": z})
    params = {"categorical_features": ["c", "d"], "target_type": "continuous"}
    encoder = EraTargetEncoder(**params, count=True, relative=["x", "z"])
    found = encoder.fit_transform(frame, Y, eras=ERAS, sample_weight=WEIGHTS)
    names = [f"{a}_{b}" for a in "cd" for b in ("effect", "count")]
    names[2:2], names[6:] = ["x_less_c", "z_less_c"], ["x_less_d", "z_less_d"]
    assert encoder.get_feature_names_out().tolist() == names
    alone = EraTargetEncoder(**params, count=True)
    of_y = alone.fit_transform(frame, Y, eras=ERAS, sample_weight=WEIGHTS)
    assert_allclose(found[:, [0, 1, 4, 5]], of_y)
    of_x = alone.set_params(count=False)
    of_x = of_x.fit_transform(frame, x, eras=ERAS, sample_weight=WEIGHTS)
    assert_allclose(found[:, [2, 6]], x[:, np.newaxis] - of_x, atol=1e-12)
    assert_array_equal(np.isnan(found[:, 3]), np.isnan(z))
    assert np.nanstd(encoder.transform(frame)[:, 3]) < np.nanstd(z)
    save_model(encoder, tmp_path / "encoder.era")
    copied = load_model(tmp_path / "encoder.era")[0]
    assert_array_equal(copied.transform(frame), encoder.transform(frame))
    message = r"'c', of dtype \w+, is not numeric: it holds 'a'.* out of `relative`\.$"
    with pytest.raises(ValueError, match=message):
        alone.set_params(relative=["c"]).fit(frame.assign(c="a"), Y, eras=ERAS)


def test_categories_that_are_dates_in_an_older_pickle_stay_known():
    import datetime

    days = [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]
    X = np.array(days * 20, dtype=object)[:, np.newaxis]
    eras, y = np.repeat([1, 2, 3, 4], 10), np.arange(40) % 2
    encoder = EraTargetEncoder(categorical_features=[0]).fit(X, y, eras=eras)
    expected = encoder.transform(X, eras=eras + 4)
    encoder.categories_ = [np.array(days, dtype=object)]
    np.testing.assert_array_equal(encoder.transform(X, eras=eras + 4), expected)
    assert np.unique(expected).size == 2
