"""`fit` with eras: what it refuses and what it warns of."""

import gc
import warnings
import weakref
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.inspection import partial_dependence

from helpers.criteria import COVER_ALL, NAMES
from helpers.data import make_data, make_only_category
from helpers.estimators import ours, stock
from helpers.grids import on_grid
from helpers.trees import assert_same_model
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.criteria import Era
from sklearn_era.ensemble import EraForestClassifier, EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._boosters import hooks
from sklearn_era.rules import RuleEnsembleClassifier

BOTH = pytest.mark.parametrize("split_criterion", ["gain", "era"])
BOOSTER_OR_FOREST = pytest.mark.parametrize("estimator", [ours, EraForestRegressor])


@pytest.fixture
def data():
    X, y, _, _ = make_data(n_samples=120)
    return X, y, np.random.default_rng(0).permutation(np.arange(120) % 4)


def replace_last(labels, label):
    labels = list(labels)
    labels[-1] = label
    return labels


YEAR, TEXT = np.datetime64("2024"), np.dtypes.StringDType(na_object=np.nan)
# Labels, of which the last one is missing.
LAST_MISSING = {
    "nan": lambda e: replace_last(e, np.nan),
    "none": lambda e: replace_last(e, None),
    "na": lambda e: replace_last(e, pd.NA),
    "nat": lambda e: replace_last(YEAR + e.astype("m8[Y]"), np.datetime64("NaT", "Y")),
    "pandas_nat": lambda e: replace_last(pd.to_datetime(e), pd.NaT),
    "pandas_int": lambda e: pd.array(replace_last(e, None), dtype="Int64"),
    "pandas_string": lambda e: pd.Series([*map(str, e[:-1]), None], dtype="string"),
    "pandas_category": lambda e: pd.Categorical(replace_last(e.astype(str), None)),
    "string_dtype": lambda e: np.array(replace_last(e.astype(str), np.nan), TEXT),
    # NumPy would make the string "nan" of it.
    "nan_among_str": lambda e: replace_last([f"week{i}" for i in e], np.nan),
}
BAD_ERAS = {
    **{name: (f, r"eras has 1 missing.*row 119") for name, f in LAST_MISSING.items()},
    "many_nan": (lambda e: np.where(e < 2, np.nan, e), r"eras has 60 missing label"),
    "masked": (lambda e: np.ma.masked_array(e, np.arange(120) == 7),
               r"eras has 1 missing.*row 7"),
    "too_short": (lambda e: e[:-1], r"eras has 119 labels, but X has 120 rows"),
    "too_long": (lambda e: [*e, 0], r"eras has 121 labels, but X has 120 rows"),
    "empty": (lambda e: [], r"eras has 0 labels, but X has 120 rows"),
    "cube": (lambda e: e.reshape(-1, 1, 1), r"eras must be one-dim.*\(120, 1, 1\)"),
    "no_column": (lambda e: pd.DataFrame(index=range(e.size)), "^eras has no column"),
    "short_columns": (lambda e: np.column_stack([e, e])[1:],
                      r"^eras\[:, 0\] has 119 labels, but X has"),
    "missing_in_frame": (lambda e: pd.DataFrame({"m": np.where(e > 1, np.nan, e)}),
                         r"^eras\['m'\] has 60 missing label\(s\)"),
    "missing_column": (lambda e: [[x, None] for x in e],
                       r"^eras\[:, 1\] has 120 missing label\(s\)"),
    "masked_column": (lambda e: np.ma.masked_array(
        np.column_stack([e, e]), [[False, True]] * e.size),
        r"^eras\[:, 1\] has 120 missing label\(s\)"),
    "scalar": (lambda e: 3, r"eras must be one-dimensional"),
    "str_and_int_objects": (lambda e: np.array(replace_last(e, "x"), dtype=object),
                            r"eras has labels that cannot be sorted, of .*int.*str"),
    # NumPy would make one era of 1 and "1".
    "str_and_int_list": (lambda e: replace_last(e.tolist(), "1"),
                         r"eras has labels .* of type int, str;"),
    "infinite": (lambda e: replace_last(e, np.inf),
                 r"eras needs finite labels, .* as inf:"),
    "minus_infinity": (lambda e: replace_last(e.tolist(), Decimal("-inf")),
                       r"eras needs finite .* as -Infinity:"),
    "infinite_column": (lambda e: pd.DataFrame({"a": e, "b": replace_last(e, np.inf)}),
                        r"eras\['b'\] needs finite labels"),
    "sets": (lambda e: pd.Series([{1}, {2}] * 60).astype(object), r"eras "),
    "sparse": (lambda e: csr_array(e[:, None]), "^eras is a sparse .*toarray"),
    "ragged": (lambda e: [[1], [1, 2]] * 60, "^eras must be one-dim.*inhomogeneous"),
}  # fmt: skip


