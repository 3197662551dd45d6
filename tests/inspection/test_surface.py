"""Decision surfaces: against scikit-learn's partial dependence, and what is refused."""

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.inspection_display import (
    N_SAMPLES,
    make_classifier,
    make_data,
    make_frame,
    make_regressor,
)
from sklearn_era.ensemble import (
    HistGradientBoostingRegressor,
)
from sklearn_era.inspection import (
    DecisionSurfaceDisplay,
)


@pytest.fixture(autouse=True)
def pyplot():
    """A backend without windows, and no figure left behind."""
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture
def ax():
    return Figure().subplots()


def assert_is_partial_dependence(display, model, X, columns, output, **parameters):
    expected = partial_dependence(
        model,
        X,
        list(columns),
        custom_values={
            columns[0]: display.xx0[0],
            columns[1]: display.xx1[:, 0],
        },
        method="brute",
        **parameters,
    ).average[output]
    # Their first axis is the first feature, which we draw from left to right.
    assert_allclose(display.response, expected.T, rtol=1e-9)


def test_surface_is_the_partial_dependence(ax):
    X, y, _ = make_data()
    model = make_regressor(X, y)
    display = DecisionSurfaceDisplay.from_estimator(
        model, X, (0, 1), grid_resolution=7, max_rows=None, ax=ax
    )
    assert display.response.shape == (7, 7)
    assert np.ptp(display.response) > 0.5
    assert_is_partial_dependence(display, model, X, (0, 1), 0)


def test_surface_of_a_binary_classifier_is_its_probability(ax):
    X, y, _ = make_data()
    model = make_classifier(X, y, [0])
    options = {"grid_resolution": 5, "max_rows": None, "ax": ax}
    display = DecisionSurfaceDisplay.from_estimator(model, X, (2, 0), **options)
    assert_is_partial_dependence(display, model, X, (2, 0), 0)
    other = DecisionSurfaceDisplay.from_estimator(
        model, X, (2, 0), class_of_interest="a", **options
    )
    assert_allclose(other.response, 1 - display.response)
    raw = DecisionSurfaceDisplay.from_estimator(
        model, X, (2, 0), response_method="decision_function", **options
    )
    assert_is_partial_dependence(
        raw, model, X, (2, 0), 0, response_method="decision_function"
    )


def test_surface_of_several_classes(ax):
    X, y, _ = make_data()
    model = make_classifier(X, y, [-0.5, 0.5])
    options = {"grid_resolution": 4, "max_rows": 20, "random_state": 3, "ax": ax}
    display = DecisionSurfaceDisplay.from_estimator(model, X, (0, 1), **options)
    assert display.response.shape == (4, 4, 3)
    assert_allclose(display.response.sum(axis=-1), 1)
    assert len(display.surface_) == 3
    for i, label in enumerate("abc"):
        single = DecisionSurfaceDisplay.from_estimator(
            model, X, (0, 1), class_of_interest=label, **options
        )
        assert_array_equal(single.response, display.response[..., i])
    fixed = DecisionSurfaceDisplay.from_estimator(
        model, X, (0, 1), fixed={2: 0, 3: 0}, response_method="predict", **options
    )
    grid = np.column_stack([fixed.xx0.ravel(), fixed.xx1.ravel(), np.zeros((16, 2))])
    assert_array_equal(
        model.classes_[fixed.response.astype(int).ravel()], model.predict(grid)
    )


def test_fixed_features_are_held_and_the_others_averaged(ax):
    X, y, _ = make_data()
    model = make_regressor(X, y)
    options = {"grid_resolution": 5, "max_rows": None, "ax": ax}
    display = DecisionSurfaceDisplay.from_estimator(
        model, X, (0, 1), fixed={2: 0.5}, **options
    )
    held = X.copy()
    held[:, 2] = 0.5
    assert_is_partial_dependence(display, model, held, (0, 1), 0)
    display = DecisionSurfaceDisplay.from_estimator(
        model, X, (1, 3), fixed={0: 1.0, 2: 0.5}, **options
    )
    grid = np.column_stack(
        [np.full(25, 1.0), display.xx0.ravel(), np.full(25, 0.5), display.xx1.ravel()]
    )
    assert_allclose(display.response.ravel(), model.predict(grid))


