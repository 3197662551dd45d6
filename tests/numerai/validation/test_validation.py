"""Validation by era: the right rows, the scores of numerai-tools, and what is said."""

from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numerai_tools import scoring
from scipy.stats import norm, rankdata

from helpers.grids import slow
from helpers.numerai.demo import Constant
from sklearn_era.metrics import EraScores
from sklearn_era.numerai.data import feature_blocks
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.validation.scoring import summarize, validate

BENCHMARK = "v53_lgbm_amber20"
META_MODEL = "numerai_meta_model"


def others(demo):
    """The files that are not needed."""
    return {
        "meta_model": demo.path("meta_model"),
        "benchmark_models": demo.path("validation_benchmark_models"),
        "benchmark_column": BENCHMARK,
    }


def run(demo, **changes):
    parameters = {
        "validation": demo.path("validation"),
        "features": demo.features,
        "target": demo.data.target,
        "after_era": demo.record.last_era,
        "purge": demo.record.purge,
    }
    estimator = changes.pop("estimator", demo.estimator)
    return validate(estimator, **(parameters | changes))


def assert_same_scores(one, other):
    for metric, expected in other.scores.items():
        found, close = one.scores[metric], {"abs": 1e-12, "nan_ok": True}
        assert np.array_equal(found.eras, expected.eras)
        assert found.scores == pytest.approx(expected.scores, **close)


@pytest.mark.parametrize(
    ("changes", "first", "last"),
    [
        # Trained to 0030, 8 purged, and the newest 4 of 0054 are unknown.
        ({}, 39, 50),
        ({"after_era": None, "purge": 0}, 31, 50),
        ({"target": "target_amber_60"}, 39, 42),
    ],
)
def test_eras_after_the_purge_with_known_targets_are_scored(demo, changes, first, last):
    result, n_eras = run(demo, **changes), last - first + 1
    corr = result.scores["corr"]
    assert corr.eras.tolist() == [f"{era:04d}" for era in range(first, last + 1)]
    assert corr.n_samples.tolist() == [60] * n_eras
    assert result.n_rows == 60 * n_eras
    assert result.target == changes.get("target", demo.data.target)


def spoiled(column, value, n_rows):
    """A change that replaces numbers of a column, so many of each era."""
    rng = np.random.default_rng(len(column))  # other rows of each column

    def change(frame):
        for era, n in n_rows.items():
            rows = frame.index[frame["era"] == era]
            frame.loc[rng.permutation(rows)[:n], column] = value
        return frame

    return change


def scores_of_an_era(prediction, meta, benchmark, targets, features):
    """Those of numerai-tools, but for those that it refuses for too few rows."""
    scores = {}
    for metric, function, *others in (
        ("corr", scoring.numerai_corr, targets),
        ("mmc", scoring.correlation_contribution, meta, targets),
        ("bmc", scoring.correlation_contribution, benchmark, targets),
        ("fnc", scoring.feature_neutral_corr, features, targets),
    ):
        with suppress(AssertionError):
            scores[metric] = float(np.ravel(function(prediction, *others))[0])
    return scores


# Rows that lack a target, and those that lack the other model's prediction.
GAPS = (
    {"0040": 9, "0041": 12, "0042": 3, "0043": 13},
    {"0040": 9, "0042": 3, "0044": 12, "0045": 13},
)


@pytest.mark.filterwarnings("ignore")  # of numerai-tools' own
@pytest.mark.parametrize(
    ("gaps", "proportion"), [(({}, {}), 0.0), (GAPS, 0.5), slow(GAPS, 0.0)]
)
def test_scores_are_those_of_numerai_tools(demo, changed, gaps, proportion):
    """All rows count in ranks and regressions; a fifth of them may lack something."""
    few, target = demo.features[:5], demo.data.target
    path = changed(spoiled(target, np.nan, gaps[0]))
    meta_path = changed(spoiled(META_MODEL, np.nan, gaps[1]), "meta_model")
    neutralized = {"neutralize_proportion": proportion, "neutralize_features": few[:2]}
    files = {**others(demo), "validation": path, "meta_model": meta_path}
    result = run(demo, **files, **neutralized, fnc_features=few)
    assert result.skipped == {}
    assert result.neutralize_proportion == proportion

    frame, meta = pd.read_parquet(path), pd.read_parquet(meta_path)[META_MODEL]
    benchmark = demo.frame("validation_benchmark_models")[BENCHMARK]
    frame = frame[(frame["era"] >= "0039") & (frame["era"] <= "0050")]
    expected: dict = {"corr": {}, "mmc": {}, "bmc": {}, "fnc": {}}
    n_rows: dict = {}
    for era, unsorted in frame.groupby("era"):
        one = unsorted.sort_index()  # as numerai-tools requires
        targets = one[target].astype("float64").rename("target")
        predicted = demo.estimator.predict(one[demo.features].to_numpy())
        ranks = norm.ppf((rankdata(predicted) - 0.5) / len(one))
        submitted = pd.DataFrame({"prediction": ranks}, index=one.index)
        if proportion:
            neutralizers = one[few[:2]].astype("float64")
            submitted = scoring.neutralize(submitted, neutralizers, proportion)
        models = [series.reindex(one.index) for series in (meta, benchmark)]
        features = one[few].astype("float64")
        scores = scores_of_an_era(submitted, *models, targets, features)
        for metric, score in scores.items():
            expected[metric][era] = score
        n_rows[era] = int((models[0].notna() & targets.notna()).sum())

    left_out = {name: n_rows.keys() - expected[name].keys() for name in expected}
    assert left_out["corr"] == ({"0043"} if gaps is GAPS else set())
    assert left_out["mmc"] == ({"0040", "0043", "0045"} if gaps is GAPS else set())
    for metric, by_era in expected.items():
        found = result.scores[metric]
        assert found.eras.tolist() == list(by_era)
        assert found.scores == pytest.approx(list(by_era.values()), abs=1e-9)
    mmc, corr = result.scores["mmc"], result.scores["corr"]
    assert mmc.n_samples.tolist() == [n_rows[era] for era in mmc.eras]
    assert corr.n_samples.tolist() == [60 - gaps[0].get(x, 0) for x in corr.eras]
    assert result.n_rows == corr.n_samples.sum()
    note = "1 eras were left out, as less than 80% of their rows have the target: 0043."
    assert (note in result.notes) == (gaps is GAPS)


