"""Split statistics by era, against what the fit has stored, and sums in NumPy."""

import itertools
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import compute_sample_weight

from helpers.criteria import COVER_ALL, COVERING
from helpers.data import N_SAMPLES, make_data, make_mixed_frame
from helpers.estimators import make_estimator
from helpers.grids import on_grid
from helpers.trees import gain_and_direction, n_splits, rows_of_nodes, trees_of
from sklearn_era import ensemble
from sklearn_era._optional import MissingPackageError
from sklearn_era.effects import Recency
from sklearn_era.inspection import (
    era_feature_importances,
    export_text,
    plot_tree,
    split_statistics,
)


def run(target="real", weight=None, module=ensemble, **parameters):
    """A fitted model, its statistics on the rows of the fit, X, y and eras."""
    X, y, _, eras = make_data(target)
    model = make_estimator(module, target, **parameters)
    model.fit(X, y, weight, **({"eras": eras} if module is ensemble else {}))
    found = split_statistics(model, X, y, eras=eras, sample_weight=weight)
    return model, found, X, y, eras


def assert_equals_fit(model, statistics, *, root=True):
    """The run over the rows of the fit saw what the fit saw."""
    assert statistics.gain.size > len(model._predictors)  # more than stumps
    assert_array_equal(statistics["count"], statistics.count_in_fit)
    gain, in_fit, inner = statistics.gain, statistics.gain_in_fit, statistics.depth > 0
    assert inner.any()
    # Pure nodes have splits whose gain is rounding.
    assert_allclose(gain[inner], in_fit[inner], rtol=1e-6, atol=1e-10)
    if root:
        assert_allclose(gain, in_fit, rtol=1e-4)


@on_grid(
    "target split_criterion weighted parameters", ["real", "binary", "multiclass"],
    ["gain", "directional"], [False, True],
    [{}, {"categorical_features": [0], "l2_regularization": 0.5},
     {"interaction_cst": [[0, 1], [2], [3, 4]], "max_features": 0.7}], every=4,
)  # fmt: skip
def test_gain_and_count_on_rows_of_a_fit(target, split_criterion, weighted, parameters):
    weight = np.random.default_rng(1).uniform(0.5, 2, N_SAMPLES) if weighted else None
    parameters = {"split_criterion": split_criterion} | COVER_ALL | parameters
    model, statistics, *_ = run(target, weight, **parameters)
    assert_equals_fit(model, statistics, root=False)
    assert_array_equal(statistics.era_counts.sum(axis=1), statistics.count_in_fit)
    if split_criterion == "directional":
        # The criterion requires all eras.
        assert np.all(statistics.n_eras_covered == 4)
        assert np.all(statistics.direction_agreement > 0)


MINIMUM = {"min_samples_per_era": 8}


@pytest.mark.parametrize(
    "parameters",
    [*COVERING.values(), COVERING["era"] | MINIMUM,
     COVERING["era"] | {"min_samples_per_era": 0.08},
     COVERING["era, normalised"] | MINIMUM | {"min_era_coverage": 0.5}],
    ids=str,
)  # fmt: skip
def test_gain_and_coverage_of_every_criterion(parameters):
    model, statistics, *_ = run(**parameters)
    assert_equals_fit(model, statistics)
    # As many eras as the fit requires, and no more.
    rule = getattr(parameters["split_criterion"], "rule", None)
    required = 1.0 if rule == "every_era" else parameters["min_era_coverage"]
    assert statistics.n_eras_covered.min() == 4 * required


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "quantile", "poisson", "gamma", None]
)
def test_gain_of_every_loss_and_with_class_weight(loss):
    if loss is None:
        model, statistics, *_ = run("multiclass", class_weight="balanced")
    else:
        model, statistics, *_ = run("positive", loss=loss, quantile=0.3)
    assert_equals_fit(model, statistics, root=loss == "squared_error")


