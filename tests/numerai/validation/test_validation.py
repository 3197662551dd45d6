"""Validation by era: the right rows, the scores of numerai-tools, and what is said."""

import numpy as np
import pandas as pd
import pytest
from numerai_tools import scoring
from scipy.stats import norm, rankdata

from helpers.numerai.demo import Constant, SmallDemo, small_demo
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.metrics import EraScores
from sklearn_era.numerai.data import feature_blocks
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.validation.scoring import summarize, validate

BENCHMARK = "v53_lgbm_amber20"
META_MODEL = "numerai_meta_model"


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> SmallDemo:
    return small_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture
def changed(demo, tmp_path):
    """Write the validation file, or another one, with a change."""

    def write(change, name="validation", **options):
        path = tmp_path / f"{name}_2.parquet"
        change(demo.frame(name)).to_parquet(path, **options)
        return path

    return write


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
    for metric in other.scores:
        assert np.array_equal(one.scores[metric].eras, other.scores[metric].eras)
        assert one.scores[metric].scores == pytest.approx(
            other.scores[metric].scores, abs=1e-12, nan_ok=True
        )


# --- which rows


def test_eras_after_the_purge_with_known_targets_are_scored(demo):
    result = run(demo)
    # Trained to 0030, 8 purged, and the newest 4 of 0054 are unknown.
    expected = [f"{era:04d}" for era in range(39, 51)]
    assert result.scores["corr"].eras.tolist() == expected
    assert result.scores["corr"].n_samples.tolist() == [60] * 12
    assert result.n_rows == 720
    assert result.target == demo.data.target


def test_without_a_last_era_all_are_scored(demo):
    result = run(demo, after_era=None, purge=0)
    assert result.scores["corr"].eras.tolist()[0] == "0031"
    assert result.scores["corr"].eras.size == 20


def test_each_target_is_known_as_far_as_its_own_horizon(demo):
    result = run(demo, target="target_amber_60")
    assert result.scores["corr"].eras.tolist() == ["0039", "0040", "0041", "0042"]


# --- the scores


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
        try:
            scores[metric] = float(np.ravel(function(prediction, *others))[0])
        except AssertionError:
            continue
    return scores


# Rows that lack a target, and those that lack the other model's prediction.
GAPS = (
    {"0040": 9, "0041": 12, "0042": 3, "0043": 13},
    {"0040": 9, "0042": 3, "0044": 12, "0045": 13},
)


@pytest.mark.filterwarnings("ignore")  # of numerai-tools' own
@pytest.mark.parametrize(
    ("gaps", "proportion"),
    [
        (({}, {}), 0.0),
        (GAPS, 0.5),
        pytest.param(GAPS, 0.0, marks=pytest.mark.slow),
    ],
)
def test_scores_are_those_of_numerai_tools(demo, changed, gaps, proportion):
    """All rows count in ranks and regressions; a fifth of them may lack something."""
    few, target = demo.features[:5], demo.data.target
    path = changed(spoiled(target, np.nan, gaps[0]))
    meta_path = changed(spoiled(META_MODEL, np.nan, gaps[1]), "meta_model")
    result = run(
        demo,
        validation=path,
        meta_model=meta_path,
        benchmark_models=demo.path("validation_benchmark_models"),
        benchmark_column=BENCHMARK,
        fnc_features=few,
        neutralize_proportion=proportion,
        neutralize_features=few[:2],
    )
    assert result.skipped == {}

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
        others = [series.reindex(one.index) for series in (meta, benchmark)]
        features = one[few].astype("float64")
        scores = scores_of_an_era(submitted, *others, targets, features)
        for metric, score in scores.items():
            expected[metric][era] = score
        n_rows[era] = int((others[0].notna() & targets.notna()).sum())

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
    path = changed(spoiled(demo.data.target, np.inf, {"0045": 7}))
    with pytest.raises(DataError, match=r"validation_2\..* is infinite in 7 rows"):
        run(demo, validation=path)
    path = changed(spoiled(META_MODEL, np.inf, {"0045": 7}), "meta_model")
    with pytest.raises(DataError, match=r"meta_model_2\..* is infinite in era 0045"):
        run(demo, meta_model=path)


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


def test_summary_is_of_the_defined_scores():
    eras = np.array(["0001", "0002", "0003", "0004"])
    values = np.array([0.03, np.nan, -0.02, 0.02])
    summary = summarize(EraScores(eras, values, np.full(4, 9)))
    assert summary["n_eras"] == 3
    assert summary["mean"] == pytest.approx(0.01)
    assert summary["std"] == pytest.approx(np.std([0.03, -0.02, 0.02]))
    assert summary["sharpe"] == pytest.approx(0.01 / np.std([0.03, -0.02, 0.02]))
    assert summary["max_drawdown"] == pytest.approx(0.02)


