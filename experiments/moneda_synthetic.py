"""A copy of the target that turns into noise: Moneda (2021), sections 5.3.3 to 5.3.5.

See docs/papers/time-robust-forest.md. The thesis' decrease is one of the Gini impurity,
twice the squared error that forests measure here. For the decision tree it is that over
all rows, as a share of the training set, for a time robust tree that of equation 5.4,
the least over periods (or the mean), each as a share of that period.

Settings are chosen by cross-validation in three ways: by the area under the curve in
the pooled test folds; by its mean over test folds that hold one period each; and by the
lower of the two periods' means. The thesis gives neither the candidates nor, outside of
a figure, results. All copies of a row are in one fold: else the training folds would
have most rows of the test fold, and trees that learn them by heart would be chosen.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Bunch

from experiments._paper_data import make_moneda_drift
from experiments.common import (
    RULE_OF_PAPERS,
    bars,
    fit_by_eras,
    respond,
    seed_of,
    summarize,
)
from sklearn_era.criteria import TimeRobust
from sklearn_era.ensemble import EraForestClassifier
from sklearn_era.metrics import era_scores

TITLE = "Moneda (2021), sections 5.3.3 to 5.3.5: ROC AUC of a tree in the holdout"
N_RUNS = 10

DECISION_TREE = "decision tree"
WORST = "time robust tree, max"
MEAN = "time robust tree, mean"
MODELS = (DECISION_TREE, WORST, MEAN)

SHIFT, NO_SHIFT = "drift", "no shift"
FIXED = "as in the thesis"
POOLED = "K-folds"
BY_PERIOD = "Env K-folds"
MIN_MAX = "Env K-folds Min-Max"

# The thesis leaves open how its tree aggregates; its algorithm 3 takes the mean, and
# only the largest impurity gives its number.
PAPER = {
    (SHIFT, FIXED, DECISION_TREE, "training"): 0.92,
    (SHIFT, FIXED, DECISION_TREE, "holdout"): 0.64,
    (SHIFT, FIXED, WORST, "training"): 0.83,
    (SHIFT, FIXED, WORST, "holdout"): 0.81,
    (NO_SHIFT, FIXED, DECISION_TREE, "training"): 0.87,
    (NO_SHIFT, FIXED, DECISION_TREE, "holdout"): 0.87,
    (NO_SHIFT, FIXED, WORST, "training"): 0.87,
    (NO_SHIFT, FIXED, WORST, "holdout"): 0.87,
    # "Around 0.90", however they were chosen.
    (NO_SHIFT, POOLED, DECISION_TREE, "holdout"): 0.90,
    (NO_SHIFT, POOLED, WORST, "holdout"): 0.90,
}

# The candidates of the choice: depth, decrease of Gini impurity, rows of each of the
# two periods on both sides of a split.
DEPTHS = (2, 5, 10, 30)
DECREASES = (0.0, 0.001, 0.01)
ROWS = (5, 10, 30, 100)

_N_FOLDS = 5

draw = bars("chosen", "model", "data", part="holdout")


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the table; `quick` has 2 candidates instead of 48."""
    candidates = list(product(DEPTHS, DECREASES, ROWS))
    if quick:
        candidates = [(2, 0.01, 30), (30, 0.0, 5)]
    rows: list[dict] = []
    for name, number in product((SHIFT, NO_SHIFT), range(n_runs)):
        for chosen, model, tree, data in _trees(name, number, candidates):
            fit_by_eras(tree, data.X_train, data.y_train, data.eras_train)
            case = {"data": name, "chosen": chosen, "model": model, "run": number}
            for part, of in {"training": "train", "holdout": "test"}.items():
                auc = roc_auc_score(data[f"y_{of}"], respond(tree, data[f"X_{of}"]))
                rows.append({**case, "part": part, "auc": auc})
    by = ["data", "chosen", "model", "part"]
    return summarize(pd.DataFrame(rows), by=by, value="auc", paper=PAPER)


