"""Trees that processes, here threads, grow together, each on the rows of other eras."""

import functools
import threading

import numpy as np
import pytest

from helpers.criteria import CRITERIA, DEVIATIONS, RATIO
from helpers.grids import on_grid
from helpers.kernel_fits import make_eras
from sklearn_era._eras import EncodedEras
from sklearn_era.criteria import Gain
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.ensemble._criterion_plan import CriterionPlan, choose_splitter
from sklearn_era.ensemble._exchange import ALONE, Exchange
from sklearn_era.ensemble._splitting.tree_grower import EraTreeGrower

N_BINS = 256


class Meeting:
    """Where threads put their arrays, until all have and take what they make."""

    def __init__(self, n_threads):
        self.n_threads = n_threads
        self.arrays = [None] * n_threads
        self.n_numbers = 0
        self._barrier = threading.Barrier(n_threads, timeout=60)

    def combine(self, rank, values, combine):
        self.arrays[rank] = values
        self._barrier.wait()
        assert {array.shape for array in self.arrays} == {values.shape}
        result = combine(np.stack(self.arrays), axis=0)
        self.n_numbers += values.size
        self._barrier.wait()
        return result

    def abort(self):
        self._barrier.abort()


class ThreadExchange(Exchange):
    is_alone = False

    def __init__(self, meeting, rank):
        self._meeting = meeting
        self.rank = rank
        self.n_processes = meeting.n_threads

    def sum(self, values):
        return self._meeting.combine(self.rank, values, np.sum)

    def max(self, values):
        return self._meeting.combine(self.rank, values, largest_of)


def largest_of(arrays, axis):
    """Maxima as XGBoost's collective finds them, which may lose NaN."""
    return functools.reduce(lambda a, b: np.where(a < b, b, a), arrays)


def make_data(n_eras=12, n_per_era=60, n_bins=5, missing=0.0, weighted=False, seed=0):
    X, y, eras = make_eras(n_eras, n_per_era, n_bins, seed=seed, missing=missing)
    X_binned = np.where(np.isnan(X), N_BINS - 1, X).astype(np.uint8, order="F")
    gradients = (y.mean() - y).astype(np.float32)
    hessians = np.ones(1, dtype=np.float32)
    if weighted:
        hessians = np.random.default_rng(1).uniform(0.5, 2.0, y.size)
        hessians = hessians.astype(np.float32)
        gradients *= hessians
    return X_binned, gradients, hessians, eras, y


def grow(data, rows, exchange, params, is_categorical=None, n_bins=5, penalties=None):
    """The nodes of a tree that is grown on some rows, along with those of others."""
    X_binned, gradients, hessians, eras, y = data
    estimator = HistGradientBoostingRegressor(**params)
    labels, codes = np.unique(eras, return_inverse=True)
    splitter = choose_splitter(
        estimator, CriterionPlan.from_estimator(estimator),
        EncodedEras(labels, codes[rows].astype(np.int32)),
        (y > np.median(y))[rows].astype(float),  # for the ratio
        None if hessians.size == 1 else hessians[rows],
        exchange=exchange, penalties=penalties,
    )  # fmt: skip
    n_features = X_binned.shape[1]
    tree = EraTreeGrower(
        splitter, np.asfortranarray(X_binned[rows]), gradients[rows].copy(),
        hessians if hessians.size == 1 else hessians[rows].copy(),
        n_bins=N_BINS, n_bins_non_missing=np.full(n_features, n_bins, dtype=np.uint32),
        has_missing_values=(X_binned == N_BINS - 1).any(axis=0).astype(np.uint8),
        is_categorical=is_categorical, max_leaf_nodes=12, min_samples_leaf=5,
        min_gain_to_split=0.0, min_hessian_to_split=1e-3, l2_regularization=0.0,
        n_threads=1, rng=np.random.default_rng(0),
        feature_fraction_per_split=params.get("max_features", 1.0),
    )  # fmt: skip
    tree.grow()
    raw = np.zeros(rows.size)
    tree.add_to(raw)
    for leaf in tree.finalized_leaves:
        assert (raw[leaf.sample_indices] == leaf.value).all()
    assert sum(leaf.sample_indices.size for leaf in tree.finalized_leaves) == raw.size
    return tree.make_predictor([np.arange(N_BINS - 1.0)] * n_features).nodes


def grow_together(data, shards, params, **options):
    """The nodes that each thread has grown, and how many numbers were exchanged."""
    meeting = Meeting(len(shards))
    grown, errors = [None] * len(shards), []

    def work(rank):
        try:
            exchange = ThreadExchange(meeting, rank)
            grown[rank] = grow(data, shards[rank], exchange, params, **options)
        except Exception as error:
            errors.append(error)
            meeting.abort()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(shards))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return grown, meeting.n_numbers


def shard(eras, n_shards):
    """Rows of whole eras, most of which are with the last of the shards."""
    bounds = np.quantile(eras, np.linspace(0, 1, n_shards + 1)[1:-1] ** 2)
    shards = np.searchsorted(bounds, eras, side="left")
    return [np.flatnonzero(shards == i) for i in range(n_shards)]


def assert_together_as_alone(data, params, n_shards=3, **options):
    alone = grow(data, np.arange(data[0].shape[0]), ALONE, params, **options)
    assert np.sum(alone["is_leaf"]) > 2
    grown, _ = grow_together(data, shard(data[3], n_shards), params, **options)
    for nodes in grown[1:]:
        np.testing.assert_array_equal(nodes, grown[0])
    for name in alone.dtype.names:
        expected, found = alone[name], grown[0][name]
        if name in ("value", "gain"):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=name)
    return alone


