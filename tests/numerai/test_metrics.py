"""Numerai's scores and neutralization: as by numerai-tools; and what is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numerai_tools import scoring
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata

from helpers.numerai.metric_cases import (
    contribution,
    corr,
    feature_neutral,
    make_case,
    neutralized,
)
from sklearn_era.metrics import EraScores, aggregate_era_scores
from sklearn_era.numerai.metrics import (
    correlation_contribution,
    feature_exposures,
    feature_neutral_corr,
    gaussianize,
    max_feature_exposure,
    neutralize,
    neutralize_ranks,
    numerai_corr,
    rank_normalize,
)

CASE = make_case(20, missing=0.12)
SMALL = make_case(4, n_features=3, seed=1)
finite = st.integers(-20, 20).map(lambda i: i / 4)
X = np.array([3.0, 1.0, 2.0, 4.0, 6.0, 5.0])
Y = np.array([0.0, 0.5, 1.0, 1.0, 0.5, 0.0])
ERAS = np.array(["a", "a", "a", "b", "b", "b"])
NAN_X = np.where(np.arange(6) == 4, np.nan, X)
INF_Y = np.where(np.arange(6) == 1, np.inf, Y)
NAN_Y = np.where(ERAS == "b", np.nan, Y)
F = np.array([[0, 1], [1, 0], [2, 2], [0, 0], [1, 3], [2, 1]])
NAN_F = np.where(F == 3, np.nan, F)
SERIES = pd.Series(X)

# What is said, and the call that it is said of.
BAD = [
    (r"^predictions is NaN or infinite in 1 of 6 rows, the first of era b: correct",
     lambda: numerai_corr(NAN_X, Y, ERAS)),
    (r"^x is NaN or infinite in 1 of 6 rows: correct", lambda: rank_normalize(NAN_X)),
    (r"^targets is infinite in 1 of 6 rows, the first of era a",
     lambda: numerai_corr(X, INF_Y, ERAS)),
    (r"^meta_model is infinite in 1 of 6 rows: correct",
     lambda: correlation_contribution(X, INF_Y, Y)),
    (r"^targets: 3 of 3 rows of era b are NaN, and at most 20% may be; .* \(1 of 2\)",
     lambda: numerai_corr(X, NAN_Y, ERAS)),
    (r"^targets: 3 of 3 rows of era a .* \(2 of 2\)\.",
     lambda: feature_neutral_corr(X, np.full(6, np.nan), F, ERAS)),
    (r"^meta_model: 3 of 3 rows of era b",
     lambda: correlation_contribution(X, NAN_Y, Y, ERAS)),
    (r"^targets has 5 rows, but predictions has 6; pass",
     lambda: numerai_corr(X, Y[:5], ERAS)),
    (r"^features has 5 rows, but predictions has 6; pass",
     lambda: feature_exposures(X, F[:5])),
    (r"^eras has 5 labels, but predictions has 6 rows",
     lambda: numerai_corr(X, Y, ERAS[:5])),
    (r"^predictions must be one-dimensional.* shape \(6, 2\)",
     lambda: numerai_corr(F, Y)),
    (r"^features must be a table.* shape \(6,\)",
     lambda: feature_exposures(X, F[:, 0])),
    (r"^neutralizers must be a table, not empty.* \(6, 0\)",
     lambda: neutralize(X, F[:, :0])),
    (r"^predictions must be numbers, .* got dtype <U1", lambda: numerai_corr(ERAS, Y)),
    (r"^predictions is masked: set",
     lambda: numerai_corr(np.ma.masked_equal(X, 3.0), Y)),
    (r"^predictions must be one-dimensional, not empty", lambda: numerai_corr([], [])),
    (r"^max_missing_share == 1, must be < 1",
     lambda: numerai_corr(X, Y, max_missing_share=1)),
    (r"^proportion == 1\.5, must be <= 1", lambda: neutralize(X, F, 1.5)),
    (r"^features is NaN or infinite in 1 of 2 columns in rows of era b, the first '1'",
     lambda: feature_neutral_corr(X, Y, NAN_F, ERAS)),
    (r"^neutralizers is NaN or infinite in 1 of 2 columns in rows, the first 'g': fill",
     lambda: neutralize(X, pd.DataFrame(NAN_F, columns=["f", "g"]))),
    (r"^neutralizer_names has 1 names, but there are 2 columns",
     lambda: neutralize(X, F, neutralizer_names=["f"])),
    (r"^predictions of era b are all equal \(0\.5\): there is nothing",
     lambda: neutralize(np.where(ERAS == "b", 0.5, X), F[:, :1], eras=ERAS)),
    (r"^ranks must be strictly between 0 and 1.* 1 are not, the first 0\.0 at row 1",
     lambda: gaussianize([0.5, 0.0])),
    (r"^predictions and targets have different indexes, but rows are matched by pos",
     lambda: numerai_corr(SERIES, SERIES[::-1])),
]  # fmt: skip


@pytest.mark.parametrize(("message", "call"), BAD)
def test_bad_input_is_named(message, call):
    with pytest.raises(ValueError, match=message):
        call()


def test_scores_equal_those_of_numerai_tools():
    table, features = CASE.table(), pd.DataFrame(CASE.features, CASE.ids)
    assert table.targets.isna().sum() > 100
    meta = table.meta_model.where(np.arange(len(table)) % 80 > 0)
    x, y = table.predictions, table.targets
    for score, reference, *others in (
        (numerai_corr, corr, y),
        (correlation_contribution, contribution, meta, y),
        (lambda x, f, *rest: feature_neutral_corr(x, rest[0], f, rest[1]),
         feature_neutral, features, y),
    ):  # fmt: skip
        result, expected = score(x, *others, table.eras), {}
        for era, rows in table.groupby("eras"):
            part = (one[one.index.isin(rows.index)] for one in (x, *others))
            expected[era] = reference(*part)
        assert isinstance(result, EraScores)
        assert result.eras.tolist() == sorted(expected)
        assert_allclose(result.scores, [*expected.values()], rtol=0, atol=1e-12)
        known = y.notna() & (meta.notna() if others[0] is meta else True)
        assert result.n_samples.tolist() == known.groupby(table.eras).sum().tolist()
    result = numerai_corr(CASE.predictions, CASE.targets, CASE.eras)
    sharpe = aggregate_era_scores(result, "sharpe")
    assert_allclose(sharpe, scoring.sharpe_ratio(pd.Series(result.scores)), rtol=1e-12)


@pytest.mark.parametrize("n_missing", [0, 4, 5, 6, 25])
def test_missing_targets_are_left_out_as_by_numerai_tools(n_missing):
    rng = np.random.default_rng(0)
    x, y = pd.Series(rng.random(25)), pd.Series(rng.random(25))
    y[rng.permutation(25)[:n_missing]] = np.nan
    if n_missing > 5:
        with pytest.raises(AssertionError):
            corr(x, y)
        with pytest.raises(ValueError, match=rf"^targets: {n_missing} of 25 rows are"):
            numerai_corr(x, y)
    else:
        assert_allclose(numerai_corr(x, y), corr(x, y), rtol=0, atol=1e-12)
    if n_missing < 25:
        assert -1 < numerai_corr(x, y, max_missing_share=0.5) < 1


def test_exposures_equal_numerai_tools():
    features = SMALL.features.copy()
    features[SMALL.eras == "0002", 1] = 2
    exposures = feature_exposures(SMALL.predictions, features, SMALL.eras)
    largest = max_feature_exposure(SMALL.predictions, features, SMALL.eras)
    assert exposures.shape == (4, 3)
    for era, label in enumerate(largest.eras):
        own = SMALL.eras == label
        x, table = pd.Series(SMALL.predictions[own]), pd.DataFrame(features[own])
        expected = [scoring.pearson_correlation(table[j], x) for j in table]
        assert_allclose(exposures[era], expected, rtol=0, atol=1e-12)
        name, size = scoring.max_feature_correlation(x, table)
        assert_allclose(largest.scores[era], size, rtol=0, atol=1e-12)
        assert np.nanargmax(np.abs(exposures[era])) == int(name)
    assert np.isnan(exposures).sum() == 1
    one = SMALL.eras == "0001"
    alone = feature_exposures(SMALL.predictions[one], features[one])
    assert_array_equal(alone, exposures[0])


@given(st.lists(finite, min_size=1, max_size=30))
def test_ranks_equal_those_of_scipy_and_numerai_tools(values):
    ranks = rank_normalize(values)
    assert_array_equal(ranks, (rankdata(values) - 0.5) / len(values))
    expected = scoring.gaussian(pd.Series(ranks).to_frame()).iloc[:, 0]
    assert_allclose(gaussianize(ranks), expected, rtol=0, atol=1e-15)


rows_of_eras = st.lists(
    st.tuples(st.integers(0, 3), finite, finite, finite), min_size=8, max_size=60
)


@given(rows_of_eras, st.randoms(use_true_random=False))
def test_only_the_order_of_predictions_counts_and_not_that_of_rows(rows, random):
    def scores(rows, names=None, power=1):
        eras, x, m, y = map(np.array, zip(*rows, strict=True))
        eras = eras if names is None else names[eras]
        yield numerai_corr(x**power, y, eras)
        yield correlation_contribution(x**power, m, y, eras)
        if power == 1:
            yield max_feature_exposure(x, m[:, None], eras)

    shuffled = random.sample(rows, len(rows))
    for one, other in zip(scores(rows), scores(shuffled), strict=True):
        assert_array_equal(one.eras, other.eras)
        assert_allclose(one.scores, other.scores, rtol=0, atol=1e-12)
    renamed = scores(rows, np.array(["d", "c", "b", "a"]), 3)
    for one, other in zip(scores(rows), renamed, strict=False):
        assert_array_equal(one.scores, other.scores[::-1])


@given(rows_of_eras)
def test_one_era_alone_has_the_score_that_it_has_among_others(rows):
    eras, x, _, y = map(np.array, zip(*rows, strict=True))
    result = numerai_corr(x, y, eras)
    for label, score in zip(result.eras, result.scores, strict=True):
        own = eras == label
        alone = numerai_corr(x[own], y[own])
        assert isinstance(alone, float)
        assert_array_equal(alone, score)
        assert np.isnan(score) or -1 <= score <= 1
        assert np.isnan(score) == (np.ptp(x[own]) == 0 or np.ptp(y[own]) == 0)


def test_constants_have_the_scores_that_numerai_tools_gives_them():
    y = pd.Series(np.tile([0.0, 0.5, 1.0], 10))
    x, m = pd.Series(np.full(30, 0.1)), pd.Series(np.arange(30.0))
    assert np.isnan(corr(x, y))
    assert np.isnan(numerai_corr(x, y))
    assert np.isnan(numerai_corr(m, np.full(30, 0.1)))
    assert contribution(x, m, y) == correlation_contribution(x, m, y) == 0
    assert np.isnan(correlation_contribution(m, x, y))
    features = np.tile([[0, 1], [1, 1]], (15, 1))
    assert np.isnan(feature_neutral_corr(x, y, features))
    assert np.isnan(feature_exposures(x, features)).all()
    assert np.isnan(max_feature_exposure(x, features))
    assert np.isnan(max_feature_exposure(m, features[:, 1:]))


def test_predictions_that_features_explain_fully_have_no_feature_neutral_corr():
    features = np.tile(np.arange(5), 20)[:, None]
    y = np.random.default_rng(0).random(100)
    one_hot = features == np.arange(5)
    assert np.isnan(feature_neutral_corr(features[:, 0], y, one_hot))
    with pytest.raises(ValueError, match=r"5 columns explain the predictions, of 100"):
        neutralize(features[:, 0], one_hot)
    assert_allclose(neutralize(features[:, 0], one_hot, 0.5).mean(), 2 - 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, bool])
def test_dtypes_are_computed_with_as_float64(dtype):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, size=(2, 40)).astype(dtype)
    assert numerai_corr(x, y) == numerai_corr(x.astype(float), y.astype(float))
    series = pd.Series(x), pd.Series(y), pd.Series(["0001"] * 40)
    assert numerai_corr(*series).scores[0] == numerai_corr(x, y)


def neutralizer_kinds():
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 5, size=(300, 40)).astype(np.int8)
    constant = wide.copy()
    constant[:, 5:35] = 2
    one_hot = (wide[:, :2, None] == np.arange(5)).reshape(300, 10)
    return {
        "int8": wide,
        "columns in order": np.asfortranarray(wide),
        "constant columns": constant,
        "nothing but a constant": np.full((300, 1), 2, np.int8),
        "duplicates": np.hstack([wide, wide[:, :3]]),
        "sums": np.column_stack([wide, wide[:, 0].astype(int) + wide[:, 1]]),
        "one-hot": one_hot,
        "float32": rng.normal(size=(300, 20)).astype(np.float32),
        "negative integers": wide.astype(np.int16) * -500,
        "unsigned": wide.astype(np.uint8),
        "scales": rng.normal(size=(300, 6)) * 10.0 ** np.arange(-6, 6, 2),
        "large mean": rng.normal(size=(300, 5)) + 1e4,
        "a single column": wide[:, :1],
        "columns skipped": wide[:, ::3],
    }


@pytest.mark.parametrize("kind", neutralizer_kinds())
@pytest.mark.parametrize("proportion", [1.0, 0.3, 0.0])
def test_neutralize_equals_numerai_tools(kind, proportion):
    neutralizers = neutralizer_kinds()[kind]
    x = np.random.default_rng(1).normal(size=300)
    result = neutralize(x, neutralizers, proportion)
    expected = neutralized(x, neutralizers, proportion)
    # Where the singular values span 1e6, least squares itself knows fewer digits.
    tolerance = 1e-9 if kind in ("scales", "large mean") else 1e-12
    assert_allclose(result, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("exponent", range(1, 15))
def test_neutralizers_may_nearly_depend_on_each_other(exponent):
    rng = np.random.default_rng(exponent)
    columns = rng.normal(size=(200, 4))
    near = columns[:, :1] + 10.0**-exponent * rng.normal(size=(200, 1))
    neutralizers = np.hstack([columns, near])
    x = rng.normal(size=200)
    expected = neutralized(x, neutralizers, 1.0)
    tolerance = 1e-12 + 1e-15 * 10.0 ** min(exponent, 6)
    assert_allclose(neutralize(x, neutralizers), expected, rtol=0, atol=tolerance)


def test_features_of_numerai_need_no_singular_values(monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("least squares by singular values were called")

    rng = np.random.default_rng(0)
    features = rng.integers(0, 5, size=(1500, 300)).astype(np.int8)
    features[:, ::4] = features[:, 1::4]  # pairs that mostly agree
    flips = rng.random((1500, 75)) < 0.05
    features[:, ::4][flips] = rng.integers(0, 5, size=flips.sum())
    features[:, 200:] = 2  # not there yet in early eras
    x = rng.normal(size=1500)
    expected = neutralized(x, features, 1.0)
    with monkeypatch.context() as patch:
        patch.setattr(np.linalg, "lstsq", fail)
        result = neutralize(x, features)
        with pytest.raises(AssertionError, match="singular values"):
            neutralize(x, np.hstack([features, features]))
    assert_allclose(result, expected, rtol=0, atol=1e-12)


def test_neutralize_by_era_is_neutralize_of_each_era_and_ranks_are_gaussianized():
    result = neutralize(SMALL.predictions, SMALL.features, 0.8, SMALL.eras)
    for label in np.unique(SMALL.eras):
        own = SMALL.eras == label
        x, features = SMALL.predictions[own], SMALL.features[own]
        assert_array_equal(result[own], neutralize(x, features, 0.8))
        ranks = rank_normalize(x)
        expected = rank_normalize(neutralized(gaussianize(ranks), features, 0.6))
        assert_allclose(neutralize_ranks(ranks, features, 0.6), expected, atol=1e-12)
