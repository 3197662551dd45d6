"""Validation: the right eras, scores of numerai-tools, one table, and folds."""

from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numerai_tools import scoring
from scipy.stats import norm, rankdata

from helpers.grids import slow
from sklearn_era.metrics import EraScoreForecast
from sklearn_era.numerai import metrics, store
from sklearn_era.numerai.data import META_MODEL_COLUMN, read_features
from sklearn_era.numerai.errors import ConfigError, DataError, NoModelError
from sklearn_era.numerai.metrics import numerai_corr
from sklearn_era.numerai.score_table import EXAMPLE, coming_round, summarize
from sklearn_era.numerai.store import load_blend, load_fit, read_record
from sklearn_era.numerai.validation import GAIN, MODEL, Validation

BENCHMARK = "v53_lgbm_amber20"
FEW = {"fnc_feature_set": "", "benchmark": ""}  # scores to compute
WALK = {"files": ["train", "validation"], "validate": {"folds": 2, **FEW}}
BIRCH = {"target": "target_birch_60", "weight": 0.5, "feature_set": "small"}
MEMBERS = [{"name": "amber"}, {"name": "birch", **BIRCH}]


pytestmark = pytest.mark.usefixtures("quick_scores")
import_tools = metrics.import_tools


@pytest.fixture
def own(demo, tmp_path):
    return demo.copy(tmp_path / "own")


def run(demo, config=None, **options):
    config = config or demo.config()
    return Validation(config, demo.workspace, config.models[0], **options).run()


def judge(demo, config=None, **options):
    return run(demo, config, **options)[MODEL]


@pytest.fixture(scope="module")
def usual(demo, quick_scores):
    return run(demo)


@pytest.fixture
def given(monkeypatch):
    """Let something else than the trained fit predict."""

    def give(estimator, features):
        blend = store.Blend([store.WeightedFit(estimator, features)])
        monkeypatch.setattr(store, "load_blend", lambda *_: (blend, []))

    return give


def assert_same_scores(one, other):
    for metric, expected in other.scores.items():
        found, close = one.scores[metric], {"abs": 1e-12, "nan_ok": True}
        assert np.array_equal(found.eras, expected.eras)
        assert found.scores == pytest.approx(expected.scores, **close)


@pytest.mark.parametrize(("changes", "first", "last"), [
    # Trained to 0030, 8 purged, and the newest 4 of 0054 are unknown.
    ({}, 39, 50), ({"validate": {"purge": 0}}, 31, 50),
    # The purge belongs to the report, and the target is one to score on.
    ({"target": "target_amber_60", "validate": {"purge": 8}}, 39, 42),
])  # fmt: skip
def test_eras_after_the_purge_with_known_targets_are_scored(demo, changes, first, last):
    results, n_eras = run(demo, demo.config(**changes)), last - first + 1
    assert next(iter(results)) == MODEL
    for name, result in results.items():
        corr = result.scores["corr"]
        assert corr.eras.tolist() == [f"{era:04d}" for era in range(first, last + 1)]
        assert (corr.n_samples.tolist(), result.n_rows) == ([60] * n_eras, 60 * n_eras)
        assert result.way == "hold-out"
        assert result.folds == [("0030", f"{first:04d}", f"{last:04d}")]
        assert result.target == changes.get("target", demo.target)
        assert bool(result.notes) == (name == MODEL)


@pytest.mark.parametrize(
    ("folds", "way", "first"), [(2, "walk-forward", "0029"), (40, "hold-out", "0048")]
)
def test_few_eras_are_held_out(own, folds, way, first):
    """Three are left after 17 purged ones, and 40 folds would take 58."""
    result = judge(own, own.config(validate={"folds": folds, "purge": 17, **FEW}))
    assert (result.way, result.folds[0].first) == (way, first)
    assert result.scores["corr"].eras[0] == first
    # A model that learns from the train file does so in folds, too.
    assert result.folds[-1].last == "0050"
    if way == "walk-forward":
        assert read_record(fold_dir(own, 2), "model").files == ["train_1.parquet"]


