"""The walk-forward splitter keeps its distances, and the refit rule its word."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneGroupOut,
    TimeSeriesSplit,
    cross_val_score,
)

from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.model_selection import EraWalkForwardSplit, best_worst_era


def n_eras_needed(n_splits, test_size, max_train_size, gap):
    return n_splits * test_size + 1 + gap


@st.composite
def walks(draw):
    """Parameters, the positions of eras that suffice for them, and rows in no order."""
    parameters = {
        "n_splits": draw(st.integers(1, 4)), "test_size": draw(st.integers(1, 3)),
        "max_train_size": draw(st.none() | st.integers(1, 4)),
        "gap": draw(st.integers(0, 4)),
    }  # fmt: skip
    n_eras = n_eras_needed(**parameters) + draw(st.integers(0, 5))
    extra = draw(st.lists(st.integers(0, n_eras - 1), max_size=20))
    codes = draw(st.permutations([*range(n_eras), *extra]))
    return parameters, n_eras, np.array(codes)


def naive_walk(codes, n_eras, n_splits, test_size, max_train_size, gap):
    """Row by row, by the definition."""
    splits = []
    for split in range(n_splits):
        start = n_eras - (n_splits - split) * test_size
        train, test = [], []
        for row, code in enumerate(codes):
            if start <= code < start + test_size:
                test.append(row)
            distance = start - code - 1  # eras between this one and the test
            if distance >= gap and (
                max_train_size is None or distance < gap + max_train_size
            ):
                train.append(row)
        splits.append((train, test))
    return splits


@given(walks())
def test_walk_equals_the_naive_loop(walk):
    parameters, n_eras, codes = walk
    splits = list(EraWalkForwardSplit(**parameters).split(codes, groups=codes))
    expected = naive_walk(codes, n_eras, **parameters)
    assert len(splits) == len(expected)
    for (train, test), (naive_train, naive_test) in zip(splits, expected, strict=True):
        assert_array_equal(train, naive_train)
        assert_array_equal(test, naive_test)


@given(walks())
def test_the_walk_is_that_of_time_series_split(walk):
    parameters, n_eras, _ = walk
    assume(parameters["n_splits"] > 1)  # which it asks for
    ours = EraWalkForwardSplit(**parameters).split_eras(np.arange(n_eras))
    theirs = TimeSeriesSplit(**parameters).split(np.arange(n_eras))
    for pair, expected in zip(ours, theirs, strict=True):
        for eras, places in zip(pair, expected, strict=True):
            assert_array_equal(eras, places)


@given(walks())
def test_labels_decide_by_their_order_alone(walk):
    parameters, n_eras, codes = walk
    cv = EraWalkForwardSplit(**parameters, era_order="ordered")
    by_code = list(cv.split(codes, groups=codes))
    for labels in (
        np.array([f"{i:04d}" for i in range(n_eras)]),
        np.datetime64("2024-01-05") + np.timedelta64(7, "D") * np.arange(n_eras),
        np.arange(n_eras) * 2.5 - 3,
    ):
        of_rows = cv.split(codes, groups=labels[codes])
        of_eras = cv.split_eras(labels[codes])
        for expected, split, eras in zip(by_code, of_rows, of_eras, strict=True):
            for rows, found, found_eras in zip(expected, split, eras, strict=True):
                assert_array_equal(found, rows)
                assert_array_equal(found_eras, np.unique(labels[codes[rows]]))


@given(walks())
def test_one_era_less_than_needed_is_refused(walk):
    parameters, _, _ = walk
    needed = n_eras_needed(**parameters)
    cv = EraWalkForwardSplit(**parameters)
    assert len(list(cv.split_eras(np.arange(needed)))) == parameters["n_splits"]
    message = f"^{needed - 1} eras are too few .*takes {needed}:"
    with pytest.raises(ValueError, match=message):
        list(cv.split_eras(np.arange(needed - 1)))


@pytest.mark.parametrize(
    ("parameters", "test_size", "first_train_size"),
    [
        ({}, 4, 4), ({"gap": 5}, 3, 3), ({"max_train_size": 6}, 4, 4),
        ({"max_train_size": 2, "gap": 3}, 3, 2),
    ],
)  # fmt: skip
def test_default_test_size(parameters, test_size, first_train_size):
    train, test = next(EraWalkForwardSplit(4, **parameters).split_eras(np.arange(20)))
    assert (train.size, test.size) == (first_train_size, test_size)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_splits", 0), ("n_splits", 2.5), ("test_size", 0), ("max_train_size", 0),
        ("gap", -1), ("gap", 0.1),
    ],
)  # fmt: skip
def test_splitter_parameters_are_checked(name, value):
    with pytest.raises(ValueError, match=f"'{name}'"):
        EraWalkForwardSplit(**{name: value})
    with pytest.raises(ValueError, match=f"{name} must be an integer; got True"):
        EraWalkForwardSplit(**{name: True})


def test_splitter_labels_are_checked():
    cv = EraWalkForwardSplit(2)
    with pytest.raises(ValueError, match="eras is missing: pass the era of each row"):
        list(cv.split_eras(None))
    with pytest.raises(ValueError, match="groups is missing"):
        next(cv.split(np.zeros(4)))
    with pytest.raises(ValueError, match="groups has 3 labels, but X has 4 rows"):
        next(cv.split(np.zeros(4), groups=[1, 2, 3]))
    with pytest.raises(ValueError, match="groups has 1 missing label"):
        next(cv.split(np.zeros(3), groups=[1, np.nan, 3]))


def test_splitter_is_scikit_learns_kind():
    cv = EraWalkForwardSplit(3, gap=2)
    assert cv.get_n_splits() == 3
    for copy in (cv, pickle.loads(pickle.dumps(cv)), clone(cv, safe=False)):
        assert repr(copy) == repr(cv)
    assert "gap=2, max_train_size=None, n_splits=3" in repr(cv)


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_splitter(routing):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), rng.normal(size=120)
    eras = rng.permutation(np.arange(120) % 12)
    cv = EraWalkForwardSplit(3, test_size=2, gap=1)
    with config_context(enable_metadata_routing=routing):
        arguments = {"params": {"groups": eras}} if routing else {"groups": eras}
        scores = cross_val_score(Ridge(), X, y, cv=cv, **arguments)
    expected = [
        Ridge().fit(X[train], y[train]).score(X[test], y[test])
        for train, test in cv.split(X, groups=eras)
    ]
    assert_array_equal(scores, expected)


def results_of(scores, metric="score"):
    """`cv_results_` of a table with a row for each candidate."""
    table = np.array(scores, float)
    return {
        "params": [{"a": i} for i in range(len(table))],
        **{f"split{k}_test_{metric}": table[:, k] for k in range(table.shape[1])},
    }


# Numbers of splits that are powers of two: means are exact, and ties are ties.
scores = st.integers(-2, 2).map(float) | st.just(np.nan)
tables = st.sampled_from([1, 2, 4, 8]).flatmap(
    lambda n_splits: st.lists(
        st.lists(scores, min_size=n_splits, max_size=n_splits), min_size=1, max_size=6
    )
)


@given(tables)
def test_best_worst_era_equals_the_naive_loop(scores):
    keys = [
        (min(row), sum(row) / len(row)) if np.isfinite(row).all() else (-np.inf,)
        for row in scores
    ]
    if max(keys) == (-np.inf,):
        with pytest.raises(ValueError, match=r"^All \d+ candidates"):
            best_worst_era(results_of(scores))
    else:
        chosen = best_worst_era(results_of(scores))
        assert chosen == keys.index(max(keys))
        assert type(chosen) is int


def test_best_worst_era_averages_eras_tested_twice_and_needs_scores():
    # Era "a" in the first two splits: means of 0.5 and 0.4, not a worst of 0 and 0.4.
    results = results_of([[0.0, 1.0, 0.6], [0.4, 0.4, 0.9]])
    assert best_worst_era(results) == 1
    assert best_worst_era(results, split_eras=["a", "a", "b"]) == 0
    message = r"split_eras has 1 label\(s\), but the search has 3 splits"
    with pytest.raises(ValueError, match=message):
        best_worst_era(results, split_eras=["a"])
    # A metric that was not scored is named.
    results = results_of([[1.0]], "r2") | results_of([[1.0]], "max_error")
    with pytest.raises(ValueError, match=r"'score' is not in .* 'max_error', 'r2'\."):
        best_worst_era(results)
    with pytest.raises(ValueError, match="has scored nothing"):
        best_worst_era({"params": []})


@pytest.mark.slow
@pytest.mark.parametrize("multimetric", [False, True])
def test_refit_rule_in_a_search(multimetric):
    """The shortcut helps in all eras but one; the worst era tells."""
    rng = np.random.default_rng(0)
    eras = rng.permutation(np.arange(400) % 4)
    X = rng.normal(size=(400, 2))
    y = X[:, 0] + np.array([2, -2, 2, 2])[eras] * X[:, 1]
    model = HistGradientBoostingRegressor(max_iter=15, min_samples_leaf=5)
    refit = partial(best_worst_era, metric="r2") if multimetric else best_worst_era
    scoring = ["neg_mean_absolute_error", "r2"] if multimetric else None
    options = {"scoring": scoring, "refit": pickle.loads(pickle.dumps(refit))}
    grid = {"split_criterion": ["gain", "directional"]}
    search = GridSearchCV(model, grid, cv=LeaveOneGroupOut(), **options)
    search.fit(X, y, groups=eras, eras=eras)
    metric = "r2" if multimetric else "score"
    table = np.column_stack(
        [search.cv_results_[f"split{k}_test_{metric}"] for k in range(4)]
    )
    assert search.best_index_ == table.min(axis=1).argmax() == 1
    assert search.best_estimator_.split_criterion == "directional"


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_best_worst_era_leaves_out_what_is_not_finite(bad):
    assert best_worst_era(results_of([[-bad, bad], [0.1, 0.4], [0.2, 0.1]])) == 1
    with pytest.raises(ValueError, match=r"failed \(NaN or infinite in a split"):
        best_worst_era(results_of([[bad]]))
