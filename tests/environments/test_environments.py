"""Eras where none are given: blocks of time, clusters, subsets without correlation."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning

from sklearn_era.environments import (
    decorrelated_partition,
    kmeans_partition,
    time_blocks,
    within_era_correlation,
)
from sklearn_era.environments._decorrelated import _Search
from sklearn_era.environments._era_moments import EraMoments


@st.composite
def times_and_blocks(draw):
    times = draw(hnp.arrays(np.int64, st.integers(1, 60), elements=st.integers(0, 20)))
    return times, draw(st.integers(1, np.unique(times).size))


@given(times_and_blocks())
def test_blocks_are_consecutive_and_none_is_empty(case):
    times, n_blocks = case
    labels = time_blocks(times, n_blocks)
    assert labels.shape == times.shape
    assert labels.dtype == np.intp
    assert_array_equal(np.unique(labels), np.arange(n_blocks))
    order = np.argsort(times, kind="stable")
    assert np.all(np.diff(labels[order]) >= 0)
    for time in np.unique(times):
        assert np.unique(labels[times == time]).size == 1


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
    nearest = np.array([np.abs(ends - w).min() for w in wanted])
    ideal = [ends[np.argmin(np.abs(ends - w))] for w in wanted]
    if len(set(ideal)) == len(ideal) and ends[-1] not in ideal:
        assert_allclose(np.abs(sizes - wanted), nearest)


def test_blocks_by_time_have_equal_length():
    days = pd.date_range("2024-01-01", periods=100, freq="D")
    rows = np.repeat(np.arange(100), np.arange(100) % 5 + 1)
    labels = time_blocks(days[rows], 4, by="time")
    # From the first to the last day it is 99 days.
    assert_array_equal(labels, np.minimum(rows * 4 // 99, 3))
    assert np.ptp(np.bincount(time_blocks(days[rows], 4))) <= 4
    seconds = np.arange(100) * 86_400.0
    assert_array_equal(time_blocks(seconds[rows], 4, by="time"), labels)


@pytest.mark.parametrize(
    "times",
    [
        np.arange(31) / 10,  # whose quotients by 3.0 are not all exact
        np.linspace(-60_000, 60_000, 31).astype(np.float16),  # longer than float16
        np.linspace(-(2**63), 2**63 - 2**33, 31).astype(np.int64),  # longer than int64
        np.arange(-120, 131, 8, dtype=np.int16)[:31].astype(np.int8),
    ],
)
def test_blocks_by_time_hold_in_any_dtype(times):
    times = np.sort(times)
    labels = time_blocks(times, 30, by="time")
    assert_array_equal(labels, [*range(30), 29])


@pytest.mark.parametrize("by", ["rows", "time"])
@pytest.mark.parametrize(
    "convert",
    [
        np.asarray, lambda x: x.tz_localize("Europe/Berlin"), pd.Series,
        lambda x: pl.Series(x.to_numpy()), list,
    ],
)  # fmt: skip
def test_times_come_as_anything_that_holds_dates(by, convert):
    times = pd.date_range("2024-03-01", periods=12, freq="7D")
    expected = np.repeat([0, 1, 2], 4)
    assert_array_equal(time_blocks(convert(times), 3, by=by), expected)


@pytest.mark.parametrize(
    ("times", "parameters", "message"),
    [
        ([1, 1, 2], {"n_blocks": 3}, "2 distinct value.* 3 blocks cannot be made"),
        ([], {"n_blocks": 1}, "times is empty"),
        ([1, None], {"n_blocks": 1}, "times has 1 missing label"),
        ([[1], [2]], {"n_blocks": 1}, "times must be one-dimensional"),
        ([1, "a"], {"n_blocks": 1}, "times has labels that cannot be sorted"),
        ([1, 2], {"n_blocks": 0}, "'n_blocks' parameter .* must be an int"),
        ([1, 2], {"n_blocks": True}, "n_blocks must be an integer; got True"),
        ([1, 2], {"n_blocks": 2, "by": "weeks"}, "'by' parameter"),
        ([0, 1, 9], {"n_blocks": 3, "by": "time"}, "1 of 3 blocks .* block 1; lower"),
        (["a", "b"], {"n_blocks": 2, "by": "time"}, r"can be subtracted; got .*'a'"),
        ([0, 1, np.inf], {"n_blocks": 2, "by": "time"}, "there are infinite ones"),
    ],
)
def test_time_blocks_refuse(times, parameters, message):
    with pytest.raises(ValueError, match=message):
        time_blocks(times, **parameters)


def make_clusters(n_samples=300, random_state=0):
    rng = np.random.default_rng(random_state)
    cluster = rng.choice(3, size=n_samples, p=[0.2, 0.5, 0.3])
    centres = np.array([[0, 0, 10], [20, 0, 30], [0, 20, 50]])
    return centres[cluster] + rng.normal(size=(n_samples, 3)), cluster


def test_clusters_are_found_in_any_units_and_tables_and_numbered_by_size():
    X, cluster = make_clusters()
    expected = np.array([2, 0, 1])[cluster]
    for seed in (0, 5):
        assert_array_equal(kmeans_partition(X, 3, random_state=seed), expected)
    # Neither units nor columns without a spread matter.
    constant = np.column_stack([X, np.full(len(X), 4.0)])
    for rows in (X * [1e6, 1e-3, 5.0] - 7, constant):
        assert_array_equal(kmeans_partition(rows, 3, random_state=0), expected)
    for make_frame in (pd.DataFrame, pl.DataFrame, np.ndarray.tolist):
        frame = make_frame(X)
        assert_array_equal(kmeans_partition(frame, 3, random_state=0), expected)
        assert decorrelated_partition(frame, 2, random_state=0).shape == (300,)


def test_weights_pull_the_centres():
    X = np.array([[0.0], [4], [6], [10]])
    labels = kmeans_partition(X, 2, random_state=0)
    assert_array_equal(labels, [0, 0, 1, 1])
    labels = kmeans_partition(X, 2, sample_weight=[1, 9, 9, 99], random_state=0)
    assert_array_equal(labels, [0, 0, 0, 1])
    # Rows without weight have a label too, that of the nearer centre.
    labels = kmeans_partition(X, 2, sample_weight=[1, 0, 0, 1], random_state=0)
    assert_array_equal(labels, [0, 0, 1, 1])


@pytest.mark.parametrize("partition", [kmeans_partition, decorrelated_partition])
def test_missing_values_are_refused_or_take_the_median(partition):
    X, _ = make_clusters()
    X[5, 1] = np.nan
    message = r"1 missing value\(s\), in column\(s\) 'x1'; pass missing='median'"
    with pytest.raises(ValueError, match=message):
        partition(X, 2)
    filled = X.copy()
    filled[5, 1] = np.nanmedian(X[:, 1])
    assert_array_equal(
        partition(X, 2, missing="median", random_state=0),
        partition(filled, 2, random_state=0),
    )
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match="'x1' hold missing values only"):
        partition(X, 2, missing="median")


@pytest.mark.parametrize("partition", [kmeans_partition, decorrelated_partition])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pd.DataFrame({"a": [1, 2], "b": ["u", "v"]}), r"column\(s\) 'b' hold categ"),
        (pd.DataFrame({"a": pd.Categorical([1, 2]), "b": [1, 2]}),
         r"column\(s\) 'a' hold categories"),
        (pl.DataFrame({"a": [1, 2], "b": ["u", "v"]}), r"column\(s\) 'b' hold categ"),
        (pd.DataFrame({"d": pd.to_datetime(["2024-01-01", "2024-01-02"])}),
         "column 'd', of dtype datetime64.* holds dates or times"),
        (np.array([["a", 1], ["b", 2]], dtype=object), "column 'x0', of dtype object"),
        ([[1, np.inf], [1, 2]], "column.* 'x1' hold infinite values"),
        ([[1, 1e200], [1, 2]], r"column.* 'x1' hold .* beyond 1e\+150; clip"),
        ([1, 2, 3], "X must have two dimensions"),
        (np.empty((0, 2)), r"X is empty, of shape \(0, 2\)"),
        (csr_matrix([[1, 2], [3, 4]]), "X is a sparse matrix"),
    ],
)  # fmt: skip
def test_partitions_refuse_what_is_no_table_of_numbers(partition, X, message):
    with pytest.raises(ValueError, match=message):
        partition(X, 2)


def test_kmeans_refuses():
    X, _ = make_clusters()
    for rows, n_eras, options, message in (
        ([[0], [1], [1], [0]], 3, {}, "found rows for 2 of n_eras=3 clusters"),
        ([[0], [1]], 9, {}, "found rows for 2 of n_eras=9 clusters"),
        (X, 1, {}, "'n_eras' parameter"),
        (X, 2, {"sample_weight": -np.ones(300)}, "Negative values .* `sample_weight`"),
        (X, 2, {"sample_weight": np.ones(299)}, "sample_weight"),
        (X, 2, {"missing": "mean"}, "'missing' parameter"),
    ):
        with pytest.raises(ValueError, match=message):
            kmeans_partition(rows, n_eras, **options)


def make_correlated(n_samples=2000, n_features=8, random_state=0):
    rng = np.random.default_rng(random_state)
    factors = rng.normal(size=(n_samples, 2))
    mixed = factors @ rng.normal(size=(2, n_features))
    return mixed + rng.normal(size=(n_samples, n_features))


def naive_mean_square(X):
    correlations = np.corrcoef(X, rowvar=False)
    off = ~np.eye(len(correlations), dtype=bool)
    return np.mean(correlations[off] ** 2)


@pytest.mark.parametrize("n_eras", [2, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_subsets_are_less_correlated_than_random_ones(n_eras, seed):
    X = make_correlated(random_state=seed)
    labels = decorrelated_partition(X, n_eras, random_state=seed)
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(np.arange(len(X)) % n_eras)
    ours = within_era_correlation(X, labels)
    at_random = within_era_correlation(X, drawn)
    assert ours.mean() < 0.65 * at_random.mean()
    assert ours.min() < 0.5 * at_random.min()


@pytest.mark.parametrize("share", [None, 0.05, 0.25, 1 / 3])
def test_every_subset_has_its_least_share(share):
    X = make_correlated(n_samples=1000)
    labels = decorrelated_partition(X, 3, min_share=share, random_state=0)
    counts = np.bincount(labels)
    assert counts.size == 3
    assert np.all(np.diff(counts) <= 0)  # numbered by size
    assert counts.min() >= np.floor((1 / 6 if share is None else share) * 1000)
    # Even at equal sizes, where rows can only be exchanged.
    start = within_era_correlation(X, np.arange(1000) % 3).mean()
    assert within_era_correlation(X, labels).mean() < 0.8 * start


def test_smaller_subsets_are_less_correlated():
    X = make_correlated()
    least = []
    for share in (0.05, 0.25):
        labels = decorrelated_partition(X, 4, min_share=share, random_state=0)
        least.append(within_era_correlation(X, labels).min())
    assert least[0] < least[1]


def test_correlations_within_eras_are_numpys_whatever_the_units():
    X = make_correlated()
    labels = decorrelated_partition(X, 3, random_state=1)
    scaled = np.insert(X * 2.0 ** np.arange(8), 3, 7.0, axis=1)
    assert_array_equal(decorrelated_partition(scaled, 3, random_state=1), labels)
    assert np.any(decorrelated_partition(X, 3, random_state=2) != labels)
    eras = np.arange(len(X)) % 2
    assert_allclose(
        within_era_correlation(scaled, eras), within_era_correlation(X, eras)
    )
    X = make_correlated() * np.arange(1, 9) + 3
    eras = np.random.default_rng(1).choice(["b", "a", "c"], size=len(X))
    expected = [naive_mean_square(X[eras == era]) for era in "abc"]
    assert_allclose(within_era_correlation(X, eras), expected, rtol=1e-5)


def make_search(n_samples, n_features, n_eras):
    X = make_correlated(n_samples=n_samples, n_features=n_features)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = np.arange(n_samples) % n_eras
    return _Search(X, labels, EraMoments.of(X, labels, n_eras)), X, labels


def test_slopes_are_derivatives_of_the_objective():
    """Of the objective after one row more, with the weight of a small part of it."""
    search, X, labels = make_search(60, 4, 3)
    moments = EraMoments.of(X, labels, 3)
    targets, changes = search._best_moves(np.arange(60))
    step = 1e-5
    for row in range(0, 60, 7):
        change = []
        for era in range(3):
            counts, sums = moments.counts.copy(), moments.sums.copy()
            products = moments.products.copy()
            counts[era] += step
            sums[era] += step * X[row]
            products[era] += step * np.outer(X[row], X[row])
            moved = EraMoments(counts, sums, products).correlations()[3].mean()
            change.append((moved - search.objective) / step)
        assert targets[row] == np.argmin(change)
        expected = min(change) - change[labels[row]]
        assert_allclose(changes[row], expected, rtol=1e-3, atol=1e-6)


def test_every_sweep_lowers_the_objective_and_keeps_the_sums():
    search, X, _ = make_search(500, 5, 2)
    rng = np.random.RandomState(0)
    last = search.objective
    for _ in range(4):
        search.sweep(rng, 100)
        anew = EraMoments.of(X, search.labels, 2)
        assert_allclose(search.moments.products, anew.products, atol=1e-9)
        assert_allclose(search.moments.counts, anew.counts)
        assert search.objective <= last
        last = search.objective
    assert_allclose(last, within_era_correlation(X, search.labels).mean())


def test_decorrelation_refuses():
    X = make_correlated(n_samples=200)
    constant = np.column_stack([X[:, 0], np.ones(200)])
    for rows, n_eras, options, message in (
        (constant, 2, {}, r"1 column\(s\) that vary"),
        (X[:8], 3, {}, "X has 8 rows, but n_eras=3 needs 9"),
        (X, 3, {"min_share": 0.4}, "min_share=0.4 .* lower it to 0.333 or less"),
        (X, 3, {"min_share": 0}, "'min_share' parameter"),
    ):
        with pytest.raises(ValueError, match=message):
            decorrelated_partition(rows, n_eras, **options)
    for rows, n_eras, options, message in (
        (X, 200, {"missing": "mean"}, "missing must be 'raise' or 'median'"),
        (X, 199, {}, "eras has 199 labels"),
        (X[:, :1], 200, {}, r"1 column\(s\) that vary"),
    ):
        with pytest.raises(ValueError, match=message):
            within_era_correlation(rows, np.zeros(n_eras), **options)


def test_a_search_ends_without_correlation_and_warns_when_it_is_cut_short():
    X = np.array([[a, b] for a in (-1.0, 1) for b in (-1.0, 1)] * 50)
    labels = decorrelated_partition(X, 2, random_state=0)
    assert within_era_correlation(X, labels).max() < 1e-6
    X = make_correlated(n_samples=200)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 sweeps") as caught:
        decorrelated_partition(X, 2, max_iter=1, random_state=0)
    assert caught[0].filename == __file__
