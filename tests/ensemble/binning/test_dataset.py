"""A `BinnedDataset` is binned once, and fits to it are fits to its rows."""

import pickle
from functools import partial
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV, cross_validate

from helpers import peak_memory
from helpers.callbacks import Hook
from helpers.criteria import CRITERIA, RATIO
from helpers.data import frames_of
from helpers.data import make_data as make_real_data
from helpers.estimators import ours
from helpers.grids import on_grid
from helpers.trees import assert_same_model
from sklearn_era.criteria import Invariant
from sklearn_era.ensemble import BinnedDataset, EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._binning import integers as integer_binning


def make_data(*args, **params):
    """Few values a column: many take scikit-learn long to bin by weight."""
    X, *others = make_real_data(*args, **params)
    return (2 * X).round() / 2, *others


def sorted_by_era(eras, *arrays):
    order = np.argsort(eras, kind="stable")
    return [None if array is None else array[order] for array in (eras, *arrays)]


def datasets_of(target="real", n_samples=400):
    """A data set, and the arrays in its order."""
    X, y, weights, eras = make_data(target, n_samples)
    dataset = BinnedDataset.from_arrays(X, y, eras=eras, sample_weight=weights)
    eras, X, y, weights = sorted_by_era(eras, X, y, weights)
    return dataset, X, y, weights, eras


def assert_fits_as_rows(dataset, X, y, weights, eras, target="real", **params):
    """Fit to the data set, and to its rows in its order."""
    params = {"early_stopping": False, "max_bins": dataset.max_bins, **params}
    if eras is not None:
        eras, X, y, weights = sorted_by_era(eras, X, y, weights)
    one = ours(target, **params).fit(dataset)
    other = ours(target, **params)
    assert_same_model(one, other.fit(X, y, weights, eras=eras), X)
    assert one.n_features_in_ == other.n_features_in_
    return one


MORE = {
    "max_features": {"split_criterion": "directional", "max_features": 0.5},
    "interactions": {"split_criterion": "era", "interaction_cst": [(0, 1), (2, 3, 4)]},
    "columns": {"split_criterion": "vrex", "colsample_bytree": 0.5},
}


@on_grid(
    "params target weighted", CRITERIA | MORE, ["real", "binary", "multiclass"],
    [False, True], every=12)  # fmt: skip
def test_fit_is_that_to_the_rows_by_era(target, weighted, params):
    X, y, weights, eras = make_data(target)
    weights = weights if weighted else None
    dataset = BinnedDataset.from_arrays(X, y, eras=eras, sample_weight=weights)
    once = assert_fits_as_rows(dataset, X, y, weights, eras, target, **params)
    assert_same_model(ours(target, **once.get_params(deep=False)).fit(dataset), once, X)


@settings(max_examples=settings().max_examples // 3)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(["int8", "uint8", "int16", "bool", "float32", "float64"]),
    order=st.sampled_from("CF"), n_samples=st.integers(4, 300),
    max_bins=st.integers(2, 255), n_eras=st.integers(0, 4), weighted=st.booleans(),
)  # fmt: skip
def test_rows_of_any_dtype(seed, dtype, order, n_samples, max_bins, n_eras, weighted):
    rng = np.random.default_rng(seed)
    X = (100 * rng.normal(size=(n_samples, 3))).astype(dtype, order=order)
    if X.dtype.kind == "f":
        X[rng.random(X.shape) < 0.1] = np.nan
    y = rng.normal(size=n_samples)
    weights = rng.choice([0.0, 1.0, 2.0], n_samples) if weighted else None
    if weighted:
        weights[0] = 1.0
    eras = rng.integers(0, n_eras, n_samples) if n_eras else None
    arrays = [array for array in (X, y, weights, eras) if array is not None]
    copies = [array.copy() for array in arrays]
    given = {"eras": eras, "sample_weight": weights}
    dataset = BinnedDataset.from_arrays(X, y, **given, max_bins=max_bins)
    for array, before in zip(arrays, copies, strict=True):
        assert_array_equal(array, before)
        assert array.flags.writeable
    assert_fits_as_rows(dataset, X, y, weights, eras, max_bins=max_bins, max_iter=2)


