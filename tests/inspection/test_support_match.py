"""The support match and drift: their definitions, frames and refusals."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ks_2samp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold

from sklearn_era.inspection import domain_classifier_auc, support_match


def naive_bin(value, known, n_bins):
    """By the definition: a quantile, or one of few values, or a frequent value."""
    if np.isnan(value):
        return "missing"
    known, n, distinct = np.sort(known), known.size, {*known}
    often = {x for x in distinct if np.sum(known == x) > max(1, n / n_bins)}
    if value in often:
        return f"{value}"
    edges = {known[int(np.ceil(n * k / n_bins)) - 1] for k in range(1, n_bins)}
    if len(distinct) <= n_bins:
        edges = distinct - {known[-1]}
    return sum(x < value for x in edges), sum(x < value for x in often)


def naive_match(x, eras, n_bins):
    known = x[~np.isnan(x)]
    bins = np.empty(x.size, dtype=object)
    bins[:] = [naive_bin(value, known, n_bins) for value in x]
    return np.mean([len({*bins[eras == e]}) / len({*bins}) for e in set(eras)])


@st.composite
def columns(draw):
    n_samples, values = draw(st.integers(1, 40)), st.integers(-5, 5).map(float)
    x = draw(hnp.arrays(np.float64, n_samples, elements=values | st.just(np.nan)))
    eras = draw(hnp.arrays(np.int64, n_samples, elements=st.integers(0, 3)))
    return x, eras, draw(st.integers(2, 7))


@given(columns())
def test_match_is_that_of_the_definition(case):
    x, eras, n_bins = case
    # Where all are missing there is one bin, in every era.
    expected = 1.0 if np.isnan(x).all() else naive_match(x, eras, n_bins)
    result = support_match(x[:, np.newaxis], eras=eras, n_bins=n_bins)
    assert_allclose(result.match, [expected])
    assert 1 / np.unique(eras).size <= result.mean + 1e-12 <= 1 + 1e-9


def naive_psi(x, reference):
    """By hand, with the bins or categories of the reference."""
    known = reference[~pd.isna(reference)]

    def bin_of(value):
        if pd.isna(value):
            return "missing"
        if isinstance(value, str):
            return value if value in known else "new"
        return naive_bin(value, known, 10)

    bins = [[*map(bin_of, values)] for values in (x, reference)]
    psi = 0
    for b in {*bins[0], *bins[1]}:
        p, q = (max(each.count(b), 0.5) / len(each) for each in bins)
        psi += (p - q) * np.log(p / q)
    return psi


def drifting():
    """Numbers that drift and have few values, and categories, all with missing ones."""
    rng = np.random.default_rng(0)
    eras = np.sort(rng.integers(4, size=400))
    x = np.where(rng.random(400) < 0.1, np.nan, rng.normal(size=400) + 0.3 * eras)
    few = np.where(eras == 0, np.nan, rng.integers(3, size=400))
    letters = np.array(list("abcdefgh"))[rng.integers(2 + 2 * eras)].astype(object)
    letters[rng.random(400) < 0.1] = None
    return pd.DataFrame({"x": x, "few": few, "letter": letters}), eras


@pytest.mark.parametrize("reference_eras", [[0, 2], [3], [1, 2, 3]])
def test_drift_is_that_of_its_definitions(reference_eras):
    X, eras = drifting()
    later = X.sample(50, random_state=0).assign(letter="z")
    options = {"X_holdout": later, "reference_eras": reference_eras}
    result = support_match(X, eras=eras, as_frame=True, **options)
    psi = result.psi.T.assign(later=result.holdout_psi)
    ks = result.ks.T.assign(later=result.holdout_ks)
    for era in [*range(4), "later"]:
        others = np.isin(eras, np.setdiff1d(reference_eras, era))
        for name in X:
            rows = later if era == "later" else X[eras == era]
            found = psi[era][name], ks[era][name]
            own, reference = rows[name].to_numpy(), X[name].to_numpy()[others]
            if not others.any():
                assert_array_equal(found, [np.nan, np.nan])
                continue
            if era not in reference_eras:  # else its rows are among those of quantiles
                assert found[0] == pytest.approx(naive_psi(own, reference))
            if name == "letter":
                assert np.isnan(found[1])
                continue
            own, reference = own[~np.isnan(own)], reference[~np.isnan(reference)]
            if own.size and reference.size:
                assert found[1] == pytest.approx(ks_2samp(own, reference).statistic)
            else:
                assert np.isnan(found[1])


def test_an_era_is_held_against_all_others_of_the_same_quantiles():
    rng = np.random.default_rng(0)
    x, eras = rng.permutation(100) + 0.0, np.arange(100) // 25
    result, tenths = support_match(x[:, np.newaxis], eras=eras), (x // 10).astype(int)
    p, q = (np.bincount(tenths[own], minlength=10) for own in (eras < 1, eras > 0))
    p, q = (np.maximum(n, 0.5) / n.sum() for n in (p, q))
    assert result.psi[0, 0] == pytest.approx(((p - q) * np.log(p / q)).sum())
    assert_array_equal(support_match(np.ones((4, 1)), eras=[1, 1, 2, 2]).psi, 0)
    only = support_match(x[:, np.newaxis], eras=eras * 0)
    assert np.isnan(only.psi[0, 0])
    assert np.isnan(only.ks[0, 0])


# Distinct values, and their shares of the rows of three eras.
CODED = {
    "rare": ([0, 1], [[0.98, 0.02], [0.94, 0.06], [0.5, 0.5]]),
    "new": ([0, 1], [[1, 0], [1, 0], [0.8, 0.2]]),
    "several": ([0, 1, 2], [[0.05, 0.08, 0.87], [0.05, 0.08, 0.87], [0.2, 0.2, 0.6]]),
    "many": (range(-10, 2),
             2 * [[*[0.008] * 10, 0.88, 0.04]] + [[0.09] * 10 + [0.05] * 2]),
}  # fmt: skip


@pytest.mark.parametrize("name", CODED)
def test_neither_match_nor_drift_depends_on_the_coding(name):
    values, shares = CODED[name]
    x = np.concatenate([np.repeat(values, np.rint(500 * np.array(p)).astype(int))
                        for p in shares])  # fmt: skip
    eras = np.repeat([0, 1, 2], 500)
    X = np.column_stack([x, -x])
    found = support_match(X, eras=eras, reference_eras=[0, 1])
    for measured in (found.match, found.psi.T, found.ks.T):
        assert_allclose(measured[0], measured[1])
    assert found.psi[2, 0] > 0.2
    later = {"reference_eras": [0, 1], "eras": eras, "X_holdout": X[eras == 2]}
    assert_allclose(*support_match(X, **later).holdout_psi)


def test_categories_count_without_bins():
    columns = {"same": list("abab"), "own": list("aabc")}
    columns["gone"] = ["a", "a", None, None]
    frame = pd.DataFrame(columns).astype({"own": "category"})
    result = support_match(frame, eras=[1, 1, 2, 2], as_frame=True)
    assert result.match.to_dict() == {"same": 1.0, "own": 0.5, "gone": 0.5}
    assert result.n_bins.to_dict() == {"same": 2, "own": 3, "gone": 2}
    assert result.by_era.loc[2, "own"] == pytest.approx(2 / 3)
    assert result.mean == pytest.approx(2 / 3)
    assert result.by_era.index.name == "era"
    polars = support_match(pl.DataFrame(columns), eras=[1, 1, 2, 2])
    assert_allclose(polars.match, result.match)
    assert_array_equal(polars.feature_names, ["same", "own", "gone"])


def test_categories_are_named_by_mask_index_or_name():
    X = np.tile(np.arange(50.0)[:, np.newaxis] % 25, 2)
    frame = pd.DataFrame(X, columns=["a", "b"])
    for table, chosen, sizes in (
        (X, None, [10, 10]), (X, [1], [10, 25]), (X, [False, True], [10, 25]),
        (X, np.array([1]), [10, 25]), (frame, ["b"], [10, 25]),
    ):  # fmt: skip
        result = support_match(table, eras=X[:, 0] > 9, categorical_features=chosen)
        assert_array_equal(result.n_bins, sizes)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_eras_may_be_a_column_that_is_no_feature(frame):
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=100), "b": rng.normal(size=100)}
    eras, late = np.arange(100) % 4, {"a": columns["a"] + 1, "b": columns["b"]}
    expected = support_match(frame(columns), eras=eras, X_holdout=frame(late))
    for holdout in (late, late | {"week": eras}):
        X = frame(columns | {"week": eras})
        found = support_match(X, eras="week", X_holdout=frame(holdout))
        assert found.feature_names.tolist() == ["a", "b"]
        assert_array_equal(found.psi, expected.psi)
        assert_array_equal(found.holdout_psi, expected.holdout_psi)
    with pytest.raises(ValueError, match="eras='wek': 'wek' is no column of X"):
        support_match(X, eras="wek")


def test_an_era_needs_its_least_rows_in_a_bin():
    X, eras = [[0], [0], [0], [1], [0], [0], [1], [1]], np.arange(8) // 4
    assert support_match(X, eras=eras).mean == 1
    result = support_match(X, eras=eras, min_samples=2)
    assert_allclose(result.by_era[:, 0], [0.5, 1])


def test_a_holdout_is_held_against_the_bins_of_the_training_rows():
    train = pd.DataFrame({"x": np.arange(100.0), "c": ["a", "b"] * 50})
    holdout = pd.DataFrame({"x": [95.0, 98, 100, np.nan], "c": ["b", "c", "b", None]})
    eras = np.zeros(100)
    result = support_match(train, eras=eras, X_holdout=holdout, as_frame=True)
    assert result.holdout.to_dict() == pytest.approx({"x": 0.1, "c": 0.5})
    assert result.holdout_unseen.to_dict() == pytest.approx({"x": 0.5, "c": 0.5})
    same = support_match(train, eras=eras, X_holdout=train)
    assert_allclose([same.holdout, 1 - same.holdout_unseen], 1)
    assert "holdout" not in support_match(train, eras=eras)


def test_infinite_and_nullable_values():
    frame = pd.DataFrame({"a": pd.array([1, None, 3, 4], dtype="Int64")})
    frame["b"] = [-np.inf, np.inf, 0, 1]
    frame["c"] = [True, False, True, False]
    result = support_match(frame, eras=[0, 0, 1, 1], n_bins=4)
    assert_array_equal(result.n_bins, [4, 4, 2])
    assert_allclose(result.match, [0.5, 0.5, 1])
    with_missing = support_match([[1], [np.nan], [1], [2]], eras=[0, 0, 1, 1])
    assert_array_equal(with_missing.n_bins, [3])


FRAME = pd.DataFrame({"a": [1.0, 2.0], "c": ["u", "v"]})


@pytest.mark.parametrize(("X", "parameters", "message"), [
    ([[1], [2]], {"eras": [1]}, "eras has 1 labels, but X has 2 rows"),
    ([[1], [2]], {"eras": [1, None]}, "eras has 1 missing label"),
    ([[1], [2]], {"n_bins": 1}, "'n_bins' parameter"),
    (np.ma.masked_less([[1], [2]], 2), {}, r"^X is masked: .*\.filled\(np\.nan\)"),
    ([[1], [2]], {"min_samples": True}, "min_samples must be an integer"),
    (np.empty((2, 0)), {}, r"X is empty, of shape \(2, 0\)"),
    ([["a"], ["b"]], {}, "column 'x0', of dtype object, is not numeric"),
    (FRAME, {"categorical_features": None}, "X: column 'c', of dtype"),
    (FRAME, {"categorical_features": ["d"]}, "X has no column 'd'; its columns"),
    (FRAME, {"categorical_features": [2]}, "there is no column 2 among the 2"),
    (FRAME, {"categorical_features": [True]}, "has 1 bools, but X has 2 columns"),
    (FRAME, {"categorical_features": "auto"}, "must be 'from_dtype', None"),
    (FRAME, {"categorical_features": [1.5]}, "names, indices or bools; got 1.5"),
    ([[1], [2]], {"categorical_features": ["a"]}, "X is no data frame"),
    (FRAME, {"X_holdout": FRAME[["a"]]}, "X_holdout has 1 column.* X has 2"),
    (FRAME, {"X_holdout": FRAME[["c", "a"]]}, "column 0 of X_holdout is 'c'"),
    (FRAME, {"X_holdout": FRAME.assign(c=1.0)},
     "'c' holds categories in X, but numbers in X_holdout"),
    (pd.DataFrame({"a": [[1], [2]]}), {}, "column 'a' holds what cannot be a category"),
    ([[1j], [2]], {}, "column 'x0', of dtype complex.* holds complex numbers"),
    (np.array([["2024-01-01"], ["2024-01-02"]], dtype="M8[D]").astype(object), {},
     "column 'x0', of dtype object, is not numeric"),
    (np.array([[np.datetime64("2024-01-01")], [np.timedelta64(1)]], object), {},
     "column 'x0', of dtype object, .* holds dates or times"),
    (pd.DataFrame({"a": pd.period_range("2024", periods=2, freq="Y")}), {},
     "column 'a', of dtype period.* holds dates or times"),
    (pl.DataFrame({"a": [{"b": 1}, {"b": 2}]}), {}, "'a'.* several values a row"),
    (FRAME, {"reference_eras": [3]}, r"reference_eras=\[3\] must be labels that eras"),
    (pl.LazyFrame({"a": [1, 2]}), {}, r"X is a lazy frame.*X\.collect\(\)"),
])  # fmt: skip
def test_match_refuses(X, parameters, message):
    with pytest.raises(ValueError, match=message):
        support_match(X, **({"eras": [1, 2]} | parameters))


def test_a_domain_classifier_has_the_mean_auc_of_its_folds():
    rng, later = np.random.default_rng(0), np.arange(90) % 3 == 0
    X = rng.normal(size=(90, 2)) + later[:, np.newaxis]
    aucs, model = [], LinearDiscriminantAnalysis()
    for train, test in StratifiedKFold(3, shuffle=True, random_state=1).split(X, later):
        p = model.fit(X[train], later[train]).decision_function(X[test])
        pairs = p[later[test]][:, None] > p[~later[test]]
        aucs.append(pairs.mean())
    found = domain_classifier_auc(X, later, estimator=model, cv=3, random_state=1)
    assert_allclose(found, np.mean(aucs))
    frame = pd.DataFrame({"c": np.where(later, "new", "old")}, dtype="category")
    assert domain_classifier_auc(frame, later) == 1
    with pytest.raises(ValueError, match=r"is_later has 1 distinct value\(s\)"):
        domain_classifier_auc(X, later >= 0)


TEXT = np.array([*"uv" * 45], dtype=object)
NAMES = ["old"] * 45 + ["new"] * 44


@pytest.mark.parametrize(("X", "is_later", "message"), [
    (TEXT[:, np.newaxis], TEXT == "u", "X: column 0 is not numeric: .*'u'.*features,"),
    (pd.DataFrame({"t": TEXT}), TEXT == "u", "X: column 't' is not numeric: .*'u'"),
    (np.eye(90), [*NAMES, None], "is_later has 1 missing .* row 89 (None)"),
    (np.eye(90), [*NAMES, np.nan], "is_later has 1 missing .* row 89 (nan)"),
    (np.eye(90), [0.0] * 45 + [1.0] * 44 + [np.nan], "is_later has 1 missing .*(nan)"),
    (np.eye(90), [*NAMES, 7], r"is_later has 3 distinct value(s)"),
])  # fmt: skip
def test_a_domain_classifier_refuses_in_a_sentence(X, is_later, message):
    message = message.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        domain_classifier_auc(X, is_later)
    assert len(str(caught.value)) < 200
