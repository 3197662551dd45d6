"""Fits of estimator = "auto": their folds, and what each step does with them."""

import re

import numpy as np
import pandas as pd
import pytest

from helpers.numerai.training import (
    FEATURES,
    PARAMETERS,
    TARGET,
    make_frame,
    make_settings,
    train_on,
    why,
    write_frame,
)
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.model_selection import EraWalkForwardSplit
from sklearn_era.numerai import write_portable_model
from sklearn_era.numerai.averages import make_average
from sklearn_era.numerai.errors import ConfigError, ExportError
from sklearn_era.numerai.store import load_fit
from sklearn_era.numerai.training import gain_settings, make_estimator

FRAME = make_frame()
SMALL = {"max_iter": 4}
ASKED = {"estimator": "auto", "parameters": SMALL, "purge": 5}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_frame(FRAME, tmp_path_factory.mktemp("data") / "train_7.parquet")


@pytest.fixture(scope="module")
def folder(path, tmp_path_factory):
    """The folder of a fit."""
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
    settings = make_settings(
        estimator="auto", every_nth_era=every_nth_era, era_groups=groups
    )
    average = make_average(HistGradientBoostingRegressor(), settings, weeks.size, purge)
    gap, n_folds = gap_of(average.cv, weeks, labels)
    assert gap >= purge
    assert n_folds == 3
    if average.cv.gap:
        shorter = EraWalkForwardSplit(
            3, test_size=average.cv.test_size, gap=average.cv.gap - 1
        )
        # Groups differ in size by one era: the smallest may be between.
        slack = every_nth_era * average.cv.gap if groups else 0
        assert gap_of(shorter, weeks, labels)[0] < purge + slack
    assert 6 * average.cv.test_size <= np.unique(labels).size
    assert not make_average(None, settings, weeks.size, purge).time_budget


@pytest.mark.parametrize(
    ("changes", "purge", "n_eras", "said"),
    [
        ({}, 8, 11, "needs 12 eras .*purge of 8 weeks, .* are 11 eras: use"),
        ({"every_nth_era": 4}, 16, 7, "needs 8 eras .* there are 7 eras"),
        ({"era_groups": 4}, 8, 40, "needs 5 eras .* 4 groups of the 40 eras"),
    ],
)
def test_too_few_eras_are_told_before_the_fit(changes, purge, n_eras, said):
    settings = make_settings(estimator="auto", **changes)
    with pytest.raises(ConfigError, match=rf"\[train\] estimator = 'auto' {said}"):
        make_average(None, settings, n_eras, purge)
    changes = {"era_groups": 5} if "era_groups" in changes else changes
    settings = make_settings(estimator="auto", **changes)
    average = make_average(None, settings, n_eras + 1, purge)
    assert average.cv.test_size == 1


def test_the_fit_is_that_of_the_rows_in_memory(path, folder):
    model, record = load_fit(folder, "model")
    plain = HistGradientBoostingRegressor(
        **PARAMETERS | SMALL, early_stopping=False, random_state=0
    )
    cv = EraWalkForwardSplit(3, test_size=5, gap=5)
    expected = AutoEraRegressor(plain, cv=cv, era_order="ordered")
    X, eras = FRAME[FEATURES], FRAME["era"].astype(int).to_numpy()
    expected.fit(X, FRAME[TARGET].to_numpy(), eras=eras)
    assert model.weights_ == expected.weights_ == record.weights
    assert model.feature_names_in_.tolist() == FEATURES == record.features
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert (record.estimator, record.purge_of_folds, record.time_budget) == (
        "auto",
        5,
        0.0,
    )
    assert (record.first_era, record.last_era, record.n_eras) == ("0001", "0030", 30)
    assert (record.n_rows, record.features_with_missing) == (1800, [])
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


def test_a_fit_of_members_for_which_there_is_time(path, tmp_path, capsys):
    train_on(path, tmp_path, **ASKED, time_budget=1e-9)
    model, record = load_fit(tmp_path, "model")
    assert model.weights_ == record.weights == {"plain": 1.0}
    assert capsys.readouterr().out.startswith("AutoEra 1/9: plain, loss ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"loss": "gamma"}, r"\[train.parameters\] .*[gG]amma"),
        ({"monotonic_cst": {"x": 1}}, "monotonic_cst"),
    ],
)
def test_what_its_plain_model_refuses(path, tmp_path, changes, said):
    asked = ASKED | {"parameters": SMALL | changes}
    with pytest.raises(ConfigError, match=said) as caught:
        train_on(path, tmp_path, **asked)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_missing_targets_and_values(tmp_path):
    late = FRAME.assign(**{TARGET: FRAME[TARGET].where(FRAME["era"] <= "0027")})
    late[FEATURES[2]] = late[FEATURES[2]].where(np.arange(len(late)) % 50 > 0)
    path = write_frame(late, tmp_path / "train_1.parquet")
    record = train_on(path, tmp_path, **ASKED, time_budget=1e-9)
    assert (record.n_rows, record.n_rows_without_target) == (27 * 60, 180)
    assert record.features_with_missing == [FEATURES[2]]
    model, _ = load_fit(tmp_path, "model")
    (plain,) = model.members_.values()
    rows = late[late["era"] <= "0027"]
    expected = make_estimator(make_settings(parameters=SMALL), FEATURES)
    eras = rows["era"].astype(int).to_numpy()
    expected.fit(rows[FEATURES], rows[TARGET].to_numpy(), eras=eras)
    np.testing.assert_array_equal(
        plain.predict(late[FEATURES]), expected.predict(late[FEATURES])
    )


def test_it_is_compared_with_a_single_fit_by_gain():
    for parameters in ({}, {"split_criterion": "gain"}):
        asked = make_settings(estimator="auto", time_budget=9.0, parameters=parameters)
        (settings,) = gain_settings([asked])
        assert settings.estimator == "boosting"
        assert settings.parameters["split_criterion"] == "gain"


def test_public_export_names_what_to_convert(folder, tmp_path):
    model, _ = load_fit(folder, "model")
    with pytest.raises(ExportError, match="of AutoEra each of its members_"):
        write_portable_model(model, tmp_path / "model.pkl")
    assert list(tmp_path.iterdir()) == []


def test_all_steps_of_a_round(empty):
    """Trained, validated in folds, predicted and submitted, but not exported."""
    empty.change(
        files='["train", "validation"]', max_iter="2", automatic="true",
        compare_with_gain="true", purge="3",
    )  # fmt: skip
    empty.add('estimator = "auto"\n')
    output = empty.run("run")
    record = empty.model()
    assert (record["estimator"], record["purge_of_folds"]) == ("auto", 3)
    shown = ", ".join(f"{x} {w:.2f}" for x, w in record["weights"].items() if w)
    assert f"It averages models by the weights {shown}." in output
    assert output.count("AutoEra 1/9: plain") == 3
    empty.assert_submitted_once()
    assert "has submission" in empty.run("submit")
    folds = [empty.model_folder / "folds" / str(k) / "model.era" for k in (1, 2)]
    assert all(path.is_file() for path in folds)
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
