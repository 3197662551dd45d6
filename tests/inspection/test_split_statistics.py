"""Split statistics by era, against what the fit has stored.

On the rows of a fit the model run again must see what the fit saw: the gain and the
count in every node. By era it is held to a node-by-node sum in NumPy.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import ensemble
from sklearn.utils import compute_sample_weight

from helpers.inspection import (
    N_SAMPLES,
    PARAMETERS,
    make_data,
    make_frame,
    make_model,
    make_targets,
)
from sklearn_era.inspection import era_feature_importances, split_statistics


def assert_equals_fit(model, statistics, *, root=True):
    """The run over the rows of the fit saw what the fit saw."""
    assert statistics.gain.size > len(model._predictors)  # more than stumps
    assert_array_equal(statistics["count"], statistics.count_in_fit)
    inner = statistics.depth > 0
    assert inner.any()
    # Pure nodes have splits whose gain is rounding.
    assert_allclose(
        statistics.gain[inner], statistics.gain_in_fit[inner], rtol=1e-6, atol=1e-10
    )
    if root:
        assert_allclose(statistics.gain, statistics.gain_in_fit, rtol=1e-4)


KINDS = pytest.mark.parametrize("kind", ["regressor", "binary", "multiclass"])


# The rows of the fit.


@KINDS
@pytest.mark.parametrize("split_criterion", ["gain", "directional"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"categorical_features": [4], "l2_regularization": 0.5},
        {"interaction_cst": [[0, 1], [2, 3], [4, 5]], "max_features": 0.7},
    ],
    ids=["missing", "categorical", "interaction"],
)
def test_gain_and_count_on_the_rows_of_the_fit(
    kind, split_criterion, weighted, parameters
):
    X, y, eras = make_data()
    y = make_targets(kind, y)
    weight = np.random.default_rng(1).uniform(0.5, 2, N_SAMPLES) if weighted else None
    model = make_model(kind, split_criterion=split_criterion, **parameters)
    model.fit(X, y, weight, eras=eras)
    statistics = split_statistics(model, X, y, eras=eras, sample_weight=weight)
    assert_equals_fit(model, statistics, root=False)
    assert_array_equal(statistics.era_counts.sum(axis=1), statistics.count_in_fit)
    if split_criterion == "directional":
        # What the criterion has asked for.
        assert np.all(statistics.n_eras_covered == 4)
        assert np.all(statistics.direction_agreement > 0)


@pytest.mark.parametrize(
    "parameters",
    [
        {"split_criterion": "era", "boltzmann_alpha": -1},
        {"split_criterion": "time_robust"},
        {"split_criterion": "invariant"},
        {"split_criterion": "vrex"},
        {"split_criterion": {"gain": 1, "directional": 2}},
        {"split_criterion": "era", "min_samples_per_era": 8},
        {
            "split_criterion": "era",
            "min_samples_per_era": 8,
            "min_era_coverage": 0.5,
            "normalize_era_gain": True,
        },
    ],
    ids=str,
)
def test_gain_and_coverage_of_every_criterion(parameters):
    X, y, eras = make_data()
    model = make_model("regressor", **parameters).fit(X, y, eras=eras)
    statistics = split_statistics(model, X, y, eras=eras)
    assert_equals_fit(model, statistics)
    # Of as many eras as the fit has asked for, and no more.
    coverage = parameters.get("min_era_coverage", 1.0)
    assert statistics.n_eras_covered.min() == 4 * coverage


@pytest.mark.parametrize(
    ("loss", "parameters"),
    [
        ("squared_error", {}),
        ("absolute_error", {}),
        ("quantile", {"quantile": 0.3}),
        ("poisson", {}),
        ("gamma", {}),
    ],
)
def test_gain_of_every_loss(loss, parameters):
    X, y, eras = make_data()
    y = np.exp(y / 4)
    model = make_model("regressor", loss=loss, **parameters).fit(X, y)
    statistics = split_statistics(model, X, y, eras=eras)
    assert_equals_fit(model, statistics, root=loss == "squared_error")


def test_gain_with_class_weight_is_that_of_the_fit():
    X, y, eras = make_data()
    y = make_targets("multiclass", y)
    model = make_model("multiclass", class_weight="balanced").fit(X, y)
    assert_equals_fit(model, split_statistics(model, X, y, eras=eras), root=False)


def test_gain_in_the_fit_of_a_root_leaves_its_own_term_out():
    X, y, eras = make_data()
    y = make_targets("binary", y)
    model = make_model("binary", class_weight="balanced", l2_regularization=0.7)
    model.fit(X, y)
    statistics = split_statistics(model, X, y, eras=eras)
    first = model.decision_function(X) * 0 + model._baseline_prediction[0, 0]
    weight = compute_sample_weight("balanced", y)
    roots = statistics.depth == 0
    is_yes = y == "yes"
    raw_predictions = [first, *list(model.staged_decision_function(X))[:-1]]
    terms = []
    for raw in raw_predictions:
        probability = 1 / (1 + np.exp(-raw))
        gradient = (weight * (probability - is_yes)).sum()
        hessian = (weight * probability * (1 - probability)).sum()
        terms.append(gradient**2 / (hessian + 0.7))
    assert max(terms) > 1e-9
    assert_allclose(
        statistics.gain[roots] + terms, statistics.gain_in_fit[roots], rtol=1e-6
    )


def test_monotonic_constraints_clip_the_gain_of_the_fit_only():
    X, y, eras = make_data()
    model = make_model("regressor", monotonic_cst=[1, -1, 1, 0, 0, 0]).fit(X, y)
    statistics = split_statistics(model, X, y, eras=eras)
    assert_array_equal(statistics["count"], statistics.count_in_fit)
    inner = statistics.depth > 0
    clipped = ~np.isclose(statistics.gain, statistics.gain_in_fit, rtol=1e-6)
    # The children of a root have bounds only where the root's feature is constrained.
    assert not clipped[(statistics.depth == 0) & (statistics.iteration == 0)].any()
    assert 0 < clipped[inner].sum() < inner.sum()


def test_early_stopping_makes_more_rows_than_in_the_fit():
    X, y, eras = make_data()
    model = make_model("regressor", early_stopping=True, validation_fraction=0.25)
    model.fit(X, y)
    statistics = split_statistics(model, X, y, eras=eras)
    roots = statistics.depth == 0
    assert set(statistics.count_in_fit[roots]) == {450}
    assert set(statistics["count"][roots]) == {600}


def test_estimators_of_scikit_learn_are_taken():
    X, y, eras = make_data()
    ours = make_model("regressor", categorical_features=[4]).fit(X, y)
    stock = ensemble.HistGradientBoostingRegressor(
        categorical_features=[4], **PARAMETERS
    ).fit(X, y)
    expected = split_statistics(ours, X, y, eras=eras)
    statistics = split_statistics(stock, X, y, eras=eras)
    assert set(statistics) == set(expected)
    for name in expected:
        if name != "left_categories":
            assert_array_equal(statistics[name], expected[name])


# Eras, node by node.


def rows_of_nodes(model, predictor, X):
    """The rows in each node, by walking from the root; X has no categories."""
    nodes = predictor.nodes
    rows = {0: np.arange(X.shape[0])}
    for index, node in enumerate(nodes):
        if node["is_leaf"]:
            continue
        values = X[rows[index], node["feature_idx"]]
        goes_left = values <= node["num_threshold"]
        goes_left[np.isnan(values)] = node["missing_go_to_left"]
        rows[node["left"]] = rows[index][goes_left]
        rows[node["right"]] = rows[index][~goes_left]
    return rows


@settings(deadline=None, database=None, max_examples=15)
@given(
    seed=st.integers(0, 1000),
    minimum=st.integers(1, 12),
    l2=st.sampled_from([0.0, 2.0]),
    weighted=st.booleans(),
)
def test_era_columns_against_walking_every_node(seed, minimum, l2, weighted):
    """On rows that the fit has not seen, with an era that it has not seen."""
    X, y, _ = make_data(0)
    model = make_model("regressor", max_iter=2, l2_regularization=l2).fit(X, y)
    rng = np.random.default_rng(seed)
    X, y, eras = make_data(seed + 1)
    eras = np.array(["a", "b", "c", "new"])[eras]
    weight = rng.integers(0, 3, N_SAMPLES).astype(float) if weighted else None
    statistics = split_statistics(
        model, X, y, eras=eras, sample_weight=weight, min_samples_per_era=minimum
    )
    unit = np.ones(N_SAMPLES) if weight is None else weight

    row = 0
    raw = np.full(N_SAMPLES, model._baseline_prediction[0, 0])
    for predictors, after in zip(
        model._predictors, model.staged_predict(X), strict=True
    ):
        rows = rows_of_nodes(model, predictors[0], X)
        gradient = ((raw - y) * unit).astype(np.float32).astype(float)
        for node in predictors[0].nodes:
            if node["is_leaf"]:
                continue
            for era, label in enumerate(statistics.era_labels):
                sides = [
                    r[eras[r] == label]
                    for r in (rows[node["left"]], rows[node["right"]])
                ]
                G = np.array([gradient[side].sum() for side in sides])
                H = np.array([unit[side].sum() for side in sides])
                gain, direction = 0.0, 0
                if min(side.size for side in sides) >= minimum and H.min() > 0:
                    gain = (G**2 / (H + l2)).sum() - G.sum() ** 2 / (H.sum() + l2)
                    direction = np.sign(-G[0] / (H[0] + l2) + G[1] / (H[1] + l2))
                count = sum(side.size for side in sides)
                assert statistics.era_counts[row, era] == count
                assert_allclose(statistics.era_gains[row, era], gain, atol=1e-4)
                assert statistics.era_directions[row, era] == direction
            row += 1
        raw = after
    assert row == statistics.gain.size
    assert_allclose(
        statistics.direction_agreement,
        np.abs(statistics.era_directions.sum(axis=1)) / 4,
    )
    assert np.all(statistics.n_eras_covered >= (statistics.era_directions != 0).sum(1))


def test_one_era_is_all_rows():
    X, y, _ = make_data()
    model = make_model("regressor").fit(X, y)
    statistics = split_statistics(model, X, y, eras=np.zeros(N_SAMPLES))
    assert_array_equal(statistics.era_gains[:, 0], statistics.gain)
    assert_array_equal(statistics.era_counts[:, 0], statistics["count"])
    assert np.all(statistics.direction_agreement == 1)


def test_nodes_that_no_row_reaches_have_no_gain():
    X, y, eras = make_data()
    model = make_model("regressor").fit(X, y)
    statistics = split_statistics(model, X[:5], y[:5], eras=eras[:5])
    empty = statistics["count"] == 0
    assert empty.any()
    for name in ("gain", "direction_agreement", "n_eras_covered"):
        assert np.all(statistics[name][empty] == 0)
    assert np.all(statistics.era_gains[empty] == 0)


def test_row_order_does_not_matter():
    X, y, eras = make_data()
    model = make_model("binary").fit(X, make_targets("binary", y))
    order = np.random.default_rng(0).permutation(N_SAMPLES)
    y = make_targets("binary", y)
    a = split_statistics(model, X, y, eras=eras)
    b = split_statistics(model, X[order], y[order], eras=eras[order])
    assert_array_equal(a.era_counts, b.era_counts)
    assert_allclose(a.era_gains, b.era_gains, atol=1e-6)


def test_minimum_defaults_to_that_of_the_estimator():
    X, y, eras = make_data()
    model = make_model("regressor", min_samples_per_era=20).fit(X, y)
    default = split_statistics(model, X, y, eras=eras)
    same = split_statistics(model, X, y, eras=eras, min_samples_per_era=20)
    assert_array_equal(default.era_gains, same.era_gains)
    assert_array_equal(default.n_eras_covered, same.n_eras_covered)
    fewer = split_statistics(model, X, y, eras=eras, min_samples_per_era=1)
    assert fewer.n_eras_covered.sum() > default.n_eras_covered.sum()


# The place of a split.


def test_features_are_columns_of_X_and_categories_its_values():
    """scikit-learn trains on categorical features first; the table does not."""
    frame, y, eras = make_frame()
    model = make_model("regressor", max_iter=40).fit(frame, y)
    table = split_statistics(model, frame, y, eras=eras, as_frame=True)
    by_category = table["left_categories"].notna()
    assert set(table.loc[by_category, "feature"]) == {4}
    assert set(table.loc[by_category, "feature_name"]) == {"t"}
    assert table.loc[by_category, "threshold"].isna().all()
    assert table.loc[~by_category, "threshold"].notna().all()
    assert {0, 1} <= set(table.loc[~by_category, "feature"])

    # A root's rows go where the table says.
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
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    X[:100] = np.nan
    y = np.isnan(X[:, 0]).astype(float)
    model = make_model("regressor").fit(X, y)
    statistics = split_statistics(model, X, y, eras=np.arange(200) % 3)
    assert statistics.threshold[0] == np.inf
    assert not statistics.missing_go_to_left[0]


def test_tree_and_class_of_a_split():
    X, y, eras = make_data()
    y = make_targets("multiclass", y)
    model = make_model("multiclass", max_iter=3).fit(X, y)
    statistics = split_statistics(model, X, y, eras=eras)
    assert_array_equal(np.unique(statistics.tree), np.arange(9))
    assert_array_equal(statistics.iteration, statistics.tree // 3)
    assert_array_equal(statistics.class_label, model.classes_[statistics.tree % 3])
    nodes = [p.nodes for p in itertools.chain.from_iterable(model._predictors)]
    for tree, node, depth, gain in zip(
        statistics.tree,
        statistics.node,
        statistics.depth,
        statistics.gain_in_fit,
        strict=True,
    ):
        assert nodes[tree][node]["depth"] == depth
        assert nodes[tree][node]["gain"] == gain
    n_splits = sum((n["is_leaf"] == 0).sum() for n in nodes)
    assert statistics.node.size == n_splits


def test_class_label_is_none_with_one_tree_an_iteration():
    X, y, eras = make_data()
    y = make_targets("binary", y)
    model = make_model("binary").fit(X, y)
    assert set(split_statistics(model, X, y, eras=eras).class_label) == {None}


def test_data_frame_holds_the_arrays():
    X, y, eras = make_data()
    dates = (np.datetime64("2024-01-01") + eras.astype("m8[D]")).astype(
        "datetime64[ns]"
    )
    model = make_model("regressor").fit(X, y)
    statistics = split_statistics(model, X, y, eras=dates)
    table = split_statistics(model, X, y, eras=dates, as_frame=True)
    assert len(table) == statistics.gain.size
    assert_array_equal(table["gain"], statistics.gain)
    assert_array_equal(table["feature_name"], statistics.feature_name)
    for era, day in enumerate(["01", "02", "03", "04"]):
        label = f"2024-01-{day}"
        for prefix, name in [
            ("gain", "era_gains"),
            ("direction", "era_directions"),
            ("count", "era_counts"),
        ]:
            assert_array_equal(table[f"{prefix}[{label}]"], statistics[name][:, era])


def test_a_model_without_splits_has_an_empty_table():
    model = make_model("regressor").fit(np.zeros((30, 2)), np.arange(30.0))
    data = {"X": np.zeros((30, 2)), "y": np.arange(30.0), "eras": np.arange(30) % 3}
    statistics = split_statistics(model, **data)
    assert statistics.gain.shape == (0,)
    assert statistics.era_gains.shape == (0, 3)
    assert split_statistics(model, **data, as_frame=True).shape[0] == 0
    result = era_feature_importances(model, **data, normalize=True)
    assert np.all(result.importances == 0)