def test_infinite_numbers_are_refused_with_their_file(demo, changed):
    for name, column, said in (
        ("validation", demo.data.target, "7 rows"),
        ("meta_model", META_MODEL, "era 0045"),
    ):
        path = changed(spoiled(column, np.inf, {"0045": 7}), name)
        with pytest.raises(DataError, match=rf"{name}_2\..* is infinite in {said}"):
            run(demo, **{name: path})


def test_exposures_are_correlations_of_ranks_and_means_over_eras(demo):
    result, frame = run(demo), demo.frame("validation")
    exposures = []
    for era in result.scores["max_feature_exposure"].eras:
        rows = frame[frame["era"] == era]
        ranks = rankdata(demo.estimator.predict(rows[demo.features].to_numpy()))
        features = rows[demo.features].to_numpy(dtype=float)
        exposures.append([np.corrcoef(ranks, column)[0, 1] for column in features.T])
    largest = result.scores["max_feature_exposure"].scores
    assert largest == pytest.approx(np.abs(exposures).max(axis=1), abs=1e-9)
    means = dict(zip(demo.features, np.mean(exposures, axis=0), strict=True))
    assert result.exposures == pytest.approx(means, abs=1e-12)
    assert (np.diff(np.abs(list(result.exposures.values()))) <= 0).all()
    summary = result.summary["max_feature_exposure"]
    assert summary["sharpe"] is summary["max_drawdown"] is None
    assert summary["mean"] == pytest.approx(largest.mean())


STD = np.std([0.03, -0.02, 0.02])


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.03, np.nan, -0.02, 0.02], (3, 0.01, STD, 0.01 / STD, 0.02)),
        ([0.1], (1, 0.1, 0.0, None, 0.0)),
        ([np.nan], (0, None, None, None, None)),
    ],
)
def test_summary_is_of_the_defined_scores(scores, expected):
    n = len(scores)
    summary = summarize(EraScores(np.arange(n), np.array(scores), np.full(n, 9)))
    names = ("n_eras", "mean", "std", "sharpe", "max_drawdown")
    assert [summary[name] for name in names] == pytest.approx(expected)


def test_blocks_do_not_depend_on_row_groups_or_batches(demo, changed, monkeypatch):
    expected = run(demo)
    path = changed(lambda frame: frame, row_group_size=77)
    columns = feature_blocks.ParquetColumns
    original = columns.iter_batches

    def in_small_batches(self, names, wanted=None):
        for first, batch in original(self, names, wanted):
            for start in range(0, batch.num_rows, 13):
                yield first + start, batch.slice(start, 13)

    monkeypatch.setattr(columns, "iter_batches", in_small_batches)
    assert_same_scores(run(demo, validation=path), expected)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        # The purge counts numbers, and not the eras of the file.
        ("validation", lambda x: x[~x["era"].isin(["0031", "0033", "0035"])]),
        # Columns are found by name, and ids in a column.
        ("validation", lambda x: x[x.columns[::-1]].reset_index()),
        # Rows of the meta model are matched by id.
        ("meta_model", lambda x: x[::-1]),
    ],
)
def test_other_files_with_the_same_rows_have_the_same_scores(
    demo, changed, name, change
):
    result = run(demo, **{**others(demo), name: changed(change, name)})
    assert_same_scores(result, run(demo, **others(demo)))


