"""A small demo folder and models in it, which tests of Numerai's files share."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from sklearn_era.cli._numerai_demo import DEMO_TARGETS, DemoData, write_demo_data
from sklearn_era.numerai.config import Config, Workspace, resolve
from sklearn_era.numerai.data import read_features
from sklearn_era.numerai.training import FitPlan, train

SMALL = {
    "max_iter": 20, "max_depth": 3, "learning_rate": 0.1, "min_samples_leaf": 20,
    "split_criterion": "directional",
}  # fmt: skip


@dataclass(frozen=True)
class SmallDemo:
    workspace: Workspace
    data: DemoData
    features: list[str]
    target: str

    def path(self, name: str) -> Path:
        return self.data.paths[name]

    def frame(self, name: str) -> pd.DataFrame:
        return pd.read_parquet(self.path(name))

    def copy(self, root: Path) -> "SmallDemo":
        """The same in a folder of its own, to be changed."""
        shutil.copytree(self.workspace.root, root, dirs_exist_ok=True)
        workspace = Workspace(root, self.workspace.version)
        return SmallDemo(workspace, self.data, self.features, self.target)

    def change(self, name: str, change, **options) -> Path:
        """Write a newer file with a change."""
        path = self.workspace.data_file(name, 2)
        change(self.frame(name)).to_parquet(path, **options)
        return path

    def config(self, *, validate=None, predict=None, members=(), **settings) -> Config:
        """A model "someone" that learns from the train file, with changes of that."""
        base = {"target": self.target, "feature_set": "all", "files": ["train"]}
        model = {"name": "someone", "parameters": SMALL, **base, **settings}
        if members:
            model["member"] = list(members)
        tables = {"validate": validate or {}, "predict": predict or {}}
        return resolve({"format": 2, "model": [model], **tables})

    def fit(self, config: Config):
        (model,) = config.models
        features = read_features(self.path("features")).features
        records = []
        for name, settings in ((x.name, x.train) for x in model.members):
            plan = FitPlan(
                settings, [self.workspace.newest(file) for file in settings.files],
                features(settings.feature_set), self.workspace.model_dir(model.name),
                name=name, version=config.data.version,
            )  # fmt: skip
            records.append(train(plan))
        return records


def small_demo(root: Path) -> SmallDemo:
    workspace = Workspace(root, "v5.3")
    eras = {"n_train_eras": 30, "n_validation_eras": 24, "n_future_eras": 3}
    data = write_demo_data(workspace, **eras, rows_per_era=60, n_features=20)
    features = read_features(data.paths["features"]).features("all")
    demo = SmallDemo(workspace, data, features, DEMO_TARGETS[0])
    demo.fit(demo.config())
    return demo
