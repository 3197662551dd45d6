"""How eras are passed: labels in or out of order, and the name of a column."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal, assert_equal
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.grids import on_grid
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.calibration import EraCalibratedClassifier
from sklearn_era.effects import Intercepts, Recency
from sklearn_era.ensemble import BinnedDataset, EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_files import load_model, save_model
from sklearn_era.model_selection import EraSearchCV, EraWalkForwardSplit
from sklearn_era.preprocessing import (
    EraNeutralizer,
    EraStandardScaler,
    EraTargetEncoder,
    EraTargetRegressor,
)

RNG, CODES = np.random.default_rng(0), np.repeat(np.arange(6), 40)
X, Y = RNG.normal(size=(240, 3)), RNG.normal(size=240)
MONTHS = ["nov", "dec", "jan", "feb", "mar", "apr"]  # not as the alphabet has them


def take(labels):
    return np.array(labels)[CODES]


# Labels of eras, and whether they have an order.
ORDERED, SIX = "ordered", range(6)
LABELS = {
    "numbers": (CODES + 2000, ORDERED), "fractions": (CODES + 0.5, ORDERED),
    "large numbers": (CODES.astype(object) + 2**70, ORDERED),
    "periods": (pd.Series(pd.PeriodIndex.from_ordinals(CODES, freq="M")), ORDERED),
    "pandas": (pd.Series(pd.Categorical(take(MONTHS), MONTHS, ordered=True)), ORDERED),
    "polars": (pl.Series(take(MONTHS).tolist(), dtype=pl.Enum(MONTHS)), ORDERED),
    "padded numbers": (take([f"{i:04d}" for i in SIX]), ORDERED),
    "numbers not padded": (take([str(i + 7) for i in SIX]), "raises"),
    "two forms": (take([f"2024-{'W' * (i == 1)}0{i + 1}" for i in SIX]), "raises"),
    "bytes": (take([b"a", b"b", b"c", b"d", b"e", b"f"]), "raises"),
    "named weeks": (take([f"week{i:02d}" for i in SIX]), "raises"),
    "weeks before years": (take([f"W{i:02d}/2024" for i in SIX]), "raises"),
    "names": (take(["rome", "oslo", "bern", "kyiv", "lima", "riga"]), "raises"),
    "unordered categories": (pd.Series(pd.Categorical(take(MONTHS))), "raises"),
    "identifiers": (take([UUID(int=2**100 * i) for i in SIX]), "raises"),
    "booleans": (CODES % 2 == 0, "unordered"),
}  # fmt: skip


def fit(eras, cls=Regressor, **parameters):
    sizes = {"n_estimators": 2} if cls is EraForestRegressor else {"max_iter": 2}
    return cls(**sizes, **parameters, random_state=0).fit(X, Y, eras=eras)


def last_eras_held_out(eras, **order):
    (held_out,) = {*fit(eras, early_stopping=True, **order).validation_eras_.tolist()}
    return held_out == np.asarray(eras)[-1]


def last_eras_tested(eras, **order):
    cv = EraWalkForwardSplit(1, test_size=1, **order)
    return next(iter(cv.split(X, groups=eras)))[1].tolist() == list(range(200, 240))


def search(eras, **order):
    fitted = EraSearchCV(Ridge(), {"alpha": [1.0]}, **order).fit(X, Y, eras=eras)
    return fitted.era_order_ == "ordered"


# Whether the tool takes them for ordered, and in the order of the rows.
TOOLS = {"early stopping": last_eras_held_out, "search": search}
TOOLS["walk"] = last_eras_tested
NEED_ORDER = {
    "recency": lambda eras, **order: fit(eras, era_weighting=Recency(2), **order),
    "intercepts": lambda eras, **order: fit(eras, era_effects="intercept", **order),
    "forest": lambda eras, **x: fit(eras, EraForestRegressor, random_segments=3, **x),
    "walk": last_eras_tested,
}


@on_grid("labels tool", [*LABELS], [*TOOLS])
def test_order_of_labels(labels, tool):
    eras, expected = LABELS[labels]
    run = TOOLS[tool]
    if expected == "raises":
        with pytest.raises(ValueError, match=r"text such as .* depends on its order"):
            run(eras)
    elif expected == "ordered":
        assert run(eras)
    elif tool == "walk":
        with pytest.raises(ValueError, match=r"follow each other.*use GroupKFold"):
            run(eras)
    else:
        assert not run(np.repeat([False, True], 120)) or tool == "early stopping"


@pytest.mark.parametrize("tool", NEED_ORDER)
def test_what_needs_an_order_asks_for_it(tool):
    for labels in ("numbers", "periods", "pandas", "polars"):
        NEED_ORDER[tool](LABELS[labels][0])
    names, _ = LABELS["names"]
    with pytest.raises(ValueError, match=r"'bern'.*pass era_order='ordered'"):
        NEED_ORDER[tool](names)
    NEED_ORDER[tool](names, era_order="ordered")
    if tool != "walk":
        with pytest.raises(ValueError, match=r"follow each other, and with era_order="):
            NEED_ORDER[tool](names, era_order="unordered")


def test_what_needs_no_order_does_not_ask():
    names, _ = LABELS["names"]
    fit(names, split_criterion="directional", era_weighting="equal")
    fit(names, era_effects=Intercepts(forecast="mean"))
    fit(names, EraForestRegressor, split_criterion="era", bootstrap="whole_eras")
    # Random eras are held out.
    parameters = {"early_stopping": True, "validation_fraction": 2}
    model = fit(names, era_order="unordered", **parameters)
    same = fit(names, validation_eras="random", **parameters)
    assert_array_equal(model.validation_eras_, same.validation_eras_)
    with pytest.raises(ValueError, match="validation_eras='last' needs eras that"):
        fit(names, era_order="unordered", validation_eras="last", **parameters)


@pytest.mark.parametrize("order", ["ordered", "unordered"])
def test_what_is_inside_a_search_knows_the_order(order):
    """Early stopping, intercepts and splitters need no more than the search."""
    names, _ = LABELS["named weeks"]
    booster = Regressor(max_iter=3, early_stopping=order == "unordered")
    cv = EraWalkForwardSplit(2) if order == "ordered" else 2
    grid = {"era_effects": [None, "intercept"]} if order == "ordered" else {}
    search = EraSearchCV(booster, grid, cv=cv, era_order=order, error_score="raise")
    search.fit(X, Y, eras=names)
    assert search.best_estimator_.era_order == order
    assert booster.era_order == search.estimator.era_order == "auto"
    auto = AutoEraRegressor(booster, era_order=order, cv=2).fit(X, Y, eras=names)
    assert np.isfinite(auto.era_scores_).all()
    assert auto.era_order_ == order
    pipeline = make_pipeline(StandardScaler(), booster)
    search = EraSearchCV(pipeline, {}, cv=cv, era_order=order, error_score="raise")
    search.fit(X, Y, eras=names)
    assert_array_equal(search.predict(X, eras=names), search.predict(X))


def test_a_search_refuses_groups_beside_eras():
    with pytest.raises(ValueError, match=r"^groups is for the splitter"):
        EraSearchCV(Ridge(), {}, cv=3).fit(X, Y, eras=CODES, groups=CODES)


@pytest.mark.parametrize("module", [pd, pl])
def test_eras_may_be_the_name_of_a_column(module):
    columns = {f"x{j}": X[:, j] for j in range(3)}
    frame = module.DataFrame({**columns, "week": CODES})
    features = module.DataFrame(columns)
    parameters = {"split_criterion": "era", "era_effects": "intercept", "max_iter": 3}
    expected = Regressor(**parameters)
    expected.fit(features, Y, eras=CODES, X_val=features, y_val=Y, eras_val=CODES)
    model = Regressor(**parameters).fit(frame, Y, eras="week", X_val=frame, y_val=Y)
    assert model.feature_names_in_.tolist() == [*columns]
    predicted = expected.predict(features, eras=CODES)
    assert_array_equal(model.predict(frame, eras="week"), predicted)
    assert_array_equal(model.predict(features, eras=CODES), predicted)
    plain = Regressor(max_iter=3).fit(frame, Y, eras="week")
    assert_array_equal(plain.predict(frame, eras="week"), plain.predict(features))
    for each in (plain, EraSearchCV(Ridge(), {}, cv=3).fit(frame, Y, eras="week")):
        assert_array_equal(each.predict(frame), each.predict(features))
        assert each.score(frame, Y) == each.score(features, Y)
    assert plain.fit(frame, Y, eras=CODES).predict(frame).shape == Y.shape
    plain.fit(frame, Y, eras="week")
    with pytest.raises(ValueError, match="predicting with eras needs the intercepts"):
        plain.predict(features, eras=CODES)
    forest = EraForestRegressor(n_estimators=2, random_state=0, split_criterion="era")
    by_name = forest.fit(frame, Y, eras="week").predict(frame, eras="week")
    assert_array_equal(by_name, forest.fit(features, Y, eras=CODES).predict(features))
    classifier = Classifier(**parameters).fit(frame, (Y > 0).astype(int), eras="week")
    proba = classifier.predict_proba(frame, eras="week")
    assert_array_equal(proba, classifier.predict_proba(features, eras=CODES))
    dataset = BinnedDataset.from_arrays(frame, Y, eras="week")
    assert_array_equal(dataset.eras.decode(), CODES)


PLACES, NUMBERS = np.array([*"ba"])[np.arange(240) % 2], CODES + 9
COMBINED = [f"{place} {i:02}" for place, i in zip(PLACES, NUMBERS, strict=True)]
OF_ROWS = {"place": PLACES, "month": NUMBERS}


@pytest.mark.parametrize("make", [
    pd.DataFrame, pl.DataFrame, pa.table,
    lambda columns: np.column_stack([PLACES, NUMBERS.astype(object)]),
    lambda columns: [*zip(PLACES.tolist(), NUMBERS.tolist(), strict=True)],
])  # fmt: skip
@pytest.mark.parametrize("cls", [Regressor, EraForestRegressor])
def test_several_columns_are_eras_by_their_combinations(make, cls, tmp_path):
    """Boosters and forests alike, in the order of the columns: 9 comes before 10."""
    eras, labels = make(OF_ROWS), sorted({*zip(PLACES, NUMBERS, strict=True)})
    parameters = {"split_criterion": "era", "random_state": 0}
    is_booster = cls is Regressor
    if is_booster:
        parameters |= {"era_effects": "intercept", "era_order": "ordered"}
    model = cls(**parameters).fit(X, Y, eras=eras)
    expected = cls(**parameters).fit(X, Y, eras=COMBINED)
    assert_array_equal(model.predict(X), expected.predict(X))
    assert [*(model.era_intercepts_ if is_booster else model.era_labels_)] == labels
    if is_booster:
        predicted = expected.predict(X, eras=COMBINED)
        assert_array_equal(model.predict(X, eras=eras), predicted)
        save_model(model, tmp_path / "model.era")
        restored = load_model(tmp_path / "model.era")[0]
        assert_array_equal(restored.predict(X, eras=eras), predicted)
        assert model.score(X, Y, eras=eras) == expected.score(X, Y, eras=COMBINED)
    splits = list(EraWalkForwardSplit(2, era_order="ordered").split(X, groups=eras))
    others = EraWalkForwardSplit(2, era_order="ordered").split(X, groups=COMBINED)
    assert_equal(splits, list(others))


@on_grid("module cls", [pd, pl], [Regressor, EraForestRegressor])
def test_names_of_several_columns(module, cls):
    columns = {f"x{j}": X[:, j] for j in range(3)}
    frame = module.DataFrame(columns | OF_ROWS)
    model = cls(split_criterion="era", random_state=0)
    expected = cls(split_criterion="era", random_state=0)
    expected.fit(module.DataFrame(columns), Y, eras=COMBINED)
    model.fit(frame, Y, eras=["place", "month"])
    assert_array_equal(model.feature_names_in_, [*columns])
    predicted = expected.predict(module.DataFrame(columns))
    assert_array_equal(model.predict(frame), predicted)
    assert_array_equal(model.predict(frame, eras=["place", "month"]), predicted)


CALIBRATED = EraCalibratedClassifier(Classifier(max_iter=2), era_order="unordered")
BY_COMBINATION = [
    Regressor(era_effects=Intercepts("mean"), era_order="unordered", max_iter=2),
    EraTargetRegressor(Regressor(max_iter=2)), CALIBRATED,
    EraTargetEncoder(categorical_features=[0], era_order="unordered"),
]  # fmt: skip


def predictor_of(model):
    names = ("predict_proba", "predict", "transform")
    return next(getattr(model, name) for name in names if hasattr(model, name))


@pytest.mark.parametrize("model", BY_COMBINATION, ids=lambda x: type(x).__name__)
def test_columns_of_eras_come_in_the_order_of_the_fit(model):
    frame = pd.DataFrame({f"x{j}": X[:, j].round() for j in range(3)})
    both, y = frame.assign(**OF_ROWS), (Y + (PLACES == "a") > 0) * 1
    predict = predictor_of(clone(model).fit(both, y, eras=["place", "month"]))
    expected, eras = predict(both, eras=["place", "month"]), both[["month", "place"]]
    new = predict(frame, eras=eras.assign(month=99))
    assert (np.asarray(new) != expected).any()
    assert_array_equal(predict(both, eras=["month", "place"]), expected)
    for table in (eras, pl.from_pandas(eras), pa.Table.from_pandas(eras)):
        assert_array_equal(predict(frame, eras=table), expected)
    batch = pa.RecordBatch.from_pandas(eras)
    assert_array_equal(predict(frame, eras=batch), expected)
    with pytest.raises(ValueError, match="month' twice"):
        predict(both, eras=["place", "month", "month"])
    with pytest.raises(ValueError, match=r"^eras is a lazy frame"):
        predict(frame, eras=pl.from_pandas(eras).lazy())
    with pytest.raises(ValueError, match=r"^eras has 2 columns 'month'; give each a"):
        predict(frame, eras=eras.set_axis(["month", "month"], axis=1))
    of_arrow = pa.Table.from_pandas(eras)
    months = pa.table([*of_arrow.columns, of_arrow["month"]], [*eras, "month"])
    with pytest.raises(ValueError, match=r"^eras has 2 columns 'month'; give each a"):
        predict(frame, eras=months)


@pytest.mark.parametrize("model", BY_COMBINATION, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize(("eras", "kinds"), [
    ((NUMBERS, PLACES), "number, text"), ((PLACES, NUMBERS.astype(str)), "text, text"),
    ((PLACES, NUMBERS.astype("M8[D]")), "text, date"),
    (np.array([PLACES, NUMBERS, NUMBERS], object).T, "text, number, number"),
])  # fmt: skip
def test_combinations_of_other_kinds_are_refused(model, eras, kinds):
    y = (Y + (PLACES == "a") > 0) * 1
    predict = predictor_of(clone(model).fit(X.round(), y, eras=(PLACES, NUMBERS)))
    message = rf"^eras holds \(.*\), of type \({kinds}\), .* of type \(text, number\), "
    with pytest.raises(ValueError, match=message):
        predict(X.round(), eras=eras)
    floats = predict(X.round(), eras=(PLACES, NUMBERS.astype(float)))
    assert_array_equal(floats, predict(X.round(), eras=(PLACES, NUMBERS)))


def test_dates_in_combinations_are_those_of_any_unit_and_others_refused():
    days = np.datetime64("2024-01-01") + CODES.astype("m8[D]")
    parameters = {"era_effects": "intercept", "era_order": "ordered", "max_iter": 3}
    eras = pd.DataFrame({"place": PLACES, "day": pd.to_datetime(days)})
    model = Regressor(**parameters).fit(X, Y, eras=eras)
    others = pl.DataFrame({"place": PLACES, "day": days.tolist()})
    assert_array_equal(model.predict(X, eras=others), model.predict(X, eras=eras))
    missing = pd.DataFrame(OF_ROWS).assign(month=np.r_[np.nan, NUMBERS[1:]])
    with pytest.raises(ValueError, match=r"^eras\['month'\] has 1 missing label"):
        Regressor().fit(X, Y, eras=missing)
    message = r"^eras is a dict .* only the trees of forests"
    with pytest.raises(ValueError, match=message):
        Regressor().fit(X, Y, eras=OF_ROWS)


@pytest.mark.parametrize(("data", "message"), [
    (pd.DataFrame(X, columns=[*"aab"]), "X has 2 columns 'a'"),
    (pd.DataFrame(X, columns=[*"abc"]), "'week' is no column.* are 'a', 'b', 'c'"),
    (X, "'week' names a column, but X is ndarray")])  # fmt: skip
def test_a_name_of_no_column_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        Regressor().fit(data, Y, eras="week")
    # Names do not pass a transformer.
    frame = pd.DataFrame(X, columns=[*"abc"]).assign(week=CODES)
    pipeline = make_pipeline(StandardScaler(), Regressor())
    with pytest.raises(ValueError, match="'week' names a column, but X is ndarray"):
        pipeline.fit(frame, Y, histgradientboostingregressor__eras="week")


FRAME = pd.DataFrame(X, columns=[*"abc"]).assign(week=CODES, shop=CODES % 2)
LEVELS = FRAME.set_axis(pd.MultiIndex.from_product([["t"], FRAME.columns]), axis=1)
LIST = r"pass names as a string or a list, eras=\['week', 'shop'\]\.$"
NONE = r"^eras has {} labels, but X has 240 rows, and no column '{}' that they might "
NO_NAMES = {
    "a tuple": (FRAME, ("week", "shop"), f"^eras, of type tuple, names col.*: {LIST}"),
    "an array": (FRAME, np.array(["week", "shop"]), f"ndarray, names columns: {LIST}"),
    "an index": (FRAME, FRAME.columns[3:], f"of type Index, names columns: {LIST}"),
    "none": (FRAME, ["wek"], NONE.format(1, "wek") + r"name\. Did you mean 'week'\?"),
    "none of two": (FRAME, ("wek", "shp"), NONE.format(2, "wek")),
    "others": (FRAME, ["week", "shp"], r"^eras=\[.*: 'shp' is no .* mean 'shop'\?"),
    "text": (FRAME, "wek", "^eras='wek': 'wek' is no column.* Did you mean 'week'"),
    "polars": (pl.DataFrame({"week": CODES}), ["x"], NONE.format(1, "x")),
    "labels": (FRAME, [*MONTHS, *MONTHS], NONE.format(12, "nov")),
    "an index level": (FRAME.set_index("week"), "week", "'week' is a level of the ind"),
    "of levels": (FRAME.set_index("week"), ["week", "shop"], r"pass X\.reset_index"),
    "levels": (LEVELS, ("t", "week"), r"^eras names column \('t', 'week'\) by a tuple"),
    "levels in a list": (LEVELS, [("t", "week")], "by a tuple, and only text names"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "eras", "message"), NO_NAMES.values(), ids=NO_NAMES)
@pytest.mark.parametrize("model", [
    Regressor(max_iter=2), EraForestRegressor(2), AutoEraRegressor(members=[]),
    EraSearchCV(Ridge(), {}), EraStandardScaler(),
], ids=lambda model: type(model).__name__)  # fmt: skip
def test_names_that_fit_no_column_say_how_to_name_one(model, data, eras, message):
    with pytest.raises(ValueError, match=message):
        model.fit(data, Y, eras=eras)


def test_names_of_validation_eras_are_refused_as_such():
    message = "^eras_val has 1 labels, but X_val has 240 rows, and no column 'wek'"
    given = {"X_val": FRAME, "y_val": Y, "eras_val": ["wek"]}
    with pytest.raises(ValueError, match=message):
        Regressor().fit(FRAME, Y, eras="week", **given)


def test_text_of_a_label_a_row_is_no_name():
    rows = FRAME[:2].assign(y=[0.0, 1.0])
    for eras in (("week", "shop"), ["week", "x"], np.array(["a", "shop"])):
        model = EraStandardScaler().fit(rows, eras=eras)
        assert model.era_labels_.tolist() == sorted(eras)


@pytest.mark.parametrize(("name", "value", "message"), [
    ("interaction_cst", [0, 1], "Interaction constraints must be a sequence"),
    ("interaction_cst", np.array(1), "The 'interaction_cst' parameter"),
    ("feature_penalty", np.array(0.5), r"feature_penalty has shape \(\)"),
    ("monotonic_cst", np.array(2), "monotonic_cst must be an array-like"),
])  # fmt: skip
def test_parameters_of_a_wrong_form_are_left_to_the_fit(name, value, message):
    frame = pd.DataFrame({"week": np.arange(60) // 10, "a": np.arange(60)})
    with pytest.raises(ValueError, match=f"^{message}"):
        Regressor(**{name: value}).fit(frame, frame["a"], eras="week")


@pytest.mark.parametrize(("name", "by_place", "by_name"), [
    ("categorical_features", [1], ["shop"]),
    ("categorical_features", np.array(1), ["shop"]),
    ("categorical_features", np.array([False, True, False]), ["shop"]),
    ("feature_penalty", {1: 5.0, "b": 0.5}, {"shop": 5.0, "b": 0.5}),
    ("feature_penalty", [0.0, 5.0, 0.5], [5.0, 0.5]),
    ("monotonic_cst", [0, 1, 0], {"shop": 1}), ("interaction_cst", [{0}, {1, 2}], None),
])  # fmt: skip
@pytest.mark.parametrize("eras", ["week", ["week"]])
def test_places_that_the_columns_of_eras_move_are_refused(
    name, by_place, by_name, eras
):  # fmt: skip
    """Behind the other columns they move nothing; and names stay."""
    rng = np.random.default_rng(0)
    week, shop = np.repeat(np.arange(6), 20), rng.integers(0, 4, 120)
    last = pd.DataFrame({"shop": shop, "b": rng.normal(size=120), "week": week})
    first, y = last[["week", "shop", "b"]], shop + last["b"]
    for model in (
        Regressor(max_iter=2, **{name: by_place}),
        EraSearchCV(Regressor(max_iter=2, **{name: by_place}), {"max_iter": [1]}),
        AutoEraRegressor(Regressor(max_iter=2, **{name: by_place})),
    ):
        with pytest.raises(
            ValueError,
            match=f"^(estimator__)?{name}=.* counts columns "
            r"of X, and eras=.* takes 'week' out of them: name columns",
        ):
            model.fit(first, y, eras=eras)
    for model in (EraNeutralizer([0, 1]), EraTargetEncoder(relative=[1])):
        with pytest.raises(ValueError, match=r"^(neutralizers|relative)=.* 'week' out"):
            model.fit(first, y, eras=eras)
    models = [
        Regressor(max_iter=9, **{name: by_name}).fit(first, y, eras=eras),
        Regressor(max_iter=9, **{name: by_name}).fit(last, y, eras=eras),
    ]
    if name == "categorical_features" and isinstance(by_place, list):
        model = Regressor(max_iter=9, categorical_features=[0])
        models.append(model.fit(last, y, eras=eras))
    expected, *others = [model.predict(last[["shop", "b"]]) for model in models]
    for other in others:
        assert_array_equal(other, expected)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("model", [
    Regressor(max_iter=2), EraForestRegressor(2), AutoEraRegressor(members=[]),
    EraSearchCV(Regressor(max_iter=2), {"max_depth": [2]}),
], ids=lambda model: type(model).__name__)  # fmt: skip
def test_a_column_named_twice_is_refused(make, model):
    columns = {f"x{j}": X[:, j] for j in range(3)} | OF_ROWS
    for eras in (["month", "month"], ["place", "month", "month"]):
        with pytest.raises(ValueError, match=r"eras=\[.* names column 'month' twice;"):
            model.fit(make(columns), Y, eras=eras)
    labels = make({"a": [0.0, 1.0, 2.0], "b": [0.0, 0.0, 1.0]})
    if isinstance(model, EraForestRegressor):  # a label a row, though also a name
        model.fit(labels, [0.0, 1.0, 2.0], eras=["a", "b", "a"])
        assert model.era_labels_.tolist() == ["a", "b"]


@pytest.mark.parametrize("cls", [Regressor, EraForestRegressor])
def test_integers_by_position_are_warned_of(cls):
    for labels in (CODES + 1, (CODES + 1).astype(str)):
        with pytest.warns(UserWarning, match=r"third argument .* pass labels of eras"):
            cls().fit(X, Y, labels)
    cls().fit(X, Y, sample_weight=CODES + 1)  # without a warning
    cls().fit(X, Y, RNG.random(240))


def test_a_score_of_several_metrics_knows_the_eras():
    scoring = {"r2": "r2", "error": "neg_mean_squared_error"}
    booster = Regressor(max_iter=5, era_effects="intercept")
    search = EraSearchCV(booster, {"max_depth": [2]}, scoring=scoring, refit="error")
    search.fit(X, Y, eras=CODES)
    best = search.best_estimator_
    for eras in (None, CODES):
        found = search.score(X, Y, eras=eras)
        assert found == -np.mean((Y - best.predict(X, eras=eras)) ** 2)


@pytest.mark.parametrize(("model", "name", "hint"), [
    (Regressor(), "eval_set", r"Pass X_val=... and y_val=... here"),
    (Regressor(), "groups", r"Pass eras=... here"),
    (Regressor(), "early_stopping_rounds", "Use n_iter_no_change of the estimator"),
    (Regressor(), "sample_weigth", "Did you mean 'sample_weight'"),
    (EraForestRegressor(), "eval_set", "Use oob_score of the estimator"),
    (AutoEraRegressor(), "eval_set", "Use cv of the estimator"),
    (AutoEraRegressor(), "verbose", "Use verbose of the estimator"),
])  # fmt: skip
def test_arguments_of_other_packages_get_a_hint(model, name, hint):
    with pytest.raises(TypeError, match=f"fit got an unexpected .* {name!r}.*{hint}"):
        model.fit(X, Y, **{name: 1})


@pytest.mark.parametrize("Estimator", [Regressor, EraForestRegressor])
def test_two_threads_do_not_fit_one_estimator(Estimator):
    """Their trees would share memory, which can end the process."""
    X, refusals = np.arange(40.0)[:, None], []

    class Labels(list):
        def __array__(self, dtype=None, copy=None):  # read amid the first fit
            if not refusals:
                refusals.append(None)
                with ThreadPoolExecutor(1) as pool:
                    refusals[0] = pool.submit(model.fit, X, X[:, 0]).exception()
            return np.array(list(self))

    model = Estimator(random_state=0)
    model.fit(X, Labels([0.0, 1.0] * 20))
    assert isinstance(refusals[0], RuntimeError)
    assert "fit a clone of it in each thread" in str(refusals[0])
    expected = clone(model).fit(X, [0.0, 1.0] * 20).predict(X)
    assert_array_equal(model.predict(X), expected)
    with ThreadPoolExecutor(1) as pool:  # later, it may be fitted in any thread
        pool.submit(model.fit, X, X[:, 0]).result()
