"""How long forests take: beside scikit-learn's, and beside time-robust-forest 0.1.14.

With a ratio below 1 ours is the faster; docs/papers/time-robust-forest.md has the
table. Where a criterion compares eras, trees end earlier than a random forest's, as the
mean number of leaves shows; the last of the settings needs no more than one era. Fits
take turns, A B A B, and the fastest of several counts, as other programs disturb all
others.

time-robust-forest is measured where ``SKLEARN_ERA_PEER_PYTHON`` names a Python that has
it; its pinned packages are for Python 3.9. It grows one tree, and its time for 50 of
them, on as many cores as threads here, is that of one times 50 by the number of cores.
"""

import os
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn.ensemble
from numpy.typing import NDArray

from experiments.common import (
    ExperimentError,
    bars,
    coverage_of_papers,
    fit_by_eras,
    kind_of,
    seed_of,
)
from sklearn_era import ensemble

TITLE = "Forests' time to fit, as ratios"
# The fastest of so many fits of each.
N_RUNS = 3

PEER_VARIABLE = "SKLEARN_ERA_PEER_PYTHON"

CRITERIA = ("gain", "era", "directional", "time_robust", "invariant", "vrex")
REGRESSION, CLASSIFICATION = "regression", "classification"
SCIKIT_LEARN, PEER = "scikit-learn", "time-robust-forest"

# The defaults of TimeRobustForest*, in words that random forests know too.
PRESET = {"max_depth": 5, "max_features": "sqrt", "min_samples_leaf": 1}
SETTINGS: dict[str, dict[str, Any]] = {
    "depth 5, 100 rows of an era": {**PRESET, "min_samples_per_era": 100},
    "10 rows a leaf": {"min_samples_leaf": 10},
    "full depth": {"min_samples_leaf": 1},
    "full depth, any one era": {"min_samples_leaf": 1, "min_era_coverage": 0.1},
}
_OURS_ONLY = ("min_samples_per_era", "min_era_coverage")

_N_ERAS = 10
_N_TREES = 50
_N_THREADS = 2
_SHAPE = (20_000, 20)
_PEER_SHAPE = (16_000, 10)
_QUICK_SHAPE = (2_500, 4)

# The other Python's program. It gets a folder with the arrays, and prints seconds.
_PEER_PROGRAM = """
import sys, time
import numpy as np, pandas as pd
from time_robust_forest.models import TimeForestClassifier
arrays = np.load(sys.argv[1])
X = pd.DataFrame(arrays["X"], columns=[f"x{i}" for i in range(arrays["X"].shape[1])])
X["period"] = arrays["eras"]
model = TimeForestClassifier(n_estimators=1, multi=False)
start = time.perf_counter()
model.fit(X, arrays["y"])
print(time.perf_counter() - start)
"""