def spoiled(column, n_rows):
    """A change that removes numbers of a column, so many of each era."""
    rng = np.random.default_rng(len(column))  # other rows of each column

    def change(frame):
        for era, n in n_rows.items():
            rows = frame.index[frame["era"] == era]
            frame.loc[rng.permutation(rows)[:n], column] = np.nan
        return frame

    return change


# Rows that lack a target, and those that lack the other model's prediction.
GAPS = [{"0040": 9, "0041": 12, "0042": 3, "0043": 13}]
GAPS += [{"0040": 9, "0042": 3, "0044": 12, "0045": 13}]


@pytest.mark.filterwarnings("ignore")  # of numerai-tools' own
@pytest.mark.parametrize(
    ("gaps", "proportion"), [(({}, {}), 0.0), (GAPS, 0.5), slow(GAPS, 0.0)]
)
def test_scores_are_those_of_numerai_tools(own, monkeypatch, gaps, proportion):
    monkeypatch.setattr(metrics, "import_tools", import_tools)
    path = own.change("validation", spoiled(own.target, gaps[0]))
    meta_path = own.change("meta_model", spoiled(META_MODEL_COLUMN, gaps[1]))
    neutral = {"neutralize_proportion": proportion, "neutralize_feature_set": "small"}
    result = judge(own, own.config(predict=neutral))
    assert result.skipped == {}
    metadata = read_features(own.path("features"))
    few, fnc = metadata.features("small"), metadata.features("fncv3_features")
    estimator, _ = load_fit(own.workspace.model_dir("someone"), "model")
    frame = pd.read_parquet(path).join(pd.read_parquet(meta_path)[META_MODEL_COLUMN])
    frame = frame.join(own.frame("validation_benchmark_models")[BENCHMARK])
    expected: dict = {"corr": {}, "mmc": {}, "bmc": {}, "fnc": {}}
    # Sorted, as numerai-tools requires.
    scored = frame[frame["era"].between("0039", "0050")].sort_index()
    for era, one in scored.groupby("era"):
        y = one[own.target].astype("float64").rename("target")
        ranks = rankdata(estimator.predict(one[own.features]))
        ranks = norm.ppf((ranks - 0.5) / len(one))
        submitted = pd.DataFrame({"prediction": ranks}, index=one.index)
        if proportion:
            neutralizers = one[few].astype("float64")
            submitted = scoring.neutralize(submitted, neutralizers, proportion)
        for metric, function, *others in (
            ("corr", scoring.numerai_corr),
            ("mmc", scoring.correlation_contribution, one[META_MODEL_COLUMN]),
            ("bmc", scoring.correlation_contribution, one[BENCHMARK]),
            ("fnc", scoring.feature_neutral_corr, one[fnc].astype("float64")),
        ):
            n = pd.concat([y, *others], axis=1).notna().all(axis=1).sum()
            with suppress(AssertionError):  # of too few rows
                score = np.ravel(function(submitted, *others, y))[0]
                expected[metric][era] = score, n
    eras = {f"{i:04d}" for i in range(39, 51)}
    assert eras - {*expected["corr"]} == {*gaps[0]} & {"0043"}
    assert eras - {*expected["mmc"]} == {*gaps[0], *gaps[1]} & {"0040", "0043", "0045"}
    for metric, by_era in expected.items():
        found = result.scores[metric]
        scores, counts = zip(*by_era.values(), strict=True)
        assert found.eras.tolist() == list(by_era)
        assert found.scores == pytest.approx(scores, abs=1e-9)
        assert found.n_samples.tolist() == list(counts)
    assert result.n_rows == result.scores["corr"].n_samples.sum()
    note = f"fewer than 80% of their rows have {own.target!r}: 0043."
    assert (note in "".join(result.notes)) == (gaps is GAPS)


@pytest.mark.parametrize(("name", "change"), [
    # The purge counts numbers, and not the eras of the file.
    ("validation", lambda x: x[~x["era"].isin(["0031", "0033", "0035"])]),
    # Columns are found by name, and ids in a column.
    ("validation", lambda x: x[x.columns[::-1]].reset_index()),
    # Rows of the meta model are matched by id.
    ("meta_model", lambda x: x[::-1]),
])  # fmt: skip
def test_other_files_with_the_same_rows_have_the_same_scores(own, usual, name, change):
    own.change(name, change)
    assert_same_scores(judge(own), usual[MODEL])


