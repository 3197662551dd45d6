"""Training on Numerai's files: which rows, what is refused; and why to train at all."""

import re
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from helpers import peak_memory
from helpers.numerai import training as helper
from helpers.numerai.training import FEATURES, TARGET, make_settings, train_on, why
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.ensemble import BinnedDataset
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_selection import EraWalkForwardSplit
from sklearn_era.numerai import training
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.store import load_fit
from sklearn_era.numerai.training import fingerprint, gain_settings, make_average

FRAME = helper.make_frame()


def fit_in_memory(rows, labels=None, target=TARGET, seed=0, **parameters):
    """A fit of the rows in the order of the labels of their eras."""
    given = {"early_stopping": False, "random_state": seed}
    model = Regressor(**{**helper.PARAMETERS, **parameters, **given})
    labels = np.asarray(rows["era"].astype(int) if labels is None else labels)
    rows = rows.iloc[np.argsort(labels, kind="stable")]
    return model.fit(rows[FEATURES], rows[target].to_numpy(), eras=np.sort(labels))


def test_the_model_is_that_of_the_rows_in_memory(tmp_path, path):
    drawn, told = {"colsample_bytree": 0.3, "max_features": 0.7}, []
    of = {"name": "ender", "random_state": 3, "parameters": drawn}
    record = train_on(path, tmp_path, on_progress=lambda *x: told.append(x), **of)
    model, read = load_fit(tmp_path, "ender")
    helper.assert_same_model(model, fit_in_memory(FRAME, seed=3, **drawn))
    assert model.feature_names_in_.tolist() == FEATURES == record.features
    assert record == read
    assert (record.first_era, record.last_era, record.n_eras) == ("0001", "0030", 30)
    assert (record.n_rows, record.n_rows_without_target) == (1800, 0)
    assert (record.files, record.features_with_missing) == (["train_7.parquet"], [])
    assert record.values == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert record.n_trees == record.n_trees_with_splits == 23
    trees = [("ender", i, 23) for i in range(24)]
    assert told == [("reading", 0, 12), ("reading", 12, 12), *trees]
    names = sorted(item.name for item in tmp_path.iterdir())
    assert names == ["ender.era", "ender.json"]


def test_values_of_a_single_era_are_known(tmp_path):
    rare = FRAME.astype(dict.fromkeys(FEATURES, "float32"))
    rare.loc[rare["era"] == "0002", FEATURES[3]] = 0.2
    path = helper.write_frame(rare, tmp_path / "train_1.parquet")
    record = train_on(path, tmp_path, parameters={"max_iter": 2})
    assert record.values == [0.0, 0.2, 1.0, 2.0, 3.0, 4.0]


def test_missing_targets_are_never_filled_and_missing_values_recorded(tmp_path):
    missing = np.random.default_rng(0).random(len(FRAME)) < 0.1
    labelled = ~missing & (FRAME["era"] <= "0027")
    holed = FRAME.assign(**{TARGET: FRAME[TARGET].where(labelled)})
    holed[FEATURES[2]] = holed[FEATURES[2]].where(np.arange(len(holed)) % 200 > 0)
    record = train_on(helper.write_frame(holed, tmp_path / "train_1.parquet"), tmp_path)
    assert record.features_with_missing == [FEATURES[2]]
    assert (record.n_rows, record.last_era) == (labelled.sum(), "0027")
    assert record.n_rows_without_target == (~labelled).sum()
    model, _ = load_fit(tmp_path, "model")
    helper.assert_same_model(model, fit_in_memory(holed[labelled]))


def test_eras_of_several_files_are_grouped(tmp_path, path):
    later = helper.make_frame(first=31, n_eras=5)
    files = [helper.write_frame(later, tmp_path / "validation_7.parquet"), path]
    chosen = {"first_era": "0002", "last_era": "0034", "every_nth_era": 2}
    chosen |= {"era_offset": 1, "era_groups": 7, "target": "target_late_60"}
    record = train_on(path, tmp_path, files=files, **chosen)
    # Of 3, 5, ..., 33, those that a file has last have no target.
    eras = np.setdiff1d(np.arange(3, 34, 2), [29, 33])
    rows = pd.concat([FRAME, later])
    rows = rows[rows["era"].astype(int).isin(eras)]
    sizes = [60 * part.size for part in np.array_split(eras, 7)]
    expected = fit_in_memory(rows, np.repeat(np.arange(7), sizes), "target_late_60")
    helper.assert_same_model(load_fit(tmp_path, "model")[0], expected)
    assert (record.first_era, record.last_era, record.n_eras) == ("0003", "0031", 14)
    assert (record.n_rows, record.n_rows_without_target) == (14 * 60, 2 * 60)
    assert record.era_groups == 7
    assert why(path, tmp_path, files=files[::-1], **chosen) is None


