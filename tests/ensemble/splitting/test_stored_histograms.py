"""The memory of the histograms that nodes keep."""

import pytest
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from helpers.kernel_fits import CRITERIA, RecordingSplitter, fit, make_eras
from sklearn_era.ensemble import EraForestRegressor
from sklearn_era.ensemble._forests import iteration
from sklearn_era.ensemble._splitting.splitter import EraSplitter
from sklearn_era.ensemble._splitting.store import STORE_BUDGET, HistogramStore

BYTES_PER_BIN = 16  # a number of rows and a sum of gradients


def test_a_store_lends_what_its_budget_has_room_for():
    store = HistogramStore(100 * 8)
    first = store.lend(60)
    assert first.nbytes == store.allocated == 60 * 8
    assert store.lend(41) is None
    store.take_back(first)
    assert store.lend(50) is first  # large enough
    assert store.allocated == 60 * 8
    assert store.lend(40).nbytes == 40 * 8


def test_a_store_counts_what_it_has_allocated():
    store = HistogramStore(2**62)
    with pytest.raises(MemoryError):
        store.lend(2**58)
    assert store.allocated == 0
    assert store.lend(50).nbytes == store.allocated
    store = HistogramStore(100 * 8)
    for buffer in [store.lend(30), store.lend(30)]:
        store.take_back(buffer)
    assert store.allocated == 60 * 8
    large = store.lend(100)  # free buffers that are too small make room
    assert large.nbytes == store.allocated == 100 * 8
    assert store.lend(1) is None
    assert HistogramStore().budget == STORE_BUDGET
    assert HistogramStore(0).lend(1) is None


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 5.5])
def test_a_fit_stays_within_its_budget(n_nodes):
    data = make_eras(4, 500, n_bins=6)
    budget = int(n_nodes * 4 * 6 * BYTES_PER_BIN)
    params = {"max_iter": 4, "max_leaf_nodes": 20, "splitter": RecordingSplitter}
    _, splitter = fit(data, CRITERIA["era"], store_budget=budget, **params)
    kept = [is_kept for _, is_kept in splitter.nodes_stored]
    assert splitter.store.budget == budget
    assert 0 < max(splitter.allocated) <= budget
    assert 0 < sum(kept) < len(kept)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_trees_of_a_forest_share_the_budget(n_jobs, monkeypatch):
    budgets = []

    def make(*args, store_budget, **kwargs):
        budgets.append(store_budget)
        return EraSplitter(*args, store_budget=store_budget, **kwargs)

    monkeypatch.setattr(iteration, "EraSplitter", make)
    X, y, eras = make_eras(4, 50, n_bins=6)
    forest = EraForestRegressor(4, split_criterion="era", n_jobs=n_jobs)
    forest.fit(X, y, eras=eras)
    n_at_a_time = min(n_jobs, _openmp_effective_n_threads())
    assert budgets == [STORE_BUDGET // n_at_a_time] * 4


@pytest.mark.parametrize("params", [{}, {"colsample_bytree": 0.5}])
def test_trees_take_over_the_memory_of_those_before(params):
    params = {"max_iter": 12, "max_leaf_nodes": 8} | params
    data = make_eras(4, 500, n_bins=6, n_features=8)
    _, splitter = fit(data, CRITERIA["era"], splitter=RecordingSplitter, **params)
    kept = [is_kept for _, is_kept in splitter.nodes_stored]
    assert sum(kept) > 40
    # As many nodes as a tree has at a time: no more than its leaves. Each has bins, and
    # of four eras the lanes of three bundles.
    sums_of_node = 8 * 6 + 4 * 3 * 16
    assert 0 < max(splitter.allocated) <= 8 * sums_of_node * BYTES_PER_BIN
