"""The demo's files have the layout of Numerai's, and hide what they should."""

import re

import numpy as np
import pandas as pd
import pytest

from helpers.numerai.demo import small_demo
from sklearn_era.numerai.data import check_parquet, read_features

TARGETS = [f"target_{x}" for x in ("amber_20", "birch_20", "amber_60", "birch_60")]
TARGETS.insert(0, "target")


@pytest.mark.parametrize("name", ["train", "validation", "live"])
def test_columns_dtypes_and_index(demo, name):
    frame = demo.frame(name)
    assert frame.index.name == "id"
    assert all(re.fullmatch("n[0-9a-f]{15}", one) for one in frame.index)
    assert list(frame.columns) == ["era", "data_type", *demo.features, *TARGETS]
    assert set(frame[demo.features].dtypes) == {np.dtype(np.int8)}
    assert set(frame[TARGETS].dtypes) == {np.dtype(np.float32)}
    assert np.unique(frame[demo.features]).tolist() == [0, 1, 2, 3, 4]
    assert set(frame) < set(check_parquet(demo.path(name), live=name == "live"))


def test_eras_follow_one_another_and_ids_are_unique_over_all(demo):
    names = "train", "validation", "live"
    rows = pd.concat([*map(demo.frame, names), pd.read_parquet(demo.data.future)])
    numbers = [f"{i:04d}" for i in range(1, 59)]
    assert rows["era"].unique().tolist() == [*numbers[:54], "X", *numbers[55:]]
    assert rows.index.nunique() == len(rows) == (30 + 24 + 1 + 3) * 60


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
    # The alias is another target than those to train on.
    assert (train["target"] == train["target_amber_60"]).all()
    assert demo.frame("live")[TARGETS].isna().all(axis=None)


def test_feature_sets_and_targets_are_columns(demo):
    metadata = read_features(demo.path("features"))
    assert metadata.targets == TARGETS
    for name in ("small", "medium", "fncv3_features"):
        assert set(metadata.features(name)) < set(demo.features)
    hidden = {*demo.data.stable_features, *demo.data.unstable_features}
    assert len(hidden) == 18
    assert hidden <= set(demo.features)


@pytest.mark.parametrize("part", ["validation", "live"])
def test_other_models_are_ranks_of_the_same_rows(demo, part):
    models, rows = demo.frame(f"{part}_benchmark_models"), demo.frame(part)
    known = [x.removeprefix("target_").replace("_", "") for x in TARGETS[1:]]
    assert list(models.columns) == ["era", *(f"v53_lgbm_{x}" for x in known)]
    assert models.index.equals(rows.index)
    for _, one in models.groupby("era"):
        ranks = np.sort(one["v53_lgbm_amber20"].to_numpy())
        assert ranks == pytest.approx((np.arange(60) + 0.5) / 60)
    example = demo.frame(f"{part}_example_preds")
    assert example.index.equals(rows.index)
    assert example["prediction"].between(0, 1, inclusive="neither").all()


def test_meta_model_begins_later_than_the_validation_data(demo):
    meta = demo.frame("meta_model")
    assert (meta["era"].iloc[0], meta["era"].iloc[-1]) == ("0035", "0054")
    assert list(meta.columns) == ["era", "data_type", "numerai_meta_model"]


def test_same_seed_same_files(demo, tmp_path):
    again = small_demo(tmp_path)
    for name in ("train", "meta_model", "live_benchmark_models"):
        pd.testing.assert_frame_equal(again.frame(name), demo.frame(name))