def test_a_draw_of_rows_is_seeded(ax):
    X, y, _ = make_data()
    model = make_regressor(X, y)

    def response(random_state):
        return DecisionSurfaceDisplay.from_estimator(
            model,
            X,
            (0, 1),
            grid_resolution=3,
            max_rows=5,
            random_state=random_state,
            ax=ax,
        ).response

    assert_array_equal(response(0), response(0))
    assert not np.array_equal(response(0), response(1))


@pytest.mark.parametrize("to_table", [lambda X: X, pl.from_pandas])
def test_surface_over_a_data_frame(ax, to_table):
    """An axis over a column of integers has points between them."""
    frame, y = make_frame()
    table = to_table(frame)
    model = make_regressor(table, y)
    assert model.is_categorical_.tolist() == [False] * 5 + [True]
    display = DecisionSurfaceDisplay.from_estimator(
        model,
        table,
        ("count", "p"),
        fixed={"tree": "ash"},
        grid_resolution=5,
        max_rows=None,
        ax=ax,
    )
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("count", "p")
    frame["tree"] = pd.Categorical(["ash"] * N_SAMPLES, frame["tree"].cat.categories)
    frame["count"] = frame["count"].astype(float)
    expected = partial_dependence(
        make_regressor(*make_frame()),
        frame,
        ["count", "p"],
        custom_values={"count": display.xx0[0], "p": display.xx1[:, 0]},
        method="brute",
    ).average[0]
    assert_allclose(display.response, expected.T)


def test_limits_default_to_the_range_of_X_and_a_margin(ax):
    X, y, _ = make_data()
    model = make_regressor(X, y)
    X = X.copy()
    X[0, 0] = np.nan
    X[:, 1] = 2.0
    options = {"grid_resolution": 3, "max_rows": 2, "ax": ax}
    display = DecisionSurfaceDisplay.from_estimator(model, X, (0, 1), **options)
    low, high = np.nanmin(X[:, 0]), np.nanmax(X[:, 0])
    margin = (high - low) / 20
    assert_allclose(display.xx0[0], np.linspace(low - margin, high + margin, 3))
    assert_allclose(display.xx1[:, 0], [1.5, 2.0, 2.5])
    display = DecisionSurfaceDisplay.from_estimator(
        model, X, (0, 1), limits=[(-1, 1), (0, 8)], **options
    )
    assert_allclose(display.xx0[0], [-1, 0, 1])
    assert_allclose(display.xx1[:, 0], [0, 4, 8])


def test_surface_of_other_estimators(ax):
    X, y, _ = make_data()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y > 0)
    display = DecisionSurfaceDisplay.from_estimator(
        model, X.tolist(), (0, 1), grid_resolution=3, max_rows=None, ax=ax
    )
    assert_is_partial_dependence(display, model, X, (0, 1), 0)


def test_surface_makes_a_figure_and_draws_again(pyplot):
    X, y, _ = make_data()
    model = make_regressor(X, y)
    display = DecisionSurfaceDisplay.from_estimator(
        model, X, (0, 1), grid_resolution=3, max_rows=2, xlabel="left to right"
    )
    assert pyplot.get_fignums() == [display.figure_.number]
    assert display.ax_.get_xlabel() == "left to right"
    assert display.ax_.get_ylabel() == "x1"
    assert display.plot(plot_method="pcolormesh", vmin=0, vmax=1) is display
    assert display.surface_.get_clim() == (0, 1)
    assert len(pyplot.get_fignums()) == 2


