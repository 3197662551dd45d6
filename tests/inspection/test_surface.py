"""Decision surfaces: their values, the columns that they hold, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from helpers.inspection import (
    N_SAMPLES,
    fit_data,
    make_classifier,
    make_data,
    make_frame,
    make_regressor,
)
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.inspection import DecisionSurfaceDisplay

TABLES = pytest.mark.parametrize(
    "to_table", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"]
)


def draw(model, table, features=("p", "q"), **arguments):
    arguments = {"grid_resolution": 3, "ax": Figure().subplots()} | arguments
    return DecisionSurfaceDisplay.from_estimator(model, table, features, **arguments)


def assert_is_partial_dependence(display, model, X, columns, output, **parameters):
    expected = partial_dependence(
        model, X, list(columns),
        custom_values={columns[0]: display.xx0[0], columns[1]: display.xx1[:, 0]},
        method="brute", **parameters,
    ).average[output]  # fmt: skip
    # Their first axis is the first feature, which we draw from left to right.
    assert_allclose(display.response, expected.T, rtol=1e-9)


def test_surface_is_the_partial_dependence():
    model, X, y, _ = fit_data()
    display = draw(model, X, (0, 1), grid_resolution=7, max_rows=None)
    assert display.response.shape == (7, 7)
    assert np.ptp(display.response) > 0.5
    assert_is_partial_dependence(display, model, X, (0, 1), 0)
    other = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y > 0)
    display = draw(other, X.tolist(), (0, 1), max_rows=None)
    assert_is_partial_dependence(display, other, X, (0, 1), 0)


def test_surface_of_a_binary_classifier_is_its_probability():
    X, y, _ = make_data()
    model = make_classifier(X, y, [0])
    options = {"grid_resolution": 5, "max_rows": None}
    display = draw(model, X, (2, 0), **options)
    assert_is_partial_dependence(display, model, X, (2, 0), 0)
    other = draw(model, X, (2, 0), class_of_interest="a", **options)
    assert_allclose(other.response, 1 - display.response)
    raw = draw(model, X, (2, 0), response_method="decision_function", **options)
    assert_is_partial_dependence(
        raw, model, X, (2, 0), 0, response_method="decision_function"
    )


def test_surface_of_several_classes():
    X, y, _ = make_data()
    model = make_classifier(X, y, [-0.5, 0.5])
    options = {"grid_resolution": 4, "max_rows": 20, "random_state": 3}
    display = draw(model, X, (0, 1), **options)
    assert display.response.shape == (4, 4, 3)
    assert_allclose(display.response.sum(axis=-1), 1)
    assert len(display.surface_) == 3
    for i, label in enumerate("abc"):
        single = draw(model, X, (0, 1), class_of_interest=label, **options)
        assert_array_equal(single.response, display.response[..., i])
    fixed = draw(
        model, X, (0, 1), fixed={2: 0, 3: 0}, response_method="predict", **options
    )
    grid = np.column_stack([fixed.xx0.ravel(), fixed.xx1.ravel(), np.zeros((16, 2))])
    assert_array_equal(
        model.classes_[fixed.response.astype(int).ravel()], model.predict(grid)
    )


def test_fixed_features_are_held_and_the_others_averaged():
    model, X, *_ = fit_data()
    options = {"grid_resolution": 5, "max_rows": None}
    display = draw(model, X, (0, 1), fixed={2: 0.5}, **options)
    held = X.copy()
    held[:, 2] = 0.5
    assert_is_partial_dependence(display, model, held, (0, 1), 0)
    display = draw(model, X, (1, 3), fixed={0: 1.0, 2: 0.5}, **options)
    grid = np.column_stack(
        [np.full(25, 1.0), display.xx0.ravel(), np.full(25, 0.5), display.xx1.ravel()]
    )
    assert_allclose(display.response.ravel(), model.predict(grid))


def test_a_draw_of_rows_is_seeded():
    model, X, *_ = fit_data()
    first, same, other = (
        draw(model, X, (0, 1), max_rows=5, random_state=seed).response
        for seed in (0, 0, 1)
    )
    assert_array_equal(first, same)
    assert not np.array_equal(first, other)


@pytest.mark.slow
@TABLES
def test_surface_over_a_data_frame(to_table):
    """An axis over a column of integers has points between them."""
    frame, y = make_frame()
    table = to_table(frame)
    model = make_regressor(table, y)
    assert model.is_categorical_.tolist() == [False] * 5 + [True]
    options = {"fixed": {"tree": "ash"}, "max_rows": None}
    display = draw(model, table, ("count", "p"), **options)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("count", "p")
    frame["tree"] = pd.Categorical(["ash"] * N_SAMPLES, frame["tree"].cat.categories)
    frame["count"] = frame["count"].astype(float)
    model = make_regressor(*make_frame())
    assert_is_partial_dependence(display, model, frame, ("count", "p"), 0)


def test_limits_default_to_the_range_of_X_and_a_margin():
    model, X, *_ = fit_data()
    X = X.copy()
    X[0, 0] = np.nan
    X[:, 1] = 2.0
    display = draw(model, X, (0, 1), max_rows=2)
    low, high = np.nanmin(X[:, 0]), np.nanmax(X[:, 0])
    margin = (high - low) / 20
    assert_allclose(display.xx0[0], np.linspace(low - margin, high + margin, 3))
    assert_allclose(display.xx1[:, 0], [1.5, 2.0, 2.5])
    display = draw(model, X, (0, 1), limits=[(-1, 1), (0, 8)], max_rows=2)
    assert_allclose(display.xx0[0], [-1, 0, 1])
    assert_allclose(display.xx1[:, 0], [0, 4, 8])


def test_surface_makes_a_figure_and_draws_again(pyplot):
    model, X, *_ = fit_data()
    display = draw(model, X, (0, 1), ax=None, max_rows=2, xlabel="left to right")
    assert pyplot.get_fignums() == [display.figure_.number]
    assert display.ax_.get_xlabel() == "left to right"
    assert display.ax_.get_ylabel() == "x1"
    assert display.plot(plot_method="pcolormesh", vmin=0, vmax=1) is display
    assert display.surface_.get_clim() == (0, 1)
    assert len(pyplot.get_fignums()) == 2


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
    # Of the dtype, but not seen in the fit: it would be drawn as a missing value.
    frame["tree"] = frame["tree"].cat.add_categories("oak")
    with pytest.raises(ValueError, match="'oak' is not a value of column 'tree'"):
        draw(make_regressor(make_frame()[0], y), frame, fixed={"tree": "oak"})


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": (0,)}, r"features must be a pair .* got \(0,\)"),
        ({"features": "xy"}, r"features must be a pair of columns; got 'xy'"),
        ({"features": (1, 1)}, r"features must be two different columns"),
        ({"features": (0, 6)}, r"features: 6 is not a column .* 0 to 5"),
        ({"features": (0, -1)}, r"features: -1 is not a column of X"),
        ({"features": ("p", "z")}, r"features: 'z' is not a column of X"),
        ({"features": ("p", "tree")},
         r"features: column 'tree' cannot be an axis.*categorical"),
        ({"fixed": {"z": 0}}, r"fixed: 'z' is not a column of X"),
        ({"fixed": {"p": 0}}, r"fixed: 'p' is on an axis"),
        ({"fixed": {"r": 0, 2: 1}}, r"fixed: column 2 \(r\) is in it twice"),
        ({"features": 3}, r"features must be a pair of columns; got 3"),
        ({"limits": [(0, 1)]}, r"limits must be a pair .* one for each axis"),
        ({"limits": 5}, r"limits must be a pair of ranges.* got 5"),
        ({"limits": (0, 4)}, r"limits must be .* got \(0, 4\)"),
        ({"limits": [(0, 1), (1, 0)]}, r"limits must be .* low < high"),
        ({"limits": [(0, 1), (0, np.inf)]},
         r"limits must be a pair of ranges .* finite"),
        ({"limits": [("a", "b"), (0, 1)]}, r"limits must be a pair of"),
        ({"grid_resolution": 1}, r"grid_resolution must be .* least 2; got 1"),
        ({"max_rows": 0}, r"max_rows must be an integer of at least 1; got 0"),
        ({"max_rows": True}, r"max_rows must be an integer .* got True"),
        ({"response_method": "raw"}, r"response_method must be one .*'raw'"),
        ({"response_method": "predict_proba"},
         r"response_method='predict_proba' is for classifiers"),
        ({"class_of_interest": 1}, r"class_of_interest=1 is for classifiers"),
        ({"plot_method": "imshow"}, r"plot_method must be 'contourf'"),
    ],
)  # fmt: skip
def test_surface_refuses(change, message):
    frame, y = make_frame()
    arguments = {"features": ("p", "q"), "grid_resolution": 2} | change
    model = make_regressor(frame, y)
    with pytest.raises(ValueError, match=message):
        draw(model, frame, **arguments)


def test_surface_refuses_models_and_data():
    model, X, y, _ = fit_data()
    with pytest.raises(NotFittedError):
        draw(HistGradientBoostingRegressor(), X, (0, 1))
    classifier, by_class = make_classifier(X, y, [0]), {"response_method": "predict"}
    other = StandardScaler().fit(X)
    for estimator, table, options, message in (
        (other, X, {}, "must be a regressor or a classifier"),
        (model, X[:, :3], {}, "X has 3 columns, .* was fitted to 4"),
        (model, pd.DataFrame(X[:0]), {}, "X has no rows"),
        (model, X * np.nan, {}, "'x0' has no finite value in X; pass limits"),
        (model, X, {"fixed": {2: "a"}}, "fixed: 'a' is not a value of column 'x2'"),
        (classifier, X, by_class | {"fixed": {2: 0}},
         "cannot be averaged over the 1 feature"),
        (classifier, X, by_class | {"fixed": {2: 0, 3: 0}, "class_of_interest": "a"},
         "class_of_interest='a' has no effect with"),
        (classifier, X, {"class_of_interest": "z"},
         r"'z' is not a class .*\['a', 'b'\]"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            draw(estimator, table, (0, 1), **options)
