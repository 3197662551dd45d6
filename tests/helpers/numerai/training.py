"""Small files in the layout of Numerai's, and trainings on them."""

import os
import shutil
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

from sklearn_era.numerai.config import TrainSection
from sklearn_era.numerai.training import FitPlan, train

FEATURES = [f"feature_{name}" for name in "abcdefghijkl"]
TARGET = "target_demo_20"
PARAMETERS = {
    "split_criterion": "directional", "max_iter": 23, "max_leaf_nodes": 7,
    "learning_rate": 0.1, "min_samples_leaf": 5, "max_bins": 5,
}  # fmt: skip


def make_frame(first=1, n_eras=30, rows_per_era=60, seed=0):
    """Rows of eras that follow one another; the last three wait for their target."""
    rng = np.random.default_rng([seed, first])
    n_rows = n_eras * rows_per_era
    X = rng.integers(0, 5, size=(n_rows, len(FEATURES)), dtype=np.int8)
    frame = pd.DataFrame(X, columns=FEATURES)
    eras = np.repeat(np.arange(first, first + n_eras), rows_per_era)
    frame.insert(0, "era", [f"{era:04}" for era in eras])
    frame.insert(1, "data_type", "train")
    score = X[:, :3].sum(axis=1) / 12 + rng.normal(size=n_rows)
    score += rng.normal(size=first + n_eras)[eras] * X[:, 3] / 4
    bins = np.digitize(score, np.quantile(score, [0.05, 0.25, 0.75, 0.95]))
    frame[TARGET] = (bins / 4).astype(np.float32)
    frame["target_late_60"] = frame[TARGET].where(eras < first + n_eras - 3)
    frame["target"] = frame[TARGET]
    frame.index = pd.Index([f"n{i:015x}" for i in rng.permutation(n_rows)], name="id")
    return frame


def write_frame(frame, path, row_group_size=400):
    frame.to_parquet(path, row_group_size=row_group_size)
    return path


def make_settings(**changes):
    """Settings of a fit of few trees; `parameters` are added to the usual ones."""
    usual = {
        "target": TARGET, "files": ["train"], "feature_set": "small",
        "checkpoint_every": 5,
    }  # fmt: skip
    changes["parameters"] = {**PARAMETERS, **changes.get("parameters", {})}
    return TrainSection(**{**usual, **changes})


def plan_of(path, folder, *, files=None, name="model", purge=0, **given):
    """The plan of a fit to a file, with changes of the usual settings."""
    features = given.pop("features", FEATURES)
    of = {"version": given.pop("version", "v5.3"), "name": name, "purge": purge}
    files = [Path(file) for file in files or [path]]
    return FitPlan(make_settings(**given), files, features, folder, **of)


def train_on(path, folder, *, restart=False, on_progress=lambda *_: None, **given):
    plan = plan_of(path, folder, **given)
    return train(plan, restart=restart, on_progress=on_progress)


def why(path, folder, **given):
    return plan_of(path, folder, **given).why_train()


def stopping_at(number, name=""):
    """A patch that ends work before a file of this name is replaced for the n-th time.

    Without a name, any file counts.
    """
    replace, left = os.replace, iter(range(number - 1))

    def replace_or_stop(source, target):
        if str(target).endswith(name) and next(left, None) is None:
            raise KeyboardInterrupt
        replace(source, target)

    return patch.object(os, "replace", replace_or_stop)


VERSION_BEFORE = Path(__file__).parents[2] / "numerai" / "version_before"


def copy_version_before(folder):
    """A folder that the version before left, to work in; its README shows how."""
    return shutil.copytree(VERSION_BEFORE, folder / "version_before")


def assert_same_model(one, other):
    """Trees, baseline and the state of what draws features, bit for bit."""
    assert one.n_iter_ == other.n_iter_
    np.testing.assert_array_equal(one._baseline_prediction, other._baseline_prediction)
    for (a,), (b,) in zip(one._predictors, other._predictors, strict=True):
        assert a.nodes.tobytes() == b.nodes.tobytes()
    a, b = (x._feature_subsample_rng.bit_generator.state for x in (one, other))
    assert a == b
    assert one.get_params() == other.get_params()
