"""Which worker gets which eras or partitions, and which rows bins are made from."""

import numpy as np
import pytest
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

from sklearn_era.dask._bins import draw_sample
from sklearn_era.dask._placement import place_units


def place(n_rows, n_trained, holders, n_workers):
    addresses = [f"w{i}" for i in range(n_workers)]
    places, used = place_units(
        np.array(n_rows), np.array(n_trained), holders, addresses
    )
    return places.tolist(), used


def test_units_stay_where_they_are():
    holders = ["w1", "w0", "w1", "w0"]
    assert place([5, 6, 6, 5], [5, 6, 6, 5], holders, 2) == ([1, 0, 1, 0], ["w0", "w1"])


def test_load_is_evened_out():
    rows = [50, 10, 10, 10, 10, 10]
    places, _ = place(rows, rows, ["w0"] * 6, 2)
    loads = np.bincount(places, rows)
    assert loads.tolist() == [50, 50]


def test_each_worker_trains():
    # The rows of two units are all held out.
    places, used = place([9, 1, 90, 90], [9, 1, 0, 0], ["w2"] * 4, 3)
    assert len(used) == 2
    assert sorted(places[:2]) == [0, 1]
    assert sorted(places[2:]) == [0, 1]


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("is_permuted", [False, True])
def test_sample_is_that_of_scikit_learn(is_weighted, is_permuted):
    rng = np.random.default_rng(0)
    n_rows = np.array([500, 1, 300])
    is_trained = rng.random(n_rows.sum()) < 0.8
    trained = np.flatnonzero(is_trained)
    starts = np.cumsum(n_rows) - n_rows
    parts = np.searchsorted(starts, trained, side="right") - 1
    order = rng.permutation(trained) if is_permuted else trained
    weights = rng.uniform(0.5, 2.0, n_rows.sum()) if is_weighted else None
    values = rng.normal(size=n_rows.sum())

    mapper = _BinMapper(n_bins=256, subsample=200, random_state=3)
    drawn = draw_sample(
        mapper,
        np.bincount(parts, minlength=3),
        None if weights is None else weights[trained],
        order if is_permuted else None,
    )
    sample = [values[trained[parts == i]][rows] for i, rows in enumerate(drawn)]
    X = values[order].reshape(-1, 1)
    mapper.fit(X, sample_weight=None if weights is None else weights[order])
    again = _BinMapper(n_bins=256, subsample=None)
    again.fit(np.concatenate(sample).reshape(-1, 1))
    np.testing.assert_array_equal(again.bin_thresholds_[0], mapper.bin_thresholds_[0])
