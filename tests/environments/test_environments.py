"""Eras where none are given: blocks of time, and features that hardly correlate."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_era.environments import decorrelated_partition, time_blocks


@st.composite
def times_and_blocks(draw):
    times = draw(hnp.arrays(np.int64, st.integers(1, 60), elements=st.integers(0, 20)))
    return times, draw(st.integers(1, np.unique(times).size))


@given(times_and_blocks())
def test_blocks_are_consecutive_and_none_is_empty(case):
    times, n_blocks = case
    labels = time_blocks(times, n_blocks)
    assert (labels.shape, labels.dtype) == (times.shape, np.intp)
    assert_array_equal(np.unique(labels), np.arange(n_blocks))
    assert np.all(np.diff(labels[np.argsort(times)]) >= 0)
    assert np.unique([times, labels], axis=1).shape[1] == np.unique(times).size


@given(times_and_blocks())
def test_blocks_by_rows_end_where_whole_times_come_nearest(case):
    """But for blocks that are pushed aside, and times that are larger than a block."""
    times, n_blocks = case
    labels = time_blocks(times, n_blocks)
    counts = np.unique(times, return_counts=True)[1]
    assume(counts.max() <= times.size / n_blocks)
    ends, sizes = np.cumsum(counts), np.cumsum(np.bincount(labels))[:-1]
    wanted = times.size * np.arange(1, n_blocks) / n_blocks
    distances = np.abs(ends[:, np.newaxis] - wanted)
    if len({*ends[distances.argmin(axis=0)], ends[-1]}) == n_blocks:
        assert_allclose(np.abs(sizes - wanted), distances.min(axis=0))


def test_blocks_by_time_have_equal_length():
    days = pd.date_range("2024-01-01", periods=100, freq="D")
    rows = np.repeat(np.arange(100), np.arange(100) % 5 + 1)
    labels = time_blocks(days[rows], 4, by="time")
    # From the first to the last day it is 99 days.
    assert_array_equal(labels, np.minimum(rows * 4 // 99, 3))
    assert np.ptp(np.bincount(time_blocks(days[rows], 4))) <= 4
    seconds = np.arange(100) * 86_400.0
    assert_array_equal(time_blocks(seconds[rows], 4, by="time"), labels)


@pytest.mark.parametrize("times", [
    np.arange(31) / 10,  # whose quotients by 3.0 are not all exact
    np.linspace(-60_000, 60_000, 31).astype(np.float16),  # longer than float16
    np.linspace(-(2**63), 2**63 - 2**33, 31).astype(np.int64),  # longer than int64
    np.arange(-120, 131, 8, dtype=np.int16)[:31].astype(np.int8),
])  # fmt: skip
def test_blocks_by_time_hold_in_any_dtype(times):
    times = np.sort(times)
    assert_array_equal(time_blocks(times, 30, by="time"), [*range(30), 29])


@pytest.mark.parametrize("by", ["rows", "time"])
def test_times_come_as_anything_that_holds_dates(by):
    dates = pd.date_range("2024-03-01", periods=12, freq="7D")
    for times in (
        dates.to_numpy(), dates.tz_localize("Europe/Berlin"), pd.Series(dates),
        pl.Series(dates.to_numpy()), list(dates)):  # fmt: skip
        assert_array_equal(time_blocks(times, 3, by=by), np.repeat([0, 1, 2], 4))


@pytest.mark.parametrize("by", ["rows", "time"])
@pytest.mark.parametrize(("texts", "times"), [
    (["10", "9", "100"], [10, 9, 100]),
    (["1.5", "2.25", "10.5", "02.25"], [1.5, 2.25, 10.5, 2.25]),
    (["-10", "-9", "-1"], [-10, -9, -1]),
    (["-10", "9", "1e1"], [-10, 9, 10]),
    (["era 9", "era 10", "era 11", "era 011"], [9, 10, 11, 11]),
    (["2020-1-2", "2020-10-1", "2020-2-1"], [2, 275, 32]),
    (["2020.9", "2020.10", "2021.1"], [244, 274, 366]),  # months
])  # fmt: skip
def test_blocks_follow_the_numbers_in_text(texts, times, by):
    for each in (texts, np.array(texts, dtype=bytes), pd.Series(texts)):
        assert_array_equal(time_blocks(each, 2, by=by), time_blocks(times, 2, by=by))


@pytest.mark.parametrize("labels", [
    [1, 2, 3, 100], ["1", "2", "3", "100"], [0.5, 0.25, 0.75, 9.5],
    np.array(["2024-01-03", "2024-01-01", "2024-04-10"], "M8[D]"),
    ["2024-01-01", "2024-01-02", "2024-04-10"],
], ids=range(5))  # fmt: skip
@pytest.mark.parametrize("categories", [
    lambda x: pd.Categorical(x, pd.unique(x), ordered=True), pd.Categorical,
    lambda x: pl.Series(x.astype(str), dtype=pl.Enum(x.astype(str))),
    lambda x: pa.DictionaryArray.from_arrays(
        np.arange(len(x)), pa.array(x), ordered=True
    ),
], ids=["ordered", "unordered", "Enum", "arrow"])  # fmt: skip
def test_blocks_by_time_of_categories_are_those_of_their_values(labels, categories):
    labels = np.array(labels)
    found = time_blocks(categories(labels), 2, by="time")
    assert_array_equal(found, time_blocks(labels, 2, by="time"))
    assert found.sum() == 1


@pytest.mark.parametrize(("times", "parameters", "message"), [
    (pd.Categorical(["lo", "mid", "hi"], ["lo", "mid", "hi"], ordered=True),
     {"n_blocks": 2, "by": "time"}, "by='time' needs numbers or dates.* got 'hi'"),
    ([1, 1, 2], {"n_blocks": 3}, "2 distinct value.* 3 blocks cannot be made"),
    ([], {"n_blocks": 1}, "times is empty"),
    ([1, None], {"n_blocks": 1}, "times has 1 missing label"),
    ([[[1]], [[2]]], {"n_blocks": 1}, "times must be one-dimensional"),
    ([1, "a"], {"n_blocks": 1}, "times has labels that cannot be sorted"),
    ([1, 2], {"n_blocks": 0}, "'n_blocks' parameter .* must be an int"),
    ([1, 2], {"n_blocks": True}, "n_blocks must be an integer; got True"),
    ([1, 2], {"n_blocks": 2, "by": "weeks"}, "'by' parameter"),
    ([0, 1, 9], {"n_blocks": 3, "by": "time"}, "1 of 3 blocks .* block 1; lower"),
    ([True, False], {"n_blocks": 2}, "times holds booleans"),
    ([True, False], {"n_blocks": 2, "by": "time"}, "times holds booleans"),
    (["1", "01"], {"n_blocks": 2}, "1 distinct value.* 2 blocks cannot be made"),
    (["1", "01"], {"n_blocks": 2, "by": "time"}, "1 distinct value.* 2 blocks cannot"),
    (["a", "b"], {"n_blocks": 2, "by": "time"}, r"; got .*'a' of .* Convert them\.$"),
    (["nan", "inf"], {"n_blocks": 2, "by": "time"}, r"subtracted; got .*'inf'"),
    (["-10 days", "-2 days", "-1 days"], {"n_blocks": 2, "by": "time"}, "'-1 days'"),
    (["01-2020", "02-2020"], {"n_blocks": 2}, "pass numbers or dates"),
    (pd.DataFrame({"a": [1, 2], "b": 1}), {"n_blocks": 2},
     r"combinations of columns, .* order: pass numbers or dates\.$"),
    ([0, 1, np.inf], {"n_blocks": 2, "by": "time"},
     "^times needs finite labels, and there are infinite ones, such as inf: "),
    ([-1e308, 0, 1e308], {"n_blocks": 2, "by": "time"}, "1e.308 and -1e.308 is infin"),
])  # fmt: skip
def test_time_blocks_refuse(times, parameters, message):
    with pytest.raises(ValueError, match=message):
        time_blocks(times, **parameters)


def make_correlated(n_samples=2000, n_features=8, random_state=0):
    rng = np.random.default_rng(random_state)
    mixed = rng.normal(size=(n_samples, 2)) @ rng.normal(size=(2, n_features))
    return mixed + rng.normal(size=(n_samples, n_features))


def mean_squares(X, labels):
    """J of each era, by numpy."""
    off, eras = ~np.eye(X.shape[1], dtype=bool), np.unique(labels)
    return np.array([np.mean(np.corrcoef(X[labels == e].T)[off] ** 2) for e in eras])


@pytest.mark.parametrize(("n_eras", "seed"), [(2, 0), (3, 1), (6, 2)])
def test_subsets_are_less_correlated_than_random_ones(n_eras, seed):
    X = make_correlated(random_state=seed)
    labels = decorrelated_partition(X, n_eras, random_state=seed)
    counts = np.bincount(labels)
    assert np.all(np.diff(counts) <= 0)  # numbered by size
    assert counts.min() >= len(X) // (2 * n_eras)
    drawn = np.random.default_rng(seed).permutation(np.arange(len(X)) % n_eras)
    ours, at_random = mean_squares(X, labels), mean_squares(X, drawn)
    assert ours.mean() < 0.65 * at_random.mean()
    assert ours.min() < 0.5 * at_random.min()


@pytest.mark.parametrize(("X", "message"), [
    (np.column_stack([np.arange(9), np.ones(9)]), r"1 column\(s\) that vary"),
    (make_correlated(n_samples=8), "8 rows .* n_eras=3 takes 9 rows"),
    ([[np.nan, 0.0]] * 9, "^Input X contains NaN"),
])  # fmt: skip
def test_rows_and_columns_are_checked(X, message):
    with pytest.raises(ValueError, match=message):
        decorrelated_partition(X, 3, random_state=0)


def test_partitions_refuse_text_by_its_column():
    X = pd.DataFrame({"a": np.arange(9.0), "b": [*"uvw" * 3]})
    with pytest.raises(ValueError, match=r"^X: column 'b', .* it holds 'u'\. Make n"):
        decorrelated_partition(X, 2)
