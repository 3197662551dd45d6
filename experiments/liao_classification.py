"""Synthetic classes: Liao, Wu and Yan (2024), section 5.2, tables 1 and 3.

The paper does not give the number of rows; 1000 an era are taken. Its trees part rows
whatever eras they are of: both rules of coverage that come near to that are measured;
see `_liao.COVERAGE`. IRM and REx are linear models here, at three penalties each, and
not the paper's networks, beside which they stand.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import _liao as liao
from experiments._paper_data import make_liao_classification
from experiments.common import bars, seed_of, summarize

TITLE = "Liao et al. (2024), tables 1 and 3: synthetic classes, accuracy in %"
N_RUNS = 5

ACCURACY = "accuracy"
ABOVE = "points above RF"

# By dimension: RF, IRF at each penalty, and the others.
_MODELS = (liao.RANDOM_FOREST, *map(liao.irf, liao.PENALTIES), *liao.OTHERS)
_TABLE_1 = {
    2: (48.74, 50.24, 51.20, 51.06, 47.22, 44.90, 52.72, 49.50),
    5: (47.62, 52.24, 55.04, 55.12, 48.62, 47.54, 53.54, 49.14),
    10: (43.26, 51.26, 53.06, 54.94, 47.12, 47.86, 53.24, 46.64),
    20: (40.08, 52.56, 55.08, 57.42, 51.78, 47.44, 54.56, 48.28),
}
# By dimension: stable and environmental, at penalty 0 and each other.
_TABLE_3 = {
    2: ((4.25, 4.76), (6.06, 3.42), (6.44, 3.10), (6.54, 3.02)),
    5: ((3.84, 4.83), (5.67, 3.61), (6.25, 3.20), (6.38, 3.11)),
    10: ((3.22, 5.18), (5.26, 3.83), (5.86, 3.46), (6.12, 3.27)),
    20: ((2.84, 5.44), (5.26, 3.64), (5.70, 3.43), (5.90, 3.31)),
}
PAPER = liao.paper_of(ACCURACY, _MODELS, _TABLE_1, _TABLE_3)
PAPER |= {
    (d, model, ABOVE): value - PAPER[d, liao.RANDOM_FOREST, ACCURACY]
    for (d, model, score), value in PAPER.items()
    if score == ACCURACY and model.startswith("IRF")
}
CASES = liao.cases_of([*liao.COVERAGE])

draw = bars("dimension", "model", "coverage", score=ACCURACY)


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the tables; `quick` has d = 2, and 5 trees on 200 rows an era."""
    rows = [
        {"dimension": f"d={d}", **row}
        for d in ((2,) if quick else liao.DIMENSIONS)
        for number in range(n_runs)
        for row in _one_run(d, number, quick)
    ]
    by = ["dimension", "model", "coverage", "score"]
    of_paper = ["dimension", "model", "score"]
    return summarize(pd.DataFrame(rows), by=by, paper=PAPER, paper_by=of_paper)


def _one_run(d: int, number: int, quick: bool) -> Iterator[dict]:
    """Every model, fitted to the same data."""
    data = make_liao_classification(
        n_features=d,
        n_samples_per_era=200 if quick else liao.N_ROWS,
        random_state=seed_of("data", d, number),
    )
    n_trees = 5 if quick else liao.N_TREES
    return liao.synthetic_rows(
        data, True, CASES, _scores, number, quick, n_estimators=n_trees
    )


def _scores(predicted: NDArray, y: NDArray, of_rf: NDArray) -> dict[str, float]:
    """The accuracy and, but for RF itself, the points above that of RF."""
    accuracy, of_forest = (100 * float(np.mean(p == y)) for p in (predicted, of_rf))
    above = {} if predicted is of_rf else {ABOVE: accuracy - of_forest}
    return {ACCURACY: accuracy, **above}