def _trees(
    name: str, number: int, candidates: list[tuple[int, float, int]]
) -> Iterator[tuple[str, str, Any, Bunch]]:
    """How it was chosen, name, tree, and its data, of each tree of a run."""
    data = _make_data(name, number)
    for model in MODELS:
        # Twenty rows to split, for the decision tree, are not ten a leaf.
        limits = {"min_samples_split": 20} if model == DECISION_TREE else {}
        yield FIXED, model, _tree(model, 30, 0.01, 10, number, **limits), data
    data, original = _bootstrap(_make_data(name, -1), number)
    for model in MODELS:
        for chosen, best in _choose(model, candidates, data, original):
            yield chosen, model, _tree(model, *best, number), data


def _make_data(name: str, number: int) -> Bunch:
    """A run's data; -1 is the set that bootstraps are drawn from."""
    seed = seed_of("data", name, number + 1)
    if name == SHIFT:
        return make_moneda_drift(seed)
    return make_moneda_drift(seed, has_shift=False, shortcut_noise_std=1.0)


def _bootstrap(data: Bunch, number: int) -> tuple[Bunch, NDArray[np.int64]]:
    """Draw as many rows of each period; and which rows they were."""
    rng = np.random.default_rng(seed_of("bootstrap", number))
    eras = data.eras_train
    rows = [np.flatnonzero(eras == era) for era in np.unique(eras)]
    drawn = np.concatenate([rng.choice(own, own.size) for own in rows])
    of_training = ("X_train", "y_train", "eras_train")
    return Bunch(**{**data, **{name: data[name][drawn] for name in of_training}}), drawn


def _tree(
    model: str, depth: int, gini_decrease: float, rows: int, seed: int, **limits: int
) -> Any:
    """A tree that keeps `rows` of each period on both sides of a split. The decision
    tree knows no periods: of the two together it keeps twice as many, unless it has
    other `limits`.
    """
    if model == DECISION_TREE:
        return DecisionTreeClassifier(
            max_depth=depth,
            min_impurity_decrease=gini_decrease,
            random_state=seed,
            **(limits or {"min_samples_leaf": 2 * rows}),
        )
    return EraForestClassifier(
        n_estimators=1,
        min_samples_leaf=1,
        bootstrap=False,
        split_criterion=TimeRobust(
            aggregation="max" if model == WORST else "mean",
            # In squared error, half of Gini.
            min_impurity_decrease=gini_decrease / 2,
        ),
        max_depth=depth,
        min_samples_per_era=rows,
        **RULE_OF_PAPERS,
        n_jobs=1,
        random_state=seed,
    )


def _choose(
    model: str, candidates: list[tuple[int, float, int]], data: Bunch, original: NDArray
) -> Iterator[tuple[str, tuple[int, float, int]]]:
    """Choose a candidate in the three ways of section 5.3.4."""
    X, y, eras = data.X_train, data.y_train, data.eras_train
    folds = GroupKFold(_N_FOLDS, shuffle=True, random_state=0)
    pooled: list[list] = []
    by_period: list[list] = []
    for train, test in folds.split(X, y, groups=original):
        pooled.append([])
        by_period.append([])
        for candidate in candidates:
            tree = _tree(model, *candidate, seed=0)
            p = respond(fit_by_eras(tree, X[train], y[train], eras[train]), X[test])
            pooled[-1].append(roc_auc_score(y[test], p))
            of_periods = era_scores(y[test], p, eras=eras[test], metric=roc_auc_score)
            by_period[-1].append(of_periods.scores)
    means = np.mean(by_period, axis=0)  # by candidate and period
    yield POOLED, candidates[int(np.mean(pooled, axis=0).argmax())]
    yield BY_PERIOD, candidates[int(means.mean(axis=1).argmax())]
    yield MIN_MAX, candidates[int(means.min(axis=1).argmax())]
