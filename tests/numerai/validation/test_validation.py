"""Validation by era: the right rows, the scores of numerai-tools, and what is said."""

import numpy as np
import pytest
from scipy.stats import norm, rankdata

pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

from helpers.numerai.demo import Constant, SmallDemo, small_demo  # noqa: E402
from sklearn_era.ensemble import HistGradientBoostingRegressor  # noqa: E402
from sklearn_era.metrics import EraScores  # noqa: E402
from sklearn_era.numerai.data import feature_blocks  # noqa: E402
from sklearn_era.numerai.errors import ConfigError, DataError  # noqa: E402
from sklearn_era.numerai.validation.scoring import summarize, validate  # noqa: E402

BENCHMARK = "v53_lgbm_amber20"


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


def scored_rows(demo, first="0039"):
    """The rows that are to be scored, with the model's predictions."""
    frame = demo.frame("validation")
    frame = frame[(frame["era"] >= first) & frame[demo.data.target].notna()].copy()
    frame["prediction"] = demo.estimator.predict(frame[demo.features].to_numpy())
    return frame


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


def test_purge_counts_numbers_and_not_the_eras_of_the_file(demo, changed):
    path = changed(lambda frame: frame[~frame["era"].isin(["0031", "0033", "0035"])])
    assert_same_scores(run(demo, validation=path), run(demo))


def test_rows_without_a_target_are_left_out_and_eras_of_few(demo, changed):
    def lose(frame):
        number = np.arange(len(frame)) % 60
        few = (frame["era"] == "0040") & (number < 6)
        many = (frame["era"] == "0042") & (number < 13)
        return frame.assign(
            **{demo.data.target: frame[demo.data.target].mask(few | many)}
        )

    result = run(demo, validation=changed(lose))
    scores = result.scores["corr"]
    assert "0042" not in scores.eras
    assert dict(zip(scores.eras, scores.n_samples, strict=True))["0040"] == 54
    assert result.notes == [
        "1 eras were left out, as less than 80% of their rows have the target: 0042."
    ]


# --- the scores


def test_corr_is_that_of_the_equation(demo):
    result = run(demo)
    for era, rows in scored_rows(demo).groupby("era"):
        ranks = norm.ppf((rankdata(rows["prediction"]) - 0.5) / len(rows))
        centered = rows[demo.data.target].to_numpy(dtype=float)
        centered = centered - centered.mean()
        powers = [np.sign(x) * np.abs(x) ** 1.5 for x in (ranks, centered)]
        scores = result.scores["corr"]
        found = scores.scores[scores.eras == era][0]
        assert found == pytest.approx(np.corrcoef(*powers)[0, 1], abs=1e-12)


@pytest.mark.filterwarnings("ignore")  # of numerai-tools' own
def test_scores_are_those_of_numerai_tools(demo):
    scoring = pytest.importorskip("numerai_tools.scoring")
    few = demo.features[:5]
    result = run(
        demo,
        meta_model=demo.path("meta_model"),
        benchmark_models=demo.path("validation_benchmark_models"),
        benchmark_column=BENCHMARK,
        fnc_features=few,
    )
    assert result.skipped == {}
    rows = scored_rows(demo)
    meta = demo.frame("meta_model")["numerai_meta_model"].reindex(rows.index)
    benchmark = demo.frame("validation_benchmark_models")[BENCHMARK].reindex(rows.index)
    expected: dict = {"corr": [], "mmc": [], "bmc": [], "fnc": []}
    expected["max_feature_exposure"] = []
    for _, unsorted in rows.groupby("era"):
        one = unsorted.sort_index()  # as numerai-tools requires
        prediction = one[["prediction"]]
        target = one[demo.data.target].astype("float64").rename("target")
        expected["corr"].append(scoring.numerai_corr(prediction, target).iloc[0])
        for metric, other in (("mmc", meta), ("bmc", benchmark)):
            score = scoring.correlation_contribution(
                prediction, other.loc[one.index].rename("other"), target
            )
            expected[metric].append(score.iloc[0])
        features = one[few].astype("float64")
        score = scoring.feature_neutral_corr(prediction, features, target)
        expected["fnc"].append(score.iloc[0])
        ranks = one["prediction"].rank()
        exposures = [ranks.corr(one[x].astype(float)) for x in demo.features]
        expected["max_feature_exposure"].append(np.abs(exposures).max())
    for metric, values in expected.items():
        assert result.scores[metric].scores == pytest.approx(values, abs=1e-9)


def test_exposures_are_means_over_eras_sorted_by_size(demo):
    result = run(demo)
    means = []
    for name in demo.features:
        correlations = [
            one["prediction"].rank().corr(one[name].astype(float))
            for _, one in scored_rows(demo).groupby("era")
        ]
        means.append(np.mean(correlations))
    assert sorted(result.exposures) == sorted(demo.features)
    for name, mean in zip(demo.features, means, strict=True):
        assert result.exposures[name] == pytest.approx(mean, abs=1e-12)
    sizes = np.abs(list(result.exposures.values()))
    assert (np.diff(sizes) <= 0).all()


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


def test_summary_of_exposures_has_no_sharpe(demo):
    summary = run(demo).summary["max_feature_exposure"]
    assert summary["sharpe"] is summary["max_drawdown"] is None
    assert 0 < summary["mean"] < 1


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


