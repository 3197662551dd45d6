"""A small demo folder and a model for it, which tests of Numerai's files share."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.numerai.data.dataset import read_feature_metadata
from sklearn_era.numerai.demo import DemoData, write_demo_data
from sklearn_era.numerai.training.model_store import ModelRecord
from sklearn_era.numerai.workspace import Workspace

RECORD = ModelRecord(
    model_name="someone",
    version="v5.3",
    feature_set="all",
    features=["feature_a", "feature_b"],
    target="target_amber_20",
    horizon=20,
    purge=8,
    first_era="0001",
    last_era="0030",
    n_eras=30,
    n_rows=1800,
    every_nth_era=1,
    era_groups=0,
    parameters={"split_criterion": {"era": 0.5, "vrex": 0.5}, "max_iter": 3},
)


@dataclass(frozen=True)
class SmallDemo:
    workspace: Workspace
    data: DemoData
    features: list[str]
    estimator: HistGradientBoostingRegressor
    record: ModelRecord

    def path(self, name: str) -> Path:
        return self.data.paths[name]

    def frame(self, name: str) -> pd.DataFrame:
        return pd.read_parquet(self.path(name))


def small_demo(root: Path) -> SmallDemo:
    """30 + 24 eras of 60 rows; the model is fitted to an array of the train file."""
    workspace = Workspace(root, "v5.3", "someone")
    eras = {"n_train_eras": 30, "n_validation_eras": 24, "n_future_eras": 3}
    data = write_demo_data(workspace, **eras, rows_per_era=60, n_features=20)
    features = read_feature_metadata(data.paths["features"]).features("all")
    train = pd.read_parquet(data.paths["train"])
    parameters = {"max_iter": 20, "max_depth": 3, "random_state": 0}
    estimator = HistGradientBoostingRegressor(early_stopping=False, **parameters)
    estimator.fit(train[features].to_numpy(), train[data.target].to_numpy())
    record = replace(RECORD, features=features, parameters=parameters)
    return SmallDemo(workspace, data, features, estimator, record)


class Constant:
    """A model that has learned nothing."""

    def predict(self, X):
        return np.full(len(X), 0.5)
