"""Validation: the right eras, scores of numerai-tools, one table, and folds."""

import json
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
from sklearn_era.numerai import training, validation
from sklearn_era.numerai.blend import Blend, Part, load_blend
from sklearn_era.numerai.data import META_MODEL_COLUMN, read_features
from sklearn_era.numerai.errors import ConfigError, DataError, NoModelError
from sklearn_era.numerai.metrics import numerai_corr
from sklearn_era.numerai.score_table import EXAMPLE, summarize
from sklearn_era.numerai.store import load_fit, read_record
from sklearn_era.numerai.validation import GAIN, MODEL, validate

BENCHMARK = "v53_lgbm_amber20"
WALK = {"files": ["train", "validation"], "validate": {"folds": 2}}
BIRCH = {"target": "target_birch_60", "weight": 0.5, "feature_set": "small"}
MEMBERS = [{"name": "amber"}, {"name": "birch", **BIRCH}]
ONE_OF_5_DAYS = [{"name": "a"}, {"name": "b", "target": "target_x_5"}]


@pytest.fixture
def own(demo, tmp_path):
    """A copy of the demo, to be changed."""
    return demo.copy(tmp_path / "own")


def run(demo, config=None, **options):
    config = config or demo.config()
    return validate(config, demo.workspace, config.models[0], **options)


def judge(demo, config=None, **options):
    """The scores of the model itself."""
    return run(demo, config, **options)[MODEL]


@pytest.fixture
def given(monkeypatch):
    """Let something else than the trained fit predict."""

    def give(estimator, features):
        blend = Blend([Part(estimator, features)])
        monkeypatch.setattr(validation, "load_blend", lambda *_: (blend, []))

    return give


def assert_same_scores(one, other):
    for metric, expected in other.scores.items():
        found, close = one.scores[metric], {"abs": 1e-12, "nan_ok": True}
        assert np.array_equal(found.eras, expected.eras)
        assert found.scores == pytest.approx(expected.scores, **close)


# Which eras and rows ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "first", "last"),
    [
        # Trained to 0030, 8 purged, and the newest 4 of 0054 are unknown.
        ({}, 39, 50),
        ({"validate": {"purge": 0}}, 31, 50),
        # The purge belongs to the report, and the target is one to score on.
        ({"target": "target_amber_60", "validate": {"purge": 8}}, 39, 42),
    ],
)
def test_eras_after_the_purge_with_known_targets_are_scored(demo, changes, first, last):
    results, n_eras = run(demo, demo.config(**changes)), last - first + 1
    assert next(iter(results)) == MODEL
    for name, result in results.items():
        corr = result.scores["corr"]
        assert corr.eras.tolist() == [f"{era:04d}" for era in range(first, last + 1)]
        assert corr.n_samples.tolist() == [60] * n_eras
        assert result.n_rows == 60 * n_eras
        assert result.way == "hold-out"
        assert result.folds == [("0030", f"{first:04d}", f"{last:04d}")]
        assert result.target == changes.get("target", demo.target)
        assert bool(result.notes) == (name == MODEL)


FEW = [(2, "walk-forward", "0029"), (40, "hold-out", "0048")]


@pytest.mark.parametrize(("folds", "way", "first"), FEW)
def test_few_eras_are_held_out_if_there_are_none_to_walk_through(
    own, folds, way, first
):
    """Three are left after 17 purged ones, and 40 folds would take 58."""
    result = judge(own, own.config(validate={"folds": folds, "purge": 17}))
    assert (result.way, result.folds[0].first) == (way, first)
    assert result.scores["corr"].eras[0] == first
    # A model that learns from the train file does so in folds, too.
    assert result.folds[-1].last == "0050"
    if way == "walk-forward":
        folder = own.workspace.model_dir("someone") / "folds"
        assert read_record(folder / "2", "model").files == ["train_1.parquet"]


def spoiled(column, n_rows):
    """A change that removes numbers of a column, so many of each era."""
    rng = np.random.default_rng(len(column))  # other rows of each column

    def change(frame):
        for era, n in n_rows.items():
            rows = frame.index[frame["era"] == era]
            frame.loc[rng.permutation(rows)[:n], column] = np.nan
        return frame

    return change


