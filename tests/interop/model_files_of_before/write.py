"""Write the model files of this version: run this file, once for each release.

It writes a folder of its own, and never again the same one: the
files are what later releases have to read.
"""

from pathlib import Path

import numpy as np

import sklearn_era
from sklearn_era import ensemble
from sklearn_era.criteria import Blend
from sklearn_era.model_files import save_model

N_ROWS = 400


def rows():
    """Features, among them categories and missing values, two targets, and eras."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4))
    X[:, 0] = rng.integers(0, 5, size=N_ROWS)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = rng.normal(size=N_ROWS)
    y = X[:, 3] + rng.normal(size=N_ROWS)
    return X, y, np.digitize(y, [-0.5, 0.5]), np.repeat(np.arange(8), N_ROWS // 8)


def models():
    """An estimator of each class, by the name of its file."""
    small = {"max_iter": 5, "max_leaf_nodes": 8, "random_state": 0}
    booster = {**small, "categorical_features": [0], "early_stopping": False}
    trees = {"n_estimators": 5, "max_leaf_nodes": 8, "random_state": 0}
    return {
        "regressor": ensemble.HistGradientBoostingRegressor(
            split_criterion="directional", era_effects="intercept", **booster
        ),
        "classifier": ensemble.HistGradientBoostingClassifier(
            split_criterion=Blend({"era": 1, "vrex": 0.5}, normalize=False), **booster
        ),
        "forest_regressor": ensemble.EraForestRegressor(**trees),
        "forest_classifier": ensemble.EraForestClassifier(**trees),
    }


def predictor(model):
    """Sums of leaves, where a model has them: exponentials depend on the processor."""
    methods = ("decision_function", "predict_proba", "predict")
    return next(getattr(model, name) for name in methods if hasattr(model, name))


def main():
    folder = Path(__file__).parent / sklearn_era.__version__
    folder.mkdir()
    X, y, labels, eras = rows()
    predictions = {}
    for name, model in models().items():
        is_classes = name.endswith("classifier")
        model.fit(X, labels if is_classes else y, eras=eras)
        save_model(model, folder / f"{name}.era", era="week")
        predictions[name] = predictor(model)(X)
    np.savez_compressed(folder / "predictions.npz", X=X, **predictions)


if __name__ == "__main__":
    main()
