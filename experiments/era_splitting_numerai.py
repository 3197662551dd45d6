"""Numerai: DeLise (2023), sections 5.4 and 6, table 3 and figure 7.

The files are those of your own download, as ``sklearn-era numerai download`` leaves
them: training and, if it is there, validation data, and the feature sets. Every fourth
era is taken, because returns span four weeks. Five folds over time: four train, as so
many eras, and the last one tests. Beside the best test score stands the configuration
that is best in the fourth fold, trained on the first three. CORR is Pearson's
correlation in each era of the data, and the Sharpe ratio its mean by its standard
deviation. The target is Cyrus over 20 days, or the first one if there is none.
"""

import re
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import _era_splitting as delise
from experiments.common import bars, find_data_file, rows_of, summarize
from sklearn_era.environments import time_blocks
from sklearn_era.metrics import era_scores
from sklearn_era.numerai.data import EraFile, read_features, read_rows

TITLE = "DeLise (2023), table 3: Numerai, correlation by era"
DATA_FILES = ("train.parquet", "features.json")
# Draws of configurations.
N_RUNS = 1

N_CONFIGURATIONS = 15
N_TREES = (50, 100, 200, 500, 1000)
N_GROUPS = (3, 4, 5, 6, 7, 8)
BENCHMARK = "benchmark's parameters"
PARAMETERS = {
    "max_iter": 2000,
    "max_depth": 5,
    "max_leaf_nodes": 32,
    "learning_rate": 0.01,
    "colsample_bytree": 0.1,
    "boltzmann_alpha": 0,
}
SHARPE, DRAWDOWN = "Sharpe ratio", "drawdown"

POOLED = "pooled"
PAPER = {
    ("gain", POOLED, delise.BY_TEST, delise.TEST): 0.0236,
    ("era", "4 eras", delise.BY_TEST, delise.TEST): 0.0203,
    ("directional", "4 eras", delise.BY_TEST, delise.TEST): 0.0265,
    ("gain", POOLED, BENCHMARK, delise.TEST): 0.0261,
    ("directional", "4 eras", BENCHMARK, delise.TEST): 0.0271,
}

_N_FEATURES = 244
_EVERY = 4


class Rows(NamedTuple):
    """Features, target, weekly eras, and folds of time from 0 to 4."""

    X: NDArray[Any]
    y: NDArray[Any]
    weeks: NDArray[Any]
    folds: NDArray[Any]

    def of(self, chosen: NDArray[np.bool_]) -> "Rows":
        return Rows(*(column[chosen] for column in self))


draw = bars("eras", "chosen", "criterion", score=delise.TEST)


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the table; `quick` has 2 configurations, numbers of eras, few trees."""
    data = _read(*(_find(name, data_dir) for name in DATA_FILES))
    rows: list[dict] = []
    for number in range(n_runs):
        rows += _one_run(data, number, quick)
    by = ["criterion", "eras", "chosen", "score"]
    return summarize(pd.DataFrame(rows), by=by, paper=PAPER)


def _find(name: str, data_dir: Path | None) -> Path:
    """Numerai's file, also where its name ends in the round of its download."""
    stem, suffix = name.split(".")
    pattern = rf"{stem}(_\d+)?\.{suffix}"
    found = [x for x in (data_dir or Path()).iterdir() if re.fullmatch(pattern, x.name)]
    if data_dir is None or not found:
        return find_data_file(name, data_dir)
    return max(found, key=lambda path: (len(path.name), path.name))


def _read(train: Path, features: Path) -> Rows:
    """Every fourth era of the training and validation data."""
    metadata = read_features(features)
    names = min(
        metadata.feature_sets.values(), key=lambda some: abs(len(some) - _N_FEATURES)
    )
    cyrus = [x for x in metadata.targets if re.fullmatch(r"target_cyrus\w*_20", x)]
    validation = train.with_name(train.name.replace("train", "validation"))
    files = [train, *([validation] if validation.is_file() else [])]
    known = {x for file in files for x in EraFile(file).read_eras()[0]}
    weeks = {label: int(label) for label in sorted(known)[::_EVERY]}
    frame, y, labels = read_rows(files, names, [*cyrus, *metadata.targets][0], weeks)
    return Rows(frame.to_numpy(), y, labels, time_blocks(labels, 5))


def _one_run(data: Rows, number: int, quick: bool) -> list[dict]:
    """Every criterion and number of eras at the same configurations."""
    configurations = delise.draw_configurations(
        number, quick, N_CONFIGURATIONS, max_iter=N_TREES
    )
    benchmark = {**PARAMETERS, **({"max_iter": 20} if quick else {})}
    cases = [("gain", 0), ("era", 4)]
    cases += [("directional", n) for n in (N_GROUPS[:2] if quick else N_GROUPS)]
    rows = []
    for criterion, n_eras in cases:
        eras = f"{n_eras} eras" if n_eras else POOLED
        scores = partial(_scores, n_eras=n_eras, data=data, tested=4)
        held_out = partial(_held_out, n_eras=n_eras, data=data)
        rows += delise.choose(criterion, configurations, scores, held_out, eras=eras)
        if n_eras in (0, 4):
            cell = {"criterion": criterion, "eras": eras, "chosen": BENCHMARK}
            rows += rows_of(scores(criterion, benchmark), "score", **cell)
    return rows


def _held_out(criterion: str, parameters: dict, n_eras: int, data: Rows) -> float:
    """The score in the fold before the one to test."""
    return _scores(criterion, parameters, n_eras, data, 3)[delise.TEST]


def _scores(
    criterion: str, parameters: dict, n_eras: int, data: Rows, tested: int
) -> dict[str, float]:
    """The scores in a fold of a model of the ones before, cut into so many eras."""
    train, test = data.of(data.folds < tested), data.of(data.folds == tested)
    eras = time_blocks(train.weeks, n_eras or 1)
    model = delise.fit(criterion, parameters, (train.X, train.y, eras), 0)
    how: dict[str, Any] = {"metric": _pearson, "greater_is_better": True}
    own, corr = (
        era_scores(part.y, model.predict(part.X), eras=part.weeks, **how)
        for part in (train, test)
    )
    return {
        delise.TEST: corr.mean(),
        SHARPE: corr.aggregate("sharpe", undefined=0.0),
        DRAWDOWN: corr.aggregate("max_drawdown"),
        delise.TRAINING: own.mean(),
        delise.GAP: own.mean() - corr.mean(),
    }


def _pearson(y: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    """Pearson's correlation, 0 with a constant."""
    if np.ptp(y) == 0 or np.ptp(predicted) == 0:
        return 0.0
    return float(np.corrcoef(y, predicted)[0, 1])