@on_grid("dtype weighted", ["int16", "float64"], [False, True], every=2)
def test_many_rows_are_drawn_as_in_fit(dtype, weighted):
    rng = np.random.default_rng(0)
    X = (100 * rng.normal(size=(200_500, 2))).astype(dtype)
    y = rng.normal(size=X.shape[0])
    weights = rng.choice([0.0, 1.0, 2.0], y.size) if weighted else None
    eras = rng.integers(0, 3, y.size)
    given = {"eras": eras, "sample_weight": weights, "random_state": 7}
    dataset = BinnedDataset.from_arrays(X, y, **given, max_bins=50)
    assert_fits_as_rows(dataset, X, y, weights, eras, max_bins=50, max_iter=1)


def test_data_frames_and_lists():
    rng = np.random.default_rng(0)
    X = 10 * rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200)
    columns = {"f0": X[:, 0].astype("int8"), "f1": X[:, 1] > 0, "f2": X[:, 2]}
    params = {"early_stopping": False, "monotonic_cst": {"f0": 1}, "max_iter": 2}
    for what, frame in frames_of(columns):
        if what == "nullable":
            frame.iloc[::7, 0] = pd.NA
        dataset = BinnedDataset.from_arrays(frame, y)
        assert dataset.feature_names.tolist() == ["f0", "f1", "f2"]
        one, other = (Regressor(**params) for _ in range(2))
        assert_same_model(one.fit(dataset), other.fit(frame, y), frame)
        assert_array_equal(one.feature_names_in_, other.feature_names_in_)
    dataset = BinnedDataset.from_arrays(X.tolist(), y.tolist())
    assert dataset.feature_names is None
    assert_fits_as_rows(dataset, X, y, None, None)
    one.set_params(monotonic_cst=None).fit(dataset)
    assert not hasattr(one, "feature_names_in_")


