"""Energy and air: Liao, Wu and Yan (2024), section 5.5, tables 6 to 8.

Environments are those of table 6, for the paper's data sets Energy1 and Air1. Two of
them train, another one tests; in the scenarios 2 and 3 of `_liao_scenarios` a fourth
one tunes. Scores are ratios to the mean squared error of RF, of as many trees and the
same depth; their mean and deviation are over the choices of environments. Without the
rule of coverage ("any era") only the equations to the letter are measured.

The paper does not preprocess. Here the rows without a target are left out, and so are
the columns with the time to which an environment belongs: the number of the row always,
the hour or the month by which the rows are split, and the year where they are split by
time. The wind's direction is four columns of 0 and 1.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments import _liao as liao
from experiments._liao_scenarios import CHOSEN, Part, Protocol
from experiments.common import bars, find_data_file, summarize
from sklearn_era.environments import time_blocks

TITLE = "Liao et al. (2024), tables 7 and 8: energy and air, MSE by that of RF"
DATA_FILES = ("energy1_appliances.csv.gz", "air1_beijing_pm25.csv.gz")
# Seeds; the paper's runs are the choices of environments.
N_RUNS = 1

DEPTHS = (10, 15, 20)
N_TREES_TUNED = 10
MEAN = "mean of all"
CASES = (
    *liao.cases_of(statistics=("effect", "changing_rate")),
    liao.Case(liao.PENALTIES[-1], "changing_rate", liao.ANY_ERA),
)

# Table 6: the environment of each hour from 0, or month from 1; None is by time.
_HOURS_OF_3 = {
    "Energy1-1": [2] * 6 + [1] * 4 + [0] * 8 + [1] * 4 + [2] * 2,
    "Energy1-2": [2] * 4 + [0] * 8 + [1] * 8 + [2] * 4,
    "Energy1-3": [0] * 8 + [1] * 8 + [2] * 8,
    "Energy1-4": None,
}
_HOURS_OF_4 = {"Energy1-1": [0] * 6 + [1] * 6 + [2] * 6 + [3] * 6, "Energy1-2": None}
_MONTHS_OF_3 = {
    "Air1-1": [0] * 4 + [1] * 4 + [2] * 4,
    "Air1-2": [2] + [0] * 4 + [1] * 4 + [2] * 3,
    "Air1-3": [2] * 2 + [0] * 4 + [1] * 4 + [2] * 2,
    "Air1-4": None,
}
_MONTHS_OF_4 = {
    "Air1-1": [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3,
    "Air1-2": [3] + [0] * 3 + [1] * 3 + [2] * 3 + [3] * 2,
    "Air1-3": [3] * 2 + [0] * 3 + [1] * 3 + [2] * 3 + [3],
    "Air1-4": None,
}

# In scenario 1: IRF at each penalty, and XGBoost.
_TABLE_7 = {
    "Energy1-1": (1.009, 1.029, 1.027, 1.266),
    "Energy1-2": (0.986, 0.961, 0.958, 1.201),
    "Energy1-3": (1.018, 1.032, 1.045, 1.219),
    "Energy1-4": (0.933, 0.896, 0.892, 1.287),
    "Air1-1": (0.878, 0.850, 0.865, 1.130),
    "Air1-2": (0.969, 0.911, 0.886, 1.088),
    "Air1-3": (0.983, 0.944, 0.923, 1.107),
    "Air1-4": (0.901, 0.974, 1.006, 1.243),
}
# In scenarios 2 and 3: IRF, and XGBoost.
_TABLE_8 = {
    "Energy1-1": (0.989, 0.977, 1.064, 1.050),
    "Energy1-2": (0.925, 0.979, 1.141, 1.187),
    "Air1-1": (0.916, 0.845, 1.052, 1.053),
    "Air1-2": (0.979, 0.956, 1.112, 1.126),
    "Air1-3": (0.940, 0.988, 1.173, 1.151),
    "Air1-4": (1.006, 0.993, 1.099, 1.110),
}
_COLUMNS_7 = [("1", name) for name in (*map(liao.irf, liao.PENALTIES), liao.XGBOOST)]
_COLUMNS_8 = [(scenario, name) for name in (CHOSEN, liao.XGBOOST) for scenario in "23"]
# By scenario, model and data, with the means of the columns.
PAPER: dict[tuple[str, str, str], float] = {
    (*column, name): value
    for columns, table in ((_COLUMNS_7, _TABLE_7), (_COLUMNS_8, _TABLE_8))
    for name, values in {**table, MEAN: np.mean([*table.values()], axis=0)}.items()
    for column, value in zip(columns, values, strict=True)
}

draw = bars("data", "model", "scenario", statistic="effect", coverage=liao.EVERY_ERA)


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the tables; `quick` has few splits and rows, and 2 trees."""
    rows = [
        {"data": name, **row}
        for is_tuned, name, data in _derived_data(data_dir, quick)
        for number in range(n_runs)
        for row in _ratios(is_tuned, data, number, quick)
    ]
    by = ["scenario", "data", "model", "statistic", "coverage"]
    of_paper: Any = {"paper": PAPER, "paper_by": ["scenario", "model", "data"]}
    table = summarize(pd.DataFrame(rows), by=by, **of_paper)
    # Each split counts the same, however many choices of environments it has.
    means = table[[*by, "mean"]].assign(data=MEAN)
    means = summarize(means, by=by, value="mean", **of_paper)
    return pd.concat([table, means], ignore_index=True)