def test_gain_in_the_fit_of_a_root_leaves_its_own_term_out():
    parameters = {"class_weight": "balanced", "l2_regularization": 0.7}
    model, statistics, X, y, _ = run("binary", **parameters)
    first = np.full(N_SAMPLES, model._baseline_prediction[0, 0])
    weight, roots = compute_sample_weight("balanced", y), statistics.depth == 0
    terms = []
    for raw in [first, *list(model.staged_decision_function(X))[:-1]]:
        p = 1 / (1 + np.exp(-raw))
        gradient, hessian = weight @ (p - (y == "up")), weight @ (p * (1 - p))
        terms.append(gradient**2 / (hessian + 0.7))
    assert max(terms) > 1e-9
    found = statistics.gain[roots] + terms
    assert_allclose(found, statistics.gain_in_fit[roots], rtol=1e-6)


def test_monotonic_constraints_clip_the_gain_of_the_fit_only():
    _, statistics, *_ = run(monotonic_cst=[0, 1, -1, 1, 0])
    assert_array_equal(statistics["count"], statistics.count_in_fit)
    inner = statistics.depth > 0
    clipped = ~np.isclose(statistics.gain, statistics.gain_in_fit, rtol=1e-6)
    # The children of a root have bounds only where the root's feature is constrained.
    assert not clipped[(statistics.depth == 0) & (statistics.iteration == 0)].any()
    assert 0 < clipped[inner].sum() < inner.sum()


def test_early_stopping_makes_more_rows_than_in_the_fit():
    held_out = {"validation_fraction": 2, "era_order": "ordered"}
    _, found, _, _, eras = run(early_stopping=True, **held_out)
    roots = found.depth == 0
    assert set(found.count_in_fit[roots]) == {np.sum(eras < 2)}
    assert set(found["count"][roots]) == {400}


def test_estimators_of_scikit_learn_are_taken():
    kinds = sklearn.ensemble, ensemble
    statistics, expected = (run(module=x, categorical_features=[0])[1] for x in kinds)
    assert set(statistics) == set(expected)
    for name in expected.keys() - {"left_categories"}:
        assert_array_equal(statistics[name], expected[name])


