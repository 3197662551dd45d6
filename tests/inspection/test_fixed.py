"""Columns that a decision surface holds at a value: which values, and by which name."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from helpers.inspection_display import N_SAMPLES, make_data, make_frame, make_regressor
from sklearn_era.inspection import DecisionSurfaceDisplay

TABLES = pytest.mark.parametrize(
    "to_table", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"]
)


def draw(model, table, features=("p", "q"), **arguments):
    arguments = {"grid_resolution": 3, "ax": Figure().subplots()} | arguments
    return DecisionSurfaceDisplay.from_estimator(model, table, features, **arguments)


def fix_all(**values):
    return {"r": 0, "s": 0, "count": 3, "tree": "ash"} | values


def predict_held(model, display, frame, tree):
    """What the model says of the grid, with the other columns of `fix_all`."""
    table = frame.iloc[np.zeros(9, int)].reset_index(drop=True)
    table["p"], table["q"] = display.xx0.ravel(), display.xx1.ravel()
    table[["r", "s"]], table["count"] = 0.0, 3
    table["tree"] = pd.Categorical([tree] * 9, frame["tree"].cat.categories)
    return model.predict(table)


@TABLES
@pytest.mark.parametrize("tree", ["ash", "elm", None, np.nan, pd.NA])
def test_a_category_is_held_in_the_dtype_of_its_column(to_table, tree):
    frame, y = make_frame()
    frame.loc[::5, "tree"] = None
    y = y - 2.0 * frame["tree"].isna()
    model, table = make_regressor(frame, y), to_table(frame)
    display = draw(
        make_regressor(table, y), table, fixed=fix_all(tree=tree), max_rows=None
    )
    tree = None if pd.isna(tree) else tree
    expected = predict_held(model, display, frame, tree)
    assert_allclose(display.response.ravel(), expected)


@TABLES
@pytest.mark.parametrize("tree", ["oak", 3, True, 1.5, b"ash"])
def test_unknown_categories_are_refused(to_table, tree):
    frame, y = make_frame()
    model, table = make_regressor(to_table(frame), y), to_table(frame)
    message = f"fixed: {tree!r} is not a value of column 'tree', whose categories are "
    with pytest.raises(ValueError, match=message + "'ash', 'elm'; pass one of them"):
        draw(model, table, fixed={"tree": tree})


def test_a_category_of_the_dtype_that_the_fit_has_not_seen_is_refused():
    """It would be drawn as a missing value."""
    frame, y = make_frame()
    model = make_regressor(frame, y)
    frame["tree"] = frame["tree"].cat.add_categories("oak")
    with pytest.raises(ValueError, match="'oak' is not a value of column 'tree'"):
        draw(model, frame, fixed={"tree": "oak"})


@pytest.mark.parametrize("as_frame", [False, True])
def test_codes_of_categories_are_known_too(as_frame):
    X, y, _ = make_data()
    X[:, 1] = np.arange(N_SAMPLES) % 3
    X[:, 3] = np.arange(N_SAMPLES) % 4
    X[::7, 3] = np.nan
    y = y + X[:, 1] - np.nan_to_num(X[:, 3], nan=5)
    table = pd.DataFrame(X, columns=list("abcd")) if as_frame else X
    model = make_regressor(table, y, categorical_features=[1, 3])
    for code in (2, 2.0, None, np.nan):
        display = draw(model, table, (0, 2), fixed={1: 0, 3: code})
        held = np.zeros((9, 4))
        held[:, 0], held[:, 2] = display.xx0.ravel(), display.xx1.ravel()
        held[:, 3] = np.nan if code is None else code
        held = pd.DataFrame(held, columns=list("abcd")) if as_frame else held
        assert_array_equal(display.response.ravel(), model.predict(held))
    for code in (3, "2"):  # 3 is a code of the other column
        with pytest.raises(ValueError, match=r"whose categories are 0.0, 1.0, 2.0"):
            draw(model, table, (0, 2), fixed={1: code})


@TABLES
@pytest.mark.parametrize("column", ["r", "count"])
def test_numbers_are_held_as_numbers(to_table, column):
    frame, y = make_frame()
    table = to_table(frame)
    model = make_regressor(table, y)
    for value in (2, 2.5, np.float32(1), None, np.nan):
        display = draw(model, table, fixed=fix_all(**{column: value}))
        assert np.isfinite(display.response).all()
    for value in ("much", np.datetime64("2024-01-05"), 1j):
        message = rf"is not a value of column '{column}', which holds numbers"
        with pytest.raises(ValueError, match=message):
            draw(model, table, fixed={column: value})
    with pytest.raises(ValueError, match="pass one value, and not several"):
        draw(model, table, fixed={column: [1, 2]})


@TABLES
def test_columns_in_another_order_than_in_the_fit_are_found_by_name(to_table):
    frame, y = make_frame()
    model, moved = make_regressor(to_table(frame), y), frame[frame.columns[::-1]]
    # The category is the first column now, and "p" is where it was.
    display = draw(model, to_table(moved), fixed=fix_all())
    assert_array_equal(
        display.response, draw(model, to_table(frame), fixed=fix_all()).response
    )
    with pytest.raises(ValueError, match=r"'tree' cannot be an axis.*categorical"):
        draw(model, to_table(moved), ("tree", "q"))
    # Codes are categorical by the model alone, and not by their dtype.
    model = make_regressor(frame, y, categorical_features=["count", "tree"])
    with pytest.raises(ValueError, match=r"'count' cannot be an axis.*categorical"):
        draw(model, moved, ("count", "q"))
    with pytest.raises(ValueError, match="9 is not a value of column 'count', whose"):
        draw(model, moved, fixed={"count": 9})


def test_a_pipeline_is_asked_by_the_dtype():
    frame, y = make_frame()
    encode = make_column_transformer(
        (OneHotEncoder(), ["tree"]), remainder="passthrough"
    )
    model = make_pipeline(encode, LinearRegression()).fit(frame, y)
    display = draw(model, frame, fixed=fix_all())
    expected = predict_held(model, display, frame, "ash")
    assert_allclose(display.response.ravel(), expected)
    with pytest.raises(ValueError, match="'oak' is not a value of column 'tree'"):
        draw(model, frame, fixed={"tree": "oak"})
