"""The era kernel at the ends of its ranges: bundles, memory, codes and gradients."""

import math
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from helpers import kernel_fits
from helpers.grids import on_grid, slow
from helpers.kernel_fits import CRITERIA, fit, make_eras
from helpers.trees import trees_of
from oracle.reference import check_fit
from sklearn_era.criteria import Era
from sklearn_era.ensemble import EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._forests import iteration
from sklearn_era.ensemble._splitting.bundles import bundle_features, masks_of_splits
from sklearn_era.ensemble._splitting.rows import EraRows
from sklearn_era.ensemble._splitting.splitter import EraSplitter
from sklearn_era.ensemble._splitting.store import STORE_BUDGET, HistogramStore

MOST_CODES = 256  # of a feature: 255 bins and missing values


def no_flags(n_codes):
    """No missing values, and no categories."""
    return [False] * len(n_codes), [False] * len(n_codes)


@settings(max_examples=4 * settings().max_examples)
@given(st.lists(st.integers(1, 6) | st.integers(1, MOST_CODES), max_size=60))
@example([1] * 60)
@example([2] * 9)
@example([MOST_CODES] * 3)
@example([1, MOST_CODES, 1])
@example([16, 16, 2])
def test_bundles_fit_into_a_byte_and_leave_no_feature_out(n_codes):
    bundles = bundle_features(n_codes, *no_flags(n_codes))
    features = [i for b in bundles for i in range(b.start, b.stop)]
    assert features == list(range(len(n_codes)))
    for bundle in bundles:
        codes = n_codes[bundle]
        assert math.prod(codes) <= 256
        assert 1 <= len(codes) <= 8
        assert len(codes) == 1 or max(codes) <= 16
    # All rows have a lane beside those of the splits: 29 and 3 are one too many.
    assert len(bundle_features([16, 4], [True, False], [False, False])) == 2
    # No bundle could have taken in its neighbour.
    for bundle in bundles[:-1]:
        codes = n_codes[bundle.start : bundle.stop + 1]
        assert math.prod(codes) > 256 or max(codes) > 16 or len(codes) > 8


@pytest.mark.parametrize("missing", [(False, False), (True, False), (True, True)])
def test_masks_say_which_codes_are_left_of_which_split(missing):
    n_codes = [4, 3]
    masks = masks_of_splits(n_codes, missing)
    lanes = iter(masks.T)
    for j in range(2):
        codes = np.arange(12) % 4 if j == 0 else np.arange(12) // 4
        last = n_codes[j] - 1
        for split in range(last):  # missing values, or the last bin, on the right
            assert_array_equal(next(lanes), -(codes <= split).astype(int))
        for split in range(last - 1 if missing[j] else 0):
            is_left = (codes <= split) | (codes == last)
            assert_array_equal(next(lanes), -is_left.astype(int))
    assert_array_equal(next(lanes), -1)  # all rows
    assert masks.shape[1] % 8 == 0
    assert not any(lane.any() for lane in lanes)


BYTES_PER_BIN = 16  # a number of rows and a sum of gradients