@BOOSTER_OR_FOREST
@pytest.mark.parametrize(("spoil", "message"), BAD_ERAS.values(), ids=BAD_ERAS)
def test_unusable_eras_are_refused(data, spoil, message, estimator):
    X, y, eras = data
    with pytest.raises(ValueError, match=message) as caught:
        estimator().fit(X, y, eras=spoil(eras))
    assert "\n" not in str(caught.value)


@BOOSTER_OR_FOREST
def test_a_subclass_may_have_fewer_parameters(data, estimator):
    class WorstEra(estimator if isinstance(estimator, type) else type(estimator())):
        def __init__(self, min_samples_leaf=5):
            params = {"split_criterion": Era(boltzmann_alpha=-np.inf)}
            super().__init__(**params, min_samples_leaf=min_samples_leaf)

    X, y, eras = data
    assert WorstEra().fit(X, y, eras=eras).predict(X).shape == y.shape


@BOOSTER_OR_FOREST
def test_labels_in_another_order_of_rows_are_warned_of(data, estimator):
    X, y, eras = data
    frame, series = pd.DataFrame(X), pd.Series(eras)
    est = estimator(split_criterion="era", min_era_coverage=0.5)
    with pytest.warns(UserWarning, match="^eras has the index of X in another order"):
        est.fit(frame, y, eras=series[::-1])
    # In the order of X, or of other rows, or without an index, they are meant.
    est.fit(frame, y, eras=series)
    est.fit(frame, y, eras=series.set_axis(range(1, len(series) + 1))[::-1])
    est.fit(frame, y, eras=eras[::-1].tolist())


@pytest.mark.parametrize("weight", [-1, np.nan, np.inf, "1", 10**400])
@BOTH
def test_weights_of_classes_are_numbers_from_0_up(data, weight, split_criterion):
    X, y, eras = data
    for kind in (Classifier, EraForestClassifier):
        est = kind(split_criterion=split_criterion, class_weight={1: weight})
        with pytest.raises(ValueError, match=r"^class_weight gives class 1 the weight"):
            est.fit(X, y > 0, eras=eras)


@BOTH
def test_weights_of_classes_are_those_of_labels(data, split_criterion):
    X, y, eras = data
    labels = np.where(y > 0, "yes", "no")
    params = {"split_criterion": split_criterion, "max_iter": 3, "random_state": 0}
    by_label = Classifier(class_weight={"yes": 3.0, "no": 0.5}, **params)
    by_row = Classifier(**params).fit(X, labels, np.where(y > 0, 3.0, 0.5), eras=eras)
    assert_same_model(by_label.fit(X, labels, eras=eras), by_row, X)
    with pytest.raises(ValueError, match=r"^The classes, \['no', 'yes'\], are not in"):
        by_label.set_params(class_weight={0: 1.0, 1: 2.0}).fit(X, labels, eras=eras)


def test_negative_weights_of_rows_are_those_of_scikit_learn_or_refused(data):
    X, y, eras = data
    weights = np.where(eras == 1, -1.0, 1.0)
    model = ours(split_criterion="gain").fit(X, y, weights)
    assert_same_model(model, stock().fit(X, y, weights), X)
    message = "^sample_weight is negative in 30 of 120 rows, and {}=.* takes weights"
    for name, value in {"split_criterion": "era", "min_impurity_decrease": 0.1}.items():
        with pytest.raises(ValueError, match=message.format(name)):
            ours(**{name: value}).fit(X, y, weights, eras=eras)