def test_the_plain_model_has_no_parameters_of_eras(tmp_path, path):
    parameters = {"min_era_coverage": 0.5, "era_weighting": "equal", "n_jobs": 1}
    asked = make_settings(parameters=parameters)
    (settings,) = gain_settings([asked])
    plain = {"split_criterion": "gain", "n_jobs": 1}
    assert settings == make_settings(parameters=plain)
    train_on(path, tmp_path, name="gain", parameters=plain)
    model, _ = load_fit(tmp_path, "gain")
    helper.assert_same_model(model, fit_in_memory(FRAME, **plain))
    # A member of a blend that is plain already stays as it is.
    weighted = make_settings(parameters={**plain, "era_weighting": "equal"})
    assert gain_settings([weighted, asked]) == [weighted, settings]
    with pytest.raises(ConfigError, match="compare_with_gain has nothing to compare"):
        gain_settings([weighted, settings])
    # An average is compared with a single fit.
    for parameters in ({}, {"split_criterion": "gain"}):
        asked = make_settings(estimator="auto", time_budget=9.0, parameters=parameters)
        (settings,) = gain_settings([asked])
        given = settings.estimator, settings.parameters["split_criterion"]
        assert given == ("boosting", "gain")


SECTION = r"\[train.parameters\]"
AUTO, GAMMA = {"estimator": "auto", "purge": 5}, {"loss": "gamma", "max_iter": 4}


@pytest.mark.parametrize(("parameters", "message"), [
    ({"zzz": 5}, "zzz is not .*; use .* loss, max_bins"),
    ({"split_criterion": {"era": -1}}, "weight of 'era' is -1"),
    ({"monotonic_cst": {"x": 1}}, "monotonic_cst"),
    ({"interaction_cst": [[99]]}, "interaction_cst|Interaction"),
])  # fmt: skip
def test_parameters_are_checked_before_files_are_read(tmp_path, parameters, message):
    with pytest.raises(ConfigError, match=message) as caught:
        train_on(tmp_path / "no_such.parquet", tmp_path, parameters=parameters)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    # Names of features are not checked where they are unknown.
    raises = pytest.raises(ConfigError, match=message)
    with nullcontext() if "cst" in message else raises:
        training.make_estimator(make_settings(parameters=parameters), None)


NAMED = "features must name each column"


@pytest.mark.parametrize(("changes", "kind", "message"), [
    ({"features": ["feature_z"]}, DataError, r"1 of 1 .* \(first: feature_z\)"),
    ({"features": ["data_type"]}, DataError, "'data_type' of .* is not numeric"),
    ({"parameters": GAMMA}, ConfigError, rf"^{SECTION} .*[gG]amma"),
    (AUTO | {"parameters": GAMMA}, ConfigError, rf"^{SECTION} .*[gG]amma"),
    # These are checked before files are read.
    ({"target": "target", "files": ["none"]}, ConfigError, "is an alias"),
    *(({"features": x, "files": ["none"]}, ConfigError, NAMED)
      for x in (["a", "a"], [TARGET])),
    ({"features": [], "files": ["none"]}, ConfigError, "'small' has no features"),
])  # fmt: skip
def test_what_cannot_be_trained_on(tmp_path, path, changes, kind, message):
    with pytest.raises(kind, match=message):
        train_on(path, tmp_path, **changes)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_named_with_what_to_do(tmp_path, path):
    """Wherever the damage is: here in a column that only the training reads."""
    later = helper.make_frame(first=31, n_eras=5)
    damaged = helper.write_frame(later, tmp_path / "validation_7.parquet")
    content = bytearray(damaged.read_bytes())
    chunk = pq.ParquetFile(damaged).metadata.row_group(0).column(2)
    start, stop = chunk.dictionary_page_offset, chunk.data_page_offset
    content[start:stop] = b"x" * (stop - start)
    damaged.write_bytes(content)
    said = r"validation_7\.parquet is damaged \(.*\)\. Delete it and download it again"
    with pytest.raises(DataError, match=said) as caught:
        train_on(path, tmp_path, files=[path, damaged])
    assert "train_7" not in str(caught.value)