LOOSE = {"min_era_coverage": 0.3}


@on_grid("criterion", CRITERIA | {"ratio": RATIO} | DEVIATIONS, every=2)
def test_processes_grow_the_tree_of_one(criterion):
    if criterion["split_criterion"] == "gain":
        criterion = {"split_criterion": Gain(splitter="era")}
    params = criterion | LOOSE
    assert_together_as_alone(make_data(), params)
    penalties, data = np.array([0.9, 0.3, 0.0, 0.1]), make_data(n_eras=40, n_per_era=20)
    paid = assert_together_as_alone(data, params, penalties=penalties)
    free = grow(data, np.arange(data[1].size), ALONE, params)
    assert not np.array_equal(free["feature_idx"], paid["feature_idx"])


OPTIONS = {
    "few bins": {"n_bins": 5}, "many bins": {"n_bins": 60},
    "categories": {"n_bins": 9, "is_categorical": np.array([0, 1, 0, 1], np.uint8)},
    "drawn features": {"max_features": 0.5}}  # fmt: skip


@on_grid(
    "name missing weighted options", ["directional", "era", "invariant", "vrex"],
    [0.0, 0.2], [False, True], OPTIONS, every=4)  # fmt: skip
def test_processes_with_other_data(name, missing, weighted, options):
    n_bins = options.get("n_bins", 5)
    data = make_data(n_bins=n_bins, missing=missing, weighted=weighted)
    params = CRITERIA[name] | LOOSE
    if "max_features" in options:
        assert_together_as_alone(data, params | options)
    else:
        assert_together_as_alone(data, params, **options)


@pytest.mark.parametrize(
    "name", ["era", "directional", "time_robust", "time_robust, smoothed"]
)
def test_many_eras_that_few_nodes_share(name):
    """Directions first, eras without a row in a node, and processes without any."""
    X_binned, gradients, hessians, eras, y = make_data(n_eras=60, n_per_era=12)
    X_binned[:, 3] = eras // 12
    data = (X_binned, gradients - 9 * X_binned[:, 3], hessians, eras, y)
    for least in (1, 0.1):
        params = {"min_era_coverage": 0.1, "min_samples_per_era": least}
        assert_together_as_alone(data, CRITERIA[name] | params, 4)


@pytest.mark.parametrize("spacing", [2.0**-17, 2.0**-14, 2.0**-10])
def test_directions_of_sides_that_rounding_may_part(spacing):
    """In two of three eras, gradients are 100 and differ by their last digits."""
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(30), 40)
    X_binned = np.asfortranarray(rng.integers(0, 60, (eras.size, 8)), dtype=np.uint8)
    gradients = 100 + spacing * rng.integers(0, 3, eras.size)
    gradients += (eras % 3 == 0) * (X_binned[:, 0] < 30) * rng.normal(size=eras.size)
    gradients = gradients.astype(np.float32)
    data = X_binned, gradients, np.ones(1, np.float32), eras, gradients
    assert_together_as_alone(data, CRITERIA["directional"] | LOOSE, n_bins=60)


def test_what_is_exchanged_depends_on_no_number_of_rows_or_eras():
    sizes = set()
    for n_eras, n_per_era in ((40, 60), (80, 60), (40, 240)):
        data = make_data(n_eras, n_per_era, n_bins=5)
        _, n_numbers = grow_together(data, shard(data[3], 2), CRITERIA["era"] | LOOSE)
        sizes.add(n_numbers)
    assert max(sizes) < 1.2 * min(sizes)  # trees may differ by a node


@pytest.mark.parametrize("rank", [0, 1])
def test_a_gradient_that_is_no_number_ends_the_tree_of_all_processes(rank):
    data = make_data()
    shards = np.array_split(np.arange(data[3].size), 2)
    data[1][shards[rank][3]] = np.nan
    nodes, _ = grow_together(data, shards, {"split_criterion": "era"})
    assert [tree.size for tree in nodes] == [1, 1]


def test_an_error_of_the_exchange_ends_the_tree():
    class Broken(Exchange):
        is_alone = False
        n_calls = 0

        def sum(self, values):
            self.n_calls += 1
            if self.n_calls > 8:
                raise ConnectionError("a process is gone")
            return values

    data = make_data()
    with pytest.raises(ConnectionError, match="a process is gone"):
        grow(data, np.arange(len(data[1])), Broken(), CRITERIA["era"] | LOOSE)


class Stranger(Exchange):
    """Another process that sends, for the rows of the first bin, what it likes."""

    is_alone = False

    def __init__(self, n_rows):
        self._n_rows = n_rows

    def sum(self, values):
        values = values.copy()
        if values.size > 3:
            values[2] = self._n_rows
        return values


@on_grid("n_rows criterion", [np.nan, np.inf, -1.0, 2.0**32, 1e300], ["gain", "era"])
def test_numbers_that_count_no_rows_end_the_fit(n_rows, criterion):
    data = make_data()
    rows = np.arange(data[4].size)
    params = {"split_criterion": criterion, "min_gain_share": 0.5}
    message = f"count {n_rows:g} rows in a bin".replace("+", ".")
    with pytest.raises(ValueError, match=message):
        grow(data, rows, Stranger(n_rows), params)