@on_grid("split_criterion unit", NAMES, [1e38, 1e300])
def test_gradients_that_overflow_leave_no_nan(data, split_criterion, unit):
    X, y, eras = data
    eras, est = np.sort(eras), ours(split_criterion=split_criterion, min_samples_leaf=5)
    warnings.simplefilter("ignore")  # of NumPy, and of no split, until the test ends
    assert np.isfinite(est.fit(X, y * unit, eras=eras).predict(X)).all()
    with pytest.raises(
        ValueError, match=r"^sample_weight is up to 1e.*, out of the ra"
    ):
        est.fit(X, y, y * 0 + unit * 10, eras=eras)


@BOOSTER_OR_FOREST
def test_limits_that_no_machine_integer_holds(data, estimator):
    X, y, eras = data
    for criterion in ("gain", "era"):
        est = estimator(min_samples_leaf=2**32 - 1, split_criterion=criterion)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of no split
            assert np.ptp(est.fit(X, y, eras=eras).predict(X)) == 0
    with pytest.raises(ValueError, match=r"'min_samples_leaf' .* range \[1, 4294967"):
        estimator(min_samples_leaf=10**30).fit(X, y)
    deep = estimator(max_depth=10**30)
    if estimator is ours:  # it compares depths in Python
        deep.fit(X, y)
        return
    with pytest.raises(ValueError, match=r"'max_depth' .* range \[1, 2147483647"):
        deep.fit(X, y)


@BOTH
def test_partial_dependence_is_of_the_column_that_is_asked_for(split_criterion):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 2)), columns=["a", "b"])
    X["c"] = pd.Categorical(rng.choice(list("uvw"), 400))
    X["d"] = rng.normal(size=400)
    y = 3 * X["a"] + X["c"].cat.codes - X["d"]
    # Trees that part by it would weigh its rows, which recursion and brute do apart.
    X["c"] = pd.Categorical(rng.permutation(X["c"].to_numpy()))
    params = {"split_criterion": split_criterion, "max_depth": 1}
    for est in (Regressor(max_iter=10, **params), EraForestRegressor(10, **params)):
        est.fit(X, y, eras=np.arange(400) % 2)
        for columns in (["a"], ["d"], ["d", "a"]):
            options = {"kind": "average", "grid_resolution": 4}
            recursion, brute = (
                partial_dependence(est, X, columns, method=method, **options)
                for method in ("recursion", "brute")
            )
            # Both are sums of functions of a column: they differ by a constant.
            assert np.ptp(recursion["average"] - brute["average"]) < 1e-9
        with pytest.raises(ValueError, match="cannot set column 'c', which is categ"):
            est._compute_partial_dependence_recursion(np.zeros((1, 1)), np.array([2]))


def test_unusable_eras_and_weights_of_validation_are_refused(data):
    X, y, eras = data
    est = ours(split_criterion="era", early_stopping=True)
    with pytest.raises(ValueError, match="eras_val is provided, but X_val was not"):
        est.fit(X, y, eras=eras, eras_val=eras)
    validation = {"X_val": X[:50], "y_val": y[:50]}
    with pytest.raises(ValueError, match="eras_val has 49 labels, but X_val has 50"):
        est.fit(X, y, eras=eras, **validation, eras_val=eras[:49])
    with pytest.raises(ValueError, match=r"eras_val has 1 missing.*row 49"):
        est.fit(X, y, eras=eras, **validation, eras_val=replace_last(eras[:50], np.nan))
    with pytest.raises(ValueError, match=r"eras_val\[:, 0\] has 1 labels"):
        est.fit(X, y, eras=eras, **validation, eras_val=eras[:50].reshape(1, -1))
    weights = np.ma.masked_array(np.ones(50), eras[:50] == 0)
    with pytest.raises(ValueError, match=r"^sample_weight_val is masked: set the mask"):
        est.fit(X, y, eras=eras, **validation, sample_weight_val=weights)
    # A column is not blamed for another error.
    X = pd.DataFrame({"a": range(5), "b": pd.Categorical(list("xyxyz"))})
    X["c"] = pd.array([1, None, 2, 3, 4], dtype="Int64")
    with pytest.raises(ValueError, match=r"^eras has 4 labels, but X has 5 rows"):
        ours(split_criterion="era").fit(X, np.arange(5), eras=[0, 0, 1, 1])