@pytest.mark.parametrize("model", [Regressor, EraForestRegressor])
def test_models_leave_the_column_of_eras_out_of_a_frame(model):
    rng = np.random.default_rng(0)
    features = {f"f{i}": rng.normal(size=200) for i in range(3)}
    frame = pd.DataFrame({"f2": features.pop("f2"), "week": np.arange(200) // 10})
    frame = frame.assign(**features)
    y = frame["f0"] + rng.normal(size=200)
    fitted = model().fit(BinnedDataset.from_arrays(frame, y, eras="week"))
    rest = frame.drop(columns="week")
    assert_array_equal(fitted.predict(frame), fitted.predict(rest))
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*week"):
        fitted.fit(BinnedDataset.from_arrays(rest, y)).predict(frame)


@on_grid("argument values n_chunks", ["eras", "y"], [["a", "b"], [1.5, 2.5]], [1, 2])
def test_nulls_of_arrow_categories_are_missing(argument, values, n_chunks):
    column = pa.array(np.resize([*values, None], 60).tolist()).dictionary_encode()
    column = pa.chunked_array([column[:30], column[30:]][:n_chunks] or [column])
    arguments = {"y": np.arange(60.0)[: len(column)], argument: column}
    X, classifies = np.ones((len(column), 2)), argument == "y" and values[0] == "a"
    models = [Classifier() if classifies else Regressor(), EraForestRegressor()]
    message = rf"{argument} has {len(column) // 3} missing"
    for fit in (models[0].fit, *([] if classifies else [models[1].fit])):
        with pytest.raises(ValueError, match=message):
            fit(X, **arguments)
    with pytest.raises(ValueError, match=message):
        BinnedDataset.from_arrays(X, **arguments)


@on_grid("scoring validation_eras", ["loss", None], ["last", "random", None])
def test_early_stopping_holds_rows_out_of_the_bins(validation_eras, scoring):
    X, y, weights, eras = make_data()
    # Few values, each in most rows: the same bins from some as from all.
    X[np.isnan(X)] = 0.0
    dataset = BinnedDataset.from_arrays(X, y, eras=eras, sample_weight=weights)
    model = Regressor(
        max_iter=20, early_stopping=True, random_state=0,
        validation_eras=validation_eras, scoring=scoring, split_criterion="era",
        n_iter_no_change=3).fit(dataset)  # fmt: skip
    assert model.validation_score_.size == model.n_iter_ + 1
    # The same held-out rows and bins, if the bins come from all rows.
    mapper = model._bin_mapper
    assert_array_equal(mapper.bin_thresholds_[1], dataset.bin_mapper.bin_thresholds_[1])
    n_held_out = dataset.shape[0] - model._predictors[0][0].nodes["count"][0]
    expected = {"last": (dataset.eras.codes == 3).sum(), None: 40}
    if validation_eras in expected:
        assert n_held_out == expected[validation_eras]
    else:
        assert n_held_out in dataset.eras.counts


def test_validation_rows_are_raw():
    dataset, X, y, weights, eras = datasets_of()
    X_val, y_val, *_ = make_data(n_samples=100, seed=1)
    params = {"early_stopping": True, "max_iter": 8, "split_criterion": "directional"}
    one, other = Regressor(**params), Regressor(**params)
    for rows in (X_val, np.nan_to_num(10 * X_val).astype(np.int8)):
        one.fit(dataset, X_val=rows, y_val=y_val)
        other.fit(X, y, weights, eras=eras, X_val=rows, y_val=y_val)
        assert_same_model(one, other, X)
    with pytest.raises(ValueError, match="which only fit takes"):
        one.fit(dataset, X_val=dataset, y_val=y)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_warm_start(early_stopping):
    dataset, X, *_ = datasets_of("multiclass")
    params = {"early_stopping": early_stopping, "random_state": 1, "max_iter": 6}
    once = Classifier(**params).fit(dataset)
    twice = Classifier(**params, warm_start=True).set_params(max_iter=2).fit(dataset)
    assert_same_model(twice.set_params(max_iter=6).fit(dataset), once, X)


def test_target_weights_are_in_the_order_of_the_rows():
    X, y, weights, eras = make_data("binary")
    dataset = BinnedDataset.from_arrays(X, y, eras=eras, sample_weight=weights)
    model = assert_fits_as_rows(dataset, X, y, weights, eras, "binary", **RATIO)
    params = RATIO | {"split_criterion": Invariant(0.1), "early_stopping": False}
    other = ours("binary", **params, max_bins=dataset.max_bins).fit(dataset)
    assert (model.predict_proba(X) != other.predict_proba(X)).any()


@pytest.mark.parametrize("criterion", ["gain", "directional"])
def test_a_fit_trains_on_the_bins_themselves(criterion, capsys):
    """They are in the order of eras: nothing is sorted, and nothing copied."""
    assert (np.diff(make_data()[3]) < 0).any()
    dataset, *_ = datasets_of()
    model = Regressor(split_criterion=criterion, max_iter=2, verbose=1)
    model._find_missing_values = Mock(wraps=model._find_missing_values)
    model.fit(dataset)
    assert model._find_missing_values.call_args.args[0] is dataset.X_binned
    assert "GB of binned training data" in capsys.readouterr().out


def test_what_it_holds():
    X, y, weights, eras = make_data("binary")
    labels = np.array(["w3", "w1", "w0", "w2"])[eras]
    dataset = BinnedDataset.from_arrays(X, y, eras=labels, sample_weight=weights)
    assert (len(dataset), dataset.shape, dataset.max_bins) == (400, (400, 5), 255)
    arrays = dataset.X_binned, dataset.y, dataset.sample_weight
    others = dataset.eras.codes, dataset.order
    assert dataset.nbytes == sum(a.nbytes for a in (*arrays, *others))
    assert_array_equal(dataset.order, np.argsort(labels, kind="stable"))
    labels, X, y, weights = sorted_by_era(labels, X, y, weights)
    held = (*arrays, dataset.eras.decode())
    expected = dataset.bin_mapper.transform(X), y, weights, labels
    for array, rows in zip(held, expected, strict=True):
        assert_array_equal(array, rows)
    assert dataset.X_binned.flags.f_contiguous
    assert repr(dataset) == (
        "BinnedDataset(n_samples=400, n_features=5, n_eras=4, max_bins=255, "
        f"nbytes={dataset.nbytes})"
    )
    for array in (*arrays, *others):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    copy = pickle.loads(pickle.dumps(dataset))
    assert repr(copy) == repr(dataset)
    assert copy.X_binned.flags.f_contiguous
    assert not copy.X_binned.flags.writeable
    assert_array_equal(copy.order, dataset.order)
    assert_fits_as_rows(copy, X, y, weights, labels, "binary")


def test_without_eras_rows_stay_in_order():
    X, y, _, _ = make_data()
    X = np.asfortranarray(np.nan_to_num(X) % 5).astype(np.uint8)
    dataset = BinnedDataset.from_arrays(X, y)
    assert dataset.order is None
    assert_array_equal(dataset.y, y)
    assert not np.shares_memory(dataset.X_binned, X)
    assert not np.shares_memory(dataset.y, y)
    assert "n_eras=None" in repr(dataset)
    with pytest.raises(ValueError, match="needs eras"):
        Regressor(split_criterion="era").fit(dataset)


def test_bins_that_the_bin_mapper_lacks_are_refused():
    X = np.arange(600.0).reshape(200, 3) % 7
    X[5, 1] = np.nan
    dataset = BinnedDataset.from_arrays(X, X[:, 0])
    Regressor(max_iter=1).fit(dataset)
    binned = dataset.X_binned.copy(order="F")
    binned[17, 1] = 9  # of 7, and 255 for missing values
    others = (BinnedDataset.from_arrays(x, X[:, 0]) for x in (X % 2, X[:, :1]))
    two, one_column = (other.bin_mapper for other in others)
    for column, n_bins, change in (
        (1, 7, {"X_binned": binned}),
        (0, 2, {"bin_mapper": two}),
        (1, 0, {"bin_mapper": one_column}),
    ):
        damaged = object.__new__(BinnedDataset)
        damaged.__setstate__(vars(dataset) | change)
        message = f"^Column {column} of the BinnedDataset .* beyond the {n_bins} of its"
        for model in (Regressor(max_iter=1), EraForestRegressor(n_estimators=1)):
            with pytest.raises(ValueError, match=message):
                model.fit(damaged)


def test_a_fit_takes_a_data_set_or_arrays():
    dataset, X, y, *_ = datasets_of()
    model = Regressor()
    for name in ("y", "sample_weight", "eras"):
        message = f"^{name} cannot be passed along with a Binn"
        with pytest.raises(ValueError, match=message):
            model.fit(dataset, **{name: y})
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(X)


def test_max_bins_are_those_of_the_estimator_and_no_feature_is_categorical():
    X, y, *_ = make_data()
    dataset = BinnedDataset.from_arrays(X, y, max_bins=16)
    with pytest.raises(ValueError, match=r"max_bins=16, but .* has max_bins=255"):
        Regressor().fit(dataset)
    for max_bins in (1, 256, 3.0, "many"):
        with pytest.raises(ValueError, match="must be an integer from 2 to 255"):
            BinnedDataset.from_arrays(X, y, max_bins=max_bins)
    dataset = BinnedDataset.from_arrays(X, y)
    for features in ([0], [True] + 4 * [False], ["f0"]):
        model = Regressor(categorical_features=features, max_iter=1)
        with pytest.raises(ValueError, match="has no categorical features"):
            model.fit(dataset)
    for features in (None, "from_dtype", 5 * [False]):
        model.set_params(categorical_features=features).fit(dataset)


PERIODS = pd.DataFrame({"a": pd.period_range("2024", periods=3, freq="M")})
TWO_ROWS = pd.DataFrame({"a": [1.5, 2], "b": [np.nan, np.nan]})


@pytest.mark.parametrize(("arguments", "message"), [
    ({"y": [0.0, np.nan, np.nan]}, r"y has 2 missing value\(s\) in 3 rows"),
    ({"y": [0.0, 1.0]}, "inconsistent numbers of samples"),
    ({"eras": [1, 2]}, "eras has 2 labels, but X has 3 rows"),
    ({"eras": [1, 2, None]}, "missing label"),
    ({"sample_weight": [1.0, 2.0]}, "sample_weight.shape == "),
    ({"sample_weight": [1.0, 2.0, np.nan]}, "sample_weight contains NaN"),
    ({"sample_weight": [1.0, 2.0, -1.0]}, "Negative values in data passed to `sam"),
    ({"X": [1.0, 2.0, 3.0]}, "^X is a list of 3 values, and a table is needed"),
    ({"X": np.ma.masked_array(np.ones((3, 2)), [[1, 0]] * 3)}, "^X is masked: set the"),
    ({"X": TWO_ROWS.set_axis(["a", "a"], axis=1)}, "^X has 2 columns 'a'; give each"),
    ({"X": TWO_ROWS.assign(a=pd.Timestamp("2024"))}, "column 'a' .* holds datetime64"),
    ({"X": [[0.5, np.datetime64("2024")]] * 3}, "column 1 is not .* holds datetime64"),
    ({"X": pa.Table.from_pandas(PERIODS)}, "column 'a' is not .* holds period"),
    ({"X": np.zeros((3, 2), "m8[s]")}, "column 0 is not numeric: it holds timedelta64"),
    ({"X": [["a"], ["b"], ["c"]]}, "could not convert string to float"),
    ({"X": TWO_ROWS.assign(b=["x", "y"])}, r"X: column 'b' is not numeric: .*'x'"),
    ({"X": TWO_ROWS.assign(a=pd.Categorical(["x", "y"]))}, "categorical columns"),
    ({"X": np.empty((0, 2))}, "minimum of 1 is required"),
    ({"X": np.empty((3, 0))}, "minimum of 1 is required"),
    ({"X": np.empty((3, 0), np.int8)}, "minimum of 1 is required"),
    ({"X": TWO_ROWS[[]]}, r"X has no columns; its shape is \(2, 0\)"),
])  # fmt: skip
def test_arguments_are_checked(arguments, message):
    arrays = {"X": [[1.0], [2.0], [3.0]]} | arguments
    X = arrays.pop("X")
    y = arrays.pop("y", np.zeros(len(X)))
    with pytest.raises(ValueError, match=message):
        BinnedDataset.from_arrays(X, y, **arrays)


def test_labels_in_another_order_of_rows_are_warned_of():
    eras = pd.Series([0, 1], index=[1, 0])
    with pytest.warns(UserWarning, match="^eras has the index of X in another order"):
        BinnedDataset.from_arrays(TWO_ROWS[["a"]], [0.0, 1.0], eras=eras)


@pytest.mark.parametrize("kind", [Regressor, EraForestRegressor])
def test_times_and_groups_are_refused(kind):
    columns = np.column_stack([np.arange(60) // 10, np.arange(60) % 3])
    dataset = BinnedDataset.from_arrays(np.ones((60, 1)), np.arange(60), eras=columns)
    model = kind(era_order=("ordered", "unordered"), split_criterion="era")
    with pytest.raises(ValueError, match=r"^era_order=\('ordered', 'unordered'\) is f"):
        model.fit(dataset)


def test_it_is_no_array_and_cannot_be_split():
    dataset, _, y, *_ = datasets_of()
    model = Regressor(max_iter=1).fit(dataset)
    search = GridSearchCV(model, {"max_iter": [1]}, error_score="raise")
    from_arrays = partial(BinnedDataset.from_arrays, y=y)
    for error, message, function in (
        (TypeError, "cannot be split or indexed", search.fit),
        (TypeError, "cannot be split or indexed", partial(cross_validate, model)),
        (TypeError, "not iterable", list),
        (TypeError, "is no array", np.asarray),
        (ValueError, "rows to predict", model.predict),
        (ValueError, "rows to predict", lambda X: list(model.staged_predict(X))),
        (ValueError, "X is a BinnedDataset already", from_arrays),
    ):
        with pytest.raises(error, match=message):
            function(dataset)


def test_callbacks():
    ScoringMonitor = pytest.importorskip("sklearn.callback").ScoringMonitor

    class AsksForNoRows(Hook):
        def on_fit_task_end(self, estimator, context, *, y, metadata):
            self.hook(y, metadata)

    dataset, *_ = datasets_of()
    hook = Mock()
    model = Regressor(max_iter=2, early_stopping=False)
    model.set_callbacks(AsksForNoRows(hook)).fit(dataset)
    assert hook.call_count == 3
    y, metadata = hook.call_args.args
    assert_array_equal(y, dataset.y)
    assert_array_equal(metadata["eras"], dataset.eras.decode())
    assert_array_equal(metadata["sample_weight"], dataset.sample_weight)
    model.set_callbacks(ScoringMonitor(scoring="r2"))
    with pytest.raises(ValueError, match="A callback asks for X"):
        model.fit(dataset)


def test_no_room_for_the_matrix(monkeypatch):
    def no_room(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(integer_binning.np, "empty", no_room)
    message = r"cannot allocate 22.5 GiB for a binned matrix of 6,800,000 rows x 3,555"
    with pytest.raises(MemoryError, match=message):
        integer_binning.allocate_binned((6_800_000, 3_555))


@pytest.mark.slow
@on_grid("dtype order", ["int8", "float32"], ["C", "F"], every=2)
def test_memory(order, dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, size=(20_000, 200)).astype(dtype, order=order)
    y = X[:, 0] * 1.0
    eras = rng.integers(0, 5, y.size)
    model = Regressor(max_iter=2, max_leaf_nodes=4, max_bins=8, early_stopping=False)
    BinnedDataset.from_arrays(X[:100], y[:100], eras=eras[:100], max_bins=8)
    dataset, peak = peak_memory(BinnedDataset.from_arrays, X, y, eras=eras, max_bins=8)
    assert peak < 1.8 * X.size
    assert peak_memory(model.fit, dataset)[1] < 0.3 * X.size
