"""Columns of eras on the command line: predictions by era, groups, kinds of labels."""

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.metrics import r2_score

from helpers.cli import fail, invoke, params, read, run, shops_by_week, write
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.calibration import EraCalibratedClassifier, EraConformalRegressor
from sklearn_era.ensemble import EraForestRegressor, JustTrainTwice
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_files import load_model, read_metadata, save_model
from sklearn_era.model_selection import EraSearchCV
from sklearn_era.preprocessing import EraTargetRegressor, EraTargetTransformer

pytestmark = pytest.mark.filterwarnings("ignore:Labels are text")
TOLD = r"8 of 48 rows are of 2 group\(s\) that the fit has not seen \(9101, 9102\), and"


@pytest.mark.parametrize(
    ("form", "labels"),
    [("csv", "dates"), ("parquet", "dates"), ("csv", "texts"), ("csv", "months"),
     ("parquet", "numbers")],
)  # fmt: skip
def test_a_column_of_eras_is_read_where_predictions_depend_on_it(form, labels):
    """As by hand, from files of either form; without it, of a new era, and told so."""
    rng = np.random.default_rng(0)
    week = np.repeat(np.arange(40), 10)
    column = {
        "dates": pd.date_range("2023-01-02", periods=40, freq="W-MON")[week],
        "numbers": week, "months": 202001 + week % 12 + 100 * (week // 12),
        "texts": np.array([f"{2020 + x // 12}-{x % 12 + 1:02}" for x in week]),
    }[labels]  # fmt: skip
    rows = pd.DataFrame({"week": column, "a": rng.normal(size=week.size)})
    rows["y"] = rows.a + 0.5 * week
    data = f"d.{form}"
    write(rows[week < 30], data)
    for name in ("later.csv", "later.parquet"):
        write(rows[week > 25].drop(columns="y"), name)
    write(rows[week > 25], "truth.csv")
    write(rows[["a"]][week > 25], "none.csv")
    fit = ["fit", data, "--target", "y", "--era", "week", "--out", "m.era"]
    fit += [*params(max_iter=5), "--no-score"]
    for extra, model in (
        ([], Regressor(max_iter=5)),
        (params(era_effects="intercept"),
         Regressor(max_iter=5, era_effects="intercept")),
        (["--estimator", "auto"], AutoEraRegressor(Regressor(max_iter=5))),
    ):  # fmt: skip
        run(*fit, *extra)
        model.fit(*(rows[week < 30][x] for x in (["a"], "y")), eras=column[week < 30])
        later, given = rows[["a"]][week > 25], {"eras": column[week > 25]}
        expected = model.predict(later, **(given if extra else {}))
        uses = not np.array_equal(expected, model.predict(later))
        assert uses == bool(extra)
        for name in ("later.csv", "later.parquet"):
            run("predict", "m.era", name, "--out", "p.csv")
            np.testing.assert_allclose(read("p.csv").prediction, expected, rtol=1e-6)
        score = r2_score(rows.y[week > 25], expected)
        told = run("predict", "m.era", "truth.csv", "--out", "p.csv", "--scoring", "r2")
        assert f"R²: {score:.4f}; by era" in told
        result = invoke("predict", "m.era", "none.csv", "--out", "p.csv")
        lacks = "DATA: 'none.csv' lacks 'week': all rows are taken for a new era."
        assert (lacks in result.stderr) == uses
        found = read("p.csv").prediction
        np.testing.assert_allclose(found, model.predict(later), rtol=1e-6)


LAST = EraTargetTransformer(level="last", smooth=0)
OF_TARGETS = EraTargetRegressor(Regressor(max_iter=3), LAST)
LEVELS, UP = Regressor(max_iter=3, era_effects="intercept"), Classifier(max_iter=3)
UP_BY_LEVEL = Classifier(max_iter=3, era_effects="intercept")


@pytest.mark.parametrize(("model", "uses"), [
    (OF_TARGETS, True), (EraConformalRegressor(OF_TARGETS, cv=3), True),
    (EraSearchCV(OF_TARGETS, {"regressor__max_depth": [2]}, cv=3), True),
    (EraTargetRegressor(EraForestRegressor(2), LAST), True),
    (EraConformalRegressor(LEVELS, cv=3), True), (EraForestRegressor(2), False),
    (EraConformalRegressor(EraForestRegressor(2), cv=3), False),
    (EraCalibratedClassifier(UP, cv=3), True), (JustTrainTwice(UP), False),
    (JustTrainTwice(UP_BY_LEVEL), True), (UP, False),
], ids=range(11))  # fmt: skip
@pytest.mark.parametrize("kind", [str, "M8[us]"])
def test_models_of_python_are_told_the_eras_that_they_use(model, uses, kind):
    """Whatever is around what, and whether labels are dates or their text."""
    rng, week = np.random.default_rng(0), np.repeat(np.arange(12), 20)
    dates = (np.datetime64("2024-01-01") + 7 * week).astype(kind)
    rows = pd.DataFrame({"a": rng.normal(size=week.size)})
    y = rows.a + week
    if is_classifier(model):
        y = (rows.a + week % 3 > 1).astype(int)
    save_model(clone(model).fit(rows, y, eras=dates), "m.era", target="y", era="week")
    fitted, heading = load_model("m.era")[0], "prediction"
    predict, p = fitted.predict, getattr(fitted, "predict_proba", None)
    if is_classifier(model):
        predict, heading = lambda *X, **given: p(*X, **given)[:, 1], "probability_1"
    expected = predict(rows, eras=dates) if uses else predict(rows)
    assert np.array_equal(expected, predict(rows)) != uses
    text = np.datetime_as_string(dates.astype("M8[D]"))
    for path in ("d.csv", "d.parquet"):
        write(rows.assign(week=text), path)
        run("predict", "m.era", path, "--out", "p.csv")
        np.testing.assert_array_equal(read("p.csv")[heading], expected)
    write(rows, "d.csv")
    told = invoke("predict", "m.era", "d.csv", "--out", "p.csv").stderr
    assert ("lacks 'week': all rows are taken for a new era." in told) == uses


@pytest.mark.parametrize("names", [["week", "shop"], ["shop", "week", "half"]])
@pytest.mark.parametrize("model", [
    EraTargetRegressor(Regressor(max_iter=3)),
    AutoEraRegressor(Regressor(max_iter=3), era_order="ordered"),
    EraSearchCV(EraTargetRegressor(Regressor(max_iter=3)), {}, era_order="unordered"),
], ids=lambda x: type(x).__name__)  # fmt: skip
def test_columns_of_combined_eras_are_read(model, names):
    rows, _ = shops_by_week()
    rows = rows.assign(half=np.arange(len(rows)) % 2)
    model = clone(model).fit(rows[["a", *names]], rows.y, eras=names)
    save_model(model, "m.era")
    for path, kind in (("d.csv", int), ("d.parquet", int), ("d.parquet", str)):
        given = rows[["y", *names[::-1], "a"]]
        write(given.astype(dict.fromkeys(names[2:], kind)), path)
        result = invoke("predict", "m.era", path, "--out", "p.csv")
        assert (result.exit_code, result.stderr) == (0, "")
        expected = model.predict(rows[["a", *names]], eras=names)
        assert np.array_equal(read("p.csv")["prediction"], expected)
        if not isinstance(model, AutoEraRegressor):  # whose levels are another test's
            assert not np.array_equal(model.predict(rows[["a"]]), expected)


@pytest.mark.parametrize("columns", [["week", "shop"], ["shop", "week"]])
@pytest.mark.parametrize("kind", ["booster", "average", "intervals"])
def test_new_groups_are_told_to_models_of_known_ones(kind, columns):
    """Once, in Python and by the program, which compares labels as the model's kind."""
    rows, asked = shops_by_week()
    order = {"week": "ordered", "shop": "unordered"}
    given = {"era_order": tuple(order[name] for name in columns)}
    model = Regressor(max_iter=10, era_effects="intercept", **given)
    if kind == "average":
        plain = Regressor(max_iter=10)
        given |= {"members": ["level"], "group": "known"}
        model = AutoEraRegressor(plain, **given)
    elif kind == "intervals":
        model = EraConformalRegressor(model, group="known", cv=3, **given)
    model.fit(rows[["a"]], rows.y, eras=rows[columns])
    save_model(model, "m.era", target="y")
    X, eras = asked[["a"]], asked[columns]
    if kind == "booster":  # which is for both questions
        expected = model.predict(X, eras=eras)
    else:
        with pytest.warns(UserWarning, match=TOLD) as caught:
            expected = model.predict(X, eras=eras)
        assert len(caught) == 1
        known = ~asked.shop.str.startswith("9")
        model.predict(X[known], eras=eras[known])
    if kind == "intervals":
        with pytest.warns(UserWarning, match=TOLD) as caught:
            model.predict_interval(X, 0.5, eras=eras)
        assert len(caught) == 1
    write(asked, "d.csv")
    write(asked.assign(week=pd.to_datetime(asked.week)), "d.parquet")
    for data in ("d.csv", "d.parquet"):
        result = invoke("predict", "m.era", data, "--out", "p.csv")
        assert result.exit_code == 0
        found = re.findall(TOLD, result.stderr)
        assert len(found) == result.stderr.count("\n") == (kind != "booster")
        np.testing.assert_allclose(read("p.csv").prediction, expected, rtol=1e-9)


def fit_levels(rows, names):
    """Fit a model with levels to eras, or to times and known groups, and save it."""
    order = ("ordered", "unordered") if len(names) > 1 else "ordered"
    model = Regressor(max_iter=5, era_effects="intercept", era_order=order)
    model.fit(rows[["a"]], rows.y, eras=rows[names])
    save_model(model, "m.era", target="y", era=names[0], group="known")
    return model


@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
@pytest.mark.parametrize(("known", "spelled"), [
    (int, "{}"), (float, "{}.00"), (int, "0{}"), (lambda shop: shop + 0.5, "{}.5"),
])  # fmt: skip
def test_new_groups_that_are_text_leave_the_others_numbers(known, spelled, path):
    rows, asked = (x.assign(shop=x.shop.astype(int)) for x in shops_by_week())
    eras = asked.assign(shop=asked.shop.map(known))[["week", "shop"]]
    model = fit_levels(rows.assign(shop=rows.shop.map(known)), [*eras])
    expected = model.predict(asked[["a"]], eras=eras)
    new = "N" + asked.shop.astype(str)
    texts = asked.shop.map(spelled.format).where(asked.shop < 9000, new)
    write(asked.assign(shop=texts), path)
    told = invoke("predict", "m.era", path, "--out", "p.csv").stderr
    assert len(re.findall(TOLD.replace(" 9", " N9").replace("(9", "(N9"), told)) == 1
    assert told.count("\n") == 1
    np.testing.assert_allclose(read("p.csv").prediction, expected, rtol=1e-9)
    write(asked.assign(shop=new), path)
    told = invoke("predict", "m.era", path, "--out", "p.csv").stderr
    assert told.startswith("Warning: 48 of 48 rows are of 12 group(s) that the fit has")


@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
@pytest.mark.parametrize("names", [["shop"], ["week", "shop"]])
@pytest.mark.parametrize(("fitted", "label"), [
    (["7", "8"], "7"), (["7", "N1"], "7"), (["007", "7"], "7"), (["7", "7.0"], "7.0"),
])  # fmt: skip
def test_whole_floats_are_integers_of_a_fit_to_text(fitted, label, names, path):
    """Unless the fit has this spelling, too."""
    rows, asked = shops_by_week()
    rows["shop"] = np.array(fitted)[np.arange(len(rows)) % 2]
    rows["y"] += 5 * (rows.shop == label)
    model = fit_levels(rows, names)
    expected = model.predict(asked[["a"]], eras=asked.assign(shop=label)[names])
    write(asked.assign(shop=7.0), path)
    assert invoke("predict", "m.era", path, "--out", "p.csv").stderr == ""
    np.testing.assert_allclose(read("p.csv").prediction, expected, rtol=1e-9)
    if (path, label) == ("d.csv", "7"):  # as a decimal is written
        write(asked.assign(shop="7.00"), path)
        assert invoke("predict", "m.era", path, "--out", "p.csv").stderr == ""
        np.testing.assert_allclose(read("p.csv").prediction, expected, rtol=1e-9)
    if len(names) > 1:  # beside other text, which is new
        write(asked.assign(shop=["7.0", *["7+"] * (len(asked) - 1)]), path)
        told = invoke("predict", "m.era", path, "--out", "p.csv").stderr
        assert "are of 1 group(s) that the fit has not seen (7+), and" in told
        np.testing.assert_allclose(read("p.csv").prediction[0], expected[0], rtol=1e-9)


@pytest.mark.parametrize("path", ["d.csv", "d.parquet"])
@pytest.mark.parametrize(("known", "texts", "labels", "stray"), [
    ([1, 2, 3], ["2", "03", "4.0"], [2, 3, 4], "N1"),
    ([1, 2, 3], ["2", "3", "4"], [2, 3, 4], "03"),
    ([1, 2, 3], ["2", "+3", " 4"], [2, 3, 4], "1+"),
    ([2024.1, 2024.2], ["2024.1", "2024.3"], [2024.1, 2024.3], "2024.10"),
    ([False, True], ["TRUE", "false"], [True, False], "N1"),
])  # fmt: skip
def test_eras_of_a_model_are_read_from_text(known, texts, labels, stray, path):
    rows, asked = shops_by_week()
    model = fit_levels(rows.assign(week=np.resize(known, len(rows))), ["week"])
    week = np.resize(labels, len(asked))
    expected = model.predict(asked[["a"]], eras=pd.DataFrame({"week": week}))
    week = np.resize(texts, len(asked)).astype(object)
    run("predict", "m.era", write(asked.assign(week=week), path), "--out", "p.csv")
    np.testing.assert_allclose(read("p.csv").prediction, expected, rtol=1e-9)
    week[5] = stray
    write(asked.assign(week=week), path)
    result = invoke("predict", "m.era", path, "--out", "p.csv")
    told = f"Error: DATA: column 'week' holds '{stray}', and the model knows "
    assert (result.exit_code, told in result.stderr) == (2, True)
    write(asked.assign(week=np.inf), "d.parquet")
    told = fail("predict", "m.era", "d.parquet", "--out", "p.csv")
    assert told.startswith("DATA: column 'week' needs finite labels, and there are")


def test_dates_of_a_model_are_read_from_text():
    rows, asked = shops_by_week()
    months = pd.to_datetime(rows.week).dt.to_period("Q").dt.to_timestamp()
    dated = rows.assign(week=months)
    columns, order = ["week", "shop"], ("ordered", "unordered")
    model = Regressor(max_iter=5, era_effects="intercept", era_order=order)
    model.fit(dated[["a"]], dated.y, eras=dated[columns])
    save_model(model, "m.era", target="y")
    eras = asked.assign(week=pd.Timestamp("2024-04-01"))[columns]
    expected = model.predict(asked[["a"]], eras=eras)
    for text in ("2024-04", "2024-04-01", "2024-04-01 00:00", "2024-04-01T00:00:00.0"):
        write(asked.assign(week=text), "d.parquet")
        run("predict", "m.era", "d.parquet", "--out", "p.csv")
        np.testing.assert_allclose(read("p.csv").prediction, expected, rtol=1e-9)
    # NumPy takes many of these for dates, by other rules.
    for text in (
        *("spring", "20240401", "202404", "2024", "240401", "2024-13", "today", "NaT"),
        *("2024-04-01T00:00:00Z", "2024-04-01 00:00+02:00", "01.04.2024", ""),
    ):
        weeks = asked.week.where(asked.index != 3, text)
        write(asked.assign(week=weeks), "d.parquet")
        told = fail("predict", "m.era", "d.parquet", "--out", "p.csv")
        holds = f"column 'week' holds '{text}', and the model knows dates such as"
        missing = "column 'week' has 1 missing value"
        assert told.startswith(f"DATA: {holds if text else missing}")


def test_months_without_december_are_scored():
    rows = shops_by_week()[0]
    months = pd.date_range("2022-01", periods=16, freq="MS")
    at = np.unique(rows.week, return_inverse=True)[1]
    write(rows.assign(week=months.year[at] * 100 + months.month[at]), "d.csv")
    base = ["fit", "d.csv", "--target", "y", "--era", "week", "--groups", "shop"]
    base += ["--known-groups", "--horizon", "3", "--out", "m.era", *params(max_iter=9)]
    told = invoke(*base)
    assert "from era 202302 on" in told.stdout
    assert told.stderr == ""


def test_a_file_names_groups_and_the_question():
    rows, asked = shops_by_week()
    write(rows, "d.csv")
    write(asked, "asked.csv")
    base = ["fit", "d.csv", "--target", "y", "--era", "week", "--groups", "shop"]
    base += ["--no-score", "--out", "m.era", *params(max_iter=9)]
    run(*base, "--known-groups", "--horizon", "14D", *params(era_effects="intercept"))
    metadata = read_metadata("m.era")
    found = metadata.era, metadata.groups, metadata.group, metadata.horizon
    assert found == ("week", "shop", "known", "14D")
    asked = "\n  groups: 12 of column 'shop'; for {} groups\n  horizon: {} ahead\n"
    assert asked.format("known", "14D") in run("info", "m.era")
    predict = "predict", "m.era", "asked.csv", "-o", "p.csv"
    assert re.search(TOLD, invoke(*predict).stderr)
    # Files of before do not tell.
    with zipfile.ZipFile("m.era") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(parts["sklearn_era.json"])
    for name in ("groups", "group", "horizon"):
        del document[name]
    parts["sklearn_era.json"] = json.dumps(document)
    with zipfile.ZipFile("old.era", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert load_model("old.era")[1].groups is None
    assert "groups: " not in run("info", "old.era")
    named = Regressor(max_iter=1).fit(rows[["a", "week"]], rows.y, eras="week")
    assert save_model(named, "one.era").era == read_metadata("one.era").era == "week"
    run(*base, *params(era_effects="intercept"))
    assert asked.format("new", "1 era") in run("info", "m.era")
    assert invoke(*predict).stderr == ""
    assert Path("p.csv").exists()
