"""Small integers are binned without a float64 copy, and fits are scikit-learn's."""

from unittest.mock import Mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from helpers import peak_memory
from helpers.data import frames_of
from helpers.estimators import ours as our_estimator
from helpers.estimators import stock
from helpers.grids import on_grid, slow
from helpers.trees import assert_same_bins, assert_same_model
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.ensemble._binning.integer_columns import as_integer_columns

DTYPES = ["int8", "uint8", "int16", "bool"]


def make_integers(dtype, n_samples=600, n_features=5, seed=0):
    """Many values in some columns, few in others, and one in the last."""
    rng = np.random.default_rng(seed)
    low, high = np.iinfo(dtype).min, min(1000, np.iinfo(dtype).max)
    X = rng.integers(low, high, size=(n_samples, n_features)).astype(dtype)
    X[:, 1] = rng.integers(0, 5, n_samples)
    X[:, 2] = 2 * rng.integers(0, 5, n_samples)
    X[:, -1] = 1
    y = X[:, 0] * 0.1 + X[:, 1] * X[:, 2] + rng.normal(size=n_samples)
    return X, y, rng.choice([0.0, 0.3, 1.0, 2.5], size=n_samples)


def pair(target="real", **params):
    params = {"max_iter": 3, "max_bins": 255, "random_state": 3} | params
    return our_estimator(target, **params), stock(target, **params)


def as_floats(X):
    return np.asarray(X).astype(np.float64)


def fit_and_keep_bins(model, *arrays, **params):
    """The bins that a fit grows its trees on."""
    model._find_missing_values = Mock(wraps=model._find_missing_values)
    model.fit(*arrays, **params)
    (X_binned,) = model._find_missing_values.call_args.args
    del model._find_missing_values
    return X_binned


def assert_fits_as_floats(X, y, weights=None, raw=None, **params):
    """Fit to X here, to X as float64 in scikit-learn; compare all that comes of it."""
    raw = X if raw is None else raw
    assert as_integer_columns(X) is not None
    ours, theirs = pair(**params)
    binned, floats = fit_and_keep_bins(ours, X, y, weights), as_floats(raw)
    theirs.fit(floats, y, weights)
    assert_same_bins(ours._bin_mapper, theirs._bin_mapper)
    if not ours.do_early_stopping_:
        assert_array_equal(binned, theirs._bin_mapper.transform(floats))
        assert binned.flags.f_contiguous
    assert ours.n_features_in_ == theirs.n_features_in_
    assert_same_model(ours, theirs, floats)
    assert_array_equal(ours.predict(X), theirs.predict(floats))


@pytest.mark.parametrize(("dtype", "max_bins", "weighted"), [
    slow("int8", 5, False), ("int8", 5, True),
    ("int16", 255, False), slow("int16", 255, True)])  # fmt: skip
def test_thresholds_of_many_rows_come_from_the_same_draw(dtype, max_bins, weighted):
    X, y, weights = make_integers(dtype, n_samples=200_001, n_features=3)
    X[:40] = -100  # too few for each draw to have some
    assert_fits_as_floats(*(X, y, weights if weighted else None), max_bins=max_bins,
                          max_iter=1, max_leaf_nodes=4)  # fmt: skip


@settings(max_examples=settings().max_examples // 4)
@given(
    seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from(DTYPES),
    n_samples=st.integers(2, 300), n_features=st.integers(1, 130),
    max_bins=st.integers(2, 255), n_values=st.integers(1, 400), weighted=st.booleans(),
    steps=st.tuples(st.sampled_from([-2, -1, 1, 3]), st.sampled_from([-1, 1, 2])),
    order=st.sampled_from("CF"),
)  # fmt: skip
def test_any_layout_and_values(
    seed, dtype, n_samples, n_features, max_bins, n_values, weighted, steps, order
):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        values = np.array([False, True])
    else:
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, n_values, dtype, endpoint=True)
    down, across = steps
    shape = (n_samples * abs(down), n_features * abs(across))
    X = np.asarray(rng.choice(values, shape), order=order)[::down, ::across]
    y, weights = rng.normal(size=n_samples), rng.choice([0.0, 1.0, 2.0], n_samples)
    weights[0] = 1.0
    assert_fits_as_floats(X, y, weights if weighted else None, max_bins=max_bins)


@pytest.mark.parametrize("n_threads", [slow(2), 3])
def test_any_number_of_threads(n_threads):
    X, y, _ = make_integers("int8", n_samples=1000, n_features=130)
    for order in "CF":
        with threadpool_limits(n_threads, user_api="openmp"):
            rows = np.asarray(X, order=order)
            assert_fits_as_floats(rows, y, max_iter=1, max_leaf_nodes=6)