def scores_of_an_era(prediction, meta, benchmark, targets, features):
    """Those of numerai-tools, but for those that it refuses for too few rows."""
    for metric, function, *others in (
        ("corr", scoring.numerai_corr, targets),
        ("mmc", scoring.correlation_contribution, meta, targets),
        ("bmc", scoring.correlation_contribution, benchmark, targets),
        ("fnc", scoring.feature_neutral_corr, features, targets),
    ):
        with suppress(AssertionError):
            yield metric, float(np.ravel(function(prediction, *others))[0])


# Rows that lack a target, and those that lack the other model's prediction.
GAPS = (
    {"0040": 9, "0041": 12, "0042": 3, "0043": 13},
    {"0040": 9, "0042": 3, "0044": 12, "0045": 13},
)


@pytest.mark.filterwarnings("ignore")  # of numerai-tools' own
@pytest.mark.parametrize(
    ("gaps", "proportion"), [(({}, {}), 0.0), (GAPS, 0.5), slow(GAPS, 0.0)]
)
def test_scores_are_those_of_numerai_tools(own, gaps, proportion):
    """All rows count in ranks and regressions; a fifth of them may lack something."""
    path = own.change("validation", spoiled(own.target, gaps[0]))
    meta_path = own.change("meta_model", spoiled(META_MODEL_COLUMN, gaps[1]))
    neutral = {"neutralize_proportion": proportion, "neutralize_feature_set": "small"}
    result = judge(own, own.config(predict=neutral))
    assert result.skipped == {}
    assert result.neutralize_proportion == proportion

    metadata = read_features(own.path("features"))
    few, fnc = metadata.features("small"), metadata.features("fncv3_features")
    estimator, _ = load_fit(own.workspace.model_dir("someone"), "model")
    frame, meta = pd.read_parquet(path), pd.read_parquet(meta_path)[META_MODEL_COLUMN]
    benchmark = own.frame("validation_benchmark_models")[BENCHMARK]
    frame = frame[(frame["era"] >= "0039") & (frame["era"] <= "0050")]
    expected: dict = {"corr": {}, "mmc": {}, "bmc": {}, "fnc": {}}
    n_rows: dict = {}
    for era, unsorted in frame.groupby("era"):
        one = unsorted.sort_index()  # as numerai-tools requires
        targets = one[own.target].astype("float64").rename("target")
        predicted = estimator.predict(one[own.features])
        ranks = norm.ppf((rankdata(predicted) - 0.5) / len(one))
        submitted = pd.DataFrame({"prediction": ranks}, index=one.index)
        if proportion:
            neutralizers = one[few].astype("float64")
            submitted = scoring.neutralize(submitted, neutralizers, proportion)
        models = [series.reindex(one.index) for series in (meta, benchmark)]
        features = one[fnc].astype("float64")
        scores = scores_of_an_era(submitted, *models, targets, features)
        for metric, score in scores:
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
    note = f"less than 80% of the rows have {own.target!r}: 0043."
    assert (note in "".join(result.notes)) == (gaps is GAPS)


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
def test_other_files_with_the_same_rows_have_the_same_scores(own, demo, name, change):
    own.change(name, change)
    assert_same_scores(judge(own), judge(demo))


def test_features_stay_int8_an_era_at_a_time_and_progress_is_told(demo, given):
    seen, told, expected = [], [], judge(demo)
    estimator, _ = load_fit(demo.workspace.model_dir("someone"), "model")

    def predict(X):
        seen.append((X.dtype, X.shape))
        return estimator.predict(pd.DataFrame(X, columns=demo.features))

    given(SimpleNamespace(predict=predict), demo.features)
    result = judge(demo, on_progress=lambda *x: told.append(x))
    assert_same_scores(result, expected)
    assert seen == [(np.dtype(np.int8), (60, 20))] * 12
    assert told == [("validation eras", i, 12) for i in range(1, 13)]


def test_a_model_gets_named_columns_and_missing_features(own, named, given):
    name = own.features[0]
    masked = {name: lambda x: x[name].mask(x["era"] == "0045")}
    own.change("validation", lambda x: x.assign(**masked))
    config = own.config(validate={"fnc_feature_set": ""})
    assert np.isfinite(judge(own, config).scores["corr"].scores).all()
    with pytest.raises(DataError, match=f"0045: 60 values of 1 feature.*{name}"):
        judge(own, own.config(validate={"fnc_feature_set": "small"}))
    given(named, own.features)
    assert np.isfinite(judge(own, config).scores["corr"].scores).all()


# Scores and notes ---------------------------------------------------------------------


def test_exposures_are_correlations_of_ranks_and_means_over_eras(demo):
    result, frame = judge(demo), demo.frame("validation")
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