@settings(max_examples=settings().max_examples // 8)
@given(
    seed=st.integers(0, 1000), minimum=st.integers(1, 12),
    l2=st.sampled_from([0.0, 2.0]), weighted=st.booleans(),
)  # fmt: skip
def test_era_columns_against_walking_every_node(seed, minimum, l2, weighted):
    """On rows that the fit has not seen, with an era that it has not seen."""
    X, y, *_ = make_data()
    model = make_estimator(ensemble, "real", max_iter=2, l2_regularization=l2).fit(X, y)
    rng = np.random.default_rng(seed)
    X, y, _, eras = make_data(seed=seed + 1)
    eras = np.array(["a", "b", "c", "new"])[eras]
    weight = rng.integers(0, 3, N_SAMPLES).astype(float) if weighted else None
    of = {"eras": eras, "sample_weight": weight, "min_samples_per_era": minimum}
    statistics = split_statistics(model, X, y, **of)
    unit = np.ones(N_SAMPLES) if weight is None else weight
    row, raw = 0, np.full(N_SAMPLES, model._baseline_prediction[0, 0])
    for (tree,), after in zip(model._predictors, model.staged_predict(X), strict=True):
        rows = rows_of_nodes(tree, X)
        gradient = ((raw - y) * unit).astype(np.float32).astype(float)
        for node in tree.nodes[tree.nodes["is_leaf"] == 0]:
            both = rows[node["left"]], rows[node["right"]]
            for era, label in enumerate(statistics.era_labels):
                sides = [side[eras[side] == label] for side in both]
                gain, direction = 0.0, 0
                if all(x.size >= minimum and unit[x].any() for x in sides):
                    gain, direction = gain_and_direction(gradient, unit, sides, l2)
                assert statistics.era_counts[row, era] == sum(map(len, sides))
                assert_allclose(statistics.era_gains[row, era], gain, atol=1e-4)
                assert statistics.era_directions[row, era] == direction
            row += 1
        raw = after
    assert row == statistics.gain.size
    directions = statistics.era_directions
    assert_allclose(statistics.direction_agreement, np.abs(directions.mean(axis=1)))
    assert np.all(statistics.n_eras_covered >= (directions != 0).sum(axis=1))


def test_one_era_is_all_rows_and_nodes_that_no_row_reaches_have_no_gain():
    model, _, X, y, eras = run()
    statistics = split_statistics(model, X, y, eras=np.zeros(N_SAMPLES))
    assert_array_equal(statistics.era_gains[:, 0], statistics.gain)
    assert_array_equal(statistics.era_counts[:, 0], statistics["count"])
    assert np.all(statistics.direction_agreement == 1)
    statistics = split_statistics(model, X[:5], y[:5], eras=eras[:5])
    empty = statistics["count"] == 0
    assert empty.any()
    for name in ("gain", "direction_agreement", "n_eras_covered", "era_gains"):
        assert np.all(statistics[name][empty] == 0)


def test_minimum_defaults_to_that_of_the_estimator():
    model, default, *data, eras = run(min_samples_per_era=20)
    same = split_statistics(model, *data, eras=eras, min_samples_per_era=20)
    assert_array_equal(default.era_gains, same.era_gains)
    assert_array_equal(default.n_eras_covered, same.n_eras_covered)
    fewer = split_statistics(model, *data, eras=eras, min_samples_per_era=1)
    assert fewer.n_eras_covered.sum() > default.n_eras_covered.sum()


def test_features_are_columns_of_X_and_categories_its_values():
    """scikit-learn trains on categorical features first; the table does not."""
    frame, y, eras = make_mixed_frame()
    model = make_estimator(ensemble, "real", max_iter=40, max_bins=255).fit(frame, y)
    table = split_statistics(model, frame, y, eras=eras, as_frame=True)
    by_category = table["left_categories"].notna()
    assert_array_equal(table["feature"] == 4, by_category)
    assert_array_equal(table["feature_name"], frame.columns[table["feature"]])
    assert_array_equal(table["threshold"].isna(), by_category)
    assert {0, 1} <= set(table["feature"])
    # A root's rows go to the side in the table.
    checked = 0
    for _, split in table[table["depth"] == 0].iterrows():
        column = frame[split["feature_name"]]
        if split["left_categories"] is None:
            left = column <= split["threshold"]
        else:
            assert set(split["left_categories"]) < set(column.cat.categories)
            left = column.isin(split["left_categories"])
        left |= column.isna() & split["missing_go_to_left"]
        child = model._predictors[split["iteration"]][0].nodes[1]
        assert left.sum() == child["count"]
        checked += split["left_categories"] is not None
    assert 0 < checked < 40


def test_splits_of_missing_values_have_an_infinite_threshold():
    X = np.where(np.arange(200) < 100, np.nan, np.arange(200))[:, np.newaxis]
    y = np.isnan(X[:, 0]).astype(float)
    model = make_estimator(ensemble, "real").fit(X, y)
    statistics = split_statistics(model, X, y, eras=np.arange(200) % 3)
    assert statistics.threshold[0] == np.inf
    assert not statistics.missing_go_to_left[0]


def test_tree_and_class_of_a_split():
    model, statistics, *_ = run("multiclass", max_iter=3)
    assert_array_equal(np.unique(statistics.tree), np.arange(9))
    assert_array_equal(statistics.iteration, statistics.tree // 3)
    assert_array_equal(statistics.class_label, model.classes_[statistics.tree % 3])
    trees, both = trees_of(model), zip(statistics.tree, statistics.node, strict=True)
    nodes = np.array([trees[tree].nodes[node] for tree, node in both])
    assert_array_equal(statistics.depth, nodes["depth"])
    assert_array_equal(statistics.gain_in_fit, nodes["gain"])
    assert statistics.node.size == n_splits(model)
    assert set(run("binary")[1].class_label) == {None}  # one tree an iteration


def test_data_frame_holds_the_arrays():
    model, _, X, y, eras = run()
    dates = np.datetime64("2024-01-01", "ns") + eras.astype("m8[D]")
    statistics = split_statistics(model, X, y, eras=dates)
    table = split_statistics(model, X, y, eras=dates, as_frame=True)
    for name in ("gain", "feature_name"):
        assert_array_equal(table[name], statistics[name])
    for era, prefix in itertools.product(range(4), ("gain", "direction", "count")):
        expected = statistics[f"era_{prefix}s"][:, era]
        assert_array_equal(table[f"{prefix}[2024-01-0{era + 1}]"], expected)


def test_a_model_without_splits_has_an_empty_table():
    data = {"X": np.zeros((30, 2)), "y": np.arange(30.0)}
    model = make_estimator(ensemble, "real").fit(**data)
    data["eras"] = np.arange(30) % 3
    assert split_statistics(model, **data).era_gains.shape == (0, 3)
    assert split_statistics(model, **data, as_frame=True).shape[0] == 0
    result = era_feature_importances(model, **data, normalize=True)
    assert np.all(result.importances == 0)


@pytest.mark.parametrize("target", ["real", "binary", "multiclass", "forest"])
def test_importances_are_sums_of_gains_by_column(target):
    frame, y, eras = make_mixed_frame("real" if target == "forest" else target)
    model = ensemble.EraForestRegressor(5, min_samples_leaf=5, random_state=0)
    model = model if target == "forest" else make_estimator(ensemble, target)
    model.fit(frame, y)
    statistics = split_statistics(model, frame, y, eras=eras)
    result = era_feature_importances(model, frame, y, eras=eras)
    assert result.importances.shape == (4, 5)
    assert result.feature_names.tolist() == list("pqrst")
    assert_array_equal(result.era_labels, np.arange(4))
    for column in range(5):
        own = statistics.feature == column
        sums = statistics.era_gains[own].sum(axis=0)
        assert_allclose(result.importances[:, column], sums)
        assert_allclose(result.pooled[column], statistics.gain[own].sum())
    assert result.pooled[3] == result.pooled.max()


def test_normalized_importances_of_an_era_sum_to_one_and_frames_hold_the_arrays():
    frame, y, eras = make_mixed_frame()
    model = make_estimator(ensemble, "real").fit(frame, y)
    data = {"X": frame, "y": y, "eras": np.array(list("abcd"))[eras]}
    raw = era_feature_importances(model, **data)
    shares = raw.importances / raw.importances.sum(axis=1, keepdims=True)
    for as_frame in (False, True):
        data |= {"normalize": True, "as_frame": as_frame}
        result = era_feature_importances(model, **data)
        assert_allclose(result.importances, shares)
        assert_allclose(result.pooled, raw.pooled / raw.pooled.sum())
    assert result.importances.index.tolist() == list("abcd")
    assert result.importances.columns.tolist() == list("pqrst")
    assert result.pooled.index.tolist() == list("pqrst")


BOTH = [split_statistics, era_feature_importances]
FUNCTIONS = pytest.mark.parametrize("function", BOTH)


@FUNCTIONS
@pytest.mark.parametrize(("name", "spoil", "message"), [
    ("X", lambda X: X[:, :4], "X has 4 features, but HistGradientBoostingClassifier "
     "is expecting 5 features"),
    ("y", lambda y: y[:-1], "y has 399 values, but X has 400 rows; pass one value a"),
    ("eras", lambda eras: eras[:-1], r"eras has 399 labels, but X has 400 rows"),
    ("eras", lambda _: None, "eras must be one-dimensional, with one label a row of X"),
    ("eras", lambda eras: np.where(eras == 1, np.nan, eras), "eras has .* missing lab"),
    ("sample_weight", lambda _: np.ones(3), r"shape == \(3,\), expected \(400,\)"),
    ("y", lambda y: np.where(y == "up", "perhaps", y),
     r"y has 1 class\(es\) that were not in the fit, the first is 'perhaps'; the "
     r"model knows \['down', 'up'\]"),
    ("min_samples_per_era", lambda _: 0, "an int in the range .* Got 0 instead"),
    ("min_samples_per_era", lambda _: 1.5, "an int in the range .* Got 1.5 instead"),
    ("estimator", lambda model: make_pipeline(StandardScaler(), model),
     r"estimator must be a HistGradientBoosting.*got Pipeline"),
    ("estimator", lambda _: ensemble.HistGradientBoostingRegressor,
     r"estimator must be a HistGradientBoosting"),
    ("estimator", lambda _: make_estimator(ensemble, "real"), "not fitted yet"),
    ("estimator", lambda _: run("binary", era_effects="intercept")[0],
     "era_effects: the trees were grown beside"),
])  # fmt: skip
def test_refuses(function, name, spoil, message):
    X, y, _, eras = make_data("binary")
    arguments = {"X": X, "y": y, "eras": eras}
    arguments |= {"sample_weight": None, "min_samples_per_era": None}
    arguments["estimator"] = make_estimator(ensemble, "binary", max_iter=1).fit(X, y)
    function(**arguments)  # which is fine before it is spoilt
    error = NotFittedError if "fitted yet" in message else ValueError
    with pytest.raises(error, match=message):
        function(**arguments | {name: spoil(arguments[name])})


@FUNCTIONS
def test_refuses_columns_of_other_names_and_a_target_outside_the_loss(function):
    frame, _, eras = make_mixed_frame()
    frame, y = frame.drop(columns="t"), np.arange(1.0, N_SAMPLES + 1)
    model = make_estimator(ensemble, "real", loss="gamma", max_iter=1).fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        function(model, frame.rename(columns={"p": "other"}), y, eras=eras)
    with pytest.raises(ValueError, match="requires strictly positive y"):
        function(model, frame, -y, eras=eras)


@FUNCTIONS
def test_pandas_is_needed_for_data_frames_only(function, monkeypatch):
    X, y, _, eras = make_data()
    model = make_estimator(ensemble, "real", max_iter=1).fit(X, y)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert function(model, X, y, eras=eras)
    with pytest.raises(MissingPackageError, match=r"sklearn-era\[cli\]"):
        function(model, X, y, eras=eras, as_frame=True)


def test_ages_of_ordered_categories_are_those_of_the_fit():
    """Weights by recency go by the categories, and so do the sums at the root."""
    X, y, _, codes = make_data()
    months = ["nov", "dec", "jan", "feb"]  # not as the alphabet has them
    named = pd.Series(pd.Categorical.from_codes(codes, months, ordered=True))
    model = make_estimator(ensemble, "real", max_iter=1, era_weighting=Recency(1.0))
    gains = [
        split_statistics(model.fit(X, y, eras=eras), X, y, eras=eras)["gain"]
        for eras in (codes, named)
    ]
    assert_array_equal(*gains)


def test_eras_may_be_the_name_of_a_column_of_the_rows():
    frame, y, eras = make_mixed_frame()
    model = make_estimator(ensemble, "real").fit(frame, y)
    weeks = frame.assign(week=eras)
    for by_eras in (split_statistics, era_feature_importances):
        expected = by_eras(model, frame, y, eras=eras)
        found = by_eras(model, weeks, y, eras="week")
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            assert_array_equal(found[name], values)
    assert export_text(model, weeks, y, eras="week") == export_text(
        model, frame, y, eras=eras
    )
    assert plot_tree(model, weeks, y, eras="week").get_title()