def frames(X):
    """Data frames of the columns of X, of several types."""
    names = [f"f{i}" for i in range(X.shape[1])]
    typed = zip(names, X.T, ["int8", "int16", "int8", "bool", "uint8"], strict=True)
    columns = {name: column.astype(dtype) for name, column, dtype in typed}
    yield "one block", pd.DataFrame(X, columns=names)
    for what, frame in frames_of(columns):
        yield what, frame
        if what == "polars":
            parts = [frame[:100], frame[100:]]
            yield "polars in chunks", pl.concat(parts, rechunk=False)
        elif what == "arrow":
            yield "arrow in chunks", pa.concat_tables([frame[:100], frame[100:]])
            yield "arrow in pandas", frame.to_pandas(types_mapper=pd.ArrowDtype)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_data_frames(early_stopping):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(300, 5)).astype("int8")
    X[:, :3] = rng.integers(0, 40, size=(300, 3))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=300)
    for what, frame in frames(X):
        assert as_integer_columns(frame) is not None, what
        ours, theirs = pair(early_stopping=early_stopping, max_iter=1)
        assert_same_model(ours.fit(frame, y), theirs.fit(frame, y), frame)
        assert_array_equal(ours.feature_names_in_, theirs.feature_names_in_)


def test_what_does_not_qualify_is_left_to_scikit_learn():
    X = np.arange(12).reshape(6, 2)
    for other in (
        X.astype("int32"), X.astype("uint16"), X.astype("float32"),
        X.astype("int16").astype(">i2"), X.astype("int8")[:0], X.astype("int8")[:, :0],
        X.astype("int8")[0], np.ma.masked_array(X.astype("int8")),
        X.astype("int8").tolist(),
        pd.DataFrame({"a": X[:, 0].astype("int8"), "b": X[:, 1]}),
        pd.DataFrame({"a": pd.array([1, None], "Int8")}),
        pd.DataFrame({"a": pd.Categorical([1, 2])}),
        pd.DataFrame({"a": pd.arrays.SparseArray([1, 2])}), pd.DataFrame(),
        pl.DataFrame({"a": pl.Series([1, None], dtype=pl.Int8)}),
        pl.DataFrame({"a": ["x"]}), pa.table({"a": pa.array([1, None], pa.int8())}),
        pa.table({"a": ["x"]}),
    ):  # fmt: skip
        assert as_integer_columns(other) is None


@pytest.mark.parametrize("scoring", ["loss", "neg_mean_absolute_error", "classes"])
@pytest.mark.parametrize("weighted", [False, True])
def test_early_stopping_holds_out_the_same_rows(weighted, scoring):
    X, y, weights = make_integers("int16")
    params = {"early_stopping": True, "scoring": scoring, "max_bins": 50}
    if scoring == "classes":
        params |= {"scoring": "loss", "target": "multiclass"}
        y = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    assert_fits_as_floats(X, y, weights if weighted else None, **params)


def test_validation_rows_of_either_kind():
    X, y, _ = make_integers("int16")
    X_val, y_val, _ = make_integers("int16", n_samples=150, seed=1)
    floats, floats_val = as_floats(X), as_floats(X_val)
    ours, theirs = pair(early_stopping=True)
    theirs.fit(floats, y, X_val=floats_val, y_val=y_val)
    for train, val in ((X, X_val), (X, floats_val), (floats, X_val)):
        ours.fit(train, y, X_val=val, y_val=y_val)
        assert_same_model(ours, theirs, X)


@pytest.mark.parametrize("validation_eras", ["last", None])
def test_held_out_eras(validation_eras):
    X, y, weights = make_integers("int8")
    eras = np.arange(y.size) % 3
    params = {"split_criterion": "directional", "validation_eras": validation_eras}
    params |= {"early_stopping": True, "max_iter": 4, "random_state": 0}
    one, other = (HistGradientBoostingRegressor(**params) for _ in range(2))
    one.fit(X, y, weights, eras=eras)
    assert_same_model(one, other.fit(as_floats(X), y, weights, eras=eras), X)


def test_categories_are_left_to_scikit_learn_and_constraints_may_be_by_name():
    X, y, _ = make_integers("int8")
    frame, few = pd.DataFrame(X, columns=list("abcde")), X[:, 1:4]
    few[:, 0] %= 5
    for rows, params in (
        (few, {"categorical_features": [0]}),
        (pd.DataFrame(few).astype({1: "category"}), {}),
        (frame, {"monotonic_cst": {"a": 1, "c": -1}, "interaction_cst": [(0, 2)]}),
    ):
        ours, theirs = pair(**params)
        assert_same_model(ours.fit(rows, y), theirs.fit(rows, y), rows)