def test_scores_too_good_to_be_true_are_noted(own, given):
    leak = {own.features[0]: lambda x: (4 * x[own.target].fillna(0)).astype("i1")}
    own.change("validation", lambda x: x.assign(**leak))
    given(SimpleNamespace(predict=lambda X: X[:, 0].astype(float)), own.features)
    _, note = judge(own, own.config(validate={"fnc_feature_set": ""})).notes
    assert "The mean CORR is 0.99" in note
    assert "look for a leak" in note


def test_constant_predictions_are_undefined_and_noted(demo, given):
    given(Constant(), demo.features)
    result = judge(demo, demo.config(predict={"neutralize_proportion": 0.5}))
    assert np.isnan(result.scores["corr"].scores).all()
    assert result.summary["corr"]["mean"] is None
    assert result.summary["corr"]["n_eras"] == 0
    assert "corr is undefined in 12 of 12 eras (0039" in "\n".join(result.notes)
    assert np.isnan(list(result.exposures.values())).all()


# One table ----------------------------------------------------------------------------


def direct_corr(demo, name, column, eras):
    """The CORR of a file's predictions, as anyone would compute it."""
    frame = demo.frame("validation")[["era", demo.target]]
    frame = frame[frame["era"].isin(eras)].join(demo.frame(name)[[column]])
    return numerai_corr(frame[column], frame[demo.target], frame["era"])


def test_benchmark_and_example_are_scored_in_the_same_eras(demo):
    results = run(demo)
    assert list(results) == [MODEL, BENCHMARK, EXAMPLE]
    eras = results[MODEL].scores["corr"].eras
    for row, name, column in (
        (BENCHMARK, "validation_benchmark_models", BENCHMARK),
        (EXAMPLE, "validation_example_preds", "prediction"),
    ):
        expected = direct_corr(demo, name, column, eras)
        found = results[row].scores["corr"]
        assert found.eras.tolist() == expected.eras.tolist() == eras.tolist()
        assert found.scores == pytest.approx(expected.scores, abs=1e-12)
        assert results[row].scores["fnc"].scores.size == eras.size
        assert results[row].exposures == {}
        assert list(results[row].skipped) == ["max_feature_exposure"]
    # The benchmark adds nothing to itself.
    assert results[BENCHMARK].scores["bmc"].scores == pytest.approx(0, abs=1e-12)


def test_summaries_are_of_the_eras_that_all_rows_have(own, demo):
    name = "validation_example_preds"
    eras = demo.frame("validation")["era"]
    own.change(name, lambda x: x[eras.reindex(x.index) >= "0042"])
    results = run(own)
    assert results[EXAMPLE].scores["corr"].eras.tolist()[0] == "0042"
    assert len(results[MODEL].scores["corr"].eras) == 12
    for result in results.values():
        corr = result.scores["corr"]
        assert result.summary["corr"]["n_eras"] == 9
        mean = corr.scores[corr.eras >= "0042"].mean()
        assert result.summary["corr"]["mean"] == pytest.approx(mean)
    assert "The summaries are of the 9 of 12 eras" in "".join(results[MODEL].notes)
    # Another model's, too: here there are none.
    own.change("meta_model", lambda x: x[eras.reindex(x.index) < "0042"])
    result = judge(own)
    assert result.scores["mmc"].eras.tolist() == ["0039", "0040", "0041"]
    assert result.summary["mmc"]["n_eras"] == 0
    # A row of too few eras would cut the table short.
    own.change(name, lambda x: x[eras.reindex(x.index) >= "0049"])
    results = run(own)
    assert list(results) == [MODEL, BENCHMARK]
    note = "example predictions is not in the table: predictions are here for 2 of the"
    assert note in "".join(results[MODEL].notes)


def test_what_is_not_there_is_skipped_with_a_reason(own):
    own.change("meta_model", lambda meta: meta[meta["era"] >= "0045"])
    result = judge(own)
    assert result.scores["mmc"].eras.tolist() == [f"{i:04d}" for i in range(45, 51)]
    assert "MMC covers 6 of the 12 eras" in "".join(result.notes)
    assert result.summary["mmc"]["n_eras"] == 6
    own.change("meta_model", lambda meta: meta[meta["era"] >= "0051"])
    other = {"benchmark": "v53_lgbm_cyrus20", "fnc_feature_set": ""}
    results = run(own, own.config(validate=other))
    assert list(results) == [MODEL, EXAMPLE]
    skipped = results[MODEL].skipped
    assert set(results[MODEL].scores) == {"corr", "max_feature_exposure"}
    assert set(skipped) == {"mmc", "bmc", "fnc"}
    assert "no predictions to compare with" in skipped["mmc"]
    assert "no column 'v53_lgbm_cyrus20'; it has v53_lgbm" in skipped["bmc"]
    for name in ("meta_model", "validation_benchmark_models"):
        for number in own.workspace.rounds_of(name):
            own.workspace.data_file(name, number).unlink()
    skipped = judge(own).skipped
    assert skipped["mmc"] == "there is no meta_model file; download it."
    assert "no validation_benchmark_models file" in skipped["bmc"]