draw = bars("settings", "criterion", "task", beside=SCIKIT_LEARN)


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the table; `quick` has few rows and trees, and not all comparisons."""
    n_trees = 2 if quick else _N_TREES
    X, y, eras = _make_problem(*(_QUICK_SHAPE if quick else _SHAPE))
    rows = []
    for task in (REGRESSION, CLASSIFICATION):
        target = y > 0 if task == CLASSIFICATION else y
        for name in list(SETTINGS)[: 2 if quick else None]:
            forests = _forests(task, SETTINGS[name], n_trees)
            seconds = _fastest(forests, n_runs, X, target, eras)
            leaves = {key: _mean_leaves(forest) for key, forest in forests.items()}
            rows += [
                {
                    "task": task,
                    "settings": name,
                    "criterion": criterion,
                    "beside": SCIKIT_LEARN,
                    "n_runs": n_runs,
                    "mean": seconds[criterion] / seconds[SCIKIT_LEARN],
                    "paper": np.nan,
                    "leaves": leaves[criterion],
                    "their_leaves": leaves[SCIKIT_LEARN],
                }
                for criterion in CRITERIA
            ]
    if not quick:
        rows += beside_peer(_PEER_SHAPE, n_trees, n_runs)
    return pd.DataFrame(rows)


def _make_problem(n_samples: int, n_features: int) -> tuple[NDArray, NDArray, NDArray]:
    """A noisy sum of a few features, with eras of equal size."""
    rng = np.random.default_rng(seed_of("rows", n_samples))
    X = rng.normal(size=(n_samples, n_features))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3])
    y = signal + 2 * rng.normal(size=n_samples)
    return X, y, np.arange(n_samples) * _N_ERAS // n_samples


def _forests(task: str, limits: dict[str, Any], n_trees: int) -> dict[str, Any]:
    """scikit-learn's forest, and each criterion's with the same limits."""
    is_class = task == CLASSIFICATION
    shared: dict[str, Any] = {
        "n_estimators": n_trees,
        "n_jobs": _N_THREADS,
        "random_state": 0,
        # The defaults of random forests.
        "max_features": "sqrt" if is_class else 1.0,
    }
    theirs = {key: limits[key] for key in limits if key not in _OURS_ONLY}
    random_forest = kind_of(sklearn.ensemble, "RandomForest", is_class)
    forests = {SCIKIT_LEARN: random_forest(**shared | theirs)}
    for criterion in CRITERIA:
        own = shared | coverage_of_papers(criterion) | limits
        era_forest = kind_of(ensemble, "EraForest", is_class)
        forests[criterion] = era_forest(split_criterion=criterion, **own)
    return forests


def beside_peer(shape: tuple[int, int], n_trees: int, n_runs: int) -> list[dict]:
    """Fit the preset, and time-robust-forest, one tree for all, where that is there.
    Without the environment variable there is a warning, and no row.
    """
    python = os.environ.get(PEER_VARIABLE)
    if python is None:
        text = f"{PEER} is left out: {PEER_VARIABLE} names no Python that has it."
        warnings.warn(text, stacklevel=2)
        return []
    X, y, eras = _make_problem(*shape)
    settings: dict[str, Any] = {"n_jobs": _N_THREADS, "random_state": 0}
    forest = ensemble.TimeRobustForestClassifier(n_estimators=n_trees, **settings)
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "rows.npz", X=X, y=(y > 0).astype(int), eras=eras)
        # One of theirs, at once: no other measurement would fit in between.
        one_tree = _seconds_of_peer(python, folder)
    ours = _fastest({"ours": forest}, n_runs, X, y > 0, eras)["ours"]
    row = {"task": CLASSIFICATION, "settings": "depth 5, 100 rows of an era"}
    row |= {"criterion": "time_robust", "beside": PEER}
    mean = one_tree * n_trees / _N_THREADS / ours
    numbers = {"n_runs": n_runs, "mean": mean, "leaves": _mean_leaves(forest)}
    return [{**row, **numbers}]


def _seconds_of_peer(python: str, folder: str) -> float:
    """Seconds of one tree of time-robust-forest in another Python."""
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [python, "-c", _PEER_PROGRAM, str(Path(folder) / "rows.npz")]
    options: dict[str, Any] = {"capture_output": True, "text": True, "check": True}
    try:
        done = subprocess.run(command, cwd=folder, env=clean, **options)
    except (OSError, subprocess.CalledProcessError) as error:
        lines = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        raise ExperimentError(
            f"{PEER_VARIABLE}={python} failed ({lines[-1]}): name a Python that has "
            "time-robust-forest, or leave it unset."
        ) from error
    return float(done.stdout.split()[-1])


def _fastest(
    forests: dict[str, Any], n_runs: int, X: NDArray, y: NDArray, eras: NDArray
) -> dict[str, float]:
    """The fastest of several fits of each, in turns, in seconds."""
    fastest = dict.fromkeys(forests, np.inf)
    for _ in range(n_runs):
        for name, forest in forests.items():
            start = time.perf_counter()
            fit_by_eras(forest, X, y, eras)
            fastest[name] = min(fastest[name], time.perf_counter() - start)
    return fastest


def _mean_leaves(forest: Any) -> float:
    """Leaves of a tree, on average."""
    if hasattr(forest, "estimators_"):
        return float(np.mean([tree.get_n_leaves() for tree in forest.estimators_]))
    trees = [tree for of_iteration in forest._predictors for tree in of_iteration]
    return float(np.mean([tree.get_n_leaf_nodes() for tree in trees]))
