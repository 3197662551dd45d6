"""Out-of-bag predictions and scores, worked out from the rows drawn."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import accuracy_score, mean_absolute_error, r2_score

from helpers.forests import classifier, drawn_rows, make_classes, make_data, regressor
from sklearn_era.ensemble import BinnedDataset
from sklearn_era.ensemble._forests.out_of_bag import OutOfBagMixin

BOOTSTRAPS = pytest.mark.parametrize("bootstrap", ["rows", "within_eras", "whole_eras"])
IGNORE = pytest.mark.filterwarnings("ignore:.*were drawn for every:UserWarning")


def out_of_bag(forest, X, eras):
    """The mean over the trees that have not drawn a row, of each output."""
    known = forest._bin_mapper.make_known_categories_bitsets()
    totals = np.zeros((X.shape[0], forest.n_trees_per_iteration_))
    n_trees, draws = np.zeros(X.shape[0]), drawn_rows(forest, X, eras)
    for trees, drawn in zip(forest._predictors, draws, strict=True):
        left_out = np.setdiff1d(np.arange(X.shape[0]), drawn.rows)
        for output, tree in enumerate(trees):
            values = tree.predict(X[left_out], *known, 1)
            totals[left_out, output] += values * forest.n_iter_
        n_trees[left_out] += 1
    with np.errstate(invalid="ignore"):
        return totals / n_trees[:, np.newaxis]


@IGNORE
@BOOTSTRAPS
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("split_criterion", ["gain", "era"])
def test_of_a_regression(bootstrap, split_criterion, missing):
    X, y, eras = make_data(missing=missing)
    weights = np.random.default_rng(0).integers(1, 4, y.size).astype(float)
    forest = regressor(n_estimators=15, bootstrap=bootstrap,
                       split_criterion=split_criterion, oob_score=True,
                       random_segments=2).fit(X, y, weights, eras=eras)  # fmt: skip
    expected = out_of_bag(forest, X, eras)[:, 0]
    assert_allclose(forest.oob_prediction_, expected, rtol=1e-12)
    known = ~np.isnan(expected)

    def score(rows):
        return r2_score(y[rows], expected[rows], sample_weight=weights[rows])

    assert_allclose(forest.oob_score_, score(known))
    assert_array_equal(forest.era_labels_, [0, 1, 2])
    of_eras = [score(known & (eras == label)) for label in range(3)]
    assert_allclose(forest.oob_era_scores_, of_eras)


@IGNORE
@BOOTSTRAPS
@pytest.mark.parametrize("n_classes", [2, 3])
def test_of_a_classification(bootstrap, n_classes):
    X, y, eras = make_data()
    y = make_classes(y, n_classes)
    forest = classifier(n_estimators=15, bootstrap=bootstrap, oob_score=True)
    forest.fit(X, y, eras=eras)
    raw = out_of_bag(forest, X, eras)
    if n_classes == 2:
        expected = np.column_stack([1 - raw, raw])
    else:
        expected = raw.copy()
        expected[raw.sum(axis=1) == 0] = 1  # all trees predict another class
        expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(forest.oob_decision_function_, expected, atol=1e-12)
    known = ~np.isnan(expected[:, 0])
    predicted = forest.classes_[forest.oob_decision_function_[known].argmax(axis=1)]
    is_right = y[known] == predicted
    assert_allclose(forest.oob_score_, is_right.mean())
    of_eras = [is_right[eras[known] == label].mean() for label in range(3)]
    assert_allclose(forest.oob_era_scores_, of_eras)


@IGNORE
@BOOTSTRAPS
@pytest.mark.parametrize("make", [regressor, classifier])
@pytest.mark.parametrize("source", ["arrays", "parquet", "pickle"])
def test_of_a_data_set_are_in_the_order_of_its_source(
    source, make, bootstrap, tmp_path
):
    X, y, eras = make_data()
    y = y if make is regressor else make_classes(y)
    if source == "parquet":
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
        frame.assign(y=y, era=eras).to_parquet(path := tmp_path / "rows.parquet")
        kept = eras != 1
        X, y, eras = X[kept], y[kept], eras[kept]
        dataset = BinnedDataset.from_parquet(
            path, target="y", era="era", keep_eras=[0, 2]
        )
    else:
        dataset = BinnedDataset.from_arrays(X, y, eras=eras)
        if source == "pickle":
            dataset = pickle.loads(pickle.dumps(dataset))
    order = np.argsort(eras, kind="stable")
    assert (np.diff(order) < 0).any()
    forest = make(n_estimators=15, bootstrap=bootstrap, oob_score=True)
    name = "oob_prediction_" if make is regressor else "oob_decision_function_"
    found = getattr(forest.fit(dataset), name)
    of_sorted_rows = forest.fit(X[order], y[order], eras=eras[order])
    assert_array_equal(found[order], getattr(of_sorted_rows, name))


def test_rows_in_all_bags_have_no_prediction():
    X, y, eras = make_data()
    forest = regressor(n_estimators=2, oob_score=True)
    with pytest.warns(UserWarning, match=r"\d+ of 240 rows were drawn for every one o"):
        forest.fit(X, y, eras=eras)
    bags = [set(drawn.rows.tolist()) for drawn in drawn_rows(forest, X, eras)]
    in_all = sorted(bags[0] & bags[1])
    assert_array_equal(np.flatnonzero(np.isnan(forest.oob_prediction_)), in_all)
    assert np.isfinite(forest.oob_score_)


@IGNORE
def test_rows_without_a_prediction_or_weight_have_no_score():
    X, y, eras = make_data()
    weights = (eras > 0).astype(float)
    for make, target in ((regressor, y), (classifier, make_classes(y))):
        forest = make(bootstrap="whole_eras", oob_score=True)
        forest.fit(X, target, eras=np.zeros(y.size))  # no row is left out
        assert np.isnan(forest.oob_score_)
        assert np.isnan(forest.oob_era_scores_).all()
        forest = make(n_estimators=40, oob_score=True)
        forest.fit(X, target, weights, eras=eras)
        assert_array_equal(np.isnan(forest.oob_era_scores_), [True, False, False])
        assert np.isfinite(forest.oob_score_)


@pytest.mark.parametrize(("bootstrap", "make_eras", "remedy"), [
    ("whole_eras", lambda e: 0 * e, "More .*'whole_eras' draws .* number of eras is 1"),
    ("whole_eras", lambda e: {"a": 0 * e, "b": 0 * e}, "More trees.*of eras is 1. Pas"),
    ("within_eras", lambda e: np.arange(e.size), "More .* of the largest era is 1"),
    ("whole_eras", lambda e: e, "Grow more trees"),
    ("whole_eras", lambda e: {"a": 0 * e, "b": e}, "Grow more trees"),
    ("rows", lambda e: 0 * e, "Grow more trees"),
])  # fmt: skip
@pytest.mark.parametrize("make", [regressor, classifier])
def test_what_helps_rows_that_all_trees_draw(make, bootstrap, make_eras, remedy):
    X, y, eras = make_data()
    y = y if make is regressor else make_classes(y)
    forest = make(n_estimators=2, bootstrap=bootstrap, oob_score=True)
    with pytest.warns(UserWarning, match=rf"in the scores\. {remedy}"):
        forest.fit(X, y, eras=make_eras(eras))


@IGNORE
@pytest.mark.parametrize("make", [regressor, classifier])
def test_eras_of_few_rows_have_the_scores_of_scikit_learn(make, monkeypatch):
    """Also where all targets of an era are equal; and each row is read once, not all
    rows for each era.
    """
    X, y, _ = make_data()
    eras, weights = np.arange(y.size) // 4, np.arange(y.size) % 3 + 1.0
    y, sizes, score_rows = (y > 50).astype(float), [], OutOfBagMixin._score_rows
    monkeypatch.setattr(OutOfBagMixin, "_score_rows", lambda self, *arguments: (
        sizes.append(arguments[-1].size), score_rows(self, *arguments))[1])  # fmt: skip
    forest = make(n_estimators=9, oob_score=True).fit(X, y, weights, eras=eras)
    if make is regressor:
        p, score = forest.oob_prediction_, r2_score
        known = np.isfinite(p)
    else:
        p, score = forest.oob_decision_function_.argmax(axis=1), accuracy_score
        known = np.isfinite(forest.oob_decision_function_[:, 0])
    assert sum(sizes) == 2 * known.sum()
    for era, found in enumerate(forest.oob_era_scores_):
        rows = known & (eras == era)
        expected = score(y[rows], p[rows], sample_weight=weights[rows])
        assert_allclose(found, expected, atol=1e-12)


def test_a_score_of_ones_own():
    X, y, eras = make_data()
    forest = regressor(n_estimators=40, oob_score=mean_absolute_error)
    forest.fit(X, y, eras=eras)
    assert_allclose(forest.oob_score_, np.abs(forest.oob_prediction_ - y).mean())
    forest = classifier(n_estimators=40, oob_score=lambda y, other: np.mean(y != other))
    of_errors = forest.fit(X, make_classes(y), eras=eras).oob_score_
    forest.set_params(oob_score=True).fit(X, make_classes(y), eras=eras)
    assert_allclose(of_errors, 1 - forest.oob_score_)


def test_scores_go_when_they_are_not_asked_for():
    X, y, eras = make_data()
    several = {"a": eras, "b": np.arange(y.size) % 2}  # scores are of the first
    forest = regressor(n_estimators=40, oob_score=True).fit(X, y, eras=several)
    names = {"oob_score_", "oob_era_scores_", "oob_prediction_", "era_labels_"}
    assert names <= set(vars(forest))
    assert forest.oob_era_scores_.shape == (3,)
    forest.set_params(oob_score=False).fit(X, y)
    assert not names & set(vars(forest))
    forest.set_params(oob_score=True).fit(X, y)  # without eras
    assert not hasattr(forest, "oob_era_scores_")