# Fits for the validation --------------------------------------------------------------


def test_gain_is_trained_on_the_eras_of_the_model(own):
    # Its own last era would be 0050: the model was trained before these were known.
    config = own.config(validate={"compare_with_gain": True, "fnc_feature_set": ""})
    own.change("train", lambda x: pd.concat([x, own.frame("validation").iloc[:300]]))
    steps = []
    results = run(own, config, on_step=steps.append)
    assert list(results) == [MODEL, GAIN, BENCHMARK, EXAMPLE]
    record = read_record(own.workspace.model_dir("someone") / GAIN, "model")
    assert record.last_era == "0030"
    assert record.parameters["split_criterion"] == "gain"
    assert steps == ["Training model by plain gain, up to era 0030: " + steps[0][46:]]
    assert results[GAIN].exposures.keys() == results[MODEL].exposures.keys()
    assert_same_scores(run(own, config, on_step=steps.append)[GAIN], results[GAIN])
    assert len(steps) == 1


@pytest.mark.parametrize("purge", ["auto", 2])
def test_folds_never_train_on_an_era_that_they_score_nor_within_the_purge(own, purge):
    config = own.config(files=WALK["files"], validate={"folds": 3, "purge": purge})
    own.fit(config)
    result, n_purged = judge(own, config), 8 if purge == "auto" else purge
    assert result.way == "walk-forward"
    eras = result.scores["corr"].eras.tolist()
    folder, scored = own.workspace.model_dir("someone") / "folds", []
    for number, fold in enumerate(result.folds, 1):
        record = read_record(folder / str(number), "model")
        assert record.last_era == fold.last_trained
        assert int(record.last_era) + n_purged + 1 == int(fold.first)
        assert record.first_era == "0001"
        assert record.n_eras == int(record.last_era)
        inside = [era for era in eras if fold.first <= era <= fold.last]
        scored += inside
        # By its own fit, and no other.
        estimator, _ = load_fit(folder / str(number), "model")
        frame = pd.concat([own.frame("train"), own.frame("validation")])
        frame = frame[frame["era"].isin(inside)]
        ranks = estimator.predict(frame[own.features])
        expected = numerai_corr(ranks, frame[own.target], frame["era"])
        found = result.scores["corr"].scores[np.isin(eras, inside)]
        assert found == pytest.approx(expected.scores, abs=1e-12)
    assert scored == eras
    assert eras[-1] == "0050"
    assert "0030" in eras  # of the train file, and others of the validation file
    assert "0031" in eras


def test_folds_are_trained_once_resumed_and_trained_again_if_asked_otherwise(
    own, monkeypatch
):
    config, trained = own.config(**WALK), []
    own.fit(config)
    original = training.train

    def count(settings, *, folder, **options):
        trained.append(folder.name)
        if interrupted:
            options["on_progress"] = stop
        return original(settings, folder=folder, **options)

    def stop(stage, done, total):
        if stage == "model" and done == 15:
            raise KeyboardInterrupt

    monkeypatch.setattr(validation, "train", count)
    interrupted, steps = False, []
    expected = judge(own, config, on_step=steps.append)
    assert trained == ["1", "2"]
    step = "Training model of fold 1, up to era 0014: there is no model yet."
    assert steps[0] == step
    assert_same_scores(judge(own, config), expected)
    assert trained == ["1", "2"]
    # Other parameters: the folds are stale, and an interrupted one goes on.
    other = own.config(**WALK, random_state=3, checkpoint_every=5)
    interrupted = True
    with pytest.raises(KeyboardInterrupt):
        judge(own, other)
    interrupted = False
    steps.clear()
    judge(own, other, on_step=steps.append)
    assert trained == ["1", "2", "1", "1", "2"]
    assert "a training was interrupted" in steps[0]
    assert "random_state was 0 and is 3" in steps[1]


