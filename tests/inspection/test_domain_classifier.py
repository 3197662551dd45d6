"""The domain classifier: its AUC, what it tells by, its refusals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    KFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_predict,
)
from sklearn.svm import LinearSVC

from sklearn_era.inspection import domain_classifier_auc


def make_sets(shift=1.0, n_samples=400, random_state=0):
    rng = np.random.default_rng(random_state)
    X, X_holdout = rng.normal(size=(2, n_samples, 3))
    X_holdout[:, 1] += shift
    return X, X_holdout[: n_samples // 2]


def test_auc_is_that_of_the_shift():
    """Of normals a distance d apart it is Φ(d / √2)."""
    for shift in (0.0, 1.0, 2.0):
        sets = make_sets(shift, n_samples=2000)
        options = {"estimator": LogisticRegression(), "random_state": 0}
        result = domain_classifier_auc(*sets, **options)
        assert result.auc == pytest.approx(ndtr(shift / np.sqrt(2)), abs=0.05)


def test_auc_is_the_mean_over_unseen_folds():
    X, X_holdout = make_sets()
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    model = LogisticRegression()
    result = domain_classifier_auc(X, X_holdout, estimator=model, cv=folds)
    rows = np.vstack([X, X_holdout])
    is_holdout = np.repeat([0, 1], [400, 200])
    scores = cross_val_predict(
        model, rows, is_holdout, cv=folds, method="decision_function"
    )
    expected = [
        roc_auc_score(is_holdout[test], scores[test])
        for _, test in folds.split(rows, is_holdout)
    ]
    assert_allclose(result.fold_aucs, [expected])
    assert result.auc == result.aucs[0] == pytest.approx(np.mean(expected))
    assert result.domain_labels.tolist() == ["holdout"]
    assert "importances" not in result
    assert not hasattr(model, "coef_")


def test_each_era_is_told_from_the_others():
    rng = np.random.default_rng(0)
    eras = rng.choice(["b", "a", "c"], size=600)
    X = rng.normal(size=(600, 2))
    X[eras == "b", 0] += 3
    result = domain_classifier_auc(
        X, eras=eras, estimator=LogisticRegression(), cv=3, n_repeats=2, as_frame=True
    )
    assert result.aucs.idxmax() == "b"
    assert result.aucs["b"] > 0.95
    assert result.fold_aucs.shape == (3, 3)
    assert result.auc == pytest.approx(result.aucs.mean())
    assert result.importances.shape == (3, 2)
    assert result.importances.loc["b"].idxmax() == "x0"
    assert list(result.importances.index) == ["a", "b", "c"]


def test_a_seed_settles_the_result_whatever_runs_in_parallel():
    sets = make_sets(n_samples=100)
    options = {"estimator": LogisticRegression(), "n_repeats": 2, "cv": 3}
    first = domain_classifier_auc(*sets, random_state=1, **options)
    with parallel_config("threading"):  # starting processes takes long
        again = domain_classifier_auc(*sets, random_state=1, n_jobs=2, **options)
    assert_array_equal(first.fold_aucs, again.fold_aucs)
    assert_array_equal(first.importances, again.importances)
    other = domain_classifier_auc(*sets, random_state=2, **options)
    assert np.any(first.fold_aucs != other.fold_aucs)


@pytest.mark.parametrize(
    "to_frame",
    [
        lambda data: pd.DataFrame(data).astype({"c": "category"}),
        lambda data: pl.DataFrame(data, schema_overrides={"c": pl.Categorical}),
    ],
)
def test_categories_are_told_by_their_names(to_frame):
    """Of a category dtype or text, with other categories and codes in each set."""
    rng = np.random.default_rng(0)
    train = {"c": rng.integers(3, size=300), "x": rng.normal(size=300)}
    later = {"c": rng.integers(3, size=200), "x": rng.normal(size=200)}
    train["names"], later["names"] = {0: "a", 1: "b"}, {0: "b", 1: "z"}  # 2: missing
    frames = [
        to_frame({"c": list(map(d["names"].get, d["c"])), "x": d["x"]})
        for d in (train, later)
    ]
    result = domain_classifier_auc(*frames, n_repeats=1, cv=3, random_state=0)
    assert 0.7 < result.auc < 0.9
    assert result.feature_names.tolist() == ["c", "x"]
    assert result.importances[0, 0] > 0.2


def test_many_categories_missing_values_and_objects_without_an_order_are_taken():
    rng = np.random.default_rng(0)
    text = pd.DataFrame({"id": [f"id{i:04}" for i in range(600)]})
    text["x"] = np.where(rng.random(600) < 0.1, np.nan, rng.normal(size=600))
    result = domain_classifier_auc(text[:400], text[400:], cv=3, random_state=0)
    assert result.auc > 0.99  # the identity counts up with time
    labels = np.empty((400, 1), dtype=object)  # without an order
    labels[:, 0] = [(1, "a"), ("b", 2)] * 200
    options = {"categorical_features": [0], "cv": 2, "random_state": 0}
    X_holdout = labels[::2]  # one of the two
    assert domain_classifier_auc(labels, X_holdout, **options).auc > 0.7


def test_any_splitter_with_both_sides_serves():
    X, X_holdout = make_sets()
    shuffle = StratifiedShuffleSplit(2, test_size=0.3, random_state=0)
    result = domain_classifier_auc(X, X_holdout, estimator=LinearSVC(), cv=shuffle)
    assert result.fold_aucs.shape == (1, 2)
    eras = np.arange(400) % 3
    folds = (fold for fold in KFold(2).split(X))  # which can be gone through once only
    result = domain_classifier_auc(X, eras=eras, estimator=LinearSVC(), cv=folds)
    assert result.fold_aucs.shape == (3, 2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "X_holdout and eras: pass exactly one"),
        ({"X_holdout": [[1.0] * 3], "eras": [1]}, "X_holdout and eras: pass exactly"),
        ({"eras": [1] * 400}, "eras has the one label 1, and nothing to tell it from"),
        ({"eras": [1] * 399}, "eras has 399 labels"),
        ({"eras": [1] * 396 + [2] * 4}, "eras other than 1 there are 4 row"),
        ({"X_holdout": np.ones((4, 3))}, r"Of X_holdout there are 4 .* each of 5"),
        ({"X_holdout": np.ones((9, 2))}, r"X_holdout has 2 column.* X has 3"),
        ({"X_holdout": np.ones((9, 3)), "cv": KFold(2)},
         "cv: of X_holdout there is no row among the test rows of fold 0"),
        ({"X_holdout": np.ones((9, 3)), "estimator": LinearRegression()},
         r"estimator must be a classifier, or None; got LinearRegression\(\)"),
        ({"X_holdout": np.ones((9, 3)), "cv": 1}, "'cv' parameter"),
        ({"X_holdout": np.ones((9, 3)), "n_repeats": -1}, "'n_repeats' parameter"),
    ],
)  # fmt: skip
def test_domain_classifier_refuses(parameters, message):
    X, _ = make_sets()
    with pytest.raises(ValueError, match=message):
        domain_classifier_auc(X, **parameters)


def test_a_column_without_a_value_is_one_warning():
    X, X_holdout = (pd.DataFrame(rows, columns=list("abc")) for rows in make_sets())
    message = r"X: column\(s\) 'd' have no value in rows that a cl"
    with pytest.warns(UserWarning, match=message) as caught:
        result = domain_classifier_auc(
            X.assign(d=np.nan), X_holdout.assign(d=np.nan), random_state=0
        )
    assert len(caught) == 1
    assert result.auc == domain_classifier_auc(X, X_holdout, random_state=0).auc