DATES = pd.date_range("2024-01-01", periods=5)


@pytest.mark.parametrize(("X", "message"), [
    (pd.DataFrame({"a": []}, dtype=float), "0 sample"),
    (np.empty((0, 3)), "0 sample"), (np.empty((5, 0)), "0 feature"),
    (pd.DataFrame(index=range(5)), r"X has no columns; its shape is \(5, 0\)"),
    (pd.DataFrame({"a": range(5), "b": list("xyxyz")}, dtype=object),
     "column 'b' is not numeric: could not convert string to float: 'x'"),
    (pd.DataFrame({"a": 0.5, "b": DATES}), "column 'b' is not numeric: it holds datet"),
    (pd.DataFrame({"a": 0.5, "b": DATES.astype(object)}), "column 'b' .*'Timestamp'"),
    (pd.DataFrame({"b": DATES}), "column 'b' is not numeric: it holds datetime64"),
    (pd.DataFrame({"b": DATES - DATES[0]}), "column 'b' .* holds timedelta64"),
    (DATES.to_numpy()[:, None], "column 0 is not numeric: it holds datetime64"),
    (pd.DataFrame({"a": 0.5, "b": pd.Series([*DATES.to_numpy()], dtype=object)}),
     "column 'b' is not numeric: it holds datetime64"),
    (np.array([[x - x] for x in DATES.to_numpy()], object), "0 .* holds timedelta64"),
    (pl.DataFrame({"a": 0.5, "b": DATES}), "column 'b' .* holds Datetime"),
    (pl.DataFrame({"a": 0.5, "b": DATES - DATES[0]}), "column 'b' .* holds Duration"),
    (pa.table({"a": range(5), "b": pa.array(DATES)}), "column 'b' .* datetime64"),
    (pa.table({"a": range(5), "b": list("xyxyz")}), "column 'b' .*to float: 'x'"),
    (np.array([*"xyxyz"], object)[:, None], "column 0 is .*'x'. .* categorical_featu"),
    (pd.DataFrame({"a": list("xyxyz"), "b": [1, None, "x", 2, 3]}, dtype="category"),
     "column 'b' has categories of text and others of numbers: make text of all"),
    (pl.LazyFrame({"a": range(5)}), r"lazy frame, .* pass X.collect\(\)"),
])  # fmt: skip
@BOTH
def test_unusable_X_is_refused(X, message, split_criterion):
    n = 5 if isinstance(X, pl.LazyFrame) else len(X)
    eras = [0, 0, 1, 1, 1][:n]
    with pytest.raises(ValueError, match=message):
        ours(split_criterion=split_criterion).fit(X, np.arange(n), eras=eras)


KIND = np.array(list("abc") * 20)
CATEGORIES = pd.DataFrame({"x": np.arange(60.0), "k": pd.Categorical(KIND)})


@pytest.mark.parametrize("model", [
    ours(max_iter=3), EraForestRegressor(3, random_state=0),
    RuleEnsembleClassifier(n_estimators=3),
    AutoEraRegressor(ours(max_iter=3), members=["linear"], random_state=0),
], ids=lambda model: type(model).__name__)  # fmt: skip
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_numbers_are_no_categories_of_text_and_lazy_frames_no_rows(model):
    """interop/test_arriving_rows.py has rows to predict of other kinds."""
    eras, y = np.arange(60) % 4, 1 * (KIND == "a")
    model.fit(CATEGORIES, y, eras=eras)
    for X in (np.column_stack([np.arange(60), np.tile([0, 1, 2], 20)]), [[0.0, 1.0]]):
        with pytest.raises(ValueError, match=r"column 'k' holds .* such as '[abc]'"):
            model.predict(X)
    lazy = pl.LazyFrame({"x": range(60), "week": range(60)})
    for given in ({"eras": eras}, {"eras": "week"}):
        with pytest.raises(ValueError, match=r"lazy frame, .* pass X.collect"):
            model.fit(lazy, y, **given)


