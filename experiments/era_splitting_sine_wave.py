"""The shifted sine wave: DeLise (2023), sections 5.1 and 6, table 3 and figure 7.

No model can know the shifts of eras: "the sine itself", at the training eras' level, is
the best guess there is. The error of the shape is without shift and noise: the variance
of the prediction's distance from the sine, which can be 0. Configurations are also
chosen by leaving one training era (or an eighth of them) out at a time.
docs/papers/era-splitting.md has the data, of which "N(0, 1) shifts" are ours, and the
results.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupKFold
from sklearn.utils import Bunch

from experiments import _era_splitting as delise
from experiments._paper_data import make_shifted_sine_wave
from experiments.common import bars, seed_of, summarize_beside

TITLE = "DeLise (2023), table 3: shifted sine wave, mean squared error"
N_RUNS = 10

DATA: dict[str, dict[str, Any]] = {
    "N(0, 1) shifts": {},
    "U(0, 2) shifts": {"shift_range": 2.0},
    "notebook": {
        "n_eras": 64,
        "n_samples_per_era": 32,
        "n_test_eras": 64,
        "shift_std": 2.0,
        "noise_std": 2.0,
    },
}
ORACLE = "the sine itself"
SHAPE = "test, shape"
PAPER = {
    (criterion, data, delise.BY_TEST, delise.TEST): value
    for data in [*DATA][:2]
    for criterion, value in zip(delise.CRITERIA, (1.79, 1.71, 1.75), strict=True)
}

draw = bars("criterion", "chosen", "data", score=delise.TEST)


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the table; `quick` has 2 configurations instead of 30, of few trees."""
    rows = [
        {"run": number, "data": name, **row}
        for name, options in DATA.items()
        for number in range(n_runs)
        for row in _one_run(number, options, quick)
    ]
    by = ["criterion", "data", "chosen", "score"]
    return summarize_beside(pd.DataFrame(rows), by=by, reference="gain", paper=PAPER)


def _one_run(number: int, options: dict[str, Any], quick: bool) -> list[dict]:
    """Both choices for each criterion, of the same data and configurations."""
    data = make_shifted_sine_wave(seed_of("data", number), **options)
    configurations = delise.draw_configurations(number, quick)
    level = np.mean(data.y_train - data.signal_train)
    known = np.mean((data.y_test - data.signal_test - level) ** 2)
    case = {"criterion": ORACLE, "chosen": "", "score": delise.TEST}
    rows = [{**case, "value": float(known)}]
    given = {"data": data, "seed": number}
    score, held_out = partial(_scores, **given), partial(_held_out_error, **given)
    for criterion in delise.CRITERIA:
        rows += delise.choose(criterion, configurations, score, held_out, -1)
    return rows


def _held_out_error(
    criterion: str, configuration: dict, data: Bunch, seed: int
) -> float:
    """The mean error in each training era of a model that has not seen it."""
    errors = []
    X, y, eras = data.X_train, data.y_train, data.eras_train
    for train, held_out in GroupKFold(8).split(X, groups=eras):
        rows = X[train], y[train], eras[train]
        model = delise.fit(criterion, configuration, rows, seed)
        errors.append(np.mean((y[held_out] - model.predict(X[held_out])) ** 2))
    return float(np.mean(errors))


def _scores(
    criterion: str, configuration: dict, data: Bunch, seed: int
) -> dict[str, float]:
    """The paper's scores, and the error of the shape, where shift and noise are out."""
    train = data.X_train, data.y_train, data.eras_train
    model = delise.fit(criterion, configuration, train, seed)
    predicted = model.predict(data.X_test)
    test = float(np.mean((data.y_test - predicted) ** 2))
    training = float(np.mean((data.y_train - model.predict(data.X_train)) ** 2))
    return {
        delise.TEST: test,
        delise.TRAINING: training,
        delise.GAP: test - training,
        SHAPE: float(np.var(data.signal_test - predicted)),
    }