def test_features_stay_int8_an_era_at_a_time_and_progress_is_told(demo, usual, given):
    seen, told = [], []
    estimator, _ = load_fit(demo.workspace.model_dir("someone"), "model")

    def predict(X):
        seen.append(({*X.dtypes}, X.shape))
        return estimator.predict(X)

    given(SimpleNamespace(predict=predict), demo.features)
    assert_same_scores(judge(demo, on_progress=lambda *x: told.append(x)), usual[MODEL])
    assert seen == [({np.dtype(np.int8)}, (60, 20))] * 12
    assert told == [("validation eras", i, 12) for i in range(1, 13)]


def test_a_model_gets_missing_features(own):
    name = own.features[0]
    masked = {name: lambda x: x[name].mask(x["era"] == "0045")}
    own.change("validation", lambda x: x.assign(**masked))
    config = own.config(validate={"fnc_feature_set": ""})
    assert np.isfinite(judge(own, config).scores["corr"].scores).all()
    # FNC does without the feature in this era.
    results = run(own, own.config(validate={"fnc_feature_set": "small"}))
    assert f"FNC leaves out features: {name}." in "".join(results[MODEL].notes)
    assert all(np.isfinite(x.scores["fnc"].scores).all() for x in results.values())


def test_exposures_are_correlations_of_ranks_and_means_over_eras(demo, usual):
    result, frame = usual[MODEL], demo.frame("validation")
    estimator, _ = load_fit(demo.workspace.model_dir("someone"), "model")
    exposures = []
    for era in result.scores["max_feature_exposure"].eras:
        rows = frame[frame["era"] == era]
        ranks = rankdata(estimator.predict(rows[demo.features]))
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


@pytest.mark.parametrize(("scores", "expected"), [
    ([0.03, np.nan, -0.02, 0.02], (3, 0.01, STD, 0.01 / STD, 0.02)),
    ([0.1], (1, 0.1, 0.0, None, 0.0)), ([np.nan], (0, None, None, None, None)),
])  # fmt: skip
def test_summary_is_of_the_defined_scores(scores, expected):
    summary = summarize(np.array(scores))
    names = ("n_eras", "mean", "std", "sharpe", "max_drawdown")
    assert [summary[name] for name in names] == pytest.approx(expected)


@pytest.mark.parametrize(("target", "step"), [("target_x_20", 4), ("target_x_60", 12)])
def test_a_coming_round_is_forecast_by_targets_that_do_not_overlap(target, step):
    corr = np.random.default_rng(0).normal(0.02, 0.02, size=12 * 5)
    assert coming_round(corr[-4 * step :], target) == []
    fits = [EraScoreForecast(trend="none").fit(corr[i::step]) for i in range(step)]
    low, high = np.mean([fit.interval() for fit in fits], axis=0)
    [note] = coming_round(corr, target)
    expected = f"{corr.mean():.4f} (80 % interval {low:.4f} to {high:.4f}; above 0 with"
    assert expected in note
    way = f"mean of {step} forecasts, each by every {step}th era, {60 // step} or"
    assert way in note


def test_scores_too_good_to_be_true_are_noted(own, given):
    leak = {own.features[0]: lambda x: (4 * x[own.target].fillna(0)).astype("i1")}
    own.change("validation", lambda x: x.assign(**leak))
    given(SimpleNamespace(predict=lambda X: X.iloc[:, 0]), own.features)
    _, note = judge(own, own.config(validate={"fnc_feature_set": ""})).notes
    assert "The mean CORR is 0.99" in note
    assert "look for a leak" in note


