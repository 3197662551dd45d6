"""Rows to predict, of any dtypes that they may arrive with: kinds times estimators."""

import warnings
from datetime import date, datetime, time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier

from helpers.cli import fail, run, write
from helpers.estimators import ours, stock
from helpers.grids import on_grid
from sklearn_era import calibration, ensemble
from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.model_files import load_model, save_model
from sklearn_era.model_selection import EraSearchCV
from sklearn_era.preprocessing import EraTargetEncoder, EraTargetRegressor
from sklearn_era.rules import RuleEnsembleClassifier

RNG, N = np.random.default_rng(0), 480
ERAS, LETTERS = np.repeat(np.arange(8), N // 8), list("abcd")
FIT = pd.DataFrame({
    "x": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
    "n": RNG.integers(0, 9, N), "b": RNG.random(N) < 0.5,
    "g": pd.Categorical(RNG.integers(0, 4, N)),
    "t": pd.Categorical(np.array(LETTERS)[RNG.integers(0, 4, N)]),
})  # fmt: skip
Y = FIT.x.fillna(0) + FIT.n / 9 + FIT.b + FIT.g.cat.codes - 2 * FIT.t.cat.codes
LABELS = np.where(np.median(Y) < Y, "high", "low")
ROWS = FIT[FIT.x.isna().cumsum() > 0][:6].reset_index(drop=True)
DTYPES = {"g": pd.CategoricalDtype(range(4)), "t": pd.CategoricalDtype(LETTERS)}
assert ROWS.x.isna().any()

BOOSTER, CLASSIFIER = ours(max_iter=3), ours("binary", max_iter=3)
LINEAR = {"members": ["linear"], "random_state": 0}
MODELS = [
    BOOSTER, CLASSIFIER, ensemble.EraForestRegressor(3, random_state=0),
    ensemble.EraForestClassifier(3, random_state=0),
    ensemble.InvariantForestRegressor(3, random_state=0),
    ensemble.TimeRobustForestClassifier(3, min_samples_per_era=1, random_state=0),
    AutoEraRegressor(BOOSTER, **LINEAR), AutoEraClassifier(CLASSIFIER, **LINEAR),
    AutoEraRegressor(BOOSTER, encode_categories=True, **LINEAR),
    RuleEnsembleClassifier(3, random_state=0), ensemble.JustTrainTwice(CLASSIFIER),
    calibration.EraConformalRegressor(BOOSTER, cv=2),
    calibration.EraConformalClassifier(CLASSIFIER, cv=2),
    calibration.EraCalibratedClassifier(AutoEraClassifier(CLASSIFIER, **LINEAR), cv=2),
    EraSearchCV(BOOSTER, {"max_depth": [2]}, cv=2), EraTargetRegressor(BOOSTER),
]  # fmt: skip
NAMES = [type(model).__name__ for model in MODELS]


def objects(names, frame=ROWS):
    """A frame with objects in some columns, None where a value is missing."""
    made = {}
    for name in names:
        values = [None if pd.isna(x) else x for x in frame[name]]
        made[name] = pd.Series(values, dtype=object)
    return frame.assign(**made)


def plain(frame=ROWS):
    """Lists of Python's own values."""
    return {name: objects("xnbgt", frame)[name].tolist() for name in frame}


def arrow(**changes):
    return pa.table(plain() | changes)


def nothing(*names):
    dtypes = {name: DTYPES[name] for name in names if name in DTYPES}
    return ROWS.assign(**dict.fromkeys(names, np.nan)).astype(dtypes)


ARROW = {"x": "double", "n": "int64", "b": "bool", "g": "int64", "t": "string"}
JSON = {"x": None, "n": 3, "b": None, "g": None, "t": "a"}
JSON_ROW = pd.DataFrame([JSON]).astype({"x": float, "b": float, **DTYPES})
DECIMALS = [None if np.isnan(x) else Decimal(x) for x in ROWS.x]
# Rows, and the clean frame that they are to be predicted like.
KINDS = {
    "objects": (objects("xnb"), ROWS), "all objects": (objects("xnbgt"), ROWS),
    "nullable": (ROWS.assign(
        x=pd.array(objects("x").x, "Float64"), n=ROWS.n.astype("Int64"),
        b=ROWS.b.astype("boolean"), g=ROWS.g.astype("Int64"), t=ROWS.t.astype("string"),
    ), ROWS),
    "Arrow dtypes": (pd.DataFrame({
        name: pd.Series(values, dtype=f"{ARROW[name]}[pyarrow]")
        for name, values in plain().items()
    }), ROWS),
    "other numbers": (ROWS.assign(b=ROWS.b * 1, n=ROWS.n.astype(np.float32)), ROWS),
    "decimals": (ROWS.assign(x=DECIMALS, n=[Decimal(x) for x in ROWS.n]), ROWS),
    "numbers as text": (ROWS.assign(n=ROWS.n.astype(str)), ROWS),
    "category of numbers": (ROWS.assign(n=ROWS.n.astype("category")), ROWS),
    "integers": (ROWS.assign(g=ROWS.g.astype(int)), ROWS),
    "floats": (ROWS.assign(g=ROWS.g.astype(float)), ROWS),
    "text": (ROWS.assign(t=ROWS.t.astype(object)), ROWS),
    "other categories": (ROWS.assign(
        g=pd.Categorical(ROWS.g, [9, 3, 2, 1, 0]),
        t=pd.Categorical(ROWS.t, list("zdcba")),
    ), ROWS),
    "one row": (ROWS[:1], ROWS[:1]), "a JSON row": (pd.DataFrame([JSON]), JSON_ROW),
    "other order": (ROWS[list("tgbnx")], ROWS), "polars": (pl.DataFrame(plain()), ROWS),
    "polars categories": (
        pl.DataFrame(plain()).with_columns(pl.col("t").cast(pl.Categorical)), ROWS
    ),
    "polars decimals": (
        pl.DataFrame(plain()).with_columns(pl.col("n").cast(pl.Decimal(10, 2))), ROWS
    ),
    "Arrow": (arrow(), ROWS),
    "Arrow dictionary": (arrow(t=pa.array(plain()["t"]).dictionary_encode()), ROWS),
    "Arrow decimals": (arrow(n=pa.array([Decimal(x) for x in plain()["n"]])), ROWS),
    "lists": (list(zip(*plain().values(), strict=True)), ROWS),
    "array of objects": (objects("xnbgt").to_numpy(object), ROWS),
    "no number": (objects("x", nothing("x")), nothing("x")),
    "pd.NA": (ROWS.assign(x=pd.NA), nothing("x")),
    "no text": (ROWS.assign(t=None), nothing("t")),
    "no text, but NaN": (ROWS.assign(t=np.nan), nothing("t")),
    "no category": (ROWS.assign(g=None, t=None), nothing("g", "t")),
    "polars nulls": (
        pl.DataFrame(plain() | dict.fromkeys("xgt", [None] * 6)), nothing(*"xgt")
    ),
    "Arrow nulls": (arrow(**dict.fromkeys("xgt", pa.nulls(6))), nothing(*"xgt")),
}  # fmt: skip
DATE = pd.Timestamp("2024-01-01")
# Rows that are refused, and the column and value that are named.
REFUSED = {
    "text": (ROWS.assign(x="high"), "'x', .* holds 'high'"),
    "a text": (ROWS.assign(x=[*ROWS.x[1:], "high"]), "'x', .* holds 'high'"),
    "category": (ROWS.assign(x=pd.Categorical(["high"] * 6)), "'x', .* holds 'high'"),
    "polars text": (pl.DataFrame(plain() | {"x": ["high"] * 6}), "'x', .* 'high'"),
    "Arrow text": (arrow(x=["high"] * 6), "'x', .* holds 'high'"),
    "lists": ([["high", 1, True, 2, "a"]], "'x', .* holds 'high'"),
    "empty text": (ROWS.assign(x=""), "'x', .* holds ''"),
    "dates": (ROWS.assign(x=DATE), "'x', .* holds dates"),
    "objects, dates": (ROWS.assign(x=[DATE] * 6).astype({"x": object}), "'x', .*2024"),
    "NumPy's dates": (
        np.array([[np.datetime64("2024"), 1, True, 2, "a"]], object), "'x', .* 2024"
    ),
    "polars dates": (pl.DataFrame(plain() | {"x": [DATE] * 6}), "'x', .* holds dates"),
    "complex": (ROWS.assign(x=1j), "'x', .* holds complex"),
    "values in lists": (ROWS.assign(x=[[1.0]] * 6), r"'x', .* holds \[1.0\]"),
    "numbers as text": (ROWS.assign(g=ROWS.g.astype(str)), "'g' holds '[0-3]'"),
    "numbers for text": (ROWS.assign(t=1), "'t' holds 1"),
    "no column": (ROWS.drop(columns="x"), "now missing:\n- x"),
    "mask": (np.ma.masked_invalid(FIT[["x"]].to_numpy()), r"^X is masked: .*\.filled"),
    "twice": (pd.concat([ROWS, ROWS.x], axis=1), "2 (columns 'x'; give each|times)"),
    "no columns": (pd.DataFrame(), "^X has no columns"),
    "values": ([1, 1, True, 2, "a"], r"^X is a list of 5 values, .* pass \[X\] for a"),
    "lazy frame": (pl.DataFrame(plain()).lazy(), r"lazy frame, .* pass X\.collect\(\)"),
    "row": (ROWS.iloc[0], r"^X is a series, .* pass df\.iloc\[\[0\]\] for a row"),
    "column": (ROWS.x, r"^X is a series, .* df\[\['a'\]\] for a column"),
    "polars column": (pl.Series([1.0]), r"^X is a series, .* pass df\[\[0\]\] for"),
    "dict": (JSON, r"^X is a dict, .* pass pd\.DataFrame\(\[X\]\)"),
    "dict of lists": (plain(), r"^X is a dict, .* pass pd\.DataFrame\(X\)"),
    "dicts": ([JSON, JSON], r"^X is a list of dicts, .* pass pd\.DataFrame\(X\)"),
}  # fmt: skip


def answer(model, X):
    with warnings.catch_warnings():  # lists and arrays have no names
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return getattr(model, "predict_proba", model.predict)(X)


@pytest.fixture(scope="module", params=MODELS, ids=NAMES)
def fitted(request, tmp_path_factory):
    """A model, and the same from a model file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(request.param)
        model.fit(FIT, LABELS if is_classifier(model) else Y, eras=ERAS)
    assert getattr(model, "weights_", {"linear": 1})["linear"] > 0
    path = tmp_path_factory.mktemp("models") / "m.era"
    save_model(model, path)
    return model, load_model(path)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_predicted_like_those_of_a_clean_frame(fitted, kind):
    rows, clean = KINDS[kind]
    expected = answer(fitted[0], clean)
    for model in fitted:
        assert_array_equal(answer(model, rows), expected)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_read_is_refused_by_name(fitted, kind):
    rows, message = REFUSED[kind]
    for model in fitted:
        with pytest.raises(ValueError, match=message):
            answer(model, rows)


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_a_fit_refuses_what_is_no_table(model):
    y, kinds = LABELS if is_classifier(model) else Y, {"list of dicts": "records"}
    tells = r"X is a {}, and a table is needed; pass pd\.DataFrame\(X\)\."
    is_inside = {"estimator", "regressor"} & {*model.get_params()}  # after the folds
    if not is_inside or hasattr(model, "members"):
        tells, kinds = "^" + tells, kinds | {"dict": "list"}
    for kind, orient in kinds.items():
        with pytest.raises(ValueError, match=tells.format(kind)):
            clone(model).fit(FIT.to_dict(orient), y, eras=ERAS)


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_columns_may_have_names_of_attributes(model):
    """A frame of pandas has its columns as attributes, too, and no other table has."""
    own = ["column_names", "schema", "dtype", "hstack", "type"]
    names = dict(zip(FIT, own, strict=True))
    y, model = LABELS if is_classifier(model) else Y, clone(model)
    expected = answer(clone(model).fit(FIT, y, eras=ERAS), ROWS)
    model.fit(FIT.rename(columns=names).assign(index_=ERAS), y, eras="index_")
    assert_array_equal(answer(model, ROWS.rename(columns=names)), expected)


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_a_fit_refuses_masks_and_negative_weights(model):
    y = LABELS == "high" if is_classifier(model) else Y.to_numpy()
    masked = np.ma.masked_array(y, mask=ERAS == 2)
    negative, numbers = np.where(ERAS == 2, -1.0, 1.0), FIT[["x", "n"]].to_numpy()
    for values, given, name in (
        (numbers, {"y": masked}, "y"),
        (np.ma.masked_invalid(numbers), {"y": y}, "X"),
        (numbers, {"y": y, "sample_weight": np.ma.masked_less(negative, 0)}, "sample"),
    ):
        with pytest.raises(ValueError, match=rf"{name}.* masked"):
            clone(model).fit(values, **{"eras": ERAS, **given})
    if model in (BOOSTER, CLASSIFIER):  # by the plain gain, as scikit-learn
        model = clone(model).set_params(split_criterion="era")
    with pytest.raises(
        ValueError, match=r"^(Negative values in data pa|sample_weight i)"
    ):
        clone(model).fit(numbers, y, eras=ERAS, sample_weight=negative)


@pytest.mark.parametrize("model", MODELS[:4], ids=NAMES[:4])
def test_lists_have_categories_by_place(model):
    table = np.column_stack([FIT.x.fillna(0), FIT.g.cat.codes])
    texts = [[x, LETTERS[int(g)]] for x, g in table]
    y, model = LABELS if is_classifier(model) else Y, clone(model)
    model.set_params(categorical_features=[1])
    expected = clone(model).fit(table, y, eras=ERAS).predict(table)
    for rows in (table.tolist(), texts):
        fitted = clone(model).fit(rows, y, eras=ERAS)
        assert_array_equal(fitted.predict(rows), expected)


def test_categories_that_are_dates():
    days = pd.Categorical(pd.Timestamp("2024-01-01") + pd.to_timedelta(FIT.n, "D"))
    model = clone(BOOSTER).fit(FIT.assign(n=days), Y)
    rows = ROWS.assign(n=days[ROWS.index])
    expected = model.predict(rows)
    assert_array_equal(model.predict(objects("xnb", rows)), expected)
    with pytest.raises(ValueError, match=r"'n' holds 1, .* such as datetime"):
        model.predict(rows.assign(n=1))


DAYS = [date(2024, 1, 1 + k) for k in FIT.n]
NUMPY, ARROW_DAYS = np.array(DAYS, "M8[ns]"), pa.array(DAYS)
# The same dates, as tables hold them.
OF_DATES = {
    "objects": pd.Series(DAYS, dtype=object), "category of dates": pd.Categorical(DAYS),
    **{f"M8[{unit}]": pd.Series(NUMPY.astype(f"M8[{unit}]")) for unit in ("s", "ns")},
    "category": pd.Categorical(pd.Series(NUMPY)),
    "datetimes": pd.Series([datetime.combine(x, time()) for x in DAYS], dtype=object),
    "Timestamps": pd.Series([*map(pd.Timestamp, DAYS)], dtype=object),
    "NumPy's": pd.Series([*np.array(DAYS, "M8[D]")], dtype=object),
    **{
        f"{kind} of pandas": pd.Series(DAYS, dtype=pd.ArrowDtype(pa.date32())).astype(
            pd.ArrowDtype(kind)
        )
        for kind in (pa.date32(), pa.timestamp("us"))
    },
    **{f"polars {kind}": pl.Series(DAYS).cast(kind)
       for kind in (pl.Date, pl.Datetime("ms"), pl.Datetime("ns"))},
    **{f"Arrow {kind}": ARROW_DAYS.cast(kind)
       for kind in (pa.date32(), pa.date64(), pa.timestamp("us"))},
    "Arrow dictionary": ARROW_DAYS.dictionary_encode(),
}  # fmt: skip


def with_dates(kind):
    values = OF_DATES[kind]
    if kind.startswith("polars"):
        return pl.DataFrame({"x": FIT.x.to_numpy(), "d": values})
    if kind.startswith("Arrow"):
        return pa.table({"x": FIT.x, "d": values})
    return FIT[["x"]].assign(d=values)


@on_grid("model fitted", {
    "booster": BOOSTER, "forest": MODELS[2], "encoder": EraTargetEncoder(),
    "auto": AutoEraRegressor(BOOSTER, encode_categories=False, **LINEAR),
    "auto, encoded": AutoEraRegressor(BOOSTER, encode_categories=True, **LINEAR),
}, OF_DATES.keys(), every=3)  # fmt: skip
def test_dates_are_the_same_categories_in_all_tables(model, fitted):
    model = clone(model)
    named = [x for x in model.get_params() if x.endswith("categorical_features")]
    model.set_params(**{name: ["d"] for name in named})
    model.fit(with_dates(fitted), FIT.n % 3, eras=ERAS)
    predict = getattr(model, "predict", getattr(model, "transform", None))
    expected = np.asarray(predict(with_dates(fitted)))
    assert np.unique(expected).size >= 3
    for kind in OF_DATES:
        assert_array_equal(predict(with_dates(kind)), expected, err_msg=kind)


@pytest.mark.parametrize("unit", ["D", "us", "ns"])
@pytest.mark.parametrize("model", [BOOSTER, MODELS[2], EraTargetEncoder()])
def test_dates_are_the_same_categories_in_arrays(model, unit):
    model = clone(model).set_params(categorical_features=[0])
    model.fit(NUMPY.astype(f"M8[{unit}]")[:, np.newaxis], FIT.n % 3, eras=ERAS)
    predict = getattr(model, "predict", getattr(model, "transform", None))
    expected = predict(np.array(DAYS, dtype=object)[:, np.newaxis])
    assert np.unique(expected).size >= 3
    for other in ("D", "us", "ns"):
        found = predict(NUMPY.astype(f"M8[{other}]")[:, np.newaxis])
        assert_array_equal(found, expected)


@pytest.mark.parametrize("model", [BOOSTER, AutoEraRegressor(BOOSTER, **LINEAR)])
def test_the_program_predicts_tables_of_rows_alike(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save_model(clone(model).fit(FIT, Y, eras=ERAS), "m.era")
    model, _ = load_model("m.era")
    for kind in ("nullable", "decimals", "integers", "text", "no category", "Arrow"):
        rows, clean = KINDS[kind]
        frame = rows.to_pandas() if kind == "Arrow" else rows
        for name in ("rows.parquet", "rows.csv"):
            run("predict", "m.era", write(frame, name), "--out", "out.parquet")
            found = pd.read_parquet("out.parquet")["prediction"]
            assert_array_equal(found, model.predict(clean), err_msg=f"{kind} {name}")
    write(ROWS.assign(x="high"), "rows.csv")
    write(ROWS.assign(n=ROWS.n.astype(str)), "rows.parquet")
    told = fail("predict", "m.era", "rows.parquet", "--out", "out.csv")
    assert told.startswith("DATA: column 'n' is not numeric")
    told = fail("predict", "m.era", "rows.csv", "--out", "out.csv")
    assert told.startswith("DATA: column 'x' is not numeric ('high' in row 1)")


def containers(frame):
    """The rows with their missing categories as NaN, None and nulls."""
    arrow = pa.Table.from_pandas(frame, preserve_index=False)  # a dictionary column
    text = frame.t.astype(object).where(frame.t.notna(), None)
    t, x = pl.Series(text.tolist(), dtype=pl.Categorical), frame.x.tolist()
    objects = frame.assign(t=text).astype({"t": object})
    return [frame, arrow, pl.DataFrame({"x": x, "t": t}), objects]


@pytest.mark.parametrize("fitted", range(4), ids=["pandas", "arrow", "polars", "none"])
@pytest.mark.parametrize("i", [0, 1, 2, 3, 6, 11], ids=lambda i: NAMES[i])
def test_a_missing_category_is_missing_in_all_tables(i, fitted):
    is_missing = RNG.random(N) < 0.5
    frame = FIT[["x", "t"]].assign(t=FIT.t.where(~is_missing))
    model, y = clone(MODELS[i]), np.where(is_missing, 10.0, FIT.x.fillna(0.0))
    y = np.where(y > 5, "a", "b") if is_classifier(model) else y
    X = containers(frame)[fitted]
    if fitted == 3 and not isinstance(model, AutoEraRegressor):
        model.set_params(**{
            name: ["t"] for name in model.get_params()
            if name.endswith("categorical_features")
        })  # fmt: skip
    model.fit(X, y, eras=ERAS)
    asked = containers(frame[:50].reset_index(drop=True))
    first, *others = (model.predict(rows) for rows in asked)
    for predicted in others:
        assert_array_equal(predicted, first)
    whole = asked[0].assign(t=FIT.t[:50])
    assert (model.predict(whole) != first)[is_missing[:50]].any()


@pytest.mark.parametrize("model", MODELS[:1] + MODELS[2:3], ids=["booster", "forest"])
@pytest.mark.parametrize("days", [
    pd.date_range("2024", periods=4), pd.date_range("2024", periods=4, tz="UTC"),
    pd.period_range("2024", periods=4, freq="M"), pd.to_timedelta(range(4), "D"),
    pd.Index([date(2024, 1, k) for k in range(1, 5)], dtype=object),
], ids=["dates", "zone", "periods", "durations", "objects"])  # fmt: skip
def test_a_missing_date_is_missing_in_all_tables_and_files(days, model, tmp_path):
    codes = FIT.n % 4
    days = pd.Series(days[codes]).astype("category").mask(codes == 1)
    frame, y = FIT[["x"]].assign(d=days), np.array([0.0, 9.0, 1.0, 2.0])[codes]
    model = clone(model).fit(frame, y, eras=ERAS)
    expected = model.predict(frame)
    if isinstance(model, ensemble.HistGradientBoostingRegressor):
        other = stock(max_iter=3, max_bins=255).fit(frame, y)
        assert_array_equal(expected, other.predict(frame))
    save_model(model, tmp_path / "m.era")
    objects = frame.astype(object)
    nones = objects.assign(d=objects.d.where(days.notna(), None))
    for each in (model, load_model(tmp_path / "m.era")[0]):
        for rows in (frame, objects, nones):
            assert_array_equal(each.predict(rows), expected)


@on_grid("i is_category dtype", {NAMES[i]: i for i in (0, 2, 6, 9)},
         {"column": False, "category": True}, [
    "string", "string[pyarrow]", pd.ArrowDtype(pa.string()),
    pd.ArrowDtype(pa.large_string()), "object", "Int64", pd.ArrowDtype(pa.date32()),
], every=3)  # fmt: skip
def test_a_category_that_is_na_is_missing(i, is_category, dtype):
    codes, is_missing = FIT.n % 3, FIT.n > 6
    known = {"Int64": [1, 2, 3], "date32[day][pyarrow]": DAYS}.get(str(dtype), LETTERS)
    plain = pd.Series([known[k] for k in codes], dtype=object).mask(is_missing, np.nan)
    found = plain.mask(is_missing, pd.NA).astype(dtype)
    found = found.astype("category") if is_category else found
    tables = [FIT[["x"]].assign(c=values) for values in (found, plain)]
    tables += [tables[1].assign(c=plain.mask(is_missing, None))]
    model, y = clone(MODELS[i]), codes + 5 * is_missing
    y = LABELS if is_classifier(model) else y
    named = [x for x in model.get_params() if x.endswith("categorical_features")]
    model.set_params(**{name: ["c"] for name in named})
    kept = tables[0].copy()
    predictions = [
        clone(model).fit(tables[j], y, eras=ERAS).predict(rows)
        for j in (0, 1) for rows in tables
    ]  # fmt: skip
    for predicted in predictions[1:]:
        assert_array_equal(predicted, predictions[0])
    pd.testing.assert_frame_equal(tables[0], kept)


def test_a_dictionary_of_arrow_in_pandas_is_categorical_with_na():
    dtype = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    texts = pd.Series([LETTERS[k % 3] for k in FIT.n]).mask(FIT.n > 6)
    frames = [FIT[["x"]].assign(c=texts.astype(kind)) for kind in (dtype, "category")]
    found = [clone(BOOSTER).fit(each, Y, eras=ERAS).predict(each) for each in frames]
    assert_array_equal(*found)


def test_text_with_na_that_is_no_category_is_refused_by_name():
    values = pd.Series(["a", pd.NA] * (N // 2), dtype="string")
    with pytest.raises(ValueError, match=r"^X: column 't' is not numeric: .* 'a'"):
        clone(BOOSTER).fit(FIT.assign(t=values), Y)


@pytest.mark.parametrize("kind", ["zone", "period"])
def test_arrow_keeps_zones_and_periods_of_categories(kind):
    days = pd.date_range("2020", periods=3, tz="Europe/Zurich")
    days = days if kind == "zone" else pd.period_range("2020-01", periods=3, freq="M")
    frame = pd.DataFrame({"d": days[np.arange(60) % 3], "x": np.arange(60.0)})
    y, table = np.resize([0.0, 3.0, 9.0], 60), pa.Table.from_pandas(frame)
    expected = None
    for fitted in (frame, table):
        model = ours(max_iter=5, categorical_features=["d"], min_samples_leaf=5)
        for asked in (frame, table):
            found = model.fit(fitted, y).predict(asked)
            expected = found if expected is None else expected
            assert_array_equal(found, expected)
        with pytest.raises(ValueError, match="X: column 'd' "):
            ours(max_iter=1, categorical_features=None).fit(fitted, y)
    assert np.unique(expected).size >= 3


def test_none_and_nan_in_one_column_are_two_categories_as_to_scikit_learn():
    values = np.array(["a", "b", None, np.nan], dtype=object)[np.arange(200) % 4]
    frame = pd.DataFrame({"c": values, "d": np.resize(list("xyz"), 200)}, dtype=object)
    y = np.resize([0.0, 1.0, 5.0, 9.0], 200)
    model = ours(max_iter=30, categorical_features=["c", "d"]).fit(frame, y)
    beside = frame[:4].assign(d=["x", "y", "new", "x"])
    alone = [model.predict(beside[i : i + 1])[0] for i in range(4)]
    assert_array_equal(model.predict(beside), alone)
    assert abs(alone[2] - 5) < 1
    assert abs(alone[3] - 9) < 1