def test_features_stay_int8_an_era_at_a_time_and_progress_is_told(demo):
    seen, told = [], []

    def predict(X):
        seen.append((X.dtype, X.shape))
        return demo.estimator.predict(X)

    watching = SimpleNamespace(predict=predict)
    result = run(demo, estimator=watching, on_progress=lambda *x: told.append(x))
    assert_same_scores(result, run(demo))
    assert seen == [(np.dtype(np.int8), (60, 20))] * 12
    assert told == [("validation eras", i, 12) for i in range(1, 13)]


def test_a_model_gets_named_columns_and_missing_features(demo, named, changed):
    name = demo.features[0]
    path = changed(lambda x: x.assign(**{name: x[name].mask(x["era"] == "0045")}))
    for changes in ({"estimator": named}, {"validation": path}):
        assert np.isfinite(run(demo, **changes).scores["corr"].scores).all()
    with pytest.raises(DataError, match=f"0045: 60 values of 1 feature.*{name}"):
        run(demo, validation=path, fnc_features=demo.features[:2])


def test_what_is_not_there_is_skipped_with_a_reason(demo, changed):
    result = run(demo)
    assert set(result.scores) == {"corr", "max_feature_exposure"}
    assert set(result.skipped) == {"mmc", "bmc", "fnc"}
    assert "no meta model's file" in result.skipped["mmc"]
    path = demo.path("validation_benchmark_models")
    result = run(demo, benchmark_models=path, benchmark_column="v53_lgbm_cyrus20")
    assert "no column 'v53_lgbm_cyrus20'; it has v53_lgbm" in result.skipped["bmc"]
    assert "bmc" not in result.scores
    assert "was named" in run(demo, benchmark_models=path).skipped["bmc"]
    none = changed(lambda meta: meta[meta["era"] >= "0051"], "meta_model")
    result = run(demo, meta_model=none)
    assert "none of the eras that were scored" in result.skipped["mmc"]
    # A meta model of some eras is noted.
    later = changed(lambda meta: meta[meta["era"] >= "0045"], "meta_model")
    result = run(demo, meta_model=later)
    assert result.scores["mmc"].eras.tolist() == [f"{i:04d}" for i in range(45, 51)]
    (note,) = result.notes
    assert note == "mmc is of 6 of the 12 eras: those that meta_model_2.parquet has."
    assert result.summary["mmc"]["n_eras"] == 6


def test_scores_too_good_to_be_true_are_noted(demo, changed):
    name, target = demo.features[0], demo.data.target
    leak = changed(lambda x: x.assign(**{name: (4 * x[target].fillna(0)).astype("i1")}))
    first = SimpleNamespace(predict=lambda X: X[:, 0].astype(float))
    (note,) = run(demo, estimator=first, validation=leak).notes
    assert "The mean CORR is 0.99" in note
    assert "look for a leak" in note
    assert run(demo, estimator=demo.estimator).notes == []


def test_constant_predictions_are_undefined_and_noted(demo):
    result = run(demo, estimator=Constant(), neutralize_proportion=0.5)
    assert np.isnan(result.scores["corr"].scores).all()
    assert result.summary["corr"]["mean"] is None
    assert result.summary["corr"]["n_eras"] == 0
    assert "corr is undefined in 12 of 12 eras (0039" in "\n".join(result.notes)
    assert np.isnan(list(result.exposures.values())).all()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"target": "target_none"}, DataError, "no column 'target_none'"),
        ({"features": ["feature_none"]}, DataError, "lacks 1 of 1 model features"),
        ({"features": []}, ConfigError, "features is empty"),
        ({"fnc_features": ["x", "y"]}, DataError, r"2 of 2 .* for FNC \(first: x"),
        ({"purge": -1}, ConfigError, "purge = -1"),
        ({"neutralize_proportion": 2}, ConfigError, "neutralize_proportion = 2"),
        ({"after_era": "X"}, ConfigError, "after_era = 'X' is no era"),
        ({"after_era": "0050"}, DataError, "no era after 0050 and 8 purged ones"),
        ({"after_era": "0042"}, DataError, "of 4 no rows, or too few, have it"),
        ({"validation": "none.parquet"}, DataError, "cannot be read"),
    ],
)
def test_bad_arguments_are_named(demo, changes, error, message):
    with pytest.raises(error, match=message):
        run(demo, **changes)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("validation", lambda x: x.assign(era="X"), "era 'X' is no number"),
        ("validation", lambda x: x.sort_index(), "not lie together: sort the file by"),
        ("validation", lambda x: x.astype({x.columns[2]: str}), "'feature.* not num"),
        ("meta_model", lambda x: pd.concat([x, x[:1]]), "more than once"),
    ],
)
def test_files_of_another_form_are_refused(demo, changed, name, change, message):
    with pytest.raises(DataError, match=message):
        run(demo, **{name: changed(change, name)})


def test_a_damaged_file_is_refused(demo, changed):
    path = changed(lambda frame: frame)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(DataError, match="cut off"):
        run(demo, validation=path)