def _ratios(is_tuned: bool, data: Part, number: int, quick: bool) -> Iterator[dict]:
    """Errors by that of RF, for each environment to test."""
    protocol = Protocol(False, 2, CASES, DEPTHS, N_TREES_TUNED, _error, number, quick)
    fit = protocol.tuned_models if is_tuned else protocol.untuned_models
    for names, model, test in fit(data):
        error = _error(model, test)
        if names["model"] == liao.RANDOM_FOREST:
            baseline = error
        else:
            yield {**names, "value": error / baseline}


def _derived_data(
    data_dir: Path | None, quick: bool
) -> Iterator[tuple[bool, str, Part]]:
    """Whether models are tuned, name and rows of each data set of table 6."""
    energy_file, air_file = (find_data_file(name, data_dir) for name in DATA_FILES)
    energy = pd.read_csv(energy_file, parse_dates=["date"])
    air = pd.read_csv(air_file).dropna(subset="pm2.5")
    step, most = (50, 1) if quick else (1, None)
    for is_tuned, n_parts, hours, months in (
        (False, 3, _HOURS_OF_3, _MONTHS_OF_3),
        (True, 4, _HOURS_OF_4, _MONTHS_OF_4),
    ):
        for make, rows, table in (
            (_energy_part, energy, hours),
            (_air_part, air, months),
        ):
            for name, of_unit in islice(table.items(), most):
                yield is_tuned, name, make(rows, of_unit, n_parts).thinned(step)


def _energy_part(energy: pd.DataFrame, of_hour: list[int] | None, n: int) -> Part:
    """Energy1, split by the hour or into `n` blocks of time."""
    dates = energy["date"]
    inputs = energy.drop(columns=["date", "Appliances"])
    return _part(inputs, energy["Appliances"], dates, dates.dt.hour, of_hour, n)


def _air_part(air: pd.DataFrame, of_month: list[int] | None, n: int) -> Part:
    """Air1, split by the month or into `n` blocks of time."""
    known = ["No", "pm2.5", "year" if of_month is None else "month"]
    inputs = pd.get_dummies(air.drop(columns=known), columns=["cbwd"])
    return _part(inputs, air["pm2.5"], air["No"], air["month"] - 1, of_month, n)


def _part(
    inputs: pd.DataFrame, y: pd.Series, times: Any, units: Any, of_unit: Any, n: int
) -> Part:
    X, target = inputs.to_numpy(np.float64), y.to_numpy(np.float64)
    if of_unit is None:
        return Part(X, target, time_blocks(times.to_numpy(), n))
    return Part(X, target, np.array(of_unit)[units])


def _error(model: Any, part: Part) -> float:
    return float(np.mean((model.predict(part.X) - part.y) ** 2))