BAD_SURFACES = {
    "one_feature": ({"features": (0,)}, r"features must be a pair .* got \(0,\)"),
    "a_name": ({"features": "xy"}, r"features must be a pair of columns; got 'xy'"),
    "same": ({"features": (1, 1)}, r"features must be two different columns"),
    "outside": ({"features": (0, 6)}, r"features: 6 is not a column .* 0 to 5"),
    "negative": ({"features": (0, -1)}, r"features: -1 is not a column of X"),
    "unknown": ({"features": ("p", "z")}, r"features: 'z' is not a column of X"),
    "category": (
        {"features": ("p", "tree")},
        r"features: column 'tree' cannot be an axis.*categorical",
    ),
    "fixed_unknown": ({"fixed": {"z": 0}}, r"fixed: 'z' is not a column of X"),
    "fixed_axis": ({"fixed": {"p": 0}}, r"fixed: 'p' is on an axis"),
    "fixed_twice": ({"fixed": {"r": 0, 2: 1}}, r"fixed: column 2 \(r\) is in it twice"),
    "three": ({"features": 3}, r"features must be a pair of columns; got 3"),
    "limits": ({"limits": [(0, 1)]}, r"limits must be a pair .* one for each axis"),
    "limits_number": ({"limits": 5}, r"limits must be a pair of ranges.* got 5"),
    "limits_one_range": ({"limits": (0, 4)}, r"limits must be .* got \(0, 4\)"),
    "limits_order": ({"limits": [(0, 1), (1, 0)]}, r"limits must be .* low < high"),
    "limits_infinite": (
        {"limits": [(0, 1), (0, np.inf)]},
        r"limits must be a pair of ranges .* finite",
    ),
    "limits_text": ({"limits": [("a", "b"), (0, 1)]}, r"limits must be a pair of"),
    "grid": ({"grid_resolution": 1}, r"grid_resolution must be .* least 2; got 1"),
    "rows": ({"max_rows": 0}, r"max_rows must be an integer of at least 1; got 0"),
    "rows_bool": ({"max_rows": True}, r"max_rows must be an integer .* got True"),
    "response": ({"response_method": "raw"}, r"response_method must be one .*'raw'"),
    "response_of_regressor": (
        {"response_method": "predict_proba"},
        r"response_method='predict_proba' is for classifiers",
    ),
    "class_of_regressor": (
        {"class_of_interest": 1},
        r"class_of_interest=1 is for classifiers",
    ),
    "plot_method": ({"plot_method": "imshow"}, r"plot_method must be 'contourf'"),
}


@pytest.mark.parametrize(("change", "message"), BAD_SURFACES.values(), ids=BAD_SURFACES)
def test_surface_refuses(ax, change, message):
    frame, y = make_frame()
    arguments = {"features": ("p", "q"), "grid_resolution": 2, "ax": ax} | change
    model = make_regressor(frame, y)
    with pytest.raises(ValueError, match=message):
        DecisionSurfaceDisplay.from_estimator(model, frame, **arguments)


def test_surface_refuses_models_and_data(ax):
    X, y, _ = make_data()
    draw = DecisionSurfaceDisplay.from_estimator
    model = make_regressor(X, y)
    with pytest.raises(NotFittedError):
        draw(HistGradientBoostingRegressor(), X, (0, 1), ax=ax)
    with pytest.raises(ValueError, match="must be a regressor or a classifier"):
        draw(StandardScaler().fit(X), X, (0, 1), ax=ax)
    with pytest.raises(ValueError, match=r"X has 3 columns, .* was fitted to 4"):
        draw(model, X[:, :3], (0, 1), ax=ax)
    with pytest.raises(ValueError, match="X has no rows"):
        draw(model, pd.DataFrame(X[:0]), (0, 1), ax=ax)
    with pytest.raises(ValueError, match="'x0' has no finite value in X; pass limits"):
        draw(model, np.full((3, 4), np.nan), (0, 1), ax=ax)
    with pytest.raises(ValueError, match="fixed: 'much' is not a value of column 'x2'"):
        draw(model, X, (0, 1), fixed={2: "much"}, ax=ax)
    codes = X.copy()
    codes[:, 3] = np.arange(N_SAMPLES) % 3
    with pytest.raises(ValueError, match=r"'x3' cannot be an axis.*categorical"):
        draw(make_regressor(codes, y, categorical_features=[3]), codes, (0, 3), ax=ax)
    classifier = make_classifier(X, y, [0])
    with pytest.raises(ValueError, match="cannot be averaged over the 1 feature"):
        draw(classifier, X, (0, 1), fixed={2: 0}, response_method="predict", ax=ax)
    with pytest.raises(ValueError, match=r"class_of_interest='a' has no effect with"):
        draw(
            classifier,
            X,
            (0, 1),
            fixed={2: 0, 3: 0},
            response_method="predict",
            class_of_interest="a",
            ax=ax,
        )
    with pytest.raises(ValueError, match=r"'z' is not a class .*\['a', 'b'\]"):
        draw(classifier, X, (0, 1), class_of_interest="z", ax=ax)