def test_a_blend_of_targets_is_scored_on_its_own_with_the_longest_purge(own):
    config = own.config(members=MEMBERS, validate={"folds": 2})
    records = own.fit(config)
    assert [record.target for record in records] == [own.target, "target_birch_60"]
    result = judge(own, config)
    # 60 days: 16 eras after 0030.
    assert result.way == "hold-out"
    assert result.scores["corr"].eras.tolist() == ["0047", "0048", "0049", "0050"]
    blend, _ = load_blend(own.workspace.model_dir("someone"), config.models[0])
    frame = own.frame("validation").query("era == '0048'")
    ranks = blend.ranks(frame[blend.features].to_numpy(), blend.features)
    corr = numerai_corr(ranks, frame[own.target])
    assert result.scores["corr"].scores[1] == pytest.approx(corr, abs=1e-12)


def test_a_blend_walks_forward_with_all_its_members(own):
    bounded = [{**MEMBERS[0], "last_era": "0020"}, {**MEMBERS[1], "first_era": "0004"}]
    config = own.config(members=bounded, **WALK)
    own.fit(config)
    result = judge(own, config)
    assert result.way == "walk-forward"
    for number, fold in enumerate(result.folds, 1):
        folder = own.workspace.model_dir("someone") / "folds" / str(number)
        amber, birch = (read_record(folder, name) for name in ("amber", "birch"))
        assert amber.last_era == min("0020", fold.last_trained)
        assert birch.last_era <= fold.last_trained
        assert birch.first_era == "0004"
        assert int(fold.first) - int(fold.last_trained) == 17


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"target": "target_none_20"}, DataError, "no column.*'target_none_20'"),
        ({"target": "target_none_5"}, ConfigError, "set purge to a number of eras"),
        ({"members": ONE_OF_5_DAYS}, ConfigError, "'target_x_5' is neither: set purge"),
        ({"validate": {"purge": 47}}, DataError, "nothing to validate.* 0030 and 47"),
        ({"validate": {"fnc_feature_set": "x"}}, DataError, "no feature set 'x'"),
        ({"members": MEMBERS}, NoModelError, "no trained model 'amber'"),
    ],
)  # fmt: skip
def test_what_cannot_be_validated_is_refused(demo, changes, error, message):
    with pytest.raises(error, match=message):
        run(demo, demo.config(**changes))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("validation", lambda x: x.assign(era="X"), "era 'X' is not a number of four"),
        ("validation", lambda x: x.sort_index(), "not lie together: sort the file by"),
        ("validation", lambda x: x.astype({x.columns[2]: str}), "'feature.* not num"),
        ("validation", lambda x: x.drop(columns=x.columns[2]), "lacks 1 of 20 col"),
        ("validation", lambda x: x.assign(target_amber_20=np.float32(np.inf)),
         "target_amber_20' is infinite in 1,440 rows"),
        ("meta_model", lambda x: pd.concat([x, x[:1]]), "more than once"),
        ("meta_model", lambda x: x.assign(numerai_meta_model="a"), "is not numeric"),
        ("meta_model", lambda x: x.assign(numerai_meta_model=np.inf), "is infinite in"),
    ],
)  # fmt: skip
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


def test_a_report_is_current_until_something_else_is_asked_for(own):
    """Whatever is in the file: one that cannot be read is not current."""
    from sklearn_era.numerai.report import write_report

    config = own.config()
    (model,) = config.models
    records = [read_record(own.workspace.model_dir("someone"), "model")]

    def is_current(config=config, records=records):
        model = config.models[0]
        return validation.report_is_current(config, own.workspace, model, records)

    assert not is_current()
    write_report(config, own.workspace, model, records, run(own, config))
    assert is_current()
    path = own.workspace.report_dir("someone") / "report.json"
    text = path.read_text()
    for changes in (
        {"validate": {"purge": 3}},
        {"validate": {"folds": 7}},
        {"validate": {"compare_with_gain": True}},
        {"predict": {"neutralize_proportion": 0.5}},
        {"target": "target_birch_20"},
    ):
        assert not is_current(own.config(**changes))
    assert not is_current(records=[records[0].model_copy(update={"sha256": "0" * 64})])
    old = json.loads(text) | {"format": 1, "about": {"model_sha256": records[0].sha256}}
    for damaged in (text[:100], "[]", json.dumps(old), '{"format": 99}'):
        path.write_text(damaged)
        assert not is_current()