def test_the_fingerprint_tells_data_apart():
    def digest(rows):
        X, y, eras = rows[FEATURES], rows[TARGET], rows["era"].to_numpy()
        dataset = BinnedDataset.from_arrays(X, y, eras=eras, max_bins=5)
        found, peak = peak_memory(fingerprint, dataset)
        assert peak < dataset.X_binned.nbytes  # no copy
        return found

    first = digest(FRAME)
    assert len(first) == 64
    assert first == digest(FRAME.copy())
    one = (np.arange(len(FRAME)) == 7).astype(np.int8)
    changes = (
        {FEATURES[1]: FRAME[FEATURES[1]] ^ one},
        {TARGET: FRAME[TARGET] + one},
        {FEATURES[0]: FRAME[FEATURES[0]] * 2},  # other thresholds
        {FEATURES[0]: np.int8(2)},  # no threshold
        {"era": FRAME["era"].replace("0001", "0002")},
    )
    others = [FRAME.iloc[:-1], *(FRAME.assign(**change) for change in changes)]
    assert len({first, *map(digest, others)}) == 7


SMALL = {"max_iter": 4}
ASKED = AUTO | {"parameters": SMALL}


@pytest.fixture(scope="module")
def folder(path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit")
    train_on(path, folder, **ASKED)
    return folder


def gap_of(cv, weeks, labels):
    """The fewest weeks between training and test, and the number of folds."""
    folds = list(cv.split(weeks, groups=labels))
    gaps = [weeks[test].min() - weeks[train].max() - 1 for train, test in folds]
    return min(gaps), len(folds)


@pytest.mark.parametrize("every_nth_era", [1, 2, 4])
@pytest.mark.parametrize("groups", [0, 12, 17])
@pytest.mark.parametrize("purge", [0, 1, 7, 8, 16])
def test_folds_leave_out_the_purge_and_no_more(every_nth_era, groups, purge):
    weeks = np.arange(0, 240, every_nth_era)
    labels = weeks
    if groups:
        parts = np.array_split(weeks, groups)
        labels = np.repeat(np.arange(groups), [part.size for part in parts])
    of = {"every_nth_era": every_nth_era, "era_groups": groups}
    settings = make_settings(estimator="auto", **of)
    average = make_average(None, settings, weeks.size, purge)
    cv, n_tested = average.cv, average.cv.test_size
    gap, n_folds = gap_of(cv, weeks, labels)
    assert (gap >= purge, n_folds, average.time_budget) == (True, 3, None)
    if cv.gap:
        shorter = EraWalkForwardSplit(3, test_size=n_tested, gap=cv.gap - 1)
        # Groups differ in size by one era: the smallest may be between.
        slack = every_nth_era * cv.gap if groups else 0
        assert gap_of(shorter, weeks, labels)[0] < purge + slack
    assert 6 * n_tested <= np.unique(labels).size


@pytest.mark.parametrize(("changes", "purge", "n_eras", "said"), [
    ({}, 8, 11, "needs 12 eras .*purge of 8 weeks, .* are 11 eras: use"),
    ({"every_nth_era": 4}, 16, 7, "needs 8 eras .* there are 7 eras"),
    ({"era_groups": 4}, 8, 40, "needs 5 eras .* 4 groups of the 40 eras"),
])  # fmt: skip
def test_too_few_eras_are_told_before_the_fit(changes, purge, n_eras, said):
    settings = make_settings(estimator="auto", **changes)
    with pytest.raises(ConfigError, match=rf"\[train\] estimator = 'auto' {said}"):
        make_average(None, settings, n_eras, purge)
    changes = {"era_groups": 5} if "era_groups" in changes else changes
    settings = make_settings(estimator="auto", **changes)
    assert make_average(None, settings, n_eras + 1, purge).cv.test_size == 1


def test_the_fit_is_that_of_the_rows_in_memory(path, folder):
    model, record = load_fit(folder, "model")
    plain = Regressor(**helper.PARAMETERS | SMALL, early_stopping=False, random_state=0)
    cv = EraWalkForwardSplit(3, test_size=5, gap=5)
    expected = AutoEraRegressor(plain, cv=cv, era_order="ordered")
    X, eras = FRAME[FEATURES], FRAME["era"].astype(int).to_numpy()
    expected.fit(X, FRAME[TARGET].to_numpy(), eras=eras)
    assert model.weights_ == expected.weights_ == record.weights
    assert model.feature_names_in_.tolist() == FEATURES == record.features
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    expected = {"estimator": "auto", "purge_of_folds": 5, "time_budget": 0.0}
    expected |= {"first_era": "0001", "last_era": "0030", "n_eras": 30}
    expected |= {"n_rows": 1800, "features_with_missing": []}
    assert record.model_dump().items() >= expected.items()
    boosters = [x for x in model.members_.values() if hasattr(x, "_predictors")]
    assert record.n_trees == sum(len(x._predictors) for x in boosters) > 0
    assert {x.name for x in folder.iterdir()} == {"model.era", "model.json"}


def test_why_it_would_be_fitted_again(path, folder):
    assert why(path, folder, **ASKED) is None
    for change, reason in (
        ({"purge": 6}, "purge_of_folds changed from 5 to 6"),
        ({"time_budget": 9.0}, "time_budget changed from 0.0 to 9.0"),
        ({"estimator": "boosting"}, "estimator changed from 'auto' to 'boosting'"),
    ):
        assert reason in why(path, folder, **ASKED | change)
    # These are of averages alone.
    assert why(path, folder, purge=3) == why(path, folder, purge=4, time_budget=9.0)


def test_missing_targets_and_values_in_a_fit_short_of_time(tmp_path, capsys):
    late = FRAME.assign(**{TARGET: FRAME[TARGET].where(FRAME["era"] <= "0027")})
    late[FEATURES[2]] = late[FEATURES[2]].where(np.arange(len(late)) % 50 > 0)
    path = helper.write_frame(late, tmp_path / "train_1.parquet")
    with pytest.warns(UserWarning, match="time_budget: no time is left for 6 of 8"):
        record = train_on(path, tmp_path, **ASKED, time_budget=1e-9)
    assert (record.n_rows, record.n_rows_without_target) == (27 * 60, 180)
    assert record.features_with_missing == [FEATURES[2]]
    model, record = load_fit(tmp_path, "model")
    assert (model.weights_, [*model.weights_]) == (record.weights, ["plain", "linear"])
    assert capsys.readouterr().out.startswith("AutoEra 1/24 fits: plain, loss ")
    X, known = late[FEATURES], late["era"] <= "0027"
    expected = clone(model).set_params(time_budget=None, members=["linear"])
    expected.fit(X[known], late[TARGET][known], eras=late["era"][known])
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_all_steps_of_a_round(empty, quick_scores):
    empty.change(files='["train", "validation"]', max_iter="2", automatic="true")
    empty.change(compare_with_gain="true", purge="3")
    empty.add('estimator = "auto"\ntime_budget = 1e-9\n')
    output = empty.run("run", warned="time_budget: no time is left for 6 of 8 members")
    record = empty.model()
    assert (record["estimator"], record["purge_of_folds"]) == ("auto", 3)
    shown = ", ".join(f"{x} {w:.2f}" for x, w in record["weights"].items() if w)
    assert f"It averages models by the weights {shown}." in output
    assert output.count("AutoEra 1/24 fits: plain") == 3
    empty.assert_submitted_once()
    assert "has submission" in empty.run("submit")
    for fit in ("folds/1/model.era", "folds/2/model.era"):
        assert (empty.model_folder / fit).is_file()
    assert (empty.report_folder / "split_agreement.png").is_file()
    assert not (empty.model_folder / "portable.pkl").exists()
    assert "is up to date" in empty.run("train")
    assert not re.search("Would (train|valid|exp)", empty.run("run --dry-run"))
    told = "estimator = 'auto' of 'my_model' cannot be exported, as a portable model"
    for command in ("export", "upload"):
        assert empty.fail(command, code=7).startswith(told)
    frame = pd.read_csv(empty.round_folder / "predictions.csv", index_col="id")
    live = pd.read_parquet(empty.data_folder / "live_1401.parquet")
    model, record = load_fit(empty.model_folder, "model")
    ranks = pd.Series(model.predict(live[record.features])).rank().to_numpy()
    assert frame["prediction"].to_numpy() == pytest.approx((ranks - 0.5) / len(live))
    empty.change(purge="4")
    assert "purge_of_folds changed from 3 to 4" in empty.run("run --dry-run")
