"""The search by eras, and the estimators that search by themselves."""

import warnings
from datetime import date
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import (
    log_loss,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
)
from sklearn.model_selection import GroupKFold, cross_val_score

from sklearn_era.datasets import make_synthetic_memorization
from sklearn_era.ensemble import (
    AutoEraClassifier,
    AutoEraRegressor,
    BinnedDataset,
    EraForestRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_era.model_selection import (
    EraSearchCV,
    EraSearchDisplay,
    EraWalkForwardSplit,
)

ALPHAS = {"alpha": [1.0, 100.0]}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    eras = rng.permutation(np.arange(240) % 12)
    return X, X @ [1.0, -1.0, 0.0] + rng.normal(size=240), eras


def refuse(estimator, X, y):
    raise ValueError("not today")


def scores_by_hand(model, X, y, eras, folds):
    """Negative squared errors by era, in the order of the labels."""
    scores = {}
    for train, test in folds:
        predicted = clone(model).fit(X[train], y[train]).predict(X[test])
        for era in np.unique(eras[test]):
            rows = eras[test] == era
            scores[era] = -mean_squared_error(y[test][rows], predicted[rows])
    return np.array([scores[era] for era in sorted(scores)])


@pytest.mark.parametrize(
    ("era_order", "folds", "n_tested"),
    [
        ("auto", EraWalkForwardSplit(3, test_size=2), 6),
        ("ordered", EraWalkForwardSplit(3, test_size=2), 6),
        ("unordered", GroupKFold(3), 12),
    ],
)
def test_scores_differences_and_choice_are_those_by_hand(
    data, era_order, folds, n_tested
):
    X, y, eras = data
    search = EraSearchCV(Ridge(1e4), ALPHAS, era_order=era_order)
    search.fit(X, y, eras=eras)
    parts = list(folds.split(eras, groups=eras))
    expected = [scores_by_hand(Ridge(a), X, y, eras, parts) for a in (1e4, 1.0, 100.0)]
    np.testing.assert_allclose(search.era_scores_, expected)
    assert search.era_labels_.tolist() == list(range(12 - n_tested, 12))
    results = search.cv_results_
    differences = search.era_scores_ - search.era_scores_[0]
    errors = differences.std(axis=1, ddof=1) / np.sqrt(n_tested)
    np.testing.assert_allclose(results["mean_difference"], differences.mean(axis=1))
    np.testing.assert_allclose(results["se_difference"], errors)
    np.testing.assert_allclose(
        results["worst_test_score"], search.era_scores_.min(axis=1)
    )
    assert results["qualifies"].tolist() == [False, True, True]
    assert results["rank_test_score"].tolist() == [3, 1, 2]
    assert (search.best_index_, search.best_params_) == (1, {"alpha": 1.0})
    assert (search.predict(X) == Ridge(1.0).fit(X, y).predict(X)).all()
    assert search.score(X, y) == Ridge(1.0).fit(X, y).score(X, y)
    assert is_regressor(search)


def test_the_plain_model_stays_within_a_standard_error(data):
    X, y, eras = data
    candidates = {"alpha": [1.001, 0.5]}
    search = EraSearchCV(Ridge(1.0), candidates).fit(X, y, eras=eras)
    assert search.best_params_ == {}
    search.set_params(rule="best").fit(X, y, eras=eras)
    assert search.best_index_ == search.cv_results_["mean_test_score"].argmax()


def test_the_worst_era_chooses_another(data):
    X, y, eras = data
    y = np.where(eras == 11, -y, y)
    best = {
        by: EraSearchCV(Ridge(1e4), {"alpha": [1.0]}, rule="best", choose_by=by)
        .fit(X, y, eras=eras)
        .best_params_
        for by in ("mean", "worst")
    }
    assert best == {"mean": {"alpha": 1.0}, "worst": {}}


def test_an_average_is_one_more_candidate(data):
    X, y, eras = data
    search = EraSearchCV(Ridge(1e4), {"alpha": [1.0, 50.0]}, n_averaged=2)
    search.fit(X, y, eras=eras)
    assert search.cv_results_["params"][-1] == [{"alpha": 1.0}, {"alpha": 50.0}]
    search.best_index_ = 3
    models = [Ridge(alpha).fit(X, y) for alpha in (1.0, 50.0)]
    search.estimators_ = models
    expected = np.mean([model.predict(X) for model in models], axis=0)
    assert (search.predict(X) == expected).all()


def test_an_average_is_left_for_what_is_better_by_more_than_an_error(data):
    X, y, eras = data
    for n_averaged in (2, 3):  # with the plain model, too
        search = EraSearchCV(Ridge(1e4), {"alpha": [1.0, 1.5]}, n_averaged=n_averaged)
        search.fit(X, y, eras=eras)
        single = 1 + search.cv_results_["mean_test_score"][1:3].argmax()
        averages = search.cv_results_["mean_test_score"][3:]
        average = 3 + averages.argmax()
        assert averages.size == n_averaged - 1
        difference = search.era_scores_[single] - search.era_scores_[average]
        error = difference.std(ddof=1) / np.sqrt(difference.size)
        is_better = difference.mean() > error
        assert search.best_index_ == (single if is_better else average)


def test_classes_are_averaged_and_may_lack_in_a_fold(data):
    X, y, eras = data
    y = np.digitize(y, [-1, 1]).astype(str)
    y[(y == "2") & (eras < 10)] = "1"  # no class 2 before the last block
    search = EraSearchCV(
        DummyClassifier(), {"strategy": ["stratified", "most_frequent"]}, n_averaged=3
    )
    search.fit(X, y, eras=eras)
    assert search.classes_.tolist() == ["0", "1", "2"]
    assert is_classifier(search)
    assert np.isfinite(search.era_scores_).all()
    search = EraSearchCV(LogisticRegression(C=1e-4), {"C": [1.0, 0.1]}, n_averaged=3)
    search.fit(X, y, eras=eras)
    assert set(search.predict(X)) <= set("012")
    np.testing.assert_allclose(search.predict_proba(X).sum(axis=1), 1.0)
    train, _ = next(EraWalkForwardSplit(3, test_size=2).split(X, groups=eras))
    model = LogisticRegression(C=1e-4).fit(X[train], y[train])
    first = eras == search.era_labels_[0]
    p = np.c_[model.predict_proba(X[first]), np.zeros(first.sum())]
    expected = -log_loss(y[first], p, labels=list("012"))
    assert search.era_scores_[0, 0] == pytest.approx(expected)


def test_eras_and_weights_go_to_fit_and_scores():
    rng = np.random.default_rng(1)
    X, eras = rng.normal(size=(300, 2)), np.repeat(list("abcdef"), 50)
    y, weights = X[:, 0] + rng.normal(size=300), rng.uniform(0, 2, 300)
    search = EraSearchCV(
        HistGradientBoostingRegressor(max_iter=3, max_leaf_nodes=4),
        {"split_criterion": ["held_out"]},
        era_order="unordered",
    ).fit(X, y, eras=eras, sample_weight=weights)
    train, test = next(GroupKFold(3).split(eras, groups=eras))
    model = clone(search.estimator).fit(X[train], y[train], weights[train])
    rows = test[eras[test] == eras[test][0]]
    expected = -mean_squared_error(
        y[rows], model.predict(X[rows]), sample_weight=weights[rows]
    )
    place = search.era_labels_.tolist().index(eras[rows[0]])
    assert search.era_scores_[0, place] == pytest.approx(expected)


def test_differences_are_drawn_with_their_errors(data):
    pytest.importorskip("matplotlib").use("Agg")
    X, y, eras = data
    search = EraSearchCV(Ridge(1e4), ALPHAS, n_averaged=2).fit(X, y, eras=eras)
    display = EraSearchDisplay.from_search(search)
    results = search.cv_results_
    np.testing.assert_allclose(display.means, results["mean_difference"][1:])
    np.testing.assert_allclose(display.errors, results["se_difference"][1:])
    assert display.names == ["alpha=1.0", "alpha=100.0", "average of 2"]
    assert display.chosen == search.best_index_ - 1
    assert [x.get_text() for x in display.ax_.get_yticklabels()] == display.names
    with pytest.raises(ValueError, match=r"the shape \(0, 6\) and 0 names"):
        EraSearchDisplay(differences=np.empty((0, 6)), names=[])


def test_a_candidate_that_cannot_be_fitted_is_left_out(data):
    X, y, eras = data
    with pytest.warns(UserWarning, match=r"alpha=-1\.0 is left out, as it cannot be"):
        search = EraSearchCV(Ridge(1e4), {"alpha": [-1.0, 1.0]}).fit(X, y, eras=eras)
    assert search.best_params_ == {"alpha": 1.0}
    with pytest.raises(ValueError, match="alpha"):
        EraSearchCV(Ridge(-1.0), ALPHAS).fit(X, y, eras=eras)


def test_time_that_is_over_leaves_the_plain_model(data):
    X, y, eras = data
    search = EraSearchCV(Ridge(1e4), ALPHAS, time_budget=1e-9, n_averaged=2)
    with pytest.warns(UserWarning, match="after 1 of 3 candidates"):
        search.fit(X, y, eras=eras)
    assert search.best_params_ == {}
    assert len(search.cv_results_["params"]) == 1


@pytest.mark.parametrize(
    ("params", "arguments", "message"),
    [
        ({}, {"eras": None}, r"EraSearchCV needs eras: pass fit\(X, y, eras=\.\.\.\)"),
        ({}, {"eras": np.zeros(240)}, "holds the single era 0"),
        ({}, {"eras": np.arange(240) % 2}, "walking forward tests on one"),
        ({"scoring": refuse}, {}, "scoring=.* is defined in no era: not today"),
        ({"param_grid": {"alfa": [1.0]}}, {}, "Invalid parameter 'alfa'"),
        ({}, {"eras": np.zeros(239)}, "eras has 239 labels, but X has 240 rows"),
        ({}, {"y": np.zeros(3)}, "y has 3 rows, but X has 240"),
        ({"cv": 1}, {}, "'cv' parameter"),
        ({"time_budget": 0}, {}, "'time_budget' parameter"),
        ({"era_order": "time"}, {}, "'era_order' parameter"),
    ],
)
def test_what_is_wrong_is_said(data, params, arguments, message):
    X, y, eras = data
    rows = {"X": X, "y": y, "eras": eras} | arguments
    with pytest.raises(ValueError, match=message):
        EraSearchCV(Ridge(), ALPHAS).set_params(**params).fit(**rows)


@pytest.mark.parametrize(
    ("eras", "order"),
    [
        ([date(2020, 1, 1 + j % 9) for j in range(90)], "ordered"),
        (np.arange(90) % 9 + 0.5, "ordered"),
        (np.array([2**70 + j % 9 for j in range(90)], dtype=object), "ordered"),
        (np.arange(90) % 2 == 0, "unordered"),
    ],
)
def test_dates_and_numbers_of_any_kind_are_ordered(eras, order):
    X = np.random.default_rng(0).normal(size=(90, 1))
    search = EraSearchCV(Ridge(), {"alpha": [2.0]}).fit(X, X[:, 0], eras=eras)
    assert search.era_order_ == order


@pytest.mark.parametrize(
    "form", ["{:04d}", "2024-{:02d}", "2024-01-{:02d}", "2024-W{:02d}", "2024Q{}"]
)
def test_text_of_numbers_or_dates_in_one_form_is_ordered_with_a_warning(form):
    X = np.random.default_rng(0).normal(size=(90, 1))
    eras = np.array([form.format(1 + j % 9) for j in range(90)])
    search = EraSearchCV(Ridge(), {"alpha": [2.0]})
    message = f"^eras holds text such as '{eras[0]}', which EraSearchCV takes for"
    with pytest.warns(UserWarning, match=message):
        search.fit(X, X[:, 0], eras=eras)
    assert search.era_order_ == "ordered"
    search.set_params(era_order="unordered").fit(X, X[:, 0], eras=eras)
    assert search.era_order_ == "unordered"  # without a warning


@pytest.mark.parametrize(
    "eras",
    [
        list("abcdefghi"), [f"week{j:02d}" for j in range(9)],
        [f"2024-W{j}" for j in range(4, 13)], [f"W{j:02d}/2024" for j in range(9)],
        [str(j) for j in range(4, 13)], [b"a", b"b", b"c"] * 3,
        ["2024-01", "2024-W02", "2024-03"] * 3, ["01-2024", "02-2024", "01-2025"] * 3,
    ],
)  # fmt: skip
def test_other_text_has_an_order_if_one_is_passed(eras):
    X = np.random.default_rng(0).normal(size=(90, 1))
    eras = np.repeat(eras, 10)
    search = EraSearchCV(Ridge(), {"alpha": [2.0]})
    with pytest.raises(ValueError, match=r"^eras holds text such as '.*: pass era_"):
        search.fit(X, X[:, 0], eras=eras)
    search.set_params(era_order="unordered").fit(X, X[:, 0], eras=eras)
    assert search.era_order_ == "unordered"


def test_a_fold_of_a_single_class(data):
    X, _, eras = data
    plain = HistGradientBoostingClassifier(max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what else a single class may be to blame
        search = EraSearchCV(plain, {"max_leaf_nodes": [3]})
        search.fit(X, (eras > 5).astype(int), eras=eras)
    assert np.isfinite(search.era_scores_).all()


def test_eras_are_requested_where_metadata_is_routed(data):
    X, y, eras = data
    search = EraSearchCV(Ridge(1e4), ALPHAS)
    with config_context(enable_metadata_routing=True):
        scores = cross_val_score(search, X, y, params={"eras": eras})
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("params", "metric"),
    [
        ({"loss": "poisson"}, mean_poisson_deviance),
        ({"loss": "quantile", "quantile": 0.8}, partial(mean_pinball_loss, alpha=0.8)),
    ],
)
def test_scores_are_those_of_the_loss(data, params, metric):
    X, y, eras = data
    y = np.exp(y / 3)
    plain = HistGradientBoostingRegressor(max_iter=2, **params)
    model = AutoEraRegressor(plain, era_order="unordered", cv=2)
    model.fit(X, y, eras=eras)
    train, test = next(GroupKFold(2).split(X, groups=eras))
    predicted = clone(plain).fit(X[train], y[train]).predict(X[test])
    rows = eras[test] == eras[test][0]
    expected = -metric(y[test][rows], predicted[rows])
    assert model.era_scores_[0, eras[test][0]] == pytest.approx(expected)


def test_boosters_alone_know_how_to_use_eras(data):
    X, y, eras = data
    with pytest.raises(
        ValueError, match=r"must be a HistGradientBoostingRegressor.*Ridge"
    ):
        AutoEraRegressor(Ridge()).fit(X, y, eras=eras)


def test_sparse_rows_of_any_kind(data):
    X, y, eras = data
    search = EraSearchCV(Ridge(), ALPHAS).fit(X, y, eras=eras)
    sparse = clone(search).fit(coo_array(X), y, eras=eras)
    assert np.allclose(sparse.era_scores_, search.era_scores_)


def test_bins_of_all_rows_are_no_rows_to_search(data):
    X, y, eras = data
    rows = BinnedDataset.from_arrays(X, y, eras=eras)
    with pytest.raises(TypeError, match="cannot be split or indexed"):
        EraSearchCV(Ridge(), ALPHAS).fit(rows, y, eras=eras)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_the_level_of_later_eras_is_found(early_stopping):
    """It is that of the last eras, and not of those before eras that are held out."""
    rng = np.random.default_rng(0)
    eras = np.repeat(np.arange(16), 60)
    X = rng.normal(size=(960, 2))
    y = np.sin(X[:, 0]) + 0.3 * np.cumsum(rng.normal(size=16))[eras]
    y += 0.1 * rng.normal(size=960)
    plain = HistGradientBoostingRegressor(
        max_iter=30, min_samples_leaf=10, early_stopping=early_stopping
    )
    model = AutoEraRegressor(plain, n_averaged=1).fit(X, y, eras=eras)
    assert model.best_params_["era_effects"] == "intercept"
    assert list(model.estimators_[0].era_intercepts_) == list(range(16))
    assert len(model.cv_results_["params"]) == 8
    assert is_regressor(model)


@pytest.mark.slow
def test_a_shortcut_is_seen_through():
    data = make_synthetic_memorization(random_state=0)
    model = AutoEraClassifier(
        HistGradientBoostingClassifier(max_iter=30), era_order="unordered", cv=2
    ).fit(data.X_train, data.y_train, eras=data.eras_train)
    plain = HistGradientBoostingClassifier(max_iter=30).fit(data.X_train, data.y_train)
    assert model.score(data.X_test, data.y_test) > plain.score(data.X_test, data.y_test)
    assert model.predict_proba(data.X_test).shape == (2000, 2)


def test_a_model_of_its_own_has_the_seed():
    model = AutoEraRegressor(random_state=3)
    assert model._plain_model().random_state == 3
    assert clone(model).get_params() == model.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(n_averaged=2)


def make_late_columns():
    """Rows of 12 eras; two columns begin in the second half, and one never does."""
    rng = np.random.default_rng(0)
    eras = np.repeat(np.arange(12), 30)
    X = pd.DataFrame(rng.normal(size=(eras.size, 3)), columns=["a", "b", "late"])
    X.loc[eras < 6, "late"] = np.nan
    X["kind"] = pd.Categorical(np.where(eras < 6, None, rng.choice(["u", "v"], 360)))
    X["never"] = np.nan
    return X, X["a"] + X["late"].fillna(0.0) + 0.1 * rng.normal(size=360), eras


SMALL = {"max_iter": 3, "max_leaf_nodes": 4}


@pytest.mark.parametrize(
    "search",
    [
        AutoEraRegressor(HistGradientBoostingRegressor(**SMALL)),
        AutoEraClassifier(HistGradientBoostingClassifier(**SMALL), n_averaged=2),
        EraSearchCV(
            HistGradientBoostingRegressor(**SMALL), {"max_depth": [1, 2]}, n_jobs=2
        ),
        EraSearchCV(EraForestRegressor(3), {"max_depth": [2]}, era_order="unordered"),
    ],
)
def test_columns_that_begin_later_are_one_warning(search):
    X, y, eras = make_late_columns()
    if is_classifier(search):
        y = y > 0
    names = "'kind', 'late', 'never'"
    if search.era_order == "unordered":  # each fold has some of the late eras
        names = "'never'"
    message = rf"X: column\(s\) {names} have no value in rows that some fold trains on"
    with pytest.warns(UserWarning, match=message) as caught:
        search.fit(X, y, eras=eras)
    (warning,) = (x for x in caught if "have no value" in str(x.message))
    assert warning.filename == __file__
    assert np.isfinite(search.era_scores_).all()
    predicted = search.predict(X)
    assert np.isfinite(predicted).all()
    np.testing.assert_array_equal(search.predict(X.assign(never=1.0)), predicted)