def test_a_store_lends_what_its_budget_has_room_for():
    store = HistogramStore(100 * 8)
    first = store.lend(60)
    assert first.buffer.nbytes == store.allocated == 60 * 8
    assert store.lend(41) is None
    store.take_back(first)
    assert store.lend(50) is first  # large enough
    assert (store.allocated, store.lend(40).buffer.nbytes) == (60 * 8, 40 * 8)
    # It counts what it has allocated.
    store = HistogramStore(2**62)
    with pytest.raises(MemoryError):
        store.lend(2**58)
    assert (store.allocated, store.lend(50).buffer.nbytes) == (0, store.allocated)
    store = HistogramStore(100 * 8)
    for buffer in [store.lend(30), store.lend(30)]:
        store.take_back(buffer)
    assert store.allocated == 60 * 8
    large = store.lend(100)  # free buffers that are too small make room
    assert large.buffer.nbytes == store.allocated == 100 * 8
    assert store.lend(1) is None
    assert HistogramStore().budget == STORE_BUDGET
    assert HistogramStore(0).lend(1) is None


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_trees_of_a_forest_share_the_budget(n_jobs, monkeypatch):
    budgets = []

    def make(*args, store_budget, **kwargs):
        budgets.append(store_budget)
        return EraSplitter(*args, store_budget=store_budget, **kwargs)

    monkeypatch.setattr(iteration, "EraSplitter", make)
    X, y, eras = make_eras(4, 50, n_bins=6)
    EraForestRegressor(4, split_criterion="era", n_jobs=n_jobs).fit(X, y, eras=eras)
    assert budgets == [STORE_BUDGET // min(n_jobs, _openmp_effective_n_threads())] * 4


@pytest.mark.parametrize("params", [{}, {"colsample_bytree": 0.5}])
def test_trees_take_over_the_memory_of_those_before(params):
    params = {"max_iter": 12, "max_leaf_nodes": 8} | params
    data = make_eras(4, 500, n_bins=6, n_features=8)
    _, splitter = fit(data, CRITERIA["era"], **params)
    assert splitter.n_kept > 40
    # As many nodes as a tree has at a time: no more than its leaves. Each has bins, and
    # of four eras the lanes of three bundles.
    sums_of_node = 8 * 6 + 4 * 3 * 16
    assert 0 < splitter.store.allocated <= 8 * sums_of_node * BYTES_PER_BIN


def test_leaves_give_their_memory_back():
    """Each split leaves one value, which is a leaf, and all that are smaller."""
    x, eras = np.tile(np.arange(20), 120), np.repeat([0, 1], 1200)
    data = x[:, np.newaxis].astype(float), 4.0**x, eras
    params = {"max_iter": 1, "max_leaf_nodes": 20}
    _, splitter = fit(data, CRITERIA["era"], **params)
    assert splitter.n_kept > 20
    assert splitter.store.allocated == 2 * 20 * BYTES_PER_BIN


SUMMED = [CRITERIA["era"], CRITERIA["directional"]]
SUMMING = pytest.mark.parametrize("criterion", SUMMED)
ERA = {"split_criterion": "era", "min_gain_share": 0.0, "early_stopping": False}
STORED_OR_NOT = pytest.mark.parametrize("store_budget", [0, None])


@STORED_OR_NOT
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_largest_bundles(store_budget, missing):
    # Eight features of two codes, or five of three: 256 and 243 combinations.
    X, y, eras = make_eras(4, 200, n_bins=2, n_features=9, missing=missing)
    model, _ = fit((X, y, eras), CRITERIA["directional"], store_budget=store_budget)
    assert check_fit(model, X, y, eras).n_splits > 6


@STORED_OR_NOT
def test_features_of_a_single_bin(store_budget):
    X, y, eras = make_eras(4, 200, n_bins=4)
    expected, _ = fit((X, y, eras), CRITERIA["era"], store_budget=store_budget)
    constant = np.ones((len(y), 10))
    padded = np.hstack([constant, X[:, :2], constant, X[:, 2:], constant])
    model, _ = fit((padded, y, eras), CRITERIA["era"], store_budget=store_budget)
    kernel_fits.assert_same_nodes(expected, model, features=[10, 11, 22, 23])


@SUMMING
@STORED_OR_NOT
def test_all_rows_of_a_block_are_in_one_bin(criterion, store_budget):
    """A block's count of rows is then as large as a sum of words has to hold."""
    n_per_block = 2**10
    x = np.tile(np.repeat([0.0, 1.0], n_per_block), 2)
    eras = np.repeat([0, 1], 2 * n_per_block)
    y = np.random.default_rng(0).permutation(np.arange(x.size) % 64) - 200 * x
    X, params = x[:, None], {"min_samples_leaf": n_per_block}
    model, _ = fit((X, y, eras), criterion, store_budget=store_budget, **params)
    assert check_fit(model, X, y, eras).n_splits == 3
    for tree in trees_of(model):
        assert tree.nodes["count"].tolist() == [4096, 2048, 2048]


ERA_SIZES = {"of several blocks": [30_000, 30_000, 15_000], "in lanes": [49] * 1_500}


@on_grid("era_sizes alpha", ERA_SIZES, [-np.inf, np.inf])
def test_chunks_of_other_eras_give_the_same_bits(alpha, era_sizes):
    """A chunk has 65,536 rows at most, the largest ones of one end of the eras."""
    X, y, _ = make_eras(1, sum(era_sizes), n_bins=16, n_features=3)
    eras = np.repeat(np.arange(len(era_sizes)), era_sizes)
    y += 20 * (eras % 3 - 1) * X[:, 1]
    y[eras == len(era_sizes) - 1] += 300 * (X[eras == len(era_sizes) - 1, 2] > 7)
    # The best or worst of the eras is the same in any order of them.
    criterion = {"split_criterion": Era(boltzmann_alpha=alpha)}
    params = {"max_iter": 1, "min_era_coverage": 0.1}
    expected, _ = fit((X, y, eras), criterion, **params)
    order = np.random.default_rng(1).permutation(y.size)
    other, _ = fit((X[order], y[order], -eras[order]), criterion, **params)
    kernel_fits.assert_same_nodes(other, expected)


@SUMMING
@pytest.mark.parametrize("exponent", [-90, 90])
def test_the_unit_of_the_target_does_not_change_a_bit(criterion, exponent):
    X, y, eras = make_eras(3, 500, n_bins=5)
    model, splitter = fit((X, y, eras), criterion)
    assert splitter.n_kept > 0
    if exponent < 0:  # gains are squares
        exponent //= 2
    scaled, _ = fit((X, np.ldexp(y, exponent), eras), criterion)
    for ours, theirs in zip(trees_of(model), trees_of(scaled), strict=True):
        for name in ("feature_idx", "bin_threshold", "is_leaf", "count"):
            assert np.array_equal(ours.nodes[name], theirs.nodes[name])
        values = np.ldexp(ours.nodes["value"], exponent)
        assert np.array_equal(values, theirs.nodes["value"])


@pytest.mark.parametrize("seed", [53, 114, *map(slow, range(60, 80))])
def test_rounding_of_the_target_does_not_decide_where_eras_become_pure(seed):
    """Multiplied by 3, gradients are rounded in another way; by 4, they are not."""
    rng = np.random.default_rng(seed)
    X, eras = rng.normal(size=(400, 6)), rng.integers(0, 20, 400)
    y = X[:, 0] * np.where(eras == 2, -1, 1) + X[:, 1] + rng.normal(size=400)
    model = Regressor(max_iter=3, split_criterion="time_robust", min_samples_leaf=1)
    expected = model.fit(X, y, eras=eras).predict(X)
    for unit in (3.0, 1e-6):
        found = model.fit(X, unit * y, eras=eras).predict(X) / unit
        assert np.allclose(found, expected, atol=1e-5)
    twice = np.tile(np.arange(400), 2)
    expected = model.fit(X, y, np.full(400, 2.0), eras=eras).predict(X)
    found = model.fit(X[twice], y[twice], eras=eras[twice]).predict(X)
    assert np.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("outlier", [1e9, slow(1e12), 1e15])
def test_an_outlier_does_not_take_the_digits_of_other_rows(outlier):
    X, y, eras = make_eras(5, 1000, n_bins=8)
    y = y / 100
    y[0] = outlier
    params = {"max_iter": 60, "learning_rate": 0.5, "max_leaf_nodes": 31,
              "min_samples_leaf": 1, "min_era_coverage": 0.2}  # fmt: skip
    model, _ = fit((X, y, eras), {"split_criterion": "era"}, **params)
    gain = Regressor(early_stopping=False, **params).fit(X, y)
    # Rows that share no leaf with the outlier.
    errors = [np.median(abs(m.predict(X) - y)) for m in (model, gain)]
    assert errors[0] < 2 * errors[1] < 1


def test_more_rows_than_an_int_counts_are_refused():
    codes = np.broadcast_to(np.int32(0), 2**31)  # one number, in so many places
    with pytest.raises(ValueError, match=r"^X has 2,147,483,648 rows to train on, and"):
        EraRows(codes, 1)


def test_categories_without_a_number_for_their_gradient_have_an_order():
    X = np.arange(400)[:, np.newaxis] % 20.0
    eras, y = np.arange(400) % 2, np.where(X[:, 0] < 9, 1e38, -1e38) * (1 - X[:, 0])
    params = {"categorical_features": [0], "max_iter": 3}
    model = Regressor(split_criterion="era", **params)
    warnings.simplefilter("ignore")  # restored after each test
    model.fit(X, y * 1e200, eras=eras)
    assert np.isfinite(model.predict(X)).all()
    # Some gradients alone, too large for a float.
    X, y, eras = make_eras(5, 100, n_bins=8)
    y[:3] = 1e300
    est = Regressor(**ERA, max_iter=2)
    with pytest.warns():  # of overflows, as of scikit-learn's own splitter
        est.fit(X, y, eras=eras)
    assert est.n_iter_ == 2


def test_a_fit_again_with_other_data_forgets_the_first():
    X, y, eras = make_eras(3, 500, n_bins=5)
    others = make_eras(40, 15, n_bins=64, n_features=7, missing=0.1)
    est = Regressor(**ERA, max_iter=3, min_era_coverage=0.3)
    first = est.fit(X, y, eras=eras).predict(X)
    est.fit(others[0], others[1], eras=others[2])
    assert np.array_equal(est.fit(X, y, eras=eras).predict(X), first)


def test_fits_at_the_same_time_do_not_disturb_each_other():
    def fit_and_predict(i):
        X, y, eras = make_eras(3 + 30 * (i % 2), 200, n_bins=5 + 40 * (i % 3), seed=i)
        est = Regressor(**ERA, max_iter=3, min_era_coverage=0.3)
        return est.fit(X, y, eras=eras).predict(X)

    expected = [fit_and_predict(i) for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(fit_and_predict, range(8)))
    for ours, theirs in zip(at_once, expected, strict=True):
        assert np.array_equal(ours, theirs)
