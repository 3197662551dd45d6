"""Small fits and predictions on four threads, for ThreadSanitizer: see `.ci/sanitize`.

``threads.py LIBRARY`` runs a loop with a race instead, to prove that races are found.
"""

import ctypes
import sys

import numpy as np


def race(library: str) -> None:
    ctypes.CDLL(library).race(100_000)


def fit() -> None:
    from sklearn_era import ensemble
    from sklearn_era.rules import RuleEnsembleClassifier

    criteria = ["gain", "era", "directional", "time_robust", "invariant", "vrex"]
    small = {"max_leaf_nodes": 8, "early_stopping": False}
    rng = np.random.default_rng(0)
    eras = np.repeat(np.arange(12), 250)
    floats, integers = rng.normal(size=(3000, 6)), rng.integers(0, 5, (3000, 6))
    for X in (floats, integers.astype(np.float64)):
        y = X[:, 0] + rng.normal(size=3000)
        weights = rng.uniform(0.5, 2.0, 3000)
        for criterion in criteria:
            model = ensemble.HistGradientBoostingRegressor(
                split_criterion=criterion, max_iter=3, **small
            )
            model.fit(X, y, eras=eras).predict(X)
        model.fit(X, y, eras=eras, sample_weight=weights).predict(X)
        classes = ensemble.HistGradientBoostingClassifier(
            split_criterion="directional", max_iter=2, categorical_features=[1], **small
        )
        X[:, 1] = integers[:, 1]
        classes.fit(X, np.digitize(y, [-1.0, 1.0]), eras=eras).predict_proba(X)
        forest = ensemble.EraForestClassifier(n_estimators=3, max_leaf_nodes=8)
        forest.fit(X, y > 0, eras=eras).predict_proba(X)
        rules = RuleEnsembleClassifier(n_estimators=2)
        rules.fit(X, y > 0, eras=eras).predict(X)


if __name__ == "__main__":
    race(*sys.argv[1:]) if sys.argv[1:] else fit()