def test_benchmark_and_example_are_scored_in_the_same_eras(demo, usual):
    assert list(usual) == [MODEL, BENCHMARK, EXAMPLE]
    eras = usual[MODEL].scores["corr"].eras
    for row, name, column in (
        (BENCHMARK, "validation_benchmark_models", BENCHMARK),
        (EXAMPLE, "validation_example_preds", "prediction"),
    ):
        frame = demo.frame("validation").join(demo.frame(name)[[column]])
        frame = frame[frame["era"].isin(eras)]
        expected = numerai_corr(frame[demo.target], frame[column], eras=frame["era"])
        found = usual[row].scores["corr"]
        assert found.eras.tolist() == expected.eras.tolist() == eras.tolist()
        assert found.scores == pytest.approx(expected.scores, abs=1e-12)
        assert list(usual[row].skipped) == ["max_feature_exposure"]
    # The benchmark adds nothing to itself.
    assert usual[BENCHMARK].scores["bmc"].scores == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("spoil", [
    lambda x, rows: x[~rows],
    lambda x, rows: x.assign(prediction=x["prediction"].mask(rows, 0.5)),
], ids=["missing", "constant"])  # fmt: skip
def test_summaries_are_of_the_eras_with_a_score_in_all_rows(own, demo, spoil):
    name, eras = "validation_example_preds", demo.frame("validation")["era"]
    own.change(name, lambda x: spoil(x, eras.reindex(x.index) < "0042"))
    # Another model's, too: here there are none.
    own.change("meta_model", lambda x: x[eras.reindex(x.index) < "0042"])
    results = run(own)
    example = results[EXAMPLE].scores["corr"]
    assert example.eras[~np.isnan(example.scores)][0] == "0042"
    for result in results.values():
        corr = result.scores["corr"]
        assert {result.summary[x]["n_eras"] for x in ("corr", "fnc")} == {9}
        mean = corr.scores[corr.eras >= "0042"].mean()
        assert result.summary["corr"]["mean"] == pytest.approx(mean)
    assert results[MODEL].scores["mmc"].eras.tolist() == ["0039", "0040", "0041"]
    assert results[MODEL].summary["mmc"]["n_eras"] == 0
    notes = "".join(results[MODEL].notes)
    assert "The summaries cover the 9 of 12 eras in which all rows have" in notes
    assert "MMC covers 3 of the 12 eras" in notes
    assert "meta_model ends with era 0041, before 0050: 'skl" in notes
    # A row of too few eras would cut the table short.
    own.change(name, lambda x: spoil(x, eras.reindex(x.index) < "0049"))
    results = run(own)
    assert list(results) == [MODEL, BENCHMARK]
    assert results[MODEL].summary["corr"]["n_eras"] == 12
    note = "example predictions is left out: it covers 2 of the 12 eras."
    assert note in "".join(results[MODEL].notes)


def test_features_on_another_scale_are_refused(own):
    scaled = {x: lambda frame, x=x: frame[x] / 4 for x in own.features}
    own.change("validation", lambda x: x.assign(**scaled))
    with pytest.raises(
        DataError, match=r"value 0\.25, but .* 0\.0, 1\.0, .* same scale"
    ):
        run(own)


def test_what_is_not_there_is_skipped_with_a_reason(own):
    own.change("meta_model", lambda meta: meta[meta["era"] >= "0051"])
    other = {"benchmark": "v53_lgbm_cyrus20", "fnc_feature_set": ""}
    results = run(own, own.config(validate=other))
    assert list(results) == [MODEL, EXAMPLE]
    assert set(results[MODEL].scores) == {"corr", "max_feature_exposure"}
    assert list(results[MODEL].skipped) == ["mmc", "bmc", "fnc"]
    for told, (metric, reason) in zip(
        ("no predictions to compare with", "no column 'v53_lgbm_cyrus20'; it has v53_"),
        results[MODEL].skipped.items(), strict=False,
    ):  # fmt: skip
        assert told in reason, metric
    for path in own.workspace.data_dir.glob("*m*_model*"):
        path.unlink()
    skipped = judge(own).skipped
    assert skipped["mmc"] == "there is no meta_model file; download it."
    assert "no validation_benchmark_models file" in skipped["bmc"]


def fold_dir(demo, number):
    return demo.workspace.model_dir("someone") / "folds" / str(number)


