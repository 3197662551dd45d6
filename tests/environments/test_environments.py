"""Eras where none are given: blocks of time."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_era.environments import time_blocks


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
    ends = np.cumsum(counts)
    sizes = np.cumsum(np.bincount(labels))[:-1]
    wanted = times.size * np.arange(1, n_blocks) / n_blocks
    distances = np.abs(ends[:, np.newaxis] - wanted)
    ideal = ends[distances.argmin(axis=0)]
    if len({*ideal, ends[-1]}) == n_blocks:
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
    labels = time_blocks(times, 30, by="time")
    assert_array_equal(labels, [*range(30), 29])


@pytest.mark.parametrize("by", ["rows", "time"])
def test_times_come_as_anything_that_holds_dates(by):
    dates = pd.date_range("2024-03-01", periods=12, freq="7D")
    for times in (
        dates.to_numpy(), dates.tz_localize("Europe/Berlin"), pd.Series(dates),
        pl.Series(dates.to_numpy()), list(dates),
    ):  # fmt: skip
        assert_array_equal(time_blocks(times, 3, by=by), np.repeat([0, 1, 2], 4))


@pytest.mark.parametrize(("times", "parameters", "message"), [
    ([1, 1, 2], {"n_blocks": 3}, "2 distinct value.* 3 blocks cannot be made"),
    ([], {"n_blocks": 1}, "times is empty"),
    ([1, None], {"n_blocks": 1}, "times has 1 missing label"),
    ([[[1]], [[2]]], {"n_blocks": 1}, "times must be one-dimensional"),
    ([1, "a"], {"n_blocks": 1}, "times has labels that cannot be sorted"),
    ([1, 2], {"n_blocks": 0}, "'n_blocks' parameter .* must be an int"),
    ([1, 2], {"n_blocks": True}, "n_blocks must be an integer; got True"),
    ([1, 2], {"n_blocks": 2, "by": "weeks"}, "'by' parameter"),
    ([0, 1, 9], {"n_blocks": 3, "by": "time"}, "1 of 3 blocks .* block 1; lower"),
    (["a", "b"], {"n_blocks": 2, "by": "time"}, r"can be subtracted; got .*'a'"),
    ([0, 1, np.inf], {"n_blocks": 2, "by": "time"}, "there are infinite ones"),
])  # fmt: skip
def test_time_blocks_refuse(times, parameters, message):
    with pytest.raises(ValueError, match=message):
        time_blocks(times, **parameters)
