"""The walk-forward splitter keeps its distances, and the refit rule its word."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
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

quick = settings(deadline=None, database=None, max_examples=60)


@st.composite
def walks(draw):
    """Parameters, the positions of eras that suffice for them, and rows in no order."""
    parameters = {
        "n_splits": draw(st.integers(1, 4)),
        "test_size": draw(st.integers(1, 3)),
        "train_size": draw(st.none() | st.integers(1, 4)),
        "purge": draw(st.integers(0, 3)),
        "embargo": draw(st.integers(0, 2)),
    }
    needed = (
        parameters["n_splits"] * parameters["test_size"]
        + (parameters["train_size"] or 1)
        + parameters["purge"]
        + parameters["embargo"]
    )
    n_eras = needed + draw(st.integers(0, 5))
    extra = draw(st.lists(st.integers(0, n_eras - 1), max_size=20))
    codes = draw(st.permutations([*range(n_eras), *extra]))
    return parameters, n_eras, np.array(codes)


def naive_walk(codes, n_eras, n_splits, test_size, train_size, purge, embargo):
    """Row by row, by the definition."""
    splits = []
    for split in range(n_splits):
        start = n_eras - (n_splits - split) * test_size
        train, test = [], []
        for row, code in enumerate(codes):
            if start <= code < start + test_size:
                test.append(row)
            distance = start - code - 1  # eras between this one and the test
            if distance >= purge + embargo and (
                train_size is None or distance < purge + embargo + train_size
            ):
                train.append(row)
        splits.append((train, test))
    return splits


@quick
@given(walks())
def test_walk_equals_the_naive_loop(walk):
    parameters, n_eras, codes = walk
    splits = list(EraWalkForwardSplit(**parameters).split(codes, groups=codes))
    expected = naive_walk(codes, n_eras, **parameters)
    assert len(splits) == len(expected)
    for (train, test), (naive_train, naive_test) in zip(splits, expected, strict=True):
        assert_array_equal(train, naive_train)
        assert_array_equal(test, naive_test)


@quick
@given(walks())
def test_walk_keeps_its_distances(walk):
    parameters, n_eras, codes = walk
    cv = EraWalkForwardSplit(**parameters)
    tested = []
    for train, test in cv.split(codes, groups=codes):
        assert np.all(np.diff(train) > 0)
        assert np.all(np.diff(test) > 0)
        train_eras, test_eras = np.unique(codes[train]), np.unique(codes[test])
        # Whole eras, none on both sides.
        assert np.isin(codes, train_eras).sum() == train.size
        assert np.isin(codes, test_eras).sum() == test.size
        gap = test_eras[0] - train_eras[-1] - 1
        assert gap == parameters["purge"] + parameters["embargo"]
        assert test_eras.size == parameters["test_size"]
        if parameters["train_size"] is None:
            assert train_eras[0] == 0
        else:
            assert train_eras.size == parameters["train_size"]
        assert_array_equal(np.diff(train_eras), 1)
        tested += test_eras.tolist()
    n_tested = parameters["n_splits"] * parameters["test_size"]
    assert tested == list(range(n_eras - n_tested, n_eras))


@quick
@given(walks())
def test_labels_decide_by_their_order_alone(walk):
    parameters, n_eras, codes = walk
    cv = EraWalkForwardSplit(**parameters)
    by_code = list(cv.split(codes, groups=codes))
    for labels in (
        np.array([f"{i:04d}" for i in range(n_eras)]),
        np.datetime64("2024-01-05") + np.timedelta64(7, "D") * np.arange(n_eras),
        np.arange(n_eras) * 2.5 - 3,
    ):
        for (train, test), (train_, test_), (train_eras, test_eras) in zip(
            by_code,
            cv.split(codes, groups=labels[codes]),
            cv.split_eras(labels[codes]),
            strict=True,
        ):
            assert_array_equal(train, train_)
            assert_array_equal(test, test_)
            assert_array_equal(train_eras, np.unique(labels[codes[train]]))
            assert_array_equal(test_eras, np.unique(labels[codes[test]]))


@quick
@given(walks())
def test_one_era_less_than_needed_is_refused(walk):
    parameters, _, _ = walk
    needed = (
        parameters["n_splits"] * parameters["test_size"]
        + (parameters["train_size"] or 1)
        + parameters["purge"]
        + parameters["embargo"]
    )
    cv = EraWalkForwardSplit(**parameters)
    assert len(list(cv.split_eras(np.arange(needed)))) == parameters["n_splits"]
    with pytest.raises(
        ValueError, match=f"^{needed - 1} eras are too few .*takes {needed}:"
    ):
        list(cv.split_eras(np.arange(needed - 1)))


@pytest.mark.parametrize("gap", [0, 2])
def test_one_row_an_era_is_time_series_split(gap):
    rows = np.arange(30)
    ours = EraWalkForwardSplit(4, test_size=3, purge=gap).split(rows, groups=rows)
    theirs = TimeSeriesSplit(4, test_size=3, gap=gap).split(rows)
    for (train, test), (train_, test_) in zip(ours, theirs, strict=True):
        assert_array_equal(train, train_)
        assert_array_equal(test, test_)


@pytest.mark.parametrize(
    ("parameters", "test_size", "first_train_size"),
    [
        ({"n_splits": 4}, 4, 4),
        ({"n_splits": 4, "purge": 3, "embargo": 2}, 3, 3),
        ({"n_splits": 4, "train_size": 6}, 3, 6),
        ({"n_splits": 4, "train_size": 6, "purge": 3}, 2, 6),
    ],
)
def test_default_test_size(parameters, test_size, first_train_size):
    train, test = next(EraWalkForwardSplit(**parameters).split_eras(np.arange(20)))
    assert (train.size, test.size) == (first_train_size, test_size)


def test_drawing_of_the_docstring():
    rows = {}
    for size in (None, 2):
        cv = EraWalkForwardSplit(3, test_size=2, train_size=size, purge=1, embargo=1)
        for split, (train, test) in enumerate(cv.split_eras(range(10))):
            signs = ["."] * 10
            for era in train:
                signs[era] = "#"
            for era in test:
                signs[era] = "T"
            signs[test[0] - 2 : test[0]] = "ep"
            rows.setdefault(split, []).append(f"split {split}  {' '.join(signs)}")
    for pair in rows.values():
        assert "    ".join(pair) in EraWalkForwardSplit.__doc__


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_splits": 0}, "'n_splits'"),
        ({"n_splits": 2.5}, "'n_splits'"),
        ({"test_size": 0}, "'test_size'"),
        ({"train_size": 0}, "'train_size'"),
        ({"purge": -1}, "'purge'"),
        ({"embargo": 0.1}, "'embargo'"),
    ],
)
def test_splitter_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        EraWalkForwardSplit(**parameters)


def test_splitter_labels_are_checked():
    cv = EraWalkForwardSplit(2)
    with pytest.raises(ValueError, match="groups is missing"):
        next(cv.split(np.zeros(4)))
    with pytest.raises(ValueError, match="groups has 3 labels, but X has 4 rows"):
        next(cv.split(np.zeros(4), groups=[1, 2, 3]))
    with pytest.raises(ValueError, match="groups has 1 missing label"):
        next(cv.split(np.zeros(3), groups=[1, np.nan, 3]))


def test_splitter_is_scikit_learns_kind():
    cv = EraWalkForwardSplit(3, purge=2)
    assert cv.get_n_splits() == 3
    assert (
        repr(pickle.loads(pickle.dumps(cv))) == repr(cv) == repr(clone(cv, safe=False))
    )
    assert "n_splits=3, purge=2" in repr(cv)


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_splitter(routing):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), rng.normal(size=120)
    eras = rng.permutation(np.arange(120) % 12)
    cv = EraWalkForwardSplit(3, test_size=2, purge=1)
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


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([[0.9, 0.1], [0.4, 0.4]], 1),  # the mean would take the first
        ([[0.9, 0.2], [0.2, 0.3], [0.8, 0.2]], 0),  # one worst era: the better mean
        ([[0.1, 0.3], [0.3, 0.1]], 0),  # all the same: the first
        ([[np.nan, 9], [0.1, 0.1], [0.2, np.nan]], 1),  # failed ones do not count
        ([[-np.inf, 9], [-3, -3]], 1),
    ],
)
def test_best_worst_era(scores, best):
    chosen = best_worst_era(results_of(scores))
    assert chosen == best
    assert type(chosen) is int


# Numbers of splits that are powers of two: means are exact, and ties are ties.
tables = st.integers(1, 4).flatmap(
    lambda n_splits: st.lists(
        st.lists(
            st.integers(-2, 2).map(float) | st.just(np.nan),
            min_size=2**n_splits // 2,
            max_size=2**n_splits // 2,
        ),
        min_size=1,
        max_size=6,
    )
)


@quick
@given(tables)
def test_best_worst_era_equals_the_naive_loop(scores):
    best, best_key = None, None
    for candidate, row in enumerate(scores):
        if any(np.isnan(row)):
            continue
        key = (min(row), sum(row) / len(row))
        if best is None or key > best_key:
            best, best_key = candidate, key
    if best is None:
        with pytest.raises(ValueError, match=r"^All \d+ candidates"):
            best_worst_era(results_of(scores))
    else:
        assert best_worst_era(results_of(scores)) == best


def test_eras_tested_twice_are_averaged_first():
    # Era "a" in the first two splits: means of 0.5 and 0.4, not a worst of 0 and 0.4.
    results = results_of([[0.0, 1.0, 0.6], [0.4, 0.4, 0.9]])
    assert best_worst_era(results) == 1
    assert best_worst_era(results, split_eras=["a", "a", "b"]) == 0


def test_metric_that_was_not_scored_is_named():
    results = results_of([[1.0]], "r2") | results_of([[1.0]], "max_error")
    with pytest.raises(ValueError, match=r"'score' is not in .* 'max_error', 'r2'\."):
        best_worst_era(results)
    with pytest.raises(ValueError, match="has scored nothing"):
        best_worst_era({"params": []})


@pytest.mark.parametrize("multimetric", [False, True])
def test_refit_rule_in_a_search(multimetric):
    """The shortcut helps in all eras but one; the worst era tells."""
    rng = np.random.default_rng(0)
    eras = rng.permutation(np.arange(400) % 4)
    X = rng.normal(size=(400, 2))
    y = X[:, 0] + np.array([2, -2, 2, 2])[eras] * X[:, 1]
    model = HistGradientBoostingRegressor(max_iter=15, min_samples_leaf=5)
    refit = partial(best_worst_era, metric="r2") if multimetric else best_worst_era
    search = GridSearchCV(
        model,
        {"split_criterion": ["gain", "directional"]},
        cv=LeaveOneGroupOut(),
        scoring=["neg_mean_absolute_error", "r2"] if multimetric else None,
        refit=pickle.loads(pickle.dumps(refit)),
    )
    search.fit(X, y, groups=eras, eras=eras)
    metric = "r2" if multimetric else "score"
    table = np.column_stack(
        [search.cv_results_[f"split{k}_test_{metric}"] for k in range(4)]
    )
    assert search.best_index_ == table.min(axis=1).argmax() == 1
    assert search.best_estimator_.split_criterion == "directional"


def test_walk_warns_of_numbered_texts():
    """Else the walk tests on era9 last, and trains on era10 before era2."""
    labels = np.array([f"era{code}" for code in range(1, 13)])
    cv = EraWalkForwardSplit(2)
    message = (
        "EraWalkForwardSplit takes eras in the order.* 'era12' comes before 'era2'"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        splits = list(cv.split(labels, groups=labels))
    assert [warning.filename for warning in caught] == [__file__]
    assert labels[splits[-1][1]].tolist() == ["era6", "era7", "era8", "era9"]
    with pytest.warns(UserWarning, match=message) as caught:
        list(cv.split_eras(labels))
    assert [warning.filename for warning in caught] == [__file__]
    for fine in (np.arange(1, 13), [f"era{code:02d}" for code in range(1, 13)]):
        list(cv.split(labels, groups=fine))  # a warning would be an error


@pytest.mark.parametrize(
    "name", ["n_splits", "test_size", "train_size", "purge", "embargo"]
)
def test_sizes_are_no_bools(name):
    with pytest.raises(ValueError, match=f"{name} must be an integer; got True"):
        EraWalkForwardSplit(**{name: True})


def test_missing_eras_are_asked_for():
    with pytest.raises(ValueError, match="eras is missing: pass the era of each row"):
        list(EraWalkForwardSplit(1).split_eras(None))


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_best_worst_era_leaves_out_what_is_not_finite(bad):
    scores = {
        "split0_test_score": [-bad, 0.1, 0.2],
        "split1_test_score": [bad, 0.4, 0.1],
    }
    assert best_worst_era(scores) == 1
    scores = {"split0_test_score": [bad]}
    with pytest.raises(ValueError, match=r"failed \(NaN or infinite in a split"):
        best_worst_era(scores)


def test_best_worst_era_wants_an_era_a_split():
    scores = {"split0_test_score": [0.1], "split1_test_score": [0.2]}
    message = r"split_eras has 1 label\(s\), but the search has 2 splits"
    with pytest.raises(ValueError, match=message):
        best_worst_era(scores, split_eras=["a"])