def test_gain_is_trained_on_the_eras_of_the_model(own):
    # Its own last era would be 0050: the model was trained before these were known.
    config = own.config(validate={"compare_with_gain": True, **FEW})
    own.change("train", lambda x: pd.concat([x, own.frame("validation").iloc[:300]]))
    steps = []
    results = run(own, config, on_step=steps.append)
    assert list(results) == [MODEL, GAIN, EXAMPLE]
    record = read_record(own.workspace.model_dir("someone") / GAIN, "model")
    assert (record.last_era, record.parameters["split_criterion"]) == ("0030", "gain")
    assert steps == ["Training model with plain gain, up to era 0030: " + steps[0][48:]]
    assert results[GAIN].exposures.keys() == results[MODEL].exposures.keys()
    assert_same_scores(run(own, config, on_step=steps.append)[GAIN], results[GAIN])
    assert len(steps) == 1


@pytest.mark.parametrize(("purge", "n_purged"), [("auto", 8), (2, 2)])
def test_folds_leave_out_what_they_score_and_the_purge(own, purge, n_purged):
    folds = {"folds": 3, "purge": purge, **FEW}
    config = own.config(files=WALK["files"], validate=folds)
    own.fit(config)
    result = judge(own, config)
    assert result.way == "walk-forward"
    eras, scored = result.scores["corr"].eras.tolist(), []
    frame = pd.concat([own.frame("train"), own.frame("validation")])
    for number, fold in enumerate(result.folds, 1):
        estimator, record = load_fit(fold_dir(own, number), "model")
        assert record.last_era == fold.last_trained
        assert int(record.last_era) + n_purged + 1 == int(fold.first)
        assert (record.first_era, record.n_eras) == ("0001", int(record.last_era))
        inside = [era for era in eras if fold.first <= era <= fold.last]
        scored += inside
        # By its own fit, and no other.
        rows = frame[frame["era"].isin(inside)]
        ranks = estimator.predict(rows[own.features])
        expected = numerai_corr(rows[own.target], ranks, eras=rows["era"])
        found = result.scores["corr"].scores[np.isin(eras, inside)]
        assert found == pytest.approx(expected.scores, abs=1e-12)
    assert scored == eras
    # Eras of the train file, and others of the validation file.
    assert {"0030", "0031"} < {*eras}
    assert eras[-1] == "0050"


def test_groups_are_no_more_than_the_eras_of_a_fold(own):
    config = own.config(**WALK, every_nth_era=3, era_groups=10)
    own.fit(config)
    judge(own, config)
    records = [read_record(fold_dir(own, x), "model") for x in (1, 2)]
    assert records[0].n_eras < 10
    for record in records:
        assert record.era_groups == min(record.n_eras, 10)


def test_folds_are_trained_once_resumed_and_trained_again_where_they_have_to_be(own):
    config, steps = own.config(**WALK), []
    own.fit(config)
    expected = judge(own, config, on_step=steps.append)
    step = "Training model for fold 1, up to era 0014: not trained yet."
    assert steps[0] == step
    assert_same_scores(judge(own, config, on_step=steps.append), expected)
    assert len(steps) == 2
    for suffix in ("era", "json"):
        path = fold_dir(own, 2) / f"model.{suffix}"
        path.write_bytes(path.read_bytes()[:-100])
        assert_same_scores(judge(own, config, on_step=steps.append), expected)
        assert steps[-1].startswith("Training model for fold 2")
        assert steps[-1].endswith(": the existing fit is damaged.")
    assert len(steps) == 4

    def stop(stage, done, total):
        if stage == "model for fold 1" and done == 15:
            raise KeyboardInterrupt

    # Other parameters: the folds are stale, and an interrupted one goes on.
    other = own.config(**WALK, random_state=3, checkpoint_every=5)
    with pytest.raises(KeyboardInterrupt):
        judge(own, other, on_progress=stop)
    steps.clear()
    judge(own, other, on_step=steps.append)
    assert "interrupted training resumes" in steps[0]
    assert "random_state changed from 0 to 3" in steps[1]


