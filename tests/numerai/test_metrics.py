"""Numerai's scores and neutralization: equations by NumPy, eras, and what is refused.

That the scores are numerai-tools' own, from a file on, `test_validation` shows.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.preprocessing import scale

from helpers import peak_memory
from sklearn_era.metrics import EraScores
from sklearn_era.numerai import metrics
from sklearn_era.numerai.metrics import feature_exposures, neutralize, numerai_corr


def rank(x):
    """Half of the others that are equal, and all that are less, of each."""
    less, equal = x[:, None] > x, x[:, None] == x
    return (less.sum(axis=1) + 0.5 * equal.sum(axis=1)) / x.size


def spread(x):
    return norm.ppf(rank(x))


def power(x):
    return np.sign(x) * np.abs(x) ** 1.5


def corr(y, x):
    x, y = x[~np.isnan(y)], y[~np.isnan(y)]
    return np.corrcoef(power(spread(x)), power(y - y.mean()))[0, 1]


def contribution(y, x, m):
    known = ~np.isnan(m + y)
    x, m, y = spread(x[known]), spread(m[known]), y[known]
    y = 4 * y if y.min() >= 0 and y.max() <= 1 else y
    return np.mean((y - y.mean()) * (x - m * (x @ m) / (m @ m)))


def neutral(x, features, proportion=1.0):
    N = np.column_stack([features, np.ones(x.size)]).astype(float)
    return x - proportion * (N @ np.linalg.lstsq(N, x, rcond=1e-6)[0])


def feature_neutral(y, x, features):
    # Rows that are equal but for rounding are ties to both.
    return corr(y, neutral(spread(x), features).round(12))


def exposures(x, features):
    return np.array([np.corrcoef(x, f)[0, 1] for f in features.T])


def make_case(n_eras=10, n_features=8):
    """Rows in no order; every other era has ties, and every third lacks some targets.

    Targets are in 0, 0.25, ..., 1, but in every fifth era, where they are any number.
    """
    rng = np.random.default_rng(n_eras)
    codes = rng.permutation(np.repeat(np.arange(n_eras), rng.integers(60, 90, n_eras)))
    n = codes.size
    features = rng.integers(0, 5, size=(n, n_features)).astype(np.int8)
    signal = features[:, 0] - features[:, 1] + rng.normal(0, 3, n)
    x, m = signal + rng.normal(0, 4, n), signal + rng.normal(0, 2, n)
    x = np.where(codes % 2 == 0, np.round(x), x)
    y = np.clip(np.round(signal / 2 + rng.normal(2, 2, n)), 0, 4) / 4
    y += np.where(codes % 5 == 0, rng.normal(0, 1, n), 0)
    y[(codes % 3 == 0) & (rng.random(n) < 0.05)] = np.nan
    m[::40] = np.nan
    return x, m, y, features, np.array([f"{code + 1:04d}" for code in codes])


X, M, Y, FEATURES, ERAS = make_case()
SCORES = [
    (numerai_corr, corr, (Y, X)),
    (metrics.correlation_contribution, contribution, (Y, X, M)),
    (metrics.feature_neutral_corr, feature_neutral, (Y, X, FEATURES)),
    (metrics.max_feature_exposure, lambda *x: abs(exposures(*x)).max(), (X, FEATURES)),
]


@pytest.mark.parametrize(("score", "formula", "arguments"), SCORES)
def test_scores_are_those_of_the_equations_era_by_era(score, formula, arguments):
    result = score(*arguments, eras=ERAS)
    assert isinstance(result, EraScores)
    assert result.eras.tolist() == sorted(set(ERAS))
    for (era, value), n in zip(result.items(), result.n_samples, strict=True):
        one = [column[era == ERAS] for column in arguments]
        assert value == pytest.approx(formula(*one), abs=1e-12)
        alone = score(*one)
        assert type(alone) is float
        assert alone == pytest.approx(value, abs=1e-15)
        columns = [column for column in one if column.ndim == 1]
        assert n == np.count_nonzero(~np.isnan(sum(columns)))


def test_ranks_and_exposures_are_those_of_the_equations_era_by_era():
    ranks, features = metrics.rank_normalize(X, eras=ERAS), FEATURES.copy()
    features[ERAS == "0002", 1] = 2
    found = feature_exposures(X, features, eras=ERAS)
    assert found.shape == (10, 8)
    for row, era in enumerate(sorted(set(ERAS))):
        own = era == ERAS
        assert_array_equal(ranks[own], rank(X[own]))
        found_spread = metrics.gaussianize(ranks[own])
        assert_allclose(found_spread, spread(X[own]), rtol=0, atol=1e-15)
        alone = feature_exposures(X[own], features[own])
        assert_allclose(found[row], alone, rtol=0, atol=1e-15)
        varies = np.arange(8) != (1 if era == "0002" else -1)
        expected = exposures(X[own], features[own][:, varies])
        assert_allclose(found[row][varies], expected, rtol=0, atol=1e-12)
    assert np.isnan(found).nonzero() == (1, 1)


finite = st.integers(-20, 20).map(lambda i: i / 4)
row_of_era = st.tuples(st.integers(0, 3), finite, finite, finite)
rows_of_eras = st.lists(row_of_era, min_size=1, max_size=60)


@given(rows_of_eras, st.randoms(use_true_random=False))
def test_only_the_order_of_predictions_counts_and_not_that_of_rows(rows, random):
    def scores(rows, names=None, exponent=1):
        eras, x, m, y = map(np.array, zip(*rows, strict=True))
        eras = eras if names is None else names[eras]
        yield numerai_corr(y, x**exponent, eras=eras)
        yield metrics.correlation_contribution(y, x**exponent, m, eras=eras)
        if exponent == 1:
            yield metrics.max_feature_exposure(x, m[:, None], eras=eras)

    shuffled = random.sample(rows, len(rows))
    for one, other in zip(scores(rows), scores(shuffled), strict=True):
        assert_array_equal(one.eras, other.eras)
        assert_allclose(one.scores, other.scores, rtol=0, atol=1e-12)
    renamed = scores(rows, np.array(["d", "c", "b", "a"]), 3)
    for one, other in zip(scores(rows), renamed, strict=False):
        assert_array_equal(one.scores, other.scores[::-1])
    for era, score in next(scores(rows)).items():
        own = np.array([(x, y) for code, x, _, y in rows if code == era])
        assert np.isnan(score) == (np.ptp(own, axis=0).min() == 0)
        assert np.isnan(score) or -1 <= score <= 1


@pytest.mark.parametrize("n_missing", [0, 4, 5, 6, 25])
def test_a_share_of_the_targets_may_be_missing(n_missing):
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 25))
    y[rng.permutation(25)[:n_missing]] = np.nan
    if n_missing > 5:
        with pytest.raises(ValueError, match=rf"^y_true is NaN in {n_missing} of 25"):
            numerai_corr(y, x)
    if n_missing < 25:
        share = 0.2 if n_missing <= 5 else 0.5
        found = numerai_corr(y, x, max_missing_share=share)
        assert found == pytest.approx(corr(y, x), abs=1e-12)


def test_outliers_have_a_score_and_constants_and_what_features_explain_have_none():
    x, y = np.random.default_rng(0).random(2000), np.arange(2000) % 2 - 0.5
    y[0] = 20
    assert numerai_corr(y, x) == pytest.approx(corr(y, x), abs=1e-12)
    y, m, x = np.tile([0.0, 0.5, 1.0], 10), np.arange(30.0), np.full(30, 0.1)
    features = np.tile([[0, 1], [1, 1]], (15, 1))
    assert np.isnan(numerai_corr(y, x))
    assert np.isnan(numerai_corr(x, m))
    assert metrics.correlation_contribution(y, x, m) == 0
    assert np.isnan(metrics.correlation_contribution(y, m, x))
    assert np.isnan(metrics.feature_neutral_corr(y, x, features))
    assert np.isnan(metrics.feature_neutral_corr(y, features[:, 0], features))
    assert np.isnan(feature_exposures(x, features)).all()
    assert np.isnan(metrics.max_feature_exposure(x, features))
    assert np.isnan(metrics.max_feature_exposure(m, features[:, 1:]))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, bool])
def test_dtypes_are_computed_with_as_float64(dtype):
    x, y = np.random.default_rng(0).integers(0, 2, size=(2, 40)).astype(dtype)
    assert numerai_corr(y, x) == numerai_corr(y.astype(float), x.astype(float))
    eras = pd.Series(["0001"] * 40)
    found = numerai_corr(pd.Series(y), pd.Series(x), eras=eras)
    assert found["0001"] == numerai_corr(y, x)


def test_categories_of_text_are_no_neutralizers():
    features = pd.DataFrame({"a": pd.Categorical([*"abab"])})
    with pytest.raises(ValueError, match="features must be numbers; got object"):
        metrics.feature_neutral_corr([0, 0, 1, 1], [1, 2, 3, 4], features)


def neutralizer_kinds():
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 5, size=(300, 40)).astype(np.int8)
    normal = rng.normal(size=(300, 5))
    kinds = {
        "columns in order": np.asfortranarray(wide),
        "constant columns": np.where(np.arange(40) % 4, np.int8(2), wide),
        "nothing but a constant": np.full((300, 1), 2, np.int8),
        "duplicates": np.hstack([wide, wide[:, :3]]),
        "sums": np.column_stack([wide, wide[:, 0].astype(int) + wide[:, 1]]),
        "one-hot": (wide[:, :2, None] == np.arange(5)).reshape(300, 10),
        "float32": rng.normal(size=(300, 20)).astype(np.float32),
        "negative integers": wide.astype(np.int16) * -500,
        "scales": rng.normal(size=(300, 6)) * 10.0 ** np.arange(-6, 6, 2),
        "large mean": normal + 1e4,
        "larger mean": normal + 1e6,
    }
    for e in range(1, 14, 2):  # that nearly depend on each other
        near = normal[:, :1] + 10.0**-e * rng.normal(size=(300, 1))
        kinds[f"near 1e-{e}"] = np.hstack([normal, near])
    return kinds


@pytest.mark.parametrize("kind", neutralizer_kinds())
def test_neutralize_takes_out_a_regression(kind):
    neutralizers = neutralizer_kinds()[kind]
    x = np.random.default_rng(1).normal(size=300)
    # Of columns as they are, the singular values that numerai-tools drops are needed.
    is_free = kind in ("scales", "large mean", "larger mean")
    plain = scale(neutralizers) if is_free else neutralizers
    # Where the singular values span 1e6, least squares itself knows fewer digits.
    is_hard = is_free or kind.startswith("near")
    for c in (1.0, 0.3, 0.0):
        result = neutralize(x, neutralizers, proportion=c)
        expected = neutral(x, plain, c)
        assert_allclose(result, expected, rtol=0, atol=1e-9 if is_hard else 1e-12)


def test_features_of_numerai_need_no_singular_values(monkeypatch):
    monkeypatch.setattr(np.linalg, "lstsq", None)
    not_there_yet = np.full_like(FEATURES, 2)  # as many in early eras
    neutralize(X, np.hstack([FEATURES, not_there_yet]), eras=ERAS)
    with pytest.raises(TypeError, match="not callable"):
        neutralize(X, np.hstack([FEATURES, FEATURES]), eras=ERAS)


def test_neutralize_works_era_by_era_and_ranks_are_spread():
    result = neutralize(X, FEATURES, proportion=0.8, eras=ERAS)
    for era in set(ERAS):
        own = era == ERAS
        alone = neutralize(X[own], FEATURES[own], proportion=0.8)
        assert_array_equal(result[own], alone)
        ranks = metrics.neutralize_ranks(rank(X[own]), FEATURES[own], proportion=0.6)
        expected = neutral(spread(X[own]), FEATURES[own], 0.6)
        assert_allclose(ranks, rank(expected.round(12)), rtol=0, atol=1e-12)


def test_features_become_floats_one_era_at_a_time():
    rng = np.random.default_rng(0)
    features = rng.integers(0, 5, size=(40 * 200, 100), dtype=np.int8)
    eras, x = np.repeat(np.arange(40), 200), rng.normal(size=40 * 200)
    one_era = 200 * 100 * 8
    numerai_corr(x, x)  # imports what it needs
    for call in (
        lambda: neutralize(x, features, eras=eras),
        lambda: metrics.feature_neutral_corr(x, x, features, eras=eras),
        lambda: feature_exposures(x, features, eras=eras),
    ):
        assert peak_memory(call)[1] < 4 * one_era


SERIES = pd.Series([3.0, 1.0, 2.0, 4.0, 6.0, 5.0])
x, y, e = SERIES.to_numpy(), np.array([0, 0.5, 1, 1, 0.5, 0]), np.array([*"aaabbb"])
F = np.array([[0, 1], [1, 0], [2, 2], [0, 0], [1, 3], [2, 1]])
NAN_X, NAN_F = np.where(x == 6, np.nan, x), np.where(F == 3, np.nan, F)
NAN_Y, ODD_X = np.where(e == "b", [[np.nan], [0.5]], [y, x])
TABLE = pd.DataFrame(NAN_F, columns=["f", "g"])

BAD = [
    ("^Input y_pred contains NaN", lambda: numerai_corr(y, NAN_X, eras=e)),
    ("^y_true is NaN in 3 of 3 rows of era b, and at most 20% may be: leave",
     lambda: numerai_corr(NAN_Y, x, eras=e)),
    ("^meta_model or y_true is NaN in 3 of 3 rows of era b",
     lambda: metrics.correlation_contribution(y, x, NAN_Y, eras=e)),
    ("^eras has 5 labels, but y_pred has 6 rows",
     lambda: numerai_corr(y, x, eras=e[:5])),
    (r"^y_pred must be one-dimensional; got shape \(6, 2\)",
     lambda: numerai_corr(y, F)),
    ("^y_pred is masked: set", lambda: numerai_corr(y, np.ma.masked_equal(x, 3))),
    ("^max_missing_share == 1, must be < 1",
     lambda: numerai_corr(y, x, max_missing_share=1)),
    ("^max_missing_share is NaN", lambda: numerai_corr(y, x, max_missing_share=np.nan)),
    (r"^proportion == 1\.5, must be <= 1", lambda: neutralize(x, F, proportion=1.5)),
    ("^proportion is NaN: pass a", lambda: neutralize(x, F, proportion=np.nan)),
    ("^features is NaN or infinite in 1 of 2 columns in rows of era b, the first '1'",
     lambda: metrics.feature_neutral_corr(y, x, NAN_F, eras=e)),
    ("^neutralizers is NaN or infinite in 1 of 2 columns in rows, the first 'g': fill",
     lambda: neutralize(x, TABLE)),
    ("^Nothing is left of the predictions of era b: they are all equal, or",
     lambda: neutralize(ODD_X, F[:, :1], proportion=0.5, eras=e)),
    (r"^Nothing is left of the predictions: .* or the neutralizers \(6\) explain them",
     lambda: neutralize(x, np.eye(6))),
    (r"^ranks must be strictly between 0 and 1.* got 0\.0 to 0\.5",
     lambda: metrics.gaussianize([0.5, 0.0])),
    ("^y_pred, y_true and eras have different indexes, but rows are matched by",
     lambda: numerai_corr(SERIES, SERIES[::-1])),
    ("have different indexes", lambda: numerai_corr(y, SERIES, eras=SERIES[::-1])),
    # Scores are named by their function.
    ("(?i)^numerai_corr is undef", lambda: numerai_corr(y, 0 * x, eras=e).mean()),
    ("(?i)^feature_neutral_corr is undef",
     lambda: metrics.feature_neutral_corr(y, 0 * x, F, eras=e).mean()),
]  # fmt: skip


@pytest.mark.parametrize("n_values", [5, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_targets_and_predictions_the_other_way_round_are_refused(n_values, dtype):
    """numerai-tools takes predictions first."""
    rng = np.random.default_rng(0)
    targets = (rng.integers(n_values, size=60) / (n_values - 1)).astype(dtype)
    features, meta = rng.integers(5, size=(60, 3)), rng.normal(size=60)
    found = metrics.rank_normalize(rng.normal(size=60))
    missing = np.where(np.arange(60) < 3, np.nan, targets)
    swapped = "^y_pred has the few values of Numerai's targets, and y_true 60 distinct"
    for score, more in (
        (numerai_corr, ()), (metrics.correlation_contribution, (meta,)),
        (metrics.feature_neutral_corr, (features,)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=swapped):
            score(found, targets, *more)
        if score is metrics.correlation_contribution:  # numerai-tools' order
            with pytest.raises(ValueError, match=r"^meta_model has the few values"):
                score(found, meta, missing)
        # Few values are no sign of a mistake if targets have few as well.
        for y_true in (targets, missing):
            assert np.isfinite(score(y_true, found, *more))
            assert np.isfinite(score(y_true, targets[::-1], *more))
    # Nor are a vote, a constant, ranks, or whole numbers, of unusual targets.
    for y_pred in (targets > 0.5, np.ones(60), found, targets * 12):
        numerai_corr(found[::-1], y_pred)


@pytest.mark.parametrize(("message", "call"), BAD)
def test_bad_input_is_named(message, call):
    with pytest.raises(ValueError, match=message):
        call()