def test_a_fit_leaves_what_scikit_learns_leaves(data):
    X, y, eras = data
    params = {"early_stopping": True, "max_iter": 3}
    model = ours(split_criterion="era", **params).fit(X, y, eras=eras)
    names = set(vars(model)) - set(model.get_params())
    theirs = stock(**params)
    fitted = set(vars(theirs.fit(X, y))) - set(theirs.get_params())
    assert names == fitted | {"validation_eras_"}


def test_interaction_sets_of_other_columns_are_warned_of(data):
    X, y, eras = data
    X = pd.DataFrame(X[:, :3], columns=list("abc"))
    last = X.assign(c=pd.Categorical(X["c"].round()))
    first = last[["c", "a", "b"]]
    est = ours(split_criterion="era", interaction_cst=[{0, 1}, {2}])
    with pytest.warns(UserWarning, match=r"feature i is column \[2, 0, 1\]\[i\]"):
        est.fit(last, y, eras=eras)
    est.fit(first, y, eras=eras)
    est.set_params(interaction_cst="no_interactions").fit(last, y, eras=eras)


def test_the_only_category_is_told_from_missing_values():
    # scikit-learn takes the categories of another split for those of this one, and so
    # does the plain gain, which is scikit-learn's to the bit. If that has gone, a
    # release has mended it: docs/interoperability.md shows how to do without it.
    X, y, eras = make_only_category()
    params = {"categorical_features": [0, 1], "learning_rate": 1.0, "max_iter": 20}
    wrong = stock(early_stopping=False, **params).fit(X, y).predict(X)
    assert np.abs(wrong - y).max() > 1
    filled = np.nan_to_num(X, nan=9.0)
    advised = stock(early_stopping=False, **params).fit(filled, y).predict(filled)
    assert_allclose(advised, y, atol=1e-4)
    plain = ours(split_criterion="gain", **params).fit(X, y)
    assert np.array_equal(plain.predict(X), wrong)
    for split_criterion in NAMES[1:]:
        est = ours(split_criterion=split_criterion, **params).fit(X, y, eras=eras)
        assert_allclose(est.predict(X), y, atol=1e-4)


@BOOSTER_OR_FOREST
@pytest.mark.parametrize("split_criterion", ["era", "directional"])
def test_constant_model_is_warned_of(data, split_criterion, estimator):
    X, y, eras = data
    X = eras.reshape(-1, 1) + 0.0  # identifies the eras, and nothing else
    message = "^No split was admissible for split_criterion.*predicts a constant"
    est = estimator(split_criterion=split_criterion, **COVER_ALL)
    with pytest.warns(UserWarning, match=message) as caught:
        est.fit(X, y, eras=eras)
    assert [warning.filename for warning in caught] == [__file__]
    assert np.ptp(est.predict(X)) == 0
    # With "gain" there is nothing to warn of: scikit-learn does not.
    estimator(split_criterion="gain").fit(X, np.zeros(len(y)), eras=eras)


@BOTH
def test_a_grower_is_gone_before_the_next_one(data, split_criterion, monkeypatch):
    X, y, eras = data
    growers, name = [], "TreeGrower" if split_criterion == "gain" else "EraTreeGrower"

    class Grower(getattr(hooks, name)):
        def __init__(self, *args, **kwargs):
            assert [ref() for ref in growers] == [None] * len(growers)
            growers.append(weakref.ref(self))
            super().__init__(*args, **kwargs)

    gc.collect()
    monkeypatch.setattr(hooks, name, Grower)
    ours(split_criterion=split_criterion, max_iter=2).fit(X, y, eras=eras)
    assert len(growers) == 2
