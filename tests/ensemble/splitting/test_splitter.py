"""Every way to sum up and compare eras gives the same trees."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from helpers import kernel_fits
from helpers.grids import from_1_9, on_grid
from helpers.kernel_fits import CRITERIA, assert_same_nodes, fit, make_eras
from helpers.trees import assert_same_splits, assert_same_trees, rows_of_nodes, trees_of
from sklearn_era.criteria import Gain
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._splitting.bundles import bundle_features
from sklearn_era.ensemble._splitting.lanes.instruction_sets import available_levels
from sklearn_era.ensemble._splitting.tree_grower import EraTreeGrower

FAST_GAIN = {"split_criterion": Gain(splitter="era")}
SHAPES = {"large": (3, 500, 5), "small": (40, 15, 64), "masks": (12, 40, 16)}
VARYING = on_grid("criterion shape kind", CRITERIA,
                  SHAPES | {"large bins": (3, 500, 20), "small bins": (12, 40, 20)},
                  ["weights", "poisson"], every=14)  # fmt: skip
ON_SHAPES = on_grid("criterion shape", CRITERIA, SHAPES, every=5)
# Data; a number of bytes, for all nodes or two of them; and the nodes that are kept. A
# chunk has 65,536 rows: 13 eras of 5,000, which are no whole number of vectors.
STORES = {
    "all nodes": ((3, 500, 5), None, 6), "some nodes": ((3, 500, 5), 2 * 4 * 5 * 16, 0),
    "missing values": ((3, 500, 5, 4, 0, 0.15), None, 6),
    "several chunks": ((40, 5000, 5), None, 2),
    "categories": ((4, 300, 9, 4, 0, 0.1), None, 0),
}  # fmt: skip


@on_grid("criterion store", CRITERIA, STORES, every=4)
def test_kept_histograms_and_streamed_ones_give_the_same_trees(criterion, store):
    shape, budget, n_kept = store
    params = {"max_iter": 1 if shape[0] == 40 else 3, "max_leaf_nodes": 16}
    if shape[0] == 4:
        params["categorical_features"] = [0, 2]
    data = make_eras(*shape)
    kept, splitter = fit(data, criterion, store_budget=budget, **params)
    assert splitter.n_kept > n_kept
    if budget is not None:
        assert splitter.n_kept < splitter.n_searched
        assert 0 < splitter.store.allocated <= splitter.store.budget == budget
    streamed, other = fit(data, criterion, store_budget=0, **params)
    assert other.n_kept == 0
    assert_same_trees(kept, streamed)


DRAWS = {"all": {}, "tree": {"colsample_bytree": 0.5}, "node": {"max_features": 0.5},
         "sets": {"interaction_cst": [{0, 1}, {1, 2}, {0, 2, 3}]},
         "weights": {"loss": "poisson"}}  # fmt: skip


@on_grid("criterion draws missing", CRITERIA, DRAWS, [0.0, 0.15], every=4)
def test_several_processes_keep_their_sums_or_exchange_them_again(
    criterion, draws, missing
):
    X, y, eras = make_eras(12, 60, 5, missing=missing)
    data, params = (X, y - y.min(), eras), {"max_leaf_nodes": 16, **draws}
    alone, _ = fit(data, criterion, **params)
    sent = []
    for budget in (None, 4 * 4 * 6 * 16, 0):  # all nodes, a few, none
        exchange = kernel_fits.OneOfSeveral()
        one, _ = fit(data, criterion, store_budget=budget, exchange=exchange, **params)
        assert_same_splits(one, alone, rtol=1e-9, atol=1e-12)
        sent.append((exchange.n_sums, exchange.n_bytes))
    kept, _, streamed = sent
    if "max_features" in draws:
        assert kept == streamed
    else:
        assert kept < streamed
        assert kept[1] < streamed[1]


def rare_values(n_samples, n_values, seed=1):
    """A feature that no split can use: its values have too few rows for a leaf."""
    rows = np.random.default_rng(seed).permutation(n_samples)[: n_values - 1]
    column = np.zeros(n_samples)
    column[rows] = np.arange(1, n_values)
    return column


@on_grid("criterion store_budget missing", CRITERIA, [0, None], [0.0, 0.15], every=4)
def test_bundles_and_single_features_are_alike(criterion, store_budget, missing):
    X, y, eras = make_eras(3, 500, n_bins=5, n_features=6, missing=missing)
    n_codes = [5 + (missing > 0)] * 6
    bundles = bundle_features(n_codes, [missing > 0] * 6, [False] * 6)
    assert max(b.stop - b.start for b in bundles) > 1
    params = {"min_samples_leaf": 210, "max_bins": 255, "store_budget": store_budget}
    joint, _ = fit((X, y, eras), criterion, **params)
    # Wide features in between, with which nothing fits into a byte.
    filler = np.array([rare_values(len(y), 200, seed) for seed in range(6)]).T
    apart = np.stack([X, filler], axis=2).reshape(len(y), 12)
    codes = np.ravel([n_codes, [200] * 6], order="F")
    bundles = bundle_features(codes.tolist(), [False] * 12, [False] * 12)
    assert all(b.stop - b.start == 1 for b in bundles)
    single, _ = fit((apart, y, eras), criterion, **params)
    assert_same_nodes(joint, single, features=range(0, 12, 2))


@on_grid("criterion missing coverage", CRITERIA, [0.0, 0.15], [0.1, 0.9], every=5)
def test_splits_that_are_ruled_out_are_not_the_best_ones(criterion, missing, coverage):
    """With a penalty of any feature, all splits are compared by era to the end."""
    X, y, eras = make_eras(40, 60, n_bins=40, n_features=8, missing=missing)
    criterion = criterion | {"min_era_coverage": coverage}
    some, _ = fit((X, y, eras), criterion)
    padded = np.column_stack([X, np.zeros(len(y))])  # without a split
    every, _ = fit((padded, y, eras), criterion, feature_penalty=[0.0] * 8 + [0.5])
    assert_same_nodes(some, every)


def assert_alike(a, b):
    """Compare splits exactly, values up to rounding, and no numbers of rows."""
    for ours, theirs in zip(trees_of(a), trees_of(b), strict=True):
        for name in ("feature_idx", "bin_threshold", "is_leaf"):
            assert np.array_equal(ours.nodes[name], theirs.nodes[name])
        values = ours.nodes["value"], theirs.nodes["value"]
        assert_allclose(*values, rtol=1e-6, atol=1e-9)


ERA_SIZES = {"a chunk": [2900, 100], "several blocks": [250] * 12, "lanes": [75] * 40}


@on_grid("criterion era_sizes", CRITERIA, ERA_SIZES, every=8)
def test_rows_many_times_over_give_the_same_trees(criterion, era_sizes):
    X, y, _ = make_eras(1, 3000, n_bins=6, n_features=3)
    eras = np.arange(len(era_sizes)).repeat(era_sizes)
    y += 20 * (eras % 3 - 1) * X[:, 1]
    times = 24  # a chunk has 65,536 rows at most, or a single era

    def repeated(times, **params):
        data = (np.repeat(X, times, axis=0), np.repeat(y, times), eras.repeat(times))
        params |= criterion | {"min_samples_leaf": 10 * times}
        key = criterion["split_criterion"]
        if getattr(key, "boltzmann_alpha", 0) and not key.normalize:  # gains are sums
            key = key._changed(boltzmann_alpha=key.boltzmann_alpha / times)
            params["split_criterion"] = key
        return fit(data, {}, **params)[0]

    streamed = repeated(times, store_budget=0)
    assert_alike(streamed, repeated(1))
    assert_same_splits(streamed, repeated(times))


@VARYING
def test_hessians_beside_gradients_are_summed_up_as_exactly(criterion, shape, kind):
    X, y, eras = make_eras(*shape)
    params, y = kernel_fits.hessians_that_vary(kind, y)
    expected, splitter = fit((X, y, eras), criterion, **params)
    if shape[1] == 500:
        assert splitter.n_kept > 6
    streamed, _ = fit((X, y, eras), criterion, store_budget=0, **params)
    assert_same_nodes(streamed, expected)
    order = np.random.default_rng(2).permutation(len(y))
    if kind == "weights":
        params["weights"] = params["weights"][order]
    other, _ = fit((X[order], y[order], eras[order]), criterion, **params)
    assert_same_nodes(other, expected)


@pytest.mark.parametrize("seed", [1, 2, 4])
@pytest.mark.parametrize(
    "criterion", [FAST_GAIN, {"split_criterion": "era", "min_gain_share": 0.5}]
)
def test_sums_over_eras_are_exact_with_weights_of_many_digits(criterion, seed):
    # Some targets at the mean: with their small gradients, sums have up to 62 bits.
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 20, size=(60_000, 3)).astype(float)
    y = 3 * np.sin(X[:, 0]) + np.cos(X[:, 1]) + 0.1 * rng.normal(size=len(X))
    weights, eras = rng.uniform(0.2, 3.0, size=len(X)), rng.integers(0, 3, size=len(X))
    near = rng.random(len(X)) < 6e-4
    mean = np.average(y[~near], weights=weights[~near])
    y[near] = mean + 1e-5 * rng.normal(size=near.sum())
    params = {"weights": weights, "max_iter": 1, "min_era_coverage": 0.5}
    kept, _ = fit((X, y, eras), criterion, **params)
    streamed, _ = fit((X, y, eras), criterion, store_budget=0, **params)
    assert_same_nodes(streamed, kept)


@pytest.mark.parametrize("weight", [2.0**-14, 1e-9, 1e-14, 0.0])
def test_weights_that_vary_much_lose_no_digits(weight):
    # 1,500 rows leave 42 bits to the largest weight, and 24 to one of 2^-18 of it:
    # what that leaves of smaller ones is another integer.
    X, y, eras = make_eras(3, 500, n_bins=5)
    weights = np.where(np.arange(len(y)) % 2, weight, 1.0)
    kept, _ = fit((X, y, eras), CRITERIA["era"], weights=weights)
    streamed, _ = fit((X, y, eras), CRITERIA["era"], weights=weights, store_budget=0)
    assert_same_nodes(kept, streamed)


@on_grid("residual name", [1e-2, 1e-5, 1e-8, 1e-11], ["directional", "era"])
def test_rows_that_differ_by_their_weights_alone_are_not_parted(name, residual):
    """Gradients and hessians have one ratio, which integers of few digits would not."""
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(40), 250)
    X = rng.integers(0, 5, size=(eras.size, 3)).astype(float)
    alike, weights = X[:, 0] > 1, rng.uniform(0.05, 3.0, size=eras.size)
    y = rng.uniform(-1.0, 1.0, size=eras.size)
    # The mean of all is then so much below the target of these.
    total = residual * weights.sum() + weights[~alike] @ y[~alike]
    y[alike] = total / weights[~alike].sum()
    criterion = CRITERIA[name] | {"min_era_coverage": 0.9}
    params = {"max_iter": 1, "max_leaf_nodes": 31}
    model, _ = fit((X, y, eras), criterion, weights=weights, **params)
    (tree,) = trees_of(model)
    rows = rows_of_nodes(tree, X)
    pure = [i for i in rows if alike[rows[i]].all()]
    assert len(pure) > 0
    assert tree.nodes["is_leaf"][pure].all()


GAIN_FITS = {
    "numbers": {}, "few bins": {"n_bins": 5}, "missing values": {"missing": 0.1},
    "few bins, missing values": {"n_bins": 5, "missing": 0.1},
    "categories": {"n_bins": 9, "categorical_features": [0, 3]},
    "weights": {"weighted": True, "n_bins": 40},
    "two classes": {"n_classes": 2, "n_bins": 12}, "three classes": {"n_classes": 3},
    "poisson": {"loss": "poisson"}, "absolute error": {"loss": "absolute_error"},
    "monotonic": {"monotonic_cst": [1, -1, 0, 0, 0, 0]},
    "interactions": {"interaction_cst": [[0, 1], [2, 3, 4, 5]], "n_bins": 30},
    "drawn features": {"max_features": 0.4, "l2_regularization": 2.0},
    "least decrease": {"min_impurity_decrease": 0.01},
    "by depth": {"max_depth": 5, "max_leaf_nodes": None},
    "features of a tree": {"colsample_bytree": 0.5, "max_features": 0.7},
    "quantile": {"loss": "quantile", "quantile": 0.8, "n_bins": 50},
    "trees of a single leaf": {
        "loss": "absolute_error", "min_impurity_decrease": 0.03, "learning_rate": 0.5,
    },
}  # fmt: skip


@from_1_9
@pytest.mark.parametrize("case", GAIN_FITS.values(), ids=GAIN_FITS)
def test_the_fast_gain_grows_the_trees_of_the_plain_one(case):
    params = {"max_iter": 6, "random_state": 0, "early_stopping": False} | case
    names = ("n_bins", "missing", "weighted", "n_classes")
    n_bins, missing, weighted, n_classes = (params.pop(name, None) for name in names)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    if n_bins is not None:
        X = rng.integers(0, n_bins, size=X.shape) / n_bins
    y = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=len(X))
    make = Regressor
    if n_classes is not None:
        make = Classifier
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    elif params.get("loss") == "poisson":
        y = np.exp(y / 3)
    if missing is not None:
        X[rng.random(X.shape) < missing] = np.nan
    if "categorical_features" in params:
        X = np.round(n_bins * X)
    weights = rng.uniform(0.2, 3.0, size=len(X)) if weighted else None
    plain = make(**params).fit(X, y, weights)
    fast = make(**params, **FAST_GAIN).fit(X, y, weights)
    for ours, theirs in zip(trees_of(fast), trees_of(plain), strict=True):
        # A split may be the mirror image, with missing values on the other side.
        for name in ("count", "gain"):
            values, expected = np.sort(ours.nodes[name]), np.sort(theirs.nodes[name])
            assert_allclose(values, expected, rtol=1e-7)
        for name in ("feature_idx", "bin_threshold", "left", "right", "depth"):
            if missing is None and "categorical_features" not in params:
                assert np.array_equal(ours.nodes[name], theirs.nodes[name])
    assert_allclose(fast._raw_predict(X), plain._raw_predict(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_leaves", range(5, 32, 2))
def test_nodes_of_equal_gain_are_split_in_the_order_of_the_plain_queue(n_leaves):
    """Gains are exact, and most nodes share theirs; as many rows go left as right."""
    row, rng = np.arange(512), np.random.default_rng(n_leaves)
    X = np.column_stack([row // 32, row // 16 % 2, row // 8 % 2])
    y = 64.0 * X[:, 0] + rng.integers(1, 4, size=16)[X[:, 0]] * (2 * X[:, 1] - 1)
    params = {"max_iter": 1, "learning_rate": 0.5, "max_leaf_nodes": n_leaves}
    params |= {"min_samples_leaf": 1}
    (plain,) = trees_of(Regressor(**params).fit(X, y))
    (fast,) = trees_of(Regressor(**params, **FAST_GAIN).fit(X, y))
    assert np.array_equal(fast.nodes, plain.nodes)


def test_the_fast_gain_does_not_part_rows_that_are_alike():
    X = np.random.default_rng(0).integers(0, 4, size=(600, 5))
    y = np.where(X[:, 0] > 1, 0.1, 0.7) + np.where(X[:, 1] > 1, 0.3, 0.0)
    (tree,) = trees_of(Regressor(**FAST_GAIN, max_iter=1, max_leaf_nodes=31).fit(X, y))
    assert tree.get_n_leaf_nodes() == 4


def test_the_fast_gain_needs_no_eras():
    X, y, eras = make_eras(3, 100, 5)
    params = FAST_GAIN | {"max_iter": 2}
    model = Regressor(**params)
    expected = model.fit(X, y).predict(X)
    assert_array_equal(model.fit(X, y, eras=eras).predict(X), expected)
    message = r"split_criterion=Gain\(splitter='era'\) takes weights of 0 or more"
    with pytest.raises(ValueError, match=message):
        Regressor(**params).fit(X, y, np.where(eras, 1.0, -1.0))


@ON_SHAPES
def test_instruction_sets_give_the_same_bits(monkeypatch, criterion, shape):
    data = make_eras(*shape)
    monkeypatch.setenv("SKLEARN_ERA_X86_LEVEL", "")
    portable, _ = fit(data, criterion, store_budget=None)
    for level in available_levels():
        monkeypatch.setenv("SKLEARN_ERA_X86_LEVEL", level)
        assert_same_nodes(fit(data, criterion)[0], portable)
    monkeypatch.setenv("SKLEARN_ERA_X86_LEVEL", "v9")
    with pytest.raises(ValueError, match="SKLEARN_ERA_X86_LEVEL='v9' is not available"):
        fit(data, criterion)


@on_grid("criterion shape", CRITERIA, {
    "kept": (3, 4000, 5, 12), "touched": (200, 60, 250, 3), "weights": (3, 6671, 40, 3),
}, every=8)  # fmt: skip
def test_threads_give_the_same_bits(criterion, shape):
    data, weights = make_eras(*shape), None
    if shape[2] == 40:
        weights = np.random.default_rng(0).uniform(0.5, 1.5, size=len(data[1]))
    models = []
    for n_threads in (1, 2, 3, 4, 8):
        with threadpool_limits(n_threads, user_api="openmp"):
            models.append(fit(data, criterion, weights=weights, max_iter=1)[0])
        assert_same_nodes(models[0], models[-1])


@on_grid("criterion params", CRITERIA, {
    "medians": {"loss": "absolute_error"}, "shrinkage": {"leaf_shrinkage": "eras"},
    "no limit": {"max_leaf_nodes": None, "max_depth": 5}})  # fmt: skip
def test_nodes_that_are_split_ahead_leave_no_trace(criterion, params):
    X, y, eras = make_eras(12, 40, 16)
    order = np.random.default_rng(0).permutation(len(y))
    data = X[order], y[order], eras[order]
    rows = []  # of leaves, tree by tree

    class Recorder(EraTreeGrower):
        def grow(self):
            super().grow()
            leaves = [leaf.sample_indices.copy() for leaf in self.finalized_leaves]
            rows.append(np.concatenate(leaves))

    params, fits = {"grower": Recorder, "max_leaf_nodes": 9} | params, []
    for n_threads in (1, 2, 5):
        rows.clear()
        with threadpool_limits(n_threads, user_api="openmp"):
            model, splitter = fit(data, criterion, **params)
        counts = splitter.n_searched, splitter.n_splittable, splitter.n_uncovered
        fits.append((model, counts, np.concatenate(rows)))
    for model, counts, of_leaves in fits[1:]:
        assert_same_nodes(model, fits[0][0])
        assert counts == fits[0][1]
        assert_array_equal(of_leaves, fits[0][2])


@on_grid("criterion n_leaves", CRITERIA, [4, 5, 8, 11], every=2)
def test_equal_nodes_are_split_as_if_none_waited_for_its_eras(criterion, n_leaves):
    X, y, eras = make_eras(12, 40, 16)
    # The second half mirrors the first one: below the root, nodes are equal in pairs.
    X = np.vstack([np.c_[X, np.zeros(len(y))], np.c_[X, np.ones(len(y))]])
    data = X, np.r_[y + 1000, -y - 1000], np.r_[eras, eras]
    params = {"max_leaf_nodes": n_leaves}
    at_once, _ = fit(data, criterion, store_budget=0, **params)
    n_ties = 0
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="openmp"):
            model, _ = fit(data, criterion, **params)
        assert_same_nodes(model, at_once)
        nodes = model._predictors[0][0].nodes
        gains = nodes["gain"][nodes["is_leaf"] == 0]
        n_ties += len(gains) - np.unique(gains).size
    assert n_ties > 0 or not criterion.get("min_gain_share")


@ON_SHAPES
def test_order_of_rows_changes_no_bit_and_that_of_eras_no_split(criterion, shape):
    X, y, eras = make_eras(*shape)
    expected, _ = fit((X, y, eras), criterion)
    for order in (np.argsort(eras, kind="stable"), np.arange(len(y))[::-1]):
        other, _ = fit((X[order], y[order], eras[order]), criterion)
        assert_same_nodes(other, expected)
    y /= 128  # gains of a size for which alpha makes no more than a difference
    params = {"min_samples_leaf": 40}
    expected, _ = fit((X, y, eras), criterion, **params)
    other, _ = fit((X, y, (eras * 7 + 3) % 41), criterion, **params)
    assert_same_splits(other, expected)
