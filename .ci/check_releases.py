"""Fit and read models beside a release of scikit-learn: ``check_releases.py DIR``.

Run in one environment per release, with one DIR for all. The default criterion fits
that release's trees. Trees on columns with few values, which all releases bin alike,
are the same in all, and each release reads the model files of those before it.
"""

import sys
from pathlib import Path

import numpy as np
import sklearn
from sklearn import ensemble as theirs

from sklearn_era import auto, ensemble, model_files
from sklearn_era.criteria import Directional, Era, Invariant, TimeRobust, VREx
from sklearn_era.effects import Intercepts

CRITERIA = (Directional, Era, Invariant, TimeRobust, VREx)
N_RANDOM = 200


def make_rows(rng, n_values):
    n, n_features = int(rng.integers(100, 2_000)), int(rng.integers(1, 8))
    X = rng.normal(size=(n, n_features))
    if n_values:
        X = np.clip(X * n_values / 4, -n_values, n_values).round()
    X[rng.uniform(size=X.shape) < rng.choice([0, 0.1])] = np.nan
    effect = np.nan_to_num(X) @ rng.normal(size=n_features)
    return X, effect + rng.normal(size=n), rng.integers(0, 9, size=n)


def nodes(model):
    """Return all nodes of a booster or forest, to the bit."""
    trees = [tree.nodes for trees in model._predictors for tree in trees]
    return b"".join(tree.tobytes() for tree in trees)


def random_options(rng):
    return {
        "max_iter": int(rng.integers(1, 8)),
        "learning_rate": float(rng.uniform(0.05, 1)),
        "max_leaf_nodes": int(rng.integers(2, 40)),
        "min_samples_leaf": int(rng.integers(1, 40)),
        "l2_regularization": float(rng.choice([0, 1.5])),
        "max_bins": int(rng.integers(2, 256)),
        "max_features": float(rng.choice([0.5, 1])),
        "early_stopping": bool(rng.integers(2)),
        "random_state": 0,
    }


def check_default():
    rng = np.random.default_rng(0)
    for i in range(N_RANDOM):
        X, y, eras = make_rows(rng, int(rng.choice([0, 5])))
        weights = rng.uniform(size=y.size) if rng.integers(2) else None
        options, name = random_options(rng), "HistGradientBoostingRegressor"
        if rng.integers(2):
            y, name = np.digitize(y, [-1, 1]), "HistGradientBoostingClassifier"
        fitted = [getattr(m, name)(**options) for m in (theirs, ensemble)]
        fitted[0].fit(X, y, weights)
        fitted[1].fit(X, y, weights, eras=None if options["early_stopping"] else eras)
        assert nodes(fitted[0]) == nodes(fitted[1]), i


def check_files(folder):
    X, y, eras = make_rows(np.random.default_rng(1), n_values=5)
    quick = {"max_iter": 5, "early_stopping": False, "random_state": 0}
    booster = ensemble.HistGradientBoostingRegressor
    models = {x.__name__: booster(split_criterion=x(), **quick) for x in CRITERIA}
    models["intercepts"] = booster(era_effects=Intercepts("auto"), **quick)
    models["forest"] = ensemble.EraForestRegressor(5, random_state=0)
    models["auto"] = auto.AutoEraRegressor(booster(**quick), random_state=0)
    for name, model in models.items():
        model.fit(X, y, eras=eras)
        path = folder / f"{name}-{sklearn.__version__}"
        model_files.save_model(model, f"{path}.era")
        known = model.predict(X, eras=eras) if name == "auto" else model.predict(X)
        np.save(f"{path}.npy", known)
        for other in folder.glob(f"{name}-*.era"):
            read, _ = model_files.load_model(other)
            predicted = (
                read.predict(X, eras=eras) if name == "auto" else read.predict(X)
            )
            expected = np.load(other.with_suffix(".npy"))
            assert np.array_equal(predicted, expected), (name, other)
            if name != "auto":  # the linear member's solver changes
                assert nodes(read) == nodes(model), (name, other)


if __name__ == "__main__":
    check_default()
    check_files(Path(sys.argv[1]))
    print(f"scikit-learn {sklearn.__version__}: as in all releases so far")
