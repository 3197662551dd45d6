"""Shares that rise: Liao, Wu and Yan (2024), section 5.4, tables 4 and 5.

Environments are the years 2014 to 2018. Any three of them train, pooled, and the other
two test: scenario 1 of `_liao_scenarios`. In scenarios 2 and 3, one of the two tunes
depth and penalty by its log loss, and the other one tests: 20 choices.

Columns are those that all years have: 37 numbers and the sector, as columns of 0 and 1;
beside it stand the 37 numbers alone, and the years as eras, which the paper gives to
the forest in its scenario 3 only. "risen" is what predicting a rise for every share
would score.
"""

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from experiments import _liao as liao
from experiments._liao_scenarios import CHOSEN, GIVEN, MADE, Part, Protocol
from experiments.common import bars, find_data_file, summarize

TITLE = "Liao et al. (2024), tables 4 and 5: shares that rise, accuracy in %"
DATA_FILES = ("financial_2014_2018_cleaned.parquet",)
# Seeds; the paper's runs are the choices of years.
N_RUNS = 1

RISEN = "risen"

ALL_COLUMNS = "numbers, sector"
NUMBERS = "numbers"

DEPTHS = (5, 10, 15)

# By scenario, model and what are eras.
PAPER = {
    # Table 4.
    ("1", liao.RANDOM_FOREST, ""): 53.07,
    ("1", liao.XGBOOST, ""): 53.05,
    ("1", liao.irf(1), MADE): 55.30,
    ("1", liao.irf(5), MADE): 56.34,
    ("1", liao.irf(10), MADE): 56.84,
    # Table 5.
    ("2", liao.RANDOM_FOREST, ""): 54.42,
    ("2", liao.XGBOOST, ""): 52.46,
    ("2", CHOSEN, MADE): 56.20,
    ("3", liao.RANDOM_FOREST, ""): 54.50,
    ("3", liao.XGBOOST, ""): 52.46,
    ("3", CHOSEN, GIVEN): 54.27,
}
# Those of the numbers alone, and of the sector too.
CASES = liao.cases_of(eras=MADE)
MORE_CASES = tuple(
    liao.Case(penalty, eras=eras, coverage=coverage)
    for eras, coverage in ((MADE, liao.ANY_ERA), (GIVEN, liao.EVERY_ERA))
    for penalty in liao.PENALTIES
)

draw = bars("eras", "model", "columns", scenario="1", coverage=["", liao.EVERY_ERA])


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the tables; `quick` has one choice of years, few rows and 2 trees."""
    frame = pd.read_parquet(find_data_file(*DATA_FILES, data_dir))
    rows: list[dict] = []
    for columns in (ALL_COLUMNS, NUMBERS):
        data = _read(frame, columns).thinned(50 if quick else 1)
        for number in range(n_runs):
            cases = CASES if columns == NUMBERS else CASES + MORE_CASES
            given = DEPTHS, liao.N_TREES, _loss, number, quick
            protocol = Protocol(True, 3, cases, *given)
            models = protocol.untuned_models(data)
            if columns == ALL_COLUMNS:
                models = chain(models, protocol.tuned_models(data))
            for names, model, test in models:
                if names["scenario"] == "1" and names["model"] == liao.RANDOM_FOREST:
                    risen = {**names, "model": RISEN, "value": 100 * test.y.mean()}
                    rows.append({"columns": columns, **risen})
                accuracy = 100 * model.score(test.X, test.y)
                rows.append({"columns": columns, **names, "value": accuracy})
    by = ["scenario", "columns", "model", "eras", "coverage"]
    of_paper = ["scenario", "model", "eras"]
    return summarize(pd.DataFrame(rows), by=by, paper=PAPER, paper_by=of_paper)


def _read(frame: pd.DataFrame, columns: str) -> Part:
    """The columns that no year lacks, without what the target is made of."""
    full = [
        name
        for name in frame.columns[frame.notna().all()]
        if name not in ("year", "Class") and "PRICE VAR" not in name
    ]
    inputs = frame[full]
    if columns == NUMBERS:
        inputs = inputs.drop(columns="Sector")
    else:
        inputs = pd.get_dummies(inputs, columns=["Sector"])
    return Part(
        inputs.to_numpy(np.float64),
        frame["Class"].to_numpy(),
        frame["year"].to_numpy(np.intp),
    )


def _loss(model: Any, part: Part) -> float:
    return float(log_loss(part.y, model.predict_proba(part.X)))