def test_summary_of_one_era_has_no_sharpe_and_of_none_nothing():
    one = summarize(EraScores(np.array(["0001"]), np.array([0.1]), np.array([9])))
    assert one["sharpe"] is None
    assert (one["mean"], one["std"], one["max_drawdown"]) == (0.1, 0.0, 0.0)
    none = summarize(EraScores(np.array(["0001"]), np.array([np.nan]), np.array([9])))
    assert none["n_eras"] == 0
    assert {none[x] for x in ("mean", "std", "sharpe", "max_drawdown")} == {None}


def test_neutralized_predictions_have_the_corr_of_fnc(demo):
    """The one takes features out before scoring, the other while scoring."""
    few = demo.features[:3]
    plain = run(demo, fnc_features=few)
    neutral = run(demo, neutralize_proportion=1.0, neutralize_features=few)
    assert neutral.neutralize_proportion == 1.0
    assert neutral.scores["corr"].scores == pytest.approx(
        plain.scores["fnc"].scores, abs=1e-9
    )


# --- how the file lies


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
    others = {
        "meta_model": demo.path("meta_model"),
        "benchmark_models": demo.path("validation_benchmark_models"),
        "benchmark_column": BENCHMARK,
    }
    result = run(demo, **{**others, name: changed(change, name)})
    assert_same_scores(result, run(demo, **others))


def test_features_stay_int8_an_era_at_a_time(demo):
    seen = []

    class Watching:
        def predict(self, X):
            seen.append((X.dtype, X.shape))
            return demo.estimator.predict(X)

    assert_same_scores(run(demo, estimator=Watching()), run(demo))
    assert seen == [(np.dtype(np.int8), (60, 20))] * 12


def test_model_of_a_frame_gets_named_columns(demo):
    train = demo.frame("train")
    named = HistGradientBoostingRegressor(max_iter=5, early_stopping=False)
    named.fit(train[demo.features], train[demo.data.target])
    result = run(demo, estimator=named)
    assert np.isfinite(result.scores["corr"].scores).all()


def test_missing_features_are_left_to_the_model(demo, changed):
    name = demo.features[0]
    path = changed(lambda x: x.assign(**{name: x[name].mask(x["era"] == "0045")}))
    result = run(demo, validation=path)
    assert np.isfinite(result.scores["corr"].scores).all()
    with pytest.raises(DataError, match=f"0045: 60 values of 1 feature.*{name}"):
        run(demo, validation=path, fnc_features=demo.features[:2])


def test_progress_is_told_after_each_era(demo):
    told = []
    run(demo, on_progress=lambda *progress: told.append(progress))
    assert told == [("validation eras", i, 12) for i in range(1, 13)]


# --- what is skipped, noted, refused


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


def test_meta_model_of_some_eras_is_noted(demo, changed):
    later = changed(lambda meta: meta[meta["era"] >= "0045"], "meta_model")
    result = run(demo, meta_model=later)
    assert result.scores["mmc"].eras.tolist() == [f"{i:04d}" for i in range(45, 51)]
    assert result.notes == [
        "mmc is of 6 of the 12 eras: those that meta_model_2.parquet has."
    ]
    assert result.summary["mmc"]["n_eras"] == 6


def test_scores_too_good_to_be_true_are_noted(demo, changed):
    name, target = demo.features[0], demo.data.target
    leak = changed(lambda x: x.assign(**{name: (4 * x[target].fillna(0)).astype("i1")}))

    class First:
        def predict(self, X):
            return X[:, 0].astype(float)

    result = run(demo, estimator=First(), validation=leak)
    (note,) = result.notes
    assert "The mean CORR is 0.99" in note
    assert "look for a leak" in note
    assert run(demo, estimator=demo.estimator).notes == []


def test_constant_predictions_are_undefined_and_noted(demo):
    result = run(demo, estimator=Constant(), neutralize_proportion=0.5)
    assert np.isnan(result.scores["corr"].scores).all()
    assert result.summary["corr"]["mean"] is None
    assert result.summary["corr"]["n_eras"] == 0
    assert any("corr is undefined in 12 of 12 eras (0039" in x for x in result.notes)
    assert np.isnan(list(result.exposures.values())).all()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"target": "target_none"}, DataError, "no column 'target_none'"),
        ({"features": ["feature_none"]}, DataError, "lacks 1 of 1 model features"),
        ({"features": []}, ConfigError, "features is empty"),
        (
            {"fnc_features": ["x", "y"]},
            DataError,
            r"2 of 2 features for FNC \(first: x",
        ),
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
        (
            "validation",
            lambda x: x.assign(**dict.fromkeys(x.filter(like="feature"), "a")),
            "column 'feature_.*' .* is not numeric",
        ),
        ("meta_model", lambda x: pd.concat([x, x[:1]]), "more than once"),
    ],
)
def test_files_of_another_form_are_refused(demo, changed, name, change, message):
    with pytest.raises(DataError, match=message):
        run(demo, **{name: changed(change, name)})


def test_a_damaged_file_is_refused(demo, tmp_path):
    path = tmp_path / "short.parquet"
    path.write_bytes(demo.path("validation").read_bytes()[:-50])
    with pytest.raises(DataError, match="cut off"):
        run(demo, validation=path)
