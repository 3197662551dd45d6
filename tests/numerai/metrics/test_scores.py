"""Numerai's scores: numerai-tools gets the same, era by era."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numerai_tools import scoring
from numerai_tools.signals import churn as churn_of_numerai_tools
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata

from benchmarks import numerai_metrics as benchmarks
from helpers.numerai.metric_cases import (
    contribution,
    corr,
    drop_rows,
    feature_neutral,
    make_case,
)
from sklearn_era.metrics import EraScores, aggregate_era_scores
from sklearn_era.numerai.metrics import (
    churn,
    correlation_contribution,
    feature_exposures,
    feature_neutral_corr,
    gaussianize,
    match_ids,
    max_feature_exposure,
    numerai_corr,
    rank_normalize,
)
from sklearn_era.numerai.metrics.neutralization import neutralize

CASE = make_case(20, missing=0.12)
SMALL = make_case(4, n_features=3, seed=1)
finite = st.integers(-20, 20).map(lambda i: i / 4)


def assert_scores(result, table, score):
    """Compare with a score of the rows of each era."""
    expected = {era: score(rows) for era, rows in table.groupby("eras")}
    assert isinstance(result, EraScores)
    assert result.eras.tolist() == sorted(expected)
    assert_allclose(result.scores, [*expected.values()], rtol=0, atol=1e-12)


def test_corr_equals_numerai_tools():
    table = CASE.table()
    result = numerai_corr(CASE.predictions, CASE.targets, CASE.eras)
    assert_scores(result, table, lambda rows: corr(rows.predictions, rows.targets))
    assert result.n_samples.tolist() == table.dropna().groupby("eras").size().tolist()
    assert np.isnan(CASE.targets).sum() > 100
    sharpe = aggregate_era_scores(result, "sharpe")
    assert_allclose(sharpe, scoring.sharpe_ratio(pd.Series(result.scores)), rtol=1e-12)


def test_contribution_equals_numerai_tools():
    table = CASE.table()
    table.iloc[::80, table.columns.get_loc("meta_model")] = np.nan
    names = ["predictions", "meta_model", "targets"]
    result = correlation_contribution(*(table[x] for x in names), table.eras)
    assert_scores(result, table, lambda rows: contribution(*(rows[x] for x in names)))
    assert result.n_samples.sum() == len(table.dropna())


def sorted_feature_neutral(rows, features, targets):
    predictions = rows.predictions.sort_index()
    return feature_neutral(predictions, features.loc[predictions.index], targets)


def test_feature_neutral_corr_equals_numerai_tools():
    features = pd.DataFrame(CASE.features, CASE.ids)
    result = feature_neutral_corr(
        CASE.predictions, CASE.targets, CASE.features, CASE.eras
    )
    assert_scores(
        result,
        CASE.table(),
        lambda rows: sorted_feature_neutral(rows, features, rows.targets),
    )


def test_scores_of_unequal_ids_equal_numerai_tools():
    table = CASE.table()
    predictions = drop_rows(table.predictions, 0.02, 1)
    predictions.iloc[::100] = np.nan
    meta_model = drop_rows(table.meta_model, 0.01, 2)
    # Targets are missing in a third of the eras: here, some of their rows are too.
    whole = table.groupby("eras").targets.transform(lambda t: t.notna().all())
    targets = pd.concat(
        [drop_rows(table.targets[whole], 0.04, 3), table.targets[~whole]]
    )

    def of(rows, *series):
        return [one[one.index.isin(rows.index)] for one in series]

    rows = match_ids(predictions, targets, eras=table.eras)
    assert rows.meta_model is None
    assert_array_equal(rows.ids, np.sort(rows.ids))
    assert_array_equal(rows.eras, table.eras[rows.ids])
    result = numerai_corr(
        rows.predictions, rows.centered_targets, rows.eras, center_targets=False
    )
    assert_scores(result, table, lambda era: corr(*of(era, predictions, targets)))
    rows = match_ids(predictions, targets, meta_model=meta_model, eras=table.eras)
    result = correlation_contribution(
        rows.predictions, rows.meta_model, rows.targets, rows.eras
    )
    assert_scores(
        result,
        table,
        lambda era: contribution(*of(era, predictions, meta_model, targets)),
    )


def test_feature_neutral_corr_of_unequal_ids_is_composed():
    table = SMALL.table()[["eras", "predictions", "targets"]].dropna()
    features = pd.DataFrame(SMALL.features, SMALL.ids).loc[table.index]
    targets = drop_rows(table.targets, 0.1, 0)
    ranks = gaussianize(rank_normalize(table.predictions, table.eras))
    neutral = neutralize(ranks, features, eras=table.eras)
    rows = match_ids(pd.Series(neutral, table.index), targets, eras=table.eras)
    result = numerai_corr(
        rows.predictions, rows.centered_targets, rows.eras, center_targets=False
    )
    assert_scores(
        result,
        table,
        lambda era: sorted_feature_neutral(
            era, features, targets[targets.index.isin(era.index)]
        ),
    )


@pytest.mark.parametrize("lacking", range(8))
@pytest.mark.parametrize("which", ["predictions", "meta_model", "targets"])
def test_overlap_of_ids_is_demanded_as_by_numerai_tools(lacking, which):
    rng = np.random.default_rng(lacking)
    ids = [f"n{i:02d}" for i in range(25)]
    names = ("predictions", "meta_model", "targets")
    series = {name: pd.Series(rng.random(25), ids, name=name) for name in names}
    series[which] = series[which].iloc[lacking:]
    others = [s for name, s in series.items() if name != which]
    others[0].iloc[-1] = np.nan
    try:
        expected = contribution(*series.values())
    except AssertionError:
        message = r"\d+ of 2\d ids \(\d\d\.\d%\) match .*80%"
        with pytest.raises(ValueError, match=message):
            match_ids(**series)
        return
    rows = match_ids(**series)
    ours = correlation_contribution(rows.predictions, rows.meta_model, rows.targets)
    assert_allclose(ours, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_missing", [0, 4, 5, 6, 25])
def test_missing_targets_are_left_out_as_by_numerai_tools(n_missing):
    rng = np.random.default_rng(0)
    x, y = pd.Series(rng.random(25)), pd.Series(rng.random(25))
    y[rng.permutation(25)[:n_missing]] = np.nan
    if n_missing > 5:
        with pytest.raises(AssertionError):
            corr(x, y)
        with pytest.raises(ValueError, match=rf"^targets: {n_missing} of 25 rows \("):
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


def test_churn_equals_numerai_tools():
    result = churn(SMALL.predictions, SMALL.meta_model, SMALL.eras)
    assert_scores(
        result,
        SMALL.table(),
        lambda rows: churn_of_numerai_tools(rows.predictions, rows.meta_model),
    )


@given(st.lists(finite, min_size=1, max_size=30))
def test_ranks_equal_those_of_pandas(values):
    ranks = rank_normalize(values)
    series = pd.Series(values, dtype=float)
    assert_array_equal(ranks, (series.rank() - 0.5) / len(values))
    assert_array_equal(ranks, (rankdata(values) - 0.5) / len(values))
    assert_allclose(ranks.mean(), 0.5)
    expected = scoring.gaussian(pd.Series(ranks).to_frame()).iloc[:, 0]
    assert_allclose(gaussianize(ranks), expected, rtol=0, atol=1e-15)


rows_of_eras = st.lists(
    st.tuples(st.integers(0, 3), finite, finite, finite), min_size=8, max_size=60
)


@given(rows_of_eras, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    results = []
    for some in (rows, shuffled):
        eras, x, m, y = map(np.array, zip(*some, strict=True))
        results.append(
            [
                numerai_corr(x, y, eras),
                correlation_contribution(x, m, y, eras),
                churn(x, m, eras),
                max_feature_exposure(x, m[:, None], eras),
            ]
        )
    for one, other in zip(*results, strict=True):
        assert_array_equal(one.eras, other.eras)
        assert_allclose(one.scores, other.scores, rtol=0, atol=1e-12)


@given(rows_of_eras)
def test_scores_see_only_the_order_of_predictions_and_ignore_labels(rows):
    eras, x, m, y = map(np.array, zip(*rows, strict=True))
    names = np.array(["d", "c", "b", "a"])[eras]
    for score, others in ((numerai_corr, [y]), (correlation_contribution, [m, y])):
        result, cubed = score(x, *others, eras), score(x**3, *others, names)
        assert_array_equal(result.scores, cubed.scores[::-1])


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
    assert np.isnan(churn(x, m))
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", [benchmarks.Score, benchmarks.Ratio])
@pytest.mark.parametrize("metric", benchmarks.Score.params[0])
def test_asv_benchmarks_run(kind, metric):
    point = (metric, 3, 60)
    benchmark = kind()
    benchmark.setup(*point)
    for name in dir(kind):
        if re.match("time_|peakmem_|track_", name):
            result = getattr(benchmark, name)(*point)
            assert not name.startswith("track_") or result > 0
            assert not name.startswith("track_") or getattr(benchmark, name).unit