def test_features_stay_int8_an_era_at_a_time(demo):
    seen = []

    class Watching:
        def predict(self, X):
            seen.append((X.dtype, X.shape))
            return demo.estimator.predict(X)

    assert_same_scores(run(demo, estimator=Watching()), run(demo))
    assert seen == [(np.dtype(np.int8), (60, 20))] * 12


def test_columns_are_found_by_name_and_ids_in_a_column(demo, changed):
    others = {
        "meta_model": demo.path("meta_model"),
        "benchmark_models": demo.path("validation_benchmark_models"),
        "benchmark_column": BENCHMARK,
    }
    path = changed(lambda frame: frame[frame.columns[::-1]].reset_index())
    assert_same_scores(run(demo, validation=path, **others), run(demo, **others))


def test_model_of_a_frame_gets_named_columns(demo):
    train = demo.frame("train")
    named = HistGradientBoostingRegressor(max_iter=5, early_stopping=False)
    named.fit(train[demo.features], train[demo.data.target])
    result = run(demo, estimator=named)
    assert np.isfinite(result.scores["corr"].scores).all()


def test_missing_features_are_left_to_the_model(demo, changed):
    name = demo.features[0]
    path = changed(
        lambda frame: frame.assign(**{name: frame[name].mask(frame["era"] == "0045")})
    )
    result = run(demo, validation=path)
    assert np.isfinite(result.scores["corr"].scores).all()
    with pytest.raises(DataError, match=f"0045: 60 values of 1 feature.*{name}"):
        run(demo, validation=path, fnc_features=demo.features[:2])


def test_progress_is_told_after_each_era(demo):
    told = []
    run(demo, on_progress=lambda *progress: told.append(progress))
    assert told == [("validation eras", i, 12) for i in range(1, 13)]


# --- what is skipped, noted, refused


def test_what_is_not_there_is_skipped_with_a_reason(demo):
    result = run(demo)
    assert set(result.scores) == {"corr", "max_feature_exposure"}
    assert set(result.skipped) == {"mmc", "bmc", "fnc"}
    assert "no meta model's file" in result.skipped["mmc"]


def test_benchmark_column_that_is_not_there_is_skipped_with_those_that_are(demo):
    path = demo.path("validation_benchmark_models")
    result = run(demo, benchmark_models=path, benchmark_column="v53_lgbm_cyrus20")
    assert "no column 'v53_lgbm_cyrus20'; it has v53_lgbm" in result.skipped["bmc"]
    assert "bmc" not in result.scores
    result = run(demo, benchmark_models=path)
    assert "was named" in result.skipped["bmc"]


def test_meta_model_of_some_eras_is_noted(demo, changed):
    later = changed(lambda meta: meta[meta["era"] >= "0045"], "meta_model")
    result = run(demo, meta_model=later)
    assert result.scores["mmc"].eras.tolist() == [f"{i:04d}" for i in range(45, 51)]
    assert result.notes == [
        "mmc is of 6 of the 12 eras: those that meta_model_2.parquet has."
    ]
    assert result.summary["mmc"]["n_eras"] == 6


def test_meta_model_of_other_eras_is_skipped(demo, changed):
    none = changed(lambda meta: meta[meta["era"] >= "0051"], "meta_model")
    result = run(demo, meta_model=none)
    assert "none of the eras that were scored" in result.skipped["mmc"]


def test_meta_model_is_matched_by_id(demo, changed):
    expected = run(demo, meta_model=demo.path("meta_model"))
    turned = changed(lambda meta: meta[::-1], "meta_model")
    assert_same_scores(run(demo, meta_model=turned), expected)


def test_meta_model_with_an_id_twice_is_refused(demo, changed):
    twice = changed(lambda meta: pd.concat([meta, meta[:1]]), "meta_model")
    with pytest.raises(DataError, match="more than once"):
        run(demo, meta_model=twice)


def test_scores_too_good_to_be_true_are_noted(demo, changed):
    leak = changed(
        lambda frame: frame.assign(
            **{demo.features[0]: (4 * frame[demo.data.target].fillna(0)).astype("int8")}
        )
    )

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
    ],
)
def test_bad_arguments_are_named(demo, changes, error, message):
    with pytest.raises(error, match=message):
        run(demo, **changes)


def test_live_file_cannot_be_validated_on(demo):
    with pytest.raises(DataError, match="era 'X' is no number"):
        run(demo, validation=demo.path("live"))


def test_rows_of_an_era_have_to_lie_together(demo, changed):
    scattered = changed(lambda frame: frame.sort_index())
    with pytest.raises(DataError, match="do not lie together: sort the file by era"):
        run(demo, validation=scattered)


def test_text_instead_of_numbers_is_refused(demo, changed):
    name = demo.features[0]
    text = changed(lambda frame: frame.assign(**{name: "a"}))
    with pytest.raises(DataError, match=f"column '{name}' .* is not numeric"):
        run(demo, validation=text)


def test_missing_or_damaged_file_is_refused(demo, tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        run(demo, validation=tmp_path / "none.parquet")
    path = tmp_path / "short.parquet"
    path.write_bytes(demo.path("validation").read_bytes()[:-50])
    with pytest.raises(DataError, match="cut off"):
        run(demo, validation=path)