@pytest.mark.parametrize(("asked", "n_fits", "retrained"), [
    ({"validate": {"compare_with_gain": True, **FEW}}, 1, True), (WALK, 2, False),
])  # fmt: skip
def test_fits_follow_the_rows(own, asked, n_fits, retrained):
    """Plain gain is trained on the rows of the model, folds on those of the files."""
    config, steps = own.config(**asked), []
    own.fit(config)
    run(own, config, on_step=steps.append)
    assert len(steps) == n_fits
    random = {x: lambda frame, x=x: frame[x].to_numpy()[::-1] for x in own.features}
    own.change("train", lambda x: x.assign(**random))
    if retrained:
        run(own, config, on_step=steps.append)
        assert len(steps) == n_fits
        own.fit(config)
    found = run(own, config, on_step=steps.append)
    assert len(steps) == 2 * n_fits
    assert "or the rows of the model, may have changed" in steps[-1]
    assert_same_scores(run(own, config, on_step=steps.append)[MODEL], found[MODEL])
    assert len(steps) == 2 * n_fits


def test_a_blend_of_targets_is_scored_on_its_own_with_the_longest_purge(own):
    config = own.config(members=MEMBERS, validate={"folds": 2})
    records = own.fit(config)
    assert [record.target for record in records] == [own.target, "target_birch_60"]
    result = judge(own, config)
    # 60 days: 16 eras after 0030.
    assert result.way == "hold-out"
    assert result.scores["corr"].eras.tolist() == ["0047", "0048", "0049", "0050"]
    blend, _ = load_blend(own.workspace.model_dir("someone"), config.models[0])
    assert blend.shares == [1 / 1.5, 0.5 / 1.5]
    frame = own.frame("validation").query("era == '0048'")
    ranks = blend.ranks(frame)
    corr = numerai_corr(frame[own.target], ranks)
    assert result.scores["corr"].scores[1] == pytest.approx(corr, abs=1e-12)


def test_a_blend_walks_forward_with_all_its_members(own):
    bounded = [{**MEMBERS[0], "last_era": "0020"}, {**MEMBERS[1], "first_era": "0004"}]
    config = own.config(members=bounded, **WALK)
    own.fit(config)
    result = judge(own, config)
    assert result.way == "walk-forward"
    for number, fold in enumerate(result.folds, 1):
        amber, birch = (read_record(fold_dir(own, number), x["name"]) for x in MEMBERS)
        assert amber.last_era == min("0020", fold.last_trained)
        assert birch.last_era <= fold.last_trained
        assert birch.first_era == "0004"
        assert int(fold.first) - int(fold.last_trained) == 17


@pytest.mark.parametrize(("changes", "error", "message"), [
    ({"target": "target_none_20"}, DataError, "first: target_none_20"),
    ({"validate": {"purge": 47}}, DataError, "nothing to validate.* 0030 .* 47"),
    ({"validate": {"fnc_feature_set": "x"}}, ConfigError, "no feature set 'x'"),
    ({"members": MEMBERS}, NoModelError, "no fit 'amber'"),
])  # fmt: skip
def test_what_cannot_be_validated_is_refused(demo, changes, error, message):
    with pytest.raises(error, match=message):
        run(demo, demo.config(**changes))


@pytest.mark.parametrize(("name", "change", "message"), [
    ("validation", lambda x: x.assign(era="X"), "the era 'X'; eras must be text"),
    ("validation", lambda x: x.assign(target_amber_20=np.float32(np.inf)),
     "column 'target_amber_20' is infinite in 1,440 rows"),
    *((name, lambda x: pd.concat([x, x[-1:]]), "duplicate ids")
      for name in ("validation", "meta_model")),
    ("meta_model", lambda x: x.assign(numerai_meta_model=np.inf), "is infinite in"),
])  # fmt: skip
def test_files_of_another_form_are_refused(own, name, change, message):
    own.change(name, change)
    with pytest.raises(DataError, match=message):
        run(own)


def test_eras_of_two_files_are_refused(own):
    config = own.config(**WALK)
    own.fit(config)
    own.change("train", lambda x: pd.concat([x, own.frame("validation").iloc[:60]]))
    with pytest.raises(DataError, match="Era 0031 is in two files"):
        run(own, config)
