"""Times and groups on the command line: new groups, labels of two kinds, names."""

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.cli import invoke, params, read, run, write
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.calibration import EraConformalRegressor
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_files import load_model, read_metadata, save_model

pytestmark = pytest.mark.filterwarnings("ignore:Labels are text")
TOLD = r"8 of 48 rows are of 2 group\(s\) that the fit has not seen \(9101, 9102\), and"


def shops_by_week():
    """Rows of 12 shops in 16 weeks, and those of the last one, of which two are new."""
    rng, (n_weeks, n_shops) = np.random.default_rng(0), (16, 12)
    week, shop, _ = map(np.ravel, np.indices((n_weeks, n_shops, 4)))
    dates = pd.date_range("2024-01-01", periods=n_weeks, freq="7D")[week]
    rows = pd.DataFrame({"a": rng.normal(size=week.size), "shop": 101 + shop})
    rows = rows.assign(shop=rows.shop.astype(str), week=dates.strftime("%Y-%m-%d"))
    rows["y"] = rows.a + rng.normal(size=n_shops)[shop] + 0.1 * week
    asked = rows[week == 15].reset_index(drop=True)
    is_new = asked.shop < "103"
    return rows, asked.assign(shop=np.where(is_new, "9" + asked.shop, asked.shop))


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


def test_dates_of_a_model_are_read_from_text():
    rows, asked = shops_by_week()
    months = pd.to_datetime(rows.week).dt.to_period("Q").dt.to_timestamp()
    dated = rows.assign(week=months)
    columns, order = ["week", "shop"], ("ordered", "unordered")
    model = Regressor(max_iter=5, era_effects="intercept", era_order=order)
    model.fit(dated[["a"]], dated.y, eras=dated[columns])
    save_model(model, "m.era", target="y")
    write(asked.assign(week="2024-04"), "d.csv")
    run("predict", "m.era", "d.csv", "--out", "p.csv")
    eras = asked.assign(week=pd.Timestamp("2024-04-01"))[columns]
    expected = model.predict(asked[["a"]], eras=eras)
    np.testing.assert_allclose(read("p.csv").prediction, expected, rtol=1e-9)
    write(asked.assign(week="spring"), "d.csv")
    told = invoke("predict", "m.era", "d.csv", "--out", "p.csv")
    assert told.exit_code == 2
    holds = "column 'week' holds 'spring', and the model knows dates such as"
    assert holds in told.stderr


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
    run(*base, *params(era_effects="intercept"))
    assert asked.format("new", "1 era") in run("info", "m.era")
    assert invoke(*predict).stderr == ""
    assert Path("p.csv").exists()
