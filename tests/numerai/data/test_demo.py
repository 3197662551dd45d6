"""The demo's files have the layout of Numerai's, and hide what they say they hide."""

import re

import numpy as np
import pandas as pd
import pytest

from helpers.numerai.demo import small_demo
from sklearn_era.numerai.data.dataset import check_parquet, read_feature_metadata
from sklearn_era.numerai.demo import write_demo_data
from sklearn_era.numerai.errors import ConfigError, DataError
from sklearn_era.numerai.workspace import Workspace

TARGETS = [
    "target", "target_amber_20", "target_amber_60", "target_birch_20",
    "target_birch_60",
]  # fmt: skip


def test_files_are_those_of_a_round(demo):
    paths = demo.data.paths
    assert paths == {name: demo.workspace.data_file(name, 1) for name in paths}
    assert set(paths) == {
        "features", "train", "validation", "live", "meta_model",
        "train_benchmark_models", "validation_benchmark_models",
        "live_benchmark_models", "validation_example_preds", "live_example_preds",
    }  # fmt: skip
    assert not {demo.data.live_targets, demo.data.future} & {*paths.values()}


@pytest.mark.parametrize("name", ["train", "validation", "live"])
def test_columns_dtypes_and_index(demo, name):
    frame = demo.frame(name)
    assert frame.index.name == "id"
    assert all(re.fullmatch("n[0-9a-f]{15}", one) for one in frame.index)
    assert list(frame.columns) == ["era", "data_type", *demo.features, *TARGETS]
    assert set(frame[demo.features].dtypes) == {np.dtype(np.int8)}
    assert set(frame[TARGETS].dtypes) == {np.dtype(np.float32)}
    assert np.unique(frame[demo.features]).tolist() == [0, 1, 2, 3, 4]
    summary = check_parquet(demo.path(name), live=name == "live")
    assert (summary.n_rows, summary.id_column) == (len(frame), "id")


def test_eras_follow_one_another_and_ids_are_unique_over_all(demo):
    frames = [demo.frame(name) for name in ("train", "validation", "live")]
    rows = pd.concat([*frames, pd.read_parquet(demo.data.future)])
    numbers = [f"{i:04d}" for i in range(1, 59)]
    assert rows["era"].unique().tolist() == [*numbers[:54], "X", *numbers[55:]]
    assert rows.index.nunique() == len(rows) == (30 + 24 + 1 + 3) * 60
    assert [frame["era"].nunique() for frame in frames] == [30, 24, 1]


def test_newest_targets_are_missing_by_horizon(demo):
    validation = demo.frame("validation")
    number = validation["era"].astype(int)
    for target in TARGETS:
        # The alias stands for a target of 60 days.
        unknown = 4 if target.endswith("_20") else 12
        assert validation[target].isna().eq(number > 54 - unknown).all()
    kinds = np.where(validation["target"].isna(), "test", "validation")
    assert (validation["data_type"] == kinds).all()
    train = demo.frame("train")
    assert train[TARGETS].notna().all(axis=None)
    assert set(train["data_type"]) == {"train"}
    # The alias is another target than the one to train on.
    assert demo.data.target == "target_amber_20"
    assert (train["target"] == train["target_amber_60"]).all()
    assert (train["target"] != train["target_amber_20"]).any()


def test_live_file_has_no_targets_but_the_file_apart_has(demo):
    live = demo.frame("live")
    assert live[TARGETS].isna().all(axis=None)
    assert set(live["data_type"]) == {"live"}
    targets = pd.read_parquet(demo.data.live_targets)
    assert targets.index.equals(live.index)
    assert list(targets.columns) == TARGETS
    counts = targets[demo.data.target].value_counts().sort_index()
    assert counts.to_dict() == {0.0: 3, 0.25: 12, 0.5: 30, 0.75: 12, 1.0: 3}


def test_feature_sets_and_targets_are_columns(demo):
    metadata = read_feature_metadata(demo.path("features"))
    assert metadata.targets == TARGETS
    for name in ("small", "medium", "fncv3_features"):
        assert set(metadata.features(name)) < set(demo.features)
    hidden = demo.data.stable_features + demo.data.unstable_features
    assert len(set(hidden)) == 18
    assert set(hidden) <= set(demo.features)


@pytest.mark.parametrize("part", ["train", "validation", "live"])
def test_benchmarks_are_ranks_named_after_version_and_target(demo, part):
    models = demo.frame(f"{part}_benchmark_models")
    assert list(models.columns) == [
        "era", "v53_lgbm_amber20", "v53_lgbm_amber60", "v53_lgbm_birch20",
        "v53_lgbm_birch60",
    ]  # fmt: skip
    rows = demo.frame(part)
    assert models.index.isin(rows.index).all()
    assert models["era"].equals(rows.loc[models.index, "era"])
    for _, one in models.groupby("era"):
        ranks = np.sort(one["v53_lgbm_amber20"].to_numpy())
        assert ranks == pytest.approx((np.arange(60) + 0.5) / 60)


def test_meta_model_begins_later_than_the_validation_data(demo):
    meta = demo.frame("meta_model")
    assert (meta["era"].iloc[0], meta["era"].iloc[-1]) == ("0035", "0054")
    assert list(meta.columns) == ["era", "data_type", "numerai_meta_model"]
    validation = demo.frame("validation").loc[meta.index]
    assert meta["data_type"].equals(validation["data_type"])
    # The example's predictions are of all rows.
    for part in ("validation", "live"):
        example = demo.frame(f"{part}_example_preds")
        assert example.index.equals(demo.frame(part).index)
        assert list(example.columns) == ["prediction"]
        assert example["prediction"].between(0, 1, inclusive="neither").all()


def test_same_seed_same_files_which_are_not_overwritten(demo, tmp_path):
    again = small_demo(tmp_path)
    with pytest.raises(DataError, match=r"features_1\.json exists already"):
        write_demo_data(again.workspace)
    for name in ("train", "meta_model", "live_benchmark_models"):
        pd.testing.assert_frame_equal(again.frame(name), demo.frame(name))


def test_numbers_out_of_range_are_named(tmp_path):
    for name, value, said in (
        ("n_validation_eras", 12, "must be from 13 to 1,000"),
        ("n_features", 5000, "must be from 20 to 4,096"),
        ("rows_per_era", 3, ""),
    ):
        with pytest.raises(ConfigError, match=f"{name} = {value} {said}"):
            write_demo_data(Workspace(tmp_path, "v5.3", "someone"), **{name: value})
    assert list(tmp_path.iterdir()) == []