def test_errors_are_those_of_scikit_learn():
    X, y, _ = make_integers("int8", n_samples=60)
    frame = pd.DataFrame(X, columns=list("abcde"))
    other, both = frame.rename(columns={"a": "z"}), pair(early_stopping=True)
    for attempt in (
        lambda est: est.fit(X[0], y), lambda est: est.fit(X[:0], y[:0]),
        lambda est: est.fit(X[:, :0], y), lambda est: est.fit(X[None], y[:1]),
        lambda est: est.fit(X, y[:-1]),
        lambda est: est.fit(X, y, X_val=X[:, :2], y_val=y),
        lambda est: est.fit(X, y, X_val=X, y_val=y[:3]),
        lambda est: est.fit(X, y, y[:3]), lambda est: est.fit(X, y).predict(X[:, :2]),
        lambda est: est.fit(X, y).predict(X[0]),
        lambda est: est.fit(frame, y, X_val=other, y_val=y),
        lambda est: est.fit(frame, y).predict(other),
        lambda est: est.fit(frame.rename(columns={"a": 0}), y),
    ):  # fmt: skip
        messages = []
        for est in both:
            with pytest.raises((TypeError, ValueError)) as caught:
                attempt(est)
            messages.append((type(caught.value), str(caught.value)))
        assert messages[0] == messages[1]
    for est in both:
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            est.fit(frame, y, X_val=X, y_val=y)
        est.fit(X, y)
        assert not hasattr(est, "feature_names_in_")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool"])
def test_a_matrix_that_is_its_own_bins_is_not_copied(dtype):
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.integers(0, 2, size=(300, 4)).astype(dtype))
    X[:, 0] = 0
    before, y = X.copy(), X[:, 1] + rng.normal(size=300)
    for matrix in (X, X[:, 1:], pd.DataFrame(X, copy=False)):
        assert np.shares_memory(fit_and_keep_bins(pair()[0], matrix, y), X)
        assert_array_equal(X, before)
        assert_fits_as_floats(matrix, y)
    other = pd.DataFrame(X, copy=False).astype({2: "int16"})
    for copied in (other, np.ascontiguousarray(X)):
        assert as_integer_columns(copied).as_one_matrix() is None
    assert as_integer_columns(X)[np.arange(5)].as_one_matrix() is None


@pytest.mark.parametrize("criterion", ["gain", "era", "invariant"])
def test_a_matrix_that_is_its_own_bins_is_not_sorted(criterion):
    """Trees take rows by era; neither the matrix nor what comes with it is permuted."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.integers(0, 5, size=(300, 4), dtype=np.int8))
    y = X[:, 1] + rng.normal(size=300)
    eras, weights = rng.permutation(300) % 3, rng.choice([0.5, 1.0, 2.0], size=300)
    before = [array.copy() for array in (X, y, weights, eras)]
    model = HistGradientBoostingRegressor(split_criterion=criterion, max_iter=3)
    other = clone(model).fit(as_floats(X), y, weights, eras=eras)
    binned = fit_and_keep_bins(model, X, y, weights, eras=eras)
    assert np.shares_memory(binned, X)
    assert not binned.flags.writeable
    for array, copy in zip((X, y, weights, eras), before, strict=True):
        assert_array_equal(array, copy)
    assert_same_model(model, other, as_floats(X))


def test_a_file_mapped_into_memory_is_no_binned_matrix(tmp_path):
    """Another process may write to it in the course of a fit."""
    X = (np.arange(800).reshape(200, 4) % 5).astype("uint8")
    for order in "CF":
        path = tmp_path / order
        mapped = np.memmap(path, "uint8", mode="w+", shape=X.shape, order=order)
        mapped[:] = X
        assert_fits_as_floats(mapped, X[:, 1] * 1.0, raw=X)
    for view in (mapped, np.asarray(mapped), pd.DataFrame(mapped, copy=False)):
        assert as_integer_columns(view).as_one_matrix() is None
    assert as_integer_columns(np.array(mapped, order="F")).as_one_matrix() is not None


@pytest.mark.parametrize("change", ["negative", "gap", "rare"])
def test_a_matrix_that_is_not_quite_its_own_bins_is_copied(change):
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.integers(0, 5, size=(210_000, 2), dtype=np.int8))
    if change == "negative":
        X[:, 1] -= 1
    elif change == "gap":
        X[X == 3] = 4
    else:
        X[0, 0] = 100  # most likely in no row that is drawn, so without a bin
    y = X[:, 0] * 1.0
    for seed in range(3 if change == "rare" else 1):
        assert_fits_as_floats(X, y, max_iter=1, random_state=seed, early_stopping=False)


@pytest.mark.slow
@on_grid("order early_stopping", ["C", "F"], [False, True])
def test_memory_of_a_fit(order, early_stopping):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.integers(-2, 3, size=(20_000, 200), dtype=np.int8), order=order)
    y, small = X[:, 0] * 1.0, {"max_iter": 2, "max_leaf_nodes": 4, "max_bins": 8}
    model, _ = pair(early_stopping=early_stopping, **small)
    model.fit(X[:100], y[:100])
    assert peak_memory(model.fit, X, y)[1] < 1.4 * X.size


def test_verbose_reports_the_binning(capsys):
    X, y, _ = make_integers("int8")
    model, _ = pair(verbose=1, early_stopping=True)
    model.fit(X, y)
    printed = capsys.readouterr().out
    assert "GB of training data" in printed
    assert "GB of validation data" in printed
